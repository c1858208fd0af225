"""Tucker completion: mean, biases, factors and a core; and the standard form of fitted models."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.tensor.alternating import fit_core, mode_subspaces, run_sweeps
from sktensor_dp.tensor.arrays import LEAST_SIZE, Floats, RandomState, as_generator, extreme_scale
from sktensor_dp.tensor.cp_completion import (
    Completion,
    CPCompletion,
    Posterior,
    check_options,
    complete_cp,
)
from sktensor_dp.tensor.normal_equations import NormalEquations, packed_places, packed_products
from sktensor_dp.tensor.sorted_entries import SortedEntries, as_values, mode_product, tucker_values

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
        All sweeps done, those of the CP completion included.
    bias_variances : list of ndarray of shape (n_m,)
        Posterior variances of the biases.
    bias_prior_variances : ndarray of shape (n_modes,)
        Prior variance of each mode's biases.
    unit_covariance : ndarray of shape (r_1, r_1)
        Prior covariance of a row of the first factor.
    converged : bool
        True if the residual variance settled before `max_iter` sweeps, or their number is fixed.
    """

    mean: float
    biases: list[Floats]
    factors: list[Floats]
    core: Floats
    noise_variance: float
    n_iter: int
    bias_variances: list[Floats]
    bias_prior_variances: Floats
    unit_covariance: Floats
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

    First a CP completion is fitted. Of a matrix it is the result, in Tucker form, and if it finds
    no components the core is 0. Otherwise sweeps of a mean-field posterior start from the leading
    subspaces of the unfoldings, with as many columns at most as CP found components. Rows of a
    factor are normal with a variance per column, entries of the core with variance 1; variances of
    rows, biases and noise are estimated.

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
        Stop when a sweep changes the residual variance by a smaller fraction; 0 does all
        sweeps.
    random_state : int, Generator, RandomState or None, default=None
        As for `complete_cp`.

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
    A sweep costs O(n_fibres (prod r_m)^2) beside O(n_entries r_k^2), fibres and k those of the
    longest mode, O(n_m r_m^3) for each mode and O((prod r_m)^3) for the core.

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
    # The rank of CP is the largest that an unfolding of the core can have: each is at most the
    # product of the others.
    size = math.prod(ranks)
    start = complete_cp(
        entries, targets, max(min(rank, size // rank) for rank in ranks),
        noise_variance=noise_variance, max_iter=max_iter, tol=tol, random_state=rng,
    )  # fmt: skip
    residuals = targets - start.mean - entries.at_entries(start.biases)
    deviation = float(residuals.std())
    rounding = max(_LEAST_NOISE * np.abs(targets).max(), LEAST_SIZE * known_deviation)
    # A matrix has both forms, and CP shrinks each of its components by its own errors.
    if entries.n_modes == 2 or deviation <= rounding or not start.weights.any():
        return tucker_of_cp(start, ranks)
    # Components that CP does not find are noise: let no factor have more columns than it found.
    fitted_ranks = [min(rank, int(np.count_nonzero(start.weights))) for rank in ranks]
    known_variance = (noise_variance or 0.0) / deviation**2
    residuals /= deviation
    subspaces = mode_subspaces(entries, residuals, fitted_ranks, rng)
    core = fit_core(entries, residuals, subspaces, rng)
    posterior = _TuckerPosterior(entries, (targets - start.mean) / deviation, known_variance)
    posterior.begin(start, deviation, subspaces, core)
    n_iter, converged = run_sweeps(posterior, max_iter, tol, known_variance)
    return posterior.tucker(start.mean, deviation, start.n_iter + n_iter, converged, ranks)


class _TuckerPosterior(Posterior):
    """Mean-field posterior of mean, biases, factors and core of standardised values."""

    _core: Floats
    _core_covariance: Floats  # (n, n) for the n entries of the core

    def begin(
        self, start: CPCompletion, deviation: float, subspaces: Sequence[Floats], core: Floats
    ) -> None:
        """Start from the biases of a CP model over `deviation`, orthonormal factors and a core."""
        self._biases = [bias / deviation for bias in start.biases]
        self._bias_variances = [variances / deviation**2 for variances in start.bias_variances]
        prior_variances = start.bias_prior_variances / deviation**2
        self._bias_prior_variances = np.maximum(prior_variances, _LEAST_VARIANCE)
        self.set_factors(list(subspaces))
        self._core, self._core_covariance = core, np.zeros((core.size, core.size))
        self._rescale()

    def state(self) -> list[Floats]:
        """Posterior means of mean, biases, factors and core."""
        return [*super().state(), self._core]

    def restore(self, state: Sequence[Floats], variance: float) -> None:
        """Replace the posterior means and the noise variance; covariances stay."""
        *others, self._core = state
        super().restore(others, variance)

    def _equations(self, mode: int, targets: Floats) -> NormalEquations:
        ranks, n = self._core.shape, self._core.ndim
        moments = np.multiply.outer(self._core, self._core)  # the mean of core (x) core
        moments += self._core_covariance.reshape(ranks + ranks)
        pairs = np.arange(2 * n).reshape(2, n).T.ravel()  # axes k and n + k side by side
        moments = moments.transpose(pairs).reshape([rank**2 for rank in ranks])
        return self._passes.tucker_equations(
            mode, self._factors, targets, self._second_moments, self._core, moments
        )

    def _update_rest(self) -> None:
        """Update what no single mode has: the core, of prior variance 1, and scales of columns."""
        ranks, n, size = self._core.shape, self._core.ndim, self._core.size
        targets = self._arranged - self._mean
        for mode, biases in enumerate(self._biases):
            targets -= self._passes.at(biases, mode)
        moment = self._passes.core_sums(self._factors, targets).ravel()
        gram = self._passes.core_sums(self._second_moments)
        for mode, rank in enumerate(ranks):
            # Unpack the triangles of second moments.
            gram = gram.take(packed_places(rank).ravel(), axis=mode)
        # Each mode has a pair of axes: first ones of pairs become rows, second ones columns.
        apart = np.arange(2 * n).reshape(n, 2).T.ravel()
        gram = gram.reshape(np.repeat(ranks, 2)).transpose(apart).reshape(size, size)
        # With the eigenvectors V and eigenvalues l of the Gram matrix, covariance and mean are
        # V diag(s / (l + s)) V' and V diag(1 / (l + s)) V' moment, s the noise variance.
        eigenvalues, frame = np.linalg.eigh(gram)
        inverse = (frame / (np.maximum(eigenvalues, 0.0) + self._noise_variance)) @ frame.T
        self._core = (inverse @ moment).reshape(ranks)
        self._core_covariance = self._noise_variance * inverse
        self._rescale()

    def _rescale(self) -> None:
        """Scale columns of factors, mode after mode, so that core slices have mean square 1."""
        for mode, rank in enumerate(self._core.shape):
            squares = self._core**2 + np.diag(self._core_covariance).reshape(self._core.shape)
            means = np.moveaxis(squares, mode, 0).reshape(rank, -1).mean(axis=1)
            scale = np.sqrt(np.maximum(means, _LEAST_VARIANCE))
            self._factors[mode] = self._factors[mode] * scale
            self._second_moments[mode] = self._second_moments[mode] * packed_products(scale[None])
            self._factor_prior_variances[mode] = self._factor_prior_variances[mode] * scale**2
            inverse = np.moveaxis(np.ones_like(self._core), mode, -1) / scale
            inverse = np.moveaxis(inverse, -1, mode)
            self._core = self._core * inverse
            self._core_covariance = self._core_covariance * np.outer(inverse, inverse)

    def tucker(
        self, mean: float, deviation: float, n_iter: int, converged: bool, ranks: Sequence[int]
    ) -> TuckerCompletion:
        """Fitted model of `ranks` in units of values, ``mean + deviation * standardised``."""
        model = TuckerCompletion(
            mean=mean + deviation * self._mean, biases=[deviation * bias for bias in self._biases],
            factors=self._factors, core=deviation * self._core, n_iter=n_iter,
            noise_variance=deviation**2 * self._noise_variance, converged=converged,
            bias_variances=[deviation**2 * variance for variance in self._bias_variances],
            bias_prior_variances=deviation**2 * self._bias_prior_variances,
            unit_covariance=np.diag(self._factor_prior_variances[0]),
        )  # fmt: skip
        return orthonormalised(model, ranks, model.factors, model.core, model.unit_covariance)


def orthonormalised(
    model: CPCompletion | TuckerCompletion,
    ranks: Sequence[int],
    factors: Sequence[Floats],
    core: Floats,
    unit_covariance: Floats,
) -> TuckerCompletion:
    """Tucker model of `factors` and `core` in HOSVD form, of `ranks`; all else is of `model`.

    `unit_covariance` is the prior covariance of a row of the first of these factors.
    """
    # A factor A of fewer columns than its rank is padded: A = Q R, and the core takes up R.
    orthonormal, moves = [], []
    for mode, (factor, rank) in enumerate(zip(factors, ranks, strict=True)):
        n_rows, n_columns = factor.shape
        padded = np.concatenate([factor, np.eye(n_rows, rank)], axis=1)
        frame, triangle = np.linalg.qr(padded)
        orthonormal.append(frame[:, :rank])
        moves.append(triangle[:rank, :n_columns])
        core = mode_product(core, moves[-1], mode)
    # Slices of each mode become orthogonal (HOSVD).
    rotations = [
        np.linalg.svd(np.moveaxis(core, mode, 0).reshape(rank, -1))[0]
        for mode, rank in enumerate(ranks)
    ]
    for mode, rotation in enumerate(rotations):
        core = mode_product(core, rotation.T, mode)
    # A row a of the first factor becomes q with q R = a, times the rotation.
    inverse = np.linalg.pinv(moves[0]) @ rotations[0]
    return TuckerCompletion(
        mean=model.mean, biases=model.biases,
        factors=[frame @ turn for frame, turn in zip(orthonormal, rotations, strict=True)],
        core=core, noise_variance=model.noise_variance, n_iter=model.n_iter,
        bias_variances=model.bias_variances, bias_prior_variances=model.bias_prior_variances,
        unit_covariance=inverse.T @ unit_covariance @ inverse, converged=model.converged,
    )  # fmt: skip


def tucker_of_cp(model: CPCompletion, ranks: Sequence[int]) -> TuckerCompletion:
    """Tucker model of the tensor of a CP model."""
    core = np.zeros((model.rank,) * len(ranks))
    core[(np.arange(model.rank),) * len(ranks)] = model.weights
    covariance = np.diag(model.factor_prior_variances[0])
    return orthonormalised(model, ranks, model.factors, core, covariance)
