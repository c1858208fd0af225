r"""Topics from a noisy second moment of words, at a known noise level.

Corrected for the prior, the second moment of words is

    M2 - m m' = D D',    D = columns sqrt(w_i) (mu_i - m),    m = sum_i w_i mu_i

Its leading eigenvectors use of that the rank alone. That frequencies are known much better than
topics, that a word's probability is not negative, and that most words differ little between
topics, says more: least squares for D given D, and shrinkage of what they say, in turn.
"""

from collections.abc import Callable

import numpy as np

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.denoise import LEAST_SHARE, shrink_deviations

# Least squares and shrinkage in turn: more change little.
N_STEPS = 3
# Topics lie in as many directions, but for their mean; others have less than this part of the
# largest squared length.
LEAST_DIRECTION = 1e-6
# Noise beyond this says nothing, and its square overflows.
LARGEST = 1e60


def topics_of_pairs(
    topics: Floats,
    weights: Floats,
    product: Callable[[Floats], Floats],
    frequencies: Floats,
    sigma: float,
) -> Floats:
    """Topics that explain a noisy second moment, from a first guess.

    Parameters
    ----------
    topics : ndarray of shape (k, d)
        The guess; rows are distributions.
    weights : ndarray of shape (k,)
        Shares of the topics, which are kept.
    product : callable
        ``V -> M2 @ V`` of the moment corrected for the prior.
    frequencies : ndarray of shape (d,)
        Of the words, positive; M2 sums to the square of their sum.
    sigma : float
        Standard deviation of the noise in M2.

    Returns
    -------
    ndarray of shape (k, d)
        Rows are distributions.

    Examples
    --------
    Without noise, topics of the moment stay what they are:

    >>> import numpy as np
    >>> topics, weights = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), np.array([0.5, 0.5])
    >>> M2 = topics.T @ (weights[:, None] * topics)
    >>> topics_of_pairs(topics, weights, M2.__matmul__, weights @ topics, 0.0).round(6)
    array([[0.7, 0.2, 0.1],
           [0.1, 0.3, 0.6]])
    """
    total = float(frequencies.sum())
    mean = frequencies / total
    centres = np.multiply.outer(np.sqrt(weights), mean)
    for _ in range(N_STEPS):
        roots = np.sqrt(weights)[:, None]
        deviations = roots * (topics - weights @ topics)
        seen = product(deviations.T).T / total**2 - np.multiply.outer(deviations @ mean, mean)
        gram = deviations @ deviations.T
        inverse = _inverse(gram)
        # Noise of a column of least squares, the same for all words.
        sigmas = sigma / total**2 * np.sqrt(np.maximum(np.diag(inverse @ gram @ inverse), 0.0))
        found = np.clip(np.nan_to_num(inverse @ seen), -LARGEST, LARGEST)
        columns = [
            shrink_deviations(column, centre, min(float(deviation), LARGEST))
            for column, centre, deviation in zip(found, centres, sigmas, strict=True)
        ]
        joint = roots * np.maximum(centres + columns, LEAST_SHARE * centres)
        joint *= mean / np.maximum(joint.sum(axis=0), 1e-300)
        topics = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
    return topics


def _inverse(gram: Floats) -> Floats:
    """Inverse in the directions that there are."""
    values, vectors = np.linalg.eigh(gram)
    there = values > LEAST_DIRECTION * values[-1]
    inverses = np.where(there, 1 / np.where(there, values, 1.0), 0.0)
    return np.asarray((vectors * inverses) @ vectors.T)
