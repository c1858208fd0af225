"""Tuned constants of topics stand in the table of ablations."""

import csv
from pathlib import Path

from benchmarks import ablations_of_topics
from benchmarks.ablations_of_topics import ABLATIONS
from sktensor_dp.spectral_topics import defaults

NAMES = {name for name in vars(defaults) if name.isupper()}


def test_every_constant_is_taken_away_in_its_turn():
    places = {place for ablation in ABLATIONS for place in ablation.neutral}
    assert len(NAMES) <= 12
    assert {f"spectral_topics.defaults.{name}" for name in NAMES} <= places


def test_every_constant_stands_in_the_committed_table():
    table = Path(ablations_of_topics.__file__).with_suffix(".csv")
    with table.open(encoding="utf-8", newline="") as file:
        parts = {row["part"] for row in csv.DictReader(file)}
    assert {one.name for one in ABLATIONS} == parts
    assert all(any(part.startswith(name) for part in parts) for name in NAMES)
