"""Residuals of units about what each fits to its own entries, given what was released."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sktensor_dp.statistics.observed_entries import SliceChunks
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.shared_components import SharedComponents
from sktensor_dp.tensor.shared_effects import SharedEffects
from sktensor_dp.tensor.unit_parameters import (
    EntryEffects,
    cell_posteriors,
    effects_at_entries,
    unit_posteriors,
)

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

    def posteriors(
        self, chunk: SliceChunks, components: SharedComponents | None = None
    ) -> tuple[EntryEffects, Floats, Floats]:
        """What units share in all cells, or at their entries where cells are many.

        And means and covariances of the parameters of each unit, from its own entries.
        """
        known = {"level": self.level, "noise_variance": self.noise_variance}
        places = chunk.places
        rows = None if components is None else components.rows(places)
        at = effects_at_entries(self.effects, places, rows)
        if chunk.cells is not None:
            return at, *cell_posteriors(chunk.by_cells, at, **known)
        return at, *unit_posteriors(chunk.units, chunk.values, at, n_units=chunk.n_units, **known)

    def residuals(self, chunk: SliceChunks) -> Floats:
        """Values minus what each unit's own parameters make of them; finite."""
        at, means, _ = self.posteriors(chunk)
        parts = at.effects, *at.design()
        if chunk.cells is not None:
            parts = tuple(part.take(chunk.by_cells.indices) for part in parts)
        left = chunk.values - self.level
        left -= parts[0]
        # One number after the other: an entry's last bits do not depend on where it stands.
        for own, of in zip(means.T, parts[1:], strict=True):
            left -= own.take(chunk.units) * of
        return np.where(np.isfinite(left), left, 0.0)
