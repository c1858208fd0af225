"""Topics without noise beside collapsed Gibbs sampling: completion, and time in turns.

Corpora of ``topics``, a tenth held out. Gibbs sampling is tomotopy's, of one thread: 300 passes,
the prior of documents optimised every tenth from the fiftieth on, seed 1. It is trained in three
parts, after each of which topics are fitted once, with random_state 0, 1 and 2. Completion is over
exact word frequencies, ours a median of the three; seconds are the processor's, ours a median.
"""

import importlib
import importlib.util
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.report import Report
from benchmarks.topics import HeldOut, corpora, median
from sktensor_dp.topics.inference import (
    proportions,
    token_halves,
    token_log_likelihood,
)

__all__ = ["run"]

CORPORA, N_TOPICS = ("newsgroups", "six tokens", "kos"), (10, 50)
N_PARTS, N_PASSES, BURN_IN, OPTIMISED = 3, 300, 50, 10
WORSE, PART_OF_TIME = 1.01, 0.2
COLUMNS = ["topics", "completion", "of Gibbs", "seconds", "of Gibbs"]
Floats = NDArray[np.float64]


def run(report: Report, folder: Path) -> None:
    if importlib.util.find_spec("tomotopy") is None:
        report.note("NOT RUN: tomotopy is missing; pip install tomotopy")
        return
    for name, X, labels in corpora(folder):
        if name not in CORPORA:
            continue
        data, rows = HeldOut(X, labels), []
        for n_topics in N_TOPICS[: 1 if report.quick else None]:
            row = in_turns(data, n_topics, N_PASSES // (10 if report.quick else 1))
            rows.append([n_topics, *row])
            where = f"{name}, {n_topics} topics"
            report.bar(f"{where}, completion over that of Gibbs", row[0] / row[1], WORSE)
            report.bar(f"{where}, seconds over those of Gibbs", row[2] / row[3], PART_OF_TIME)
        title = f"{name}: completion over exact word frequencies, seconds"
        how = "medians of random_state 0 to 2"
        report.table(title, COLUMNS, rows, file="topics_and_gibbs", group=name, how=how)


def in_turns(data: HeldOut, n_topics: int, n_passes: int) -> tuple[float, float, float, float]:
    """Completion of ours and of Gibbs sampling, and the seconds of both."""
    sampler = documents_of(data.train, n_topics)
    found, ours, gibbs = [], [], 0.0
    for seed in range(N_PARTS):
        start = time.process_time()
        sampler.train(n_passes // N_PARTS, workers=1)
        gibbs += time.process_time() - start
        start = time.process_time()
        model = data.fit(math.inf, seed, n_topics)
        ours.append(time.process_time() - start)
        found.append(data.ratio(model))
    return median(found), completion(data, sampler, n_topics), median(ours), gibbs


def documents_of(X: sp.csr_matrix, n_topics: int) -> Any:
    """A sampler of these documents that was not trained yet."""
    sampler = importlib.import_module("tomotopy").LDAModel(k=n_topics, seed=1)
    sampler.optim_interval, sampler.burn_in = OPTIMISED, BURN_IN
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        words = np.repeat(X.indices[start:stop], X.data[start:stop].astype(np.int64))
        sampler.add_doc([str(word) for word in words])
    return sampler


def completion(data: HeldOut, sampler: Any, n_topics: int) -> float:
    """Of the topics and the prior that the sampler has come to."""
    topics = np.full((n_topics, data.train.shape[1]), 1e-12)
    words = [int(word) for word in sampler.used_vocabs]
    for topic in range(n_topics):
        topics[topic, words] += sampler.get_topic_word_dist(topic)
    return by_prior(data, topics, np.asarray(sampler.alpha, dtype=np.float64))


def by_prior(data: HeldOut, topics: Floats, prior: Floats) -> float:
    """Of given topics and a Dirichlet prior of documents."""
    seen, unseen = token_halves(data.test.astype(np.float64), np.random.RandomState(0))
    shares = proportions(seen, topics, prior, False)
    found = token_log_likelihood(unseen, shares, topics).sum() / float(unseen.sum())
    return data.ratio_of_perplexity(math.exp(-found))
