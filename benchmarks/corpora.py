"""Corpora: synthetic ones with known topics, and 20 newsgroups."""

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

__all__ = [
    "Corpus",
    "Persons",
    "forum",
    "lda",
    "lognormal_lengths",
    "mixed",
    "newsgroups",
    "page_views",
    "persons",
    "read_labelled",
    "single_topic",
    "zipf_base",
]

Floats = NDArray[np.float64]
MIN_TOKENS = 3


@dataclass(frozen=True, eq=False)
class Corpus:
    """Counts with the topics they were drawn from."""

    X: sp.csr_matrix
    topics: Floats


def zipf_base(n_words: int, concentration: float) -> Floats:
    """Dirichlet parameters proportional to 1 / rank that sum to ``concentration``."""
    shares = 1 / np.arange(1, n_words + 1)
    base: Floats = concentration * shares / shares.sum()
    return base


def lognormal_lengths(
    n_documents: int, median: float, sigma: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Document lengths, at least three tokens."""
    lengths = median * np.exp(sigma * rng.standard_normal(n_documents))
    return np.maximum(np.rint(lengths), MIN_TOKENS).astype(np.int64)


def single_topic(
    n_documents: int, topic_law: Floats, n_topics: int, length: int, rng: np.random.Generator
) -> Corpus:
    """Documents of one topic each, all topics equally likely.

    ``topic_law`` holds the Dirichlet parameters of a topic, one for each word.
    """
    topics = rng.dirichlet(topic_law, size=n_topics)
    shares = np.eye(n_topics, dtype=np.int64)[rng.integers(n_topics, size=n_documents)]
    return Corpus(_draw_words(shares * length, topics, rng), topics)


def lda(
    lengths: NDArray[np.int64],
    topic_law: Floats,
    n_topics: int,
    alpha0: float,
    rng: np.random.Generator,
) -> Corpus:
    """Latent Dirichlet allocation with prior ``alpha0 / n_topics`` for every topic."""
    topics = rng.dirichlet(topic_law, size=n_topics)
    shares = rng.dirichlet(np.full(n_topics, alpha0 / n_topics), size=len(lengths))
    return Corpus(mixed(lengths, shares, topics, rng), topics)


def mixed(
    lengths: NDArray[np.int64], shares: Floats, topics: Floats, rng: np.random.Generator
) -> sp.csr_matrix:
    """Counts of documents of given lengths, whose words mix topics by given shares."""
    return _draw_words(rng.multinomial(lengths, shares), topics, rng)


def _draw_words(
    tokens_per_topic: NDArray[np.int64], topics: Floats, rng: np.random.Generator
) -> sp.csr_matrix:
    documents = np.arange(len(tokens_per_topic), dtype=np.int32)
    rows = [np.repeat(documents, tokens) for tokens in tokens_per_topic.T]
    words = [
        rng.choice(topics.shape[1], size=len(row), p=topic)
        for row, topic in zip(rows, topics, strict=True)
    ]
    row, word = np.concatenate(rows), np.concatenate(words)
    shape = (len(tokens_per_topic), topics.shape[1])
    # Conversion to compressed rows sums repeated words.
    return sp.coo_matrix((np.ones(len(row)), (row, word)), shape=shape).tocsr()


def newsgroups(folder: Path, n_words: int = 2000) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Training and test counts of 20 newsgroups.

    Words are the ``n_words`` most frequent of the training documents that have three
    letters or more and are not stop words; documents have three such tokens or more.
    """
    vocabulary = (folder / "vocab.txt").read_text("utf-8").split()
    train, test = (
        read_labelled(folder / f"{part}.ldac.gz", len(vocabulary)) for part in ("train", "test")
    )
    eligible = np.array(
        [
            len(word) >= 3 and word.isalpha() and word.lower() not in ENGLISH_STOP_WORDS
            for word in vocabulary
        ]
    )
    frequency = np.asarray(train.sum(axis=0)).ravel() * eligible
    words = np.argsort(-frequency, kind="stable")[:n_words]
    return _long_enough(train[:, words]), _long_enough(test[:, words])


def read_labelled(path: Path, n_words: int) -> sp.csr_matrix:
    """LDA-C lines, "label n word:count ...", whose labels are dropped."""
    lines = gzip.decompress(path.read_bytes()).decode("ascii").splitlines()
    rows = [line.split()[2:] for line in lines]
    pairs = np.array([pair.split(":") for row in rows for pair in row]).astype(np.int64)
    indptr = np.cumsum([0, *map(len, rows)])
    X = sp.csr_matrix((pairs[:, 1], pairs[:, 0], indptr), shape=(len(rows), n_words))
    X.sum_duplicates()
    return X


def _long_enough(X: sp.csr_matrix) -> sp.csr_matrix:
    return X[np.asarray(X.sum(axis=1)).ravel() >= MIN_TOKENS].tocsr()


@dataclass(frozen=True, eq=False)
class Persons:
    """Counts of documents, and whose each is."""

    X: sp.csr_matrix
    person: NDArray[np.int64]

    def part(self, rows: NDArray[np.bool_]) -> "Persons":
        """Some of the documents."""
        return Persons(self.X[rows], self.person[rows])

    def mean_frequencies(self) -> Floats:
        """Word frequencies in which every person weighs the same."""
        _, places = np.unique(self.person, return_inverse=True)
        ones = np.ones(len(places))
        whose = sp.csr_matrix((ones, (places, np.arange(len(places)))))
        totals = sp.csr_matrix(whose @ self.X)
        lengths = np.maximum(np.asarray(totals.sum(axis=1)).ravel(), 1.0)
        mean = np.asarray(totals.T @ (1 / lengths)).ravel()
        return np.asarray(mean / mean.sum())


def persons(
    n_persons: int, n_words: int, n_topics: int, length: int, rng: np.random.Generator
) -> tuple[Persons, Floats]:
    """Persons with 1 + Poisson(4) documents, each of one topic of the person's own mixture."""
    topics = rng.dirichlet(np.full(n_words, 0.2), size=n_topics)
    person = np.repeat(np.arange(n_persons), 1 + rng.poisson(4, n_persons))
    mixtures = rng.dirichlet(np.full(n_topics, 1 / n_topics), size=n_persons)
    chosen = (rng.random(len(person))[:, None] > mixtures[person].cumsum(axis=1)).sum(axis=1)
    shares = np.eye(n_topics, dtype=np.int64)[np.minimum(chosen, n_topics - 1)]
    return Persons(_draw_words(shares * length, topics, rng), person), topics


def forum(folder: Path) -> Persons:
    """Posts of a forum."""
    with np.load(folder / "forum.npz", allow_pickle=False) as stored:
        indptr, indices, counts = (stored[name] for name in ("indptr", "indices", "counts"))
        user = stored["user"].astype(np.int64)
    shape = (len(indptr) - 1, int(indices.max()) + 1)
    return Persons(sp.csr_matrix((counts.astype(float), indices, indptr), shape), user)


def page_views(folder: Path, length: int) -> Persons:
    """Page views of users as documents of so many views, the last of a user often shorter."""
    with np.load(folder / "msnbc.npz", allow_pickle=False) as stored:
        lengths, pages = stored["lengths"].astype(np.int64), stored["pages"].astype(np.int64)
    user = np.repeat(np.arange(len(lengths)), lengths)
    within = np.arange(len(pages)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    first = within % length == 0
    document = np.cumsum(first) - 1
    counts = sp.coo_matrix((np.ones(len(pages)), (document, pages - 1))).tocsr()
    return Persons(sp.csr_matrix(counts), user[first])
