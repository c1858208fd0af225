"""Incoherence, distances between subspaces, and the operator norm of a third-order tensor."""

import math

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.tensor.arrays import Floats, RandomState, as_generator
from sktensor_dp.tensor.oracle import Oracle, check_at_least, check_shape, resolve

# Orthonormal up to what decompositions leave of rounding and tolerance.
_ORTHONORMAL_TOL = 1e-6


def incoherence(vectors: ArrayLike) -> float:
    """Incoherence mu_0 of orthonormal components.

    mu_0 = (d / k) max_i |V' e_i|^2, with V = (v_1, ..., v_k): how much of the
    span of the components lies along one coordinate axis.

    Parameters
    ----------
    vectors : array-like of shape (k, d)
        Orthonormal rows v_j, up to 1e-6. Orthonormalise others first, for
        example by a QR factorisation: mu_0 depends on their span alone.

    Returns
    -------
    float
        Between 1 (flat: every axis carries as much) and d / k (an axis lies in
        the span).

    Raises
    ------
    ValueError
        If `vectors` has the wrong shape or its rows are not orthonormal.

    References
    ----------
    Y. Wang, A. Anandkumar, "Online and differentially-private tensor
    decomposition", NIPS 2016, Assumption 4.1, Eq. (6).

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.diagnostics import incoherence
    >>> incoherence(np.eye(6)[:2])
    3.0
    >>> round(incoherence(np.full((1, 4), 0.5)), 12)
    1.0
    """
    V = _orthonormal_rows(vectors)
    k, d = V.shape
    return float(d / k * np.max(np.sum(V**2, axis=0)))


def subspace_distance(A: ArrayLike, B: ArrayLike) -> float:
    """Spectral distance |P_A - P_B| of the projections on two column spaces.

    Parameters
    ----------
    A, B : array-like of shapes (d, m) and (d, n)
        Linearly independent columns, which need not be orthonormal. (For
        components as rows, pass their transpose.)

    Returns
    -------
    float
        Sine of the largest principal angle, between 0 and 1; exactly 1 if m and
        n differ.

    Raises
    ------
    ValueError
        If the shapes do not fit, or columns are linearly dependent.

    References
    ----------
    A. Bjoerck, G. H. Golub, "Numerical methods for computing angles between
    linear subspaces", Math. Comp. 27, 1973.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.diagnostics import subspace_distance
    >>> float(round(subspace_distance([[1.0], [0.0]], [[4.0], [3.0]]), 12))
    0.6
    """
    first, second = _column_frame(A, "A"), _column_frame(B, "B")
    if first.shape[0] != second.shape[0]:
        raise ValueError(
            "A and B must have the same number of rows; "
            f"got {first.shape[0]} and {second.shape[0]}."
        )
    if first.shape != second.shape:
        return 1.0
    outside = second - first @ (first.T @ second)
    return min(1.0, float(np.linalg.norm(outside, 2)))


def random_marginal_bound(
    weights: ArrayLike, vectors: ArrayLike, theta: ArrayLike, noise_norm: float
) -> float:
    """Bound on the error of the span found by `whiten_by_random_marginal`.

    Of T = sum_j w_j v_j (x) v_j (x) v_j plus noise E, the marginal at a unit
    vector theta is M_0 + E(I, I, theta), where M_0 has the singular values
    |w_j v_j' theta| and |E(I, I, theta)| <= |E|. By Wedin's theorem, with s the
    smallest of them, the projections on the true and the found span differ by
    at most |E| / (s - |E|). For theta uniform on the sphere s is of the order of
    min_j |w_j| / sqrt(d), which is how the noise comes to be amplified.

    Parameters
    ----------
    weights : array-like of shape (k,)
        w_j, of any sign.
    vectors : array-like of shape (k, d)
        Orthonormal rows v_j, up to 1e-6.
    theta : array-like of shape (d,)
        Direction of the marginal, normalised here.
    noise_norm : float
        Operator norm of the noise, max |E(u, u, u)| over unit u, or the
        spectral norm of E(I, I, theta), which gives a sharper bound.

    Returns
    -------
    float
        Bound on `subspace_distance`; it says nothing from 1 on, and is infinite
        where the noise is not below s.

    Raises
    ------
    ValueError
        If a shape is invalid, `vectors` are not orthonormal, `theta` is zero or
        `noise_norm` negative.

    References
    ----------
    Y. Wang, A. Anandkumar, "Online and differentially-private tensor
    decomposition", NIPS 2016, Proposition B.1 and Lemma F.8, with constants.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.diagnostics import random_marginal_bound
    >>> float(round(random_marginal_bound([2.0, 1.0], np.eye(2), [0.6, 0.8], 0.2), 12))
    0.333333333333
    >>> random_marginal_bound([2.0, 1.0], np.eye(2), [0.6, 0.8], 0.8)
    inf
    """
    V = _orthonormal_rows(vectors)
    w, direction = np.asarray(weights, dtype=np.float64), np.asarray(theta, dtype=np.float64)
    check_shape("weights", w, len(V))
    if direction.shape != V.shape[1:] or not np.any(direction):
        raise ValueError(
            f"theta must have shape {V.shape[1:]} and not be 0; got {direction.shape}."
        )
    if not noise_norm >= 0:
        raise ValueError(f"noise_norm must be non-negative; got {noise_norm}.")
    smallest = float(np.min(np.abs(w * (V @ direction)))) / float(np.linalg.norm(direction))
    return noise_norm / (smallest - noise_norm) if noise_norm < smallest else math.inf


def _orthonormal_rows(vectors: ArrayLike) -> Floats:
    V = np.asarray(vectors, dtype=np.float64)
    if V.ndim != 2 or not 1 <= V.shape[0] <= V.shape[1]:
        raise ValueError(f"vectors must have shape (k, d), 1 <= k <= d; got shape {V.shape}.")
    if not np.abs(V @ V.T - np.eye(V.shape[0])).max() <= _ORTHONORMAL_TOL:
        raise ValueError("vectors must have orthonormal rows.")
    return V


def _column_frame(A: ArrayLike, name: str) -> Floats:
    """Orthonormal basis of a column space of full dimension."""
    matrix = np.asarray(A, dtype=np.float64)
    if matrix.ndim != 2 or not 1 <= matrix.shape[1] <= matrix.shape[0]:
        raise ValueError(f"{name} must have shape (d, m), 1 <= m <= d; got shape {matrix.shape}.")
    left, singular, _ = np.linalg.svd(matrix, full_matrices=False)
    if not singular[-1] > matrix.shape[0] * np.finfo(float).eps * singular[0]:
        raise ValueError(f"{name} must have linearly independent columns.")
    return np.asarray(left)


# Rounding of T(u, u, u), relative to |T(I, u, u)|, that is no descent.
_ROUNDING = 1e-14


def operator_norm(
    T: ArrayLike | Oracle,
    *,
    dim: int | None = None,
    n_restarts: int = 20,
    max_iter: int = 1000,
    tol: float = 1e-8,
    shift: float | None = None,
    random_state: RandomState = None,
) -> float:
    """Largest |T(u, u, u)| over unit vectors u, by shifted power iterations.

    All starting points iterate u <- T(I, u, u) + a u, normalised, as columns of
    one query. The shift a makes T(u, u, u) rise at every step, so that each one
    ends in a local maximum, where without a shift it may cycle.

    Parameters
    ----------
    T : array-like of shape (d, d, d), or callable
        Symmetric tensor, or its oracle, as in `robust_tensor_power_method`.
    dim : int, optional
        Length d of a mode; required with an oracle, else read from `T`.
    n_restarts : int, default=20
        Uniform starting points. Their number tends to have to grow with d.
    max_iter : int, default=1000
        Most queries after the first.
    tol : float, default=1e-8
        A column stops when the part of T(I, u, u) normal to u is this share of
        it. The relative error of the value is of the order of its square.
    shift : float, optional
        Constant a >= 0; every step ascends if it is at least twice the norm.
        By default it is found column by column: a step that would descend is
        not taken and the shift is raised, else the shift is halved.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the starting points.

    Returns
    -------
    float
        Largest value found. It is attained, hence never above the norm but for
        rounding; it is below if no start leads to a global maximum, which is
        NP-hard to find in general.

    Raises
    ------
    ValueError
        If a parameter or the shape of `T` is invalid.

    References
    ----------
    T. G. Kolda, J. R. Mayo, "Shifted power method for computing tensor
    eigenpairs", SIAM J. Matrix Anal. Appl. 32, 2011, Algorithm 2 (SS-HOPM).

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.diagnostics import operator_norm
    >>> from sktensor_dp.tensor.symmetric import symmetric_product
    >>> T = symmetric_product(np.diag([0.0, 1.0, 1.0]), [1.0, 0.0, 0.0])
    >>> round(3.0 * operator_norm(T, random_state=0) ** 2, 9)
    4.0
    """
    oracle, d, _ = resolve(T, dim, 1, 3)
    check_at_least(1, n_restarts=n_restarts, max_iter=max_iter)
    if shift is not None and not shift >= 0:
        raise ValueError(f"shift must be None or non-negative; got {shift}.")
    U = as_generator(random_state).standard_normal((d, n_restarts))
    U /= np.linalg.norm(U, axis=0)
    answers = oracle(U)
    values = np.sum(U * answers, axis=0)
    U = U * np.where(values < 0, -1.0, 1.0)  # T(-u, -u, -u) = -T(u, u, u)
    values = np.abs(values)
    shifts = np.full(n_restarts, 0.0 if shift is None else shift)
    for _ in range(max_iter):
        lengths = np.linalg.norm(answers, axis=0)
        normal = np.linalg.norm(answers - values * U, axis=0)
        active = np.flatnonzero(normal > tol * lengths)
        if active.size == 0:
            break
        moved = _step(U[:, active], answers[:, active], shifts[active])
        answer = oracle(moved)
        value = np.sum(moved * answer, axis=0)
        taken = np.ones(active.size, dtype=bool)
        if shift is None:
            taken = value >= values[active] - _ROUNDING * lengths[active]
            raised = np.maximum(2.0 * shifts[active], 0.5 * lengths[active])
            shifts[active] = np.where(taken, 0.5 * shifts[active], raised)
        kept = active[taken]
        U[:, kept], answers[:, kept], values[kept] = moved[:, taken], answer[:, taken], value[taken]
    return float(np.max(np.abs(values)))


def _step(U: Floats, answers: Floats, shifts: Floats) -> Floats:
    moved = answers + shifts * U
    norms = np.linalg.norm(moved, axis=0)
    return np.divide(moved, norms, out=U.copy(), where=norms > 0)
