"""Held-out perplexity on 20 newsgroups, against scikit-learn's LDA in the same run.

The 2000 most frequent words of three letters or more that are not stop words;
documents of three such tokens or more; 10 topics, delta 1e-6. Fits are on the training
documents; perplexity is on the test documents, with proportions inferred by the same
function for every model: by fold-in (from the whole document, which the bars are on),
and by document completion (one half of the tokens from the other; halves of seed 0).
Medians of fits with noise seed and random_state 0 to 4.
"""

import math
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.decomposition import LatentDirichletAllocation

from benchmarks.corpora import newsgroups
from benchmarks.metrics import (
    completion_perplexity,
    fold_in_perplexity,
    halves,
)
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateSpectralLDA

__all__ = ["run"]

N_TOPICS, DELTA, N_WORDS = 10, 1e-6, 2000
EPSILONS = (math.inf, 10.0, 4.0, 1.0)
# Of scikit-learn's perplexity; at epsilon 1, of the unigram's.
BARS = {math.inf: 0.95, 10.0: 1.15, 4.0: 1.30}
UNIGRAM_BAR = 0.99
Floats = NDArray[np.float64]


class HeldOut:
    """Test documents, whole and in halves."""

    def __init__(self, X: sp.csr_matrix) -> None:
        self.X = X
        self.halves = halves(X, np.random.default_rng(0))

    def perplexities(self, topics: Floats) -> tuple[float, float]:
        """By fold-in and by completion."""
        return (
            fold_in_perplexity(self.X, topics),
            completion_perplexity(*self.halves, topics),
        )


def run(report: Report, folder: Path) -> None:
    folder = folder / "20newsgroups"
    if not (folder / "train.ldac.gz").exists():
        report.note(f"skipped: no 20 newsgroups in {folder} (see --data)")
        return
    train, test = newsgroups(folder, 500 if report.quick else N_WORDS)
    held_out, seeds = HeldOut(test), range(1 if report.quick else 5)
    report.note(
        f"{train.shape[0]} training and {test.shape[0]} test documents, {train.shape[1]} words"
    )
    frequencies, reference = median([unigram(train)], held_out), baseline(train, held_out, seeds)
    scores = {
        "exact word frequencies": frequencies,
        "scikit-learn, online, 5 passes": reference,
    }
    ours = {epsilon: private(train, held_out, epsilon, seeds) for epsilon in EPSILONS}
    scores |= {f"PrivateSpectralLDA, epsilon = {e:g}": score for e, score in ours.items()}
    report.table(
        f"median of seeds 0 to {len(seeds) - 1}",
        [
            "model",
            "fold-in perplexity",
            "to scikit-learn's",
            "completion perplexity",
            "to scikit-learn's",
        ],
        [
            [name, fold_in, fold_in / reference[0], completion, completion / reference[1]]
            for name, (fold_in, completion) in scores.items()
        ],
        file="real_text",
        how="medians of seeds 0 to 4",
    )
    fold_ins = {epsilon: score[0] for epsilon, score in ours.items()}
    judge(report, fold_ins, reference[0], frequencies[0])


def judge(
    report: Report, fold_ins: dict[float, float], reference: float, unigram_fold_in: float
) -> None:
    for epsilon, limit in BARS.items():
        what = f"epsilon = {epsilon:g}, perplexity / scikit-learn's"
        report.bar(what, fold_ins[epsilon] / reference, limit)
    report.bar("epsilon = 1, perplexity / unigram's", fold_ins[1.0] / unigram_fold_in, UNIGRAM_BAR)


def unigram(train: sp.csr_matrix) -> Floats:
    counts = np.asarray(train.sum(axis=0), dtype=float).reshape(1, -1)
    frequencies: Floats = counts / counts.sum()
    return frequencies


def median(models: list[Floats], held_out: HeldOut) -> tuple[float, float]:
    fold_in, completion = np.median([held_out.perplexities(topics) for topics in models], axis=0)
    return float(fold_in), float(completion)


def baseline(train: sp.csr_matrix, held_out: HeldOut, seeds: range) -> tuple[float, float]:
    models = []
    for seed in seeds:
        model = LatentDirichletAllocation(
            N_TOPICS, learning_method="online", max_iter=5, random_state=seed
        ).fit(train)
        models.append(model.components_ / model.components_.sum(axis=1, keepdims=True))
    return median(models, held_out)


def private(
    train: sp.csr_matrix, held_out: HeldOut, epsilon: float, seeds: range
) -> tuple[float, float]:
    models = []
    for seed in seeds:
        with reproducible_noise(seed):
            model = PrivateSpectralLDA(
                N_TOPICS, epsilon=epsilon, delta=DELTA, random_state=seed
            ).fit(train)
        models.append(model.components_)
    return median(models, held_out)
