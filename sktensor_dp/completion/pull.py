"""How far clipped residuals pull effects from those of means, measured by releases of each clip."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sktensor_dp.completion import defaults
from sktensor_dp.tensor.arrays import Floats, blocks

# Medians have from a ninth of the effects of means to three times these; 1 is on the grid.
LEAST_GAIN, LARGEST_GAIN, N_GAINS = 1 / 9, 3.0, 31
# Variances of effects, relative to the mean square of what releases show.
LEAST_RATIO, LARGEST_RATIO, N_VARIANCES = 1e-2, 5.0, 6
# Releases lack none or up to nine tenths of how far the effects that they are about are off.
LARGEST_LACK, N_LACKS = 0.9, 7
# Rows whose numbers at all points of the grid are held at once.
ROWS_AT_ONCE = 1024
# Least mean square of effects: far from overflow.
LEAST_SQUARE = 1e-130


class Pull(NamedTuple):
    """Posterior of the part of effects of means that is not in effects of medians.

    It is below 0 where medians differ more than means, as where persons are of two opinions, and
    above where they differ less, as where most persons have one value alone.
    """

    mean: float = 0.0
    variance: float = 0.0

    def gain(self, by_clip: float) -> float:
        """Effects that clipped residuals show, over those of means."""
        return 1 - self.mean * by_clip

    def error(self, by_clip: float) -> float:
        """Deviation of effects divided by `gain`, over effects."""
        return math.sqrt(self.variance) * by_clip / self.gain(by_clip)


def pull_by_clip(clip: float) -> float:
    """Part of a median's pull that residuals have whose clip is in their deviations."""
    # As the density of normal residuals at the clip: nothing is left where none is clipped.
    return math.exp(-(clip**2) / 2)


def measured_pull(
    shown: Floats, noise: Floats, sampling: Floats, by_clip: Sequence[float],
    farness: Sequence[float], share_varied: float,
) -> Pull:  # fmt: skip
    """Pull by effects `shown` (n, n_rows) in n releases, of variances `noise`.

    `sampling` (n_rows,) is that of effects, by a row's entries. A release was about the true
    effects, less the part `farness` of them. The fewer units vary, the less is known before.
    """
    precisions = 1 / noise.mean(axis=0)
    precisions /= precisions.sum()
    shown = shown - (shown @ precisions)[:, None]
    mean_square = max(float(precisions @ np.mean(shown**2, axis=0)), LEAST_SQUARE)
    # Logarithms of gains of medians, and what releases lack where units keep to a part of the
    # rows, have priors with heavy tails (Cauchy), near 0 for most laws.
    logs_of_gains = np.linspace(math.log(LEAST_GAIN), math.log(LARGEST_GAIN), N_GAINS)
    scale = math.hypot(defaults.PULL_SCALE, 1 - share_varied)
    pulls, lacks = 1 - np.exp(logs_of_gains), np.linspace(0, LARGEST_LACK, N_LACKS)
    # Of each release at each pair of the two, and its noise far from the effects it is about.
    gains, errors = [], []
    for own, variances, clipped, far in zip(shown, noise, by_clip, farness, strict=True):
        far = min(max(far, 0.0), 1.0)
        gains.append((1 - pulls[:, None] * clipped - lacks * far).reshape(-1, 1))
        # Far from the effects that it is about, responses of a release err by one factor, too.
        of_effects = max(float(np.sum(own**2 / variances)) - len(own), 0.0)
        errors.append(variances * (1 + (defaults.PULL_SCALE * far) ** 2 * of_effects))
    # Variances of effects by what is shown, over the squared mean gain: a coarse grid prefers none.
    weights_of_gains = np.array([float(np.sum(1 / one)) for one in errors])
    square_gains = np.array(gains)[..., 0].T ** 2 @ (weights_of_gains / weights_of_gains.sum())
    logs = np.zeros((N_VARIANCES, N_GAINS * N_LACKS))
    for rows in blocks(shown.shape[1], ROWS_AT_ONCE):
        # Of a row's effect, at each pair: its precision in all releases, and this times its mean.
        fit, product = 0.0, 0.0
        for own, variances, gain in zip(shown, errors, gains, strict=True):
            fit = fit + gain**2 / variances[rows]
            product = product + gain * own[rows] / variances[rows]
        for place, ratio in enumerate(np.geomspace(LEAST_RATIO, LARGEST_RATIO, N_VARIANCES)):
            of_effects = (ratio * mean_square + sampling[rows]) / square_gains[:, None]
            more = 1 + of_effects * fit
            logs[place] += np.sum(product**2 * of_effects / more - np.log(more), axis=1) / 2
    likelihoods = np.exp(logs - np.max(logs)).sum(axis=0).reshape(N_GAINS, N_LACKS)
    weights = likelihoods @ (1 / (1 + (lacks / defaults.PULL_SCALE) ** 2))
    weights /= 1 + (logs_of_gains / scale) ** 2
    mean = float(np.average(pulls, weights=weights))
    return Pull(mean, float(np.average((pulls - mean) ** 2, weights=weights)))
