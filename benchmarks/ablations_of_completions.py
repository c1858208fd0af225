"""What each tuned constant and mechanism of completions is worth, one at a time.

Each is set to its neutral value in turn. The change of the error on held-out values is in percent,
with its standard error over seeds of noise 0 to 2; positive numbers say that the part helps. Rank
10. Sets are parts that half an hour of one core is enough for: MovieLens 100K, 5000 people of
goodbooks and of jester, 10,000 of synthetic tastes, 1000 hours of air quality in Beijing, and
values of three modes and of a law of `laws_of_completions`, which are drawn from the model. All
people of jester, at epsilon 1, are for products of pairs alone.

    python -m benchmarks ablations_of_completions
    python -m benchmarks ablations_of_completions --quick     one epsilon, two seeds, two sets
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.ablations import Ablation, change, write
from benchmarks.completion import Air
from benchmarks.laws_of_completions import Law
from benchmarks.ratings import DATA_SETS, Ratings, measured
from benchmarks.report import Cell, Report

__all__ = ["ABLATIONS", "Ablation", "run"]

BOTH, ENTRY, PERSON = ("entry", "slice"), ("entry",), ("slice",)
DEFAULTS, PLAN, PERSONS = "completion.defaults", "completion.plan", "completion.persons"
OWN = "tensor.unit_parameters"
PEOPLE, HOURS = {"tastes": 10_000}, 1000
# What all people of jester are for.
OF_PAIRS = ("RESIDUAL_CLIP", "PAIR_LOSS", "products of pairs")


def _constant(name: str, neutral: float, units: tuple[str, ...]) -> Ablation:
    return Ablation(f"{name} = {neutral:g}", units, {f"{DEFAULTS}.{name}": neutral})


ABLATIONS = (
    _constant("ROUNDS", 1, PERSON),
    _constant("RESIDUAL_CLIP", 3.0, BOTH),
    _constant("LEVEL_FRACTION", 0.05, PERSON),
    _constant("DIRECTION_FRACTION", 0.5, PERSON),
    _constant("DIRECTION_SWEEPS", 6, PERSON),
    _constant("DIRECTION_TRIAL", 1.0, PERSON),
    _constant("FORGETTING", 1.0, PERSON),
    _constant("ROOM", 0.0, PERSON),
    _constant("COMPONENT_VARIANCE", 1.0, PERSON),
    _constant("PAIR_LOSS", 0.02, ENTRY),
    Ablation("components of people", PERSON, {f"{PLAN}.slice_detectability": lambda *_: 0.0}),
    Ablation("test of directions", PERSON, {f"{PERSONS}.gain_of_components": lambda *_: math.inf}),
    Ablation("products of pairs", ENTRY, {f"{PLAN}.pair_fraction": lambda *_: 0.0}),
    Ablation("released values", ENTRY, {f"{PLAN}.values_pay": lambda *_: False}),
    Ablation("co-occurrence features", ENTRY, {
        "completion.entries.incidence_features": lambda _: None,
    }),
    Ablation("slope on popularity", BOTH, {f"{OWN}.POPULARITY_VARIANCE": 1e-9}),
    Ablation("slope on biases", BOTH, {f"{OWN}.SLOPE_VARIANCE": 1e-9}),
)  # fmt: skip


def _first(ratings: Ratings, n: int) -> Ratings:
    """Ratings of the first people."""
    fit, test = ratings.X[:, 0] < n, ratings.X_test[:, 0] < n
    return replace(
        ratings, X=ratings.X[fit], y=ratings.y[fit], X_test=ratings.X_test[test],
        y_test=ratings.y_test[test], shape=(min(n, ratings.shape[0]), *ratings.shape[1:]),
    )  # fmt: skip


def _air(data: Path) -> Ratings:
    """Hours by stations and variables, in halves of the ranges."""
    air = Air(data / "beijing-air")
    seen, hidden = ~np.isnan(air.seen[:HOURS]), air.hidden[:HOURS]
    X, X_test = np.argwhere(seen), np.argwhere(hidden)
    M = air.M[:HOURS]
    return Ratings(X, M[seen], X_test, M[hidden], (HOURS, M.shape[1]), (-1.0, 1.0))


def _three_modes() -> Ratings:
    """People by items by hours: components have half of the variance."""
    rng = np.random.default_rng(0)
    shape, rank = (8000, 40, 12), 2
    people = np.repeat(np.arange(shape[0]), 30)
    X = np.column_stack([people, *(rng.integers(n, size=len(people)) for n in shape[1:])])
    factors = [rng.standard_normal((n, rank)) for n in shape]
    taste = np.prod([f[rows] for f, rows in zip(factors, X.T, strict=True)], axis=0).sum(axis=1)
    y = math.sqrt(0.5 / rank) * taste + math.sqrt(0.5) * rng.standard_normal(len(X))
    y, test = np.clip(y, -4.0, 4.0), rng.random(len(y)) < 0.1
    return Ratings(X[~test], y[~test], X[test], y[test], shape, (-4.0, 4.0))


def _sets(data: Path, quick: bool) -> Iterator[tuple[str, Callable[[], Ratings]]]:
    for name, load in DATA_SETS.items():
        n = PEOPLE.get(name, 5000)
        yield name, lambda load=load, n=n: _first(load(data, 0, quick), n)
    yield "jester, all", lambda: DATA_SETS["jester"](data, 0, False)
    yield "air quality", lambda: _air(data)
    yield "three modes", _three_modes
    yield "law", lambda: Law(3, positive=False, biases=True).draw(5000, 0)


def run(report: Report, data: Path) -> None:
    """Measure all parts on all sets that are there."""
    epsilons, seeds = ((5.0,), range(2)) if report.quick else ((1.0, 5.0), range(3))
    rows: list[list[Cell]] = []
    for name, load in _sets(data, report.quick):
        if report.quick and name not in ("movielens", "law"):
            continue
        try:
            ratings = load()
        except OSError:
            report.note(f"skipped: no {name} in {data}")
            continue
        of_pairs = name == "jester, all"
        parts = [one for one in ABLATIONS if not of_pairs or one.name.startswith(OF_PAIRS)]
        for unit in ENTRY if of_pairs else BOTH:
            for epsilon in epsilons[: 1 if of_pairs else None]:
                for part, way, *changed in _changes(ratings, unit, epsilon, seeds, parts):
                    rows.append([part, name, way, epsilon, *changed])
                    report.note(" | ".join(map(str, rows[-1])))
    rows = [row for one in ABLATIONS for row in _that_tell([r for r in rows if r[0] == one.name])]
    columns = ["part", "set", "unit and way", "epsilon", "change", "standard error"]
    report.table("Change of the error without each part, percent", columns, rows)
    if not report.quick:
        write(Path(__file__).with_suffix(".csv"), columns, rows)


def _that_tell(rows: list[list[Cell]]) -> list[list[Cell]]:
    """Rows of a part where it changes something; the first one if it does so nowhere."""
    return [row for row in rows if row[4]] or rows[:1]


def _changes(
    ratings: Ratings, unit: str, epsilon: float, seeds: range, parts: list[Ablation]
) -> Iterator[list[Cell]]:
    """Part, way of prediction, and change with its standard error."""
    whole = [measured(ratings, unit, epsilon, seed)[0] for seed in seeds]
    for ablation in parts:
        if unit not in ablation.units:
            continue
        with ablation.made():
            found = [measured(ratings, unit, epsilon, seeds[0])[0]]
            # Where a part does nothing for one seed, it is not asked for.
            if found[0] != whole[0] or ablation.name == "test of directions":
                found += [measured(ratings, unit, epsilon, seed)[0] for seed in seeds[1:]]
        for way in whole[0]:
            errors = (np.array([one[way] for one in of]) for of in (found, whole[: len(found)]))
            yield [ablation.name, way, *change(*errors)]
