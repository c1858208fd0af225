"""Pull of clipped residuals from effects of means to those of medians, measured by releases."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from sktensor_dp.completion import defaults
from sktensor_dp.tensor.arrays import Floats, blocks

# Effects of medians over those of means: a grid from a 27th to 3, with 1 on it.
LEAST_GAIN, LARGEST_GAIN, N_GAINS = 1 / 27, 3.0, 41
LOGS_OF_GAINS = np.linspace(math.log(LEAST_GAIN), math.log(LARGEST_GAIN), N_GAINS)
# Grid of variances of effects, relative to the mean square of what releases show.
LEAST_RATIO, LARGEST_RATIO, N_VARIANCES = 1e-2, 5.0, 6
# Grid, from 0, of the part that a release misses of true effects less those that it is about.
LARGEST_LACK, N_LACKS = 0.9, 7
# Number of rows whose numbers at all points of the grid are held at once.
ROWS_AT_ONCE = 1024
# Least mean square of effects: far from overflow.
LEAST_SQUARE = 1e-130


class Pull(NamedTuple):
    """Posterior of the pull ``1 - g``, g the gain: effects of medians over effects of means.

    It is below 0 where medians differ more than means, as where persons are of two opinions, and
    above where they differ less, as where most persons have one value alone.
    """

    values: Floats = np.zeros(1)
    weights: Floats = np.ones(1)  # probabilities of the values

    @classmethod
    def prior(cls, share_varied: float, middle: float = 1.0) -> "Pull":
        """Pull before any release; `middle` is the median of its gains.

        `share_varied` is the share of units whose values vary: the fewer, the less is known.
        """
        # Logarithms of gains have a prior with heavy tails (Cauchy).
        scale = math.hypot(defaults.PULL_SCALE, 1 - share_varied)
        weights = 1 / (1 + ((LOGS_OF_GAINS - math.log(middle)) / scale) ** 2)
        return cls(1 - np.exp(LOGS_OF_GAINS), weights / weights.sum())

    def gain(self, by_clip: float | Floats) -> Any:
        """Effects that clipped residuals show, over those of means; for each of `by_clip`.

        It is the harmonic mean of ``1 - by_clip * pull``.
        """
        return 1 / ((1 / (1 - np.multiply.outer(by_clip, self.values))) @ self.weights)

    def error(self, by_clip: float) -> float:
        """Standard error of effects that were divided by `gain`, over the effects."""
        gain = float(self.gain(by_clip))
        ratios = gain / (1 - self.values * by_clip)
        of_form = float(self.of_form(np.array([by_clip]))[0]) / gain
        return math.sqrt(self.weights @ (ratios - 1) ** 2 + of_form**2)

    def of_form(self, by_clip: Floats) -> Floats:
        """Relative error (n,) of effects if clips, at c deviations, leave another part of the pull.

        It is ``exp(-c^2 / 2)`` then, and not `by_clip`, which is ``2 P(z > c)``.
        """
        clips = ndtri(np.minimum(by_clip, 1.0) / 2).tolist()  # here c < 0
        densities = np.array([math.exp(-(c**2) / 2) for c in clips])
        return abs(float(self.weights @ self.values)) * (densities - by_clip)

    def beyond(self, clip: float | Floats, effects: float) -> Any:
        """Root mean square of what is beyond each clip of normal effects times the pull.

        `effects` is their root mean square; the result has the shape of `clip`.
        """
        scales = np.abs(self.values) * effects + LEAST_SQUARE
        z = np.divide.outer(clip, scales)
        density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
        squares = 2 * scales**2 * ((1 + z**2) * ndtr(-z) - z * density)
        return np.sqrt(np.maximum(squares @ self.weights, 0.0))

    def variance_left(self, variances: Floats) -> Floats:
        """Expected variances (n,) of the pull after a measurement with these error `variances`."""
        squares = (self.values - self.weights @ self.values) ** 2
        of_each = variances[:, None]
        return np.asarray((squares * of_each / (squares + of_each)) @ self.weights)


def pull_by_clip(
    clip: float | Floats, share_varied: float = 1.0, shorter: float | Floats = 1.0
) -> Any:
    """Part of the pull that clipped residuals have: 1 less their response to small shifts.

    It is 1 for the least clips, by which residuals show medians, and 0 for the widest. `clip` is in
    deviations of residuals, of which only the part `share_varied` of units has any; sums of these
    units are multiplied by `shorter`.
    """
    return 1 - shorter * (1 - 2 * ndtr(-clip * math.sqrt(share_varied)))


class OfClips(NamedTuple):
    """Numbers (n,) of n releases, or of one release at n clips to choose from."""

    precisions: Floats  # of a row's effect, by noise
    by_clip: Floats  # as `pull_by_clip`
    shifts: Floats  # errors of effects, as values are skewed

    def without(self, pull: Pull) -> tuple["OfClips", Floats]:
        """Numbers of effects divided by the gains of this `pull`, and its `of_form` errors (n,)."""
        gains = pull.gain(self.by_clip)
        divided = OfClips(self.precisions * gains**2, self.by_clip / gains, self.shifts)
        return divided, pull.of_form(self.by_clip) / gains


def expected_square_errors(
    past: OfClips, planned: OfClips, pull: Pull, effects: float, n_rows: int
) -> Floats:
    """Expected square errors (n,) of a row's effect by `past` releases and one of n `planned`.

    `effects` is the root mean square of the effects of `n_rows` rows, `pull` the posterior by past
    releases.
    """
    (past, form_of_past), (planned, form) = past.without(pull), planned.without(pull)
    past_precision = float(past.precisions.sum())
    totals = past_precision + planned.precisions

    def averaged(of_past: Floats, of_planned: Floats) -> Floats:
        """Means (n,) by precision, each over all past releases and one planned one."""
        return (past.precisions @ of_past + planned.precisions * of_planned) / totals

    by_clip = averaged(past.by_clip, planned.by_clip)
    shifts, of_form = averaged(past.shifts, planned.shifts), averaged(form_of_past, form)
    # Precision by which a planned release tells the pull: by its difference from past ones, which
    # have other clips.
    differences = planned.by_clip - past.precisions @ past.by_clip / past_precision
    told = n_rows * (effects * differences) ** 2 * planned.precisions * (past_precision / totals)
    left = pull.variance_left(1 / np.maximum(told, LEAST_SQUARE))
    return 1 / totals + (left * by_clip**2 + of_form**2) * effects**2 + shifts**2


def measured_pull(
    shown: Floats, noise: Floats, sampling: Floats, by_clip: Sequence[float],
    farness: Sequence[float], prior: Pull,
) -> Pull:  # fmt: skip
    """Posterior of the pull by effects `shown` (n, n_rows) in n releases, with variances `noise`.

    `sampling` (n_rows,) are variances of effects by entries; `by_clip` (n,) is as `pull_by_clip`.
    Effects that a release was about lacked the part `farness` (n,) of the true ones.
    """
    precisions = 1 / noise.mean(axis=0)
    precisions /= precisions.sum()
    shown = shown - (shown @ precisions)[:, None]
    mean_square = max(float(precisions @ np.mean(shown**2, axis=0)), LEAST_SQUARE)
    # If units have entries in a part of the rows, a release shows effects nearer to those it was
    # about: it misses a part, the lack, of their distance. The lack has a Cauchy prior, too.
    pulls, lacks = prior.values, np.linspace(0, LARGEST_LACK, N_LACKS)
    # For each release: gains at all pairs of pull and lack, and variances of errors.
    gains, errors = [], []
    for own, variances, clipped, far in zip(shown, noise, by_clip, farness, strict=True):
        far = min(max(far, 0.0), 1.0)
        gains.append((1 - pulls[:, None] * clipped - lacks * far).reshape(-1, 1))
        # The response of a release about effects far off errs, too, by one factor for all rows.
        of_effects = max(float(np.sum(own**2 / variances)) - len(own), 0.0)
        errors.append(variances * (1 + (defaults.PULL_SCALE * far) ** 2 * of_effects))
    logs = _log_likelihoods(shown, gains, errors, sampling, mean_square)
    likelihoods = np.exp(logs - np.max(logs)).sum(axis=0).reshape(N_GAINS, N_LACKS)
    weights = likelihoods @ (1 / (1 + (lacks / defaults.PULL_SCALE) ** 2))
    weights *= prior.weights
    return Pull(pulls, weights / weights.sum())


def _log_likelihoods(
    shown: Floats, gains: Sequence[Floats], errors: Sequence[Floats], sampling: Floats,
    mean_square: float,
) -> Floats:  # fmt: skip
    """Log likelihoods (N_VARIANCES, n_pairs) of the effects `shown` (n, n_rows) by n releases.

    For each release there are `gains` (n_pairs, 1), at pairs of pull and lack, and variances of
    `errors` (n_rows,). Variances of effects are on a grid, relative to `mean_square`.
    """
    # Variances of effects are those shown over the mean squared gain, so that the coarse grid of
    # them favours no pair.
    weights = np.array([float(np.sum(1 / of_release)) for of_release in errors])
    square_gains = np.array(gains)[..., 0].T ** 2 @ (weights / weights.sum())
    logs = np.zeros((N_VARIANCES, N_GAINS * N_LACKS))
    for rows in blocks(shown.shape[1], ROWS_AT_ONCE):
        # For a row's effect at each pair: its precision by all releases, and that times its mean.
        precision = product = np.zeros((len(square_gains), 1))
        for own, variances, gain in zip(shown, errors, gains, strict=True):
            precision = precision + gain**2 / variances[rows]
            product = product + gain * own[rows] / variances[rows]
        for place, ratio in enumerate(np.geomspace(LEAST_RATIO, LARGEST_RATIO, N_VARIANCES)):
            of_effects = (ratio * mean_square + sampling[rows]) / square_gains[:, None]
            more = 1 + of_effects * precision
            logs[place] += np.sum(product**2 * of_effects / more - np.log(more), axis=1) / 2
    return logs
