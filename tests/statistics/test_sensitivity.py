"""Sensitivities of all releases on counts: never exceeded by neighbours, and attained.

Replacing a document moves a total by the difference of two contributions. A sensitivity has
to bound their distance, in the coordinates in which the mechanism adds noise.
"""

import math
from typing import Any

import numpy as np
import pytest
from count_queries import (
    CASES,
    HERE,
    Case,
    D,
    Floats,
    Rng,
    contributions,
    documents,
    every_case,
    shares_of_bound,
)

from sktensor_dp.privacy.mechanisms import Mechanism
from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.statistics.counts import CountChunk, as_counts
from sktensor_dp.statistics.moments import (
    PairMoments,
    TripleMoments,
    WhitenedTripleMoments,
    WordFrequencies,
)
from sktensor_dp.statistics.norms import (
    NORM_SLACK,
    Clip,
    CountNorm,
    PairNorm,
    TripleNorm,
    WhitenedTripleNorm,
)


def test_every_release_is_bounded_here():
    assert {case.release for case in CASES} == set(HERE)
    for case in CASES:
        for query in (case.build(np.random.default_rng(0)), case.extreme()[0]):
            assert isinstance(query, CATALOGUE[case.release].query)


def test_every_law_has_a_case_that_bounds_its_norm():
    for entry in HERE.values():
        claims = [case.extreme()[0] for case in CASES if case.release == entry.name]
        for law in (entry.gaussian, entry.pure):
            if isinstance(law, Mechanism) and law.norm == "l1":
                assert any(math.isfinite(query.l1_sensitivity) for query in claims)


@pytest.mark.dealt(2)
@every_case
def test_no_neighbours_are_farther_apart_than_the_sensitivity(case, seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        query, rows = case.build(rng), documents(rng)
        found = contributions(case, query, rows)
        assert np.isfinite(found).all()
        gaps = found[:, None] - found[None]
        assert np.sqrt((gaps**2).sum(axis=2)).max() <= query.l2_sensitivity
        assert np.abs(gaps).sum(axis=2).max() <= query.l1_sensitivity


@pytest.mark.dealt(4)
@every_case
def test_totals_of_neighbouring_corpora(case, seed):
    """The same for whole corpora, in which nothing may pass from one document to another."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        query, corpus = case.build(rng), documents(rng)
        for _ in range(4):
            neighbour = corpus.copy()
            neighbour[rng.integers(len(corpus))] = documents(rng)[rng.integers(len(corpus))]
            totals = [query.total(CountChunk(as_counts(part))) for part in (corpus, neighbour)]
            moved = np.subtract(*(case.coordinates(total, query) for total in totals))
            assert max(shares_of_bound(moved, query)) <= 1


def changed(row: Floats, rng: Rng) -> Floats:
    """A document near another one."""
    row, word = row.copy(), rng.integers(D)
    moves = [row[word] + 1, max(row[word] - 1, 0), 2 * row[word], row[word] // 2, 0, 1, 2, 1e6]
    row[word] = moves[rng.integers(len(moves))]
    return rng.permutation(row) if rng.random() < 0.1 else row


def climb(case: Case, query: Any, rng: Rng, n_steps: int) -> float:
    """Largest share of a bound that hill climbing finds, from the worst random pair on."""
    pool = np.minimum(np.floor(documents(rng)), 1e6)
    found = contributions(case, query, pool)
    gaps = np.sqrt(((found[:, None] - found[None]) ** 2).sum(axis=2))
    pair = list(pool[list(np.unravel_index(gaps.argmax(), gaps.shape))])
    arrays = list(contributions(case, query, np.array(pair)))
    best = max(shares_of_bound(arrays[0] - arrays[1], query))
    for _ in range(n_steps):
        side = int(rng.integers(2))
        row = changed(pair[side], rng)
        array = contributions(case, query, row)[0]
        share = max(shares_of_bound(array - arrays[1 - side], query))
        if share >= best:
            best, pair[side], arrays[side] = share, row, array
    return best


@pytest.mark.dealt
@every_case
def test_no_search_finds_neighbours_beyond_the_sensitivity(case, seed):
    rng = np.random.default_rng(1000 + seed)
    # The last query has extreme neighbours: a search that finds nothing like them proves nothing.
    queries = [*(case.build(rng) for _ in range(3)), case.extreme()[0]]
    shares = [climb(case, query, rng, n_steps=150) for query in queries]
    assert 0.7 < shares[-1] <= max(shares) <= 1


@every_case
def test_some_neighbours_attain_the_bound(case):
    """What is left is what NORM_SLACK reserves for rounding, in L2 and wherever L1 is claimed."""
    query, *rows = case.extreme()
    one, other = contributions(case, query, np.array(rows))
    shares = shares_of_bound(one - other, query)
    assert 1 / NORM_SLACK - 1e-6 <= shares[0] <= 1
    if math.isfinite(query.l1_sensitivity):
        assert 1 / NORM_SLACK - 1e-6 <= shares[1] <= 1


class Recorder:
    """Stands in for the source of noise; keeps the coordinates and the norm they need."""

    def _record(self, norm: str, coordinates: Floats) -> Floats:
        self.norm, self.coordinates = norm, coordinates.copy()
        return coordinates

    gaussian = spherical_laplace = lambda self, x, *_, **__: self._record("l2", x)
    laplace = lambda self, x, *_: self._record("l1", x)  # noqa: E731


@every_case
def test_coordinates_are_those_of_the_mechanism(case, seed):
    """A law gets these numbers divided by the sensitivity, so a move in them is a move there."""
    rng, entry = np.random.default_rng(seed), CATALOGUE[case.release]
    query, chunk = case.build(rng), CountChunk(as_counts(documents(rng)))
    expected = case.coordinates(total := query.total(chunk), query)
    for law in (entry.gaussian, entry.pure):
        bound = query.l2_sensitivity if law.norm == "l2" else query.l1_sensitivity
        if math.isinf(bound) or getattr(query, "histogram_basis", None) is not None:
            continue  # no such bound is claimed; the histogram's noise is tested with its law
        noise = Recorder()
        law.apply(total, bound, 1.0, noise, query)
        assert noise.norm == law.norm
        seen = noise.coordinates * bound
        # In the norm that counts: full tensors list what orthonormal coordinates merge.
        order = 2 if law.norm == "l2" else 1
        assert np.linalg.norm(seen, order) == pytest.approx(np.linalg.norm(expected, order))


@pytest.mark.parametrize(
    "build",
    [
        lambda: WordFrequencies(Clip(PairNorm(1.0), 1.0)),
        lambda: PairMoments(Clip(PairNorm(1.0), 1.0), 1.5),
        lambda: PairMoments(Clip(PairNorm(1.0, np.arange(2)), 1.0), 1.0),
        lambda: PairMoments(Clip(CountNorm(2), 1.0), 1.0),
        lambda: PairMoments(Clip(CountNorm(1), 1.0), 1.1),
        lambda: PairMoments(Clip(TripleNorm(), 1.0), 1.0),
        lambda: WhitenedTripleMoments(np.eye(2), (Clip(WhitenedTripleNorm(np.eye(2)), 1.0),)),
        lambda: WhitenedTripleMoments(np.eye(2), (Clip(TripleNorm(), 1.0),)),
        lambda: TripleMoments(np.eye(2), (Clip(CountNorm(2), 1.0),)),
        lambda: TripleMoments(2 * np.eye(2), (Clip(TripleNorm(), 1.0),)),
    ],
)
def test_clips_that_bound_something_else_are_refused(build):
    with pytest.raises((TypeError, ValueError), match=r"bounded by|must be that of|orthonormal"):
        build()
