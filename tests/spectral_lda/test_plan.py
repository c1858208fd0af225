"""Plans of topics spend the budget exactly, and forecasts are about right."""

import itertools
import math

import numpy as np
import pytest

from sktensor_dp import PrivateCountVectorizer, PrivateSpectralLDA
from sktensor_dp.queries.clips import Clip, CountNorm
from sktensor_dp.queries.count_moments import WordFrequencies
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.spectral_lda.plan import OFFSET, pair_norm, plan_topics

SIZES = (50, 20_000, 10**6)
CONFIGURATIONS = list(itertools.product(
    [1, 30, 2000, 50_000], [0.1, 1.0, math.inf], [0.0, 1e-6],
    ["whitened_tensor", "moment_tensor"], [None, 0, 3],
))  # fmt: skip


@pytest.mark.parametrize("n", SIZES)
def test_a_plan_spends_exactly_the_budget(n):
    for configuration in CONFIGURATIONS:
        spends_exactly_the_budget(n, *configuration)


def spends_exactly_the_budget(n, d, epsilon, delta, perturbation, n_refinements):
    plan = plan_topics(
        n, d, 10, epsilon=epsilon, delta=delta, perturbation=perturbation,
        n_refinements=n_refinements, limits={},
    )  # fmt: skip
    if math.isfinite(epsilon):
        assert plan.releases.cost.epsilon_at(delta) == pytest.approx(epsilon, rel=1e-6)
    uses = {release.name: release.uses for release in plan.releases.planned}
    assert uses.get("expected_counts", 0) == plan.n_refinements
    assert (plan.triples is None) or uses[plan.triples] == 1
    assert plan.triples is not None or plan.n_refinements > 0
    assert 1 <= plan.n_components <= min(10, d)
    assert min(OFFSET, d) <= plan.n_words <= d
    assert plan.all_words == (plan.n_words == d)
    assert 0 < plan.clip_quantile <= 1


# Pure noise on pairs is bounded by the number of tokens, which has a histogram already.
@pytest.mark.parametrize(
    ("n_limits", "delta", "histograms"), [(0, 1e-6, 3), (1, 1e-6, 2), (3, 1e-6, 0), (0, 0.0, 2)]
)
def test_each_clip_without_a_public_limit_has_a_histogram(n_limits, delta, histograms):
    limits = {"counts": 10.0, "pairs": 5.0, "triples": 50.0}
    plan = plan_topics(
        10_000, 100, 5, epsilon=1.0, delta=delta, perturbation="whitened_tensor",
        n_refinements=None, limits=dict(list(limits.items())[:n_limits]),
    )  # fmt: skip
    uses = {release.name: release.uses for release in plan.releases.planned}
    assert uses.get("norm_histogram", 0) == histograms
    assert plan.releases.cost.epsilon_at(delta) == pytest.approx(1.0)


def test_forecast_says_itself_and_what_it_assumes():
    forecast = PrivateSpectralLDA(10).forecast(50_000, 2000)
    text = str(forecast)
    assert all(release.name in text for release in forecast.releases)
    assert f"{forecast.n_samples_needed:,}" in text
    assert f": {forecast.verdict} for texts;" in text
    assert "about 100 tokens each (document_length= says otherwise; with groups=" in text
    assert "a concentration of 0.83." in text
    # Pairs of all words, of which there are few, are those of documents that have triples.
    for length, n_words, cures in ((1, 60, True), (2, 60, True), (3, 60, False), (1, 2000, True),
                                   (2, 2000, False)):  # fmt: skip
        short = PrivateSpectralLDA(3, epsilon=4.0).forecast(10**6, n_words, document_length=length)
        assert (short.verdict == "too few") is cures
        assert (": too few for texts; no number would be enough." in str(short)) is cures
        assert ("add up those of each to one." in str(short)) is cures
    assert "one topic each" in str(PrivateSpectralLDA(4, doc_topic_prior=0).forecast(1000, 300))
    sizes = (10, 1500, 10_000, 10**8)
    forecasts = [PrivateSpectralLDA(10).forecast(size, 2000) for size in sizes]
    verdicts = ["too few", "likely too few", "may be enough", "enough"]
    assert [one.verdict for one in forecasts] == verdicts
    assert [one.enough for one in forecasts] == [False] * 3 + [True]
    assert [one.n_likely for one in forecasts] == [(0, 0), (2, 9), (5, 10), (10, 10)]
    assert PrivateSpectralLDA(1).forecast(10**6, 2000).n_likely == (1, 1)
    said = [one.likely for one in forecasts]
    assert said[0] == "Likely to be seen: none of 10 topics."
    of_fits = f"none (in {forecasts[1].p_none:.0%} of fits), or else 2 to 9 of 10 topics."
    assert said[1] == f"Likely to be seen: {of_fits}"
    assert said[2] == "Likely to be seen: 5 to 10 of 10 topics."
    assert said[2] in str(forecasts[2])
    assert said[3] == "Likely to be seen: 10 of 10 topics."
    assert "half of all fits see 8 or more of 10 topics from about" in text
    # Words that a vocabulary does not keep show nothing, and a topic has three at least.
    lda = PrivateSpectralLDA(10, epsilon=4.0)
    kept = [lda.forecast(20_000, 2000, n_kept=n_words) for n_words in (20, 40, 300)]
    assert [one.n_likely for one in kept] == [(5, 6), (6, 10), (8, 10)]
    assert [one.verdict for one in kept] == ["too few", "may be enough", "enough"]
    assert [one.few_words for one in kept] == [True, False, False]
    assert "so few words hold fewer topics" in str(kept[0])
    assert "documents so short" not in str(kept[0]).lower()


def test_forecasts_say_what_they_would_be_if_documents_were_short():
    lda = PrivateSpectralLDA(5, epsilon=1.0)
    said = lda.forecast(20_000, 2000)
    short = lda.forecast(20_000, 2000, document_length=10)
    for mean in (np.float64(10.0), 9.6):
        assert str(lda.forecast(20_000, 2000, document_length=mean)) == str(short)
    for wrong in (0.4, "long", math.nan):
        with pytest.raises(ValueError, match="document_length must be a number >= 1"):
            lda.forecast(20_000, 2000, document_length=wrong)
        with pytest.raises(ValueError, match="document_length must be a number >= 1"):
            PrivateCountVectorizer().forecast(20_000, document_length=wrong)
    assert (said.verdict, short.verdict) == ("enough", "may be enough")
    assert "Of documents of about 10 tokens: may be enough." in str(said)
    assert "Of documents" not in str(short)  # a tenth of these would be no document


def test_without_noise_everything_is_enough():
    forecast = PrivateSpectralLDA(10, epsilon=math.inf).forecast(100, 500)
    assert forecast.enough
    assert all(release.ratio == math.inf for release in forecast.releases)
    # Sampling is left: of few short documents there is no telling.
    assert not PrivateSpectralLDA(epsilon=math.inf).forecast(100, 500, document_length=5).enough
    assert str(forecast)


@pytest.mark.parametrize("epsilon", [1.0, 3.3])
def test_the_number_of_documents_needed_does_not_depend_on_the_number_asked_about(epsilon):
    lda = PrivateSpectralLDA(6, epsilon=epsilon, delta=1e-6)
    asked = 500, 3000, 6000, 50_000  # all moments are fitted jointly from some number on
    (needed,) = {lda.forecast(n, 153, document_length=12).n_samples_needed for n in asked}
    fewer, as_many = (lda.forecast(n, 153, document_length=12) for n in (needed - 1, needed))
    assert fewer.p_none > as_many.p_none
    assert as_many.n_samples == needed


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_forecast_number_of_documents_is_about_right(seed, seeded_noise):
    k, words, length = 5, 60, 20
    lda = PrivateSpectralLDA(k, epsilon=1.0, doc_topic_prior=0, random_state=0)
    needed = lda.forecast(5000, k * words, document_length=length).n_samples_needed
    # The situation of the forecast: equally likely topics, of common words and of their own, whose
    # moment has the eigenvalue that it assumes.
    said = lda.forecast(needed, k * words, document_length=length)
    signal = next(row.signal for row in said.releases if row.name == "pair_moments")
    own = math.sqrt(signal * k * words)
    topics = own * np.kron(np.eye(k), np.full(words, 1 / words)) + (1 - own) / (k * words)
    found = {}
    for factor in (1 / 3, 6):
        rng = np.random.default_rng(seed)
        lda.fit(rng.multinomial(length, topics[np.arange(int(factor * needed)) % k]))
        true_topic = np.argsort(-lda.components_, axis=1)[:, :words] // words
        purity = [np.bincount(row).max() / words for row in true_topic]
        found[factor] = lda.n_components_, np.mean(purity)
    # Topics of even strength stand out at once or not at all; all words of a topic at random have a
    # purity of .3 at most, and with words in order it is 1.
    assert found[1 / 3][0] < k
    assert found[6] == (k, pytest.approx(1.0, abs=0.2))


@pytest.mark.parametrize("order", [1, 2])
def test_what_a_class_bounds_is_what_its_query_is_released_with(order):
    clip = Clip(CountNorm(order), 3.0)
    query = WordFrequencies(clip)
    bound = query.l1_sensitivity if order == 1 else query.l2_sensitivity
    assert bound == WordFrequencies.sensitivity_of(3.0, order)
    leaves = query.l1_contribution if order == 1 else query.l2_contribution
    assert leaves == WordFrequencies.sensitivity_of(3.0, order, "add_remove")
    counts = ExpectedCounts(np.full((2, 4), 0.25), np.ones(2), False, 3.0, order)
    bound = counts.l1_sensitivity if order == 1 else counts.l2_sensitivity
    assert bound == ExpectedCounts.sensitivity_of(3.0, order)


@pytest.mark.parametrize(
    ("changed", "single"),
    [
        ({}, 12), ({"n_refinements": 2}, 1), ({"n_refinements": 6}, 3), ({"epsilon": 1e6}, 0),
        ({"n_features": 256}, 0), ({"perturbation": "moment_tensor", "n_refinements": 15}, 0),
    ],
)  # fmt: skip
def test_the_first_steps_without_noise_are_of_documents_of_one_topic(changed, single):
    usual = {
        "n_samples": 1000, "n_features": 257, "n_components": 5, "epsilon": math.inf,
        "delta": 1e-6, "perturbation": "whitened_tensor", "n_refinements": None, "limits": {},
    }  # fmt: skip
    assert plan_topics(**{**usual, **changed}).n_single == single


@pytest.mark.parametrize(("n_samples", "length"), [(8000, 6), (8000, 60), (400_000, 30)])
def test_pairs_of_released_words_are_as_long_as_is_forecast(n_samples, length):
    """Nine of ten documents have shorter ones; all pairs of different words would be longer."""
    words = 1 / (np.arange(2000) + 50.0)
    words /= words.sum()
    plan = plan_topics(
        n_samples, 2000, 10, epsilon=2.0, delta=1e-6, perturbation="whitened_tensor",
        n_refinements=None, limits={},
    )  # fmt: skip
    found = pair_norm(plan, 2000, length, 1 / float(words @ words), 0.0)
    counts = np.random.default_rng(0).multinomial(length, words, 4000)[:, : plan.n_words]
    squares, fourths = (counts**2).sum(axis=1), (counts**4).sum(axis=1)
    repeated = ((counts * (counts - 1)) ** 2).sum(axis=1)
    norms = np.sqrt(2.0 * (squares**2 - fourths) + repeated) / (length * (length - 1))
    quantile = 0.9 if plan.n_words < 2000 else 0.5
    assert found == pytest.approx(np.quantile(norms, quantile), rel=0.2)
