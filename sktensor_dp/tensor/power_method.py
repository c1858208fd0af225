"""Orthogonal decomposition of symmetric third-order tensors: by deflation, jointly, online."""

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.tensor.arrays import (
    Floats,
    RandomState,
    as_generator,
    check_at_least,
    check_components,
    check_shape,
    extreme_scale,
)
from sktensor_dp.tensor.batch_mean import BatchMean
from sktensor_dp.tensor.symmetric import Oracle, tensor_oracle

# A weight below this fraction of the largest is a rounding error.
NULL_WEIGHT = 1e-12
# Restarts stop where they would move by less, and are compared by T(u, u, u), whose relative error
# is then about the square of the move, a few percent.
_BASIN_TOL = 0.2


def simultaneous_power_iteration(
    T: ArrayLike,
    n_components: int,
    *,
    starts: Floats | None = None,
    n_restarts: int = 10,
    max_iter: int = 100,
    random_state: RandomState = None,
) -> tuple[Floats, Floats]:
    """Weights and orthonormal rows by orthogonalised power iteration on all components at once."""
    # A frame V is replaced by the polar factor of [T(v, v, v) T(I, v, v)], along which the energy
    # sum_j T(v, v, v)^2 rises fastest: its maximum is the least-squares fit to T (Chen & Saad,
    # SIMAX 2009, section 5; Comon 1994). `starts` are the rows of one more restart.
    oracle, k = oracle_and_length(T, dim=None, n_components=n_components)
    if (scale := extreme_scale(T)) != 1:
        weights, vectors = simultaneous_power_iteration(
            np.asarray(T) / scale, n_components, starts=starts, n_restarts=n_restarts,
            max_iter=max_iter, random_state=random_state,
        )  # fmt: skip
        return weights * scale, vectors
    check_at_least(1, n_restarts=n_restarts + (starts is not None), max_iter=max_iter)
    rng = as_generator(random_state)
    frames = np.linalg.qr(rng.standard_normal((n_restarts, k, n_components)))[0]
    if starts is not None:
        check_shape("starts", starts, n_components, k)
        frames = np.concatenate([_polar(starts.T)[None], frames])
    frames, values = _iterate_frames(oracle, frames, max_iter)
    best = int(np.argmax(np.sum(values**2, axis=1)))
    frames, values = _iterate_frames(oracle, frames[[best]], max_iter)
    signs = np.where(values[0] < 0, -1.0, 1.0)
    weights, vectors = values[0] * signs, (frames[0] * signs).T
    weights[weights <= NULL_WEIGHT * weights.max()] = 0.0
    descending = np.argsort(-weights, kind="stable")
    return weights[descending], vectors[descending]


def _iterate_frames(oracle: Oracle, frames: Floats, max_iter: int) -> tuple[Floats, Floats]:
    """Iterate a stack (L, k, n) of frames; return the last, and T(v, v, v) of columns, (L, n)."""
    # Iteration stops once no vector of any frame moves by more than this.
    frame_tol = 1e-10
    answers, values = _contract_frames(oracle, frames)
    for _ in range(max_iter):
        moved = _polar(answers * values[:, None, :])
        change = np.linalg.norm(moved - frames, axis=1).max()
        frames = moved
        answers, values = _contract_frames(oracle, frames)
        if change <= frame_tol:
            break
    return frames, values


def _contract_frames(oracle: Oracle, frames: Floats) -> tuple[Floats, Floats]:
    """T(I, v, v), (L, k, n), and T(v, v, v), (L, n), for the columns of a stack of frames."""
    n_frames, k, n = frames.shape
    columns = np.moveaxis(frames, 0, 1).reshape(k, n_frames * n)
    answers = np.moveaxis(oracle(columns).reshape(k, n_frames, n), 1, 0)
    return answers, np.sum(answers * frames, axis=1)


def _polar(M: Floats) -> Floats:
    """Nearest matrix with orthonormal columns, of a matrix or of each in a stack."""
    left, _, right = np.linalg.svd(M, full_matrices=False)
    return cast(Floats, left @ right)


def robust_tensor_power_method(
    T: ArrayLike | Oracle,
    n_components: int,
    *,
    dim: int | None = None,
    n_restarts: int = 10,
    max_iter: int = 100,
    tol: float = 1e-10,
    random_state: RandomState = None,
) -> tuple[Floats, Floats]:
    """Robust tensor power method: one component at a time, with deflation.

    Each component starts from `n_restarts` uniform points of the unit sphere, iterates
    u <- T(I, u, u) / |T(I, u, u)|, keeps the restart of largest |T(u, u, u)|, and polishes it.

    Parameters
    ----------
    T : array-like of shape (k, k, k), or callable
        Symmetric tensor, which is not checked, or an oracle that maps U of shape (k, L) to the
        (k, L) array of T(I, u, u) for the columns u of U, and may be noisy.
    n_components : int
        Number of components, at most k.
    dim : int, optional
        Length k of a mode; required with an oracle, else read from `T`.
    n_restarts : int, default=10
        Starting points per component (L in the papers).
    max_iter : int, default=100
        Most iterations of the restarts, and again of the polishing (R).
    tol : float, default=1e-10
        Polishing stops once the vector would move by no more than this, up to sign. Restarts, which
        need only tell basins apart, stop at 0.2 if that is more. If negative, all iterations run.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the starting points.

    Returns
    -------
    weights : ndarray of shape (n_components,)
        T(v, v, v) after deflation, positive and decreasing; exactly 0 beyond the rank of `T`.
    vectors : ndarray of shape (n_components, k)
        Unit vectors as rows, nearly orthogonal under noise. Those of weight 0 are arbitrary ones
        orthogonal to the others.

    Raises
    ------
    ValueError
        If a parameter or the shape of `T` is invalid.

    References
    ----------
    A. Anandkumar, R. Ge, D. Hsu, S. M. Kakade, M. Telgarsky, "Tensor decompositions for learning
    latent variable models", JMLR 15, 2014, Algorithm 1. Y. Wang, A. Anandkumar, "Online and
    differentially-private tensor decomposition", NIPS 2016, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor import robust_tensor_power_method, symmetric_outer_sum
    >>> V = np.array([[0.6, 0.8], [-0.8, 0.6]])
    >>> T = symmetric_outer_sum([1.0, 2.0], V)
    >>> weights, vectors = robust_tensor_power_method(T, 2, random_state=0)
    >>> weights.round(6), vectors.round(6)
    (array([2., 1.]), array([[-0.8,  0.6],
           [ 0.6,  0.8]]))
    """
    if not callable(T) and (scale := extreme_scale(T)) != 1:
        weights, vectors = robust_tensor_power_method(
            np.asarray(T) / scale, n_components, dim=dim, n_restarts=n_restarts, max_iter=max_iter,
            tol=tol, random_state=random_state,
        )  # fmt: skip
        return weights * scale, vectors
    oracle, k = oracle_and_length(T, dim, n_components)
    check_at_least(1, n_restarts=n_restarts, max_iter=max_iter)
    rng = as_generator(random_state)
    weights, vectors = np.zeros(n_components), np.zeros((n_components, k))
    # A negative tolerance disables stopping, here too.
    basin_tol = max(tol, float(np.copysign(_BASIN_TOL, tol)))
    starts = rng.standard_normal((n_components, k, n_restarts))
    starts /= np.linalg.norm(starts, axis=1, keepdims=True)
    # Deflation is subtracted separately, so one query serves the starts of all components.
    first_answers = np.hsplit(oracle(np.hstack(list(starts))), n_components)
    for j in range(n_components):
        deflation = _deflation(weights[:j], vectors[:j])

        def residual(U: Floats, deflation: Oracle = deflation) -> Floats:
            return oracle(U) - deflation(U)

        answers = first_answers[j] - deflation(starts[j])
        ends, answers = _iterate(residual, starts[j], answers, max_iter, basin_tol)
        best = [int(np.argmax(np.abs(np.sum(ends * answers, axis=0))))]
        end, answer = _iterate(residual, ends[:, best], answers[:, best], max_iter, tol)
        value = float(np.sum(end * answer))
        if abs(value) <= NULL_WEIGHT * weights.max():
            vectors[j:] = _orthogonal_rows(vectors[:j], n_components - j, rng)
            break
        weights[j] = abs(value)
        vectors[j] = _signed_end(end, answer, tol)
    descending = np.argsort(-weights, kind="stable")
    return weights[descending], vectors[descending]


def orthogonal_decomposition(
    T: ArrayLike,
    n_components: int,
    *,
    n_restarts: int = 10,
    max_iter: int = 100,
    random_state: RandomState = None,
) -> tuple[Floats, Floats]:
    """Decompose a nearly orthogonally decomposable tensor by least squares.

    All components are iterated together, so that none inherits the errors of others, from random
    frames and from the components of `robust_tensor_power_method`; the frame of largest energy
    sum_j T(v_j, v_j, v_j)^2 wins. With as many components as the length of a mode, errors are two
    thirds of those of the robust method; ``benchmarks/decomposition_accuracy.py`` measures them.

    Parameters
    ----------
    T : array-like of shape (k, k, k)
        Symmetric tensor, which is not checked.
    n_components, n_restarts, max_iter, random_state
        As in `robust_tensor_power_method`.

    Returns
    -------
    weights : ndarray of shape (n_components,)
        Non-negative and decreasing.
    vectors : ndarray of shape (n_components, k)
        Orthonormal rows.

    Raises
    ------
    ValueError
        If a parameter or the shape of `T` is invalid.

    References
    ----------
    J. Chen, Y. Saad, "On the tensor SVD and the optimal low rank orthogonal approximation of
    tensors", SIAM J. Matrix Anal. Appl. 30, 2009, section 5 (here one frame for all modes).

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor import orthogonal_decomposition, symmetric_outer_sum
    >>> T = symmetric_outer_sum([1.0, 2.0, 3.0], np.eye(3))
    >>> orthogonal_decomposition(T, 3, random_state=0)[0].round(6)
    array([3., 2., 1.])
    """
    rng = as_generator(random_state)
    counts = {"n_restarts": n_restarts, "max_iter": max_iter}
    _, starts = robust_tensor_power_method(T, n_components, random_state=rng, **counts)
    return simultaneous_power_iteration(T, n_components, starts=starts, random_state=rng, **counts)


def oracle_and_length(
    T: ArrayLike | Oracle, dim: int | None, n_components: int
) -> tuple[Oracle, int]:
    """Oracle and mode length of a tensor that is given as an array, or as an oracle with `dim`."""
    if not callable(T):
        oracle, k = tensor_oracle(T), len(np.asarray(T))
        if dim not in (None, k):
            raise ValueError(f"dim must be {k}, the length of the modes of T; got {dim}.")
    elif dim is None:
        raise ValueError("dim, the length of a mode, is required when T is an oracle.")
    else:
        oracle, k = T, int(dim)
    check_components(n_components, k)
    return oracle, k


def _deflation(weights: Floats, vectors: Floats) -> Oracle:
    """Oracle U -> T(I, u, u) of the components found, sum_j weights[j] v_j (x) v_j (x) v_j."""
    return lambda U: vectors.T @ (weights[:, None] * (vectors @ U) ** 2)


def _moved(U: Floats, answers: Floats) -> tuple[Floats, Floats]:
    """Columns of `answers` scaled to norm 1, and their distances from those of U, up to sign."""
    norms = np.sqrt(np.einsum("ij,ij->j", answers, answers))
    if norms.all():
        moved = answers / norms
    else:
        moved = np.divide(answers, norms, out=U.copy(), where=norms > 0)
    difference = moved - U * np.copysign(1.0, np.einsum("ij,ij->j", moved, U))
    return moved, np.sqrt(np.einsum("ij,ij->j", difference, difference))


def _iterate(
    oracle: Oracle, U: Floats, answers: Floats, max_iter: int, tol: float
) -> tuple[Floats, Floats]:
    """Iterate the columns of U, whose `answers` are known; return columns and answers at the end.

    Columns that would move by `tol` or less are not asked about again.
    """
    U, answers = U.copy(), answers.copy()
    active = np.arange(U.shape[1])
    for _ in range(max_iter):
        moved, change = _moved(U[:, active], answers[:, active])
        moving = change > tol
        active = active[moving]
        if active.size == 0:
            break
        U[:, active] = moved[:, moving]
        answers[:, active] = oracle(U[:, active])
    return U, answers


def _signed_end(end: Floats, answer: Floats, tol: float) -> Floats:
    """Unit vector v of a component, with T(v, v, v) positive, from the `end` of its iteration."""
    # Take the last step, of at most `tol`, which needs no query: otherwise deflation would leave a
    # residue that could pass for a component. A step goes to where T(v, v, v) is positive.
    moved, change = _moved(end, answer)
    if change[0] <= tol and np.any(answer):
        return moved[:, 0]
    weight = np.sum(end * answer)  # T(v, v, v) at the end
    return -end[:, 0] if weight < 0 else end[:, 0]


def _orthogonal_rows(vectors: Floats, n_missing: int, rng: np.random.Generator) -> Floats:
    """Random orthonormal rows (n_missing, k), orthogonal to the rows of `vectors`."""
    basis = np.linalg.qr(vectors.T)[0]
    block = rng.standard_normal((vectors.shape[1], n_missing))
    for _ in range(2):  # once is not enough in floating point
        block -= basis @ (basis.T @ block)
        block = np.linalg.qr(block)[0]
    return block.T


@dataclass(eq=False)
class OnlinePowerMethod:
    """Robust tensor power method with an ask-and-tell interface."""

    # A component takes ``max_iter + 1`` steps from all its starts. By the last one the best start
    # is chosen, and moves once more. Once all components are found, further answers refine them. If
    # an answer is much noisier than others, the question is asked again, and both are averaged.

    # Algorithm 2 of Wang & Anandkumar (2016), but step 7 projects unit iterates, and an eigenvalue
    # is T(u, u, u) of the iterate u before this last move.
    n_components: int
    n_restarts: int
    max_iter: int
    seed: int  # of the starts, of each component its own
    n_answers: int  # so far
    n_waits: int  # answers so far that made no step of their own
    log_precision: float  # mean logarithm of the precision of answers
    weights: Floats  # eigenvalues of the components found, (n,)
    vectors: Floats  # components found, unit rows, (n, d)
    component_answers: BatchMean  # mean answers for the components found, (d, n)
    starts: Floats  # iterates for the current component, unit columns, (d, n_restarts)
    pending: BatchMean | None  # answers to the current question, too noisy for a step, (d, L)
    best_weight: float  # largest T(u, u, u) of the last step
    best_noise_variance: float  # of the noise in it
    best_vector: Floats  # iterate u that had it, moved once more, (d,)

    def __post_init__(self) -> None:
        check_at_least(1, n_restarts=self.n_restarts, max_iter=self.max_iter)
        check_components(self.n_components, len(self.starts))
        n_found = min(self._n_steps // (self.max_iter + 1), self.n_components)
        if (lengths := (len(self.weights), len(self.vectors))) != (n_found, n_found):
            raise ValueError(
                f"weights and vectors must be of {n_found} components, which is what "
                f"n_answers={self.n_answers} gives; got {lengths[0]} and {lengths[1]}."
            )
        pending = None if self.pending is None else self.pending.value.shape
        of_components = self.component_answers.value.shape
        if of_components != self.vectors.T.shape or pending not in (None, self.starts.shape):
            raise ValueError("answers must be of the shapes of vectors and of starts.")

    @classmethod
    def begin(
        cls,
        dim: int,
        n_components: int,
        *,
        n_restarts: int = 10,
        max_iter: int = 10,
        random_state: RandomState = None,
    ) -> "OnlinePowerMethod":
        """Return a new method for modes of length `dim`, with random starts."""
        check_at_least(1, n_restarts=n_restarts)
        seed = int(as_generator(random_state).integers(2**32))
        starts = _starts(seed, component=0, dim=dim, n_restarts=n_restarts)
        return cls(
            n_components=n_components, n_restarts=n_restarts, max_iter=max_iter, seed=seed,
            n_answers=0, n_waits=0, log_precision=0.0, weights=np.zeros(0),
            vectors=np.zeros((0, dim)),
            component_answers=BatchMean.of(np.zeros((dim, 0)), noise_variance=0.0, n_samples=1.0),
            starts=starts, pending=None, best_weight=0.0, best_noise_variance=0.0,
            best_vector=starts[:, 0],
        )  # fmt: skip

    @property
    def n_answers_needed(self) -> int:
        """Number of answers until all components are found, unless a question is repeated."""
        return self.n_components * (self.max_iter + 1) + self.n_waits

    @property
    def is_complete(self) -> bool:
        """True once all components are found."""
        return len(self.weights) == self.n_components

    def columns_asked(self) -> Floats:
        """Unit columns u, of shape (d, n), for which T(I, u, u) is needed next."""
        return self.vectors.T if self.is_complete else self.starts

    def tell(
        self, answers: Floats, sigma: float = 0.0, n_samples: float = 1.0, *, may_wait: bool = True
    ) -> None:
        """Take the answers T(I, u, u), as columns, to the last question and move on.

        `sigma` is the deviation of noise in T(u, u, u), and `n_samples` the size of the batch.
        With `may_wait` a noisy answer is kept until the next one, instead of making a step.
        """
        # A step waits until its answers have this precision, relative to that of a typical batch.
        least_precision = 0.5
        answer = BatchMean.of(answers, sigma**2, n_samples)
        self.n_answers += 1
        self.log_precision += (math.log(answer.precision) - self.log_precision) / self.n_answers
        if self.is_complete:
            self._polish(answer)
            return
        self.pending = answer if self.pending is None else self._joined(self.pending, answer)
        enough = math.log(self.pending.precision / least_precision) >= self.log_precision
        if may_wait and not enough:
            self.n_waits += 1
            return
        self._power_step(self.pending)
        self.pending = None

    def components(self) -> tuple[Floats, Floats]:
        """Weights, and unit vectors as rows, found so far, including the current component."""
        weights, vectors = self.weights, self.vectors
        if not self.is_complete:
            weights = np.append(weights, self.best_weight)
            vectors = np.vstack([vectors, self.best_vector])
        order = np.argsort(-weights, kind="stable")
        return weights[order], vectors[order]

    def n_above(self, deviations: float) -> int:
        """Number of components, including the current one, above this many deviations of noise."""
        weights, variances = self.weights, self.component_answers.noise_variance
        if not self.is_complete:
            weights = np.append(weights, self.best_weight)
            variances = np.append(variances, self.best_noise_variance)
        return int((weights > deviations * np.sqrt(variances)).sum())

    @property
    def _n_steps(self) -> int:
        """Number of answers that made a step of their own."""
        return self.n_answers - self.n_waits

    def _power_step(self, answer: BatchMean) -> None:
        """Power step from all starts of the current component; the last step keeps the best."""
        answers = answer.value - _deflation(self.weights, self.vectors)(self.starts)
        values = np.einsum("ij,ij->j", self.starts, answers)
        moved = unit_columns(answers, self.starts)
        best = int(np.argmax(values))
        self.best_weight, self.best_vector = float(values[best]), moved[:, best]
        self.best_noise_variance = float(answer.noise_variance[best])
        self.starts = moved
        if self._n_steps % (self.max_iter + 1) == 0:
            self.weights = np.append(self.weights, self.best_weight)
            self.vectors = np.vstack([self.vectors, self.best_vector])
            of_best = replace(answer, value=answers).column(best)
            self.component_answers = self.component_answers.beside(of_best)
            self.starts = _starts(self.seed, len(self.weights), *self.starts.shape)

    def _polish(self, answer: BatchMean) -> None:
        """Refine all components at once, by the mean of answers for each, this one included."""
        # Subtract from the answer for v_i what other components explain, w_j (v_j' v_i)^2 v_j.
        overlaps = (self.vectors @ self.vectors.T) ** 2
        np.fill_diagonal(overlaps, 0.0)
        answers = answer.value - self.vectors.T @ (self.weights[:, None] * overlaps)
        mean = self._joined(self.component_answers, replace(answer, value=answers))
        vectors = unit_columns(mean.value, self.vectors.T)
        self.weights = np.einsum("ij,ij->j", vectors, mean.value)
        self.component_answers = mean
        self.vectors = vectors.T

    def _joined(self, mean: BatchMean, answer: BatchMean) -> BatchMean:
        """Mean with one more answer to the same question."""
        # T(w, u, u) of symmetric noise is the mean of three equal entries if w is orthogonal to u,
        # so outside the span of the questions it has a third of the variance of T(u, u, u).
        inside = min(mean.value.shape[1] / len(self.starts), 1.0)
        return mean.after(answer, noise_ratio=inside + (1 - inside) / 3)


def _starts(seed: int, component: int, dim: int, n_restarts: int) -> Floats:
    """Random unit columns (dim, n_restarts) from which a component starts."""
    starts = np.random.default_rng([seed, component]).standard_normal((dim, n_restarts))
    return cast(Floats, starts / np.linalg.norm(starts, axis=0))


def unit_columns(columns: Floats, otherwise: Floats | None = None) -> Floats:
    """Scale columns to norm 1; columns of zeros stay, or are replaced by those of `otherwise`."""
    norms = np.linalg.norm(columns, axis=0)
    out = np.zeros_like(columns) if otherwise is None else otherwise.copy()
    return np.divide(columns, norms, out=out, where=norms > 0)
