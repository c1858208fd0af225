"""Theorem 3.1 and Corollary 3.1 of Wang & Anandkumar (2016): the online power method.

::

    python papers/theorem_stream.py            # some minutes
    python papers/theorem_stream.py --quick    # some seconds

Samples x have independent coordinates of mean 0 and variance 1: in three directions they take two
values, so that their third moments are 1, .9 and .8, in all others they are signs. So E[x (x) x (x)
x] is exactly low rank (Assumption 3.1), samples are bounded (Assumption 3.2), and the deviation
sigma of one sample's x_j (x'u)^2 is free of d. Each power step reads n samples that no other reads;
k = 3, L = 8 starts, R = 12 steps. Left: error against n, medians of trials. Middle: n at which
half of the trials have all components within 1 / sqrt(d). Right: memory that a fit takes at its
peak beside a batch of 50 samples.
"""

import argparse
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from figure_files import COLOURS, MARKERS, figure_parser, log_ticks, new_figure, present, progress
from fitted_rates import half_point, log_slope, slope_over_trials
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from verdicts import Claim, closeness, graded, plus_minus, short

from sktensor_dp.tensor.power_method import OnlinePowerMethod

NAME = "wang-anandkumar-theorem-3-1"
WEIGHTS = np.array([1.0, 0.9, 0.8])
N_RESTARTS, MAX_ITER = 8, 12
# Samples per step over d^2: error is drawn from where fits succeed, and success over all.
FACTORS = np.geomspace(0.25, 16.0, 7)
FIRST_ERROR = 4
CHUNK = 8192
Floats = NDArray[np.float64]
RAMP = ("#a9cfe8", "#7fb8dd", "#3d8fc4", "#0b2c52")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_arguments(arguments)
    dimensions = (6, 12) if options.quick else (10, 20, 40, 80)
    widths = (100, 400) if options.quick else (500, 1000, 2000, 4000, 8000)
    trials = options.trials or (3 if options.quick else 12)
    rows: list[dict[str, Any]] = []
    tasks = [(d, trial) for d in dimensions[::-1] for trial in range(trials)]
    for d, trial in progress(tasks, "theorem 3.1"):
        rows += errors(d, trial)
    rows += [
        {"part": "memory", "d": d, "trial": 0, "factor": 0.0, "n": 50, "error": 0.0,
         "peak_numbers": peak_memory(d)}
        for d in widths
    ]  # fmt: skip
    present(draw, rows, options.out, NAME, "Rates of Theorem 3.1", rates(rows))
    return 0


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = figure_parser(__doc__, "small dimensions, few trials")
    parser.add_argument("--trials", type=int, help="trials per setting (default 12)")
    return parser.parse_args(arguments)


# ------------------------------------------------------------------ the work


def errors(d: int, trial: int) -> list[dict[str, Any]]:
    """Largest error of a component for each number of samples per step."""
    rows = []
    for index, factor in enumerate(FACTORS):
        rng = np.random.default_rng([31, d, trial, index])
        n = round(factor * d**2)
        vectors = fitted(d, n, rng)
        cosines = vectors[:, : len(WEIGHTS)]
        order = linear_sum_assignment(-cosines)[1].argsort()
        distance = np.sqrt(np.maximum(0, 2 - 2 * cosines[order, np.arange(len(WEIGHTS))]))
        rows.append(
            {
                "part": "error",
                "d": d,
                "trial": trial,
                "factor": float(factor),
                "n": n,
                "error": float(distance.max()),
                "peak_numbers": 0.0,
            }
        )
    return rows


def fitted(d: int, n: int, rng: np.random.Generator) -> Floats:
    """Vectors found from a stream of which every step reads the next n samples."""
    method = OnlinePowerMethod.begin(
        d, len(WEIGHTS), n_restarts=N_RESTARTS, max_iter=MAX_ITER, random_state=rng
    )
    while not method.is_complete:
        U = method.columns_asked()
        answer = np.zeros(U.shape)
        for X in samples(d, n, rng):
            answer += X.T @ (X @ U) ** 2
        method.tell(answer / n)
    return method.components()[1]


def samples(d: int, n: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Chunks of n samples: two-point coordinates of given third moments, then signs."""
    k = len(WEIGHTS)
    # Values a and -1/a with probabilities 1/(1+a^2) and a^2/(1+a^2): mean 0, variance 1,
    # third moment a - 1/a.
    high = (WEIGHTS + np.sqrt(WEIGHTS**2 + 4)) / 2
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        bits = np.unpackbits(np.frombuffer(rng.bytes(size * d // 8 + 1), dtype=np.uint8))
        X = 2.0 * bits[: size * d].reshape(size, d) - 1.0
        X[:, :k] = np.where(rng.random((size, k)) < 1 / (1 + high**2), high, -1 / high)
        yield X


def peak_memory(d: int) -> float:
    """Numbers of eight bytes held at the peak of a fit, beside its batch."""
    rng = np.random.default_rng(0)
    X = next(samples(d, 50, rng))
    tracemalloc.start()
    try:
        method = OnlinePowerMethod.begin(
            d, len(WEIGHTS), n_restarts=N_RESTARTS, max_iter=MAX_ITER, random_state=rng
        )
        while not method.is_complete:
            U = method.columns_asked()
            method.tell(X.T @ (X @ U) ** 2 / len(X))
        return tracemalloc.get_traced_memory()[1] / 8
    finally:
        tracemalloc.stop()


# ------------------------------------------------------------------ the rates


def error_table(rows: Sequence[dict[str, Any]], d: int) -> Floats:
    """Errors of shape (trials, factors)."""
    mine = [row["error"] for row in rows if row["part"] == "error" and row["d"] == d]
    return np.array(mine).reshape(-1, len(FACTORS))


def dimensions_of(rows: Sequence[dict[str, Any]], part: str) -> list[int]:
    return sorted({row["d"] for row in rows if row["part"] == part})


def needed(rows: Sequence[dict[str, Any]]) -> list[tuple[int, float, float]]:
    """For each d, samples per step at which half of the trials are within 1 / sqrt(d)."""
    points = []
    for d in dimensions_of(rows, "error"):
        table = error_table(rows, d)
        factor, error = half_point(FACTORS, (table <= d**-0.5).mean(axis=0), len(table))
        points.append((d, factor * d**2, error))
    return points


def rates(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Exponents with standard errors beside the theorem's."""
    table = []
    fits = []
    for d in dimensions_of(rows, "error"):
        late = error_table(rows, d)[:, FIRST_ERROR:]
        slope, error = slope_over_trials(FACTORS[FIRST_ERROR:], late)
        table.append(_rate(f"error in n, d = {d}", slope, error, -0.5))
        logs = np.log(late).mean(axis=1)
        fits.append((d, np.exp(logs.mean()), logs.std(ddof=1) / np.sqrt(len(logs))))
    # Along n = c d^2 the error sqrt(d / n) falls as 1 / sqrt(d).
    table.append(_rate("error in d at n = c d^2", *log_slope(*zip(*fits, strict=True)), -0.5))
    points = needed(rows)
    table.append(_rate("n needed in d", *log_slope(*zip(*points, strict=True)), 2.0))
    memory = [(r["d"], r["peak_numbers"], 0.0) for r in rows if r["part"] == "memory"]
    table.append(_rate("memory in d", *log_slope(*zip(*memory, strict=True)), 1.0))
    return table


def _rate(name: str, exponent: float, error: float, paper: float) -> dict[str, Any]:
    return {"rate": name, "exponent": exponent, "s.e.": error, "theorem": paper}


def claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    """Verdicts on n against the error, and on samples and memory against d."""
    table = rates(rows)
    *of_n, of_d, count, memory = [(row["exponent"], row["s.e."]) for row in table]
    exponents = ", ".join(plus_minus(*pair) for pair in of_n)
    widest = max((row for row in rows if row["part"] == "memory"), key=lambda row: row["d"])
    share = widest["peak_numbers"] / (widest["d"] * (len(WEIGHTS) + N_RESTARTS))
    return [
        Claim(
            "Theorem 3.1", "n = Ω̃(σ² d / ε²): the error falls as 1/√n",
            f"d = {', '.join(map(str, dimensions_of(rows, 'error')))}: exponents {exponents}",
            graded(closeness(*pair, -0.5, slack=0.05) for pair in of_n),
        ),
        Claim(
            "Theorem 3.1", "and grows as √d, so that it falls as 1/√d where n = c d²",
            f"exponent {plus_minus(*of_d)}", graded((closeness(*of_d, -0.5),)),
        ),
        Claim(
            "Corollary 3.1", "Õ(d²) samples give an error of O(1/√d)",
            f"exponent {plus_minus(*count)}", graded((closeness(*count, 2.0),)),
        ),
        Claim(
            "Corollary 3.1", "in memory linear in d",
            f"exponent {short(memory[0])}; at the peak {short(share)} times d (k + L) numbers",
            graded((closeness(*memory, 1.0),)),
        ),
    ]  # fmt: skip


# --------------------------------------------------------------- the drawing


def draw(rows: Sequence[dict[str, Any]]) -> Any:
    figure, axes = new_figure(1, 3, (10.5, 3.8))
    draw_errors(axes[0, 0], rows)
    draw_needed(axes[0, 1], rows)
    draw_memory(axes[0, 2], rows)
    return figure


def draw_errors(panel: Any, rows: Sequence[dict[str, Any]]) -> None:
    for colour, marker, d in zip(RAMP, MARKERS, dimensions_of(rows, "error"), strict=False):
        n = np.round(FACTORS * d**2)
        low, middle, high = np.quantile(error_table(rows, d), [0.25, 0.5, 0.75], axis=0)
        panel.errorbar(
            n, middle, yerr=[middle - low, high - middle], color=colour, marker=marker,
            capsize=2, elinewidth=0.9, label=f"d = {d}",
        )  # fmt: skip
        line = middle[-1] * np.sqrt(n[-1] / n)
        panel.plot(n[2:], line[2:], color=COLOURS["vermilion"], linestyle="--", linewidth=1)
    panel.plot([], [], color=COLOURS["vermilion"], linestyle="--", label="1/√n")
    panel.set(xscale="log", yscale="log", xlabel="n, samples per step", ylabel="largest |vᵢ − v̂ᵢ|")
    panel.set_title("error against n")
    log_ticks(panel.yaxis, (0.05, 0.1, 0.2, 0.5, 1))
    panel.legend(loc="lower left", fontsize=8)


def draw_needed(panel: Any, rows: Sequence[dict[str, Any]]) -> None:
    points = needed(rows)
    d, n, error = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    slope, spread = log_slope(d, n, error)
    theorem = np.exp(np.mean(np.log(n) - 2 * np.log(d))) * d**2
    panel.plot(d, theorem, color=COLOURS["vermilion"], linestyle="--", label="corollary: d²")
    panel.errorbar(
        d, n, yerr=2 * error * n, color=RAMP[2], marker="o", capsize=3,
        label=f"measured, exponent {slope:.2f} ± {spread:.2f}",
    )  # fmt: skip
    panel.set(xscale="log", yscale="log", xlabel="d", ylabel="n for an error of 1/√d")
    panel.set_title("samples needed")
    log_ticks(panel.xaxis, d)
    panel.legend(loc="upper left", fontsize=8)


def draw_memory(panel: Any, rows: Sequence[dict[str, Any]]) -> None:
    mine = [row for row in rows if row["part"] == "memory"]
    d = np.array([row["d"] for row in mine], dtype=float)
    peak = np.array([row["peak_numbers"] for row in mine])
    unit = d * (len(WEIGHTS) + N_RESTARTS)
    panel.plot(d, unit, color=COLOURS["vermilion"], linestyle="--", label="d (k + L)")
    panel.plot(d, peak, color=RAMP[2], marker="o", label="measured peak")
    panel.set(xscale="log", yscale="log", xlabel="d", ylabel="numbers held")
    panel.set_title("memory")
    log_ticks(panel.xaxis, d)
    panel.legend(loc="upper left", fontsize=8)


if __name__ == "__main__":
    raise SystemExit(main())
