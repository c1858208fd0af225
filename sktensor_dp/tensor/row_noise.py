"""Noise variances of their own for the rows of one mode, as in factor analysis."""

from collections.abc import Sequence

import numpy as np

from sktensor_dp.tensor.entry_passes import EntryPasses
from sktensor_dp.tensor.oracle import Floats
from sktensor_dp.tensor.sorted_entries import SortedEntries

# The prior of a row's variance weighs as much as so many of its entries.
_PRIOR_ENTRIES = 20.0
# Least variance of a row relative to the one they share.
_LEAST_SHARE = 1e-6


class RowNoise:
    """Precisions of entries relative to a shared one, by the row of one mode.

    The variances s_i of the mode's n_i entries have inverse gamma priors about the
    shared one, v. Weights are v / s_i; their geometric mean over the entries is 1, and
    they are 1 until `update` is first called.

    Parameters
    ----------
    entries : SortedEntries
        Coordinates of the observed entries.
    mode : int or None
        Whose rows differ in noise; None for one variance throughout.
    passes : EntryPasses
        Over the entries; the arrangement of weights is theirs.

    Attributes
    ----------
    mode : int or None
        As given.
    precisions : list of ndarray of shape (n_m,)
        v / s_i for the rows of the mode, 1 for those of all others.
    totals : list of ndarray of shape (n_m,)
        Sum over the entries of each row of their precisions on account of the other
        modes.

    References
    ----------
    D. Rubin, D. Thayer, "EM algorithms for ML factor analysis", Psychometrika 1982.
    """

    def __init__(self, entries: SortedEntries, mode: int | None, passes: EntryPasses) -> None:
        self.mode = mode
        self._passes = passes
        self.precisions = [np.ones(n) for n in entries.shape]
        self.totals = [counts.astype(np.float64) for counts in entries.counts]
        self._entries = entries
        self._weights: list[Floats | None] = [None] * entries.n_modes

    def weighted(self, values: Floats, mode: int) -> Floats:
        """Values arranged for a mode, times their precisions but for its own."""
        weights = self._weights[mode]
        return values if weights is None else values * weights

    def weighted_rows(self, arrays: Sequence[Floats]) -> list[Floats]:
        """Arrays of shape (n_m, ...), one per mode, times the precisions of their rows."""
        weighted = list(arrays)
        if self.mode is not None:
            array = weighted[self.mode]
            rows = self.precisions[self.mode].reshape(-1, *[1] * (array.ndim - 1))
            weighted[self.mode] = rows * array
        return weighted

    def update(self, squares: Floats, variance: float, floor: float) -> float:
        """Estimate the variances of the rows; return the one that they share."""
        assert self.mode is not None
        counts = self._entries.counts[self.mode]
        expected = (_PRIOR_ENTRIES * variance + squares) / (_PRIOR_ENTRIES + counts)
        variances = np.maximum(expected, max(floor, _LEAST_SHARE * variance))
        shared = float(np.exp(counts @ np.log(variances) / counts.sum()))
        self.precisions[self.mode] = shared / variances
        for k in self._entries.others(self.mode):
            weights = self._passes.at(self.precisions[self.mode], self.mode, k)
            self._weights[k] = weights
            self.totals[k] = self._passes.row_sums(weights, k)
        return shared

    def mean_variance(self, variance: float) -> float:
        """Mean over the entries of their variances, where the shared one is `variance`."""
        if self.mode is None:
            return variance
        counts = self._entries.counts[self.mode]
        return variance * float(np.sum(counts / self.precisions[self.mode]) / counts.sum())
