"""Bounds on how many texts of a person count in shares by group, by a released histogram."""

import math
from typing import NamedTuple

import numpy as np

from sktensor_dp.privacy.answer import EMPTY
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.norm_histogram import NormHistogram
from sktensor_dp.queries.topic_shares import SharesNorm
from sktensor_dp.tensor.arrays import Floats

# Edges of the histogram of norms of persons: texts of one topic in one group, about. A person with
# one text, or none, is in the first bin.
EDGES = np.append(0.0, 1.01 * 2 ** (np.arange(27) / 2))
SIZES = np.append(1.0, (EDGES[1:-1] + EDGES[2:]) / 2)  # texts of a person in each bin, about


class PersonBounds(NamedTuple):
    """Bounds on how many texts of a person count, and what the histogram tells of persons."""

    largest: float  # persons with more texts are scaled down to it
    few: float  # bound of least error; texts from there to the largest are released apart
    spread: float  # mean square of persons' texts over their mean, or its largest value
    most_beyond: float  # number of persons with more texts than the largest bound, at most


def release_person_bounds(
    ask: Session, order: int, shape: tuple[int, int], noise: float
) -> PersonBounds:
    """Release a histogram of persons by their texts, and choose both bounds by it.

    `order` is that of the norm of a person's texts, `shape` the numbers of groups and topics, and
    `noise` the deviation of a mean over persons for a bound of 1.
    """
    norms = ask(NormHistogram(SharesNorm(order), EDGES))
    largest = norms.last_edge(EDGES)
    within = EDGES[1:] <= largest
    persons = np.maximum(norms.value[within], EMPTY)
    spread = max(float(persons @ SIZES[within] ** 2 / (persons @ SIZES[within])), 1.0)
    noise_of_sum = 2 * norms.sigma * math.sqrt(len(persons))
    most_beyond = min(max(1 - norms.value[within].sum(), 0.0) + noise_of_sum, 1.0)
    few = _best_bound(persons, ask.n_units, shape, noise)
    return PersonBounds(largest, few, spread, ask.n_units * most_beyond)


def _best_bound(persons: Floats, n: int, shape: tuple[int, int], noise: float) -> float:
    """Bound (an edge) of the least error of shares, if topics do not depend on how much one writes.

    `persons` are fractions of `n` in the bins up to the largest bound; `noise` is the deviation of
    a mean over persons for a bound of 1.
    """
    n_groups, k = shape
    edges, sizes = EDGES[1 : 1 + len(persons)], SIZES[: len(persons)]
    clipped = np.minimum(sizes, edges[:, None])
    texts = clipped @ persons
    # Weights of persons differ from those by texts; one share of texts of one topic each varies by
    # (k - 1) / k^2.
    weights = clipped / texts[:, None] - sizes / texts[-1]
    by_weights = n_groups * (k - 1) / k**2 * (weights**2 @ persons) / n
    return float(edges[np.argmin((n_groups * noise * edges / texts) ** 2 + by_weights)])
