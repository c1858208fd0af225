"""Third moments in a basis, from sums over documents and over words.

Proofs: docs/proofs/whitened_triple_moments.md.
"""

import numpy as np
import scipy.sparse as sp

from sktensor_dp.statistics.row_chunks import rows_of
from sktensor_dp.statistics.sums import AccurateSum, PlainSum, blocks
from sktensor_dp.tensor.arrays import Floats

# Documents, and words, whose terms are added one after the other: as many as a chunk has, where
# rounding is no matter, for an array of all words is added each time.
TERMS_AT_ONCE: dict[type, int] = {AccurateSum: 2**12, PlainSum: 2**14}


def terms_of_documents(
    X: sp.csr_matrix, projected: Floats, weight: Floats, kind: type[AccurateSum | PlainSum]
) -> tuple[Floats, Floats, Floats]:
    """Weighted sums of ``y y y`` over documents, and of c and ``c y`` for each word."""
    cubes, ones, pairs = kind(), kind(), kind()
    for rows in blocks(X.shape[0], TERMS_AT_ONCE[kind]):
        part, seen = rows_of(X, rows), projected[rows]
        weighted = seen * weight[rows, None]
        cubes.add(_triple_products(seen, weighted, all_alike=True))
        ones.add(np.asarray(part.T @ weight[rows]))
        pairs.add(np.asarray(part.T @ weighted))
    return cubes.value(), ones.value(), pairs.value()


def put_together(cubes: Floats, ones: Floats, pairs: Floats, B: Floats) -> Floats:
    """The moment in a basis B, from sums over documents."""
    # Words that occur twice or three times, in one product: twice is in three places.
    repeated = pairs - (2 / 3) * ones[:, None] * B
    twice = AccurateSum()
    for words in blocks(len(B), TERMS_AT_ONCE[AccurateSum]):
        twice.add(_triple_products(B[words], repeated[words], all_alike=False))
    doubled = twice.value()
    result = cubes - doubled
    return result - doubled.transpose(0, 2, 1) - doubled.transpose(2, 1, 0)


def words_in_use(X: sp.csr_matrix, basis: Floats) -> tuple[sp.csr_matrix, Floats]:
    """Counts of the words that occur, and their rows of a basis."""
    occurs = np.zeros(X.shape[1], dtype=bool)
    occurs[X.indices] = True
    places = np.cumsum(occurs) - 1
    layout = (X.data, places.astype(X.indices.dtype)[X.indices], X.indptr)
    return sp.csr_matrix(layout, (X.shape[0], int(occurs.sum()))), basis[occurs]


def _triple_products(A: Floats, C: Floats, *, all_alike: bool) -> Floats:
    """``sum_n A_na A_nb C_nc``, symmetric in a and b, or in all if C is a multiple of A by rows."""
    # Columns in the order of memory, one a at a time: nothing larger than A is formed, and of
    # entries that are equal one is computed.
    k = A.shape[1]
    columns, result = np.ascontiguousarray(A.T), np.zeros((k, k, k))
    for a in range(k):
        first = a if all_alike else 0
        block = (columns[a] * columns[a:]) @ C[:, first:]
        result[a, a:, first:] = result[a:, a, first:] = block
        if all_alike:
            result[a:, a:, a] = block
    return result
