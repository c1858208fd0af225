"""Persons with several documents: their means against one document each, and all in one.

*Never a loss*: synthetic persons, errors of topics. *Real text*: posts of a forum (Walker et
al. 2012), a tenth of the authors held out; document completion of their posts (proportions
from a random half of the tokens, perplexity of the other half), per author and averaged over
authors in its logarithm, as a ratio to exact word frequencies in which authors weigh alike.
*Many people*: page views, cut into documents of three. Medians of noise seed and random_state
0 to 4 (real text: 0 to 2).
"""

import math
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.corpora import Persons, forum, page_views, persons
from benchmarks.metrics import halves, matched_error
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateSpectralLDA

__all__ = ["run"]

DELTA, N_TOPICS = 1e-6, 10
N_PERSONS, SYNTHETIC = 20_000, (0.3, 1.0, 4.0)
REAL = (1.0, 4.0, 10.0, math.inf)
VIEWS = {1.0: 0.05, 0.1: 0.15}
# Of the perplexity of word frequencies, mixed into topics so that no word is ruled out.
FLOOR = 1e-3
Floats = NDArray[np.float64]
Ways = dict[str, Callable[[PrivateSpectralLDA, Persons, int], PrivateSpectralLDA]]


def one_each(model: PrivateSpectralLDA, data: Persons, seed: int) -> PrivateSpectralLDA:
    """One random document of each person."""
    order = np.random.default_rng(seed).permutation(len(data.person))
    _, first = np.unique(data.person[order], return_index=True)
    return model.fit(data.X[order[first]])


def all_in_one(model: PrivateSpectralLDA, data: Persons, seed: int) -> PrivateSpectralLDA:
    """One document of all that a person wrote."""
    _, places = np.unique(data.person, return_inverse=True)
    whose = sp.csr_matrix((np.ones(len(places)), (places, np.arange(len(places)))))
    return model.fit(sp.csr_matrix(whose @ data.X))


WAYS: Ways = {
    "groups": lambda model, data, seed: model.fit(data.X, groups=data.person),
    "all in one": all_in_one,
    "one each": one_each,
}


def fitted(
    way: str, data: Persons, epsilon: float, seed: int, n_topics: int, prior: float | str
) -> PrivateSpectralLDA:
    """Fit one model with noise by the seed."""
    model = PrivateSpectralLDA(
        n_topics, epsilon=epsilon, delta=DELTA, doc_topic_prior=prior, random_state=seed
    )
    with reproducible_noise(seed):
        return WAYS[way](model, data, seed)


def never_a_loss(report: Report) -> None:
    n_persons, seeds = (2000, 1) if report.quick else (N_PERSONS, 5)
    rows, smaller = [], 0
    for epsilon in SYNTHETIC:
        errors: dict[str, list[float]] = {"groups": [], "one each": []}
        for seed in range(seeds):
            data, topics = persons(n_persons, 50, N_TOPICS, 8, np.random.default_rng(seed))
            for way, found in errors.items():
                model = fitted(way, data, epsilon, seed, N_TOPICS, 0)
                found.append(matched_error(model.components_, topics))
        groups, one = (float(np.median(errors[way])) for way in errors)
        rows.append([epsilon, groups, one])
        smaller += groups < one
        report.bar(f"topic error of groups against one each, epsilon = {epsilon:g}", groups, one)
    report.table(
        "topic error, synthetic persons", ["epsilon", "groups", "one random document each"], rows,
        file="people", how="medians of noise seeds 0 to 4",
    )  # fmt: skip
    report.bar("epsilons at which groups are better", smaller, 2, at_least=True)


class HeldOutPosts:
    """Posts of persons held out, and how well models complete them."""

    def __init__(self, data: Persons, frequencies: Floats) -> None:
        self._first, self._second = halves(data.X, np.random.default_rng(0))
        _, self._person = np.unique(data.person, return_inverse=True)
        self._rows = np.repeat(np.arange(data.X.shape[0]), np.diff(self._second.indptr))
        self._frequencies = frequencies
        self.base = self._log_perplexity(np.ones((data.X.shape[0], 1)), frequencies[None])

    def ratio(self, model: PrivateSpectralLDA) -> float:
        """Perplexity over that of the frequencies."""
        return math.exp(
            self._log_perplexity(model.transform(self._first), model.components_) - self.base
        )

    def _log_perplexity(self, proportions: Floats, topics: Floats) -> float:
        topics = (1 - FLOOR) * topics + FLOOR / topics.shape[1]
        found = np.zeros(len(self._rows))
        for share, topic in zip(proportions.T, topics, strict=True):
            found += share[self._rows] * topic[self._second.indices]
        persons, terms = self._person[self._rows], self._second.data
        tokens = np.bincount(persons, terms)
        losses = -np.bincount(persons, terms * np.log(found))
        return float((losses[tokens > 0] / tokens[tokens > 0]).mean())


def real_text(report: Report, folder: Path) -> None:
    if not (folder / "forum.npz").exists():
        report.note(f"skipped: no forum in {folder} (see --data)")
        return
    data = forum(folder)
    labels = np.unique(data.person)
    held_out = labels[np.random.default_rng(0).random(len(labels)) < 0.1]
    is_test = np.isin(data.person, held_out)
    train, test = data.part(~is_test), data.part(is_test)
    posts = HeldOutPosts(test, train.mean_frequencies())
    rows, wins = [], 0
    for epsilon in REAL:
        seeds = 1 if report.quick or math.isinf(epsilon) else 3
        found, seconds = {}, {}
        for way in WAYS:
            start = time.process_time()
            models = [fitted(way, train, epsilon, s, N_TOPICS, "auto") for s in range(seeds)]
            seconds[way] = (time.process_time() - start) / seeds
            found[way] = float(np.median([posts.ratio(model) for model in models]))
        best = min(found["all in one"], found["one each"])
        rows.append([epsilon, *found.values(), *seconds.values()])
        wins += found["groups"] < best
        report.bar(f"forum, groups over one each, epsilon = {epsilon:g}",
                   found["groups"] / found["one each"], 1.0)  # fmt: skip
        report.bar(f"forum, groups over the better, epsilon = {epsilon:g}",
                   found["groups"] / best, 1.01)  # fmt: skip
    report.table(
        "forum: completion over exact word frequencies; processor seconds a fit",
        [
            "epsilon", "groups", "all posts of an author in one", "one random post each",
            "seconds, groups", "seconds, all posts in one", "seconds, one post",
        ], rows,
        file="people_of_a_forum", how="medians of noise seeds 0 to 2; without noise one fit",
    )  # fmt: skip
    report.bar("forum, epsilons at which groups beat both", wins, 2, at_least=True)


def many_people(report: Report, folder: Path) -> None:
    if not (folder / "msnbc.npz").exists():
        report.note(f"skipped: no page views in {folder} (see --data)")
        return
    data = page_views(folder, 3)
    exact = fitted("groups", data, math.inf, 0, 5, 0).components_
    rows = []
    for epsilon, bar in VIEWS.items():
        errors, seconds = [], []
        for seed in range(1 if report.quick else 5):
            start = time.process_time()
            model = fitted("groups", data, epsilon, seed, 5, 0)
            seconds.append(time.process_time() - start)
            errors.append(matched_error(model.components_, exact))
        rows.append([epsilon, float(np.median(errors)), max(seconds)])
        report.bar(f"page views, distance to the exact fit, epsilon = {epsilon:g}",
                   float(np.median(errors)), bar)  # fmt: skip
        report.bar(f"page views, processor seconds, epsilon = {epsilon:g}", max(seconds), 60.0)
    report.table("page views", ["epsilon", "total variation", "processor seconds"], rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    report.bar("page views, peak memory of the process in GiB", peak, 2.0)


def run(report: Report, folder: Path) -> None:
    many_people(report, folder / "msnbc")
    never_a_loss(report)
    real_text(report, folder / "forum")
