"""The scripts of `papers/`, as modules."""

import importlib
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "papers"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module
