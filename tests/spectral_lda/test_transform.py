"""Shares of topics in documents, normalised or not, and of documents without words."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp import PrivateSpectralLDA

COUNTS = np.random.default_rng(0).poisson(1.0, (300, 7))
COUNTS[0] = 0


def exact(**parameters):
    return PrivateSpectralLDA(2, epsilon=math.inf, random_state=0, **parameters).fit(COUNTS)


def test_shares_that_are_not_normalised_add_up_to_prior_and_tokens():
    """As in scikit-learn's ``LatentDirichletAllocation``."""
    model = exact(doc_topic_prior=0.5)
    gamma = model.transform(COUNTS, normalize=False)
    np.testing.assert_allclose(gamma.sum(axis=1), model.topic_prior_.sum() + COUNTS.sum(axis=1))
    np.testing.assert_allclose(gamma[0], model.topic_prior_)
    shares = gamma / gamma.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(model.transform(COUNTS), shares)
    da = pytest.importorskip("dask.array")
    lazy = model.transform(da.from_array(COUNTS, chunks=(100, 7)), normalize=False)
    np.testing.assert_allclose(lazy.compute(), gamma)


def test_probabilities_of_single_topics_are_normalised_either_way():
    model = exact(doc_topic_prior=0)
    found = model.transform(COUNTS, normalize=False)
    np.testing.assert_array_equal(found, model.transform(COUNTS))


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
@pytest.mark.parametrize("epsilon", [1.0, 20.0, math.inf])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_documents_without_words_give_topics(epsilon, convert, seed):
    """Nothing is refused for what is in the data; without noise all words are about as likely."""
    empty = convert(np.zeros((300, 7)))
    model = PrivateSpectralLDA(3, epsilon=epsilon, random_state=seed).fit(empty)
    assert model.components_.shape == (model.n_components_, 7)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    np.testing.assert_allclose(model.transform(empty).sum(axis=1), 1)
    if math.isinf(epsilon):
        np.testing.assert_allclose(model.components_, 1 / 7, rtol=0.05)
