"""Topics of public posts for private texts, against either alone.

Public: 20 newsgroups (both files, their 10,000 commonest words of three letters or more that are
no stop words), ten topics fitted without noise. Private: Daily KOS, and posts of a forum whose
authors are protected, with the parts held out and the measure of ``benchmarks topics``; words are
matched by name. *Public alone*: the topics as they are; words that they lack have a tenth of an
even share. *Adapted*: their words made to mix to the exact frequencies of the training documents,
which no fit can know. delta = 1e-6, medians of noise seed and random_state 0 to 2 (0 on
the forum).
"""

import gzip
import math
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from benchmarks.corpora import MIN_TOKENS, forum, read_labelled
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from benchmarks.topics import DELTA, N_TOPICS, N_WORDS, PARTS, HeldOut, long_enough, median
from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.spectral_lda.public_words import frequencies_of_topics, public_topics
from sktensor_dp.topics.inference import proportions, token_halves, token_log_likelihood
from sktensor_dp.topics.shrinkage import on_all_words

__all__ = ["run"]

PUBLIC_WORDS, SEEDS, EPSILONS = 10_000, {"kos": 3, "forum": 1}, (1.0, 4.0, 10.0)
WORSE = 1.01
Floats = NDArray[np.float64]


def public_table(folder: Path) -> dict[str, list[float]]:
    """Topics of 20 newsgroups by word."""
    words = np.array((folder / "vocab.txt").read_text("utf-8").split())
    X = sp.vstack([read_labelled(folder / f"{part}.ldac.gz", len(words)) for part in PARTS])
    kept = [len(w) >= 3 and w.isalpha() and w.lower() not in ENGLISH_STOP_WORDS for w in words]
    often = np.argsort(-np.asarray(X.sum(axis=0)).ravel() * kept, kind="stable")[:PUBLIC_WORDS]
    model = PrivateSpectralLDA(N_TOPICS, epsilon=math.inf, random_state=0)
    topics = model.fit(long_enough(X.tocsr()[:, often])).components_
    return dict(zip(words[often].tolist(), topics.T.tolist(), strict=True))


def kos(folder: Path) -> tuple[HeldOut, NDArray[np.str_]]:
    words = np.array((folder / "dictionary.txt").read_text("utf-8").split())
    with gzip.open(folder / "doc_word_count.tsv.gz") as stored:
        document, word, count = np.loadtxt(stored, dtype=np.int64).T
    X = sp.coo_matrix((count.astype(float), (document, word))).tocsr()
    often = np.argsort(-np.asarray(X.sum(axis=0)).ravel(), kind="stable")[:N_WORDS]
    return HeldOut(long_enough(X[:, often]), None), words[often]


def forum_posts(folder: Path) -> tuple[HeldOut, NDArray[np.str_]]:
    posts = forum(folder)
    with np.load(folder / "forum.npz", allow_pickle=False) as stored:
        words = stored["vocab"]
    long = np.asarray(posts.X.sum(axis=1)).ravel() >= MIN_TOKENS
    return HeldOut(posts.X[long].tocsr(), posts.person[long]), words


def ratio_of_topics(data: HeldOut, topics: Floats) -> float:
    """Of topics that were not fitted, with an even prior of concentration 1."""
    first, second = token_halves(sp.csr_matrix(data.test, dtype=float), np.random.RandomState(0))
    shares = proportions(first, topics, np.full(len(topics), 1 / len(topics)), False)
    perplexity = math.exp(-token_log_likelihood(second, shares, topics).sum() / second.sum())
    return data.ratio_of_perplexity(perplexity)


def fit(data: HeldOut, epsilon: float, seed: int, public: Floats | None) -> PrivateSpectralLDA:
    options = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
    model = PrivateSpectralLDA(N_TOPICS, public_components=public, **options)
    with reproducible_noise(seed):
        return model.fit(data.train, groups=data.labels)


def run(report: Report, folder: Path) -> None:
    """Run the benchmark."""
    table, better = public_table(folder / "20newsgroups"), []
    for name, reader in (("kos", kos), ("forum", forum_posts)):
        data, words = reader(folder / name)
        public = public_topics(table, N_TOPICS, len(words), words)
        known = int(public.any(axis=0).sum())
        report.note(f"{name}: public topics know {known} of {len(words)} words")
        alone = ratio_of_topics(data, on_all_words(public, frequencies_of_topics(public)))
        rows: list[list[str | float]] = []
        for epsilon in EPSILONS:
            seeds = range(1 if report.quick else SEEDS[name])
            private, both = (
                median([data.ratio(fit(data, epsilon, seed, given)) for seed in seeds])
                for given in (None, public)
            )
            rows.append([epsilon, private, alone, both])
            best = min(private, alone)
            better.append(both / best)
            report.bar(f"{name}, epsilon {epsilon:g}: over the better one", both / best, WORSE)
        report.table(
            f"{name}: completion over exact word frequencies",
            ["epsilon", "private topics alone", "public topics alone", "both"], rows,
            file="public_topics", group=name, how="medians of three seeds; one of the forum",
        )  # fmt: skip
    report.bar("somewhere over the better one", min(better), 1.0)
