"""Theorem 4.2 of Wang & Anandkumar (2016): the epsilon at which the first component is found.

::

    python papers/theorem_private_power_method.py            # some minutes
    python papers/theorem_private_power_method.py --quick    # some seconds

T = 10,000 (v_1^(x)3 + .5 v_2^(x)3 + ... + .5 v_k^(x)3), with components of incoherence exactly
mu_0. Algorithm 3 has its printed noise, for all k components, delta = 1e-6, L = 2 k ln k + 4 starts
and R = 2 ln d + 5 steps. In input perturbation all entries get Gaussian noise once, calibrated to
the same neighbours, and the power method follows. A trial succeeds if |v_1 - v_1-hat| <=
1 / sqrt(d), as in the theorem; drawn is the epsilon at which half of 20 trials do. All noise
scales as 1 / epsilon: with weights ten times as large, a tenth of each epsilon would do. Dotted:
the epsilon that the same noise really gives, by exact composition.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from figure_files import COLOURS, figure_parser, log_ticks, new_figure, present, progress
from figure_wang_anandkumar import gaussian_noise
from fitted_rates import half_point, log_slope
from incoherent_components import incoherent_components
from numpy.typing import NDArray
from tensor_diagnostics import cp_contraction
from verdicts import Claim, closeness, graded, plus_minus, short

from sktensor_dp.privacy.calibration import gaussian_epsilon
from sktensor_dp.published.power_method import noise_multiplier, power_method_loop
from sktensor_dp.tensor import robust_tensor_power_method

NAME = "wang-anandkumar-theorem-4-2"
LARGEST, OTHERS, DELTA = 1e4, 0.5, 1e-6
# Of a sum over the six orders of one entry: of T(I, u, u) in units of |u|_inf^2, and of T itself.
SENSITIVITY = 6.0
# Times what is expected at each setting.
SPREAD = np.geomspace(1 / 12, 6, 17)
TRIALS = 20
Floats = NDArray[np.float64]
Setting = tuple[str, str, int, int, int]
METHODS = {
    "incoherent": ("Algorithm 3, μ₀ = 1", COLOURS["blue"], "o"),
    "axes": ("Algorithm 3, μ₀ = d / k", COLOURS["purple"], "D"),
    "input": ("input perturbation, μ₀ = 1", COLOURS["vermilion"], "s"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = figure_parser(__doc__, "small dimensions, few trials").parse_args(arguments)
    trials = 4 if options.quick else TRIALS
    tasks = settings(options.quick)
    rows = [row for s in progress(tasks, "theorem 4.2") for row in successes(s, trials)]
    present(
        draw, rows, options.out, NAME, "Theorem 4.2: exponents of the epsilon needed", rates(rows)
    )
    return 0


def settings(quick: bool) -> list[Setting]:
    """Sweep, method, d, k and mu_0."""
    wide = (16, 64) if quick else (32, 64, 128, 256, 512, 1024, 2048)
    narrow = (16, 32) if quick else (16, 32, 64, 128)
    d = 64 if quick else 1024
    chosen: list[Setting] = [("d", "input", n, 4, 1) for n in narrow[::-1]]
    chosen += [("d", "incoherent", n, 4, 1) for n in wide]
    chosen += [("d", "axes", n, 4, n // 4) for n in wide]
    chosen += [("mu0", "incoherent", d, 4, mu0) for mu0 in (1, 2, 4, 8, 16, 32, 64) if 4 * mu0 <= d]
    chosen += [("k", "incoherent", d, k, 1) for k in (2, 4, 8, 16, 32)]
    return chosen


# ------------------------------------------------------------------ the work


def successes(setting: Setting, trials: int) -> list[dict[str, Any]]:
    """Share of trials that succeed, one row per epsilon."""
    sweep, method, d, k, mu0 = setting
    V = np.eye(d)[:k] if method == "axes" else incoherent_components(d, k, mu0)
    successes = np.zeros(len(SPREAD))
    levels = SPREAD * expected_epsilon(method, d, k, mu0)
    for trial in range(trials):
        rng = np.random.default_rng([42, len(sweep), len(method), d, k, mu0, trial])
        # One tensor of noise, scaled to every epsilon.
        tensor = gaussian_noise(d, rng) if method == "input" else None
        for index, epsilon in enumerate(levels):
            if tensor is None:
                vector = by_iteration(V, float(epsilon), rng)
            else:
                vector = by_input(V, tensor, float(epsilon), rng)
            successes[index] += np.linalg.norm(vector - V[0]) <= d**-0.5
    return [
        {
            "sweep": sweep,
            "method": method,
            "d": d,
            "k": k,
            "mu0": mu0,
            "epsilon": float(epsilon),
            "exact_epsilon": exact_epsilon(method, d, k, float(epsilon)),
            "trials": trials,
            "success": float(count / trials),
        }
        for epsilon, count in zip(levels, successes, strict=True)
    ]


def expected_epsilon(method: str, d: int, k: int, mu0: int) -> float:
    """Where noise of the last step is of the order of what is asked: the centre of the grid."""
    if method == "input":
        return 3 * SENSITIVITY * math.sqrt(2 * math.log(1.25 / DELTA)) * d / LARGEST
    concentration = d if method == "axes" else mu0
    return 3 * SENSITIVITY * noise_multiplier(1.0, DELTA, n_queries(d, k)) * concentration / LARGEST


def weights_of(k: int) -> Floats:
    return LARGEST * np.r_[1.0, np.full(k - 1, OTHERS)]


def n_starts(k: int) -> int:
    return math.ceil(2 * k * math.log(k)) + 4


def n_steps(d: int) -> int:
    return math.ceil(2 * math.log(d)) + 5


def n_queries(d: int, k: int) -> int:
    """K of Algorithm 3, for all components."""
    return k * n_starts(k) * (n_steps(d) + 1)


def exact_epsilon(method: str, d: int, k: int, epsilon: float) -> float:
    """Epsilon of the printed noise, all queries composed exactly."""
    if method == "input":
        mu = epsilon / math.sqrt(2 * math.log(1.25 / DELTA))
    else:
        n = n_queries(d, k)
        mu = math.sqrt(n) / noise_multiplier(epsilon, DELTA, n)
    return gaussian_epsilon(mu, DELTA)


def by_iteration(V: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """First vector of Algorithm 3."""
    k, d = V.shape
    oracle = cp_contraction(weights_of(k), V)
    nu = SENSITIVITY * noise_multiplier(epsilon, DELTA, n_queries(d, k))

    def step(U: Floats) -> Floats:
        deviation = nu * np.abs(U).max(axis=0) ** 2
        return oracle(U) + deviation * rng.standard_normal(U.shape)

    def value(U: Floats) -> Floats:
        deviation = nu * np.abs(U).max(axis=0) ** 3
        return np.sum(U * oracle(U), axis=0) + deviation * rng.standard_normal(U.shape[1])

    vectors = power_method_loop(
        step, value, d, 1, n_restarts=n_starts(k), max_iter=n_steps(d), rng=rng
    )[1]
    return vectors[0]


def by_input(V: Floats, noise: Any, epsilon: float, rng: np.random.Generator) -> Floats:
    """First vector of the power method on a tensor with noise at every entry, symmetrised."""
    k, d = V.shape
    exact = cp_contraction(weights_of(k), V)
    sigma = SENSITIVITY * math.sqrt(2 * math.log(1.25 / DELTA)) / epsilon
    vectors = robust_tensor_power_method(
        lambda U: exact(U) + sigma * noise(U), 1, dim=d, n_restarts=n_starts(k),
        max_iter=n_steps(d), tol=1e-6, random_state=rng,
    )[1]  # fmt: skip
    return vectors[0]


# ------------------------------------------------------------------ the rates


def needed(
    rows: Sequence[dict[str, Any]], sweep: str, method: str
) -> tuple[list[float], list[float], list[float]]:
    """Settings of a sweep, epsilon at which half of the trials succeed, relative errors."""
    mine = [row for row in rows if (row["sweep"], row["method"]) == (sweep, method)]
    points = []
    for at in sorted({row[sweep] for row in mine}):
        here = [row for row in mine if row[sweep] == at]
        levels, shares = [row["epsilon"] for row in here], [row["success"] for row in here]
        points.append((float(at), *half_point(levels, shares, here[0]["trials"])))
    x, y, error = (list(column) for column in zip(*points, strict=True))
    return x, y, error


def rates(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    table = []
    for sweep, method, theorem in (
        ("d", "incoherent", "0, up to logarithms"),
        ("d", "axes", "1"),
        ("d", "input", "1"),
        ("mu0", "incoherent", "1"),
        ("k", "incoherent", "2"),
    ):
        x, y, error = needed(rows, sweep, method)
        slope, spread = log_slope(x, y, error)
        table.append(
            {
                "in": sweep, "method": METHODS[method][0], "exponent": slope, "s.e.": spread,
                "theorem": theorem, "at the smallest": y[0], "at the largest": y[-1],
                "exact": exact_epsilon(method, *last_of(rows, sweep, method), y[-1]),
            }
        )  # fmt: skip
    return table


def claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    """Verdicts on epsilon against d, mu_0 and k, and on input perturbation."""
    table = {(row["in"], row["method"]): row for row in rates(rows)}

    def exponent(sweep: str, method: str) -> tuple[float, float]:
        row = table[sweep, METHODS[method][0]]
        return row["exponent"], row["s.e."]

    flat, rising = exponent("d", "incoherent"), exponent("d", "input")
    spread, rank = exponent("mu0", "incoherent"), exponent("k", "incoherent")
    axes = exponent("d", "axes")
    x, y, error = needed(rows, "d", "incoherent")
    # The theorem has log d, and K and starts bring in more of it.
    beside = log_slope(x, np.array(y) / np.log(x), error)
    x_input, y_input, _ = needed(rows, "d", "input")
    # Where the two lines meet, each continued from its last point.
    widest, both = x_input[-1], (y_input[-1], float(np.interp(x_input[-1], x, y)))
    meet = widest * math.exp(math.log(both[1] / both[0]) / (rising[0] - flat[0]))
    exact = [
        exact_epsilon(method, int(widest), 4, epsilon)
        for method, epsilon in zip(("input", "incoherent"), both, strict=True)
    ]
    return [
        Claim(
            "Theorem 4.2", "ε needed does not depend polynomially on d if μ₀ is constant",
            f"ε = {short(y[0])} at d = {x[0]:.0f}, {short(y[-1])} at {x[-1]:.0f}: exponent "
            f"{plus_minus(*flat)} in d, {plus_minus(*beside)} beside a factor log d",
            graded((closeness(*beside, 0.0),)),
        ),
        Claim(
            "Theorem 4.2", "ε grows with μ₀, at most as μ₀",
            f"exponent {plus_minus(*spread)} in μ₀; with μ₀ = d / k, {plus_minus(*axes)} in d",
            graded((spread[0] <= 1 + 2 * spread[1] + 0.1, spread[0] > 0)),
        ),
        Claim(
            "Theorem 4.2", "and with k, at most as k²",
            f"exponent {plus_minus(*rank)} in k", graded((rank[0] <= 2 + 2 * rank[1] + 0.1,)),
        ),
        Claim(
            "section 4", "input perturbation needs ε = Ω̃(d)",
            f"exponent {plus_minus(*rising)} in d", graded((closeness(*rising, 1.0),)),
        ),
        Claim(
            "section 4", "so that it is useless in high dimensions, and Algorithm 3 is not",
            f"at d = {widest:.0f} it needs ε = {short(both[0])}, Algorithm 3 {short(both[1])}; "
            f"the lines meet at d = {short(meet)}. By exact composition this noise gives ε = "
            f"{short(exact[0])} and {short(exact[1])}",
            graded((rising[0] > flat[0], both[0] > both[1])),
        ),
    ]  # fmt: skip


def last_of(rows: Sequence[dict[str, Any]], sweep: str, method: str) -> tuple[int, int]:
    """Dimension and rank at the end of a sweep."""
    mine = [row for row in rows if (row["sweep"], row["method"]) == (sweep, method)]
    last = max(mine, key=lambda row: row[sweep])
    return last["d"], last["k"]


# --------------------------------------------------------------- the drawing


def draw(rows: Sequence[dict[str, Any]]) -> Any:
    figure, axes = new_figure(1, 3, (10.5, 4.2))
    for method in METHODS:
        draw_line(axes[0, 0], rows, "d", method, None)
        x, y, _ = needed(rows, "d", method)
        exact = [exact_epsilon(method, int(d), 4, at) for d, at in zip(x, y, strict=True)]
        axes[0, 0].plot(x, exact, color=METHODS[method][1], linestyle=":")
    axes[0, 0].plot([], [], color=COLOURS["grey"], linestyle=":", label="same noise, exact ε")
    for panel, sweep, theorem in zip(axes[0, 1:], ("mu0", "k"), (1, 2), strict=True):
        draw_line(panel, rows, sweep, "incoherent", theorem)
    log_ticks(axes[0, 0].xaxis, sorted({row["d"] for row in rows if row["sweep"] == "d"})[::2])
    axes[0, 0].set(title="against d, k = 4", xlabel="d", ylabel="ε at which half succeed")
    d = max(row["d"] for row in rows if row["sweep"] == "k")
    axes[0, 1].set(title=f"against μ₀, d = {d}, k = 4", xlabel="μ₀")
    axes[0, 2].set(title=f"against k, d = {d}, μ₀ = 1", xlabel="k")
    for panel in axes[0]:
        # Below the panel, where no line is and the words have room.
        panel.legend(loc="upper left", bbox_to_anchor=(-0.05, -0.18), fontsize=8)
    return figure


def draw_line(
    panel: Any, rows: Sequence[dict[str, Any]], sweep: str, method: str, theorem: int | None
) -> None:
    x, y, error = (np.array(column) for column in needed(rows, sweep, method))
    slope, spread = log_slope(x, y, error)
    name, colour, marker = METHODS[method]
    label = f"{name if theorem is None else 'measured'}: exponent {slope:.2f} ± {spread:.2f}"
    panel.errorbar(x, y, yerr=2 * error * y, color=colour, marker=marker, capsize=3, label=label)
    if theorem is not None:
        power = "μ₀" if sweep == "mu0" else "k²"
        line = y[-1] * (x / x[-1]) ** theorem
        panel.plot(
            x, line, color=COLOURS["grey"], linestyle="--", label=f"theorem: at most {power}"
        )
    panel.set(xscale="log", yscale="log")
    log_ticks(panel.xaxis, x)


if __name__ == "__main__":
    raise SystemExit(main())
