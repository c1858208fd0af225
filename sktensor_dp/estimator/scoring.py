"""Scores without noise, computed exactly from rows, also in tools of scikit-learn."""

import inspect
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sklearn import get_config

from sktensor_dp.checks.callers import (
    SCORING,
    SEARCH,
    VALIDATION,
    Tool,
    candidate_of,
    level_of_caller,
    locals_of,
    parameters_of,
    scorers_of,
    tools_around,
)
from sktensor_dp.exceptions import DoubtfulParameterWarning, UnprotectedScoreWarning
from sktensor_dp.privacy.payer import HasAccountant

AS_NEWCOMERS = (  # of completions with a `unit_mode`
    " Everybody is scored as a newcomer here, whatever the rank: those two, and score of fold_in, "
    "predict a unit's values by its others."
)
OTHER_WORDS = (
    "Each fit of this search learns a vocabulary of its own: it pays for it again, and it decides "
    "its score. Fit it once, and search over the steps after it."
)


def refuse_candidates(
    tools: Sequence[Tool], frame: Mapping[str, Any], private: Sequence[Any]
) -> None:
    """Let the `private` scorers raise errors for candidates of a tool that they could not score."""
    candidates = [dict(frame.get("parameters") or {})]
    place, n_candidates = candidate_of(frame)
    if place == 0:  # before the first is paid, where the others can be seen from here
        for around in locals_of(tools, (SEARCH[0], "evaluate_candidates")):
            candidates = around["candidate_params"]
    for scorer in private:
        scorer.check_candidates(frame["estimator"], candidates, n_candidates)


def warn_of_score(model: object) -> None:
    """Warn that a score of a model is computed from rows without noise."""
    warn_once("" if getattr(model, "unit_mode", None) is None else AS_NEWCOMERS)


@cache  # an error, in the place of the warning, is raised each time
def warn_once(more: str) -> None:
    """Warn once in a process, for each `more`, that a score is computed from rows without noise."""
    warnings.warn(
        UnprotectedScoreWarning(
            "A score is computed from the rows handed in, and no noise protects them: show "
            "it only where these rows are public. make_private_scorer releases scores with noise, "
            f"and PrivateSearchCV chooses by such.{more} This is said once."
        ),
        stacklevel=level_of_caller(),
    )


def warn_where_scored(model: object) -> None:
    """Warn as `score` does, where predictions are for a scorer of scikit-learn."""
    if locals_of(tools_around(), SCORING):
        warn_of_score(model)


def check_scoring_of_tools(model: Any, tools: Sequence[Tool], *, grouped: bool) -> None:
    """Check how tools of scikit-learn will score a fit, with groups if `grouped`.

    Warn of scores without noise, or by vocabularies that differ. Refuse scores that would fail once
    the fit is paid, and searches over what no score depends on, or what decides what is scored.
    """
    for frame in locals_of(tools, VALIDATION):
        scorers = scorers_of(frame)
        private = [one for one in scorers if isinstance(one, HasAccountant)]
        if grouped and private and not frame.get("score_params", "unknown"):
            raise ValueError(
                "The private scorer must be given the groups, too: once this fit of persons is "
                "paid, a score of single rows is refused. Under metadata routing "
                "set_score_request(groups=True) of the scorer, see make_private_scorer."
            )
        if private:
            refuse_candidates(tools, frame, private)
        noiseless = [one for one in scorers if type(one).__module__ == SCORING[0]]
        last: Any = getattr(frame.get("estimator"), "_final_estimator", None)  # of a pipeline
        facts = model._public_facts()
        learns_words = facts.word_counter is not None and not facts.releases_nothing
        if learns_words and "scorer" in frame and hasattr(last, "score_samples"):
            warnings.warn(OTHER_WORDS, DoubtfulParameterWarning, stacklevel=level_of_caller())
        if not noiseless:
            continue
        of_persons = getattr(model, "unit_mode", None) is not None
        if of_persons and noiseless == scorers and "rank" in parameters_of(frame):
            raise ValueError(
                "rank cannot be searched over by scores of scikit-learn: they take everybody for a "
                "newcomer, whatever the rank. Pass scoring=make_private_scorer(...), which "
                "predicts a unit's values by its others, or use PrivateSearchCV."
            )
        by_score = any(type(one).__name__ == "_PassthroughScorer" for one in noiseless)
        is_routed = by_score and last is not None and get_config()["enable_metadata_routing"]
        if is_routed and "sample_weight" not in inspect.signature(last.score).parameters:
            raise ValueError(
                "scoring must be given for a pipeline under metadata routing, where scikit-learn "
                "fails to score it, once a fit is paid. Pass scoring=make_private_scorer(...), "
                "whose scores have noise."
            )
        warn_of_score(model)
