"""Topics whose documents give the expected counts that EM steps released, and how sure they are.

Steps lag behind documents, by mean field and with an even prior, and topics of documents that mix
them come out too sharp or too blurred, and too even in size. Steps over documents drawn from a
model are off alike. So topics and shares move until these give the counts that were released
(indirect inference; Gourieroux, Monfort & Renault, 1993). They move within the span of the topics:
many words together tell how much of one topic is in another. The slopes of counts, along each
move, are their covariances with the score of the drawn documents.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import psi

from sktensor_dp.data.counts import CountChunk
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.spectral_lda.fitted import FittedTopics
from sktensor_dp.tensor.arrays import Floats, as_generator, of_same_shape
from sktensor_dp.topics import defaults
from sktensor_dp.topics.documents import drawn_documents, drawn_shares
from sktensor_dp.topics.shrinkage import LEAST_SHARE

# Tokens of all drawn documents, and most pairs of these and topics, which memory holds at once.
DRAWN, PAIRS = 2**18, 2**22
# Fewest documents of a draw.
LEAST_DRAWN = 50
# Most draws of documents, and most topics for which every pair may hold words of each other; each
# one of more topics moves towards the mean of all, and in size.
DRAWS, MOST_PAIRED = 3, 16
# More topics than this stay as they are: covariances of their errors would be too large.
MOST_TOPICS = 100

# Concentration that the pairs tell, by shares of topics and their mixtures (k, k).
Concentration = Callable[[Floats, Floats], float]


class Step(NamedTuple):
    """Query of an EM step, and the rows of its counts whose topics were kept."""

    query: ExpectedCounts
    rows: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Released:
    """Average of the counts that EM steps released, and their queries."""

    steps: tuple[Step, ...]
    mean: Floats  # (k, d): counts of a unit, divided by `scales`
    variance: float  # of its noise
    scales: Floats | float  # of words
    n_units: int
    of_persons: bool  # True if units may have several documents


def matched_to_counts(
    fitted: FittedTopics, released: Released, concentration: Concentration
) -> FittedTopics:
    """Topics, shares and concentration by which steps over drawn documents give `released`.

    `fitted` has the `concentration` of its own topics.
    """
    k = len(fitted.topics)
    # Of noise alone counts may add up to 0 or less.
    if float((released.scales * released.mean).sum()) <= 0 or k > MOST_TOPICS:
        return fitted
    task = _Task(fitted, released, concentration)
    best = task.drawn(np.zeros(len(task.moves)))
    # One prior for all draws: slopes of a draw far from the start would not tell how far moves led.
    prior = task.likely_prior(best)
    step = best.best_move(1.0, prior)
    if fitted.concentration == 0:
        # Short texts are hardly of one topic each, as is assumed: topics stay, and may be off by
        # what the counts suggest.
        covariance = task.mixing_covariance(best, prior, step)
        return replace(fitted, mixing_covariance=covariance)
    for _ in range(DRAWS - 1):
        trial = task.drawn(best.at + step)
        # What no move explains is an error of the counts.
        left = max(min(best.misfit, trial.misfit), 1.0)
        if trial.cost(left, prior) < best.cost(left, prior):
            best = trial
            step = best.best_move(left, prior) - best.at
        else:  # counts are far from linear
            step = step / 2
    return replace(task.model(best.at), mixing_covariance=task.mixing_covariance(best, prior))


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Counts of drawn documents at some moves: distance to those released, and slopes."""

    at: Floats  # (q,)
    distance: Floats  # (r,): in units of its error, by noise and chance
    slopes: Floats  # (r, q): of the counts, in these units
    information: Floats  # (q, q): squares of slopes, without what chance adds to these

    @property
    def misfit(self) -> float:
        """Mean square of distances to the released counts; 1 by noise and chance alone."""
        return float(np.square(self.distance).mean())

    def cost(self, variance: float, prior: Floats) -> float:
        """Twice the negative logarithm of the posterior of these moves, up to a constant.

        Counts have `variance` times their errors, and moves the covariance `prior`.
        """
        squares = len(self.distance) * self.misfit / variance
        return squares + float(self.at @ np.linalg.solve(prior, self.at))

    def evidence(self, prior: Floats) -> float:
        """Log-likelihood of the counts under a prior of moves, up to a constant."""
        error = np.eye(len(self.distance)) + self.slopes @ prior @ self.slopes.T
        root = np.linalg.cholesky(error)
        away = np.linalg.solve(root, self.distance + self.slopes @ self.at)
        return float(-0.5 * away @ away - np.log(root.diagonal()).sum())

    def best_move(self, variance: float, prior: Floats) -> Floats:
        """Posterior mean of moves (q,), by the laws of `cost`, if counts are linear in moves."""
        of_counts = self.slopes @ prior
        error = variance * np.eye(len(self.distance)) + of_counts @ self.slopes.T
        return np.linalg.solve(error, self.distance + self.slopes @ self.at) @ of_counts


class _Task:
    """Moves of a model within the span of its topics, and what documents drawn there give."""

    def __init__(
        self, start: FittedTopics, released: Released, concentration: Concentration
    ) -> None:
        self._start, self._released, self._concentration = start, released, concentration
        k, eye = len(start.topics), np.eye(len(start.topics))
        # Moves of each topic by itself: in size, and towards the mean of all.
        in_size = eye[:, :, None] * eye[:, None]
        own = np.concatenate([in_size, eye[:, :, None] * start.weights - in_size])
        # (q, k, k): move m gives topic i `moves[m, i, j]` of topic j, in units of its own share.
        self.moves = np.eye(k * k).reshape(-1, k, k) if k <= MOST_PAIRED else own
        # Directions (q, b) that may deviate more, those of `own`; and the usual deviation of a
        # move, a priori.
        self._blurs = own.reshape(2 * k, -1).T if k <= MOST_PAIRED else np.eye(2 * k)
        self._spread = defaults.MIXING / (k**0.5 if k <= MOST_PAIRED else 1.0)
        # Directions of words within the span of topics; all have the same noise.
        _, lengths, words = np.linalg.svd(start.topics / released.scales, full_matrices=False)
        self._words = words[lengths > 1e-6 * lengths.max()]
        self._target = released.mean @ self._words.T
        # Products with these add up the counts of all words.
        self._ones = self._words @ np.broadcast_to(released.scales, self._words.shape[1])

    def _mixtures(self, at: Floats) -> Floats:
        """Mixtures (k, k) of the topics at the start, times the shares that these had."""
        mixtures = np.eye(len(self._start.topics)) + np.tensordot(at, self.moves, 1)
        return self._start.weights[:, None] * mixtures

    def likely_prior(self, drawn: _Drawn) -> Floats:
        """Covariance (q, q) of moves that explains the counts best.

        All moves have one deviation, and moves of a topic towards the mean, or in size, another on
        top of it: of one topic that dominates, all others may hold a good part.
        """
        spreads = self._spread * 0.1 * 2.0 ** np.arange(7)  # up to six times the usual one
        priors = [
            each**2 * np.eye(len(drawn.at)) + of_blurs**2 * self._blurs @ self._blurs.T
            for each in spreads[:4] for of_blurs in [0.0, *spreads]
        ]  # fmt: skip
        return max(priors, key=drawn.evidence)

    def model(self, at: Floats) -> FittedTopics:
        """Model after moves."""
        start, mixtures = self._start, self._mixtures(at)
        least = LEAST_SHARE * np.outer(start.weights, start.weights @ start.topics)
        joint = np.maximum(mixtures @ start.topics, least)
        weights = joint.sum(axis=1)
        return replace(
            start, topics=joint / weights[:, None], weights=weights / weights.sum(),
            concentration=self._concentration_at(at),
        )  # fmt: skip

    def _concentration_at(self, at: Floats) -> float:
        """Concentration after moves."""
        mixtures = self._mixtures(at)
        sums = np.maximum(mixtures.sum(axis=1), 1e-9)
        return self._concentration(sums / sums.sum(), mixtures / sums[:, None])

    def _slopes_of_concentration(self, at: Floats) -> Floats:
        """Slopes (q,) of the logarithm of the concentration, along each move."""
        if self._start.concentration == 0:
            return np.zeros(len(at))
        step = 0.02
        ends = [self._concentration_at(at + step * one) for one in np.eye(len(at))]
        return np.log(np.array(ends) / self._concentration_at(at)) / step

    @cached_property
    def _length(self) -> float:
        """Mean length of drawn documents at which clipped steps count the tokens released."""
        start, released = self._start, self._released
        # Of longer documents memory holds fewer than are to be drawn.
        longest = self._n_tokens / LEAST_DRAWN
        length = min(max(start.length, 1.0), longest)
        if released.of_persons or length == longest:
            return length
        total = float((released.scales * released.mean).sum())
        for _ in range(4):
            n = int(np.clip(2**13 / length, LEAST_DRAWN, 1000))
            documents, _ = _documents(start, length, n, as_generator(1))
            totals = [
                float((released.scales * query.total(documents)[rows]).sum()) / n
                for query, rows in released.steps
            ]
            # Of clipped documents the total grows with the root of their length.
            ratio = total / max(float(np.mean(totals)), 1e-9)
            length = float(np.clip(length * ratio**1.5, 1.0, 4 * max(start.length, 1.0)))
            length = min(length, longest)
        return length

    @property
    def _n_tokens(self) -> int:
        """Number of tokens to draw at once."""
        return min(DRAWN, PAIRS // len(self._start.topics))

    def drawn(self, at: Floats) -> _Drawn:
        """Draw documents from the model after moves, and make the steps over them."""
        model, released, sums = self.model(at), self._released, _Sums()
        n_steps, rng = len(released.steps), as_generator(0)
        n_each = max(int(self._n_tokens / self._length / n_steps), LEAST_DRAWN)
        n = 2 * (n_each // 2)  # two halves
        slopes = self._slopes_of_concentration(at)
        for query, rows in released.steps:
            documents, shares = _documents(model, self._length, n, rng)
            counts = query.by_document(documents, self._words)[:, rows].reshape(n, -1)
            sums.add(counts, self._score(model, documents, shares, slopes))
        return self._linear(at, sums)

    def _score(
        self, model: FittedTopics, documents: CountChunk, shares: Floats, slopes: Floats
    ) -> Floats:
        """Slopes (n, q) of the log-likelihood of drawn documents along each move.

        `slopes` (q,) are those of the logarithm of the concentration.
        """
        start, (n, k) = self._start, shares.shape
        weights, c = model.weights, model.concentration
        X = documents.X
        mixed = np.einsum("ij,ij->i", shares[documents.rows], model.topics.T[X.indices])
        ratios = of_same_shape(X, X.data / np.maximum(mixed, 1e-30))
        of_start, of_model = ratios @ start.topics.T, ratios @ model.topics.T
        # Slopes (n, k), over `weights`, of the likelihood of shares along the logarithms of weights
        # (documents of one topic), or of the parameters of the Dirichlet prior.
        of_shares = shares / weights
        if c > 0:
            of_shares = c * (np.log(np.maximum(shares, 1e-300)) - psi(c * weights) + psi(c))
        # A move adds words of one topic to another, and their mass to its share.
        parts = start.weights / weights * shares
        by_pair = parts[:, :, None] * (of_start[:, None] - of_model[:, :, None])
        mean = of_shares @ weights
        by_pair += (start.weights * (of_shares - mean[:, None]))[:, :, None]
        score = by_pair.reshape(n, -1)
        if k > MOST_PAIRED:
            score = score @ self.moves.reshape(len(self.moves), -1).T
        return np.asarray(score + np.outer(mean, slopes))

    def _linear(self, at: Floats, sums: "_Sums") -> _Drawn:
        """Counts and slopes in units of their errors, as sums of the drawn documents give them."""
        k, released = len(self._target), self._released
        mean, covariance, left, halves = sums.moments()
        ones = np.tile(self._ones, k)
        # Give drawn documents as many tokens as were released.
        factor = float(self._target.ravel() @ ones) / max(float(mean @ ones), 1e-300)
        mean, halves = factor * mean, factor * halves
        # Totals are as released, whatever moves.
        halves = halves - mean[:, None] * (ones @ halves)[:, None] / float(mean @ ones)
        error = released.variance * np.eye(len(mean))
        error += factor**2 * (covariance / released.n_units + left / sums.n)
        distance = self._target.ravel() - mean
        if k > MOST_PAIRED:  # counts tell no more than moves change
            basis = self._directions()
            error, distance, halves = basis.T @ error @ basis, distance @ basis, basis.T @ halves
        error += 1e-9 * np.trace(error) / len(error) * np.eye(len(error))  # rounding
        root = np.linalg.cholesky(error)
        distance, first, second = (np.linalg.solve(root, one) for one in (distance, *halves))
        # Errors of two halves are independent: their product has no squares of errors.
        values, vectors = np.linalg.eigh((first.T @ second + second.T @ first) / 2)
        information = (vectors * np.maximum(values, 0)) @ vectors.T
        return _Drawn(at, distance, (first + second) / 2, information)

    def _directions(self) -> Floats:
        """Orthonormal directions (k r, q) of counts that moves change."""
        of_topics = (self._start.topics / self._released.scales) @ self._words.T
        changes = (self._start.weights[:, None] * self.moves) @ of_topics
        return np.linalg.qr(changes.reshape(len(self.moves), -1).T)[0]

    def mixing_covariance(
        self, drawn: _Drawn, prior: Floats, not_made: Floats | float = 0.0
    ) -> Floats:
        """For each topic, covariances (k, k) of what texts of two topics give it too much.

        They are of the posterior of moves under `prior` and, on top of it, the usual deviation; a
        move that counts suggest and that was `not_made` is an error, too.
        """
        precision = drawn.information / max(drawn.misfit, 1.0)
        precision += np.linalg.inv(prior + self._spread**2 * np.eye(len(drawn.at)))
        root = np.linalg.cholesky(np.linalg.inv(precision)).T  # (q, q)
        errors = np.tensordot(np.vstack([root, not_made + np.zeros(len(root))]), self.moves, 1)
        # Moves are in terms of topics at the start, errors in terms of those found, which are
        # mixtures of sum 1. What a topic gives to others it lacks.
        mixtures = self._mixtures(drawn.at) / self._start.weights[:, None]
        sums = mixtures.sum(axis=1, keepdims=True)
        errors = errors / sums @ np.linalg.pinv(mixtures / sums)
        errors -= errors.sum(axis=2, keepdims=True) * np.eye(len(mixtures))
        return np.asarray(np.einsum("mij,mlj->jil", errors, errors, optimize=True))


class _Sums:
    """Sums over drawn documents, a batch for each step, of counts and scores."""

    def __init__(self) -> None:
        self.n = 0
        self._parts: list[tuple[Floats, ...]] = []

    def add(self, counts: Floats, scores: Floats) -> None:
        """Add a batch of documents: their counts (n, r), and scores (n, q), of expectation 0."""
        n, half = len(counts), len(counts) // 2
        self.n += n
        means = counts.mean(axis=0), scores.mean(axis=0)
        away, scores = counts - means[0], scores - means[1]
        of_scores = scores.T @ scores / n
        of_scores += 1e-6 * np.trace(of_scores) / len(of_scores) * np.eye(len(of_scores))
        slopes = [away[part].T @ scores[part] / half for part in (slice(half), slice(-half, None))]
        self._parts.append((*means, away.T @ away / n, of_scores, *slopes))

    def moments(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean counts (r,), covariances (r, r) of a document, and slopes (2, r, q) of both halves.

        Scores are known to have the mean 0, so what they explain is taken off the mean; the second
        covariance is that without it.
        """
        mean, off, covariance, of_scores, *halves = (
            np.mean(parts, axis=0) for parts in zip(*self._parts, strict=True)
        )
        slopes = (halves[0] + halves[1]) / 2
        by_score = np.linalg.solve(of_scores, slopes.T)
        return (
            mean - off @ by_score, covariance, covariance - slopes @ by_score, np.array(halves),
        )  # fmt: skip


def _documents(
    model: FittedTopics, length: float, n: int, rng: np.random.Generator
) -> tuple[CountChunk, Floats]:
    """Draw `n` documents of a mean `length`, and their shares of topics (n, k)."""
    shares = drawn_shares(model.weights, model.concentration, n, rng)
    lengths = np.maximum(rng.poisson(length, n), 1)
    return CountChunk(drawn_documents(model.topics, shares, lengths, rng)), shares
