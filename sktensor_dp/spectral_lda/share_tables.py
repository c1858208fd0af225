"""Readable shares of topics by group: tables, and what intervals leave out."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from sktensor_dp.checks.display import Row, Table, as_text, counted
from sktensor_dp.spectral_lda.share_differences import Comparison, comparisons

# Marks of topics by their visibility.
MARKS = {"seen": "", "hidden": "*"}
MAY_BE_NOTHING = (
    "noise hides the topic, which may be a mixture of others: half of its texts count for these, "
    "and intervals reach from none of them to all"
)
MERGED = (
    "More topics can be seen in the texts than were asked for: where one holds several, its "
    "shares, their differences and intervals are of all of these together. More topics "
    "(--topics; n_components in Python) may part them."
)
TITLE = "Average shares of topics, by group, in texts with a word of these"
MOST_PRINTED = 6  # comparisons: each two of four groups
MOST_LISTED = 12  # clear differences, where there are more comparisons
HEAD = ("within (90%)", "of what")
IN_TABLES = "are in topic_differences.csv of the command, and in difference_table() in Python"
CLEAR = (
    "! differs clearly: nine times in ten all that are marked so do. {} Shares add up to 100%: "
    "more of one topic, as of one that is a second language, is less of all others (groups by "
    "language avoid that: docs/how_to/topics_by_group.md)."
)
TOGETHER = "Marks allow for all {} together: an interval without 0 and without ! may be chance."
# By what is known of topics that hold several (`merged_`).
ON_MERGED = {
    "yes": MERGED,
    "unknown": "Some of these topics may hold two: no release tells that there are no others.",
}
OF_TOPICS = (
    "Two of these topics have {:.0%} of their words in common: shares, and how they change, may be "
    "off by more than intervals say."
)
OF_KEPT_WORDS = (
    "Shares are of words that the private vocabulary kept: topics of rare or of many different "
    "words come out too small, and others too large, by more than intervals say. Public words "
    "(--vocabulary; vocabulary= in Python) cost nothing, and avoid that."
)


def table_on_page(shares: Any) -> Table:
    """Intervals of the shares and their differences, and what they leave out."""
    differences = comparisons(shares, 0.9)
    printed = _printed(differences)
    head, rows = _shares_by_group(shares)
    rows += [(one.name, "", *_ends(one)) for one in printed]
    notes = [*_on_comparisons(differences, printed), *_on_shares(shares)]
    return Table(TITLE, head, rows, notes, head[:1])


def text_on_screen(shares: Any, title: str = TITLE) -> str:
    """Tables of a page in 80 columns; of many clear differences the largest, one a line."""
    table = table_on_page(shares)
    n, differences = len(shares.values), comparisons(shares, 0.9)
    if len(table.rows) <= n + MOST_PRINTED:
        return as_text(_longer_down(replace(table, title=title)))
    largest = sorted(
        (
            (-min(abs(low), abs(high)), f"{cell}", f"{one.name}, topic {number}")
            for one in differences
            for number, (low, high, clear, cell) in enumerate(
                zip(one.low, one.high, one.clear, _ends(one), strict=True), start=1
            )
            if clear
        )
    )
    listed = [(cell, of_what) for _, cell, of_what in largest[:MOST_LISTED]]
    said = f"The largest of {len(largest)} clear differences; all {IN_TABLES}."
    notes = [*_on_comparisons(differences, differences), *_on_shares(shares)]
    of_shares = _longer_down(Table(title, table.head, table.rows[:n], left=table.left))
    return "\n".join(map(as_text, (of_shares, Table(said, HEAD, listed, notes, HEAD))))


def _longer_down(table: Table) -> Table:
    """Table with its rows as columns, if it is too wide and these are fewer."""
    if table.fits or len(table.rows) >= len(table.head):
        return table
    head, *rows = zip(table.head, *table.rows, strict=True)
    return replace(table, head=head, rows=rows, left=head[:1])


def _shares_by_group(shares: Any) -> tuple[Row, list[Row]]:
    """Head and rows of a table of intervals."""
    low, high = shares.interval()
    of_counts = shares._interval_of_counts(0.9)
    rows: list[Row] = []
    for row, hidden in enumerate(shares.hidden_):
        group = f"{shares.values[row]}{'*' if hidden else ''}"
        n = " to ".join(f"{end[row]:,.0f}" for end in of_counts)
        ends = zip(low[row], high[row], strict=True)
        rows.append((group, n, *("-" if hidden else f"{a:.0%} to {b:.0%}" for a, b in ends)))
    marks = [MARKS[visibility] for visibility in shares.visibility_]
    topics = (f"topic {number}{mark}" for number, mark in enumerate(marks, start=1))
    return ("group", "texts", *topics), rows


def _on_shares(shares: Any) -> list[str]:
    """Sentences on marks, and on what intervals of shares allow for and leave out."""
    allows, scaling = "noise and chance", on_scaling(shares)
    if shares.mixing_covariance_ is not None:
        allows = "noise, chance, and errors of topics (differences in proportion)"
    if scaling and shares.texts_per_person == "auto":
        scaling += (
            " Shares of a few texts of each person, drawn at random, avoid that: "
            "docs/how_to/topics_by_group.md."
        )
    notes = [
        *_on_marks(shares),
        f"Within (90%), for {allows}. {ON_MERGED[shares.merged_]} Groups that write more than "
        "others of a topic that was not found differ in these, too.",
        _on_topics(shares), OF_KEPT_WORDS * shares.private_words_, scaling,
    ]  # fmt: skip
    return [*filter(None, notes)]


def _printed(found: list[Comparison]) -> list[Comparison]:
    """Comparisons to print: of dates the trend alone, and of many groups those that are clear."""
    if found and found[-1].kind == "trend":
        return found[-1:]
    return found if len(found) <= MOST_PRINTED else [one for one in found if one.clear.any()]


def _on_comparisons(found: list[Comparison], printed: list[Comparison]) -> list[str]:
    """Say how clear differences are, and where those are that are not `printed`."""
    n_clear, n_clear_printed = (sum(bool(one.clear.any()) for one in of) for of in (found, printed))
    n_together = (printed or found)[0].n_together if found else 0
    # All that are printed are of one family.
    noun = "trend" if printed and printed[0].kind == "trend" else "difference"
    together, notes = TOGETHER.format(counted(n_together, noun)), []
    if n_clear_printed:
        notes = [CLEAR.format(together)]
    elif n_together:
        nothing = (
            "No trend is clear" if n_clear else "No topic differs clearly; those not found may"
        )
        notes = [f"{nothing}. {together}"]
    if n_left := len(found) - len(printed):
        n_others = n_clear - n_clear_printed
        clear = f" ({n_others} with a clear difference)" if n_others else ""
        notes.append(f"{counted(n_left, 'comparison')}{clear} not shown here {IN_TABLES}.")
    return notes


def _ends(one: Comparison) -> list[str]:
    """Cells of a row of differences: intervals, marked where they are clear."""
    return [
        "-" if np.isnan(low) else f"{low:+.1%} to {high:+.1%}{'!' if clear else ''}"
        for low, high, clear in zip(one.low, one.high, one.clear, strict=True)
    ]


def _on_marks(shares: Any) -> list[str]:
    """Say what marks of groups and of topics mean."""
    said = ["* of a group: noise hides how many texts there are"] * bool(shares.hidden_.any())
    if "hidden" in shares.visibility_:
        said.append(f"{MARKS['hidden']} of a topic: {MAY_BE_NOTHING}")
    return said


def _on_topics(shares: Any) -> str:
    """Say what intervals leave out where topics have most of their words in common; else ""."""
    return OF_TOPICS.format(shares.common_words_) if shares.common_words_ > 0.5 else ""


def in_brief(shares: Any) -> str:
    """Say of how many groups shares can be seen, and what their intervals leave out."""
    seen, groups = sum(~shares.hidden_), counted(len(shares.values), "group")
    said = [
        f"Shares of topics can be seen of {seen} of {groups}.",
        MERGED * (shares.merged_ == "yes"),
    ]
    said += [on_scaling(shares), _on_topics(shares), OF_KEPT_WORDS * shares.private_words_]
    return " ".join(filter(None, said))


def on_scaling(shares: Any) -> str:
    """Say what intervals leave out: who is scaled down; "" where each text is protected."""
    if shares.privacy_report_.unit != "person":
        return ""
    at_most, n = "", max(round(shares.texts_per_person_), 1)
    if shares.texts_per_person == "auto":
        at_most = f" (likely {counted(math.ceil(shares.most_beyond_), 'person')} at most)"
    return (
        "In shares by group a person counts as often as they wrote, up to about "
        f"{counted(n, 'text')} of one topic and group (of several, the norm of their numbers). "
        f"Whoever wrote more{at_most} is scaled down, also in the number of texts; if they wrote "
        "far more, and of other things, shares are farther off than their intervals say."
    )


def columns_of(shares: Any, level: float = 0.9) -> dict[str, list[Any]]:
    """Columns of a table of shares by name, with a row for each group and topic."""
    n_groups, k = shares.sums_.shape
    low, high = shares.interval(level)
    texts_low, texts_high = shares._interval_of_counts(level)
    # By a given bound for persons anybody may be scaled down.
    is_unknown = bool(on_scaling(shares)) and shares.texts_per_person != "auto"
    scaled_down = math.nan if is_unknown else math.ceil(shares.most_beyond_)
    mixing_std = np.sqrt(shares.mixing_variance(shares.shares_))
    of_cells: dict[str, Any] = {
        "share": shares.shares_, "noise_std": shares.noise_std_,
        "sampling_std": shares.sampling_std_, "mixing_std": mixing_std, "low": low, "high": high,
    }  # fmt: skip
    return {
        "group": [value for value in shares.values for _ in range(k)],
        "texts_scaled": np.repeat(np.maximum(shares.counts_.round(), 0), k).tolist(),
        "texts_low": np.repeat(texts_low.round(), k).tolist(),
        "texts_high": np.repeat(texts_high.round(), k).tolist(),
        "hidden": np.repeat(shares.hidden_, k).tolist(),
        "topic": n_groups * list(range(1, k + 1)),
        "visibility": n_groups * shares.visibility_,
        **{name: cells.ravel().tolist() for name, cells in of_cells.items()},
        "texts_per_person": [shares.texts_per_person_] * n_groups * k,
        "scaled_down_at_most": [scaled_down] * n_groups * k,
        "may_be_merged": [shares.merged_] * n_groups * k,
    }


def columns_of_differences(shares: Any, level: float = 0.9) -> dict[str, list[Any]]:
    """Columns of a table of differences by name, with a row for each comparison and topic."""
    found, k = comparisons(shares, level), len(shares.visibility_)
    of_rows = {"compared": "kind", "group": "group", "other_group": "other"}
    of_cells = ("difference", "low", "high", "clear")
    return {
        **{
            name: [getattr(one, field) for one in found for _ in range(k)]
            for name, field in of_rows.items()
        },
        "topic": len(found) * list(range(1, k + 1)),
        "visibility": len(found) * shares.visibility_,
        **{
            name: [cell for one in found for cell in getattr(one, name).tolist()]
            for name in of_cells
        },
        "may_be_merged": [shares.merged_] * len(found) * k,
    }
