"""Public topics as the start of EM steps, and as they are."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sktensor_dp.spectral_topics.released import FittedTopics
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.public_topics import adapted_topics, on_all_words, shares_of_topics


def public_start(learnt: FittedTopics, public: Floats, n_components: int) -> FittedTopics:
    """Public topics, used as often as words show, and of those learnt what is least like them."""
    weights = shares_of_topics(public, learnt.unigram)
    topics = adapted_topics(public, weights, learnt.unigram)
    further = _least_alike(learnt.topics, topics, n_components - len(topics))
    own = learnt.weights[further]
    # Of equal weight on average, before anything is known of how often they are used.
    share = len(further) / (len(further) + len(topics))
    weights = np.concatenate([(1 - share) * weights, share * own / max(float(own.sum()), 1e-300)])
    topics = np.concatenate([topics, learnt.topics[further]])
    return replace(
        learnt, topics=topics, weights=weights, topics_std=np.ones(topics.shape),
        weights_std=np.ones(len(topics)), public=public,
    )  # fmt: skip


def beside_public(learnt: FittedTopics, public: FittedTopics) -> FittedTopics:
    """Topics learnt, each in the place of the public one that it is most like.

    Public ones stay where there are fewer topics learnt.
    """
    assert public.public is not None
    k = len(public.public)
    likeness = np.sqrt(public.topics[:k]) @ np.sqrt(np.maximum(learnt.topics, 0.0)).T
    places, matched = linear_sum_assignment(likeness, maximize=True)
    others = np.setdiff1d(np.arange(len(learnt.topics)), matched)
    topics = np.concatenate([public.topics[:k], learnt.topics[others]])
    weights = np.concatenate([public.weights[:k], learnt.weights[others]])
    topics[places], weights[places] = learnt.topics[matched], learnt.weights[matched]
    return replace(
        learnt, topics=topics, weights=weights / weights.sum(), topics_std=np.ones(topics.shape),
        weights_std=np.ones(len(topics)), public=public.public,
    )  # fmt: skip


def public_alone(fitted: FittedTopics, public: Floats) -> FittedTopics:
    """Public topics as they are given, used as often as those that they have become."""
    topics = on_all_words(public, fitted.unigram)
    weights = fitted.weights[: len(topics)]
    # Of words that they do not know they have a released frequency.
    std = np.where(public.any(axis=0), 0.0, fitted.unigram_sigma)
    return replace(
        fitted, topics=topics, weights=weights / weights.sum(),
        topics_std=np.minimum(np.tile(std, (len(topics), 1)), 1.0),
        weights_std=np.zeros(len(topics)),
    )  # fmt: skip


def _least_alike(learnt: Floats, topics: Floats, number: int) -> NDArray[np.intp]:
    """Which topics are the farthest from all others, by total variation, one after the other."""
    chosen: list[int] = []
    nearest = np.array([np.abs(topics - topic).sum(axis=1).min() for topic in learnt])
    for _ in range(min(number, len(learnt))):
        farthest = int(np.argmax(nearest))
        chosen.append(farthest)
        nearest = np.minimum(nearest, np.abs(learnt - learnt[farthest]).sum(axis=1))
        nearest[chosen] = -1.0
    return np.array(chosen, dtype=np.intp)
