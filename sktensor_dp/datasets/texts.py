"""Texts of one's own, from folders and files of many kinds.

Messages say what is wrong with a file without ever showing what is in it: they name
files, line numbers, numbers of columns and types. A file without a header has a row
where names of columns would be, so not even these are shown.
"""

import csv
import gzip
import json
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.queries.error_sanitising import call_untrusted, read_each

# Offered where none is given, the usual one first.
_DELIMITERS = (",", ";", "\t")


def read_delimited(
    lines: Iterable[str], name: str, delimiter: str | None, quoted: bool
) -> tuple[list[str], Iterator[list[str]]]:
    """Header of delimited text and an iterator over its rows; ValueError names the line of a row of
    another length. `delimiter` None is guessed; `quoted` allows quoted cells.
    """
    lines = iter(lines)
    first = next(lines, "")
    if delimiter is None:
        delimiter = _delimiter_of(first, name)
    records = _records(chain([first], lines), name, delimiter, quoted)
    _, header = next(records, (1, []))
    if not header:
        raise ValueError(f"path: {name!r} is empty: it should start with a header")
    return header, _rows(records, header, name, quoted)


def _rows(
    records: Iterator[tuple[int, list[str]]], header: list[str], name: str, quoted: bool
) -> Iterator[list[str]]:
    """Yield the cells of each record; ValueError if they are not as many as those of the header."""
    for line, row in records:
        if row and len(row) != len(header):
            cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
            raise ValueError(
                f"path: the row at line {line} of {name!r} has {cells}, the header has "
                f"{len(header)}. {_advice(quoted)}"
            )
        # A blank line is an empty row where there is one column, and no row elsewhere.
        if row or len(header) == 1:
            yield row or [""]


def _delimiter_of(first: str, name: str) -> str:
    """Most frequent of comma, semicolon and tab in the line `first`, outside quotes; warn if no
    comma.
    """
    header = re.sub(r'"[^"]*"', "", first)
    best = max(_DELIMITERS, key=header.count)
    if best != ",":
        shown = "semicolons (delimiter=';')" if best == ";" else "tabs (delimiter='\\t')"
        warnings.warn(
            f"{name!r} is read as separated by {shown}, as its first line is",
            UserWarning,
            stacklevel=2,
        )
    return best


def _records(
    lines: Iterable[str], name: str, delimiter: str, quoted: bool
) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with the number of the line at which it begins."""
    taken: list[str] = []

    def remembered() -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line

    with unlimited_fields():
        reader = csv.reader(
            remembered(),
            delimiter=delimiter,
            strict=True,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        )
        well_formed = _well_formed(delimiter)
        first = 1
        while True:
            taken.clear()
            failed = False
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error:
                failed = True
            if quoted and not failed and any('"' in line for line in taken):
                failed = not well_formed.fullmatch("".join(taken))
            if failed:
                raise ValueError(
                    f"path: {name!r} is not well-formed: the quotes of the row that begins at "
                    f"line {first} are unbalanced or stand inside a cell. {_advice(quoted)}"
                )
            yield first, row
            first = reader.line_num + 1


def _advice(quoted: bool) -> str:
    """Advise on `quoting` for a malformed file that was read with quotes (`quoted`) or without."""
    if quoted:
        return (
            "Cells that hold quotes, delimiters or line breaks have to be quoted, and quotes in "
            "them doubled; if the file quotes nothing, pass quoting='none'."
        )
    return (
        "Without quoting, no cell can hold a delimiter or a line break; if the file quotes "
        "cells, pass quoting='standard'."
    )


def _well_formed(delimiter: str) -> re.Pattern[str]:
    """Pattern of a row of RFC 4180; the csv module is laxer and lets quotes stand inside a cell."""
    mark = re.escape(delimiter)
    cell = rf'(?:"(?:[^"]|"")*+"|[^"{mark}\r\n]*+)'
    return re.compile(rf"{cell}(?:{mark}{cell})*+(?:\r\n|\r|\n)?")


@contextmanager
def unlimited_fields() -> Iterator[None]:
    """Context in which the csv module reads cells of any length; restores its limit."""
    # The largest value that fits a C long on every platform.
    previous = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(previous)


_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")


def load_texts(
    path: str | Path,
    column: str | None = None,
    *,
    delimiter: str | None = None,
    quoting: str = "auto",
    encoding: str = "utf-8",
) -> list[str]:
    r"""Read a collection of texts, one document each.

    Parameters
    ----------
    path : str or Path
        One of

        - a folder: every ``.txt`` file in it or below is a document;
        - ``.csv`` or ``.tsv``: a header and one document per row;
        - ``.jsonl``: one object per line;
        - ``.parquet``: read with pyarrow.

        Suffixes may be in capitals; all but the last may be followed by ``.gz``.
    column : str, default=None
        The column (or key) that holds the text. May be left out if there is
        only one.
    delimiter : str, default=None
        The character between the cells of a ``.csv`` or ``.tsv``. None means a tab in
        a ``.tsv``, and in a ``.csv`` whichever of comma, semicolon and tab is most
        frequent in the header; a warning tells if it is not the comma.
    quoting : {"auto", "standard", "none"}, default="auto"
        Whether cells may be quoted, with quotes in them doubled, so that they may hold
        delimiters and line breaks: ``"standard"``. With ``"none"`` a quote is a
        character like any other. ``"auto"`` is ``"standard"`` for ``.csv`` and
        ``"none"`` for ``.tsv``.
    encoding : str, default="utf-8"
        Encoding of text files, such as ``"cp1252"``. A byte order mark of UTF-8 is
        dropped.

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
        If a Parquet file is given without pyarrow.
    ValueError
        If the suffix is not one of these, there is no document, the column
        does not exist or has to be named, an option does not suit the kind of file, or
        the file is malformed: quotes are unbalanced or stand inside an unquoted cell, or
        a row is not as long as the header. No message shows what is in the file.

    Warns
    -----
    UserWarning
        If files of a folder are skipped that are not ``.txt``, or if cells are not separated by
        commas.

    Notes
    -----
    A quoted cell may span lines, and two quotes that are left over by mistake can look
    like one such cell. Where a file does not quote, say so: ``quoting="none"``.

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
    if existing_path(path).is_dir() and delimiter is None and quoting == "auto":
        _check_options(delimiter, quoting, encoding)
        return _texts_of_folder(Path(path), encoding)
    (texts,) = read_columns(path, [(column, "text")], delimiter, quoting, encoding)
    return list(texts)


def load_texts_by_person(
    path: str | Path,
    column: str,
    person: str,
    *,
    delimiter: str | None = None,
    quoting: str = "auto",
    encoding: str = "utf-8",
) -> tuple[list[str], list[str]]:
    r"""Read a collection of texts, and the person behind each text.

    Parameters
    ----------
    path : str or Path
        A file as :func:`load_texts` takes it; not a folder.
    column : str
        The column (or key) that holds the text.
    person : str
        The one that holds the label of a person: text or whole numbers, of which none is
        missing or empty.
    delimiter, quoting, encoding : str
        How the file is written, as for :func:`load_texts`.

    Returns
    -------
    texts : list of str
        The documents.
    persons : list of str
        A label for each, to be passed to fits as ``groups``.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        As for :func:`load_texts`, or if a label is missing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sktensor_dp.datasets import load_texts_by_person
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "posts.csv")
    ...     _ = path.write_text("author,post\nann,Hello\nbob,Hi\nann,Bye\n")
    ...     load_texts_by_person(path, "post", "author")
    (['Hello', 'Hi', 'Bye'], ['ann', 'bob', 'ann'])
    """
    columns = [(column, "text"), (person, "person")]
    texts, persons = read_columns(path, columns, delimiter, quoting, encoding)
    return texts, persons


def _texts_of_folder(path: Path, encoding: str) -> list[str]:
    """Read the .txt files of a folder; warn of other files."""
    files, skipped = text_files_in(path)
    if skipped:
        number = "1 file is" if skipped == 1 else f"{skipped} files are"
        told = f"{path.name!r}: {number} skipped that do not end in .txt"
        warnings.warn(told, UserWarning, stacklevel=3)
    return [decoded(file, encoding) for file in files]


def read_columns(
    path: str | Path,
    columns: Sequence[tuple[str | None, str]],
    delimiter: str | None,
    quoting: str,
    encoding: str,
) -> list[Any]:
    """Read columns of a file, pairs (name, kind), as a list or array each. Kinds are "text",
    "numbers", or a noun for labels, which no row may lack; a name of None takes the only column.
    """
    path = existing_path(path)
    _check_options(delimiter, quoting, encoding)
    kind = "" if path.is_dir() else file_type(path)
    if kind not in (".csv", ".tsv") and (delimiter is not None or quoting != "auto"):
        name = "quoting" if delimiter is None else "delimiter"
        raise ValueError(f"{name}: only a .csv or .tsv file has one; got {path.name!r}")
    if not kind:
        raise ValueError(f"person: the folder {path.name!r} has no columns; give a file")
    if kind == ".jsonl":
        objects = list(objects_of(path, encoding))
        keys = list(dict.fromkeys(key for one in objects for key in one))
        names = [choose_column(path, *one, keys, "key") if keys else "" for one in columns]
        values = [[one.get(name) for one in objects] for name in names]
    else:
        quoted = quoting == "standard" or (quoting == "auto" and kind == ".csv")
        delimiter = "\t" if delimiter is None and kind == ".tsv" else delimiter
        names, rows = table_rows(path, columns, delimiter, quoted, encoding)
        values = [list(of) for of in zip(*rows, strict=True)] or [[] for _ in columns]
    if not values[0]:
        raise ValueError(f"path: {path.name!r} holds no row")
    parts = zip(names, columns, values, strict=True)
    return [_as_held(path, name, holds, of) for name, (_, holds), of in parts]


def _as_held(path: Path, column: str, holds: str, values: list[Any]) -> Any:
    """Convert values of a column to its kind `holds`: texts, numbers, or labels, which must not be
    empty.
    """
    if holds == "numbers":
        return as_numbers(path, column, values)
    found = as_texts(path, column, holds, values)
    if holds != "text" and not all(found):
        raise ValueError(f"path: some rows of {path.name!r} have no {holds}; each needs one")
    return found


def as_numbers(path: Path, column: str, values: Iterable[Any]) -> NDArray[np.float64]:
    """Convert values of a column to floats, empty cells to NaN; ValueError shows no cell."""
    try:
        return np.array([np.nan if v in ("", None) else float(v) for v in values])
    except (TypeError, ValueError):
        pass  # its message would show the cell
    raise ValueError(
        f"path: column {column!r} of {path.name!r} should hold numbers, and holds something else"
    )


def _check_options(delimiter: str | None, quoting: str, encoding: str) -> None:
    """Raise ValueError for a delimiter, quoting or encoding that cannot be."""
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(
            f"delimiter must be one character, not a quote or line break, got {delimiter!r}"
        )
    if quoting not in ("auto", "standard", "none"):
        raise ValueError(f"quoting must be 'auto', 'standard' or 'none', got {quoting!r}")
    try:
        b"a".decode(encoding)
    except LookupError:
        raise ValueError(f"encoding {encoding!r} is not one that Python knows") from None
    except UnicodeError:  # of an encoding with more bytes to a character
        pass


def existing_path(path: str | Path) -> Path:
    """Convert to a Path; FileNotFoundError if nothing is there."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"path: nothing is at {str(path)!r}")
    return path


def suffix_of(path: Path) -> tuple[str, bool]:
    """Suffix in lower case, without ``.gz``, and True if ``.gz`` follows it."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    return "".join(suffixes[-2:-1] if packed else suffixes[-1:]), packed


def file_type(path: Path) -> str:
    """Suffix of a file of texts; ValueError if it is not a supported one."""
    kind, packed = suffix_of(path)
    if kind not in _SUFFIXES or (packed and kind == ".parquet"):
        raise ValueError(
            f"path: the suffix of {path.name!r} is not supported; give a folder of .txt "
            f"files or a file ending in {', '.join(_SUFFIXES)} (or .gz after all but the last)"
        )
    return kind


def text_files_in(path: Path) -> tuple[list[Path], int]:
    """Paths of the .txt files in a folder or below, sorted, and the number of other files."""
    files = sorted(file for file in path.rglob("*") if file.is_file())
    texts = [file for file in files if file.suffix.lower() == ".txt"]
    if not texts:
        raise ValueError(f"path: the folder {path.name!r} holds no .txt file")
    return texts, len(files) - len(texts)


def decoded(path: Path, encoding: str) -> str:
    """Whole text of a file, decompressed if its name ends in .gz."""
    return "".join(lines_of(path, encoding))


def lines_of(path: Path, encoding: str, newline: str = "") -> Iterator[str]:
    """Yield the lines of a text file with their ends, decompressed if its name ends in .gz, without
    a byte order mark; `newline` is as for ``open``.
    """
    packed, number = path.suffix.lower() == ".gz", 0
    opened: Any = gzip.open if packed else open
    with opened(path, "rt", encoding=encoding, newline=newline) as file:
        while True:
            try:
                line = file.readline()
            except UnicodeDecodeError as error:
                place = number + error.object[: error.start].count(b"\n") + 1
                wrong = (
                    f"is not {encoding} text at line {place}; name its encoding, such as "
                    "encoding='cp1252' for files of older Windows programs"
                )
                break
            except (OSError, EOFError, zlib.error):
                if not packed:
                    raise
                wrong = "cannot be decompressed: it is damaged or no gzip"
                break
            if not line:
                return
            yield line if number else line.removeprefix("\ufeff")
            number += 1
    # Raised here because the decoder's exception, which holds the bytes, would
    # otherwise stay attached to this one.
    raise ValueError(f"path: {path.name!r} {wrong}")


def table_rows(
    path: Path,
    columns: Sequence[tuple[str | None, str]],
    delimiter: str | None,
    quoted: bool,
    encoding: str,
) -> tuple[list[str], Iterator[Sequence[Any]]]:
    """Names of the wanted `columns`, pairs (name, kind), of a .csv, .tsv or .parquet file, and an
    iterator over the values of each row in them.
    """
    if file_type(path) == ".parquet":
        known = parquet_names(path)
        names = [choose_column(path, *one, known, "column") for one in columns]
        batches = read_each(
            parquet_file(path).iter_batches(columns=list(dict.fromkeys(names))),
            f"Reading {path.name!r}",
        )
        return names, (
            row
            for batch in batches
            for row in zip(*(batch.column(name).to_pylist() for name in names), strict=True)
        )
    header, rows = read_delimited(lines_of(path, encoding), path.name, delimiter, quoted)
    names = [choose_column(path, *one, header, "column") for one in columns]
    places = [header.index(name) for name in names]
    return names, ([row[place] for place in places] for row in rows)


def objects_of(path: Path, encoding: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON object in each line that is not blank."""
    # Other characters that break lines may stand in strings.
    for number, line in enumerate(lines_of(path, encoding, "\n"), start=1):
        if line.strip():
            yield parsed_object(path, number, line)


def parsed_object(path: Path, number: int, line: str) -> dict[str, Any]:
    """Parse a line as a JSON object; ValueError gives its `number`."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise ValueError(f"path: line {number} of {path.name!r} is not a JSON object")
    return row


def parquet_file(path: Path) -> Any:
    """Open a Parquet file; errors in opening it are raised without their text."""
    if find_spec("pyarrow") is None:
        raise ImportError("reading .parquet files needs pyarrow: pip install pyarrow")
    import pyarrow.parquet

    return call_untrusted(lambda: pyarrow.parquet.ParquetFile(path), f"Opening {path.name!r}")


def parquet_names(path: Path) -> list[str]:
    """Names of the columns of a Parquet file, but for the index of a data frame."""
    schema = parquet_file(path).schema_arrow
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [str(name) for name in schema.names if name not in index]


def as_texts(path: Path, column: str, holds: str, values: Iterable[Any]) -> list[str]:
    """Validate values of a column as texts, None as ''. Labels (a kind `holds` other than "text")
    may be integers too, and are converted.
    """
    texts = ["" if value is None else value for value in values]
    # A number as text might be another person's label.
    if holds != "text" and all(text == "" or type(text) is int for text in texts):
        return list(map(str, texts))
    kinds = {type(text).__name__ for text in texts if not isinstance(text, str)}
    if kinds:
        raise ValueError(
            f"path: column {column!r} of {path.name!r} should hold text, "
            f"it also holds {', '.join(sorted(kinds))}"
        )
    return texts


def choose_column(
    path: Path, column: str | None, holds: str, columns: Sequence[str], what: str
) -> str:
    """Name of the wanted column, or key, among `columns`; None stands for the only one. ValueError
    if it does not occur once, without showing other names; `holds` says what is wanted.
    """
    if column is None and len(columns) == 1:
        return columns[0]
    if column is not None and columns.count(column) == 1:
        return column
    if column is None:
        problem = "column must be given"
    elif column in columns:
        problem = f"column {column!r} occurs more than once"
    else:
        problem = f"column {column!r} does not exist"
    # Not their names: without a header, they are a person's data.
    number = f"1 {what}" if len(columns) == 1 else f"{len(columns)} {what}s"
    where = {"column": "in its header, the first line", "key": "in its objects"}[what]
    raise ValueError(
        f"{problem}: {path.name!r} has {number}; give the name of the one that holds the {holds}, "
        f"exactly as it stands {where}"
    )


class OpenTexts:
    """Iterable over lists of at most `chunk_size` texts of a file; each pass reads the file anew.

    :class:`~sktensor_dp.PrivateCountVectorizer` takes it in the place of texts, with
    ``n_samples``, and never has more than a list of them.
    """

    in_chunks = True

    def __init__(self, path: Path, texts: Callable[[], Iterator[str]], chunk_size: int) -> None:
        self.path, self.chunk_size, self._texts = path, chunk_size, texts

    def __iter__(self) -> Iterator[list[str]]:
        texts = read_each(self._texts(), f"Reading {self.path.name!r}")
        # A file without texts is a list without any: how many there are may be private.
        yield list(islice(texts, self.chunk_size))
        while chunk := list(islice(texts, self.chunk_size)):
            yield chunk


class OpenTable:
    """Iterable over arrays of at most `chunk_size` rows of numbers; each pass reads the file anew.

    Attributes
    ----------
    columns : list of str
        Names of the columns, in the order of the arrays'.
    n_features : int
        Number of columns.
    """

    def __init__(
        self, path: Path, batches: Callable[[], Iterator[Any]], columns: list[str], size: int
    ) -> None:
        self.path, self.columns, self.chunk_size = path, columns, size
        self.n_features = len(columns)
        self._batches = batches

    def __iter__(self) -> Iterator[NDArray[Any]]:
        doing = f"Reading {self.path.name!r}, whose columns must hold numbers,"
        batches = read_each(self._arrays(), doing)
        # A file without rows is an array without any: how many there are may be private.
        for batch in chain([next(iter(batches), np.zeros((0, self.n_features)))], batches):
            for start in range(0, max(len(batch), 1), self.chunk_size):
                yield batch[start : start + self.chunk_size]

    def _arrays(self) -> Iterator[NDArray[Any]]:
        yield from map(self._as_array, self._batches())

    def _as_array(self, batch: Any) -> NDArray[Any]:
        if not batch.num_columns:
            return np.zeros((batch.num_rows, 0))
        found = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
        if any(column.dtype.kind not in "iufb" for column in found):
            raise ValueError(
                f"path: the columns of {self.path.name!r} must hold numbers; name those that do."
            )
        return np.column_stack(found)


def open_texts(
    path: str | Path,
    column: str | None = None,
    *,
    chunk_size: int = 10_000,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> OpenTexts:
    r"""Open a collection of texts that need not fit into memory.

    Parameters
    ----------
    path : str or Path
        A folder of ``.txt`` files, or a ``.csv``, ``.tsv``, ``.jsonl`` or ``.parquet`` file,
        as :func:`load_texts` reads them; text files may be followed by ``.gz``.
    column : str, default=None
        The column (or key) that holds the text. May be left out of a table with one.
    chunk_size : int, default=10_000
        Number of texts in memory at a time, at most.
    delimiter : str, default=None
        Character between the cells; by default a comma in a ``.csv`` and a tab in a ``.tsv``.
        Quotes are doubled in quoted cells of the former, and plain characters in the latter.
    encoding : str, default="utf-8"
        Encoding of text files.

    Returns
    -------
    OpenTexts
        Lists of texts, to be iterated over several times. Missing texts are empty ones.

    Raises
    ------
    FileNotFoundError
        If nothing is at `path`.
    ImportError
        If a Parquet file is given without pyarrow.
    ValueError
        If the kind of file or the column is not known, or `chunk_size` is no int >= 1. While
        reading, if the file is malformed; no message shows what is in it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sktensor_dp.datasets import open_texts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "reviews.csv")
    ...     _ = path.write_text('stars,review\n5,"Fine,\nreally"\n1,\n4,Good\n')
    ...     list(open_texts(path, "review", chunk_size=2))
    [['Fine,\nreally', ''], ['Good']]
    """
    path = _existing(path, chunk_size)
    if path.is_dir():
        files, _ = text_files_in(path)
        return OpenTexts(path, lambda: (decoded(file, encoding) for file in files), chunk_size)
    kind = file_type(path)
    if kind == ".jsonl" and column is None:
        raise ValueError("column must be given: the key of an object that holds the text")
    delimiter = delimiter or ("\t" if kind == ".tsv" else ",")

    def texts() -> Iterator[str]:
        if kind == ".jsonl":
            name = str(column)
            values = (one.get(name) for one in objects_of(path, encoding))
        else:
            only = [(column, "text")]
            (name,), rows = table_rows(path, only, delimiter, kind == ".csv", encoding)
            values = (row[0] for row in rows)
        for value in values:
            yield from as_texts(path, name, "text", [value])

    return OpenTexts(path, texts, chunk_size)


def open_table(
    path: str | Path, columns: Sequence[str] | None = None, *, chunk_size: int = 50_000
) -> OpenTable:
    r"""Open a table of numbers that need not fit into memory.

    Parameters
    ----------
    path : str or Path
        A ``.parquet`` or ``.csv`` file; pyarrow reads it.
    columns : sequence of str, default=None
        Names of the columns to read, in this order; all by default.
    chunk_size : int, default=50_000
        Number of rows of an array, at most.

    Returns
    -------
    OpenTable
        Arrays of rows, to be iterated over several times: a source of chunks for
        ``fit_chunks``.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        As for :func:`open_texts`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sktensor_dp.datasets import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "counts.csv")
    ...     _ = path.write_text("cats,dogs\n1,0\n2,5\n0,1\n")
    ...     table = open_table(path, chunk_size=2)
    ...     [chunk.tolist() for chunk in table]
    [[[1.0, 0.0], [2.0, 5.0]], [[0.0, 1.0]]]
    >>> table.columns
    ['cats', 'dogs']
    """
    path = _existing(path, chunk_size)
    kind = "" if path.is_dir() else path.suffix.lower()
    if kind not in (".parquet", ".csv"):
        raise ValueError(f"path: {path.name!r} must be a .parquet or .csv file")
    known = parquet_names(path) if kind == ".parquet" else _csv_names(path)
    wanted = list(known if columns is None else columns)
    for name in wanted:
        choose_column(path, name, "numbers", known, "column")
    if kind == ".parquet":
        return OpenTable(
            path, lambda: parquet_file(path).iter_batches(chunk_size, columns=wanted), wanted,
            chunk_size,
        )  # fmt: skip
    return OpenTable(path, lambda: iter(_csv_stream(path, wanted)), wanted, chunk_size)


def _existing(path: str | Path, chunk_size: Any) -> Path:
    """Validate a path and a chunk size; return the Path."""
    path = existing_path(path)
    if not (isinstance(chunk_size, int) and not isinstance(chunk_size, bool) and chunk_size >= 1):
        raise ValueError(f"chunk_size must be an int >= 1, got {chunk_size!r}")
    return path


def _csv_names(path: Path) -> list[str]:
    """Names of the columns of a .csv file."""
    stream = call_untrusted(lambda: _csv_stream(path), f"Opening {path.name!r}")
    return [str(name) for name in stream.schema.names]


def _csv_stream(path: Path, columns: list[str] | None = None) -> Any:
    """Open a .csv file with pyarrow, as an iterator over batches of rows; given `columns` are
    numbers.
    """
    if find_spec("pyarrow") is None:
        raise ImportError("reading .csv files in parts needs pyarrow: pip install pyarrow")
    import pyarrow
    from pyarrow import csv as pyarrow_csv

    # A type that is read off the first rows would refuse a later row for what others hold.
    types = None if columns is None else dict.fromkeys(columns, pyarrow.float64())
    only = pyarrow_csv.ConvertOptions(include_columns=columns, column_types=types)
    return pyarrow_csv.open_csv(path, convert_options=only)
