"""Counts of many documents at once, in batches of about as many words.

A document's numbers have to be the same to the last bit whatever batch it is in. Its words and
topics are added one after the other, never in a tree; words it is filled up with add an exact 0;
and a multiple of LANES documents is computed, so that all go through the same instructions.

Proofs: docs/proofs/expected_counts.md.
"""

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.tensor.arrays import Singles

# Array operations release the interpreter's lock; more threads would wait for memory.
N_THREADS = min(os.cpu_count() or 1, 4)
# Batches below which threads cost more than they gain.
FEWEST_BATCHES = 8

# Numbers of topics at their own words that one batch holds: at most 4 MB of them, and enough
# batches for threads, unless they get smaller than 1 MB. Calls on small arrays are slow.
BATCH_NUMBERS, LEAST_NUMBERS = 2**20, 2**18
PROPORTIONS = 2**15
# Of these, words that shorter documents are filled up with: cheaper than another batch.
SPARE_NUMBERS = 2**13
# Documents are computed by this many, or some by other instructions than the rest.
LANES = 16


def run_in_batches(
    work: Callable[[slice, "Space"], None],
    counts: sp.csr_matrix,
    n_components: int,
    most: int = BATCH_NUMBERS,
) -> None:
    """Work on each batch of documents that are sorted by their numbers of words."""
    room = min(max(counts.nnz * n_components // FEWEST_BATCHES, LEAST_NUMBERS), most)
    batches = list(batches_of(np.diff(counts.indptr), n_components, room))

    def run(some: list[slice]) -> None:
        space = Space()
        # A thread does not know what its caller ignores, and warnings are outputs.
        with np.errstate(all="ignore"):
            for batch in some:
                work(batch, space)

    if N_THREADS == 1 or len(batches) < FEWEST_BATCHES:
        run(batches)
    else:
        with ThreadPoolExecutor(N_THREADS) as pool:
            shares = [list(islice(batches, i, None, N_THREADS)) for i in range(N_THREADS)]
            list(pool.map(run, shares))


def batches_of(n_words: NDArray[np.integer], n_components: int, room: int) -> Iterator[slice]:
    """Documents, sorted by their numbers of words, in batches of about as many words."""
    stop, first = len(n_words), int(np.searchsorted(n_words, 1))
    filled = np.concatenate([[0], np.cumsum(n_words, dtype=np.int64)])
    while stop > first:
        longest = int(n_words[stop - 1])
        most = min(room // longest, PROPORTIONS) // n_components
        most = max(most // LANES * LANES, LANES)
        least = max(stop - most, first)
        equal = int(np.searchsorted(n_words, longest))
        if equal <= (least + stop) // 2:
            start = max(equal, least)
        else:
            places = np.arange(least, stop)
            spare = longest * (stop - places) - (filled[stop] - filled[least:stop])
            start = least + int((spare > SPARE_NUMBERS // n_components).sum())
        yield slice(start, stop)
        stop = start


def filled_rows(
    counts: sp.csr_matrix, batch: slice
) -> tuple[Singles, NDArray[np.integer], NDArray[np.bool_] | None]:
    """Counts and words, a row a document, and which are not filled up, if some are."""
    ends = counts.indptr[batch.start : batch.stop + 1]
    stored, per_row = slice(ends[0], ends[-1]), np.diff(ends)
    shape = len(per_row), int(per_row[-1])
    data, words = counts.data[stored], counts.indices[stored]
    if per_row[0] == shape[1]:
        return data.reshape(shape), words.reshape(shape), None
    used = np.arange(shape[1]) < per_row[:, None]
    rows = np.zeros(shape, dtype=data.dtype), np.zeros(shape, dtype=words.dtype)
    rows[0][used], rows[1][used] = data, words
    return *rows, used


def columns(
    counts: sp.csr_matrix, batch: slice
) -> tuple[Singles, NDArray[np.integer], NDArray[np.bool_] | None]:
    """The same, a column a document."""
    *both, used = filled_rows(counts, batch)
    found = []
    for rows in both:
        n, longest = rows.shape
        found.append(np.zeros((longest, -(-n // LANES) * LANES), dtype=rows.dtype))
        found[-1][:, :n] = rows.T
    return found[0], found[1], used


class Space:
    """Arrays that are used again by the next batch: fresh memory is slow."""

    def __init__(self) -> None:
        self._arrays: dict[str, Singles] = {}

    def take(self, name: str, shape: tuple[int, ...]) -> Singles:
        """Uninitialised array of a shape."""
        size = math.prod(shape)
        if name not in self._arrays or self._arrays[name].size < size:
            self._arrays[name] = np.empty(size, dtype=np.float32)
        return self._arrays[name][:size].reshape(shape)
