"""Releases of what units send of the rows of a mode: as one, and what the next ones favour."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sktensor_dp.privacy.curators.entries import NoisySharedRows
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.shared_parameters import RowsKnown

# Squared weights that are looked at, where a release without weights has 1.
SQUARES = np.geomspace(1e-2, 1e4, 30)
# Least weight of a row, over the largest.
LEAST_FAVOUR = 1e-3


@dataclass(frozen=True, eq=False)
class EffectRelease:
    """Sums of residuals about effects, weighted by rows, and what a residual says of an effect."""

    noisy: NoisySharedRows
    gain: float
    about: Floats | None = None
    # (n_rows,), or (1,) where rows are alike: by what sums differ from those without weights.
    weights: Floats | None = None

    def scaled(self) -> Floats:
        """Weights of the rows."""
        return np.ones(1) if self.weights is None else self.weights


@dataclass(frozen=True, eq=False)
class AllReleases:
    """Sums and numbers as of one release, of its gain and noise, about a mean of centres."""

    sums: Floats
    counts: Floats
    sigma: float | Floats
    gain: float | Floats
    about: Floats | None

    @classmethod
    def of(cls, releases: Sequence[EffectRelease]) -> "AllReleases":
        """What they say together."""
        if len(releases) == 1:
            only, noisy = releases[0], releases[0].noisy
            return cls(noisy.sums, noisy.counts, noisy.sigma, only.gain, only.about)
        # Over its gain each is the same sums of effects, but for its noise and its centre.
        scaled = np.array(np.broadcast_arrays(*[one.scaled() for one in releases]))
        precisions = np.array([one.noisy.sigma**-2 for one in releases])[:, None] * scaled**2
        gains = np.array([one.gain for one in releases])[:, None]
        shares = precisions * gains**2
        gain = np.sqrt(shares.sum(axis=0) / precisions.sum(axis=0))
        shares /= shares.sum(axis=0)
        sums, counts, about = (np.zeros(len(releases[0].noisy.sums)) for _ in range(3))
        parts = precisions / precisions.sum(axis=0)
        for one, own, share, part in zip(releases, scaled, shares, parts, strict=True):
            sums += share * gain / (one.gain * own) * one.noisy.sums
            counts += part / own * one.noisy.counts
            about += 0.0 if one.about is None else share * one.about
        return cls(sums, counts, precisions.sum(axis=0) ** -0.5, gain, about)


def favoured(known: RowsKnown, last: EffectRelease, weight_each: float, n_releases: int) -> Floats:
    """Weights of rows, 1 at most, by which so many releases like the last tell most of values."""
    # A release of weights a tells of a row of weight W as much as one without them whose noise
    # is 1 / a of it. A unit's length stays 1, so that the sum of W a**2 does. What effects leave
    # of values is the sum over rows of W times the posterior variance: each further bit of a**2
    # goes where it takes most from that for its cost, as the values known of W say on average.
    grid, noise = known.grid, last.noisy.sigma**2
    seen = n_releases * (np.sqrt(known.scale) * last.gain * grid) ** 2
    seen /= noise + n_releases * weight_each * grid
    means = known.means
    worth = [known.expected(grid * seen / (known.precisions + s * seen) ** 2) for s in SQUARES]
    steps = np.diff(SQUARES, prepend=0.0)[:, None] * np.ones(len(means))
    # Further bits of a row take less and less from it, so that they come in their order.
    order = np.argsort(-(np.array(worth) / means), axis=None, kind="stable")
    spent = np.cumsum((steps * means).ravel()[order])
    bought = order[: max(int(np.searchsorted(spent, means.sum())), 1)]
    squares = np.bincount(bought % len(means), steps.ravel()[bought], len(means))
    weights = np.sqrt(squares / squares.max())
    return np.asarray(np.maximum(weights, LEAST_FAVOUR))
