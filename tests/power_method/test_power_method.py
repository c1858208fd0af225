"""What released components say of samples: probabilities, clusters, criteria, reconstructions."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import columns_out
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from small_samples import directions, model, orthonormal_rows

from sktensor_dp import DoubtfulParameterWarning, PrivateTensorPowerMethod
from sktensor_dp.tensor import symmetric_outer_sum

MEANS = 5.0 * np.eye(3)


def released(moment, components, weights, variances=None, **options):
    found = PrivateTensorPowerMethod(len(components), moment=moment, **options)
    found.components_, found.weights_ = np.asarray(components, float), np.asarray(weights, float)
    found._n_features_out, found.n_features_in_ = found.components_.shape
    if variances is not None:
        found.covariances_ = np.asarray(variances, float)
    return found


@pytest.fixture
def points():
    shares, variances = [0.5, 0.3, 0.2], [0.25, 1.0, 2.25]
    return released("gaussian_mixture", MEANS, shares, variances, random_state=0, data_norm=9.0)


def test_samples_are_of_the_mixture_and_are_told_apart(points):
    X, chosen = points.sample(20_000)
    # Shares have deviations below .0036: six of them.
    np.testing.assert_allclose(np.bincount(chosen) / 20_000, points.weights_, atol=0.022)
    for component in range(3):
        own = X[chosen == component]
        # 4000 samples at least, of a deviation of 1.5 at most: .024, six of them.
        np.testing.assert_allclose(own.mean(axis=0), points.components_[component], atol=0.15)
        spread = (own - points.components_[component]).var()
        # Relative deviation of a variance of 12,000 numbers: .013, six of them.
        assert spread == pytest.approx(points.covariances_[component], rel=0.08)
    assert adjusted_rand_score(points.predict(X), chosen) > 0.9
    np.testing.assert_array_equal(points.predict(X), points.transform(X).argmax(axis=1))
    np.testing.assert_array_equal(points.sample(50)[1], points.sample(50)[1])
    with pytest.raises(ValueError, match="n_samples"):
        points.sample(0)


@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize("epsilon", [1.0, np.inf])
def test_groups_beyond_those_asked_for_are_counted(seed, epsilon, tmp_path):
    """Of 280 fits 2 % counted more than there are: more than three of ten, one in 30,000 runs."""
    rng, n_false = np.random.default_rng(seed), 0
    options = {"moment": "gaussian_mixture", "epsilon": epsilon, "data_norm": 10.0}
    for _ in range(10):
        X = 5 * np.eye(4, 6)[rng.integers(4, size=5000)] + rng.standard_normal((5000, 6))
        n_false += PrivateTensorPowerMethod(4, **options).fit(X).n_components_seen_ > 4
    assert n_false <= 3
    said = r"At least [4-6] groups can be seen .* 2 were asked for"
    with pytest.warns(DoubtfulParameterWarning, match=said):
        model = PrivateTensorPowerMethod(2, **options).fit(X)
    model.save(tmp_path / "groups.model")
    loaded = PrivateTensorPowerMethod.load(tmp_path / "groups.model")
    assert loaded.n_components_seen_ == model.n_components_seen_ >= 4
    assert loaded.privacy_report_.notes[0].startswith(f"At least {model.n_components_seen_} groups")


def test_answers_of_a_mixture_are_those_of_scikit_learn(points):
    X, _ = points.sample(500)
    other = GaussianMixture(3, covariance_type="spherical")
    other.weights_, other.means_ = points.weights_, points.components_
    other.covariances_ = points.covariances_
    other.precisions_cholesky_ = points.covariances_**-0.5
    for rows in (X, sp.csr_array(X)):
        np.testing.assert_allclose(points.transform(rows), other.predict_proba(X), atol=1e-9)
        assert points.score(rows) == pytest.approx(other.score(X), rel=1e-9)


def test_projections_and_score_of_raw_moments():
    X = directions(20_000, 6, 3, np.random.default_rng(0))[0]
    fitted, X = model(epsilon=5.0).fit(X), X[:40]
    np.testing.assert_allclose(np.linalg.norm(fitted.components_, axis=1), 1.0)
    np.testing.assert_allclose(fitted.transform(X), X @ fitted.components_.T)
    T = symmetric_outer_sum(np.full(len(X), 1 / len(X)), X)
    found = symmetric_outer_sum(fitted.weights_, fitted.components_)
    gain = np.sum(T**2) - np.sum((T - found) ** 2)
    for rows in (X, sp.csr_array(X)):
        assert fitted.score(rows) == pytest.approx(gain)


def test_projections_lead_back():
    rng = np.random.default_rng(0)
    for components in (orthonormal_rows(3, 6, rng), rng.normal(size=(3, 6))):
        fitted = released("raw", components, [3, 2, 1], data_norm=1.0)
        inside, any_ = rng.normal(size=(5, 3)) @ components, rng.normal(size=(5, 6))
        np.testing.assert_allclose(fitted.inverse_transform(fitted.transform(inside)), inside)
        shown = fitted.inverse_transform(fitted.transform(any_))
        # The shortest sample with these projections.
        np.testing.assert_allclose(fitted.transform(shown), fitted.transform(any_))
        assert (np.linalg.norm(shown, axis=1) < np.linalg.norm(any_, axis=1)).all()
    with pytest.raises(ValueError, match="3 columns, one per component; got 2"):
        fitted.inverse_transform(np.ones((2, 2)))


@pytest.mark.parametrize("name", ["predict", "sample", "inverse_transform"])
def test_methods_are_there_where_they_make_sense(name):
    for moment in ("raw", "gaussian_mixture"):
        there = (moment == "raw") == (name == "inverse_transform")
        assert hasattr(PrivateTensorPowerMethod(moment=moment), name) == there
    lacking = PrivateTensorPowerMethod(
        moment="gaussian_mixture" if name == "inverse_transform" else "raw"
    )
    with pytest.raises(AttributeError, match="has no attribute") as caught:
        getattr(lacking, name)
    assert f"got {lacking.moment!r}" in str(caught.value.__cause__)


def test_labels_of_what_computes_later(points):
    dask = pytest.importorskip("dask.array")
    X = points.sample(60)[0]
    columns_out(points, 3)
    later = points.set_output(transform="pandas").predict(dask.from_array(X, chunks=(20, 3)))
    assert later.dtype == np.intp
    np.testing.assert_array_equal(later.compute(), points.predict(X))
