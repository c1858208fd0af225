"""Scores of documents under released topics, and use with scikit-learn."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from small_corpora import INF, counts, tiny

from sktensor_dp import BudgetAccountant, BudgetError, PrivateCountVectorizer, PrivateSpectralLDA


@pytest.fixture(scope="module")
def fitted(comfortable):
    # The default would find that documents have one topic each.
    lda = PrivateSpectralLDA(2, epsilon=2.0, doc_topic_prior=0.5, random_state=0)
    return lda.fit(comfortable)


@pytest.fixture(scope="module")
def fitted_single(comfortable):
    return PrivateSpectralLDA(2, epsilon=2.0, doc_topic_prior=0).fit(comfortable)


def test_single_topic_answers_are_exact(fitted_single):
    X = counts(40, 5, seed=1)
    X[0] = 0
    joint = np.log(fitted_single.topic_prior_) + X @ np.log(fitted_single.components_.T)
    likelihood = np.log(np.exp(joint).sum(axis=1))
    assert fitted_single.score(X) == pytest.approx(likelihood.sum(), rel=1e-10)
    posterior = np.exp(joint - likelihood[:, None])
    np.testing.assert_allclose(fitted_single.transform(X), posterior, atol=1e-10)
    perplexity = np.exp(-likelihood.sum() / X.sum())
    assert fitted_single.perplexity(X) == pytest.approx(perplexity, rel=1e-10)
    assert fitted_single.topic_prior_.sum() == pytest.approx(1)


def test_score_is_the_bound_of_scikit_learn(fitted):
    """Its score adds a term of the topics alone, which differences between corpora lose."""
    k, (X, empty) = fitted.n_components_, (counts(30, 5, seed=2), np.zeros((1, 5), dtype=int))
    reference = LatentDirichletAllocation(
        k, doc_topic_prior=0.5, max_iter=1, mean_change_tol=1e-10, max_doc_update_iter=1000
    ).fit(X)
    # Nearly certain topics: expectations of their logarithms are off by 1 / (2 strength p).
    strength = 1e7
    reference.components_ = strength * fitted.components_
    reference.exp_dirichlet_component_ = fitted.components_
    same = clone(fitted)
    same.__dict__.update(fitted.__dict__)
    same.topic_prior_ = np.full(k, 0.5)
    wanted = reference.score(X) - reference.score(empty)
    assert same.score(X) == pytest.approx(wanted, rel=1e-3)
    assert same.score(empty) == pytest.approx(0, abs=1e-9)
    # A document without words has the shares of the prior.
    np.testing.assert_allclose(same.transform(empty), 1 / k)


def test_perplexity_is_that_of_the_score(fitted):
    X = counts(30, 5, seed=3)
    assert fitted.perplexity(X) == pytest.approx(np.exp(-fitted.score(X) / X.sum()))
    assert fitted.perplexity(np.zeros((3, 5))) == 1.0
    # Nothing is known of an empty document but the prior.
    prior = fitted.topic_prior_ / fitted.topic_prior_.sum()
    np.testing.assert_allclose(fitted.transform(np.zeros((3, 5))), np.tile(prior, (3, 1)))


WORDS = {0: "cat dog pet vet fur", 1: "ship boat sail mast port"}


def texts(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS[i % 2].split(), size=12)) for i in range(n)]


@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize("vectorizer", [CountVectorizer, PrivateCountVectorizer])
def test_in_a_pipeline(vectorizer):
    pipeline = make_pipeline(
        vectorizer(), PrivateSpectralLDA(2, epsilon=3.0, doc_topic_prior=0, random_state=0)
    )
    shares = pipeline.fit_transform(texts())
    assert shares.shape == (3000, 2)
    # Documents alternate between the two topics, which share no word.
    first = shares[::2].mean(axis=0)
    assert abs(first[0] - shares[1::2].mean(axis=0)[0]) > 0.9
    names = pipeline[0].get_feature_names_out()
    tops = pipeline[-1].top_words(5, names)
    assert {frozenset(row) for row in tops} == {frozenset(v.split()) for v in WORDS.values()}


def test_one_budget_for_vocabulary_and_topics():
    accountant = BudgetAccountant(2.0, 1e-6)
    words, topics = accountant.split([0.2, 0.8], thresholds=1)
    pipeline = make_pipeline(
        PrivateCountVectorizer(**words, accountant=accountant, max_words_per_document=10),
        PrivateSpectralLDA(2, **topics, accountant=accountant, random_state=0),
    )
    pipeline.fit(texts())
    assert accountant.total() == (pytest.approx(2.0, rel=1e-6), 1e-6)
    with pytest.raises(BudgetError):
        pipeline.fit(texts())


@tiny
def test_a_grid_search_charges_every_fit():
    accountant = BudgetAccountant(INF, 1e-6)
    search = GridSearchCV(
        PrivateSpectralLDA(accountant=accountant, epsilon=1.0),
        {"n_components": [1, 2, 3]},
        cv=2,
        error_score="raise",
    ).fit(counts(300))
    frequencies = [entry for entry in accountant.entries if entry.release == "word_frequencies"]
    assert len(frequencies) == 3 * 2 + 1
    # Gaussian releases of seven fits: mu^2 adds up, so epsilon is above 1 and below 7.
    assert 2.0 < accountant.total()[0] < 7.0
    assert search.best_estimator_.accountant is accountant

    small = BudgetAccountant(1.5, 1e-6)
    search = GridSearchCV(
        PrivateSpectralLDA(accountant=small), {"n_components": [1, 2, 3]}, cv=2, error_score="raise"
    )
    with pytest.raises(BudgetError):
        search.fit(counts(300))
    assert 1.0 <= small.total()[0] <= 1.5
