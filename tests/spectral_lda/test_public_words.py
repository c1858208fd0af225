"""Public word frequencies and topics, which noisy ones are shrunk towards and steps begin with."""

import math

import numpy as np
import pytest
from internals import gains_of, plan_of

from sktensor_dp import PrivateSpectralLDA, unsafe_seeded_noise
from sktensor_dp.spectral_lda.public_words import expected_frequencies, public_topics
from sktensor_dp.topics.shrinkage import joined_topics

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
]
D, K = 400, 3


def zipf():
    frequencies = 1 / np.arange(1, D + 1)
    return frequencies / frequencies.sum()


def surveys(rng, n=1500, frequencies=None):
    truth = zipf() * np.exp(0.2 * rng.standard_normal(D)) if frequencies is None else frequencies
    return rng.multinomial(10, truth / truth.sum(), n), truth / truth.sum()


def true_topics(rng):
    return rng.dirichlet(np.full(D, 0.1), K)


def texts(rng, topics, n=1500, length=30):
    return rng.multinomial(length, rng.dirichlet(np.full(K, 0.3), n) @ topics)


def seeded(X, seed, k=K, **options):
    with unsafe_seeded_noise(seed):
        return PrivateSpectralLDA(k, random_state=0, **options).fit(X)


def divergence(truth, found):
    return float(truth @ np.log(truth / found))


def distances(found, topics):
    return 0.5 * np.abs(found[:, None] - topics).sum(axis=2).min(axis=0)


@pytest.mark.parametrize("perturbation", ["whitened_tensor", "moment_tensor"])
def test_frequencies_that_are_about_right_help(seed, perturbation):
    rng = np.random.default_rng(seed)
    X, truth = surveys(rng)
    found = {}
    for name, known in (("none", None), ("known", zipf()), ("misled", rng.permutation(zipf()))):
        model = seeded(X, seed, 2, word_frequencies=known, perturbation=perturbation)
        found[name] = divergence(truth, model.unigram_)
    # Measured over seeds 0 to 99: known at most .028 and .076, and .22 and .29 of what none has;
    # public frequencies alone at most .038.
    assert found["known"] < {"whitened_tensor": 0.035, "moment_tensor": 0.095}[perturbation]
    assert found["known"] < 0.4 * found["none"]
    # What is no help is not used, but for a step or two: 1 + 1.2e-9 at most.
    assert found["misled"] <= 1.001 * found["none"]


def test_without_noise_and_without_public_frequencies_nothing_changes(seed):
    X, _ = surveys(np.random.default_rng(seed), 300)
    one, other = (
        seeded(X, 0, epsilon=math.inf, word_frequencies=known).components_
        for known in (None, zipf())
    )
    np.testing.assert_array_equal(one, other)


def test_what_many_documents_say_outweighs_what_is_known(seed):
    """A word that is ten times as frequent as elsewhere is found to be so."""
    rng = np.random.default_rng(seed)
    truth = zipf()
    truth[50] *= 10
    X, truth = surveys(rng, 20_000, truth)
    model = seeded(X, seed, 1, epsilon=4.0, word_frequencies=zipf())
    # Noise of .0005 beside .028; 4000 of 200,000 tokens have a sampling deviation of .0004.
    assert model.unigram_[50] == pytest.approx(truth[50], rel=0.15)


def test_words_without_a_frequency_get_half_of_the_least():
    found = expected_frequencies({"a": 3.0, "b": 1.0, "z": 0.0}, 4, ["a", "b", "c", "z"])
    np.testing.assert_allclose(found, np.array([3, 1, 0.5, 0.5]) / 5)
    assert expected_frequencies([1e308, 1e-308], 2, None).min() > 0
    assert expected_frequencies([5e-324, 1e-323], 2, None).sum() == pytest.approx(1)


def test_batches_are_shrunk_towards_them_too(seed):
    X, truth = surveys(np.random.default_rng(seed), 1000)
    found = []
    for known in (None, zipf()):
        model = PrivateSpectralLDA(2, word_frequencies=known)
        with unsafe_seeded_noise(seed):
            for batch in (X[:500], X[500:]):
                model.partial_fit(batch)
        found.append(divergence(truth, model.unigram_))
    # Measured over seeds 0 to 99: at most .067.
    assert found[1] < 0.2 * found[0]


# Documents and others to score, how many and how long; epsilon; the public topics of the true ones;
# and the perplexity with them over that without, at most.
HELP = {
    # Word frequencies have 124 to 166, the truth 81 to 112, and what the data alone leads to is
    # hardly better than words. Measured over seeds 0 to 11: at most .88, .78 in the middle.
    "little data": ((1500, 30), (300, 30), 1.0, lambda rng, of: 0.8 * of + 0.2 / D, 0.95),
    # At most 1.002. Steps that begin with the wrong ones end up to 9 % worse.
    "wrong": ((5000, 30), (300, 30), 10.0, lambda rng, of: of[:, rng.permutation(D)], 1.02),
    # Two words of a document say little of topics. Measured over 17 seeds: at most .88.
    "no topics seen": ((4000, 2), (2000, 4), 4.0, lambda rng, of: of, 0.95),
}


@pytest.mark.parametrize("case", HELP)
def test_public_topics_help_where_the_data_says_little_and_else_do_little_harm(case, seed):
    shape, scored, epsilon, public_of, most = HELP[case]
    rng = np.random.default_rng(seed)
    topics = true_topics(rng)
    X, others = texts(rng, topics, *shape), texts(rng, topics, *scored)
    public = public_of(rng, topics)
    alone, known = (
        seeded(X, seed, public_components=given, epsilon=epsilon).completion_perplexity(others)
        for given in (None, public)
    )
    assert known < most * alone


@pytest.mark.parametrize(("gain", "as_given"), [(-2.0, True), (-0.5, False), (2.0, False)])
def test_in_the_end_public_topics_stay_as_given_where_steps_are_clearly_worse(gain, as_given):
    rng = np.random.default_rng(0)
    topics = true_topics(rng)
    public = 0.8 * topics + 0.2 / D
    with gains_of(gain):
        X = texts(rng, topics, 5000)
        model = seeded(X, 0, public_components=public, epsilon=10.0)
    apart = distances(model.components_, public)
    # As given they are moved by a thousandth of the word frequencies; 5000 texts of the truth,
    # which is a fifth of about one from them, move them by more.
    assert (apart < 1.5e-3).all() if as_given else (apart > 0.02).all()


def test_further_topics_are_learnt(seed):
    rng = np.random.default_rng(seed)
    topics = true_topics(rng)
    X = texts(rng, topics, 5000)
    model = seeded(X, seed, public_components=topics[:2], epsilon=10.0)
    assert model.components_.shape == (K, D)
    # Measured over seeds 0 to 11: at most .05. Topics of other words are .8 apart.
    assert (distances(model.components_, topics) < 0.2).all()


def learnt_topics(*places):
    weights = np.array([0.5, 0.3, 0.2])[: len(places)]
    return (np.eye(4) * 0.97 + 0.01)[list(places)] / 1.01, weights / weights.sum()


def test_topics_learnt_stand_beside_public_ones():
    (learnt, shares), public, even = learnt_topics(0, 1, 2), np.eye(4)[[2, 0]], np.full(4, 0.25)
    topics, weights = joined_topics(learnt, shares, even, public, keep_learnt=False)
    # The second one learnt is like none of the public ones.
    np.testing.assert_array_equal(topics[2], learnt[1])
    assert weights.sum() == pytest.approx(1)
    assert len(joined_topics(learnt, shares, even, np.eye(4)[:3], keep_learnt=False)[0]) == 3
    # Steps begin with topics learnt, each in the place of the public one that it is like.
    topics, weights = joined_topics(learnt, shares, even, public, keep_learnt=True)
    np.testing.assert_array_equal(topics, learnt[[2, 0, 1]])
    np.testing.assert_allclose(weights, [0.2, 0.5, 0.3])
    # Where fewer were learnt, public ones stay.
    learnt, shares = learnt_topics(0)
    (known, _), (topics, weights) = (
        joined_topics(learnt, shares, even, np.eye(4)[[2, 0, 3]], keep_learnt=keep)
        for keep in (False, True)
    )
    np.testing.assert_array_equal(topics[[0, 2]], known[[0, 2]])
    np.testing.assert_array_equal(topics[1], learnt[0])
    assert weights.sum() == pytest.approx(1)


def test_one_topic_is_shrunk_towards_the_public_one():
    X, truth = surveys(np.random.default_rng(0), 500, zipf())
    alone, known = (
        np.abs(seeded(X, 0, 1, public_components=public).components_[0] - truth).sum()
        for public in (None, [truth.tolist()])
    )
    assert known < 0.3 * alone


def test_moments_of_few_words_are_fitted_from_the_better_start():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.ones(6), 2)
    X = rng.multinomial(20, topics[rng.integers(2, size=20_000)])
    for public in (topics, topics[:, ::-1], topics[:1]):
        found = seeded(X, 0, 2, public_components=public, doc_topic_prior=0).components_
        assert min(np.abs(found[order] - topics).max() for order in ([0, 1], [1, 0])) < 0.05


def test_hostile_numbers_are_taken_for_what_they_are():
    found = public_topics([[1e300, 1e300], [5e-324, 0.0]], 2, 2, None)
    np.testing.assert_allclose(found, [[0.5, 0.5], [1.0, 0.0]])
    assert np.isfinite(public_topics([[1.7e308] * 50], 1, 50, None)).all()


def test_questions_are_in_the_plan_and_in_the_forecast():
    model = PrivateSpectralLDA(K, public_components=np.ones((1, D)))
    for asks, which in ((True, model), (False, PrivateSpectralLDA(K))):
        names = [release.name for release in plan_of(which, 1500, D).releases.planned]
        assert ("held_out_scores" in names) == asks
        assert ("public topics" in str(which.forecast(1500, D)).lower()) == asks
