"""Effects of rows that all units share, by noisy sums of clipped residuals, and components.

A unit is the protected person, a row of the unit mode; the other modes are shared.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, softmax

from sktensor_dp.tensor.alternating import core_components
from sktensor_dp.tensor.arrays import Floats, RandomState, as_generator
from sktensor_dp.tensor.sorted_entries import khatri_rao_rows, kronecker_rows, mode_product

# The grid of weights reaches from this fraction of the largest weight to a little beyond it.
_GRID_RATIO, _GRID_MARGIN, GRID_SIZE = 1 / 2000, 1.1, 60
# Least probability of a grid point, and least prior variance relative to the first.
_LEAST_PROBABILITY, _LEAST_RATIO = 1e-12, 5e-4
# Most steps for both priors, and EM steps for probabilities of the grid in each. A step for the
# variance is extrapolated to at most as many.
_STEPS, _EM_STEPS = 11, 5
# Gain in log likelihood of a row below which a step is the last.
_LEAST_GAIN = 1e-5
# Least variance of a sum, for rows of weight 0 without noise.
_TINY = 1e-100
# Numbers of lines, over roots and logarithms of weights, and of waves by which effects may bend
# from these; and prior variances of waves over those of lines, all as likely.
_LINES, _WAVES, _BENDS = 2, 8, np.geomspace(0.01, 4.0, 6)
# Steps for the room that bounds leave to effects, and its range, over that of the mean.
_ROOM_STEPS, _ROOMS = 2, (0.25, 4.0)
# Least mean square of a function of weights, relative to the largest weight: equal weights show no
# curve.
_LEAST_SQUARE = 1e-12
# Largest residual, in standard deviations, of two equally likely values about any number between.
UNCLIPPED = 2.0
# Least distance of a mean from the nearer bound, relative to half the range.
LEAST_ROOM = 1e-6
# Least part of rows that is not drawn to the prior's mean, to avoid a division by 0.
LEAST_SEEN = 1e-9


@dataclass(frozen=True, eq=False)
class SharedComponents:
    """Factors of the shared modes, by which a unit with weights g adds ``g' z`` to an entry."""

    # z of an entry holds products of one number from its row of each factor: of equal columns (CP),
    # or of all combinations of columns (Tucker, where g is the unit's slice of the core).

    factors: tuple[Floats, ...]  # (n_m, r_m): one per shared mode, in order
    full_core: bool  # True if all combinations of columns count
    # (n_products, q): z times this has a number for each of a unit's q weights; None for z itself.
    mixing: Floats | None = None
    # (n_rows, r): standard errors of the factor of the one shared mode; None where not known.
    errors: Floats | None = None

    def __post_init__(self) -> None:
        if self.mixing is not None and self.mixing.shape[:-1] != (self._n_products,):
            raise ValueError(f"mixing must have {self._n_products} rows.")

    @property
    def n_components(self) -> int:
        """Number q of weights that a unit has."""
        return self._n_products if self.mixing is None else self.mixing.shape[1]

    @property
    def _n_products(self) -> int:
        """Number of products in z."""
        ranks = [factor.shape[1] for factor in self.factors]
        return int(np.prod(ranks)) if self.full_core else ranks[0]

    def rows(self, coordinates: NDArray[np.intp]) -> Floats:
        """Derivatives of values in a unit's weights at `coordinates` of shared rows; (n, q)."""
        product = kronecker_rows if self.full_core else khatri_rao_rows
        rows = product(self.factors, coordinates)
        return rows if self.mixing is None else rows @ self.mixing

    def averages(self, mode: int, shares: Sequence[Floats]) -> Floats:
        """Derivatives of average values of the rows of a shared `mode`, over `shares` of others."""
        factors = [share[None] @ factor for share, factor in zip(shares, self.factors, strict=True)]
        factors[mode] = self.factors[mode]
        coordinates = np.zeros((len(factors[mode]), len(factors)), dtype=np.intp)
        coordinates[:, mode] = np.arange(len(coordinates))
        return replace(self, factors=tuple(factors)).rows(coordinates)


def components_of_cells(
    factor: Floats, errors: Floats, shape: Sequence[int], ranks: Sequence[int], *, full_core: bool,
    random_state: RandomState,
) -> SharedComponents:  # fmt: skip
    """Factors of the shared modes, of lengths `shape`, from a factor of all cells, (n_cells, r).

    `errors` are those of the factor, which are kept if there is one shared mode.

    By truncated HOSVD. Its core is the `mixing`; for CP the core is decomposed again, and `mixing`
    is the last factor of that, transposed. If there is one shared mode, its factor is that of the
    cells, with columns of 0 up to its rank.
    """
    n_columns = factor.shape[1]
    if len(shape) == 1:
        factor, errors = (
            np.pad(one, ((0, 0), (0, ranks[0] - n_columns))) for one in (factor, errors)
        )
        return SharedComponents((factor,), full_core=full_core, errors=errors)
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
    """Posterior of the effects (biases) of the rows of one shared mode, in units of values."""

    means: Floats  # (n_rows,)
    variances: Floats  # (n_rows,)
    # (n_rows,): posterior mean of half the logarithm of a row's weight over the mean weight.
    popularity: Floats
    prior_variance: float  # of an effect
    # Where units are persons:
    prior_means: Floats | None = None  # (n_rows,)
    drawn: Floats | None = None  # (n_rows,): part by which noise and sampling draw effects there
    # (n_rows, n_rows), of errors of all effects together; None where these are not known.
    covariances: Floats | None = None

    @property
    def is_hidden(self) -> bool:
        """True if effects, weighted by rows' popularity, vary less than they are uncertain."""
        return float(np.exp(2 * self.popularity) @ (self.means**2 - self.variances)) <= 0

    @property
    def tells_parts(self) -> bool:
        """True if most effects are known far better beside some other one than by themselves."""
        if self.covariances is None or len(self.means) < 3:
            return False
        own = self.covariances.diagonal()
        squares = np.add.outer(own, own) - 2 * self.covariances
        np.fill_diagonal(squares, np.inf)
        return bool(np.median(squares.min(axis=1)) < np.median(own) / 4)

    def errors_of_differences(
        self, rows: NDArray[np.intp], others: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Standard errors (n,) of the effects of `rows` (n,) less those of `others` (n,)."""
        if self.covariances is None:
            return np.asarray(np.sqrt(self.variances[rows] + self.variances[others]))
        own = self.covariances.diagonal()
        squares = own[rows] + own[others] - 2 * self.covariances[rows, others]
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def difference(self, rows: NDArray[np.intp], others: NDArray[np.intp]) -> tuple[float, float]:
        """Average of the effects of `rows` less that of `others`, if any, and its standard error.

        Each is that of :meth:`average`.
        """
        assert self.drawn is not None
        total, independent, common, weights = 0.0, 0.0, 0.0, np.zeros(len(self.means))
        for sign, group in ((1.0, rows), (-1.0, others)):
            if len(group) > 0:
                average, variance, deviation = self.average(group)
                total, independent = total + sign * average, independent + variance
                common += deviation
                weights[group] = sign / len(group)
        if self.covariances is None:
            return total, math.sqrt(independent + common**2)
        beyond = self.covariances - np.diag(self.prior_variance * self.drawn)
        return total, math.sqrt(max(independent + float(weights @ beyond @ weights), 0.0))

    def average(self, rows: NDArray[np.intp]) -> tuple[float, float, float]:
        """Average of the effects of distinct `rows`, drawn to a mean of their own.

        Returned with the variance of its error by independent errors of rows, and the deviation of
        what all rows may have in common.
        """
        # Effects of `rows` are c + prior means + u: c is one number of any size, the same for all
        # of them, and u has about the prior variance t. Given c they are means + drawn * c, of
        # variances t * drawn; rows tell c with variance t / seen.
        assert self.prior_means is not None
        assert self.drawn is not None
        means, drawn, variances = self.means[rows], self.drawn[rows], self.variances[rows]
        seen = max(float((1 - drawn).sum()), LEAST_SEEN)
        constant = float((means - self.prior_means[rows]).sum()) / seen
        variance = drawn.sum() / len(rows) ** 2 + drawn.mean() ** 2 / seen
        common = np.sqrt(np.maximum(variances - self.prior_variance * drawn, 0.0)).mean()
        return (
            float(means.mean() + drawn.mean() * constant),
            float(self.prior_variance * variance),
            float(common),
        )


def clip_of_two_values(half: float, mean: float) -> float:
    """Clip, in standard deviations of values, for values at both ends of a range with this `mean`.

    `half` is half the width of the range, from whose middle the `mean` is measured.
    """
    # The root is the distance of the rarer end from the mean, in standard deviations.
    return UNCLIPPED * math.sqrt((half + abs(mean)) / max(half - abs(mean), LEAST_ROOM * half))


def residual_clip(deviation: float, half: float, mean: float = 0.0) -> float:
    """Clip, in standard deviations, of values with this `deviation` and `mean` in a range.

    It grows with their variance, to `clip_of_two_values` where all are at the ends. A small
    clip leaves signs of residuals: noise hides these least, but they show medians.
    """
    clip = clip_of_two_values(half, mean) * ratio_to_largest(deviation, half, mean)
    return min(clip, 2 * half / deviation)


def ratio_to_largest(deviation: float, half: float, mean: float = 0.0) -> float:
    """Variance of values over the largest that values of this `mean` can have; 1 at most."""
    return deviation**2 / max(half**2 - mean**2, deviation**2)


def clipped_response(clip: float | Floats, deviation: float = 1.0) -> Any:
    """Derivative of the mean of ``clip(x, -C, C) / C`` in a shift of a normal x of mean 0.

    C is `clip` deviations of x; the shift is in units of x.
    """
    return (2 * ndtr(clip) - 1) / (clip * deviation)


def clipped_variance(clip: float | Floats) -> Any:
    """Mean square of ``clip(x, -c, c) / c`` for a standard normal x."""
    # Inside, E[x^2; |x| < c] = P(|x| < c) - 2 c phi(c); beyond, clipped values have square 1.
    inside = 2 * ndtr(clip) - 1
    density = np.exp(-(clip**2) / 2) / math.sqrt(2 * math.pi)
    return (inside - 2 * clip * density) / clip**2 + 1 - inside


def mean_response(clip: float, shifts: Floats, deviations: Floats) -> tuple[Floats, Floats]:
    """Means of ``clip(x, -c, c) / c`` for normal x of means `shifts`, and their derivatives.

    `clip`, c, is in units of x. For an uncertain, normal shift, whose variance is part of that of
    `deviations`, both are those of the best line (Price 1958).
    """
    high, low = (clip - shifts) / deviations, (-clip - shifts) / deviations
    inside = ndtr(high) - ndtr(low)
    density = (np.exp(-(low**2) / 2) - np.exp(-(high**2) / 2)) / math.sqrt(2 * math.pi)
    mean = ndtr(-high) - ndtr(low) + (shifts * inside + deviations * density) / clip
    return mean, inside / clip


def shared_effects(
    sums: ArrayLike, weights: ArrayLike, *, noise_std: float | Floats, weight_each: float,
    response: float | Floats, effect_variance: float, about: float | Floats = 0.0,
    spread: float | Floats = 1.0, middle: float = 0.0, half: float = math.inf,
) -> tuple[SharedEffects, Floats]:  # fmt: skip
    """Effects and popularity of the rows of a mode by empirical Bayes, and moments of weights.

    Moments (2, n_rows) are posterior means of weights and of their squares.
    `sums` and `weights` (n_rows,) have noise of deviation `noise_std`; `effect_variance` is the
    prior variance that EM starts from. `half` is half the width of the range of values, and
    `middle` the mean of rows of effect 0 less the middle of that range.
    """
    # For row i there are W_i = sum_u w_ui and S_i = sum_u w_ui r_ui with noise. Clipped residuals r
    # have mean response * (b_i - about_i) and deviation `spread`, and the sum of the squares of
    # w_ui is `weight_each` times the weight. Effects b are normal about a curve over
    # weights, as rows that few choose are often valued less; weights have any distribution on a
    # grid (Kiefer & Wolfowitz 1956); both distributions are estimated from all rows by EM.
    noisy, noisy_weights = (np.asarray(array, dtype=np.float64) for array in (sums, weights))
    total = max(float(noisy_weights.sum()), 1.0)
    largest = max(float(noisy_weights.max()), 1.0)
    # Possible weights: a logarithmic grid for all rows; without noise each row's own.
    grid = np.maximum(noisy_weights, 0.0)[:, None]
    noise_std = np.reshape(noise_std, (-1, 1))
    if noise_std.all():
        ends = np.log(largest * _GRID_RATIO), np.log(largest * _GRID_MARGIN)
        grid = np.exp(np.linspace(*ends, GRID_SIZE))[None, :]
    variance_each = weight_each * np.reshape(spread, (-1, 1)) ** 2
    fit = _GridPosterior(
        noisy, noisy_weights, grid, noise_std, variance_each, response, effect_variance, about
    )
    fit.find_prior()
    fit.find_curve()
    fit.find_prior()
    for _ in range(_ROOM_STEPS if math.isfinite(half) else 0):
        fit.find_room(middle, half)
        fit.find_curve()
        fit.find_prior()
    log_ratios = np.log(np.maximum(grid, largest * _GRID_RATIO)) - math.log(total / len(noisy))
    return fit.effects(popularity=0.5 * log_ratios)


class _GridPosterior:
    """Posterior of each row's effect, and of its true weight on a grid, with priors found by EM.

    Arguments are those of `shared_effects`; `variance_each` is the sampling variance of a sum over
    its weight.
    """

    def __init__(
        self,
        sums: Floats,
        weights: Floats,
        grid: Floats,  # (1, n_points), or (n_rows, 1) where weights are known
        noise_std: Floats,  # (n_rows, 1), or (1, 1) for all
        variance_each: Floats,  # (n_rows, 1), or (1, 1) for all
        response: float | Floats,  # (n_rows,), or one for all
        effect_variance: float,
        about: float | Floats,  # (n_rows,), or one for all
    ) -> None:
        self._grid = grid
        self._slopes = np.reshape(response, (-1, 1)) * grid
        self._sums = sums[:, None] + self._slopes * np.reshape(about, (-1, 1))
        self._squares = self._sums**2
        # Variance of a row's sum at each weight, given its effect.
        self._variances = noise_std**2 + grid * variance_each + _TINY
        self._log_likelihoods = (
            0.0 if not noise_std.all() else -0.5 * ((weights[:, None] - grid) / noise_std) ** 2
        )
        self._probabilities = np.full(grid.shape[1], 1.0 / grid.shape[1])  # of weights on the grid
        self._least_variance = _LEAST_RATIO * effect_variance
        self.prior_variance = effect_variance
        self._curve, self._variances_of_curve = np.zeros_like(grid), np.zeros_like(grid)
        self._room = np.ones_like(grid)  # deviations of effects, and of the curve, over usual ones
        # Arrays that `_posterior` writes to: to make new ones would take as long as the arithmetic.
        shape = np.broadcast_shapes(self._sums.shape, grid.shape)
        self._scratch = np.empty(shape), np.empty(shape)

    def find_prior(self) -> None:
        """Find probabilities of the grid's points, and the prior variance of effects, by EM."""
        last_density = last_step = last_variance = math.nan  # no comparison with these is true
        for _ in range(_STEPS):
            posterior, effects, variances, density = self._posterior()
            squares = effects  # expected squares of effects, in the memory of `effects`
            squares **= 2
            squares += variances
            squares *= posterior
            squares /= self._room**2
            # Divided by one row less: a prior that keeps the variance of few, noisy rows above 0
            # (Chung et al. 2013).
            mean_square = float(np.sum(squares)) / max(len(squares) - 1, 1)
            variance = self.prior_variance
            density += math.log(variance) / 2  # log density of that prior
            # An EM step of the logarithm, lengthened by the secant through the last one.
            step = math.log(max(mean_square, self._least_variance) / variance)
            longer = _secant_factor(last_step, step, moved=math.log(variance / last_variance))
            self.prior_variance = max(variance * math.exp(longer * step), self._least_variance)
            if abs(density - last_density) < _LEAST_GAIN * len(squares):
                break
            last_density, last_step, last_variance = density, step, variance

    def find_curve(self) -> None:
        """Find the curve over weights about which effects lie: two lines and a walk."""
        self._sums = self._sums + self._slopes * self._curve  # those about no curve
        self._squares = self._sums**2
        posterior, _, _, _ = self._posterior()
        of_sums = posterior * self._slopes / self._marginal_variances()
        n_rows, seen, precisions = (
            each.reshape(-1, self._grid.size).sum(axis=0)
            for each in (posterior, of_sums * self._sums, of_sums * self._slopes)
        )
        functions = self._curve_functions(n_rows)
        shown, products = functions @ seen, (functions * precisions) @ functions.T
        laws = []
        for bend in _BENDS:
            prior = np.append(np.ones(_LINES), np.full(_WAVES, bend))
            covariance = np.linalg.inv(products + np.diag(1 / prior))
            coefficients = covariance @ shown
            gain = np.linalg.slogdet(covariance)[1] - np.log(prior).sum()
            curve = coefficients @ functions
            square = curve**2 + np.sum(functions * (covariance @ functions), axis=0)
            laws.append(((shown @ coefficients + gain) / 2, curve, square))
        evidences, curves, squares = (np.stack(each) for each in zip(*laws, strict=True))
        chances = softmax(evidences)
        curve = chances @ curves
        self._curve = curve.reshape(self._grid.shape)
        self._variances_of_curve = (chances @ squares - curve**2).reshape(self._grid.shape)
        self._sums = self._sums - self._slopes * self._curve
        self._squares = self._sums**2

    def find_room(self, middle: float, half: float) -> None:
        """Find how far effects may vary, by the room that bounds leave about the curve."""
        # Means of rows with normal logits vary in proportion to the product of their distances
        # from both bounds.
        places = np.abs([middle, *(middle + self._curve.ravel())])
        rooms = 1 - np.minimum(places / half, 1 - LEAST_ROOM) ** 2
        self._room = np.clip(rooms[1:] / rooms[0], *_ROOMS).reshape(self._grid.shape)

    def _curve_functions(self, n_rows: Floats) -> Floats:
        """Functions (_LINES + _WAVES, n_points) of each weight: of lines, and of a walk.

        `n_rows` (n_points,) have that weight. With coefficients of N(0, 1) each line, and the walk,
        explain a third of the variance: any correlation with effects is as likely. The line over
        roots tells rows apart that many choose, that over logarithms also those that few choose.
        """
        relative = self._grid.ravel() / self._grid.max()
        least = _GRID_RATIO / _GRID_MARGIN
        # Walk over logarithms of weights, from the largest on (Karhunen & Loeve).
        places = np.log(np.maximum(relative, least)) / math.log(least)
        frequencies = (np.arange(_WAVES)[:, None] + 0.5) * math.pi
        weights = n_rows * self._grid.ravel()
        found = []
        walk = np.sin(frequencies * places) / frequencies
        for part in (np.sqrt(relative)[None], places[None], walk):
            part = part * self._room.ravel()
            centred = part - (part @ weights)[:, None] / weights.sum()
            square = max(float((centred**2 @ n_rows).sum()) / len(self._sums), _LEAST_SQUARE)
            found.append(centred * math.sqrt(self.prior_variance / 3 / square))
        return np.concatenate(found)

    def effects(self, popularity: Floats) -> tuple[SharedEffects, Floats]:
        """Effects, and moments of weights, as `shared_effects` returns them.

        `popularity` is a number for each weight of the grid.
        """
        posterior, effects, variances, _ = self._posterior()
        # Noise of the curve counts as far as effects are drawn to it.
        drawn = variances / (self.prior_variance * self._room**2)
        variances = variances + drawn**2 * self._variances_of_curve
        effects += self._curve
        mean = _posterior_mean(posterior, effects)
        variance = _posterior_mean(posterior, effects**2 + variances) - mean**2
        expected = _posterior_mean(posterior, np.broadcast_to(popularity, posterior.shape))
        moments = np.stack([_posterior_mean(posterior, self._grid**k) for k in (1, 2)])
        found = SharedEffects(
            mean, np.maximum(variance, 0.0), expected, self.prior_variance,
            prior_means=_posterior_mean(posterior, np.broadcast_to(self._curve, posterior.shape)),
            drawn=_posterior_mean(posterior, drawn),
        )  # fmt: skip
        return found, moments

    def _marginal_variances(self) -> Floats:
        """Variances of sums, prior variance of effects included."""
        of_effects = self.prior_variance * self._room**2
        return np.asarray(self._slopes**2 * of_effects + self._variances)

    def _posterior(self) -> tuple[Floats, Floats, Floats, float]:
        """Posterior of grid points, mean and variance of the effect at each, and log likelihood.

        It first makes EM steps for prior probabilities of the points. The next call overwrites the
        first two arrays.
        """
        posterior, effects = self._scratch
        marginal_variances = self._marginal_variances()
        # `posterior` holds the log likelihood first.
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
        prior = self.prior_variance * self._room**2
        gains = self._slopes * prior / marginal_variances
        np.multiply(gains, self._sums, out=effects)
        variances = prior * self._variances / marginal_variances
        return posterior, effects, variances, float(np.sum(largest + np.log(sums)))


def _secant_factor(last_step: float, step: float, moved: float) -> float:
    """Factor that lengthens a step to the sum of all to come, if each shrinks by the same ratio.

    `moved` is the distance from the last step. The factor is at most `_EM_STEPS`, as the likelihood
    is flat where noise hides effects.
    """
    shrunk = last_step - step
    return min(moved / shrunk, _EM_STEPS) if moved * shrunk > 0 else 1.0


def _posterior_mean(posterior: Floats, values: Floats) -> Floats:
    """Posterior means (n_rows,) of `values` at the points of the grid."""
    return np.asarray(np.sum(posterior * values, axis=1), dtype=np.float64)
