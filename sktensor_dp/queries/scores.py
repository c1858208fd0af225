"""Scores of released models on held-out units."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sktensor_dp.queries.counts import CountChunk
from sktensor_dp.queries.error_sanitising import read
from sktensor_dp.queries.expected_counts import LARGEST_SHARE, Space, columns, run_in_batches
from sktensor_dp.queries.query import SCORE, SUM_SLACK, Signed, check_array, check_number
from sktensor_dp.queries.units import Units
from sktensor_dp.tensor.arrays import Floats, Singles, of_same_shape
from sktensor_dp.topics.inference import row_blocks, rows_in, topic_posterior

# The sum of logarithms that one document can count for, on either side.
MOST_GAIN = 5.0
# Steps of inference: more change a document's gain by little.
N_STEPS = 5
# Any prior that a fit can have is below.
LARGEST_CONCENTRATION = 1e20
# Least probability of a word: logarithms and quotients stay finite where it has none.
LEAST_SUM = 1e-30
# Least share of the largest probability that a word has in any topic, and least prior: their
# product does not underflow, so that no quotient is 0 / 0.
LEAST_SHARE, LEAST_COLLAPSED_PRIOR = 1e-15, 1e-20


@dataclass(frozen=True, eq=False)
class HeldOutChunk:
    """Held-out rows `X` with targets `y` of `n_units` units, to score a released model on, as one
    chunk.
    """

    X: Any
    y: Any
    n_units: int
    # Rows of each unit, where units are groups of rows; they lie unit by unit.
    groups: Units | None = None

    def __len__(self) -> int:
        return self.n_units

    def __iter__(self) -> Iterator["HeldOutChunk"]:
        yield self


@dataclass(frozen=True, eq=False)
class HeldOutScores(Signed):
    """Sum over held-out units of a model's score, clipped to [`low`, `high`] minus the middle.

    A unit's score is the mean of its rows' clipped scores.
    """

    # `score` maps (X, y) to one number for each row, computed from that row and released values
    # alone. NaN is taken for `low`.

    score: Callable[[Any, Any], Any]
    low: float
    high: float

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            check_number("a bound", bound, (-SCORE[1], SCORE[1]))
        check_number("the distance of the bounds", self.high - self.low, SCORE)

    @property
    def middle(self) -> float:
        """Middle of the bounds, which is subtracted from the scores."""
        return self.low / 2 + self.high / 2

    def _largest_norms(self) -> tuple[float, float]:
        # One number, which is as far from the middle as a bound at most.
        half = (self.high - self.low) * SUM_SLACK / 2
        return half, half

    def total(self, chunk: HeldOutChunk) -> Floats:
        """Sum over the units of `chunk` of their clipped scores minus the middle, of shape (1,)."""
        n_rows = chunk.n_units if chunk.groups is None else len(chunk.groups.of_rows)
        if n_rows == 0:
            return np.zeros(1)  # models refuse what has no rows
        # Whether anything overflows or warns may depend on one unit.
        with np.errstate(all="ignore"):
            found = self._found(chunk)
            # The original message would quote what is none.
            scores = read(
                lambda: np.asarray(found, dtype=np.float64), "The score",
                lambda message: "Scoring must return numbers.",
            )  # fmt: skip
        if scores.shape != (n_rows,):
            # How many rows there are may be private.
            raise ValueError(
                "Scoring must return one number for each held-out row, in an array of as many."
            )
        scores = np.where(np.isnan(scores), self.low, scores)
        half = self.high / 2 - self.low / 2
        centred = np.clip(np.clip(scores, self.low, self.high) - self.middle, -half, half)
        if chunk.groups is not None:
            # A mean may leave the bounds by its rounding, which grows with its rows.
            centred = np.clip(chunk.groups.means(centred), -half, half)
        return np.array([math.fsum(centred.tolist())])

    def _found(self, chunk: HeldOutChunk) -> Any:
        """Scores of the rows of `chunk` by `score`, with its warnings silenced."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.score(chunk.X, chunk.y)


@dataclass(frozen=True, eq=False)
class CompletionGains(HeldOutScores):
    """Sum over documents of the clipped gain of topics over word frequencies, in log-likelihood of
    held-out words given the others.
    """

    def total(self, chunk: CountChunk | HeldOutChunk) -> Floats:
        """Sum over the units of `chunk` of their clipped gains minus the middle, of shape (1,)."""
        if isinstance(chunk, CountChunk):
            groups = None if chunk.units.are_rows else chunk.units
            chunk = HeldOutChunk(chunk.X, None, chunk.X.shape[0], groups)
        return super().total(chunk)

    def _found(self, chunk: HeldOutChunk) -> Any:
        # Chunks may be summed in threads, where filters of warnings are everyone's: those that
        # leave last would put back those that another has set. This score warns of nothing.
        return self.score(chunk.X, chunk.y)


@dataclass(frozen=True, eq=False)
class TopicGain:
    """Score of topics on documents: log-likelihood of half of a document's words under topic shares
    inferred from the other half, minus that under a baseline.
    """

    topics: Floats  # (n_components, n_features): released topics
    weights: Floats  # (n_components,): their shares
    concentration: float  # sum of the Dirichlet prior; 0 for one topic per document
    # Other topics, whose log-probability of the same words is subtracted; None for the word
    # frequencies to which the topics mix.
    against: "TopicGain | None" = None
    # Whether the tokens of a word that a document repeats are in both halves: of texts, which
    # repeat their words, this is most of what topics gain.
    divides_words: bool = False

    def __post_init__(self) -> None:
        check_array("topics", self.topics, LARGEST_SHARE, least=0.0)
        check_array("the weights", self.weights, LARGEST_SHARE, least=0.0)
        if not 0 <= self.concentration <= LARGEST_CONCENTRATION:
            raise ValueError(
                f"the concentration must be a number >= 0, got {self.concentration!r}."
            )

    def __call__(self, X: sp.csr_matrix, _: Any) -> Floats:
        """Gain of each document of `X` in nats over the baseline, of shape (n_documents,)."""
        seen, asked = _halves(X, self.divides_words)
        # Both over the same frequencies: what is rounded is small.
        over = self.weights @ self.topics
        found = _gains(seen, asked, self, over)
        if self.against is not None:
            found -= _gains(seen, asked, self.against, over)
        return found


def gains_of(
    topics: Floats,
    weights: Floats,
    concentration: float,
    against: TopicGain | None = None,
    divides_words: bool = False,
) -> CompletionGains:
    """Query for the gain of released topics over `against`, or over word frequencies if that is
    None; see `TopicGain`.
    """
    score = TopicGain(topics, weights, concentration, against, divides_words)
    return CompletionGains(score, -MOST_GAIN, MOST_GAIN)


def _halves(X: sp.csr_matrix, divides_words: bool) -> tuple[CountChunk, CountChunk]:
    """Split the counts of each document into words to infer topics from and held-out words to
    score.
    """
    # Which half a word is in depends on its number alone, so that it is public.
    hidden = (np.arange(X.shape[1], dtype=np.uint64) * np.uint64(2654435761) >> np.uint64(16)) & 1
    asked = hidden.astype(np.float64).take(X.indices)
    if divides_words:
        # Of tokens of one word every second is asked for, and the odd one as the word is.
        asked = np.floor((X.data + asked) / 2)
    else:
        asked *= X.data
    return _where_positive(X, X.data - asked), _where_positive(X, asked)


def _where_positive(X: sp.csr_matrix, data: Floats) -> CountChunk:
    """Chunk of the documents of `X` with counts `data`, without those that are 0."""
    kept = np.flatnonzero(data > 0)
    pointers = np.searchsorted(kept, X.indptr)
    return CountChunk(of_same_shape(X, data.take(kept), X.indices.take(kept), pointers))


def _gains(seen: CountChunk, asked: CountChunk, gain: TopicGain, over: Floats) -> Floats:
    """Log-likelihood of the `asked` words over that under the word probabilities `over`, with topic
    shares inferred from the `seen` words; (n_documents,).
    """
    if gain.concentration == 0:
        blocks = [rows_in(seen.X, block) for block in row_blocks(seen.X)]
        found = [topic_posterior(counts, gain.topics, gain.weights) for counts in blocks]
        shares = np.concatenate([np.zeros((0, len(gain.topics))), *found])
    else:
        prior = gain.weights * gain.concentration
        shares = collapsed_shares(seen, gain.topics, prior, N_STEPS)
    return log_mixtures(asked, gain.topics, over, shares)


def collapsed_shares(chunk: CountChunk, topics: Floats, prior: Floats, n_iter: int) -> Singles:
    """Topic shares of each document, (n_documents, n_components), by `n_iter` steps of CVB0.

    Computes :func:`sktensor_dp.topics.inference.collapsed_proportions` in single precision.
    """
    order, counts = chunk.by_words
    topics, k = np.maximum(topics, LEAST_SUM), len(topics)
    # A factor of a word's own changes nothing: the largest is 1. Last is a word of no topic.
    of_words = np.zeros((k, topics.shape[1] + 1), dtype=np.float32)
    of_words[:, :-1] = np.maximum(topics / topics.max(axis=0), LEAST_SHARE)
    prior = np.maximum(prior, LEAST_COLLAPSED_PRIOR)
    added = prior.astype(np.float32)[:, None]
    sorted_shares = np.tile((prior / prior.sum()).astype(np.float32), (counts.shape[0], 1))

    def work(batch: slice, space: Space) -> None:
        own_counts, words, _ = columns(counts, batch)
        words[own_counts == 0] = of_words.shape[1] - 1
        (longest, width), n = own_counts.shape, batch.stop - batch.start
        own, of_tokens = (space.take(name, (k, longest, width)) for name in ("own", "of_tokens"))
        np.take(of_words, words, axis=1, out=own, mode="clip")
        sums, current = space.take("sums", own_counts.shape), space.take("current", (k, width))
        for step in range(n_iter):
            if step == 0:
                np.multiply(own, added[:, None], out=of_tokens)
            else:
                # Counts are 1 or more and all terms 0 or more: the sum is no less than any of
                # them, rounded as it is, and what is left no less than the prior.
                np.subtract(current[:, None], of_tokens, out=of_tokens)
                of_tokens += added[:, None]
                of_tokens *= own
            np.add.reduce(of_tokens, axis=0, out=sums)
            np.maximum(sums, np.float32(LEAST_SUM), out=sums)
            of_tokens *= np.reciprocal(sums, out=sums)
            np.einsum("kln,ln->kn", of_tokens, own_counts, out=current)
        current += added
        current /= np.add.reduce(current, axis=0)
        sorted_shares[batch] = current[:, :n].T

    run_in_batches(work, counts, k)
    shares = np.empty_like(sorted_shares)
    shares[order] = sorted_shares
    return shares


def log_mixtures(chunk: CountChunk, topics: Floats, over: Floats, shares: Floats) -> Floats:
    """Log-likelihood of each document's words under its topic shares, minus that under the word
    probabilities `over`; (n_documents,).
    """
    order, counts = chunk.by_words
    ratios = (np.maximum(topics, LEAST_SUM) / np.maximum(over, LEAST_SUM)).astype(np.float32)
    k, sorted_shares = len(topics), shares[order].astype(np.float32)
    sums = np.zeros(counts.shape[0])

    def work(batch: slice, space: Space) -> None:
        own_counts, words, _ = columns(counts, batch)
        (longest, width), n = own_counts.shape, batch.stop - batch.start
        own, own_shares = space.take("own", (k, longest, width)), space.take("shares", (k, width))
        np.take(ratios, words, axis=1, out=own, mode="clip")
        own_shares[:, :n], own_shares[:, n:] = sorted_shares[batch].T, np.float32(1 / k)
        mixtures = np.einsum("kln,kn->ln", own, own_shares).astype(np.float64)
        terms = np.log(mixtures, out=mixtures)
        terms *= own_counts
        sums[batch] = np.add.reduce(terms, axis=0)[:n]

    run_in_batches(work, counts, k)
    found = np.empty_like(sums)
    found[order] = sums
    return found
