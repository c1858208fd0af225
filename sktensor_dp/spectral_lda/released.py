"""Options and results of a fit of topics, and the released second moment of words."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.queries.counts import Clip
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.whitening import NoisyWhitener, top_eigenpairs
from sktensor_dp.topics.concentration import USUAL
from sktensor_dp.topics.measures import umass
from sktensor_dp.topics.moments import PriorCorrection, spread_of_pairs

# A second moment of words: a matrix, or the function V -> M V.
Moment = Floats | Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class FittedTopics:
    """Topic model that a fit learned; made of released values only."""

    topics: Floats  # (k, n_features): rows are distributions
    weights: Floats  # (k,): share of each topic
    unigram: Floats  # (n_features,): denoised word frequencies
    unigram_sigma: float  # noise of the released ones
    n_resolved: int  # eigenvalues of the second moment above its noise
    length: float  # tokens of a document, as released
    # Standard deviations by noise of topics (k, n_features) and shares (k,).
    topics_std: Floats | None = None
    weights_std: Floats | None = None
    # (k,): coherence of the leading words of each topic in the released second moment; None if the
    # topics come from later data.
    coherence: Floats | None = None
    # (m,): leading eigenvalues of the released second moment, corrected for the prior.
    spectrum: Floats | None = None
    noise_edge: float | None = None  # what noise and sampling may lift one to
    # Sum of the Dirichlet prior in use; 0 for one topic per document.
    concentration: float = USUAL
    # (k0, n_features): public topics towards which the first topics are shrunk; None if there are
    # none, or if fitted topics were better.
    public: Floats | None = None


@dataclass(frozen=True, eq=False)
class TopicOptions:
    """Settings of a topic fit that do not decide which releases it makes."""

    # Sum of the Dirichlet prior; 0 for one topic per document, None to estimate it.
    concentration: float | None
    random_state: int | np.random.RandomState | None  # for restarts after release
    # (n_features,): public word frequencies towards which noisy ones are shrunk; positive, of sum
    # 1.
    word_frequencies: Floats | None = None
    # (k0, n_features): public topics, rows of sum 1; a word that is 0 in all of them is unknown to
    # them.
    public_topics: Floats | None = None


@dataclass(frozen=True, eq=False)
class ReleasedPairs:
    """A released second moment."""

    matrix: Floats | None  # None where only products are asked for, without noise
    product: Callable[[Floats], Floats]  # V -> matrix @ V
    sigma: float  # of the noise off the diagonal
    diagonal_sigma: float


@dataclass(frozen=True, eq=False)
class WhitenedPairs:
    """Released pair moments, in units of one document of mean weight, and their whitener."""

    words: NDArray[np.intp] | None  # columns whose pairs were released; None for all
    clips: tuple[Clip, ...]  # on what a document contributes, in force together
    total: float  # released pairs are this times E2, the probabilities of pairs of words
    correction: PriorCorrection  # for the Dirichlet prior
    released: ReleasedPairs
    corrected: Moment  # M2
    scale: float  # factor of the noise of `corrected` over that of `released`
    white: NoisyWhitener
    edge: float  # largest eigenvalue of M2 that noise and sampling give

    def with_concentration(self, concentration: float) -> "WhitenedPairs":
        """Return a copy corrected for another concentration; the whitener stays."""
        old = self.correction
        correction = PriorCorrection(concentration, old.frequencies, old.variance**0.5)
        return replace(
            self, correction=correction, scale=correction.pair_scale / self.total,
            corrected=corrected_pairs(self.released, correction, self.total),
        )  # fmt: skip

    def against_chance(
        self, unigram: Floats, length: float, n_units: float
    ) -> tuple[Floats, Floats, float, float]:
        """E2 as released, frequencies of its words, deviation of its noise, and sampling variance
        over the product of two frequencies: what estimates of the concentration take.
        """
        assert self.released.matrix is not None
        known = self.of_words(unigram)
        sampling = spread_of_pairs(length, float(known @ known)) / (2 * n_units)
        return self.released.matrix / self.total, known, self.released.sigma / self.total, sampling

    def of_words(self, frequencies: Floats) -> Floats:
        """Frequencies of the words whose pairs were released."""
        return frequencies if self.words is None else frequencies[self.words]

    def product(self, V: Floats) -> Floats:
        """Product of the corrected second moment with `V`, of shape (n_words, b)."""
        return product_of(self.corrected, V)


def product_of(moment: Moment, V: Floats) -> Floats:
    """Product of a second moment with `V`, of shape (n_words, b)."""
    return np.asarray(moment(V) if callable(moment) else moment @ V)


def corrected_pairs(released: ReleasedPairs, correction: PriorCorrection, total: float) -> Moment:
    """Second moment M2 corrected for the prior."""
    if released.matrix is not None:
        return correction.pair_matrix(released.matrix, total)
    return correction.pairs(lambda V: released.product(V) / total)


def diagnostics(pairs: WhitenedPairs, topics: Floats) -> dict[str, Any]:
    """Coherence of topics, leading eigenvalues, and their noise, as fields of FittedTopics."""
    # Number of eigenvalues reported beyond those of the topics, and of words whose coherence is
    # computed.
    more_eigenvalues, coherent_words = 10, 10
    spectrum = pairs.white.eigenvalues
    if pairs.released.matrix is not None:
        n_values = max(2 * len(topics), len(topics) + more_eigenvalues)
        # A seed of its own, so that later draws do not depend on whether this is computed.
        spectrum, _ = top_eigenpairs(
            pairs.corrected, min(n_values, len(pairs.released.matrix)), tol=1e-3, random_state=0
        )
    words = pairs.words if pairs.words is not None else np.arange(topics.shape[1])
    leading = np.argsort(-topics[:, words], axis=1, kind="stable")[:, :coherent_words]
    named, places = np.unique(leading, return_inverse=True)
    coherence = umass(
        places.reshape(leading.shape), _moment_of(pairs, named),
        pairs.correction.frequencies[named], pairs.released.sigma / pairs.total,
    )  # fmt: skip
    return {"coherence": coherence, "spectrum": spectrum, "noise_edge": pairs.edge}


def _moment_of(pairs: WhitenedPairs, words: NDArray[np.intp]) -> Floats:
    """Released second moment of the columns `words` with each other."""
    if pairs.released.matrix is not None:
        return pairs.released.matrix[np.ix_(words, words)] / pairs.total
    picked = np.zeros((len(pairs.correction.frequencies), len(words)))
    picked[words, np.arange(len(words))] = 1.0
    return np.asarray(pairs.released.product(picked))[words] / pairs.total
