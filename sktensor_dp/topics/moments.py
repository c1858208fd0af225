r"""From raw moments of counts to moments that the topics diagonalise.

With ``alpha0`` the sum of the Dirichlet prior over topic proportions (0: one
topic per document), and E1, E2, E3 the probabilities of one, two and three
different tokens of a document,

    M2 = E2 - a E1 E1'                           = sum_i w_i / (alpha0 + 1) mu_i mu_i'
    M3 = E3 - b S3(E2, E1) + c E1 (x) E1 (x) E1  = sum_i 2 w_i / ((alpha0+1)(alpha0+2)) mu_i^(x)3

(Anandkumar et al., 2012; DeCarolis et al., 2020, equations 8 and 18). Scaled by
``alpha0 + 1`` and ``(alpha0 + 1)(alpha0 + 2) / 2`` they are the moments of the
single topic model with weights ``w_i = alpha_i / alpha0``, and that is the form
in which the functions here return them.
"""

from collections.abc import Callable

import numpy as np

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.symmetric import symmetric_product
from sktensor_dp.topics.simplex import project_rows

# Rows of a matrix of pairs that are corrected at once.
_ROWS_AT_ONCE = 256


class PriorCorrection:
    """Corrects released moments for the Dirichlet prior of topic proportions.

    Parameters
    ----------
    concentration : float
        ``alpha0``, the sum of the prior's parameters; 0 for single topics.
    frequencies : ndarray of shape (n_features,)
        Released E1.
    sigma : float
        Standard deviation of its noise: the products of E1 with itself are
        corrected for the variance they inherit.

    Examples
    --------
    Without a prior nothing changes:

    >>> import numpy as np
    >>> single = PriorCorrection(0.0, np.array([0.5, 0.5]), 0.0)
    >>> single.pairs(lambda V: V)(np.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, concentration: float, frequencies: Floats, sigma: float) -> None:
        self.pair_scale = concentration + 1
        self.triple_scale = (concentration + 1) * (concentration + 2) / 2
        self._a = concentration / (concentration + 1)
        self._b = concentration / (concentration + 2)
        self._c = 2 * concentration**2 / ((concentration + 1) * (concentration + 2))
        self.frequencies = frequencies
        self.variance = sigma**2
        # What debiasing adds to the eigenvalues of M2 away from the frequencies.
        self.pair_shift = self.pair_scale * self._a * self.variance

    def pairs(self, product: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
        """Products with the corrected M2, given products with the released E2."""

        def corrected(V: Floats) -> Floats:
            outer = np.multiply.outer(self.frequencies, self.frequencies @ V)
            return self.pair_scale * (product(V) - self._a * (outer - self.variance * V))

        return corrected

    def pair_matrix(self, pairs: Floats, total: float = 1.0) -> Floats:
        """Corrected M2, given the released E2 as a matrix, times `total`."""
        # Beside a matrix of many words there is room for one other.
        corrected = pairs / total
        for start in range(0, len(corrected), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            corrected[rows] -= self._a * np.outer(self.frequencies[rows], self.frequencies)
        corrected[np.diag_indices_from(corrected)] += self._a * self.variance
        corrected *= self.pair_scale
        return corrected

    def triples(self, projected: Floats, pairs: Floats, basis: Floats) -> Floats:
        """Corrected M3 in a basis B, from the released E3(B, B, B) and B' E2 B."""
        mean = basis.T @ self.frequencies
        cubed = np.einsum("a,b,c->abc", mean, mean, mean)
        cubed -= self.variance * symmetric_product(basis.T @ basis, mean)
        corrected = projected - self._b * symmetric_product(pairs, mean) + self._c * cubed
        return self.triple_scale * corrected


def topics_from_components(components: Floats) -> Floats:
    """Read topics off components that are multiples of them, up to noise."""
    sums = components.sum(axis=1, keepdims=True)
    sums = np.where(np.abs(sums) > 1e-9, sums, 1.0)
    return project_rows(components / sums)
