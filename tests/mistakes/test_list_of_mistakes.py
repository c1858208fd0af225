"""Mistakes of the list can still be made: it follows the code when that moves."""

from collections import Counter
from pathlib import Path

import pytest

from mistakes.catalogue import AREAS, Mistake, MovedError, mapped_tests, mapping, mistakes

ROOT = Path(__file__).parents[2]
ALL = mistakes()


def test_there_are_twenty_or_more_of_each_area_and_no_name_twice() -> None:
    counts = Counter(one.area for one in ALL)
    assert counts.keys() == set(AREAS)
    assert min(counts.values()) >= 20
    assert len({one.name for one in ALL}) == len({one.digest for one in ALL}) == len(ALL)


def test_every_mistake_can_be_made_and_has_tests() -> None:
    moved = []
    for mistake in ALL:
        try:
            mistake.made_in(ROOT)
            mapped_tests(mistake, ROOT)
        except MovedError as error:
            moved.append(str(error))
    assert moved == []


def test_only_files_with_mistakes_are_mapped() -> None:
    assert mapping().keys() == {one.file for one in ALL if not one.tests}


def test_what_does_not_apply_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 1\n")
    for old, new in (("z", "x"), ("1", "2"), ("x = 1", "x ="), ("x = 1", "x = (1)")):
        with pytest.raises(MovedError):
            Mistake("name", "queries", "a.py", "harm", old, new).made_in(tmp_path)
    made = Mistake("name", "queries", "a.py", "harm", "x = 1", "x = 2").made_in(tmp_path)
    assert made == "x = 2\ny = 1\n"
