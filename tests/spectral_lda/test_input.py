"""Forms of counts, odd counts, chunks, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from small_corpora import CONFIGURATIONS, INF, counts, seeded_fit, tiny

from sktensor_dp import BudgetAccountant, PrivateSpectralLDA
from sktensor_dp.privacy.curators.documents import CLIPPED_NORMS


@tiny
def test_entries_in_two_parts_are_one_count():
    X = sp.csr_matrix(counts())
    parts = np.column_stack([X.data - 1, np.ones_like(X.data)]).ravel()
    split = sp.csr_matrix((parts, np.repeat(X.indices, 2), 2 * X.indptr), X.shape)
    wanted, found = seeded_fit(X), seeded_fit(split)
    np.testing.assert_array_equal(found.components_, wanted.components_)
    np.testing.assert_array_equal(found.transform(split), wanted.transform(X))


ONE = np.eye(5, dtype=int)[np.arange(60) % 5]
DATA = {
    "ordinary": counts(),
    "no tokens": np.zeros((50, 5), dtype=int),
    "one token each": ONE,
    "two tokens each": ONE + ONE[::-1],
    "some empty": counts() * (np.arange(200) % 3 > 0)[:, None],
    "one document": counts()[:1],
    "all alike": np.tile([3, 0, 0, 0], (50, 1)),
    "one long document": np.vstack([counts(), np.full((1, 7), 10**6)]),
    "many words": sp.random(40, 400, 0.05, "csr", random_state=0).ceil(),
    "many words, no tokens": sp.csr_matrix((40, 400)),
}


def is_distribution(rows):
    return np.isfinite(rows).all() and (rows >= 0).all() and np.allclose(rows.sum(axis=-1), 1)


@tiny
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("data", DATA)
def test_whatever_the_counts_a_fit_ends_in_distributions(data, configuration):
    X = DATA[data]
    lda = PrivateSpectralLDA(2, **CONFIGURATIONS[configuration]).fit(X)
    assert is_distribution(lda.components_)
    assert is_distribution(lda.unigram_)
    assert is_distribution(lda.transform(X))
    assert lda.components_.shape == (lda.n_components_, X.shape[1])
    assert lda.topic_prior_.shape == (lda.n_components_,)
    assert (lda.topic_prior_ > 0).all()
    assert np.isfinite([lda.score(X), lda.perplexity(X)]).all()


@tiny
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_one_topic_and_one_word(configuration):
    parameters = CONFIGURATIONS[configuration]
    lda = PrivateSpectralLDA(1, **parameters).fit(counts())
    assert lda.components_.shape == (1, 7)
    assert is_distribution(lda.components_)
    np.testing.assert_allclose(lda.transform(counts()), 1)
    lda = PrivateSpectralLDA(1, **parameters).fit(counts(d=1))
    np.testing.assert_allclose(lda.components_, [[1.0]])
    assert PrivateSpectralLDA(7, **parameters).fit(counts()).n_components_ <= 7


@tiny
def test_more_topics_than_words_are_capped_with_a_warning():
    with pytest.warns(UserWarning, match="n_components=9 exceeds the 7 features; 7 topics"):
        lda = PrivateSpectralLDA(9, epsilon=100.0).fit(counts())
    assert lda.n_components_ <= 7
    assert len(lda.get_feature_names_out()) == lda.n_components_


EDGES = [
    *[("doc_topic_prior", value) for value in (5e-324, 1e-300, 1e-30, 1e10)],
    *[("clip_norm", {name: value}) for name in CLIPPED_NORMS for value in (1e-40, 1e40)],
    *[("clip_norm", dict.fromkeys(CLIPPED_NORMS, value)) for value in (1e-40, 1e40)],
]


@tiny
@pytest.mark.parametrize(("name", "value"), EDGES, ids=str)
@pytest.mark.parametrize(
    "options",
    [{"n_refinements": 2}, {"delta": 0.0}, {"perturbation": "moment_tensor"}, {"epsilon": INF}],
    ids=str,
)
def test_what_is_documented_as_allowed_is_fitted(name, value, options):
    """At the edges of the ranges numbers are of no use, and no fit that was paid for is lost."""
    lda = PrivateSpectralLDA(3, random_state=0, **{name: value, **options}).fit(counts())
    assert np.isfinite(lda.components_).all()
    assert np.isfinite(lda.transform(counts(20))).all()
    assert np.isfinite(lda.score(counts(20)))


@tiny
def test_a_prior_stays_one_with_any_number_of_topics():
    """``n_components`` times the prior is what documents are thought to hold."""
    accountant = BudgetAccountant(10.0, 1e-5)
    for n_components in (10**6, 10**30):
        lda = PrivateSpectralLDA(
            n_components, doc_topic_prior=1e10, n_refinements=1, accountant=accountant
        )
        with pytest.warns(UserWarning, match="exceeds the 7 features"):
            assert np.isfinite(lda.fit(counts()).components_).all()


def test_chunks_have_to_be_re_iterable_and_as_announced():
    X = counts(300)
    lda = PrivateSpectralLDA(2)
    with pytest.raises(TypeError, match="source must be an iterable of chunks, got a int"):
        lda.fit_chunks(5, n_samples=300, n_features=7)
    with pytest.raises(TypeError, match="source must be re-iterable"):
        lda.fit_chunks((part for part in [X]), n_samples=300, n_features=7)
    with pytest.raises(ValueError, match="300 documents in all; n_samples is 299"):
        lda.fit_chunks([X], n_samples=299, n_features=7)
    with pytest.raises(ValueError, match="7 features; n_features is 8"):
        lda.fit_chunks([X], n_samples=300, n_features=8)
    for name in ("n_samples", "n_features"):
        with pytest.raises(ValueError, match=f"{name} must be an int >= 1"):
            lda.fit_chunks([X], **{"n_samples": 300, "n_features": 7, name: 0})
