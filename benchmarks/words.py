"""A private vocabulary: votes by adaptive weights against one round of votes alike.

The full vocabulary of 20 newsgroups (both files together; documents are units) and the posts of
a forum (persons are units), delta = 1e-6, where a unit is replaced. One round gives all words of a
unit the same, up to 100 of newsgroups and 1000 of persons, with the whole budget. Medians of noise
seeds 0 to 2. *False words* are in one unit alone.
"""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.corpora import forum, read_labelled
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateCountVectorizer
from sktensor_dp.data.texts import TextChunks
from sktensor_dp.privacy.partition_selection import largest_weight
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.texts import N_BUCKETS, WordVotes

__all__ = ["run"]

DELTA, MOST, NAME = 1e-6, 100, "word_votes"
EPSILONS = (1.0, 4.0)
Texts = list[list[str]]


def texts_of(X: sp.csr_matrix, names: list[str]) -> Texts:
    """Units as lists of words."""
    words = np.array(names, dtype=object)[np.repeat(X.indices, X.data.astype(np.int64))]
    ends = np.concatenate([[0], np.cumsum(np.asarray(X.sum(axis=1)).ravel())]).astype(np.int64)
    return [words[a:b].tolist() for a, b in itertools.pairwise(ends)]


def one_round(texts: Texts, epsilon: float, neighbours: str, most: int) -> int:
    """Number of words by votes alike for all words of a unit."""
    plan = ReleasePlan.split(epsilon, DELTA, {NAME: 1.0}, reserved_delta={NAME: DELTA / 2})
    chunks = TextChunks(texts, list)
    moved = WordVotes(most, 1.0, np.ones(N_BUCKETS)).sensitivity("l2", neighbours)
    largest, _ = largest_weight(most, moved, plan.cost_of(NAME))
    with Session(chunks, plan, neighbours=neighbours) as ask:
        keys = ask(WordVotes(most, largest, np.ones(N_BUCKETS))).keys
    return len(keys or [])


def by_votes(texts: Texts, epsilon: float, **options: Any) -> list[str]:
    """Words of the vectorizer."""
    return list(
        PrivateCountVectorizer(analyzer=list, epsilon=epsilon, delta=DELTA, **options)
        .fit(texts)
        .vocabulary_
    )


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


def compared(report: Report, name: str, X: sp.csr_matrix, names: list[str], most: int) -> None:
    """Numbers of words by both ways, and what the rarest released one is in."""
    texts = texts_of(X, names)
    in_units: dict[str, int] = dict(
        zip(names, np.bincount(X.indices, minlength=len(names)).tolist(), strict=True)
    )
    rows = []
    for epsilon in EPSILONS:
        found = []
        for seed in range(1 if report.quick else 3):
            with reproducible_noise(seed):
                alike = one_round(texts, epsilon, "replace_one", most)
                words = by_votes(texts, epsilon, max_words_per_document=most)
            kept = [in_units[word] for word in words]
            found.append([alike, len(kept), sum(n < 2 for n in kept), min(kept, default=0)])
        before, after, false, rarest = np.median(np.array(found, dtype=float), axis=0).tolist()
        rows.append([epsilon, before, after, after / max(before, 1), false, rarest])
        if epsilon == 1:
            report.bar(f"{name}: words by votes over one round", rows[-1][3], 1.3, at_least=True)
            report.bar(f"{name}: false words", false, 0)
    columns = ["epsilon", "one round", "votes", "ratio", "false", "rarest"]
    report.table(f"words, {name}, {X.shape[0]} units", columns, rows)


def run(report: Report, data: Path) -> None:
    """Run the benchmark."""
    n_units = 3000 if report.quick else None
    compared(report, "20 newsgroups", *newsgroups_texts(data / "20newsgroups", n_units), MOST)
    compared(report, "forum, persons", *persons_texts(data / "forum", n_units), 1000)
