"""Texts of one's own, from folders and files of many kinds.

Messages say what is wrong with a file without ever showing what is in it: they name
files, line numbers, numbers of columns and types. A file without a header has a row
where names of columns would be, so not even these are shown.
"""

import gzip
import json
import warnings
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sktensor_dp.datasets.delimited import read_delimited, say_skipped

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
        - ``.parquet``: read with pandas.

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
        If a Parquet file is given and pandas cannot read it here.
    ValueError
        If the suffix is not one of these, there is no document, the column
        does not exist or has to be named, an option does not suit the kind of file, or
        the file is malformed: quotes are unbalanced or stand inside an unquoted cell, or
        a row is not as long as the header. No message shows what is in the file.

    Warns
    -----
    UserWarning
        If something is skipped: files of a folder that are not ``.txt``, blank lines
        between rows; or if cells are not separated by commas.

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
    texts, _ = _read(path, [(column, "text")], delimiter, quoting, encoding)
    return texts


def load_texts_by_person(
    path: str | Path,
    column: str,
    person: str,
    *,
    delimiter: str | None = None,
    quoting: str = "auto",
    encoding: str = "utf-8",
) -> tuple[list[str], list[str]]:
    r"""Read a collection of texts, and whose each of them is.

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
        As of :func:`load_texts`.

    Returns
    -------
    texts : list of str
        The documents.
    persons : list of str
        A label for each, to be passed to fits as ``groups``.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        As of :func:`load_texts`, or if a label is missing.

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
    texts, persons = _read(path, columns, delimiter, quoting, encoding)
    return texts, persons


def _read(
    path: str | Path,
    columns: Sequence[tuple[str | None, str]],
    delimiter: str | None,
    quoting: str,
    encoding: str,
) -> tuple[list[str], list[str]]:
    """Texts, and labels of persons if a column of them is named too."""
    path = existing(path)
    _check_options(delimiter, quoting, encoding)
    kind = "folder" if path.is_dir() else kind_of(path)
    if kind not in (".csv", ".tsv") and (delimiter is not None or quoting != "auto"):
        name = "quoting" if delimiter is None else "delimiter"
        raise ValueError(f"{name}: only a .csv or .tsv file has such, {path.name!r} is none")
    if kind == "folder":
        if len(columns) > 1:
            raise ValueError(f"person: the folder {path.name!r} has no columns; give a file")
        found = [_read_folder(path, encoding)]
    elif kind == ".jsonl":
        found = _read_jsonl(path, columns, encoding)
    elif kind == ".parquet":
        found = _read_parquet(path, columns)
    else:
        is_quoted = quoting == "standard" or (quoting == "auto" and kind == ".csv")
        delimiter = "\t" if delimiter is None and kind == ".tsv" else delimiter
        header, rows = read_delimited(decoded(path, encoding), path.name, delimiter, is_quoted)
        places = [header.index(choose_column(path, *one, header, "column")) for one in columns]
        found = [[row[place] for row in rows] for place in places]
    if not found[0]:
        raise ValueError(f"path: {path.name!r} holds no document")
    for labels in found[1:]:
        if not all(labels):
            raise ValueError(f"path: some rows of {path.name!r} have no person; each needs one")
    return found[0], found[-1]


def _check_options(delimiter: str | None, quoting: str, encoding: str) -> None:
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


def existing(path: str | Path) -> Path:
    """A path at which there is something."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"path: nothing is at {str(path)!r}")
    return path


def suffix_of(path: Path) -> tuple[str, bool]:
    """Suffix in small letters, ``.gz`` apart, and whether that follows."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    return "".join(suffixes[-2:-1] if packed else suffixes[-1:]), packed


def kind_of(path: Path) -> str:
    """Suffix of a file of texts, one of those that are supported."""
    kind, packed = suffix_of(path)
    if kind not in _SUFFIXES or (packed and kind == ".parquet"):
        raise ValueError(
            f"path: the suffix of {path.name!r} is not supported; give a folder of .txt "
            f"files or a file ending in {', '.join(_SUFFIXES)} (or .gz after all but the last)"
        )
    return kind


def _read_folder(path: Path, encoding: str) -> list[str]:
    files = sorted(file for file in path.rglob("*") if file.is_file())
    texts = [file for file in files if file.suffix.lower() == ".txt"]
    if not texts:
        raise ValueError(f"path: the folder {path.name!r} holds no .txt file")
    skipped = len(files) - len(texts)
    if skipped:
        number = "1 file is" if skipped == 1 else f"{skipped} files are"
        warnings.warn(
            f"{path.name!r}: {number} skipped that do not end in .txt", UserWarning, stacklevel=4
        )
    return [decoded(file, encoding) for file in texts]


def decoded(path: Path, encoding: str) -> str:
    """Text of a file, which may be compressed."""
    content = path.read_bytes()
    readable = True
    if path.suffix.lower() == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            readable = False
    if not readable:
        raise ValueError(f"path: {path.name!r} cannot be decompressed: it is damaged or no gzip")
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
    # Raised here because the decoder's exception, which holds the bytes, would
    # otherwise stay attached to this one.
    raise ValueError(
        f"path: {path.name!r} is not {encoding} text at line {line}; name its encoding, such as "
        "encoding='cp1252' for files of older Windows programs"
    )


def _read_jsonl(
    path: Path, columns: Sequence[tuple[str | None, str]], encoding: str
) -> list[list[str]]:
    # str.splitlines would also split at separators that JSON allows in strings.
    lines = decoded(path, encoding).rstrip().split("\n")
    blank = [number for number, line in enumerate(lines, start=1) if not line.strip()]
    rows = [
        parsed_object(path, number, line)
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    if not rows:
        return [[] for _ in columns]
    say_skipped(path.name, "blank line", blank)
    keys = list(dict.fromkeys(key for row in rows for key in row))
    names = [(choose_column(path, *one, keys, "key"), one[1]) for one in columns]
    return [_as_texts(path, *name, (row.get(name[0]) for row in rows)) for name in names]


def parsed_object(path: Path, number: int, line: str) -> dict[str, Any]:
    """A line that holds a JSON object."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise ValueError(f"path: line {number} of {path.name!r} is not a JSON object")
    return row


def _read_parquet(path: Path, columns: Sequence[tuple[str | None, str]]) -> list[list[str]]:
    message = "reading .parquet files needs pandas and pyarrow: pip install pandas pyarrow"
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
    frame.columns = [str(name) for name in frame.columns]
    found = []
    for column, holds in columns:
        name = choose_column(path, column, holds, list(frame.columns), "column")
        values = frame[name].astype(object)
        found.append(_as_texts(path, name, holds, values.where(values.notna(), None)))
    return found


def _as_texts(path: Path, column: str, holds: str, values: Iterable[Any]) -> list[str]:
    texts = ["" if value is None else value for value in values]
    # A number as text might be another person's label.
    if holds == "person" and all(text == "" or type(text) is int for text in texts):
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
    """Name of the column that is meant; messages do not show other names."""
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
