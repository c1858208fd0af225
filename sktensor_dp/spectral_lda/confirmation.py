"""Tell topics of documents from topics of noise by the releases of EM steps.

Pairs of words show some topics for sure; steps start from others, too, that noise may have made.
Each step's expected counts are compared with those of documents drawn from the sure topics alone.
A true topic's counts are larger than these in every step, while noise differs from step to step;
and by no less than in documents drawn from all topics, while errors of the sure topics give less.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sktensor_dp.data.counts import CountChunk
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.spectral_lda.fitted import FittedTopics
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.largest_of_noise import LEVEL
from sktensor_dp.topics.documents import drawn_documents, drawn_shares
from sktensor_dp.topics.shrinkage import shrink_deviations

# Number of documents in a draw, and most tokens of each on average: neither memory nor time grows
# with what noise or long documents make of their length.
N_DRAWN, LONGEST = 2000, 300.0


class _Excess(NamedTuple):
    """Counts (k - n_sure, d) of a step beyond those that sure topics alone would give."""

    released: Floats
    foreseen: Floats  # if documents were of all topics


@dataclass(frozen=True, eq=False)
class Candidates:
    """Topics of EM steps: the first `n_sure` are there, steps have to confirm the others."""

    n_sure: int
    excess: tuple[_Excess, ...] = ()  # of each step
    variance: float = 0.0  # of one excess, by noise and by drawing

    def of(self, kept: NDArray[np.bool_]) -> "Candidates":
        """Return the candidates that are `kept`, a mask of all topics."""
        others = kept[self.n_sure :]
        excess = tuple(
            _Excess(step.released[others], step.foreseen[others]) for step in self.excess
        )
        return replace(self, n_sure=int(kept[: self.n_sure].sum()), excess=excess)

    def after(
        self, query: ExpectedCounts, noisy: Answer, start: FittedTopics, rng: np.random.Generator
    ) -> "Candidates":
        """Return the candidates with one more step: its `query`, made from `start`, and answer."""
        if self.n_sure in (0, len(start.topics)):
            return self
        joint = start.weights[:, None] * start.topics
        frequencies = joint.sum(axis=0)
        # Sure topics get the words of the others.
        sure = joint[: self.n_sure]
        sure = sure * (frequencies / np.maximum(sure.sum(axis=0), 1e-300))
        # Draw documents of sure topics twice, which shows the error of drawing; of all topics once.
        first, second, of_all = (
            _drawn_counts(query, noisy.value, probabilities, start.length, rng)
            for probabilities in (sure, sure, joint)
        )
        of_sure, drawing_error = (first + second) / 2, (first - second) / 2
        excess = (noisy.value - of_sure)[self.n_sure :]
        foreseen = (of_all - of_sure)[self.n_sure :]
        # Documents that no topic fits add words of all kinds to each.
        overall = frequencies / (1.0 if query.scales is None else query.scales)
        overall /= np.linalg.norm(overall)
        excess -= np.outer(np.maximum(excess @ overall, 0.0), overall)
        variance = noisy.sigma**2 + float(np.mean(drawing_error[self.n_sure :] ** 2))
        n = len(self.excess)
        return replace(
            self, excess=(*self.excess, _Excess(excess, foreseen)),
            variance=(n * self.variance + variance) / (n + 1),
        )  # fmt: skip

    def shown(self, centres: Floats) -> Floats:
        """Return 1 for topics that are sure or confirmed, 0 for others; (k,).

        A topic is confirmed if the excesses of steps, taken together, agree with what the other
        steps show of it. `centres` (k, d) are expected counts of topics without words of their
        own.
        """
        n_sure, sigma = self.n_sure, self.variance**0.5
        found = (np.arange(len(centres)) < n_sure).astype(np.float64)
        if not self.excess:
            return found
        n_others = max(len(self.excess) - 1, 1)
        total = np.sum([step.released for step in self.excess], axis=0)
        # The product of noise alone is normal: with probability LEVEL one of the candidates exceeds
        # this size.
        most = float(ndtri(1 - LEVEL / max(len(centres) - n_sure, 1))) * sigma
        for row, centre in enumerate(centres[n_sure:]):
            product = foreseen = square = 0.0
            for step in self.excess:
                others = (total[row] - step.released[row]) / n_others
                by_others = np.maximum(
                    shrink_deviations(others, centre, sigma / n_others**0.5), 0.0
                )
                by_others[np.argmax(by_others)] = 0.0  # an excess of one word confirms no topic
                product += float(step.released[row] @ by_others)
                foreseen += float(step.foreseen[row] @ by_others)
                square += float(by_others @ by_others)
            found[n_sure + row] = product > max(most * square**0.5, foreseen)
        return found


def _drawn_counts(
    query: ExpectedCounts, released: Floats, joint: Floats, length: float, rng: np.random.Generator
) -> Floats:
    """Counts (k, d) that a query gives of drawn documents, scaled to the tokens of `released`.

    Topics and words of the documents have the `joint` probabilities (k, d), up to a factor.
    """
    concentration = 0.0 if query.single else float(query.prior.sum())
    joint = np.maximum(joint, 1e-100)  # its quotients do not underflow
    shares = drawn_shares(joint.sum(axis=1), concentration, N_DRAWN, rng)
    lengths = rng.poisson(min(max(length, 1.0), LONGEST), size=len(shares))
    counts = query.total(CountChunk(drawn_documents(joint, shares, lengths, rng)))
    scales = 1.0 if query.scales is None else query.scales
    return counts * (float((scales * released).sum()) / max(float((scales * counts).sum()), 1e-300))
