"""Public words and how often they are used, from files of two columns."""

import gzip

import pytest

from sktensor_dp.datasets import load_word_frequencies

SECRET = "unmistakable"


def written(folder, name, content):
    path = folder / name
    data = content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "word,count\nb c,1\nthe,6\nThe,1\n"),
        ("a.csv", 'b c,1\nthe,"6"\nThe,1\n'),
        ("a.CSV", "word,count\r\nthe,6.0\r\nb c,1e0\r\nthe,1\r\n"),
        ("a.tsv", "b c\t1\nthe\t6\nthe\t1\n"),
        ("a.tsv.gz", "w\tn\nb c\t1\nthe\t7\nzero\t0\n"),
        ("a.txt", "the 6\nb c   1\n\nTHE\t1\n"),
    ],
)
def test_words_and_numbers_are_read_from_any_file_of_two_columns(name, content, tmp_path):
    found = load_word_frequencies(written(tmp_path, name, content))
    assert found == {"the": 0.875, "b c": 0.125}
    assert list(found) == ["the", "b c"]


def test_the_case_of_words_may_be_kept(tmp_path):
    path = written(tmp_path, "a.txt", "The 1\nthe 3\n")
    assert load_word_frequencies(path, lowercase=False) == {"the": 0.75, "The": 0.25}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", f"word;count\n{SECRET};2\n", "pass delimiter=';'"),
        ("a.csv", f"{SECRET}\n{SECRET}\n", "must be a word and a finite number"),
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
        ("a.txt", f"the 1\n{SECRET}\n", "row 2 of"),
        ("a.txt", "", "finite sum"),
        ("a.json", f'{{"{SECRET}": 1}}', "must be a file ending in"),
        ("a.xml", f"<{SECRET}/>", "must be a file ending in"),
    ],
)
def test_malformed_files_are_refused_without_showing_them(name, content, said, tmp_path):
    with pytest.raises(ValueError, match=said) as caught:
        load_word_frequencies(written(tmp_path, name, content))
    error = caught.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__ or error.__context__


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing is at"):
        load_word_frequencies(tmp_path / "a.csv")
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(ValueError, match="must be a file"):
        load_word_frequencies(tmp_path / "b.csv")
    path = tmp_path / "c.csv.gz"
    path.write_bytes(b"no gzip")
    with pytest.raises(ValueError, match="decompressed"):
        load_word_frequencies(path)
    path = tmp_path / "d.csv"
    path.write_bytes("w,n\nd\xe9j\xe0,1\n".encode("cp1252"))
    with pytest.raises(ValueError, match="is not utf-8"):
        load_word_frequencies(path)
    assert load_word_frequencies(path, encoding="cp1252") == {"d\xe9j\xe0": 1.0}
