"""Ball that samples are scaled into: chosen by a released histogram, and its worst neighbours."""

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from sktensor_dp.estimator.facts import Neighbours
from sktensor_dp.privacy.parts import public_ranks
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.counts import NormHistogram
from sktensor_dp.queries.query import SIZE_EDGES
from sktensor_dp.queries.samples import LiftedBall, SampleNorm


def chosen_ball(ask: Session, ball: LiftedBall) -> tuple[LiftedBall, bool]:
    """Release a histogram of norms, and scale a ball of norm 1 to the one that most samples are
    within; True if the histogram shows anything above its noise.
    """
    edges = np.append(0.0, SIZE_EDGES)
    _, norm, seen = ask(NormHistogram(SampleNorm(), edges)).range_of(edges)
    return LiftedBall(norm * ball.radius, norm * ball.offset), seen


def worst_samples(
    model: Any,
    n_units: int | None,
    statistic: Callable[[Any], float],
    shuffled_by: Any = None,
) -> Neighbours:
    """Neighbouring data sets for an audit, of samples along one direction.

    `shuffled_by` is the seed by which a fit deals rows out to batches, if it does.
    """
    data_norm: float | str | None = model.data_norm
    if data_norm is None:
        raise ValueError("data_norm must be given: samples are made of that length.")
    n_samples = n_units or 1000
    samples = np.zeros((n_samples, 2))
    samples[:, 0] = 1.0 if isinstance(data_norm, str) else data_norm
    if model.neighbours == "add_remove":
        return (samples,), (samples[1:],), statistic
    changed = samples.copy()
    last = n_samples - 1
    if isinstance(shuffled_by, numbers.Integral):
        # Weights of an online fit come from its last batches, and fits deal out rows in this order:
        # the changed row has the last rank.
        last = int(public_ranks(n_samples, shuffled_by).argmax())
    changed[last] *= -1
    return (samples,), (changed,), statistic
