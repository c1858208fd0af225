"""Rows of folds, which keep persons whole, and folds that tools of scikit-learn fit and score."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sktensor_dp.checks.callers import (
    MIXING,
    SEARCH,
    STACKING,
    VALIDATION,
    Tool,
    candidate_of,
    level_of_caller,
    locals_of,
    parameters_of,
    scorers_of,
    validation_frame,
)
from sktensor_dp.exceptions import BudgetError, PrivacyLeakWarning
from sktensor_dp.privacy.ledger_entries import PERSON, LedgerEntry, column_of, person_of


class FoldRows(np.ndarray[Any, np.dtype[np.intp]]):
    """Positions of the rows of a fold; a fold of persons cannot be cut.

    What numpy computes from a fold, such as a copy, is of this class, but no fold.
    """

    # Persons, as units of ledgers name them, who were dealt; empty for rows, None for no fold.
    whose: str | None = None
    place = 0, 1  # of the fold, and number of folds

    @classmethod
    def dealt(cls, rows: Any, groups: object, place: tuple[int, int]) -> "FoldRows":
        """Rows of a fold that keeps rows of equal labels `groups` together; None cuts anywhere."""
        whose = "" if groups is None else person_of(getattr(groups, "name", None))
        return cls._of(rows, whose, place)

    @classmethod
    def _of(cls, rows: Any, whose: str | None, place: tuple[int, int]) -> "FoldRows":
        """Rows of a fold, read-only, that know `whose` groups and which `place` they have."""
        made = np.array(rows).view(cls).copy()  # copied, so that it is the `base` of its views
        made.whose, made.place = whose, place
        made.setflags(write=False)
        return made

    def __getitem__(self, key: Any) -> Any:
        if self.whose and not isinstance(key, int | np.integer):
            raise ValueError(
                "A fold of persons must be taken whole: which rows are in a part of it would "
                "depend on how many rows each person has, so that one person would decide who else "
                "is in a fit. learning_curve and HalvingGridSearchCV cut folds; cross_validate and "
                "GridSearchCV do not. To fit fewer persons, leave all rows of the others out "
                "before the split, by what each row says of its person. np.asarray(rows) may be "
                "cut."
            )
        return np.asarray(self)[key]

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __str__(self) -> str:
        return str(np.asarray(self))

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array

    def __deepcopy__(self, memo: dict[int, Any] | None) -> "FoldRows":
        return self.copy() if self.whose is None else self  # no fold can be written to

    def __reduce__(self) -> tuple[Any, ...]:
        return FoldRows._of, (np.asarray(self), self.whose, self.place)


def check_folds(
    tools: Sequence[Tool], entries: Sequence[LedgerEntry], budget_units: str, *, given_groups: bool
) -> None:
    """Refuse charges, by `tools` of scikit-learn, for folds that do not keep units whole.

    With ``units="any"`` of the budget folds of other splitters than ours only warn.
    """
    # Persons who are charged, as units of ledgers name them; None where they are rows.
    person = next((one.unit for one in entries if one.unit.startswith(PERSON)), None)
    frames = [frame for frame in locals_of(tools, VALIDATION) if "train" in frame]
    # None stands for a fold that no splitter of ours dealt. An empty list of folds passes.
    folds = [_dealt(frame["train"]) for frame in frames]
    if not frames:  # stacking fits to all rows before its folds, to which it passes no groups on
        stacked = (frame.get("self") for frame in locals_of(tools, STACKING))
        folds = [None for tool in stacked if getattr(tool, "cv", "prefit") != "prefit"]
    protects_rows = person is None and budget_units != "any"
    given_groups = given_groups or any(fold is not None and fold.whose for fold in folds)
    if frames and protects_rows and (given_groups or are_given_groups(tools)):
        raise BudgetError(
            "The tool of scikit-learn is given groups, and this fit is not: it would protect one "
            "row, and no person. Nothing was charged. Pass the labels on to each step, as "
            "params={'step__groups': labels}, or under metadata routing by "
            "set_fit_request(groups=True) of each; or pass no groups."
        )
    if person is None and all(one.neighbours == "replace_one" for one in entries):
        return  # rows by position: nobody moves others
    if all(fold is not None and _dealt_by(fold, person, budget_units) for fold in folds):
        return
    column = column_of(person or "")
    labels = f"table[{column!r}]" if column else "the label of each row's person"
    by_labels = f", and groups={labels} to the search" if person else ""
    advice = f"Pass cv=PrivateKFold(k){by_labels}"
    if all(fold is not None for fold in folds):
        raise BudgetError(
            "These folds were dealt by rows, or by another column than that of the persons "
            "who would pay: scores would mean nothing, and the total of the budget would cover "
            f"nobody. Nothing was charged. {advice}."
        )
    message = (
        "These folds, which no PrivateKFold dealt, may cut persons, or let one unit move others: "
        "the total of the budget would then cover nobody."
    )
    if budget_units != "any":
        raise BudgetError(
            f"{message} Nothing was charged for this fit. {advice}. Where no unit decides "
            "on the fold of others, BudgetAccountant(..., units='any') takes other folds."
        )
    warnings.warn(PrivacyLeakWarning(f"{message} {advice}."), stacklevel=level_of_caller())


class SearchAround(NamedTuple):
    """Search, or scores of folds, for which scikit-learn makes a fit."""

    is_first: bool  # whether the fit is its first one
    n_scores: int  # of all fits to folds, on test rows and, if they are returned, training rows
    n_fits: int  # to folds, and the last one to all rows, where it can be seen from here
    scorers: Sequence[object]


def search_around(tools: Sequence[Tool]) -> SearchAround | None:
    """Search that makes a fit; None unless its frame tells how many fits, all of one cost."""
    frame = validation_frame(tools)
    fold, (candidate, n_candidates) = _fold_of(frame), candidate_of(frame)
    if fold is None or {"epsilon", "delta"} & parameters_of(frame):
        return None
    n_fits = fold[1] * n_candidates
    n_scores = n_fits * (2 if frame.get("return_train_score") else 1)
    if any(getattr(one.get("self"), "refit", False) for one in locals_of(tools, SEARCH)):
        n_fits += 1
    return SearchAround(fold[0] == candidate == 0, n_scores, n_fits, scorers_of(frame))


def _fold_of(frame: Mapping[str, Any]) -> tuple[int, int] | None:
    """Place of the fitted fold, 0 for the first alone, and number of folds; None if unknown."""
    if sizes := frame.get("train_test_proportions"):  # of learning_curve, which cuts the folds
        return int(frame.get("train") is not sizes[0][0]), len(sizes)
    return frame.get("split_progress") or getattr(_dealt(frame.get("train")), "place", None)


def refuse_mixed_rows(tools: Sequence[Tool]) -> None:
    """Refuse a charge by a tool of scikit-learn that repeats rows, or moves values between them."""
    if locals_of(tools, *MIXING):
        raise BudgetError(
            "This tool of scikit-learn draws rows several times, or moves values from one row "
            "to another, so that a change of one row changes several: what a fit or score "
            "costs would protect nobody. Nothing was charged for it. Fit the estimator itself, "
            "or choose by PrivateSearchCV."
        )


def _dealt(rows: object) -> FoldRows | None:
    """Fold that a splitter dealt, also as the view of all of it that scikit-learn makes."""
    for one in (rows, getattr(rows, "base", None)):
        if isinstance(one, FoldRows) and one.whose is not None:
            seen = getattr(rows, "__array_interface__", None)  # address, shape, type and strides
            return one if seen == one.__array_interface__ else None
    return None


def are_given_groups(tools: Sequence[Tool]) -> bool:
    """True where one of the `tools` was given groups."""
    for frame in locals_of(tools, SEARCH, VALIDATION):
        params = frame.get("params") or {}
        if params.get("groups", frame.get("groups")) is not None:
            return True
    return False


def _dealt_by(fold: FoldRows, person: str | None, budget_units: str) -> bool:
    """True where a fold was dealt by the persons who pay, as far as names of columns tell."""
    if person is None or fold.whose == person:
        return True
    # Labels without a name, of the fold or of those who pay, may be the same persons.
    fold_is_nameless = fold.whose == PERSON and budget_units in (PERSON, "one", "any")
    return fold_is_nameless or (person == PERSON and bool(fold.whose))
