"""Published completions: the printed descent, and where their noise goes."""

import math

import numpy as np
import pytest

from sktensor_dp.published import completion
from sktensor_dp.published.completion import (
    Descent,
    SGDSettings,
    gradient_perturbation,
    input_perturbation,
    output_perturbation,
    with_laplace_noise,
    with_row_noise,
)
from sktensor_dp.tensor.sorted_entries import SortedEntries

# Most calls here are not private: that they warn has a test of its own.
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.UnsoundClaimWarning")

CUBE = np.argwhere(np.ones((3, 4, 5)))


def cube_values(seed):
    return np.random.default_rng(seed).uniform(-1, 1, len(CUBE))


def printed(entries, y, order, start, core, sgd):
    """Algorithm 2 without clipping and noise: the print, one entry after the other."""
    A, B, C = (factor.copy() for factor in start)
    G = None if core is None else core.copy()
    full = np.zeros((2, 2, 2)) if G is None else G
    if G is None:
        full[[0, 1], [0, 1], [0, 1]] = 1
    rate, penalty = 2 * sgd.learning_rate, sgd.penalty
    for e in order:
        i, j, k = entries[e]
        for own, row, spec, first, second in (
            (A, i, "pqt,q,t->p", B[j], C[k]),
            (B, j, "pqt,p,t->q", A[i], C[k]),
            (C, k, "pqt,p,q->t", A[i], B[j]),
        ):
            # Rows are views: each update sees those before it.
            z = np.einsum(spec, full, first, second)
            own[row] -= rate * ((z @ own[row] - y[e]) * z + penalty * own[row])
        if G is not None:
            K = np.einsum("p,q,t->pqt", A[i], B[j], C[k])
            G -= rate * ((np.sum(K * G) - y[e]) * K + sgd.core_penalty * G)
    return [A, B, C], G


@pytest.mark.parametrize("tucker", [False, True])
def test_a_block_of_one_entry_is_the_print(tucker, seed):
    sgd = SGDSettings(max_iter=1, learning_rate=0.05, penalty=0.1, core_penalty=0.2)
    y = cube_values(seed)
    model = Descent(SortedEntries(CUBE, (3, 4, 5)), 2, tucker, sgd, seed)
    start = [factor.copy() for factor in model.factors]
    core = None if model.core is None else model.core.copy()
    model.run(y)
    # The same generator, past the start: the order of the entries.
    rng = np.random.default_rng(seed)
    for size in ((3, 2), (4, 2), (5, 2), *([(2, 2, 2)] if tucker else [])):
        rng.standard_normal(size)
    factors, core = printed(CUBE, y, rng.permutation(len(CUBE)), start, core, sgd)
    for found, expected in zip(model.factors, factors, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    if tucker:
        np.testing.assert_allclose(model.core, core, rtol=1e-10)


@pytest.mark.parametrize(
    ("algorithm", "tucker"),
    [(input_perturbation, False), (gradient_perturbation, True), (output_perturbation, True)],
)
def test_without_noise_a_tensor_of_low_rank_is_found(algorithm, tucker, seed):
    rng = np.random.default_rng([seed, 7])
    factors = [rng.uniform(0.5, 1.5, (n, 1)) for n in (8, 9, 10)]
    T = np.einsum("ir,jr,kr->ijk", *factors)
    X = np.argwhere(rng.random(T.shape) < 0.7)
    # A start whose products nearly cancel lingers at zero: eight of a hundred had not left it
    # after 60 passes, all had arrived after 150.
    sgd = SGDSettings(max_iter=200, learning_rate=0.01, block=16, penalty=0.0, core_penalty=0.0)
    options = {"clip": 1e6} if algorithm is gradient_perturbation else {}
    found = algorithm(
        X, T[tuple(X.T)], T.shape, 1, tucker=tucker, epsilon=math.inf, sgd=sgd, random_state=seed,
        **options,
    )  # fmt: skip
    predictions = found.predict(np.argwhere(np.ones(T.shape))).reshape(T.shape)
    # Zeros have error 1, the mean about .5; SGD converges linearly on exact data.
    assert np.linalg.norm(predictions - T) < 0.1 * np.linalg.norm(T)


def test_noise_of_input_is_in_proportion_to_the_range_of_the_values(monkeypatch):
    seen = []
    monkeypatch.setattr(
        completion, "with_laplace_noise", lambda y, w, eps: seen.append((w, eps)) or y
    )
    for largest, options in (
        (1.0, {"epsilon": 2.0}),
        (0.5, {"epsilon": 2.0}),
        (0.5, {"bounds": (0, 3)}),
    ):
        input_perturbation(
            [[0, 0], [1, 1]], [largest, 0.0], (2, 2), 1, sgd=SGDSettings(max_iter=1), **options
        )
    assert seen == [(1.0, 2.0), (0.5, 2.0), (3, 1.0)]


@pytest.mark.parametrize("tucker", [False, True])
@pytest.mark.parametrize("algorithm", [gradient_perturbation, output_perturbation])
def test_all_factors_but_the_last_are_released_without_noise(algorithm, tucker, seed):
    # One block: the first factors are updated before any noise is added.
    sgd = SGDSettings(max_iter=1, block=len(CUBE))
    y = cube_values(seed)
    found = [
        algorithm(
            CUBE, values, (3, 4, 5), 2, tucker=tucker, epsilon=0.01, sgd=sgd, random_state=seed
        ).factors
        for values in (y, y, y - 2 * np.sign(y[0]) * np.eye(len(y))[0])
    ]
    for m in (0, 1):
        # Two draws of the noise agree on what is released, and tell the neighbours apart.
        np.testing.assert_array_equal(found[0][m], found[1][m])
        assert (found[0][m] != found[2][m]).any()
    assert not np.allclose(found[0][2], found[1][2])


@pytest.mark.usefixtures("seeded_noise", "seed")
def test_noise_has_its_law():
    """Gamma of shape dim in the norm of a row: the mean of n deviates by sqrt(dim / n) scales."""
    n = 20_000
    norms = {
        1: np.abs(with_laplace_noise(np.zeros(n), 3.0, 2.0)),
        3: np.linalg.norm(with_row_noise(np.zeros((n, 3)), 3.0, 2.0), axis=1),
    }
    for dim, found in norms.items():
        assert abs(found.mean() / 1.5 - dim) < 5 * math.sqrt(dim / n)
    np.testing.assert_array_equal(with_laplace_noise(np.ones(3), 0.0, 1.0), np.ones(3))
