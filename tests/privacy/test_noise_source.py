"""Where randomness comes from, and the grid that releases lie on."""

import contextvars
import itertools
import math
import secrets
import threading
from collections.abc import Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
from internals import generator_of, words_of
from seeded_sources import same_noise

from sktensor_dp import PrivacyLeakWarning, unsafe_seeded_noise
from sktensor_dp.privacy.noise_sampler import GAUSSIAN_DENSITY, LAPLACE_DENSITY, rounded_samples
from sktensor_dp.privacy.noise_source import LARGEST_INDEX, ROUNDING_COST, Grid, NoiseSource

LAWS = ("gaussian", "laplace", "spherical_laplace")


def test_seeded_noise_is_reproducible_flagged_and_differs_between_fits(seed):
    def two_fits() -> np.ndarray:
        with pytest.warns(PrivacyLeakWarning, match="not private"), unsafe_seeded_noise(seed):
            sources = NoiseSource(), NoiseSource()
        assert all(source.exposed for source in sources)
        return np.array([source.gaussian(np.zeros(20), 1.0) for source in sources])

    found = two_fits()
    assert not np.any(found[0] == found[1])
    assert np.array_equal(found, two_fits())
    assert not NoiseSource().exposed


def test_seeding_ends_with_its_block_even_after_errors_and_warns_the_caller():
    leak, wrong_key = pytest.warns(PrivacyLeakWarning), pytest.raises(KeyError)
    with leak as caught, wrong_key, unsafe_seeded_noise(1):
        raise KeyError
    assert caught[0].filename == __file__
    assert not NoiseSource().exposed
    for wrong in (-1, 1.5, "1", None):
        with pytest.raises(ValueError, match="seed must be"), unsafe_seeded_noise(wrong):  # type: ignore[arg-type]
            pass


def test_generator_is_chacha20_under_a_key_of_256_bits(monkeypatch):
    asked = []
    monkeypatch.setattr(secrets, "randbits", lambda bits: asked.append(bits) or 0)
    stream = generator_of(NoiseSource()).bit_generator.random_raw(4).astype("<u8").tobytes()
    # Key stream of ChaCha20 for the all-zero key, nonce and counter (RFC 8439, A.1, vector 1).
    known = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    assert (stream.hex(), asked) == (known, [256])


def test_every_bit_of_the_key_and_every_seed_matters(monkeypatch):
    drawn = [same_noise(seed=seed) for seed in range(200)]
    for bit in range(256):
        monkeypatch.setattr(secrets, "randbits", lambda bits, bit=bit: 1 << bit)
        drawn.append(NoiseSource())
    assert len({source.standard_normal(1)[0] for source in drawn}) == 456


def in_a_block(block: Any) -> Iterator[None]:
    with block:
        yield


@pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning")
def test_blocks_that_are_left_in_another_order_end_all_the_same():
    """Of generators, each of which is left when it goes on: the noise must not stay seeded."""
    for order in itertools.permutations(range(3)):
        blocks = [in_a_block(unsafe_seeded_noise(seed)) for seed in range(3)]
        for block in blocks:
            next(block)
        for place, left in enumerate(order):
            assert NoiseSource().exposed
            blocks[left].close()
            assert NoiseSource().exposed == (place < 2)


@pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning")
def test_blocks_that_are_left_in_another_thread_end_where_they_were_entered():
    block = in_a_block(unsafe_seeded_noise(0))
    next(block)
    inherited = contextvars.copy_context()
    assert inherited.run(lambda: NoiseSource().exposed)
    thread = threading.Thread(target=block.close)
    thread.start()
    thread.join()
    assert not NoiseSource().exposed
    # Nor in what was begun inside, as a task of asyncio is.
    assert not inherited.run(lambda: NoiseSource().exposed)


@pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning")
def test_the_seed_of_an_outer_block_counts_again_after_an_inner_one():
    def drawn() -> int:
        return int(NoiseSource().integers(2**63, 1)[0])

    with unsafe_seeded_noise(1):
        alone = [drawn(), drawn()]
    with unsafe_seeded_noise(1):
        first = drawn()
        with unsafe_seeded_noise(2):
            assert drawn() not in alone
        assert [first, drawn()] == alone


def grid_of(law: str, strength: float, size: int) -> Grid:
    """The grid of a release, from public numbers."""
    roots = {"laplace": size, "spherical_laplace_rows": size / math.sqrt(3)}  # in rows of three
    return NoiseSource().grid(1 / strength, roots.get(law, math.sqrt(size)))


@pytest.mark.parametrize("steps", [1.0, 14.8, 100.0, 2.0**20])
@pytest.mark.parametrize("scale", [1e-4, 0.3, 1.0, 3.7, 1e5])
def test_noise_pays_for_the_covering_diameter(scale, steps):
    grid = NoiseSource().grid(scale, steps)
    # A power of two of steps, exactly.
    assert grid.step * 2**grid.bits == grid.scale
    # No less than proved, and no more than rounding errors above it.
    needed = mpmath.mpf(scale) * (1 + mpmath.mpf(grid.step) * mpmath.mpf(steps))
    assert 1 < grid.scale / needed < 1 + 1e-14
    # As fine as promised, and no finer than needed.
    assert ROUNDING_COST / 4 < grid.step * steps / min(scale, 1) <= ROUNDING_COST * (1 + 1e-9)


def test_grid_is_as_fine_as_it_can_be_where_it_cannot_be_fine_enough():
    grid = NoiseSource().grid(1e6, 1e8)
    assert grid.bits == 51
    assert 0.04 < 1e8 * grid.step < 0.05
    assert grid.scale == pytest.approx(1e6 * (1 + 1e8 * grid.step), rel=1e-14)
    with pytest.raises(ValueError, match="has no grid fine enough for 1e\\+10 steps"):
        NoiseSource().grid(1e6, 1e10)


def steps_of(released: np.ndarray, grid: Grid) -> np.ndarray:
    """Which point of the grid each number is; fails unless it is one to the last bit."""
    steps = np.rint(released / grid.step)
    assert np.array_equal(steps * grid.step, released)
    return steps.astype(np.int64)


@pytest.mark.parametrize(
    ("law", "sampled"), [("gaussian", GAUSSIAN_DENSITY), ("laplace", LAPLACE_DENSITY)]
)
@pytest.mark.parametrize("strength", [0.01, 1.0, 200.0])
def test_noise_is_the_exact_sample_of_the_scale_of_the_grid(law, sampled, strength):
    grid = grid_of(law, strength, 100)
    steps = rounded_samples(sampled, 100, grid.bits, words_of(same_noise()))
    released = getattr(same_noise(), law)(np.zeros(100), strength)
    assert np.array_equal(steps_of(released, grid), steps)


@pytest.mark.parametrize("law", [*LAWS, "spherical_laplace_rows"])
@pytest.mark.parametrize("strength", [0.01, 1.0, 30.0])
def test_release_is_rounded_statistic_plus_noise_on_the_grid(law, strength):
    """A public step: of rows, that of the diameter of all rows."""
    shape = (100, 3) if law == "spherical_laplace_rows" else (300,)
    grid = grid_of(law, strength, 300)

    def released(value: np.ndarray) -> np.ndarray:
        return steps_of(getattr(same_noise(), law)(value, strength), grid)

    rng, noise = np.random.default_rng(1), released(np.zeros(shape))
    index = rng.integers(-(10**9), 10**9, shape)
    within = rng.uniform(-0.499, 0.499, shape)
    for offset in (0.0, within, -within):
        # Digits below the step leave no trace at all.
        assert np.array_equal(released((index + offset) * grid.step), index + noise)
    assert np.array_equal(released((index + 1) * grid.step), index + 1 + noise)


@pytest.mark.parametrize("strength", [0.5, 8.0])
def test_spherical_noise_pays_for_the_covering_diameter(strength):
    grid = grid_of("spherical_laplace", strength, 400)
    released = same_noise().spherical_laplace(np.zeros(400), strength)
    again = same_noise()
    direction = again.standard_normal(400)
    norm = generator_of(again).standard_gamma(400) * grid.scale
    expected = direction / np.linalg.norm(direction) * norm
    assert np.abs(released - expected).max() < 0.5001 * grid.step
    # Without what it pays it would be another point of the grid in places.
    assert np.abs(released - expected / (1 + 20 * grid.step)).max() > grid.step


@pytest.mark.parametrize("law", LAWS)
def test_extreme_values_are_clipped_not_refused(law):
    def released(size: float) -> np.ndarray:
        return getattr(same_noise(), law)(np.array([size, -size, 0.0, 1.0]), 1.0)

    bound = LARGEST_INDEX * grid_of(law, 1.0, 4).step
    assert np.array_equal(released(1e300), released(bound))
    assert np.array_equal(released(1.7e308), released(bound))
    assert np.array_equal(released(1e300)[2:], released(1.0)[2:])
    assert not np.array_equal(released(bound / 2), released(bound))
