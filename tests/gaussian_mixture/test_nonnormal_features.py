"""Columns of few values or with many equal ones beside groups of numbers."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.special import expit
from scipy.stats import norm

from sktensor_dp import PrivateGaussianMixture, scale_by_ranges
from sktensor_dp.gaussian_mixture.fitted import move_to_units
from sktensor_dp.mixtures.gaussians import Gaussians
from sktensor_dp.mixtures.nonnormal import NonnormalColumns

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.exceptions.NotEnoughDataWarning")
WEIGHTS = np.array([0.5, 0.3, 0.2])
RANGES = {"age": (18, 100), "pressure": (80, 220), "hb": (5, 20), "smoker": (0, 1),
          "score": (0, 4), "crp": (1.5, 6.5)}  # fmt: skip
NONNORMAL = dict.fromkeys(["smoker", "score", "crp"], (-1, 1))
RATES = np.array([0.15, 0.45, 0.3])
SCORES = np.array([[70, 15, 8, 5, 2], [35, 25, 20, 10, 10], [20, 15, 20, 25, 20]]) / 100


def patients(rng, n):
    """Scaled rows of three kinds of patients, and scaled means of the kinds.

    Of logs of CRP half and less are at the detection limit.
    """
    kind = rng.choice(3, n, p=WEIGHTS)
    means = np.array([[45, 125, 14.2], [68, 150, 13.2], [75, 128, 10.8]])
    numbers = means[kind] + rng.standard_normal((n, 3)) * [9, 12, 1.1]
    smoker = rng.random(n) < RATES[kind]
    score = (rng.random((n, 1)) > np.cumsum(SCORES, axis=1)[kind]).sum(axis=1)
    levels, z = np.array([1.4, 2.4, 3.6]), norm.ppf((np.arange(10_000) + 0.5) / 10_000)
    crp = np.maximum(levels[kind] + 0.8 * rng.standard_normal(n), 1.6)
    of_crp = np.maximum(levels[:, None] + 0.8 * z, 1.6).mean(axis=1)
    X = pd.DataFrame(np.column_stack([numbers, smoker, score, crp]), columns=[*RANGES])
    means = np.column_stack([means, RATES, SCORES @ np.arange(5), of_crp])
    scaler = scale_by_ranges(RANGES)
    return scaler.fit_transform(X), scaler.fit_transform(pd.DataFrame(means, columns=[*RANGES]))


def test_groups_of_numbers_are_found_beside_columns_of_few_values(seed):
    """Zeros and ones, scores and a detection limit were the groups: no fit found these kinds."""
    held, errors = [], []
    for place in range(3):
        X, means = patients(np.random.default_rng([seed, place]), 10_000)
        model = PrivateGaussianMixture(
            4, data_norm="auto", epsilon=4.0, nonnormal_features=NONNORMAL, random_state=0
        ).fit(X)
        low, high = model.means_interval()
        apart = np.linalg.norm((model.means_[:, None] - means.to_numpy())[:, :, :3], axis=2)
        found, right = linear_sum_assignment(apart)
        means = means.to_numpy()[right]
        assert apart[found, right].max() < 0.15
        errors.append(model.means_[found] - means)
        held.append((low[found] <= means) & (means <= high[found]))
    assert np.sqrt(np.mean(np.square(errors), axis=(0, 1))).max() < 0.1
    assert np.mean(held) > 0.7


def test_a_column_of_two_values_has_the_likelihood_of_its_rates(seed):
    rng, k = np.random.default_rng(seed), 3
    rates = rng.uniform(0.01, 0.99, (k, 2))
    nonnormal = NonnormalColumns(
        np.array([0.0, -1, 0]), np.array([1.0, 1, 0]), np.array([1.0, 1, 0])
    )
    means = np.column_stack([rates * [1, 2] - [0, 1], rng.standard_normal(k)])
    model = Gaussians(np.full(k, 1 / k), means, np.tile(np.eye(3), (k, 1, 1)), nonnormal=nonnormal)
    values = rng.integers(2, size=(50, 2))
    X = np.column_stack([values * [1, 2] - [0, 1], rng.standard_normal(50)])
    observed = rng.random(X.shape) < 0.7
    of_values = np.log(np.where(values[:, None], rates, 1 - rates))
    logs = np.dstack([of_values, norm.logpdf(X[:, None, 2], means[:, 2])])
    expected = np.log(1 / k) + (logs * observed[:, None]).sum(axis=2)
    np.testing.assert_allclose(model.log_joint(np.where(observed, X, 0), observed), expected)
    np.testing.assert_allclose(model.log_joint(X), np.log(1 / k) + logs.sum(axis=2))
    points, groups = (
        model.sample(np.repeat(np.arange(k), 20_000), rng),
        np.repeat([0, 1, 2], 20_000),
    )
    assert set(np.unique(points[:, 0])) == {0, 1}
    assert np.abs(points[groups == 1].mean(axis=0) - means[1]).max() < 0.05


def test_points_of_groups_have_their_means_and_their_regressions(seed):
    """The nearest mixture of fewer groups is fitted to points, and gains are against it."""
    rng = np.random.default_rng(seed)
    nonnormal = NonnormalColumns(*np.array([[0.0, -1, 0, 0], [0.0, 1, 0, 0], [0, 0.4, 0, 0]]))
    covariance = np.eye(4)
    covariance[1, 2] = covariance[2, 1] = 0.3
    model = Gaussians(
        np.ones(1), np.array([[0, -0.4, 1, 2.0]]), covariance[None], nonnormal=nonnormal
    )
    points, weights = model.points(rng)
    means = weights @ points
    np.testing.assert_allclose(means, model.means[0], atol=0.01)
    of_points = (points - means).T @ ((points - means) * weights[:, None])
    np.testing.assert_allclose(of_points[1, [0, 2, 3]], [0, 0.3, 0], atol=0.03)
    # What the column varies by, given others, has 0.4 of the variance of two values.
    assert of_points[1, 1] == pytest.approx(0.3**2 + 0.4 * (1 - 0.4**2 - 0.3**2), abs=0.05)


def test_intervals_of_categories_are_as_wide_as_of_one_column_alone(seed):
    """Categories exclude each other: intervals of all but one were up to ten times as wide."""
    rng, n = np.random.default_rng(seed), 8000
    group, ward = rng.choice(2, n), rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    labs = 0.15 * rng.standard_normal((n, 2)) + np.where(group, 0.4, -0.4)[:, None]
    X = np.column_stack([labs, *(np.where(ward == one, 1, -1) / 3 for one in range(3))])
    ends = dict.fromkeys([2, 3, 4], (-1 / 3, 1 / 3))
    model = PrivateGaussianMixture(
        2, data_norm=1.2, nonnormal_features=ends, epsilon=4.0, random_state=0
    ).fit(X)
    low, high = model.means_interval()
    widths = (high - low)[:, 2:]
    assert widths.max() < 2 * widths.min()
    exact = (2 * np.array([0.4, 0.3, 0.2]) - 1) / 3
    distances = (model.means_[:, 2:] - exact) * 2 * norm.ppf(0.95) / widths
    assert np.abs(distances).max() < -norm.ppf(1e-7)


def test_equal_values_are_no_reason_for_a_group(seed):
    """One cloud: a column of zeros and ones, one of counts, and one that follows another."""
    rng, n = np.random.default_rng(seed), 8000
    X = rng.standard_normal((n, 5))
    X[:, 2] = rng.random(n) < 0.2
    X[:, 3] = np.where(rng.random(n) < 0.7, 0, np.minimum(1 + rng.poisson(2, n), 10))
    X[:, 4] = rng.random(n) < expit(X[:, 0])
    ends = {2: (0, 1), 3: (0, 10), 4: (0, 1)}
    model = PrivateGaussianMixture(3, data_norm=9.0, epsilon=4.0, nonnormal_features=ends)
    # Noise shows a second group in about a tenth of fits: in all three in one of a thousand tests.
    assert any(model.fit(X).n_components_ == 1 for _ in range(3))


def test_a_rate_that_noise_moves_to_an_end_is_expected_before_it(seed):
    """At an end a group has no row with a one: intervals of shares were up to ten times as wide."""
    rng, sigma = np.random.default_rng(seed), 0.04
    columns = NonnormalColumns(-np.ones(1), np.ones(1), np.ones(1))
    true = rng.uniform(-1, 1, 4_000_000)
    released = true + sigma * rng.standard_normal(len(true))
    for at in (-1.05, -1.0, -0.95, 0.3, 1.0):
        alike = true[np.abs(released - at) < 0.005]
        expected = np.tanh(np.arctanh(np.clip(alike, -0.998, 0.998)).mean())
        found = columns.expected(np.array([[at]]), np.array([[sigma]]))
        assert found == pytest.approx(expected, abs=0.003)
        exact = columns.expected(np.array([[at]]), np.zeros((1, 1)))
        assert exact == pytest.approx(np.clip(at, -0.998, 0.998), abs=1e-6)


def test_files_and_units_keep_nonnormal_columns(tmp_path, seed):
    X, _ = patients(np.random.default_rng(seed), 3000)
    model = PrivateGaussianMixture(
        3, data_norm="auto", epsilon=8.0, nonnormal_features=NONNORMAL, random_state=0
    ).fit(X)
    model.save(tmp_path / "groups.model")
    read = PrivateGaussianMixture.load(tmp_path / "groups.model")
    np.testing.assert_array_equal(read.score_samples(X), model.score_samples(X))
    scaler = scale_by_ranges(RANGES)
    units = pd.DataFrame(scaler.inverse_transform(X), columns=[*RANGES])
    expected = model.predict_proba(X)
    move_to_units(model, np.array([*RANGES.values()], dtype=float))
    np.testing.assert_allclose(model.predict_proba(units), expected, atol=1e-6)
    assert set(np.unique(model.sample(50)[0][:, 3])) <= {0.0, 1.0}


@pytest.mark.parametrize(("ends", "type_", "said"), [
    ({"smoker": (1, 0)}, "full", "nonnormal_features.*smoker.*low < high"),
    ({"smokes": (-1, 1)}, "full", "nonnormal_features must map some of the columns.*smokes"),
    (["smoker"], "full", "nonnormal_features"),
    ({"smoker": (1000, 1001)}, "full", "nonnormal_features.*smoker.*reach into"),
    ({"smoker": (0, 1e-9)}, "full", "nonnormal_features.*smoker.*over 0.01% of data_norm"),
    (NONNORMAL, "spherical", "spherical"),
])  # fmt: skip
def test_wrong_nonnormal_features_are_refused_before_the_charge(ends, type_, said, seed):
    X, _ = patients(np.random.default_rng(seed), 200)
    model = PrivateGaussianMixture(2, data_norm=2.0, nonnormal_features=ends, covariance_type=type_)
    with pytest.raises(ValueError, match=said):
        model.fit(X)
    assert not hasattr(model, "privacy_report_")


@pytest.mark.filterwarnings("ignore")  # for these data
@pytest.mark.parametrize("ends", [(1000, 1001), (0, 1e-9)])
def test_ends_that_no_released_norm_allows_end_no_fit_that_was_paid(ends, seed):
    X, _ = patients(np.random.default_rng(seed), 500)
    options = {"data_norm": "auto", "epsilon": 100.0, "nonnormal_features": {"smoker": ends}}
    assert np.isfinite(PrivateGaussianMixture(2, **options).fit(X).means_).all()
