"""The laws of the noise, and where the randomness comes from.

Thresholds are set so that the right law passes but for one seed in a million, and a
scale wrong by 3 % fails but for one in a million: for a statistic with relative
standard error ``s`` that takes ``0.03 / s >= 4.9 + 4.8``.
"""

import contextvars
import itertools
import math
import random
import secrets
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import gammainc, kolmogi
from seeded_sources import same_noise

from sktensor_dp import PrivacyLeakWarning, config_context, unsafe_seeded_noise
from sktensor_dp.privacy.noise import NoiseSource

Z = 4.9  # two-sided 1e-6 point of the normal
# 1 / sqrt(2 n) = 0.0016 for a normal's scale: 3 % are 19 standard errors. Added
# sensitivity for the grid, at most 0.024 %, is 0.15 of one.
N = 200_000
LAWS = ("gaussian", "laplace", "spherical_laplace")


@pytest.fixture
def seeded(seed: int) -> Iterator[None]:
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        yield


def assert_scale(squares: np.ndarray, relative_error_of_one: float) -> None:
    """Mean of squares (or other scale statistics) is 1, given one sample's standard deviation."""
    assert abs(squares.mean() - 1) < Z * relative_error_of_one / math.sqrt(squares.size)


def assert_law(samples: np.ndarray, law: stats.rv_continuous) -> None:
    """Location and Kolmogorov-Smirnov distance, both at 1e-6."""
    assert abs(samples.mean() - law.mean()) < Z * law.std() / math.sqrt(samples.size)
    distance = stats.kstest(samples, law.cdf, method="asymp").statistic
    assert distance * math.sqrt(samples.size) < kolmogi(1e-6)


@pytest.mark.dealt(2)
@pytest.mark.parametrize("mu", [0.02, 0.7, 30.0])
@pytest.mark.parametrize("sampler", ["grid", "float"])
@pytest.mark.usefixtures("seeded")
def test_gaussian_law(mu: float, sampler: str) -> None:
    with config_context(noise=sampler):
        source = NoiseSource()
    noise = source.gaussian(np.zeros(N), mu)
    assert_law(noise, stats.norm(scale=1 / mu))
    assert_scale((noise * mu) ** 2, math.sqrt(2))


@pytest.mark.dealt(2)
@pytest.mark.parametrize("epsilon", [0.02, 0.7, 30.0])
@pytest.mark.parametrize("sampler", ["grid", "float"])
@pytest.mark.usefixtures("seeded")
def test_laplace_law(epsilon: float, sampler: str) -> None:
    with config_context(noise=sampler):
        source = NoiseSource()
    noise = source.laplace(np.zeros(N), epsilon)
    assert_law(noise, stats.laplace(scale=1 / epsilon))
    # |x| is exponential, of standard deviation 1: 3 % are 13 standard errors.
    assert_scale(np.abs(noise) * epsilon, 1.0)


def draws_of_spherical_laplace(
    n_draws: int, size: int, ambient: int | None, epsilon: float
) -> np.ndarray:
    source, zeros = NoiseSource(), np.zeros(size)
    return np.array([source.spherical_laplace(zeros, epsilon, ambient) for _ in range(n_draws)])


def norm_is_gamma_and_direction_uniform(size: int, epsilon: float, n_draws: int) -> None:
    # The norm errs by 1 / sqrt(size n): 3 % are 9.7 standard errors from n = 104 600 / size on.
    noise = draws_of_spherical_laplace(n_draws, size, None, epsilon)
    norms = np.linalg.norm(noise, axis=1)
    assert_law(norms, stats.gamma(size, scale=1 / epsilon))
    assert_scale(norms * epsilon / size, 1 / math.sqrt(size))
    # The first direction cosine, squared, of a uniform direction.
    if size > 1:
        assert_law((noise[:, 0] / norms) ** 2, stats.beta(0.5, (size - 1) / 2))
    assert abs(np.sign(noise[:, 0]).mean()) < Z / math.sqrt(len(noise))


def norm_law_of_projection(
    size: int, ambient: int, epsilon: float
) -> tuple[np.ndarray, np.ndarray]:
    """Distribution function of |P b|: b's norm is Gamma, the projected share of it Beta."""
    grid = np.linspace(0, stats.gamma(ambient, scale=1 / epsilon).isf(1e-9), 600)
    share = stats.beta(size / 2, (ambient - size) / 2)
    # Equal-mass midpoints of the Beta law: error of the average below 1e-4.
    roots = np.sqrt(share.ppf((np.arange(1000) + 0.5) / 1000))
    values = [gammainc(ambient, x * epsilon / roots).mean() for x in grid]
    return grid, np.array(values)


def projection_has_its_law(size: int, ambient: int, n_draws: int) -> None:
    epsilon = 0.7
    noise = draws_of_spherical_laplace(n_draws, size, ambient, epsilon)
    squares = (noise**2).sum(axis=1) * epsilon**2
    # E|Pb|^2 = (k / D) E R^2 = k (D + 1) / epsilon^2; E|Pb|^4 by the same two laws.
    second = size * (ambient + 1)
    share = size * (size + 2) / (ambient * (ambient + 2))
    fourth = share * ambient * (ambient + 1) * (ambient + 2) * (ambient + 3)
    # One draw's relative standard deviation is 0.32 and 0.27; the scale itself has half the
    # error of its square, so 3 % are 9.9 standard errors and more.
    assert_scale(squares / second, math.sqrt(fourth / second**2 - 1))
    grid, values = norm_law_of_projection(size, ambient, epsilon)
    ranks = np.sort(np.interp(np.sqrt(squares) / epsilon, grid, values))
    distance = np.abs(ranks - (np.arange(ranks.size) + 0.5) / ranks.size).max()
    assert distance * math.sqrt(ranks.size) < kolmogi(1e-6) + 0.02


def as_samples_of_the_whole_space_are_projected(seed: int) -> None:
    size, ambient, epsilon, n_draws = 2, 6, 1.3, 250_000
    rng = np.random.default_rng([seed, 1])
    whole = rng.standard_normal((n_draws, ambient))
    whole *= (rng.gamma(ambient, 1 / epsilon, n_draws) / np.linalg.norm(whole, axis=1))[:, None]
    frame = np.linalg.qr(rng.standard_normal((ambient, size)))[0]
    # As sharp as two samples of 25 000: 1 / 13 200 + 1 / 250 000 is 2 / 25 000.
    noise = draws_of_spherical_laplace(13_200, size, ambient, epsilon)
    for functional in np.array([[1.0, 0.0], [0.6, -0.8]]):
        same = stats.ks_2samp(whole @ frame @ functional, noise @ functional, method="asymp")
        assert same.pvalue > 1e-6


def closed_density_on_a_line_of_space() -> None:
    # Integrating exp(-|b|) over planes of R^3 gives (1 + |t|) exp(-|t|) / 4; its ratio at
    # distance 1 is at most e, which is the guarantee.
    def density(t: float) -> float:
        return (1 + abs(t)) * math.exp(-abs(t)) / 4

    assert quad(density, -60, 60, points=[0])[0] == pytest.approx(1)
    assert max(density(t) / density(t + 1) for t in np.linspace(0, 700, 800)) <= math.e
    noise = np.sort(draws_of_spherical_laplace(25_000, 1, 3, 1.0)[:, 0])
    tail = (2 + np.abs(noise)) * np.exp(-np.abs(noise)) / 4
    exact = np.where(noise < 0, tail, 1 - tail)
    ranks = (np.arange(noise.size) + 0.5) / noise.size
    assert np.abs(exact - ranks).max() * math.sqrt(noise.size) < kolmogi(1e-6)


SPHERICAL: dict[str, Callable[[int], None]] = {
    # On a line, 25 000 make 3 % 4.7 standard errors, and 6 % twice as many.
    "norm and direction, 1": lambda _: norm_is_gamma_and_direction_uniform(1, 1.0, 25_000),
    "norm and direction, 16": lambda _: norm_is_gamma_and_direction_uniform(16, 0.3, 6600),
    "norm and direction, 81": lambda _: norm_is_gamma_and_direction_uniform(81, 20.0, 1300),
    "30 of 60 dimensions": lambda _: projection_has_its_law(30, 60, 2800),
    "30 of 286 dimensions": lambda _: projection_has_its_law(30, 286, 2100),
    "2 of 6 dimensions": as_samples_of_the_whole_space_are_projected,
    "a line of space": lambda _: closed_density_on_a_line_of_space(),
}


@pytest.mark.dealt
@pytest.mark.parametrize("name", SPHERICAL)
@pytest.mark.usefixtures("seeded")
def test_spherical_laplace_has_its_law(name: str, seed: int) -> None:
    SPHERICAL[name](seed)


@pytest.mark.parametrize("law", LAWS)
def test_no_noise_without_privacy(law: str) -> None:
    value = np.array([0.1, 0.2, 0.3])
    assert np.array_equal(getattr(NoiseSource(), law)(value, math.inf), value)


def test_statistic_is_not_overwritten() -> None:
    for sampler in ("grid", "float"):
        with config_context(noise=sampler):
            source = NoiseSource()
        for law in LAWS:
            value = np.full(50, 0.3)
            getattr(source, law)(value, 1.0)
            assert np.array_equal(value, np.full(50, 0.3))


def test_sampler_is_chosen_by_context_and_reported() -> None:
    assert NoiseSource().sampler == "grid"
    with config_context(noise="float"):
        assert NoiseSource().sampler == "float"
        with config_context(noise="grid"):
            assert NoiseSource().sampler == "grid"
        with pytest.raises(KeyError), config_context(noise="grid"):
            raise KeyError
        assert NoiseSource().sampler == "float"
    assert NoiseSource().sampler == "grid"
    with (
        pytest.raises(ValueError, match=r"noise must be one of .*'gauss'"),
        config_context(noise="gauss"),
    ):
        pass


def test_seeded_noise_is_reproducible_flagged_and_differs_between_fits(seed: int) -> None:
    def two_fits() -> tuple[np.ndarray, np.ndarray]:
        with pytest.warns(PrivacyLeakWarning, match="not private"), unsafe_seeded_noise(seed):
            first, second = NoiseSource(), NoiseSource()
        assert first.seeded
        assert second.seeded
        return first.gaussian(np.zeros(20), 1.0), second.gaussian(np.zeros(20), 1.0)

    first, second = two_fits()
    assert not np.any(first == second)
    again = two_fits()
    assert np.array_equal(first, again[0])
    assert np.array_equal(second, again[1])
    assert not NoiseSource().seeded


def test_different_seeds_give_different_noise() -> None:
    drawn = {same_noise(seed=seed).standard_normal(1)[0] for seed in range(200)}
    assert len(drawn) == 200


def test_seeding_ends_with_its_block_even_after_errors() -> None:
    with (
        pytest.warns(PrivacyLeakWarning),
        pytest.raises(KeyError),
        unsafe_seeded_noise(1),
    ):
        raise KeyError
    assert not NoiseSource().seeded


def test_warning_of_seeding_points_to_the_caller() -> None:
    with pytest.warns(PrivacyLeakWarning) as caught, unsafe_seeded_noise(1):
        pass
    assert caught[0].filename == __file__


@pytest.mark.parametrize("wrong", [-1, 1.5, "1", None])
def test_wrong_seed_is_refused_at_once(wrong: object) -> None:
    with pytest.raises(ValueError, match="seed must be"), unsafe_seeded_noise(wrong):  # type: ignore[arg-type]
        pass


def test_unseeded_noise_is_never_reproducible() -> None:
    drawn = set()
    for _ in range(50):
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        drawn.update(NoiseSource().gaussian(np.zeros(4), 1e-3))
    # On a grid of 2**13 cells per unit, noise of width 1000 hardly ever repeats: two of 200
    # coincide with probability 200**2 / 2 * 2**-13 / 3500 = 0.07 %, three pairs never.
    assert len(drawn) > 197


def test_global_random_states_are_untouched() -> None:
    before, other = np.random.get_state(), random.getstate()  # noqa: NPY002
    source = NoiseSource()
    for law in LAWS:
        getattr(source, law)(np.zeros(100), 1.0)
    after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert random.getstate() == other


def test_generator_is_chacha20_under_a_key_of_256_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def zero(bits: int) -> int:
        asked.append(bits)
        return 0

    monkeypatch.setattr(secrets, "randbits", zero)
    stream = NoiseSource()._generator.bit_generator.random_raw(4).astype("<u8").tobytes()
    # Key stream of ChaCha20 for the all-zero key, nonce and counter (RFC 8439, A.1, vector 1).
    known = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    assert stream.hex() == known
    assert asked == [256]


def test_every_bit_of_the_key_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = set()
    for bit in range(256):
        monkeypatch.setattr(secrets, "randbits", lambda bits, bit=bit: 1 << bit)
        drawn.add(NoiseSource().standard_normal(1)[0])
    assert len(drawn) == 256


def in_a_block(block: Any) -> Iterator[None]:
    with block:
        yield


@pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning")
def test_blocks_that_are_left_in_another_order_end_all_the_same() -> None:
    """Of generators, each of which is left when it goes on: the noise must not stay seeded."""
    for order in itertools.permutations(range(3)):
        blocks = [in_a_block(unsafe_seeded_noise(seed)) for seed in range(3)]
        for block in blocks:
            next(block)
        for place, left in enumerate(order):
            assert NoiseSource().seeded
            blocks[left].close()
            assert NoiseSource().seeded == (place < 2)
    blocks = [in_a_block(config_context(noise=noise)) for noise in ("float", "grid")]
    for block in blocks:
        next(block)
    blocks[0].close()
    assert NoiseSource().sampler == "grid"
    blocks[1].close()
    assert NoiseSource().sampler == "grid"


@pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning")
def test_blocks_that_are_left_in_another_thread_end_where_they_were_entered() -> None:
    block = in_a_block(unsafe_seeded_noise(0))
    next(block)
    inherited = contextvars.copy_context()
    assert inherited.run(lambda: NoiseSource().seeded)
    thread = threading.Thread(target=block.close)
    thread.start()
    thread.join()
    assert not NoiseSource().seeded
    # Nor in what was begun inside, as a task of asyncio is.
    assert not inherited.run(lambda: NoiseSource().seeded)


@pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning")
def test_the_seed_of_an_outer_block_counts_again_after_an_inner_one() -> None:
    def drawn() -> int:
        return int(NoiseSource().integers(2**63, 1)[0])

    with unsafe_seeded_noise(1):
        alone = [drawn(), drawn()]
    with unsafe_seeded_noise(1):
        first = drawn()
        with unsafe_seeded_noise(2):
            assert drawn() not in alone
        assert [first, drawn()] == alone
