"""Whether intervals around private topics hold what the same fit gives without noise.

``python -m benchmarks.topic_intervals`` prints, for synthetic documents of several shapes, how
many words stand above the noise and how many of their intervals at 90 % hold the probability
that the same fit has without noise, topics matched; and the same of the topics' shares.
``--fits`` says how many seeded fits are made at each epsilon (200 by default, spread over the
shapes), ``--seed`` where their seeds begin.
"""

import argparse
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.corpora import Corpus, lda, lognormal_lengths, single_topic, zipf_base
from sktensor_dp import NotEnoughDataWarning, PrivateSpectralLDA

__all__ = ["SHAPES", "Coverage", "Shape", "corpus", "cover", "main"]

LEVEL, ABOVE = 0.9, 2.0


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


@dataclass(frozen=True)
class Coverage:
    """Shares of words above the noise, and of topics, whose interval holds the other fit's."""

    words: float
    n_words: int
    shares: float


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


def cover(noisy: PrivateSpectralLDA, exact: PrivateSpectralLDA) -> Coverage:
    distances = np.abs(noisy.components_[:, None] - exact.components_).sum(axis=2)
    rows, columns = linear_sum_assignment(distances)
    low, high = noisy.components_interval(LEVEL)
    inside = (low[rows] <= exact.components_[columns]) & (exact.components_[columns] <= high[rows])
    above = (noisy.components_ > ABOVE * noisy.components_std_)[rows]
    low, high = noisy.shares_interval(LEVEL)
    shares = (exact.topic_prior_ / exact.topic_prior_.sum())[columns]
    of_shares = (low[rows] <= shares) & (shares <= high[rows])
    return Coverage(float(inside[above].mean()), int(above.sum()), float(of_shares.mean()))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args(arguments)
    names, at_each = list(SHAPES), math.ceil(options.fits / len(SHAPES))
    print(f"{'documents':<32}{'epsilon':>8}{'words':>7}{'in them':>9}{'shares':>8}")
    for epsilon in (1.0, 4.0):
        found: list[Coverage] = []
        for name in names:
            several = []
            for seed in range(options.seed, options.seed + at_each):
                counts = corpus(SHAPES[name], seed)
                exact = fitted(SHAPES[name], counts, math.inf)
                several.append(cover(fitted(SHAPES[name], counts, epsilon), exact))
            print(_line(name, epsilon, several), flush=True)
            found += several
        print(_line(f"all {len(found)} fits", epsilon, found), flush=True)


def _line(name: str, epsilon: float, found: list[Coverage]) -> str:
    words = np.mean([one.words for one in found])
    n_words = np.mean([one.n_words for one in found])
    shares = np.mean([one.shares for one in found])
    return f"{name:<32}{epsilon:>8g}{n_words:>7.0f}{words:>9.3f}{shares:>8.3f}"


if __name__ == "__main__":
    main()
