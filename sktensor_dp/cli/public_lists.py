"""Public lists that the command reads; raw data is read by `datasets/own_files.py`."""

import re
from collections.abc import Sequence
from pathlib import Path

from sktensor_dp.checks.composed import composed
from sktensor_dp.datasets import own_files
from sktensor_dp.datasets.words import load_word_frequencies
from sktensor_dp.text import PrivateCountVectorizer

CELLS = re.compile(r"[\s,;|]")  # between the cells of a line
# A date with the year first: with month, day and time, or without.
DATE = re.compile(
    r"(?P<year>(?:19|20)\d\d)(?:(?P<mark>[-/.])(?P<month>0?[1-9]|1[0-2])"
    r"(?:(?P=mark)(?P<day>0?[1-9]|[12]\d|3[01])(?:[T ]\d\d?:.*)?)?)?"
)
# A date with the day first, as dots say; with slashes nobody can tell day from month.
DAY_FIRST = re.compile(r"(0?[1-9]|[12]\d|3[01])\.(0?[1-9]|1[0-2])\.((?:19|20)\d\d)(?:,? \d\d?:.*)?")
FORMS = "2025-01-31 or 31.01.2025"  # of dates, in words
BEGINS_AS_DATE = re.compile(r"(?:19|20)\d\d(?!\d)")
PARTS = {"year": 4, "month": 7, "day": 10}  # characters of a date up to its month, and so on
WHOLE_NUMBER = re.compile(r"^(\d+)\.0+$")  # number in a column that once had empty cells


def listed_name(cell: str) -> str:
    """Name of a cell, without outer blanks and the .0 of a number, to be looked up in a list."""
    return WHOLE_NUMBER.sub(r"\1", composed(cell).strip())


class ListedGroups:
    """Public list of groups. If all are years, months or days, a date counts for its own.

    Outer blanks, and capital letters unless two names differ in these alone, do not matter.

    Attributes
    ----------
    values : list of str
        Names of the groups.
    part : str
        "year", "month" or "day" if the names are such; else "".
    """

    def __init__(self, values: list[str]) -> None:
        self.values = values
        dates = [DATE.fullmatch(value) for value in values]
        forms = {None if date is None else (len(date[0]), date["mark"]) for date in dates}
        length, self._mark = (forms.pop() if len(forms) == 1 else None) or (0, "")
        self.part = next((part for part, end in PARTS.items() if end == length), "")
        folded = {value.casefold(): value for value in values}
        self._by_letters = folded if len(folded) == len(values) else {}

    def doubts(self) -> list[str]:
        """Say, in a sentence at most, that values which look like dates are not taken for such."""
        like_dates = [value for value in self.values if BEGINS_AS_DATE.match(value)]
        if self.part or not like_dates:
            return []
        odd = next((value for value in self.values if not DATE.fullmatch(value)), None)
        why = "values are dates of different forms"
        if odd is not None:
            why = f"{odd!r} is no year, month or day"
        return [
            f"warning: of --by-values {why}, so that dates count for none of their months: a text "
            f"counts only where its cell is written as a value of the list, as {like_dates[0]!r} "
            f"is. Dates such as {FORMS} need values that all are years, or all months as 2025-01, "
            "or all days."
        ]

    def group_of(self, cell: str) -> str:
        """Name by which a cell is looked up: the whole, or of a date that part."""
        name = listed_name(cell)
        if not self.part:
            return self._by_letters.get(name.casefold(), name)
        name = DAY_FIRST.sub(r"\3-\2-\1", name)
        if (date := DATE.fullmatch(name)) is None:
            return name
        parts = [date[part].zfill(2) for part in PARTS if date[part]]
        return (self._mark or "-").join(parts)[: PARTS[self.part]]


def public_names(path: Path, fallback: str | None) -> list[str]:
    """Lines of a public list, in utf-8 or the `fallback` encoding."""
    lines = own_files.decoded(
        own_files.existing_path(path), encoding_of(path, fallback)
    ).splitlines()
    return [line for line in lines if line.strip()]


def public_values(text: str, fallback: str | None) -> list[str]:
    """Read different values from a text with commas, or from lines of a file."""
    if "," in text:
        cells = text.removesuffix(",").split(",")
    elif Path(text).exists():
        cells = public_names(Path(text), fallback)
    else:
        raise ValueError(
            f"nothing is at {text!r}: --by-values takes a file with a value in each line, or "
            f"values with commas; of one value '{text},'"
        )
    values = [*map(listed_name, cells)]
    if "" in values or len({*values}) < len(values) or not values:
        raise ValueError(f"--by-values {text}: values must be different, and none empty")
    return values


def groups_ahead(text: str) -> list[str]:
    """Groups of a forecast, by their values or by their number."""
    if not text.isdecimal():
        return public_values(text, None)
    if not 1 <= len(text) <= 6 or int(text) == 0:
        raise ValueError(f"--by-values {text[:40]}: a number of groups is from 1 to 999999")
    return [*map(str, range(1, int(text) + 1))]


def public_words(path: Path, fallback: str | None) -> dict[str, float]:
    """Public words with their frequencies, the largest first; all 0 if it is a list of words."""
    if path.suffix == ".model":
        raise ValueError(
            f"--vocabulary takes public words; those of {path.name} were found in data and paid "
            "for. A run that ended after its words goes on in its own --output folder"
        )
    lines = [line.strip() for line in public_names(path, fallback)]
    have_cells = [bool(CELLS.search(line)) for line in lines]  # more than one
    if lines and not any(have_cells):
        return dict.fromkeys((composed(line).lower() for line in lines), 0.0)
    if not all(have_cells):
        few_have = 2 * sum(have_cells) <= len(lines)  # the lines of the rarer kind are wrong
        raise ValueError(
            f"--vocabulary takes a file with a word in each line, or with a word and its frequency "
            f"in each; of {path.name!r} entry {1 + have_cells.index(few_have)} has "
            f"{'several words' if few_have else 'no frequency'}"
        )
    delimiter, encoding = form_of(path, fallback)
    return load_word_frequencies(path, delimiter=delimiter, encoding=encoding)


def vocabulary(
    path: Path, fallback: str | None, left_out: list[str] | str | None, most: int
) -> dict[str, float]:
    """Public words of a file that texts may have, without those `left_out`: `most` at most."""
    words = public_words(path, fallback)
    # Split words as the vectorizer splits texts.
    split = PrivateCountVectorizer(stop_words=left_out).build_analyzer()
    kept = [word for word in words if split(word) == [word]]
    if not kept:
        raise ValueError("--vocabulary has no word but stop words: --stop-words none keeps them")
    if len(kept) > most and not any(words.values()):
        raise ValueError(
            f"--vocabulary has {len(kept)} words beside stop words, and no frequencies by "
            f"which to choose {most}: --words {len(kept)} takes all"
        )
    return {word: words[word] for word in kept[:most]}


def stop_words(text: str, fallback: str | None) -> tuple[list[str], str]:
    """Words of a file, or of several names with commas, of which english is a list; the names."""
    words: set[str] = set()
    names = [text] if Path(text).exists() else text.split(",")
    for name in names:
        if name == "english":
            words |= PrivateCountVectorizer(stop_words=name).get_stop_words()
        elif Path(name).exists():
            words.update(_stop_words_of(Path(name), fallback))
        else:
            raise ValueError(
                f"nothing is at {name!r}: --stop-words takes a file of words, several and english "
                "with commas, or none; without it English ones are dropped"
            )
    return sorted(words), ",".join(Path(name).name for name in names)


def _stop_words_of(path: Path, fallback: str | None) -> list[str]:
    """Words of a file with a word in each line, split and in the case in which texts are."""
    lines, split = public_names(path, fallback), PrivateCountVectorizer().build_analyzer()
    for number, line in enumerate(lines, start=1):
        if CELLS.search(line.strip()):
            raise ValueError(
                f"--stop-words takes a file with one word in each line, and entry {number} of "
                f"{path.name!r} has several"
            )
    words = sorted({word for line in lines for word in split(line)})
    if not words:
        raise ValueError(f"--stop-words: no line of {path.name!r} is a word of two letters or more")
    return words


def public_columns(
    path: Path, columns: Sequence[tuple[str, str]], fallback: str | None
) -> list[list[str]]:
    """Columns of a public table."""
    delimiter, encoding = form_of(path, fallback)
    return own_files.read_columns(path, columns, delimiter, "auto", encoding, public=True)


def form_of(path: Path, fallback: str | None) -> tuple[str | None, str]:
    """Delimiter and encoding of a public table, which are looked up in it."""
    delimiter, encoding = None, encoding_of(path, fallback)
    if own_files.suffix_of(path) in (".csv", ".tsv"):
        head = own_files.decoded(path, encoding).partition("\n")[0]
        # The reader of the table obeys a first line such as `sep=;`.
        if not own_files.SEPARATOR.fullmatch(head):
            delimiter = max("\t,;|", key=head.count)
    return delimiter, encoding


def encoding_of(path: Path, fallback: str | None) -> str:
    """Encoding of a public file: utf-8, else `fallback`, or that of older Windows programs."""
    try:
        own_files.decoded(own_files.existing_path(path), "utf-8")
    except ValueError:
        return fallback or "cp1252"
    return "utf-8"
