"""Public numbers that memory cannot hold are refused before anything is charged."""

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
from sktensor_dp.privacy.execution import ThreadedPartitions

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")

MODELS = [PrivateCPCompletion, PrivateTuckerCompletion]
PERTURBATIONS = ["auto", "input", "sufficient_statistics", "gradient", "output"]
GIGABYTE = 1e9


@pytest.fixture(autouse=True)
def _one_machine(memory_of):
    """The same memory wherever the tests run."""
    memory_of(8 * GIGABYTE)


def refused(model, X, message, **parameters):
    accountant = BudgetAccountant(100.0, 1e-4)
    estimator = model(bounds=(0, 1), accountant=accountant, **{"rank": 2, **parameters})
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, np.zeros(len(X)))
    assert accountant.entries == ()
    assert not hasattr(estimator, "shape_")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("perturbation", PERTURBATIONS)
def test_a_column_of_unix_times_is_refused_with_the_number_of_rows(perturbation, model):
    times = 1_700_000_000 + 60 * np.arange(50)
    X = np.column_stack([np.arange(50) % 5, times])
    message = "which has 1700002946 rows, .* Coordinates must be consecutive numbers from 0"
    refused(model, X, message, perturbation=perturbation)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("unit_mode", [0, 1])
def test_a_shape_beyond_memory_is_refused_for_slices_too(unit_mode, model):
    X = np.column_stack([np.arange(50) % 5, np.arange(50)])
    slices = {"unit_mode": unit_mode, "shape": (5, 2 * 10**9)}
    refused(model, X, "which has 2000000005 rows", **slices)


def test_a_rank_or_core_beyond_memory_is_refused():
    X = np.argwhere(np.ones((6, 5, 4)))
    refused(PrivateCPCompletion, X, "at rank=1000000000 needs", rank=10**9, perturbation="input")
    wide = np.argwhere(np.ones((2,) * 4)).repeat(10, axis=1)
    refused(PrivateTuckerCompletion, wide, "which has 80 rows, at rank=2", perturbation="input")


SECOND = {"data_norm": 1.0, "perturbation": "whitened_tensor"}
THIRD = {"data_norm": 1.0, "perturbation": "moment_tensor", "whiten": False}
TOO_WIDE = [
    (PrivateSpectralLDA, {}, 10**9),
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
    accountant = BudgetAccountant(100.0, 1e-4)
    estimator = model(2, accountant=accountant, **parameters)
    if not hasattr(estimator, method):
        return  # as its parameters decide
    X = sp.csr_array((60, n_features), dtype=np.int64)
    size = {"n_samples": 60, "n_features": n_features} if method == "fit_chunks" else {}
    # Chunks of so many features can be batches of a stream, which is to be asked for.
    refused = f"fit of {n_features} features .* GB of memory|batches of a stream alone"
    with pytest.raises(ValueError, match=refused):
        getattr(estimator, method)([X] if size else X, **size)
    assert accountant.entries == ()
    assert not hasattr(estimator, "components_")


def test_pairs_of_words_are_counted_as_often_as_they_are_held(memory_of):
    """A sum, its rest and a part of it: 3 d^2 numbers, which the message says before a charge."""
    memory_of(0.05 * GIGABYTE)
    accountant = BudgetAccountant(1e12, 1e-4)
    model = PrivateSpectralLDA(2, epsilon=1e9, n_refinements=0, accountant=accountant)
    X = ThreadedPartitions([sp.csr_array((60, 50_000), dtype=np.int64)], 1)
    with pytest.raises(ValueError, match=r"needs at least 0\.0556 GB of memory; there are 0\.05"):
        model.fit_chunks(X, n_samples=60, n_features=50_000)
    assert accountant.entries == ()


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
