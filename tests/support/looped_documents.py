"""Totals of queries on counts by loops over documents that follow the definitions.

With l tokens and counts c, a document adds c, (c c' - diag c) / (l - 1) and
(ccc + 2 sum_i c_i e_i^3 - sum_ij c_i c_j (e_i e_i e_j, each order)) / ((l - 1)(l - 2)), each
times its weight; nothing where the denominator vanishes.
"""

import numpy as np
from plain_moments import cube, diagonal, spread
from scipy.special import psi

from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.queries.clips import CountNorm, PairNorm, TripleNorm
from sktensor_dp.queries.count_moments import LARGEST_TERMS


def pair_moment(c, length, words=None):
    c = c if words is None else c[words]
    return (np.outer(c, c) - np.diag(c)) / (length - 1) if length >= 2 else np.zeros((len(c),) * 2)


def triple_moment(c, length):
    if length < 3:
        return np.zeros((len(c),) * 3)
    total = cube(c) + 2 * diagonal(c) - spread(np.diag(c), c)
    return total / ((length - 1) * (length - 2))


def pair_coordinates(c, weight, words=None):
    """Entries of a pair moment in the norm that bounds it: each pair of words once, and twice."""
    moment = pair_moment(c, c.sum(), words)
    above = np.triu_indices(len(moment), 1)
    return np.concatenate([2 * moment[above], weight * np.diagonal(moment)])


def whitened_moment(c, length, W):
    return np.einsum("abc,ai,bj,ck->ijk", triple_moment(c, length), W, W, W)


def norm_of(norm, c, length):
    """What a norm is, or for the whitened one the bound that it takes."""
    part = c if getattr(norm, "words", None) is None else c[norm.words]
    if isinstance(norm, CountNorm):
        return np.linalg.norm(part, norm.order)
    if isinstance(norm, PairNorm):
        return np.linalg.norm(pair_coordinates(c, norm.diagonal_weight, norm.words))
    if isinstance(norm, TripleNorm):
        return np.linalg.norm(triple_moment(part, length))
    size, triangle = sizes_and_terms(norm.whitener, part)
    own = np.eye(len(size), dtype=bool)
    distinct = ~(own[:, :, None] | own[:, None, :] | own[None])
    different = np.einsum("a,b,c,abc->", size, size, size, distinct.astype(float))
    return min(triangle, different) / max((length - 1) * (length - 2), 1)


def sizes_and_terms(B, part):
    """Lengths of the rows of all tokens, and of the terms that their moment consists of."""
    tokens = np.repeat(B, part.astype(int), axis=0)
    size, whole = np.linalg.norm(tokens, axis=1), np.linalg.norm(tokens.sum(axis=0))
    return size, whole**3 + 2 * (size**3).sum() + 3 * (size**2).sum() * whole


def weight_of(clips, min_tokens, c):
    length = c.sum()
    if length < min_tokens:
        return 0.0
    norms = {clip.limit: NORM_SLACK * norm_of(clip.norm, c, length) for clip in clips}
    return min(limit / max(norm, limit) for limit, norm in norms.items())


def looped(clips, min_tokens, moment, X):
    return sum(weight_of(clips, min_tokens, c) * moment(c, c.sum()) for c in X)


def looped_triples(clips, words, B, X):
    """Terms that cancel are bounded beside the moment that is left of them."""
    total = 0.0
    for c in X:
        part, length, most = (
            c if words is None else c[words],
            c.sum(),
            LARGEST_TERMS * clips[0].limit,
        )
        terms = sizes_and_terms(B, part)[1] / max((length - 1) * (length - 2), 1)
        weight = min(weight_of(clips, 3, c), most / max(terms, most)) * (length >= 3)
        total = total + weight * whitened_moment(part, length, B)
    return total


def expected_counts(query, c):
    """Steps in double precision; digits beyond single precision are their own."""
    topics = np.maximum(query.topics, 1e-15)
    gamma = query.prior + c.sum() / len(query.prior)
    for step in range(query.n_iter + 1):
        shares = np.exp(psi(gamma) - psi(gamma).max())
        ratios = c / np.maximum(shares @ topics, 1e-15)
        if step < query.n_iter:
            before, gamma = gamma, query.prior + shares * (topics @ ratios)
            if 0 < step < query.n_iter - 1:
                gamma = np.maximum(2 * gamma - before, (gamma + query.prior) / 2)
    return shares[:, None] * query.topics * ratios


def one_topic_counts(query, c):
    joint = query.prior * np.prod(query.topics**c, axis=1)
    return np.outer(joint / joint.sum(), c)


def looped_expected(query, X):
    each = one_topic_counts if query.single else expected_counts
    total = np.zeros(query.topics.shape)
    scales = 1.0 if query.scales is None else query.scales
    for array in (each(query, c) / scales for c in X):
        norm = NORM_SLACK * np.linalg.norm(array.ravel(), query.order)
        total += array * (query.limit / max(norm, query.limit))
    return total
