"""Power method on a stream of disjoint batches, each read once, and its saved state."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from sktensor_dp.checks.display import counted
from sktensor_dp.data.labels import Labels, distinct
from sktensor_dp.data.samples import SampleChunks
from sktensor_dp.estimator.base import Fitted
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
from sktensor_dp.power_method.plan import MomentPlan
from sktensor_dp.power_method.recipe import (
    FittedComponents,
    attributes_of,
    components_of,
    new_method,
    power_step,
    warnings_of_noise,
)
from sktensor_dp.privacy.parts import assigned
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.samples import PowerIterations
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.batch_mean import BatchMean
from sktensor_dp.tensor.power_method import OnlinePowerMethod

STREAM_PROGRESS = ("n_batches_seen_", "n_batches_needed_", "is_complete_")


@dataclass(frozen=True, eq=False)
class ComponentStream:
    """Released values carried from batch to batch, and nothing of the batches themselves."""

    method: OnlinePowerMethod  # components and starts so far
    settings: tuple[float, float, float]  # epsilon, delta and data_norm of every batch
    # Shown by the next batch to the ledger that was charged; `_with_report` of estimators sets it.
    ticket: str | None = None

    @property
    def found(self) -> FittedComponents:
        """Components found so far."""
        return components_of(self.method)

    @property
    def progress(self) -> dict[str, Any]:
        """Fitted attributes of a stream: its state, batches read and needed, whether complete."""
        method = self.method
        progress = (method.n_answers, method.n_answers_needed, method.is_complete)
        return {"_stream": self, **dict(zip(STREAM_PROGRESS, progress, strict=True))}


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
    covariances_: Annotated[Floats, Numbers("k+")] = ABSENT
    n_components_: Annotated[int, Whole("k")]
    n_iter_: Annotated[int, Whole()]
    n_batches_seen_: Annotated[int, Whole()] = ABSENT
    n_batches_needed_: Annotated[int, Whole()] = ABSENT
    is_complete_: Annotated[bool, Plain(bool)] = ABSENT
    _stream: Annotated[ComponentStream, STREAM] = ABSENT

    def attributes(self, estimator: Any) -> dict[str, Any]:
        """Fitted attributes; ModelFileError if they are not those of the estimator's `moment`."""
        found = super().attributes(estimator)
        require(self.n_components_ > 0 and self.n_iter_ > 0, "components and steps are 1 or more")
        if estimator.moment == "gaussian_mixture":
            spread = self.covariances_ is not ABSENT and (self.covariances_ > 0).all()
            require(spread, "a mixture must have covariances_ above 0")
        progress = [name in found for name in STREAM_PROGRESS]
        require(all(progress) or not any(progress), "a stream must have all of its progress")
        if "_stream" in found:
            require(all(progress), "a stream must have progress")
        return {**found, "_n_features_out": self.n_components_}


def power_step_on_batch(
    ask: Session,
    plan: MomentPlan,
    stream: ComponentStream | None,
) -> Fitted:
    """Make one power step on a batch that no other step reads; return fitted attributes."""
    settings = plan.releases.epsilon, plan.releases.delta, plan.radius
    # Copy: if the step fails, the stream must be unchanged.
    method = new_method(plan) if stream is None else copy.deepcopy(stream.method)
    answers = power_step(ask, PowerIterations(method.columns_asked(), plan.radius))
    method.tell(answers.value, answers.sigma, ask.n_units)
    after = ComponentStream(method, settings)
    return Fitted({**attributes_of(after.found), **after.progress, "n_iter_": plan.max_iter})


def warnings_of_stream(stream: ComponentStream, n_components: int) -> tuple[Warning, ...]:
    """Warnings at the end of a stream: batches are missing, or noise hides components."""
    if stream.method.is_complete:
        return warnings_of_noise(stream.found, n_components, stream.settings[0])
    return (
        NotEnoughDataWarning(
            f"The stream ended after {counted(stream.method.n_answers, 'batch')}; "
            f"{stream.method.n_answers_needed} are needed for all components."
        ),
    )


def random_batches(
    X: Floats | sp.csr_matrix,
    n_batches: int,
    random_state: object,
    *,
    groups: Labels | None = None,
    by_coins: bool = False,
) -> Iterator[SampleChunks]:
    """Yield random batches of units: groups by secret coins, rows by `random_state`."""
    n_units = X.shape[0] if groups is None else len(distinct(groups)[0])
    # The number of batches is public; if coins assign units, a batch may be empty.
    n_batches = n_batches if by_coins else min(n_batches, n_units)
    of_units, units = assigned(
        X.shape[0], groups, n_parts=n_batches, sizes_private=by_coins, random_state=random_state
    )
    of_rows = of_units if units is None else of_units[units]
    ends = np.cumsum(np.bincount(of_rows, minlength=n_batches))
    for rows in np.split(np.argsort(of_rows, kind="stable"), ends[:-1]):
        part = X[rows]
        labels = None if groups is None else groups[rows]
        yield SampleChunks(part, *part.shape, groups=labels)
