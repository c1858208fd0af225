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
from sktensor_dp.topics.concentration import ExplainedTopics, largest_not_rejected
from sktensor_dp.topics.denoise import LEAST_SHARE, shrink_deviations

# Least squares and shrinkage in turn: more change little.
N_STEPS = 3
# Topics lie in as many directions, but for their mean; others have less than this part of the
# largest squared length.
LEAST_DIRECTION = 1e-6
# The same without shrinkage where a concentration is tried, on so many words at most.
TRIED_STEPS, TRIED_WORDS = 12, 600
# Share of words that topics are expected to lack. To keep a probability of 0 from being fitted as
# negative costs a squared normal half of the time: mean 1/2, variance 5/4. A concentration is
# rejected where bounds cost more than the .99 quantile of that.
LACKED, QUANTILE = 0.5, 2.33
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
    for _ in range(N_STEPS):
        topics = _step(
            topics, weights, lambda V: product(V) / total**2, mean, sigma=sigma / total**2
        )  # fmt: skip
    return topics


def concentration_of_pairs(
    topics: Floats,
    weights: Floats,
    pairs: Floats,
    frequencies: Floats,
    sigma: float,
    sampling: float = 0.0,
) -> float | None:
    """Estimate the concentration from a released second moment.

    A concentration is rejected where non-negative topics leave more of the moment than topics of
    documents that have one each, by more than bounds at 0 cost where it is right. Noise that no
    topics explain is in both, so that it cancels.

    Parameters
    ----------
    topics, weights : ndarray of shape (k, d) and (k,)
        A guess, and shares of topics.
    pairs : ndarray of shape (d, d)
        Released E2, not corrected for a prior.
    frequencies : ndarray of shape (d,)
        Of the words, positive; E2 sums to the square of their sum.
    sigma : float
        Standard deviation of the noise in E2.
    sampling : float, default=0.0
        Sampling variance of an entry of E2 over what it is for independent words.

    Returns
    -------
    float or None
        Sum of the Dirichlet parameters; None if the moment rejects none.
    """
    if len(topics) == 1:
        return None
    words = np.sort(np.argsort(-frequencies, kind="stable")[:TRIED_WORDS])
    pairs, frequencies, topics = pairs[np.ix_(words, words)], frequencies[words], topics[:, words]
    # In these units every entry has about unit variance, by noise or by sampling.
    units = (sigma**2 + sampling * frequencies**2) ** 0.25
    units = np.maximum(units, 1e-12 * max(float(units.max()), 1e-300))
    total = float(frequencies.sum())
    mean, pairs = frequencies / units, pairs / units[:, None] / units

    def explain(start: ExplainedTopics, concentration: float) -> ExplainedTopics:
        topics, scale = start.topics, 1 + concentration
        for _ in range(TRIED_STEPS):
            # The average of topics and what they lead to is Newton's method for the square root.
            topics = (topics + _step(
                topics, weights,
                lambda V: scale * (pairs @ V) - concentration * np.outer(mean, mean @ V), mean,
                units / total,
            )) / 2  # fmt: skip
        own = weights @ topics
        left = pairs - topics.T @ ((weights / scale)[:, None] * topics)
        left -= concentration / scale * np.outer(own, own)
        return ExplainedTopics(topics, weights, concentration, float((left**2).sum()) / 2)

    topics = topics / np.maximum(topics.sum(axis=1, keepdims=True), 1e-300) * total / units
    single = explain(ExplainedTopics(topics, weights, 0.0, 0.0), 0.0)
    bounds, d = LACKED * (len(topics) - 1) * len(words), len(words)
    # Where topics do not fit, what is left of the moment is the variance.
    variance = max(single.misfit / max(d * (d + 1) / 2 - len(topics) * d, 1), 1.0)
    most = single.misfit + variance * (bounds / 2 + QUANTILE * (5 / 4 * bounds) ** 0.5)
    found = largest_not_rejected(explain, single, most)
    return None if found is None else found.concentration


def _step(
    topics: Floats,
    weights: Floats,
    product: Callable[[Floats], Floats],
    mean: Floats,
    units: Floats | float = 1.0,
    sigma: float = 0.0,
) -> Floats:
    """Least squares for topics given topics, shrunk against noise; in units they sum to 1."""
    roots = np.sqrt(weights)[:, None]
    centres = roots * mean
    deviations = roots * (topics - weights @ topics)
    seen = product(deviations.T).T - np.multiply.outer(deviations @ mean, mean)
    gram = deviations @ deviations.T
    inverse = _inverse(gram)
    found = np.clip(np.nan_to_num(inverse @ seen), -LARGEST, LARGEST)
    if sigma > 0:
        # Noise of a column of least squares, the same for all words.
        sigmas = sigma * np.sqrt(np.maximum(np.diag(inverse @ gram @ inverse), 0.0))
        found = np.array([
            shrink_deviations(column, centre, min(float(deviation), LARGEST))
            for column, centre, deviation in zip(found, centres, sigmas, strict=True)
        ])  # fmt: skip
    joint = roots * np.maximum(centres + found, LEAST_SHARE * centres)
    joint *= mean / np.maximum(joint.sum(axis=0), 1e-300)
    sums = (joint * units).sum(axis=1, keepdims=True)
    return np.asarray(joint / np.maximum(sums, 1e-300))


def _inverse(gram: Floats) -> Floats:
    """Inverse in the directions that there are."""
    values, vectors = np.linalg.eigh(gram)
    there = values > LEAST_DIRECTION * values[-1]
    inverses = np.where(there, 1 / np.where(there, values, 1.0), 0.0)
    return np.asarray((vectors * inverses) @ vectors.T)
