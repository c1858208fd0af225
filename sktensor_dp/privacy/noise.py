"""The only source of randomness for noise.

Noise comes from ChaCha20, a cryptographically secure generator, keyed with 256
bits of the operating system's entropy; nothing that seeds an algorithm reaches
it. Every release arrives here as a vector of coordinates in an orthonormal basis,
divided by its sensitivity. They are rounded to a grid whose step is 2^-m times the
scale of the noise, and exact samples of continuous noise, rounded to the same grid,
are added as integers. The sum equals the continuous mechanism's output rounded
afterwards, so the guarantee is that of the continuous law, and no digit finer than
the step leaves. Rounding may move neighbours apart by the grid's covering diameter,
which is added to the sensitivity.
"""

import contextlib
import contextvars
import copy
import itertools
import math
import numbers
import os
import secrets
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from randomgen import ChaCha

from sktensor_dp.exceptions import PrivacyLeakWarning
from sktensor_dp.privacy.sampling import BLOCK, GAUSSIAN, LAPLACE, MAX_BITS, Law, rounded_samples

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# The covering diameter may add this much to a unit sensitivity: 0.024 %.
DIAMETER = 2.0**-12
# Indices beyond are clipped, before and after noise of at most 2^62 is added: no overflow.
LARGEST_INDEX = 2**60
# A step more than its rounding errors, so that noise is never too small by them.
ROUNDED_UP = 1 + 2.0**-50
FORKED = (
    "This process was forked while a fit was running, and cannot go on with it: both would draw "
    "the same noise, and one charge would pay for two answers. Fork before a fit or after it, not "
    "from a source of chunks or a callback."
)


class _Seeds:
    """Seeds of successive fits, for as long as their ``with`` block is open."""

    def __init__(self, seed: int) -> None:
        self.of_fits = (np.random.SeedSequence((seed, fit)) for fit in itertools.count())
        self.is_open = True


_seeds: contextvars.ContextVar[tuple[_Seeds, ...]] = contextvars.ContextVar("seeds", default=())


def _open_seeds() -> tuple[_Seeds, ...]:
    """Seeds of the open blocks, the innermost last."""
    return tuple(seeds for seeds in _seeds.get() if seeds.is_open)


@contextlib.contextmanager
def unsafe_seeded_noise(seed: int) -> Iterator[None]:
    """Make the noise inside a ``with`` block reproducible, and so not private.

    For tests and figures only. Anyone who knows the seed can subtract the noise.
    Reports made inside say that nothing is protected.

    Parameters
    ----------
    seed : int
        Seed of the noise, >= 0; successive fits inside the block get different
        noise.

    Raises
    ------
    ValueError
        If ``seed`` is not an integer >= 0.

    Warns
    -----
    PrivacyLeakWarning
        Always.

    Examples
    --------
    >>> import warnings, sktensor_dp
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", sktensor_dp.PrivacyLeakWarning)
    ...     with sktensor_dp.unsafe_seeded_noise(0):
    ...         pass
    """
    if not (isinstance(seed, numbers.Integral) and seed >= 0):
        raise ValueError(f"seed must be an int >= 0, got {seed!r}.")
    warnings.warn(
        "noise is seeded: results made in this block are not private.",
        PrivacyLeakWarning,
        stacklevel=3,
    )
    # A generator that yields inside a block is left when it goes on or is collected: after later
    # blocks were entered, or in another thread. Its seeds end then, and no other's; a token of the
    # variable would bring back whatever there was before.
    own = _Seeds(seed)
    _seeds.set((*_open_seeds(), own))
    try:
        yield
    finally:
        own.is_open = False
        _seeds.set(_open_seeds())


@dataclass(frozen=True)
class Grid:
    """Grid that noise of a given scale lies on."""

    scale: float  # of the noise, with the cost of rounding
    bits: int  # the step is ``2^-bits`` times the scale
    diameter: float  # how far apart rounding moves neighbours at most

    @property
    def step(self) -> float:
        """Distance of neighbouring points of the grid."""
        return math.ldexp(self.scale, -self.bits)


class OneProcess:
    """The process that a fit began in, which none that is forked from it may go on with."""

    def __init__(self) -> None:
        self._number = os.getpid()

    def check(self) -> None:
        """Refuse another process than that."""
        if os.getpid() != self._number:
            raise RuntimeError(FORKED)


class NoiseSource:
    """Noise for the releases of one fit, in the process that made it."""

    def __init__(self) -> None:
        seeds = _open_seeds()
        self.seeded = bool(seeds)
        if seeds:
            state = next(seeds[-1].of_fits).generate_state(8, np.uint32)
            key = int.from_bytes(state.tobytes(), "little")
        else:
            key = secrets.randbits(256)
        self._keyed, self.process = _generator(key), OneProcess()

    @property
    def _generator(self) -> np.random.Generator:
        self.process.check()
        return self._keyed

    def gaussian(self, coordinates: Floats, mu: float, size: int | None = None) -> Floats:
        """Add Gaussian noise to coordinates of unit L2 sensitivity at a cost of ``mu``."""
        # Some coordinates of a vector of `size` may come at a time: the sensitivity is that of the
        # whole, and so is the grid.
        if math.isinf(mu):
            return coordinates
        size = coordinates.size if size is None else size
        return self.add_gaussian(coordinates, self.grid(1 / mu, math.sqrt(size)))

    def laplace(self, coordinates: Floats, epsilon: float, size: int | None = None) -> Floats:
        """Add Laplace noise to coordinates of unit L1 sensitivity at a cost of ``epsilon``."""
        if math.isinf(epsilon):
            return coordinates
        size = coordinates.size if size is None else size
        grid = self.grid(1 / epsilon, size)
        return _on_grid(coordinates, self._steps(LAPLACE, coordinates.size, grid.bits), grid)

    def spherical_laplace(
        self, coordinates: Floats, epsilon: float, ambient_dimension: int | None = None
    ) -> Floats:
        """Add noise of density ``exp(-epsilon |b|_2)``, seen in a subspace of its space."""
        # The norm of the noise in `ambient_dimension` dimensions follows a Gamma law and its
        # direction is uniform; only the coordinates given are formed (`None`: they are all there
        # are).
        if math.isinf(epsilon):
            return coordinates
        size = coordinates.size
        hidden = 0 if ambient_dimension is None else ambient_dimension - size
        grid = self.grid(1 / epsilon, math.sqrt(size))
        direction = self.standard_normal(size)
        square = float(direction @ direction)
        if hidden:
            square += float(self._generator.chisquare(hidden))
        norm = float(self._generator.standard_gamma(size + hidden)) * grid.scale
        direction *= norm / math.sqrt(square)
        return _on_grid(coordinates, _rounded(direction, grid.step), grid)

    def spherical_laplace_rows(self, coordinates: Floats, epsilon: float) -> Floats:
        """Add noise of density ``exp(-epsilon |b|_2)`` to each row, rows being independent."""
        # For coordinates of which neighbours differ in one row, by 1 at most.
        if math.isinf(epsilon):
            return coordinates
        n_rows, size = coordinates.shape
        # The covering diameter is that of all rows, in the sum of their L2 norms.
        grid = self.grid(1 / epsilon, n_rows * math.sqrt(size))
        direction = self.standard_normal(n_rows * size).reshape(n_rows, size)
        norms = self._generator.standard_gamma(size, n_rows) * grid.scale
        norms /= np.sqrt(np.square(direction).sum(axis=1))
        direction *= norms[:, None]
        return _on_grid(coordinates, _rounded(direction, grid.step), grid)

    def integers(self, below: int, size: int) -> NDArray[np.uint64]:
        """Draw integers evenly from ``0 .. below - 1``, below at most ``2^64``."""
        return self._generator.integers(0, below - 1, size, dtype=np.uint64, endpoint=True)

    def under(self, key: NDArray[np.uint64]) -> "NoiseSource":
        """Source that draws as this one does, under 256 bits that this one has drawn."""
        other = copy.copy(self)
        other._keyed = _generator(int.from_bytes(key.tobytes(), "little"))
        return other

    def standard_normal(self, size: int) -> Floats:
        """Draw normals that a mechanism shapes; they are within 2^-52 of exact ones."""
        steps = rounded_samples(GAUSSIAN, size, MAX_BITS, self._words)
        return np.ldexp(steps.astype(np.float64), -MAX_BITS)

    def grid(self, scale: float, diameter_per_step: float, *, diameter: float = DIAMETER) -> Grid:
        """Choose the grid for noise, and the noise that pays for the grid."""
        steps = max(diameter_per_step, 1.0)
        finest = steps * max(scale, 1.0) * (1 + diameter) / diameter
        bits = min(math.ceil(math.log2(finest)), MAX_BITS)
        excess = math.ldexp(scale * steps, -bits)
        if excess > 0.5:
            raise ValueError(
                f"noise of scale {scale:.3g} per unit of sensitivity has no grid fine enough for "
                f"{steps:.3g} steps; a larger epsilon has."
            )
        scale *= ROUNDED_UP / (1 - excess)
        return Grid(scale, bits, math.ldexp(scale * steps, -bits))

    def add_gaussian(self, coordinates: Floats, grid: Grid) -> Floats:
        """Add Gaussian noise of the grid's scale."""
        return _on_grid(coordinates, self._steps(GAUSSIAN, coordinates.size, grid.bits), grid)

    def _steps(self, law: Law, size: int, bits: int) -> Integers:
        self.process.check()
        return rounded_samples(law, size, bits, self._words)

    def _words(self, count: int) -> NDArray[np.uint64]:
        return self._generator.bit_generator.random_raw(count)


def _generator(key: int) -> np.random.Generator:
    return np.random.Generator(ChaCha(key=key, rounds=20))


def _rounded(values: Floats, step: float) -> Integers:
    # A projection onto a box never moves neighbours apart. It comes first: an overflow
    # in the division would warn, and warnings are seen. NaN, which minimum and maximum would
    # let pass and no integer can be, ends at the wall of the box.
    index = np.fmin(values, LARGEST_INDEX * step)
    np.fmax(index, -LARGEST_INDEX * step, out=index)
    index /= step
    np.rint(index, out=index)
    return index.astype(np.int64)


def _on_grid(coordinates: Floats, steps: Integers, grid: Grid) -> Floats:
    """Add steps to rounded coordinates, in blocks that stay in the cache."""
    # What is released takes the place of the steps.
    flat, steps = coordinates.reshape(-1), steps.reshape(-1)
    released = steps.view(np.float64)
    for start in range(0, flat.size, BLOCK):
        block = slice(start, start + BLOCK)
        total = _rounded(flat[block], grid.step)
        total += steps[block]
        # Whatever the total, noise that was cut off at 2^62 is cut off here too.
        np.minimum(total, LARGEST_INDEX, out=total)
        np.maximum(total, -LARGEST_INDEX, out=total)
        np.multiply(total, grid.step, out=released[block])
    return released.reshape(coordinates.shape)
