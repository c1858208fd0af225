"""Two starts of the steps without noise, and which of them is taken."""

from dataclasses import replace

import numpy as np
import pytest

from sktensor_dp.spectral_topics.first_steps import better_single_steps, single_steps
from sktensor_dp.spectral_topics.released import FittedTopics
from sktensor_dp.topics.splitting import merged_topics, split_topics

TOPICS, WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(9), size=3), np.full(3, 1 / 3)
START = FittedTopics(TOPICS, WEIGHTS, WEIGHTS @ TOPICS, 0.0, 3, concentration=2.0)


class Steps:
    """Steps that change nothing but their numbers, which they count."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, float]] = []

    def __call__(self, fitted: FittedTopics) -> FittedTopics:
        self.asked.append((len(fitted.topics), fitted.concentration))
        return replace(fitted, n_resolved=fitted.n_resolved + 1)


def test_documents_have_one_topic_in_the_steps_and_no_longer():
    step = Steps()
    fitted = single_steps(START, 5, step)
    assert step.asked == [(3, 0.0)] * 5
    assert fitted.n_resolved == 8
    assert fitted.concentration == 2.0


@pytest.mark.parametrize(("gain", "second"), [(0.1, True), (0.0, False), (-0.1, False)])
def test_the_start_that_gains_is_taken(gain, second):
    step, compared = Steps(), []

    def asked(fitted, other):
        compared.append((fitted, other))
        return gain

    found, mixed = better_single_steps(START, 12, step, asked, np.random.RandomState(7))
    single = [(3, 0.0)] * 12 + [(6, 0.0)] * 8 + [(3, 0.0)] * 4
    assert step.asked == [*single, (3, 2.0), (3, 2.0)]
    [(split, alone)] = compared
    np.testing.assert_array_equal(alone.topics, TOPICS)
    merged = merged_topics(*split_topics(TOPICS, WEIGHTS, np.random.RandomState(7)), 3)
    np.testing.assert_array_equal(split.topics, merged[0])
    np.testing.assert_array_equal(found.topics, merged[0] if second else TOPICS)
    assert mixed is (split if second else alone)
    assert mixed.n_resolved == found.n_resolved + 1 == START.n_resolved + (5 if second else 13)
