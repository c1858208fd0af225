"""Scores of released models on units that were held out."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sktensor_dp.statistics.observed_entries import SUM_SLACK
from sktensor_dp.statistics.public_numbers import SCORE, check_number
from sktensor_dp.statistics.reading import read
from sktensor_dp.statistics.row_chunks import Units
from sktensor_dp.tensor.arrays import Floats


@dataclass(frozen=True, eq=False)
class HeldOutChunk:
    """Raw data of units that no model to be scored has seen, and the only chunk of it."""

    X: Any
    y: Any
    n_units: int
    # Rows of each unit, where units are groups of rows; they lie unit by unit.
    groups: Units | None = None

    def __len__(self) -> int:
        return self.n_units

    def __iter__(self) -> Iterator["HeldOutChunk"]:
        yield self


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Sum over units of their score, clipped to public bounds and centred on their middle.

    The score of a unit is the mean of its rows' scores, each of which is clipped.
    """

    # `score` maps (X, y) to one number for each row, computed from that row and released values
    # alone. NaN is taken for `low`.

    score: Callable[[Any, Any], Any]
    low: float
    high: float

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            check_number("a bound", bound, (-SCORE[1], SCORE[1]))
        check_number("the distance of the bounds", self.high - self.low, SCORE)

    @property
    def middle(self) -> float:
        """Middle of the bounds."""
        return self.low / 2 + self.high / 2

    @property
    def l2_sensitivity(self) -> float:
        """Largest change of the sum: one unit goes from one bound to the other."""
        return (self.high - self.low) * SUM_SLACK

    @property
    def l2_contribution(self) -> float:
        """Largest that one unit adds: it is as far from the middle as a bound is."""
        return self.l2_sensitivity / 2

    # Of one number.
    l1_sensitivity, l1_contribution = l2_sensitivity, l2_contribution

    def total(self, chunk: HeldOutChunk) -> Floats:
        """Sum of the scores of a chunk, about the middle."""
        n_rows = chunk.n_units if chunk.groups is None else len(chunk.groups.of_rows)
        if n_rows == 0:
            return np.zeros(1)  # models refuse what has no rows
        # Whether anything overflows or warns may depend on one unit.
        with np.errstate(all="ignore"):
            found = self._found(chunk)
            # The original message would quote what is none.
            scores = read(
                lambda: np.asarray(found, dtype=np.float64), "The score",
                lambda message: "Scoring must return numbers.",
            )  # fmt: skip
        if scores.shape != (n_rows,):
            # How many rows there are may be private.
            raise ValueError(
                "Scoring must return one number for each held-out row, in an array of as many."
            )
        scores = np.where(np.isnan(scores), self.low, scores)
        half = self.high / 2 - self.low / 2
        centred = np.clip(np.clip(scores, self.low, self.high) - self.middle, -half, half)
        if chunk.groups is not None:
            # A mean may leave the bounds by its rounding, which grows with its rows.
            centred = np.clip(chunk.groups.means(centred), -half, half)
        return np.array([math.fsum(centred.tolist())])

    def _found(self, chunk: HeldOutChunk) -> Any:
        """What the score says of a chunk; it may be a caller's, and warn."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.score(chunk.X, chunk.y)
