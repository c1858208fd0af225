"""Recommended items against popularity: recall of liked items that were held out.

``default_rng(0)`` holds out a fifth of the ratings; a liked item has four stars of five or more, or
.75 of jester's range. Recall@10: the share of a person's held-out liked items among the best ten
that the person has not rated, of 3,000 people by ``default_rng(1)``.

- *recommend*: ``PrivateCPCompletion(10)`` with defaults, people as units or single ratings.
- *popularity* by numbers of ratings, exact, or released at the same epsilon: each person's ratings
  over the root of their number, so that people have norm 1, with Gaussian noise.
- *item means*: exact means of ratings; a person's own bias does not change their order.
- *topics of likes*: ``PrivateSpectralLDA(5)`` of the items that a person likes.
- *ALS*: exact implicit least squares of likes, ten factors, as in `implicit_feedback`.

    python -m benchmarks top_n
    python -m benchmarks top_n --quick     one seed, MovieLens alone
"""

import math
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.ablations import write
from benchmarks.implicit_feedback import als
from benchmarks.ratings import DATA_SETS, Ratings
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateCPCompletion, PrivateSpectralLDA
from sktensor_dp.metrics import recall_at_k
from sktensor_dp.privacy.calibration import gaussian_mu

__all__ = ["run"]

Floats = NDArray[np.float64]
SETS, EPSILONS, PEOPLE, DELTA = (
    ("movielens", "goodbooks", "jester"),
    (1.0, 2.0, 5.0, 10.0),
    3000,
    1e-6,
)
SOURCE = "python -m benchmarks top_n: medians of noise seeds 0 to {}"


class Held:
    """Ratings to fit, and those of some people to find."""

    def __init__(self, ratings: Ratings) -> None:
        X = np.concatenate([ratings.X, ratings.X_test])
        y = np.concatenate([ratings.y, ratings.y_test])
        test, self.shape, self.bounds = (
            np.random.default_rng(0).random(len(y)) < 0.2,
            ratings.shape,
            ratings.bounds,
        )
        low, high = ratings.bounds
        liked = y >= low + 0.75 * (high - low)
        self.X, self.y, self.liked = X[~test], y[~test], liked[~test]
        chosen = np.random.default_rng(1).permutation(self.shape[0])[:PEOPLE]
        self.people = np.sort(chosen)
        self.seen = self.table(self.X)[self.people].toarray() > 0
        self.wanted = self.table(X[test & liked])[self.people]

    def table(self, X: NDArray[np.intp]) -> sp.csr_matrix:
        """Pairs of people and items as ones."""
        return sp.csr_matrix((np.ones(len(X)), tuple(X.T)), self.shape)

    def recall(self, scores: Floats) -> float:
        """Recall@10 of scores (n_people, n_items), or (n_items,) for all alike."""
        scores = np.where(self.seen, -np.inf, scores)
        return recall_at_k(self.wanted, scores, k=10)

    def recommended(self, epsilon: float, seed: int, unit_mode: int | None) -> float:
        """Recall of the places of `recommend`."""
        model = PrivateCPCompletion(
            10, bounds=self.bounds, shape=self.shape, epsilon=epsilon, unit_mode=unit_mode,
            random_state=seed,
        )  # fmt: skip
        with reproducible_noise(seed):
            model.fit(self.X, self.y)
        own = np.isin(self.X[:, 0], self.people)
        folded = model.fold_in(self.X[own], self.y[own])
        best = model.recommend(folded, 10, exclude=self.X[own]).rows
        scores = np.zeros((len(self.people), self.shape[1] + 1))  # the last one is of none
        rows = np.searchsorted(self.people, folded.units)[:, None]
        scores[rows, best] = np.arange(10, 0, -1)
        return self.recall(scores[:, :-1])

    def popularity(self, epsilon: float, seed: int) -> float:
        """Recall of released numbers of ratings."""
        each = np.bincount(self.X[:, 0])[self.X[:, 0]]
        counts = np.bincount(self.X[:, 1], each**-0.5, self.shape[1])
        noise = np.random.default_rng(seed).standard_normal(len(counts))
        return self.recall(counts + math.sqrt(2) / gaussian_mu(epsilon, DELTA) * noise)

    def topics(self, epsilon: float, seed: int) -> float:
        """Recall of topics of likes."""
        likes, model = (
            self.table(self.X[self.liked]),
            PrivateSpectralLDA(5, epsilon=epsilon, random_state=seed),
        )
        with reproducible_noise(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shares = model.fit(likes).transform(likes[self.people])
        return self.recall(shares @ model.components_)

    def exact(self) -> dict[str, float]:
        """Recall of what is not private."""
        counts = np.bincount(self.X[:, 1], minlength=self.shape[1])
        means = np.bincount(self.X[:, 1], self.y, self.shape[1]) / np.maximum(counts, 1)
        likes = self.table(self.X[self.liked])
        return {
            "popularity, exact": self.recall(counts.astype(float)),
            "item means, exact": self.recall(means),
            "ALS of likes, exact": self.recall(als(likes, 10, 10.0, 10.0)(likes[self.people])),
        }


WAYS: dict[str, Callable[[Held, float, int], float]] = {
    "`recommend`, persons": lambda held, *of: held.recommended(*of, 0),
    "`recommend`, single ratings": lambda held, *of: held.recommended(*of, None),
    "popularity, released": Held.popularity,
    "topics of likes, persons": Held.topics,
}


def run(report: Report, data: Path) -> None:
    """Measure all sets that are there; a run in full writes the table of the results page."""
    rows: list[list[Cell]] = []
    least = math.inf
    for name in SETS[: 1 if report.quick else None]:
        try:
            held = Held(DATA_SETS[name](data, 0, False))
        except OSError:
            report.note(f"skipped: no {name} in {data}")
            continue
        seeds = range(1 if report.quick or name != "movielens" else 3)
        found: dict[str, list[float]] = {}
        for way, measure in WAYS.items():
            found[way] = [
                float(np.median([measure(held, epsilon, seed) for seed in seeds]))
                for epsilon in EPSILONS
            ]
            report.note(f"{name}, {way}: {found[way]}")
        released = np.array(found["popularity, released"])
        least = min(least, float((np.array(found["`recommend`, persons"]) / released).min()))
        source = SOURCE.format(seeds[-1])
        rows += [
            [f"{name}, {way}", *(f"{r:.4g}".lstrip("0") for r in of), source]
            for way, of in found.items()
        ]
        rows += [
            [f"{name}, {way}", *[f"{r:.4g}".lstrip("0")] * len(EPSILONS), source]
            for way, r in held.exact().items()
        ]
    columns = ["epsilon", *(f"{epsilon:g}" for epsilon in EPSILONS), "source"]
    report.table("Recall@10 of liked items that were held out", columns, rows)
    report.bar("recall over that of released popularity, least", least, 0.98, at_least=True)
    if not report.quick:
        write(Path(__file__).parents[1] / "docs" / "results" / "top_n.csv", columns, rows)
