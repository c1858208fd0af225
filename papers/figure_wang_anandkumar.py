"""Figure 1 of Wang & Anandkumar (2016): how much noise the tensor power method bears.

::

    python papers/figure_wang_anandkumar.py            # some minutes
    python papers/figure_wang_anandkumar.py --quick    # some seconds, small dimensions

T = v1^(x)3 + .75 v2^(x)3 + .5 v3^(x)3 plus noise of operator norm sigma, in three regimes
(Appendix A). The paper gives neither L nor R; here L = 10 starts and R = 25 steps. A trial
succeeds if the i-th vector found has an inner product of 1/4 or more with v_i, i = 1, 2, 3:
that is what the appendix says. Success in any order is counted beside it.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from figure_files import (
    COLOURS,
    MARKERS,
    figure_parser,
    log_ticks,
    new_figure,
    print_table,
    progress,
    styled,
    write_figure,
)
from fitted_rates import half_point, log_slope
from numpy.typing import NDArray
from tensor_diagnostics import operator_norm

from sktensor_dp.tensor import robust_tensor_power_method
from sktensor_dp.tensor.symmetric import Oracle, symmetrize

NAME = "wang-anandkumar-figure-1"
WEIGHTS = np.array([1.0, 0.75, 0.5])
N_RESTARTS, MAX_ITER, TOL = 10, 25, 1e-4
COSINE = 0.25
NORM_TOL = 1e-4  # of the residual; the norm itself is then exact to its square
Floats = NDArray[np.float64]
# Light to dark, for a quantity that grows.
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
WIDE_TICKS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
FINE_TICKS = (0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2)
RAMP = ("#7fb8dd", "#3d8fc4", "#1b5e97", "#0b2c52")


@dataclass(frozen=True)
class Regime:
    """Noise, and the rate at which the paper has its transition fall with d."""

    name: str
    noise: Callable[[int, np.random.Generator], Oracle]
    scale: Callable[[float], float]
    scale_name: str
    exponent_of: str
    levels: tuple[float, float]


def gaussian_noise(d: int, rng: np.random.Generator) -> Oracle:
    """Super-symmetrised normal entries, every pair of modes kept once, in single precision."""
    tensor = symmetrize(rng.standard_normal((d, d, d)))
    j, k = np.triu_indices(d)
    flat = (tensor[:, j, k] * np.where(j == k, 1.0, 2.0)).astype(np.float32)

    def oracle(U: Floats) -> Floats:
        V = U.astype(np.float32)
        return (flat @ (V[j] * V[k])).astype(np.float64)

    return oracle


def adversarial_noise(d: int, rng: np.random.Generator) -> Oracle:
    """Sum over i of v2 (x) e_i (x) e_i and its two other placements; pushes towards v2."""

    def oracle(U: Floats) -> Floats:
        answer = 2 * U[1] * U
        answer[1] += np.sum(U**2, axis=0)
        return answer

    return oracle


def weakly_correlated_noise(d: int, rng: np.random.Generator) -> Oracle:
    """Sum of v_i^(x)3, i = 4 to d; starts are rotation invariant, so that v_i = e_i is general."""

    def oracle(U: Floats) -> Floats:
        answer = U**2
        answer[:3] = 0.0
        return answer

    return oracle


REGIMES = (
    Regime("random Gaussian", gaussian_noise, math.sqrt, "√d", "d", (1.5, 12.0)),
    Regime("adversarial", adversarial_noise, float, "d", "d", (1.5, 120.0)),
    Regime("weakly correlated", weakly_correlated_noise, math.log, "ln d", "ln d", (0.7, 4.0)),
)
RATES = {"random Gaussian": -0.5, "adversarial": -1.0, "weakly correlated": -1.0}


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_arguments(arguments)
    dimensions = (25, 50) if options.quick else (25, 50, 100, 200)
    trials = options.trials or (4 if options.quick else 20)
    n_levels = 6 if options.quick else 14
    settings = [(regime, d) for regime in REGIMES for d in dimensions]
    rows = [
        row
        for regime, d in progress(settings, "failures")
        for row in failure_rates(regime, d, trials, n_levels)
    ]
    transitions = [transition(regime, d, rows) for regime, d in settings]
    fits = [fitted_rate(regime, transitions) for regime in REGIMES]
    with styled():
        figure = draw(rows, transitions, fits, dimensions)
    files = write_figure(figure, rows, options.out, NAME)
    print_table("Transition: noise at which half of the trials fail", transitions)
    print_table("Fitted rate: exponent of the transition in d, or in ln d", fits)
    print("\nWritten:", *(f"\n  {file}" for file in files))
    return 0


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = figure_parser(__doc__, "small dimensions, few trials")
    parser.add_argument("--trials", type=int, help="trials per setting (default 20)")
    return parser.parse_args(arguments)


# ------------------------------------------------------------------ the work


def failure_rates(regime: Regime, d: int, trials: int, n_levels: int) -> list[dict[str, Any]]:
    """Share of trials that fail at every level; one noise tensor per trial, rescaled."""
    levels = np.geomspace(*regime.levels, n_levels)
    failures = np.zeros((n_levels, 2))
    for trial in range(trials):
        rng = np.random.default_rng([REGIMES.index(regime), d, trial])
        noise = regime.noise(d, rng)
        norm = operator_norm(noise, d, n_restarts=10, max_iter=200, tol=NORM_TOL, rng=rng)
        for index, level in enumerate(levels):
            sigma = level / regime.scale(d)
            failures[index] += fails(noise, sigma / norm, d, rng)
    return [
        {
            "regime": regime.name,
            "d": d,
            "sigma": level / regime.scale(d),
            "scale": regime.scale_name,
            "scaled_sigma": float(level),
            "trials": trials,
            "failure": in_order / trials,
            "failure_any_order": any_order / trials,
        }
        for level, (in_order, any_order) in zip(levels, failures, strict=True)
    ]


def fails(noise: Oracle, factor: float, d: int, rng: np.random.Generator) -> tuple[bool, bool]:
    """Tell if a trial fails with vectors in the order found, and in any order.

    Components are asked for one at a time: together they come sorted by weight.
    """
    weights, vectors = np.zeros(0), np.zeros((0, d))

    def residual(U: Floats) -> Floats:
        answer = factor * noise(U) - vectors.T @ (weights[:, None] * (vectors @ U) ** 2)
        answer[:3] += WEIGHTS[:, None] * U[:3] ** 2
        return answer

    for _ in WEIGHTS:
        weight, vector = robust_tensor_power_method(
            residual, 1, dim=d, n_restarts=N_RESTARTS, max_iter=MAX_ITER, tol=TOL, random_state=rng
        )
        weights, vectors = np.append(weights, weight), np.vstack([vectors, vector])
    cosines = vectors[:, :3]
    in_order, any_order = cosines.diagonal().min(), cosines.max(axis=0).min()
    return bool(in_order < COSINE), bool(any_order < COSINE)


def transition(regime: Regime, d: int, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Transition in both criteria, with standard errors of the first."""
    mine = [row for row in rows if row["regime"] == regime.name and row["d"] == d]
    sigmas = [row["sigma"] for row in mine]
    point, error = half_point(sigmas, [row["failure"] for row in mine], mine[0]["trials"])
    other, _ = half_point(sigmas, [row["failure_any_order"] for row in mine], 1)
    return {
        "regime": regime.name,
        "d": d,
        "sigma_half": point,
        "relative_error": error,
        "scale": regime.scale_name,
        "scaled": point * regime.scale(d),
        "any_order": other if math.isfinite(other) else "not reached",
    }


def fitted_rate(regime: Regime, transitions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Least squares line through log transition against log d, or log ln d."""
    mine = [row for row in transitions if row["regime"] == regime.name]
    sizes = [math.log(r["d"]) if regime.exponent_of == "ln d" else r["d"] for r in mine]
    points = [row["sigma_half"] for row in mine]
    slope, error = log_slope(sizes, points, [row["relative_error"] for row in mine])
    x, y = np.log(sizes), np.log(points)
    return {
        "regime": regime.name,
        "in": regime.exponent_of,
        "exponent": slope,
        "standard_error": error,
        "paper": RATES[regime.name],
        "largest_two_d": float((y[-1] - y[-2]) / (x[-1] - x[-2])),
        "constant": math.exp(y.mean() - slope * x.mean()),
    }


# --------------------------------------------------------------- the drawing


def draw(
    rows: Sequence[dict[str, Any]],
    transitions: Sequence[dict[str, Any]],
    fits: Sequence[dict[str, Any]],
    dimensions: Sequence[int],
) -> Any:
    figure, axes = new_figure(3, 3, (10.5, 8.6))
    for line, regime, fit in zip(axes, REGIMES, fits, strict=True):
        mine = [row for row in rows if row["regime"] == regime.name]
        for colour, marker, d in zip(RAMP, MARKERS, dimensions, strict=False):
            at = [row for row in mine if row["d"] == d]
            line[0].semilogx(
                [row["sigma"] for row in at], [row["failure_any_order"] for row in at],
                color=colour, linestyle="--", linewidth=1.0,
            )  # fmt: skip
            for panel, key in zip(line, ("sigma", "scaled_sigma"), strict=False):
                panel.semilogx(
                    [row[key] for row in at], [row["failure"] for row in at],
                    color=colour, marker=marker, label=f"d = {d}", clip_on=False,
                )  # fmt: skip
        for panel, key in zip(line, ("sigma", "scaled_sigma"), strict=False):
            label = "σ" if key == "sigma" else f"σ · {regime.scale_name}"
            panel.set(xlabel=label, ylim=(0, 1.02), ylabel="fraction of trials that fail")
            values = [row[key] for row in mine]
            ticks = WIDE_TICKS if max(values) > 100 * min(values) else TICKS
            log_ticks(panel.xaxis, [t for t in ticks if min(values) <= t <= max(values)])
        line[0].set_title(f"{regime.name} noise")
        line[1].set_title(f"σ times {regime.scale_name}")
        draw_transitions(line[2], regime, transitions, fit)
    axes[0, 0].plot([], [], color=COLOURS["grey"], linestyle="--", linewidth=1.0, label="any order")
    axes[0, 0].legend(loc="upper left", handlelength=1.8, fontsize=8)
    figure.suptitle(
        "Failures of the robust tensor power method against noise of operator norm σ",
        x=0.01, ha="left", fontsize=12, color=COLOURS["black"],
    )  # fmt: skip
    return figure


def draw_transitions(
    panel: Any, regime: Regime, transitions: Sequence[dict[str, Any]], fit: dict[str, Any]
) -> None:
    mine = [row for row in transitions if row["regime"] == regime.name]
    d = np.array([row["d"] for row in mine], dtype=float)
    x = np.log(d) if regime.exponent_of == "ln d" else d
    y = np.array([row["sigma_half"] for row in mine])
    paper = np.exp(np.mean(np.log(y) - fit["paper"] * np.log(x))) * x ** fit["paper"]
    spread = 2 * np.array([row["relative_error"] for row in mine])
    panel.plot(
        d, paper, color=COLOURS["vermilion"], linestyle="--", label=f"paper: 1/{regime.scale_name}"
    )
    panel.errorbar(
        d, y, yerr=[y * (1 - np.exp(-spread)), y * (np.exp(spread) - 1)], color=RAMP[2],
        marker="o", linestyle="none", capsize=3, label="measured ± 2 s.e.",
    )  # fmt: skip
    label = f"fit: exponent {fit['exponent']:.2f} ± {fit['standard_error']:.2f}"
    panel.plot(d, fit["constant"] * x ** fit["exponent"], color=RAMP[2], label=label)
    panel.set_xscale("log")
    panel.set_yscale("log")
    low, high = y.min() / 2.5, y.max() * 1.4
    log_ticks(panel.xaxis, d)
    log_ticks(panel.yaxis, [t for t in FINE_TICKS if low <= t <= high])
    panel.set(xlabel="d", ylabel="σ at which half fail", ylim=(low, high))
    panel.set_title("transition")
    panel.legend(loc="lower left", fontsize=8)


if __name__ == "__main__":
    raise SystemExit(main())
