"""Files are read strictly: each row is a document, whole or in parts, and no message shows one."""

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sktensor_dp.datasets import load_texts, load_word_frequencies
from sktensor_dp.datasets.own_files import as_cell, numbers_in_column, read_columns

SECRET = "unmistakable"
QUOTES = "quotes of the row that begins at line {} "
BIG = "word " * 100_000
KEYS = [{"t": "a\u2028b", "n": 1}, {"n": 2}, {"t": None}, {"t": ""}]
KEYS_CONTENT = "\n".join(json.dumps(row, ensure_ascii=False) for row in KEYS) + "\n\n"
POSTS, PERSONS = ["one", "", "three"], ["ann", "bob", "ann"]


def save(path, content, encoding="utf-8"):
    data = content if isinstance(content, bytes) else content.encode(encoding)
    packed = path.suffix.lower() == ".gz" and isinstance(content, str)
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


def refused(message, call, *args, error=ValueError, **options):
    """No exception of the chain carries data: logs may keep more than the message."""
    with pytest.raises(error, match=message) as caught:
        call(*args, **options)
    raised = caught.value
    while raised is not None:
        assert SECRET not in repr(vars(raised)) + repr(raised.args) + str(raised)
        assert not hasattr(raised, "doc")
        assert not hasattr(raised, "object")
        raised = raised.__cause__ or raised.__context__


# Texts that are read


@pytest.mark.parametrize(
    ("name", "content", "column", "expected"),
    [
        ("a.csv", "anything\nx\n\ny\n", None, ["x", "", "y"]),
        ("a.csv", "\ufeffanything\nx\n", "anything", ["x"]),
        ("a.csv", "text,id\n\nx,1\n\n\ny,2\n\n\n", "text", ["x", "y"]),
        ("a.csv", '"a;b;c",t\nx,y\n', "t", ["y"]),
        ("a.csv", f"t\n{BIG}\n", "t", [BIG]),
        ("a.csv", "\ufeffsep=;\r\nt;n\r\nx, y;1\r\n", "t", ["x, y"]),
        ("a.csv", "t\n'=x\n''=x\n'x\n=x\n", "t", ["=x", "'=x", "'x", "=x"]),
        *(("a.csv", f"t{c}n\nx{c}1\n", "t", ["x"]) for c in ",;\t|"),
        ("a.tsv", "t;n\nx\n", "t;n", ["x"]),
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
def test_files_are_read_row_by_row(tmp_path, name, content, column, expected):
    assert load_texts(save(tmp_path / name, content), column) == expected


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_csv_with_quoted_newlines_and_missing_cells(tmp_path, newline):
    rows = ["text,id", '"one,', 'more",1', ",2", '"say ""hi""\u2028there",3', ",", "last,"]
    path = save(tmp_path / "a.CSV", newline.join(rows) + newline)
    expected = [f"one,{newline}more", "", 'say "hi"\u2028there', "", "last"]
    assert load_texts(path, "text") == expected
    assert load_texts(path, column="id") == ["1", "2", "3", "", ""]


@pytest.mark.parametrize("name", ["u.data", "u.data.gz", "u"])
def test_tables_of_any_suffix_are_read_by_their_delimiter(tmp_path, name):
    path = save(tmp_path / name, 't\tn\n"x, y"\t1\n')
    assert load_texts(path, "t", delimiter="\t") == ["x, y"]


@settings(deadline=None)  # a loaded machine is slow at times
@given(
    st.lists(
        st.tuples(st.text("a'=\",;\n\r\t \u2028", max_size=6), st.text('a",\n', max_size=3)),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(",;\t"),
)
def test_whatever_a_writer_quotes_is_read_back(tmp_path_factory, rows, delimiter):
    path = tmp_path_factory.getbasetemp() / "written.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerows([("text", "other"), *([as_cell(text), other] for text, other in rows)])
    assert not any(text[:1] in tuple("=\t\r") for text in map(as_cell, sum(rows, ())))
    assert load_texts(path, "text", delimiter=delimiter) == [text for text, _ in rows]


def test_folder_is_read_in_order_of_paths(tmp_path):
    (tmp_path / "sub").mkdir()
    for name, text in {"b.txt": "second", "a.txt": "first", "sub/c.txt": "", "x.md": "no"}.items():
        save(tmp_path / name, text)
    with pytest.warns(UserWarning, match=r"skipped 1 file not ending in \.txt"):
        assert load_texts(tmp_path) == ["first", "second", ""]
    (tmp_path / "x.md").rename(tmp_path / "x.TXT")
    assert load_texts(tmp_path) == ["first", "second", "", "no"]


def test_encodings_can_be_named(tmp_path):
    path = save(tmp_path / "a.csv", "text,id\nx,1\nfünf €,2\n", "cp1252")
    assert load_texts(path, "text", encoding="cp1252") == ["x", "fünf €"]
    save(tmp_path / "a.txt", "fünf", "utf-16")
    path.unlink()
    assert load_texts(tmp_path, encoding="utf-16") == ["fünf"]


@pytest.mark.parametrize("encoding", ["cp1252", "cp1251", "latin-1", "ascii"])
def test_lines_of_utf_8_are_read_as_such_in_encodings_of_one_byte(tmp_path, encoding):
    texts = ["fünf ”Ý", "Тёма", "plain"]
    path = save(tmp_path / "a.csv", "\n".join(["\ufefftext", *texts]) + "\n")
    assert load_texts(path, "text", encoding=encoding) == texts
    # Lines are judged each by itself.
    native = {"cp1252": "grün €", "cp1251": "Тёма ё", "latin-1": "grün ß"}.get(encoding, "green")
    path.write_bytes(path.read_bytes() + native.encode(encoding) + b"\n")
    assert load_texts(path, "text", encoding=encoding) == [*texts, native]


def test_lines_of_several_bytes_are_read_as_named(tmp_path):
    path = save(tmp_path / "a.csv", "text\n模\nплан\n", "gbk")  # 模 has the bytes of ģ
    assert load_texts(path, "text", encoding="gbk") == ["模", "план"]


def test_parquet_is_read_with_pyarrow(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"t": ["a", None, ""], "n": [1, 2, 3]}).to_parquet(path)
    assert load_texts(path, "t") == ["a", "", ""]
    refused(r"column 'n' of 'a\.parquet' should hold text", load_texts, path, "n")
    refused(r"'a\.parquet' has 2 columns; .* of 't', 'n'$", load_texts, path)
    days = pd.DataFrame({"d": pd.to_datetime(["2025-01-31 14:05", None])})
    days.assign(day=days.d.dt.date).to_parquet(path)
    columns = read_columns(path, [("d", "group"), ("day", "group")], None, "auto", "utf-8")
    assert columns == [["2025-01-31 14:05:00", ""], ["2025-01-31", ""]]
    refused(r"column 'd' of 'a\.parquet' should hold text", load_texts, path, "d")
    pd.DataFrame({"t": ["a", None, "c"]}).to_parquet(path)
    assert load_texts(path) == ["a", "", "c"]
    monkeypatch.setattr("sktensor_dp.datasets.own_files.find_spec", lambda name: None)
    refused("pip install pyarrow", load_texts, path, error=ImportError)


# What is refused


def stray(other):
    """Two rows of 200 begin with a quote, as people write: inches, citations."""
    rows = ["text,id", *(f"words of {i},{i}" for i in range(200))]
    rows[20], rows[120] = f'"{SECRET},19', other
    return "\n".join(rows)


STRAY = [stray(other) for other in ('"another,119', '5" of rain,119', "words,119")]
# Which no writer writes.
ODD = ['say "hi",1', ' "hi",1', '"hi"!,1', '"hi" ,1', 'a"b,1', '1,"']


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.csv", "", None, "is empty"),
        ("a.csv", f"text,id\n{SECRET},1\n", None, "column must be given: 'a.csv' has 2 columns"),
        ("a.csv", f"text,id\n{SECRET},1\n", "body", "column 'body' does not exist: 'a.csv' has"),
        ("a.csv", f"{SECRET}, Body\n5,x\n", "body", "'body' does not .* did you mean ' Body'"),
        ("a.csv", f"text,text\n{SECRET},1\n", "text", "column 'text' occurs more than once"),
        ("a.csv", f"1,{SECRET} one\n2,{SECRET} two\n", None, "has 2 columns; give the name"),
        ("a.csv", f"1,{SECRET} one\n2,{SECRET} two\n", "text", "has 2 columns; give the name"),
        ("a.csv", f"text;id\n{SECRET},1\n", "text", "line 2 of 'a.csv' has 1 cell, .* has 2"),
        ("a.csv", f"text,id\n{SECRET}, b,1\n", "text", "line 2 of 'a.csv' has 3 cells.* quoted"),
        ("a.csv", f"text,id\nx,0\n{SECRET}\n", "text", "line 3 of 'a.csv' has 1 cell, .* has 2"),
        ("a.csv", f'text,id\n"{SECRET}\n', "text", QUOTES.format(2)),
        *(("a.csv", content, "text", QUOTES.format(21)) for content in STRAY),
        *(("a.csv", f'text,id\n"good, ""bad""\r\n",0\n{row}\nlast,2\n', "text",
           r"begins at line 4 .*pass quoting='none'") for row in ODD),
        ("a.csv", f"text,id\n{SECRET},1\nfünf,2\n".encode("cp1252"), "text", "utf-8 .* at line 3"),
        ("a.csv", f"text,id\n{SECRET},1\n".encode("utf-16"), "text", "those of encoding='utf-16'$"),
        ("a.jsonl", f"{SECRET} é".encode("latin-1"), "t", "not utf-8 text at line 1; name its"),
        ("a.jsonl", json.dumps({SECRET: "x"}), None, "column must be given: the key"),
        ("a.jsonl", f'{{"t": "x"}}\n\n{{"t": "{SECRET}', "t", "line 3 of 'a.jsonl' is not a JSON"),
        ("a.jsonl", "[" * 100_000, "t", "line 1 of 'a.jsonl' is not a JSON object"),
        ("a.jsonl", f'["{SECRET}"]', "t", "line 1 of 'a.jsonl' is not a JSON object"),
        ("a.jsonl", f'{{"t": ["{SECRET}"]}}', "t", "should hold text, it also holds list"),
        ("a.txt", SECRET, None, "suffix of 'a.txt' is not supported; .* pass delimiter="),
        ("a.csv", f"{SECRET},id\n", "body", "the first line .not shown, as it may be data"),
        ("a.parquet.gz", SECRET, None, "suffix of 'a.parquet.gz' is not supported"),
        ("a.parquet", SECRET, "t", "Opening 'a.parquet' failed"),
        ("a.csv.gz", gzip.compress(SECRET.encode(), mtime=0)[:-9], None, "cannot be decompressed"),
        ("a.csv.gz", SECRET.encode(), None, "cannot be decompressed"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_without_the_data(tmp_path, name, content, column, message):
    refused(message, load_texts, save(tmp_path / name, content), column)


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.csv", "text\n", None, "holds no row"),
        ("a.jsonl", "", "t", "holds no row"),
        ("a.jsonl", f'{{"t": "{SECRET}"}}', "u", "column 'u' does not exist: no object of"),
    ],
)
def test_the_whole_needs_a_row_and_a_key(tmp_path, name, content, column, message):
    refused(message, load_texts, save(tmp_path / name, content), column)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("a.csv", {"encoding": "klingon"}, "encoding 'klingon' is not one that Python knows"),
        ("a.csv", {"encoding": "base64"}, "encoding 'base64' is not one"),
        ("a.csv", {"delimiter": ",,"}, "delimiter must be one character"),
        ("a.csv", {"delimiter": '"'}, "delimiter must be one character"),
        ("a.csv", {"quoting": "all"}, "quoting must be 'auto', 'standard' or 'none'"),
        ("a.csv", {"quoting": "none"}, "pass quoting='standard'"),
        *((name, option, f"{next(iter(option))}: only a .csv or .tsv file")
          for name in ("a.jsonl", "") for option in ({"delimiter": ";"}, {"quoting": "none"})),
    ],
)  # fmt: skip
def test_options_out_of_range_or_of_other_kinds_of_file_are_named(tmp_path, name, options, message):
    save(tmp_path / "a.csv", 'text\n"x, y"\n')
    save(tmp_path / "a.jsonl", '{"t": "x"}')
    refused(message, load_texts, tmp_path / name, **options)
    assert len(load_texts(save(tmp_path / "b.csv", STRAY[0]), "text", quoting="none")) == 200


def test_paths_and_arguments_that_cannot_be(tmp_path):
    for read in (load_texts, load_word_frequencies):
        refused("nothing is at", read, tmp_path / "nowhere.csv", error=FileNotFoundError)
    refused(r"holds no \.txt file", load_texts, tmp_path)


# Persons


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


def read_both(path, person="who"):
    return read_columns(path, [("post", "text"), (person, "person")], None, "auto", "utf-8")


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".jsonl", ".jsonl.gz", ".parquet"])
def test_texts_and_persons_lie_side_by_side(tmp_path, kind):
    assert read_both(write(tmp_path, kind)) == [POSTS, PERSONS]
    numbered = write(tmp_path, kind, [7, 8, 7])
    assert read_both(numbered) == [POSTS, ["7", "8", "7"]]
    nobody = "" if kind in (".csv", ".tsv") else None
    missing = write(tmp_path, kind, [SECRET, nobody, SECRET])
    refused(r"row 2 of .* has no person", read_both, missing)


def test_labels_that_are_no_persons(tmp_path):
    mixed, table = write(tmp_path, ".jsonl", [7, "7", "8"]), write(tmp_path, ".csv")
    refused("it also holds int", read_both, mixed)
    refused("the one that holds the person", read_both, table, "author")
    refused(r"person: the folder .* has no columns", read_both, tmp_path)


def test_what_is_no_number_is_refused_without_showing_it(tmp_path):
    for cells, decimal in ((["1", "1_000"], "."), (["2", "1,5"], "."), (["2", "1.000"], ",")):
        told = "should hold numbers, and row 2 does not"
        refused(told, numbers_in_column, Path("a.csv"), "stars", cells, decimal)
    (comma := tmp_path / "comma.csv").write_text("a;b\n1,5;2\n2;1,5\n")
    said = "'a' .* row 1 does not. column 'b' .* row 2 does not. Numbers with decimal commas need"
    refused(said, read_columns, comma, [("a", "numbers"), ("b", "numbers")], ";", "auto", "utf-8")
    # Logs of evenly spread values have a long tail, which would be a group of its own.
    told = "a random one from 0 to the limit, and for logs .* half the limit or limit . exp"
    refused(told, numbers_in_column, Path("a.csv"), "crp", ["3", "<2"])
    coded = numbers_in_column(Path("a.csv"), "stars", ["-9.0", "-9", "9", 0.0], ".", {"-9", "0"})
    np.testing.assert_array_equal(coded, [np.nan, np.nan, 9, np.nan])
    found = numbers_in_column(Path("a.csv"), "stars", ["-1,5", "2", "", 3.5], ",")
    np.testing.assert_array_equal(found, [-1.5, 2, np.nan, 3.5])


# Frequencies of words


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "word,count\nb c,1\nthe,6\nThe,1\n"),
        ("a.csv", 'b c,1\nthe,"6"\nThe,1\n'),
        ("a.CSV", "word,count\r\nthe,6.0\r\nb c,1e0\r\nthe,1\r\n"),
        ("a.tsv", "b c\t1\nthe\t6\nthe\t1\n"),
        ("a.tsv.gz", "w\tn\nb c\t1\nthe\t7\nzero\t0\n"),
        ("a.csv", "sep=;\nword;count\nb c;1\nthe;7\n"),
        ("a.txt", "the 6\nb c   1\n\nTHE\t1\n"),
    ],
)
def test_words_and_numbers_are_read_from_any_file_of_two_columns(name, content, tmp_path):
    found = load_word_frequencies(save(tmp_path / name, content))
    assert list(found.items()) == [("the", 0.875), ("b c", 0.125)]


def test_the_encoding_of_words_may_be_named(tmp_path):
    path = save(tmp_path / "a.txt", "The 1\nd\xe9j\xe0 3\n", "cp1252")
    found = load_word_frequencies(path, encoding="cp1252")
    assert found == {"d\xe9j\xe0": 0.75, "the": 0.25}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", f"word;count\n{SECRET},2\n", "line 2 of 'a.csv' has 1 cell"),
        ("a.csv", f"{SECRET}\n{SECRET}\n", "a word and a finite number >= 0, in this order"),
        ("a.csv", f"w,n,m\n{SECRET},1,2\n", "must be a word and a finite number"),
        ("a.csv", f"w,n\nthe,1\n{SECRET},many\n", "row 3 of"),
        ("a.csv", f"w,n\n{SECRET},-1\n", "row 2 of"),
        ("a.csv", f"{SECRET},1\n{SECRET},nan\n", "row 2 of"),
        ("a.csv", f"w,n\n{SECRET},inf\n", "row 2 of"),
        ("a.csv", f'w,n\n{SECRET} "x",1\n', "not well-formed"),
        ("a.csv", "w,n\n", "positive, finite sum"),
        ("a.csv", "", "empty"),
        ("a.csv", f"w,n\n{SECRET},0\n", "positive, finite sum"),
        ("a.csv", f"w,n\n{SECRET},1e308\nb,1e308\nc,1e308\n", "positive, finite sum"),
        ("a.csv", f"w,n\n{SECRET}\xe9,1\n".encode("cp1252"), "is not utf-8"),
        ("a.csv.gz", SECRET.encode(), "decompressed"),
        ("a.txt", f"the 1\n{SECRET}\n", "row 2 of"),
        ("a.txt", "", "finite sum"),
        ("a.json", f'{{"{SECRET}": 1}}', "must be a file ending in"),
    ],
)
def test_malformed_frequencies_are_refused_without_showing_them(name, content, said, tmp_path):
    refused(said, load_word_frequencies, save(tmp_path / name, content))


def test_frequencies_of_a_folder_are_refused(tmp_path):
    (tmp_path / "b.csv").mkdir()
    refused("must be a file", load_word_frequencies, tmp_path / "b.csv")
