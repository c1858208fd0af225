"""Oracles: a symmetric tensor known through its answers T(I, u, ..., u), formed or factored."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.tensor.arrays import Floats, spans

Oracle = Callable[[Floats], Floats]

# A weight below this share of the largest is rounding, not a component.
NULL_WEIGHT = 1e-12


# From this length of a mode on, reading half of the tensor pays for the loop.
HALVED_FROM = 64

# BLAS reads T as fast as memory allows for one column, and first rearranges it
# for more: up to this many columns it is quicker to read it for each.
_FEW_COLUMNS = 2

# More columns at once are no faster, and leave less of T for the cache.
_MANY_COLUMNS = 32

# Products of one block that stay in a second-level cache, in numbers.
_CACHED_NUMBERS = 2**15


def tensor_oracle(T: ArrayLike) -> Oracle:
    """Oracle of a dense symmetric tensor.

    Parameters
    ----------
    T : array-like of shape (k, ..., k)
        Symmetric tensor of order 3 or more, which is not checked: of a tensor
        that is not symmetric the answers mean nothing (see `symmetrize`). It is
        not copied if it is a float64 array.

    Returns
    -------
    callable
        Maps U of shape (k, L) to the (k, L) array of T(I, u, ..., u) for the
        columns u of U.

    Raises
    ------
    ValueError
        If `T` does not have three or more modes of equal length, or is not
        finite.

    Notes
    -----
    Third-order tensors of at least 64 rows are read by half: of the slices
    T[j] only the rows from a multiple of the block size up to j on, since
    T[j, l] = T[l, j].

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.oracle import tensor_oracle
    >>> T = np.zeros((2, 2, 2))
    >>> T[0, 0, 0] = 4.0
    >>> tensor_oracle(T)(np.array([[0.5], [1.0]]))
    array([[1.],
           [0.]])
    """
    tensor = np.asarray(T, dtype=np.float64)
    if tensor.ndim < 3 or len(set(tensor.shape)) > 1 or tensor.size == 0:
        raise ValueError(
            "T must have shape (k, k, k), k >= 1, or more modes of equal length; "
            f"got shape {tensor.shape}."
        )
    check_finite("T", tensor)
    k, order = tensor.shape[0], tensor.ndim
    if order == 3 and k >= HALVED_FROM:
        return lambda U: _contract_by_half(tensor, U)
    flat = tensor.reshape(k, -1)

    def contract(U: Floats) -> Floats:
        answer = np.empty(U.shape)
        for columns in spans(U.shape[1], k ** (order - 1), caches=8):
            block = U[:, columns]
            products = block
            for _ in range(order - 2):
                products = (products[:, None, :] * block).reshape(-1, block.shape[1])
            answer[:, columns] = flat @ products
        return answer

    return contract


def _contract_by_half(tensor: Floats, U: Floats) -> Floats:
    width = 1 if U.shape[1] <= _FEW_COLUMNS else _MANY_COLUMNS
    answer = np.empty(U.shape)
    for start in range(0, U.shape[1], width):
        columns = slice(start, start + width)
        answer[:, columns] = _contract_half(tensor, U[:, columns])
    return answer


def _contract_half(tensor: Floats, U: Floats) -> Floats:
    """T(I, u, u) from the slices T[j, l:] with l <= j, each used for (j, l) and (l, j)."""
    k, n_columns = U.shape
    columns = np.ascontiguousarray(U.T)
    answer = np.zeros((n_columns, k))
    size = max(1, min(k // 4, _CACHED_NUMBERS // max(1, k * n_columns)))
    for first in range(0, k, size):
        last = min(first + size, k)
        below = tensor[first:last, first:].transpose(0, 2, 1)
        marginals = np.matmul(columns, below)  # T(e_j, e_l, u), of shape (j, column, l)
        answer[:, first:last] += np.einsum("jcl,cl->cj", marginals, columns[:, first:])
        answer[:, last:] += np.einsum(
            "jcl,cj->cl", marginals[:, :, last - first :], columns[:, first:last]
        )
    return answer.T


def resolve(
    T: ArrayLike | Oracle, dim: int | None, n_components: int, order: int | None = None
) -> tuple[Oracle, int, int]:
    """Oracle, mode length and order of a tensor given in either form."""
    if callable(T):
        if dim is None:
            raise ValueError("dim, the length of a mode, is required when T is an oracle.")
        oracle, k, n_modes = T, int(dim), 3 if order is None else int(order)
        check_at_least(3, order=n_modes)
    else:
        oracle, k, n_modes = tensor_oracle(T), np.shape(T)[0], np.ndim(T)
        if dim not in (None, k):
            raise ValueError(f"dim must be {k}, the length of the modes of T; got {dim}.")
        if order not in (None, n_modes):
            raise ValueError(f"order must be {n_modes}, the number of modes of T; got {order}.")
    check_components(n_components, k)
    return oracle, k, n_modes


def check_at_least(least: float, **numbers: float) -> None:
    """Refuse numbers that are less, or NaN."""
    for name, number in numbers.items():
        if not number >= least:
            raise ValueError(f"{name} must be at least {least}; got {number}.")


def check_components(n_components: int, most: int) -> None:
    """Refuse as many components as a space has no room for."""
    if not 1 <= n_components <= most:
        raise ValueError(f"n_components must be between 1 and {most}; got {n_components}.")


def check_shape(name: str, array: Any, *shape: int) -> None:
    """Refuse an array of another shape."""
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}; got shape {array.shape}.")


def check_finite(name: str, *arrays: Any) -> None:
    """Refuse arrays that hold something else than numbers."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError(f"{name} must be finite, without NaN or infinity.")


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
    >>> from sktensor_dp.tensor.oracle import cp_oracle
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
    >>> from sktensor_dp.tensor.oracle import moment_oracle
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
