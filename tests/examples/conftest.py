"""The demo with steps that take no time, and texts for it."""

import pytest
from demo_fakes import load_demo, use_fakes, write_texts


@pytest.fixture
def demo(monkeypatch):
    return load_demo(monkeypatch)


@pytest.fixture
def fakes(monkeypatch):
    return use_fakes(monkeypatch)


@pytest.fixture
def texts(tmp_path):
    return write_texts(tmp_path)
