"""Time of the tensor power method, against TensorLy's in the same run.

T = sum_j w_j v_j (x) v_j (x) v_j with random orthonormal v_j and weights evenly spaced
from 1 to 2, plus 0.1 / sqrt(d) times a symmetrised standard normal tensor. Both take 10
restarts and at most 10 iterations, TensorLy three updates in each. Ours stops sooner once
no vector moves by more than 1e-4, restarts by 0.1. Runs take turns; times are CPU seconds, and
ratios those of minimal ones, which other work on the machine disturbs least.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.report import Report
from sktensor_dp.tensor import robust_tensor_power_method, symmetric_outer_sum
from sktensor_dp.tensor.symmetric import symmetrize, tensor_oracle

__all__ = ["run"]

COUNTS = {"n_restarts": 10, "max_iter": 10, "tol": 1e-4}
N_COMPONENTS, NOISE = 10, 0.1
# Length of a mode: runs of TensorLy, and of ours after each of them.
REPEATS = {100: (4, 4), 200: (1, 5)}
RATIO_BARS, COSINE_BAR = {40: 1.0, 100: 45.0, 200: 150.0}, 0.998


def run(report: Report) -> None:
    baseline = load_baseline()
    if baseline is None:
        report.note("NOT RUN: TensorLy is missing; pip install tensorly")
        return
    sizes = {40: (1, 2)} if report.quick else REPEATS
    for dim, (n_baseline, n_ours) in sizes.items():
        T, V = noisy_tensor(dim)
        seconds: dict[str, list[float]] = {"ours": [], "TensorLy": []}
        robust_tensor_power_method(T, 1, max_iter=1, random_state=0)  # first calls load libraries
        for repeat in range(n_baseline):
            for turn in range(n_ours):
                elapsed, (_, vectors) = timed(partial(ours, T, turn))
                seconds["ours"].append(elapsed)
            np.random.seed(repeat)  # noqa: NPY002 (TensorLy draws from the global state)
            elapsed, (_, factors) = timed(partial(baseline, T))
            seconds["TensorLy"].append(elapsed)
        cosines = {"ours": least_cosine(V, vectors), "TensorLy": least_cosine(V, factors.T)}
        report.table(
            f"d = {dim}, k = {N_COMPONENTS}",
            ["method", "min s", "median s", "ratio", "least |cosine|"],
            [
                [
                    name,
                    min(times),
                    float(np.median(times)),
                    min(seconds["TensorLy"]) / min(times),
                    cosines[name],
                ]
                for name, times in seconds.items()
            ],
            file="power_method_speed",
            group=f"d = {dim}",
        )
        ratio = min(seconds["TensorLy"]) / min(seconds["ours"])
        report.bar(f"d = {dim}: times faster", ratio, RATIO_BARS[dim], at_least=True)
        report.bar(f"d = {dim}: least |cosine|", cosines["ours"], COSINE_BAR, at_least=True)
        report_bandwidth(report, T, min(seconds["ours"]))


def load_baseline() -> Callable[[Any], Any] | None:
    try:
        from tensorly.decomposition import symmetric_parafac_power_iteration
    except ImportError:
        return None
    return lambda T: symmetric_parafac_power_iteration(
        T, N_COMPONENTS, n_repeat=COUNTS["n_restarts"], n_iteration=COUNTS["max_iter"]
    )


def ours(T: Any, seed: int) -> Any:
    return robust_tensor_power_method(T, N_COMPONENTS, random_state=seed, **COUNTS)


def noisy_tensor(dim: int) -> tuple[Any, Any]:
    rng = np.random.default_rng([1, dim])
    V = np.linalg.qr(rng.standard_normal((dim, N_COMPONENTS)))[0].T
    noise = NOISE / np.sqrt(dim) * symmetrize(rng.standard_normal((dim, dim, dim)))
    return symmetric_outer_sum(np.linspace(1, 2, N_COMPONENTS), V) + noise, V


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def least_cosine(V: Any, vectors: Any) -> float:
    """Cosine of the worst component with the estimate nearest to it."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return float(np.abs(V @ (vectors / lengths).T).max(axis=1).min())


def report_bandwidth(report: Report, T: Any, seconds: float) -> None:
    """Compare with reading half of T in every query at the speed of a sum."""
    contract, widths = tensor_oracle(T), []

    def counted(U: Any) -> Any:
        widths.append(U.shape[1])
        return contract(U)

    robust_tensor_power_method(counted, N_COMPONENTS, dim=T.shape[0], random_state=0, **COUNTS)
    reading = min(timed(T.sum)[0] for _ in range(20))
    floor = len(widths) * reading / 2
    report.note(
        f"{len(widths)} queries, {sum(widths)} columns; T.sum() reads "
        f"{T.nbytes / reading / 1e9:.1f} GB/s: half of T per query would take {floor:.3g} s, "
        f"the method takes {seconds / floor:.1f} times that"
    )
