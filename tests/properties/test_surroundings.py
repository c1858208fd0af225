"""A call leaves what surrounds it as it was: BLAS, warnings, floating point, generators."""

import random
import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import sklearn
from cases import READERS, Case, covered
from threadpoolctl import threadpool_info, threadpool_limits

from sktensor_dp import PrivateSpectralLDA


def surroundings():
    blas = sorted((one["filepath"], one["num_threads"]) for one in threadpool_info()
                  if one["user_api"] == "blas")  # fmt: skip
    drawn = np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    return blas, np.geterr(), list(warnings.filters), sklearn.get_config(), drawn


@contextmanager
def two_threads():
    """BLAS on two threads, by no context: what other threads set in one has no effect."""
    limit = threadpool_limits(2, "blas")
    try:
        yield
    finally:
        limit.restore_original_limits()


def holds(case: Case) -> None:
    model, data = case.build(), case.draw()
    with two_threads():
        before = surroundings()
        case.fit(model, data)
        assert surroundings() == before
        if hasattr(model, "transform") and case.of.family not in ("tensors", "entries", "slices"):
            model.transform(case.given(data)[0])
            assert surroundings() == before


test_surroundings, test_surroundings_in_triples = covered(holds, ("settings", "errors"), READERS)


class Slow:
    """Chunks that wait in the first release, which comes after they were read through once."""

    def __init__(self, X, begin, go_on):
        self.X, self.begin, self.go_on, self.n_read = X, begin, go_on, 0

    def __iter__(self):
        self.n_read += 1
        if self.n_read == 2:
            self.begin.set()
            assert self.go_on.wait(60)
        yield self.X


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_fits_that_overlap_leave_blas_as_they_found_it(order):
    """Whichever ends first, by threads that live on: the other still counts on one thread."""
    X = np.random.default_rng(0).poisson(1.0, (60, 5))
    events = {name: (threading.Event(), threading.Event()) for name in "ab"}

    def fit(name):
        source = Slow(X, *events[name])
        PrivateSpectralLDA(2, n_refinements=1).fit_chunks(source, n_samples=60, n_features=5)

    def number():
        return {threads for _, threads in surroundings()[0]}

    with two_threads():
        threads = {name: threading.Thread(target=fit, args=name) for name in "ab"}
        for name in "ab":
            threads[name].start()
            assert events[name][0].wait(60)
        for name, left in zip(order, ({1}, {2}), strict=True):
            events[name][1].set()
            threads[name].join()
            assert number() == left
