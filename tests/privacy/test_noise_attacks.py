"""Attacks on the low-order digits of noise: they break textbook noise, and not ours.

Two hypotheses, x = 0 and x = 1, and noise of scale 1. Both attacks name an event that has
probability 0 under one hypothesis and is common under the other. Whatever epsilon is,
such an event contradicts (epsilon, delta)-differential privacy with small delta.
"""

import math
import os
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from sktensor_dp import (
    PrivacyLeakWarning,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    unsafe_seeded_noise,
)
from sktensor_dp.privacy.noise import NoiseSource

N = 20_000
Release = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def textbook_laplace(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The logarithm of a multiple of 2^-53, with a sign."""
    magnitude = -np.log(rng.integers(1, 2**53, value.size) * 2.0**-53)
    return value + magnitude * rng.choice([-1.0, 1.0], value.size)


def of_library(law: str) -> Release:
    def release(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        # Each number on its own would be a release; together they share the step.
        with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(int(rng.integers(2**32))):
            source = NoiseSource()
        noisy: np.ndarray = getattr(source, law)(value, 1.0)
        return noisy

    return release


def finer_than_a_sum(released: np.ndarray) -> np.ndarray:
    """Attack by rounding: 1 + z is a multiple of 2^-53 for z > -1; z alone need not be."""
    small = np.abs(released) < 0.5
    return small & (np.rint(released * 2.0**53) != released * 2.0**53)


def out_of_reach(released: np.ndarray, value: float) -> np.ndarray:
    """Attack by holes (Mironov 2012): no multiple of 2^-53 gives this number for ``value``."""
    magnitude = np.abs(released - value)
    nearest = np.rint(np.exp(-magnitude) * 2.0**53)
    found = np.zeros(released.size, dtype=bool)
    for offset in range(-4, 5):
        log = -np.log(np.clip(nearest + offset, 1, 2**53) * 2.0**-53)
        found |= (value + log == released) | (value - log == released)
    return ~found


ATTACKS = finer_than_a_sum, partial(out_of_reach, value=0), partial(out_of_reach, value=1)


def rates(release: Release, event: Callable[[np.ndarray], np.ndarray], seed: int) -> list[float]:
    """Probability of an event for x = 0 and for x = 1."""
    rng = np.random.default_rng([seed, 7])
    return [float(event(release(np.full(N, x), rng)).mean()) for x in (0.0, 1.0)]


def test_digits_give_textbook_noise_away(seed):
    """The attacker sees x = 0 excluded, or x = 1, and never the truth."""
    for event, excluded in zip(ATTACKS, (1, 0, 1), strict=True):
        found = rates(textbook_laplace, event, seed)
        assert found[excluded] == 0
        assert found[1 - excluded] > 0.1


@pytest.mark.parametrize("law", ["laplace", "gaussian", "spherical_laplace"])
def test_both_attacks_learn_nothing_about_noise_on_a_grid(law, seed):
    for event in ATTACKS:
        # Events also tell magnitudes apart, as the law allows: a number's density changes by
        # a factor of e at most, for the Gaussian law up to 1/2. Five standard errors besides.
        found = rates(of_library(law), event, seed)
        for p, q in (found, found[::-1]):
            assert p <= math.e * q + 5 * math.sqrt((p + math.e**2 * q) / N)


X = np.random.default_rng(0).poisson(1.0, (400, 6)).astype(float)


class Forking:
    """Chunks that fork the process when they are read a second time, in a release."""

    def __init__(self, n_passes: int) -> None:
        self.left, self.child = n_passes, None

    def __iter__(self):
        self.left -= 1
        yield X[:200]
        if self.left == 0:
            self.child = os.fork()
        yield X[200:]


def in_chunks(source: Forking) -> None:
    PrivateSpectralLDA(1, n_refinements=0).fit_chunks(source, n_samples=400, n_features=6)


def as_a_stream(source: Forking) -> None:
    model = PrivateTensorPowerMethod(1, data_norm=4.0, perturbation="stream", max_iter=1)
    model.fit_chunks(iter(source))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
@pytest.mark.parametrize(("fit", "n_passes"), [(in_chunks, 2), (as_a_stream, 1)])
def test_a_process_forked_in_a_fit_is_refused_and_its_parent_goes_on(fit, n_passes):
    source, said = Forking(n_passes), ""
    try:
        fit(source)
    except RuntimeError as error:
        said = str(error)
    finally:
        if source.child == 0:
            os._exit(0 if "forked while a fit was running" in said else 1)
    assert said == ""
    assert os.waitstatus_to_exitcode(os.waitpid(source.child, 0)[1]) == 0
