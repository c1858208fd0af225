"""Texts are read strictly: each row is a document, whole or in parts, and no message shows one."""

import csv
import gzip
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sktensor_dp import PrivateTensorPowerMethod
from sktensor_dp.datasets import load_texts, load_texts_by_person, open_table, open_texts
from sktensor_dp.datasets.texts import as_numbers

SECRET = "unmistakable"
QUOTES = "quotes of the row that begins at line {} "
BIG = "word " * 100_000
KEYS = [{"t": "a\u2028b", "n": 1}, {"n": 2}, {"t": None}, {"t": ""}]
KEYS_CONTENT = "\n".join(json.dumps(row, ensure_ascii=False) for row in KEYS) + "\n\n"


def save(path, content, encoding="utf-8"):
    data = content if isinstance(content, bytes) else content.encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix.lower() == ".gz" else data)
    return path


def parts_of(path, column, size=2):
    return [text for part in open_texts(path, column, chunk_size=size) for text in part]


def assert_nothing_shown(error):
    """No exception of the chain carries data: logs may keep more than the message."""
    while error is not None:
        assert SECRET not in repr(vars(error)) + repr(error.args) + str(error)
        assert not hasattr(error, "doc")
        assert not hasattr(error, "object")
        error = error.__cause__ or error.__context__


# What is read


@pytest.mark.parametrize("read", [load_texts, parts_of])
@pytest.mark.parametrize(
    ("name", "content", "column", "expected"),
    [
        ("a.csv", "anything\nx\n\ny\n", None, ["x", "", "y"]),
        ("a.csv", "\ufeffanything\nx\n", "anything", ["x"]),
        ("a.csv", "text,id\n\nx,1\n\n\ny,2\n\n\n", "text", ["x", "y"]),
        ("a.csv", '"a;b;c",t\nx,y\n', "t", ["y"]),
        ("a.csv", f"t\n{BIG}\n", "t", [BIG]),
        ("a.tsv", "t\tn\nx, y\t1\n", "t", ["x, y"]),
        ("a.tsv", 't\tn\n"x\t1\ny"\t2\n', "t", ['"x', 'y"']),
        ("a.jsonl", "\ufeff" + KEYS_CONTENT, "t", ["a\u2028b", "", "", ""]),
        ("b.jsonl", '{"t": "x"}\r\n\r\n{"t": "y"}\r\n', "t", ["x", "y"]),
        ("a.b.csv.gz", "t\nx\n", None, ["x"]),
        ("a.CSV.GZ", "t\nx\n", None, ["x"]),
        ("a.tsv.gz", "t\nx\n", None, ["x"]),
        ("a.Jsonl.gz", '{"t": "x"}\n', "t", ["x"]),
    ],
)
def test_files_are_read_row_by_row(tmp_path, read, name, content, column, expected):
    assert read(save(tmp_path / name, content), column) == expected


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_csv_with_quoted_newlines_and_missing_cells(tmp_path, newline):
    rows = ["text,id", '"one,', 'more",1', ",2", '"say ""hi""\u2028there",3', ",", "last,"]
    path = save(tmp_path / "a.CSV", newline.join(rows) + newline)
    expected = [f"one,{newline}more", "", 'say "hi"\u2028there', "", "last"]
    assert load_texts(path, "text") == parts_of(path, "text") == expected
    assert load_texts(path, column="id") == ["1", "2", "3", "", ""]


@settings(deadline=None)  # a loaded machine is slow at times
@given(
    st.lists(
        st.tuples(st.text('ab",;\n\r\t \u2028', max_size=6), st.text('a",\n', max_size=3)),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(",;\t"),
)
def test_whatever_a_writer_quotes_is_read_back(tmp_path_factory, rows, delimiter):
    path = tmp_path_factory.getbasetemp() / "written.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([("text", "other"), *rows])
    assert load_texts(path, "text", delimiter=delimiter) == [text for text, _ in rows]


def test_folder_is_read_in_order_of_paths(tmp_path):
    (tmp_path / "sub").mkdir()
    for name, text in {"b.txt": "second", "a.txt": "first", "sub/c.txt": "", "x.md": "no"}.items():
        save(tmp_path / name, text)
    with pytest.warns(UserWarning, match=r"1 file is skipped that do not end in \.txt"):
        assert load_texts(tmp_path) == ["first", "second", ""]
    (tmp_path / "x.md").rename(tmp_path / "x.TXT")
    assert load_texts(tmp_path) == parts_of(tmp_path, None) == ["first", "second", "", "no"]


def test_encodings_can_be_named(tmp_path):
    path = save(tmp_path / "a.csv", "text,id\nx,1\nfünf €,2\n", "cp1252")
    assert load_texts(path, "text", encoding="cp1252") == ["x", "fünf €"]
    save(tmp_path / "a.txt", "fünf", "utf-16")
    path.unlink()
    assert load_texts(tmp_path, encoding="utf-16") == ["fünf"]


def test_parquet_is_read_with_pyarrow(tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"t": ["a", None, ""], "n": [1, 2, 3]}).to_parquet(path)
    assert load_texts(path, "t") == parts_of(path, "t") == ["a", "", ""]
    with pytest.raises(ValueError, match=r"column 'n' of 'a\.parquet' should hold text"):
        load_texts(path, "n")
    with pytest.raises(ValueError, match=r"'a\.parquet' has 2 columns"):
        load_texts(path)
    pd.DataFrame({"t": ["a", None, "c"]}).to_parquet(path)
    assert load_texts(path) == ["a", "", "c"]


# What is refused


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.csv", "", None, "is empty"),
        ("a.csv", f"text,id\n{SECRET},1\n", None, "column must be given: 'a.csv' has 2 columns"),
        ("a.csv", f"text,id\n{SECRET},1\n", "body", "column 'body' does not exist: 'a.csv' has"),
        ("a.csv", f"{SECRET}, Body\n5,x\n", "body", "'body' does not .* as it stands in its"),
        ("a.csv", f"text,text\n{SECRET},1\n", "text", "column 'text' occurs more than once"),
        ("a.csv", f"1,{SECRET} one\n2,{SECRET} two\n", None, "has 2 columns; give the name"),
        ("a.csv", f"1,{SECRET} one\n2,{SECRET} two\n", "text", "has 2 columns; give the name"),
        ("a.csv", f"text;id\n{SECRET},1\n", "text", "pass delimiter=';', or ','"),
        ("a.csv", f"text\tid\n{SECRET},1\n", "text", r"pass delimiter='\\t', or ','"),
        ("a.csv", f"text,id\n{SECRET}, b,1\n", "text", "line 2 of 'a.csv' has 3 cells.* quoted"),
        ("a.csv", f"text,id\nx,0\n{SECRET}\n", "text", "line 3 of 'a.csv' has 1 cell, .* has 2"),
        ("a.csv", f'text,id\n"{SECRET}\n', "text", QUOTES.format(2)),
        (
            "a.csv",
            f"text,id\n{SECRET},1\nfünf,2\n".encode("cp1252"),
            "text",
            "utf-8 text at line 3",
        ),
        ("a.jsonl", f"{SECRET} é".encode("latin-1"), "t", "not utf-8 text at line 1; name its"),
        ("a.jsonl", json.dumps({SECRET: "x"}), None, "column must be given: the key"),
        ("a.jsonl", f'{{"t": "x"}}\n\n{{"t": "{SECRET}', "t", "line 3 of 'a.jsonl' is not a JSON"),
        ("a.jsonl", "[" * 100_000, "t", "line 1 of 'a.jsonl' is not a JSON object"),
        ("a.jsonl", f'["{SECRET}"]', "t", "line 1 of 'a.jsonl' is not a JSON object"),
        ("a.jsonl", f'{{"t": ["{SECRET}"]}}', "t", "should hold text, it also holds list"),
        ("a.txt", SECRET, None, "suffix of 'a.txt' is not supported; give a folder"),
        ("a.parquet.gz", SECRET, None, "suffix of 'a.parquet.gz' is not supported"),
        ("a.parquet", SECRET, "t", "Opening 'a.parquet' failed"),
    ],
)
@pytest.mark.parametrize("read", [load_texts, parts_of])
def test_what_is_wrong_is_said_without_the_data(tmp_path, read, name, content, column, message):
    with pytest.raises(ValueError, match=message) as info:
        read(save(tmp_path / name, content), column)
    assert_nothing_shown(info.value)


@pytest.mark.parametrize(
    "content", [gzip.compress(SECRET.encode())[:-9], SECRET.encode()], ids=["cut short", "plain"]
)
@pytest.mark.parametrize("read", [load_texts, parts_of])
def test_damaged_archives_are_refused(tmp_path, read, content):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be decompressed") as info:
        read(path, None)
    assert_nothing_shown(info.value)


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.csv", "text\n", None, "holds no row"),
        ("a.jsonl", "", "t", "holds no row"),
        ("a.jsonl", f'{{"t": "{SECRET}"}}', "u", "column 'u' does not exist: no object of"),
    ],
)
def test_the_whole_needs_a_row_and_a_key(tmp_path, name, content, column, message):
    """In parts no row is data like any other: how many there are may be private."""
    path = save(tmp_path / name, content)
    with pytest.raises(ValueError, match=message) as info:
        load_texts(path, column)
    assert_nothing_shown(info.value)
    assert parts_of(path, column) in ([], [""])


@pytest.mark.parametrize("other", ['"another,119', '5" of rain,119', "words,119"])
def test_a_stray_quote_does_not_swallow_documents(tmp_path, other):
    """Two rows of 200 begin with a quote, as people write: inches, citations."""
    rows = ["text,id", *(f"words of {i},{i}" for i in range(200))]
    rows[20], rows[120] = f'"{SECRET},19', other
    path = save(tmp_path / "a.csv", "\n".join(rows))
    with pytest.raises(ValueError, match=QUOTES.format(21)) as info:
        load_texts(path, "text")
    assert_nothing_shown(info.value)
    assert len(load_texts(path, "text", quoting="none")) == 200


@pytest.mark.parametrize("row", ['say "hi",1', ' "hi",1', '"hi"!,1', '"hi" ,1', 'a"b,1', '1,"'])
def test_quotes_that_no_writer_writes_are_refused(tmp_path, row):
    path = save(tmp_path / "a.csv", f'text,id\n"good, ""bad""\r\n",0\n{row}\nlast,2\n')
    with pytest.raises(ValueError, match=r"begins at line 4 .*pass quoting='none'"):
        load_texts(path, "text")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "klingon"}, "encoding 'klingon' is not one that Python knows"),
        ({"encoding": "base64"}, "encoding 'base64' is not one"),
        ({"delimiter": ",,"}, "delimiter must be one character"),
        ({"delimiter": '"'}, "delimiter must be one character"),
        ({"quoting": "all"}, "quoting must be 'auto', 'standard' or 'none'"),
        ({"quoting": "none"}, "pass quoting='standard'"),
    ],
)
def test_options_out_of_range_are_named(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        load_texts(save(tmp_path / "a.csv", 'text\n"x, y"\n'), **options)


@pytest.mark.parametrize("option", [{"delimiter": ";"}, {"quoting": "none"}])
def test_options_of_other_kinds_of_file_are_refused(tmp_path, option):
    path = save(tmp_path / "a.jsonl", '{"t": "x"}')
    for where in (path, tmp_path):
        with pytest.raises(ValueError, match=f"{next(iter(option))}: only a .csv or .tsv file"):
            load_texts(where, **option)


def test_paths_and_arguments_that_cannot_be(tmp_path, monkeypatch):
    for read in (load_texts, open_texts, open_table):
        with pytest.raises(FileNotFoundError, match="nothing is at"):
            read(tmp_path / "nowhere.csv")
    for read in (load_texts, open_texts):
        with pytest.raises(ValueError, match=r"holds no \.txt file"):
            read(tmp_path)
    path = save(tmp_path / "a.csv", "text\n")
    for size in (0, 2.5, True):
        with pytest.raises(ValueError, match="chunk_size must be an int >= 1"):
            open_texts(path, "text", chunk_size=size)
    monkeypatch.setattr("sktensor_dp.datasets.texts.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        load_texts(save(tmp_path / "a.parquet", ""))


# Persons

POSTS, PERSONS = ["one", "", "three"], ["ann", "bob", "ann"]


def write(tmp_path, kind, persons=PERSONS):
    rows = list(zip(persons, POSTS, strict=True))
    path = tmp_path / f"posts{kind}"
    if kind == ".parquet":
        pd.DataFrame(rows, columns=["who", "post"]).to_parquet(path)
        return path
    lines = [json.dumps({"who": who, "post": post}) for who, post in rows]
    if ".jsonl" not in kind:
        mark = "\t" if kind == ".tsv" else ","
        lines = [f"who{mark}post", *(f"{who}{mark}{post}" for who, post in rows)]
    return save(path, "\n".join(lines) + "\n")


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".jsonl", ".jsonl.gz", ".parquet"])
def test_texts_and_persons_lie_side_by_side(tmp_path, kind):
    assert load_texts_by_person(write(tmp_path, kind), "post", "who") == (POSTS, PERSONS)
    numbered = write(tmp_path, kind, [7, 8, 7])
    assert load_texts_by_person(numbered, "post", "who") == (POSTS, ["7", "8", "7"])
    missing = write(tmp_path, kind, ["ann", None if kind in (".jsonl", ".parquet") else "", "ann"])
    if kind != ".jsonl.gz":
        with pytest.raises(ValueError, match=r"some rows of .* have no person") as error:
            load_texts_by_person(missing, "post", "who")
        assert "ann" not in str(error.value)


def test_labels_that_are_no_persons(tmp_path):
    with pytest.raises(ValueError, match="it also holds int"):
        load_texts_by_person(write(tmp_path, ".jsonl", [7, "7", "8"]), "post", "who")
    with pytest.raises(ValueError, match="the one that holds the person"):
        load_texts_by_person(write(tmp_path, ".csv"), "post", "author")
    with pytest.raises(ValueError, match=r"person: the folder .* has no columns"):
        load_texts_by_person(tmp_path, "post", "who")


# Parts


@pytest.mark.parametrize("size", [1, 2, 100])
def test_no_part_is_longer_than_was_asked(size, tmp_path):
    opened = open_texts(save(tmp_path / "a.csv", "t\na\n\nb\nc\n"), "t", chunk_size=size)
    for _ in range(2):
        parts = list(opened)
        assert [text for part in parts for text in part] == ["a", "", "b", "c"]
        assert all(len(part) <= size for part in parts)


def test_no_more_than_a_part_is_in_memory(tmp_path):
    """8 MB of texts, in parts of 80 kB."""
    path = save(tmp_path / "texts.jsonl", (json.dumps({"text": "word " * 160}) + "\n") * 10_000)
    tracemalloc.start()
    n = sum(len(part) for part in open_texts(path, "text", chunk_size=100))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n == 10_000
    assert most < 1e6


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


def test_tables_of_text_are_refused_without_showing_it(tmp_path):
    path = save(tmp_path / "table.csv", f"a,b\n1,{SECRET}\n")
    with pytest.raises(ValueError, match="must hold numbers") as caught:
        list(open_table(path))
    assert_nothing_shown(caught.value)
    with pytest.raises(ValueError, match="column 'c' does not exist"):
        open_table(path, ["c"])
    with pytest.raises(ValueError, match=r"must be a .parquet or .csv file"):
        open_table(tmp_path)


def test_digits_with_underscores_are_no_numbers():
    with pytest.raises(ValueError, match="should hold numbers"):
        as_numbers(Path("a.csv"), "stars", ["1", "1_000"])


def test_a_column_is_of_numbers_whatever_its_first_rows_hold(tmp_path):
    """A type that is read off the first block would refuse a late fraction, and so show it."""
    # pyarrow reads blocks of a megabyte: the fraction is in the third.
    *_, last = open_table(save(tmp_path / "table.csv", "a,b\n" + "1,2\n" * 600_000 + "2.5,1\n"))
    assert last[-1].tolist() == [2.5, 1.0]
