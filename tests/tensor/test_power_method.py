"""Decomposition of orthogonally decomposable tensors, exact and noisy, at once or ask-and-tell."""

import numpy as np
import pytest
from replaying import state
from scipy.optimize import linear_sum_assignment
from small_tensors import random_frame

from sktensor_dp.tensor import (
    orthogonal_decomposition,
    robust_tensor_power_method,
    symmetric_outer_sum,
)
from sktensor_dp.tensor.batch_mean import BatchMean
from sktensor_dp.tensor.power_method import OnlinePowerMethod, simultaneous_power_iteration
from sktensor_dp.tensor.symmetric import (
    coordinates_to_symmetric,
    n_unique,
    symmetrize,
    tensor_oracle,
)

METHODS = [robust_tensor_power_method, simultaneous_power_iteration, orthogonal_decomposition]
T2, ONLINE = np.zeros((2, 2, 2)), OnlinePowerMethod.begin(8, 3, max_iter=12, random_state=0)


def symmetric_noise(dim, rng):
    return coordinates_to_symmetric(rng.standard_normal(n_unique(dim, 3)), dim, 3)


def matched(vectors, estimates):
    squared = 2.0 - 2.0 * vectors @ estimates.T
    return np.sqrt(squared[linear_sum_assignment(squared)].clip(min=0.0))


def diagonal_energy(T, vectors):
    return np.sum(np.sum(vectors.T * tensor_oracle(T)(vectors.T), axis=0) ** 2)


# Dimension, weights, and number of components asked for.
EXACT = [
    (1, [1.0], 1), (5, [3.0, 2.5, 2.0, 1.5, 1.0], 5), (12, [3.0, 2.0, 1.5, 1.0], 4),
    (10, np.linspace(3, 1, 10).tolist(), 10), (4, [4e-20, 3e-20, 2e-20, 1e-20], 4),
    (6, [2.0, -2.0, 2.0, -1.0], 4), (6, [2.0, 1.0], 5), (4, [0.0], 3),
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("dim", "true", "n_components"), EXACT)
def test_orthogonal_tensors_are_recovered_exactly(method, dim, true, n_components, seed):
    """Equal, negative and tiny weights included; beyond the rank weights are 0."""
    V, size = random_frame(dim, len(true), np.random.default_rng([seed, 1])), max(np.abs(true))
    T = symmetric_outer_sum(true, V)
    weights, vectors = method(T, n_components, random_state=seed)
    expected = np.append(-np.sort(-np.abs(true)), np.zeros(n_components - len(true)))
    np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-10 * size)
    assert (weights[expected == 0] == 0).all()
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(n_components), atol=1e-9)
    np.testing.assert_allclose(symmetric_outer_sum(weights, vectors), T, rtol=0, atol=1e-9 * size)


# To first order v_j moves by the part of E(I, v_j, v_j)/w_j normal to it: 9
# coordinates of variance s^2/3, of norm below 0.02 sqrt(62/3) = 0.091 with
# probability 1 - 1e-9; the rest is left to higher orders. Any frame that ignores
# the tensor is far off: the inner products of matched vectors are about 0.5.
@pytest.mark.parametrize("method", METHODS)
def test_noise_moves_components_a_little(method, seed):
    rng = np.random.default_rng([seed, 3])
    V = random_frame(10, 10, rng)
    T = symmetric_outer_sum(np.linspace(3, 1, 10), V) + 0.02 * symmetric_noise(10, rng)
    _, vectors = method(T, 10, random_state=seed)
    assert matched(V, vectors).max() < 0.13
    assert matched(V, random_frame(10, 10, rng)).max() > 0.5
    assert matched(V, np.eye(10)).max() > 0.5


# Every component attracts some restarts. One of weight 3 draws more than half of
# them (those nearest in 3 v_j'u): 20 restarts all miss it in fewer than 1e-6.
@pytest.mark.parametrize("function", [robust_tensor_power_method, simultaneous_power_iteration])
def test_restart_with_the_largest_value_wins(function, seed):
    V = random_frame(3, 3, np.random.default_rng([seed, 11]))
    T = symmetric_outer_sum([1.0, 3.0, 2.0], V)
    weights, vectors = function(T, 1, n_restarts=20, random_state=seed)
    np.testing.assert_allclose(weights, [3.0], atol=1e-10)
    np.testing.assert_allclose(vectors, V[1:2], atol=1e-9)


def test_best_has_the_largest_diagonal_energy_of_orthonormal_frames(seed):
    rng = np.random.default_rng([seed, 5])
    V = random_frame(8, 8, rng)
    T = symmetric_outer_sum(np.linspace(3, 1, 8), V) + 0.2 * symmetric_noise(8, rng)
    weights, vectors = orthogonal_decomposition(T, 8, random_state=seed)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(8), atol=1e-12)
    power = robust_tensor_power_method(T, 8, random_state=seed)[1]
    left, _, right = np.linalg.svd(power, full_matrices=False)
    best = diagonal_energy(T, vectors)
    np.testing.assert_allclose(np.sum(weights**2), best, rtol=1e-12)
    assert best >= diagonal_energy(T, left @ right) * (1 - 1e-12)
    assert best >= diagonal_energy(T, V) * (1 - 1e-12)


def test_oracle_equals_dense_and_tensor_is_unchanged(seed):
    rng = np.random.default_rng([seed, 6])
    V, true_weights = random_frame(7, 3, rng), np.array([3.0, 2.0, 1.0])
    T = symmetric_outer_sum(true_weights, V)
    before = T.copy()
    T.flags.writeable = False
    dense = robust_tensor_power_method(T, 3, random_state=seed)
    factored = robust_tensor_power_method(
        lambda U: V.T @ (true_weights[:, None] * (V @ U) ** 2), 3, dim=7, random_state=seed
    )
    np.testing.assert_array_equal(T, before)
    for from_dense, from_oracle in zip(dense, factored, strict=True):
        np.testing.assert_allclose(from_dense, from_oracle, atol=1e-10)
    for first, second in zip(
        dense, robust_tensor_power_method(T, 3, random_state=seed), strict=True
    ):
        np.testing.assert_array_equal(first, second)


def contracted(T, U):
    """T(I, u, u), one column at a time."""
    return np.array([T @ u @ u for u in U.T]).T


# Sizes around the length from which only half of the tensor is read, and one that
# is no multiple of a block; 1, 2, 3 and 70 columns take different ways through it.
@pytest.mark.parametrize("n_columns", [1, 2, 3, 70])
@pytest.mark.parametrize("dim", [5, 64, 83])
def test_third_order_oracle_contracts_every_column(dim, n_columns, seed, cache_of):
    rng = np.random.default_rng([seed, dim])
    T, U = symmetrize(rng.standard_normal((dim,) * 3)), rng.standard_normal((dim, n_columns))
    answer = tensor_oracle(T)(U)
    # Sums of d^2 terms of order 1, rounded to 1e-16 times d each.
    np.testing.assert_allclose(answer, contracted(T, U), atol=1e-11 * dim)
    assert np.abs(answer).max() > 1e-3  # a zero answer would not do
    if dim == 5:
        cache_of(4)  # few columns a block
        np.testing.assert_allclose(tensor_oracle(T)(U), answer, atol=1e-12)


def test_simultaneous_iteration_starts_where_told(seed):
    V = random_frame(5, 5, np.random.default_rng([seed, 10]))
    T = symmetric_outer_sum([5.0, 4.0, 3.0, 2.0, 1.0], V)
    weights, vectors = simultaneous_power_iteration(T, 5, starts=2.0 * V, n_restarts=0, max_iter=1)
    np.testing.assert_allclose(weights, [5.0, 4.0, 3.0, 2.0, 1.0], rtol=1e-12)
    np.testing.assert_allclose(vectors, V, atol=1e-12)


WRONG = [
    (lambda: robust_tensor_power_method(np.ones((2, 2)), 1), r"T must have shape .* \(2, 2\)"),
    (lambda: robust_tensor_power_method(np.full((2, 2, 2), np.nan), 1), "T must be finite"),
    (lambda: robust_tensor_power_method(T2, 3), "n_components must be between 1 and 2"),
    (lambda: robust_tensor_power_method(lambda U: U, 1), "dim"),
    (lambda: robust_tensor_power_method(T2, 1, dim=3), "dim must be 2"),
    (lambda: robust_tensor_power_method(T2, 1, n_restarts=0), "n_restarts"),
    (lambda: robust_tensor_power_method(T2, 1, max_iter=0), "max_iter"),
    (lambda: simultaneous_power_iteration(T2, 1, n_restarts=0), "n_restarts"),
    (lambda: simultaneous_power_iteration(T2, 1, starts=np.eye(2)), "starts must have shape"),
    (lambda: robust_tensor_power_method(np.zeros((2,) * 4), 1), "T must have shape"),
    *((lambda wrong=wrong: OnlinePowerMethod.begin(**{"dim": 8, "n_components": 2, **wrong}), name)
      for name, wrong in (("n_components", {"n_components": 0}), ("n_restarts", {"n_restarts": 0}),
                          ("n_components", {"n_components": 9}), ("max_iter", {"max_iter": 0}))),
    # States that no steps lead to.
    *((lambda change=change: OnlinePowerMethod(**{**vars(ONLINE), **change}), "must be")
      for change in ({"n_answers": 13}, {"n_components": 9}, {"n_restarts": 0},
                     {"weights": np.ones(1)}, {"vectors": np.ones((1, 8))},
                     {"pending": BatchMean.of(np.ones((8, 1)), 0.0, 1.0)})),
    (lambda: BatchMean(np.ones((8, 2)), np.ones(1), np.ones(2)), "as many columns"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_wrong_parameters_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def problem(seed, d=8, k=3):
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((d, k)))[0].T
    return np.array([3.0, 2.5, 2.0]), V, rng


def run(method, oracle, n_answers):
    for _ in range(n_answers):
        method.tell(oracle(method.columns_asked()))


def test_finds_components_after_the_answers_it_asked_for(seed):
    weights, V, _ = problem(seed)
    method = OnlinePowerMethod.begin(8, 3, max_iter=12, random_state=seed)
    assert method.n_answers_needed == 39
    oracle = tensor_oracle(symmetric_outer_sum(weights, V))
    run(method, oracle, 38)
    assert not method.is_complete
    run(method, oracle, 1)
    assert method.is_complete
    found, vectors = method.components()
    np.testing.assert_allclose(found, weights, rtol=1e-6)
    np.testing.assert_allclose(np.abs(np.sum(vectors * V, axis=1)), 1.0, atol=1e-9)
    # Further exact answers leave them as they are.
    for _ in range(2):
        run(method, oracle, 1)
        np.testing.assert_allclose(method.components()[0], weights, rtol=1e-6)


def test_polishing_averages_noise(seed):
    """A third of the noise after nine steps; one alone would leave all of it."""
    weights, V, rng = problem(seed)
    exact = tensor_oracle(symmetric_outer_sum(weights, V))
    sigma = 0.02

    def noisy(U):
        return exact(U) + sigma * rng.standard_normal(U.shape)

    method = OnlinePowerMethod.begin(8, 3, max_iter=10, random_state=seed)
    run(method, exact, 33)
    run(method, noisy, 400)
    _, vectors = method.components()
    sines = np.sqrt(np.maximum(1 - np.sum(vectors * V, axis=1) ** 2, 0))
    # sigma sqrt(7) / (w sqrt(400)), at most .0013, times two; one step alone errs by .018.
    assert sines.max() < 0.004


@pytest.mark.parametrize("told", [0, 4, 13, 38, 39, 45])
def test_a_method_of_a_state_goes_on_as_the_other(told, seed):
    """Between steps, components and polishing; the starts still to be drawn, too."""
    weights, V, _ = problem(seed)
    oracle = tensor_oracle(symmetric_outer_sum(weights, V))
    method = OnlinePowerMethod.begin(8, 3, max_iter=12, random_state=seed)
    run(method, oracle, told)
    again = OnlinePowerMethod(**vars(method))
    for _ in range(30):
        assert np.array_equal(again.columns_asked(), method.columns_asked())
        run(method, oracle, 1)
        run(again, oracle, 1)
    assert state(again, whole=False) == state(method, whole=False)


def test_answers_are_weighed_by_noise_and_size(seed):
    """Inverse variances, with the spread of samples estimated from how far answers lie apart."""
    rng, d, spread = np.random.default_rng(seed), 4000, 3.0
    sizes, sigmas = np.array([50, 100, 100, 2, 400]), np.array([0.1, 0.05, 0.2, 4.0, 0.02])
    variances = sigmas**2 + spread / sizes
    mean = None
    for n, sigma, variance in zip(sizes, sigmas, variances, strict=True):
        answer = BatchMean.of(rng.normal(0, variance**0.5, (d, 2)), sigma**2, n)
        mean = answer if mean is None else mean.after(answer)
    best = 1 / (1 / variances).sum()
    # An estimate from d numbers errs by sqrt(2 / d) of itself; weights near the best ones cost
    # the square of how far they are off.
    assert mean.sample_variance == pytest.approx(spread, rel=6 * (2 / d) ** 0.5)
    np.testing.assert_allclose(mean.noise_variance + spread * mean.sampling, best, rtol=0.02)
    np.testing.assert_allclose(np.square(mean.value).mean(axis=0), best, rtol=6 * (2 / d) ** 0.5)


@pytest.mark.parametrize("place", [0, 4, 11, 12, 13, 25, 39])
def test_a_noisy_answer_at_any_place_ruins_nothing(place, seed):
    """It makes no step, which it would but for its noise; the same question is asked again."""
    weights, V, rng = problem(seed)
    exact = tensor_oracle(symmetric_outer_sum(weights, V))
    method = OnlinePowerMethod.begin(8, 3, max_iter=12, random_state=seed)
    while not method.is_complete or method.n_answers <= place:
        noise = 1e3 if method.n_answers == place else 1e-3
        asked = method.columns_asked()
        answers = exact(asked) + noise * rng.standard_normal(asked.shape)
        method.tell(answers, noise)
    # Before any other answer it cannot be told, and one step of twelve is lost.
    assert method.n_answers_needed == 39 + (0 < place < 39)
    _, vectors = method.components()
    np.testing.assert_allclose(np.abs(np.sum(vectors * V, axis=1)), 1.0, atol=1e-4)
    assert method.n_above(4.0) == 3


@pytest.mark.parametrize("scale", [1e-320, 1e-250, 1e160, 1e300])
@pytest.mark.parametrize("decompose", [robust_tensor_power_method, orthogonal_decomposition])
def test_tensors_of_any_scale_have_the_components_of_usual_ones(decompose, scale):
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.standard_normal((5, 5)))[0][:3]
    T = symmetric_outer_sum([3.0, 2.0, 1.0], V)
    weights, vectors = decompose(T * scale, 3, random_state=0)
    np.testing.assert_allclose(weights / scale, [3, 2, 1], rtol=1e-3)
    np.testing.assert_allclose(np.abs(np.sum(vectors * V, axis=1)), 1, rtol=1e-6)
