"""Noise of the mechanisms: where it is added, in which geometry and memory."""

import math
import tracemalloc
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from contracts.rows_of_laws import ISOTROPIC, projected
from seeded_sources import same_noise

from sktensor_dp.privacy import noise
from sktensor_dp.privacy.mechanisms import (
    Mechanism,
    gaussian_matrix,
    gaussian_pair_masses,
    gaussian_symmetric,
    gaussian_vector,
    laplace_pair_masses,
    laplace_vector,
    spherical_laplace_symmetric,
)
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.plan import PrivacyCost

SENSITIVITY, STRENGTH = 0.3, 1.7

K = 10


def symmetric_value(order: int, k: int = K) -> np.ndarray:
    rng = np.random.default_rng(3)
    value = rng.standard_normal((k,) * order)
    return sum(value.transpose(axes) for axes in permutations(range(order)))


def test_pair_masses_are_weighted_by_1_unless_told() -> None:
    value = symmetric_value(2)
    for release in (gaussian_pair_masses, laplace_pair_masses):
        default = release(value.copy(), SENSITIVITY, STRENGTH, same_noise(11))
        told = release(value.copy(), SENSITIVITY, STRENGTH, same_noise(11), 1.0)
        assert np.array_equal(default, told)


def test_a_matrix_gets_what_its_coordinates_get() -> None:
    """To the last bit: where noise is added in place, and where coordinates are formed for it."""
    value = symmetric_value(2)
    in_place = gaussian_matrix(value.copy(), SENSITIVITY, STRENGTH, same_noise(11))
    by_coordinates = gaussian_symmetric(value, SENSITIVITY, STRENGTH, same_noise(11))
    assert np.array_equal(in_place, by_coordinates)


def test_projection_of_isotropic_noise_is_isotropic() -> None:
    whole = projected(ISOTROPIC, np.linalg.qr(np.random.default_rng(7).standard_normal((6, 3)))[0])
    np.testing.assert_allclose(whole @ whole.T, np.eye(10), atol=1e-12)


RELEASES: dict[str, Callable[[np.ndarray, NoiseSource, float], np.ndarray]] = {
    "gaussian_symmetric": lambda x, n, mu: gaussian_symmetric(x, SENSITIVITY, mu, n),
    # These work in the memory of what they are given.
    "gaussian_matrix": lambda x, n, mu: gaussian_matrix(x.copy(), SENSITIVITY, mu, n),
    "gaussian_pair_masses": lambda x, n, mu: gaussian_pair_masses(x.copy(), SENSITIVITY, mu, n),
    "laplace_pair_masses": lambda x, n, mu: laplace_pair_masses(x.copy(), SENSITIVITY, mu, n),
    "gaussian_vector": lambda x, n, mu: gaussian_vector(x, SENSITIVITY, mu, n),
    "laplace_vector": lambda x, n, mu: laplace_vector(x, SENSITIVITY, mu, n),
    "spherical_laplace_symmetric": lambda x, n, mu: spherical_laplace_symmetric(
        x, SENSITIVITY, mu, n
    ),
}


@pytest.mark.parametrize("name", RELEASES)
def test_statistics_are_kept_and_returned_without_noise_where_none_is_asked(name: str) -> None:
    value = symmetric_value(2)
    kept = value.copy()
    RELEASES[name](value, NoiseSource(), STRENGTH)
    assert np.array_equal(value, kept)
    exact = RELEASES[name](value, NoiseSource(), math.inf)
    np.testing.assert_allclose(exact, value, rtol=1e-12)


@pytest.mark.parametrize("name", RELEASES)
def test_digits_below_the_step_leave_no_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Halves of steps move no statistic that lies on the grid, as zero does.
    base = np.zeros((K, K))
    moved = base + 1e-9
    first = RELEASES[name](base, same_noise(11), STRENGTH)
    second = RELEASES[name](moved, same_noise(11), STRENGTH)
    assert np.array_equal(first, second)
    # They do where the same noise is added to what was not rounded.
    monkeypatch.setattr(noise, "_on_grid", lambda x, steps, grid: x + steps * grid.step)
    leaky = [RELEASES[name](x, same_noise(11), STRENGTH) for x in (base, moved)]
    assert not np.array_equal(*leaky)


def test_mechanism_reads_its_part_of_the_cost() -> None:
    seen = []

    def law(value: object, sensitivity: float, strength: float, noise: object, *geometry: object):
        seen.append((sensitivity, strength, *geometry))
        return value

    cost = PrivacyCost(mu=0.5, epsilon=0.25)
    gaussian = Mechanism("g", "l2", law, of_query=("imag",))
    pure = Mechanism("p", "l1", law, pure=True)
    assert gaussian.sigma(2.0, cost) == 4.0
    assert pure.sigma(2.0, cost) == pytest.approx(8.0 * math.sqrt(2))
    assert Mechanism("s", "l2", law, pure=True).sigma(2.0, cost) == 8.0
    gaussian.release(np.zeros(1), 2.0, cost, NoiseSource(), 7j)
    pure.release(np.zeros(1), 3.0, cost, NoiseSource(), 7j)
    assert seen == [(2.0, 0.5, 7.0), (3.0, 0.25)]
    assert gaussian.sigma(2.0, PrivacyCost(mu=math.inf)) == 0


@pytest.mark.parametrize("law", [gaussian_pair_masses, laplace_pair_masses])
@pytest.mark.parametrize("at_once", [1, 700, 4000])
def test_noise_in_place_is_that_of_the_whole(
    law: Callable[..., np.ndarray], at_once: int, cache_of: Callable[[int], None]
) -> None:
    """Every pair is on the grid of all pairs and has noise of its own, and nothing stays."""
    d, weight = 270, 0.25  # matrices are mirrored in squares of 256
    rng = np.random.default_rng(0)
    value = rng.normal(size=(d, d))
    value += value.T
    cache_of(4 * at_once)
    taken = value.copy()
    released = law(taken, SENSITIVITY, STRENGTH, same_noise(), weight)
    assert released is taken
    np.testing.assert_array_equal(released, released.T)
    turned = np.asfortranarray(value)
    by_columns = law(turned, SENSITIVITY, STRENGTH, same_noise(), weight)
    assert by_columns.flags.c_contiguous
    assert np.shares_memory(by_columns, turned)
    np.testing.assert_array_equal(by_columns, released)
    size = d * (d + 1) // 2
    diameter = math.sqrt(size) if law is gaussian_pair_masses else size
    step = same_noise().grid(1 / STRENGTH, diameter).step
    masses = released * 2 / SENSITIVITY
    masses[np.diag_indices(d)] *= weight / 2
    places = masses / step
    np.testing.assert_allclose(places, np.rint(places), rtol=1e-15, atol=1e-6)
    noise = (masses - np.where(np.eye(d), weight, 2) * value / SENSITIVITY)[np.triu_indices(d)]
    assert len(np.unique(noise.round(9))) == size
    # 45 draws of either law, of deviation 1 or sqrt(2) of the scale: from a half to twice that.
    assert 0.5 < noise.std() * STRENGTH < 3


@pytest.mark.parametrize("law", [gaussian_matrix, gaussian_pair_masses, laplace_pair_masses])
def test_noise_in_place_takes_a_few_megabytes(law: Callable[..., np.ndarray]) -> None:
    """Beside 32 MB: places, coordinates and noise of one piece, of 1 MB each."""
    value = np.zeros((2000, 2000))
    law(value[:9, :9].copy(), SENSITIVITY, STRENGTH, NoiseSource())  # tables of the law
    tracemalloc.start()
    law(value, SENSITIVITY, STRENGTH, NoiseSource())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20
