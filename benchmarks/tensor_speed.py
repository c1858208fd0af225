"""CPU seconds and memory of tensor kernels, each against its bar.

*Completion*: ratings of 100 000 x 20 000, 10 000 000 of them, the columns' popularity as the
square of a uniform number; five components and noise of half their deviation. A fit in a
process of its own prints its CPU seconds and how far the peak rises above what was held
before, values and coordinates included there. *Sweep*: alternating least squares on the
same, rank 10, biases and all variances with it; an iteration of conjugate gradients of cmfrec
and of implicit takes turns in the same process, in single precision and on one thread.
*Slices*: 66 690 units of 80 columns, of
which 4 700 000 entries are drawn and the distinct ones kept, rank 10. *Core*: all values of
12 x 24 x 365, a Tucker model of ranks (5, 5, 20) with noise of half their deviation, which
settles. *Tensors*: as in ``completion_kernels``. Times are medians, with their ranges.
"""

import math
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from benchmarks import completion_kernels
from benchmarks.completion_kernels import HOW, SPEED
from benchmarks.peak_memory import peak
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateCPCompletion
from sktensor_dp.tensor.cp_completion import complete_cp
from sktensor_dp.tensor.sorted_entries import SortedEntries
from sktensor_dp.tensor.tucker_completion import TuckerCompletion, complete_tucker

__all__ = ["run"]

RATINGS, SMALL_RATINGS = (100_000, 20_000, 10_000_000), (10_000, 2_000, 300_000)
SLICES, SMALL_SLICES = (66_690, 80, 4_700_000), (3_000, 80, 200_000)
RATIO_BAR, BYTES_BAR = 1.5, 100.0
# A sweep in iterations of a peer.
SWEEP_BARS = {"cmfrec": 0.57, "implicit": 0.5}
SLICE_BARS = {math.inf: 30.0, 10.0: 10.0}

Floats = np.ndarray[Any, np.dtype[np.float64]]


def run(report: Report) -> None:
    with threadpool_limits(1, "blas"):
        measure_slices(report)
        measure_sweep(report)
        measure_core(report)
        completion_kernels.measure_speed(report)
    measure_completion(report)


def cpu(action: Callable[[], Any]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def write(report: Report, title: str, rows: list[list[Cell]]) -> None:
    report.table(title, SPEED, rows, file="tensor_speed", group=title, how=HOW)


def ratings(n_rows: int, n_columns: int, n: int, rank: int, power: float) -> tuple[Any, Floats]:
    """Coordinates and values of distinct entries, in random order."""
    rng = np.random.default_rng(0)
    many = int(1.6 * n)
    columns = (n_columns * rng.random(many) ** power).astype(np.int64)
    keys = rng.permutation(np.unique(rng.integers(0, n_rows, many) * n_columns + columns))[:n]
    coordinates = np.column_stack([keys // n_columns, keys % n_columns])
    A, B = (rng.standard_normal((length, rank)) for length in (n_rows, n_columns))
    values = 0.5 * rng.standard_normal(len(keys))
    for first in range(0, len(keys), 2**20):
        rows, places = coordinates[first : first + 2**20].T
        values[first : first + 2**20] += np.sum(A[rows] * B[places], axis=1) / math.sqrt(rank)
    return coordinates, values


def measure_slices(report: Report) -> None:
    n_rows, n_columns, n = SMALL_SLICES if report.quick else SLICES
    X, y = ratings(n_rows, n_columns, n, 5, 1.3)
    title, rows = f"slices, {n_rows} x {n_columns}, {len(y)} entries", []
    for epsilon, bar in SLICE_BARS.items():
        model = PrivateCPCompletion(
            10, epsilon=epsilon, bounds=(-4.0, 4.0), shape=(n_rows, n_columns),
            unit_mode=0, random_state=0,
        )  # fmt: skip
        with reproducible_noise(0), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds = cpu(partial(model.fit, X, y))
        rows.append([f"epsilon = {epsilon:g}", seconds, "", ""])
        report.bar(f"{title}, epsilon = {epsilon:g}: CPU s", seconds, bar)
    write(report, title, rows)


def measure_sweep(report: Report) -> None:
    n_rows, n_columns, n = SMALL_RATINGS if report.quick else RATINGS
    X, y = ratings(n_rows, n_columns, n, 10, 2.0)
    entries = SortedEntries(X, (n_rows, n_columns))
    options: dict[str, Any] = {"tol": 0.0, "random_state": 0}
    fits: dict[str, Callable[[int], Any]] = {
        "ours": lambda sweeps: complete_cp(entries, y, 10, max_iter=sweeps, **options),
        **sweeps_of_peers(report, X, y, (n_rows, n_columns)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    for _ in range(1 if report.quick else 3):
        for name, fit in fits.items():
            few, many = (cpu(partial(fit, sweeps)) for sweeps in (2, 6))
            seconds[name].append((many - few) / 4)
    title = f"a sweep of {n_rows} x {n_columns}, {len(y)} entries, rank 10"
    rows: list[list[Cell]] = [
        [name, float(np.median(times)), f"{min(times):.3g}-{max(times):.3g}", ""]
        for name, times in seconds.items()
    ]
    write(report, title, rows)
    ours = float(np.median(seconds.pop("ours")))
    for name, times in seconds.items():
        ratio = ours / float(np.median(times))
        report.bar(f"{title}: over {name}", ratio, SWEEP_BARS[name])


def measure_core(report: Report) -> None:
    shape, ranks = ((6, 12, 60), (2, 2, 6)) if report.quick else ((12, 24, 365), (5, 5, 20))
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((n, r)) for n, r in zip(shape, ranks, strict=True)]
    T = np.einsum("abc,ia,jb,kc->ijk", rng.standard_normal(ranks), *factors)
    values = (T / T.std() + 0.5 * rng.standard_normal(shape)).ravel()
    entries = SortedEntries(np.indices(shape).reshape(3, -1).T, shape)
    found: list[TuckerCompletion] = []
    seconds = cpu(lambda: found.append(complete_tucker(entries, values, ranks, random_state=0)))
    title = f"Tucker model of {' x '.join(map(str, shape))}, ranks {ranks}"
    write(report, title, [["ours", seconds, "", f"{found[0].n_iter} sweeps"]])
    report.bar(f"{title}: CPU s", seconds, 10.0)


def sweeps_of_peers(
    report: Report, X: Any, y: Floats, shape: tuple[int, int]
) -> dict[str, Callable[[int], Any]]:
    """Fits of so many iterations by conjugate gradients, of those that are installed."""
    values = ((y - y.mean()) / y.std()).astype(np.float32)
    matrix = sp.coo_matrix((values, (X[:, 0], X[:, 1])), shape)
    weights = abs(matrix.tocsr())
    weights.data += 1.0
    fits: dict[str, Callable[[int], Any]] = {}
    try:
        from cmfrec import CMF

        fits["cmfrec"] = lambda sweeps: CMF(
            k=10, niter=sweeps, nthreads=1, method="als", use_cg=True, finalize_chol=False,
            user_bias=False, item_bias=False, center=False, use_float=True, verbose=False,
            precompute_for_predictions=False,
        ).fit(matrix)  # fmt: skip
    except ImportError:
        report.note("NOT RUN: cmfrec is missing; pip install cmfrec")
    try:
        from implicit.cpu.als import AlternatingLeastSquares

        fits["implicit"] = lambda sweeps: AlternatingLeastSquares(
            factors=10, iterations=sweeps, num_threads=1, random_state=0, use_cg=True
        ).fit(weights, show_progress=False)
    except ImportError:
        report.note("NOT RUN: implicit is missing; pip install implicit")
    return fits


def measure_completion(report: Report) -> None:
    n_rows, n_columns, n = SMALL_RATINGS if report.quick else RATINGS
    found = {}
    for epsilon in ("inf", "1"):
        command = [sys.executable, "-m", "benchmarks.tensor_speed", epsilon]
        command += [str(n_rows), str(n_columns), str(n)]
        root = Path(__file__).parent.parent
        answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
        found[epsilon] = [float(part) for part in answer.stdout.split()]
    title = f"completion of {n_rows} x {n_columns}, {n} entries, rank 5"
    write(report, title, [
        [f"epsilon = {name}", seconds, "", f"{held:.0f} bytes an entry at the peak"]
        for name, (seconds, held) in found.items()
    ])  # fmt: skip
    ratio = found["1"][0] / found["inf"][0]
    report.bar(f"{title}: epsilon = 1 over inf", ratio, RATIO_BAR)
    for name, numbers in found.items():
        report.bar(f"{title}: bytes an entry, epsilon = {name}", numbers[1], BYTES_BAR)


def main() -> None:
    epsilon, *sizes = sys.argv[1:]
    n_rows, n_columns, n = map(int, sizes)
    X, y = ratings(n_rows, n_columns, n, 5, 2.0)
    model = PrivateCPCompletion(
        5, epsilon=float(epsilon), bounds=(-5.0, 5.0), shape=(n_rows, n_columns), max_iter=10,
        random_state=0,
    )  # fmt: skip
    status = Path("/proc/self/clear_refs")
    if status.exists():
        # From here on the peak is that of the fit, not of making up the data.
        status.write_text("5")
    before = peak()
    with reproducible_noise(0), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = cpu(partial(model.fit, X, y))
    print(seconds, (peak() - before) / len(y))


if __name__ == "__main__":
    main()
