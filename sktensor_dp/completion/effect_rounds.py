"""Effects of the rows of a shared mode, from releases each of which is about those before."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sktensor_dp.completion.effect_releases import AllReleases, EffectRelease, favoured
from sktensor_dp.completion.model_options import ModelOptions
from sktensor_dp.completion.rows import unexplained
from sktensor_dp.privacy.curators.entries import SliceCurator
from sktensor_dp.queries.slices import ReleasedEffects
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.shared_parameters import (
    RowsKnown,
    SharedEffects,
    clipped_response,
    shared_effects,
)
from sktensor_dp.tensor.unit_parameters import LEVEL_VARIANCE

# Residuals are clipped at this share of the deviation of values: little is lost of a sign,
# and noise is in proportion.
CLIP = 0.25
# Least sum of weights: of nothing there is no mean.
LEAST_WEIGHT = 1e-100
# Releases before any that favour rows: one alone knows too little of who has which. Chosen on
# held-out ratings.
PLAIN_ROUNDS = 2
# EM steps for effects, and for those that another release will be about.
STEPS, ROUGH_STEPS = 60, 20


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
    favours : bool, default=False
        Whether later releases give rows weights, by what those before them say.

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
    _known: RowsKnown

    def __init__(
        self, curator: SliceCurator, mode: int, level: float, deviation: float,
        options: ModelOptions, favours: bool = False,
    ) -> None:  # fmt: skip
        self._curator, self._mode, self._options = curator, mode, options
        self.level, self.deviation, self._favours = level, deviation, favours
        self._released: list[EffectRelease] = []
        self._mean_weight = 0.0

    def first(self, others: Sequence[Floats | None] = (), last: bool = True) -> None:
        """Release sums about units' levels, and effects of the other modes, if there are any."""
        self._ask(self.deviation, 1 if last else 0, others=others)

    def again(self, n_rounds: int, rest_of: str | None = None) -> None:
        """Release sums about what units fit given the effects so far, of all shared modes."""
        for left in range(n_rounds, 0, -1):
            variance = self.noise_variance()
            about = ReleasedEffects((self.effects,), self.level, variance)
            rest = None if rest_of is None else (rest_of, left)
            self._ask(math.sqrt(variance), left, about=about, rest=rest)

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
        rest: tuple[str, int] | None = None,
    ) -> None:
        """Release sums, of which so many are left; 0 if others will follow."""
        weights = self._favoured(left)
        noisy = self._curator.shared_row_sums(
            self._mode, self.level, CLIP * deviation, 1 / LEVEL_VARIANCE, others, about, rest,
            weights,
        )  # fmt: skip
        if weights is not None:
            # Units' lengths stay what they were: on average, by what is known of the rows.
            means = self._known.means
            weights = weights * math.sqrt(float(means.sum()) / float(means @ weights**2))
        centre = None if about is None else self.effects.effects
        gain = clipped_response(CLIP, deviation)
        self._released.append(EffectRelease(noisy, gain, centre, weights))
        self._fit(STEPS if left == 1 else ROUGH_STEPS)

    def _favoured(self, left: int) -> Floats | None:
        """Weights of rows in so many releases; None where they are alike."""
        if not self._favours or len(self._released) < PLAIN_ROUNDS:
            return None
        total = float(self._known.means.sum())
        weight_each = min(self._curator.n_units / max(total, 1.0), 1.0)
        return favoured(self._known, self._released[-1], weight_each, left)

    def _fit(self, n_steps: int) -> None:
        seen = AllReleases.of(self._released)
        # Scaled by released weights, as true ones are private.
        self.features = self._options.features_of(self._mode, np.maximum(seen.counts, 0.0))
        found, self._known = shared_effects(
            seen.sums, seen.counts, noise_std=seen.sigma, n_units=self._curator.n_units,
            gain=seen.gain, effect_variance=LEVEL_VARIANCE * self.deviation**2,
            features=self.features, about=seen.about, max_iter=n_steps,
        )  # fmt: skip
        if self._released[-1].weights is None:
            # Of rows that are not favoured little more is seen than noise.
            self._mean_weight = max(float(seen.counts.mean()), 1e-9)
        self.weights = self._mean_weight * np.exp(2 * found.popularity)
        self.shares = self.weights / max(float(self.weights.sum()), LEAST_WEIGHT)
        # Clipped residuals say whether values are above their unit's level rather than how far.
        # Most are, where values are skewed, and all effects would have that on top of the level.
        mean = float(self.shares @ found.effects)
        widest = 2 * self._curator.half
        self.effects = replace(
            found, effects=np.clip(found.effects - mean, -widest, widest),
            variances=np.minimum(found.variances, widest**2),
        )  # fmt: skip
