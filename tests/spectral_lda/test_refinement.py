"""EM steps: their limits and averages, and the question whether topics gain."""

import numpy as np
import pytest
from internals import questions

from sktensor_dp import NotEnoughDataWarning, PrivateSpectralLDA
from sktensor_dp.privacy.curator import Noisy
from sktensor_dp.spectral_topics.defaults import ECHO, STEP_LIMIT
from sktensor_dp.spectral_topics.refinement import StepAverage, scales_of_words
from sktensor_dp.spectral_topics.released import FittedTopics

pytestmark = pytest.mark.usefixtures("seeded_noise")


def four_topics(length, seed=0):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(300, 0.1), size=4)
    return rng.multinomial(length, topics[rng.integers(4, size=3000)])


def limit_of_steps(model):
    """Limit on expected counts over that on counts."""
    told = {row.name: row.sensitivity for row in model.privacy_report_.rows}
    return told["expected_counts"] / told["word_frequencies"]


@pytest.mark.parametrize("epsilon", [8.0, 20.0])
def test_steps_of_topics_take_a_part_of_the_limit_on_counts(seed, epsilon):
    model = PrivateSpectralLDA(4, epsilon=epsilon, random_state=0).fit(four_topics(40, seed))
    assert model.n_components_ == 4
    # Rounding to the grid adds a little to either.
    assert limit_of_steps(model) == pytest.approx(STEP_LIMIT, rel=0.01)


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


def steps_of(lda, X):
    """Topics of each EM step."""
    with questions() as asked:
        lda.fit(X)
    return [len(query.topics) for name, query in asked if name == "expected_counts"]


def test_words_take_the_budget_of_all_steps_where_pairs_show_one_topic():
    X = np.random.default_rng(0).multinomial(8, np.full(300, 1 / 300), size=300)
    lda = PrivateSpectralLDA(4, epsilon=0.01, random_state=0)
    with pytest.warns(NotEnoughDataWarning, match="one topic was fitted, the word frequencies"):
        assert steps_of(lda, X) == [1]
    assert lda.n_components_ == 1
    (row,) = [row for row in lda.privacy_report_.rows if row.name == "expected_counts"]
    assert row.uses == 1
    assert lda.privacy_report_.epsilon == pytest.approx(0.01)
    # Of one topic, expected counts are the counts: they have all of the limit.
    assert limit_of_steps(lda) == pytest.approx(1, rel=0.01)


def test_every_step_is_of_the_topics_that_pairs_show():
    lda = PrivateSpectralLDA(4, epsilon=20.0, random_state=0)
    assert steps_of(lda, four_topics(40)) == [4] * 6


def test_scales_leave_the_length_of_counts_and_are_within_what_a_query_takes():
    for unigram in (np.full(50, 0.02), np.eye(50)[0], np.geomspace(1, 1e-9, 100_000)):
        unigram = unigram / unigram.sum()
        scales = scales_of_words(unigram)
        # A token of each word by its frequency has a squared length of 1 on average.
        assert unigram @ scales**-2.0 == pytest.approx(1)
        assert (np.diff(scales[np.argsort(unigram)]) >= 0).all()
        assert 1e-3 < scales.min() <= 1 + 1e-9
        assert 1 - 1e-9 <= scales.max() < 1e3
