"""Every query on words of documents and on held-out scores, and units that are far apart."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from contracts.sensitivities import Case, Extreme, Floats, Rng

from sktensor_dp.data.labels import checksums
from sktensor_dp.data.sums import SUM_SLACK
from sktensor_dp.data.texts import WordCounts
from sktensor_dp.data.units import Units
from sktensor_dp.queries.held_out import HeldOutChunk, HeldOutScores, MatchingRows
from sktensor_dp.queries.norm_histogram import NormHistogram
from sktensor_dp.queries.query import UnitCount
from sktensor_dp.queries.texts import (
    N_BUCKETS,
    VOTE,
    DocumentFrequencies,
    NumberOfWords,
    WordBuckets,
    WordVotes,
)

WORDS = [f"w{i}" for i in range(30)]


class Texts:
    """Documents as lists of words, of which most are more than may count."""

    grouped, n_queries = False, 4

    def space(self, rng: Rng) -> None:
        return None

    def units(self, rng: Rng, query: Any, space: None, n: int) -> list[list[str]]:
        most = getattr(query, "max_words_per_document", 1)
        return [WORDS[:most], WORDS[-most:], *(self.other(rng) for _ in range(min(n, 12)))]

    def other(self, rng: Rng, query: Any = None, space: None = None) -> list[str]:
        return list(map(str, rng.choice(WORDS, rng.integers(0, 25))))

    def changed(self, rng: Rng, unit: list[str], query: Any, space: None) -> list[str]:
        """Leave out or add a word."""
        unit = list(unit)
        if unit and rng.random() < 0.5:
            unit.pop(rng.integers(len(unit)))
        else:
            unit.append(str(rng.choice(WORDS)))
        return unit

    def total(self, query: Any, units: list[Any], space: None, rng: Rng | None = None) -> Any:
        order = range(len(units)) if rng is None else rng.permutation(len(units))
        return query.total(WordCounts.of(units[i] for i in order))


def by_word(total: Any, _: Any) -> Floats:
    found = np.array([float(total[word]) for word in WORDS])
    assert sum(total.values()) == found.sum()
    return found


def by_bucket(total: Any, query: Any) -> Floats:
    """Buckets of the words alone, as others are empty."""
    places = np.unique(checksums(WORDS) % N_BUCKETS)
    assert total.sum() == total[places].sum()
    return np.ravel(total[places])


def random_weights(rng: Rng, m: int) -> WordVotes:
    """Votes by weights of very different sizes, some of them 0."""
    weights = np.where(rng.random(N_BUCKETS) < 0.3, 0.0, 10.0 ** -rng.uniform(0, 8, N_BUCKETS))
    return WordVotes(m, rng.choice([rng.uniform(1, math.sqrt(m)), math.sqrt(m)]), weights)


def some_words(rng: Rng, m: int) -> DocumentFrequencies:
    return DocumentFrequencies(m, tuple(map(str, rng.permutation(WORDS)[: rng.integers(1, 31)])))


def histogram(rng: Rng, m: int) -> NormHistogram:
    edges = np.append(0.0, np.geomspace(1, 30, int(rng.integers(2, 9))))
    return NormHistogram(NumberOfWords(some_words(rng, m).words), edges)


def word_case(kind: str, release: str, build: Any, of_m: Any, **options: Any) -> Case:
    m = 9
    ends = WORDS[:m], WORDS[15 : 15 + m]
    return Case(
        release, kind, Texts(), lambda rng, _: build(rng, int(rng.choice([1, 2, 3, 6, 8]))),
        lambda _: (of_m(m), None, *ends), **options,
    )  # fmt: skip


# Scores


@dataclass(frozen=True)
class Scores:
    """Scores of held-out rows, some of them far out of bounds or no numbers."""

    grouped: bool = False
    n_queries: int = 10

    def space(self, rng: Rng) -> tuple[float, float]:
        width = float(10 ** rng.uniform(-8, 8))
        # Far beyond, high - low itself would be rounded by more than the bound is tested to.
        low = width * float(rng.standard_normal() * 10 ** rng.uniform(-3, 3))
        return low, low + width

    def units(self, rng: Rng, query: Any, space: tuple[float, float], n: int) -> list[Floats]:
        odd = [0.0, -0.0, 1e308, -1e308, math.inf, -math.inf, math.nan, 5e-324, *space]
        many = [self.other(rng, query, space) for _ in range(8)]
        return [*np.array(odd)[:, None], *many]

    def other(self, rng: Rng, query: Any, space: tuple[float, float]) -> Floats:
        size = int(rng.choice([1, 2, 8, 5000])) if self.grouped else 1
        return rng.choice([*space, rng.uniform(*space), 1e308, -math.inf, math.nan], size)

    def changed(self, rng: Rng, unit: Floats, query: Any, space: tuple[float, float]) -> Floats:
        unit = unit.copy()
        unit[rng.integers(len(unit))] = self.other(rng, query, space)[0]
        return unit

    def total(self, query: Any, units: list[Any], space: Any, rng: Rng | None = None) -> Any:
        starts = np.cumsum([0, *map(len, units)])
        return query.total(HeldOutChunk(np.concatenate(units), None, Units(starts)))


def own(X: Any, _: Any) -> Any:
    return X


def score_case(grouped: bool) -> Case:
    query = HeldOutScores(own, -2.0, 3.0)
    extreme: Callable[[Rng], Extreme] = lambda _: (  # noqa: E731
        query, (-2.0, 3.0), np.array([math.nan]), np.array([math.inf] * (3 if grouped else 1)),
    )  # fmt: skip
    return Case("held_out_scores", "any bounds", Scores(grouped),
                lambda rng, space: HeldOutScores(own, *space), extreme, slack=SUM_SLACK,
                found=0.99)  # fmt: skip


class Matches(Scores):
    """Rows that pass each of some tests, or not; the last number is a length, alike in all rows."""

    def space(self, rng: Rng) -> int:  # type: ignore[override]
        return int(rng.integers(1, 5))

    def units(self, rng: Rng, query: Any, space: int, n: int) -> list[Floats]:  # type: ignore[override]
        ends = [np.full((1, query.n_tests), passed) for passed in (1.0, 0.0)]
        return [*ends, *(self.other(rng, query, space) for _ in range(8))]

    def other(self, rng: Rng, query: Any, space: int) -> Floats:  # type: ignore[override]
        size = int(rng.choice([1, 2, 8, 5000])) if self.grouped else 1
        rows = 1.0 * (rng.random((size, query.n_tests)) < rng.choice([0.0, 0.5, 1.0]))
        rows[:, -1] = rng.choice([0.0, rng.random(), 1.0])
        return rows

    def changed(self, rng: Rng, unit: Floats, query: Any, space: int) -> Floats:  # type: ignore[override]
        unit = unit.copy()
        row = rng.integers(len(unit))
        unit[row] = np.where(rng.random(query.n_tests) < 0.5, 1 - unit[row], unit[row])
        return unit


def match_case(grouped: bool) -> Case:
    ends = np.ones((3 if grouped else 1, 4), bool), np.zeros((1, 4), bool)
    return Case("matching_rows", "any tests", Matches(grouped),
                lambda rng, n: MatchingRows(n), lambda _: (MatchingRows(4), 4, *ends),
                slack=SUM_SLACK, found=0.99)  # fmt: skip


def even(m: int) -> WordVotes:
    return WordVotes(m, math.sqrt(m), np.full(N_BUCKETS, 0.2))


CASES = [
    word_case("texts", "unit_count", lambda *_: UnitCount(), lambda _: UnitCount()),
    word_case("any words", "word_buckets", lambda *_: WordBuckets(), lambda _: WordBuckets(),
              coordinates=by_bucket, slack=1 + 3 * VOTE, most=1 + 1e-12),
    word_case("known words", "norm_histogram", histogram, lambda m: NormHistogram(
        NumberOfWords(tuple(WORDS[:m])), np.array([0.0, 1, 30])), most=1 + 1e-12),
    word_case("known words", "document_frequencies", some_words,
              lambda m: DocumentFrequencies(m, tuple(WORDS)), most=1 + 1e-12),
    # Votes lose a step each.
    word_case("any weights", "word_votes", random_weights, even, coordinates=by_word,
              slack=1 + 3 * VOTE, most=1 + 1e-12),
    score_case(False),
    score_case(True),
    match_case(False),
    match_case(True),
]  # fmt: skip
