"""A process that is forked while a fit runs can draw none of its noise, nor spend its budget."""

import os
import subprocess
import sys

import pytest

# A script of its own, so that it can fork without the threads of a test runner.
SCRIPT = """
import contextlib, io, os, sys, warnings
import numpy as np
from sktensor_dp import PrivateSpectralLDA, PrivateTensorPowerMethod

warnings.simplefilter("ignore")
X = np.random.default_rng(0).poisson(1.0, (400, 6)).astype(float)
parent, way = os.getpid(), sys.argv[1]
children = []

def fork():
    if os.getpid() == parent and not children:
        children.append(os.fork())

class Source:
    passes = 0
    def __iter__(self):
        Source.passes += 1
        yield X[:200]
        if Source.passes > 1:  # in a release: the first pass validates
            fork()
        yield X[200:]

def batches():
    yield X[:200]
    fork()
    yield X[200:]

class Progress(io.StringIO):
    def write(self, text):
        fork()

try:
    if way == "chunks":
        PrivateSpectralLDA(1).fit_chunks(Source(), n_samples=400, n_features=6)
    elif way == "progress":
        with contextlib.redirect_stderr(Progress()):
            PrivateSpectralLDA(1, verbose=1).fit(X)
    else:
        model = PrivateTensorPowerMethod(1, data_norm=4.0, perturbation="stream", max_iter=1)
        model.fit_chunks(batches())
    outcome = 0
except RuntimeError as error:
    outcome = 3 if "forked while a fit was running" in str(error) else 4
except BaseException:
    outcome = 5
if os.getpid() != parent:
    os._exit(outcome)
(child,) = children
_, status = os.waitpid(child, 0)
print(outcome, os.waitstatus_to_exitcode(status))
"""


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("way", ["chunks", "progress", "stream"])
def test_a_process_forked_in_a_fit_is_refused_and_its_parent_goes_on(way):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, way],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["0", "3"], done.stderr
