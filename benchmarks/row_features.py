"""What public features of films are worth: MovieLens 100K with genres, without, and with noise.

ua.base to ua.test, rank 10, all other parameters the library's defaults (delta 1e-6). Medians of
noise seeds 0, 1, 2, which are the models' ``random_state`` too. Random features are as many
standard normal numbers as there are genres, of ``default_rng(5)``. Nothing was chosen on the test
part.

    python -m benchmarks row_features
    python -m benchmarks row_features --quick     one seed, epsilon 1
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.ratings import measured, movielens
from benchmarks.report import Report

__all__ = ["genres", "run"]

N_GENRES = 19
EPSILONS = (10.0, 5.0, 2.0, 1.0)
WAYS = {"entry": ("entry, predict", "entry, fold_in"), "slice": ("person, fold_in",)}
# Random features may cost so much.
HARM = 1.003


def genres(data: Path) -> NDArray[np.float64]:
    """Which genres each film has, of shape (1682, 19)."""
    lines = (data / "ml-100k" / "u.item").read_text(encoding="latin-1").splitlines()
    return np.array([line.split("|")[-N_GENRES:] for line in lines], dtype=np.float64)


def run(report: Report, data: Path) -> None:
    """Measure, if the data is there."""
    if not (data / "ml-100k").is_dir():
        report.note(f"skipped: no ml-100k in {data}")
        return
    ratings, table = movielens(data, 0, report.quick), genres(data)
    noise = np.random.default_rng(5).standard_normal(table.shape)
    given = {"none": None, "genres": {1: table}, "random": {1: noise}}
    rows: list[list[str | float]] = []
    for unit, ways in WAYS.items():
        for epsilon in (1.0,) if report.quick else EPSILONS:
            found = {
                name: [
                    measured(ratings, unit, epsilon, seed, row_features=features)[0]
                    for seed in range(1 if report.quick else 3)
                ]
                for name, features in given.items()
            }
            for way in ways:
                medians = [float(np.median([run[way] for run in runs])) for runs in found.values()]
                rows.append([way, f"{epsilon:g}", *medians])
                plain, told, untold = medians
                report.bar(f"{way}, epsilon {epsilon:g}: genres over none", told / plain, 1.0)
                report.bar(f"{way}, epsilon {epsilon:g}: random over none", untold / plain, HARM)
    title, columns = "MovieLens 100K: RMSE by features", ["unit and way", "epsilon", *given]
    report.table(title, columns, rows, file="row_features", how="medians of three seeds")
