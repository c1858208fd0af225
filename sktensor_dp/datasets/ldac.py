"""Data to work on: public documentation, texts of one's own, LDA-C files, MovieLens 100K.

The readers of private files say what is wrong with a file without ever showing
what is in it: messages name files, columns, line numbers and types.
"""

import csv
import gzip
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from sktensor_dp.datasets.docstrings import load_docstrings
from sktensor_dp.datasets.movielens import fetch_movielens_100k

__all__ = ["fetch_movielens_100k", "load_docstrings", "load_ldac", "load_texts"]

_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
_MAX_LISTED_COLUMNS = 30
_MAX_COLUMN_CHARACTERS = 60


# -------------------------------------------------------------------- texts


def load_texts(path: str | Path, column: str | None = None) -> list[str]:
    r"""Read a collection of texts, one document each.

    Parameters
    ----------
    path : str or Path
        One of

        - a folder: every ``.txt`` file in it or below is a document;
        - ``.csv`` or ``.tsv``: a header and one document per row;
        - ``.jsonl``: one object per line;
        - ``.parquet``: read with pandas.

        Text files are UTF-8, with or without a byte order mark.
    column : str, default=None
        The column (or key) that holds the text. May be left out if there is
        only one.

    Returns
    -------
    list of str
        The documents: files in the order of their paths, rows in theirs. A row
        whose text is empty or missing is an empty document: it still counts, so
        that the number of documents does not depend on what they say.

    Raises
    ------
    FileNotFoundError
        If nothing is at `path`.
    ImportError
        If a Parquet file is given and pandas cannot read it here.
    ValueError
        If the suffix is not one of these, there is no document, the column
        does not exist or has to be named, or the file is malformed. No message
        shows the content of a row.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sktensor_dp.datasets import load_texts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "reviews.csv")
    ...     _ = path.write_text('stars,review\n5,"Fine,\nreally"\n1,\n')
    ...     load_texts(path, column="review")
    ['Fine,\nreally', '']
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"path: nothing is at {str(path)!r}")
    if path.is_dir():
        texts = _read_folder(path)
    else:
        suffix = path.suffix.lower()
        if suffix not in _SUFFIXES:
            raise ValueError(
                f"path: the suffix of {path.name!r} is not supported; give a folder of .txt "
                f"files or a file ending in {', '.join(_SUFFIXES)}"
            )
        if suffix == ".jsonl":
            texts = _read_jsonl(path, column)
        elif suffix == ".parquet":
            texts = _read_parquet(path, column)
        else:
            texts = _read_csv(path, column, "\t" if suffix == ".tsv" else ",")
    if not texts:
        raise ValueError(f"path: {path.name!r} holds no document")
    return texts


def _read_folder(path: Path) -> list[str]:
    files = sorted(file for file in path.rglob("*.txt") if file.is_file())
    if not files:
        raise ValueError(f"path: the folder {path.name!r} holds no .txt file")
    return [_decode(file) for file in files]


def _decode(path: Path) -> str:
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    # Raised here because the decoder's exception, which holds the bytes, would
    # otherwise stay attached to this one.
    raise ValueError(f"path: {path.name!r} is not UTF-8 text; convert it first")


def _read_csv(path: Path, column: str | None, delimiter: str) -> list[str]:
    failed_at = None
    with _unlimited_fields():
        # Unlike str.splitlines, this breaks lines at carriage returns and newlines alone.
        reader = csv.reader(io.StringIO(_decode(path), newline=""), delimiter=delimiter)
        try:
            rows = list(reader)
        except csv.Error:
            failed_at = reader.line_num
    if failed_at is not None:
        raise ValueError(f"path: {path.name!r} is not well-formed CSV at line {failed_at}")
    if not rows or not rows[0]:
        raise ValueError(f"path: {path.name!r} is empty: it should start with a header")
    header, *rows = rows
    index = header.index(_choose_column(path, column, header))
    # A blank line is an empty row where there is one column, and no row elsewhere.
    if len(header) > 1:
        rows = [row for row in rows if row]
    return [row[index] if index < len(row) else "" for row in rows]


@contextmanager
def _unlimited_fields() -> Iterator[None]:
    # The largest value that fits a C long on every platform.
    previous = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(previous)


def _read_jsonl(path: Path, column: str | None) -> list[str]:
    # str.splitlines would also split at separators that JSON allows in strings.
    lines = [line for line in _decode(path).split("\n") if line.strip()]
    rows = [_parse_object(path, number, line) for number, line in enumerate(lines, start=1)]
    if not rows:
        return []
    keys = list(dict.fromkeys(key for row in rows for key in row))
    column = _choose_column(path, column, keys)
    return _as_texts(path, column, (row.get(column) for row in rows))


def _parse_object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise ValueError(f"path: row {number} of {path.name!r} is not a JSON object")
    return row


def _read_parquet(path: Path, column: str | None) -> list[str]:
    message = "reading .parquet files needs pandas and pyarrow: pip install 'sktensor-dp[frames]'"
    try:
        import pandas as pd
    except ImportError:
        raise ImportError(message) from None
    failed = False
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise ImportError(message) from None
    except Exception:  # the engines' own classes, whose messages may quote the file
        failed = True
    if failed:
        raise ValueError(f"path: {path.name!r} is not a readable Parquet file")
    column = _choose_column(path, column, [str(name) for name in frame.columns])
    values = frame[column].astype(object)
    return _as_texts(path, column, values.where(values.notna(), None))


def _as_texts(path: Path, column: str, values: Iterable[Any]) -> list[str]:
    texts = ["" if value is None else value for value in values]
    kinds = {type(text).__name__ for text in texts if not isinstance(text, str)}
    if kinds:
        raise ValueError(
            f"path: column {column!r} of {path.name!r} should hold text, "
            f"it also holds {', '.join(sorted(kinds))}"
        )
    return texts


def _choose_column(path: Path, column: str | None, columns: Sequence[str]) -> str:
    if column is None and len(columns) == 1:
        return columns[0]
    if column is not None and columns.count(column) == 1:
        return column
    # A file without a header has a row there: names are cut, and their number too.
    names = ", ".join(repr(_shortened(name)) for name in columns[:_MAX_LISTED_COLUMNS])
    if len(columns) > _MAX_LISTED_COLUMNS:
        names += f" and {len(columns) - _MAX_LISTED_COLUMNS} more"
    if column is None:
        problem = "column must be given"
    elif column in columns:
        problem = f"column {column!r} occurs more than once"
    else:
        problem = f"column {column!r} does not exist"
    raise ValueError(f"{problem}: {path.name!r} has {names}")


def _shortened(name: str) -> str:
    if len(name) <= _MAX_COLUMN_CHARACTERS:
        return name
    return name[: _MAX_COLUMN_CHARACTERS - 1] + "…"


# ------------------------------------------------------------------- counts


def load_ldac(path: str | Path, n_features: int | None = None) -> sparse.csr_array:
    r"""Read word counts in the LDA-C format.

    One line per document: the number of distinct words, then ``word:count``
    pairs separated by spaces, with words numbered from zero.

    Parameters
    ----------
    path : str or Path
        The file; a name that ends in ``.gz`` is decompressed.
    n_features : int, default=None
        Size of the vocabulary, in words. By default one more than the largest
        word that occurs.

    Returns
    -------
    csr_array of shape (n_samples, n_features), dtype int64
        The counts.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is empty or not in the format, or a word is not below
        `n_features`.

    References
    ----------
    D. M. Blei, LDA-C, "Data format".

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sktensor_dp.datasets import load_ldac
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "small.dat")
    ...     _ = path.write_text("2 0:3 2:1\n0\n1 1:5\n")
    ...     load_ldac(path).toarray()
    array([[3, 0, 1],
           [0, 0, 0],
           [0, 5, 0]])
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"path: nothing is at {str(path)!r}")
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    stated, words, counts, n_pairs = _parse_ldac(path, content)
    if not np.array_equal(stated, n_pairs):
        raise ValueError(f"path: a line of {path.name!r} does not hold as many pairs as it states")
    largest = int(words.max(initial=-1))
    if n_features is None:
        n_features = largest + 1
    elif largest >= n_features:
        raise ValueError(f"n_features={n_features!r} is too small: words go up to {largest}")
    indptr = np.concatenate([[0], np.cumsum(n_pairs)])
    X = sparse.csr_array((counts, words, indptr), shape=(len(stated), n_features))
    X.sum_duplicates()
    return X


def _parse_ldac(
    path: Path, content: bytes
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Stated numbers of pairs, words, counts, and the numbers of pairs found."""
    content = content.strip() + b"\n"
    characters = np.frombuffer(content, dtype=np.uint8)
    ends = np.flatnonzero(characters == ord("\n"))
    n_pairs = np.diff(np.cumsum(characters == ord(":"))[ends], prepend=0)
    starts = np.concatenate([[0], 2 * np.cumsum(n_pairs)])[:-1] + np.arange(len(ends))
    is_known = np.isin(characters, np.frombuffer(b"0123456789: \t\r\n", dtype=np.uint8))
    numbers = np.array(content.replace(b":", b" ").split() if is_known.all() else [], dtype=bytes)
    if len(numbers) == 0 or len(numbers) != len(ends) + 2 * int(n_pairs.sum()):
        raise ValueError(f"path: {path.name!r} is not in the LDA-C format")
    if numbers.itemsize > 18:  # as many digits as always fit 64 bits
        raise ValueError(f"path: {path.name!r} holds a number of more than 18 digits")
    values = numbers.astype(np.int64)
    pairs = np.delete(values, starts)
    return values[starts], pairs[0::2], pairs[1::2], n_pairs
