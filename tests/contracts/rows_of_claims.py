"""Deviations that answers of a session claim, of every release on values of tensors.

A probe moves one number at a time by the standard deviation of its law, and no other. What an
answer moves by is then a root of the covariance of its noise, to the last digits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from contracts.sensitivities import Floats
from internals import probed
from sessions import opened

from sktensor_dp.completion.questions import EntryQuestions, PersonQuestions
from sktensor_dp.data.entries import EntryChunks
from sktensor_dp.data.persons import PersonChunks
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.unsafe import Recorder
from sktensor_dp.queries.entries import ValueHistogram
from sktensor_dp.queries.gradients import Jacobian
from sktensor_dp.queries.persons import ReleasedEffects, SharedFactorSums
from sktensor_dp.tensor.shared_parameters import SharedEffects

GAUSSIAN, PURE = PrivacyCost(mu=0.7), PrivacyCost(epsilon=0.9)
SHAPE, N = (4, 6, 3), 300
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
    """A release, and how an answer is read: its numbers, and the covariance that it claims."""

    release: str
    ask: Callable[[Any], Answer]
    slices: bool = False
    kind: str = ""
    costs: tuple[PrivacyCost, ...] = (GAUSSIAN, PURE)

    @property
    def name(self) -> str:
        return f"{self.release}{self.kind}"

    def answer(self, cost: PrivacyCost, probe: Probe) -> Answer:
        """Ask a new session of the same data, whose noise is that of a probe."""
        rng = np.random.default_rng(5)
        shape = (20, *SHAPE[1:]) if self.slices else SHAPE
        X, y = np.column_stack([rng.integers(0, n, N) for n in shape]), rng.uniform(1, 5, N)
        delta = 0.0 if cost is PURE else 1e-6
        plan = ReleasePlan(1.0, delta, (PlannedRelease(self.release, cost, 1),))
        if self.slices:
            chunks: Any = PersonChunks(X, y, shape, 0, (1.0, 5.0))
            return self.ask(PersonQuestions(probed(opened(chunks, plan), probe)))
        if self.release == "entry_pairs":
            X, shape = X[:, :2], shape[:2]
        chunks = EntryChunks(X, y, shape, (1.0, 5.0))
        return self.ask(EntryQuestions(probed(opened(chunks, plan), probe)))

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


def equal(numbers: Any, sigma: float) -> Answer:
    flat = np.ravel(numbers)
    return flat, sigma**2 * np.eye(flat.size)


def valued(found: Any) -> Answer:
    return equal(found.value, found.sigma)


def blocks(covariances: Floats) -> Floats:
    n, r, _ = covariances.shape
    whole = np.zeros((n, r, n, r))
    whole[np.arange(n), :, np.arange(n)] = covariances
    return whole.reshape(n * r, n * r)


def ridge_block(asked: EntryQuestions) -> Answer:
    # Rows of different size, or one deviation would do for all of them.
    rows = DERIVATIVES * (1.0 + 3.0 * asked.index_set.rows(0))[:, None]
    found = asked.ridge_block(0, rows, 2.0)
    return found.rows.ravel(), blocks(found.sigmas[:, None, None] ** 2 * np.eye(2))


def row_sums(asked: EntryQuestions) -> Answer:
    found = asked.row_sums()
    return equal(np.concatenate(found.sums), found.sigma)


def entry_pairs(asked: EntryQuestions) -> Answer:
    found = asked.entry_pairs(np.zeros(N), np.full(4, 0.5), 1.0)
    assert not np.diagonal(found.sums).any()
    assert np.array_equal(found.sums, found.sums.T)
    return equal(found.sums[np.triu_indices(6, 1)], found.sigma)


NO_EFFECTS = tuple(SharedEffects(np.zeros(n), np.ones(n), np.zeros(n), 1.0) for n in SHAPE[1:])


def shared_factor_sums(asked: PersonQuestions) -> Answer:
    """The moment is symmetric: off the diagonal it is the mean of two numbers."""
    components = np.ones((math.prod(SHAPE[1:]), 2))
    query = SharedFactorSums((20, *SHAPE[1:]), 0.1, NO_EFFECTS, components, 1.0, 0.5)
    found = asked.shared_factor_sums(query)
    moment = found.moment[np.triu_indices(2)]
    deviations = np.full(found.sums.size + 3, found.sigma)
    deviations[-3:] = found.moment_sigma * np.array([1, math.sqrt(0.5), 1])
    return np.append(found.sums, moment), np.diag(deviations**2)


HISTOGRAM = ValueHistogram(np.arange(1.0, 6.0))


def ask_histogram(asked: Any) -> Answer:
    return valued(asked._ask(HISTOGRAM))


def unit_levels(asked: PersonQuestions) -> Answer:
    found = asked.unit_levels()
    return equal([found.mean, found.deviation], found.sigma)


def shared_row_sums(asked: PersonQuestions) -> Answer:
    found = asked.shared_row_sums(1, ReleasedEffects(NO_EFFECTS, 0.1, 1.0), 0.5)
    return equal([found.sums, found.counts], found.sigma)


ROWS = [
    Row("row_sums", row_sums),
    Row("ridge_block", ridge_block),
    Row("entry_gradients", lambda c: valued(c.entry_gradients(Jacobian(c.index_set, FACTORS)))),
    Row("entry_pairs", entry_pairs),
    # Piecewise noise depends on the value: tests/privacy/test_mechanisms.py has its law.
    Row("entries", lambda c: valued(c.entries()), costs=(GAUSSIAN,)),
    Row("value_histogram", ask_histogram, slices=True, kind=", units"),
    Row("value_histogram", ask_histogram),
    Row("unit_levels", unit_levels, slices=True),
    Row("shared_row_sums", shared_row_sums, slices=True),
    Row("shared_factor_sums", shared_factor_sums, slices=True, costs=(GAUSSIAN,)),
]
