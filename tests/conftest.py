"""Seeds for randomised tests: any seed from 0 to 99 has to pass; and noise that is seeded.

``SKTENSOR_DP_TEST_SEEDS`` chooses them: unset runs seed 0 alone, ``any`` one
seed drawn at random (and shown in the test's name), ``all`` the whole range,
and a comma-separated list those it names.

``SKTENSOR_DP_TEST_NOISE`` chooses the secret noise of fits: unset, keys are drawn from the name
of a test, which then ends the same way every time; another number draws others, and ``secret``
leaves them to the operating system.

``SKTENSOR_DP_TEST_TENTH`` is a digit: of tests with the mark ``nightly`` that tenth is run.
"""

import gc
import inspect
import os
import random
import secrets
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest

from sktensor_dp import PrivacyLeakWarning, unsafe_seeded_noise
from sktensor_dp.checks import floating_point
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.privacy.selection_cost import STEPS as TRIAL_STEPS
from sktensor_dp.tensor import arrays

NOISE = os.environ.get("SKTENSOR_DP_TEST_NOISE", "0")
# Tests see what numpy would have warned of.
floating_point.OWN.update(divide="warn", over="warn", invalid="warn")


@contextmanager
def _keys_of(name: str) -> Iterator[None]:
    """Draw keys of noise from a name; a forked process draws its own."""
    drawn, process, outside = random.Random(f"{NOISE} {name}"), os.getpid(), secrets.randbits

    def keys(bits: int) -> int:
        return drawn.getrandbits(bits) if os.getpid() == process else outside(bits)

    secrets.randbits = outside if NOISE == "secret" else keys
    try:
        yield
    finally:
        secrets.randbits = outside


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with _keys_of(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[None]:
    if fixturedef.scope == "function":
        return (yield)
    # Whichever test asks first, the fixture is the same.
    given = getattr(request, "param_index", 0)
    with _keys_of(f"{fixturedef.baseid} {fixturedef.argname} {given}"):
        return (yield)


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


# Programs of their own, which tests run where their files are.
collect_ignore = ["support/people"]


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Iterator[None]:
    """Look for examples in docstrings of the package alone: tests have none."""
    return [one for one in (yield) if type(one).__name__ != "DoctestModule"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage among thousands of tests, all of which live to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    tenth = os.environ.get("SKTENSOR_DP_TEST_TENTH")
    if tenth is None:
        return
    nightly = [item for item in items if item.get_closest_marker("nightly")]
    left_out = {one for one in nightly if zlib.crc32(one.nodeid.encode()) % 10 != int(tenth)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def seeded_noise(request: pytest.FixtureRequest) -> Iterator[None]:
    """Noise by the test's seed, or by 0: at one seed the test ends the same way every time."""
    seed = request.getfixturevalue("seed") if "seed" in request.fixturenames else 0
    with ExitStack() as stack:
        with pytest.warns(PrivacyLeakWarning):
            stack.enter_context(unsafe_seeded_noise(seed))
        yield


@pytest.fixture
def cache_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set how many numbers a cache holds: the fewer, the more blocks any work is cut into."""
    return partial(monkeypatch.setattr, arrays, "CACHE_NUMBERS")


@pytest.fixture
def memory_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Limit the memory of this process, as far as the process is told of it."""
    resource = pytest.importorskip("resource", reason="Windows has no limits of processes")
    given = resource.getrlimit

    def limit(size: float) -> None:
        limits = {resource.RLIMIT_AS: (int(size), int(size))}
        monkeypatch.setattr(resource, "getrlimit", lambda of: limits.get(of) or given(of))

    return limit


@pytest.fixture
def half_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """All noise on a grid is half of what was asked for."""
    grid = NoiseSource.grid
    monkeypatch.setattr(
        NoiseSource, "grid", lambda self, scale, *args, **kw: grid(self, scale / 2, *args, **kw)
    )


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Name the methods of sources of noise that are called, in turn."""
    calls: list[str] = []

    def watched(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *of, **options: (calls.append(name), method(*of, **options))[1]

    for name, method in list(vars(NoiseSource).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            monkeypatch.setattr(NoiseSource, name, watched(name, method))
    return calls


@pytest.fixture
def secret_integers(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Any]], None]:
    """Let `draw(below, size)` draw secret integers: keys, coins and bits of trials.

    Where it returns None they are drawn as they are without it.
    """
    usual = NoiseSource.integers

    def by(draw: Callable[[int, int], Any]) -> None:
        def integers(source: NoiseSource, below: int, size: int) -> Any:
            found = draw(below, size)
            return usual(source, below, size) if found is None else found

        monkeypatch.setattr(NoiseSource, "integers", integers)

    return by


@pytest.fixture
def n_trials_are(secret_integers: Any) -> Callable[[int], None]:
    """Let a search make so many trials, whose secret bits count up."""

    def fix(number: int) -> None:
        made: list[int] = []

        def draw(below: int, size: int) -> Any:
            if below == TRIAL_STEPS and size == 1:  # whether a trial is the last
                made.append(len(made))
                return np.array([0 if len(made) % number == 0 else TRIAL_STEPS - 1])
            return np.array([len(made) % number, 2, 3, 4], np.uint64) if size == 4 else None

        secret_integers(draw)

    return fix
