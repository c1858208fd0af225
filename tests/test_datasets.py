import csv
import gzip
import importlib.util
import json
import sys
import types
import warnings

import numpy as np
import pytest

from sktensor_dp.datasets import load_docstrings, load_ldac, load_texts

SECRET = "unmistakable"


# ------------------------------------------------------------------ docstrings


def make_package(root, monkeypatch, files):
    monkeypatch.syspath_prepend(str(root))
    for name, source in files.items():
        path = root / "madeup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")


def test_docstrings_are_found_in_order_without_import(tmp_path, monkeypatch):
    make_package(
        tmp_path,
        monkeypatch,
        {
            "__init__.py": '"""Package."""\nraise RuntimeError("imported")\n',
            "b.py": 'def f():\n    """Same."""\n\ndef g():\n    """Same."""\n',
            "a.py": (
                '"""Module a.\n\n    Indented.\n    """\n'
                "if True:\n    try:\n        class C:\n"
                '            """Class C."""\n'
                '            def method(self):\n                """Method."""\n'
                "    except ImportError:\n        def fallback():\n"
                '            """Fallback."""\n'
            ),
            "docs.py": (
                "add_newdoc('madeup', 'thing', '''\n    Compiled thing.\n    ''')\n"
                "module.add_newdoc('madeup', 'Cls', ('attr', 'An attribute.'))\n"
            ),
            "tests/test_a.py": '"""A test suite."""\n',
            "broken.py": "def (:\n",
            "null.py": "x = '\0'\n",
            "escapes.py": 'def f():\n    """Escaped."""\n    return "\\d"\n',
        },
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        texts = load_docstrings(["madeup"], min_length=1)
    assert texts == [
        "Package.",
        "Module a.\n\nIndented.",
        "Class C.",
        "Method.",
        "Fallback.",
        "Same.",
        "Compiled thing.",
        "An attribute.",
        "Escaped.",
    ]
    assert "madeup" not in sys.modules
    assert load_docstrings(["madeup"], min_length=10) == [t for t in texts if len(t) >= 10]


def test_docstrings_of_the_default_packages():
    texts = load_docstrings()
    # Versions differ; numpy 1.26, scipy 1.12 and scikit-learn 1.6 have more than 5,000.
    assert len(texts) > 4000
    assert len(set(texts)) == len(texts)
    assert min(map(len, texts)) >= 200
    assert load_docstrings("json", min_length=100) == load_docstrings(["json"], min_length=100)


def test_single_file_module_is_a_package_too():
    assert load_docstrings(["textwrap"], min_length=20)


def test_packages_that_cannot_be_read_are_named():
    with pytest.raises(ModuleNotFoundError, match="'nosuchpackage' is not installed"):
        load_docstrings(["nosuchpackage"])
    with pytest.raises(ValueError, match=r"top-level packages, got 'scipy.linalg'"):
        load_docstrings(["scipy.linalg"])
    with pytest.raises(ValueError, match="no docstring of at least"):
        load_docstrings(["json"], min_length=10**6)


# ----------------------------------------------------------------------- texts


def save(path, content, encoding="utf-8"):
    path.write_bytes(content.encode(encoding))
    return path


def test_folder_is_read_in_order_of_paths(tmp_path):
    (tmp_path / "sub").mkdir()
    for name, text in {"b.txt": "second", "a.txt": "first", "sub/c.txt": "", "x.md": "no"}.items():
        save(tmp_path / name, text)
    assert load_texts(tmp_path) == ["first", "second", ""]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_csv_with_quoted_newlines_and_missing_cells(tmp_path, encoding, newline):
    rows = ["text,id", '"one,', 'more",1', ",2", '"say ""hi""\u2028there",3', "", "last"]
    path = save(tmp_path / "a.CSV", newline.join(rows) + newline, encoding)
    expected = [f"one,{newline}more", "", 'say "hi"\u2028there', "last"]
    assert load_texts(path, "text") == expected
    assert load_texts(path, column="id") == ["1", "2", "3", ""]


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
    with pytest.raises(ValueError, match=r"column must be given: 'a\.jsonl' has 't', 'n'"):
        load_texts(path)
    assert load_texts(save(tmp_path / "b.jsonl", '{"t": "x"}\r\n{"t": "y"}\r\n')) == ["x", "y"]


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.csv", "", None, "is empty"),
        ("a.csv", "text\n", None, "holds no document"),
        ("a.csv", f"text,id\n{SECRET},1\n", None, "column must be given: 'a.csv' has 'text', 'id'"),
        ("a.csv", f"text,id\n{SECRET},1\n", "body", "column 'body' does not exist: 'a.csv' has"),
        ("a.csv", f"text,text\n{SECRET},1\n", "text", "column 'text' occurs more than once"),
        ("a.jsonl", "", "t", "holds no document"),
        ("a.jsonl", f'{{"t": "x"}}\n{{"t": "{SECRET}', "t", "row 2 of 'a.jsonl' is not a JSON"),
        ("a.jsonl", f'["{SECRET}"]', "t", "row 1 of 'a.jsonl' is not a JSON object"),
        ("a.jsonl", f'{{"t": ["{SECRET}"]}}', "t", "should hold text, it also holds list"),
        ("a.jsonl", f'{{"t": "{SECRET}"}}', "u", "column 'u' does not exist: 'a.jsonl' has 't'"),
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
    with pytest.raises(ValueError, match=r"'a\.[a-z]+' is not UTF-8 text") as info:
        load_texts(path.parent if name.endswith(".txt") else path)
    assert_nothing_shown(info.value)


def test_missing_path_and_empty_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing is at"):
        load_texts(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match=r"holds no \.txt file"):
        load_texts(tmp_path)


def test_listed_columns_are_cut(tmp_path):
    header = ",".join(["x" * 500, *(f"c{i}" for i in range(100))])
    with pytest.raises(ValueError, match="and 71 more") as info:
        load_texts(save(tmp_path / "a.csv", header + "\n"), "t")
    assert len(str(info.value)) < 600


def test_parquet_is_read_with_pandas(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas", reason="pandas is optional")
    frame = pandas.DataFrame({"t": ["a", None, float("nan"), ""], "n": [1, 2, 3, 4]})
    monkeypatch.setattr(pandas, "read_parquet", lambda path: frame)
    path = save(tmp_path / "a.parquet", "")
    assert load_texts(path, "t") == ["a", "", "", ""]
    with pytest.raises(ValueError, match=r"column 'n' of 'a\.parquet' should hold text"):
        load_texts(path, "n")
    with pytest.raises(ValueError, match=r"'a\.parquet' has 't', 'n'"):
        load_texts(path)


def test_parquet_in_fact(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is optional")
    pytest.importorskip("pyarrow", reason="pyarrow is optional")
    path = tmp_path / "a.parquet"
    pandas.DataFrame({"t": ["a", None, "c"]}).to_parquet(path)
    assert load_texts(path) == ["a", "", "c"]
    path.write_bytes(SECRET.encode())
    with pytest.raises(ValueError, match="not a readable Parquet file"):
        load_texts(path)


def test_parquet_without_pandas_or_engine_names_the_extra(tmp_path, monkeypatch):
    path = save(tmp_path / "a.parquet", "")
    broken = types.SimpleNamespace(read_parquet=lambda path: importlib.import_module("no_engine"))
    for pandas in (None, broken):
        monkeypatch.setitem(sys.modules, "pandas", pandas)
        with pytest.raises(ImportError, match=r"sktensor-dp\[frames\]"):
            load_texts(path)


# ---------------------------------------------------------------------- counts


@pytest.mark.parametrize("suffix", [".dat", ".ldac.gz"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_ldac(tmp_path, suffix, ending):
    content = "2 4:1 0:3\n0\n1 1:10\n3 2:1 2:4 3:2".replace("\n", ending or "\n") + ending
    path = tmp_path / ("counts" + suffix)
    path.write_bytes(gzip.compress(content.encode()) if ".gz" in suffix else content.encode())
    X = load_ldac(path)
    assert X.dtype == np.int64
    assert X.has_canonical_format
    expected = [[3, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 10, 0, 0, 0], [0, 0, 5, 2, 0]]
    np.testing.assert_array_equal(X.toarray(), expected)
    assert load_ldac(path, n_features=9).shape == (4, 9)
    with pytest.raises(ValueError, match="n_features=3 is too small: words go up to 4"):
        load_ldac(path, n_features=3)


def test_ldac_of_empty_documents(tmp_path):
    assert (
        load_ldac(save(tmp_path / "a", "0\n0\n"), n_features=3).toarray().tolist() == [[0] * 3] * 2
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not in the LDA-C format"),
        ("hello\n", "not in the LDA-C format"),
        ("1 0:-1\n", "not in the LDA-C format"),
        ("1 0:1.5\n", "not in the LDA-C format"),
        ("1 0:1 2\n", "not in the LDA-C format"),
        ("1 0:1\n\n1 0:1\n", "not in the LDA-C format"),
        ("2 0:1\n1 0:1 1:1\n", "as many pairs as it states"),
        (f"1 0:{10**19}\n", "more than 18 digits"),
    ],
)
def test_ldac_malformed(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        load_ldac(save(tmp_path / "a.dat", content))


def test_ldac_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing is at"):
        load_ldac(tmp_path / "a.dat")
