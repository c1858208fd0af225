"""What each tuned constant and mechanism of completions is worth, one at a time.

Each is set to its neutral value in turn. The change of the error on held-out values is in percent,
with its standard error over seeds of noise; positive numbers say that the part helps. Rank 10.

    python -m benchmarks ablations_of_completions
    python -m benchmarks ablations_of_completions --quick     one epsilon, two seeds, smaller sets
"""

import math
from pathlib import Path

import numpy as np

from benchmarks.ablations import Ablation
from benchmarks.ratings import DATA_SETS, Ratings, measured
from benchmarks.report import Report

__all__ = ["ABLATIONS", "Ablation", "run"]

BOTH, ENTRY, PERSON = ("entry", "slice"), ("entry",), ("slice",)
DEFAULTS, PLAN = "completion.defaults", "completion.plan"
OWN = "tensor.unit_parameters"


def _constant(name: str, neutral: float, units: tuple[str, ...]) -> Ablation:
    return Ablation(f"{name} = {neutral:g}", units, {f"{DEFAULTS}.{name}": neutral})


ABLATIONS = (
    _constant("EFFECT_ROUNDS", 1, PERSON),
    _constant("EFFECT_CLIP", 1.0, PERSON),
    _constant("LEVEL_FRACTION", 0.05, PERSON),
    _constant("FACTOR_FRACTION", 0.5, PERSON),
    _constant("DIRECTION_FRACTION", 0.5, PERSON),
    _constant("DIRECTION_SWEEPS", 6, PERSON),
    _constant("DIRECTION_TRIAL", 1.0, PERSON),
    _constant("DIRECTION_CLIP", 100.0, PERSON),
    _constant("COMPONENT_VARIANCE", 1.0, PERSON),
    _constant("PAIR_CLIP", 3.0, ENTRY),
    _constant("PAIR_LOSS", 0.0, ENTRY),
    _constant("PAIR_POWER", 0.5, ENTRY),
    Ablation("components of people", PERSON, {f"{PLAN}.slice_detectability": lambda *_: 0.0}),
    Ablation("released values", ENTRY, {f"{PLAN}.values_pay": lambda *_: False}),
    Ablation("co-occurrence features", ENTRY, {
        "completion.entries.incidence_features": lambda _: None,
    }),
    Ablation("slope on popularity", BOTH, {f"{OWN}.POPULARITY_VARIANCE": 1e-9}),
    Ablation("slope on biases", BOTH, {f"{OWN}.SLOPE_VARIANCE": 1e-9}),
)  # fmt: skip


def run(report: Report, data: Path) -> None:
    """Measure all parts on all sets that are there."""
    epsilons, seeds = ((5.0,), range(2)) if report.quick else ((1.0, 5.0), range(5))
    for name, load in DATA_SETS.items():
        try:
            ratings = load(data, 0, report.quick)
        except OSError:
            report.note(f"skipped: no {name} in {data}")
            continue
        for unit in BOTH:
            rows = [row for e in epsilons for row in _changes(ratings, unit, e, seeds)]
            whose = "a rating" if unit == "entry" else "a person"
            report.table(
                f"{name}, unit: {whose}: change of the error without each part, percent",
                ["part", "epsilon", "way", "change", "standard error"],
                rows,
            )


def _changes(
    ratings: Ratings, unit: str, epsilon: float, seeds: range
) -> list[list[str | float | int]]:
    found: dict[str, dict[str, np.ndarray]] = {}
    for ablation in (Ablation("", BOTH), *ABLATIONS):
        if unit in ablation.units:
            with ablation.made():
                runs = [measured(ratings, unit, epsilon, seed)[0] for seed in seeds]
            found[ablation.name] = {way: np.array([one[way] for one in runs]) for way in runs[0]}
    whole = found.pop("")
    rows: list[list[str | float | int]] = []
    for name, errors in found.items():
        for way, error in errors.items():
            change = 100 * (error / whole[way] - 1)
            if change.any():
                spread = float(change.std(ddof=1)) / math.sqrt(len(change))
                rows.append([name, epsilon, way, float(change.mean()), spread])
    return rows
