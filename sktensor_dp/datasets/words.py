"""Files of words: counts in the LDA-C format, and public word frequencies."""

import gzip
import io
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sktensor_dp.datasets.texts import (
    decoded,
    existing_path,
    read_delimited,
    suffix_of,
)
from sktensor_dp.queries.error_sanitising import read


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
    path = existing_path(path)
    content = path.read_bytes()
    if path.suffix == ".gz":
        # Messages of gzip quote the first bytes.
        compressed = content
        content = read(lambda: gzip.decompress(compressed), f"path: {path.name!r}")
    stated, words, counts, n_pairs = _parse_ldac(path, content)
    if not np.array_equal(stated, n_pairs):
        raise ValueError(f"path: a line of {path.name!r} does not hold as many pairs as it states")
    largest = int(words.max(initial=-1))
    if n_features is None:
        n_features = largest + 1
    elif largest >= n_features:
        raise ValueError(f"n_features={n_features!r} is too small: there are words beyond it")
    indptr = np.concatenate([[0], np.cumsum(n_pairs)])
    X = sparse.csr_array((counts, words, indptr), shape=(len(stated), n_features))
    X.sum_duplicates()
    return X


def _parse_ldac(path: Path, content: bytes) -> tuple[NDArray[np.int64], ...]:
    """Parse LDA-C text into arrays: numbers of pairs that lines state, words, counts, and numbers
    of pairs that lines hold.
    """
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


_SUFFIXES = (".csv", ".tsv", ".txt", ".json")


def load_word_frequencies(
    path: str | Path, *, lowercase: bool = True, encoding: str = "utf-8"
) -> dict[str, float]:
    r"""Read public word frequencies from a file.

    The words serve as a vocabulary that costs nothing, and the frequencies as what noisy ones
    are shrunk towards: `word_frequencies` of :class:`~sktensor_dp.PrivateSpectralLDA`.

    Parameters
    ----------
    path : str or Path
        One of

        - ``.csv`` or ``.tsv``: a word and a number per row, with or without a header;
        - ``.txt``: a word, blanks, and a number per line;
        - ``.json``: an object of words and numbers, or a list of pairs.

        Suffixes may be in capitals, and be followed by ``.gz``.
    lowercase : bool, default=True
        Whether to convert words to lower case, as ``PrivateCountVectorizer`` does, and add up
        those that are then the same.
    encoding : str, default="utf-8"
        Encoding of the file, such as ``"cp1252"``.

    Returns
    -------
    dict of str to float
        Frequencies that sum to 1, the largest first.

    Raises
    ------
    FileNotFoundError
        If nothing is at `path`.
    ValueError
        If the suffix is not one of these, the file is malformed, or a number is negative, not
        finite, or none. No message shows what is in the file.

    Notes
    -----
    **Privacy.** The list has to be public: made without the documents that are to be protected.
    Other sources of such a mapping serve as well, such as the package ``wordfreq``
    (``wordfreq.get_frequency_dict("en")``).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sktensor_dp.datasets import load_word_frequencies
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.csv")
    ...     _ = path.write_text("word,count\ncat,1\nThe,5\nthe,2\n")
    ...     load_word_frequencies(path)
    {'the': 0.875, 'cat': 0.125}
    """
    path = existing_path(path)
    kind, _ = suffix_of(path)
    if kind not in _SUFFIXES or path.is_dir():
        raise ValueError(
            f"path: {path.name!r} must be a file ending in {', '.join(_SUFFIXES)} (or .gz after it)"
        )
    text = decoded(path, encoding)
    pairs = _of_json(path, text) if kind == ".json" else _of_rows(path, text, kind)
    found: dict[str, float] = {}
    for word, number in pairs:
        word = word.lower() if lowercase else word
        found[word] = found.get(word, 0.0) + number
    total = sum(found.values())
    if not 0 < total < math.inf:
        raise ValueError(f"path: the numbers of {path.name!r} must have a positive, finite sum")
    frequencies = ((word, number / total) for word, number in found.items() if number > 0)
    return dict(sorted(frequencies, key=lambda pair: (-pair[1], pair[0])))


def _of_rows(path: Path, text: str, kind: str) -> list[tuple[str, float]]:
    """Pairs (word, number) of a file with one pair per row; the first row may be a header."""
    if kind == ".txt":
        rows = [line.rsplit(None, 1) for line in text.splitlines() if line.strip()]
    else:
        lines, delimiter = io.StringIO(text, newline=""), "\t" if kind == ".tsv" else None
        header, found = read_delimited(lines, path.name, delimiter, kind == ".csv")
        rows = [header, *found]
    has_header = bool(rows) and len(rows[0]) == 2 and math.isnan(_number(rows[0][1]))
    return _checked(path, rows[has_header:], first=1 + has_header)


def _of_json(path: Path, text: str) -> list[tuple[str, float]]:
    """Pairs (word, number) of a JSON object, or of a list of pairs."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, dict):
        content = list(content.items())
    if not isinstance(content, list):
        raise ValueError(
            f"path: {path.name!r} must hold a JSON object of words and numbers, or a list of pairs"
        )
    return _checked(path, content, first=1)


def _checked(path: Path, rows: Iterable[Any], first: int) -> list[tuple[str, float]]:
    """Validate rows as pairs (word, number); ValueError names the wrong row by its number, counted
    from `first`.
    """
    found = []
    for place, row in enumerate(rows, start=first):
        pair = isinstance(row, list | tuple) and len(row) == 2 and isinstance(row[0], str)
        number = _number(row[1]) if pair else math.nan
        if not (0 <= number < math.inf):
            raise ValueError(
                f"path: row {place} of {path.name!r} must be a word and a finite number >= 0"
            )
        found.append((row[0], number))
    return found


def _number(value: Any) -> float:
    """Convert a number, or its text, to float; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan
