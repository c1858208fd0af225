"""What one unit may cost in a tree of releases, and in a ledger of both kinds of noise."""

import functools
import math
from typing import Any

import pytest
from scipy.stats import binom

from sktensor_dp.privacy.calibration import gaussian_delta
from sktensor_dp.privacy.composition import Composition, Part, ReleaseRecord, unit_costs
from sktensor_dp.privacy.ledger_entries import LedgerEntry, Spending
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost
from sktensor_dp.privacy.zcdp import pure_rho, zcdp_rho_at_delta


def leaf(mu: float = 0.0, epsilon: float = 0.0, delta: float = 0.0, uses: int = 1) -> Composition:
    law = "laplace" if epsilon else "gaussian"
    return Composition(
        "releases", rows=(ReleaseRecord("r", "", 1.0, 1.0, mu, epsilon, delta, uses, law),)
    )


def tree(kind: Any, *nodes: Composition, times: int = 1, **more: Any) -> Composition:
    parts = tuple(Part("batch", 10, node, times) for node in nodes)
    return Composition(kind, parts=parts, **more)


RELEASES = Composition(
    "releases",
    rows=leaf(mu=3.0, uses=1).rows + leaf(epsilon=0.25, uses=4).rows,
    unused=(PlannedRelease("more", PrivacyCost(mu=2.0), 4),),
)


@pytest.mark.parametrize(
    ("node", "costs"),
    [
        # Uses, and what was paid for and not made.
        (RELEASES, [(5.0, 1.0)]),
        # Of parallel parts the dearest, however many; of different kinds no unit costs both.
        (tree("parallel", leaf(mu=1.0), leaf(mu=2.0), times=100), [(2.0,)]),
        (tree("parallel", leaf(mu=1.0), leaf(epsilon=0.5)), [(1.0,), (0.0, 0.5)]),
        (tree("sequence", leaf(mu=1.0), leaf(epsilon=0.5), times=4), [(2.0, 2.0)]),
        (tree("selection", leaf(mu=0.1), epsilon=1.0, delta=1e-6), [(0.0, 1.0, 1e-6)]),
        (tree("parallel", leaf(mu=math.inf), leaf(mu=1.0)), [(math.inf,)]),
        (leaf(mu=math.inf, uses=0), [()]),
    ],
)
def test_a_unit_costs_what_its_own_parts_cost(node, costs):
    expected = [PrivacyCost(*amounts) for amounts in costs]
    assert list(unit_costs(node)) == expected
    assert node.epsilon_at(1e-6) == max(cost.epsilon_at(1e-6) for cost in expected)


def test_equal_batches_are_counted_and_others_listed():
    one, other = leaf(mu=1.0), leaf(mu=0.5)
    node = one.beside(10, one, 10).beside(20, one, 10).beside(30, other, 5)
    assert [(part.times, part.n_units) for part in node.parts] == [(3, 10), (1, 5)]
    assert [row.uses for row in node.all_rows()] == [3, 1]
    assert unit_costs(node) == (PrivacyCost(mu=1.0),)


def test_equal_batches_of_several_releases_are_listed_with_all_their_uses():
    several = Composition("releases", rows=(*leaf(mu=1.0).rows, *leaf(mu=0.5, uses=2).rows))
    node = several.beside(10, several, 10).beside(20, several, 10)
    assert [(row.mu, row.uses) for row in node.all_rows()] == [(1.0, 3), (0.5, 6)]


DELTA = 1e-6


def exact_epsilon(mu: float, epsilon: float, uses: int, delta: float) -> float:
    """Of a Gaussian and of equal randomised responses: their losses are a binomial walk."""

    def excess(level: float) -> float:
        # gaussian_delta takes no negative epsilon; this is the symmetry of its curve.
        if level >= 0:
            return gaussian_delta(mu, level)
        return 1 - math.exp(level) + math.exp(level) * gaussian_delta(mu, -level)

    heads = binom.pmf(range(uses + 1), uses, 1 / (1 + math.exp(-epsilon)))
    low, high = 0.0, PrivacyCost(mu, epsilon * uses).epsilon_at(delta)
    for _ in range(60):
        middle = (low + high) / 2
        found = math.fsum(
            share * excess(middle - (2 * k - uses) * epsilon) for k, share in enumerate(heads)
        )
        low, high = (middle, high) if found > delta else (low, middle)
    return high


def spending(mu: float, epsilon: float, uses: int) -> Spending:
    costs = [(PrivacyCost(epsilon=epsilon), uses), (PrivacyCost(mu=mu), 1)]
    return Spending().plus([LedgerEntry("fit", "release", n, cost) for cost, n in costs])


CASES = [
    (0.0, 0.1, 100), (0.0, 0.1, 36), (0.0, 0.05, 400), (0.0, 0.5, 16), (0.0, 1.0, 3),
    (0.4, 0.05, 20), (0.25, 0.1, 10), (1.0, 0.1, 20), (1.0, 1.0, 4), (2.0, 0.5, 8), (0.1, 30.0, 2),
]  # fmt: skip


@pytest.mark.parametrize(("mu", "epsilon", "uses"), CASES)
def test_total_is_valid_and_close(mu, epsilon, uses):
    found = spending(mu, epsilon, uses).epsilon_at(DELTA)
    exact = exact_epsilon(mu, epsilon, uses, DELTA)
    assert exact * (1 - 1e-9) <= found <= 1.16 * exact
    assert found <= PrivacyCost(mu, epsilon * uses).epsilon_at(DELTA)


# Randomised responses of one or of four steps of a privacy loss.
STEP, AT_DELTA = 0.1, 0.02
SMALL, LARGE = (LedgerEntry("", "", 1, PrivacyCost(epsilon=k * STEP)) for k in (1, 4))


def best_excess(budget: float) -> float:
    """Of all adaptive strategies that the accountant admits, by backward induction."""

    @functools.cache
    def admitted(n_small: int, n_large: int) -> bool:
        return Spending().plus([SMALL] * n_small + [LARGE] * n_large).within(budget, AT_DELTA)

    @functools.cache
    def value(n_small: int, n_large: int, loss: int) -> float:
        best = max(0.0, -math.expm1(budget - loss * STEP))
        for steps, after in ((1, (n_small + 1, n_large)), (4, (n_small, n_large + 1))):
            if admitted(*after):
                heads = 1 / (1 + math.exp(-steps * STEP))
                up, down = value(*after, loss + steps), value(*after, loss - steps)
                best = max(best, heads * up + (1 - heads) * down)
        return best

    return value(0, 0, 0)


@pytest.mark.parametrize("budget", [1.0, 2.0])
def test_who_chooses_epsilons_in_view_of_answers_gains_nothing(budget):
    most = zcdp_rho_at_delta(budget, AT_DELTA)
    # Both bounds are in use: neither admits all that the other one does.
    assert most / pure_rho(STEP) > budget / STEP
    assert most / pure_rho(4 * STEP) < budget / (4 * STEP)
    assert 0.01 * AT_DELTA < best_excess(budget) <= AT_DELTA
