"""Intervals know what steps that end early leave of the way from their start."""

import numpy as np
import pytest

from sktensor_dp.topics.inference import topic_posterior
from sktensor_dp.topics.uncertainty import Steps, std_of_refined

N_WORDS, LENGTH, WEIGHTS = 40, 8, np.array([0.5, 0.5])


def documents(seed, n):
    """Two topics that share half of what they say."""
    rng = np.random.default_rng(seed)
    topics = np.full((2, N_WORDS), 0.5 / N_WORDS)
    topics[0, : N_WORDS // 2] += 1 / N_WORDS
    topics[1, N_WORDS // 2 :] += 1 / N_WORDS
    return topics, rng.multinomial(LENGTH, topics[rng.integers(2, size=n)])


def stepped(counts, topics, n_steps):
    for _ in range(n_steps):
        joint = topic_posterior(counts, topics, WEIGHTS).T @ counts / len(counts)
        topics = joint / joint.sum(axis=1, keepdims=True)
    return joint, topics


@pytest.mark.parametrize("n_steps", [2, 4])
def test_intervals_reach_where_the_steps_lead(seed, n_steps):
    topics, counts = documents(seed, 20_000)
    start = 0.5 * topics + 0.5 * topics.mean(axis=0)
    joint, found = stepped(counts, start, n_steps)
    _, end = stepped(counts, found, 200)
    # Next to no noise: what is left of the way is all there is.
    steps = Steps(start, (1.0,) * n_steps, 0.0, LENGTH)
    std, _ = std_of_refined(joint, 1e-6, counts.sum(axis=0) / counts.sum(), WEIGHTS, steps)
    off = np.abs(end - found)
    print(n_steps, off.mean(), std.mean(), (off <= 1.645 * std).mean(), off.mean() / (1.645 * std.mean()))
