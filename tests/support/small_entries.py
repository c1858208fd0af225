"""Data and neighbours that tests of sensitivities on entries share."""

from dataclasses import dataclass
from typing import Any

import numpy as np

Rng = np.random.Generator
Floats = np.ndarray


def bounds(rng: Rng) -> tuple[float, float]:
    low = 10 ** rng.uniform(-2, 2) * rng.standard_normal()
    return low, low + 10 ** rng.uniform(-2, 2)


def raw(rng: Rng, size: int, limits: tuple[float, float]) -> Floats:
    """Values in the range, at its ends and far beyond."""
    values = rng.uniform(*limits, size)
    odd = rng.random(size)
    values[odd < 0.3] = rng.choice(limits, int((odd < 0.3).sum()))
    beyond = rng.choice([-1, 1], size) * 10 ** rng.uniform(0, 308, size)
    return np.where(odd > 0.8, beyond, values)


def shares(moved: Floats, query: Any) -> tuple[float, float]:
    """Distances as shares of the L2 and of the L1 sensitivity (0 where none is claimed)."""
    moved = np.ravel(moved)
    assert np.isfinite(moved).all()
    square = np.linalg.norm(moved / query.l2_sensitivity)
    return float(square), float(np.abs(moved).sum() / query.l1_sensitivity)


class Recorder:
    """Stands in for the source of noise; keeps what it is given."""

    def gaussian(self, x: Floats, _: float) -> Floats:
        self.seen = ("l2", x.copy())
        return x

    spherical_laplace_rows = gaussian

    def laplace(self, x: Floats, _: float) -> Floats:
        self.seen = ("l1", x.copy())
        return x


@dataclass(frozen=True)
class World:
    """What is public at slice level. Units are of mode 0 and have 3 others beside them."""

    shape: tuple[int, ...]
    limits: tuple[float, float]

    @property
    def half(self) -> float:
        return (self.limits[1] - self.limits[0]) / 2


def world(rng: Rng) -> World:
    return World((4, *(int(n) for n in rng.integers(1, 6, rng.integers(1, 4)))), bounds(rng))
