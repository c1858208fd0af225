"""Blocks of rows that stay in a processor's cache."""

from collections.abc import Iterator

# Doubles of a block: 4 MB.
CACHE_NUMBERS = 2**19


def rows_at_once(numbers_each: int, caches: float = 1.0) -> int:
    """Rows of some numbers each that fill a cache, or so many caches; at least one."""
    return max(1, int(caches * CACHE_NUMBERS) // max(1, numbers_each))


def spans(n_rows: int, numbers_each: int, caches: float = 1.0) -> Iterator[slice]:
    """Slices of as many rows."""
    step = rows_at_once(numbers_each, caches)
    return (slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step))
