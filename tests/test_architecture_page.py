"""docs/architecture.md draws the house as it is, and walks where a fit walks."""

import re

import pytest
from draw_architecture import PAGE, PICTURE, TABLE, picture, table
from test_architecture import arrows
from walking import walk
from ways_to_fit import WAYS, quiet

TEXT = PAGE.read_text(encoding="utf-8")
AGAIN = "run `python tests/draw_architecture.py`"


def test_the_picture_and_the_table_are_those_of_the_code() -> None:
    found = arrows()
    assert PICTURE.read_text(encoding="utf-8") == picture(found), AGAIN
    assert TABLE.findall(TEXT) == [table(found) + "\n"], AGAIN


def test_the_picture_shows_an_arrow_more() -> None:
    found = arrows()
    before = picture(found)
    found["plotting"] = {"privacy"}
    after = picture(found)
    assert after.count("<path") == before.count("<path") + 1
    assert ">plotting<" in after


def stations(page: str) -> list[tuple[str, str]]:
    """Files and functions that the walk on a page names, in order."""
    walked = page.split("## The walk of X")[1].split("\n## ")[0]
    steps, file = [], ""
    for name in re.findall(r"`([^`\s]+)`", "\n".join(re.findall(r"^\d+\. .*", walked, re.M))):
        if name.endswith(".py"):
            file = name
        elif re.fullmatch(r"[A-Z]\w+\.\w+|[a-z_]+", name):
            steps.append((file, name))
    return steps


def missed(steps: list[tuple[str, str]], calls: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Stations that a fit does not pass after the one before."""
    rest, absent = iter(calls), []
    for step in steps:
        passed = list(rest)
        if step in passed:
            rest = iter(passed[passed.index(step) + 1 :])
        else:
            absent.append(step)
            rest = iter(passed)
    return absent


@pytest.fixture(scope="module")
def calls() -> list[tuple[str, str]]:
    way = WAYS["topics"]
    with quiet():
        estimator = way.build()
        return walk(lambda: way.call(estimator), to_the_end=True)


def test_a_fit_passes_the_stations_of_the_walk(calls: list[tuple[str, str]]) -> None:
    steps = stations(TEXT)
    assert len(steps) >= 20
    assert missed(steps, calls) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("`Mechanism.release`", "`Mechanism.publish`"), ("`DataCurator.release`", "`plan_topics`")],
    ids=["no such function", "out of order"],
)
def test_a_wrong_station_is_seen(calls: list[tuple[str, str]], one: str, other: str) -> None:
    assert len(missed(stations(TEXT.replace(one, other)), calls)) == 1
