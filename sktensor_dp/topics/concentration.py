"""How many topics documents mix: the concentration that a released second moment shows.

Under latent Dirichlet allocation the pairs of words of documents are

    E2 = m m' + sum_i w_i (mu_i - m)(mu_i - m)' / (alpha0 + 1),    m = sum_i w_i mu_i

so that, given topics and their shares, ``1 / (alpha0 + 1)`` is the coefficient of a regression
of the released E2 on what E2 would be with one topic per document. Products of E2 with the
topics are all that it needs.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.arrays import Floats

# The concentration that is assumed before there is evidence.
USUAL = 1.0
# Below the first, documents count as having one topic each; beyond the second all are alike.
LEAST_CONCENTRATION, LARGEST_CONCENTRATION = 0.1, 20.0
# EM steps assume a prior of at most so many tokens for each that a document has. Against few tokens
# mean field takes the prior's word for an even mixture, and topics are blurred: on documents of 6
# words completion is 2 to 6 % better so than by the estimate itself, and topics are nearer to those
# that drew the documents. Against many, topics are best with what the documents were drawn with.
PRIOR_OF_TOKENS = 0.1


def in_steps(concentration: float, length: float) -> float:
    """The concentration that EM steps assume, of that estimated and the mean length."""
    return min(concentration, max(PRIOR_OF_TOKENS * length, LEAST_CONCENTRATION))


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """A released second moment, as far as it speaks of the concentration.

    Examples
    --------
    Half of all pairs have one topic, so the concentration is 1:

    >>> import numpy as np
    >>> topics, weights = np.eye(2), np.array([0.5, 0.5])
    >>> pairs = np.array([[0.375, 0.125], [0.125, 0.375]])
    >>> evidence = PairEvidence(None, weights, 0.0, pairs.__matmul__, 0.0)
    >>> round(evidence.concentration(topics, weights), 6)
    1.0
    """

    words: NDArray[np.intp] | None  # words it is about; all if None
    frequencies: Floats  # (n_words,): their released frequencies
    variance: float  # of the noise in these
    # ``V -> E2 @ V``; E2 sums to the square of what the frequencies sum to.
    product: Callable[[Floats], Floats]
    sigma: float  # standard deviation of its noise

    def concentration(self, topics: Floats, weights: Floats) -> float:
        """Sum of the Dirichlet parameters; 0 where documents have one topic each."""
        on_words = topics if self.words is None else topics[:, self.words]
        centred = on_words - weights @ on_words
        size = float(weights @ ((centred @ centred.T) ** 2) @ weights)
        found = float(weights @ (centred * self.product(centred.T).T).sum(axis=1))
        found -= float(weights @ (centred @ self.frequencies) ** 2)
        found += self.variance * float(weights @ (centred**2).sum(axis=1))
        # Topics were read off the same moment, whose noise they explain: as much of it as so many
        # eigenvectors can have counts for what is usual.
        noise = len(weights) * len(self.frequencies) * self.sigma**2
        share = (found + noise / (1 + USUAL)) / max(size + noise, 1e-300)
        if share * (1 + LEAST_CONCENTRATION) >= 1:
            return 0.0
        return 1 / max(share, 1 / (1 + LARGEST_CONCENTRATION)) - 1
