"""What a private vocabulary will release, from public numbers only."""

import math
import numbers
from dataclasses import dataclass

from sktensor_dp.privacy.partition_selection import selection_threshold
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.statistics.text import DocumentFrequencies

__all__ = ["RELEASE", "WordForecast", "WordPlan", "forecast_words", "plan_words"]

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
    n_documents: int, max_words_per_document: int, *, epsilon: float, delta: float
) -> WordForecast:
    """Forecast a vocabulary; ValueError where no threshold protects it."""
    query, cost = DocumentFrequencies(max_words_per_document), _releases(epsilon, delta)
    asked = cost.cost_of(RELEASE)
    return WordForecast(
        n_documents, query.l2_sensitivity / asked.mu, selection_threshold(query, asked)
    )


def plan_words(
    n_documents: int,
    max_words_per_document: int,
    *,
    epsilon: float,
    delta: float,
    min_df: float,
    max_df: float,
    noun: str = "documents",
) -> WordPlan:
    """Plan the one release of a vocabulary; ValueError where no word could remain."""
    least, most = (
        float(limit if isinstance(limit, numbers.Integral) else limit * n_documents)
        for limit in (min_df, max_df)
    )
    if least > most:
        raise ValueError(
            f"min_df={min_df!r} asks for more {noun} than max_df={max_df!r} "
            f"allows, with {n_documents} {noun}."
        )
    query = DocumentFrequencies(max_words_per_document)
    releases = _releases(epsilon, delta)
    threshold = selection_threshold(query, releases.cost_of(RELEASE))
    if threshold > n_documents:
        raise ValueError(
            f"With epsilon={epsilon:g}, delta={delta:g} and max_words_per_document="
            f"{max_words_per_document}, a word must be in about {threshold:.0f} "
            f"{noun} to be kept, but there are {n_documents}. Nothing was charged. Lower "
            f"max_words_per_document, raise epsilon, fit more {noun}, or pass a vocabulary."
        )
    if most < threshold:
        raise ValueError(
            f"max_df={max_df!r} drops words of more than {most:g} {noun}, and "
            f"noise those of fewer than {threshold:.0f}. Nothing was charged. Raise max_df."
        )
    return WordPlan(releases, query, threshold, least, most, noun)


def _releases(epsilon: float, delta: float) -> ReleasePlan:
    if math.isinf(epsilon):
        return ReleasePlan(epsilon, delta, (PlannedRelease(RELEASE, PrivacyCost(mu=math.inf)),))
    if delta == 0:
        raise ValueError(
            "delta=0 cannot protect a vocabulary that is learned from the documents: give "
            "delta > 0, or pass a public vocabulary."
        )
    return ReleasePlan.split(epsilon, delta, {RELEASE: 1.0}, reserved_delta={RELEASE: delta / 2})
