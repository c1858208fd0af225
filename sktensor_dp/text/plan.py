"""What a private vocabulary will release, from public numbers only."""

import math
import numbers
from dataclasses import dataclass, replace

from sktensor_dp.exceptions import NotEnoughDataError
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.selection import largest_share
from sktensor_dp.queries.text import WordBuckets

# Without noise document frequencies are all there is to release. With it numbers of documents by a
# checksum come first, from which documents see for which of their words votes are of use; then
# votes; and then numbers of documents by the words that these have chosen.
EXACT, BUCKETS, VOTES = "document_frequencies", "word_buckets", "word_votes"
# Chosen on synthetic texts, long and short, and groups of them: the votes' part of the budget, and
# deviations of the checksum's numbers that a word needs to get votes.
VOTES_SHARE, NEEDED = 0.64, 1.5
# Of delta, what the threshold takes.
THRESHOLD_SHARE = 0.5
# Votes of an ordinary document, one of so many distinct words as may count, for each of the words
# that are left to it.
ORDINARY_VOTES = 2.0


@dataclass(frozen=True)
class WordForecast:
    """In how many documents a word has to be, to enter a vocabulary.

    Of a fit with groups, read groups for documents.

    Attributes
    ----------
    n_documents : int
        Documents asked about.
    sigma : float
        Standard deviation of the noise on the number of documents of a word.
    threshold : float
        About how many documents a word is kept from, where documents have as many distinct
        words as may count; in shorter ones rarer words are kept, down to ``least``.
    least : float
        Noisy number of documents below which no word is kept.
    """

    n_documents: int
    sigma: float
    threshold: float
    least: float = 0.0

    @property
    def enough(self) -> bool:
        """Whether the documents asked about can reach the threshold at all."""
        return self.n_documents >= self.threshold

    def __str__(self) -> str:
        verdict = "" if self.enough else "; there are too few for any word"
        return (
            f"{self.n_documents} documents: a word is kept from about {self.threshold:.0f} "
            f"documents on, with noise of {self.sigma:.3g}{verdict}."
        )


@dataclass(frozen=True)
class WordPlan:
    """Decisions that may depend on public numbers only."""

    releases: ReleasePlan  # the budget
    max_words: int  # words of a document that may count
    sigma: float  # noise on the number of documents of a word; 0 where there is none
    # Noisy votes from which a word is kept, and the most that a document may give it.
    votes: float
    largest: float
    needed: float  # noisy documents that a word needs to get votes
    threshold: float  # documents from which a word is kept, about
    # ``min_df`` and ``max_df`` in units.
    least: float = 0.0
    most: float = math.inf
    noun: str = "documents"  # what units are called


def plan_words(
    n_documents: int,
    max_words_per_document: int,
    *,
    epsilon: float,
    delta: float,
    min_df: float,
    max_df: float,
    noun: str = "documents",
    neighbours: str = "replace_one",
) -> WordPlan:
    """Plan the releases of a vocabulary."""
    least, most = (
        float(limit if isinstance(limit, numbers.Integral) else limit * n_documents)
        for limit in (min_df, max_df)
    )
    plan = _planned(max_words_per_document, epsilon, delta, neighbours)
    return replace(plan, least=least, most=most, noun=noun)


def check_words(plan: WordPlan, n_documents: int | None, *, min_df: float, max_df: float) -> None:
    """Refuse a plan by which no word could remain, where that is known of None documents too."""
    noun, releases = plan.noun, plan.releases
    whole = [isinstance(limit, numbers.Integral) for limit in (min_df, max_df)]
    if plan.least > plan.most and (n_documents is not None or whole[0] == whole[1]):
        how_many = "" if n_documents is None else f", with {n_documents} {noun}"
        raise ValueError(
            f"min_df={min_df!r} asks for more {noun} than max_df={max_df!r} allows{how_many}."
        )
    if n_documents is not None and plan.threshold > n_documents:
        raise NotEnoughDataError(
            f"With epsilon={releases.epsilon:g}, delta={releases.delta:g} and "
            f"max_words_per_document={plan.max_words}, a word must be in about "
            f"{plan.threshold:.0f} {noun} to be kept, but there are {n_documents}. Nothing was "
            f"charged. Lower max_words_per_document, raise epsilon, fit more {noun}, or pass a "
            "vocabulary."
        )
    if plan.most < plan.needed:
        raise NotEnoughDataError(
            f"max_df={max_df!r} drops words of more than {plan.most:g} {noun}, and "
            f"noise those of fewer than {plan.needed:.0f}. Nothing was charged. Raise max_df."
        )


def _planned(
    max_words_per_document: int, epsilon: float, delta: float, neighbours: str
) -> WordPlan:
    """Plan what does not depend on the number of documents."""
    m, counted = max_words_per_document, neighbours == "add_remove"
    releases = _releases(epsilon, delta)
    if math.isinf(epsilon):
        return WordPlan(releases, m, 0.0, 0.0, 0.0, needed=1.0, threshold=1.0)
    spent = releases.counted() if counted else releases
    of_buckets, of_votes = spent.cost_of(BUCKETS), spent.cost_of(VOTES)
    # One bound for all: a document has as many votes, in L2 norm, as words that may count.
    query = WordBuckets(m)
    moved = query.l2_contribution if counted else query.l2_sensitivity
    sigma = moved / of_buckets.mu
    largest, votes = largest_share(m, moved, of_votes)
    needed = NEEDED * sigma
    usual = max(needed, votes / min(ORDINARY_VOTES, largest))
    return WordPlan(releases, m, sigma, votes, largest, needed, usual)


def _releases(epsilon: float, delta: float) -> ReleasePlan:
    if math.isinf(epsilon):
        return ReleasePlan(epsilon, delta, (PlannedRelease(EXACT, PrivacyCost(mu=math.inf)),))
    if delta == 0:
        raise ValueError(
            "delta=0 cannot protect a vocabulary that is learned from the documents: give "
            "delta > 0, or pass a public vocabulary."
        )
    shares = {BUCKETS: 1 - VOTES_SHARE, VOTES: VOTES_SHARE}
    reserved = {VOTES: THRESHOLD_SHARE * delta}
    return ReleasePlan.split(epsilon, delta, shares, uses={BUCKETS: 2}, reserved_delta=reserved)
