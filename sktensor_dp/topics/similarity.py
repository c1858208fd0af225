"""How far topics are from each other, and where that puts them on a map."""

import numpy as np
from scipy.special import xlogy

from sktensor_dp.tensor.arrays import Floats


def divergences(topics: Floats, others: Floats) -> Floats:
    """Jensen-Shannon divergences between rows, in bits: 0 if equal, 1 if no word is shared."""
    found = np.empty((len(topics), len(others)))
    for row, topic in enumerate(topics):
        middle = (topic + others) / 2
        logs = np.log(np.maximum(middle, 1e-300))
        own = xlogy(topic, np.maximum(topic, 1e-300)).sum() - (topic * logs).sum(axis=1)
        theirs = (xlogy(others, np.maximum(others, 1e-300)) - others * logs).sum(axis=1)
        found[row] = (own + theirs) / (2 * np.log(2))
    return np.clip(found, 0.0, 1.0)


def positions(distances: Floats) -> Floats:
    """Points of a plane whose distances are about those given: classical scaling."""
    k = len(distances)
    centre = np.eye(k) - 1 / k
    products = -0.5 * centre @ distances**2 @ centre
    values, vectors = np.linalg.eigh(products)
    leading = vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0.0))
    # Signs are free: the heaviest entry of each axis is made positive.
    heaviest = np.argmax(np.abs(leading), axis=0)
    signs = np.where(leading[heaviest, np.arange(leading.shape[1])] < 0, -1.0, 1.0)
    plane = np.zeros((k, 2))
    plane[:, : leading.shape[1]] = leading * signs
    return plane
