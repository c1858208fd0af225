"""Starts of CP and Tucker models from unfoldings, and the loop of sweeps, which it accelerates.

The sweeps are in `cp_completion.py` and `tucker_completion.py`.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Protocol

import numpy as np
import scipy.fft
import scipy.sparse

from sktensor_dp.tensor.arrays import Floats, spans
from sktensor_dp.tensor.eigenpairs import top_eigenpairs
from sktensor_dp.tensor.normal_equations import core_equations
from sktensor_dp.tensor.sorted_entries import SortedEntries, kronecker_rows


def mode_subspaces(
    entries: SortedEntries, values: Floats, ranks: Sequence[int], rng: np.random.Generator
) -> list[Floats]:
    """Leading left singular vectors (n_m, r_m) of each unfolding of the zero-filled tensor."""
    # Largest length of a mode for which the Gram matrix of its unfolding is formed.
    dense_gram = 600
    # Gram matrices without their diagonal, whose squares depend on numbers of entries of rows and
    # on noise; products of two different entries have the signal's expectation (Xia & Yuan, "On
    # polynomial time methods for exact low-rank tensor completion", FoCM 2019).
    subspaces = []
    for mode, rank in enumerate(ranks):
        unfolded = _unfold(entries, values, mode)
        length = entries.shape[mode]
        if length <= dense_gram:
            gram = (unfolded @ unfolded.T).toarray()
            np.fill_diagonal(gram, 0.0)
            _, vectors = top_eigenpairs(gram, rank)
        else:
            squares = np.asarray(unfolded.multiply(unfolded).sum(axis=1))
            product = partial(_off_diagonal_product, unfolded, squares)
            _, vectors = top_eigenpairs(product, rank, dim=length, tol=1e-5, random_state=rng)
        subspaces.append(vectors)
    return subspaces


def _off_diagonal_product(A: scipy.sparse.csr_matrix, squares: Floats, V: Floats) -> Floats:
    """``(A A' - diag(squares)) V``, where `squares` are the diagonal of the Gram matrix A A'."""
    return A @ (A.T @ V) - squares * V


def fit_core(
    entries: SortedEntries, values: Floats, factors: Sequence[Floats], rng: np.random.Generator
) -> Floats:
    """Core of a Tucker model with given factors: by ridge regression, or a projection if large."""
    # Normal equations of a larger core would take over 8 MB and most of the time.
    most_solved = 1024
    # Most multiplications for the normal equations, but at least 20 entries are used per unknown.
    core_multiplications = 2**34
    ranks = [factor.shape[1] for factor in factors]
    size, n = math.prod(ranks), entries.n_entries
    if size > most_solved:
        # Project the zero-filled tensor; divide by the fraction of its cells that have entries.
        moment = np.zeros(size)
        for span in spans(n, size):
            moment += values[span] @ kronecker_rows(factors, entries.coordinates[span])
        return (moment * (math.prod(entries.shape) / n)).reshape(ranks)
    n_used = min(n, max(20 * size, core_multiplications // size**2))
    if n_used < n:
        sample = rng.choice(n, n_used, replace=False)
        entries = SortedEntries(entries.coordinates[sample], entries.shape)
        values = values[sample]
    gram, moment, _ = core_equations(entries, factors, values)
    # Ridge s / v, with the noise variance s of values and the prior variance v of entries of the
    # core. A choice: the core is assumed to explain as much as noise does, v * trace / n_used = s.
    gram[np.diag_indices(size)] += np.trace(gram) / n_used + np.finfo(float).tiny
    return np.linalg.solve(gram, moment).reshape(ranks)


def core_components(core: Floats, rank: int, rng: np.random.Generator) -> list[Floats]:
    """CP factors (length, rank) of a small dense tensor.

    For a matrix by singular vectors; else by ALS, the best of several random starts.
    """
    norm = float(np.linalg.norm(core))
    if norm == 0.0:
        return [np.zeros((n, rank)) for n in core.shape]
    if core.ndim == 2:
        # Of a matrix only the sum of components is unique. Rotate singular vectors to components of
        # similar size, by a DCT, as shrinkage would remove small ones before they are fitted.
        left, values, right = np.linalg.svd(core, full_matrices=False)
        k = min(rank, len(values))
        rotation = scipy.fft.dct(np.eye(rank), norm="ortho")[:k]
        roots = np.sqrt(values[:k])
        return [(left[:, :k] * roots) @ rotation, (right[:k].T * roots) @ rotation]
    n_starts = 10
    # Drawn start by start, then stacked by mode: (n_starts, length, rank).
    drawn = [[rng.standard_normal((n, rank)) for n in core.shape] for _ in range(n_starts)]
    starts = [np.stack(of_mode) for of_mode in zip(*drawn, strict=True)]
    errors, factors = _als(core / norm, starts)
    best = int(np.argmin(errors))
    return [factor[best] * norm ** (1 / core.ndim) for factor in factors]


def start_cp(
    entries: SortedEntries, values: Floats, rank: int, rng: np.random.Generator
) -> list[Floats]:
    """Starting factors of a CP model: components of the core in the subspaces of the modes."""
    # Largest core of three modes or more whose components are computed.
    largest_core = 4096
    # Sweeps from random factors would stop at merged components; those of the core are separate.
    # The small number: the root of an exact power may be rounded to just below an integer.
    most = rank if entries.n_modes == 2 else int(largest_core ** (1 / entries.n_modes) + 1e-9)
    ranks = [min(rank, length, max(most, 1)) for length in entries.shape]
    subspaces = mode_subspaces(entries, values, ranks, rng)
    core = fit_core(entries, values, subspaces, rng)
    components = core_components(core, rank, rng)
    factors = [frame @ factor for frame, factor in zip(subspaces, components, strict=True)]
    # Give every component the same scale in all modes.
    sizes = np.array([np.sqrt(np.mean(factor**2, axis=0)) for factor in factors]) + 1e-300
    common = np.exp(np.mean(np.log(sizes), axis=0))
    return [factor * (common / size) for factor, size in zip(factors, sizes, strict=True)]


def _unfold(entries: SortedEntries, values: Floats, mode: int) -> scipy.sparse.csr_matrix:
    """Sparse unfolding of the zero-filled tensor along `mode`; columns of zeros may be left out."""
    columns = np.zeros(entries.n_entries, dtype=np.int64)
    n_columns = 1
    for k in entries.others(mode):
        columns = columns * entries.shape[k] + entries.coordinates[:, k]
        n_columns *= entries.shape[k]
        if n_columns > entries.n_entries:
            # Renumber columns: the product of the lengths may overflow.
            distinct, columns = np.unique(columns, return_inverse=True)
            n_columns = len(distinct)
    rows = entries.coordinates[:, mode]
    return scipy.sparse.csr_matrix((values, (rows, columns)), (entries.shape[mode], n_columns))


def _als(core: Floats, starts: list[Floats]) -> tuple[Floats, list[Floats]]:
    """Squared errors (n_starts,) and factors of a CP decomposition of a tensor of norm 1 by ALS."""
    # `starts` and factors have an array (n_starts, length, rank) for each mode. All starts are
    # updated together until the last converges: for small matrices calls take most of the time.
    factors = list(starts)
    rank = starts[0].shape[2]
    unfoldings = [np.moveaxis(core, m, 0).reshape(n, -1) for m, n in enumerate(core.shape)]
    # Ridge, to be multiplied by a Gram matrix's trace, and the ridge of one that is 0.
    ridge, of_zero = 1e-9 / rank * np.eye(rank), 1e-100 * np.eye(rank)
    errors = np.full(len(starts[0]), np.inf)
    most_sweeps = 200
    for _ in range(most_sweeps):
        for mode, unfolded in enumerate(unfoldings):
            # For each start the Khatri-Rao product of the other factors, and its Gram matrix.
            design, gram = np.ones((1, 1, rank)), np.ones((1, rank, rank))
            for k, factor in enumerate(factors):
                if k != mode:
                    design = design[:, :, None, :] * factor[:, None, :, :]
                    design = design.reshape(len(factor), -1, rank)
                    gram = gram * (factor.transpose(0, 2, 1) @ factor)
            traces = np.trace(gram, axis1=1, axis2=2)[:, None, None]
            gram = gram + ridge * traces + of_zero
            moments = (unfolded @ design).transpose(0, 2, 1)
            factors[mode] = np.linalg.solve(gram, moments).transpose(0, 2, 1)
        # Errors by the last mode, whose `design` and unfolding are at hand.
        fitted = factors[mode] @ design.transpose(0, 2, 1)
        previous, errors = errors, ((unfolded - fitted) ** 2).sum(axis=(1, 2))
        if np.all(previous - errors < 1e-10 * np.minimum(previous, 1.0)):
            break
    return errors, factors


class Alternation(Protocol):
    """Alternating minimisation that `run_sweeps` accelerates."""

    def sweep(self) -> float:
        """Update all parameters once; return the variance of residuals, which falls."""

    def state(self) -> list[Floats]:
        """Return the parameters to extrapolate, as a list of arrays."""

    def restore(self, state: Sequence[Floats], variance: float) -> None:
        """Replace the parameters, which leave this variance of residuals."""


def run_sweeps(
    alternation: Alternation, max_iter: int, tol: float, known_variance: float = 0.0
) -> tuple[int, bool]:
    """Sweep until the residual variance settles; return the number of sweeps, and True if it did.

    It settles once a sweep changes it by less than `tol` of itself or of the `known_variance`.
    """
    # Number of the sweep whose state is the first to extrapolate from.
    first_sweeps = 4
    anderson, starts_at_sweep = _Anderson(), True  # whether the sweep begins where the last ended
    start, variance = _flat(alternation.state()), np.inf  # of the next sweep
    for n_iter in range(1, max_iter + 1):
        variance_before, variance = variance, alternation.sweep()
        end = alternation.state()
        # Targets have unit variance: where next to nothing is left, `tol` is absolute.
        settles = abs(variance_before - variance) < tol * max(variance, known_variance, tol)
        if settles and starts_at_sweep and n_iter >= first_sweeps:
            return n_iter, True
        # A small change after an extrapolation is no convergence: the next sweep has to start where
        # this one ended. The state returned is always one that a sweep made.
        starts_at_sweep = settles or n_iter < first_sweeps or n_iter == max_iter
        if starts_at_sweep:
            start = _flat(end)
        else:
            start, variance = anderson.next(start, _flat(end), variance)
            flat = np.split(start, np.cumsum([part.size for part in end])[:-1])
            state = [part.reshape(like.shape) for part, like in zip(flat, end, strict=True)]
            alternation.restore(state, variance)
    return max_iter, False


class _Anderson:
    """Anderson acceleration; after an extrapolation that made it worse, a plain step is next."""

    def __init__(self) -> None:
        self._ends: list[Floats] = []  # states after the last steps
        self._moves: list[Floats] = []  # of these steps, from start to end
        self._objective = np.inf  # after the last of them

    def next(self, start: Floats, end: Floats, objective: float) -> tuple[Floats, float]:
        """Next state and its objective, from the states at `start` and `end` of a step."""
        # Number of steps that an extrapolation combines, and the ridge of its least squares
        # relative to the trace.
        memory, ridge = 5, 1e-10
        # The step from an extrapolated state made it worse: begin where the step before ended.
        if objective > self._objective and len(self._ends) > 1:
            plain = self._ends[-1]
            self._ends, self._moves = [], []
            return plain, self._objective
        self._objective = objective
        self._ends = [*self._ends[-memory:], end]
        self._moves = [*self._moves[-memory:], end - start]
        if len(self._ends) == 1:
            return end, objective
        # With differences F of moves, the weights c = (F F')^-1 F move leave least of the last move
        # by move - c F; subtract the same combination of differences of ends (Walker & Ni 2011).
        differences = np.diff(self._moves, axis=0)
        gram = differences @ differences.T
        gram[np.diag_indices(len(gram))] += ridge * np.trace(gram) + np.finfo(float).tiny
        weights = np.linalg.solve(gram, differences @ self._moves[-1])
        return end - weights @ np.diff(self._ends, axis=0), objective


def _flat(state: Sequence[Floats]) -> Floats:
    """Concatenate arrays of parameters to one vector."""
    return np.concatenate([part.ravel() for part in state])
