"""Who calls a function: a line outside this package, or a tool of scikit-learn."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

OWN = ("sktensor_dp", "sklearn", "joblib", "contextlib")  # whose lines say nothing to a caller
# Functions that fit and score on folds, and the one by which a scorer compares predictions.
VALIDATION = ("sklearn.model_selection._validation", None)
SEARCH = "sklearn.model_selection._search"
STACKING = ("sklearn.ensemble._stacking", None)
SCORING = ("sklearn.metrics._scorer", "_score")
# Tools that fit or score rows drawn with replacement, or with values of other rows.
MIXING = (
    ("sklearn.ensemble._bagging", None),
    ("sklearn.ensemble._weight_boosting", None),
    ("sklearn.linear_model._ransac", None),
    ("sklearn.inspection._permutation_importance", None),
    (VALIDATION[0], "_permutation_test_score"),
)


def level_of_caller() -> int:
    """Stack level, for ``warnings.warn``, of the caller's line outside this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in OWN:
        frame, level = frame.f_back, level + 1
    return level


def locals_of(caller: tuple[str, str | None]) -> Iterator[Mapping[str, Any]]:
    """Local variables of functions of a module, of this name if there is one, that wait for the
    caller, the innermost first.
    """
    module, name = caller
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == module and name in (None, frame.f_code.co_name):
            yield frame.f_locals
        frame = frame.f_back


def is_called_by(caller: tuple[str, str | None]) -> bool:
    """Return True if a function of a module, of this name if there is one, waits for the caller."""
    return next(locals_of(caller), None) is not None


def parameters_of(frame: Mapping[str, Any]) -> set[str]:
    """Names, without those of steps, of the parameters that a search sets for a fit."""
    return {str(name).rpartition("__")[2] for name in frame.get("parameters") or ()}


def scorers_of(frame: Mapping[str, Any]) -> list[object]:
    """Scorers of a fit by a tool of scikit-learn."""
    several = getattr(frame.get("scorer"), "_scorers", frame.get("scorer"))
    return [*several.values()] if isinstance(several, Mapping) else [several]
