"""The budget of an output folder: kept in its ledger, and checked before it is charged."""

import hashlib
import json
import math
import os
import pkgutil
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import SMALL, table, write_posts

from sktensor_dp import BudgetAccountant
from sktensor_dp.cli import execution as module
from sktensor_dp.cli import topics
from sktensor_dp.cli.arguments import parse
from sktensor_dp.cli.document_shares import DOCUMENT_SHARES
from sktensor_dp.cli.folder import LEDGER, Folder
from sktensor_dp.cli.held_folder import held
from sktensor_dp.cli.manifest import STATEMENT
from sktensor_dp.cli.officer_page import PAGES
from sktensor_dp.exceptions import LedgerError, ModelFileError, NotEnoughDataError
from sktensor_dp.privacy.ledger_entries import LedgerEntry
from sktensor_dp.privacy.odds import odds_in_hundred
from sktensor_dp.privacy.statement import load_statement


def spent(tmp_path: Path, name: str = "private-topics") -> float:
    ledger = tmp_path / name / LEDGER
    return BudgetAccountant(path=ledger).total()[0] if ledger.exists() else 0


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    """Fewer than elsewhere: what is found is looked at in other files."""
    return write_posts(tmp_path / "posts.csv", 1200, 600)


@pytest.fixture
def arguments(posts: Path) -> tuple:
    return ("topics", posts, "--text", "post", "--epsilon", 2, *SMALL)


@pytest.fixture
def as_in_the_foreground() -> Iterator[None]:
    """What a shell starts in the background, as it may a suite of tests, ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_first_run_sets_the_budget_and_an_explicit_word_raises_it(
    command, arguments, posts, tmp_path
):
    assert "the budget is 3" in command(*arguments, "--budget", 3).out
    # Two runs at (2, 1e-6) compose to 2.94, a third to 3.7. The budget is not forgotten.
    command(*arguments, "--again")
    assert spent(tmp_path) == pytest.approx(2.94, abs=0.01)
    done = command(*arguments, "--again", status=2)
    assert "epsilon 2 does not fit in the budget of private-topics: 2.94" in done.err
    assert "--raise-budget 3.7" in done.err
    assert "epsilons of runs add up to less than their sum" in done.err
    assert "Nothing was spent" in done.err
    # What is said to be left is, and a hundredth more is not.
    left = float(re.search(r"--epsilon ([0-9.]+) is left", done.err)[1])
    assert left < 0.6
    for run, status in ((left + 0.01, 2), (left, 0)):
        shutil.copytree("private-topics", f"copy{status}")
        run_again = (
            *arguments,
            "--epsilon",
            run,
            "--output",
            f"copy{status}",
            "--no-check",
            "--again",
        )
        again = command(*run_again, status=status)
    paid = re.search(
        rf"spends epsilon {left:g}, earlier runs spent 2.94.: together ([0-9.]+) of 3", again.err
    )
    assert spent(tmp_path, f"copy{status}") == pytest.approx(float(paid[1]), abs=0.001)
    # Wrong files, columns and deltas are answered as such.
    for wrong, told in (
        (("nowhere.csv", "--text", "post"), "nothing is at"),
        ((posts, "--text", "post", "--person", "who"), "column 'who' does not exist"),
        ((posts, "--text", "post", "--epsilon", "inf"), "No budget covers a run without noise"),
        ((posts, "--text", "post", "--delta", 0.5), "say --delta 1e-6 or less"),
    ):
        error = command("topics", *wrong, *SMALL, status=2).err.splitlines()[-1]
        assert told in error
        assert "--raise-budget" not in error
    done = command(*arguments, "--budget", 4, status=2)
    assert "--raise-budget 4" in done.err
    done = command(*arguments, "--budget", 4, "--raise-budget", 4, status=2)
    assert "not both" in done.err
    command(*arguments, "--raise-budget", 4, "--again")
    assert spent(tmp_path) == pytest.approx(3.7, abs=0.03)
    # A smaller one holds, too.
    command(*arguments, "--budget", 3.9, "--epsilon", 0.8)
    budget = BudgetAccountant(path=tmp_path / "private-topics" / LEDGER)
    assert [(change.old, change.new) for change in budget.changes] == [(3, 4), (4, 3.9)]
    page = " ".join(Path("private-topics", "for-the-officer.md").read_text("utf-8").split())
    for text in (page, command("budget", "show", "private-topics").out):
        assert "the budget became 4; it was 3" in text
        assert "the budget became 3.9; it was 4" in text


def test_without_a_limit_a_finished_run_is_refused_all_the_same(command, arguments, tmp_path):
    command(*arguments, "--budget", "inf")
    assert FINISHED in command(*arguments, status=2).err
    assert spent(tmp_path) == pytest.approx(2)


def test_without_a_budget_the_first_epsilon_is_all(command, arguments):
    command(*arguments)
    done = command(*arguments, "--epsilon", 0.1, status=2)
    assert "2 of 2 is spent" in done.err
    done = command(*arguments, "--epsilon", 1.5, "--raise-budget", 9)
    assert "(1.5 less the check, which is paid for), earlier runs spent 2: together 2." in done.err


def test_runs_of_other_files_add_up_and_other_units_are_refused(
    command, arguments, posts, tmp_path
):
    other = tmp_path / "other.csv"
    other.write_bytes(posts.read_bytes())
    command(*arguments, "--budget", 9)
    command("topics", other, *arguments[2:])
    assert spent(tmp_path) == pytest.approx(2.94, abs=0.01)
    done = command(*arguments, "--person", "author", status=2)
    assert "protect one document, this one would protect one" in done.err
    # A forecast knows the folder as the run does, and is shown all the same.
    said = command(*arguments, "--person", "author", "--forecast").err
    assert "warning: a run would be refused: " in said
    assert "Earlier runs in private-topics protect one" in said
    assert "this was the forecast" in said.lower()
    folder = tmp_path / "private-topics"
    last = folder / "statement.json"
    for asked in (folder, last):
        beyond = command("report", "check", asked, "--at-most", 2.5, status=1)
        assert "but epsilon of all runs in this folder is 2.94" in beyond.err
        within = command("report", "check", asked, "--at-most", 3).out
        assert "All runs in this folder: epsilon 2.94" in within
        assert ("Not checked: whether other files" in within) is (asked == last)
        assert "what other runs cost" not in within
    alone = last.rename(tmp_path / "statement.json")
    assert "what other runs cost" in command("report", "check", alone, "--at-most", 2.5).out


def test_a_budget_of_python_pays_where_it_is_linked(command, arguments, tmp_path):
    year = BudgetAccountant(5.0, path=tmp_path / "year.sqlite", scope="posts of 2026")
    folder = tmp_path / "private-topics"
    folder.mkdir()
    (folder / "budget.sqlite").symlink_to(year.path)
    command(*arguments)
    assert year.total()[0] == pytest.approx(2, abs=0.01)
    command("report", "check", folder)
    (folder / "budget.sqlite").unlink()
    (folder / "budget.sqlite").symlink_to("year.sqlite")  # as if links were relative to here
    for asked in (("report", "check", folder, "--at-most", 9), ("budget", "show", folder)):
        assert "year.sqlite', which does not exist" in command(*asked, status=1).err


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("year.sqlite", "which does not exist: the target of a link is relative to its folder"),
        ("budget.sqlite", "budget.sqlite', which does not exist"),  # itself
        (".", "it is a folder"),
        ("/dev/null", "'/dev/null'"),
    ],
)
def test_what_is_no_ledger_is_refused_and_made_nowhere(command, arguments, tmp_path, target, said):
    folder = tmp_path / "private-topics"
    folder.mkdir()
    (folder / "budget.sqlite").symlink_to(target)
    assert said in command(*arguments, status=1).err.splitlines()[-1]
    with pytest.raises(LedgerError, match=re.escape(said)):
        BudgetAccountant(1.0, path=folder / "budget.sqlite")
    assert [path.name for path in folder.iterdir() if path.name[0] != "."] == ["budget.sqlite"]


def test_results_that_were_paid_for_are_kept(command, arguments, tmp_path, monkeypatch):
    folder = tmp_path / "private-topics"
    command(*arguments, "--budget", 9)
    first = (folder / "topics.model").read_bytes()
    done = command(*arguments, "--again")
    assert "What an earlier run found is in private-topics/earlier-1" in done.out
    assert (folder / "earlier-1" / "topics.model").read_bytes() == first
    old = (folder / "earlier-1" / "for-the-officer.md").read_text("utf-8")
    assert re.search(r"as of [-\d]+ [\d:]+ UTC; later runs add to it", old)
    page = (folder / "for-the-officer.md").read_text("utf-8")
    assert re.search(r"UTC, with earlier-1 \(epsilon 2\); later runs add to it", page)
    last, first = command("report", "check", folder).out.splitlines()
    assert "folder: epsilon 2.945 at delta 1e-6, with earlier-1 (epsilon 2). " in last
    assert first.startswith(f"{folder}/earlier-1/statement.json: adds up. (epsilon = 2, delta")
    beyond = command("report", "check", folder / "earlier-1", "--at-most", 2.5, status=1).err
    assert "but epsilon of all runs in this folder is 2.94" in beyond
    command("report", "page", folder, "--output", "whole")
    whole = Path("whole", PAGES[0]).read_text("utf-8")
    assert re.search(r"2\.945 at delta 1e-6; the budget is 9\b.*, with earlier-1 \(", whole)
    assert "move beliefs further than that: in at most 1 of" in page
    *_, (_, low, high) = odds_in_hundred(spent(tmp_path))
    assert f"or {low} to {high} in 100 likely." in page

    def fail(*_: object) -> None:
        raise ValueError("no ink")

    monkeypatch.setattr(module, "save_svg", fail)
    (folder / "earlier-1").rename(folder / "earlier-7")
    done = command(*arguments, "--again", status=2)
    assert (folder / "earlier-8").exists()
    assert (folder / "topics.model").exists()
    where = "private-topics: statement.json, words.model, topics.model,"
    assert f"What it found before is in {where}" in done.err
    # A file that was not finished is the command's own.
    command(*arguments, "--forecast")


def test_other_files_in_the_folder_are_refused_and_left(command, arguments, posts, tmp_path):
    command(*arguments, "--budget", 9, "--shares")
    folder, before = tmp_path / "private-topics", spent(tmp_path)
    made = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert made["private"] == [DOCUMENT_SHARES]
    for name, digest in made["protected"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    page = " ".join((folder / "for-the-officer.md").read_text("utf-8").split())
    certified = re.search(
        r"check FOLDER compares\), and no other: (.*), but not PRIVATE-document-shares.csv", page
    )[1]
    assert set(certified.split(", ")) == set(made["protected"])
    files = f" {len(certified.split(', '))} files as in manifest.json. Not to be published, as "
    files += f"nothing protects it: {DOCUMENT_SHARES}.\n"
    assert command("report", "check", folder).out.endswith(files)
    listed = (folder / "manifest.json").read_text("utf-8")
    (folder / "manifest.json").write_text(f"{listed}x")
    assert ": manifest.json.\n" in command("report", "check", folder, status=1).err
    (folder / "manifest.json").write_text(listed)

    def refused(name: str, said: str) -> None:
        content = (folder / name).read_bytes() if (folder / name).is_file() else b""
        done = command(*arguments, "--again", status=2)
        assert (
            f"did not make, or that were changed since: {said}. Name another --output" in done.err
        )
        assert not content or (folder / name).read_bytes() == content
        assert (spent(tmp_path), list(folder.glob("earlier-[0-9]"))) == (before, [])

    (folder / "topics.csv").write_text("mine")
    (folder / "topics.html").unlink()
    refused("topics.csv", "topics.csv")
    checked = command("report", "check", folder, status=1)
    assert checked.out == ""
    assert re.search(r"missing, or .*: (topics.html, topics.csv)\.$", checked.err)
    (folder / "topics.csv").rename(folder / "my\x1b.csv")
    refused("my\x1b.csv", "my\N{REPLACEMENT CHARACTER}.csv")
    (folder / "my\x1b.csv").rename(tmp_path / "my.csv")
    (folder / "topics.html").symlink_to(posts)
    refused("topics.html", "topics.html")
    (folder / "topics.html").unlink()
    (folder / "earlier-data").mkdir()
    refused("earlier-data", "earlier-data")
    (folder / "earlier-data").rmdir()
    (folder / DOCUMENT_SHARES).write_text("changed, of which nothing is said")
    command(*arguments, "--again")
    # A folder that another file made its own; nothing is added to it.
    text = posts.read_bytes()
    (tmp_path / "manifest.json").write_text('{"name": "an app", "icons": []}')
    done = command(*arguments, "--output", tmp_path, status=2)
    assert "changed since: manifest.json, my.csv, posts.csv and 1 more" in done.err
    assert posts.read_bytes() == text
    assert {p.name for p in tmp_path.iterdir()} == {
        *("manifest.json", "my.csv", "posts.csv", "private-topics")
    }


def test_one_run_at_a_time_writes_to_a_folder(command, arguments, tmp_path):
    """Two together would each spend a part of the budget, and neither have its results."""
    folder = tmp_path / "private-topics"
    file, ratings = arguments[1], folder / "ratings.model"
    columns = ("--person", "author", "--item", "post", "--rating", "stars")
    of_ratings = (*columns, "--bounds", 1, 5, "--items-are-public")
    # Numbers are read before the folder is opened.
    file.with_name("n.csv").write_text("author,post,stars\n" + "1,2,3\n2,3,4\n" * 50)
    with held(folder):
        ratings.touch()
        for run in (
            arguments,
            ("groups", "n.csv", "--range", "post", 0, 5, "--output", folder),
            ("ratings", "n.csv", *of_ratings, "--output", folder),
            ("recommend", folder, "n.csv", *columns, "--output", folder),
        ):
            done = command(*run, status=2)
            assert "error: Another run is writing to" in done.err
            assert "Nothing was spent" in done.err
        ratings.unlink()
    assert spent(tmp_path) == 0
    command(*arguments)


def test_a_fit_that_fails_says_what_it_spent(command, arguments, tmp_path, monkeypatch):
    real = topics.Topics.fit

    def failing(self: topics.Topics) -> Iterator[str]:
        yield from real(self)
        raise NotEnoughDataError("No word remains.")

    monkeypatch.setattr(topics.Topics, "fit", failing)
    done = command(*arguments, status=2)
    *_, cost, where, further, last = done.err.splitlines()
    assert cost.startswith("What was charged is spent. All runs")
    assert further.startswith("The same command goes on from there")
    assert "in private-topics: statement.json, words.model, topics.model, for-the-o" in where
    assert last == "error: No word remains."
    assert spent(tmp_path) == pytest.approx(2)


@pytest.mark.parametrize(
    ("within", "more", "taken"),
    [
        ("text.vectorizer.fit_vocabulary", (), "is in private-topics/earlier-1"),
        ("spectral_lda.estimator.fit_topics", (), "words.model of private-topics are used"),
        ("text.vectorizer.fit_vocabulary", ("--add-remove", "--persons", 600), "/earlier-1"),
    ],
)
def test_what_a_failed_fit_was_charged_for_is_stated(
    command, arguments, tmp_path, monkeypatch, within, more, taken
):
    def failing(*_: object, **__: object) -> None:
        raise ValueError("It failed.")

    asked, folder = (*arguments, *more, "--budget", 9), tmp_path / "private-topics"
    with monkeypatch.context() as patched:
        patched.setattr(f"sktensor_dp.{within}", failing)
        assert "error: It failed." in command(*asked, status=2).err
    stated = load_statement((folder / STATEMENT).read_bytes())
    assert stated.epsilon == pytest.approx(spent(tmp_path))
    page = (folder / PAGES[0]).read_text("utf-8")
    assert f"epsilon is {stated.epsilon:.4g}, delta" in page
    assert "no finished results" in page
    # Of a private number the one that was counted last, if any was.
    number = f"About {stated.n_units:,} texts" if stated.n_units else "An unknown number of texts"
    assert (f"{number} were analysed" in page) is bool(more)
    command("report", "check", folder)
    done = command(*asked)
    assert taken in done.err + done.out
    checked = command("report", "check", folder).out
    assert f"folder: epsilon {spent(tmp_path):.4g} at delta" in checked
    stated = load_statement((folder / STATEMENT).read_bytes())
    assert (stated.epsilon == pytest.approx(spent(tmp_path))) is ("words.model" in taken)


@pytest.mark.parametrize("at", ["__init__", "read", "check", "fit"])
def test_interruption_says_what_was_spent(command, arguments, tmp_path, monkeypatch, at):
    real = getattr(topics.Topics, at)

    def interrupted(self: topics.Topics, *given: object) -> None:
        real(self, *given)
        raise KeyboardInterrupt

    def interrupted_later(self: topics.Topics) -> Iterator[str]:
        yield from real(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(topics.Topics, at, interrupted_later if at == "fit" else interrupted)
    done = command(*arguments, status=130)
    assert "Traceback" not in done.err
    files = "statement.json, words.model, topics.model, for-the-officer.md, for-the-officer.html"
    where = f" is in private-topics: {files}\nThe same command "
    ends = {
        "check": "\nThe same command goes on from there, and does not pay again for the check\n",
        "fit": f"{where}goes on from there, and does not pay again for words.model and "
        "topics.model\n",
    }
    charged = "Stopped. What was charged is spent. All runs in this folder: epsilon"
    assert (charged in done.err) == (at in ends)
    assert done.err.endswith(ends.get(at, "Stopped. Nothing was spent.\n"))
    assert spent(tmp_path) == pytest.approx({"fit": 2, "check": 0.35}.get(at, 0), abs=0.01)
    assert not list((tmp_path / "private-topics").glob("*journal"))
    if at == "check":
        said = "is not there: no run in this folder came as far as a model. What they spent: "
        assert said in command("report", "check", "private-topics", status=1).err


@pytest.mark.usefixtures("as_in_the_foreground")
@pytest.mark.parametrize(
    ("within", "presses", "status", "kept"),
    [
        ("text.vectorizer.fit_vocabulary", 1, 130, ["words.model"]),
        ("text.vectorizer.fit_vocabulary", 2, 130, []),
        ("spectral_lda.estimator.fit_topics", 1, 0, ["topics.model", "words.model"]),
    ],
)
def test_what_is_paid_for_is_written_before_an_interrupt_ends_the_run(
    command, arguments, tmp_path, monkeypatch, within, presses, status, kept
):
    """A second Ctrl-C ends it at once; where no further fit is to be paid for it is finished."""
    learn = pkgutil.resolve_name(f"sktensor_dp.{within}")

    def interrupted(*given: object, **named: object) -> object:
        for _ in range(presses):
            signal.raise_signal(signal.SIGINT)
        return learn(*given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(f"sktensor_dp.{within}", interrupted)
        done = command(*arguments, status=status)
    assert "What is paid for is finished and written first." in done.err
    folder = tmp_path / "private-topics"
    assert sorted(path.name for path in folder.glob("*.model")) == kept
    assert ("no finished results" in (folder / PAGES[0]).read_text("utf-8")) is (status != 0)
    # Topics were not paid for where the run ended before them.
    assert (spent(tmp_path) > 1.5) is (status == 0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if kept != ["words.model"]:
        return
    assert "folder: epsilon 1." in command("report", "check", folder).out
    assert "goes on from there, and does not pay again for words.model\n" in done.err
    # Words that were found in data are not public, and are not bought twice.
    words = ("--vocabulary", folder / "words.model", "--output", "other")
    assert "those of words.model were found" in command(*arguments, *words, status=2).err
    os.utime(arguments[1], (now := time.time() + 9, now))
    done = command(*arguments)
    assert "words.model of private-topics are used: they are paid for" in done.err
    assert "was changed since words.model was learned, which is of its former rows." in done.err
    report = load_statement((folder / "statement.json").read_bytes())
    assert report.epsilon == pytest.approx(2)
    assert {"word_votes", "pair_moments", "matching_rows"} <= {row.name for row in report.rows}
    assert spent(tmp_path) == pytest.approx(2)
    assert "epsilon is 2," in (folder / "for-the-officer.md").read_text("utf-8")
    # Shares of texts are made of models that were paid for, and change nothing that may be sent.
    assert "checked first: " in (folder / "for-the-officer.md").read_text("utf-8")
    before = {path: path.read_bytes() for path in folder.glob("[!P]*.*") if path.suffix != ".json"}
    # Too few words, if they were to be paid for.
    for more, column in (((), "text"), (("--words-per-text", 10), "text")):
        done = command(*arguments, "--shares", *more)
        assert "words.model and topics.model of private-topics are used" in done.err
        shares = table(folder / DOCUMENT_SHARES)
        assert (len(shares), next(iter(shares[0]))) == (1200, column)
        assert before == {path: path.read_bytes() for path in before}
    # Other rows show by their public number, also in a file whose time was kept.
    posts, learned = arguments[1], "when words and topics were learned, and has"
    assert learned not in done.err
    posts.write_text("\n".join(posts.read_text("utf-8").splitlines()[:400]), "utf-8")
    os.utime(posts, (0, 0))
    done = command(*arguments, "--shares")
    assert f"warning: posts.csv had 1,200 texts {learned} 399 texts.\n" in done.err
    assert "was changed since" not in done.err
    command("report", "check", folder)


STOPPED = "A run that stopped in private-topics has paid for words.model; with its settings ("
FINISHED = "This run is finished: its results are in private-topics; --shares by it costs nothing."
OTHERS = (
    "The run in private-topics is finished, with other settings (epsilon: 2); --shares by it costs "
    "nothing."
)
ADDED = (
    "Shares would be added to the words and topics of the finished run in private-topics, which "
    "has other settings ("
)
BY = ("--by", "author", "--by-values", "author1,author2", "--epsilon", 8, "--anyway", "--no-check")
# What a run of topics left, options of the next one (after --by those of the first are not given),
# the models that it does not pay for, and why it is refused, if it is.
LEFT = [
    ("words", (), "words.model", ""),
    ("words", ("--epsilon", 1), "", f"{STOPPED}epsilon: 2) the command goes on from"),
    ("words", ("--stop-words", "none"), "", f"{STOPPED}stop words: not given)"),
    ("models", (), "words.model and topics.model", ""),
    ("models", ("--topics", 3), "", "paid for words.model and topics.model; with its settings ("),
    ("all", (), "", f"{FINISHED} To pay for all again: --again. Nothing was spent."),
    ("all", ("--shares",), "words.model and topics.model", ""),
    ("all", ("--shares", "--again"), "words.model and topics.model", ""),
    ("all", ("--topics", 3), "words.model", ""),
    ("all", ("--topics", 3, "--budget", 2), "", OTHERS.replace("epsilon: 2", "topics: 2")),
    ("all", ("--epsilon", 3), "", OTHERS),
    ("clear", BY, "words.model and topics.model", ""),
    ("clear", (*BY, "--topics", 10), "", f"{ADDED}topics: 2): take those, or learn all anew with "
     "--again. Nothing was spent."),
    ("lists", BY, "words.model and topics.model", ""),
    ("lists", (*BY, "--vocabulary", "fewer.txt"), "", f"{ADDED}vocabulary: words.txt)"),
    ("adding", BY, "words.model and topics.model", ""),
    ("added", BY, "", FINISHED),
]  # fmt: skip
# The same where hardly anything else decides.
LEFT_AT_NIGHT = [
    ("nothing", (), "", ""),
    ("words", ("--anyway",), "words.model", ""),
    ("words", ("--epsilon", 1, "--topics", 3), "", f"{STOPPED}epsilon: 2)"),
    ("all", ("--anyway",), "", FINISHED),  # one consent is not another
    ("all", ("--epsilon", 1.8, "--shares"), "words.model and topics.model", ""),
    ("clear", (*BY, "--stop-words", "none", "--delta", 1e-7), "", f"{ADDED}delta: 1e-6, "
     "stop words: not given)"),
    ("adding", (*BY, "--topics", 10), "", "(topics: 2) the command goes on from there"),
    ("added", BY[:-1], "", FINISHED),  # a check that is left out learns the same
    ("words", ("--topics", 3, "--anyway"), "words.model", ""),  # words do not depend on it
    ("words", ("--epsilon", 1, "--again", "--anyway"), "", ""),
    ("all", ("--again",), "", ""),
    ("all", ("--topics", 3, "--again"), "", ""),
    ("all", ("--topics", 3, "--shares"), "words.model and topics.model", ""),
    ("all", ("--epsilon", 1.8), "", ""),
    ("all", ("--epsilon", 1.8, "--shares", "--again"), "", ""),
    ("clear", (*BY, "--words", 40, "--delta", 1e-6), "words.model and topics.model", ""),
    ("clear", (*BY, "--again"), "", ""),
    ("lists", (*BY, "--vocabulary", "words.txt"), "words.model and topics.model", ""),
    ("added", (*BY, "--epsilon", 0.8), "", FINISHED),
]  # fmt: skip


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of folders, each as runs that ended at other points leave it."""
    return tmp_path_factory.mktemp("left")


@pytest.mark.parametrize(
    ("ended", "more", "taken", "refused"),
    [*LEFT, *(pytest.param(*row, marks=pytest.mark.nightly) for row in LEFT_AT_NIGHT)],
)
def test_what_was_paid_for_is_not_paid_twice(
    command, arguments, left, tmp_path, monkeypatch, ended, more, taken, refused
):
    """Each state of a folder, and what the next run does there; a forecast is never refused."""
    # Not --anyway; a check would say that texts are shorter.
    asked = (*arguments[:-1], "--words-per-text", 200, "--no-check")
    stems = [f"{stem}{place}" for stem in ("alpha", "omega") for place in range(20)]
    Path("words.txt").write_text("\n".join(f"{one} 5" for one in [*stems, "never"]), "utf-8")
    Path("fewer.txt").write_text("\n".join(stems), "utf-8")
    Path("stop.txt").write_text("never\n", "utf-8")
    os.utime(arguments[1], (0, 0))  # older than any model
    if not (left / ended).exists():
        with monkeypatch.context() as patched:
            if ended == "words":
                patched.setattr("sktensor_dp.PrivateSpectralLDA.fit", interrupted)
            if ended == "models":
                patched.setattr(module, "save_svg", interrupted)
            if ended != "nothing":
                lists = ("--vocabulary", "words.txt", "--stop-words", "stop.txt", "--anyway")
                status = 130 if ended in ("words", "models") else 0
                of_lists = lists if ended == "lists" else ()
                budget = ("--budget", 3.5)
                if ended in ("clear", "lists", "adding", "added"):  # topics can be seen
                    budget = ("--epsilon", 30, "--budget", 60)
                command(*asked, *budget, *of_lists, status=status)
            if ended == "adding":
                patched.setattr("sktensor_dp.spectral_lda.shares.TopicShares.fit", interrupted)
            if ended in ("adding", "added"):
                command(*asked[:4], *BY, status=130 if ended == "adding" else 0)
        (tmp_path / "private-topics").mkdir(exist_ok=True)
        shutil.copytree("private-topics", left / ended)
    shutil.copytree(left / ended, "private-topics", dirs_exist_ok=True)
    before = spent(tmp_path)
    Path("stop.txt").unlink()  # models have it
    adds = "--by" in more
    asked = asked[:4] if adds else asked
    said = command(*asked, *more, "--forecast").err
    assert said.endswith("This was the forecast: nothing was spent.\n")
    assert ("a run would be refused: " in said) is bool(refused)
    assert refused in said
    assert spent(tmp_path) == before
    done = command(*asked, *more, status=2 if refused else 0)
    assert refused in done.err.splitlines()[-1]
    assert (f"{taken} of private-topics are used" in done.err) is bool(taken)
    assert (spent(tmp_path) == before) is bool(refused or ("topics.model" in taken and not adds))
    if not refused:
        assert (tmp_path / "private-topics" / "for-the-officer.html").exists()


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_words_that_were_paid_for_serve_another_number_of_topics(command, arguments, tmp_path):
    folder, asked = tmp_path / "private-topics", arguments
    os.utime(arguments[1], (0, 0))  # older than any model
    command(*asked, "--budget", 3)
    words = (folder / "words.model").read_bytes()
    done = command(*asked, "--topics", 3)
    assert "paid for; this run spends epsilon 1.6" in done.err
    page = (folder / "for-the-officer.md").read_text("utf-8")
    assert "- counted with it: the run whose words it uses\n" in page
    assert spent(tmp_path) == pytest.approx(2.65, abs=0.05)
    for one in (folder, folder / "earlier-1"):
        assert (one / "words.model").read_bytes() == words
        command("report", "check", one)
    report = load_statement((folder / "statement.json").read_bytes())
    assert report.epsilon == pytest.approx(spent(tmp_path))
    done = command(*asked, status=2)  # as the first run
    assert "finished: its results are in private-topics/earlier-1. To pay for" in done.err
    done = command(*asked, "--topics", 4, status=2)
    assert "epsilon 1.6" in done.err
    assert "of 3 is spent, and too little is left" in done.err


def test_a_file_that_is_interrupted_is_none_of_the_run(command, arguments, tmp_path, monkeypatch):
    def half(self: object, path: Path) -> None:
        path.write_text("half", encoding="utf-8")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("sktensor_dp.PrivateSpectralLDA.save", half)
        done = command(*arguments, status=130)
    assert "is in private-topics: statement.json, words.model, for-the-officer.md," in done.err
    # What was paid for and lost is stated too, of a run that goes on.
    command(*arguments, "--raise-budget", 9)
    stated = load_statement((tmp_path / "private-topics" / "statement.json").read_bytes())
    assert stated.epsilon == pytest.approx(spent(tmp_path))


class Killed(BaseException):
    """End of a process: nothing follows."""


def killed(*_: object, **__: object) -> None:
    raise Killed


@pytest.mark.parametrize(
    ("within", "by", "used", "left"),
    [
        ("text.vectorizer.fit_vocabulary", False, "", 6.4),
        ("spectral_lda.estimator.fit_topics", True, "words.model", 3.2),
        ("spectral_lda.estimator.fit_topics", False, "words.model", 0),
        ("spectral_lda.shares.TopicShares._publish_result", True, "topics.model", 0),
    ],
)
def test_the_same_command_takes_what_a_killed_run_left(
    command, arguments, tmp_path, monkeypatch, within, by, used, left
):
    """What was charged for models that were not kept is lost, and no more than that."""
    groups = ("--by", "author", "--by-values", "author1,author2,author3") if by else ()
    asked = (*arguments, "--epsilon", 8, "--no-check", *groups)
    with monkeypatch.context() as patched:
        patched.setattr(f"sktensor_dp.{within}", killed)
        with pytest.raises(Killed):
            command(*asked)
    before, folder = spent(tmp_path), tmp_path / "private-topics"
    done = command(*asked, status=0 if left else 2)
    assert (f"{used} of private-topics are used" in done.err) is bool(used and left)
    if not left:
        said = "8 of 8 is spent, in part by a run that stopped before it kept its results, and "
        assert f"{said}nothing is left" in done.err
        assert spent(tmp_path) == before
        return
    spends = re.search(r"spends epsilon ([0-9.]+) \(8 less what earlier runs spent\)", done.err)
    assert float(spends[1]) == pytest.approx(left, abs=0.1)
    assert "epsilon: 8; " in done.err
    assert spent(tmp_path) == pytest.approx(8, rel=0.002)
    stated = load_statement((folder / "statement.json").read_bytes()).epsilon
    assert f"- epsilon: {stated:.4g}\n" in (folder / "for-the-officer.md").read_text("utf-8")
    # What a finished run spent is no loss that a later one makes up for by asking for less.
    refused = command(*asked, "--again", status=2)
    assert "epsilon 8 does not fit in the budget" in refused.err


@pytest.mark.nightly
def test_wherever_a_process_is_killed_the_same_command_goes_on(command, arguments, monkeypatch):
    """Shares added to a finished run cost no more than them, before or after files are moved."""
    command(*arguments)
    os.rename("private-topics", "finished")
    by = ("--by", "author", "--by-values", "author1,author2")
    later = (*arguments, *by, "--no-check", "--raise-budget", 9)
    for n_calls in (0, 5, 9, 11, 15, 19, 23):
        shutil.rmtree("private-topics", ignore_errors=True)
        shutil.copytree("finished", "private-topics")
        left = iter(range(n_calls))

        def dying(real, left=left):
            def call(*given, **named):
                if next(left, None) is None:
                    raise Killed
                return real(*given, **named)

            return call

        with monkeypatch.context() as patched:
            for owner, name in ((os, "replace"), (shutil, "copy2"), (Path, "rename")):
                patched.setattr(owner, name, dying(getattr(owner, name)))
            patched.setattr(Path, "unlink", dying(Path.unlink))
            with pytest.raises(Killed):
                command(*later)
        command(*later)
        learned = [
            [
                one.spender for one in BudgetAccountant(path=Path(folder, LEDGER)).entries
                if one.spender not in ("check_inputs", "TopicShares")
            ]
            for folder in ("finished", "private-topics")
        ]  # fmt: skip
        assert learned[0] == learned[1]
        command("report", "check", "private-topics")


def test_many_runs_are_stated_at_the_delta_they_need(tmp_path):
    folder = Folder(tmp_path, math.inf, 1e-6, None, None)
    of_a_run = topics.Topics(parse(["topics"])).charge(0.5).cost
    folder.write_budget()
    folder.ledger.charge([LedgerEntry("topics", "all", 11, of_a_run, "document")])
    assert "at delta 2.1e-6; no limit is set" in folder.summary()


def test_an_output_that_cannot_be_written_costs_nothing(command, arguments, tmp_path):
    (tmp_path / "private-topics").write_text("a file is in the way")
    (tmp_path / "elsewhere").symlink_to("nowhere")
    for name, what in (("private-topics", "a file"), ("elsewhere", "a link to nothing")):
        done = command(*arguments, "--output", name, status=2)
        assert f"{name} is {what}" in done.err.splitlines()[-1]
        assert "Traceback" not in done.err


def test_a_model_that_cannot_be_saved_costs_nothing(command, arguments, tmp_path, monkeypatch):
    def broken(*_: object) -> None:
        raise ModelFileError("this numpy writes no arrays")

    monkeypatch.setattr("sktensor_dp.model_files.saving.pack", broken)
    done = command(*arguments, status=2)
    assert "this numpy writes no arrays" in done.err
    assert spent(tmp_path) == 0
