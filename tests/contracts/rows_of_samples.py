"""Every query on samples and tensors with random public parameters, and extreme neighbours."""

import math
from itertools import permutations
from typing import Any

import numpy as np
from contracts.rows_of_counts import Rows, of_groups
from contracts.sensitivities import Case, Extreme, Floats, Rng

from sktensor_dp.data.samples import SampleChunk, SampleChunks, TensorChunk, as_samples
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.queries.norm_histogram import NormHistogram
from sktensor_dp.queries.samples import (
    LiftedBall,
    PowerIterations,
    ProjectedThirdMoments,
    SampleNorm,
    SecondMoments,
    TensorPowerIterations,
    ThirdMomentHistogram,
    ThirdMoments,
)
from sktensor_dp.tensor.symmetric import tensor_oracle

D = 5


def samples(rng: Rng, query: Any) -> Floats:
    """None, small, huge, opposite ones, at the radius, and along what is asked about."""
    radius = getattr(query, "radius", 1.0)
    radius = query.ball.radius if hasattr(query, "ball") else radius
    asked = getattr(query, "starts", getattr(query, "basis", np.eye(D)))[:D].T
    rows = [np.zeros(D), np.full(D, 1e300), np.full(D, -1e300), np.full(D, 1e-300)]
    rows += list(1e300 * np.eye(D)[:2]) + list(-1e300 * np.eye(D)[:2])
    mixed = rng.standard_normal((6, len(asked))) @ asked
    for part in (mixed, -mixed, rng.standard_normal((6, D)), asked[:4]):
        lengths = np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-9)
        rows += list(radius * part / lengths * rng.choice([0.3, 1.0, 1.001, 1e3], (len(part), 1)))
    return np.array(rows)


def changed_sample(rng: Rng, row: Floats) -> Floats:
    """Step at random, far or near, or turn a sample into its opposite."""
    row = np.clip(row, -1e6, 1e6)
    size = max(float(np.linalg.norm(row)), 1e-3) * 10 ** rng.uniform(-3, 0)
    row = row + size * rng.standard_normal(D)
    return -row if rng.random() < 0.1 else row


SAMPLES = Rows(samples, changed_sample, as_samples, SampleChunk, SampleChunks)


# Public parameters


def radii(rng: Rng) -> float:
    return float(10 ** rng.uniform(-3, 3))


def projected_options(rng: Rng) -> tuple[Floats, float, float]:
    """Draw a basis of any rank, rows and columns of very different length, some of them zero."""
    radius = radii(rng)
    columns = rng.standard_normal((D, rng.integers(1, D + 3)))
    columns *= 10 ** rng.uniform(-2, 2, columns.shape[1]) * 10 ** rng.uniform(-2, 1, (D, 1))
    columns *= rng.random((D, 1)) < 0.9
    return columns, radius, radius**3 * float(np.linalg.norm(columns, 2)) ** 3


def projected(rng: Rng, _: None) -> ProjectedThirdMoments:
    columns, radius, largest = projected_options(rng)
    return ProjectedThirdMoments(columns, radius, limit=largest * 10 ** rng.uniform(-8, 0))


def histogram(rng: Rng, _: None) -> ThirdMomentHistogram:
    columns, radius, largest = projected_options(rng)
    edges = largest * np.geomspace(1e-8, 1, rng.integers(2, 20))
    return ThirdMomentHistogram(columns, radius, edges)


def whole(rng: Rng, _: None) -> ThirdMoments:
    frame = np.linalg.qr(rng.standard_normal((D, rng.integers(1, D + 1))))[0]
    return ThirdMoments(frame, radii(rng))


def norms(rng: Rng, _: None) -> NormHistogram:
    return NormHistogram(SampleNorm(), np.geomspace(1e-3, 10 ** rng.uniform(0, 9), 12))


def power(rng: Rng, _: None) -> PowerIterations:
    """From few or many starts, alike or equal."""
    columns = rng.standard_normal((D, rng.integers(1, 12)))
    columns[:, 1:] = columns[:, :1] + columns[:, 1:] * 10 ** rng.uniform(-3, 3)
    columns[:, -1] = columns[:, 0]
    return PowerIterations(columns / np.linalg.norm(columns, axis=0), radii(rng))


# Samples that are as far apart as the bound allows
ROW = np.array([3.0, -1.0, 4.0, 1.0, -5.0])


def case(release: str, kind: str, build: Any, query: Any, *ends: Floats) -> Case:
    one, other = ends or (ROW, -ROW)
    exact = release.endswith("_histogram")  # counts need no room for rounding
    return Case(
        release, kind, SAMPLES, build, lambda _: (query, None, one[None], other[None]),
        slack=1.0 if exact else NORM_SLACK**3, found=0.9,
        most=1.0 if exact else 1 - 0.9 * (NORM_SLACK - 1),
    )  # fmt: skip


def second_case(kind: str, offset: float) -> Case:
    """Clipped to radius 2, at an angle that makes the two z orthogonal."""

    def build(rng: Rng, _: None) -> SecondMoments:
        radius, share = radii(rng), float(rng.choice([0.1, 0.5, 1.0]))
        return SecondMoments(LiftedBall(radius, radius * share if offset else 0.0))

    cosine = -((offset / 2) ** 2)
    ends = 7 * np.eye(D)[0], 9 * np.append([cosine, math.sqrt(1 - cosine**2)], np.zeros(D - 2))
    return case("second_moments", kind, build, SecondMoments(LiftedBall(2.0, offset)), *ends)


def power_case(kind: str, n_starts: int) -> Case:
    columns = np.tile(ROW[:, None], n_starts)
    columns[:, 1:] += np.random.default_rng(0).standard_normal((D, n_starts - 1))
    query = PowerIterations(columns / np.linalg.norm(columns, axis=0), 2.0)
    return case("power_iterations", kind, power, query)


NEAR_AND_FAR = np.zeros(D), np.full(D, 9.0)
HISTOGRAM = ThirdMomentHistogram(np.eye(D), 2.0, np.array([1.0, 2.0, 9.0]))
ROW_CASES = [
    second_case("no constant", 0.0),
    second_case("constant", 1.0),
    second_case("largest constant", 2.0),
    case("norm_histogram", "samples", norms, NormHistogram(SampleNorm(), HISTOGRAM.edges),
         *NEAR_AND_FAR),
    case("third_moment_histogram", "any basis", histogram, HISTOGRAM, *NEAR_AND_FAR),
    case("projected_third_moments", "any basis", projected,
         ProjectedThirdMoments(np.eye(D, 3) + 0.3, 2.0, limit=0.01)),
    case("third_moments", "any frame", whole, ThirdMoments(np.eye(D), 2.0)),
    power_case("one start", 1),
    power_case("more starts than features", 8),
]  # fmt: skip


class Tensors:
    """A tensor whose entries at one triple of places move by a share of their bound."""

    grouped, n_queries = False, 10

    def space(self, rng: Rng) -> tuple[Floats, tuple[int, ...]]:
        draw = rng.standard_normal((D, D, D))
        tensor = sum(draw.transpose(axes) for axes in permutations(range(3)))
        return tensor, tuple(int(i) for i in rng.integers(D, size=3) * rng.integers(2, size=3))

    def units(self, rng: Rng, query: Any, space: Any, n: int) -> list[float]:
        return [0.0, 1.0, *rng.random(3)]

    def other(self, rng: Rng, query: Any, space: Any) -> float:
        return float(rng.random())

    def changed(self, rng: Rng, unit: float, query: Any, space: Any) -> float:
        return float(rng.choice([0.0, 1.0, rng.random()]))

    def total(self, query: Any, units: list[float], space: Any, rng: Rng | None = None) -> Any:
        tensor, triple = space[0].copy(), space[1]
        for axes in permutations(triple):
            tensor[axes] += query.bound * units[0]
        return query.total(TensorChunk(tensor_oracle(tensor)))


def tensor_iterations(rng: Rng, _: Any) -> TensorPowerIterations:
    starts = rng.standard_normal((D, rng.integers(1, 8)))
    return TensorPowerIterations(starts, float(10 ** rng.uniform(-2, 2)))


def extreme_tensor(rng: Rng) -> Extreme:
    """One entry of the diagonal, where starts are largest."""
    query = tensor_iterations(rng, None)
    i = int((query.starts**4).sum(axis=1).argmax())
    return query, (Tensors().space(rng)[0], (i, i, i)), 0.0, 1.0


CASES = [
    *ROW_CASES,
    *of_groups(ROW_CASES),
    Case("tensor_power_iterations", "one entry", Tensors(), tensor_iterations, extreme_tensor,
         slack=NORM_SLACK),
]  # fmt: skip
