"""Extrapolated sweeps: fewer of them, never a step back, and an end that plain sweeps confirm."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sktensor_dp import PrivateCPCompletion, PrivateTuckerCompletion
from sktensor_dp.tensor.alternating import run_sweeps

INF = float("inf")


class Quadratic:
    """Coordinate descent on a quadratic form of condition 1000 whose least value is 1."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        turned = np.linalg.qr(rng.standard_normal((20, 20)))[0]
        self.matrix = turned * np.geomspace(1, 1000, 20) @ turned.T
        self.x, self.events, self.values = rng.standard_normal(20), [], []

    def value(self):
        return 1.0 + self.x @ self.matrix @ self.x

    def sweep(self):
        for i, row in enumerate(self.matrix):
            self.x[i] -= row @ self.x / row[i]
        self.events.append("sweep")
        self.values.append(self.value())
        return self.values[-1]

    def state(self):
        return [self.x[:12].copy(), self.x[12:].reshape(2, 4).copy()]

    def restore(self, state, variance):
        self.x = np.concatenate([part.ravel() for part in state])
        self.events.append("restore")


def test_extrapolated_sweeps_settle_sooner_and_where_plain_ones_do(seed):
    fit, plain = Quadratic(seed), Quadratic(seed)
    n_iter, converged = run_sweeps(fit, 1000, 1e-8)
    assert converged
    assert n_iter == len(fit.values)
    # The last sweep went on from the one before, not from an extrapolation.
    assert fit.events[-2:] == ["sweep", "sweep"]
    assert fit.values[-1] < 1 + 1e-6
    for _ in range(3 * n_iter):
        plain.sweep()
    assert plain.values[-1] > fit.values[-1]


class Trap(Quadratic):
    """A step from an extrapolation gets worse; one from a state that a sweep reached does not."""

    def restore(self, state, variance):
        before = [*self.reached]
        super().restore(state, variance)
        self.trapped = not any(np.array_equal(self.x, x) for x in before)
        self.restored.append((self.trapped, variance))

    reached: list
    trapped = False

    def sweep(self):
        if self.trapped:
            self.trapped = False
            return 100.0 * self.accepted
        super().sweep()
        self.reached.append(self.x.copy())
        self.accepted = self.values[-1]
        return self.accepted


def test_a_step_that_makes_things_worse_is_taken_back(seed):
    fit = Trap(seed)
    fit.reached, fit.restored = [], []
    run_sweeps(fit, 30, 1e-8)
    extrapolated = [place for place, (trapped, _) in enumerate(fit.restored) if trapped]
    assert len(extrapolated) >= 3
    for place in extrapolated[:-1]:
        # Back to where the last good sweep ended, at the value that it had there.
        trapped, variance = fit.restored[place + 1]
        assert not trapped
        assert variance in fit.values
    assert (np.diff(fit.values) <= 0).all()


def positive(seed, n):
    """A tensor of three components whose factors are uniform on [0, 1], 30 % of it observed."""
    rng = np.random.default_rng(seed)
    T = np.einsum("ir,jr,kr->ijk", *(rng.uniform(size=(n, 3)) for _ in range(3)))
    X = np.argwhere(rng.random(T.shape) < 0.3)
    return T, X, T[tuple(X.T)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "n"), [(PrivateCPCompletion, 60), (PrivateTuckerCompletion, 30)])
def test_positive_factors_are_found(model, n, seed):
    """Medians of five tensors: one in twenty has a local minimum, with a part of the biases."""
    found = []
    for number in range(5):
        T, X, y = positive([seed, number], n)
        options = {
            "bounds": (0, 3),
            "shape": T.shape,
            "random_state": number,
            "perturbation": "input",
        }
        exact = model(3, epsilon=INF, **options).fit(X, y)
        noisy = model(3, epsilon=20.0, **options).fit(X, y)
        errors = (np.sqrt(np.mean((of.complete() - T) ** 2)) / T.std() for of in (exact, noisy))
        found.append([exact.n_iter_, *errors])
    n_iter, error, with_noise = np.median(found, axis=0)
    # Plain sweeps take 600 and more, since biases and components trade places slowly.
    assert n_iter < 300
    assert error < 0.002
    assert with_noise < 0.02


@pytest.mark.parametrize("model", [PrivateCPCompletion, PrivateTuckerCompletion])
def test_too_few_sweeps_warn(model):
    T, X, y = positive(0, 20)
    few = model(3, bounds=(0, 3), shape=T.shape, epsilon=INF, max_iter=5)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        few.fit(X, y)
    assert few.n_iter_ == 5
