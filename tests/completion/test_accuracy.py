"""Errors that completions have, and at which epsilon; predicting the mean fails every test.

Noise is drawn by the test's seed: at one seed nothing here is left to chance.
"""

import numpy as np
import pytest
from small_completions import PERTURBATIONS, table

from sktensor_dp import PrivateCPCompletion, PrivateTuckerCompletion, unsafe_seeded_noise

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.usefixtures("seeded_noise"),
]
INF = float("inf")
MODELS = {"cp": PrivateCPCompletion, "tucker": PrivateTuckerCompletion}
GENEROUS = {"output": {"epsilon": 20.0}, "gradient": {"epsilon": 300.0, "max_iter": 30}}


def gappy(T, share, rng):
    return np.where(rng.random(T.shape) < share, T, np.nan)


def synthetic(kind, shape, seed, rank=3):
    """Unit variance, no noise; a diagonal core or a full one."""
    rng = np.random.default_rng(seed)
    factors = [rng.standard_normal((n, rank)) for n in shape]
    core = rng.standard_normal((rank,) * len(shape))
    if kind == "cp":
        core = np.zeros_like(core)
        core[(np.arange(rank),) * len(shape)] = 1.0
    T = core
    for mode, factor in enumerate(factors):
        T = np.moveaxis(np.tensordot(factor, T, axes=(1, mode)), 0, mode)
    return T / T.std()


def biased(shape, seed):
    rng = np.random.default_rng(seed)
    T = 0.7 * (rng.standard_normal((shape[0], 1, 1)) + rng.standard_normal((shape[1], 1)))
    return T + 0.7 * rng.standard_normal(shape)


def relative_error(estimator, T):
    """Root mean square error over that of the best constant: 1 is the mean itself."""
    return float(np.sqrt(np.mean((estimator.complete() - T) ** 2)) / T.std())


def fitted(kind, T, seed, share=0.8, rank=3, **parameters):
    rng = np.random.default_rng(1000 + seed)
    options = {"bounds": (-6, 6), "random_state": seed, **parameters}
    return MODELS[kind](rank, **options).fit_tensor(gappy(T, share, rng))


# Few values of a product of three Gaussians lie beyond 6 deviations; clamping them costs
# up to .1, and the noise of the law at epsilon = 10 less than that.
@pytest.mark.parametrize(("epsilon", "most"), [(10.0, 0.35), (20.0, 0.25)])
@pytest.mark.parametrize("kind", MODELS)
def test_components_through_noisy_values(kind, epsilon, most, seed):
    T = synthetic(kind, (30, 30, 30), seed)
    assert relative_error(fitted(kind, T, seed, epsilon=epsilon), T) < most


# Mean and biases explain two thirds of the variance, so that the best error is .58. Rows have
# 900 values: noise on a bias is far below its deviation of .7.
BIASES = [
    ("auto", {"epsilon": 0.5}, 0.8),
    ("auto", {"epsilon": 0.5, "delta": 0}, 0.8),
    ("gradient", {"epsilon": 10.0, "max_iter": 10}, 0.75),
    ("sufficient_statistics", {"epsilon": 10.0}, 0.75),
    ("output", {"epsilon": 10.0}, 0.75),
]


@pytest.mark.parametrize(("perturbation", "options", "most"), BIASES)
def test_all_perturbations_release_biases(perturbation, options, most, seed):
    T = biased((30, 30, 30), seed)
    found = fitted("cp", T, seed, perturbation=perturbation, **options)
    assert perturbation != "auto" or found.perturbation_ == "sufficient_statistics"
    assert relative_error(found, T) < most


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("perturbation", GENEROUS)
def test_other_perturbations_find_a_component(perturbation, kind, seed):
    T = synthetic(kind, (30, 25, 20), seed, rank=1)
    options = {"perturbation": perturbation, **GENEROUS[perturbation]}
    if (perturbation, kind) == ("gradient", "tucker"):
        # With a core beside the factors a start at random may fall to zero under any noise.
        options["epsilon"] = INF
    assert relative_error(fitted(kind, T, seed, rank=1, **options), T) < 0.8


@pytest.mark.filterwarnings("ignore:noise is seeded")
def test_copies_of_a_persons_entries_change_nothing(seed):
    """As bagging makes them: an entry that is there four times is one."""
    rng, X = np.random.default_rng(seed), np.argwhere(np.ones((30, 20)))
    y = rng.uniform(-4, 4, len(X))
    kept = rng.random(len(X)) < 0.5
    whole = np.concatenate([X] + 3 * [X[kept]]), np.concatenate([y] + 3 * [y[kept]])
    model = PrivateCPCompletion(0, bounds=(-4, 4), shape=(30, 20), unit_mode=0, epsilon=4.0)
    found = []
    for data in ((X, y), whole):
        with unsafe_seeded_noise(seed):
            found.append(model.fit(*data).complete())
    np.testing.assert_array_equal(*found)


@pytest.mark.filterwarnings("ignore:Values of one person differ by less")  # none may be clamped
@pytest.mark.parametrize("unit_mode", [None, 0])
def test_equal_coordinates(unit_mode, seed):
    """Each value counts: the mean of two is what is fitted."""
    rng, X = np.random.default_rng(seed), np.argwhere(np.ones((30, 20)))
    T = rng.standard_normal(30)[X[:, 0]] + rng.standard_normal(20)[X[:, 1]]
    noise = rng.choice([-2.0, 2.0], len(X))
    parameters = {"bounds": (-9, 9), "epsilon": INF, "shape": (30, 20), "unit_mode": unit_mode}
    model = PrivateCPCompletion(0, **parameters)
    both, repeated = np.concatenate([T + noise, T - noise]), None if unit_mode == 0 else "distinct"
    twice = model.fit(np.tile(X, (2, 1)), both, repeated=repeated).complete()
    once, alone = (model.fit(X, values).complete() for values in (T, T + noise))
    if unit_mode == 0:
        # They belong to one unit, which has one value there. Clips of least error are found
        # to 1e-5, and biases of clipped residuals hardly depend on them.
        np.testing.assert_allclose(twice, once, atol=1e-6)
    else:
        # What remains is shrinkage, by 4 / 40 of a variance of 1 at most: .15 of T's deviation.
        assert np.sqrt(np.mean((twice - once) ** 2)) < 0.2 * T.std()
        assert np.sqrt(np.mean((alone - once) ** 2)) > 0.2 * T.std()


WAYS = {
    **{f"entries, {way}": {"perturbation": way} for way in PERTURBATIONS},
    "persons": {"unit_mode": 0}, "persons, pure": {"unit_mode": 0, "delta": 0.0},
    "persons, exact": {"unit_mode": 0, "epsilon": INF},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning")
@pytest.mark.parametrize(
    ("kind", "way"),  # what persons share is the same for both kinds
    [("cp", way) for way in WAYS] + [("tucker", way) for way in WAYS if "persons" not in way],
)
def test_units_of_measurement_do_not_matter(kind, way):
    """Powers of two, by which numbers scale exactly but for logarithms: floors of values show."""
    X, y, _ = table((60, 6, 5))
    y = np.clip(y, -4, 4)

    def at_width(width):
        options = {"bounds": (-4 * width, 4 * width), "shape": (60, 6, 5), "random_state": 0}
        model = MODELS[kind](2, **{"epsilon": 8.0, **options, **WAYS[way]})
        with unsafe_seeded_noise(1):
            model.fit(X, width * y)
        own = model.fold_in(X, width * y).predict(X)
        parts = [model.predict(X), own, [model.mean_], *model.biases_]
        return np.concatenate([*parts, *model.bias_errors_]) / width

    np.testing.assert_allclose(at_width(2.0**-165), at_width(2.0**164), atol=1e-6)
