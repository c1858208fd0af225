"""Attacks on the low-order digits of noise: they break textbook noise, and not ours.

Two hypotheses, x = 0 and x = 1, and noise of scale 1. Both attacks name an event that has
probability 0 under one hypothesis and is common under the other. Whatever epsilon is,
such an event contradicts (epsilon, delta)-differential privacy with small delta.
"""

import math
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from sktensor_dp import PrivacyLeakWarning, unsafe_seeded_noise
from sktensor_dp.privacy.noise import NoiseSource

N = 20_000
Release = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def inverse_laplace(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Laplace noise as in textbooks: the logarithm of a multiple of 2^-53, with a sign."""
    magnitude = -np.log(rng.integers(1, 2**53, value.size) * 2.0**-53)
    return value + magnitude * rng.choice([-1.0, 1.0], value.size)


def box_muller(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    radius = np.sqrt(-2 * np.log1p(-rng.random(value.size)))
    return value + radius * np.cos(2 * np.pi * rng.random(value.size))


def of_library(law: str) -> Release:
    def release(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        # Each number on its own would be a release; together they share the step.
        with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(int(rng.integers(2**32))):
            source = NoiseSource()
        noisy: np.ndarray = getattr(source, law)(value, 1.0)
        return noisy

    return release


NAIVE: dict[str, Release] = {
    "textbook laplace": inverse_laplace,
    "numpy laplace": lambda value, rng: value + rng.laplace(size=value.size),
    "box-muller": box_muller,
    "numpy gaussian": lambda value, rng: value + rng.standard_normal(value.size),
}
OURS = {law: of_library(law) for law in ("laplace", "gaussian", "spherical_laplace")}


def finer_than_a_sum(released: np.ndarray) -> np.ndarray:
    """Attack by rounding: 1 + z is a multiple of 2^-53 for z > -1; z alone need not be."""
    small = np.abs(released) < 0.5
    return small & (np.rint(released * 2.0**53) != released * 2.0**53)


def out_of_reach(released: np.ndarray, value: float) -> np.ndarray:
    """Attack by holes (Mironov 2012): no multiple of 2^-53 gives this number for ``value``."""
    magnitude = np.abs(released - value)
    nearest = np.rint(np.exp(-magnitude) * 2.0**53)
    found = np.zeros(released.size, dtype=bool)
    for offset in range(-4, 5):
        log = -np.log(np.clip(nearest + offset, 1, 2**53) * 2.0**-53)
        found |= (value + log == released) | (value - log == released)
    return ~found


def rates(release: Release, event: Callable[[np.ndarray], np.ndarray], seed: int) -> list[float]:
    """Probability of an event for x = 0 and for x = 1."""
    rng = np.random.default_rng([seed, 7])
    return [float(event(release(np.full(N, x), rng)).mean()) for x in (0.0, 1.0)]


@pytest.mark.parametrize("name", NAIVE)
def test_rounding_gives_naive_noise_away(name, seed):
    # Magnitudes below 1/2, a third of all, have digits below 2^-53 in half the cases and more.
    at_0, at_1 = rates(NAIVE[name], finer_than_a_sum, seed)
    assert at_0 > 0.1
    assert at_1 == 0


def test_holes_give_textbook_laplace_noise_away(seed):
    # The attacker sees x = 0 excluded, or x = 1, and never the truth.
    for excluded in (0, 1):
        found = rates(inverse_laplace, partial(out_of_reach, value=excluded), seed)
        assert found[excluded] == 0
        assert found[1 - excluded] > 0.1


@pytest.mark.parametrize("name", OURS)
def test_both_attacks_learn_nothing_about_noise_on_a_grid(name, seed):
    for event in (finer_than_a_sum, partial(out_of_reach, value=0), partial(out_of_reach, value=1)):
        # Events also tell magnitudes apart, as the law allows: a number's density changes by
        # a factor of e at most, for the Gaussian law up to 1/2. Five standard errors besides.
        found = rates(OURS[name], event, seed)
        for p, q in (found, found[::-1]):
            assert p <= math.e * q + 5 * math.sqrt((p + math.e**2 * q) / N)


# A script of its own, so that it can fork without the threads of a test runner.
SCRIPT = """
import os, sys, warnings
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



try:
    if way == "chunks":
        PrivateSpectralLDA(1).fit_chunks(Source(), n_samples=400, n_features=6)

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
@pytest.mark.parametrize("way", ["chunks", "stream"])
def test_a_process_forked_in_a_fit_is_refused_and_its_parent_goes_on(way):
    command = [sys.executable, "-c", SCRIPT, way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["0", "3"], done.stderr
