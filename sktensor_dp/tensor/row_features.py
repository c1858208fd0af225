"""What coordinates alone say of rows: features that their biases may depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from sktensor_dp.tensor.eigenpairs import top_eigenpairs
from sktensor_dp.tensor.oracle import Floats
from sktensor_dp.tensor.sorted_entries import SortedEntries

__all__ = ["RowRegression", "incidence_features", "standardised"]

# Singular vectors of where entries are, at most, and at most one to so many rows.
_VECTORS, _ROWS_EACH = 80, 20
# Entries added to those of a row before its direction is looked at: rows that have few point
# anywhere.
_PRIOR_ENTRIES = 5.0
# Longest row of features, in units of their root mean square.
_LONGEST = 3.0
# Beyond this accuracy of the singular vectors nothing is gained.
_TOLERANCE = 1e-3
# Prior variances of coefficients to start from and least ones, in units of a value's.
_FIRST_SCALE, _LEAST_SCALE = 0.05, 1e-9


def incidence_features(entries: SortedEntries) -> list[Floats]:
    """Features of the rows of each mode: how many entries, and which rows they share them with.

    Rows that have entries with the same rows of the other modes are alike: the leading singular
    vectors of the matrix of where entries are, scaled by its margins as in correspondence
    analysis, and the logarithm of the number of entries.
    """
    found = []
    for mode, counts in enumerate(entries.counts):
        logarithm = np.log(np.maximum(counts, 1.0))[:, None]
        vectors = _singular_vectors(entries, mode)
        found.append(standardised(np.hstack([vectors, logarithm]), counts))
    return found


def standardised(features: Floats, counts: NDArray[Any]) -> Floats:
    """Centred and scaled over the entries; far rows drawn in, and 0 where nothing was seen."""
    weights = counts / max(float(counts.sum()), 1.0)
    centred = features - weights @ features
    size = np.sqrt(weights @ centred**2)
    centred = centred / np.where(size > 0, size, 1.0)
    centred /= np.sqrt(max(features.shape[1], 1))
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    centred *= np.minimum(1.0, _LONGEST / np.maximum(lengths, 1e-300))
    return np.asarray(centred * (counts > 0)[:, None], dtype=np.float64)


def _singular_vectors(entries: SortedEntries, mode: int) -> Floats:
    """Of the counts of a mode's rows with those of all others, scaled by margins."""
    n = entries.shape[mode]
    others = entries.others(mode)
    shortest = min(n, sum(entries.shape[k] for k in others))
    rank = min(_VECTORS, shortest // _ROWS_EACH)
    if rank == 0:
        return np.zeros((n, 0))
    own = 1 / np.sqrt(entries.counts[mode] + _PRIOR_ENTRIES)
    parts = []
    for k in others:
        part = entries.matrix(np.ones(entries.n_entries), mode, k)
        theirs = 1 / np.sqrt(entries.counts[k] + _PRIOR_ENTRIES)
        parts.append(scipy.sparse.diags(own) @ part @ scipy.sparse.diags(theirs))
    matrix = scipy.sparse.hstack(parts).tocsr()
    wide = matrix.shape[1] >= n
    if not wide:
        matrix = matrix.T.tocsr()
    transposed = matrix.T.tocsr()
    side = matrix.shape[0]

    def gram(block: Floats) -> Floats:
        return np.asarray(matrix @ (transposed @ block))

    # The first one is the trivial one, of the margins themselves.
    rank = min(rank, side - 1)
    if rank < 1:
        return np.zeros((n, 0))
    _, vectors = top_eigenpairs(gram, rank + 1, dim=side, tol=_TOLERANCE, random_state=0)
    if not wide:
        vectors = transposed @ vectors
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=0), 1e-300)
    return np.asarray(vectors[:, 1:] * own[:, None], dtype=np.float64)


class RowRegression:
    """Coefficients of features of the rows of each mode, with a variance per mode."""

    def __init__(self, features: Sequence[Floats], value_variance: float) -> None:
        self._features = list(features)
        self._least = _LEAST_SCALE * value_variance
        self._scales = [_FIRST_SCALE * value_variance] * len(self._features)

    def means(self, mode: int, weights: Floats, targets: Floats) -> Floats:
        """Prior means of biases, where `targets / weights` has the precision of `weights`."""
        features = self._features[mode]
        size = features.shape[1]
        if size == 0:
            return np.zeros(len(features))
        gram = features.T @ (features * weights[:, None])
        gram[np.diag_indices(size)] += 1 / self._scales[mode]
        covariance = np.linalg.inv(gram)
        found = covariance @ (features.T @ targets)
        second = float(found @ found + np.trace(covariance)) / size
        self._scales[mode] = max(second, self._least)
        return np.asarray(features @ found, dtype=np.float64)
