"""What the largest part of a budget that a check before a fit may take is worth.

It is set to a quarter and to four times of its value. Rows have numbers from 0 to 1 in four
columns, where some have a code in the first one, which counts as 0. Where the check stops the fit,
the codes are removed, and the rest of the budget fits the others. The change of the root mean
square error of the averages over four draws is in percent, with its standard error over five such;
positive numbers say that the value helps.

    python -m benchmarks ablations_of_checks
    python -m benchmarks ablations_of_checks --quick
"""

import math
from functools import partial

import numpy as np

from benchmarks.ablations import SEEDS, TITLE, Ablation, changes
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import (
    BudgetAccountant,
    NotEnoughDataError,
    PrivateGaussianMixture,
    check_inputs,
    private_check,
)
from sktensor_dp.privacy.calibration import gaussian_mu

__all__ = ["ABLATIONS", "run"]

N_COLUMNS, DELTA, DRAWS = 4, 1e-6, 4
# Number of rows, epsilon, and share of rows with a code.
SETS = ((20_000, 0.5, 0.0), (20_000, 0.5, 0.01), (10_000, 1.0, 0.01), (4000, 4.0, 0.01))
ABLATIONS = [
    Ablation(f"MOST_FRACTION = {most}", (), {"private_check.MOST_FRACTION": most})
    for most in (0.01, 0.16)
]


def error(n: int, epsilon: float, coded: float, seed: int) -> float:
    """Root mean square error of averages that are fitted after a check."""
    squares = []
    for draw in range(DRAWS):
        rng, budget = np.random.default_rng([seed, draw]), BudgetAccountant(epsilon, DELTA)
        clean = rng.beta(4, 2, (n, N_COLUMNS))
        X, n_coded = clean.copy(), round(coded * n)
        X[:n_coded, 0] = 0.0
        fits = np.ones(n, bool)
        fits[:n_coded] = False
        given = {f"given {column}": fits | True for column in range(N_COLUMNS)}
        tests = given | {str(column): fits | (column > 0) for column in range(N_COLUMNS)}
        mu = gaussian_mu(epsilon, DELTA)
        part = private_check.fraction_of_check(n, mu, len(tests), N_COLUMNS, "replace_one")
        of_check, rest = budget.split([part, 1 - part])
        with reproducible_noise(seed * DRAWS + draw):
            try:
                check_inputs(tests, may_fail=[*given], accountant=budget, **of_check)
            except NotEnoughDataError:
                X[:n_coded, 0] = np.nan
            model = PrivateGaussianMixture(1, data_norm=2.0, accountant=budget, **rest).fit(X)
        squares.append(np.square(model.means_[0] - clean.mean(axis=0)).mean())
    return math.sqrt(np.mean(squares))


def errors(n: int, epsilon: float, coded: float, seeds: range) -> np.ndarray:
    """Root mean square errors by seed."""
    return np.array([error(n, epsilon, coded, seed) for seed in seeds])


def run(report: Report) -> None:
    """Measure the fraction on all sets."""
    rows: list[list[Cell]] = []
    seeds = range(1 if report.quick else SEEDS)
    for n, epsilon, coded in SETS[: 2 if report.quick else None]:
        measured = partial(errors, n, epsilon, coded, seeds)
        for part, *changed in changes(ABLATIONS, measured):
            rows.append([part, f"n = {n}, codes {coded:.0%}", epsilon, *changed])
            report.note(" | ".join(map(str, rows[-1])))
    report.table(
        TITLE, ["part", "set", "epsilon", "change", "standard error"], rows,
        file="ablations_of_checks", how="noise seeds 0 to 4",
    )  # fmt: skip
