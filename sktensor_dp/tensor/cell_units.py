"""Posteriors of units whose entries lie in cells that all units share, many units at once."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse

from sktensor_dp.tensor.oracle import Floats
from sktensor_dp.tensor.packed import packed_places
from sktensor_dp.tensor.small_systems import sweep
from sktensor_dp.tensor.sorted_entries import Integers
from sktensor_dp.tensor.unit_parameters import (
    N_PLAIN,
    EntryEffects,
    precisions,
    prior_variances,
)

__all__ = ["CellUnits", "exact_pattern_product", "summable"]

# Share of cells with an entry from which on a pattern is multiplied as a dense one.
_DENSE_SHARE = 0.25


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
        self._plain = design[:, 1], design[:, 2]
        # Scaled by the prior each matrix is 1 plus something positive.
        self._deviations = np.sqrt(prior_variances(self.size, noise_variance))
        design = design * self._deviations
        weighted = precisions(cells, noise_variance)[:, None] * design
        self._weighted = np.ascontiguousarray(weighted)
        first, second = np.triu_indices(self.size)
        self._table = summable(weighted[:, first] * design[:, second])
        self._places = packed_places(self.size)

    def posteriors(self, left: scipy.sparse.csr_matrix) -> tuple[Floats, Floats]:
        """Means (3 + q, n) of parameters, and covariances (q, q, n) of those of components.

        `left` holds the values of (n, n_cells) minus `offsets`.
        """
        # Whatever finite numbers the entries hold, it returns finite ones and raises nothing:
        # it may be part of what is computed from raw data. Pivots are 1 at least, and raised
        # to it; no number of an inverse is above 1, nor any of a mean above the right-hand
        # side's sum, but by rounding.
        with np.errstate(all="ignore"):
            packed = exact_pattern_product(left, self._table)
            M = np.ascontiguousarray(packed.T)[self._places]
            diagonal = np.arange(self.size)
            M[diagonal, diagonal] += 1.0
            b = np.ascontiguousarray((left @ self._weighted).T)
            bound = _sum_of_rows(np.abs(b))
            for k in range(N_PLAIN):
                # Plain parameters first, and no further than the components need.
                below = M[k + 1 :, k] / np.maximum(M[k, k], 1.0)
                M[k + 1 :, k + 1 :] -= below[:, None] * M[k, k + 1 :]
                b[k + 1 :] -= below * b[k]
            C = np.ascontiguousarray(M[N_PLAIN:, N_PLAIN:])
            sweep(C, len(C), 1.0)
            np.clip(C, -1.0, 1.0, out=C)
            means = np.empty_like(b)
            means[N_PLAIN:] = 0.0
            for k in range(len(C)):
                means[N_PLAIN:] += C[:, k] * b[N_PLAIN + k]
            for k in reversed(range(N_PLAIN)):
                known = _sum_of_rows(M[k, k + 1 :] * means[k + 1 :])
                means[k] = (b[k] - known) / np.maximum(M[k, k], 1.0)
            np.clip(means, -bound, bound, out=means)
        lost = ~(np.isfinite(means).all(axis=0) & np.isfinite(C).all(axis=(0, 1)))
        if lost.any():
            means[:, lost], C[:, :, lost] = 0.0, 0.0
        # Priors of components have variance 1.
        means *= self._deviations[:, None]
        return means, C

    def plain_terms(self, means: Floats, columns: Integers, counts: Integers) -> Floats:
        """What plain parameters add at entries, unit by unit: shape (n_entries,)."""
        level, slope, popularity = (np.repeat(row, counts) for row in means[:N_PLAIN])
        effects, popular = self._plain
        slope *= effects.take(columns)
        popularity *= popular.take(columns)
        level += slope
        level += popularity
        return level


def summable(table: Floats) -> Floats:
    """The table with each column rounded so that any of its rows add up without rounding."""
    # Multiples of u A, where A is a power of 2 above the sum of a column's moduli.
    largest = np.abs(table).max(axis=0, initial=0.0)
    exponents = np.frexp(largest)[1] + math.frexp(len(table))[1]
    anchors = np.ldexp(1.0, np.minimum(exponents, 1022))
    return np.asarray((table + anchors) - anchors, dtype=np.float64)


def exact_pattern_product(matrix: scipy.sparse.csr_matrix, table: Floats) -> Floats:
    """Sums of a `summable` table's rows over the cells that each row of a matrix has."""
    # Exact sums are the same in any order: a product by BLAS errs nowhere, and rows do not
    # depend on how many others there are.
    n, n_cells = matrix.shape
    if matrix.nnz < _DENSE_SHARE * n * n_cells:
        layout = (np.ones(matrix.nnz), matrix.indices, matrix.indptr)
        return np.asarray(scipy.sparse.csr_matrix(layout, matrix.shape) @ table)
    pattern = np.zeros(n * n_cells)
    places = np.repeat(np.arange(n) * n_cells, np.diff(matrix.indptr))
    pattern[places + matrix.indices] = 1.0
    return np.asarray(pattern.reshape(n, n_cells) @ table)


def _sum_of_rows(rows: Floats) -> Floats:
    """Rows added one after the other, however many columns there are."""
    total = rows[0].copy()
    for row in rows[1:]:
        total += row
    return total
