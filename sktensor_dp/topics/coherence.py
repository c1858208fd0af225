"""How well the leading words of topics go together, by moments of words."""

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.arrays import Floats


def umass(
    leading: NDArray[np.intp],
    pairs: Floats,
    frequencies: Floats,
    sigma: float = 0.0,
) -> Floats:
    """UMass coherence of Mimno et al. (2011), of pairs of tokens in the place of documents.

    Parameters
    ----------
    leading : ndarray of shape (k, m)
        Columns of the m leading words of every topic, the most probable first.
    pairs : ndarray of shape (d, d)
        Second moment: how probable two words are as a pair of tokens of one document.
    frequencies : ndarray of shape (d,)
        How probable a word is as a token.
    sigma : float, default=0.0
        Noise in the second moment: less counts as that.

    Returns
    -------
    ndarray of shape (k,)
        Mean over pairs of ``log P(word | a more probable word)``; higher is more coherent.
        0 where a topic has one word.
    """
    k, m = leading.shape
    if m < 2:
        return np.zeros(k)
    least = max(sigma, 1e-12)
    later, earlier = np.tril_indices(m, -1)
    first, second = leading[:, later], leading[:, earlier]
    together = np.maximum(pairs[first, second], least)
    given = np.maximum(frequencies[second], least)
    values: Floats = np.log(together / given).mean(axis=1)
    return values
