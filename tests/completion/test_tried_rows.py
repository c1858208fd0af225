"""Some rows are asked for their values first, and the rest by what these show of components."""

import numpy as np
import pytest

from sktensor_dp import PrivateCPCompletion, PrivateTuckerCompletion, unsafe_seeded_noise
from sktensor_dp.completion.plan import plan_completion
from sktensor_dp.statistics.observed_entries import IndexSet
from sktensor_dp.tensor.row_effects import fit_row_sums

pytestmark = pytest.mark.filterwarnings(
    "ignore::sktensor_dp.PrivacyLeakWarning", "ignore::sktensor_dp.NotEnoughDataWarning"
)

SHAPE, EPSILON = (6000, 30), 3.0


def table(seed, size):
    """Biases of a tenth of the width, noise of a fifth, and two components: to fit, and others."""
    rng = np.random.default_rng(seed)
    X = np.argwhere(rng.random(SHAPE) < 0.8)
    people, items = X.T
    y = 0.1 * (rng.standard_normal(SHAPE[0])[people] + rng.standard_normal(SHAPE[1])[items])
    for _ in range(2):
        y += size * rng.standard_normal(SHAPE[0])[people] * rng.standard_normal(SHAPE[1])[items]
    y = np.clip(y + 0.2 * rng.standard_normal(len(X)), -0.5, 0.5)
    test = rng.random(len(X)) < 0.1
    return (X[~test], y[~test]), (X[test], y[test])


def fitted(data, seed, kind=PrivateCPCompletion, **options):
    model = kind(
        3, bounds=(-0.5, 0.5), shape=SHAPE, epsilon=EPSILON, random_state=seed, **options
    )  # fmt: skip
    with unsafe_seeded_noise(seed):
        return model.fit(*data)


def error(model, test):
    return float(np.sqrt(np.mean((model.predict(test[0]) - test[1]) ** 2)))


def asked(model):
    return [row.name for row in model.privacy_report_.rows]


@pytest.mark.parametrize("kind", [PrivateCPCompletion, PrivateTuckerCompletion])
def test_where_there_is_nothing_predictions_are_nearly_those_of_sums(kind, seed):
    data, test = table(seed, 0.0)
    model = fitted(data, seed, kind)
    assert asked(model) == ["entries", "row_sums", "entry_pairs"]
    assert model.perturbation_ == "sufficient_statistics"
    sums = fitted(data, seed, perturbation="sufficient_statistics", max_iter=0)
    assert error(model, test) < 1.008 * error(sums, test)


def test_where_there_are_components_all_values_are_asked(seed):
    data, test = table(seed, 0.1)
    model = fitted(data, seed)
    assert asked(model) == ["entries", "entries"]
    assert model.perturbation_ == "input"
    sums = fitted(data, seed, perturbation="sufficient_statistics", max_iter=0)
    assert error(model, test) < 0.97 * error(sums, test)


def test_a_rare_way_to_ask_is_planned_by_public_numbers():
    def tried(n_observed, shape, epsilon, rank=3, **changed):
        known = {"delta": 1e-6, "perturbation": "auto", "max_iter": None, **changed}
        return plan_completion(n_observed, shape, rank, epsilon=epsilon, **known).tried

    many = 1_600_000, (25_000, 100)
    assert tried(*many, 2.0) == 12
    assert 4 <= tried(130_000, SHAPE, EPSILON) < 12
    # Noise of values costs little; they show too little; sums are taken anyway; nothing is chosen.
    assert tried(*many, 5.0) == tried(*many, 10.0) == tried(*many, np.inf) == 0
    assert tried(90_000, (943, 1682), 3.0) == 0
    assert tried(*many, 1.0) == 0
    assert tried(*many, 2.0, rank=0) == tried(*many, 2.0, max_iter=3) == 0
    assert tried(*many, 2.0, perturbation="input") == 0


def test_sums_with_noise_of_their_own_count_by_it(seed):
    """Equal variances given row by row are one; sums of nothing but noise are not followed."""
    rng = np.random.default_rng(seed)
    places = IndexSet(np.argwhere(rng.random((40, 6)) < 0.7), (40, 6))
    weights = places.balanced_weights(0.5)
    values = rng.standard_normal(40)[places.rows(0)]
    sums = [places.sums(m, weights[:, m] * values) for m in range(2)]
    noisy = [one + rng.standard_normal(len(one)) for one in sums]
    given = places, noisy, list(weights.T)
    one = fit_row_sums(*given, 1.0, 1e-3)
    each = fit_row_sums(*given, [np.ones(40), np.ones(6)], 1e-3)
    np.testing.assert_array_equal(one.biases[0], each.biases[0])
    noise = np.where(np.arange(40) < 20, 1e12, 1.0)
    found = fit_row_sums(*given, [noise, np.ones(6)], 1e-3)
    # Next to nothing is believed of a sum of which the noise is a million deviations.
    assert np.abs(found.biases[0][:20]).max() < 1e-6 < np.abs(found.biases[0][20:]).max()
    with pytest.raises(ValueError, match="noise_variance"):
        fit_row_sums(*given, [noise, np.full(6, -1.0)], 1.0)
