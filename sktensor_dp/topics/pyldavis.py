"""Topics in the form that pyLDAvis draws."""

import math
from typing import Any

import numpy as np

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.measures import divergences, positions, ranked_words

# Tokens that frequencies are scaled to, as the number of tokens is not released.
TOKENS = 10_000.0
# Of a word's tokens: topics with less are not listed.
LEAST_HELD = 0.005
HEADS = ("Term", "Freq", "Total", "Category", "logprob", "loglift")


def pyldavis_data(topics: Floats, shares: Floats, names: Any, n_words: int) -> dict[str, Any]:
    """Convert topics (k, d), their shares (k,) and `names` of the words to the fields of pyLDAvis'
    ``PreparedData``, the most frequent topic first.
    """
    order = np.argsort(-shares, kind="stable")
    topics, shares = topics[order], shares[order]
    overall = shares @ topics
    rows = [*_default_words(topics, shares, overall, names, n_words),
            *_words_of_topics(topics, shares, overall, names, n_words)]  # fmt: skip
    places = positions(np.sqrt(divergences(topics, topics)))
    numbers = list(range(1, len(topics) + 1))
    held = _held(sorted({row[0] for row in rows}), topics, shares, overall, names)
    return {
        "mdsDat": {
            "x": places[:, 0].tolist(), "y": places[:, 1].tolist(), "topics": numbers,
            "cluster": [1] * len(numbers), "Freq": (100 * shares).tolist(),
        },
        "tinfo": {head: [row[i] for row in rows] for i, head in enumerate(HEADS)},
        "token.table": {
            head: [row[i] for row in held] for i, head in enumerate(("Topic", "Term", "Freq"))
        },
        "R": n_words, "lambda.step": 0.01, "plot.opts": {"xlab": "PC1", "ylab": "PC2"},
        "topic.order": [int(row) + 1 for row in order],
    }  # fmt: skip


def _default_words(
    topics: Floats, shares: Floats, overall: Floats, names: Any, n_words: int
) -> list[tuple[Any, ...]]:
    """Rows of the table of words for all topics together: the `n_words` that tell topics apart best
    (saliency of Chuang, Manning & Heer, 2012). `overall` holds the words' frequencies.
    """
    lift = np.log(np.maximum(topics / overall, 1e-300))
    saliency = (shares[:, None] * topics * lift).sum(axis=0)
    leading = np.argsort(-saliency, kind="stable")[:n_words]
    counts = [float(TOKENS * overall[word]) for word in leading]
    return [
        (str(names[word]), count, count, "Default", float(n_words - rank), float(n_words - rank))
        for rank, (word, count) in enumerate(zip(leading, counts, strict=True))
    ]


def _words_of_topics(
    topics: Floats, shares: Floats, overall: Floats, names: Any, n_words: int
) -> list[tuple[Any, ...]]:
    """Rows of the table of words for each topic: those that lead it at relevance 0, 0.6 or 1."""
    rows: list[tuple[Any, ...]] = []
    leading = np.concatenate(
        [ranked_words(topics, overall, None, relevance, n_words) for relevance in (0.0, 0.6, 1.0)],
        axis=1,
    )
    for number, (share, topic) in enumerate(zip(shares, topics, strict=True), start=1):
        for word in np.unique(leading[number - 1]):
            p, everywhere = max(float(topic[word]), 1e-300), float(overall[word])
            rows.append((
                str(names[word]), TOKENS * float(share) * p, TOKENS * everywhere,
                f"Topic{number}", math.log(p), math.log(p / everywhere),
            ))  # fmt: skip
    return rows


def _held(
    words: list[str], topics: Floats, shares: Floats, overall: Floats, names: Any
) -> list[tuple[int, str, float]]:
    """Triples (topic, word, fraction of the word's tokens that are of the topic), for fractions of
    at least `LEAST_HELD`.
    """
    column = {str(name): place for place, name in enumerate(names)}
    chosen = [column[word] for word in words]
    parts = (shares[:, None] * topics / overall)[:, chosen]
    return [
        (int(topic) + 1, words[word], float(parts[topic, word]))
        for word, topic in zip(*np.nonzero(parts.T >= LEAST_HELD), strict=True)
    ]
