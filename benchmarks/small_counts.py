"""Three-word documents with one known topic each, against the published algorithms.

Single topic model, d = 50, k = 10, equally likely topics from Dirichlet(.2), delta
1e-6. Seed s draws topics and documents from ``default_rng([s, N])``; fits have noise
seed s and random_state s. The bars are on the mean over seeds. A topic that a method does
not find counts as an error of 1, so that where noise hides most of them the error of fewer
topics is above that of ten copies of the word frequencies.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpora import Corpus, single_topic
from benchmarks.metrics import matched_error
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.published import agn, avn

__all__ = ["run"]

N_WORDS, N_TOPICS, LENGTH, DELTA = 50, 10, 3, 1e-6
TOPIC_LAW = np.full(N_WORDS, 0.2)
BARS = {(100_000, 1.0): 0.045, (1_000_000, 1.0): 0.008, (100_000, 0.1): 0.27}
COLUMNS = ["method", *(f"N = {n:,}, epsilon = {epsilon:g}" for n, epsilon in BARS)]
Fit = Callable[[Corpus, float, int], NDArray[np.float64]]


def estimator(**parameters: str) -> Fit:
    """Fit of PrivateSpectralLDA with some parameters of its own."""

    def fit(corpus: Corpus, epsilon: float, seed: int) -> NDArray[np.float64]:
        model = PrivateSpectralLDA(
            N_TOPICS,
            epsilon=epsilon,
            delta=DELTA,
            doc_topic_prior=0,
            random_state=seed,
            **parameters,  # type: ignore[arg-type]
        ).fit(corpus.X)
        return model.components_

    return fit


def word_frequencies(corpus: Corpus) -> NDArray[np.float64]:
    counts = np.asarray(corpus.X.sum(axis=0), dtype=float).ravel()
    return counts / counts.sum()


METHODS: dict[str, Fit] = {
    "whitened_tensor (default)": estimator(),
    "moment_tensor": estimator(perturbation="moment_tensor"),
    "published AGN": lambda c, eps, s: agn(c.X, N_TOPICS, eps, DELTA, s).topics,
    "published AVN": lambda c, eps, s: avn(c.X, N_TOPICS, eps, DELTA, s).topics,
    "AGN without noise": lambda c, eps, s: agn(c.X, N_TOPICS, math.inf, DELTA, s).topics,
    "word frequencies (trivial)": lambda c, eps, s: np.tile(word_frequencies(c), (N_TOPICS, 1)),
}


def run(report: Report) -> None:
    seeds = range(2 if report.quick else 5)
    scale = 10 if report.quick else 1
    rows: list[list[str | float]] = [[name] for name in METHODS]
    for (n_documents, epsilon), limit in BARS.items():
        errors: dict[str, list[float]] = {name: [] for name in METHODS}
        for seed in seeds:
            rng = np.random.default_rng([seed, n_documents])
            corpus = single_topic(n_documents // scale, TOPIC_LAW, N_TOPICS, LENGTH, rng)
            for name, fit in METHODS.items():
                with reproducible_noise(seed):
                    topics = fit(corpus, epsilon, seed)
                errors[name].append(matched_error(topics, corpus.topics))
        report.table(
            f"N = {n_documents // scale}, epsilon = {epsilon:g}: total variation of topics, "
            f"seeds 0 to {len(seeds) - 1}",
            ["method", "mean", "median", "min", "max"],
            [
                [name, *(float(f(e)) for f in (np.mean, np.median, np.min, np.max))]
                for name, e in errors.items()
            ],
        )
        for row in rows:
            row.append(float(np.mean(errors[str(row[0])])))
        mean = float(np.mean(errors["whitened_tensor (default)"]))
        report.bar(f"N = {n_documents:g}, epsilon = {epsilon:g}, error", mean, limit)
    report.table("mean errors", COLUMNS, rows, file="small_counts", how="means of seeds 0 to 4")
