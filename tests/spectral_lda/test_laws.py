"""The default prior does about as well as the one that drew the documents."""

import math

import pytest

from benchmarks.laws import AUTO, MARGIN, Law, error

FEW = Law(30, 3, 0.0, 4, 20_000)
MIXED = Law(30, 10, 0.5, 3, 20_000)
MANY = Law(300, 30, 0.5, 4, 8000)


@pytest.mark.parametrize("epsilon", [4.0, math.inf])
@pytest.mark.parametrize("law", [FEW, MIXED, MANY], ids=str)
def test_the_default_prior_is_as_good_as_the_known_one(law, epsilon):
    auto, _ = error(law, epsilon, "auto")
    known, _ = error(law, epsilon, law.concentration / law.n_topics)
    assert auto <= AUTO * known + MARGIN


@pytest.mark.parametrize("law", [FEW, MIXED], ids=str)
def test_priors_that_are_wrong_are_worse(law):
    """Otherwise the bar above says nothing."""
    auto, found = error(law, 4.0, "auto")
    wrong, _ = error(law, 4.0, (law.concentration + 2) / law.n_topics)
    assert auto < 0.5 * wrong
    assert abs(found - law.concentration) < 0.2


def test_more_budget_is_no_worse():
    errors = [error(MIXED, epsilon, "auto")[0] for epsilon in (1.0, 4.0, math.inf)]
    assert errors[1] <= 1.05 * errors[0] + 0.002
    assert errors[2] <= 1.05 * errors[1] + 0.002
