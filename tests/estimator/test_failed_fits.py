"""A fit that is interrupted at any of its calls changes nothing, and is charged if noise was drawn.

That refused and failed fits change nothing is a property of all estimators.
"""

import numpy as np
import pytest
from cases import MODELS, plain, quiet
from internals import PUBLISH
from interrupting import Interrupted, Interrupting
from replaying import state

from sktensor_dp import BudgetAccountant, load_statement
from sktensor_dp.privacy.unsafe import Recorder

# Calls at which a fit is interrupted: of all functions from the last ones before state is
# written on, and some before.
LAST, BEFORE = 20, 3


def fit(name, model=None):
    case = plain(name, payer="none")
    return case.fit(case.build() if model is None else model, case.draw())


@pytest.mark.nightly
@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_is_interrupted_anywhere_changes_nothing(name, seed):
    """Where it publishes at every seed, and at every second one of the other calls."""
    # The first fills caches; the second makes the calls that all later ones make.
    for _ in range(2):
        with quiet():
            model = fit(name)
        with quiet(), Interrupting() as seen:
            fit(name, model)
    published = max(n for n, call in enumerate(seen.calls) if call == PUBLISH)
    first = max(published - LAST, 0)
    last = {call: first + place for place, call in enumerate(seen.calls[first:published])}
    with quiet():
        model = fit(name)
    places = [*np.linspace(0, first, BEFORE).astype(int).tolist(), *last.values()]
    for place in (*places[seed % 2 :: 2], published):
        before = state(vars(model), whole=False)
        with quiet(), pytest.raises(Interrupted), Interrupting(place):
            fit(name, model)
        assert state(vars(model), whole=False) == before


@pytest.mark.parametrize("name", ["topics", "components", "words", "search", "CP"])
def test_what_is_interrupted_after_the_first_noise_has_been_charged(name, drawn):
    """And not before: at calls all over a fit, of which the charge is one."""
    build = lambda: plain(name).build(accountant=BudgetAccountant(1e9, 0.9))  # noqa: E731
    for estimator in (build(), build()):  # the first fills caches
        with quiet(), Interrupting() as seen:
            fit(name, estimator)
    charge = seen.calls.index(BudgetAccountant.charge.__qualname__)
    noise = seen.calls.index(Recorder.record.__qualname__, charge)
    later = np.linspace(noise, len(seen.calls) - 40, 6).astype(int).tolist()
    for place in (charge - 1, charge, *later):
        drawn.clear()
        estimator = build()
        with quiet(), pytest.raises(Interrupted) as raised, Interrupting(place):
            fit(name, estimator)
        charged = len(estimator.accountant.entries) > 0
        # The error has the statement of what was paid.
        report = getattr(raised.value, "privacy_report_", None)
        assert (report is not None) == charged
        if report is not None:
            spent = estimator.accountant.cost.epsilon_at(report.delta)
            assert load_statement(report.to_json()).epsilon == pytest.approx(spent)
        assert charged >= (len(drawn) > 0)
        assert charged == (place in later)
        # Whoever was interrupted while it was charged locks no one out.
        assert estimator.accountant.check(1e-3, 0.0)
