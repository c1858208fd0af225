"""What a fit can be expected to find, from public numbers only."""

import math
from dataclasses import dataclass

from sktensor_dp.estimator.forecast import Forecast, ReleaseForecast, counted_releases
from sktensor_dp.privacy.calibration import spherical_spread
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.queries.moments import (
    PairMoments,
    TripleMoments,
    WhitenedTripleMoments,
    WordFrequencies,
)
from sktensor_dp.queries.norms import NonNegative
from sktensor_dp.spectral_topics.plan import TopicPlan
from sktensor_dp.tensor.symmetric import n_unique
from sktensor_dp.topics.concentration import USUAL

# A topic's probability is spread over about this many words in ordinary text, as
# measured by one over the sum of its squared probabilities.
WORDS_PER_TOPIC = 100
# Who says how far one document moves what.
QUERIES: dict[str, type[NonNegative]] = {
    "word_frequencies": WordFrequencies,
    "pair_moments": PairMoments,
    "expected_counts": ExpectedCounts,
    "triple_moments": TripleMoments,
}


@dataclass(frozen=True, repr=False)
class TopicForecast(Forecast):
    """Noise of each release, and the number of documents that would be enough.

    ``n_samples_needed`` is the number from which the weakest of ``n_components``
    equally likely topics that share no words stands out from the noise of the second
    moment: a least number, as topics that share words need more.

    Attributes
    ----------
    n_refinements : int
        EM steps the fit would make, or keep for moments that do not fit.
    n_words : int
        Words whose pairs would be released.
    concentration : float
        Of topics in documents, as it is assumed here: the sum of the Dirichlet parameters.
    public_topics : bool
        Whether public topics are given. They are assumed to be of no help.
    """

    n_refinements: int
    n_words: int
    concentration: float = USUAL
    public_topics: bool = False

    unit = "documents"
    enough_for = "topics that share few words"

    def _assumed(self) -> list[str]:
        mixed = f"mix topics with a concentration of {self.concentration:g}"
        assumed = mixed if self.concentration > 0 else "have one topic each"
        said = [*super()._assumed(), f"Documents are assumed to {assumed}."]
        if self.public_topics:
            said.append("Public topics are assumed to be of no help; good ones need less data.")
        return said


def forecast_topics(
    plan: TopicPlan,
    n_samples: int,
    n_features: int,
    document_length: float,
    concentration: float,
    pure: bool,
    neighbours: str = "replace_one",
) -> TopicForecast:
    """Forecast a plan for documents of a given length with mostly distinct words."""
    releases, count_sigma = counted_releases(plan.releases, pure, neighbours)
    length = max(document_length, 3.0)
    k = plan.n_components
    spread = min(WORDS_PER_TOPIC, max(n_features / k, 1.0))
    # Norm of one document's statistic over its number of tokens, all words distinct.
    norms = {
        "word_frequencies": 1.0 if pure else length**-0.5,
        "pair_moments": 1.0 if pure else math.sqrt(2 / (length * (length - 1))),
        "expected_counts": 1.0 if pure else length**-0.5,
        "triple_moments": 1.0 if pure else (length * (length - 1) * (length - 2)) ** -0.5,
        "whitened_triple_moments": k**1.5,
    }
    rows = []
    for planned in releases.releases:
        if planned.name not in norms:
            continue
        sigma = _sigma(planned.name, norms[planned.name], pure, neighbours)
        sigma /= n_samples * (planned.cost.epsilon or planned.cost.mu)
        if pure and planned.name == plan.triples:
            seen = plan.n_words if plan.triples == "triple_moments" else k
            sigma *= spherical_spread(n_unique(seen, 3))
        noise, signal = _against(planned.name, sigma, plan, n_features, spread, concentration)
        rows.append(ReleaseForecast(planned.name, sigma, noise, signal))
    pairs = next(row for row in rows if row.name == "pair_moments")
    needed = n_samples / pairs.ratio if pairs.noise > 0 else k
    return TopicForecast(
        tuple(rows), n_samples, math.ceil(max(needed, k)), k, plan.n_refinements, plan.n_words,
        concentration, plan.asks_public, count_sigma=count_sigma,
    )  # fmt: skip


def _sigma(name: str, limit: float, pure: bool, neighbours: str) -> float:
    """Deviation of noise of unit strength on a sum of statistics of some norm."""
    if name == "whitened_triple_moments":
        return WhitenedTripleMoments.sensitivity_of(limit, neighbours)
    if name == "triple_moments" or not pure:
        return QUERIES[name].sensitivity_of(limit, neighbours=neighbours)
    # Laplace noise of scale 1 has a deviation of sqrt(2).
    return math.sqrt(2) * QUERIES[name].sensitivity_of(limit, 1, neighbours)


def _against(
    name: str, sigma: float, plan: TopicPlan, n_features: int, spread: float, concentration: float
) -> tuple[float, float]:
    """Noise and signal of a release in the norm in which they compete."""
    k = plan.n_components
    # Eigenvalue of k equally likely topics with disjoint words.
    eigenvalue = 1 / (k * spread * (concentration + 1))
    if name == "pair_moments":
        return sigma * math.sqrt(plan.n_words), eigenvalue
    if name == "whitened_triple_moments":
        return sigma * math.sqrt(k * (k + 1) * (k + 2) / 6), k
    if name == "triple_moments":
        unwhitened = sigma * math.sqrt(k * (k + 1) * (k + 2) / 6)
        return unwhitened, math.sqrt(k) * eigenvalue**1.5 * math.sqrt(k)
    if name == "expected_counts":
        return sigma, 1 / (k * n_features)
    return sigma, 1 / n_features
