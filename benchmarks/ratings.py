"""Private ratings against their bars: people by items, a rating or a person as the unit.

Rank 10, all other parameters the library's defaults (delta 1e-6). Repeated pairs are removed, the
first kept; then a tenth is held out by ``default_rng(0).random(n) < .1``, but for MovieLens 100K,
whose parts ua.base and ua.test are public. Medians of noise seeds 0, 1, 2, which are the models'
``random_state`` too. The synthetic set of seed s is from ``default_rng(s)``. No constant of the
library was chosen on the test parts.

    python -m benchmarks ratings
    python -m benchmarks ratings --quick     one seed, epsilon 10 and 1, smaller sets
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateCPCompletion

__all__ = ["DATA_SETS", "Ratings", "goodbooks", "held_out", "jester", "movielens", "run", "tastes"]

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

# Components that fits ask for, and that tastes are drawn with.
RANK, DRAWN = 10, 5
EPSILONS = (math.inf, 10.0, 5.0, 2.0, 1.0)
COLUMNS = ["epsilon", *(f"{epsilon:g}" for epsilon in EPSILONS)]
# What is measured: unit and way of prediction.
WAYS = {"entry, predict": "entry", "entry, fold_in": "entry", "person, fold_in": "slice"}
BARS: dict[tuple[str, str], dict[float, float]] = {
    ("goodbooks", "entry, predict"): {10.0: 0.832, 5.0: 0.836, 2.0: 0.850, 1.0: 0.872},
    ("goodbooks", "person, fold_in"): {10.0: 0.845, 5.0: 0.850, 2.0: 0.860, 1.0: 0.866},
    ("movielens", "entry, predict"): {10.0: 0.926, 5.0: 0.934, 2.0: 0.971, 1.0: 0.988},
    ("movielens", "person, fold_in"): {10.0: 0.965, 5.0: 0.976, 2.0: 1.000, 1.0: 1.016},
}
FORECAST_WITHIN = 0.05
# People and items of two sets whose public numbers are equal.
ALIKE = (900, 1600)


@dataclass(frozen=True, eq=False)
class Ratings:
    """Coordinates and values to fit, and those to predict."""

    X: Integers
    y: Floats
    X_test: Integers
    y_test: Floats
    shape: tuple[int, int]
    bounds: tuple[float, float]
    # What is known of values beforehand, for forecasts.
    known: dict[str, float] = field(default_factory=dict)

    def error(self, found: Floats) -> float:
        """Root mean square over the part to predict."""
        return float(np.sqrt(np.mean(np.square(found - self.y_test))))

    def trivial(self) -> dict[str, float]:
        """Errors of the exact mean, of exact means of people and of items, and of both."""
        left, (who, what), known = self.y - self.y.mean(), self.X_test.T, self.y.mean()
        found = {"exact mean": known + 0.0 * who}
        found["exact means of people"] = known + self._means(0, left, 0)[who]
        of_items = self._means(1, left, 0)
        found["exact means of items"] = known + of_items[what]
        rest = left - of_items[self.X[:, 1]]
        errors = {name: self.error(values) for name, values in found.items()}
        # People's own biases are shrunk as is best for what is predicted.
        errors["exact biases of items and people"] = min(
            self.error(known + of_items[what] + self._means(0, rest, more)[who])
            for more in (1, 2, 4, 8, 16)
        )
        return errors

    def _means(self, mode: int, values: Floats, more: int) -> Floats:
        """Mean of values in each row of a mode, as if `more` values were 0."""
        rows, n = self.X[:, mode], self.shape[mode]
        return np.bincount(rows, values, n) / np.maximum(np.bincount(rows, minlength=n) + more, 1)


def held_out(
    X: Integers, y: Floats, shape: tuple[int, int], bounds: tuple[float, float], seed: int = 0
) -> Ratings:
    """Without repeated pairs; a tenth is to be predicted."""
    _, first = np.unique(X[:, 0] * shape[1] + X[:, 1], return_index=True)
    first = np.sort(first)
    X, y = X[first], y[first]
    test = np.random.default_rng(seed).random(len(y)) < 0.1
    return Ratings(X[~test], y[~test], X[test], y[test], shape, bounds)


def goodbooks(data: Path, seed: int, quick: bool) -> Ratings:
    """Many people with few ratings each."""
    with np.load(data / "goodbooks" / "goodbooks.npz", allow_pickle=False) as stored:
        X = np.column_stack([stored["user"], stored["item"]]).astype(np.intp) - 1
        y = stored["rating"].astype(np.float64)
    return held_out(X, y, (53_424, 10_000), (1.0, 5.0))


def jester(data: Path, seed: int, quick: bool) -> Ratings:
    """Many people, few items."""
    with np.load(data / "jester" / "jester.npz", allow_pickle=False) as stored:
        table = stored["ratings_x100"].astype(np.float64)
    if quick:
        table = table[:5000]
    X = np.argwhere(table != 9900)
    y = (table[tuple(X.T)] / 100 + 10) / 20
    return held_out(X, y, table.shape, (0.0, 1.0))  # type: ignore[arg-type]


def movielens(data: Path, seed: int, quick: bool) -> Ratings:
    """Few people with many ratings each."""
    base, test = (np.loadtxt(data / "ml-100k" / f"ua.{p}", dtype=np.intp) for p in ("base", "test"))
    parts = [part for t in (base, test) for part in (t[:, :2] - 1, t[:, 2].astype(np.float64))]
    return Ratings(*parts, (943, 1682), (1.0, 5.0))


def tastes(data: Path, seed: int, quick: bool) -> Ratings:
    """Five components carry half of the variance about 0; values within +-4 deviations."""
    rng = np.random.default_rng(seed)
    n, m, each, rank = (10_000 if quick else 60_000), 2000, 40, DRAWN
    people = np.repeat(np.arange(n), each)
    # Items are equally likely; the few pairs drawn twice are removed.
    items = rng.integers(m, size=n * each)
    U, V = rng.standard_normal((n, rank)), rng.standard_normal((m, rank))
    taste = np.zeros(len(people))
    for a in range(rank):
        taste += U[people, a] * V[items, a]
    y = taste * math.sqrt(0.5 / rank) + math.sqrt(0.5) * rng.standard_normal(len(people))
    X = np.column_stack([people, items])
    known = {"deviation": 1.0, "bias_deviation": 0.0, "component_share": 0.5}
    return replace(held_out(X, np.clip(y, -4.0, 4.0), (n, m), (-4.0, 4.0)), known=known)


DATA_SETS: dict[str, Callable[[Path, int, bool], Ratings]] = {
    "goodbooks": goodbooks, "jester": jester, "movielens": movielens, "tastes": tastes,
}  # fmt: skip


def measured(
    ratings: Ratings, unit: str, epsilon: float, seed: int, rank: int = RANK
) -> tuple[dict[str, float], dict[str, float]]:
    """Errors by way of prediction, and those forecast."""
    model = PrivateCPCompletion(
        rank, bounds=ratings.bounds, shape=ratings.shape, epsilon=epsilon,
        unit_mode=None if unit == "entry" else 0, random_state=seed,
    )  # fmt: skip
    of_known = clone(model).set_params(rank=min(rank, DRAWN)) if ratings.known else model
    forecast = of_known.forecast(len(ratings.y), ratings.shape, **ratings.known)
    with reproducible_noise(seed):
        model.fit(ratings.X, ratings.y)
    name = "entry" if unit == "entry" else "person"
    found = {}
    if unit == "entry":
        found[f"{name}, predict"] = ratings.error(model.predict(ratings.X_test))
    if hasattr(model, "fold_in"):
        own = model.fold_in(ratings.X, ratings.y)
        found[f"{name}, fold_in"] = ratings.error(own.predict(ratings.X_test))
    said = {f"{name}, predict": forecast.of_model, f"{name}, fold_in": forecast.of_fold_in}
    return found, said


def measure(report: Report, data: Path, name: str) -> dict[tuple[str, float], float]:
    """All ways and epsilons on one set; medians, by way and epsilon."""
    seeds = range(1 if report.quick else 3)
    epsilons = (math.inf, 10.0, 1.0) if report.quick else EPSILONS
    make = DATA_SETS[name]
    sets = [make(data, s, report.quick) for s in (seeds if name == "tastes" else range(1))]
    trivial = sets[0].trivial()
    rows: list[list[str | float]] = []
    medians: dict[tuple[str, float], float] = {}
    for unit in ("entry", "slice"):
        for epsilon in epsilons:
            started = time.process_time()
            # Without noise seeds change starts alone.
            runs = [
                measured(sets[min(s, len(sets) - 1)], unit, epsilon, s)
                for s in (seeds if math.isfinite(epsilon) else seeds[:1])
            ]
            seconds = (time.process_time() - started) / len(runs)
            for way in runs[0][0]:
                errors = [found[way] for found, _ in runs]
                medians[way, epsilon] = middle = float(np.median(errors))
                off = runs[0][1][way] / middle - 1
                rows.append([way, f"{epsilon:g}", middle, min(errors), max(errors), off, seconds])
                report.note(f"{name}, {way}, epsilon {epsilon:g}: {middle:.4f}, {seconds:.0f} s")
    report.table(
        f"{name}, {len(sets[0].y)} ratings of {sets[0].shape[0]} people: RMSE",
        ["unit and way", "epsilon", "median", "least", "largest", "forecast off by", "seconds"],
        rows,
    )
    ways = dict.fromkeys(way for way, _ in medians)
    shown: list[list[str | float]] = [
        [way, *(medians.get((way, epsilon), "") for epsilon in EPSILONS)] for way in ways
    ]
    # What is exact stands where there is no noise.
    shown += [[what, error, *[""] * len(EPSILONS[1:])] for what, error in trivial.items()]
    if name != "tastes":  # drawn ones are in another table
        how = "medians of noise seeds 0 to 2; without noise one fit"
        report.table(f"{name}: RMSE", COLUMNS, shown, file="ratings", group=name, how=how)
    judge(report, name, medians)
    return medians


def judge(report: Report, name: str, medians: dict[tuple[str, float], float]) -> None:
    """Against the bars, and against each other."""
    for (way, epsilon), found in medians.items():
        limit = BARS.get((name, way), {}).get(epsilon)
        if limit is not None:
            report.bar(f"{name}, {way}, epsilon {epsilon:g}", found, limit)
        if way == "entry, fold_in" and math.isfinite(epsilon):
            slices = medians["person, fold_in", epsilon]
            report.bar(f"{name}, entry over person by fold_in, {epsilon:g}", found / slices, 1.0)
    finite = sorted(e for way, e in medians if way == "entry, predict")
    for low, high in pairwise(finite):
        ratio = medians["entry, predict", high] / medians["entry, predict", low]
        report.bar(f"{name}, predict at epsilon {high:g} over that at {low:g}", ratio, 1.003)


def recovery(report: Report, data: Path, medians: dict[tuple[str, float], float]) -> None:
    """What slices at 1 gain over biases, beside what exact slices do."""
    ratings = tastes(data, 0, report.quick)
    alone = measured(ratings, "slice", math.inf, 0, rank=0)[0]["person, fold_in"]
    exact, private = (medians["person, fold_in", e] for e in (math.inf, 1.0))
    report.note(f"tastes, slices: biases alone {alone:.4f}, exact {exact:.4f}")
    share = (alone - private) / (alone - exact)
    report.bar("tastes, slices at epsilon 1: share of the exact gain", share, 0.6, at_least=True)


def most(rows: Integers, n: int) -> Integers:
    """Numbers from 0 of the n rows with most entries, by entry; -1 for others."""
    counts = np.bincount(rows)
    places = np.full(len(counts), -1)
    places[np.sort(np.argsort(-counts, kind="stable")[:n])] = np.arange(n)
    return places[rows]


def alike(data: Path, quick: bool) -> dict[str, Ratings]:
    """Two sets of equal public numbers: busiest people, and the items they rated most."""
    parts = {}
    for name in ("goodbooks", "movielens"):
        whole = DATA_SETS[name](data, 0, quick)
        X, y = np.vstack([whole.X, whole.X_test]), np.append(whole.y, whole.y_test)
        for mode, n in enumerate(ALIKE):
            rows = most(X[:, mode], n)
            X, y = X[rows >= 0].copy(), y[rows >= 0]
            X[:, mode] = rows[rows >= 0]
        parts[name] = X, y
    n = min(len(y) for _, y in parts.values())
    found = {}
    for name, (X, y) in parts.items():
        kept = np.random.default_rng(0).permutation(len(y))[:n]
        fit, test = kept[n // 10 :], kept[: n // 10]
        found[name] = Ratings(X[fit], y[fit], X[test], y[test], ALIKE, (1.0, 5.0))
    return found


def limit_of_forecasts(report: Report, data: Path) -> None:
    """What no forecast from public numbers alone can be within 5 % of."""
    rows: list[list[str | float]] = []
    for epsilon in (10.0, 1.0):
        medians = []
        for name, ratings in alike(data, report.quick).items():
            runs = [measured(ratings, "slice", epsilon, s) for s in range(3)]
            medians.append(float(np.median([found["person, fold_in"] for found, _ in runs])))
            said = runs[0][1]["person, fold_in"]
            rows.append([name, epsilon, len(ratings.y), medians[-1], said])
        ratio = max(medians) / min(medians)
        report.note(f"equal public numbers, epsilon {epsilon:g}: errors are {ratio:.3f} apart")
    title = f"{ALIKE[0]} people and {ALIKE[1]} items, bounds 1 to 5: RMSE of persons by fold_in"
    report.table(title, ["ratings", "epsilon", "number", "median", "forecast"], rows)


def run(report: Report, data: Path) -> None:
    """Measure every set that is there."""
    for name in DATA_SETS:
        folder = {"movielens": "ml-100k"}.get(name, name)
        if name != "tastes" and not (data / folder).is_dir():
            report.note(f"skipped: no {folder} in {data}")
            continue
        medians = measure(report, data, name)
        if name == "tastes":
            recovery(report, data, medians)
    if all((data / folder).is_dir() for folder in ("goodbooks", "ml-100k")):
        limit_of_forecasts(report, data)
