"""The private file of the topics of each text, which nothing protects."""

import csv
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sktensor_dp.cli.folder import Folder
from sktensor_dp.cli.written_tables import table_of

DOCUMENT_SHARES = "PRIVATE-document-shares.csv"


class TextLabels(NamedTuple):
    """Names of texts, or none where they are numbered, and the head of their column."""

    names: Sequence[str]
    head: str


def name_of(source: str) -> str:
    """Name of the file, for texts of the file `source` if it is not the one of the run."""
    if not source:
        return DOCUMENT_SHARES
    of_file = source.removesuffix(".csv").replace("/", "-")
    return f"{Path(DOCUMENT_SHARES).stem}-of-{of_file}.csv"


def write_shares(folder: Folder, name: str, model: Any, counts: Any, texts: TextLabels) -> None:
    """Write shares of a model's topics in each text, and how many of its words are in `counts`.

    ValueError if the file that is there names its texts, and these are only numbered.
    """
    if (path := folder.path / name).exists() and not texts.names:
        with path.open(encoding="utf-8", newline="") as file:
            column, *_ = next(csv.reader(file), ["text"])
        if column != "text":
            raise ValueError(
                f"{name} names texts by {column!r}, and would be replaced by one that "
                f"numbers them: --id {shlex.quote(column)} keeps the names; or move it away. "
                "Nothing was spent."
            )
    n_words = np.asarray(counts.sum(axis=1)).ravel()
    shares = model.transform(counts)
    labels = texts.names or range(1, len(shares) + 1)
    head = [f"topic_{number}" for number in range(1, shares.shape[1] + 1)]
    # A text without any word of the topics has no shares: its cells stay empty.
    rows = (
        [text, int(kept), *(row if kept else [""] * len(row))]
        for text, kept, row in zip(labels, n_words, shares, strict=True)
    )
    folder.add(name, table_of([[texts.head, "kept_words", *head], *rows]), private=True)
