"""Public word frequencies from files."""

import io
import math
from pathlib import Path

from sktensor_dp.checks.composed import composed
from sktensor_dp.datasets import own_files


def load_word_frequencies(
    path: str | Path, *, delimiter: str | None = None, encoding: str = "utf-8"
) -> dict[str, float]:
    r"""Read public word frequencies from a file.

    The words serve as a vocabulary that costs nothing, and the frequencies as what noisy ones
    are shrunk towards: `word_frequencies` of :class:`~sktensor_dp.PrivateSpectralLDA`.

    Parameters
    ----------
    path : str or Path
        A ``.csv`` or ``.tsv`` file with a word and a number per row, with or without a header, or
        a ``.txt`` file with a word, blanks, and a number per line; ``.gz`` may follow.
    delimiter, encoding : str
        How the file is written, as for :func:`load_texts`.

    Returns
    -------
    dict of str to float
        Frequencies that sum to 1, the largest first; of words in lower case and composed (Unicode's
        NFC), as ``PrivateCountVectorizer`` has them, those of the same word added up.

    Raises
    ------
    FileNotFoundError, ValueError
        If nothing is at `path`; if the suffix is not one of these, the file is malformed, or a
        number is negative, not finite, or missing. No message shows what is in the file.

    Notes
    -----
    **Privacy.** The list has to be public: made without the documents that are to be protected.
    ``wordfreq.get_frequency_dict("en")`` of the package ``wordfreq`` serves as well.

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
    path = own_files.existing_path(path)
    kind = own_files.suffix_of(path)
    if kind not in (".csv", ".tsv", ".txt") or path.is_dir():
        raise ValueError(
            f"{path.name!r} must be a file ending in .csv, .tsv or .txt (or .gz after it)"
        )
    text = own_files.decoded(path, encoding)
    if kind == ".txt":
        rows = [line.rsplit(None, 1) for line in text.splitlines() if line.strip()]
    else:
        lines = io.StringIO(text, newline="")
        header, others = own_files.delimited_rows(lines, path, delimiter, quoted=kind == ".csv")
        rows = [header, *others]
    has_header = bool(rows) and len(rows[0]) == 2 and math.isnan(_number(rows[0][1]))
    n_headers = int(has_header)
    sums: dict[str, float] = {}
    for place, row in enumerate(rows[n_headers:], start=1 + n_headers):
        number = _number(row[1]) if len(row) == 2 else math.nan
        if not 0 <= number < math.inf:
            is_swapped = len(row) == 2 and _number(row[0]) >= 0
            raise ValueError(
                f"row {place} of {path.name!r} must be a word and a finite number >= 0, in this "
                f"order{': its first cell is the number' if is_swapped else ''}"
            )
        word = composed(own_files.from_cell(row[0])).lower()
        sums[word] = sums.get(word, 0.0) + number
    total = sum(sums.values())
    if not 0 < total < math.inf:
        raise ValueError(f"the numbers of {path.name!r} must have a positive, finite sum")
    frequencies = ((word, number / total) for word, number in sums.items() if number > 0)
    return dict(sorted(frequencies, key=lambda pair: (-pair[1], pair[0])))


def _number(text: str) -> float:
    """Number in `text`; NaN where it holds none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
