"""Topics twice, each a little different, and the most alike put together again."""

import numpy as np
from scipy.special import entr

from sktensor_dp.tensor.arrays import Floats

# Words of a half differ from those of its topic by a factor of this squared deviation. On held-out
# posts of two kinds, texts of two kinds and code, .1 is as good as .3 and .03, or better.
SPREAD = 0.1


def split_topics(
    topics: Floats, weights: Floats, random_state: np.random.RandomState
) -> tuple[Floats, Floats]:
    """Two of each topic, whose words differ by random factors of mean 1, and half of its weight.

    Examples
    --------
    >>> import numpy as np
    >>> halves, weights = split_topics(
    ...     np.full((2, 3), 1 / 3), np.array([0.4, 0.6]), np.random.RandomState(0)
    ... )
    >>> halves.shape, weights.tolist()
    ((4, 3), [0.2, 0.3, 0.2, 0.3])
    """
    factors = random_state.gamma(1 / SPREAD, SPREAD, size=(2 * len(topics), topics.shape[1]))
    halves = np.tile(topics, (2, 1)) * factors
    return halves / halves.sum(axis=1, keepdims=True), np.tile(weights, 2) / 2


def merged_topics(topics: Floats, weights: Floats, n_topics: int) -> tuple[Floats, Floats]:
    """As many topics: two become their mixture, whose tokens then say least less of their words.

    What is lost is the weight of both times the Jensen-Shannon divergence between them, each by
    its share (the agglomerative information bottleneck of Slonim & Tishby, 1999).

    Examples
    --------
    >>> import numpy as np
    >>> topics = np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.9]])
    >>> merged, weights = merged_topics(topics, np.array([0.5, 0.25, 0.25]), 2)
    >>> merged.round(3).tolist(), weights.tolist()
    ([[1.0, 0.0], [0.05, 0.95]], [0.5, 0.5])
    """
    joint = weights[:, None] * topics
    entropies, losses = _entropy(joint), np.full((len(joint), len(joint)), np.inf)
    for row in range(1, len(joint)):
        losses[row, :row] = _losses(row, joint[: row + 1], entropies[: row + 1])[:row]
    while len(joint) > n_topics:
        last, first = np.unravel_index(int(np.argmin(losses)), losses.shape)
        joint[first] += joint[last]
        entropies[first] = _entropy(joint[first])
        joint, entropies = np.delete(joint, last, axis=0), np.delete(entropies, last)
        losses = np.delete(np.delete(losses, last, axis=0), last, axis=1)
        anew = _losses(int(first), joint, entropies)
        losses[first, :first], losses[first + 1 :, first] = anew[:first], anew[first + 1 :]
    masses = joint.sum(axis=1)
    return joint / masses[:, None], masses


def _losses(row: int, joint: Floats, entropies: Floats) -> Floats:
    """What one topic loses with each of them, in nats of a token."""
    return np.asarray(_entropy(joint[row] + joint) - entropies[row] - entropies)


def _entropy(masses: Floats) -> Floats:
    """Of the words of each, in nats, times how much it is."""
    return np.asarray(entr(masses).sum(axis=-1) - entr(masses.sum(axis=-1)))
