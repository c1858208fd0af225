import math
from html.parser import HTMLParser

import pytest

from sktensor_dp.privacy.report import PrivacyReport, ReleaseRecord
from sktensor_dp.topic_page import Topic, write_topic_page

VOID = {"meta", "img", "br", "link", "input", "hr"}
PNG = b"\x89PNG\r\n\x1a\nnot really an image"


class Page(HTMLParser):
    """Collects tags, attributes and text, and checks that tags are balanced."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.attributes, self.open, self.text = [], [], [], []
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "title"):
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def report(**changes):
    row = ReleaseRecord("moments", "means of pairs", 0.0123, 0.456, 0.02697, 0.0, 0.0, 3, "gauss")
    fields = {
        "epsilon": 2.0,
        "delta": 1e-6,
        "unit": "document",
        "neighbours": "replace_one",
        "n_units": 12345,
        "seeded": False,
        "rows": (row,),
        "notes": ("a note",),
    }
    return PrivacyReport(**(fields | changes))


def write(tmp_path, **changes):
    arguments = {
        "topics": [Topic(2, 0.75, ("ship", "sail")), Topic(1, 0.25, ("tax", "law"))],
        "reports": {"counts": report(), "topics": report()},
        "total": (2.5, 1e-6),
        "figure_png": PNG,
        "facts": {"Topics": "2"},
        "snippet": "print(1 < 2)",
    }
    path = write_topic_page(tmp_path / "page.html", **(arguments | changes))
    return Page(path.read_text(encoding="utf-8"))


def test_page_states_guarantee_topics_and_every_release(tmp_path):
    words = write(tmp_path).words
    assert "(ε = 2.5, δ = 1e-06)-differential privacy for replacing one document" in words
    assert "12,345 documents" in words
    assert f"= {math.exp(2.5):.1f} times" in words
    assert "ship sail" in words
    assert "75.0 %" in words
    assert words.index("ship") < words.index("tax")
    for cell in ("moments", "means of pairs", "0.0123", "0.456", "0.02697", "gauss", "a note"):
        assert cell in words
    assert words.count("means of pairs") == 2  # one row per step
    assert "ε = 2.5 at δ = 1e-06" in words
    assert "print(1 < 2)" in words


def test_page_is_self_contained(tmp_path):
    page = write(tmp_path)
    assert not {"script", "link", "iframe", "object", "embed", "form", "a"} & set(page.tags)
    sources = [value for _, name, value in page.attributes if name in ("src", "href", "srcset")]
    assert len(sources) == 1
    assert sources[0].startswith("data:image/png;base64,")
    source = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "http://" not in source
    assert "https://" not in source
    assert "url(" not in source
    assert "@import" not in source
    assert "default-src 'none'" in source


def test_page_is_accessible_in_structure(tmp_path):
    page = write(tmp_path)
    assert ("html", "lang", "en") in page.attributes
    assert page.tags.count("h1") == 1
    assert page.tags.count("table") == page.tags.count("caption") == 3
    assert all(value for tag, name, value in page.attributes if (tag, name) == ("img", "alt"))
    headers = page.tags.count("th")
    assert headers == sum(tag == "th" and name == "scope" for tag, name, _ in page.attributes)


HOSTILE = '<script>alert("1")</script>&"\'\x1b[31m</td>{style}'


def test_hostile_text_stays_text(tmp_path):
    row = ReleaseRecord(HOSTILE, HOSTILE, 1.0, 1.0, 1.0, 0.0, 0.0, 1, HOSTILE)
    page = write(
        tmp_path,
        title=HOSTILE,
        topics=[Topic(1, 1.0, (HOSTILE, HOSTILE))],
        reports={HOSTILE: report(rows=(row,), notes=(HOSTILE,), unit=HOSTILE)},
        facts={HOSTILE: HOSTILE},
        snippet=HOSTILE,
    )
    assert "script" not in page.tags
    source = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script" not in source
    assert "\x1b[31m</td>" not in source
    assert 'alert("1")' in page.words


@pytest.mark.parametrize(
    "changes",
    [
        {"total": (math.inf, 1e-6)},
        {"reports": {"counts": report(), "topics": report(seeded=True)}},
    ],
)
def test_page_without_privacy_says_so_and_claims_nothing(tmp_path, changes):
    words = write(tmp_path, **changes).words
    assert "Not private." in words
    assert "-differential privacy for" not in words
    assert "What is protected" not in words
    assert "is protected as stated" not in words


def test_optional_parts_may_be_left_out(tmp_path):
    page = write(tmp_path, figure_png=None, facts=None, snippet=None)
    assert "img" not in page.tags
    assert "pre" not in page.tags
    assert "dl" not in page.tags


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 50.0, 1e4])
def test_any_epsilon_can_be_written(tmp_path, epsilon):
    assert f"ε = {epsilon:.4g}" in write(tmp_path, total=(epsilon, 1e-9)).words


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_weights_at_the_ends(tmp_path, weight):
    assert f"{100 * weight:.1f} %" in write(tmp_path, topics=[Topic(1, weight, ("a",))]).words


def test_a_topic_without_words_is_shown(tmp_path):
    assert "100.0 %" in write(tmp_path, topics=[Topic(1, 1.0, ())]).words


@pytest.mark.parametrize(("name", "empty"), [("topics", []), ("reports", {})])
def test_empty_arguments_are_named(tmp_path, name, empty):
    with pytest.raises(ValueError, match=name):
        write(tmp_path, **{name: empty})
    assert not (tmp_path / "page.html").exists()


def test_groups_and_units_that_come_and_go_are_told_as_such(tmp_path):
    of_groups = report(unit="group of documents")
    words = write(tmp_path, reports={"counts": of_groups, "topics": of_groups}).words
    assert "from 12,345 groups of documents" in words
    assert "documentss" not in words
    assert (
        "The number of groups of documents and the settings of the run: they are public." in words
    )
    counted = report(neighbours="add_remove")
    words = write(tmp_path, reports={"counts": counted, "topics": counted}).words
    assert "and the settings of the run: they are public" not in words
    assert "-differential privacy for adding or removing one document" in words
    assert "whether it is among them or not" in words
    assert "suspects that one document is among them" in " ".join(words.split())
    assert "replac" not in words.lower()
