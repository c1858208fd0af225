"""Public features of rows: what they are for, what is refused, what is kept."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from small_completions import MODELS, PERTURBATIONS, SHAPE, X0, Y0, build

from sktensor_dp import PrivateCPCompletion, unsafe_seeded_noise

pytestmark = pytest.mark.filterwarnings(
    "ignore::sktensor_dp.NotEnoughDataWarning", "ignore::sktensor_dp.PrivacyLeakWarning"
)
all_models = pytest.mark.parametrize("model", MODELS)
N, M = 500, 200
FEATURES = np.random.default_rng(7).standard_normal((SHAPE[1], 2))


def ratings(seed, told=0.9):
    """Items whose biases are mostly linear in four features; one item in ten is never rated."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((M, 4)) * [1, 100, 1e-3, 1]
    biases = np.sqrt(told) * (features / features.std(axis=0)) @ np.full(4, 0.5)
    biases += np.sqrt(1 - told) * rng.standard_normal(M)
    X = np.argwhere(rng.random((N, M)) < 0.15)
    y = np.clip(biases[X[:, 1]] + 0.5 * rng.standard_normal(len(X)), -4, 4)
    known = X[:, 1] % 10 > 0
    return X[known], y[known], features, biases


def error(fitted, biases):
    """Of what is predicted of all items, but for their mean, over that of predicting none."""
    found = fitted.biases_[1]
    return np.var(found - biases) / np.var(biases)


@all_models
@pytest.mark.parametrize(("unit_mode", "epsilon"), [(None, 0.6), (0, 4.0)], ids=["entry", "slice"])
def test_features_that_tell_are_used_and_others_do_no_harm(unit_mode, epsilon, model, seed):
    X, y, features, biases = ratings(seed)
    options = {"epsilon": epsilon, "unit_mode": unit_mode, "shape": (N, M), "rank": 1}
    others = np.random.default_rng(seed + 1000).standard_normal((M, 4))
    found = []
    for table in (None, features, others):
        with unsafe_seeded_noise(seed):
            given = None if table is None else {1: table}
            found.append(error(build(model, row_features=given, **options).fit(X, y), biases))
    plain, told, untold = found
    # Features tell nine tenths, and the plain fit has half of all at most: that of items
    # without ratings, a tenth, and what noise hides. Where slices are many standard deviations
    # off in their level they gain least, a sixth.
    assert told < 0.95 * plain
    # Four coefficients are learnt of two hundred items: of noise they take two parts in a
    # hundred, give or take as much, where it is as large as what is sought.
    assert untold < 1.15 * plain


@pytest.mark.parametrize("perturbation", [*PERTURBATIONS, "slice"])
def test_rows_without_ratings_get_what_their_features_say(perturbation, seed):
    X, y, features, biases = ratings(seed, told=1.0)
    how = {"unit_mode": 0} if perturbation == "slice" else {"perturbation": perturbation}
    if perturbation == "gradient":
        how["max_iter"] = 4
    model = build(epsilon=200.0, shape=(N, M), rank=1, row_features={1: features}, **how)
    with unsafe_seeded_noise(seed):
        fitted = model.fit(X, y)
    never = np.arange(0, M, 10)
    places = np.column_stack([np.zeros_like(never), never])
    predicted = fitted.predict(places)
    truth = np.clip(biases[never], -4, 4)
    # All of it is told: what is left are far rows, which are drawn in, and clipping.
    assert np.corrcoef(predicted, truth)[0, 1] > 0.9
    own = fitted.fold_in([[0, 1]], [0.0]).predict(places)
    assert np.corrcoef(own, truth)[0, 1] > 0.9
    with unsafe_seeded_noise(seed):
        plain = clone(model).set_params(row_features=None).fit(X, y)
    # Without them it is the mean, and for slices noise: the error is all of the truth's spread.
    assert np.mean((predicted - truth) ** 2) < 0.5 * np.mean((plain.predict(places) - truth) ** 2)


HOSTILE = {
    "largest": FEATURES * 1e307,
    "least": FEATURES * 1e-320,
    "constant": np.full((8, 3), 1e300),
    "nearly constant": 1e15 + np.arange(8.0)[:, None] / 8,
    "equal columns": np.repeat(FEATURES[:, :1], 40, axis=1),
    "flags": FEATURES > 0,
    "integers": np.arange(16).reshape(8, 2),
    "one far row": np.eye(8)[:, :1] * 1e200,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("how", [*PERTURBATIONS, "slice"])
def test_numbers_of_any_size_give_finite_models(how, name):
    options = {"perturbation": how, "epsilon": 5.0}
    if how == "slice":
        options = {"unit_mode": 0, "epsilon": 50.0}
    fitted = build(row_features={1: HOSTILE[name]}, shape=SHAPE, **options).fit(X0, Y0)
    assert np.isfinite(fitted.complete()).all()
    constant = build(row_features={1: np.ones((8, 1))}, shape=SHAPE, **options)
    if name == "constant":
        with unsafe_seeded_noise(0):
            first = constant.fit(X0, Y0).complete()
        with unsafe_seeded_noise(0):
            second = clone(constant).set_params(row_features=None).fit(X0, Y0).complete()
        np.testing.assert_array_equal(first, second)


def test_frames_are_read_by_the_names_of_rows(tmp_path):
    names = [f"item {i}" for i in range(8)]
    frame = pd.DataFrame(FEATURES, index=names, columns=["a", "b"])
    shuffled = pd.concat([frame, pd.DataFrame([[1e9, 0]], ["other"], ["a", "b"])]).sample(
        frac=1, random_state=0
    )
    table = pd.DataFrame({"u": X0[:, 0], "i": np.array(names)[X0[:, 1]], "t": X0[:, 2]})
    options = {"row_names": (None, names, None), "shape": SHAPE, "epsilon": 2.0}
    found = []
    for given in (shuffled, FEATURES):
        with unsafe_seeded_noise(0):
            fitted = build(row_features={1: given}, **options).fit(table, Y0)
        found.append(fitted.predict(table))
    np.testing.assert_array_equal(*found)
    with pytest.raises(ValueError, match="lacks 1 of the 8 names"):
        build(row_features={1: shuffled.drop("item 3")}, **options).fit(table, Y0)
    with pytest.raises(ValueError, match="holds a name twice"):
        build(row_features={1: pd.concat([frame, frame[:1]])}, **options).fit(table, Y0)
    fitted = build(row_features={1: shuffled}, **options).fit(table, Y0)
    fitted.save(tmp_path / "model")
    loaded = PrivateCPCompletion.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.row_features[1], FEATURES)
    np.testing.assert_array_equal(loaded.predict(table), fitted.predict(table))
