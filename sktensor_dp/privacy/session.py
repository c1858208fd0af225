"""The session that holds the raw data of one fit, and charges before it computes or releases."""

import math
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sktensor_dp.data.sums import excess
from sktensor_dp.data.units import Chunks
from sktensor_dp.data.value_range import ValueRange
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.catalogue import CATALOGUE
from sktensor_dp.privacy.composition import Composition, ReleaseRecord
from sktensor_dp.privacy.mechanisms import Mechanism, deviation_of, sigma_of
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.privacy.partition_selection import PartitionSelection
from sktensor_dp.privacy.payer import NOBODY, REPORT, Payer
from sktensor_dp.privacy.plan import COUNT, PlannedRelease, PrivacyCost, ReleasePlan, fraction_of
from sktensor_dp.privacy.report import PLANNED, PrivacyReport
from sktensor_dp.queries.query import Product, Query, UnitCount
from sktensor_dp.tensor.arrays import Floats

if TYPE_CHECKING:
    from sktensor_dp.privacy.ledger import Receipt


# A released count errs by fewer deviations than this, for Gaussian and for Laplace noise, except
# with a probability below 1e-340.
FARTHEST, FARTHEST_PURE = 40.0, 600.0
LARGEST_UNIT_COUNT = 2**53


@dataclass(frozen=True)
class _Admitted:
    """Release that was admitted, paid for and recorded: how its noise is drawn."""

    mechanism: Mechanism | PartitionSelection
    cost: PrivacyCost
    sensitivity: float
    sigma: float

    @property
    def is_exact(self) -> bool:
        """True where the cost is infinite, so that there is no noise."""
        return math.isinf(self.mechanism.law.strength(self.cost))


class Session(AbstractContextManager["Session"]):
    """Custodian of one fit's raw data: ``with Session(chunks, plan, payer) as ask``.

    Entering it charges the whole plan, before any query is computed. ``ask(query)`` then answers
    each planned query with the noise that was paid for; nothing else leads from raw to public but
    `exact_product`, for epsilon=inf. Leaving it drops the data; what was charged stays charged.
    """

    # With neighbours="add_remove" the number of units is private. The plan, made by
    # `ReleasePlan.charged`, then has the count and one undivided rest, which is divided among the
    # releases once `count_units` has released the number.

    def __init__(
        self,
        chunks: Chunks,
        plan: ReleasePlan,
        payer: Payer = NOBODY,
        *,
        unit: str = "unit",
        neighbours: str = "replace_one",
        verbose: bool = False,
    ) -> None:
        self._payer, self._unit, self._neighbours = payer, unit, neighbours
        # The plan as charged; and the plan in use, whose rest is divided after the count.
        self._charged = self._plan = plan
        # Made before the charge: under `unsafe_recorded_releases` it raises an error in every
        # process but the one that records.
        self._noise = NoiseSource()
        self._chunks: Chunks | None = chunks  # until the session is closed
        self._is_open = False
        self._verbose = verbose
        # Divisor of sums, and bound on the number of their terms. With a private number both are 1
        # until it is released.
        self.n_units = self._most_units = 1 if self.number_is_private else chunks.n_units
        self._records: list[ReleaseRecord] = []
        self._residual_notes: dict[str, None] = {}
        self._left = {release.name: release.uses for release in plan.planned}
        self._given_back: tuple[PlannedRelease, ...] = ()
        self._moved: dict[str, None] = {}  # names of releases made otherwise than planned
        self._receipt: Receipt | None = None
        self.warnings: list[Warning] = []  # to be issued once what was asked is published

    def __enter__(self) -> Self:
        """Charge the whole plan; from here on queries are answered."""
        if self._is_open or self._chunks is None:
            raise RuntimeError("a session is entered once.")
        self._receipt = self._payer.charge(self._plan, self._neighbours, self._unit)
        self._is_open = True
        REPORT.set(self.report)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._payer.add_charge_to(error, self.report())
        self._chunks, self._is_open = None, False

    def __call__(self, query: Query, pooled: int = 1, paid_by: type[Query] | None = None) -> Answer:
        """Answer a planned query with noise; `pooled` planned uses pay for it together.

        They are uses of the query itself, or of the query class `paid_by`.
        """
        release = self._admit(query, pooled, paid_by)
        # Cap on released means, in sensitivities of sums; larger ones are noise and could overflow.
        largest_released = 2.0**53
        mechanism, sensitivity, cost = release.mechanism, release.sensitivity, release.cost
        if isinstance(mechanism, PartitionSelection):
            totals = self._sum(query)
            keys, value = mechanism.release(totals, sensitivity, cost, self._noise, query)
            return Answer(value, release.sigma, sensitivity, cost, self.n_units, keys)
        value = self._noisy_mean(query, mechanism, release)
        # A mean is at most about n_units times its sensitivity. A tensor that is itself the data
        # exceeds that by TensorChunk.largest_ratio at most.
        limit = largest_released * sensitivity * self.n_units
        np.clip(value, -limit, limit, out=value)
        sigma = deviation_of(mechanism, release.sigma, value, query)
        return Answer(value, sigma, sensitivity, cost, self.n_units)

    @property
    def number_is_private(self) -> bool:
        """True where the number of units is private, and is released first."""
        return self._neighbours == "add_remove"

    @property
    def of_persons(self) -> bool:
        """True if a unit is a person, with several rows."""
        return self._unit == "person"

    @property
    def is_pure(self) -> bool:
        """True if delta is 0: all costs are pure epsilons."""
        return self._plan.delta == 0

    @property
    def is_exact(self) -> bool:
        """True if epsilon is infinite: no noise is added."""
        return math.isinf(self._plan.epsilon)

    @property
    def ticket(self) -> str | None:
        """Proof of payment that the next batch of a stream shows to the ledger."""
        # Without a ledger there is no ticket: later batches with a ledger are charged.
        if self._payer.accountant is None:
            return None
        return self._payer.ticket if self._receipt is None else self._receipt.ticket

    @property
    def is_paid(self) -> bool:
        """True if an accountant pays."""
        return self._payer.accountant is not None

    def left(self, query: type[Query]) -> int:
        """Number of planned uses of a query that are left."""
        return self._left.get(query.name, 0)

    def give_back(self, query: type[Query]) -> None:
        """Give the planned uses of a query that are left back to the budget, for later fits."""
        # A forked process has a copy of the plan: it can neither ask nor give back.
        self._noise.process.check()
        self._open_chunks()
        if (uses := self.left(query)) == 0:
            return
        release = PlannedRelease(query.name, self._plan.cost_of(query.name), uses)
        # Taken from the plan first: nothing can ask for it once the ledger has it back.
        self._left = {**self._left, query.name: 0}
        self._given_back = (*self._given_back, release)
        if self._receipt is not None:
            self._receipt.give_back(release)

    def count_units(self, plan: ReleasePlan) -> None:
        """If the number of units is private, release it and divide the charge as in `plan`."""
        if not (self.number_is_private and plan.planned):
            return
        counted = self(UnitCount())
        farthest = FARTHEST_PURE if self.is_pure else FARTHEST
        self.n_units = min(max(round(float(counted.value[0])), 1), LARGEST_UNIT_COUNT)
        self._most_units = self.n_units + math.ceil(farthest * counted.sigma) + 1
        self.divide(plan)

    def divide(self, plan: ReleasePlan) -> None:
        """Divide the charge among the releases of `plan`, which may follow from `n_units`.

        Replaces an earlier division. If the number of units is public, nothing is divided, and
        `plan` must be the plan that was charged.
        """
        if not self.number_is_private:
            if plan != self._plan:
                raise RuntimeError("the plan must be the charged one where n_units is public.")
            return
        if self._given_back or [row.name for row in self._records] != [COUNT]:
            raise RuntimeError("a charge is divided after the count, and before other releases.")
        self._plan = self._charged.after_count(plan)
        self._left = {release.name: release.uses for release in self._plan.planned}
        self._left[COUNT] = 0

    def public(self, name: str) -> Any:
        """Public fact of the data, as its class declares it, such as the shape of a tensor."""
        chunks = self._open_chunks()
        if name not in type(chunks).public:
            raise RuntimeError(
                f"{name!r} is not among the public facts of {type(chunks).__name__}."
            )
        return getattr(chunks, name)

    def clip_values(self, bounds: tuple[float, float]) -> None:
        """Clip the data's values to a released range, for all queries to come."""
        chunks = self._open_chunks()
        assert isinstance(chunks, ValueRange)
        self._chunks = chunks.within(bounds)

    def exact_product(self, query: Any) -> Callable[[Floats], Floats]:
        """Products ``V -> M @ V`` with a matrix M without noise (``epsilon=inf`` only)."""
        # Only while the session is open. Products are faster than forming the matrix.
        if not self._admit(query).is_exact:
            raise RuntimeError(f"release {query.name!r} has a finite cost and needs noise.")
        # The query computes `M @ V` from the mean over units of what each contributes.
        return lambda V: query.product_of_parts(self._sum(Product(query, V)) / self.n_units, V)

    def report(self, notes: tuple[str, ...] = ()) -> PrivacyReport:
        """Report of the releases so far, at the cost of the whole plan; `notes` are added to it."""
        # The guarantee counts what was given back, as giving back may depend on released values.
        rows, unused = tuple(self._records), self._plan.unused(self._left) + self._given_back
        return PrivacyReport(
            epsilon=self._plan.cost.epsilon_at(self._plan.delta),
            delta=self._plan.delta,
            unit=self._unit,
            neighbours=self._neighbours,
            # A fit without releases does not show a private number.
            n_units=self.n_units if rows or not self.number_is_private else 0,
            seeded=self._noise.exposed,
            composition=Composition("releases", rows=rows, unused=unused),
            notes=(
                *self._residual_notes, *notes, *self._notes_on_moved(),
                *self._notes_on_given_back(),
            ),
        )  # fmt: skip

    def _notes_on_moved(self) -> list[str]:
        """List of a sentence on releases that uses of others, or several of their own, paid for."""
        made = Counter[str]()
        for row in self._records:
            made[row.name] += row.uses
        counts = [
            f"{one.name} {one.uses} and {made[one.name]}"
            for one in self._plan.planned
            if one.name in self._moved and one.uses != made[one.name]
        ]
        return [f"{PLANNED}{', '.join(counts)}. The guarantee counts the plan."] if counts else []

    def _notes_on_given_back(self) -> list[str]:
        """Sentences on planned releases that were not made, and gave their cost back."""
        whole = self._plan.cost
        return [
            f"{one.name} was planned and not released ({one.uses} of the uses): "
            f"{fraction_of(one.cost, one.uses, whole) or 0:.0%} of the budget was not spent. The "
            "guarantee counts it; an accountant keeps it for later fits."
            for one in self._given_back
        ]

    def _admit(self, query: Query, uses: int = 1, paid_by: type[Query] | None = None) -> _Admitted:
        """Check a query against catalogue and plan, use up what pays for it, and record it.

        `uses` planned uses of the query class `paid_by`, by default its own, pay for it.
        """
        # Before the query is computed: all its uses are taken in one step that nothing can
        # interrupt. A forked process has a copy of the plan and could spend it again.
        self._noise.process.check()
        entry = CATALOGUE.get(getattr(query, "name", ""))
        if entry is None or not isinstance(query, entry.query):
            raise RuntimeError(f"a {type(query).__name__} is not in the catalogue of releases.")
        paying = (paid_by or entry.query).name
        cost = self._cost_of(query.name, paying, uses)
        mechanism = entry.pure if cost.epsilon > 0 else entry.gaussian
        if mechanism is None:
            raise RuntimeError(f"release {query.name!r} has no law for a pure epsilon.")
        sensitivity = released_sensitivity(
            mechanism, query, self.n_units, self._neighbours, self._most_units
        )
        sigma = sigma_of(mechanism.law, sensitivity, cost)
        release = _Admitted(mechanism, cost, sensitivity, sigma)
        if not release.is_exact:
            check_sensitivity(sensitivity, query)
        if mechanism.residual and not release.is_exact:
            self._residual_notes[mechanism.residual] = None
        self._record(query, release, paying, uses)
        return release

    def _cost_of(self, name: str, paying: str, uses: int) -> PrivacyCost:
        """Cost of `uses` uses of the planned release `paying`, which pay for the query `name`."""
        # Which release is made may depend on earlier ones: costs, fixed before, compose.
        costs = {release.name: release.cost for release in self._plan.planned}
        # A query that another release pays for is planned, too: its planned cost tells whether its
        # noise spends mu or epsilon.
        planned_cost = costs.get(name)
        if planned_cost is None or not 1 <= uses <= self._left.get(paying, 0):
            raise RuntimeError(
                f"release {name!r}, paid by {paying!r}, is not in the plan, or used up."
            )
        cost = costs[paying] if uses == 1 else PrivacyCost.total([(costs[paying], uses)])
        if paying != name and (cost.delta > 0 or (cost.epsilon > 0) != (planned_cost.epsilon > 0)):
            raise RuntimeError(f"{name!r} has another kind of cost than {paying!r} has left.")
        return cost

    def _record(self, query: Query, release: _Admitted, paying: str, uses: int) -> None:
        """Take `uses` planned uses of `paying` for one release; report and announce it."""
        row = ReleaseRecord(
            name=query.name, description=query.description, sensitivity=release.sensitivity,
            sigma=release.sigma, uses=1, mechanism=release.mechanism.law.id, **asdict(release.cost),
        )  # fmt: skip
        before, left = self._records, self._left[paying] - uses
        # A release like the last one counts as one more use of it.
        if before and replace(before[-1], uses=1) == row:
            row, before = replace(row, uses=before[-1].uses + 1), before[:-1]
        moved = self._moved
        if paying != query.name or uses > 1:
            moved = {**moved, paying: None, query.name: None}
        # In one statement, so that an interrupt leaves all changed, and the report right, or none.
        self._left, self._records, self._moved = {**self._left, paying: left}, [*before, row], moved
        if self._verbose:
            self._print_line(row.name)
        if self._receipt is not None:
            self._receipt.announce(row.name, row.sensitivity, row.sigma)

    def _print_line(self, release: str) -> None:
        """Write the number of a release, of all that are planned, to standard error."""
        # All public. Times are not printed, as a release may take longer for some data.
        count = sum(planned.uses for planned in self._plan.planned)
        number = count - sum(self._left.values())
        line = f"[{self._payer.spender}] release {number} of {count}: {release}"
        with suppress(OSError, ValueError):  # a closed stream must not lose a paid fit
            print(line, file=sys.stderr, flush=True)

    def _noisy_mean(self, query: Query, mechanism: Mechanism, release: _Admitted) -> Floats:
        """Mean of a query with the noise that was paid for."""
        # Whether numpy warns or raises, as callers may have set it to do, may depend on one unit.
        with np.errstate(all="ignore"):
            value: Floats = self._sum(query)
            # No one else holds the sum: dividing in place saves a copy.
            value /= self.n_units
            # Queries keep contributions finite. If one did not, an answer at the end of the grid's
            # range would show it: replace such numbers by 0.
            if not release.is_exact and not math.isfinite(float(value.sum())):
                np.nan_to_num(value, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
            return mechanism.release(value, release.sensitivity, release.cost, self._noise, query)

    def _open_chunks(self) -> Chunks:
        """Raw data; RuntimeError before the session is entered, and once it is closed."""
        if self._chunks is None:
            raise RuntimeError("the session is closed: its data has been dropped.")
        if not self._is_open:
            raise RuntimeError("the session is not open yet.")
        return self._chunks

    def _sum(self, query: Query | Product) -> Any:
        """Exact sum of a query over all units, for callers that add noise, or without privacy."""
        chunks = self._open_chunks()
        with suppress(MemoryError):
            if chunks.apart:  # their source adds up where the partitions lie
                return chunks.sum(query)
            sums = type(query).sums()
            for chunk in chunks:
                sums.add(query.total(chunk))
            return sums.value()
        # numpy's message names the array's shape, which may depend on one unit. Raised outside of
        # `except`, this error has no context.
        raise MemoryError("there is too little memory for this release.")


def released_sensitivity(
    mechanism: Mechanism | PartitionSelection,
    query: Query,
    n_units: int,
    neighbours: str,
    most_units: int,
) -> float:
    """Sensitivity of a query's mean over `n_units`, raised for rounding of up to `most_units`.

    Numbers of units, and totals by private keys, are no means: theirs is that of the sum.
    """
    of_sum = query.sensitivity(mechanism.law.norm, neighbours)
    if isinstance(mechanism, PartitionSelection) or isinstance(query, UnitCount):
        return of_sum
    # With half the sensitivity, the same rounding error is twice as large relative to it.
    terms = 2 * most_units if neighbours == "add_remove" else most_units
    return of_sum * excess(terms) / n_units


def check_sensitivity(sensitivity: float, query: Query) -> None:
    """Raise RuntimeError for a sensitivity so small or large that noise cannot be scaled by it."""
    # Range of sensitivities: statistics are divided by it and noise is multiplied by it without
    # overflow or loss of digits.
    least_sensitivity, largest_sensitivity = 1e-200, 1e200
    if not least_sensitivity <= sensitivity <= largest_sensitivity:
        raise RuntimeError(
            f"a {type(query).__name__} with a sensitivity of {sensitivity:g} cannot be released."
        )
