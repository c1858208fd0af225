"""Topics that fit all released moments at once, each weighted by its known noise.

The spectral solution reads the topics off a few numbers of the third moment and
uses the second only through its leading eigenvectors. Fitting weights and topics
to everything that was released, under the constraint that they are probabilities,
costs no privacy and removes most of the noise where the vocabulary is small.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from sktensor_dp.tensor.arrays import Floats

# Share of a structureless model in the variances: a start that misses a word
# pair must not make its released mass infinitely certain.
FLOOR = 0.2


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """Noisy moments of the single topic model (or corrected to it)."""

    frequencies: Floats  # (d,): first moment, sum_j w_j mu_j
    frequencies_sigma: float  # standard deviation of its noise
    pairs: Floats  # (d, d): second moment, sum_j w_j mu_j mu_j'
    pairs_sigma: float  # standard deviation of the noise off the diagonal
    diagonal_sigma: float  # standard deviation of the noise on the diagonal
    basis: Floats  # (d, m): B, in which the third moment was released
    triples: Floats  # (m, m, m): sum_j w_j (B' mu_j)^(x)3
    triples_sigma: float  # standard deviation of its noise in orthonormal coordinates
    n_documents: int  # number of documents
    # Mean squared norm of the pair masses of one document, which scales the sampling variance.
    spread: float


def match_moments(
    topics: Floats, weights: Floats, moments: ReleasedMoments, max_iter: int = 300
) -> tuple[Floats, Floats]:
    """Refine topics and weights by generalised least squares on released moments."""
    objective = _Objective(topics, weights, moments)
    start = np.sqrt(weights[:, None] * (0.98 * topics + 0.02 / topics.shape[1]))
    found = minimize(
        objective, start.ravel(), jac=True, method="L-BFGS-B",
        options={"maxiter": max_iter, "maxcor": 20},
    )  # fmt: skip
    joint = found.x.reshape(topics.shape) ** 2
    joint /= joint.sum()
    shares = np.maximum(joint.sum(axis=1), 1e-12)[:, None]
    # A topic that has lost its weight says nothing of words: the unigram stands in.
    fitted = np.where(shares > 1e-12, joint / shares, joint.sum(axis=0))
    return fitted, shares[:, 0] / shares.sum()


def unexplained(topics: Floats, weights: Floats, moments: ReleasedMoments) -> float:
    """What share of the second moment's structure topics leave unexplained.

    Parameters
    ----------
    topics, weights : ndarray of shape (k, d) and (k,)
        As :func:`match_moments` found them.
    moments : ReleasedMoments
        What they were fitted to.

    Returns
    -------
    float
        Norm of what is left of the second moment, beyond its noise and sampling error, over the
        norm of how it differs from independent words. 0 where the error is all that is left.
    """
    error = topics.T @ (weights[:, None] * topics) - moments.pairs
    # Off the diagonal a precision stands for two entries.
    variance = 0.5 / pair_precision(topics, weights, moments)
    np.fill_diagonal(variance, 2 * np.diagonal(variance))
    # Twice what is to be expected, so that chance explains what it can.
    excess = float((error**2 - 2 * variance).sum())
    structure = moments.pairs - np.outer(moments.frequencies, moments.frequencies)
    return float(np.sqrt(max(excess, 0.0) / max(float((structure**2).sum()), 1e-300)))


def pair_precision(topics: Floats, weights: Floats, moments: ReleasedMoments) -> Floats:
    """One over the variance of every entry of the second moment, noise and sampling."""
    d, n = topics.shape[1], moments.n_documents
    first = weights @ topics
    second = topics.T @ (weights[:, None] * topics)
    second = (1 - FLOOR) * second + FLOOR * np.outer(first, first) + 1e-3 / d**2
    # Sampling variance of a pair's mass is spread * mass / n; an entry off the
    # diagonal is half of it and is counted twice in the sum over the matrix.
    precision: Floats = 0.5 / (moments.pairs_sigma**2 + moments.spread * second / (2 * n))
    diagonal = np.diagonal(second)
    np.fill_diagonal(precision, 1 / (moments.diagonal_sigma**2 + moments.spread * diagonal / n))
    return precision


class _Objective:
    """Half the weighted squares and their gradient, in ``S`` with ``w_j mu_j ~ S_j ** 2``."""

    def __init__(self, topics: Floats, weights: Floats, moments: ReleasedMoments) -> None:
        self._m = moments
        self._shape = topics.shape
        d, n = topics.shape[1], moments.n_documents
        first = weights @ topics
        self._pair_precision = pair_precision(topics, weights, moments)
        self._word_precision = 1 / (moments.frequencies_sigma**2 + (first + 1e-3 / d) / n)
        size = moments.triples.shape[0]
        coordinates = size * (size + 1) * (size + 2) / 6
        self._triple_precision = 1 / (moments.triples_sigma**2 + 0.25 / (n * coordinates))

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        root = x.reshape(self._shape)
        total = float((root**2).sum())
        joint = root**2 / total
        weights = joint.sum(axis=1) + 1e-12
        topics = joint / weights[:, None]
        value, gradient = self._words(joint)
        for part in (self._pairs, self._triples):
            extra, slope = part(joint, topics, weights)
            value += extra
            gradient = gradient + slope
        gradient = root * (gradient - (gradient * joint).sum()) / total
        return value / 2, gradient.ravel()

    def _words(self, joint: Floats) -> tuple[float, Floats]:
        error = joint.sum(axis=0) - self._m.frequencies
        weighted = self._word_precision * error
        return float(weighted @ error), 2 * weighted[None, :]

    def _pairs(self, joint: Floats, topics: Floats, weights: Floats) -> tuple[float, Floats]:
        error = topics.T @ joint - self._m.pairs
        weighted = self._pair_precision * error
        slope = topics @ weighted
        through_weights = (slope * topics).sum(axis=1)
        return float((weighted * error).sum()), 4 * slope - 2 * through_weights[:, None]

    def _triples(self, joint: Floats, topics: Floats, weights: Floats) -> tuple[float, Floats]:
        seen = topics @ self._m.basis
        model = np.einsum("ja,jb,jc->abc", weights[:, None] * seen, seen, seen, optimize=True)
        error = model - self._m.triples
        slope = np.einsum("abc,jb,jc->ja", error, seen, seen, optimize=True)
        slope *= self._triple_precision
        through_weights = (slope * seen).sum(axis=1)
        value = self._triple_precision * float((error**2).sum())
        return value, 6 * slope @ self._m.basis.T - 4 * through_weights[:, None]
