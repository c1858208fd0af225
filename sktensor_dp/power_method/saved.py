"""Fitted components, and the state of a stream, in a model file."""

from dataclasses import dataclass
from typing import Annotated, Any

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
from sktensor_dp.power_method.stream import STREAM_PROGRESS, ComponentStream
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.batch_mean import BatchMean
from sktensor_dp.tensor.power_method import OnlinePowerMethod

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
