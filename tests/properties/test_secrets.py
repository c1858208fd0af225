"""No seed of the caller's decides what is secret: noise, and which trials a search makes."""

import pytest
from cases import AT_NIGHT, EXACT, MODELS, SEARCHES, STRINGS, plain
from replaying import state

SECRET = [
    pytest.param(name, marks=[pytest.mark.nightly] * (name in AT_NIGHT))
    for name, model in MODELS.items()
    if name not in SEARCHES | EXACT and model.family not in STRINGS
]  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("name", SECRET)
def test_two_fits_of_one_seed_differ(name):
    case = plain(name, payer="none")
    models = [case.fit(case.build(), case.draw()) for _ in range(2)]
    first, second = (state(sorted(vars(model).items()), whole=False) for model in models)
    assert first != second


@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_searches_of_one_seed_draw_any_candidate(name):
    """Each of 20 is one of two by a coin: they are all the same by a chance of 2e-6."""
    case, found = plain(name, payer="none"), set()
    for _ in range(20):
        found.add(str(case.fit(case.build(), case.draw()).best_params_))
        if len(found) == 2:
            return
    pytest.fail("all are the same")
