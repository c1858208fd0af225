"""Ball that samples are scaled into, chosen by a released histogram of their norms."""

import math
import warnings
from typing import Any

import numpy as np

from sktensor_dp.checks.callers import answers_caller, level_of_caller
from sktensor_dp.data.samples import SampleChunk
from sktensor_dp.estimator.base import warnings_of_range
from sktensor_dp.exceptions import DoubtfulParameterWarning
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.norm_histogram import NormHistogram
from sktensor_dp.queries.query import SIZE_EDGES
from sktensor_dp.queries.samples import LiftedBall, SampleNorm


def check_data_norm(estimator: Any) -> None:
    """Raise ValueError if `data_norm`, which has no default, is not given."""
    if estimator.data_norm is None:
        raise ValueError(
            f"The 'data_norm' parameter of {type(estimator).__name__} must be given: the public "
            "Euclidean norm that samples are scaled down to. Where nobody knows it, 'auto' chooses "
            "it by a noisy histogram, at two percent of the budget."
        )


def release_ball(ask: Session, ball: LiftedBall) -> tuple[LiftedBall, tuple[Warning, ...]]:
    """Release a histogram of norms, and scale a ball of radius 1 so that it holds most samples.

    Also returns a warning if the histogram shows nothing above its noise.
    """
    edges = np.append(0.0, SIZE_EDGES)
    norms = ask(NormHistogram(SampleNorm(), edges)).range_of(edges)
    ball = LiftedBall(norms.high * ball.radius, norms.high * ball.offset)
    return ball, warnings_of_range(NormHistogram.name, seen=norms.seen)


def warnings_of_norm(
    second: Answer, ball: LiftedBall, square_of_means: float
) -> tuple[Warning, ...]:
    """Warning, if any, that nearly all rows were scaled down to the radius of `ball`.

    If they were, their mean squared norm, the trace of released `second` moments, is the radius
    squared. Missing cells make rows shorter; then that of group means, `square_of_means`, is.
    """
    d = len(second.value) - 1  # the last coordinate is a constant
    squared_norm = float(np.trace(second.value[:d, :d]))
    sigma = second.sigma * math.sqrt(d)
    largest = (1 - 1e-9) * ball.radius**2  # exact sums have rounding errors
    may_be_largest = max(squared_norm, square_of_means) + 2 * sigma >= largest
    noise_is_small = 10 * sigma < largest  # else any norm might be the largest
    if not (may_be_largest and noise_is_small):
        return ()
    return (
        DoubtfulParameterWarning(
            f"Nearly all rows have the norm data_norm={ball.radius:g} once they are scaled down to "
            "it: unless they were normalised, it is too small. Scale columns by scale_by_ranges "
            "or name a larger norm; check_inputs, by default in the command, tells before a fit "
            "how many rows are within."
        ),
    )


def warn_of_longer_rows(model: Any, rows: SampleChunk) -> None:
    """Warn if most `rows` that a caller passes to a fitted model are beyond the norm of the fit.

    The warning shows one exact bit of the rows. Answers about them show the caller more; a fit
    must not, and gives no such warning.
    """
    norm = getattr(model, "data_norm_", model.data_norm)
    if norm is None or not answers_caller() or model.privacy_report_.unit == "entry":
        return  # a model in units of columns, or of a tensor, has no norm of rows
    largest = norm * (1 + np.finfo(np.float32).eps)  # rows may have been normalised in float32
    n_longer = np.count_nonzero(np.sqrt(rows.square_norms) > largest)
    if 2 * n_longer > len(rows.square_norms):
        warnings.warn(
            f"Most of these rows are longer than data_norm={norm:.4g}, to which the fit scaled "
            "rows down: scale them as those of the fit. A pipeline of scaler and model does so by "
            "itself.",
            stacklevel=level_of_caller(),
        )
