"""Every way to fit gives a statement that adds up; changed or hostile ones are refused."""

import copy
import json
import pickle
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import jsonschema
import numpy as np
import pytest
from cases import MODELS, plain, quiet, report_of

from sktensor_dp import BudgetAccountant, StatementError
from sktensor_dp.privacy.catalogue import CATALOGUE
from sktensor_dp.privacy.composition import Composition, ReleaseRecord
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.statement import MOST_BYTES, load_statement
from sktensor_dp.privacy.statement_schema import problems, schema_text
from sktensor_dp.queries.laws import LAWS, law_of

SCHEMA = json.loads(schema_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


# Every kind of composition and of noise.
NAMES = [
    "topics", "topics, pure", "components, each step", "components, stream", "words", "search",
    "search, components", "search, stream", "CP, output", "Tucker, persons, directions",
]  # fmt: skip
OTHERS = "topics, batches", "topics, next month"
every_statement = pytest.mark.parametrize("name", [*NAMES, *OTHERS])


@cache
def reported(name: str) -> PrivacyReport:
    if name == "topics, next month":
        return report_of("topics").followed_by(replace(report_of("topics"), n_units=7))
    return report_of("topics", container="batches") if name in OTHERS else report_of(name)


@cache
def statement_of(name: str) -> dict[str, Any]:
    return json.loads(reported(name).to_json())


TOPICS = statement_of("topics")
Place = tuple[Any, ...]


def places(value: Any, kind: type | tuple[type, ...], at: Place = ()) -> Iterator[Place]:
    """Where in a statement values of a kind are."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from places(item, kind, (*at, key))
    if isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        yield at


def value_at(statement: Any, at: Place) -> Any:
    for key in at:
        statement = statement[key]
    return statement


def changed(statement: dict[str, Any], at: Place, change: Any) -> dict[str, Any]:
    """The statement with one value replaced by what a function makes of it."""
    other = copy.deepcopy(statement)
    inner = value_at(other, at[:-1])
    inner[at[-1]] = change(inner[at[-1]])
    return other


def refused(statement: Any) -> str:
    with pytest.raises(StatementError) as caught:
        load_statement(json.dumps(statement))
    return str(caught.value)


# A millionth is a hundred times what is forgiven.
ALTERATIONS = [
    lambda x: x * (1 + 1e-6) if x else 1e-6,
    lambda x: x * (1 - 1e-6) if x else 1.0,
    lambda x: 2 * x if x else 0.5,
    lambda x: x / 2 if x else 2,
    lambda x: x + max(1, x / 1000),
    lambda x: 0 if x else 7,
    lambda x: "inf" if x != "inf" else 1.0,
]


COUNTS_TOWARDS_IT = {"epsilon", "sigma", "mu", "uses", "sensitivity", "fraction"}


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.nightly)])
@every_statement
def test_no_number_can_be_altered(name, seed, whole):
    """Nor by a millionth: none that counts towards the total, and none of a random thirty."""
    statement, rng = statement_of(name), np.random.default_rng(seed)
    numbers = list(places(statement, (int, float)))
    assert {at[-1] for at in numbers} >= COUNTS_TOWARDS_IT - {"mu"}
    for at in numbers:
        if at[-1] in COUNTS_TOWARDS_IT:
            for alteration in ALTERATIONS if whole else [ALTERATIONS[rng.integers(5)]]:
                refused(changed(statement, at, alteration))
    # A larger delta than a search spends may be said.
    numbers = [at for at in numbers if at != ("guarantee", "delta")]
    for index in rng.choice(len(numbers), size=min(30, len(numbers)), replace=False):
        refused(changed(statement, numbers[index], ALTERATIONS[rng.integers(len(ALTERATIONS))]))


@every_statement
def test_no_release_can_be_left_out_added_or_repeated(name):
    statement = statement_of(name)
    lists = [at for at in places(statement, list) if at[-1] in ("releases", "unused", "parts")]
    assert lists
    for at in lists:
        refused(changed(statement, at, lambda rows: [*rows, *rows] or [{}]))
        refused(changed(statement, at, lambda rows: rows[1:] or [{}]))
    for at in [at for at in lists if at[-1] == "releases"]:
        # Half of what is missing is no longer there to be missed.
        reasons = refused(changed(statement, at, lambda rows: rows[:-1]))
        assert "rest gives" in reasons or "add up" in reasons


@every_statement
def test_no_flag_or_kind_can_be_turned(name):
    statement = statement_of(name)
    for at in places(statement, bool):
        refused(changed(statement, at, lambda flag: not flag))
    for at in [at for at in places(statement, str) if at[-1] == "kind"]:
        node = value_at(statement, at[:-1])
        # Of a single part, taken once, a sequence is as good as parallel parts.
        single = [part["times"] for part in node.get("parts", [])] == [1]
        for kind in {"releases", "sequence", "parallel", "selection", "other"} - {node["kind"]}:
            if not single:
                refused(changed(statement, at, lambda _, kind=kind: kind))


@pytest.mark.parametrize(
    "at",
    [
        ("unit", "name"), ("neighbours", "relation"), ("noise", "sampler"),
        ("guarantee", "in_words"), ("format",),
        ("composition", "releases", 0, "mechanism"), ("composition", "releases", 0, "norm"),
    ],
    ids=lambda at: str(at[-1]),
)  # fmt: skip
def test_no_word_that_counts_can_be_changed(at):
    for other in ("person", "add_remove", "float", "laplace", "l1", "sums up"):
        refused(changed(TOPICS, at, lambda _, other=other: other))


def other_report(name: str, **changes: Any) -> Any:
    """Statement of a changed report, with all that follows from the changes."""
    report = load_statement(json.dumps(statement_of(name)))
    if name == "search":
        changes["composition"] = replace(report.composition, epsilon=changes["epsilon"])
    return json.loads(replace(report, **changes).to_json())


REASONS = {
    "a total": (
        changed(TOPICS, ("guarantee", "epsilon"), lambda e: e / 2),
        "guarantee.epsilon states 0.5, but the releases add up to 1 at delta 1e-6\n",
    ),
    "a release": (
        changed(TOPICS, ("composition", "releases", 1, "sigma"), lambda s: 2 * s),
        "composition.releases[1].sigma is",
    ),
    "not covered": (
        changed(TOPICS, ("not_covered",), lambda rows: rows[1:]),
        "not_covered must name running_time",
    ),
    "a cheap search": (other_report("search", epsilon=2.0), "the selection allows"),
    "batches of fewer units": (other_report("components, stream", n_units=240), "together"),
    "fits to fewer units": (other_report("topics, next month", n_units=9000), "up to"),
    "fits to more units": (other_report("topics, next month", n_units=8), "but there are 8"),
}  # fmt: skip


@pytest.mark.parametrize("name", REASONS)
def test_what_does_not_add_up_is_said_in_plain_words(name):
    """Of a statement with all that follows from its one mistake."""
    statement, reason = REASONS[name]
    assert reason in refused(statement)


def test_more_may_be_said_and_spent():
    load_statement(json.dumps(other_report("search", epsilon=5.0)))
    said = [{**row, "in_words": "?"} for row in TOPICS["not_covered"]]
    more = [*said, {"what": "weather", "in_words": "The weather."}]
    load_statement(json.dumps({**TOPICS, "not_covered": more}))
    # Reasons show no control characters.
    reasons = refused(changed(TOPICS, ("unit", "name"), lambda _: "\x1b[2J\n\u202e"))
    assert all(letter.isprintable() or letter == "\n" for letter in reasons)


TEXT = json.dumps(TOPICS)
LEDGER = BudgetAccountant(1.0).spend(0.5, 0).to_json()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "no privacy statement"),
        ("null", "no privacy statement"),
        ("{}", "no privacy statement"),
        ('{"format": ["a"]}', "no privacy statement"),
        ('{"format": 1, "format": 1}', "twice"),
        ('{"a": NaN}', "NaN is no JSON"),
        ('{"a": -Infinity}', "is no JSON"),
        ('{"a": 1e999}', "too large"),
        ('{"a": ' + "9" * 350 + "}", "too large"),
        ('{"a": ' + "9" * 5000 + "}", "too large"),
        ("[" * 100 + "]" * 100, "too deeply"),
        ("[" * 100_000 + "]" * 100_000, "too deeply"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "too deeply"),
        ("\ud800", "not UTF-8"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b" " * (MOST_BYTES + 1), "longer than 16 MiB"),
        (TEXT.replace('"epsilon": 1.0', '"epsilon": NaN'), "NaN is no JSON"),
        (TEXT.replace('"version": 1', '"version": 1, "version": 1'), "twice"),
        (TEXT.replace('"uses": 2', '"uses": 2, "uses": 2'), "twice"),
        (TEXT.replace('"version": 1', '"version": 2, "new": true'), "later than 1"),
        (TEXT.replace('"version": 1', '"version": true'), "version"),
        (LEDGER, "budget show"),
        (f"[{LEDGER}]", "budget show"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_hostile_input_is_refused_cleanly(text, reason):
    assert text != TEXT
    with pytest.raises(StatementError, match=reason):
        load_statement(text)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (("composition", "releases", 0, "uses"), 10**15),
        (("composition", "releases", 0, "mu"), 1e300),
        (("composition", "releases", 0, "sensitivity"), 1e-320),
        (("guarantee", "delta"), 1), (("guarantee", "delta"), 1e-320), (("unit", "number"), 10**15),
    ],
    ids=lambda of: str(of[-1] if isinstance(of, tuple) else of),
)  # fmt: skip
def test_extreme_numbers_are_refused_and_do_no_harm(at, value):
    for name in ("topics", "topics, pure"):
        refused(changed(statement_of(name), at, lambda _: value))


def test_many_or_deep_parts_take_little_time():
    """Time in proportion to the length, whatever is nested or counted."""
    statement = copy.deepcopy(statement_of("search, components"))
    start = time.process_time()
    inner = statement["composition"]
    for _ in range(15):
        part = {"role": "fit", "times": 10**15, "units": 120, "composition": inner}
        inner = {
            "kind": "parallel", "parts": [part], "units_read": 0,
            "unit_costs": inner["unit_costs"],
        }  # fmt: skip
    refused({**statement, "composition": inner})
    node = copy.deepcopy(statement)["composition"]["parts"][0]["composition"]
    node["parts"] *= 2000
    refused({**statement, "composition": node})
    part = {"role": "trial", "times": 1, "units": 120, "composition": statement["composition"]}
    many = {**inner, "kind": "parallel", "parts": [part] * 100}
    assert "more than 50 selections" in refused({**statement, "composition": many})
    # A megabyte: a second, with room for a slow machine.
    assert time.process_time() - start < 12


EDGES = [-1, -1e-9, 0, 0.5, 1, 1 + 1e-9, 2.0, 10**15, 10**15 + 1, True, "inf", None, "x" * 101]
EDGES += ["x" * 10_001, [], {}]


@every_statement
def test_typed_fields_have_the_limits_of_the_schema(name, seed):
    """At and beyond the ends of ranges, of lengths and of types."""
    statement, rng = statement_of(name), np.random.default_rng(seed)
    found = list(places(statement, (str, int, float, list, dict)))[1:]
    for index in rng.choice(len(found), size=min(4, len(found)), replace=False):
        at = found[index]
        for edge in EDGES:
            other = changed(statement, at, lambda _, edge=edge: edge)
            assert any(problems(other)) == (not VALIDATOR.is_valid(other)), (at, edge)


def checked(report: PrivacyReport) -> PrivacyReport:
    """The report after a check of its statement against the schema and its own sums."""
    text = report.to_json()
    VALIDATOR.validate(json.loads(text))
    return load_statement(text)


def kinds(node: dict) -> set[str]:
    inner = (kinds(part["composition"]) for part in node.get("parts", []))
    return {node["kind"]}.union(*inner)


@pytest.mark.parametrize("name", MODELS)
def test_every_way_to_fit_gives_a_statement_that_adds_up(name):
    report, seeded = report_of(name), replace(report_of(name), seeded=True)
    assert checked(report) == report == pickle.loads(pickle.dumps(report))
    assert checked(seeded).seeded
    stated = json.loads(seeded.to_json())["guarantee"]
    assert not stated["protects"]
    assert stated["in_words"].startswith("NOT PRIVATE")
    if name.endswith("exact"):
        stated = json.loads(report.to_json())["guarantee"]
        assert (stated["epsilon"], stated["protects"]) == ("inf", False)
        assert "not private" in stated["in_words"]


def test_ways_to_fit_compose_in_all_ways():
    reports = [reported("topics, batches"), *map(report_of, MODELS)]
    nodes = [json.loads(report.to_json())["composition"] for report in reports]
    found = set().union(*map(kinds, nodes))
    assert found == {"releases", "parallel", "selection"}
    assert any(node.get("unused") for node in nodes)


def test_a_stream_after_a_search_adds_up():
    case = plain("search, stream", payer="none")
    search, X = case.build(n_trials=3), case.draw().X
    with quiet():
        stream = search.fit(X).best_estimator_
        stream.partial_fit(X[:30]).partial_fit(X[30:])
    report = checked(stream.privacy_report_)
    assert (report.n_units, report.epsilon) == (120, 4.0)
    whole = json.loads(report.to_json())["composition"]
    assert [part["times"] for part in whole["parts"]] == [1, 2]
    assert kinds(whole) == {"releases", "parallel", "selection"}


def test_batches_at_another_delta_still_add_up():
    one, other = report_of("topics"), report_of("topics, pure")
    assert checked(one.joined(other)).delta == one.delta
    # Both were asked for epsilon = 1; the Gaussian one ends below by rounding.
    assert checked(other.joined(one)).epsilon == max(one.epsilon, other.epsilon)


def test_statements_name_registered_laws_and_no_other():
    named = SCHEMA["$defs"]["release"]["properties"]["mechanism"]["enum"]
    assert set(named) == LAWS.keys() == {law.id for e in CATALOGUE.values() for law in e.query.laws}
    assert [law_of(name).id for name in named] == named
    with pytest.raises(ValueError, match="'cauchy'"):
        law_of("cauchy")


def rules(rule: dict, place: str) -> Iterator[tuple[dict, str]]:
    """Yield each rule of the schema with its place."""
    yield rule, place
    for name, inner in rule.get("properties", {}).items():
        yield from rules(inner, f"{place}.{name}")
    for inner in (*rule.get("anyOf", []), *filter(None, [rule.get("items")])):
        yield from rules(inner, f"{place}[]")


def test_the_schema_is_sound_and_explains_every_field():
    VALIDATOR.check_schema(SCHEMA)
    assert SCHEMA["properties"]["version"]["const"] == 1
    for place, names in {
        ("unit", "name"): ("document", "sample", "entry", "person"),
        ("neighbours", "relation"): ("replace_one", "add_remove"),
    }.items():
        inner = SCHEMA["properties"][place[0]]["properties"][place[1]]
        assert all(f"{name}:" in inner["description"] for name in names)
    for start in ({"$": SCHEMA} | SCHEMA["$defs"]).items():
        assert start[1]["description"], start[0]
        for rule, place in rules(start[1], start[0]):
            for name, inner in rule.get("properties", {}).items():
                assert inner.get("description"), f"{place}.{name} is not explained"
            if "properties" in rule and "allOf" not in rule:
                assert rule["additionalProperties"] is False
                assert rule["required"] == list(rule["properties"])
            for one in rule.get("allOf", []):
                kind = one["if"]["properties"]["kind"]["const"]
                assert one["then"]["$ref"] == f"#/$defs/{kind}"


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_persons_noisy_counts_and_numbers_of_numpy_have_room(relation):
    """Rows of one label as the unit, and a number of units that is released."""
    amounts = map(np.float64, (1.0, 10.0, 0.1, 0.0, 0.0))
    row = ReleaseRecord("unit_count", "a number", *amounts, 1, "gaussian")
    whole = Composition("releases", rows=(row,))
    epsilon = np.float64(whole.epsilon_at(1e-6))
    report = PrivacyReport(epsilon, 1e-6, "person", relation, np.int64(1000), False, whole)
    assert checked(report) == report
    stated = json.loads(report.to_json())["unit"]
    assert stated["number_is"] == ("released" if relation == "add_remove" else "public")
    assert "all rows" in stated["in_words"]
