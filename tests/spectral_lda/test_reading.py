"""What fitted topics say: words, intervals, tables, shares of documents, and items recommended."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from internals import validated_rows
from small_corpora import TOPICS, counts, seeded_fit, single_topic

from benchmarks import topic_intervals
from sktensor_dp import PrivateGaussianMixture, PrivateSpectralLDA
from sktensor_dp.plotting import MixtureDisplay, TopicsDisplay
from sktensor_dp.topic_page import write_topic_page
from sktensor_dp.topics.documents import drawn_documents
from sktensor_dp.topics.inference import token_halves

NAMES = [f"word{column}" for column in range(TOPICS.shape[1])]


@pytest.fixture(scope="module")
def model(comfortable):
    return seeded_fit(comfortable, doc_topic_prior=0)


@pytest.fixture(scope="module")
def exact(comfortable):
    return seeded_fit(comfortable, doc_topic_prior=0, epsilon=math.inf)


def altered(model, **state):
    other = PrivateSpectralLDA(**model.get_params())
    other.__dict__.update(vars(model))
    other.__dict__.update(state)
    return other


def test_words_are_ranked_by_probability_unless_asked(model):
    order = np.argsort(-model.components_, axis=1, kind="stable")[:, :3]
    assert model.top_words(3, NAMES) == [[NAMES[word] for word in row] for row in order]
    assert model.top_words(3) == [[str(word) for word in row] for row in order]
    assert [len(row) for row in model.top_words(99)] == [5, 5]
    with pytest.raises(ValueError, match="feature_names must have 5 entries, got 2"):
        model.top_words(3, ["a", "b"])
    assert model.top_words(3, NAMES, relevance=1) == model.top_words(3, NAMES)


def test_names_of_other_columns_are_refused_wherever_names_are_given(model, tmp_path):
    named = altered(model, feature_names_in_=np.array(NAMES, dtype=object))
    mixture = PrivateGaussianMixture(1, data_norm=3.0, epsilon=math.inf)
    mixture.fit(pd.DataFrame(np.random.default_rng(0).normal(size=(300, 5)), columns=NAMES))
    takers = [
        lambda names: named.top_words(1, names),
        lambda names: named.topic_table(names),
        named.to_pyldavis,
        lambda names: named.recommend(None, feature_names=names),
        lambda names: write_topic_page(tmp_path / "topics.html", named, names),
        lambda names: TopicsDisplay.from_estimator(named, names),
        mixture.groups_table,
        lambda names: MixtureDisplay.from_estimator(mixture, names),
    ]
    wrong = {
        "must have 5 entries, got 6": [*NAMES, "more"],
        "got 'word4' for column 0, and it is column 4": NAMES[::-1],
        "got 'word0' for column 1, and it is column 0": ["a", "word0", "b", "c", "d"],
    }
    for take in takers:
        for said, names in wrong.items():
            with pytest.raises(ValueError, match=said):
                take(names)
        take([f"title of {name}" for name in NAMES])
        take(None)


def test_words_of_all_topics_step_back_where_lift_counts(model):
    topics = np.array([[0.6, 0.4, 0.0, 0.0], [0.6, 0.0, 0.4, 0.0]])
    state = {"components_": topics, "unigram_": topics.mean(axis=0) + 1e-9, "n_features_in_": 4}
    spoken = altered(model, components_std_=np.full((2, 4), 0.01), **state)
    names = ["said", "ship", "tax", "rare"]
    assert [row[0] for row in spoken.top_words(1, names)] == ["said", "said"]
    assert [row[0] for row in spoken.top_words(1, names, relevance=0.6)] == ["ship", "tax"]


def test_words_that_set_a_topic_apart_are_more_likely_there_whatever_the_noise(model):
    topics = np.array([[0.45, 0.5, 0.05], [0.44, 0.55, 0.01]])
    state = {"components_": topics, "unigram_": np.array([0.5, 0.4999, 0.0001])}
    state |= {"n_features_in_": 3, "topic_prior_": np.ones(2)}
    names = ["said", "ship", "rare"]
    for std, apart in (
        (0.001, [["rare"], ["ship", "rare"]]), (0.024, [["rare"], ["ship"]]), (0.03, [[], []]),
        (np.array([[0.02], [0.03]]), [["rare"], []]),
    ):  # fmt: skip
        noisy = altered(model, components_std_=np.broadcast_to(std, (2, 3)), **state)
        for relevance in (0.0, 0.3, 0.6):
            found = noisy.top_words(3, names, relevance=relevance)
            assert [sorted(row) for row in found] == [sorted(row) for row in apart]
        assert [len(row) for row in noisy.top_words(3, names)] == [3 * bool(row) for row in apart]
        assert noisy.hidden().tolist() == [not row for row in apart]


@pytest.mark.parametrize("epsilon", [1e9, math.inf])
@pytest.mark.parametrize("n_refinements", ["auto", 4])
def test_words_that_no_document_has_set_no_topic_apart(comfortable, epsilon, n_refinements):
    X = np.pad(comfortable, [(0, 0), (0, 3)])
    model = seeded_fit(X, doc_topic_prior=0, epsilon=epsilon, n_refinements=n_refinements)
    listed = {int(word) for row in model.top_words(8, relevance=0.0) for word in row}
    assert listed <= set(range(comfortable.shape[1]))
    assert (model.components_ > 1e-12).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        *(({"relevance": value}, "relevance must be a number from 0 to 1")
          for value in (-0.1, 1.1, "much", True, math.nan)),
        # A negative one would leave out the last words without a word of it.
        *(({"n_words": value}, "n_words must be an int >= 1")
          for value in (0, -1, 2.5, "3", None, True)),
    ],
)  # fmt: skip
def test_wrong_numbers_are_named(model, wrong, message):
    for ask in (model.top_words, model.topic_table):
        with pytest.raises(ValueError, match=message):
            ask(**wrong)
    assert model.top_words(np.int64(2), NAMES, relevance=np.float32(1)) == model.top_words(2, NAMES)


def test_table_lists_topics_by_share_with_what_is_known_of_them(model):
    table = model.topic_table(NAMES, n_words=2)
    shares = model.topic_prior_ / model.topic_prior_.sum()
    assert table.index.tolist() == [1 + place for place in range(len(TOPICS))]
    assert table["share"].is_monotonic_decreasing
    assert np.allclose(shares[table["component"]], table["share"])
    words = model.top_words(2, NAMES)
    assert table["words"].tolist() == [" ".join(words[row]) for row in table["component"]]
    assert ((table["uncertainty"] > 0) & (table["uncertainty"] < 0.2)).all()
    assert (table["coherence"] < 0).all()
    later = altered(model, coherence_=None)  # as after later batches of a stream
    assert later.topic_table(NAMES)["coherence"].isna().all()
    assert not table["hidden"].any()
    with pd.option_context("display.max_columns", 0, "display.width", 80):  # as in a terminal
        assert all(words[row][0] in str(table) for row in table["component"])


def test_coherence_is_that_of_pairs(exact, comfortable):
    X, lengths = comfortable, comfortable.sum(axis=1)
    n_pairs = lengths * (lengths - 1)
    pairs = ((X.T / n_pairs) @ X - np.diag((X.T / n_pairs).sum(axis=1))) / len(X)
    own = (X / lengths[:, None]).mean(axis=0)
    for topic, found in zip(exact.components_, exact.coherence_, strict=True):
        top = np.argsort(-topic, kind="stable")[:10]
        logs = [
            math.log(max(pairs[top[i], top[j]], 1e-12) / max(own[top[j]], 1e-12))
            for i in range(len(top))
            for j in range(i)
        ]
        assert found == pytest.approx(np.mean(logs), rel=1e-6)


def test_intervals_hold_estimates_and_grow_with_their_level(model):
    narrow, wide = model.components_interval(0.5), model.components_interval(0.99)
    assert (wide[0] <= narrow[0]).all()
    assert (narrow[1] <= wide[1]).all()
    assert (narrow[0] <= model.components_).all()
    assert (model.components_ <= narrow[1]).all()
    zero = model.components_interval(0)
    assert np.array_equal(*zero)
    assert np.array_equal(zero[0], model.components_)


@pytest.mark.usefixtures("seeded_noise")
def test_intervals_of_words_hold_though_topics_took_words_from_each_other(seed):
    rng = np.random.default_rng(seed)
    topics = 0.8 * rng.dirichlet(np.full(300, 0.1), 4) + 0.2 / 300
    X = drawn_documents(topics, rng.dirichlet(np.ones(4), 5000), np.full(5000, 60), rng)
    lda = PrivateSpectralLDA(4, epsilon=20.0, random_state=0).fit(X)
    truth = topics[np.abs(lda.components_[:, None] - topics).sum(axis=2).argmin(axis=1)]
    low, high = lda.components_interval()
    above = lda.components_ > 2 * lda.components_std_
    assert ((low <= truth) & (truth <= high))[above].mean() > 0.86
    narrow = altered(lda, mixing_covariance_=None).components_interval()
    assert (low <= narrow[0]).all()
    assert (narrow[1] <= high).all()


@pytest.mark.parametrize(("mixing", "rows", "said"), [
    (None, ["expected_counts"], "of noise alone"), (0.01, ["expected_counts"], "releases tell"),
    (0.01, ["pairs"], "fewer hold than stated"),
])  # fmt: skip
def test_the_page_says_which_errors_intervals_of_words_count(model, mixing, rows, said):
    covariance = None if mixing is None else np.tile(mixing * np.eye(2), (2, 1, 1))
    report = SimpleNamespace(rows=[SimpleNamespace(name=name) for name in rows])
    shown = altered(model, mixing_covariance_=covariance, privacy_report_=report)
    assert shown._intervals_count.endswith(said)


def test_without_noise_there_are_no_deviations(exact):
    assert not exact.components_std_.any()
    np.testing.assert_array_equal(exact.components_interval()[0], exact.components_)


@pytest.mark.nightly
@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize("name", list(topic_intervals.SHAPES)[1:5])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_intervals_hold_what_a_step_without_noise_makes(name, epsilon, seed):
    """One fit: words move together, so that coverage varies by about .07 from fit to fit.

    The benchmark says that its mean over fits is between .82 and 1.
    """
    shape = topic_intervals.SHAPES[name]
    counts = topic_intervals.corpus(shape, seed)
    found = topic_intervals.fitted(shape, counts, epsilon)
    words = topic_intervals.deviations(found, counts)
    assert topic_intervals.held(words) > 0.6
    # Intervals that hold everything say nothing: an eighth as wide, they hold clearly less.
    assert topic_intervals.held(8 * words) < 0.8 * topic_intervals.held(words)
    assert words.size >= 20


@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize("asked", [6, 9])
def test_a_fit_says_how_many_topics_there_are(asked, seed):
    truth = np.kron(np.eye(4), np.full(10, 0.1))
    rng = np.random.default_rng(seed)
    X = rng.multinomial(20, truth[rng.integers(4, size=30_000)])
    # An eigenvalue of noise is above its expected edge in three of a hundred fits.
    with pytest.warns(match="the data shows [45]"):
        PrivateSpectralLDA(asked, doc_topic_prior=0, random_state=0).fit(X)


def test_pyldavis_gets_a_document_of_each_topic(model):
    given = model.to_pyldavis(NAMES)
    shares = given["doc_lengths"] @ given["doc_topic_dists"] / given["doc_lengths"].sum()
    np.testing.assert_allclose(shares, model.topic_prior_ / model.topic_prior_.sum())
    np.testing.assert_allclose(
        given["doc_lengths"] @ given["topic_term_dists"], given["term_frequency"]
    )
    assert given["vocab"] == NAMES


COUNTS = np.random.default_rng(0).poisson(1.0, (300, 7))
COUNTS[0] = 0


def test_shares_that_are_not_normalised_add_up_to_prior_and_tokens():
    # Each document has either half of the words: two topics.
    X = COUNTS * np.repeat(np.eye(2, dtype=int)[np.arange(len(COUNTS)) % 2], [3, 4], axis=1)
    model = seeded_fit(X, epsilon=math.inf, doc_topic_prior=0.5)
    assert model.n_components_ == 2
    gamma = model.transform(COUNTS, normalize=False)
    np.testing.assert_allclose(gamma.sum(axis=1), model.topic_prior_.sum() + COUNTS.sum(axis=1))
    np.testing.assert_allclose(gamma[0], model.topic_prior_)
    shares = gamma / gamma.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(model.transform(COUNTS), shares)
    da = pytest.importorskip("dask.array")
    lazy = model.transform(da.from_array(COUNTS, chunks=(100, 7)), normalize=False)
    np.testing.assert_allclose(lazy.compute(), gamma)


def test_probabilities_of_single_topics_are_normalised_either_way(exact, comfortable):
    found = exact.transform(comfortable[:99], normalize=False)
    np.testing.assert_array_equal(found, exact.transform(comfortable[:99]))


@pytest.mark.parametrize("prior", [0, None])
def test_completion_scores_one_half_by_the_other(comfortable, prior):
    lda = seeded_fit(comfortable, epsilon=2.0, doc_topic_prior=prior)
    X = single_topic(50, TOPICS, 20)
    first, second = token_halves(validated_rows(lda, X), np.random.RandomState(3))
    found = lda.transform(first) @ lda.components_
    expected = math.exp(-second.multiply(np.log(found)).sum() / second.sum())
    assert lda.completion_perplexity(X, random_state=3) == pytest.approx(expected)
    assert lda.completion_perplexity(X) == lda.completion_perplexity(X)
    assert lda.completion_perplexity(np.zeros_like(X)) == 1.0


def test_no_token_explains_itself(model):
    """A model with a topic per word explains words by themselves, and completes nothing."""
    d = model.n_features_in_
    noise = np.random.default_rng(0).multinomial(2, np.full(d, 1 / d), size=500)
    topics, prior = 0.98 * np.eye(d) + 0.02 / d, np.full(d, 0.1)
    lda = altered(model, components_=topics, topic_prior_=prior, doc_topic_prior_=0.1)
    assert lda.completion_perplexity(noise) > d


def test_halves_are_a_partition(model, comfortable):
    X = validated_rows(model, comfortable)
    first, second = token_halves(X, np.random.RandomState(0))
    assert (first + second != X).nnz == 0
    # 400,000 coins: five deviations.
    assert abs(first.sum() / X.sum() - 0.5) < 5 * 0.5 / math.sqrt(X.sum())


def test_recommended_are_the_most_probable_of_the_unseen():
    X = counts(300, 20, seed=1) * np.repeat(np.eye(2, dtype=int)[np.arange(300) % 2], 10, axis=1)
    model = PrivateSpectralLDA(2, epsilon=math.inf, random_state=0).fit(X)
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
    frame = pytest.importorskip("pandas").DataFrame(X, columns=names)
    by_name = PrivateSpectralLDA(2, epsilon=math.inf, random_state=0).fit(frame)
    assert by_name.recommend(frame, 6).rows.tolist() == named.tolist()
    (anybody,) = by_name.recommend(None, 6).rows.tolist()
    assert anybody == [names[i] for i in np.argsort(-by_name.unigram_, kind="stable")[:6]]
    for wrong, message in (({"n": 0}, "n must"), ({"feature_names": ["a"]}, "20 entries")):
        with pytest.raises(ValueError, match=message):
            model.recommend(X, **wrong)
