"""Order of words in topics: by probability, and by what sets a topic apart."""

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.arrays import Floats

# A word counts in lift as what its probability is at least, at so many deviations of its noise.
NOISE_DEVIATIONS = 2.0


def ranked_words(
    topics: Floats, unigram: Floats, std: Floats | None, relevance: float, n_words: int
) -> NDArray[np.intp]:
    """Columns of the leading words of every topic.

    At 1 the order is that of the probabilities, as they are. Below 1, a word comes before
    another if it is more relevant (Sievert & Shirley, 2014: ``relevance * log p + (1 - relevance)
    * log(p / unigram)``) at the least that its noise leaves of it; words that noise alone could
    have put there come last.
    """
    if relevance == 1:
        return np.argsort(-topics, axis=1, kind="stable")[:, :n_words]
    sure = topics if std is None else topics - NOISE_DEVIATIONS * std
    logs = np.log(np.maximum(sure, 1e-300))
    scores = logs - (1 - relevance) * np.log(np.maximum(unigram, 1e-300))
    scores = np.where(sure > 0, scores, -np.inf)
    order = [np.lexsort((-own, -score)) for own, score in zip(topics, scores, strict=True)]
    return np.array(order)[:, :n_words]
