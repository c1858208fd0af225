"""Streams of disjoint batches, each read once."""

import copy
from dataclasses import dataclass
from typing import Any

from sktensor_dp.estimator.base import Fitted
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.power_method.recipe import (
    FittedComponents,
    MomentPlan,
    attributes_of,
    cautions_of_noise,
    found_by,
    new_method,
)
from sktensor_dp.privacy.curators.samples import SampleCurator
from sktensor_dp.tensor.power_method import OnlinePowerMethod

STREAM_PROGRESS = ("n_batches_seen_", "n_batches_needed_", "is_complete_")


@dataclass(frozen=True, eq=False)
class ComponentStream:
    """Released quantities carried from batch to batch; nothing of the batches themselves."""

    method: OnlinePowerMethod  # components and starts so far
    sigma: float  # noise of the last answer
    budget: tuple[float, float, float]  # epsilon, delta and data_norm of every batch
    max_batches: int = 1  # in how many batches a group may be, which was charged for
    ticket: str | None = None  # what the next batch shows to the ledger that was charged

    def check_budget(self, *now: float | None) -> None:
        """Refuse a batch at another budget than the first one's, which was charged."""
        if self.budget != now:
            raise ValueError(
                f"epsilon, delta and data_norm must be those of the first batch, "
                f"{self.budget}, which were charged; got {now}. fit() starts a new stream."
            )

    @property
    def found(self) -> FittedComponents:
        """Components so far."""
        return found_by(self.method, self.sigma)

    @property
    def progress(self) -> dict[str, Any]:
        """Fitted state that only streams have."""
        method = self.method
        progress = (method.n_answers, method.n_answers_needed, method.is_complete)
        return {"_stream": self, **dict(zip(STREAM_PROGRESS, progress, strict=True))}


def learn_batch(
    curator: SampleCurator,
    plan: MomentPlan,
    stream: ComponentStream | None,
    budget: tuple[float, float, float],
) -> Fitted:
    """Take one step on a batch that no other step reads."""
    # Another one: a step that fails must not have moved the stream.
    method = new_method(plan) if stream is None else copy.deepcopy(stream.method)
    answers = curator.power_iterations(method.ask())
    method.tell(answers.value)
    after = ComponentStream(method, answers.sigma, budget, plan.releases.repeats)
    return Fitted({**attributes_of(after.found), **after.progress, "n_iter_": plan.max_iter})


def cautions_of_stream(stream: ComponentStream, n_components: int) -> tuple[Warning, ...]:
    """What to warn of at the end of a stream."""
    if stream.method.is_complete:
        return cautions_of_noise(stream.found, n_components, stream.budget[0])
    return (
        NotEnoughDataWarning(
            f"The stream ended after {stream.method.n_answers} batches; "
            f"{stream.method.n_answers_needed} are needed for all components."
        ),
    )
