"""Recipe of a private vocabulary: votes for words that enough documents contain."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.checks.display import counted, plain
from sktensor_dp.estimator.base import FitResult
from sktensor_dp.exceptions import NotEnoughDataError
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.norm_histogram import NormHistogram
from sktensor_dp.queries.texts import (
    N_BUCKETS,
    DocumentFrequencies,
    NumberOfWords,
    WordBuckets,
    WordVotes,
)
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.text import defaults
from sktensor_dp.text.plan import WordPlan, on_words


def fit_vocabulary(ask: Session, plan: WordPlan, max_features: int | None) -> FitResult:
    """Release the words of enough documents; keep those that the plan and `max_features` allow."""
    weights = np.ones(N_BUCKETS)
    words_of_unit = 0  # number of words for which a unit counts in document frequencies
    # (n_words,): units that hold each word. Where only buckets tell of it, units that hold a word
    # of its bucket: good enough to rank words.
    sizes = np.zeros(0)
    by_buckets = plan.needed_in_bucket > 0  # False without noise
    if by_buckets:
        buckets = ask(WordBuckets()).as_sum().value
        # A document has norm 1 in buckets, and the root of `max_words` in votes: at equal weights a
        # word gets that root times the sum in its bucket. Words with `enough` in their bucket get
        # the weight 1, commoner and rarer ones less, and those in buckets that may be noise 0.
        enough = defaults.AIM * plan.needed_votes / math.sqrt(plan.max_words)
        ratios = enough / np.maximum(buckets, plan.needed_in_bucket)
        is_shown = buckets >= plan.needed_in_bucket
        weights = np.where(is_shown, np.minimum(ratios, 1 / ratios), 0.0)
    words = ask(WordVotes(plan.max_words, plan.largest_vote, weights)).keys or []
    if words and plan.frequencies:
        words_of_unit = len(words) if plan.exact else _release_most_words(ask, words)
        sizes = ask(DocumentFrequencies(words_of_unit, tuple(words))).as_sum().value
        # A released word is in at least one unit; without noise numbers are whole.
        sizes = np.clip(np.rint(sizes) if plan.exact else sizes, 1.0, ask.n_units)
    elif words and by_buckets:
        sizes = buckets[WordBuckets().places(words)]
    kept = _pruned(words, sizes, plan, max_features)
    attributes = {
        "vocabulary_": {words[place]: column for column, place in enumerate(kept.tolist())},
        "threshold_": plan.threshold,
        "fixed_vocabulary_": False,
    }
    if plan.frequencies:
        attributes["document_frequencies_"] = sizes[kept]
    return FitResult(attributes, notes=tuple(_notes(plan, words_of_unit)))


def _notes(plan: WordPlan, words_of_unit: int) -> Iterator[str]:
    """Yield notes on which words are kept, and for how many a unit counts in frequencies."""
    yield from on_words(plan, plan.noun.removesuffix("s"))
    if not plan.exact:
        yield (
            "Noise leaves out some commoner words too, at random: in tests up to one in five of "
            "those that three times as many had."
        )
    if plan.needed_in_bucket > 0 and plan.frequencies:
        yield (
            f"In document_frequencies_ a {plan.noun.removesuffix('s')} counts for up to "
            f"{counted(words_of_unit, 'word')}, those that it uses most: about 1 in 100 has more."
        )


def _release_most_words(ask: Session, words: list[str]) -> int:
    """Release how many of the `words` documents have; return a number that few exceed."""
    edges = np.append(0.0, np.geomspace(1, max(len(words), 2), 32))
    return int(ask(NormHistogram(NumberOfWords(tuple(words)), edges)).range_of(edges).high)


def _pruned(
    words: list[str], sizes: Floats, plan: WordPlan, max_features: int | None
) -> NDArray[np.intp]:
    """Indices of the words that ``min_df``, ``max_df`` and ``max_features`` keep, by their size."""
    # Without frequencies there are no `min_df` and `max_df` to keep to, and sizes only rank words.
    kept = np.arange(len(words))
    if plan.frequencies:
        kept = np.flatnonzero((sizes >= plan.min_units) & (sizes <= plan.max_units))
    if max_features is not None:
        most = np.argsort(-sizes[kept], kind="stable")[:max_features]
        kept = np.sort(kept[most])
    if kept.size == 0:
        reason = "the noisy votes of none reached the threshold"
        if words:
            reason = (
                f"of {len(words)} whose noisy votes reached the threshold, none comes from between "
                f"{plan.min_units:g} and {plan.max_units:g} {plan.noun} (min_df, max_df)"
            )
        raise NotEnoughDataError(
            f"No word remains: {reason}. "
            f"Epsilon {plan.releases.epsilon:g} and delta {plain(plan.releases.delta)} are spent. "
            f"See that the texts hold words; if they do, a larger epsilon, more {plan.noun} or a "
            "public vocabulary would help."
        )
    return kept
