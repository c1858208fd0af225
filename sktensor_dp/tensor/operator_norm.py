"""Operator norm of a symmetric third-order tensor."""

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.tensor._random import RandomState, as_generator
from sktensor_dp.tensor.oracle import Floats, Oracle, check_at_least, resolve

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
    >>> from sktensor_dp.tensor.operator_norm import operator_norm
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
