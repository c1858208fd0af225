"""EM steps: the prior that they assume, their limits and averages, and where words get them."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from internals import answering, questions

from sktensor_dp import BudgetAccountant, NotEnoughDataWarning, PrivateSpectralLDA
from sktensor_dp.cli.topic_tables import on_short
from sktensor_dp.data.counts import CountChunk, as_counts
from sktensor_dp.data.units import Units
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.spectral_lda.defaults import ECHO, STEP_LIMIT
from sktensor_dp.spectral_lda.fitted import FittedTopics
from sktensor_dp.spectral_lda.indirect_inference import Released, Step, matched_to_counts
from sktensor_dp.spectral_lda.recipe import SHORT
from sktensor_dp.spectral_lda.refinement import MEAN_FIELD, StepAverage, scales_of_words
from sktensor_dp.spectral_lda.sharpening import sharpened
from sktensor_dp.topics.defaults import MIXING
from sktensor_dp.topics.documents import drawn_documents
from sktensor_dp.topics.shrinkage import smoothed

pytestmark = pytest.mark.usefixtures("seeded_noise")
INF = float("inf")
may_warn = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


def answer_of(value, sigma):
    return Answer(value, sigma, 1.0, PrivacyCost(mu=1.0), 1)


def documents(seed, concentration, n=4000, k=4, length=40):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(300, 0.1), size=k)
    shares = np.eye(k)[rng.integers(k, size=n)]
    if concentration > 0:
        shares = rng.dirichlet(np.full(k, concentration / k), size=n)
    return sp.csr_matrix(rng.multinomial(length, shares @ topics))


def steps_of(lda, X, groups=None):
    with questions() as asked:
        lda.fit(X, groups=groups)
    return [query for query in asked if isinstance(query, ExpectedCounts)]


def concentrations(steps):
    return [0.0 if query.single else query.prior.sum() for query in steps]


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [4.0, INF])
@pytest.mark.parametrize(
    ("concentration", "low", "high"), [(0, 0, 0.2), (1, 0.5, 1.6), (4, 1.5, 6)]
)
def test_the_prior_is_estimated(seed, concentration, low, high, epsilon):
    X = documents(seed, concentration, n=20_000)
    lda = PrivateSpectralLDA(4, epsilon=epsilon, random_state=0).fit(X)
    assert low <= 4 * lda.doc_topic_prior_ <= high
    assert lda.topic_prior_.sum() == pytest.approx(4 * lda.doc_topic_prior_ or 1)
    assert not any("was assumed" in note for note in lda.privacy_report_.notes)


@may_warn
@pytest.mark.parametrize(
    ("n_components", "n_features", "assumed"), [(2, 20, 1), (2, 300, 1), (10, 300, 0)]
)
def test_the_report_says_which_prior_was_assumed(n_components, n_features, assumed):
    X = np.random.default_rng(0).multinomial(4, np.full(n_features, 1 / n_features), size=2000)
    lda = PrivateSpectralLDA(n_components, epsilon=1.0, random_state=0).fit(X)
    assert any(f"assumed to be {assumed}:" in note for note in lda.privacy_report_.notes)
    assert (lda.doc_topic_prior_ == 0) == (assumed == 0)


@may_warn
@pytest.mark.parametrize(("prior", "notes"), [("auto", (SHORT,)), (0.1, ()), (0, ())])
def test_the_report_says_where_short_documents_were_taken_to_have_one_topic(seed, prior, notes):
    X = documents(seed, 0.6, k=6, length=5)
    lda = PrivateSpectralLDA(6, epsilon=20.0, doc_topic_prior=prior, random_state=0).fit(X)
    assert tuple(note for note in lda.privacy_report_.notes if note == SHORT) == notes
    assert lda.doc_topic_prior_ == pytest.approx(0 if prior == "auto" else prior)
    assert on_short(lda) == list(notes)


@pytest.mark.parametrize(("given", "used"), [(None, 0.25), (0.7, 0.7), (0, 0)])
def test_a_prior_that_is_given_is_used_after_steps_of_one_topic(given, used):
    lda = PrivateSpectralLDA(4, epsilon=INF, doc_topic_prior=given, random_state=0)
    steps = steps_of(lda, documents(0, 1, n=500))
    assert lda.doc_topic_prior_ == used
    assert concentrations(steps) == pytest.approx([0.0] * 12 + [4 * used] * 12)


@pytest.mark.parametrize(
    ("length", "single"), [(5, True), pytest.param(40, False, marks=pytest.mark.nightly)]
)
def test_documents_of_fewer_tokens_than_topics_have_one_each(length, single):
    lda = PrivateSpectralLDA(6, epsilon=20.0, random_state=0)
    steps = steps_of(lda, documents(0, 0, n=20_000, k=6, length=length))
    # Every step is of the topics that pairs show.
    assert [len(query.topics) for query in steps] == [6] * 6
    assert (concentrations(steps) == [0.0] * 6) == (lda.doc_topic_prior_ == 0) == single
    # Intervals of shares allow for errors of topics also where each text is taken to have one.
    assert lda.mixing_covariance_.shape == (6, 6, 6)
    assert (np.einsum("jii->ij", lda.mixing_covariance_) > 0).all()


def limit_of_steps(model):
    told = {row.name: row.sensitivity for row in model.privacy_report_.rows}
    return told["expected_counts"] / told["word_frequencies"]


@pytest.mark.parametrize("epsilon", [8.0, 20.0])
def test_steps_of_topics_take_a_part_of_the_limit_on_counts(seed, epsilon):
    X = documents(seed, 0, n=3000)
    model = PrivateSpectralLDA(4, epsilon=epsilon, random_state=0).fit(X)
    assert model.n_components_ == 4
    # Rounding to the grid adds a little to either.
    assert limit_of_steps(model) == pytest.approx(STEP_LIMIT, rel=0.01)


def test_steps_of_persons_take_the_counts_of_an_average_document(seed):
    """A larger limit, that means over many documents do not reach, would only add noise."""
    X = documents(seed, 0, n=6000, length=15)
    model = PrivateSpectralLDA(4, epsilon=50.0, doc_topic_prior=0, random_state=0)
    steps = steps_of(model, X, np.arange(6000) // 3)
    first = steps[0]  # its prior are the shares that steps start from
    counts = model.document_length_ * first.prior[:, None] * first.topics
    limit = np.linalg.norm(counts / first.scales)
    assert [query.limit for query in steps] == pytest.approx([limit] * len(steps))
    assert limit < 0.9 * STEP_LIMIT * model.clip_norm_["counts"]
    # All persons have one weight: that of the limit.
    means = replace(first, limit=1e30)
    persons = (as_counts(X[row : row + 3]) for row in range(0, 150, 3))
    units = (CountChunk(own, Units(np.array([0, 3]))) for own in persons)
    assert all(np.linalg.norm(means.total(unit)) >= limit for unit in units)


def words_alone(seed, n=300):
    return np.random.default_rng(seed).multinomial(8, np.full(300, 1 / 300), size=n)


def test_one_topic_asked_for_takes_the_budget_of_all_steps():
    lda = PrivateSpectralLDA(1, epsilon=0.01, random_state=0)
    assert [len(query.topics) for query in steps_of(lda, words_alone(0))] == [1]
    (row,) = [row for row in lda.privacy_report_.rows if row.name == "expected_counts"]
    assert row.uses == 1
    assert lda.privacy_report_.epsilon == pytest.approx(0.01)
    assert limit_of_steps(lda) == pytest.approx(STEP_LIMIT, rel=0.01)


@pytest.mark.parametrize(
    ("options", "kind"),
    [({}, "gaussian"), ({"neighbours": "add_remove"}, "gaussian"), ({"delta": 0.0}, "pure")],
)
def test_where_pairs_show_one_topic_the_budget_of_steps_is_given_back(seed, options, kind):
    budget = BudgetAccountant(0.1, 1e-6)
    lda = PrivateSpectralLDA(4, epsilon=0.1, random_state=0, accountant=budget, **options)
    with pytest.warns(
        NotEnoughDataWarning, match="budget has back what EM steps that were not made"
    ):
        assert steps_of(lda, words_alone(seed)) == []
    assert lda.n_components_ == 1
    report, other = lda.privacy_report_, {"gaussian": "pure", "pure": "gaussian"}[kind]
    # What is stated does not depend on what was seen; what is left for noise of its kind does.
    assert report.epsilon == pytest.approx(report.composition.epsilon_at(report.delta))
    assert budget.total()[0] == pytest.approx(report.epsilon) == pytest.approx(0.1)
    assert any("63% of the budget" in note or "62%" in note for note in report.notes)
    assert budget.remaining(kind=other)["epsilon"] == 0
    again = PrivateSpectralLDA(
        4, **budget.remaining(kind=kind) | {"delta": lda.delta}, accountant=budget,
        neighbours=lda.neighbours,
    )  # fmt: skip
    assert 0.06 < again.epsilon < 0.1
    with pytest.warns(NotEnoughDataWarning):
        again.fit(words_alone(seed))
    assert budget.total()[0] == pytest.approx(0.1)


def test_streams_keep_what_later_batches_are_paid_by():
    X, budget = words_alone(0), BudgetAccountant(0.1, 1e-6)
    with pytest.warns(NotEnoughDataWarning):
        stream = PrivateSpectralLDA(4, epsilon=0.1, accountant=budget).partial_fit(X[:150])
    assert budget.remaining()["epsilon"] == 0
    stream.partial_fit(X[150:])  # paid by the first batch


@pytest.mark.nightly
@may_warn
def test_topics_stay_whatever_noise_a_single_step_gives_them():
    """Texts of ten words and five clear topics: given up, one would be mixed into another."""
    rng, law = np.random.default_rng(0), 1 / np.arange(2, 22) ** 0.7
    own = np.kron(np.eye(5, 7), law / law.sum())
    topics, purities = 0.7 * own + 0.3 * np.repeat([0, 0.025], [100, 40]), []
    for _ in range(6):
        X = rng.multinomial(10, rng.dirichlet(np.full(5, 0.02), size=2000) @ topics)
        lda = PrivateSpectralLDA(5, random_state=0)
        assert len({len(query.topics) for query in steps_of(lda, X)}) == 1
        of_topics = (lda.components_ @ (own > 0).T)[~lda.hidden()]
        purities += [*(of_topics.max(axis=1) / of_topics.sum(axis=1))]
    assert len(purities) > 15
    assert np.mean(np.array(purities) < 0.6) < 0.15


@may_warn
def test_what_is_given_back_follows_from_what_was_released():
    """Other data with the same answers spends, and gives back, the same."""
    spent = []
    for X in (words_alone(0), documents(1, 0, n=300)):
        budget, noise = BudgetAccountant(1.0, 1e-6), np.random.default_rng(5)

        def answer(usual, law, value, sensitivity, *more, noise=noise):
            return noise.normal(scale=sensitivity, size=np.shape(value))

        with answering(answer):
            PrivateSpectralLDA(4, accountant=budget, random_state=0).fit(X)
        spent.append([(one.release, one.uses, one.gives_back) for one in budget.entries])
    assert spent[0] == spent[1]
    assert spent[0][-1] == ("expected_counts", 6, True)


def test_averages_leave_out_the_topics_that_steps_were_given(seed):
    rng = np.random.default_rng(seed)
    truth, scales = 40 * rng.dirichlet(np.ones(60)).reshape(3, 20), rng.uniform(0.5, 2.0, 20)
    told = StepAverage(scales, np.zeros((3, 20)), 0.0, np.zeros((3, 20)))
    for rate in (1.0, 0.5, 0.25):
        given = rng.dirichlet(np.ones(60)).reshape(3, 20)
        weights = given.sum(axis=1)
        topics = FittedTopics(given / weights[:, None], weights, given.sum(axis=0), 0.1, 3, 1.0)
        # Each step repeats a part of what it was given, whose mean is that of all steps.
        answer = (1 - ECHO) * truth + ECHO * 40 * given
        query = ExpectedCounts(topics.topics, weights, True, INF)
        told = told.after(query, answer_of(answer / scales, 2.0), topics, rate)
    counts, noise = told.without_echo()
    np.testing.assert_allclose(counts, truth, atol=1e-12)
    # Of three steps: rates of 3/8, 3/8 and 1/4 in the end.
    expected = 2.0 * np.sqrt(2 * 0.375**2 + 0.25**2) / (1 - ECHO)
    np.testing.assert_allclose(noise, expected * scales)


def test_without_noise_nothing_is_taken_off_steps():
    topics = FittedTopics(np.eye(2), np.full(2, 0.5), np.full(2, 0.5), 0.0, 2, 1.0)
    told = StepAverage(1.0, np.zeros((2, 2)), 0.0, np.zeros((2, 2)))
    counts = np.array([[3.0, 1.0], [0.0, 2.0]])
    query = ExpectedCounts(np.eye(2), np.full(2, 0.5), True, INF)
    found, sigma = told.after(query, answer_of(counts, 0.0), topics, 1.0).without_echo()
    np.testing.assert_array_equal(found, counts)
    assert sigma == 0


def test_scales_leave_the_length_of_counts_and_are_within_what_a_query_takes():
    for unigram in (np.full(50, 0.02), np.eye(50)[0], np.geomspace(1, 1e-9, 100_000)):
        unigram = unigram / unigram.sum()
        scales = scales_of_words(unigram)
        # A token of each word by its frequency has a squared length of 1 on average.
        assert unigram @ scales**-2.0 == pytest.approx(1)
        assert (np.diff(scales[np.argsort(unigram)]) >= 0).all()
        assert 1e-3 < scales.min() <= 1 + 1e-9
        assert 1 - 1e-9 <= scales.max() < 1e3


@pytest.mark.parametrize("concentration", [0.0, 1.0, 4.0])
def test_topics_are_sharpened_by_as_much_as_steps_lag_behind_documents(concentration, seed):
    """Slopes on the true topics, from which samples of 4,000 documents are off by a few percent."""
    topics = np.random.default_rng(seed).dirichlet(np.full(300, 0.1), size=4)  # of `documents`
    X, base = documents(seed, concentration), topics.mean(axis=0) + 1e-9
    starts = 0.7 * topics + 0.3 * base
    prior = np.full(4, (concentration or 1) / 4)
    query = ExpectedCounts(starts, prior, concentration == 0, INF, n_iter=MEAN_FIELD)
    step = query.total(CountChunk(X.astype(float)))
    step = np.maximum(step / step.sum(axis=1, keepdims=True) - ECHO * starts, 0) / (1 - ECHO)
    lagging = FittedTopics(
        smoothed(step / step.sum(axis=1, keepdims=True), base), np.full(4, 0.25), base, 0.1, 4,
        length=40.0, concentration=concentration,
    )  # fmt: skip
    away = topics - base
    slopes = [
        ((found.topics - base) * away / base).sum() / (away**2 / base).sum()
        for found in (lagging, sharpened(lagging, starts, MEAN_FIELD))
    ]
    assert slopes[1] == pytest.approx(1, abs=0.06)
    assert (slopes[0] < 0.93) == (concentration > 0)


def test_topics_and_shares_are_moved_to_what_explains_steps(seed):
    """Of documents of uneven topics with a common background; a step from blurred topics.

    Over seeds what is left of the error is .2 of it.
    """
    rng, weights, even = np.random.default_rng(seed), np.array([0.5, 0.3, 0.2]), np.full(3, 1 / 3)
    truth = 0.7 * np.kron(np.eye(3, 4), np.full(20, 0.05)) + 0.3 * np.repeat([0, 0, 0, 0.05], 20)
    shares, base = rng.dirichlet(2 * weights, size=20_000), truth.mean(axis=0)
    documents = CountChunk(drawn_documents(truth, shares, 20, rng))
    query = ExpectedCounts(0.7 * truth + 0.3 * base, even, False, INF, n_iter=MEAN_FIELD)
    mean = query.total(documents) / 20_000
    sharp = np.maximum(1.1 * truth - 0.1 * base, 1e-5)
    sharp /= sharp.sum(axis=1, keepdims=True)
    wrong = FittedTopics(sharp, even, base, 0.1, 3, length=20.0, concentration=2.0)
    released = Released((Step(query, np.arange(3)),), mean, 1e-12, 1.0, 20_000, False)
    found = matched_to_counts(wrong, released, lambda *_: 2.0)
    off = [
        np.abs(one.weights[:, None] * one.topics - weights[:, None] * truth).sum()
        for one in (wrong, found)
    ]
    assert off[1] < 0.35 * off[0]
    # Errors are smaller than before the counts were seen.
    std = np.sqrt(found.mixing_covariance.diagonal(axis1=1, axis2=2))
    assert (std < MIXING / 3**0.5).all()
    kept = matched_to_counts(found, replace(released, variance=1.0), lambda *_: 2.0)
    np.testing.assert_allclose(kept.topics, found.topics, atol=1e-4)  # noise explains what is left
    assert matched_to_counts(found, replace(released, mean=-mean), lambda *_: 2.0) is found
