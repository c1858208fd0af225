"""Plan of a private vocabulary from public numbers: releases, thresholds, forecast, worst case."""

import math
import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer  # base of the private ones

from sktensor_dp.checks.display import counted
from sktensor_dp.estimator.facts import Neighbours
from sktensor_dp.exceptions import NotEnoughDataError
from sktensor_dp.privacy.partition_selection import largest_weight, most_units_below
from sktensor_dp.privacy.plan import (
    HISTOGRAM_FRACTION,
    THRESHOLD_FRACTION,
    PlannedRelease,
    PrivacyCost,
    ReleasePlan,
)
from sktensor_dp.queries.norm_histogram import NormHistogram
from sktensor_dp.queries.texts import DocumentFrequencies, WordBuckets, WordVotes
from sktensor_dp.text import defaults

# Buckets of words come first; by them documents choose the words to vote for. Votes follow, then,
# if asked for, how many chosen words documents have, and numbers of documents with each. Without
# noise every word gets votes.
BUCKETS, VOTES, FREQUENCIES = WordBuckets.name, WordVotes.name, DocumentFrequencies.name
# Number of distinct words that forecasts assume of an ordinary document, without stop words, and
# what is added to the rank of a word.
LENGTH, OFFSET = 100, 20.0
# Probability with which words of few documents may be kept, however short these are.
SELDOM = 1e-3


@dataclass(frozen=True)
class WordPlan:
    """Releases and thresholds of a vocabulary, chosen from public numbers alone."""

    releases: ReleasePlan  # names, numbers and costs of the releases
    max_words: int  # words of a document that may count
    min_units: float  # ``min_df`` and ``max_df`` in units
    max_units: float
    noun: str  # name of the units, "documents" or "persons"
    frequencies: bool  # whether document frequencies are released
    largest_vote: float  # of a document for a word
    needed_votes: float = 0.0  # noisy votes from which on a word is kept
    needed_in_bucket: float = 0.0  # noisy number of a bucket from which on its words get votes
    length: float = 0  # different words of an ordinary document that the threshold is for
    threshold: float = 1.0  # documents that use a word which is kept as often as not, about
    if_equal: float = 1.0  # `threshold` where documents are equally long
    rarest: int = 0  # most documents whose common word is kept with probability `SELDOM` at most

    def units(self, n: float) -> str:
        """Number of units in words, such as "1 document"."""
        return counted(round(n), self.noun.removesuffix("s"))

    @property
    def exact(self) -> bool:
        """True if there is no noise."""
        return math.isinf(self.releases.epsilon)


@dataclass(frozen=True)
class WordForecast:
    """Forecast of a vocabulary: the number of documents that must use a word to keep it.

    For a fit with groups, read groups for documents.

    Attributes
    ----------
    n_documents : int
        Number of documents that the forecast is for.
    n_words : int
        Number of words, about, that are kept of ordinary texts of `document_length`; of four
        collections half to four times as many were.
    plan : WordPlan
        Releases and thresholds of the fit.
    """

    n_documents: int
    n_words: int
    plan: WordPlan

    @property
    def threshold(self) -> float:
        """Number of documents, about, that use a word which is kept as often as not."""
        return self.plan.threshold

    @property
    def document_length(self) -> float:
        """Different words of an ordinary document that this is for."""
        return self.plan.length

    @property
    def enough(self) -> bool:
        """True if `n_documents` reaches the threshold."""
        return self.n_documents >= self.threshold

    def in_brief(self, unit: str) -> str:
        """Say about how many words are kept, and which; `unit` is the name of a document."""
        if self.plan.exact:
            return " ".join(on_words(self.plan, unit))
        of_one = f"{1 / self.plan.releases.cost_of(VOTES).delta:,.0f}"
        return (
            f"Of ordinary texts about {counted(self.n_words, 'word')} are kept, in tests half to "
            f"four times as many: half of those that about {counted(round(self.threshold), unit)} "
            f"use. A word of one {unit} alone comes out in at most 1 of {of_one} runs."
        )

    def __str__(self) -> str:
        verdict = "too few for any word."
        if self.enough:
            n_words = counted(self.n_words, "word")
            verdict = f"about {n_words} of ordinary texts (in tests half to four times as many)."
        lines = [f"{counted(self.n_documents, 'document')}: {verdict}"]
        with_groups = "With groups= documents are persons, with all their texts."
        return "\n".join([*lines, *on_words(self.plan, "document"), with_groups])


def on_words(plan: WordPlan, unit: str) -> list[str]:
    """Sentences on how many of the units called `unit` must use a word for it to be kept."""
    if plan.exact:
        return ["Without noise all words are found."]
    said = [
        f"Of words that about {counted(round(plan.threshold), unit)} use half are kept, hardly any "
        "of those that half as many use, most of those that twice as many do."
    ]
    if plan.max_words < _length_of_equal_documents(plan.length):
        said.append(
            f"Assumed: no {unit} holds over {counted(plan.max_words, 'word')} (repeats count "
            "once). Where many do, the commonest words are left out, too."
        )
    else:
        ratio = plan.if_equal / plan.threshold
        said += [
            f"Assumed: an ordinary {unit} holds {counted(plan.length, 'word')} (repeats count "
            "once), and one in ten four times that.",
            f"{ratio:.1g} times as many have to use a word where all are equally long, up to 2.5 "
            "times where they differ far more, as persons of a forum.",
            "Twice as many have to where all hold four times as many words.",
        ]
    of_one = f"{1 / plan.releases.cost_of(VOTES).delta:,.0f}"
    of_few = f", and of {plan.rarest} in 1 of {1 / SELDOM:,.0f}" if plan.rarest > 1 else ""
    return [
        *said,
        f"A word of one {unit} alone comes out in at most 1 of {of_one} runs{of_few}: that is "
        "certain.",
    ]


def expected_words(
    threshold: float, n_documents: int, vectorizer: CountVectorizer, length: float
) -> int:
    """Number of words that enough of `n_documents` ordinary texts of a `length` contain."""
    if threshold > n_documents:
        return 0
    mean = min(length * math.exp(defaults.SPREAD**2 / 2), vectorizer.max_words_per_document)
    # The rank r of the word that `threshold` documents have: a fraction COMMON / (r + OFFSET) of
    # all, if these have LENGTH words on average.
    rank = defaults.COMMON * mean / LENGTH * n_documents / threshold - OFFSET
    return round(min(max(rank, 0.0), vectorizer.max_features or math.inf))


def plan_words(
    vectorizer: CountVectorizer,
    n_documents: int,
    noun: str = "documents",
    *,
    length: float = LENGTH,
) -> WordPlan:
    """Plan a vocabulary for units (`noun`) of which an ordinary one has `length` words."""
    max_words, neighbours = vectorizer.max_words_per_document, vectorizer.neighbours
    limits = vectorizer.min_df, vectorizer.max_df
    are_numbers = [isinstance(limit, numbers.Integral) for limit in limits]  # not fractions
    min_units, max_units = (
        float(limit if is_number else limit * n_documents)
        for limit, is_number in zip(limits, are_numbers, strict=True)
    )
    prunes = limits != (1, 1) or are_numbers != [True, False]  # the defaults, 1 and 1.0, keep all
    releases = _releases(vectorizer, prunes)
    exact = math.isinf(vectorizer.epsilon)
    plan = WordPlan(
        releases=releases, max_words=max_words, min_units=min_units, max_units=max_units, noun=noun,
        frequencies=prunes or exact, largest_vote=math.sqrt(max_words),
    )  # fmt: skip
    if exact:
        return plan
    spent = releases.with_count() if neighbours == "add_remove" else releases
    # Votes of a document have the L2 norm sqrt(max_words), its buckets have norm 1.
    sensitivity = WordBuckets().sensitivity("l2", neighbours)
    of_votes = math.sqrt(max_words) * sensitivity
    cost = spent.cost_of(VOTES)
    largest_vote, needed_votes = largest_weight(max_words, of_votes, cost)
    needed_in_bucket = defaults.NEEDED * sensitivity / spent.cost_of(BUCKETS).mu
    rarest = most_units_below(needed_votes, largest_vote, of_votes, cost, SELDOM)
    plan = replace(
        plan, largest_vote=largest_vote, needed_votes=needed_votes,
        needed_in_bucket=needed_in_bucket, length=min(max_words, length), rarest=rarest,
    )  # fmt: skip
    lengths = plan.length, min(max_words, _length_of_equal_documents(length))
    if_equal, threshold = (_expected_threshold(plan, one) for one in lengths)
    return replace(plan, if_equal=if_equal, threshold=threshold)


def _length_of_equal_documents(ordinary: float) -> float:
    """Length of equally long documents that add as much to a word's bucket as unequal ones.

    Lengths of unequal ones are log-normal, about an `ordinary` one.
    """
    # A document of L words has a word with a probability in proportion to L, and adds 1 / sqrt(L)
    # to its bucket. So n documents with a word add n E[sqrt L] / E[L].
    return ordinary * math.exp(0.75 * defaults.SPREAD**2)


def _expected_threshold(plan: WordPlan, length: float) -> float:
    """Documents of `length` words that must have a word, about, for it to be kept half the time."""
    # Votes of an ordinary document for a word, relative to equal votes for all its words: it votes
    # for some of them only.
    ordinary_votes = 2.0
    # A word needs enough in its bucket to get votes, and to get enough of them. Its b documents
    # have the weight ``b root(max_words) / (AIM needed_votes)`` and give ``ordinary_votes b
    # root(max_words) weight`` votes: as many as are needed if b is `for_votes`.
    for_votes = plan.needed_votes * math.sqrt(defaults.AIM / ordinary_votes / plan.max_words)
    in_bucket = 1 / math.sqrt(length)  # by such a document
    by_bucket = max(plan.needed_in_bucket, for_votes) / in_bucket
    return max(by_bucket, plan.needed_votes / plan.largest_vote)


def check_words(vectorizer: CountVectorizer, plan: WordPlan, n_documents: int | None) -> None:
    """Raise if a plan would keep no word; `n_documents` is None where it is private."""
    noun, releases = plan.noun, plan.releases
    min_df, max_df = vectorizer.min_df, vectorizer.max_df
    # Two numbers, or two fractions, compare alike for any number of documents.
    alike = isinstance(min_df, numbers.Integral) == isinstance(max_df, numbers.Integral)
    if plan.min_units > plan.max_units and (n_documents is not None or alike):
        how_many = "" if n_documents is None else f", with {n_documents} {noun}"
        raise ValueError(
            f"min_df={min_df!r} asks for more {noun} than max_df={max_df!r} allows{how_many}."
        )
    if n_documents is not None and plan.if_equal > n_documents:
        where = f" if each holds {counted(plan.length, 'word')}" if plan.length else ""
        raise NotEnoughDataError(
            f"With epsilon={releases.epsilon:g} and delta={releases.delta:g} a word must come from "
            f"about {plan.units(plan.if_equal)} to be kept{where}, but there are {n_documents:,}. "
            f"A larger epsilon, more {noun} or a public vocabulary would help; or, if none holds "
            "as many words, a max_words_per_document of as many as one holds at most."
        )
    if plan.max_units < plan.needed_in_bucket:
        raise NotEnoughDataError(
            f"max_df={max_df!r} drops words of more than {plan.units(plan.max_units)}, and "
            f"noise those of fewer than {plan.needed_in_bucket:.0f}. Raise max_df."
        )


def _releases(vectorizer: CountVectorizer, frequencies: bool) -> ReleasePlan:
    """Split the budget among the releases of a vocabulary; ValueError if noise needs a delta."""
    # Fraction of the budget that document frequencies cost, with the histogram before them.
    frequencies_fraction = 0.2
    epsilon, delta = vectorizer.epsilon, vectorizer.delta
    if math.isinf(epsilon):
        whole = PrivacyCost(mu=math.inf)
        exact = PlannedRelease(VOTES, whole), PlannedRelease(FREQUENCIES, whole)
        return ReleasePlan(epsilon, delta, exact)
    if delta == 0:
        raise ValueError(
            "delta=0 cannot protect a word that is learned from the data: give delta > 0, or pass "
            "a public vocabulary."
        )
    words_fraction = 1 - frequencies_fraction if frequencies else 1.0
    votes = defaults.VOTES_FRACTION  # of that
    fractions = {
        BUCKETS: words_fraction * (1 - votes), VOTES: words_fraction * votes,
        NormHistogram.name: HISTOGRAM_FRACTION if frequencies else 0.0,
        FREQUENCIES: frequencies_fraction - HISTOGRAM_FRACTION if frequencies else 0.0,
    }  # fmt: skip
    reserved = {VOTES: THRESHOLD_FRACTION * delta}
    return ReleasePlan.split(epsilon, delta, fractions, reserved_delta=reserved)


def worst_texts(n_words: int, n_units: int | None, neighbours: str) -> Neighbours:
    """Neighbours for an audit: texts that hold one of two sets of words each; the first differs."""
    n_texts = n_units or 1000
    sides = [" ".join(f"{letter}{i}" for i in range(n_words)) for letter in ("aa", "bb")]
    half = n_texts // 2 + 1
    texts = [sides[0]] * half + [sides[1]] * (n_texts - half)
    if neighbours == "add_remove":
        return (texts,), (texts[1:],), _difference
    return (texts,), ([sides[1], *texts[1:]],), _difference


def _difference(fitted: Any) -> float:
    """Sum of document frequencies (or number) of the second set's words, less the first set's."""
    names = fitted.get_feature_names_out()
    sizes = vars(fitted).get("document_frequencies_", np.ones(len(names)))
    return float(sum(n if name[0] == "b" else -n for name, n in zip(names, sizes, strict=True)))
