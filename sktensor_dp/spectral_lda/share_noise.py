"""Noise of shares of topics, by the confusion of the topics of a model."""

from itertools import combinations
from typing import Any

import numpy as np

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.confusion import confusion
from sktensor_dp.topics.inference import TINY


def inverse_of(matrix: Floats, mixtures: Floats) -> Floats:
    """Matrix (k, k) that takes sums of shares confused by a `matrix` to those of topics.

    Half of the texts of hidden topics count for `mixtures` (k, k) of the others. Rows sum to 1.
    """
    return np.asarray(np.linalg.pinv(matrix) @ (np.eye(len(matrix)) + mixtures) / 2)


def squares_of_texts(matrix: Floats, inverse: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Largest mean squares of what texts add to a topic's sum: texts of the topic, and others.

    They are of shapes (k,) and (m, k), for `shares` (m, k) confused by a `matrix`.
    """
    # As if inference had each text in one topic: the excess makes up for errors of the model.
    squares = np.maximum(matrix, 0.0) @ inverse**2
    own = squares.diagonal()
    others = shares.sum(axis=1, keepdims=True) - shares
    return own, (shares @ squares - shares * own) / np.maximum(others, TINY)


def chance_variance(matrix: Floats, inverse: Floats, shares: Floats) -> Floats:
    """Variances (m, k) by chance of what a text adds to the `shares` (m, k), at most, about."""
    own, others = squares_of_texts(matrix, inverse, shares)
    squares = others + (own - others) * shares
    # Rounding may give less than 0 where all texts have one topic.
    return np.asarray(np.maximum(squares - shares**2, 0.0))


def common_words(topics: Floats) -> float:
    """Part of their words that the two most alike of some `topics` (k, words) have in common."""
    pairs = combinations(topics, 2)
    return max((float(np.minimum(one, other).sum()) for one, other in pairs), default=0.0)


def mixing_variance(covariances: Floats | None, shares: Floats) -> Floats:
    """Variances (m, k) of shares (m, k), or differences of these, by errors of topics.

    `covariances` are those of the model, `mixing_covariance_`.
    """
    if covariances is None:
        return np.zeros_like(shares)
    variance = np.einsum("gi,jil,gl->gj", shares, covariances, shares, optimize=True)
    return np.maximum(variance, 0.0)


def mixing_by_groups(shares: Floats, counts: Floats, noise: Floats, concentration: float) -> Floats:
    """Second moments (k, k, k) of errors of topics fitted as if groups did not differ.

    Groups of `counts` (m,) texts have `shares` (m, k), with variances `noise`. Entry [j, i, l] is
    of what texts of topics i and l give topic j too much.
    """
    k = shares.shape[1]
    weights = counts / max(float(counts.sum()), TINY)
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), TINY)
    mean = weights @ shares
    between = (shares - mean).T @ (weights[:, None] * (shares - mean)) - np.diag(weights @ noise)
    # Shares of texts have the covariance V / (1 + c) by one law of concentration c, where V is that
    # of texts of one topic each; and B + (V - B) / (1 + c') by laws of groups, B `between` these.
    # Both have one trace, which gives c'. What the second has more is c' / (1 + c') times
    # B - V tr B / tr V.
    single = np.diag(mean) - np.outer(mean, mean)
    of_single, of_groups = float(np.trace(single)), max(float(np.trace(between)), 0.0)
    within = of_single / (1 + concentration) - of_groups
    within = min(max(within / max(of_single - of_groups, TINY), 0.0), 1.0)  # 1 / (1 + c')
    excess = (1 - within) * (between - single * of_groups / max(of_single, TINY))
    # A fit by one law explains it, to first order, by topics (I + A) T for which, at shares w,
    # A_ij w_i + A_ji w_j is 1 + c times the excess: one of two topics takes it all, or gives it.
    taken = (1 + concentration) * excess / np.maximum(2 * mean[:, None], TINY)
    taken = np.clip(taken, -0.5, 0.5) * (1 - np.eye(k))  # half, of no more than all words
    errors = [taken - np.diag(taken.sum(axis=1))]
    for one, other in combinations(range(k), 2):
        error = np.zeros((k, k))
        error[one, [other, one]] = taken[one, other] * np.array([1.0, -1.0])
        error[other, [one, other]] = taken[other, one] * np.array([-1.0, 1.0])
        errors.append(error)
    return np.asarray(np.einsum("mij,mlj->jil", errors, errors, optimize=True))


def variance_of_shares(inverse: Floats, shares: Floats) -> Floats:
    """Variance of shares by noise, in the units of `variance_terms`."""
    a, b, c = variance_terms(inverse)
    return a - 2 * b * shares + c * shares**2


def variance_terms(inverse: Floats) -> tuple[Floats, Floats, int]:
    """Terms a and b (k,) and c of the variance by noise ``a - 2 b s + c s^2`` of a share s.

    Its unit is the variance of the noise of one released sum, over the square of the number of
    texts, which is the sum of all sums of a group. `inverse` is that of the confusion.
    """
    return np.square(inverse).sum(axis=0), inverse.sum(axis=0), len(inverse)


def confusion_of(model: Any) -> Floats:
    """Confusion of the topics of a model in texts as long as its fit released."""
    topics, prior, single = model._topics_and_prior()
    return confusion(topics, prior, single, model.document_length_)
