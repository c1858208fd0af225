"""What a topic model will release and how it will use it, from public numbers only."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import ReleasePlan, check_feasible, fits_memory
from sktensor_dp.spectral_topics import defaults

# Matrices of pairs at a time: their sum, what rounding left of it, and what is added next.
PAIR_MATRICES = 3
# Where they are formed by rows: columns that the search for eigenvectors holds, as often as it
# has topics and some more.
ROW_COLUMNS, MORE_COLUMNS = 24, 10
# Most words whose moments are fitted jointly, and whose pairs are released.
JOINT_WORDS, MAX_WORDS = 256, 1500
# Fraction of EM steps that are asked for beside third moments.
ASKED_FRACTION = 0.53
# Pairs of so few words fit anywhere; beyond so many a product takes hours.
FEW_WORDS, MOST_WORDS_BY_ROWS = 100, 100_000


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
    joins_groups: bool  # whether the documents of a group are one; else their mean counts
    releases: ReleasePlan  # the budget
    # Held-out questions: whether topics gain something over word frequencies, and whether public
    # topics are better as they were given.
    asks_gains: bool = False
    asks_public: bool = False
    # Whether the EM steps are made only where the released moments do not fit the model.
    may_misfit: bool = False
    # Whether rows of the pairs are formed anew for every product, as memory cannot hold them.
    pairs_by_rows: bool = False
    n_single: int = 0  # EM steps, the first ones, that take each document to have one topic
    n_sure: int = 0  # EM steps before the first question

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
    sought = n_features * n_components
    small = n_features <= JOINT_WORDS and n_effective >= defaults.MATCH_FROM * sought
    kind = "moment" if moment else "small" if small else "large"
    reserved = n_components > 1 and n_effective >= defaults.RESERVE_FROM * sought
    n_steps, n_single, may_misfit = _steps(n_refinements, n_effective, delta, kind, reserved)
    asks = n_steps > 0 and n_components > 1
    asks_gains = asks and not exact and kind == "large" and not with_public
    asks_public = asks and with_public and not may_misfit
    n_questions = asks_gains + asks_public
    triples = "triple_moments" if moment else "whitened_triple_moments"
    third = triples if kind != "large" or n_steps == 0 else None
    shares = _shares(kind, n_steps, n_questions, third is not None, may_misfit)
    most = MAX_WORDS if n_steps else n_features
    n_words = _n_words(n_effective, shares["pairs"], n_features, n_components, small, most)
    by_rows = _pairs_by_rows(n_words, exact)
    plan = TopicPlan(
        n_components=k, n_words=n_words, all_words=n_words == n_features, triples=third,
        match_moments=small, clip_quantile=_clip_quantile(n_effective, small),
        joins_groups=n_effective < defaults.JOINED_BELOW * n_components,
        asks_gains=asks_gains, asks_public=asks_public,
        may_misfit=may_misfit, pairs_by_rows=by_rows, n_refinements=n_steps, n_single=n_single,
        n_sure=n_single + int((n_steps - n_single) * defaults.SURE_PART),
        releases=_release_plan(epsilon, delta, shares, third, n_steps, limits, n_questions),
    )  # fmt: skip
    if apart is not None:
        _check_size(n_features, k, n_words, exact and by_rows, by_rows=by_rows and not apart)
    return plan


def _check_size(
    n_features: int, n_components: int, n_words: int, exact: bool, *, by_rows: bool
) -> None:
    """Refuse features whose topics, and words whose pairs, memory cannot hold."""
    # Without noise, pairs are multiplied with and not formed. Data that lies apart is not read
    # again for every product.
    pairs = 0.0 if exact else PAIR_MATRICES * float(n_words) ** 2
    if by_rows:
        pairs = ROW_COLUMNS * float(n_words) * (n_components + MORE_COLUMNS)
    check_feasible(
        float(n_features) * (n_components + 2) + pairs,
        f"A fit of {n_features} features by n_components={n_components}",
        "Fit fewer features: PrivateCountVectorizer keeps the words that enough documents hold.",
    )  # fmt: skip


def _pairs_by_rows(n_words: int, exact: bool) -> bool:
    """Decide whether products with the pairs form their rows anew."""
    if exact:
        return n_words > MAX_WORDS
    some = FEW_WORDS < n_words <= MOST_WORDS_BY_ROWS
    return some and not fits_memory(PAIR_MATRICES * float(n_words) ** 2)


def _shares(
    kind: str, n_steps: int, n_questions: int, with_triples: bool, may_misfit: bool
) -> dict[str, float]:
    """Split the budget among releases."""
    fractions = dict(defaults.FRACTIONS[kind])
    question, reserve = fractions.pop("held_out_scores"), fractions.pop("expected_counts", 0.0)
    left = 1 - sum(fractions.values()) if kind == "large" else ASKED_FRACTION
    if not with_triples:
        left += fractions.pop("triples")
    steps = 0.0 if n_steps == 0 else reserve if may_misfit else left
    used = sum(fractions.values())
    shares = {name: part * (1 - steps) / used for name, part in fractions.items()}
    if steps:
        shares["expected_counts"] = steps
    if n_questions:
        shares = {name: share * (1 - question) for name, share in shares.items()}
        shares["held_out_scores"] = question
    return shares


def _steps(
    asked: int | None, n_effective: float, delta: float, kind: str, reserved: bool
) -> tuple[int, int, bool]:
    """EM steps, how many take documents to have one topic, and whether moments decide on all."""
    exact = math.isinf(n_effective)
    if asked is not None:
        return asked, int(asked * defaults.SURE_PART) if exact and kind == "large" else 0, False
    if kind == "large":
        if exact:
            return 2 * defaults.EXACT_STEPS, defaults.EXACT_STEPS, False
        part = 1 if delta > 0 else defaults.SURE_PART
        return max(round(part * defaults.STEPS), 1), 0, False
    may_misfit = reserved and kind == "small" and (delta > 0 or exact)
    return defaults.EXACT_STEPS if may_misfit else 0, 0, may_misfit


def _clip_quantile(n_effective: float, small: bool) -> float:
    """Clip most documents where noise dominates, and few where bias would show."""
    # The share clipped for ``small`` falls with the noise, so that estimates converge.
    return 1 - min(0.05, 500 / n_effective) if small else 0.1


def _n_words(
    n_effective: float, share: float, n_features: int, n_components: int, small: bool, most: int
) -> int:
    if small or math.isinf(n_effective):
        return min(n_features, most)
    wanted = int(n_effective * math.sqrt(share) / defaults.DOCUMENTS_PER_WORD)
    return min(max(wanted, 10 * n_components), n_features, most)


def _release_plan(
    epsilon: float,
    delta: float,
    shares: Mapping[str, float],
    triples: str | None,
    n_refinements: int,
    limits: Mapping[str, float],
    n_questions: int,
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
        uses["held_out_scores"] = n_questions
    return ReleasePlan.split(epsilon, delta, shares, uses)
