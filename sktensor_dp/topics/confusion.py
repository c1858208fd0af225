"""Confusion of topics by inference, and shares in documents as if all were of the same length.

Posterior shares lie towards the prior, those of short documents most: topics and prior alone tell
how far.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.tensor.arrays import Floats, as_generator
from sktensor_dp.topics.documents import drawn_documents
from sktensor_dp.topics.inference import proportions
from sktensor_dp.topics.moments import project_rows

# Lengths of documents that are told apart, in tokens: half an octave apart. Longer documents are
# confused about as little as the longest of these.
LENGTHS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
# Tokens that are drawn for a length: a share is off by about a hundredth of itself.
DRAWN = 2**17
# Tokens of a document with the words of a hidden topic: so many that the prior hardly counts.
TOKENS = 1e4


def comparable_shares(
    counts: sp.csr_matrix, topics: Floats, prior: Floats, single: bool, length: float,
    to: Floats,
) -> Floats:  # fmt: skip
    """Shares (n, k) of topics in documents, as confused as in documents of `length` tokens.

    `to` is the confusion of these. Shares of longer documents are blurred to it, and those of
    shorter ones sharpened, as far as they stay within 0 and 1.
    """
    shares = proportions(counts, topics, prior, single)
    sizes = _nearest(np.asarray(counts.sum(axis=1)).ravel())
    for size in np.unique(sizes[sizes != _nearest([length])]):
        own = confusion(topics, prior, single, size)
        rows = sizes == size
        shares[rows] = project_rows(shares[rows] @ np.linalg.pinv(own) @ to)
    return shares


def confusion(topics: Floats, prior: Floats, single: bool, length: float) -> Floats:
    """Matrix (k, k) that takes shares in documents of about `length` tokens to those inferred.

    It is fitted by least squares to documents drawn from the model. If each document has one topic,
    its rows are the mean shares inferred in documents of each.
    """
    k, tokens = len(topics), int(_nearest([length])[0])
    n_of_topic, rng = max(DRAWN // (tokens * k), 1), as_generator(0)
    if single:
        shares = np.eye(k).repeat(n_of_topic, axis=0)
    else:  # as if documents were drawn in proportion to their shares of each topic
        shares = np.vstack([rng.dirichlet(prior + one, n_of_topic) for one in np.eye(k)])
    inferred = proportions(drawn_documents(topics, shares, tokens, rng), topics, prior, single)
    return np.asarray(np.linalg.lstsq(shares, inferred, rcond=None)[0])


def without_hidden(topics: Floats, hidden: NDArray[np.bool_]) -> Floats:
    """Mixtures (k, k) of the topics that are not `hidden`, a row for each topic.

    A hidden topic becomes the mixture with words most like its own; a topic that is left, or each
    if none is, stays itself.
    """
    rows, left = np.eye(len(topics)), np.flatnonzero(~hidden)
    if 0 < len(left) < len(topics):
        words = sp.csr_matrix(TOKENS * topics[hidden])
        found = proportions(words, topics[left], np.full(len(left), 1 / len(left)), single=False)
        rows[np.ix_(hidden, left)], rows[hidden, hidden] = found, 0.0
    return rows


def _nearest(lengths: NDArray[np.floating] | list[float]) -> NDArray[np.integer]:
    """Replace each length by the nearest of `LENGTHS`, by logarithms."""
    return LENGTHS[np.searchsorted(np.sqrt(LENGTHS[1:] * LENGTHS[:-1]), lengths)]
