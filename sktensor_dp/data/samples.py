"""Samples, the rows of a matrix, with or without missing cells; and a tensor as one chunk."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.data.units import Chunks, RowChunk, RowChunks, Rows, Units, scale_to
from sktensor_dp.tensor.arrays import Floats, rows_at_once
from sktensor_dp.tensor.symmetric import Oracle

# Larger entries are replaced by this: sums of their squares stay far from overflow, and NaN would
# pass every clip.
LARGEST_ENTRY = 1e100


def as_samples(X: object, name: str = "X") -> Floats | sp.csr_matrix:
    """Validate samples (rows): return float64, dense or CSR, with entries clipped at 1e100."""
    kind: Any = sp.csr_matrix if sp.issparse(X) else np.asarray
    samples = kind(X, dtype=np.float64)
    entries = samples.data if sp.issparse(samples) else samples
    # The extremes of an array with NaN are NaN. No temporary array of the size of the data is made.
    largest = max(entries.max(initial=0.0), -entries.min(initial=0.0))
    if not np.isfinite(largest):
        raise ValueError(f"{name} contains NaN or infinity; samples must be finite numbers.")
    has_duplicates = sp.issparse(samples) and not samples.has_canonical_format
    if has_duplicates or largest > LARGEST_ENTRY:
        samples = samples.copy()
        if has_duplicates:
            samples.sum_duplicates()
        entries = samples.data if sp.issparse(samples) else samples
        np.clip(entries, -LARGEST_ENTRY, LARGEST_ENTRY, out=entries)
    return samples


def _square_norms(X: Rows) -> Floats:
    """Squared norm of each row of a matrix, whose digits do not depend on the other rows."""
    # Number of squares of a row that are added at once: in longer sums numpy splits where its
    # buffer ends.
    columns_at_once = 2**12
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    X = np.ascontiguousarray(X)
    sums = np.zeros(len(X))
    for start in range(0, X.shape[1], columns_at_once):
        columns = X[:, start : start + columns_at_once]
        sums += np.einsum("ij,ij->i", columns, columns)
    return sums


class SampleChunk(RowChunk):
    """Samples (rows) of some units, with their norms computed once."""

    # False in missing cells, which are 0 in `X`; None where none is missing.
    observed: NDArray[np.bool_] | None = None
    # Last radius and its scales: one radius is in use at a time, for one block after another.
    _scales: tuple[float, Floats] = (math.nan, np.zeros(0))

    @cached_property
    def square_norms(self) -> Floats:
        """Squared Euclidean norm of each sample, of shape (n_samples,)."""
        # By blocks, as a copy of all data may not fit into memory.
        sums = [_square_norms(self.X[rows]) for rows in self.blocks(width=1)]
        return np.concatenate([np.zeros(0), *sums])

    def scales(self, radius: float) -> Floats:
        """Clipping factor in (0, 1] of each sample that puts it into the ball of `radius`."""
        last_radius, scales = self._scales
        if last_radius != radius:
            scales = scale_to(NORM_SLACK * np.sqrt(self.square_norms), radius)
            self._scales = radius, scales
        return scales

    def squared_constants(self, rows: slice) -> Floats:
        """Square of the constant coordinate of each row, relative to that of a complete row.

        It is ``(1 + f) / 2`` for a row with the fraction f of its cells observed.
        """
        if self.observed is None:
            return np.ones(rows.stop - rows.start)
        return np.asarray((1 + self.observed[rows].mean(axis=1)) / 2)

    def blocks(self, width: int, within: slice | None = None) -> Iterator[slice]:
        """Slices of the rows in `within` that, with `width` numbers a row, fit into the cache."""
        n_rows, n_features = self.X.shape
        # A sparse row is taken to be as long as the mean one.
        per_row = math.ceil(self.X.nnz / max(n_rows, 1)) if sp.issparse(self.X) else n_features
        size = rows_at_once(max(width, per_row))
        within = slice(0, n_rows) if within is None else within
        for start in range(within.start, within.stop, size):
            yield slice(start, min(start + size, within.stop))


class SampleChunks(RowChunks[SampleChunk]):
    """Samples, validated and yielded as `SampleChunk`, once for each release."""

    noun, _chunk, convert = "samples", SampleChunk, staticmethod(as_samples)


class IncompleteChunk(SampleChunk):
    """Samples in which NaN is a missing cell."""

    def __init__(self, X: Rows, units: Units | None = None) -> None:
        if not sp.issparse(X) and np.isnan(X).any():
            self.observed = ~np.isnan(X)
            X = np.where(self.observed, X, 0.0)
        super().__init__(X, units)


def as_incomplete(X: Any, name: str = "X") -> Rows:
    """Validate samples: NaN in dense ones is a missing cell, and stays."""
    if sp.issparse(X):
        return as_samples(X, name)
    X = np.asarray(X, np.float64)
    missing = np.isnan(X)
    if not missing.any():
        return as_samples(X, name)
    return np.where(missing, np.nan, as_samples(np.where(missing, 0.0, X), name))


class IncompleteChunks(SampleChunks):
    """Samples in which NaN is a missing cell, yielded as `IncompleteChunk`."""

    _chunk, convert = IncompleteChunk, staticmethod(as_incomplete)


@dataclass(frozen=True, eq=False)
class TensorChunk(Chunks):
    """Symmetric tensor that is itself the private data, as one chunk."""

    oracle: Oracle  # maps U of shape (d, L) to T(I, u, u) for its columns u
    n_units: int = 1

    # Entries are clipped to this many times the largest change: rounding errors of larger ones
    # would exceed the change.
    largest_ratio: ClassVar[float] = 1e6

    def __iter__(self) -> Iterator["TensorChunk"]:
        yield self
