"""Order of words in topics, their coherence, and how similar topics are."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.eigenpairs import signs_of_largest


def umass(leading: NDArray[np.intp], pairs: Floats, frequencies: Floats, sigma: float) -> Floats:
    """UMass coherence (k,) of `leading` words (k, m) (Mimno et al., 2011), from moments of tokens.

    It is the mean of log P(word | other) over pairs of a leading word and another that ranks before
    it; probabilities below the noise `sigma` are raised to it.
    """
    k, m = leading.shape
    if m < 2:
        return np.zeros(k)
    smallest = max(sigma, 1e-12)
    later, earlier = np.tril_indices(m, -1)
    words, words_before = leading[:, later], leading[:, earlier]
    together = np.maximum(pairs[words, words_before], smallest)
    alone = np.maximum(frequencies[words_before], smallest)
    return np.asarray(np.log(together / alone).mean(axis=1))


def are_set_apart(topics: Floats, unigram: Floats, std: Floats) -> NDArray[np.bool_]:
    """Mask (k, d) of words that are more likely in a topic than overall, by two deviations."""
    # A single topic has the same words as all texts.
    return (_sure(topics, std) > unigram) & (len(topics) > 1)


def ranked_words(
    topics: Floats, unigram: Floats, std: Floats, relevance: float, n_words: int
) -> list[NDArray[np.intp]]:
    """Columns of the leading words of every topic, `n_words` at most, best first.

    At `relevance` 1 by probability. Below, by the relevance of Sievert & Shirley (2014), of
    probabilities less two deviations `std`, and only words that `are_set_apart`.
    """
    if relevance == 1:
        return list(np.argsort(-topics, axis=1, kind="stable")[:, :n_words])
    sure = np.log(np.maximum(_sure(topics, std), 1e-300))
    scores = sure - (1 - relevance) * np.log(np.maximum(unigram, 1e-300))
    apart = are_set_apart(topics, unigram, std)
    best_first = [np.lexsort((-topic, -score)) for topic, score in zip(topics, scores, strict=True)]
    return [row[mask[row]][:n_words] for row, mask in zip(best_first, apart, strict=True)]


def _sure(topics: Floats, std: Floats) -> Floats:
    """Probabilities less two deviations of their noise: they are hardly ever below that."""
    return topics - 2.0 * std


def divergences(topics: Floats, others: Floats) -> Floats:
    """Jensen-Shannon divergences in bits, from 0 to 1, of rows of `topics` and of `others`."""
    # Rounding may give the root of a negative number, NaN, for equal rows.
    distances = np.nan_to_num(cdist(topics, others, "jensenshannon"))
    return np.asarray(np.clip(distances**2 / np.log(2), 0.0, 1.0))


def positions(distances: Floats) -> Floats:
    """Points (k, 2) whose distances approximate `distances` (k, k), by classical scaling."""
    k = len(distances)
    centre = np.eye(k) - 1 / k
    products = -0.5 * centre @ distances**2 @ centre
    values, vectors = np.linalg.eigh(products)
    leading = vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0.0))
    plane = np.zeros((k, 2))
    # The signs of the axes are arbitrary: make the largest entry of each positive.
    plane[:, : leading.shape[1]] = leading * signs_of_largest(leading)
    return plane
