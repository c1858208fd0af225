"""PrivateTensorPowerMethod against its bars: noise, topics, streams.

Seed s draws data from ``default_rng([s, n])``; fits have noise seed s and random_state s.
"""

import math
import time
import tracemalloc
import warnings

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from benchmarks.corpora import single_topic
from benchmarks.metrics import matched_error
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateSpectralLDA, PrivateTensorPowerMethod
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.published import agn
from sktensor_dp.tensor import symmetric_outer_sum

__all__ = ["run"]

DELTA = 1e-6
Floats = NDArray[np.float64]


def run(report: Report) -> None:
    noise_of_iterations(report)
    topics(report)
    online_and_private(report)
    stream_memory(report)
    stream_time(report)


def model(n_components: int, seed: int, **parameters: object) -> PrivateTensorPowerMethod:
    return PrivateTensorPowerMethod(
        n_components,
        **{"delta": DELTA, "random_state": seed, **parameters},  # type: ignore[arg-type]
    )


def orthonormal_rows(k: int, d: int, rng: np.random.Generator) -> Floats:
    return np.linalg.qr(rng.standard_normal((d, k)))[0].T


def noise_of_iterations(report: Report) -> None:
    """Noise per query of Algorithm 3, as calibrated in the paper and here."""
    k, restarts, iterations, epsilon, delta, d = 5, 10, 10, 1.0, 1e-5, 100
    queries = k * restarts * (iterations + 1)
    nu = 6 * math.sqrt(2 * math.log(1.25 * 2 * queries / delta))
    nu /= epsilon / math.sqrt(queries * (4 + math.log(2 / delta)))
    T = symmetric_outer_sum(np.ones(k), orthonormal_rows(k, d, np.random.default_rng(0)))
    with reproducible_noise(0), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        fitted = model(
            k, 0, epsilon=epsilon, delta=delta, n_restarts=restarts, max_iter=iterations
        ).fit_tensor(T)
    rows = fitted.privacy_report_.rows
    # The paper's is nu |u|^2 for each start alone, |u| its largest entry; ours is one for all.
    same_u = [row.sigma / (nu * row.sensitivity / 6) for row in rows]
    report.table(
        f"k = {k}, L = R = 10, (1, 1e-5): sigma over that of the paper",
        ["queries", "ratio, most", "ratio, least"],
        [[len(same_u), max(same_u), min(same_u)]],
    )
    report.bar("iteration: sigma over that of the paper", max(same_u), 1 / 6)


def topics(report: Report) -> None:
    """Three-word documents of one topic, against AGN as published."""
    n, d, k = (10_000 if report.quick else 100_000), 50, 10
    errors: dict[str, list[float]] = {"default": [], "published AGN": []}
    for seed in range(2 if report.quick else 5):
        rng = np.random.default_rng([seed, n])
        corpus = single_topic(n, np.full(d, 0.2), k, 3, rng)
        with reproducible_noise(seed):
            fitted = PrivateSpectralLDA(
                k, doc_topic_prior=0, epsilon=1.0, delta=DELTA, random_state=seed
            ).fit(corpus.X)
            published = agn(corpus.X, k, 1.0, DELTA, seed)
        errors["default"].append(matched_error(fitted.components_, corpus.topics))
        errors["published AGN"].append(matched_error(published.topics, corpus.topics))
    report.table(
        f"single topic, D = {d}, K = {k}, N = {n}, epsilon = 1: total variation",
        ["method", "mean", "min", "max"],
        [[name, float(np.mean(e)), min(e), max(e)] for name, e in errors.items()],
    )
    ratio = float(np.mean(errors["default"]) / np.mean(errors["published AGN"]))
    report.bar("topics: error over that of AGN", ratio, 0.5)


def farthest(found: Floats, true: Floats) -> float:
    distances = np.linalg.norm(found[:, None] - true[None], axis=2)
    rows, columns = linear_sum_assignment(distances)
    return math.inf if len(found) < len(true) else float(distances[rows, columns].max())


def online_and_private(report: Report) -> None:
    """Two million samples read once."""
    n, d, k = (200_000 if report.quick else 2_000_000), 50, 3
    least, rows = [], []
    for seed in range(2 if report.quick else 5):
        rng = np.random.default_rng([seed, n])
        V = orthonormal_rows(k, d, rng)
        with reproducible_noise(seed):
            fitted = model(k, seed, epsilon=1.0, data_norm=1.0)
            batches = k * (10 + 1) + 11
            start = time.perf_counter()
            for _ in range(batches):
                size = n // batches
                X = 0.7 * V[rng.integers(k, size=size)]
                fitted.partial_fit(X + 0.5 / math.sqrt(d) * rng.standard_normal((size, d)))
            seconds = time.perf_counter() - start
        overlap = np.abs(fitted.components_ @ V.T)
        matched = linear_sum_assignment(-overlap)
        least.append(float(overlap[matched].min()))
        rows.append([str(seed), least[-1], seconds])
    report.table(
        f"stream, d = {d}, k = {k}, n = {n}, epsilon = 1: least |cosine|",
        ["seed", "least |cosine|", "seconds, data included"],
        rows,
    )
    report.bar("online and private: least |cosine|, worst seed", min(least), 0.9, at_least=True)


def sparse_batch(n: int, d: int, seed: int) -> sp.csr_array:
    return sp.random(n, d, 50 / d, format="csr", random_state=np.random.default_rng(seed))


def stream_memory(report: Report) -> None:
    """Largest allocation beside the batch, in arrays of d (k + L) numbers."""
    d, k, restarts = 20_000, 5, 20
    unit = d * (k + restarts) * 8
    rows, largest = [], 0.0
    for n in (1000, 10_000, 100_000):
        batch = sparse_batch(n, d, 0)
        with reproducible_noise(0):
            fitted = model(k, 0, data_norm=1.0, n_restarts=restarts, max_iter=1)
            tracemalloc.start()
            for _ in range(12):
                fitted.partial_fit(batch)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        rows.append([n, peak / 2**20, peak / unit])
        largest = max(largest, peak / unit)
    report.table(
        f"stream memory, d = {d}, k = {k}, L = {restarts}, 50 non-zeros a row",
        ["rows of a batch", "peak above it, MiB", "over d (k + L) x 8 bytes"],
        rows,
    )
    report.bar("stream: peak over d (k + L) x 8 bytes", largest, 20)


def stream_time(report: Report) -> None:
    """Seconds a batch, and the slope of their logarithm in d and in n."""
    k, restarts = 5, 20
    sizes = {"d": [(1000, d) for d in (20_000, 40_000, 80_000, 160_000)]}
    sizes["n"] = [(n, 2000) for n in (100_000, 200_000, 400_000)]
    if report.quick:
        sizes = {name: grid[:2] for name, grid in sizes.items()}
    rows = []
    for name, grid in sizes.items():
        seconds = []
        for n, d in grid:
            batch = sparse_batch(n, d, 0)
            with reproducible_noise(0):
                fitted = model(k, 0, data_norm=1.0, n_restarts=restarts).partial_fit(batch)
                times = []
                for _ in range(5):
                    start = time.perf_counter()
                    fitted.partial_fit(batch)
                    times.append(time.perf_counter() - start)
            seconds.append(min(times))
            rows.append([name, n, d, seconds[-1]])
        sides = [math.log(d if name == "d" else n) for n, d in grid]
        slope = float(np.polyfit(sides, np.log(seconds), 1)[0])
        report.bar(f"stream: slope of log time in log {name}", slope, 1.1)
    report.table("stream time", ["grows", "n", "d", "seconds a batch"], rows)
