"""What is wrong is refused before any budget is spent; the message names it and quotes no data."""

import re
from itertools import product

import pytest
from contracts.rows_of_refusals import NUMBER, QUERIES, ROWS, SECRET

from sktensor_dp import BudgetAccountant, PrivateSearchCV


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r" at 0x\w+", "", row.name))
def test_a_wrong_call_is_refused_unspent_with_a_message_that_says_what_is_wrong(row):
    for said, model, accountant in row.refused():
        assert re.search(row.message, said), said or "nothing was refused"
        assert said
        assert SECRET not in said
        assert str(NUMBER) not in said
        assert accountant.entries == ()
        assert [name for name in vars(model) if name.endswith("_")] == []


# A search sets these itself.
SEARCHED = [row for row in ROWS if not {"epsilon", "delta", "verbose"} & {*row.parameters}]


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
@pytest.mark.parametrize("row", SEARCHED, ids=lambda row: re.sub(r" at 0x\w+", "", row.name))
def test_a_search_refuses_unspent_what_a_fit_refuses_unspent(row):
    """Also where the wrong value is that of a candidate alone."""
    tried = {name: [value] for name, value in row.parameters.items()}
    ways = (row.model(**row.parameters), {}), (row.model(), tried)
    for call, (model, candidates) in product(row.calls, ways):
        budget = BudgetAccountant(100.0, 1e-3)
        search = PrivateSearchCV(model, candidates, score_bounds=(-9.0, 0.0), accountant=budget)
        # Of methods that a search lacks, such as fit_tensor, none is called.
        with pytest.raises((AttributeError, ValueError, TypeError, OSError)) as caught:
            call(search)
        assert SECRET not in str(caught.value)
        assert budget.entries == ()


@pytest.mark.parametrize(("build", "message"), QUERIES)
def test_a_query_whose_bound_is_that_of_something_else_is_refused(build, message):
    with pytest.raises((TypeError, ValueError), match=message):
        build()
