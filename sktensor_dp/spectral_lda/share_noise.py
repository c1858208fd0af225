"""Noise of shares of topics, by the confusion of the topics of a model."""

import math
from typing import Any

import numpy as np

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.confusion import confusion, without_hidden
from sktensor_dp.topics.inference import TINY


def noise_by_topic(model: Any, matrix: Floats | None = None) -> Floats:
    """Standard errors (k,) by noise of shares of a model's topics; about 1 without shared words.

    In units of the noise of one released sum over the number of texts. `matrix` is the confusion,
    if it is computed already.
    """
    inverse = np.asarray(np.linalg.pinv(confusion_of(model) if matrix is None else matrix))
    return np.sqrt(variance_of_shares(inverse, model._shares))


def noise_of_seen(model: Any, matrix: Floats | None = None) -> float:
    """Factor for :meth:`TopicShares.shows`: the larger one of numbers of texts, and of a share.

    The share is that of the seen topic that noise hides least. The factor is infinite if no topic
    is seen, or there is only one.
    """
    k, ratios = model.n_components_, noise_by_topic(model, matrix) / np.maximum(model._shares, TINY)
    least = ratios.min(initial=math.inf, where=~model.hidden() & (k > 1))
    return max(math.sqrt(k), float(least))


def share_of_hidden(model: Any) -> tuple[float, float]:
    """Share of the topics that noise hides, and the largest error of another topic's share.

    Half of the hidden topics' texts count for the others, which are off if all of the hidden ones
    exist, or none.
    """
    hidden, (_, moved) = model.hidden(), errors_of_topics(model)
    return float(model._shares[hidden].sum()), float(moved.max(initial=0.0, where=~hidden)) / 2


def errors_of_topics(model: Any) -> tuple[Floats, Floats]:
    """Deviations (k,) of shares by errors of topics, and how far hidden topics may move them."""
    shares = model._shares
    mixed = np.sqrt(mixing_variance(model.mixing_covariance_, shares[None])[0])
    return mixed, np.abs(shares @ without_hidden(model.components_, model.hidden()) - shares)


def mixing_variance(covariances: Floats | None, shares: Floats) -> Floats:
    """Variances (m, k) of shares (m, k), or differences of these, by errors of topics.

    `covariances` are those of the model, `mixing_covariance_`.
    """
    if covariances is None:
        return np.zeros_like(shares)
    variance = np.einsum("gi,jil,gl->gj", shares, covariances, shares, optimize=True)
    return np.maximum(variance, 0.0)


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
