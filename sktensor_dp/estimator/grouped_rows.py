"""Groups of rows as units of privacy, in one fit and in batches of a stream."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from sktensor_dp.estimator.parameters import Constraint, Number, OneOf
from sktensor_dp.privacy.calibration import gaussian_epsilon, gaussian_mu
from sktensor_dp.privacy.report import PrivacyReport

LARGEST_NUMBER = 2**62
GROUP_CONSTRAINTS: Mapping[str, Iterable[Constraint]] = {
    "max_rows_per_group": [Number(1, LARGEST_NUMBER, integer=True), OneOf(None)],
}
STREAM_CONSTRAINTS: Mapping[str, Iterable[Constraint]] = {
    "max_batches_per_group": [Number(1, 10**6, integer=True)],
}


def batch_budget(epsilon: float, delta: float, n_batches: int) -> tuple[float, float]:
    """What each of several batches may cost that a group can be part of."""
    if n_batches == 1 or math.isinf(epsilon):
        return epsilon, delta
    if delta == 0:
        return epsilon / n_batches, 0.0
    own = gaussian_epsilon(gaussian_mu(epsilon, delta) / math.sqrt(n_batches), delta)
    if own == 0:
        raise ValueError(
            f"max_batches_per_group={n_batches} leaves nothing of epsilon={epsilon:g} for one "
            f"batch at delta={delta:g}, which is too large. Pass a smaller delta, a larger epsilon "
            "or fewer batches."
        )
    return own, delta


def check_same_unit(before: PrivacyReport, grouped: bool, neighbours: str) -> None:
    """Refuse a batch of a stream whose units, or neighbours, are not those of the first one."""
    check_same("neighbours", before.neighbours, neighbours)
    if before.unit.startswith("group") != grouped:
        raise ValueError(
            "All batches of a stream must come with groups, or none: the first one decided what "
            "is protected. fit() starts anew."
        )


def check_same(name: str, before: Any, now: Any) -> None:
    """Refuse a batch of a stream with another parameter than was charged for."""
    if before != now:
        raise ValueError(
            f"{name} must be that of the first batch, {before!r}, which was charged for; got "
            f"{now!r}. fit() starts anew."
        )
