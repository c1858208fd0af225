"""Neighbouring corpora on which a topic model gives away the most."""

from typing import Any

import numpy as np

from sktensor_dp.estimator.base import Neighbours

# Tokens of a document that is longer than any limit that is chosen by a histogram of norms.
LONG = 10**6


def worst_documents(n_units: int | None, neighbours: str) -> Neighbours:
    """Documents of one word each, half of them of either word; one changes sides, or leaves."""
    n_documents = n_units or 1000
    counts = np.zeros((n_documents, 2), dtype=np.int64)
    half = n_documents // 2 + 1
    counts[:half, 0] = counts[half:, 1] = LONG
    if neighbours == "add_remove":
        return (counts,), (counts[1:],), _difference
    changed = counts.copy()
    changed[0] = counts[0, ::-1]
    return (counts,), (changed,), _difference


def _difference(fitted: Any) -> float:
    """Of the frequencies of the two words in the model: all moments have a part in it."""
    prior = fitted.topic_prior_ / fitted.topic_prior_.sum()
    frequencies = prior @ fitted.components_
    return float(frequencies[1] - frequencies[0])
