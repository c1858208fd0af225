"""Parametric bootstrap of noisy EM steps, on documents drawn from released topics."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.inference import (
    expected_log_proportions,
    topic_posterior,
    variational_proportions,
    word_ratios,
)
from sktensor_dp.topics.shrinkage import LEAST_SHARE

# Documents of a bootstrap and their tokens, and mean field steps on each.
DOCUMENTS, TOKENS, FIRST_STEPS, LATER_STEPS = 300, 16_000, 20, 5


@dataclass(frozen=True)
class Limits:
    """Clips on what one document contributes; infinite for none."""

    counts: float = np.inf  # of its counts
    order: int = 2  # of this norm: 1 for the number of tokens, 2 for the Euclidean norm
    pairs: float = np.inf  # of its second moment times its number of tokens, Euclidean
    # (d,): scales that counts are divided by before their norm is taken.
    scales: Floats | None = None

    def counted_tokens(
        self, lengths: Floats, repeats: Floats, singles: float | Floats = 1.0
    ) -> Floats:
        """Tokens that count after clipping, of documents of `lengths` tokens.

        Any two tokens are the same word with probability `repeats`. With `scales`, that is the
        expected product of two scaled tokens, and `singles` the expected square of one.
        """
        # With `scales`, `repeats` is the expected product of two scaled tokens, and `singles` the
        # expected square of one; without, that is 1.
        squares = lengths * singles + lengths * (lengths - 1) * repeats
        counts = np.sqrt(squares) if self.order == 2 else lengths
        pairs = np.sqrt(2) * squares / (lengths - 1)
        return np.minimum(1.0, np.minimum(self.counts / counts, self.pairs / pairs)) * lengths


@dataclass(frozen=True, eq=False)
class Steps:
    """Settings of a fit's noisy EM steps, which the bootstrap repeats."""

    start: Floats  # (k, d): topics of the first step
    rates: tuple[float, ...]  # weight of each step's counts in the running mean
    concentration: float  # sum of the Dirichlet prior; 0 for one topic per document
    length: float  # about how many tokens a document has
    limits: Limits = Limits()  # on what a document counts in them
    # Fraction of the topics given to a step that is subtracted from its counts.
    echo: float = 0.0
    by_pairs: bool = False  # True if the start is made of second moments, without third ones


class Bootstrap:
    """Parametric bootstrap of noisy EM on documents drawn from the topics found; `kept` (k, d) are
    the fractions of noise that shrinkage leaves in expected counts.
    """

    def __init__(self, topics: Floats, weights: Floats, kept: Floats, steps: Steps) -> None:
        # Nothing that is protected hangs on these draws: all of this is made of released values.
        self._rng = np.random.default_rng(0)
        self._topics, self._weights, self._kept, self._steps = topics, weights, kept, steps
        length = int(steps.length)
        n = max(min(DOCUMENTS, TOKENS // length), 20)
        self._X = _documents(topics, weights, steps.concentration, n, length, self._rng)
        truth, self._gamma = _expected(self._X, topics, weights, steps.concentration, None)
        self._truth, self._size = truth / truth.sum(), truth.sum()

    def run(self, sigma: float | Floats) -> tuple[Floats, Floats]:
        """Errors of topics (k, d) and shares (k,) after the EM steps on the drawn documents;
        `sigma` is the noise of each entry of the final average, which sums to 1.
        """
        rates, echo = self._steps.rates, self._steps.echo
        spent = 0.0
        for rate in rates:
            spent = (1 - rate) ** 2 * spent + rate**2
        sigma = sigma * (1 - echo) / max(spent, 1e-300) ** 0.5
        base = self._weights[:, None] * self._topics
        told, given = np.zeros_like(base), np.zeros_like(base)
        current, shares = self._steps.start, self._weights
        for rate in rates:
            answer, _ = _expected(self._X, current, shares, self._steps.concentration, self._gamma)
            change = answer / self._size - self._truth
            if np.max(sigma) > 0:
                change += sigma * self._rng.standard_normal(base.shape)
            told = (1 - rate) * told + rate * change
            given = (1 - rate) * given + rate * (shares[:, None] * current - base)
            moved = (told - echo * given) / (1 - echo)
            counts = np.maximum(base + self._kept * moved, LEAST_SHARE * base)
            current = counts / counts.sum(axis=1, keepdims=True)
            shares = np.maximum((base + moved).sum(axis=1), 1e-9)
            shares /= shares.sum()
        return current - self._topics, shares - self._weights


def _documents(
    topics: Floats, weights: Floats, concentration: float, n: int, length: int, rng: Any
) -> sp.csr_matrix:
    """Draw `n` documents of `length` tokens each from the topic model, as a count matrix (n, d)."""
    k, d = topics.shape
    if concentration > 0:
        shares = rng.dirichlet(np.maximum(concentration * weights, 1e-3), n)
    else:
        shares = np.eye(k)[rng.choice(k, n, p=weights / weights.sum())]
    limits = np.cumsum(shares, axis=1)[:, None, :-1]
    topic = (rng.random((n, length, 1)) > limits).sum(axis=2).ravel()
    # One line of all topics' distributions, end to end, is searched for all tokens at once.
    ends = np.cumsum(topics / topics.sum(axis=1, keepdims=True), axis=1)
    ends = (ends + np.arange(k)[:, None]).ravel()
    word = np.searchsorted(ends, topic + rng.random(n * length)) - topic * d
    rows = np.repeat(np.arange(n), length)
    entries = (np.ones(n * length), (rows, np.clip(word, 0, d - 1)))
    return sp.coo_matrix(entries, shape=(n, d)).tocsr()


def _expected(
    X: sp.csr_matrix, topics: Floats, weights: Floats, concentration: float, start: Floats | None
) -> tuple[Floats, Floats | None]:
    """Expected counts (k, d) of one EM step, and the documents' Dirichlet parameters (n, k) from
    which the next step starts; None with one topic per document.
    """
    if concentration == 0:
        return np.asarray((X.T @ topic_posterior(X, topics, weights)).T), None
    prior = np.full(len(topics), concentration / len(topics))
    n_iter = FIRST_STEPS if start is None else LATER_STEPS
    gamma = variational_proportions(X, topics, prior, n_iter=n_iter, start=start)
    odds = np.exp(expected_log_proportions(gamma))
    ratios = word_ratios(X, odds, np.ascontiguousarray(topics.T))
    return topics * np.asarray((ratios.T @ odds).T), gamma
