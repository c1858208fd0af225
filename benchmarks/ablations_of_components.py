"""What each tuned constant of components is worth, one at a time.

Each is set to its neutral value in turn. The change of the distance of the farthest component, on
data drawn from the laws of ``laws_of_components``, is in percent, with its standard error over
five seeds; positive numbers say that the constant helps.

    python -m benchmarks ablations_of_components
    python -m benchmarks ablations_of_components --quick
"""

from functools import partial

import numpy as np

from benchmarks.ablations import SEEDS, TITLE, Ablation, changes, constant, shown
from benchmarks.laws_of_components import Law, component_error, directions
from benchmarks.report import Cell, Report
from sktensor_dp.power_method import defaults

__all__ = ["ABLATIONS", "run"]

LAWS = (directions(5, 20), directions(8, 50))
N_SAMPLES = 10_000
EQUAL = dict.fromkeys(defaults.FRACTIONS, 1 / len(defaults.FRACTIONS))
ABLATIONS = (
    Ablation("FRACTIONS equal", (), {"power_method.defaults.FRACTIONS": EQUAL}),
    constant("power_method.CLIPPED", 1e-9),
)


def errors(law: Law, n: int, epsilon: float, n_seeds: int) -> np.ndarray:
    """Distance of the farthest component, by seed."""
    return np.array([component_error(law, n, epsilon, seed)[0] for seed in range(n_seeds)])


def run(report: Report) -> None:
    """Measure all constants on all laws."""
    rows: list[list[Cell]] = []
    n_seeds = 2 if report.quick else SEEDS
    for law in LAWS:
        for epsilon in (1.0, 4.0):
            measured = partial(errors, law, N_SAMPLES, epsilon, n_seeds)
            for name, *changed in changes(ABLATIONS, measured):
                rows.append([name, f"{law.name}, n = {N_SAMPLES}", epsilon, *changed])
    report.table(
        TITLE, ["part", "set", "epsilon", "change", "standard error"], shown(ABLATIONS, rows),
        file="ablations_of_components", how="five seeds",
    )  # fmt: skip
