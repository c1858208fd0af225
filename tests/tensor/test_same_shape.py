"""Matrices of the shape of others are what a constructor would have made."""

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.tensor.arrays import of_same_shape


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_they_are_those_of_a_constructor(kind, index, seed):
    rng = np.random.default_rng(seed)
    X = kind(sp.random(20, 9, 0.4, "csr", random_state=rng))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    before = [X.data.copy(), X.indices.copy(), X.indptr.copy()]
    chosen = rng.random(X.nnz) < 0.5
    ends = np.concatenate([[0], np.cumsum(chosen)])[X.indptr]
    layout = X.data[chosen].astype(np.float32), X.indices[chosen], ends
    for found, expected in [
        (of_same_shape(X, *layout), kind(layout, X.shape)),
        (of_same_shape(X, 2 * X.data), 2 * X),
    ]:
        assert type(found) is type(expected)
        assert found.dtype == expected.dtype
        assert found.indices.dtype == found.indptr.dtype == index
        found.check_format(full_check=True)
        assert found.has_canonical_format
        assert np.array_equal(found.toarray(), expected.toarray())
        assert np.array_equal((found.T @ np.ones(20)), expected.T @ np.ones(20))
        assert np.array_equal(found[::-1].toarray(), expected.toarray()[::-1])
    for own, was in zip([X.data, X.indices, X.indptr], before, strict=True):
        assert np.array_equal(own, was)
