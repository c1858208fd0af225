"""The page of topics as a file: what it states, that it loads nothing, that text stays text."""

import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import WORDS, model
from browsing import report as made_report

from sktensor_dp.privacy.composition import Composition, ReleaseRecord
from sktensor_dp.privacy.odds import odds_after, odds_in_hundred
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.topic_page import topics_of, write_topic_page

VOID = {"meta", "img", "br", "link", "input", "hr"}
HOSTILE = '<script>alert("1")</script>&"\'\x1b[31m</td>{style}'


class Page(HTMLParser):
    """Collects tags, attributes and text, and checks that tags are balanced."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source, self.tags, self.open = source, [], []
        self.attributes: list[tuple] = []
        self.text: list[str] = []
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "title", "script"):
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def report(**changes: Any) -> PrivacyReport:
    return replace(made_report(), **changes)


def write(tmp_path: Path, names: Any = WORDS, **options: Any) -> Page:
    path = write_topic_page(tmp_path / "new" / "page.html", model(), names, **options)
    return Page(path.read_text(encoding="utf-8"))


def test_page_states_guarantee_topics_and_every_release(tmp_path: Path) -> None:
    words = write(tmp_path, report=report(epsilon=2.5)).words
    assert words.startswith("Private topics 4 topics, learned from 12,345 documents.")
    assert "(ε = 2.5, δ = 1e-6)-differential privacy for replacing one document" in words
    assert f"= {math.exp(2.5):.1f} times" in words
    found = topics_of(model(), WORDS)
    assert [topic.number for topic in found] == [1, 2, 3, 4]
    assert sorted((topic.weight for topic in found), reverse=True) == [t.weight for t in found]
    assert [bool(topic.distinctive) for topic in found] == [not t.hidden for t in found]
    places = [words.index(" ".join(topic.distinctive)) for topic in found if topic.distinctive]
    assert places == sorted(places)
    assert [bool(topic.words) for topic in found] == [not t.hidden for t in found]
    for topic in found:
        assert f"{100 * topic.weight:.1f} %" in words
        assert " ".join(topic.words) in words
    assert words.count("Hidden by noise: no word") == sum(t.hidden for t in found) == 1
    for cell in ("moments", "means of pairs", "0.0123", "0.456", "0.02697", "gauss", "a note"):
        assert cell in words
    assert "ε = 2.5 at δ = 1e-6" in words
    alone = "counts topics and their shares alone"
    assert alone in words
    assert alone in write(tmp_path).words
    row = ReleaseRecord("words", "counts of words", 1.0, 1.0, 1.0, 0.0, 0.0, 1, "gauss")
    earlier = report(composition=Composition("releases", (row,)))
    assert alone not in write(tmp_path, report=earlier.followed_by(report())).words


def test_page_is_self_contained(tmp_path: Path) -> None:
    page = write(tmp_path)
    assert not {"link", "iframe", "object", "embed", "form", "img"} & set(page.tags)
    links = [value for _, name, value in page.attributes if name in ("src", "href", "srcset")]
    assert all(value.startswith("#topic=") for value in links)
    for outside in ("http://", "https://", "url(", "@import"):
        assert outside not in page.source
    assert "default-src 'none'" in page.source


def test_page_is_accessible_in_structure(tmp_path: Path) -> None:
    page = write(tmp_path)
    assert ("html", "lang", "en") in page.attributes
    assert page.tags.count("h1") == 1
    assert page.tags.count("table") == page.tags.count("caption") == 3
    headers = page.tags.count("th")
    assert headers == sum(tag == "th" and name == "scope" for tag, name, _ in page.attributes)


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    row = ReleaseRecord(HOSTILE, HOSTILE, 1.0, 1.0, 1.0, 0.0, 0.0, 1, HOSTILE)
    page = write(
        tmp_path, [HOSTILE + word for word in WORDS], warnings=[HOSTILE],
        report=report(
            composition=Composition("releases", (row,)), notes=(HOSTILE,), unit=HOSTILE
        ),
    )  # fmt: skip
    # Its data and its program, and no other.
    assert page.tags.count("script") == page.source.count("<script") == 2
    assert "\x1b[31m</td>" not in page.source
    assert 'alert("1")' in page.words


@pytest.mark.parametrize("changes", [{"epsilon": math.inf}, {"seeded": True}])
def test_page_without_privacy_says_so_and_claims_nothing(tmp_path: Path, changes: dict) -> None:
    words = write(tmp_path, report=report(**changes)).words
    assert "Not private." in words
    for claim in ("-differential privacy for", "What is protected"):
        assert claim not in words


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 50.0, 1e4])
def test_any_epsilon_can_be_written(tmp_path: Path, epsilon: float) -> None:
    assert f"ε = {epsilon:.4g}" in write(tmp_path, report=report(epsilon=epsilon)).words


def test_persons_and_units_that_come_and_go_are_told_as_such(tmp_path: Path) -> None:
    words = write(tmp_path, report=report(unit="person")).words
    assert "words kept, a person counting by the mean of their texts" in words
    assert "It is no share of persons, and has no interval" in words
    assert "learned from 12,345 persons" in words
    assert "The number of persons and the settings of the run: they are public." in words
    assert "behind several" not in words
    words = write(tmp_path, report=report(neighbours="add_remove")).words
    assert "The settings of the run: they are public." in words
    assert "A person behind several documents" in words
    assert "-differential privacy for adding or removing one document" in words
    assert "Every single document: being in the data or not" in words
    assert "suspects that one document is among them" in words
    assert "replac" not in words.lower()


def test_names_that_do_not_fit_are_refused_and_numbers_stand_for_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="feature_names"):
        write(tmp_path, ["one"])
    assert not (tmp_path / "page.html").exists()
    first = topics_of(model(), [str(n) for n in range(len(WORDS))])[0]
    assert " ".join(first.words) in write(tmp_path, None).words


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 2.0, 4.0, 6.5])
def test_odds_are_rounded_outwards(epsilon: float) -> None:
    for before, (_, *said) in zip((0.01, 0.1, 0.5), odds_in_hundred(epsilon), strict=True):
        low, high = odds_after(before, epsilon)
        shown = [float(end.removeprefix("almost ")) for end in said]
        assert shown[0] <= 100 * low
        assert shown[1] >= 100 * high
        assert np.allclose(shown, [100 * low, 100 * high], atol=1)
