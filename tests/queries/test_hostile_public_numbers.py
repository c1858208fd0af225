"""Public numbers of queries at and beyond the edge of what can be computed with.

Whatever a caller, or a release before, made of them: NaN, infinite, denormal, negative or
huge ones. A query refuses them when it is made, or keeps its promise: what a unit adds is
finite, and within the sensitivity that the noise is scaled to.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from contracts.rows_of_counts import Rows
from contracts.sensitivities import Case
from contracts.test_sensitivity import CASES

from sktensor_dp.privacy.catalogue import CATALOGUE
from sktensor_dp.privacy.session import check_sensitivity, released_sensitivity
from sktensor_dp.queries.gradients import Jacobian
from sktensor_dp.queries.samples import SampleNorm
from sktensor_dp.queries.texts import NumberOfWords

pytestmark = pytest.mark.nightly

INF = math.inf
# Around zero, one, the ranges that queries document, those of single and double precision.
SMALL_SIZES = [5e-324, 1e-320, 2.3e-308, 1e-300, 1e-200, 1e-155, 1e-101, 1e-60, 1e-38, 1e-16]
LARGE_SIZES = [1e9, 1e16, 1e38, 3.3e38, 3.4e38, 3.5e38, 1e60, 1e101, 1e154, 1e200, 1e300, 1.7e308]
NO_SIZES = [-5e-324, -1e-16, -1.0, -1e38, -1e300, INF, -INF, math.nan]
HOSTILE = [0.0, 1.0, *SMALL_SIZES, *LARGE_SIZES, *NO_SIZES]
COUNTED = ("min_tokens", "max_words_per_document")  # whole numbers that a query bounds by
NUMBERLESS = ("unit_count", "word_buckets", "matching_rows", "row_concurrences")
CASES = [case for case in CASES if not case.data.grouped and case.release not in NUMBERLESS]
Change = Callable[[str, Any], Any]


def arguments(value: Any) -> dict[str, Any] | None:
    """What an object with public numbers is made of; None of any other."""
    if isinstance(value, Jacobian):
        return {name: getattr(value, name) for name in ("index_set", "factors", "core")}
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    return None


def rebuilt(value: Any, change: Change, name: str = "") -> Any:
    """The object made anew, with other numbers at places that `change` is asked about."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return change(f"array {id(value)}", value)  # one array may stand in several places
    if isinstance(value, float) or (name in COUNTED and type(value) is int):
        return change(name, value)
    if isinstance(value, tuple | list):
        whole = getattr(value, "_make", type(value))  # of a named tuple
        return whole(rebuilt(one, change, f"{name}.{i}") for i, one in enumerate(value))
    given = arguments(value)
    if given is None:
        return value
    places = {key: key if key in COUNTED else f"{name}.{key}" for key in given}
    made = {key: rebuilt(one, change, places[key]) for key, one in given.items()}
    return type(value)(**made)


def numbers_of(query: Any) -> dict[str, Any]:
    """Public numbers of a query by their places."""
    found: dict[str, Any] = {}
    no_tokens = isinstance(getattr(query, "norm", None), SampleNorm | NumberOfWords)

    def look(place: str, value: Any) -> Any:
        # Where there is no constant, a basis has no row for one; samples and texts have no tokens.
        no_row = place.endswith("offset") and value == 0
        if not (no_row or (no_tokens and place == "min_tokens")):
            found[place] = value
        return value

    rebuilt(query, look)
    return found


def spoiled(value: Any, number: float) -> Iterator[Any]:
    """A hostile number in place of a public one; of arrays in all places, in one, as a factor."""
    if not isinstance(value, np.ndarray):
        yield number
        return
    yield np.full_like(value, number)
    one = value.copy()
    one.flat[0] = number
    yield one
    with np.errstate(all="ignore"):
        yield value * number


def beside(case: Case, query: Any, space: Any) -> Any:
    """What is public beside a query, in the range that the query says."""
    if case.release == "held_out_scores":
        return query.low, query.high
    if hasattr(query, "bound"):  # of a tensor with entries as large as they may be
        return space[0] / np.abs(space[0]).max() * 1e6 * query.bound, space[1]
    return replace(space, limits=(-query.half, query.half)) if hasattr(query, "half") else space


def breach(case: Case, sound: Any, space: Any, changes: dict[str, Any]) -> str | None:
    """What is wrong with a query of these numbers, if it is neither refused nor sound."""
    rng, entry = np.random.default_rng(0), CATALOGUE[case.release]
    with np.errstate(all="ignore"):
        try:
            query = rebuilt(sound, lambda place, value: changes.get(place, value))
        except (TypeError, ValueError):
            return None
        bounds = []
        for law in filter(None, (entry.gaussian, entry.pure)):
            moved = released_sensitivity(law, query, 1, "replace_one", 1)
            try:
                check_sensitivity(moved, query)
            except RuntimeError:
                continue
            bounds.append((law.law.norm, moved))
        if not bounds:
            return None
        space = beside(case, query, space)
        of = sound if isinstance(case.data, Rows) else query
        units = case.data.units(rng, of, space, 10)
        found = [case.part(query, unit, space) for unit in units[:: 1 + len(units) // 12]]
        if not all(np.isfinite(total).all() for total in found):
            return "a contribution is not finite"
        for place, one in enumerate(found):
            for norm, bound in bounds:
                order = 1 if norm == "l1" else 2
                apart = [np.linalg.norm((one - other) / bound, order) for other in found[:place]]
                # One value of an entry moves by the width itself, without slack for rounding.
                if not max(apart, default=0.0) <= 1 + 1e-12:
                    return f"neighbours are {max(apart):.3g} of the {norm} sensitivity apart"
    return None


every_case = pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.release}: {c.kind}")


def test_every_entry_of_the_catalogue_meets_hostile_numbers():
    # These have no number, or that of tests alone.
    assert {case.release for case in CASES} == set(CATALOGUE) - {*NUMBERLESS}
    for case in CASES:
        assert numbers_of(case.extreme(np.random.default_rng(0))[0])


@every_case
def test_a_hostile_number_is_refused_or_harmless(case):
    """Each of them in the place of each public number, the others as they should be."""
    query, space, *_ = case.extreme(np.random.default_rng(0))
    assert breach(case, query, space, {}) is None
    offenders = [
        (place, number, found)
        for place, sound in numbers_of(query).items()
        for number in HOSTILE
        for value in spoiled(sound, number)
        if (found := breach(case, query, space, {place: value})) is not None
    ]
    assert offenders == []
