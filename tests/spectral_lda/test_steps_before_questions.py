"""Whether topics pay is asked after some EM steps, of which words lose nothing."""

import numpy as np
import pytest

from sktensor_dp import NotEnoughDataWarning, PrivateSpectralLDA
from sktensor_dp.privacy.curator import Noisy
from sktensor_dp.spectral_topics import refinement
from sktensor_dp.spectral_topics.refinement import StepAverage
from sktensor_dp.spectral_topics.released import FittedTopics


def documents(length):
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(300, 0.1), size=4)
    return rng.multinomial(length, topics[rng.integers(4, size=3000)])


def said(monkeypatch, gain):
    """Answer what topics gain, and list of how many topics each EM step is."""
    steps, asked = [], []
    ask = refinement.expected_counts
    alone = refinement.DocumentCurator.repeated_counts

    def spied(curator, topics, *others):
        steps.append(len(topics))
        return ask(curator, topics, *others)

    def spied_alone(self, topic, *others):
        again = alone(self, topic, *others)

        def one():
            steps.append(1)
            return again()

        return one

    def gained(*_):
        asked.append(len(steps))
        return Noisy(np.array([gain]), 1.0)

    monkeypatch.setattr(refinement, "expected_counts", spied)
    monkeypatch.setattr(refinement.DocumentCurator, "repeated_counts", spied_alone)
    monkeypatch.setattr(refinement.DocumentCurator, "completion_gain", gained)
    return steps, asked


@pytest.mark.parametrize("length", [6, 40])
def test_words_take_what_is_left_after_the_first_steps(monkeypatch, length):
    steps, asked = said(monkeypatch, 1.9)
    with pytest.warns(NotEnoughDataWarning, match="one topic was fitted, the word frequencies"):
        lda = PrivateSpectralLDA(4, epsilon=20.0, random_state=0).fit(documents(length))
    assert steps == [4] * 2 + [1] * 4
    assert asked == [2]
    assert lda.n_components_ == 1


@pytest.mark.parametrize(
    ("n_refinements", "expected"), [(1, [1]), (2, [1] * 2), (3, [4] + [1] * 2)]
)
def test_of_few_steps_fewer_come_before_the_question(monkeypatch, n_refinements, expected):
    steps, _ = said(monkeypatch, -1.0)
    lda = PrivateSpectralLDA(4, epsilon=20.0, n_refinements=n_refinements, random_state=0)
    with pytest.warns(NotEnoughDataWarning):
        lda.fit(documents(40))
    assert steps == expected


def test_topics_go_on_where_they_gain(monkeypatch):
    steps, asked = said(monkeypatch, 2.1)
    lda = PrivateSpectralLDA(4, epsilon=20.0, random_state=0).fit(documents(40))
    assert lda.n_components_ == 4
    assert steps == [4] * 6
    assert asked == [2]


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
