"""The demo with PERSON=column: persons are protected, and nothing says how many texts there are."""

import os
import subprocess
import sys

import numpy as np
import pytest
from demo_fakes import SCRIPT, folder_of, run

N_TEXTS, N_PERSONS = 173, 59


pytestmark = pytest.mark.usefixtures("fakes")


@pytest.fixture
def posts(tmp_path):
    path = tmp_path / "posts.csv"
    rows = "".join(f"person{i % N_PERSONS},text number {i}\n" for i in range(N_TEXTS))
    path.write_text("author,post\n" + rows, encoding="utf-8")
    return path


def test_both_steps_get_the_same_persons(demo, fakes, posts, tmp_path):
    seen = []
    for step in (fakes.counts, fakes.topics):
        fit = step.fit

        def watched(self, X, y=None, groups=None, fit=fit):
            seen.append(groups)
            return fit(self, X, y, groups)

        step.fit = watched
    assert run(demo, tmp_path, "--input", posts, "--text", "post", "--person", "author") == 0
    assert seen == [[f"person{i % N_PERSONS}" for i in range(N_TEXTS)]] * 2


def test_persons_are_said_and_texts_are_not_counted(demo, posts, tmp_path, capsys):
    arguments = ("--input", posts, "--text", "post", "--person", "author", "--delta", "0.1")
    assert run(demo, tmp_path, *arguments) == 0
    told = "".join(capsys.readouterr())
    assert f"{N_PERSONS} persons, each with all their texts" in told
    assert "What is protected: persons" in told
    assert "publishing a person picked at random" in told
    assert "group of documents" in told
    page = folder_of(tmp_path)["topics.html"].read_text(encoding="utf-8")
    # The page's data is many digits of released probabilities.
    page = page[: page.index('<script type="application/json"')]
    assert "a person, with all their texts" in page
    assert "counts__groups=persons, topics__groups=persons" in page
    tables = [folder_of(tmp_path)[name].read_text() for name in ("topics.csv", "topic_words.csv")]
    for text in (told, page, *tables):
        assert str(N_TEXTS) not in text
        assert "person1" not in text


def test_what_the_page_shows_runs(demo, posts):
    arguments = ["--input", str(posts), "--text", "post", "--person", "author"]
    options = demo.parse_arguments(arguments)
    code = demo.write_files.__globals__["snippet"](options)
    compile(code, "snippet", "exec")
    assert "load_texts_by_person(\"path/to/your/texts\", column='post', person='author')" in code


def test_a_ledger_of_texts_does_not_go_on_with_persons(demo, posts, tmp_path, capsys):
    # What fits charge names a unit; fakes spend without one.
    from sktensor_dp import BudgetAccountant
    from sktensor_dp.privacy.accountant import LedgerEntry
    from sktensor_dp.privacy.plan import PrivacyCost

    out = tmp_path / "out"
    out.mkdir()
    ledger = BudgetAccountant(9.0, 1e-6, path=out / "budget.sqlite", scope="texts")
    ledger.charge([LedgerEntry("fit", "release", 1, PrivacyCost(mu=0.1), "document")])
    arguments = ("--input", posts, "--text", "post")
    assert run(demo, tmp_path, *arguments, "--person", "author") == 2
    assert "Nothing was charged" in capsys.readouterr().err
    assert len(ledger.entries) == 1
    assert run(demo, tmp_path, *arguments, "--delta", "1e-9") == 0


@pytest.mark.parametrize(
    "arguments", [["--person", "author"], ["--input", "a.csv", "--person", "author"]]
)
def test_a_person_needs_a_file_and_a_text(demo, arguments, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        run(demo, tmp_path, *arguments)
    assert end.value.code == 2
    assert "--person needs --" in capsys.readouterr().err


def test_the_demo_protects_persons_for_real(tmp_path):
    rng = np.random.default_rng(0)
    words = np.array([f"{stem}{i}" for stem in ("alpha", "omega") for i in range(20)])
    rows = []
    for number in range(1200):
        side = 20 * (number % 2)
        text = " ".join(rng.choice(words[side : side + 20], size=12))
        rows.append(f"author{number // 2 % 503},{text}\n")
    path = tmp_path / "posts.csv"
    path.write_text("author,post\n" + "".join(rows), encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, SCRIPT, "--input", path, "--text", "post", "--person", "author"),
            *("--topics", "2", "--epsilon", "8", "--max-features", "40"),
            *("--output", tmp_path / "out"),
        ],
        capture_output=True, text=True, check=False,
        env={**os.environ, "MPLBACKEND": "Agg"},
    )  # fmt: skip
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "503 persons, each with all their texts" in told
    assert "group of documents" in told
    assert "1,200" not in told
    assert "1200" not in told
