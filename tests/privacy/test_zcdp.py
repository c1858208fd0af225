"""Conversions to rho and back against their definitions."""

import math

import numpy as np
import pytest

from sktensor_dp.privacy.calibration import gaussian_epsilon
from sktensor_dp.privacy.zcdp import (
    epsilon_of_rho,
    pure_rho,
    zcdp_epsilon_at_delta,
    zcdp_rho_at_delta,
)


@pytest.mark.parametrize("epsilon", [0.03, 0.1, 1.0, 3.0, 20.0])
def test_rho_of_pure_noise_is_the_least(epsilon):
    """That of randomised response, of which every pure release is post-processing."""
    heads = 1 / (1 + math.exp(-epsilon))
    for order in (100.0, 10.0, 2.0, 1.1, 1.001):
        moment = np.logaddexp(
            math.log(heads) + (order - 1) * epsilon, math.log1p(-heads) - (order - 1) * epsilon
        )
        divergence = moment / (order - 1)
        assert divergence <= order * pure_rho(epsilon) * (1 + 1e-9)
    near_one = 1.001
    assert pure_rho(epsilon) * (1 - 1e-4) <= epsilon * (2 * heads - 1) <= near_one * divergence
    assert epsilon_of_rho(pure_rho(epsilon)) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("delta", [1e-30, 1e-9, 1e-6, 1e-2])
@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 5.0])
def test_conversions_hold_for_gaussian_noise_and_invert(mu, delta):
    epsilon = zcdp_epsilon_at_delta(mu * mu / 2, delta)
    exact = gaussian_epsilon(mu, delta)
    # Where an epsilon is near 0, orders lose more than a part of it.
    assert exact <= epsilon <= 1.3 * exact + 0.02
    assert zcdp_rho_at_delta(epsilon, delta) == pytest.approx(mu * mu / 2, rel=1e-9)
    assert zcdp_epsilon_at_delta(zcdp_rho_at_delta(0.7, delta), delta) == pytest.approx(0.7)
