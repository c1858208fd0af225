"""NaN is no more than any limit: each place that clips has to see to it by itself."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from sktensor_dp.data.counts import CountChunk, as_counts
from sktensor_dp.data.samples import SampleChunk
from sktensor_dp.data.units import scale_to
from sktensor_dp.queries.clips import Clip, document_weights
from sktensor_dp.queries.expected_counts import ExpectedCounts

ROWS = np.array([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 2.0, 5.0]])
NORMS = np.array([math.nan, math.inf, 0.0, 1.0, 4.0])


@dataclass(frozen=True)
class NoNorm:
    """Of which two are not finite."""

    def of(self, chunk):
        return NORMS


def test_what_has_no_norm_is_scaled_to_nothing():
    np.testing.assert_array_equal(scale_to(NORMS, 2.0), [0, 0, 1, 1, 0.5])
    np.testing.assert_array_equal(scale_to(NORMS, math.inf), np.ones(5))
    chunk = CountChunk(as_counts(np.ones((5, 3))))
    found = document_weights(chunk, [Clip(NoNorm(), 2.0), Clip(NoNorm(), 3.0)])
    np.testing.assert_array_equal(found, [0, 0, 1, 1, 0.5])


def test_samples_without_a_norm_are_scaled_to_nothing():
    chunk = SampleChunk(np.array([[math.nan, 1.0], [math.inf, 1.0], [3.0, 4.0]]))
    np.testing.assert_allclose(chunk.scales(2.5), [0, 0, 0.5], rtol=1e-3)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("prior", [3.4e38, 3.5e38, math.inf, math.nan])
def test_a_document_that_is_not_finite_adds_nothing(prior, order):
    """Past the check of the query, as its numbers would be after a change of it."""
    topics = np.array([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
    with pytest.raises(ValueError, match="the prior must hold numbers from 0"):
        ExpectedCounts(topics, np.full(2, prior), False, 1.0, order)
    query = ExpectedCounts(topics, np.ones(2), False, 1.0, order)
    object.__setattr__(query, "prior", np.full(2, prior))
    with np.errstate(all="ignore"):
        found = [query.total(CountChunk(as_counts(row[None, :]))) for row in ROWS]
        together = query.total(CountChunk(as_counts(ROWS)))
    for one in found:
        assert np.isfinite(one).all()
        assert np.linalg.norm(np.ravel(one), order) <= 1.0
    np.testing.assert_allclose(together, sum(found), rtol=1e-6)
