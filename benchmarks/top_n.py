"""Recommended items against popularity: recall of liked items that were held out.

``default_rng(0)`` holds out a fifth of the ratings; a liked item has four stars of five or more, or
.75 of jester's range. Recall@10: the share of a person's held-out liked items among the best ten
that the person has not rated, of all people who have any.

- *recommend*: ``PrivateCPCompletion(10)`` with defaults, people as units or single ratings.
- *popularity* by numbers of ratings, exact, or released at the same epsilon: each person's ratings
  over the root of their number, so that people have norm 1, with Gaussian noise.
- *item means*: exact means of ratings; a person's own bias does not change their order.
- *biases*: item biases of a fit without noise, beside biases of people.
- *topics of likes*: ``PrivateSpectralLDA(5)`` of the items that a person likes.
- *ALS*: exact implicit least squares of likes, ten factors, as in `implicit_feedback`.

Goodbooks has at most 100 ratings of a book, and of most books as many: numbers of ratings say
little there, and a list for all finds one liked book of 500.

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

from benchmarks.implicit_feedback import als
from benchmarks.ratings import DATA_SETS, Ratings
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateCPCompletion, PrivateSpectralLDA
from sktensor_dp.metrics import recall_at_k
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.tensor.arrays import blocks

__all__ = ["run"]

Floats = NDArray[np.float64]
SETS = {"movielens": "MovieLens", "goodbooks": "goodbooks", "jester": "jester"}
EPSILONS, DELTA = (1.0, 2.0, 5.0, 10.0), 1e-6
# People whose scores of all items are held at once.
AT_ONCE = 2000
COLUMNS = ["epsilon", *(f"{epsilon:g}" for epsilon in EPSILONS)]


class Held:
    """Ratings to fit, and those to find of people who have any."""

    def __init__(self, ratings: Ratings) -> None:
        X = np.concatenate([ratings.X, ratings.X_test])
        y = np.concatenate([ratings.y, ratings.y_test])
        self.shape, self.bounds = ratings.shape, ratings.bounds
        test = np.random.default_rng(0).random(len(y)) < 0.2
        low, high = ratings.bounds
        liked = y >= low + 0.75 * (high - low)
        self.X, self.y = X[~test], y[~test]
        self.likes = self.table(self.X[liked[~test]])
        wanted = self.table(X[test & liked])
        self.people = np.flatnonzero(np.diff(wanted.indptr))
        self.wanted, self.seen = wanted[self.people], self.table(self.X)[self.people]

    def table(self, X: NDArray[np.intp]) -> sp.csr_matrix:
        """Pairs of people and items as ones."""
        return sp.csr_matrix((np.ones(len(X)), tuple(X.T)), self.shape)

    def recall(self, scores: Floats | Callable[[slice], Floats]) -> float:
        """Recall@10 of scores (n_items,) for all alike, or of a function from some people."""
        found = 0.0
        for part in blocks(len(self.people), AT_ONCE):
            values = scores(part) if callable(scores) else scores
            values = np.where(self.seen[part].toarray() > 0, -np.inf, values)
            found += recall_at_k(self.wanted[part], values, k=10) * len(values)
        return found / len(self.people)

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
        best = np.full((len(self.people), 10), self.shape[1])  # the last one is of none
        rows = np.searchsorted(self.people, folded.units)
        best[rows] = model.recommend(folded, 10, exclude=self.X[own]).rows

        def places(part: slice) -> Floats:
            scores = np.zeros((len(best[part]), self.shape[1] + 1))
            np.put_along_axis(scores, best[part], np.arange(10.0, 0.0, -1.0)[None], axis=1)
            return scores[:, :-1]

        return self.recall(places)

    def popularity(self, epsilon: float, seed: int) -> float:
        """Recall of released numbers of ratings."""
        each = np.bincount(self.X[:, 0])[self.X[:, 0]]
        counts = np.bincount(self.X[:, 1], each**-0.5, self.shape[1])
        noise = np.random.default_rng(seed).standard_normal(len(counts))
        return self.recall(counts + math.sqrt(2) / gaussian_mu(epsilon, DELTA) * noise)

    def topics(self, epsilon: float, seed: int) -> float:
        """Recall of topics of likes."""
        model = PrivateSpectralLDA(5, epsilon=epsilon, random_state=seed)
        with reproducible_noise(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shares = model.fit(self.likes).transform(self.likes[self.people])
        return self.recall(lambda part: shares[part] @ model.components_)

    def exact(self) -> dict[str, float]:
        """Recall of what is not private."""
        counts = np.bincount(self.X[:, 1], minlength=self.shape[1])
        means = np.bincount(self.X[:, 1], self.y, self.shape[1]) / np.maximum(counts, 1)
        of_biases = PrivateCPCompletion(
            0, bounds=self.bounds, shape=self.shape, epsilon=math.inf, unit_mode=0
        ).fit(self.X, self.y)
        mine, factors = self.likes[self.people], als(self.likes, 10, 10.0, 10.0)
        return {
            "popularity, exact": self.recall(counts.astype(float)),
            "means of items, exact": self.recall(means),
            "biases of items and people, exact": self.recall(of_biases.biases_[1]),
            "least squares of likes, exact": self.recall(lambda part: factors(mine[part])),
        }


WAYS: dict[str, Callable[[Held, float, int], float]] = {
    "`recommend`, persons": lambda held, *of: held.recommended(*of, 0),
    "`recommend`, single ratings": lambda held, *of: held.recommended(*of, None),
    "popularity, released, persons": Held.popularity,
    "topics of likes, persons": Held.topics,
}


def run(report: Report, data: Path) -> None:
    """Measure all sets that are there."""
    least = math.inf
    for name in list(SETS)[: 1 if report.quick else None]:
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
        released = np.array(found["popularity, released, persons"])
        least = min(least, float((np.array(found["`recommend`, persons"]) / released).min()))
        rows: list[list[Cell]] = [[way, *recalls] for way, recalls in found.items()]
        rows += [[way, *[recall] * len(EPSILONS)] for way, recall in held.exact().items()]
        how = "medians of noise seeds 0 to 2" if len(seeds) > 1 else "noise seed 0"
        title = f"{SETS[name]}: recall@10 of liked items that were held out"
        report.table(title, COLUMNS, rows, file="top_n", group=SETS[name], how=how)
    report.bar("recall over that of released popularity, least", least, 0.98, at_least=True)
