"""Items that topics make likely for people who have not clicked them."""

import numpy as np
import pytest
import scipy.sparse as sp
from small_corpora import counts

from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.metrics import recall_at_k

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning"),
]


def test_recommended_are_the_most_probable_of_the_unseen():
    X = counts(300, 20, seed=1)
    model = PrivateSpectralLDA(3, epsilon=float("inf"), random_state=0).fit(X)
    probable = model.transform(X) @ model.components_
    for exclude in (True, False):
        found = model.recommend(sp.csr_matrix(X), 6, exclude_seen=exclude)
        left = np.where((X > 0) & exclude, -np.inf, probable)
        expected = -np.sort(-left, axis=1)[:, :6]
        np.testing.assert_array_equal(found.values, np.where(expected < 0, np.nan, expected))
        there = found.rows >= 0
        assert (there == (expected >= 0)).all()
        people = np.nonzero(there)[0]
        assert not (exclude and X[people, found.rows[there]].any())
    names = [f"item {i}" for i in range(20)]
    named = model.recommend(X, 6, feature_names=names).rows
    numbers = model.recommend(X, 6).rows
    assert [[names[i] if i >= 0 else None for i in row] for row in numbers] == named.tolist()


def test_wrong_requests_are_named():
    model = PrivateSpectralLDA(2, epsilon=float("inf")).fit(counts(300, 20, seed=1))
    with pytest.raises(ValueError, match="n must"):
        model.recommend(np.ones((1, 20)), 0)
    with pytest.raises(ValueError, match="20 features"):
        model.recommend(np.ones((1, 20)), 2, feature_names=["a"])


def test_private_topics_beat_popularity(seed):
    """Three kinds of people, items equally popular: what is released tells them apart."""
    rng = np.random.default_rng(seed)
    kinds = np.repeat(np.eye(3) * 4 + 0.5, 10, axis=1)
    X = rng.poisson(0.25 * kinds[rng.integers(3, size=4000)])
    held = rng.binomial(X, 0.25)
    model = PrivateSpectralLDA(3, epsilon=5.0, random_state=0).fit(X - held)
    # Of 30 items, 10 are of a kind: popularity finds a fifth of what is relevant among the five
    # best, who knows the kind about .4; a hundred seeds had .26 or more against .19 or less.
    wanted, seen = (held > 0) & (held == X), held < X
    topics = np.where(seen, -np.inf, model.transform(X - held) @ model.components_)
    popular = np.where(seen, -np.inf, np.tile((X - held).sum(axis=0), (4000, 1)))
    private, public = (recall_at_k(wanted, scores, k=5) for scores in (topics, popular))
    assert private > 1.2 * public
