"""Claims about the papers' own figures, judged from the numbers beside them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from figure_wang_anandkumar import RATES, REGIMES, fitted_rate, transition
from verdicts import NO, PARTLY, YES, Claim, graded, plus_minus, short

__all__ = ["imtiaz_sarwate", "wang_anandkumar", "wei_ratings", "wei_tensors"]

Rows = Sequence[dict[str, Any]]
# Errors this close count as the same.
ALMOST = 1.5
COMPARABLE = 1.1


def wang_anandkumar(rows: Rows) -> list[Claim]:
    """Phase transitions of the three regimes of Appendix A."""
    claims = []
    for regime in REGIMES:
        dimensions = sorted({row["d"] for row in rows if row["regime"] == regime.name})
        found = [transition(regime, d, rows) for d in dimensions]
        fit = fitted_rate(regime, found)
        exponent, error, paper = fit["exponent"], fit["standard_error"], RATES[regime.name]
        # Within the factor ln d that the paper leaves open: the exponent can be off by as much as
        # that of ln d in d over the dimensions drawn.
        log_d = np.log(dimensions)
        slack = float(np.ptp(np.log(log_d)) / np.ptp(log_d)) if regime.exponent_of == "d" else 0.1
        close = abs(exponent - paper) <= 2 * error + slack
        falls = exponent + 2 * error < 0
        claims.append(
            Claim(
                "Figure 1",
                f"{regime.name} noise: trials begin to fail at σ = O(1/{regime.scale_name}), "
                "up to logarithms",
                f"exponent {plus_minus(exponent, error)} in {regime.exponent_of} for {short(paper)}"
                f"; {short(fit['largest_two_d'])} between the two largest d"
                + ("; within the factor ln d that is left open" if close else ""),
                YES if close else PARTLY if falls else NO,
            )
        )
    return claims


# ---------------------------------------------------------------- AGN and AVN


def imtiaz_sarwate(rows: Rows) -> list[Claim]:
    """Claims of section 4, in the paper's measure."""
    sizes = sorted({row["D"] for row in rows})
    middle = sorted({row["epsilon"] for row in rows if row["sweep"] == "N"})[0]

    def e_comp(D: int, method: str, sweep: str, place: float) -> float:
        key = "epsilon" if sweep == "epsilon" else "N"
        mine = [
            row for row in rows if (row["D"], row["method"], row["sweep"]) == (D, method, sweep)
        ]
        return min(mine, key=lambda row: abs(row[key] - place))["e_comp"]

    high = max(row["epsilon"] for row in rows)
    large = max(row["N"] for row in rows)
    at = {
        (D, method): e_comp(D, method, "epsilon", middle)
        for D in sizes
        for method in ("AGN", "AVN", "DP-TPM as printed", "DP-TPM with 1/N")
    }
    return [
        _convergence(sizes, e_comp, high),
        _order(sizes, at, middle),
        _avn(sizes, at),
        _many_documents(sizes, e_comp, large),
        _missing_n(sizes[0], e_comp, large),
    ]


def _convergence(sizes: Sequence[int], e_comp: Any, high: float) -> Claim:
    values = {
        (D, method): e_comp(D, method, "epsilon", high)
        for D in sizes
        for method in ("AGN", "AVN", "non-private")
    }
    return Claim(
        "section 4", "errors fall as ε grows, to the non-private error",
        f"ε = {short(high)}: " + "; ".join(
            f"D = {D}: AGN {short(values[D, 'AGN'])}, AVN {short(values[D, 'AVN'])}, "
            f"non-private {short(values[D, 'non-private'])}" for D in sizes
        ),
        graded(
            values[D, method] <= ALMOST * values[D, "non-private"]
            for D in sizes for method in ("AGN", "AVN")
        ),
    )  # fmt: skip


def _order(sizes: Sequence[int], at: Any, epsilon: float) -> Claim:
    others = ("AVN", "DP-TPM as printed", "DP-TPM with 1/N")
    return Claim(
        "section 4", "AGN outperforms AVN and DP-TPM",
        f"ε = {short(epsilon)}: " + "; ".join(
            f"D = {D}: AGN {short(at[D, 'AGN'])}, AVN {short(at[D, 'AVN'])}, "
            f"DP-TPM {short(at[D, 'DP-TPM as printed'])}" for D in sizes
        ),
        graded(at[D, "AGN"] < min(at[D, other] for other in others) for D in sizes),
    )  # fmt: skip


def _avn(sizes: Sequence[int], at: Any) -> Claim:
    ratios = [at[D, "AVN"] / at[D, "DP-TPM as printed"] for D in sizes]
    return Claim(
        "section 4", "AVN is much better than DP-TPM at D = 10, and slightly at D = 50",
        "error of AVN over that of DP-TPM: " + ", ".join(short(ratio) for ratio in ratios),
        graded((ratios[0] < 0.5, ratios[-1] < 1)),
    )  # fmt: skip


def _many_documents(sizes: Sequence[int], e_comp: Any, large: float) -> Claim:
    pairs = [(e_comp(D, "AGN", "N", large), e_comp(D, "non-private", "N", large)) for D in sizes]
    return Claim(
        "section 4", "with many documents AGN almost reaches the non-private error",
        f"N = {short(large)}: " + "; ".join(
            f"D = {D}: {short(mine)} against {short(exact)}"
            for D, (mine, exact) in zip(sizes, pairs, strict=True)
        ),
        graded(mine <= ALMOST * exact for mine, exact in pairs),
    )  # fmt: skip


def _missing_n(D: int, e_comp: Any, large: float) -> Claim:
    printed, mended, agn = (
        e_comp(D, method, "N", large) for method in ("DP-TPM as printed", "DP-TPM with 1/N", "AGN")
    )
    return Claim(
        "section 4", "DP-TPM is worst because of the amount of noise at each step",
        f"D = {D}, N = {short(large)}: {short(printed)}, and {short(mended)} with the 1/N that its "
        f"sensitivity misses; AGN {short(agn)}",
        graded((printed > agn, mended > 0.9 * printed)),
    )  # fmt: skip


# ----------------------------------------------------------------- completion


def wei_tensors(rows: Rows) -> list[Claim]:
    """Claims about synthetic tensors."""
    error = {(row["model"], row["method"], row["epsilon"]): row["rmse"] for row in rows}
    epsilons = sorted({row["epsilon"] for row in rows})
    base = {model: error[model, "SGD, no noise", epsilons[0]] for model in ("CP", "Tucker")}
    gradient = [error["CP", _published("gradient"), at] / base["CP"] for at in epsilons]
    order = [
        error[m, _published("output"), at] <= error[m, _published("input"), at]
        for m in ("CP", "Tucker")
        for at in epsilons
    ]
    ratio = base["Tucker"] / base["CP"]
    return [
        Claim(
            "Figure 2", "gradient perturbation is close to the baseline at every ε",
            f"CP: {short(min(gradient), 3)} to {short(max(gradient), 3)} times the baseline's "
            f"{short(base['CP'], 3)}; but the mean alone has "
            f"{short(error['CP', 'mean alone', epsilons[0]], 3)}",
            YES if max(gradient) <= COMPARABLE else NO,
        ),
        Claim(
            "Figure 2", "output perturbation comes next, before input perturbation",
            f"at {sum(order)} of {len(order)} settings; output depends on L, which is not given",
            graded(order),
        ),
        Claim(
            "Figure 2", "no large difference between CP and Tucker",
            f"baselines {short(base['CP'], 3)} and {short(base['Tucker'], 3)}",
            YES if ratio <= ALMOST and ratio >= 1 / ALMOST else PARTLY if ratio <= 2 else NO,
        ),
    ]  # fmt: skip


def wei_ratings(rows: Rows) -> list[Claim]:
    """The claim about MovieLens."""
    error = {(row["model"], row["method"], row["epsilon"]): row["rmse"] for row in rows}
    epsilons = sorted({row["epsilon"] for row in rows})
    baseline = error["CP", "SGD, no noise", epsilons[0]]
    kinds = ("input", "gradient", "output")
    values = {kind: max(error["CP", _published(kind), e] for e in epsilons) for kind in kinds}
    return [
        Claim(
            "Figure 3", "all three are comparable to the baseline on MovieLens",
            f"CP, largest error over ε: baseline {short(baseline, 3)}, mean alone "
            f"{short(error['CP', 'mean alone', epsilons[0]], 3)}; "
            + ", ".join(f"{kind} {short(value, 3)}" for kind, value in values.items()),
            graded(value <= COMPARABLE * baseline for value in values.values()),
        )
    ]  # fmt: skip


def _published(kind: str) -> str:
    return f"{kind}, as published (not private)"
