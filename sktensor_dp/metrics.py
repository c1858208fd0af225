"""Coherence and similarity of topics, and precision and recall of recommendations.

Nothing here is private: results describe the data that functions are given, without noise.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.parameters import check_sizes
from sktensor_dp.tensor.arrays import Floats, check_finite, top_rows
from sktensor_dp.topics.measures import divergences

__all__ = ["coherence", "match_topics", "precision_at_k", "recall_at_k"]


def coherence(
    topics: ArrayLike, X: ArrayLike | sp.spmatrix, *, n_top_words: int = 10
) -> NDArray[np.float64]:
    """Coherence of topics: normalised pointwise mutual information of their top words.

    A pair of words scores ``log(p_ij / (p_i p_j)) / -log(p_ij)`` (Bouma, 2009), where ``p`` are
    shares of documents that hold a word, or both: 1 for words that only come together, 0 for
    independent ones, -1 for words that never meet. It is averaged over pairs.

    Parameters
    ----------
    topics : array-like of shape (n_components, n_features)
        Rows are distributions over words, as ``components_`` of a topic model.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Counts of documents, preferably of some that no fit has seen.
    n_top_words : int, default=10
        Most probable words of every topic that are compared, at least 2.

    Returns
    -------
    ndarray of shape (n_components,)
        From -1 to 1; higher is better.

    Raises
    ------
    ValueError
        If shapes do not fit, numbers are missing (NaN), there is no document, or fewer than two
        words are compared.

    Notes
    -----
    **Privacy.** It costs nothing and protects nothing: it describes the documents it is given.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.metrics import coherence
    >>> X = np.array([[1, 2, 0, 0], [3, 1, 0, 0], [0, 0, 1, 1], [0, 0, 2, 1]])
    >>> topics = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0]]
    >>> coherence(topics, X, n_top_words=2).tolist()
    [1.0, -1.0]
    """
    shares = np.asarray(topics, dtype=np.float64)
    check_finite("topics", shares)
    counts = sp.csc_matrix(X)
    if counts.dtype.kind == "O" or np.isnan(counts.data).any():
        raise ValueError("X must hold counts, without NaN.")
    if shares.ndim != 2 or shares.shape[1] != counts.shape[1]:
        raise ValueError(
            f"topics must have shape (n_components, {counts.shape[1]}), as X has so many "
            f"columns; got {shares.shape}."
        )
    if counts.shape[0] == 0:
        raise ValueError("X must have at least one document; got 0.")
    check_sizes(n_top_words=n_top_words)
    n_words = min(int(n_top_words), shares.shape[1])
    if n_words < 2:
        raise ValueError(
            f"at least 2 words must be compared; got n_top_words={n_top_words} "
            f"of {counted(shares.shape[1], 'feature')}."
        )
    top = np.argsort(-shares, axis=1, kind="stable")[:, :n_words]
    return np.array([_mean_npmi(counts[:, words]) for words in top])


def _mean_npmi(counts: sp.csc_matrix) -> float:
    """Mean normalised pointwise mutual information over pairs of columns of `counts`."""
    present = (counts > 0).astype(np.float64)
    together = np.asarray((present.T @ present).todense()) / counts.shape[0]  # shares of documents
    first, second = np.triu_indices(len(together), 1)
    alone, joint = np.diagonal(together), together[first, second]
    # Pairs that never meet have -1, the limit. Words that are in every document always occur
    # together: 1, not 0 / 0.
    npmi = np.where(joint > 0, 1.0, -1.0)
    some = (joint > 0) & (joint < 1)
    expected = (alone[first] * alone[second])[some]
    npmi[some] = np.log(joint[some] / expected) / -np.log(joint[some])
    return float(npmi.mean())


def match_topics(
    a: ArrayLike, b: ArrayLike
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Pair the topics of two models so that the sum of similarities is largest.

    Parameters
    ----------
    a, b : array-like of shape (n_topics, n_features)
        Rows are distributions over words, as ``components_`` of a topic model; their numbers of
        topics may differ.

    Returns
    -------
    rows, columns, similarity : ndarray of shape (n_pairs,)
        Topic ``rows[i]`` of `a` is paired with ``columns[i]`` of `b`, and one minus their
        Jensen-Shannon divergence in bits: 1 for equal topics, 0 for topics that share no word.
        The most similar pair comes first.

    Raises
    ------
    ValueError
        If the topics are not distributions over the same words.

    Notes
    -----
    **Privacy.** Of released topics it costs nothing.

    Examples
    --------
    >>> from sktensor_dp.metrics import match_topics
    >>> rows, columns, similarity = match_topics([[1.0, 0.0], [0.4, 0.6]], [[0.0, 1.0], [1.0, 0.0]])
    >>> rows.tolist(), columns.tolist()
    ([0, 1], [1, 0])
    """
    first, second = _distributions("a", a), _distributions("b", b)
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"a and b must have the same features, got {first.shape[1]} and {second.shape[1]}."
        )
    similarity = 1 - divergences(first, second)
    rows, columns = linear_sum_assignment(-similarity)
    paired = similarity[rows, columns]
    order = np.argsort(-paired, kind="stable")
    return rows[order], columns[order], paired[order]


def _distributions(name: str, topics: ArrayLike) -> Floats:
    """Validate topics, a row each, and scale rows to sum 1."""
    weights = np.asarray(topics, dtype=np.float64)
    is_table = weights.ndim == 2 and weights.size > 0
    if not is_table or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(
            f"{name} must be of shape (n_topics, n_features) and hold numbers >= 0, "
            f"got shape {weights.shape}."
        )
    largest = weights.max(axis=1, keepdims=True)
    if (largest <= 0).any():
        raise ValueError(f"{name} must have rows with a positive sum.")
    # Divide by the largest first, as a sum might overflow.
    shares = weights / largest
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def precision_at_k(y_true: ArrayLike | sp.spmatrix, y_score: ArrayLike, *, k: int = 10) -> float:
    """Share of the k best scored items that are relevant, averaged over people.

    Its arguments are those of ``sklearn.metrics.ndcg_score``.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_people, n_items)
        Above 0 where an item is relevant to a person. People without any are left out.
    y_score : array-like of shape (n_people, n_items)
        Scores, as of ``predict_rows``; -inf for items that may not be recommended, as those of
        the fit. Of equal ones the first counts.
    k : int, default=10
        Number of items recommended to each person, an integer >= 1.

    Returns
    -------
    float
        From 0 to 1; NaN where nothing is relevant to anyone.

    Raises
    ------
    ValueError
        If the shapes differ, numbers are missing (NaN), or `k` is below 1.

    Notes
    -----
    **Privacy.** It costs nothing and protects nothing: it describes the people it is given.

    Examples
    --------
    >>> from sktensor_dp.metrics import precision_at_k
    >>> precision_at_k([[1, 0, 1, 0]], [[0.9, 0.8, 0.1, 0.2]], k=2)
    0.5
    """
    hits, _ = _hits(y_true, y_score, k)
    return float(np.mean(hits / k)) if len(hits) else float("nan")


def recall_at_k(y_true: ArrayLike | sp.spmatrix, y_score: ArrayLike, *, k: int = 10) -> float:
    """Share of the relevant items that are among the k best scored, averaged over people.

    Parameters
    ----------
    y_true, y_score, k
        As for :func:`precision_at_k`.

    Returns
    -------
    float
        From 0 to 1; NaN where nothing is relevant to anyone.

    Raises
    ------
    ValueError
        If the shapes differ, numbers are missing (NaN), or `k` is below 1.

    Notes
    -----
    **Privacy.** As for :func:`precision_at_k`.

    Examples
    --------
    >>> from sktensor_dp.metrics import recall_at_k
    >>> recall_at_k([[1, 0, 1, 0], [0, 0, 0, 1]], [[0.9, 0.8, 0.1, 0.2], [0, 0, 0, 1]], k=2)
    0.75
    """
    hits, relevant = _hits(y_true, y_score, k)
    return float(np.mean(hits / relevant)) if len(hits) else float("nan")


def _hits(y_true: ArrayLike | sp.spmatrix, y_score: ArrayLike, k: int) -> tuple[Floats, Floats]:
    """Numbers of relevant items among the k best scored, and in all, for persons with any."""
    given = sp.csr_matrix(y_true)
    truth, scores = given > 0, np.asarray(y_score, dtype=np.float64)
    for name, numbers in (("y_true", given.data), ("y_score", scores)):
        if np.isnan(numbers).any():
            raise ValueError(f"{name} must hold no NaN.")
    if truth.shape != scores.shape:
        raise ValueError(
            f"y_true and y_score must have one shape, (n_people, n_items); got {truth.shape} and "
            f"{scores.shape}."
        )
    check_sizes(k=k)
    best = np.asarray(top_rows(np.where(scores == -np.inf, np.nan, scores), int(k)).rows, np.intp)
    people = np.repeat(np.arange(len(best)), best.shape[1])
    items = best.ravel()  # -1 where a person has fewer than k, which is no hit
    is_hit = np.asarray(truth[people, np.maximum(items, 0)]).ravel() & (items >= 0)
    hits = np.bincount(people, is_hit, minlength=len(best))
    relevant = np.diff(truth.indptr).astype(np.float64)
    return hits[relevant > 0], relevant[relevant > 0]
