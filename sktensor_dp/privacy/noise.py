"""The only source of randomness for noise.

Noise comes from ChaCha20, a cryptographically secure generator, keyed with 256
bits of the operating system's entropy; nothing that seeds an algorithm reaches
it. Every release arrives here as a vector of coordinates in an orthonormal basis,
divided by its sensitivity, and leaves with noise added:

``grid`` (default)
    The coordinates are rounded to a grid whose step is a power of two, and
    continuous noise is rounded to the same grid and added. As the rounded
    statistic lies on the grid, the sum equals the continuous mechanism's output
    rounded afterwards, so the guarantee is that of the continuous law, and no
    digit finer than the step leaves. Rounding may move neighbours apart by the
    grid's covering radius, which is added to the sensitivity.
``float``
    Plain floating-point addition, as in textbook implementations: its low-order
    digits can give the statistic away. Only by explicit request.
"""

import contextlib
import contextvars
import itertools
import math
import numbers
import secrets
import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from randomgen import ChaCha

from sktensor_dp.exceptions import PrivacyLeakWarning

__all__ = ["NoiseSource", "config_context", "unsafe_seeded_noise"]

Floats = NDArray[np.float64]

SAMPLERS = ("grid", "float")
# The covering radius may add this much to a unit sensitivity: 0.024 %.
RADIUS = 2.0**-12
# Grid indices stay exact integers in double precision.
LARGEST_INDEX = 2.0**52

_sampler = contextvars.ContextVar("sampler", default="grid")
_seeds: contextvars.ContextVar["Iterator[np.random.SeedSequence] | None"] = contextvars.ContextVar(
    "seeds", default=None
)


@contextlib.contextmanager
def config_context(*, noise: str) -> Iterator[None]:
    """Choose the sampler for the fits inside a ``with`` block.

    Parameters
    ----------
    noise : {"grid", "float"}
        ``"grid"`` is the default everywhere; ``"float"`` draws textbook
        floating-point noise, is named in the report and gives no protection
        against attacks on low-order digits.

    Raises
    ------
    ValueError
        If ``noise`` names no sampler.

    Examples
    --------
    >>> import sktensor_dp
    >>> with sktensor_dp.config_context(noise="float"):
    ...     pass
    """
    if noise not in SAMPLERS:
        raise ValueError(f"noise must be one of {list(SAMPLERS)}, got {noise!r}.")
    token = _sampler.set(noise)
    try:
        yield
    finally:
        _sampler.reset(token)


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
    token = _seeds.set(np.random.SeedSequence((seed, fit)) for fit in itertools.count())
    try:
        yield
    finally:
        _seeds.reset(token)


class NoiseSource:
    """Noise for the releases of one fit.

    Attributes
    ----------
    seeded : bool
        True inside :func:`unsafe_seeded_noise`: nothing is protected.
    sampler : str
        ``"grid"`` or ``"float"``.
    """

    def __init__(self) -> None:
        seeds = _seeds.get()
        self.seeded = seeds is not None
        self.sampler = _sampler.get()
        if seeds is None:
            key = secrets.randbits(256)
        else:
            key = int.from_bytes(next(seeds).generate_state(8, np.uint32).tobytes(), "little")
        self._generator = np.random.Generator(ChaCha(key=key, rounds=20))

    def gaussian(self, coordinates: Floats, mu: float) -> Floats:
        """Add Gaussian noise to coordinates of unit L2 sensitivity at a cost of ``mu``."""
        if math.isinf(mu):
            return coordinates
        step, radius = self._grid(1 / mu, math.sqrt(coordinates.size))
        noise = self.standard_normal(coordinates.size)
        noise *= (1 + radius) / mu
        return self.add(coordinates, noise, step)

    def laplace(self, coordinates: Floats, epsilon: float) -> Floats:
        """Add Laplace noise to coordinates of unit L1 sensitivity at a cost of ``epsilon``."""
        if math.isinf(epsilon):
            return coordinates
        step, radius = self._grid(1 / epsilon, coordinates.size)
        noise = self._generator.standard_exponential(coordinates.size)
        noise -= self._generator.standard_exponential(coordinates.size)
        noise *= (1 + radius) / epsilon
        return self.add(coordinates, noise, step)

    def spherical_laplace(
        self, coordinates: Floats, epsilon: float, ambient_dimension: int | None = None
    ) -> Floats:
        """Add noise of density ``exp(-epsilon |b|_2)``, seen in a subspace of its space.

        The norm of the noise in ``ambient_dimension`` dimensions follows a Gamma
        law and its direction is uniform; only the coordinates given are formed
        (``None``: they are all there are).
        """
        if math.isinf(epsilon):
            return coordinates
        size = coordinates.size
        hidden = 0 if ambient_dimension is None else ambient_dimension - size
        step, radius = self._grid(1 / epsilon, math.sqrt(size))
        direction = self.standard_normal(size)
        square = float(direction @ direction)
        if hidden:
            square += float(self._generator.chisquare(hidden))
        norm = float(self._generator.standard_gamma(size + hidden)) * (1 + radius) / epsilon
        direction *= norm / math.sqrt(square)
        return self.add(coordinates, direction, step)

    def spherical_laplace_rows(self, coordinates: Floats, epsilon: float) -> Floats:
        """Add noise of density ``exp(-epsilon |b|_2)`` to each row, rows being independent.

        For coordinates of which neighbours differ in one row, by 1 at most.
        """
        if math.isinf(epsilon):
            return coordinates
        n_rows, size = coordinates.shape
        # The covering diameter is that of all rows, in the sum of their L2 norms.
        step, radius = self._grid(1 / epsilon, n_rows * math.sqrt(size))
        direction = self.standard_normal(n_rows * size).reshape(n_rows, size)
        norms = self._generator.standard_gamma(size, n_rows) * (1 + radius) / epsilon
        norms /= np.sqrt(np.square(direction).sum(axis=1))
        direction *= norms[:, None]
        return self.add(coordinates, direction, step)

    def integers(self, below: int, size: int) -> NDArray[np.uint64]:
        """Draw integers evenly from ``0 .. below - 1``, below at most ``2^64``."""
        return self._generator.integers(0, below - 1, size, dtype=np.uint64, endpoint=True)

    def standard_normal(self, size: int) -> Floats:
        """Draw normals for mechanisms that shape their noise before :meth:`add`."""
        return self._generator.standard_normal(size)

    def grid(self, scale: float, size: int) -> tuple[float, float]:
        """Step and covering diameter for noise of at least ``scale`` in every direction."""
        return self._grid(scale, math.sqrt(size))

    def add(self, coordinates: Floats, noise: Floats, step: float) -> Floats:
        """Add noise on the grid; ``noise`` is overwritten."""
        if self.sampler == "float":
            noise += coordinates
            return noise
        # A projection onto a box never moves neighbours apart. It comes first: an overflow
        # in the division would warn, and warnings are seen.
        index = np.clip(coordinates, -LARGEST_INDEX * step, LARGEST_INDEX * step)
        index /= step
        np.rint(index, out=index)
        noise /= step
        np.rint(noise, out=noise)
        noise += index
        noise *= step
        return noise

    def _grid(self, scale: float, diameter_per_step: float) -> tuple[float, float]:
        if self.sampler == "float":
            return 0.0, 0.0
        step = RADIUS * min(scale, 1.0) / diameter_per_step
        step = 2.0 ** math.floor(math.log2(step))
        return step, step * diameter_per_step
