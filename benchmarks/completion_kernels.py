"""CP completion without noise: quality from many starts, and time of a sweep.

Factors are standard normal and values have unit variance. Quality: 100 x 100 x 100, a
fifth of the entries observed, rank 3; relative RMSE over all entries, from
``default_rng(seed)`` for ten seeds. Speed: 200 x 200 x 200, rank 3, 40, 10 and 4 entries
observed in each fibre; CPU seconds of ours with mean and biases, sorting and start
included, against TensorLy's masked ``parafac`` on a dense array and mask with as many
iterations. Both run all of them, on one BLAS thread.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.report import Cell, Report
from sktensor_dp.tensor.cp_completion import CPCompletion, complete_cp
from sktensor_dp.tensor.sorted_entries import SortedEntries, cp_values

__all__ = ["run"]

# Columns of tables of seconds, here and in ``tensor_speed``, and how these are measured.
SPEED, HOW = ["method", "CPU s", "range", "beside"], "CPU seconds of one thread"
RANK, SHARE, SWEEPS = 3, 0.2, 50
QUALITY_LENGTH, SPEED_LENGTH, N_SEEDS = 100, 200, 10
ERROR_BAR = 1e-3
# Least ratio of TensorLy's time to ours, by the share of entries that is observed.
RATIO_BARS = {SHARE: 3.0, 0.05: 3.0, 0.02: 1.0}


def run(report: Report) -> None:
    with threadpool_limits(1, "blas"):
        measure_quality(report)


def problem(
    length: int, seed: int, share: float = SHARE
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Factors, coordinates observed and their values."""
    rng = np.random.default_rng(seed)
    factors = [rng.standard_normal((length, RANK)) for _ in range(3)]
    chosen = rng.choice(length**3, int(share * length**3), replace=False)
    coordinates = np.column_stack(np.unravel_index(chosen, (length,) * 3))
    factors[0] /= dense(factors).std()
    return factors, coordinates, cp_values(factors, coordinates)


def dense(factors: list[np.ndarray]) -> np.ndarray:
    a, b, c = factors
    return ((a[:, None, :] * b).reshape(-1, RANK) @ c.T).reshape([len(x) for x in factors])


def relative_error(model: CPCompletion, truth: np.ndarray) -> float:
    everything = np.column_stack(np.unravel_index(np.arange(truth.size), truth.shape))
    error = model.predict(everything) - truth.reshape(-1)
    return float(np.linalg.norm(error) / np.linalg.norm(truth))


def measure_quality(report: Report) -> None:
    length, n_seeds = (40, 2) if report.quick else (QUALITY_LENGTH, N_SEEDS)
    rows: list[list[str | float]] = []
    for seed in range(n_seeds):
        factors, coordinates, values = problem(length, seed)
        start = time.perf_counter()
        entries = SortedEntries(coordinates, (length,) * 3)
        model = complete_cp(entries, values, RANK, random_state=seed)
        seconds = time.perf_counter() - start
        rows.append([str(seed), relative_error(model, dense(factors)), model.n_iter, seconds])
    title = f"{length}^3, {SHARE:.0%} observed, rank {RANK}"
    report.table(title, ["seed", "relative RMSE", "sweeps", "s"], rows)
    report.bar(f"{title}: worst of {n_seeds} seeds", max(float(row[1]) for row in rows), ERROR_BAR)


def measure_speed(report: Report) -> None:
    baseline = load_baseline()
    if baseline is None:
        report.note("NOT RUN: TensorLy is missing; pip install tensorly")
        return
    length = 60 if report.quick else SPEED_LENGTH
    for share, bar in RATIO_BARS.items():
        compare(report, baseline, length, share, bar)


def compare(
    report: Report, baseline: Callable[..., Any], length: int, share: float, bar: float
) -> None:
    """Both on the same entries, one after the other."""
    factors, coordinates, values = problem(length, 0, share)
    truth = dense(factors)
    start = time.process_time()
    entries = SortedEntries(coordinates, truth.shape)
    model = complete_cp(entries, values, RANK, max_iter=SWEEPS, tol=0.0, random_state=0)
    ours = time.process_time() - start
    observed, mask = np.zeros(truth.shape), np.zeros(truth.shape)
    observed[tuple(coordinates.T)], mask[tuple(coordinates.T)] = values, 1.0
    start = time.process_time()
    completed = baseline(observed, mask)
    theirs = time.process_time() - start
    error = float(np.linalg.norm(completed - truth) / np.linalg.norm(truth))
    title = f"{length}^3, {share:.0%} observed, rank {RANK}, {SWEEPS} sweeps"
    rows: list[list[Cell]] = [
        [name, seconds, "", f"relative RMSE {rmse:.3g}"]
        for name, seconds, rmse in (
            ("ours", ours, relative_error(model, truth)),
            ("TensorLy, masked parafac", theirs, error),
        )
    ]
    report.table(title, SPEED, rows, file="tensor_speed", group=title, how=HOW)
    report.bar(f"{title}: times as fast as TensorLy", theirs / ours, bar, at_least=True)


def load_baseline() -> Callable[[np.ndarray, np.ndarray], Any] | None:
    try:
        import tensorly
        from tensorly.decomposition import parafac
    except ImportError:
        return None

    def complete(observed: np.ndarray, mask: np.ndarray) -> Any:
        cp = parafac(
            tensorly.tensor(observed),
            RANK,
            mask=tensorly.tensor(mask),
            n_iter_max=SWEEPS,
            init="random",
            random_state=0,
            tol=0,
        )
        return tensorly.cp_to_tensor(cp)

    return complete
