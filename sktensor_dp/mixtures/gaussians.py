"""Gaussians of a mixture: whitened rows, densities, responsibilities, samples, and merging."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from sktensor_dp.mixtures.nonnormal import NonnormalColumns
from sktensor_dp.tensor.arrays import Floats, Integers, as_generator, product_by_rows, spans

# Least weight, so that its logarithm is finite.
LEAST_WEIGHT = 1e-12
# Number of points that stand for a mixture. Their log-density errs by the square of errors in
# parameters, about 1 / POINTS for each parameter; half as many change that of a fit by at most a
# hundredth of its distance from the law.
POINTS = 4000
# Cap on the log-density that a point loses by leaving a Gaussian out: a wide one that holds the
# tails of others is then left out before these are.
MOST_LOSS = 4.0


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Weights, means and covariances of a mixture of k Gaussians in d dimensions.

    Given all normal columns and the nonnormal ones before it, a nonnormal column has the variance
    that `nonnormal` holds for it.
    """

    weights: Floats  # (k,), adding up to 1
    means: Floats  # (k, d)
    covariances: Floats  # (k, d, d), positive definite
    nonnormal: NonnormalColumns | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.nonnormal is None:
            return
        places, means = self.nonnormal.places, self.means.copy()
        means[:, places] = self.nonnormal.within(means[:, places])
        object.__setattr__(self, "means", means)
        # Nonnormal columns are last in roots. Scale theirs, which hold the deviation of a column
        # given those before and its effects, to the deviations that `nonnormal` holds.
        roots, last = self.roots, np.arange(-len(places), 0)
        spreads = np.sqrt(self.nonnormal.variances)
        roots[:, :, last] *= (spreads / roots[:, places, last])[:, None]
        object.__setattr__(self, "covariances", roots @ roots.swapaxes(1, 2))

    @property
    def roots(self) -> Floats:
        """Roots R (k, d, d) of covariances RR', triangular if nonnormal columns were the last."""
        if self.nonnormal is None:
            return self.factors
        order = np.concatenate([self.nonnormal.others, self.nonnormal.places])
        factors = np.linalg.cholesky(self.covariances[:, order][:, :, order])
        return np.asarray(factors[:, np.argsort(order)])

    @property
    def covariances_of_rows(self) -> Floats:
        """Covariances (k, d, d) with the variances of nonnormal columns by their means."""
        if self.nonnormal is None:
            return self.covariances
        found, places = self.covariances.copy(), self.nonnormal.places
        found[:, places, places] /= np.square(self.stretches[:, places])
        return found

    @cached_property
    def slopes(self) -> Floats:
        """Slopes (k, d) of log-densities in whitened rows, beyond those of Gaussians."""
        found = self._of_nonnormal("slopes", 0.0)
        return np.asarray(np.einsum("jab,ja->jb", self.factors, found))

    @cached_property
    def offsets(self) -> Floats:
        """Log-density (k, d) that each column adds to that of a Gaussian at its mean."""
        return self._of_nonnormal("offsets", 0.0)

    @cached_property
    def stretches(self) -> Floats:
        """Fitted over true deviations (k, d) of columns, which differ for nonnormal ones."""
        return self._of_nonnormal("stretches", 1.0)

    def _of_nonnormal(self, name: str, other: float) -> Floats:
        """Numbers (k, d) by the method of `nonnormal` of this name; `other` in other columns."""
        found = np.full_like(self.means, other)
        if self.nonnormal is not None:
            places = self.nonnormal.places
            found[:, places] = getattr(self.nonnormal, name)(self.means[:, places])
        return found

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
        log_weights = np.log(np.maximum(self.weights, LEAST_WEIGHT))
        return log_weights - (self.log_volumes + normal) / 2 + self.offsets.sum(axis=1)

    def log_joint(self, X: Any, observed: NDArray[np.bool_] | None = None) -> Floats:
        """Log of weight times density of the `observed` part of each row of `X`; (n, k).

        Cells that are not observed are 0 in `X`.
        """
        found = np.empty((X.shape[0], len(self.weights)))
        if observed is not None:
            for pattern, places in patterns_of(observed):
                part = observed_part(self.factors, self.log_scales, pattern, self.offsets)
                found[places] = self._log_joint(X[places], part.whiteners, part.log_scales)
            return found
        for rows in spans(X.shape[0], self.means.size):
            found[rows] = self._log_joint(X[rows], self.whiteners, self.log_scales)
        return found

    def _log_joint(self, X: Any, whiteners: Floats, log_scales: Floats) -> Floats:
        """Log of weight times density of each row of `X` and Gaussian; (n, k)."""
        whitened = whitened_rows(X, self.means, whiteners)
        return log_scales + log_odds(whitened, self.slopes)

    def sample(self, chosen: Integers, rng: np.random.Generator) -> Floats:
        """Draw a point of each Gaussian in `chosen`, an array of indices."""
        return self.placed(chosen, rng.standard_normal((len(chosen), self.means.shape[1])))

    def placed(self, chosen: Integers, normal: Floats) -> Floats:
        """Points (n, d) of the Gaussians `chosen` (n,) at standard normal points (n, d)."""
        return self._placed(self.means[chosen], self.roots[chosen], normal)

    def at(self, normal: Floats) -> Floats:
        """Points (k, n, d) of each Gaussian at the same standard normal points (n, d).

        Coordinates of these are for columns given those before, nonnormal ones last.
        """
        return self._placed(self.means[:, None], self.roots[:, None], normal[None])

    def _placed(self, means: Floats, roots: Floats, normal: Floats) -> Floats:
        """Points (..., d) at standard normal ones, with two values in nonnormal columns."""
        X = means + (roots @ normal[..., None])[..., 0]
        if self.nonnormal is None:
            return np.asarray(X)
        places = self.nonnormal.places
        for i, column in enumerate(places):
            z, root = normal[..., i - len(places)], roots[..., i - len(places)]
            spread = root[..., column]
            mean = X[..., column] - spread * z
            drawn = self.nonnormal.drawn(i, mean, ndtr(z))
            # Later columns go with what was drawn.
            X += root * ((drawn - mean) / spread - z)[..., None]
            X[..., column] = drawn
        return np.asarray(X)

    def points(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Random points (n, d) and weights (n,) with exactly the Gaussians' means and covariances.

        Each Gaussian has the same standard normal points, in pairs about 0. With nonnormal columns,
        whose values are drawn, means and covariances are near: points are spread evenly.
        """
        k, d = self.means.shape
        normal = rng.standard_normal((max(POINTS // (2 * k), 2 * d), d))
        if self.nonnormal is not None:
            normal = ndtri(qmc.Sobol(d, seed=rng).random_base2(len(normal).bit_length()))
        factor = np.linalg.cholesky(normal.T @ normal / len(normal))
        normal = solve_triangular(factor, normal.T, lower=True).T
        normal = np.concatenate([normal, -normal])
        return self.at(normal).reshape(-1, d), np.repeat(self.weights / len(normal), len(normal))

    def filled(self, X: Floats, observed: NDArray[np.bool_]) -> Floats:
        """Rows `X` with conditional means in cells that are not `observed`; for one Gaussian."""
        found = np.empty_like(X)
        for pattern, places in patterns_of(observed):
            # A row is m + F y: fill in the conditional mean of y.
            part = observed_part(self.factors, self.log_scales, pattern, self.offsets)
            whitener = part.whiteners[0]
            found[places] = (X[places] - self.means) @ (self.factors[0] @ whitener).T + self.means
        return found

    def in_order(self, order: Integers) -> "Gaussians":
        """Gaussians of the indices `order`, with weights adding up to 1."""
        weights, means = self.weights[order], self.means[order]
        weights, covariances = weights / weights.sum(), self.covariances[order]
        return Gaussians(weights, means, covariances, nonnormal=self.nonnormal)


def whitened_rows(X: Any, means: Floats, whiteners: Floats) -> Floats:
    """``W_j (x - m_j)`` for each row x and Gaussian j; (n, k, q). No digit depends on other rows.

    `whiteners` (k, q, d) have one matrix if the Gaussians share it.
    """
    stacked = whiteners.reshape(-1, whiteners.shape[2])
    products = product_by_rows(X, np.ascontiguousarray(stacked.T))
    products = products.reshape(len(products), len(whiteners), whiteners.shape[1])
    return np.asarray(products - (whiteners @ means[:, :, None])[:, :, 0])


def log_odds(whitened: Floats, slopes: Floats) -> Floats:
    """Log-density (n, k) of whitened rows less that at the mean, given `slopes` (k, q)."""
    squares = np.einsum("nkq,nkq->nk", whitened, whitened)
    return np.asarray(np.einsum("nkq,kq->nk", whitened, slopes) - squares / 2)


def patterns_of(
    observed: NDArray[np.bool_],
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.intp]]]:
    """Yield each pattern of observed columns, with the rows that have it."""
    patterns, places = np.unique(observed, axis=0, return_inverse=True)
    order = np.argsort(places.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(places.ravel(), minlength=len(patterns)))
    yield from zip(patterns, np.split(order, ends[:-1]), strict=True)


@dataclass(frozen=True, eq=False)
class ObservedPart:
    """Gaussians of observed columns, and what these show of the whitened complete row y."""

    whiteners: Floats  # (k, d, d): from a row to the conditional mean of y; 0 for missing columns
    log_scales: Floats  # (k,): log of weight times density of observed columns at the mean
    projectors: Floats  # (k, d, d): on the directions of y that observed columns show


def observed_part(
    factors: Floats, log_scales: Floats, pattern: NDArray[np.bool_], offsets: Floats
) -> ObservedPart:
    """Part of Gaussians that a `pattern` (d,) of observed columns shows.

    `offsets` (k, d) are in `log_scales`, and of missing columns they are left out.
    """
    # Observed columns are x = m + F y with standard normal y and some rows F of a factor. Their
    # covariance is F F', and the mean of y given x is F' (F F')^-1 (x - m).
    rows = factors[:, pattern]
    covariances = rows @ rows.swapaxes(1, 2)
    whiteners = np.zeros_like(factors)
    whiteners[:, :, pattern] = np.linalg.solve(covariances, rows).swapaxes(1, 2)
    # In the log-density at the mean leave out the volume and the 2 pi of missing columns.
    volumes = 2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    missing = volumes - np.linalg.slogdet(covariances)[1]
    missing = missing + (~pattern).sum() * math.log(2 * math.pi)
    log_scales = log_scales + missing / 2 - offsets[:, ~pattern].sum(axis=1)
    return ObservedPart(whiteners, log_scales, whiteners @ factors)


def responsibilities(log_joint: Floats) -> Floats:
    """Responsibilities (n, k), rows adding up to 1, given log joint densities."""
    # Column by column: reductions along short rows are slow.
    result = log_joint - reduce(np.maximum, log_joint.T)[:, None]
    np.exp(result, out=result)
    result /= sum(result.T)[:, None]
    return result


def log_density(log_joint: Floats) -> Floats:
    """Log-density (n,) of rows of a mixture, given log joint densities."""
    largest = log_joint.max(axis=1)
    return np.asarray(largest + np.log(np.exp(log_joint - largest[:, None]).sum(axis=1)))


@dataclass(frozen=True, eq=False)
class MergedGaussians(Gaussians):
    """Mixture of k Gaussians, each merged from some of the K of another mixture."""

    members: Floats  # (k, K): 1 for those that each was merged from, else 0


@dataclass(frozen=True, eq=False)
class Merged:
    """Gaussian merged from one or several of K."""

    members: Floats  # (K,): 1 for these, else 0
    weight: float
    mean: Floats
    covariance: Floats
    log_volume: float

    def with_other(self, other: "Merged") -> "Merged":
        """Gaussian with the weight, mean and covariance of two together."""
        weight, difference = self.weight + other.weight, self.mean - other.mean
        within = (self.weight * self.covariance + other.weight * other.covariance) / weight
        between = self.weight * other.weight / weight**2 * np.outer(difference, difference)
        covariance = within + between
        mean = (self.weight * self.mean + other.weight * other.mean) / weight
        log_volume = float(np.linalg.slogdet(covariance)[1])
        return Merged(self.members + other.members, weight, mean, covariance, log_volume)


def fitted_to(points: Floats, point_weights: Floats) -> Gaussians:
    """Mixture of the moments of points, by their `point_weights` (n, k) in each Gaussian."""
    weights = np.maximum(point_weights.sum(axis=0), LEAST_WEIGHT)
    point_weights = point_weights / weights
    means = point_weights.T @ points
    centred = (points - mean for mean in means)
    each = zip(point_weights.T[:, :, None], centred, strict=True)
    covariances = np.array([(weight * rows).T @ rows for weight, rows in each])
    return Gaussians(weights / weights.sum(), means, covariances)


def merged_levels(model: Gaussians, most: int) -> list[MergedGaussians]:
    """Mixtures of 1, 2, ... and at most `most` Gaussians by greedy merging (Runnalls, 2007)."""
    members = np.eye(len(model.weights))
    alone = map(Merged, members, model.weights, model.means, model.covariances, model.log_volumes)
    parts = dict(enumerate(alone))

    def mixture() -> MergedGaussians:
        each = ((one.weight, one.mean, one.covariance, one.members) for one in parts.values())
        return MergedGaussians(*map(np.array, zip(*each, strict=True)), nonnormal=model.nonnormal)

    def loss(i: int, j: int) -> float:  # bound on the log-likelihood that merging loses
        one, other = parts[i], parts[j]
        both = one.with_other(other)
        before = one.weight * one.log_volume + other.weight * other.log_volume
        return (both.weight * both.log_volume - before) / 2

    # Of all pairs store losses alone: their covariances would take most of a fit's memory.
    losses = {(i, j): loss(i, j) for i in parts for j in range(i)}
    levels = [mixture()] if len(parts) <= most else []
    # Each of n - 1 merges takes two parts away and adds one, under the next number.
    for new in range(len(parts), 2 * len(parts) - 1):
        i, j = min(losses, key=losses.__getitem__)
        losses = {pair: lost for pair, lost in losses.items() if not {i, j} & set(pair)}
        merged = parts.pop(i).with_other(parts.pop(j))
        parts[new] = merged
        losses |= {(new, k): loss(new, k) for k in parts if k != new}
        if len(parts) <= most:
            levels.append(mixture())
    return levels[::-1]


def without_spare(model: Gaussians, most: int) -> MergedGaussians:
    """Mixture of `most` Gaussians: one by one others are merged or left out, as loses least."""
    kept = MergedGaussians(
        model.weights, model.means, model.covariances, np.eye(len(model.weights)),
        nonnormal=model.nonnormal,
    )  # fmt: skip
    points, weights = model.points(as_generator(0))
    while (k := len(kept.weights)) > most:
        merged, joint = merged_levels(kept, k - 1)[-1], kept.log_joint(points)
        # Bound on the loss, as in `merged_levels`.
        by_merging = merged.weights @ merged.log_volumes - kept.weights @ kept.log_volumes
        density = log_density(joint)
        remaining = [np.delete(np.arange(k), place) for place in range(k)]
        losses = [
            weights @ np.minimum(density - log_density(joint[:, i]), MOST_LOSS) for i in remaining
        ]
        fewer: Gaussians = merged
        members = merged.members @ kept.members
        if min(losses) < by_merging / 2:
            best = remaining[int(np.argmin(losses))]
            fewer, members = kept.in_order(best), kept.members[best]
        kept = MergedGaussians(
            fewer.weights, fewer.means, fewer.covariances, members, nonnormal=model.nonnormal
        )
    return kept
