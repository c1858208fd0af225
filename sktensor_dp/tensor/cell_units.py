"""Posteriors of units whose entries lie in cells that all units share, many units at once."""

import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from sktensor_dp.tensor.oracle import Floats
from sktensor_dp.tensor.packed_systems import eliminated, roots_of_inverses, solved, triangle
from sktensor_dp.tensor.same_shape import of_same_shape
from sktensor_dp.tensor.unit_parameters import N_PLAIN, EntryEffects, precisions, prior_variances


class CellEntries:
    """Values of a block of units in the cells where they have any.

    Where most cells are taken they lie in a table of all cells: arithmetic is cheaper than
    finding places. What is computed of a unit is the same to the last bit.

    Parameters
    ----------
    values : csr_matrix of shape (n_units, n_cells)
    offsets : ndarray of shape (n_cells,)
        What units share, which is taken off.
    table : tuple of two arrays of shape (n_cells, n_units), or None
        The values once more, anything finite in cells without, and which cells have one.
    """

    def __init__(
        self,
        values: scipy.sparse.csr_matrix,
        offsets: Floats,
        table: tuple[Floats, NDArray[np.bool_]] | None = None,
    ) -> None:
        self.counts = np.diff(values.indptr)
        self._left = of_same_shape(values, values.data - offsets.take(values.indices))
        self._table, self._pattern = None, None
        if table is not None:
            self._table, self._pattern = table[0] - offsets[:, None], table[1].astype(np.float64)

    def pattern_sums(self, table: Floats) -> Floats:
        """Sums of the rows of a `summable` table over each unit's cells: (n_columns, n)."""
        # Exact sums are the same in any order: a product by BLAS errs nowhere, and units do
        # not depend on how many others there are.
        if self._pattern is not None:
            return np.asarray(table.T @ self._pattern)
        pattern = of_same_shape(self._left, np.ones(self._left.nnz))
        return np.ascontiguousarray((pattern @ table).T)

    def moments(self, table: Floats) -> Floats:
        """Sums of values times rows of a table, each in the order of its entries."""
        return np.ascontiguousarray((self._left @ table).T)

    def residuals(self, means: Floats, terms: Sequence[Floats], scale: float) -> Floats:
        """Values minus a level and further parameters times their terms, over a scale, clipped.

        In a table of shape (n_cells, n_units), or entry by entry.
        """
        left = (self._left.data if self._table is None else self._table).copy()
        known = self._product(means[1], terms[0])
        known += np.repeat(means[0], self.counts) if self._table is None else means[0]
        # One number after the other, so that a unit's do not depend on its block.
        for own, term in zip(means[2:], terms[1:], strict=True):
            known += self._product(own, term)
        left -= known
        left /= scale
        np.clip(left, -1.0, 1.0, out=left)
        if self._pattern is not None:
            left *= self._pattern
        return left

    def _product(self, own: Floats, term: Floats) -> Floats:
        """A parameter of each unit times a number of each cell, where there are entries."""
        if self._table is not None:
            return term[:, None] * own
        return np.repeat(own, self.counts) * term.take(self._left.indices)

    def lengths(self, residuals: Floats) -> Floats:
        """Of each unit's residuals; squares are added in the order of its entries."""
        squares = residuals**2
        if self._table is not None:
            return np.sqrt(_sum_of_rows(squares))
        layout = (squares, np.zeros(len(squares), dtype=np.int32), self._left.indptr)
        return np.sqrt(scipy.sparse.csr_matrix(layout, (len(self.counts), 1)) @ np.ones(1))

    def products(self, residuals: Floats, slopes: Floats, units: slice) -> Floats:
        """Sums over some units of residuals times a unit's (r, n) slopes: (n_cells, r)."""
        own = slopes[:, units]
        if self._table is not None:
            return np.asarray(residuals[:, units] @ own.T)
        of = of_same_shape(self._left, residuals)[units]
        return np.asarray(of.T @ np.ascontiguousarray(own.T))


class CellUnits:
    """What the entries of units say of their parameters; arrays have a column for each unit.

    A column is a function of its own unit's entries to the last bit, whatever others there
    are: sums over cells are exact, or in the order of the unit's entries, and all else is
    done number by number.

    Parameters
    ----------
    cells : EntryEffects
        What units share at each cell, components included.
    level, noise_variance : float
        As for `fold_in_units`.
    """

    def __init__(self, cells: EntryEffects, *, level: float, noise_variance: float) -> None:
        design = cells.design().T
        self.size = design.shape[1]
        self.offsets = level + cells.effects
        # Derivatives in all parameters but the level, which are 1.
        self.terms = tuple(np.ascontiguousarray(column) for column in design[:, 1:].T)
        # Scaled by the prior each matrix is 1 plus something positive.
        self._deviations = np.sqrt(prior_variances(self.size, noise_variance))
        design = design * self._deviations
        weighted = precisions(cells, noise_variance)[:, None] * design
        self._weighted = np.ascontiguousarray(weighted)
        first, second = np.triu_indices(self.size)
        self._table = summable(weighted[:, first] * design[:, second])
        self.packed_size = len(first)

    def posteriors(self, entries: CellEntries) -> tuple[Floats, list[Floats]]:
        """Means (3 + q, n) of parameters, and roots Y of the covariances Y Y' of components.

        Roots are upper triangles, row by row: the first of shape (q, n), the last (1, n).
        """
        # Whatever finite numbers the entries hold, it returns finite ones and raises nothing:
        # it may be part of what is computed from raw data. Pivots are 1 at least, and raised
        # to it; no number of a root is above 1, nor any of a mean above the right-hand side's
        # sum, but by rounding.
        with np.errstate(all="ignore"):
            packed = entries.pattern_sums(self._table)
            rows = triangle(packed, self.size)
            for row in rows:
                row[0] += 1.0
            b = entries.moments(self._weighted)
            bound = _sum_of_rows(np.abs(b))
            # Plain parameters first.
            pivots = eliminated(rows, 1.0)
            means = solved(rows, pivots, b)
            np.clip(means, -bound, bound, out=means)
            roots = rows[N_PLAIN:]
            roots_of_inverses(roots, pivots[N_PLAIN:])
            # Priors of components have variance 1.
            means *= self._deviations[:, None]
            first = len(packed) - sum(map(len, roots))
            np.clip(packed[first:], -1.0, 1.0, out=packed[first:])
            # A sum is finite if all terms are, which are too small to overflow.
            sums = _sum_of_rows(packed[first:]) + _sum_of_rows(means * 0.0)
        lost = ~np.isfinite(sums)
        if lost.any():
            means[:, lost], packed[:, lost] = 0.0, 0.0
        return means, roots


def summable(table: Floats) -> Floats:
    """The table with each column rounded so that any of its rows add up without rounding."""
    # Multiples of u A, where A is a power of 2 above the sum of a column's moduli.
    largest = np.abs(table).max(axis=0, initial=0.0)
    exponents = np.frexp(largest)[1] + math.frexp(len(table))[1]
    anchors = np.ldexp(1.0, np.minimum(exponents, 1022))
    return np.asarray((table + anchors) - anchors, dtype=np.float64)


def _sum_of_rows(rows: Floats) -> Floats:
    """Rows added one after the other, however many columns there are."""
    total = rows[0].copy()
    for row in rows[1:]:
        total += row
    return total
