"""Document completion over exact word frequencies: what topics are worth at a budget.

Corpora, each with a tenth of the documents held out by ``default_rng(0).random(n) < .1``: posts
of 20 newsgroups (both files, the 2000 commonest words of three letters or more that are no stop
words), Daily KOS (its 2000 commonest words), six tokens of each newsgroup post drawn without
replacement (seed 0), titles (summaries of Debian's packages where ``apt-cache`` has them, their
2000 commonest words as above), the first six page views of users, and posts of a forum whose
authors are protected. Documents have three tokens or more. Proportions are inferred from a random
half of the tokens, and the perplexity is that of the other half, as a ratio to the exact word
frequencies of the training documents. *Words*: the whole budget spent on word frequencies.
Ten topics, delta = 1e-6, medians of noise seed and random_state 0 to 4; NPMI of the ten top
words of every topic on held-out documents.
"""

import gzip
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from benchmarks.corpora import MIN_TOKENS, forum, read_labelled
from benchmarks.metrics import token_logarithms
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.data.counts import CountChunks
from sktensor_dp.metrics import coherence
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.count_moments import WordFrequencies
from sktensor_dp.spectral_lda.clips import Clips
from sktensor_dp.topics.shrinkage import denoise_frequencies

__all__ = ["run"]

PARTS = ("train", "test")
N_TOPICS, DELTA, N_WORDS, SHORT = 10, 1e-6, 2000, 6
EPSILONS = (math.inf, 10.0, 4.0, 2.0, 1.0)
BARS = {"newsgroups": (0.67, 0.74, 0.80, 0.87, 0.93), "kos": (0.62, 0.74, 0.82, 0.92, 1.03)}
WORSE_THAN_WORDS, SHORT_AT_TWO = 1.01, 0.95
MOST_HELD_OUT = 5000
Floats = NDArray[np.float64]
Labels = NDArray[np.int64] | None


def newsgroup_posts(folder: Path) -> sp.csr_matrix:
    vocabulary = (folder / "vocab.txt").read_text("utf-8").split()
    parts = [read_labelled(folder / f"{part}.ldac.gz", len(vocabulary)) for part in PARTS]
    eligible = np.array(
        [len(w) >= 3 and w.isalpha() and w.lower() not in ENGLISH_STOP_WORDS for w in vocabulary]
    )
    return commonest(sp.vstack(parts).tocsr(), eligible)


def kos(folder: Path) -> sp.csr_matrix:
    with gzip.open(folder / "doc_word_count.tsv.gz") as stored:
        document, word, count = np.loadtxt(stored, dtype=np.int64).T
    X = sp.coo_matrix((count.astype(float), (document, word))).tocsr()
    return commonest(X, np.ones(X.shape[1], dtype=bool))


def titles() -> sp.csr_matrix:
    """Summaries of software packages, of one line each."""
    listed = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=True).stdout
    texts = sorted(set(re.findall(r"(?m)^Description: (.+)", listed.decode("utf-8", "replace"))))
    words = CountVectorizer(stop_words="english", token_pattern="[a-z]{3,}")
    X = sp.csr_matrix(words.fit_transform(texts), dtype=np.float64)
    return commonest(X, np.ones(X.shape[1], dtype=bool))


def commonest(X: sp.csr_matrix, eligible: NDArray[np.bool_]) -> sp.csr_matrix:
    frequency = np.asarray(X.sum(axis=0)).ravel() * eligible
    return long_enough(X[:, np.argsort(-frequency, kind="stable")[:N_WORDS]])


def long_enough(X: sp.csr_matrix) -> sp.csr_matrix:
    return X[np.asarray(X.sum(axis=1)).ravel() >= MIN_TOKENS].tocsr()


def shortened(X: sp.csr_matrix) -> sp.csr_matrix:
    """Some tokens of each document, drawn without replacement."""
    times = X.data.astype(np.int64)
    row = np.repeat(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), times)
    word = np.repeat(X.indices, times)
    order = np.lexsort((np.random.default_rng(0).random(len(row)), row))
    starts = np.searchsorted(row, np.arange(X.shape[0]))
    drawn = order[np.arange(len(row)) - starts[row] < SHORT]
    counts = sp.coo_matrix((np.ones(len(drawn)), (row[drawn], word[drawn])), shape=X.shape)
    return sp.csr_matrix(counts)


def first_views(folder: Path) -> sp.csr_matrix:
    with np.load(folder / "msnbc.npz", allow_pickle=False) as stored:
        lengths, pages = stored["lengths"].astype(np.int64), stored["pages"].astype(np.int64)
    user = np.repeat(np.arange(len(lengths)), lengths)
    first = np.arange(len(pages)) - np.repeat(np.cumsum(lengths) - lengths, lengths) < SHORT
    counts = sp.coo_matrix((np.ones(first.sum()), (user[first], pages[first] - 1)))
    return long_enough(counts.tocsr())


def corpora(folder: Path) -> Iterator[tuple[str, sp.csr_matrix, Labels]]:
    """Those that are there: name, counts, and whose each document is."""
    if (folder / "20newsgroups").exists():
        posts = newsgroup_posts(folder / "20newsgroups")
        yield "newsgroups", posts, None
        yield "six tokens", shortened(posts), None
    if shutil.which("apt-cache") is not None:
        yield "titles", titles(), None
    if (folder / "kos").exists():
        yield "kos", kos(folder / "kos"), None
    if (folder / "msnbc").exists():
        yield "page views", first_views(folder / "msnbc"), None
    if (folder / "forum").exists():
        posts = forum(folder / "forum")
        long = np.asarray(posts.X.sum(axis=1)).ravel() >= MIN_TOKENS
        yield "forum", posts.X[long].tocsr(), posts.person[long]


class HeldOut:
    """A corpus in its two parts."""

    def __init__(self, X: sp.csr_matrix, labels: Labels) -> None:
        rng = np.random.default_rng(0)
        if labels is None:
            held_out = rng.random(X.shape[0]) < 0.1
        else:
            held_out = np.isin(labels, np.flatnonzero(rng.random(labels.max() + 1) < 0.1))
        # In order: the same coins fall for the tokens that words and topics are scored by.
        self.train = X[~held_out].tocsr()
        self.test = X[held_out][:MOST_HELD_OUT].tocsr().sorted_indices()
        self.labels = None if labels is None else labels[~held_out]
        frequencies = np.asarray(self.train.sum(axis=0)).ravel() + 0.01
        self._base = self._words(frequencies / frequencies.sum())

    def _words(self, frequencies: Floats) -> float:
        """Logarithm of the perplexity that word frequencies have on the same second halves."""
        return token_logarithms(self.test, frequencies)

    def ratio(self, model: PrivateSpectralLDA) -> float:
        return self.ratio_of_perplexity(model.completion_perplexity(self.test))

    def ratio_of_perplexity(self, perplexity: float) -> float:
        return perplexity / math.exp(self._base)

    def ratio_of_words(self, frequencies: Floats) -> float:
        return math.exp(self._words(frequencies) - self._base)

    def words_alone(self, epsilon: float, seed: int) -> Floats:
        """The whole budget on word frequencies, but for two percent on how to clip."""
        chunks = CountChunks(self.train, *self.train.shape, groups=self.labels)
        shares = {"norm_histogram": 0.02, "word_frequencies": 0.98}
        if math.isinf(epsilon):
            del shares["norm_histogram"]
        plan = ReleasePlan.split(epsilon, DELTA, shares)
        with reproducible_noise(seed), Session(chunks, plan) as ask:
            noisy = ask(WordFrequencies(Clips(ask, {}).release_for_counts(0.1)))
        found = denoise_frequencies(noisy.value, noisy.sigma) + 1e-12
        return np.asarray(found / found.sum())

    def fit(self, epsilon: float, seed: int, n_topics: int = N_TOPICS) -> PrivateSpectralLDA:
        model = PrivateSpectralLDA(n_topics, epsilon=epsilon, delta=DELTA, random_state=seed)
        with reproducible_noise(seed):
            return model.fit(self.train, groups=self.labels)


def median(values: list[float]) -> float:
    return float(np.median(values))


def run(report: Report, folder: Path) -> None:
    for name, X, labels in corpora(folder):
        data, rows = HeldOut(X, labels), []
        report.note(f"{name}: {data.train.shape[0]} documents to learn from")
        for place, epsilon in enumerate(EPSILONS):
            seeds = 1 if report.quick or math.isinf(epsilon) else 5
            models = [data.fit(epsilon, seed) for seed in range(seeds)]
            topics = median([data.ratio(model) for model in models])
            words = median(
                [data.ratio_of_words(data.words_alone(epsilon, seed)) for seed in range(seeds)]
            )
            npmi = [float(coherence(model.components_, data.test).mean()) for model in models]
            kept = median([float(model.n_components_) for model in models])
            rows.append([epsilon, topics, words, median(npmi), kept])
            if kept > 1:  # a fit of one topic gives most of its budget back
                judge(report, name, place, topics, words)
        report.table(
            f"{name}: completion over exact word frequencies",
            ["epsilon", "topics", "words alone", "NPMI", "topics kept"], rows,
            file="topics", group=name, how="medians of seeds 0 to 4; without noise one fit",
        )  # fmt: skip


def judge(report: Report, name: str, place: int, topics: float, words: float) -> None:
    where = f"{name}, epsilon = {EPSILONS[place]:g}"
    report.bar(f"{where}, topics over words alone", topics / words, WORSE_THAN_WORDS)
    if name in BARS:
        report.bar(f"{where}, completion", topics, BARS[name][place])
    if name in ("six tokens", "page views") and EPSILONS[place] == 2:
        report.bar(f"{where}, topics over words alone", topics / words, SHORT_AT_TWO)
