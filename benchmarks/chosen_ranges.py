"""Ranges of ratings that a noisy histogram chooses, beside those that somebody knew.

Root mean square error of held-out ratings at rank 10, for persons by fold_in; the first 5000
people of Jester. Medians of noise seeds, which are `random_state` too.

    python -m benchmarks chosen_ranges
    python -m benchmarks chosen_ranges --quick     no goodbooks
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ratings import RANK, Ratings, goodbooks, jester, movielens
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import NotEnoughDataWarning, PrivateCPCompletion

__all__ = ["run"]

EPSILONS = (1.0, 5.0)
COLUMNS = ["data", "epsilon", "error, known", "error, chosen", "ratio", "chosen"]


def rating_errors(ratings: Ratings, unit: str, epsilon: float, seed: int) -> tuple[Any, ...]:
    """Error with known bounds, error with chosen ones, and these."""
    found: list[float] = []
    ranges: tuple[Any, ...] = (ratings.bounds, "auto")
    for bounds in ranges:
        model = PrivateCPCompletion(
            RANK, bounds=bounds, shape=ratings.shape, epsilon=epsilon, random_state=seed,
            unit_mode=0 if unit == "person" else None,
        )  # fmt: skip
        with reproducible_noise(seed):
            model.fit(ratings.X, ratings.y)
        own = model.fold_in(ratings.X, ratings.y) if unit == "person" else model
        found.append(ratings.error(own.predict(ratings.X_test)))
    return (*found, "{:g} to {:g}".format(*model.bounds_))


def run(report: Report, data: Path) -> None:
    """Measure the ratings that are there."""
    warnings.simplefilter("ignore", NotEnoughDataWarning)
    rows: list[list[Cell]] = []
    sets = {"ml-100k": movielens, "jester": jester, "goodbooks": goodbooks}
    for folder, make in sets.items():
        if not (data / folder).is_dir() or (report.quick and make is goodbooks):
            report.note(f"skipped: {folder}")
            continue
        ratings = make(data, 0, True)
        for unit in ("person", "rating"):
            for epsilon in EPSILONS:
                found = [rating_errors(ratings, unit, epsilon, seed) for seed in range(5)]
                known, chosen = (float(np.median(of)) for of in list(zip(*found, strict=True))[:2])
                ratio, name = chosen / known, f"{make.__name__}, {unit}"
                rows.append([name, epsilon, known, chosen, ratio, found[0][2]])
                if epsilon == 5:
                    report.bar(f"{name}, over known bounds", ratio, 1.02)
    how = "medians of seeds 0 to 4"
    report.table("ratings", COLUMNS, rows, file="chosen_ranges", how=how)
