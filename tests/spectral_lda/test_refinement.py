"""EM steps: their limits and averages, and the question whether topics gain."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import gains_of, questions

from sktensor_dp import NotEnoughDataWarning, PrivateSpectralLDA
from sktensor_dp.privacy.curator import Noisy
from sktensor_dp.spectral_topics.defaults import ECHO, STEP_LIMIT
from sktensor_dp.spectral_topics.refinement import StepAverage, scales_of_words
from sktensor_dp.spectral_topics.released import FittedTopics

pytestmark = pytest.mark.usefixtures("seeded_noise")


def documents(seed, distinct):
    """Of three topics that share few words, or of one."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(300, 0.05 if distinct else 1e6), 3)
    return sp.csr_matrix(rng.multinomial(40, topics[rng.integers(3, size=3000)]).astype(float))


def sensitivities(model):
    return {row.name: row.sensitivity for row in model.privacy_report_.rows}


@pytest.mark.parametrize("epsilon", [4.0, 20.0])
def test_steps_of_topics_take_a_part_of_the_limit_on_counts(seed, epsilon):
    model = PrivateSpectralLDA(3, epsilon=epsilon, random_state=0).fit(documents(seed, True))
    told = sensitivities(model)
    assert model.n_components_ == 3
    # Rounding to the grid adds a little to either.
    assert told["expected_counts"] == pytest.approx(STEP_LIMIT * told["word_frequencies"], rel=0.01)


def test_word_frequencies_take_all_of_it(seed):
    # Of one topic, expected counts are the counts.
    with pytest.warns(NotEnoughDataWarning), gains_of(0.0):
        model = PrivateSpectralLDA(3, epsilon=0.5, random_state=0).fit(documents(seed, False))
    told = sensitivities(model)
    assert model.n_components_ == 1
    assert told["expected_counts"] == pytest.approx(told["word_frequencies"], rel=0.01)


def test_steps_are_told_apart_from_the_topics_that_they_were_given(seed):
    rng = np.random.default_rng(seed)
    truth, scales = 40 * rng.dirichlet(np.ones(60)).reshape(3, 20), rng.uniform(0.5, 2.0, 20)
    told = StepAverage(scales, np.zeros((3, 20)), 0.0, np.zeros((3, 20)))
    for rate in (1.0, 0.5, 0.25):
        given = rng.dirichlet(np.ones(60)).reshape(3, 20)
        weights = given.sum(axis=1)
        topics = FittedTopics(given / weights[:, None], weights, given.sum(axis=0), 0.1, 3)
        # Each step repeats a part of what it was given, whose mean is that of all steps.
        answer = (1 - ECHO) * truth + ECHO * 40 * given
        told = told.after(Noisy(answer / scales, 2.0), topics, rate)
    counts, sigma = told.without_echo()
    np.testing.assert_allclose(counts, truth, atol=1e-12)
    # Of three steps: rates of 3/8, 3/8 and 1/4 in the end.
    expected = 2.0 * np.sqrt(2 * 0.375**2 + 0.25**2) / (1 - ECHO)
    np.testing.assert_allclose(sigma, expected * scales)


def test_without_noise_nothing_is_taken_off_steps():
    topics = FittedTopics(np.eye(2), np.full(2, 0.5), np.full(2, 0.5), 0.0, 2)
    told = StepAverage(1.0, np.zeros((2, 2)), 0.0, np.zeros((2, 2)))
    counts = np.array([[3.0, 1.0], [0.0, 2.0]])
    found, sigma = told.after(Noisy(counts, 0.0), topics, 1.0).without_echo()
    np.testing.assert_array_equal(found, counts)
    assert sigma == 0


def four_topics(length):
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(300, 0.1), size=4)
    return rng.multinomial(length, topics[rng.integers(4, size=3000)])


def asked_of(lda, length, gain):
    """How many topics each EM step is of, and after how many steps gains are asked for."""
    with gains_of(gain), questions() as asked:
        lda.fit(four_topics(length))
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


def test_scales_leave_the_length_of_counts_and_are_within_what_a_query_takes():
    for unigram in (np.full(50, 0.02), np.eye(50)[0], np.geomspace(1, 1e-9, 100_000)):
        unigram = unigram / unigram.sum()
        scales = scales_of_words(unigram)
        # A token of each word by its frequency has a squared length of 1 on average.
        assert unigram @ scales**-2.0 == pytest.approx(1)
        assert (np.diff(scales[np.argsort(unigram)]) >= 0).all()
        assert 1e-3 < scales.min() <= 1 + 1e-9
        assert 1 - 1e-9 <= scales.max() < 1e3
