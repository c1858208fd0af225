"""Completion by alternating least squares, CP and Tucker: exact recovery, shrinkage, rows never
seen, and extrapolated sweeps."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from small_tensors import everything

from sktensor_dp import PrivateCPCompletion, PrivateTuckerCompletion
from sktensor_dp.tensor.alternating import core_components, fit_core, mode_subspaces, run_sweeps
from sktensor_dp.tensor.cp_completion import Posterior, complete_cp
from sktensor_dp.tensor.sorted_entries import SortedEntries, cp_values, tucker_values
from sktensor_dp.tensor.tucker_completion import complete_tucker

TWO = {"entries": SortedEntries([[0, 0], [1, 1]], (2, 2)), "values": [1.0, 2.0]}
INF = float("inf")


def observed(shape, share, rng):
    n = int(np.prod(shape))
    chosen = rng.choice(n, round(share * n), replace=False)
    return np.column_stack(np.unravel_index(chosen, shape))


def cp_problem(seed, shape, rank, share):
    rng = np.random.default_rng([seed, *shape, rank])
    factors = [rng.standard_normal((n, rank)) for n in shape]
    factors[0] /= cp_values(factors, everything(shape)).std()
    return factors, observed(shape, share, rng), rng


def relative_error(model, truth, shape):
    return np.linalg.norm(model.predict(everything(shape)) - truth) / np.linalg.norm(truth)


def is_standard(model, shape, rank):
    """CP: unit columns by decreasing weight. Tucker: orthonormal columns, slices by norm."""
    assert model.shape == shape
    for mode, (n, factor) in enumerate(zip(shape, model.factors, strict=True)):
        assert factor.shape == (n, rank)
        gram = factor.T @ factor
        if hasattr(model, "weights"):
            np.testing.assert_allclose(np.diag(gram), 1.0)
            assert (np.diff(model.weights) <= 0).all()
        else:
            np.testing.assert_allclose(gram, np.eye(rank), atol=1e-10)
            unfolded = np.moveaxis(model.core, mode, 0).reshape(rank, -1)
            gram = unfolded @ unfolded.T
            np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-9 * np.trace(gram))
            assert (np.diff(np.diag(gram)) <= 0).all()


def tucker_of(entries, values, rank, **options):
    return complete_tucker(entries, values, (rank,) * entries.n_modes, **options)


both = pytest.mark.parametrize("complete", [complete_cp, tucker_of])


@both
def test_columns_beyond_the_components_stay_zero(complete, seed):
    shape, rng = (200, 40), np.random.default_rng(seed)
    factors = [rng.standard_normal((n, 2)) for n in shape]
    coordinates = observed(shape, 0.5, rng)
    values = cp_values(factors, coordinates) + 2 * rng.standard_normal(len(coordinates))
    truth, entries = cp_values(factors, everything(shape)), SortedEntries(coordinates, shape)
    few, many = (
        relative_error(complete(entries, values, rank, random_state=0), truth, shape)
        for rank in (2, 8)
    )
    # Eight columns that are all used double the error.
    assert many < 1.05 * few


@pytest.mark.nightly
def test_a_core_costs_little_at_high_noise(seed):
    """Components of a Tucker tensor in noise of nine times its variance, against CP's."""
    shape, rng, ratios = (200, 30, 6), np.random.default_rng(seed), []
    for _ in range(4):
        factors = [rng.standard_normal((n, 2)) for n in shape]
        truth = tucker_values(rng.standard_normal((2, 2, 2)), factors, everything(shape))
        truth /= truth.std()
        where = rng.random(len(truth)) < 0.5
        values = truth[where] + 3 * rng.standard_normal(np.count_nonzero(where))
        entries = SortedEntries(everything(shape)[where], shape)
        tucker, cp = (
            relative_error(complete(entries, values, 2, noise_variance=9.0), truth, shape)
            for complete in (tucker_of, complete_cp)
        )
        ratios.append(tucker / cp)
    # The core's 8 numbers add 1.7 % to the factors' 472, .9 % of the error. Sweeps that stop early
    # leave about as much. Of single draws one in fifty is 2 to 3 % worse, most are better.
    assert np.mean(ratios) < 1.02


# The subspaces to start from need more entries than the fit: of the last shape a twelfth
# would do for the parameters, but leaves one start in four in a local minimum.
@both
@pytest.mark.parametrize(
    ("shape", "share"),
    [((60, 50), 0.8), ((40, 40, 40), 0.3), ((30, 60, 20), 0.2), ((15, 15, 15, 15), 0.3)],
    ids=str,
)
def test_exact_values_are_recovered(complete, seed, shape, share):
    factors, coordinates, _ = cp_problem(seed, shape, 3, share)
    truth = cp_values(factors, everything(shape))
    entries, values = SortedEntries(coordinates, shape), cp_values(factors, coordinates)
    model = complete(entries, values, 3, max_iter=300, random_state=seed)
    assert relative_error(model, truth, shape) < 1e-3
    is_standard(model, shape, 3)


@both
def test_known_noise_is_a_floor(complete):
    factors, coordinates, _ = cp_problem(0, (20, 20, 20), 2, 0.5)
    entries, values = SortedEntries(coordinates, (20, 20, 20)), cp_values(factors, coordinates)
    free, known, hidden = (
        complete(entries, values, 2, noise_variance=noise, random_state=0)
        for noise in (None, 0.5, 100.0)
    )
    assert free.noise_variance < 1e-10
    assert known.noise_variance == pytest.approx(0.5)
    free, known, hidden = (getattr(found, found._linear) for found in (free, known, hidden))
    assert not hidden.any()
    assert 0 < np.linalg.norm(known) < np.linalg.norm(free)


@both
def test_pure_noise_is_shrunk_away(complete, seed):
    shape = (40, 40, 40)
    rng = np.random.default_rng(seed)
    coordinates = observed(shape, 0.3, rng)
    values = 3.0 + rng.standard_normal(len(coordinates))
    model = complete(SortedEntries(coordinates, shape), values, 3, random_state=seed)
    error = np.sqrt(np.mean((model.predict(everything(shape)) - 3.0) ** 2))
    # Least squares with 480 parameters on 19200 values errs by sqrt(480 / 19200) = .158,
    # at the least; all that is left here is a part of the biases' 120 parameters, .079.
    assert error < 0.08
    assert not getattr(model, model._linear).any()
    # Relative standard deviation sqrt(2 / 19200) = .01, times five.
    assert model.noise_variance == pytest.approx(1.0, rel=0.05)


def test_rank_zero_shrinks_biases(seed):
    """A balanced table: the ridge regression of row means has a closed form."""
    rng = np.random.default_rng(seed)
    shape = (200, 10)
    truth = 2.0 * rng.standard_normal(200)
    where = everything(shape)
    values = 1.0 + truth[where[:, 0]] + rng.standard_normal(len(where))
    model = complete_cp(SortedEntries(where, shape), values, 0, max_iter=100, tol=1e-9)
    centred = values.reshape(shape).mean(axis=1) - model.mean - model.biases[1].mean()
    shrinkage = 10 / (10 + model.noise_variance / model.bias_prior_variances[0])
    np.testing.assert_allclose(model.biases[0], shrinkage * centred, atol=1e-5)
    # Relative standard deviations sqrt(2 / 200) = .1 and sqrt(2 / 1800) = .033, times five.
    assert model.bias_prior_variances[0] == pytest.approx(4.0, rel=0.5)
    assert model.noise_variance == pytest.approx(1.0, rel=0.17)
    assert model.rank == 0


@both
@pytest.mark.parametrize("value", [0.0, 0.1, -3e8])
def test_constant_values(complete, value):
    entries = SortedEntries(everything((4, 3, 2))[:20], (4, 3, 2))
    model = complete(entries, np.full(20, value), 2)
    np.testing.assert_allclose(model.predict(everything((4, 3, 2))), value, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(complete_cp, **TWO, rank=-1), "rank"),
        (partial(complete_cp, **TWO, rank=1, max_iter=0), "max_iter"),
        (partial(complete_cp, **TWO, rank=1, tol=-1.0), "tol"),
        (partial(complete_cp, **TWO, rank=1, noise_variance=-1.0), "noise_variance"),
        (partial(complete_cp, **{**TWO, "values": [1.0]}, rank=1), "values must have shape"),
        (partial(complete_cp, **{**TWO, "values": [1.0, np.nan]}, rank=1), "finite"),
        *((partial(complete_tucker, **TWO, ranks=ranks), "ranks")
          for ranks in ((1,), (0, 1), (3, 1))),
        (lambda: complete_cp(**TWO, rank=0).predict([[0, 2]]), "below shape"),
    ],
)  # fmt: skip
def test_wrong_parameters(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("rank", [1, 5])
def test_few_entries_and_more_components_than_rows(rank):
    coordinates = np.array([[0, 0, 0], [1, 1, 1], [2, 0, 1]])
    entries = SortedEntries(coordinates, (3, 2, 50))
    model = complete_cp(entries, [1.0, 2.0, 4.0], rank, max_iter=50, random_state=0)
    predictions = model.predict(everything((3, 2, 50)))
    assert np.isfinite(predictions).all()
    assert np.abs(predictions).max() < 10


def test_long_modes_use_products_only(seed):
    """Modes beyond the size where Gram matrices are formed."""
    shape = (700, 650, 3)
    factors, coordinates, _ = cp_problem(seed, shape, 2, 0.05)
    # Three numbers drawn twice may be all but parallel, or nothing: one component then.
    factors[2] = np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 0.5]])
    entries = SortedEntries(coordinates, shape)
    U, V, _ = mode_subspaces(
        entries, cp_values(factors, coordinates), [2, 2, 2], np.random.default_rng(seed)
    )
    for subspace, factor in ((U, factors[0]), (V, factors[1])):
        np.testing.assert_allclose(subspace.T @ subspace, np.eye(2), atol=1e-8)
        cosines = np.linalg.svd(subspace.T @ np.linalg.qr(factor)[0])[1]
        # Random vectors have cosines of sqrt(2 / 650) = .06.
        assert cosines.min() > 0.8


def test_core_is_fitted_by_least_squares(seed):
    shape = (12, 11, 10)
    rng = np.random.default_rng(seed)
    factors = [np.linalg.qr(rng.standard_normal((n, 2)))[0] for n in shape]
    core = rng.standard_normal((2, 2, 2))
    coordinates = observed(shape, 0.5, rng)
    entries = SortedEntries(coordinates, shape)
    dense = np.einsum("abc,ia,jb,kc->ijk", core, *factors)
    found = fit_core(entries, dense[tuple(coordinates.T)], factors, rng)
    # The ridge is a share 8 / 660 of the mean eigenvalue: .012, twice that for the least.
    np.testing.assert_allclose(found, core, atol=0.04 * np.abs(core).max())


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (3, 3, 3), (2, 3, 2, 3)], ids=str)
def test_components_of_a_core(seed, shape):
    rng = np.random.default_rng([seed, *shape])
    factors = [rng.standard_normal((n, 2)) for n in shape]
    core = cp_values(factors, everything(shape)).reshape(shape)
    found = cp_values(core_components(core, 2, rng), everything(shape)).reshape(shape)
    assert np.linalg.norm(found - core) < 1e-2 * np.linalg.norm(core)


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
    rng = np.random.default_rng(seed)
    T = np.einsum("ir,jr,kr->ijk", *(rng.uniform(size=(n, 3)) for _ in range(3)))
    X = np.argwhere(rng.random(T.shape) < 0.3)
    return T, X, T[tuple(X.T)]


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "n"), [(PrivateCPCompletion, 60), (PrivateTuckerCompletion, 30)])
def test_positive_factors_are_found(model, n, seed):
    """Medians of five tensors: one in twenty has a local minimum, with a part of the biases."""
    found = []
    for number in range(5):
        T, X, y = positive([seed, number], n)
        options = {"bounds": (0, 3), "shape": T.shape, "random_state": number}
        exact, noisy = (
            model(3, epsilon=epsilon, perturbation="input", **options).fit(X, y)
            for epsilon in (INF, 20.0)
        )
        errors = (np.sqrt(np.mean((of.complete() - T) ** 2)) / T.std() for of in (exact, noisy))
        found.append([exact.n_iter_, *errors])
    n_iter, error, with_noise = np.median(found, axis=0)
    # Plain sweeps take 600 and more, since biases and components trade places slowly.
    assert n_iter < 300
    assert error < 0.002
    assert with_noise < 0.02


@pytest.mark.parametrize("model", [PrivateCPCompletion, PrivateTuckerCompletion])
def test_too_few_sweeps_warn(model, monkeypatch):
    T, X, y = positive(0, 20)
    few = model(3, bounds=(0, 3), shape=T.shape, epsilon=INF, max_iter=5)
    sweeps, sweep = [], Posterior.sweep
    monkeypatch.setattr(Posterior, "sweep", lambda self: sweeps.append(self) or sweep(self))
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        few.fit(X, y)
    assert few.n_iter_ == len(sweeps) > 5


@both
@pytest.mark.parametrize(
    ("size", "noise_variance"),
    [
        *((5e-324, 1e300), (1e-170, 1e-300), (1e-90, 1.0), (1e200, 1e-20)),
        *(
            pytest.param(*of, marks=pytest.mark.nightly)
            for of in product((5e-324, 1e-170, 1e-90, 1e200), (1e-300, 1e-20, 1.0, 1e300))
        ),
    ],
)
def test_values_of_any_size_beside_any_known_noise_have_a_model(complete, size, noise_variance):
    coordinates = np.argwhere(np.ones((5, 4)))
    entries = SortedEntries(coordinates, (5, 4))
    values = size * np.random.default_rng(0).choice([-1.0, 1.0], len(coordinates))
    model = complete(entries, values, 1, noise_variance=noise_variance, random_state=0)
    assert np.isfinite(model.predict(coordinates)).all()
    assert model.noise_variance >= 0.99 * noise_variance


@pytest.mark.parametrize("scale", [1e-320, 1e-250, 1e160, 1e300])
@pytest.mark.parametrize("kind", ["cp", "tucker"])
def test_values_of_any_scale_have_the_completion_of_usual_ones(kind, scale):
    rng = np.random.default_rng(0)
    coordinates = np.argwhere(rng.random((6, 5, 4)) < 0.8)
    values = 5 + rng.standard_normal(len(coordinates))
    entries = SortedEntries(coordinates, (6, 5, 4))
    complete = {
        "cp": lambda y: complete_cp(entries, y, 2, random_state=0),
        "tucker": lambda y: complete_tucker(entries, y, (2, 2, 2), random_state=0),
    }[kind]
    usual = complete(values).predict(coordinates)
    # Numbers of 1e-320 have three digits and a half.
    np.testing.assert_allclose(
        complete(values * scale).predict(coordinates) / scale, usual,
        rtol=1e-3 if scale < 1e-300 else 1e-6,
    )  # fmt: skip


def test_noise_of_a_matrix_is_shrunk_alike_by_both_forms():
    rng = np.random.default_rng(0)
    observed = np.argwhere(rng.random((300, 30)) < 0.6)
    entries = SortedEntries(observed, (300, 30))
    u, v = rng.standard_normal(300), rng.standard_normal(30)
    truth = u[observed[:, 0]] * v[observed[:, 1]]
    y = truth + 3.0 * rng.standard_normal(len(truth))
    options = {"noise_variance": 9.0, "random_state": 0}
    found = complete_tucker(entries, y, (2, 2), **options).predict(observed)
    np.testing.assert_allclose(found, complete_cp(entries, y, 2, **options).predict(observed))
    assert np.mean((found - truth) ** 2) < 0.5 * np.mean(truth**2)
