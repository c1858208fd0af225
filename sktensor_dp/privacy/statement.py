"""Statements: a report as JSON that programs and authorities read and add up again."""

import json
import math
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from sktensor_dp.checks.display import finite, plain, printable
from sktensor_dp.exceptions import StatementError
from sktensor_dp.privacy.composition import Composition, Part, ReleaseRecord, unit_costs
from sktensor_dp.privacy.mechanisms import sigma_of
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost
from sktensor_dp.privacy.report import (
    FORMAT,
    NOT_COVERED,
    VERSION,
    PrivacyReport,
    Statement,
    allowed_trial,
    written,
)
from sktensor_dp.privacy.statement_schema import problems
from sktensor_dp.queries.laws import law_of

MOST_BYTES, DEEPEST = 16 * 2**20, 60
# Sums in another order or on another machine are rounded differently, and costs of trials, found by
# bisection, have a relative error of 1e-9.
TOLERANCE = 1e-8


def strict_json(data: bytes, most_bytes: int) -> Any:
    """Read JSON of limited length and depth, no field twice, no NaN; StatementError otherwise."""
    if len(data) > most_bytes:
        raise StatementError(f"it is longer than {most_bytes >> 20} MiB.")
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_distinct_fields,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            parse_int=_bounded_int,
        )
    except UnicodeDecodeError:
        raise StatementError("it is not UTF-8.") from None
    except RecursionError:
        raise StatementError("it is nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise StatementError(
            f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise StatementError("it is nested too deeply.")
        nodes = [item for item in level if isinstance(item, dict | list)]
        level = [*chain.from_iterable(n.values() if isinstance(n, dict) else n for n in nodes)]
    return value


def _distinct_fields(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Fields of an object as a dict; refuses a field that occurs twice."""
    if len(dict(pairs)) < len(pairs):
        raise StatementError("an object names a field twice.")
    return dict(pairs)


def _refuse_constant(constant: str) -> None:
    """Refuse NaN and infinity as bare words."""
    raise StatementError(f'{constant} is no JSON; infinity is written "inf".')


def _finite_float(text: str) -> float:
    """Read a float; refuse one that overflows."""
    value = float(text)
    if not math.isfinite(value):
        raise StatementError("a number is too large.")
    return value


def _bounded_int(text: str) -> int:
    """Read an integer; refuse one beyond the range of floats."""
    _finite_float(text)  # for its error
    return int(text)


# Keys by which the statement of a ledger is recognised.
OF_LEDGERS = {"scope", "entries", "spent"}


def load_statement(data: str | bytes) -> PrivacyReport:
    """Read a privacy statement and add it up again.

    Parameters
    ----------
    data : str or bytes
        Statement, as ``privacy_report_.to_json()`` returned it.

    Returns
    -------
    PrivacyReport
        Report from which the statement was written.

    Raises
    ------
    StatementError
        If `data` is no statement, or if a number in it is not the one that its releases
        and their composition give. Each line of the message is a reason.

    Examples
    --------
    >>> from sktensor_dp.privacy.composition import Composition
    >>> from sktensor_dp.privacy.report import PrivacyReport
    >>> nothing = Composition("releases")
    >>> empty = PrivacyReport(0.0, 0.0, "document", "replace_one", 20, False, nothing)
    >>> load_statement(empty.to_json()) == empty
    True
    """
    encoded = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    stated = strict_json(encoded, MOST_BYTES)
    _check_heading(stated)
    _refuse(problems(stated))
    try:
        report = _report(stated)
        rebuilt = finite({**written(report), "library": stated["library"]})
        _refuse(_reasons(stated, report, rebuilt))
    except (ArithmeticError, RecursionError, ValueError) as error:
        if isinstance(error, StatementError):
            raise
        raise StatementError("its numbers are beyond what can be added up.") from None
    return report


def _check_heading(stated: Any) -> None:
    """Raise StatementError unless this is a privacy statement of a version that can be read."""
    is_list = isinstance(stated, list)  # as the statement of several ledgers is
    first = stated[0] if is_list and stated else stated
    if isinstance(first, dict) and first.keys() >= OF_LEDGERS:
        raise StatementError(
            "it is the statement of a ledger, which `sktensor-dp budget show` checks."
        )
    if not isinstance(stated, dict) or stated.get("format") != FORMAT:
        raise StatementError("it is no privacy statement of sktensor_dp.")
    version = stated.get("version")
    if type(version) is int and version > VERSION:
        raise StatementError(
            f"it has version {min(version, 10**6)}, which is later than {VERSION}, the last that "
            "this version of sktensor_dp can read. Install a later one."
        )


def _refuse(reasons: Iterator[str]) -> None:
    """Raise StatementError with the first 20 of the `reasons`, if there are any."""
    most = 20
    first = [printable(reason) for reason in islice(reasons, most + 1)]
    if first:
        more = ["and more"] if len(first) > most else []
        raise StatementError("\n".join(first[:most] + more))


def _report(stated: Statement) -> PrivacyReport:
    """Rebuild the privacy report from the facts that a statement holds."""
    relation, guarantee = stated["neighbours"], stated["guarantee"]
    in_words = relation["relation"] == "in_words"
    # Limit on selections, as the cost of each is found by bisection.
    most_selections = 50
    if _selections(stated["composition"]) > most_selections:
        raise StatementError(f"it has more than {most_selections} selections.")
    return PrivacyReport(
        epsilon=float(guarantee["epsilon"]),
        delta=float(guarantee["delta"]),
        unit=stated["unit"]["name"],
        neighbours=relation["in_words"] if in_words else relation["relation"],
        n_units=stated["unit"]["number"],
        seeded=stated["noise"]["seeded"],
        composition=_composition(stated["composition"]),
        notes=tuple(stated["notes"]),
    )


def _selections(node: Statement) -> int:
    """Number of selection nodes in a composition tree of plain values."""
    own = node["kind"] == "selection"
    return own + sum(_selections(part["composition"]) for part in node.get("parts", []))


def _composition(node: Statement) -> Composition:
    """Composition tree from the plain values of a statement."""
    parts = tuple(
        Part(
            part["role"], int(part["units"]), _composition(part["composition"]), int(part["times"])
        )
        for part in node.get("parts", [])
    )
    rows = []
    for row in node.get("releases", []):
        cost, law, sensitivity = _cost(row), law_of(row["mechanism"]), float(row["sensitivity"])
        rows.append(
            ReleaseRecord(
                row["name"], row["description"], sensitivity, sigma_of(law, sensitivity, cost),
                *cost.amounts, uses=int(row["uses"]), mechanism=law.id,
            )
        )  # fmt: skip
    unused = tuple(
        PlannedRelease(row["name"], _cost(row), int(row["uses"])) for row in node.get("unused", [])
    )
    of_selection = (
        float(node.get(name, default))
        for name, default in (("expected_trials", 1.0), ("epsilon", 0.0), ("delta", 0.0))
    )
    return Composition(node["kind"], tuple(rows), unused, parts, *of_selection)


def _cost(row: Statement) -> PrivacyCost:
    """Cost from plain values."""
    return PrivacyCost(float(row["mu"]), float(row["epsilon"]), float(row["delta"]))


def _reasons(stated: Statement, report: PrivacyReport, rebuilt: Statement) -> Iterator[str]:
    """Yield each contradiction, that of the total first; `rebuilt` is the report written anew."""
    # Where delta almost suffices without epsilon, smaller epsilons are rounding errors.
    smallest_epsilon = 1e-12
    whole, delta = report.composition, report.delta
    total = whole.epsilon_at(delta)
    if not _close(report.epsilon, total, smallest_epsilon):
        yield (
            f"guarantee.epsilon states {report.epsilon:.9g}, but the releases add up to "
            f"{total:.9g} at delta {plain(delta)}"
        )
    number_is_private = report.neighbours == "add_remove"
    for node, n_units, place in _nodes(whole, report.n_units, "composition"):
        yield from _noise_reasons(node, place)
        if node.kind == "selection":
            yield from _selection_reasons(node)
        yield from _unit_reasons(node, n_units, place, number_is_private=number_is_private)
    missing = NOT_COVERED.keys() - {item["what"] for item in stated["not_covered"]}
    if missing:
        yield f"not_covered must name {', '.join(sorted(missing))}"
    for field in ("unit", "neighbours", "not_covered"):
        rebuilt[field] = _without_words(rebuilt[field])
        stated = {**stated, field: _without_words(stated[field])}
    rebuilt["not_covered"] = stated["not_covered"]  # which may name more
    yield from _differences(stated, rebuilt, "")


def _without_words(value: Statement | list[Statement]) -> Any:
    """Copy of objects without texts for people, which later versions may change."""
    if isinstance(value, list):
        return [_without_words(item) for item in value]
    if value.get("relation") == "in_words":  # the words are the relation
        return value
    return {key: item for key, item in value.items() if key != "in_words"}


def _nodes(
    node: Composition, n_units: float, place: str
) -> Iterator[tuple[Composition, float, str]]:
    """Yield each node of a tree, its number of units, and its place in the statement."""
    yield node, n_units, place
    for number, part in enumerate(node.parts):
        yield from _nodes(part.composition, part.n_units, f"{place}.parts[{number}].composition")


def _noise_reasons(node: Composition, place: str) -> Iterator[str]:
    """Yield contradictions of costs and noise: Gaussian noise costs no epsilon, pure no mu."""
    for number, row in enumerate(node.rows):
        law = law_of(row.mechanism)
        of_other_laws = row.mu if law.pure else row.epsilon
        if of_other_laws > 0 or (row.delta > 0 and not law.fails):
            yield f"{place}.releases[{number}] costs what its noise, {row.mechanism}, does not"
    for number, planned in enumerate(node.unused):
        if planned.cost.mu > 0 and planned.cost.epsilon > 0:
            yield f"{place}.unused[{number}] costs two kinds of noise"


def _selection_reasons(node: Composition) -> Iterator[str]:
    """Yield costs of a trial beyond what its selection allows, or of mixed kinds of noise."""
    allowed = allowed_trial(node)
    for cost in unit_costs(node.parts[0].composition):
        is_mixed = cost.epsilon > 0 and (cost.mu > 0 or cost.delta > 0)
        pairs = ((cost.mu, allowed.mu), (cost.epsilon, allowed.epsilon))
        if is_mixed or any(amount > most * (1 + TOLERANCE) for amount, most in pairs):
            yield (
                f"a trial costs mu {cost.mu:.9g}, epsilon {cost.epsilon:.9g}, delta "
                f"{cost.delta:g}, but the selection allows mu {allowed.mu:.9g}, epsilon "
                f"{allowed.epsilon:.9g}, of one kind"
            )


def _unit_reasons(
    node: Composition, n_units: float, place: str, *, number_is_private: bool
) -> Iterator[str]:
    """Yield contradictions of the parts' numbers of units, which are noisy if private."""
    together = sum(part.times * part.n_units for part in node.parts)
    must_add_up = number_is_private or all(part.role == "batch" for part in node.parts)
    if node.kind == "parallel" and must_add_up and together != n_units:
        yield f"{place}.parts: parts must have {n_units} units together"
    # Parts that read the same units have separate noisy counts.
    if number_is_private and node.kind == "sequence":
        return
    most = max((part.n_units for part in node.parts), default=n_units)
    # Fits that follow each other may be to data of fewer units.
    if most > n_units or (node.kind in ("sequence", "selection") and most < n_units):
        yield f"{place}.parts: they have up to {most} units, but there are {n_units}"


def _differences(stated: Any, rebuilt: Any, place: str) -> Iterator[str]:
    """Yield differences of two trees of plain values beyond rounding."""
    if isinstance(stated, dict) and isinstance(rebuilt, dict) and stated.keys() == rebuilt.keys():
        for name in stated:
            yield from _differences(stated[name], rebuilt[name], f"{place}.{name}".lstrip("."))
    elif isinstance(stated, list) and isinstance(rebuilt, list) and len(stated) == len(rebuilt):
        for number, (one, other) in enumerate(zip(stated, rebuilt, strict=True)):
            yield from _differences(one, other, f"{place}[{number}]")
    elif _is_number(stated) and _is_number(rebuilt):
        if not _close(stated, rebuilt):
            yield f"{place} is {stated:.9g}, but the rest gives {rebuilt:.9g}"
    elif stated != rebuilt or isinstance(stated, bool) != isinstance(rebuilt, bool):
        yield f"{place} is {_short(stated)}, but the rest gives {_short(rebuilt)}"


def _is_number(value: object) -> bool:
    """Return True for a number other than a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _close(one: float, other: float, smallest: float = 0.0) -> bool:
    """Return True if two numbers are equal but for rounding, or less than `smallest` apart."""
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=smallest)


def _short(value: object) -> str:
    """Value as text of at most about 100 characters."""
    text = str(value)
    return text if len(text) <= 100 else text[:100] + " ..."
