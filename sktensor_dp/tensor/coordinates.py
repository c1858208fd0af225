"""Coordinates of symmetric matrices and tensors: how their unique entries are laid out."""

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Rows of a matrix that are packed at a time: the mask of one block of a
# 5000 x 5000 matrix then takes 0.6 MB, and stays in the cache.
_BLOCK_ROWS = 128


def as_float(values: ArrayLike) -> NDArray[Any]:
    """Array of floats: singles stay singles, all else becomes double."""
    array = np.asarray(values)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def as_cube(values: ArrayLike, name: str, orders: tuple[int, ...] | None) -> NDArray[Any]:
    """Array with modes of equal length; ``orders=None`` stands for 2 or more."""
    array = as_float(values)
    n_modes_fit = array.ndim >= 2 if orders is None else array.ndim in orders
    if not n_modes_fit or len(set(array.shape)) > 1:
        allowed = "2 or more" if orders is None else " or ".join(map(str, orders))
        raise ValueError(
            f"{name} must have {allowed} modes of equal length; got shape {array.shape}."
        )
    return array


def mirror_sorted(tensor: NDArray[Any]) -> NDArray[Any]:
    """Copy every entry from the one whose indices are sorted."""
    k = tensor.shape[0]
    if tensor.ndim == 2:
        return tensor  # a + b and b + a are the same number
    if tensor.ndim == 3:
        entries, _, positions = sorted_triples(k)
        return tensor.reshape(-1)[entries][positions].reshape(k, k, k)
    return tensor[tuple(np.sort(np.indices(tensor.shape), axis=0))]


def diagonal_positions(k: int) -> NDArray[np.int64]:
    """Where the diagonal is in the packed upper triangle."""
    rows = np.arange(k, dtype=np.int64)
    return rows * k - rows * (rows - 1) // 2


def _packed_blocks(k: int) -> Iterator[tuple[slice, slice, NDArray[np.bool_]]]:
    """Row blocks of the upper triangle: rows, packed positions, mask."""
    # A mask of one block at a time replaces index arrays, which at 16 bytes a coordinate would be
    # larger than the matrix.
    start = 0
    for first in range(0, k, _BLOCK_ROWS):
        last = min(first + _BLOCK_ROWS, k)
        mask = np.arange(first, k) >= np.arange(first, last)[:, None]
        size = (last - first) * (2 * k - first - last + 1) // 2
        yield slice(first, last), slice(start, start + size), mask
        start += size


def pack(matrix: NDArray[Any]) -> NDArray[Any]:
    """Upper triangle, row by row."""
    k = matrix.shape[0]
    packed = np.empty(k * (k + 1) // 2, dtype=matrix.dtype)
    for rows, positions, mask in _packed_blocks(k):
        packed[positions] = matrix[rows, rows.start :][mask]
    return packed


def unpack(packed: NDArray[Any], k: int) -> NDArray[Any]:
    """Symmetric matrix with the given upper triangle."""
    matrix = np.empty((k, k), dtype=packed.dtype)
    for rows, positions, mask in _packed_blocks(k):
        matrix[rows, rows.start :][mask] = packed[positions]
        corner = matrix[rows, rows]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T
        matrix[rows.stop :, rows] = matrix[rows, rows.stop :].T
    return matrix


@lru_cache(maxsize=8)
def sorted_triples(
    k: int,
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.intp]]:
    """Flat positions of i <= j <= l, root multiplicities, and the way back."""
    axis = np.arange(k, dtype=np.intp)
    ordered = (axis[:, None, None] <= axis[:, None]) & (axis[:, None] <= axis)
    first, second, third = np.nonzero(ordered)
    n_equal = (first == second).astype(np.intp) + (second == third)
    multiplicity_roots = np.sqrt(np.array([6.0, 3.0, 1.0]))[n_equal]
    positions = np.empty((k, k, k), dtype=np.intp)
    for a, b, c in permutations((first, second, third)):
        positions[a, b, c] = np.arange(first.size)
    entries = (first * k + second) * k + third
    cached = (entries, multiplicity_roots, positions.reshape(-1))
    for array in cached:
        array.flags.writeable = False
    return cached


def n_unique(k: int, order: int) -> int:
    """Dimension of the space of symmetric tensors, C(k + order - 1, order).

    Parameters
    ----------
    k : int
        Length of each mode, at least 1.
    order : int
        Number of modes, at least 1.

    Returns
    -------
    int
        Number of entries that determine a symmetric tensor.

    Examples
    --------
    >>> from sktensor_dp.tensor import n_unique
    >>> n_unique(10, 2), n_unique(10, 3)
    (55, 220)
    """
    return math.comb(k + order - 1, order)


def symmetric_to_coordinates(T: ArrayLike) -> NDArray[Any]:
    """Orthonormal coordinates of a symmetric matrix or third-order tensor.

    They are the unique entries, in lexicographic order of their sorted
    indices, times the square root of how often each occurs: sqrt 2 off the
    diagonal of a matrix; sqrt 3 (two equal indices) and sqrt 6 (none) in a
    tensor. Hence the Euclidean norm of the coordinates is the Frobenius norm
    of `T`, and i.i.d. Gaussian coordinates are an isotropic symmetric tensor.

    Parameters
    ----------
    T : array-like of shape (k, k) or (k, k, k)
        Symmetric. Only entries with sorted indices are read.

    Returns
    -------
    ndarray of shape (n_unique(k, order),)
        float32 stays float32, integers become float64.

    Raises
    ------
    ValueError
        If the order is not 2 or 3, or the modes differ in length.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor import symmetric_to_coordinates
    >>> A = np.array([[3.0, 2.0], [2.0, 0.0]])
    >>> c = symmetric_to_coordinates(A)
    >>> c.round(3)
    array([3.   , 2.828, 0.   ])
    >>> bool(np.isclose(np.linalg.norm(c), np.linalg.norm(A)))
    True
    """
    tensor = as_cube(T, "T", orders=(2, 3))
    k = tensor.shape[0]
    if tensor.ndim == 2:
        coordinates = pack(tensor)
        coordinates *= math.sqrt(2.0)
        coordinates[diagonal_positions(k)] = np.diagonal(tensor)
        return coordinates
    entries, multiplicity_roots, _ = sorted_triples(k)
    coordinates = tensor.reshape(-1)[entries]
    coordinates *= multiplicity_roots
    return coordinates


def coordinates_to_symmetric(c: ArrayLike, k: int, order: int) -> NDArray[Any]:
    """Symmetric matrix or tensor with the given orthonormal coordinates.

    The inverse of `symmetric_to_coordinates`.

    Parameters
    ----------
    c : array-like of shape (n_unique(k, order),)
        Coordinates.
    k : int
        Length of each mode.
    order : {2, 3}
        Number of modes.

    Returns
    -------
    ndarray of shape (k, k) or (k, k, k)
        Symmetric to the last bit. float32 stays float32, integers become
        float64.

    Raises
    ------
    ValueError
        If `order` is neither 2 nor 3, or `c` has another length.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor import coordinates_to_symmetric
    >>> coordinates_to_symmetric([3.0, 2.0 * np.sqrt(2.0), 0.0], 2, 2)
    array([[3., 2.],
           [2., 0.]])
    """
    if order not in (2, 3):
        raise ValueError(f"order must be 2 or 3; got {order}.")
    coordinates = as_float(c)
    if coordinates.shape != (n_unique(k, order),):
        raise ValueError(
            f"c must have shape ({n_unique(k, order)},) for k={k} and order={order}; "
            f"got shape {coordinates.shape}."
        )
    if order == 2:
        matrix = unpack(coordinates, k)
        matrix /= math.sqrt(2.0)
        np.fill_diagonal(matrix, coordinates[diagonal_positions(k)])
        return matrix
    _, multiplicity_roots, positions = sorted_triples(k)
    values = coordinates / multiplicity_roots
    return values.astype(coordinates.dtype, copy=False)[positions].reshape(k, k, k)
