r"""Start topics from a noisy second moment of words, at a known noise level.

Corrected for the prior, the second moment of words is

    M2 - m m' = D' D,    D = rows sqrt(w_i) (mu_i - m),    m = sum_i w_i mu_i

Its leading eigenvectors use the rank of D' D alone. Each step here uses more: frequencies are known
much better than topics, probabilities are not negative, and most words differ little between
topics. It solves D' D = M2 - m m' for one factor by least squares, the other one being that of the
step before, and shrinks the solution.
"""

from collections.abc import Callable

import numpy as np

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics import defaults
from sktensor_dp.topics.shrinkage import LEAST_SHARE, shrink_deviations


def varimax(loadings: Floats) -> Floats:
    """Rotate columns so that squared loadings vary most (Kaiser, 1958), large ones positive."""
    rotation = np.eye(loadings.shape[1])
    for _ in range(200):  # at most: it settles before
        rotated = loadings @ rotation
        gradient = loadings.T @ (rotated**3 - rotated * (rotated**2).mean(axis=0))
        # The rotation nearest to the gradient of the criterion.
        left, _, right = np.linalg.svd(gradient)
        previous, rotation = rotation, left @ right
        if np.abs(rotation - previous).max() < 1e-6:
            break
    rotated = loadings @ rotation
    return rotated * np.where((rotated**3).sum(axis=0) < 0, -1.0, 1.0)


# Larger noise has the same effect, and its square would overflow.
LARGEST = 1e60


def topics_of_pairs(
    topics: Floats,
    weights: Floats,
    product: Callable[[Floats], Floats],
    frequencies: Floats,
    sigma: float,
) -> Floats:
    """Refine topics by least squares on a second moment M2, with noise `sigma`; `product`: M2 V."""
    # Rescale both moments to these words alone: probabilities of words, and of pairs, sum to 1.
    total = float(frequencies.sum())
    mean = frequencies / total
    for _ in range(defaults.PAIR_STEPS):
        topics = pair_step(
            topics, weights, lambda V: product(V) / total**2, mean, sigma=sigma / total**2
        )  # fmt: skip
    return topics


def pair_step(
    topics: Floats,
    weights: Floats,
    product: Callable[[Floats], Floats],
    mean: Floats,
    scales: Floats | float = 1.0,
    sigma: float = 0.0,
) -> Floats:
    """Make one step of least squares; rows of the result times `scales` sum to 1.

    `product` is V -> M2 V, with noise `sigma`, and `mean` is m.
    """
    # M2 - m m' = D' D, with a row sqrt(w_i) (mu_i - m) of D for each topic i. Least squares for one
    # factor, given D in the other: D <- (D D')^-1 D (M2 - m m').
    roots = np.sqrt(weights)[:, None]
    centres = roots * mean
    deviations = roots * (topics - weights @ topics)
    targets = product(deviations.T).T - np.multiply.outer(deviations @ mean, mean)
    gram = deviations @ deviations.T
    # Deviations of k topics span k - 1 directions at most; those of less than a millionth of the
    # largest squared length do not count.
    inverse = np.linalg.pinv(gram, rcond=1e-6, hermitian=True)
    solution = np.clip(np.nan_to_num(inverse @ targets), -LARGEST, LARGEST)
    if sigma > 0:
        # Noise of the least-squares solution, which is the same for all words.
        sigmas = sigma * np.sqrt(np.maximum(np.diag(inverse @ gram @ inverse), 0.0))
        solution = np.array([
            shrink_deviations(row, centre, min(float(deviation), LARGEST))
            for row, centre, deviation in zip(solution, centres, sigmas, strict=True)
        ])  # fmt: skip
    # Joint probabilities w_i mu_i of topics and words; those of each word sum to its mean.
    joint = roots * np.maximum(centres + solution, LEAST_SHARE * centres)
    joint *= mean / np.maximum(joint.sum(axis=0), 1e-300)
    sums = (joint * scales).sum(axis=1, keepdims=True)
    return np.asarray(joint / np.maximum(sums, 1e-300))


def blurred(topics: Floats, weights: Floats) -> Floats:
    """Topics moved towards their mean, so that none has nearly nothing of a word."""
    blur = defaults.START_BLUR
    return np.asarray((1 - blur) * topics + blur * (weights @ topics))
