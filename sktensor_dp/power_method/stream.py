"""State of a stream of components, and the power step on each of its batches."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sktensor_dp.checks.display import counted
from sktensor_dp.data.labels import Labels, distinct
from sktensor_dp.data.samples import SampleChunks
from sktensor_dp.estimator.base import FitResult
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.power_method.fitted import (
    FittedComponents,
    attributes_of,
    components_of,
    warnings_of_noise,
)
from sktensor_dp.power_method.plan import ComponentPlan
from sktensor_dp.power_method.recipe import new_method, release_power_step
from sktensor_dp.privacy.session import Session
from sktensor_dp.privacy.unit_assignment import assigned
from sktensor_dp.queries.samples import PowerIterations
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.power_method import OnlinePowerMethod

STREAM_PROGRESS = ("n_batches_seen_", "n_batches_needed_", "is_complete_")


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


def fit_power_step(ask: Session, plan: ComponentPlan, stream: ComponentStream | None) -> FitResult:
    """Release a power step on a batch; return attributes with the state after it.

    `stream` is the state before it, None before the first batch.
    """
    settings = plan.releases.epsilon, plan.releases.delta, plan.radius
    # Copy: if the step fails, the state before it must be unchanged.
    method = new_method(plan) if stream is None else copy.deepcopy(stream.method)
    answer = release_power_step(ask, PowerIterations(method.columns_asked(), plan.radius))
    method.tell(answer.value, answer.sigma, ask.n_units)
    after = ComponentStream(method, settings, ask.ticket)
    return FitResult({"_stream": after, **attributes_of(after.found, plan), **after.progress})


def warnings_of_stream(stream: ComponentStream, n_components: int) -> tuple[Warning, ...]:
    """Warning, if any, at the end of a stream: batches are missing, or noise hides components."""
    epsilon, _, _ = stream.settings
    if stream.method.is_complete:
        return warnings_of_noise(stream.found, n_components, epsilon)
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
    groups: Labels | None,
    number_is_private: bool,
) -> Iterator[SampleChunks]:
    """Yield random batches of rows; all rows of a group are in one batch.

    Rows are dealt by `random_state`, but groups, or units of private number, by secret coins.
    """
    n_units = X.shape[0] if groups is None else len(distinct(groups)[0])
    # If the number of units is private, that of batches must not follow from it: some may be empty.
    n_batches = n_batches if number_is_private else min(n_batches, n_units)
    batch_of_unit, unit_of_row = assigned(
        X.shape[0], groups, n_parts=n_batches, number_is_private=number_is_private,
        random_state=random_state,
    )  # fmt: skip
    batch_of_row = batch_of_unit if unit_of_row is None else batch_of_unit[unit_of_row]
    ends = np.cumsum(np.bincount(batch_of_row, minlength=n_batches))
    for rows in np.split(np.argsort(batch_of_row, kind="stable"), ends[:-1]):
        part = X[rows]
        labels = None if groups is None else groups[rows]
        yield SampleChunks(part, *part.shape, groups=labels)
