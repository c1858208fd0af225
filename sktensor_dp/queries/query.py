"""Interface of queries over raw data, and the public numbers they may use."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.arrays import Floats

Range = tuple[float, float]
# Norms that contributions are clipped to. Norms below are so small beside them that it does
# not matter how few digits they have.
LIMIT: Range = (1e-120, 1e140)
# Of a ball of samples, whose third moments have its sixth power as a square; and the largest
# change of a tensor's entry.
RADIUS: Range = (1e-45, 1e45)
# Of the width of a range of values; values are within a hundred times the larger.
HALF: Range = (1e-60, 1e60)
# Sizes of the bounds of a score, and of their distance: squares of widths of values.
SCORE: Range = (1e-125, 1e125)
# Relative error of single precision and of long sums, with room to spare.
NORM_SLACK = 1 + 1e-4
# Sensitivities of sums are this much larger than proved: it pays for rounding in them.
SUM_SLACK = 1 + 1e-6


class Summand(Protocol):
    """Statistic that is summed over chunks."""

    def total(self, chunk: Any) -> NDArray[np.float64]:
        """Sum of the contributions of the units in a chunk."""


class Query(Summand, Protocol):
    """A sum over units of contributions with a proved bound."""

    # The parameters of a query are public. Its answer on a chunk is the sum of the units'
    # contributions, so chunks add up. Its sensitivities bound the distance of two contributions:
    # how far replacing one unit can move the sum over all chunks. Where units may come and go, the
    # query bounds the norm of a contribution too, by `l2_contribution` and `l1_contribution`: how
    # far one unit more or less can move the sum.

    @property
    def l2_sensitivity(self) -> float:
        """L2 norm, in the mechanism's coordinates, of the largest change of the sum."""

    @property
    def l1_sensitivity(self) -> float:
        """L1 norm of the largest change of the sum; infinity where no bound is proved."""


class Chunks(Protocol):
    """Raw data that can be read several times, a chunk of units at a time."""

    @property
    def n_units(self) -> int:
        """Number of units; for the curator alone where it is private."""

    def __iter__(self) -> Any:
        """Yield the chunks, in the form their queries expect."""


class Source(Protocol):
    """Raw data that lies wherever it lies, and adds up there."""

    apart: bool  # whether the data has to be asked where it is, instead of read here

    @property
    def n_units(self) -> int:
        """Number of units; for the curator alone where it is private."""

    def sum(self, query: Any) -> Any:
        """Sum over all units of their contributions to a query, each counted once."""


class Bounded:
    """Contributions of units within norms that the query states; how far two may be apart."""

    # Largest L2 distance of two contributions over the largest norm of one.
    farthest: ClassVar[float]

    def _largest_norms(self) -> tuple[float, float]:
        """Largest L2 norm of a contribution, and L1 norm; infinity where no bound is proved."""
        raise NotImplementedError

    @property
    def l2_contribution(self) -> float:
        """Largest L2 norm of a contribution."""
        return self._largest_norms()[0]

    @property
    def l1_contribution(self) -> float:
        """Largest L1 norm of a contribution."""
        return self._largest_norms()[1]

    @property
    def l2_sensitivity(self) -> float:
        """Largest L2 distance of two contributions."""
        return self.farthest * self.l2_contribution

    @property
    def l1_sensitivity(self) -> float:
        """Largest L1 distance of two contributions, by the triangle inequality."""
        return 2 * self.l1_contribution

    @classmethod
    def sensitivity_of(cls, limit: float, order: int = 2, neighbours: str = "replace_one") -> float:
        """Largest distance of two contributions of a norm, or of one from 0."""
        if neighbours == "add_remove":
            return limit
        return (cls.farthest if order == 2 else 2.0) * limit


class NonNegative(Bounded):
    """Contributions at no obtuse angle, such as those without negative numbers."""

    farthest = math.sqrt(2)


class Signed(Bounded):
    """Contributions of any sign: two may be opposite."""

    farthest = 2.0


def norms_within(limit: float, order: int) -> tuple[float, float]:
    """L2 and L1 norms of what has a norm of an order within a limit: L1 norms bound L2 norms."""
    return limit, limit if order == 1 else math.inf


class NormBins(NonNegative):
    """Numbers of units by bins of a norm between edges; too small and too large go to the ends."""

    edges: Floats

    def _largest_norms(self) -> tuple[float, float]:
        return 1.0, 1.0

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges)
        if edges.ndim != 1 or len(edges) < 2 or not np.isfinite(edges).all():
            raise ValueError(f"edges must be two or more finite numbers, got shape {edges.shape}.")
        if not (edges[1:] > edges[:-1]).all():
            raise ValueError("edges must increase.")

    def counted(self, norms: Floats) -> Floats:
        """Numbers of norms in each bin."""
        n_bins = len(self.edges) - 1
        bins = np.searchsorted(self.edges, norms, side="left") - 1
        return np.bincount(np.clip(bins, 0, n_bins - 1), minlength=n_bins).astype(np.float64)


@dataclass(frozen=True)
class UnitCount:
    """The number of units, to which each contributes 1 whatever its rows hold."""

    # Replacing a unit does not change it: there it is public, and never released.
    l2_sensitivity = l1_sensitivity = 0.0
    l2_contribution = l1_contribution = 1.0

    def total(self, chunk: Any) -> NDArray[np.float64]:
        """Units of a chunk: of rows, or of a list of units."""
        number = chunk.units.n if hasattr(chunk, "units") else len(chunk)
        return np.array([float(number)])


@dataclass(frozen=True, eq=False)
class Product:
    """Parts of ``total(chunk) @ V``, for a query that multiplies without forming its matrix."""

    # Asked for under `epsilon=inf` alone, in the place of a query that was admitted.

    query: Any
    V: NDArray[np.float64]

    def total(self, chunk: Any) -> NDArray[np.float64]:
        """The parts of a chunk's product, with a column more than V."""
        found = np.zeros((len(self.V), self.V.shape[1] + 1))
        self.add_to(found, chunk)
        return found

    def add_to(self, found: NDArray[np.float64], chunk: Any) -> None:
        """Add them to those of other chunks, in place."""
        self.query.add_products(chunk, self.V, found)


def check_number(name: str, value: Any, allowed: Range, *, infinite: bool = False) -> None:
    """Refuse a number outside a range; NaN is outside any."""
    low, high = allowed
    if low <= value <= high or (infinite and value == math.inf):
        return
    raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}.")


def check_array(name: str, array: Any, largest: float, *, least: float | None = None) -> None:
    """Refuse an array with numbers that are not finite, or too large."""
    array, low = np.asarray(array), -largest if least is None else least
    # NaN fails both comparisons.
    if array.size and not (array.min() >= low and array.max() <= largest):
        raise ValueError(
            f"{name} must hold numbers from {low:g} to {largest:g}; an array of shape "
            f"{array.shape} holds others."
        )
