"""Oracles: a symmetric tensor known through its answers T(I, u, u)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Floats", "Oracle", "tensor_oracle"]

Floats = NDArray[np.float64]
Oracle = Callable[[Floats], Floats]

# A weight below this share of the largest is rounding, not a component.
NULL_WEIGHT = 1e-12

# Largest Khatri-Rao product formed at once, in numbers (32 MB of float64).
_BLOCK_NUMBERS = 2**22


def tensor_oracle(T: ArrayLike) -> Oracle:
    """Oracle of a dense symmetric tensor.

    Parameters
    ----------
    T : array-like of shape (k, k, k)
        Symmetric tensor. It is not copied if it is a float64 array.

    Returns
    -------
    callable
        Maps U of shape (k, L) to the (k, L) array of T(I, u, u) for the
        columns u of U, by one matrix product with their Khatri-Rao squares.

    Raises
    ------
    ValueError
        If `T` does not have three modes of equal length, or is not finite.

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
    if tensor.ndim != 3 or len(set(tensor.shape)) > 1 or tensor.size == 0:
        raise ValueError(f"T must have shape (k, k, k), k >= 1; got shape {tensor.shape}.")
    if not np.isfinite(tensor).all():
        raise ValueError("T must be finite; it holds NaN or infinity.")
    k = tensor.shape[0]
    flat = tensor.reshape(k, k * k)
    step = max(1, _BLOCK_NUMBERS // (k * k))

    def contract(U: Floats) -> Floats:
        answer = np.empty(U.shape)
        for start in range(0, U.shape[1], step):
            block = U[:, start : start + step]
            pairs = (block[:, None, :] * block).reshape(k * k, -1)
            answer[:, start : start + step] = flat @ pairs
        return answer

    return contract


def resolve(T: ArrayLike | Oracle, dim: int | None, n_components: int) -> tuple[Oracle, int]:
    """Oracle and mode length of a tensor given in either form."""
    if callable(T):
        if dim is None:
            raise ValueError("dim, the length of a mode, is required when T is an oracle.")
        oracle, k = T, int(dim)
    else:
        oracle, k = tensor_oracle(T), np.shape(T)[0]
        if dim not in (None, k):
            raise ValueError(f"dim must be {k}, the length of the modes of T; got {dim}.")
    if not 1 <= n_components <= k:
        raise ValueError(f"n_components must be between 1 and {k}; got {n_components}.")
    return oracle, k


def check_counts(*, n_restarts: int, max_iter: int) -> None:
    if n_restarts < 1:
        raise ValueError(f"n_restarts must be at least 1; got {n_restarts}.")
    if max_iter < 1:
        raise ValueError(f"max_iter must be at least 1; got {max_iter}.")
