"""What released components say of samples, parameters, and use with scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from small_samples import INF, directions, gaussians, model, seeded, tiny

from sktensor_dp import BudgetAccountant, PrivateSearchCV
from sktensor_dp.tensor import symmetric_outer_sum
from sktensor_dp.tensor.symmetric import n_unique

MIXTURE = {"moment": "gaussian_mixture", "data_norm": 9.0}


@pytest.fixture(scope="module")
def mixture():
    return gaussians(20_000, 6, 3, np.random.default_rng(0))


@pytest.fixture(scope="module")
def fitted_mixture(mixture):
    return seeded(lambda: model(epsilon=5.0, **MIXTURE).fit(mixture[0]))


@pytest.fixture(scope="module")
def raw():
    return directions(20_000, 6, 3, np.random.default_rng(0))[0]


@pytest.fixture(scope="module")
def fitted_raw(raw):
    return model(epsilon=5.0).fit(raw)


def test_responsibilities_and_likelihood_are_those_of_the_densities(fitted_mixture, mixture):
    X = mixture[0][:50]
    density = np.column_stack(
        [
            weight * multivariate_normal(mean, variance * np.eye(6)).pdf(X)
            for weight, mean, variance in zip(
                fitted_mixture.weights_,
                fitted_mixture.components_,
                fitted_mixture.covariances_,
                strict=True,
            )
        ]
    )
    total = density.sum(axis=1)
    np.testing.assert_allclose(fitted_mixture.transform(X), density / total[:, None], atol=1e-9)
    assert fitted_mixture.score(X) == pytest.approx(np.log(total).mean(), rel=1e-9)
    sparse = sp.csr_array(X)
    np.testing.assert_allclose(fitted_mixture.transform(sparse), fitted_mixture.transform(X))


def test_projections_and_score_of_raw_moments(fitted_raw, raw):
    X = raw[:40]
    np.testing.assert_allclose(fitted_raw.transform(X), X @ fitted_raw.components_.T)
    T = symmetric_outer_sum(np.full(len(X), 1 / len(X)), X)
    found = symmetric_outer_sum(fitted_raw.weights_, fitted_raw.components_)
    gain = np.sum(T**2) - np.sum((T - found) ** 2)
    assert fitted_raw.score(X) == pytest.approx(gain)
    assert fitted_raw.score(sp.csr_array(X)) == pytest.approx(gain)
    np.testing.assert_allclose(np.linalg.norm(fitted_raw.components_, axis=1), 1.0)


@tiny
def test_features_cap_components():
    X = np.random.default_rng(0).standard_normal((500, 2))
    for parameters in ({}, {"perturbation": "iteration"}, {"perturbation": "stream"}):
        with pytest.warns(UserWarning, match="n_components=5 exceeds the 2 features"):
            fitted = model(5, **parameters).fit(X)
        assert fitted.n_components_ <= 2
    with pytest.warns(UserWarning, match="exceeds the 2 features"):
        assert len(model(5).fit_tensor(np.zeros((2, 2, 2))).components_) == 2


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_more_gaussians_than_features_are_refused(neighbours):
    X, accountant = np.zeros((50, 2)), BudgetAccountant(10.0, 1e-3)
    mixture = model(3, neighbours=neighbours, **MIXTURE)
    search = PrivateSearchCV(
        clone(mixture), {"n_restarts": [1]}, score_bounds=(-9, 0),
        accountant=accountant,
    )  # fmt: skip
    mixture.set_params(accountant=accountant)
    for call in (
        lambda: mixture.fit(X), lambda: mixture.forecast(50, 2), lambda: search.fit(X)
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"n_components=3 Gaussians .* 2 features"):
            call()
    assert accountant.entries == ()


# Plans


@pytest.mark.parametrize("perturbation", ["whitened_tensor", "moment_tensor", "stream"])
@pytest.mark.parametrize("moment", ["raw", "gaussian_mixture"])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_plans_say_what_a_fit_releases(perturbation, moment, delta, raw):
    if perturbation == "stream" and moment != "raw":
        return
    estimator = model(perturbation=perturbation, moment=moment, delta=delta, epsilon=8.0)
    plan = estimator.forecast(*raw.shape)
    report = seeded(lambda: estimator.fit(raw)).privacy_report_
    exact = {"second_moments", "third_moments"}
    sigmas = {row.name: row.sigma for row in report.rows}
    for row in plan.releases:
        assert row.name in sigmas
        if row.name in exact:
            # Reports have the mean radius per dimension of spherical noise.
            dimension = n_unique(6 + (moment != "raw"), 2 if row.name == "second_moments" else 3)
            spread = 1 if delta else np.sqrt(dimension + 1)
            assert row.sigma == pytest.approx(spread * sigmas[row.name])
    assert plan.enough
    assert not estimator.forecast(5, 6).enough
    assert f"{len(raw):,} samples: enough" in str(plan)


def test_plans_need_fewer_samples_with_more_budget():
    needed = [
        model(epsilon=eps).forecast(1000, 50).n_samples_needed for eps in (0.1, 1.0, 10.0, INF)
    ]
    assert needed == sorted(needed, reverse=True)
    assert needed[-1] == 3


def test_mixtures_need_fewer_samples_the_farther_they_are_apart():
    mixture = model(3, **MIXTURE)
    needed = [mixture.forecast(1000, 6, separation=s).n_samples_needed for s in (3, 4.0, 6)]
    assert needed[0] > mixture.forecast(1000, 6).n_samples_needed == needed[1] > needed[2]
    # Spherical noise of 28 coordinates outweighs Gaussian noise of the same epsilon.
    pure = model(3, delta=0, **MIXTURE).forecast(1000, 6)
    assert pure.releases[0].sigma > mixture.forecast(1000, 6).releases[0].sigma
    for wrong in (0, -1.0, INF, float("nan")):
        with pytest.raises(ValueError, match="separation"):
            mixture.forecast(1000, 6, separation=wrong)
