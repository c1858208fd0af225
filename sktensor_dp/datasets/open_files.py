"""Texts and tables in files that are read a part at a time, as often as needed.

Messages name files, lines, columns and types, and show nothing of what is in a file.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.datasets.texts import (
    as_texts,
    choose_column,
    decoded,
    existing_path,
    file_type,
    objects_of,
    parquet_file,
    parquet_names,
    table_rows,
    texts_of_folder,
)
from sktensor_dp.queries.reading import call_foreign, read_each


class OpenTexts:
    """Texts of a file, in lists of at most so many; each pass reads the file anew.

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
    """Rows of numbers of a file, in arrays of at most so many; each pass reads it anew.

    Attributes
    ----------
    columns : list of str
        Names of the columns, in the order of the arrays'.
    n_features : int
        Their number.
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
        How many texts are in memory at a time.
    delimiter : str, default=None
        Between the cells of a ``.csv`` (a comma) or ``.tsv`` (a tab); quotes are doubled
        in quoted cells of the former, and plain characters in the latter.
    encoding : str, default="utf-8"
        Of text files.

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
        files, _ = texts_of_folder(path)
        return OpenTexts(path, lambda: (decoded(file, encoding) for file in files), chunk_size)
    kind = file_type(path)
    if kind == ".jsonl" and column is None:
        raise ValueError("column must be given: the key of an object that holds the text")
    delimiter = delimiter or ("\t" if kind == ".tsv" else ",")

    def texts() -> Iterator[str]:
        if kind == ".jsonl":
            name = str(column)
            values = (one.get(name) for one in objects_of(path, encoding, []))
        else:
            only = [(column, "text")]
            (name,), rows = table_rows(path, only, delimiter, kind == ".csv", encoding, [])
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
        Which columns, in this order; all of them by default.
    chunk_size : int, default=50_000
        How many rows an array has at most.

    Returns
    -------
    OpenTable
        Arrays of rows, to be iterated over several times: a source of chunks for
        ``fit_chunks``.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        As of :func:`open_texts`.

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
    path = existing_path(path)
    if not (isinstance(chunk_size, int) and not isinstance(chunk_size, bool) and chunk_size >= 1):
        raise ValueError(f"chunk_size must be an int >= 1, got {chunk_size!r}")
    return path


def _csv_names(path: Path) -> list[str]:
    stream = call_foreign(lambda: _csv_stream(path), f"Opening {path.name!r}")
    return [str(name) for name in stream.schema.names]


def _csv_stream(path: Path, columns: list[str] | None = None) -> Any:
    if find_spec("pyarrow") is None:
        raise ImportError("reading .csv files in parts needs pyarrow: pip install pyarrow")
    import pyarrow
    from pyarrow import csv as pyarrow_csv

    # A type that is read off the first rows would refuse a later row for what others hold.
    types = None if columns is None else dict.fromkeys(columns, pyarrow.float64())
    only = pyarrow_csv.ConvertOptions(include_columns=columns, column_types=types)
    return pyarrow_csv.open_csv(path, convert_options=only)
