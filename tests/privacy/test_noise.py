"""Where the randomness comes from, and who chooses it."""

import contextvars
import itertools
import math
import random
import secrets
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from internals import generator_of
from seeded_sources import same_noise

from sktensor_dp import PrivacyLeakWarning, unsafe_seeded_noise
from sktensor_dp.privacy.noise import NoiseSource

LAWS = ("gaussian", "laplace", "spherical_laplace")


@pytest.mark.parametrize("law", LAWS)
def test_no_noise_without_privacy(law: str) -> None:
    value = np.array([0.1, 0.2, 0.3])
    assert np.array_equal(getattr(NoiseSource(), law)(value, math.inf), value)


def test_statistic_is_not_overwritten() -> None:
    for law in LAWS:
        value = np.full(50, 0.3)
        getattr(NoiseSource(), law)(value, 1.0)
        assert np.array_equal(value, np.full(50, 0.3))


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
    stream = generator_of(NoiseSource()).bit_generator.random_raw(4).astype("<u8").tobytes()
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
