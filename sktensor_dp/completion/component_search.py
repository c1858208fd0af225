"""Search for components, where persons are units: private power steps, and a test of their gain."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.special import gammaincinv
from scipy.stats import chi, chi2

from sktensor_dp.completion import defaults
from sktensor_dp.completion.effect_release import LEAST_WEIGHT
from sktensor_dp.completion.model import unexplained_variance
from sktensor_dp.completion.plan import PersonPlan, judged_sweeps, trial_sweeps
from sktensor_dp.completion.shared_biases import (
    SharedBiases,
    cell_weights,
    residual_variance,
    weight_of_unit,
)
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.person_entries import MOMENT_WEIGHT, ReleasedEffects, SharedFactorSums
from sktensor_dp.tensor.arrays import Floats, Integers
from sktensor_dp.tensor.largest_of_noise import beyond_noise, edge_of_noise, largest_of_noise
from sktensor_dp.tensor.normal_equations import posterior_rows

# Least eigenvalue of a matrix before its root is taken, relative to the largest.
LEAST_EIGENVALUE = 1e-12
# Least number of entries of a unit that tell its weights, to avoid a division by 0.
LEAST_TELLING = 0.1
# Least excess of moments in a direction: units with next to no entries show nothing.
LEAST_EXCESS = 0.01
# Fraction of the directions' own part (see `own_part`) that is taken from sums. Without components
# a power step has eigenvalues from 0 to the own part: less half of it, the largest size is least.
OWN_TAKEN = 0.5


class DirectionSearch:
    """Private power iteration for components: directions in the space of a unit's cells.

    Each sweep releases sums over units of residuals times the unit's own weights of the directions
    so far, both divided by their norms, and adds them to the sums of earlier sweeps. `start` has
    the first directions, (n_cells, r); `biases` are those of all shared modes; after `n_trial`
    sweeps the caller asks `is_worth`.
    """

    def __init__(
        self, ask: Session, biases: Sequence[SharedBiases], start: Floats, n_trial: int
    ) -> None:
        self._ask, self._biases, self._n_trial = ask, biases, n_trial
        values = biases[0].values
        self._n_with_values, self._deviation = values.n_with_values, values.deviation
        # Root mean square of a column of directions: the deviation that a component is assumed to
        # explain. Variances of directions are in units of its square, "the assumed one".
        self._size = self._deviation * np.sqrt(defaults.COMPONENT_VARIANCE)
        n_columns = start.shape[1]
        self._sums = np.zeros((len(start), n_columns))  # of all sweeps, (n_cells, r)
        self._weights = cell_weights(biases)  # (n_cells,)
        self._shares = self._weights / max(float(self._weights.sum()), LEAST_WEIGHT)
        self._root_each = root_each = weight_of_unit(self._weights, self._n_with_values)
        # Entries of a unit that tell its weights: those beyond its level, until they are measured.
        self._telling = telling_entries(root_each)
        # Variance by units of a number in the sums of a sweep, over its cell's weight: an entry of
        # a unit with m entries adds a square of mean 1 / (m r), and weighs m ** -0.5.
        self._unit_variance = 1 / root_each / n_columns
        # Covariance of the noise in a row of the accumulated sums, and total weight of sweeps.
        self._covariance, self._release_weight = np.zeros((2, n_columns, n_columns))
        self._own = 0.0  # factor of weights times directions in a sweep's sums; see `own_part`
        self._directions = self._scaled(start)
        # For each sweep the mean over units of second moments of their weights, (r, r), over r.
        self._moments: list[Floats] = []
        self._sigma = 0.0  # deviation of the noise in the sums of a sweep

    def release_sweep(self) -> None:
        """Release sums for the directions so far, add them to earlier ones, update directions."""
        kept = self._kept_weights()
        effects, level = tuple(bias.effects for bias in self._biases), self._biases[0].values.level
        # Weights of units are found beside their levels: residuals are about the mean level.
        about = ReleasedEffects(effects, level, residual_variance(self._biases))
        scale = 2 * self._ask.public("half")  # residuals beyond the width of the range are clipped
        query = SharedFactorSums(self._ask.public("shape"), about, self._directions, scale)
        noisy = self._ask(query).as_sum()
        sums, moment_sum = np.split(noisy.value, [len(self._sums)])
        own = self._weights[:, None] * self._directions
        if not self._moments:
            self._own = self._measured_own(sums, own)
        sums -= OWN_TAKEN * self._own * own
        kept_by_own = (1 - OWN_TAKEN) * self._own * self._kept_in(own)
        moment = moment_sum / (MOMENT_WEIGHT * self._n_with_values)
        self._moments.append((moment + moment.T) / 2)
        self._sigma = noisy.sigma
        if len(self._moments) == 1:
            self._telling = self._measured_telling()
        identity = np.eye(len(kept))
        self._sums = self._sums @ kept + sums
        # The own part left in `sums` consists of earlier sums: it brings their noise and weight.
        kept = kept + kept_by_own
        self._covariance = kept @ self._covariance @ kept + noisy.sigma**2 * identity
        self._release_weight = self._release_weight @ kept + identity
        self._directions = self._scaled(self._shrunk_rows())

    def _measured_telling(self) -> float:
        """Number of entries of a unit that tell its weights, by the first sweep's moment."""
        r = len(self._directions.T)
        noise = self._sigma / (MOMENT_WEIGHT * self._n_with_values) * math.sqrt(r)
        # If weights have the posterior variance p, random directions have a mean moment of 1 less
        # the mean of (1 - p)^2 over units. Measure that mean, and shrink it by its noise to what
        # the mean root of numbers of entries says, which may err by half.
        expected = excess_of_assumed(self._telling)
        trust = expected**2 / (expected**2 + 4 * noise**2)
        measured = 1 - float(np.trace(self._moments[0]))
        # This is 1 - p; p = 1 / (1 + COMPONENT_VARIANCE * entries) by `untold_of_weight`.
        told = math.sqrt(np.clip(expected + trust * (measured - expected), LEAST_EXCESS, 0.99))
        return told / (1 - told) / defaults.COMPONENT_VARIANCE

    def _measured_own(self, sums: Floats, own: Floats) -> float:
        """Factor of `own`, weights times directions, in the first sweep's `sums`.

        Weights of a unit are fitted to its residuals: their products have the directions in them
        even if residuals are noise. The first directions are random, so that little else is there.
        """
        measured = float((sums * own).sum()) / max(float((own**2).sum()), LEAST_WEIGHT)
        most = own_part(own.shape[1], self._root_each) / self._size
        return min(max(measured, 0.0), most)

    def _kept_in(self, own: Floats) -> Floats:
        """Symmetric matrix K (r, r) by which `own` is about the earlier sums times K."""
        gram = self._sums.T @ self._sums
        if not gram.any():
            return np.zeros_like(gram)
        kept = np.linalg.pinv(gram, hermitian=True) @ (self._sums.T @ own)
        return np.asarray((kept + kept.T) / 2)

    def explained(self, last: int) -> tuple[Floats, float]:
        """Variance that directions explain, (r, r), and the deviation of noise on its diagonal.

        Both are in units of the assumed variance; moments of this number of `last` sweeps count.
        """
        # The second moment of units' weights is m in directions that explain nothing, and larger by
        # `excess_of_assumed` in those that explain the assumed variance. Directions of the first
        # sweep are random, so that m is the mean eigenvalue of its moment. As moments are stored
        # over r, that is the trace of the stored one.
        r, at_first = len(self._moments[0]), float(np.trace(self._moments[0]))
        assumed_excess = excess_of_assumed(self._telling)
        excess = r * np.mean(self._moments[-last:], axis=0) - at_first * np.eye(r)
        sigma = self._sigma / (MOMENT_WEIGHT * self._n_with_values)
        noise = float(moment_noise(sigma, r, last))
        return excess / assumed_excess, noise / assumed_excess

    def is_worth(self, gain_of_biases: float) -> bool:
        """True if components will explain as much variance of values as better biases would."""
        # Judge each direction by itself, at the low end of its variance: less what noise adds
        # (`beyond_noise`), less what chance adds, and less one deviation, `noise`.
        moment, noise = self.explained(judged_sweeps(self._n_trial))
        variance = self._deviation**2
        residual_share = residual_variance(self._biases) / variance
        values = np.linalg.eigvalsh(moment)
        denoised = beyond_noise(values, noise)
        is_seen = denoised > 0
        # Directions not seen gain nothing, but clipped moments of the others depend on them.
        shown = np.where(is_seen, denoised - noise - self._by_chance(), values)
        explained = is_seen * explained_variances(shown, self._telling)
        gain = gain_of_components(explained, self._telling, residual_share)
        # Without noise better biases gain 0, and the search goes on.
        return gain * variance >= gain_of_biases

    def factor(self) -> tuple[Floats, Floats]:
        """Directions (n_cells, r) times the roots of the variances they explain; standard errors.

        Columns that noise or chance could explain are 0.
        """
        moment, noise = self.explained(recent_sweeps(len(self._moments)))
        values, vectors = (part[..., ::-1] for part in np.linalg.eigh(moment))
        least = max(defaults.CERTAIN * noise, edge_of_noise(noise, len(values)))
        without_chance, n_found = values.copy(), 0
        by_found = 0.0  # variance of values that the directions found so far explain
        for denoised in beyond_noise(values, noise).tolist():
            by_chance = self._by_chance(by_found)
            if values[n_found] <= by_chance + least:
                break
            # Chance adds to an eigenvalue in squares.
            without_chance[n_found] = math.sqrt(max(denoised**2 - by_chance**2, 0.0))
            by_found += denoised * self._size**2
            n_found += 1
        explained = explained_variances(without_chance, self._telling)
        explained[n_found:] = 0.0
        factor = self._directions @ (vectors * np.sqrt(np.maximum(explained, 0.0)))
        return factor, self._errors(factor)

    def _errors(self, factor: Floats) -> Floats:
        """Standard errors (n_cells, r) of a `factor` of directions, by noise and sampling."""
        # But for shrinkage, a factor is sums over their cells' weights, times a matrix.
        weights = np.maximum(self._weights, LEAST_WEIGHT)[:, None]
        rows, roots = self._sums / weights, np.sqrt(self._shares)[:, None]
        turned = np.linalg.lstsq(roots * (rows - self._shares @ rows), roots * factor)[0]
        size, square = float(np.mean(weights)), self._sums.T @ self._sums / len(rows)
        least = LEAST_EIGENVALUE * max(float(np.trace(square)), LEAST_WEIGHT)
        square += least * np.eye(len(square))
        by_units = size * self._unit_variance * self._release_weight @ self._release_weight.T
        variances = np.zeros_like(factor)
        for covariance, over in ((self._covariance, weights**2), (by_units, size * weights)):
            # As shares of the mean square of sums, in axes where both are independent. In axes that
            # a search has lost the recursions for errors may exceed all there is: at most 1.
            shares, axes = eigh((covariance + covariance.T) / 2, square)
            variances += np.clip(shares, 0.0, 1.0) @ np.square(axes.T @ square @ turned) / over
        return np.sqrt(variances)

    def _by_chance(self, by_found: float = 0.0) -> float:
        """Variance, in units of the assumed one, that a direction seems to explain by chance alone.

        Other directions explain the variance of values `by_found`.
        """
        # Directions are fitted to the same units whose variance they explain. Only the `share` of
        # sums' variance that is by units, not by noise, lets them seem to explain any. Chance is
        # relative to the variance of values about a unit's level, not about biases, as errors of
        # biases and outliers add to the largest direction.
        by_units = self._variance_by_units() * float(np.mean(self._weights))
        share = by_units / (by_units + float(np.mean(self._covariance.diagonal())))
        residual_share = unexplained_variance(self._deviation, by_found) / self._deviation**2
        r = self._directions.shape[1]
        by_chance = variance_by_chance(self._weights, self._n_with_values, r, self._telling)
        return residual_share * share * by_chance

    def noise_variance(self, factor: Floats) -> float:
        """Variance of values about a unit's level that neither biases nor `factor` explain."""
        return residual_variance(self._biases, float((self._shares @ factor**2).sum()))

    def _kept_weights(self) -> Floats:
        """Matrix (r, r) that weighs earlier sums, less in directions that explain little."""
        if not self._moments:
            return np.eye(self._directions.shape[1])
        moment, _ = self.explained(recent_sweeps(len(self._moments)))
        values, vectors = np.linalg.eigh(moment)
        noise, weights = self._sigma**2, self._weights
        # Fraction of the variance of a sweep's sums that is noise, new in each sweep.
        weight = float(np.mean(weights))
        own = (1 - OWN_TAKEN) * self._own * self._size * weight
        by_noise = noise / max(noise + weight * self._unit_variance + own**2, LEAST_WEIGHT)
        cosine = len(values) / _effective_cells(weights)
        explained = explained_variances(values, self._telling)
        kept = forgetting_factor(explained, cosine, self._n_trial, by_noise)
        return np.asarray((vectors * kept) @ vectors.T)

    def _shrunk_rows(self) -> Floats:
        """Rows (n_cells, r) fitted to the sums and shrunk by their noise; in an arbitrary unit."""
        r, weights = self._sums.shape[1], self._weights
        grams = weights[:, None, None] * np.eye(r)
        noise = np.broadcast_to((self._covariance + self._covariance.T) / 2, grams.shape)
        by_units = self._variance_by_units()
        # EM for the prior variance of a row starts from the noise of an average row; without noise
        # any start is right.
        noise_variance = float(np.mean(self._covariance.diagonal()))
        prior = (noise_variance / max(float(np.mean(weights)) ** 2, 1e-100)) or 1.0
        return posterior_rows(self._sums, grams, noise, by_units, prior)

    def _variance_by_units(self) -> float:
        """Variance by units of a number in the accumulated sums, over its cell's weight."""
        return float(np.mean(self._release_weight.diagonal())) ** 2 * self._unit_variance

    def _scaled(self, rows: Floats) -> Floats:
        """Orthogonal columns of root mean square `_size` over entries, nearest to `rows`.

        Their mean over entries is 0: a unit's level has what is the same in all cells.
        """
        rows = rows - self._shares @ rows
        gram = rows.T @ (self._shares[:, None] * rows)
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        values = np.maximum(values, LEAST_EIGENVALUE * max(float(values[-1]), 1e-100))
        return np.asarray(self._size * rows @ ((vectors / np.sqrt(values)) @ vectors.T))


def own_part(n_columns: Any, root_each: float) -> Any:
    """Number p by which sums hold p * weights * directions even if residuals are noise alone.

    `root_each` is the mean root of the number of a unit's entries.
    """
    # A unit's u / |u| is fitted to the residuals that it is multiplied with, divided by their norm:
    # each of its n entries adds E[|u|] / (r n) on average, and a cell has the weight n ** -0.5.
    return chi.mean(n_columns) / n_columns / root_each


def recent_sweeps(n_sweeps: int) -> int:
    """Number of last sweeps whose moments say what directions explain: a quarter, at least 2."""
    return max(n_sweeps // 4, 2)


def forgetting_factor(explained: Floats, cosine: float, n_trial: int, noise: float) -> Floats:
    """Weights, one for each direction, of the sums of earlier sweeps in the next power step.

    `explained` are the variances that directions explain, in units of the assumed one. `cosine` is
    squared, between random directions and a component, and `noise` the fraction of the
    variance of sums that is new in each sweep.
    """
    # A random squared cosine is near 1 at the trial if each sweep multiplies it by
    # g = cosine ** (-1 / n_trial): growth is fastest if earlier sums weigh 1 / sqrt(g). A direction
    # that explains half of the assumed variance has grown already: its earlier sums weigh 1. Both
    # are multiplied by `noise`, as averages over sweeps reduce no error that all sweeps share.
    growth = max(cosine ** (-0.5 / n_trial), 1.0) - 1  # sqrt(g) - 1
    return np.asarray(noise / (1 + growth * np.clip(1 - 2 * explained, 0.0, 1.0)))


def telling_entries(root_each: float) -> float:
    """Number of entries of a unit that tell its weights: all but one, which tells its level."""
    return max(root_each**2 - 1, LEAST_TELLING)


def untold_of_weight(each: float) -> float:
    """Posterior over prior variance of a unit's weight, by `each` entries that tell it."""
    return 1 / (1 + defaults.COMPONENT_VARIANCE * each)


def excess_of_assumed(each: float) -> float:
    """Excess of the second moment of weights in a direction that explains the assumed variance.

    `each` is the number of a unit's entries that tell its weights.
    """
    return max((1 - untold_of_weight(each)) ** 2, LEAST_EXCESS)


def explained_variances(shown: Floats, each: float) -> Floats:
    """Variances (r,) that directions explain, from those `shown` by clipped moments of weights.

    Both are in units of the assumed one; `each` is the number of a unit's entries that tell its
    weights.
    """
    # A weight of posterior variance p has the variance s = p (1 - p) + (1 - p)^2 v in a direction
    # that explains v. A fixed point finds the s whose clipped moments have the diagonal shown.
    n_steps, least_share = 30, 1e-3
    p = untold_of_weight(each)
    s_of_none = p * (1 - p)  # of directions that explain nothing
    assumed_excess = excess_of_assumed(each)
    # Near the largest diagonal that clipping allows, s may be anything: let all components together
    # explain at most half of the variance of values, the mean of a uniform prior.
    most = 0.5 / defaults.COMPONENT_VARIANCE
    squares = chi2.ppf((np.arange(32) + 0.5) / 32, 1)[:, None]  # of a standard normal variate
    squares /= squares.mean()
    s = np.full(len(shown), s_of_none)
    diagonal = _clipped_diagonal(s, p, squares) + assumed_excess * shown
    for _ in range(n_steps):
        s = (p + s) * diagonal / _clipped_diagonal(s, p, squares) - p
        s = np.clip(s, least_share * s_of_none, s_of_none + assumed_excess * most)
    explained = (s - s_of_none) / assumed_excess
    return np.asarray(explained * min(most / max(float(explained.clip(0).sum()), most), 1.0))


def _clipped_diagonal(s: Floats, p: float, squares: Floats) -> Floats:
    """Mean diagonal (r,) of clipped moments ``p I + w w'``, for normal weights w of variances `s`.

    They are clipped to the norm r, as by `clipped_moments`. The squared length of all weights but
    one is taken for a gamma variate of its mean and variance. Axes: weights, then quantiles of the
    `squares` (n, 1) of one weight over its variance, then those of the others.
    """
    r = len(s)
    own, others = s[:, None, None] * squares, 0.0
    if r > 1:
        total, of_squares = s.sum() - s, (s**2).sum() - s**2
        shapes = total[:, None] ** 2 / (2 * of_squares[:, None])
        others = gammaincinv(shapes, (np.arange(8) + 0.5) / 8)
        others = (others * (total / others.mean(axis=1))[:, None])[:, None]
    norms = np.sqrt((p + own + others) ** 2 + (r - 1) * p**2)
    return np.asarray(np.mean((p + own) / np.maximum(norms / r, 1.0), axis=(1, 2)))


def gain_of_components(explained: Floats, each: float, residual: float) -> float:
    """Fraction of the variance of values that components explain, by weights that units fit.

    `explained` are variances of components in units of the assumed one, those below 0 count as 0;
    `each` is the number of a unit's entries that tell its weights, and `residual` the fraction left
    by biases.
    """
    # The entries of a unit tell the fraction each v / (each v + residual) of a weight's variance v.
    variances = defaults.COMPONENT_VARIANCE * np.maximum(explained, 0.0)
    return float(np.sum(variances * each * variances / (each * variances + residual)))


def moment_noise(sigma: float, n_columns: int | Integers, last: int) -> Floats:
    """Deviation of the noise on the diagonal of ``r mean - trace I``, of moments (r, r).

    Moments have noise of deviation `sigma`; the mean is over the `last` sweeps, the trace that of
    another moment, and r is `n_columns`.
    """
    # The mean brings the variance r^2 sigma^2 / last, and the trace r sigma^2.
    return np.asarray(sigma * n_columns * np.sqrt(1 / last + 1 / n_columns))


def variance_by_chance(weights: Floats, n_units: int, n_columns: int, each: float) -> float:
    """Variance, in units of the assumed one, that a direction fitted to residuals seems to explain.

    Residuals are those of `n_units` units without components; `weights` are those of cells.
    """
    # A moment is the posterior variance p of a weight plus the mean square of its posterior mean w:
    # together 1 if directions explain the assumed variance, and p + p (1 - p) if nothing.
    p = untold_of_weight(each)
    if_nothing = 1 - (1 - p) ** 2
    quantiles = chi2.ppf((np.arange(100) + 0.5) / 100, n_columns)

    def clipped_square(of_means: float) -> float:
        """Mean square of a weight in moments ``p I + w w'`` clipped to the norm n_columns."""
        squares = of_means * quantiles  # of w, by chance in each unit
        clips = np.maximum(np.sqrt((p + squares) ** 2 + (n_columns - 1) * p**2) / n_columns, 1.0)
        return float(np.mean((p + squares / n_columns) / clips))

    # Squared norm of the residuals of n units in d cells, in units of the variance of one: n along
    # a random direction, largest^2 along the fitted one.
    largest = largest_of_noise(n_units, _effective_cells(weights))
    of_fitted = (largest**2 / n_units - 1) / (defaults.COMPONENT_VARIANCE * each)
    of_noise = if_nothing - p + (1 - if_nothing) * of_fitted
    return (clipped_square(of_noise) - clipped_square(if_nothing - p)) / (1 - if_nothing)


def columns_worth(weights: Floats, n_units: int, plan: PersonPlan, rank: int) -> int:
    """Number of columns of a search: the most components that the trial can find, at least 1.

    Components explain the assumed variance each. `weights` are those of cells; at most `rank`
    components are asked for.
    """
    mu = plan.releases.cost_of(SharedFactorSums.name).mu
    n_trial, root_each = trial_sweeps(plan.n_sweeps), weight_of_unit(weights, n_units)
    k = np.arange(1, min(rank, len(weights)) + 1)
    # A random start of k columns has the squared cosine k / n_cells, which has to grow to a half.
    growth, telling = n_trial * _log_growth(weights, root_each, mu, k), telling_entries(root_each)
    is_found = growth >= np.log(_effective_cells(weights) / 2 / k)
    # A direction that explains half of the assumed variance adds (1 - untold)^2 / 2 to the moment
    # of its weights, which has to be twice the edge of noise.
    sigma = SharedFactorSums.largest_distance / (mu * MOMENT_WEIGHT * n_units)
    noise = moment_noise(sigma, k, judged_sweeps(n_trial))
    is_certain = edge_of_noise(noise, k) <= (1 - untold_of_weight(telling)) ** 2 / 4
    return max(k[is_found & is_certain].tolist(), default=1)


def _log_growth(weights: Floats, root_each: float, mu: float, k: Integers) -> Floats:
    """Log of the factor by which a sweep with k columns raises a small squared cosine.

    `root_each` is the mean root of the number of a unit's entries, `mu` the budget of a sweep.
    """
    cell_weight = float((weights**2).sum()) / max(float(weights.sum()), LEAST_WEIGHT)
    # Directions add their own part, and a component of variance v that times v and the number of a
    # unit's entries.
    own = cell_weight * own_part(k, root_each)
    signal = own * root_each**2 * defaults.COMPONENT_VARIANCE
    own = (1 - OWN_TAKEN) * own
    noise = SharedFactorSums.largest_distance / mu
    return np.asarray(np.log1p(signal * (signal + 2 * own) / (noise**2 + own**2)))


def _effective_cells(weights: Floats) -> float:
    """Effective number of cells: the squared sum of weights over the sum of their squares."""
    return float(weights.sum()) ** 2 / max(float((weights**2).sum()), 1e-100)
