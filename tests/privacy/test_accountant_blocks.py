"""A fit is charged to the block it stands in, or refused: never to another one, or to none."""

import contextvars
import copy
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from cases import MODELS, READERS, plain, quiet
from sklearn.base import clone
from small_completions import X0, Y0, build
from small_texts import pipeline

from sktensor_dp import BudgetAccountant, BudgetError, PrivacyLeakWarning, make_private_scorer
from sktensor_dp.privacy.accountant import HELD, OPENED

N_KINDS = len({MODELS[name].kind for name in READERS})
every_kind = pytest.mark.parametrize(
    "name",
    [*READERS[:N_KINDS], *(pytest.param(n, marks=pytest.mark.nightly) for n in READERS[N_KINDS:])],
)


@pytest.fixture(autouse=True)
def all_blocks_are_left() -> Iterator[None]:
    yield
    assert (HELD, OPENED.get()) == ([], (None,))


def opened() -> BudgetAccountant | None:
    return OPENED.get()[-1]


def test_blocks_nest_and_end_with_exceptions():
    outer, inner = BudgetAccountant(1.0), BudgetAccountant(2.0)
    assert opened() is None
    with outer as entered:
        assert entered is outer
        with inner:
            with outer:
                assert opened() is outer
            assert opened() is inner
        with pytest.raises(KeyError), inner:
            raise KeyError
        assert opened() is outer
    assert opened() is None


def test_interleaved_blocks_leave_each_others_ledgers_alone():
    """A generator that yields inside a block is left when it goes on, or is closed."""
    mine, its = BudgetAccountant(1.0), BudgetAccountant(2.0)

    def generator() -> Iterator[None]:
        with its:
            yield

    for end in (lambda block: block.close(), lambda block: next(block, None)):
        block = generator()
        next(block)
        assert opened() is its
        with mine:
            with pytest.warns(PrivacyLeakWarning, match="left before"):
                end(block)
            # Popping the last one took this block's own, and went on with the other's.
            assert opened() is mine
        assert opened() is None


def test_a_block_left_in_another_context_closes_no_other():
    mine, its = BudgetAccountant(1.0), BudgetAccountant(2.0)
    contextvars.copy_context().run(its.__enter__)
    with mine:
        its.__exit__(None, None, None)
        assert opened() is mine
    assert opened() is None


@pytest.mark.skipif(
    getattr(sys.flags, "thread_inherit_context", False), reason="threads inherit blocks"
)
def test_one_accountant_can_be_active_in_several_threads_that_see_their_own_blocks():
    budget, other, seen = BudgetAccountant(1.0), BudgetAccountant(2.0), []
    entered, leave = threading.Barrier(3), [threading.Event(), threading.Event()]

    def block(number: int) -> None:
        seen.append(opened())
        with budget:
            entered.wait(10)
            leave[number].wait(10)
        seen.append(opened())

    with other, ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(block, number) for number in range(2)]
        entered.wait(10)
        # Left in the order of entering, not the reverse.
        for event, end in zip(leave, ends, strict=True):
            event.set()
            end.result(10)
        assert opened() is other
    assert seen == [None] * 4


def fast(**parameters: Any) -> Any:
    """An estimator that fits in milliseconds."""
    return build(perturbation="sufficient_statistics", max_iter=1, **parameters)


def n_fits(budget: BudgetAccountant) -> int:
    return len({entry.fit for entry in budget.entries})


def in_a_thread(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


ELSEWHERE, PICKLED, PAID, SAYS = (
    f"(?s)has no accountant.*{why}.*Nothing was charged.*accountant=BudgetAccountant"
    for why in ("another thread.*block", "pickled.*block", "an accountant paid", "")
)


@every_kind
def test_a_fit_is_refused_while_another_thread_holds_a_block_open(name):
    case, payer = plain(name, payer="none"), BudgetAccountant(1e9, 0.5)
    if case.of.options.get("vocabulary") is not None:
        return  # it costs nothing

    def fit(**options: Any) -> None:
        case.fit(case.build(**options), case.draw())

    def in_its_own_block() -> None:
        with payer:
            fit()

    with quiet(), BudgetAccountant(1e9, 0.5) as budget:
        with pytest.raises(BudgetError, match=ELSEWHERE):
            in_a_thread(fit)
        # Who pays is said, here or in the thread.
        in_a_thread(lambda: fit(accountant=payer))
        assert n_fits(payer) >= 1
        in_a_thread(in_its_own_block)
        assert budget.entries == ()
        fit()
        assert n_fits(budget) >= 1
    with quiet():
        in_a_thread(fit)


def test_a_score_is_refused_while_another_thread_holds_a_block_open():
    scorer = make_private_scorer("neg_mean_squared_error", epsilon=1.0, bounds=(-64.0, 0.0))
    with quiet():
        model = fast().fit(X0, Y0)
        with BudgetAccountant(10.0) as budget:
            with pytest.raises(BudgetError, match=SAYS):
                in_a_thread(lambda: scorer(model, X0, Y0))
            assert scorer(model, X0, Y0) <= 1.0
            assert n_fits(budget) == 1
            sent = pickle.loads(pickle.dumps(scorer))
        for one in (sent, clone(sent, safe=False)):
            with pytest.raises(BudgetError, match=SAYS):
                one(model, X0, Y0)
        scorer(model, X0, Y0)


def test_a_search_holds_no_one_elsewhere(monkeypatch):
    """Its trials are charged to accountants of its own, which others need not know of."""
    case, others = plain("search", payer="none"), []
    search = case.build()
    usual = type(search.estimator).fit

    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        others.append(in_a_thread(lambda: fast().fit(X0, Y0)))
        return usual(self, *args, **kwargs)

    monkeypatch.setattr(type(search.estimator), "fit", fit)
    with quiet():
        case.fit(search, case.draw())
    assert others


@pytest.mark.parametrize("carried", [pickle.dumps, lambda model: pickle.dumps(clone(model))])
def test_what_was_pickled_inside_a_block_needs_an_accountant(carried, tmp_path):
    model, plain, file = fast(), pickle.dumps(fast()), tmp_path / "model"
    with quiet(), BudgetAccountant(10.0) as budget:
        before = dict(vars(model))
        data = carried(model)
        assert vars(model) == before  # only the pickle says so
        fitted = pickle.dumps(model.fit(X0, Y0))
        model.save(file)
        # Inside a block it is known who pays.
        pickle.loads(data).fit(X0, Y0)
        assert n_fits(budget) == 2
        named = pickle.dumps(fast(accountant=BudgetAccountant(9.0, path=tmp_path / "b.sqlite")))
        sent = in_a_thread(lambda: pickle.dumps(fast()))
    one, other, third = (pickle.loads(of) for of in (data, fitted, sent))
    copies = [clone(one), copy.deepcopy(other), pickle.loads(pickle.dumps(third))]
    payer = BudgetAccountant(10.0)
    with quiet():
        for loaded in (one, other, third, *copies):
            assert loaded.get_params() == model.get_params()
            with pytest.raises(BudgetError, match=PICKLED):
                loaded.fit(X0, Y0)
            loaded.set_params(accountant=payer).fit(X0, Y0)
        assert n_fits(payer) == 6
        # Neither who says who pays, nor what was pickled elsewhere.
        for free in (pickle.loads(named), pickle.loads(plain)):
            free.fit(X0, Y0)


OWNERS = np.repeat(np.arange(250), 4)
TEXTS = ["some words here", "other words there"] * 500


@pytest.mark.parametrize(
    ("changes", "groups", "match"),
    [
        ({"n_components": 0}, OWNERS, "n_components"),
        ({"epsilon": 9.0}, OWNERS, "Epsilon is what is short"),
        ({}, OWNERS[:9], "one label per row"),
        ({}, np.arange(1000), "vocabulary of 250 groups, and this fit has 1,000"),
        ({}, None, "given to both fits"),
    ],
)
def test_an_error_of_a_step_says_what_earlier_ones_spent_and_how_to_go_on(changes, groups, match):
    """Nothing is charged for the second step; the vocabulary before it has been, and is kept."""
    budget, steps, X = BudgetAccountant(4.0), pipeline(), TEXTS
    steps["topics"].set_params(**changes)
    with budget, quiet():
        counted = steps["counts"].fit_transform(X, groups=OWNERS)
    with budget, quiet(), pytest.raises(ValueError, match=match) as refused:
        steps["topics"].fit(counted, groups=groups)
    said, spent = str(refused.value), budget.total()[0]
    assert f"{spent:.6g} " in said
    assert "fit(vectorizer.transform(texts), groups=groups)" in said
    if match == "n_components":
        budget.change_budget(spent)
        with budget, pytest.raises(ValueError, match="nothing of the budget is left to fit this"):
            steps["topics"].fit(steps["counts"].transform(X), groups=groups)
        budget.change_budget(4.0)
    steps["topics"].set_params(n_components=2, epsilon=1.0)
    with budget, quiet():
        steps["topics"].fit(steps["counts"].transform(X), groups=OWNERS)
    assert [entry.protects for entry in budget.entries] == ["person"] * len(budget.entries)


@every_kind
def test_a_model_that_an_accountant_paid_for_is_not_fitted_again_for_nobody(name, tmp_path):
    """As the block is left, it is loaded or cloned, or its accountant is taken away."""
    case, budget, file = plain(name, payer="none"), BudgetAccountant(1e9, 0.5), tmp_path / "model"
    with quiet():
        given = case.draw()
        free = case.fit(case.build(), given)
        with budget:
            paid = case.fit(case.build(), given)
        if budget.entries == ():
            return  # a public vocabulary costs nothing
        ways = {paid: free, clone(paid): clone(free)}
        if hasattr(paid, "save"):
            for model in (paid, free):
                model.save(f"{file}{model is paid}")
            ways[type(paid).load(f"{file}True")] = type(paid).load(f"{file}False")
        for again, unpaid in ways.items():
            with pytest.raises(BudgetError, match=PAID):
                case.fit(again, given)
            case.fit(unpaid, given)
        n_paid = n_fits(budget)
        case.fit(again.set_params(accountant=budget), given)
        assert n_fits(budget) > n_paid
