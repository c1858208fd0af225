"""Files that are read in parts give what reading them whole gives, and errors show nothing."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sktensor_dp import PrivateTensorPowerMethod
from sktensor_dp.datasets import load_texts, open_table, open_texts

SECRET = "opensesame"
TEXTS = ["Fine,\nreally", "", 'He said "no"', "tab\there", "Grüße"]


def write(folder: Path, kind: str) -> Path:
    path = folder / f"texts{kind}"
    frame = pd.DataFrame({"stars": range(len(TEXTS)), "text": TEXTS})
    if kind == ".csv":
        frame.to_csv(path, index=False)
    elif kind == ".tsv":
        rows = [f"{n}\t{text}" for n, text in enumerate(plain_texts())]
        path.write_text("\n".join(["stars\ttext", *rows, ""]), encoding="utf-8")
    elif kind == ".jsonl":
        lines = [json.dumps(row) for row in frame.to_dict("records")]
        path.write_text("\n".join(lines), encoding="utf-8")
    else:
        frame.to_parquet(path)
    return path


def plain_texts() -> list[str]:
    return [text.replace("\n", " ").replace("\t", " ") for text in TEXTS]


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("kind", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_texts_in_parts_are_those_of_the_whole(kind, size, tmp_path):
    path = write(tmp_path, kind)
    opened = open_texts(path, "text", chunk_size=size)
    whole = load_texts(path, "text")
    for _ in range(2):
        parts = list(opened)
        assert [text for part in parts for text in part] == whole
        assert all(len(part) <= size for part in parts)


def test_folders_of_texts(tmp_path):
    for n, text in enumerate(TEXTS):
        (tmp_path / f"{n}.txt").write_text(text, encoding="utf-8", newline="")
    assert next(iter(open_texts(tmp_path, chunk_size=2))) == TEXTS[:2]
    assert [text for part in open_texts(tmp_path) for text in part] == TEXTS


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_tables_in_parts(kind, tmp_path):
    X = np.random.default_rng(0).standard_normal((50, 3))
    frame, path = pd.DataFrame(X, columns=["a", "b", "c"]), tmp_path / f"table{kind}"
    frame.to_csv(path, index=False) if kind == ".csv" else frame.to_parquet(path)
    table = open_table(path, ["c", "a"], chunk_size=20)
    assert (table.columns, table.n_features) == (["c", "a"], 2)
    for _ in range(2):
        parts = list(table)
        assert [len(part) for part in parts] == [20, 20, 10]
        np.testing.assert_allclose(np.vstack(parts), X[:, [2, 0]], rtol=1e-15)
    model = PrivateTensorPowerMethod(1, data_norm=3.0, epsilon=float("inf"), random_state=0)
    model.fit_chunks(open_table(path), n_samples=50, n_features=3)
    again = PrivateTensorPowerMethod(1, data_norm=3.0, epsilon=float("inf"), random_state=0)
    np.testing.assert_allclose(model.components_, again.fit(X).components_, atol=1e-12)


def test_no_more_than_a_part_is_in_memory(tmp_path):
    """8 MB of texts, in parts of 80 kB."""
    path = tmp_path / "texts.jsonl"
    line = json.dumps({"text": "word " * 160}) + "\n"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(line for _ in range(10_000))
    tracemalloc.start()
    n = sum(len(part) for part in open_texts(path, "text", chunk_size=100))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n == 10_000
    assert most < 1e6


MALFORMED: dict[str, tuple[str, str, Any]] = {
    "a long row": (".csv", f"stars,text\n1,{SECRET},2\n", "line 2 .* has 3 cells"),
    "an open quote": (
        ".csv",
        f'stars,text\n1,"{SECRET}\n',
        "not well-formed: .* line 2",
    ),
    "no JSON": (".jsonl", f"{SECRET}\n", "line 1 of 'file.jsonl' is not a JSON object"),
    "a number": (".jsonl", '{"text": 5}\n', "should hold text, it also holds int"),
    "another encoding": (
        ".csv",
        b"stars,text\n1,\xff\xfe" + SECRET.encode(),
        "is not utf-8 text at line 2",
    ),
    "no Parquet": (".parquet", SECRET, "Opening 'file.parquet' failed"),
    "no such column": (".csv", f"stars,{SECRET}\n1,2\n", "column 'text' does not exist"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_files_show_nothing_of_what_is_in_them(case, tmp_path):
    kind, content, message = MALFORMED[case]
    path = tmp_path / f"file{kind}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(Exception, match=message) as caught:
        list(open_texts(path, "text"))
    assert SECRET not in repr(caught.value)
    assert SECRET not in repr(caught.value.__context__)


def test_tables_of_text_are_refused_without_showing_it(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(f"a,b\n1,{SECRET}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="must hold numbers") as caught:
        list(open_table(path))
    assert SECRET not in repr(caught.value)
    with pytest.raises(ValueError, match="column 'c' does not exist"):
        open_table(path, ["c"])
    with pytest.raises(ValueError, match=r"must be a .parquet or .csv file"):
        open_table(tmp_path)


def test_wrong_arguments(tmp_path):
    path = write(tmp_path, ".csv")
    with pytest.raises(FileNotFoundError, match="nothing is at"):
        open_texts(tmp_path / "none.csv")
    for size in (0, 2.5, True):
        with pytest.raises(ValueError, match="chunk_size must be an int >= 1"):
            open_texts(path, "text", chunk_size=size)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="column must be given"):
        list(open_texts(path))


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_a_file_without_rows_is_one_part_without_any(kind, tmp_path):
    """Where the number of rows is private, no row and one row have to go the same way."""
    path = tmp_path / f"table{kind}"
    for n in (0, 1):
        frame = pd.DataFrame({"text": ["a b c"] * n, "count": np.ones(n)})
        frame = frame.astype({"text": "string"})
        frame.to_csv(path, index=False) if kind == ".csv" else frame.to_parquet(path)
        assert [len(part) for part in open_texts(path, "text")] == [n]
        assert [part.shape for part in open_table(path, ["count"])] == [(n, 1)]


def test_a_column_is_of_numbers_whatever_its_first_rows_hold(tmp_path):
    """A type that is read off the first block would refuse a late fraction, and so show it."""
    path = tmp_path / "table.csv"
    # pyarrow reads blocks of a megabyte: the fraction is in the third.
    path.write_text("a,b\n" + "1,2\n" * 600_000 + "2.5,1\n")
    *_, last = open_table(path)
    assert last[-1].tolist() == [2.5, 1.0]
