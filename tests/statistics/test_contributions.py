"""One unit more or less: no contribution is longer than its bound, and some are as long.

For every query of a fit whose units may come and go. What a unit adds to a total is that total
on the unit alone, in the coordinates in which the mechanism adds noise.
"""

import math
from typing import Any

import count_queries
import numpy as np
import pytest
import sample_queries
import scipy.sparse as sp
from count_queries import Floats, Rng

from sktensor_dp.privacy.curator import sensitivity
from sktensor_dp.privacy.mechanisms import Mechanism
from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.statistics.counts import CountChunk, as_counts
from sktensor_dp.statistics.norms import NORM_SLACK
from sktensor_dp.statistics.row_chunks import Units
from sktensor_dp.statistics.sample_moments import SampleChunk, as_samples
from sktensor_dp.statistics.text import DocumentFrequencies
from sktensor_dp.statistics.unit_count import UnitCount

COUNTS = [pytest.param(case, id=str(case)) for case in count_queries.CASES]
SAMPLES = [pytest.param(case, id=str(case)) for case in sample_queries.CASES]


def shares(contribution: Floats, query: Any) -> tuple[float, float]:
    """Lengths as shares of the L2 and of the L1 bound (0 where none is claimed)."""
    square = math.sqrt(float((contribution**2).sum()))
    one = float(np.abs(contribution).sum())
    return (
        square / sensitivity(query, "l2", "add_remove"),
        one / sensitivity(query, "l1", "add_remove"),
    )


def of_counts(case: Any, query: Any, rows: Floats) -> Floats:
    return count_queries.contributions(case, query, rows)


def of_samples(case: Any, query: Any, rows: Floats) -> Floats:
    return sample_queries.contributions(query, rows)


def test_every_query_of_units_that_come_and_go_is_bounded_here():
    bounded = {case.release for case in (*count_queries.CASES, *sample_queries.CASES)}
    # Scores are one number for each unit: test_completion_gains.py.
    bounded |= {"unit_count", "document_frequencies", "held_out_scores"}
    bounded |= {"word_buckets", "word_votes"}
    assert {name for name in CATALOGUE if hasattr(CATALOGUE[name].query, "l2_contribution")} == (
        bounded
    )


def test_every_law_has_a_case_that_bounds_its_norm():
    for name in {case.release for case in (*count_queries.CASES, *sample_queries.CASES)}:
        cases = (*count_queries.CASES, *sample_queries.CASES)
        claims = [case.extreme()[0] for case in cases if case.release == name]
        for law in (CATALOGUE[name].gaussian, CATALOGUE[name].pure):
            if isinstance(law, Mechanism) and law.norm == "l1":
                assert any(math.isfinite(query.l1_contribution) for query in claims)


@pytest.mark.dealt(2)
@pytest.mark.parametrize("case", COUNTS)
def test_no_document_adds_more_than_the_bound(case, seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        query = case.build(rng)
        found = of_counts(case, query, count_queries.documents(rng))
        assert max(max(shares(one, query)) for one in found) <= 1


@pytest.mark.dealt(2)
@pytest.mark.parametrize("case", SAMPLES)
def test_no_sample_adds_more_than_the_bound(case, seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        query = case.build(rng)
        found = of_samples(case, query, sample_queries.samples(rng, query))
        # Slack is kept for rounding, which is as large as where a sample is replaced.
        most = 1 if case.release == "third_moment_histogram" else 1 - 0.9 * (NORM_SLACK - 1)
        assert max(max(shares(one, query)) for one in found) <= most


@pytest.mark.dealt(4)
@pytest.mark.parametrize("case", COUNTS)
def test_totals_move_by_what_a_document_adds(case, seed):
    """Nothing passes from one document to another, wherever it stands."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        query, corpus = case.build(rng), count_queries.documents(rng)
        fewer = np.delete(corpus, rng.integers(len(corpus)), axis=0)
        totals = [query.total(CountChunk(as_counts(part))) for part in (corpus, fewer)]
        moved = np.subtract(*(case.coordinates(total, query) for total in totals))
        assert max(shares(moved, query)) <= 1


@pytest.mark.dealt(4)
@pytest.mark.parametrize("case", SAMPLES)
def test_totals_move_by_what_a_sample_adds(case, seed):
    rng = np.random.default_rng(seed)
    for form in (np.asarray, sp.csr_array):
        for _ in range(4):
            query = case.build(rng)
            rows = sample_queries.samples(rng, query)
            fewer = np.delete(rows, rng.integers(len(rows)), axis=0)
            one, other = (query.total(SampleChunk(as_samples(form(X)))) for X in (rows, fewer))
            assert max(shares(np.ravel(one - other), query)) <= 1


@pytest.mark.dealt(4)
@pytest.mark.parametrize("case", COUNTS)
def test_totals_move_by_no_more_for_a_group(case, seed):
    """All rows of a group come or go, however many they are."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        query, corpus = case.build(rng), count_queries.documents(rng)
        cut = int(rng.integers(1, len(corpus) - 1))
        starts = np.concatenate([np.arange(cut + 1), [len(corpus)]])
        whole = query.total(CountChunk(as_counts(corpus), Units(starts)))
        fewer = query.total(CountChunk(as_counts(corpus[:cut]), Units(starts[:-1])))
        moved = np.subtract(*(case.coordinates(total, query) for total in (whole, fewer)))
        assert max(shares(moved, query)) <= 1


def climb(contribution: Any, pool: Floats, changed: Any, query: Any, n_steps: int) -> float:
    """Largest share of a bound that hill climbing finds, from the longest of some on."""
    best, row = max((max(shares(contribution(row), query)), tuple(row)) for row in pool)
    for _ in range(n_steps):
        other = changed(np.array(row))
        share = max(shares(contribution(other), query))
        if share >= best:
            best, row = share, tuple(other)
    return best


@pytest.mark.dealt
@pytest.mark.parametrize("case", COUNTS)
def test_no_search_finds_a_document_beyond_the_bound(case, seed):
    rng = np.random.default_rng(1000 + seed)

    def changed(row: Floats) -> Floats:
        word = rng.integers(len(row))
        row[word] = [row[word] + 1, max(row[word] - 1, 0), 2 * row[word], 0, 1, 1e6][
            rng.integers(6)
        ]
        return row

    found = []
    for query in (case.build(rng), case.extreme()[0]):
        pool = np.minimum(np.floor(count_queries.documents(rng)), 1e6)
        found.append(
            climb(lambda row, q=query: of_counts(case, q, row)[0], pool, changed, query, 40)
        )
    assert max(found) <= 1
    assert found[-1] > 0.99  # a search that finds no long ones proves nothing


@pytest.mark.dealt
@pytest.mark.parametrize("case", SAMPLES)
def test_no_search_finds_a_sample_beyond_the_bound(case, seed):
    rng = np.random.default_rng(1000 + seed)

    def changed(row: Floats) -> Floats:
        return row + max(float(np.linalg.norm(row)), 1e-3) * rng.standard_normal(len(row))

    for query in (case.build(rng), case.extreme()[0]):
        pool = np.clip(sample_queries.samples(rng, query), -1e6, 1e6)
        found = climb(lambda row, q=query: of_samples(case, q, row)[0], pool, changed, query, 40)
        assert found <= 1


def attained(query: Any, found: Floats, slack: float) -> None:
    best = np.array([shares(one, query) for one in found]).max(axis=0)
    assert slack - 1e-6 <= best[0] <= 1
    if math.isfinite(query.l1_contribution):
        assert slack - 1e-6 <= best[1] <= 1


@pytest.mark.parametrize("case", COUNTS)
def test_some_documents_attain_the_bound(case):
    query, *rows = case.extreme()
    attained(query, of_counts(case, query, np.array(rows)), 1 / NORM_SLACK)


@pytest.mark.parametrize("case", SAMPLES)
def test_some_samples_attain_the_bound(case):
    """Of those at the radius; where a basis hides a part, of those that it sees."""
    query, *rows = case.extreme()
    attained(query, of_samples(case, query, np.array(rows)), NORM_SLACK**-3)


def test_the_bounds_are_those_of_contributions_and_not_of_distances():
    """Half of what replacing costs for signed ones, a root of 2 less for non-negative ones."""
    for case in (*count_queries.CASES, *sample_queries.CASES):
        for seed in range(3):
            query = case.build(np.random.default_rng(seed))
            ratio = query.l2_sensitivity / query.l2_contribution
            # Cubes of samples with a constant lie between the two.
            assert math.sqrt(2) * (1 - 1e-12) <= ratio <= 2 * (1 + 1e-12)


def words(rng: Rng, n: int) -> list[list[str]]:
    return [[f"w{w}" for w in rng.integers(30, size=rng.integers(0, 40))] for _ in range(n)]


@pytest.mark.dealt
@pytest.mark.parametrize("m", [1, 3, 8])
def test_words_of_one_document_more_stay_within_the_bound(seed, m):
    rng, query, largest = np.random.default_rng(seed), DocumentFrequencies(m), 0
    for _ in range(40):
        corpus = words(rng, 12)
        place = int(rng.integers(12))
        one, other = query.total(corpus), query.total(corpus[:place] + corpus[place + 1 :])
        moved = [one[key] - other[key] for key in one.keys() | other.keys()]
        assert math.hypot(*moved) <= query.l2_contribution * (1 + 1e-15)
        largest = max(largest, sum(map(abs, moved)))
    # Most documents have more words than that.
    assert largest == query.l1_contribution == m


def test_every_unit_counts_for_one():
    counts = as_counts(np.ones((5, 3)))
    count = UnitCount()
    assert count.total(CountChunk(counts)) == 5
    assert count.total(CountChunk(counts, Units(np.array([0, 4, 5])))) == 2
    assert count.total(SampleChunk(np.ones((0, 3)))) == 0
    assert count.total([["a", "b"], []]) == 2
    assert (count.l2_contribution, count.l1_contribution) == (1, 1)
    assert (count.l2_sensitivity, count.l1_sensitivity) == (0, 0)
