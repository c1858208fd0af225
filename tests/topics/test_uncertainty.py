"""Bias of shares by clipping, and intervals that hold it."""

import math

import numpy as np
import pytest

from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.topics.uncertainty import Limits, clip_drift

LENGTH, LIMIT, N_WORDS = 40, 7.0, 120


def topics_of(few, many):
    """One topic of few words, one of many others, all as frequent as each other."""
    topics = np.zeros((2, N_WORDS))
    topics[0, :few] = 1 / few
    topics[1, few : few + many] = 1 / many
    return topics


def clipped_documents(seed, n, topics, weights, concentration):
    rng = np.random.default_rng(seed)
    shares = np.eye(2)[rng.choice(2, n, p=weights)]
    if concentration > 0:
        shares = rng.dirichlet(concentration * weights, n)
    return shares, rng.multinomial(LENGTH, shares @ topics)


TOPICS, TWO_FIFTHS = topics_of(6, 100), np.array([0.4, 0.6])


def norm(counts):
    return np.linalg.norm(counts, axis=1)


def pair_norm(counts):
    squares, fourths = (counts**2).sum(axis=1), (counts**4).sum(axis=1)
    repeated = ((counts * (counts - 1)) ** 2).sum(axis=1)
    return np.sqrt(2.0 * (squares**2 - fourths + repeated)) / (LENGTH - 1)


def scaled(scale):
    """Norms of counts of which the words of one topic are divided by a scale."""
    scales = np.where(TOPICS[0] > TOPICS[1], scale, 1.0)
    return lambda counts: norm(counts / scales), lambda limit: Limits(limit, scales=scales)


# The concentration, the limited norm, what of its least value the limit is or the limit itself,
# how far a share moves at least, and the error of the drift. The limit of the mean norm is not the
# mean of limited norms: twelve seeds were off by an eighth of the drift at most, with deviations
# below a hundredth of it.
DRIFTS = {
    **{f"counts, {c}": (c, (norm, Limits), LIMIT, 0.01, 0.25) for c in (0.0, 1.0, 4.0)},
    "pairs": (0.0, (pair_norm, lambda limit: Limits(pairs=limit)), 3.0, 0.05, 0.15),
    **{f"scaled, {s}": (0.0, scaled(s), None, 0.02, 0.15) for s in (0.5, 2.0)},
}


@pytest.mark.parametrize("case", DRIFTS)
def test_the_drift_is_what_the_limit_does_to_documents(case, seed):
    concentration, (norms_of, limits), limit, least, rel = DRIFTS[case]
    shares, counts = clipped_documents(seed, 20_000, TOPICS, TWO_FIFTHS, concentration)
    norms = norms_of(counts)
    limit = 0.8 * norms.min() if limit is None else limit
    left = LENGTH * np.minimum(1, limit / norms)
    found = left @ shares / left.sum()
    moved = found - shares.mean(axis=0)
    drift = clip_drift(TOPICS, found, concentration, limits(limit), left.mean())
    assert abs(moved[0]) > least
    assert drift == pytest.approx(moved, rel=rel)
    assert abs(drift.sum()) < 1e-12


@pytest.mark.parametrize(
    ("topics", "limits"),
    [
        *((TOPICS, limits) for limits in (Limits(math.inf), Limits(LIMIT, 1), Limits(1000.0))),
        (topics_of(50, 50), Limits(LIMIT)),
    ],
)
def test_limits_that_treat_topics_alike_move_nothing(topics, limits):
    drift = clip_drift(topics, TWO_FIFTHS, 0.0, limits, 30.0)
    assert drift == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("n_refinements", ["auto", 4])
def test_intervals_hold_shares_that_the_limit_moved(seed, n_refinements):
    _, counts = clipped_documents(seed, 4000, TOPICS, np.array([0.5, 0.5]), 0.0)
    low, high, share = [], [], []
    # Hardly any noise, so that the limit is all that is between the two.
    for limits, epsilon in (({"counts": LIMIT}, 60.0), ({}, math.inf)):
        model = PrivateSpectralLDA(
            2, epsilon=epsilon, doc_topic_prior=0.0, clip_norm=limits, random_state=0,
            n_refinements=n_refinements,
        ).fit(counts)  # fmt: skip
        few = int(np.argmax(model.components_[:, :6].sum(axis=1)))
        share.append(model.topic_prior_[few] / model.topic_prior_.sum())
        ends = model.shares_interval(0.9)
        low.append(ends[0][few])
        high.append(ends[1][few])
    assert share[0] < share[1] - 0.05
    assert low[0] - 0.01 <= share[1] <= high[0] + 0.01
    assert high[0] < 0.8
