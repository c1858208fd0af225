"""Theorem 2.2 of Wang & Anandkumar (2016): error of the power method against noise.

::

    python papers/theorem_power_method.py            # a minute
    python papers/theorem_power_method.py --quick    # some seconds

Left and middle: T = sum_i lambda_i v_i^(x)3 with k = 5 weights from 1 to .5, plus a symmetric
Gaussian tensor E. epsilon is what the theorem calls so: the largest |E(I, u, u)| of all iterates u
of a fit. Errors are those of components after matching, over 20 trials, each at all levels of
noise. Right: equal weights, and the noise at which half of 20 trials miss a component, for k from
2 to 16. L = 3 k ln k + 3 starts, at most R = 60 steps.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from figure_files import COLOURS, MARKERS, figure_parser, log_ticks, new_figure, present, progress
from figure_wang_anandkumar import gaussian_noise
from fitted_rates import half_point, log_slope, slope_over_trials
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from verdicts import Claim, closeness, graded, plus_minus, short

from sktensor_dp.tensor import robust_tensor_power_method
from sktensor_dp.tensor.symmetric import Oracle

NAME = "wang-anandkumar-theorem-2-2"
WEIGHTS = np.linspace(1.0, 0.5, 5)
# Typical |E(I, u, u)|, for u drawn at random: below what destroys components at any d here.
LEVELS = np.geomspace(0.002, 0.05, 7)
TOLERANCE_LEVELS = np.geomspace(0.05, 1.6, 11)
TOLERANCE_DIM, MISSED = 50, 0.5
MAX_ITER, TOL = 60, 1e-7
Floats = NDArray[np.float64]
RAMP = ("#7fb8dd", "#3d8fc4", "#0b2c52")


def main(arguments: Sequence[str] | None = None) -> int:
    options = figure_parser(__doc__, "small dimensions, few trials").parse_args(arguments)
    trials = 3 if options.quick else 20
    dimensions, ranks = ((15, 30), (2, 4)) if options.quick else ((25, 50, 100), (2, 4, 8, 16))
    tasks = [("error", d, len(WEIGHTS)) for d in dimensions]
    tasks += [("tolerance", 25 if options.quick else TOLERANCE_DIM, k) for k in ranks]
    rows: list[dict[str, Any]] = []
    for part, d, k in progress(tasks, "theorem 2.2"):
        rows += errors(d, trials) if part == "error" else failures(d, k, trials)
    present(draw, rows, options.out, NAME, "Rates of Theorem 2.2", rates(rows))
    return 0


# ------------------------------------------------------------------ the work


def errors(d: int, trials: int) -> list[dict[str, Any]]:
    """Errors of every component at every level of noise, one row each."""
    rows = []
    for trial in range(trials):
        rng = np.random.default_rng([22, d, trial])
        noise, size = sized_noise(d, rng)
        for level in LEVELS:
            epsilon, vectors, values = recovered(noise, level / size, WEIGHTS, d, rng)
            rows += [
                {
                    "part": "error",
                    "d": d,
                    "k": len(WEIGHTS),
                    "trial": trial,
                    "level": float(level),
                    "epsilon": epsilon,
                    "weight": float(weight),
                    "vector_error": float(vector),
                    "weight_error": float(value),
                    "failure": 0.0,
                }
                for weight, vector, value in zip(WEIGHTS, vectors, values, strict=True)
            ]
    return rows


def failures(d: int, k: int, trials: int) -> list[dict[str, Any]]:
    """Share of trials that miss a component of equal weights, one row per level of noise."""
    missed = np.zeros(len(TOLERANCE_LEVELS))
    for trial in range(trials):
        rng = np.random.default_rng([23, d, k, trial])
        noise, size = sized_noise(d, rng)
        for index, level in enumerate(TOLERANCE_LEVELS):
            _, vectors, _ = recovered(noise, level / size, np.ones(k), d, rng)
            missed[index] += vectors.max() > MISSED
    return [
        {
            "part": "tolerance",
            "d": d,
            "k": k,
            "trial": trials,
            "level": float(level),
            "epsilon": float(level),
            "weight": 1.0,
            "vector_error": MISSED,
            "weight_error": 0.0,
            "failure": float(count / trials),
        }
        for level, count in zip(TOLERANCE_LEVELS, missed, strict=True)
    ]


def sized_noise(d: int, rng: np.random.Generator) -> tuple[Oracle, float]:
    """Symmetric Gaussian noise, and its |E(I, u, u)| at random unit vectors."""
    noise = gaussian_noise(d, rng)
    U = rng.standard_normal((d, 100))
    return noise, float(np.median(np.linalg.norm(noise(U / np.linalg.norm(U, axis=0)), axis=0)))


def recovered(
    noise: Oracle, factor: float, weights: Floats, d: int, rng: np.random.Generator
) -> tuple[float, Floats, Floats]:
    """Epsilon of a fit, and errors of vectors and weights in the order of the true ones."""
    k, sizes = len(weights), [0.0]

    def oracle(U: Floats) -> Floats:
        answer = factor * noise(U)
        sizes.append(float(np.linalg.norm(answer, axis=0).max()))
        answer[:k] += weights[:, None] * U[:k] ** 2
        return answer

    found, vectors = robust_tensor_power_method(
        oracle, k, dim=d, n_restarts=math.ceil(3 * k * math.log(k)) + 3,
        max_iter=MAX_ITER, tol=TOL, random_state=rng,
    )  # fmt: skip
    cosines = vectors[:, :k]
    order = linear_sum_assignment(-cosines)[1].argsort()
    distances = np.sqrt(np.maximum(0.0, 2 - 2 * cosines[order, np.arange(k)]))
    return max(sizes), distances, np.abs(found[order] - weights)


# ------------------------------------------------------------------ the rates


def rates(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Exponents with standard errors, and the largest constants."""
    table = []
    for d in sorted({row["d"] for row in rows if row["part"] == "error"}):
        mine = [row for row in rows if row["part"] == "error" and row["d"] == d]
        shape = (-1, len(LEVELS), len(WEIGHTS))
        vector, value, epsilon, level = (
            np.array([row[key] for row in mine]).reshape(shape)
            for key in ("vector_error", "weight_error", "epsilon", "level")
        )
        weight = WEIGHTS[None, None, :]
        slope, error = slope_over_trials(
            level[0, :, 0], np.exp(np.log(vector * weight).mean(axis=2))
        )
        power, power_error = slope_over_trials(WEIGHTS, np.exp(np.log(vector).mean(axis=1)))
        table.append(
            {
                "d": d,
                "exponent of noise": slope,
                "s.e.": error,
                "exponent of lambda_i": power,
                "s.e. ": power_error,
                "largest C3": float((vector * weight / epsilon).max()),
                "largest C2": float((value / epsilon).max()),
            }
        )
    return table


def tolerances(rows: Sequence[dict[str, Any]]) -> tuple[list[tuple[int, float, float]], Any]:
    """Noise at which half of the trials fail for each k, with its error; exponent in k."""
    points = []
    for k in sorted({row["k"] for row in rows if row["part"] == "tolerance"}):
        mine = [row for row in rows if row["part"] == "tolerance" and row["k"] == k]
        levels, shares = [row["level"] for row in mine], [row["failure"] for row in mine]
        points.append((k, *half_point(levels, shares, mine[0]["trial"])))
    return points, log_slope(*zip(*points, strict=True))


def claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    """Verdicts on the two bounds, and on the noise up to which they are claimed."""
    table = rates(rows)
    places = ", ".join(str(row["d"]) for row in table)
    noise = [(row["exponent of noise"], row["s.e."]) for row in table]
    weight = [(row["exponent of lambda_i"], row["s.e. "]) for row in table]
    C3 = [row["largest C3"] for row in table]
    C2 = [row["largest C2"] for row in table]
    _, (slope, error) = tolerances(rows)
    return [
        Claim(
            "Theorem 2.2", "|vᵢ − v̂ᵢ| ≤ C₃ ε / λᵢ, with C₃ the same for all d",
            f"d = {places}: C₃ = {', '.join(map(short, C3))}; exponent in noise "
            f"{plus_minus(*noise[-1])}, in λᵢ {plus_minus(*weight[-1])}",
            graded((
                max(C3) <= 2 * min(C3),
                all(closeness(*pair, 1.0) for pair in noise),
                all(closeness(*pair, -1.0) for pair in weight),
            )),
        ),
        Claim(
            "Theorem 2.2", "|λᵢ − λ̂ᵢ| ≤ C₂ ε",
            f"d = {places}: C₂ = {', '.join(map(short, C2))}",
            graded((max(C2) <= 2 * min(C2),)),
        ),
        Claim(
            "Theorem 2.2", "noise up to ε = C₁ λ_min / √k is borne",
            f"noise at which half of the trials fail: exponent {plus_minus(slope, error)} in k; "
            "it falls more slowly than is claimed, so that the bound holds and is not tight",
            graded((slope + 2 * error >= -0.5,)),
        ),
    ]  # fmt: skip


# --------------------------------------------------------------- the drawing


def draw(rows: Sequence[dict[str, Any]]) -> Any:
    figure, axes = new_figure(1, 3, (10.5, 3.8))
    dimensions = sorted({row["d"] for row in rows if row["part"] == "error"})
    for panel, key, label in zip(
        axes[0], ("vector_error", "weight_error"), ("λᵢ |vᵢ − v̂ᵢ|", "|λᵢ − λ̂ᵢ|"), strict=False
    ):
        for colour, marker, d in zip(RAMP, MARKERS, dimensions, strict=False):
            draw_errors(panel, rows, d, key, color=colour, marker=marker, label=f"d = {d}")
        ends = np.array([row["epsilon"] for row in rows if row["part"] == "error"])
        line = np.array([ends.min(), ends.max()])
        panel.plot(line, line, color=COLOURS["vermilion"], linestyle="--", label="ε")
        panel.set(xscale="log", yscale="log", xlabel="ε, largest |E(I, u, u)|", ylabel=label)
        log_ticks(panel.xaxis, (0.003, 0.01, 0.03, 0.1))
        panel.legend(loc="upper left", fontsize=8)
    axes[0, 0].set_title("error of components")
    axes[0, 1].set_title("error of weights")
    draw_tolerances(axes[0, 2], rows)
    return figure


def draw_errors(panel: Any, rows: Sequence[dict[str, Any]], d: int, key: str, **look: Any) -> None:
    """Medians over trials and components, and bars from the first to the third quartile."""
    quartiles, places = [], []
    mine = [row for row in rows if row["part"] == "error" and row["d"] == d]
    for level in sorted({row["level"] for row in mine}):
        at = [row for row in mine if row["level"] == level]
        scale = [r["weight"] if key == "vector_error" else 1.0 for r in at]
        values = np.array([r[key] for r in at]) * scale
        quartiles.append(np.quantile(values, [0.25, 0.5, 0.75]))
        places.append(float(np.median([r["epsilon"] for r in at])))
    low, middle, high = np.array(quartiles).T
    panel.errorbar(
        places, middle, yerr=[middle - low, high - middle], capsize=2, elinewidth=0.9, **look
    )


def draw_tolerances(panel: Any, rows: Sequence[dict[str, Any]]) -> None:
    points, (slope, error) = tolerances(rows)
    k, level, relative = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    bound = np.exp(np.mean(np.log(level) + 0.5 * np.log(k))) / np.sqrt(k)
    panel.plot(k, bound, color=COLOURS["vermilion"], linestyle="--", label="theorem: 1/√k")
    panel.errorbar(
        k, level, yerr=2 * relative * level, color=RAMP[1], marker="o", capsize=3,
        label=f"measured, exponent {slope:.2f} ± {error:.2f}",
    )  # fmt: skip
    panel.set(xscale="log", yscale="log", xlabel="k", ylabel="|E(I, u, u)| at which half fail")
    panel.set_title("tolerance against k")
    log_ticks(panel.xaxis, k)
    log_ticks(panel.yaxis, (0.1, 0.2, 0.3, 0.5, 0.7, 1))
    panel.set_ylim(level.min() / 2, level.max() * 1.6)
    panel.legend(loc="lower left", fontsize=8)


if __name__ == "__main__":
    raise SystemExit(main())
