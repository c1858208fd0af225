"""Words of units that have several documents, each word of each unit by itself."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.tensor.arrays import Integers


@dataclass(frozen=True, eq=False)
class UnitWords:
    """Where the counts of documents are added up to those of their unit."""

    # (n_units,): number of documents of each unit, and 0 of those that are left out.
    sizes: Integers
    rows: Integers  # (n_rows,): documents of the units, in their order
    per_row: Integers  # (n_rows,): number of their counts
    stored: Integers  # (nnz,): where their counts stand among all counts
    places: Integers  # (nnz,): place of each among the different words of units
    # (n_places,): word and unit of each place.
    words: Integers
    owners: Integers

    @classmethod
    def of(cls, X: sp.csr_matrix, of_rows: Integers, chosen: NDArray[np.bool_]) -> "UnitWords":
        """Of documents that belong to chosen units."""
        rows = np.flatnonzero(chosen[of_rows])
        per_row = np.diff(X.indptr)[rows]
        ends = np.cumsum(per_row)
        starts = np.repeat(X.indptr[rows] - ends + per_row, per_row)
        stored = starts + np.arange(len(starts))
        owners = of_rows[rows]
        # Places in the order of units; sums at a place are of one unit, in the order of its rows.
        keys = np.repeat(owners, per_row) * X.shape[1] + X.indices[stored]
        different, places = np.unique(keys, return_inverse=True)
        sizes = np.bincount(owners, minlength=len(chosen))
        return cls(
            sizes, rows, per_row, stored, places, *reversed(np.divmod(different, X.shape[1]))
        )
