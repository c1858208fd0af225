"""The released second moment of words: which pairs of words documents hold, and how often."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.queries.clips import Clip
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.whitening import NoisyWhitener
from sktensor_dp.topics.concentration import WordPairs
from sktensor_dp.topics.measures import umass
from sktensor_dp.topics.moments import PriorCorrection, mean_square_of_pairs

# A second moment of words: a matrix, or the function V -> M V.
Moment = Floats | Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class ReleasedPairs:
    """Released second moment E2, the probabilities of pairs of words."""

    matrix: Floats | None  # None where only products are asked for, without noise
    # V -> matrix @ V; without a matrix each call reads all documents, while the session is open.
    product: Callable[[Floats], Floats]
    sigma: float  # of the noise off the diagonal
    diagonal_sigma: float


@dataclass(frozen=True, eq=False)
class WhitenedPairs:
    """Released pair moments, as probabilities (divided by `total`), and their whitener."""

    words: NDArray[np.intp] | None  # columns whose pairs were released; None for all
    pair_clip: Clip  # on what a unit contributes
    # Clip on counts, in force too; None where `pair_clip` is alone.
    count_clip: Clip | None
    total: float  # tokens that clips leave of a mean document: the released mean is this times E2
    correction: PriorCorrection  # for the Dirichlet prior
    released: ReleasedPairs
    corrected: Moment  # M2
    white: NoisyWhitener

    @property
    def clips(self) -> tuple[Clip, ...]:
        """Clips on what a unit contributes, in force together."""
        return (self.pair_clip,) if self.count_clip is None else (self.count_clip, self.pair_clip)

    def with_concentration(self, concentration: float) -> "WhitenedPairs":
        """Return a copy corrected for another concentration; the whitener stays."""
        frequencies, sigma = self.correction.frequencies, self.correction.variance**0.5
        correction = PriorCorrection(concentration, frequencies, sigma)
        return replace(
            self, correction=correction,
            corrected=corrected_pairs(self.released, correction),
        )  # fmt: skip

    def for_estimates(self, unigram: Floats, length: float, n_units: float) -> WordPairs:
        """Pairs by which the concentration is estimated, of documents of a mean `length`."""
        assert self.released.matrix is not None
        p = self.of_words(unigram)
        # The mass of a pair, 2 p_a p_b, has the sampling variance square * mass / n; an entry of
        # E2 is half of the mass.
        sampling = mean_square_of_pairs(length, float(p @ p)) / (2 * n_units)
        return WordPairs(self.released.matrix, p, self.released.sigma, sampling)

    def of_words(self, frequencies: Floats) -> Floats:
        """Frequencies of the words whose pairs were released."""
        return frequencies if self.words is None else frequencies[self.words]

    def corrected_product(self, V: Floats) -> Floats:
        """Product of the corrected second moment with `V`, of shape (n_words, b)."""
        return product_of(self.corrected, V)


def product_of(moment: Moment, V: Floats) -> Floats:
    """Product of a second moment with `V`, of shape (n_words, b)."""
    return np.asarray(moment(V) if callable(moment) else moment @ V)


def corrected_pairs(released: ReleasedPairs, correction: PriorCorrection) -> Moment:
    """Second moment M2 corrected for the prior."""
    if released.matrix is not None:
        return correction.pair_matrix(released.matrix)
    return correction.pairs(released.product)


def coherence_of(pairs: WhitenedPairs, topics: Floats) -> Floats:
    """Coherence (k,) of the ten words that lead each topic, of those whose pairs were released."""
    words = pairs.words if pairs.words is not None else np.arange(topics.shape[1])
    leading = np.argsort(-topics[:, words], axis=1, kind="stable")[:, :10]
    leaders, places = np.unique(leading, return_inverse=True)
    if pairs.released.matrix is not None:
        together = pairs.released.matrix[np.ix_(leaders, leaders)]
    else:  # columns of the moment, as products with unit vectors
        units = np.zeros((len(words), len(leaders)))
        units[leaders, np.arange(len(leaders))] = 1.0
        together = pairs.released.product(units)[leaders]
    return umass(
        places.reshape(leading.shape), together,
        pairs.correction.frequencies[leaders], pairs.released.sigma,
    )  # fmt: skip
