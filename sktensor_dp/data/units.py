"""Units of privacy as runs of rows, and chunks of whole units from tables and sources."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.errors import call_unquoted, call_untrusted, read_each
from sktensor_dp.checks.frames import refuse_other_row_order
from sktensor_dp.data.labels import ONE_GROUP, Labels, as_labels, distinct, joined
from sktensor_dp.data.sources import PartitionedSource, summed
from sktensor_dp.data.sums import ROWS_AT_ONCE, AccurateSum, Chunk, PartialQuery, Reader, Summable
from sktensor_dp.tensor.arrays import Floats, Integers, blocks, read_only

MIXED = "Every chunk must be a pair (X, groups), or none may be."
CHANGED = "The chunks have other groups than when they were read first."
PARTED = (
    "All rows of a group must be in one chunk, or it would count as several. Cut chunks between "
    "groups, of rows that are sorted by group; fit() takes rows in any order, in memory or of Dask."
)

Rows = Any  # array or CSR matrix (n_rows, n_features): scipy has no types


def split_chunk(part: object) -> tuple[object, object]:
    """Split a chunk, rows or a pair (rows, labels), into (rows, labels or None)."""
    if isinstance(part, tuple) and len(part) == 2:
        refuse_other_row_order(*part)
        return part
    return part, None


class Chunks:
    """Raw data in chunks of whole units, read once for each release, here or at a source."""

    public: ClassVar[tuple[str, ...]] = ()  # names of facts for sessions, by which queries are made
    n_units: int  # protected persons, documents or rows; private with ``add_remove``
    grouped: bool = False  # whether rows came with labels of groups, whose units are persons
    read_before_charge: bool = False  # to compare its sizes with those announced
    apart: bool = False  # whether it lies elsewhere, and is summed there instead of iterated over

    def __iter__(self) -> Iterator[Chunk]:
        """Yield the chunks, in the form that the queries' ``total`` takes."""
        raise NotImplementedError

    def sum(self, query: Summable) -> Any:
        """Sum of `query` over all units at the source, for data that is `apart`."""
        raise NotImplementedError


ChunkT = TypeVar("ChunkT", bound="RowChunk")
# Types whose rows can be sliced as views, without a copy.
BY_ROWS = (np.ndarray, sp.csr_matrix, sp.csr_array)
Prepared = Callable[[Iterable[Any]], Iterable[Any]]


class Units:
    """Units of privacy as runs of consecutive rows."""

    def __init__(self, starts: Integers) -> None:
        self.starts = starts  # (n_units + 1,): first row of each unit, and the number of all rows
        self.sizes = np.diff(starts)
        self.n = len(self.sizes)

    @classmethod
    def single(cls, n_rows: int) -> "Units":
        """Units of one row each."""
        return cls(np.arange(n_rows + 1))

    @classmethod
    def gathered(cls, labels: Labels) -> "tuple[Integers | None, Units]":
        """Order that sorts rows by label (None if they are sorted), and the units in that order."""
        return in_order(distinct(labels)[1])

    @cached_property
    def of_rows(self) -> Integers:
        """Unit of each row, of shape (n_rows,)."""
        return np.repeat(np.arange(self.n), self.sizes)

    @cached_property
    def mean_weights(self) -> Floats:
        """Weight of each row in its unit's mean, one over its number of rows; (n_rows,)."""
        return self.row_weights(np.ones(self.n))

    def means(self, values: Floats) -> Floats:
        """Mean of `values` (n_rows,) over the rows of each unit; (n_units,)."""
        # Added in the order of the rows, so that digits depend on the unit's own rows only.
        sums = np.bincount(self.of_rows, weights=values, minlength=self.n)
        return sums.astype(np.float64, copy=False) / self.sizes

    def sums(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Sum of the sparse rows of `X` in each unit, as CSR of shape (n_units, n_columns)."""
        layout = (np.ones(len(self.of_rows)), np.arange(len(self.of_rows)), self.starts)
        result = sp.csr_matrix(layout, shape=(self.n, len(self.of_rows))) @ X
        result.sort_indices()
        return result

    def any(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask of the units in which `flags` (n_rows,) holds for some row; (n_units,)."""
        return np.bincount(self.of_rows[flags], minlength=self.n) > 0

    def row_weights(self, factors: Floats) -> Floats:
        """Weights of rows whose weighted sum is that of units' means times `factors` (n_units,)."""
        return np.repeat(factors / self.sizes, self.sizes)


def scale_to(norms: Floats, limit: float) -> Floats:
    """Clipping factors ``min(1, limit / norm)``; 0 for a norm of NaN, if the limit is finite."""
    if math.isinf(limit):
        return np.ones_like(norms)
    factors = limit / np.maximum(norms, limit)
    # A norm of NaN passes every comparison with a limit: scale it to 0, as an infinite one.
    factors[np.isnan(factors)] = 0.0
    return factors


def in_order(places: Integers) -> tuple[Integers | None, Units]:
    """Order that sorts rows by their unit's index (None if they are sorted), and the units."""
    order = None
    if (places[1:] < places[:-1]).any():
        order = np.argsort(places, kind="stable")
        places = places[order]
    firsts = np.flatnonzero(np.diff(places, prepend=-1))
    return order, Units(np.append(firsts, len(places)))


def rows_of(X: Rows, rows: slice) -> Rows:
    """Rows in the slice `rows` of a dense or CSR matrix, as views of its memory."""
    if rows.start == 0 and rows.stop >= X.shape[0]:
        return X
    if not sp.issparse(X):
        return X[rows]
    ends = X.indptr[rows.start : rows.stop + 1]
    stored = slice(ends[0], ends[-1])
    part = sp.csr_matrix((rows.stop - rows.start, X.shape[1]), dtype=X.dtype)
    # Set attributes: the constructor would copy arrays that use less than half of their memory.
    part.data = X.data[stored]
    part.indices = X.indices[stored]
    part.indptr = ends - ends[0]
    return part


def sum_over_rows(n_rows: int, add: Callable[[slice], object]) -> Floats:
    """Sum of `add(slice)` over slices of at most 2**14 of `n_rows` rows, added accurately."""
    if n_rows <= ROWS_AT_ONCE:
        return np.asarray(add(slice(0, n_rows)))
    result = AccurateSum()
    for rows in blocks(n_rows, ROWS_AT_ONCE):
        result.add(np.asarray(add(rows)))
    return result.value()


def _parts(X: object, units: Units) -> Iterator[tuple[object, Units]]:
    """Split a matrix between units into parts of at most 2**14 rows, or of one unit."""
    start, n = 0, units.n  # in units
    while True:
        limit = units.starts[start] + ROWS_AT_ONCE
        within = int(np.searchsorted(units.starts, limit, side="right")) - 1
        stop = min(max(within, start + 1), n)
        first, last = int(units.starts[start]), int(units.starts[stop])
        yield rows_of(X, slice(first, last)), Units(units.starts[start : stop + 1] - first)
        start = stop
        if start >= n:
            return


def _blocks_of(X: object) -> Iterable[object]:
    """Blocks of rows of a chunk, to be checked one by one: less memory for a large partition."""
    # Sums are cut at the same rows, so their digits stay the same.
    if isinstance(X, BY_ROWS) and X.ndim == 2:
        return (rows_of(X, rows) for rows in blocks(X.shape[0], ROWS_AT_ONCE))
    return [X]


class RowChunk:
    """Rows `X` of some whole units; subclasses cache what successive queries need of them."""

    def __init__(self, X: Rows, units: Units | None = None) -> None:
        # Read-only: the caller or other chunks may share this memory; whoever changes rows makes a
        # copy.
        self.X = read_only(X)
        self.units = Units.single(X.shape[0]) if units is None else units

    @property
    def n_units(self) -> int:
        """Number of units."""
        return self.units.n


class RowChunks(Chunks, Generic[ChunkT]):
    """Rows of a data set, yielded in chunks of whole units, once for each release."""

    # Chunks are cut after 2**14 rows, between units, so that sums over their rows stay accurate. A
    # unit with more rows stays whole; sums over its rows are cut instead.

    noun = "rows"
    _chunk: type[ChunkT]  # what queries take rows of whole units as
    # Checks rows, ``convert(X, name="X")``, and converts them to the numbers that chunks hold.
    convert: ClassVar[Callable[..., Rows]]

    def __init__(
        self,
        # Validated rows as one matrix; or an iterable of the caller's chunks, pairs (rows, labels)
        # where units have several rows; or a `PartitionedSource`.
        source: Any,
        # Rows of one matrix, or the number announced for a source, which is checked; None where
        # it is private. Not read with `groups`, which are counted instead.
        n_units: int | None,
        n_features: int,  # announced by the caller
        *,
        groups: Labels | None = None,  # validated labels of the rows of one matrix
        prepared: Prepared | None = None,  # converts the caller's chunks before they are read
    ) -> None:
        self._announced_units = n_units
        self.n_units = n_units or 0
        self.n_features = n_features
        self.grouped = groups is not None  # as far as is known before reading
        self._whole: list[ChunkT] | None = None
        self._source: Iterable[Any] = ()
        self._labels: set[object] | None = None  # of all groups, as they were read first
        self._partitions: PartitionedSource | None = None
        self._prepared = prepared
        if isinstance(source, PartitionedSource):
            self._partitions, self.apart = source, True
            # A registered class may lack the attribute.
            grouped = call_untrusted(lambda: getattr(source, "grouped", False), "The source")
            self.grouped = bool(grouped)
        elif not (sp.issparse(source) or isinstance(source, np.ndarray)):
            self._source = source if prepared is None else prepared(source)
        elif groups is None:
            self._whole = self._cut(source, Units.single(source.shape[0]))
        else:
            order, units = Units.gathered(groups)
            self.n_units = units.n
            self._whole = self._cut(source if order is None else source[order], units)
        # True if the source has to be read once and compared with the announced numbers.
        self.read_before_charge = self._whole is None and not self.apart

    def _checked_part(self, part: object) -> Rows:
        """Rows of one chunk of the caller's source, checked and converted."""
        rows = self.convert(part, "a chunk")
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            # The number of rows may be private: the error shows columns only.
            flat = rows.ndim == 2
            has = counted(rows.shape[1], "feature") if flat else counted(rows.ndim, "axis")
            raise ValueError(f"A chunk has {has}; n_features is {self.n_features}.")
        return rows

    def sum(self, query: Summable) -> Any:
        """Sum of `query` over all units, added up where the partitions lie."""
        assert self._partitions is not None
        partial = summed(self._partitions, PartialQuery(query, self._reader()))
        value = partial.value()
        self._check_number(partial.n_units)
        return value

    def _reader(self) -> Reader:
        """Function that makes chunks of a partition on a worker; what it pickles is public."""
        return partial(
            chunks_of_partition, type(self), self.n_features, self._prepared, self.grouped
        )

    def _check_number(self, seen: int) -> None:
        """Raise ValueError if the number of units `seen` is not the one announced."""
        if self._announced_units is not None and seen != self._announced_units:
            noun = "groups" if self.grouped else self.noun
            raise ValueError(f"The chunks have {seen} {noun} in all; n_samples is {self.n_units}.")

    def __iter__(self) -> Iterator[ChunkT]:
        if self._whole is not None:
            yield from self._whole
            return
        seen = 0
        for X, units in self._read():
            seen += units.n
            yield from self._cut(X, units)
        self._check_number(seen)

    def _cut(self, X: Rows, units: Units) -> list[ChunkT]:
        """Chunks of at most 2**14 rows, or of one unit, from rows that lie unit by unit."""
        if X.shape[0] <= ROWS_AT_ONCE:
            return [self._chunk(X, units)]
        return [self._chunk(*part) for part in _parts(X, units)]

    def _read(self) -> Iterator[tuple[Rows, Units]]:
        """Yield (rows, units) of each chunk of the source; all rows of a unit are in one chunk."""
        rows, seen, earlier_label = None, set[object](), np.zeros(0, np.int64)
        for number, chunk in enumerate(read_each(self._source, "The source of chunks")):
            X, groups = split_chunk(chunk)
            if number == 0:
                self.grouped = groups is not None
            if (groups is not None) != self.grouped:
                raise ValueError(MIXED)
            if groups is None:
                for block in _blocks_of(X):
                    rows = call_unquoted(partial(self._checked_part, block), "a chunk")
                    yield rows, Units.single(rows.shape[0])
                continue
            rows = call_unquoted(partial(self._checked_part, X), "a chunk")
            labels, places = distinct(as_labels(groups, rows.shape[0]))
            earlier_label = joined([earlier_label, labels])[:1]  # refuses numbers beside texts
            if not seen.isdisjoint(labels.tolist()):
                raise ValueError(PARTED)
            seen.update(labels.tolist())
            order, units = in_order(places)
            yield rows if order is None else rows[order], units
        if len(seen) == 1 and self._announced_units is not None:
            raise ValueError(ONE_GROUP)
        self._labels = seen if self._labels is None else self._labels
        if seen != self._labels:
            raise ValueError(CHANGED)
        # A private number of units may be 0, in a chunk without rows. A source without chunks is a
        # mistake.
        if self._announced_units is None and rows is None:
            raise ValueError("source must yield a chunk, which may have no rows; it yielded none.")


def chunks_of_partition(
    kind: type[RowChunks[Any]], n_features: int, prepared: Prepared | None, grouped: bool,
    partition: object,
) -> Iterator[Any]:  # fmt: skip
    """Yield the chunks of a partition, each with whole units."""
    chunks = kind([partition], None, n_features, prepared=prepared)
    yield from chunks
    # Known once all are read. Rows without labels would each be a unit, which is another guarantee.
    if chunks.grouped != grouped:
        raise ValueError(MIXED)
