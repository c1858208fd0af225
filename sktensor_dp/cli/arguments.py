"""Arguments of the command ``sktensor-dp``."""

import argparse
import difflib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

# What each command does, and an example of it.
COMMANDS = {
    "topics": ("find what texts are about, and how often", "posts.csv --text post --person author"),
    "ratings": (
        "find what people like, from their ratings",
        "stars.csv --person user --item film --rating stars --bounds 1 5 --items films.csv",
    ),
    "groups": (
        "find groups of similar people in a table of numbers",
        "visits.csv --person patient --range age 0 100 --range stays 0 20",
    ),
    "forecast": ("say what to expect; nothing is read or spent", "topics --persons 3000"),
    "report": ("check privacy statements, and explain them", "check results/statement.json"),
    "budget": ("show what was spent", "show results"),
}
KINDS = {
    "forecast": ("topics", "ratings", "groups"),
    "report": ("check", "show", "registry", "schema"),
    "budget": ("show",),
}
LARGEST = 1e12
RUNS, REQUIRED, LIST = "topics ratings groups", object(), "one or more"


def number(low: float, high: float = math.inf, *, closed: bool = False) -> Callable[[str], float]:
    """Reader of a number above `low`, or of `low` where the range is closed, and below `high`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        # Where there is no upper end infinity is allowed; NaN fails every comparison.
        inside = low < value < min(high, LARGEST) or value == high == math.inf
        if not (inside or (closed and value == low)):
            ends = f"above {low:g} and below {LARGEST:g}, or inf"
            where = ends if high == math.inf else f"between {low:g} and {high:g}"
            raise argparse.ArgumentTypeError(f"must be a number {where}, got {text[:40]!r}")
        return value

    return read


def integer(low: int, high: int) -> Callable[[str], int]:
    """Reader of a whole number from `low` to `high`."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and low <= int(text[:20]) <= high):
            where = f"from {low} to {high}"
            raise argparse.ArgumentTypeError(f"must be a whole number {where}, got {text[:40]!r}")
        return int(text)

    return read


def sought(text: str) -> str:
    """Read what a forecast is to find."""
    if text not in ("epsilon", "persons"):
        raise argparse.ArgumentTypeError(f"must be epsilon or persons, got {text[:40]!r}")
    return text


def delimiter(text: str) -> str:
    """Read a character, or the word tab."""
    return "\t" if text in ("tab", "\\t") else text


# Commands, option and what follows it, reader, default, help.
OPTIONS: tuple[tuple[str, str, Any, Any, str], ...] = (
    ("topics", "FILE", Path, None, "texts; some built-in ones if there is none"),
    ("topics", "--text COLUMN", str, None, "column of the text"),
    ("topics", "--person COLUMN", str, None, "column of who wrote it: persons are protected"),
    ("topics", "--topics K", integer(1, 1000), 10, "how many"),
    ("topics", "--words N", integer(2, 10**5), 2000, "most words to use"),
    ("topics", "--stop-words WHICH", str, None, "file of words to drop, or none; else English"),
    ("topics", "--vocabulary FILE", Path, None, "public words and frequencies, which are free"),
    ("topics", "--shares", bool, False, "write the topics of each text: NOT PROTECTED"),
    ("ratings", "FILE", Path, REQUIRED, "who rated what, and how"),
    ("ratings", "--person COLUMN", str, REQUIRED, "column of who rated"),
    ("ratings", "--item COLUMN", str, REQUIRED, "column of what was rated"),
    ("ratings", "--rating COLUMN", str, REQUIRED, "column of the rating"),
    ("ratings forecast-ratings", "--bounds LOW HIGH", float, REQUIRED, "ratings there can be"),
    ("ratings", "--items FILE", Path, None, "public list of all items: lines, or a .csv"),
    ("ratings", "--items-are-public", bool, False, "no secret which items were rated"),
    ("ratings forecast-ratings", "--rank K", integer(0, 100), 3, "directions of taste"),
    ("ratings forecast-ratings", "--each N", integer(1, 10**6), 20, "ratings of a person, about"),
    ("groups", "FILE", Path, REQUIRED, "numbers, a row for each person or visit"),
    ("groups", "--range COLUMN LOW HIGH", str, LIST, "column to use, its public range; for each"),
    ("groups", "--person COLUMN", str, None, "column of whose row it is: persons are protected"),
    ("groups forecast-groups", "--groups K", integer(1, 1000), 3, "how many"),
    ("forecast-topics", "--topics K", integer(1, 1000), 10, "how many"),
    ("forecast-topics", "--words N", integer(2, 10**5), 2000, "most words to use"),
    ("forecast-ratings", "--items N", integer(1, 10**7), REQUIRED, "how many items there are"),
    ("forecast-groups", "--columns N", integer(1, 10**4), REQUIRED, "how many columns"),
    (
        "forecast-topics forecast-ratings forecast-groups", "--persons N", integer(1, 10**9),
        REQUIRED, "how many persons, or texts, or rows there are",
    ),
    (
        "forecast-topics forecast-ratings forecast-groups", "--find WHICH", sought, None,
        "the least epsilon, or the fewest persons, that would be enough",
    ),
    ("forecast-ratings", "--error X", number(0), None, "typical error that --find is to reach"),
    (
        f"{RUNS} forecast-topics forecast-ratings forecast-groups", "--epsilon E", number(0), 4.0,
        "what the run may give away; less protects more, inf adds no noise",
    ),
    (
        f"{RUNS} forecast-topics forecast-ratings forecast-groups", "--delta D", number(0, 1), 1e-6,
        "chance of no promise; far below 1 over the number of people",
    ),
    (RUNS, "--budget E", number(0), None, "for all runs of a folder; at first that of the run"),
    (RUNS, "--raise-budget E", number(0), None, "a larger one, for a folder that has a budget"),
    (RUNS, "--forecast", bool, False, "show what to expect and stop: nothing is spent"),
    (RUNS, "--anyway", bool, False, "go on where the forecast says: too few"),
    (RUNS, "--output FOLDER", Path, None, "where to write; private-topics and so on if not given"),
    (RUNS, "--open", bool, False, "open the page in a browser"),
    (RUNS, "--delimiter C", delimiter, None, "what stands between cells; 'tab' for tabs"),
    (RUNS, "--quoting HOW", str, None, "whether cells are quoted: standard or none"),
    (RUNS, "--encoding NAME", str, None, "such as cp1252; utf-8 if not given"),
    (
        "report-check report-show report-registry", "FILE", str, LIST,
        "output folder of a run, or statement.json",
    ),
    (
        "report-check report-show", "--at-most E", number(0, closed=True), math.inf,
        "refuse a larger epsilon, and what protects nothing",
    ),
    ("budget-show", "FILE", str, REQUIRED, "output folder of runs, or a ledger"),
    ("budget-show", "--scope NAME", str, None, "this data set of the ledger only"),
    ("budget-show", "--json", bool, False, "print JSON"),
)  # fmt: skip


class Parser(argparse.ArgumentParser):
    """Parser whose errors are short."""

    def error(self, message: str) -> NoReturn:
        """Print the error, and where to find help."""
        self.exit(2, f"error: {message}\nsee {self.prog} --help\n")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Options of a command line; wrong ones end the program with status 2."""
    top = Parser(
        prog="sktensor-dp", description="Learn from sensitive data, and hide every person in it.",
        epilog="sktensor-dp COMMAND --help has an example of each.", allow_abbrev=False,
    )  # fmt: skip
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parsers = {}
    for name, (does, example) in COMMANDS.items():
        said: Any = {"description": does, "epilog": f"example: sktensor-dp {name} {example}"}
        parsers[name] = commands.add_parser(name, help=does, allow_abbrev=False, **said)
        if kinds := KINDS.get(name):
            listed = "|".join(kinds)
            of = parsers[name].add_subparsers(dest="kind", required=True, metavar=listed)
            for kind in kinds:
                parsers[f"{name}-{kind}"] = of.add_parser(kind, allow_abbrev=False, **said)
    for names, usage, reader, default, does in OPTIONS:
        for name in names.split():
            _add(parsers[name], usage, reader, default, does)
    options, unknown = top.parse_known_args(arguments)
    if unknown:
        parser = parsers[options.command]
        close = difflib.get_close_matches(unknown[0], parser.format_usage().split("["), 1, 0.5)
        guess = f"; did you mean {close[0].split(']')[0]}?" if close else ""
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{guess}")
    if getattr(options, "kind", "") == "ratings" and options.find and options.error is None:
        parsers["forecast-ratings"].error("--find needs --error X, the typical error to reach")
    if options.command == "topics" and options.file is None:
        for name in ("text", "person", "delimiter", "quoting", "encoding"):
            if getattr(options, name) is not None:
                parsers["topics"].error(f"--{name} needs a FILE")
    return options


def _add(parser: argparse.ArgumentParser, usage: str, reader: Any, default: Any, does: str) -> None:
    """Add an option by its name and what follows it."""
    name, *follows = usage.split()
    more: dict[str, Any] = {"type": reader}
    if default not in (None, False, REQUIRED, LIST, math.inf):
        does += f"; {default:g} if not given"
    if not name.startswith("-"):
        nargs = {LIST: "+", None: "?"}.get(default)
        parser.add_argument("file", metavar=name, help=does, nargs=nargs, type=reader)
        return
    if not follows:
        parser.add_argument(name, action="store_true", help=does)
        return
    if len(follows) > 1:
        more["nargs"] = len(follows)
    more["action"] = "append" if default is LIST else "store"
    more["required"] = default in (REQUIRED, LIST)
    more["default"] = None if more["required"] else default
    metavar = (*follows,) if len(follows) > 1 else follows[0]
    parser.add_argument(name, metavar=metavar, help=does, **more)
