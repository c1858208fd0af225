"""Curator of documents: releases in the terms of topic models.

Every method makes one planned release (two, where a clip is chosen first) and
returns public values together with the noise level they were given.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.privacy.curator import DataCurator, Noisy
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
from sktensor_dp.queries.scores import TopicGain, gains_of
from sktensor_dp.tensor.symmetric import n_unique

Floats = NDArray[np.float64]
Words = NDArray[np.intp] | None

# Norms a caller may limit publicly, with the range searched for a limit otherwise:
# documents of one token up to about a million.
CLIPPED_NORMS: dict[str, tuple[float, float, int]] = {
    "counts": (1.0, 1e3, 40),
    "pairs": (0.02, 1e3, 64),
    "triples": (1e-2, 1e5, 96),
}
COUNT_NORM, PURE_COUNT_NORM = CountNorm(2), CountNorm(1)
# Range for the number of tokens, which bounds everything when epsilon is pure.
TOKENS = (1.0, 1e5, 70)
# Documents that repeat a word have the largest pair masses; counting the diagonal
# half in squares lets them weigh less in the sensitivity than they gain in noise.
DIAGONAL_WEIGHT = math.sqrt(0.5)
# Mean field steps per document: what is left of their bias at seven is hidden by noise. Without it
# the last steps of EM take more; in all of them they would take longer for 0.0005 in error.
MEAN_FIELD, EXACT_MEAN_FIELD, EXACT_STEPS = 7, 13, 2


@dataclass(frozen=True, eq=False)
class NoisyPairs:
    """A released second moment."""

    matrix: Floats | None  # None where only products are asked for, without noise
    product: Callable[[Floats], Floats]  # V -> matrix @ V
    sigma: float  # of the noise off the diagonal
    diagonal_sigma: float


class DocumentCurator(DataCurator):
    """A :class:`DataCurator` of counts of words in documents."""

    # Known are public limits by the names of CLIPPED_NORMS; others are chosen from noisy
    # histograms. With pure epsilon the number of tokens, which bounds all norms, is clipped.

    _known: Mapping[str, float]

    @cached_property
    def limits(self) -> dict[str, float]:
        """Limits in force so far, public or released."""
        return {}

    @property
    def _count_norm(self) -> CountNorm:
        return PURE_COUNT_NORM if self.pure else COUNT_NORM

    def count_clip(self, quantile: float) -> Clip:
        """Clip mean counts at a noisy quantile of their L2 norm (L1 if epsilon is pure)."""
        search = TOKENS if self.pure else None
        return self._clip("counts", self._count_norm, quantile, search=search)

    def given_count_clip(self, limit: float) -> Clip:
        """Clip on the counts at a limit that is public already."""
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

    def word_frequencies(self, clip: Clip, clips: Sequence[Clip], min_tokens: int) -> Noisy:
        """Mean word counts, scaled to the limits; documents below `min_tokens` count as empty."""
        query = WordFrequencies(clip, tuple(clips), min_tokens)
        return self.noisy("word_frequencies", query)

    def pair_moments(
        self,
        clip: Clip,
        clips: Sequence[Clip],
        min_tokens: int,
        words: Words = None,
        as_product: bool = False,
    ) -> NoisyPairs:
        """Mean second moment of `words`, clipped; without noise products do (`as_product`)."""
        query = PairMoments(clip, DIAGONAL_WEIGHT, tuple(clips), words, min_tokens)
        if as_product:
            return NoisyPairs(None, self.exact_product("pair_moments", query), 0.0, 0.0)
        noisy = self.noisy("pair_moments", query)
        product = noisy.value.__matmul__
        return NoisyPairs(noisy.value, product, noisy.sigma / 2, noisy.sigma / DIAGONAL_WEIGHT)

    def whitened_triples(
        self, basis: Floats, clip: Clip, clips: Sequence[Clip], words: Words
    ) -> Noisy:
        """Release the mean over units of length times third moment whitened by `basis`, clipped."""
        query = WhitenedTripleMoments(basis, (clip, *clips), words)
        noisy = self.noisy("whitened_triple_moments", query)
        return Noisy(noisy.value, self._deviation(noisy.sigma, n_unique(basis.shape[1], 3)))

    def triples(self, basis: Floats, clip: Clip, clips: Sequence[Clip], words: Words) -> Noisy:
        """Mean third moment, clipped, noised in word space, in coordinates of the `basis`."""
        query = TripleMoments(basis, (clip, *clips), words)
        noisy = self.noisy("triple_moments", query)
        return Noisy(noisy.value, self._deviation(noisy.sigma, query.ambient_dimension))

    def expected_counts(
        self,
        topics: Floats,
        prior: Floats,
        single: bool,
        clip: Clip,
        scales: Floats | None = None,
        rest_of: str | None = None,
    ) -> Noisy:
        """Mean expected counts of each word in each topic (the E step), over `scales`, clipped."""
        assert isinstance(clip.norm, CountNorm)
        last = self._left.get("expected_counts", 0) <= EXACT_STEPS
        n_iter = EXACT_MEAN_FIELD if self._noiseless and last else MEAN_FIELD
        query = ExpectedCounts(topics, prior, single, clip.limit, clip.norm.order, n_iter, scales)
        return self.noisy("expected_counts", query, rest_of)

    def completion_gain(
        self,
        topics: Floats,
        weights: Floats,
        concentration: float,
        against: TopicGain,
    ) -> Noisy:
        """Gain of topics over others on half of a document's words."""
        query = gains_of(topics, weights, concentration, against, not self._noiseless)
        return self.noisy("held_out_scores", query)

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
        elif self._noiseless:
            limit = math.inf
        else:
            low, high, n_bins = search or CLIPPED_NORMS[name]
            edges = np.geomspace(low, high, n_bins + 1)
            query = NormHistogram(norm, edges, clips, min_tokens)
            limit = self.noisy_quantile("norm_histogram", query, edges, quantile)
        self.limits[name] = limit
        return Clip(norm, limit)
