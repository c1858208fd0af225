"""Largest eigenvalue that noise and sampling alone give a second moment of words."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import laplace, norm

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.largest_of_noise import LEVEL, largest_over_edge

# Range of the search, as logarithms of odds.
LOWEST, HIGHEST = -40.0, 20.0
# Least deviation of an entry relative to the largest one; and a number of deviations that no entry
# exceeds.
LEAST_DEVIATION, FARTHEST = 1e-6, 100.0


class Edges(NamedTuple):
    """Largest eigenvalue of noise and sampling."""

    expected: float
    most: float  # exceeded with the probability `LEVEL`


@dataclass(frozen=True, eq=False)
class PairErrors:
    """Errors of a released second moment of words, by noise and by sampling."""

    sigma: float  # of noise off the diagonal
    diagonal_sigma: float  # of noise on the diagonal
    sampling: float  # variance of an entry by sampling, over the product of two words' frequencies
    frequencies: Floats  # (d,)
    pure: bool  # whether noise is Laplace

    def edges(self, n_topics: int = 1) -> Edges:
        """Largest eigenvalue of the errors where documents have one of `n_topics` topics each."""
        p = np.maximum(self.frequencies, 0.0)
        bulk = bulk_edge(self.sigma, self.sigma, self.sampling, p)
        bulk_with_diagonal = bulk_edge(self.sigma, self.diagonal_sigma, self.sampling, p)
        on_diagonal = np.sqrt(self.diagonal_sigma**2 + 2 * self.sampling * p**2)
        return _edges_with_diagonal(bulk, bulk_with_diagonal, on_diagonal, self.pure, n_topics)

    def weighted_edge(self, n_documents: int, n_topics: int = 1) -> tuple[Floats, float]:
        """Weights (d,) that give all entries about equal errors, and the edge, at most, with them.

        Where sampling exceeds noise, frequent words have the largest errors, and hide topics of
        rare ones.
        """
        p, sampling = np.maximum(self.frequencies, 0.0), self.sampling
        # Noise varies like sampling between words of this frequency. Let one document of distinct
        # rarest words give about half the edge at most: at a weight w its pairs have the eigenvalue
        # w^2 / (length n_documents), and the edge is about 2 sqrt(len(p) / n_documents) / length.
        like_noise = self.sigma / math.sqrt(sampling)
        weights = (p + max(like_noise, 1 / math.sqrt(n_documents * len(p)))) ** -0.5
        # sampling (p_a + like_noise) (p_b + like_noise) is at least sigma^2 + sampling p_a p_b: an
        # upper bound. What noise the diagonal has beyond that comes in by `on_diagonal` alone.
        bulk = bulk_edge(0.0, 0.0, sampling, (p + like_noise) * weights**2)
        on_diagonal = weights**2 * np.sqrt(self.diagonal_sigma**2 + 2 * sampling * p**2)
        return weights, _edges_with_diagonal(bulk, bulk, on_diagonal, self.pure, n_topics).most


def _edges_with_diagonal(
    bulk: float, bulk_with_diagonal: float, on_diagonal: Floats, pure: bool, n_topics: int
) -> Edges:
    """Edges by the bulk of entries, and by one of the diagonal, of deviations `on_diagonal`.

    `bulk_with_diagonal` has the diagonal's own noise, where `bulk` takes that of other entries.
    """
    # Topics of words of their own split the moment in blocks.
    quantile = bulk_with_diagonal * largest_over_edge(len(on_diagonal), n_topics)
    largest_deviation = float(on_diagonal.max())
    if largest_deviation == 0:
        return Edges(bulk, quantile)
    scaled = np.maximum(on_diagonal / largest_deviation, LEAST_DEVIATION)

    def excess(x: float) -> float:  # over `LEVEL`, of the probability that an entry exceeds x
        tails = laplace.sf(math.sqrt(2) * x / scaled) if pure else norm.sf(x / scaled)
        return float(tails.sum()) - LEVEL

    # Number that the largest of the entries on the diagonal exceeds with the probability `LEVEL`.
    entry = largest_deviation * float(brentq(excess, 0.0, FARTHEST))
    # Entries of the diagonal have more noise, and Laplace noise has heavy tails: one of size x
    # lifts an eigenvalue to x + bulk^2 / 4 x (Capitaine, Donati-Martin & Feral, 2009).
    by_entry = entry + bulk**2 / 4 / entry if entry > bulk / 2 else 0.0
    return Edges(max(bulk, by_entry), max(quantile, by_entry))


def sampling_of_pairs(length: float, n_documents: int, n_words: int) -> float:
    """Variance by sampling of an entry of E2 over the product of its words' frequencies.

    Documents have one topic each; errors that only move frequencies or known topics do not count.
    """
    length = max(length, 2.0)
    # With few samples n in d dimensions the largest eigenvalue exceeds that of large n by this
    # factor: (1 + sqrt(d / n))^2 - 1 over 2 sqrt(d / n).
    few = 1 + math.sqrt(n_words / n_documents) / 2
    return few**2 / (length * (length - 1) * n_documents)


def bulk_edge(sigma: float, diagonal_sigma: float, sampling: float, p: Floats) -> float:
    """Edge of the spectrum of a large symmetric matrix of variances sigma^2 + sampling p_a p_b."""
    # Minimum over x > 0 of max_a 1 / x_a + sum_b v_ab x_b (Lehner, 1999). At the minimum all terms
    # a are equal, so 1 / x_a = g (1 - t p_a), and what depends on p_a cancels: with the sampling
    # variance s, g^2 t = s sum_b p_b / (1 - t p_b). Of each term g + noise * sum_b x_b stays. One
    # number t is searched, by its log odds.
    highest, total = float(p.max()), float(p.sum())
    # Sum over a row of the variances of noise, with its diagonal entry.
    row_variance = sigma**2 * (len(p) - 1) + diagonal_sigma**2
    # All x alike: twice the root of the largest variance of a row.
    bound = 2 * math.sqrt(row_variance + sampling * highest * total)
    if bound == 0 or sampling * highest == 0:
        return bound
    p = p / highest  # and t times `highest`: t is below 1

    def edge(log_odds: float) -> float:
        """Edge that a parameter t in (0, 1) gives, by its log odds; the least is the true one."""
        t = 1 / (1 + math.exp(-log_odds))
        g_x = 1 / (1 - t * p)  # g times each x
        g = math.sqrt(sampling / t * float((p * g_x).sum())) * highest
        return g + row_variance * float(g_x.mean()) / g

    found = minimize_scalar(edge, bounds=(LOWEST, HIGHEST), method="bounded")
    return min(float(found.fun), bound)
