"""Labels of groups that secret coins under a known key deal to given places."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sktensor_dp.privacy.parts import keyed_coins

# The first key where trials are counted (`n_trials_are`).
FIRST_KEY = np.array([0, 2, 3, 4], np.uint64)


def labels_dealt_to(
    places: np.ndarray, key: np.ndarray, name: Callable[[int], Any] = int
) -> np.ndarray:
    """One label for each row, in increasing order; its coin is at the row's place among all."""
    n = len(places)
    pool = np.array([name(number) for number in range(3 * n * n)])
    ranks = (keyed_coins(key.tobytes(), pool)[:, 1] * (n / 2.0**64)).astype(int)
    chosen, last = [], -1
    for place in places:
        last += 1 + int(np.argmax(ranks[last + 1 :] == place))
        chosen.append(last)
    assert (ranks[chosen] == places).all()
    return pool[chosen]
