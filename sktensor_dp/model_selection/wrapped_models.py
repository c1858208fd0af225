"""Models that an estimator holds after its fit, and what they were fitted to protect."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from sktensor_dp.estimator.hooks import Hooks
from sktensor_dp.privacy.report import PrivacyReport

# Where scikit-learn's estimators keep those that they fitted: searches and thresholds,
# ensembles, calibration, transformed targets, columns, pipelines and unions.
KEPT = (
    "best_estimator_", "estimator_", "estimators_", "final_estimator_", "regressor_",
    "calibrated_classifiers_", "transformers_", "transformer_list", "steps",
)  # fmt: skip


def wrapped_models(estimator: Any) -> Iterator[Any]:
    """The estimator and what it holds, where these are private; the last of them first."""
    # What has a report answers for all that it was fitted with.
    if isinstance(estimator, Hooks) or getattr(estimator, "privacy_report_", None) is not None:
        yield estimator
        return
    if isinstance(estimator, np.ndarray):
        estimator = estimator.ravel().tolist() if estimator.dtype.kind == "O" else []
    if isinstance(estimator, list | tuple):
        for item in reversed(estimator):
            yield from wrapped_models(item)
        return
    # Of a calibration with folds each keeps its own; what is frozen is a parameter.
    holds = isinstance(estimator, FrozenEstimator) or not hasattr(estimator, "get_params")
    for name in (*KEPT, "estimator") if holds else KEPT:
        if (kept := getattr(estimator, name, None)) is not None:
            yield from wrapped_models(kept)


def fitted_reports(estimator: Any) -> list[PrivacyReport]:
    """Reports of the private models that an estimator is or holds."""
    reports = [getattr(model, "privacy_report_", None) for model in wrapped_models(estimator)]
    return [report for report in reports if report is not None]
