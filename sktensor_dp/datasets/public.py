"""Public data: docstrings of installed packages, and MovieLens 100K."""

import ast
import hashlib
import importlib.util
import io
import urllib.request
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from inspect import cleandoc
from pathlib import Path

import numpy as np
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch

FOLDER, SECONDS_PER_DAY = "ml-100k", 86_400
SHAPE = (943, 1682)  # users, films, as the data set's own description counts them


def load_docstrings(
    packages: Sequence[str] = ("numpy", "scipy", "sklearn"), min_length: int = 200
) -> list[str]:
    """Read the docstrings of installed packages: a public collection of texts.

    A collection to try private methods on, about 6,300 texts with the default arguments. Source
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


ARCHIVE = "https://files.grouplens.org/datasets/movielens/ml-100k.zip"
# SHA-256 of the two files that are read; other files of the archive are not written.
CHECKSUMS = {
    "ua.base": "67b5bcdb380c29f85d56a012ecd88612ae020f30a6730d117a334ee8203b91f2",
    "ua.test": "d0497e202417720f57a184ec8c66be2d1afa4ff41bb53787c57b28d6bf79bc42",
}
DESCRIPTION = """MovieLens 100K, collected by the GroupLens Research Project at the University of
Minnesota from September 1997 to April 1998: 100,000 ratings (1 to 5) of 1682 films by 943 users
who rated 20 or more. Split ua: ua.test has ten ratings of each user, ua.base the others.

Terms: for research; not to be redistributed, or used commercially, without separate permission of
GroupLens; no endorsement by the University of Minnesota or GroupLens may be stated or implied.
Publications cite F. M. Harper and J. A. Konstan, "The MovieLens datasets: history and context",
ACM Transactions on Interactive Intelligent Systems 5(4), 2015."""


def fetch_movielens_100k(data_home: str | Path | None = None) -> Bunch:
    """Ratings of MovieLens 100K, downloaded if necessary, with the split `ua`.

    Reads ``ua.base`` and ``ua.test`` in ``<data_home>/ml-100k``, and compares their SHA-256
    checksums with known ones. Terms of GroupLens: for research; not to be redistributed, or used
    commercially, without separate permission; publications cite Harper & Konstan (2015).

    Parameters
    ----------
    data_home : str or Path, default=None
        Folder of data sets; by default `sklearn.datasets.get_data_home`. If a file is missing
        there, the archive (5 MB) is fetched from files.grouplens.org.

    Returns
    -------
    Bunch
        - ``data``: ndarray of shape (100000, 3), integer coordinates user, item, day,
          from 0; days are steps of 24 hours from the first rating;
        - ``target``: ndarray of shape (100000,), ratings from 1.0 to 5.0;
        - ``train``, ``test``: Bunch with the ``data`` and ``target`` of ``ua.base``
          (90570 ratings, the first rows of ``data``) and ``ua.test`` (9430);
        - ``shape``: (943, 1682, 215), of the tensor of users, items and days;
        - ``feature_names``: ``["user", "item", "day"]``;
        - ``filenames``: dict of the two files read;
        - ``DESCR``: what the data are, and the terms.

    Raises
    ------
    OSError
        If a file is missing and cannot be downloaded, or a checksum differs.

    Notes
    -----
    **Privacy.** None: ratings of real people are returned as they are.

    References
    ----------
    F. M. Harper, J. A. Konstan, "The MovieLens datasets: history and context", ACM TiiS 5(4), 2015.

    Examples
    --------
    >>> from sktensor_dp.datasets import fetch_movielens_100k
    >>> ratings = fetch_movielens_100k()  # doctest: +SKIP
    >>> ratings.data.shape, ratings.shape  # doctest: +SKIP
    ((100000, 3), (943, 1682, 215))
    """
    folder = Path(get_data_home(None if data_home is None else str(data_home))) / FOLDER
    files = {name: folder / name for name in CHECKSUMS}
    if not all(file.exists() for file in files.values()):
        _download(files)
    contents = {name: file.read_bytes() for name, file in files.items()}
    _check(contents, "in data_home; remove it to have it downloaded anew")
    return _as_bunch(contents, files)


def _download(files: Mapping[str, Path]) -> None:
    """Download the archive, check the two files that are read, and write them."""
    timeout = 60.0
    try:
        with urllib.request.urlopen(ARCHIVE, timeout=timeout) as response:
            archive = response.read()
        with zipfile.ZipFile(io.BytesIO(archive)) as members:
            contents = {name: members.read(f"{FOLDER}/{name}") for name in files}
    except (OSError, HTTPException) as error:
        raise OSError(
            f"MovieLens 100K could not be fetched from {ARCHIVE} ({type(error).__name__}). "
            f"Without a network, put {' and '.join(files)} into the folder {FOLDER!r} of data_home."
        ) from error
    except (zipfile.BadZipFile, zlib.error, KeyError) as error:
        raise OSError(
            f"What {ARCHIVE} sent is not the archive of MovieLens 100K ({type(error).__name__})."
        ) from error
    _check(contents, "as downloaded")
    for name, file in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(contents[name])


def _check(contents: Mapping[str, bytes], where: str) -> None:
    """Raise OSError if the SHA-256 checksum of a file is not the known one."""
    for name, content in contents.items():
        if hashlib.sha256(content).hexdigest() != CHECKSUMS[name]:
            raise OSError(
                f"{name} {where}: it does not have the known SHA-256 checksum, "
                "so that it is damaged or another version."
            )


def _as_bunch(contents: Mapping[str, bytes], files: Mapping[str, Path]) -> Bunch:
    """Parse the two files, train and test, into the Bunch that `fetch_movielens_100k` returns."""
    tables = [np.loadtxt(io.BytesIO(contents[name]), dtype=np.int64, ndmin=2) for name in files]
    first_second = min(int(table[:, 3].min()) for table in tables)
    parts = []
    for table in tables:
        day = (table[:, 3] - first_second) // SECONDS_PER_DAY
        data = np.column_stack([table[:, :2] - 1, day]).astype(np.intp)
        parts.append(Bunch(data=data, target=table[:, 2].astype(np.float64)))
    train, test = parts
    data = np.concatenate([train.data, test.data])
    return Bunch(
        data=data, target=np.concatenate([train.target, test.target]), train=train, test=test,
        shape=(*SHAPE, int(data[:, 2].max()) + 1), feature_names=["user", "item", "day"],
        filenames=dict(files), DESCR=DESCRIPTION,
    )  # fmt: skip
