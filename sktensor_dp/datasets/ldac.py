"""Word counts in the LDA-C format."""

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sktensor_dp.datasets.texts import existing
from sktensor_dp.queries.reading import read


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
    path = existing(path)
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
