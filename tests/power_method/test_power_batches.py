"""Plans and forecasts: what a fit reads, how often, what it is charged and noised for."""

import math
from typing import Any

import numpy as np
import pytest
from internals import chunks_of
from sklearn.base import clone
from small_samples import INF, directions, model, seeded

from sktensor_dp import BudgetAccountant, PrivateSearchCV, PrivateTensorPowerMethod
from sktensor_dp.queries.samples import PowerIterations
from sktensor_dp.tensor.symmetric import n_unique

# The data is too small for anything but these tests, and fits say so.
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")

MIXTURE = {"moment": "gaussian_mixture", "data_norm": 9.0}
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


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_more_gaussians_than_features_are_refused(neighbours):
    X, accountant = np.zeros((50, 2)), BudgetAccountant(10.0, 1e-3)
    mixture = model(3, neighbours=neighbours, **MIXTURE)
    search = PrivateSearchCV(
        clone(mixture), {"n_restarts": [1]}, score_bounds=(-9, 0),
        accountant=accountant,
    )  # fmt: skip
    mixture.set_params(accountant=accountant)
    for call in (lambda: mixture.fit(X), lambda: search.fit(X)):
        with pytest.raises(ValueError, match=r"n_components=3 Gaussians .* 2 features"):
            call()
    assert accountant.entries == ()


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


def test_plans_need_fewer_samples_with_more_budget():
    needed = [
        model(epsilon=eps).forecast(1000, 50).n_samples_needed for eps in (0.1, 1.0, 10.0, INF)
    ]
    assert needed == sorted(needed, reverse=True)
    assert needed[-1] == 3
