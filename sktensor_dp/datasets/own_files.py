"""Texts and columns of one's own, from folders and files.

Errors name files, lines, numbers of columns and types, and never show rows of a file. They show
names of columns where these are public, and one that is like the name that was given.
"""

import codecs
import difflib
import gzip
import json
import re
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.errors import call_untrusted, read_each

SPREADSHEETS = (".xlsx", ".xls", ".ods")
SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
SEPARATOR = re.compile(r'"?sep=(.)"?[\r\n]*')  # first line in which spreadsheets name the delimiter
FRACTION = re.compile(r"[+-]?\d*[.,]\d*[1-9]\d*")  # 4.5, but not 12.0, which a whole number became
CODE = re.compile(r"-?\d+(\.\d*)?")  # of a missing value, such as -9
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
FORMULA = re.compile(r"('*)[=+\-@\t\r]")  # beginning of a cell that runs as a formula
# Columns to read: pairs of a name (None: the only column) and its content, "text", "numbers", or a
# noun for labels.
Columns = Sequence[tuple[str | None, str]]


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
        A folder, in which every ``.txt`` file, also below, is a document; or a file: ``.csv`` or
        ``.tsv`` with a header (of any other suffix if `delimiter` is given), ``.jsonl`` with an
        object per line, or ``.parquet`` (read with pyarrow). All but the last may be followed by
        ``.gz``.
    column : str, default=None
        The column (or key) that holds the text. May be left out of a table with one column.
    delimiter : str, default=None
        Character between the cells. None means what a first line like ``sep=;`` names, else a tab
        in a ``.tsv``, and in a ``.csv`` a comma, or, where the header has none, the first of
        ``;``, tab and ``|`` that it has.
    quoting : {"auto", "standard", "none"}, default="auto"
        ``"standard"``: cells may be quoted, with quotes in them doubled, to hold delimiters and
        line breaks. ``"none"``: a quote is a character like any other. ``"auto"`` is
        ``"standard"`` for ``.csv`` and ``"none"`` for ``.tsv``.
    encoding : str, default="utf-8"
        Encoding of text files, such as ``"cp1252"``. A byte order mark of UTF-8 is dropped. In
        encodings with one byte a character, a line that is UTF-8 beyond ASCII is read as UTF-8.

    Returns
    -------
    list of str
        The documents: files in the order of their paths, rows in theirs. A row without text is
        an empty document, so that the number of documents does not depend on what they say. Of
        cells that begin with ``'=``, ``'+``, ``'-`` or ``'@``, the quote is dropped: it marks
        texts that spreadsheets would run as formulas.

    Raises
    ------
    FileNotFoundError, ImportError
        If nothing is at `path`, or a Parquet file is given without pyarrow.
    ValueError
        If the suffix is not one of these, there is no document, the column does not exist or has
        to be named, or the file is malformed. No message shows what is in the file.

    Warns
    -----
    UserWarning
        If files of a folder are skipped that are not ``.txt``.

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
    path = existing_path(path)
    if path.is_dir():
        _checked_suffix(path, delimiter, quoting, encoding)  # for its errors
        files, n_others = text_files_in(path)
        if n_others:
            told = f"{path.name!r}: skipped {counted(n_others, 'file')} not ending in .txt"
            warnings.warn(told, UserWarning, stacklevel=2)
        return [decoded(file, encoding) for file in files]
    (texts,) = read_columns(path, [(column, "text")], delimiter, quoting, encoding)
    return list(texts)


def as_cell(text: str) -> str:
    """Text of a cell as spreadsheets show it: marked by ' where they would run it as a formula."""
    return f"'{text}" if FORMULA.match(text) else text


def from_cell(cell: str) -> str:
    """Text of a cell without the mark that `as_cell` may have added."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def read_columns(
    path: str | Path,
    columns: Columns,
    delimiter: str | None,
    quoting: str,
    encoding: str,
    decimal: str = ".",
    missing: Callable[[str], Collection[str]] | None = None,
    nobody: Collection[str] = ("",),
    may_be_empty: bool = False,
    public: bool = False,
    may_lack: Collection[str] = ("text", "group"),
) -> list[Any]:
    """Read `columns` of a file, each as a list of texts or labels, or an array of numbers.

    Cells that are empty or one of ``missing(column)`` are NaN among numbers; those of `nobody` are
    missing persons. A file without rows is an error unless it `may_be_empty`, a row without a label
    unless it `may_lack` what its column holds. Errors name the columns of a `public` file.
    """
    path = existing_path(path)
    kind = _checked_suffix(path, delimiter, quoting, encoding)
    if not kind:
        raise ValueError(f"person: the folder {str(path)!r} has no columns; give a file")
    quoted = quoting == "standard" or (quoting == "auto" and kind == ".csv")
    names, rows = _rows_of(path, columns, delimiter, quoted, encoding, public)
    # Without rows `zip` makes no columns.
    values = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
    if not (values[0] or may_be_empty):
        raise ValueError(f"{path.name!r} holds no row")

    def converted(name: str, holds: str, cells: list[Any]) -> Any:
        """Cells of a column as what it `holds`: numbers, texts, or labels of persons or groups."""
        if kind == ".jsonl" and cells and all(cell is None for cell in cells):
            raise ValueError(f"column {name!r} does not exist: no object of {path.name!r} has it")
        if holds == "numbers":
            codes = () if missing is None else missing(name)
            return numbers_in_column(path, name, cells, decimal, codes)
        texts = texts_in_column(path, name, holds, cells)
        if holds in may_lack:
            return texts
        without_label = nobody if holds == "person" else ("",)
        own = f"give each its own {holds}" if holds == "person" else f"write the {holds} there"
        for row, text in enumerate(texts, start=1):
            if text.strip() in without_label:
                raise ValueError(
                    f"row {row:,} of {path.name!r} has no {holds} in column {name!r}; each row "
                    f"needs one: leave such rows out of the file, or {own}"
                )
        return texts

    contents, faults = [], []  # faults of all columns at once
    for name, (_, holds), cells in zip(names, columns, values, strict=True):
        try:
            contents.append(converted(name, holds, cells))
        except ValueError as error:
            faults.append(str(error))
    if faults:
        sentences = [sentence for fault in faults for sentence in fault.split(". ")]
        # What is wrong with each column, of one sentence each, comes before advice on several.
        raise ValueError(". ".join(sorted(dict.fromkeys(sentences), key=sentences.count)))
    return contents


def _checked_suffix(path: Path, delimiter: str | None, quoting: str, encoding: str) -> str:
    """Suffix of a file of texts, "" for a folder; ValueError for options of other formats."""
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
    kind = "" if path.is_dir() else suffix_of(path)
    packed_parquet = kind == ".parquet" and path.suffix.lower() == ".gz"
    if kind in SPREADSHEETS:
        raise ValueError(f"{path.name!r} is a spreadsheet: save its sheet as .csv, in UTF-8")
    if delimiter is not None and kind not in SUFFIXES and not path.is_dir():
        kind = ".csv"
    if not path.is_dir() and (kind not in SUFFIXES or packed_parquet):
        raise ValueError(
            f"the suffix of {path.name!r} is not supported; give a folder of .txt files or a file "
            f"ending in {', '.join(SUFFIXES)} (or .gz after all but the last); of a table with "
            r"another ending pass delimiter='\t', or what else stands between cells"
        )
    if kind not in (".csv", ".tsv") and (delimiter is not None or quoting != "auto"):
        name = "quoting" if delimiter is None else "delimiter"
        raise ValueError(f"{name}: only a .csv or .tsv file has one; got {path.name!r}")
    return kind


def existing_path(path: str | Path) -> Path:
    """Convert to a Path; FileNotFoundError if nothing is there."""
    path = Path(path)
    if str(path) == "-":
        raise ValueError("standard input cannot be read several times: give a file")
    if not path.exists():
        raise FileNotFoundError(f"nothing is at {str(path)!r}")
    return path


def suffix_of(path: Path) -> str:
    """Suffix in lower case, without a ``.gz`` after it."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def text_files_in(path: Path) -> tuple[list[Path], int]:
    """Paths of the .txt files in a folder or below, sorted, and the number of other files."""
    files = sorted(file for file in path.rglob("*") if file.is_file())
    texts = [file for file in files if file.suffix.lower() == ".txt"]
    if not texts:
        raise ValueError(f"the folder {path.name!r} holds no .txt file")
    return texts, len(files) - len(texts)


def decoded(path: Path, encoding: str) -> str:
    """Whole text of a file, decompressed if its name ends in .gz."""
    return "".join(_lines_of(path, encoding))


def _lines_of(path: Path, encoding: str, newline: str = "") -> Iterator[str]:
    """Yield the lines of a text file, `newline` as for ``open``; without a byte order mark."""
    packed, n_read = path.suffix.lower() == ".gz", 0
    opened: Any = gzip.open if packed else open
    # An encoding of one byte a character decodes each byte alone, and two of UTF-8 as two.
    every_byte = bytes(range(256)) + "\u00e9".encode()
    has_one_byte = len(every_byte.decode(encoding, "replace")) == len(every_byte)
    errors = "surrogateescape" if has_one_byte else "strict"
    with opened(path, "rt", encoding=encoding, errors=errors, newline=newline) as file:
        try:
            for line in iter(file.readline, ""):
                if has_one_byte and not line.isascii():
                    line = _as_utf8_if_valid(line.encode(encoding, errors), encoding)
                yield line if n_read else line.removeprefix("\ufeff")
                n_read += 1
            return
        except UnicodeDecodeError as error:
            number = n_read + error.object[: error.start].count(b"\n") + 1
            wrong = (
                f"is not {encoding} text at line {number}; name its encoding, such as "
                "encoding='cp1252' for files of older Windows programs"
            )
            if number == 1 and error.object[:2] in UTF_16:
                wrong = f"is not {encoding} text; its first bytes are those of encoding='utf-16'"
        except (OSError, EOFError, zlib.error):
            if not packed:
                raise
            wrong = "cannot be decompressed: it is damaged or no gzip"
    # Raised after the handlers: the decoder's exception holds the bytes, and would stay attached.
    raise ValueError(f"{path.name!r} {wrong}")


def _as_utf8_if_valid(line: bytes, encoding: str) -> str:
    """Text of a line by UTF-8, whose bytes are rare in other encodings, else by `encoding`."""
    # Each line by itself: whether a whole file is UTF-8 depends on all of its rows.
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode(encoding)


def _rows_of(
    path: Path,
    columns: Columns,
    delimiter: str | None,
    quoted: bool,
    encoding: str,
    public: bool = False,
) -> tuple[list[str], Iterator[Sequence[Any]]]:
    """Names of the requested `columns` of a file, and an iterator over their values in each row."""
    kind = suffix_of(path)
    if kind == ".jsonl":
        keys = [name for name, _ in columns if name is not None]
        if len(keys) < len(columns):
            raise ValueError("column must be given: the key of an object that holds the text")
        objects = _objects_of(path, encoding)
        return keys, ([one.get(key) for key in keys] for one in objects)
    if kind == ".parquet":
        file = _parquet_file(path)
        index = (file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
        in_file = [str(name) for name in file.schema_arrow.names if name not in index]
        names = [choose_column(path, *one, in_file, public=True) for one in columns]
        batches = file.iter_batches(columns=list(dict.fromkeys(names)))

        def rows_of_batches() -> Iterator[Sequence[Any]]:
            for batch in read_each(batches, f"Reading {path.name!r}"):
                yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)

        return names, rows_of_batches()
    header, rows = delimited_rows(_lines_of(path, encoding), path, delimiter, quoted=quoted)
    header = list(map(from_cell, header))
    names = [choose_column(path, *one, header, public) for one in columns]
    places = [header.index(name) for name in names]
    return names, ([from_cell(row[place]) for place in places] for row in rows)


def _objects_of(path: Path, encoding: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON object in each line that is not blank."""
    # Split at newlines only: JSON strings may hold other characters that break lines.
    for number, line in enumerate(_lines_of(path, encoding, "\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise ValueError(f"line {number} of {path.name!r} is not a JSON object")
        yield row


def _parquet_file(path: Path) -> Any:
    """Open a Parquet file; errors in opening it are raised without their text."""
    if find_spec("pyarrow") is None:
        raise ImportError("reading .parquet files needs pyarrow: pip install pyarrow")
    import pyarrow.parquet

    return call_untrusted(lambda: pyarrow.parquet.ParquetFile(path), f"Opening {path.name!r}")


def delimited_rows(
    lines: Iterable[str], path: Path, delimiter: str | None, *, quoted: bool
) -> tuple[list[str], Iterator[list[str]]]:
    """Header of the lines of a .csv or .tsv file, and an iterator over its rows."""
    usual = "\t" if suffix_of(path) == ".tsv" else ","
    numbered: Iterator[tuple[int, str]] = enumerate(lines, start=1)
    number, first = next(numbered, (1, ""))
    if separator := SEPARATOR.fullmatch(first):
        delimiter = delimiter or separator[1]
    elif first:  # it is the header, or begins it
        numbered = chain([(number, first)], numbered)
        if usual == ",":
            usual = next((mark for mark in ",;\t|" if mark in first), ",")
    records = _records(numbered, path, delimiter or usual, quoted)
    _, header = next(records, (1, []))
    if not header:
        raise ValueError(f"{path.name!r} is empty: it should start with a header")

    def rows() -> Iterator[list[str]]:
        """Yield the rows, each with as many cells as the header."""
        for line, row in records:
            if row and len(row) != len(header):
                raise ValueError(
                    f"the row at line {line} of {path.name!r} has {counted(len(row), 'cell')}, the "
                    f"header has {len(header)}. {_advice(quoted)}"
                )
            # With one column a blank line is an empty row; with several it is none.
            if row or len(header) == 1:
                yield row or [""]

    return header, rows()


def _records(
    numbered: Iterator[tuple[int, str]], path: Path, delimiter: str, quoted: bool
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line of each row and its cells, by RFC 4180 to the letter.

    Python's csv module lets quotes stand inside a cell, so that a stray one swallows rows.
    """
    mark = re.escape(delimiter)
    cell = re.compile(rf'(?:"([^"]*+(?:""[^"]*+)*+)"|([^"{mark}\r\n]*+)){mark}')
    well_formed = re.compile(f"(?:{cell.pattern})++")
    for first, line in numbered:
        # An odd number of quotes leaves a cell open: it goes on in the next line.
        parts, is_open = [line], line.count('"') % 2 == 1
        while quoted and is_open and (following := next(numbered, None)):
            parts.append(following[1])
            is_open ^= following[1].count('"') % 2 == 1
        row = "".join(parts).rstrip("\r\n")
        if not (quoted and '"' in row):
            yield first, row.split(delimiter) if row else []
            continue
        row += delimiter
        if not well_formed.fullmatch(row):
            raise ValueError(
                f"{path.name!r} is not well-formed: the quotes of the row that begins at "
                f"line {first} are unbalanced or stand inside a cell. {_advice(quoted)}"
            )
        yield first, [inner.replace('""', '"') or plain for inner, plain in cell.findall(row)]


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


def choose_column(
    path: Path, column: str | None, holds: str, columns: Sequence[str], public: bool
) -> str:
    """Name of the requested column among `columns`; None requests the only one."""
    if column is None and len(columns) == 1:
        return columns[0]
    if column is not None and columns.count(column) == 1:
        return column
    if column is None:
        problem = "column must be given"
    elif column in columns:
        problem = f"column {column!r} occurs more than once"
    else:
        # Suggest only what is nearly the name that the caller gave: the first line of a file
        # without a header is data.
        alike = [name for name in columns if name.strip().casefold() == column.strip().casefold()]
        alike += difflib.get_close_matches(column, columns, 1, 0.75)
        problem = f"column {column!r} does not exist"
        if alike:
            raise ValueError(f"{problem} in {path.name!r}; did you mean {alike[0]!r}?")
    where = (
        "exactly as it stands in its header, the first line (not shown, as it may be data: if it "
        "is, put a line of names before it)"
    )
    if public:
        where = f"of {', '.join(map(repr, columns))}"
    doubt = ", is the delimiter another? Else" if len(columns) == 1 else ";"
    advice = " (pandas.melt makes a row of each cell of a wide table)" if holds == "item" else ""
    raise ValueError(
        f"{problem}: {path.name!r} has {counted(len(columns), 'column')}{doubt} give the name of "
        f"the one that holds the {holds}{advice}, {where}"
    )


def numbers_in_column(
    path: Path,
    column: str,
    values: Sequence[Any],
    decimal: str = ".",
    missing: Collection[str] = (),
) -> NDArray[np.float64]:
    """Convert values of a column to floats, empty and `missing` cells to NaN; errors quote none."""
    numbers = np.empty(len(values))
    for row, cell in enumerate(values):
        # What is missing may be written as NA or -999, which Parquet holds as a number.
        written = f"{cell:g}" if isinstance(cell, float) else str(cell).strip()
        if cell in ("", None) or written in missing:
            numbers[row] = np.nan
            continue
        if isinstance(cell, str) and decimal == ",":
            # Refuse marks of thousands, which would change a number.
            cell = cell.replace(".", "_").replace(",", ".")
        # Python reads 1_000 as a number, but in a file it may mean anything.
        if isinstance(cell, str) and "_" in cell:
            break
        try:
            numbers[row] = float(cell)
        except (TypeError, ValueError):
            break  # its message would show the cell
    else:  # every cell was read
        # A code such as -9 may be written as -9.0 in a column with empty cells.
        codes = [float(code) for code in missing if CODE.fullmatch(code)]
        numbers[np.isin(numbers, codes)] = np.nan
        return numbers
    hint = "Numbers with decimal commas need decimal=','"
    if decimal == ",":
        hint = "With decimal=',' a number may have no point"
    raise ValueError(
        f"column {column!r} of {path.name!r} should hold numbers, and row {row + 1:,} does not. "
        f"{hint}; else name another column, or put numbers in its place (for yes and no 1 and 0; "
        "for one below a limit of detection, as '<2', a random one from 0 to the limit, and for "
        "logs (--log-range) half the limit or limit * exp(-abs(z)), z normal; where one is "
        "missing, leave the cell empty, or list such cells by missing)"
    )


def texts_in_column(path: Path, column: str, holds: str, values: Iterable[Any]) -> list[str]:
    """Validate values of a column as texts, None as ''; labels may be integers, groups dates."""
    texts = ["" if value is None else value for value in values]
    if holds == "group":
        texts = [str(value) if isinstance(value, date) else value for value in texts]
    # A number converted to text could equal another person's label.
    if holds != "text" and all(text == "" or type(text) is int for text in texts):
        return list(map(str, texts))
    kinds = {type(text).__name__ for text in texts if not isinstance(text, str)}
    if kinds:
        raise ValueError(
            f"column {column!r} of {path.name!r} should hold text, "
            f"it also holds {', '.join(sorted(kinds))}"
        )
    if holds == "person" and any(map(FRACTION.fullmatch, map(str.strip, texts))):
        raise ValueError(
            f"column {column!r} of {path.name!r} should hold persons, and holds numbers with "
            "fractions: name another column, or put a letter before each number that is a name"
        )
    return texts
