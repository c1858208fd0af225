# ruff: noqa: NPY002 -- generators that are not the fit's own are part of what is compared.
"""Record what flows between noise primitives in a fit, and replay it on other data.

A fit is recorded at the points where randomness hides data: mechanisms that add noise, the
selection of words, products with released rows, and secret coins. A second fit, on other data, is
handed the recorded answers. All else in the library is post-processing of those answers, so both
have to ask the same questions at the same cost and show the same, to the last bit: attributes,
report, warnings, errors, what is printed, pickles, files and generators. How far the true answers
are apart, in units of the sensitivity that noise was scaled to, is measured on the way.
"""

import contextlib
import copy
import io
import logging
import math
import os
import pickle
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.catalogue import CATALOGUE
from sktensor_dp.privacy.mechanisms import Mechanism
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.privacy.partition_selection import PartitionSelection

PLAIN = (str, bytes, int, float, complex, np.generic, type, slice, Path, np.dtype)
# Methods of a source that coordinates reach in units of their sensitivity, and its norm there.
NORMS = {"gaussian": "l2", "laplace": "l1", "spherical_laplace": "l2"}
NORMS |= {"spherical_laplace_rows": "rows", "add_noise": "none"}


def state(item: Any, whole: bool = True) -> Any:
    """All there is to an object, in a form that compares bit by bit.

    Of an array that is the memory that it lies in, too, and of an accountant what was charged;
    unless it is `whole`, how an array lies in memory is left out, and an accountant is who it is.
    """
    of = partial(state, whole=whole)
    if item is None or isinstance(item, PLAIN):
        return (type(item).__name__, repr(item))
    if isinstance(item, np.ndarray):
        if item.dtype == object:
            return ("objects", item.shape, [of(part) for part in item.ravel()])
        memory = (item.strides, None if item.base is None else of(item.base)) if whole else ()
        return ("array", str(item.dtype), item.shape, item.tobytes(), *memory)
    if isinstance(item, Mapping):
        return (type(item).__name__, [(of(key), of(value)) for key, value in item.items()])
    if isinstance(item, list | tuple):
        return (type(item).__name__, [of(part) for part in item])
    if isinstance(item, set | frozenset):
        return (type(item).__name__, sorted(map(repr, item)))
    if isinstance(item, np.random.RandomState):
        return ("RandomState", of(item.get_state()))
    if isinstance(item, np.random.Generator):
        return ("Generator", of(item.bit_generator.state))
    if isinstance(item, BudgetAccountant):
        charged = [(one.release, one.uses, one.cost, one.protects) for one in item.entries]
        return ("BudgetAccountant", of(charged) if whole else id(item))
    # Functions can carry anything along: none may be kept.
    assert not isinstance(item, FunctionType | MethodType | BuiltinFunctionType), item
    if is_dataclass(item) and not hasattr(item, "__dict__"):
        return (type(item).__name__, [of(getattr(item, one.name)) for one in fields(item)])
    return (type(item).__name__, of(vars(item)))


@dataclass
class Flow:
    """One answer of a noise primitive; all but the coordinates is public."""

    name: str
    asked: Any
    answer: Any
    noise: int | None = None  # which source, of the fit's, drew for it
    coordinates: list[tuple[str, Any]] = field(default_factory=list)


@dataclass
class Seen:
    """A recorded fit."""

    flows: list[Flow] = field(default_factory=list)
    coins: list[np.ndarray] = field(default_factory=list)
    tickets: list[bytes] = field(default_factory=list)  # names of streams in a ledger
    shown: dict[str, Any] = field(default_factory=dict)
    moved: dict[str, float] = field(default_factory=dict)  # of releases, by other data
    warned: list[type] = field(default_factory=list)
    error: BaseException | None = None
    estimator: Any = None

    @property
    def releases(self) -> list[str]:
        """Names in the catalogue, as often and in the order in which they were released."""
        return [flow.name for flow in self.flows]


class Tape:
    """Stands between the library and its noise primitives."""

    def __init__(self, seen: Seen, given: Seen | None, match: np.ndarray | None) -> None:
        self.seen, self.match = seen, match
        self._given = iter(given.flows if given else ())
        self._coins = iter(given.coins if given else ())
        self._tickets = iter(given.tickets if given else ())
        self._replays = given is not None
        self._open: list[tuple[str, Any]] | None = None
        self._sources: list[NoiseSource] = []
        self._names = {entry.query: name for name, entry in CATALOGUE.items()}

    def passed_on(self, flow: Flow) -> Any:
        """The answer, or the recorded one in its place."""
        if self._replays:
            recorded = next(self._given, None)
            assert recorded is not None, f"a release more than recorded: {flow.name}"
            flow.answer = recorded.answer
        self.seen.flows.append(flow)
        keys = flow.answer
        return (list(keys[0]), keys[1].copy()) if isinstance(keys, tuple) else keys.copy()

    def released(self, make: Any, law: Any, value: Any, sensitivity: float, *more: Any) -> Any:
        """A release of a mechanism, or of a selection of words."""
        cost, noise, query = more
        words = isinstance(value, Mapping)
        secret = dict(value) if words else np.ravel(value) / sensitivity
        self._open, outer = [], self._open
        try:
            answer = make(law, value, sensitivity, *more)
        finally:
            own, self._open = self._open, outer
        if words:
            own = [("l2", {word: total / sensitivity for word, total in secret.items()})]
        elif not own:
            own = [("l1", np.clip(secret, -0.5, 0.5))]  # by the piecewise mechanism, one by one
        if not any(noise is one for one in self._sources):
            self._sources.append(noise)
        place = next(n for n, one in enumerate(self._sources) if one is noise)
        kinds = [one for one in type(query).__mro__ if one in self._names]
        name = self._names[kinds[0]] if kinds else type(query).__name__
        asked = (law.law.id, state(query), sensitivity, state(cost))
        kept = (list(answer[0]), answer[1].copy()) if words else np.array(answer)
        return self.passed_on(Flow(name, asked, kept, place, own))

    def source_method(self, method: str, make: Any) -> Any:
        """A method of the source that notes the coordinates of an open release."""

        def noted(noise: NoiseSource, coordinates: Any, *args: Any, **more: Any) -> Any:
            if self._open is None:
                return make(noise, coordinates, *args, **more)
            own, self._open = self._open, None
            try:
                own.append((NORMS[method], np.array(coordinates)))
                return make(noise, coordinates, *args, **more)
            finally:
                self._open = own

        return noted

    def drawn(self, make: Any, noise: NoiseSource, below: int, size: int) -> Any:
        """Secret coins: units that both fits have in common keep theirs."""
        coins = make(noise, below, size)
        if self._open is not None:
            return coins
        if self._replays:
            recorded = next(self._coins, None)
            assert recorded is not None, "coins are drawn that were not recorded"
            fits = self.match is not None and len(self.match) == size
            of = self.match if fits else np.arange(size)
            known = (of >= 0) & (of < len(recorded))
            coins[np.flatnonzero(known)] = recorded[of[known]]
        self.seen.coins.append(coins.copy())
        return coins

    def ticket(self, make: Any, size: int) -> bytes:
        """Random bytes that name something, and tell nothing."""
        self.seen.tickets.append(next(self._tickets, None) or make(size))
        return self.seen.tickets[-1]

    @contextlib.contextmanager
    def running(self, mistake: Any = None) -> Iterator[None]:
        """With a `mistake` that takes the place of each release, and may make it."""
        integers = NoiseSource.integers
        with pytest.MonkeyPatch.context() as patch:
            for law in (Mechanism, PartitionSelection):
                released = partial(self.released, law.release)
                if mistake is not None:
                    released = partial(mistake, released)
                patch.setattr(law, "release", lambda *a, released=released: released(*a))
            for method in NORMS:
                noted = self.source_method(method, getattr(NoiseSource, method))
                patch.setattr(NoiseSource, method, noted)
            patch.setattr(os, "urandom", partial(self.ticket, os.urandom))
            patch.setattr(NoiseSource, "integers", lambda *a: self.drawn(integers, *a))
            yield


def raw_numbers(data: Any) -> np.ndarray:
    """Numbers of a fit's data in one row: values of entries, letters and words of texts."""
    if isinstance(data, tuple):
        return np.asarray(data[1], dtype=float)
    texts = data if isinstance(data, list) else np.ravel(data).tolist()
    sizes = [len(one) + len({*one.split()}) if isinstance(one, str) else one for one in texts]
    return np.array(sizes, float)


def bit(raw: np.ndarray) -> bool:
    """One bit of the data."""
    return bool(np.ptp(raw[:9]) > 0)


def nothing(_: Any) -> None:
    """No use of a fitted estimator."""


def watch(
    build: Callable[[], Any],
    fit: Callable[[Any, Any], Any],
    X: Any,
    given: Seen | None = None,
    *,
    use: Callable[[Any], Any] = nothing,
    match: np.ndarray | None = None,
    mistake: Any = None,
) -> Seen:
    """Fit what `build` makes, by recorded answers where they are given, and list all it shows.

    `fit` returns the fitted estimator, and `use` what it makes of public arguments. `match` has
    the recorded place of each unit that coins are drawn for, -1 for a new one. A `mistake` is one
    of `leaks`.
    """
    mistaken = mistake and (lambda usual, *of: mistake(usual, bit(raw_numbers(X)), *of))
    seen, estimator, printed, logged = Seen(), build(), io.StringIO(), io.StringIO()
    data = _bytes(lambda: pickle.dumps(X))
    handler, generators = logging.StreamHandler(logged), (np.random.get_state(), random.getstate())
    logging.getLogger().addHandler(handler)
    np.random.seed(0)
    random.seed(0)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            Tape(seen, given, match).running(mistaken),
        ):
            warnings.simplefilter("always")
            try:
                estimator = fit(estimator, X)
            except Exception as error:
                seen.error = error
        drawn = (state(np.random.get_state()), random.getstate())
    finally:
        logging.getLogger().removeHandler(handler)
        np.random.set_state(generators[0])
        random.setstate(generators[1])
    assert _bytes(lambda: pickle.dumps(X)) == data, "the fit changed its data"
    seen.estimator, seen.warned = estimator, [one.category for one in caught]
    seen.shown = {
        "questions": [(flow.name, flow.asked) for flow in seen.flows],
        "error": _chain(seen.error),
        # They point at lines of callers, which differ between ways to call.
        "warnings": [(one.category, str(one.message)) for one in caught],
        "attributes": state(vars(estimator)),
        "printed": printed.getvalue() + logged.getvalue(),
        "generators": drawn,
        "classes": _classes(estimator),
    }
    report = getattr(estimator, "privacy_report_", None)
    if seen.error is None and report is not None:
        seen.shown["report"] = (str(report), report.to_json())
        seen.shown["pickle"] = _bytes(lambda: pickle.dumps(estimator))
        seen.shown["file"] = _bytes(lambda: _file(estimator))
        seen.shown["use"] = state(use(estimator))
    return seen


def _chain(error: BaseException | None) -> list[Any]:
    """An error and all that it was raised from."""
    found: list[Any] = []
    while error is not None:
        found.append((type(error), str(error)))
        error = error.__cause__ or error.__context__
    return found


def _classes(estimator: Any) -> list[Any]:
    """Data that the estimator's classes hold."""
    return [
        (one.__name__, name, state(value) if isinstance(value, (*PLAIN, np.ndarray)) else None)
        for one in type(estimator).__mro__
        for name, value in vars(one).items()
        if one.__module__.startswith("sktensor_dp") and not name.startswith("__")
    ]


def _bytes(make: Callable[[], bytes]) -> bytes:
    """What is made, or why it cannot be: a ledger is not pickled, nor a generator saved."""
    try:
        return make()
    except Exception as error:
        return repr(error).encode()


def _file(estimator: Any) -> bytes:
    # Nothing is to outlive this, and no disk is waited for.
    with TemporaryDirectory() as folder, patch("os.fsync"):
        path = Path(folder) / "model"
        # A generator cannot be saved; its state is among the attributes.
        copy.copy(estimator).set_params(random_state=None).save(path)
        return path.read_bytes()


def replay(
    build: Callable[[], Any], fit: Callable[[Any, Any], Any], X: Any, other: Any, **more: Any
) -> Seen:
    """Compare a fit on X with one on other data that is handed the same answers."""
    first = watch(build, fit, X, **{**more, "match": None})
    second = watch(build, fit, other, first, **more)
    for what in first.shown | second.shown:
        found = difference(first.shown.get(what), second.shown.get(what))
        assert found is None, f"{what} differ at {found}"
    assert len(first.flows) == len(second.flows)
    if first.error is not None:
        raise first.error
    check_report(first)
    first.moved = _moved(first, second)
    return first


def difference(one: Any, other: Any, path: str = "") -> str | None:
    """Where two states differ, or None."""
    if one == other:
        return None
    nested = isinstance(one, list | tuple) and type(one) is type(other) and len(one) == len(other)
    if not nested:
        return f"{path}: {str(one)[:80]} and {str(other)[:80]}"
    label = f"{path}/{one[0]}" if one and isinstance(one[0], str) else path
    parts = (
        difference(a, b, f"{label}[{n}]") for n, (a, b) in enumerate(zip(one, other, strict=True))
    )
    return next(filter(None, parts))


def check_report(seen: Seen) -> None:
    """A report lists the answers of noise primitives as they were made, and as often."""
    report = seen.estimator.privacy_report_
    made = [flow for flow in seen.flows if flow.noise is not None]
    if not made:
        return
    last = [flow for flow in made if flow.noise == made[-1].noise]
    rows = {(row.name, row.mechanism, row.sensitivity, str(state(row.cost))) for row in report.rows}

    def noised(flow: Flow) -> tuple[Any, ...]:
        law, _, sensitivity, cost = flow.asked
        return flow.name, law, sensitivity, str(cost)

    if report.composition.kind == "selection":  # one trial is reported, of which any may be
        found = {noised(flow) for flow in made}
        assert rows <= found, f"reported, but not released: {rows - found}"
        return
    found = {noised(flow) for flow in last}
    assert found <= rows, f"released, but not reported: {found - rows}"
    node = report.composition
    while node.kind != "releases":
        node = node.parts[-1].composition
    uses = Counter(dict.fromkeys((row.name for row in node.rows), 0))
    for row in node.rows:
        uses[row.name] += row.uses
    number = Counter(flow.name for flow in last)
    number.update({flow.name for flow in seen.flows if flow.noise is None})
    assert number == uses, f"released {number}, reported {uses}"


def _moved(first: Seen, second: Seen) -> dict[str, float]:
    """Largest distance of true answers of each release, where noise hides a distance of 1."""
    found: dict[str, float] = {}
    for one, other in zip(first.flows, second.flows, strict=True):
        by_norm: dict[str, float] = {}
        for (norm, a), (_, b) in zip(one.coordinates, other.coordinates, strict=True):
            by_norm[norm] = by_norm.get(norm, 0.0) + _distance(norm, a, b)
        for norm, total in by_norm.items():
            gap = math.sqrt(total) if norm == "l2" else total
            found[one.name] = max(found.get(one.name, 0.0), gap)
    return found


def _distance(norm: str, one: Any, other: Any) -> float:
    """Distance in L1 or of rows; its square in L2; 0 where the law has a geometry of its own."""
    if isinstance(one, dict):
        gap = np.array([one.get(key, 0.0) - other.get(key, 0.0) for key in one | other])
    else:
        gap = one - other
    if norm == "l2":
        return float(np.square(gap).sum())
    if norm == "rows":
        return float(np.sqrt(np.square(gap).sum(axis=1)).sum())
    return float(np.abs(gap).sum()) if norm == "l1" else 0.0
