"""The command ``recommend``: what people may like by their own ratings and the model of a run."""

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from sktensor_dp.checks.display import counted
from sktensor_dp.cli.folder import Folder
from sktensor_dp.cli.held_folder import held
from sktensor_dp.cli.ratings import ORDER, order_of, read_ratings
from sktensor_dp.cli.run import Run
from sktensor_dp.cli.written_tables import table_of
from sktensor_dp.completion import PrivateCPCompletion

RECOMMENDED = "PRIVATE-recommendations.csv"
ONE_ORDER = (
    "The run found no direction in which persons differ: all lists have one order, but for what "
    "each person rated. "
)
POPULARITY = "Lists by popularity are hard to beat: docs/how_to/recommendations.md."


def recommend(options: argparse.Namespace) -> int:
    """Write what people may like by their own ratings, at no cost; exit status 0."""
    file = options.folder / "ratings.model"
    if not file.exists():
        raise ValueError(
            f"{file} does not exist: FOLDER must be that of a run of ratings{_earlier(file)}"
        )
    path = options.output or Path("PRIVATE-recommendations")  # apart from what may be published
    if (path / RECOMMENDED).exists():
        raise ValueError(
            f"{path / RECOMMENDED} is there already, and was left as it is: move it away, or name "
            "another folder, --output FOLDER"
        )
    with held(path):
        _recommend(options, PrivateCPCompletion.load(file), path)
    return 0


def _earlier(file: Path) -> str:
    """Clause on the folders that hold this file of earlier runs; "" without."""
    kept = sorted(str(one.parent) for one in file.parent.glob(f"earlier-*/{file.name}"))
    return f"; those of earlier runs are in {', '.join(kept)}" if kept else ""


def _titles(file: Path) -> tuple[list[str], dict[str, str]]:
    """Name of the column of titles in the file of items that a run wrote, and title of each item;
    both empty if it has none.
    """
    if not file.exists():
        return [], {}
    with file.open(encoding="utf-8", newline="") as lines:
        head, *rows = csv.reader(lines)
    column = [name for name in head[3:4] if not name.startswith("direction_")]
    return column, {item: title for _, _, item, title, *_ in rows} if column else {}


def _compare_columns(options: argparse.Namespace, of_run: Sequence[str]) -> None:
    """Warn of columns with other names than in the run; ValueError if they are exchanged."""
    for option, before, other in zip(("person", "item"), of_run, of_run[::-1], strict=False):
        column = vars(options)[option]
        said = f"--{option} {column}: in the run it was --{option} {before}"
        if column not in (before, other):
            print(f"warning: {said}", file=sys.stderr)
        elif column != before:
            raise ValueError(said)


def _left_out(n_lacking: Mapping[str, int], n_without: int, n_unknown: int) -> Iterator[str]:
    """Yield sentences on rows that lack a cell, and persons without ratings or known items."""
    if lacking := [f"{counted(n, 'row')} without {what}" for what, n in n_lacking.items() if n]:
        yield f"Left out: {' and '.join(lacking)}."
    if n_without:
        yield f"Nothing is recommended to {counted(n_without, 'person')} without a rating."
    if n_unknown:
        yield (
            f"{counted(n_unknown, 'person')} rated no known item, and got the items for anybody, "
            "at the level of their ratings."
        )


def _recommend(options: argparse.Namespace, model: PrivateCPCompletion, path: Path) -> None:
    """Write recommendations by the model of a run into the folder `path`."""
    _compare_columns(options, model.__dict__.pop("feature_names_in_", ()))
    run, items_file = Run(options), options.folder / "items.csv"
    rated, values = read_ratings(run, may_lack=["item"])
    has_item = np.array([item != "" for item in rated], dtype=bool)
    is_given = ~np.isnan(values) & has_item
    entries = np.array([run.groups, rated], object).T  # (n_rows, 2): person and item
    *_, row_names = model.row_names or [()]
    listed, (low, high) = {*row_names}, model.bounds_
    known = [(person, item) for person, item in entries[is_given] if item in listed]
    # Whoever holds the ratings reads this: exact numbers of them may be shown.
    n_ratings = counted(is_given.sum(), "rating")
    if not known:
        raise ValueError(
            f"of {n_ratings} none names a known item: --item COLUMN must hold names as in "
            f"{items_file}{_earlier(items_file)}"
        )
    persons = model.fold_in(entries[is_given], np.clip(values[is_given], low, high))
    # An item whose rating is missing may be recommended.
    found = model.recommend(
        persons, options.number, exclude=entries[is_given], by=order_of(options)
    )
    titled, titles = _titles(items_file)  # as the run wrote them, which are public
    n_known = Counter(person for person, _ in {*known})
    head = [options.person, "known_items", "rank", options.item, "expected_rating", *titled]
    table: list[list[object]] = [[*head]]
    for person, items, expected in zip(persons.units, found.rows, found.values, strict=True):
        for rank, (item, rating) in enumerate(zip(items, expected, strict=True), start=1):
            if item is not None:
                title = [titles.get(item, "") for _ in titled]
                table.append([person, n_known[person], rank, item, rating, *title])
    folder = Folder.of_last_run(path)
    folder.add(RECOMMENDED, table_of(table), private=True)
    if not folder.made.protected:  # else the manifest is of a run
        folder.finish()
    given = values[is_given]
    n_beyond = int(np.sum((given < low) | (given > high)))
    n_titles = sum(item not in listed for item in rated if item in {*titles.values()})
    for doubt in _doubts(options, model, int(is_given.sum()), n_beyond, len(known), n_titles):
        print(f"warning: {doubt}", file=sys.stderr)
    n_persons = len(persons.units)
    summary = [
        f"Known items in {len(known):,} of {n_ratings}.",
        *_left_out(
            {"an item": np.sum(~has_item), "a rating": np.sum(has_item & ~is_given)},
            len({*entries[:, 0]}) - n_persons,
            n_persons - len(n_known),
        ),
    ]
    if n_complete := sum(all(item is None for item in items) for items in found.rows):
        who = counted(n_complete, "person")
        summary.append(f"Nothing is recommended to {who} who rated all items.")
    print(" ".join(summary))
    print(
        f"Written: {path / RECOMMENDED}, {counted(options.number, 'item')} at most for each of "
        f"{counted(n_persons, 'person')}. Nothing protects it: show each person their own "
        f"rows alone. {'' if options.by_rating else ORDER}".rstrip()
    )
    print(f"{'' if model.n_components_ else ONE_ORDER}{POPULARITY}")


def _doubts(
    options: argparse.Namespace, model: PrivateCPCompletion, n: int, n_beyond: int, n_known: int,
    n_titles: int,
) -> Iterator[str]:  # fmt: skip
    """Yield doubts about columns: of `n` ratings some are out of bounds, unknown, or of a title."""
    (low, high), items_file = model.bounds_, options.folder / "items.csv"
    if n_beyond:
        yield (
            f"{n_beyond:,} of {counted(n, 'rating')} lie outside of the bounds of the run, {low:g} "
            f"to {high:g}, and count as the nearest end: is --rating {options.rating} in the same "
            "units?"
        )
    if 2 * n_known < n:
        yield (
            f"most ratings name no known item: does --item {options.item} hold names as in "
            f"{items_file}?"
        )
    if n_titles:
        yield (
            f"{counted(n_titles, 'rating')} have a known title in --item {options.item}: name the "
            f"column that has items as in {items_file}"
        )
