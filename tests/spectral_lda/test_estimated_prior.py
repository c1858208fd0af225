"""The prior that a fit estimates, and topics that gain nothing over word frequencies."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from sktensor_dp import NotEnoughDataWarning, PrivateSpectralLDA
from sktensor_dp.privacy.curator import Noisy
from sktensor_dp.spectral_topics import refinement

pytestmark = pytest.mark.usefixtures("seeded_noise")
INF = float("inf")


def documents(seed, concentration, n=4000, d=300, k=4, length=40):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(d, 0.1), size=k)
    shares = np.eye(k)[rng.integers(k, size=n)]
    if concentration > 0:
        shares = rng.dirichlet(np.full(k, concentration / k), size=n)
    return sp.csr_matrix(rng.multinomial(length, shares @ topics))


@pytest.mark.dealt
@pytest.mark.parametrize(("concentration", "low", "high"), [(0, 0, 0), (1, 0.7, 1.4), (4, 2.8, 6)])
def test_the_prior_is_estimated_without_noise(seed, concentration, low, high):
    lda = PrivateSpectralLDA(4, epsilon=INF, random_state=0).fit(documents(seed, concentration))
    assert low <= 4 * lda.doc_topic_prior_ <= high
    assert lda.topic_prior_.sum() == pytest.approx(4 * lda.doc_topic_prior_ or 1)


@pytest.mark.parametrize(("given", "used"), [(None, 0.25), (0.7, 0.7), (0, 0)])
def test_a_prior_that_is_given_is_used(given, used):
    lda = PrivateSpectralLDA(4, epsilon=INF, doc_topic_prior=given, random_state=0)
    assert lda.fit(documents(0, 1, n=500)).doc_topic_prior_ == used


def test_what_was_estimated_is_saved_and_pickled(tmp_path):
    X = documents(0, 4, n=1000)
    lda = PrivateSpectralLDA(4, epsilon=INF, random_state=0).fit(X)
    lda.save(tmp_path / "model")
    for other in (PrivateSpectralLDA.load(tmp_path / "model"), pickle.loads(pickle.dumps(lda))):
        assert other.doc_topic_prior_ == lda.doc_topic_prior_ != 0.25
        np.testing.assert_array_equal(other.transform(X[:5]), lda.transform(X[:5]))


def test_a_forecast_says_what_it_assumes():
    assert "a concentration of 1." in str(PrivateSpectralLDA(4).forecast(1000, 300))
    single = PrivateSpectralLDA(4, doc_topic_prior=0).forecast(1000, 300)
    assert "one topic each" in str(single)
    assert single.concentration == 0


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_words_take_the_budget_where_topics_gain_nothing(seed):
    rng = np.random.default_rng(seed)
    frequencies = rng.dirichlet(np.full(300, 0.3))
    off, words_alone = [], 0
    for _ in range(8):
        X = rng.multinomial(8, frequencies, size=1500)
        lda = PrivateSpectralLDA(5, epsilon=2.0, random_state=0).fit(X)
        if lda.n_components_ > 1:
            continue
        words_alone += 1
        np.testing.assert_allclose(lda.transform(X[:3]), 1.0)
        alone = PrivateSpectralLDA(1, epsilon=2.0, random_state=0).fit(X)
        off.append([np.abs(m.components_[0] - frequencies).sum() for m in (lda, alone)])
    # Noise is taken for a gain in one fit of twenty at most: five of eight are one in 60,000.
    assert words_alone >= 4
    # Both spend about two thirds of the budget on words; of one topic, too.
    ours, ones = np.median(off, axis=0)
    assert ours < 1.3 * ones


def test_a_warning_says_that_words_took_the_budget():
    X = np.random.default_rng(0).multinomial(8, np.full(300, 1 / 300), size=300)
    with pytest.warns(NotEnoughDataWarning, match="one topic was fitted, the word frequencies"):
        PrivateSpectralLDA(5, epsilon=0.01, random_state=0).fit(X)


def test_topics_that_pay_are_kept(seed):
    lda = PrivateSpectralLDA(4, epsilon=4.0, random_state=0).fit(documents(seed, 1))
    assert lda.n_components_ == 4
    asked = [row.uses for row in lda.privacy_report_.rows if row.name == "held_out_scores"]
    assert sum(asked) == 4


def test_a_wide_prior_is_not_chosen_where_documents_gain_more_than_one_may_count_for(seed):
    # Topics gain 30 nats on half of such a document, and 5 count: by these alone all
    # concentrations are alike. What one gains over another is seen.
    X = documents(seed, 1, n=3000, length=200)
    lda = PrivateSpectralLDA(4, epsilon=4.0, random_state=0).fit(X)
    assert lda.n_components_ == 4
    assert 4 * lda.doc_topic_prior_ < 2


def short_documents(seed):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(300, 0.3), size=4)
    shares = rng.dirichlet(np.full(4, 0.25), size=8000)
    return topics, sp.csr_matrix(rng.multinomial(6, shares @ topics))


def test_topics_of_short_documents_are_not_blurred_by_the_prior(seed):
    topics, X = short_documents(seed)
    lda = PrivateSpectralLDA(4, epsilon=INF, random_state=0).fit(X)
    distances = np.abs(topics[:, None] - lda.components_).sum(axis=2) / 2
    # Seeds 0 to 99: at most 0.108, median 0.094. Steps that assume the estimated concentration, as
    # those of longer documents do, leave 0.149 to 0.197 (25 seeds); word frequencies are 0.49 away.
    assert distances[linear_sum_assignment(distances)].mean() < 0.12


def concentrations_of_steps(monkeypatch):
    """What each EM step from now on takes documents to mix topics with, in turn."""
    priors, asked = [], refinement.expected_counts

    def spied(curator, topics, weights, concentration, *others):
        priors.append(concentration)
        return asked(curator, topics, weights, concentration, *others)

    monkeypatch.setattr(refinement, "expected_counts", spied)
    return priors


@pytest.mark.parametrize(("given", "assumed"), [("auto", 0.6), (1.0, 4.0)])
def test_steps_assume_less_than_is_estimated_and_what_is_given(monkeypatch, given, assumed):
    priors = concentrations_of_steps(monkeypatch)
    PrivateSpectralLDA(4, epsilon=INF, doc_topic_prior=given).fit(short_documents(0)[1])
    # Those before take each document to have one topic, from two starts. Then the first step from
    # each is compared, and the better one is kept.
    assert priors == pytest.approx([0.0] * 24 + [assumed] * (1 + (5 if given == "auto" else 12)))


@pytest.mark.parametrize(("length", "single"), [(6, True), (40, False)])
def test_with_noise_short_documents_are_taken_to_have_one_topic(monkeypatch, length, single):
    priors = concentrations_of_steps(monkeypatch)
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(300, 0.1), size=4)
    X = rng.multinomial(length, topics[rng.integers(4, size=8000)])
    lda = PrivateSpectralLDA(4, epsilon=20.0, random_state=0).fit(X)
    assert lda.n_components_ == 4
    # Of long ones too it may be found, but is not taken for granted.
    assert len(priors) == 6
    assert all(prior == 0 for prior in priors) == single


@pytest.mark.parametrize(("gain", "taken"), [(1.0, True), (-1.0, False)])
def test_without_noise_short_documents_say_whether_they_have_one_topic(monkeypatch, gain, taken):
    monkeypatch.setattr(refinement.Refinement, "_over", lambda *_: Noisy(np.array([gain]), 0.0))
    lda = PrivateSpectralLDA(4, epsilon=INF, random_state=0).fit(short_documents(0)[1])
    assert (4 * lda.doc_topic_prior_ == pytest.approx(0.4**0.5)) == taken
    np.testing.assert_allclose(lda.components_.sum(axis=1), 1.0)


@pytest.mark.parametrize("gain", [1.0, -1.0])
def test_without_noise_documents_say_whether_the_prior_is_nearer_to_the_usual(monkeypatch, gain):
    asked = []

    def over(self, fitted, other):
        asked.append((fitted.concentration, other.concentration))
        return Noisy(np.array([gain]), 0.0)

    monkeypatch.setattr(refinement.Refinement, "_over", over)
    lda = PrivateSpectralLDA(4, epsilon=INF, random_state=0).fit(documents(0, 4))
    _, (nearer, estimated) = asked  # the first compares two starts
    assert nearer == pytest.approx(estimated**0.5)
    assert 4 * lda.doc_topic_prior_ == pytest.approx(nearer if gain > 0 else estimated)


@pytest.mark.parametrize(("estimated", "asks"), [(1.19, False), (0.84, False), (1.21, True)])
def test_it_is_not_asked_of_a_prior_that_is_about_the_usual_one(monkeypatch, estimated, asks):
    asked = []

    def over(*fitted):
        asked.append(fitted)
        return Noisy(np.array([1.0]), 0.0)

    monkeypatch.setattr(refinement.Refinement, "_over", over)
    monkeypatch.setattr(refinement.PairEvidence, "concentration", lambda *_: estimated)
    lda = PrivateSpectralLDA(4, epsilon=INF, random_state=0).fit(documents(0, 4, n=500))
    assert len(asked) == 1 + asks  # the first compares two starts
    found = estimated**0.5 if asks else estimated
    assert 4 * lda.doc_topic_prior_ == pytest.approx(found)


def test_mixed_steps_without_noise_gather_momentum_that_the_last_does_without(monkeypatch):
    steps, ask = [], refinement.expected_counts

    def spied(curator, topics, *others):
        noisy = ask(curator, topics, *others)
        found = noisy.value / noisy.value.sum(axis=1, keepdims=True)
        unigram = noisy.value.sum(axis=0) / noisy.value.sum()
        steps.append((topics, refinement.smoothed(found, unigram, refinement.MIX_FINAL)))
        return noisy

    monkeypatch.setattr(refinement, "expected_counts", spied)
    lda = PrivateSpectralLDA(4, epsilon=INF, random_state=0).fit(documents(0, 1, n=1000))
    # Of one topic each: twelve, eight on two of each and four on these put together, and one that
    # mixes topics from either, the better of which is the first.
    assert [len(begun) for begun, _ in steps] == [4] * 12 + [8] * 8 + [4] * (4 + 2 + 11)
    for (_, found), (begun, _) in pairwise(steps[:12]):
        np.testing.assert_allclose(begun, found, rtol=1e-6)
    first = steps[24 + (np.abs(steps[26][0] - steps[24][1]).max() > 1e-9)]
    mixed = [first, *steps[26:]]
    for i, ((_, before), (_, found), (begun, _)) in enumerate(
        zip([mixed[0], *mixed[:-2]], mixed[:-1], mixed[1:], strict=True)
    ):
        moved = found * np.clip(found / before, 0.05, 20) ** (i / (i + 3))
        np.testing.assert_allclose(begun, moved / moved.sum(axis=1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(lda.components_, steps[-1][1], rtol=1e-6)
