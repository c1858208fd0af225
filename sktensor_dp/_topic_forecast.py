"""What a fit can be expected to find, from public numbers only."""

import math
from dataclasses import dataclass

from sktensor_dp._topic_plan import TopicPlan
from sktensor_dp.privacy.plan import PrivacyCost

__all__ = ["ReleaseForecast", "TopicForecast", "forecast"]

# A topic's probability is spread over about this many words in ordinary text, as
# measured by one over the sum of its squared probabilities.
WORDS_PER_TOPIC = 100


@dataclass(frozen=True)
class ReleaseForecast:
    """Noise and signal of one release.

    Attributes
    ----------
    name : str
        Name in the catalogue.
    sigma : float
        Standard deviation of the noise, in shares of all tokens.
    noise : float
        Size of the noise in the norm that matters: operator norm for the second
        moment, Frobenius norm for the third, one coordinate otherwise.
    signal : float
        Size of what it must not hide.
    """

    name: str
    sigma: float
    noise: float
    signal: float

    @property
    def ratio(self) -> float:
        """Signal over noise."""
        return self.signal / self.noise if self.noise > 0 else math.inf


@dataclass(frozen=True)
class TopicForecast:
    """Noise of each release, and the number of documents that would be enough.

    Attributes
    ----------
    releases : tuple of ReleaseForecast
        One per release of the plan.
    n_samples : int
        Documents asked about.
    n_samples_needed : int
        Documents from which the weakest of ``n_components`` equally likely topics
        that share no words stands out from the noise of the second moment: a least
        number, as topics that share words need more.
    n_components : int
        Topics asked about.
    n_refinements : int
        EM steps the fit would make.
    n_words : int
        Words whose pairs would be released.
    """

    releases: tuple[ReleaseForecast, ...]
    n_samples: int
    n_samples_needed: int
    n_components: int
    n_refinements: int
    n_words: int

    @property
    def enough(self) -> bool:
        """Whether the number of documents asked about reaches that least number."""
        return self.n_samples >= self.n_samples_needed

    def __str__(self) -> str:
        lines = [f"{'release':<26}{'sigma':>11}{'noise':>11}{'signal':>11}{'ratio':>9}"]
        lines += [
            f"{r.name:<26}{r.sigma:>11.3g}{r.noise:>11.3g}{r.signal:>11.3g}{r.ratio:>9.3g}"
            for r in self.releases
        ]
        verdict = "enough for topics that share few words" if self.enough else "too few"
        lines.append(
            f"{self.n_samples} documents: {verdict}; the least that {self.n_components} topics "
            f"need is about {self.n_samples_needed}."
        )
        return "\n".join(lines)


def forecast(
    plan: TopicPlan,
    n_samples: int,
    n_features: int,
    document_length: float,
    concentration: float,
    pure: bool,
) -> TopicForecast:
    """Forecast a plan for documents of a given length with mostly distinct words.

    Returns
    -------
    TopicForecast
    """
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
    scale = 2 * math.sqrt(2) if pure else math.sqrt(2)
    rows = []
    for planned in plan.releases.releases:
        if planned.name == "norm_histogram":
            continue
        sigma = scale * norms[planned.name] / (n_samples * _strength(planned.cost))
        noise, signal = _against(planned.name, sigma, plan, n_features, spread, concentration)
        rows.append(ReleaseForecast(planned.name, sigma, noise, signal))
    pairs = next(row for row in rows if row.name == "pair_moments")
    needed = n_samples / pairs.ratio if pairs.noise > 0 else k
    return TopicForecast(
        tuple(rows), n_samples, math.ceil(max(needed, k)), k, plan.n_refinements, plan.n_words
    )


def _strength(cost: PrivacyCost) -> float:
    return cost.epsilon if cost.epsilon > 0 else cost.mu


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
