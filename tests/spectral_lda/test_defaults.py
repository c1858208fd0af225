"""Tuned constants of topics stand in the table of ablations."""

from benchmarks.ablations_of_topics import ABLATIONS
from sktensor_dp.spectral_topics import defaults

NAMES = {name for name in vars(defaults) if name.isupper()}


def test_every_constant_is_taken_away_in_its_turn():
    places = {place for ablation in ABLATIONS for place in ablation.neutral}
    assert len(NAMES) <= 12
    assert {f"spectral_topics.defaults.{name}" for name in NAMES} <= places
