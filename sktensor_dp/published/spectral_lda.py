"""The four noise configurations of DeCarolis et al. for spectral LDA (Theorems 10, 12, 14, 16).

C. DeCarolis, M. Ram, S. Esmaeili, Y.-X. Wang, F. Huang, "An end-to-end differentially private
latent Dirichlet allocation using a spectral algorithm", ICML 2020.

Noise goes on edges of a graph that runs from counts to topics:

1. (e3, e4, e8): M3; M2 for the whitener W; M2 once more for its pseudo-inverse.
2. (e6, e8): the whitened tensor T = M3(W, W, W); M2 for the pseudo-inverse.
3. (e7, e8): eigenvectors and eigenvalues of T; M2 for the pseudo-inverse.
4. (e9): topics and weights.

Sensitivities from configuration 2 on depend on the data by way of sigma_k of M2, and from 3 on by
gamma_s, the least gap of eigenvalues of T. Lemma 9 releases bounds on both, Lemma 8 uses them.
Where the print leaves something open, the simplest choice is taken:

- *epsilon and delta* are divided equally among releases, bounds of Lemma 9 included. In
  configuration 3 each eigenvector and eigenvalue gets the noise of (138) and (139), which is
  enough for one alone; in 4 each topic and weight likewise. The sigma_1 of (117) has no noise.
- *Pseudo-inverse*: in configuration 1, W is public and topics are read as ``(M2 + E8) W v``; in 2
  and 3 it is not, and W^DP is found anew from ``M2 + E8``, as printed. Its frame is not that of T,
  so that topics are wrong even with little noise wherever eigenvalues of M2 are close.
- *gamma_s* counts gaps between the k eigenvalues; for k = 1 the one gap to 0.
- *Topics* are scaled to sum to 1, which stands for the printed factor, infinite at ``alpha0`` 0.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.checks.parameters import Number
from sktensor_dp.data.counts import CountChunk
from sktensor_dp.privacy.calibration import gaussian_epsilon
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.published import single_topic
from sktensor_dp.published.claims import claim_of_call
from sktensor_dp.published.power_method import check, noisy_columns
from sktensor_dp.queries.count_moments import PairMoments, TripleMoments
from sktensor_dp.tensor.arrays import Floats, RandomState
from sktensor_dp.tensor.power_method import simultaneous_power_iteration
from sktensor_dp.tensor.symmetric import multilinear, symmetric_product


def coefficients(concentration: float) -> tuple[float, float, float]:
    """Absolute values of the paper's coefficients a, b and c, by ``alpha0``."""
    a, b = concentration / (concentration + 1), concentration / (concentration + 2)
    return a, b, 2 * concentration**2 / ((concentration + 1) * (concentration + 2))


class CorpusMoments:
    """Unbiased moments of LDA, by DeCarolis et al., from documents of three words or more."""

    def __init__(self, chunk: CountChunk, concentration: float) -> None:
        self._chunk = chunk
        # Documents of fewer than three words are left out of all three moments.
        self._lengths = np.where(chunk.lengths >= 3, chunk.lengths, np.inf)
        self._a, self._b, self._c = coefficients(concentration)
        self._pair_total = PairMoments(single_topic.ONE_DRAW, 1.0, min_tokens=3).total(chunk)
        self._frequency_total = np.asarray(chunk.X.T @ (1 / self._lengths))

    def pairs(self) -> Floats:
        """M2 = E2 - a E1 E1' by equation (18), of shape (n_features, n_features)."""
        X, n = self._chunk.X, len(self._lengths)
        with_itself = (X.T @ X.multiply(1 / self._lengths[:, None] ** 2)).toarray()
        # Sum over pairs of different documents.
        crossed = np.outer(self._frequency_total, self._frequency_total) - with_itself
        return np.asarray(self._pair_total / n - self._a / (n * (n - 1)) * crossed)

    def triples(self, basis: Floats) -> Floats:
        """M3 (k, k, k) by equation (19), corrected, in a `basis` of orthonormal columns."""
        X, lengths, n = self._chunk.X, self._lengths, len(self._lengths)
        total = basis.T @ self._frequency_total
        projected = np.asarray(X @ basis) / lengths[:, None]
        squares = projected.T @ projected
        thirds = _sum_of_products(projected, projected, projected)
        # Sum over pairs of different documents of M2 of one and M1 of the other, in each order.
        crossed = symmetric_product(basis.T @ self._pair_total @ basis, total)
        with_itself = self._pairs_with_themselves(basis, projected, thirds)
        crossed -= with_itself + with_itself.transpose(0, 2, 1) + with_itself.transpose(2, 1, 0)
        # Sum over triples of different documents of their M1, by inclusion and exclusion.
        cubes = np.einsum("a,b,c->abc", total, total, total)
        cubes += 2 * thirds - symmetric_product(squares, total)
        M3 = TripleMoments(basis, single_topic.ONE_DRAW).total(self._chunk) / n
        M3 -= self._b / (n * (n - 1)) * crossed
        M3 += self._c / (n * (n - 1) * (n - 2)) * cubes
        return np.asarray(M3)

    def _pairs_with_themselves(self, basis: Floats, projected: Floats, thirds: Floats) -> Floats:
        """Sum over documents of M2_n (x) M1_n, each document's own moments, in the `basis`."""
        lengths = self._lengths
        # Of counts c of l tokens, with p = c / l: M1 = p, M2 = p p' + (p p' - diag(p)) / (l - 1).
        per_other = np.where(np.isinf(lengths), 0.0, 1 / (lengths - 1))
        cubes = thirds + _sum_of_products(projected, projected, projected * per_other[:, None])
        # In the basis diag(p) is the sum over words of p_w b_w (x) b_w.
        words = np.asarray(self._chunk.X.T @ (projected * (per_other / lengths)[:, None]))
        return cubes - _sum_of_products(basis, basis, words)


def _sum_of_products(A: Floats, B: Floats, C: Floats) -> Floats:
    """Sum over rows n of ``A[n] (x) B[n] (x) C[n]``."""
    return np.asarray(np.einsum("na,nb,nc->abc", A, B, C, optimize=True))


def printed_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """Noise deviation as in Proposition 22 of Appendix A, which lacks a factor sqrt(2)."""
    if math.isinf(epsilon):
        return 0.0
    L = math.log(1 / delta)
    return sensitivity / (2 * epsilon) * (math.sqrt(epsilon + L) + math.sqrt(L))


def private_lower_bound(
    value: float, sensitivity: float, epsilon: float, delta: float, noise: NoiseSource
) -> float:
    """Release a number that exceeds `value` with probability `delta` at most (Lemmas 8 and 44)."""
    if math.isinf(epsilon):
        return value
    noisy = float(noise.laplace(np.array([value / sensitivity]), epsilon)[0])
    return sensitivity * (noisy - math.log(1 / (2 * delta)) / epsilon)


@dataclass(frozen=True)
class PrintedSensitivities:
    """Sensitivities of LDA's moments and of what follows from them, as printed."""

    n_documents: int
    concentration: float
    n_components: int

    @property
    def pairs(self) -> float:
        """Sensitivity Delta_2 of M2 (Theorem 4, G.1)."""
        a, _, _ = coefficients(self.concentration)
        return (2 + 4 * a) / self.n_documents

    @property
    def triples(self) -> float:
        """Sensitivity Delta_3 of M3 (Theorem 4, G.2), its middle term once, not three times."""
        _, b, c = coefficients(self.concentration)
        n = self.n_documents
        return (2 + 4 * b) / n + 6 * c * (n - 1) / (n * (n - 2))

    @property
    def proved_sensitivities(self) -> tuple[float, float]:
        """L2 sensitivities of M2 and M3 by the triangle inequality, which are not printed."""
        a, b, c = coefficients(self.concentration)
        unit = math.sqrt(2) / self.n_documents
        return unit * (1 + 2 * a), unit * (1 + 6 * b + 3 * c)

    # Below `sigma_k` is a bound on the k-th singular value of M2.

    def whitener(self, sigma_k: float) -> float:
        """Sensitivity of the whitener (Lemma 32): a bound for one rotation only."""
        margin = self._margin(sigma_k)
        return math.sqrt(2 * self.n_components) * self.pairs / (sigma_k * math.sqrt(margin))

    def whitened(self, sigma_k: float) -> float:
        """Sensitivity Delta_T of the whitened tensor T (Theorem 5, (113))."""
        n, k = self.n_documents, self.n_components
        _, b, c = coefficients(self.concentration)
        norm = 1 + 6 * b * n / (n - 1) + 3 * c * n**2 / ((n - 1) * (n - 2))  # (111)
        cubes = k**1.5 * self.triples / self._margin(sigma_k) ** 1.5
        return norm * self.whitener(sigma_k) ** 3 + cubes

    def eigenpairs(self, sigma_k: float, gap: float) -> float:
        """Sensitivity of eigenpairs of T by the `gap` gamma_s of its eigenvalues (Theorem 6)."""
        return 2 * math.sqrt(self.n_components) * self.whitened(sigma_k) / gap

    def topics(self, sigma_1: float, sigma_k: float, largest_of_T: float, gap: float) -> float:
        """Sensitivity of topics (117), by singular values of M2, and the largest of T."""
        alpha0, of_eigenpairs = self.concentration, self.eigenpairs(sigma_k, gap)
        root = math.sqrt(sigma_1)
        # The printed factor is infinite at concentration 0. There weights sum to 1, and the factor
        # is 1.
        scale = (alpha0 + 2) / (2 * math.sqrt((alpha0 + 1) * alpha0)) if alpha0 > 0 else 1.0
        vectors = largest_of_T * (root * of_eigenpairs + root / sigma_k * self.pairs)
        return scale * (vectors + math.sqrt(sigma_1 + self.pairs) * of_eigenpairs)

    def _margin(self, sigma_k: float) -> float:
        """Bound on sigma_k of M2 less Delta_2; ValueError unless it is positive."""
        if sigma_k <= self.pairs:
            raise ValueError(
                "X must show n_components topics: the bound on its singular value is not above "
                "Delta_2; more documents, fewer components or a larger epsilon are needed."
            )
        return sigma_k - self.pairs


def dp_spectral_lda(
    X: ArrayLike,
    n_components: int,
    concentration: float = 1.0,
    configuration: Literal[1, 2, 3, 4] = 1,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    random_state: RandomState = None,
) -> single_topic.PublishedTopics:
    """Topics of LDA from noisy moments, in one of four configurations of the noise.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_features)
        Counts of words, of three documents or more. In configuration 1 memory grows with
        ``n_features ** 3``.
    n_components : int
        Number k of topics, at most ``n_features``.
    concentration : float, default=1.0
        alpha0, the sum of the Dirichlet prior over topics, >= 0; 0 is one topic per document.
    configuration : {1, 2, 3, 4}, default=1
        Where the noise goes.
    epsilon, delta : float, default=1.0 and 1e-6
        Privacy that the algorithm claims; an infinite epsilon leaves out noise.
    random_state : int, Generator, RandomState or None, default=None
        Seeds restarts of the power iteration, never noise.

    Returns
    -------
    PublishedTopics

    Raises
    ------
    ValueError
        If a parameter or `X` is wrong, or a bound of Lemma 9 is too small for a sensitivity to
        exist: nothing is released then.

    Warns
    -----
    UnsoundClaimWarning
        In configurations 2 to 4.

    Notes
    -----
    **Privacy.** *Unit*: one document. *Neighbours*: replace one. *Public*: the shape of `X` and
    the parameters. *Releases*: by configuration, see the module; outside any budget. *Not
    covered*: see ``claim``; noise is added to moments in floating point.

    References
    ----------
    DeCarolis et al. (2020): Lemma 25, Theorems 4 to 7, Lemmas 8, 9, 32 and 33, Appendix H.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.published import dp_spectral_lda
    >>> topics = np.repeat([[0.7, 0.2, 0.1, 0.0], [0.0, 0.1, 0.2, 0.7]], 100_000, axis=0)
    >>> X = np.random.default_rng(0).multinomial(5, topics)
    >>> found = dp_spectral_lda(X, 2, concentration=0.0)
    >>> sorted(found.topics.argmax(axis=1).tolist()), found.claim.verdict
    ([0, 3], 'holds if')
    """
    chunk = single_topic.validated_counts(X, n_components, epsilon, delta)
    check(Number(0, math.inf), concentration=concentration)
    if configuration not in (1, 2, 3, 4):
        raise ValueError(f"configuration must be 1, 2, 3 or 4, got {configuration!r}.")
    if chunk.X.shape[0] < 3:
        raise ValueError(f"X must have at least 3 documents, got {chunk.X.shape[0]}.")
    printed = PrintedSensitivities(chunk.X.shape[0], concentration, n_components)
    moments, exact_epsilon = CorpusMoments(chunk, concentration), math.inf
    n_releases = 4 if configuration == 3 else 3
    topics, weights = _noisy_topics(
        configuration, moments, printed, epsilon / n_releases, delta / n_releases, random_state
    )
    multiplier = printed_sigma(1.0, epsilon / n_releases, delta / n_releases)
    if configuration == 1 and multiplier > 0:
        # Three Gaussian releases, by the L2 bounds that are proved_sensitivities.
        pairs, triples = printed.proved_sensitivities
        squared_ratios = 2 * (pairs / printed.pairs) ** 2 + (triples / printed.triples) ** 2
        exact_epsilon = gaussian_epsilon(math.sqrt(squared_ratios) / multiplier, delta)
    form = configuration - 1
    claim = claim_of_call("dp_spectral_lda", epsilon, delta, exact_epsilon, form=form)
    return single_topic.PublishedTopics(topics, weights, claim)


def _noisy_topics(
    configuration: int,
    moments: CorpusMoments,
    printed: PrintedSensitivities,
    epsilon: float,
    delta: float,
    random_state: RandomState,
) -> tuple[Floats, Floats]:
    """Topics and weights; every release has noise for `epsilon` and `delta`."""
    alpha0, k = printed.concentration, printed.n_components
    pairs, noise = moments.pairs(), NoiseSource()

    def noisy_pairs() -> Floats:
        sigma = printed_sigma(printed.pairs, epsilon, delta)
        return pairs + single_topic.gaussian_unique_entries(len(pairs), 2, sigma, noise)

    def noisy(values: Floats, sensitivity: float) -> Floats:
        return noisy_columns(values, np.array(printed_sigma(sensitivity, epsilon, delta)), noise)

    def as_topics(values: Floats, unwhitened: Floats) -> tuple[Floats, Floats]:
        topics, weights = single_topic.topics_of_eigenpairs(values, unwhitened)
        # Printed eigenvalue 2 sqrt((alpha0 + 1) alpha0) / ((alpha0 + 2) sqrt(alpha_i)), with
        # alpha_i = alpha0 w_i.
        return topics, weights * 4 * (alpha0 + 1) / (alpha0 + 2) ** 2

    def eigenpairs(T: Floats) -> tuple[Floats, Floats]:
        return simultaneous_power_iteration(T, k, random_state=random_state)

    # M3(W, W, W) follows from M3(U, U, U), which needs no dense tensor of words.
    if configuration == 1:  # edge 4, the whitener; edge 3, M3; edge 8, the pseudo-inverse
        white = single_topic.positive_whitener(noisy_pairs(), k, k)
        sigma = printed_sigma(printed.triples, epsilon, delta)
        dense = single_topic.gaussian_unique_entries(len(pairs), 3, sigma, noise)
        M3 = moments.triples(white.basis) + multilinear(dense, white.basis)
        values, vectors = eigenpairs(multilinear(M3, white.transform))
        return as_topics(values, vectors @ (noisy_pairs() @ white.matrix).T)
    white, gap = single_topic.positive_whitener(pairs, k, k), 0.0
    # Sigma_k of M2 by Lemma 9, with the sensitivity 1 / N of its text.
    least, sensitivity = float(white.scale.min()) ** 2, 1 / printed.n_documents
    sigma_k = private_lower_bound(least, sensitivity, epsilon, delta, noise)
    T = multilinear(moments.triples(white.basis), white.transform)
    if configuration == 2:  # edge 6: the whitened tensor
        sigma = printed_sigma(printed.whitened(sigma_k), epsilon, delta)
        T += single_topic.gaussian_unique_entries(k, 3, sigma, noise)
    values, vectors = eigenpairs(T)
    if configuration > 2:
        # gamma_s is a quarter of the least gap of eigenvalues.
        gaps = values[:-1] - values[1:] if len(values) > 1 else values
        gap = private_lower_bound(float(np.min(gaps)) / 4, 1.0, epsilon, delta, noise)
        if gap <= 0:
            raise ValueError(
                "X must show a gap between eigenvalues: its private bound is not positive, and "
                "the sensitivity that follows from it is infinite; a larger epsilon is needed."
            )
    if configuration == 4:  # edge 9: topics and weights, (141)
        sigma_1 = float(white.scale.max()) ** 2
        sensitivity = printed.topics(sigma_1, sigma_k, float(values[0]), gap)
        topics, weights = as_topics(values, white.unwhiten(vectors))
        return noisy(topics, sensitivity), noisy(weights, sensitivity)
    if configuration == 3:  # edge 7: eigenpairs, (138) and (139)
        sensitivity = printed.eigenpairs(sigma_k, gap)
        values, vectors = noisy(values, sensitivity), noisy(vectors, sensitivity)
    # Edge 8: a whitener of M2 with new noise.
    return as_topics(values, single_topic.positive_whitener(noisy_pairs(), k, k).unwhiten(vectors))
