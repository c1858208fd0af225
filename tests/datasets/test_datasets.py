import gzip
import sys
import warnings

import numpy as np
import pytest

from sktensor_dp.datasets import load_docstrings, load_ldac


def save(path, content, encoding="utf-8"):
    path.write_bytes(content.encode(encoding))
    return path


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


@pytest.mark.nightly
def test_docstrings_of_the_default_packages():
    texts = load_docstrings()
    # Versions differ; numpy 1.26, scipy 1.12 and scikit-learn 1.6 have more than 5,000.
    assert len(texts) > 4000
    assert len(set(texts)) == len(texts)
    assert min(map(len, texts)) >= 200
    assert load_docstrings("json", min_length=100) == load_docstrings(["json"], min_length=100)


def test_packages_that_cannot_be_read_are_named():
    assert load_docstrings(["textwrap"], min_length=20)  # a single file is a package too
    with pytest.raises(ModuleNotFoundError, match="'nosuchpackage' is not installed"):
        load_docstrings(["nosuchpackage"])
    with pytest.raises(ValueError, match=r"top-level packages, got 'scipy.linalg'"):
        load_docstrings(["scipy.linalg"])
    with pytest.raises(ValueError, match="no docstring of at least"):
        load_docstrings(["json"], min_length=10**6)


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
    with pytest.raises(ValueError, match="n_features=3 is too small"):
        load_ldac(path, n_features=3)


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
        (f"1 0:{10**19}\n", "at most 18 digits"),
    ],
)
def test_ldac_malformed(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        load_ldac(save(tmp_path / "a.dat", content))


def test_ldac_without_words_or_file(tmp_path):
    found = load_ldac(save(tmp_path / "a", "0\n0\n"), n_features=3)
    np.testing.assert_array_equal(found.toarray(), np.zeros((2, 3)))
    with pytest.raises(FileNotFoundError, match="nothing is at"):
        load_ldac(tmp_path / "a.dat")
