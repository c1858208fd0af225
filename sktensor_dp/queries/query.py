"""Interface of queries over raw data, and the public numbers they may use."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.data.sums import AccurateSum, Chunk, RunningSum
from sktensor_dp.queries.laws import GAUSSIAN, LAPLACE, Law, Norm
from sktensor_dp.tensor.arrays import Floats

Range = tuple[float, float]
# Edges of histograms of norms and values: twenty a decade, among them round numbers such as 5 and
# 100, where scales end. The end bins are open.
SIZE_EDGES = np.array([float(f"{10 ** (i / 20):.1f}e{k}") for k in range(-7, 9) for i in range(20)])
# Range of the limits that contributions are clipped to. Norms far below the limit may lose digits,
# which does not matter beside it.
LIMIT: Range = (1e-120, 1e140)
# Range of the radius of a ball of samples, whose cube is squared in third moments, and of the
# largest change of a tensor's entry.
RADIUS: Range = (1e-45, 1e45)
# Range of half the width of a range of values.
HALF: Range = (1e-60, 1e60)
# Range of the bounds of a score and of their distance: scores may be squared widths of values.
SCORE: Range = (1e-125, 1e125)


# Kinds of raw data that queries read; for a query that reads several, that of its proof's example.
Family = Literal[
    "units", "texts", "counts", "shares", "samples", "tensors", "entries", "persons", "scores"
]
# Coordinates in which the bounds of a sum hold and noise is added: entries, orthonormal coordinates
# of a symmetric array or matrix, or the histogram of pairs (``privacy/mechanisms.py``).
Coordinates = Literal["entries", "symmetric", "matrix", "pairs"]
# Queries by name: every step at which raw data can become public. `CATALOGUE` in
# ``privacy/catalogue.py`` adds how noise is drawn.
REGISTERED: "dict[str, type[Query]]" = {}


class Query:
    """Sum over units (persons, documents or rows) with proved bounds on one unit's change."""

    # Parameters of a query are public. A class with a name of its own is registered, and can be
    # released; ``docs/proofs/<name>.md`` proves its bounds. Where units may come and go, it bounds
    # the norm of a contribution too, by `l2_contribution` and `l1_contribution`.

    name: ClassVar[str]  # as used in plans and reports
    family: ClassVar[Family]
    description: ClassVar[str]  # the statistic in words; a mean over units, or a sum by private key
    laws: ClassVar[tuple[Law, ...]]  # for a cost in mu; and, if there is one, for a pure epsilon
    coordinates: ClassVar[Coordinates] = "entries"
    sums: ClassVar[Callable[[], RunningSum]] = AccurateSum  # makes the sum of totals of chunks

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            if cls.name in REGISTERED:
                raise TypeError(f"two queries are named {cls.name!r}.")
            REGISTERED[cls.name] = cls

    @property
    def l2_sensitivity(self) -> float:
        """Largest L2 change of the sum if one unit is replaced, in its `coordinates`."""
        raise NotImplementedError

    @property
    def l1_sensitivity(self) -> float:
        """Largest L1 change of the sum if one unit is replaced; infinity without a proved bound."""
        return math.inf

    @property
    def l2_contribution(self) -> float:
        """Largest L2 norm of one unit's contribution."""
        raise NotImplementedError

    @property
    def l1_contribution(self) -> float:
        """Largest L1 norm of one unit's contribution; infinity without a proved bound."""
        return math.inf

    @property
    def ambient_dimension(self) -> int | None:
        """Dimension of the space of which the sum is an orthonormal projection; None for all."""
        return None

    def total(self, chunk: Any) -> Any:
        """Sum of the contributions of the units in `chunk`; totals of chunks add up."""
        raise NotImplementedError

    def sensitivity(self, norm: Norm, neighbours: str) -> float:
        """Sensitivity of the sum in a norm: to replacing a unit, or to adding or removing one."""
        if neighbours == "add_remove":
            return float(self.l2_contribution if norm == "l2" else self.l1_contribution)
        # A relation that an estimator describes in words (`fit_tensor`) replaces something too.
        return float(self.l2_sensitivity if norm == "l2" else self.l1_sensitivity)


class Norms(NamedTuple):
    """Largest norms of one unit's contribution; infinity without a proved bound."""

    l2: float
    l1: float = math.inf


class Bounded(Query):
    """Query that bounds the norm of one unit's contribution, by `_largest_norms`."""

    # Largest L2 distance of two contributions, divided by the largest norm of one.
    farthest: ClassVar[float]

    def _largest_norms(self) -> Norms:
        """Largest norms of one unit's contribution."""
        raise NotImplementedError

    @property
    def l2_contribution(self) -> float:
        """Largest L2 norm of one unit's contribution."""
        return self._largest_norms().l2

    @property
    def l1_contribution(self) -> float:
        """Largest L1 norm of one unit's contribution."""
        return self._largest_norms().l1

    @property
    def l2_sensitivity(self) -> float:
        """Largest L2 distance of two contributions."""
        return self.farthest * self.l2_contribution

    @property
    def l1_sensitivity(self) -> float:
        """Largest L1 distance of two contributions, bounded by twice the largest L1 norm."""
        return 2 * self.l1_contribution

    @classmethod
    def sensitivity_of(cls, limit: float, order: int = 2, neighbours: str = "replace_one") -> float:
        """Sensitivity of a sum of contributions whose norm of `order` 1 or 2 is at most `limit`."""
        if neighbours == "add_remove":
            return limit
        return (cls.farthest if order == 2 else 2.0) * limit


class NonNegative(Bounded):
    """Contributions with inner products >= 0, so that two of norm c are at most sqrt(2) c apart."""

    farthest = math.sqrt(2)


class Signed(Bounded):
    """Contributions of any sign: two of norm c may be opposite, 2 c apart."""

    farthest = 2.0


def norms_within(limit: float, order: int) -> Norms:
    """Bounds on the norms of a vector whose norm of `order` is at most `limit`."""
    return Norms(l2=limit, l1=limit if order == 1 else math.inf)


class NormBins(NonNegative):
    """Histogram of units by a norm between increasing `edges`, with open end bins."""

    edges: Floats

    def _largest_norms(self) -> Norms:
        return Norms(l2=1.0, l1=1.0)

    def histogram(self, norms: Floats) -> Floats:
        """Number of `norms` in each bin, as floats of shape (n_edges - 1,)."""
        n_bins = len(self.edges) - 1
        return np.bincount(bins_of(norms, self.edges), minlength=n_bins).astype(np.float64)


def bins_of(values: Floats, edges: Floats) -> NDArray[np.intp]:
    """Bin i of each value in ``(edges[i], edges[i + 1]]``, edges increasing; end bins are open."""
    return np.clip(np.searchsorted(edges, values, side="left") - 1, 0, len(edges) - 2)


@dataclass(frozen=True)
class UnitCount(Query):
    """Number of units (protected persons, documents or rows); each contributes 1."""

    name, family = "unit_count", "units"
    description = "number of units, where one more or less is hidden: all else is divided by it"
    laws = (GAUSSIAN, LAPLACE)

    # Replacing a unit does not change the number, which is public then and never released.
    l2_sensitivity = l1_sensitivity = 0.0
    l2_contribution = l1_contribution = 1.0

    def total(self, chunk: Chunk) -> Floats:
        """Number of units in `chunk`, as an array of shape (1,)."""
        return np.array([float(chunk.n_units)])


@dataclass(frozen=True, eq=False)
class Product:
    """Sum that gives ``M @ V`` for a `query` whose total is a matrix M, without forming M."""

    # Used under `epsilon=inf` only, in place of a query that the session admitted.

    query: Any
    V: NDArray[np.float64]
    sums: ClassVar[Callable[[], RunningSum]] = AccurateSum

    def total(self, chunk: Any) -> NDArray[np.float64]:
        """Parts of the product for `chunk`, (n_words, n_columns + 1), for ``product_of_parts``."""
        return np.asarray(self.query.product_parts(chunk, self.V), dtype=np.float64)


def check_number(name: str, value: Any, allowed: Range, *, infinite: bool = False) -> None:
    """Raise ValueError unless `value` lies in `allowed` (low, high), or is +inf with `infinite`."""
    low, high = allowed
    if low <= value <= high or (infinite and value == math.inf):
        return
    raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}.")


def check_array(name: str, array: object, largest: float, *, least: float | None = None) -> None:
    """Raise ValueError unless `array` lies in [`least`, `largest`]; `least` None: -`largest`."""
    array, low = np.asarray(array), -largest if least is None else least
    # NaN fails both comparisons.
    if array.size and not (array.min() >= low and array.max() <= largest):
        raise ValueError(
            f"{name} must hold numbers from {low:g} to {largest:g}; an array of shape "
            f"{array.shape} holds others."
        )
