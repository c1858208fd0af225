"""The grid that releases lie on: its step, what it costs, and that it hides digits below."""

import math

import mpmath
import numpy as np
import pytest
from internals import generator_of, words_of
from seeded_sources import same_noise

from sktensor_dp.privacy.noise import DIAMETER, LARGEST_INDEX, Grid, NoiseSource
from sktensor_dp.privacy.sampling import GAUSSIAN, LAPLACE, Law, rounded_samples

LAWS = ("gaussian", "laplace", "spherical_laplace")


def grid_of(law: str, strength: float, size: int) -> Grid:
    """The grid of a release, from public numbers."""
    root = size if law == "laplace" else math.sqrt(size)
    return NoiseSource().grid(1 / strength, root)


@pytest.mark.parametrize("steps", [1.0, 14.8, 100.0, 2.0**20])
@pytest.mark.parametrize("scale", [1e-4, 0.3, 1.0, 3.7, 1e5])
def test_noise_pays_for_the_covering_diameter(scale: float, steps: float) -> None:
    grid = NoiseSource().grid(scale, steps)
    # A power of two of steps, exactly.
    assert grid.step * 2**grid.bits == grid.scale
    assert grid.diameter == pytest.approx(grid.step * steps, rel=1e-15)
    # No less than proved, and no more than rounding errors above it.
    needed = mpmath.mpf(scale) * (1 + mpmath.mpf(grid.step) * mpmath.mpf(steps))
    assert 1 < grid.scale / needed < 1 + 1e-14
    # As fine as promised, and no finer than needed.
    assert DIAMETER / 4 < grid.diameter / min(scale, 1) <= DIAMETER * (1 + 1e-9)


def test_grid_is_as_fine_as_it_can_be_where_it_cannot_be_fine_enough() -> None:
    grid = NoiseSource().grid(1e6, 1e8)
    assert grid.bits == 51
    assert 0.04 < grid.diameter < 0.05
    assert grid.scale == pytest.approx(1e6 * (1 + grid.diameter), rel=1e-14)
    with pytest.raises(ValueError, match="has no grid fine enough for 1e\\+10 steps"):
        NoiseSource().grid(1e6, 1e10)


def steps_of(released: np.ndarray, grid: Grid) -> np.ndarray:
    """Which point of the grid each number is; fails unless it is one to the last bit."""
    steps = np.rint(released / grid.step)
    assert np.array_equal(steps * grid.step, released)
    return steps.astype(np.int64)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("strength", [0.01, 1.0, 200.0])
def test_released_values_lie_on_a_grid_of_public_step(law: str, strength: float) -> None:
    for scale in (0.0, 1e-9, 1.0, 1e6):
        value = scale * np.random.default_rng(0).standard_normal(100)
        steps_of(getattr(NoiseSource(), law)(value, strength), grid_of(law, strength, 100))


@pytest.mark.parametrize("strength", [0.01, 1.0, 30.0])
def test_noise_of_rows_pays_for_the_diameter_of_all_rows(strength: float) -> None:
    released = NoiseSource().spherical_laplace_rows(np.zeros((1000, 3)), strength)
    steps_of(released, NoiseSource().grid(1 / strength, 1000 * math.sqrt(3)))


@pytest.mark.parametrize(("law", "sampled"), [("gaussian", GAUSSIAN), ("laplace", LAPLACE)])
@pytest.mark.parametrize("strength", [0.01, 1.0, 200.0])
def test_noise_is_the_exact_sample_of_the_scale_of_the_grid(
    law: str, sampled: Law, strength: float
) -> None:
    grid = grid_of(law, strength, 100)
    steps = rounded_samples(sampled, 100, grid.bits, words_of(same_noise()))
    released = getattr(same_noise(), law)(np.zeros(100), strength)
    assert np.array_equal(steps_of(released, grid), steps)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("strength", [0.01, 1.0, 200.0])
def test_release_is_rounded_statistic_plus_noise_on_the_grid(law: str, strength: float) -> None:
    def released(value: np.ndarray) -> np.ndarray:
        return steps_of(getattr(same_noise(), law)(value, strength), grid)

    size = 100
    grid = grid_of(law, strength, size)
    rng = np.random.default_rng(1)
    index = rng.integers(-(10**9), 10**9, size)
    noise = released(np.zeros(size))
    within = rng.uniform(-0.499, 0.499, size)
    for offset in (0.0, within, -within):
        # Digits below the step leave no trace at all.
        assert np.array_equal(released((index + offset) * grid.step), index + noise)
    assert np.array_equal(released((index + 1) * grid.step), index + 1 + noise)


@pytest.mark.parametrize("strength", [0.5, 8.0])
def test_spherical_noise_pays_for_the_covering_diameter(strength: float) -> None:
    grid = grid_of("spherical_laplace", strength, 400)
    released = same_noise().spherical_laplace(np.zeros(400), strength)
    again = same_noise()
    direction = again.standard_normal(400)
    norm = generator_of(again).standard_gamma(400) * grid.scale
    expected = direction / np.linalg.norm(direction) * norm
    assert np.abs(released - expected).max() < 0.5001 * grid.step
    # Without what it pays it would be another point of the grid in places.
    assert np.abs(released - expected / (1 + grid.diameter)).max() > grid.step


@pytest.mark.parametrize("law", LAWS)
def test_extreme_values_are_clipped_not_refused(law: str) -> None:
    def released(size: float) -> np.ndarray:
        return getattr(same_noise(), law)(np.array([size, -size, 0.0, 1.0]), 1.0)

    bound = LARGEST_INDEX * grid_of(law, 1.0, 4).step
    assert np.array_equal(released(1e300), released(bound))
    assert np.array_equal(released(1.7e308), released(bound))
    assert np.array_equal(released(1e300)[2:], released(1.0)[2:])
    assert not np.array_equal(released(bound / 2), released(bound))
