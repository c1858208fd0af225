"""Tucker completion: mean, biases, factors and a core; and the standard form of fitted models."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.tensor.alternating import fit_core, mode_subspaces, run_sweeps
from sktensor_dp.tensor.arrays import LEAST_SIZE, Floats, RandomState, as_generator, extreme_scale
from sktensor_dp.tensor.cp_completion import Completion, CPCompletion, check_options, complete_cp
from sktensor_dp.tensor.normal_equations import core_equations, normal_equations, solve_rows
from sktensor_dp.tensor.sorted_entries import SortedEntries, as_values, row_effects, tucker_values
from sktensor_dp.tensor.symmetric import diagonal_positions

# Least variances relative to that of the targets; smaller ones are rounding errors.
_LEAST_NOISE, _LEAST_VARIANCE = 1e-14, 1e-12


@dataclass(frozen=True, eq=False)
class TuckerCompletion(Completion):
    """Mean, biases and a Tucker tensor: x = mean + sum_m b_m[i_m] + core (x_m) U_m[i_m].

    Parameters
    ----------
    mean : float
        Constant of the model, to which biases and the Tucker tensor are added.
    biases : list of ndarray of shape (n_m,)
        One per mode; 0 for a row never seen.
    factors : list of ndarray of shape (n_m, r_m)
        Orthonormal columns.
    core : ndarray of shape (r_1, ..., r_M)
        Its slices of one mode are orthogonal, by decreasing norm. Zero where the
        entries show nothing beyond noise.
    noise_variance : float
        Variance of a value about the model.
    n_iter : int
        Sweeps done.
    bias_variances : list of ndarray of shape (n_m,)
        Posterior variances of the biases.
    bias_prior_variances : ndarray of shape (n_modes,)
        Prior variance of each mode's biases.
    converged : bool
        True if the noise variance settled before `max_iter` sweeps.
    """

    mean: float
    biases: list[Floats]
    factors: list[Floats]
    core: Floats
    noise_variance: float
    n_iter: int
    bias_variances: list[Floats]
    bias_prior_variances: Floats
    converged: bool = True

    _linear = "core"

    def _multilinear(self, coordinates: NDArray[np.intp]) -> Floats:
        return tucker_values(self.core, self.factors, coordinates)


def complete_tucker(
    entries: SortedEntries,
    values: ArrayLike,
    ranks: Sequence[int],
    *,
    noise_variance: float | None = None,
    max_iter: int = 1000,
    tol: float = 1e-5,
    random_state: RandomState = None,
) -> TuckerCompletion:
    """Fit mean, biases, factors and a core to observed entries.

    Alternating ridge regression from the leading subspaces of the unfoldings, where a CP
    completion of the same values finds components, with as many columns of each factor at most;
    otherwise the core is zero. Of a matrix it is the CP completion. Rows of a
    factor are normal with unit variance in the scale where factors have columns of norm
    sqrt(n_m); variances of the biases, the core and the noise are estimated.

    Parameters
    ----------
    entries : SortedEntries
        Coordinates of the observed entries. Equal ones are separate observations.
    values : array-like of shape (n_entries,)
        Their values.
    ranks : sequence of int
        Columns of each factor, between 1 and the length of the mode.
    noise_variance : float, optional
        Known variance of noise in the values, below which the estimate never falls.
    max_iter : int, default=1000
        Most sweeps over all modes and the core.
    tol : float, default=1e-5
        Stop when a sweep changes the noise variance by a smaller share; 0 does all
        sweeps.
    random_state : int, Generator, RandomState or None, default=None
        Chooses starts of eigenvalue iterations and, of very many entries, those that
        the first core is fitted to.

    Returns
    -------
    TuckerCompletion
        With orthonormal factors.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the values do not fit the entries or are not
        finite.

    Notes
    -----
    A sweep costs O(n_entries (prod r_m / r_k)^2 + n_k (prod r_m)^2 + (prod r_m)^3) for the core,
    k the mode for which that is least.

    References
    ----------
    L. De Lathauwer, B. De Moor, J. Vandewalle, "A multilinear singular value
    decomposition", SIAM J. Matrix Analysis and Applications 2000 (form of the core).

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.sorted_entries import SortedEntries
    >>> from sktensor_dp.tensor.tucker_completion import complete_tucker
    >>> u, v = np.arange(1.0, 9.0), np.array([1.0, -2.0, 3.0, 1.0, -1.0, 2.0])
    >>> observed = np.argwhere(np.add.outer(np.arange(8), np.arange(6)) % 4 > 0)
    >>> entries = SortedEntries(observed, (8, 6))
    >>> values = u[observed[:, 0]] * v[observed[:, 1]]
    >>> model = complete_tucker(entries, values, (1, 1), max_iter=100)
    >>> bool(abs(model.predict([[7, 1]])[0] - u[7] * v[1]) < 1e-4)
    True
    """
    targets = as_values(values, entries)
    if len(ranks) != entries.n_modes:
        raise ValueError(f"ranks must be {entries.n_modes} numbers, one per mode; got {ranks}.")
    if any(not 1 <= rank <= length for rank, length in zip(ranks, entries.shape, strict=True)):
        raise ValueError(
            f"ranks must be at least 1 and at most the lengths {entries.shape}; got {ranks}."
        )
    check_options(max(ranks), max_iter, tol, noise_variance)
    known_deviation = math.sqrt(noise_variance or 0.0)
    if (scale := extreme_scale(targets, known_deviation)) != 1:
        noise = None if noise_variance is None else noise_variance / scale / scale
        return complete_tucker(
            entries, targets / scale, ranks, noise_variance=noise,
            max_iter=max_iter, tol=tol, random_state=random_state,
        ).times(scale)  # fmt: skip
    rng = as_generator(random_state)
    # Largest rank of an unfolding of the core: each is at most the product of the others.
    size = math.prod(ranks)
    start = complete_cp(
        entries, targets, max(min(rank, size // rank) for rank in ranks),
        noise_variance=noise_variance, max_iter=max_iter, tol=tol, random_state=rng,
    )  # fmt: skip
    residuals = targets - start.mean - entries.at_entries(start.biases)
    deviation = float(residuals.std())
    rounding = max(_LEAST_NOISE * np.abs(targets).max(), LEAST_SIZE * known_deviation)
    # Matrices of one rank have both forms, and CP's components are shrunk by their own errors.
    if entries.n_modes == 2 or deviation <= rounding or not start.weights.any():
        return tucker_of_cp(start, ranks)
    # Components that CP does not find are noise: a factor of each mode has at most as many columns.
    fitted_ranks = [min(rank, int(np.count_nonzero(start.weights))) for rank in ranks]
    fit = _Alternation(entries, start, targets, deviation, noise_variance or 0.0)
    fit.start(mode_subspaces(entries, residuals / deviation, fitted_ranks, rng), rng)
    n_iter, converged = run_sweeps(fit, max_iter, tol)
    model = fit.completion(n_iter, converged)
    if fitted_ranks == [*ranks]:
        return model
    return with_orthonormal_factors(model, ranks, model.factors, model.core)


class _Alternation:
    """Alternating ridge regression of factors, biases and core of standardised values."""

    def __init__(
        self,
        entries: SortedEntries,
        start: CPCompletion,
        values: Floats,
        deviation: float,
        least_noise_variance: float,
    ) -> None:
        self._entries = entries
        self._deviation = deviation
        self._offset = start.mean
        self._values = (values - start.mean) / deviation
        self._sorted_values = [
            self._values[entries.fibres(m).order] for m in range(entries.n_modes)
        ]
        self._counts = [counts.astype(np.float64) for counts in entries.counts]
        self._mean = 0.0
        self._biases = [bias / deviation for bias in start.biases]
        self._bias_prior_variances = np.maximum(
            start.bias_prior_variances / deviation**2, _LEAST_VARIANCE
        )
        self._bias_variances = [variances / deviation**2 for variances in start.bias_variances]
        self._least_noise_variance = max(least_noise_variance / deviation**2, _LEAST_NOISE)
        self._noise_variance = max(1.0, self._least_noise_variance)
        self._n_effective = np.zeros(entries.n_modes)  # effective parameters of each factor
        # Norm of the factors' columns: with it their rows have unit variance.
        self._roots = [math.sqrt(n) for n in entries.shape]

    def start(self, subspaces: Sequence[Floats], rng: np.random.Generator) -> None:
        """Begin with orthonormal factors `subspaces`, and the core that fits the values best."""
        targets = self._values - self._entries.at_entries(self._biases)
        core = fit_core(self._entries, targets, subspaces, rng)
        self._factors = [U * root for U, root in zip(subspaces, self._roots, strict=True)]
        self._core = core / math.prod(self._roots)

    def sweep(self) -> float:
        """Update the factors of all modes in turn, then the core; return the noise variance."""
        for mode in range(self._entries.n_modes):
            self._update_factor(mode)
        self._update_core()
        return self._noise_variance

    def state(self) -> list[Floats]:
        """Mean, biases, factors and core: the parameters that sweeps extrapolate."""
        return [np.array([self._mean]), *self._biases, *self._factors, self._core]

    def restore(self, state: Sequence[Floats], variance: float) -> None:
        """Replace the parameters by an extrapolated `state`, and the noise variance."""
        n_modes, self._noise_variance = self._entries.n_modes, variance
        self._mean, self._core = float(state[0][0]), state[-1]
        self._biases, self._factors = list(state[1 : 1 + n_modes]), list(state[1 + n_modes : -1])

    def completion(self, n_iter: int, converged: bool) -> TuckerCompletion:
        """Fitted model in the units of the values, its core in the form of a HOSVD."""
        core = self._core * math.prod(self._roots) * self._deviation
        orthonormal = [A / root for A, root in zip(self._factors, self._roots, strict=True)]
        factors, core = hosvd_form(orthonormal, core)
        return TuckerCompletion(
            mean=self._offset + self._deviation * self._mean,
            biases=[self._deviation * b for b in self._biases], factors=factors, core=core,
            noise_variance=self._deviation**2 * self._noise_variance, n_iter=n_iter,
            bias_variances=[self._deviation**2 * v for v in self._bias_variances],
            bias_prior_variances=self._deviation**2 * self._bias_prior_variances,
            converged=converged,
        )  # fmt: skip

    def _update_factor(self, mode: int) -> None:
        """Update the rows and biases of a mode given the rest; the core takes up their scale."""
        entries, counts, others = self._entries, self._counts[mode], self._entries.others(mode)
        fibres = entries.fibres(mode)
        of_fibres = row_effects([self._biases[k] for k in others], fibres.coordinates)
        targets = self._sorted_values[mode] - np.repeat(self._mean + of_fibres, fibres.sizes)
        rank = self._core.shape[mode]
        unfolded = np.moveaxis(self._core, mode, 0).reshape(rank, -1)
        equations = normal_equations(fibres, [self._factors[k] for k in others], targets, unfolded)
        sums = np.bincount(fibres.rows, targets, minlength=len(counts)).astype(np.float64)
        bias_ridge = self._noise_variance / self._bias_prior_variances[mode]
        ridge = np.full(rank, self._noise_variance)
        bias, rows, inverse = solve_rows(equations, counts, sums, bias_ridge, ridge)
        # Of a ridge regression: the trace of G (G + ridge)^-1, that is r - ridge tr (G + ridge)^-1.
        shrunk = self._noise_variance * inverse[:, diagonal_positions(rank)].sum()
        self._n_effective[mode] = max(rows.size - shrunk, 0.0)
        variances = self._noise_variance / (counts + bias_ridge)
        self._biases[mode], self._bias_variances[mode] = bias, variances
        squares = (bias**2 + variances)[counts > 0]
        self._bias_prior_variances[mode] = max(squares.mean(), _LEAST_VARIANCE)
        Q, R = np.linalg.qr(rows / self._roots[mode])
        self._factors[mode] = Q * self._roots[mode]
        self._core = mode_product(self._core, R, mode)

    def _update_core(self) -> None:
        """Update mean and core by ridge regression, and the variances of core and noise by EM."""
        # Number of updates of the prior variance of the core at each fit of the core.
        variance_steps = 5
        # Least fraction of the entries that counts as degrees of freedom of the residuals.
        least_freedom = 0.1
        entries, size = self._entries, self._core.size
        targets = self._values - entries.at_entries(self._biases)
        gram, moment, design_sum = core_equations(entries, self._factors, targets)
        # Rotate to coordinates in which the entries of the core are independent.
        eigenvalues, frame = np.linalg.eigh(gram)
        eigenvalues = np.maximum(eigenvalues, 0.0)
        core, moment, design_sum = (
            frame.T @ part for part in (self._core.ravel(), moment, design_sum)
        )
        n = entries.n_entries
        prior_variance = max(float(np.mean(core**2)), _LEAST_VARIANCE)
        for _ in range(variance_steps):
            self._mean = float(targets.sum() - design_sum @ core) / n
            variances = 1 / (eigenvalues / self._noise_variance + 1 / prior_variance)
            core = variances * (moment - self._mean * design_sum) / self._noise_variance
            prior_variance = max(float(np.mean(core**2 + variances)), _LEAST_VARIANCE)
        self._core = (frame @ core).reshape(self._core.shape)
        centred = targets - self._mean
        # Squared residuals: |x - D c|^2 = |x|^2 - 2 c' D' x + c' D' D c, D the design.
        squares = centred @ centred - 2.0 * core @ (moment - self._mean * design_sum)
        squares_total = max(float(squares + eigenvalues @ core**2), 0.0)
        freedom = max(n - self._n_effective.sum() - size, least_freedom * n)
        self._noise_variance = max(squares_total / freedom, self._least_noise_variance)


def hosvd_form(factors: Sequence[Floats], core: Floats) -> tuple[list[Floats], Floats]:
    """Factors and core of the same tensor, whose slices of each mode are orthogonal (HOSVD)."""
    rotations = [
        np.linalg.svd(np.moveaxis(core, mode, 0).reshape(rank, -1))[0]
        for mode, rank in enumerate(core.shape)
    ]
    for mode, rotation in enumerate(rotations):
        core = mode_product(core, rotation.T, mode)
    return [U @ rotation for U, rotation in zip(factors, rotations, strict=True)], core


def mode_product(core: Floats, matrix: Floats, mode: int) -> Floats:
    """Product of a tensor with `matrix` along one mode: matrix times the mode's unfolding."""
    return np.moveaxis(np.tensordot(matrix, core, axes=(1, mode)), 0, mode)


def with_orthonormal_factors(
    model: CPCompletion | TuckerCompletion,
    ranks: Sequence[int],
    factors: Sequence[Floats],
    core: Floats,
) -> TuckerCompletion:
    """Tucker model in HOSVD form of `factors` and `core`, with mean and biases of `model`."""
    # A factor A of fewer columns than its rank is padded: A = Q R, and the core takes up R.
    orthonormal = []
    for mode, (factor, rank) in enumerate(zip(factors, ranks, strict=True)):
        n_rows, n_columns = factor.shape
        padded = np.concatenate([factor, np.eye(n_rows, rank)], axis=1)
        frame, triangle = np.linalg.qr(padded)
        orthonormal.append(frame[:, :rank])
        core = mode_product(core, triangle[:rank, :n_columns], mode)
    orthonormal, core = hosvd_form(orthonormal, core)
    return TuckerCompletion(
        model.mean, model.biases, orthonormal, core, model.noise_variance, model.n_iter,
        model.bias_variances, model.bias_prior_variances, model.converged,
    )  # fmt: skip


def tucker_of_cp(model: CPCompletion, ranks: Sequence[int]) -> TuckerCompletion:
    """Tucker model of the tensor of a CP model."""
    core = np.zeros((model.rank,) * len(ranks))
    core[(np.arange(model.rank),) * len(ranks)] = model.weights
    return with_orthonormal_factors(model, ranks, model.factors, core)
