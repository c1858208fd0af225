"""What fits and streams read, how often, and what they are charged and noised for."""

import math
import pickle
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from internals import chunks_of
from small_samples import INF, directions, model, seeded

from sktensor_dp import (
    BudgetAccountant,
    NotEnoughDataWarning,
    PrivateCountVectorizer,
    PrivateTensorPowerMethod,
)
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.queries.samples import PowerIterations
from sktensor_dp.tensor.power_method import OnlinePowerMethod
from sktensor_dp.tensor.symmetric import n_unique

# The data is too small for anything but these tests, and fits say so.
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")

N, D = 240, 7
STREAM = {"perturbation": "stream", "max_iter": 3}
BATCHES = np.array_split(np.arange(N), 16)


def build(options: dict[str, Any]) -> PrivateTensorPowerMethod:
    defaults = {"n_components": 3, "data_norm": 2.0, "n_restarts": 4}
    return PrivateTensorPowerMethod(**{**defaults, **options})


def fit_whole(estimator: Any, X: np.ndarray) -> Any:
    return estimator.fit(X)


def fit_a_generator(estimator: Any, X: np.ndarray) -> Any:
    return estimator.fit_chunks(X[rows] for rows in BATCHES)


def fit_in_batches(estimator: Any, X: np.ndarray) -> Any:
    for rows in BATCHES:
        estimator.partial_fit(X[rows])
    return estimator


@pytest.mark.parametrize("fit", [fit_whole, fit_a_generator, fit_in_batches])
def test_a_stream_reads_every_sample_once(fit, seed):
    X = np.random.default_rng(seed).standard_normal((N, D))
    with chunks_of(PowerIterations) as read:
        fitted = fit(build(STREAM), X)
    rows = np.vstack([chunk.X for chunk in read])
    assert len(read) == 16
    np.testing.assert_array_equal(np.unique(rows, axis=0), np.unique(X, axis=0))
    assert len(rows) == N
    # In another order than they came, which need not be random, unless the caller made batches.
    assert (fit is fit_whole) == (rows != X).any()
    (row,) = fitted.privacy_report_.rows
    assert row.uses == 16
    assert row.sensitivity == pytest.approx(2 * 2.0**3 / 15)
    assert fitted.privacy_report_.epsilon == pytest.approx(1.0, rel=1e-9)


def test_how_rows_are_split_does_not_depend_on_them(seed):
    """The row that is replaced, the last by size and then the first, keeps its place."""
    X = np.arange(N * D, dtype=float).reshape(N, D)
    with chunks_of(PowerIterations) as read:
        for data in (X, np.where(np.arange(N)[:, None] == N - 1, -1e9, X)):
            build({**STREAM, "random_state": seed}).fit(data)
    batches = [chunk.X for chunk in read]
    first, second = batches[:16], batches[16:]
    changed = [(one != two).any(axis=1).sum() for one, two in zip(first, second, strict=True)]
    assert sorted(changed)[-2:] == [0, 1]


@pytest.mark.parametrize("n_samples", [3, 16, 17])
def test_a_small_batch_has_a_large_sensitivity(n_samples, seed):
    X = np.random.default_rng(seed).standard_normal((n_samples, D))
    fitted = build(STREAM).fit(X)
    sizes = [len(part) for part in np.array_split(np.arange(n_samples), min(16, n_samples))]
    rows = fitted.privacy_report_.rows
    assert sum(row.uses for row in rows) == len(sizes)
    expected = sorted({2 * 8 / size for size in sizes})
    assert sorted(row.sensitivity for row in rows) == pytest.approx(expected)
    assert math.isclose(max(row.mu for row in rows), min(row.mu for row in rows))


def test_a_tensor_s_noise_is_that_of_its_bound():
    """Starts are the same, so that nothing else differs in the first step."""
    first = []
    for bound in (1.0, 0.25):
        fitted = build({"data_norm": bound, "random_state": 1}).fit_tensor(np.zeros((D, D, D)))
        first.append(fitted.privacy_report_.rows[0].sensitivity)
        assert (
            f"{bound:g} in each of the six orders of one entry" in fitted.privacy_report_.guarantee
        )
    assert first[0] == pytest.approx(4 * first[1])
    # Of four unit starts: all entries of one size, or all one basis vector.
    assert 6 * math.sqrt(4) / D <= first[0] <= 6 * math.sqrt(4)


def test_features_cap_components():
    X = np.random.default_rng(0).standard_normal((500, 2))
    for parameters in ({}, {"perturbation": "iteration"}, {"perturbation": "stream"}):
        with pytest.warns(UserWarning, match="n_components=5 exceeds the 2 features"):
            fitted = model(5, **parameters).fit(X)
        assert fitted.n_components_ <= 2
    with pytest.warns(UserWarning, match="exceeds the 2 features"):
        assert len(model(5).fit_tensor(np.zeros((2, 2, 2))).components_) == 2


@pytest.mark.parametrize("perturbation", ["whitened_tensor", "moment_tensor", "stream"])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_plans_say_what_a_fit_releases(perturbation, delta):
    raw = directions(20_000, 6, 3, np.random.default_rng(0))[0]
    estimator = model(perturbation=perturbation, delta=delta, epsilon=8.0)
    plan = estimator.forecast(*raw.shape)
    report = seeded(lambda: estimator.fit(raw)).privacy_report_
    exact = {"second_moments", "third_moments"}
    sigmas = {row.name: row.sigma for row in report.rows}
    for row in plan.releases:
        assert row.name in sigmas
        if row.name in exact:
            # Reports have the mean radius per dimension of spherical noise.
            dimension = n_unique(6, 2 if row.name == "second_moments" else 3)
            spread = 1 if delta else np.sqrt(dimension + 1)
            assert row.sigma == pytest.approx(spread * sigmas[row.name])
    assert plan.enough
    assert not estimator.forecast(5, 6).enough
    assert f"{len(raw):,} samples: enough" in str(plan)


def batches(n, count, d=6, seed=0):
    return np.array_split(directions(n, d, 3, np.random.default_rng(seed))[0], count)


def test_progress_is_counted():
    parts = batches(3000, 30)
    estimator = model(max_iter=4)
    for number, X in enumerate(parts, 1):
        estimator.partial_fit(X)
        assert estimator.n_batches_seen_ == number
        assert estimator.n_batches_needed_ == 15
        assert estimator.is_complete_ == (number >= 15)
        assert estimator.n_components_ == min(1 + (number // 5), 3)
        assert estimator.transform(X).shape == (len(X), estimator.n_components_)
    assert estimator.privacy_report_.n_units == 3000
    assert estimator.privacy_report_.epsilon == pytest.approx(1.0)


def test_exact_stream_is_the_online_power_method():
    parts = batches(2000, 12)
    estimator = model(epsilon=INF, max_iter=3)
    # The estimator hands on the legacy generator that scikit-learn makes of a seed.
    method = OnlinePowerMethod.begin(6, 3, max_iter=3, random_state=np.random.RandomState(0))
    for X in parts:
        estimator.partial_fit(X)
        scales = np.minimum(1, 1 / (NORM_SLACK * np.linalg.norm(X, axis=1)))
        clipped = X * scales[:, None]
        U = method.columns_asked()
        method.tell(clipped.T @ (clipped @ U) ** 2 / len(X), n_samples=len(X))
        weights, vectors = method.components()
        np.testing.assert_allclose(estimator.components_, vectors, atol=1e-8)
        np.testing.assert_allclose(estimator.weights_, weights, atol=1e-8)


def test_no_batches_where_all_data_is_needed():
    parts = batches(200, 1)
    with pytest.raises(AttributeError, match="partial_fit"):
        model(perturbation="iteration").partial_fit(parts[0])


@pytest.mark.parametrize("k", [1, 3])
def test_streams_of_a_table_have_the_noise_that_is_forecast(k):
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (8000, 3))
    model = PrivateTensorPowerMethod(k, perturbation="stream", max_iter=4, epsilon=2.0, data_norm=1)
    (forecast,) = model.forecast(*X.shape).releases
    rows = model.fit(X).privacy_report_.rows
    # Batches differ by one row at most.
    assert max(row.sigma for row in rows) == pytest.approx(forecast.sigma, rel=0.01)


def test_a_short_stream_says_so():
    parts = batches(500, 5)
    with pytest.warns(NotEnoughDataWarning, match="5 batches; 33 are needed"):
        model(max_iter=10).fit_chunks(parts)
    with pytest.raises(ValueError, match="none"):
        model().fit_chunks([])


def test_a_complete_stream_says_what_noise_hides():
    estimator = model(max_iter=1, epsilon=0.1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for X in batches(600, 7):
            estimator.partial_fit(X)
    said = [one for one in caught if "above their noise; 3 were fitted" in str(one.message)]
    assert estimator.n_batches_needed_ == 6
    assert len(said) == len(caught) == 2  # by the last batch that was needed, and by one more


def test_memory_is_linear_in_the_number_of_features():
    """At most 20 arrays of d (k + L) numbers beside a sparse batch."""
    d, k, n_restarts = 20_000, 5, 20
    batch = sp.random(2000, d, 50 / d, format="csr", random_state=np.random.default_rng(0))
    estimator = model(k, n_restarts=n_restarts, max_iter=1).partial_fit(batch)
    tracemalloc.start()
    for _ in range(10):
        estimator.partial_fit(batch)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 20 * d * (k + n_restarts) * 8
    assert len(pickle.dumps(estimator)) <= 3 * d * (k + n_restarts) * 8


@pytest.mark.parametrize(
    ("groups", "match"),
    [(None, "given to both fits"), (np.arange(600), "vocabulary of 300 groups")],
)
@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
def test_streams_of_counts_protect_whom_the_vocabulary_protects(fit, groups, match):
    owners, budget = np.repeat(np.arange(300), 2), BudgetAccountant(9.0)
    vectorizer = PrivateCountVectorizer(epsilon=INF)
    counted = vectorizer.fit_transform(["two words"] * 600, groups=owners)
    with pytest.raises(ValueError, match=match):
        getattr(build({**STREAM, "accountant": budget}), fit)(counted, groups=groups)
    assert not budget.entries
