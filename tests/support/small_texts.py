"""Texts of a few words, and pipelines of a private vocabulary and topics that are searched over."""

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from sktensor_dp import PrivateCountVectorizer, PrivateSearchCV, PrivateSpectralLDA


def texts(n: int = 600, seed: int = 0) -> list[str]:
    """Documents of eight of twelve words, about one of two things."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{letter}" for letter in "abcdefghijkl"])
    topics = np.repeat(np.eye(2), 6, axis=1) * 0.9 / 6 + 0.1 / 12
    return [" ".join(rng.choice(words, 8, p=topics[i % 2])) for i in range(n)]


def pipeline(**words: Any) -> Pipeline:
    counts = PrivateCountVectorizer(**{"max_words_per_document": 4, **words})
    return Pipeline([("counts", counts), ("topics", PrivateSpectralLDA(2, doc_topic_prior=0))])


def search(
    model: Pipeline | None = None, candidates: Any = None, **options: Any
) -> PrivateSearchCV:
    candidates = {"topics__n_components": [1, 2]} if candidates is None else candidates
    options = {"epsilon": 20.0, "n_trials": 3.0, **options}
    return PrivateSearchCV(
        pipeline() if model is None else model, candidates, **{"anyway": True, **options}
    )
