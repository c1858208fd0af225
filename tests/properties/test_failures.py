"""A refused call charges nothing; a failed one changes the ledger alone; a paid model is kept."""

import warnings
from itertools import product
from traceback import format_exception_only

import numpy as np
import pytest
from cases import AXES, ENOUGH, EXACT, STREAMED, STRINGS, Case, Data, covered, possible, quiet
from internals import questions
from replaying import state
from sklearn.utils import get_tags

from sktensor_dp import BudgetAccountant, BudgetError

NO_DATA = [[{"?"}, "x"]], [[1.0, -np.inf]], np.zeros((0, 3)), None, [[]], [[np.nan, 1.0]]


def fitted_before(case: Case):
    """An estimator that has a model of other data, and what there is to it."""
    model = case.build()
    case.fit(model, case.draw(seed=1))
    return model, state({**vars(model), "accountant": None}, whole=False)


def unchanged(model, before) -> bool:
    return state({**vars(model), "accountant": None}, whole=False) == before


def refused(case: Case, model, before) -> None:
    """For too small a budget, and for data of a wrong kind; nothing was charged for either."""
    budget = BudgetAccountant(1e-3, 1e-9)
    model.set_params(accountant=budget)
    with pytest.raises(BudgetError, match=r"[Nn]othing was charged"):
        case.fit(model, case.draw())
    budget = BudgetAccountant(1e9, 0.5)
    model.set_params(accountant=budget)
    data, infinite = case.draw(), None
    if case.of.family not in STRINGS:
        infinite = np.array(data.X, float)
        infinite[..., 0] = np.inf
    # Where their number is private no data is data.
    few = slice(2) if case["neighbours"] == "add_remove" else slice(None)
    for name in ("fit", "partial_fit", "fit_transform", "fit_predict", "fit_tensor"):
        if hasattr(model, name):
            more = [] if data.y is None or name == "fit_tensor" else [data.y]
            gaps = get_tags(model).input_tags.allow_nan or (data.y is not None and not more)
            for wrong in (infinite, *NO_DATA[few][: -1 if gaps else None]):
                with pytest.raises((ValueError, TypeError), match="released nothing"):
                    getattr(model, name)(wrong, *more)
    if hasattr(model, "fit_chunks") and case.model not in STREAMED:
        rows, sizes = data.X.astype(float), {"n_features": data.X.shape[1]}
        if case["neighbours"] == "replace_one":
            sizes["n_samples"] = len(rows)
        for source in (BreaksOff(rows, 0), [rows[:, :2]], [rows[:20]], [], BreaksOff(rows, 1))[few]:
            assert budget.entries == ()
            with pytest.raises((OSError, ValueError)):
                model.fit_chunks(source, **sizes)
            assert unchanged(model, before)
    else:
        assert budget.entries == ()
    assert unchanged(model, before)


class BreaksOff:
    """Chunks of a disk that is gone after some readings."""

    def __init__(self, X, n_whole):
        self.X, self.left = X, n_whole

    def __iter__(self):
        yield self.X[:20]
        if self.left == 0:
            raise OSError("the disk is gone")
        self.left -= 1
        yield self.X[20:]


def without_bounds(case: Case) -> None:
    """Whatever bounds a unit is asked for at every door, before anything is charged."""
    if case.of.family == "tensors":
        return
    for name, container in product(("data_norm", "bounds"), ("array", "chunks", "batches")):
        other = case.with_(container=container)
        takes = name in case.of.options and container in AXES[case.of.family]["container"]
        if takes and possible({"model": case.model, **dict(other.values)}):
            model = other.build(**{name: None})
            with pytest.raises(ValueError, match=name):
                other.fit(model, other.draw())
            assert model.accountant.entries == ()


def too_few(case: Case) -> None:
    """Of so few units that a fit may be refused, which costs nothing where nothing was asked."""
    data = case.draw()
    for n in (1, 2, 4):
        few = Data(*(part if part is None else part[:n] for part in (data.X, data.y, data.groups)))
        model = case.build(epsilon=1.0) if case.of.family in STRINGS else case.build()
        try:
            with questions() as asked:
                case.fit(model, few)
        except ValueError as error:
            said, entries = "".join(format_exception_only(error)), model.accountant.entries
            assert bool(asked) == (entries != ())
            assert ("stays charged" in said) == (entries != ())
            assert ("released nothing" in said) == (entries == ())


def failed(case: Case, model, before) -> None:
    """At the first release of each kind and at the last: the charge stays, and nothing else."""
    with quiet(), questions() as asked:
        case.fit(case.build(), case.draw())
    kinds = [type(query) for query in asked]
    for place in {*map(kinds.index, kinds), len(kinds) - 1}:
        budget = BudgetAccountant(1e9, 0.5)
        model.set_params(accountant=budget)
        with quiet(), questions(fail_at=place), pytest.raises(MemoryError) as caught:
            case.fit(model, case.draw())
        said = str(caught.value)  # it had no message of its own, as an interrupt has none
        assert budget.entries
        assert "stays charged" in said
        assert "released nothing" not in said
        assert unchanged(model, before)


def kept(case: Case, model, before) -> None:
    """Whatever fails once a fit is paid for: a warning made an error, a transform, a container."""
    data = case.draw()
    earlier = model.privacy_report_
    model.set_params(accountant=BudgetAccountant(*ENOUGH))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            case.fit(model, data)
        except UserWarning:
            is_new = model.privacy_report_ is not earlier
            assert is_new == (model.accountant.entries != ())
            assert is_new or unchanged(model, before)
    both, after = ("fit_transform", "transform") if hasattr(model, "transform") else (
        "fit_predict", "predict")  # fmt: skip
    if not hasattr(model, both) or case.of.family in ("tensors", *STRINGS):
        return
    X, y, _ = case.given(data)
    values, earlier = [] if y is None else [y], model.privacy_report_
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(type(model), after, fails)
        with pytest.raises(ArithmeticError):
            getattr(model, both)(X, *values)
    assert model.privacy_report_ is not earlier


def fails(*_, **__):
    raise ArithmeticError


def holds(case: Case) -> None:
    model, before = fitted_before(case)
    refused(case, model, before)
    failed(case, model, before)
    kept(case, model, before)  # the last, as it fits the model anew
    without_bounds(case)
    too_few(case)


def other(row):
    return row.get("model") == "words, given" or row.get("model") in EXACT


test_failures, test_failures_in_triples = covered(holds, ("neighbours",), leave_out=other)
