"""How a vocabulary is made of what is released."""

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.statistics.text import DocumentFrequencies
from sktensor_dp.statistics.word_votes import WordBuckets, WordVotes
from sktensor_dp.text.plan import BUCKETS, EXACT, VOTES, WordPlan

__all__ = ["released_words", "vote_weights"]

Floats = NDArray[np.float64]

# How many votes, as a share of the threshold, documents that are full may give a common word.
# Chosen on synthetic texts.
AIM = 0.7


def released_words(curator: DataCurator, plan: WordPlan) -> tuple[list[str], Floats]:
    """Words, and in how many units each is, at most the number of all."""
    if plan.exact:
        return curator.release_partitions(EXACT, DocumentFrequencies(plan.max_words))
    sketch = curator.release(BUCKETS, WordBuckets(plan.max_words)) * curator.n_units
    ballot = WordVotes(plan.max_words, plan.largest, vote_weights(sketch, plan))
    words, _ = curator.release_partitions(VOTES, ballot)
    if not words:
        return words, np.zeros(0)
    found = curator.release(BUCKETS, WordBuckets(plan.max_words, tuple(words)))
    # A word that is released is in one unit at least.
    return words, np.clip(found * curator.n_units, 1.0, curator.n_units)


def vote_weights(sketch: Floats, plan: WordPlan) -> Floats:
    """Weight of each bucket: none where votes are lost, less where fewer will do."""
    enough = AIM * plan.votes / np.maximum(sketch, plan.needed)
    return np.where(sketch >= plan.needed, np.minimum(enough, 1.0), 0.0)
