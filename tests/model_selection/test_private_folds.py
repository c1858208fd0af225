"""Folds for scikit-learn's own searches: a coin for each unit, under a key of the splitter."""

import copy
import pickle
from contextlib import nullcontext
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import AdaBoostRegressor, BaggingRegressor, StackingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.inspection import permutation_importance
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    check_cv,
    cross_val_score,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from small_searches import counts

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivacyLeakWarning,
    PrivateCPCompletion,
    PrivateKFold,
    PrivateSpectralLDA,
    make_private_scorer,
    unsafe_seeded_noise,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*topics asked for"),
    pytest.mark.filterwarnings("ignore:.*word frequencies"),
    pytest.mark.filterwarnings("ignore:noise is seeded"),
]

OWNERS = np.repeat([f"p{place:03d}" for place in range(300)], np.arange(300) % 4 + 1)


def folds(splitter, labels, n_rows=None):
    found = {}
    rows = np.arange(len(labels) if n_rows is None else n_rows)
    for fold, (train, test) in enumerate(splitter.split(rows, groups=labels)):
        assert sorted([*train, *test]) == rows.tolist()
        found |= dict.fromkeys(np.asarray(rows if labels is None else labels)[test].tolist(), fold)
    return found


def test_a_fold_follows_from_the_label_alone(seed):
    """Nobody moves who is renamed, has more rows, leaves or comes; as in scikit-learn they do."""
    rng = np.random.default_rng(seed)
    splitter = PrivateKFold(5)
    before = folds(splitter, OWNERS)
    assert len(before) == 300
    more = np.append(OWNERS, ["p000"] * 9)
    fewer = OWNERS[OWNERS != "p000"]
    for labels in (more, fewer, np.append(fewer, "zz" * 30), rng.permutation(OWNERS).tolist()):
        after = folds(splitter, labels)
        assert all(after[name] == before[name] for name in after.keys() & before.keys())
    assert folds(GroupKFold(5), more) != folds(GroupKFold(5), OWNERS)


def test_folds_are_even_and_of_units_that_are_independent(seed):
    """Of 20,000 rows, in pairs of neighbours, within six deviations of a multinomial."""
    with unsafe_seeded_noise(seed):
        found = folds(PrivateKFold(3), None, 20_000)
    pairs = [3 * found[place] + found[place + 1] for place in range(19_999)]
    for seen, share in ((list(found.values()), 1 / 3), (pairs, 1 / 9)):
        n = len(seen)
        counts = np.bincount(seen)
        assert len(counts) == round(1 / share)
        assert (np.abs(counts - n * share) <= 6 * np.sqrt(n * share * (1 - share))).all()


def test_a_splitter_keeps_its_folds_and_another_has_others():
    splitter = PrivateKFold(4)
    same = (splitter, clone(splitter, safe=False), copy.deepcopy(splitter), check_cv(splitter))
    assert all(folds(one, OWNERS) == folds(splitter, OWNERS) for one in same)
    # Whoever reads a pickle learns no key: 4**-300.
    other = pickle.loads(pickle.dumps(splitter))
    assert other.get_n_splits() == 4
    assert folds(other, OWNERS) != folds(splitter, OWNERS)
    assert folds(PrivateKFold(4), OWNERS) != folds(splitter, OWNERS)
    assert repr(splitter) == "PrivateKFold(n_splits=4)"


def test_folds_may_be_empty_and_tell_nothing_by_an_error():
    parts = list(PrivateKFold(9).split(np.zeros((2, 1)), groups=["a", "b"]))
    assert len(parts) == 9
    assert sorted(len(test) for _, test in parts)[:7] == [0] * 7
    assert len(list(PrivateKFold(2).split(np.zeros((0, 1))))) == 2


@pytest.mark.parametrize("n_splits", [1, 0, -3, 2.5, "5", True, None, 10_001])
def test_wrong_numbers_of_folds_are_refused(n_splits):
    with pytest.raises(ValueError, match="n_splits must be an int from 2 to 10000"):
        PrivateKFold(n_splits)


@pytest.mark.parametrize(
    ("units", "taken", "refused"),
    [
        ("one", ["film", "none"], []), ("person", ["film", "array"], ["none"]),
        ("user", ["user"], ["film", "array", "none"]),
    ],
)  # fmt: skip
def test_a_block_refuses_folds_of_others_than_its_units(units, taken, refused):
    series = {name: pd.Series(OWNERS, name=name) for name in ("user", "film")}
    given = {**series, "array": OWNERS, "none": None}
    with BudgetAccountant(units=units):
        for name in taken:
            assert len(list(PrivateKFold(3).split(OWNERS, groups=given[name]))) == 3
        for name in refused:
            with pytest.raises(BudgetError, match=r"groups must be .* whose persons this budget"):
                next(PrivateKFold(3).split(OWNERS, groups=given[name]))


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("asked", [True, "whose"])
def test_a_grid_search_deals_persons_and_charges_every_fit_and_score(asked, relation):
    """As the page on tuning has it; under a name of one's own the folds are of rows."""
    name, units = ("groups", "one") if asked is True else (asked, "any")
    budget = BudgetAccountant(1e4, 1e-6, units=units)
    with sklearn.config_context(enable_metadata_routing=True):
        model = PrivateSpectralLDA(1, epsilon=9.0, neighbours=relation, accountant=budget)
        scorer = make_private_scorer("log_likelihood_per_token", epsilon=9.0, accountant=budget)
        search = GridSearchCV(
            model.set_fit_request(groups=asked), {"random_state": [0, 1]},
            cv=PrivateKFold(3) if asked is True else 3,
            scoring=scorer.set_score_request(groups=asked), error_score="raise",
        )  # fmt: skip
        by_rows = pytest.warns(PrivacyLeakWarning, match="no PrivateKFold dealt")
        with nullcontext() if asked is True else by_rows:
            search.fit(counts(len(OWNERS)), **{name: OWNERS})
    assert search.best_estimator_.privacy_report_.rows
    assert {(entry.unit, entry.neighbours) for entry in budget.entries} == {("person", relation)}
    scores = [entry for entry in budget.entries if entry.spender == "PrivateScorer"]
    assert len(scores) == (12 if relation == "add_remove" else 6)  # and a count of each
    assert len({entry.fit for entry in budget.entries if entry not in scores}) == 7
    assert "with GroupKFold" in str(budget)


@pytest.mark.filterwarnings("ignore:Biases of rows")  # of sixteen persons
@pytest.mark.parametrize(
    ("units", "taken", "refused"),
    [("one", ["user", "array"], ["film", "none"]), ("user", ["user"], ["film", "array", "none"])],
)
def test_persons_who_pay_are_those_whom_folds_were_dealt_by(units, taken, refused):
    """Without a block, too: a splitter knows no model."""
    table = pd.DataFrame(np.argwhere(np.ones((40, 6))), columns=["user", "film"])
    given = {**dict(table.items()), "array": table["user"].to_numpy(), "none": None}
    y, options = np.arange(240) % 3.0, {"bounds": (0, 2), "unit_mode": 0, "shape": (40, 6)}
    given["sizes"] = table["user"]
    others = {"places": 2, "sizes": GroupKFold(2)}  # splitters of scikit-learn
    for name in (*taken, *refused, *others):
        budget = BudgetAccountant(units=units)
        model = PrivateCPCompletion(0, **options, epsilon=99.0, accountant=budget)
        validate = partial(
            cross_val_score, model, table, y, error_score="raise",
            cv=others.get(name, PrivateKFold(2)), groups=given.get(name),
            scoring=make_private_scorer("neg_mean_squared_error", bounds=(-4, 0), epsilon=99.0),
        )  # fmt: skip
        if name in taken:
            assert validate().shape == (2,)
            continue
        dealt = "no PrivateKFold dealt" if name in others else "dealt by"
        for block in (nullcontext(), budget)[: 1 + (name in others)]:
            model.set_params(accountant=None if block is budget else budget)
            with block, pytest.raises(BudgetError, match=rf"{dealt}.*table\['user'\] to the"):
                validate()
        assert budget.total()[0] == 0


def test_stacked_models_of_persons_are_refused_before_the_first():
    """They are fitted to all rows, and to folds afterwards, by places of rows."""
    X, budget = np.argwhere(np.ones((40, 6))), BudgetAccountant()
    given = {"bounds": (0, 2), "shape": (40, 6), "epsilon": 99.0, "accountant": budget}
    for unit_mode in (0, None):
        model = PrivateCPCompletion(0, unit_mode=unit_mode, **given)
        refused = pytest.raises(BudgetError, match="no PrivateKFold dealt")
        with refused if unit_mode == 0 else nullcontext():
            StackingRegressor([("model", model)], cv=2).fit(X, np.arange(240) % 3.0)
        assert (budget.total()[0] == 0) == (unit_mode == 0)


PARAMS = {"params": {"groups": OWNERS}}
CUTTING = {
    "curve": lambda fit, X, cv, more: learning_curve(fit, X, None, cv=cv, **PARAMS, **more),
    "whole": lambda fit, X, cv, more: learning_curve(
        fit, X, None, train_sizes=[1.0], cv=cv, **PARAMS, **more
    ),
    "batches": lambda fit, X, cv, more: learning_curve(
        fit, X, None, exploit_incremental_learning=True, cv=cv, **PARAMS, **more
    ),
    "shuffled": lambda fit, X, cv, more: learning_curve(
        fit, X, None, shuffle=True, cv=cv, **PARAMS, **more
    ),
    "halving": lambda fit, X, cv, more: HalvingGridSearchCV(
        fit, {"random_state": [0, 1]}, cv=cv, **more
    ).fit(X, groups=OWNERS),
    "first": lambda fit, X, cv, more: fit.fit(X[next(cv.split(X, groups=OWNERS))[0][:50]]),
    "copy": lambda fit, X, cv, more: fit.fit(
        X[pickle.loads(pickle.dumps(next(cv.split(X, groups=OWNERS))[1]))[2:]]
    ),
}


@pytest.mark.parametrize("way", [*CUTTING])
@pytest.mark.parametrize("units", ["one", "any"])
def test_folds_of_persons_are_taken_whole(way, units):
    """Whose rows are in a part of a fold depends on how many rows each person has."""
    budget, X = BudgetAccountant(units=units), counts(len(OWNERS))
    with sklearn.config_context(enable_metadata_routing=True):
        model = PrivateSpectralLDA(1, epsilon=99.0, accountant=budget).set_fit_request(groups=True)
        scorer = make_private_scorer("log_likelihood_per_token", epsilon=99.0, accountant=budget)
        more = {"scoring": scorer.set_score_request(groups=True), "error_score": "raise"}
        given = model.set_partial_fit_request(groups=True), X, PrivateKFold(2), more
        if (way, units) == ("shuffled", "any"):
            with pytest.warns(PrivacyLeakWarning, match="no PrivateKFold dealt"):
                CUTTING[way](*given)
            return
        shown = "no PrivateKFold dealt" if way == "shuffled" else "must be taken whole"
        with pytest.raises((BudgetError, ValueError), match=shown):
            CUTTING[way](*given)
    assert budget.total()[0] == 0


COMPUTED = {
    "copied": np.copy, "flat": np.ravel, "moved": lambda rows: (rows + 1) % 300,
    "cut": lambda rows: rows.take(range(100)), "less": lambda rows: np.delete(rows, 0),
    "chosen": lambda rows: np.where(rows > 9, rows, 9), "list": np.ndarray.tolist,
    "first": lambda rows: np.broadcast_to(rows[0], 100), "order": np.argsort, "unique": np.unique,
}  # fmt: skip
WHOLE = {
    "fold": lambda rows: rows, "array": np.asarray, "cloned": copy.deepcopy,
    "unpickled": lambda rows: pickle.loads(pickle.dumps(rows)),
}  # fmt: skip


@pytest.mark.parametrize("way", [*COMPUTED, *WHOLE])
@pytest.mark.parametrize("persons", [False, True])
def test_an_array_that_numpy_computes_from_a_fold_is_none(way, persons):
    """A fold itself can be shown and summed up, and not be written to."""
    X, budget = counts(300), BudgetAccountant()
    groups = np.arange(300) // 2 if persons else None
    dealt = [pair[0] for pair in PrivateKFold(2).split(X, groups=groups)]
    assert repr(dealt[0]) == repr(np.asarray(dealt[0]))
    assert type(dealt[0].sum()) is np.int64
    with pytest.raises(ValueError, match="read-only"):
        dealt[0] += 0
    made = [{**COMPUTED, **WHOLE}[way](rows) for rows in dealt]
    model = PrivateSpectralLDA(1, neighbours="add_remove", epsilon=99.0, accountant=budget)
    with sklearn.config_context(enable_metadata_routing=True):
        taken = nullcontext() if way in WHOLE else pytest.raises(BudgetError, match="no PrivateKF")
        with taken:
            cross_val_score(
                model.set_fit_request(groups=True), X, cv=[*zip(made, made, strict=True)],
                scoring=lambda *_: 0.0, error_score="raise",
                params={"groups": groups} if persons else {},
            )  # fmt: skip
    assert (budget.total()[0] > 0) == (way in WHOLE)


MIXING = {
    "bagging": lambda fit, X, y, score: BaggingRegressor(fit).fit(X, y),
    "boosting": lambda fit, X, y, score: AdaBoostRegressor(fit).fit(X, y),
    "ransac": lambda fit, X, y, score: RANSACRegressor(fit, min_samples=0.5).fit(X, y),
    "permuted targets": lambda fit, X, y, score: permutation_test_score(
        fit, X, y, groups=X[:, 0], cv=PrivateKFold(2), scoring=score
    ),
    "permuted columns": lambda fit, X, y, score: permutation_importance(
        clone(fit).set_params(accountant=None).fit(X, y), X, y, scoring=score
    ),
}


@pytest.mark.parametrize("tool", [*MIXING])
@pytest.mark.parametrize("unit_mode", [0, None])
def test_tools_that_mix_rows_are_refused(tool, unit_mode):
    X, budget = np.argwhere(np.ones((40, 6))), BudgetAccountant(units="any")
    model = PrivateCPCompletion(0, bounds=(0, 2), unit_mode=unit_mode, shape=(40, 6), epsilon=99.0)
    scorer = make_private_scorer("neg_mean_squared_error", bounds=(-4, 0), accountant=budget)
    refused = pytest.raises((BudgetError, ValueError), match=r"changes several|repeated=")
    with refused:
        MIXING[tool](model.set_params(accountant=budget), X, np.arange(240) % 3.0, scorer)
    assert budget.total()[0] == 0


NOISY = make_private_scorer("neg_mean_squared_error", bounds=(-4, 0), epsilon=99.0)


@pytest.mark.parametrize(
    ("scoring", "taken"),
    [
        (None, False), ("neg_mean_squared_error", False), (["r2", "neg_mean_squared_error"], False),
        (NOISY, True), ({"noisy": NOISY, "r2": "r2"}, True),
    ],
    ids=["own", "name", "names", "noisy", "both"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sktensor_dp.UnprotectedScoreWarning")
def test_newcomers_decide_no_rank(scoring, taken):
    """Scores of scikit-learn are of newcomers, whose predictions no rank changes."""
    X, budget = np.argwhere(np.ones((40, 6))), BudgetAccountant()
    model = PrivateCPCompletion(bounds=(0, 2), unit_mode=0, shape=(40, 6), epsilon=999.0)
    with budget:
        search = GridSearchCV(
            model, {"rank": [0]}, cv=PrivateKFold(2), scoring=scoring, error_score="raise",
            refit=False,
        )  # fmt: skip
        with nullcontext() if taken else pytest.raises(ValueError, match="for a newcomer"):
            search.fit(X, np.arange(240) % 3.0, groups=X[:, 0])
    assert (budget.total()[0] > 0) == taken


@pytest.mark.parametrize("error_score", ["raise", np.nan])
@pytest.mark.parametrize("tool", ["grid", "values"])
@pytest.mark.parametrize("options", [{"unit_mode": 0, "shape": (40, 6)}, {}], ids=["unit", "value"])
def test_no_search_over_ranks_is_paid_that_all_give_one_model(options, tool, error_score):
    """By public numbers no rank is sought; 0 comes first, of which no fit would warn."""
    X, y, budget = np.argwhere(np.ones((40, 6))), np.arange(240) % 3.0, BudgetAccountant()
    model = PrivateCPCompletion(bounds=(0, 2), **options, accountant=budget)
    more = {"cv": PrivateKFold(2), "scoring": NOISY, "error_score": error_score}
    groups = X[:, 0] if options else None
    with (
        nullcontext()
        if tool == "values" and error_score != "raise"
        else pytest.raises(ValueError, match="All ranks of this search give the same model")
    ):
        if tool == "grid":
            GridSearchCV(model, {"rank": [0, 2]}, **more).fit(X, y, groups=groups)
        else:
            validation_curve(
                model, X, y, param_name="rank", param_range=[0, 2], groups=groups, **more
            )
    assert budget.total()[0] == 0


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_rows_by_position_are_dealt_by_others_where_none_comes_or_goes(relation):
    """A learning curve, too, though left over folds of persons are held."""
    X, budget = counts(300), BudgetAccountant()
    left_over = list(PrivateKFold(2).split(X, groups=np.arange(300)))
    model = PrivateSpectralLDA(1, neighbours=relation, epsilon=99.0, accountant=budget)
    more = {"y": None, "scoring": lambda *_: 0.0, "error_score": "raise"}
    ways = {
        "places": partial(cross_val_score, cv=KFold(2)),
        "cut": partial(learning_curve, cv=PrivateKFold(2), train_sizes=[0.5]),
    }
    for validate in ways.values():
        goes = pytest.raises(BudgetError, match="let one unit move others")
        with goes if relation == "add_remove" else nullcontext():
            validate(model, X, **more)
    assert (budget.total()[0] == 0) == (relation == "add_remove")
    assert len(left_over) == 2


def test_rows_that_come_and_go_are_dealt_without_groups():
    X, budget = counts(300), BudgetAccountant(40.0, 1e-6)
    model = PrivateSpectralLDA(2, neighbours="add_remove", accountant=budget)
    scorer = make_private_scorer("log_likelihood_per_token", epsilon=2.0, accountant=budget)
    found = cross_val_score(model, X, cv=PrivateKFold(3), scoring=scorer, error_score="raise")
    assert found.shape == (3,)
    assert {entry.neighbours for entry in budget.entries} == {"add_remove"}
