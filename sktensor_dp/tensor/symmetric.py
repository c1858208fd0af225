"""Symmetric matrices and tensors: coordinates of unique entries, products, views."""

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.tensor.arrays import Floats, spans
from sktensor_dp.tensor.oracle import check_at_least, check_components, check_finite, check_shape

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
    """Positions of the diagonal in the packed upper triangle."""
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


def symmetrize(T: ArrayLike) -> NDArray[Any]:
    """Average of a tensor over all permutations of its modes.

    It is the orthogonal projection (in the Frobenius norm) on the symmetric
    tensors.

    Parameters
    ----------
    T : array-like of shape (k, ..., k)
        Dense tensor of order 2 or more with modes of equal length. The cost
        grows with the factorial of the order.

    Returns
    -------
    ndarray of the shape of `T`
        Symmetric to the last bit. float32 stays float32, integers become
        float64.

    Raises
    ------
    ValueError
        If the order is below 2, or the modes differ in length.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.symmetric import symmetrize
    >>> symmetrize([[1.0, 4.0], [0.0, 3.0]])
    array([[1., 2.],
           [2., 3.]])
    """
    tensor = as_cube(T, "T", orders=None)
    total = np.zeros_like(tensor)
    for axes in permutations(range(tensor.ndim)):
        total += tensor.transpose(axes)
    total /= math.factorial(tensor.ndim)
    # Sums of the same numbers in another order differ in their last bits.
    return mirror_sorted(total)


def multilinear(T: ArrayLike, A: ArrayLike) -> NDArray[Any]:
    """Multilinear form T(A, A, A) of a symmetric third-order tensor.

    Its entry (a, b, c) is the sum over i, j, l of
    T[i, j, l] A[i, a] A[j, b] A[l, c].

    Parameters
    ----------
    T : array-like of shape (k, k, k)
        Symmetric tensor.
    A : array-like of shape (k, m)
        The same matrix for every mode.

    Returns
    -------
    ndarray of shape (m, m, m)
        Symmetric up to rounding.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.symmetric import multilinear
    >>> float(multilinear(np.ones((2, 2, 2)), np.ones((2, 1)))[0, 0, 0])
    8.0
    """
    tensor = as_cube(T, "T", orders=(3,))
    matrix = as_float(A)
    k = tensor.shape[0]
    if matrix.ndim != 2 or matrix.shape[0] != k:
        raise ValueError(f"A must have shape ({k}, m); got shape {matrix.shape}.")
    first = matrix.T @ tensor.reshape(k, k * k)
    product: NDArray[Any] = matrix.T @ (first.reshape(-1, k, k) @ matrix)
    return product


def symmetric_outer_sum(weights: ArrayLike, V: ArrayLike, order: int = 3) -> NDArray[Any]:
    """Symmetric tensor sum_j weights[j] v_j (x) ... (x) v_j.

    Parameters
    ----------
    weights : array-like of shape (n,)
        Weights, of any sign.
    V : array-like of shape (n, k)
        The vectors v_j as rows.
    order : int, default=3
        Number of modes, at least 2.

    Returns
    -------
    ndarray of shape (k, ..., k)
        Symmetric up to rounding.

    Raises
    ------
    ValueError
        If the shapes do not fit or `order` is below 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.symmetric import symmetric_outer_sum
    >>> T = symmetric_outer_sum([2.0, 5.0], np.eye(2))
    >>> float(T[0, 0, 0]), float(T[1, 1, 1]), float(T[0, 1, 1])
    (2.0, 5.0, 0.0)
    """
    w, vectors = as_float(weights), as_float(V)
    if vectors.ndim != 2 or w.shape != vectors.shape[:1]:
        raise ValueError(
            f"weights and V must have shapes (n,) and (n, k); got {w.shape} and {vectors.shape}."
        )
    check_at_least(2, order=order)
    n, k = vectors.shape
    total = np.zeros((k, k ** (order - 1)), dtype=np.result_type(w, vectors))
    for rows in spans(n, k ** (order - 1), caches=8):
        block = vectors[rows]
        products = block
        for _ in range(order - 2):
            products = (products[:, :, None] * block[:, None, :]).reshape(len(block), -1)
        total += (block * w[rows, None]).T @ products
    return total.reshape((k,) * order)


def symmetric_product(A: ArrayLike, v: ArrayLike) -> NDArray[Any]:
    """Sum of the three placements of a vector beside a symmetric matrix.

    S3(A, v)[i, j, l] = A[i, j] v[l] + A[i, l] v[j] + A[j, l] v[i]: the term
    by which the third moments of latent Dirichlet allocation are corrected.

    Parameters
    ----------
    A : array-like of shape (k, k)
        Symmetric matrix.
    v : array-like of shape (k,)
        Vector.

    Returns
    -------
    ndarray of shape (k, k, k)
        Symmetric up to rounding.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.symmetric import symmetric_product
    >>> float(symmetric_product(np.eye(2), [1.0, 0.0])[0, 0, 0])
    3.0
    """
    matrix, vector = as_cube(A, "A", orders=(2,)), as_float(v)
    check_shape("v", vector, len(matrix))
    product = matrix[:, :, None] * vector
    product = product + matrix[:, None, :] * vector[:, None]
    product += vector[:, None, None] * matrix
    return product


def symmetrize_views(
    T: ArrayLike, M12: ArrayLike, M13: ArrayLike, M23: ArrayLike, n_components: int
) -> tuple[Floats, Floats]:
    """Symmetric moments in the space of the third of three views.

    Where views x1, x2, x3 are conditionally independent given a latent class
    h, and E[x_t | h = j] = mu_tj, the first two are mapped to the space of the
    third, x1 -> E[x3 x2'] E[x1 x2']^+ x1 and x2 -> E[x3 x1'] E[x2 x1']^+ x2,
    which takes mu_1j and mu_2j to mu_3j. Then, with w_j = P(h = j),

        M2 = sum_j w_j mu_3j (x) mu_3j,  M3 = sum_j w_j mu_3j (x) mu_3j (x) mu_3j.

    Parameters
    ----------
    T : array-like of shape (d1, d2, d3)
        E[x1 (x) x2 (x) x3].
    M12 : array-like of shape (d1, d2)
        E[x1 x2'], the moment that is inverted.
    M13 : array-like of shape (d1, d3)
        E[x1 x3'].
    M23 : array-like of shape (d2, d3)
        E[x2 x3'].
    n_components : int
        Number k of classes: the rank of the pseudo-inverse, at most d1, d2, d3.
        The conditional means of every view must be linearly independent.

    Returns
    -------
    M2 : ndarray of shape (d3, d3)
        Symmetric, to be whitened.
    M3 : ndarray of shape (d3, d3, d3)
        Symmetric. Of estimated moments both are averaged over permutations of
        their modes.

    Raises
    ------
    ValueError
        If a shape or `n_components` is invalid, a number is not finite, or the
        rank of `M12` is below `n_components`.

    References
    ----------
    A. Anandkumar, R. Ge, D. Hsu, S. M. Kakade, M. Telgarsky, "Tensor
    decompositions for learning latent variable models", JMLR 15, 2014,
    Theorem 3.6.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.symmetric import symmetrize_views
    >>> w, A, B, C = np.array([0.4, 0.6]), np.eye(3)[:2], np.eye(2), np.array([[1.0, 0], [0.5, 1]])
    >>> T = np.einsum("j,ja,jb,jc->abc", w, A, B, C)
    >>> pairs = [(P.T * w) @ Q for P, Q in ((A, B), (A, C), (B, C))]
    >>> M2, M3 = symmetrize_views(T, *pairs, n_components=2)
    >>> np.allclose(M2, (C.T * w) @ C)
    True
    """
    tensor = np.asarray(T, dtype=np.float64)
    pairs = [np.asarray(M, dtype=np.float64) for M in (M12, M13, M23)]
    if tensor.ndim != 3:
        raise ValueError(f"T must have shape (d1, d2, d3); got shape {tensor.shape}.")
    for name, modes, M in zip(("M12", "M13", "M23"), ((0, 1), (0, 2), (1, 2)), pairs, strict=True):
        check_shape(name, M, *(tensor.shape[mode] for mode in modes))
    check_finite("moments", tensor, *pairs)
    check_components(n_components, min(tensor.shape))
    m12, m13, m23 = pairs
    inverse = _pseudo_inverse(m12, n_components)
    from_first, from_second = m23.T @ inverse, m13.T @ inverse.T
    M3 = np.einsum("abc,ia,jb->ijc", tensor, from_first, from_second, optimize=True)
    return symmetrize(from_first @ m12 @ from_second.T), symmetrize(M3)


def _pseudo_inverse(M: Floats, rank: int) -> Floats:
    """Moore-Penrose inverse of the best approximation of the given rank."""
    left, singular, right = np.linalg.svd(M, full_matrices=False)
    if singular[rank - 1] <= max(M.shape) * np.finfo(float).eps * singular[0]:
        raise ValueError(f"M12 must have rank n_components = {rank} or more; its rank is lower.")
    return np.asarray((right[:rank].T / singular[:rank]) @ left[:, :rank].T)
