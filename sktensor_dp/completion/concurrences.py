"""Concurrences of rows: how units compare rows, and effects by what such comparisons show."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sktensor_dp.completion.hidden_axes import HiddenAxes, mixture
from sktensor_dp.completion.row_parts import concurrences_by_parts
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.largest_of_noise import beyond_noise, edge_of_noise

# Least sum of weights, to avoid a division by 0.
LEAST_WEIGHT = 1e-130
# Least and largest error variance, relative to the prior variance: above rounding errors, and as of
# rows without entries.
LEAST_ERROR, LARGEST_ERROR = 1e-9, 1e6
# Largest edge of noise, over a mean weight. Up to it, axes that nobody compares are beyond noise by
# three deviations if there are 12 rows or more.
LARGEST_EDGE = 0.6
# Number of prior variances of effects along an axis, which are averaged over.
N_SCALES = 9


@dataclass(frozen=True, eq=False)
class Concurrences:
    """Concurrences of the rows of a mode beyond those by chance, from released sums."""

    # Residuals are about the mean of a unit's entries in other rows: of errors e of effects they
    # show (I - J) e, J the parts of other rows in these means, which for rows of shares s by chance
    # is 1 s'. As effects have mean 0, J - 1 s' does for J.

    excess: Floats  # (n_rows, n_rows): J - 1 s'; near eigenvalues of 1 units compare nothing
    variances: Floats  # (n_rows,): of noise of a row of `excess`, were it not averaged with columns
    hidden: HiddenAxes | None = None  # None if there are none, or without noise
    is_known: bool = True  # False if noise may hide axes that nobody compares, as notes then say

    @classmethod
    def of_sums(cls, sums: Floats, sigma: float, weights: Floats) -> "Concurrences":
        """Estimate from sums of `RowConcurrences`, with noise of deviation `sigma`.

        `weights` (n_rows,) are those that other releases give rows, as sums have far more noise.
        """
        shares = weights / weights.sum()
        parts = (1 - shares) / weights
        beyond = (1 - shares)[:, None] * sums - np.multiply.outer(weights, shares)
        np.fill_diagonal(beyond, 0.0)
        if sigma == 0:
            return cls(beyond / weights[:, None], np.zeros(len(sums)))
        # A mean with the transpose has half the variance of noise, and concurrences beyond chance
        # are nearly symmetric.
        found, left = concurrences_by_parts((beyond + beyond.T) / 2, weights, sigma)
        # Over roots of weights, an eigenvalue of 1 says that nobody compares rows along its axis.
        # Lower those that are nearer to 1 than their noise.
        roots = np.sqrt(weights)
        values, axes = np.linalg.eigh(found / np.multiply.outer(roots, roots))
        hidden = HiddenAxes.of_excess(values, axes, weights, sigma)
        values = np.minimum(values, 1 - np.minimum(sigma * (1 / weights) @ axes**2, 1.0))
        excess = (axes * values) @ axes.T * np.multiply.outer(1 / roots, roots)
        is_known = stand_out(float(weights.sum()), len(sums), sigma)
        return cls(excess, left * (sigma * parts) ** 2, hidden, is_known)

    def shown(self, part: Floats) -> Floats:
        """Matrix (n_rows, n_rows): its product with errors of effects is what residuals show.

        The `part` (n_rows,) of a row's entries is of units with several rows; other entries show
        the row's own error.
        """
        return _shown(self.excess, part)


def _shown(excess: Floats, part: Floats) -> Floats:
    """Matrix of `Concurrences.shown` for a given `excess`."""
    return np.eye(len(part)) - part[:, None] * excess


def stand_out(total: float, n_rows: int, sigma: float, largest: float = LARGEST_EDGE) -> bool:
    """True if axes that nobody compares would stand out of noise in sums of `RowConcurrences`.

    The sums have this `total`, and noise of deviation `sigma`, whose edge is less than `largest`
    times the mean weight of a row.
    """
    return bool(edge_of_noise(sigma, n_rows) < largest * total / n_rows)


def are_kept_to(sums: Floats, sigma: float) -> bool:
    """True if units hardly compare some rows, by sums of `RowConcurrences` beyond their noise."""
    roots = np.sqrt(np.maximum(sums.sum(axis=1), sigma * math.sqrt(len(sums)) + LEAST_WEIGHT))
    values = np.linalg.eigvalsh((sums + sums.T) / 2 / np.multiply.outer(roots, roots))
    noise = sigma * math.sqrt(np.mean(roots**-4.0))
    # The largest eigenvalue is about 1, with the roots as its vector. Along the axis of the second,
    # v, units compare 1 - v of what they would by chance.
    return bool(beyond_noise(values, noise)[-2] > 1 / 2)


def solved(
    shown: Floats, effects: Floats, noise: Floats, sampling: Floats, least: float,
    largest: float = 0.0, mixed: float | Floats = 0.0,
) -> tuple[Floats, Floats, float]:  # fmt: skip
    """Posterior means and covariances of effects b, if `effects` are ``shown @ b`` plus errors.

    `noise` and `sampling` (n_rows,) are variances, the latter by entries of rows; `mixed` are other
    covariances of errors. Along each axis of independent errors, effects have a prior variance
    between `least` and a most, log-uniform: ``largest / n_rows / max(axis ** 2)``, so that no row
    of the axis varies by more than `largest / n_rows`, and `least` at least. The last value is the
    log likelihood.
    """
    noise, sampling = (np.minimum(v, LARGEST_ERROR * least) for v in (noise, sampling))
    # Entries that show little of an effect vary as little.
    values, axes = np.linalg.eigh((shown * sampling + (shown * sampling).T) / 2)
    errors = np.diag(noise) + (axes * np.maximum(values, 0.0)) @ axes.T + mixed
    values, axes = np.linalg.eigh(errors)
    roots = np.sqrt(np.maximum(values, 0.0) + LEAST_ERROR * least)
    whitened = axes.T / roots[:, None]
    left, sizes, axes = np.linalg.svd(whitened @ shown)
    seen = left.T @ (whitened @ effects)
    most = np.maximum(largest / len(noise) / np.max(axes**2, axis=1), least)
    scales = np.geomspace(np.full_like(most, least), most, N_SCALES)
    variances = 1 + scales * sizes**2
    logs = -(seen**2 / variances + np.log(variances)) / 2
    # `logsumexp` would take as long as all else.
    top = logs.max(axis=0)
    weights = np.exp(logs - top)
    sums = weights.sum(axis=0)
    weights /= sums
    means = scales * sizes * seen / variances
    mean = np.sum(weights * means, axis=0)
    own = np.sum(weights * (scales / variances + (means - mean) ** 2), axis=0)
    log = float(np.sum(top + np.log(sums)) - np.log(roots).sum())
    return axes.T @ mean, (axes.T * own) @ axes, log


def solved_by_laws(
    hidden: HiddenAxes, part: Floats, seen: Callable[[Floats], Floats], noise: Floats,
    sampling: Floats, least: float, largest: float, *, start: Floats, middle: Floats | float,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Posterior means and covariances of effects, as by `solved`, over laws of `hidden` axes.

    ``seen(shown)`` are the effects that releases show if `shown` is the matrix of a law; `part` is
    that of `Concurrences.shown`. Releases were about `middle`; effects are `start` so far.
    """
    by_law = []
    for excess in hidden.laws():
        shown, at = _shown(excess, part), start
        # Errors of far effects mix into an axis. Solve with those of `start`, then again with those
        # of the mean of `start` and the solution.
        for _ in range(2):
            mixed = hidden.mixed(at - middle, part)
            found = solved(shown, seen(shown), noise, sampling, least, largest, mixed)
            at = (at + found[0]) / 2
        by_law.append(found)
    return mixture(*zip(*by_law, strict=True))
