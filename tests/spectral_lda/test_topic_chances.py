"""Chances of numbers of topics are those of fits whose pairs of words decide."""

import numpy as np
import pytest

from sktensor_dp.spectral_lda.topic_chances import (
    LEAST,
    MOST,
    SeenTopics,
    least_over_half_edge,
)
from sktensor_dp.topics import defaults


@pytest.mark.parametrize("k", [1, 2, 6, 30])
@pytest.mark.parametrize("strength", [0.1, 0.8, 3.0])
def test_chances_are_those_of_topics_that_stand_out(k, strength):
    rng, n = np.random.default_rng(0), 60_000
    of_collections = defaults.STRENGTH_SPREAD * rng.normal(size=(n, 1))
    of_each = of_collections + defaults.TOPIC_SPREAD * rng.normal(size=(n, k))
    eigenvalues = strength * np.exp(of_each) * k / np.arange(1, k + 1)
    confirmed = (eigenvalues >= defaults.CONFIRMED).sum(axis=1)
    stand_out = (eigenvalues >= 1).sum(axis=1) >= min(2, k)
    found = np.where(stand_out, confirmed, 0)
    seen = SeenTopics(k, k, strength)
    for least in range(1, k + 1):
        assert seen.chance(least) == pytest.approx((found >= least).mean(), abs=0.01)
    low, high = seen.range()
    if seen.chance(1) > MOST:
        assert (found[found > 0] < low).mean() <= 1 - LEAST + 0.02
        assert (found[found > 0] > high).mean() <= MOST + 0.02
    else:
        assert (low, high) == (0, 0)


def test_chances_of_the_first_topics_take_no_less_than_of_more():
    for strength in (1e-9, 0.02, 1.0, 1e9):
        chances = [SeenTopics(40, 40, strength).chance(n) for n in range(1, 41)]
        assert chances == sorted(chances, reverse=True)
    assert SeenTopics(40, 40, 1e-9).chance(1) == pytest.approx(0, abs=1e-6)
    assert SeenTopics(40, 40, 1e9).chance(40) == pytest.approx(1, abs=1e-4)


def test_without_noise_all_are_seen_that_words_may_show():
    assert SeenTopics(5, 5, np.inf).range() == (5, 5)
    assert SeenTopics(5, 3, np.inf).range() == (3, 3)
    assert SeenTopics(5, 0, np.inf).range() == SeenTopics(5, 5, 0.0).range() == (0, 0)


@pytest.mark.parametrize("size", [50, 500])
def test_an_eigenvalue_stands_out_of_noise_from_the_least_on(size):
    rng, least = np.random.default_rng(0), least_over_half_edge(size)
    direction = np.full(size, size**-0.5)

    def largest(signal):
        half = rng.normal(size=(size, size)) / np.sqrt(2 * size)  # its symmetric sum has edge 2
        return np.linalg.eigvalsh(half + half.T + signal * np.outer(direction, direction))[-1]

    below, above = (np.mean([largest(over * least) for _ in range(10)]) for over in (0.85, 1.15))
    assert below < least + 1 / least < above
