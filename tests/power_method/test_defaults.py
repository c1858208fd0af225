"""Tuned constants of components stand in the table of ablations."""

from benchmarks.ablations_of_components import ABLATIONS
from sktensor_dp.power_method import defaults


def test_every_constant_is_taken_away_in_its_turn():
    names = {name for name in vars(defaults) if name.isupper()}
    places = {place for ablation in ABLATIONS for place in ablation.neutral}
    assert len(names) <= 12
    assert {f"power_method.defaults.{name}" for name in names} <= places
