"""What one unit may cost in a tree of releases, against sums written out by hand."""

import math

import pytest

from sktensor_dp.privacy.calibration import gaussian_epsilon
from sktensor_dp.privacy.composition import (
    Composition,
    Part,
    ReleaseRecord,
    unit_costs,
)
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost


def leaf(mu: float = 0.0, epsilon: float = 0.0, delta: float = 0.0, uses: int = 1) -> Composition:
    law = "laplace" if epsilon else "gaussian"
    return Composition(
        "releases", rows=(ReleaseRecord("r", "", 1.0, 1.0, mu, epsilon, delta, uses, law),)
    )


def parts(*nodes: Composition, times: int = 1, role: str = "batch") -> tuple[Part, ...]:
    return tuple(Part(role, 10, node, times) for node in nodes)


def test_uses_and_what_was_not_made_add_up() -> None:
    node = Composition(
        "releases",
        rows=leaf(mu=3.0, uses=1).rows + leaf(epsilon=0.25, uses=4).rows,
        unused=(PlannedRelease("more", PrivacyCost(mu=2.0), 4),),
    )
    assert unit_costs(node) == (PrivacyCost(mu=5.0, epsilon=1.0),)


def test_parallel_parts_cost_what_the_dearest_costs_however_many() -> None:
    node = Composition("parallel", parts=parts(leaf(mu=1.0), leaf(mu=2.0), times=100))
    assert unit_costs(node) == (PrivacyCost(mu=2.0),)
    # Of different kinds: no unit costs both.
    mixed = Composition("parallel", parts=parts(leaf(mu=1.0), leaf(epsilon=0.5)))
    assert unit_costs(mixed) == (PrivacyCost(mu=1.0), PrivacyCost(epsilon=0.5))
    assert mixed.epsilon_at(1e-6) == gaussian_epsilon(1.0, 1e-6)


def test_a_sequence_adds_up_and_counts_repetitions() -> None:
    node = Composition("sequence", parts=parts(leaf(mu=1.0), leaf(epsilon=0.5), times=4))
    assert unit_costs(node) == (PrivacyCost(mu=2.0, epsilon=2.0),)


def test_overlapping_parts_cost_by_membership() -> None:
    node = Composition(
        "overlapping",
        parts=(*parts(leaf(mu=2.0), times=5, role="fit"), *parts(leaf(mu=3.0), role="score")),
        memberships=((("fit", 4),), (("fit", 1), ("score", 1))),
    )
    # 4 * 4 against 4 + 9.
    assert unit_costs(node) == (PrivacyCost(mu=4.0),)


def test_a_selection_costs_what_it_satisfies() -> None:
    trial = parts(leaf(mu=0.1), role="trial")
    node = Composition("selection", parts=trial, n_trials=5.0, epsilon=1.0, delta=1e-6)
    assert unit_costs(node) == (PrivacyCost(epsilon=1.0, delta=1e-6),)


def test_equal_batches_are_counted_and_others_listed() -> None:
    one, other = leaf(mu=1.0), leaf(mu=0.5)
    node = one.beside(10, one, 10).beside(20, one, 10).beside(30, other, 5)
    assert [(part.times, part.n_units) for part in node.parts] == [(3, 10), (1, 5)]
    assert [row.uses for row in node.all_rows()] == [3, 1]
    assert unit_costs(node) == (PrivacyCost(mu=1.0),)


def test_infinite_costs_are_infinite_wherever_they_are_spent() -> None:
    node = Composition("parallel", parts=parts(leaf(mu=math.inf), leaf(mu=1.0)))
    assert node.epsilon_at(1e-6) == math.inf
    assert unit_costs(leaf(mu=math.inf, uses=0)) == (PrivacyCost(),)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "other"},
        {"kind": "parallel"},
        {"kind": "releases", "parts": parts(leaf())},
        {"kind": "selection", "parts": parts(leaf(), leaf())},
        {"kind": "overlapping", "parts": parts(leaf())},
        {"kind": "parallel", "parts": parts(leaf()), "memberships": ((("batch", 1),),)},
        {"kind": "overlapping", "parts": parts(leaf()), "memberships": ((("batch", 2),),)},
        {"kind": "overlapping", "parts": parts(leaf()), "memberships": ((("fit", 1),),)},
    ],
)
def test_trees_that_mean_nothing_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError):
        Composition(**wrong)
