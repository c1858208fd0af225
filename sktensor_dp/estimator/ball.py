"""Ball that samples are scaled into, chosen by a released histogram of their norms."""

import numpy as np

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
