"""What of a fitted tensor power method is saved."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from sktensor_dp.model_files.fields import (
    Flag,
    Integer,
    ListOf,
    Numbers,
    Optional,
    OrNone,
    Real,
    Record,
    Text,
    require,
)
from sktensor_dp.model_files.saving import INPUT, SavedState
from sktensor_dp.power_method.stream import STREAM_PROGRESS, ComponentStream
from sktensor_dp.tensor.power_method import OnlinePowerMethod

# Where the generator of starts is: they are drawn after release, and are no noise.
WORDS = ListOf(Integer(0, 2**128 - 1), list, 4, 4)


METHOD = Record(
    lambda **state: OnlinePowerMethod.from_state(state),
    {
        "n_answers": Integer(), "n_components": Integer(1), "n_restarts": Integer(1),
        "max_iter": Integer(1), "iteration": Integer(), "weights": Numbers("n"),
        "vectors": Numbers("nd"), "starts": Numbers("d?"), "polished": OrNone(Numbers("d?")),
        "best_value": Real(), "best_vector": Numbers("d"), "generator": WORDS,
    },
    take=OnlinePowerMethod.state,
)  # fmt: skip
STREAM = Record(
    ComponentStream,
    {
        "method": METHOD, "sigma": Real(0, finite=False),
        "budget": ListOf(Real(0, finite=False), tuple, 3, 3),
        "max_batches": Integer(1), "ticket": OrNone(Text()),
    },
)  # fmt: skip


def _check(state: SimpleNamespace, estimator: Any) -> None:
    mixture, topics = (estimator.moment == kind for kind in ("gaussian_mixture", "single_topic"))
    has_variances = getattr(state, "covariances_", None) is not None
    require(has_variances or not mixture, "a mixture must have covariances_")
    require(not topics or (state.components_ >= 0).all(), "topics must not be negative")
    stream = getattr(state, "_stream", None)
    progress = [hasattr(state, name) for name in STREAM_PROGRESS]
    require(all(progress) or not any(progress), "a stream must have all of its progress")
    require(stream is None or all(progress), "a stream must have progress")


SAVED_COMPONENTS = SavedState(
    {
        **INPUT, "components_": Numbers("kd"), "weights_": Numbers("k"),
        "covariances_": Optional(Numbers("k", np.finfo(float).tiny)),
        "released_bic_": Optional(Numbers("d")),
        "n_components_": Integer(1, letter="k"),
        "n_iter_": Integer(1), "n_batches_seen_": Optional(Integer(1)),
        "n_batches_needed_": Optional(Integer(1)), "is_complete_": Optional(Flag()),
        "_stream": Optional(STREAM),
    },
    _check,
    {"_n_features_out": lambda state: state.n_components_},
)  # fmt: skip
