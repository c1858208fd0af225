import pickle

import numpy as np
import pytest

from sktensor_dp.tensor import symmetric_outer_sum, tensor_oracle
from sktensor_dp.tensor.power_method import OnlinePowerMethod


def problem(seed, d=8, k=3):
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((d, k)))[0].T
    return np.array([3.0, 2.5, 2.0]), V, rng


def run(method, oracle, n_answers):
    for _ in range(n_answers):
        method.tell(oracle(method.ask()))


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


def test_the_first_answer_is_a_power_step_and_its_value(seed):
    weights, V, _ = problem(seed)
    T = symmetric_outer_sum(weights, V)
    method = OnlinePowerMethod.begin(8, 3, n_restarts=4, random_state=seed)
    starts = method.ask().copy()
    np.testing.assert_allclose(np.linalg.norm(starts, axis=0), 1.0)
    answers = tensor_oracle(T)(starts)
    method.tell(answers)
    np.testing.assert_allclose(method.ask(), answers / np.linalg.norm(answers, axis=0))
    value = np.einsum("abc,al,bl,cl->l", T, starts, starts, starts)
    assert method.components()[0][0] == pytest.approx(value.max())


def test_deflation_removes_what_was_found(seed):
    weights, V, _ = problem(seed)
    oracle = tensor_oracle(symmetric_outer_sum(weights, V))
    method = OnlinePowerMethod.begin(8, 3, max_iter=15, random_state=seed)
    run(method, oracle, 16)
    # What is left has no part of the component found.
    (value, *_), (vector, *_) = method.components()
    run(method, oracle, 1)
    assert np.abs(vector @ method.ask()).max() < 1e-5
    assert np.abs(value - weights).min() < 1e-6


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


def test_weights_decrease_while_components_are_found():
    weights, V, _ = problem(0)
    oracle = tensor_oracle(symmetric_outer_sum(weights[::-1], V))
    method = OnlinePowerMethod.begin(8, 3, random_state=1)
    for _ in range(40):
        method.tell(oracle(method.ask()))
        found, vectors = method.components()
        assert len(found) == len(vectors) <= 3
        assert (np.diff(found) <= 0).all()
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)


def test_pickling_between_answers_changes_nothing():
    weights, V, _ = problem(0)
    oracle = tensor_oracle(symmetric_outer_sum(weights, V))
    whole = OnlinePowerMethod.begin(8, 3, max_iter=3, random_state=0)
    parts = OnlinePowerMethod.begin(8, 3, max_iter=3, random_state=0)
    for _ in range(14):
        whole.tell(oracle(whole.ask()))
        parts = pickle.loads(pickle.dumps(parts))
        parts.tell(oracle(parts.ask()))
    for one, two in zip(whole.components(), parts.components(), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_zero_tensor_leaves_unit_vectors():
    method = OnlinePowerMethod.begin(4, 2, max_iter=2, random_state=0)
    for _ in range(8):
        method.tell(np.zeros_like(method.ask()))
    weights, vectors = method.components()
    np.testing.assert_array_equal(weights, 0)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)


@pytest.mark.parametrize(
    "wrong", [{"n_components": 0}, {"n_components": 9}, {"n_restarts": 0}, {"max_iter": 0}]
)
def test_wrong_parameters(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        OnlinePowerMethod.begin(**{"dim": 8, "n_components": 2, **wrong})


@pytest.mark.parametrize("told", [0, 4, 13, 38, 39, 45])
def test_a_method_of_a_state_goes_on_as_the_other(told, seed):
    """Between steps, components and polishing; the starts still to be drawn, too."""
    weights, V, _ = problem(seed)
    oracle = tensor_oracle(symmetric_outer_sum(weights, V))
    method = OnlinePowerMethod.begin(8, 3, max_iter=12, random_state=seed)
    run(method, oracle, told)
    again = OnlinePowerMethod(**vars(method))
    for _ in range(30):
        assert np.array_equal(again.ask(), method.ask())
        run(method, oracle, 1)
        run(again, oracle, 1)
    assert all(np.array_equal(value, vars(method)[name]) for name, value in vars(again).items())


@pytest.mark.parametrize(
    "change",
    [
        {"n_answers": 13}, {"n_components": 9}, {"n_restarts": 0}, {"weights": np.ones(1)},
        {"vectors": np.ones((1, 8))},
    ],
    ids=str,
)  # fmt: skip
def test_states_that_no_steps_lead_to_are_refused(change):
    method = OnlinePowerMethod.begin(8, 3, max_iter=12, random_state=0)
    with pytest.raises(ValueError, match="must be"):
        OnlinePowerMethod(**{**vars(method), **change})
