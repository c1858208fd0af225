r"""Exact samples of real random variables, rounded to a grid.

The magnitude of a Gaussian or Laplace variable, in units of its scale, is drawn by rejection (von
Neumann 1951) from a staircase above its density, with steps ("cells") of 1/32. Three numbers,
uniform on [0, 1), are revealed bit by bit as far as comparisons need them (Knuth & Yao 1976):
``choice`` picks a cell, ``place`` is the position inside it, ``lot`` accepts the point or not.
Tables, doubles with a bound on their error, and decimals decide in turn: the law is exact if the
bits are random (docs/proofs/gaussian_noise_on_a_grid.md).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import cached_property, lru_cache
from itertools import accumulate, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Words = Callable[[int], NDArray[np.uint64]]
Integers = NDArray[np.int64]

# The grid is at most 2^51 times finer than the scale; MAX_MAGNITUDE steps are 2^11 scales.
MAX_BITS, MAX_MAGNITUDE = 51, 2**62

# A word, from the top: 16 bits of choice, the sign, 31 bits of place, 16 bits of lot. The choice
# picks a cell, the place a point in it, and the lot accepts the point or not.
CHOICE_BITS, PLACE_BITS, LOT_BITS = 16, 31, 16
LOT_MASK = np.uint64(2**LOT_BITS - 1)
PLACE_MASK = np.uint64(2 ** (PLACE_BITS + LOT_BITS) - 2**LOT_BITS)
LOWEST_BITS = LOT_MASK.view(np.int64)  # of magnitudes: a lot, or more bits of place
# With the cell's number in the bits above these, a word is a magnitude in units of 2^-52, as cells
# are 2^-5 scales wide.
CELL_SHIFT = PLACE_BITS + LOT_BITS
UNIT_BITS = CELL_SHIFT + 5
# On finer grids 16 more bits of place replace the lot.
ONE_WORD_BITS = UNIT_BITS - LOT_BITS - 1
# A second word adds 32 bits each to choice and lot.
HALF, LOW_HALF = np.uint64(32), np.uint64(2**32 - 1)
LONG_BITS = 48
# More than the errors of the ratio of densities by the place (2^-33), by double precision (2^-45),
# and of the lot (2^-49).
MARGIN = 2.0**-32
# Decimal sums of up to 10^4 terms have an error far below 10^(GUARD - digits).
GUARD = 9
# Products of up to 10^4 ratios, themselves products, lose fewer than 8 digits.
SPARE_DIGITS = 9
# Words, tables and temporary arrays of a block stay in the cache.
BLOCK = 2**15


@dataclass(frozen=True)
class Density:
    """Symmetric noise density ``exp(-energy)``, up to a constant factor, decreasing from 0 on."""

    name: str  # of the law
    # Energy as a function of the magnitude in cells: a convex polynomial of degree at most 2, with
    # slope below 1/3 up to the quantile of 2^-48. Takes decimal numbers and arrays.
    energy: Callable[[Any], Any]

    @lru_cache(maxsize=8)  # noqa: B019  # the package has two densities, which are never dropped
    def cumulative(self, digits: int) -> list[Decimal]:
        """Probabilities of the first 1, 2, ... cells together, to ``10^(GUARD - digits)``."""
        with _precision(digits + GUARD + SPARE_DIGITS):
            heights, least = [Decimal(1)], Decimal(10) ** -digits
            for ratio in _ratios(self):
                heights.append(heights[-1] * ratio)
                if heights[-1] <= least:
                    break
            total = sum(heights)
            return [height / total for height in accumulate(heights)]

    @cached_property
    def bounds(self) -> NDArray[np.uint64]:
        """Borders between cells on the 48-bit scale of `choice`; the last has all bits set."""
        top = 2**LONG_BITS - 1
        with _precision(50):
            heights = [int(c * 2**LONG_BITS) for c in self.cumulative(50)]
        return np.array([height for height in heights if height < top] + [top], np.uint64)

    @cached_property
    def table(self) -> Integers:
        """Table by the 16 bits of choice: a cell, times ``2^CELL_SHIFT``, plus a lot.

        Whatever the place in the cell, smaller lots than that are accepted.
        """
        # First choice that lies wholly in each cell after cell 0: borders rounded up.
        starts = -(-self.bounds.view(np.int64) >> HALF.view(np.int64))
        starts = starts[starts < 2**CHOICE_BITS]
        n_choices = np.diff(starts, prepend=0, append=2**CHOICE_BITS)  # of each cell
        with _precision(50 + SPARE_DIGITS):  # digits, far more than a lot has
            ratios = islice(_ratios(self), len(n_choices))
            lots = np.array([int(ratio * 2**LOT_BITS) for ratio in ratios])
        table = np.repeat(np.arange(len(lots)) << CELL_SHIFT | lots, n_choices)
        # Choices with a border inside do not determine the cell: with lot 0 none is accepted yet.
        table[self.bounds >> HALF] &= ~LOWEST_BITS
        return table

    def cells(self, choices: NDArray[np.uint64]) -> Integers:
        """Cell of each 48-bit choice; `_settle` decides those equal to a border."""
        return np.searchsorted(self.bounds, choices, side="right").astype(np.int64)


GAUSSIAN_DENSITY = Density("gaussian", lambda cells: cells * cells / 2048)
LAPLACE_DENSITY = Density("laplace", lambda cells: cells / 32)


def rounded_samples(density: Density, size: int, bits: int, words: Words) -> Integers:
    """Draw samples of a density, times ``2^bits``, rounded; `words` draws 64-bit random words."""
    if bits > MAX_BITS:
        raise ValueError(f"bits must be at most {MAX_BITS}, got {bits}.")
    # Allocate whole blocks, since the system keeps several buffers for arrays of slightly different
    # sizes. Such buffers may hold raw data, and released arrays may be views of the samples.
    whole = np.empty(size if size <= BLOCK else -(-size // BLOCK) * BLOCK, np.int64)
    whole[size:] = 0
    samples = whole[:size]
    rejected = _propose(density, samples, bits, words)
    while rejected.size:
        redrawn = np.empty(rejected.size, np.int64)
        failed = _propose(density, redrawn, bits, words)
        samples[rejected] = redrawn
        rejected = rejected[failed]
    return samples


def _propose(density: Density, samples: Integers, bits: int, words: Words) -> NDArray[np.intp]:
    """Fill `samples` with proposals; return the places of rejected ones."""
    # At least one block, as there must be something to concatenate.
    rejected = [
        start + _propose_block(density, samples[start : start + BLOCK], bits, words)
        for start in range(0, max(samples.size, 1), BLOCK)
    ]
    return np.concatenate(rejected)


def _propose_block(
    density: Density, samples: Integers, bits: int, words: Words
) -> NDArray[np.intp]:
    """Propose samples for at most one block, as `_propose`: cells, places, verdicts, signs."""
    # `magnitude` is a cell above CELL_SHIFT bits of place; the table leaves a lot in the low bits.
    # A proposal is accepted where the word's own lot is below it, else waits for a second look.
    word = words(samples.size)
    magnitude = np.take(density.table, (word >> np.uint64(64 - CHOICE_BITS)).view(np.int64))
    waiting = np.flatnonzero((word & LOT_MASK) >= (magnitude.view(np.uint64) & LOT_MASK))
    magnitude &= ~LOWEST_BITS  # the cells, to which places are added
    magnitude |= (word & PLACE_MASK).view(np.int64)
    if bits > ONE_WORD_BITS:
        magnitude |= words((samples.size + 3) // 4).view(np.uint16)[: samples.size]
    if waiting.size:  # their cells and verdicts need a second word
        look = _second_look(density, word[waiting], words)
        magnitude[waiting] &= PLACE_MASK.view(np.int64) | LOWEST_BITS
        magnitude[waiting] |= look.cells << CELL_SHIFT
    # Adding a half rounds to the nearest: a real number is never exactly half an odd integer.
    half_step = 1 << (UNIT_BITS - 1 - bits)
    np.add(magnitude, half_step, out=samples)
    samples >>= UNIT_BITS - bits
    if waiting.size:
        for which in np.flatnonzero(look.open).tolist():  # double precision left these open
            at = waiting[which]
            place = int(magnitude[at]) % 2**CELL_SHIFT
            samples[at], look.accepted[which] = _exact(density, look, which, place, bits, words)
        waiting = waiting[~look.accepted]
    # The next bit is the sign: -1 or 0, and (x ^ -1) + 1 = -x.
    sign = (word << np.uint64(CHOICE_BITS)).view(np.int64) >> 63
    samples ^= sign
    samples -= sign
    return waiting


def _exact(
    density: Density, look: "_Look", which: int, place: int, bits: int, words: Words
) -> tuple[int, bool]:
    """Rounded magnitude of open draw `which` with this place in its cell, and its verdict."""
    place_bits = CELL_SHIFT if bits > ONE_WORD_BITS else PLACE_BITS
    revealed = _Revealed(place >> (CELL_SHIFT - place_bits), place_bits)
    cell, is_accepted = _settle(density, look, which, revealed, words)
    rounded = (cell << CELL_SHIFT) + place + (1 << (UNIT_BITS - 1 - bits))
    return min(rounded >> (UNIT_BITS - bits), MAX_MAGNITUDE), is_accepted


class _Look(NamedTuple):
    """Draws that one word left undecided, with 48 bits of choice and lot each, and the verdict."""

    choices: NDArray[np.uint64]
    lots: NDArray[np.uint64]
    cells: Integers
    accepted: NDArray[np.bool_]
    open: NDArray[np.bool_]


def _second_look(density: Density, word: NDArray[np.uint64], words: Words) -> _Look:
    """Settle draws by a second word and double precision; `open` marks those within its error."""
    fresh = words(word.size)
    choices = (word >> np.uint64(64 - CHOICE_BITS)) << HALF | fresh >> HALF
    lots = (word & LOT_MASK) << HALF | fresh & LOW_HALF
    cells = density.cells(choices)
    is_border = density.bounds[cells - 1] == choices  # further bits of choice decide the cell
    # In cells: the middle of all places that begin with the known bits.
    place = ((word & PLACE_MASK).astype(np.float64) + 2.0 ** (LOT_BITS - 1)) * 2.0**-CELL_SHIFT
    # A draw is accepted with the ratio of densities at its place and at the start of its cell.
    ratio = np.exp(density.energy(cells.astype(np.float64)) - density.energy(cells + place))
    gap = ratio - (lots.astype(np.float64) + 0.5) * 2.0**-LONG_BITS
    return _Look(choices, lots, cells, accepted=gap > 0, open=is_border | (np.abs(gap) < MARGIN))


@dataclass(frozen=True)
class _Revealed:
    """Uniform number in [0, 1) with its first `bits` bits known, as the integer `value`."""

    value: int
    bits: int

    def further(self, words: Words) -> "_Revealed":
        """Return the number with 128 more of its bits known."""
        value = self.value
        for word in words(2):
            value = value << 64 | int(word)
        return _Revealed(value, self.bits + 128)

    def interval(self, slack: Decimal) -> tuple[Decimal, Decimal]:
        """Lower and upper bound of the number, widened by `slack` for errors of comparisons."""
        whole = Decimal(2**self.bits)
        return Decimal(self.value) / whole - slack, Decimal(self.value + 1) / whole + slack


def _settle(
    density: Density, look: _Look, which: int, place: _Revealed, words: Words
) -> tuple[int, bool]:
    """Decide cell and acceptance of open draw `which`, with more bits and decimal digits."""
    choice = _Revealed(int(look.choices[which]), LONG_BITS)
    lot = _Revealed(int(look.lots[which]), LONG_BITS)
    digits = 30
    while True:
        digits += 30
        choice, lot, place = (number.further(words) for number in (choice, lot, place))
        with _precision(digits + GUARD):
            sums, slack = density.cumulative(digits), Decimal(10) ** (GUARD - digits)
            least, most = choice.interval(slack)
            cell = bisect_right(sums, least)
            if cell != bisect_right(sums, most) or cell == len(sums):
                continue  # the known bits leave the cell open
            # Accepted if the lot is below the density at the place over that at the cell's left
            # edge, which falls with the place.
            (least, most), (near, far) = lot.interval(slack), place.interval(slack)
            edge = density.energy(Decimal(cell))
            if most <= (edge - density.energy(cell + far)).exp():
                return cell, True
            if least >= (edge - density.energy(cell + near)).exp():
                return cell, False


def _precision(digits: int) -> AbstractContextManager[Context]:
    """Context of decimal arithmetic with `digits` digits, independent of the caller's."""
    return localcontext(Context(prec=digits, rounding=ROUND_HALF_EVEN, traps=[]))


def _ratios(density: Density) -> Iterator[Decimal]:
    """Yield, for each cell, the density at its right edge over that at its left edge."""
    # The energy E is a polynomial of degree 2 at most: the ratio exp(E(c) - E(c + 1)) of each cell
    # is that of the cell before times the constant exp(2 E(1) - E(2) - E(0)).
    zero, one, two = (density.energy(Decimal(cell)) for cell in range(3))
    ratio, change = (zero - one).exp(), (2 * one - two - zero).exp()
    while True:
        yield ratio
        ratio *= change
