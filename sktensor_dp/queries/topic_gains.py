"""Gains of released topics in log-likelihood, document by document."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sktensor_dp.data.counts import CountChunk
from sktensor_dp.queries.expected_counts import LARGEST_SHARE
from sktensor_dp.queries.query import check_array
from sktensor_dp.queries.scores import HeldOutScores
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.inference import (
    TINY,
    collapsed_proportions,
    token_log_likelihood,
    topic_posterior,
)

# Bound on the gain of one document, in nats.
MOST_GAIN = 5.0
# Priors of fits are smaller than the first; the second keeps quotients from 0 / 0.
LARGEST_CONCENTRATION, LEAST_PRIOR = 1e20, 1e-20


@dataclass(frozen=True, eq=False)
class TopicGains(HeldOutScores):
    """Sum over units of documents of the clipped log-likelihood that topics gain."""

    description = (
        "mean log-likelihood that topics gain on half of the words of a document, given the others"
    )

    @classmethod
    def of(cls, gain: "HeldOutWords") -> "TopicGains":
        """Query for the gain of released topics, clipped on either side."""
        return cls(score=gain, low=-MOST_GAIN, high=MOST_GAIN)

    def _row_scores(self, chunk: CountChunk) -> Any:  # type: ignore[override]
        # Filters of warnings are shared by all threads, so this method sets none; its score does
        # not warn.
        return self.score(chunk.X, None)


@dataclass(frozen=True, eq=False)
class HeldOutWords:
    """Log-likelihood of half of a document's words given the other half, minus a baseline's."""

    topics: Floats  # (n_components, n_features): released topics
    weights: Floats  # (n_components,): their shares
    concentration: float  # sum of the Dirichlet prior; 0 for one topic per document
    # Other topics, whose log-probability of the same words is subtracted; None for the word
    # frequencies of the topics' mixture.
    against: "HeldOutWords | None" = None
    # True if tokens of one word are divided between both halves: repeated words are most of what
    # topics gain.
    divides_words: bool = False

    def __post_init__(self) -> None:
        check_array("topics", self.topics, LARGEST_SHARE, least=0.0)
        check_array("the weights", self.weights, LARGEST_SHARE, least=0.0)
        if not 0 <= self.concentration <= LARGEST_CONCENTRATION:
            raise ValueError(
                f"the concentration must be a number >= 0, got {self.concentration!r}."
            )

    def __call__(self, X: sp.csr_matrix, _: object) -> Floats:
        """Gain of each document of `X` in nats over the baseline, of shape (n_documents,)."""
        given, scored = _halves(X, self.divides_words)
        log_likelihood = self._log_likelihood(given, scored)
        if self.against is not None:
            return log_likelihood - self.against._log_likelihood(given, scored)
        return log_likelihood - scored @ np.log(np.maximum(self.weights @ self.topics, TINY))

    def _log_likelihood(self, given: sp.csr_matrix, scored: sp.csr_matrix) -> Floats:
        """Log-likelihood of the `scored` words, with topic shares of the `given` words."""
        n_steps = 5  # of inference: further ones hardly change the gain
        if self.concentration == 0:
            shares = topic_posterior(given, self.topics, self.weights)
        else:
            prior = np.maximum(self.weights * self.concentration, LEAST_PRIOR)
            shares = collapsed_proportions(given, self.topics, prior, n_iter=n_steps)
            shares /= shares.sum(axis=1, keepdims=True)
        return token_log_likelihood(scored, shares, self.topics)


def _halves(X: sp.csr_matrix, divides_words: bool) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Split the counts of each document into words to infer from and words to score."""
    # The half of a word depends on its number only, by Knuth's multiplicative hash, so the split is
    # public.
    half = (np.arange(X.shape[1], dtype=np.uint64) * np.uint64(2654435761) >> np.uint64(16)) & 1
    is_scored = half.astype(np.float64).take(X.indices)
    # Every second token of a word is in the scored half; an odd token goes to the half of the word.
    scored = np.floor((X.data + is_scored) / 2) if divides_words else is_scored * X.data
    return _where_positive(X, X.data - scored), _where_positive(X, scored)


def _where_positive(X: sp.csr_matrix, data: Floats) -> sp.csr_matrix:
    """Sparse matrix with the counts `data` in the pattern of `X`, without zeros."""
    counts = sp.csr_matrix((data, X.indices.copy(), X.indptr.copy()), X.shape)
    counts.eliminate_zeros()
    return counts
