"""Where modules used to be: pickles of fitted estimators name them by those paths.

A module that moves gets a line here; a line can go once no pickle of its release is read.
"""

import sys
from importlib import import_module

__all__: list[str] = []

FORMER = {
    "_base": "estimator.base",
    "_completion_components": "completion.slice_components",
    "_completion_fit": "completion.entry_recipes",
    "_completion_forecast": "completion.forecast",
    "_completion_plan": "completion.plan",
    "_completion_slices": "completion.inference",
    "_forecast": "estimator.forecast",
    "_moment_fit": "power_method.recipe",
    "_parameters": "estimator.parameters",
    "_power_forecast": "power_method.forecast",
    "_power_plan": "power_method.plan",
    "_power_stream": "power_method.stream",
    "_private_scorer": "model_selection.scorer",
    "_search_candidates": "model_selection.candidates",
    "_search_trials": "model_selection.trials",
    "_topic_fit": "spectral_topics.recipe",
    "_topic_forecast": "spectral_topics.forecast",
    "_topic_plan": "spectral_topics.plan",
    "_topic_stream": "spectral_lda.stream",
    "_unit_scores": "model_selection.unit_scores",
    "privacy.documents": "privacy.curators.documents",
    "privacy.entries": "privacy.curators.entries",
    "privacy.samples": "privacy.curators.samples",
    "statistics.entries": "statistics.observed_entries",
    "tensor.entries": "tensor.sorted_entries",
}

for _former, _present in FORMER.items():
    sys.modules[f"sktensor_dp.{_former}"] = import_module(f"sktensor_dp.{_present}")
