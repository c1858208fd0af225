"""Whether intervals around private topics hold what the same fit gives without noise.

For synthetic documents of several shapes: how many words stand above the noise, how many of their
intervals at 90 % hold the probability that the same fit has without noise, topics matched, and by
what deviations would have to be multiplied to hold 90 %; and the same of the topics' shares.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.corpora import Corpus, lda, lognormal_lengths, single_topic, zipf_base
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import NotEnoughDataWarning, PrivateSpectralLDA
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.uncertainty import NINE_TENTHS

__all__ = ["SHAPES", "Shape", "corpus", "deviations", "fitted", "held", "run"]

LEVEL, ABOVE = 0.9, 2.0
FIRST_SEED, SEEDS = 1000, 8
COLUMNS = [
    "documents", "words above noise", "coverage, words", "scale, words", "coverage, shares",
    "scale, shares",
]  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """Documents, words, topics, sum of the prior, median length."""

    n_documents: int
    n_words: int
    n_topics: int
    concentration: float
    length: int


SHAPES = {
    "8,000 x 400, 5 topics": Shape(8000, 400, 5, 1.0, 60),
    "6,000 x 300, 4 topics": Shape(6000, 300, 4, 0.4, 40),
    "10,000 x 500, 3 mixed topics": Shape(10_000, 500, 3, 3.0, 30),
    "10,000 x 400, 6 single topics": Shape(10_000, 400, 6, 0.0, 20),
    "20,000 x 100, 5 topics": Shape(20_000, 100, 5, 1.0, 40),
    "20,000 x 60, 3 single topics": Shape(20_000, 60, 3, 0.0, 20),
    # Too few documents for third moments at epsilon = 1.
    "6,000 x 400, 6 topics": Shape(6000, 400, 6, 1.0, 60),
    "10,000 x 1,000, 10 topics": Shape(10_000, 1000, 10, 0.5, 80),
    "5,000 x 500, 8 topics": Shape(5000, 500, 8, 0.3, 40),
}


def corpus(shape: Shape, seed: int) -> Corpus:
    rng = np.random.default_rng(seed)
    law = zipf_base(shape.n_words, 30.0) + 0.02
    if shape.concentration == 0:
        return single_topic(shape.n_documents, law, shape.n_topics, shape.length, rng)
    lengths = lognormal_lengths(shape.n_documents, shape.length, 0.5, rng)
    return lda(lengths, law, shape.n_topics, shape.concentration, rng)


def fitted(shape: Shape, counts: Corpus, epsilon: float) -> PrivateSpectralLDA:
    model = PrivateSpectralLDA(
        shape.n_topics, epsilon=epsilon, doc_topic_prior=shape.concentration / shape.n_topics,
        random_state=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        return model.fit(counts.X)


def deviations(noisy: PrivateSpectralLDA, exact: PrivateSpectralLDA) -> tuple[Floats, Floats]:
    """Distances of words above the noise, and of shares, in standard deviations."""
    assert noisy.components_std_ is not None
    assert noisy.topic_prior_std_ is not None
    distances = np.abs(noisy.components_[:, None] - exact.components_).sum(axis=2)
    rows, columns = linear_sum_assignment(distances)
    std = noisy.components_std_[rows]
    away = np.abs(noisy.components_[rows] - exact.components_[columns])
    above = noisy.components_[rows] > ABOVE * std
    shares = [model.topic_prior_ / model.topic_prior_.sum() for model in (noisy, exact)]
    of_shares = np.abs(shares[0][rows] - shares[1][columns])
    return away[above] / std[above], of_shares / (
        noisy.topic_prior_std_[rows] / noisy.topic_prior_.sum()
    )


def held(away: Floats) -> float:
    """Fraction of distances that intervals at `LEVEL` hold."""
    return float((away <= NINE_TENTHS).mean())


def run(report: Report) -> None:
    """Show coverage of all shapes, with the scale of deviations at which nine tenths were held."""
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if report.quick else SEEDS))
    for epsilon in (1.0, 4.0):
        rows: list[list[Cell]] = []
        for name, shape in SHAPES.items():
            found = []
            for seed in seeds:
                counts = corpus(shape, seed)
                exact = fitted(shape, counts, math.inf)
                with reproducible_noise(seed):
                    found.append(deviations(fitted(shape, counts, epsilon), exact))
            words, shares = (np.concatenate(away) for away in zip(*found, strict=True))
            scales = [float(np.quantile(away, LEVEL)) / NINE_TENTHS for away in (words, shares)]
            n_words = words.size / len(found)
            rows.append([name, n_words, held(words), scales[0], held(shares), scales[1]])
            report.note(f"epsilon = {epsilon:g}: " + " | ".join(map(str, rows[-1])))
        rows.append(["mean", *np.mean([row[1:] for row in rows], axis=0).tolist()])
        title, how = f"epsilon = {epsilon:g}", f"{len(seeds)} fits of each"
        report.table(title, COLUMNS, rows, file="topic_intervals", group=title, how=how)
