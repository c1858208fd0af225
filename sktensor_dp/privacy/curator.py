"""The custodian of raw data."""

import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.privacy.accountant import BudgetAccountant, charges_of
from sktensor_dp.privacy.calibration import spherical_spread
from sktensor_dp.privacy.composition import Composition
from sktensor_dp.privacy.mechanisms import Mechanism, edge_reached, range_reached, sigma_of
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.plan import COUNT, PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.releases import CATALOGUE, Release
from sktensor_dp.privacy.report import PrivacyReport, ReleaseRecord
from sktensor_dp.privacy.selection import PartitionSelection
from sktensor_dp.queries.query import Chunks, Product, Query, Source, UnitCount
from sktensor_dp.queries.sums import COVERED_UNITS, AccurateSum, excess

if TYPE_CHECKING:
    from sktensor_dp.privacy.ledger import Receipt

Floats = NDArray[np.float64]

# Statistics are divided by it, and noise is multiplied with it: neither overflows, nor has
# too few digits.
LEAST_SENSITIVITY, LARGEST_SENSITIVITY = 1e-200, 1e200
# Deviations of a released count, of Gaussian and of Laplace noise, that it is never off by.
FARTHEST, FARTHEST_PURE = 40.0, 600.0
LARGEST_COUNT = 2**53
# Share of a histogram beyond either end of a range that is chosen by it.
BEYOND = 0.01
# Over what one unit moves a sum by: what noise lifts beyond it tells nothing, and overflows.
LARGEST_RELEASED = 2.0**53
# How large what had no room was to be may follow from one unit: numpy names its shape.
NO_ROOM = "there is too little memory for this release. What was charged stays charged."

Kind = TypeVar("Kind", Mechanism, PartitionSelection)


@dataclass(frozen=True, eq=False)
class Noisy:
    """Released array, and the standard deviation of its noise along a coordinate."""

    value: Floats
    sigma: float


class DataCurator(AbstractContextManager["DataCurator"]):
    """Custodian of one fit's raw data: charges the plan, adds noise, drops the data."""

    # Opening it checks and charges the whole plan, before any query is computed; leaving its `with`
    # block drops the data. Between the two, its `release` methods are the only way from raw to
    # public.
    # With neighbours="add_remove" the number of units is private. The plan is then one that was
    # left open (ReleasePlan.before_count): `count` releases the number that takes its place, and
    # `continue_with` the plan that follows from it.
    # `known` is public: what questions in the words of a kind of data take for granted.
    # `charge` is False for a batch disjoint from one that the same fit was charged for: each unit
    # is in one of them (parallel composition). For one of an earlier fit its `ticket` says so.

    def __init__(
        self,
        chunks: Chunks | Source,
        plan: ReleasePlan,
        *,
        spender: str,
        unit: str,
        accountant: BudgetAccountant | None,
        neighbours: str = "replace_one",
        charge: bool = True,
        ticket: str | None = None,
        verbose: int = 0,
        progress: Callable[[str], None] | None = None,
        known: Any = None,
    ) -> None:
        # It refuses to record in another process, which is known before the charge.
        self._noise = NoiseSource()
        self._receipt: Receipt | None = None
        if accountant is not None and charge:
            self._receipt = accountant.charge(charges_of(plan, spender, unit, neighbours), ticket)
            ticket = self._receipt.ticket
        # Without a ledger there is none: a batch that comes to one later is charged.
        self.ticket = None if accountant is None else ticket
        # What sums are divided by, and at least how many terms they have. A private number is
        # in neither: only a count is released before there is another one.
        self.n_units = self._most_units = 1 if neighbours == "add_remove" else chunks.n_units
        self._chunks: Chunks | Source | None = chunks
        self._set_plan(plan)
        self.pure, self._noiseless, self._known = plan.delta == 0, math.isinf(plan.epsilon), known
        self._records: list[ReleaseRecord] = []
        self._residuals: dict[str, None] = {}
        self._spender, self._unit, self._neighbours = spender, unit, neighbours
        self._verbose, self._progress = verbose, progress

    def __exit__(self, *exc_info: Any) -> None:
        self._chunks = None

    def _set_plan(self, plan: ReleasePlan, made: tuple[PlannedRelease, ...] = ()) -> None:
        """Start on a plan; the releases `made` before it count as used up."""
        self._plan = plan
        self._left = {planned.name: planned.uses for planned in plan.releases}
        self._costs = {planned.name: planned.cost for planned in plan.releases}
        self._left.update({planned.name: 0 for planned in made})

    def count(self) -> int:
        """Release the noisy number of units, by which later sums are divided, and return it."""
        counted = self.noisy(COUNT, UnitCount())
        farthest = FARTHEST_PURE if self._plan.delta == 0 else FARTHEST
        self.n_units = min(max(round(float(counted.value[0])), 1), LARGEST_COUNT)
        self._most_units = self.n_units + math.ceil(farthest * counted.sigma) + 1
        return self.n_units

    def continue_with(self, plan: ReleasePlan) -> None:
        """Replace the open plan by one made with the released count, which may not cost more."""
        if self._left.get(COUNT) != 0:
            raise RuntimeError("the units have not been counted.")
        count, _ = self._plan.releases
        self._set_plan(self._plan.after_count(plan), made=(count,))

    def release(self, name: str, query: Query, rest_of: str | None = None) -> Floats:
        """Answer a query: its mean over units, with the noise that the plan paid for."""
        # One use of the planned release `name` pays; with `rest_of`, all that is left of that one.
        value = self._answer(query, *self._admit(name, query, Mechanism, rest_of))
        # Of a sum, not of a mean over units: a tensor that is the data may be as large.
        limit = LARGEST_RELEASED * self._records[-1].sensitivity * self.n_units
        return np.clip(value, -limit, limit, out=value)

    def noisy(self, name: str, query: Query, rest_of: str | None = None) -> Noisy:
        """Answer a query as :meth:`release` does, with the noise's deviation along a coordinate."""
        # For spherical noise it is the mean radius per dimension.
        value = self.release(name, query, rest_of)
        return Noisy(value, self._records[-1].sigma)

    def noisy_quantile(self, name: str, query: Query, edges: Floats, quantile: float) -> float:
        """Release a histogram with bins `edges`; return the edge that reaches `quantile`."""
        histogram = self.noisy(name, query)
        return edge_reached(histogram.value, histogram.sigma, edges, quantile, pure=self.pure)

    def noisy_range(self, name: str, query: Query, edges: Floats) -> tuple[float, float, bool]:
        """Release a histogram; return edges beyond which a hundredth lies, True if it shows any."""
        histogram = self.noisy(name, query)
        pure, tail = self._records[-1].epsilon > 0, 0.0 if self._noiseless else BEYOND
        return range_reached(histogram.value, histogram.sigma, edges, tail, pure=pure)

    def exact_product(self, name: str, query: Any) -> Callable[[Floats], Floats]:
        """Products ``V -> M @ V`` with a matrix M without noise (``epsilon=inf`` only)."""
        # Only under `epsilon=inf`, and while the curator is open: faster than to form the matrix.
        if not self._admit(name, query, Mechanism)[2]:
            raise RuntimeError(f"release {name!r} has a finite cost and needs noise.")
        return lambda V: query.of_products(self._mean(Product(query, V)), V)

    def release_partitions(self, name: str, query: Any) -> tuple[list[str], Floats]:
        """Release totals by private key: the keys that pass a threshold, and their noisy totals."""
        mechanism, cost, _ = self._admit(name, query, PartitionSelection)
        totals, sensitivity = self._sum(query), self._records[-1].sensitivity
        return mechanism.release(totals, sensitivity, cost, self._noise, query)

    def _deviation(self, sigma: float, dimension: int) -> float:
        """Deviation along a coordinate from the last `sigma`, a radius for spherical noise."""
        return sigma * spherical_spread(dimension) if self._records[-1].epsilon > 0 else sigma

    def report(self, notes: tuple[str, ...] = ()) -> PrivacyReport:
        """Report of the releases so far, at the cost of the whole plan; `notes` are added to it."""
        rows, unused = tuple(self._records), self._plan.unused(self._left)
        return PrivacyReport(
            epsilon=self._plan.cost.epsilon_at(self._plan.delta),
            delta=self._plan.delta,
            unit=self._unit,
            neighbours=self._neighbours,
            # Of a fit that released nothing the number stays private: none is told.
            n_units=self.n_units if rows or self._neighbours != "add_remove" else 0,
            seeded=self._noise.exposed,
            composition=Composition("releases", rows=rows, unused=unused),
            notes=(*self._residuals, *notes),
        )

    def _admit(
        self, name: str, query: Any, kind: type[Kind], rest_of: str | None = None
    ) -> tuple[Kind, PrivacyCost, bool]:
        """Check a query against catalogue and plan and record it: mechanism, cost, if noiseless."""
        # Before the query is computed. Uses go in one step, after which nothing is refused: none
        # can be had twice. A forked process has a copy of what is left, and could spend it again.
        self._noise.process.check()
        entry = CATALOGUE[name]
        if not isinstance(query, entry.query):
            raise RuntimeError(f"release {name!r} takes a {entry.query.__name__}.")
        payer, uses, cost = self._payment(name, rest_of)
        mechanism = entry.pure if cost.epsilon > 0 else entry.gaussian
        if not isinstance(mechanism, kind):
            raise RuntimeError(f"release {name!r} is not made by a {kind.__name__}.")
        moved = released_sensitivity(
            mechanism, query, self.n_units, self._neighbours, self._most_units
        )
        noiseless = math.isinf(mechanism.law.strength(cost))
        sigma = sigma_of(mechanism.law, moved, cost)
        if not noiseless:
            check_sensitivity(moved, query)
        self._left[payer] -= uses
        if mechanism.residual and not noiseless:
            self._residuals[mechanism.residual] = None
        self._record(entry, mechanism.law.id, moved, sigma, cost)
        return mechanism, cost, noiseless

    def _payment(self, name: str, rest_of: str | None) -> tuple[str, int, PrivacyCost]:
        """Planned release that pays for `name`, how many of its uses are spent, and their cost."""
        # Which of two releases a part of a budget is spent on may follow from released numbers:
        # what it costs is fixed, and parts compose whatever each is chosen by.
        payer, usual = rest_of or name, self._costs.get(name)
        left = self._left.get(payer, 0)
        if usual is None or left < 1:
            raise RuntimeError(f"release {payer!r} is not in the plan, or used up.")
        if rest_of is None:
            return name, 1, usual
        cost = PrivacyCost.total([(self._costs[payer], left)])
        if cost.delta > 0 or (cost.epsilon > 0) != (usual.epsilon > 0):
            raise RuntimeError(f"{name!r} has another kind of cost than what is left of {payer!r}.")
        return payer, left, cost

    def _answer(
        self, query: Query, mechanism: Mechanism, cost: PrivacyCost, noiseless: bool
    ) -> Floats:
        """Mean of a query over units with noise; this and `release_partitions` alone read data."""
        # Checked and put on record when the query was admitted, before it is computed.
        sensitivity = self._records[-1].sensitivity
        # Whether a caller's np.seterr makes rounding warn or raise may depend on one unit.
        with np.errstate(all="ignore"):
            value = self._mean(query)
            # Queries keep contributions finite. Were one not, an error would tell, and NaN would
            # pass the box that noise is added in.
            if not noiseless and not math.isfinite(float(value.sum())):
                np.nan_to_num(value, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
            return mechanism.release(value, sensitivity, cost, self._noise, query)

    def _read(self) -> Any:
        """Raw data; RuntimeError once the curator is closed."""
        if self._chunks is None:
            raise RuntimeError("the curator is closed: its data has been dropped.")
        return self._chunks

    def _clip_values(self, bounds: tuple[float, float]) -> Any:
        """Clip the data's values to a released range, for all queries to come, and return it."""
        self._chunks = self._read().within(bounds)
        return self._chunks

    def _sum(self, query: Any) -> Any:
        """Sum of a query over all units; a MemoryError is raised anew without an array's size."""
        try:
            return self._total(query)
        except MemoryError:
            pass
        # Not in the handler, which would leave the error in the context of this one.
        raise MemoryError(NO_ROOM)

    def _total(self, query: Any) -> Any:
        """Sum of a query over all chunks, or at the source where data lies elsewhere."""
        # A source adds up where its parts lie; chunks lie in this process.
        data = self._read()
        if getattr(data, "apart", False):
            return data.sum(query)
        first = added = None
        for chunk in data:
            if first is not None and hasattr(query, "add_to"):
                query.add_to(first, chunk)
                continue
            part = query.total(chunk)
            if first is None:
                first = part
                continue
            if added is None:
                added = getattr(query, "sums", AccurateSum)()
                added.add(first)
            added.add(part)
        if first is None:
            raise ValueError("the source of chunks yielded none.")
        return first if added is None else added.value()

    def _mean(self, query: Query | Product) -> Floats:
        """Sum of a query divided by `n_units`, in place."""
        # The sum is the curator's own: dividing in place saves a copy.
        mean: Floats = self._sum(query)
        mean /= self.n_units
        return mean

    def _record(
        self, entry: Release, mechanism: str, sensitivity: float, sigma: float, cost: PrivacyCost
    ) -> None:
        """Append a release to the report, the ledger's receipt and the progress output."""
        row = ReleaseRecord(
            name=entry.name,
            description=entry.description,
            sensitivity=sensitivity,
            sigma=sigma,
            uses=1,
            mechanism=mechanism,
            **asdict(cost),
        )
        if self._verbose:
            # Public before the fit. Times are not told: a release may take longer for some data.
            count = sum(planned.uses for planned in self._plan.releases)
            number = f"release {count - sum(self._left.values())} of {count}"
            with suppress(OSError, ValueError):  # a closed stream must not lose a paid fit
                print(f"[{self._spender}] {number}: {entry.name}", file=sys.stderr, flush=True)
        if self._progress is not None:
            self._progress(entry.name)
        if self._receipt is not None:
            self._receipt.released(row.name, row.sensitivity, row.sigma)
        if self._records and replace(self._records[-1], uses=1) == row:
            row = replace(row, uses=self._records.pop().uses + 1)
        self._records.append(row)


def released_sensitivity(
    mechanism: Mechanism | PartitionSelection,
    query: Any,
    n_units: int,
    neighbours: str = "replace_one",
    most_units: int | None = None,
) -> float:
    """Sensitivity of a query's sum over `n_units`, raised for rounding of up to `most_units`."""
    of_sum = query.sensitivity(mechanism.law.norm, neighbours)
    if isinstance(mechanism, PartitionSelection) or isinstance(query, UnitCount):
        return of_sum
    most = n_units if most_units is None else most_units
    # A sum errs alike where it moves by half as much: the share of its rounding is twice as large.
    terms = 2 * most if neighbours == "add_remove" else most
    return of_sum * (excess(terms) if terms > COVERED_UNITS else 1.0) / n_units


def check_sensitivity(moved: float, query: Any) -> None:
    """Raise RuntimeError for a sensitivity so small or large that noise cannot be scaled by it."""
    if not LEAST_SENSITIVITY <= moved <= LARGEST_SENSITIVITY:
        raise RuntimeError(
            f"a {type(query).__name__} with a sensitivity of {moved:g} cannot be released."
        )
