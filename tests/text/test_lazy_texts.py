"""Texts that Dask or a file holds give the vocabulary and the counts of texts at hand."""

import gzip
import json
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from small_corpora import tiny

from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
)
from sktensor_dp.datasets import open_texts

N, SECRET = 700, "opensesame"

pytestmark = tiny


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def texts(seed: int = 0) -> list[str]:
    """Texts of two topics: without any, rounding would decide which a fit finds."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{n}" for n in range(30)])
    return [
        " ".join(words[(rng.geometric(0.15, 8) + 15 * topic) % 30])
        for topic in rng.integers(0, 2, N)
    ]


def in_file(folder: Path, documents: list[str]) -> Any:
    path = folder / "texts.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in documents)
    return open_texts(path, "text", chunk_size=90)


KINDS = {
    "bag": lambda folder, T: db.from_sequence(T, npartitions=4),
    "series": lambda folder, T: dd.from_pandas(pd.Series(T), npartitions=3, sort=False),
    "array": lambda folder, T: da.from_array(np.array(T, object), chunks=150),
    "file": in_file,
}


@pytest.mark.parametrize("kind", ["bag", "file"])
def test_a_number_is_needed_and_checked(kind, tmp_path):
    held, budget = KINDS[kind](tmp_path, texts()), BudgetAccountant(3.0, 1e-5)
    vectorizer = PrivateCountVectorizer(accountant=budget)
    with pytest.raises(ValueError, match="n_samples must be given: the number of documents"):
        vectorizer.fit(held)
    assert budget.total()[0] == 0
    with pytest.raises(ValueError, match=f"have {N} documents in all; n_samples is {N + 5}"):
        vectorizer.fit(held, n_samples=N + 5)
    assert budget.total()[0] > 0.5
    with pytest.raises(TypeError, match="takes no n_samples"):
        vectorizer.fit(texts(), n_samples=N)


def test_a_private_number_is_counted(tmp_path):
    vectorizer = PrivateCountVectorizer(neighbours="add_remove", max_words_per_document=4)
    with pytest.raises(ValueError, match="n_samples must not be given"):
        vectorizer.fit(KINDS["bag"](tmp_path, texts()), n_samples=N)
    report = vectorizer.fit(KINDS["bag"](tmp_path, texts())).privacy_report_
    assert report.rows[0].name == "unit_count"


def failing(text: str) -> list[str]:
    raise KeyError(f"{text} {SECRET}")


@pytest.mark.parametrize("given", [{"analyzer": failing}, {}])
def test_faults_show_no_text(given):
    held = db.from_sequence([*texts(), SECRET if given else 5], npartitions=4)
    budget = BudgetAccountant(1.0, 1e-6)
    with pytest.raises((LookupError, ValueError)) as caught:
        PrivateCountVectorizer(accountant=budget, **given).fit(held, n_samples=N + 1)
    assert SECRET not in repr(caught.value)
    assert caught.value.__context__ is None
    assert budget.total()[0] == pytest.approx(1.0)


def test_what_is_no_column_of_texts_is_refused():
    frame = dd.from_pandas(pd.DataFrame({"a": texts(), "b": texts()}), npartitions=2)
    with pytest.raises(ValueError, match="Pass the column of the texts"):
        PrivateCountVectorizer().fit(frame, n_samples=N)
