"""Texts with whose they are: labels are read as strictly as texts, and never shown."""

import gzip
import json

import pytest

from sktensor_dp.datasets import load_texts_by_person

TEXTS, PERSONS = ["one", "", "three"], ["ann", "bob", "ann"]


def write(tmp_path, kind, persons=PERSONS):
    rows = list(zip(persons, TEXTS, strict=True))
    path = tmp_path / f"posts{kind}"
    if kind == ".parquet":
        pandas = pytest.importorskip("pandas", reason="Parquet is read with pandas")
        pytest.importorskip("pyarrow", reason="pandas reads Parquet with pyarrow")
        pandas.DataFrame(rows, columns=["who", "post"]).to_parquet(path)
        return path
    lines = [json.dumps({"who": who, "post": post}) for who, post in rows]
    if ".jsonl" not in kind:
        mark = "\t" if kind == ".tsv" else ","
        lines = [f"who{mark}post", *(f"{who}{mark}{post}" for who, post in rows)]
    content = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(content) if kind.endswith(".gz") else content)
    return path


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".jsonl", ".jsonl.gz", ".parquet"])
def test_texts_and_persons_lie_side_by_side(tmp_path, kind):
    path = write(tmp_path, kind)
    assert load_texts_by_person(path, "post", "who") == (TEXTS, PERSONS)


@pytest.mark.parametrize("kind", [".csv", ".jsonl", ".parquet"])
def test_persons_may_be_numbers(tmp_path, kind):
    path = write(tmp_path, kind, [7, 8, 7])
    assert load_texts_by_person(path, "post", "who") == (TEXTS, ["7", "8", "7"])


@pytest.mark.parametrize("kind", [".csv", ".jsonl", ".parquet"])
def test_rows_without_a_person_are_refused(tmp_path, kind):
    path = write(tmp_path, kind, ["ann", "" if kind == ".csv" else None, "ann"])
    with pytest.raises(ValueError, match=r"some rows of .* have no person") as error:
        load_texts_by_person(path, "post", "who")
    assert "ann" not in str(error.value)


def test_a_number_and_its_text_are_not_taken_for_one_person(tmp_path):
    with pytest.raises(ValueError, match="it also holds int"):
        load_texts_by_person(write(tmp_path, ".jsonl", [7, "7", "8"]), "post", "who")


def test_a_wrong_name_is_said_to_be_that_of_the_person(tmp_path):
    with pytest.raises(ValueError, match="the one that holds the person"):
        load_texts_by_person(write(tmp_path, ".csv"), "post", "author")
    with pytest.raises(ValueError, match=r"person: the folder .* has no columns"):
        load_texts_by_person(tmp_path, "post", "who")
