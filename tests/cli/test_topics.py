"""``sktensor-dp topics``: what a run of it says and writes, and what it does not."""

import math
import re
import sys
import unicodedata
import warnings
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from commands import N_PERSONS, N_TEXTS, SECRET, SMALL, stated, table

import sktensor_dp
from sktensor_dp import BudgetAccountant, PrivateCountVectorizer, PrivateSpectralLDA
from sktensor_dp.cli import topic_tables, topics
from sktensor_dp.cli.arguments import parse
from sktensor_dp.cli.document_shares import DOCUMENT_SHARES
from sktensor_dp.cli.folder import LEDGER
from sktensor_dp.cli.officer_page import PAGES
from sktensor_dp.cli.public_lists import ListedGroups, public_values, stop_words
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.spectral_lda.share_forecast import FEW_TEXTS, UNEVEN_TEXTS, FoundTopics, TopicError
from sktensor_dp.spectral_lda.share_forecast_table import NOISE_FACTORS, ShareForecastTable
from sktensor_dp.spectral_lda.share_tables import OF_KEPT_WORDS
from sktensor_dp.spectral_lda.shares import TopicShares
from sktensor_dp.text.vectorizer import ENGLISH

pytest.importorskip("matplotlib", reason="matplotlib is optional")

MODELS = "words.model", "topics.model"
WRITTEN = {
    *(
        ".check.json",
        ".gitignore",
        ".run",
        "budget.sqlite",
        "for-the-officer.html",
        "for-the-officer.md",
    ),
    *("statement.json", "topic_words.csv", "topics.csv", "topics.html", "topics.model"),
    *("topics.svg", "words.model", "manifest.json"),
}


@pytest.fixture
def no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics.Topics, "fit", lambda _: pytest.fail("data was used"))


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def topics_of_persons(folder: Path, n: int) -> tuple[str | Path, ...]:
    """Arguments that ask for topics in a text of each of `n` persons."""
    path = folder / "few.csv"
    path.write_text("who,text\n" + "".join(f"p{i},alpha beta gamma\n" for i in range(n)))
    return "topics", path, "--text", "text", "--person", "who"


@pytest.mark.usefixtures("drawn")
def test_persons_and_their_topics(command, posts, tmp_path):
    """One run, seen from every side: a real fit takes a second."""
    folder = tmp_path / "private-topics"
    arguments = ("topics", posts, "--text", "post", "--person", "author", "--epsilon", 8, *SMALL)
    done = command(*arguments)
    assert "words: at most 40;" in done.err
    assert "Topics, of 40 words (at most 40)\n" in done.out
    files = {path.name: path.read_text("utf-8", "replace") for path in folder.iterdir()}
    assert set(files) == WRITTEN
    assert files["topics.svg"].startswith("<?xml")

    # Results: each topic is of one subject, in one order everywhere.
    rows = table(folder / "topics.csv")
    leading = [{r["word"][:5] for r in rows if r["topic"] == n} for n in ("1", "2")]
    assert sorted(map(sorted, leading)) == [["alpha"], ["omega"]]
    on_screen = {word for line in done.out.splitlines() for word in line.split()}
    shown = [r["sets_apart"] == "yes" for r in rows if r["word"] in on_screen]
    assert {r["sets_apart"] for r in rows if r["rank"] == "1"} == {"yes"}
    assert shown
    assert all(shown)
    shares = [float(next(r["share_of_words"] for r in rows if r["topic"] == n)) for n in ("1", "2")]
    assert shares == sorted(shares, reverse=True)
    assert shares == [round(share, 3) for share in shares]  # they are no results
    assert f"1      {shares[0]:.1%}  " in done.out
    words = table(folder / "topic_words.csv")
    assert sum(float(row["topic_1"]) for row in words) == pytest.approx(1, abs=1e-4)

    # Nothing of single posts, and no number of texts: how many a person wrote is private.
    for name, text in {**files, "out": done.out, "err": done.err}.items():
        assert SECRET not in text, name
        if name.endswith((".md", ".csv", ".json", "out", "err")):
            # As a number by itself: digits of a probability may be any.
            assert not re.search(rf"(?<![\d.]){N_TEXTS}(?!\d)", text.replace(",", "")), name
        if not name.endswith((".model", ".sqlite", ".json")):
            assert "group of" not in text, name
    assert (
        f"{N_PERSONS:,} persons; each person is protected, with all rows of one 'author'"
        in done.err
    )
    assert f": {N_PERSONS:,} persons for at most 2 topics" in done.err
    assert "document" not in done.err
    for used in (
        "text: column 'post'; person: column 'author'; topics: 2;",
        "delta: 1e-6; this run spends epsilon 8 of",
    ):
        assert used in done.err

    # One epsilon for both steps, in a statement that adds up.
    report = stated(folder)
    assert report.epsilon == pytest.approx(8.0)
    assert (report.unit, report.n_units, report.delta) == ("person", N_PERSONS, 1e-6)
    page = " ".join(files["for-the-officer.md"].split())
    assert "their names may come out" in page
    assert "same name in the data, in capitals and small letters alike?" in page
    assert "For this run epsilon is 8, delta 1 in 1,000,000." in page
    assert "the list of words (a word of one person alone in 1 of 10,000,000 runs at most)" in page
    for said in (
        "half of those that about ",
        " person alone comes out in at most 1 of 10,000,000 runs",
    ):
        assert said in done.err
    assert {"word_votes", "pair_moments"} <= {row.name for row in report.rows}
    assert "Each person is protected by differential privacy: 2,811 persons, epsilon 8" in done.out
    budget = BudgetAccountant(path=folder / LEDGER)
    assert budget.total()[0] == pytest.approx(8.0)
    assert {one.unit for one in budget.entries} == {"person: author"}
    assert files[".gitignore"] == "*\n"

    # Models of one run know their words, and refuse those of another run.
    counter = PrivateCountVectorizer.load(folder / "words.model")
    model = PrivateSpectralLDA.load(folder / "topics.model")
    names = counter.get_feature_names_out()
    assert set(model.top_words(1)[0]) < set(names)
    counts = counter.transform([" ".join(names)])
    assert model.transform(counts).shape == model.transform(counts[:1]).shape == (1, 2)
    other = PrivateCountVectorizer(vocabulary=[f"not{name}" for name in names])
    with pytest.raises(ValueError, match="counts other words"):
        model.transform(other.transform(["notalpha0"]))


def test_without_a_column_of_persons_it_says_who_is_not_protected(command, posts):
    done = command("topics", posts, "--text", "post", "--forecast")
    assert f"{N_TEXTS:,} texts; each text is protected" in done.err
    assert "whoever is behind several texts is not protected as a person" in done.err
    assert "--person COLUMN" in done.err
    left = re.search(r"A check comes first, after which epsilon (\S+) is left", done.err)
    assert 3.8 < float(left[1]) < 4


def test_a_column_of_few_words_ends_before_topics_are_paid_for(command, tmp_path):
    days = "".join(f"2020/0{n % 3 + 1}/11\n" for n in range(6000))
    (tmp_path / "days.csv").write_text(f"day\n{days}", encoding="utf-8")
    asked = ("topics", "days.csv", "--topics", 3, "--epsilon", 8, "--words-per-text", 100)
    # The check says first that they are short.
    said = command(*asked, status=2).err
    assert re.search(r"texts of about [234](\.\d+)? words \(between .*\) for this, .* the ch", said)
    said = command(*asked, "--no-check", "--output", "unchecked", status=2).err
    assert "Too few words were found to tell topics apart: 5, such as '01', '02'," in said
    assert float(re.search(r"folder: epsilon ([\d.]+) at", said)[1]) < 5
    assert "Topics, of 5 words" in command(*asked, "--anyway", "--output", "all").out
    (tmp_path / "days.csv").write_text(f"day\n{days.replace('/', '-')}", encoding="utf-8")
    said = command(*asked, "--output", "ids", status=2).err
    assert re.search(r"Too few rows match \(texts of .* without blanks between words, as", said)
    assert "Messages of one word" not in said  # they would not be nearly all


def test_swapped_columns_end_in_a_question(command, posts, tmp_path):
    _, *rows = posts.read_text("utf-8").splitlines()
    named = [f"{row.partition(',')[0]},{row}" for row in rows]
    posts.write_text("\n".join(["name,author,post", *named]), "utf-8")
    wrong = ("--text", "name", "--person", "author")
    done = command("topics", posts, *wrong, "--epsilon", 2, *SMALL, "--anyway", status=2)
    last = done.err.splitlines()[-1]
    assert re.search(
        r"Too few rows match \(texts of two words or more: \d\.\d%, .* --text the column", last
    )
    taken = float(re.search(r"charged, which takes (0\.04\d+) of epsilon 2 ", last)[1])
    assert "than author need a new --output, where nobody counts what this folder" in last
    assert last.endswith(
        "To go on all the same: --no-check, which does not pay again for the check"
    )
    # The mended command runs within the budget of the first one.
    mended = ("topics", posts, "--text", "post", "--person", "author", "--epsilon", 2, *SMALL)
    left = re.search(r"spends epsilon (\S+) \(2 less what earlier runs", command(*mended).err)[1]
    assert float(left) == pytest.approx(2 - taken, abs=0.003)
    assert 1.95 < stated(tmp_path / "private-topics").epsilon < 2
    assert "and too little is left" in command(*mended, "--again", status=2).err
    swapped = ("topics", posts, "--text", "author", "--person", "post", "--no-check", *SMALL)
    said = command(*swapped, status=2).err
    assert "protect one person: author, this one would protect one person: post" in said
    assert "what people lose who are in both adds up" in said
    done = command(*swapped, "--epsilon", 1, "--output", "o", status=2)
    last = done.err.splitlines()[-1]
    assert re.search(
        r"persons of 100 words each about \d+ have to use one\. Is --text the column", last
    )


def test_a_run_that_saw_one_topic_leaves_its_steps_to_others_of_the_same_words(command, tmp_path):
    rng, letters = np.random.default_rng(0), "abcdefghijklmnopqrst"
    words = [f"w{one}{two}" for one in letters for two in letters]
    frequencies = 1 / (np.arange(400) + 20)
    texts = rng.choice(words, (6000, 12), p=frequencies / frequencies.sum())
    (tmp_path / "t.csv").write_text("text\n" + "\n".join(map(" ".join, texts)), encoding="utf-8")
    asked = ("topics", tmp_path / "t.csv", "--text", "text", "--epsilon", 1, "--anyway")
    said = command(*asked, "--topics", 5).out
    left = float(re.search(r"same words and may still spend epsilon (0\.[56]\d\d)\.", said)[1])
    refused = command(*asked, "--topics", 3, "--again", status=2).err
    assert f"uses the same words and may still spend epsilon {left}" in refused
    less = command(*asked, "--topics", 4, "--epsilon", 0.1)
    assert "words.model of private-topics are used" in less.err
    left = float(re.search(r"same words and may still spend epsilon (0\.[56]\d\d)\.", less.out)[1])
    again = command(*asked, "--topics", 3)  # with words of the first run
    spent = re.search(r"spends epsilon ([\d.]+) \(1 less what earlier runs", again.err)[1]
    assert float(spent) == pytest.approx(left, rel=0.01)
    assert "All runs in this folder: epsilon 1 at" in again.out
    assert "A run may state more than that: " in again.out


@pytest.mark.usefixtures("no_fit")
def test_a_forecast_spends_nothing_and_reads_no_words(command, posts, tmp_path):
    asked = ("topics", posts, "--text", "post", "--person", "author", "--forecast")
    (tmp_path / "occupied").touch()
    for more, why in (
        (
            ("--budget", 1),
            "epsilon 4 does not fit in the budget of private-topics: 0 of 1 is spent",
        ),
        (("--output", "occupied"), "--output names a folder, and occupied is a file"),
    ):
        assert f"warning: a run would be refused: {why}" in command(*asked, *more).err
    done = command(*asked)
    assert "a run would be refused" not in done.err
    assert "nothing was spent" in done.err
    assert "which words go together" in done.err
    assert "above 1: visible" in done.err
    assert "topics of texts differ in strength" in done.err
    assert not (tmp_path / "private-topics").exists()


@pytest.mark.usefixtures("no_fit")
def test_too_few_persons_stop_it_with_ways_on(command, tmp_path):
    asked = topics_of_persons(tmp_path, 1000)
    done = command(*asked, "--epsilon", 2, status=2)
    last = done.err.splitlines()[-1]
    assert last.startswith("error: too few persons for this, so it stopped. More can be")
    # Noise would exceed the weakest topic also of two: fewer topics are no way on.
    assert "can be expected with --epsilon 7.38 or about 3,300 persons or --words-per" in last
    # What was not spent sets no budget, so that advice can be followed.
    assert not (tmp_path / "private-topics" / LEDGER).exists()
    # No more is advised than the folder has, and never more than 10.
    last = command(*asked, "--epsilon", 2, "--budget", 4, status=2).err.splitlines()[-1]
    assert "More can be expected with about 3,300 persons" in last
    # A budget that was stated holds though the run stopped.
    assert "of 4 is spent" in command(*asked, "--epsilon", 8, status=2).err
    asked = topics_of_persons(tmp_path, 740)
    last = command(*asked, "--epsilon", 4, "--budget", 4, status=2).err.splitlines()[-1]
    assert "expected with about 1,800 persons or --words-per-te" in last
    assert last.endswith("--anyway")
    # More persons would not show 900 topics in 2,000 words.
    last = command(*asked, "--topics", 900, status=2).err.splitlines()[-1]
    assert last.startswith("error: too many topics for this")
    # Of so few nothing else can be expected at this epsilon.
    last = command(*asked, "--epsilon", 0.5, status=2).err.splitlines()[-1]
    assert re.search(
        r"More can be expected with about 1[0-9],000 persons or public words with frequ", last
    )


def test_how_long_texts_are_is_said_where_the_verdict_depends_on_it(command, tmp_path, monkeypatch):
    asked = topics_of_persons(tmp_path, 3000)
    depends = "be enough if all of a person's texts have about 100 words, likely too few with about"
    for asked_for in (("forecast", "topics", "--persons", 3000), (*asked, "--forecast")):
        done = command(*asked_for)
        assert depends in done.out + done.err
        half = (
            r"Half of all runs with as many see 8 or more from --epsilon [\d.]+ on\.\n.*; 5 of 10 "
            r"runs see 4 or more from about [\d,]+ on, 5 of 10 runs see 8 or more from about "
            r"[\d,]+ on, 9 of 10 runs see 8 or more from about [\d,]+ on\."
        )
        assert re.search(f"Likely to be seen: .* of 10 topics. {half}", done.out + done.err)
    shown = command(*asked, "--words-per-text", 50, "--forecast").err
    assert "about 50 words, too few with about 5 (--words-per-text)" in shown
    # Where longer texts would do, a run that stops says so.
    few = (*topics_of_persons(tmp_path, 1500)[:4], "--epsilon", 2)
    said = command(*few, status=2).err
    assert "oo few if a text has about 100 words, may be enough with about 1,000" in said
    least = re.search(r"--words-per-text (\d+) if texts are so long", said)[1]
    assert "May be enough if" in command(*few, "--words-per-text", least, "--forecast").err
    # A run goes on with the length that the help names, until the check says another one.
    asked = topics_of_persons(tmp_path, 3000)
    said = command(*asked[:4], status=2).err
    assert "be enough if a text has about 100 words, likely too few with about 10 (--words" in said
    stopped = (
        r"too few texts of about [23](\.\d+)? words \(.*\) for this, so it stopped\. Empty texts "
        r"and codes .*\. More can be expected with about [\d,]+ texts or public words .*\. Only "
        r"the check was charged, which takes 0\.\d+ of"
    )
    assert re.search(stopped, said)
    monkeypatch.setattr(topics.Topics, "check", interrupted)
    assert depends in command(*asked, "--output", "of-persons", status=130).err


def test_shares_of_texts_are_written_on_request_alone(command, posts, tmp_path):
    arguments = ("topics", posts, "--text", "post", "--output", "out", "--epsilon", "inf", *SMALL)
    command(*arguments, "--id", "name", status=2)  # without --shares
    ignored = ("--id", "name", "--one-row-each", "--texts-per-person", 2, "--normalise-labels")
    said = command("--forecast", *arguments, *ignored).err  # before the command line of a run
    for name in ("id", "one-row-each", "texts-per-person", "normalise-labels"):
        assert f"warning: a run would be refused: --{name} needs --" in said
    assert "This was the forecast: nothing was spent." in said
    with posts.open("a") as file:
        file.write("nobody,zzz\n")
    lines = posts.read_text("utf-8").splitlines()
    named = [f"name{i}-of-a-text,{line}" for i, line in enumerate(lines)]
    posts.write_text("\n".join(["name,author,post", *named[1:]]), "utf-8")
    done = command(*arguments, "--shares", "--id", "name")
    rows = table(tmp_path / "out" / DOCUMENT_SHARES)
    assert len(rows) == N_TEXTS + 1
    assert float(rows[0]["topic_1"]) + float(rows[0]["topic_2"]) == pytest.approx(1, abs=1e-4)
    # A text without a word of the topics is marked; names of texts are in no other file.
    assert int(rows[0]["kept_words"]) > 0
    mode = (tmp_path / "out" / DOCUMENT_SHARES).stat().st_mode
    assert sys.platform == "win32" or not mode & 0o077  # of other users
    assert [rows[-1][name] for name in ("kept_words", "topic_1", "topic_2")] == ["0", "", ""]
    assert rows[-1]["name"] == f"name{N_TEXTS + 1}-of-a-text"
    for path in (tmp_path / "out").iterdir():
        assert (b"-of-a-text" in path.read_bytes()) is (path.name == DOCUMENT_SHARES)
    assert f"{DOCUMENT_SHARES} is about single texts, and nothing protects it" in done.out
    # Without noise everything says so, and nothing is claimed.
    assert "Nothing" in (tmp_path / "out" / "for-the-officer.md").read_text().title()
    assert "nothing is protected" in done.out
    page = (tmp_path / "out" / "topics.html").read_text(encoding="utf-8")
    assert "Not private." in page
    assert "<h1>Topics, not private</h1>" in page
    assert "Private topics" not in page
    assert stated(tmp_path / "out").guarantee.startswith("epsilon: inf")
    # Names are not replaced by numbers unasked.
    before = (tmp_path / "out" / DOCUMENT_SHARES).read_bytes()
    refused = command(*arguments, "--shares", status=2).err
    assert f"{DOCUMENT_SHARES} names texts by 'name', and would be replaced" in refused
    assert "--id name keeps the names" in refused
    assert (tmp_path / "out" / DOCUMENT_SHARES).read_bytes() == before
    command(*arguments, "--shares", "--id", "name")
    assert (tmp_path / "out" / DOCUMENT_SHARES).read_bytes() == before


def test_a_finished_run_gives_the_topics_of_texts_in_other_files(command, posts, tmp_path):
    texts = ("Alpha1 beta2 alpha1", "omega3 alpha2 omega1", "nothing") * 20
    lines = "".join(f"{i};{text}\n" for i, text in enumerate(texts))
    (tmp_path / "next.csv").write_text(f"nr;body\n{lines}", "utf-8")
    out = ("--output", "out")
    first = ("topics", posts, "--text", "post", "--person", "author", *out, "--epsilon", 4, *SMALL)
    other = ("topics", "next.csv", "--text", "body", *out)
    command(*first, "--shares")
    folder, name = tmp_path / "out", "PRIVATE-document-shares-of-next.csv"
    before = {path: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}
    refused = command(*other, status=2).err
    assert "finished, with other settings (file: posts.csv, text: " in refused
    assert "; --shares by it costs nothing. " in refused
    for settings, replaced in (((), ""), (("--topics", 3), ", in the place of the former one")):
        done = command(*other, *settings, "--shares", "--id", "nr")
        assert f"{name}{replaced}, and nothing else." in done.out
        assert "words and topics were learned from posts.csv: they are applied to" in done.err
    assert {path: path.read_bytes() for path in before} == before
    models = [PrivateCountVectorizer, PrivateSpectralLDA]
    words, model = (one.load(folder / f) for one, f in zip(models, MODELS, strict=True))
    shares = model.transform(words.transform(texts))
    found = table(folder / name)
    assert [float(row["topic_1"] or 0) for row in found] == pytest.approx(
        np.where(words.transform(texts).sum(axis=1) > 0, shares[:, :1], 0).ravel().tolist()
    )
    assert found[7]["nr"] == "7"
    # It remains the run of the first file, whose shares are replaced as asked for alone.
    assert f"{DOCUMENT_SHARES}, in the place of" in command(*first, "--shares").out
    assert {path: path.read_bytes() for path in before} == before
    command("report", "check", folder)


@pytest.mark.filterwarnings("default:a <leak>")
@pytest.mark.filterwarnings("default:what numpy says")
def test_the_page_shows_warnings_of_releases_alone(command, posts, tmp_path, monkeypatch):
    def fit(self, fit=topics.Topics.fit):
        warnings.warn("a <leak>", sktensor_dp.PrivacyLeakWarning, stacklevel=2)
        warnings.warn("what numpy says of rows", RuntimeWarning, stacklevel=2)
        return fit(self)

    monkeypatch.setattr(topics.Topics, "fit", fit)
    asked = ("topics", posts, "--text", "post", "--delta", 0.03)
    refused = command(*asked, status=2).err.splitlines()[-1]
    assert refused.endswith("would keep this promise. Take a smaller --delta. Nothing was spent.")
    # Consent to little data is none to a weak promise.
    assert command(*asked, *SMALL, status=2).err.splitlines()[-1] == refused
    assert "warning: delta 0.03 is above 1 in 5,973" in command(*asked, *SMALL, "--forecast").err
    done = command(*asked[:-2], *SMALL)
    assert "warning: a <leak>\n" in done.err
    for name in ("topics.html", "for-the-officer.html"):
        page = (tmp_path / "private-topics" / name).read_text(encoding="utf-8")
        assert "a &lt;leak&gt;" in page
        assert "numpy says" not in page


@pytest.mark.nightly
def test_more_topics_than_were_asked_for_are_said(command, tmp_path):
    words = np.random.default_rng(0).integers(20, size=(4000, 12))
    posts = (" ".join(f"{'abcd'[n % 4]}word{i}" for i in row) for n, row in enumerate(words))
    (tmp_path / "four.csv").write_text("\n".join(["post", *posts]), encoding="utf-8")
    asked = ("topics", "four.csv", "--text", "post", "--words", 80, "--no-check")
    said = "At least 4 topics can be seen in the released pairs of words, and 2 were asked for"
    texts = [command(*asked, "--topics", 2, "--epsilon", 4).err]
    for name in ("topics.html", "for-the-officer.html", "statement.json"):
        texts.append((tmp_path / "private-topics" / name).read_text(encoding="utf-8"))
    assert all(said in text for text in texts)


@pytest.mark.parametrize(
    ("hidden", "said"),
    [
        (6 * [False] + 2 * [True], "6 of 10 topics"),
        (10 * [True], "0 of 10 topics"),
        ([False], "1 of 10 topics"),
    ],
)
def test_topics_found_and_hidden_are_counted(hidden, said):
    run = topics.Topics(parse(["topics"]))
    run._topics = [SimpleNamespace(hidden=one) for one in hidden]
    assert run.on_hidden()[0] == f"{said} can be seen above the noise; there may be no more."
    assert run.doubts(50.0).startswith(
        f"{run.on_hidden()[0]} What would help: more texts, or a larger"
    )
    assert ("a smaller --topics" in run.doubts(50.0)) is (any(hidden) and not all(hidden))
    # All that is left for another run is as much as this one had.
    assert "--epsilon" not in run.doubts(4.0)
    run._topics = 10 * [SimpleNamespace(hidden=False)]
    assert run.doubts(50.0) == ""


def test_one_topic_alone_is_no_mixture_of_others():
    one = SimpleNamespace(number=1, hidden=True, weight=1.0, distinctive=())
    alone, first = (str(topic_tables.topics_on_screen("", n * [one], "text")) for n in (1, 2))
    assert "1*" not in alone
    assert "No second topic was seen" in alone
    assert "1*" in first
    assert "a mixture of others" in first


def test_shares_are_enough_where_their_intervals_are_no_wider():
    four = [TopicError(1.0, 0.5)] * 4
    good = ShareForecastTable(TopicShares([*range(2)], epsilon=4.0), four, 20_000, False)
    assert good.are_narrow
    one_wide = good._replace(topics=[*four[:3], TopicError(1.0, 0.5, mixed=0.08)])
    assert "may reach up to 13 points to either side by noise, chance, and" in one_wide.on_width()
    assert not one_wide.blurs()
    blurred = good._replace(topics=[TopicError(1.0, 0.5, mixed=0.08)] * 4)
    assert not blurred.are_narrow
    # Errors of topics reach 1.645 * 8 points, chance a seventh of a point: no epsilon helps.
    assert blurred.blurs()
    reach = (
        "Intervals of shares by group will reach about 13 points to either side whatever epsilon"
    )
    assert blurred.on_width().startswith(f"{reach} they get, as topics are hard to tell apart (")
    assert "(shares are 25 points on average; " in blurred.on_width()
    found = blurred._replace(found=FoundTopics(blurred.topics, 2.0, 0.0, 4))
    assert str(found).startswith("May be enough: shares of the topics found (25.0% on average)")
    assert blurred.on_width() in str(found)
    noisy = good._replace(shares=TopicShares([*range(2)], epsilon=0.001))
    assert noisy.on_width().startswith("Intervals of shares by group may reach up to ")
    few = good._replace(n_units=20)
    assert "whatever epsilon they get, as few texts are in each" in few.on_width()
    assert not noisy.blurs()
    assert not good.blurs()
    assert good.on_width() == ""


@pytest.mark.parametrize("texts", ["auto", 20])
def test_a_pessimistic_guess_of_texts_of_persons_stops_no_shares(texts):
    shares = TopicShares([*range(4)], texts_per_person=texts, epsilon=4.0)
    persons = ShareForecastTable(shares, [TopicError(1.0, 0.5)] * 3, 130, True)
    # By chance of one text of each person 1.645 * 0.5 * (4 / 130) ** 0.5, or 14 of 33 points.
    assert not persons.are_narrow
    assert not persons.blurs()


def test_public_words_cost_nothing_and_stop_words_are_ones_own(command, posts, tmp_path):
    listed = "word,count\nthe,99\n" + "".join(f"alpha{i},{30 - i}\nomega{i},9\n" for i in range(20))
    (tmp_path / "known.csv").write_text(listed, encoding="utf-8")
    (tmp_path / "stop.txt").write_text("The\na\n ALPHA0\n", encoding="utf-8")
    files = ("--vocabulary", "known.csv", "--stop-words", "stop.txt")
    done = command("topics", posts, "--text", "post", "--person", "author", *files, *SMALL)
    assert "words: 39 public ones; stop words: 2 words of stop.txt; " in done.err
    both, names = stop_words("english,stop.txt", None)
    assert (len(both), names) == (len(ENGLISH) + 1, "english,stop.txt")
    assert {"alpha0", "the", "www"} < {*both}
    with pytest.raises(ValueError, match="nothing is at 'gone"):
        stop_words("english,gone.txt", None)
    folder = tmp_path / "private-topics"
    words = {row["word"] for row in table(folder / "topic_words.csv")}
    assert "alpha1" in words
    assert not {"the", "alpha0"} & words
    names = {row.name for row in stated(folder).rows}
    assert "word_votes" not in names
    (tmp_path / "none.csv").write_text("word,count\nthe,9\n", encoding="utf-8")
    done = command(
        "topics", posts, "--text", "post", "--vocabulary", "none.csv", "--output", "o", status=2
    )
    assert (
        done.err == "error: --vocabulary has no word but stop words: --stop-words none keeps them\n"
    )


def test_public_words_are_read_in_any_form(command, posts, tmp_path):
    """With or without frequencies, in the encoding and with the delimiter of the list."""
    words = [f"{stem}{i}" for stem in ("alpha", "omega") for i in range(20)]
    table = "\n".join(f"{word};{n}" for n, word in enumerate([*words, "grün"], start=9))
    (tmp_path / "known.csv").write_bytes(table.encode("cp1252"))
    for suffix in ("csv", "txt", "lst"):
        (tmp_path / f"plain.{suffix}").write_bytes("\n".join([*words, "GRÜN"]).encode("cp1252"))
    for name, source in (("known", table), ("plain", "\n".join([*words, "GRÜN"]))):
        apart = unicodedata.normalize("NFD", source)  # letters and their marks
        (tmp_path / f"{name}-apart.txt").write_text(apart.replace(";", " "), encoding="utf-8")
    names = ("known.csv", "plain.csv", "plain.txt", "plain.lst", "known-apart.txt")
    for name in (*names, "plain-apart.txt"):
        asked = parse(["topics", str(posts), "--text", "post", "--vocabulary", name])
        run = topics.Topics(asked)
        run.build()
        assert sorted(run.models["words"].vocabulary) == sorted([*words, "grün"])
        assert (run.models["topics"].word_frequencies is None) == name.startswith("plain")
    few = ("--vocabulary", "plain.txt", "--words", 40)
    last = command("topics", posts, "--text", "post", *few, status=2).err.splitlines()[-1]
    assert last.endswith("no frequencies by which to choose 40: --words 41 takes all")
    # More persons would not help where words are too few.
    few = ("--vocabulary", "plain.txt", "--topics", 14)
    stopped = command("topics", posts, "--text", "post", *few, status=2).err
    assert (
        "oo few: 5,973 texts for at most 14 topics at epsilon 4; more texts would not be enough"
        in stopped
    )
    assert re.search(r"error: too many topics for this, .* with --topics 12", stopped)


def test_the_number_of_persons_can_be_private(command, posts, tmp_path):
    """Check, words and topics have a count each, of which a statement shows the last one."""
    who = ("--text", "post", "--person", "author", "--add-remove", "--persons", 2222)
    done = command("topics", posts, *who, "--epsilon", 8, *SMALL)
    assert "2,222 persons (assumed, the true number is private)" in done.err
    assert "2,811" not in done.err
    folder = tmp_path / "private-topics"
    report = stated(folder)
    counts = [row.uses for row in report.rows if row.name == "unit_count"]
    assert (report.neighbours, len(counts)) == ("add_remove", 3)  # one for the check
    assert f"about {report.n_units:,} persons, epsilon 8" in done.out
    assert report.n_units == pytest.approx(2811, abs=200)
    assert f"from about {report.n_units:,} persons" in (folder / "topics.html").read_text("utf-8")
    known = "word,count\n" + "".join(f"alpha{i},{30 - i}\nomega{i},9\n" for i in range(20))
    (tmp_path / "known.csv").write_text(known, encoding="utf-8")
    listed = ("--vocabulary", "known.csv", "--raise-budget", 99)
    done = command("topics", posts, *who, *listed, "--epsilon", 8, *SMALL)
    assert "All rows may match; noise has a deviation of " in done.err
    assert "All rows may match; " in (folder / "for-the-officer.md").read_text("utf-8")


def test_without_a_file_it_takes_public_texts(command, tmp_path, monkeypatch):
    texts = [f"alpha{i % 7} omega{i % 5} beta" for i in range(3000)]
    monkeypatch.setattr("sktensor_dp.datasets.load_docstrings", lambda: texts)
    command("topics", *SMALL)
    # It has no budget that a second run would exceed. Without matplotlib there is no picture.
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = command("topics", *SMALL)
    assert "pip install matplotlib" in done.err
    assert "no limit is set" in done.out
    assert "not protected as a person" not in done.err
    folder = tmp_path / "demo-output"
    assert {p.name for p in folder.iterdir()} == WRITTEN - {"topics.svg", ".check.json"} | {
        "earlier-1"
    }
    assert {p.name for p in (folder / "earlier-1").iterdir()} == WRITTEN - {
        *(".check.json", ".gitignore", ".run", "budget.sqlite")
    }


BY = ("--by", "month", "--by-values", "jan,feb,never")


@pytest.fixture
def dated(posts: Path) -> Path:
    """Authors of even numbers write in January; some months are missing, or no month."""
    head, *rows = posts.read_text("utf-8").splitlines()
    months = ["jan", "feb", "jan", "feb", " jan", "feb", "", "?"]
    named = [f"{months[place % 2811 % 8]},{row}" for place, row in enumerate(rows)]
    posts.write_text("\n".join([f"month,{head}", *named]), "utf-8")
    return posts


@pytest.mark.parametrize(
    "more", [pytest.param((), marks=pytest.mark.nightly), ("--add-remove", "--persons", 3000)]
)
def test_shares_by_month_are_paid_by_the_same_budget(command, dated, tmp_path, monkeypatch, more):
    asked = ("topics", dated, "--text", "post", "--person", "author", "--epsilon", 8, *SMALL, *BY)
    folder = tmp_path / "private-topics"
    said = command(*asked, *more, "--forecast").err
    assert "on average) in each of 3 groups, if texts are spread evenly\n" in said
    ends = r"\n(.*)% to (.*)% +(.*)% to (.*)% +noise of a share \(one deviation\); "
    few, *_, many = re.search(ends, said).groups()
    most = UNEVEN_TEXTS / FEW_TEXTS * NOISE_FACTORS[1]
    assert float(many) == pytest.approx(most * float(few), abs=(most + 1) * 0.05)  # as rounded
    assert "a few who write very much stay hidden" in " ".join(said.split())
    with monkeypatch.context() as patched:
        patched.setattr("sktensor_dp.spectral_lda.shares.TopicShares.fit", interrupted)
        command(*asked, *more, status=130)
    models = (folder / "topics.model").read_bytes()
    done = command(*asked, *more)
    assert "words.model and topics.model of private-topics are used" in done.err
    assert models == (folder / "topics.model").read_bytes()
    assert stated(folder).epsilon == pytest.approx(8.0, rel=1e-3)
    assert "topic_shares" in {row.name for row in stated(folder).rows}
    rows = {(row["group"], row["topic"]): row for row in table(folder / "topics_by_group.csv")}
    assert len(rows) == 6
    assert {row["file"] for row in rows.values()} == {dated.name}
    assert f"\n{dated.name}: average shares of topics, by group, in texts with" in done.out
    # Of 5,973 texts one half is of odd authors; a quarter of the others has no month.
    assert abs(float(rows["feb", "1"]["texts_scaled"]) - 2240) < 60
    assert abs(float(rows["jan", "1"]["texts_scaled"]) - 2240) < 60
    for (month, _), row in rows.items():
        assert row["hidden"] == ("yes" if month == "never" else "no")
        assert (row["share"] == row["low"] == "") is (month == "never")
    pairs = table(folder / "topic_differences.csv")
    for row in pairs:
        assert row["clear"] == ("no" if row["group"] == "never" else "yes")
        assert (row["low"] == "") is (row["group"] == "never")
        assert row["file"] == dated.name
    assert [row["compared"] for row in pairs] == 6 * ["pair"]
    assert re.search(r"feb minus jan +[+-][\d.]+% to [+-][\d.]+%!", done.out)
    assert '<th scope="row">feb minus jan</th>' in (folder / "topics.html").read_text("utf-8")
    shares = {month: float(rows[month, "1"]["share"]) for month in ("jan", "feb")}
    assert sorted(round(share) for share in shares.values()) == [0, 1]
    assert re.search(r"jan +2,\d\d\d to 2,\d\d\d +\d+% to \d+%", done.out)
    assert "never*" in done.out
    page = (folder / "for-the-officer.md").read_text("utf-8")
    assert "- by values: jan,feb,never\n" in page
    (most,) = {row["scaled_down_at_most"] for row in rows.values()}
    scaled = f"Whoever wrote more (likely {most} persons at most) is scaled down"
    assert "Shares of topics can be seen of 2 of 3 groups. In shares by group a person" in page
    html = (folder / "topics.html").read_text("utf-8")
    assert '<th scope="row">jan</th><td class="number">2,' in html
    assert "Groups that write more than others of a topic that was not found" in html
    for shown in (page, html, done.out):  # they share none
        assert "of their words in common" not in shown
    command("report", "page", folder, "--output", "other")
    other = (tmp_path / "other" / "for-the-officer.md").read_text("utf-8")
    for setting in ("topics, n_components: 2", "shares, values: jan, feb, never"):
        assert f"- {setting}\n" in other
    assert "- topics, what it shows: 2 of 2 topics can be seen" in other
    for left_out in (scaled, OF_KEPT_WORDS):
        assert all(left_out in " ".join(said.split()) for said in (page, done.out, html, other))
    assert "topics_by_group.csv" in page
    command("report", "check", folder)
    assert "is finished" in command(*asked, *more, status=2).err


def test_shares_by_group_are_forecast_by_their_number_alone(command):
    asked = ("forecast", "topics", "--persons", 4000, "--topics", 6, "--words-per-text", 300)
    by_number = command(*asked, "--by-values", 3).out
    in_python = PrivateSpectralLDA(6).forecast_shares(4000, 3, grouped=True, epsilon=2.0)
    assert re.sub(r" +[\d.]+%|[\d.]+%", "", str(in_python)) in re.sub(
        r" +[\d.]+%|[\d.]+%", "", by_number
    )
    assert by_number == command(*asked, "--by-values", "north,south,east").out
    ends = r"([\d.]+)% to [\d.]+% +[\d.]+% to [\d.]+% +"
    quantities = ("reach of 90% intervals of s", "of which by chance", "reach .*diff", "noise of a")
    chance = []
    for epsilon in (1, 10):
        said = command(*asked, "--by-values", 12, "--epsilon", epsilon).out
        assert "Errors of topics, which their fit tells, add to that" in said
        found = [float(re.search(f"\n{ends}{one}", said)[1]) for one in quantities]
        width, by_chance, apart, noise = found
        assert apart == pytest.approx(2**0.5 * width, abs=0.1)
        # Standard error of a share of 1/6 in 333 texts, less by half as persons write four.
        assert by_chance == pytest.approx(1.645 * 100 * (5 / 36 / 333 / 2) ** 0.5, abs=0.06)
        assert width == pytest.approx(math.hypot(1.645 * noise, by_chance), abs=0.15)
        chance.append(by_chance)
    assert chance[0] == chance[1]
    # Shares take their part of the budget.
    found = [
        float(re.search(r"from --epsilon ([\d.]+) on", command(*asked, *more).out)[1])
        for more in (("--find", "epsilon"), ("--find", "epsilon", "--by-values", 3))
    ]
    assert 1.05 < found[1] / found[0] < 1.3
    assert "--by-values 0: a number" in command(*asked, "--by-values", 0, status=2).err


@pytest.mark.parametrize(("values", "why"), [
    ("2024-01,2024-02,2024-13", "of --by-values '2024-13' is no year, month or day, so that"),
    ("2024-Q1,2024-02", "of --by-values '2024-Q1' is no year, month or day, so that"),
    ("2024-Q1,2024-Q2", "of --by-values '2024-Q1' is no year, month or day, so that"),
    ("2024-1,2024-02", "of --by-values values are dates of different forms, so that"),
    ("2024-01,2024-02", ""), ("2023,2024", ""), ("jan,feb", ""), ("20245,20246", ""),
])  # fmt: skip
def test_values_that_look_like_months_and_are_none_are_said_before_anything_is_paid(
    command, dated, values, why
):
    asked = ("topics", dated, "--text", "post", "--person", "author", *SMALL[:-1], "--by", "month")
    said = command(*asked, "--by-values", values, "--forecast").err
    assert ("warning: of --by-values" in said) == bool(why)
    assert why in said


def test_groups_are_a_public_list(command, dated, tmp_path):
    asked = ("topics", dated, "--text", "post", "--person", "author", *SMALL[:-1], "--by", "month")
    (tmp_path / "months.txt").write_text("jan\nfeb\n", "utf-8")
    said = command(*asked, "--by-values", "months.txt", "--forecast").err
    assert "by values: months.txt;" in said
    given = ("--by-values", "months.txt", "--texts-per-person", 20, "--forecast")
    said, ends = command(*asked, *given).err, r"\n([\d.]+)% .*% +"
    few = re.search(f"{ends}noise .*, if each person writes 20 texts\n", said)[1]
    many = re.search(f"{ends}the same, if each writes one\n", said)[1]
    assert float(many) == pytest.approx(20 * float(few), rel=0.2)
    said = command(*asked, *given[:2], "--texts-per-person", 1, "--forecast").err
    assert said.count("noise of a share") == 1  # of one text each
    for values, why in (
        ("jan,jan", "values must be different, and none empty"),
        ("jan,,", "values must be different, and none empty"),
        (
            "2025-07",
            "nothing is at '2025-07': --by-values takes a file with a value in each line, "
            "or values with commas; of one value '2025-07,'",
        ),
    ):
        assert why in command(*asked, "--by-values", values, status=2).err
    assert "--by COLUMN and --by-values LIST go together" in command(*asked, status=2).err
    said = command(*asked, "--by-values", "january,february", "--epsilon", 8, status=2).err
    assert "Too few rows match (texts of a group of --by-values: " in said
    assert "Is --by the column of --by-values, and are these written as there?" in said, said
    said = command(*asked, "--by-values", "jan,", "--epsilon", 8, "--output", "o", status=2).err
    assert "Does --by-values lack some of the groups? If on purpose, go on: texts of oth" in said
    many = ",".join(f"m{place}" for place in range(3000))
    said = command(*asked, "--by-values", many, "--epsilon", 2, status=2).err
    assert "too few persons for this, so it stopped. More can" in said


@pytest.mark.parametrize(
    ("values", "part", "groups"),
    [
        (
            "2025-01,2025-02",
            "month",
            {
                **dict.fromkeys(
                    (
                        "2025-01-31",
                        "2025/1/5",
                        " 2025-01 ",
                        "2025-01-31 14:05",
                        "2025.01.31T9:00Z",
                        "31.01.2025",
                        "1.1.2025 14:05",
                    ),
                    "2025-01",
                ),
                **{
                    one: one
                    for one in (
                        "2025",
                        "01/31/2025",
                        "31-01-2025",
                        "31.13.2025",
                        "2025-13-01",
                        "20250131",
                        "jan",
                        "",
                    )
                },
            },
        ),
        # Capital letters matter where names differ in these alone.
        ("North,south", "", {"north ": "North", "SOUTH": "south", "west": "west"}),
        ("a,A", "", {"a": "a", "A": "A"}),
        ("2024,2025", "year", {"2025-01-31": "2025", "2025.0": "2025", "2025": "2025", "1": "1"}),
        ("2025/01/31,", "day", {"2025-01-31 14:05": "2025/01/31", "2025-01": "2025/01"}),
        *(
            (one, "", {"2025-01-31": "2025-01-31"})
            for one in ("2025-1,2025-2", "2025,2025-02", "a,")
        ),
    ],
)
def test_dates_count_for_the_month_that_a_public_list_has(values, part, groups):
    listed = ListedGroups(public_values(values, None))
    assert listed.part == part
    assert {cell: listed.group_of(cell) for cell in groups} == groups


def test_a_column_of_dates_fits_a_list_of_months(command, dated, monkeypatch):
    text = dated.read_text("utf-8")
    for name, date in (("jan", "2025-01-17 08:30"), ("feb", "2025/2/28")):
        text = text.replace(f"{name},", f"{date},")
    dated.write_text(text, "utf-8")
    monkeypatch.setattr(topics.Topics, "fit", interrupted)
    asked = ("topics", dated, "--text", "post", "--person", "author", *SMALL[:-1], "--by", "month")
    said = command(*asked, "--by-values", "2025-01,2025-02", status=130).err
    assert (
        "by: column 'month', of a date, as 2025-01-31 or 31.01.2025, its month; by values: " in said
    )
    assert "Of rows perhaps 25." in said
    said = command(*asked, "--by-values", "01/2025,02/2025", "--output", "other", status=2).err
    assert "Too few rows match (texts of a group of --by-values: " in said


def test_shares_are_added_to_a_finished_run_for_their_price_alone(
    command, dated, tmp_path, monkeypatch
):
    asked = ("topics", dated, "--text", "post", "--person", "author", *SMALL, "--budget", 11)
    folder = tmp_path / "private-topics"
    command(*asked, "--epsilon", 8)
    models = {one: (folder / f"{one}.model").read_bytes() for one in ("words", "topics")}
    checks = [re.search("checked first: .*", (folder / PAGES[0]).read_text("utf-8"))[0]]
    said = command(*asked, "--epsilon", 8, *BY, status=2).err
    assert "would add shares alone to the models of" in said
    assert re.search(r"--epsilon \d\.\d+ is left", said)
    # Another file of the same name.
    following, (head, *rows) = Path("next", dated.name), dated.read_text("utf-8").splitlines()
    following.parent.mkdir()
    of_2000 = [row for row in rows if re.search(r"author1?\d{1,3},", row)]
    following.write_text("\n".join([head, *of_2000]), "utf-8")
    others = "next/posts.csv is of other persons, a budget of their own needs Python"
    assert others not in said
    of_others = ("topics", following, *asked[2:])
    assert others in command(*of_others, "--epsilon", 8, *BY, status=2).err
    # A mistake costs the check alone, and the finished run stays where it is.
    wrong = ("--by", "month", "--by-values", "may,june")
    assert "Too few rows match" in command(*asked, "--epsilon", 2, *wrong, status=2).err
    assert not (folder / "earlier-1").exists()
    with monkeypatch.context() as patched:
        patched.setattr("sktensor_dp.spectral_lda.shares.TopicShares.fit", interrupted)
        command(*asked, "--epsilon", 2, *BY, status=130)
    for path in (dated, following):
        run = ("topics", path, *asked[2:-2], "--raise-budget", 20)
        with mock.patch.object(PrivateSpectralLDA, "load", wraps=PrivateSpectralLDA.load) as load:
            done = command(*run, "--epsilon", 2, *BY)
        load.assert_called_once()
        assert stated(folder).n_units == N_PERSONS  # the larger
        assert "words.model and topics.model of private-topics are used" in done.err
        assert re.search(r"\n[\d.]+% to [\d.]+% +noise of a share \(one deviation\)", done.err)
        of_found = "Enough: shares of the topics found (50.0% on average) in each of 3 groups"
        assert of_found in done.err
        assert "share most words" not in done.err
        assert "Learning shares" in done.err
        assert models == {one: (folder / f"{one}.model").read_bytes() for one in models}
        page = (folder / PAGES[0]).read_text("utf-8")
        assert "models learned from: posts.csv" in page
        whole = f"- epsilon: 2, and {stated(folder).epsilon:.4g} with the run whose words and"
        assert whole in page
        assert ("(2,000 in other fits)" in page) is (path == following)
        name = "posts.csv" if path == dated else "next/posts.csv"
        assert {row["file"] for row in table(folder / "topics_by_group.csv")} == {name}
        assert f"\n{name}: average shares of topics" in done.out
        again = "by the same column and values were released of posts.csv (private-topics): if next"
        assert (again in " ".join(done.err.split())) is (path == following)
        checks.append(re.search("checked first: .*", page)[0])
    assert checks[0] not in checks[1:]
    html = (folder / "topics.html").read_text("utf-8")  # has all that was paid for
    for of in ("next/posts.csv", "posts.csv (earlier-2)"):
        assert f"<h2>Topics by month of {of}</h2>" in html
    # The whole epsilon is for shares, but for the part of a check.
    budget = BudgetAccountant(path=folder / LEDGER)
    shares = [one for one in budget.entries if one.spender == "TopicShares"]
    assert len(shares) == 4
    most = gaussian_mu(2.0, 1e-6)
    paid = PrivacyCost.total((one.cost, one.uses) for one in shares[:2])
    assert most * 0.9 < paid.mu < most
    reordered = (*BY[:3], "never,jan,feb")
    for again in ((2, *BY), (2, *reordered), (1, *BY), (2,)):  # the last of topics alone
        assert "is finished" in command(*run, "--epsilon", *again, status=2).err
    # A public bound for busy persons needs no histogram.
    command(*run, "--epsilon", 2, *BY, "--texts-per-person", 20)
    assert BudgetAccountant(path=folder / LEDGER).entries[-2].release == "matching_rows"
    n_paid = len(BudgetAccountant(path=folder / LEDGER).entries)
    # Shares of texts are free, and need no more than the texts.
    for more in ((), (*BY, "--epsilon", 8, "--person", "author")):
        done = command("topics", following, "--text", "post", "--shares", *more)
        assert "PRIVATE-document-shares-of-next-posts.csv, " in done.out
        assert "words and topics were learned from posts.csv: they are applied to" in done.err
    monkeypatch.setattr(PrivateSpectralLDA, "hidden", lambda _: np.ones(2, bool))
    said = command(*run, "--epsilon", 1, *BY[:2], "--by-values", "jan,feb", status=2).err
    assert "their shares say nothing. --again learns all anew. Nothing" in said
    fresh = ("--epsilon", 4, *BY, "--output", "fresh")
    said = command(*run[:-2], *fresh).err
    assert "So no shares by group were made, nor paid for" in said
    again = (*run[:1], dated, *run[2:-2], *fresh)
    # The larger one of two topics is hidden.
    with monkeypatch.context() as patched:
        patched.setattr(PrivateSpectralLDA, "hidden", lambda _: np.array([True, False]))
        half = [one for one in (*run[:-2], *fresh[:-1], "half") if one != "--anyway"]
        said = command(*half).err
        blurred = (
            r"Topics that noise hides hold 5\d% of the words and may be mixtures of those seen, "
            r"so shares by group of these would be off by up to 2\d% beside noise"
        )
        assert re.search(f"{blurred}, so no shares by group were made, nor paid for. The sa", said)
        assert re.search(rf"{blurred}\. Nothing was spent\. To", command(*half, status=2).err)
        command(*half, "--anyway")
        assert (tmp_path / "half" / "shares.model").exists()
    assert "their shares say nothing" in command(*again, status=2).err
    assert "their shares say nothing" in command(*again, "--forecast").err
    assert len(BudgetAccountant(path=folder / LEDGER).entries) == n_paid
    of_hidden = {(row["word"], row["hidden"]) for row in table(tmp_path / "fresh" / "topics.csv")}
    assert of_hidden == {("", "yes")}
    made = BudgetAccountant(path=tmp_path / "fresh" / LEDGER).entries
    assert "TopicShares" not in {one.spender for one in made}
    command("report", "check", folder)


def spent(folder: Path) -> Counter[str]:
    """Number of charges of each kind of fit in a folder."""
    return Counter(one.spender for one in BudgetAccountant(path=folder / LEDGER).entries)


def test_shares_whose_intervals_would_be_wide_at_any_epsilon_are_paid_for_on_consent_alone(
    command, dated, tmp_path, monkeypatch
):
    asked = ("topics", dated, "--text", "post", "--person", "author", *SMALL[:-1], "--epsilon", 8)
    alike = np.full((1, 2), 0.16**2)  # of shares of 50 points; 1.645 * 16 = 26.3
    forecast = "sktensor_dp.spectral_lda.share_forecast"
    monkeypatch.setattr(f"{forecast}.mixing_variance", lambda *_: alike)
    wide = (
        "Intervals of shares by group will reach about 26 points to either side whatever epsilon "
        "they get, as topics are hard to tell apart (shares are 50 points on average; "
    )
    folder = tmp_path / "private-topics"
    said = command(*asked, *BY)
    assert wide in said.err
    assert "so no shares by group were made, nor paid for. The same command with" in said.err
    assert "average shares" not in said.out
    before = spent(folder)
    assert before["TopicShares"] == 0
    assert wide in (folder / "topics.html").read_text("utf-8")
    # The finished folder says so, too, and asks for the same consent.
    assert wide in " ".join(command(*asked, *BY, "--forecast").err.split())
    stopped = command(*asked, *BY, status=2).err
    assert " ".join(stopped.split()).count(wide) == 1
    assert "told better). Nothing was spent. To go on all the same: --anyway" in stopped
    assert spent(folder) == before
    for output in ("private-topics", "fresh"):
        done = command(*asked, *BY, "--anyway", "--no-check", "--output", output)
        assert f"warning: {wide}" in done.err
        assert " ".join(done.err.split()).count(wide) == 1
        assert wide in (tmp_path / output / PAGES[0]).read_text("utf-8")
        assert "average shares" in done.out
    assert spent(folder)["TopicShares"] == spent(tmp_path / "fresh")["TopicShares"] > 0


def test_shares_that_noise_would_hide_are_left_out_and_the_same_command_can_add_them(
    command, dated, tmp_path, monkeypatch
):
    alike = np.array([[0.502, 0.498], [0.498, 0.502]])  # nearly all words are of both topics
    monkeypatch.setattr("sktensor_dp.spectral_lda.share_forecast.confusion_of", lambda _: alike)
    asked = ("topics", dated, "--text", "post", "--person", "author", *SMALL[:-1], "--epsilon", 8)
    folder = tmp_path / "private-topics"
    said = command(*asked, *BY)
    noise = f"Noise would hide the share of each topic in each of 3 groups: of {N_PERSONS:,}"
    assert noise in said.err
    (left,) = re.findall(r"by the epsilon (.*) that is left[.]", said.err)
    assert "average shares" not in said.out
    before, models = spent(folder), {one: (folder / one).read_bytes() for one in MODELS}
    assert before["TopicShares"] == 0
    assert before["PrivateSpectralLDA"] > 0
    page = (folder / "topics.html").read_text("utf-8")
    assert f"by the epsilon {left} that is left" in page
    # A forecast says so, too, and the same command stops before it pays, or takes what is left.
    assert "Likely too few: shares of the topics found" in command(*asked, *BY, "--forecast").err
    stopped = command(*asked, *BY, status=2).err
    assert "likely too few persons for this, so it stopped. More can be expected" in stopped
    assert "fewer groups. Nothing was spent. To go on all the same: --anyway" in stopped
    assert spent(folder) == before
    done = command(*asked, *BY, "--anyway", "--no-check")
    assert "average shares" in done.out
    after = spent(folder)
    assert after.pop("TopicShares") > 0
    assert after == {name: n for name, n in before.items() if n}
    assert models == {one: (folder / one).read_bytes() for one in MODELS}
    assert stated(folder).epsilon == pytest.approx(8.0, rel=0.01)
    command("report", "check", folder)
    assert "is finished" in command(*asked, *BY, "--anyway", "--no-check", status=2).err
