"""Deviations that answers of a session claim, of every release on values of tensors.

A probe moves one number at a time by the standard deviation of its law, and no other. What an
answer moves by is then a root of the covariance of its noise, to the last digits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from contracts.sensitivities import Floats
from internals import probed
from sessions import opened

from sktensor_dp.data.entries import EntryChunks, IndexSet
from sktensor_dp.data.person_entries import PersonChunks
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.unsafe import Recorder
from sktensor_dp.queries.entries import Entries, EntryPairs, RowSums, ValueHistogram
from sktensor_dp.queries.gradients import EntryGradients, Jacobian, RidgeBlock
from sktensor_dp.queries.person_entries import (
    ReleasedEffects,
    RowConcurrences,
    SharedFactorSums,
    SharedRowSums,
    UnitLevels,
)
from sktensor_dp.queries.query import Query
from sktensor_dp.tensor.shared_parameters import SharedEffects

GAUSSIAN, PURE = PrivacyCost(mu=0.7), PrivacyCost(epsilon=0.9)
SHAPE, PERSONS, N, HALF = (4, 6, 3), (20, 6, 3), 300, 2.0
# The numbers of an answer, and the covariance of their noise.
Answer = tuple[Floats, Floats]


class Probe:
    """Stands in for the source of noise, moves one number or none, and keeps what it is given."""

    sampler, seeded = "grid", True

    def __init__(self, place: int = -1) -> None:
        self.place, self.size, self.recorder = place, 0, Recorder()

    def _moved(self, norm: str, x: Floats, deviation: float) -> Floats:
        self.norm, self.seen, self.size = norm, x.copy(), x.size
        return x + deviation * (np.arange(x.size) == self.place).reshape(x.shape)

    def gaussian(self, x: Floats, mu: float, size: int | None = None) -> Floats:
        assert size in (None, x.size)
        return self._moved("l2", x, 1 / mu)

    def laplace(self, x: Floats, epsilon: float, size: int | None = None) -> Floats:
        return self._moved("l1", x, math.sqrt(2) / epsilon)

    def spherical_laplace(self, x: Floats, epsilon: float, ambient: int | None = None) -> Floats:
        self.ambient = ambient
        return self._moved("l2", x, 0.0)

    def spherical_laplace_rows(self, x: Floats, epsilon: float) -> Floats:
        # The squared norm is r (r + 1) / epsilon^2 in the mean, of which each number has a share.
        return self._moved("l2", x, math.sqrt(x.shape[1] + 1) / epsilon)


@dataclass(frozen=True)
class Row:
    """A release: its query, on entries by where they are, or on persons."""

    release: str
    query: Callable[[IndexSet], Query]
    slices: bool = False
    kind: str = ""
    costs: tuple[PrivacyCost, ...] = (GAUSSIAN, PURE)

    @property
    def name(self) -> str:
        return f"{self.release}{self.kind}"

    def answer(self, cost: PrivacyCost, probe: Probe) -> Answer:
        """Ask a new session of the same data, whose noise is that of a probe."""
        rng = np.random.default_rng(5)
        shape = PERSONS if self.slices else SHAPE
        X, y = np.column_stack([rng.integers(0, n, N) for n in shape]), rng.uniform(1, 5, N)
        delta = 0.0 if cost is PURE else 1e-6
        plan = ReleasePlan(1.0, delta, (PlannedRelease(self.release, cost, 1),))
        if self.release == "entry_pairs":
            X, shape = X[:, :2], shape[:2]
        entries = EntryChunks(X, y, shape, (1.0, 5.0))
        chunks = PersonChunks(X, y, shape, 0, (1.0, 5.0)) if self.slices else entries
        found = probed(opened(chunks, plan), probe)(self.query(entries.index_set)).as_sum()
        return np.ravel(found.value), found.sigma**2 * np.eye(found.value.size)

    def covariances(self, cost: PrivacyCost) -> tuple[Floats, Floats]:
        """Return the covariance that noise has, and the one that is claimed."""
        probe = Probe()
        exact = self.answer(cost, probe)[0]
        answers = [self.answer(cost, Probe(place)) for place in range(probe.size)]
        moved = np.array([numbers - exact for numbers, _ in answers])
        return moved.T @ moved, answers[0][1]


RNG = np.random.default_rng(1)
DERIVATIVES = RNG.standard_normal((N, 2)) * [3.0, 0.1]
FACTORS = [RNG.standard_normal((n, 2)) for n in SHAPE]


def ridge_block(places: IndexSet) -> Query:
    # Rows of different size, or one deviation would do for all of them.
    return RidgeBlock(places, 0, DERIVATIVES * (1.0 + 3.0 * places.rows(0))[:, None], 2.0, HALF)


NO_EFFECTS = tuple(SharedEffects(np.zeros(n), np.ones(n), np.zeros(n), 1.0) for n in SHAPE[1:])
COMPONENTS, HISTOGRAM = np.ones((math.prod(SHAPE[1:]), 2)), ValueHistogram(np.arange(1.0, 6.0))

ROWS = [
    Row("row_sums", lambda places: RowSums(places, places.balanced_weights(), HALF)),
    Row("ridge_block", ridge_block),
    Row("entry_gradients", lambda places: EntryGradients(Jacobian(places, FACTORS), HALF)),
    Row("entry_pairs", lambda places: EntryPairs(places, np.zeros(N), np.full(4, 0.5), 1.0, HALF)),
    # Piecewise noise depends on the value: tests/privacy/test_mechanisms.py has its law.
    Row("entries", lambda _: Entries(HALF), costs=(GAUSSIAN,)),
    Row("value_histogram", lambda _: HISTOGRAM, slices=True, kind=", units"),
    Row("value_histogram", lambda _: HISTOGRAM),
    Row("unit_levels", lambda _: UnitLevels(HALF, order=1), slices=True),
    Row(
        "shared_row_sums", slices=True, query=lambda _: SharedRowSums(
            1, PERSONS, ReleasedEffects(NO_EFFECTS, 0.1, 1.0), 0.5, order=1
        ),
    ),
    Row("row_concurrences", slices=True, query=lambda _: RowConcurrences(1, PERSONS)),
    Row(
        "shared_factor_sums", slices=True, costs=(GAUSSIAN,), query=lambda _: SharedFactorSums(
            PERSONS, ReleasedEffects(NO_EFFECTS, 0.1, 1.0), COMPONENTS, 0.5
        ),
    ),
]  # fmt: skip
