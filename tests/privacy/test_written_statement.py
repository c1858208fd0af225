"""Statements follow their schema, and every way to fit gives one that adds up."""

import functools
import json
import math
import re
import tomllib
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from ways_to_fit import COUNTS, SAMPLES, WAYS, quiet

import sktensor_dp
from sktensor_dp import (
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)
from sktensor_dp.privacy.composition import Composition, ReleaseRecord
from sktensor_dp.privacy.mechanisms import Mechanism
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.privacy.report import PrivacyReport, norm_of
from sktensor_dp.privacy.statement import load_statement, schema_text, sigma_of

SCHEMA = json.loads(schema_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
ROOT = Path(sktensor_dp.__file__).parents[1]


@functools.cache
def report_of(name: str, epsilon: float | None = None) -> PrivacyReport:
    """The report of a way to fit, as if its noise had been secret."""
    way = WAYS[name]
    with quiet():
        estimator = way.build()
        if epsilon is not None:
            estimator.set_params(epsilon=epsilon)
        way.call(estimator)
    return replace(estimator.privacy_report_, seeded=False)


def checked(report: PrivacyReport) -> PrivacyReport:
    """The report after a check of its statement against the schema and its own sums."""
    text = report.to_json()
    VALIDATOR.validate(json.loads(text))
    return load_statement(text)


def kinds(node: dict) -> set[str]:
    inner = (kinds(part["composition"]) for part in node.get("parts", []))
    return {node["kind"]}.union(*inner)


@pytest.mark.parametrize("name", WAYS)
def test_every_way_to_fit_gives_a_statement_that_adds_up(name: str) -> None:
    report = report_of(name)
    assert checked(report) == report
    seeded = checked(replace(report, seeded=True))
    assert seeded.seeded
    stated = json.loads(replace(report, seeded=True).to_json())["guarantee"]
    assert not stated["protects"]
    assert stated["in_words"].startswith("NOT PRIVATE")


# A stream goes on at the budget it was begun at.
ENDLESS = [name for name in WAYS if WAYS[name].begin is None]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ENDLESS)
def test_without_noise_statements_add_up_to_infinity_and_say_so(name: str) -> None:
    report = report_of(name, math.inf)
    assert checked(report) == report
    stated = json.loads(report.to_json())["guarantee"]
    if report.rows:
        assert (stated["epsilon"], stated["protects"]) == ("inf", False)
        assert "not private" in stated["in_words"]


def test_ways_to_fit_compose_in_all_ways() -> None:
    nodes = [json.loads(report_of(name).to_json())["composition"] for name in WAYS]
    found = set().union(*map(kinds, nodes))
    assert found == {"releases", "sequence", "parallel", "overlapping", "selection"}
    assert any(node.get("unused") for node in nodes)


def test_spherical_noise_has_notes_and_adds_up() -> None:
    with quiet():
        model = PrivateSpectralLDA(2, delta=0, perturbation="moment_tensor").fit(COUNTS)
    report = model.privacy_report_
    assert any("double precision" in note for note in report.notes)
    assert checked(report) == report


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_searches_say_in_how_many_fits_and_scores_a_unit_is(cv: int | None, delta: float) -> None:
    model = PrivateSpectralLDA(2, n_refinements=1)
    search = PrivateSearchCV(
        model, {"n_components": [1, 2]}, n_trials=3, cv=cv, epsilon=4.0, delta=delta
    )
    with quiet():
        report = search.fit(COUNTS).privacy_report_
    assert checked(report) == report
    stated = json.loads(report.to_json())
    assert stated["guarantee"]["epsilon"] == 4.0
    assert stated["guarantee"]["mu"] is None
    trial = stated["composition"]["parts"][0]["composition"]
    if cv is None:
        assert trial["kind"] == "parallel"
        return
    (member,) = trial["parts"][0]["composition"]["a_unit_is_in"]
    found = {one["role"]: one["number"] for one in member["parts"]}
    assert found == {"fit": 2, "score": 1}


def test_a_stream_after_a_search_adds_up() -> None:
    model = PrivateTensorPowerMethod(
        1, perturbation="stream", data_norm=2.0, n_restarts=2, max_iter=1
    )
    search = PrivateSearchCV(model, {"n_restarts": [1, 2]}, score_bounds=(-1.0, 1.0), n_trials=3)
    with quiet():
        stream = search.fit(SAMPLES).best_estimator_
        stream.partial_fit(SAMPLES[:60]).partial_fit(SAMPLES[60:])
    report = checked(stream.privacy_report_)
    assert report.n_units == 240
    assert report.epsilon == 1.0
    whole = json.loads(report.to_json())["composition"]
    assert [part["times"] for part in whole["parts"]] == [1, 2]
    assert kinds(whole) == {"releases", "parallel", "selection"}


def test_batches_at_another_delta_still_add_up() -> None:
    one = report_of("topics")
    other = report_of("topics, pure")
    assert checked(one.joined(other)).delta == one.delta
    # Both were asked for epsilon = 1; the Gaussian one ends below by rounding.
    assert checked(other.joined(one)).epsilon == max(one.epsilon, other.epsilon)


def mechanisms() -> list[Mechanism]:
    return [law for entry in CATALOGUE.values() for law in (entry.gaussian, entry.pure) if law]


def test_laws_of_noise_are_those_of_the_catalogue() -> None:
    """The check computes sigma from a law's name; the fit from the law."""
    costs = [PrivacyCost(mu=0.37), PrivacyCost(epsilon=0.37), PrivacyCost(mu=math.inf)]
    for law in mechanisms():
        pure = getattr(law, "pure", False)
        for cost in (costs[1], PrivacyCost(epsilon=math.inf)) if pure else (costs[0], costs[2]):
            assert sigma_of(law.name, 0.25, cost) == law.sigma(0.25, cost)
        assert norm_of(law.name) == law.norm
    known = SCHEMA["$defs"]["release"]["properties"]["mechanism"]["enum"]
    assert set(known) == {law.name for law in mechanisms()}


# Words of JSON Schema that the reader knows, and words for people.
KEYWORDS = {
    *("type", "const", "enum", "minimum", "maximum", "maxLength", "minItems", "maxItems", "items"),
    *("properties", "required", "additionalProperties", "anyOf", "allOf", "$ref", "$defs"),
    *("title", "description", "examples", "$schema", "$id"),
}


def test_the_schema_is_sound_and_explains_every_field() -> None:
    VALIDATOR.check_schema(SCHEMA)
    assert SCHEMA["properties"]["version"]["const"] == 1

    def walk(rule: dict, place: str) -> None:
        assert rule.keys() <= KEYWORDS, place
        for name, inner in rule.get("properties", {}).items():
            assert inner.get("description"), f"{place}.{name} is not explained"
            walk(inner, f"{place}.{name}")
        if "properties" in rule and "allOf" not in rule:
            assert rule["additionalProperties"] is False
            assert rule["required"] == list(rule["properties"])
        for inner in rule.get("anyOf", []):
            walk(inner, place)
        for inner in rule.get("allOf", []):
            assert inner["then"]["$ref"] == f"#/$defs/{inner['if']['properties']['kind']['const']}"
        if "items" in rule:
            walk(rule["items"], f"{place}[]")

    walk(SCHEMA, "$")
    for name, rule in SCHEMA["$defs"].items():
        assert rule["description"], name
        walk(rule, name)


def test_the_schema_says_what_units_and_neighbours_mean() -> None:
    unit = SCHEMA["properties"]["unit"]["properties"]
    for name in ("document", "sample", "entry", "slice", "person"):
        assert f"{name}:" in unit["name"]["description"]
    relation = SCHEMA["properties"]["neighbours"]["properties"]["relation"]
    for name in ("replace_one", "add_remove"):
        assert f"{name}:" in relation["description"]


def test_persons_and_noisy_counts_have_room() -> None:
    """Rows of one label as the unit, and a number of units that is released."""
    row = ReleaseRecord("unit_count", "number of units", 1.0, 10.0, 0.1, 0.0, 0.0, 1, "gaussian")
    whole = Composition("releases", rows=(row,))
    report = PrivacyReport(whole.epsilon_at(1e-6), 1e-6, "person", "add_remove", 1000, False, whole)
    assert checked(report) == report
    stated = json.loads(report.to_json())
    assert stated["unit"]["number_is"] == "released"
    assert "label" in stated["unit"]["in_words"]


def test_the_wheel_has_the_schema() -> None:
    """Hatch packs every file of the package that git does not ignore."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    assert settings["targets"]["wheel"] == {"packages": ["sktensor_dp"]}
    assert "exclude" not in settings
    path = files("sktensor_dp.privacy") / "privacy_statement.schema.json"
    assert json.loads(path.read_text("utf-8"))["$id"] == "urn:sktensor-dp:privacy-statement:1"
    for line in (ROOT / ".gitignore").read_text("utf-8").split():
        assert not re.fullmatch(line.replace("*", ".*"), "privacy_statement.schema.json")


@pytest.mark.parametrize("name", ["topics, next batch", "components, stream", "words"])
def test_models_in_files_keep_how_releases_compose(name: str, tmp_path: Path) -> None:
    way = WAYS[name]
    with quiet():
        model = way.build()
        way.call(model)
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model").privacy_report_
    assert loaded == model.privacy_report_
    assert checked(loaded) == loaded


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    row = ReleaseRecord(
        "mean", "a mean", np.float64(0.1), np.float64(0.5), np.float64(0.2), 0.0, 0.0, 1, "gaussian"
    )
    whole = Composition("releases", rows=(row,))
    epsilon = whole.epsilon_at(1e-6)
    report = PrivacyReport(
        np.float64(epsilon), 1e-6, "document", "replace_one", np.int64(20), False, whole,
    )  # fmt: skip
    assert checked(report) == report
