"""Confusion of topics by inference, and shares of topics in documents that all have the same one.

Posterior shares lie towards the prior, those of short documents most. Their expectation in
documents of one topic is a row of the confusion, which topics and prior alone tell.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.tensor.arrays import Floats, as_generator
from sktensor_dp.topics.documents import drawn_documents
from sktensor_dp.topics.inference import proportions
from sktensor_dp.topics.moments import project_rows

# Lengths of documents that are told apart: half octaves. A few tokens more hardly move others.
LENGTHS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
# Tokens that are drawn for a length: a share is off by about a hundredth of itself.
DRAWN = 2**15
# Tokens of a document of a whole topic, beside which a prior is nothing.
TOKENS = 1e4


def comparable_shares(
    counts: sp.csr_matrix, topics: Floats, prior: Floats, single: bool, length: float,
    wanted: Floats,
) -> Floats:  # fmt: skip
    """Shares (n, k) of topics in documents, of the confusion that is `wanted`, that of a `length`.

    Longer documents are blurred to it, and shorter ones sharpened as far as shares allow.
    """
    shares = proportions(counts, topics, prior, single)
    sizes = _nearest(np.asarray(counts.sum(axis=1)).ravel())
    for size in np.unique(sizes[sizes != _nearest([length])]):
        own = confusion(topics, prior, single, size)
        rows = sizes == size
        shares[rows] = project_rows(shares[rows] @ np.linalg.pinv(own) @ wanted)
    return shares


def confusion(topics: Floats, prior: Floats, single: bool, length: float) -> Floats:
    """Mean shares (k, k) in documents of about `length` tokens, all of one topic: a row each."""
    (k, _), tokens = topics.shape, int(_nearest([length])[0])
    n = max(DRAWN // (tokens * k), 1)
    drawn = drawn_documents(topics, np.repeat(np.eye(k), n, axis=0), tokens, as_generator(0))
    return proportions(drawn, topics, prior, single).reshape(k, n, k).mean(axis=1)


def without(topics: Floats, hidden: NDArray[np.bool_]) -> Floats:
    """Mixtures (k, k) of the other topics that have the words of `hidden` ones, a row for each.

    Others are themselves, as are all if none is left.
    """
    rows, left = np.eye(len(topics)), np.flatnonzero(~hidden)
    if 0 < len(left) < len(topics):
        words = sp.csr_matrix(TOKENS * topics[hidden])
        found = proportions(words, topics[left], np.full(len(left), 1 / len(left)), single=False)
        rows[np.ix_(hidden, left)], rows[hidden, hidden] = found, 0.0
    return rows


def _nearest(lengths: NDArray[np.floating] | list[float]) -> NDArray[np.integer]:
    """Replace each length by that of `LENGTHS` which is nearest to it in logarithm."""
    return LENGTHS[np.searchsorted(np.sqrt(LENGTHS[1:] * LENGTHS[:-1]), lengths)]
