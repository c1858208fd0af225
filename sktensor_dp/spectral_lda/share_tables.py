"""Readable shares of topics by group: tables, and what intervals leave out."""

import math
from typing import Any

import numpy as np

from sktensor_dp.checks.display import Table, counted
from sktensor_dp.spectral_lda.share_differences import (
    are_dates,
    clear_differences,
    clear_from_first_to_last,
    clear_to_all_groups,
)

# Marks of topics by their visibility, and what those of half hidden ones say.
MARKS = {"seen": "", "half hidden": "?", "hidden": "*"}
BLURRED = (
    "noise may have moved more than half of the words, so that shares, and their changes from "
    "group to group, are likely too small, by more than intervals say"
)
MAY_BE_NOTHING = (
    "noise hides the topic, which may be a mixture of others: half of its texts count for these, "
    "and intervals reach from none of them to all"
)
OF_TOPICS = (
    "Where topics share most of their words, shares, and how they change, may be off by more than "
    "intervals say."
)
OF_KEPT_WORDS = (
    "Shares are of what the words show that the private vocabulary kept: topics of rare or of many "
    "different words come out too small, and others too large, by more than intervals say. Public "
    "words (--vocabulary; vocabulary= in Python) cost nothing, and avoid that."
)


def table_on_screen(shares: Any) -> Table:
    """Intervals of the shares, and what they leave out."""
    low, high = shares.interval()
    of_counts = shares._interval_of_counts(0.9)
    rows = []
    for row, hidden in enumerate(shares.hidden_):
        group = f"{shares.values[row]}{'*' if hidden else ''}"
        n = " to ".join(f"{end[row]:,.0f}" for end in of_counts)
        ends = zip(low[row], high[row], strict=True)
        rows.append((group, n, *("-" if hidden else f"{a:.0%} to {b:.0%}" for a, b in ends)))
    marks = [MARKS[visibility] for visibility in shares.visibility_]
    topics = (f"topic {number}{mark}" for number, mark in enumerate(marks, start=1))
    scaling = on_scaling(shares)
    each = f"texts, up to {shares.texts_per_person_:.3g} each"
    head = ("group", each if scaling else "texts", *topics)
    notes = [
        *filter(None, [clear_differences(shares)]),
        "Within (90%), for noise and chance, under these topics: groups that write more than "
        "others of a topic that was not found differ in these, too.",
        OF_TOPICS,
    ]
    if scaling and shares.texts_per_person == "auto":
        scaling += (
            " Shares of a few texts of each person, drawn at random, avoid that, and their "
            "number is the bound; words and topics are best learned from all texts: "
            "docs/how_to/topics_by_group.md."
        )
    notes += filter(None, [OF_KEPT_WORDS * shares.private_words_, scaling])
    if shares.hidden_.any():
        notes.append("* of a group: noise hides how many texts there are")
    if "half hidden" in shares.visibility_:
        notes.append(f"? of a topic: {BLURRED}")
    if "hidden" in shares.visibility_:
        notes.append(f"* of a topic: {MAY_BE_NOTHING}")
    said = "Average shares of topics, by group, in texts with a word of these"
    return Table(said, head, rows, notes, ("group",))


def in_brief(shares: Any) -> str:
    """Say of how many groups shares can be seen, and what their intervals leave out."""
    seen, groups = sum(~shares.hidden_), counted(len(shares.values), "group")
    blurred = np.flatnonzero([one == "half hidden" for one in shares.visibility_]) + 1
    of_topics = f"Of topic {', '.join(map(str, blurred))} {BLURRED}." if len(blurred) else ""
    said = f"Shares of topics can be seen of {seen} of {groups}.", of_topics, on_scaling(shares)
    return " ".join(filter(None, [*said, OF_TOPICS, OF_KEPT_WORDS * shares.private_words_]))


def on_scaling(shares: Any) -> str:
    """Say what intervals leave out: who is scaled down; "" where each text is protected."""
    if shares.privacy_report_.unit != "person":
        return ""
    at_most = ""
    if shares.texts_per_person == "auto":
        at_most = f" (likely {counted(math.ceil(shares.most_beyond_), 'person')} at most)"
    return (
        "In shares by group persons count by texts: by up to about "
        f"{shares.texts_per_person_:.3g} of one topic and group. Whoever wrote more{at_most} is "
        "scaled down, also in the number of texts; if they wrote far more, and of other "
        "things, shares are farther off than their intervals say."
    )


def columns_of(shares: Any, level: float) -> dict[str, list[Any]]:
    """Columns of a table of shares by name, with a row for each group and topic."""
    n_groups, k = shares.sums_.shape
    low, high = shares.interval(level)
    texts_low, texts_high = shares._interval_of_counts(level)
    # By a given bound for persons anybody may be scaled down.
    is_unknown = bool(on_scaling(shares)) and shares.texts_per_person != "auto"
    scaled_down = math.nan if is_unknown else math.ceil(shares.most_beyond_)
    of_cells: dict[str, Any] = {
        "share": shares.shares_, "noise_std": shares.noise_std_,
        "sampling_std": shares.sampling_std_, "low": low, "high": high,
    }  # fmt: skip
    trends = shares.trend(level) if are_dates(shares.values) else np.full((3, k), np.nan)
    for end, cells, row in zip(
        ("", "_low", "_high"), shares.differences(level), trends, strict=True
    ):
        of_cells |= {f"difference{end}": cells, f"trend{end}": np.tile(row, (n_groups, 1))}
    clear_trend = clear_from_first_to_last(shares).clear[0] > 0
    of_cells["difference_clear"] = clear_to_all_groups(shares).clear > 0
    of_cells["trend_clear"] = np.tile(clear_trend & are_dates(shares.values), (n_groups, 1))
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
    }
