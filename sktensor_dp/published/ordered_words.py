r"""AGN and AVN on words in their order, as Imtiaz & Sarwate print Algorithm 1.

``M2 = E[t1 (x) t2]`` and ``M3 = E[t1 (x) t2 (x) t3]`` of ordered words are not symmetric, the
noise on them is: what is not symmetric in them is released as it is. ``agn`` and ``avn`` run the
same steps on symmetrised moments.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.published.agn_avn import MomentNoise, agn_noise, avn_noise
from sktensor_dp.published.claim import Claim, claimed
from sktensor_dp.published.power_method import POSITIVE_INT, check, check_guarantee, check_rank
from sktensor_dp.tensor import multilinear
from sktensor_dp.tensor.arrays import Floats

REASON = (
    "Symmetric noise leaves the antisymmetric part of the moments free of noise. Documents with "
    "the same words in another order are told apart with certainty."
)
EVIDENCE = (
    "tests/published/test_verdicts_imtiaz_sarwate.py"
    "::test_symmetric_noise_does_not_cover_the_order_of_words"
)
PAPER = "of ordered words (Imtiaz & Sarwate, Algorithm 1)"
NEIGHBOURS = "data sets of equally many documents that differ in one, words in their order"
AGN = Claim(f"AGN {PAPER}", NEIGHBOURS, "does not hold", REASON, EVIDENCE, "published.agn")
AVN = Claim(f"AVN {PAPER}", NEIGHBOURS, "does not hold", REASON, EVIDENCE, "published.avn")


@dataclass(frozen=True, eq=False)
class WhitenedMoments:
    """What Algorithm 1 outputs.

    Attributes
    ----------
    tensor : ndarray of shape (n_components,) * 3
        The third moment with noise, in the subspace.
    subspace : ndarray of shape (n_features, n_components)
        W.
    claim : Claim
        What was claimed and what is true.
    """

    tensor: Floats
    subspace: Floats
    claim: Claim


@claimed(AGN)
def agn_of_words(
    words: ArrayLike,
    n_features: int,
    n_components: int,
    epsilon: float = 1.0,
    delta: float = 1e-6,
) -> WhitenedMoments:
    """Whitened third moment of ordered words with Gaussian noise (AGN as printed).

    Parameters
    ----------
    words : array-like of int of shape (n_documents, 3)
        The first three words of each document, as numbers from 0 to ``n_features - 1``.
    n_features : int
        Number D of words. Memory grows with ``n_features ** 3``.
    n_components : int
        Number K of topics, at most ``n_features``.
    epsilon, delta : float, default=1.0 and 1e-6
        Guarantee claimed; half for each moment.

    Returns
    -------
    WhitenedMoments
        Tensor, subspace, and what the claim is worth.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or `words` does not hold three words each.

    Warns
    -----
    UnsoundClaimWarning
        Always.

    Notes
    -----
    **Privacy.** None: see ``claim``.

    References
    ----------
    H. Imtiaz, A. D. Sarwate, "Improved algorithms for differentially private orthogonal tensor
    decomposition", ICASSP 2018, Algorithm 1 and Theorem 1.

    Examples
    --------
    >>> import warnings
    >>> from sktensor_dp import UnsoundClaimWarning
    >>> from sktensor_dp.published import agn_of_words
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UnsoundClaimWarning)
    ...     found = agn_of_words([[0, 1, 2], [2, 2, 0]], 3, 2)
    >>> found.tensor.shape, found.claim.exact_epsilon
    ((2, 2, 2), inf)
    """
    index = _validated(words, n_features, n_components, epsilon, delta)
    noise = agn_noise(len(index), n_features, epsilon, delta)
    return _whitened(index, n_components, noise, AGN.at(epsilon, delta))


@claimed(AVN)
def avn_of_words(
    words: ArrayLike,
    n_features: int,
    n_components: int,
    epsilon: float = 1.0,
    delta: float = 1e-6,
) -> WhitenedMoments:
    """Whitened third moment of ordered words with noise of density ``exp(-beta |b|)`` (AVN).

    Parameters
    ----------
    words, n_features, n_components, epsilon, delta
        As for :func:`agn_of_words`; the second moment takes all of delta.

    Returns
    -------
    WhitenedMoments

    Warns
    -----
    UnsoundClaimWarning
        Always.

    Notes
    -----
    **Privacy.** None: see ``claim``.

    References
    ----------
    As for :func:`agn_of_words`.

    Examples
    --------
    >>> import warnings
    >>> from sktensor_dp import UnsoundClaimWarning
    >>> from sktensor_dp.published import avn_of_words
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UnsoundClaimWarning)
    ...     print(avn_of_words([[0, 1, 2], [2, 2, 0]], 3, 2).claim.verdict)
    does not hold
    """
    index = _validated(words, n_features, n_components, epsilon, delta)
    noise = avn_noise(len(index), n_features, epsilon, delta)
    return _whitened(index, n_components, noise, AVN.at(epsilon, delta))


def _whitened(
    index: NDArray[np.intp], n_components: int, noise: MomentNoise, claim: Claim
) -> WhitenedMoments:
    """Steps 2 to 4, 7 and 8."""
    U, scale, _ = np.linalg.svd(_mean(index[:, :2], noise.pairs.shape) + noise.pairs)
    W = U[:, :n_components] / np.sqrt(scale[:n_components])
    return WhitenedMoments(
        multilinear(_mean(index, noise.triples.shape) + noise.triples, W), W, claim
    )


def _mean(index: NDArray[np.intp], shape: tuple[int, ...]) -> Floats:
    """Mean of t1 (x) t2 (x) ... over documents."""
    cells = np.ravel_multi_index(tuple(index.T), shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape) / len(index)


def _validated(
    words: ArrayLike, n_features: int, n_components: int, epsilon: float, delta: float
) -> NDArray[np.intp]:
    check(POSITIVE_INT, n_features=n_features, n_components=n_components)
    check_guarantee(epsilon, delta)
    check_rank(n_components, n_features, "words")
    index = np.asarray(words)
    if index.ndim != 2 or index.shape[1] != 3 or len(index) == 0 or index.dtype.kind not in "iu":
        raise ValueError(
            "words must be integers of shape (n_documents >= 1, 3), got an array of shape "
            f"{index.shape} and type {index.dtype}."
        )
    if index.min() < 0 or index.max() >= n_features:
        raise ValueError(f"words must be between 0 and n_features - 1 = {n_features - 1}.")
    return index.astype(np.intp)
