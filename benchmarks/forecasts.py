"""Forecasts of topics against fits: how often the words of a verdict are kept.

Texts and documents drawn from laws, of several sizes, numbers of topics and epsilons: *first* cases
(noise seed 0), *new* ones with other texts, laws, sizes, numbers of topics, epsilons and seeds,
documents of topics that share *common words* (noise seed 2), and *short* texts (seed 3): first
lines of documentation, and posts of three to eight tokens. Chances of verdicts, and how much the
strength of topics differs, were chosen on first and new cases. The constant of
the law comes from eigenvalues of texts: *strength* is that of the second moment for the topic of
rank 3, 5, 10 and 20, times its rank and 1 plus the concentration that forecasts assume for the mean
length, over the sum of squared word frequencies that they
assume (geometric means; a random half of the documents gives vectors, the other half values). A fit
keeps a verdict where it finds, above the noise (``hidden()``),

- *enough*: four fifths of the topics or more, and they predict held-out words better than exact
  word frequencies do;
- *may be enough*: a third of the topics or more;
- *likely too few*: less than four fifths;
- *too few*: half of the topics or fewer.

If it finds any, their number is in the range of the forecast (*likely from*, *likely to*) or not;
*none* is the forecast's chance that it finds none.

    python -m benchmarks forecasts
"""

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks import topics
from benchmarks.laws import LAWS, Law
from benchmarks.metrics import token_logarithms
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateSpectralLDA, datasets
from sktensor_dp.spectral_lda.plan import squares_of_words
from sktensor_dp.tensor import top_eigenpairs
from sktensor_dp.topics import defaults
from sktensor_dp.topics.concentration import concentration_of_length

__all__ = ["LEAST_VERDICTS", "forecasts_surprise", "keeps", "run"]

# Ranks of topics whose strength is measured, and the largest ratio of that assumed to the measured.
RANKS, NEAR = (3, 5, 10, 20), 1.25
TABLE = Path(__file__).parents[1] / "docs" / "results" / "forecasts.csv"

TEXTS, TESTED = ("newsgroups", "kos"), 1000
# Fractions of fits in the range of the forecast, and as the verdict says: half of fits may fail
# that "may be enough".
LEAST_KEPT, LEAST_VERDICTS = 0.9, 0.85
OF_TEXTS, OF_LAWS = (0.5, 1.0, 2.0, 4.0, 10.0), (0.5, 2.0, 8.0)
NEW_TEXTS, NEW_EPSILONS = ("titles", "newsgroups", "kos"), (0.7, 1.5, 3.0, 6.0)
NEW_LAWS = (
    Law(300, 12, 0.2, 6, 21_000), Law(800, 40, 2.0, 12, 21_000), Law(400, 6, 0.0, 5, 21_000),
    Law(40, 5, 0.5, 4, 21_000), Law(1000, 100, 1.0, 20, 21_000),
)  # fmt: skip
# Six tokens are of newsgroups, and page views are no texts.
NO_TEXTS = ("six tokens", "page views")
# Documents of topics with own words, and common ones: tokens, and the share of these.
COMMON, SIZE = ((10, 0.45), (30, 0.25), (80, 0.25)), 4000
Case = tuple[str, sp.csr_matrix, sp.csr_matrix, int, float]


def keeps(verdict: str, found: float, gains: bool) -> bool:
    """Tell whether a fit that found such a part of the topics keeps a verdict."""
    return {
        "enough": found >= 0.8 and gains,
        "may be enough": found >= 1 / 3,
        "likely too few": found < 0.8,
        "too few": found <= 1 / 2,
    }[verdict]


def first_cases(folder: Path) -> Iterator[Case]:
    """Name, documents to learn from and to be held out, number of topics, epsilon."""
    for name, X, labels in topics.corpora(folder):
        if name not in TEXTS:
            continue
        held = topics.HeldOut(X, labels)
        n = held.train.shape[0]
        order = np.random.default_rng(0).permutation(n)
        for size in sorted({1000, min(3000, n), n}):
            for k in (5, 10, 30) if size == n else (10,):
                for epsilon in OF_TEXTS:
                    yield name, held.train[order[:size]], held.test[:TESTED], k, epsilon
    for law in [LAWS[0], LAWS[3], LAWS[5], LAWS[8], LAWS[10], LAWS[11]]:
        X = law.corpus.X
        for size in (1000, 3000, 10_000, 40_000):
            for epsilon in OF_LAWS:
                name = f"{law.n_words} words, {law.length} tokens, {law.concentration:g}"
                yield name, X[TESTED : TESTED + size], X[:TESTED], law.n_topics, epsilon


def new_cases(folder: Path) -> Iterator[Case]:
    """Further texts, laws, sizes, numbers of topics and epsilons."""
    for name, X, labels in topics.corpora(folder):
        if name not in NEW_TEXTS:
            continue
        held = topics.HeldOut(X, labels)
        order = np.random.default_rng(1).permutation(held.train.shape[0])
        for size, k in ((700, 10), (2000, 15), (6000, 7), (15_000, 20)):
            if size <= len(order):
                for epsilon in NEW_EPSILONS:
                    yield name, held.train[order[:size]], held.test[:TESTED], k, epsilon
    for law in NEW_LAWS:
        X = law.corpus.X
        for size in (600, 5000, 20_000):
            for epsilon in (1.0, 3.0):
                name = f"{law.n_words} words, {law.length} tokens, {law.concentration:g}"
                yield name, X[TESTED : TESTED + size], X[:TESTED], law.n_topics, epsilon


def with_common_words(k: int, length: int, common: float) -> sp.csr_matrix:
    """Documents that mix `k` topics, each of 20 words of its own, and of 40 common ones."""
    rng, n_own, n_common = np.random.default_rng(k + length), 20, 40
    own, shared = (1 / np.arange(2.0, 2 + n) ** 0.7 for n in (n_own, n_common))
    words = np.kron(np.eye(k), (1 - common) * own / own.sum())
    words = np.hstack([words, np.tile(common * shared / shared.sum(), (k, 1))])
    shares = rng.dirichlet(np.full(k, 2.5 / k), SIZE + TESTED)
    lengths = np.maximum(rng.poisson(length, len(shares)), 3)
    return sp.csr_matrix(rng.multinomial(lengths, shares @ words))


def common_cases(_folder: Path) -> Iterator[Case]:
    """Documents of topics that share common words."""
    for length, common in COMMON:
        for k in (3, 6, 12):
            X = with_common_words(k, length, common)
            name = f"common words, {length} tokens"
            for epsilon in (0.5, 1.0, 2.0, 4.0):
                yield name, X[TESTED:], X[:TESTED], k, epsilon


def short_cases(folder: Path) -> Iterator[Case]:
    """Texts that are short by themselves."""
    lines = [text.strip().split("\n\n")[0] for text in datasets.load_docstrings()]
    words = CountVectorizer(stop_words="english", max_features=2000, token_pattern="[a-z]{3,}")
    texts = {"summaries": (topics.long_enough(words.fit_transform(lines)), (2000, 4600))}
    if (folder / "forum").exists():
        X = topics.forum(folder / "forum").X
        lengths = np.asarray(X.sum(axis=1)).ravel()
        short = X[(lengths >= 3) & (lengths <= 8)]
        all_words = np.ones(X.shape[1], dtype=bool)
        texts["short posts"] = topics.commonest(short, all_words), (6000, 20_000)
    for name, (X, sizes) in texts.items():
        order = np.random.default_rng(1).permutation(X.shape[0])
        for size in sizes:
            for k in (5, 10):
                for epsilon in (1.0, 3.0, 10.0):
                    learnt = X[order[TESTED : TESTED + size]]
                    yield name, learnt, X[order[:TESTED]], k, epsilon


CASES = {"first": first_cases, "new": new_cases, "common": common_cases, "short": short_cases}


def strength(X: sp.csr_matrix) -> float:
    """Strength of the topics of documents."""
    lengths = np.asarray(X.sum(axis=1)).ravel()
    X, lengths = sp.csr_matrix(X[lengths >= 2], dtype=np.float64), lengths[lengths >= 2]
    half = np.random.default_rng(0).random(len(lengths)) < 0.5
    moments, means = zip(*(_moments(X[part], lengths[part]) for part in (half, ~half)), strict=True)
    _, vectors = top_eigenpairs(moments[0] - np.outer(means[0], means[0]) / 2, max(RANKS))
    M2 = moments[1] - np.outer(means[1], means[1]) / 2
    values = np.einsum("dk,dk->k", vectors, M2 @ vectors)
    squares = squares_of_words(X.shape[1], X.shape[1])
    mixed = 1 + concentration_of_length(float(lengths.mean()))
    strengths = [mixed * rank * values[rank - 1] / squares for rank in RANKS]
    return float(np.exp(np.log(np.maximum(strengths, 1e-3)).mean()))


def _moments(X: sp.csr_matrix, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Second moment and mean of counts, each document alike."""
    weights = 1 / (lengths * (lengths - 1))
    scaled = sp.diags(np.sqrt(weights)) @ X
    pairs = np.asarray((scaled.T @ scaled).todense())
    pairs[np.diag_indices_from(pairs)] -= X.T @ weights
    return pairs / len(lengths), np.asarray(X.T @ (1 / lengths)) / len(lengths)


def measure_strength(report: Report, folder: Path) -> None:
    """Measure how strong topics of texts are, and of documents drawn from laws."""
    texts = {name: X for name, X, _ in topics.corpora(folder) if name not in NO_TEXTS}
    words = CountVectorizer(stop_words="english", max_features=2000, token_pattern="[a-z]{3,}")
    texts["documentation"] = words.fit_transform(datasets.load_docstrings())
    found = {name: strength(X) for name, X in texts.items()}
    typical = float(np.median([*found.values()]))
    drawn = {f"drawn: {law}": strength(law.corpus.X) for law in (NEW_LAWS[-1],)}
    report.table(
        "Strength of topics", ["set", "strength"],
        [*map(list, {**found, "median of texts": typical, **drawn}.items())],
        file="strength_of_topics", how="half of the documents against the other half",
    )  # fmt: skip
    ratio = max(defaults.STRENGTH / typical, typical / defaults.STRENGTH)
    report.bar("ratio of the strength that forecasts assume to that of texts", ratio, NEAR)


def forecasts_surprise() -> float:
    """Mean of minus the logarithm of the chance that forecasts, made now, give committed fits.

    One fit in a hundred may find any number.
    """
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    chances = []
    for row in rows:
        k, found = int(row["topics"]), int(row["found"])
        forecast = PrivateSpectralLDA(k, epsilon=float(row["epsilon"])).forecast(
            int(row["documents"]), int(row["words"]), document_length=int(row["tokens"])
        )
        at_least = [1.0, *map(forecast.chance, range(1, k + 1)), 0.0]
        chances.append(0.99 * (at_least[found] - at_least[found + 1]) + 0.01 / (k + 1))
    return -float(np.log(chances).mean())


def run(report: Report, folder: Path) -> None:
    """Fit all cases and count verdicts that are kept."""
    measure_strength(report, folder)
    rows: list[list[Cell]] = []
    for seed, (which, cases) in enumerate(CASES.items()):
        for n_done, (name, X, test, k, epsilon) in enumerate(cases(folder)):
            if report.quick and n_done == 10:
                break
            model = PrivateSpectralLDA(k, epsilon=epsilon, random_state=seed)
            length = max(round(X.sum() / X.shape[0]), 1)
            forecast = model.forecast(X.shape[0], X.shape[1], document_length=length)
            with reproducible_noise(seed):
                model.fit(X)
            frequencies = np.asarray(X.sum(axis=0)).ravel() + 0.01
            words = token_logarithms(test.sorted_indices(), frequencies / frequencies.sum())
            over = model.completion_perplexity(test) / math.exp(words)
            found = int((~model.hidden()).sum())
            kept = keeps(forecast.verdict, found / k, over < 1)
            rows.append([
                which, name, X.shape[0], X.shape[1], length, k, epsilon, forecast.n_samples_needed,
                forecast.verdict, *forecast.n_likely, forecast.p_none, found, over, int(kept),
            ])  # fmt: skip
            report.note(" | ".join(map(str, rows[-1])))
    report.table(
        "Forecasts and fits",
        [
            "cases", "set", "documents", "words", "tokens", "topics", "epsilon", "least", "verdict",
            "likely from", "likely to", "none", "found", "over words", "kept",
        ], rows, file="forecasts", how="noise seeds 0 to 3",
    )  # fmt: skip
    missed = float(np.mean([not row[9] <= row[12] <= row[10] for row in rows if row[12]]))
    report.bar("fits that see topics, out of the range of the forecast", missed, 1 - LEAST_KEPT)
    for which in ("first", "new"):
        lost = 1 - float(np.mean([row[-1] for row in rows if row[0] == which]))
        report.bar(f"{which} cases: verdicts not kept", lost, 1 - LEAST_VERDICTS)
