"""Odd counts and parameters at the edges of their ranges: whatever is allowed is fitted."""

import numpy as np
import pytest
import scipy.sparse as sp
from small_corpora import INF, counts, tiny

from sktensor_dp import BudgetAccountant, PrivateSpectralLDA
from sktensor_dp.spectral_lda.clips import CLIPPED_NORMS

pytestmark = tiny


ONE = np.eye(5, dtype=int)[np.arange(60) % 5]
DATA = {
    "ordinary": counts(),
    "no tokens": np.zeros((50, 5), dtype=int),
    "one token each": ONE,
    "two tokens each": ONE + ONE[::-1],
    "some empty": counts() * (np.arange(200) % 3 > 0)[:, None],
    "one document": counts()[:1],
    "one word": counts(d=1),
    "all alike": np.tile([3, 0, 0, 0], (50, 1)),
    "one long document": np.vstack([counts(), np.full((1, 7), 10**6)]),
    "many words": sp.random(40, 400, 0.05, "csr", random_state=0).ceil(),
    "many words, no tokens": sp.csr_matrix((40, 400)),
}
# Of noise, whatever the data are, a model of any answers is a property of all estimators.
EXACT = {}, {"doc_topic_prior": 0}, {"n_refinements": 0}, {"perturbation": "moment_tensor"}
MANY_TOPICS = pytest.mark.filterwarnings("ignore:n_components=. exceeds:UserWarning")


def is_distribution(rows):
    return np.isfinite(rows).all() and (rows >= 0).all() and np.allclose(rows.sum(axis=-1), 1)


@MANY_TOPICS
@pytest.mark.parametrize("options", EXACT, ids=str)
@pytest.mark.parametrize(
    ("data", "asked"), [*((data, 2) for data in DATA), ("ordinary", 1), ("ordinary", 9)]
)
def test_whatever_the_counts_a_fit_without_noise_ends_in_distributions(data, asked, options):
    X = DATA[data]
    lda = PrivateSpectralLDA(asked, epsilon=INF, **options).fit(X)
    assert is_distribution(lda.components_)
    assert is_distribution(lda.unigram_)
    assert is_distribution(lda.transform(X))
    assert lda.components_.shape == (lda.n_components_, X.shape[1])
    assert lda.n_components_ <= min(asked, X.shape[1])
    assert lda.topic_prior_.shape == (lda.n_components_,)
    assert (lda.topic_prior_ > 0).all()
    assert np.isfinite([lda.score(X), lda.perplexity(X)]).all()


EDGES = [
    *[("doc_topic_prior", value) for value in (5e-324, 1e-300, 1e-30, 1e10)],
    *[("clip_norm", {name: value}) for name in CLIPPED_NORMS for value in (1e-40, 1e40)],
    *[("clip_norm", dict.fromkeys(CLIPPED_NORMS, value)) for value in (1e-40, 1e40)],
]


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


def test_a_prior_stays_one_with_any_number_of_topics():
    """``n_components`` times the prior is what documents are thought to hold."""
    accountant = BudgetAccountant(10.0, 1e-5)
    for n_components in (10**6, 10**30):
        lda = PrivateSpectralLDA(
            n_components, doc_topic_prior=1e10, n_refinements=1, accountant=accountant
        )
        with pytest.warns(UserWarning, match="exceeds the 7 features; 7 topics"):
            assert np.isfinite(lda.fit(counts()).components_).all()
