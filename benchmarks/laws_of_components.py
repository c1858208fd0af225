"""Mixtures and directions of known laws: error by samples and epsilon, and what forecasts say.

Seed s draws data from ``default_rng([s, n])``; fits have noise seed s and random_state s.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.power_method import DELTA, Floats, farthest, orthonormal_rows
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import NotEnoughDataWarning, PrivateTensorPowerMethod

__all__ = ["run"]

EPSILONS = (0.5, 1.0, 4.0, math.inf)
# k, d and separation.
MIXTURES = ((3, 3, 4.0), (3, 20, 6.0), (5, 10, 3.0), (5, 20, 5.0), (8, 10, 4.0), (8, 20, 6.0))
DIRECTIONS = ((3, 10), (5, 20), (8, 50))
Sampler = Callable[[int, np.random.Generator], tuple[Floats, Floats]]


@dataclass(frozen=True)
class Law:
    """Components, samples of them, and what a fit is told in public."""

    name: str
    n_components: int
    n_features: int
    moment: str
    data_norm: float
    near: float  # distance from its own component that a found one is within
    told: dict[str, float]
    draw: Sampler


def gaussians(k: int, d: int, separation: float) -> Law:
    """Equally likely Gaussians of variance 1, all means as far from each other."""

    def draw(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        means = separation / math.sqrt(2) * orthonormal_rows(k, d, rng)
        means -= means.mean(axis=0)
        return means[rng.integers(k, size=n)] + rng.standard_normal((n, d)), means

    norm = math.sqrt(d + separation**2 / 2 * (1 - 1 / k)) + 2
    name = f"mixture, k={k}, d={d}, {separation:g} apart"
    return Law(
        name, k, d, "gaussian_mixture", norm, separation / 2, {"separation": separation}, draw
    )


def directions(k: int, d: int) -> Law:
    """Orthonormal directions, of half the norm that samples are clipped to, in noise."""

    def draw(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        V = orthonormal_rows(k, d, rng)
        X = 0.5 * V[rng.integers(k, size=n)]
        return X + 0.5 / math.sqrt(d) * rng.standard_normal((n, d)), V

    return Law(f"directions, k={k}, d={d}", k, d, "raw", 1.0, 0.5, {}, draw)


def run(report: Report) -> None:
    sizes = (1000, 10_000, 100_000)
    seeds = range(1 if report.quick else 5)
    for kind, laws in (
        ("mixtures", [gaussians(*law) for law in MIXTURES]),
        ("directions", [directions(*law) for law in DIRECTIONS]),
    ):
        rows: list[list[str | float]] = []
        agreed: list[bool] = []
        by_epsilon, by_number = 0.0, 0.0
        for law in laws[: 2 if report.quick else None]:
            errors = np.empty((len(sizes), len(EPSILONS)))
            for i, n in enumerate(sizes):
                words = []
                for j, epsilon in enumerate(EPSILONS):
                    fits = [_fit(law, n, epsilon, seed) for seed in seeds]
                    errors[i, j] = np.median([error for error, _, _ in fits])
                    agreed += [found == enough for _, found, enough in fits]
                    words.append("enough" if fits[0][2] else "too few")
                rows.append([law.name, n, *errors[i].tolist(), ", ".join(words)])
            # Where samples decide, more of epsilon changes little.
            excess = errors[:, 1:] - 1.05 * errors[:, :-1]
            by_epsilon = max(by_epsilon, float(excess.max()))
            by_number = max(by_number, float((errors[1:] / errors[:-1]).max()))
        columns = ["law", "n", *(f"{epsilon:g}" for epsilon in EPSILONS), "forecasts"]
        report.table(f"{kind}: farthest component by epsilon, median over seeds", columns, rows)
        name = f"{kind}: error above 1.05 times that of a smaller epsilon, most"
        report.bar(name, by_epsilon, 0.02)
        report.bar(f"{kind}: error over that of a tenth of the samples, most", by_number, 1.05)
        share = float(np.mean(agreed))
        report.bar(f"{kind}: forecasts that agree with fits", share, 0.9, at_least=True)


def _fit(law: Law, n: int, epsilon: float, seed: int) -> tuple[float, bool, bool]:
    """Farthest component, whether all were found, and whether that was forecast."""
    X, components = law.draw(n, np.random.default_rng([seed, n]))
    model = PrivateTensorPowerMethod(
        law.n_components, moment=law.moment, data_norm=law.data_norm, epsilon=epsilon, delta=DELTA,
        random_state=seed,
    )  # fmt: skip
    enough = model.forecast(n, law.n_features, **law.told).enough
    with reproducible_noise(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        found = model.fit(X).components_
    # One that is missing is as far away as another one's.
    error = min(farthest(found, components), 2 * law.near)
    return error, error < law.near, enough
