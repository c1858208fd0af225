"""Scores of documents under released topics, use with scikit-learn, and noise that hides topics."""

import math
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from small_corpora import counts

from sktensor_dp import (
    BudgetAccountant,
    DoubtfulParameterWarning,
    NotEnoughDataWarning,
    PrivateSpectralLDA,
)
from sktensor_dp.spectral_lda.fitted import FittedTopics, warnings_of_noise
from sktensor_dp.topic_page import write_topic_page
from sktensor_dp.topics.noise_edge import PairErrors

EMPTY = np.zeros((1, 5), dtype=int)


@pytest.fixture(scope="module")
def fitted(comfortable):
    # The default would find that documents have one topic each.
    lda = PrivateSpectralLDA(2, epsilon=2.0, doc_topic_prior=0.5, random_state=0)
    return lda.fit(comfortable)


def test_single_topic_answers_are_exact(comfortable):
    fitted, X = PrivateSpectralLDA(2, epsilon=2.0, doc_topic_prior=0), counts(40, 5, seed=1)
    X[0] = 0
    fitted.fit(comfortable)
    joint = np.log(fitted.topic_prior_) + X @ np.log(fitted.components_.T)
    likelihood = np.log(np.exp(joint).sum(axis=1))
    assert fitted.score(X) == pytest.approx(likelihood.sum(), rel=1e-10)
    np.testing.assert_allclose(fitted.transform(X), np.exp(joint - likelihood[:, None]), atol=1e-10)
    perplexity = np.exp(-likelihood.sum() / X.sum())
    assert fitted.perplexity(X) == pytest.approx(perplexity, rel=1e-10)
    assert fitted.topic_prior_.sum() == pytest.approx(1)


def test_score_is_the_bound_of_scikit_learn(fitted):
    """Its score adds a term of the topics alone, which differences between corpora lose."""
    k, X = fitted.n_components_, counts(30, 5, seed=2)
    reference = LatentDirichletAllocation(
        k, doc_topic_prior=0.5, max_iter=1, mean_change_tol=1e-10, max_doc_update_iter=1000
    ).fit(X)
    # Nearly certain topics: expectations of their logarithms are off by 1 / (2 strength p).
    reference.components_ = 1e7 * fitted.components_
    reference.exp_dirichlet_component_ = fitted.components_
    same = clone(fitted)
    same.__dict__.update({**vars(fitted), "topic_prior_": np.full(k, 0.5)})
    wanted = reference.score(X) - reference.score(EMPTY)
    assert same.score(X) == pytest.approx(wanted, rel=1e-3)
    assert same.score(EMPTY) == pytest.approx(0, abs=1e-9)


def test_too_little_data_warns_and_enough_does_not(comfortable):
    with pytest.warns(NotEnoughDataWarning, match="Of 2 topics asked for"):
        PrivateSpectralLDA(2, epsilon=0.01).fit(comfortable[:100])
    with pytest.warns(NotEnoughDataWarning, match="add no topic: begin a stream with a larger"):
        small = PrivateSpectralLDA(2, epsilon=0.01).partial_fit(comfortable[:100])
    small.partial_fit(comfortable[100:200])
    with pytest.warns(
        NotEnoughDataWarning, match="No batch adds a topic: the first one, of 100, found"
    ):
        small.partial_fit(comfortable[200:400])
    with pytest.warns(NotEnoughDataWarning, match="shows 1; .* would help: more documents\\."):
        PrivateSpectralLDA(2, epsilon=math.inf).fit(np.ones((100, 7), dtype=int))
    clicks, persons = np.tile(np.eye(60, dtype=int), (50, 1)), np.arange(3000) // 6
    for groups, epsilon in ((None, math.inf), (None, 4.0), (persons, 20.0)):
        with pytest.warns(NotEnoughDataWarning, match=r"fewer than [23] tokens .* of each to one"):
            PrivateSpectralLDA(3, epsilon=epsilon).fit(clicks, groups=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrivateSpectralLDA(2, epsilon=2.0, doc_topic_prior=0).fit(comfortable)


@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize("epsilon", [1e-4, 1e-2, 0.1])
@pytest.mark.parametrize("prior", [0, None, 5.0])
def test_noise_alone_is_not_taken_for_topics(seed, epsilon, prior):
    limits = {"counts": 10.0, "pairs": 9.0}
    for X in (counts(100, 50), np.zeros((100, 50))):
        lda = PrivateSpectralLDA(5, epsilon=epsilon, doc_topic_prior=prior, clip_norm=limits)
        with pytest.warns(NotEnoughDataWarning, match="the data shows [0-4] at this"):
            lda.fit(X)


@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize(
    ("asked", "width"), [pytest.param(100, 124, marks=pytest.mark.nightly), (12, 10)]
)
def test_those_who_ask_for_many_topics_get_those_there_are(seed, asked, width):
    topics = np.kron(np.eye(5), np.full(width, 1 / width))
    X = np.random.default_rng(seed).multinomial(30, np.repeat(topics, 1200, axis=0))
    with pytest.warns(NotEnoughDataWarning, match=f"Of {asked} topics .* the data shows 5"):
        model = PrivateSpectralLDA(asked, epsilon=4.0).fit(X)
    assert model.n_components_ == 5


def of_equal_topics(rng, n_topics, n_documents, length=30, width=30):
    """Documents of one topic each, of words of its own."""
    topics = np.kron(np.eye(n_topics), np.full(width, 1 / width))
    return rng.multinomial(length, topics[rng.integers(n_topics, size=n_documents)])


@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize(("asked", "epsilon"), [(1, 2.0), (3, 2.0), (3, math.inf)])
def test_more_topics_than_were_asked_for_are_said_everywhere(seed, asked, epsilon, tmp_path):
    X = of_equal_topics(np.random.default_rng(seed), 5, 5000)
    # Of 100 fits one says 6: noise and sampling pass for a topic.
    said = rf"At least [56] topics can be seen .*, and {asked} w(as|ere) asked for: some may be"
    with pytest.warns(DoubtfulParameterWarning, match=said):
        model = PrivateSpectralLDA(asked, epsilon=epsilon).fit(X)
    assert model.n_components_ == asked
    assert 5 <= model.n_components_seen_ <= 6
    model.save(tmp_path / "topics.model")
    loaded = PrivateSpectralLDA.load(tmp_path / "topics.model")
    page = write_topic_page(tmp_path / "page.html", loaded)
    for text in (str(model.privacy_report_), page.read_text(encoding="utf-8")):
        assert re.search(said, " ".join(text.split()))


@pytest.mark.nightly
@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize("epsilon", [2.0, 8.0, math.inf])
@pytest.mark.parametrize("n_topics", [1, 3])
def test_no_more_topics_are_said_than_there_are(seed, epsilon, n_topics):
    """Of 100 fits 2 did: more than three of 20 come up once in 2000 runs at 2 %."""
    rng, n_false = np.random.default_rng(seed), 0
    for _ in range(20):
        X = of_equal_topics(rng, n_topics, 1000, 15)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = PrivateSpectralLDA(n_topics, epsilon=epsilon, n_refinements=0).fit(X)
        n_false += model.n_components_seen_ > n_topics
    assert n_false <= 3


@pytest.mark.usefixtures("seeded_noise")
def test_steps_find_topics_that_noise_hides_in_pairs(seed):
    rng = np.random.default_rng(seed)
    X = rng.multinomial(60, rng.dirichlet(np.full(8, 1 / 8), 5000) @ rng.dirichlet([0.2] * 600, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        model = PrivateSpectralLDA(8, random_state=0).fit(X)
    assert model.n_components_ == 8


@pytest.mark.usefixtures("seeded_noise")
def test_topics_made_of_noise_are_hidden_and_said_to_be(seed):
    """Five topics share most words. Of 100 fits of eight none shows more than six."""
    rng = np.random.default_rng(seed)
    common = np.tile(rng.permutation(1 / np.arange(5.0, 305.0)), (5, 1))
    own = np.zeros((5, 300))
    own[np.arange(5).repeat(30), rng.permutation(300)[:150]] = np.tile(1 / np.arange(3.0, 33.0), 5)
    topics = 0.6 * common / common[0].sum() + 0.4 * own / own[0].sum()
    X = rng.multinomial(15, rng.dirichlet(np.full(5, 0.2), 10_000) @ topics)
    with pytest.warns(NotEnoughDataWarning) as told:
        model = PrivateSpectralLDA(8, epsilon=2.0).fit(X)
    assert f"Of 8 topics asked for, the data shows {model.n_components_seen_} at" in str(told[0])
    assert model.n_components_seen_ == (~model.hidden()).sum() <= 6


@pytest.mark.usefixtures("seeded_noise")
def test_topics_that_noise_hides_are_named(seed):
    rng = np.random.default_rng(seed)
    X = rng.multinomial(60, rng.dirichlet(np.full(8, 1 / 8), 1000) @ rng.dirichlet([0.2] * 600, 8))
    with pytest.warns(NotEnoughDataWarning) as told:
        model = PrivateSpectralLDA(8, epsilon=2.0, random_state=0).fit(X)
    hidden = ", ".join(map(str, np.flatnonzero(model.hidden()) + 1))
    named = re.findall(r"Noise hides topics? ([0-9, ]+) of", " ".join(str(w.message) for w in told))
    assert named == ([hidden] if hidden and model.n_components_ > 1 else [])


def test_topics_that_noise_hides_are_named_where_pairs_show_as_many_as_were_asked_for():
    topics = np.eye(3)
    found = FittedTopics(topics, np.ones(3), topics.mean(axis=0), 0.1, n_resolved=3, length=9.0)
    plan = PrivateSpectralLDA(3)._plan(9000, 3)
    (said,) = warnings_of_noise(found, np.array([False, True, False]), plan, begins_stream=True)
    assert "the data shows 2 at this epsilon; 3 were fitted. There may be no more," in str(said)
    assert "Noise hides topic 2 of 3, by falling share (hidden())" in str(said)
    assert "Later batches" not in str(said)
    assert warnings_of_noise(found, np.zeros(3, dtype=bool), plan, begins_stream=True) == ()


def n_topics_of_one(model, seed):
    X = np.random.default_rng(seed).multinomial(20, np.full(200, 1 / 200), size=20_000)
    return model.fit(X).n_components_


@pytest.mark.parametrize("epsilon", [4.0, math.inf])
@pytest.mark.parametrize(
    "model", [PrivateSpectralLDA(3), PrivateSpectralLDA(3, doc_topic_prior=0, random_state=0)]
)
def test_sampling_alone_is_not_taken_for_topics(model, epsilon, seed):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Of 3 .* asked for", NotEnoughDataWarning)
        assert n_topics_of_one(clone(model).set_params(epsilon=epsilon), seed) == 1


@pytest.mark.parametrize("diagonal", [0.0, 2.8])
@pytest.mark.parametrize(("decay", "n_topics"), [(0.0, 1), (1.0, 1), (0.0, 4)])
def test_noise_and_sampling_stay_below_their_edge(decay, n_topics, diagonal, seed):
    """Of 100 matrices 3 % at most exceeded it, with words of one frequency and by Zipf's law, and
    with topics of words of their own.
    """
    d, rng, largest, weighted = 100, np.random.default_rng(seed), [], []
    p = np.arange(1, d + 1) ** -decay
    p /= p.sum()
    errors = PairErrors((diagonal > 0) / d, diagonal / d, sampling=1.0, frequencies=p, pure=False)
    weights, weighted_edge = errors.weighted_edge(d, n_topics)
    apart = n_topics * np.kron(np.eye(n_topics), np.ones((d // n_topics, d // n_topics)))
    variances = apart * np.outer(p, p) + (diagonal > 0) / d**2
    on_diagonal = np.sqrt((diagonal / d) ** 2 + 2 * n_topics * p**2)
    for _ in range(100):
        noise = np.triu(rng.standard_normal((d, d)) * np.sqrt(variances), 1)
        noise += noise.T + np.diag(on_diagonal * rng.standard_normal(d))
        largest.append(np.linalg.eigvalsh(noise)[-1])
        weighted.append(np.linalg.eigvalsh(weights[:, None] * noise * weights)[-1])
    low, edge = errors.edges(n_topics)
    # More than ten of 100 come up once in 1000 runs at 3 %.
    assert (np.array(largest) > edge).sum() <= 10
    # Of a few frequent words it is that of many.
    assert low <= edge < (1.4 if decay else 1.15) * np.quantile(largest, 0.95)
    assert (np.array(weighted) > weighted_edge).sum() <= 10


def test_topics_of_rare_words_are_found_beside_frequent_words(seed):
    rng, base = np.random.default_rng(seed), 1 / np.arange(1, 1001)
    topics = rng.dirichlet(200 * base / base.sum(), 10)
    words = rng.dirichlet(np.full(10, 0.1), 3000) @ topics
    X = rng.multinomial(60, words / words.sum(axis=1, keepdims=True))
    with pytest.warns(NotEnoughDataWarning, match="the data shows 10"):
        PrivateSpectralLDA(14, epsilon=np.inf, n_refinements=0, random_state=0).fit(X)


def test_many_more_columns_than_show_topics_are_warned_of_before_the_charge():
    X, budget = sp.csr_matrix((6000, 2**20), dtype=int), BudgetAccountant(9.0, 1e-3)
    with pytest.raises(UserWarning, match="X has 1,048,576 columns"):
        PrivateSpectralLDA(2, epsilon=8.0, accountant=budget).fit(X)
    assert budget.entries == ()


def test_laplace_noise_alone_stays_below_its_edge(seed):
    """Of 400 matrices 2 % exceeded it, and two thirds the edge of normal noise: more than ten of
    100 come up once in 100,000 runs, and would always with that edge.
    """
    d, sigma, diagonal = 100, 0.5, np.sqrt(2.0)
    _, edge = PairErrors(sigma, diagonal, 0.0, np.zeros(d), pure=True).edges()
    rng, largest = np.random.default_rng(seed), []
    for _ in range(100):
        noise = np.triu(rng.laplace(0, sigma / np.sqrt(2), (d, d)), 1)
        np.fill_diagonal(noise, rng.laplace(0, diagonal / np.sqrt(2), d) / 2)
        largest.append(np.linalg.eigvalsh(noise + noise.T)[-1])
    assert (np.array(largest) > edge).sum() <= 10
    assert edge < 1.25 * np.quantile(largest, 0.9)
