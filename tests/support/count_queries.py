"""Every query on counts with random public parameters, and neighbours that are far apart."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement, permutations
from typing import Any

import numpy as np
import pytest

from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.statistics.counts import CountChunk, as_counts
from sktensor_dp.statistics.expected_counts import ExpectedCounts
from sktensor_dp.statistics.moments import (
    PairMoments,
    TripleMoments,
    WhitenedTripleMoments,
    WordFrequencies,
)
from sktensor_dp.statistics.norms import (
    Clip,
    CountNorm,
    Norm,
    NormHistogram,
    PairNorm,
    TripleNorm,
    WhitenedTripleNorm,
)

D = 6
Rng = np.random.Generator
Floats = np.ndarray
# Queries on texts, whose keys are private too, on samples and on entries have files of their own.
HERE = {name: entry for name, entry in CATALOGUE.items() if entry.family == "counts"}


@dataclass(frozen=True)
class Case:
    """One way to ask for a release.

    ``build`` draws public parameters, ``coordinates`` maps a total to those in which
    noise is added, ``extreme`` gives a query with two documents as far apart as allowed.
    """

    release: str
    kind: str
    build: Callable[[Rng], Any]
    coordinates: Callable[[Floats, Any], Floats]
    extreme: Callable[[], tuple[Any, list[float], list[float]]]

    def __str__(self) -> str:
        return f"{self.release}: {self.kind}"


def ravelled(total: Floats, _: Any) -> Floats:
    return np.ravel(total)


def pair_masses(total: Floats, query: PairMoments) -> Floats:
    above = np.triu_indices(len(total), 1)
    return np.concatenate([2 * total[above], query.diagonal_weight * np.diagonal(total)])


def triple_masses(total: Floats, _: Any) -> Floats:
    """Mass of every multiset of three words; the basis has to be the identity."""
    triples = combinations_with_replacement(range(len(total)), 3)
    return np.array([total[t] * len(set(permutations(t))) for t in triples])


def limit(rng: Rng) -> float:
    return float(10 ** rng.uniform(-2, 2))


def some_words(rng: Rng) -> np.ndarray | None:
    size = rng.integers(2, D + 1)
    return None if rng.random() < 0.4 else np.sort(rng.permutation(D)[:size])


def whitener(rng: Rng, n_words: int) -> Floats:
    rows = rng.standard_normal((n_words, rng.integers(1, 4)))
    # Rows of very different length, of opposite signs and of none at all.
    rows *= 10 ** rng.uniform(-3, 1, (n_words, 1)) * (rng.random((n_words, 1)) < 0.9)
    rows[1] = -rows[0]
    return rows


def some_norm(rng: Rng) -> Norm:
    words = some_words(rng)
    rows = whitener(rng, D if words is None else len(words))
    norms = [CountNorm(1), CountNorm(2), PairNorm(limit(rng), words)]
    norms += [TripleNorm(True), TripleNorm(False), WhitenedTripleNorm(rows, words)]
    return norms[rng.integers(len(norms))]


def more_clips(rng: Rng) -> tuple[Clip, ...]:
    return tuple(Clip(some_norm(rng), limit(rng)) for _ in range(rng.integers(3)))


def histogram(rng: Rng) -> NormHistogram:
    edges = np.geomspace(0.01, 1e4, rng.integers(2, 20))
    return NormHistogram(some_norm(rng), edges, more_clips(rng), int(rng.integers(4)))


def frequencies(order: int) -> Callable[[Rng], WordFrequencies]:
    def build(rng: Rng) -> WordFrequencies:
        clip = Clip(CountNorm(order), limit(rng))
        return WordFrequencies(clip, more_clips(rng), int(rng.integers(4)))

    return build


def pairs(of_clip: float, of_noise: float) -> Callable[[Rng], PairMoments]:
    def build(rng: Rng) -> PairMoments:
        words = some_words(rng)
        clip = Clip(PairNorm(of_clip, words), limit(rng))
        return PairMoments(clip, of_noise, more_clips(rng), words, int(rng.integers(4)))

    return build


def pairs_by_tokens(rng: Rng) -> PairMoments:
    clip, weight = Clip(CountNorm(1), limit(rng)), float(rng.uniform(0.1, 1))
    return PairMoments(clip, weight, more_clips(rng), some_words(rng), int(rng.integers(4)))


def whitened(rng: Rng) -> WhitenedTripleMoments:
    words = some_words(rng)
    rows = whitener(rng, D if words is None else len(words))
    clips = (Clip(WhitenedTripleNorm(rows, words), limit(rng)), *more_clips(rng))
    return WhitenedTripleMoments(rows, clips, words)


def triples(norm: Norm) -> Callable[[Rng], TripleMoments]:
    """In the whole space of the words, where the noise is (a basis only shows a part of it)."""

    def build(rng: Rng) -> TripleMoments:
        words = some_words(rng)
        clips = (Clip(norm, limit(rng)), *more_clips(rng))
        return TripleMoments(np.eye(D if words is None else len(words)), clips, words)

    return build


def expected(single: bool, order: int, scaled: bool = False) -> Callable[[Rng], ExpectedCounts]:
    def build(rng: Rng) -> ExpectedCounts:
        k = int(rng.integers(1, 4))
        topics = rng.dirichlet(np.full(D, 10 ** rng.uniform(-2, 1)), k)
        prior = rng.dirichlet(np.ones(k)) * (1 if single else 10 ** rng.uniform(-3, 1))
        scales = 10 ** rng.uniform(-2.9, 2.9, D) if scaled else None
        return ExpectedCounts(topics, prior, single, limit(rng), order, scales=scales)

    return build


# Pairs of documents that are as far apart as the bound allows.
FIRST, SECOND = [9.0, 0, 0, 0, 0, 0], [0, 9.0, 0, 0, 0, 0]
CLIP = 4.5  # half of what these two have in every norm of weight 1


def extreme_pairs(of_clip: float, of_noise: float) -> Callable[[], tuple]:
    query = PairMoments(Clip(PairNorm(of_clip), 1.0), of_noise)
    # Without a repeated word the weight of the diagonal plays no part.
    documents = ([1.0, 1, 0, 0, 0, 0], [0, 0, 1.0, 1, 0, 0])
    return lambda: (query, *((FIRST, SECOND) if of_clip == of_noise else documents))


def extreme_whitened() -> tuple:
    rows = np.zeros((D, 2))
    rows[:2] = [[0.6, 0.8], [-0.6, -0.8]]
    return WhitenedTripleMoments(rows, (Clip(WhitenedTripleNorm(rows), CLIP),)), FIRST, SECOND


def extreme_expected(single: bool, order: int, scaled: bool = False) -> Callable[[], tuple]:
    topics = np.zeros((2, D))
    topics[0, 0] = topics[1, 1] = 1.0
    # As 9 tokens, but those of the first word count for fewer and of the second for more.
    scales = np.array([2.0, 0.5, 1, 1, 1, 1]) if scaled else None
    query = ExpectedCounts(topics, np.full(2, 0.5), single, CLIP, order, scales=scales)
    return lambda: (query, FIRST, SECOND)


def extreme(query: Any) -> Callable[[], tuple]:
    return lambda: (query, FIRST, SECOND)


def triple_case(kind: str, norm: Norm, coordinates: Callable[..., Floats]) -> Case:
    query = TripleMoments(np.eye(D), (Clip(norm, CLIP),))
    return Case("triple_moments", kind, triples(norm), coordinates, extreme(query))


def pair_case(kind: str, of_clip: float, of_noise: float) -> Case:
    build, far = pairs(of_clip, of_noise), extreme_pairs(of_clip, of_noise)
    return Case("pair_moments", kind, build, pair_masses, far)


CASES = [
    Case(
        "norm_histogram", "any norm", histogram, ravelled,
        lambda: (NormHistogram(CountNorm(2), np.array([1.0, 5, 25])), FIRST, [1.0] + [0] * 5),
    ),
    *(
        Case(
            "word_frequencies", f"order {order}", frequencies(order), ravelled,
            extreme(WordFrequencies(Clip(CountNorm(order), CLIP))),
        )
        for order in (1, 2)
    ),
    pair_case("isotropic", math.sqrt(2), math.sqrt(2)),
    pair_case("histogram", 1.0, 1.0),
    pair_case("light diagonal", math.sqrt(0.5), math.sqrt(0.5)),
    pair_case("lighter than the clip's", 1.0, 0.3),
    Case(
        "pair_moments", "tokens", pairs_by_tokens, pair_masses,
        extreme(PairMoments(Clip(CountNorm(1), CLIP), 1.0)),
    ),
    Case("whitened_triple_moments", "any whitener", whitened, ravelled, extreme_whitened),
    triple_case("isotropic", TripleNorm(False), ravelled),
    triple_case("histogram", TripleNorm(True), triple_masses),
    triple_case("tokens", CountNorm(1), ravelled),
    *(
        Case(
            "expected_counts", f"{'single' if single else 'mixed'}, order {order}",
            expected(single, order), ravelled, extreme_expected(single, order),
        )
        for single in (True, False)
        for order in (1, 2)
    ),
    *(
        Case(
            "expected_counts", f"{'single' if single else 'mixed'}, scaled",
            expected(single, 2, True), ravelled, extreme_expected(single, 2, True),
        )
        for single in (True, False)
    ),
]  # fmt: skip

every_case = pytest.mark.parametrize("case", CASES, ids=str)


def documents(rng: Rng) -> Floats:
    """Short, long, empty, repetitive and huge ones."""
    rows = [np.zeros(D), np.ones(D), np.full(D, 1e6), np.full(D, 1e300)]
    for count in (1, 2, 3, 7, 60, 1e6, 1e160):
        row = np.zeros(D)
        row[rng.integers(D)] = count
        rows.append(row)
        rows.append(row + np.eye(D)[rng.integers(D)])
    rows += list(rng.multinomial(3, np.full(D, 1 / D), 3).astype(float))
    rows += list(rng.poisson(10 ** rng.uniform(-1, 2, (8, 1)) * rng.dirichlet(np.ones(D), 8)))
    rows += list(np.floor(rng.uniform(0, 4, (4, D))))
    rows += list(np.floor(10 ** rng.uniform(0, 6, (3, D)) * (rng.random((3, D)) < 0.5)))
    return np.array(rows, dtype=float)


def contributions(case: Case, query: Any, rows: Floats) -> Floats:
    chunks = (CountChunk(as_counts(row[None, :])) for row in np.atleast_2d(rows))
    return np.array([case.coordinates(query.total(chunk), query) for chunk in chunks])


def shares_of_bound(difference: Floats, query: Any) -> tuple[float, float]:
    """Distances as shares of the L2 and of the L1 sensitivity (0 where none is claimed)."""
    square = math.sqrt(float((difference**2).sum()))
    return square / query.l2_sensitivity, float(np.abs(difference).sum()) / query.l1_sensitivity
