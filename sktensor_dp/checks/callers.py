"""Who calls a function: a line outside this package, or a tool of scikit-learn."""

import inspect

OWN = ("sktensor_dp", "sklearn", "joblib", "contextlib")  # whose lines say nothing to a caller
# Functions that fit and score on folds, and the one by which a scorer compares predictions.
VALIDATION = ("sklearn.model_selection._validation", None)
SCORING = ("sklearn.metrics._scorer", "_score")


def level_of_caller() -> int:
    """Stack level, for ``warnings.warn``, of the caller's line outside this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in OWN:
        frame, level = frame.f_back, level + 1
    return level


def is_called_by(caller: tuple[str, str | None]) -> bool:
    """Return True if a function of a module, of this name if there is one, waits for the caller."""
    module, name = caller
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == module and name in (None, frame.f_code.co_name):
            return True
        frame = frame.f_back
    return False
