"""Clips on what a unit contributes, at public limits or at noisy quantiles of norms."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.clips import MIN_TOKENS, Clip, CountNorm, Norm, PairNorm
from sktensor_dp.queries.norm_histogram import NormHistogram

# Norms that are clipped: least edge, largest edge and number of bins of the histogram that chooses
# a limit where none is public.
CLIPPED_NORMS: dict[str, tuple[float, float, int]] = {
    "counts": (1.0, 1e3, 40),
    "pairs": (0.02, 1e3, 64),
    "triples": (1e-2, 1e5, 96),
}
# The same for the number of tokens, by which pure releases clip counts, pairs and triples of words.
TOKEN_BINS = (1.0, 1e5, 70)
# Range of public limits: products of three numbers of their size neither overflow nor underflow.
LIMITS = (1e-40, 1e40)
# Weight of the diagonal of pairs. Documents that repeat a word have the largest pair masses: with
# half the weight in squares, the sensitivity falls by more than the noise of the diagonal rises.
DIAGONAL_WEIGHT = math.sqrt(0.5)


def count_order(ask: Session) -> int:
    """Order of the norm of counts: 1, the number of tokens, for pure releases; else 2."""
    return 1 if ask.is_pure else 2


class Clips:
    """Clips of a fit to counts, and the limits in force so far."""

    def __init__(self, ask: Session, public_limits: Mapping[str, float]) -> None:
        self._ask, self._public_limits = ask, public_limits  # by the names of CLIPPED_NORMS
        self.limits: dict[str, float] = {}

    def release_for_counts(self, quantile: float) -> Clip:
        """Clip of mean counts, at the limit that `_release` chooses by units with tokens."""
        bins = TOKEN_BINS if self._ask.is_pure else CLIPPED_NORMS["counts"]
        return self._release(
            "counts", CountNorm(count_order(self._ask)), quantile, bins, min_tokens=1
        )

    def release_for_pairs(self, quantile: float, words: NDArray[np.intp] | None) -> Clip:
        """Clip of pairs of `words` (all if None), at the limit that `_release` chooses."""
        norm = PairNorm(DIAGONAL_WEIGHT, words)
        return self._release("pairs", norm, quantile, CLIPPED_NORMS["pairs"], min_tokens=2)

    def release_for_triples(
        self, quantile: float, norm: Norm, clips: tuple[Clip, ...] = ()
    ) -> Clip:
        """Clip of third moments of units scaled by `clips`, at the limit `_release` chooses."""
        bins = CLIPPED_NORMS["triples"]
        return self._release("triples", norm, quantile, bins, clips, min_tokens=MIN_TOKENS)

    def _release(
        self,
        name: str,
        norm: Norm,
        quantile: float,
        bins: tuple[float, float, int],
        clips: tuple[Clip, ...] = (),
        *,
        min_tokens: int,
    ) -> Clip:
        """Choose the limit of a `norm`: a public one, none without noise, or a noisy quantile.

        The histogram has `bins` as in CLIPPED_NORMS. It counts units, scaled by `clips`, that have
        a document of at least `min_tokens` tokens.
        """
        if name in self._public_limits:
            limit = float(self._public_limits[name])
        elif self._ask.is_exact:
            limit = math.inf
        else:
            low, high, n_bins = bins
            edges = np.geomspace(low, high, n_bins + 1)
            query = NormHistogram(norm, edges, clips, min_tokens)
            limit = self._ask(query).edge_at(edges, quantile)
        self.limits[name] = limit
        return Clip(norm, limit)
