"""Released statistics of an EM step, and mixtures of the type that is asked for."""

import numpy as np

from sktensor_dp.gaussian_mixture.plan import MixturePlan
from sktensor_dp.mixtures.clipping import clipping_at
from sktensor_dp.mixtures.gaussians import Gaussians
from sktensor_dp.mixtures.m_step import LEAST_VARIANCE, WhitenedStatistics
from sktensor_dp.mixtures.shrinkage import clip_eigenvalues
from sktensor_dp.mixtures.start import scaled_down_to_radius
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.mixtures import MixtureStatistics
from sktensor_dp.queries.samples import LiftedBall
from sktensor_dp.tensor.arrays import Floats

# Rows are scaled down to this many radii of the ball: far from overflow, and few rows change.
MOST_RADII = 8.0
# Released statistics are clipped to this size; without noise none is far above 1.
LARGEST_STATISTIC = 4.0


def release_statistics(
    ask: Session, ball: LiftedBall, plan: MixturePlan, model: Gaussians
) -> WhitenedStatistics:
    """Release the statistics of an EM step, in the frame of each group (of all if "tied")."""
    d = model.means.shape[1]
    clip, pooled = plan.clip, plan.covariance_type == "tied"
    shape_part = "full" if pooled else plan.covariance_type
    # Limits and clipped mean squares of rows with 1, ..., d - 1 observed columns.
    below = (clipping_at(n_seen, clip.quantile) for n_seen in range(1, d))
    partial = [(one.limit, one.mean) for one in below]
    whiteners = model.whiteners[:1] if pooled else model.whiteners
    query = MixtureStatistics(
        model.means, whiteners, model.log_scales, limit=clip.limit, centre=clip.centre,
        scales=plan.scales, guard_radius=MOST_RADII * ball.radius, shape_part=shape_part,
        pooled=pooled, partial=partial,
        reach=clip.far / clip.limit,  # shifts are clipped farther out than squares
        slopes=model.slopes, offsets=model.offsets,
    )  # fmt: skip
    answer = ask(query)
    return WhitenedStatistics(
        **query.decoded(clipped_statistics(answer))._asdict(), n_shape=plan.n_shape,
        sigma=answer.sigma, scales=plan.scales, clipping=clip,
    )  # fmt: skip


def clipped_statistics(answer: Answer) -> Floats:
    """Released statistics, clipped to a range that holds all values without noise."""
    return np.clip(answer.value, -LARGEST_STATISTIC, LARGEST_STATISTIC)


def of_type(model: Gaussians, plan: MixturePlan, radius: float) -> Gaussians:
    """Gaussians with means in the ball, and bounded covariances of the plan's type."""
    d, least = model.means.shape[1], LEAST_VARIANCE * radius**2
    covariances = np.array([clip_eigenvalues(one, least, radius**2) for one in model.covariances])
    if plan.covariance_type == "tied":
        pooled = np.einsum("j,jab->ab", model.weights, covariances)
        covariances = np.tile(pooled, (len(model.weights), 1, 1))
    if plan.covariance_type == "diag":
        covariances = covariances * np.eye(d)  # entry by entry
    if plan.covariance_type == "spherical":
        sizes = np.trace(covariances, axis1=1, axis2=2) / d
        covariances = sizes[:, None, None] * np.eye(d)
    means = scaled_down_to_radius(model.means, radius)
    return Gaussians(model.weights, means, covariances, nonnormal=plan.nonnormal)
