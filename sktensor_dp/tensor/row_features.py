"""What coordinates alone say of rows: features that their biases may depend on."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.eigenpairs import top_eigenpairs
from sktensor_dp.tensor.oracle import Floats
from sktensor_dp.tensor.sorted_entries import SortedEntries

# Singular vectors of where entries are, at most, and at most one to so many rows.
_VECTORS, _ROWS_EACH = 80, 20
# Entries added to those of a row before its direction is looked at: rows that have few point
# anywhere.
_PRIOR_ENTRIES = 5.0
# Longest row of features, in units of their root mean square.
_LONGEST = 3.0
# Beyond this accuracy of the singular vectors nothing is gained, nor by more steps: where
# those of noise are left, they point anywhere.
_TOLERANCE, _STEPS = 1e-3, 6
# From so many entries on, products are formed in single precision, whose rounding is far below
# that tolerance; and columns that are multiplied at once.
_ROUGH_FROM, _COLUMNS = 2**18, 16
# Prior variances of coefficients to start from and least ones, in units of a value's.
_FIRST_SCALE, _LEAST_SCALE = 0.05, 1e-9
# Deviation of a column, relative to its largest number, below which it is taken for constant;
# and least variance of rows about what features say, relative to the one to start from.
_CONSTANT, _LEAST_SPREAD = 1e-9, 1e-6


def incidence_features(entries: SortedEntries) -> list[Floats]:
    """Features of the rows of each mode: how many entries, and which rows they share them with.

    Rows that have entries with the same rows of the other modes are alike: the leading singular
    vectors of the matrix of where entries are, scaled by its margins as in correspondence
    analysis, and the logarithm of the number of entries.
    """
    if entries.n_modes == 2:
        # One decomposition serves both: sorted by the longer mode, so that what is looked up
        # at random is the shorter one's.
        longer = int(np.argmax(entries.shape))
        vectors = list(_both_sides(entries, longer))[:: 1 - 2 * longer]
    else:
        vectors = [_both_sides(entries, mode)[0] for mode in range(entries.n_modes)]
    found = []
    for own, counts in zip(vectors, entries.counts, strict=True):
        logarithm = np.log(np.maximum(counts, 1.0))[:, None]
        found.append(standardised(np.hstack([own * _margin(counts)[:, None], logarithm]), counts))
    return found


def standardised(features: Floats, counts: NDArray[Any], shares: Floats | None = None) -> Floats:
    """Centred and scaled over the entries; far rows drawn in, and 0 where nothing was seen.

    `shares` of the rows in the mean are those of their entries, unless they are given.
    """
    weights = counts / max(float(counts.sum()), 1.0) if shares is None else shares
    centred = features - weights @ features
    size = np.sqrt(weights @ centred**2)
    centred = centred / np.where(size > 0, size, 1.0)
    centred /= np.sqrt(max(features.shape[1], 1))
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    centred *= np.minimum(1.0, _LONGEST / np.maximum(lengths, 1e-300))
    return np.asarray(centred * (counts > 0)[:, None], dtype=np.float64)


class _Incidence:
    """Where entries are: counts of one mode's rows with those of all others, scaled by margins."""

    # Nothing of it is held but the pattern, as entries sorted by the mode have it.

    def __init__(self, entries: SortedEntries, mode: int) -> None:
        self.n_rows, others = entries.shape[mode], entries.others(mode)
        rough = entries.n_entries >= _ROUGH_FROM
        self._kind: type[np.floating[Any]] = np.float32 if rough else np.float64
        ones = np.ones(entries.n_entries, dtype=self._kind)
        self._parts = [entries.matrix(ones, mode, k) for k in others]
        self._own = _margin(entries.counts[mode])
        self._theirs = [_margin(entries.counts[k]) for k in others]
        self._ends = np.cumsum([entries.shape[k] for k in others])

    @property
    def n_columns(self) -> int:
        """Number of rows of all other modes."""
        return int(self._ends[-1])

    def to_columns(self, block: Floats) -> Floats:
        """Products of the transposed matrix with a block of vectors."""
        scaled = self._own[:, None] * block
        pairs = zip(self._parts, self._theirs, strict=True)
        return np.concatenate([d[:, None] * self._times(part.T, scaled) for part, d in pairs])

    def to_rows(self, block: Floats) -> Floats:
        """Products of the matrix with a block of vectors."""
        total = np.zeros((self.n_rows, block.shape[1]))
        pieces = np.split(block, self._ends[:-1])
        for part, d, piece in zip(self._parts, self._theirs, pieces, strict=True):
            total += self._times(part, d[:, None] * piece)
        return self._own[:, None] * total

    def _times(self, pattern: Any, block: Floats) -> Floats:
        # A few columns at a time: what is looked up at random stays in a cache.
        groups = max(1, -(-block.shape[1] // _COLUMNS))
        pieces = np.array_split(block, groups, axis=1)
        return np.hstack([pattern @ piece.astype(self._kind, order="C") for piece in pieces])


def _margin(counts: NDArray[Any]) -> Floats:
    return np.asarray(1 / np.sqrt(counts + _PRIOR_ENTRIES), dtype=np.float64)


def _both_sides(entries: SortedEntries, mode: int) -> tuple[Floats, Floats]:
    """Singular vectors of a mode's rows and of all other modes' rows, without the trivial one."""
    incidence = _Incidence(entries, mode)
    n, m = incidence.n_rows, incidence.n_columns
    wide = m >= n
    side = min(n, m)
    # The first one is the trivial one, of the margins themselves.
    rank = min(_VECTORS, side // _ROWS_EACH, side - 1)
    if rank < 1:
        return np.zeros((n, 0)), np.zeros((m, 0))
    there, back = incidence.to_columns, incidence.to_rows
    if not wide:
        there, back = back, there
    near = top_eigenpairs(
        lambda block: back(there(block)), rank + 1, dim=side, n_iter=_STEPS, tol=_TOLERANCE,
        random_state=0,
    )[1][:, 1:]  # fmt: skip
    far = there(near)
    far /= np.maximum(np.linalg.norm(far, axis=0), 1e-300)
    return (near, far) if wide else (far, near)


def standardised_given(features: Floats, weights: Floats) -> Floats:
    """The same of features that were given, which say something of rows never seen too."""
    # In units of its largest number no column overflows; what is constant to rounding is left
    # out.
    largest = np.abs(features).max(axis=0, initial=0.0)
    scaled = features / np.where(largest > 0, largest, 1.0)
    total = float(weights.sum())
    shares = weights / total if total > 0 else np.full(len(features), 1 / len(features))
    varies = np.sqrt(shares @ (scaled - shares @ scaled) ** 2) > _CONSTANT
    return standardised(scaled[:, varies], np.ones(len(features)), shares)


class RowRegression:
    """Coefficients of features of the rows of each mode, with a variance per mode and kind."""

    def __init__(
        self,
        features: Sequence[Floats],
        value_variance: float,
        given: Sequence[Floats | None] | None = None,
    ) -> None:
        self._least = _LEAST_SCALE * value_variance
        further = [None] * len(features) if given is None else given
        self._features: list[Floats] = []
        self._parts: list[list[slice]] = []
        for of, more in zip(features, further, strict=True):
            kinds = [kind for kind in (of, more) if kind is not None and kind.shape[1]]
            ends = np.cumsum([0, *(kind.shape[1] for kind in kinds)]).tolist()
            self._features.append(kinds[0] if len(kinds) == 1 else np.hstack([of[:, :0], *kinds]))
            self._parts.append([slice(*pair) for pair in pairwise(ends)])
        self._scales = [[_FIRST_SCALE * value_variance] * len(parts) for parts in self._parts]

    def means(self, mode: int, weights: Floats, targets: Floats) -> Floats:
        """Prior means of biases, where `targets / weights` has the precision of `weights`."""
        features, parts, scales = self._features[mode], self._parts[mode], self._scales[mode]
        size = features.shape[1]
        if size == 0:
            return np.zeros(len(features))
        gram = features.T @ (features * weights[:, None])
        lengths = [part.stop - part.start for part in parts]
        gram[np.diag_indices(size)] += np.repeat(1 / np.array(scales), lengths)
        covariance = np.linalg.inv(gram)
        found = covariance @ (features.T @ targets)
        for place, part in enumerate(parts):
            own = found[part]
            second = float(own @ own + np.trace(covariance[part, part])) / lengths[place]
            scales[place] = max(second, self._least)
        return np.asarray(features @ found, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Regressed:
    """Posterior of numbers of rows, one each, whose prior means are linear in features."""

    # (n_rows,): posterior.
    means: Floats
    variances: Floats
    expected: Floats  # (n_rows,): prior means
    scale: float  # prior variance about them


def regressed(
    precisions: Floats, informs: Floats, scale: float, features: Floats, max_iter: int = 30
) -> Regressed:
    """Empirical Bayes regression of numbers of which ``informs / precisions`` were seen.

    `precisions` are those of what was seen, 0 where nothing was; `scale` is the prior variance
    to start from.
    """
    # R. Fay, R. Herriot, "Estimates of income for small places", JASA 1979.
    regression = RowRegression([features], scale)
    seen, start = precisions > 0, scale
    for _ in range(max_iter):
        shrunk = 1 + precisions * scale
        expected = regression.means(0, precisions / shrunk, informs / shrunk)
        variances = scale / shrunk
        means = expected + variances * (informs - precisions * expected)
        if seen.any():
            spread = float(np.mean((means - expected)[seen] ** 2 + variances[seen]))
            scale = max(spread, _LEAST_SPREAD * start)
    return Regressed(means, variances, expected, scale)
