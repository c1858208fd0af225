"""Steps without noise that take each document to have one topic, from two starts."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sktensor_dp.spectral_topics.released import FittedTopics
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.splitting import merged_topics, split_topics

# From the second start, such a part of the steps is made on two of every topic, of which the most
# alike are then put together. Held-out posts, documentation and code are completed .3 to 3 % better
# so. Posts of a forum are not, and documents drawn from topics of which some are rare lose such a
# one: it is asked which are better, once one step has mixed topics.
SPLIT_PART = 2 / 3

Step = Callable[[FittedTopics], FittedTopics]


def single_steps(start: FittedTopics, n_steps: int, step: Step) -> FittedTopics:
    """The same after so many steps that take each document to have one topic."""
    fitted = replace(start, concentration=0.0)
    for _ in range(n_steps):
        fitted = step(fitted)
    return replace(fitted, concentration=start.concentration)


def better_single_steps(
    start: FittedTopics,
    n_steps: int,
    step: Step,
    gain: Callable[[FittedTopics, FittedTopics], float],
    random_state: np.random.RandomState,
) -> tuple[FittedTopics, FittedTopics]:
    """The same, or what they lead to from two of every topic, and one step of mixtures after it.

    Which of the two is decided by the `gain` that this step has over the other.
    """
    fitted, n_split = single_steps(start, n_steps, step), int(n_steps * SPLIT_PART)
    split = split_topics(start.topics, start.weights, random_state)
    halves = single_steps(_with(start, split), n_split, step)
    merged = merged_topics(halves.topics, halves.weights, len(start.topics))
    other = single_steps(_with(start, merged), n_steps - n_split, step)
    mixed, other_mixed = step(fitted), step(other)
    return (other, other_mixed) if gain(other_mixed, mixed) > 0 else (fitted, mixed)


def _with(fitted: FittedTopics, found: tuple[Floats, Floats]) -> FittedTopics:
    """The same with these topics and weights."""
    return replace(fitted, topics=found[0], weights=found[1])
