"""Scores of released models on held-out units, and fractions of rows that match a test."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sktensor_dp.checks.errors import call_unquoted
from sktensor_dp.data.sums import SUM_SLACK
from sktensor_dp.data.units import Chunks, Units
from sktensor_dp.queries.laws import GAUSSIAN, LAPLACE
from sktensor_dp.queries.query import SCORE, Norms, Signed, check_number
from sktensor_dp.tensor.arrays import Floats


@dataclass(frozen=True, eq=False)
class HeldOutChunk(Chunks):
    """Held-out rows `X` with targets `y`, unit by unit, as one chunk."""

    X: Any
    y: object
    units: Units
    n: int | None = None  # public number of units, of which some may have no rows

    @property
    def n_units(self) -> int:  # type: ignore[override]
        """Number of units."""
        return self.units.n if self.n is None else self.n

    def __iter__(self) -> Iterator["HeldOutChunk"]:
        yield self


@dataclass(frozen=True, eq=False)
class HeldOutScores(Signed):
    """Sum over units of the mean score, less the middle, of rows clipped to [`low`, `high`]."""

    name, family = "held_out_scores", "scores"
    description = "mean score of a released model over held-out units, clipped to public bounds"
    laws = (GAUSSIAN, LAPLACE)

    # `score` maps (X, y) to one number for each row, computed from its unit's rows and released
    # values only. NaN is replaced by `low`.

    score: Callable[[object, object], object]
    low: float
    high: float

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            check_number("a bound", bound, (-SCORE[1], SCORE[1]))
        check_number("the distance of the bounds", self.high - self.low, SCORE)

    @property
    def middle(self) -> float:
        """Middle of the bounds, which is subtracted from the scores."""
        return self.low / 2 + self.high / 2

    def _largest_norms(self) -> Norms:
        # A clipped score is at most this far from the middle.
        half = (self.high - self.low) * SUM_SLACK / 2
        return Norms(l2=half, l1=half)

    def total(self, chunk: Any) -> Floats:
        """Sum over the units of `chunk` of their clipped scores minus the middle, of shape (1,)."""
        n_rows = int(chunk.units.starts[-1])
        if n_rows == 0:
            return np.zeros(1)  # models refuse what has no rows
        # Whether a warning occurs may depend on one unit.
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            returned = self.score(chunk.X, chunk.y)
            # The original message could quote data.
            scores = call_unquoted(
                lambda: np.asarray(returned, dtype=np.float64), "The score",
                lambda message: "Scoring must return numbers.",
            )  # fmt: skip
        if scores.shape != (n_rows,):
            # The number of rows may be private.
            raise ValueError(
                "Scoring must return one number for each held-out row, in an array of as many."
            )
        scores = np.where(np.isnan(scores), self.low, scores)
        half = self.high / 2 - self.low / 2
        centred = np.clip(np.clip(scores, self.low, self.high) - self.middle, -half, half)
        # Clip again: rounding may carry a mean of many rows out of the bounds.
        means = np.clip(chunk.units.means(centred), -half, half)
        return np.array([math.fsum(means.tolist())])


@dataclass(frozen=True, eq=False)
class MatchingRows(Signed):
    """Sum over units of the fraction of their rows that match, minus one half, for each test.

    A number from 0 to 1 may stand in the place of a test, such as a length relative to a bound.
    """

    name, family = "matching_rows", "scores"
    description = (
        "fraction of a unit's rows that match public lists and bounds; its length, clipped, on a "
        "logarithmic scale from 0 to 1"
    )
    laws = (GAUSSIAN, LAPLACE)
    middle: ClassVar[float] = 0.5  # is subtracted from the fractions

    # Reads a `HeldOutChunk` whose `X` (n_rows, n_tests) says which rows match, or has numbers from
    # 0 to 1.

    n_tests: int

    def __post_init__(self) -> None:
        # Number of columns whose rows are tested at once.
        most_tests = 10_000
        check_number("n_tests", self.n_tests, (1, most_tests))

    def _largest_norms(self) -> Norms:
        # A fraction is at most one half away from the middle.
        half = SUM_SLACK / 2
        return Norms(l2=math.sqrt(self.n_tests) * half, l1=self.n_tests * half)

    def total(self, chunk: HeldOutChunk) -> Floats:
        """Sum over the units of `chunk` of their fractions minus one half, of shape (n_tests,)."""
        centred = [chunk.units.means(matches) - self.middle for matches in chunk.X.T]
        return np.array([math.fsum(fractions.tolist()) for fractions in centred])
