"""Seeds for randomised tests: any seed from 0 to 99 has to pass; and noise that is seeded.

``SKTENSOR_DP_TEST_SEEDS`` chooses them: unset runs seed 0 alone, ``any`` one
seed drawn at random (and shown in the test's name), ``all`` the whole range,
and a comma-separated list those it names.
"""

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sktensor_dp import PrivacyLeakWarning, unsafe_seeded_noise


def _seeds() -> list[int]:
    choice = os.environ.get("SKTENSOR_DP_TEST_SEEDS", "0")
    if choice == "any":
        return [random.SystemRandom().randrange(100)]
    if choice == "all":
        return list(range(100))
    return [int(part) for part in choice.split(",")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", _seeds())


@pytest.fixture
def seeded_noise(request: pytest.FixtureRequest) -> Iterator[None]:
    """Noise by the test's seed, or by 0: at one seed the test ends the same way every time."""
    seed = request.getfixturevalue("seed") if "seed" in request.fixturenames else 0
    with ExitStack() as stack:
        with pytest.warns(PrivacyLeakWarning):
            stack.enter_context(unsafe_seeded_noise(seed))
        yield
