"""What is wrong is refused before any budget is spent; the message names it and quotes no data."""

import re

import pytest
from contracts.rows_of_refusals import NUMBER, QUERIES, ROWS, SECRET


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


@pytest.mark.parametrize(("build", "message"), QUERIES)
def test_a_query_whose_bound_is_that_of_something_else_is_refused(build, message):
    with pytest.raises((TypeError, ValueError), match=message):
        build()
