"""Laws of released values of tensors that depend on the cost, or on the value itself."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

from sktensor_dp import PrivacyLeakWarning, unsafe_seeded_noise
from sktensor_dp.privacy.curators.entries import EntryCurator
from sktensor_dp.privacy.mechanisms import Piecewise, piecewise_deviation, spherical_laplace_rows
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.queries.entries import EntryChunks
from sktensor_dp.queries.gradients import Jacobian

Z = 4.9  # two-sided 1e-6 point of the normal
SHAPE, PURE = (4, 6, 3), PrivacyCost(epsilon=0.9)


@pytest.fixture
def noise(seed: int) -> Iterator[NoiseSource]:
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        yield NoiseSource()


def curator(name: str, cost: PrivacyCost, n: int = 300) -> EntryCurator:
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.integers(0, size, n) for size in SHAPE])
    plan = ReleasePlan(1.0, 1e-6, (PlannedRelease(name, cost),))
    chunks = EntryChunks(X, rng.uniform(1, 5, n), SHAPE, (1.0, 5.0))
    return EntryCurator(chunks, plan, spender="test", unit="entry", accountant=None)


def test_rows_get_noise_independent_of_each_other(noise):
    """A correlation of 3 % between neighbouring norms of 30,000 fails."""
    norms = np.linalg.norm(spherical_laplace_rows(np.zeros((30_000, 3)), 0.4, 1.7, noise), axis=1)
    assert abs(np.corrcoef(norms[1:], norms[:-1])[0, 1]) < Z / math.sqrt(norms.size)


def test_rows_without_noise_are_returned(noise):
    rows = np.arange(6.0).reshape(2, 3)
    assert noise.spherical_laplace_rows(rows, math.inf) is rows


def test_purely_released_entries_have_the_variance_of_the_piecewise_law(noise):
    noisy = curator("entries", PURE, 3000).entries()
    truth = curator("entries", PrivacyCost(mu=math.inf), 3000).entries().value
    assert noisy.sigma == pytest.approx(4 * piecewise_deviation(0.9))
    variances = [16 * Piecewise(0.9).variance(x / 4) for x in truth]
    white = (noisy.value - truth) / np.sqrt(variances)
    assert abs((white**2).mean() - 1) < Z * math.sqrt(2 / truth.size)


@pytest.mark.parametrize("name", ["entries", "row_sums", "ridge_block", "entry_gradients"])
def test_a_pure_cost_selects_pure_laws_in_any_plan(name, noise):
    asked = curator(name, PURE)
    questions = {
        "entry_gradients": (Jacobian(asked.index_set, [np.ones((n, 1)) for n in SHAPE]),),
        "ridge_block": (0, np.ones((300, 1)), 1.0),
    }
    getattr(asked, name)(*questions.get(name, ()))
    (row,) = asked.report().rows
    assert row.mechanism == CATALOGUE[name].pure.name
    assert (row.epsilon, row.mu) == (0.9, 0.0)
