"""What each tuned constant of mixtures and directions is worth, one at a time.

Each is set to its neutral value in turn. The change of the distance of the farthest component, on
data drawn from the laws of ``laws_of_components``, is in percent, with its standard error over
seeds; positive numbers say that the constant helps.

    python -m benchmarks ablations_of_components
    python -m benchmarks ablations_of_components --quick
"""

from pathlib import Path

import numpy as np

from benchmarks.ablations import Ablation, change, write
from benchmarks.laws_of_components import Law, component_error, directions, gaussians
from benchmarks.report import Cell, Report
from sktensor_dp.power_method import defaults

__all__ = ["ABLATIONS", "run"]

LAWS = (gaussians(3, 20, 6.0), gaussians(5, 10, 3.0), gaussians(8, 20, 6.0), directions(5, 20))
# Numbers of samples, and of seeds.
SIZES = {10_000: 8, 100_000: 4}


def _constants(name: str, **neutral: object) -> Ablation:
    places = {f"power_method.defaults.{key}": value for key, value in neutral.items()}
    return Ablation(name, (), places)


ABLATIONS = (
    _constants("FRACTIONS equal", FRACTIONS=dict.fromkeys(defaults.FRACTIONS, 1 / 3)),
    _constants("OFFSET = 1", OFFSET=1.0),
    _constants("CLIPPED = 0", CLIPPED=1e-9),
)


def errors(law: Law, n: int, epsilon: float, n_seeds: int) -> np.ndarray:
    """Distance of the farthest component, by seed."""
    return np.array([component_error(law, n, epsilon, seed)[0] for seed in range(n_seeds)])


def run(report: Report) -> None:
    """Measure all constants on all laws."""
    rows: list[list[Cell]] = []
    for n, n_seeds in list(SIZES.items())[: 1 if report.quick else None]:
        for law in LAWS[:: 3 if report.quick else 1]:
            for epsilon in (1.0, 4.0):
                whole = errors(law, n, epsilon, n_seeds)
                for ablation in ABLATIONS:
                    with ablation.made():
                        found = errors(law, n, epsilon, n_seeds)
                    rows.append([ablation.name, f"{law.name}, n = {n}", epsilon,
                                 *change(found, whole)])  # fmt: skip
    rows.sort(key=lambda row: [one.name for one in ABLATIONS].index(str(row[0])))
    columns = ["part", "set", "epsilon", "change", "standard error"]
    report.table("Change of the error without each constant, percent", columns, rows)
    if not report.quick:
        write(Path(__file__).with_suffix(".csv"), columns, rows)
