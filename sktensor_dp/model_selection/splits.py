"""Which units are fitted and which are held out, at public positions or by secret coins."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, ShuffleSplit, check_cv

from sktensor_dp.estimator.parameters import Number, shown
from sktensor_dp.privacy.secret_parts import secret_halves, secret_parts

__all__ = ["Integers", "Splits", "check_parts", "public_splits", "secret_splits"]

Integers = NDArray[np.intp]
Split = tuple[Integers, Integers]

MOST_FOLDS = 10_000

GENERATED = (
    "cv must be None, an int, a splitter such as KFold(5), or a list of (train, test) of "
    "public positions. A generator, such as split(X, y) of a splitter returns, is refused: "
    "positions that were chosen by labels would tell of these."
)


@dataclass(frozen=True, eq=False)
class Splits:
    """Training and held-out units of every split of a search.

    Attributes
    ----------
    pairs : tuple of (training units, held-out units)
        By their places.
    uses : tuple of (int, int)
        In how many fits and in how many scores a unit may be; public.
    """

    pairs: tuple[Split, ...]
    uses: tuple[tuple[int, int], ...]

    @property
    def several(self) -> bool:
        """Whether the model of none is kept."""
        return len(self.pairs) > 1

    @property
    def memberships(self) -> tuple[tuple[tuple[str, int], ...], ...]:
        """In how many fits and scores a unit may be, largest numbers only."""
        found = set(self.uses)
        largest = [
            (a, b) for a, b in found if not any(c >= a and d >= b for c, d in found - {(a, b)})
        ]
        return tuple(
            tuple((role, count) for role, count in (("fit", a), ("score", b)) if count)
            for a, b in sorted(largest, reverse=True)
        )


def public_splits(cv: Any, test_size: float, n_units: int, random_state: Any) -> Splits:
    """Split by positions, which are chosen without looking at any unit."""
    if hasattr(cv, "__next__"):
        raise ValueError(GENERATED)
    if cv is None:
        cv = ShuffleSplit(1, test_size=test_size, random_state=random_state)
    elif isinstance(cv, int):
        cv = KFold(cv, shuffle=True, random_state=random_state)
    # A splitter is shown the number of units and nothing else.
    parts = check_cv(cv).split(np.zeros((n_units, 1)))
    pairs = [(_positions(train, n_units), _positions(test, n_units)) for train, test in parts]
    if not pairs or any(train.size == 0 or test.size == 0 for train, test in pairs):
        raise ValueError(f"cv must leave rows on both sides of every split of {n_units}.")
    fits, scores = np.zeros(n_units, dtype=int), np.zeros(n_units, dtype=int)
    for train, test in pairs:
        np.add.at(fits, train, 1)
        np.add.at(scores, test, 1)
    uses = np.unique(np.stack([fits, scores], axis=1), axis=0)
    return Splits(tuple(pairs), tuple((int(a), int(b)) for a, b in uses))


def check_parts(cv: Any) -> None:
    """Refuse splits by positions where units come and go."""
    if cv is not None and not Number(2, MOST_FOLDS, integer=True).accepts(cv):
        raise ValueError(
            f"cv must be None or an int from 2 to {MOST_FOLDS} where neighbours='add_remove': a "
            "unit that is added or removed would move others to other positions, so each goes to "
            f"a part by a secret coin of its own. Got {shown(cv)}. Nothing was charged."
        )


def secret_splits(cv: int | None, test_size: float, n_units: int) -> Splits:
    """Split by a secret coin for each unit; parts may be empty, and their sizes are private."""
    if cv is None:
        held_out = secret_halves(n_units, test_size)
        return Splits((_apart(held_out, 1),), ((1, 0), (0, 1)))
    folds = secret_parts(n_units, int(cv))
    return Splits(tuple(_apart(folds, fold) for fold in range(int(cv))), ((int(cv) - 1, 1),))


def _apart(parts: Integers, held_out: int) -> Split:
    return np.flatnonzero(parts != held_out), np.flatnonzero(parts == held_out)


def _positions(rows: Any, n_units: int) -> Integers:
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.intp)
    # A row that is there twice would count twice.
    return np.unique(np.arange(n_units)[rows])
