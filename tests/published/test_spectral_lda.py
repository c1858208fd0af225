"""The four configurations: moments, sensitivities and noise as printed, and what they recover."""

import math
from functools import partial

import numpy as np
import pytest
from plain_moments import TOPICS, WEIGHTS, exact_corpus, hockey_stick, u_statistics

from sktensor_dp.data.counts import CountChunk, as_counts
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.published import agn, avn, dp_spectral_lda, spectral_lda
from sktensor_dp.published.spectral_lda import (
    CorpusMoments,
    PrintedSensitivities,
    printed_sigma,
    private_lower_bound,
)

# That configurations 2 to 4 warn is tested with the claims.
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.UnsoundClaimWarning")

CONFIGURATIONS = [1, 2, 3, 4]


def sorted_topics(found):
    order = np.argsort(-found.topics[:, 0])
    return found.topics[order], found.weights[order]


@pytest.mark.parametrize("alpha0", [0.0, 0.7, 3.0])
def test_moments_are_those_over_different_documents(alpha0, seed):
    rng = np.random.default_rng([seed, 1])
    X = rng.poisson(1.2, (9, 5)) + 3 * np.eye(9, 5) + np.eye(9, 5, -4)
    X[X.sum(axis=1) < 3] = 1
    M2, M3 = u_statistics(X, alpha0)
    moments = CorpusMoments(CountChunk(as_counts(X)), alpha0)
    Q = np.linalg.qr(rng.standard_normal((5, 3)))[0]
    np.testing.assert_allclose(moments.pairs(), M2, atol=1e-14)
    projected = np.einsum("abc,ai,bj,ck->ijk", M3, Q, Q, Q)
    np.testing.assert_allclose(moments.triples(Q), projected, atol=1e-14)


def test_short_documents_add_nothing_and_count():
    X = np.array([[3.0, 1, 2], [1, 1, 4], [2, 2, 1], [1, 1, 0]])
    Q = np.eye(3)
    whole = CorpusMoments(CountChunk(as_counts(X)), 0.0)
    without = CorpusMoments(CountChunk(as_counts(X[:3])), 0.0)
    np.testing.assert_allclose(whole.pairs(), without.pairs() * 3 / 4, atol=1e-15)
    np.testing.assert_allclose(whole.triples(Q), without.triples(Q) * 3 / 4, atol=1e-15)


def test_printed_sensitivities_are_those_of_the_print():
    n, alpha0, k = 1000, 2.0, 3
    printed = PrintedSensitivities(n, alpha0, k)
    delta2 = 2 / n + alpha0 / (alpha0 + 1) * 4 / n
    delta3 = 2 / n + 4 * alpha0 / (alpha0 + 2) / n
    delta3 += 12 * alpha0**2 / ((alpha0 + 1) * (alpha0 + 2)) * (n - 1) / (n * (n - 2))
    assert printed.pairs == pytest.approx(delta2)
    assert printed.triples == pytest.approx(delta3)
    sigma, gap, top, largest = 0.1, 0.05, 4.0, 0.3
    lemma = math.sqrt(2 * k) * delta2 / (sigma * math.sqrt(sigma - delta2))
    assert printed.whitener(sigma) == pytest.approx(lemma)
    norm = 1 + 6 * alpha0 / (alpha0 + 2) * n / (n - 1)
    norm += 6 * alpha0**2 / ((alpha0 + 1) * (alpha0 + 2)) * n**3 / (n * (n - 1) * (n - 2))
    moved = norm * (2 * k) ** 1.5 * delta2**3 / (sigma**3 * (sigma - delta2) ** 1.5)
    moved += delta3 * k**1.5 / (sigma - delta2) ** 1.5
    assert printed.whitened(sigma) == pytest.approx(moved)
    pairs = 2 * math.sqrt(k) * moved / gap
    assert printed.eigenpairs(sigma, gap) == pytest.approx(pairs)
    scale = (alpha0 + 2) / (2 * math.sqrt((alpha0 + 1) * alpha0))
    topics = scale * top * math.sqrt(largest) * pairs
    topics += scale * top * math.sqrt(largest) / sigma * delta2
    topics += scale * math.sqrt(largest + delta2) * pairs
    assert printed.topics(largest, sigma, top, gap) == pytest.approx(topics)
    assert math.isfinite(PrintedSensitivities(n, 0.0, k).topics(largest, sigma, top, gap))


@pytest.mark.usefixtures("seeded_noise")
def test_private_bounds_lie_below_but_for_delta(seed):
    noise = NoiseSource()
    delta, scale = 0.05, 0.01 / 2.0
    found = np.array([private_lower_bound(0.3, 0.01, 2.0, delta, noise) for _ in range(4000)])
    # A binomial count of deviation sqrt(delta (1 - delta) / n).
    assert abs(np.mean(found > 0.3) - delta) < 5 * math.sqrt(delta / 4000)
    shift = scale * math.log(1 / (2 * delta))
    assert abs(np.mean(found) - 0.3 + shift) < 5 * scale * math.sqrt(2 / 4000)
    assert private_lower_bound(0.3, 0.01, math.inf, delta, noise) == 0.3


@pytest.mark.parametrize("configuration", [1, 2])
def test_noise_goes_where_the_configuration_says(configuration, monkeypatch):
    calls = []
    monkeypatch.setattr(
        spectral_lda.single_topic,
        "gaussian_unique_entries",
        lambda dim, order, sigma, noise: (
            calls.append((dim, order, sigma)) or np.zeros((dim,) * order)
        ),
    )
    monkeypatch.setattr(spectral_lda, "private_lower_bound", lambda value, *rest: value)
    X = np.tile(exact_corpus(), (5, 1))
    dp_spectral_lda(X, 2, 0.0, configuration, 1.5, 3e-6)
    printed = PrintedSensitivities(len(X), 0.0, 2)
    pairs = printed_sigma(printed.pairs, 0.5, 1e-6)
    if configuration == 1:
        expected = [(4, 2, pairs), (4, 3, printed_sigma(printed.triples, 0.5, 1e-6)), (4, 2, pairs)]
    else:
        M2 = (TOPICS.T * WEIGHTS) @ TOPICS
        moved = printed.whitened(np.linalg.eigvalsh(M2)[-2])
        expected = [(2, 3, printed_sigma(moved, 0.5, 1e-6)), (4, 2, pairs)]
    assert [call[:2] for call in calls] == [call[:2] for call in expected]
    np.testing.assert_allclose([c[2] for c in calls], [c[2] for c in expected], rtol=1e-6)


def test_exact_epsilon_of_configuration_1_is_that_of_three_gaussians():
    X = np.tile(exact_corpus(), (300, 1))
    claim = dp_spectral_lda(X, 2, 1.0, 1, 0.9, 3e-6).claim
    unit = (math.sqrt(0.3 + math.log(1e6)) + math.sqrt(math.log(1e6))) / 0.6
    # a = 1/2, |b| = 1/3, c = 1/3.
    n = len(X)
    pairs = math.sqrt(2) * 2 / 4
    triples = math.sqrt(2) * 4 / (2 + 4 / 3 + 2 * (n - 1) / (n - 2))
    mu = math.sqrt(2 * pairs**2 + triples**2) / unit
    assert hockey_stick(mu, claim.exact_epsilon) == pytest.approx(3e-6, rel=1e-4)
    assert claim.verdict == "holds if"
    assert claim.exact_epsilon < 0.9


EXACT = {
    "agn": agn,
    "avn": avn,
    **{f"configuration {c}": partial(dp_spectral_lda, concentration=0.0, configuration=c)
       for c in CONFIGURATIONS},
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_exact_moments_without_noise_give_the_topics(name, seed):
    found = EXACT[name](exact_corpus(), 2, epsilon=math.inf, random_state=seed)
    topics, weights = sorted_topics(found)
    np.testing.assert_allclose(topics, TOPICS, atol=1e-6)
    np.testing.assert_allclose(weights, WEIGHTS, atol=1e-6)
    assert found.claim.exact_epsilon == math.inf


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_topics_of_mixtures_are_found(configuration, seed):
    rng, alpha = np.random.default_rng([seed, 2]), np.array([0.4, 0.8])
    proportions = rng.dirichlet(alpha, size=40_000)
    X = rng.multinomial(10, proportions @ TOPICS)
    found = dp_spectral_lda(X, 2, 1.2, configuration, epsilon=math.inf, random_state=seed)
    topics, weights = sorted_topics(found)
    # Frequencies deviate by .0025 and moments by as much; the second eigenvalue of M2 is about
    # .1 of the first, which makes that several percent at worst. Uniform topics are .5 off.
    assert np.abs(topics - TOPICS).max() < 0.06
    assert np.abs(weights - alpha / 1.2).max() < 0.15


@pytest.mark.parametrize("configuration", [3, 4])
def test_gaps_have_no_private_bound_at_ordinary_epsilon(configuration):
    """gamma_s is below .2 here, and the noise on it is of scale 4 at epsilon 1, less a quantile."""
    with pytest.raises(ValueError, match="gap between eigenvalues"):
        dp_spectral_lda(np.tile(exact_corpus(), (100, 1)), 2, 0.0, configuration, 1.0)
