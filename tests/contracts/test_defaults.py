"""Tuned constants are at most twelve an estimator, and each stands in its table of ablations."""

import csv
from pathlib import Path

import pytest

from benchmarks import ablations_of_completions, ablations_of_components, ablations_of_topics
from sktensor_dp.completion import defaults as completions
from sktensor_dp.power_method import defaults as components
from sktensor_dp.spectral_topics import defaults as topics

TABLES = {
    "spectral_topics": (topics, ablations_of_topics),
    "power_method": (components, ablations_of_components),
    "completion": (completions, ablations_of_completions),
}


@pytest.mark.parametrize("package", TABLES)
def test_every_constant_is_taken_away_in_its_turn(package):
    defaults, benchmark = TABLES[package]
    names = {name for name in vars(defaults) if name.isupper()}
    places = {place for ablation in benchmark.ABLATIONS for place in ablation.neutral}
    assert len(names) <= 12
    assert {f"{package}.defaults.{name}" for name in names} <= places


def test_every_constant_of_topics_stands_in_the_committed_table():
    table = Path(ablations_of_topics.__file__).with_suffix(".csv")
    with table.open(encoding="utf-8", newline="") as file:
        parts = {row["part"] for row in csv.DictReader(file)}
    assert {one.name for one in ablations_of_topics.ABLATIONS} == parts
    names = [name for name in vars(topics) if name.isupper()]
    assert all(any(part.startswith(name) for part in parts) for name in names)


def test_an_ablation_changes_what_it_names_and_puts_it_back():
    for ablation in ablations_of_completions.ABLATIONS:
        before = dict(vars(completions))
        with ablation.made():
            changed = {name for name in before if vars(completions)[name] != before[name]}
        named = {place.rsplit(".", 1)[1] for place in ablation.neutral if "defaults" in place}
        assert changed == named
        assert vars(completions) == before
