"""A private vocabulary: votes by adaptive weights against one round of document frequencies.

The full vocabulary of 20 newsgroups (both files together; documents are units) and the posts of
a forum (persons are units), 100 words of a unit, delta = 1e-6. One round is the release
`document_frequencies` with the whole budget, the vectorizer's law before votes. Medians of noise
seeds 0 to 2. *False words* are in one unit alone.
"""

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.corpora import forum, read_labelled
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateCountVectorizer
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.text import DocumentFrequencies, TextChunks

__all__ = ["run"]

DELTA, MOST, NAME = 1e-6, 100, "document_frequencies"
EPSILONS = (1.0, 4.0)
Texts = list[list[str]]


def texts_of(X: sp.csr_matrix, names: list[str]) -> Texts:
    """Units as lists of words."""
    words = np.array(names, dtype=object)[np.repeat(X.indices, X.data.astype(np.int64))]
    ends = np.concatenate([[0], np.cumsum(np.asarray(X.sum(axis=1)).ravel())]).astype(np.int64)
    return [words[a:b].tolist() for a, b in itertools.pairwise(ends)]


def one_round(texts: Texts, epsilon: float) -> list[str]:
    """Words by document frequencies alone."""
    plan = ReleasePlan.split(epsilon, DELTA, {NAME: 1.0}, reserved_delta={NAME: DELTA / 2})
    chunks = TextChunks(texts, list)
    with DataCurator(chunks, plan, spender="words", unit="unit", accountant=None) as curator:
        return curator.release_partitions(NAME, DocumentFrequencies(MOST))[0]


def by_votes(texts: Texts, epsilon: float) -> list[str]:
    """Words of the vectorizer."""
    options = {"epsilon": epsilon, "delta": DELTA, "max_words_per_document": MOST}
    return list(PrivateCountVectorizer(analyzer=list, **options).fit(texts).vocabulary_)


WAYS: dict[str, Callable[[Texts, float], list[str]]] = {
    "one round": one_round,
    "votes": by_votes,
}


def newsgroups_texts(folder: Path, n_units: int | None) -> tuple[sp.csr_matrix, list[str]]:
    names = (folder / "vocab.txt").read_text("utf-8").split()
    parts = [read_labelled(folder / f"{part}.ldac.gz", len(names)) for part in ("train", "test")]
    return sp.vstack(parts).tocsr()[:n_units], names


def persons_texts(folder: Path, n_units: int | None) -> tuple[sp.csr_matrix, list[str]]:
    data = forum(folder)
    _, places = np.unique(data.person, return_inverse=True)
    ones = np.ones(len(places))
    whose = sp.csr_matrix((ones, (places, np.arange(len(places)))))
    names = [f"w{column}" for column in range(data.X.shape[1])]
    return sp.csr_matrix(whose @ data.X)[:n_units], names


def compared(report: Report, name: str, X: sp.csr_matrix, names: list[str]) -> None:
    """Numbers of words by both ways, and what the rarest released one is in."""
    texts = texts_of(X, names)
    in_units: dict[str, int] = dict(
        zip(names, np.bincount(X.indices, minlength=len(names)).tolist(), strict=True)
    )
    rows = []
    for epsilon in EPSILONS:
        found: dict[str, NDArray[np.float64]] = {}
        for way, words in WAYS.items():
            counts = []
            for seed in range(1 if report.quick else 3):
                with reproducible_noise(seed):
                    kept = [in_units[word] for word in words(texts, epsilon)]
                counts.append([len(kept), sum(n < 2 for n in kept), min(kept, default=math.nan)])
            found[way] = np.median(np.array(counts, dtype=float), axis=0)
        before, after = found["one round"], found["votes"]
        ratio = float(after[0] / max(before[0], 1))
        rows.append([epsilon, before[0], after[0], ratio, after[1], before[2], after[2]])
        if epsilon == 1:
            report.bar(f"{name}: words by votes over one round", ratio, 1.3, at_least=True)
            report.bar(f"{name}: false words", float(after[1]), 0)
    columns = ["epsilon", "one round", "votes", "ratio", "false", "rarest before", "rarest now"]
    report.table(f"words, {name}, {X.shape[0]} units", columns, rows)


def run(report: Report, data: Path) -> None:
    """Run the benchmark."""
    n_units = 3000 if report.quick else None
    compared(report, "20 newsgroups", *newsgroups_texts(data / "20newsgroups", n_units))
    compared(report, "forum, persons", *persons_texts(data / "forum", n_units))
