"""What a private vocabulary will release, from public numbers only."""

import math
import numbers
from dataclasses import dataclass

from sktensor_dp.privacy.partition_selection import selection_threshold
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.statistics.text import DocumentFrequencies

__all__ = ["RELEASE", "WordForecast", "WordPlan", "check_words", "forecast_words", "plan_words"]

RELEASE = "document_frequencies"


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
        Noisy number of documents from which a word is kept; a word in so many enters by
        an even chance, one in two sigma more by 98 %.
    """

    n_documents: int
    sigma: float
    threshold: float

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
    """Decisions that may depend on public numbers only.

    Attributes
    ----------
    releases : ReleasePlan
        The budget.
    query : DocumentFrequencies
        What is asked.
    threshold : float
        Noisy frequency from which words are released.
    least, most : float
        ``min_df`` and ``max_df`` in units.
    noun : str
        What units are called.
    """

    releases: ReleasePlan
    query: DocumentFrequencies
    threshold: float
    least: float
    most: float
    noun: str = "documents"


def forecast_words(
    n_documents: int,
    max_words_per_document: int,
    *,
    epsilon: float,
    delta: float,
    neighbours: str = "replace_one",
) -> WordForecast:
    """Forecast a vocabulary; ValueError where no threshold protects it."""
    query = DocumentFrequencies(max_words_per_document)
    asked, moved = _asked(_releases(epsilon, delta), query, neighbours)
    return WordForecast(n_documents, moved / asked.mu, selection_threshold(query, moved, asked))


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
    """Plan the one release of a vocabulary."""
    least, most = (
        float(limit if isinstance(limit, numbers.Integral) else limit * n_documents)
        for limit in (min_df, max_df)
    )
    query = DocumentFrequencies(max_words_per_document)
    releases = _releases(epsilon, delta)
    asked, moved = _asked(releases, query, neighbours)
    threshold = selection_threshold(query, moved, asked)
    return WordPlan(releases, query, threshold, least, most, noun)


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
        raise ValueError(
            f"With epsilon={releases.epsilon:g}, delta={releases.delta:g} and "
            f"max_words_per_document={plan.query.max_words_per_document}, a word must be in about "
            f"{plan.threshold:.0f} {noun} to be kept, but there are {n_documents}. Nothing was "
            f"charged. Lower max_words_per_document, raise epsilon, fit more {noun}, or pass a "
            "vocabulary."
        )
    if plan.most < plan.threshold:
        raise ValueError(
            f"max_df={max_df!r} drops words of more than {plan.most:g} {noun}, and "
            f"noise those of fewer than {plan.threshold:.0f}. Nothing was charged. Raise max_df."
        )


def _asked(
    releases: ReleasePlan, query: DocumentFrequencies, neighbours: str
) -> tuple[PrivacyCost, float]:
    """What the vocabulary costs, beside a count where there is one, and how far a unit moves it."""
    if neighbours == "add_remove":
        return releases.counted().cost_of(RELEASE), query.l2_contribution
    return releases.cost_of(RELEASE), query.l2_sensitivity


def _releases(epsilon: float, delta: float) -> ReleasePlan:
    if math.isinf(epsilon):
        return ReleasePlan(epsilon, delta, (PlannedRelease(RELEASE, PrivacyCost(mu=math.inf)),))
    if delta == 0:
        raise ValueError(
            "delta=0 cannot protect a vocabulary that is learned from the documents: give "
            "delta > 0, or pass a public vocabulary."
        )
    return ReleasePlan.split(epsilon, delta, {RELEASE: 1.0}, reserved_delta={RELEASE: delta / 2})
