"""Plan of a topic fit from public numbers: its releases, how they are used, and forecast."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.parameters import check_feasible
from sktensor_dp.estimator.forecast import (
    VERDICTS,
    Forecast,
    Question,
    ReleaseForecast,
    counted_releases,
    least_number,
)
from sktensor_dp.privacy.calibration import gaussian_mu, spherical_spread
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.clips import MIN_TOKENS
from sktensor_dp.queries.count_moments import (
    PairMoments,
    TripleMoments,
    WhitenedTripleMoments,
    WordFrequencies,
)
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.queries.query import Bounded
from sktensor_dp.spectral_lda import defaults
from sktensor_dp.spectral_lda.topic_chances import (
    MOST,
    SeenTopics,
    least_over_half_edge,
)
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.symmetric import n_unique
from sktensor_dp.topics import defaults as of_topics
from sktensor_dp.topics.concentration import concentration_of_length
from sktensor_dp.topics.moments import mean_square_of_pairs
from sktensor_dp.topics.noise_edge import bulk_edge, sampling_of_pairs
from sktensor_dp.topics.shrinkage import RATIOS

# Frequency of the word of rank r in a text without stop words is about in proportion to 1 / (r +
# OFFSET) (Mandelbrot). The first d words have d / (d + OFFSET) of the squares, and noise grows as
# d^(1/2): as many words as OFFSET show topics best.
OFFSET = 50


@dataclass(frozen=True)
class TopicPlan:
    """Releases and settings of a topic fit, chosen from public numbers only."""

    n_components: int  # topics, capped by the number of words
    # Number of words whose pairs are released: all, or the most frequent ones.
    n_words: int
    all_words: bool  # True if these are all; then a document has one weight in both moments
    # "whitened_triple_moments" or "triple_moments": which third moment is released; None for
    # none.
    triples: str | None
    match_moments: bool  # True to fit topics to all moments jointly (`topics/moments.py`)
    n_refinements: int  # number of EM steps
    clip_quantile: float  # quantile of units' norms at which they are clipped
    releases: ReleasePlan  # names, numbers and costs of the releases
    limits: Mapping[str, float]  # public clips by name
    # True to multiply with the exact pairs of many words without forming them.
    multiplies_pairs: bool
    n_single: int  # EM steps, the first ones, that take each document to have one topic

    @property
    def least_tokens(self) -> int:
        """Fewest tokens of a document that counts in pairs, or with `all_words` in all moments."""
        return MIN_TOKENS if self.all_words else 2


@dataclass(frozen=True, eq=False)
class TopicOptions:
    """Settings of a topic fit that do not decide which releases it makes."""

    # Sum of the Dirichlet prior; 0 for one topic per document, None to estimate it.
    concentration: float | None
    random_state: int | np.random.RandomState | None  # of searches after releases
    # (n_features,): public frequencies that noisy ones are shrunk to; positive, of sum 1.
    word_frequencies: Floats | None


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
) -> TopicPlan:
    """Choose the releases of a topic fit and split the budget among them.

    `n_refinements` None chooses the number of EM steps, too; `limits` are public clips by name.
    """
    # Most words whose pairs are released before EM steps: with more, eigenvectors would take most
    # of the time.
    max_words = 1500
    exact = math.isinf(epsilon)
    # Number of documents times the mu of one Gaussian release at the whole budget, with a usual
    # delta in place of 0.
    n_effective = math.inf if exact else n_samples * gaussian_mu(epsilon, delta or 1e-6)
    clipped_fraction = min(defaults.CLIPPED, defaults.N_CLIPPED / n_effective)
    in_word_space = perturbation == "moment_tensor"
    # All moments are fitted jointly where words are few and documents many.
    enough_to_match = defaults.MATCH_FROM * n_features * n_components
    matches = n_features <= defaults.JOINT_WORDS and n_effective >= enough_to_match
    kind = "few_words" if matches else "many_words"
    if in_word_space:
        kind = "word_space"
    n_steps, n_single = _steps(n_refinements, exact, delta, kind)
    triples = None
    if kind != "many_words" or n_steps == 0:
        triples = "triple_moments" if in_word_space else "whitened_triple_moments"
    fractions = _fractions(kind, n_steps, triples)
    n_words = min(n_features, max_words) if n_steps else n_features
    if not (matches or exact):  # as many as their fraction of the budget pays for
        n_paid = n_effective * math.sqrt(fractions["pair_moments"]) / defaults.DOCUMENTS_PER_WORD
        n_words = min(max(int(n_paid), OFFSET), n_words)
    return TopicPlan(
        n_components=min(n_components, n_features), n_words=n_words,
        all_words=n_words == n_features, triples=triples, match_moments=matches,
        clip_quantile=1 - clipped_fraction if matches else defaults.LOW_QUANTILE,
        multiplies_pairs=exact and n_words > max_words,
        n_refinements=n_steps, n_single=n_single,
        releases=_release_plan(epsilon, delta, fractions, triples, n_steps, limits), limits=limits,
    )  # fmt: skip


def _steps(n_steps: int | None, exact: bool, delta: float, kind: str) -> tuple[int, int]:
    """Number of EM steps, and of the first ones that take each document to have one topic.

    `exact` is without noise, `kind` a key of defaults.FRACTIONS.
    """
    if n_steps is None:
        if kind != "many_words":
            n_steps = 0
        elif exact:
            n_steps = 2 * defaults.EXACT_STEPS
        elif delta > 0:
            n_steps = defaults.STEPS
        else:  # costs of pure noise add up, those of Gaussian noise as squares: fewer steps
            n_steps = max(round(defaults.STEPS**0.5), 1)
    n_single = n_steps // 2 if exact and kind == "many_words" else 0
    return n_steps, n_single


def _fractions(kind: str, n_steps: int, triples: str | None) -> dict[str, float]:
    """Fraction of the budget of each release, by name; all histograms of norms share one."""
    of_moments = dict(defaults.FRACTIONS[kind])
    # EM steps get what "many_words" leaves, also in fits of another `kind`; and the fraction of
    # triples where none are released.
    of_steps = 1 - sum(defaults.FRACTIONS["many_words"].values())
    if triples is None:
        of_steps += of_moments.pop("whitened_triple_moments")
    if n_steps == 0:
        of_steps = 0.0
    total = sum(of_moments.values())
    fractions = {name: part * (1 - of_steps) / total for name, part in of_moments.items()}
    if n_steps:
        fractions["expected_counts"] = of_steps
    return fractions


def _release_plan(
    epsilon: float,
    delta: float,
    fractions: Mapping[str, float],
    triples: str | None,
    n_steps: int,
    limits: Mapping[str, float],
) -> ReleasePlan:
    """Plan the releases, with a histogram of norms for each clip without a public limit."""
    clipped = {"counts", "pairs"} | ({"triples"} if triples else set())
    if delta == 0:
        # The number of tokens bounds pairs, and triples in word space, too.
        clipped -= {"pairs", "triples"} if triples == "triple_moments" else {"pairs"}
    n_histograms = 0 if math.isinf(epsilon) else len(clipped - set(limits))
    if n_histograms == 0:
        fractions = {name: part for name, part in fractions.items() if name != "norm_histogram"}
    uses = {"norm_histogram": n_histograms, "expected_counts": n_steps}
    return ReleasePlan.split(epsilon, delta, fractions, uses)


def check_memory(plan: TopicPlan, n_features: int) -> None:
    """Raise ValueError if a fit would hold more numbers at once than fit into memory."""
    # How many arrays of each shape are held at once. Matrices of pairs: sums and what rounding left
    # of them, a part's sum and its sparse product; later copies of the released ones. Cubes of
    # topics: third moments, their positions, and products in each mode.
    pair_matrices, cubes = 8, 12
    # Columns in the search for eigenvectors of pairs, for each topic and beyond: eight blocks of a
    # basis, their products and residuals.
    search_columns, more_columns = 24, 10
    # For few words: rows in the history of the joint fit, and squares of curvatures and their
    # inverses for each topic.
    matched_rows, matched_squares = 64, 8
    # Arrays of words by ratios of the prior: likelihoods, posteriors, means and squares. The grid
    # of word frequencies, 1.5 times as wide in eight arrays, is freed before and takes less.
    prior_arrays = 14
    # Rows of all words for each topic: topics, deviations, averages and answers of steps.
    topic_rows = 24
    # Doubles in blocks and public tables that are worked on at once.
    workspace = 2**21
    k, n_words = plan.n_components, float(plan.n_words)
    held = float(n_features) * (topic_rows * k + prior_arrays * RATIOS.size) + cubes * float(k) ** 3
    held += search_columns * n_words * (k + more_columns)
    if plan.match_moments:
        held += n_words * k * (matched_rows + matched_squares * k)
    if not plan.multiplies_pairs:
        held += pair_matrices * (n_words + 1) ** 2
    check_feasible(
        held + workspace,
        f"A fit of {counted(n_features, 'feature')} by n_components={k}",
        "Fit fewer features: PrivateCountVectorizer keeps the words that enough documents hold.",
    )


OF_ORDINARY_TEXTS = (
    "No data is read, and topics of texts differ in strength, by a factor of two either way in a "
    "third of collections: of fits to five collections and to drawn texts that saw any, nine of "
    "ten saw as many as forecast."
)
OFTEN = 0.5  # of fits see a third of the topics or more, where documents may be enough
TOO_SHORT = "Documents so short show no topic, however many there are."
FEW_WORDS = "Topics have three words each or more: so few words hold fewer topics."
JOIN_ROWS = "If persons have several rows, such as a row per click, add up those of each to one."


@dataclass(frozen=True, repr=False)
class TopicForecast(Forecast):
    """Forecast of a topic fit: noise of each release, and how many topics it is likely to see.

    From ``n_samples_needed`` documents on half of all fits see four fifths of the topics or more.
    ``verdict`` is "enough" where nine of ten do, "may be enough" where half see a third or more.

    Attributes
    ----------
    n_refinements, n_words, n_kept : int
        EM steps the fit would make, words whose pairs it would release, and words that a private
        vocabulary keeps (all features without one).
    concentration : float
        Assumed sum of the Dirichlet parameters of the topics' shares in a document.
    document_length : float
        Assumed number of tokens of a document.
    """

    n_refinements: int
    n_words: int
    n_kept: int
    concentration: float
    document_length: float
    _seen: SeenTopics = field(repr=False)

    unit, component = "document", "topic"

    def chance(self, n_topics: int) -> float:
        """Compute the probability that a fit sees at least `n_topics` topics.

        Parameters
        ----------
        n_topics : int
            From 1 to ``n_components``.

        Returns
        -------
        float
            Over collections of texts, whose topics differ in strength, and fits. Costs nothing.

        Examples
        --------
        >>> from sktensor_dp import PrivateSpectralLDA
        >>> forecast = PrivateSpectralLDA(10, epsilon=1.0).forecast(50_000, 2000)
        >>> forecast.chance(8) > 0.9
        True
        """
        return self._seen.chance(n_topics)

    @cached_property
    def n_samples_needed(self) -> float:
        """Number of documents from which on half of all fits see most topics; or infinity."""
        k = self.n_components
        if self._seen.n_possible < k:
            return math.inf
        # More documents change the plan, too.
        needed = least_number(lambda n: self._again(n_samples=n).chance(most_of(k)) >= 0.5, k)
        return needed or math.inf

    @property
    def verdict_is_for(self) -> str:
        """Kind of data that the verdict is for."""
        return " for texts"

    @property
    def verdict(self) -> str:
        """``"enough"``, ``"may be enough"``, ``"likely too few"`` or ``"too few"``.

        Six of seven fits of the benchmark turn out as the word says.
        """
        k, chance = self.n_components, self.chance
        if self.few_words:
            return VERDICTS[3]
        if chance(most_of(k)) >= 0.9:
            return VERDICTS[0]
        if chance(math.ceil(k / 3)) >= OFTEN:
            return VERDICTS[1]
        return VERDICTS[2] if chance(k // 2 + 1) >= 0.1 else VERDICTS[3]

    @property
    def few_words(self) -> bool:
        """True where topics cannot have three words each, however many documents there are."""
        # With fewer words the topics of ordinary texts are half as strong or less.
        return self.n_components > 1 and self.n_kept < 3 * self.n_components

    @property
    def n_likely(self) -> tuple[int, int]:
        """Least and largest number of topics in nine of ten fits that see any.

        Fits see none where no two topics stand out of the noise: ``p_none`` is how many do.
        """
        return self._seen.range()

    @property
    def p_none(self) -> float:
        """Probability that a fit sees none of the topics."""
        return 1 - self.chance(1)

    @property
    def likely(self) -> str:
        """Sentence on the number of topics that are likely to be seen."""
        topics, p_none = counted(self.n_components, "topic"), self.p_none
        if not any(self.n_likely):
            return f"Likely to be seen: none of {topics}."
        none = f"none (in {p_none:.0%} of fits), or else " if p_none > MOST else ""
        numbers = " to ".join(dict.fromkeys(map(str, self.n_likely)))
        return f"Likely to be seen: {none}{numbers} of {topics}."

    @property
    def _from(self) -> str:
        """Number of documents from which on half of all fits see most topics, in words."""
        k = self.n_components
        seen = f"{most_of(k)} or more" if most_of(k) < k else "all"
        of_topics = f"{seen} of {counted(k, self.component)}"
        return f"half of all fits see {of_topics} from about {self.n_samples_needed:,} on"

    @property
    def _sizes(self) -> str:
        return f"{super()._sizes} and {counted(self.n_kept, 'word')}"

    @property
    def assumptions(self) -> list[str]:
        """Sentences on what is assumed of documents."""
        mixed = f"mix topics with a concentration of {self.concentration:.2g}"
        assumed = mixed if self.concentration > 0 else "have one topic each"
        return [
            f"Documents are assumed to have about {counted(self.document_length, 'token')} each "
            "(document_length= says otherwise; with groups= documents are persons, with all their "
            f"texts), and to {assumed}."
        ]

    def _assumed(self) -> list[str]:
        """Sentences on what is assumed of texts, and the verdict on shorter ones if it differs."""
        possible = math.isfinite(self.n_samples_needed)
        why = [FEW_WORDS] if self.few_words else [TOO_SHORT, JOIN_ROWS]
        said = [*super()._assumed(), *([] if possible else why), OF_ORDINARY_TEXTS]
        length = round(self.document_length / 10)
        if self._question is not None and possible and length >= MIN_TOKENS:
            of_short = self._again(document_length=length).verdict
            if of_short != self.verdict:
                said.append(f"Of documents of about {counted(length, 'token')}: {of_short}.")
        return [*said, self.likely]


def most_of(n_topics: int) -> int:
    """Four fifths of a number of topics."""
    return math.ceil(0.8 * n_topics)


class Compared(NamedTuple):
    """Statistic of a release, and the noise and signal by which a forecast judges it."""

    query: type[Bounded]
    norm: float  # of one document's statistic, relative to its number of tokens
    noise: float  # of deviation 1, in the norm in which it is compared with the signal
    signal: float


def forecast_topics(
    plan: TopicPlan, question: Question, concentration: float | None, pure: bool, neighbours: str
) -> TopicForecast:
    """Forecast noise and signal of each planned release, and how many topics a fit sees.

    `pure` means delta = 0; a `concentration` of None is that of documents so long.
    """
    numbers = question.numbers
    if concentration is None:
        concentration = concentration_of_length(max(numbers["document_length"], 2.0))
    rows, seen = _expected(
        plan, concentration=concentration, pure=pure, neighbours=neighbours, **numbers
    )
    _, count_sigma = counted_releases(plan.releases, pure, neighbours)
    return TopicForecast(
        tuple(rows), numbers["n_samples"], plan.n_components,
        n_refinements=plan.n_refinements, n_words=plan.n_words, n_kept=numbers["n_kept"],
        concentration=concentration, document_length=numbers["document_length"],
        count_sigma=count_sigma, _seen=seen, _question=question,
    )  # fmt: skip


def _expected(
    plan: TopicPlan, n_samples: int, *, n_features: int, n_kept: int, document_length: float,
    concentration: float, pure: bool, neighbours: str,
) -> tuple[list[ReleaseForecast], SeenTopics]:  # fmt: skip
    """Noise and signal of each release for `n_samples` documents; and the chances of topics."""
    releases, _ = counted_releases(plan.releases, pure, neighbours)
    length, k = max(document_length, 2.0), plan.n_components
    # Verdicts assume pairs of ten words a topic or more: fits with fewer find about as many topics.
    n_words = min(max(plan.n_words, 10 * k), n_features)
    assumed_plan = replace(plan, n_words=n_words, all_words=n_words == n_features)
    table = _compared(assumed_plan, n_features, n_kept, length, concentration, pure=pure)
    rows = []
    for planned in releases.planned:
        if planned.name not in table:
            continue
        compared = table[planned.name]
        sigma = _sigma_at_one(planned.name, compared, plan, pure, neighbours)
        sigma /= n_samples * (planned.cost.epsilon or planned.cost.mu)
        noise = sigma * compared.noise
        rows.append(ReleaseForecast(planned.name, sigma, noise, compared.signal))
    pairs = next(row for row in rows if row.name == "pair_moments")
    # Half the edge of the spectrum that sampling alone gives pairs.
    frequencies = 1 / (np.arange(n_words) + OFFSET) / math.log1p(n_features / OFFSET)
    sampling = bulk_edge(0.0, 0.0, sampling_of_pairs(length, n_samples, n_words), frequencies) / 2
    least = least_over_half_edge(n_words) * math.hypot(pairs.noise, sampling)
    # Topics have three words each or more; fits of several topics see two at least, or none.
    n_possible = n_kept // 3 if k > 1 else 1
    too_few_words = k > 1 and n_possible < 2
    if document_length < plan.least_tokens or too_few_words:
        n_possible = 0
    return rows, SeenTopics(k, n_possible, math.inf if least == 0 else pairs.signal / least)


def _sigma_at_one(
    name: str, compared: Compared, plan: TopicPlan, pure: bool, neighbours: str
) -> float:
    """Deviation of noise on the sum of a release at a cost of mu = 1, or if `pure` epsilon = 1."""
    sensitivity_of = partial(compared.query.sensitivity_of, compared.norm, neighbours=neighbours)
    if pure and name != plan.triples:  # Laplace noise of scale 1 has a deviation of sqrt(2)
        return math.sqrt(2) * sensitivity_of(order=1)
    spread = 1.0
    if pure:
        n_dims = plan.n_words if plan.triples == "triple_moments" else plan.n_components
        spread = spherical_spread(n_unique(n_dims, 3))
    return sensitivity_of() * spread


def _compared(
    plan: TopicPlan, n_features: int, n_kept: int, length: float, concentration: float, *,
    pure: bool,
) -> dict[str, Compared]:  # fmt: skip
    """Statistic, noise and signal of each release by its name, for ordinary texts."""
    # Effective number of words of a topic: one over the sum of its squared probabilities.
    words_per_topic = 100
    k = plan.n_components
    words_each = min(words_per_topic, max(n_features / k, 1.0))
    squares = squares_of_words(min(plan.n_words, n_kept), n_features)
    eigenvalue = of_topics.STRENGTH * squares / (k * (concentration + 1))
    # Norms of one document's statistics; its words are assumed to be distinct, except in pairs.
    norm_of_counts = length**-0.5
    norm_of_pairs = pair_norm(plan, n_features, length, words_each, concentration)
    norm_of_triples = (length * (length - 1) * max(length - 2, 1.0)) ** -0.5
    if pure:  # the number of tokens bounds all of them
        norm_of_counts = norm_of_pairs = norm_of_triples = 1.0
    # Noise of deviation 1/2 in pairs off the diagonal has the edge sqrt(n_words); an eigenvector
    # stands out if its eigenvalue is above half of it (Baik, Ben Arous & Peche, 2005). Triples are
    # compared by norm: k orthogonal topics have terms of norm k^(1/2) eigenvalue^(3/2) each in word
    # space, and of k^(1/2) if whitened.
    noise_of_pairs = math.sqrt(plan.n_words) / 2
    noise_of_triples = math.sqrt(n_unique(k, 3))
    return {
        "word_frequencies": Compared(WordFrequencies, norm_of_counts, 1.0, 1 / n_features),
        "pair_moments": Compared(PairMoments, norm_of_pairs, noise_of_pairs, eigenvalue),
        "expected_counts": Compared(ExpectedCounts, norm_of_counts, 1.0, 1 / (k * n_features)),
        "triple_moments": Compared(
            TripleMoments, norm_of_triples, noise_of_triples, k * eigenvalue**1.5
        ),
        "whitened_triple_moments": Compared(
            WhitenedTripleMoments, k**1.5, noise_of_triples, k
        ),
    }  # fmt: skip


def pair_norm(
    plan: TopicPlan, n_features: int, length: float, words_each: float, concentration: float
) -> float:
    """Clip of pairs of the released words, relative to the number of a document's tokens.

    `words_each` is the effective number of words of a topic.
    """
    # Probability that two tokens of a document are the same word: one of their topic, which both
    # have with the probability 1 / (1 + concentration), or else one of all words.
    of_all = squares_of_words(n_features, n_features)
    repeats = (1 / words_each + concentration * of_all) / (1 + concentration)
    tokens = length
    if not plan.all_words:
        # Of a document's tokens a binomial number are released words. Where clips are at the
        # quantile q of norms, forecasts take the quantile 1 - q of this number.
        part = math.log1p(plan.n_words / OFFSET) / math.log1p(n_features / OFFSET)
        above = float(ndtri(1 - plan.clip_quantile)) * math.sqrt(length * part * (1 - part))
        tokens = min(max(length * part + above, 2.0), length)
        repeats *= squares_of_words(plan.n_words, n_features) / of_all / part**2
    pairs = tokens * (tokens - 1) / (length * (length - 1))
    return pairs * math.sqrt(mean_square_of_pairs(tokens, repeats))


def squares_of_words(n_words: int, n_features: int) -> float:
    """Sum of the squared frequencies of the first `n_words` of `n_features` words, about."""
    return n_words / (OFFSET * (n_words + OFFSET)) / math.log1p(n_features / OFFSET) ** 2
