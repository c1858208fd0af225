"""What is left of a planned release pays for another one, once."""

import numpy as np
import pytest
from interrupting import Interrupted, Interrupting

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
    return DataCurator(chunks, plan, spender="test", unit="slice", accountant=None)


SUMS = SharedRowSums(1, (2, 3), 0.0, 1.0, 1.0)
RESTS = ("shared_row_sums", "shared_factor_sums")


def test_what_is_left_of_a_release_pays_for_another_once():
    with curator(4, 0.5) as opened:
        usual = opened.noisy("shared_row_sums", SUMS)
        rest = opened.noisy_with_rest("shared_row_sums", "shared_factor_sums", SUMS)
        # Four parts of .5 are one of mu = 1.
        assert rest.sigma == pytest.approx(0.3 * usual.sigma)
        for spent in ("shared_factor_sums", "shared_row_sums"):
            with pytest.raises(RuntimeError, match="nothing is left"):
                opened.noisy_with_rest("shared_row_sums", spent, SUMS)
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
            opened.noisy_with_rest(*RESTS, SUMS)
    for place in range(len(seen.calls)):
        with curator(2, 0.1) as opened:
            opened.noisy("shared_row_sums", SUMS)
            with pytest.raises(Interrupted), Interrupting(place):
                opened.noisy_with_rest(*RESTS, SUMS)
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
            opened.noisy_with_rest(name, "shared_factor_sums", query)
        assert opened.report().rows == ()
