"""How coherent topics are on documents at hand.

Nothing here is private: what it says, it says of the documents that it is given.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

__all__ = ["coherence"]

Floats = NDArray[np.float64]


def coherence(
    topics: ArrayLike, X: ArrayLike | sp.spmatrix, *, n_top_words: int = 10
) -> NDArray[np.float64]:
    """Coherence of topics: normalised pointwise mutual information of their top words.

    A pair of words scores ``log(p_ij / (p_i p_j)) / -log(p_ij)``, where ``p`` are shares of
    documents that hold a word, or both: 1 for words that only come together, 0 for words that
    are independent, -1 for words that never meet. It is averaged over pairs.

    Parameters
    ----------
    topics : array-like of shape (n_components, n_features)
        Rows are distributions over words, as ``components_`` of a topic model.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Counts of documents, best of some that no fit has seen.
    n_top_words : int, default=10
        Most probable words of every topic that are compared, at least 2.

    Returns
    -------
    ndarray of shape (n_components,)
        One number from -1 to 1 per topic; higher is better.

    Raises
    ------
    ValueError
        If shapes do not fit, there is no document, or fewer than two words are compared.

    Notes
    -----
    **Privacy.** It costs nothing and protects nothing: given the documents of a fit, its
    answer is about them, and not covered by the guarantee.

    References
    ----------
    Bouma (2009), Normalized (pointwise) mutual information in collocation extraction.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.metrics import coherence
    >>> X = np.array([[1, 2, 0, 0], [3, 1, 0, 0], [0, 0, 1, 1], [0, 0, 2, 1]])
    >>> topics = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0]]
    >>> coherence(topics, X, n_top_words=2).tolist()
    [1.0, -1.0]
    """
    found = np.asarray(topics, dtype=np.float64)
    counts = sp.csc_matrix(X)
    if found.ndim != 2 or found.shape[1] != counts.shape[1]:
        raise ValueError(
            f"topics must have shape (n_components, {counts.shape[1]}), as X has so many "
            f"columns; got {found.shape}."
        )
    if counts.shape[0] == 0:
        raise ValueError("X must have at least one document; got 0.")
    n_words = min(int(n_top_words), found.shape[1])
    if n_words < 2:
        raise ValueError(
            f"at least 2 words must be compared; got n_top_words={n_top_words} "
            f"of {found.shape[1]} features."
        )
    top = np.argsort(-found, axis=1, kind="stable")[:, :n_words]
    return np.array([_mean_npmi(counts[:, words]) for words in top])


def _mean_npmi(counts: sp.csc_matrix) -> float:
    present = (counts > 0).astype(np.float64)
    together = np.asarray((present.T @ present).todense()) / counts.shape[0]
    first, second = np.triu_indices(len(together), 1)
    alone, pairs = np.diagonal(together), together[first, second]
    met = pairs > 0
    joint = np.where(met, pairs, 0.5)
    expected = np.where(met, alone[first] * alone[second], 1.0)
    # Words that every document holds only come together.
    everywhere = joint >= 1
    information = -np.log(np.where(everywhere, 0.5, joint))
    npmi = np.where(everywhere, 1.0, np.log(joint / expected) / information)
    return float(np.where(met, npmi, -1.0).mean())
