"""Averages of persons' values are in proportion to the truth, whoever answers."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from sktensor_dp import PrivateCPCompletion, PrivateTuckerCompletion, unsafe_seeded_noise

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:Values of one person differ by less"),
]

# Deviations of noise and of a component.
NOISE, SIZE = 0.6, 0.4


@dataclass(frozen=True)
class Case:
    """Persons, whose values are a level, effects of rows, a component, and noise."""

    name: str
    shape: tuple[int, ...]  # persons first
    share: float  # of cells that are observed
    epsilon: float
    way: str = "alike"  # in which cells are observed
    unit_mode: int = 0
    kind: Any = PrivateCPCompletion
    rank: int = 0
    deviation: float = 0.5  # of effects of each mode

    def data(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Coordinates, values and effects of all modes, of which those of persons are first."""
        effects = [rng.standard_normal(n) for n in self.shape]
        for effect in effects:
            effect -= effect.mean()
            effect *= self.deviation / effect.std()
        chance = np.full(self.shape, self.share)
        for mode, n in enumerate(self.shape[1:], start=1):
            axes = [1 if other not in (0, mode) else k for other, k in enumerate(self.shape)]
            if self.way == "parts":  # each person is asked a part of the rows of each mode
                part = self.share ** (1 / (len(self.shape) - 1))
                chance = (chance if mode > 1 else 1.0) * (
                    rng.random((self.shape[0], n)) < part
                ).reshape(axes)
            elif self.way == "popular":  # some rows are observed six times as often as others
                chance = chance * np.linspace(2, 12, n)[rng.permutation(n)].reshape(
                    1, *axes[1:]
                ) / 7  # fmt: skip
        if self.way == "leave":  # persons of a high level stop before the last rows, which are high
            effects[-1].sort()
            stays = rng.random((self.shape[0], self.shape[-1] - 1)) < 1 / (
                1 + np.exp(2 * effects[0] / self.deviation - 1.5)
            )[:, None]  # fmt: skip
            n_rows = 1 + stays.cumprod(axis=1).sum(axis=1)
            chance *= (np.arange(self.shape[-1]) < n_rows[:, None]).reshape(
                self.shape[0], *[1] * (len(self.shape) - 2), -1
            )
        if self.way == "alone":  # each person is in one row of the last mode
            rows = rng.integers(self.shape[-1], size=self.shape[0])
            chance *= np.eye(self.shape[-1])[rows].reshape(
                self.shape[0], *[1] * (len(self.shape) - 2), -1
            )
        if self.way == "paired":  # high rows of one mode are observed with high ones of the next
            alike = np.multiply.outer(np.sign(effects[1]), np.sign(effects[2]))
            chance = chance * (1 + alike / 2)
        X = np.argwhere(rng.random(self.shape) < chance)
        y = NOISE * rng.standard_normal(len(X))
        y += sum(effect[X[:, mode]] for mode, effect in enumerate(effects))
        if self.rank:
            factors = [rng.standard_normal(n) for n in self.shape]
            y += SIZE * np.prod([f[X[:, mode]] for mode, f in enumerate(factors)], axis=0)
        return X, y, effects[1:]


CASES = [
    Case("two modes", (2000, 30), 0.5, 8.0),
    Case("two modes, few values", (4000, 60), 0.08, 8.0),
    Case("two modes, some noise", (3000, 20), 0.5, 1.0, unit_mode=1),
    Case("three modes, no noise", (1500, 15, 6), 0.3, math.inf),
    Case("three modes", (2000, 15, 6), 0.3, 8.0, unit_mode=1),
    Case("three modes, some noise", (3000, 15, 6), 0.3, 1.0, unit_mode=2),
    Case("three modes, large effects", (2000, 15, 6), 0.3, 8.0, deviation=0.9),
    Case("three modes, few values", (6000, 40, 8), 0.03, 8.0),
    Case("three modes, parts", (2500, 15, 8), 0.25, 8.0, way="parts"),
    Case("three modes, popular", (2500, 15, 8), 0.2, 8.0, way="popular"),
    Case("three modes, popular, some noise", (4000, 15, 8), 0.2, 1.0, way="popular"),
    Case("three modes, paired", (2000, 15, 8), 0.3, 8.0, way="paired"),
    Case("two modes, leave", (4000, 12), 0.9, 8.0, way="leave"),
    Case("three modes, leave, no noise", (4000, 8, 6), 0.6, math.inf, way="leave"),
    Case("three modes, leave, some noise", (6000, 8, 6), 0.6, 2.0, way="leave"),
    Case("two modes, one value each", (8000, 12), 0.99, 8.0, way="alone"),
    Case("three modes, one row each", (6000, 12, 6), 0.5, 4.0, way="alone"),
    Case("three modes, components", (3000, 10, 5), 0.5, 8.0, rank=2),
    Case("three modes, Tucker", (3000, 10, 5), 0.5, 8.0, kind=PrivateTuckerCompletion, rank=2),
    Case("four modes", (1500, 8, 5, 4), 0.2, 8.0),
]


# Each mode of units, kind and way of observing, with and without noise.
BY_DAY = {
    "two modes, few values", "two modes, some noise", "three modes, some noise",
    "three modes, parts", "three modes, popular, some noise", "three modes, paired",
    "three modes, leave, no noise", "three modes, one row each", "three modes, Tucker",
    "four modes",
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.nightly] * (case.name not in BY_DAY), id=case.name)
        for case in CASES
    ],
)
def test_averages_are_in_proportion_to_the_truth(case, seed):
    X, y, effects = case.data(np.random.default_rng(seed))
    order = [*range(1, len(case.shape))]
    order.insert(case.unit_mode, 0)
    shape, bound = tuple(case.shape[mode] for mode in order), 10 * case.deviation
    model = case.kind(
        case.rank, bounds=(-bound, bound), shape=shape, unit_mode=case.unit_mode,
        epsilon=case.epsilon, random_state=seed,
    )  # fmt: skip
    with unsafe_seeded_noise(seed):
        model.fit(X[:, order], y)
    known = {"bias_deviation": case.deviation, "component_share": 0.1 * (case.rank > 0)}
    of_values = NOISE**2 + len(effects) * case.deviation**2 + SIZE**2 * (case.rank > 0)
    deviation = math.sqrt(case.deviation**2 + of_values)
    said = model.forecast(len(y), shape, deviation=deviation, **known).bias_errors
    # The first of four rounds takes its scale from the mean deviation of persons' values.
    of_scale = model.privacy_report_.rows[0].sigma / math.sqrt(of_values) / 4
    squares, level, variance = np.zeros(2), model.mean_, model.privacy_report_.rows[0].sigma ** 2
    for place, mode in enumerate(order):
        if mode == 0:
            continue
        truth, found = effects[mode - 1], model.biases_[place]
        error = math.sqrt(np.mean((found - found.mean() - truth) ** 2))
        own = math.sqrt(np.mean(model.bias_errors_[place] ** 2)) / case.deviation
        # Errors draw biases to 0 by their share of the variance. A fiftieth is for values and
        # effects that are not normal.
        off = float(truth @ found / (truth @ truth)) - (1 - own**2)
        assert abs(off) < 0.02 + 4 * math.hypot(own / math.sqrt(len(truth)), of_scale)
        # Errors are normal, of as many rows less one as they are about their mean.
        most = chi2.isf(1e-6, len(truth) - 1) / (len(truth) - 1)
        assert (error / case.deviation) ** 2 < most * own**2 + (4 * of_scale) ** 2
        level += found.mean()
        variance += np.mean(model.bias_errors_[place] ** 2)
        squares += len(truth) * np.square([said[place], error])
    assert abs(level) < 4 * math.sqrt(variance)  # effects have mean 0, those of persons too
    if case.way == "alike":  # as forecasts assume
        # They count biases of two modes, at least, as explained; here all are.
        of_rest = NOISE**2 + SIZE**2 * (case.rank > 0)
        more = 1 + (len(effects) - 1) * case.deviation**2 / of_rest
        assert 1 / 3 < math.sqrt(squares[0] / squares[1] / more) < 3
