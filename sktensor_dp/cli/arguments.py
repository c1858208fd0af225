"""Arguments of the command ``sktensor-dp``."""

import argparse
import difflib
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import combinations
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn

from sktensor_dp import __version__

# For each command its purpose, an example, and one of each of its kinds, which begin with its name.
COMMANDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "topics": ("find what texts are about", "posts.csv --text post --person author", ()),
    "ratings": (
        "find what people like, from their ratings: persons are protected",
        "stars.csv --person user --item film --rating stars --bounds 1 5 --items films.csv "
        "--title name",
        (),
    ),
    "groups": (
        "find groups of similar people in a table of numbers",
        "visits.csv --person patient --range age 0 100 --log-range crp 0.1 500",
        (),
    ),
    "forecast": (
        "say what to expect; nothing is read or spent", "topics --persons 3000",
        (
            "topics --persons 3000", "ratings --persons 3000 --items 500 --bounds 1 5",
            "groups --persons 3000 --columns 4",
        ),
    ),
    "recommend": (
        "say what people may like, by their own ratings and what a run of ratings found",
        "private-ratings stars.csv --person user --item film --rating stars", (),
    ),
    "report": (
        "check privacy statements, show what they say, write a page for a data protection officer",
        "check results",
        ("check results", "show results", "page statement.json"),
    ),
    "budget": ("show what was spent", "show results", ("show results",)),
}  # fmt: skip


Reader = Callable[[str], object]


def checked(read: Callable[[str], Any], holds: Callable[[Any], bool], rule: str) -> Reader:
    """Reader of an option whose value must satisfy `holds`; the error says `rule`."""

    def reader(text: str) -> object:
        """Value of an option; an error that says the rule for a wrong one."""
        try:
            value = read(text)
        except ValueError:
            value = math.nan  # fails every comparison
        if not holds(value):
            raise argparse.ArgumentTypeError(f"must be {rule}, got {text[:40]!r}")
        return value

    return reader


def integer(low: int, high: int) -> Reader:
    """Reader of a whole number from `low` to `high`."""
    return checked(int, lambda n: low <= n <= high, f"a whole number from {low} to {high}")


POSITIVE = checked(
    float, lambda x: 0 < x < 1e12 or x == math.inf, "a number above 0 and below 1e+12, or inf"
)
PERSONS = checked(int, lambda n: 0 < n <= 10**9, "a number of persons (--person names a column)")
TOPICS = checked(
    int, lambda k: 2 <= k <= 1000, "a whole number from 2 to 1000: one is how often words are used"
)
# Components may leave biases of two modes a tenth of the variance, but no less.
SHARE = checked(float, lambda x: 0 <= x <= 0.9, "a number from 0 to 0.9")
FRACTION = checked(float, lambda x: 0 < x < 1, "a number between 0 and 1")


def delimiter(text: str) -> str:
    """Read a character, or the word tab."""
    return "\t" if text in ("tab", "\\t") else text


USAGES = {"recommend": "FOLDER FILE"}
REQUIRED, LIST, REPEATED = object(), object(), object()
RUNS, FORECASTS = "topics ratings groups", "forecast-topics forecast-ratings forecast-groups"
READS = f"{RUNS} recommend"
STATEMENT_FILE = "output folder of a run, statement.json, or a model of Python"
# Options: commands; name and placeholder of the value; reader or choices; default as written; help.
OPTIONS: tuple[tuple[str, str, Reader | type | tuple[str, ...], object, str], ...] = (
    ("topics", "FILE", Path, None, "texts; some built-in ones if there is none"),
    ("topics", "--text COLUMN", str, None, "column of the text"),
    ("topics", "--person COLUMN", str, None, "column of the author: all texts of one count as "
     "one, and are protected"),
    ("topics forecast-topics", "--topics K", TOPICS, 10, "how many"),
    ("topics forecast-topics", "--words N", integer(2, 10**5), 2000, "most words to use"),
    ("topics forecast-topics", "--words-per-text N", integer(1, 10**6), None,
     "about how many words a text has, or all texts of a person, without stop words: a guess; 100 "
     "if not given"),
    ("topics", "--stop-words WHICH", str, None,
     "words to drop: a file, english,FILE for both, or none; english if not given"),
    ("topics", "--vocabulary FILE", Path, None, "public words, best with frequencies: free"),
    ("topics", "--shares", bool, False,
     "write the topics of each text, also of another FILE by a finished run: NOT PROTECTED"),
    ("topics", "--by COLUMN", str, None, "column of groups, to make shares of topics in each; a "
     "date counts for its month if --by-values are months"),
    ("topics", "--by-values LIST", str, None, "public list of all groups: jan,feb or a file"),
    ("forecast-topics", "--by-values LIST", str, None,
     "to forecast shares of topics by group, too: how many groups, or a list of them as for a run"),
    ("topics", "--texts-per-person N", integer(1, 10**6), None,
     "with --by: those with more count as if with N; noise grows with N"),
    ("topics", "--id COLUMN", str, None, "column of names of texts, for the file of --shares"),
    ("recommend", "FOLDER", Path, REQUIRED, "output folder of a run of ratings"),
    ("ratings recommend", "FILE", Path, REQUIRED, "who rated what, and how"),
    ("ratings recommend", "--person COLUMN", str, REQUIRED, "column of the user who rated"),
    ("ratings recommend", "--item COLUMN", str, REQUIRED,
     "column of what was rated; join item and month for averages by month"),
    ("ratings recommend", "--rating COLUMN", str, REQUIRED, "column of the rating"),
    ("recommend", "--output FOLDER", Path, None, "where to write; PRIVATE-recommendations if not "
     "given"),
    ("recommend", "--number N", integer(1, 1000), 10, "items for each person"),
    ("ratings recommend", "--by-rating", bool, False, "put items in order of ratings alone; else "
     "of how likely they are to be chosen and liked"),
    ("ratings forecast-ratings", "--bounds LOW HIGH", float, REQUIRED, "ratings there can be"),
    ("ratings", "--items FILE", Path, None, "public list of all items: lines, or a table with "
     "the column of --item"),
    ("ratings", "--title COLUMN", str, None, "column of --items with titles to show"),
    ("ratings", "--items-are-public", bool, False, "no secret which items were rated"),
    ("ratings forecast-ratings", "--rank K", integer(0, 100), 3,
     "directions in which people differ"),
    ("ratings forecast-ratings", "--each N", integer(1, 10**6), 20,
     "items that a person rates, about"),
    ("forecast-ratings", "--stays N", integer(2, 10**7), None, "how many neighbouring items "
     "a person rates, as months of a rotating panel; in place of --each"),
    ("ratings forecast-ratings", "--deviation X", POSITIVE, None, "typical distance of "
     "ratings from their average; see --forecast"),
    ("ratings forecast-ratings", "--direction-share X", SHARE, None,
     "part of the variance that --rank directions hold, a guess; .08 if not given"),
    ("groups", "FILE", Path, REQUIRED, "numbers, a row for each person or visit"),
    ("groups", "--range COLUMN LOW HIGH", str, REPEATED, "column to use, its public range; for "
     "each"),
    ("groups", "--log-range COLUMN LOW HIGH", str, REPEATED, "positive numbers, as laboratory "
     "values: takes logs"),
    ("groups", "--nonnormal COLUMN...", str, None, "which of these have few values (0 and "
     "1, scores), many equal ones (zeros, a detection limit) or a long tail"),
    ("groups", "--category COLUMN VALUE...", str, REPEATED, "categories, and all that are "
     "public; 'not given' counts missing cells"),
    ("groups", "--person COLUMN", str, None, "persons, if some have several rows: these count as "
     "one"),
    ("topics groups", "--one-row-each", bool, False,
     "with --person: each has one row, unchecked"),
    ("ratings recommend", "--missing CELL...", str, None,
     "how missing values are written, beside empty cells; NA and NaN if not given"),
    ("groups", "--missing CELL...", str, None, "how missing values are written, beside empty "
     "cells, in all columns, or in one: COLUMN=CELL; NA and NaN if not given"),
    ("groups forecast-groups", "--groups K", integer(1, 1000), None,
     "at most so many; 3 if not given"),
    ("forecast-ratings", "--items N", integer(1, 10**7), REQUIRED, "how many items there are"),
    ("forecast-groups", "--columns N", integer(1, 10**4), REQUIRED, "how many columns"),
    (READS, "--normalise-labels", bool, False, "'A12' and 'a12' are one person, else two: "
     "ignores case, outer blanks and Unicode form"),
    (FORECASTS, "--persons N", integer(1, 10**9), REQUIRED, "how many persons, texts or rows"),
    (RUNS, "--no-check", bool, False, "skip the check of rows, or go on where it stopped"),
    ("topics groups", "--add-remove", bool, False, "hide also who is in the data, and how many"),
    ("topics groups", "--persons N", PERSONS, None, "with --add-remove: a guess of their "
     "number"),
    (FORECASTS, "--find WHICH", ("epsilon", "persons"), None,
     "the least epsilon, or the fewest persons, that would be enough, and its forecast"),
    ("forecast-ratings", "--error X", POSITIVE, None,
     "typical error of predictions that --find is to reach"),
    ("forecast-ratings", "--average-error X", POSITIVE, None,
     "standard error of averages of items that --find is to reach, without directions (--rank 0)"),
    ("forecast-groups", "--deviation X", FRACTION, None, "typical distance of numbers from their "
     "group's average, as a part of the column's range; 0.25 if not given"),
    ("forecast-groups", "--within X", FRACTION, None, "how far 90%% intervals may reach to either "
     "side of averages, as a part of the column's range, for --find"),
    (f"{RUNS} {FORECASTS}", "--epsilon E", POSITIVE, "4",
     "what the run may give away; less protects more, inf adds no noise"),
    (f"{RUNS} {FORECASTS}", "--delta D", FRACTION, "1e-6",
     "limits how often epsilon is exceeded: far below 1 / persons"),
    (RUNS, "--budget E", POSITIVE, None, "for all runs of a folder; else that of the first one"),
    (RUNS, "--raise-budget E", POSITIVE, None, "a larger one, for a folder that has a budget"),
    (RUNS, "--forecast", bool, False, "show what to expect and stop: nothing is spent"),
    (RUNS, "--anyway", bool, False, "go on where data are (likely) too few"),
    (RUNS, "--again", bool, False, "pay again for what an earlier run paid for"),
    (RUNS, "--output FOLDER", Path, None, "where to write; private-topics and so on if not given"),
    (READS, "--delimiter C", delimiter, None, "what stands between cells; 'tab' for tabs"),
    (READS, "--quoting HOW", ("standard", "none"), None, "whether cells are quoted"),
    ("ratings recommend groups", "--decimal C", (".", ","), None, "decimal mark; else a point"),
    (READS, "--encoding NAME", str, None, "such as cp1252; utf-8 if not given"),
    ("report-check report-show", "FILE", Path, LIST, STATEMENT_FILE),
    ("report-page", "FILE", Path, REQUIRED, STATEMENT_FILE),
    ("report-page", "--output FOLDER", Path, None, "where to write; beside FILE if not given"),
    ("report-check report-show", "--at-most E", POSITIVE, math.inf,
     "refuse a larger epsilon, of all runs in the folder too, and what protects nothing"),
    ("budget-show", "FILE", str, REQUIRED, "output folder of runs, or a ledger"),
    ("budget-show", "--json", bool, False, "print JSON"),
)  # fmt: skip


# Options that name one column. argparse keeps the last of two without a word: `parse` refuses two.
OF_ONE_COLUMN = sorted({usage.split()[0] for _, usage, *_ in OPTIONS if usage.endswith(" COLUMN")})


class Help(argparse.HelpFormatter):
    """Help that fits a screen of 45 lines of 80 characters: values that repeat end in "..."."""

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.nargs != "+" or action.metavar is None:
            return super()._format_args(action, default_metavar)
        names = action.metavar if isinstance(action.metavar, tuple) else (action.metavar,)
        return f"{' '.join(names)}..."


class Parser(argparse.ArgumentParser):
    """Parser with short help and error messages."""

    def __init__(self, **options: Any) -> None:
        super().__init__(add_help=False, allow_abbrev=False, formatter_class=Help, **options)
        self.options = self.add_argument_group("options")  # the file, too, is under this heading
        self.options.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)

    def error(self, message: str) -> NoReturn:
        """Print the error, and where to find help."""
        self.exit(2, f"error: {message}\nsee {self.prog} --help\n")


def _parsers() -> tuple[Parser, dict[str, Parser]]:
    """Parser of the program, and those of commands and of their kinds, as "report-show"."""
    top = Parser(
        prog="sktensor-dp", description="Learn from sensitive data, and hide every person in it.",
        epilog="sktensor-dp COMMAND --help has an example of each.",
    )  # fmt: skip
    version = f"sktensor_dp {__version__}"
    top.options.add_argument(
        "--version", action="version", version=version, help="show the version"
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parsers: dict[str, Parser] = {}
    for command, (does, example, examples) in COMMANDS.items():
        usage = None if examples else f"sktensor-dp {command} {USAGES.get(command, 'FILE')} OPTIONS"
        shown = f"example: sktensor-dp {command} "
        parsers[command] = commands.add_parser(
            command, help=does, description=does, usage=usage, epilog=shown + example
        )
        if examples:
            by_kind = {example.split()[0]: example for example in examples}
            kinds = parsers[command].add_subparsers(
                dest="kind", required=True, metavar="|".join(by_kind)
            )
            for kind, example in by_kind.items():
                added = kinds.add_parser(kind, description=does, epilog=shown + example)
                parsers[f"{command}-{kind}"] = added
    return top, parsers


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Options of a command line; wrong ones end the program with status 2."""
    top, parsers = _parsers()
    defaults: dict[str, dict[str, object]] = {name: {} for name in parsers}  # of their options
    for names, usage, reader, default, does in OPTIONS:
        option, *values = usage.split()
        for name in names.split():
            defaults[name][option] = default
            _add(parsers[name], option, values, reader, default, does)
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["--forecast"]:  # before the command line of a run
        arguments = [*arguments[1:], *arguments[:1]]
    options, unknown = top.parse_known_args(arguments)
    parsed = vars(options)
    for option in ("kind", *(usage.split()[0] for _, usage, *_ in OPTIONS)):
        parsed.setdefault(_attribute(option), None)  # options of other commands
    name = "-".join(filter(None, (options.command, options.kind)))
    parser = parsers[name]
    if unknown:  # before what is required, which may be misspelt
        parser.error(_unrecognized(unknown, name, defaults[name]))
    counts = Counter(one.partition("=")[0] for one in arguments)
    options.given = {_attribute(one) for one in counts if one.startswith("--")}
    # Options of several values, or of one column, are refused twice; of others the last counts.
    for option in ("--missing", "--by-values", "--nonnormal", *OF_ONE_COLUMN):
        if counts[option] > 1:
            once = "for one column, into which to join others"
            once = once if option in OF_ONE_COLUMN else "with all of its values"
            parser.error(f"{option} is given twice: give it once, {once}")
    required = [option for option, default in defaults[name].items() if default is REQUIRED]
    if options.find == "persons":
        required.remove("--persons")
    if lacking := [option for option in required if parsed[_attribute(option)] is None]:
        parser.error(f"the following arguments are required: {', '.join(lacking)}")
    _refuse_conflicts(parser, options)
    return options


def _unrecognized(unknown: list[str], command: str, known: Iterable[str]) -> str:
    """Message on `unknown` arguments, with the `known` options that are close to those misspelt."""
    misspelt = [one.partition("=")[0] for one in unknown if one.startswith("-")]
    near = [_close(one, command, [*known]) for one in misspelt]
    close = " and ".join(match for matches in near for match in matches)
    guess = f"; did you mean {close}?" if close else ""
    return f"unrecognized arguments: {' '.join(unknown)}{guess}"


def _close(misspelt: str, command: str, known: list[str]) -> list[str]:
    """Option of a command that is spelt nearly alike, or has the word in its help; or none."""
    word = misspelt.strip("-").removesuffix("s")
    named = [
        (default is not REQUIRED, usage.split()[0]) for names, usage, _, default, does in OPTIONS
        if command in names.split() and word in re.findall(r"(\w{3,}?)s?\b", does)
    ]  # fmt: skip
    # Of several options whose help has the word take one that must be given, or else the first.
    first = [option for _, option in sorted(named, key=itemgetter(0))[:1]]
    alike = partial(difflib.get_close_matches, misspelt, known, 1)
    return alike(cutoff=0.75) or first or alike(cutoff=0.6)


def _refuse_conflicts(parser: Parser, options: argparse.Namespace) -> None:
    """End the program for options that need each other, or exclude each other."""
    parsed = vars(options)
    if options.kind == "ratings" and options.find and not (options.error or options.average_error):
        parser.error("--find needs --error X or --average-error X, to reach")
    for target in ("error", "average_error", "within"):
        if parsed[target] is not None and not options.find:
            parser.error(f"--{target.replace('_', '-')} needs --find epsilon or --find persons")
    if options.stays is not None and "each" in options.given:
        parser.error("--stays N is in place of --each N: give one")
    if options.average_error is not None:
        if options.rank and "rank" in options.given:
            parser.error("--average-error needs --rank 0: directions take budget from averages")
        options.rank = 0
    if options.add_remove is not None and options.add_remove != (options.persons is not None):
        parser.error("--add-remove and --persons N go together")
    if options.normalise_labels and options.person is None:
        _refuse_or_ignore(parser, options, "normalise_labels", "needs --person COLUMN")
    if options.one_row_each and options.person is None:
        _refuse_or_ignore(parser, options, "one_row_each", "needs --person COLUMN")
    columns = [*combinations(("text", "person", "item", "rating", "by"), 2), ("item", "title")]
    for one, other in columns:  # "title" is of the public list, which "item" names too
        if parsed[one] is not None and parsed[one] == parsed[other]:
            parser.error(f"--{one} and --{other} both name column {parsed[one]!r}")
    if options.command == "topics" and (options.by is None) != (options.by_values is None):
        parser.error("--by COLUMN and --by-values LIST go together: a public list of its values")
    if options.texts_per_person and not (options.by and options.person):
        _refuse_or_ignore(
            parser, options, "texts_per_person", "needs --by COLUMN and --person COLUMN; "
            "--one-row-each says that each person has one text",
        )  # fmt: skip
    if options.one_row_each and (options.texts_per_person or 1) > 1:
        parser.error("--one-row-each is --texts-per-person 1: give one")
    if options.id is not None and not options.shares:
        _refuse_or_ignore(parser, options, "id", "needs --shares: no other file has names of texts")
    if options.command == "topics" and options.file is None:
        for name in ("text", "person", "by", "id", "delimiter", "quoting", "encoding"):
            if parsed[name] is not None:
                parser.error(f"--{name} needs a FILE")


def _refuse_or_ignore(parser: Parser, options: argparse.Namespace, name: str, message: str) -> None:
    """End the program for an option that would do nothing; a forecast warns and leaves it out."""
    message = f"--{name.replace('_', '-')} {message}"
    if not options.forecast:
        parser.error(message)
    print(f"warning: a run would be refused: {message}", file=sys.stderr)
    setattr(options, name, None)


def _add(
    parser: Parser, name: str, values: list[str], reader: Any, default: object, does: str
) -> None:
    """Add an option, or the file, by its name and the names of the values that follow it."""
    if name.isupper():  # the file, or files
        nargs = {REQUIRED: None, LIST: "+", None: "?"}[default]
        options = parser.options
        options.add_argument(name.lower(), metavar=name, help=does, nargs=nargs, type=reader)
        return
    if not values:
        parser.options.add_argument(name, action="store_true", help=does)
        return
    several: dict[str, Any] = {"nargs": len(values)} if len(values) > 1 else {}
    if values[-1].endswith("..."):
        values, several = [*values[:-1], values[-1].rstrip(".")], {"nargs": "+"}
    if default in (None, REQUIRED, REPEATED):
        kept = None
    else:
        kept = default
        does += f"; {default} if not given" if default != math.inf else ""
    parser.options.add_argument(
        name, metavar=tuple(values) if len(values) > 1 else values[0], help=does,
        default=kept, **several, **{"choices" if isinstance(reader, tuple) else "type": reader},
        action="append" if default is REPEATED else "store",
    )  # fmt: skip


def _attribute(name: str) -> str:
    """Name of an option, or of the file, among those that were parsed."""
    return name.strip("-").replace("-", "_").lower()
