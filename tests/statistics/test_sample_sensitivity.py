"""Sensitivities of all releases on samples and tensors: never exceeded, and attained.

Totals are sums over samples, so replacing one moves a total by the difference of two
contributions, in the coordinates in which the mechanism adds noise.
"""

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sample_queries import (
    CASES,
    HERE,
    D,
    Floats,
    Rng,
    contributions,
    every_case,
    samples,
    shares_of_bound,
)

from sktensor_dp.privacy.mechanisms import Mechanism
from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.statistics.sample_moments import (
    NORM_SLACK,
    LiftedBall,
    SampleChunk,
    ThirdMoments,
    as_samples,
)
from sktensor_dp.tensor.symmetric import n_unique, symmetric_to_coordinates


def test_every_release_is_bounded_here():
    assert {case.release for case in CASES} | {"tensor_power_iterations"} == HERE
    for case in CASES:
        for query in (case.build(np.random.default_rng(0)), case.extreme()[0]):
            assert isinstance(query, CATALOGUE[case.release].query)


def test_every_law_has_a_case_that_bounds_its_norm():
    for name in HERE - {"tensor_power_iterations"}:
        claims = [case.extreme()[0] for case in CASES if case.release == name]
        for law in (CATALOGUE[name].gaussian, CATALOGUE[name].pure):
            assert isinstance(law, Mechanism)
            if law.norm == "l1":
                assert any(math.isfinite(query.l1_sensitivity) for query in claims)


@pytest.mark.dealt(3)
@every_case
def test_no_neighbours_are_farther_apart_than_the_sensitivity(case, seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        query = case.build(rng)
        found = contributions(query, samples(rng, query))
        assert np.isfinite(found).all()
        gaps = found[:, None] - found[None]
        assert np.sqrt((gaps**2).sum(axis=2)).max() <= query.l2_sensitivity
        assert np.abs(gaps).sum(axis=2).max() <= query.l1_sensitivity


@pytest.mark.dealt(4)
@every_case
def test_totals_of_neighbouring_data(case, seed):
    """The same for whole matrices, in which nothing may pass from one row to another."""
    rng = np.random.default_rng(seed)
    for form in (np.asarray, sp.csr_array):
        for _ in range(4):
            query = case.build(rng)
            rows = samples(rng, query)
            neighbour = rows.copy()
            neighbour[rng.integers(len(rows))] = samples(rng, query)[rng.integers(len(rows))]
            one, other = (query.total(SampleChunk(as_samples(form(X)))) for X in (rows, neighbour))
            assert max(shares_of_bound(one - other, query)) <= 1


def climb(query: Any, rng: Rng, n_steps: int) -> float:
    """Largest share of a bound that a search finds, from the worst of some pairs on.

    Steps are random, shorten when they fail, and may turn a sample into its opposite.
    """
    pool = np.clip(samples(rng, query), -1e6, 1e6)
    found = contributions(query, pool)
    gaps = np.sqrt(((found[:, None] - found[None]) ** 2).sum(axis=2))
    pair = list(pool[list(np.unravel_index(gaps.argmax(), gaps.shape))])
    arrays = list(contributions(query, np.array(pair)))
    best, length = max(shares_of_bound(arrays[0] - arrays[1], query)), 1.0
    for _ in range(n_steps):
        side = int(rng.integers(2))
        size = max(float(np.linalg.norm(pair[side])), 1e-3)
        row = pair[side] + length * size * rng.standard_normal(D)
        row = -row if rng.random() < 0.1 else row
        array = contributions(query, row)[0]
        share = max(shares_of_bound(array - arrays[1 - side], query))
        length = max(length * (1.5 if share > best else 0.9), 1e-4)
        if share >= best:
            best, pair[side], arrays[side] = share, row, array
    return best


@pytest.mark.dealt(2)
@every_case
def test_no_search_finds_neighbours_beyond_the_sensitivity(case, seed):
    rng = np.random.default_rng(1000 + seed)
    # The last query has extreme neighbours: a search that finds nothing like them proves nothing.
    queries = [*(case.build(rng) for _ in range(3)), case.extreme()[0]]
    shares = [climb(query, rng, n_steps=200) for query in queries]
    assert max(shares) <= 1
    assert shares[-1] > 0.95 * case.attained
    if case.attained < 1:
        assert shares[-1] <= case.attained * (1 + 1e-9)  # no others are farther apart


@every_case
def test_some_neighbours_attain_the_bound(case):
    """What is left is what NORM_SLACK reserves for rounding: of a norm, or of its cube."""
    query, *rows = case.extreme()
    one, other = contributions(query, np.array(rows))
    shares = shares_of_bound(one - other, query)
    assert case.attained * (NORM_SLACK**-3 - 1e-12) <= shares[0] <= case.attained * (1 + 1e-12)
    assert shares[0] <= 1
    if math.isfinite(query.l1_sensitivity):
        assert shares[1] == 1


@pytest.mark.dealt(3)
@every_case
def test_slack_is_kept_for_rounding(case, seed):
    """Contributions stay below their bound by at least the share that the proofs spend."""
    rng = np.random.default_rng(seed)
    if case.release == "third_moment_histogram":
        return  # counts are exact
    for _ in range(5):
        query = case.build(rng)
        found = contributions(query, samples(rng, query))
        apart = np.linalg.norm(found[:, None] - found[None], axis=2)
        assert apart.max() <= query.l2_sensitivity * (1 - 0.9 * (NORM_SLACK - 1))


class Recorder:
    """Stands in for the source of noise; keeps what it is given."""

    def _record(self, norm: str, coordinates: Floats, ambient: int | None = None) -> Floats:
        self.norm, self.coordinates, self.ambient = norm, coordinates.copy(), ambient
        return coordinates

    def gaussian(self, x: Floats, mu: float, size: int | None = None) -> Floats:
        assert size in (None, x.size)
        return self._record("l2", x)

    def laplace(self, x: Floats, _: float) -> Floats:
        return self._record("l1", x)

    def spherical_laplace(self, x: Floats, _: float, ambient: int | None = None) -> Floats:
        return self._record("l2", x, ambient)


@every_case
def test_coordinates_are_those_of_the_mechanism(case, seed):
    """A law gets these numbers divided by the sensitivity, so a move in them is a move there."""
    rng, entry = np.random.default_rng(seed), CATALOGUE[case.release]
    query = case.build(rng)
    total = query.total(SampleChunk(as_samples(samples(rng, query))))
    second = case.release == "second_moments"
    expected = symmetric_to_coordinates(total) if second else np.ravel(total)
    for law in (entry.gaussian, entry.pure):
        bound = query.l2_sensitivity if law.norm == "l2" else query.l1_sensitivity
        noise = Recorder()
        law.apply(total.copy(), bound, 1.0, noise, query)
        assert noise.norm == law.norm
        np.testing.assert_allclose(noise.coordinates * bound, expected, rtol=1e-12)
        if law is entry.pure and case.release == "third_moments":
            size = query.embedding.dimension(D)
            assert noise.ambient == n_unique(size, 3)


@pytest.mark.parametrize("weight", [1.0, 1.001 * math.sqrt(3 / 2)])
def test_a_basis_or_weight_that_bounds_something_else_is_refused(weight):
    columns = np.eye(D)[:, :3] * (1 + 1e-6 if weight == 1 else 1)
    with pytest.raises(ValueError, match=r"orthonormal|at most"):
        ThirdMoments(columns, LiftedBall(1.0), weight)


def test_the_constant_is_no_longer_than_the_radius():
    """Else no two samples would be orthogonal, and other bounds would be the sharp ones."""
    with pytest.raises(ValueError, match="offset must be a number from 0 to 1,"):
        LiftedBall(1.0, 1.01)
