"""What a topic model will release and how it will use it, from public numbers only."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import ReleasePlan, check_feasible, fits_memory

# Up to here all moments can be fitted jointly (a d x d problem), with clips so rare
# that they do not bias. It pays once documents outweigh the noise by this many times
# the d k numbers sought; below, clipping most documents and EM steps lose less to bias
# than they gain in noise.
SMALL_VOCABULARY = 256
MATCH_FROM = 4.0
# Most words whose pairs are released: beyond, rare words add noise and no signal.
MAX_WORDS = 1500
# Matrices of pairs at a time: their sum, what rounding left of it, and what is added next.
PAIR_MATRICES = 3
# Where they are formed by rows: columns that the search for eigenvectors holds, as often as it
# has topics and some more.
ROW_COLUMNS, MORE_COLUMNS = 24, 10
# Pairs of so few words fit anywhere; beyond so many a product takes hours.
FEW_WORDS, MOST_WORDS_BY_ROWS = 100, 100_000
# Noise edge against the largest eigenvalues of text: words = n mu / this.
WORDS_DIVISOR = 12.0
# The third moment resolves k topics from about n mu = this times k^2. Below it the
# unigram itself is noisy, and gets what the third moment would have.
TRIPLES_FROM = 50.0
# There so much of the budget goes from pairs to the EM steps. These tell words too, and rare ones
# with less noise than word frequencies do: with twice as much for those, held-out posts and texts
# of four other kinds complete 0 to 2 % worse.
FROM_PAIRS = 0.1
# Groups become one document each below so many effective ones for each topic: pairs and triples
# of a group's documents taken together are more, and less to the point. On 2700 synthetic persons
# with 20 documents of 15 words the two are equally good at about this number.
JOINED_BELOW = 200.0
# Steps beyond these change held-out likelihood by less than their noise does.
REFINEMENTS = 6
EXACT_REFINEMENTS = 10
# Without noise, such a part of all steps comes first and takes each document to have one topic:
# these go far, and cost little, where mixtures keep to the topics with which they begin. On the
# training part of newsgroup posts completion is 1 % better so, on documentation 3 %, on texts of
# five words 3 %. Not of few words, whose topics must be those that their moments are fitted to.
SINGLE_PART = 1 / 3
# Those of many words: so many that mix topics, over their number, within these limits. What a step
# costs grows with the topics. Of ten, 15 that mix topics complete documents .06 % better at most,
# of fifty twice as many steps do not.
# Twelve single ones lead held-out posts to completions 0 to .5 % better than eight, twenty to no
# better ones.
SINGLE_STEPS, MIXED_TIMES_TOPICS, MIXED_STEPS = 12, 150, (5, 12)
# Single ones of no more topics than these, and one that mixes topics, are made from two starts: of
# fifty this would cost as much as all the rest.
MOST_COMPARED = 20
PURE_REFINEMENTS = 2

# Relative shares of mu^2. Around these values accuracy is flat within a factor of two.
SHARES = {
    "small": {"norm_histogram": 0.02, "word_frequencies": 0.03, "pairs": 0.82, "triples": 0.13},
    "large": {"norm_histogram": 0.02, "word_frequencies": 0.10, "pairs": 0.30, "triples": 0.05},
    "moment": {"norm_histogram": 0.02, "word_frequencies": 0.08, "pairs": 0.45, "triples": 0.45},
}
# What refinements take when they are made beside a full set of moments.
REFINEMENT_SHARE = 0.53
# What is kept for EM steps beside moments that are fitted jointly. They are made where the
# moments, once released, turn out not to fit the model, and are worth keeping where so little
# is enough: from so many times the d k numbers sought, a step's noise in a topic is about 3 %.
RESERVED_SHARE, RESERVE_FROM, RESERVED_STEPS = 0.1, 100.0, 15
# What asking takes whether topics pay: once before the EM steps, and after them, where two other
# concentrations are compared too. One number for each, so that little of the budget is enough.
GAIN_SHARE, N_GAINS = 0.02, 4
# Questions beside these where there are public topics: as much for each.
N_PUBLIC = 2


@dataclass(frozen=True)
class TopicPlan:
    """Decisions that may depend on public numbers only."""

    n_components: int  # topics, capped by the number of words
    # Words whose pairs are released: all, or the most frequent ones by the released frequencies.
    n_words: int
    all_words: bool  # whether that is all; then every document has one weight in all moments
    # "whitened_triple_moments" or "triple_moments": which third moment is released.
    triples: str | None
    match_moments: bool  # whether topics are fitted to all moments jointly
    n_refinements: int  # number of EM steps
    clip_quantile: float  # share of documents left unclipped
    group_rows: str  # "mean" or "concatenate": what becomes of the documents of a group
    releases: ReleasePlan  # the budget
    # Whether it is asked what topics gain over word frequencies, which take the budget of the EM
    # steps where topics gain nothing.
    asks_gains: bool = False
    asks_public: bool = False  # whether it is asked what public topics gain over those learnt
    # Whether the EM steps are made only where the released moments do not fit the model.
    may_misfit: bool = False
    # Whether memory cannot hold the pairs of words, so that rows of them are formed anew for every
    # product.
    pairs_by_rows: bool = False
    n_single: int = 0  # EM steps, the first ones, that take each document to have one topic
    n_compared: int = 0  # beside all these, to compare what they lead to with what others do
    # Most EM steps where documents turn out to be short: after those that take them to have one
    # topic, few tell whether others are better. None: as many as of others.
    n_if_short: int | None = None

    # The third moment is clipped last and rarely: clipping it alone breaks the
    # identities that the common weight keeps.
    triple_quantile: float = 0.95


def effective_documents(n_samples: int, epsilon: float, delta: float) -> float:
    """Number of documents in units of the noise that one of them needs."""
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
    apart: bool | None = None,
) -> TopicPlan:
    """Choose releases and split the budget; of data that lies `apart` or not, refuse too much."""
    n_effective, k = effective_documents(n_samples, epsilon, delta), min(n_components, n_features)
    exact, moment = math.isinf(n_effective), perturbation == "moment_tensor"
    few_if_short, sought = n_refinements is None, n_features * n_components
    small = n_features <= SMALL_VOCABULARY and n_effective >= MATCH_FROM * sought
    kind = "moment" if moment else "small" if small else "large"
    reserved = n_components > 1 and n_effective >= RESERVE_FROM * sought
    steps = _steps(n_refinements, n_components, n_effective, delta, kind, reserved)
    n_refinements, n_single, may_misfit = steps
    n_compared = _n_compared(n_single, n_components, with_public)
    asks_gains, asks_public, n_gains = _questions(
        kind, n_components, steps, n_compared, exact=exact, with_public=with_public
    )
    triples = "triple_moments" if moment else "whitened_triple_moments"
    resolved = n_effective >= TRIPLES_FROM * n_components**2
    third = triples if kind != "large" or resolved or n_refinements == 0 else None
    shares = _shares(kind, n_refinements, n_gains, third is not None, may_misfit)
    most = MAX_WORDS if n_refinements else n_features
    n_words = _n_words(n_effective, shares["pairs"], n_features, n_components, small, most)
    by_rows = _pairs_by_rows(n_words) and not exact
    feasible = _feasible(
        n_features, k, n_words, topics_alone=n_refinements == 0, exact=exact,
        by_rows=by_rows and not apart, spherical=delta == 0 and third is not None,
    )  # fmt: skip
    plan = TopicPlan(
        n_components=k, n_words=n_words, all_words=n_words == n_features, triples=third,
        match_moments=small and not exact, clip_quantile=_clip_quantile(n_effective, small),
        group_rows="concatenate" if n_effective < JOINED_BELOW * n_components else "mean",
        asks_gains=asks_gains, asks_public=asks_public, may_misfit=may_misfit,
        pairs_by_rows=by_rows, n_refinements=n_refinements, n_single=n_single,
        n_compared=n_compared,
        n_if_short=n_single + MIXED_STEPS[0] if few_if_short else None,
        releases=_release_plan(
            epsilon, delta, shares, third, n_refinements + n_compared, limits, n_gains
        ),
    )  # fmt: skip
    if apart is not None:
        feasible()
    return plan


def _feasible(
    n_features: int,
    n_components: int,
    n_words: int,
    *,
    topics_alone: bool,
    exact: bool,
    by_rows: bool,
    spherical: bool,
) -> Callable[[], None]:
    """Refuses features whose topics, and words whose pairs, memory cannot hold."""
    # Without noise, pairs are multiplied with and not formed. Data that lies apart is not read
    # again for every product.
    pairs, drawn = 0.0, 0.0
    if not exact:
        # Beside the pairs, the words, and what topics have of them.
        drawn = float(n_features) * (1 if topics_alone else n_components)
        drawn = max(drawn, n_words * (n_words + 1) / 2)
        pairs = PAIR_MATRICES * float(n_words) ** 2
    if by_rows:
        pairs = ROW_COLUMNS * float(n_words) * (n_components + MORE_COLUMNS)
    return partial(
        check_feasible, float(n_features) * (n_components + 2) + pairs,
        f"A fit of {n_features} features by n_components={n_components}",
        "Fit fewer features: PrivateCountVectorizer keeps the words that enough documents hold.",
        drawn=drawn, spherical=drawn > 0 and spherical,
    )  # fmt: skip


def _pairs_by_rows(n_words: int) -> bool:
    """Whether memory does not hold the pairs of words, and their rows can be formed anew."""
    some = FEW_WORDS < n_words <= MOST_WORDS_BY_ROWS
    return some and not fits_memory(PAIR_MATRICES * float(n_words) ** 2)


def _shares(
    kind: str, n_refinements: int, n_gains: int, with_triples: bool, may_misfit: bool
) -> dict[str, float]:
    """What each release gets of the budget, relative to the others."""
    shares = dict(SHARES[kind])
    if not with_triples:
        shares["word_frequencies"] += shares.pop("triples")
        shares["pairs"] -= FROM_PAIRS
    steps_share = RESERVED_SHARE if may_misfit else REFINEMENT_SHARE
    shares = _with_refinements(shares, n_refinements, None if kind == "large" else steps_share)
    if n_gains:
        asked = GAIN_SHARE * n_gains / N_GAINS
        shares = {name: share * (1 - asked) for name, share in shares.items()}
        shares["held_out_scores"] = asked
    return shares


def _steps(
    asked: int | None,
    n_components: int,
    n_effective: float,
    delta: float,
    kind: str,
    reserved: bool,
) -> tuple[int, int, bool]:
    """EM steps, how many take documents to have one topic, and whether moments decide on all."""
    exact = math.isinf(n_effective)
    may_misfit = asked is None and reserved and kind == "small" and delta > 0 and not exact
    if asked is not None:
        n_steps = asked
    elif may_misfit:
        n_steps = RESERVED_STEPS
    elif exact:
        n_mixed = MIXED_TIMES_TOPICS // n_components
        n_mixed = min(max(n_mixed, MIXED_STEPS[0]), MIXED_STEPS[1])
        n_steps = SINGLE_STEPS + n_mixed if kind == "large" else EXACT_REFINEMENTS
    elif kind == "large":
        n_steps = REFINEMENTS if delta > 0 else PURE_REFINEMENTS
    else:
        n_steps = 0
    n_single = SINGLE_STEPS if asked is None else int(n_steps * SINGLE_PART)
    n_single = n_single if exact and kind == "large" else 0
    return n_steps, n_single, may_misfit


def _questions(
    kind: str,
    n_components: int,
    steps: tuple[int, int, bool],
    n_compared: int,
    *,
    exact: bool,
    with_public: bool,
) -> tuple[bool, bool, int]:
    """Whether it is asked what topics gain, and what public ones do; how many questions that is."""
    n_refinements, n_single, may_misfit = steps
    asks = n_refinements > 0 and n_components > 1
    asks_gains = asks and not exact and kind == "large"
    asks_public = asks and with_public and not may_misfit
    # Which start is better, and whether documents of few tokens are better taken to have one topic.
    of_single = (n_compared > 0) + (n_single > 0 and n_components > 1)
    return asks_gains, asks_public, N_GAINS * asks_gains + N_PUBLIC * asks_public + of_single


def _n_compared(n_single: int, n_components: int, with_public: bool) -> int:
    """Steps from another start: public topics have their own, and one topic has one."""
    compared = 1 < n_components <= MOST_COMPARED and not with_public
    return n_single + 1 if n_single and compared else 0


def _clip_quantile(n_effective: float, small: bool) -> float:
    """Clip most documents where noise dominates, and few where bias would show."""
    # The share clipped for ``small`` falls with the noise, so that estimates converge.
    return 1 - min(0.05, 500 / n_effective) if small else 0.1


def _n_words(
    n_effective: float, share: float, n_features: int, n_components: int, small: bool, most: int
) -> int:
    if small or math.isinf(n_effective):
        return n_features
    wanted = int(n_effective * math.sqrt(share) / WORDS_DIVISOR)
    return min(max(wanted, 10 * n_components), n_features, most)


def _with_refinements(
    shares: dict[str, float], n_refinements: int, of_whole: float | None
) -> dict[str, float]:
    """Give EM steps what the large-vocabulary shares leave, or a part of a whole split."""
    if n_refinements == 0:
        used = sum(shares.values())
        return {name: share / used for name, share in shares.items()}
    if of_whole is not None:
        shares = {name: share * (1 - of_whole) for name, share in shares.items()}
    shares["expected_counts"] = 1 - sum(shares.values())
    return shares


def _release_plan(
    epsilon: float,
    delta: float,
    shares: Mapping[str, float],
    triples: str | None,
    n_refinements: int,
    limits: Mapping[str, float],
    n_gains: int,
) -> ReleasePlan:
    names = {"pairs": "pair_moments", "triples": triples or ""}
    shares = {names.get(name, name): share for name, share in shares.items()}
    pure = delta == 0
    # With pure noise the number of tokens bounds pairs and triples in word space too.
    clipped = {"counts"} | ({"pairs"} if not pure else set())
    if triples is not None and not (pure and triples == "triple_moments"):
        clipped.add("triples")
    n_histograms = 0 if math.isinf(epsilon) else len(clipped - set(limits))
    if n_histograms == 0:
        shares.pop("norm_histogram")
    uses = {"norm_histogram": n_histograms, "expected_counts": n_refinements}
    if "held_out_scores" in shares:
        uses["held_out_scores"] = n_gains
    return ReleasePlan.split(epsilon, delta, shares, uses)
