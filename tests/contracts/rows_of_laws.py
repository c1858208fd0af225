"""Laws of noise: how each is drawn, and the law that its numbers have.

A row draws noise once, and every sample is held against its exact law. Numbers of draws are
such that the right law passes but for one seed in a million (Z), and a scale that is 5 % too
large or too small fails but for one in a million: the relative standard error s of the scale's
estimate has to satisfy .0476 / s >= 4.9 + 4.9. That takes 43,000 moduli of Laplace numbers
(s = 1 / sqrt(n)), 25,000 of normals (.756 / sqrt(n)), and 43,000 / d radii in d dimensions.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement, permutations
from typing import Any

import numpy as np
from contracts.sensitivities import Floats
from scipy import stats
from scipy.special import gammainc, kolmogi

from sktensor_dp.privacy import mechanisms
from sktensor_dp.privacy.noise_source import NoiseSource

Z = 4.9  # two-sided 1e-6 point of the normal
N = 48_000
SENSITIVITY, STRENGTH = 0.3, 1.7
SCALE = SENSITIVITY / STRENGTH
Draws = dict[str, tuple[Floats, Any]]


@dataclass(frozen=True)
class Row:
    """Noise of one law: samples by name, each with the law that they have."""

    name: str
    draw: Callable[[int], Draws]  # from a seed; noise itself is seeded by the caller
    step: Callable[[], float] | None = None  # of the grid that "noise" lies on


def fits(samples: Floats, law: Any) -> bool:
    """Mean, scale and Kolmogorov-Smirnov distance, each at 1e-6."""
    samples, root = np.ravel(samples), math.sqrt(samples.size)
    centre, spread = law.mean(), law.std()
    if abs(samples.mean() - centre) > Z * spread / root:
        return False
    if hasattr(law, "expect") and abs(law.median()) < 1e-12:
        modulus = 2 * law.expect(lambda x: x, lb=0)
        error = math.sqrt(law.var() - modulus**2)
        if abs(np.abs(samples).mean() - modulus) > Z * error / root:
            return False
    some = samples[:: samples.size // 100_000 + 1]
    distance = stats.kstest(some, law.cdf, method="asymp").statistic
    return bool(distance * math.sqrt(some.size) < kolmogi(1e-6))


def lies_on(values: Floats, step: float) -> bool:
    steps = np.rint(values / step)
    return bool(np.array_equal(steps * step, values))


# Numbers one by one


def vector_row(law: str, strength: float, n: int = N) -> Row:
    of = (stats.norm if law == "gaussian" else stats.laplace)(scale=1 / strength)
    root = n if law == "laplace" else math.sqrt(n)
    return Row(
        f"{law}, strength {strength:g}",
        lambda _: {"noise": (getattr(NoiseSource(), law)(np.zeros(n), strength), of)},
        step=lambda: NoiseSource().grid(1 / strength, root).step,
    )


def mechanism_row(law: str) -> Row:
    add = getattr(mechanisms, f"{law}_vector")
    value = np.random.default_rng(2).standard_normal((240, 200))
    of = (stats.norm if law == "gaussian" else stats.laplace)(scale=SCALE)
    return Row(f"{law} vector", lambda _: {
        "noise": (add(value, SENSITIVITY, STRENGTH, NoiseSource()) - value, of)
    })  # fmt: skip


# Spherical Laplace noise


@dataclass(frozen=True)
class Tabulated:
    """A law on positive numbers by its distribution function on a grid and its moments."""

    grid: Floats
    values: Floats
    first: float
    second: float

    def mean(self) -> float:
        return self.first

    def std(self) -> float:
        return math.sqrt(self.second - self.first**2)

    def cdf(self, x: Floats) -> Floats:
        return np.interp(x, self.grid, self.values)


def radius(size: int, ambient: int | None, scale: float) -> Any:
    """Norm of a projection: the whole norm is Gamma, the projected share of it Beta."""
    if ambient is None:
        return stats.gamma(size, scale=scale)
    grid = np.linspace(0, stats.gamma(ambient).isf(1e-9), 2000)
    share = stats.beta(size / 2, (ambient - size) / 2)
    # Equal-mass midpoints of the Beta law: error of the average below 1e-4.
    roots = np.sqrt(share.ppf((np.arange(1000) + 0.5) / 1000))
    values = np.array([gammainc(ambient, x / roots).mean() for x in grid])
    second = size / ambient * ambient * (ambient + 1)
    return Tabulated(scale * grid, values, scale * ambient * roots.mean(), scale**2 * second)


def spherical_row(size: int, ambient: int | None, epsilon: float, n: int) -> Row:
    def draw(_: int) -> Draws:
        drawn, zeros = NoiseSource(), np.zeros(size)
        noise = np.array([drawn.spherical_laplace(zeros, epsilon, ambient) for _ in range(n)])
        return of_directions(noise, radius(size, ambient, 1 / epsilon))

    of = "" if ambient is None else f" of {ambient}"
    return Row(f"spherical laplace, {size}{of} dimensions", draw)


def of_directions(noise: Floats, law: Any) -> Draws:
    """Radii of rows of noise, and cosines of their uniform directions."""
    radii, size = np.linalg.norm(noise, axis=1), noise.shape[1]
    found = {"radius": (radii, law)}
    if size == 1:  # either sign is as likely
        assert abs(np.sign(noise).mean()) < Z / math.sqrt(len(noise))
        return found
    cosine = stats.beta((size - 1) / 2, (size - 1) / 2, loc=-1, scale=2)
    return found | {f"cosine {n}": (column / radii, cosine) for n, column in enumerate(noise.T[:3])}


def rows_of_noise(_: int) -> Draws:
    zeros = np.zeros((N, 3))
    noise = mechanisms.spherical_laplace_rows(zeros, SENSITIVITY, STRENGTH, NoiseSource())
    return of_directions(noise, stats.gamma(3, scale=SCALE))


def tensor_row(ambient: int | None) -> Row:
    """56 coordinates of a symmetric tensor of 6: its norm is that of the coordinates."""

    def draw(_: int) -> Draws:
        value = symmetric(3, 6)
        noise = [
            mechanisms.spherical_laplace_symmetric(
                value, SENSITIVITY, STRENGTH, NoiseSource(), ambient) - value
            for _ in range(2000)
        ]  # fmt: skip
        radii = np.sqrt((np.array(noise) ** 2).sum(axis=(1, 2, 3)))
        return {"radius": (radii, radius(56, ambient, SCALE))}

    return Row(f"spherical laplace on tensors, {ambient or 56} dimensions", draw)


# Symmetric arrays, by the number of distinct indices of an entry


def symmetric(order: int, k: int) -> Floats:
    value = np.random.default_rng(3).standard_normal((k,) * order)
    return sum(value.transpose(axes) for axes in permutations(range(order)))


def class_row(name: str, add: Any, law: Any, deviations: dict[int, float]) -> Row:
    """The rarest class is that of equal indices, one to a row of the array."""
    order = len(deviations)
    k = {2: 40, 3: 20}[order]
    value = symmetric(order, k)
    places = np.array(list(combinations_with_replacement(range(k), order)))
    unique = np.ravel_multi_index(tuple(places.T), value.shape)
    distinct = np.array([len(set(place)) for place in places.tolist()])

    def draw(_: int) -> Draws:
        found, drawn = [], NoiseSource()
        for _ in range(N // k):
            released = add(value.copy(), SENSITIVITY, STRENGTH, drawn)
            assert np.array_equal(released, released.T)
            assert order == 2 or np.array_equal(released, released.transpose(1, 0, 2))
            found.append(released.ravel()[unique] - value.ravel()[unique])
        noise = np.array(found)
        return {
            str(count): (noise[:, distinct == count], law(scale=deviation * SCALE))
            for count, deviation in deviations.items()
        }

    return Row(name, draw)


ISOTROPIC = {1: 1.0, 2: math.sqrt(1 / 3), 3: math.sqrt(1 / 6)}


def pair_row(of: str, law: Any, weight: float) -> Row:
    """Masses are ``2 M_ij`` and ``weight M_ii``, with equal noise on each."""
    add = getattr(mechanisms, f"{of}_pair_masses")
    deviations = {1: 1 / weight, 2: 1 / 2}
    return class_row(
        f"{of} pair masses, weight {weight:.3g}", lambda *x: add(*x, weight), law, deviations
    )


ROWS = [
    *(vector_row(law, strength) for law in ("gaussian", "laplace")
      for strength in (0.02, 0.7, 30.0)),
    mechanism_row("gaussian"),
    mechanism_row("laplace"),
    spherical_row(16, None, 0.3, 3000),
    spherical_row(81, None, 20.0, 1000),
    spherical_row(30, 60, 0.7, 2800),
    spherical_row(30, 286, 0.7, 2100),
    spherical_row(1, 3, STRENGTH, 36_000),  # a line of space
    Row("spherical laplace, by rows", rows_of_noise),
    tensor_row(None),
    tensor_row(286),
    class_row("isotropic matrix", mechanisms.gaussian_matrix, stats.norm,
              {1: 1.0, 2: math.sqrt(1 / 2)}),
    class_row("isotropic tensor", mechanisms.gaussian_symmetric, stats.norm, ISOTROPIC),
    *(pair_row("gaussian", stats.norm, w) for w in (1.0, math.sqrt(2), 0.25)),
    *(pair_row("laplace", stats.laplace, w) for w in (1.0, 0.25)),
]  # fmt: skip
