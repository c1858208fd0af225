"""Which model a completion fits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.row_effects import standardised_given
from sktensor_dp.tensor.sorted_entries import SortedEntries


@dataclass(frozen=True, eq=False)
class ModelOptions:
    """Which model is fitted, whatever is released.

    Attributes
    ----------
    ranks : tuple of n_modes int
        Columns of each factor; all the same without a full core.
    full_core : bool
        Whether all combinations of columns are components (Tucker).
    random_state : RandomState
        Of starts.
    regularization : float
        What the variances of rows and of the core are divided by.
    max_iter : int or None
        Most sweeps over released values.
    features : tuple of n_modes tables or None
        Public ones of the rows, as they were given.
    """

    ranks: tuple[int, ...]
    full_core: bool
    random_state: np.random.RandomState
    regularization: float
    max_iter: int | None = None
    features: tuple[NDArray[np.float64] | None, ...] | None = None

    def features_of(self, mode: int, weights: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Public features of the rows of a mode, scaled by so much weight of each."""
        given = None if self.features is None else self.features[mode]
        found = None if given is None else standardised_given(given, weights)
        return None if found is None or found.shape[1] == 0 else found

    def features_at(self, entries: SortedEntries) -> list[NDArray[np.float64] | None]:
        """Those of all modes, scaled over entries whose coordinates are public."""
        counts = [counts.astype(np.float64) for counts in entries.counts]
        return [self.features_of(mode, of) for mode, of in enumerate(counts)]

    @property
    def rank(self) -> int:
        """Components of a CP model, which fit into any core."""
        return min(self.ranks)
