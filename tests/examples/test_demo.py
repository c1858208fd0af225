import csv
import io
import math
import sys
import time
from contextlib import redirect_stderr

import numpy as np
import pytest
from demo_fakes import (
    RESULTS,
    SECRET,
    FakeCounts,
    FakeTopics,
    folder_of,
    run,
)


@pytest.mark.filterwarnings("default:a warning of the fit")
def test_warnings_of_a_fit_are_lines(demo, fakes, texts, tmp_path, capsys):
    fakes.topics.warns = True
    assert run(demo, tmp_path, "--input", texts, "--text", "review") == 0
    assert "      warning: a warning of the fit\n" in capsys.readouterr().err


@pytest.mark.usefixtures("fakes")
def test_results_are_printed_and_written(demo, texts, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is optional")
    assert run(demo, tmp_path, "--input", texts, "--text", "review", "--epsilon", 2) == 0
    out, err = capsys.readouterr()
    assert "Topic  Weight  Distinctive words" in out
    assert out.index("    1  50.0%") < out.index("    2  33.3%") < out.index("    3  16.7%")
    assert out.count("-differential privacy for replacing one document of 50") == 2
    assert "counts_release" in out
    assert "Total: epsilon = " in out
    assert "[1/4] reading texts" in err
    assert "[4/4] writing files: " in err
    assert "50 documents" in err
    files = {name: path.read_bytes() for name, path in folder_of(tmp_path).items()}
    assert set(files) == {*RESULTS, "topics.png"}
    assert all(f"{tmp_path / 'out' / name}" in out for name in files)
    assert files["topics.png"].startswith(b"\x89PNG")
    page = files["topics.html"].decode()
    assert "&lt;script&gt;" in page
    # The page's data and its program, and no word of the texts.
    assert page.count("<script") == 2
    assert "\\u003cscript" in page
    for text in (out, err, page, files["topics.csv"].decode()):
        assert SECRET not in text
    assert "reviews.csv" not in page


@pytest.mark.usefixtures("fakes")
def test_csv_holds_the_released_probabilities(demo, texts, tmp_path):
    assert run(demo, tmp_path, "--input", texts, "--text", "review") == 0
    with (tmp_path / "out" / "topics.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 10
    components = np.random.default_rng(0).dirichlet(np.ones(12), size=3)
    heaviest = [float(row["probability"]) for row in rows if row["topic"] == "1"]
    assert {row["row"] for row in rows if row["topic"] == "1"} == {"2"}
    # Six significant digits are written.
    np.testing.assert_allclose(heaviest, np.sort(components[2])[::-1][:10], rtol=1e-5)
    assert [row["rank"] for row in rows[:10]] == [str(i) for i in range(1, 11)]


@pytest.mark.usefixtures("fakes")
def test_the_whole_budget_goes_to_the_two_steps(demo, tmp_path):
    options = demo.parse_arguments(
        ["--epsilon", "2", "--topics", "4", "--max-features", "300", "--seed", "7"]
    )
    budget = demo.RunBudget(tmp_path, 2.0, 1e-6, 2.0, "texts")
    pipeline = demo.build(options, budget)
    counts, topics = pipeline["counts"], pipeline["topics"]
    assert counts.accountant is topics.accountant is budget.ledger
    assert (budget.ledger.epsilon, budget.ledger.delta) == (2.0, 1e-6)
    assert (counts.max_features, topics.n_components, topics.random_state) == (300, 4, 7)
    assert counts.stop_words == "english"
    assert 0 < counts.epsilon < topics.epsilon < 2
    assert 0 < counts.delta < 1e-6
    assert 0 < topics.delta < 1e-6


@pytest.mark.usefixtures("fakes")
def test_stop_words_can_be_kept(demo, tmp_path):
    budget = demo.RunBudget(tmp_path, 2.0, 1e-6, None, "texts")
    pipeline = demo.build(demo.parse_arguments(["--stop-words", "none"]), budget)
    assert pipeline["counts"].stop_words is None


@pytest.mark.usefixtures("fakes")
def test_without_matplotlib_the_page_is_still_written(demo, texts, tmp_path, capsys, monkeypatch):
    stale = tmp_path / "out" / "topics.png"
    stale.parent.mkdir()
    stale.write_bytes(b"an earlier run's")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert run(demo, tmp_path, "--input", texts, "--text", "review") == 0
    out = capsys.readouterr().out
    assert "No figure: matplotlib is not installed" in out
    earlier = tmp_path / "out" / "earlier-1"
    assert set(folder_of(tmp_path)) == {*RESULTS, "earlier-1"}
    assert (earlier / "topics.png").read_bytes() == b"an earlier run's"
    assert f"The results of the run before are in {earlier}" in out
    assert "<img" not in (tmp_path / "out" / "topics.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("fakes")
def test_default_texts_are_docstrings(demo, tmp_path):
    assert run(demo, tmp_path) == 0
    page = (tmp_path / "out" / "topics.html").read_text(encoding="utf-8")
    assert "5 documents" in page
    assert "load_docstrings()" in page


@pytest.mark.usefixtures("fakes")
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("epsilon", ["4", "inf"])
def test_snippet_runs(demo, private, epsilon, texts):
    arguments = ["--input", str(texts), "--text", "review"] if private else []
    code = sys.modules["topic_files"].snippet(
        demo.parse_arguments([*arguments, "--epsilon", epsilon])
    )
    assert ("reviews" in code) is False
    exec(compile(code.replace("path/to/your/texts", str(texts)), "snippet", "exec"), {})


@pytest.mark.usefixtures("fakes")
@pytest.mark.parametrize(("delta", "warned"), [("0.03", True), ("0.01", False)])
def test_large_delta_is_warned_of(demo, texts, tmp_path, capsys, delta, warned):
    run(demo, tmp_path, "--input", texts, "--text", "review", "--delta", delta)
    assert ("is above 1/n = 0.02" in capsys.readouterr().err) is warned


@pytest.mark.usefixtures("fakes")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "nowhere.csv"], "nothing is at 'nowhere.csv'"),
        (
            ["--input", "{texts}", "--text", "body"],
            "column 'body' does not exist: 'reviews.csv' has 2 col",
        ),
        (["--input", "{texts}"], "column must be given: 'reviews.csv' has 2 columns"),
        (["--input", "{texts}", "--encoding", "klingon"], "encoding 'klingon' is not one"),
        (["--delimiter", ";"], "--delimiter needs --input"),
        (["--budget", "0"], "--budget: must be a number > 0"),
        (
            ["--input", "{texts}", "--text", "review", "--budget", "3"],
            "their budget is 3, of which",
        ),
        (["--epsilon", "0"], "--epsilon: must be a number > 0"),
        (["--epsilon", "-1"], "--epsilon: must be a number > 0"),
        (["--epsilon", "nan"], "--epsilon: must be a number > 0"),
        (["--epsilon", "much"], "--epsilon: must be a number > 0"),
        (["--delta", "0"], "--delta: must be a number between 0 and 1"),
        (["--delta", "1"], "--delta: must be a number between 0 and 1"),
        (["--topics", "0"], "--topics: must be a whole number >= 1"),
        (["--topics", "2.5"], "--topics: must be a whole number >= 1"),
        (["--topics", "30", "--max-features", "20"], "--topics must not exceed --max-features"),
        (["--text", "review"], "--text needs --input"),
    ],
)
def test_bad_input_ends_in_one_line_and_status_2(demo, texts, tmp_path, capsys, arguments, message):
    try:
        status = run(demo, tmp_path, *(text.format(texts=texts) for text in arguments))
    except SystemExit as stop:  # argparse leaves by itself
        status = stop.code
    out, err = capsys.readouterr()
    assert status == 2
    assert out == ""
    assert message in err.splitlines()[-1]
    assert "Traceback" not in err
    assert SECRET not in err


def test_errors_of_a_fit_are_one_line(demo, fakes, texts, tmp_path, capsys):
    fakes.topics.error = ValueError("X must\nhave more")
    assert run(demo, tmp_path, "--input", texts, "--text", "review") == 2
    assert capsys.readouterr().err.endswith("\nerror: X must have more\n")
    assert set(folder_of(tmp_path)) == {"budget.sqlite"}


def test_an_output_that_cannot_be_written_costs_nothing(demo, fakes, texts, tmp_path, capsys):
    fakes.counts.fit = lambda *_: pytest.fail("data was used")
    (tmp_path / "out").write_text("a file is in the way")
    assert run(demo, tmp_path, "--input", texts, "--text", "review") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_interruption_is_polite(demo, fakes, texts, tmp_path, capsys):
    fakes.topics.interrupt = True
    assert run(demo, tmp_path, "--input", texts, "--text", "review") == 130
    err = capsys.readouterr().err
    assert "Stopped." in err
    assert "Traceback" not in err


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_progress_says_what_runs(demo, stream):
    stream = stream()
    progress = demo.Progress(2, stream, seconds_between=0.01)
    with progress.step("first", lambda: "inner part"):
        deadline = time.monotonic() + 30  # far beyond what a loaded machine needs
        while "inner part" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.005)
    shown = stream.getvalue()
    assert "[1/2] inner part ... 0 s" in shown
    assert shown.endswith(" s\n")
    assert "[1/2] first: " in shown
    assert ("\r" in shown) is stream.isatty()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_line_on_a_terminal_shows_which_item_is_at_work(demo, stream):
    stream = stream()
    with redirect_stderr(stream):
        assert list(sys.modules["run_progress"].counted(["a", "b"], "letters")) == ["a", "b"]
    lines = ["", "[letters] 1 of 2: a", "[letters] 2 of 2: b", ""]
    assert stream.getvalue() == ("\r\x1b[K".join(lines) if stream.isatty() else "")


def test_step_in_progress_is_told_from_what_is_fitted(demo):
    steps = {"counts": FakeCounts(), "topics": FakeTopics()}
    assert demo.current_step(steps) == "choosing the word list"
    steps["counts"].privacy_report_ = None
    assert demo.current_step(steps) == "learning topics"


def test_infinite_epsilon_is_allowed_for_the_baseline(demo):
    assert math.isinf(demo.parse_arguments(["--epsilon", "inf"]).epsilon)


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_own_texts_become_private_topics(demo, tmp_path, capsys):
    """The real estimators, from a CSV to a page, within one budget."""
    subjects = (["cat", "dog", "mouse", "bird"], ["stock", "bond", "market", "price"])
    rng = np.random.default_rng(0)
    path = tmp_path / "notes.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "note"])
        for number in range(2000):
            words = rng.choice(subjects[number % 2], size=12)
            writer.writerow([number, " ".join([*words, f"{SECRET}{number}"])])
    arguments = ["--input", path, "--text", "note", "--epsilon", 3, "--topics", 2]
    assert run(demo, tmp_path, *arguments) == 0
    printed = capsys.readouterr().out
    table = printed[printed.index("Topic") : printed.index("Privacy of counts")]
    leading = [set(line.split()[2:5]) for line in table.splitlines()[1:3]]
    assert any(words <= set(subjects[0]) for words in leading)
    assert any(words <= set(subjects[1]) for words in leading)
    assert "Total: epsilon = 3 at delta = 1e-06" in printed
    page = (tmp_path / "out" / "topics.html").read_text(encoding="utf-8")
    assert "pair_moments" in page
    assert SECRET not in page + printed


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_public_words_cost_nothing_and_are_what_topics_expect(demo, tmp_path, capsys):
    path = tmp_path / "known.csv"
    path.write_text("word,count\nthe,9\nUnmistakable,2\nnumber,4\na,8\nx-y,7\npaper,1\n")
    given = ["--vocabulary", str(path), "--epsilon", "2", "--max-features", "3", "--topics", "2"]
    options = demo.parse_arguments(given)
    pipeline = demo.build(options, demo.RunBudget(tmp_path, 2.0, 1e-6, 2.0, "texts"))
    # No stop word, nothing that texts are not split into, the commonest first.
    assert pipeline["counts"].vocabulary == ["number", SECRET, "paper"]
    known = pipeline["topics"].word_frequencies
    assert [round(share * 31) for share in known] == [4, 2, 1]
    assert (pipeline["topics"].epsilon, pipeline["topics"].delta) == (2.0, 1e-6)
    texts = tmp_path / "reviews.csv"
    texts.write_text("review\n" + "number paper\n" * 300)
    assert run(demo, tmp_path, "--input", texts, *given, "--budget", "2") == 0
    out = capsys.readouterr().out
    assert "Total: epsilon = 2 at delta = 1e-06" in out
    page = (tmp_path / "out" / "topics.html").read_text(encoding="utf-8")
    assert "load_word_frequencies" in page
    assert "known.csv" not in page
    none = tmp_path / "none.csv"
    none.write_text("word,count\nthe,9\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run(demo, elsewhere, "--input", texts, "--vocabulary", none) == 2
    assert "no word but stop words" in capsys.readouterr().err


@pytest.mark.usefixtures("fakes")
@pytest.mark.parametrize("asked", [True, False])
def test_the_page_opens_when_asked(demo, texts, tmp_path, monkeypatch, asked):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    options = ["--open"] if asked else []
    assert run(demo, tmp_path, "--input", texts, "--text", "review", *options) == 0
    page = (tmp_path / "out" / "topics.html").as_uri()
    assert opened == ([page] if asked else [])
