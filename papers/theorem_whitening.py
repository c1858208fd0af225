"""Proposition B.1 of Wang & Anandkumar (2016): whitening by a random marginal of a tensor.

::

    python papers/theorem_whitening.py            # a minute
    python papers/theorem_whitening.py --quick    # some seconds

T = sum_i v_i^(x)3, k = 3, plus symmetric Gaussian noise E of given operator norm. The span of the
v_i is estimated by the leading eigenvectors of M(theta) = (T + E)(I, I, theta), for 200 random
theta to each of 10 noise tensors, and by the power method on T + E itself. What is drawn is the
quantile at .9, the proposition's probability, of the spectral distance of projections, and the
smallest |E| at which that quantile is 1/2.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from figure_files import COLOURS, MARKERS, figure_parser, log_ticks, new_figure, present, progress
from fitted_rates import log_slope
from numpy.typing import NDArray
from tensor_diagnostics import (
    marginal_span,
    operator_norm,
    random_marginal_bound,
    subspace_distance,
)
from verdicts import Claim, closeness, graded, plus_minus, short

from sktensor_dp.tensor import robust_tensor_power_method
from sktensor_dp.tensor.symmetric import symmetrize, tensor_oracle

NAME = "wang-anandkumar-proposition-b-1"
RANK, QUANTILE = 3, 0.9
LEVELS = np.geomspace(1e-4, 1.0, 9)
Floats = NDArray[np.float64]
RAMP = ("#a9cfe8", "#7fb8dd", "#3d8fc4", "#0b2c52")


def main(arguments: Sequence[str] | None = None) -> int:
    options = figure_parser(__doc__, "small dimensions, few trials").parse_args(arguments)
    dimensions = (8, 16) if options.quick else (16, 32, 64, 128)
    n_noises, n_thetas = (2, 20) if options.quick else (10, 200)
    tasks = [(d, trial) for d in dimensions for trial in range(n_noises)]
    rows = [
        row
        for d, trial in progress(tasks, "proposition B.1")
        for row in distances(d, trial, n_thetas)
    ]
    present(draw, rows, options.out, NAME, "Rates of Proposition B.1", rates(rows))
    return 0


# ------------------------------------------------------------------ the work


def distances(d: int, trial: int, n_thetas: int) -> list[dict[str, Any]]:
    """Quantiles over theta at every level of one noise tensor."""
    rng = np.random.default_rng([91, d, trial])
    E = symmetrize(rng.standard_normal((d, d, d)))
    E /= operator_norm(tensor_oracle(E), d, max_iter=200, tol=1e-4, rng=rng)
    V = np.eye(d)[:RANK]
    # Starts are rotation invariant, and so is the law of theta: these v_i are general.
    T = np.zeros((d, d, d))
    T[range(RANK), range(RANK), range(RANK)] = 1.0
    thetas = rng.standard_normal((n_thetas, d))
    thetas /= np.linalg.norm(thetas, axis=1, keepdims=True)
    return [level_row(d, trial, float(level), T + level * E, V, thetas, rng) for level in LEVELS]


def level_row(
    d: int, trial: int, level: float, noisy: Floats, V: Floats, thetas: Floats,
    rng: np.random.Generator,
) -> dict[str, Any]:  # fmt: skip
    spans = [marginal_span(noisy, RANK, theta) for theta in thetas]
    found = np.array([subspace_distance(V.T, span) for span in spans])
    bounds = np.array([random_marginal_bound(np.ones(RANK), V, t, level) for t in thetas])
    vectors = robust_tensor_power_method(
        tensor_oracle(noisy), RANK, dim=d, n_restarts=15, max_iter=50, tol=1e-8, random_state=rng
    )[1]
    return {
        "d": d,
        "trial": trial,
        "noise_norm": level,
        "thetas": len(thetas),
        "marginal_quantile": float(np.quantile(found, QUANTILE)),
        "marginal_median": float(np.median(found)),
        "power_method": subspace_distance(V.T, vectors.T),
        # Of the bound with constants, in all draws.
        "share_above_bound": float(np.mean(found > bounds * (1 + 1e-9))),
    }


# ------------------------------------------------------------------ the rates


def means(rows: Sequence[dict[str, Any]], d: int, key: str) -> tuple[Floats, Floats]:
    """Geometric mean over noise tensors at each level, and its relative standard error."""
    mine = [row[key] for row in rows if row["d"] == d]
    logs = np.log(np.array(mine).reshape(-1, len(LEVELS)))
    return np.exp(logs.mean(axis=0)), logs.std(axis=0, ddof=1) / math.sqrt(len(logs))


def half_distance(rows: Sequence[dict[str, Any]], d: int, key: str) -> float:
    """Noise at which the distance reaches 1/2, by interpolation; at most the last level."""
    middle, _ = means(rows, d, key)
    rising = np.maximum.accumulate(np.log(middle))
    return float(np.exp(np.interp(math.log(0.5), rising, np.log(LEVELS))))


def rates(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Exponents of the distance in |E| and in d, of both methods, and breaks of the bound."""
    table = []
    dimensions = sorted({row["d"] for row in rows})
    for method, key, theorem in (
        ("marginal", "marginal_quantile", 0.5),
        ("power method", "power_method", 0.0),
    ):
        at = [means(rows, d, key) for d in dimensions]
        # Small noise: levels up to 1e-2, where no distance is near its limit of 1.
        small = LEVELS < 0.02
        slopes = [log_slope(LEVELS[small], m[small], e[small]) for m, e in at]
        table.append(
            {
                "method": method,
                "exponent in |E|": float(np.mean([slope for slope, _ in slopes])),
                "theorem": 1.0,
                **dict(
                    zip(
                        ("exponent in d", "s.e."),
                        log_slope(dimensions, [m[0] for m, _ in at], [e[0] for _, e in at]),
                        strict=True,
                    )
                ),
                "theorem ": theorem,
                "largest sqrt(d) |E| constant": float(
                    max(
                        (m[small] / (np.sqrt(d) * LEVELS[small])).max()
                        for d, (m, _) in zip(dimensions, at, strict=True)
                    )
                ),
                "draws above the bound": float(max(row["share_above_bound"] for row in rows)),
            }
        )
    return table


def claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    """Verdicts on the rate, the bound with constants, and the comparison with Theorem 2.2."""
    marginal, direct = rates(rows)
    d = max(row["d"] for row in rows)
    ratio = means(rows, d, "marginal_quantile")[0][0] / means(rows, d, "power_method")[0][0]
    of_d = (marginal["exponent in d"], marginal["s.e."])
    limits = [half_distance(rows, d, key) for key in ("marginal_quantile", "power_method")]
    return [
        Claim(
            "Proposition B.1", "the spans differ by at most Õ(√d ‖E‖ / λ_min), with probability .9",
            f"quantile at .9: exponent {short(marginal['exponent in |E|'])} in ‖E‖, "
            f"{plus_minus(*of_d)} in d; at most "
            f"{short(marginal['largest sqrt(d) |E| constant'])} √d ‖E‖",
            graded((
                abs(marginal["exponent in |E|"] - 1) < 0.1,
                closeness(*of_d, 0.5),
            )),
        ),
        Claim(
            "Proposition B.1", "Wedin's bound with constants, min_i λ_i |v_i'θ| at hand",
            f"exceeded in {short(100 * marginal['draws above the bound'])} % of draws",
            graded((marginal["draws above the bound"] == 0,)),
        ),
        Claim(
            "Appendix B", "whitening by a marginal bears less noise than the power method",
            f"d = {d}, small noise: distance {short(ratio)} times that of the power method "
            f"(exponent {plus_minus(direct['exponent in d'], direct['s.e.'])} in d); "
            f"a distance of 1/2 at ‖E‖ = {short(limits[0])}, and at {short(limits[1])}"
            + (" or more" if limits[1] >= LEVELS[-1] else ""),
            graded((ratio > 1, limits[0] < limits[1])),
        ),
    ]  # fmt: skip


# --------------------------------------------------------------- the drawing


def draw(rows: Sequence[dict[str, Any]]) -> Any:
    figure, axes = new_figure(1, 3, (10.5, 3.8))
    dimensions = sorted({row["d"] for row in rows})
    for colour, marker, d in zip(RAMP, MARKERS, dimensions, strict=False):
        look = {"color": colour, "marker": marker}
        middle, error = means(rows, d, "marginal_quantile")
        bars = {"yerr": 2 * error * middle, "capsize": 2, "elinewidth": 0.9}
        axes[0, 0].errorbar(LEVELS, middle, label=f"d = {d}", **bars, **look)
        axes[0, 1].errorbar(math.sqrt(d) * LEVELS, middle, label=f"d = {d}", **bars, **look)
        axes[0, 0].plot(LEVELS, means(rows, d, "power_method")[0], color=colour, linestyle="--")
    axes[0, 0].plot([], [], color=COLOURS["grey"], linestyle="--", label="power method")
    axes[0, 0].set(xlabel="‖E‖", ylabel="distance of spans, quantile .9")
    axes[0, 1].set(xlabel="√d ‖E‖", ylabel="distance of spans, quantile .9")
    axes[0, 0].set_title("marginal, and power method")
    axes[0, 1].set_title("against √d ‖E‖")
    for panel in axes[0, :2]:
        panel.set(xscale="log", yscale="log")
        panel.legend(loc="lower right", fontsize=8)
    draw_limits(axes[0, 2], rows, dimensions)
    return figure


def draw_limits(panel: Any, rows: Sequence[dict[str, Any]], dimensions: Sequence[int]) -> None:
    d = np.array(dimensions, dtype=float)
    for key, label, colour, marker in (
        ("power_method", "power method (at least)", COLOURS["blue"], "s"),
        ("marginal_quantile", "marginal", RAMP[-1], "o"),
    ):
        limit = np.array([half_distance(rows, n, key) for n in dimensions])
        panel.plot(d, limit, color=colour, marker=marker, label=label)
    line = np.exp(np.mean(np.log(limit) + 0.5 * np.log(d))) / np.sqrt(d)
    panel.plot(d, line, color=COLOURS["vermilion"], linestyle="--", label="1/√d")
    panel.set(xscale="log", yscale="log", xlabel="d", ylabel="‖E‖ at a distance of 1/2")
    panel.set_title("noise borne")
    log_ticks(panel.xaxis, d)
    panel.legend(loc="center left", fontsize=8)


if __name__ == "__main__":
    raise SystemExit(main())
