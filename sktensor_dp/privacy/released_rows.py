"""Released symmetric matrices that memory does not hold: rows are formed as products need them.

A row is the sum of the data's contributions and noise that is drawn again from the same
keys. Both are fixed when the release is made, so every product is with the same matrix, to the
last bit, and is post-processing of one release.

Proof: docs/proofs/gaussian_noise_on_a_grid.md.
"""

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.queries.sums import blocks
from sktensor_dp.tensor.arrays import rows_at_once

Floats = NDArray[np.float64]

# Parts of a product that are added up in order: its digits do not depend on the number of cores.
N_SHARES = 4


def mean_rows(sums: Callable[[slice], Floats], n_units: int, words: slice) -> Floats:
    """Raw rows of a sum over so many units, as means; finite, whatever a query makes of data."""
    rows = sums(words)
    rows /= n_units
    if not math.isfinite(float(rows.sum())):
        np.nan_to_num(rows, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
    return rows


class RepeatableNoise:
    """Numbered parts of the noise of one release, each under a secret key of its own."""

    # Whoever draws a part twice adds it to the same statistic: added to two, it would cancel in
    # their difference. Keys stay in this process, and for as long as the curator is open.

    def __init__(self, source: NoiseSource, n_parts: int) -> None:
        self._source = source
        self._keys = source.integers(2**64, 4 * n_parts).reshape(n_parts, 4)
        source.under(self._keys[0])  # refuses what cannot be drawn again

    def __reduce__(self) -> Any:
        raise TypeError("noise that can be drawn again is secret: it cannot be pickled or copied.")

    def part(self, number: int) -> NoiseSource:
        """Source that draws the numbers of a part from the first one on."""
        return self._source.under(self._keys[number])


class ReleasedRows:
    """A release of a symmetric matrix, of which products alone can be had.

    Parameters
    ----------
    rows : callable
        Raw rows of a slice, the same each time.
    size : int
        Of the matrix.
    add_noise : callable
        Adds noise of a source in place to rows, from the diagonal of the first one on.
    noise : NoiseSource
        Where the keys of the noise come from.
    """

    def __init__(
        self,
        rows: Callable[[slice], Floats],
        size: int,
        add_noise: Callable[[Floats, NoiseSource], None],
        noise: NoiseSource,
    ) -> None:
        self._rows, self.size, self._add_noise = rows, size, add_noise
        self._blocks = list(blocks(size, rows_at_once(size, caches=4)))
        self._parts = RepeatableNoise(noise, len(self._blocks))
        self._marks: dict[int, int] = {}

    def __reduce__(self) -> Any:
        raise TypeError("rows hold raw data and secret noise: they cannot be pickled or copied.")

    def product(self, V: Floats) -> Floats:
        """The released matrix times V."""
        columns = np.asarray(V, dtype=np.float64).reshape(self.size, -1)
        with ThreadPoolExecutor(min(os.cpu_count() or 1, N_SHARES)) as pool:
            shares = list(pool.map(partial(self._share, columns), range(N_SHARES)))
        return np.asarray(sum(shares[1:], start=shares[0])).reshape(np.shape(V))

    def _share(self, V: Floats, first: int) -> Floats:
        """What some blocks of rows, and the columns that are equal to them, add to a product."""
        total = np.zeros(V.shape)
        # A caller's np.seterr holds in no thread, and must hold nowhere.
        with np.errstate(all="ignore"):
            for number in range(first, len(self._blocks), N_SHARES):
                words, rows = self._blocks[number], self._block(number)
                own = words.stop - words.start
                total[words] += rows @ V[words.start :]
                total[words.stop :] += rows[:, own:].T @ V[words]
        return total

    def _block(self, number: int) -> Floats:
        """Released rows, from the diagonal of the first one on."""
        words = self._blocks[number]
        rows = self._rows(words)[:, words.start :]
        self._add_noise(rows, self._parts.part(number))
        # What is left of the diagonal is raw until it is overwritten.
        square = rows[:, : len(rows)]
        square[:] = np.triu(square) + np.triu(square, 1).T
        mark = int(rows.view(np.uint64).sum())
        if self._marks.setdefault(number, mark) != mark:
            raise RuntimeError("released rows were formed again and differ from what they were.")
        return rows
