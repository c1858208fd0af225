"""Shares of the cells of each column that are observed, by releases."""

import math
from typing import NamedTuple

import numpy as np

from sktensor_dp.gaussian_mixture.plan import MixturePlan
from sktensor_dp.gaussian_mixture.step_release import MOST_RADII, clipped_statistics
from sktensor_dp.mixtures.gaussians import Gaussians
from sktensor_dp.mixtures.m_step import LEAST_WEIGHT
from sktensor_dp.mixtures.skewness import scales_of_shifts
from sktensor_dp.mixtures.uncertainty import observed_shares
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.mixtures import MixtureStatistics
from sktensor_dp.queries.samples import LiftedBall
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.truncated_normal import quantiles_within

# Least share of cells that is taken as observed.
LEAST_SHARE = 1e-4
# Share of missing cells that hardly moves averages: where noise may hide more, a fit of several
# groups counts cells, and a fit to persons warns; it warns, too, where a column surely lacks some.
FEW_MISSING = 0.05
# Radii by which a release fills missing cells to count them.
FAR_OUT = 1000.0
N_QUANTILES = 200  # of a posterior of shares
# Deviations of noise beyond which warnings say that cells are missing: one in 700 by chance.
SURE = 3.0


class Cells(NamedTuple):
    """Shares of the cells of each column that are observed: (d,), or (k, d) of each group."""

    observed: Floats  # estimated
    most_observed: Floats  # the largest that noise allows
    kept_fractions: Floats  # part of released shares of missing cells that is no noise

    @classmethod
    def by_missing(cls, missing: Floats, noise: float | Floats) -> "Cells":
        """Estimate from released shares of `missing` cells, with noise of deviation `noise`."""
        missing = np.clip(missing, 1e-9, 1.0)  # sums are rounded
        most_observed = 1 - np.maximum(missing - SURE * noise - 1e-9, 0.0)
        # Shrink by two deviations of noise: complete columns nearly always count as complete.
        by_noise = np.minimum(np.maximum(2 * noise, 1e-9) / missing, 1.0)
        observed = np.maximum(1 - (1 - by_noise**2) * missing, LEAST_SHARE)
        return cls(observed, most_observed, 1 - by_noise**2)


def release_cells(ask: Session, ball: LiftedBall, plan: MixturePlan) -> Cells:
    """Release the shares of cells that are observed.

    Missing cells are filled so far out that values within the ball count for next to nothing.
    """
    d, lift = plan.n_features, FAR_OUT * ball.radius
    limit = FAR_OUT * math.sqrt(d) + 1  # no row within the ball is clipped
    query = MixtureStatistics(
        np.zeros((1, d)), np.eye(d)[None] / ball.radius, np.zeros(1), limit=limit, centre=0.0,
        scales=scales_of_shifts(1), guard_radius=lift, shape_part="spherical", lift=lift,
        fill=Gaussians(np.ones(1), np.zeros((1, d)), np.eye(d)[None]),
    )  # fmt: skip
    answer = ask(query)
    missing = query.decoded(clipped_statistics(answer)).shifts[0] / FAR_OUT
    return Cells.by_missing(missing, answer.sigma * limit / FAR_OUT)


def release_cells_of_groups(
    ask: Session, ball: LiftedBall, plan: MixturePlan, model: Gaussians
) -> Cells:
    """Release the shares of each group's cells that are observed."""
    d, scales = plan.n_features, scales_of_shifts(1)
    query = MixtureStatistics(
        model.means, model.whiteners, model.log_scales, limit=math.sqrt(d), centre=0.0,
        scales=scales, guard_radius=MOST_RADII * ball.radius, shape_part="spherical",
        partial=[(math.sqrt(d), 0.0)] * (d - 1), counts_missing=True,
        slopes=model.slopes, offsets=model.offsets,
    )  # fmt: skip
    answer = ask(query)
    weights, signs, sizes, _ = query.decoded(clipped_statistics(answer))
    # Signs have the squared length d: sizes are weights times d, of other noise.
    weights = (scales.weight * weights + scales.size * sizes / d) / (scales.weight + scales.size)
    least = np.maximum(weights, np.maximum(model.weights / 2, LEAST_WEIGHT))
    noise = answer.sigma / least / 2
    of_weights = 1 / (scales.weight + scales.size)
    missing = (1 + signs / least[:, None]) / 2
    return Cells.by_missing(missing, (noise * math.sqrt(d / scales.shift + of_weights))[:, None])


def observed_overall(ball: LiftedBall, second: Answer, *, of_one: bool = False) -> float:
    """Expected share of cells that are observed; 1 if noise may explain the missing ones.

    For `of_one` group it is 1 only if noise hides no more than `FEW_MISSING` of the cells: a
    covariance fills them, and would be too flat if they were forgotten.
    """
    share, error = observed_as_released(ball, second)
    if share >= 1 - 2 * error - 1e-9 and not (of_one and 2 * error > FEW_MISSING):  # rounded sums
        return 1.0
    if error > 0:
        share = quantiles_within(share, error, 0.0, 1.0, N_QUANTILES).mean()
    return max(float(share), LEAST_SHARE)


def observed_as_released(ball: LiftedBall, second: Answer) -> tuple[float, float]:
    """Share of cells that are observed, by `second` moments as released, and sigma of its noise."""
    # The constant coordinate has the mean square (1 + share) / 2, in squares of the offset.
    share = 2 * second.value[-1, -1] / ball.offset**2 - 1
    return float(share), 2 * second.sigma / ball.offset**2


def observed_by_column(ball: LiftedBall, second: Answer, model: Gaussians) -> Floats:
    """Shares (1, d) of cells that are observed, by `second` moments."""
    squares, share = np.diagonal(second.value)[:-1], observed_overall(ball, second)
    found = observed_shares(model, squares, second.sigma, share)
    return (np.maximum(found, LEAST_SHARE) if share < 1 else np.ones(len(found)))[None]
