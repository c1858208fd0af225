"""Assign units to parts of the data: batches, folds, held-out units (docs/proofs/parts.md)."""

import hashlib
import math

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sktensor_dp.data.labels import Labels, distinct, inverse_order
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.tensor.arrays import Integers

Coins = NDArray[np.uint64]  # (n_units, 2): 128 random bits of each unit

# Fractions are rounded to multiples of 1 / STEPS, which can be drawn exactly.
STEPS = 2**53


def secret_key() -> bytes:
    """Secret key of 256 bits from the source of noise."""
    return NoiseSource().integers(2**64, 4).tobytes()


def secret_coins(n_units: int, labels: Labels | None = None) -> Coins:
    """Secret bits of each unit, (n_units, 2); with `labels` a keyed hash of its own label."""
    if labels is not None:
        return keyed_coins(secret_key(), labels)
    return NoiseSource().integers(2**64, 2 * n_units).reshape(n_units, 2)


def keyed_coins(key: bytes, labels: Labels) -> Coins:
    """Random bits of each label, its keyed hash under a secret `key`; (n_labels, 2) of uint64."""
    digests = [
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=key).digest()
        for text in map(str, labels.tolist())
    ]
    return np.frombuffer(b"".join(digests), np.uint64).reshape(len(labels), 2)


def assigned(
    n_rows: int,
    labels: Labels | None,
    *,
    n_parts: int | None,
    fraction: float = 0.0,
    number_is_private: bool,
    random_state: object,
    n_units: int | None = None,
) -> tuple[Integers, Integers | None]:
    """Deal units out to parts 0 .. `n_parts` - 1; or to part 1 a `fraction` of them, to 0 the rest.

    Groups are dealt by secret coins, and so are rows whose number is private (`number_is_private`);
    other rows by `random_state`. Returns the part of each unit, and the unit of each row (None
    where each row is a unit). Of `n_units` some may have no rows; these come after the others.
    """
    if labels is None:  # each row is a unit
        names, units, n_with_rows = None, None, n_rows
    else:
        names, units = distinct(labels)
        n_with_rows = len(names)
    if number_is_private:  # sizes of parts are random, and may be zero
        coins = secret_coins(n_with_rows, names)
        parts = coin_parts(coins, n_parts) if n_parts else coin_split(coins, fraction)
        return parts, units
    if names is None:
        ranks = public_ranks(n_with_rows, random_state)
    else:
        coins = secret_coins(n_with_rows, names)
        if n_units is not None:
            coins = np.concatenate([coins, secret_coins(n_units - n_with_rows)])
        ranks = coin_ranks(coins)
    if n_parts:
        return balanced_parts(ranks, n_parts), units
    return (ranks < math.ceil(fraction * len(ranks))).astype(np.intp), units


def coin_parts(coins: Coins, n_parts: int) -> Integers:
    """Assign each unit to one of `n_parts` by its own random bits; part sizes are random."""
    return (coins[:, 0] % np.uint64(n_parts)).astype(np.intp)


def coin_split(coins: Coins, fraction: float) -> Integers:
    """Draw 1 for each unit with probability `fraction`, otherwise 0, from its own random bits."""
    # The first 53 bits are an integer below STEPS.
    below = min(max(round(STEPS * fraction), 1), STEPS - 1)
    return (coins[:, 0] >> np.uint64(11) < below).astype(np.intp)


def coin_ranks(coins: Coins) -> Integers:
    """Rank of each unit by its random bits: a uniformly random permutation."""
    return inverse_order(np.lexsort(coins.T))


def public_ranks(n_units: int, random_state: object) -> Integers:
    """Rank of each row in a random permutation by `random_state`, which is public."""
    return inverse_order(check_random_state(random_state).permutation(n_units))


def balanced_parts(ranks: Integers, n_parts: int) -> Integers:
    """Assign units to `n_parts` of sizes that differ by one at most, by consecutive `ranks`."""
    size, n_larger = divmod(len(ranks), n_parts)
    sizes = np.full(n_parts, size)
    sizes[:n_larger] += 1
    return np.repeat(np.arange(n_parts), sizes)[ranks]
