"""Forecasts of what released entries lead to, against what comes out of it."""

import math

import numpy as np
import pytest
from small_completions import MODELS, build

from sktensor_dp import PrivateCPCompletion, unsafe_seeded_noise
from sktensor_dp.completion.forecast import entry_errors
from sktensor_dp.completion.plan import Assumed, plan_completion

pytestmark = pytest.mark.filterwarnings(
    "ignore::sktensor_dp.PrivacyLeakWarning", "ignore::sktensor_dp.NotEnoughDataWarning"
)

N, D, EACH, COUNT = 8000, 60, 40, 3
KNOWN = {"deviation": 1.5, "bias_deviation": 0.6, "component_share": 0.15}


def values(seed):
    """Biases of people and columns, and three components: to fit, and others."""
    rng = np.random.default_rng(seed)
    X = np.argwhere(rng.random((N, D)) < EACH / D)
    U, V = rng.standard_normal((N, COUNT)), rng.standard_normal((D, COUNT))
    # Of the size that is told, not only on average: columns are few.
    V /= np.sqrt(np.mean(V**2, axis=0))
    columns = rng.standard_normal(D)
    y = 0.6 * rng.standard_normal(N)[X[:, 0]]
    y += 0.6 * ((columns - columns.mean()) / columns.std())[X[:, 1]]
    y += 1.5 * math.sqrt(0.15 / COUNT) * np.einsum("ek,ek->e", U[X[:, 0]], V[X[:, 1]])
    y += 1.5 * math.sqrt(1 - 2 * 0.16 - 0.15) * rng.standard_normal(len(X))
    test = rng.random(len(X)) < 0.1
    return (X[~test], y[~test]), (X[test], y[test])


def errors(model, data, test):
    own = model.fold_in(*data)
    return [
        float(np.sqrt(np.mean((found - test[1]) ** 2)))
        for found in (model.predict(test[0]), own.predict(test[0]))
    ]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 5.0, 10.0])
def test_predictions_and_own_entries_do_as_forecast(epsilon, seed):
    """By sums, by sums and pairs, and by values."""
    data, test = values(seed)
    model = PrivateCPCompletion(
        4, bounds=(-5, 5), shape=(N, D), epsilon=epsilon, random_state=seed
    )  # fmt: skip
    said = model.forecast(len(data[1]), (N, D), **KNOWN)
    with unsafe_seeded_noise(seed):
        model.fit(*data)
    assert said.perturbation == model.perturbation_
    predicted, folded = errors(model, data, test)
    # 32,000 values to predict, whose errors of 8000 people's levels are shared by four, err by
    # half of sqrt(2 / 8000), 1 %, at most; noise of the biases, of whose size the model learns
    # from 60 columns, by as much again. The rest is what normal factors and plain ridges leave
    # out of the theory.
    assert said.of_model == pytest.approx(predicted, rel=0.05)
    assert said.of_fold_in == pytest.approx(folded, rel=0.05)
    # To say the mean alone would be off by more.
    assert said.of_mean > 1.1 * max(predicted, folded)


def test_more_budget_and_more_entries_are_never_forecast_to_be_worse():
    """Within one way of fitting."""
    assumed = Assumed.given(2, 4.0, None, None, None)
    for way in ("input", "sufficient_statistics"):
        before = [math.inf] * 3
        for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 40.0, math.inf):
            plan = plan_completion(
                10**6, (10**4, 200), 3, epsilon=epsilon, delta=1e-6, perturbation=way, max_iter=None
            )  # fmt: skip
            found = entry_errors(10**6, (10**4, 200), plan, assumed, 3)
            now = [found.of_biases, found.of_model, found.of_fold_in]
            assert all(one <= other * (1 + 1e-12) for one, other in zip(now, before, strict=True))
            assert found.of_model <= found.of_biases
            before = now


@pytest.mark.parametrize("model", MODELS)
def test_forecasts_know_who_can_fold_in(model):
    assert math.isfinite(build(model, rank=2).forecast(5000, (50, 20, 3)).of_fold_in)
    slices = build(model, unit_mode=0).forecast(5000, (50, 20))
    assert slices.of_fold_in == slices.of_model


def test_a_forecast_shows_what_own_entries_add():
    model = PrivateCPCompletion(4, bounds=(-4, 4))
    assert "own entries folded in" in str(model.forecast(N * EACH, (N, D)))


@pytest.mark.parametrize("rank", [0, 1])
def test_components_that_are_not_asked_for_explain_nothing(rank):
    said = PrivateCPCompletion(rank, bounds=(0, 1), epsilon=20.0, perturbation="input").forecast(
        10**6, (5000, 300)
    )
    assert (said.of_model < said.of_biases) == (rank > 0)
    assert said.of_fold_in <= said.of_biases
