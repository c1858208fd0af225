"""Plan of a topic fit from public numbers: its releases and how they are used."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scipy.special import ndtri

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.parameters import check_feasible
from sktensor_dp.estimator.forecast import Forecast, ReleaseForecast, counted_releases
from sktensor_dp.privacy.calibration import gaussian_mu, spherical_spread
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.count_moments import PairMoments, TripleMoments, WhitenedTripleMoments
from sktensor_dp.queries.counts import WordFrequencies
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.queries.query import Bounded
from sktensor_dp.spectral_lda import defaults
from sktensor_dp.tensor.symmetric import n_unique
from sktensor_dp.topics.concentration import USUAL, has_one_topic
from sktensor_dp.topics.moments import spread_of_pairs
from sktensor_dp.topics.shrinkage import RATIOS

# Most arrays of each size that a fit holds at once, counted in the code. Matrices of pairs: a total
# and a rest of sums, a part's sum, and its sparse product; then the released pairs, corrected ones
# twice, or those of a joint fit. Cubes of topics: third moments, their positions, and products in
# each mode.
PAIR_MATRICES, CUBES = 8, 12
# Columns in the search for eigenvectors of pairs, for each topic and beyond: eight blocks of a
# basis, their products and residuals.
SEARCH_COLUMNS, MORE_COLUMNS = 24, 10
# Doubles in blocks and public tables that are worked on at once.
WORKSPACE = 2**21


@dataclass(frozen=True)
class TopicPlan:
    """Releases and settings of a topic fit, chosen from public numbers only."""

    n_components: int  # topics, capped by the number of words
    # Number of words whose pairs are released: all, or the most frequent ones.
    n_words: int
    all_words: bool  # True if these are all; then a document has one weight in all moments
    # "whitened_triple_moments" or "triple_moments": which third moment is released.
    triples: str | None
    match_moments: bool  # True to fit topics to all moments jointly
    n_refinements: int  # number of EM steps
    clip_quantile: float  # quantile of documents' norms at which they are clipped
    releases: ReleasePlan  # the budget
    asks_public: bool = False  # True for a held-out test of fitted topics against public ones
    # True to multiply with the exact pairs of many words without forming them.
    multiplies_pairs: bool = False
    n_single: int = 0  # EM steps, the first ones, that take each document to have one topic

    # The third moment has a clip of its own, which few documents reach, as clipping it alone breaks
    # identities between the moments.
    triple_quantile: float = 0.95


def effective_documents(n_samples: int, epsilon: float, delta: float) -> float:
    """Number of documents times the mu of one Gaussian release (epsilon / 4 if delta is 0)."""
    if math.isinf(epsilon):
        return math.inf
    return n_samples * (gaussian_mu(epsilon, delta) if delta > 0 else epsilon / 4)


def plan_topics(
    n_samples: int,
    n_features: int,
    n_components: int,
    *,
    epsilon: float,
    delta: float,
    perturbation: str,
    n_refinements: int | None,
    limits: Mapping[str, float],
    with_public: bool = False,
    to_fit: bool = False,
) -> TopicPlan:
    """Choose the releases of a topic fit and split the budget among them."""
    # Most words whose pairs are released: with more, eigenvectors would take most of the time.
    max_words = 1500
    n_effective, k = effective_documents(n_samples, epsilon, delta), min(n_components, n_features)
    exact, moment = math.isinf(n_effective), perturbation == "moment_tensor"
    sought = n_features * n_components
    small = n_features <= defaults.JOINT_WORDS and n_effective >= defaults.MATCH_FROM * sought
    kind = "moment" if moment else "small" if small else "large"
    n_steps, n_single = _steps(n_refinements, exact, delta, kind)
    asks_public = n_steps > 0 and n_components > 1 and with_public
    triples = "triple_moments" if moment else "whitened_triple_moments"
    third = triples if kind != "large" or n_steps == 0 else None
    fractions = _fractions(kind, n_steps, asks_public, third is not None)
    most = max_words if n_steps else n_features
    n_words = _n_words(n_effective, fractions["pairs"], n_features, n_components, small, most)
    multiplies = exact and n_words > max_words
    plan = TopicPlan(
        n_components=k, n_words=n_words, all_words=n_words == n_features, triples=third,
        match_moments=small, clip_quantile=_clip_quantile(n_effective, small),
        asks_public=asks_public,
        multiplies_pairs=multiplies, n_refinements=n_steps, n_single=n_single,
        releases=_release_plan(epsilon, delta, fractions, third, n_steps, limits),
    )  # fmt: skip
    if to_fit:
        check_feasible(
            _numbers_held(plan, float(n_features), with_public),
            f"A fit of {counted(n_features, 'feature')} by n_components={k}",
            "Fit fewer features: PrivateCountVectorizer keeps the words that enough documents "
            "hold.",
        )
    return plan


def _numbers_held(plan: TopicPlan, n_features: float, with_public: bool) -> float:
    """Most numbers that a fit holds at once, by public sizes."""
    # For few words: rows in the history of the joint fit, and squares of curvatures and their
    # inverses for each topic.
    matched_rows, matched_squares = 64, 8
    # Arrays of words by ratios of the prior, for one centre: likelihoods, posteriors, means and
    # squares. The grid of word frequencies is half as large again, in eight arrays.
    prior_arrays = 14
    # Rows of all words for each topic: topics, deviations, averages and answers of steps.
    topic_rows = 24
    k, n_words = plan.n_components, float(plan.n_words)
    # With public topics the prior of a word has a second centre.
    priors = prior_arrays * RATIOS.size * (1 + with_public)
    held = n_features * (topic_rows * k + priors) + CUBES * float(k) ** 3
    held += SEARCH_COLUMNS * n_words * (k + MORE_COLUMNS)
    if plan.match_moments:
        held += n_words * k * (matched_rows + matched_squares * k)
    if not plan.multiplies_pairs:
        held += PAIR_MATRICES * (n_words + 1) ** 2
    return held + WORKSPACE


def _fractions(kind: str, n_steps: int, asks: bool, with_triples: bool) -> dict[str, float]:
    """Fraction of the budget of each release, by name."""
    found = dict(defaults.FRACTIONS[kind])
    question = found.pop("held_out_scores")
    # With third moments, steps that a caller asks for get the fraction of those of many words.
    others = {**defaults.FRACTIONS["large"], "held_out_scores": 0.0}
    left = 1 - sum(others.values())
    if not with_triples:
        left += found.pop("triples")
    steps = left if n_steps else 0.0
    used = sum(found.values())
    fractions = {name: part * (1 - steps) / used for name, part in found.items()}
    if steps:
        fractions["expected_counts"] = steps
    if asks:
        fractions = {name: part * (1 - question) for name, part in fractions.items()}
        fractions["held_out_scores"] = question
    return fractions


def _steps(asked: int | None, exact: bool, delta: float, kind: str) -> tuple[int, int]:
    """Number of EM steps, and how many of the first take each document to have one topic."""
    if asked is not None:
        return asked, asked // 2 if exact and kind == "large" else 0
    if kind != "large":
        return 0, 0
    if exact:
        return 2 * defaults.EXACT_STEPS, defaults.EXACT_STEPS
    # Costs of pure noise add up, those of Gaussian noise add up as squares: fewer steps if delta is
    # 0.
    return defaults.STEPS if delta > 0 else max(round(defaults.STEPS**0.5), 1), 0


def _clip_quantile(n_effective: float, small: bool) -> float:
    """Quantile of documents' norms to clip at; closer to 1 for a joint fit of moments."""
    # For few words the clipped fraction falls with the noise, so that estimates converge.
    return 1 - min(0.05, 500 / n_effective) if small else 0.1


def _n_words(
    n_effective: float, fraction: float, n_features: int, n_components: int, small: bool, most: int
) -> int:
    """Number of words whose pairs are released: as many as `fraction` of the budget pays for."""
    if small or math.isinf(n_effective):
        return min(n_features, most)
    wanted = int(n_effective * math.sqrt(fraction) / defaults.DOCUMENTS_PER_WORD)
    return min(max(wanted, 10 * n_components), n_features, most)


def _release_plan(
    epsilon: float,
    delta: float,
    fractions: Mapping[str, float],
    triples: str | None,
    n_refinements: int,
    limits: Mapping[str, float],
) -> ReleasePlan:
    """Plan the releases, with a histogram of norms for each clip without a public limit."""
    names = {"pairs": "pair_moments", "triples": triples}
    fractions = {names.get(name) or name: part for name, part in fractions.items()}
    clipped = {"counts", "pairs"} | ({"triples"} if triples else set())
    if delta == 0:
        # The number of tokens bounds pairs, and triples in word space, too.
        clipped -= {"pairs", "triples"} if triples == "triple_moments" else {"pairs"}
    n_histograms = 0 if math.isinf(epsilon) else len(clipped - set(limits))
    if n_histograms == 0:
        fractions.pop("norm_histogram")
    uses = {"norm_histogram": n_histograms, "expected_counts": n_refinements}
    return ReleasePlan.split(epsilon, delta, fractions, uses)


# Frequency of the word of rank r in a text without stop words is about in proportion to 1 / (r +
# OFFSET) (Mandelbrot).
OFFSET = 50.0
# Queries by release, for their sensitivities.
QUERIES: dict[str, type[Bounded]] = {
    "word_frequencies": WordFrequencies,
    "pair_moments": PairMoments,
    "expected_counts": ExpectedCounts,
    "triple_moments": TripleMoments,
    "whitened_triple_moments": WhitenedTripleMoments,
}


@dataclass(frozen=True, repr=False)
class TopicForecast(Forecast):
    """Forecast of a topic fit: noise of each release, and a sufficient number of documents.

    ``n_samples_needed`` is the number from which the weakest of ``n_components`` equally likely
    topics that share no words stands out from the noise of the second moment. Fits find all
    topics of texts from about four times as many documents (``verdict``).

    Attributes
    ----------
    n_refinements, n_words : int
        EM steps the fit would make, and words whose pairs it would release.
    concentration : float
        Assumed sum of the Dirichlet parameters of the topics' shares in a document.
    public_topics : bool
        True if public topics are given. They are assumed to be of no help.
    """

    n_refinements: int
    n_words: int
    concentration: float = USUAL
    public_topics: bool = False

    unit = "document"
    verdicts = (("enough", 4.0), ("may be enough", 1.0), ("likely too few", 0.5))

    def _typically_needed(self) -> float:
        # In texts, topics beyond the tenth are weaker and weaker.
        return self.n_samples_needed * max(1.0, self.n_components / 10) ** 0.5

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
    concentration: float | None,
    pure: bool,
    neighbours: str = "replace_one",
) -> TopicForecast:
    """Forecast noise and signal of each planned release; `pure` means delta = 0."""
    # Effective number of words of a topic in ordinary text: one over the sum of its squared
    # probabilities.
    words_per_topic = 100
    releases, count_sigma = counted_releases(plan.releases, pure, neighbours)
    length = max(document_length, 3.0)
    k = plan.n_components
    if concentration is None:
        single = plan.triples is None and has_one_topic(USUAL, length, k)
        concentration = 0.0 if single else USUAL
    spread = min(words_per_topic, max(n_features / k, 1.0))
    # Norm of one document's statistic relative to its number of tokens; all words are taken to be
    # distinct, except in pairs.
    norms = {
        "word_frequencies": 1.0 if pure else length**-0.5,
        "pair_moments": 1.0 if pure else pair_norm(plan, n_features, length, spread, concentration),
        "expected_counts": 1.0 if pure else length**-0.5,
        "triple_moments": 1.0 if pure else (length * (length - 1) * (length - 2)) ** -0.5,
        "whitened_triple_moments": k**1.5,
    }
    rows = []
    for planned in releases.planned:
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


def pair_norm(
    plan: TopicPlan, n_features: int, length: float, spread: float, concentration: float
) -> float:
    """Clip of pairs of the released words, relative to the norm of all pairs."""
    # Probability that two tokens of a document are the same word, by its topics and by all words.
    of_all = n_features / (OFFSET * (n_features + OFFSET)) / math.log1p(n_features / OFFSET) ** 2
    repeats = (1 / spread + concentration * of_all) / (1 + concentration)
    tokens = length
    if not plan.all_words:
        share = math.log1p(plan.n_words / OFFSET) / math.log1p(n_features / OFFSET)
        above = float(ndtri(1 - plan.clip_quantile)) * math.sqrt(length * share * (1 - share))
        tokens = min(max(length * share + above, 2.0), length)
        repeats *= _squares(plan, n_features) / share**2
    pairs = tokens * (tokens - 1) / (length * (length - 1))
    return pairs * math.sqrt(spread_of_pairs(tokens, repeats))


def _squares(plan: TopicPlan, n_features: int) -> float:
    """Fraction of the sum of squared word frequencies that the released words have."""
    d = plan.n_words
    return d * (n_features + OFFSET) / (n_features * (d + OFFSET))


def _sigma(name: str, limit: float, pure: bool, neighbours: str) -> float:
    """Deviation of the noise on a sum of statistics, at mu = 1, or at epsilon = 1 if `pure`."""
    if name.endswith("triple_moments") or not pure:
        return QUERIES[name].sensitivity_of(limit, neighbours=neighbours)
    # Laplace noise of scale 1 has a standard deviation of sqrt(2).
    return math.sqrt(2) * QUERIES[name].sensitivity_of(limit, 1, neighbours)


def _against(
    name: str, sigma: float, plan: TopicPlan, n_features: int, spread: float, concentration: float
) -> tuple[float, float]:
    """Noise and signal of a release, in the norm in which they are compared."""
    k = plan.n_components
    # Eigenvalue of k equally likely topics with disjoint words.
    eigenvalue = 1 / (k * spread * (concentration + 1))
    if name == "pair_moments":
        # Entries off the diagonal have half the deviation, and an eigenvector stands out of the
        # noise if its eigenvalue is above half the edge (Baik, Ben Arous & Peche, 2005).
        return sigma / 2 * math.sqrt(plan.n_words), eigenvalue * _squares(plan, n_features)
    if name == "whitened_triple_moments":
        return sigma * math.sqrt(k * (k + 1) * (k + 2) / 6), k
    if name == "triple_moments":
        unwhitened = sigma * math.sqrt(k * (k + 1) * (k + 2) / 6)
        return unwhitened, math.sqrt(k) * eigenvalue**1.5 * math.sqrt(k)
    if name == "expected_counts":
        return sigma, 1 / (k * n_features)
    return sigma, 1 / n_features
