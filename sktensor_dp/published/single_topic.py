"""AGN, AVN and DP-TPM of Imtiaz & Sarwate, for the single topic model.

H. Imtiaz, A. D. Sarwate, "Improved algorithms for differentially private orthogonal tensor
decomposition", ICASSP 2018. Where the print of Algorithm 1 does not run or is not private, it is
mended as little as it takes:

- *Ordered words.* Moments of words in their order are not symmetric, and symmetric noise leaves
  their antisymmetric part free of noise. ``agn_of_words`` and ``avn_of_words`` run the print; the
  moments of ``agn`` and ``avn`` are means over all ordered draws of different tokens.
- *Step 3*, ``SVD(K)``: noise can put negative eigenvalues among the K of largest
  magnitude, where ``D^(-1/2)`` of step 4 is not real. The K largest are taken, and
  of those the positive ones.
- *Section 2*: ``M3 = sum_k w_k a_k (x) a_k`` lacks a factor ``a_k``, and it is
  ``sqrt(w_k) W' a_k``, not ``W' a_k``, that are orthonormal.

DP-TPM (section 4) is Algorithm 3 of Wang & Anandkumar with documents, not entries, replaced:
"Delta_2 f_1 <= 2 |u|_inf^2, ... nu = 2 / epsilon' sqrt(2 log(1.25 / delta'))".

- The moment is a mean of N documents, so what is bounded by ``2 |u|_inf^2`` is N times
  the difference. `sensitivity` is "printed" without the 1/N, and "per_document" with it.
- The method needs an orthogonal tensor, and the paper does not say where it came from.
  Here M2 is released as in AGN, with half of epsilon and of delta, and a query for v in
  whitened space is one for ``x = W v`` over words, for which the bound is true: the answer
  is ``W' (M3(I, x, x) + nu |x|_inf^2 z)``.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.checks.parameters import OneOf
from sktensor_dp.data.counts import CountChunk, as_counts
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.privacy.calibration import gaussian_epsilon
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.published.claims import Claim, claim_of_call
from sktensor_dp.published.power_method import (
    POSITIVE_INT,
    check,
    check_guarantee,
    check_rank,
    noise_multiplier,
    noisy_columns,
    power_method_loop,
)
from sktensor_dp.queries.clips import Clip, CountNorm
from sktensor_dp.queries.count_moments import PairMoments, TripleMoments
from sktensor_dp.tensor import Whitener, robust_tensor_power_method, whitener
from sktensor_dp.tensor.arrays import Floats, RandomState, as_generator
from sktensor_dp.tensor.symmetric import (
    coordinates_to_symmetric,
    multilinear,
    n_unique,
    symmetric_to_coordinates,
    tensor_oracle,
)

# Clip that divides each document by its length (the norm is NORM_SLACK l), as the paper's moments
# do; statistics here are in the scale of counts.
ONE_DRAW = Clip(CountNorm(1), NORM_SLACK)


@dataclass(frozen=True, eq=False)
class PublishedTopics:
    """Topics found by a published algorithm.

    Attributes
    ----------
    topics : ndarray of shape (n_found, n_features)
        Rows are distributions, but in configuration 4 of :func:`dp_spectral_lda`, which adds noise
        to them. :func:`agn`, :func:`avn` and :func:`dp_tpm` find fewer than `n_components` if M2
        with noise has fewer positive eigenvalues.
    weights : ndarray of shape (n_found,)
        ``1 / eigenvalue**2`` of the whitened tensor, times a factor of the prior in
        :func:`dp_spectral_lda`, or 0 where an eigenvalue is not positive. They need not sum to 1.
    claim : Claim
        Privacy that the paper claims, and the verdict on it.
    """

    topics: Floats
    weights: Floats
    claim: Claim


def agn(
    X: ArrayLike,
    n_components: int,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    random_state: RandomState = None,
) -> PublishedTopics:
    """Topics from moments with Gaussian noise on unique entries (AGN).

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_features)
        Counts of words. Memory grows with ``n_features ** 3``.
    n_components : int
        Number K of topics, at most ``n_features``.
    epsilon, delta : float, default=1.0 and 1e-6
        Privacy that the algorithm claims, half for each moment; an infinite epsilon leaves out
        noise.
    random_state : int, Generator, RandomState or None, default=None
        Seeds restarts of the power method, never noise.

    Returns
    -------
    PublishedTopics

    Raises
    ------
    ValueError
        If a parameter is outside its range or `X` does not hold counts.

    Notes
    -----
    **Privacy.** *Unit*: one document. *Neighbours*: replace one. *Public*: the shape of `X` and the
    parameters. *Releases*: M2 and M3, once each, outside any budget. *Not covered*: see ``claim``;
    noise is added to the moments in floating point.

    References
    ----------
    Algorithm 1 of Imtiaz & Sarwate; zeroing of negative entries from section 4. Topics from
    eigenvectors: Anandkumar, Ge, Hsu, Kakade & Telgarsky (2014), Theorem 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.published import agn
    >>> topics = np.repeat([[0.7, 0.2, 0.1, 0.0], [0.0, 0.1, 0.2, 0.7]], 100_000, axis=0)
    >>> found = agn(np.random.default_rng(0).multinomial(3, topics), 2)
    >>> sorted(found.topics.argmax(axis=1).tolist()), found.claim.holds
    ([0, 3], True)
    >>> round(found.claim.exact_epsilon, 2)
    0.53
    """
    return _topics("agn", X, n_components, epsilon, delta, random_state)


def avn(
    X: ArrayLike,
    n_components: int,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    random_state: RandomState = None,
) -> PublishedTopics:
    """Topics from moments, the third with noise of density ``exp(-beta |b|)`` (AVN).

    Parameters
    ----------
    X, n_components, epsilon, delta, random_state
        As for :func:`agn`; the second moment takes all of delta.

    Returns
    -------
    PublishedTopics

    Raises
    ------
    ValueError
        As for :func:`agn`.

    Notes
    -----
    **Privacy.** As for :func:`agn`, with a pure epsilon for the third moment.

    Examples
    --------
    >>> from sktensor_dp.published import avn
    >>> avn([[2, 1], [1, 2], [3, 0]], 1, epsilon=float("inf")).topics.round(2)
    array([[0.67, 0.33]])
    """
    return _topics("avn", X, n_components, epsilon, delta, random_state)


class _MomentNoise(NamedTuple):
    """Noise for M2 and M3, and the epsilon that it gives, by exact composition."""

    pairs: Floats
    triples: Floats
    exact_epsilon: float


def _moment_noise(
    n_documents: int, dim: int, epsilon: float, delta: float, *, spherical: bool
) -> _MomentNoise:
    """Draw noise for M2 and M3.

    Each moment has half of epsilon. Both have Gaussian noise and share delta (AGN), or M3 has
    `spherical` noise (AVN).
    """
    noise = NoiseSource()
    sensitivity = math.sqrt(2) / n_documents
    half = epsilon / 2
    sigma = classical_sigma(sensitivity, half, delta if spherical else delta / 2)
    mu = sensitivity / sigma if sigma > 0 else math.inf
    pairs = gaussian_unique_entries(dim, 2, sigma, noise)
    if spherical:
        triples = spherical_unique_entries(dim, 3, half / sensitivity, noise)
        return _MomentNoise(pairs, triples, half + gaussian_epsilon(mu, delta))
    triples = gaussian_unique_entries(dim, 3, sigma, noise)
    return _MomentNoise(pairs, triples, gaussian_epsilon(math.sqrt(2) * mu, delta))


def classical_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """Deviation of Gaussian noise by the classical calibration (steps 1 and 5)."""
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def gaussian_unique_entries(dim: int, order: int, sigma: float, noise: NoiseSource) -> Floats:
    """Symmetric array whose unique entries are independent normals (steps 1, 5 and 6)."""
    entries = np.zeros(n_unique(dim, order))
    if sigma > 0:
        entries = sigma * noise.gaussian(entries, 1.0)
    return _from_unique(entries, dim, order)


def spherical_unique_entries(dim: int, order: int, beta: float, noise: NoiseSource) -> Floats:
    """Symmetric array whose unique entries b have density ``exp(-beta |b|)`` (step 5)."""
    entries = np.zeros(n_unique(dim, order))
    if math.isfinite(beta):
        entries = noise.spherical_laplace(entries, 1.0) / beta
    return _from_unique(entries, dim, order)


def _from_unique(entries: Floats, dim: int, order: int) -> Floats:
    """Symmetric array of `order` modes of length `dim` with the given unique entries."""
    # Coordinates of an array of ones are the roots of the multiplicity of each unique entry.
    roots = symmetric_to_coordinates(np.ones((dim,) * order))
    return coordinates_to_symmetric(entries * roots, dim, order)


def _topics(
    name: str,
    X: ArrayLike,
    n_components: int,
    epsilon: float,
    delta: float,
    random_state: RandomState,
) -> PublishedTopics:
    """Topics of counts by Algorithm 1 in the form `name`, and the power method."""
    chunk = validated_counts(X, n_components, epsilon, delta)
    n_documents, dim = chunk.X.shape
    noise = _moment_noise(n_documents, dim, epsilon, delta, spherical=name == "avn")
    claim = claim_of_call(name, epsilon, delta, noise.exact_epsilon)
    M2 = PairMoments(ONE_DRAW, 1.0).total(chunk) / n_documents + noise.pairs
    white = positive_whitener(M2, n_components)
    # M3(W, W, W) follows from M3(U, U, U), which needs no dense tensor of words.
    M3 = TripleMoments(white.basis, ONE_DRAW).total(chunk) / n_documents
    M3 += multilinear(noise.triples, white.basis)
    eigenvalues, vectors = robust_tensor_power_method(
        multilinear(M3, white.transform), white.n_components, random_state=random_state
    )
    return PublishedTopics(*topics_of_eigenpairs(eigenvalues, white.unwhiten(vectors)), claim)


def positive_whitener(M2: Floats, n_components: int, least: int = 1) -> Whitener:
    """Whitener of a noisy second moment by its positive eigenvalues, at least `least` of them."""
    white = whitener(M2, n_components)
    if white.n_components < least:
        raise ValueError(
            f"X with noise must have {least} or more positive eigenvalues in its second moment: "
            "more documents, fewer components or a larger epsilon are needed."
        )
    return white


def topics_of_eigenpairs(eigenvalues: Floats, unwhitened: Floats) -> tuple[Floats, Floats]:
    """Topics and weights, from eigenvalues and eigenvectors mapped back to words."""
    weights = np.divide(1.0, eigenvalues**2, out=np.zeros_like(eigenvalues), where=eigenvalues > 0)
    topics = np.maximum(eigenvalues[:, None] * unwhitened, 0.0)
    sums = topics.sum(axis=1, keepdims=True)
    uniform = np.full_like(topics, 1 / topics.shape[1])
    return np.divide(topics, sums, out=uniform, where=sums > 0), weights


def validated_counts(X: ArrayLike, n_components: int, epsilon: float, delta: float) -> CountChunk:
    """Validate counts and parameters; return the counts as one chunk, or raise ValueError."""
    check_guarantee(epsilon, delta)
    check(POSITIVE_INT, n_components=n_components)
    counts = as_counts(X)
    if counts.shape[0] == 0:
        raise ValueError("X must have at least one document, got none.")
    check_rank(n_components, counts.shape[1], "X")
    return CountChunk(counts)


@dataclass(frozen=True, eq=False)
class WhitenedMoments:
    """Output of Algorithm 1 of Imtiaz & Sarwate.

    Attributes
    ----------
    tensor, subspace : ndarray of shape (n_components,) * 3 and (n_features, n_components)
        The third moment with noise, in the subspace W.
    claim : Claim
        Privacy that the paper claims, and the verdict on it.
    """

    tensor: Floats
    subspace: Floats
    claim: Claim


def agn_of_words(
    words: ArrayLike, n_features: int, n_components: int, epsilon: float = 1.0, delta: float = 1e-6
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
        Privacy that the algorithm claims; half for each moment.

    Returns
    -------
    WhitenedMoments

    Raises
    ------
    ValueError
        If a parameter is outside its range, or `words` does not hold three words each.

    Warns
    -----
    UnsoundClaimWarning
        Always: there is no privacy, see ``claim``.

    Examples
    --------
    >>> import warnings
    >>> from sktensor_dp.published import agn_of_words
    >>> with warnings.catch_warnings(action="ignore"):
    ...     agn_of_words([[0, 1, 2], [2, 2, 0]], 3, 2).claim.exact_epsilon
    inf
    """
    return _whitened_words("agn_of_words", words, n_features, n_components, epsilon, delta)


def avn_of_words(
    words: ArrayLike, n_features: int, n_components: int, epsilon: float = 1.0, delta: float = 1e-6
) -> WhitenedMoments:
    """Whitened third moment of ordered words with noise of density ``exp(-beta |b|)`` (AVN).

    Parameters
    ----------
    words, n_features, n_components, epsilon, delta
        As for :func:`agn_of_words`; the second moment takes all of delta.

    Returns
    -------
    WhitenedMoments

    Raises
    ------
    ValueError
        As for :func:`agn_of_words`.

    Warns
    -----
    UnsoundClaimWarning
        Always.

    Examples
    --------
    >>> import warnings
    >>> from sktensor_dp.published import avn_of_words
    >>> with warnings.catch_warnings(action="ignore"):
    ...     avn_of_words([[0, 1, 2], [2, 2, 0]], 3, 2).claim.verdict
    'does not hold'
    """
    return _whitened_words("avn_of_words", words, n_features, n_components, epsilon, delta)


def _whitened_words(
    name: str, words: ArrayLike, n_features: int, n_components: int, epsilon: float, delta: float
) -> WhitenedMoments:
    """Whiten the noisy moments of ordered words: steps 2 to 4, 7 and 8 of Algorithm 1."""
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
    claim, spherical = claim_of_call(name, epsilon, delta), name == "avn_of_words"
    noise = _moment_noise(len(index), n_features, epsilon, delta, spherical=spherical)
    U, scale, _ = np.linalg.svd(_moment(index[:, :2], n_features) + noise.pairs)
    W = U[:, :n_components] / np.sqrt(scale[:n_components])
    M3 = _moment(index, n_features) + noise.triples
    return WhitenedMoments(multilinear(M3, W), W, claim)


def _moment(index: NDArray[np.integer], dim: int) -> Floats:
    """Mean over documents, rows of `index`, of the outer product of their words' indicators."""
    shape = (dim,) * index.shape[1]
    cells = np.ravel_multi_index(tuple(index.T), shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape) / len(index)


def dp_tpm(
    X: ArrayLike,
    n_components: int,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    sensitivity: Literal["printed", "per_document"] = "printed",
    n_restarts: int = 10,
    max_iter: int = 10,
    random_state: RandomState = None,
) -> PublishedTopics:
    """Topics by the noisy power method, the baseline that the paper compares AGN and AVN with.

    Parameters
    ----------
    X, n_components, epsilon, delta, random_state
        As for :func:`agn`; half of epsilon and delta is for M2, half for all power steps.
    sensitivity : {"printed", "per_document"}, default="printed"
        "printed": ``2 |u|_inf^2``. "per_document": the same over ``n_documents``.
    n_restarts, max_iter : int, default=10
        Starting points L, and power steps R, of each component.

    Returns
    -------
    PublishedTopics

    Raises
    ------
    ValueError
        As for :func:`agn`.

    Notes
    -----
    **Privacy.** As for :func:`agn`, but *releases* are M2 once and K L (R + 1) queries of M3.

    Examples
    --------
    >>> from sktensor_dp.published import dp_tpm
    >>> dp_tpm([[2, 1], [1, 2], [3, 0]], 1, epsilon=float("inf")).topics.round(2)
    array([[0.67, 0.33]])
    """
    check(POSITIVE_INT, n_restarts=n_restarts, max_iter=max_iter)
    check(OneOf("printed", "per_document"), sensitivity=sensitivity)
    chunk = validated_counts(X, n_components, epsilon, delta)
    n_documents, dim = chunk.X.shape
    noise, sensitivity_of_pairs = NoiseSource(), math.sqrt(2) / n_documents
    sigma = classical_sigma(sensitivity_of_pairs, epsilon / 2, delta / 2)
    M2 = PairMoments(ONE_DRAW, 1.0).total(chunk) / n_documents
    white = positive_whitener(M2 + gaussian_unique_entries(dim, 2, sigma, noise), n_components)
    # The schedule is public: it depends on the number of components asked for.
    n_queries = n_components * n_restarts * (max_iter + 1)
    multiplier = noise_multiplier(epsilon / 2, delta / 2, n_queries)
    nu = 2 * multiplier / (1 if sensitivity == "printed" else n_documents)
    # M3(W, W, W) follows from M3(U, U, U), which needs no dense tensor of words.
    M3 = TripleMoments(white.basis, ONE_DRAW).total(chunk) / n_documents
    oracle, W = tensor_oracle(multilinear(M3, white.transform)), white.matrix

    # A query for v in whitened space has the noise of one for x = W v over words.
    def step(V: Floats) -> Floats:
        x = W @ V
        noise_of_words = noisy_columns(np.zeros(x.shape), nu * np.abs(x).max(axis=0) ** 2, noise)
        return oracle(V) + W.T @ noise_of_words

    def value(V: Floats) -> Floats:
        deviation = nu * np.abs(W @ V).max(axis=0) ** 3
        return noisy_columns(np.sum(V * oracle(V), axis=0), deviation, noise)

    weights, vectors = power_method_loop(
        step, value, white.n_components, white.n_components,
        n_restarts=n_restarts, max_iter=max_iter, rng=as_generator(random_state),
    )  # fmt: skip
    # A query moves by 2 |x|_inf^2 / N, and has noise of deviation nu |x|_inf^2.
    mu_of_steps = math.sqrt(n_queries) * (2 / n_documents) / nu if nu > 0 else math.inf
    mu = math.hypot(sensitivity_of_pairs / sigma if sigma > 0 else math.inf, mu_of_steps)
    form = int(sensitivity == "per_document")  # as printed: 0
    claim = claim_of_call("dp_tpm", epsilon, delta, gaussian_epsilon(mu, delta), form=form)
    return PublishedTopics(*topics_of_eigenpairs(weights, white.unwhiten(vectors)), claim)
