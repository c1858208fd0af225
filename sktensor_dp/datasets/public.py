"""Public texts: docstrings of installed packages."""

import ast
import importlib.util
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from inspect import cleandoc
from pathlib import Path


def load_docstrings(
    packages: Sequence[str] = ("numpy", "scipy", "sklearn"), min_length: int = 200
) -> list[str]:
    """Read the docstrings of installed packages: a public collection of texts.

    A collection to try private methods on, about 6,000 texts with the default arguments. Source
    files are parsed, never imported; test suites are left out, and a text that occurs several
    times is kept once.

    Parameters
    ----------
    packages : sequence of str, default=("numpy", "scipy", "sklearn")
        Names of installed top-level packages, read in this order.
    min_length : int, default=200
        Shortest text to keep, in characters, after its indentation is removed.

    Returns
    -------
    list of str
        The texts, ordered by package, then path, then position in the file.

    Raises
    ------
    ModuleNotFoundError, ValueError
        If a package is not installed, is no top-level package, or has no docstrings.

    Examples
    --------
    >>> from sktensor_dp.datasets import load_docstrings
    >>> texts = load_docstrings(["json"], min_length=500)
    >>> texts[0][:39]
    'JSON (JavaScript Object Notation) <http'
    """
    if isinstance(packages, str):
        packages = (packages,)
    texts: dict[str, None] = {}
    with warnings.catch_warnings():
        # Parsing source code of others may warn of invalid escapes.
        warnings.simplefilter("ignore")
        for package in packages:
            for source in _source_files(package):
                # A template, or code for another version of Python, cannot be parsed.
                with suppress(SyntaxError, ValueError):
                    texts.update(dict.fromkeys(_docstrings_in(ast.parse(source.read_bytes()))))
    kept = [text for text in texts if len(text) >= min_length]
    if not kept:
        raise ValueError(
            f"packages={tuple(packages)!r} have no docstring of at least "
            f"min_length={min_length!r} characters in their source files"
        )
    return kept


def _source_files(package: str) -> list[Path]:
    """Python files of an installed package, without its tests."""
    # A dotted name would make find_spec import the parent package.
    if not package.isidentifier():
        raise ValueError(f"packages must name top-level packages, got {package!r}")
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ModuleNotFoundError(f"packages: {package!r} is not installed", name=package)
    if spec.submodule_search_locations is None:
        origin = spec.origin or ""
        return [Path(origin)] if origin.endswith(".py") else []
    return [
        path
        for location in spec.submodule_search_locations
        for path in sorted(Path(location).rglob("*.py"))
        if "tests" not in path.relative_to(location).parts
    ]


def _docstrings_in(node: ast.AST) -> Iterator[str]:
    """Docstrings at and below a node, in the order of the source."""
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        text = ast.get_docstring(node)
        if text:
            yield text
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield from _newdoc_in(node.value)
    # Only statements hold definitions: leaving expressions out makes this fast.
    for block in ("body", "handlers", "orelse", "finalbody"):
        for child in getattr(node, block, ()):
            yield from _docstrings_in(child)


def _newdoc_in(call: ast.Call) -> Iterator[str]:
    """Yield the docstring that a call of ``add_newdoc`` holds; nothing for other calls."""
    if not ast.unparse(call.func).endswith("add_newdoc"):
        return
    constants = [
        node.value
        for argument in call.args
        for node in ast.walk(argument)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    if constants:
        # The longest string is the docstring; the others are names.
        yield cleandoc(max(constants, key=len))
