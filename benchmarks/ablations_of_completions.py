"""What each tuned constant and mechanism of completions is worth, one at a time.

Each is set to its neutral value in turn. The change of the error on held-out values is in percent,
with its standard error over noise seeds 0 to 4; positive numbers say that the part helps. Rank
10. Sets are parts that ten minutes of one core are enough for: MovieLens 100K, 3000 people of
goodbooks and of jester, and 1000 hours of air quality in Beijing; for persons 10,000 of synthetic
tastes, and values of laws of `laws_of_completions`. All people of jester, at epsilon 1, are for
products of pairs alone, all of goodbooks, at epsilon 10, for the test of directions, and drawn
values of three modes for the number of releases and for components. Extrapolation changes biases
of many items in two parts, of which people keep to one, concurrences those of weeks of which people
are there for five in a row, and the scale of pulls those on which people are of two opinions: their
error is measured.

    python -m benchmarks ablations_of_completions
    python -m benchmarks ablations_of_completions --quick     one epsilon, two seeds, two sets
"""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from benchmarks.ablations import SEEDS, TITLE, Ablation, change, constant, shown
from benchmarks.completion import Air
from benchmarks.laws_of_completions import Law, Questions
from benchmarks.ratings import DATA_SETS, Ratings, measured
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateCPCompletion
from sktensor_dp.tensor.arrays import Floats, Integers

__all__ = ["ABLATIONS", "Ablation", "run"]

BOTH, ENTRY, PERSON = ("entry", "slice"), ("entry",), ("slice",)
PLAN = "completion.plan"
PEOPLE, HOURS = {"tastes": 10_000}, 1000
EPSILONS = {"entry": (1.0, 5.0), "slice": (5.0,)}
# Sets of people alone, and those of a few parts, at one epsilon each.
OF_PEOPLE = ("tastes", "law", "questions")
OF_PAIRS = ("PAIR_LOSS", "products of pairs")
OF_TESTS = ("DIRECTION_TRIAL", "CERTAIN", "test of directions")
OF_MODES = ("ROUNDS", "DIRECTION_FRACTION", "COMPONENT_VARIANCE", "components of people")
FEW = {
    "jester, all": (ENTRY, 1.0, OF_PAIRS), "goodbooks, all": (PERSON, 10.0, OF_TESTS),
    "three modes": (PERSON, 5.0, OF_MODES),
}  # fmt: skip


def _part(name: str, units: tuple[str, ...], place: str, neutral: object) -> Ablation:
    return Ablation(name, units, {place: neutral})


# What only biases of rows have that few people compare.
NO_LINE = SimpleNamespace(along=lambda *_: SimpleNamespace(direction=np.zeros(1)))
OF_PARTS = _part("extrapolation of biases", (), "completion.shared_biases.Line", NO_LINE)
# Modes of few rows, which people compare as in a chain.
OF_CHAINS = constant("completion.CONCURRENCE_FRACTION", 1e-12, ())
# Such modes, of so few people that noise nearly hides how they compare rows.
OF_FEW = constant("completion.CONCURRENCE_FRACTION", 0.05, ())
# What only averages need on which persons are of two opinions.
OF_CAMPS = constant("completion.PULL_SCALE", 1e-9, ())
ABLATIONS = (
    constant("completion.ROUNDS", 1, PERSON),
    constant("completion.LEAST_ROW_WEIGHT", 1.0, PERSON),
    constant("completion.LEVEL_FRACTION", 0.05, PERSON),
    constant("completion.DIRECTION_FRACTION", 0.5, PERSON),
    constant("completion.DIRECTION_SWEEPS", 6, PERSON),
    constant("completion.DIRECTION_TRIAL", 1 / 8, PERSON),
    constant("completion.COMPONENT_VARIANCE", 1.0, PERSON),
    constant("completion.PAIR_LOSS", 0.02, ENTRY),
    constant("completion.CERTAIN", 0.0, PERSON),
    constant("tensor.LEVEL_VARIANCE", 5.0, BOTH),
    constant("tensor.SLOPE_VARIANCE", 1e-9, BOTH),
    constant("tensor.POPULARITY_VARIANCE", 1e-9, BOTH),
    constant("tensor.VECTORS", 0, ENTRY),
    Ablation("clip by the values' variance", BOTH, {
        "completion.shared_biases.residual_clip": lambda *_: 0.25,
        "completion.entry_recipe.residual_clip": lambda *_: 0.25,
    }),
    _part("components of people", PERSON, f"{PLAN}.snr_in_person_sums", lambda *_: 0.0),
    _part("test of directions", PERSON, "completion.component_search.gain_of_components",
          lambda *_: math.inf),
    _part("products of pairs", ENTRY, f"{PLAN}.pair_fraction", lambda *_: 0.0),
    _part("released values", ENTRY, f"{PLAN}.values_are_worth_it", lambda *_: False),
    _part("features of where entries are", ENTRY, "completion.entry_recipe.incidence_features",
          lambda _: None),
    OF_PARTS,
    OF_CHAINS,
    OF_FEW,
    OF_CAMPS,
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


def _error_of_parts(epsilon: float, seed: int) -> float:
    """Error of biases of items in two parts, of which people keep to one by nine tenths."""
    rng, (people, items, each) = np.random.default_rng(seed), (8000, 300, 20)
    who = np.repeat(np.arange(people), each)
    in_part = (rng.integers(2, size=people)[who] + (rng.random(len(who)) < 0.1)) % 2
    X = np.column_stack([who, in_part * items // 2 + rng.integers(items // 2, size=len(who))])
    biases = rng.standard_normal(items) / 2 + np.repeat([-0.5, 0.5], items // 2)
    y = biases[X[:, 1]] + rng.standard_normal(people)[who] / 2 + rng.standard_normal(len(who)) / 2
    return _error_of_biases(X, np.clip(y, -4.0, 4.0), biases, people, epsilon, seed)


def _error_of_chain(epsilon: float, seed: int, people: int = 3000) -> float:
    """Error of averages of 16 weeks with a trend, of which people are there for five in a row."""
    rng, (weeks, stays) = np.random.default_rng(seed), (16, 5)
    first, means = rng.integers(1 - stays, weeks, people)[:, None], np.linspace(-0.6, 0.6, weeks)
    y = means + 0.7 * rng.standard_normal((people, 1)) + 0.8 * rng.standard_normal((people, weeks))
    X = np.argwhere((first <= np.arange(weeks)) & (np.arange(weeks) < first + stays))
    return _error_of_biases(X, np.clip(y, -4.0, 4.0)[tuple(X.T)], means, people, epsilon, seed)


def _error_of_few(epsilon: float, seed: int) -> float:
    """Error of such averages of 1400 people at epsilon 1, or of 330 at epsilon 5."""
    return _error_of_chain(epsilon, seed, 1400 if epsilon == 1 else 330)


def _error_of_camps(epsilon: float, seed: int) -> float:
    """Error of averages of items that 60% of people like as much as the others dislike them."""
    rng, (people, items, each) = np.random.default_rng(seed), (2500, 30, 15)
    camp = np.where(rng.random((people, 1)) < 0.6, 1.5, -1.5)
    y = camp * np.linspace(-1, 1, items) + 0.6 * rng.standard_normal((people, items))
    y = np.clip(np.rint(y), -2.0, 2.0)
    X = np.argwhere(np.argsort(np.argsort(rng.random(y.shape), axis=1), axis=1) < each)
    return _error_of_biases(X, y[tuple(X.T)], y.mean(axis=0), people, epsilon, seed, 2.0)


def _error_of_biases(
    X: Integers, y: Floats, means: Floats, people: int, epsilon: float, seed: int, most: float = 4.0
) -> float:
    """Error of biases of items, up to a constant; values are from minus `most` to `most`."""
    model = PrivateCPCompletion(
        0, bounds=(-most, most), shape=(people, len(means)), unit_mode=0, epsilon=epsilon,
        random_state=seed,
    )  # fmt: skip
    with reproducible_noise(seed):
        return float(np.std(model.fit(X, y).biases_[1] - means))


def of_biases(seeds: range) -> Iterator[list[Cell]]:
    """Rows of what only biases of rows have that few people compare, or on which they are two."""
    cases = (
        (OF_PARTS, "parts", "two parts", _error_of_parts),
        (OF_CHAINS, "chain", "a chain", _error_of_chain),
        (OF_FEW, "chain of few", "a chain of few people", _error_of_few),
        (OF_CAMPS, "camps", "two camps", _error_of_camps),
    )
    for (part, name, rows, error_of), epsilon in product(cases, (1.0, 5.0)):
        errors = []
        for made in (nullcontext(), part.made()):
            with made:
                errors.append(np.array([error_of(epsilon, seed) for seed in seeds]))
        way = f"person, biases of {rows}"
        yield [part.name, name, way, epsilon, *change(errors[1], errors[0])]


def _sets(data: Path, quick: bool) -> Iterator[tuple[str, Callable[[], Ratings]]]:
    for name, load in DATA_SETS.items():
        n = PEOPLE.get(name, 3000)
        yield name, lambda load=load, n=n: _first(load(data, 0, quick), n)
    for name in ("jester", "goodbooks"):
        yield f"{name}, all", lambda name=name: DATA_SETS[name](data, 0, False)
    yield "air quality", lambda: _air(data)
    yield "three modes", _three_modes
    yield "law", lambda: Law(3, positive=False, biases=True).draw(5000, 0)
    yield "questions", lambda: Questions(2, levels=2).draw(5000, 0)


def run(report: Report, data: Path) -> None:
    """Measure all parts on all sets that are there."""
    seeds = range(2 if report.quick else SEEDS)
    rows: list[list[Cell]] = list(of_biases(seeds))
    for name, load in _sets(data, report.quick):
        if report.quick and name not in ("movielens", "law"):
            continue
        try:
            ratings = load()
        except OSError:
            report.note(f"skipped: no {name} in {data}")
            continue
        units, of_set, parts = PERSON if name in OF_PEOPLE else BOTH, EPSILONS, ABLATIONS
        if name in FEW:
            units, epsilon, names = FEW[name]
            of_set = dict.fromkeys(units, (epsilon,))
            parts = tuple(p for p in ABLATIONS if p.name.startswith(names))
        for unit in units:
            for epsilon in of_set[unit]:
                for part, way, *changed in _changes(ratings, unit, epsilon, seeds, parts):
                    rows.append([part, name, way, epsilon, *changed])
                    report.note(" | ".join(map(str, rows[-1])))
    report.table(
        TITLE,
        ["part", "set", "unit and way", "epsilon", "change", "standard error"],
        shown(ABLATIONS, rows),
        file="ablations_of_completions", how="noise seeds 0 to 4",
    )  # fmt: skip


def _changes(
    ratings: Ratings, unit: str, epsilon: float, seeds: range, parts: tuple[Ablation, ...]
) -> Iterator[list[Cell]]:
    """Part, way of prediction, and change with its standard error."""
    whole = [measured(ratings, unit, epsilon, seed)[0] for seed in seeds]
    for ablation in parts:
        if unit not in ablation.units:
            continue
        with ablation.made():
            found = [measured(ratings, unit, epsilon, seeds[0])[0]]
            # Where a part does nothing for one seed, it is not asked for.
            if found[0] != whole[0]:
                found += [measured(ratings, unit, epsilon, seed)[0] for seed in seeds[1:]]
        for way in whole[0]:
            errors = (np.array([one[way] for one in of]) for of in (found, whole[: len(found)]))
            yield [ablation.name, way, *change(*errors)]
