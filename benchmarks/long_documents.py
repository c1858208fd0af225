"""Long documents with known topics: noise where they have one topic, bias where many.

Topics from a Dirichlet over a Zipf base (parameters proportional to 1 / rank, sum
100), delta 1e-6. Seed s draws topics and documents from ``default_rng([s, d])``; fits
have noise seed s and random_state s. The bars are on the mean over seeds.
"""

import math
from typing import Any

import numpy as np

from benchmarks.corpora import Corpus, lda, lognormal_lengths, single_topic, zipf_base
from benchmarks.metrics import matched_error
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateSpectralLDA

__all__ = ["run"]

N_TOPICS, DELTA, CONCENTRATION = 10, 1e-6, 100.0
SINGLE = {"n_documents": 50_000, "n_words": 1000, "length": 100}
MIXED = {"n_documents": 20_000, "n_words": 500, "median": 80, "sigma": 0.8}
SINGLE_BARS = {1.0: 0.17, 16.0: 0.03}
BIAS_BAR, UNCLIPPED_BAR = 0.03, 0.037


def fitted(corpus: Corpus, epsilon: float, seed: int, **parameters: Any) -> PrivateSpectralLDA:
    with reproducible_noise(seed):
        return PrivateSpectralLDA(
            N_TOPICS, epsilon=epsilon, delta=DELTA, random_state=seed, **parameters
        ).fit(corpus.X)


def statistics(errors: list[float]) -> list[float]:
    return [float(f(errors)) for f in (np.mean, np.median, np.min, np.max)]


def run(report: Report) -> None:
    seeds = range(1 if report.quick else 5)
    scale = 5 if report.quick else 1
    run_single_topic(report, seeds, scale)
    run_lda(report, seeds, scale)


def run_single_topic(report: Report, seeds: range, scale: int) -> None:
    """One topic per document, at three noise levels."""
    n_words, n_documents = int(SINGLE["n_words"]), int(SINGLE["n_documents"]) // scale
    law = zipf_base(n_words, CONCENTRATION)
    errors: dict[float, list[float]] = {epsilon: [] for epsilon in (*SINGLE_BARS, math.inf)}
    for seed in seeds:
        rng = np.random.default_rng([seed, n_words])
        corpus = single_topic(n_documents, law, N_TOPICS, int(SINGLE["length"]), rng)
        for epsilon, found in errors.items():
            topics = fitted(corpus, epsilon, seed, doc_topic_prior=0).components_
            found.append(matched_error(topics, corpus.topics))
    report.table(
        f"single topic, {n_documents} documents of {SINGLE['length']} of {n_words} words: total "
        f"variation of topics, seeds 0 to {len(seeds) - 1}",
        ["epsilon", "mean", "median", "min", "max"],
        [[f"{epsilon:g}", *statistics(found)] for epsilon, found in errors.items()],
        file="long_documents",
        how="seeds 0 to 4",
    )
    for epsilon, limit in SINGLE_BARS.items():
        error = float(np.mean(errors[epsilon]))
        report.bar(f"single topic, epsilon = {epsilon:g}, error", error, limit)


def run_lda(report: Report, seeds: range, scale: int) -> None:
    """Mixtures of topics in documents of very different length."""
    n_words, n_documents = int(MIXED["n_words"]), int(MIXED["n_documents"]) // scale
    law = zipf_base(n_words, CONCENTRATION)
    errors: dict[str, list[float]] = {}
    for seed in seeds:
        rng = np.random.default_rng([seed, n_words])
        lengths = lognormal_lengths(n_documents, MIXED["median"], MIXED["sigma"], rng)
        corpus = lda(lengths, law, N_TOPICS, 1.0, rng)
        for name, model in lda_fits(corpus, seed).items():
            error = matched_error(model.components_, corpus.topics)
            errors.setdefault(name, []).append(error)
    report.table(
        f"LDA (alpha0 = 1), {n_documents} documents of lognormal length (median "
        f"{MIXED['median']}, sigma {MIXED['sigma']}) of {n_words} words: total variation of "
        f"topics, seeds 0 to {len(seeds) - 1}",
        ["fit", "mean", "median", "min", "max"],
        [[name, *statistics(found)] for name, found in errors.items()],
        file="long_documents_clipped",
        how="seeds 0 to 4",
    )
    unclipped, clipped = (
        float(np.mean(errors[f"no noise, {clips}, spectral"]))
        for clips in ("unclipped", "clips of epsilon = 4")
    )
    report.bar("LDA without noise, spectral, unclipped, error", unclipped, UNCLIPPED_BAR)
    report.bar("LDA without noise, spectral, clips of epsilon = 4, error", clipped, BIAS_BAR)


def lda_fits(corpus: Corpus, seed: int) -> dict[str, PrivateSpectralLDA]:
    noisy = fitted(corpus, 4.0, seed)
    clips = dict(noisy.clip_norm_)
    spectral = {"n_refinements": 0}
    return {
        "epsilon = 4": noisy,
        "no noise, unclipped, spectral": fitted(corpus, math.inf, seed, **spectral),
        "no noise, clips of epsilon = 4, spectral": fitted(
            corpus, math.inf, seed, clip_norm=clips, **spectral
        ),
        "no noise, unclipped, refined": fitted(corpus, math.inf, seed),
        "no noise, clips of epsilon = 4, refined": fitted(corpus, math.inf, seed, clip_norm=clips),
    }
