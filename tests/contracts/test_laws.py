"""Noise has the law that its row states, and no other."""

import numpy as np
import pytest
from contracts import rows_of_claims
from contracts.rows_of_claims import PURE
from contracts.rows_of_laws import ROWS, fits, lies_on

from sktensor_dp import PrivacyLeakWarning, unsafe_seeded_noise
from sktensor_dp.privacy.catalogue import CATALOGUE
from sktensor_dp.queries.laws import PIECEWISE

# A law in one dimension takes as many draws one by one; others are drawn by day at other numbers.
SLOW = {
    "spherical laplace, 1 of 3 dimensions", "spherical laplace, 30 of 60 dimensions",
    "gaussian pair masses, weight 1", "laplace pair masses, weight 1",
}  # fmt: skip
AT_NIGHT = [pytest.param(row, marks=[pytest.mark.nightly] * (row.name in SLOW)) for row in ROWS]


@pytest.mark.parametrize("row", AT_NIGHT, ids=[row.name for row in ROWS])
def test_noise_has_its_law_and_neither_scale_nor_multiplicity_of_another(row, seed):
    """Kolmogorov-Smirnov, mean and mean modulus at 1e-6; a scale wrong by 5 % fails both ways."""
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        found = row.draw(seed)
    for name, (samples, law) in found.items():
        assert fits(samples, law), name
        if not name.startswith("cosine"):  # directions have no scale
            assert not fits(samples * 1.05, law), name
            assert not fits(samples / 1.05, law), name
        # Entries of one class do not have the noise of another one of the same array.
        for other, (_, wrong) in found.items():
            alike = "cosine" in other or abs(wrong.std() / law.std() - 1) < 1e-9
            assert alike or not fits(samples, wrong), (name, other)
    if row.step is not None:
        noise, step = found["noise"][0], row.step()
        assert lies_on(noise, step)
        assert not lies_on(noise, 1.5 * step)
        assert not np.array_equal(noise, np.rint(noise / (4 * step)) * 4 * step)


CLAIMS = [pytest.param(row, cost, id=f"{row.name}, {'pure' if cost.epsilon else 'gaussian'}")
          for row in rows_of_claims.ROWS for cost in row.costs]  # fmt: skip


@pytest.mark.parametrize(("row", "cost"), CLAIMS)
def test_answers_claim_the_covariance_of_their_noise(row, cost):
    found, claimed = row.covariances(cost)
    largest = np.abs(claimed).max()
    # Means over units are taken and undone, which rounds.
    np.testing.assert_allclose(found, claimed, rtol=1e-6, atol=1e-6 * largest)


def test_every_release_on_values_of_tensors_has_a_claim():
    asked = {n for n, one in CATALOGUE.items() if one.query.family in ("entries", "persons")}
    assert {row.release for row in rows_of_claims.ROWS} == asked
    for row in rows_of_claims.ROWS:
        pure = [law for law in CATALOGUE[row.release].query.laws if law.pure]
        assert (PURE in row.costs) == (pure not in ([], [PIECEWISE]))
