"""Biases of rows that persons share, fitted to several releases of sums of their residuals."""

import math
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache, partial, reduce
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from sktensor_dp.completion.concurrences import (
    Concurrences,
    are_kept_to,
    solved,
    solved_by_laws,
)
from sktensor_dp.completion.effect_release import (
    LEAST_ERROR,
    LEAST_WEIGHT,
    EffectRelease,
    block_weights,
    parts_of_second,
    pooled_counts,
)
from sktensor_dp.completion.fixed_point import Line, fixed_point
from sktensor_dp.completion.hidden_axes import variances_of_differences
from sktensor_dp.completion.model import LEAST_UNEXPLAINED, unexplained_variance
from sktensor_dp.completion.plan import MOST_COMPARED, MOST_CONCURRENT
from sktensor_dp.completion.pull import (
    OfClips,
    Pull,
    expected_square_errors,
    measured_pull,
    pull_by_clip,
)
from sktensor_dp.completion.row_weights import row_weights
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.person_entries import ReleasedEffects, RowConcurrences, SharedRowSums
from sktensor_dp.queries.query import Query
from sktensor_dp.tensor import defaults as kernel_defaults
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.shared_parameters import (
    SharedEffects,
    clip_of_two_values,
    clipped_response,
    clipped_variance,
    mean_response,
    ratio_to_largest,
    residual_clip,
    shared_effects,
)

# Least response to effects in units of the clip.
LEAST_RESPONSE = 1e-6
# Least share of units with several rows, or whose values vary, to avoid a division by 0.
LEAST_SEVERAL = 1e-3
# Least squared spread of sums of units over that of independent entries: that of equal values is 0.
LEAST_SPREAD = 1e-2
# Number of shares of units that vary, of which one is found.
N_SHARES = 200
# Number of clips that are tried.
N_CLIPS = 33
# Least variance of a row's estimate, relative to its prior variance: exact sums have none.
LEAST_VARIANCE = 1e-12


def mean_to_median(r: float, means: float | Floats, half: float) -> Floats:
    """Expected median less mean of values between -half and half, for each of their `means`.

    The variance of values is `r` times the largest that their mean allows.
    """
    # Beta distributed values of mean m and variance v have a median that is 2/3 m r / (1 + r) from
    # their mean, by their third cumulant, with r = v / (half^2 - m^2).
    nearest = np.maximum(half - np.abs(means), 0.0)  # a median lies between the bounds, too
    return np.clip(2 / 3 * r / (1 + r) * np.asarray(means), -nearest, nearest)


def by_own_level(each: float) -> float:
    """Error variance of the level that a unit's residuals are about, over that of its values.

    `each` is the mean number of entries of a unit.
    """
    # A residual of one of n entries is about the mean of the n - 1 others: take the mean of
    # 1 / (n - 1) for n of a geometric distribution from 2 on.
    return math.log(each - 1) / (each - 2) if each > 2 else 1.0


def shift_by_clip(clip: float, widest: float) -> float:
    """Shift of effects by a clip of residuals, over the mean of residuals less their median.

    `clip`, and `widest`, beyond which no residual is, are in deviations of residuals.
    """
    # Residuals of rows with different deviations have nearly exponential tails, which have
    # (1 + c) exp(-c) of their mean beyond c.
    return max((1 + clip) * math.exp(-clip) - (1 + widest) * math.exp(-widest), 0.0)


def longest_sum(clip: float | Floats) -> Any:
    """Largest norm of a unit's sums, in norms of its counts, for a `clip` of residuals."""
    # Sums of normal residuals have about the deviation of a clipped residual as their norm. Longer
    # ones cost noise: norms are clipped at as many deviations as residuals are, at least at one.
    return np.minimum(np.maximum(clip, 1.0) * np.sqrt(clipped_variance(clip)), 1.0)


def share_by_size(size: float, clip: float, deviation: float) -> float:
    """Share of units that vary, all alike, if the others do not vary.

    `size` is the mean size of residuals, in clips. The `clip` and the residuals' `deviation` are in
    units of values.
    """
    shares = np.geomspace(LEAST_SEVERAL, 1.0, N_SHARES)
    # Mean size, in clips, of clipped normal residuals that have the deviation
    # deviation / sqrt(share) in this share of units and are 0 in the others.
    z = clip * np.sqrt(shares) / deviation
    sizes = shares * (math.sqrt(2 / math.pi) * -np.expm1(-(z**2) / 2) / z + 2 * ndtr(-z))
    return float(np.interp(size, sizes, shares))


def shortened(clip: float | Floats, share_varied: float) -> Any:
    """Part that `longest_sum` leaves of the sums of units that vary, a `share_varied` of all."""
    length = np.sqrt(clipped_variance(clip * math.sqrt(share_varied)))
    return np.minimum(longest_sum(clip) / length, 1.0)


def clip_of_least_error(
    past: OfClips, noise: float, apart: float, effects: float, n_rows: int, pull: Pull,
    least: float, widest: float, share_varied: float = 1.0,
) -> float:  # fmt: skip
    """Choose the clip, from `least` to `widest`, by which biases should err least in the end.

    All releases to come are taken to have this clip; all numbers are in deviations of residuals.
    `noise` is that of a row's effect by these releases together, at sensitivity and response 1.
    `apart` is the root mean square over rows of distances from mean to median, `effects` that of
    the effects.
    """
    clips, responses, by_clips, shifts = _clips_between(least, widest, share_varied)
    # Values of units that do not vary are off the effects by the pull, of which clips take a part.
    beyond = pull.beyond(clips, effects) * (1 - share_varied) / pull.gain(by_clips)
    planned = OfClips((responses / noise) ** 2, by_clips, np.hypot(apart * shifts, beyond))
    return float(clips[np.argmin(expected_square_errors(past, planned, pull, effects, n_rows))])


@lru_cache(maxsize=64)  # forecasts ask for the same ones hundreds of times
def _clips_between(least: float, widest: float, share_varied: float) -> tuple[Floats, ...]:
    """Clips, and of each: response over sensitivity, `pull_by_clip` and `shift_by_clip`."""
    clips = np.geomspace(least, widest, N_CLIPS)
    sensitivities = np.array([*map(SharedRowSums.largest_distance, longest_sum(clips).tolist())])
    by_clips = pull_by_clip(clips, share_varied, shortened(clips, share_varied))
    shifts = np.array([shift_by_clip(clip, widest) for clip in clips.tolist()])
    return clips, clipped_response(clips) / sensitivities, by_clips, shifts


class _Round(NamedTuple):
    """One release of a mode's biases, with the numbers that it was made with."""

    release: EffectRelease
    clip: float  # of residuals, in units of values
    means: list[Floats]  # effects of each shared mode that residuals were about
    left: Floats  # (2,): by how much units' sums in each block are less than possible
    most: float  # largest norm of units' sums, over that of their counts
    sigma: float  # deviation of the noise of each released number

    def of_others(self, place: int) -> Floats:
        """Effects of all modes but the one at `place`, one after the other."""
        return _joined(self.means[:place] + self.means[place + 1 :])


class _Comparison(NamedTuple):
    """The n releases of a mode, corrected by how units compare rows."""

    releases: list[EffectRelease]  # each about effects whose errors residuals would show in full
    shown: Floats  # (n_rows, n_rows): times errors of effects, it is what residuals show
    part: Floats  # (n_rows,): part of a row's entries that are of units with several rows
    variances: Floats  # (n_rows,): of numbers of a row of `shown`, by noise
    errors: Floats  # (n_rows, n, n): mean products of errors that noise in `shown` makes


@dataclass
class PersonValues:
    """Released facts on values of units so far; one object for the biases of all modes."""

    n_with_values: int  # units with values
    # Mean of values minus the middle of the bounds; once that is released, of values less biases.
    level: float
    deviation: float  # of values about their unit's level
    share_varied: float  # of units whose values vary, if they vary alike and the others do not
    by_level: float = 0.0  # as `by_own_level`
    measured_part: float = 1.0  # mean variance about units' own means, over squared `deviation`


class SharedBiases:
    """Biases of the rows of one shared mode, fitted to released sums of residuals."""

    effects: SharedEffects  # by all releases so far
    weights: Floats  # (n_rows,): sum over units of a row's count over the norm of all counts
    shares: Floats  # (n_rows,): weights over their sum
    total_variance: float  # of the sum of weights, by noise
    n_alone: float  # weight, and so number, of units with entries in one row alone
    _noise_of_sum: float  # deviation of noise in the last release, over its sensitivity
    _moments: Floats  # (2, n_rows): posterior means of a row's weight in sums, and of its square
    _by_noise: Floats  # (n_rows,): deviations of effects by noise of all releases, times weights
    _linear: Sequence[EffectRelease]  # all so far, made linear; their effects contain the pull
    _pull = Pull()
    _line: Line | None = None  # along which effects are extrapolated
    _moves: Floats  # (2, n_rows): moves of effects by the error of the deviation of values
    _concurrences: Concurrences | None = None  # if they are released
    is_kept_to = False  # True if released concurrences show that units keep to few rows
    # Part that units with one row have of the weight by which effects are found, if it is clearly
    # more than half; else 0.
    share_alone = 0.0

    def __init__(self, ask: Session, mode: int, values: PersonValues) -> None:
        self._ask, self.mode, self.values = ask, mode, values
        self._order = order_of(ask)
        self._shape: tuple[int, ...] = ask.public("shape")
        self.half: float = ask.public("half")
        self._rounds: list[_Round] = []
        zeros = np.zeros(self._shape[mode])
        self.effects = SharedEffects(zeros, zeros, zeros, prior_variance=0.0)
        self.shares, self.weights = zeros + 1 / len(zeros), zeros
        self._moments = np.ones((2, len(zeros)))

    def release_concurrences(self, pooled: int = 1, paid_by: type[Query] = RowConcurrences) -> None:
        """Release how units compare rows, by which effects are then fitted.

        Planned uses of the query `paid_by`, `pooled` of them, pay.
        """
        query = RowConcurrences(self.mode, self._shape)
        noisy = self._ask(query, pooled, paid_by).as_sum()
        sums, sigma = noisy.value, noisy.sigma
        # In the first round alone all rows weigh as much.
        first = self._rounds[0].release
        weights = np.maximum(first.counts[0], first.sigma[0]) + LEAST_WEIGHT
        self._concurrences = Concurrences.of_sums(sums, sigma, weights)
        self.is_kept_to = self.is_known and are_kept_to(sums, sigma)

    def release(
        self, biases: Sequence["SharedBiases"], n_left: float = 0, pooled: int = 1,
        paid_by: type[Query] = SharedRowSums, precision: float = 1.0,
    ) -> None:  # fmt: skip
        """Release sums of residuals about all biases so far.

        `biases` are those of all shared modes, and about `n_left` releases of this mode follow.
        `pooled` planned uses of the query `paid_by` pay. `precision` has to be their mu squared
        over that of the last release of this mode.
        """
        variance = residual_variance(biases)
        about = ReleasedEffects(tuple(bias.effects for bias in biases), self.values.level, variance)
        deviation = math.sqrt(variance)
        clip = self._clip(deviation, n_left, precision)  # in deviations of residuals
        spread = math.sqrt(clipped_variance(clip))
        most = 1.0 if self._order == 1 else longest_sum(clip)  # in L1 longer sums cost no noise
        of_rows = self._row_weights(clip, deviation, most, n_left + precision)
        query = SharedRowSums(
            self.mode, self._shape, about, clip * deviation, self._order, most, of_rows
        )
        noisy = self._ask(query, pooled, paid_by).as_sum()
        self._noise_of_sum = noisy.sigma / query.l2_sensitivity
        # Divide by the row's weight over the norm of weights in a usual unit, as if all rows had
        # weighed the same. In the block of units with one row all rows do.
        factors = np.ones((2, len(of_rows)))
        shares = self._moments[0] / self._moments[0].sum()
        factors[0] = of_rows / math.sqrt(shares @ of_rows**2)
        by_row, left = noisy.value[:, :-1].reshape(2, 2, -1), noisy.value[:, -1]
        # Axes of `by_row` are blocks, sums and counts, and rows.
        release = EffectRelease(
            sums=by_row[:, 0] / factors, counts=by_row[:, 1] / factors,
            sigma=noisy.sigma / factors, response=1.0, about=self.effects.means, spread=spread,
        )  # fmt: skip
        means = [bias.effects.means for bias in biases]
        self._rounds.append(_Round(release, clip * deviation, means, left, most, noisy.sigma))

    def _row_weights(self, clip: float, deviation: float, most: float, budget: float) -> Floats:
        """Weights of rows in the next release, by which biases should explain most.

        `clip`, in units of `deviation`, and `most` are those of the next release. It and those
        after it together have `budget` times the mu squared of the one before.
        """
        if self._order == 1 or self._ask.is_exact or not self._rounds:
            return np.ones(len(self.weights))
        sigma = self._noise_of_sum * SharedRowSums.largest_distance(most)
        prior = math.sqrt(kernel_defaults.LEVEL_VARIANCE) * deviation
        planned = budget * (prior * clipped_response(clip, deviation) / sigma) ** 2
        return row_weights(self._moments, (prior / self._by_noise) ** 2, planned)

    def explained(self) -> float:
        """Variance of values about a unit's level that biases of this mode explain."""
        return float(self.shares @ self.effects.means**2)

    def gain_of(self, ratio: float) -> float:
        """Further variance that releases of `ratio` times the past budget would explain."""
        prior, variances = self.effects.prior_variance, self.effects.variances
        snr = np.maximum(prior / np.maximum(variances, LEAST_VARIANCE * prior) - 1, 0.0)
        # Sums are `snr` times as precise as the prior, with more budget (1 + ratio) * snr times.
        # The gain in a row is prior / (1 + snr) - prior / (1 + (1 + ratio) * snr).
        gained = prior * ratio * snr / ((1 + snr) * (1 + (1 + ratio) * snr))
        return float(self.shares @ gained)

    def _clip(self, residual: float, n_left: float, precision: float) -> float:
        """Clip of the next release's residuals, in units of their deviation `residual`.

        The first clip is wide. Later ones are those by which effects should err least, if `n_left`
        releases follow with the same clip; `precision` is as for `release`.
        """
        widest = 2 * self.half / residual
        if self._ask.is_exact:
            return widest
        # Biases reduce the variance and the largest that bounds allow alike: the ratio of both,
        # which decides the least clip, is that of values in every round.
        values, half = self.values, self.half
        least = residual_clip(values.deviation, half, values.level)
        if not self._rounds:  # wide enough to show means, by which later releases tell the pull
            of_varied = clip_of_two_values(half, values.level)  # in deviations of units that vary
            return min(of_varied / math.sqrt(values.share_varied), widest)
        weight = math.sqrt(np.mean(self.weights**2))
        unit = weight * residual

        def mean_size(by_row: Floats) -> float:
            """Root mean square over rows, by their squared weights, in deviations of residuals."""
            return math.sqrt(np.mean((self.weights * by_row) ** 2)) / unit

        past = OfClips(
            np.array([
                np.mean((self.weights * residual * released.response / released.sigma) ** 2)
                for released in self._linear
            ]),
            np.array([released.by_clip for released in self._linear]),
            np.array([mean_size(np.asarray(released.shift)) for released in self._linear]),
        )  # fmt: skip
        # This release has `precision` times the budget of the last one, later ones have as much as
        # the last.
        noise = self._noise_of_sum / (weight * math.sqrt(n_left + precision))
        return clip_of_least_error(
            past, noise, mean_size(self._distances_to_medians()),
            mean_size(np.sqrt(self.effects.means**2 + self.effects.variances)),
            len(self.weights), self._pull, least, widest, values.share_varied,
        )  # fmt: skip

    @property
    def is_known(self) -> bool:
        """True unless noise hides how units compare rows, by released sums."""
        if self._concurrences is None:
            return self._tells_differences
        return self._concurrences.is_known

    def weight_and_rows_each(self, doubt: float = 0.0) -> tuple[float, float]:
        """Weight of units with several rows, in all rows, and number of rows of such a unit.

        The weight is from released counts, less `doubt` deviations of their noise.
        """
        counts, sigma = pooled_counts([past.release for past in self._rounds])
        totals = counts.sum(axis=1) - doubt * np.linalg.norm(sigma, axis=1)
        weight, n_alone = np.maximum(totals, 0.0).tolist()
        n = self.values.n_with_values
        of_unit = weight / max(n - n_alone, LEAST_SEVERAL * n)
        # With r rows a unit weighs sqrt(1 - 1 / r) in order 1, and sqrt(r) in order 2.
        if self._order == 1:
            return weight, 1 / max(1 - of_unit**2, 1 / len(self.shares))
        return weight, of_unit**2

    @property
    def _tells_differences(self) -> bool:
        """True if errors of differences are known: units compare most rows, or it is known how.

        True also for two rows, and where most weight is of units with one row, as notes on the fit
        then say; but false for modes of more than `MOST_CONCURRENT` rows.
        """
        n_rows = len(self.shares)
        if n_rows > MOST_CONCURRENT:
            return False
        if n_rows == 2 or self.share_alone > 0:
            return True
        if self._concurrences is not None and self._concurrences.is_known:
            return True
        return self.weight_and_rows_each(doubt=2.0)[1] >= MOST_COMPARED * n_rows

    @property
    def _share_at_bounds(self) -> float:
        """Variance of values over the largest that their mean allows; 1 if all are at bounds."""
        return ratio_to_largest(self.values.deviation, self.half, self.values.level)

    def _distances_to_medians(self) -> Floats:
        """Medians of rows less their means (n_rows,), centred: a constant moves no bias."""
        means = self.values.level + self.effects.means
        distances = mean_to_median(self._share_at_bounds, means, self.half)
        return distances - float(self.shares @ distances)

    def fit_hidden(self, biases: Sequence["SharedBiases"]) -> None:
        """Fit effects once more, by all laws of how units may compare rows.

        No release may follow, as hidden effects may then be as large as bounds allow.
        """
        if self._concurrences is None or self._concurrences.hidden is None:
            return
        before = self.effects.variances
        self.fit(biases, last=True)
        variances = np.maximum(self.effects.variances, before)
        self.effects = replace(self.effects, variances=variances)
        self.add_moves(self._moves)

    def add_moves(self, moves: Floats) -> None:
        """Keep `moves` (n, n_rows) of effects, and add their mean products to covariances."""
        self._moves, covariances = moves, self.effects.covariances
        if covariances is not None:
            covariances = covariances + moves.T @ moves / len(moves)
            self.effects = replace(self.effects, covariances=covariances)

    def fit(self, biases: Sequence["SharedBiases"], last: bool = False) -> None:
        """Fit effects to all releases so far, given the effects of other modes.

        The `last` fit is that of `fit_hidden`.
        """
        if not self._rounds:
            return
        releases = [past.release for past in self._rounds]
        counts, sigma = pooled_counts(releases)
        several, self.n_alone = counts.sum(axis=1).tolist()
        self.total_variance = float(np.sum(sigma**2))
        weight_each = self._weight_of_entry(several + self.n_alone, biases)
        release = self._combined(biases, weight_each, last)
        effects, self._moments = shared_effects(
            release.sums, release.counts, noise_std=release.sigma, weight_each=weight_each,
            effect_variance=kernel_defaults.LEVEL_VARIANCE * self.values.deviation**2,
            response=release.response, about=release.about, spread=release.spread,
            middle=self.values.level, half=self.half,
        )  # fmt: skip
        # Popularity is half the logarithm of a weight over the mean weight.
        self.shares = np.exp(2 * effects.popularity)
        self.shares /= self.shares.sum()
        self._by_noise = release.sigma / release.response
        if self._order == 1:  # take the weight of order 2, where a unit of n entries weighs n / |c|
            norm = math.sqrt(self._squared_norm(several, self._rounds[-1].sigma))
            several = self._n_several / norm
        # Noise may make the total weight negative.
        self.weights = max(several + self.n_alone, 1e-9) * self.shares
        # Clipped residuals show signs more than sizes. If values are skewed, most are on one side
        # of their unit's level, which adds a constant to all effects: subtract it.
        mean = float(self.shares @ effects.means)
        widest = 2 * self.half
        assert effects.prior_means is not None
        variances = effects.variances + release.by_step + release.pulled**2
        covariances = self._covariances(effects, release) if self._tells_differences else None
        self.effects = replace(
            effects, means=np.clip(effects.means - mean, -widest, widest),
            prior_means=effects.prior_means - mean,
            variances=np.minimum(variances, widest**2), covariances=covariances,
        )  # fmt: skip

    def _covariances(self, effects: SharedEffects, release: EffectRelease) -> Floats:
        """Covariances (n_rows, n_rows) of errors of `effects` less their mean.

        The effects are those of a `release`, shrunk.
        """
        assert effects.drawn is not None
        n_rows, shown = len(self.shares), 1 - effects.drawn
        pulled = shown * release.pulled
        found = np.diag(effects.variances) + np.multiply.outer(pulled, pulled)
        if release.beyond is None:
            found += np.diag(np.broadcast_to(release.by_step, n_rows))
        else:
            assert self._concurrences is not None
            # Positive eigenvalues, of what hardly anybody compares, are not shrunk, as the prior
            # does not know it; negative ones are.
            values, axes = np.linalg.eigh(release.beyond)
            less = (axes * np.minimum(values, 0.0)) @ axes.T
            found += (axes * np.maximum(values, 0.0)) @ axes.T
            found += np.multiply.outer(shown, shown) * less
        of_mean = self.shares @ found
        return np.asarray(found - np.add.outer(of_mean, of_mean) + of_mean @ self.shares)

    def _weight_of_entry(self, total: float, biases: Sequence["SharedBiases"]) -> float:
        """Mean weight of an entry if entries of all units together weigh `total`."""
        # A unit's n entries together weigh w = n / |c|, |c| the norm of its counts by row. As |c|^2
        # is n at least, n is w^2 at least.
        of_unit = max(total / self.values.n_with_values, 1.0)
        fitted = [bias for bias in biases if bias.weights.any()]
        n_each = entries_each(fitted) if fitted else 1.0
        return of_unit / max(n_each, of_unit**2)

    def _squared_norm(self, weight: float, sigma: float) -> float:
        """Mean of ``(|c| / n)^2`` over units with several rows, with n entries, c of them by row.

        It is for order 1; `weight` is the sum of the counts of these units, `sigma` the deviation
        of noise in a row.
        """
        # Such a unit weighs about the root of 1 - (|c| / n)^2. Where noise hides that, assume many
        # entries, at most one in each row.
        each = (weight + sigma * math.sqrt(len(self.shares))) / self._n_several
        return min(max(1 - each**2, 1 / len(self.shares)), 1 / 2)

    @property
    def _n_several(self) -> float:
        """Number of units with entries in several rows, more than none."""
        n = self.values.n_with_values
        return max(n - self.n_alone, LEAST_SEVERAL * n)

    def _combined(
        self, biases: Sequence["SharedBiases"], weight_each: float, last: bool
    ) -> EffectRelease:
        """Average of all releases so far, extrapolated to the fixed point of all `biases`.

        `weight_each` is the mean weight of an entry. `share_alone`, the pull and the line are set.
        """
        place = biases.index(self)
        others = [*biases[:place], *biases[place + 1 :]]
        # Rows of all other modes, one after the other: their effects now, and in each round.
        shares = _joined(other.shares for other in others)
        now = _joined(other.effects.means for other in others)
        by_round = np.stack([past.of_others(place) for past in self._rounds])
        missed = now - by_round
        uncertain = float(shares @ _joined(other.effects.variances for other in others))
        releases = [past.release for past in self._rounds]
        blocks = block_weights(releases, weight_each)
        self.share_alone = _share_of_second(releases, blocks)
        joined = [past.release.joined(blocks) for past in self._rounds]
        comparison = self._comparison(joined, blocks)
        if comparison is not None:
            joined = comparison.releases
        linear = []
        for past, released, effects in zip(self._rounds, joined, by_round, strict=True):
            tangent = self._linearised(released, past.clip, float(shares @ effects**2))
            linear.append(self._with_measured_spread(tangent, past, blocks, weight_each))
        of_missed = missed * shares @ missed.T
        self._linear = linear
        linear = self._without_pull(linear, weight_each, of_missed.diagonal())
        of_comparison = 0.0 if comparison is None else comparison.errors
        release = EffectRelease.combined(linear, of_missed + uncertain, of_comparison)
        release = self._at_fixed_point(release, linear, biases, weight_each, comparison)
        if comparison is None:
            return release
        return self._compared(release, comparison, weight_each, last)

    def _comparison(self, joined: Sequence[EffectRelease], blocks: Floats) -> "_Comparison | None":
        """Releases `joined` by `blocks`, corrected by concurrences; None if there are none."""
        if self._concurrences is None:
            return None
        counts, _ = pooled_counts([past.release for past in self._rounds])
        several, alone = np.maximum(counts, 0.0) * blocks[:, None]
        part = several / (several + alone + LEAST_WEIGHT)
        shown = self._concurrences.shown(part)
        # Of the errors of the effects that a release is about, residuals show `shown @ errors`. Put
        # effects with the errors `shown @ errors` in their place: residuals show these in full.
        off = self.effects.means - np.stack([released.about for released in joined])
        releases = [
            replace(released, about=self.effects.means - nearer)
            for released, nearer in zip(joined, off @ shown.T, strict=True)
        ]
        products = off @ off.T + float(self.effects.variances.sum())
        variances = part**2 * self._concurrences.variances
        errors = np.multiply.outer(variances, products)
        return _Comparison(releases, shown, part, variances, errors)

    def _compared(
        self, release: EffectRelease, comparison: _Comparison, weight_each: float, last: bool
    ) -> EffectRelease:
        """Average `release`, moved so that its estimates are the b of ``shown @ b = seen``."""
        counts = np.maximum(release.counts, release.sigma) + LEAST_WEIGHT
        sampling = weight_each * (release.spread / release.response) ** 2 / counts
        own_noise = release.noise(counts) ** 2
        noise = own_noise + release.by_step
        estimates, shown = release.estimates(counts), comparison.shown
        # All effects may lie along one direction, as those of a trend.
        prior = len(counts) * kernel_defaults.LEVEL_VARIANCE * self.values.deviation**2
        seen = estimates - self.effects.means + shown @ self.effects.means
        if last:
            found, joint = self._by_laws(release, comparison, seen, noise, sampling, prior)
            variances = variances_of_differences(joint)
        else:
            found, joint, _ = solved(shown, seen, noise, sampling, prior)
            variances = joint.diagonal()
        own = own_noise + sampling
        return replace(
            release, about=release.about + found - estimates,
            by_step=np.maximum(variances - own, 0.0), beyond=joint - np.diag(own),
        )  # fmt: skip

    def _by_laws(
        self, release: EffectRelease, comparison: _Comparison, seen: Floats, noise: Floats,
        sampling: Floats, prior: float,
    ) -> tuple[Floats, Floats]:  # fmt: skip
        """Effects and covariances by all laws of hidden axes, if `seen` is ``shown @ effects``.

        Along each axis effects have a variance between `prior` and the most that bounds allow.
        """
        known, weights = self._concurrences, release.of_releases
        assert known is not None
        assert known.hidden is not None
        assert weights is not None
        # Laws count how noise in concurrences moves all rounds together: subtract it from `noise`.
        by_comparison = np.einsum("ij,jik,kj->j", weights, comparison.errors, weights)
        noise = np.maximum(noise - by_comparison, 0.0)
        # (n_rows, n_rows): for each row, the effects that its average of releases was about.
        about = weights.T @ np.stack([past.release.about for past in self._rounds])
        return solved_by_laws(
            known.hidden, comparison.part,
            lambda shown: seen + np.sum((shown - comparison.shown) * about, axis=1),
            noise, sampling, prior,
            len(seen) * self.half**2 / 3,  # n_rows times that of values anywhere in bounds
            start=self.effects.means, middle=about.mean(axis=0),
        )  # fmt: skip

    def _without_pull(
        self, linear: Sequence[EffectRelease], weight_each: float, of_others: Floats
    ) -> list[EffectRelease]:
        """Releases of effects divided by their gains, which show effects of means; set the pull.

        `of_others` (n,) are mean squares of the errors of other modes' effects in each release.
        """
        if self._ask.is_exact:  # nothing is clipped
            return list(linear)
        counts, sigma = pooled_counts(linear)
        counts = np.maximum(counts, math.sqrt(len(linear)) * sigma) + LEAST_WEIGHT
        shown = np.stack([released.estimates(counts) for released in linear])
        noise = np.stack([released.noise(counts) ** 2 for released in linear])
        noise += of_others[:, None]
        sampling = np.mean(
            np.stack([(released.spread / released.response) ** 2 for released in linear]), axis=0
        )
        square = max(float(self.shares @ self.effects.means**2), LEAST_WEIGHT)
        farness = [
            1 - float(self.shares @ (past.release.about * self.effects.means)) / square
            for past in self._rounds
        ]
        # Order 1 has one release, which tells no pull: take that of units whose effects are in
        # proportion to the deviation of their values.
        varied = self.values.share_varied
        self._pull = measured_pull(
            shown, noise, weight_each * sampling / counts,
            [released.by_clip for released in linear], farness,
            Pull.prior(varied, middle=varied if self._order == 1 else 1.0),
        )  # fmt: skip
        corrected = []
        for released in linear:
            gain = self._pull.gain(released.by_clip)
            pulled = self._pull.error(released.by_clip) * self.effects.means
            response, about = released.response * gain, released.about / gain
            corrected.append(replace(released, response=response, about=about, pulled=pulled))
        return corrected

    def _at_fixed_point(
        self, release: EffectRelease, linear: Sequence[EffectRelease],
        biases: Sequence["SharedBiases"], weight_each: float, comparison: _Comparison | None,
    ) -> EffectRelease:  # fmt: skip
        """Average `release` of `linear` ones, its effects extrapolated to the fixed point."""
        counts = np.maximum(release.counts, release.sigma) + LEAST_WEIGHT
        line = self._line_of(release, linear, counts, biases, weight_each)
        if line is not None and comparison is not None:
            # Releases show errors along the line in full, but for noise in concurrences.
            by_noise = (comparison.variances @ line.coefficients**2) * np.sum(line.direction**2)
            line = line._replace(own_slope=float(by_noise))
        self._line = line
        if line is None:
            return release
        # Positions are in units of half the range.
        lined = [bias for bias in biases if bias._line is not None]
        lines = [bias._line for bias in lined if bias._line is not None]
        positions = [
            bias._positions(biases, lined, len(own.shown))
            for bias, own in zip(lined, lines, strict=True)
        ]
        # Effects may vary more than found so far, up to the variance that EM for them starts from.
        least = float(np.mean([bias.effects.prior_variance for bias in lined])) / self.half**2
        largest = kernel_defaults.LEVEL_VARIANCE * (self.values.deviation / self.half) ** 2
        means, variances = fixed_point(lines, positions, least, largest)
        place_on_line = release.estimates(counts) @ line.coefficients
        # With one mode noise may have chosen the line: step by the part of moves beyond noise.
        direction = line.direction * (line.part if len(biases) == 1 else 1.0)
        steps = (self.half * means[lined.index(self)] - place_on_line) * direction
        # Releases hardly respond to effects farther off than a deviation of residuals.
        longest = math.sqrt(residual_variance(biases))
        taken = steps * min(longest / max(float(np.abs(steps).max()), LEAST_ERROR), 1.0)
        of_noise = release.noise(counts) ** 2 @ line.coefficients**2
        more = max(self.half**2 * variances[lined.index(self)] - of_noise, 0.0)
        by_step = more * direction**2 + (steps - taken) ** 2
        return replace(release, about=release.about + taken, by_step=by_step)

    def _line_of(
        self, release: EffectRelease, linear: Sequence[EffectRelease], counts: Floats,
        biases: Sequence["SharedBiases"], weight_each: float,
    ) -> Line | None:  # fmt: skip
        """Line, in units of half the range, along which effects move from round to round, or None.

        Of the shortest mode, whose rows are known best, it is the one along which effects moved
        most; of another mode the one along which its effects respond to these moves.
        """
        lead = min(biases, key=lambda bias: len(bias.shares))
        # With one mode concurrences show more. Moves need two releases beside the first, which is
        # clipped otherwise.
        if len(biases) == 1 and self._concurrences is not None:
            return None
        if len(linear) < 3 or (lead is not self and lead._line is None):
            return None
        shown = np.stack([released.estimates(counts) for released in linear]) / self.half
        noise = np.stack([released.noise(counts) / self.half for released in linear]) ** 2
        sampling = weight_each * (release.spread / release.response / self.half) ** 2 / counts
        if lead is self:
            past = np.stack([made.means[biases.index(self)] for made in self._rounds[1:]])
            past /= self.half
            line = Line.along(past - past.mean(axis=0), shown, noise, counts, sampling)
        else:
            of_lead = self._positions(biases, [lead], len(linear))[:, 0]
            line = Line.of_response(of_lead, shown, noise, counts, sampling)
        return line if line.direction.any() else None

    def _positions(
        self, biases: Sequence["SharedBiases"], lined: Sequence["SharedBiases"], n: int
    ) -> Floats:
        """Positions of the effects that the first n releases were about, on the line of each mode.

        Of shape (n, n_lined): `lined` are those of `biases` with a line.
        """
        columns = []
        for bias in lined:
            assert bias._line is not None
            effects = np.stack([past.means[biases.index(bias)] for past in self._rounds[:n]])
            columns.append(effects @ bias._line.coefficients / self.half)
        return np.column_stack(columns)

    def _linearised(self, released: EffectRelease, clip: float, by_others: float) -> EffectRelease:
        """Release whose response to effects is linear: the tangent in each row at the effect found.

        `by_others` is the variance that effects of other modes explained in this release.
        """
        variance, of_rows = self._residual_variances(by_others)
        # Within a row residuals vary by what no biases explain, all of it by units that vary, and
        # by the error of the row's bias.
        deviation, share = math.sqrt(variance), self.values.share_varied
        deviations = np.sqrt(of_rows / share + self.effects.variances)
        # Farther off responses are too flat to tell anything.
        reach = clip + deviations
        shifts = np.clip(self.effects.means - released.about, -reach, reach)
        shorter = shortened(clip / deviation, share)
        mean, slopes = self._response(clip, shifts, deviations, shorter)
        slopes = np.maximum(slopes, LEAST_RESPONSE / clip)
        # How units that do not vary respond is not known: for noise and sampling take the response
        # of normal residuals, if it is smaller.
        response = np.minimum(slopes, clipped_response(clip / deviation, deviation))
        spread = np.sqrt(clipped_variance(clip / np.sqrt(of_rows)))
        of_clip = shift_by_clip(clip / deviation, 2 * self.half / deviation)
        return replace(
            released, sums=released.sums * (response / slopes), response=response,
            about=released.about + shifts - mean / slopes,
            spread=spread, shift=of_clip * self._distances_to_medians(),
            by_clip=pull_by_clip(clip / deviation, share, shorter),
        )  # fmt: skip

    def _with_measured_spread(
        self, linear: EffectRelease, past: _Round, blocks: Floats, weight_each: float
    ) -> EffectRelease:
        """Linear release with the spread that sums of units show.

        Only units are independent, not their entries: the variance of a row's sum is that of units'
        sums in it. In each block it is in proportion to a row's weight. `weight_each` is the mean
        weight of an entry.
        """
        squares, of_counts = self._squares(past)
        # Subtract squares of means, which are no spread.
        means = linear.response * (self.effects.means - linear.about)
        of_means = float(self.shares @ means**2)
        measured = blocks**2 * np.maximum(squares - of_counts * of_means, 0.0)
        errors = past.most * past.sigma * blocks**2  # by noise
        # Expected squares, if all entries were independent, of normal residuals.
        square = float(np.mean(np.square(linear.spread)))
        weights = blocks * self._entry_weights(weight_each)
        totals = blocks * np.maximum(past.release.counts.sum(axis=1), 0.0)
        expected = square * weights * totals
        ratio = (measured.sum() + np.linalg.norm(errors)) / max(expected.sum(), LEAST_WEIGHT)
        # Where noise hides the spread in one block, take that of both.
        expected += errors / max(ratio, LEAST_WEIGHT)
        ratios = (measured + errors) / np.maximum(expected, LEAST_WEIGHT)
        # If a unit has one entry in a row, a ratio below 1 says that residuals are not normal, and
        # that responses err. Order 1 tells squares of counts by their means alone. In both cases
        # take 1 at least.
        least = LEAST_SPREAD if len(self._shape) > 2 and self._order == 2 else 1.0
        # The ratio is largest if all of a unit's entries in a row are alike, each at the clip.
        cells = math.prod(self._shape) / self._ask.n_units / len(self.shares)
        ratios = np.clip(ratios, least, cells / square)
        by_block = ratios * weights / weight_each
        counts, sigma = pooled_counts([made.release for made in self._rounds])
        alone = parts_of_second(counts * blocks[:, None], sigma * blocks[:, None])
        spread = np.sqrt(by_block[0] + (by_block[1] - by_block[0]) * alone)
        return replace(linear, spread=linear.spread * spread)

    def _entry_weights(self, weight_each: float) -> Floats:
        """Mean weights (2,) of an entry in each block; `weight_each` is that over both."""
        if len(self._shape) > 2 or self._order == 1:
            return np.full(2, weight_each)
        # With two modes, a unit has one entry in a row at most: of n entries each weighs n ** -0.5,
        # and the mean over entries, by weight, is the number of units over their weight.
        several = self.weights.sum() - self.n_alone
        return np.array([min(self._n_several / max(several, LEAST_WEIGHT), 1.0), 1.0])

    def share_varied_by_sizes(self) -> float:
        """Share of units that vary, by sizes of sums in the first release, of order 1."""
        past = self._rounds[0]
        weight = max(float(past.release.counts[0].sum()), LEAST_WEIGHT)
        # Two deviations of noise are added to the size: where noise hides it, all seem to vary.
        size = 1 - (float(past.left[0]) - 2 * past.sigma) / weight
        deviation = (1 - 1 / len(self.shares)) * self.values.deviation
        return share_by_size(size, past.clip, deviation * math.sqrt(1 + self.values.by_level))

    def _squares(self, past: _Round) -> tuple[Floats, Floats]:
        """Sums over units of the squares of their sums, and of their counts; each (2,) by block."""
        units = np.array([self._n_several, min(max(self.n_alone, 0.0), self.values.n_with_values)])
        left, most = past.left, past.most
        if self._order == 2:  # squares of a unit's counts add up to 1
            return np.clip(most * (most * units - left), 0.0, most**2 * units), units
        weights = past.release.counts.sum(axis=1)
        norm = self._squared_norm(weights[0], past.sigma)
        of_counts = units * np.array([norm * (1 - norm), 1.0])
        # Mean sizes of sums, over their counts: normal ones have mean squares of pi / 2 times their
        # squares.
        sizes = np.clip(1 - left / np.maximum(weights, LEAST_WEIGHT), 0.0, 1.0)
        return np.minimum(math.pi / 2 * sizes**2, 1.0) * of_counts, of_counts

    def _residual_variances(self, by_others: float) -> tuple[float, Floats]:
        """Variance of residuals that no biases explain, on average, and in each row (n_rows,)."""
        by_error = float(self.shares @ self.effects.variances)
        explained = by_others + self.explained() + by_error
        variance = unexplained_variance(self.values.deviation, explained)
        # Variances of rows are in proportion to the largest that bounds allow to their means.
        room = np.maximum(self.half**2 - (self.values.level + self.effects.means) ** 2, 0.0)
        room /= max(float(self.shares @ room), LEAST_WEIGHT)
        of_rows = variance * (np.maximum(room, LEAST_UNEXPLAINED) + self.values.by_level)
        return variance * (1 + self.values.by_level), of_rows

    def _response(
        self, clip: float, shifts: Floats, deviations: Floats, shorter: float
    ) -> tuple[Floats, Floats]:
        """Mean clipped residual of each row for effects `shifts` beyond `about`, and its slope.

        Residuals of units that vary have these `deviations`, and their sums are made `shorter`.
        """
        mean, slopes = mean_response(clip, shifts, deviations)
        # If all values are at the bounds, mean clipped residuals are linear in shifts at any clip.
        ends = np.minimum(self.half + self.values.level * np.array([1.0, -1.0]), clip) / clip
        at_bounds, slope = self._share_at_bounds, ends.sum() / (2 * self.half)
        mean += at_bounds * (slope * shifts - mean)
        slopes += at_bounds * (slope - slopes)
        # Residuals of units that do not vary are the shifts, taken to be within the clip.
        varied = self.values.share_varied
        mean = varied * shorter * mean + (1 - varied) * shifts / clip
        slopes = varied * shorter * slopes + (1 - varied) / clip
        # Residuals are about a mean over other rows, and were multiplied by 1 - 1 / n for n rows,
        # which is right for a row of share 1 / n: correct for the row's own share.
        of_others = (1 - 1 / len(self.shares)) / np.maximum(1 - self.shares, 0.5)
        return of_others * mean, of_others * slopes


def order_of(ask: Session) -> int:
    """Order of queries of persons: 1 where pure noise needs a bound on the L1 norm, else 2."""
    return 1 if ask.is_pure and not ask.is_exact else 2


def shortest_first(biases: Sequence[SharedBiases]) -> list[int]:
    """Places of `biases` by the number of rows of their mode, in which they are fitted.

    What effects of two modes have in common, as a trend of months and of titles that are there in
    few months, is of those that are fitted first: a trend of few rows is likelier than one of many.
    """
    return sorted(range(len(biases)), key=lambda place: len(biases[place].shares))


def fit_all(biases: Sequence[SharedBiases]) -> None:
    """Fit the effects of one mode after the other, each given those of the others."""
    for place in shortest_first(biases):
        biases[place].fit(biases)


def fit_by_corrected_deviation(
    biases: Sequence[SharedBiases], deviation_and_share: Callable[[float], tuple[float, float]]
) -> None:
    """Correct the deviation of values for few entries of units, and fit biases again by it.

    The fewer values a unit has, the less they vary about their mean than about the unit's level.
    `deviation_and_share` is that of `Levels`.
    """
    values = biases[0].values
    # Add noise to the numbers of entries: units seem to have many where it hides how many.
    noise = max(bias.total_variance for bias in biases) / values.n_with_values**2
    root = math.sqrt(entries_each(biases) + noise)
    # Fraction of units with one entry, which have entries in one row of every mode.
    alone = min(bias.n_alone for bias in biases) / values.n_with_values - math.sqrt(noise)
    alone = min(max(alone, 0.0), 1 - LEAST_SEVERAL)
    each = max(((root - alone) / (1 - alone)) ** 2, 2.0)
    of_sample, share_varied = deviation_and_share(1 - alone)
    values.deviation = min(of_sample / math.sqrt(1 - 1 / each), biases[0].half)
    values.by_level = by_own_level(each)
    # Sample deviations of few normal values vary by chance, with a squared coefficient of variation
    # of about half of `by_level`: `deviation_and_share` takes such units for some that do not vary.
    values.share_varied = min(share_varied * (1 + values.by_level / 2), 1.0)
    if len(biases) == 1 and biases[0]._order == 1:  # in more modes sums hide single values
        values.share_varied = biases[0].share_varied_by_sizes()
    values.measured_part = (1 - alone) * (1 - 1 / each)
    fit_all(biases)


def add_errors_of_deviation(
    biases: Sequence[SharedBiases], deviation_and_share: Callable[..., tuple[float, float]]
) -> None:
    """Count in variances of effects how far the error of the deviation of values moves effects.

    Effects are fitted twice again, by a deviation one standard error lower, and one higher. Their
    variances become the mean over both fits of squared move plus variance, if that is larger.
    """
    squares: list[list[Floats]] = [[] for _ in biases]  # mean square errors, (n_rows,), of each fit
    all_moves: list[list[Floats]] = [[] for _ in biases]
    for at in (-1.0, 1.0):
        others, values = [copy(other) for other in biases], copy(biases[0].values)
        for other in others:
            other.values = values
        fit_by_corrected_deviation(others, partial(deviation_and_share, at=at))
        for of_fit, of_mode, own, other in zip(squares, all_moves, biases, others, strict=True):
            moves = other.effects.means - own.effects.means
            of_fit.append(other.effects.variances + moves**2)
            of_mode.append(moves)
    for own, (low, high), of_mode in zip(biases, squares, all_moves, strict=True):
        variances = np.maximum(own.effects.variances, (low + high) / 2)
        own.effects = replace(own.effects, variances=variances)
        own.add_moves(np.stack(of_mode))


def _share_of_second(releases: Sequence[EffectRelease], blocks: Floats) -> float:
    """Share of the second block in all weight, if it is clearly more than half; else 0.

    Weights of the blocks are multiplied by `blocks` (2,).
    """
    counts, sigma = pooled_counts(releases)
    first, second = np.maximum(blocks * counts.sum(axis=1), 0.0)
    noise = float(np.linalg.norm(blocks[:, None] * sigma))
    return 0.0 if second - first <= 3 * noise else float(second / (second + first))


def _joined(parts: Iterable[Floats]) -> Floats:
    """Arrays of several modes, or of none, one after the other."""
    return np.concatenate([np.zeros(0), *parts])


def residual_variance(biases: Sequence[SharedBiases], factor_variance: float = 0.0) -> float:
    """Variance of values about their unit's level that biases and components do not explain.

    `factor_variance` is the variance that components explain.
    """
    explained = sum(bias.explained() for bias in biases) + factor_variance
    return unexplained_variance(biases[0].values.deviation, explained)


def weight_of_unit(weights: Floats, n_units: int) -> float:
    """Mean weight, 1 at least, of `n_units` whose sums by row or cell are `weights`.

    With `cell_weights` it is the mean root of the number of a unit's entries.
    """
    return max(float(weights.sum()) / max(n_units, 1), 1.0)


def entries_each(biases: Sequence[SharedBiases]) -> float:
    """Number of entries of a unit: the square of its mean root."""
    return weight_of_unit(cell_weights(biases), biases[0].values.n_with_values) ** 2


def cell_weights(biases: Sequence[SharedBiases]) -> Floats:
    """Weight of each cell: sum over units with an entry there of ``n ** -0.5``, n their entries.

    Cells are combinations of rows of the shared modes (rows, if there is one); a unit's entries are
    assumed to spread over rows of each mode independently.
    """
    if len(biases) == 1:
        return biases[0].weights
    n_cells = math.prod(len(bias.shares) for bias in biases)
    # Each mode gives an estimate of n: take the least. A unit weighs 1 / |p| at most in a mode, p
    # the shares of its rows, and for weights near that an estimate may be far too large.
    n = min(*(_entries_of_unit(bias, n_cells) for bias in biases), float(n_cells))
    shares = reduce(np.multiply.outer, [bias.shares for bias in biases]).ravel()
    of_unit = math.sqrt(max(n, 1.0))  # n entries of n ** -0.5 each
    return biases[0].values.n_with_values * of_unit * shares


def _entries_of_unit(bias: SharedBiases, n_cells: int) -> float:
    """Number of entries of a unit that has the mean weight in the mode of `bias`."""
    # A unit with n of N cells in rows of shares p weighs n over the norm of its counts. That norm
    # squared is n (1 - n / N) (1 - |p|^2) + n^2 |p|^2 on average, as its cells are distinct. With
    # the squared weight w, n = w (1 - |p|^2) / (1 - w |p|^2 + w (1 - |p|^2) / N).
    squared_weight = weight_of_unit(bias.weights, bias.values.n_with_values) ** 2
    same_row = float(bias.shares @ bias.shares)
    denominator = 1 - squared_weight * same_row + squared_weight * (1 - same_row) / n_cells
    return squared_weight * (1 - same_row) / max(denominator, 0.01)  # noise may bring it to 0
