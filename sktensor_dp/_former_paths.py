"""Where modules used to be: pickles of fitted estimators name them by those paths.

A module that moves gets a line here; a line can go once no pickle of its release is read.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGE = "sktensor_dp."
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
    "statistics.samples": "statistics.sample_moments",
    "tensor.entries": "tensor.sorted_entries",
}


class FormerPaths(MetaPathFinder, Loader):
    """Finds a module by its former path, when somebody asks for it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer for former paths alone."""
        former = fullname.removeprefix(PACKAGE)
        return ModuleSpec(fullname, self) if former != fullname and former in FORMER else None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of today in the place of the empty one."""
        name = module.__name__
        sys.modules[name] = import_module(PACKAGE + FORMER[name.removeprefix(PACKAGE)])


# The last to be asked: what is on the disk comes first.
sys.meta_path.append(FormerPaths())
