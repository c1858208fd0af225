"""Serialisation schema of a fitted tensor power method."""

from dataclasses import dataclass
from typing import Any

from sktensor_dp.model_files.container import require
from sktensor_dp.model_files.fields import ABSENT, SavedState
from sktensor_dp.power_method.stream import STREAM_PROGRESS, ComponentStream
from sktensor_dp.tensor.arrays import Floats


@dataclass(kw_only=True)
class SavedComponents(SavedState):
    """Attributes of k components of length d, and the state of a stream."""

    layout = {  # noqa: RUF012
        "n_features_in_": "d", "feature_names_in_": "d", "n_components_": "k",
        "components_": "kd", "weights_": "k", "covariances_": "k+", "released_bic_": "d",
        "budget": "+", "sigma": "+",
    }  # fmt: skip

    components_: Floats
    weights_: Floats
    covariances_: Floats = ABSENT
    released_bic_: Floats = ABSENT
    n_components_: int
    n_iter_: int
    n_batches_seen_: int = ABSENT
    n_batches_needed_: int = ABSENT
    is_complete_: bool = ABSENT
    _stream: ComponentStream = ABSENT

    def attributes(self, estimator: Any) -> dict[str, Any]:
        """Fitted attributes, where they are those of the moment that was asked for."""
        found = super().attributes(estimator)
        require(self.n_components_ > 0 and self.n_iter_ > 0, "components and steps are 1 or more")
        if estimator.moment == "gaussian_mixture":
            spread = self.covariances_ is not ABSENT and (self.covariances_ > 0).all()
            require(spread, "a mixture must have covariances_ above 0")
        topics = estimator.moment != "single_topic" or (self.components_ >= 0).all()
        require(topics, "topics must not be negative")
        progress = [name in found for name in STREAM_PROGRESS]
        require(all(progress) or not any(progress), "a stream must have all of its progress")
        if "_stream" in found:
            require(all(progress), "a stream must have progress")
            method = self._stream.method
            require(len(method.ask()) == self.components_.shape[1], "a stream fits the features")
        return {**found, "_n_features_out": self.n_components_}
