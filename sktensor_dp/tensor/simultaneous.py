"""Orthogonalised power iteration on all components of a tensor at once."""

from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.tensor._random import RandomState, as_generator
from sktensor_dp.tensor.oracle import (
    NULL_WEIGHT,
    Floats,
    Oracle,
    check_at_least,
    check_shape,
    resolve,
)


def simultaneous_power_iteration(
    T: ArrayLike | Oracle,
    n_components: int,
    *,
    dim: int | None = None,
    order: int | None = None,
    starts: ArrayLike | None = None,
    n_restarts: int = 10,
    max_iter: int = 100,
    tol: float = 1e-10,
    random_state: RandomState = None,
) -> tuple[Floats, Floats]:
    """Orthogonalised power iteration on all components at once.

    An orthonormal frame V is replaced by the polar factor of
    [T(v_j, ..., v_j) T(I, v_j, ..., v_j)]_j, the direction in which the diagonal
    energy sum_j T(v_j, ..., v_j)^2 rises fastest. A frame that maximises it is
    the least-squares fit to `T` by an orthogonally decomposable tensor, hence
    the maximum-likelihood fit under isotropic Gaussian noise. Without deflation
    no component inherits the errors of the others.

    Parameters
    ----------
    T : array-like of shape (k, ..., k), or callable
        As in `robust_tensor_power_method`. An oracle is queried for
        `n_components` columns per restart, at most ``max_iter + 1`` times, and
        as often again for the best restart.
    n_components : int
        Number of components, at most k.
    dim : int, optional
        Length k of a mode; required with an oracle, else read from `T`.
    order : int, optional
        Number of modes; 3 by default with an oracle, else read from `T`.
    starts : array-like of shape (n_components, k), optional
        Rows to start one more restart from, after orthonormalisation.
    n_restarts : int, default=10
        Random starting frames; may be 0 if `starts` is given.
    max_iter : int, default=100
        Most iterations of all restarts, and again of the best one alone.
    tol : float, default=1e-10
        Iterations stop once no vector moves by more than this.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the starting frames.

    Returns
    -------
    weights : ndarray of shape (n_components,)
        T(v, ..., v), decreasing in magnitude, for the restart of largest
        diagonal energy. Non-negative if the order is odd.
    vectors : ndarray of shape (n_components, k)
        Orthonormal rows.

    Raises
    ------
    ValueError
        If a parameter or the shape of `T` or `starts` is invalid.

    References
    ----------
    J. Chen, Y. Saad, "On the tensor SVD and the optimal low rank orthogonal
    approximation of tensors", SIAM J. Matrix Anal. Appl. 30, 2009, section 5
    (here with one frame for the three modes). P. Comon, "Independent component
    analysis, a new concept?", Signal Processing 36, 1994, for the contrast.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.simultaneous import simultaneous_power_iteration
    >>> from sktensor_dp.tensor.symmetric import symmetric_outer_sum
    >>> weights, vectors = simultaneous_power_iteration(
    ...     symmetric_outer_sum([1.0, -2.0], np.eye(2)), 2, random_state=0
    ... )
    >>> weights.round(6), vectors.round(6) + 0.0
    (array([2., 1.]), array([[ 0., -1.],
           [ 1.,  0.]]))
    """
    oracle, k, n_modes = resolve(T, dim, n_components, order)
    check_at_least(1, n_restarts=n_restarts + (starts is not None), max_iter=max_iter)
    rng = as_generator(random_state)
    frames = np.linalg.qr(rng.standard_normal((n_restarts, k, n_components)))[0]
    if starts is not None:
        given = np.asarray(starts, dtype=np.float64)
        check_shape("starts", given, n_components, k)
        frames = np.concatenate([_polar(given.T)[None], frames])
    frames, values = _iterate_frames(oracle, frames, max_iter, tol)
    best = int(np.argmax(np.sum(values**2, axis=1)))
    frames, values = _iterate_frames(oracle, frames[[best]], max_iter, tol)
    signs = np.where((values[0] < 0) & (n_modes % 2 == 1), -1.0, 1.0)
    weights, vectors = values[0] * signs, (frames[0] * signs).T
    weights[np.abs(weights) <= NULL_WEIGHT * np.abs(weights).max()] = 0.0
    found = np.argsort(-np.abs(weights), kind="stable")
    return weights[found], vectors[found]


def _iterate_frames(
    oracle: Oracle, frames: Floats, max_iter: int, tol: float
) -> tuple[Floats, Floats]:
    """Orthogonalised iterations on a stack (L, k, n) of frames, and T(v, ..., v)."""
    answers, values = _contract_frames(oracle, frames)
    for _ in range(max_iter):
        moved = _polar(answers * values[:, None, :])
        change = np.linalg.norm(moved - frames, axis=1).max()
        frames = moved
        answers, values = _contract_frames(oracle, frames)
        if change <= tol:
            break
    return frames, values


def _contract_frames(oracle: Oracle, frames: Floats) -> tuple[Floats, Floats]:
    """T(I, v, ..., v) and T(v, ..., v) for the columns of a stack of frames."""
    n_frames, k, n = frames.shape
    columns = np.moveaxis(frames, 0, 1).reshape(k, n_frames * n)
    answers = np.moveaxis(oracle(columns).reshape(k, n_frames, n), 1, 0)
    return answers, np.sum(answers * frames, axis=1)


def _polar(M: Floats) -> Floats:
    """Nearest matrices with orthonormal columns, for a matrix or a stack."""
    left, _, right = np.linalg.svd(M, full_matrices=False)
    return cast(Floats, left @ right)
