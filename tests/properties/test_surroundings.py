"""A call leaves what surrounds it as it was: BLAS, warnings, floating point, generators."""

import random
import threading
import warnings

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


def holds(case: Case) -> None:
    model, data = case.build(), case.draw()
    before = surroundings()
    case.fit(model, data)
    assert surroundings() == before
    if hasattr(model, "transform") and case.of.family not in ("tensors", "entries", "slices"):
        model.transform(case.given(data)[0])
        assert surroundings() == before


test_surroundings, test_surroundings_in_triples = covered(holds, ("settings",), READERS)


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
def test_fits_that_overlap_leave_blas_as_they_found_it():
    """The one that began first ends first, while the other one still counts on one thread."""
    X = np.random.default_rng(0).poisson(1.0, (60, 5))
    events = {name: (threading.Event(), threading.Event()) for name in "ab"}

    def fit(name):
        source = Slow(X, *events[name])
        PrivateSpectralLDA(2, n_refinements=1).fit_chunks(source, n_samples=60, n_features=5)

    with threadpool_limits(2, "blas"):
        before, threads = surroundings()[0], {n: threading.Thread(target=fit, args=n) for n in "ab"}
        for name in "ab":
            threads[name].start()
            assert events[name][0].wait(60)
        for name in "ab":
            events[name][1].set()
            threads[name].join()
        assert surroundings()[0] == before
