"""Leading eigenpairs of a symmetric matrix."""

import inspect
from collections.abc import Callable

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from scipy.sparse.linalg import ArpackError, eigsh

from sktensor_dp.tensor.arrays import (
    Floats,
    RandomState,
    as_generator,
    check_at_least,
    check_components,
    check_finite,
)

Operator = Callable[[Floats], Floats]


# On an invariant subspace ARPACK restarts from a random vector. It is used if that can be seeded.
_ARPACK_IS_SEEDABLE = "rng" in inspect.signature(eigsh).parameters

# Least pivot of a Cholesky factor, relative to the largest, for which a second orthogonalisation
# restores orthogonality.
_LEAST_PIVOT = 1e-6
# Blocks of the Krylov basis at which it is compressed.
_BASIS_BLOCKS = 8


def top_eigenpairs(
    operator: ArrayLike | Operator,
    n_components: int,
    *,
    dim: int | None = None,
    n_iter: int = 60,
    tol: float = 1e-8,
    random_state: RandomState = None,
) -> tuple[Floats, Floats]:
    """Eigenpairs of a symmetric matrix with the largest eigenvalues.

    Largest by algebraic value: negative eigenvalues, such as those of noise, are never preferred.

    Parameters
    ----------
    operator : array-like of shape (d, d), or callable
        Symmetric matrix, or a function that maps a (d, b) array to its product with the matrix.
    n_components : int
        Number of eigenpairs, at most d.
    dim : int, optional
        Size d; required with a function, else read from the array.
    n_iter : int, default=60
        Most blocks multiplied by the block Krylov iteration (see Notes).
    tol : float, default=1e-8
        Largest residual |A u - x u| accepted, relative to the largest eigenvalue returned. The
        error of an eigenvalue is of the order of its square.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the starting vectors.

    Returns
    -------
    eigenvalues : ndarray of shape (n_components,)
        Decreasing; may be negative.
    eigenvectors : ndarray of shape (d, n_components)
        Orthonormal columns; the entry of largest magnitude of each is positive.

    Raises
    ------
    ValueError
        If a parameter or the shape of `operator` is invalid, or it is not finite.

    Notes
    -----
    Up to d = 600, and where nine blocks of vectors have more than d columns, LAPACK reduces the
    matrix. Beyond, ARPACK takes arrays (from SciPy 1.17, where it can be seeded); functions, and
    arrays otherwise, are left to a restarted block Krylov iteration (Musco & Musco, NIPS 2015).

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor import top_eigenpairs
    >>> top_eigenpairs(np.diag([1.0, -9.0, 3.0]), 2)[0]
    array([3., 1.])
    """
    # Number of columns of a block beyond those requested.
    oversampled = 10
    # Largest size for which full reduction is as fast as iteration.
    dense_size = 600
    matrix: Floats | None = None
    if callable(operator):
        if dim is None:
            raise ValueError("dim, the size of the matrix, is required with a function.")
        multiply, d = operator, int(dim)
    else:
        matrix = np.asarray(operator, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"operator must have shape (d, d); got shape {matrix.shape}.")
        if dim not in (None, len(matrix)):
            raise ValueError(f"dim must be {len(matrix)}, the size of the matrix; got {dim}.")
        check_finite("operator", matrix)
        multiply, d = matrix.__matmul__, len(matrix)
    check_components(n_components, d)
    check_at_least(1, n_iter=n_iter)
    block_size = n_components + oversampled
    rng = as_generator(random_state)
    start = rng.standard_normal((d, min(block_size, d)))
    # A full basis and one block more, orthogonal to it, must have d columns at most.
    if d <= dense_size or (_BASIS_BLOCKS + 1) * block_size > d:
        matrix = multiply(np.eye(d)) if matrix is None else matrix
        return _oriented(*_dense_pairs(matrix, n_components))
    if matrix is not None and _ARPACK_IS_SEEDABLE:
        try:
            values, vectors = eigsh(
                matrix, k=n_components, which="LA", v0=start[:, 0], tol=tol, rng=rng
            )
            order = np.argsort(-values, kind="stable")
            return _oriented(values[order], vectors[:, order])
        except ArpackError:  # no convergence, or a zero matrix
            pass
    return _oriented(*_block_krylov(multiply, start, n_components, n_iter, tol))


def _dense_pairs(matrix: Floats, n_components: int) -> tuple[Floats, Floats]:
    """Leading eigenpairs of a dense symmetric matrix of any scale by LAPACK, largest first."""
    d = len(matrix)
    try:
        values, vectors = scipy.linalg.eigh(matrix, subset_by_index=[d - n_components, d - 1])
        succeeded = len(values) == n_components
    except np.linalg.LinAlgError:
        succeeded = False
    if not succeeded:  # relatively robust representations can fail to split entries of any scale
        scale = max(float(np.abs(matrix).max()), np.finfo(float).tiny)
        values, vectors = np.linalg.eigh(matrix / scale)
        values, vectors = scale * values[-n_components:], vectors[:, -n_components:]
    return values[::-1], vectors[:, ::-1]


def _oriented(values: Floats, vectors: Floats) -> tuple[Floats, Floats]:
    """Fix the signs of eigenvectors: the entry of largest magnitude of each column is positive."""
    return np.array(values), vectors * signs_of_largest(vectors)


def signs_of_largest(vectors: Floats) -> Floats:
    """Sign of the entry of largest magnitude of each column; 1 for 0."""
    largest = np.argmax(np.abs(vectors), axis=0)
    return np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def _block_krylov(
    multiply: Operator, start: Floats, n_components: int, n_iter: int, tol: float
) -> tuple[Floats, Floats]:
    """Leading eigenpairs by Rayleigh-Ritz in a restarted block Krylov space of `start`."""
    # With the basis Q, A Q lies in the span of Q but for the last block. Its part outside, block @
    # outside, gives the residuals of all Ritz vectors, so that none is formed before the end.
    d, width = start.shape
    basis = np.empty((d, _BASIS_BLOCKS * width), order="F")
    projected = np.zeros((basis.shape[1], basis.shape[1]))
    block, used = np.linalg.qr(start)[0], 0
    for step in range(n_iter):
        new = slice(used, used + block.shape[1])
        used = new.stop
        basis[:, new] = block
        Q, image = basis[:, :used], multiply(block)
        projected[:used, new] = Q.T @ image
        projected[new, :used] = projected[:used, new].T
        inside = projected[:used, :used]
        ritz, rotation = np.linalg.eigh((inside + inside.T) / 2.0)
        values, rotation = ritz[::-1][:width], rotation[:, ::-1][:, :width]
        block, outside = _orthonormal(image - Q @ projected[:used, new], Q)
        residuals = outside @ rotation[new, :n_components]
        error = np.linalg.norm(residuals, axis=0).max()
        rounding = np.finfo(float).eps * d * np.abs(ritz).max()
        if step == n_iter - 1 or error <= max(tol * np.abs(values[:n_components]).max(), rounding):
            break
        if used + width > basis.shape[1]:
            basis[:, :width], used = Q @ rotation, width
            projected[:width, :width] = np.diag(values)
    return values[:n_components], Q @ rotation[:, :n_components]


def _orthonormal(block: Floats, basis: Floats) -> tuple[Floats, Floats]:
    """Orthonormal Q and R: ``Q R`` is the part of `block` outside an orthonormal `basis`."""
    # A second orthogonalisation removes rounding errors along the basis, which dominate once Ritz
    # vectors have converged.
    block, first = _factored(block)
    block, second = _factored(block - basis @ (basis.T @ block))
    return block, second @ first


def _factored(block: Floats) -> tuple[Floats, Floats]:
    """Factors Q and R of a tall matrix, by its Gram matrix where that is well conditioned."""
    try:
        R = np.asarray(np.linalg.cholesky(block.T @ block).T, dtype=np.float64)
        if R.diagonal().min() >= _LEAST_PIVOT * R.diagonal().max():
            return block @ np.linalg.inv(R), R
    except np.linalg.LinAlgError:
        pass
    Q, R = np.linalg.qr(block)
    return Q, np.asarray(R, dtype=np.float64)
