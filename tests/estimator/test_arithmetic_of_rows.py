"""Floating-point numbers of one unit's data cause no warning, no error and no other digits."""

import math
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
    with np.errstate(all="ignore"):
        return np.clip(X, -3.4e38, 3.4e38).astype(np.float32)


FITS: dict[str, Callable[[np.ndarray], Any]] = {
    "components": lambda X: power().fit(X),
    "components, counted": lambda X: power(neighbours="add_remove").fit(X),
    "stream": lambda X: power(perturbation="stream").fit(X),
    "batch": lambda X: power().partial_fit(X),
    "chunks": lambda X: power().fit_chunks([X], n_samples=40, n_features=24),
    "chunks of a stream": lambda X: power().fit_chunks([X, X]),
    "topics": lambda X: PrivateSpectralLDA(2, n_refinements=1).fit(np.rint(abs(X))),
    "list": lambda X: power().fit(X.tolist()),
    "frame": lambda X: power().fit(pd.DataFrame(X)),
    "single": lambda X: power().fit(single(X)),
    "sparse": lambda X: power().fit(sp.csr_array(X)),
    "columns": lambda X: power().fit(np.asfortranarray(X)),
}
CELLS = np.repeat(np.argwhere(np.ones((4, 3))), 2, axis=0)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("rows", [HUGE_ROWS, TINY_ROWS], ids=["huge", "tiny"])
def test_no_sample_makes_a_fit_warn_or_fail(rows, fit):
    with np.errstate(all="raise"):
        assert FITS[fit](rows).privacy_report_.rows


@pytest.mark.parametrize("kind", [PrivateCPCompletion, PrivateTuckerCompletion])
@pytest.mark.parametrize("unit_mode", [None, 0])
@pytest.mark.parametrize("values", [[HUGE, HUGE, -HUGE, -HUGE], [5e-324, 0.0]])
def test_no_value_makes_a_completion_fail(values, unit_mode, kind):
    model = kind(1, bounds=(-1, 1), shape=(4, 3), unit_mode=unit_mode)
    with np.errstate(all="raise"):
        model.fit(
            CELLS, np.resize(values, len(CELLS)), repeated=None if unit_mode == 0 else "distinct"
        )
        assert model.fit_tensor(np.resize(values, (4, 3))).privacy_report_.rows


@pytest.mark.parametrize("entry", [1e-200, 1e300, 5e-324])
def test_no_entry_of_a_tensor_makes_a_decomposition_fail(entry):
    T = np.zeros((4, 4, 4))
    T[1, 1, 1] = entry
    with np.errstate(all="raise"):
        assert power().fit_tensor(T).privacy_report_.rows


@pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning")
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_a_fit_takes_one_thread_and_its_digits_are_those_of_one(seed, epsilon, monkeypatch):
    X = np.random.default_rng(seed).poisson(1.0, (60, 20))
    limit, limits, found = ThreadpoolController.limit, [], []

    def limited(controller, **what):
        limits.append(what)
        return limit(controller, **what)

    monkeypatch.setattr(ThreadpoolController, "limit", limited)
    model = PrivateSpectralLDA(3, epsilon=epsilon, random_state=0)
    for threads in (1, None):
        with threadpool_limits(threads, "blas"), unsafe_seeded_noise(seed):
            found.append(model.fit(X).components_)
    np.testing.assert_array_equal(*found)
    assert limits == [{"limits": 1, "user_api": "blas"}] * 2
