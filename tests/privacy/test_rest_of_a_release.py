"""What is left of a planned release pays for another one, once."""

import numpy as np
import pytest
from interrupting import Interrupted, Interrupting

from sktensor_dp import PrivacyLeakWarning, unsafe_seeded_noise
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.queries.slices import SharedRowSums, SliceChunks, UnitLevels


def curator(uses: int, mu: float, pure: float = 0.0) -> DataCurator:
    releases = (
        PlannedRelease("shared_row_sums", PrivacyCost(mu=0.3, epsilon=pure)),
        PlannedRelease("shared_factor_sums", PrivacyCost(mu=mu), uses),
    )
    chunks = SliceChunks(np.array([[0, 0]]), np.ones(1), (2, 3), 0, (-1.0, 1.0))
    plan = ReleasePlan(1.0, 1e-6, releases)
    # Draws that are rejected call functions again: as many for the same noise.
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(0):
        return DataCurator(chunks, plan, spender="test", unit="slice", accountant=None)


SUMS = SharedRowSums(1, (2, 3), 0.0, 1.0, 1.0)


def test_what_is_left_of_a_release_pays_for_another_once():
    with curator(4, 0.5) as opened:
        usual = opened.noisy("shared_row_sums", SUMS)
        rest = opened.noisy("shared_row_sums", SUMS, "shared_factor_sums")
        # Four parts of .5 are one of mu = 1.
        assert rest.sigma == pytest.approx(0.3 * usual.sigma)
        for spent in ("shared_factor_sums", "shared_row_sums"):
            with pytest.raises(RuntimeError, match="used up"):
                opened.noisy("shared_row_sums", SUMS, spent)
        with pytest.raises(RuntimeError, match="used up"):
            opened.noisy("shared_row_sums", SUMS)
        report = opened.report()
    whole = 0.3**2 + 4 * 0.5**2
    assert sum(row.uses * row.mu**2 for row in report.rows) == pytest.approx(whole)
    assert report.composition.unused == ()


def test_what_is_refused_or_interrupted_leaves_no_use_beside_the_plan():
    """A use that the rest would have paid for is not to be had at the usual, higher cost."""
    with curator(2, 0.1) as opened:
        opened.noisy("shared_row_sums", SUMS)
        with Interrupting() as seen:
            opened.noisy("shared_row_sums", SUMS, "shared_factor_sums")
    for place in range(len(seen.calls)):
        with curator(2, 0.1) as opened:
            opened.noisy("shared_row_sums", SUMS)
            with pytest.raises(Interrupted), Interrupting(place):
                opened.noisy("shared_row_sums", SUMS, "shared_factor_sums")
            with pytest.raises(RuntimeError, match="used up"):
                opened.noisy("shared_row_sums", SUMS)


def test_another_kind_of_query_or_of_noise_is_refused_before_it_is_answered():
    for opened, name, query in (
        (curator(2, 0.5, pure=0.1), "shared_row_sums", SUMS),
        (curator(0, 0.5), "shared_row_sums", SUMS),
        (curator(2, 0.5), "unit_levels", UnitLevels(1.0)),
        (curator(2, 0.5), "shared_row_sums", UnitLevels(1.0)),
    ):
        with pytest.raises(RuntimeError):
            opened.noisy(name, query, "shared_factor_sums")
        assert opened.report().rows == ()


@pytest.mark.parametrize(
    ("cost", "part"), [(PrivacyCost(mu=0.5), 3**-0.5), (PrivacyCost(epsilon=0.5), 1 / 3)]
)
def test_three_uses_that_are_left_pay_for_one_release_of_either_noise(cost, part):
    chunks = SliceChunks(np.array([[0, 0]]), np.ones(1), (2, 3), 0, (-1.0, 1.0))
    plan = ReleasePlan(9.0, 1e-6 * (cost.mu > 0), (PlannedRelease("unit_levels", cost, 4),))
    with DataCurator(chunks, plan, spender="test", unit="slice", accountant=None) as opened:
        usual = opened.noisy("unit_levels", UnitLevels(1.0))
        rest = opened.noisy("unit_levels", UnitLevels(1.0), "unit_levels")
        assert rest.sigma == pytest.approx(part * usual.sigma)
        with pytest.raises(RuntimeError, match="used up"):
            opened.noisy("unit_levels", UnitLevels(1.0))
        report = opened.report()
    assert report.epsilon == pytest.approx(plan.cost.epsilon_at(plan.delta))
    assert report.composition.epsilon_at(plan.delta) == pytest.approx(report.epsilon)
