"""Whether intervals around private topics hold what an EM step without noise makes of them.

For synthetic documents of several shapes: how many words stand above the noise, how many of their
intervals at 90 % hold the probability after an EM step on the documents themselves, and by what
deviations would have to be multiplied to hold 90 %.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from benchmarks.corpora import Corpus, lda, lognormal_lengths, single_topic, zipf_base
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import NotEnoughDataWarning, PrivateSpectralLDA
from sktensor_dp.data.counts import CountChunks
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.tensor.arrays import Floats

__all__ = ["SHAPES", "Shape", "corpus", "deviations", "fitted", "held", "run"]

LEVEL, ABOVE = 0.9, 2.0
REACH = float(ndtri((1 + LEVEL) / 2))  # of an interval, in standard deviations
FIRST_SEED, SEEDS = 1000, 8
COLUMNS = ["documents", "words above noise", "coverage, words", "scale, words"]


@dataclass(frozen=True)
class Shape:
    """Documents, words, topics, sum of the prior, median length, topics asked for if others."""

    n_documents: int
    n_words: int
    n_topics: int
    concentration: float
    length: int
    asked: int = 0


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
    "20,000 x 600, 5 of 10 topics": Shape(20_000, 600, 10, 0.8, 60, 5),
}


def corpus(shape: Shape, seed: int) -> Corpus:
    rng = np.random.default_rng(seed)
    law = zipf_base(shape.n_words, 30.0) + 0.02
    if shape.concentration == 0:
        return single_topic(shape.n_documents, law, shape.n_topics, shape.length, rng)
    lengths = lognormal_lengths(shape.n_documents, shape.length, 0.5, rng)
    return lda(lengths, law, shape.n_topics, shape.concentration, rng)


def fitted(shape: Shape, counts: Corpus, epsilon: float) -> PrivateSpectralLDA:
    k = shape.asked or shape.n_topics
    prior = shape.concentration / k
    model = PrivateSpectralLDA(k, epsilon=epsilon, doc_topic_prior=prior, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        return model.fit(counts.X)


def deviations(noisy: PrivateSpectralLDA, counts: Corpus) -> Floats:
    """Distances of words above the noise from those after an exact EM step, in deviations."""
    topics, std = noisy.components_, noisy.components_std_
    step = ExpectedCounts(topics, noisy.topic_prior_, noisy.doc_topic_prior_ == 0, math.inf)
    chunks = CountChunks(counts.X, *counts.X.shape)
    exact = sum(step.total(chunk) for chunk in chunks)
    above = topics > ABOVE * std
    exact /= exact.sum(axis=1, keepdims=True)
    return np.asarray((np.abs(topics - exact) / std)[above])


def held(away: Floats) -> float:
    """Fraction of distances that intervals at `LEVEL` hold."""
    return float((away <= REACH).mean())


def run(report: Report) -> None:
    """Show coverage of all shapes, with the scale of deviations at which nine tenths were held."""
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if report.quick else SEEDS))
    for epsilon in (1.0, 4.0):
        rows: list[list[Cell]] = []
        for name, shape in SHAPES.items():
            found = []
            for seed in seeds:
                counts = corpus(shape, seed)
                with reproducible_noise(seed):
                    found.append(deviations(fitted(shape, counts, epsilon), counts))
            words = np.concatenate(found)
            scale = float(np.quantile(words, LEVEL)) / REACH
            rows.append([name, words.size / len(found), held(words), scale])
            report.note(f"epsilon = {epsilon:g}: " + " | ".join(map(str, rows[-1])))
        rows.append(["mean", *np.mean([row[1:] for row in rows], axis=0).tolist()])
        title, how = f"epsilon = {epsilon:g}", f"{len(seeds)} fits of each"
        report.table(title, COLUMNS, rows, file="topic_intervals", group=title, how=how)
