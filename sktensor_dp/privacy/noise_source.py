"""The only source of randomness for noise: ChaCha20, keyed by the operating system.

A mechanism hands over coordinates in which sensitivity and noise have the same norm, divided by
the sensitivity. They are rounded to a grid, and exact samples of noise, rounded to the same grid,
are added as integers (docs/proofs/gaussian_noise_on_a_grid.md). The selection of private keys adds
noise to totals on a grid of its own; the piecewise mechanism draws integers.
"""

import math
import os
import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from randomgen import ChaCha

from sktensor_dp.privacy.noise_sampler import (
    BLOCK,
    GAUSSIAN_DENSITY,
    LAPLACE_DENSITY,
    MAX_BITS,
    Density,
    Integers,
    rounded_samples,
)
from sktensor_dp.privacy.unsafe import Recorder, next_seed
from sktensor_dp.tensor.arrays import Floats

# Fraction by which noise is enlarged to pay for rounding to the grid (0.024 %), while bits suffice.
ROUNDING_COST = 2.0**-12
# Grid indices are clipped to this before and after noise of at most 2^62 is added, so nothing
# overflows.
LARGEST_INDEX = 2**60
# Rounds a step up by more than its rounding errors, so that noise is never too small.
ROUNDED_UP = 1 + 2.0**-50
FORKED = (
    "This process was forked while a fit was running, and cannot go on with it: both would draw "
    "the same noise, and one charge would pay for two answers. Fork before a fit or after it, not "
    "from a source of chunks."
)


@dataclass(frozen=True)
class Grid:
    """Grid to which values and noise are rounded: ``2^-bits`` times the noise's scale."""

    scale: float  # of the noise, with the cost of rounding
    bits: int  # the step is ``2^-bits`` times the scale

    @property
    def step(self) -> float:
        """Distance of neighbouring points of the grid."""
        return math.ldexp(self.scale, -self.bits)


class OneProcess:
    """Process in which a fit began; forked copies are refused, as their noise would repeat."""

    def __init__(self) -> None:
        self._number = os.getpid()

    def check(self) -> None:
        """Raise RuntimeError in any other process."""
        if os.getpid() != self._number:
            raise RuntimeError(FORKED)


class NoiseSource:
    """Source of secret random numbers for the releases of one fit, in one process."""

    def __init__(self) -> None:
        self.recorder = Recorder()  # of exact values, within `unsafe_recorded_releases` alone
        seed = next_seed()
        # True if the values are not protected, as the seed or the exact values are known.
        self.exposed = seed is not None or bool(self.recorder)
        if seed is not None:
            state = np.random.SeedSequence(seed).generate_state(8, np.uint32)
            key = int.from_bytes(state.tobytes(), "little")
        else:
            key = secrets.randbits(256)
        self._keyed = np.random.Generator(ChaCha(key=key, rounds=20))
        self.process = OneProcess()

    @property
    def _generator(self) -> np.random.Generator:
        """Generator of the source, after a check that the process was not forked."""
        self.process.check()
        return self._keyed

    def gaussian(self, coordinates: Floats, mu: float, size: int | None = None) -> Floats:
        """Add Gaussian noise to a vector of L2 sensitivity 1.

        If `coordinates` are a part of the vector, `size` is the length of the whole.
        """
        if math.isinf(mu):
            return coordinates
        size = coordinates.size if size is None else size
        return self.add_noise(coordinates, self.grid(1 / mu, diameter_per_step=math.sqrt(size)))

    def laplace(self, coordinates: Floats, epsilon: float, size: int | None = None) -> Floats:
        """Add Laplace noise to a vector of L1 sensitivity 1; `size` as for `gaussian`."""
        if math.isinf(epsilon):
            return coordinates
        size = coordinates.size if size is None else size
        grid = self.grid(1 / epsilon, diameter_per_step=size)
        return self.add_noise(coordinates, grid, LAPLACE_DENSITY)

    def spherical_laplace(
        self, coordinates: Floats, epsilon: float, ambient_dimension: int | None = None
    ) -> Floats:
        """Add noise of density ``exp(-epsilon |b|_2)``, or its projection from a larger space."""
        # Without an ambient dimension, the coordinates are the whole space.
        size = coordinates.size
        hidden = 0 if ambient_dimension is None else ambient_dimension - size
        return self.spherical_laplace_rows(coordinates[None], epsilon, hidden)[0]

    def spherical_laplace_rows(self, rows: Floats, epsilon: float, hidden: int = 0) -> Floats:
        """Add independent noise b of density ``exp(-epsilon |b|_2)`` to each row of a matrix."""
        # Neighbours differ in one of the rows, by 1 at most. Each row is a projection from a space
        # with `hidden` more dimensions; there the norm of the noise has a Gamma law and its
        # direction is uniform.
        if math.isinf(epsilon):
            return rows
        n_rows, size = rows.shape
        # Rounding moves each row by up to sqrt(size) steps, in the sum of the rows' L2 norms.
        grid = self.grid(1 / epsilon, diameter_per_step=n_rows * math.sqrt(size))
        direction = self.standard_normal(n_rows * size).reshape(n_rows, size)
        squares = np.square(direction).sum(axis=1)
        if hidden:
            squares += self._generator.chisquare(hidden, n_rows)
        norms = self._generator.standard_gamma(size + hidden, n_rows) * grid.scale
        direction *= (norms / np.sqrt(squares))[:, None]
        return _on_grid(rows, _rounded(direction, grid.step), grid)

    def integers(self, below: int, size: int) -> NDArray[np.uint64]:
        """Draw `size` integers uniformly from ``0 .. below - 1``; `below` is at most ``2^64``."""
        return self._generator.integers(0, below - 1, size, dtype=np.uint64, endpoint=True)

    def standard_normal(self, size: int) -> Floats:
        """Draw standard normals to within 2^-52, as an ingredient of other laws."""
        steps = rounded_samples(GAUSSIAN_DENSITY, size, MAX_BITS, self._words)
        return np.ldexp(steps.astype(np.float64), -MAX_BITS)

    def grid(
        self, scale: float, diameter_per_step: float, *, rounding_cost: float = ROUNDING_COST
    ) -> Grid:
        """Grid for noise of `scale`; rounding costs about the fraction `rounding_cost` of it.

        Rounding moves two vectors apart by at most `diameter_per_step` steps of the grid, in the
        norm of the sensitivity, which is 1 before rounding.
        """
        # Rounding raises the sensitivity to 1 + steps * step, and so the noise's scale to
        # s = scale * (1 + steps * step). As step = s 2^-bits, s = scale / (1 - excess) with
        # excess = scale * steps * 2^-bits, at most rounding_cost / (1 + rounding_cost) by `bits`.
        steps = max(diameter_per_step, 1.0)
        points_per_scale = steps * max(scale, 1.0) * (1 + rounding_cost) / rounding_cost
        bits = min(math.ceil(math.log2(points_per_scale)), MAX_BITS)
        excess = math.ldexp(scale * steps, -bits)
        if excess > 0.5:  # only with MAX_BITS
            raise ValueError(
                f"noise of scale {scale:.3g} per unit of sensitivity has no grid fine enough for "
                f"{steps:.3g} steps; a larger epsilon has."
            )
        scale *= ROUNDED_UP / (1 - excess)
        return Grid(scale, bits)

    def add_noise(
        self, coordinates: Floats, grid: Grid, density: Density = GAUSSIAN_DENSITY
    ) -> Floats:
        """Round coordinates to the grid, and add noise of a density at the grid's scale."""
        steps = rounded_samples(density, coordinates.size, grid.bits, self._words)
        return _on_grid(coordinates, steps, grid)

    def _words(self, count: int) -> NDArray[np.uint64]:
        """Draw 64-bit words from the generator."""
        return self._generator.bit_generator.random_raw(count)


def _rounded(values: Floats, step: float) -> Integers:
    """Values in whole grid steps, clipped to the largest index (NaN too)."""
    # Clipping to a box increases no distance. It comes before the division, whose overflow would
    # warn (warnings are outputs). `fmin` sends NaN to the border of the box.
    index = np.fmin(values, LARGEST_INDEX * step)
    np.fmax(index, -LARGEST_INDEX * step, out=index)
    index /= step
    np.rint(index, out=index)
    return index.astype(np.int64)


def _on_grid(coordinates: Floats, steps: Integers, grid: Grid) -> Floats:
    """Round coordinates to the grid, add noise in integer `steps`, and return the sum as floats."""
    # Write the released values into the array of the steps.
    flat, steps = coordinates.reshape(-1), steps.reshape(-1)
    released = steps.view(np.float64)
    for start in range(0, flat.size, BLOCK):
        block = slice(start, start + BLOCK)
        total = _rounded(flat[block], grid.step)
        total += steps[block]
        # Clip again: noise was cut off at 2^62.
        np.minimum(total, LARGEST_INDEX, out=total)
        np.maximum(total, -LARGEST_INDEX, out=total)
        np.multiply(total, grid.step, out=released[block])
    return released.reshape(coordinates.shape)
