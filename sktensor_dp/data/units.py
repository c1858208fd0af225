"""Rows of units of privacy: labels, chunks, and rows of a group brought together."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import repeat
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.errors import call_unquoted, call_untrusted, read_each
from sktensor_dp.checks.frames import as_numbers, refuse_other_row_order
from sktensor_dp.data.labels import ONE_GROUP, Labels, as_labels, digests, distinct, joined
from sktensor_dp.data.sources import PartitionedSource, summed
from sktensor_dp.data.sums import UNITS_AT_ONCE, AccurateSum, Chunk, PartialQuery, Reader, Summable
from sktensor_dp.tensor.arrays import Floats, Integers, blocks, read_only

MIXED = "Every chunk must be a pair (X, groups), or none may be."
CHANGED = "The chunks have other groups than when they were read first."

Rows = Any  # array or CSR matrix (n_rows, n_features): scipy has no types
Piece = tuple[Rows, Labels]  # rows and their labels


def split_chunk(part: object) -> tuple[object, object]:
    """Split a chunk, rows or a pair (rows, labels), into (rows, labels or None)."""
    if isinstance(part, tuple) and len(part) == 2:
        refuse_other_row_order(*part)
        return part
    return part, None


@dataclass(frozen=True, eq=False)
class GroupTable:
    """Sorted labels of all groups in a source, their sizes, and the last chunk of each."""

    labels: Labels
    sizes: Integers
    last: Integers  # number of the last chunk that has a row of the group

    @classmethod
    def of(cls, source: Iterable[object], least: int = 2) -> Self:
        """Read the labels of every chunk of `source`, of `least` groups or more."""
        labels_of_chunks, counts_of_chunks = [], []  # each label once, and its number of rows
        for chunk in read_each(source, "The source of chunks"):
            _, groups = split_chunk(chunk)
            if groups is None:
                raise ValueError(MIXED)
            present, label_of_row = distinct(as_labels(groups, None))
            labels_of_chunks.append(present)
            counts_of_chunks.append(np.bincount(label_of_row))
        labels, places = distinct(joined(labels_of_chunks))
        if len(labels) < least:
            raise ValueError(ONE_GROUP)
        counts, n_labels = np.concatenate(counts_of_chunks), list(map(len, labels_of_chunks))
        last = np.zeros(len(labels), np.intp)
        # Later chunks overwrite earlier ones, so the last chunk of each group stays.
        last[places] = np.repeat(np.arange(len(n_labels)), n_labels)
        return cls(labels, np.bincount(places, counts, len(labels)).astype(np.intp), last)

    @cached_property
    def _place_of(self) -> dict[object, int]:
        return {label: place for place, label in enumerate(self.labels.tolist())}

    def places(self, labels: Labels) -> Integers:
        """Index of each of `labels` in the table; ValueError if one is not in it."""
        found = map(self._place_of.get, labels.tolist(), repeat(-1))
        places = np.fromiter(found, np.intp, len(labels))
        if (places < 0).any():
            raise ValueError(CHANGED)
        return places


class GroupBuffer:
    """Buffer that holds rows of a group back until the last chunk of the group was read."""

    def __init__(self, table: GroupTable) -> None:
        self._table = table
        self._left = table.sizes.copy()  # rows of each group that are still to come
        self._n_chunks = 0
        # Waiting rows by the chunk that completes their groups: each row is moved once.
        self._waiting: defaultdict[int, list[tuple[Rows, Integers]]] = defaultdict(list)

    def add(self, rows: Rows, labels: Labels) -> tuple[Rows, Integers] | None:
        """Take labelled rows; return rows of groups that are complete now and each row's group."""
        places = self._table.places(labels)
        present, counts = np.unique(places, return_counts=True)
        self._left[present] -= counts
        this_chunk, self._n_chunks = self._n_chunks, self._n_chunks + 1
        last_chunk = self._table.last[places]  # (n_rows,): the one that completes each row's group
        if (self._left[present] < 0).any() or (last_chunk < this_chunk).any():
            raise ValueError(CHANGED)
        if (last_chunk == this_chunk).all():  # no row has to wait
            self._waiting[this_chunk].append((rows, places))
        else:
            # Copy: the caller may reuse the memory of a chunk for the next one.
            order = np.argsort(last_chunk, kind="stable")
            for run in np.split(order, np.flatnonzero(np.diff(last_chunk[order])) + 1):
                end = int(last_chunk[run[0]])
                self._waiting[end].append((rows[run], places[run]))
        waited = self._waiting.pop(this_chunk, [])
        complete = [(X, groups) for X, groups in waited if len(groups)]
        if not complete:
            return None
        group_of_row = np.concatenate([groups for _, groups in complete])
        if self._left[group_of_row].any():
            raise ValueError(CHANGED)
        return stacked([X for X, _ in complete]), group_of_row

    def check_empty(self) -> None:
        """Raise ValueError if the source ended before the last row of a group."""
        if self._left.any():
            raise ValueError(CHANGED)


def stacked(parts: list[Rows]) -> Rows:
    """Matrices stacked one below the other; CSR if one of them is sparse."""
    if len(parts) == 1:
        return parts[0]
    if any(map(sp.issparse, parts)):
        return sp.vstack([sp.csr_matrix(part) for part in parts], format="csr")
    return np.concatenate(parts)


def gathered(pieces: Sequence[Piece | Exception]) -> Piece:
    """Join the pieces of all partitions that hold the same groups, or raise the first error."""
    all_rows, all_labels = [], []
    for piece in pieces:
        if isinstance(piece, Exception):
            raise piece
        all_rows.append(piece[0])
        all_labels.append(piece[1])
    with_rows = [X for X in all_rows if X.shape[0]] or all_rows[:1]  # one for its columns
    return stacked(with_rows), joined(all_labels)


def piece_of(pieces: list[Piece] | Exception, place: int) -> Piece | Exception:
    """Piece number `place` of a split partition, or the error that splitting it returned."""
    return pieces if isinstance(pieces, Exception) else pieces[place]


def split(X: object, groups: object, n_parts: int) -> list[Piece]:
    """Split rows by a hash of their group's label into `n_parts` pairs (rows, labels)."""
    rows = as_numbers(X, "a partition")
    if not hasattr(rows, "shape"):
        rows = np.fromiter(rows, object)  # of a bag
    if groups is None:
        raise ValueError(MIXED)
    refuse_other_row_order(X, groups)
    labels = as_labels(groups, rows.shape[0])
    parts = digests(labels) % np.uint64(n_parts)
    if hasattr(rows, "tocsr"):
        rows = rows.tocsr()
    return [(rows[parts == part], labels[parts == part]) for part in range(n_parts)]


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
    def shares(self) -> Floats:
        """Weight of each row, one over its unit's number of rows; (n_rows,)."""
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
        """Weight of each row in the sum over units of a unit's mean times its factor."""
        return np.repeat(factors / self.sizes, self.sizes)


def scale_to(norms: Floats, limit: float) -> Floats:
    """Clipping factors ``min(1, limit / norm)``, of the shape of `norms`; 0 for a norm of NaN."""
    # A norm of NaN passes every comparison with a limit: scale it to 0, as an infinite one.
    if math.isinf(limit):
        return np.ones_like(norms)
    factors = limit / np.maximum(norms, limit)
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
    part.data, part.indices, part.indptr = X.data[stored], X.indices[stored], ends - ends[0]
    return part


def sum_over_rows(n_rows: int, add: Callable[[slice], object]) -> Floats:
    """Sum of `add(slice)` over slices of at most 2**14 of `n_rows` rows, added accurately."""
    if n_rows <= UNITS_AT_ONCE:
        return np.asarray(add(slice(0, n_rows)))
    result = AccurateSum()
    for rows in blocks(n_rows, UNITS_AT_ONCE):
        result.add(np.asarray(add(rows)))
    return result.value()


def _parts(X: object, units: Units) -> Iterator[tuple[object, Units]]:
    """Split a matrix between units into parts of at most 2**14 rows, or of one unit."""
    start, n = 0, units.n  # in units
    while True:
        limit = units.starts[start] + UNITS_AT_ONCE
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
        return (rows_of(X, rows) for rows in blocks(X.shape[0], UNITS_AT_ONCE))
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
        # Announced by the caller, and checked; None where it is private. Not read with `groups`,
        # which are counted instead.
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
        self._table: GroupTable | None = None
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
        """Picklable callable that makes chunks of a partition on a worker, of public numbers."""
        public = type(self), self.n_features, self._prepared, self.grouped
        return partial(chunks_of_partition, *public)

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
        if X.shape[0] <= UNITS_AT_ONCE:
            return [self._chunk(X, units)]
        return [self._chunk(*part) for part in _parts(X, units)]

    def _read(self) -> Iterator[tuple[Rows, Units]]:
        """Yield (rows, units) from the source; rows of a group wait until its last one was read."""
        waiting: GroupBuffer | None = None
        rows, has_yielded = None, False  # `rows` of the last chunk; whether any were complete
        for number, chunk in enumerate(read_each(self._source, "The source of chunks")):
            X, groups = split_chunk(chunk)
            if number == 0 and groups is not None:
                # Where the number of groups is private, it may be anything.
                least = 2 if self._announced_units is not None else 0
                self._table = self._table or GroupTable.of(self._source, least)
                self.grouped, waiting = True, GroupBuffer(self._table)
            if (groups is None) != (self._table is None):
                raise ValueError(MIXED)
            if waiting is None:
                for block in _blocks_of(X):
                    rows = call_unquoted(partial(self._checked_part, block), "a chunk")
                    has_yielded = True
                    yield rows, Units.single(rows.shape[0])
                continue
            rows = call_unquoted(partial(self._checked_part, X), "a chunk")
            complete = waiting.add(rows, as_labels(groups, rows.shape[0]))
            if complete is not None:
                has_yielded = True
                rows_ready, group_of_row = complete
                order, units = in_order(group_of_row)
                yield rows_ready if order is None else rows_ready[order], units
        if waiting is not None:
            waiting.check_empty()
        if self._announced_units is None and not has_yielded:
            # A private number of units may be 0: then yield a chunk without rows. A source without
            # chunks is a mistake.
            if rows is None:
                raise ValueError(
                    "source must yield a chunk, which may have no rows; it yielded none."
                )
            yield rows, Units.single(0)


def chunks_of_partition(
    kind: type[RowChunks[Any]], n_features: int, prepared: Prepared | None, grouped: bool,
    partition: object,
) -> Iterator[Any]:  # fmt: skip
    """Yield the chunks of a partition, each with whole units."""
    chunks = kind([partition], None, n_features, prepared=prepared)
    yield from chunks
    # Rows without labels would each be a unit, which is another guarantee.
    if chunks.grouped != grouped:
        raise ValueError(MIXED)
