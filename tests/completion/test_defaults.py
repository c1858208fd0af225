"""Tuned constants of completions stand in the table of ablations."""

from benchmarks.ablations_of_completions import ABLATIONS
from sktensor_dp.completion import defaults


def test_every_constant_is_taken_away_in_its_turn():
    names = {name for name in vars(defaults) if name.isupper()}
    places = {place for ablation in ABLATIONS for place in ablation.neutral}
    assert len(names) <= 12
    assert {f"completion.defaults.{name}" for name in names} <= places


def test_an_ablation_changes_what_it_names_and_puts_it_back():
    for ablation in ABLATIONS:
        before = dict(vars(defaults))
        with ablation.made():
            changed = {name for name in before if vars(defaults)[name] != before[name]}
        named = {place.rsplit(".", 1)[1] for place in ablation.neutral if "defaults" in place}
        assert changed == named
        assert vars(defaults) == before
