"""Moments of counts by their definitions, dense and slow: nothing here comes from the package."""

import itertools
import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr


def pair_moment(c):
    """M2_n of a document: probabilities of two different tokens in a row."""
    c = np.asarray(c, dtype=float)
    return (np.outer(c, c) - np.diag(c)) / (c.sum() * (c.sum() - 1))


def spread(A, v):
    """S3(A, v): A in two modes and v in the third, all three ways."""
    first = np.einsum("ij,k->ijk", A, v)
    return first + first.transpose(0, 2, 1) + first.transpose(2, 1, 0)


def cube(v):
    return np.einsum("i,j,k->ijk", v, v, v)


def diagonal(c):
    tensor = np.zeros((len(c),) * 3)
    np.einsum("iii->i", tensor)[:] = c
    return tensor


def triple_moment(c):
    """M3_n of a document: probabilities of three different tokens in a row."""
    c = np.asarray(c, dtype=float)
    # S3 of diag(c) and c is the sum over i and j of the three printed terms.
    total = cube(c) + 2 * diagonal(c) - spread(np.diag(c), c)
    return total / (c.sum() * (c.sum() - 1) * (c.sum() - 2))


def documents_of(words, n_features):
    """Counts of every document in an array of words of shape (n, l)."""
    return np.eye(n_features)[np.asarray(words)].sum(axis=1)


def all_documents(n_features, length=3):
    """Every multiset of that many words, as counts."""
    words = itertools.combinations_with_replacement(range(n_features), length)
    return documents_of(list(words), n_features)


def constants(alpha0):
    """The paper's a, b and c."""
    return (
        alpha0 / (alpha0 + 1),
        -alpha0 / (alpha0 + 2),
        2 * alpha0**2 / ((alpha0 + 1) * (alpha0 + 2)),
    )


def u_statistics(documents, alpha0):
    """M2 and M3 of LDA over all pairs and triples of different documents, (18), (33), (41)."""
    a, b, c = constants(alpha0)
    n = len(documents)
    m = [np.asarray(x, dtype=float) / np.sum(x) for x in documents]
    pairs = [pair_moment(x) for x in documents]
    total = np.sum(m, axis=0)
    own = sum(np.outer(x, x) for x in m)
    M2 = sum(pairs) / n - a / (n * (n - 1)) * (np.outer(total, total) - own)
    M3 = sum(map(triple_moment, documents)) / n
    crossed = spread(sum(pairs), total) - sum(spread(P, x) for P, x in zip(pairs, m, strict=True))
    M3 += b / (n * (n - 1)) * crossed
    if n > 2:
        # Triples of different documents: all, less those with a repetition.
        cubes = cube(total) - spread(own, total) + 2 * sum(map(cube, m))
        M3 += c / (n * (n - 1) * (n - 2)) * cubes
    return M2, M3


def whitened(pairs, triples, rank):
    """W = U D^(-1/2) of the top eigenpairs, and M3(W, W, W)."""
    values, vectors = np.linalg.eigh(pairs)
    W = vectors[:, ::-1][:, :rank] / np.sqrt(values[::-1][:rank])
    return W, np.einsum("abc,ai,bj,ck->ijk", triples, W, W, W)


def pure_corpus(counts):
    """M2 and M3 of documents of one word each (alpha0 = 0), given how many there are of each."""
    weights = np.asarray(counts, dtype=float) / np.sum(counts)
    return np.diag(weights), diagonal(weights)


def hockey_stick(mu, epsilon):
    """Smallest delta of two unit normals mu apart, from their densities."""
    above = ndtr(mu / 2 - epsilon / mu)
    return float(above - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def exact_sigma(epsilon, delta):
    """Noise over sensitivity that is just enough."""
    return 1 / brentq(lambda mu: hockey_stick(mu, epsilon) - delta, 1e-3, 50, xtol=1e-12)


# Multiples of 1/4, so that all ordered triples of words occur in whole numbers.
TOPICS = np.array([[2, 1, 1, 0], [0, 0, 1, 3]]) / 4
WEIGHTS = np.array([1, 2]) / 3


def exact_corpus():
    """Three-word documents whose empirical moments are those of the model, exactly."""
    words = np.array(list(itertools.product(range(4), repeat=3)))
    documents = np.eye(4)[words].sum(axis=1)
    copies = [
        np.rint(64 * TOPICS[topic][words].prod(axis=1) * 3 * WEIGHTS[topic]).astype(int)
        for topic in range(2)
    ]
    return np.repeat(documents, np.sum(copies, axis=0), axis=0)
