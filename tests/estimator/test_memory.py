"""Public numbers that memory cannot hold are refused before anything is charged."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp import (
    BudgetAccountant,
    PrivateCPCompletion,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)
from sktensor_dp.estimator.parameters import memory_size
from sktensor_dp.power_method import plan
from sktensor_dp.privacy.execution import ThreadedPartitions
from sktensor_dp.tensor import symmetric

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


GIGABYTE = 1e9


@pytest.fixture(autouse=True)
def _one_machine(memory_of):
    """The same memory wherever the tests run."""
    memory_of(8 * GIGABYTE)


TIMES = np.column_stack([np.arange(50) % 5, 1_700_000_000 + 60 * np.arange(50)])
CUBE, WIDE = np.argwhere(np.ones((6, 5, 4))), np.argwhere(np.ones((2,) * 4)).repeat(10, axis=1)
BIG, BOTH = {"shape": (5, 2 * 10**9)}, (PrivateCPCompletion, PrivateTuckerCompletion)
TOO_LONG = [
    *((kind, TIMES, {"perturbation": way}, "which has 1700002946 rows, .* consecutive numbers from")
      for kind in BOTH for way in ("auto", "input", "sufficient_statistics", "gradient", "output")),
    *((kind, TIMES % 50, {"unit_mode": mode, **BIG}, "which has 2000000005 rows")
      for kind in BOTH for mode in (0, 1)),
    (PrivateCPCompletion, CUBE, {"rank": 10**9, "perturbation": "input"}, "at rank=1000000000 "),
    (PrivateTuckerCompletion, WIDE, {"perturbation": "input"}, "which has 80 rows, at rank=2"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "X", "parameters", "message"), TOO_LONG, ids=lambda _: "")
def test_rows_ranks_and_cores_that_memory_cannot_hold_are_refused(model, X, parameters, message):
    given = {"rank": 2, "accountant": BudgetAccountant(100.0, 1e-4), **parameters}
    estimator = model(bounds=(0, 1), **given)
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, np.zeros(len(X)))
    assert estimator.accountant.entries == ()
    assert not hasattr(estimator, "shape_")


SECOND = {"data_norm": 1.0, "perturbation": "whitened_tensor"}
THIRD = {"data_norm": 1.0, "perturbation": "moment_tensor", "whiten": False}
TOO_WIDE = [
    (PrivateSpectralLDA, {}, 10**9),
    (PrivateSpectralLDA, {"epsilon": 1e9, "n_refinements": 0}, 10**6),
    (PrivateTensorPowerMethod, {"moment": "single_topic"}, 10**9),
    (PrivateTensorPowerMethod, SECOND, 10**6),
    (PrivateTensorPowerMethod, {**SECOND, "moment": "gaussian_mixture"}, 10**6),
    (PrivateTensorPowerMethod, {**SECOND, "epsilon": np.inf}, 10**6),
    (PrivateTensorPowerMethod, THIRD, 2000),
    (PrivateTensorPowerMethod, {"data_norm": 1.0}, 10**9),
    (PrivateTensorPowerMethod, {"data_norm": 1.0, "perturbation": "iteration"}, 10**9),
]


@pytest.mark.parametrize("method", ["fit", "partial_fit", "fit_chunks"])
@pytest.mark.parametrize(("model", "parameters", "n_features"), TOO_WIDE)
def test_features_that_memory_cannot_hold_are_refused(model, parameters, n_features, method):
    estimator = model(2, accountant=BudgetAccountant(100.0, 1e-4), **parameters)
    if not hasattr(estimator, method):
        return  # as its parameters decide
    X: Any = sp.csr_array((60, n_features), dtype=np.int64)
    size = {"n_samples": 60, "n_features": n_features} if method == "fit_chunks" else {}
    # Chunks of so many features can be batches of a stream, which is to be asked for.
    with pytest.raises(ValueError, match=f"fit of {n_features} features .* GB of memory"):
        getattr(estimator, method)([X] if size else X, **size)
    assert estimator.accountant.entries == ()
    assert not hasattr(estimator, "components_")


def test_pairs_of_words_are_counted_as_often_as_they_are_held(memory_of):
    """A sum, its rest and a part of it: 3 d^2 numbers, which the message says before a charge."""
    memory_of(2.3 * GIGABYTE)
    model = PrivateSpectralLDA(2, epsilon=1e9, n_refinements=0, accountant=BudgetAccountant())
    X = ThreadedPartitions([sp.csr_array((60, 50_000), dtype=np.int64)], 1)
    with pytest.raises(ValueError, match=r"needs about 60 GB of memory; there are 2\.3"):
        model.fit_chunks(X, n_samples=60, n_features=50_000)
    assert model.accountant.entries == ()


MOMENTS = [
    *(({}, k, d) for k, d in ((3, 30), (3, 300), (40, 60), (90, 90))),
    *(({"moment": "gaussian_mixture"}, 3, d) for d in (30, 300)),
    *(({"perturbation": "moment_tensor"}, k, d) for k, d in ((3, 300), (90, 90))),
    *(({"perturbation": "moment_tensor", "whiten": False}, 3, d) for d in (31, 95)),
    *(({"perturbation": way, "max_iter": 2}, 3, d) for way in plan.BY_STEPS for d in (30, 10_000)),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("parameters", "k", "d"), MOMENTS)
@pytest.mark.parametrize("epsilon", [1.0, 1e6])
def test_moments_take_no_more_memory_than_is_checked(parameters, k, d, epsilon, monkeypatch):
    checked = []
    monkeypatch.setattr(plan, "check_feasible", lambda numbers, *_: checked.append(numbers))
    X = np.random.default_rng(0).standard_normal((50, d)) / d**0.5
    model = PrivateTensorPowerMethod(k, data_norm=2.0, epsilon=epsilon, **parameters)
    symmetric.sorted_triples.cache_clear()
    tracemalloc.start()
    try:
        model.fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 8 * max(checked)


def test_what_fits_is_not_refused():
    """Rows without entries cost memory and nothing else."""
    X = np.column_stack([np.arange(50) % 5, 1000 * np.arange(50)])
    model = PrivateCPCompletion(1, bounds=(0, 1), perturbation="sufficient_statistics").fit(
        X, np.zeros(50)
    )
    assert model.shape_ == (5, 49001)
    assert np.isfinite(model.predict(X)).all()


def test_memory_is_that_of_the_machine_or_the_process(memory_of):
    memory_of(2**60)
    assert 2**26 < memory_size() <= 2**50
    memory_of(12345)
    assert memory_size() == 12345
