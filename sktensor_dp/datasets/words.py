"""Files of words: counts in the LDA-C format, and public word frequencies."""

import io
import math
import re
from pathlib import Path

import numpy as np
from scipy import sparse

from sktensor_dp.datasets.texts import decoded, delimited_rows, existing_path, suffix_of

# As many digits as always fit 64 bits.
LDAC_LINE = re.compile(r"[ \t]*\d{1,18}([ \t]+\d{1,18}:\d{1,18})*[ \t]*", re.ASCII)


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
    lines = decoded(path, "ascii").strip().splitlines()
    if not lines or not all(map(LDAC_LINE.fullmatch, lines)):
        raise ValueError(f"path: {path.name!r} is not in the LDA-C format, of at most 18 digits")
    rows = [np.array(line.replace(":", " ").split(), dtype=np.int64) for line in lines]
    n_pairs = np.array([len(row) // 2 for row in rows])
    if not np.array_equal(n_pairs, [row[0] for row in rows]):
        raise ValueError(f"path: a line of {path.name!r} does not hold as many pairs as it states")
    words, counts = np.concatenate([row[1:] for row in rows]).reshape(-1, 2).T
    largest = int(words.max(initial=-1))
    if n_features is None:
        n_features = largest + 1
    elif largest >= n_features:
        raise ValueError(f"n_features={n_features!r} is too small: there are words beyond it")
    indptr = np.concatenate([[0], np.cumsum(n_pairs)])
    X = sparse.csr_array((counts, words, indptr), shape=(len(rows), n_features))
    X.sum_duplicates()
    return X


def load_word_frequencies(
    path: str | Path,
    *,
    lowercase: bool = True,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> dict[str, float]:
    r"""Read public word frequencies from a file.

    The words serve as a vocabulary that costs nothing, and the frequencies as what noisy ones
    are shrunk towards: `word_frequencies` of :class:`~sktensor_dp.PrivateSpectralLDA`.

    Parameters
    ----------
    path : str or Path
        A ``.csv`` or ``.tsv`` file with a word and a number per row, with or without a header, or
        a ``.txt`` file with a word, blanks, and a number per line; ``.gz`` may follow.
    lowercase : bool, default=True
        Whether to convert words to lower case, as ``PrivateCountVectorizer`` does, and add up
        those that are then the same.
    delimiter, encoding : str
        How the file is written, as for :func:`load_texts`.

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
        finite, or missing. No message shows what is in the file.

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
    kind = suffix_of(path)
    if kind not in (".csv", ".tsv", ".txt") or path.is_dir():
        raise ValueError(
            f"path: {path.name!r} must be a file ending in .csv, .tsv or .txt (or .gz after it)"
        )
    text = decoded(path, encoding)
    if kind == ".txt":
        rows = [line.rsplit(None, 1) for line in text.splitlines() if line.strip()]
    else:
        lines = io.StringIO(text, newline="")
        header, others = delimited_rows(lines, path, delimiter, kind == ".csv")
        rows = [header, *others]
    has_header = bool(rows) and len(rows[0]) == 2 and math.isnan(_number(rows[0][1]))
    found: dict[str, float] = {}
    for place, row in enumerate(rows[has_header:], start=1 + has_header):
        number = _number(row[1]) if len(row) == 2 else math.nan
        if not 0 <= number < math.inf:
            raise ValueError(
                f"path: row {place} of {path.name!r} must be a word and a finite number >= 0"
            )
        word = row[0].lower() if lowercase else row[0]
        found[word] = found.get(word, 0.0) + number
    total = sum(found.values())
    if not 0 < total < math.inf:
        raise ValueError(f"path: the numbers of {path.name!r} must have a positive, finite sum")
    frequencies = ((word, number / total) for word, number in found.items() if number > 0)
    return dict(sorted(frequencies, key=lambda pair: (-pair[1], pair[0])))


def _number(text: str) -> float:
    """Number in `text`; NaN where it holds none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
