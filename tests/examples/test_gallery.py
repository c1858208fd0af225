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

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "examples" / "gallery"
PAGES = sorted(GALLERY.glob("*/*.py"))
# Together a few seconds: no fit, or one of a few words.
CHEAPEST = ("plot_epsilon_as_odds", "plot_save_and_load", "plot_statement")
SECTIONS = {"texts", "ratings", "measurements", "privacy"}


@pytest.fixture
def shown(monkeypatch):
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


def faults_of(page):
    """What a page lacks: a question, a picture, its cost, what to read, links that lead there."""
    source, text = page.read_text(encoding="utf-8"), text_of(page)
    title, line, blank, *answer = ast.get_docstring(ast.parse(source)).splitlines()
    further = text[text.find("Read next\n----") :]
    wrong = {
        # The gallery lists files of this name alone.
        "the name": not page.name.startswith("plot_"),
        "a question over a line": not ("?" in title and set(line) == {"="} and not blank),
        "the length of the line": len(line) < len(title),
        "an answer": len(" ".join(answer)) <= 80,
        "a picture": "plt.show()" not in source,
        "its cost": text.count("What it costs\n----") != 1 or "What it costs\n" in further,
        "what to read": text.count("Read next\n----") != 1 or ":doc:`/" not in further,
        # A term is explained on every page that a search engine may lead to.
        "epsilon": not ("**epsilon**" in text.lower() or "Epsilon is a limit on odds" in text),
        # No network, and noise that nobody can draw again.
        "a network or seeds": "fetch_" in source or "unsafe_seeded_noise" in source,
    }
    for target in re.findall(r":doc:`/([^`]+)`", text):
        places = [f"docs/{target}.md", f"docs/{target}.rst", f"examples/{target}.py"]
        wrong[target] = not any((ROOT / place).exists() for place in places)
    for target in re.findall(r":(?:class|func):`~?([\w.]+)`", text):
        module, _, name = target.rpartition(".")
        wrong[target] = not hasattr(importlib.import_module(module), name)
    return [fault for fault, is_there in wrong.items() if is_there]


def test_pages_ask_a_question_and_end_in_a_picture_its_cost_and_what_to_read():
    assert {page.stem: faults_of(page) for page in PAGES if faults_of(page)} == {}


@pytest.mark.parametrize("name", CHEAPEST)
def test_cheap_page_runs_and_draws(name, shown, capsys):
    (page,) = GALLERY.glob(f"*/{name}.py")
    runpy.run_path(str(page), run_name="__main__")
    assert len(shown) == 1
    (figure,) = shown
    figure.canvas.draw()
    drawn = [axis for axis in figure.axes if axis.has_data()]
    labels = [axis.get_xlabel() for axis in drawn] + [figure.get_supxlabel()]
    # Units are named: percent, people, stars.
    assert any("(" in label for label in labels)
    assert len(capsys.readouterr().out.splitlines()) >= 3
