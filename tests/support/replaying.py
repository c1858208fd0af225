"""Recording of fits, and refitting on other data that is told the recorded values.

A fit on X is recorded release by release, and a second fit, on unrelated data of the same
public shape, gets the recorded values for its releases. Had anything else of the data
reached the fitted state, the sequence of releases, a warning or an error, the two would
differ. Attributes are compared bit by bit, private ones too.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.statistics.row_frames import SortedRows


def state(item: Any) -> Any:
    """All there is to an object, in a form that compares by value and bit by bit."""
    if isinstance(item, np.ndarray):
        return ("array", str(item.dtype), item.shape, item.tobytes())
    if isinstance(item, dict):
        return ("dict", [(state(key), state(value)) for key, value in item.items()])
    if isinstance(item, list | tuple):
        return (type(item).__name__, [state(part) for part in item])
    if isinstance(item, np.random.RandomState):
        return ("RandomState", state(item.get_state()))
    if isinstance(item, np.random.Generator):
        return ("Generator", state(item.bit_generator.state))
    if item is None or isinstance(item, str | int | float | complex | np.generic | type | slice):
        return (type(item).__name__, repr(item))
    if isinstance(item, SortedRows):
        # It reads public numbers block by block: those are compared, not how they are read.
        blocks = [state(block) for block in item.blocks()]
        return ("SortedRows", [state(item.index_set), item.mode, item.shape, blocks])
    if isinstance(item, BudgetAccountant):
        charged = [(one.release, one.uses, one.cost, one.protects) for one in item.entries]
        return ("BudgetAccountant", state(charged))
    # Functions can carry anything along: none may be kept.
    assert not isinstance(item, FunctionType | MethodType | BuiltinFunctionType), item
    return (type(item).__name__, state(vars(item)))


@dataclass
class Seen:
    """What one fit showed, beside the values it released."""

    releases: list[Any] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)
    fitted: Any = None
    warnings: list[Any] = field(default_factory=list)
    error: Any = None

    def public(self) -> tuple[Any, ...]:
        return self.releases, self.fitted, self.warnings, self.error


@contextmanager
def taped(seen: Seen, given: list[np.ndarray] | None) -> Iterator[None]:
    """Record releases; hand out given values in their place.

    The question is put to the data all the same: it might warn.
    """
    admit, answer = DataCurator._admit, DataCurator._answer
    answer_by_rows = DataCurator._answer_by_rows
    source = None if given is None else iter(given)

    def recording_admit(
        self: DataCurator, name: str, query: Any, law: Any, cost: Any = None
    ) -> Any:
        seen.releases.append((name, state(query), self.n_units))
        return admit(self, name, query, law, cost)

    def recording_answer(
        self: DataCurator, query: Any, mechanism: Any, cost: Any, noiseless: bool
    ) -> Any:
        value = answer(self, query, mechanism, cost, noiseless)
        if source is not None:
            value = next(source).copy()
        seen.values.append(value.copy())
        seen.releases.append((mechanism.name, state(cost), value.shape))
        return value

    def recording_rows(self: DataCurator, mechanism: Any, query: Any, cost: Any) -> Any:
        rows = answer_by_rows(self, mechanism, query, cost)
        value = rows.product(np.eye(rows.size))
        if source is not None:
            value = next(source).copy()
        seen.values.append(value.copy())
        seen.releases.append((mechanism.name, state(cost), value.shape))
        return SimpleNamespace(product=value.__matmul__)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DataCurator, "_answer_by_rows", recording_rows)
        patch.setattr(DataCurator, "_admit", recording_admit)
        patch.setattr(DataCurator, "_answer", recording_answer)
        yield


def watch(
    build: Callable[[], Any],
    fit: Callable[[Any, Any], Any],
    X: Any,
    given: list[np.ndarray] | None = None,
) -> Seen:
    """Fit what `build` makes and tell what can be seen; `fit` returns the fitted estimator."""
    seen, estimator = Seen(), build()
    with warnings.catch_warnings(record=True) as caught, taped(seen, given):
        warnings.simplefilter("always")
        try:
            estimator = fit(estimator, X)
        except Exception as error:
            seen.error = (type(error), str(error))
    seen.fitted = state(vars(estimator))
    seen.warnings = [(w.category, str(w.message), w.filename, w.lineno) for w in caught]
    return seen


def replay(build: Callable[[], Any], fit: Callable[[Any, Any], Any], X: Any, other: Any) -> Seen:
    """Compare a fit on X with one on other data that is told the same values."""
    first = watch(build, fit, X)
    second = watch(build, fit, other, first.values)
    assert len(first.values) == len(second.values) > 0
    for one, two in zip(first.public(), second.public(), strict=True):
        assert one == two
    assert first.error is None
    return first
