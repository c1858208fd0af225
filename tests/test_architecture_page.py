"""docs/architecture.md draws the imports as they are, and names functions that exist."""

import ast
import re

from draw_architecture import PAGE, PICTURE, TABLE, picture, table
from test_architecture import PACKAGE, imports

TEXT = PAGE.read_text(encoding="utf-8")
AGAIN = "run `python tests/draw_architecture.py`"


def test_the_picture_and_the_table_are_those_of_the_code() -> None:
    found = imports()
    assert PICTURE.read_text(encoding="utf-8") == picture(), AGAIN
    assert TABLE.findall(TEXT) == [table(found) + "\n"], AGAIN


def stations(page: str) -> list[tuple[str, str]]:
    """Files and functions that the path of X names, in order."""
    walked = page.split("## The path of X")[1].split("\n## ")[0]
    steps, file = [], ""
    for name in re.findall(r"`([^`\s]+)`", "\n".join(re.findall(r"^\d+\. .*", walked, re.M))):
        if name.endswith(".py"):
            file = name
        elif re.fullmatch(r"[A-Z]\w+\.\w+|[a-z_]+", name):
            steps.append((file, name))
    return steps


def test_the_functions_that_the_path_names_exist() -> None:
    steps = stations(TEXT)
    assert steps
    for file, name in steps:
        owner, _, method = name.rpartition(".")
        body = ast.parse((PACKAGE / file).read_text("utf-8")).body
        if owner:
            (kind,) = (n for n in body if isinstance(n, ast.ClassDef) and n.name == owner)
            body = kind.body
        assert method in {n.name for n in body if isinstance(n, ast.FunctionDef)}, (file, name)
