"""Wrong inputs: one line that says what to do, nothing of the data, nothing spent."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import SECRET, write_posts

import sktensor_dp
from sktensor_dp.cli.arguments import parse

ROOT = Path(sktensor_dp.__file__).parents[1]
TEXT = ("topics", "posts.csv", "--text", "post")
STARS = ("--person", "author", "--item", "post", "--rating", "age", "--items-are-public")

SIZES = ("--persons", 300, "--items", 20, "--bounds", 1, 5)
RATED = ("--person", "who", "--item", "what", "--rating", "stars", "--bounds", 1, 5)


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    write_posts(tmp_path / "posts.csv", 300, 150)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("author,post,age\n")
    (tmp_path / "nobody.csv").write_text(f"author,post\n,{SECRET}\nann,{SECRET}\n")
    (tmp_path / "broken.csv").write_text(f'author,post\nann,"{SECRET}\nbob,{SECRET}\n')
    (tmp_path / "latin.csv").write_bytes(f"author,post\nann,{SECRET} ".encode() + b"\xe9\n")
    (tmp_path / "blanks.csv").write_text(f"author,post,age\n{SECRET},hi,1\n{SECRET} ,ho,2\n")
    (tmp_path / "posts.xlsx").write_bytes(b"PK")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "u.item").write_bytes(b"caf\xe9\n")
    (tmp_path / "odd").write_bytes(b"\x81\n")
    (tmp_path / "letters").write_text("a\ni\n")
    (tmp_path / "list.csv").write_text("id;title\nx;Up\n")
    (tmp_path / "items.csv").write_text("what;title\nx;Up\n")
    (tmp_path / "stars.tsv").write_text("who\twhat\tstars\na\tx\t4\n")
    (tmp_path / "twice.csv").write_text("what,title\nx,Up\ny,Up\nx,Down\n")
    (tmp_path / "halves.csv").write_text("who,what,stars\n1,x,4.0\n2,y,-.5\n")
    (tmp_path / "pipes.csv").write_text("who|what|stars\na|x|4\n")
    (tmp_path / "blank.tsv").write_text("who\twhat\tstars\na\t \t4\n")
    (tmp_path / "swapped.csv").write_text("count,word\n5,the\n")
    (tmp_path / "phrases.txt").write_text("good\nnot good\nbad\n")
    (tmp_path / "numbers.txt").write_text("good 5\nbad\nof 3\n")
    half = {"who": "a", "what": "\ud800", "stars": 4}
    (tmp_path / "half.jsonl").write_text(json.dumps(half))
    (tmp_path / "comma.tsv").write_text("who\twhat\tstars\na\tx\t4,5\n")
    (tmp_path / "several.tsv").write_text("who\twhat\tstars\na\tx\tn/a\nNA\tx\t4\n")
    (tmp_path / "unknown.tsv").write_text("who\twhat\tstars\na\tx\t4\nNA\t?\t4\n")


WRONG = [
    (("topics", "nowhere.csv"), "nothing is at 'nowhere.csv'"),
    (("topics", "posts.csv"), "--text COLUMN must be given"),
    (("topics", "posts.csv", "--text", "body"), "column 'body' does not exist"),
    ((*TEXT, "--person", "who"), "column 'who' does not exist"),
    (
        (*TEXT, "--persn", "author"),
        "unrecognized arguments: --persn author; did you mean --person?",
    ),
    ((*TEXT, "--persons", "author"), "must be a number of persons (--person names a column)"),
    ((*TEXT, "--persons", 9), "--add-remove and --persons N go together"),
    (("topics", "posts.csv", "--text", "Post "), "in 'posts.csv'; did you mean 'post'?"),
    ((*TEXT, "--person", "authors"), "does not exist in 'posts.csv'; did you mean 'author'?"),
    ((*TEXT, "--delimiter", ";"), "has 1 column, is the delimiter another? Else give the name"),
    (("topics", "posts.xlsx", "--text", "post"), "'posts.xlsx' is a spreadsheet: save its sheet"),
    (("topics", "-", "--text", "post"), "standard input cannot be read several times"),
    ((*TEXT, "--pers", "author"), "unrecognized arguments: --pers author"),
    (
        (*TEXT, "--by", "month", "--by-values", "a", "--by-values", "b"),
        "--by-values is given twice",
    ),
    ((*TEXT, "--text", "title"), "--text is given twice: give it once, for one column, into which"),
    (("topics", "posts.csv", "--columns", "post"), "--columns post; did you mean --text?"),
    (("topics", "posts.csv"), "--text COLUMN must be given: 'posts.csv' has "),
    (("forecast", "topics", "--texts", 6000), "--texts 6000; did you mean --persons?"),
    ((*TEXT, "--encoding", "klingon"), "encoding 'klingon' is not one"),
    ((*TEXT, "--quoting", "maybe"), "--quoting: invalid choice"),
    ((*TEXT, "--delimiter", ";;"), "delimiter must be one character"),
    ((*TEXT, "--vocabulary", "nowhere.csv"), "nothing is at 'nowhere.csv'"),
    ((*TEXT, "--stop-words", "german"), "nothing is at 'german': --stop-words takes a file"),
    ((*TEXT, "--stop-words", "posts.csv"), "and entry 1 of 'posts.csv' has several"),
    ((*TEXT, "--stop-words", "letters"), "no line of 'letters' is a word of two letters or more"),
    (
        ("topics", "posts.csv", "--text", "post", "--person", "post"),
        "--text and --person both name",
    ),
    (
        (*TEXT, "--shares", "--id", "author"),
        "column 'author' of --id has one name for several texts",
    ),
    (("topics", "empty.csv", "--text", "post"), "'empty.csv' is empty"),
    (("topics", "header.csv", "--text", "post"), "holds no row"),
    (
        ("topics", "nobody.csv", "--text", "post", "--person", "author"),
        "row 1 of 'nobody.csv' has no person in column 'author'; each row needs one: leave",
    ),
    *(
        ((kind, "unknown.tsv", *more), "has no person in column 'who'; each row needs one")
        for kind, *more in (
            ("topics", "--text", "what", "--person", "who"),
            ("groups", "--range", "stars", 0, 9, "--person", "who"),
            ("groups", "--range", "stars", 0, 9, "--person", "who", "--missing", "?"),
            ("ratings", *RATED, "--items-are-public"),
        )
    ),
    *(
        ((kind, "blanks.csv", *more), "blanks at either end")
        for kind, *more in (
            ("topics", "--text", "post", "--person", "author"),
            ("groups", "--range", "age", 0, 9, "--person", "author"),
            ("ratings", *STARS[:-2], "age", "--items-are-public", "--bounds", 1, 5),
        )
    ),
    *(
        (
            (kind, "halves.csv", *more, "--person", "stars"),
            "'stars' of 'halves.csv' should hold pers",
        )
        for kind, *more in (
            ("topics", "--text", "what"),
            ("groups", "--range", "who", 0, 9),
            ("ratings", "--item", "what", "--rating", "who", *RATED[-3:], "--items-are-public"),
        )
    ),
    ((*TEXT, "--normalise-labels"), "--normalise-labels needs --person"),
    (("topics", "broken.csv", "--text", "post"), "--quoting none"),
    (("topics", "latin.csv", "--text", "post"), "--encoding cp1252"),
    (("topics", "list.json", "--text", "post"), "the suffix of 'list.json' is not supported"),
    (("topics", "--text", "post"), "--text needs a FILE"),
    (("topics", "--epsilon", "0"), "--epsilon: must be a number above 0"),
    (("topics", "--epsilon", "nan"), "--epsilon: must be a number above 0"),
    (("topics", "--epsilon", "1e20"), "--epsilon: must be a number above 0 and below 1e+12"),
    (("topics", "--budget", "-1"), "--budget: must be a number above 0"),
    (("topics", "--delta", "1"), "--delta: must be a number between 0 and 1"),
    (("topics", "--topics", "2.5"), "--topics: must be a whole number"),
    (("topics", "--topics", "1"), "from 2 to 1000: one is how often words are used, got '1'"),
    (("topics", "--topics", "9" * 5000), "--topics: must be a whole number"),
    (("topics", "--words", "99999999999"), "--words: must be a whole number"),
    (("topics", "posts.csv", "--text", "post", "--budget", 3), "does not fit in the budget"),
    (("ratings", "posts.csv", *STARS), "the following arguments are required: --bounds"),
    (
        ("ratings", "posts.csv", *STARS, "--bound", 1, 5, "--itms", "list.csv"),
        "--bound 1 5 --itms list.csv; did you mean --bounds and --items?",
    ),
    (
        ("ratings", "stars.tsv", *RATED[:5], "who", *RATED[6:]),
        "--person and --rating both name column",
    ),
    (
        ("ratings", "stars.tsv", *RATED[:3], "stars", "--rating", "what", *RATED[6:], *STARS[-1:]),
        "'what' of 'stars.tsv' should hold num",
    ),
    (("ratings", "header.csv", *STARS, "--bounds", 1, 5), "holds no row"),
    (("ratings", "posts.csv", *STARS, "--bounds", 5, 1), "--bounds LOW HIGH needs two numbers"),
    (("ratings", "posts.csv", "--bounds", 1, 5), "required: --person, --item, --rating"),
    (("ratings", "half.jsonl", *RATED, "--items-are-public"), "that no file can hold (surrogates)"),
    (
        ("ratings", "stars.tsv", *RATED, "--items", "twice.csv", "--title", "title"),
        "--items has several titles for 'x': is --item the column of its names?",
    ),
    (
        ("ratings", "pipes.csv", *RATED[:3], "x", *RATED[4:], "--items-are-public"),
        "column 'x' does not",
    ),
    (
        ("ratings", "blank.tsv", *RATED, "--items-are-public"),
        "has no item in column 'what'; each row needs one: leave such rows out of the",
    ),
    ((*TEXT, "--vocabulary", "swapped.csv"), "in this order: its first cell is the number"),
    ((*TEXT, "--vocabulary", "phrases.txt"), "of 'phrases.txt' entry 2 has several words"),
    ((*TEXT, "--vocabulary", "numbers.txt"), "of 'numbers.txt' entry 2 has no frequency"),
    (
        ("ratings", "several.tsv", *RATED, "--items-are-public"),
        "categories need --category). row 2 of 'several.tsv' has no person in column ",
    ),
    (("ratings", "comma.tsv", *RATED, "--items-are-public"), "decimal commas need --decimal ,"),
    (("ratings", "stars.tsv", *RATED, "--items", "odd"), "'odd' is not cp1252 text at line 1"),
    (("ratings", "stars.tsv", *RATED, "--items", "list.csv"), "column 'what' does not exist"),
    (
        ("ratings", "posts.csv", *RATED, "--items-are-public"),
        "the item (pandas.melt makes a row of each cell of a wide table), exactly",
    ),
    (
        ("ratings", "stars.tsv", *RATED, "--items", "items.csv", "--title", "name"),
        "column 'name' does not exist: 'items.csv' has 2 columns; give the name of the one that "
        "holds the title, of 'what', 'title'",
    ),
    (("ratings", "stars.tsv", *RATED, "--title", "name", "--items-are-public"), "--title needs"),
    (
        ("ratings", "stars.tsv", *RATED, "--items", "items.csv", "--title", "what"),
        "--item and --title both name column 'what'",
    ),
    (("groups", "posts.csv"), "--range COLUMN LOW HIGH must be given"),
    (
        ("forecast", "groups", "--rows", 5000, "--columns", 3),
        "unrecognized arguments: --rows 5000; did you mean --persons?",
    ),
    (
        ("forecast", "ratings", *SIZES, "--error", 0.9),
        "--error needs --find epsilon or --find pers",
    ),
    (("forecast", "ratings", *SIZES, "--find", "epsilon"), "--find needs --error X or --average-e"),
    (
        ("forecast", "ratings", *SIZES, "--find", "epsilon", "--average-error", 0.1, "--rank", 2),
        "--average-error needs --rank 0: directions take budget from averages",
    ),
    (
        ("forecast", "ratings", *SIZES, "--direction-share", 0.98),
        "argument --direction-share: must be a number from 0 to 0.9, got '0.98'",
    ),
    (("forecast",), "required"),
    (("budget",), "required"),
    (("budget", "show"), "required"),
    (("budget", "spend", "posts.csv"), "invalid choice"),
    (("report",), "required"),
    (("report", "check"), "required"),
    (("report", "other", "posts.csv"), "invalid choice"),
    (("report", "check", "posts.csv", "--at-most", "nan"), "--at-most: must be a number above 0"),
    (("recommend",), "required: FOLDER, FILE"),
    ((), "required: COMMAND"),
]


@pytest.mark.parametrize(("arguments", "told"), WRONG, ids=lambda a: " ".join(map(str, a))[:40])
def test_wrong_input_ends_in_one_line(command, arguments, told, tmp_path):
    done = command(*arguments, status=2)
    assert done.out == ""
    *_, last = (line for line in done.err.splitlines() if not line.startswith("see sktensor-dp"))
    assert told in last
    assert "usage:" not in done.err
    assert "Traceback" not in done.err
    assert SECRET not in done.err
    assert not [*tmp_path.glob("*/")]  # no folder is left
    assert not list(tmp_path.glob("*/*journal"))


@pytest.mark.parametrize(
    "name",
    [
        *("", "topics", "ratings", "groups", "recommend", "forecast", "report", "budget"),
        *("forecast topics", "forecast ratings", "forecast groups", "budget show"),
        *(f"report {kind}" for kind in ("check", "show", "page")),
    ],
)
def test_help_fits_a_screen_and_has_an_example(command, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = command(*name.split(), "--help")
    assert len(done.out.splitlines()) <= 45
    *_, example = done.out.rstrip().split("\n\n")
    assert f"sktensor-dp {name or 'COMMAND'} " in f"{example} "
    if name.startswith(("forecast ", "report ")):
        assert parse(example.removeprefix("example: sktensor-dp ").split()).kind in name


def test_it_tells_its_version(command):
    assert command("--version").out == f"sktensor_dp {sktensor_dp.__version__}\n"


def test_it_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "sktensor_dp", "--version"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("sktensor_dp")


def made(*variables: str) -> subprocess.CompletedProcess[str]:
    """What `make demo` would run, without running it; no environment is set up."""
    # Where make runs the tests, it would hand its own options on.
    env = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    return subprocess.run(
        ["make", "--dry-run", "demo", *variables],
        cwd=ROOT, capture_output=True, text=True, check=False, env=env,
    )  # fmt: skip


def test_make_hands_options_on_and_refuses_what_it_does_not_know():
    line = made("INPUT=my posts.csv", "TEXT=post", "RAISE_BUDGET=8", "SHARES=0", "FORECAST=yes")
    words = line.stdout.replace("\\\n", " ").split("sktensor-dp ")[-1].split()
    assert " ".join(words) == 'topics "my posts.csv" --text="post" --raise-budget="8" --forecast'
    assert "--shares" not in line.stdout
    for wrong in ("PERSONS=author", "input=mine.csv", "SHARES=maybe"):
        done = made(wrong)
        assert done.returncode == 2
        assert wrong.split("=")[0] in done.stderr
        assert not re.search("sktensor-dp topics", done.stdout)
