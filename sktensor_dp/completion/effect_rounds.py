"""Effects of the rows of a shared mode, from releases each of which is about those before."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sktensor_dp.completion import defaults
from sktensor_dp.completion.model_options import ModelOptions
from sktensor_dp.completion.rows import unexplained
from sktensor_dp.privacy.curators.entries import NoisySharedRows, SliceCurator
from sktensor_dp.queries.slices import ReleasedEffects
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.shared_parameters import SharedEffects, clipped_response, shared_effects
from sktensor_dp.tensor.unit_parameters import LEVEL_VARIANCE

# Least sum of weights: of nothing there is no mean.
LEAST_WEIGHT = 1e-100
# EM steps for effects, and for those that another release will be about.
STEPS, ROUGH_STEPS = 60, 20


@dataclass(frozen=True, eq=False)
class EffectRelease:
    """Sums of residuals about effects, and the mean response of a residual to an effect."""

    noisy: NoisySharedRows
    gain: float
    about: Floats

    @classmethod
    def combined(cls, releases: Sequence["EffectRelease"]) -> "EffectRelease":
        """Average releases by precision into one."""
        # Over its gain each is the same sums of effects, but for its noise and its centre.
        if len(releases) == 1:
            return releases[0]
        precisions = np.array([one.noisy.sigma**-2 for one in releases])
        gains = np.array([one.gain for one in releases])
        parts, shares = precisions / precisions.sum(), precisions * gains**2
        gain = math.sqrt(shares.sum() / precisions.sum())
        shares /= shares.sum()
        sums = np.stack([one.noisy.sums for one in releases])
        counts = np.stack([one.noisy.counts for one in releases])
        about = np.stack([one.about for one in releases])
        noisy = NoisySharedRows(
            gain * (shares / gains) @ sums, parts @ counts, precisions.sum() ** -0.5
        )
        return cls(noisy, gain, shares @ about)


class EffectRounds:
    """What releases of sums of residuals say of the rows of one mode.

    Parameters
    ----------
    curator : SliceCurator
        Asked for each release.
    mode : int
        Any mode but the units'.
    level, deviation : float
        Of values, about the middle of the bounds and about their unit's own level; released.
    options : ModelOptions
        Which may have features of the rows.

    Attributes
    ----------
    level, deviation : float
        As given.
    effects : SharedEffects
        By all releases so far.
    weights : ndarray of shape (n_rows,)
        Sums over units of one over the root of the number of a unit's entries.
    shares : ndarray of shape (n_rows,)
        Of the rows in all weights.
    features : ndarray of shape (n_rows, q) or None
        Public ones.
    """

    effects: SharedEffects
    weights: Floats
    shares: Floats
    features: Floats | None

    def __init__(
        self, curator: SliceCurator, mode: int, level: float, deviation: float,
        options: ModelOptions,
    ) -> None:  # fmt: skip
        self._curator, self._mode, self._options = curator, mode, options
        self.level, self.deviation = level, deviation
        self._released: list[EffectRelease] = []

    def first(self, others: Sequence[Floats | None] = (), last: bool = True) -> None:
        """Release sums about units' levels, and effects of the other modes, if there are any."""
        self._ask(self.deviation, 1 if last else 0, others=others)

    def again(self, n_rounds: int, rest_of: str | None = None) -> None:
        """Release sums about what units fit given the effects so far, of all shared modes."""
        for left in range(n_rounds, 0, -1):
            variance = self.noise_variance()
            about = ReleasedEffects((self.effects,), self.level, variance)
            self._ask(math.sqrt(variance), left, about=about, rest_of=rest_of)

    def noise_variance(self) -> float:
        """What of the variance about a unit's level the effects do not explain."""
        return unexplained(self.deviation, self.explained())

    def explained(self) -> float:
        """What of it they explain."""
        return float(self.shares @ self.effects.effects**2)

    def _ask(
        self,
        deviation: float,
        left: int,
        others: Sequence[Floats | None] = (),
        about: ReleasedEffects | None = None,
        rest_of: str | None = None,
    ) -> None:
        """Release sums, of which so many are left; 0 if others will follow."""
        clip = defaults.EFFECT_CLIP
        noisy = self._curator.shared_row_sums(
            self._mode, self.level, clip * deviation, 1 / LEVEL_VARIANCE, others, about, rest_of
        )
        centre = np.zeros(len(noisy.sums)) if about is None else self.effects.effects
        self._released.append(EffectRelease(noisy, clipped_response(clip, deviation), centre))
        self._fit(STEPS if left == 1 else ROUGH_STEPS)

    def _fit(self, n_steps: int) -> None:
        seen = EffectRelease.combined(self._released)
        noisy = seen.noisy
        # Scaled by released weights, as true ones are private.
        self.features = self._options.features_of(self._mode, np.maximum(noisy.counts, 0.0))
        found = shared_effects(
            noisy.sums, noisy.counts, noise_std=noisy.sigma, n_units=self._curator.n_units,
            gain=seen.gain, effect_variance=LEVEL_VARIANCE * self.deviation**2,
            features=self.features, about=seen.about, max_iter=n_steps,
        )  # fmt: skip
        self.weights = max(float(noisy.counts.mean()), 1e-9) * np.exp(2 * found.popularity)
        self.shares = self.weights / max(float(self.weights.sum()), LEAST_WEIGHT)
        # Clipped residuals say whether values are above their unit's level rather than how far.
        # Most are, where values are skewed, and all effects would have that on top of the level.
        mean = float(self.shares @ found.effects)
        widest = 2 * self._curator.half
        self.effects = replace(
            found, effects=np.clip(found.effects - mean, -widest, widest),
            variances=np.minimum(found.variances, widest**2),
        )  # fmt: skip
