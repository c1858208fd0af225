"""Symmetric matrices and tensors: coordinates of unique entries, products, contractions."""

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.tensor.arrays import Floats, blocks, check_finite, check_shape, spans

# Maps U of shape (k, L) to T(I, u, u) for the columns u of U, as an array (k, L): entry i is the
# sum over j and l of T[i, j, l] u[j] u[l].
Oracle = Callable[[Floats], Floats]

# Least length of a mode for which reading half of the tensor is faster.
HALVED_FROM = 64


def as_cube(values: ArrayLike, name: str, *orders: int) -> Floats:
    """Array of floats; ValueError unless it has one of these `orders`, and modes of one length."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim not in orders or len(set(array.shape)) > 1:
        raise ValueError(
            f"{name} must have {' or '.join(map(str, orders))} modes of equal length; "
            f"got shape {array.shape}."
        )
    return array


def diagonal_positions(k: int) -> NDArray[np.int64]:
    """Positions (k,) of the diagonal of a k x k matrix in its packed upper triangle."""
    rows = np.arange(k, dtype=np.int64)
    return rows * k - rows * (rows - 1) // 2


def _upper(k: int) -> NDArray[np.bool_]:
    """Mask of the entries on and above the diagonal of a k x k matrix."""
    return ~np.tri(k, k=-1, dtype=bool)


class SortedTriples(NamedTuple):
    """The n triples i <= j <= l below k."""

    entries: NDArray[np.intp]  # (n,): flat position of each in a cube
    multiplicity_roots: Floats  # (n,): root of how many entries of the cube have these indices
    positions: NDArray[np.intp]  # (k^3,): number of the triple of each entry of the cube


@lru_cache(maxsize=8)
def sorted_triples(k: int) -> SortedTriples:
    """Triples of a cube of k^3 entries, read-only."""
    axis = np.arange(k, dtype=np.intp)
    ordered = (axis[:, None, None] <= axis[:, None]) & (axis[:, None] <= axis)
    first, second, third = np.nonzero(ordered)
    n_equal = (first == second).astype(np.intp) + (second == third)
    multiplicity_roots = np.sqrt(np.array([6.0, 3.0, 1.0]))[n_equal]
    positions = np.empty((k, k, k), dtype=np.intp)
    for a, b, c in permutations((first, second, third)):
        positions[a, b, c] = np.arange(first.size)
    entries = (first * k + second) * k + third
    cached = SortedTriples(entries, multiplicity_roots, positions.reshape(-1))
    for array in cached:
        array.flags.writeable = False
    return cached


def n_unique(k: int, order: int) -> int:
    """Number of entries that determine a symmetric tensor, ``C(k + order - 1, order)``."""
    return math.comb(k + order - 1, order)


def symmetric_to_coordinates(T: ArrayLike) -> Floats:
    """Orthonormal coordinates: unique entries times the root of how often each occurs."""
    tensor = as_cube(T, "T", 2, 3)
    k = tensor.shape[0]
    if tensor.ndim == 2:
        coordinates = tensor[_upper(k)]
        coordinates *= math.sqrt(2.0)
        coordinates[diagonal_positions(k)] = np.diagonal(tensor)
        return coordinates
    triples = sorted_triples(k)
    coordinates = tensor.reshape(-1)[triples.entries]
    coordinates *= triples.multiplicity_roots
    return coordinates


def coordinates_to_symmetric(c: ArrayLike, k: int, order: int) -> Floats:
    """Symmetric matrix or tensor with the given coordinates, symmetric to the last bit."""
    coordinates = np.asarray(c, dtype=np.float64)
    check_shape("c", coordinates, n_unique(k, order))
    if order == 2:
        matrix, upper = np.empty((k, k)), _upper(k)
        matrix[upper] = matrix.T[upper] = coordinates
        matrix /= math.sqrt(2.0)
        np.fill_diagonal(matrix, coordinates[diagonal_positions(k)])
        return matrix
    triples = sorted_triples(k)
    return (coordinates / triples.multiplicity_roots)[triples.positions].reshape(k, k, k)


def symmetrize(T: ArrayLike) -> Floats:
    """Average of a matrix or cube over all orders of its modes, symmetric to the last bit.

    Parameters
    ----------
    T : array-like of shape (k, k) or (k, k, k)
        Tensor of any kind.

    Returns
    -------
    ndarray of the same shape
        The nearest symmetric tensor.

    Raises
    ------
    ValueError
        If `T` has another number of modes, or they differ in length.

    Examples
    --------
    >>> from sktensor_dp.tensor import symmetrize
    >>> symmetrize([[1.0, 4.0], [0.0, 3.0]])
    array([[1., 2.],
           [2., 3.]])
    """
    tensor = as_cube(T, "T", 2, 3)
    total = np.zeros_like(tensor)
    for axes in permutations(range(tensor.ndim)):
        total += tensor.transpose(axes)
    total /= math.factorial(tensor.ndim)
    if total.ndim == 2:
        return total  # a + b and b + a are the same number
    # Sums of three numbers in different orders may differ in the last bit, so each is computed
    # once.
    triples = sorted_triples(len(total))
    return total.reshape(-1)[triples.entries][triples.positions].reshape(total.shape)


def multilinear(T: ArrayLike, A: ArrayLike) -> Floats:
    """Multilinear form T(A, A, A) of a symmetric tensor: the sum of T_ijl A_ia A_jb A_lc."""
    tensor = as_cube(T, "T", 3)
    matrix = np.asarray(A, dtype=np.float64)
    k = tensor.shape[0]
    if matrix.ndim != 2 or matrix.shape[0] != k:
        raise ValueError(f"A must have shape ({k}, m); got shape {matrix.shape}.")
    first = matrix.T @ tensor.reshape(k, k * k)
    return np.asarray(matrix.T @ (first.reshape(-1, k, k) @ matrix))


def symmetric_outer_sum(weights: ArrayLike, V: ArrayLike) -> Floats:
    """Symmetric tensor sum_j weights[j] v_j (x) v_j (x) v_j.

    Parameters
    ----------
    weights : array-like of shape (n,)
        Weights, of any sign.
    V : array-like of shape (n, k)
        The vectors v_j as rows.

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
    >>> from sktensor_dp.tensor import symmetric_outer_sum
    >>> symmetric_outer_sum([2.0, 5.0], [[1.0], [1.0]])
    array([[[7.]]])
    """
    sizes, vectors = (np.asarray(array, dtype=np.float64) for array in (weights, V))
    if vectors.ndim != 2 or sizes.shape != vectors.shape[:1]:
        shapes = f"{sizes.shape} and {vectors.shape}"
        raise ValueError(f"weights and V must have shapes (n,) and (n, k); got {shapes}.")
    n, k = vectors.shape
    total = np.zeros((k, k**2))
    for rows in spans(n, k**2, caches=8):
        block = vectors[rows]
        pairs = (block[:, :, None] * block[:, None, :]).reshape(len(block), -1)
        total += (block * sizes[rows, None]).T @ pairs
    return total.reshape(k, k, k)


def symmetric_product(A: Floats, v: Floats) -> Floats:
    """Sum ``A[i, j] v[l] + A[i, l] v[j] + A[j, l] v[i]`` for a symmetric matrix and a vector."""
    product = A[:, :, None] * v
    product += A[:, None, :] * v[:, None]
    product += v[:, None, None] * A
    return product


def is_symmetric(tensor: Floats) -> bool:
    """True if a cube is the same for every order of its indices, up to rounding."""
    # Two transpositions generate all six permutations. Slices are compared, which stay in the
    # cache.
    gaps = (
        max(np.abs(part - part.T).max(), np.abs(part - tensor[:, place]).max())
        for place, part in enumerate(tensor)
    )
    return bool(max(gaps) <= 1e-8 * np.abs(tensor).max())


def tensor_oracle(T: ArrayLike) -> Oracle:
    """Function from U (k, L) to T(I, u, u) for its columns u; symmetry of T is not checked."""
    # From `HALVED_FROM` rows on about half of T is read.
    tensor = np.asarray(T, dtype=np.float64)
    if tensor.ndim != 3 or len(set(tensor.shape)) > 1 or tensor.size == 0:
        raise ValueError(f"T must have shape (k, k, k), k >= 1; got shape {tensor.shape}.")
    check_finite("T", tensor)
    k = len(tensor)

    def contract(U: Floats) -> Floats:
        answer = np.empty(U.shape)
        for columns in spans(U.shape[1], k**2, caches=8):
            block = U[:, columns]
            products = (block[:, None, :] * block).reshape(-1, block.shape[1])
            answer[:, columns] = tensor.reshape(k, -1) @ products
        return answer

    def contract_by_halves(U: Floats) -> Floats:
        # BLAS reads T at the speed of memory for one column, but rearranges it first for several:
        # take one or two columns one by one. More than 32 at once are no faster and leave less
        # cache for T.
        n_columns, answer = U.shape[1], np.empty(U.shape)
        for columns in blocks(n_columns, 1 if n_columns <= 2 else 32):
            answer[:, columns] = _contract_half(tensor, U[:, columns])
        return answer

    return contract if k < HALVED_FROM else contract_by_halves


def _contract_half(tensor: Floats, U: Floats) -> Floats:
    """T(I, u, u) from the fibres T[j, l] with l >= j, each used for (j, l) and (l, j)."""
    # Doubles of a block of products that stay in a second-level cache.
    cached_numbers = 2**15
    k, n_columns = U.shape
    columns = np.ascontiguousarray(U.T)
    answer = np.zeros((n_columns, k))
    # Blocks of a quarter of T at most: within a block both halves are read.
    size = max(1, min(k // 4, cached_numbers // max(1, k * n_columns)))
    for first in range(0, k, size):
        last = min(first + size, k)
        below = tensor[first:last, first:].transpose(0, 2, 1)
        marginals = np.matmul(columns, below)  # T(e_j, e_l, u), of shape (j, column, l)
        # Rows j of the block, by all l from its first; then rows l after it, by the block's j.
        answer[:, first:last] += np.einsum("jcl,cl->cj", marginals, columns[:, first:])
        answer[:, last:] += np.einsum(
            "jcl,cj->cl", marginals[:, :, last - first :], columns[:, first:last]
        )
    return answer.T
