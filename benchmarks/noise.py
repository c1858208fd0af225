"""Samples per second of secure noise, on one core, and what it adds to a fit.

Times are of the process, so that what else runs on the machine counts little. The floor
is the key stream: one word of 64 bits to a sample. Floating-point noise is the ziggurat on
the same key stream, which is fast and not exact.
"""

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from randomgen import ChaCha

from benchmarks.corpora import lda, zipf_base
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import (
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)
from sktensor_dp.privacy import session
from sktensor_dp.privacy.noise_sampler import GAUSSIAN_DENSITY, LAPLACE_DENSITY, rounded_samples
from sktensor_dp.privacy.noise_source import NoiseSource

__all__ = ["run"]

Floats = NDArray[np.float64]

BAR = 5e6
# At most this much of a fit's time with floating-point noise is added to it.
SHARE_BAR = 0.5
STREAM = "key stream, one word each"


def run(report: Report) -> None:
    size = 2**18 if report.quick else 2**22
    repeats = 3 if report.quick else 9
    rates = {name: rate(draw, n, repeats) for name, (draw, n) in samplers(size).items()}
    floor = rates[STREAM]
    report.table(
        f"million samples a second, best of {repeats}, up to {size} at a time",
        ["sampler", "million / s", "of the key stream"],
        [[name, found / 1e6, found / floor] for name, found in rates.items()],
    )
    for law in ("gaussian", "laplace"):
        report.bar(f"{law}, exact: samples a second", rates[f"{law}, exact"], BAR, at_least=True)
    compare_fits(report)


def samplers(size: int) -> dict[str, tuple[Callable[[int], object], int]]:
    """What draws, and how many at a time."""
    bits = ChaCha(key=1, rounds=20)
    plain = np.random.Generator(bits)
    source, zeros = NoiseSource(), np.zeros(size)
    found: dict[str, tuple[Callable[[int], object], int]] = {
        STREAM: (bits.random_raw, size),
        "gaussian, exact": (
            lambda n: rounded_samples(GAUSSIAN_DENSITY, n, 24, bits.random_raw),
            size,
        ),
        "laplace, exact": (
            lambda n: rounded_samples(LAPLACE_DENSITY, n, 24, bits.random_raw),
            size,
        ),
        "gaussian, exact, finest grid": (
            lambda n: rounded_samples(GAUSSIAN_DENSITY, n, 51, bits.random_raw),
            size,
        ),
        "gaussian release": (lambda n: source.gaussian(zeros[:n], 1.0), size),
        "laplace release": (lambda n: source.laplace(zeros[:n], 1.0), size),
        "gaussian, floating point": (plain.standard_normal, size),
        "laplace, floating point": (
            lambda n: plain.standard_exponential(n) - plain.standard_exponential(n),
            size,
        ),
        "discrete gaussian, NumPy": (lambda n: discrete_gaussian(n, 2.0**24, plain), size // 4),
    }
    if importlib.util.find_spec("opendp") is not None:
        from benchmarks.opendp_samples import opendp_samples

        for law in ("gaussian", "laplace"):
            found[f"{law}, OpenDP"] = (lambda n, law=law: opendp_samples(law, n, 24), 10_000)
    return found


def discrete_gaussian(size: int, sigma: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rejection from discrete Laplace noise in double precision (Canonne et al. 2020)."""
    found: list[NDArray[np.int64]] = []
    missing, scale = size, np.floor(sigma) + 1
    while missing > 0:
        count = int(1.4 * missing) + 10
        proposed = rng.geometric(-np.expm1(-1 / scale), count) - rng.geometric(
            -np.expm1(-1 / scale), count
        )
        log = -((np.abs(proposed) - sigma**2 / scale) ** 2) / (2 * sigma**2)
        found.append(proposed[rng.random(count) < np.exp(log)][:missing])
        missing -= found[-1].size
    return np.concatenate(found)


def rate(draw: Callable[[int], object], size: int, repeats: int) -> float:
    draw(1000)  # tables are made at the first call
    return size / min(seconds(lambda: draw(size)) for _ in range(repeats))


def seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def compare_fits(report: Report) -> None:
    """Fits with noise on a grid, with floating-point noise and with none, taking turns."""
    rows: list[list[str | float]] = []
    repeats = 1 if report.quick else 5
    for name, fit in fits(report.quick).items():
        with reproducible_noise(0):  # first calls load libraries and make tables
            fit("float", 1.0)
            fit("grid", 1.0)
        spent: dict[str, list[float]] = {"none": [], "float": [], "grid": []}
        for repeat in range(repeats):
            for sampler, times in spent.items():
                epsilon = np.inf if sampler == "none" else 1.0
                chosen = "grid" if sampler == "none" else sampler
                with reproducible_noise(repeat):
                    times.append(seconds(lambda fit=fit, c=chosen, e=epsilon: fit(c, e)))
        none, plain, grid = (float(np.median(times)) for times in spent.values())
        rows.append([name, none, plain, grid, grid / plain - 1])
        report.bar(f"{name}: share of its time that secure noise adds", grid / plain - 1, SHARE_BAR)
    columns = ["fit", "no noise, s", "floating point, s", "grid, s", "added"]
    report.table(f"time of a fit, median of {repeats}", columns, rows)


class FloatNoise(NoiseSource):
    """Floating-point noise as in textbooks, whose low-order digits give the statistic away."""

    def gaussian(self, coordinates: Floats, mu: float, size: int | None = None) -> Floats:
        if np.isinf(mu):
            return coordinates
        return coordinates + self._generator.standard_normal(coordinates.size) / mu


def fit_with(sampler: str, model: Any, X: Any) -> object:
    """Fit with the noise of the package, or with floating-point noise in its place."""
    usual = session.NoiseSource
    try:
        session.NoiseSource = FloatNoise if sampler == "float" else usual
        return model.fit(X)
    finally:
        session.NoiseSource = usual


def fits(quick: bool) -> dict[str, Callable[[str, float], object]]:
    rng = np.random.default_rng(0)
    n_documents, n_words = (2000, 500) if quick else (20_000, 5000)
    law = zipf_base(n_words, n_words / 10)
    corpus = lda(rng.poisson(100, n_documents), law, 10, 1.0, rng)
    X = rng.standard_normal((2000 if quick else 50_000, 50))

    def topics(perturbation: str) -> Callable[[str, float], object]:
        def fit(sampler: str, epsilon: float) -> object:
            model = PrivateSpectralLDA(
                10, epsilon=epsilon, perturbation=perturbation, random_state=0
            )
            return fit_with(sampler, model, corpus.X)

        return fit

    def components(sampler: str, epsilon: float) -> object:
        model = PrivateTensorPowerMethod(
            3, epsilon=epsilon, data_norm=10.0, perturbation="moment_tensor", random_state=0
        )
        return fit_with(sampler, model, X)

    return {
        f"topics of {n_words} words, whitened": topics("whitened_tensor"),
        f"topics of {n_words} words, in word space": topics("moment_tensor"),
        "components of 50 features": components,
    }
