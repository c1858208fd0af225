"""Composition of a report's releases: a tree, and the cost to one unit in all of it."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Literal, get_args

from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost

Kind = Literal["releases", "sequence", "parallel", "overlapping", "selection", "conversion"]
# More kinds of costs than this are covered by one that is at least each of them.
MOST_COSTS = 16

Divergence = Callable[[float], float]


@dataclass(frozen=True)
class ReleaseRecord:
    """One release of a fit.

    Attributes
    ----------
    name : str
        Its name in the catalogue of releases.
    description : str
        What was released, in words.
    sensitivity : float
        How far one unit can move the statistic, in the mechanism's norm.
    sigma : float
        Standard deviation of the noise along an orthonormal coordinate; 0
        without noise.
    mu, epsilon, delta : float
        Cost of each use.
    uses : int
        How often it was made.
    mechanism : str
        Law of the noise.
    """

    name: str
    description: str
    sensitivity: float
    sigma: float
    mu: float
    epsilon: float
    delta: float
    uses: int
    mechanism: str

    @property
    def cost(self) -> PrivacyCost:
        """Cost of each use."""
        return PrivacyCost(self.mu, self.epsilon, self.delta)


@dataclass(frozen=True)
class Part:
    """Releases on some of the units, beside those on others."""

    role: str  # "batch", "fit", "score", "refit" or "trial"
    n_units: int  # that it reads
    of: "Composition"  # its releases
    times: int = 1  # number of parts like it, each on other units


@dataclass(frozen=True)
class Composition:
    """One node of the tree.

    ``"releases"``: each may read every unit. ``"sequence"``: parts, each of which may read
    every unit. ``"parallel"``: a unit is in one part. ``"overlapping"``: in some of them, see
    `memberships`. ``"selection"``: the best of a secret number of trials like its only part.
    ``"conversion"``: its only part holds for neighbours that add or remove a unit, the whole
    for those that replace one.
    """

    kind: Kind
    rows: tuple[ReleaseRecord, ...] = ()
    unused: tuple[PlannedRelease, ...] = ()  # paid for and not made
    parts: tuple[Part, ...] = ()
    # For every kind of unit, in how many parts of which role it is: pairs of role and number.
    # Kinds that are in fewer parts of every role than another are left out.
    memberships: tuple[tuple[tuple[str, int], ...], ...] = ()
    n_trials: float = 1.0  # expected number of trials of a selection
    epsilon: float = 0.0  # that the selection satisfies
    delta: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind must be one of {get_args(Kind)}.")
        if (self.kind == "releases") == bool(self.parts):
            raise ValueError("a node holds either releases or parts.")
        if self.kind in ("selection", "conversion") and len(self.parts) != 1:
            raise ValueError(f"a {self.kind} is of one part.")
        if (self.kind == "overlapping") != bool(self.memberships):
            raise ValueError("memberships are told where parts overlap.")
        there_are: Counter[str] = Counter()
        for part in self.parts:
            there_are[part.role] += part.times
        for role, count in (pair for kind in self.memberships for pair in kind):
            if not 1 <= count <= there_are[role]:
                raise ValueError("a unit is in no more parts than there are.")

    @property
    def spent(self) -> list[tuple[PrivacyCost, int]]:
        """Costs of its own releases, made or not, and how often each is spent."""
        releases: tuple[ReleaseRecord | PlannedRelease, ...] = (*self.rows, *self.unused)
        return [(release.cost, release.uses) for release in releases]

    def all_rows(self) -> tuple[ReleaseRecord, ...]:
        """Every release of the tree; equal ones that follow each other are uses of one."""
        rows = list(self.rows)
        for part in self.parts:
            inner = part.of.all_rows()
            if len(inner) == 1:
                inner = (replace(inner[0], uses=inner[0].uses * part.times),)
            rows += inner
        return merged(rows) if self.kind == "parallel" else tuple(rows)

    def epsilon_at(self, delta: float) -> float:
        """Smallest epsilon so that all of it is (epsilon, delta)-DP; may be infinite."""
        return max(cost.epsilon_at(delta) for cost in unit_costs(self))

    def beside(self, n_units: int, later: "Composition", n_later: int) -> "Composition":
        """Return both, made on units of their own; equal batches are counted."""
        # Of one kind only, as `later` is one batch.
        ours = self.kind == "parallel" and all(part.role == "batch" for part in self.parts)
        parts = self.parts if ours else (Part("batch", n_units, self),)
        last, new = parts[-1], Part("batch", n_later, later)
        if (last.n_units, last.of) == (new.n_units, new.of):
            new, parts = Part("batch", n_later, later, last.times + 1), parts[:-1]
        return Composition("parallel", parts=(*parts, new))


def merged(rows: Iterable[ReleaseRecord]) -> tuple[ReleaseRecord, ...]:
    """Rows of which equal ones that follow each other are uses of one."""
    alike = groupby(rows, key=lambda row: replace(row, uses=0))
    return tuple(replace(row, uses=sum(one.uses for one in same)) for row, same in alike)


def unit_costs(node: Composition) -> tuple[PrivacyCost, ...]:
    """Costs of which each unit has one at most."""
    if node.kind == "releases":
        return (_sum(node.spent),)
    if node.kind == "selection":
        return (PrivacyCost(epsilon=node.epsilon, delta=node.delta),)
    own = [(part, unit_costs(part.of)) for part in node.parts]
    if node.kind == "conversion":
        return _largest(_of_two(cost) for cost in own[0][1])
    if node.kind == "sequence":
        return _combined([_repeated(costs, part.times) for part, costs in own])
    if node.kind == "parallel":
        return _largest(cost for _, costs in own for cost in costs)
    of_role = role_costs(node)
    return _largest(cost for kind in node.memberships for cost in membership_costs(of_role, kind))


def role_costs(node: Composition) -> dict[str, tuple[PrivacyCost, ...]]:
    """Costs to a unit of one part of each role."""
    found: dict[str, list[PrivacyCost]] = defaultdict(list)
    for part in node.parts:
        found[part.role] += unit_costs(part.of)
    return {role: _largest(costs) for role, costs in found.items()}


def membership_costs(
    of_role: Mapping[str, Sequence[PrivacyCost]], membership: Iterable[tuple[str, int]]
) -> tuple[PrivacyCost, ...]:
    """Costs to a unit that is in so many parts of each role."""
    return _combined([_repeated(of_role[role], count) for role, count in membership])


def zcdp_rho(node: Composition) -> float | None:
    """Rho of zero-concentrated differential privacy; None where none is implied."""
    # mu-GDP is mu**2 / 2, and pure epsilon epsilon**2 / 2 (Bun & Steinke 2016).
    return _added(node, lambda mu: mu * mu / 2, lambda epsilon: epsilon * epsilon / 2)


def renyi_bound(node: Composition, order: float) -> float | None:
    """Epsilon of Rényi differential privacy at an order; None where none is implied."""
    return _added(
        node,
        lambda mu: order * (mu * mu / 2),
        lambda epsilon: min(epsilon, order * (epsilon * epsilon / 2)),
    )


def _added(node: Composition, of_mu: Divergence, of_epsilon: Divergence) -> float | None:
    """A divergence that adds up over releases that see a unit."""
    if node.kind in ("selection", "conversion"):
        return None
    if node.kind == "releases":
        if any(cost.delta > 0 and uses for cost, uses in node.spent):
            return None
        return _fsum(uses * (of_mu(c.mu) + of_epsilon(c.epsilon)) for c, uses in node.spent if uses)
    values = [_added(part.of, of_mu, of_epsilon) for part in node.parts]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    if node.kind == "sequence":
        return _fsum(v * part.times for v, part in zip(known, node.parts, strict=True))
    if node.kind == "parallel":
        return max(known)
    of_role: dict[str, float] = defaultdict(float)
    for value, part in zip(known, node.parts, strict=True):
        of_role[part.role] = max(of_role[part.role], value)
    return max(_fsum(of_role[role] * n for role, n in kind) for kind in node.memberships)


def _sum(costs: Iterable[tuple[PrivacyCost, int]]) -> PrivacyCost:
    """Compose costs that are spent several times each."""
    # 0 * inf is NaN.
    spent = [(cost, uses) for cost, uses in costs if uses > 0]
    return PrivacyCost(
        math.sqrt(_fsum(uses * (cost.mu * cost.mu) for cost, uses in spent)),
        _fsum(uses * cost.epsilon for cost, uses in spent),
        _fsum(uses * cost.delta for cost, uses in spent),
    )


def _fsum(values: Iterable[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def _of_two(cost: PrivacyCost) -> PrivacyCost:
    """Cost of replacing one unit, where adding or removing one has the given cost."""
    if cost.delta == 0:
        return PrivacyCost(2 * cost.mu, 2 * cost.epsilon)
    if cost.mu > 0:
        raise ValueError("a failure probability beside Gaussian noise cannot be converted.")
    factor = 1 + math.exp(cost.epsilon) if cost.epsilon < 700 else math.inf
    return PrivacyCost(0.0, 2 * cost.epsilon, min(1.0, factor * cost.delta))


def _repeated(costs: Sequence[PrivacyCost], times: int) -> tuple[PrivacyCost, ...]:
    """Costs of parts that a unit is in several of, each at most one of the given."""
    if times > 1:
        costs = [_cover(costs)]
    return tuple(_sum([(cost, times)]) for cost in costs)


def _combined(lists: Sequence[Sequence[PrivacyCost]]) -> tuple[PrivacyCost, ...]:
    """Sums of one cost of each list."""
    if math.prod(map(len, lists)) > MOST_COSTS:
        lists = [[_cover(costs)] for costs in lists]
    return _largest(_sum((cost, 1) for cost in chosen) for chosen in product(*lists))


def _largest(costs: Iterable[PrivacyCost]) -> tuple[PrivacyCost, ...]:
    """Costs that no other is at least as large as, in order."""
    different = sorted(set(costs), key=lambda cost: cost.amounts, reverse=True)
    if len(different) > MOST_COSTS:
        return (_cover(different),)
    kept: list[PrivacyCost] = []
    for cost in different:
        if not any(_covers(other, cost) for other in kept):
            kept.append(cost)
    return tuple(kept)


def _cover(costs: Sequence[PrivacyCost]) -> PrivacyCost:
    return PrivacyCost(*map(max, zip(*(cost.amounts for cost in costs), strict=True)))


def _covers(large: PrivacyCost, small: PrivacyCost) -> bool:
    return all(a >= b for a, b in zip(large.amounts, small.amounts, strict=True))
