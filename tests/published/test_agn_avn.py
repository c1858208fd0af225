"""AGN and AVN as printed: the law of their noise, their claims, and what they recover."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from plain_moments import TOPICS, WEIGHTS, exact_corpus

from sktensor_dp import PrivacyLeakWarning, UnsoundClaimWarning, unsafe_seeded_noise
from sktensor_dp.privacy.calibration import gaussian_delta
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.published import agn, avn, single_topic
from sktensor_dp.tensor import n_unique, symmetrize

ALGORITHMS = [agn, avn]


def seeded_source(seed):
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        return NoiseSource()


def entries_by_kind(dim):
    """Masks of the unique entries iii, iij or ijj, and ijk of a third-order tensor."""
    i, j, k = np.indices((dim,) * 3)
    sorted_entries = (i <= j) & (j <= k)
    n_equal = (i == j).astype(int) + (j == k)
    return [sorted_entries & (n_equal == kind) for kind in (2, 1, 0)]


# ------------------------------------------------------------------ noise


def test_gaussian_noise_has_one_variance_on_and_off_the_diagonal(seed):
    noise, dim, sigma = seeded_source(seed), 30, 0.25
    draws = np.array(
        [single_topic.gaussian_unique_entries(dim, 3, sigma, noise) for _ in range(40)]
    )
    for mask in entries_by_kind(dim):
        values = draws[:, mask].ravel()
        # Relative deviation of a variance of n normals: sqrt(2 / n), n >= 1200. Isotropic
        # noise would have a third and a sixth of it off the diagonal.
        tolerance = 5 * math.sqrt(2 / values.size)
        assert abs(np.mean(values**2) / sigma**2 - 1) < tolerance
        assert abs(values.mean()) < 5 * sigma / math.sqrt(values.size)


def test_gaussian_noise_on_a_matrix_has_one_variance_too(seed):
    E = single_topic.gaussian_unique_entries(400, 2, 3.0, seeded_source(seed))
    np.testing.assert_array_equal(E, E.T)
    for values in (np.diagonal(E), E[np.triu_indices(400, 1)]):
        assert abs(np.mean(values**2) / 9 - 1) < 5 * math.sqrt(2 / values.size)


def test_unique_entries_are_independent(seed):
    noise, twice = seeded_source(seed), entries_by_kind(3)[1]
    draws = np.array(
        [single_topic.gaussian_unique_entries(3, 3, 1.0, noise)[twice] for _ in range(4000)]
    )
    correlation = np.corrcoef(draws.T) - np.eye(6)
    # Deviation of a correlation of 4000 pairs: 4000^(-1/2); 15 of them.
    assert np.abs(correlation).max() < 5 / math.sqrt(4000)


def test_spherical_noise_has_gamma_norm_and_uniform_direction(seed):
    noise, dim, beta, n_draws = seeded_source(seed), 6, 4.0, 3000
    unique = np.any(entries_by_kind(dim), axis=0)
    b = np.array(
        [single_topic.spherical_unique_entries(dim, 3, beta, noise)[unique] for _ in range(n_draws)]
    )
    size, norms = n_unique(dim, 3), np.linalg.norm(b, axis=1)
    # Gamma(size, rate beta): mean size / beta, variance size / beta^2, whose estimate
    # deviates by sqrt((2 + 6 / size) / n) relative to it.
    assert abs(norms.mean() * beta / size - 1) < 5 / math.sqrt(size * n_draws)
    spread = 5 * math.sqrt((2 + 6 / size) / n_draws)
    assert abs(norms.var() * beta**2 / size - 1) < spread
    # Uniform on the sphere: every squared coordinate has mean 1 / size and variance below
    # 2 / size^2, so diagonal entries are as large as others.
    shares = ((b / norms[:, None]) ** 2).mean(axis=0) * size
    assert np.abs(shares - 1).max() < 5 * math.sqrt(2 / n_draws)


@pytest.mark.parametrize("order", [2, 3])
def test_noise_is_symmetric_to_the_last_bit(order, seed):
    noise = seeded_source(seed)
    for draw, scale in (
        (single_topic.gaussian_unique_entries, 0.1),
        (single_topic.spherical_unique_entries, 10.0),
    ):
        E = draw(7, order, scale, noise)
        for axes in itertools.permutations(range(order)):
            np.testing.assert_array_equal(E, E.transpose(axes))


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


# ----------------------------------------------------------------- claims


def test_halves_at_epsilon_one_have_the_known_noise():
    assert single_topic.classical_sigma(1.0, 0.5, 5e-7) == pytest.approx(10.86, abs=0.005)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_claims_hold_for_symmetrised_moments_with_slack(algorithm, epsilon):
    # Large enough for M2 to keep a positive eigenvalue: its noise is below a tenth of it.
    X = np.repeat(exact_corpus(), 100, axis=0)
    claim = algorithm(X, 2, epsilon=epsilon, delta=1e-6).claim
    assert claim.holds
    assert 0.25 * epsilon < claim.exact_epsilon < 0.95 * epsilon
    assert claim.verdict == "holds if"
    assert "if the moments are symmetrised" in claim.reason


def test_exact_epsilon_of_agn_is_that_of_both_gaussians_together():
    claim = agn(np.repeat(exact_corpus(), 10, axis=0), 2, epsilon=1.0, delta=1e-6).claim
    mu = math.sqrt(2) / single_topic.classical_sigma(1.0, 0.5, 5e-7)
    assert gaussian_delta(mu, claim.exact_epsilon) == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_claims_fail_where_the_classical_calibration_does(algorithm):
    with pytest.warns(UnsoundClaimWarning, match="small epsilon only"):
        claim = algorithm(exact_corpus(), 2, epsilon=100.0, delta=1e-6).claim
    assert not claim.holds
    assert claim.exact_epsilon > 100.0


def ordered_moment(words, order):
    """Mean of t1 (x) t2 (x) ... over documents, words in their order, as printed."""
    moment = np.zeros((3,) * order)
    np.add.at(moment, tuple(np.asarray(words)[:, :order].T), 1 / len(words))
    return moment


@pytest.mark.parametrize("order", [2, 3])
def test_symmetric_noise_does_not_hide_the_order_of_words(order, seed):
    noise = seeded_source(seed)
    rest = np.random.default_rng([seed, 1]).integers(3, size=(49, 3)).tolist()
    data, neighbour = ([*rest, [0, 1, 2]], [*rest, [1, 0, 2]])
    moments = [ordered_moment(words, order) for words in (data, neighbour)]
    # Noise a thousand times the moments themselves.
    sigma = 1000.0
    for draw, scale in (
        (single_topic.gaussian_unique_entries, sigma),
        (single_topic.spherical_unique_entries, 1 / sigma),
    ):
        released = moments[0] + draw(3, order, scale, noise)
        antisymmetric = [M - symmetrize(M) for M in (released, *moments)]
        # What the noise leaves is the first data set's, up to rounding of large numbers.
        assert np.abs(antisymmetric[0] - antisymmetric[1]).max() < 1e-9
        assert np.abs(antisymmetric[0] - antisymmetric[2]).max() > 0.3 / 50
    # Symmetrised, the two are the same: there is nothing to tell apart.
    np.testing.assert_allclose(*map(symmetrize, moments), atol=1e-15)


# --------------------------------------------------------------- recovery


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_exact_moments_without_noise_give_the_topics(algorithm, seed):
    found = algorithm(exact_corpus(), 2, epsilon=math.inf, random_state=seed)
    order = np.argsort(found.weights)
    np.testing.assert_allclose(found.topics[order], TOPICS, atol=1e-7)
    np.testing.assert_allclose(found.weights[order], WEIGHTS, atol=1e-7)
    assert found.claim.exact_epsilon == math.inf


def recovery_error(algorithm, X, epsilon, seed):
    topics = algorithm(X, 2, epsilon=epsilon, random_state=seed).topics
    np.testing.assert_allclose(topics.sum(axis=1), 1)
    assert topics.min() >= 0
    order = np.argsort(-topics[:, 0])
    return np.abs(topics[order] - TOPICS[: len(topics)]).max()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_noise_shows_and_vanishes_with_epsilon(algorithm, seed):
    X = np.repeat(exact_corpus(), 100, axis=0)
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        errors = [recovery_error(algorithm, X, eps, seed) for eps in [0.02] * 20 + [1.0, 1e4]]
    # The eigenvalues of M2 are about .5 and .08. Its entries have noise of deviation
    # 10.9 sqrt(2) / (19200 epsilon): .0008 at epsilon = 1, which moves topics by a few
    # percent; .04 at .02, whose operator norm, about .16, hides the second eigenvalue.
    assert np.mean(errors[:20]) > 0.1
    assert 1e-5 < errors[20] < 0.1
    assert errors[21] < 1e-4


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_random_state_does_not_seed_noise(algorithm):
    X = np.repeat(exact_corpus(), 10, axis=0)
    first, second = (algorithm(X, 2, random_state=0).topics for _ in range(2))
    assert first.shape != second.shape or not np.allclose(first, second)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_forms_of_counts_are_accepted(algorithm):
    X = exact_corpus()
    dense = algorithm(X, 2, epsilon=math.inf, random_state=0).topics
    for form in (sp.csr_array(X), sp.coo_matrix(X.astype(np.float32)), X.astype(int)):
        other = algorithm(form, 2, epsilon=math.inf, random_state=0).topics
        np.testing.assert_allclose(other, dense, atol=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"delta": 0}, "delta must be"),
        ({"delta": 1}, "delta must be"),
        ({"n_components": 0}, "n_components must be"),
        ({"n_components": 5}, "at most the 4 features"),
        ({"X": np.zeros((0, 4))}, "at least one document"),
        ({"X": -np.ones((3, 4))}, "Negative values"),
    ],
)
def test_bad_parameters_are_named(algorithm, parameters, message):
    arguments = {"X": exact_corpus(), "n_components": 2, **parameters}
    with pytest.raises(ValueError, match=message):
        algorithm(**arguments)
