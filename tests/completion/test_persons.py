"""Persons as units: item effects from several releases, each about the last, and components."""

import math
import re
import warnings
from itertools import groupby

import numpy as np
import pytest
from internals import shared_model, sums_and_covariance, with_model
from scipy.stats import chi2
from sklearn.base import clone
from small_completions import INF, ONE_BY_DAY, TASTES, build, tastes

from sktensor_dp import (
    DoubtfulParameterWarning,
    NotEnoughDataWarning,
    PrivateCPCompletion,
    unsafe_seeded_noise,
)
from sktensor_dp.completion import defaults
from sktensor_dp.completion.chains import ALONE, on_items
from sktensor_dp.completion.component_search import DirectionSearch, forgetting_factor
from sktensor_dp.completion.concurrences import Concurrences, solved
from sktensor_dp.completion.effect_release import EffectRelease
from sktensor_dp.completion.fixed_point import Line, fixed_point
from sktensor_dp.completion.person_recipe import Levels
from sktensor_dp.completion.plan import most_paying, plan_persons, trial_sweeps
from sktensor_dp.completion.pull import OfClips, Pull, expected_square_errors, pull_by_clip
from sktensor_dp.completion.row_weights import row_weights, squares_of_most_gain
from sktensor_dp.completion.shared_biases import (
    PersonValues,
    SharedBiases,
    clip_of_least_error,
    longest_sum,
    shift_by_clip,
    shortened,
)
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries.person_entries import MOMENT_WEIGHT, SharedRowSums
from sktensor_dp.tensor.defaults import LEVEL_VARIANCE
from sktensor_dp.tensor.shared_parameters import SharedEffects, clipped_response

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:Some values are outside of the bounds"),
]

N, D, EACH = 1500, 300, 30
# Rows' effects carry three quarters of the variance about units' levels.
EFFECT, NOISE = math.sqrt(0.75), 0.5


def ratings(seed):
    rng = np.random.default_rng(seed)
    X = np.argwhere(rng.random((N, D)) < EACH / D)
    effects = EFFECT * rng.standard_normal(D)
    y = effects[X[:, 1]] + NOISE * rng.standard_normal(len(X))
    return X, y, effects


def fitted(X, y, seed, epsilon=2.0, **options):
    known = {"bounds": (-3, 3), "shape": (N, D), "unit_mode": 0, "epsilon": epsilon}
    model = PrivateCPCompletion(0, **{**known, **options})
    with unsafe_seeded_noise(seed):
        return model.fit(X, y)


def squared_error(model, effects):
    """Up to the level, which is the units' own."""
    left = model.biases_[1] - effects
    return float(np.var(left))


def test_biases_of_two_values_are_not_medians():
    rng = np.random.default_rng(0)
    X, chance = np.argwhere(np.ones((2000, 20))), np.linspace(0.15, 0.85, 20)
    y = (rng.random(len(X)) < chance[X[:, 1]]).astype(float)
    model = PrivateCPCompletion(0, bounds=(0, 1), shape=(2000, 20), unit_mode=0, epsilon=INF)
    biases, means = model.fit(X, y).biases_[1], y.reshape(-1, 20).mean(axis=0)
    # Medians are nearer to the ends, 2.1 times as far from each other.
    assert np.polyfit(means, biases, 1)[0] == pytest.approx(1, abs=0.05)


def test_a_generous_rank_does_little_harm(seed):
    """Two components are found among twenty columns as among two, at an epsilon with noise."""
    rng = np.random.default_rng(seed)
    shape, people = (2000, 60), np.repeat(np.arange(2000), 25)
    X = np.column_stack([people, np.argsort(rng.random(shape), axis=1)[:, :25].ravel()])
    U, V = (rng.standard_normal((n, 2)) for n in shape)
    y = (U[X[:, 0]] * V[X[:, 1]]).sum(axis=1) / 2 + 0.7 * rng.standard_normal(len(X))
    test, errors = rng.random(len(X)) < 0.2, []
    for rank in (2, 20):
        model = PrivateCPCompletion(rank, bounds=(-4, 4), shape=shape, unit_mode=0, epsilon=3.0)
        with unsafe_seeded_noise(seed):
            model.set_params(random_state=seed).fit(X[~test], y[~test])
        assert f"Components found: {model.n_components_} of {rank}." in model.privacy_report_.notes
        own = model.fold_in(X[~test], y[~test])
        errors.append(np.sqrt(np.mean((own.predict(X[test]) - y[test]) ** 2)))
    # Without components it is .99.
    assert errors[1] < 1.02 * errors[0] < 0.9


@pytest.mark.parametrize("kind", ONE_BY_DAY)
@pytest.mark.parametrize("part", [0.0, 1.0])
@pytest.mark.parametrize("shape", [(1000, 12), (1000, 12, 3)])
def test_found_components_change_predictions(kind, part, shape, seed):
    """Without noise the search ends with factors, which judged by chance may all be 0."""
    rng = np.random.default_rng(seed + 2)  # where, of seed 0, chance hides all
    X = np.argwhere(rng.random(shape) < 0.5)
    people, items, effects = (rng.standard_normal(n) for n in (1000, 12, 12))
    y = effects[X[:, 1]] + part * people[X[:, 0]] * items[X[:, 1]]
    y += 0.5 * rng.standard_normal(len(X))
    model = kind(3, bounds=(-5, 5), shape=shape, unit_mode=0, epsilon=INF, random_state=0)
    model.fit(X, y)
    n_found, whole = model.n_components_, model.fold_in(X, y).predict(X)
    plain = with_model(model, components=None).fold_in(X, y).predict(X)
    assert (n_found == 0) == np.allclose(whole, plain, rtol=0, atol=1e-9)
    assert part <= n_found <= 3


def test_releases_about_what_was_found_find_most(seed):
    X, y, effects = ratings(seed)
    rounds = squared_error(fitted(X, y, seed), effects)
    # Nothing at all is off by the effects' variance; found are .034 of .75 on average, with a
    # deviation of .009, and a tenth was passed once in a hundred seeds.
    assert rounds < 0.2 * EFFECT**2


def test_delta_does_not_matter_without_noise():
    X, y, _ = ratings(0)
    first, second = (fitted(X, y, 0, INF, delta=delta).biases_[1] for delta in (0.0, 1e-6))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("epsilon", [2.0, math.inf])
def test_effects_are_about_the_level_where_values_are_skewed(epsilon, seed):
    """Most values are above the mean of their unit, which is no effect of the rows."""
    rng = np.random.default_rng(seed)
    X = np.argwhere(rng.random((N, D)) < EACH / D)
    model = fitted(X, 1 - rng.exponential(size=len(X)), seed, epsilon)
    counts = np.bincount(X[:, 1], minlength=D)
    # Effects are 0. Not centred they are .23 to .36 at 2, and .24 without noise (5 seeds), as
    # clipped residuals are half way to signs and the median is .31. Centred by released weights
    # what is left is in proportion to the noise of these: .001 at most (5 seeds).
    assert abs(counts @ model.biases_[1]) / counts.sum() < 0.05


@pytest.mark.parametrize(("epsilon", "error"), [(INF, 1e-9), (8.0, 0.2)])  # six deviations
def test_persons_without_values_draw_no_level(epsilon, error, seed):
    """As in the folds of a splitter, where the shape counts those who are held out."""
    X, y, _ = ratings(seed)
    few, many = (fitted(X, y + 1, seed, epsilon, shape=(n, D))._shared.level for n in (N, 2 * N))
    assert few == pytest.approx(many, abs=error)


def test_persons_are_folded_in_by_the_variances_that_a_fit_says(tmp_path):
    X, y, _ = ratings(0)
    model = fitted(X, y, 0)
    model.save(tmp_path / "model")

    def folded(of):
        return of.fold_in(X[:300], y[:300]).predict(X[:300])

    own = folded(model)
    np.testing.assert_array_equal(folded(PrivateCPCompletion.load(tmp_path / "model")), own)
    assert not np.array_equal(folded(with_model(model, level_variance=LEVEL_VARIANCE)), own)


@pytest.mark.parametrize(
    "size", [pytest.param(0.0, marks=pytest.mark.nightly), 0.5,
             pytest.param(2.0, marks=pytest.mark.nightly)],
)  # fmt: skip
def test_persons_levels_are_shrunk_by_how_far_they_are_apart(size, seed):
    """With little noise as if that was known, with much as by its prior, of which no one is far."""
    rng, (n, d) = np.random.default_rng(seed), (2000, 20)
    y = size * rng.standard_normal((n, 1)) + np.linspace(-1, 1, d) + rng.standard_normal((n, d))
    seen = rng.random((n, d)) < 0.3
    X, held, y = np.argwhere(seen), np.argwhere(~seen), np.clip(y, -8, 8)
    errors = {}
    for epsilon in (math.inf, 8.0, 0.1):
        model = PrivateCPCompletion(
            3, bounds=(-8, 8), shape=(n, d), unit_mode=0, epsilon=epsilon, random_state=seed
        )  # fmt: skip
        with unsafe_seeded_noise(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y[seen])
        assert model.n_components_ == 0  # that levels are apart is no component
        known = shared_model(model)
        errors[epsilon] = known.level_variance / known.noise_variance
        if math.isinf(epsilon):  # the mean errs as means of persons do, of six values each
            assert model.mean_error_ == pytest.approx(((size**2 + 1 / 6) / n) ** 0.5, rel=0.15)
            of_pure = clone(model).set_params(delta=0.0, rank=0).fit(X, y[seen])
            assert of_pure.mean_error_ == pytest.approx(model.mean_error_, rel=0.01)
        if math.isfinite(epsilon) and epsilon > 1:
            of_truth = with_model(model, level_variance=size**2)
            folded = [one.fold_in(X, y[seen]).predict(held) for one in (model, of_truth)]
            first, best = (np.mean((one - y[~seen]) ** 2) for one in folded)
            assert first < 1.04 * best
    assert errors[math.inf] == pytest.approx(size**2, rel=0.15, abs=0.06)
    assert 0.02 < errors[0.1] < 4


def test_weights_of_rows_explain_most(seed):
    """No other weights of the same mean square do; equal rows weigh the same."""
    rng = np.random.default_rng(seed)
    shares, past, planned = rng.dirichlet(np.ones(30)), *10 ** rng.uniform(-3, 3, (2, 30))

    def explained(x):
        ratios = past + x * planned
        return shares @ (ratios / (1 + ratios))

    best = squares_of_most_gain(shares, past, planned)
    assert shares @ best == pytest.approx(1)
    for _ in range(50):
        other = best * 10 ** rng.uniform(-1, 1, 30) + 0.1 * rng.random(30)
        assert explained(best) >= explained(other / (shares @ other))
    equal = row_weights(np.array([[2.0] * 5, [4.0] * 5]), past=np.ones(5), planned=0.1)
    np.testing.assert_allclose(equal, 1.0)


def test_releases_of_other_gains_and_centres_are_one(seed):
    """Without noise all say the same; with some, no other mean of them has less."""
    rng = np.random.default_rng(seed)
    weights, effects, gains = 1 + 9 * rng.random(6), rng.standard_normal(6), rng.random((2, 6))
    released = []
    for gain, sigma in zip(gains, (2.0, 1.0), strict=True):
        centre = rng.standard_normal(6)
        sums = gain * weights * (effects - centre)
        of_noise = np.full(6, sigma)
        released.append(EffectRelease(sums, weights, of_noise, gain, centre, gain, np.zeros(6)))
    both = EffectRelease.combined(released, np.zeros((2, 2)))
    expected = both.response * weights * (effects - both.about)
    np.testing.assert_allclose(both.sums, expected, atol=1e-12)
    np.testing.assert_allclose(both.counts, weights, rtol=1e-12)
    assert both.sigma == pytest.approx((1 / 4 + 1) ** -0.5)
    assert (both.response / both.sigma) ** 2 == pytest.approx(gains[0] ** 2 / 4 + gains[1] ** 2)
    # Deviations of the same values that are in proportion to their gains stay so.
    assert both.spread == pytest.approx(both.response)


def components_fitted(data, seed, epsilon, kind=PrivateCPCompletion, rank=4, **options):
    model = kind(
        rank, bounds=(-4, 4), unit_mode=0, shape=TASTES, epsilon=epsilon,
        random_state=seed, **options,
    )  # fmt: skip
    with unsafe_seeded_noise(seed):
        return model.fit(*data)


def error(model, data, test):
    found = model.fold_in(*data).predict(test[0])
    return float(np.sqrt(np.mean((found - test[1]) ** 2)))


@pytest.mark.parametrize("rank", [1, 2])
def test_one_component_is_no_smaller_at_a_small_rank(rank, seed):
    """Moments of its weights are clipped the more, the fewer columns there are."""
    rng = np.random.default_rng(seed)
    X, share = np.argwhere(rng.random((3000, 60)) < 1 / 3), 0.3
    people, items = rng.standard_normal(3000), rng.standard_normal(60)
    taste = people[X[:, 0]] * items[X[:, 1]] / np.sqrt(np.mean(items**2))
    y = math.sqrt(share) * taste + math.sqrt(1 - share) * rng.standard_normal(len(X))
    model = PrivateCPCompletion(rank, bounds=(-4, 4), shape=(3000, 60), unit_mode=0, epsilon=8.0)
    with unsafe_seeded_noise(seed):
        factor = model.set_params(random_state=seed).fit(X, y)._shared.components.factors[0]
    # It is .22 and .28, with deviations of .022 and .018 (12 seeds); as clipped moments show it,
    # .05 and .12.
    assert 0.4 * share < np.mean(factor**2, axis=0).sum() < 1.5 * share


@pytest.mark.parametrize("kind", ONE_BY_DAY)
def test_shared_components_are_learnt_at_a_small_epsilon(kind, seed):
    data, test = tastes(seed, 0.5)
    rank = 4 if kind is PrivateCPCompletion else (4, 4)
    found = components_fitted(data, seed, 2.5, kind, rank)
    assert [factor.shape for factor in found.factors_] == [(TASTES[0], 4), (TASTES[1], 4)]
    alone, private, exact = (
        error(model, data, test)
        for model in (
            components_fitted(data, seed, 2.5, rank=0),
            found,
            components_fitted(data, seed, math.inf),
        )
    )
    # Directions of noise explain nothing, whatever their number is. What is lost here is what
    # noise at mu = .55 leaves; exact components explain a third of the variance.
    assert alone - private > 0.5 * (alone - exact) > 0.03


def test_places_on_components_are_within_their_errors(seed):
    """Also those of rows that few have, of components of other strengths."""
    rng, n = np.random.default_rng(seed), 3000
    chances = np.geomspace(0.05, 0.6, 60)
    X = np.argwhere(rng.random((n, 60)) < chances)
    places = rng.standard_normal((60, 2)) * [0.6, 0.4]
    places -= chances @ places / chances.sum()
    y = (rng.standard_normal((n, 2))[X[:, 0]] * places[X[:, 1]]).sum(axis=1)
    y += 0.3 * rng.standard_normal(60)[X[:, 1]] + 0.7 * rng.standard_normal(len(X))
    model = PrivateCPCompletion(2, bounds=(-3, 3), shape=(n, 60), unit_mode=0, epsilon=4.0)
    with unsafe_seeded_noise(seed):
        components = model.set_params(random_state=seed).fit(X, y)._shared.components
    found = components.factors[0].any(axis=0)  # the weaker one may be missing
    factor, errors = components.factors[0][:, found], components.errors[:, found]
    roots = np.sqrt(chances)[:, None]
    true = places @ np.linalg.lstsq(roots * places, roots * factor)[0]
    # Over 8 seeds root mean squares were 0.81 to 1.15, and one of 300 such signs was wrong.
    assert 0.5 < np.sqrt(np.mean(((factor - true) / errors) ** 2)) < 1.4
    is_sure = np.abs(factor) > 2 * errors
    assert np.mean(is_sure) > 0.2
    assert np.sum(factor[is_sure] * true[is_sure] < 0) <= 1
    assert errors[0].max() > 1.5 * errors[-1].max()


@pytest.mark.parametrize("kind", ONE_BY_DAY)
def test_components_of_three_modes_are_learnt(kind, seed):
    rng, shape = np.random.default_rng(seed), (4000, 12, 5)
    X = np.argwhere(rng.random(shape) < 0.4)
    factors = [rng.standard_normal((n, 2)) for n in shape]
    taste = np.prod([f[rows] for f, rows in zip(factors, X.T, strict=True)], axis=0).sum(axis=1)
    y = 0.5 * taste + math.sqrt(0.5) * rng.standard_normal(len(X))
    test = rng.random(len(y)) < 0.1
    data, errors = (X[~test], y[~test]), []
    for model in (
        kind(2, bounds=(-6, 6), unit_mode=0, shape=shape, epsilon=4.0, random_state=seed),
        PrivateCPCompletion(0, bounds=(-6, 6), unit_mode=0, shape=shape, epsilon=4.0),
    ):
        with unsafe_seeded_noise(seed):
            model.fit(*data)
        errors.append(error(model, data, (X[test], y[test])))
        if model.rank:
            assert [factor.shape for factor in model.factors_] == [(n, 2) for n in shape]
    # Two thirds of what components explain, or more, are found by all of eight seeds.
    assert errors[1] ** 2 - errors[0] ** 2 > 0.5 * (errors[1] ** 2 - 0.5)


def test_persons_of_few_entries_show_components(seed):
    """Products of residuals with weights that are fitted to them have directions in them."""
    rng = np.random.default_rng(seed)
    n, n_rows = 16_000, 60
    counts = np.where(rng.random(n) < 0.6, 2, 10)
    X = np.stack([
        np.repeat(np.arange(n), counts),
        np.concatenate([rng.permutation(n_rows)[:count] for count in counts]),
    ], axis=1)  # fmt: skip
    tastes, kinds = rng.standard_normal((n, 2)), rng.standard_normal((n_rows, 2))
    y = 0.35 * (tastes[X[:, 0]] * kinds[X[:, 1]]).sum(axis=1)
    y += 0.4 * rng.standard_normal(n_rows)[X[:, 1]] + 0.8 * rng.standard_normal(len(X))
    model = PrivateCPCompletion(3, bounds=(-3, 3), shape=(n, n_rows), unit_mode=0, epsilon=6.0)
    with unsafe_seeded_noise(seed):
        assert model.fit(X, y).n_components_ == 2


def test_units_without_entries_hide_no_components(seed):
    """As with a `shape` that is a round number above that of persons."""
    data, test = tastes(seed, 0.5)
    model = PrivateCPCompletion(4, bounds=(-4, 4), unit_mode=0, epsilon=2.5, random_state=seed)
    model.set_params(shape=(3 * TASTES[0], TASTES[1]))
    with unsafe_seeded_noise(seed):
        many = error(model.fit(*data), data, test)
    assert many < 1.01 * error(components_fitted(data, seed, 2.5), data, test)


# Of no effect the ratio of errors is 1.001 on average, with a deviation of .004 over seeds.
@pytest.mark.parametrize(("effect", "worse"), [(0.0, 1.02), (0.3, 0.9)])
def test_a_third_mode_costs_little_where_it_does_nothing_and_gains_where_it_does(
    effect, worse, seed
):
    rng, shape = np.random.default_rng(seed), (2000, 30, 6)
    X = np.argwhere(rng.random(shape) < 0.15)
    people, items = (0.5 * rng.standard_normal(n) for n in shape[:2])
    y = people[X[:, 0]] + items[X[:, 1]] + effect * np.linspace(-1.5, 1.5, 6)[X[:, 2]]
    y += 0.5 * rng.standard_normal(len(X))
    test, errors = rng.random(len(y)) < 0.1, []
    for n_modes in (3, 2):
        model = PrivateCPCompletion(0, bounds=(-4, 4), unit_mode=0, shape=shape[:n_modes])
        entries = X[:, :n_modes]
        with unsafe_seeded_noise(seed):
            model.fit(entries[~test], y[~test])
        errors.append(error(model, (entries[~test], y[~test]), (entries[test], y[test])))
    assert errors[0] < worse * errors[1]


def spent(model):
    """Squared mu by release, and how often each was made."""
    rows = model.privacy_report_.rows
    return [(row.name, row.uses, row.uses * row.mu**2) for row in rows]


@pytest.mark.parametrize("each", [20, 3])
def test_what_components_do_not_need_goes_to_effects(each, seed):
    """Where nothing shows after some sweeps, or so few values only show chance."""
    data, test = tastes(seed, 0.0, each)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = components_fitted(data, seed, 2.0)
    plain = components_fitted(data, seed, 2.0, rank=0)
    made = spent(model)
    tried = sum(uses for name, uses, _ in made if name == "shared_factor_sums")
    # A standard error of noise is passed by chance now and then; the search then goes to its end,
    # and must do no harm either.
    paying = most_paying(defaults.DIRECTION_SWEEPS, 1) if each == 20 else 0
    left = defaults.DIRECTION_SWEEPS - paying
    if tried != left:
        # Parts of a rest may cost as much but for their last bits: they are rows of their own.
        found = [name for name, _ in groupby(name for name, _, _ in made)]
        names = ["unit_levels", "shared_row_sums"]
        names += ["row_concurrences", "shared_row_sums"] if paying else []
        rest = ["shared_row_sums", "unit_levels"]  # both are better for it
        assert found == [*names, "unit_levels", "shared_factor_sums", *rest]
        assert tried == model.n_iter_ == trial_sweeps(left)
        assert not hasattr(model, "factors_")
        assert model.n_components_ == 0
        assert any("better biases gain more" in str(one.message) for one in told)
    whole = sum(cost for _, _, cost in spent(plain))
    assert sum(cost for _, _, cost in made) == pytest.approx(whole, rel=1e-12)
    assert model.privacy_report_.epsilon <= 2.0 * (1 + 1e-9)
    # Nothing is there to be found: effects of variance 0 on a deviation of 1. That levels are alike
    # is known less well after a search, and then they are shrunk as usual: 1.02.
    assert error(model, data, test) < 1.03 * error(plain, data, test)


@pytest.mark.parametrize("kind", ONE_BY_DAY)
def test_a_search_to_its_end_may_find_nothing(kind, monkeypatch):
    monkeypatch.setattr(DirectionSearch, "is_worth", lambda *_: True)
    with pytest.warns(NotEnoughDataWarning, match="show none above noise and chance"):
        model = components_fitted(tastes(1, 0.0)[0], 1, 2.0, kind)
    # Sweeps pay for concurrences, too.
    left = defaults.DIRECTION_SWEEPS - most_paying(defaults.DIRECTION_SWEEPS, 1)
    assert (model.n_components_, model.n_iter_) == (0, left)
    assert not hasattr(model, "factors_")


@pytest.mark.parametrize("unit_mode", [None, 0])
def test_items_that_noise_hides_are_said_to_be_hidden(unit_mode, seed):
    """Errors are of the size that biases_ deviate by: of 60 items, in 2 of 3 by less than one."""
    rng = np.random.default_rng(seed)
    X = np.argwhere(rng.random((3000, 60)) < 0.3)
    items = rng.standard_normal(60)
    y = np.clip(0.5 * items[X[:, 1]] + rng.standard_normal(len(X)), -4, 4)
    model = PrivateCPCompletion(0, bounds=(-4, 4), shape=(3000, 60), unit_mode=unit_mode)
    with unsafe_seeded_noise(seed):
        model.set_params(epsilon=3.0).fit(X, y)
        with pytest.warns(NotEnoughDataWarning, match="Biases of rows of mode 1 differ by noise"):
            hidden = clone(model).set_params(epsilon=0.0003).fit(X, y)
    off = np.abs(model.biases_[1] - 0.5 * (items - items.mean())) / model.bias_errors_[1]
    # Normal errors give 41 of 60, with a standard deviation of 4.
    assert 25 < np.sum(off < 1) < 57
    assert np.isnan(model.bias_errors_[0]).all()
    # Where noise hides the mean it may lie anywhere between the bounds.
    if unit_mode == 0:
        assert hidden.mean_error_ == pytest.approx(8 / np.sqrt(12), rel=0.1)


@pytest.mark.parametrize(
    ("people", "lists", "own", "noise", "share", "rank", "epsilon"),
    [
        # Symptoms, most of which most persons do not have; clips alone would hide how many do.
        (8000, np.linspace(-2.2, 1.2, 9), 1.0, 0.6, 0.95, 0, 2.0),
        # Questions with answers at both ends; little of the budget is for averages.
        (6000, np.linspace(0.5, 3.5, 20), 0.7, 1.0, 0.5, 3, 1.0),
        # A ladder of which most persons climb all or nothing: the median person tells no rungs.
        (3500, np.linspace(-1.0, 5.0, 20), 10.0, 1.2, 0.3, 0, 4.0),
        (3500, np.linspace(-1.0, 5.0, 20), 10.0, 1.2, 0.3, 0, 1.0),
    ],
)
def test_averages_of_skewed_answers_are_within_their_errors(
    people, lists, own, noise, share, rank, epsilon, seed
):
    rng, shape = np.random.default_rng(seed), (people, len(lists))
    means = lists + own * rng.standard_normal((people, 1))
    answers = np.clip(np.rint(means + noise * rng.standard_normal(shape)), 0, 4)
    X = np.argwhere(rng.random(shape) < share)
    model = PrivateCPCompletion(rank, bounds=(0, 4), shape=shape, unit_mode=0, epsilon=epsilon)
    with unsafe_seeded_noise(seed):
        model.fit(X, answers[tuple(X.T)])
    off = model.mean_ + model.biases_[1] - answers.mean(axis=0)
    of_rest = (off - off.mean()) / model.bias_errors_[1]
    assert np.sqrt(np.mean(of_rest**2)) < 2
    assert abs(off.mean()) < 4 * model.mean_error_


@pytest.mark.filterwarnings("ignore:Values of one person differ")
@pytest.mark.parametrize(
    ("alike", "people", "n_items", "each", "rank", "epsilon"),
    [
        (0.0, 2500, 30, 15, 0, 2.0),
        (0.0, 8000, 30, 15, 3, 2.0),
        (0.7, 3000, 60, 20, 0, 1.0),
        (0.9, 10_000, 40, 10, 0, 2.0),
    ],
)
def test_medians_that_are_no_means_are_noticed(alike, people, n_items, each, rank, epsilon, seed):
    """60% like what others dislike, or many give one value to all: averages were too far apart (by
    up to 47 times where 90% do), or all the same, and errors a ninth of the true ones.
    """
    rng, shape = np.random.default_rng(seed), (people, n_items)
    items, camps = rng.permutation(np.linspace(-1, 1, n_items)), rng.random((people, 1))
    if alike:
        answers = 3.3 + items + 0.5 * rng.standard_normal((people, 1))
        answers = answers + 0.8 * rng.standard_normal(shape)
        answers = np.where(camps < alike, rng.choice([1, 3, 5], (people, 1)), answers)
    else:
        answers = 3 + 1.5 * np.where(camps < 0.6, 1, -1) * items + 0.6 * rng.standard_normal(shape)
    answers = np.clip(np.rint(answers), 1, 5)
    X = np.argwhere(np.argsort(np.argsort(rng.random(shape), axis=1), axis=1) < each)
    model = PrivateCPCompletion(rank, bounds=(1, 5), shape=shape, unit_mode=0, epsilon=epsilon)
    with unsafe_seeded_noise(seed):
        biases = model.fit(X, answers[tuple(X.T)]).biases_[1]
    means = answers.mean(axis=0)
    # .77 on average where 70% answer alike, with a deviation of .14; it was .18.
    assert 0.25 < np.polyfit(means, biases, 1)[0] < 1.35
    off = (biases - means + means.mean()) / model.bias_errors_[1]
    # Of 100 seeds, 2.51 at most where most answer alike, 1.3 on average; it was 3.7 and 2.5.
    assert np.sqrt(np.mean(off**2)) < (3 if alike else 2.5)


@pytest.mark.parametrize("epsilon", [4.0, INF])
def test_levels_beyond_the_bounds_count_in_the_mean(epsilon, seed):
    """Who likes all that few like has a level above any value."""
    rng, n, m = np.random.default_rng(seed), 20_000, 30
    of_items = np.linspace(-2, 2, m)
    popularity = 0.2 * np.exp(rng.permutation(of_items)) / 2
    likes = 2.2 + of_items + rng.standard_normal((n, 1))
    yes = rng.random((n, m)) < 1 / (1 + np.exp(-likes))
    X = np.argwhere(rng.random((n, m)) < popularity)
    model = PrivateCPCompletion(0, bounds=(0, 1), shape=(n, m), unit_mode=0, epsilon=epsilon)
    with unsafe_seeded_noise(seed):
        model.fit(X, yes[tuple(X.T)].astype(float))
    off = model.mean_ + model.biases_[1] - yes.mean(axis=0)
    assert abs(np.average(off, weights=popularity)) < 4 * model.mean_error_


@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 0.0), (INF, 1e-6)])
@pytest.mark.parametrize("most", [0.1, 0.9])
def test_rare_answers_are_told_apart(most, epsilon, delta, seed):
    """Few persons deviate from their own mean, and those by more than a clip of the mean deviation:
    as that showed them, biases were a third of the truth, or errors half of it.
    """
    rng, shape = np.random.default_rng(seed), (20_000, 10)
    chances = np.linspace(most, 0.005 if most < 0.5 else 0.995, 10)
    X = np.argwhere(rng.random(shape) < 0.8)
    y = (rng.random(len(X)) < chances[X[:, 1]]).astype(float)
    known = {"bounds": (0, 1), "shape": shape, "unit_mode": 0, "epsilon": epsilon, "delta": delta}
    with unsafe_seeded_noise(seed):
        model = PrivateCPCompletion(0, **known).fit(X, y)
    off = model.biases_[1] - chances + chances.mean()
    assert np.mean((off / model.bias_errors_[1]) ** 2) < chi2.isf(1e-6, 9) / 9
    # Six deviations of the noise.
    assert np.polyfit(chances, model.biases_[1], 1)[0] == pytest.approx(1, abs=0.25)
    if epsilon == INF:
        sampling = np.sqrt(chances * (1 - chances) / np.bincount(X[:, 1]))
        assert 0.8 < model.bias_errors_[1].max() / sampling.max() < 1.6


def test_rare_answers_are_no_values_out_of_bounds(seed):
    rng, shape = np.random.default_rng(seed), (4000, 10)
    X = np.argwhere(rng.random(shape) < 0.8)
    model = PrivateCPCompletion(0, bounds=(0, 1), shape=shape, unit_mode=0, epsilon=2.0)
    with unsafe_seeded_noise(seed), warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulParameterWarning)
        model.fit(X, rng.random(len(X)) < 0.02)  # deviations within persons are 7 of the noise
    with pytest.warns(DoubtfulParameterWarning, match="nearly all are the same"):
        model.set_params(epsilon=INF).fit(X, np.full(len(X), -1.0))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("noise", [0.01, 0.3, 2.0])
def test_the_posterior_of_a_deviation_is_what_it_says(noise, order, seed):
    rng, (least, most) = np.random.default_rng(seed), (0.25, 2.0)
    true, scores = rng.uniform(least, most, 1500), []
    for deviation, found in zip(true, rng.normal(true**2 / most, noise), strict=True):
        cost = PrivacyCost(mu=1.0)
        of_mean = rng.normal(deviation * rng.random(), noise)
        sums = np.array([0.0, found, 2.0, of_mean])[: 2 + order]
        answer = Answer(sums, noise, noise, cost, n=300)
        levels = Levels(0.0, 1.0, 0.0, answer, half=2.0)
        (mean, _), (high, _) = levels.deviation_and_share(), levels.deviation_and_share(at=1.0)
        scores.append((deviation - mean) / (high - mean))
    # A mean of 0 and a mean square of 1, whose deviation is at most that of normal scores.
    assert abs(np.mean(scores)) < 5 / math.sqrt(len(true))
    assert abs(np.mean(np.square(scores)) - 1) < 5 * math.sqrt(2 / len(true))


def test_all_releases_of_sums_are_as_good_as_one_for_their_budget(seed):
    data, _ = tastes(seed, 0.0, 3)
    precision = []
    for model in (components_fitted(data, seed, 2.0), components_fitted(data, seed, 2.0, rank=0)):
        rows = [row for row in model.privacy_report_.rows if row.name == "shared_row_sums"]
        cost = sum(row.uses * row.mu**2 for row in rows)
        squares = [row.uses * (row.sensitivity / row.sigma) ** 2 for row in rows]
        precision.append(sum(squares) / cost)
    assert precision[0] == pytest.approx(precision[1], rel=1e-12)


class Noise:
    """In the place of a session's answers: sums of noise alone, and moments of all kinds."""

    shape, n_units, is_pure = (1000, 4000), 1000, False

    def __init__(self, rng):
        self.rng = rng

    def public(self, name):
        return {"shape": self.shape, "half": 4.0}[name]

    def __call__(self, query):
        root = self.rng.standard_normal((3, 3)) / 3
        sums = 5 * self.rng.standard_normal((self.shape[1], 3))
        value = np.concatenate([sums, MOMENT_WEIGHT * self.n_units * root @ root.T])
        return Answer(value, 5.0, 1.0, PrivacyCost(mu=0.4), 1)


def test_the_noise_of_added_sums_is_what_is_taken_for_it(seed):
    """Whatever of earlier sums is kept."""
    rng = np.random.default_rng(seed)
    none = np.zeros(Noise.shape[1])
    asked = Noise(rng)
    biases = SharedBiases(asked, 1, PersonValues(asked.n_units, 0.0, 1.0, 1.0))
    biases.effects, biases.weights = SharedEffects(none, none, none, 1.0), none + 1
    biases.shares = biases.weights / len(none)
    search = DirectionSearch(asked, [biases], rng.standard_normal((4000, 3)), 5)
    for _ in range(12):
        search.release_sweep()
    sums, covariance = sums_and_covariance(search)
    found = sums.T @ sums / len(none)
    # A covariance of 4000 rows deviates by .022 of its variances at most: five times that.
    largest = found.diagonal().max()
    np.testing.assert_allclose(found, covariance, atol=0.11 * largest)
    # All of it were 300, and nothing but the last 25.
    assert (found.diagonal() > 25).all()
    assert (found.diagonal() < 280).all()


def test_what_is_found_is_kept_as_long_as_it_is_noise_that_averages_lessen():
    explained = np.array([-0.3, 0.0, 0.2, 0.5, 3.0])
    kept = forgetting_factor(explained, 0.001, 9, 1.0)
    assert kept[0] == kept[1] < kept[2] < kept[3] == kept[4] == 1
    # From .001 to 1 in nine steps is a factor of 2.15 each.
    assert kept[0] == pytest.approx(2.15**-0.5, abs=0.01)
    np.testing.assert_allclose(forgetting_factor(explained, 0.001, 9, 0.5), kept / 2)
    np.testing.assert_array_equal(forgetting_factor(explained, 0.001, 9, 0.0), 0.0)


def test_effects_of_one_mode_are_taken_from_the_next():
    """Items of a higher value occur on the first days: no effect is left for days."""
    rng = np.random.default_rng(0)
    X = np.argwhere(np.ones((200, 10, 6)))
    X = X[rng.random(len(X)) < np.where((X[:, 1] < 5) == (X[:, 2] < 3), 0.9, 0.1)]
    y = np.where(X[:, 1] < 5, 1.0, -1.0) + 0.3 * rng.standard_normal(len(X))
    fitted = build(epsilon=INF, unit_mode=0, shape=(200, 10, 6)).fit(X, y)
    assert fitted.biases_[1][0] > 0.5
    assert fitted.biases_[2][0] < 0.2


@pytest.mark.parametrize(
    ("shape", "epsilon", "delta", "n_rounds", "components"),
    [
        ((N, D), 2.0, 1e-6, 6, False),
        (TASTES, 2.0, 1e-6, 6, True),
        ((N, 20_000), math.inf, 1e-6, 6, False),
        # No noise is the limit of little; parts of a pure epsilon are worth less than the whole.
        (TASTES, math.inf, 1e-6, 6, True),
        (TASTES, 2.0, 0.0, 1, False),
        ((N, 6, 10), 1.0, 1e-6, 6, False),
        ((N, 6, 10), 8.0, 1e-6, 6, True),
    ],
)
def test_public_numbers_decide_on_rounds_and_components(
    shape, epsilon, delta, n_rounds, components
):
    plan = plan_persons(shape, 4, 0, epsilon, delta)
    assert (plan.n_rounds, plan.seeks_components) == (n_rounds, components)
    uses = {one.name: one.uses for one in plan.releases.planned}
    # A mode of 10 rows takes as much as two of 6, rounded.
    assert plan.uses_by_mode == ((1,) if len(shape) == 2 else (1, 2))
    assert uses["shared_row_sums"] == n_rounds * sum(plan.uses_by_mode)


@pytest.mark.filterwarnings("ignore:No entry has names of rows of the fit")
@pytest.mark.parametrize(
    ("names", "level", "doubted"),
    [(range(D), 1e9, "edge of the range"), (range(D, 2 * D), 0.5, "written in the public lists")],
)
def test_clamped_values_and_lists_that_match_nothing_are_doubted(names, level, doubted):
    X, y, _ = ratings(0)
    lists = {"row_names": (None, list(names))}
    with pytest.warns(UserWarning, match=doubted):
        model = fitted(X, y + level, 1, **lists)
    own = repr(model.fold_in(X[:5], y[:5]))
    assert own == "<parameters of 1 unit>"
    if level > 1:
        with pytest.warns(UserWarning, match=doubted):
            model.set_params(unit_mode=None, row_names=None, shape=None).fit(X, y + level)


@pytest.mark.parametrize("noise", [1e-4, 0.1, 3.0])
@pytest.mark.parametrize("apart", [0.0, 0.02, 1.0])
@pytest.mark.parametrize("share_varied", [1.0, 0.3])
def test_clips_of_biases_have_the_least_expected_error(noise, apart, share_varied):
    pull, n_rows, effects = Pull.prior(share_varied), 40, 0.3
    past = OfClips(np.array([0.06 / noise**2]), np.array([0.14]), np.array([apart / 10]))

    def square_error(clip):
        norm = SharedRowSums.largest_distance(longest_sum(clip))
        precision = (clipped_response(clip) / norm / noise) ** 2
        by_clip = pull_by_clip(clip, share_varied, shortened(clip, share_varied))
        beyond = (1 - share_varied) * pull.beyond(clip, effects) / pull.gain(by_clip)
        numbers = precision, by_clip, np.hypot(apart * shift_by_clip(clip, 4.0), beyond)
        planned = OfClips(*np.array(numbers)[:, None])
        return float(expected_square_errors(past, planned, pull, effects, n_rows)[0])

    found = clip_of_least_error(past, noise, apart, effects, n_rows, pull, 0.6, 4.0, share_varied)
    assert square_error(found) <= 1.01 * min(map(square_error, np.linspace(0.6, 4.0)))


@pytest.mark.parametrize("known", [True, False])
def test_errors_of_two_clips_are_those_of_least_squares(known):
    """Of an effect and its product with the pull, by how much releases of two clips differ."""
    past = OfClips(np.array([2e12, 1e12]), np.array([0.1, 0.4]), np.zeros(2))
    planned = OfClips(np.array([3e12]), np.array([0.8]), np.zeros(1))
    pull = Pull() if known else Pull(np.array([-1e-2, 1e-2]), np.array([0.5, 0.5]))
    found = expected_square_errors(past, planned, pull, 1.0, 1)
    A = np.array([[1.0, 1.0, 1.0], [-0.1, -0.4, -0.8]])[: 1 if known else 2]
    errors = np.linalg.inv(A * np.array([2e12, 1e12, 3e12]) @ A.T)
    before = np.linalg.inv(A[:, :2] * np.array([2e12, 1e12]) @ A[:, :2].T)
    if not known:  # what releases before told of the pull counts as told already
        told = 1 / errors[1, 1] - 1 / before[1, 1]
        weights = np.array([2, 1, 3]) / 6
        errors[0, 0] = 1 / 6e12 + (weights @ -A[1]) ** 2 / told
    assert found[0] == pytest.approx(errors[0, 0], rel=1e-3)


@pytest.mark.parametrize(("noise", "expected"), [(1e-4, 0.64), (0.5, 1.0)])
def test_who_does_not_vary_is_seen_where_noise_does_not_hide_it(noise, expected):
    sums = np.array([0.0, 0.5, 2.0, 0.8])
    answer = Answer(sums, noise, noise, PrivacyCost(mu=1.0), n=300)
    _, share_varied = Levels(0.0, 1.0, 0.0, answer, half=2.0).deviation_and_share()
    assert share_varied == pytest.approx(expected, abs=1e-2)


def test_extrapolated_positions_are_as_uncertain_as_rounds_leave_them(seed):
    """Of effects that noise alone moves, and of those that rounds show bit by bit."""
    rng, noise, squares, variances = np.random.default_rng(seed), 0.02, [], []
    for number in range(200):
        position, slope = (0.02 * rng.standard_normal(), -0.3) if number % 2 else (0.4, 0.6)
        shown, about = np.empty(6), np.zeros(6)
        for i in range(6):
            about[i] = shown[:i].mean() if i else 0.0
            about[i] = about[i] if number % 2 else shown[i - 1] if i else 0.0
            shown[i] = position + slope * (about[i] - position) + noise * rng.standard_normal()
        rows, each = np.full(4, 0.5), np.full(6, noise**2)
        line = Line(2 * rows, rows / 2, shown, each, sampling=0.0, part=1.0)
        (mean,), (variance,) = fixed_point([line], [about[:, None]], 0.1**2, 1.0)
        squares.append((mean - position) ** 2 / variance)
        variances.append(variance)
    assert np.mean(squares[1::2]) < 1.5
    assert np.mean(squares[::2]) < 2
    # With the largest prior variance alone it was above .2.
    assert np.quantile(variances[1::2], 0.9) < 0.15**2


@pytest.mark.parametrize("chain", [False, True])
def test_effects_are_those_of_which_residuals_show_what_they_do(chain, seed):
    """Of units in two neighbouring rows, or in any two; noise in concurrences is taken off."""
    rng, n_rows, n_units, noise, sigma = np.random.default_rng(seed), 8, 4000, 0.01, 15.0
    first = rng.integers(n_rows - 1, size=n_units)
    second = first + 1 if chain else (first + rng.integers(1, n_rows, size=n_units)) % n_rows
    sums = np.zeros((n_rows, n_rows))
    for pair in ((first, second), (second, first)):
        np.add.at(sums, pair, 0.5**0.5)
    shares = sums.sum(axis=1) / sums.sum()
    known = Concurrences.of_sums(sums, 0.0, sums.sum(axis=1))
    residuals = np.eye(n_rows) - sums / sums.sum(axis=1, keepdims=True)
    shown, squares, errors = known.shown(np.ones(n_rows)), [], []
    for _ in range(40):
        effects = rng.standard_normal(n_rows)
        effects -= shares @ effects
        np.testing.assert_allclose(shown @ effects, (1 - shares) * (residuals @ effects))
        seen = shown @ effects + noise * rng.standard_normal(n_rows)
        noises = np.full(n_rows, noise**2)
        means, covariances, _ = solved(shown, seen, noises, np.zeros(n_rows), 1.0)
        squares.append((means - effects) ** 2 / covariances.diagonal())
        noisy = sums + sigma * rng.standard_normal(sums.shape)
        np.fill_diagonal(noisy, 0.0)
        raw, found = (
            Concurrences.of_sums(noisy, of_noise, sums.sum(axis=1)) for of_noise in (0.0, sigma)
        )
        errors.append([np.linalg.norm(one.excess - known.excess) for one in (raw, found)])
    # In a chain one slow direction makes most of the errors of a fit.
    assert chi2.ppf(1e-5, 40) / 40 < np.mean(squares) < chi2.isf(1e-5, 40) / 40
    # Noise of means with the transpose is less; most directions of a chain stand out of it.
    of_raw, of_found = np.mean(errors, axis=0)
    assert of_found < (0.98 if chain else 0.75) * of_raw


def panel(seed, *items, n=900, n_months=12, rise=3.0):
    """Values of persons who stay for two or three months, of half of the items, or one to three."""
    rng = np.random.default_rng(seed)
    months = np.arange(n_months) - rng.integers(-2, n_months, n)[:, None]
    seen = (months >= 0) & (months < rng.integers(1 if items else 2, 4, n)[:, None])
    for length in items:
        seen = seen[:, None] & (rng.random((n, length, n_months)) < 0.5)
    X = np.argwhere(seen)
    y = 5 + rise * (X[:, -1] / (n_months - 1) - 0.5) + 0.8 * rng.standard_normal(n)[X[:, 0]]
    return X, np.clip(y + 0.6 * rng.standard_normal(len(X)), 0, 10), seen.shape


@pytest.mark.parametrize("items", [(), pytest.param((12,), marks=pytest.mark.nightly)], ids=str)
def test_errors_of_changes_hold_where_few_persons_compare_the_ends(items, seed):
    """Noise hides how few: by one law of it changes were half as large, two to three errors off."""
    n_fits, squares, stated = 12 if items else 20, [], []
    for number in range(n_fits):
        X, y, shape = panel(100 * seed + number, *items)
        model = PrivateCPCompletion(0, bounds=(0, 10), shape=shape, unit_mode=0, epsilon=4)
        with unsafe_seeded_noise(100 * seed + number):
            model.fit(X, y)
        assert "row_concurrences" in {row.name for row in model.privacy_report_.rows}
        change = np.diff(model.biases_[-1][[0, -1]]).item()
        stated.append(np.hypot(*model.bias_errors_[-1][[0, -1]]))
        squares.append(((change - 3) / stated[-1]) ** 2)
    # If errors are as stated, squares are those of a normal z at most: posteriors are wide.
    assert np.mean(squares) < chi2.isf(1e-5, n_fits) / n_fits
    assert np.median(stated) < 5  # half the width of the bounds


@pytest.mark.parametrize(
    ("elsewhere", "each", "alone"),
    [(0.0, 3, "rows of mode 2 apart"), (0.1, 3, None), (0.0, 1, "rows apart")],
)
def test_reports_say_where_persons_with_one_row_tell_rows_apart(elsewhere, each, alone, seed):
    """Of visits to four shops, by persons who keep to one; or of one item by each person."""
    rng, n = np.random.default_rng(seed), 4000
    persons, shops = np.repeat(np.arange(n), each), rng.integers(0, 4, n)
    strayed = rng.random(n * each) < elsewhere
    shops = np.where(strayed, rng.integers(0, 4, n * each), shops[persons])
    X = np.column_stack([persons, np.tile(np.arange(each), n), shops])
    X, shape = (X, (n, 3, 4)) if each > 1 else (X[:, [0, 2]], (n, 4))
    model = PrivateCPCompletion(0, bounds=(1, 5), shape=shape, unit_mode=0, epsilon=4.0)
    with unsafe_seeded_noise(seed), warnings.catch_warnings(record=True, action="always") as warned:
        notes = model.fit(X, rng.uniform(1, 5, len(X))).privacy_report_.notes
    said = [note for note in notes if note.endswith(ALONE)]
    assert said == [str(w.message) for w in warned if str(w.message).endswith(ALONE)]
    assert len(said) == (alone is not None)
    # All of the weight, but for noise.
    assert alone is None or int(re.search(rf"{alone} (\d+)% is", said[0])[1]) > 85
    assert not any("noise hides how" in note for note in notes)
    assert [note.replace("rows", "items") for note in said] == on_items(notes)
