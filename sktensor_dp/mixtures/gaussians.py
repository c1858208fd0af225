"""Gaussians of a mixture: whitened rows, densities, responsibilities, samples, and merging."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from sktensor_dp.tensor.arrays import Floats, row_by_row, spans

# Of a weight, so that its logarithm is finite.
LEAST_WEIGHT = 1e-12


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Weights, means and covariances of a mixture of k Gaussians in d dimensions."""

    weights: Floats  # (k,), adding up to 1
    means: Floats  # (k, d)
    covariances: Floats  # (k, d, d), positive definite

    @cached_property
    def factors(self) -> Floats:
        """Lower Cholesky factors of the covariances; (k, d, d)."""
        return np.asarray(np.linalg.cholesky(self.covariances), np.float64)

    @cached_property
    def whiteners(self) -> Floats:
        """Inverse factors, which map centred rows of a Gaussian to standard normal ones."""
        identity = np.eye(self.means.shape[1])
        return np.array([solve_triangular(one, identity, lower=True) for one in self.factors])

    @cached_property
    def log_volumes(self) -> Floats:
        """Logarithm (k,) of the determinants of the covariances."""
        return 2 * np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(axis=1)

    @cached_property
    def log_scales(self) -> Floats:
        """Logarithm (k,) of weight times density at the mean."""
        normal = self.means.shape[1] * math.log(2 * math.pi)
        return np.log(np.maximum(self.weights, LEAST_WEIGHT)) - (self.log_volumes + normal) / 2

    def log_joint(self, X: Any) -> Floats:
        """Log of weight times density of each row of `X` and Gaussian; (n, k)."""
        found = np.empty((X.shape[0], len(self.weights)))
        for rows in spans(X.shape[0], self.means.size):
            whitened = whitened_rows(X[rows], self.means, self.whiteners)
            found[rows] = self.log_scales - np.einsum("nkd,nkd->nk", whitened, whitened) / 2
        return found

    def sample(self, chosen: Any, rng: Any) -> Floats:
        """Draw a point of each Gaussian in `chosen`, an array of indices."""
        normal = rng.standard_normal((len(chosen), self.means.shape[1]))
        return np.asarray(
            self.means[chosen] + np.einsum("nij,nj->ni", self.factors[chosen], normal)
        )

    def in_order(self, order: Any) -> "Gaussians":
        """Gaussians of the indices `order`, with weights adding up to 1."""
        weights = self.weights[order]
        return Gaussians(weights / weights.sum(), self.means[order], self.covariances[order])


def whitened_rows(X: Any, means: Floats, whiteners: Floats) -> Floats:
    """``W_j (x - m_j)`` for each row x and Gaussian j, of shape (n, k, q); digits are the row's."""
    # One whitener serves all Gaussians where they share it.
    stacked = whiteners.reshape(-1, whiteners.shape[2])
    seen = row_by_row(X, np.ascontiguousarray(stacked.T))
    seen = seen.reshape(len(seen), len(whiteners), whiteners.shape[1])
    return np.asarray(seen - (whiteners @ means[:, :, None])[:, :, 0])


def shares_of(log_joint: Floats) -> Floats:
    """Responsibilities (n, k), rows adding up to 1, given log joint densities."""
    shares = log_joint - log_joint.max(axis=1, keepdims=True)
    np.exp(shares, out=shares)
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def log_density(log_joint: Floats) -> Floats:
    """Log-density (n,) of rows of a mixture, given log joint densities."""
    largest = log_joint.max(axis=1)
    return np.asarray(largest + np.log(np.exp(log_joint - largest[:, None]).sum(axis=1)))


@dataclass(frozen=True, eq=False)
class Merge:
    """Gaussian that takes the place of two, and the bound on the log-likelihood lost a row."""

    loss: float
    parents: tuple[int, int]
    weight: float
    mean: Floats
    covariance: Floats
    log_volume: float


def merged_levels(model: Gaussians) -> dict[int, tuple[Gaussians, list[list[int]]]]:
    """Mixtures of k, k - 1, ..., 1 Gaussians by greedy merging (Runnalls, 2007), with members."""
    weights, means, covariances = map(list, (model.weights, model.means, model.covariances))
    log_volumes, members = list(model.log_volumes), [[j] for j in range(len(weights))]

    def merge(i: int, j: int) -> Merge:
        weight = weights[i] + weights[j]
        apart = means[i] - means[j]
        covariance = (weights[i] * covariances[i] + weights[j] * covariances[j]) / weight
        covariance = covariance + weights[i] * weights[j] / weight**2 * np.outer(apart, apart)
        log_volume = float(np.linalg.slogdet(covariance)[1])
        parts = weights[i] * log_volumes[i] + weights[j] * log_volumes[j]
        mean = (weights[i] * means[i] + weights[j] * means[j]) / weight
        return Merge(
            (weight * log_volume - parts) / 2, (i, j), weight, mean, covariance, log_volume
        )

    alive = list(range(len(weights)))
    pairs = {(i, j): merge(i, j) for i in alive for j in range(i)}
    levels = {len(alive): (model, members.copy())}
    while len(alive) > 1:
        best = min(pairs.values(), key=lambda pair: pair.loss)
        weights.append(best.weight)
        means.append(best.mean)
        covariances.append(best.covariance)
        log_volumes.append(best.log_volume)
        members.append(members[best.parents[0]] + members[best.parents[1]])
        new = len(weights) - 1
        alive = [j for j in alive if j not in best.parents]
        pairs = {of: pair for of, pair in pairs.items() if not set(of) & set(best.parents)}
        pairs |= {(new, j): merge(new, j) for j in alive}
        alive.append(new)
        parts = (np.array([of[j] for j in alive]) for of in (weights, means, covariances))
        levels[len(alive)] = (Gaussians(*parts), [members[j] for j in alive])
    return levels
