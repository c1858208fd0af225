"""Intervals know what steps that end early leave of the way from their start."""

import numpy as np

from sktensor_dp.topics.inference import topic_posterior
from sktensor_dp.topics.uncertainty import Steps, std_of_refined

N_WORDS, LENGTH, WEIGHTS = 40, 3, np.array([0.5, 0.5])
OWN, NEAR, N_STEPS = 0.3, 0.3, 2


def documents(seed, n):
    """Two topics that share most of what they say, so that steps of EM are short."""
    rng = np.random.default_rng(seed)
    topics = np.full((2, N_WORDS), (1 - OWN) / N_WORDS)
    topics[0, : N_WORDS // 2] += 2 * OWN / N_WORDS
    topics[1, N_WORDS // 2 :] += 2 * OWN / N_WORDS
    return topics, rng.multinomial(LENGTH, topics[rng.integers(2, size=n)])


def test_intervals_reach_where_the_steps_lead(seed):
    truth, counts = documents(seed, 20_000)
    start = topics = NEAR * truth + (1 - NEAR) * truth.mean(axis=0)
    for _ in range(N_STEPS):
        joint = topic_posterior(counts, topics, WEIGHTS).T @ counts / len(counts)
        topics = joint / joint.sum(axis=1, keepdims=True)
    # Next to no noise: what is left of the way is all there is. Words are .0045 off, of .025.
    steps = Steps(start, (1.0,) * N_STEPS, 0.0, LENGTH)
    unigram = counts.sum(axis=0) / counts.sum()
    std, _ = std_of_refined(joint, 1e-6, unigram, WEIGHTS, steps)
    off, reach = np.abs(topics - truth), 1.645 * std
    # Without the way beyond the topics found intervals reach a third as far, and hold next to none.
    assert (off <= reach).mean() > 0.5
    assert reach.mean() < 4 * off.mean()
