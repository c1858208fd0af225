"""Completions of more ratings than a process should hold, on a cluster of two.

Files of 250,000 ratings each by 1,000,000 people of 1,000 items, rank 5, people as units,
epsilon = 1, seed 0. A person's ratings lie across all files, and are brought together. Components
are asked for by 24 releases at each size: by default public numbers say that they do not pay at
the smallest, and a slope would compare fits that release different things.

    python -m benchmarks.scale_ratings FOLDER 4000000 [local]

runs one size, of files that are there or are written first; ``local`` without a cluster, in
one process that reads all files.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.cluster import QUIET, on_cluster
from benchmarks.peak_memory import peak
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateCPCompletion

__all__ = ["measure_ratings"]

AT_ONCE, SHAPE, RANK, SWEEPS = 250_000, (1_000_000, 1_000), 5, 24
SIZES, QUICK = (1_000_000, 4_000_000, 20_000_000), (1_000_000, 2_000_000)
MEMORY = 2**31


def write_ratings(folder: Path, n: int) -> None:
    """Levels of people and items, and one component, with noise."""
    rng = np.random.default_rng(0)
    levels = [rng.standard_normal(size) for size in SHAPE]
    tastes = [rng.standard_normal(size) for size in SHAPE]
    for number in range(n // AT_ONCE):
        X = np.column_stack([rng.integers(0, size, AT_ONCE) for size in SHAPE])
        of = [part[column] for part, column in zip((*levels, *tastes), [*X.T, *X.T], strict=True)]
        y = 0.3 * (of[0] + of[1]) + 0.5 * of[2] * of[3] + 0.5 * rng.standard_normal(AT_ONCE)
        np.save(folder / f"{number}.npy", np.column_stack([X, y]))


def read(path: Path, columns: slice | int) -> np.ndarray[Any, Any]:
    return np.load(path, mmap_mode="r")[:, columns].copy()


def fit(folder: Path, n: int) -> dict[str, Any]:
    """Fit a number of ratings; what it took."""
    import dask
    import dask.array as da

    load = dask.delayed(read)
    paths = [folder / f"{number}.npy" for number in range(n // AT_ONCE)]
    X, y = (
        da.concatenate(
            [da.from_delayed(load(path, columns), (AT_ONCE, *rest), dtype=float) for path in paths]
        )
        for columns, rest in ((slice(0, 2), (2,)), (2, ()))
    )
    model = estimator()
    with reproducible_noise(0):
        took = on_cluster(lambda: model.fit(X, y), MEMORY)
    return {**took, "client": peak(), "rounds": rounds(model)}


def fit_local(folder: Path, n: int) -> dict[str, Any]:
    """The same in this process alone."""
    files = [np.load(folder / f"{number}.npy") for number in range(n // AT_ONCE)]
    X = np.concatenate([part[:, :2].astype(np.int64) for part in files])
    y = np.concatenate([part[:, 2] for part in files])
    model, start, cpu = estimator(), time.perf_counter(), time.process_time()
    with threadpool_limits(1, "blas"), reproducible_noise(0):
        model.fit(X, y)
    took = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - start}
    return {**took, "client": peak(), "rounds": rounds(model)}


def estimator() -> PrivateCPCompletion:
    return PrivateCPCompletion(RANK, bounds=(-2, 2), shape=SHAPE, unit_mode=0, random_state=0)


def rounds(model: PrivateCPCompletion) -> int:
    return sum(row.uses for row in model.privacy_report_.rows)


def measure_ratings(report: Report) -> None:
    """Print CPU and memory at each size, and judge the bars."""
    sizes = QUICK if report.quick else SIZES
    took: dict[int, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        write_ratings(Path(name), max(sizes))
        for n in sizes:
            command = [sys.executable, "-m", "benchmarks.scale_ratings", name, str(n)]
            answer = subprocess.run(
                command, capture_output=True, text=True, check=True,
                cwd=Path(__file__).parent.parent, env={**os.environ, **QUIET},
            )  # fmt: skip
            took[n] = json.loads(answer.stdout.splitlines()[-1])
    report.table(
        "Ratings of 1,000,000 people, 1,000 items, rank 5, epsilon = 1",
        ["ratings", "processor seconds", "client, MiB", "largest worker, MiB", "rounds"],
        [
            [
                *(f"{n:,}", f"{found['cpu']:.0f}"),
                *(f"{found[at] / 2**20:.0f}" for at in ("client", "worker")),
                found["rounds"],
            ]
            for n, found in took.items()
        ],
        file="scale_of_ratings",
        how="noise seed 0, a cluster of two",
    )
    least, most = min(sizes), max(sizes)
    slope = math.log(took[most]["cpu"] / took[least]["cpu"]) / math.log(most / least)
    report.bar("slope of CPU in ratings", slope, 1.15)
    report.bar("peak of a worker, GiB", took[most]["worker"] / 2**30, 2.0)


if __name__ == "__main__":
    folder, size = Path(sys.argv[1]), int(sys.argv[2])
    if not (folder / f"{size // AT_ONCE - 1}.npy").exists():
        write_ratings(folder, size)
    print(json.dumps((fit_local if "local" in sys.argv else fit)(folder, size)))
