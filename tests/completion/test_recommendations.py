"""The best rows of a mode for units of a fit and for those folded in, and rows alike."""

import numpy as np
import pandas as pd
import pytest
from internals import multilinear_of, shared_model
from scipy.stats import norm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from small_completions import INF, MODELS, SHAPE, X0, Y0, build, table

from sktensor_dp import PrivateCPCompletion, RowIndex
from sktensor_dp.completion.model import SharedModel
from sktensor_dp.completion.recommend import log_choices
from sktensor_dp.tensor.shared_parameters import SharedEffects

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
all_models = pytest.mark.parametrize("model", MODELS)
SHAPES = pytest.mark.parametrize("shape", [(30, 8), (30, 8, 6)], ids=str)


def fitted_on(shape, model, unit_mode, **options):
    X, y, _ = table(shape)
    options = {"bounds": (-2, 2), "shape": shape, "epsilon": INF, "unit_mode": unit_mode, **options}
    return build(model, **options).fit(X, y), X, y


def context_of(shape):
    return {2: 4} if len(shape) == 3 else None


@pytest.mark.filterwarnings("ignore:Values of one person differ by less")  # none may be clamped
@all_models
@SHAPES
@pytest.mark.parametrize("unit_mode", [None, 0])
def test_recommended_are_likely_to_be_chosen_and_liked(unit_mode, shape, model):
    fitted, X, y = fitted_on(shape, model, unit_mode, bounds=(-9, 9))
    own, context = fitted.fold_in(X, y), context_of(shape)
    seen = np.zeros(shape[:2], dtype=bool)
    seen[X[:, 0], X[:, 1]] = True
    seen[:, :3] = False
    exclude = X[X[:, 1] >= 3]
    for of, person in ((own, own), (np.arange(shape[0]), fitted)):
        grid = np.argwhere(np.ones(shape[:2]))
        cells = np.insert(grid, 2, 4, axis=1) if context else grid
        expected = person.predict(cells).reshape(shape[:2])
        # Products of other shapes round differently.
        np.testing.assert_allclose(fitted.predict_rows(of, context=context), expected, atol=1e-12)
        if of is not own and unit_mode == 0:
            continue  # units of which the model knows nothing
        # By numbers of entries, and by tastes that say of them what biases do.
        shared = shared_model(fitted)
        rows = shared.effects[0]
        log_n, weights = 2 * rows.popularity, np.exp(2 * rows.popularity)
        about = rows.means - np.average(rows.means, weights=weights)
        slope = weights @ (about * log_n) / (weights @ (about**2 + rows.variances))
        above = expected - np.average(expected, axis=1, weights=weights)[:, None]
        liking = norm.pdf(0) / norm.cdf(0) / np.sqrt(shared.noise_variance)
        score = log_n - max(slope, 0) * rows.means + max(slope, liking) * above
        found = fitted.recommend(of, 4, exclude=exclude, context=context)
        for place in range(shape[0]):
            best = found.rows[place][found.rows[place] >= 0]
            left = np.where(seen[place], -np.inf, score[place])
            assert not seen[place, best].any()
            np.testing.assert_allclose(left[best], -np.sort(-left)[: len(best)], atol=1e-9)
            assert len(best) == min(4, np.isfinite(left).sum())
            np.testing.assert_allclose(found.values[place][: len(best)], expected[place, best])
            assert np.isnan(found.values[place][len(best) :]).all()


@pytest.mark.parametrize("unit_mode", [None, 0])
def test_what_people_choose_is_recommended(unit_mode):
    """Films that many choose rather than those that few gave five stars; by stars among equals."""
    rng = np.random.default_rng(0)
    n, films = 2000, 40
    often, stars = np.repeat([0.6, 0.03], films // 2), np.tile([-0.5, 0.0, 0.5, 1.0], films // 4)
    X = np.argwhere(rng.random((n, films)) < often)
    y = 3.0 + stars[X[:, 1]] + rng.standard_normal(len(X))
    y += np.where(X[:, 1] < films // 2, 0.0, 0.5)
    model = PrivateCPCompletion(
        0, bounds=(-1, 8), shape=(n, films), epsilon=8.0, unit_mode=unit_mode
    ).fit(X, y)
    (rows,) = model.recommend(None, films).rows
    assert set(rows[: films // 2]) == set(range(films // 2))
    assert set(rows[: films // 8]) == set(range(3, films // 2, 4))
    rated = model.recommend(None, films, by="value")
    assert (np.diff(rated.values) <= 0).all()
    assert rated.rows[0, 0] >= films // 2


def test_popularity_decides_where_noise_hides_biases():
    """Biases that are a line over log numbers alone say nothing that these do not say."""
    log_n = np.linspace(-3.0, 3.0, 20)
    values = 0.3 * np.random.default_rng(0).standard_normal((50, 20)) + 0.05 * log_n
    agreement = []
    for variance in (0.0, 0.3):
        rows = SharedEffects(0.05 * log_n, np.full(20, variance), log_n / 2, variance)
        model = SharedModel(3.0, 1.0, 0, [rows], None, 0.2, 0.0)
        scores = log_choices(model, 1, values)
        agreement.append(np.mean([np.corrcoef(score, log_n)[0, 1] for score in scores]))
    assert agreement[0] < 0.6
    assert agreement[1] > 0.95


def test_one_unit_is_the_row_of_many():
    fitted, X, _ = fitted_on((30, 8), PrivateCPCompletion, None)
    many = fitted.recommend([3, 7, 3], 5, exclude=X)
    for place, unit in enumerate((3, 7, 3)):
        one = fitted.recommend(unit, 5, exclude=X)
        np.testing.assert_array_equal(one.rows, many.rows[[place]])
        np.testing.assert_array_equal(one.values, many.values[[place]])
    assert fitted.recommend([], 5).rows.shape == (0, 5)
    assert fitted.recommend(None, 5).rows.shape == fitted.similar_rows(1, 2, 5).rows.shape == (1, 5)
    np.testing.assert_array_equal(fitted.predict_rows([3, 7])[:1], fitted.predict_rows(3))


def test_equal_rows_are_in_their_order():
    """Beyond the bounds, too, rows are told apart; equal ones come as they are numbered."""
    X, y = np.argwhere(np.ones((20, 6))), np.tile([0.0, 1.0, 1.0, 0.0, 5.0, 1.0], 20)
    model = PrivateCPCompletion(0, bounds=(0, 5), epsilon=INF).fit(X, y)
    model.bounds_ = (0.0, 0.5)
    found = model.recommend(0, 6)
    assert found.rows.tolist() == [[4, 1, 2, 5, 0, 3]]
    assert found.values.max() == 0.5


@pytest.fixture
def named():
    """A model of six films, the first the best, and of twenty persons that it knows nothing of."""
    names = RowIndex.from_public([f"film {i}" for i in range(6)])
    X = np.argwhere(np.ones((20, 6)))
    model = PrivateCPCompletion(
        0, bounds=(0, 5), epsilon=INF, unit_mode=0, shape=(20, 6), row_names=(None, names)
    )
    films = names.decode(X[:, 1])
    return model.fit(np.column_stack([X[:, 0].astype("U2").astype(object), films]), 5.0 - X[:, 1])


def two_entries():
    return PrivateCPCompletion(
        0, bounds=(0, 5), epsilon=9.0, perturbation="sufficient_statistics"
    ).fit([[0, 0], [0, 1], [1, 0], [1, 1]] * 250, [1.0, 5.0] * 500, repeated="distinct")


def test_a_list_of_rows_is_excluded_for_one_unit(named):
    seen = pd.Series(["film 0", "film 2"])
    one, two = (named.fold_in([[who, "film 0"] for who in persons], [5.0] * len(persons))
                for persons in ("x", "xy"))  # fmt: skip
    for of in (one, None):
        found = named.recommend(of, 2, exclude=seen).rows
        assert np.ravel(found).tolist() == ["film 1", "film 3"]
    with pytest.raises(ValueError, match="a list of rows, which is for one unit"):
        named.recommend(two, 2, exclude=seen)
    with pytest.raises(ValueError, match=r"exclude .* from 0 to 5; 1 of 2 is unknown"):
        named.recommend(None, 2, exclude=["film 0", "no film"])
    entries = two_entries()
    assert entries.recommend(0, exclude=[1]).rows.tolist() == [[0, -1]]


def test_names_that_match_nothing_are_told(named):
    own = named.fold_in([["x", "film 0"]], [5.0])
    for exclude in ([["y", "film 0"]], [["x", "none"]]):
        with pytest.warns(UserWarning, match="exclude has no row"):
            assert np.ravel(named.recommend(own, 1, exclude=exclude).rows).tolist() == ["film 0"]
    with pytest.warns(UserWarning, match="No row of X is of a unit that was folded in"):
        own.predict([["y", "film 0"]])
    own.predict([["y", "film 0"], ["x", "film 1"]])
    named.recommend(own, 1, exclude=np.zeros((0, 2), dtype=object))
    # A score is released: it warns of nothing.
    named._predict_by_others(np.array([["x", "film 0"], ["y", "film 1"]], dtype=object), [5.0, 4.0])


@pytest.mark.parametrize("of", ["x", ["x"], 7])
def test_nobody_unknown_is_recommended_what_everybody_is(named, of):
    with pytest.raises(ValueError, match="knows nothing of this unit: fold in its own entries"):
        named.recommend(of)
    entries = two_entries()
    for place in (2, -1, [0, 2]):
        with pytest.raises(ValueError, match="knows nothing of this unit"):
            entries.recommend(place)
    assert entries.recommend(None).rows.tolist() == [[1, 0]]


@all_models
@pytest.mark.parametrize("unit_mode", [None, 0])
def test_rows_alike_are_those_of_one_kind(unit_mode, model):
    """Rows 0, 3, 6 and so on have the same taste, as have the others by their remainder."""
    rng = np.random.default_rng(0)
    taste, kinds = rng.standard_normal((300, 2)), np.array([[1.0, 0.2], [-0.3, 1.0], [-1.0, -0.9]])
    X = np.argwhere(np.ones((300, 12)))
    y = (taste[X[:, 0]] * kinds[X[:, 1] % 3]).sum(axis=1) + 0.2 * rng.standard_normal(len(X))
    options = {"bounds": (-3, 3), "shape": (300, 12), "unit_mode": unit_mode}
    options["epsilon"] = INF if unit_mode == 0 else 500.0
    fitted = build(model, **options).fit(X, y)
    found = fitted.similar_rows(1, np.arange(12), 3)
    assert (found.rows % 3 == np.arange(12)[:, None] % 3).all()
    assert ((found.values > 0.7) & (found.values <= 1)).all()
    one = fitted.similar_rows(1, 5, 3)
    np.testing.assert_array_equal(one.rows, found.rows[[5]])
    if unit_mode == 0:
        with pytest.raises(ValueError, match="units"):
            fitted.similar_rows(0, 1)


def test_similarity_is_the_cosine_of_slices():
    for model in MODELS:
        fitted, _, _ = fitted_on(SHAPE, model, None)
        whole = multilinear_of(fitted, np.argwhere(np.ones(SHAPE))).reshape(SHAPE)
        for mode in range(3):
            slices = np.moveaxis(whole, mode, 0).reshape(SHAPE[mode], -1)
            slices = slices / np.linalg.norm(slices, axis=1, keepdims=True)
            rows, values = (of_one[0] for of_one in fitted.similar_rows(mode, 2, SHAPE[mode]))
            expected = slices @ slices[2]
            # Cosines of vectors of length 1, in other orders of the same sums.
            np.testing.assert_allclose(values[:-1], expected[rows[:-1]], atol=1e-9)
            assert rows[-1] == -1
            assert 2 not in rows


def test_without_components_no_rows_are_alike():
    for unit_mode in (None, 0):
        fitted, _, _ = fitted_on((30, 8), PrivateCPCompletion, unit_mode, rank=0)
        with pytest.raises(ValueError, match="No components"):
            fitted.similar_rows(1, 0)


WRONG = [
    (lambda one: one.recommend(None, by="stars"), "by must be 'choice' or 'value', got 'stars'"),
    (lambda m: m.recommend(0, 0), "n must"),
    (lambda m: m.recommend(0, 2, mode=5, context={2: 0}), "mode"),
    (lambda m: m.recommend(0, 2, mode="film"), "columns"),
    (lambda m: m.recommend(0, 2, mode=0, context={2: 0}), "mode"),
    (lambda m: m.recommend(0, 2), "context"),
    (lambda m: m.recommend(0, 2, context={1: 0, 2: 0}), "context"),
    (lambda m: m.recommend("ann", 2, context={2: 0}), "number of a row"),
    (lambda m: m.recommend(0, 2, context={2: 0.5}), "context"),
    (
        lambda m: m.recommend(0, 2, context={2: 0}, exclude=[[0, 1]]),
        "exclude must .* 3 columns",
    ),
    (lambda m: m.similar_rows(1, 99), "row must be of mode 1"),
    (lambda m: m.similar_rows(1, "tea"), "number of a row"),
    (lambda m: m.similar_rows(3, 1), "mode"),
]


def test_what_is_wrong_is_named():
    fitted = build(epsilon=INF).fit(X0, Y0)
    for call, message in WRONG:
        with pytest.raises(ValueError, match=message):
            call(fitted)


def test_fold_in_behind_an_encoder():
    """The steps before the model read what is folded in, and what is predicted."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice(["ann", "bob", "eve"], 900), rng.choice(["tea", "mate"], 900)])
    y = 3.0 + (X[:, 0] == "ann") - (X[:, 1] == "tea")
    kinds = [["ann", "bob", "eve"], ["mate", "tea"]]
    distinct = {"privatecpcompletion__repeated": "distinct"}
    pipe = make_pipeline(
        OrdinalEncoder(categories=kinds, dtype=int), PrivateCPCompletion(bounds=(1, 5), epsilon=INF)
    ).fit(X, y, **distinct)
    own = pipe[-1].fold_in(pipe[:-1].transform(X), y)
    assert np.abs(own.predict(pipe[:-1].transform(X)) - y).max() < 0.3
    named = PrivateCPCompletion(bounds=(1, 5), epsilon=INF, row_names=kinds)
    best = make_pipeline(named).fit(X, y, **distinct)[-1].recommend(["ann", "eve"], 1)
    assert best.rows.tolist() == [["mate"], ["mate"]]


def test_rows_by_number_beside_named_ones_have_their_own_values():
    shape = (30, 8)
    X, y, _ = table(shape)
    names = [f"f{i}" for i in range(shape[1])]
    plain = PrivateCPCompletion(bounds=(-2, 2), epsilon=INF, shape=shape).fit(X, y)
    entries = pd.DataFrame({"user": X[:, 0], "film": [names[i] for i in X[:, 1]]})
    named = PrivateCPCompletion(bounds=(-2, 2), epsilon=INF, shape=shape, row_names=(None, names))
    rows = named.fit(entries, y).predict_rows(3)
    np.testing.assert_allclose(rows, plain.predict_rows(3))
    assert not np.allclose(rows, named.predict_rows(None))
    assert named.recommend(3, 2).rows.shape == (1, 2)
