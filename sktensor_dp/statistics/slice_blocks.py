"""Sums over the units of a matrix for its shared factor, a block of units at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sktensor_dp.statistics.observed_entries import SliceChunks
from sktensor_dp.statistics.row_chunks import rows_of
from sktensor_dp.statistics.sums import AccurateSum, blocks
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.cell_units import CellEntries, CellUnits
from sktensor_dp.tensor.packed import packed_diagonal, unpack_rows
from sktensor_dp.tensor.packed_systems import products_of_roots
from sktensor_dp.tensor.unit_parameters import N_PLAIN

# Units that are added before their sum is added accurately.
UNITS_AT_ONCE = 750
# Numbers in an array of what is known of a block of units (4 MB): calls are few.
BLOCK_NUMBERS = 2**19
LEAST_BLOCK = 64
# Raises the eigenvalues of a moment, relative to their sum: far above rounding in a test for
# negative ones, and far below what is released.
LEAST_EIGENVALUE = 1e-12
# Lengths below it are taken for 0: squares of what is above are far from underflow.
LEAST_LENGTH = 1e-100


@dataclass(frozen=True, eq=False)
class UnitSums:
    """Sums of residuals times weights in each cell, and of second moments of weights.

    Parameters
    ----------
    units : CellUnits
        Posteriors of units from their entries.
    scale : float
        Residual that is clipped to 1.
    slope_scale : float
        Length of weights that is clipped to 1.
    moment_weight : float
        Of a moment of norm 1.
    whole : bool, default=False
        Whether a unit's residuals and weights are each divided by their own length.
    turned : ndarray of shape (r, r), optional
        Symmetric; weights of whole units are multiplied by it first.
    """

    units: CellUnits
    scale: float
    slope_scale: float
    moment_weight: float
    whole: bool = False
    turned: Floats | None = None

    def total(self, chunk: SliceChunks) -> Floats:
        """Rows of sums, then those of the weighted moment: (n_cells + r, r) numbers."""
        by_cells, table, result = chunk.by_cells, chunk.cell_table, AccurateSum()
        numbers = max(self.units.packed_size, 0 if table is None else len(table[0]))
        for span in blocks(chunk.n_units, max(BLOCK_NUMBERS // numbers, LEAST_BLOCK)):
            columns = None if table is None else (table[0][:, span], table[1][:, span])
            entries = CellEntries(rows_of(by_cells, span), self.units.offsets, columns)
            for part in self._of_units(entries):
                result.add(part)
        return result.value()

    def _of_units(self, entries: CellEntries) -> Iterator[Floats]:
        """Sums over few units each."""
        means, roots = self.units.posteriors(entries)
        weights = means[N_PLAIN:]
        terms = self.units.terms[: N_PLAIN - 1]
        residuals = entries.residuals(means[:N_PLAIN], terms, self.scale)
        slopes = weights / self.slope_scale
        if self.turned is not None:
            slopes = _turned(slopes, self.turned)
        squares = slopes[0] ** 2
        for row in slopes[1:]:
            squares += row**2
        lengths = np.sqrt(squares)
        # Cells are rows of the factor, and a unit has one entry in each at most.
        if self.whole:
            slopes *= _inverses(lengths) * _inverses(entries.lengths(residuals))
        else:
            slopes /= np.maximum(lengths, 1.0) * np.sqrt(np.maximum(entries.counts, 1))
        moments, shares = self._moments(roots, weights)
        shares[entries.counts == 0] = 0.0
        for span in blocks(len(shares), UNITS_AT_ONCE):
            moment = unpack_rows((moments[:, span] @ shares[span])[None], len(weights))[0]
            yield np.concatenate([entries.products(residuals, slopes, span), moment])

    def _moments(self, roots: list[Floats], weights: Floats) -> tuple[Floats, Floats]:
        """Moments Y Y' + w w', positive by how they are formed, and what shortens each."""
        packed, diagonal = products_of_roots(roots, weights), packed_diagonal(len(weights))
        with np.errstate(over="ignore"):
            # Rounding in a product is far below what is added to the diagonal.
            ridge = np.zeros(packed.shape[1])
            for place in diagonal:
                ridge += packed[place]
            packed[diagonal] += LEAST_EIGENVALUE * ridge
            squares, below = packed**2, np.zeros_like(ridge)
            for place, row in enumerate(squares):
                if place not in diagonal:
                    below += row
            squares = 2 * below + sum(squares[place] for place in diagonal)
            lengths = np.sqrt(squares) / self.slope_scale**2
        return packed, self.moment_weight / self.slope_scale**2 / np.maximum(lengths, 1.0)


def _turned(slopes: Floats, by: Floats) -> Floats:
    """Columns times a matrix, number by number: those of a unit do not depend on its block."""
    turned = np.zeros_like(slopes)
    for own, row in zip(turned, by, strict=True):
        for slope, number in zip(slopes, row, strict=True):
            own += number * slope
    return turned


def _inverses(lengths: Floats) -> Floats:
    """One over each length; 0 where it is none, or not finite."""
    usable = (lengths > LEAST_LENGTH) & np.isfinite(lengths)
    return np.where(usable, 1 / np.where(usable, lengths, 1.0), 0.0)
