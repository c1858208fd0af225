"""Floating-point numbers of one unit's data cause no warning, no error and no other digits."""

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController, threadpool_limits

from sktensor_dp import (
    PrivateCPCompletion,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
    unsafe_seeded_noise,
)

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


# Sums of such a row are infinite in parts, and no number as a whole.
HUGE = 1.7e308
HUGE_ROWS = np.ones((40, 24))
HUGE_ROWS[7] = np.tile(np.repeat([HUGE, -HUGE], 4), 3)
TINY_ROWS = np.full((40, 24), 5e-324)


power = partial(
    PrivateTensorPowerMethod, 2, data_norm=1.0, n_restarts=2, max_iter=1, random_state=0
)


def single(X: np.ndarray) -> np.ndarray:
    return np.clip(X, -3.4e38, 3.4e38).astype(np.float32)


CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": np.asarray, "list": np.ndarray.tolist, "frame": pd.DataFrame, "single": single,
    "sparse": sp.csr_array, "columns": np.asfortranarray,
}  # fmt: skip


FITS: dict[str, Callable[[Any], Any]] = {
    "components": lambda X: power().fit(X),
    "components, counted": lambda X: power(neighbours="add_remove").fit(X),
    "stream": lambda X: power(perturbation="stream").fit(X),
    "batch": lambda X: power().partial_fit(X),
    "mixture": lambda X: power(moment="gaussian_mixture").fit(X),
    "chunks": lambda X: power().fit_chunks([X], n_samples=40, n_features=24),
    "chunks of a stream": lambda X: power().fit_chunks([X, X]),
    "topics": lambda X: PrivateSpectralLDA(2, n_refinements=1).fit(abs(X)),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("rows", [HUGE_ROWS, TINY_ROWS], ids=["huge", "tiny"])
def test_no_sample_makes_validation_warn(rows, container):
    """Warnings are errors here."""
    given = CONTAINERS[container](rows)
    assert power().fit(given).privacy_report_.rows


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("rows", [HUGE_ROWS, TINY_ROWS], ids=["huge", "tiny"])
def test_no_sample_is_an_error_where_a_caller_makes_errors_of_rounding(rows, fit):
    with np.errstate(all="raise"):
        assert FITS[fit](np.rint(rows)).privacy_report_.rows
    if fit != "topics":
        with np.errstate(all="raise"):
            FITS[fit](rows)


@pytest.mark.parametrize("kind", [PrivateCPCompletion, PrivateTuckerCompletion])
@pytest.mark.parametrize("unit_mode", [None, 0])
def test_no_value_makes_a_completion_warn(unit_mode, kind):
    X = np.repeat(np.argwhere(np.ones((4, 3))), 2, axis=0)
    for values in ([HUGE, HUGE, -HUGE, -HUGE], [5e-324, 0.0]):
        y = np.resize(values, len(X))
        model = kind(1, bounds=(-1, 1), shape=(4, 3), unit_mode=unit_mode)
        with np.errstate(all="raise"):
            model.fit(X, y)
        T = np.resize(y, (4, 3))
        with np.errstate(all="raise"):
            model.fit_tensor(T)
        assert model.privacy_report_.rows


@pytest.mark.parametrize("entry", [1e-200, 1e300, 5e-324])
def test_no_entry_of_a_tensor_makes_a_decomposition_warn(entry):
    T = np.zeros((4, 4, 4))
    T[1, 1, 1] = entry
    with np.errstate(all="raise"):
        assert power().fit_tensor(T).privacy_report_.rows


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_a_fit_takes_one_thread_and_its_digits_are_those_of_one(seed, epsilon, monkeypatch):
    X = np.random.default_rng(seed).poisson(1.0, (60, 20))
    limit, limits, found = ThreadpoolController.limit, [], []

    def limited(controller, **what):
        limits.append(what)
        return limit(controller, **what)

    monkeypatch.setattr(ThreadpoolController, "limit", limited)
    for threads in (1, None):
        with warnings.catch_warnings(), threadpool_limits(threads, "blas"):
            warnings.simplefilter("ignore")  # seeded noise, and as many topics as it hides
            with unsafe_seeded_noise(seed):
                model = PrivateSpectralLDA(3, epsilon=epsilon, random_state=0)
                found.append(model.fit(X).components_)
    np.testing.assert_array_equal(*found)
    assert limits == [{"limits": 1, "user_api": "blas"}] * 2
