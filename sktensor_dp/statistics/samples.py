"""Samples, the rows of a matrix of real numbers, as the custodian holds them."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from sktensor_dp.statistics.norms import NORM_SLACK
from sktensor_dp.statistics.row_chunks import RowChunk, RowChunks, scale_to
from sktensor_dp.tensor.arrays import Floats

# Entries beyond are taken for it: squares and their sums stay far from overflow, whose
# NaN would pass every clip.
LARGEST_ENTRY = 1e100
# Numbers in a block of rows that is worked on at once (4 MB).
BLOCK_NUMBERS = 2**19
# Of a row, that are squared and added at once: of longer ones numpy breaks sums where its
# buffer ends.
COLUMNS_AT_ONCE = 2**12


def as_samples(X: Any, name: str = "X") -> Floats | sp.csr_matrix:
    """Validated samples in float64, dense or in compressed rows."""
    kind: Any = sp.csr_matrix if sp.issparse(X) else np.asarray
    samples = kind(X, dtype=np.float64)
    entries = samples.data if sp.issparse(samples) else samples
    # NaN fails both comparisons; no temporary of the size of the data is made.
    largest = max(entries.max(initial=0.0), -entries.min(initial=0.0))
    if not np.isfinite(largest):
        raise ValueError(f"{name} contains NaN or infinity; samples must be finite numbers.")
    if sp.issparse(samples) and not samples.has_canonical_format:
        samples = samples.copy()
        samples.sum_duplicates()
        largest = np.inf
    if largest > LARGEST_ENTRY:
        samples = samples.copy()
        entries = samples.data if sp.issparse(samples) else samples
        np.clip(entries, -LARGEST_ENTRY, LARGEST_ENTRY, out=entries)
    return samples


def row_by_row(X: Floats | sp.csr_matrix, basis: Floats) -> Floats:
    """``X @ basis``, each row of which has the same digits whatever others there are."""
    # BLAS takes other instructions for the last rows of a block, and for small ones. How many
    # rows lie before is private where units have several, and a digit may move a norm into the
    # next bin, or past a limit. Sparse products add up one row after the other.
    if not sp.issparse(X):
        n_rows, n_features = X.shape
        columns = np.tile(np.arange(n_features), n_rows)
        starts = np.arange(n_rows + 1) * n_features
        X = sp.csr_matrix((np.ascontiguousarray(X).ravel(), columns, starts), X.shape)
    return np.asarray(X @ basis)


def _square_norms(X: Floats) -> Floats:
    """Sums of squares of some rows, each with digits of its own."""
    X = np.ascontiguousarray(X)
    sums = np.zeros(len(X))
    for start in range(0, X.shape[1], COLUMNS_AT_ONCE):
        part = X[:, start : start + COLUMNS_AT_ONCE]
        sums += np.einsum("ij,ij->i", part, part)
    return sums


class SampleChunk(RowChunk):
    """Some samples with their norms, computed once."""

    # One radius is in use at a time, and asked for block by block.
    _scales: tuple[float, Floats] | None = None

    @cached_property
    def square_norms(self) -> Floats:
        """Squared Euclidean norm of each sample."""
        if sp.issparse(self.X):
            # Block by block: a copy of the data may not fit beside it.
            parts = (self.X[rows] for rows in self.blocks(1))
            sums = [np.asarray(part.multiply(part).sum(axis=1)).ravel() for part in parts]
            return np.concatenate([np.zeros(0), *sums])
        sums = [_square_norms(self.X[rows]) for rows in self.blocks(1)]
        return np.concatenate([np.zeros(0), *sums])

    def scales(self, radius: float) -> Floats:
        """Factor in (0, 1] per sample that puts it into the ball of a radius."""
        if self._scales is None or self._scales[0] != radius:
            norms = NORM_SLACK * np.sqrt(self.square_norms)
            self._scales = (radius, scale_to(norms, radius))
        return self._scales[1]

    def blocks(self, width: int, within: slice | None = None) -> Iterator[slice]:
        """Slices of rows for work on them beside arrays with `width` numbers a row."""
        n_rows, n_features = self.X.shape
        stored = -(-self.X.nnz // max(n_rows, 1)) if sp.issparse(self.X) else n_features
        size = max(1, BLOCK_NUMBERS // max(width, stored, 1))
        within = slice(0, n_rows) if within is None else within
        for start in range(within.start, within.stop, size):
            yield slice(start, min(start + size, within.stop))


class SampleChunks(RowChunks[SampleChunk]):
    """Samples to be read several times, some at a time."""

    noun, _chunk = "samples", SampleChunk

    def _validated(self, part: Any) -> Floats | sp.csr_matrix:
        samples = as_samples(part, "a chunk")
        if samples.ndim != 2 or samples.shape[1] != self.n_features:
            # How many rows it has may be private.
            has = f"{samples.shape[1]} features" if samples.ndim == 2 else f"{samples.ndim} axes"
            raise ValueError(f"A chunk has {has}; n_features is {self.n_features}.")
        return samples
