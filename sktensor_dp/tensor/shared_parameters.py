"""Effects and components of rows that all units share, by noisy sums of clipped residuals.

A unit is the protected person, a row of the unit mode; the other modes are shared.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from sktensor_dp.tensor.alternating import core_components
from sktensor_dp.tensor.arrays import Floats, RandomState, as_generator
from sktensor_dp.tensor.sorted_entries import khatri_rao_rows, kronecker_rows, mode_product

# The grid of weights reaches from this fraction of the largest weight to a little beyond it.
_GRID_RATIO, _GRID_MARGIN, GRID_SIZE = 1 / 2000, 1.1, 60
# Least probability of a grid point, and least prior variance relative to the first.
_LEAST_PROBABILITY, _LEAST_RATIO = 1e-12, 5e-4
# Number of steps for prior distributions, each as far as so many EM steps, and the gain of a row's
# log likelihood by which one is the last: posteriors move by no more (Kullback-Leibler divergence).
_STEPS, _EM_STEPS, _LEAST_GAIN = 11, 5, 1e-5
# Least variance of a sum, for rows of weight 0 without noise.
_TINY = 1e-100
# Clip of residuals, in standard deviations, that does not change a table of two equally frequent
# values.
UNCLIPPED = 2.0
# Least distance of a mean from the nearer bound, relative to half the range.
LEAST_ROOM = 1e-6


@dataclass(frozen=True, eq=False)
class SharedComponents:
    """Factors of the shared modes, in which a unit's values are linear: ``g' z`` at an entry."""

    # z holds products of one number from the entry's row of each factor: of equal columns (CP), or
    # of all combinations of columns (Tucker, where g is the unit's slice of the core).

    factors: tuple[Floats, ...]  # (n_m, r_m): one per shared mode, in order
    full_core: bool  # whether all combinations of columns count
    # (n_combinations, q): weights of combinations in each of a unit's q parameters; by default each
    # combination has its own.
    mixing: Floats | None = None

    def __post_init__(self) -> None:
        if self.mixing is not None and self.mixing.shape[:-1] != (self._n_combinations,):
            raise ValueError(f"mixing must have {self._n_combinations} rows.")

    @property
    def n_components(self) -> int:
        """Number of weights that a unit has."""
        return self._n_combinations if self.mixing is None else self.mixing.shape[1]

    @property
    def _n_combinations(self) -> int:
        """Number of products in z before `mixing`."""
        ranks = [factor.shape[1] for factor in self.factors]
        return int(np.prod(ranks)) if self.full_core else ranks[0]

    def rows(self, coordinates: NDArray[np.intp]) -> Floats:
        """Derivatives z of values with respect to a unit's weights, of shape (n, n_components)."""
        product = kronecker_rows if self.full_core else khatri_rao_rows
        rows = product(self.factors, coordinates)
        return rows if self.mixing is None else rows @ self.mixing


def components_of_cells(
    factor: Floats, shape: Sequence[int], ranks: Sequence[int], *, full_core: bool,
    random_state: RandomState,
) -> SharedComponents:  # fmt: skip
    """Factors of the shared modes from a factor of all cells, of shape (n_cells, r).

    By truncated HOSVD; what is left of the factor, in the frames, becomes `mixing`. If there is one
    shared mode, its factor is that of the cells, with columns of 0 up to its rank.
    """
    n_columns = factor.shape[1]
    if len(shape) == 1:
        padded = np.pad(factor, ((0, 0), (0, ranks[0] - n_columns)))
        return SharedComponents((padded,), full_core=full_core)
    core, frames = factor.reshape(*shape, n_columns), []
    for mode, rank in enumerate(ranks):
        unfolded = np.moveaxis(core, mode, 0).reshape(core.shape[mode], -1)
        frame = np.linalg.svd(unfolded, full_matrices=False)[0][:, :rank]
        frames.append(np.pad(frame, ((0, 0), (0, rank - frame.shape[1]))))
        core = mode_product(core, frames[-1].T, mode)
    if full_core:
        return SharedComponents(tuple(frames), full_core=True, mixing=core.reshape(-1, n_columns))
    # CP: all ranks are equal.
    *parts, of_columns = core_components(core, ranks[0], as_generator(random_state))
    factors = tuple(frame @ part for frame, part in zip(frames, parts, strict=True))
    return SharedComponents(factors, full_core=False, mixing=of_columns.T)


@dataclass(frozen=True, eq=False)
class SharedEffects:
    """Posterior of the effects (biases) of the rows of one shared mode."""

    means: Floats  # (n_rows,)
    variances: Floats  # (n_rows,)
    # (n_rows,): posterior mean of half the logarithm of a row's weight over the mean weight.
    popularity: Floats
    prior_variance: float  # of the effects

    @property
    def is_hidden(self) -> bool:
        """True if effects, weighted by rows' popularity, vary less than they are uncertain."""
        return float(np.exp(2 * self.popularity) @ (self.means**2 - self.variances)) <= 0


def clip_of_two_values(half: float, mean: float) -> float:
    """Clip, in standard deviations, of residuals about `mean` that changes no table of two values.

    The two are the ends of a range; `half` is half of its width.
    """
    # The rarer one is as many deviations from their mean as the root of this.
    return UNCLIPPED * math.sqrt((half + abs(mean)) / max(half - abs(mean), LEAST_ROOM * half))


def residual_clip(deviation: float, half: float, mean: float = 0.0) -> float:
    """Clip of residuals about `mean`, in standard deviations; `half` is half the range.

    It is `clip_of_two_values` where all values are at the bounds, and falls with their variance: a
    small clip leaves signs of residuals, which noise hides least, but which tell medians.
    """
    clip = clip_of_two_values(half, mean) * ratio_to_largest(deviation, half, mean)
    return min(clip, 2 * half / deviation)


def ratio_to_largest(deviation: float, half: float, mean: float = 0.0) -> float:
    """Variance of values over the largest that values of this `mean` can have."""
    return deviation**2 / max(half**2 - mean**2, deviation**2)


def clipped_response(clip: float | Floats, deviation: float = 1.0) -> Any:
    """Change in the mean of ``clip(x, -c, c) / c`` per unit of a shift of a normal residual x."""
    return (2 * ndtr(clip) - 1) / (clip * deviation)


def clipped_variance(clip: float | Floats) -> Any:
    """Mean square of ``clip(x, -c, c) / c`` for a standard normal x."""
    # Inside, E[x^2; |x| < c] = P(|x| < c) - 2 c phi(c); beyond, clipped values have square 1.
    inside = 2 * ndtr(clip) - 1
    density = np.exp(-(clip**2) / 2) / math.sqrt(2 * math.pi)
    return (inside - 2 * clip * density) / clip**2 + 1 - inside


def mean_response(clip: float, shifts: Floats, deviations: Floats) -> tuple[Floats, Floats]:
    """Mean of ``clip(x, -c, c) / c`` for normal x about `shifts`, and its slope in the shift.

    `clip`, c, is in units of x. Of a shift that is itself normal with a deviation, which
    `deviations` contain, they are the best line (Price 1958).
    """
    high, low = (clip - shifts) / deviations, (-clip - shifts) / deviations
    inside = ndtr(high) - ndtr(low)
    density = (np.exp(-(low**2) / 2) - np.exp(-(high**2) / 2)) / math.sqrt(2 * math.pi)
    mean = ndtr(-high) - ndtr(low) + (shifts * inside + deviations * density) / clip
    return mean, inside / clip


def shared_effects(
    sums: ArrayLike, weights: ArrayLike, *, noise_std: float, weight_each: float,
    response: float | Floats, effect_variance: float, about: Floats | None = None,
    spread: float | Floats = 1.0,
) -> tuple[SharedEffects, Floats]:  # fmt: skip
    """Effects and popularity of the rows of a mode by empirical Bayes, and the effects' bias.

    They are estimated from noisy sums and weights of rows; the bias (n_rows,) is how far effects
    are expected to be above true ones.
    """
    # Row i reports W_i = sum_u w_ui and S_i = sum_u w_ui r_ui with noise; responses r in [-1, 1]
    # have mean response * (b_i - about_i) and deviation `spread`. Effects b are normal; weights
    # have any distribution on a grid (Kiefer & Wolfowitz 1956). Both distributions are estimated
    # from all rows by EM. The sum of squared weights of a row is `weight_each` times its weight.
    noisy, noisy_weights = (np.asarray(array, dtype=np.float64) for array in (sums, weights))
    total = max(float(noisy_weights.sum()), 1.0)
    largest = max(float(noisy_weights.max()), 1.0)
    # Logarithmic grid of possible weights, one for all rows; without noise each row's own is known.
    grid = np.maximum(noisy_weights, 0.0)[:, None]
    if noise_std > 0:
        ends = np.log(largest * _GRID_RATIO), np.log(largest * _GRID_MARGIN)
        grid = np.exp(np.linspace(*ends, GRID_SIZE))[None, :]
    variance_each = weight_each * np.reshape(spread, (-1, 1)) ** 2
    fit = _GridPosterior(
        noisy, noisy_weights, grid, noise_std, variance_each, response, effect_variance, about
    )
    fit.find_prior()
    log_ratios = np.log(np.maximum(grid, largest * _GRID_RATIO)) - math.log(total / len(noisy))
    return fit.effects(popularity=0.5 * log_ratios)


class _GridPosterior:
    """EM over each row's effect, and its true weight on a grid (or one known weight).

    Arguments are those of `shared_effects`; `variance_each` is the variance of a sum over its
    weight.
    """

    def __init__(
        self,
        sums: Floats,
        weights: Floats,
        grid: Floats,  # (1, n_points), or (n_rows, 1) where weights are known
        noise_std: float,
        variance_each: Floats,  # (n_rows, 1), or (1, 1) for all
        response: float | Floats,  # (n_rows,), or one for all
        effect_variance: float,
        about: Floats | None = None,
    ) -> None:
        self._sums, self._grid = sums[:, None], grid
        self._slopes = np.reshape(response, (-1, 1)) * grid
        if about is not None:
            self._sums = self._sums + self._slopes * about[:, None]
        self._squares = self._sums**2
        # Variance of a row's sum: by noise, and by its entries, whose squared weights sum to its
        # weight times the mean weight of an entry.
        self._variances = noise_std**2 + grid * variance_each + _TINY
        self._log_likelihoods = (
            0.0 if noise_std == 0 else -0.5 * ((weights[:, None] - grid) / noise_std) ** 2
        )
        self._probabilities = np.full(grid.shape[1], 1.0 / grid.shape[1])  # of weights on the grid
        self._least_variance = _LEAST_RATIO * effect_variance
        self.prior_variance = effect_variance
        # Reuse memory: allocation would cost as much as the arithmetic.
        shape = np.broadcast_shapes(self._sums.shape, grid.shape)
        self._scratch = np.empty(shape), np.empty(shape)

    def find_prior(self) -> None:
        """Find probabilities of the grid's points, and the prior variance of effects, by EM."""
        last_density = last_step = last_variance = math.nan
        for _ in range(_STEPS):
            posterior, effects, variances, density = self._posterior()
            squares = effects  # expected ones, in the memory of effects
            squares **= 2
            squares += variances
            squares *= posterior
            # Over one row less: the mode under a prior by which the variance is not 0 (Chung et
            # al. 2013), as few rows in much noise would have it.
            mean_square = float(np.sum(squares)) / max(len(squares) - 1, 1)
            variance = self.prior_variance
            density += math.log(variance) / 2
            # An EM step of the logarithm, made longer by the secant through the last one.
            step = math.log(max(mean_square, self._least_variance) / variance)
            longer = _secant_factor(last_step, step, moved=math.log(variance / last_variance))
            self.prior_variance = max(variance * math.exp(longer * step), self._least_variance)
            if abs(density - last_density) < _LEAST_GAIN * len(squares):
                break
            last_density, last_step, last_variance = density, step, variance

    def effects(self, popularity: Floats) -> tuple[SharedEffects, Floats]:
        """Posterior of effects and of `popularity`, and the expected bias of the effects' means.

        `popularity` has a value for each weight of the grid.
        """
        posterior, effects, variances, _ = self._posterior()
        mean = _posterior_mean(posterior, effects)
        # The prior draws means of rows of little weight to 0, though what few choose is often
        # valued less. Let effects lie about the line ``slope * centred_roots`` of weights' roots.
        weights, roots = posterior * self._grid, np.sqrt(self._grid)
        centred_roots = roots - float(np.sum(weights * roots) / np.sum(weights))
        slope, variance_of_slope = self._slope_over(centred_roots, posterior)
        square_of_slope = max(slope**2 - variance_of_slope, 0.0)
        # Bias of a mean for a slope of 1: the prior takes this fraction of the line away.
        bias = variances / self.prior_variance * centred_roots
        variances = variances + square_of_slope * bias**2
        variance = _posterior_mean(posterior, effects**2 + variances) - mean**2
        expected = _posterior_mean(posterior, np.broadcast_to(popularity, posterior.shape))
        fitted = SharedEffects(mean, np.maximum(variance, 0.0), expected, self.prior_variance)
        shrunk_slope = square_of_slope / slope if slope else 0.0
        return fitted, -_posterior_mean(posterior, bias) * shrunk_slope

    def _slope_over(self, values: Floats, posterior: Floats) -> tuple[float, float]:
        """Slope of effects over `values` at grid points, by least squares, and its variance."""
        weighted = posterior * self._slopes * values / self._marginal_variances()
        precision = max(float(np.sum(weighted * self._slopes * values)), _TINY)
        return float(np.sum(weighted * self._sums)) / precision, 1 / precision

    def _marginal_variances(self) -> Floats:
        """Variances of sums whose effects are not known."""
        return np.asarray(self._slopes**2 * self.prior_variance + self._variances)

    def _posterior(self) -> tuple[Floats, Floats, Floats, float]:
        """Posterior of grid points, mean and variance of the effect at each, and log likelihood.

        EM steps for the points' prior probabilities are made first.
        """
        # Both arrays are overwritten by the next call.
        posterior, effects = self._scratch
        marginal_variances = self._marginal_variances()
        # First the logarithm of the likelihood.
        np.divide(self._squares, marginal_variances, out=posterior)
        posterior += np.log(marginal_variances)
        posterior *= 0.5
        np.subtract(self._log_likelihoods, posterior, out=posterior)
        largest = posterior.max(axis=1, keepdims=True)
        posterior -= largest
        np.exp(posterior, out=posterior)
        for _ in range(_EM_STEPS):
            posterior_mean = (1 / (posterior @ self._probabilities)) @ posterior / len(posterior)
            probabilities = self._probabilities * posterior_mean + _LEAST_PROBABILITY
            self._probabilities = probabilities / probabilities.sum()
        posterior *= self._probabilities
        sums = posterior.sum(axis=1, keepdims=True)
        posterior /= sums
        gains = self._slopes * self.prior_variance / marginal_variances
        np.multiply(gains, self._sums, out=effects)
        variances = self.prior_variance * self._variances / marginal_variances
        return posterior, effects, variances, float(np.sum(largest + np.log(sums)))


def _secant_factor(last_step: float, step: float, moved: float) -> float:
    """Factor that lengthens a step to where steps end, if each shrinks by the same ratio.

    It is at most `_EM_STEPS`: where noise hides effects, the likelihood is flat.
    """
    shrunk = last_step - step  # while the variance `moved`
    return min(moved / shrunk, _EM_STEPS) if moved * shrunk > 0 else 1.0


def _posterior_mean(posterior: Floats, values: Floats) -> Floats:
    """Posterior mean, of shape (n_rows,), of numbers at the points of the grid."""
    return np.asarray(np.sum(posterior * values, axis=1), dtype=np.float64)
