"""Half of a document, scored by the other half."""

import math

import numpy as np
import pytest
from internals import validated_rows
from small_corpora import TOPICS, single_topic

from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.topics.inference import token_halves

pytestmark = pytest.mark.usefixtures("seeded_noise")


@pytest.mark.parametrize("prior", [0, None])
def test_completion_scores_one_half_by_the_other(comfortable, prior):
    lda = PrivateSpectralLDA(2, epsilon=2.0, doc_topic_prior=prior, random_state=0)
    lda.fit(comfortable)
    X = single_topic(50, TOPICS, 20)
    first, second = token_halves(validated_rows(lda, X), np.random.RandomState(3))
    found = lda.transform(first) @ lda.components_
    expected = math.exp(-second.multiply(np.log(found)).sum() / second.sum())
    assert lda.completion_perplexity(X, random_state=3) == pytest.approx(expected)
    assert lda.completion_perplexity(X) == lda.completion_perplexity(X)


def test_no_token_explains_itself(comfortable):
    """A model with a topic per word explains words by themselves, and completes nothing."""
    lda = PrivateSpectralLDA(2, epsilon=2.0, random_state=0).fit(comfortable)
    d = lda.n_features_in_
    noise = np.random.default_rng(0).multinomial(2, np.full(d, 1 / d), size=500)
    lda.components_, lda.topic_prior_ = 0.98 * np.eye(d) + 0.02 / d, np.full(d, 0.1)
    assert lda.completion_perplexity(noise) > d


def test_halves_are_a_partition(comfortable):
    X = validated_rows(PrivateSpectralLDA(2, random_state=0).fit(comfortable), comfortable)
    first, second = token_halves(X, np.random.RandomState(0))
    assert (first + second != X).nnz == 0
    # 400,000 coins: five deviations.
    assert abs(first.sum() / X.sum() - 0.5) < 5 * 0.5 / math.sqrt(X.sum())


def test_documents_without_a_second_half_have_perplexity_one(comfortable):
    lda = PrivateSpectralLDA(2, epsilon=2.0, random_state=0).fit(comfortable)
    assert lda.completion_perplexity(np.zeros((3, lda.n_features_in_), dtype=int)) == 1.0
