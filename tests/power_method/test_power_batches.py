"""What a fit reads, in which order and how often, and what it is charged and noised for."""

import math
from typing import Any

import numpy as np
import pytest
from internals import reads

from sktensor_dp import PrivateTensorPowerMethod

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


def rows_of(chunks: list[Any]) -> np.ndarray:
    return np.vstack([chunk.X for chunk in chunks])


@pytest.mark.parametrize("fit", [fit_whole, fit_a_generator, fit_in_batches])
def test_a_stream_reads_every_sample_once(fit, seed):
    X = np.random.default_rng(seed).standard_normal((N, D))
    with reads() as read:
        fitted = fit(build(STREAM), X)
    rows = np.vstack([rows_of(chunks) for chunks in read])
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
    with reads() as read:
        for data in (X, np.where(np.arange(N)[:, None] == N - 1, -1e9, X)):
            build({**STREAM, "random_state": seed}).fit(data)
    batches = [rows_of(chunks) for chunks in read]
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
