"""Public numbers that memory cannot hold are refused before anything is charged."""

import tracemalloc
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from parts_in_order import PartsInOrder

from sktensor_dp import (
    BudgetAccountant,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
    completion,
    gaussian_mixture,
    spectral_lda,
)
from sktensor_dp.checks.parameters import memory_size
from sktensor_dp.power_method import plan
from sktensor_dp.tensor import symmetric

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


GIGABYTE = 1e9


@pytest.fixture(autouse=True)
def _one_machine(memory_of):
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
    (PrivateTensorPowerMethod, SECOND, 10**6),
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
    with pytest.raises(ValueError, match=f"fit of {n_features:,} features .* GB of memory"):
        getattr(estimator, method)([X] if size else X, **size)
    assert estimator.accountant.entries == ()
    assert not hasattr(estimator, "components_")


def test_pairs_of_words_are_counted_as_often_as_they_are_held(memory_of):
    """Of all that sums of them hold: 8 d^2 numbers, which the message says before a charge."""
    memory_of(2.3 * GIGABYTE)
    model = PrivateSpectralLDA(2, epsilon=1e9, n_refinements=0, accountant=BudgetAccountant())
    X = PartsInOrder([sp.csr_array((60, 50_000), dtype=np.int64)])
    with pytest.raises(ValueError, match=r"needs about 160 GB of memory; there are 2\.3"):
        model.fit_chunks(X, n_samples=60, n_features=50_000)
    assert model.accountant.entries == ()


def normal(d: int, n: int = 50) -> Any:
    return np.random.default_rng(0).standard_normal((n, d)) / d**0.5


def words(d: int, n: int = 100) -> Any:
    columns = np.random.default_rng(0).integers(d, size=5 * n)
    return sp.csr_array((np.ones(5 * n, np.int64), columns, np.arange(0, 5 * n + 1, 5)), (n, d))


def cells(shape: tuple[int, ...]) -> Any:
    rng = np.random.default_rng(0)
    return np.unique(np.stack([rng.integers(n, size=100) for n in shape], axis=1), axis=0)


MOMENTS = [
    *(({}, k, d) for k, d in ((3, 30), (3, 300), (40, 60), (90, 90))),
    *(({"perturbation": "moment_tensor"}, k, d) for k, d in ((3, 300), (90, 90))),
    *(({"perturbation": "moment_tensor", "whiten": False}, 3, d) for d in (31, 95)),
    *(({"perturbation": way, "max_iter": 2}, 3, d) for way in plan.BY_STEPS for d in (30, 10_000)),
]
GAPS = np.where(np.arange(50 * 40).reshape(50, 40) % 7 == 0, np.nan, normal(40))
MATRIX, LONG, CUBOID = (3000, 2000), (40, 50_000), (300, 200, 150)
CP, TUCKER = PrivateCPCompletion, PrivateTuckerCompletion
FITS = [
    *((PrivateTensorPowerMethod, {"data_norm": 2.0, **given}, k, normal(d))
      for given, k, d in MOMENTS),
    *((PrivateSpectralLDA, given, k, words(d)) for k, d, given in (
        (3, 30, {}), (3, 20_000, {}), (30, 2000, {}), (3, 20_000, {"delta": 0.0}),
        (60, 200, {"perturbation": "moment_tensor"}))),
    *((PrivateGaussianMixture, {"data_norm": 3.0, "covariance_type": shape}, k, X)
      for shape, k, X in (
        ("full", 2, normal(2)), ("full", 1, normal(300)), ("full", 3, normal(90)),
        ("diag", 20, normal(60)), ("tied", 20, normal(60)), ("full", 3, GAPS))),
    *((kind, {"shape": shape, "perturbation": way, **({"max_iter": 2} if way[0] in "igo" else {})},
       rank, cells(shape))
      for kind, shape, rank, way in (
        (CP, MATRIX, 1, "sufficient_statistics"), (CP, LONG, 1, "sufficient_statistics"),
        (CP, LONG, 1, "input"), (CP, LONG, 12, "input"), (CP, LONG, 12, "gradient"),
        (CP, LONG, 1, "output"), (CP, CUBOID, 8, "input"), (TUCKER, CUBOID, 8, "gradient"),
        (TUCKER, CUBOID, 12, "input"), (TUCKER, LONG, 8, "gradient"))),
    *((CP, {"shape": shape, "unit_mode": 0}, 3, cells(shape))
      for shape in (MATRIX, (40, 20_000), (40, 1000, 50), (300, 16_000))),
]  # fmt: skip


BY_DAY = {6, 14, 22, 30, 44, 46, 54, 62, 70}  # of each kind, and of those that take no time


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("kind", "parameters", "k", "X", "epsilon"),
    [
        pytest.param(*fit, epsilon, marks=[pytest.mark.nightly] * (place not in BY_DAY))
        for place, (fit, epsilon) in enumerate(product(FITS, (1.0, 1e6)))
    ],
    ids=lambda _: "",
)
def test_fits_take_no_more_memory_than_is_checked(kind, parameters, k, X, epsilon, monkeypatch):
    checked = []
    for each in (plan, spectral_lda.plan, gaussian_mixture.plan, completion.plan):
        monkeypatch.setattr(each, "check_feasible", lambda numbers, *_: checked.append(numbers))
    given = {"bounds": (0.0, 1.0)} if kind in BOTH else {}
    model = kind(k, epsilon=epsilon, random_state=0, **given, **parameters)
    symmetric.sorted_triples.cache_clear()
    tracemalloc.start()
    try:
        model.fit(X, np.linspace(0, 1, X.shape[0]) if given else None)
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
