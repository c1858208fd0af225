"""Noise of shares of topics, by the confusion of the topics of a model."""

import math
from typing import Any

import numpy as np

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.confusion import confusion
from sktensor_dp.topics.inference import TINY


def noise_by_topic(model: Any, common: Floats | None = None) -> Floats:
    """Deviations (k,) by noise of shares of a model's topics: 1, about, of words of their own.
    `common` is the confusion of the topics, if it is known.
    """
    inverse = np.asarray(np.linalg.pinv(confusion_of(model) if common is None else common))
    return np.sqrt(noise_of_shares(inverse, model.topic_prior_ / model.topic_prior_.sum()))


def noise_of_seen(model: Any, common: Floats | None = None) -> float:
    """Factor of :meth:`TopicShares.shows` for the share that noise hides least, of seen topics of a
    model, and for the number of texts; infinite if none is seen, or there is one topic alone.
    """
    k, shares = model.n_components_, model.topic_prior_ / model.topic_prior_.sum()
    ratios = noise_by_topic(model, common) / np.maximum(shares, TINY)
    least = ratios.min(initial=math.inf, where=~model.hidden() & (k > 1))
    return max(math.sqrt(k), float(least))


def noise_of_shares(inverse: Floats, shares: Floats) -> Floats:
    """Variance of shares by noise, in the units of `noise_terms`."""
    a, b, c = noise_terms(inverse)
    return a - 2 * b * shares + c * shares**2


def noise_terms(inverse: Floats) -> tuple[Floats, Floats, int]:
    """Terms a and b (k,) and c of the variance by noise ``a - 2 b s + c s^2`` of a share s.

    It is in units of that of a released sum over the count, which is the sum of all sums.
    `inverse` is that of the confusion.
    """
    return np.square(inverse).sum(axis=0), inverse.sum(axis=0), len(inverse)


def confusion_of(model: Any) -> Floats:
    """Confusion of the topics of a model in texts as long as its fit released."""
    topics, prior, single = model._topics_and_prior()
    return confusion(topics, prior, single, model.document_length_)
