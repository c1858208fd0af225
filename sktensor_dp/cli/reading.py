"""Columns of the file of a command; messages show nothing of what is in them."""

import argparse
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.datasets.texts import (
    as_texts,
    choose_column,
    existing_path,
    file_type,
    objects_of,
    table_rows,
)

Column = tuple[str, str]  # its name, and what it holds


def read_columns(options: argparse.Namespace, columns: Sequence[Column]) -> list[list[Any]]:
    """Return what stands in the named columns of the options' file, and read no others."""
    path, kind = existing_path(options.file), file_type(options.file)
    encoding = options.encoding or "utf-8"
    if kind == ".jsonl":
        objects = list(objects_of(path, encoding))
        keys = list(dict.fromkeys(key for one in objects for key in one))
        names = [choose_column(path, *column, keys, "key") for column in columns]
        found = [[one.get(name) for one in objects] for name in names]
    else:
        quoted = (options.quoting or "standard" * (kind == ".csv")) == "standard"
        delimiter = options.delimiter or ("\t" if kind == ".tsv" else None)
        _, rows = table_rows(path, columns, delimiter, quoted, encoding)
        found = [list(column) for column in zip(*rows, strict=True)]
    if not found or not found[0]:
        raise ValueError(f"{path.name!r} has no rows below its header")
    return found


def labels(options: argparse.Namespace, holds: str, values: Iterable[Any]) -> list[str]:
    """Labels of persons or items, of which none may be missing."""
    path, column = options.file, getattr(options, holds)
    found = as_texts(path, column, "person", values)
    if not all(found):
        raise ValueError(f"some rows of {path.name!r} have no {column!r}; each needs one")
    return found


def numbers(path: Path, column: str, values: Iterable[Any]) -> NDArray[np.float64]:
    """Numbers; an empty cell is NaN."""
    try:
        return np.array([math.nan if v in ("", None) else float(v) for v in values])
    except (TypeError, ValueError):
        pass  # its message would show the cell
    raise ValueError(f"column {column!r} of {path.name!r} should hold numbers, and does not")


def public_names(path: Path) -> list[str]:
    """First column of a public table, or lines of a public list."""
    lines = existing_path(path).read_text(encoding="utf-8-sig").splitlines()
    return [line for line in lines if line.strip()]
