"""Vocabularies that public numbers alone rule out: refused before anything is charged."""

import pytest

from sktensor_dp import BudgetAccountant, PrivateCountVectorizer

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
