"""Algorithms 2 and 3 of Wang & Anandkumar: schedules, noise, claims, recovery."""

import math

import numpy as np
import pytest

from sktensor_dp.privacy.calibration import gaussian_delta
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.published import online_tensor_power_method, private_tensor_power_method
from sktensor_dp.published.power_method import noise_multiplier, noisy_columns, power_method_loop
from sktensor_dp.tensor import symmetric_outer_sum
from sktensor_dp.tensor.symmetric import tensor_oracle


def frame(dim, n_components, rng):
    return np.linalg.qr(rng.standard_normal((dim, n_components)))[0].T


def test_schedule_is_fixed_and_starts_share_a_query():
    queries = []

    def step(U):
        queries.append(("step", U.shape))
        return U**2

    def value(U):
        queries.append(("value", U.shape))
        return np.sum(U**3, axis=0)

    rng = np.random.default_rng(0)
    power_method_loop(step, value, 5, 2, n_restarts=7, max_iter=3, rng=rng)
    assert queries == 2 * (3 * [("step", (5, 7))] + [("value", (5, 7))])


def test_deflation_is_that_of_the_tensor_itself(seed):
    """The loop on T deflates as a loop on T - D would, with unit vectors in xi."""
    rng = np.random.default_rng(seed)
    V = frame(6, 2, rng)
    T = symmetric_outer_sum([2.0, 1.0], V) + 0.01 * symmetric_outer_sum(
        rng.standard_normal(3), frame(6, 3, rng)
    )

    def run(tensor, n_components):
        oracle = tensor_oracle(tensor)
        return power_method_loop(
            oracle, lambda U: np.sum(U * oracle(U), axis=0), 6, n_components,
            n_restarts=8, max_iter=25, rng=generator,
        )  # fmt: skip

    generator = np.random.default_rng([seed, 1])
    weights, vectors = run(T, 2)
    generator = np.random.default_rng([seed, 1])
    first_weight, first = run(T, 1)
    second_weight, second = run(T - symmetric_outer_sum(first_weight, first), 1)
    np.testing.assert_allclose(weights, [first_weight[0], second_weight[0]], atol=1e-10)
    np.testing.assert_allclose(vectors, np.vstack([first, second]), atol=1e-8)


@pytest.mark.usefixtures("seeded_noise", "seed")
def test_columns_have_noise_of_their_own_deviation():
    deviation, answer = np.array([0.5, 3.0, 0.0]), np.arange(3000.0).reshape(1000, 3)
    noise = noisy_columns(answer, deviation, NoiseSource()) - answer
    # A standard deviation of 1000 normals deviates by 1 / sqrt(2000) of itself.
    np.testing.assert_allclose(noise[:, :2].std(axis=0), deviation[:2], rtol=5 / math.sqrt(2000))


def directions(n_batches, rng, n=4000):
    """Two orthonormal directions with probabilities .6 and .4, plus a little noise."""
    V = frame(8, 2, np.random.default_rng(3))
    for _ in range(n_batches):
        x = V[rng.choice(2, p=[0.6, 0.4], size=n)]
        yield x + 0.05 * rng.standard_normal((n, 8))


# Noise of a step: .05 per coordinate and sample, less by sqrt(4000 u'v) after averaging: some
# .001 against .4. The mean of (x'v)^3 deviates by sqrt(.24 / 4000) = .008, with five of them .04,
# and is above the weight by 3 (.05)^2 of it.
@pytest.mark.parametrize("eigenvalue", ["fresh", "lagged"])
def test_stream_gives_components(eigenvalue, seed):
    rng = np.random.default_rng([seed, 2])
    found = online_tensor_power_method(
        directions(40, rng), 2, n_restarts=20, max_iter=15, eigenvalue=eigenvalue, random_state=seed
    )
    V = frame(8, 2, np.random.default_rng(3))
    order = np.argsort(-found.weights)
    np.testing.assert_allclose(found.weights[order], [0.6, 0.4], atol=0.05)
    assert (np.sum(found.vectors[order] * V, axis=1) > 0.99).all()
    assert found.claim.exact_epsilon == math.inf
    assert found.claim.verdict == "no claim"


def test_lagged_eigenvalue_is_one_iterate_behind():
    x = np.random.default_rng(0).standard_normal((200, 4))
    starts = np.random.default_rng(1).standard_normal((4, 1))
    u = starts / np.linalg.norm(starts)
    lagged = online_tensor_power_method([x], 1, 1, 1, "lagged", np.random.default_rng(1))
    np.testing.assert_allclose(lagged.weights, np.mean((x @ u) ** 3))
    fresh = online_tensor_power_method([x, x], 1, 1, 1, "fresh", np.random.default_rng(1))
    np.testing.assert_allclose(fresh.weights, np.mean((x @ fresh.vectors.T) ** 3))
    np.testing.assert_allclose(fresh.vectors, lagged.vectors)
    assert abs(fresh.weights - lagged.weights) > 0.01


@pytest.mark.parametrize(("eigenvalue", "needed"), [("fresh", 8), ("lagged", 6)])
def test_every_batch_is_read_once(eigenvalue, needed, seed):
    stream = directions(needed + 2, np.random.default_rng(seed), n=50)
    online_tensor_power_method(stream, 2, 5, 3, eigenvalue, seed)
    assert len(list(stream)) == 2
    with pytest.raises(ValueError, match=f"must hold {needed} batches or more, got {needed - 1}"):
        online_tensor_power_method(
            directions(needed - 1, np.random.default_rng(0), n=50), 2, 5, 3, eigenvalue
        )


def test_tensor_without_noise_is_decomposed(seed):
    V = frame(9, 3, np.random.default_rng([seed, 4]))
    T, starts = symmetric_outer_sum([3.0, 2.0, 1.0], V), {"n_restarts": 30, "max_iter": 30}
    found = private_tensor_power_method(T, 3, math.inf, **starts, random_state=seed)
    order = np.argsort(-found.weights)
    np.testing.assert_allclose(found.weights[order], [3.0, 2.0, 1.0], atol=1e-8)
    np.testing.assert_allclose(found.vectors[order], V, atol=1e-8)


def test_exact_epsilon_is_that_of_all_queries_together():
    claim = private_tensor_power_method(np.zeros((20,) * 3), 5, 1.0, 1e-6, 10, 10).claim
    mu = math.sqrt(550) / noise_multiplier(1.0, 1e-6, 550)
    assert gaussian_delta(mu, claim.exact_epsilon) == pytest.approx(1e-6, rel=1e-6)
    assert claim.exact_epsilon == pytest.approx(0.133, abs=0.001)
    assert claim.holds


@pytest.mark.usefixtures("seeded_noise")
def test_noise_of_the_value_query_is_six_printed_multipliers(seed):
    """In one dimension |u|_inf = 1, and the value of a zero tensor is all noise."""
    T = np.zeros((1, 1, 1))
    values = [
        private_tensor_power_method(T, 1, 1.0, 1e-6, 1, 1, random_state=start).weights[0]
        for start in range(200)
    ]
    nu = 6 * noise_multiplier(1.0, 1e-6, 2)
    assert abs(np.std(values) / nu - 1) < 5 / math.sqrt(400)
