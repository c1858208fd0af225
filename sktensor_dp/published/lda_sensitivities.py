r"""Calibration and sensitivities that DeCarolis et al. print, right and wrong ones alike.

What holds: Theorem 4 for the second moment, and for the third in L2 (its L1 norm counts one of
three terms), and Lemmas 8 and 33. What does not: the calibration of Appendix A below by itself,
Lemma 9, Lemma 32 and what is built on it, Theorems 5 to 7. ``docs/verdicts.md`` has the
tests.
"""

import math
from dataclasses import dataclass

import numpy as np

from sktensor_dp.privacy.noise import NoiseSource


def printed_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """Noise of Appendix A, after Proposition 22: a factor sqrt(2) is missing.

    Parameters
    ----------
    sensitivity : float
        Of one release.
    epsilon, delta : float
        Of this release alone.

    Returns
    -------
    float
        ``sensitivity / (2 epsilon) (sqrt(epsilon + L) + sqrt(L))``, L = ``log(1 / delta)``; 0
        for an infinite epsilon.

    Examples
    --------
    Exact calibration asks for 4.22:

    >>> round(printed_sigma(1.0, 1.0, 1e-6), 2)
    3.78
    """
    if math.isinf(epsilon):
        return 0.0
    L = math.log(1 / delta)
    return sensitivity / (2 * epsilon) * (math.sqrt(epsilon + L) + math.sqrt(L))


def private_lower_bound(
    value: float, sensitivity: float, epsilon: float, delta: float, noise: NoiseSource
) -> float:
    """Release a number that is below `value` but for probability delta (Lemmas 8 and 44).

    Parameters
    ----------
    value : float
        What local sensitivities depend on.
    sensitivity : float
        Its own, global one.
    epsilon, delta : float
        Of this release; delta is the probability that it is too large.
    noise : NoiseSource
        Source of the noise.

    Returns
    -------
    float
        Value with Laplace noise, less the quantile of that noise.
    """
    if math.isinf(epsilon):
        return value
    noisy = float(noise.laplace(np.array([value / sensitivity]), epsilon)[0])
    return sensitivity * (noisy - math.log(1 / (2 * delta)) / epsilon)


@dataclass(frozen=True)
class PrintedSensitivities:
    """Sensitivities of LDA's moments and of what is made of them, as printed.

    Parameters
    ----------
    n_documents : int
        N, at least 3.
    concentration : float
        alpha0, the sum of the Dirichlet prior; 0 is the single topic model.
    n_components : int
        k.

    Examples
    --------
    >>> printed = PrintedSensitivities(10_000, 0.0, 2)
    >>> f"{printed.pairs:.1e} {printed.whitener(0.5):.2e} {printed.whitened(0.5):.2e}"
    '2.0e-04 1.13e-03 1.60e-03'
    """

    n_documents: int
    concentration: float
    n_components: int

    @property
    def _constants(self) -> tuple[float, float, float]:
        """Sizes of the paper's a, b and c."""
        n = self.concentration
        return n / (n + 1), n / (n + 2), 2 * n**2 / ((n + 1) * (n + 2))

    @property
    def pairs(self) -> float:
        """Theorem 4, G.1: Delta_2."""
        a, _, _ = self._constants
        return (2 + 4 * a) / self.n_documents

    @property
    def triples(self) -> float:
        """Theorem 4, G.2: Delta_3, with the middle term once instead of three times."""
        _, b, c = self._constants
        n = self.n_documents
        return (2 + 4 * b) / n + 6 * c * (n - 1) / (n * (n - 2))

    @property
    def proved(self) -> tuple[float, float]:
        """What the triangle inequality proves of both moments in L2, for comparison."""
        a, b, c = self._constants
        unit = math.sqrt(2) / self.n_documents
        return unit * (1 + 2 * a), unit * (1 + 6 * b + 3 * c)

    def whitener(self, sigma: float) -> float:
        """Lemma 32, with sigma_k of the second moment: a bound for one rotation only."""
        margin = self._margin(sigma)
        return math.sqrt(2 * self.n_components) * self.pairs / (sigma * math.sqrt(margin))

    def whitened(self, sigma: float) -> float:
        """Theorem 5, (113): Delta_T."""
        n, k = self.n_documents, self.n_components
        _, b, c = self._constants
        norm = 1 + 6 * b * n / (n - 1) + 3 * c * n**2 / ((n - 1) * (n - 2))  # (111)
        cubes = k**1.5 * self.triples / self._margin(sigma) ** 1.5
        return norm * self.whitener(sigma) ** 3 + cubes

    def eigenpairs(self, sigma: float, gap: float) -> float:
        """Theorem 6, with gamma_s: ``2 sqrt(k) Delta_T / gamma_s``."""
        return 2 * math.sqrt(self.n_components) * self.whitened(sigma) / gap

    def topics(self, largest: float, sigma: float, top: float, gap: float) -> float:
        """Theorem 7, (117), with sigma_1 and sigma_k of M2 and sigma_1 of T.

        The paper's factor is infinite at ``concentration`` 0; there 1 stands for it, that of
        topics whose weights, not their prior, sum to 1.
        """
        n, moved, root = self.concentration, self.eigenpairs(sigma, gap), math.sqrt(largest)
        scale = (n + 2) / (2 * math.sqrt((n + 1) * n)) if n > 0 else 1.0
        vectors = top * (root * moved + root / sigma * self.pairs)
        return scale * (vectors + math.sqrt(largest + self.pairs) * moved)

    def _margin(self, sigma: float) -> float:
        if sigma <= self.pairs:
            raise ValueError(
                "X must show n_components topics: the bound on its singular value is not above "
                "Delta_2; more documents, fewer components or a larger epsilon are needed."
            )
        return sigma - self.pairs
