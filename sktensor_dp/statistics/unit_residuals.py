"""Residuals of units about what each fits to its own entries, given what was released."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sktensor_dp.statistics.observed_entries import SliceChunks
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.shared_effects import SharedEffects
from sktensor_dp.tensor.unit_parameters import cell_posteriors, effects_at_entries, unit_posteriors

# Public numbers within these, and products of factors within the square of the larger, make
# no number of a unit overflow but the norm of its moment, which is then clipped to 0.
SMALLEST, LARGEST = 1e-20, 1e20
LEAST_UNIT = 1e-60


@dataclass(frozen=True, eq=False)
class ReleasedEffects:
    """What units fit their own parameters about."""

    effects: tuple[SharedEffects, ...] = field(repr=False)  # released, one per shared mode
    level: float  # mean level of units, minus the middle of the range; public
    noise_variance: float  # of values about the model, in each unit's own fit; public

    def check(self, scale: float) -> None:
        """Refuse numbers that might overflow in a unit's fit."""
        # Relative to the scale all numbers are what they are for values of any other unit.
        if not LEAST_UNIT <= scale <= 1 / LEAST_UNIT:
            raise ValueError(f"scale must be from {LEAST_UNIT} to {1 / LEAST_UNIT}.")
        if not SMALLEST <= self.noise_variance / scale**2 <= LARGEST:
            raise ValueError(f"noise_variance must be from {SMALLEST} to {LARGEST} scales squared.")
        parts = [np.array([self.level / scale])]
        for of in self.effects:
            parts += [of.effects / scale, of.variances / scale**2, of.popularity]
        if not all((np.abs(part) <= LARGEST).all() for part in parts):
            raise ValueError(f"released numbers must lie within {LARGEST} scales.")
        if not all((of.variances >= 0).all() for of in self.effects):
            raise ValueError("variances must not be negative.")

    def are_of(self, shared: Sequence[int]) -> bool:
        """Whether there are effects of the rows of all shared modes, which have so many."""
        parts = ("effects", "variances", "popularity")
        return all([len(getattr(of, p)) for of in self.effects] == list(shared) for p in parts)

    def residuals(self, chunk: SliceChunks) -> Floats:
        """Values minus what each unit's own parameters make of them; finite."""
        known = {"level": self.level, "noise_variance": self.noise_variance}
        if chunk.cells is None:
            shared = np.delete(chunk.coordinates, chunk.unit_mode, 1)
            at = effects_at_entries(self.effects, shared)
            means, _ = unit_posteriors(
                chunk.units, chunk.values, at, n_units=chunk.n_units, **known
            )
            parts = at.effects, *at.design()
        else:
            at, places = effects_at_entries(self.effects, chunk.cells), chunk.by_cells.indices
            means, _ = cell_posteriors(chunk.by_cells, at, **known)
            parts = tuple(part.take(places) for part in (at.effects, *at.design()))
        left = chunk.values - self.level
        left -= parts[0]
        # One number after the other: an entry's last bits do not depend on where it stands.
        for own, of in zip(means.T, parts[1:], strict=True):
            left -= own.take(chunk.units) * of
        return np.where(np.isfinite(left), left, 0.0)
