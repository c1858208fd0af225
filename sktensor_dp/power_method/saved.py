"""What of a fitted tensor power method is saved."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from sktensor_dp.model_files.fields import (
    Arrays,
    Field,
    Flag,
    Integer,
    ListOf,
    Numbers,
    Optional,
    Real,
    Record,
    require,
)
from sktensor_dp.model_files.saving import INPUT, REPORT, SavedState
from sktensor_dp.power_method.learning import STREAM_PROGRESS
from sktensor_dp.power_method.stream import StreamState
from sktensor_dp.tensor.online import OnlinePowerMethod

__all__ = ["SAVED_COMPONENTS"]

# Where the generator of starts is: they are drawn after release, and are no noise.
GENERATOR = ("state", "inc", "has_uint32", "uinteger")
BIG, SMALL = Integer(0, 2**128 - 1), Integer(0, 2**32 - 1)
METHOD = SimpleNamespace
PROGRESS: dict[str, Field] = {
    "n_answers": Integer(), "_n_components": Integer(1), "_n_restarts": Integer(1),
    "_max_iter": Integer(1), "_iteration": Integer(), "_weights": Numbers(1),
    "_vectors": Numbers(2), "_starts": Numbers(2), "_polished": Optional(Numbers(2)),
}  # fmt: skip


class MethodField:
    """A power method between two batches."""

    record = Record(
        SimpleNamespace,
        {
            **PROGRESS,
            "best_value": Real(),
            "best_vector": Numbers(1),
            "generator": ListOf(BIG, list, len(GENERATOR), len(GENERATOR)),
        },
    )

    def write(self, value: OnlinePowerMethod, arrays: Arrays, where: str) -> dict[str, Any]:
        """Return its progress, and where its generator is."""
        state = value._rng.bit_generator.state
        generator = [*state["state"].values(), state["has_uint32"], state["uinteger"]]
        parts = {name: getattr(value, name) for name in PROGRESS}
        best_value, best_vector = value._best
        parts.update(best_value=best_value, best_vector=best_vector, generator=generator)
        return self.record.write(parts, arrays, where)

    def read(self, value: Any, arrays: Arrays, where: str) -> OnlinePowerMethod:
        """Return a method that goes on from there."""
        parts = self.record.read(value, arrays, where)
        _check_progress(parts)
        generator = np.random.Generator(np.random.PCG64(0))
        # Sizes are those of arrays in the file by now.
        method = OnlinePowerMethod(
            len(parts.best_vector),
            parts._n_components,
            n_restarts=parts._n_restarts,
            max_iter=parts._max_iter,
            random_state=generator,
        )
        for name in PROGRESS:
            setattr(method, name, getattr(parts, name, None))
        method._best = (parts.best_value, parts.best_vector)
        state, inc, has_uint32, uinteger = parts.generator
        generator.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": inc},
            "has_uint32": has_uint32,
            "uinteger": uinteger,
        }
        return method


def _check_progress(parts: SimpleNamespace) -> None:
    d, n, k = len(parts.best_vector), len(parts._weights), parts._n_components
    require(1 <= k <= d and n <= k, "components must be at most as many as features")
    require(parts._starts.shape == (d, parts._n_restarts), "starts must fit the features")
    require(parts._vectors.shape == (n, d), "vectors must fit the features")
    polished = getattr(parts, "_polished", None)
    require(polished is None or polished.shape == (d, k), "polished vectors must fit")
    require(parts._iteration <= parts._max_iter, "iterations must not exceed max_iter")
    steps = k * (parts._max_iter + 1)
    begun = n * (parts._max_iter + 1) + parts._iteration
    right = parts.n_answers >= steps if n == k else parts.n_answers == begun
    require(right, "the number of answers must be that of the steps made")
    require((polished is not None) == (parts.n_answers > steps), "polishing must have begun")
    _, inc, has_uint32, uinteger = parts.generator
    sized = inc % 2 == 1 and has_uint32 <= 1 and uinteger < 2**32
    require(sized, "the generator's state must be one")


STREAM = Record(
    StreamState,
    {
        "method": MethodField(), "sigma": Real(0, finite=False),
        "budget": ListOf(Real(0, finite=False), tuple, 3, 3), "report": REPORT,
    },
    derived={"accountant": None},
)  # fmt: skip


def _check(state: SimpleNamespace, estimator: Any) -> None:
    k, d = state.components_.shape
    require(state.weights_.shape == (k,), "each component must have one weight")
    require(state.n_features_in_ == d, "n_features_in_ must be the length of components")
    require(state.n_components_ == k >= 1, "n_components_ must be the number of components")
    names = getattr(state, "feature_names_in_", None)
    require(names is None or len(names) == d, "each feature must have one name")
    variances = getattr(state, "covariances_", None)
    require(variances is None or variances.shape == (k,), "each component has one variance")
    mixture, topics = (estimator.moment == kind for kind in ("gaussian_mixture", "single_topic"))
    require(not mixture or variances is not None, "a mixture must have covariances_")
    require(not topics or (state.components_ >= 0).all(), "topics must not be negative")
    stream = getattr(state, "_stream", None)
    require(stream is None or len(stream.method.ask()) == d, "the stream must fit the features")
    progress = [hasattr(state, name) for name in STREAM_PROGRESS]
    require(all(progress) or not any(progress), "a stream must have all of its progress")
    require(stream is None or all(progress), "a stream must have progress")


SAVED_COMPONENTS = SavedState(
    {
        **INPUT, "components_": Numbers(2), "weights_": Numbers(1),
        "covariances_": Optional(Numbers(1, np.finfo(float).tiny)), "n_components_": Integer(1),
        "n_iter_": Integer(1), "n_batches_seen_": Optional(Integer(1)),
        "n_batches_needed_": Optional(Integer(1)), "is_complete_": Optional(Flag()),
        "_stream": Optional(STREAM),
    },
    _check,
    {"_n_features_out": lambda state: state.n_components_},
)  # fmt: skip
