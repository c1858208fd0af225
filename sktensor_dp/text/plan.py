"""Plan and recipe of a private vocabulary: votes for words that enough documents contain."""

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.estimator.base import Fitted, Neighbours
from sktensor_dp.exceptions import NotEnoughDataError
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import (
    THRESHOLD_FRACTION,
    PlannedRelease,
    PrivacyCost,
    ReleasePlan,
)
from sktensor_dp.privacy.selection import largest_weight
from sktensor_dp.queries.text import DocumentFrequencies, WordBuckets, WordVotes
from sktensor_dp.text import defaults

# Without noise document frequencies are all there is to release. With it numbers of documents by a
# checksum come first, from which documents see for which of their words votes are of use; then
# votes; and then numbers of documents by the words that these have chosen.
EXACT, BUCKETS, VOTES = "document_frequencies", "word_buckets", "word_votes"
# Where thresholds are told beforehand: votes of an ordinary document, one of so many distinct words
# as may count, for each of the words that are left to it.
ORDINARY_VOTES = 2.0
# Of ordinary texts of a hundred words, without stop words, the word of rank r is in a fraction of
# COMMON / (r + OFFSET), about (Zipf-Mandelbrot); in news, blogs, documentation and posts of persons
# half to twice as many words as this foretells were kept.
COMMON, OFFSET = 9.0, 20.0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WordForecast:
    """Forecast of a vocabulary: in how many documents a word has to be to enter it, and the noise.

    For a fit with groups, read groups for documents.

    Attributes
    ----------
    n_documents : int
        Number of documents that the forecast is for.
    sigma : float
        Standard deviation of the noise on the number of documents of a word.
    threshold : float
        Number of documents, about, from which a word is kept, as ``threshold_``.
    least : float
        Noisy number of documents below which no word is kept.
    n_words : int
        Number of words, about, that are kept of ordinary texts of a hundred words.
    """

    n_documents: int
    sigma: float
    threshold: float
    least: float = 0.0
    n_words: int = 0

    @property
    def enough(self) -> bool:
        """True if `n_documents` reaches the threshold."""
        return self.n_documents >= self.threshold

    def __str__(self) -> str:
        kept = f"of ordinary texts about {self.n_words:,} words"
        verdict = kept if self.enough else "there are too few for any word"
        return (
            f"{self.n_documents:,} documents: a word is kept from about {self.threshold:,.0f} "
            f"documents on, with noise of {self.sigma:.3g}; {verdict}."
        )


@dataclass(frozen=True)
class WordPlan:
    """Releases and thresholds of a vocabulary, chosen from public numbers alone."""

    releases: ReleasePlan  # the budget
    max_words: int  # words of a document that may count
    least: float  # ``min_df`` and ``max_df`` in units
    most: float
    noun: str  # name of the units, "documents" or "persons"
    sigma: float = 0.0  # noise on the number of documents of a word; 0 where there is none
    # Noisy votes from which a word is kept, and the most that a document may give it.
    votes: float = 0.0
    largest: float = 0.0
    needed: float = 1.0  # noisy documents that a word needs to get votes
    threshold: float = 1.0  # documents from which a word is kept, about


def expected_words(threshold: float, n_documents: int, most: int | None) -> int:
    """Number of words, at most `most`, that enough of `n_documents` ordinary texts contain."""
    n = COMMON * n_documents / threshold - OFFSET if threshold <= n_documents else 0.0
    return round(min(max(n, 0.0), math.inf if most is None else most))


def plan_words(vectorizer: Any, n_documents: int, noun: str = "documents") -> WordPlan:
    """Plan the vocabulary of a PrivateCountVectorizer for `n_documents` units (`noun`)."""
    m, counted = vectorizer.max_words_per_document, vectorizer.neighbours == "add_remove"
    least, most = (
        float(limit if isinstance(limit, numbers.Integral) else limit * n_documents)
        for limit in (vectorizer.min_df, vectorizer.max_df)
    )
    releases = _releases(vectorizer.epsilon, vectorizer.delta)
    if math.isinf(vectorizer.epsilon):
        return WordPlan(releases, m, least, most, noun)
    spent = releases.counted() if counted else releases
    # One bound for all: a document has as many votes, in L2 norm, as words that may count.
    query = WordBuckets(m)
    moved = query.l2_contribution if counted else query.l2_sensitivity
    sigma = moved / spent.cost_of(BUCKETS).mu
    largest, votes = largest_weight(m, moved, spent.cost_of(VOTES))
    needed = defaults.NEEDED * sigma
    threshold = max(needed, votes / min(ORDINARY_VOTES, largest))
    return WordPlan(releases, m, least, most, noun, sigma, votes, largest, needed, threshold)


def check_words(vectorizer: Any, plan: WordPlan, n_documents: int | None) -> None:
    """Raise if a plan would keep no word; `n_documents` is None where it is private."""
    noun, releases = plan.noun, plan.releases
    min_df, max_df = vectorizer.min_df, vectorizer.max_df
    whole = [isinstance(limit, numbers.Integral) for limit in (min_df, max_df)]
    if plan.least > plan.most and (n_documents is not None or whole[0] == whole[1]):
        how_many = "" if n_documents is None else f", with {n_documents} {noun}"
        raise ValueError(
            f"min_df={min_df!r} asks for more {noun} than max_df={max_df!r} allows{how_many}."
        )
    if n_documents is not None and plan.threshold > n_documents:
        raise NotEnoughDataError(
            f"With epsilon={releases.epsilon:g}, delta={releases.delta:g} and "
            f"max_words_per_document={plan.max_words}, a word must come from about "
            f"{plan.threshold:,.0f} {noun} to be kept, but there are {n_documents:,}. Nothing was "
            f"charged. A smaller max_words_per_document, a larger epsilon, more {noun} or a public "
            "vocabulary would help."
        )
    if plan.most < plan.needed:
        raise NotEnoughDataError(
            f"max_df={max_df!r} drops words of more than {plan.most:g} {noun}, and "
            f"noise those of fewer than {plan.needed:.0f}. Nothing was charged. Raise max_df."
        )


def _releases(epsilon: float, delta: float) -> ReleasePlan:
    """Split the budget among the releases of a vocabulary; ValueError if delta is 0."""
    if math.isinf(epsilon):
        return ReleasePlan(epsilon, delta, (PlannedRelease(EXACT, PrivacyCost(mu=math.inf)),))
    if delta == 0:
        raise ValueError(
            "delta=0 cannot protect a vocabulary that is learned from the documents: give "
            "delta > 0, or pass a public vocabulary."
        )
    fractions = {BUCKETS: 1 - defaults.VOTES_FRACTION, VOTES: defaults.VOTES_FRACTION}
    reserved = {VOTES: THRESHOLD_FRACTION * delta}
    return ReleasePlan.split(epsilon, delta, fractions, uses={BUCKETS: 2}, reserved_delta=reserved)


def learn_vocabulary(curator: DataCurator, plan: WordPlan, max_features: int | None) -> Fitted:
    """Release the words of enough documents; keep those that the plan and `max_features` allow."""
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
    """Release the words that enough documents contain, and their noisy document frequencies."""
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
    """Weights of votes for words by checksum: 0 below the threshold, less for common words."""
    enough = defaults.AIM * plan.votes / np.maximum(sketch, plan.needed)
    return np.where(sketch >= plan.needed, np.minimum(enough, 1.0), 0.0)


def _pruned(
    words: list[str], frequencies: Floats, plan: WordPlan, max_features: int | None
) -> NDArray[np.intp]:
    """Indices of the words that ``min_df``, ``max_df`` and ``max_features`` keep."""
    kept = np.flatnonzero((frequencies >= plan.least) & (frequencies <= plan.most))
    if max_features is not None:
        most = np.argsort(-frequencies[kept], kind="stable")[:max_features]
        kept = np.sort(kept[most])
    if kept.size == 0:
        raise NotEnoughDataError(
            f"No word remains: of {len(words)} whose noisy votes reached the threshold, "
            f"none comes from between {plan.least:g} and {plan.most:g} {plan.noun} (min_df, "
            "max_df). See that the texts hold words; if they do, a larger epsilon, more "
            f"{plan.noun} or a public vocabulary would help."
        )
    return kept


def worst_texts(n_words: int, n_units: int | None, neighbours: str) -> Neighbours:
    """Neighbouring corpora of two sets of words for an audit, and a statistic that tells them."""
    n_texts = n_units or 1000
    sides = [" ".join(f"{letter}{i}" for i in range(n_words)) for letter in ("aa", "bb")]
    half = n_texts // 2 + 1
    texts = [sides[0]] * half + [sides[1]] * (n_texts - half)
    if neighbours == "add_remove":
        return (texts,), (texts[1:],), _difference
    return (texts,), ([sides[1], *texts[1:]],), _difference


def _difference(fitted: Any) -> float:
    """Document frequencies of the second set of words minus those of the first."""
    names, found = fitted.get_feature_names_out(), fitted.document_frequencies_
    return float(sum(x if name[0] == "b" else -x for name, x in zip(names, found, strict=True)))
