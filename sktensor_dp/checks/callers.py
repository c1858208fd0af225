"""Who calls a function: a line outside this package, or a tool of scikit-learn."""

import inspect
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

OWN = ("sktensor_dp", "sklearn", "joblib", "contextlib")  # whose lines say nothing to a caller
# Functions that fit and score on folds, and the one by which a scorer compares predictions.
VALIDATION = ("sklearn.model_selection._validation", None)
SEARCH = ("sklearn.model_selection._search", "fit")
PIPELINE = ("sklearn.pipeline", "_fit")
STACKING = ("sklearn.ensemble._stacking", None)
SCORING = ("sklearn.metrics._scorer", "_score")
# Modules that read rows for private scores, or on Dask's workers, perhaps for a private fit.
SILENT = ("sktensor_dp.queries.held_out", "sktensor_dp.estimator.lazy")
# Tools that fit or score rows drawn with replacement, or with values of other rows.
MIXING = (
    ("sklearn.ensemble._bagging", None),
    ("sklearn.ensemble._weight_boosting", None),
    ("sklearn.linear_model._ransac", None),
    ("sklearn.inspection._permutation_importance", None),
    (VALIDATION[0], "_permutation_test_score"),
)


def level_of_caller() -> int:
    """Stack level, for ``warnings.warn``, of the nearest caller that is of no package in `OWN`."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in OWN:
        frame, level = frame.f_back, level + 1
    return level


def answers_caller() -> bool:
    """Return False if the call comes from a fit or private score, which must not show single rows.

    A function is taken for a fit by the word in its name, also one of the user's own. Also False
    for calls on a worker of Dask, which may belong to either.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if "fit" in frame.f_code.co_name.split("_") or frame.f_globals.get("__name__") in SILENT:
            return False
        frame = frame.f_back
    return True


class Tool(NamedTuple):
    """Function of scikit-learn that waits for the caller."""

    module: str
    name: str
    variables: dict[str, Any]


def tools_around() -> list[Tool]:
    """Functions of scikit-learn that wait for the caller, the innermost first."""
    frame, tools = inspect.currentframe(), []
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("sklearn."):
            tools.append(Tool(module, frame.f_code.co_name, frame.f_locals))
        frame = frame.f_back
    return tools


def locals_of(tools: Sequence[Tool], *callers: tuple[str, str | None]) -> list[dict[str, Any]]:
    """Local variables of `tools` among the `callers`, pairs of a module and a name or None."""
    return [found for module, name, found in tools if {(module, name), (module, None)} & {*callers}]


def parameters_of(frame: Mapping[str, Any]) -> set[str]:
    """Names, without those of steps, of the parameters that a search sets for a fit."""
    return {str(name).rpartition("__")[2] for name in frame.get("parameters") or ()}


def validation_frame(tools: Sequence[Tool]) -> Mapping[str, Any]:
    """Local variables of the function that fits and scores, then those of its caller."""
    return ChainMap(*locals_of(tools, VALIDATION)[:2])


def candidate_of(frame: Mapping[str, Any]) -> tuple[int, int]:
    """Index of the fitted candidate (of ``validation_curve`` 0 or 1), and number of candidates."""
    if (values := frame.get("param_range")) is not None:  # of validation_curve
        first = {frame.get("param_name"): values[0]}
        # The index is not known: 1 stands for any later candidate.
        return int(str(frame.get("parameters")) != str(first)), len(values)
    return frame.get("candidate_progress") or (0, 1)


def searched_parameters(tools: Sequence[Tool]) -> set[str]:
    """Names, without those of steps, of the parameters in which candidates of a search differ."""
    frame = validation_frame(tools)
    _, n_candidates = candidate_of(frame)
    return parameters_of(frame) if n_candidates > 1 else set()


def scorers_of(frame: Mapping[str, Any]) -> list[object]:
    """Scorers among the local variables of a tool that fits and scores."""
    several = getattr(frame.get("scorer"), "_scorers", frame.get("scorer"))
    return [*several.values()] if isinstance(several, Mapping) else [several]
