"""Persons fold in their own entries, also by components of released pairs."""

import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.metrics import r2_score
from small_completions import INF, MODELS, ONE_BY_DAY, PERTURBATIONS, SLICE, X0, Y0, build, table

from sktensor_dp import PrivateCPCompletion, PrivateTuckerCompletion, unsafe_seeded_noise
from sktensor_dp.completion import defaults
from sktensor_dp.completion.plan import loss_by_pairs, plan_entries
from sktensor_dp.tensor.column_pairs import components_of_pairs

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:Some values are outside of the bounds"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning"),
]

all_models = pytest.mark.parametrize("model", MODELS)
SUMS = "sufficient_statistics"


@all_models
@pytest.mark.parametrize("shape", [(30, 8), (30, 8, 6)], ids=str)
@pytest.mark.parametrize(
    "perturbation",
    ["auto", "slice", *(pytest.param(way, marks=pytest.mark.nightly) for way in PERTURBATIONS)],
)
def test_persons_that_a_fit_never_saw_fold_in(perturbation, shape, model):
    """They are told from each other by their own entries."""
    X, y, _ = table((40, *shape[1:]))
    known = X[:, 0] < 30
    how = {"unit_mode": 0} if perturbation == "slice" else {"perturbation": perturbation}
    fitted = build(model, epsilon=INF, shape=shape, **how).fit(X[known], y[known])
    own = fitted.fold_in(X[~known], y[~known])
    np.testing.assert_array_equal(own.units, np.arange(30, 40))
    error = np.mean((own.predict(X[~known]) - y[~known]) ** 2)
    unknown = np.column_stack([np.full(np.sum(~known), -1), X[~known, 1:]])
    assert error < 0.9 * np.mean((fitted.predict(unknown) - y[~known]) ** 2)
    assert np.isfinite(fitted.fold_in([[0, *[-1] * (len(shape) - 1)]], [1.0]).parameters).all()


@all_models
def test_without_noise_to_fold_in_is_to_predict(model):
    """Rows of the fit's own persons, found again from their entries and the other factors."""
    X, y, _ = table((40, 8, 6))
    y = np.clip(y, -4, 4)
    fitted = build(model, epsilon=INF).fit(X, y)
    own = fitted.fold_in(X, y)
    found = own.predict(X)
    assert own.score(X, y) == pytest.approx(r2_score(y, found))
    # Ridges of the two differ, and slopes are a unit's own; errors of either are alike.
    spread = np.mean((fitted.predict(X) - y) ** 2)
    assert np.mean((found - y) ** 2) < 1.1 * spread + 1e-6


N, D, SIZE = 12_000, 30, 0.5
KINDS = pytest.mark.parametrize("kind", [PrivateCPCompletion, PrivateTuckerCompletion])


def answers(seed, size=SIZE):
    rng = np.random.default_rng(seed)
    T = 0.8 * rng.standard_normal((N, 1)) + 0.3 * rng.standard_normal(D)
    T = T + size * rng.standard_normal((N, 2)) @ rng.standard_normal((2, D))
    T = 1.6 * (T + 0.5 * rng.standard_normal((N, D)))
    X = np.argwhere(rng.random((N, D)) < 0.9)
    y, test = T[tuple(X.T)], rng.random(len(X)) < 0.1
    return (X[~test], y[~test]), (X[test], y[test])


def fitted(data, seed, kind=PrivateCPCompletion, **options):
    model = kind(4, bounds=(-4, 4), shape=(N, D), random_state=seed, **options)
    with unsafe_seeded_noise(seed):
        return model.fit(*data)


def error(found, truth):
    return float(np.sqrt(np.mean((found - truth) ** 2)))


def names(model):
    return [row.name for row in model.privacy_report_.rows]


@pytest.mark.parametrize("kind", ONE_BY_DAY)
def test_persons_fold_in_components_that_predictions_lack(kind, seed):
    data, test = answers(seed)
    model, sums = fitted(data, seed, kind), fitted(data, seed, kind, perturbation=SUMS)
    assert names(model) == ["row_sums", "entry_pairs"]
    assert names(sums) == ["row_sums"]
    folded, plain = (
        error(of.fold_in(*data).predict(test[0]), test[1]) for of in (model, sums)
    )  # fmt: skip
    # Exact components leave 1.6 times .5 of the deviation about biases of sqrt(.5^2 + 2 .5^2),
    # which is .87; a person's weights, of 24 entries, add a tenth to it, and clipping a little.
    assert folded < 0.8 * plain
    # Noise of a level, of 26 values, has variance 2 (8 / 26)^2 = .19, and 2 / 12 of that more
    # where a twelfth of epsilon is missing: .03 of 2.1, .8 % of the error. Levels vary by more
    # than the plan assumes, or it would be a part of that.
    lost = error(model.predict(test[0]), test[1]) / error(sums.predict(test[0]), test[1]) - 1
    assert lost < 0.012


def test_residuals_beside_components_vary_as_values_do(seed):
    """Two-valued answers deviate by twice what is assumed."""
    rng, shape = np.random.default_rng(seed), (15_000, 30)
    X = np.argwhere(rng.random(shape) < 0.5)
    signs = np.where(np.arange(shape[1]) % 2, 1, -1)
    y = 0.5 * rng.standard_normal(shape[1])[X[:, 1]]
    y += 0.6 * rng.standard_normal(shape[0])[X[:, 0]] * signs[X[:, 1]]
    y = (y + 0.6 * rng.standard_normal(len(X)) > 0).astype(float)
    model = PrivateCPCompletion(3, bounds=(0, 1), shape=shape, epsilon=2.0)
    with unsafe_seeded_noise(seed):
        model.fit(X, y)
    assert names(model) == ["row_sums", "entry_pairs"]
    assert model.n_components_ > 0
    assert model._shared.noise_variance > 0.08  # of .25 in all


def test_attributes_show_what_was_found(seed):
    data, _ = answers(seed)
    model = fitted(data, seed)
    people, items = model.factors_
    assert not people.any()
    assert items.shape == (D, len(model.weights_))
    assert 1 <= len(model.weights_) <= 4
    assert (np.diff(model.weights_) <= 1e-12).all()
    np.testing.assert_allclose(np.linalg.norm(items, axis=0), 1.0)
    # Nobody's weights are known: predictions are mean and biases.
    X = data[0][:50]
    expected = model.mean_ + model.biases_[0][X[:, 0]] + model.biases_[1][X[:, 1]]
    np.testing.assert_allclose(model.predict(X), np.clip(expected, -4, 4))
    assert model.similar_rows(1, 3, 2).rows.shape == (1, 2)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("epsilon", [0.7, 1.0])
def test_the_plan_costs_what_was_asked_for(epsilon, delta):
    known = {"epsilon": epsilon, "delta": delta, "perturbation": "auto", "max_iter": None}
    n = 10**6 if delta else 10**8
    plan = plan_entries(20 * n, (n, 40), 4, **known)
    assert plan.with_pairs
    assert plan.seeks_components
    assert plan.releases.cost.epsilon_at(delta) == pytest.approx(epsilon, rel=1e-6)
    sums, pair_sums = plan.releases.planned
    fraction = 1 - sums.cost.epsilon / epsilon
    assert 0 < fraction <= 0.5
    assert loss_by_pairs(20 * n, (n, 40), epsilon, fraction) < defaults.PAIR_LOSS * (1 + 1e-6)
    assert (pair_sums.cost.mu > 0) == (delta > 0)
    # Few rows, wide tables, three modes, another way, no components.
    for n_observed, shape, changed in (
        (2000, (100, 40), {}), (10**8, (10**6, 3000), {}), (10**8, (10**6, 40, 3), {}),
        (10**7, (10**6, 40), {"perturbation": "sufficient_statistics"}),
        (10**7, (40, 10**6), {}),
    ):  # fmt: skip
        other = plan_entries(n_observed, shape, 4, **{**known, **changed})
        assert not other.with_pairs
    assert not plan_entries(20 * n, (n, 40), 0, **known).with_pairs


def pair_sums(seed, counts, noise, k=2):
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((len(counts), k)) * [1.0, 0.6][:k]
    added = np.triu(rng.standard_normal(counts.shape), 1) * noise
    sums = counts * (2.0 * V @ V.T) + added + added.T
    np.fill_diagonal(sums, 0.0)
    return V, sums


def covariance_error(found, V):
    return float(np.linalg.norm(found @ found.T - V @ V.T) / np.linalg.norm(V @ V.T))


def test_components_of_exact_pairs_are_found_without_the_diagonal(seed):
    rng = np.random.default_rng(seed)
    margin = rng.uniform(0.5, 3, 25)
    counts = np.outer(margin, margin) * rng.uniform(0.6, 1.4, (25, 25))
    counts = counts + counts.T
    np.fill_diagonal(counts, 0.0)
    V, sums = pair_sums(seed, counts, 0.0)
    found = components_of_pairs(sums, counts, 2.0, 1e-9, 4)
    # Filling in converges geometrically; twenty steps leave a few percent at the worst of these.
    assert covariance_error(found[:, :2], V) < 0.1


def test_noise_alone_has_no_components(seed):
    counts = np.ones((40, 40)) - np.eye(40)
    _, sums = pair_sums(seed, counts * 1e-9, 1.0)
    # Deviations of the largest eigenvalue from the edge are of the order of 40^(-2/3) / 2 of it.
    assert components_of_pairs(sums, counts, 2.0, 1.1, 4).shape[1] <= 1
    assert components_of_pairs(sums, counts, 2.0, 1.5, 4).shape == (40, 0)


def test_columns_without_entries_have_no_loadings():
    counts = np.ones((12, 12)) - np.eye(12)
    counts[3] = counts[:, 3] = 0.0
    _, sums = pair_sums(0, counts, 0.01)
    found = components_of_pairs(sums, counts, 2.0, 0.01, 2)
    assert not found[3].any()
    assert np.isfinite(found).all()
    assert math.isfinite(covariance_error(found, found))


@pytest.mark.filterwarnings("ignore:No row of X is of a unit that was folded in")
def test_who_was_not_folded_in_gets_what_is_shared():
    X, y, _ = table((30, 8, 6))
    fitted = build(epsilon=INF, **{**SLICE, "shape": (30, 8, 6)}).fit(X, y)
    before = pickle.dumps(fitted)
    new = fitted.fold_in(X[X[:, 0] > 20], y[X[:, 0] > 20])
    assert new.parameters.shape == (9, 3 + fitted.rank)
    np.testing.assert_allclose(new.predict([[2, 3, 1]]), fitted.predict([[2, 3, 1]]))
    assert pickle.dumps(fitted) == before
    none = fitted.fold_in(X[:0], y[:0])
    np.testing.assert_allclose(none.predict(X), fitted.predict(X))
    assert np.isfinite(fitted.fold_in([[0, -1, 1]], [1.0]).predict([[0, -1, 1]])).all()
    with pytest.raises(ValueError, match="integer"):
        new.predict([[0.5, 1, 1]])
    with pytest.raises(ValueError, match="3 columns"):
        new.predict([[0, 1]])


def test_values_that_are_folded_in_are_clamped():
    fitted = build(epsilon=INF, **SLICE).fit(X0, Y0)
    near, far = (fitted.fold_in(X0, v).parameters for v in (np.sign(Y0) * 4, np.sign(Y0) * 1e9))
    np.testing.assert_allclose(near, far)
    with pytest.warns(UserWarning, match="bounds of the fit, -4 to 4, and were clamped") as told:
        fitted.fold_in(X0[:2], [300.25, 1])
    assert "300" not in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.fold_in(X0[:2], [-4, 4])
        # Scores of held-out values are released, and what they were clamped to is not.
        fitted._predict_by_others(X0, 1e9 * Y0)
