"""Passes over observed entries: what each update of a CP model asks of them."""

from collections.abc import Sequence

import numpy as np

from sktensor_dp.tensor.fibre_passes import FibrePasses, fibre_mode
from sktensor_dp.tensor.matrix_passes import MatrixPasses
from sktensor_dp.tensor.normal_equations import NormalEquations, cp_normal_equations
from sktensor_dp.tensor.oracle import Floats
from sktensor_dp.tensor.sorted_entries import SortedEntries

# A matrix with at least one entry in so many observed is multiplied as a dense one.
_DENSE_SHARE = 4


class SortedPasses:
    """Entries sorted by each mode: a number for each of them, in an arrangement for each mode."""

    def __init__(self, entries: SortedEntries) -> None:
        self._entries = entries

    def arrange(self, values: Floats) -> list[Floats]:
        """Values of the entries, as given, in the arrangement of each mode."""
        return [self._entries.sort(values, mode) for mode in range(self._entries.n_modes)]

    def at(self, numbers: Floats, of: int, mode: int) -> Floats:
        """Numbers of the rows of one mode at every entry, in the arrangement of another."""
        return numbers.take(self._entries.sorted_column(mode, of))

    def row_sums(self, arranged: Floats, mode: int) -> Floats:
        """Sums over the entries of each row of a mode, of values arranged for it."""
        return self._entries.sorted_row_sums(arranged, mode)

    def equations(
        self,
        mode: int,
        factors: Sequence[Floats],
        targets: Floats,
        second_moments: Sequence[Floats],
        *,
        rough: bool,
    ) -> NormalEquations:
        """Normal equations of a CP model, of targets arranged for the mode."""
        # Rough ones may err by a few units of single precision.
        return cp_normal_equations(self._entries, mode, factors, targets, second_moments)


EntryPasses = SortedPasses | MatrixPasses | FibrePasses


def passes_over(entries: SortedEntries) -> EntryPasses:
    """The fastest passes over entries."""
    cells = float(np.prod([float(n) for n in entries.shape]))
    if entries.n_modes == 2 and cells > _DENSE_SHARE * entries.n_entries:
        return MatrixPasses(entries)
    if entries.n_modes > 2 and (inner := fibre_mode(entries)) is not None:
        return FibrePasses(entries, inner)
    return SortedPasses(entries)
