import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    NotEnoughDataWarning,
    PrivacyLeakWarning,
    PrivateCountVectorizer,
    PrivateSpectralLDA,
    unsafe_seeded_noise,
)

INF = float("inf")
# Tests of mechanics fit too little data to find topics, and a fit says so.
tiny = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


def counts(n=200, d=7, seed=0):
    return np.random.default_rng(seed).poisson(1.0, size=(n, d))


def single_topic(n, topics, length, seed=0):
    rng = np.random.default_rng(seed)
    return rng.multinomial(length, topics[rng.integers(len(topics), size=n)])


TOPICS = np.array([[0.5, 0.3, 0.1, 0.1, 0.0], [0.0, 0.1, 0.1, 0.3, 0.5]])


def seeded_fit(X, seed=0, **parameters):
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        return PrivateSpectralLDA(2, random_state=0, **parameters).fit(X)


@pytest.fixture(scope="module")
def comfortable():
    return single_topic(20_000, TOPICS, 20)


@pytest.fixture(scope="module")
def fitted(comfortable):
    return PrivateSpectralLDA(2, epsilon=2.0, random_state=0).fit(comfortable)


@pytest.fixture(scope="module")
def fitted_single(comfortable):
    return PrivateSpectralLDA(2, epsilon=2.0, doc_topic_prior=0).fit(comfortable)


# ----------------------------------------------------------------------- input


def unsorted_with_duplicates(X):
    """Each count once more, split in two, columns in descending order."""
    X = sp.csr_matrix(X)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    ones = np.ones_like(X.data)
    data = np.r_[X.data - ones, ones]
    both, columns = np.r_[rows, rows], np.r_[X.indices, X.indices]
    order = np.lexsort((-columns, both))
    indptr = np.r_[0, np.cumsum(np.bincount(both, minlength=X.shape[0]))]
    return sp.csr_matrix((data[order], columns[order], indptr), X.shape)


def with_long_indices(X):
    X = sp.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


SPARSE = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]
FORMS = {
    **{f"{name}_matrix": getattr(sp, f"{name}_matrix") for name in SPARSE},
    **{f"{name}_array": getattr(sp, f"{name}_array") for name in SPARSE},
    **{name: np.dtype(name).type for name in ("int32", "uint8", "uint64", "float32", "float64")},
    "list": lambda X: X.tolist(),
    "frame": pd.DataFrame,
    "fractions": lambda X: X + 0.9,
    "sparse fractions": lambda X: sp.csr_matrix(X * 1.05),
    "fortran": np.asfortranarray,
    "unsorted, duplicates": unsorted_with_duplicates,
    "64-bit indices": with_long_indices,
    "float32 sparse": lambda X: sp.csr_matrix(X, dtype=np.float32),
}


@tiny
@pytest.mark.filterwarnings("ignore:Constructing a DIA:scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_counts_gives_the_same_fit(form):
    X = counts()
    assert X.max() < 20, "0.05 of a count must stay below 1 for the fractions"
    if form == "frame":
        given = pd.DataFrame(X, columns=list("abcdefg"))
    elif form in ("int32", "uint8", "uint64", "float32", "float64"):
        given = X.astype(form)
    else:
        given = FORMS[form](X)
    kept = pickle.dumps(given)
    wanted, found = seeded_fit(X), seeded_fit(given)
    np.testing.assert_allclose(found.components_, wanted.components_, rtol=1e-9)
    np.testing.assert_allclose(found.transform(given), wanted.transform(X), rtol=1e-9)
    assert found.perplexity(given) == pytest.approx(wanted.perplexity(X))
    assert pickle.dumps(given) == kept, "the data was changed"


@tiny
def test_booleans_count_as_ones():
    X = counts() > 0
    np.testing.assert_array_equal(seeded_fit(X).components_, seeded_fit(X.astype(int)).components_)


CONFIGURATIONS = {
    "default": {},
    "single": {"doc_topic_prior": 0},
    "pure": {"delta": 0.0},
    "pure moment tensor": {"delta": 0.0, "perturbation": "moment_tensor"},
    "moment tensor": {"perturbation": "moment_tensor"},
    "histogram": {"perturbation": "moment_tensor", "noise_geometry": "histogram"},
    "refined": {"n_refinements": 2},
    "exact": {"epsilon": INF},
    "exact single": {"epsilon": INF, "doc_topic_prior": 0},
    "exact unrefined": {"epsilon": INF, "n_refinements": 0},
    "exact moment tensor": {"epsilon": INF, "perturbation": "moment_tensor"},
    "hardly any budget": {"epsilon": 1e-6},
    "plenty": {"epsilon": 1e4},
}
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


# ---------------------------------------------------------------------- errors

SECRET = "swordfish"
WRONG_DATA = {
    "negative": (counts() - 987654, "Negative values in data passed as X"),
    "negative sparse": (sp.csr_matrix(counts() - 987654), "Negative values"),
    "nan": (np.where(counts() > 2, np.nan, 987654), "NaN"),
    "infinite": (np.where(counts() > 2, np.inf, 987654), "infinity"),
    "strings": (np.array([[SECRET, "2"]]), "X must hold numbers"),
    "list of strings": ([["1", SECRET]], "X must hold numbers"),
    "frame of strings": (pd.DataFrame({"a": [SECRET]}), "X must hold numbers"),
    "text": ([SECRET], "X must hold numbers"),
    "complex": (counts() + 987654j, "Complex data not supported"),
    "one-dimensional": (np.full(5, 987654), "Expected 2D array, got X of shape"),
    "scalar": (987654, "Expected 2D array"),
    "three-dimensional": (np.full((2, 2, 2), 987654), "dim 3"),
    "no documents": (np.zeros((0, 5)), "0 sample"),
    "no words": (np.zeros((5, 0)), "0 feature"),
}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", WRONG_DATA)
def test_wrong_data_costs_nothing_and_is_not_quoted(kind, method):
    X, message = WRONG_DATA[kind]
    accountant = BudgetAccountant(10.0, 1e-5)
    lda = PrivateSpectralLDA(2, accountant=accountant)
    with pytest.raises(ValueError, match=message) as caught:
        getattr(lda, method)(X)
    assert SECRET not in str(caught.value)
    assert "987654" not in str(caught.value)
    assert accountant.total()[0] == 0
    assert not hasattr(lda, "components_")


@pytest.mark.parametrize("method", ["transform", "score", "perplexity"])
def test_wrong_data_is_refused_after_the_fit_too(fitted, method):
    with pytest.raises(ValueError, match="Negative values"):
        getattr(fitted, method)(-counts(d=5))
    with pytest.raises(ValueError, match="4 features"):
        getattr(fitted, method)(counts(d=4))


WRONG_PARAMETERS = [
    *[("epsilon", value) for value in (0, -1.0, float("nan"), "1", None, True)],
    *[("delta", value) for value in (1, 1.5, -1e-9, float("nan"), "0", None)],
    *[("n_components", value) for value in (0, -3, 1.5, True, "2", None)],
    *[("doc_topic_prior", value) for value in (-0.1, float("nan"), INF, "auto")],
    *[("perturbation", value) for value in ("whitener", None, 0)],
    *[("noise_geometry", value) for value in ("spherical", None)],
    *[("n_refinements", value) for value in (-1, 0.5, "many", None)],
    *[("clip_norm", value) for value in ("none", 3.0, None, {"counts": 0}, {"words": 1.0})],
    *[("clip_norm", {"pairs": value}) for value in (-1, float("nan"), INF, "1", True)],
    *[("accountant", value) for value in (1.0, "budget", object())],
    *[("random_state", value) for value in (-1, 0.5, "0", np.random.default_rng(0))],
    ("verbose", "yes"),
]


@pytest.mark.parametrize(("name", "value"), WRONG_PARAMETERS, ids=lambda part: type(part).__name__)
def test_wrong_parameters_are_named_before_anything_is_spent(name, value):
    accountant = BudgetAccountant(10.0, 1e-5)
    lda = PrivateSpectralLDA(**{"n_components": 2, "accountant": accountant, name: value})
    X = counts()
    calls = [
        lambda: lda.fit(X),
        lambda: lda.partial_fit(X),
        lambda: lda.fit_chunks([X], n_samples=200, n_features=7),
        lambda: lda.plan(200, 7),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"'{name}' parameter of PrivateSpectralLDA must be"):
            call()
    assert accountant.total()[0] == 0


def test_too_small_a_budget_is_refused_before_data_is_read():
    class Untouchable(list):
        def __iter__(self):
            if self:
                raise AssertionError("the data was read")
            return super().__iter__()

    accountant = BudgetAccountant(0.9, 1e-6)
    lda = PrivateSpectralLDA(2, epsilon=1.0, accountant=accountant)
    for fit in (lda.fit, lda.partial_fit):
        with pytest.raises(BudgetError):
            fit(counts())
    assert accountant.total()[0] == 0
    assert not hasattr(lda, "components_")

    class Chunks:
        reads = 0

        def __iter__(self):
            self.reads += 1
            return (self.fail() for _ in range(1))

        def fail(self):
            raise AssertionError("the data was read")

    with pytest.raises(BudgetError):
        lda.fit_chunks(Chunks(), n_samples=200, n_features=7)
    assert accountant.total()[0] == 0


# ------------------------------------------------------------ what topics say


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
    np.testing.assert_allclose(same.transform(X), reference.transform(X), atol=1e-2)


def test_perplexity_is_that_of_the_score(fitted):
    X = counts(30, 5, seed=3)
    assert fitted.perplexity(X) == pytest.approx(np.exp(-fitted.score(X) / X.sum()))
    assert fitted.perplexity(np.zeros((3, 5))) == 1.0
    assert is_distribution(fitted.transform(np.zeros((3, 5))))


@pytest.mark.parametrize("prior", [None, 0])
def test_topics_predict_better_than_the_unigram(comfortable, prior):
    lda = PrivateSpectralLDA(2, doc_topic_prior=prior, random_state=0).fit(comfortable)
    held_out = single_topic(2000, TOPICS, 20, seed=1)
    tokens = held_out.sum()
    unigram = np.exp(-(held_out @ np.log(lda.unigram_)).sum() / tokens)
    # Word entropies: 3.5 to 3.6 by topic, 4.4 for the mixture.
    assert lda.perplexity(held_out) < 0.95 * unigram


def test_a_document_is_transformed_alone(fitted):
    X = counts(50, 5, seed=4)
    alone = [fitted.transform(row[None])[0] for row in X]
    np.testing.assert_allclose(fitted.transform(X), alone, rtol=1e-9)


def test_top_words_are_in_order_and_named(fitted):
    words = fitted.top_words(3)
    order = np.argsort(-fitted.components_, axis=1)[:, :3]
    assert words == [[str(column) for column in row] for row in order]
    names = list("abcde")
    assert fitted.top_words(1, names) == [[names[row[0]]] for row in order]
    assert [len(row) for row in fitted.top_words(99)] == [5, 5]
    with pytest.raises(ValueError, match="feature_names must have 5 entries, got 2"):
        fitted.top_words(3, ["a", "b"])


@tiny
def test_names_of_a_frame_are_kept_and_dropped():
    frame = pd.DataFrame(counts(), columns=list("abcdefg"))
    lda = PrivateSpectralLDA(2, epsilon=10.0).fit(frame)
    assert list(lda.feature_names_in_) == list("abcdefg")
    assert all(set(row) == set("abcdefg") for row in lda.top_words(7))
    with pytest.raises(ValueError, match="feature names"):
        lda.transform(frame[list("gfedcba")])
    lda.fit_chunks([counts()], n_samples=200, n_features=7)
    assert not hasattr(lda, "feature_names_in_")


def test_pandas_output_and_names(fitted):
    lda = clone(fitted)
    lda.__dict__.update(fitted.__dict__)
    frame = lda.set_output(transform="pandas").transform(counts(10, 5))
    names = ["privatespectrallda0", "privatespectrallda1"]
    assert list(frame.columns) == names == list(fitted.get_feature_names_out())


# --------------------------------------------------------------- scikit-learn


def test_parameters_survive_clone_and_set_params():
    accountant = BudgetAccountant(3.0, 1e-5)
    parameters = {
        "n_components": 4, "epsilon": 0.5, "delta": 1e-7, "doc_topic_prior": 0.2,
        "perturbation": "moment_tensor", "noise_geometry": "histogram", "n_refinements": 1,
        "clip_norm": {"counts": 3.0}, "accountant": accountant, "random_state": 3, "verbose": 1,
    }  # fmt: skip
    copied = clone(PrivateSpectralLDA(**parameters))
    assert copied.get_params() == parameters
    assert copied.accountant is accountant
    assert copied.set_params(epsilon=2.0).epsilon == 2.0
    assert set(PrivateSpectralLDA().get_params()) == set(parameters)


def test_repr_shows_what_was_set():
    assert repr(PrivateSpectralLDA()) == "PrivateSpectralLDA()"
    assert "epsilon=0.5" in repr(PrivateSpectralLDA(epsilon=0.5))


def test_a_fitted_estimator_can_be_pickled(fitted):
    copied = pickle.loads(pickle.dumps(fitted))
    X = counts(20, 5)
    np.testing.assert_array_equal(copied.transform(X), fitted.transform(X))
    assert copied.privacy_report_ == fitted.privacy_report_


WORDS = {0: "cat dog pet vet fur", 1: "ship boat sail mast port"}


def texts(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS[i % 2].split(), size=12)) for i in range(n)]


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
    words, topics = accountant.split([0.2, 0.8])
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


@tiny
def test_cross_validation_charges_every_fold():
    accountant = BudgetAccountant(INF, 1e-6)
    scores = cross_val_score(PrivateSpectralLDA(2, accountant=accountant), counts(300), cv=3)
    assert np.isfinite(scores).all()
    spenders = [entry for entry in accountant.entries if entry.release == "pair_moments"]
    assert len(spenders) == 3


# --------------------------------------------------------------------- guarantee


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@tiny
def test_report_and_accountant_state_what_was_asked(configuration):
    accountant = BudgetAccountant(INF, CONFIGURATIONS[configuration].get("delta", 1e-6))
    parameters = {"epsilon": 1.0, **CONFIGURATIONS[configuration]}
    lda = PrivateSpectralLDA(2, accountant=accountant, **parameters).fit(counts())
    report = lda.privacy_report_
    assert report.epsilon == pytest.approx(parameters["epsilon"], rel=1e-6)
    assert accountant.total()[0] == pytest.approx(parameters["epsilon"], rel=1e-6)
    assert (report.unit, report.neighbours, report.n_units) == ("document", "replace_one", 200)
    assert not report.seeded
    if parameters.get("delta") == 0:
        assert all(row.mu == row.delta == 0 < row.epsilon for row in report.rows)
        total = sum(row.epsilon * row.uses for row in report.rows)
        assert total == pytest.approx(parameters["epsilon"])


@tiny
def test_random_state_does_not_seed_noise():
    X = counts()
    first, second = (PrivateSpectralLDA(2, random_state=0).fit(X) for _ in range(2))
    assert not np.array_equal(first.unigram_, second.unigram_)
    assert not np.allclose(first.components_, second.components_)
    assert seeded_fit(X).privacy_report_.seeded
    np.testing.assert_array_equal(seeded_fit(X).components_, seeded_fit(X).components_)
    assert not np.allclose(seeded_fit(X).components_, seeded_fit(X, seed=1).components_)


def test_without_noise_random_state_makes_fits_equal():
    X = counts()
    fits = [PrivateSpectralLDA(2, epsilon=INF, random_state=0).fit(X) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)


def test_too_little_data_warns_and_enough_does_not(comfortable):
    with pytest.warns(NotEnoughDataWarning, match="Of 2 topics asked for"):
        PrivateSpectralLDA(2, epsilon=0.01).fit(comfortable[:100])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrivateSpectralLDA(2, epsilon=2.0, doc_topic_prior=0).fit(comfortable)


@pytest.mark.parametrize("epsilon", [1e-4, 1e-2, 0.1])
@pytest.mark.parametrize("prior", [0, None, 5.0])
def test_noise_alone_is_not_taken_for_topics(seed, epsilon, prior):
    for X in (counts(100, 50), np.zeros((100, 50))):
        lda = PrivateSpectralLDA(
            5, epsilon=epsilon, doc_topic_prior=prior, clip_norm={"counts": 10.0, "pairs": 9.0}
        )
        with (
            pytest.warns(PrivacyLeakWarning),
            unsafe_seeded_noise(seed),
            pytest.warns(NotEnoughDataWarning, match="second moment shows [0-4] above"),
        ):
            lda.fit(X)


# ---------------------------------------------------------------------- chunks


@tiny
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_chunks_give_the_fit_of_the_whole(configuration):
    X = counts(300)
    chunks = [X[:100], sp.csr_matrix(X[100:101]), X[101:].astype(float)]
    whole = seeded_fit(X, **CONFIGURATIONS[configuration])
    parts = clone(whole)
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(0):
        parts.fit_chunks(chunks, n_samples=300, n_features=7)
    assert parts.clip_norm_ == whole.clip_norm_
    # Sums in another order differ by rounding, which optimisers stretch.
    np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-5)
    assert parts.privacy_report_ == whole.privacy_report_


def test_chunks_have_to_be_re_iterable_and_as_announced():
    X = counts(300)
    lda = PrivateSpectralLDA(2)
    with pytest.raises(TypeError, match="source must be re-iterable"):
        lda.fit_chunks((part for part in [X]), n_samples=300, n_features=7)
    with pytest.raises(ValueError, match="300 documents in all; n_samples is 299"):
        lda.fit_chunks([X], n_samples=299, n_features=7)
    with pytest.raises(ValueError, match="7 features; n_features is 8"):
        lda.fit_chunks([X], n_samples=300, n_features=8)
    for name in ("n_samples", "n_features"):
        with pytest.raises(ValueError, match=f"{name} must be an int >= 1"):
            lda.fit_chunks([X], **{"n_samples": 300, "n_features": 7, name: 0})


# --------------------------------------------------------------------- streams


@tiny
def test_a_stream_is_charged_once():
    accountant = BudgetAccountant(1.0, 1e-6)
    lda = PrivateSpectralLDA(2, accountant=accountant)
    for seed in range(3):
        lda.partial_fit(counts(seed=seed))
        assert accountant.total()[0] == pytest.approx(1.0)
        assert lda.privacy_report_.epsilon == pytest.approx(1.0)
    with pytest.raises(BudgetError):
        lda.fit(counts())


@tiny
@pytest.mark.parametrize("change", [{"epsilon": 5.0}, {"delta": 1e-3}, {"epsilon": 0.5}])
def test_a_stream_keeps_the_budget_it_was_charged_for(change):
    lda = PrivateSpectralLDA(2).partial_fit(counts())
    before = lda.components_
    with pytest.raises(ValueError, match="epsilon and delta must be those of the first batch"):
        lda.set_params(**change).partial_fit(counts(seed=1))
    assert lda.components_ is before
    lda.fit(counts())
    assert lda.privacy_report_.epsilon == pytest.approx(lda.epsilon)


@tiny
def test_a_stream_resumes_from_a_pickle_and_ends_with_a_fit():
    lda = PrivateSpectralLDA(2, random_state=0).partial_fit(counts())
    copied = pickle.loads(pickle.dumps(lda))
    after = []
    for estimator in (lda, copied):
        with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(0):
            after.append(estimator.partial_fit(counts(seed=1)).components_)
    np.testing.assert_array_equal(*after)
    assert [row.name for row in lda.privacy_report_.rows] == ["expected_counts"]
    lda.fit(counts())
    lda.partial_fit(counts(seed=2))
    assert "pair_moments" in {row.name for row in lda.privacy_report_.rows}


@tiny
def test_no_raw_data_stays_on_a_stream():
    marker = np.full((1, 7), 123_457)
    lda = PrivateSpectralLDA(2, epsilon=INF, clip_norm={"counts": 1.0})
    lda.partial_fit(np.vstack([counts(), marker])).partial_fit(np.vstack([counts(), marker]))
    assert np.float64(123_457).tobytes() not in pickle.dumps(lda)


@tiny
def test_a_batch_of_another_width_is_refused():
    lda = PrivateSpectralLDA(2).partial_fit(counts())
    with pytest.raises(ValueError, match="6 features"):
        lda.partial_fit(counts(d=6))
