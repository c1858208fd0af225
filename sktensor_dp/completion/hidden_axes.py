"""Axes of effects that units hardly compare, by how much of them noise leaves possible."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from sktensor_dp.tensor.arrays import Floats

# Number of equally likely laws of how much units compare of hidden axes.
N_LAWS = 8
# Most deviations of noise by which a part that is compared may be measured below 0.
MOST_BELOW = 5.0
# Least concurrences beyond chance, over those by it: above rounding errors.
LEAST_EXCESS = 1e-9


@dataclass(frozen=True, eq=False)
class HiddenAxes:
    """The k axes of effects along which units compare rows less than by chance."""

    directions: Floats  # (n_rows, k): effects at coordinate 1 on an axis
    coefficients: Floats  # (n_rows, k): products with effects are their coordinates
    compared: Floats  # (k,): part of a coordinate that residuals show, as far as noise tells
    noise: Floats  # (k,): deviations of `compared`
    # (n_rows,): noise between two rows has the root of the product of their numbers as deviation
    noise_of_row: Floats
    beyond: Floats  # (n_rows, n_rows): concurrences beyond chance along other axes

    @classmethod
    def of_excess(
        cls, values: Floats, axes: Floats, weights: Floats, sigma: float
    ) -> "HiddenAxes | None":
        """Axes on which concurrences beyond chance are positive; None if there are none.

        `values` and `axes` (n_rows, n_rows) are eigenvalues and eigenvectors of these concurrences
        over roots of `weights`; noise of a sum has deviation `sigma`.
        """
        hidden, roots = values > LEAST_EXCESS, np.sqrt(weights)[:, None]
        if not hidden.any():
            return None
        directions, coefficients = axes / roots, axes * roots
        # Along an axis x units compare the sum of S_rs (x_r - x_s)^2 / 2, S_rs the released sums:
        # its variance by noise of deviation 1.
        first, second, third, fourth = (
            np.sum(directions[:, hidden] ** k, axis=0) for k in range(1, 5)
        )
        variances = (len(roots) * fourth - 4 * first * third + 3 * second**2) / 2
        others = np.where(hidden, 0.0, values)
        return cls(
            directions[:, hidden], coefficients[:, hidden], compared=1 - values[hidden],
            noise=sigma * np.sqrt(variances),
            noise_of_row=sigma / math.sqrt(2) * (1 - weights / weights.sum()) / weights,
            beyond=(directions * others) @ coefficients.T,
        )  # fmt: skip

    def laws(self) -> list[Floats]:
        """Concurrences (n_rows, n_rows) beyond chance by each law."""
        # What is compared has a normal posterior, cut off at 0: nobody compares less than nothing.
        # Laws are its quantiles, the same for all axes.
        below = ndtr(np.maximum(self.compared / self.noise, -MOST_BELOW))
        parts = [
            self.compared - self.noise * ndtri(below * (k + 0.5) / N_LAWS) for k in range(N_LAWS)
        ]
        return [
            self.beyond + (self.directions * (1 - part)) @ self.coefficients.T for part in parts
        ]

    def mixed(self, errors: Floats, part: Floats) -> Floats:
        """Covariances (n_rows, n_rows) of what noise adds to hidden axes by `errors` of effects.

        `part` (n_rows,) of each row's entries are of units with several rows.
        """
        own = self.noise_of_row * part
        pairs = np.multiply.outer(own, own) * np.subtract.outer(errors, errors) ** 2
        covariances = np.diag(pairs.sum(axis=1)) - pairs
        of_axes = self.coefficients.T @ covariances @ self.coefficients
        # How much of an axis itself is compared differs by law.
        own_part = (self.noise * (errors @ self.coefficients)) ** 2
        of_axes -= np.diag(np.minimum(own_part, of_axes.diagonal()))
        return np.asarray(self.directions @ of_axes @ self.directions.T)


def mixture(
    means: Sequence[Floats], covariances: Sequence[Floats], logs: Sequence[float]
) -> tuple[Floats, Floats]:
    """Mean and covariance of posteriors by laws, whose log likelihoods are `logs`."""
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    mean = weights @ np.stack(means)
    apart = np.stack(means) - mean
    return mean, np.tensordot(weights, np.stack(covariances), 1) + (weights * apart.T) @ apart


def variances_of_differences(covariances: Floats) -> Floats:
    """Variances (n_rows,): those of any two rows add up to that of their difference, or to more."""
    own = covariances.diagonal()
    return np.maximum(own, np.max(own[:, None] - covariances, axis=1))
