"""Pages of the gallery have the shape that the site promises; the cheapest ones run here.

The site's build runs all of them, with warnings of links as errors.
"""

import ast
import importlib
import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator

import sktensor_dp

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "examples" / "gallery"
PAGES = sorted(GALLERY.glob("*/*.py"))
# Together a few seconds: no fit, or one of a few words.
CHEAPEST = ("plot_epsilon_as_odds", "plot_save_and_load", "plot_statement")
SECTIONS = {"texts", "ratings", "measurements", "privacy"}

of_every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@pytest.fixture
def shown(monkeypatch):
    """Figures in the order in which they are shown; none stays open."""
    figures: list[Figure] = []
    monkeypatch.setattr(plt, "show", lambda: figures.append(plt.gcf()))
    with plt.rc_context():
        yield figures
    plt.close("all")


def text_of(page):
    """What a reader reads: the docstring, and comments that follow a cell's mark."""
    source = page.read_text(encoding="utf-8")
    cells = re.findall(r"^# %%\n((?:#.*\n)*)", source, flags=re.MULTILINE)
    prose = "".join(re.sub(r"^# ?", "", cell, flags=re.MULTILINE) for cell in cells)
    return f"{ast.get_docstring(ast.parse(source))}\n{prose}"


def test_there_are_enough_pages_in_sections_with_a_header():
    assert len(PAGES) >= 15
    assert {page.parent.name for page in PAGES} == SECTIONS
    for folder in [GALLERY, *(GALLERY / name for name in SECTIONS)]:
        title, line = (folder / "GALLERY_HEADER.rst").read_text().splitlines()[:2]
        assert len(line) == len(title) > 0


@of_every_page
def test_page_asks_a_question_and_ends_in_a_picture_its_cost_and_what_to_read(page):
    # The gallery lists files of this name alone.
    assert page.name.startswith("plot_")
    source, text = page.read_text(), text_of(page)
    title, line, blank, *answer = ast.get_docstring(ast.parse(source)).splitlines()
    assert "?" in title
    assert re.fullmatch("=+", line)
    assert len(line) >= len(title)
    assert blank == ""
    assert len(" ".join(answer)) > 80
    assert "plt.show()" in source
    assert text.count("What it costs\n----") == text.count("Read next\n----") == 1
    assert text.index("What it costs\n") < text.index("Read next\n")
    assert ":doc:`/" in text[text.index("Read next\n") :]
    # A term is explained on every page that a search engine may lead to.
    assert "**epsilon**" in text.lower() or "Epsilon is a limit on odds" in text
    # No network, and noise that nobody can draw again.
    assert "fetch_" not in source
    assert "unsafe_seeded_noise" not in source


@of_every_page
def test_links_of_a_page_lead_somewhere(page):
    text = text_of(page)
    for target in re.findall(r":doc:`/([^`]+)`", text):
        places = [ROOT / "docs" / f"{target}{kind}" for kind in (".md", ".rst")]
        places.append(ROOT / "examples" / f"{target}.py")
        assert any(place.exists() for place in places), target
    for target in re.findall(r":(?:class|func):`~?([\w.]+)`", text):
        module, _, name = target.rpartition(".")
        assert hasattr(importlib.import_module(module), name), target


def test_every_estimator_has_a_page():
    sources = "".join(page.read_text() for page in PAGES)
    used = {
        alias.name
        for node in ast.walk(ast.parse(sources))
        if isinstance(node, ast.ImportFrom) and node.module == "sktensor_dp"
        for alias in node.names
    }
    public = [getattr(sktensor_dp, name) for name in sktensor_dp.__all__]
    estimators = [
        found for found in public if isinstance(found, type) and issubclass(found, BaseEstimator)
    ]
    assert len(estimators) >= 6
    assert {estimator.__name__ for estimator in estimators} <= used


@pytest.mark.parametrize("name", CHEAPEST)
def test_cheap_page_runs_and_draws(name, shown, capsys):
    (page,) = GALLERY.glob(f"*/{name}.py")
    runpy.run_path(str(page), run_name="__main__")
    assert len(shown) == 1
    (figure,) = shown
    figure.canvas.draw()
    drawn = [axis for axis in figure.axes if axis.has_data()]
    assert drawn
    labels = [axis.get_xlabel() for axis in drawn] + [figure.get_supxlabel()]
    # Units are named: percent, people, stars.
    assert any("(" in label for label in labels)
    assert len(capsys.readouterr().out.splitlines()) >= 3
