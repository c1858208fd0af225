"""Small surveys: public words with public frequencies against a vocabulary that is paid for.

2000 documents of 15 tokens, each drawn without replacement from a post of 20 newsgroups (words
of three letters or more that are no stop words, posts of 15 such tokens or more); another 1000
are held out, and all other posts are the public text. Public words are its commonest 5000.
Proportions are inferred from a random half of the tokens; the perplexity is that of the other
half over all words, each unknown one, and each less likely one, with a probability of 1e-5. The
private vocabulary and its topics share the same total budget (delta = 1e-6), a third, or half, of
it for the words. *Exact words*: word frequencies of the 2000 documents without noise, over all
their words. *Misled*: the public frequencies belong to other words. Ten topics; medians of noise
seed and random_state 0 to 4.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from benchmarks.corpora import read_labelled
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import BudgetAccountant, PrivateCountVectorizer, PrivateSpectralLDA
from sktensor_dp.exceptions import NotEnoughDataError
from sktensor_dp.topics.inference import token_halves, token_log_likelihood

__all__ = ["run"]

N_DOCUMENTS, N_HELD_OUT, N_TOKENS, N_WORDS, N_TOPICS = 2000, 1000, 15, 5000, 10
DELTA, UNKNOWN = 1e-6, 1e-5
Floats = NDArray[np.float64]
Columns = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Survey:
    """Documents, those held out, and how often words are used elsewhere."""

    train: sp.csr_matrix
    seen: sp.csr_matrix
    unseen: sp.csr_matrix
    public: Floats

    def perplexity(self, likelihood: float, columns: Columns) -> float:
        """Of a log-likelihood of words in some columns, with the others at the floor."""
        whole = float(self.unseen.sum())
        unknown = whole - float(self.unseen[:, columns].sum())
        return math.exp(-(likelihood + unknown * math.log(UNKNOWN)) / whole)

    def of_words(self, frequencies: Floats, columns: Columns) -> float:
        counts = np.asarray(self.unseen[:, columns].sum(axis=0)).ravel()
        likelihood = float(counts @ np.log(np.maximum(frequencies, UNKNOWN)))
        return self.perplexity(likelihood, columns)

    def of_topics(self, model: PrivateSpectralLDA, columns: Columns) -> float:
        shares = model.transform(self.seen[:, columns])
        unseen = sp.csr_matrix(self.unseen[:, columns])
        topics = np.maximum(model.components_, UNKNOWN)
        return self.perplexity(token_log_likelihood(unseen, shares, topics).sum(), columns)


def drawn(X: sp.csr_matrix, rng: np.random.Generator) -> sp.csr_matrix:
    """So many tokens of each document."""
    tokens = [
        rng.choice(np.repeat(X.indices[a:b], X.data[a:b].astype(int)), N_TOKENS, replace=False)
        for a, b in itertools.pairwise(X.indptr)
    ]
    rows = np.repeat(np.arange(X.shape[0]), N_TOKENS)
    counts = (np.ones(len(rows)), (rows, np.concatenate(tokens)))
    return sp.csr_matrix(sp.coo_matrix(counts, shape=X.shape))


def survey(folder: Path) -> Survey:
    names = (folder / "vocab.txt").read_text("utf-8").split()
    parts = [read_labelled(folder / f"{part}.ldac.gz", len(names)) for part in ("train", "test")]
    kept = [len(w) >= 3 and w.isalpha() and w.lower() not in ENGLISH_STOP_WORDS for w in names]
    X = sp.vstack(parts).tocsr()[:, np.flatnonzero(kept)]
    X = X[np.asarray(X.sum(axis=1)).ravel() >= N_TOKENS]
    rng = np.random.default_rng(0)
    order = rng.permutation(X.shape[0])
    first, second, rest = np.split(order, [N_DOCUMENTS, N_DOCUMENTS + N_HELD_OUT])
    train, held_out = drawn(X[first], rng), drawn(X[second], rng)
    halves = token_halves(held_out, np.random.RandomState(0))
    return Survey(train, *halves, np.asarray(X[rest].sum(axis=0)).ravel())


def by_public_words(
    data: Survey, columns: Columns, frequencies: Floats | None
) -> Callable[[float, int], tuple[float, int]]:
    def ratio(epsilon: float, seed: int) -> tuple[float, int]:
        options = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
        model = PrivateSpectralLDA(N_TOPICS, word_frequencies=frequencies, **options)
        return data.of_topics(model.fit(data.train[:, columns]), columns), len(columns)

    return ratio


def by_private_words(data: Survey, share: float) -> Callable[[float, int], tuple[float, int]]:
    places = np.arange(data.train.shape[1]).astype(str)
    texts = [np.repeat(places[row.indices], row.data.astype(int)).tolist() for row in data.train]

    def ratio(epsilon: float, seed: int) -> tuple[float, int]:
        budget = BudgetAccountant(epsilon, DELTA)
        for_words, for_topics = budget.split([share, 1 - share], ["vocabulary", "gaussian"])
        words = PrivateCountVectorizer(
            analyzer=list, max_words_per_document=N_TOKENS, accountant=budget, **for_words
        )
        try:
            counts = words.fit_transform(texts)
        except NotEnoughDataError:
            return 1 / UNKNOWN, 0
        model = PrivateSpectralLDA(N_TOPICS, random_state=seed, accountant=budget, **for_topics)
        columns = words.get_feature_names_out().astype(np.intp)
        return data.of_topics(model.fit(counts), columns), len(columns)

    return ratio


def run(report: Report, folder: Path) -> None:
    """Run the benchmark."""
    data = survey(folder / "20newsgroups")
    columns = np.argsort(-data.public, kind="stable")[:N_WORDS]
    everything = np.asarray(data.train.sum(axis=0)).ravel()
    exact = data.of_words(everything / everything.sum(), np.arange(len(everything)))
    known = data.public[columns]
    alone = data.of_words(known / known.sum(), columns)
    misled = np.random.default_rng(0).permutation(known)
    ways = {
        "public words and frequencies": by_public_words(data, columns, known),
        "public words with frequencies of others": by_public_words(data, columns, misled),
        "public words, frequencies not told": by_public_words(data, columns, None),
        "private words, a third": by_private_words(data, 1 / 3),
        "private words, half": by_private_words(data, 1 / 2),
    }
    rows: list[list[str | float]] = [
        ["exact words", 1.0, 1.0, *[int((everything > 0).sum())] * 2],
        ["public frequencies, no data", alone / exact, alone / exact, N_WORDS, N_WORDS],
    ]
    found: dict[str, list[float]] = {}
    for name, way in ways.items():
        results = []
        for epsilon in (4.0, 1.0):
            measured = []
            for seed in range(1 if report.quick else 5):
                with reproducible_noise(seed):
                    measured.append(way(epsilon, seed))
            results.append(np.median(np.array(measured), axis=0))
        found[name] = [float(result[0]) / exact for result in results]
        rows.append([name, *found[name], *(int(result[1]) for result in results)])
    report.table(
        "perplexity over exact words",
        ["words", "epsilon 4", "epsilon 1", "words at 4", "words at 1"], rows,
        file="public_words", how="five seeds",
    )  # fmt: skip
    ours = found["public words and frequencies"]
    for place, epsilon in enumerate((4, 1)):
        best = min(values[place] for name, values in found.items() if name.startswith("private"))
        report.bar(f"epsilon {epsilon}: over the private vocabulary", ours[place] / best, 1.0)
    report.bar("epsilon 4: over exact words", ours[0], 1.02)
