"""What a fit of persons says of modes whose rows it could not compare."""

from types import SimpleNamespace

import numpy as np
import pytest

from sktensor_dp.completion.chains import Chains, on_noise
from sktensor_dp.completion.plan import MOST_CONCURRENT


@pytest.mark.parametrize("n_others", [2, MOST_CONCURRENT, MOST_CONCURRENT + 1])
def test_a_mode_that_noise_hides_is_warned_of_beside_one_that_is_not_measured(n_others):
    effects = [
        SimpleNamespace(means=np.zeros(n), covariances=None, is_hidden=False)
        for n in (50, n_others)
    ]
    model = SimpleNamespace(unit_mode=0, effects=effects)
    plan = SimpleNamespace(with_concurrences=(True, False), in_doubt=(False, False))
    chains = Chains(SimpleNamespace(unit_mode=0, epsilon=1.0, delta=0), (1000, 50, n_others))
    (note,) = on_noise([1], 2)
    _, warnings = chains.on_fit(model, plan, [note, "another note"])
    assert note in [str(warning) for warning in warnings]
