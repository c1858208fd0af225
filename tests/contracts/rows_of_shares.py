"""Shares of topics by public group, and documents that are far apart."""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from contracts.rows_of_counts import Rows, limit, of_groups
from contracts.sensitivities import Case, Extreme, Floats, Rng

from sktensor_dp.data.counts import ShareChunks
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.data.units import RowChunk
from sktensor_dp.queries.topic_shares import SharesByGroup

D = 6


def shares(rng: Rng, _: Any = None) -> Floats:
    """Rows of two groups by three topics: each in one of them, or none; some are no shares."""
    rows = np.zeros((16, 2, 3))
    rows[range(16), rng.integers(2, size=16)] = rng.dirichlet(np.full(3, 0.3), 16)
    rows[0] = 0
    rows[1], rows[2, 0, 1], rows[3, 1, 0] = 1e300, math.nan, -1.0
    return np.concatenate([rows.reshape(16, D), np.eye(D)])


def changed_shares(rng: Rng, row: Floats) -> Floats:
    """Move to the other group, to one topic, or to other shares."""
    moves = [np.roll(row, 3), np.eye(D)[rng.integers(D)], shares(rng)[rng.integers(22)]]
    return moves[rng.integers(3)]


SHARES = Rows(shares, changed_shares, sp.csr_matrix, RowChunk, ShareChunks)


def case(order: int, beyond: float) -> Case:
    """Two documents of one topic each, in groups of their own; `beyond` in limits."""

    def build(rng: Rng, _: None) -> SharesByGroup:
        most = limit(rng)
        return SharesByGroup(most, order, beyond * most)

    def extreme(_: Rng) -> Extreme:
        return SharesByGroup(0.9, order, beyond * 0.9), None, *np.eye(D)[[[0], [4]]]

    about = f"order {order}, beyond {beyond:g}"
    return Case("topic_shares", about, SHARES, build, extreme, slack=NORM_SLACK)


CASES = [
    one
    for order, beyond in ((1, 0.0), (2, 0.0), (1, 0.7), (2, 0.9))
    for one in (case(order, beyond), *of_groups([case(order, beyond)]))
]
