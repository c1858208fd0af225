"""Concurrences of rows: how units compare rows, and effects by what such comparisons show."""

import math
from dataclasses import dataclass

import numpy as np

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.largest_of_noise import beyond_noise

# Least sum of weights, to avoid a division by 0.
LEAST_WEIGHT = 1e-130
# Least and largest error variance, relative to the prior variance: above rounding errors, and as of
# rows without entries.
LEAST_ERROR, LARGEST_ERROR = 1e-9, 1e6


@dataclass(frozen=True, eq=False)
class Concurrences:
    """Concurrences of the rows of a mode beyond those by chance, from released sums."""

    # Residuals are about the mean of a unit's entries in other rows: of errors e of effects they
    # show (I - J) e, J the parts of other rows in these means, which for rows of shares s by chance
    # is 1 s'. As effects have mean 0, J - 1 s' does for J.

    excess: Floats  # (n_rows, n_rows): J - 1 s'; near eigenvalues of 1 units compare nothing
    variances: Floats  # (n_rows,): of each number of a row, by noise

    @classmethod
    def of_sums(cls, sums: Floats, sigma: float) -> "Concurrences":
        """Estimate from sums of `RowConcurrences`, with noise of deviation `sigma`."""
        least = sigma * math.sqrt(len(sums)) + LEAST_WEIGHT
        weights = np.maximum(sums.sum(axis=1), least)
        shares = weights / weights.sum()
        parts = (1 - shares) / weights
        beyond = (1 - shares)[:, None] * sums - np.multiply.outer(weights, shares)
        np.fill_diagonal(beyond, 0.0)
        if sigma > 0:
            beyond = _shrunk(beyond, weights, sigma)
        return cls(beyond / weights[:, None], (sigma * parts) ** 2)

    def shown(self, part: Floats) -> Floats:
        """Matrix (n_rows, n_rows) by which residuals show errors of effects.

        It is so in this `part` (n_rows,) of each row's entries; the others show a row's own error.
        """
        return np.eye(len(part)) - part[:, None] * self.excess


def are_kept_to(sums: Floats, sigma: float) -> bool:
    """True if units hardly compare some rows, by sums of `RowConcurrences` beyond their noise."""
    roots = np.sqrt(np.maximum(sums.sum(axis=1), sigma * math.sqrt(len(sums)) + LEAST_WEIGHT))
    values = np.linalg.eigvalsh((sums + sums.T) / 2 / np.multiply.outer(roots, roots))
    noise = sigma * math.sqrt(np.mean(roots**-4.0))
    # The largest eigenvalue, of the roots, is 1. Of the second one half a comparison is left.
    return bool(beyond_noise(values, noise)[-2] > 1 / 2)


def _shrunk(beyond: Floats, weights: Floats, sigma: float) -> Floats:
    """Concurrences `beyond` chance without what noise of deviation `sigma` could explain."""
    # They are nearly symmetric, and noise of means with the transpose has half the variance.
    values, axes = np.linalg.eigh((beyond + beyond.T) / 2)
    found = np.sign(values) * beyond_noise(np.abs(values), sigma)
    # Over roots of weights, an eigenvalue of 1 says that nobody compares rows along its axis. What
    # it lacks of 1 is taken to be its noise at least.
    roots = np.sqrt(weights)
    values, axes = np.linalg.eigh((axes * found) @ axes.T / np.multiply.outer(roots, roots))
    found = np.minimum(values, 1 - np.minimum(sigma * (1 / weights) @ axes**2, 1.0))
    return np.asarray((axes * found) @ axes.T * np.multiply.outer(roots, roots))


def solved(
    shown: Floats, effects: Floats, noise: Floats, sampling: Floats, prior_variance: float
) -> tuple[Floats, Floats]:
    """Posterior means and variances of effects b, if `effects` are ``shown @ b`` plus errors.

    `noise` and `sampling` (n_rows,) are variances, the latter by entries of rows.
    """
    noise, sampling = (np.minimum(v, LARGEST_ERROR * prior_variance) for v in (noise, sampling))
    # Entries that show little of an effect vary as little.
    values, axes = np.linalg.eigh((shown * sampling + (shown * sampling).T) / 2)
    errors = np.diag(noise) + (axes * np.maximum(values, 0.0)) @ axes.T
    errors += LEAST_ERROR * prior_variance * np.eye(len(errors))
    gain = np.linalg.solve(prior_variance * shown @ shown.T + errors, prior_variance * shown).T
    return gain @ effects, prior_variance * (1 - np.einsum("ij,ji->i", gain, shown))
