"""Verdicts on Imtiaz & Sarwate: ordered words, the law of AVN, and the comparison."""

import itertools
import math

import numpy as np
import pytest
from plain_moments import all_documents, cube, pair_moment, triple_moment

ORDERS = list(itertools.permutations(range(3)))


def ordered(words, dim):
    """t1 (x) t2 (x) t3 of one document."""
    T = np.zeros((dim,) * 3)
    T[tuple(words)] = 1
    return T


def symmetrised(T):
    return sum(T.transpose(p) for p in ORDERS) / 6


def unique_entries(T):
    return np.array([T[i] for i in itertools.combinations_with_replacement(range(len(T)), 3)])


def test_symmetric_noise_does_not_cover_the_order_of_words():
    """The antisymmetric part of a release is exact: neighbours are told apart with certainty."""
    first, second = ordered((0, 1, 2), 3) / 50, ordered((1, 0, 2), 3) / 50
    noise = symmetrised(np.random.default_rng(0).standard_normal((3,) * 3)) * 1e6
    released = first + noise
    rest = released - symmetrised(released)
    assert np.abs(rest - (first - symmetrised(first))).max() < 1e-8
    assert np.abs(rest - (second - symmetrised(second))).max() > 1e-3
    # For the same of pairs: E is symmetric, e_1 e_2' is not.
    E = 1e6 * np.random.default_rng(1).standard_normal((3, 3))
    pair = np.outer(*np.eye(3)[:2]) / 50 + E + E.T
    assert pair[0, 1] - pair[1, 0] == pytest.approx(1 / 50, abs=1e-8)


def test_symmetrised_words_move_moments_by_root_two():
    """Theorem 1 for symmetrised moments: sqrt(2) holds though up to twelve entries differ."""
    tensors = [symmetrised(ordered(w, 4)) for w in itertools.product(range(4), repeat=3)]
    flat = np.array([T.ravel() for T in tensors])
    gaps = np.linalg.norm(flat[:, None] - flat[None], axis=2)
    assert gaps.max() == pytest.approx(math.sqrt(2))
    changed = (np.abs(flat[:, None] - flat[None]) > 1e-12).sum(axis=2)
    assert changed.max() == 12 > 2
    # And the same for documents of any length.
    for moment in (pair_moment, triple_moment):
        values = np.array([moment(x).ravel() for x in all_documents(3, 5)])
        gaps = np.linalg.norm(values[:, None] - values[None], axis=2)
        assert gaps.max() == pytest.approx(math.sqrt(2))


def test_norm_of_unique_entries_keeps_avn_private(seed):
    """The printed law is exp(-beta |b|) of unique entries: its log ratio is below beta Delta_3."""
    rng, beta = np.random.default_rng([seed, 1]), 1 / math.sqrt(2)
    moments = [unique_entries(triple_moment(x)) for x in all_documents(4)]
    largest = 0.0
    for p, q in itertools.product(moments, repeat=2):
        # Along the line through both the triangle inequality is attained.
        for y in (q + 3 * (q - p), *(p + rng.standard_normal((3, p.size)))):
            ratio = beta * abs(np.linalg.norm(y - p) - np.linalg.norm(y - q))
            assert ratio <= 1 + 1e-12
            largest = max(largest, ratio)
    assert largest == pytest.approx(1.0)


def test_norm_of_unique_entries_is_not_that_of_the_proof():
    """The proof has the norm of the whole tensor: off-diagonal entries count up to six times."""
    T = symmetrised(ordered((0, 1, 2), 3))
    assert np.linalg.norm(T) == pytest.approx(math.sqrt(6) * np.linalg.norm(unique_entries(T)))


def test_dp_tpm_is_compared_with_noise_n_times_too_large():
    """2 |u|_inf^2 bounds a document's moment; that of a mean of N documents is N times less."""
    n, u = 500, np.array([1.0, -1.0, 0.0])
    documents = [triple_moment(x) for x in all_documents(3)]
    answers = np.array([np.einsum("ijk,j,k->i", M, u, u) for M in documents])
    gap = np.linalg.norm(answers[:, None] - answers[None], axis=2).max()
    # The mean over n documents moves by the nth part of what one of them can.
    assert gap <= 2
    base = sum(documents) / n
    moved = [np.einsum("ijk,j,k->i", base + M / n, u, u) for M in documents]
    assert max(np.linalg.norm(x - y) for x in moved for y in moved) == pytest.approx(gap / n)
    assert 2 / (gap / n) > n


def corpus(n_words, n_topics, rng):
    """Documents of 100 words, one topic each, and the weights and topics they come from."""
    topics = rng.dirichlet(np.full(n_words, 0.1), size=n_topics)
    return rng.multinomial(100, topics[rng.integers(n_topics, size=400)]).astype(float), topics


def whitened_norms(counts, W):
    """Norm of M3_n(W, W, W) of every document, from y = W'c."""
    length, norms = counts[0].sum(), []
    for c in counts:
        y = c @ W
        once = np.einsum("w,wa,wb,wc->abc", c, W, W, W)
        pairs = (W * c[:, None]).T @ W
        twice = np.multiply.outer(pairs, y)
        twice = twice + twice.transpose(0, 2, 1) + twice.transpose(2, 1, 0)
        T = (cube(y) + 2 * once - twice) / (length * (length - 1) * (length - 2))
        norms.append(np.linalg.norm(T))
    return np.array(norms)


def test_private_projection_needs_less_noise_not_more():
    """Against "making the projection private involves a large amount of noise"."""
    rng = np.random.default_rng(2)
    d, k = 100, 5
    counts, topics = corpus(d, k, rng)
    U, s, _ = np.linalg.svd(topics.T / math.sqrt(k), full_matrices=False)
    W = U / s
    clip = np.quantile(whitened_norms(counts, W), 0.9)
    # Deviations for sensitivity over sigma 1, times N: norms of the noise in whitened space. On
    # unique entries of words, off-diagonal variance tau^2 = 2 makes E(W, W, W) as below.
    projected = 2 * clip * math.sqrt(math.comb(k + 2, 3))
    Z = rng.standard_normal((d,) * 3)
    i, j, m = np.indices((d,) * 3)
    unique = np.where((i <= j) & (j <= m), Z, 0)
    E = sum(unique.transpose(p) for p in ORDERS)
    n_equal = (i == j).astype(int) + (j == m) + (i == m)
    E /= np.where(n_equal == 3, 6, np.where(n_equal == 1, 2, 1))
    published = math.sqrt(2) * np.linalg.norm(
        np.einsum("abc,ai,bj,ck->ijk", E, W, W, W, optimize=True)
    )
    assert projected < published / 20
