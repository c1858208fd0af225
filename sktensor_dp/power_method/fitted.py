"""Fitted components and the state of a stream, as attributes and in files."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

from sktensor_dp.checks.display import counted
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.model_files.container import require
from sktensor_dp.model_files.fields import (
    ABSENT,
    Items,
    Maybe,
    Numbers,
    Part,
    Plain,
    Real,
    SavedState,
    Whole,
)
from sktensor_dp.power_method.plan import RESOLVED, ComponentPlan
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.batch_mean import BatchMean
from sktensor_dp.tensor.power_method import OnlinePowerMethod

STREAM_PROGRESS = ("n_batches_seen_", "n_batches_needed_", "is_complete_")


@dataclass(frozen=True, eq=False)
class FittedComponents:
    """Components estimated from released values, with their weights."""

    components: Floats  # (k, n_features): unit vectors
    weights: Floats  # (k,): of components' cubes, decreasing
    n_resolved: int  # number of components above the noise


def components_of(method: OnlinePowerMethod) -> FittedComponents:
    """Components that a power method has found so far, the current one included."""
    weights, vectors = method.components()
    # By noise alone T(u, u, u) is about one deviation, and about three from the best start.
    return FittedComponents(vectors, weights, n_resolved=method.n_above(RESOLVED))


@dataclass(frozen=True, eq=False)
class ComponentStream:
    """State of a stream between batches, of released values alone."""

    method: OnlinePowerMethod
    settings: tuple[float, float, float]  # epsilon, delta and data_norm of every batch
    ticket: str | None  # by which the next batch shows the ledger that the stream was paid for

    @property
    def found(self) -> FittedComponents:
        """Components found so far."""
        return components_of(self.method)

    @property
    def progress(self) -> dict[str, Any]:
        """Attributes by name: numbers of batches read and needed, and whether it is complete."""
        method = self.method
        progress = (method.n_answers, method.n_answers_needed, method.is_complete)
        return dict(zip(STREAM_PROGRESS, progress, strict=True))


def attributes_of(fitted: FittedComponents, plan: ComponentPlan) -> dict[str, Any]:
    """Fitted attributes by name."""
    return {
        "components_": fitted.components,
        "weights_": fitted.weights,
        "n_components_": len(fitted.components),
        "n_iter_": plan.max_iter,
        "_n_features_out": len(fitted.components),
    }


def warnings_of_noise(
    fitted: FittedComponents, n_components: int, epsilon: float
) -> tuple[Warning, ...]:
    """Warning, if any, that noise hides some of the components asked for."""
    wanted = min(n_components, fitted.components.shape[1])  # as many as features have room for
    if fitted.n_resolved >= wanted or (math.isinf(epsilon) and len(fitted.components) >= wanted):
        return ()
    ways = "A larger epsilon, a smaller data_norm or fewer n_components"
    if math.isinf(epsilon):
        ways = "Fewer n_components"
    return (
        NotEnoughDataWarning(
            f"Of {counted(wanted, 'component')} sought, released values show "
            f"{fitted.n_resolved} above their noise; {len(fitted.components)} were fitted. "
            f"{ways} would help, and more samples, if the fit is to samples (see forecast())."
        ),
    )


ANSWERS = Part(
    BatchMean, value=Numbers("d?"), noise_variance=Numbers("?+"), sampling=Numbers("?+"),
    excess=Real(), expected=Real("+"),
)  # fmt: skip

STREAM = Part(
    ComponentStream,
    method=Part(
        OnlinePowerMethod, n_components=Whole("m"), n_restarts=Whole("l"),
        max_iter=Whole(), seed=Whole(), n_answers=Whole(), n_waits=Whole(),
        log_precision=Real(), weights=Numbers("n"), vectors=Numbers("nd"),
        component_answers=ANSWERS, starts=Numbers("dl"), pending=Maybe(ANSWERS), best_weight=Real(),
        best_noise_variance=Real("+"), best_vector=Numbers("d"),
    ),
    settings=Items(Real("+"), 3, tuple), ticket=Maybe(Plain(str)),
)  # fmt: skip


@dataclass(kw_only=True)
class SavedComponents(SavedState):
    """Serialisation schema: attributes of k components of length d, and the state of a stream."""

    components_: Annotated[Floats, Numbers("kd")]
    weights_: Annotated[Floats, Numbers("k")]
    data_norm_: Annotated[float, Real()] = ABSENT
    n_components_: Annotated[int, Whole("k")]
    n_iter_: Annotated[int, Whole()]
    n_batches_seen_: Annotated[int, Whole()] = ABSENT
    n_batches_needed_: Annotated[int, Whole()] = ABSENT
    is_complete_: Annotated[bool, Plain(bool)] = ABSENT
    _stream: Annotated[ComponentStream, STREAM] = ABSENT

    def attributes(self, estimator: Any) -> dict[str, Any]:
        """Fitted attributes from a file; ModelFileError if they contradict one another."""
        found = super().attributes(estimator)
        require(self.n_components_ > 0 and self.n_iter_ > 0, "there must be a component and a step")
        progress = [name in found for name in STREAM_PROGRESS]
        wanted = "a stream must have n_batches_seen_, n_batches_needed_ and is_complete_"
        require(all(progress) or not any(progress), wanted)
        if "_stream" in found:
            require(all(progress), wanted)
        return {**found, "_n_features_out": self.n_components_}
