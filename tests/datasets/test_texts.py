"""Texts are read strictly: each row is a document, and no message shows one."""

import csv
import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sktensor_dp.datasets import load_texts, load_texts_by_person

SECRET = "unmistakable"


def save(path, content, encoding="utf-8"):
    path.write_bytes(content.encode(encoding))
    return path


def test_folder_is_read_in_order_of_paths(tmp_path):
    (tmp_path / "sub").mkdir()
    for name, text in {"b.txt": "second", "a.txt": "first", "sub/c.txt": "", "x.md": "no"}.items():
        save(tmp_path / name, text)
    with pytest.warns(UserWarning, match=r"1 file is skipped that do not end in \.txt"):
        assert load_texts(tmp_path) == ["first", "second", ""]
    (tmp_path / "x.md").rename(tmp_path / "x.TXT")
    assert load_texts(tmp_path) == ["first", "second", "", "no"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_csv_with_quoted_newlines_and_missing_cells(tmp_path, encoding, newline):
    rows = ["text,id", '"one,', 'more",1', ",2", '"say ""hi""\u2028there",3', ",", "last,"]
    path = save(tmp_path / "a.CSV", newline.join(rows) + newline, encoding)
    expected = [f"one,{newline}more", "", 'say "hi"\u2028there', "", "last"]
    assert load_texts(path, "text") == expected
    assert load_texts(path, column="id") == ["1", "2", "3", "", ""]


def test_only_column_needs_no_name_and_blank_rows_count(tmp_path):
    assert load_texts(save(tmp_path / "a.csv", "anything\nx\n\ny\n")) == ["x", "", "y"]
    assert load_texts(save(tmp_path / "a.tsv", "t\tn\nx, y\t1\n"), "t") == ["x, y"]


def test_number_of_documents_does_not_depend_on_texts(tmp_path):
    for texts in (["a", "b", "c"], ["", "b", ""], ["a\n\nb", '"', ","]):
        path = tmp_path / "a.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["text"], *([text] for text in texts)])
        assert load_texts(path) == texts


def test_big_fields_are_read_and_the_limit_is_restored(tmp_path):
    limit = csv.field_size_limit()
    big = "word " * 100_000
    assert load_texts(save(tmp_path / "a.csv", f"t\n{big}\n")) == [big]
    assert csv.field_size_limit() == limit


def test_jsonl(tmp_path):
    rows = [{"t": "a\u2028b", "n": 1}, {"n": 2}, {"t": None}, {"t": ""}]
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n\n"
    path = save(tmp_path / "a.jsonl", lines, "utf-8-sig")
    assert load_texts(path, "t") == ["a\u2028b", "", "", ""]
    with pytest.raises(ValueError, match=r"column must be given: 'a\.jsonl' has 2 keys"):
        load_texts(path)
    assert load_texts(save(tmp_path / "b.jsonl", '{"t": "x"}\r\n{"t": "y"}\r\n')) == ["x", "y"]


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.csv", "", None, "is empty"),
        ("a.csv", "text\n", None, "holds no row"),
        ("a.csv", f"text,id\n{SECRET},1\n", None, "column must be given: 'a.csv' has 2 columns"),
        ("a.csv", f"text,id\n{SECRET},1\n", "body", "column 'body' does not exist: 'a.csv' has"),
        ("a.csv", f"text,text\n{SECRET},1\n", "text", "column 'text' occurs more than once"),
        ("a.jsonl", "", "t", "holds no row"),
        ("a.jsonl", f'{{"t": "x"}}\n\n{{"t": "{SECRET}', "t", "line 3 of 'a.jsonl' is not a JSON"),
        ("a.jsonl", f'["{SECRET}"]', "t", "line 1 of 'a.jsonl' is not a JSON object"),
        ("a.jsonl", f'{{"t": ["{SECRET}"]}}', "t", "should hold text, it also holds list"),
        ("a.jsonl", f'{{"t": "{SECRET}"}}', "u", "column 'u' does not exist: 'a.jsonl' has 1 key;"),
        ("a.txt", SECRET, None, "suffix of 'a.txt' is not supported; give a folder"),
        ("a.xlsx", SECRET, None, "suffix of 'a.xlsx' is not supported"),
    ],
)
def test_what_is_wrong_is_said_without_the_data(tmp_path, name, content, column, message):
    with pytest.raises(ValueError, match=message) as info:
        load_texts(save(tmp_path / name, content), column)
    assert_nothing_shown(info.value)


def assert_nothing_shown(error):
    """No exception of the chain carries data: logs may keep more than the message."""
    while error is not None:
        assert SECRET not in repr(vars(error)) + repr(error.args) + str(error)
        assert not hasattr(error, "doc")
        assert not hasattr(error, "object")
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "folder/a.txt"])
def test_other_encodings_are_refused(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    save(path, f"{SECRET} é", "latin-1")
    with pytest.raises(ValueError, match=r"'a\.[a-z]+' is not utf-8 text at line 1") as info:
        load_texts(path.parent if name.endswith(".txt") else path)
    assert_nothing_shown(info.value)


def test_missing_path_and_empty_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing is at"):
        load_texts(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match=r"holds no \.txt file"):
        load_texts(tmp_path)


def test_a_file_without_a_header_shows_no_data(tmp_path):
    """Its first row stands where names of columns would."""
    csv_rows = f"1,{SECRET} one\n2,{SECRET} two\n"
    keys = json.dumps({SECRET: "x", SECRET + "2": "y"})
    for path in (save(tmp_path / "a.csv", csv_rows), save(tmp_path / "a.jsonl", keys)):
        for column in (None, "text"):
            with pytest.raises(ValueError, match=r"has 2 (columns|keys); give the name") as info:
                load_texts(path, column)
            assert_nothing_shown(info.value)


def stray_rows(delimiter, n=200):
    """Rows of which two begin with a quote, as people write: inches, citations."""
    rows = [f"text{delimiter}id", *(f"words of {i}{delimiter}{i}" for i in range(n))]
    rows[20] = f'"{SECRET}{delimiter}19'
    return rows


def test_a_stray_quote_does_not_swallow_documents(tmp_path):
    rows = stray_rows("\t")
    rows[120] = '"another\t119'
    texts = load_texts(save(tmp_path / "a.tsv", "\n".join(rows)), "text")
    assert len(texts) == 200
    assert texts[19] == f'"{SECRET}'
    rows = stray_rows(",")
    for other in ('"another,119', '5" of rain,119', "words,119"):
        path = save(tmp_path / "a.csv", "\n".join([*rows[:120], other, *rows[121:]]))
        with pytest.raises(ValueError, match=r"quotes of the row that begins at line 21 ") as info:
            load_texts(path, "text")
        assert_nothing_shown(info.value)
        assert len(load_texts(path, "text", quoting="none")) == 200


@pytest.mark.parametrize("row", ['say "hi",1', ' "hi",1', '"hi"!,1', '"hi" ,1', 'a"b,1', '1,"'])
def test_quotes_that_no_writer_writes_are_refused(tmp_path, row):
    path = save(tmp_path / "a.csv", f'text,id\n"good, ""bad""\r\n",0\n{row}\nlast,2\n')
    with pytest.raises(ValueError, match=r"begins at line 4 .*pass quoting='none'"):
        load_texts(path, "text")


@pytest.mark.parametrize(
    ("options", "row", "advice"),
    [
        ({}, "a, b,1", "have to be quoted"),
        ({}, "alone", "have to be quoted"),
        ({"quoting": "none"}, '"a, b",1', "pass quoting='standard'"),
    ],
)
def test_rows_of_another_length_are_refused(tmp_path, options, row, advice):
    """A cell with a line break or delimiter in it would be cut, or be two documents."""
    path = save(tmp_path / "a.csv", f"text,id\nx,0\n{row}\ny,2\n")
    with pytest.raises(ValueError, match=r"at line 3 of 'a.csv' has \d cells?, .* has 2") as info:
        load_texts(path, "text", **options)
    assert advice in str(info.value)


def test_blank_lines_are_no_rows_beside_other_columns(tmp_path):
    path = save(tmp_path / "a.csv", "text,id\n\nx,1\n\n\ny,2\n\n\n")
    assert load_texts(path, "text") == ["x", "y"]
    path = save(tmp_path / "a.jsonl", '{"t": "x"}\n\n{"t": "y"}\n')
    assert load_texts(path) == ["x", "y"]


@pytest.mark.parametrize(("mark", "named"), [(";", "semicolons"), ("\t", "tabs")])
def test_a_semicolon_file_is_recognised_and_said_so(tmp_path, mark, named):
    path = save(tmp_path / "a.csv", 'text;id\n"a;\t b, c";1\nd, e;2\n'.replace(";", mark))
    with pytest.warns(UserWarning, match=f"read as separated by {named}"):
        texts = load_texts(path, "text")
    assert texts == load_texts(path, "text", delimiter=mark)
    assert texts[1] == "d, e"


def test_delimiter_in_quotes_of_a_header_does_not_count(tmp_path):
    assert load_texts(save(tmp_path / "a.csv", '"a;b;c",t\nx,y\n'), "t") == ["y"]


@pytest.mark.parametrize("suffix", [".csv.gz", ".CSV.GZ", ".tsv.gz", ".Jsonl.gz"])
def test_packed_files_are_read(tmp_path, suffix):
    content = '{"text": "x"}\n' if "json" in suffix.lower() else "text\nx\n"
    path = tmp_path / f"a.b{suffix}"
    path.write_bytes(gzip.compress(content.encode()))
    assert load_texts(path) == ["x"]
    for damaged in (gzip.compress(SECRET.encode())[:-9], SECRET.encode()):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="cannot be decompressed") as info:
            load_texts(path)
        assert_nothing_shown(info.value)


def test_encodings_can_be_named(tmp_path):
    path = save(tmp_path / "a.csv", "text,id\nx,1\nfünf €,2\n", "cp1252")
    with pytest.raises(ValueError, match="not utf-8 text at line 3; name its encoding"):
        load_texts(path, "text")
    assert load_texts(path, "text", encoding="cp1252") == ["x", "fünf €"]
    save(tmp_path / "a.txt", "fünf", "utf-16")
    path.unlink()
    assert load_texts(tmp_path, encoding="utf-16") == ["fünf"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "klingon"}, "encoding 'klingon' is not one that Python knows"),
        ({"encoding": "base64"}, "encoding 'base64' is not one"),
        ({"delimiter": ",,"}, "delimiter must be one character"),
        ({"delimiter": '"'}, "delimiter must be one character"),
        ({"quoting": "all"}, "quoting must be 'auto', 'standard' or 'none'"),
    ],
)
def test_options_out_of_range_are_named(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        load_texts(save(tmp_path / "a.csv", "text\nx\n"), **options)


@pytest.mark.parametrize("option", ["delimiter", "quoting"])
def test_options_of_other_kinds_of_file_are_refused(tmp_path, option):
    value = {"delimiter": ";", "quoting": "none"}[option]
    path = save(tmp_path / "a.jsonl", '{"t": "x"}')
    for where in (path, tmp_path):
        with pytest.raises(ValueError, match=f"{option}: only a .csv or .tsv file"):
            load_texts(where, **{option: value})


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


def test_parquet_is_read_with_pyarrow(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is optional")
    pytest.importorskip("pyarrow", reason="pyarrow is optional")
    path = tmp_path / "a.parquet"
    pandas.DataFrame({"t": ["a", None, ""], "n": [1, 2, 3]}).to_parquet(path)
    assert load_texts(path, "t") == ["a", "", ""]
    with pytest.raises(ValueError, match=r"column 'n' of 'a\.parquet' should hold text"):
        load_texts(path, "n")
    with pytest.raises(ValueError, match=r"'a\.parquet' has 2 columns"):
        load_texts(path)
    pandas.DataFrame({"t": ["a", None, "c"]}).to_parquet(path)
    assert load_texts(path) == ["a", "", "c"]
    path.write_bytes(SECRET.encode())
    with pytest.raises(ValueError, match=r"Opening 'a\.parquet' failed"):
        load_texts(path)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("sktensor_dp.datasets.texts.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        load_texts(save(tmp_path / "a.parquet", ""))


POSTS, PERSONS = ["one", "", "three"], ["ann", "bob", "ann"]


def write(tmp_path, kind, persons=PERSONS):
    rows = list(zip(persons, POSTS, strict=True))
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
    assert load_texts_by_person(path, "post", "who") == (POSTS, PERSONS)


@pytest.mark.parametrize("kind", [".csv", ".jsonl", ".parquet"])
def test_persons_may_be_numbers(tmp_path, kind):
    path = write(tmp_path, kind, [7, 8, 7])
    assert load_texts_by_person(path, "post", "who") == (POSTS, ["7", "8", "7"])


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
