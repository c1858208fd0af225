"""Lemma E.1 of Wang & Anandkumar (2016): iterates with noise stay incoherent.

::

    python papers/theorem_incoherence.py            # some seconds
    python papers/theorem_incoherence.py --quick

u-bar = T(I, u, u) + sigma z, with T = sum_i lambda_i v_i^(x)3, weights from 2 to 1 and components
of incoherence mu_0. Drawn is the largest |u-bar|_inf / |u-bar|_2 of 2000 draws of u and z, with u
on the sphere or equal to a component, beside sqrt(mu_0 k log(d) / d), the rate of the lemma.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from figure_files import COLOURS, MARKERS, figure_parser, log_ticks, new_figure, present, progress
from fitted_rates import log_slope
from incoherent_components import incoherent_components
from numpy.typing import NDArray
from tensor_diagnostics import cp_contraction, incoherence
from verdicts import Claim, closeness, graded, short

NAME = "wang-anandkumar-lemma-e-1"
# Of |sigma z| to |T(I, u, u)|: without noise, and up to noise alone.
NOISES = (0.0, 0.1, 0.3, 1.0, 3.0, 100.0)
DRAWS = 2000
SETTINGS = [(d, 4, 1) for d in (64, 256, 1024, 4096)]
SETTINGS += [(1024, 4, mu0) for mu0 in (4, 16, 64, 256)]
SETTINGS += [(1024, k, 1) for k in (1, 16, 64, 256)]
Floats = NDArray[np.float64]


def main(arguments: Sequence[str] | None = None) -> int:
    options = figure_parser(__doc__, "few draws").parse_args(arguments)
    draws = 50 if options.quick else DRAWS
    rows = [row for s in progress(SETTINGS, "lemma E.1") for row in ratios(*s, draws)]
    present(
        draw, rows, options.out, NAME, "Lemma E.1: largest ratio over its rate", constants(rows)
    )
    return 0


def ratios(d: int, k: int, mu0: int, draws: int) -> list[dict[str, Any]]:
    """Median and maximum over draws, for every size of noise and both kinds of u."""
    rng = np.random.default_rng([51, d, k, mu0])
    V = incoherent_components(d, k, mu0)
    contraction = cp_contraction(np.linspace(2.0, 1.0, k), V)
    rate = float(np.sqrt(incoherence(V) * k * np.log(d) / d))
    rows = []
    for kind in ("sphere", "component"):
        if kind == "sphere":
            U = rng.standard_normal((d, draws))
            U /= np.linalg.norm(U, axis=0)
        else:
            U = V[rng.integers(k, size=draws)].T
        answer = contraction(U)
        size = np.linalg.norm(answer, axis=0)
        for noise in NOISES:
            bar = answer + noise * size / np.sqrt(d) * rng.standard_normal((d, draws))
            ratio = np.abs(bar).max(axis=0) / np.linalg.norm(bar, axis=0)
            rows.append(
                {
                    "d": d,
                    "k": k,
                    "mu0": mu0,
                    "u": kind,
                    "noise": noise,
                    "draws": draws,
                    "ratio_median": float(np.median(ratio)),
                    "ratio_max": float(ratio.max()),
                    "rate": rate,
                }
            )
    return rows


def constants(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Largest ratio over the rate, for every d, k and mu_0."""
    table = []
    for d, k, mu0 in dict.fromkeys((row["d"], row["k"], row["mu0"]) for row in rows):
        mine = [row for row in rows if (row["d"], row["k"], row["mu0"]) == (d, k, mu0)]
        worst = max(mine, key=lambda row: row["ratio_max"])
        table.append(
            {
                "d": d,
                "k": k,
                "mu0": mu0,
                "largest ratio": worst["ratio_max"],
                "at u": worst["u"],
                "at noise": worst["noise"],
                "over its rate": worst["ratio_max"] / worst["rate"],
            }
        )
    return table


def claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    """Verdict on the bound, one constant for all settings, and on its rate in d."""
    table = constants(rows)
    over = [row["over its rate"] for row in table]
    sweep = [row for row in table if (row["k"], row["mu0"]) == (4, 1)]
    d = [row["d"] for row in sweep]
    slope, _ = log_slope(
        d, [row["largest ratio"] / np.sqrt(np.log(row["d"])) for row in sweep], np.zeros(len(d))
    )
    return [
        Claim(
            "Lemma E.1", "‖ū‖∞ / ‖ū‖₂ = O(√(μ₀ k log d / d)), with overwhelming probability",
            f"largest of {rows[0]['draws']} draws: {short(min(over))} to {short(max(over))} times "
            f"that rate in {len(table)} settings; exponent {short(slope)} in d beside √log d",
            graded((max(over) <= 3, closeness(slope, 0.0, -0.5))),
        )
    ]  # fmt: skip


def draw(rows: Sequence[dict[str, Any]]) -> Any:
    figure, axes = new_figure(1, 3, (10.5, 3.6))
    sweeps = (
        ("d", lambda row: (row["k"], row["mu0"]) == (4, 1), "k = 4, μ₀ = 1"),
        ("mu0", lambda row: (row["d"], row["k"]) == (1024, 4), "d = 1024, k = 4"),
        ("k", lambda row: (row["d"], row["mu0"]) == (1024, 1), "d = 1024, μ₀ = 1"),
    )
    for panel, (key, chosen, title) in zip(axes[0], sweeps, strict=True):
        mine = sorted((row for row in rows if chosen(row)), key=lambda row: row[key])
        draw_sweep(panel, mine, key)
        panel.set_title(title)
    axes[0, 0].set_ylabel("largest ‖ū‖∞ / ‖ū‖₂")
    axes[0, 0].legend(loc="lower left", fontsize=8)
    return figure


def draw_sweep(panel: Any, rows: Sequence[dict[str, Any]], key: str) -> None:
    x = sorted({row[key] for row in rows})
    looks = (
        ("no noise", lambda row: row["noise"] == 0.0, COLOURS["blue"]),
        ("noise as large", lambda row: row["noise"] == 1.0, COLOURS["orange"]),
        ("noise alone", lambda row: row["noise"] == 100.0, COLOURS["grey"]),
    )
    for marker, (label, chosen, colour) in zip(MARKERS, looks, strict=False):
        y = [max(r["ratio_max"] for r in rows if r[key] == at and chosen(r)) for at in x]
        panel.plot(x, y, color=colour, marker=marker, label=label)
    rate = [next(r["rate"] for r in rows if r[key] == at) for at in x]
    panel.plot(x, rate, color=COLOURS["vermilion"], linestyle="--", label="√(μ₀ k log d / d)")
    panel.set(xscale="log", yscale="log", xlabel="μ₀" if key == "mu0" else key)
    log_ticks(panel.xaxis, x)
    log_ticks(panel.yaxis, (0.03, 0.1, 0.3, 1))


if __name__ == "__main__":
    raise SystemExit(main())
