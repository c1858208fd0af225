"""The list of mistakes as it stands in the files beside this one, and how one is made."""

import ast
import hashlib
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
AREAS = ("queries", "mechanisms", "session", "parts", "recipes", "inputs", "between")


class MovedError(ValueError):
    """The code that a mistake changes, or a test that is to see it, is no longer there."""


@cache
def meaning(source: str) -> str:
    return ast.dump(ast.parse(source))


@dataclass(frozen=True)
class Mistake:
    """One change of one file that a developer could make without noticing."""

    name: str
    area: str
    file: str  # path in the repository
    harm: str  # to a user
    old: str  # text that occurs once in the file
    new: str
    tests: tuple[str, ...] = ()  # that are to see it alone, in the place of those of the mapping
    cases: str = ""  # of these tests, as pytest's -k selects them

    @property
    def digest(self) -> str:
        """Digest of the change, by which results of an earlier run are known to be of this one."""
        return hashlib.sha256("\0".join((self.file, self.old, self.new)).encode()).hexdigest()[:12]

    def made_in(self, tree: Path) -> str:
        """Source of the file with the mistake in it; `MovedError` if it does not apply any more."""
        path = tree / self.file
        if not path.is_file():
            raise MovedError(f"{self.name}: there is no {self.file}")
        source = path.read_text(encoding="utf-8")
        count = source.count(self.old)
        if count != 1 or self.old == self.new:
            raise MovedError(f"{self.name}: its text occurs {count} times in {self.file}")
        changed = source.replace(self.old, self.new)
        try:
            means = ast.dump(ast.parse(changed))
        except SyntaxError as error:
            raise MovedError(f"{self.name}: {self.file} would be no Python: {error.msg}") from None
        if means == meaning(source):
            raise MovedError(f"{self.name}: {self.file} would mean the same")
        return changed


def mistakes(areas: Sequence[str] = AREAS) -> list[Mistake]:
    """Mistakes of some areas, in the order of their files."""
    return [
        Mistake(area=area, **entry)
        for area in areas
        for entry in tomllib.loads((FOLDER / f"{area}.toml").read_text("utf-8"))["mistake"]
    ]


@cache
def mapping() -> dict[str, list[str]]:
    """Tests of each file of the package, most pertinent first: paths, or path::function."""
    return tomllib.loads((FOLDER / "mapping.toml").read_text("utf-8"))["tests"]


def mapped_tests(mistake: Mistake, tree: Path) -> list[str]:
    """Tests that are to see a mistake; `MovedError` if one of them is not in the tree."""
    tests = [*mistake.tests] or mapping().get(mistake.file, [])
    if not tests:
        raise MovedError(f"{mistake.name}: mapping.toml names no tests of {mistake.file}")
    for test in tests:
        path, _, function = test.partition("::")
        exists = (tree / path).exists()
        defined = rf"^def {function}\("
        if not exists or (
            function and not re.search(defined, (tree / path).read_text("utf-8"), re.MULTILINE)
        ):
            raise MovedError(f"{mistake.name}: mapping.toml names {test}, which is not there")
    return tests
