r"""Moments of counts that topics diagonalise, and topics fitted to all moments at once.

With ``alpha0`` the sum of the Dirichlet prior over topic proportions (0: one
topic per document), and E1, E2, E3 the probabilities of one, two and three
different tokens of a document,

    M2 = E2 - a E1 E1'                           = sum_i w_i / (alpha0 + 1) mu_i mu_i'
    M3 = E3 - b S3(E2, E1) + c E1 (x) E1 (x) E1  = sum_i 2 w_i / ((alpha0+1)(alpha0+2)) mu_i^(x)3

(Anandkumar et al., 2012; DeCarolis et al., 2020, equations 8 and 18). Scaled by
``alpha0 + 1`` and ``(alpha0 + 1)(alpha0 + 2) / 2`` they are the moments of the
single topic model with weights ``w_i = alpha_i / alpha0``, and that is the form
in which the functions here return them.

Fitted jointly, each moment is weighted by its known noise. The moments of topics mu_i of shares w_i
and concentration c are

    E1 = m = sum_i w_i mu_i
    E2 = (M2 + c m m') / (1 + c)                                  M2 = sum_i w_i mu_i mu_i'
    E3 = (2 M3 + c S3(M2, m) + c^2 m^(x)3) / ((1 + c) (2 + c))    M3 = sum_i w_i mu_i^(x)3

so that the released moments are compared with those of the model as they are, and neither their
noise nor their sampling variance depends on the concentration.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations

import numpy as np
from scipy.optimize import minimize

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.symmetric import n_unique, symmetric_product
from sktensor_dp.topics.concentration import (
    USUAL,
    ExplainedTopics,
    cost_of_bounds,
    largest_not_rejected,
)

# For larger numbers sums of rows are too imprecise to compare with 1.
LARGE = 1e6


def project_rows(values: Floats) -> Floats:
    """Euclidean projection of each row on the probability simplex (Duchi et al., 2008)."""
    # Subtract a constant from rows of large numbers, which changes no projection, so that 1 is not
    # lost beside them.
    largest = values.max(axis=1, keepdims=True)
    values = np.where(np.abs(largest) > LARGE, values - largest, values)
    descending = -np.sort(-values, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1) / np.arange(1, values.shape[1] + 1)
    kept = (descending > excess).sum(axis=1)
    threshold = excess[np.arange(len(values)), kept - 1]
    return np.maximum(values - threshold[:, None], 0.0)


class PriorCorrection:
    """Corrects E2 and E3 of documents that mix topics to M2 and M3 of single topics."""

    # Products m m' and m (x) m (x) m of noisy frequencies have the variance of their noise on
    # diagonals: it is subtracted, so ``M2 = pair_scale (E2 - a (m m' - variance I))``.

    def __init__(self, concentration: float, frequencies: Floats, sigma: float) -> None:
        self.pair_scale = concentration + 1
        self.triple_scale = (concentration + 1) * (concentration + 2) / 2
        self._a = concentration / (concentration + 1)
        self._b = concentration / (concentration + 2)
        self._c = 2 * concentration**2 / ((concentration + 1) * (concentration + 2))
        self.frequencies = frequencies
        self.variance = sigma**2
        # What the term of `variance` adds to all eigenvalues of M2. Noise in m m', which is of rank
        # 1, takes it off again along one direction alone.
        self._pair_shift = self.pair_scale * self._a * self.variance

    def edge(self, of_errors: float, weights: Floats | None = None) -> float:
        """Largest eigenvalue of errors of M2, by that of E2, `of_errors`.

        In both, words are multiplied by `weights`, if given.
        """
        largest = 1.0 if weights is None else float(weights.max())
        return self.pair_scale * of_errors + self._pair_shift * largest**2

    def pairs(self, product: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
        """Given the function V -> E2 V, return the function V -> M2 V, for V of shape (d, b)."""

        def corrected(V: Floats) -> Floats:
            outer = np.multiply.outer(self.frequencies, self.frequencies @ V)
            return self.pair_scale * (product(V) - self._a * (outer - self.variance * V))

        return corrected

    def pair_matrix(self, pairs: Floats) -> Floats:
        """M2 as a matrix (d, d), given `pairs`, which is E2."""
        corrected: Floats = pairs - np.outer(self._a * self.frequencies, self.frequencies)
        corrected[np.diag_indices_from(corrected)] += self._a * self.variance
        corrected *= self.pair_scale
        return corrected

    def triples(self, projected: Floats, pairs: Floats, basis: Floats) -> Floats:
        """M3(B, B, B) in a `basis` B, given E3(B, B, B) and `pairs` B' E2 B."""
        mean = basis.T @ self.frequencies
        cubed = np.einsum("a,b,c->abc", mean, mean, mean)
        cubed -= self.variance * symmetric_product(basis.T @ basis, mean)
        corrected = projected - self._b * symmetric_product(pairs, mean) + self._c * cubed
        return self.triple_scale * corrected


def topics_from_components(components: Floats) -> Floats:
    """Scale components to sum 1 and project them on the probability simplex."""
    sums = components.sum(axis=1, keepdims=True)
    sums = np.where(np.abs(sums) > 1e-9, sums, 1.0)
    return project_rows(components / sums)


# Added to probabilities of words or pairs, relative to even ones, before their sampling variance is
# computed: a probability of 0 has no infinite precision.
LEAST_MASS = 1e-3


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """Noisy first, second and third moments of counts, with the level of their noise."""

    frequencies: Floats  # (d,): first moment E1
    frequencies_sigma: float  # standard deviation of its noise
    pairs: Floats  # (d, d): second moment E2
    pairs_sigma: float  # standard deviation of the noise off the diagonal
    diagonal_sigma: float  # standard deviation of the noise on the diagonal
    basis: Floats  # (d, m): B, in which the third moment was released
    triples: Floats  # (m, m, m): E3(B, B, B)
    triples_sigma: float  # standard deviation of its noise in orthonormal coordinates
    n_documents: int
    pairs_square: float  # :func:`mean_square_of_pairs` of the documents
    second: Floats  # (d, d): a second moment without noise, for the sampling variances


def match_moments(
    topics: Floats, weights: Floats, moments: ReleasedMoments, concentration: float = 0.0
) -> ExplainedTopics:
    """Fit topics and weights to released moments by weighted least squares."""
    objective = MomentDistance(topics.shape, moments, concentration)
    # A word that starts at 0 would stay there: the gradient of its square is 0.
    start = np.sqrt(weights[:, None] * (topics + 1e-6))
    minimum = minimize(
        objective, start.ravel(), jac=True, method="L-BFGS-B",
        options={"maxiter": 300, "maxcor": 20},
    )  # fmt: skip
    joint = minimum.x.reshape(topics.shape) ** 2
    joint /= joint.sum()
    shares = np.maximum(joint.sum(axis=1), 1e-12)[:, None]
    # A topic without weight has undefined words: it gets the unigram.
    fitted = np.where(shares > 1e-12, joint / shares, joint.sum(axis=0))
    shares = shares[:, 0] / shares.sum()
    # The objective is half the distance.
    return ExplainedTopics(fitted, shares, concentration, 2 * float(minimum.fun))


def match_with_concentration(
    starts: Sequence[tuple[Floats, Floats]], moments: ReleasedMoments, concentration: float | None
) -> tuple[ExplainedTopics, ReleasedMoments, bool]:
    """Fit topics to moments, at a given or estimated concentration.

    `starts` are topics and shares, of more and more topics: the number that would explain other
    documents best is fitted. Returns the fit, the moments with the sampling variances in use, and
    True if the concentration was assumed.
    """
    # The search for a concentration starts from topics as if each document had one topic.
    given = 0.0 if concentration is None else concentration
    first = match_moments(*starts[-1], moments, given)
    # A second fit takes sampling variances from the moments of the first.
    moments = replace(moments, second=first.pairs)
    most = match_moments(first.topics, first.weights, moments, given)
    variance = _variance_of_misfit(most, moments)
    fits = [*(match_moments(*start, moments, given) for start in starts[:-1]), most]
    # To moments of other documents a misfit is larger by two for each parameter (Mallows, 1973).
    found = min(fits, key=lambda fit: fit.misfit / variance + 2 * fit.topics.size)
    if concentration is not None:
        return found, moments, False
    explain = partial(_matched_again, moments)
    most_misfit = found.misfit + variance * cost_of_bounds(*found.topics.shape)
    one_topic = len(found.topics) == 1  # it explains pairs as well at any concentration
    largest = None if one_topic else largest_not_rejected(explain, found, most_misfit)
    if largest is None:
        return explain(found, USUAL), moments, True
    return largest, moments, False


def _variance_of_misfit(fit: ExplainedTopics, moments: ReleasedMoments) -> float:
    """Misfit for each degree of freedom, at least 1: more where topics do not explain moments."""
    d, m = moments.basis.shape
    n_values = d + n_unique(d, 2) + n_unique(m, 3)  # those equal by symmetry counted once
    return max(fit.misfit / max(n_values - fit.topics.size, 1), 1.0)


def _matched_again(
    moments: ReleasedMoments, start: ExplainedTopics, concentration: float
) -> ExplainedTopics:
    """Topics matched to the moments from a `start`; without the misfit by documents' shares.

    Shares that documents happen to have move all pairs of two topics together, by more than the
    sampling variances of single pairs say. This part of a misfit rejects no concentration.
    """
    fit = match_moments(start.topics, start.weights, moments, concentration)
    by_shares = float((pair_precision(moments) * variance_by_shares(fit)).sum())
    return replace(fit, misfit=fit.misfit - by_shares / moments.n_documents)


def variance_by_shares(fit: ExplainedTopics) -> Floats:
    """Variance (d, d), over documents, of the pairs that a document's shares of topics give."""
    # A document with shares h has words of probabilities s = sum_i h_i mu_i, and pairs s_a s_b. A
    # mean of four shares of a Dirichlet distribution is a sum over permutations of them, of the
    # products over its cycles; cycles of words a and b are c times weighted sums of powers, such as
    # s21 = sum_i w_i mu_ia^2 mu_ib.
    w, mu, c = fit.weights[:, None], fit.topics, fit.concentration
    s1 = (w * mu).sum(axis=0)
    s2 = (w * mu**2).sum(axis=0)
    s11 = mu.T @ (w * mu)
    s21, s22 = (mu**2).T @ (w * mu), (mu**2).T @ (w * mu**2)
    squares = np.outer(s2, s1**2)
    in_four = c**3 * np.outer(s1, s1) ** 2  # permutations with four cycles
    in_three = c**2 * (squares + squares.T + 4 * s11 * np.outer(s1, s1))
    in_two = c * (np.outer(s2, s2) + 2 * s11**2 + 4 * s21 * s1 + 4 * s21.T * s1[:, None])
    of_permutations = in_four + in_three + in_two + 6 * s22
    return np.asarray(of_permutations / ((c + 1) * (c + 2) * (c + 3)) - fit.pairs**2)


def mean_square_of_pairs(length: float, repeats: float) -> float:
    """Expected squared norm of a document's pair frequencies; `repeats` is P(equal tokens)."""
    length = max(length, 2.0)
    # Two pairs of tokens have equal words if they are one pair, if they share a token and the other
    # ones agree, or if both tokens agree.
    alike = 1 + 2 * (length - 2) * repeats + (length - 2) * max(length - 3, 0.0) * repeats**2
    return 2 * alike / (length * (length - 1))


def pair_precision(moments: ReleasedMoments) -> Floats:
    """Inverse variance (d, d) of the released second moment, by noise and by sampling."""
    d, n = len(moments.pairs), moments.n_documents
    second = moments.second + LEAST_MASS / d**2
    # The sampling variance of a pair's probability p is pairs_square * p / n. An entry off the
    # diagonal is p / 2, and counts twice in the sum over the matrix.
    square, diagonal = moments.pairs_square, np.diagonal(second)
    precision: Floats = 0.5 / (moments.pairs_sigma**2 + square * second / (2 * n))
    np.fill_diagonal(precision, 1 / (moments.diagonal_sigma**2 + square * diagonal / n))
    return precision


def word_precision(moments: ReleasedMoments, frequencies: Floats) -> Floats:
    """Inverse variance (d,) of the released frequencies, by noise and by sampling of one token."""
    # A least mass is added, so that words of frequency 0 have some sampling variance.
    sampling = (frequencies + LEAST_MASS / len(frequencies)) / moments.n_documents
    return np.asarray(1 / (moments.frequencies_sigma**2 + sampling))


def triple_precision(moments: ReleasedMoments) -> float:
    """Inverse variance of an orthonormal coordinate of the released third moment."""
    # Rows of the basis have a norm of at most 1, and so has a document's third moment: take it as
    # spread evenly over the distinct coordinates.
    sampling = 1 / (moments.n_documents * n_unique(len(moments.triples), 3))
    return 1 / (moments.triples_sigma**2 + sampling)


def moved_by_errors(
    fit: ExplainedTopics, moments: ReleasedMoments, n: int, rng: np.random.Generator
) -> list[ExplainedTopics]:
    """Fits of topics to the moments with their errors once more, drawn anew `n` times.

    They are as far from `fit` as it is from the truth. Errors grow with the misfit.
    """
    deviation = _variance_of_misfit(fit, moments) ** 0.5
    of_words = deviation * word_precision(moments, moments.second.sum(axis=0)) ** -0.5
    of_pairs = deviation * pair_precision(moments) ** -0.5
    of_triples = deviation * triple_precision(moments) ** -0.5
    fits = []
    for _ in range(n):
        on_pairs = of_pairs * rng.standard_normal(of_pairs.shape)
        diagonal = on_pairs.diagonal()
        # Means of symmetric entries: an entry off the diagonal has half the inverse precision.
        on_pairs = (on_pairs + on_pairs.T) / 2
        np.fill_diagonal(on_pairs, diagonal)
        on_triples = of_triples * rng.standard_normal(moments.triples.shape)
        orders = [on_triples.transpose(order) for order in permutations(range(3))]
        moved = replace(
            moments, pairs=moments.pairs + on_pairs, triples=moments.triples + sum(orders) / 6,
            frequencies=moments.frequencies + of_words * rng.standard_normal(of_words.shape),
        )  # fmt: skip
        fits.append(match_moments(fit.topics, fit.weights, moved, fit.concentration))
    return fits


class MomentDistance:
    """Half the weighted squared distance of topics' moments to released ones, and gradient."""

    # Arguments are S of shape (k, d), whose squares are in proportion to ``joint``, x_j = w_j mu_j.
    # Derivatives in x_j of M2 = sum_j x_j x_j' / w_j and of M3 = sum_j x_j^(x)3 / w_j^2, where
    # w_j = 1'x_j, multiplied with a symmetric matrix or tensor E:
    #     <E, M2>:  2 E mu_j - (mu_j' E mu_j) 1
    #     <E, M3>:  3 E(mu_j, mu_j, .) - 2 E(mu_j, mu_j, mu_j) 1
    # The last terms are `through_weights`.

    def __init__(
        self, shape: tuple[int, ...], moments: ReleasedMoments, concentration: float
    ) -> None:
        self._moments, self._shape, self._concentration = moments, shape, concentration
        self._pair_precision = pair_precision(moments)
        self._word_precision = word_precision(moments, moments.second.sum(axis=0))
        self._triple_precision = triple_precision(moments)

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """Value and gradient at `x`, the k d entries of S."""
        root = x.reshape(self._shape)
        total = float((root**2).sum())
        joint = root**2 / total
        weights = joint.sum(axis=1) + 1e-12
        topics = joint / weights[:, None]
        mean = joint.sum(axis=0)  # of topics: the frequencies of words
        error = mean - self._moments.frequencies
        weighted = self._word_precision * error
        of_pairs, slope_of_pairs = self._pairs(joint, topics, mean)
        of_triples, slope_of_triples = self._triples(topics, weights, mean)
        value = float(weighted @ error) + of_pairs + of_triples
        gradient = 2 * weighted[None, :] + slope_of_pairs + slope_of_triples
        # Chain rule for joint = S^2 / sum(S^2). Its factor 2 and the half of the value cancel.
        gradient = root * (gradient - (gradient * joint).sum()) / total
        return value / 2, gradient.ravel()

    def _pairs(self, joint: Floats, topics: Floats, mean: Floats) -> tuple[float, Floats]:
        """Weighted squared error of the second moment, and its gradient in w_j mu_j."""
        c = self._concentration
        error = (topics.T @ joint + c * np.outer(mean, mean)) / (1 + c) - self._moments.pairs
        weighted = self._pair_precision * error
        slope = topics @ weighted
        through_weights = (slope * topics).sum(axis=1)
        gradient = 4 * slope - 2 * through_weights[:, None] + 4 * c * (weighted @ mean)
        return float((weighted * error).sum()), gradient / (1 + c)

    def _triples(self, topics: Floats, weights: Floats, mean: Floats) -> tuple[float, Floats]:
        """Weighted squared error of the third moment, and its gradient in w_j mu_j."""
        c, basis = self._concentration, self._moments.basis
        scale = (1 + c) * (2 + c)
        # In the basis: topics (k, m), their mean (m,) and M2; then E3 as at the head of this file.
        in_basis, middle = topics @ basis, mean @ basis
        weighted = weights[:, None] * in_basis
        second = in_basis.T @ weighted
        squares = (in_basis[:, :, None] * in_basis[:, None, :]).reshape(len(in_basis), -1)
        third = 2 * (weighted.T @ squares).reshape(self._moments.triples.shape)
        third += c * symmetric_product(second, middle)
        third += c**2 * np.einsum("a,b,c->abc", middle, middle, middle)
        error = third / scale - self._moments.triples
        value = self._triple_precision * float((error**2).sum())
        # Derivatives of <error, M3>, as at the head of this class.
        error_by_squares = squares @ error.reshape(len(error), -1).T  # error(mu_j, mu_j, .)
        through_weights = (error_by_squares * in_basis).sum(axis=1)
        slope = 2 * (3 * error_by_squares @ basis.T - 2 * through_weights[:, None])
        if c:
            by_mean = np.einsum("abc,c->ab", error, middle)
            error_by_mean = in_basis @ by_mean  # error(mu_j, m, .)
            through_weights = (error_by_mean * in_basis).sum(axis=1)
            # Derivatives of 3 <error, M2 (x) m> with respect to M2 and m, and of <error, m^3>.
            slope += 3 * c * (2 * error_by_mean @ basis.T - through_weights[:, None])
            of_mean = 3 * c * np.einsum("abc,ab->c", error, second) + 3 * c**2 * by_mean @ middle
            slope += of_mean @ basis.T
        return value, 2 * self._triple_precision * slope / scale
