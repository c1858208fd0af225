"""Products with a transposed sparse matrix are added where they belong."""

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.tensor import added_products
from sktensor_dp.tensor.added_products import add_transposed_product


def factors(seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = sp.random(30, 12, 0.3, format="csr", random_state=seed)
    return X.astype(dtype), rng.standard_normal((30, 4)), rng.standard_normal((12, 4))


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("places", [np.int32, np.int64])
def test_the_product_is_added_in_place(form, places, seed):
    X, Y, total = factors(seed)
    X = form(X)
    X.indices, X.indptr = X.indices.astype(places), X.indptr.astype(places)
    expected = total + X.toarray().T @ Y
    add_transposed_product(X, Y, total)
    # Sums of 30 products of numbers near 1.
    np.testing.assert_allclose(total, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["other kernels", "whole counts", "order", "strides", "total"])
def test_what_the_kernel_does_not_take_is_added_all_the_same(kind, seed, monkeypatch):
    X, Y, total = factors(seed, np.int64 if kind == "whole counts" else np.float64)
    if kind == "other kernels":
        monkeypatch.setattr(added_products, "_kernels", None)
    elif kind == "order":
        Y = np.asfortranarray(Y)
    elif kind == "strides":
        Y = np.repeat(Y, 2, axis=1)[:, ::2]
    elif kind == "total":
        total = np.asfortranarray(total)
    expected = total + X.toarray().T @ Y
    add_transposed_product(X, Y, total)
    np.testing.assert_allclose(total, expected, rtol=0, atol=1e-12)


def test_no_rows_add_nothing():
    total = np.ones((5, 2))
    add_transposed_product(sp.csr_matrix((0, 5)), np.ones((0, 2)), total)
    np.testing.assert_array_equal(total, 1)
