"""Sensitivities of all releases on samples and tensors: never exceeded, and attained.

Totals are sums over samples, so replacing one moves a total by the difference of two
contributions, in the coordinates in which the mechanism adds noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.privacy.mechanisms import Mechanism
from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.statistics.power_iterations import PowerIterations
from sktensor_dp.statistics.sample_moments import (
    LiftedBall,
    ProjectedThirdMoments,
    SecondMoments,
    ThirdMomentHistogram,
    ThirdMoments,
)
from sktensor_dp.statistics.samples import NORM_SLACK, SampleChunk, as_samples
from sktensor_dp.tensor.symmetric import n_unique, symmetric_to_coordinates

D = 5
Rng = np.random.Generator
Floats = np.ndarray
# Modules of the queries that are bounded here; those on counts have a file of their own.
HERE = {name for name, entry in CATALOGUE.items() if entry.family in {"samples", "tensors"}}


@dataclass(frozen=True)
class Case:
    """One way to ask for a release of samples.

    ``build`` draws public parameters, ``extreme`` gives a query and two samples that are as
    far apart as the share ``attained`` of its sensitivity, before NORM_SLACK.
    """

    release: str
    kind: str
    build: Callable[[Rng], Any]
    extreme: Callable[[], tuple[Any, Floats, Floats]]
    attained: float = 1.0

    def __str__(self) -> str:
        return f"{self.release}: {self.kind}"


# Public parameters


def embedding(rng: Rng, constant: bool) -> LiftedBall:
    radius = float(10 ** rng.uniform(-3, 3))
    return LiftedBall(radius, radius * float(rng.choice([0.1, 0.5, 1.0])) if constant else 0.0)


def basis(rng: Rng, n_rows: int) -> Floats:
    """Of any rank, rows and columns of very different length, some of them zero."""
    columns = rng.standard_normal((n_rows, rng.integers(1, n_rows + 3)))
    columns *= 10 ** rng.uniform(-2, 2, columns.shape[1]) * 10 ** rng.uniform(-2, 1, (n_rows, 1))
    return columns * (rng.random((n_rows, 1)) < 0.9)


def frame(rng: Rng, n_rows: int, n_columns: int) -> Floats:
    return np.linalg.qr(rng.standard_normal((n_rows, n_columns)))[0]


def projected_options(rng: Rng, constant: bool) -> tuple[Floats, LiftedBall, float]:
    of = embedding(rng, constant)
    weight = float(rng.choice([0.0, 10 ** rng.uniform(-3, 3)]))
    return basis(rng, of.dimension(D)), of, weight


def projected(constant: bool) -> Callable[[Rng], ProjectedThirdMoments]:
    def build(rng: Rng) -> ProjectedThirdMoments:
        columns, of, weight = projected_options(rng, constant)
        largest = of.norm**3 * float(np.linalg.norm(columns, 2)) ** 3
        limit = largest * float(10 ** rng.uniform(-8, 0))
        return ProjectedThirdMoments(columns, of, weight, limit=limit)

    return build


def histogram(rng: Rng) -> ThirdMomentHistogram:
    columns, of, weight = projected_options(rng, bool(rng.integers(2)))
    largest = of.norm**3 * float(np.linalg.norm(columns, 2)) ** 3
    edges = largest * np.geomspace(1e-8, 1, rng.integers(2, 20))
    return ThirdMomentHistogram(columns, of, weight, edges=edges)


def whole(constant: bool) -> Callable[[Rng], ThirdMoments]:
    def build(rng: Rng) -> ThirdMoments:
        of = embedding(rng, constant)
        size = of.dimension(D)
        hidden = int(rng.integers(0, size))
        weight = math.sqrt(3 / hidden) * float(rng.choice([0.0, 0.5, 1.0])) if hidden else 0.0
        return ThirdMoments(frame(rng, size, size - hidden), of, weight)

    return build


def starts(rng: Rng) -> Floats:
    """Few or many, alike or equal."""
    columns = rng.standard_normal((D, rng.integers(1, 12)))
    columns[:, 1:] = columns[:, :1] + columns[:, 1:] * 10 ** rng.uniform(-3, 3)
    columns[:, -1] = columns[:, 0]
    return columns / np.linalg.norm(columns, axis=0)


def power(rng: Rng) -> PowerIterations:
    return PowerIterations(starts(rng), embedding(rng, False).radius)


# Pairs of samples that are as far apart as the bound allows


def extreme_second(offset: float) -> Callable[[], tuple]:
    """Clipped to radius 2, at an angle that makes the two z orthogonal."""
    cosine = -((offset / 2) ** 2)
    rows = 7 * np.eye(D)[0], 9 * np.append([cosine, math.sqrt(1 - cosine**2)], np.zeros(D - 2))
    return lambda: (SecondMoments(LiftedBall(2.0, offset)), *rows)


def opposite(query: Any) -> Callable[[], tuple]:
    row = np.array([3.0, -1.0, 4.0, 1.0, -5.0])
    return lambda: (query, row, -row)


def extreme_projected(offset: float, weight: float) -> Callable[[], tuple]:
    """A basis that leaves the constant out sees opposite samples."""
    of = LiftedBall(2.0, offset)
    columns = np.zeros((of.dimension(D), 2))
    columns[:2] = [[1.0, 0.5], [0.3, 2.0]]
    return opposite(ProjectedThirdMoments(columns, of, weight, limit=0.01))


def extreme_histogram() -> tuple:
    query = ThirdMomentHistogram(np.eye(D), LiftedBall(2.0), edges=np.array([1.0, 2.0, 9.0]))
    return query, np.zeros(D), np.full(D, 9.0)


def whole_case(kind: str, offset: float) -> Case:
    of = LiftedBall(2.0, offset)
    query = ThirdMoments(np.eye(of.dimension(D)), of)
    return Case("third_moments", kind, whole(offset > 0), opposite(query))


def extreme_power(n_starts: int) -> Callable[[], tuple]:
    columns = np.tile(np.array([[3.0, -1.0, 4.0, 1.0, -5.0]]).T, n_starts)
    columns[:, 1:] += np.random.default_rng(0).standard_normal((D, n_starts - 1))
    return opposite(PowerIterations(columns / np.linalg.norm(columns, axis=0), 2.0))


CASES = [
    Case("second_moments", "no constant",
         lambda rng: SecondMoments(embedding(rng, False)), extreme_second(0.0)),
    Case("second_moments", "constant",
         lambda rng: SecondMoments(embedding(rng, True)), extreme_second(1.0)),
    Case("second_moments", "largest constant",
         lambda rng: SecondMoments(embedding(rng, True)), extreme_second(2.0)),
    Case("third_moment_histogram", "any basis", histogram, extreme_histogram),
    Case("projected_third_moments", "no constant", projected(False), extreme_projected(0, 0.7)),
    Case("projected_third_moments", "constant", projected(True), extreme_projected(1.5, 0.7)),
    Case("projected_third_moments", "tensor alone", projected(True), extreme_projected(0, 0.0)),
    whole_case("no constant", 0.0),
    whole_case("constant", 1.0),
    Case("power_iterations", "one start", power, extreme_power(1)),
    Case("power_iterations", "more starts than features", power, extreme_power(8)),
]  # fmt: skip

every_case = pytest.mark.parametrize("case", CASES, ids=str)


def samples(rng: Rng, query: Any) -> Floats:
    """None, small, huge, opposite ones, at the radius, and along what is asked about."""
    radius = query.radius if isinstance(query, PowerIterations) else query.embedding.radius
    asked = getattr(query, "starts", getattr(query, "basis", np.eye(D)))[:D].T
    rows = [np.zeros(D), np.full(D, 1e300), np.full(D, -1e300), np.full(D, 1e-300)]
    rows += list(1e300 * np.eye(D)[:2]) + list(-1e300 * np.eye(D)[:2])
    mixed = rng.standard_normal((6, len(asked))) @ asked
    for part in (mixed, -mixed, rng.standard_normal((6, D)), asked[:4]):
        lengths = np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-9)
        rows += list(radius * part / lengths * rng.choice([0.3, 1.0, 1.001, 1e3], (len(part), 1)))
    return np.array(rows)


def contributions(query: Any, rows: Floats) -> Floats:
    chunks = (SampleChunk(as_samples(row[None, :])) for row in np.atleast_2d(rows))
    return np.array([np.ravel(query.total(chunk)) for chunk in chunks])


def shares_of_bound(difference: Floats, query: Any) -> tuple[float, float]:
    """Distances as shares of the L2 and of the L1 sensitivity (0 where none is claimed)."""
    square = math.sqrt(float((difference**2).sum()))
    return square / query.l2_sensitivity, float(np.abs(difference).sum()) / query.l1_sensitivity


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

    def gaussian(self, x: Floats, _: float) -> Floats:
        return self._record("l2", x)

    def laplace(self, x: Floats, _: float) -> Floats:
        return self._record("l1", x)

    def spherical_laplace(self, x: Floats, _: float, ambient: int | None) -> Floats:
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
        law.apply(total, bound, 1.0, noise, query)
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
