"""CP completion: mean, biases and components from observed entries, by variational Bayes."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.tensor.alternating import run_sweeps, start_cp
from sktensor_dp.tensor.arrays import (
    LEAST_SIZE,
    Floats,
    RandomState,
    as_generator,
    check_at_least,
    extreme_scale,
)
from sktensor_dp.tensor.entry_passes import EntryPasses
from sktensor_dp.tensor.largest_of_noise import largest_of_noise
from sktensor_dp.tensor.normal_equations import (
    NormalEquations,
    packed_inner,
    packed_products,
    solve_rows,
)
from sktensor_dp.tensor.sorted_entries import (
    SortedEntries,
    add_at,
    as_coordinates,
    as_values,
    cp_values,
    row_effects,
)
from sktensor_dp.tensor.symmetric import diagonal_positions

# Least noise variance relative to that of the targets: without noise the residual sum of squares is
# a rounding error.
_LEAST_NOISE = 1e-14
# Least prior variances: of a component relative to the largest one and to the values, of a bias
# relative to the noise. Smaller ones become subnormal, which is ten times as slow.
_LEAST_COMPONENT, _LEAST_BIAS = 1e-12, 1e-10
# Added to the variances of noise and biases, in case the model fits all values exactly.
_TINY = 1e-200


class Completion:
    """Base of completed tensors: a mean, a bias for each row of each mode, and a low-rank part."""

    mean: float
    biases: list[Floats]
    factors: list[Floats]
    _linear: ClassVar[str]  # field in which the low-rank part is linear: weights or core

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the modes."""
        return tuple(len(bias) for bias in self.biases)

    def predict(self, coordinates: ArrayLike) -> Floats:
        """Values of the model at coordinates.

        Parameters
        ----------
        coordinates : array-like of int, shape (n, n_modes)
            Entries to predict. Biases of rows without observed entries are 0.

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        ValueError
            If coordinates are not integers or lie outside the shape.
        """
        places = as_coordinates(coordinates, self.shape)
        values = self.mean + row_effects(self.biases, places)
        if self.factors[0].shape[1]:
            values += self._multilinear(places)
        return values

    def times(self, scale: float) -> Self:
        """Model of values that are `scale` times as large; its variances may be infinite or 0."""
        model: Any = self
        linear = {name: getattr(self, name) * scale for name in ("mean", self._linear)}
        with np.errstate(over="ignore", under="ignore"):
            return replace(
                model, **linear, biases=[bias * scale for bias in self.biases],
                bias_variances=[variance * scale * scale for variance in model.bias_variances],
                bias_prior_variances=model.bias_prior_variances * scale * scale,
                noise_variance=model.noise_variance * scale * scale,
            )  # fmt: skip

    @abstractmethod
    def _multilinear(self, coordinates: NDArray[np.intp]) -> Floats:
        """Values of the low-rank part at coordinates, of shape (n,), without mean and biases."""


def check_options(rank: int, max_iter: int, tol: float, noise_variance: float | None) -> None:
    """Raise ValueError for options of a completion that are out of range."""
    check_at_least(0, rank=rank, tol=tol)
    check_at_least(1, max_iter=max_iter)
    if noise_variance is not None and not 0 <= noise_variance < np.inf:
        raise ValueError(f"noise_variance must be finite and at least 0; got {noise_variance}.")


@dataclass(frozen=True, eq=False)
class CPCompletion(Completion):
    """Mean, biases and a CP tensor: x = mean + sum_m b_m[i_m] + sum_j w_j prod_m a_mj[i_m].

    Parameters
    ----------
    mean : float
        Constant of the model, to which biases and components are added.
    biases : list of ndarray of shape (n_m,)
        One per mode; 0 for a row never seen.
    factors : list of ndarray of shape (n_m, rank)
        Unit-norm columns; rows never seen are 0. A component that is exactly zero has
        columns of zeros.
    weights : ndarray of shape (rank,)
        Non-negative; decreasing if fitted to values.
    noise_variance : float
        Variance of a value about the model, sampling noise included.
    n_iter : int
        All sweeps done, those of biases alone included.
    converged : bool
        True if the residual variance settled before `max_iter` sweeps, or their number is fixed.
    bias_variances : list of ndarray of shape (n_m,)
        Posterior variances of the biases.
    bias_prior_variances : ndarray of shape (n_modes,)
        Prior variance of each mode's biases.
    factor_prior_variances : ndarray of shape (n_modes, rank)
        Prior variance of the entries of each column of the factors. The ridge penalty of
        a row of ``factors[m] * weights`` is ``noise_variance / (weights**2 *
        factor_prior_variances[m])``.
    """

    mean: float
    biases: list[Floats]
    factors: list[Floats]
    weights: Floats
    noise_variance: float
    n_iter: int
    bias_variances: list[Floats]
    bias_prior_variances: Floats
    factor_prior_variances: Floats
    converged: bool = True

    _linear = "weights"

    @property
    def rank(self) -> int:
        """Number of components."""
        return len(self.weights)

    def _multilinear(self, coordinates: NDArray[np.intp]) -> Floats:
        return cp_values(self.factors, coordinates, self.weights)


def complete_cp(
    entries: SortedEntries,
    values: ArrayLike,
    rank: int,
    *,
    noise_variance: float | None = None,
    max_iter: int = 1000,
    tol: float = 1e-5,
    random_state: RandomState = None,
) -> CPCompletion:
    """Fit mean, biases and `rank` components to observed entries.

    Biases are normal with a variance for each mode, factors with one for each mode and component,
    and values have normal noise. All variances are estimated, so that what noise explains is
    shrunk away, superfluous components included.

    Parameters
    ----------
    entries : SortedEntries
        Coordinates of the observed entries. Equal ones are separate observations.
    values : array-like of shape (n_entries,)
        Their values.
    rank : int
        Number of components; 0 fits the mean and biases alone.
    noise_variance : float, optional
        Known variance of noise in the values, below which the estimate never falls.
    max_iter : int, default=1000
        Most sweeps over all modes with components, after five of mean and biases, and as many
        again after components that noise explains are dropped. At rank 0: of mean and biases.
    tol : float, default=1e-5
        Stop when a sweep changes the residual variance by a smaller fraction; 0 does all
        sweeps.
    random_state : int, Generator, RandomState or None, default=None
        Seeds starts: of eigenvalue iterations and of the decomposition of a core, and the choice
        of entries that this core is fitted to if they are very many.

    Returns
    -------
    CPCompletion
        Posterior means.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the values do not fit the entries or are not
        finite.

    Notes
    -----
    A sweep costs O(n_entries n_modes rank^2) and O(n_m rank^3) for each mode, and little
    memory beyond the entries and the factors. Sweeps start from the components of a core in the
    leading subspaces of the unfoldings (see `start_cp`). They are extrapolated (Anderson
    acceleration), as a bias and a component of one sign slowly take over from each other.

    References
    ----------
    Y. J. Lim, Y. W. Teh, "Variational Bayesian approach to movie rating prediction",
    KDD Cup and Workshop 2007 (two modes). Q. Zhao, L. Zhang, A. Cichocki, "Bayesian CP
    factorization of incomplete tensors with automatic rank determination", IEEE TPAMI
    2015 (more modes).

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.cp_completion import complete_cp
    >>> from sktensor_dp.tensor.sorted_entries import SortedEntries
    >>> u, v = np.arange(1.0, 9.0), np.array([1.0, -2.0, 3.0, 1.0, -1.0, 2.0])
    >>> observed = np.argwhere(np.add.outer(np.arange(8), np.arange(6)) % 4 > 0)
    >>> entries = SortedEntries(observed, (8, 6))
    >>> model = complete_cp(entries, u[observed[:, 0]] * v[observed[:, 1]], rank=1)
    >>> bool(abs(model.predict([[7, 1]])[0] - u[7] * v[1]) < 1e-5)
    True
    """
    # Values count as constant if their standard deviation is below this fraction of the largest.
    constant = 1e-14
    # Sweeps of mean and biases alone, before components are started on their residuals.
    bias_sweeps = 5
    targets = as_values(values, entries)
    check_options(rank, max_iter, tol, noise_variance)
    known_deviation = math.sqrt(noise_variance or 0.0)
    if (scale := extreme_scale(targets, known_deviation)) != 1:
        noise = None if noise_variance is None else noise_variance / scale / scale
        return complete_cp(
            entries, targets / scale, rank, noise_variance=noise,
            max_iter=max_iter, tol=tol, random_state=random_state,
        ).times(scale)  # fmt: skip
    mean, deviation = float(targets.mean()), float(targets.std())
    if deviation <= constant * np.abs(targets).max():
        deviation = 1.0  # what is left of constant values is rounding
    # Keep the known noise representable, in units of the deviation, however small the values.
    deviation = max(deviation, LEAST_SIZE * known_deviation)
    known_variance = (noise_variance or 0.0) / deviation**2
    standardised = targets - mean
    standardised /= deviation
    del values, targets  # frees them if the caller kept none
    posterior = Posterior(entries, standardised, known_variance)
    del standardised
    n_iter, converged = run_sweeps(posterior, bias_sweeps if rank else max_iter, tol)
    if rank:
        start = start_cp(entries, posterior.residuals(), rank, as_generator(random_state))
        posterior.set_factors(start)
        more, converged = run_sweeps(posterior, max_iter, tol, known_variance)
        n_iter += more
        if posterior.drop_noise():
            more, converged = run_sweeps(posterior, max_iter, tol, known_variance)
            n_iter += more
    return posterior.completion(mean, deviation, n_iter, converged)


class Posterior:
    """Mean-field posterior of mean, biases and CP factors of standardised values, by sweeps."""

    def __init__(self, entries: SortedEntries, values: Floats, least_noise_variance: float) -> None:
        self._entries = entries
        self._passes = EntryPasses(entries)
        self._values: Floats | None = values
        self._arranged = self._passes.arrange(values)
        self._counts = [counts.astype(np.float64) for counts in entries.counts]
        self._least_noise_variance = least_noise_variance
        self._mean = 0.0
        self._residual_variance = self._noise_variance = max(1.0, least_noise_variance)
        self._biases = [np.zeros(n) for n in entries.shape]
        self._bias_variances = [np.zeros(n) for n in entries.shape]
        # Sweeps forget this start: from 1 errors would differ by less than .01 %.
        self._bias_prior_variances = np.full(entries.n_modes, 0.1)
        self.set_factors([np.zeros((n, 0)) for n in entries.shape])

    def set_factors(self, factors: list[Floats]) -> None:
        """Start from `factors`, with posterior covariances of 0 of their rows."""
        self._factors = factors
        # Packed upper triangles.
        self._second_moments = [packed_products(a) for a in factors]
        self._factor_prior_variances = [
            np.maximum(np.mean(a**2, axis=0), _LEAST_COMPONENT) for a in factors
        ]

    def residuals(self) -> Floats:
        """Values minus mean and biases, in the order of the entries; may be called once."""
        assert self._values is not None
        values, self._values = self._values, None
        values -= self._mean
        for biases, column in zip(self._biases, self._entries.coordinates.T, strict=True):
            add_at(values, -biases, column)
        return values

    def sweep(self) -> float:
        """Update the biases and factors of all modes in turn; return the variance they leave."""
        for mode in range(self._entries.n_modes):
            self._update(mode)
        self._update_rest()
        return self._residual_variance

    def drop_noise(self) -> bool:
        """Set components that noise alone could explain to 0; return True if there are any."""
        residuals, rank = self._arranged - self._mean, self._factors[0].shape[1]
        for mode, biases in enumerate(self._biases):
            residuals -= self._passes.at(biases, mode)
        for j in range(rank):
            residuals -= self._component(j)
        norms, products = np.zeros((2, rank))
        for j in range(rank):
            values = self._component(j)
            norms[j], products[j] = math.sqrt(values @ values), residuals @ values
        # With residuals e, a component of values v fits best if it is 1 + v'e / |v|^2 times as
        # large. Its norm is then (|v|^2 + v'e) / |v|.
        n_observed = [float(np.count_nonzero(counts)) for counts in self._counts]
        largest_norm = math.sqrt(self._noise_variance) * largest_of_noise(*n_observed)
        kept = norms**2 + products > largest_norm * norms
        for mode in range(len(self._factors)):
            self._factors[mode] = self._factors[mode] * kept
            self._second_moments[mode] *= packed_products(kept[None].astype(np.float64))
            self._factor_prior_variances[mode][~kept] = _LEAST_COMPONENT
        return bool((norms[~kept] > 0).any())

    def _component(self, j: int) -> Floats:
        """Values of component `j` at the entries, arranged."""
        values = np.ones(self._entries.n_entries)
        for mode, factor in enumerate(self._factors):
            values *= self._passes.at(np.ascontiguousarray(factor[:, j]), mode)
        return values

    def state(self) -> list[Floats]:
        """Posterior means of mean, biases and factors: the parameters that sweeps extrapolate."""
        return [np.array([self._mean]), *self._biases, *self._factors]

    def restore(self, state: Sequence[Floats], variance: float) -> None:
        """Replace the posterior means by `state`, and the noise variance; covariances stay."""
        n_modes = self._entries.n_modes
        self._noise_variance = max(variance, self._least_noise_variance)
        self._mean, self._biases = float(state[0][0]), list(state[1 : 1 + n_modes])
        for mode, factor in enumerate(state[1 + n_modes :]):
            moved = packed_products(factor) - packed_products(self._factors[mode])
            self._second_moments[mode] = self._second_moments[mode] + moved
            self._factors[mode] = factor

    def _update(self, mode: int) -> None:
        """Update a mode's biases, factor and their variances given others; then mean and noise."""
        # Columns of a smaller mean square become 0.
        negligible = 1e-24
        counts, noise = self._counts[mode], self._noise_variance
        # Values less the mean and the other modes' biases, in the order of `_arranged`.
        targets = self._arranged - self._mean
        for k in self._entries.others(mode):
            targets -= self._passes.at(self._biases[k], k)
        sums = self._passes.row_sums(targets, mode)
        no_columns = np.zeros((len(counts), 0))
        equations = NormalEquations(no_columns, no_columns, no_columns)
        if self._factors[mode].shape[1]:
            equations = self._equations(mode, targets)
        bias_ridge = noise / self._bias_prior_variances[mode]
        ridge = noise / self._factor_prior_variances[mode]
        bias, rows, moments = solve_rows(equations, counts, sums, bias_ridge, ridge)
        rows[:, np.mean(rows**2, axis=0) < negligible] = 0.0
        # E[a a'] of a row a: its covariance, noise times the inverse, plus its mean's square.
        moments *= noise
        moments += packed_products(rows)
        self._factors[mode], self._second_moments[mode] = rows, moments
        # Mean field: the posterior of a bias is independent of that of its row's factor.
        self._biases[mode], self._bias_variances[mode] = bias, noise / (counts + bias_ridge)
        self._update_prior_variances(mode)
        self._update_mean_and_noise(mode, sums, float(targets @ targets), equations)

    def _update_prior_variances(self, mode: int) -> None:
        """Set a mode's prior variances to expected mean squares over its rows with entries."""
        observed, rank = self._entries.counts[mode] > 0, self._factors[mode].shape[1]
        squares = self._biases[mode][observed] ** 2 + self._bias_variances[mode][observed]
        least = _LEAST_BIAS * self._noise_variance + _TINY
        self._bias_prior_variances[mode] = max(np.mean(squares), least)
        if rank:
            squares = self._second_moments[mode][:, diagonal_positions(rank)][observed]
            mean_squares = squares.mean(axis=0)
            least = _LEAST_COMPONENT * max(float(mean_squares.max()), 1.0)
            self._factor_prior_variances[mode] = np.maximum(mean_squares, least)

    def _equations(self, mode: int, targets: Floats) -> NormalEquations:
        """Normal equations of a mode's factor."""
        return self._passes.equations(mode, self._factors, targets, self._second_moments)

    def _update_mean_and_noise(
        self, mode: int, sums: Floats, target_squares: float, equations: NormalEquations
    ) -> None:
        """Update mean and noise variance after an update of `mode`.

        `sums` of targets are by row, and `target_squares` is the sum of all their squares.
        """
        bias, rows, counts = self._biases[mode], self._factors[mode], self._counts[mode]
        component_sums = np.sum(equations.design * rows, axis=1)
        # Expected sum of (x - b - z'a)^2 in each row, without that of x^2:
        # n b^2 + 2 b (sum z'a - sum x) + tr(sum z z' E[a a']) - 2 sum x z'a.
        squares = counts * bias**2 + 2.0 * bias * (component_sums - sums)
        squares += packed_inner(equations.gram, self._second_moments[mode], rows.shape[1])
        squares -= 2.0 * np.sum(equations.moment * rows, axis=1)
        residual_sums = sums - counts * bias - component_sums
        n = self._entries.n_entries
        # A mean that is larger by `shift` changes residuals e to e - shift.
        shift = float(residual_sums.sum()) / n
        self._mean += shift
        squares += shift * (shift * counts - 2.0 * residual_sums)
        squares_total = target_squares + float(squares.sum())
        for of_mode, variances in zip(self._counts, self._bias_variances, strict=True):
            squares_total += float(of_mode @ variances)
        # The residual variance may be below known noise, the noise variance not.
        self._residual_variance = max(squares_total / n, _LEAST_NOISE * target_squares / n + _TINY)
        self._noise_variance = max(self._residual_variance, self._least_noise_variance)

    def _update_rest(self) -> None:
        """Update what no single mode has: scales of columns, for equal prior variances of modes."""
        deviations = np.sqrt(self._factor_prior_variances)
        common = np.exp(np.mean(np.log(deviations), axis=0))
        for mode, scale in enumerate(common / deviations):
            self._factors[mode] = self._factors[mode] * scale
            self._second_moments[mode] *= packed_products(scale[None])
            self._factor_prior_variances[mode] = self._factor_prior_variances[mode] * scale**2

    def completion(
        self, mean: float, deviation: float, n_iter: int, converged: bool
    ) -> CPCompletion:
        """Fitted model in the units of the values, components by decreasing weight.

        Standardised values were values less `mean`, over `deviation`.
        """
        norms = np.stack([np.linalg.norm(a, axis=0) for a in self._factors])
        order = np.argsort(-np.prod(norms, axis=0), kind="stable")
        norms = norms[:, order]
        safe = np.where(norms > 0, norms, 1.0)
        factors = [a[:, order] / norm for a, norm in zip(self._factors, safe, strict=True)]
        # Factors have unit columns: weights hold the norms and the deviation, and prior variances
        # are divided by squared norms.
        return CPCompletion(
            mean=mean + deviation * self._mean, biases=[deviation * b for b in self._biases],
            factors=factors, weights=deviation * np.prod(norms, axis=0), n_iter=n_iter,
            noise_variance=deviation**2 * self._noise_variance, converged=converged,
            bias_variances=[deviation**2 * v for v in self._bias_variances],
            bias_prior_variances=deviation**2 * self._bias_prior_variances,
            factor_prior_variances=np.stack(self._factor_prior_variances)[:, order]
            * (norms > 0) / safe**2,
        )  # fmt: skip


def with_factors(model: CPCompletion, factors: Sequence[Floats]) -> CPCompletion:
    """CP model with new factors, scaled to unit columns and sorted by decreasing weight."""
    norms = np.stack([np.linalg.norm(factor, axis=0) for factor in factors])
    weights = np.prod(norms, axis=0)
    order = np.argsort(-weights, kind="stable")
    safe = np.where(norms > 0, norms, 1.0)
    scaled = [factor / size for factor, size in zip(factors, safe, strict=True)]
    variances = np.stack([np.mean(factor**2, axis=0) for factor in scaled])
    return replace(
        model, factors=[factor[:, order] for factor in scaled], weights=weights[order],
        factor_prior_variances=variances[:, order],
    )  # fmt: skip
