"""Directions of known laws: error by samples and epsilon, and what forecasts say.

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

__all__ = ["Law", "component_error", "directions", "run"]

EPSILONS = (0.5, 1.0, 4.0, math.inf)
SIZES = (1000, 10_000, 100_000)
COLUMNS = ["law", "epsilon", *(f"n = {n:,}" for n in SIZES)]
SEEDS = 9
# k and d.
DIRECTIONS = ((3, 10), (5, 20), (8, 50))
# Raw third moments without second ones: at once, by all data in every step, in a stream.
RAW = ({"whiten": False}, {"perturbation": "iteration"}, {"perturbation": "stream"})
Sampler = Callable[[int, np.random.Generator], tuple[Floats, Floats]]


@dataclass(frozen=True)
class Law:
    """Components, samples of them, and the public numbers of a fit."""

    name: str
    n_components: int
    n_features: int
    data_norm: float
    near: float  # distance from its own component that a found one is within
    draw: Sampler
    parameters: dict[str, object]


def directions(k: int, d: int) -> Law:
    """Orthonormal directions, of half the norm that samples are clipped to, in noise."""

    def draw(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        V = orthonormal_rows(k, d, rng)
        X = 0.5 * V[rng.integers(k, size=n)]
        return X + 0.5 / math.sqrt(d) * rng.standard_normal((n, d)), V

    return Law(f"directions, k = {k}, d = {d}", k, d, 1.0, 0.5, draw, {})


def skewed(k: int, d: int, **parameters: object) -> Law:
    """Orthonormal directions with skewed weights of mean zero and third moment 1/8, in noise.

    Noise about a mean other than zero would add to third moments what is no component.
    """

    def draw(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        V = orthonormal_rows(k, d, rng)
        weights = np.where(rng.random(n) < 1 / 3, 1.0, -0.5) * 2 ** (-1 / 3)
        X = weights[:, None] * V[rng.integers(k, size=n)]
        return X + 0.5 / math.sqrt(d) * rng.standard_normal((n, d)), V

    how = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    return Law(f"skewed directions, k = {k}, d = {d}, {how}", k, d, 1.0, 0.5, draw, parameters)


KINDS = {
    "directions": [directions(*law) for law in DIRECTIONS],
    "skewed directions, by raw third moments": [
        skewed(*law, **parameters) for law in DIRECTIONS[:2] for parameters in RAW
    ],
}


def run(report: Report) -> None:
    seeds = range(1 if report.quick else SEEDS)
    for kind, laws in KINDS.items():
        rows: list[list[str | float]] = []
        agreed: list[bool] = []
        by_epsilon, by_number = -math.inf, 0.0
        for law in laws[: 2 if report.quick else None]:
            errors = np.empty((len(SIZES), len(EPSILONS), len(seeds)))
            for i, n in enumerate(SIZES):
                for j, epsilon in enumerate(EPSILONS):
                    fits = [component_error(law, n, epsilon, seed) for seed in seeds]
                    errors[i, j] = [error for error, _, _ in fits]
                    agreed += [found == enough for _, found, enough in fits if enough is not None]
            by_epsilon = max(by_epsilon, _excess(errors))
            medians = np.median(errors, axis=2)
            by_number = max(by_number, float((medians[1:] / medians[:-1]).max()))
            rows += [
                [law.name, f"{epsilon:g}", *(f"{error:.3f}" for error in column)]
                for epsilon, column in zip(EPSILONS, medians.T, strict=True)
            ]
        report.table(
            f"{kind}: farthest component", COLUMNS, rows,
            file="laws_of_components", how=f"medians of {SEEDS} seeds",
        )  # fmt: skip
        name = f"{kind}: error above 1.05 times that of a smaller epsilon, beyond 2 s.e., most"
        report.bar(name, by_epsilon, 0.002)
        report.bar(f"{kind}: error over that of a tenth of the samples, most", by_number, 1.05)
        if agreed:
            agreement = float(np.mean(agreed))
            report.bar(f"{kind}: forecasts that agree with fits", agreement, 0.9, at_least=True)


def _excess(errors: Floats) -> float:
    """Largest error above 1.05 times that at the epsilon before, less two standard errors.

    Of differences between fits to the same samples: where samples decide, epsilon changes little.
    """
    excess = errors[:, 1:] - 1.05 * errors[:, :-1]
    if excess.shape[2] == 1:
        return float(excess.max())
    deviation = excess.std(axis=2, ddof=1) / math.sqrt(excess.shape[2])
    return float((excess.mean(axis=2) - 2 * deviation).max())


def component_error(law: Law, n: int, epsilon: float, seed: int) -> tuple[float, bool, bool | None]:
    """Farthest component, whether all were found, and whether that was forecast, if anything."""
    X, components = law.draw(n, np.random.default_rng([seed, n]))
    model = PrivateTensorPowerMethod(
        law.n_components, data_norm=law.data_norm, epsilon=epsilon, delta=DELTA, random_state=seed,
        **law.parameters,  # type: ignore[arg-type]
    )  # fmt: skip
    enough = model.forecast(n, law.n_features).enough if hasattr(model, "forecast") else None
    with reproducible_noise(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        found = model.fit(X).components_
    # One that is missing is as far away as another one's.
    error = min(farthest(found, components), 2 * law.near)
    return error, error < law.near, enough
