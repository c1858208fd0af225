"""Symmetric matrices and tensors: symmetrisation and products."""

import math
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.tensor.blocks import spans
from sktensor_dp.tensor.coordinates import (
    as_cube,
    as_float,
    mirror_sorted,
)
from sktensor_dp.tensor.coordinates import (
    coordinates_to_symmetric as coordinates_to_symmetric,
)
from sktensor_dp.tensor.coordinates import (
    n_unique as n_unique,
)
from sktensor_dp.tensor.coordinates import (
    symmetric_to_coordinates as symmetric_to_coordinates,
)
from sktensor_dp.tensor.oracle import check_at_least, check_shape


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
