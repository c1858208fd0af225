"""Moves of a mixture's parameters by skewed groups, by EM steps on points with log-normal tails."""

from typing import NamedTuple

import numpy as np

from sktensor_dp.mixtures.clipped_rows import clipped_rows
from sktensor_dp.mixtures.clipping import Clipping
from sktensor_dp.mixtures.gaussians import Gaussians, whitened_rows
from sktensor_dp.mixtures.m_step import WhitenedStatistics, gaussians_after_step, moments_of
from sktensor_dp.tensor.arrays import Floats

# Number of points, and the most EM steps on them.
POINTS, MOST_STEPS = 2000, 20
# Number of rows that a step takes points for: they have no sampling error.
NO_CHANCE = 10**9
# Deviation of logs of the simulated tails: such a law has a skewness of 1.75.
SIMULATED = 0.5


class SkewBias(NamedTuple):
    """Moves if all groups have the simulated tail in one column, for each column, and shifts."""

    moves: Floats  # (d, k, 1 + d): largest ones of weights and means, by tails in each column
    shifts: Floats  # (d, k): of rows clipped early, in the column with tails

    def moves_by(self, squares: Floats) -> Floats:
        """Root mean squared moves (k, 1 + d) by tails in all columns.

        `squares` (d,) are root mean squares of squared deviations of logs: moves by a tail are
        in proportion to its squared deviation of logs, and `moves` are those of `SIMULATED`.
        """
        ratios = squares / SIMULATED**2
        return np.asarray(np.sqrt(np.tensordot(ratios**2, self.moves**2, axes=1)))


def simulated_bias(
    model: Gaussians, radius: float, signs: Floats, clip: Clipping, early: Clipping,
    n_steps: int, covariance_type: str,
) -> SkewBias:  # fmt: skip
    """Simulate EM steps, clipped by `clip`, on groups with tails in one whitened column at a time.

    Tails have the `signs` (d,); shifts are of rows clipped by `early`.
    """
    # Moves are those beyond moves on points without tails, the largest after any step. On points of
    # `model` with tails, steps lead away from it. On points of the law `_before` it, with tails,
    # steps lead about to `model`: groups of that law are farther apart, and trade fewer rows. Take
    # the larger moves of both.
    k, d = model.means.shape
    half = np.random.default_rng(0).standard_normal((max(POINTS // (2 * k), 2 * d), d))
    normal = _standardised(np.concatenate([half, -half]))

    def path(law: Gaussians, whitened: Floats) -> tuple[list[Gaussians], Floats]:
        # Mixtures by steps from `law` on its points, and shifts (k, d) that the last one shows.
        points = law.at(whitened).reshape(-1, d)
        point_weights = np.repeat(law.weights / len(whitened), len(whitened))
        found = [law]
        for _ in range(min(n_steps, MOST_STEPS)):
            step = _statistics(found[-1], points, point_weights, clip, covariance_type)
            moments = moments_of(found[-1], step)
            found.append(
                gaussians_after_step(found[-1], moments, step, radius, NO_CHANCE, filled=0.0)
            )
        shifts = _statistics(found[-1], points, point_weights, early, "spherical").shifts
        return found, shifts / (early.shift_response * found[-1].weights[:, None])

    without, shifts = path(model, normal)
    moves, seen = np.zeros((d, k, 1 + d)), np.zeros((d, k))
    columns = np.arange(d) if model.nonnormal is None else model.nonnormal.others
    # `normal` has columns in the order of `others`, nonnormal ones last.
    for place, column in enumerate(columns):
        whitened, sign = normal.copy(), signs[column]
        tail = sign * np.exp(SIMULATED * sign * normal[:, place])
        whitened[:, place] = _standardised(tail[:, None])[:, 0]
        away, _ = path(model, whitened)
        law = _before(model, without[-1], away[-1])
        back, shifts_with_tail = path(law, whitened)
        made = [_moves_along(away), _moves_along(back)]
        moves[column] = np.abs(made - _moves_along(without)).max(axis=(0, 1))
        seen[column] = (shifts_with_tail - shifts)[:, column]
    return SkewBias(moves, seen)


def _moves_along(path: list[Gaussians]) -> Floats:
    """Moves (n_steps + 1, k, 1 + d) of weights and means from the first mixture of a path."""
    found = np.array([np.column_stack([one.weights, one.means]) for one in path])
    return found - found[0]


def _before(model: Gaussians, without: Gaussians, moved: Gaussians) -> Gaussians:
    """Law from which steps on points with tails lead about to `model`.

    From `model` itself they lead to `moved`, and steps on points without tails to `without`. The
    law differs from `model` as these two differ, in the other direction.
    """
    weights = model.weights * without.weights / moved.weights
    ratios = without.whiteners @ moved.covariances @ without.whiteners.swapaxes(1, 2)
    values, vectors = np.linalg.eigh(ratios)
    factors = model.factors @ (vectors / np.sqrt(np.clip(values, 0.25, 4))[:, None])
    covariances = factors @ factors.swapaxes(1, 2)
    weights, means = weights / weights.sum(), model.means + without.means - moved.means
    return Gaussians(weights, means, covariances, nonnormal=model.nonnormal)


def _standardised(columns: Floats) -> Floats:
    """Columns with means of 0 and an identity as covariance."""
    centred = columns - columns.mean(axis=0)
    factor = np.linalg.cholesky(centred.T @ centred / len(centred))
    return np.asarray(np.linalg.solve(factor, centred.T).T)


def _statistics(
    model: Gaussians, points: Floats, point_weights: Floats, clip: Clipping, covariance_type: str
) -> WhitenedStatistics:
    """Statistics of an EM step on points, without noise, as `MixtureStatistics` has them."""
    d, whitened = clip.width, whitened_rows(points, model.means, model.whiteners)
    rows = clipped_rows(whitened, model.log_scales, clip.limit, model.slopes)
    sums = rows.sums(clip.far / clip.limit, point_weights)
    weights, shifts, products = sums[:, 0], sums[:, 1 : 1 + d], sums[:, 1 + d :].reshape(-1, d, d)
    sizes = np.trace(products, axis1=1, axis2=2) - clip.mean * d * weights
    shapes = products - np.trace(products, axis1=1, axis2=2)[:, None, None] * np.eye(d) / d
    if covariance_type == "spherical":
        shapes = np.zeros_like(shapes)
    if covariance_type == "diag":
        shapes = shapes * np.eye(d)
    if covariance_type == "tied":
        sizes, shapes = sizes.sum(keepdims=True), shapes.sum(axis=0, keepdims=True)
    return WhitenedStatistics(
        weights, shifts, sizes, shapes, n_shape=1, sigma=0.0,
        scales=clip.scales(1), clipping=clip,
    )  # fmt: skip
