"""Ranges of values that differ by the row of a mode."""

import copy

import numpy as np
import pandas as pd
import pytest
from internals import target_range
from small_completions import MODELS, SHAPE, X0, Y0, build

from sktensor_dp import RowIndex, unsafe_seeded_noise
from sktensor_dp.privacy.audit import worst_case

pytestmark = pytest.mark.filterwarnings(
    "ignore::sktensor_dp.NotEnoughDataWarning", "ignore::sktensor_dp.PrivacyLeakWarning"
)
all_models = pytest.mark.parametrize("model", MODELS)
SLICE = {"unit_mode": 0, "shape": SHAPE}
WAYS = {
    "input": {"perturbation": "input", "epsilon": 20.0},
    "sums": {"perturbation": "sufficient_statistics"},
    "gradient": {"perturbation": "gradient", "max_iter": 2},
    "output": {"perturbation": "output", "epsilon": 20.0},
    "slices": {**SLICE, "epsilon": 50.0},
    "slices, pure": {**SLICE, "delta": 0},
}
EVERYWHERE = np.argwhere(np.ones(SHAPE))


def ranges(mode, seed=0):
    """Low and high ends of the rows of a mode, of very different sizes."""
    rng = np.random.default_rng(seed)
    low = rng.uniform(-100, 100, SHAPE[mode])
    return np.column_stack([low, low + 10 ** rng.uniform(-3, 3, SHAPE[mode])])


def in_units(scaled, table, rows):
    low, high = table[rows].T
    return (low + high) / 2 + (high - low) / 2 * scaled


@all_models
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_a_fit_is_that_of_values_in_a_common_scale(way, mode, model):
    """All that a model says is what one says that was given values mapped beforehand."""
    table, rows = ranges(mode), X0[:, mode]
    scaled = np.clip(Y0 / 2, -1.5, 1.5)
    values = in_units(scaled, table, rows)
    options = {"shape": SHAPE, **WAYS[way]}
    with unsafe_seeded_noise(0):
        plain = build(model, **{**options, "bounds": (-1, 1)}).fit(X0, scaled)
    with unsafe_seeded_noise(0):
        fitted = build(model, **{**options, "bounds": {mode: table}}).fit(X0, values)
    for one, other in zip(fitted.biases_, plain.biases_, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7)
    # The noise is drawn on a grid: of values that differ by rounding it is the same to a step.
    everywhere = EVERYWHERE[:, mode]
    expected = in_units(plain.predict(EVERYWHERE), table, everywhere)
    np.testing.assert_allclose(
        (fitted.predict(EVERYWHERE) - expected) / np.ptp(table, axis=1)[everywhere], 0, atol=1e-6
    )
    np.testing.assert_array_equal(fitted.complete().ravel(), fitted.predict(EVERYWHERE))
    low, high = table[everywhere].T
    assert (fitted.predict(EVERYWHERE) >= low).all()
    assert (fitted.predict(EVERYWHERE) <= high).all()
    own, own_plain = fitted.fold_in(X0, values), plain.fold_in(X0, scaled)
    np.testing.assert_allclose(own.parameters, own_plain.parameters, rtol=1e-5, atol=1e-5)
    found = in_units(own_plain.predict(EVERYWHERE), table, everywhere)
    np.testing.assert_allclose(
        (own.predict(EVERYWHERE) - found) / np.ptp(table, axis=1)[everywhere], 0, atol=1e-5
    )


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("unit_mode", [None, 0])
def test_rows_are_ranked_and_shown_in_the_units_of_the_data(unit_mode, mode):
    table = ranges(mode)
    values = in_units(np.clip(Y0 / 2, -1, 1), table, X0[:, mode])
    options = {"shape": SHAPE, "unit_mode": unit_mode, "epsilon": 50.0}
    fitted = build(bounds={mode: table}, **options).fit(X0, values)
    own = fitted.fold_in(X0, values)
    for of, units in ((own, own.units), (np.arange(4), np.arange(4))):
        whole = fitted.predict_rows(of, 1, context={2: 3})
        X = np.array([[u, i, 3] for u in units for i in range(SHAPE[1])])
        said = own if of is own else fitted
        np.testing.assert_allclose(whole.ravel(), said.predict(X), rtol=1e-9, atol=1e-9)
        if of is not own and unit_mode == 0:
            continue  # units of which the model knows nothing
        best = fitted.recommend(of, 3, mode=1, context={2: 3})
        np.testing.assert_allclose(
            best.values, np.take_along_axis(whole, best.rows, axis=1), rtol=1e-9, atol=1e-9
        )
    seen = [[2, i, 3] for i in range(SHAPE[1] - 2)]
    mine = X0[:, 0] == 2
    for of in (fitted.fold_in(X0[mine], values[mine]), *[None] * (mode > 0)):
        one = fitted.recommend(of, 4, mode=1, context={2: 3}, exclude=[row for _, row, _ in seen])
        assert sorted(np.ravel(one.rows)[:2]) == [SHAPE[1] - 2, SHAPE[1] - 1]
        assert np.isnan(np.ravel(one.values)[2:]).all()


@all_models
def test_values_beyond_are_clamped_to_the_bounds_of_their_row(model):
    table = ranges(2)
    low, high = table[X0[:, 2]].T
    for way in ("input", "slices"):
        found = []
        for values in (np.where(Y0 > 0, high, low), np.where(Y0 > 0, 1e300, -1e300)):
            with unsafe_seeded_noise(0):
                fitted = build(model, **{**WAYS[way], "shape": SHAPE, "bounds": {2: table}})
                found.append(fitted.fit(X0, values).complete())
        np.testing.assert_array_equal(*found)


def test_a_forecast_is_in_units_of_the_data():
    table = np.array([[0.0, 1], [0, 10], [5, 6], [0, 1], [0, 1], [0, 1]])
    plain = build(bounds=(0, 1)).forecast(3000, SHAPE)
    found = build(bounds={2: table}).forecast(3000, SHAPE)
    # The root of the mean of squared widths.
    assert found.of_biases == pytest.approx(plain.of_biases * np.sqrt(105 / 6))
    model = build(bounds={2: table}, epsilon=30.0).fit(X0, Y0)
    assert 0 <= model.score(X0, model.predict(X0)) <= 1


GOOD = ranges(1)


def test_rows_without_bounds_are_refused_and_other_unknown_rows_are_not():
    fitted = build(bounds={1: GOOD}, shape=SHAPE).fit(X0, Y0)
    assert np.isfinite(fitted.predict([[90, 1, 2], [-1, 1, 90]])).all()
    for row in (-1, 8):
        with pytest.raises(ValueError, match="has no range"):
            fitted.predict([[0, row, 0]])
        with pytest.raises(ValueError, match=r"has no range|negative"):
            fitted.fold_in([[0, row, 0]], [1.0])


def test_names_of_rows_and_of_units_find_their_bounds():
    names = [f"sensor {i}" for i in range(8)]
    frame = pd.DataFrame(GOOD, index=names, columns=["low", "high"])
    values = in_units(np.clip(Y0 / 2, -1, 1), GOOD, X0[:, 1])
    named = pd.DataFrame({"u": X0[:, 0], "i": np.array(names)[X0[:, 1]], "t": X0[:, 2]})
    options = {"shape": SHAPE, "epsilon": 20.0}
    with unsafe_seeded_noise(0):
        plain = build(bounds={1: GOOD}, **options).fit(X0, values)
    with unsafe_seeded_noise(0):
        fitted = build(bounds={1: frame[::-1]}, row_names=(None, names, None), **options)
        fitted.fit(named, values)
    np.testing.assert_array_equal(fitted.predict(named), plain.predict(X0))
    # Of units by name, numbered anew by those who fold in.
    people = RowIndex.from_public([f"person {i}" for i in range(9)])
    table, options = ranges(0), {**SLICE, "epsilon": 50.0}
    values = in_units(np.clip(Y0 / 2, -1, 1), table, X0[:, 0])
    ids = X0.astype(object)
    ids[:, 0] = people.decode(X0[:, 0])
    some = X0[:, 0] % 2 == 1
    with unsafe_seeded_noise(0):
        plain = build(bounds={0: table}, **options).fit(X0, values)
    with unsafe_seeded_noise(0):
        fitted = build(bounds={0: table}, row_names=(people, None, None), **options)
        fitted.fit(ids, values)
    own, own_plain = fitted.fold_in(ids[some], values[some]), plain.fold_in(X0[some], values[some])
    np.testing.assert_allclose(own.predict(ids[some]), own_plain.predict(X0[some]), rtol=1e-12)
    nameless = build(bounds={0: table}, row_names=(None, list(range(8)), None), **options)
    with pytest.raises(ValueError, match="by their names"):
        nameless.fit(ids, values)


def test_a_table_of_bounds_is_left_alone():
    given = {1: GOOD.copy()}
    model = build(bounds=given, shape=SHAPE)
    before = copy.deepcopy(given)
    model.fit(X0, Y0)
    assert model.bounds is given
    np.testing.assert_array_equal(given[1], before[1])


def test_the_audit_and_scores_know_the_ends():
    model = build(bounds={1: GOOD}, shape=SHAPE)
    assert target_range(model) == (GOOD[:, 0].min(), GOOD[:, 1].max())
    case = worst_case(model)
    (X, y), (_, changed) = case.data, case.neighbour
    assert (y[0], changed[0]) == tuple(GOOD[0])
    assert case.statistic(model.fit(X, y)) <= GOOD[0, 1]
    slices = build(bounds={1: GOOD}, **SLICE)
    case = worst_case(slices)
    (X, y), (_, changed) = case.data, case.neighbour
    np.testing.assert_array_equal(y[:2], [GOOD[0, 1], GOOD[1, 0]])
    np.testing.assert_array_equal(changed[:2], [GOOD[0, 0], GOOD[1, 1]])
    assert np.isfinite(case.statistic(slices.fit(X, y)))
