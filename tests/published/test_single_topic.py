"""AGN, AVN and DP-TPM: the law of their noise, their claims, and what they recover."""

import itertools
import math

import numpy as np
import pytest
from plain_moments import exact_corpus

from sktensor_dp.privacy.calibration import gaussian_delta
from sktensor_dp.published import agn, agn_of_words, avn, avn_of_words, dp_tpm, single_topic
from sktensor_dp.published.power_method import noise_multiplier

ALGORITHMS = [agn, avn]
ORDERED = [agn_of_words, avn_of_words]


class Counting:
    """Stands in for the source of noise, and adds 1, 2, 3 and so on."""

    def gaussian(self, x, mu):
        return x + np.arange(1, x.size + 1) / mu

    spherical_laplace = gaussian


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize(
    ("noise", "scale"),
    [(single_topic.gaussian_unique_entries, 4.0), (single_topic.spherical_unique_entries, 0.25)],
)
def test_noise_is_on_unique_entries_and_the_same_on_their_permutations(noise, scale, order):
    """Whatever its multiplicity, an entry has the noise of a coordinate of the law."""
    found = noise(5, order, scale, Counting())
    np.testing.assert_array_equal(found, found.transpose(*range(1, order), 0))
    np.testing.assert_array_equal(found, found.swapaxes(0, 1))
    unique = [found[entry] for entry in itertools.combinations_with_replacement(range(5), order)]
    np.testing.assert_allclose(sorted(unique), 4.0 * np.arange(1, len(unique) + 1))


@pytest.mark.parametrize(
    ("algorithm", "third", "first_delta"),
    [(agn, "gaussian_unique_entries", 5e-7), (avn, "spherical_unique_entries", 1e-6)],
)
def test_each_moment_gets_half_of_epsilon(algorithm, third, first_delta, monkeypatch):
    calls = []
    for name in ("gaussian_unique_entries", "spherical_unique_entries"):
        monkeypatch.setattr(
            single_topic,
            name,
            lambda dim, order, scale, noise, name=name: (
                calls.append((name, order, scale)) or np.zeros((dim,) * order)
            ),
        )
    X = exact_corpus()
    algorithm(X, 2, epsilon=0.8, delta=1e-6)
    sensitivity = math.sqrt(2) / len(X)
    sigma = sensitivity * math.sqrt(2 * math.log(1.25 / first_delta)) / 0.4
    scale = sigma if algorithm is agn else 0.4 / sensitivity
    assert [call[:2] for call in calls] == [("gaussian_unique_entries", 2), (third, 3)]
    np.testing.assert_allclose([call[2] for call in calls], [sigma, scale], rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_claims_hold_for_symmetrised_moments_with_slack(algorithm, epsilon):
    # Large enough for M2 to keep a positive eigenvalue: its noise is below a tenth of it.
    X = np.repeat(exact_corpus(), 100, axis=0)
    claim = algorithm(X, 2, epsilon=epsilon, delta=1e-6).claim
    assert claim.holds
    assert 0.25 * epsilon < claim.exact_epsilon < 0.95 * epsilon
    if algorithm is agn:
        mu = math.sqrt(2) / single_topic.classical_sigma(1.0, epsilon / 2, 5e-7)
        assert gaussian_delta(mu, claim.exact_epsilon) == pytest.approx(1e-6, rel=1e-6)


WORDS = [[0, 1, 2], [2, 1, 0], [0, 0, 1], [1, 2, 2], [2, 0, 1]]


def dense(words):
    """Means of t1 (x) t2 and t1 (x) t2 (x) t3, by their definition."""
    t = np.eye(3)[np.asarray(words)]
    pairs = sum(np.multiply.outer(a, b) for a, b, _ in t) / len(t)
    triples = sum(np.multiply.outer(np.multiply.outer(a, b), c) for a, b, c in t) / len(t)
    return pairs, triples


@pytest.mark.filterwarnings("ignore::sktensor_dp.UnsoundClaimWarning")
@pytest.mark.parametrize("algorithm", ORDERED)
def test_without_noise_it_is_the_moment_in_its_subspace(algorithm):
    found = algorithm(WORDS, 3, 2, epsilon=math.inf)
    pairs, triples = dense(WORDS)
    U, scale, _ = np.linalg.svd(pairs)
    W = U[:, :2] / np.sqrt(scale[:2])
    np.testing.assert_allclose(np.abs(found.subspace), np.abs(W), atol=1e-12)
    W = found.subspace
    expected = np.einsum("abc,ai,bj,ck->ijk", triples, W, W, W)
    np.testing.assert_allclose(found.tensor, expected, atol=1e-12)
    assert np.abs(expected - expected.transpose(1, 0, 2)).max() > 0.01


PAIR_OF_TOPICS = np.array([[0.6, 0.4, 0.0, 0.0], [0.0, 0.1, 0.3, 0.6]])


def corpus(n_documents, rng):
    shares = rng.multinomial(n_documents, [0.4, 0.6])
    return np.vstack(
        [rng.multinomial(3, t, size=n) for t, n in zip(PAIR_OF_TOPICS, shares, strict=True)]
    )


def test_without_noise_dp_tpm_is_agn_without_noise(seed):
    X = corpus(20_000, np.random.default_rng([seed, 7]))
    tpm = dp_tpm(X, 2, math.inf, n_restarts=20, max_iter=30, random_state=seed)
    exact = agn(X, 2, math.inf, random_state=seed)
    orders = [np.argsort(found.weights) for found in (tpm, exact)]
    np.testing.assert_allclose(tpm.topics[orders[0]], exact.topics[orders[1]], atol=1e-6)
    np.testing.assert_allclose(tpm.weights[orders[0]], exact.weights[orders[1]], atol=1e-6)


@pytest.mark.parametrize("sensitivity", ["printed", "per_document"])
def test_claims_of_dp_tpm_count_every_query(sensitivity):
    n_documents = 4000
    X = corpus(n_documents, np.random.default_rng(0))
    claim = dp_tpm(X, 2, 1.0, 1e-6, sensitivity, 5, 4).claim
    multiplier = noise_multiplier(0.5, 5e-7, 2 * 5 * 5)
    steps = math.sqrt(50) / multiplier / (n_documents if sensitivity == "printed" else 1)
    pairs = 0.5 / math.sqrt(2 * math.log(1.25 / 5e-7))
    assert gaussian_delta(math.hypot(steps, pairs), claim.exact_epsilon) == pytest.approx(1e-6)
    assert claim.holds
    assert ("1 / N is missing" in claim.reason) is (sensitivity == "printed")
