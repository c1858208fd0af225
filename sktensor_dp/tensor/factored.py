"""Oracles of symmetric tensors that are never formed."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.tensor.blocks import spans
from sktensor_dp.tensor.oracle import Floats, Oracle, check_at_least, check_finite, check_shape


def cp_oracle(weights: ArrayLike, factors: ArrayLike, order: int = 3) -> Oracle:
    """Oracle of sum_j weights[j] v_j (x) ... (x) v_j.

    Parameters
    ----------
    weights : array-like of shape (n,)
        Weights, of any sign.
    factors : array-like of shape (n, d)
        The vectors v_j as rows, of any length.
    order : int, default=3
        Number of modes, at least 2.

    Returns
    -------
    callable
        Maps U of shape (d, L) to the (d, L) array of T(I, u, ..., u) for the
        columns u of U, at a cost of 2 n d L multiplications.

    Raises
    ------
    ValueError
        If the shapes do not fit, `order` is below 2, or a number is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.factored import cp_oracle
    >>> cp_oracle([2.0, 5.0], np.eye(2))(np.array([[1.0], [0.1]]))
    array([[2.  ],
           [0.05]])
    """
    w, vectors = np.asarray(weights, dtype=np.float64), np.asarray(factors, dtype=np.float64)
    check_at_least(2, order=order)
    if vectors.ndim != 2 or w.shape != vectors.shape[:1]:
        raise ValueError(
            "weights and factors must have shapes (n,) and (n, d); "
            f"got {w.shape} and {vectors.shape}."
        )
    check_finite("weights and factors", w, vectors)

    def contract(U: Floats) -> Floats:
        return vectors.T @ (w[:, None] * (vectors @ U) ** (order - 1))

    return contract


def moment_oracle(X: Any, sample_weight: ArrayLike | None = None, order: int = 3) -> Oracle:
    """Oracle of the empirical moment (1/n) sum_i w_i x_i (x) ... (x) x_i.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Samples x_i as rows. A CSR matrix or a float64 array is not copied.
    sample_weight : array-like of shape (n,), optional
        The w_i, by default 1. They are not normalised: the sum is divided by n.
    order : int, default=3
        Number of modes, at least 2.

    Returns
    -------
    callable
        Maps U of shape (d, L) to the (d, L) array of T(I, u, ..., u) for the
        columns u of U, at a cost of two multiplications per non-zero entry of
        `X` and column. Beside the answer it holds one block of rows and its
        inner products, 4 MB, at a time.

    Raises
    ------
    ValueError
        If the shapes do not fit, there are no samples, `order` is below 2, or a
        number is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> from sktensor_dp.tensor.factored import moment_oracle
    >>> X = scipy.sparse.csr_matrix([[2.0, 0.0], [0.0, 1.0]])
    >>> moment_oracle(X)(np.array([[1.0], [1.0]]))
    array([[4. ],
           [0.5]])
    """
    check_at_least(2, order=order)
    sparse = scipy.sparse.issparse(X)
    rows = X.tocsr() if sparse else np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] == 0:
        raise ValueError(f"X must have shape (n, d), n >= 1; got shape {rows.shape}.")
    n, d = rows.shape
    weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    check_shape("sample_weight", weights, n)
    check_finite("X and sample_weight", rows.data if sparse else rows, weights)
    scaled: NDArray[np.float64] = weights[:, None] / n

    def contract(U: Floats) -> Floats:
        answer = np.zeros((d, U.shape[1]))
        for span in spans(n, U.shape[1]):
            # The whole matrix is not sliced: a slice of a sparse one is a copy.
            block = rows if span.stop >= n and not span.start else rows[span]
            products = (block @ U) ** (order - 1)
            products *= scaled[span]
            answer += block.T @ products
        return answer

    return contract
