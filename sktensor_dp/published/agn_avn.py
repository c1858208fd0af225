r"""AGN and AVN of Imtiaz & Sarwate (Algorithm 1), for the single topic model.

Where the print does not run or is not private, it is mended as little as it takes:

- *Ordered words.* ``M2 = E[t1 (x) t2]`` and ``M3 = E[t1 (x) t2 (x) t3]`` of words
  in their order are not symmetric, and symmetric noise leaves their antisymmetric
  part free of noise: Theorem 1 fails. Counts know no order; the moments here are
  means over all ordered draws of different tokens, which are symmetric.
- *Step 3*, ``SVD(K)``: noise can put negative eigenvalues among the K of largest
  magnitude, where ``D^(-1/2)`` of step 4 is not real. The K largest are taken, and
  of those the positive ones.
- *Section 2*: ``M3 = sum_k w_k a_k (x) a_k`` lacks a factor ``a_k``, and it is
  ``sqrt(w_k) W' a_k``, not ``W' a_k``, that are orthonormal.
- *Sensitivity*: "at most two entries" of a difference are not zero for ordered words;
  symmetric ones have up to six each. The bound ``sqrt(2) / N`` holds all the same.
- *AVN*: the density is over the unique entries of the tensor, the proof uses the
  norm of all of it. Unique entries are the smaller norm, so the proof carries over.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.privacy.calibration import gaussian_epsilon
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.published.claim import Claim, claimed
from sktensor_dp.published.power_method import POSITIVE_INT, check, check_guarantee, check_rank
from sktensor_dp.queries.counts import CountChunk, as_counts
from sktensor_dp.queries.moments import PairMoments, TripleMoments
from sktensor_dp.queries.norms import NORM_SLACK, Clip, CountNorm
from sktensor_dp.tensor import (
    Whitener,
    coordinates_to_symmetric,
    multilinear,
    n_unique,
    robust_tensor_power_method,
    symmetric_to_coordinates,
    whitener,
)
from sktensor_dp.tensor.arrays import Floats

# Weight 1 / l per document (the norm is NORM_SLACK l): the statistics are in the scale of counts,
# the paper's moments are not.
ONE_DRAW = Clip(CountNorm(1), NORM_SLACK)
NEIGHBOURS = "data sets of equally many documents that differ in one, moments symmetrised"
REASON = (
    "Theorem 1 holds if the moments are symmetrised, as here, in real arithmetic. On moments of "
    "ordered words, as printed, symmetric noise leaves the antisymmetric part free of noise."
)
SYMMETRISED = (
    "tests/published/test_verdicts_imtiaz_sarwate.py"
    "::test_symmetrised_words_move_moments_by_root_two"
)
UNIQUE = (
    "tests/published/test_verdicts_imtiaz_sarwate.py::test_norm_of_unique_entries_keeps_avn_private"
)
COUNTERPART = "PrivateSpectralLDA(perturbation='moment_tensor', doc_topic_prior=0"
PAPER = "(Imtiaz & Sarwate, Algorithm 1)"
AGN = Claim(f"AGN {PAPER}", NEIGHBOURS, "holds if", REASON, SYMMETRISED, COUNTERPART + ")")
AVN = Claim(f"AVN {PAPER}", NEIGHBOURS, "holds if", REASON, UNIQUE, COUNTERPART + ", delta=0)")


@dataclass(frozen=True, eq=False)
class PublishedTopics:
    """Topics found by a published algorithm.

    Attributes
    ----------
    topics : ndarray of shape (n_found, n_features)
        Rows are distributions; fewer than asked for where M2 with noise has too
        few positive eigenvalues.
    weights : ndarray of shape (n_found,)
        ``1 / eigenvalue**2`` of the whitened tensor: under noise they need not
        sum to 1.
    claim : Claim
        What was claimed and what is true.
    """

    topics: Floats
    weights: Floats
    claim: Claim


@claimed(AGN)
def agn(
    X: ArrayLike,
    n_components: int,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    random_state: Any = None,
) -> PublishedTopics:
    """Topics from moments with Gaussian noise on unique entries (AGN).

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_features)
        Counts of words. Memory grows with ``n_features ** 3``.
    n_components : int
        Number K of topics, at most ``n_features``.
    epsilon : float, default=1.0
        Guarantee claimed, > 0; half for each moment. Infinity leaves out noise.
    delta : float, default=1e-6
        Guarantee claimed, in (0, 1); half for each moment.
    random_state : int, Generator, RandomState or None, default=None
        Seeds restarts of the power method, never noise.

    Returns
    -------
    PublishedTopics
        Topics, weights, and what the claim is worth.

    Raises
    ------
    ValueError
        If a parameter is outside its range or `X` does not hold counts.

    Notes
    -----
    **Privacy.** *Unit*: one document. *Neighbours*: replace one. *Public*: the shape
    of `X` and the parameters. *Releases*: M2 and M3, once each, outside any budget.
    *Not covered*: see ``claim``; noise is added to the moments in floating point.

    References
    ----------
    H. Imtiaz, A. D. Sarwate, "Improved algorithms for differentially private
    orthogonal tensor decomposition", ICASSP 2018, Algorithm 1; zeroing of negative
    entries from its section 4. Topics from eigenvectors: Anandkumar, Ge, Hsu, Kakade
    & Telgarsky (2014), Theorem 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.published import agn
    >>> rng = np.random.default_rng(0)
    >>> topics = np.array([[0.7, 0.2, 0.1, 0.0], [0.0, 0.1, 0.2, 0.7]])
    >>> X = rng.multinomial(3, topics[rng.integers(2, size=200_000)])
    >>> found = agn(X, 2, random_state=0)
    >>> bool(np.abs(found.topics[np.argsort(-found.topics[:, 0])] - topics).max() < 0.05)
    True
    >>> found.claim.holds, round(found.claim.exact_epsilon, 2)
    (True, 0.53)
    """
    chunk = validated_counts(X, n_components, epsilon, delta)
    n_documents, dim = chunk.X.shape
    noise = agn_noise(n_documents, dim, epsilon, delta)
    mu = math.sqrt(2) * noise.mu
    claim = AGN.at(epsilon, delta, gaussian_epsilon(mu, delta))
    return _topics(chunk, n_components, noise, claim, random_state)


@claimed(AVN)
def avn(
    X: ArrayLike,
    n_components: int,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    random_state: Any = None,
) -> PublishedTopics:
    """Topics from moments, the third with noise of density ``exp(-beta |b|)`` (AVN).

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_features)
        Counts of words. Memory grows with ``n_features ** 3``.
    n_components : int
        Number K of topics, at most ``n_features``.
    epsilon : float, default=1.0
        Guarantee claimed, > 0; half for each moment. Infinity leaves out noise.
    delta : float, default=1e-6
        Guarantee claimed, in (0, 1); the second moment takes all of it.
    random_state : int, Generator, RandomState or None, default=None
        Seeds restarts of the power method, never noise.

    Returns
    -------
    PublishedTopics
        Topics, weights, and what the claim is worth.

    Raises
    ------
    ValueError
        If a parameter is outside its range or `X` does not hold counts.

    Notes
    -----
    **Privacy.** As for :func:`agn`, with a pure epsilon for the third moment.

    References
    ----------
    H. Imtiaz, A. D. Sarwate, "Improved algorithms for differentially private
    orthogonal tensor decomposition", ICASSP 2018, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.published import avn
    >>> rng = np.random.default_rng(0)
    >>> topics = np.array([[0.7, 0.2, 0.1, 0.0], [0.0, 0.1, 0.2, 0.7]])
    >>> X = rng.multinomial(3, topics[rng.integers(2, size=200_000)])
    >>> found = avn(X, 2, random_state=0)
    >>> bool(np.abs(found.topics[np.argsort(-found.topics[:, 0])] - topics).max() < 0.05)
    True
    """
    chunk = validated_counts(X, n_components, epsilon, delta)
    n_documents, dim = chunk.X.shape
    noise = avn_noise(n_documents, dim, epsilon, delta)
    claim = AVN.at(epsilon, delta, epsilon / 2 + gaussian_epsilon(noise.mu, delta))
    return _topics(chunk, n_components, noise, claim, random_state)


class MomentNoise(NamedTuple):
    """Noise for both moments, and what the Gaussian noise on one costs."""

    pairs: Floats
    triples: Floats
    mu: float


def agn_noise(n_documents: int, dim: int, epsilon: float, delta: float) -> MomentNoise:
    """Gaussian noise on both moments, each at half of the guarantee."""
    noise, delta2 = NoiseSource(), math.sqrt(2) / n_documents
    sigma = classical_sigma(delta2, epsilon / 2, delta / 2)
    pairs, triples = (gaussian_unique_entries(dim, order, sigma, noise) for order in (2, 3))
    return MomentNoise(pairs, triples, delta2 / sigma if sigma > 0 else math.inf)


def avn_noise(n_documents: int, dim: int, epsilon: float, delta: float) -> MomentNoise:
    """Gaussian noise on the second moment, with all of delta, and spherical on the third."""
    noise, delta2 = NoiseSource(), math.sqrt(2) / n_documents
    sigma = classical_sigma(delta2, epsilon / 2, delta)
    pairs = gaussian_unique_entries(dim, 2, sigma, noise)
    triples = spherical_unique_entries(dim, 3, epsilon / 2 / delta2, noise)
    return MomentNoise(pairs, triples, delta2 / sigma if sigma > 0 else math.inf)


def classical_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """Standard deviation of noise by the classical calibration, steps 1 and 5.

    Parameters
    ----------
    sensitivity : float
        In L2.
    epsilon, delta : float
        Of this release alone.

    Returns
    -------
    float
        ``sensitivity sqrt(2 log(1.25 / delta)) / epsilon``; 0 for an infinite epsilon.

    Examples
    --------
    >>> round(classical_sigma(1.0, 1.0, 1e-6), 2)
    5.3
    """
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def gaussian_unique_entries(dim: int, order: int, sigma: float, noise: NoiseSource) -> Floats:
    """Symmetric array whose unique entries are independent normals (steps 1, 5 and 6).

    Parameters
    ----------
    dim : int
        Length of each mode.
    order : {2, 3}
        Number of modes.
    sigma : float
        Standard deviation of every entry, on the diagonal and off it.
    noise : NoiseSource
        Source of the noise.

    Returns
    -------
    ndarray of shape (dim,) * order
        Its law is not invariant under rotations: off-diagonal entries have up to six
        times the variance that isotropic noise of the same guarantee has.
    """
    entries = np.zeros(n_unique(dim, order))
    if sigma > 0:
        entries = sigma * noise.gaussian(entries, 1.0)
    return _from_unique(entries, dim, order)


def spherical_unique_entries(dim: int, order: int, beta: float, noise: NoiseSource) -> Floats:
    """Symmetric array whose unique entries b have density ``exp(-beta |b|)`` (step 5).

    Parameters
    ----------
    dim : int
        Length of each mode.
    order : {2, 3}
        Number of modes.
    beta : float
        Epsilon over sensitivity; infinity gives zeros.
    noise : NoiseSource
        Source of the noise.

    Returns
    -------
    ndarray of shape (dim,) * order
        ``|b|`` follows a Gamma law of shape ``n_unique(dim, order)`` and rate ``beta``.
    """
    entries = np.zeros(n_unique(dim, order))
    if math.isfinite(beta):
        entries = noise.spherical_laplace(entries, 1.0) / beta
    return _from_unique(entries, dim, order)


def _from_unique(entries: Floats, dim: int, order: int) -> Floats:
    # Coordinates of ones are the roots of how often each unique entry occurs.
    roots = symmetric_to_coordinates(np.ones((dim,) * order))
    array: Floats = coordinates_to_symmetric(entries * roots, dim, order)
    return array


def _topics(
    chunk: CountChunk,
    n_components: int,
    noise: MomentNoise,
    claim: Claim,
    random_state: Any,
) -> PublishedTopics:
    """Steps 2 to 8, the tensor power method, and topics from its eigenvectors."""
    n_documents = chunk.X.shape[0]
    M2 = PairMoments(ONE_DRAW, 1.0).total(chunk) / n_documents + noise.pairs
    white = positive_whitener(M2, n_components)
    # M3(W, W, W) by way of M3(U, U, U): the same, without a dense tensor of words.
    M3 = TripleMoments(white.basis, (ONE_DRAW,)).total(chunk) / n_documents
    M3 += multilinear(noise.triples, white.basis)
    eigenvalues, vectors = robust_tensor_power_method(
        multilinear(M3, white.transform), white.n_components, random_state=random_state
    )
    found = topics_of_eigenpairs(eigenvalues, white.unwhiten(vectors))
    return PublishedTopics(*found, claim)


def positive_whitener(M2: Floats, n_components: int) -> Whitener:
    """Whitener of a second moment with noise, or an error that says what would help."""
    white = whitener(M2, n_components)
    if white.n_components == 0:
        raise ValueError(
            "X with noise has no positive eigenvalue in its second moment: "
            "more documents or a larger epsilon are needed."
        )
    return white


def topics_of_eigenpairs(eigenvalues: Floats, unwhitened: Floats) -> tuple[Floats, Floats]:
    """Topics and weights from eigenvalues and unwhitened eigenvectors, the rows.

    Topics have negative entries set to zero and sum to 1; a vector without a positive
    entry becomes the uniform distribution.
    """
    weights = np.divide(1.0, eigenvalues**2, out=np.zeros_like(eigenvalues), where=eigenvalues > 0)
    topics = np.maximum(eigenvalues[:, None] * unwhitened, 0.0)
    sums = topics.sum(axis=1, keepdims=True)
    uniform = np.full_like(topics, 1 / topics.shape[1])
    return np.divide(topics, sums, out=uniform, where=sums > 0), weights


def validated_counts(X: ArrayLike, n_components: int, epsilon: float, delta: float) -> CountChunk:
    """Counts with parameters of the right kind, or an error that names what is wrong."""
    check_guarantee(epsilon, delta)
    check(POSITIVE_INT, n_components=n_components)
    counts = as_counts(X)
    if counts.shape[0] == 0:
        raise ValueError("X must have at least one document, got none.")
    check_rank(n_components, counts.shape[1], "X")
    return CountChunk(counts)
