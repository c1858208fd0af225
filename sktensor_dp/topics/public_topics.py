"""Topics of public texts, as far as released word frequencies say how they are used here.

A word is used more, or less, in other texts than in the public ones, whatever the topic: each word
of a public topic is multiplied by what makes the topics mix to the frequencies of words.
"""

import numpy as np

from sktensor_dp.tensor.arrays import Floats

# Of the word frequencies in public topics, so that no word is ruled out.
MIX = 1e-3
# Steps of each fit: further ones change no share by a hundredth.
STEPS = 30
# No topic has less than this part of an even share.
LEAST_SHARE = 0.2


def adapted_topics(public: Floats, weights: Floats, frequencies: Floats) -> Floats:
    """Rescale the words of public topics so that they mix to given frequencies.

    Parameters
    ----------
    public : ndarray of shape (k, d)
        Rows are distributions. A word that has nothing in all of them is unknown; topics say
        nothing of it, and it keeps its frequency in all of them.
    weights : ndarray of shape (k,)
        Shares of the topics, positive.
    frequencies : ndarray of shape (d,)
        Positive, of sum 1.

    Returns
    -------
    ndarray of shape (k, d)
        Rows are distributions, and positive.

    Examples
    --------
    >>> import numpy as np
    >>> public = np.array([[0.8, 0.2, 0.0], [0.2, 0.8, 0.0]])
    >>> found = adapted_topics(public, np.array([0.5, 0.5]), np.array([0.6, 0.2, 0.2]))
    >>> found.mean(axis=0).round(2)
    array([0.6, 0.2, 0.2])
    """
    topics = on_all_words(public, frequencies)
    weights = weights / weights.sum()
    for _ in range(STEPS):
        topics = topics * (frequencies / np.maximum(weights @ topics, 1e-300))
        topics /= topics.sum(axis=1, keepdims=True)
    return topics


def shares_of_topics(public: Floats, frequencies: Floats) -> Floats:
    """Shares with which public topics mix best to given frequencies of words."""
    topics, k = on_all_words(public, frequencies), len(public)
    weights = np.full(k, 1 / k)
    for _ in range(STEPS):
        weights = weights * (topics @ (frequencies / np.maximum(weights @ topics, 1e-300)))
        weights = np.maximum(weights, LEAST_SHARE / k)
        weights /= weights.sum()
    return weights


def on_all_words(public: Floats, frequencies: Floats) -> Floats:
    """Give words that no public topic knows their frequency in all of them."""
    known = public.any(axis=0)
    topics = np.tile(frequencies, (len(public), 1))
    share = float(frequencies[known].sum())
    topics[:, known] = (1 - MIX) * share * public[:, known] + MIX * frequencies[known]
    return np.asarray(topics / topics.sum(axis=1, keepdims=True))
