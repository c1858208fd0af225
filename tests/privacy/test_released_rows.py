"""Matrices that are released by rows: every product is with one matrix, whose noise was drawn once.

Drawn anew for each product, noise would average out; added to other data, it would cancel.
"""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from contracts import rows_of_laws
from scipy import stats
from seeded_sources import same_noise

from sktensor_dp import BudgetAccountant, PrivateSpectralLDA
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.privacy.curator import DataCurator, ReleasedRows, RepeatableNoise
from sktensor_dp.privacy.execution import ThreadedPartitions
from sktensor_dp.privacy.mechanisms import gaussian_pair_rows, laplace_pair_rows
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.counts import Clip, CountChunks, CountNorm, PairNorm, WordFrequencies
from sktensor_dp.queries.moments import PairMoments

N, D, WEIGHT = 90, 23, 0.7
PAIRS = PairMoments(Clip(PairNorm(WEIGHT), 2.0), WEIGHT)


@pytest.fixture(autouse=True)
def _small_blocks(cache_of: Callable[[int], None]) -> None:
    """Five rows at a time, and three in the last block."""
    cache_of(5 * D // 4 + 1)


def counts(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.poisson(9 * rng.dirichlet(np.full(D, 0.3), N)).astype(float)


def curator_of(source: Any, epsilon: float = 1.0, delta: float = 1e-6) -> DataCurator:
    plan = ReleasePlan.split(epsilon, delta, {"pair_moments": 1.0})
    return DataCurator(source, plan, spender="test", unit="document", accountant=None)


def chunks_of(X: np.ndarray) -> CountChunks:
    return CountChunks(sp.csr_matrix(X), *X.shape)


def test_all_products_are_with_one_matrix(seed):
    with curator_of(chunks_of(counts(seed))) as curator:
        product, sigma = curator.noisy_product("pair_moments", PAIRS)
        whole = product(np.eye(D))
        again = product(np.eye(D))
        columns = np.hstack([product(np.eye(D)[:, cut]) for cut in (slice(7), slice(7, D))])
        one = product(np.eye(D)[3])
        report = curator.report()
    # A 1 times a double, and exact zeros: no rounding.
    for other in (again, columns, whole.T):
        np.testing.assert_array_equal(other, whole)
    np.testing.assert_array_equal(one, whole[3])
    (row,) = report.rows
    assert (row.name, row.uses, row.sigma) == ("pair_moments", 1, sigma)


def test_the_release_costs_what_it_does_as_a_matrix(seed):
    X, reports = counts(seed), []
    for by_rows in (False, True):
        with curator_of(chunks_of(X)) as curator:
            ask = curator.noisy_product if by_rows else curator.release
            ask("pair_moments", PAIRS)
            with pytest.raises(RuntimeError, match="used up"):
                curator.noisy_product("pair_moments", PAIRS)
            reports.append(curator.report())
    assert reports[0] == reports[1]


def noise_by_rows(X: np.ndarray, query: PairMoments, delta: float) -> np.ndarray:
    """Noise in the coordinates in which it is drawn, in units of its deviation."""
    with curator_of(chunks_of(X), 1.0, delta) as curator:
        product, sigma = curator.noisy_product("pair_moments", query)
        released = product(np.eye(D))
    noise = (released - query.total(next(iter(chunks_of(X)))) / len(X)) / sigma
    noise[~np.eye(D, dtype=bool)] *= 2
    noise[np.diag_indices(D)] *= query.diagonal_weight
    return noise[np.triu_indices(D)]


@pytest.mark.parametrize(
    ("query", "delta"), [(PAIRS, 1e-6), (PairMoments(Clip(CountNorm(1), 5.0), 1.0), 0.0)]
)
def test_every_pair_has_noise_of_its_own(query, delta, seed):
    noise = noise_by_rows(counts(seed), query, delta)
    # Rounded to the digits that are the noise's: no two are alike, in no two blocks.
    assert len(np.unique(noise.round(9))) == noise.size == D * (D + 1) // 2
    # 276 draws of deviation 1. The mean square of normals errs by sqrt(2 / 276) = .085, that of
    # Laplace numbers by sqrt(5 / 276) = .135, with longer tails; the mean by .06.
    assert 0.35 < np.mean(noise**2) < 2.2
    assert abs(noise.mean()) < 0.33


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("law", "of_law", "n_matrices"),
    [(gaussian_pair_rows, stats.norm, 160), (laplace_pair_rows, stats.laplace, 320)],
)
def test_rows_have_noise_of_the_law_of_the_whole(law, of_law, n_matrices, seed, cache_of):
    """The diagonal and what is above it, of matrices of four blocks of rows."""
    # The deviation of n normals errs by 1 / sqrt(2 n), the mean modulus of n Laplace numbers by
    # 1 / sqrt(n) of itself: of 52,800 and 105,600 on the diagonal 3 % are 4.9 + 4.8
    # standard errors.
    size, weight = 330, 0.25
    cache_of(25 * size)
    diagonal, above, noise = [], [], same_noise(seed)

    def add_noise(rows: np.ndarray, part: NoiseSource) -> None:
        law(rows, size, 0.3, 1.7, part, weight)
        diagonal.append(np.diagonal(rows).copy())
        above.append(rows[np.triu_indices(len(rows), 1, rows.shape[1])][::17])

    for _ in range(n_matrices):
        rows = ReleasedRows(lambda words: np.zeros((size, size))[words], size, add_noise, noise)
        rows.product(np.zeros(size))
    assert rows_of_laws.fits(np.concatenate(diagonal), of_law(scale=0.3 / 1.7 / weight))
    assert rows_of_laws.fits(np.concatenate(above), of_law(scale=0.3 / 1.7 / 2))


def test_rows_are_those_of_the_sum_of_all_chunks(seed):
    """Whatever chunks the data comes in: at a strength where noise is nothing."""
    X = counts(seed)
    parts = [sp.csr_matrix(X[:40]), sp.csr_matrix(X[40:])]
    with curator_of(CountChunks(parts, N, D), 1e12) as curator:
        product, sigma = curator.noisy_product("pair_moments", PAIRS)
        found = product(np.eye(D))
    expected = PAIRS.total(next(iter(chunks_of(X)))) / N
    # 276 draws: 8 deviations, and the rounding of sums.
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=8 * sigma / WEIGHT)


def test_data_that_changes_between_products_changes_none(seed):
    """The same noise on other data would give their difference away."""
    X = sp.csr_matrix(counts(seed))
    chunks = CountChunks(X, N, D)
    with curator_of(chunks) as curator:
        product, _ = curator.noisy_product("pair_moments", PAIRS)
        before = product(np.eye(D))
        for held in (X, *(chunk.X for chunk in chunks)):
            held.data += 3
            held.indices[:] = (held.indices + 1) % D
        np.testing.assert_array_equal(product(np.eye(D)), before)


def test_rows_that_differ_from_what_they_were_never_leave():
    raw = np.zeros((D, D))
    released = ReleasedRows(lambda words: raw[words].copy(), D, lambda *_: None, same_noise())
    released.product(np.eye(D))
    raw[D - 1, D - 1] = 1e-9
    with pytest.raises(RuntimeError, match="differ from what they were"):
        released.product(np.eye(D))


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_keys_of_noise_leave_in_no_file(take):
    for secret in (
        RepeatableNoise(same_noise(), 2),
        ReleasedRows(np.zeros((D, D)).__getitem__, D, lambda *_: None, same_noise()),
    ):
        with pytest.raises(TypeError, match="secret"):
            take(secret)


def test_parts_are_drawn_again_and_are_unlike_each_other():
    noise = RepeatableNoise(same_noise(), 3)
    draws = [noise.part(number).standard_normal(50) for number in (0, 1, 2, 0)]
    np.testing.assert_array_equal(draws[0], draws[3])
    assert len(np.unique(np.concatenate(draws[:3]))) == 150


def test_another_release_has_other_keys():
    source = same_noise()
    first, second = (RepeatableNoise(source, 1).part(0).standard_normal(9) for _ in range(2))
    assert not np.isin(first, second).any()


def test_a_closed_curator_multiplies_no_more(seed):
    chunks = chunks_of(counts(seed))
    with curator_of(chunks) as curator:
        product, _ = curator.noisy_product("pair_moments", PAIRS)
        product(np.eye(D))
    with pytest.raises(RuntimeError, match="closed"):
        product(np.eye(D))


def test_what_has_no_noise_or_lies_apart_is_not_released_by_rows(seed):
    X = counts(seed)
    apart = ThreadedPartitions([sp.csr_matrix(X)], 1)
    for source, epsilon in ((chunks_of(X), math.inf), (CountChunks(apart, N, D), 1.0)):
        with (
            curator_of(source, epsilon) as curator,
            pytest.raises(RuntimeError, match="cannot be released by rows"),
        ):
            curator.noisy_product("pair_moments", PAIRS)
    plan = ReleasePlan.split(1.0, 1e-6, {"word_frequencies": 1.0})
    options: dict[str, Any] = {"spender": "test", "unit": "document", "accountant": None}
    with (
        DataCurator(chunks_of(X), plan, **options) as curator,
        pytest.raises(RuntimeError, match="cannot be released by rows"),
    ):
        curator.noisy_product("word_frequencies", WordFrequencies(Clip(CountNorm(1), 5.0)))


# Fits


def texts(seed: int, n: int, d: int, k: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Documents of one topic each; topics share no word."""
    rng = np.random.default_rng(seed)
    topics = np.zeros((k, d))
    for topic in range(k):
        topics[topic, topic::k] = rng.dirichlet(np.full(len(range(topic, d, k)), 2.0))
    X = np.array([rng.multinomial(20, topics[topic]) for topic in rng.integers(k, size=n)])
    return sp.csr_matrix(X.astype(float)), topics


def error(found: np.ndarray, topics: np.ndarray) -> float:
    """Largest over topics of the total variation to the nearest one found."""
    return float(0.5 * np.abs(found[:, None] - topics).sum(axis=2).min(axis=0).max())


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_a_fit_by_rows_finds_the_topics(delta, seed, cache_of, memory_of):
    memory_of(4e6)
    cache_of(10_000)
    d, k = 700, 3
    X, topics = texts(seed, 4000, d, k)
    model = PrivateSpectralLDA(k, epsilon=3000.0, delta=delta, n_refinements=0, random_state=0)
    found = model.fit(X).components_
    names = [row.name for row in model.privacy_report_.rows]
    assert names.count("pair_moments") == 1
    assert model.spectrum_.shape == (k,)
    # 27,000 tokens of a topic on 233 words: an error of .5 sqrt(2 / pi) sqrt(233 / 27000) = .037
    # at best. The word frequencies, which a fit gives that finds nothing, are 2/3 away.
    assert error(found, topics) < 0.2
    unigram = np.tile(model.unigram_, (k, 1))
    assert error(unigram, topics) > 0.6


def test_some_words_by_rows(seed, cache_of, memory_of):
    """Fewer words than all have pairs: the others keep their frequencies."""
    X, topics = texts(seed, 4000, 700, 3)
    cache_of(10_000)
    errors = []
    for memory in (1e9, 2e6):
        memory_of(memory)
        model = PrivateSpectralLDA(3, epsilon=10.0, n_refinements=0, random_state=0)
        errors.append(error(model.fit(X).components_, topics))
    assert errors[1] < errors[0] + 0.1


def test_partitions_whose_pairs_memory_cannot_hold_are_refused_before_the_charge(
    cache_of, memory_of
):
    cache_of(100_000)
    memory_of(1e7)
    X = sp.csr_matrix((60, 1000))
    accountant = BudgetAccountant(1e12, 1e-4)
    model = PrivateSpectralLDA(2, epsilon=1e9, n_refinements=0, accountant=accountant)
    with pytest.raises(ValueError, match="GB of memory"):
        model.fit_chunks(ThreadedPartitions([X], 1), n_samples=60, n_features=1000)
    assert accountant.entries == ()
    with pytest.warns(NotEnoughDataWarning):
        model.fit(X)
