"""Confusion of topics: which shares inference finds in documents of known shares."""

import numpy as np
import pytest

from sktensor_dp.topics.confusion import confusion
from sktensor_dp.topics.documents import drawn_documents
from sktensor_dp.topics.inference import proportions


@pytest.mark.parametrize("length", [8, pytest.param(24, marks=pytest.mark.nightly)])
def test_its_inverse_finds_the_shares_of_groups_that_have_more_of_a_topic(length, seed):
    """Topics share a background. Documents of one topic each would give errors of 0.02 or more."""
    rng, prior = np.random.default_rng(seed), np.array([0.6, 0.5, 0.4, 0.3])
    own, words = np.kron(np.eye(4), 1 / np.arange(5, 65)), 1 / np.arange(10, 250)
    topics = 0.7 * own / own.sum(axis=1, keepdims=True) + 0.3 * words / words.sum()
    inverse = np.linalg.inv(confusion(topics, prior, False, length))
    for more in np.vstack([np.zeros(4), np.eye(4)]):
        shares = rng.dirichlet(prior + more, size=20_000)
        X = drawn_documents(topics, shares, length, rng)
        found = proportions(X, topics, prior, single=False).mean(axis=0) @ inverse
        np.testing.assert_allclose(found, shares.mean(axis=0), atol=0.014)
