r"""Moments of LDA over pairs and triples of different documents (DeCarolis et al., Lemma 25).

Printed are (20) and (21) with sums over all pairs and triples, and (21) without its
``1 / (6 C(N, 3))``. Their proofs subtract repeated documents, (33) and (42), and that is what is
computed here. ``[B3]_ijk = [B1]_kij`` is B2 again, and is mended to ``[B1]_jki``.
"""

import numpy as np

from sktensor_dp.published.agn_avn import ONE_DRAW
from sktensor_dp.queries.counts import CountChunk
from sktensor_dp.queries.moments import PairMoments, TripleMoments
from sktensor_dp.tensor import symmetric_product
from sktensor_dp.tensor.arrays import Floats


class CorpusMoments:
    """Unbiased moments of LDA.

    Parameters
    ----------
    chunk : CountChunk
        Counts of N >= 3 documents; those of fewer than three words add nothing.
    concentration : float
        alpha0.
    """

    def __init__(self, chunk: CountChunk, concentration: float) -> None:
        self._chunk = chunk
        # Documents too short for three words leave all three moments alike.
        lengths = np.where(chunk.lengths >= 3, chunk.lengths, np.inf)
        self._lengths = lengths
        self._a = concentration / (concentration + 1)
        self._b = -concentration / (concentration + 2)
        self._c = 2 * concentration**2 / ((concentration + 1) * (concentration + 2))
        self._pair_total = PairMoments(ONE_DRAW, 1.0, min_tokens=3).total(chunk)
        self._frequencies = np.asarray(chunk.X.T @ (1 / lengths))

    def pairs(self) -> Floats:
        """Equation (18), of shape (n_features, n_features)."""
        X, n = self._chunk.X, len(self._lengths)
        own = (X.T @ X.multiply(1 / self._lengths[:, None] ** 2)).toarray()
        crossed = np.outer(self._frequencies, self._frequencies) - own
        M2: Floats = self._pair_total / n - self._a / (n * (n - 1)) * crossed
        return M2

    def triples(self, basis: Floats) -> Floats:
        """Equation (19), mended, in a basis of orthonormal columns, of shape (n_features, k)."""
        X, lengths, n = self._chunk.X, self._lengths, len(self._lengths)
        total = basis.T @ self._frequencies
        projected = np.asarray(X @ basis) / lengths[:, None]
        own = projected.T @ projected
        thirds = _sum_of_products(projected, projected, projected)
        crossed = symmetric_product(basis.T @ self._pair_total @ basis, total)
        crossed -= _three_ways(self._pairs_with_themselves(basis, projected, thirds))
        cubes = np.einsum("a,b,c->abc", total, total, total)
        cubes += 2 * thirds - symmetric_product(own, total)
        M3 = TripleMoments(basis, (ONE_DRAW,)).total(self._chunk) / n
        M3 += self._b / (n * (n - 1)) * crossed
        M3 += self._c / (n * (n - 1) * (n - 2)) * cubes
        return np.asarray(M3)

    def _pairs_with_themselves(self, basis: Floats, projected: Floats, thirds: Floats) -> Floats:
        """Sum over documents of M2_n (x) M1_n in the basis, by M2_n = (c c' - diag(c)) / l(l-1)."""
        lengths = self._lengths
        share = np.where(np.isinf(lengths), 0.0, 1 / (lengths - 1))
        cubes = thirds + _sum_of_products(projected, projected, projected * share[:, None])
        words = np.asarray(self._chunk.X.T @ (projected * (share / lengths)[:, None]))
        return cubes - _sum_of_products(basis, basis, words)


def _sum_of_products(A: Floats, B: Floats, C: Floats) -> Floats:
    """Sum over rows of their tensor products, by way of one matrix product."""
    pairs = (A[:, :, None] * B[:, None, :]).reshape(len(A), -1)
    return (pairs.T @ C).reshape(A.shape[1], B.shape[1], C.shape[1])


def _three_ways(A: Floats) -> Floats:
    """Sum of a tensor, symmetric in two modes, over the three places of its last one."""
    return A + A.transpose(0, 2, 1) + A.transpose(2, 1, 0)
