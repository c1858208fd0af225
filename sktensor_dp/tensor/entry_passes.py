"""Passes over observed entries: what each update of a CP model asks of them."""

from collections.abc import Sequence

import numpy as np

from sktensor_dp.tensor.fibre_passes import FibrePasses, fibre_mode
from sktensor_dp.tensor.matrix_passes import MatrixPasses
from sktensor_dp.tensor.normal_equations import Design, NormalEquations, normal_equations
from sktensor_dp.tensor.oracle import Floats
from sktensor_dp.tensor.sorted_entries import Integers, SortedEntries

# A matrix with at least one entry in so many observed is multiplied as a dense one: it
# costs no more memory than the entries do, and BLAS reads it faster.
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
        others = self._entries.others(mode)
        if len(others) == 1:
            return self._of_matrix(mode, factors[1 - mode], targets, second_moments[1 - mode])
        # Components as rows: reads and sums then run along contiguous memory.
        indices = [self._entries.sorted_column(mode, k) for k in others]
        design, products = (
            _gathered_product([np.ascontiguousarray(tables[k].T) for k in others], indices)
            for tables in (factors, second_moments)
        )
        return normal_equations(self._entries, mode, design, targets, products)

    def _of_matrix(
        self, mode: int, factor: Floats, targets: Floats, second_moments: Floats
    ) -> NormalEquations:
        """The same for two modes, by products with dense matrices."""
        shape, counts = self._entries.shape, self._entries.counts
        size = shape[mode], shape[1 - mode]
        cells = np.repeat(np.arange(size[0]), counts[mode]) * size[1]
        cells += self._entries.sorted_column(mode, 1 - mode)
        observed, values = (
            np.bincount(cells, numbers, minlength=size[0] * size[1]).reshape(size)
            for numbers in (None, targets)
        )
        observed = observed.astype(float)
        return NormalEquations(observed @ second_moments, values @ factor, observed @ factor)


EntryPasses = SortedPasses | MatrixPasses | FibrePasses


def passes_over(entries: SortedEntries) -> EntryPasses:
    """The fastest passes over entries."""
    cells = float(np.prod([float(n) for n in entries.shape]))
    if entries.n_modes == 2 and cells > _DENSE_SHARE * entries.n_entries:
        return MatrixPasses(entries)
    if entries.n_modes > 2 and (inner := fibre_mode(entries)) is not None:
        return FibrePasses(entries, inner)
    return SortedPasses(entries)


def _gathered_product(columns: list[Floats], indices: list[Integers]) -> Design:
    """Products, over modes, of the columns that a span of entries points at."""
    # Coordinates were checked when they were sorted; "clip" saves a check of each.

    def gather(span: slice) -> Floats:
        product = columns[0].take(indices[0][span], axis=1, mode="clip")
        for column, index in zip(columns[1:], indices[1:], strict=True):
            product *= column.take(index[span], axis=1, mode="clip")
        return product

    return gather
