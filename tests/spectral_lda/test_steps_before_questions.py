"""Whether topics pay is asked after some EM steps, of which words lose nothing."""

import numpy as np
import pytest
from internals import gains_of, questions

from sktensor_dp import NotEnoughDataWarning, PrivateSpectralLDA
from sktensor_dp.privacy.curator import Noisy
from sktensor_dp.spectral_topics.refinement import StepAverage
from sktensor_dp.spectral_topics.released import FittedTopics


def documents(length):
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(300, 0.1), size=4)
    return rng.multinomial(length, topics[rng.integers(4, size=3000)])


def asked_of(lda, length, gain):
    """How many topics each EM step is of, and after how many steps gains are asked for."""
    with gains_of(gain), questions() as asked:
        lda.fit(documents(length))
    steps = [len(query.topics) for name, query in asked if name == "expected_counts"]
    names = [name for name, _ in asked if name in ("expected_counts", "held_out_scores")]
    return steps, [place for place, name in enumerate(names) if name == "held_out_scores"]


@pytest.mark.parametrize("length", [6, 40])
def test_words_take_what_is_left_after_the_first_steps(length):
    lda = PrivateSpectralLDA(4, epsilon=20.0, random_state=0)
    with pytest.warns(NotEnoughDataWarning, match="one topic was fitted, the word frequencies"):
        found = asked_of(lda, length, 1.9)
    assert found == ([4] * 2 + [1], [2])
    assert lda.n_components_ == 1


@pytest.mark.parametrize(("n_refinements", "expected"), [(1, [1]), (2, [1]), (3, [4, 1])])
def test_of_few_steps_fewer_come_before_the_question(n_refinements, expected):
    lda = PrivateSpectralLDA(4, epsilon=20.0, n_refinements=n_refinements, random_state=0)
    with pytest.warns(NotEnoughDataWarning):
        assert asked_of(lda, 40, -1.0)[0] == expected


def test_topics_go_on_where_they_gain():
    lda = PrivateSpectralLDA(4, epsilon=20.0, random_state=0)
    assert asked_of(lda, 40, 2.1) == ([4] * 6, [2])
    assert lda.n_components_ == 4


def test_steps_tell_of_words_whatever_the_topics_were(seed):
    rng = np.random.default_rng(seed)
    words, scales = rng.dirichlet(np.ones(20)), rng.uniform(0.5, 2.0, 20)
    topics = FittedTopics(np.full((3, 20), 0.05), np.full(3, 1 / 3), words, 0.1, 3)
    told = StepAverage(scales, np.zeros((3, 20)), 0.0, np.zeros((3, 20)))
    for rate in (1.0, 0.5):
        odds = rng.dirichlet(np.ones(3), size=20).T
        told = told.after(Noisy(40 * odds * words / scales, 2.0), topics, rate)
    found, sigma = told.words()
    np.testing.assert_allclose(found, words)
    # The noise of three topics, of two steps that count alike.
    np.testing.assert_allclose(sigma, scales * 2.0 * np.sqrt(3 / 2) / 40)
