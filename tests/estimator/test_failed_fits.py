"""A fit that is refused or fails changes nothing; one that succeeded is kept, whatever fails."""

import contextlib
import copy
import functools
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from internals import PUBLISH
from interrupting import Interrupted, Interrupting
from sklearn import config_context
from ways_to_fit import COUNTS, PARTS, SAMPLES, WAYS, data_of, quiet, snapshot

from sktensor_dp import BudgetAccountant
from sktensor_dp.privacy.unsafe import Recorder

# Calls at which a fit is interrupted: of all functions from the last ones before state is
# written on, and some before.
LAST, BEFORE = 20, 3
every_way = pytest.mark.parametrize("name", WAYS)


def peers_of(name: str) -> list[str]:
    return [other for other, way in WAYS.items() if way.kind is WAYS[name].kind]


def as_found(name: str) -> Any:
    """The estimator as the way finds it."""
    return WAYS[name].build()


@functools.cache
def _fitted(name: str) -> Any:
    estimator = as_found(name)
    with quiet():
        WAYS[name].call(estimator)
    return estimator


def used_before(name: str) -> Any:
    """One that was fitted in another way, which left other attributes."""
    peers = peers_of(name)
    used = copy.deepcopy(_fitted(peers[peers.index(name) - 1]))
    return WAYS[name].configured(used)


every_state = pytest.mark.parametrize("prepared", [as_found, used_before])


@contextlib.contextmanager
def unchanged(estimator: Any) -> Iterator[None]:
    before, parameters = snapshot(vars(estimator)), estimator.get_params(deep=False)
    yield
    assert snapshot(vars(estimator)) == before
    assert all(value is parameters[key] for key, value in estimator.get_params(deep=False).items())


@pytest.mark.nightly
@every_way
def test_a_fit_that_is_interrupted_anywhere_changes_nothing(name, seed):
    """Where it publishes at every seed, and at every second one of the other calls."""
    # The first fills caches; the second makes the calls that all later ones make.
    for estimator in (used_before(name), used_before(name)):
        with quiet(), Interrupting() as seen:
            WAYS[name].call(estimator)
    published = max(n for n, call in enumerate(seen.calls) if call == PUBLISH)
    first = max(published - LAST, 0)
    last = {call: first + place for place, call in enumerate(seen.calls[first:])}
    estimator = used_before(name)
    places = [*np.linspace(0, first, BEFORE).astype(int).tolist(), *last.values()]
    for place in (*places[seed % 2 :: 2], published):
        kept = estimator if place <= published else copy.deepcopy(estimator)
        with unchanged(estimator), quiet(), pytest.raises(Interrupted), Interrupting(place):
            WAYS[name].call(kept)


@pytest.mark.parametrize(
    "name", ["topics", "components", "words", "search", "CPCompletion, sufficient_statistics"]
)
def test_what_is_interrupted_after_the_first_noise_has_been_charged(name, drawn):
    """And not before: at calls all over a fit, of which the charge is one."""
    for _ in range(2):  # the first fills caches
        with quiet(), Interrupting() as seen:
            WAYS[name].call(as_found(name).set_params(accountant=BudgetAccountant(1e9, 0.9)))
    charge = seen.calls.index(BudgetAccountant.charge.__qualname__)
    noise = seen.calls.index(Recorder.record.__qualname__, charge)
    later = np.linspace(noise, len(seen.calls) - 40, 6).astype(int).tolist()
    for place in (charge - 1, charge, *later):
        drawn.clear()
        estimator = as_found(name).set_params(accountant=BudgetAccountant(1e9, 0.9))
        with quiet(), pytest.raises(Interrupted), Interrupting(place):
            WAYS[name].call(estimator)
        charged = len(estimator.accountant.entries) > 0
        assert charged >= (len(drawn) > 0)
        assert charged == (place in later)
        # Whoever was interrupted while it was charged locks no one out.
        assert estimator.accountant.check(1e-3, 0.0)


@every_way
@every_state
def test_a_warning_that_is_made_an_error_costs_no_paid_fit(name, prepared):
    estimator, told = prepared(name).set_params(accountant=BudgetAccountant(1e9, 0.9)), None
    earlier = getattr(estimator, "privacy_report_", None)
    with quiet():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*seeded.*")
        try:
            WAYS[name].call(estimator)
        except UserWarning as warning:
            told = warning
            changed = getattr(estimator, "privacy_report_", None) is not earlier
            assert changed == (len(estimator.accountant.entries) > 0)
    warned = ("topics", "components, stream", "components, source")
    assert told is not None or not (name in warned or name.endswith(("too many", ", few")))


NO_DATA = [["?", "x"]], np.zeros((0, 3)), None, [[1.0, -np.inf]], [[]], [[np.nan, 1.0]]


@every_way
@pytest.mark.parametrize("method", ["fit", "partial_fit", "fit_transform", "fit_tensor"])
def test_what_is_no_data_changes_nothing(name, method):
    estimator = used_before(name)
    if not hasattr(estimator, method):
        return  # decided by its parameters
    with_y = "Completion" in name and method != "fit_tensor"
    # In a tensor, and in rows of a mixture, NaN stands for what was not observed.
    gaps = name.startswith("mixture") or ("Completion" in name and method == "fit_tensor")
    for data in NO_DATA[: -1 if gaps else None]:
        with unchanged(estimator), quiet(), pytest.raises((ValueError, TypeError)):
            getattr(estimator, method)(data, *([[1.0]] if with_y else []))


@every_state
@pytest.mark.parametrize(
    ("name", "n_readings"), [("topics", 4), ("components", 3), ("components, iteration", 3)]
)
def test_a_source_that_breaks_off_changes_nothing(name, n_readings, prepared):
    """In any of its readings, or as it is of other sizes than announced."""
    data, estimator = COUNTS if name == "topics" else SAMPLES, prepared(name)

    class Source:
        def __init__(self, n_whole: int) -> None:
            self.left = n_whole

        def __iter__(self) -> Iterator[np.ndarray]:
            yield data[:50]
            if self.left == 0:
                raise OSError("the disk is gone")
            self.left -= 1
            yield data[50:]

    sources = [*map(Source, range(n_readings)), [data[:50]], [data[:, :2]], [data * np.nan], []]
    for source in sources:
        with unchanged(estimator), quiet(), pytest.raises((OSError, ValueError)):
            estimator.fit_chunks(source, n_samples=len(data), n_features=data.shape[1])


@every_state
@pytest.mark.parametrize("n_read", [0, 1, 3, 6])
def test_a_stream_that_breaks_off_changes_nothing(n_read, prepared):
    def source(last: list[Any]) -> Iterator[Any]:
        yield from [*PARTS[:n_read], *last]
        raise OSError("the disk is gone")

    estimator = prepared("components, source")
    wrong = [[], [np.full((3, 4), np.nan)], [[["x"]]], *([[PARTS[0][:, :3]]] if n_read else [])]
    for given in (*map(source, wrong), []):
        with unchanged(estimator), quiet(), pytest.raises((OSError, ValueError)):
            estimator.fit_chunks(given)


@every_way
@every_state
def test_a_fit_transform_whose_second_half_fails_keeps_the_model(name, prepared):
    """Or fit_predict; it is interrupted at its last call before it returns."""
    estimator = prepared(name)
    both = "fit_transform" if hasattr(estimator, "fit_transform") else "fit_predict"
    for _ in range(2):  # the first fills caches
        other = copy.deepcopy(estimator)
        with quiet(), Interrupting() as seen:
            getattr(other, both)(*data_of(name))
    last, earlier = Interrupting(len(seen.calls) - 1), getattr(estimator, "privacy_report_", None)
    with quiet(), pytest.raises(Interrupted), last:
        getattr(estimator, both)(*data_of(name))
    assert estimator.privacy_report_ is not earlier
    assert snapshot(sorted(vars(estimator))) == snapshot(sorted(vars(other)))


@pytest.mark.parametrize("name", ["topics", "search", "CPCompletion, input"])
def test_containers_that_are_not_installed_are_refused_before_the_charge(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    budget = BudgetAccountant(1e9, 0.9)
    estimator = as_found(name).set_params(accountant=budget)
    with config_context(transform_output="polars"), pytest.raises(ImportError, match="polars"):
        estimator.fit_transform(*data_of(name))
    assert budget.entries == ()
