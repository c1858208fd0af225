"""Every query on counts with random public parameters, and documents that are far apart."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from contracts.sensitivities import Case, Extreme, Floats, Rng, ravelled

from sktensor_dp.data.counts import CountChunk, CountChunks, as_counts
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.data.units import Units
from sktensor_dp.queries.clips import (
    Clip,
    CountNorm,
    Norm,
    PairNorm,
    TripleNorm,
    WhitenedTripleNorm,
)
from sktensor_dp.queries.count_moments import (
    PairMoments,
    TripleMoments,
    WhitenedTripleMoments,
    WordFrequencies,
)
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.queries.norm_histogram import NormHistogram
from sktensor_dp.queries.query import UnitCount

D = 6


@dataclass(frozen=True)
class Rows:
    """Units that are rows of a matrix, or groups of rows."""

    pool: Callable[[Rng, Any], Floats]
    changed_row: Callable[[Rng, Floats], Floats]
    validated: Callable[[Any], Any]
    chunk: type
    chunks: type
    grouped: bool = False
    n_queries: int = 2

    def space(self, rng: Rng) -> None:
        return None

    def units(self, rng: Rng, query: Any, space: None, n: int) -> list[Floats]:
        """Single rows; of groups repetitions, rows that differ most, and many of all kinds."""
        pool = self.pool(rng, query)
        if not self.grouped:
            return list(rng.permutation(pool)[: 4 * n, None])
        groups = [pool[[place]] for place in rng.integers(len(pool), size=n)]
        groups += [np.repeat(group, 3, axis=0) for group in groups[:3]]
        groups += [pool, pool[::-1], np.concatenate([pool[:1]] * 40 + [pool[-1:]])]
        return groups + [pool[rng.integers(len(pool), size=size)] for size in (2, 2, 3, 5, 9)]

    def other(self, rng: Rng, query: Any, space: None) -> Floats:
        pool = self.pool(rng, query)
        # Twenty thousand rows are more than are added up at once.
        size = int(rng.choice([1, 3, 9, 300, 20_000])) if self.grouped else 1
        return pool[rng.integers(len(pool), size=size)]

    def changed(self, rng: Rng, unit: Floats, query: Any, space: None) -> Floats:
        """Change a row; of a group, add, repeat or leave one out, too."""
        place, move = int(rng.integers(len(unit))), int(rng.integers(4)) if self.grouped else 3
        if move == 0:
            return np.concatenate([unit, self.other(rng, query, space)[:1]])
        if move == 1:
            return np.concatenate([unit, unit[[place]]])
        if move == 2 and len(unit) > 1:
            return np.delete(unit, place, axis=0)
        rows = unit.copy()
        rows[place] = self.changed_row(rng, rows[place])
        return rows

    def total(self, query: Any, units: list[Any], space: None, rng: Rng | None = None) -> Any:
        rows = np.concatenate(units)
        labels = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
        if rng is None:
            of = [Units(np.array([0, len(rows)]))] if self.grouped else []
            return query.total(self.chunk(self.validated(rows), *of))
        order, form = rng.permutation(len(rows)), (np.asarray, sp.csr_array)[rng.integers(2)]
        groups = {"groups": labels[order]} if self.grouped else {}
        source = self.chunks(self.validated(form(rows[order])), *rows.shape, **groups)
        return sum(map(query.total, source))


def pair_masses(total: Floats, query: PairMoments) -> Floats:
    above = np.triu_indices(len(total), 1)
    return np.concatenate([2 * total[above], query.diagonal_weight * np.diagonal(total)])


def documents(rng: Rng, _: Any = None) -> Floats:
    """Short, long, empty, repetitive and huge ones."""
    rows = [np.zeros(D), np.ones(D), np.full(D, 1e6), np.full(D, 1e300)]
    for count in (1, 2, 3, 7, 60, 1e6, 1e160):
        row = count * np.eye(D)[rng.integers(D)]
        rows += [row, row + np.eye(D)[rng.integers(D)]]
    rows += list(rng.multinomial(3, np.full(D, 1 / D), 3).astype(float))
    rows += list(rng.poisson(10 ** rng.uniform(-1, 2, (8, 1)) * rng.dirichlet(np.ones(D), 8)))
    rows += list(np.floor(rng.uniform(0, 4, (4, D))))
    rows += list(np.floor(10 ** rng.uniform(0, 6, (3, D)) * (rng.random((3, D)) < 0.5)))
    return np.array(rows, dtype=float)


def changed_document(rng: Rng, row: Floats) -> Floats:
    row, word = np.minimum(row, 1e6), rng.integers(D)
    moves = [row[word] + 1, max(row[word] - 1, 0), 2 * row[word], row[word] // 2, 0, 1, 2, 1e6]
    row[word] = moves[rng.integers(len(moves))]
    return rng.permutation(row) if rng.random() < 0.1 else row


DOCUMENTS = Rows(documents, changed_document, as_counts, CountChunk, CountChunks)


# Public parameters


def limit(rng: Rng) -> float:
    return float(10 ** rng.uniform(-2, 2))


def some_words(rng: Rng) -> np.ndarray | None:
    size = rng.integers(2, D + 1)
    return None if rng.random() < 0.4 else np.sort(rng.permutation(D)[:size])


def whitener(rng: Rng, words: np.ndarray | None) -> Floats:
    rows = rng.standard_normal((D if words is None else len(words), rng.integers(1, 4)))
    # Rows of very different length, of opposite signs and of none at all.
    rows *= 10 ** rng.uniform(-3, 1, (len(rows), 1)) * (rng.random((len(rows), 1)) < 0.9)
    rows[1] = -rows[0]
    return rows


def some_norm(rng: Rng) -> Norm:
    words = some_words(rng)
    norms = [CountNorm(1), CountNorm(2), PairNorm(limit(rng), words), TripleNorm(),
             WhitenedTripleNorm(whitener(rng, words), words)]  # fmt: skip
    return norms[rng.integers(len(norms))]


def more_clips(rng: Rng) -> tuple[Clip, ...]:
    return tuple(Clip(some_norm(rng), limit(rng)) for _ in range(rng.integers(3)))


def histogram(rng: Rng, _: None) -> NormHistogram:
    edges = np.geomspace(0.01, 1e4, rng.integers(2, 20))
    return NormHistogram(some_norm(rng), edges, more_clips(rng), int(rng.integers(4)))


def pairs_by_tokens(rng: Rng, _: None) -> PairMoments:
    clip, weight = Clip(CountNorm(1), limit(rng)), float(rng.uniform(0.1, 1))
    return PairMoments(clip, weight, more_clips(rng), some_words(rng), int(rng.integers(4)))


def whitened(rng: Rng, _: None) -> WhitenedTripleMoments:
    words = some_words(rng)
    rows = whitener(rng, words)
    clip = Clip(WhitenedTripleNorm(rows, words), limit(rng))
    return WhitenedTripleMoments(rows, clip, more_clips(rng), words)


# Documents that are as far apart as the bound allows
FIRST, SECOND = [9.0, 0, 0, 0, 0, 0], [0, 9.0, 0, 0, 0, 0]
CLIP = 4.5  # half of what these two have in every norm of weight 1


def case(
    release: str, kind: str, build: Any, query: Any, coordinates: Any = ravelled,
    ends: tuple[list[float], list[float]] = (FIRST, SECOND),
) -> Case:  # fmt: skip
    def extreme(_: Rng) -> Extreme:
        return query, None, *(np.array([row]) for row in ends)

    return Case(release, kind, DOCUMENTS, build, extreme, slack=NORM_SLACK, coordinates=coordinates)


def frequency_case(order: int) -> Case:
    def build(rng: Rng, _: None) -> WordFrequencies:
        clip = Clip(CountNorm(order), limit(rng))
        return WordFrequencies(clip, more_clips(rng), int(rng.integers(4)))

    query = WordFrequencies(Clip(CountNorm(order), CLIP))
    return case("word_frequencies", f"order {order}", build, query)


def pair_case(kind: str, of_clip: float, of_noise: float) -> Case:
    def build(rng: Rng, _: None) -> PairMoments:
        words = some_words(rng)
        clip = Clip(PairNorm(of_clip, words), limit(rng))
        return PairMoments(clip, of_noise, more_clips(rng), words, int(rng.integers(4)))

    # Without a repeated word the weight of the diagonal plays no part.
    ends = (FIRST, SECOND) if of_clip == of_noise else ([1.0, 1, 0, 0, 0, 0], [0, 0, 1.0, 1, 0, 0])
    query = PairMoments(Clip(PairNorm(of_clip), 1.0), of_noise)
    return case("pair_moments", kind, build, query, pair_masses, ends)


def triple_case(kind: str, norm: Norm, coordinates: Any) -> Case:
    def build(rng: Rng, _: None) -> TripleMoments:
        """In the whole space of the words, where the noise is."""
        words = some_words(rng)
        basis, clip = np.eye(D if words is None else len(words)), Clip(norm, limit(rng))
        return TripleMoments(basis, clip, more_clips(rng), words)

    query = TripleMoments(np.eye(D), Clip(norm, CLIP))
    return case("triple_moments", kind, build, query, coordinates)


def expected_case(single: bool, order: int, scaled: bool) -> Case:
    def build(rng: Rng, _: None) -> ExpectedCounts:
        k = int(rng.integers(1, 4))
        topics = rng.dirichlet(np.full(D, 10 ** rng.uniform(-2, 1)), k)
        prior = rng.dirichlet(np.ones(k)) * (1 if single else 10 ** rng.uniform(-3, 1))
        scales = 10 ** rng.uniform(-2.9, 2.9, D) if scaled else None
        return ExpectedCounts(topics, prior, single, limit(rng), order, scales=scales)

    # As 9 tokens, but those of the first word count for fewer and of the second for more.
    scales = np.array([2.0, 0.5, 1, 1, 1, 1]) if scaled else None
    query = ExpectedCounts(np.eye(2, D), np.full(2, 0.5), single, CLIP, order, scales=scales)
    kind = f"{'single' if single else 'mixed'}, {'scaled' if scaled else f'order {order}'}"
    return case("expected_counts", kind, build, query)


WHITENER = np.array([[0.6, 0.8], [-0.6, -0.8], *[[0.0, 0.0]] * 4])
ROW_CASES = [
    case("unit_count", "documents", lambda *_: UnitCount(), UnitCount()),
    case("norm_histogram", "any norm", histogram,
         NormHistogram(CountNorm(2), np.array([1.0, 5, 25])), ends=(FIRST, [1.0] + [0] * 5)),
    frequency_case(1),
    frequency_case(2),
    pair_case("isotropic", math.sqrt(2), math.sqrt(2)),
    pair_case("histogram", 1.0, 1.0),
    pair_case("light diagonal", math.sqrt(0.5), math.sqrt(0.5)),
    pair_case("lighter than the clip's", 1.0, 0.3),
    case("pair_moments", "tokens", pairs_by_tokens, PairMoments(Clip(CountNorm(1), CLIP), 1.0),
         pair_masses),
    case("whitened_triple_moments", "any whitener", whitened,
         WhitenedTripleMoments(WHITENER, Clip(WhitenedTripleNorm(WHITENER), CLIP))),
    triple_case("isotropic", TripleNorm(), ravelled),
    triple_case("tokens", CountNorm(1), ravelled),
    *(expected_case(single, order, False) for single in (True, False) for order in (1, 2)),
    expected_case(True, 2, True),
    expected_case(False, 2, True),
]  # fmt: skip


def of_groups(cases: list[Case]) -> list[Case]:
    """Let units be groups, which a search has more ways to change, and so gets less far."""

    def repeated(case: Case) -> Callable[[Rng], Extreme]:
        """As many rows as one likes, all of them alike, attain what one attains."""

        def extreme(rng: Rng) -> Extreme:
            query, space, one, other = case.extreme(rng)
            return query, space, np.tile(one, (3, 1)), np.tile(other, (7, 1))

        return extreme

    return [
        replace(case, data=replace(case.data, grouped=True), extreme=repeated(case), most=1.0,
                found=0.5)  # type: ignore[type-var]
        for case in cases
    ]  # fmt: skip


CASES = [*ROW_CASES, *of_groups(ROW_CASES)]
