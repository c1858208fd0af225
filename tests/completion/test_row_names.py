"""Entries by name: public lists, and ids of persons that no fit keeps."""

import datetime
import pickle
import warnings

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from small_completions import INF, build

from sktensor_dp import BudgetAccountant, RowIndex, unsafe_seeded_noise
from sktensor_dp.privacy.audit import worst_case

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning"),
]
PEOPLE, DRINKS = ["ann7", "bob7", "eve7", "joe7"], ["tea", "mate", "milk"]


def entries(seed=0, n=40):
    rng = np.random.default_rng(seed)
    X = np.argwhere(np.ones((4, 3, 4)))[rng.choice(48, n, replace=False)]
    return X, np.clip(3 + X[:, 1] - X[:, 0] / 2 + 0.1 * rng.standard_normal(n), 1, 5)


def frame_of(X):
    names = np.array(PEOPLE, dtype=object)[X[:, 0]], np.array(DRINKS, dtype=object)[X[:, 1]]
    return pd.DataFrame({"person": names[0], "drink": names[1], "day": X[:, 2]})


NAMED = {"bounds": (1, 5), "row_names": (np.array(PEOPLE), RowIndex.from_public(DRINKS), None)}
SLICED = {
    "bounds": (1, 5), "unit_mode": 0, "shape": (4, 3, 4),
    "row_names": (None, pd.Series(DRINKS), None),
}  # fmt: skip


def test_ids_of_persons_are_not_kept():
    X, y = entries()
    fitted = build(**SLICED).fit(frame_of(X), y)
    assert not any(name.encode() in pickle.dumps(fitted) for name in PEOPLE)
    with unsafe_seeded_noise(1):
        first = build(**SLICED).fit(frame_of(X), y)
    other = frame_of(X)
    other["person"] = other["person"].map({"ann7": 904, "bob7": 905, "eve7": 906, "joe7": 999})
    with unsafe_seeded_noise(1):
        second = build(**SLICED).fit(other, y)
    np.testing.assert_array_equal(first.predict(frame_of(X)), second.predict(other))


def test_names_that_match_nothing_are_doubted_before_more_budget_is_advised():
    X, y = np.argwhere(np.ones((300, 3))), np.tile([1.0, 3.0, 5.0], 300)
    named = np.column_stack([X[:, 0].astype(str), np.array(DRINKS)[X[:, 1]]]).astype(object)
    options = {"unit_mode": 0, "shape": (300, 3), "row_names": (None, DRINKS)}
    model = build(rank=1, bounds=(1, 5), epsilon=50.0, **options)
    wrong = np.column_stack([named[:, 0], [drink.upper() for drink in named[:, 1]]])
    for entries in (wrong, named[:, ::-1]):
        # Noise hides it in one fit of a hundred.
        with unsafe_seeded_noise(0), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            clone(model).fit(entries, y)
        (doubt,) = (str(one.message) for one in told)
        assert "Hardly any value is of a row that counts" in doubt
    with pytest.warns(UserWarning, match="No entry has names of rows of the fit"):
        model.fit(named, y).fold_in([["me", "TEA"]], [5.0])


def test_wrong_names_of_a_context_and_wrong_modes_of_units_are_named():
    X, y = entries()
    fitted = build(**SLICED).fit(frame_of(X), y)
    with pytest.raises(ValueError, match=r"context\[1\] must be a row of that mode"):
        fitted.recommend(None, mode=2, context={1: "TEA"})
    for sizes in ({"row_names": SLICED["row_names"]}, {"shape": (4, 3, 4)}):
        with pytest.raises(ValueError, match=r"unit_mode must be an int in \[0, 2\]"):
            build(**{"shape": None, **sizes, "unit_mode": 3}).fit(frame_of(X), y)


@pytest.mark.parametrize("options", [NAMED, SLICED], ids=["entry", "slice"])
def test_names_that_are_no_rows_change_nothing(options):
    """They are left out of a fit, and predicted from the other modes, met by it or not."""
    X, y = entries()
    frame = frame_of(X)
    more = pd.concat([frame, frame[:6].assign(drink="absinthe"), frame[:5].assign(drink="gin")])
    models = []
    for table, values in ((frame, y), (more, np.append(y, np.ones(11)))):
        with unsafe_seeded_noise(0):
            models.append(build(**options).fit(table, values))
    unseen = frame[:6].assign(drink="absinthe")
    np.testing.assert_array_equal(*(model.predict(frame) for model in models))
    for strange in ("absinthe", "beer"):
        found = models[1].predict(unseen.assign(drink=strange))
        np.testing.assert_array_equal(found, models[0].predict(unseen))
    biases = models[0].biases_
    known = models[0].mean_ + biases[0][X[:6, 0]] + biases[2][X[:6, 2]]
    np.testing.assert_allclose(models[0].predict(unseen), np.clip(known, 1, 5))


def test_an_index_is_a_value():
    names = RowIndex.from_public(np.array([3, 1, 3]))
    assert names == RowIndex.from_public([3, 1])
    assert (len(names), names == RowIndex.from_public([1, 3])) == (2, False)
    assert names.encode([1, 2, 3.0, np.nan]).tolist() == [1, -1, 0, -1]
    large = RowIndex.from_public([2**53, 2**53 + 1, 2**63, -(2**70)])
    for values in ([2**53 + 1, -(2**70), 2**53 + 2, 2**63 + 1], [2**53 + 1, -(2**70), 1, "1"]):
        assert large.encode(values).tolist() == [1, 3, -1, -1]
    assert large.encode(np.array([2**53, 2**63], np.uint64)).tolist() == [0, 2]
    with pytest.raises(ValueError, match="double precision"):
        large.encode([float(2**53), 1.0])  # of which integer, nobody knows
    assert names.decode([[1, 0], [-1, 2]]).tolist() == [[1, 3], [None, None]]
    for index in (names, RowIndex.from_public(pd.Series(DRINKS))):
        assert pickle.loads(pickle.dumps(index)) == clone(index, safe=False) == index
        assert hash(index) == hash(clone(index, safe=False))
    assert "tea" not in repr(RowIndex.from_public(DRINKS))


def test_names_of_another_type_are_refused_and_missing_ones_are_no_row():
    names = RowIndex.from_public(["tea", "2026-01"])
    assert names.encode(["tea", None, np.nan, pd.NA, pd.NaT]).tolist() == [0, -1, -1, -1, -1]
    for other in (pd.Period("2026-01"), datetime.date(2026, 1, 1), b"tea"):
        for values in ([other, "tea"], pd.Series([other, "tea"]), pd.Series([other] * 2)):
            with pytest.raises(TypeError, match=f"with a {type(other).__name__}, which cannot be"):
                names.encode(values)


WRONG = {
    "no names": (lambda: RowIndex.from_public([]), "none at all"),
    "one name": (lambda: RowIndex.from_public("tea"), "list of names"),
    "mixed": (lambda: RowIndex.from_public(["tea", 1]), "int, str"),
    "floats": (lambda: RowIndex.from_public([1.5]), "float"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_indices_are_refused(name):
    make, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        make()
    with pytest.raises(TypeError, match="from_public"):
        RowIndex()


REFUSED = {
    "one list": ({"row_names": DRINKS[:1]}, "row_names"),
    "a table": ({"row_names": (None, pd.DataFrame({"a": DRINKS}), None)}, "RowIndex.from_public"),
    "mixed names": ({"row_names": (None, ["tea", 1], None)}, "row_names"),
    "other length": ({"shape": (4, 5, 4)}, "number of different names"),
    "fewer modes": ({"shape": (4, 3)}, "2 modes"),
    "uncounted persons": ({"shape": None}, "shape"),
    "more persons than counted": ({"shape": (3, 3, 4)}, "more ids"),
    "names of two modes": ({"row_names": (None, DRINKS), "shape": None}, "shape|elements"),
    "numbers of text": ({"row_names": (None, [1, 2, 3], None)}, "column of text"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_names_cost_nothing(name):
    options, message = REFUSED[name]
    X, y = entries()
    accountant = BudgetAccountant(100.0, 1e-6)
    # Text as a type of its own: pandas before 3 has objects instead, of which nothing is known.
    frame = frame_of(X).astype({"person": "string", "drink": "string"})
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        build(**{**SLICED, "accountant": accountant, **options}).fit(frame, y)
    assert accountant.entries == ()
    assert not any(secret in str(caught.value) for secret in ["eve7", "mate"])


def test_a_forecast_refuses_names_as_a_fit_does():
    with pytest.raises(ValueError, match="number of different names"):
        build(**{**SLICED, "shape": None}).forecast(60, (4, 5, 4))
    with pytest.raises(ValueError, match="each of the 2 modes"):
        build(**{**SLICED, "shape": None}).forecast(12, (4, 3))


def test_named_rows_do_not_bind_what_a_forecast_asks_of_other_sizes():
    """A paid fit without components says what would show some: more units, by names of few."""
    names = [f"p{number}" for number in range(40)], DRINKS
    model = build(rank=2, bounds=(1, 5), unit_mode=0, shape=(40, len(DRINKS)), row_names=names)
    forecast = model.forecast(80)
    assert not forecast.finds_components
    assert forecast.advice()


def test_text_without_names_is_told_how_to_give_them():
    X, y = entries()
    with pytest.raises(ValueError, match="row_names"):
        build().fit(frame_of(X)[["person", "drink"]], y)
    with pytest.raises(ValueError, match=r"row_names\[0\]=RowIndex.from_public") as caught:
        build(row_names=(None, DRINKS)).fit(frame_of(X)[["person", "drink"]], y)
    assert "eve7" not in str(caught.value)


@pytest.mark.parametrize("options", [NAMED, SLICED], ids=["entry", "slice"])
def test_partitions_have_names_and_ids_too(options):
    """A person's entries lie in several of them; a drink that is not listed is left out."""
    X, y = entries()
    frame = frame_of(X)
    frame.loc[3, "drink"] = "soup"
    table = dd.from_pandas(frame, npartitions=4, sort=False)
    values = dd.from_pandas(pd.Series(y), npartitions=4, sort=False)
    found = build(**options, rank=0, epsilon=INF).fit(table, values)
    known = build(**options, rank=0, epsilon=INF).fit(frame, y)
    np.testing.assert_allclose(found.predict(frame), known.predict(frame), rtol=1e-8)
    if "unit_mode" in options:
        budget = BudgetAccountant(1.0)
        with pytest.raises(ValueError, match="more ids in column 0"):
            build(**{**options, "shape": (3, 3, 4)}, accountant=budget).fit(table, values)
        assert not budget.entries


# The one value of the worst neighbours lies at a bound.
@pytest.mark.filterwarnings("ignore:The average that was found lies at the edge")
@pytest.mark.parametrize("options", [NAMED, SLICED], ids=["entry", "slice"])
def test_worst_neighbours_have_names(options):
    case = worst_case(build(epsilon=INF, **options))
    values = []
    for X, y in (case.data, case.neighbour):
        assert X.dtype == object
        values.append(case.statistic(build(**{**options, "epsilon": INF}).fit(X, y)))
    assert values[1] != values[0]


def test_a_missing_context_is_named_by_column_and_first_row():
    X, y = entries()
    model = build(**SLICED, rank=0, epsilon=INF).fit(frame_of(X)[["person", "drink", "day"]], y)
    with pytest.raises(ValueError, match=r"further mode to a row, as \{'day': 0\}; got None"):
        model.recommend(None, 2)
    with pytest.raises(ValueError, match=r"to a row, as \{'drink': 'tea'\}; got None"):
        model.recommend(None, 2, mode="day")
