"""How far a sample walks from `fit` to the first noise: through how many files, how often.

Traced at run time, for every estimator and way to fit it. Whoever reads the code of a fit
walks the same way.
"""

from itertools import pairwise
from typing import Any

import pytest
from walking import walk
from ways_to_fit import WAYS, quiet

import sktensor_dp
from sktensor_dp.estimator.base import PrivateEstimatorMixin
from sktensor_dp.privacy.plan import ReleasePlan

# Most files entered and most crossings (two successive calls in different files): of an
# estimator's `fit` as it comes, and of any way to fit it. They rise with what a fit has to ask of
# data and parameters, and may fall: whoever shortens a walk lowers its numbers here.
# The goal is 14 files and 25 crossings for all.
GOAL = (14, 25)
LONGEST = {
    "PrivateSpectralLDA": ((14, 25), (22, 83)),
    "PrivateTensorPowerMethod": ((14, 25), (24, 96)),
    "PrivateCPCompletion": ((14, 25), (19, 120)),
    "PrivateTuckerCompletion": ((14, 25), (19, 149)),
    "PrivateCountVectorizer": ((13, 25), (15, 27)),
    # With data that is refused before a search pays for trials.
    "PrivateSearchCV": ((14, 23), (17, 33)),
}


def length(calls: list[tuple[str, str]]) -> tuple[int, int]:
    """Number of files and of crossings."""
    files = [file for file, _ in calls]
    return len(set(files)), sum(one != two for one, two in pairwise(files))


# A given vocabulary draws none.
NOISY = {name: way for name, way in WAYS.items() if name != "words, given"}


FIRST = {way.kind: name for name, way in reversed(NOISY.items())}


@pytest.mark.parametrize("name", NOISY)
def test_no_fit_walks_farther_than_today(name: str) -> None:
    way = NOISY[name]
    with quiet():
        # What is imported or computed once and for all belongs to no fit.
        walk(lambda: way.call(way.build()))
        estimator = way.build()
        n_files, n_crossings = length(walk(lambda: way.call(estimator)))
    print(f"{name}: {n_files} files, {n_crossings} crossings; the goal is {GOAL}")
    most_files, most_crossings = LONGEST[way.kind.__name__][FIRST[way.kind] != name]
    assert n_files <= most_files
    assert n_crossings <= most_crossings


def test_every_estimator_is_walked() -> None:
    kinds = {name for name in sktensor_dp.__all__ if hasattr(getattr(sktensor_dp, name), "fit")}
    assert {way.kind.__name__ for way in NOISY.values()} == kinds == set(LONGEST)


def test_the_walk_sees_a_detour(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the plan and back, where parameters are checked."""
    way, check = WAYS["topics"], PrivateEstimatorMixin._check_parameters

    def detour(self: Any) -> None:
        check(self)
        ReleasePlan.split(1.0, 0.0, {"a": 1.0})

    with quiet():
        walk(lambda: way.call(way.build()))
        straight = length(walk(lambda: way.call(way.build())))
        monkeypatch.setattr(PrivateEstimatorMixin, "_check_parameters", detour)
        assert length(walk(lambda: way.call(way.build())))[1] > straight[1]
