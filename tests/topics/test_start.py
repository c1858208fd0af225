"""Topics to start from: rotated eigenvectors, and steps on second moments."""

import numpy as np
import pytest

from sktensor_dp.topics.start import topics_of_pairs, varimax


def matched(found, truth):
    order = np.abs(found.T @ truth).argmax(axis=0)
    return found[:, order], order


def test_rotated_simple_structure_is_recovered_with_signs(seed):
    rng = np.random.default_rng(seed)
    # Each word loads on one column only, and columns skew positively.
    truth = np.zeros((60, 4))
    truth[np.arange(60), np.arange(60) % 4] = rng.gamma(2.0, size=60)
    turned = truth @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
    found, order = matched(varimax(turned), truth)
    assert sorted(order) == list(range(4))
    # At simple structure the criterion is at its maximum; the stopping rule leaves 1e-6.
    np.testing.assert_allclose(found, truth, atol=1e-4 * truth.max())
    # What it was given is nowhere near.
    assert np.abs(matched(turned, truth)[0] - truth).max() > 0.1 * truth.max()


def test_one_column_keeps_its_values_and_zeros_stay_zero():
    column = np.array([[-1.0], [-3.0], [0.5]])
    np.testing.assert_allclose(varimax(column), -column)
    assert not varimax(np.zeros((6, 3))).any()


def moment(seed, d=300, k=4):
    rng = np.random.default_rng(seed)
    base = 1 / np.arange(3.0, d + 3)
    topics = rng.dirichlet(40 * base / base.sum(), k)
    weights = rng.dirichlet(np.full(k, 20.0))
    return rng, topics, weights, topics.T @ (weights[:, None] * topics)


def test_topics_of_an_exact_moment_stay_what_they_are(seed):
    _, topics, weights, M2 = moment(seed)
    found = topics_of_pairs(topics, weights, M2.__matmul__, weights @ topics, 0.0)
    # A word keeps a thousandth of its frequency in every topic, which others lose.
    moved = len(topics) * 1e-3 * (topics + weights @ topics)
    assert (np.abs(found - topics) <= moved).all()


@pytest.mark.parametrize("total", [1.0, 0.6])
def test_they_come_closer_than_eigenvectors_leave_them(seed, total):
    rng, topics, weights, M2 = moment(seed)
    mean, deviations = weights @ topics, np.sqrt(weights)[:, None] * (topics - weights @ topics)
    smallest = np.linalg.eigvalsh(deviations @ deviations.T)[1]
    noise = rng.normal(size=M2.shape)
    # The edge of the noise is a half of the weakest direction of topics.
    sigma = 0.25 * smallest / len(mean) ** 0.5
    noisy = total**2 * (M2 + sigma * (np.triu(noise) + np.triu(noise, 1).T))
    # As well as eigenvectors tell: the topics, in the space that these span.
    vectors = np.linalg.eigh(noisy)[1][:, -len(topics) :]
    guess = np.maximum(topics @ vectors @ vectors.T, 1e-300)
    guess /= guess.sum(axis=1, keepdims=True)
    found = topics_of_pairs(guess, weights, noisy.__matmul__, total * mean, total**2 * sigma)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found > 0).all()
    errors = [np.abs(each - topics).sum(axis=1).mean() for each in (found, guess)]
    assert errors[0] < 0.75 * errors[1], errors


def test_noise_alone_leaves_the_frequencies(seed):
    rng, topics, weights, M2 = moment(seed)
    noise = rng.normal(size=M2.shape)
    found = topics_of_pairs(
        topics, weights, (M2 + noise + noise.T).__matmul__, weights @ topics, 2**0.5
    )
    assert np.abs(found - weights @ topics).sum(axis=1).max() < 0.1


@pytest.mark.parametrize("sigma", [0.0, 1e-9, 1e200])
def test_alike_topics_and_any_noise_give_distributions(sigma):
    mean = np.full(6, 1 / 6)
    topics = np.tile(mean, (3, 1))
    topics[0] = np.eye(6)[2]
    for start in (topics, topics[1:], topics[:1]):
        weights = np.full(len(start), 1 / len(start))
        found = topics_of_pairs(start, weights, lambda V: sigma * V, mean, sigma)
        np.testing.assert_allclose(found.sum(axis=1), 1)
