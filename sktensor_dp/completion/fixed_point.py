"""Extrapolation of effects to their fixed point: a release about these would show the same."""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtri
from scipy.stats import qmc

from sktensor_dp.tensor.arrays import Floats

# Least variance of a position, relative to its mean square: far above rounding errors.
LEAST_RELATIVE_VARIANCE = 1e-12
# Least prior variance of a slope: above rounding errors.
LEAST_OF_SLOPE = 1e-6
# To avoid divisions by 0.
TINY = 1e-100
# Binary logarithm of the number of draws, and the least part of them that has to be possible: means
# of 64 independent draws would err by an eighth of a deviation.
LOG2_DRAWS, LEAST_POSSIBLE = 9, 1 / 8
# Prior variances of slopes, over the largest, which are averaged over.
SLOPE_SCALES = (1e-4, 1e-3, 1e-2, 0.1, 1.0)
# Number of prior variances of a fixed point, which are averaged over.
N_SCALES = 13


class Line(NamedTuple):
    """Line on which effects of a mode move, and positions on it by its releases."""

    direction: Floats  # (n_rows,): effects at position 1
    coefficients: Floats  # (n_rows,): the product with effects is their position
    shown: Floats  # (n_releases,): positions that releases show
    noise: Floats  # (n_releases,): variances of these
    sampling: float  # variance of a position by units' entries
    part: float  # part of squared moves of averages that noise does not explain
    # Prior variance of the slope of what releases show on positions that they are about.
    own_slope: float = math.inf

    @classmethod
    def along(
        cls, moves: Floats, shown: Floats, noise: Floats, counts: Floats, sampling: Floats
    ) -> "Line":
        """Line along which effects move most in `moves` (n, n_rows); 0 if all moves are 0.

        Moves are averages of the first 1, 2, ... n of the n + 1 releases less the mean of these
        averages, or one response to moves of another mode. The first release is clipped otherwise,
        which adds to its variance. `shown` (n_releases, n_rows) are the effects that releases show,
        and `noise` their variances. `counts` (n_rows,) weigh rows; `sampling` (n_rows,) are
        variances by units' entries.
        """
        shares = counts / counts.sum()
        centred = np.sqrt(shares) * (moves - (moves @ shares)[:, None])
        _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
        direction = directions[0] * (sizes[0] > 0)
        coefficients = direction * np.sqrt(shares)
        variances = noise @ coefficients**2
        variances[0] += (_doubt_of_first(shown, shares) @ coefficients) ** 2
        return cls(
            direction / np.sqrt(shares), coefficients, shown @ coefficients, variances,
            sampling=float(sampling @ coefficients**2),
            part=_part_beyond_noise(float(sizes[0]) ** 2, noise[1:] @ shares),
        )  # fmt: skip

    @classmethod
    def of_response(
        cls, moves: Floats, shown: Floats, noise: Floats, counts: Floats, sampling: Floats
    ) -> "Line":
        """Line along which effects respond to `moves` (n_releases,) of another mode on its line.

        The other arguments are those of :meth:`along`.
        """
        shares = counts / counts.sum()
        variances = noise @ shares
        variances[0] += shares @ _doubt_of_first(shown, shares) ** 2
        response = _response(moves, variances, shown, noise, shares)
        return cls.along(response[None], shown, noise, counts, sampling)


def _doubt_of_first(shown: Floats, shares: Floats) -> Floats:
    """Error (n_rows,) of the effects that the first release shows, as it is clipped otherwise.

    They are wrong by one factor for all rows, found by regression on the mean of later releases.
    """
    later = shown[1:].mean(axis=0)
    return shown[0] * (shares @ (shown[0] * later) / (shares @ later**2 + TINY) - 1)


def _response(
    moves: Floats, variances: Floats, shown: Floats, noise: Floats, shares: Floats
) -> Floats:
    """Shrunk covariances (n_rows,) of effects `shown` with `moves` (n_releases,) of another mode.

    Releases are weighted by the inverse of their `variances` (n_releases,).
    """
    weights = 1 / (variances + LEAST_RELATIVE_VARIANCE * variances.max() + TINY)
    weights *= (moves - np.average(moves, weights=weights)) / weights.sum()
    effects, noise_in_effects = weights @ shown, weights**2 @ noise
    effects = effects - shares @ effects
    square = max(float(shares @ (effects**2 - noise_in_effects)), 0.0)
    return np.asarray(effects * square / (square + noise_in_effects + TINY))


def _part_beyond_noise(square: float, noise: Floats) -> float:
    """Part of the `square` of moves that `noise` (n,) of releases does not explain.

    Moves are those of averages of the first 1, 2, ... n releases about the mean of these averages.
    """
    # Averages of the first i and the first j have a covariance of 1 / max(i, j).
    order = np.arange(len(noise)) + 1
    shared = 1 / np.maximum.outer(order, order)
    by_noise = (np.trace(shared) - len(order) * shared.mean()) * noise.mean()
    return max(1 - float(by_noise) / (square + TINY), 0.0)


def fixed_point(
    lines: Sequence[Line], positions: Sequence[Floats], least: float, largest: float
) -> tuple[Floats, Floats]:
    """Posterior means and variances (n,) of the fixed point: releases about it would show it.

    Each of n modes has a line; releases of a mode were about its `positions` (n_releases, n), on
    all lines. The prior variance of the fixed point is between `least` and `largest`.
    """
    # Residuals are about effects of other modes and the mean of a unit's other rows: releases about
    # positions a show c + J a, J = I - G with the normal equations G, scaled to a diagonal of 1. So
    # J is symmetric, with eigenvalues up to 1; they are taken to be above -1, as for one mode. The
    # regression of what releases show on what they were about (Anderson 1965) has a normal
    # posterior of c and J. From its draws follow those of the fixed point (I - J)^-1 c.
    n, (first, second) = len(lines), np.triu_indices(len(lines))
    slopes = [
        np.where(first == i, about[:, second], np.where(second == i, about[:, first], 0.0))
        for i, about in enumerate(positions)
    ]
    of_line = np.repeat(np.eye(n), [len(about) for about in positions], axis=0)
    design = np.hstack([of_line, np.concatenate(slopes)])
    shown = np.concatenate([line.shown for line in lines])
    noise = np.concatenate([line.noise for line in lines])
    noise += LEAST_RELATIVE_VARIANCE * np.mean(shown**2) + TINY
    c, J, evidence = _possible_draws(design, shown, noise, [line.own_slope for line in lines])
    gaps = np.eye(n) - J
    inverses = np.linalg.inv(gaps)
    points = (inverses @ c[..., None])[..., 0]
    # Weigh draws by the prior of the fixed point in place of that of c, with the Jacobian of the
    # change of variables, det (I - J)^-1. Average over the prior's scale: with the largest alone,
    # small effects would pass for large ones with slopes near 1.
    scales = np.geomspace(least, largest, N_SCALES)
    squares = np.sum(points**2, axis=1)[:, None] / scales + n * np.log(scales)
    logs = evidence + logsumexp(-squares / 2, axis=1) - np.linalg.slogdet(gaps)[1]
    weights = np.exp(logs - logs.max())
    mean = np.average(points, axis=0, weights=weights)
    variance = np.average((points - mean) ** 2, axis=0, weights=weights)
    # Beside noise, sampling of entries is multiplied by the diagonal of G^-1.
    by_entries = np.average(inverses.diagonal(axis1=1, axis2=2), axis=0, weights=weights) - 1
    by_entries = np.maximum(by_entries, 0) * [line.sampling for line in lines]
    return mean, variance + by_entries


def _possible_draws(
    design: Floats, shown: Floats, noise: Floats, own_slopes: Sequence[float]
) -> tuple[Floats, Floats, Floats]:
    """Posterior draws of c (m, n) and J (m, n, n), where J is possible, and log weights (m,).

    Eigenvalues of a possible J are between -1 and 1. `design` has n columns for c, then those for
    the upper triangle of J, whose diagonal has at most the prior variances `own_slopes`.
    """
    n = len(own_slopes)
    first, second = np.triu_indices(n)
    products, right = (design.T / noise) @ design, (design.T / noise) @ shown
    # Slopes of the variance 1 / 4n give J eigenvalues up to about 1 (Wigner 1958). As by chance
    # there are none, average over smaller variances, too, by their evidence.
    largest = np.where(first == second, np.minimum(own_slopes, 1 / (4 * n))[first], 1 / (4 * n))
    # Scale variances by the residuals of the regression; then double them until enough draws are
    # possible.
    prior = _prior_precisions(n, largest)
    solution = np.linalg.solve(products + prior, right)
    n_free = max(len(shown) - len(solution), 1)
    squares = (shown - design @ solution) ** 2 / noise
    least = max(float(np.sum(squares)) / n_free, 1.0)
    standard_normal, found = _normal_points(len(solution)), list[tuple[Floats, Floats, Floats]]()
    for scale in SLOPE_SCALES:
        prior, factor = _prior_precisions(n, scale * largest), least
        while True:
            # By a Cholesky factor: eigenvectors of nearly equal precisions turn by rounding errors.
            precisions = products / factor + prior
            roots = np.sqrt(precisions.diagonal())
            triangle = np.linalg.cholesky(precisions / np.multiply.outer(roots, roots))
            to_draws = np.linalg.inv(triangle) / roots
            solution = to_draws.T @ (to_draws @ right) / factor
            drawn = solution + standard_normal @ to_draws
            J = np.zeros((len(drawn), n, n))
            J[:, first, second] = J[:, second, first] = drawn[:, n:]
            possible = np.abs(np.linalg.eigvalsh(J)).max(axis=1) < 1
            if possible.mean() >= LEAST_POSSIBLE:
                break
            factor *= 2
        log = np.sum(np.log(prior.diagonal()))
        log -= 2 * np.sum(np.log(triangle.diagonal() * roots))
        log -= len(shown) * math.log(factor) + prior.diagonal() @ solution**2
        log -= np.sum((shown - design @ solution) ** 2 / noise) / factor
        found.append((drawn[possible, :n], J[possible], np.full(possible.sum(), log / 2)))
    c, J, logs = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return c, J, logs


def _prior_precisions(n: int, variances: Floats) -> Floats:
    """Prior precisions of n constants and slopes of these `variances`, a diagonal matrix."""
    # Of constants next to none, as the caller has a prior of the fixed point.
    return np.diag(np.append(np.full(n, 1e-6), 1 / np.maximum(variances, LEAST_OF_SLOPE)))


@cache
def _normal_points(n_dimensions: int) -> Floats:
    """Quasi-random points of a standard normal distribution, (n_points, n_dimensions)."""
    points = qmc.Sobol(n_dimensions, scramble=False).random_base2(LOG2_DRAWS)[1:]
    return np.asarray(ndtri(points), dtype=np.float64)
