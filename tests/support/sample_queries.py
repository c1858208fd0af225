"""Every query on samples with random public parameters, and neighbours that are far apart."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.statistics.power_iterations import PowerIterations
from sktensor_dp.statistics.sample_moments import (
    LiftedBall,
    ProjectedThirdMoments,
    SampleChunk,
    SecondMoments,
    ThirdMomentHistogram,
    ThirdMoments,
    as_samples,
)

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
