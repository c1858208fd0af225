"""How a vocabulary is made of what is released."""

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.estimator.base import Fitted
from sktensor_dp.exceptions import NotEnoughDataError
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.queries.text import DocumentFrequencies, WordBuckets, WordVotes
from sktensor_dp.text.plan import BUCKETS, EXACT, VOTES, WordPlan

Floats = NDArray[np.float64]

# How many votes, as a share of the threshold, documents that are full may give a common word.
# Chosen on synthetic texts.
AIM = 0.7


def learn(curator: DataCurator, plan: WordPlan, max_features: int | None) -> Fitted:
    """Ask for the words that enough documents contain, and prune them."""
    words, frequencies = released_words(curator, plan)
    kept = _pruned(words, frequencies, plan, max_features)
    return Fitted(
        {
            "vocabulary_": {words[place]: column for column, place in enumerate(kept.tolist())},
            "document_frequencies_": frequencies[kept],
            "threshold_": plan.threshold,
            "fixed_vocabulary_": False,
        }
    )


def released_words(curator: DataCurator, plan: WordPlan) -> tuple[list[str], Floats]:
    """Words, and in how many units each is, at most the number of all."""
    if plan.sigma == 0:
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


def _pruned(
    words: list[str], frequencies: Floats, plan: WordPlan, max_features: int | None
) -> NDArray[np.intp]:
    """Places of the released words that ``min_df``, ``max_df`` and ``max_features`` keep."""
    low, high = plan.least, plan.most
    kept = np.flatnonzero((frequencies >= low) & (frequencies <= high))
    if max_features is not None:
        most = np.argsort(-frequencies[kept], kind="stable")[:max_features]
        kept = np.sort(kept[most])
    if kept.size == 0:
        raise NotEnoughDataError(
            f"No word remains: of {len(words)} whose noisy votes reached the threshold, "
            f"none lies between min_df and max_df ({low:g} to {high:g} {plan.noun}). "
            f"Check that documents hold text; raise epsilon, fit more {plan.noun}, or pass a "
            "vocabulary."
        )
    return kept
