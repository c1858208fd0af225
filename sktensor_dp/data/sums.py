"""Sums over units with bounded rounding, and sums over partitions of a source."""

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from sktensor_dp.checks.errors import error_or
from sktensor_dp.tensor.arrays import Floats, blocks

# Number of rows that are added plainly before their sum is added accurately.
ROWS_AT_ONCE = 2**14
# Number of units whose rounding the slack of every sensitivity covers; `excess` covers more units.
COVERED_UNITS = 2**22
# Relative increase of the sensitivity for every further `COVERED_UNITS` units.
EXCESS = 1e-4
# Slack for errors of single precision and of long sums together.
NORM_SLACK = 1 + 2e-4
# Sensitivities of sums are larger than proved by this factor, which covers rounding errors.
SUM_SLACK = 1 + 1e-6


def excess(n_units: float) -> float:
    """Factor >= 1 on the sensitivity that covers rounding in sums over more than 2**22 units."""
    return 1 + EXCESS * max(n_units / COVERED_UNITS - 1, 0.0)


class AccurateSum:
    """Running sum of arrays that errs by one rounding, however many are added (Neumaier 1974)."""

    def __init__(self) -> None:
        self._total: Floats | None = None
        self._rest: Floats | None = None

    def add(self, part: Floats) -> None:
        """Add `part`; the first array added is kept as the running sum and changed in place."""
        # Numbers in a block (128 kB): arrays of a few blocks stay in the cache.
        block_numbers = 2**14
        if self._total is None:
            self._total = part
            return
        if self._rest is None:
            self._rest = np.zeros_like(self._total)
        rows = max(1, block_numbers * len(part) // max(part.size, 1))
        for block in blocks(len(part), rows):
            total, term = self._total[block], part[block]
            rounded = total + term
            term_taken = rounded - total
            # Exact rounding error of the addition (Knuth's two-sum).
            self._rest[block] += (total - (rounded - term_taken)) + (term - term_taken)
            self._total[block] = rounded

    def merge(self, other: Self) -> None:
        """Add another running sum, which stays unchanged."""
        # Copy the other sum's array, as the other sum may be merged again.
        if other._total is not None:
            self.add(other._total.copy() if self._total is None else other._total)
        if other._rest is not None:
            self._rest = other._rest + (0.0 if self._rest is None else self._rest)

    def value(self) -> Floats:
        """Sum of the arrays added so far; ValueError if there are none."""
        if self._total is None:
            raise ValueError("the sum has no value: no array was added to it.")
        return self._total if self._rest is None else self._total + self._rest


def split_sum(add: Callable[[Floats], Floats], terms: Floats, squares: float) -> Floats:
    """Sum `terms` accurately: apply `add` to their high and low digits separately."""
    # `add` must add up rows of an array shaped like `terms`, in any order, and do nothing else.
    # `squares` is the sum over rows of the squared number of their terms; plain sums are accurate
    # enough up to `plain_squares`.
    plain_squares = 2**28
    largest = max(float(terms.max(initial=0.0)), -float(terms.min(initial=0.0)))
    # A power of 2 above the sum of all moduli: multiples of its last digit add up without rounding.
    # The factor leaves room for rounding where `add` multiplies terms by numbers of at most 1.
    exponent = math.frexp(largest * (1 + 1e-12))[1] + math.frexp(len(terms))[1]
    if squares <= plain_squares or exponent >= 1023:  # a larger power would overflow
        return add(terms)
    anchor = math.ldexp(1.0, exponent)
    digits = terms + anchor
    digits -= anchor  # the high ones: multiples of the anchor's last digit
    total = add(digits)
    np.subtract(terms, digits, out=digits)
    return total + add(digits)


def sums_by_row(rows: NDArray[np.intp], terms: Floats, n_rows: int) -> Floats:
    """Sum `terms` (n_terms, ...) by their row, accurately; (n_rows, ...)."""
    columns = terms.reshape(len(terms), math.prod(terms.shape[1:])).T
    n_terms = np.bincount(rows, minlength=n_rows).astype(np.float64)  # of each row
    squares = float(np.square(n_terms).sum())

    def add(part: Floats) -> Floats:
        """Sums of one part; `bincount` returns integers where there are no entries."""
        return np.bincount(rows, weights=part, minlength=n_rows).astype(np.float64, copy=False)

    sums = np.empty((n_rows, len(columns)))
    for place, column in enumerate(columns):
        sums[:, place] = split_sum(add, column, squares)
    return sums.reshape(n_rows, *terms.shape[1:])


class Chunk(Protocol):
    """Raw data of some whole units, as queries take it."""

    @property
    def n_units(self) -> int:
        """Number of units: protected persons, documents or rows."""


class RunningSum(Protocol):
    """Sum to which totals of chunks, and other sums, are added."""

    def add(self, part: Any) -> None:
        """Add the total of a chunk."""

    def merge(self, other: Any) -> None:
        """Add another sum, which stays unchanged."""

    def value(self) -> Any:
        """Sum so far."""


class Summable(Protocol):
    """Query as its data sees it: a total for each chunk, and a sum to add them to."""

    @property
    def sums(self) -> Callable[[], RunningSum]:
        """Function that makes an empty sum."""

    def total(self, chunk: Any) -> Any:
        """Sum of the contributions of the units in `chunk`."""


# Turns a partition, as its holder has it, into the chunks that queries read.
Reader = Callable[[Any], Iterable[Chunk]]


@dataclass(frozen=True, eq=False)
class PartialSum:
    """Sum of a query over some partitions (chunks on a worker), or the error of one that failed."""

    total: RunningSum | None  # None where a partition could not be read
    n_units: int
    error: Exception | None = None  # of the first such partition; it shows no data

    def value(self) -> Any:
        """Sum over the partitions; raises the error of a partition that could not be read."""
        if self.error is not None:
            raise self.error
        assert self.total is not None
        return self.total.value()


@dataclass(frozen=True, eq=False)
class PartialQuery:
    """Query sent to the workers that hold partitions of the data; holds public numbers only."""

    query: Summable
    reader: Reader  # makes chunks of a partition

    def __call__(self, partition: object) -> PartialSum:
        """Sum of the query over one partition; an error is returned, not raised."""
        result = error_or("Reading a partition", self._summed, partition)
        if isinstance(result, Exception):
            return PartialSum(total=None, n_units=0, error=result)
        return result

    def merge(self, parts: Iterable[PartialSum]) -> PartialSum:
        """Add up sums over disjoint sets of partitions; returns the first that has an error."""
        merged, n_units = self.query.sums(), 0
        for part in parts:
            if part.error is not None:
                return part
            merged.merge(part.total)
            n_units += part.n_units
        return PartialSum(merged, n_units)

    def _summed(self, partition: object) -> PartialSum:
        """Sum of the query over the chunks of `partition`, with its number of units."""
        if isinstance(partition, Exception):
            raise partition
        total, n_units = self.query.sums(), 0
        # What numpy does on errors (`np.errstate`) may differ between workers.
        with OneThread(), np.errstate(all="ignore"):
            for chunk in self.reader(partition):
                total.add(self.query.total(chunk))
                n_units += chunk.n_units
        return PartialSum(total, n_units)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def _free_limits() -> None:
    """Let any thread limit BLAS threads; otherwise only the first thread to do so may."""
    for library in _libraries().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):  # since threadpoolctl 3.8
            library.clear_controlling_thread(force=True)


class OneThread:
    """Context that limits BLAS to one thread in this process, so that sums have the same digits."""

    # The limit belongs to the whole process. Tasks overlap, so only the last task to end may lift
    # it.

    _lock = threading.Lock()
    _n_open = 0
    _limit: Any = None

    def __enter__(self) -> Self:
        with OneThread._lock:
            if OneThread._n_open == 0:
                _free_limits()
                OneThread._limit = _libraries().limit(limits=1, user_api="blas")
            OneThread._n_open += 1
        return self

    def __exit__(self, *exc_info: object) -> None:
        with OneThread._lock:
            OneThread._n_open -= 1
            if OneThread._n_open == 0:
                _free_limits()
                OneThread._limit.restore_original_limits()
                OneThread._limit = None
                _free_limits()
