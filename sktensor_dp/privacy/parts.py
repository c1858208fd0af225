"""Assign units to parts of the data: a batch, a fold, the held-out units, rows that are read.

Rows that are units of their own keep public positions. Units with labels, and units that come and
go, go by secret coins of their own. Proof: docs/proofs/parts.md.
"""

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sktensor_dp.privacy.noise import NoiseSource

Integers = NDArray[np.intp]
Coins = NDArray[np.uint64]  # (n_units, 2): 128 random bits of each unit

# A fraction is rounded to a multiple of one over it, which is drawn exactly.
STEPS = 2**53


def secret_key() -> bytes:
    """256 bits from the source of noise."""
    return NoiseSource().integers(2**64, 4).tobytes()


def secret_coins(n_units: int, labels: NDArray[Any] | None = None) -> Coins:
    """Coins of units; those of different labels are drawn by a keyed hash, each by itself."""
    if labels is not None:
        return keyed_coins(secret_key(), labels)
    return NoiseSource().integers(2**64, 2 * n_units).reshape(n_units, 2)


def keyed_coins(key: bytes, labels: NDArray[Any]) -> Coins:
    """Coins of labels under a secret key."""
    digests = [
        hashlib.blake2b(str(one).encode("utf-8", "surrogatepass"), digest_size=16, key=key).digest()
        for one in labels.tolist()
    ]
    return np.frombuffer(b"".join(digests), np.uint64).reshape(len(labels), 2)


def coin_parts(coins: Coins, n_parts: int) -> Integers:
    """Part of each unit by its own coins; sizes follow from those of all."""
    return (coins[:, 0] % np.uint64(n_parts)).astype(np.intp)


def coin_split(coins: Coins, fraction: float) -> Integers:
    """1 for a unit with a probability, 0 otherwise, by its own coins."""
    below = min(max(round(STEPS * fraction), 1), STEPS - 1)
    return (coins[:, 0] >> np.uint64(11) < below).astype(np.intp)


def coin_ranks(coins: Coins) -> Integers:
    """Places of units in the order of their coins: every order is equally likely."""
    return _inverse(np.lexsort(coins.T))


def public_ranks(n_units: int, random_state: Any) -> Integers:
    """Places of rows in a public random order."""
    return _inverse(check_random_state(random_state).permutation(n_units))


def balanced_parts(ranks: Integers, n_parts: int) -> Integers:
    """Part of each unit, so that sizes differ by one at most: consecutive places."""
    least, larger = divmod(len(ranks), n_parts)
    sizes = np.full(n_parts, least)
    sizes[:larger] += 1
    return np.repeat(np.arange(n_parts), sizes)[ranks]


def balanced_split(ranks: Integers, fraction: float) -> Integers:
    """1 for the units at the first places, a public number of them, and 0 for the others."""
    return (ranks < math.ceil(fraction * len(ranks))).astype(np.intp)


def _inverse(order: NDArray[np.intp]) -> Integers:
    places = np.empty(len(order), np.intp)
    places[order] = np.arange(len(order))
    return places
