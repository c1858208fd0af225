"""Docstrings of packages: found without import, in order, once each."""

import sys
import warnings

import pytest

from sktensor_dp.datasets import load_docstrings

FILES = {
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
}
FOUND = [
    *("Package.", "Module a.\n\nIndented.", "Class C.", "Method.", "Fallback.", "Same."),
    *("Compiled thing.", "An attribute.", "Escaped."),
]


def test_docstrings_are_found_in_order_without_import(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, source in FILES.items():
        path = tmp_path / "madeup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_docstrings(["madeup"], min_length=1) == FOUND
    assert "madeup" not in sys.modules
    assert load_docstrings(["madeup"], min_length=10) == [t for t in FOUND if len(t) >= 10]


@pytest.mark.nightly
def test_docstrings_of_the_default_packages():
    texts = load_docstrings()
    # How many there are differs from version to version.
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
