"""Where the time of topic models goes, beside peers in the same process.

CPU seconds, medians and ranges of runs that take turns. Corpora are those of ``speed``.
"""

import math
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks import peak_memory
from benchmarks.corpora import lda, zipf_base
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateCountVectorizer, PrivateSpectralLDA
from sktensor_dp.data.counts import CountChunk, CountChunks
from sktensor_dp.privacy.mechanisms import gaussian_pair_masses
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.spectral_lda.refinement import MEAN_FIELD

__all__ = ["run"]

# Of an EM step: two for each step of mean field, and one.
N_PRODUCTS = 2 * MEAN_FIELD + 1
COLUMNS = ["what", "median s", "min s", "max s"]
HOW = "CPU seconds of runs that take turns"
FIRST_FIT = """
import time, warnings
import numpy as np
from sktensor_dp import PrivateSpectralLDA
warnings.simplefilter("ignore")
X = np.random.default_rng(0).poisson(1.0, (100, 20))
for _ in range(2):
    start = time.process_time()
    PrivateSpectralLDA(3, epsilon=1.0, delta=1e-6, random_state=0).fit(X)
    print(time.process_time() - start)
"""


def run(report: Report, repeats: int | None = None) -> None:
    repeats = repeats or (1 if report.quick else 5)
    steps(report, repeats)
    first_fit(report, repeats)
    vectorizer(report, repeats)
    pair_noise(report, min(repeats, 3))
    if not report.quick:
        many_documents(report)


def timed(actions: dict[str, Callable[[], Any]], repeats: int) -> list[list[str | float]]:
    """A row for each action: CPU seconds, in turns, after one call that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for repeat in range(repeats + 1):
        for name, action in actions.items():
            start = time.process_time()
            action()
            if repeat:
                seconds[name].append(time.process_time() - start)
    return [
        [name, *(float(f(times)) for f in (np.median, np.min, np.max))]
        for name, times in seconds.items()
    ]


def write(report: Report, title: str, rows: list[list[str | float]]) -> None:
    report.table(title, COLUMNS, rows, file="topic_speed", group=title, how=HOW)


def steps(report: Report, repeats: int) -> None:
    """One EM step of each kind, beside what products with the same topics take."""
    n = 2000 if report.quick else 20_000
    for n_words, k, length in ((2000, 10, 100), (5000, 20, 100), (5000, 20, 5)):
        rng = np.random.default_rng([0, n_words])
        lengths = np.maximum(rng.poisson(length, n), 3)
        corpus = lda(lengths, zipf_base(n_words, n_words / 10), k, 1.0, rng)
        X = corpus.X.astype(float)
        topics = 0.99 * corpus.topics + 0.01 / n_words
        limit = float(np.quantile(np.sqrt(CountChunk(X).squares), 0.9))
        chunks = list(CountChunks(X, *X.shape))
        query = ExpectedCounts(topics, np.full(k, 1 / k), False, limit, n_iter=MEAN_FIELD)
        singles, by_word = X.astype(np.float32), topics.T.astype(np.float32)

        def step(query: ExpectedCounts = query, chunks: list[CountChunk] = chunks) -> None:
            for chunk in chunks:
                query.total(chunk)

        def products(X: sp.csr_matrix = singles, V: Any = by_word) -> None:
            for _ in range(N_PRODUCTS):
                X @ V

        title = f"EM step: {n} documents of {length} tokens, d = {n_words}, k = {k}"
        beside = f"{N_PRODUCTS} sparse products of the same size"
        rows = timed({"expected counts": step, beside: products}, repeats)
        write(report, title, rows)


def first_fit(report: Report, repeats: int) -> None:
    """The first fit of a process, and the next one."""
    runs = []
    for _ in range(repeats):
        done = subprocess.run(
            [sys.executable, "-c", FIRST_FIT], capture_output=True, text=True, check=True
        )
        runs.append([float(line) for line in done.stdout.split()])
    rows: list[list[str | float]] = [
        [name, *(float(f(times)) for f in (np.median, np.min, np.max))]
        for name, times in zip(("first", "second"), zip(*runs, strict=True), strict=True)
    ]
    title = "fit of 100 documents and 20 words, in a process"
    write(report, title, rows)


def vectorizer(report: Report, repeats: int) -> None:
    """Vectorizers on the same texts."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(5000)])
    law = 1 / np.arange(1, 5001)
    scale = 20 if report.quick else 1
    for n, length in ((20_000 // scale, 100), (1_000_000 // scale, 5)):
        drawn = words[rng.choice(5000, (n, length), p=law / law.sum())]
        texts = [" ".join(text) for text in drawn]

        def ours(texts: list[str] = texts) -> None:
            with reproducible_noise(0):
                PrivateCountVectorizer(epsilon=1.0, delta=1e-6).fit_transform(texts)

        def theirs(texts: list[str] = texts) -> None:
            CountVectorizer().fit_transform(texts)

        actions = {"PrivateCountVectorizer": ours, "CountVectorizer": theirs}
        rows = timed(actions, 1 if n > 10**5 else repeats)
        title = f"vectorizer: {n} texts of {length} words"
        write(report, title, rows)


def pair_noise(report: Report, repeats: int) -> None:
    """Noise on the pair moments of many words."""
    d = 1000 if report.quick else 10_000
    matrix = np.full((d, d), 1e-3)

    def in_place() -> None:
        gaussian_pair_masses(matrix, 1e-3, 1.0, NoiseSource())

    title, rows = f"pairs of {d} words", timed({"noise on pairs": in_place}, repeats)
    write(report, title, rows)


def many_documents(report: Report) -> None:
    """Exact fits without refinement."""
    sizes = [(200_000, 20_000, 50), (1_000_000, 50_000, 50)]
    for n, d, k in [(10_000, 2000, 5)] if report.quick else sizes:
        rng = np.random.default_rng(0)
        X = lda(rng.integers(3, 21, n), zipf_base(d, d / 10), k, 1.0, rng).X
        start = time.process_time()
        PrivateSpectralLDA(k, epsilon=math.inf, delta=1e-6, n_refinements=0, random_state=0).fit(X)
        seconds = time.process_time() - start
        before, peak = peak_memory.of_fit(X, k, math.inf, "0")
        title = f"exact fit of {n} documents, d = {d}, k = {k}, no refinement"
        what = f"one run, {before / 2**30:.2f} GiB before and {peak / 2**30:.2f} at the peak"
        row: list[str | float] = [what, seconds, seconds, seconds]
        write(report, title, [row])
