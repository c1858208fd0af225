"""Time and memory of a fit, against scikit-learn's LDA in the same run.

20000 documents of Poisson(100) words; LDA with alpha0 = 1; topics from a Dirichlet over
a Zipf base (parameters proportional to 1 / rank, sum d / 10), drawn with
``default_rng([0, d])``. Fits take turns; ratios are those of median CPU seconds. The floor is
what reading the counts alone takes.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation

from benchmarks import peak_memory
from benchmarks.corpora import Corpus, lda, zipf_base
from benchmarks.metrics import matched_error
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateSpectralLDA

__all__ = ["run"]

N_DOCUMENTS, LENGTH, DELTA = 20_000, 100, 1e-6
SKLEARN, EXACT, PRIVATE = "scikit-learn", "epsilon = inf, no refinement", "epsilon = 1"
# (words, topics): least ratio of scikit-learn's time to that of each fit.
BARS = {(5000, 20): {EXACT: 30.0, PRIVATE: 20.0}, (2000, 10): {PRIVATE: 20.0}}
MEMORY_BAR = 1.5 * 2**30
OURS: dict[str, dict[str, Any]] = {
    EXACT: {"epsilon": math.inf, "n_refinements": 0},
    "epsilon = inf": {"epsilon": math.inf},
    PRIVATE: {"epsilon": 1.0},
}


def run(report: Report, repeats: int | None = None) -> None:
    n_documents, turns = (2000, 1) if report.quick else (N_DOCUMENTS, 3)
    repeats = repeats or turns
    for (n_words, n_topics), bars in BARS.items():
        rng = np.random.default_rng([0, n_words])
        law = zipf_base(n_words, n_words / 10)
        corpus = lda(rng.poisson(LENGTH, n_documents), law, n_topics, 1.0, rng)
        title = f"d = {n_words}, k = {n_topics}"
        report.note(f"\n  {title}: {n_documents} documents, {corpus.X.nnz} non-zeros")
        seconds, errors = compare(corpus, n_topics, repeats)
        reference = float(np.median(seconds[SKLEARN]))
        report.table(
            f"{title}, {repeats} repeats",
            ["fit", "median s", "min s", "max s", "ratio", "topic error"],
            [
                [
                    name,
                    *(float(f(times)) for f in (np.median, np.min, np.max)),
                    reference / float(np.median(times)),
                    errors[name],
                ]
                for name, times in seconds.items()
            ],
            file="speed",
            group=title,
            how="medians of runs that take turns",
        )
        report_floor(report, corpus, n_topics, title)
        for name, limit in bars.items():
            ratio = reference / float(np.median(seconds[name]))
            report.bar(f"{title}, {name}: times faster", ratio, limit, at_least=True)
        what = f"{title}, {EXACT}: topic error (bar: scikit-learn's)"
        report.bar(what, errors[EXACT], errors[SKLEARN])
        report_memory(report, corpus, n_topics, title)


def baseline(n_topics: int, seed: int) -> LatentDirichletAllocation:
    return LatentDirichletAllocation(
        n_topics, learning_method="online", max_iter=5, random_state=seed
    )


def ours(n_topics: int, parameters: dict[str, Any], seed: int) -> PrivateSpectralLDA:
    return PrivateSpectralLDA(n_topics, delta=DELTA, random_state=seed, **parameters)


def compare(
    corpus: Corpus, n_topics: int, repeats: int
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Times of every fit, taking turns, and the error of the last one's topics."""
    fits: dict[str, Callable[[int], Any]] = {
        SKLEARN: partial(baseline, n_topics),
        **{name: partial(ours, n_topics, parameters) for name, parameters in OURS.items()},
    }
    with reproducible_noise(0):  # first calls load libraries
        fits[PRIVATE](0).fit(corpus.X[:200])
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    errors = {}
    for repeat in range(repeats):
        for name, make in fits.items():
            with reproducible_noise(repeat):
                start = time.process_time()
                model = make(repeat).fit(corpus.X)
                seconds[name].append(time.process_time() - start)
            topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
            errors[name] = matched_error(topics, corpus.topics)
    return seconds, errors


def report_floor(report: Report, corpus: Corpus, n_topics: int, title: str) -> None:
    """What passes over the non-zeros cost, and nothing else."""
    X = corpus.X
    V = np.random.default_rng(0).standard_normal((X.shape[1], n_topics))
    Y = X @ V
    passes: dict[str, Callable[[], object]] = {
        "sum of squared counts": lambda: np.square(X.data).sum(),
        "X V, V of k columns": lambda: X @ V,
        "X' Y, Y of k columns": lambda: X.T @ Y,
        "X' X, sparse": lambda: X.T @ X,
    }
    rows: list[list[str | float]] = []
    for name, action in passes.items():
        times = []
        for _ in range(5):
            start = time.process_time()
            action()
            times.append(time.process_time() - start)
        rows.append([name, float(np.median(times))])
    report.table(f"{title}, floor: one pass over the non-zeros", ["pass", "median s"], rows)


def report_memory(report: Report, corpus: Corpus, n_topics: int, title: str) -> None:
    for name, parameters in OURS.items():
        refinements = str(parameters.get("n_refinements", "auto"))
        before, peak = peak_memory.of_fit(corpus.X, n_topics, parameters["epsilon"], refinements)
        report.note(f"memory, {name}: {before / 2**20:.0f} MiB before, peak {peak / 2**20:.0f}")
        report.bar(f"{title}, {name}: peak memory in GiB", peak / 2**30, MEMORY_BAR / 2**30)
