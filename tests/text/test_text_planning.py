"""Vocabularies that public numbers alone rule out: refused before anything is charged."""

import math

import pytest

from sktensor_dp import BudgetAccountant, PrivateCountVectorizer, config_context

PETS = ["Cats chase mice, and more mice!", "Dogs chase cats.", "The cats; the dogs"]


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_noise_that_no_threshold_is_proved_for_costs_nothing(neighbours):
    budget = BudgetAccountant(10.0, 1e-6)
    refused = PrivateCountVectorizer(
        epsilon=1e-9, delta=1e-9, neighbours=neighbours, accountant=budget
    )
    for ask in (lambda: refused.fit(PETS * 500), lambda: refused.forecast(10**9)):
        with pytest.raises(
            ValueError, match=r"of a standard deviation of at most .* larger epsilon"
        ):
            ask()
    assert budget.entries == ()


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_samplers_too_slow_for_a_vocabulary_are_refused_before_the_charge(neighbours):
    budget = BudgetAccountant(10.0, 1e-6)
    refused = PrivateCountVectorizer(neighbours=neighbours, accountant=budget)
    with config_context(noise="exact"):
        with pytest.raises(ValueError, match=r"noise='exact' .* 262144 .* or pass a vocabulary"):
            refused.fit(PETS * 500)
        assert budget.entries == ()
        # Neither a fit without noise nor one with a vocabulary draws any.
        assert "cats" in PrivateCountVectorizer(epsilon=math.inf).fit(PETS).vocabulary_
        assert "cats" in PrivateCountVectorizer(vocabulary=["cats"]).fit(PETS).vocabulary_
