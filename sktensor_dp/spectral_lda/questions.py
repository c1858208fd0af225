"""Questions about documents, in the terms of topic models: each asks a session for one release, or
for two where a clip is chosen first.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.counts import (
    MIN_TOKENS,
    Clip,
    CountNorm,
    Norm,
    NormHistogram,
    PairNorm,
    TripleNorm,
    WhitenedTripleNorm,
    WordFrequencies,
)
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.queries.moments import PairMoments, TripleMoments, WhitenedTripleMoments
from sktensor_dp.queries.query import Query
from sktensor_dp.queries.scores import CompletionGains, TopicGain
from sktensor_dp.tensor.arrays import Floats

Words = NDArray[np.intp] | None

# Norms with public limits or a range in which a limit is searched: from documents of one token to
# about a million.
CLIPPED_NORMS: dict[str, tuple[float, float, int]] = {
    "counts": (1.0, 1e3, 40),
    "pairs": (0.02, 1e3, 64),
    "triples": (1e-2, 1e5, 96),
}
COUNT_NORM, PURE_COUNT_NORM = CountNorm(2), CountNorm(1)
# Range of the number of tokens, whose clip bounds all statistics if epsilon is pure.
TOKENS = (1.0, 1e5, 70)
# Weight of the diagonal of pairs. Documents that repeat a word have the largest pair masses: with
# half the weight in squares, the sensitivity falls by more than the noise of the diagonal rises.
DIAGONAL_WEIGHT = math.sqrt(0.5)
# Mean field steps per document, with noise, and without in the last EM steps and how many these
# are. At seven steps their bias is below the noise; more steps in all EM steps would improve the
# error by 0.0005.
MEAN_FIELD, EXACT_MEAN_FIELD, EXACT_STEPS = 7, 13, 2


@dataclass(frozen=True, eq=False)
class ReleasedPairs:
    """A released second moment."""

    matrix: Floats | None  # None where only products are asked for, without noise
    product: Callable[[Floats], Floats]  # V -> matrix @ V
    sigma: float  # of the noise off the diagonal
    diagonal_sigma: float


class DocumentQuestions:
    """Questions to a session of counts of words in documents."""

    # Public limits have the names of CLIPPED_NORMS; other limits are chosen from noisy histograms.
    # With pure epsilon the number of tokens is clipped, which bounds all norms.

    limits: dict[str, float]  # in force so far, public or released

    def __init__(self, ask: Session, known: Mapping[str, float]) -> None:
        self._ask, self._known, self.limits = ask, known, {}

    @property
    def _count_norm(self) -> CountNorm:
        return PURE_COUNT_NORM if self._ask.is_pure else COUNT_NORM

    def count_clip(self, quantile: float) -> Clip:
        """Clip mean counts at a noisy quantile of their L2 norm (L1 if epsilon is pure)."""
        search = TOKENS if self._ask.is_pure else None
        return self._clip("counts", self._count_norm, quantile, search=search)

    def given_count_clip(self, limit: float) -> Clip:
        """Clip on the counts at a public limit."""
        return Clip(self._count_norm, limit)

    def pair_clip(self, quantile: float, words: Words = None) -> Clip:
        """Clip on the :class:`PairNorm` of `words` (all if None), at a noisy quantile."""
        norm = PairNorm(DIAGONAL_WEIGHT, words)
        return self._clip("pairs", norm, quantile, min_tokens=2)

    def whitened_triple_clip(
        self, quantile: float, basis: Floats, words: Words, clips: Sequence[Clip]
    ) -> Clip:
        """Clip whitened triples of units scaled by `clips`, at a noisy quantile."""
        norm = WhitenedTripleNorm(basis, words)
        return self._clip("triples", norm, quantile, tuple(clips), MIN_TOKENS)

    def triple_clip(self, quantile: float) -> Clip:
        """Clip on the :class:`TripleNorm` of a unit, at a noisy quantile over units."""
        return self._clip("triples", TripleNorm(), quantile, min_tokens=MIN_TOKENS)

    def word_frequencies(self, clip: Clip, clips: Sequence[Clip], min_tokens: int) -> Answer:
        """Mean word counts, scaled to the limits; documents below `min_tokens` count as empty."""
        return self._ask(WordFrequencies(clip, tuple(clips), min_tokens))

    def pair_moments(
        self,
        clip: Clip,
        clips: Sequence[Clip],
        min_tokens: int,
        words: Words = None,
        as_product: bool = False,
    ) -> ReleasedPairs:
        """Mean second moment of `words`, clipped; without noise products do (`as_product`)."""
        query = PairMoments(clip, DIAGONAL_WEIGHT, tuple(clips), words, min_tokens)
        if as_product:
            return ReleasedPairs(None, self._ask.exact_product(query), 0.0, 0.0)
        noisy = self._ask(query)
        product = noisy.value.__matmul__
        return ReleasedPairs(noisy.value, product, noisy.sigma / 2, noisy.sigma / DIAGONAL_WEIGHT)

    def whitened_triples(
        self, basis: Floats, clip: Clip, clips: Sequence[Clip], words: Words
    ) -> Answer:
        """Release the mean over units of length times third moment whitened by `basis`, clipped."""
        return self._ask(WhitenedTripleMoments(basis, (clip, *clips), words))

    def triples(self, basis: Floats, clip: Clip, clips: Sequence[Clip], words: Words) -> Answer:
        """Mean third moment, clipped, noised in word space, in coordinates of the `basis`."""
        return self._ask(TripleMoments(basis, (clip, *clips), words))

    def expected_counts(
        self,
        topics: Floats,
        prior: Floats,
        single: bool,
        clip: Clip,
        scales: Floats | None = None,
        rest_of: type[Query] | None = None,
    ) -> Answer:
        """Mean expected counts of each word in each topic (the E step), over `scales`, clipped."""
        assert isinstance(clip.norm, CountNorm)
        last = self._ask.left(ExpectedCounts) <= EXACT_STEPS
        n_iter = EXACT_MEAN_FIELD if self._ask.is_exact and last else MEAN_FIELD
        query = ExpectedCounts(topics, prior, single, clip.limit, clip.norm.order, n_iter, scales)
        return self._ask(query, rest_of)

    def completion_gain(
        self,
        topics: Floats,
        weights: Floats,
        concentration: float,
        against: TopicGain,
    ) -> Answer:
        """Gain of topics over others on half of a document's words."""
        gain = TopicGain(topics, weights, concentration, against, not self._ask.is_exact)
        return self._ask(CompletionGains.of(gain))

    def _clip(
        self,
        name: str,
        norm: Norm,
        quantile: float,
        clips: tuple[Clip, ...] = (),
        min_tokens: int = 0,
        search: tuple[float, float, int] | None = None,
    ) -> Clip:
        """Choose a limit: the public one, none without noise, or a noisy quantile."""
        if name in self._known:
            limit = float(self._known[name])
        elif self._ask.is_exact:
            limit = math.inf
        else:
            low, high, n_bins = search or CLIPPED_NORMS[name]
            edges = np.geomspace(low, high, n_bins + 1)
            query = NormHistogram(norm, edges, clips, min_tokens)
            limit = self._ask(query).edge_at(edges, quantile)
        self.limits[name] = limit
        return Clip(norm, limit)
