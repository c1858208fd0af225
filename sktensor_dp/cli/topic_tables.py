"""Tables of topics that a run shows and writes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sktensor_dp.checks.display import Table
from sktensor_dp.spectral_lda import PrivateSpectralLDA
from sktensor_dp.spectral_lda.recipe import SHORT
from sktensor_dp.spectral_lda.share_tables import (
    TITLE,
    columns_of,
    columns_of_differences,
    text_on_screen,
)
from sktensor_dp.spectral_lda.shares import TopicShares
from sktensor_dp.topic_page.page import Topic, meaning_of_share


def topics_on_screen(
    title: str, topics: Sequence[Topic], unit: str, of_fit: Sequence[str] = ()
) -> Table:
    """Shares of topics, and the words that set each apart."""
    head = ("topic", "share", "words that set it apart")
    notes = [
        meaning_of_share(unit),
        "These lists allow for noise, but not for how little short texts tell of topics: some of "
        "their words may be shared by all topics.",
    ]
    rows = [
        (
            f"{topic.number}{'*' * (topic.hidden and len(topics) > 1)}", f"{topic.weight:.1%}",
            " ".join(topic.distinctive[:8]) or "-",
        )
        for topic in topics
    ]  # fmt: skip
    if len(topics) == 1:
        notes.append("No second topic was seen: this one is how often words are used in all texts.")
    elif any(topic.hidden for topic in topics):
        notes.append(
            "* hidden by noise: no word is known to be more likely in it than in all texts; do "
            "not report it. It may be a mixture of others, whose shares are then too small"
        )
    return Table(title, head, rows, [*notes, *of_fit], left=head)


def on_short(model: PrivateSpectralLDA) -> list[str]:
    """Sentence on probabilities of words where short texts were taken to have one topic each."""
    return [note for note in model.privacy_report_.notes if note == SHORT]


def leading_words(
    model: PrivateSpectralLDA, topics: Sequence[Topic], names: Sequence[str]
) -> list[list[object]]:
    """Rows of ``topics.csv``: the leading words of each topic, and which of them set it apart."""
    rows: list[list[object]] = [["topic", "share_of_words", "rank", "word", "sets_apart", "hidden"]]
    distinctive = map(set, model.top_words(len(names), names, relevance=0.6))
    for topic, own_words in zip(topics, distinctive, strict=True):
        share, hidden = (round(topic.weight, 3), topic.hidden)  # the share as on the screen
        rows += (
            [topic.number, share, rank, word, word in own_words, hidden]
            for rank, word in enumerate(topic.words or [""], start=1)
        )
    return rows


def all_words(
    model: PrivateSpectralLDA, topics: Sequence[Topic], names: Sequence[str]
) -> list[list[object]]:
    """Rows of ``topic_words.csv``: the probability of each word in all texts and in each topic."""
    probabilities = np.column_stack([model.unigram_, model.components_.T])
    head = ["word", "all_texts", *(f"topic_{topic.number}" for topic in topics)]
    return [head, *([word, *row] for word, row in zip(names, probabilities, strict=True))]


def groups_on_screen(shares: TopicShares, file: str) -> str:
    """Shares of topics by group in the texts of a `file`."""
    return text_on_screen(shares, f"{file}: {TITLE[0].lower()}{TITLE[1:]}")


def shares_by_group(shares: TopicShares, file: str) -> list[list[object]]:
    """Rows of ``topics_by_group.csv``; the last column names the `file` of the texts."""
    return _rows_of(columns_of(shares), file)


def differences_of_groups(shares: TopicShares, file: str) -> list[list[object]]:
    """Rows of ``topic_differences.csv``, with the `file`."""
    return _rows_of(columns_of_differences(shares), file)


def _rows_of(columns: dict[str, list[Any]], file: str) -> list[list[object]]:
    """Head and rows of a table."""
    columns["file"] = [file] * len(columns["topic"])
    return [[*columns], *map(list, zip(*columns.values(), strict=True))]
