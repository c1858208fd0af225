"""Which unit is in which part: by secret coins, a unit that leaves or comes moves no other."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from contracts.neighbours import of_three
from counted_models import N, components, samples, whole
from replaying import watch

from sktensor_dp import unsafe_seeded_noise
from sktensor_dp.power_method import stream
from sktensor_dp.privacy.unit_assignment import (
    balanced_parts,
    coin_parts,
    coin_ranks,
    coin_split,
    keyed_coins,
    secret_coins,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning"),
]

STREAM = {"perturbation": "stream", "max_iter": 2, "epsilon": 3.0}
N_BATCHES = 9


# Coins


@pytest.mark.parametrize("labels", [None, [f"p{place:05d}" for place in range(40_000)]])
def test_coins_are_even_and_each_unit_has_its_own(labels, seed):
    """Counts, n = 40,000, within 6 deviations; a part that is 15 % larger: power 1 - 1e-9."""
    with unsafe_seeded_noise(seed):
        coins = secret_coins(40_000, labels and np.array(labels))
    parts, halves = coin_parts(coins, 7), coin_split(coins, 0.2)
    for found, expected in (
        (np.bincount(parts, minlength=7), np.full(7, 1 / 7)),
        (np.bincount(7 * parts[1:] + parts[:-1], minlength=49), np.full(49, 1 / 49)),
        (np.bincount(halves, minlength=2), np.array([0.8, 0.2])),
        (np.bincount(2 * halves[1:] + halves[:-1]), np.array([0.64, 0.16, 0.16, 0.04])),
    ):
        n = found.sum()
        deviations = np.sqrt(n * expected * (1 - expected))
        assert (np.abs(found - n * expected) <= 6 * deviations).all()


def test_coins_are_thrown_anew_each_time():
    for labels in (None, np.arange(200)):
        one, other = secret_coins(200, labels), secret_coins(200, labels)
        assert one.shape == other.shape == (200, 2)
        assert (one != other).all()  # an equal pair: 400 * 2**-64
    for nobody in (secret_coins(0), secret_coins(0, np.array([], int))):
        assert coin_parts(nobody, 9).shape == coin_split(nobody, 0.5).shape == (0,)
    assert coin_split(secret_coins(3), 1e-300).shape == (3,)


def test_the_coins_of_a_label_are_its_own():
    """Under one key they do not depend on other labels, nor on how these are stored."""
    key = bytes(32)
    names = np.array(["p0000", "p0001", "ü", "\ud800"])
    whole = keyed_coins(key, names)
    np.testing.assert_array_equal(keyed_coins(key, names[2:]), whole[2:])
    np.testing.assert_array_equal(keyed_coins(key, np.array(["p0001", "zz" * 40]))[:1], whole[1:2])
    assert len(np.unique(whole)) == whole.size
    assert (keyed_coins(bytes([1] * 32), names) != whole).all()


def test_every_even_deal_of_four_units_is_as_likely(seed):
    """Counts, n = 3000, within 6 deviations; a deal that is half as likely: power 1 - 1e-9."""
    seen: Counter[bytes] = Counter()
    with unsafe_seeded_noise(seed):
        for _ in range(3000):
            deal = balanced_parts(coin_ranks(secret_coins(4, np.array(["d", "a", "b", "c"]))), 2)
            assert np.bincount(deal).tolist() == [2, 2]
            seen[deal.tobytes()] += 1
    assert len(seen) == 6
    assert all(abs(count - 500) < 123 for count in seen.values())


@pytest.mark.parametrize(("n_units", "n_parts"), [(0, 3), (1, 3), (7, 3), (9, 3), (40, 9), (10, 1)])
def test_sizes_of_even_parts_are_public_and_places_those_of_coins(n_units, n_parts, seed):
    """Who takes the coin of another takes its place, whatever place labels are sorted to."""
    coins = keyed_coins(bytes([seed]), np.arange(n_units))
    deal = balanced_parts(coin_ranks(coins), n_parts)
    sizes = np.bincount(deal, minlength=n_parts)
    assert sizes.tolist() == [len(part) for part in np.array_split(np.arange(n_units), n_parts)]
    order = np.random.default_rng(seed).permutation(n_units)
    assert (balanced_parts(coin_ranks(coins[order]), n_parts) == deal[order]).all()


# The coupling of the proof: with the coins of all others as they were, one batch changes.


def batches(X: np.ndarray, groups: Any, **options: Any) -> list[set[float]]:
    found = stream.random_batches(X, N_BATCHES, 0, groups=groups, **options)
    return [{float(row[0]) for chunk in part for row in chunk.X} for part in found]


@pytest.mark.parametrize("grouped", [False, True])
def test_a_unit_that_leaves_changes_no_batch_but_its_own(grouped, secret_integers, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 40, 100) if grouped else np.arange(100)
    names, places = np.unique(labels, return_inverse=True)
    key = np.array([seed, 0, 0, 0], np.uint64)
    coins, gone = keyed_coins(key.tobytes(), names), rng.integers(len(names))
    X = np.arange(100.0)[:, None]
    stays = places != gone

    def dealt(X: np.ndarray, labels: np.ndarray, coins: np.ndarray) -> list[set[float]]:
        secret_integers(lambda _, size: key if grouped else coins.ravel())
        return batches(X, labels if grouped else None, number_is_private=True)

    whole = dealt(X, labels, coins)
    fewer = dealt(X[stays], labels[stays], np.delete(coins, gone, axis=0))
    assert len(whole) == len(fewer) == N_BATCHES
    left = {float(row) for row in X[~stays, 0]}
    for number, (one, other) in enumerate(zip(whole, fewer, strict=True)):
        assert one - other == (left if number == coin_parts(coins, N_BATCHES)[gone] else set())
        assert other <= one
    assert set.union(*whole) == set(X[:, 0])


def test_a_fit_deals_by_coins_and_not_by_random_state():
    """Of 256 bits for a key of labels, or of 128 for every unit of its own."""
    X = samples(np.random.default_rng(0), N)
    counted, replaced = (components(**STREAM, neighbours=n) for n in ("add_remove", "replace_one"))
    for build, fit, sizes in (
        (counted, whole, [2 * N]), (counted, of_three, [4]),
        (replaced, of_three, [4]), (replaced, whole, []),
    ):  # fmt: skip
        assert [one.size for one in watch(build, fit, X).coins] == sizes
