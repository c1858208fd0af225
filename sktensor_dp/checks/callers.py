"""Who calls a function: the caller's line outside this package."""

import inspect

OWN = ("sktensor_dp", "sklearn", "contextlib")  # whose lines say nothing to a caller


def level_of_caller() -> int:
    """Stack level, for ``warnings.warn``, of the caller's line outside this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in OWN:
        frame, level = frame.f_back, level + 1
    return level
