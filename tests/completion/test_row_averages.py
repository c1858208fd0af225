"""Averages over rows that have something in common, as all items of one shop."""

import warnings

import numpy as np
import pandas as pd
import pytest
from internals import shared_model
from scipy.stats import truncnorm
from small_completions import INF, build

from sktensor_dp import (
    NotEnoughDataWarning,
    PrivateCPCompletion,
    RowIndex,
    unsafe_seeded_noise,
)
from sktensor_dp.completion import shared_biases
from sktensor_dp.completion.row_averages import normal_within
from sktensor_dp.tensor.shared_parameters import SharedEffects

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning"),
]


def test_an_average_is_the_posterior_mean_about_any_mean_of_its_own(seed):
    """As by normal distributions of single rows with a common mean of large variance."""
    rng, n, prior = np.random.default_rng(seed), 7, 0.3
    prior_means, noise = rng.standard_normal(n), rng.uniform(0.01, 3.0, n)
    seen = prior_means + rng.standard_normal(n)
    drawn = noise / (prior + noise)
    means = seen + drawn * (prior_means - seen)
    effects = SharedEffects(means, prior * drawn, np.zeros(n), prior, prior_means, drawn)
    rows = np.array([1, 2, 4, 5])
    covariance = prior * np.eye(4) + 1e4
    gain = covariance @ np.linalg.inv(covariance + np.diag(noise[rows]))
    expected = np.mean(prior_means[rows] + gain @ (seen - prior_means)[rows])
    variance = np.mean(covariance - gain @ covariance)
    average, of_average, common = effects.average(rows)
    assert average == pytest.approx(expected, abs=1e-3)
    assert of_average == pytest.approx(variance, rel=1e-3)
    assert common == pytest.approx(0)


@pytest.mark.parametrize("epsilon", [pytest.param(1.0, marks=pytest.mark.nightly), 4.0])
def test_averages_of_shops_are_not_drawn_together_and_err_as_stated(epsilon, seed):
    """Articles and shops joined in one mode, as the command has them, shops by chance."""
    rng, n, shape = np.random.default_rng(seed), 3000, (60, 5)
    shops = np.linspace(-0.15, 0.15, 5)
    scores, plain = [], []
    for fit in range(6):
        articles = 0.4 * rng.standard_normal(60)
        articles -= articles.mean()
        persons = np.repeat(np.arange(n), 12)
        columns = rng.integers(0, 60, len(persons)), rng.integers(0, 5, len(persons))
        values = 0.5 * rng.standard_normal(n)[persons] + articles[columns[0]] + shops[columns[1]]
        y = np.clip(3 + values + 0.7 * rng.standard_normal(len(persons)), 1, 5)
        X = np.column_stack([persons, np.ravel_multi_index(columns, shape)])
        model = PrivateCPCompletion(0, bounds=(1, 5), shape=(n, 300), unit_mode=0, epsilon=epsilon)
        with unsafe_seeded_noise(100 * seed + fit):
            model.fit(X, y)
        rows = np.arange(300).reshape(shape).T
        found = np.array(
            [model.average_rows(rows[k], np.delete(rows, k, 0).ravel()) for k in range(5)]
        )
        true = 1.25 * shops  # less those of the four others
        scores.append((found[:, 0] - true) / found[:, 1])
        biases, errors = (
            np.array(a[1]).reshape(shape) for a in (model.biases_, model.bias_errors_)
        )
        plain.append(
            ((biases.mean(axis=0) * 1.25 - true) / np.sqrt((errors**2).sum(axis=0)) * 60)[[0, 4]]
        )
    # What rows may have in common counts in full: errors may be several times too large.
    assert 0.2 < np.sqrt(np.mean(np.square(scores))) < 1.4
    # Those at both ends are drawn to the mean, which single rows' errors do not say.
    assert np.sqrt(np.mean(np.square(plain))) > 1


def test_changes_within_wards_are_known_where_nobody_compares_wards(seed):
    """Persons stay in one of three wards; rows are ward, question and before or after."""
    rng, n, shape = np.random.default_rng(seed), 2000, (3, 3, 2)
    true = np.array([-0.8, 0.0, 0.8])[:, None, None] * [0.3, 0.7] + np.zeros(shape)
    rows, scores, stated = np.arange(18).reshape(shape), [], []
    for fit in range(8):
        wards = rng.choice(3, n, p=[0.4, 0.35, 0.25])
        seen = rng.random((n, 3, 2)) < 0.9
        y = 5 + true[wards] + rng.standard_normal((n, 1, 1)) + rng.standard_normal(seen.shape)
        person, question, period = np.nonzero(seen)
        X = np.column_stack([person, rows[wards[person], question, period]])
        model = PrivateCPCompletion(0, bounds=(0, 10), shape=(n, 18), unit_mode=0, epsilon=4)
        with unsafe_seeded_noise(100 * seed + fit):
            model.fit(X, np.clip(y[seen], 0, 10))
        changes = [model.average_rows(r[:, 1], less=r[:, 0]) for r in rows]
        wards = [model.average_rows(rows[k].ravel(), less=rows[k - 1].ravel()) for k in range(3)]
        found = np.array([*changes, *wards])
        means = true.mean(axis=(1, 2))
        expected = [*np.diff(true.mean(axis=1))[:, 0], *(means - np.roll(means, 1))]
        scores.append((found[:, 0] - expected) / found[:, 1])
        stated.append(found[:, 1])
        unit, covariances = model.bias_covariances_
        assert unit is None
        assert np.linalg.eigvalsh(covariances).min() > -1e-9
        one = covariances[rows[0, 0, 0], rows[0, 0, 0]] + covariances[rows[0, 0, 1], rows[0, 0, 1]]
        one -= 2 * covariances[rows[0, 0, 0], rows[0, 0, 1]]
        assert np.sqrt(one) < np.hypot(*model.bias_errors_[1][rows[0, 0]]) / 3
    of_changes, of_wards = np.sqrt(np.mean(np.square(scores), axis=0)).reshape(2, 3)
    assert (of_changes < 1.6).all()
    assert (of_wards < 1.6).all()
    errors = np.mean(stated, axis=0).reshape(2, 3)
    assert errors[0].max() < 0.3
    assert errors[1].min() > 1


def test_changes_within_wards_err_less_with_more_persons(seed):
    """Few tell how they compare rows; wards have 30 to 8 % of persons."""
    shares, rows = [0.3, 0.25, 0.2, 0.17, 0.08], np.arange(60).reshape(5, 6, 2)
    true, errors = np.linspace(-0.9, 0.2, 5), []
    for n in (2000, 6000, 12000):
        rng, scores, stated = np.random.default_rng(seed), [], []
        for fit in range(3):
            wards = rng.choice(5, n, p=shares)
            change = true[wards, None, None] * np.arange(2)
            y = change + 0.2 * wards[:, None, None] + rng.standard_normal((n, 1, 1))
            y = np.clip(2.5 + y + 0.7 * rng.standard_normal((n, 6, 2)), -2, 7)
            person, question, period = np.nonzero(rng.random(y.shape) < 0.85)
            X = np.column_stack([person, rows[wards[person], question, period]])
            model = PrivateCPCompletion(0, bounds=(-2, 7), shape=(n, 60), unit_mode=0, epsilon=2)
            with unsafe_seeded_noise(10 * seed + fit):
                model.fit(X, y[X[:, 0], question, period])
            found = np.array([model.average_rows(r[:, 1], less=r[:, 0]) for r in rows])
            scores.append((found[:, 0] - true) / found[:, 1])
            stated.append(found[:, 1])
        assert np.sqrt(np.mean(np.square(scores))) < 1.4
        errors.append(np.mean(stated, axis=0))
    before, after, last = errors
    assert (after < before).all()
    assert (last < after).all()


@pytest.mark.parametrize(
    ("n", "n_rows", "n_wards", "is_known"),
    [(2000, 24, 3, True), (1500, 24, 3, False), (1500, 24, 1, True)],
)
def test_differences_of_wards_are_measured_or_a_warning_says_not(
    n, n_rows, n_wards, is_known, seed
):
    """Persons have most rows of their ward; first sums say if noise hides how they compare."""
    rng, each = np.random.default_rng(seed), n_rows // n_wards
    wards = rng.integers(0, n_wards, n)
    seen = rng.random((n, each)) < 0.8
    person, row = np.nonzero(seen)
    X = np.column_stack([person, wards[person] * each + row])
    y = 3 + (1 - wards[person]) + np.linspace(-1, 1, each)[row] + rng.standard_normal(n)[person]
    y = np.clip(y + 0.7 * rng.standard_normal(len(X)), 0, 6)
    model = PrivateCPCompletion(0, bounds=(0, 6), shape=(n, n_rows), unit_mode=0, epsilon=1)
    with unsafe_seeded_noise(seed), warnings.catch_warnings(record=True, action="always") as said:
        names = [row.name for row in model.fit(X, y).privacy_report_.rows]
    is_released = is_known and n_wards > 1
    assert names.count("row_concurrences") == is_released
    # What tells nothing pays for a round more.
    assert names.count("shared_row_sums") == 7 - is_released
    assert (model.bias_covariances_[1] is not None) == is_known
    assert any("may come out turned round" in str(one.message) for one in said) != is_known
    if n_wards > 1:
        found, error = model.average_rows(range(each), less=range(each, 2 * each))
        assert (abs(found - 1) < 3 * error) == is_known


def test_how_few_of_many_persons_compare_rows_is_not_read_out_of_noise(seed):
    """Of 20,000 persons 300 have values: in their sums noise passes for who compares what."""
    rng, n = np.random.default_rng(seed), 20_000
    persons = np.repeat(rng.choice(n, 300, replace=False), 6)
    X = np.unique(np.column_stack([persons, rng.integers(0, 40, len(persons))]), axis=0)
    true = rng.permutation(np.linspace(-1, 1, 40))
    y = 3 + true[X[:, 1]] + 0.5 * rng.standard_normal(n)[X[:, 0]]
    y = np.clip(y + 0.5 * rng.standard_normal(len(X)), 0, 6)
    model = PrivateCPCompletion(0, bounds=(0, 6), shape=(n, 40), unit_mode=0, epsilon=4)
    with unsafe_seeded_noise(seed):
        biases = model.fit(X, y).biases_[1]
    # Read out of noise, they are drawn together to less than half.
    assert np.polyfit(true, biases, 1)[0] > 0.6


def test_titles_that_are_on_for_few_months_do_not_take_the_change_of_months(seed):
    """Each of 40 titles is on for 3 of 12 months, and none is better for being later."""
    rng, n = np.random.default_rng(seed), 5000
    persons, months = np.repeat(np.arange(n), 8), rng.integers(0, 12, 8 * n)
    starts = rng.permutation(np.arange(40) % 10)
    titles = np.empty_like(months)
    for month in range(12):
        is_on = np.flatnonzero((starts <= month) & (month < starts + 3))
        titles[months == month] = rng.choice(is_on, np.sum(months == month))
    X = np.unique(np.column_stack([persons, titles, months]), axis=0)
    change = np.linspace(-0.5, 0.5, 12)
    y = 5 + (0.3 * rng.standard_normal(40))[X[:, 1]] + change[X[:, 2]]
    y += 0.7 * rng.standard_normal(n)[X[:, 0]] + 0.8 * rng.standard_normal(len(X))
    model = PrivateCPCompletion(0, bounds=(0, 10), shape=(n, 40, 12), unit_mode=0, epsilon=4)
    with unsafe_seeded_noise(seed):
        found, _ = model.fit(X, np.clip(y, 0, 10)).average_rows([10, 11], less=[0, 1], mode=2)
    assert found > 0.6 * (change[-2:].mean() - change[:2].mean())


def test_rows_are_given_by_name_and_averages_outlast_a_file(tmp_path):
    rng, names = np.random.default_rng(0), [f"{item} {shop}" for item in "abc" for shop in "AB"]
    X = np.argwhere(rng.random((300, 6)) < 0.6)
    y = 3 + 0.5 * (X[:, 1] % 2) + 0.1 * rng.standard_normal(len(X))
    index = (None, RowIndex.from_public(names))
    options = {"bounds": (1, 5), "shape": (300, 6), "row_names": index, "rank": 0, "epsilon": INF}
    entries = pd.DataFrame({"person": X[:, 0], "item": np.array(names)[X[:, 1]]})
    model = build(**options, unit_mode=0).fit(entries, y)
    average, error = model.average_rows(names[1::2], less=names[::2])
    assert average == pytest.approx(0.5, abs=0.05)
    assert 0 < error < 0.05
    one, of_one = model.average_rows([names[1]], mode=1)
    assert one == pytest.approx(model.mean_ + model.biases_[1][1], abs=0.05)
    assert of_one > model.mean_error_ > 0
    model.save(tmp_path / "averages.model")
    loaded = PrivateCPCompletion.load(tmp_path / "averages.model")
    assert loaded.average_rows(names[1::2], less=names[::2]) == (average, error)
    assert shared_model(loaded).effects[0].drawn.shape == (6,)
    np.testing.assert_array_equal(loaded.bias_covariances_[1], model.bias_covariances_[1])
    for rows, less, mode, said in (
        ([], None, 1, "rows must be one or more rows of mode 1"),
        (["c C"], None, 1, "rows must be one or more rows of mode 1"),
        (names[:2], ["c C"], 1, "less must be one or more rows of mode 1"),
        (names[:2], names[1:], 1, "less must have no row that is in rows"),
        (names[:2], None, 0, "mode must be one of"),
    ):
        with pytest.raises(ValueError, match=said):
            model.average_rows(rows, less, mode=mode)
    with pytest.raises(ValueError, match="average_rows needs a fit with a unit_mode"):
        build(**options).fit(entries, y).average_rows(names)


@pytest.mark.parametrize(
    ("strong", "n_seeds"), [(0.0, 1), (0.4, 1), pytest.param(0.4, 6, marks=pytest.mark.nightly)]
)
def test_a_search_for_components_leaves_differences_their_intervals(strong, n_seeds, seed):
    """Found or not, sweeps pay for how persons compare rows; persons have few of 40 rows."""
    held = []
    for one in range(seed, seed + n_seeds):
        rng, n, m = np.random.default_rng(one), 3000, 40
        effects, axes = 0.4 * rng.standard_normal(m), strong * rng.standard_normal((m, 2))
        X = np.argwhere(rng.random((n, m)) < 8 / m)
        y = 3 + effects[X[:, 1]] + 0.4 * rng.standard_normal(n)[X[:, 0]]
        y += np.sum(rng.standard_normal((n, 2))[X[:, 0]] * axes[X[:, 1]], axis=1)
        y = np.clip(y + 0.7 * rng.standard_normal(len(X)), 0, 6)
        model = PrivateCPCompletion(3, bounds=(0, 6), shape=(n, m), unit_mode=0, epsilon=4.0)
        with unsafe_seeded_noise(one):
            model.fit(X, y)
        assert model.n_components_ <= (2 if strong else 0)
        (shared,) = shared_model(model).effects
        later, other = np.tril_indices(m, -1)
        off = shared.means[later] - shared.means[other] - effects[later] + effects[other]
        assert shared.covariances is not None
        held.append(np.mean(np.abs(off) < 1.645 * shared.errors_of_differences(later, other)))
    # Of 8 draws with components 95 % of intervals held the truth, and 94 % of 8 without.
    assert np.mean(held) > (0.75 if n_seeds == 1 else 0.85)


@pytest.mark.parametrize("mean", [-22.9, -4.0, 1.0, 5.5])
@pytest.mark.parametrize("deviation", [0.3, 5.0, 16.0])
def test_bounds_cut_off_what_cannot_be(mean, deviation):
    law = truncnorm(*((end - mean) / deviation for end in (-4, 4)), mean, deviation)
    found = normal_within(mean, deviation, -4, 4)
    np.testing.assert_allclose(found, (law.mean(), law.std()), rtol=0.02, atol=1e-3)


@pytest.mark.parametrize(("mean", "expected"), [(3.0, 3.0), (4.0, 4.0), (1e3, 4.0)])
def test_bounds_cut_off_exact_averages(mean, expected):
    assert normal_within(mean, 0.0, -4, 4) == (pytest.approx(expected), pytest.approx(0))


def test_an_average_that_noise_hides_is_one_that_bounds_allow(seed):
    rng = np.random.default_rng(seed)
    X = np.argwhere(rng.random((300, 20)) < 0.5)
    y = rng.integers(1, 6, len(X)).astype(float)
    model = PrivateCPCompletion(0, bounds=(1, 5), shape=(300, 20), unit_mode=0, epsilon=0.02)
    for fit in range(4):
        with unsafe_seeded_noise(fit):
            model.fit(X, y)
        average, error = model.average_rows([0], less=[1, 2])
        assert abs(average) <= 4
        assert 1 < error <= 4
        average, error = model.average_rows([0])
        assert 1 <= average <= 5
        assert error <= 2


def test_errors_hold_of_many_titles_in_genres_to_which_persons_keep(seed):
    """Of 300 titles, of which fits of twenty thousand persons measure how these compare them."""
    rng, shape = np.random.default_rng(seed), (20_000, 300)
    genres, kept = np.arange(300) % 4, rng.integers(0, 4, 20_000)
    persons, titles = np.repeat(np.arange(20_000), 12), rng.integers(0, 300, 240_000)
    strays = rng.random(240_000) < 0.1
    titles = np.where(strays, titles, titles - titles % 4 + kept[persons])
    X = np.unique(np.column_stack([persons, titles]), axis=0)
    effects = 0.3 * (genres - 1.5) + 0.2 * rng.standard_normal(300)
    y = 5 + effects[X[:, 1]] + 0.5 * rng.standard_normal(20_000)[X[:, 0]]
    y = np.clip(y + 0.8 * rng.standard_normal(len(X)), 0, 10)
    model = PrivateCPCompletion(0, bounds=(0, 10), shape=shape, unit_mode=0, epsilon=4.0)
    with unsafe_seeded_noise(seed):
        model.fit(X, y)
    assert model.bias_covariances_[1] is not None
    about = effects - np.average(effects, weights=np.bincount(X[:, 1], minlength=300))
    assert np.mean(((model.biases_[1] - about) / model.bias_errors_[1]) ** 2) < 1.7
    best, worst = (effects[genres == genre].mean() for genre in (3, 0))
    rows = [np.flatnonzero(genres == genre) for genre in (3, 0)]
    found, error = model.average_rows(rows[0], less=rows[1])
    assert abs(found - (best - worst)) < 4 * error
    assert error < 0.5


@pytest.mark.filterwarnings("default::sktensor_dp.NotEnoughDataWarning")
def test_averages_and_fits_say_that_nothing_tells_how_many_rows_are_compared(monkeypatch):
    """Titles of two genres, to which persons keep."""
    rng, shape = np.random.default_rng(0), (4000, 40)
    of_genre = np.arange(40) % 2 == np.arange(4000)[:, None] % 2
    X = np.argwhere((rng.random(shape) < 0.2) & (of_genre | (rng.random(shape) < 0.05)))
    y = np.clip(3 + 0.6 * (X[:, 1] % 2) + rng.standard_normal(len(X)), 1, 5)
    model = PrivateCPCompletion(0, bounds=(1, 5), shape=shape, unit_mode=0, epsilon=8.0)
    with unsafe_seeded_noise(0), warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y).average_rows([1, 3], less=[0, 2])
    monkeypatch.setattr(shared_biases, "MOST_CONCURRENT", 30)
    monkeypatch.setattr("sktensor_dp.completion.plan.MOST_CONCURRENT", 30)
    said = "rows are as by chance, not for those who keep to few"
    with unsafe_seeded_noise(0), pytest.warns(NotEnoughDataWarning, match=said) as told:
        model.fit(X, y)
    assert len(told) == 1
    with pytest.warns(NotEnoughDataWarning, match=said):
        model.average_rows([1, 3], less=[0, 2])
