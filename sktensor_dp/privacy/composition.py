"""Composition of a report's releases as a tree, and its cost to one unit."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, product
from typing import Literal

from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost

Kind = Literal["releases", "sequence", "parallel", "selection"]
# A node with more possible costs keeps one that covers them all.
MOST_COSTS = 16


@dataclass(frozen=True)
class ReleaseRecord:
    """Release of a fit in reports: one noisy answer, or several of equal cost.

    Attributes
    ----------
    name, description : str
        Name in the catalogue of releases, and what was released, in words.
    sensitivity : float
        How far one unit can move the statistic, in the mechanism's norm.
    sigma, mechanism : float, str
        Standard deviation of the noise along an orthonormal coordinate (of spherical Laplace noise
        ``sensitivity / epsilon``, its mean length per dimension), and its law.
    mu, epsilon, delta : float
        Cost of each use.
    uses : int
        Number of times that it was made.
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
        """Cost of making the release once."""
        return PrivacyCost(self.mu, self.epsilon, self.delta)


@dataclass(frozen=True)
class Part:
    """Part of a composition, on all or some of the units, with its releases."""

    role: str  # "batch", "step", "fit", "score" or "trial"
    n_units: int  # number of units that it reads
    composition: "Composition"  # tree of its releases
    times: int = 1  # number of parts like it, each on other units


@dataclass(frozen=True)
class Composition:
    """Node of the tree that says how releases compose, from which a unit's cost is computed."""

    # "releases": a leaf; each release may read every unit. "sequence": each part may read every
    # unit. "parallel": each unit is in one part. "selection": the best of a secret number of
    # trials; its only part is one trial.

    kind: Kind
    rows: tuple[ReleaseRecord, ...] = ()
    unused: tuple[PlannedRelease, ...] = ()  # paid for and not made
    parts: tuple[Part, ...] = ()
    n_trials: float = 1.0  # expected number of trials of a selection
    epsilon: float = 0.0  # that the selection satisfies
    delta: float = 0.0

    @property
    def spent(self) -> list[tuple[PrivacyCost, int]]:
        """Pairs (cost, uses) of this node's own releases, made or only paid for."""
        releases: tuple[ReleaseRecord | PlannedRelease, ...] = (*self.rows, *self.unused)
        return [(release.cost, release.uses) for release in releases]

    def all_rows(self) -> tuple[ReleaseRecord, ...]:
        """Releases of the whole tree in order; equal ones of batches in a row are merged."""
        rows = list(self.rows)
        for part in self.parts:
            rows += [
                replace(row, uses=row.uses * part.times) for row in part.composition.all_rows()
            ]
        return merged(rows) if self.kind == "parallel" else tuple(rows)

    def epsilon_at(self, delta: float) -> float:
        """Smallest epsilon at which the whole is (epsilon, delta)-DP; may be infinite."""
        return max(cost.epsilon_at(delta) for cost in unit_costs(self))

    def beside(self, n_units: int, later: "Composition", n_later: int) -> "Composition":
        """Parallel composition with `later` on `n_later` other units; equal batches merge."""
        # Only batches are joined, as `later` is a batch.
        is_of_batches = self.kind == "parallel" and {part.role for part in self.parts} <= {"batch"}
        parts = self.parts if is_of_batches else (Part("batch", n_units, self),)
        last, new = parts[-1], Part("batch", n_later, later)
        # A batch equal to the last one adds one to its `times`.
        if (last.n_units, last.composition) == (new.n_units, new.composition):
            new, parts = Part("batch", n_later, later, last.times + 1), parts[:-1]
        return Composition("parallel", parts=(*parts, new))


def merged(rows: Iterable[ReleaseRecord]) -> tuple[ReleaseRecord, ...]:
    """Merge equal rows that follow each other into one with the sum of their uses."""
    alike = groupby(rows, key=lambda row: replace(row, uses=0))
    return tuple(replace(row, uses=sum(equal.uses for equal in run)) for row, run in alike)


def unit_costs(node: Composition) -> tuple[PrivacyCost, ...]:
    """Possible costs to one unit; the true cost is within one of them, it is not known which."""
    if node.kind == "releases":
        return (PrivacyCost.total(node.spent),)
    if node.kind == "selection":
        return (PrivacyCost(epsilon=node.epsilon, delta=node.delta),)
    costs_of_parts = [unit_costs(part.composition) for part in node.parts]
    if node.kind == "sequence":
        pairs = zip(costs_of_parts, node.parts, strict=True)
        return _combined([_repeated(costs, part.times) for costs, part in pairs])
    return _largest(chain.from_iterable(costs_of_parts))  # "parallel"


def _repeated(costs: Sequence[PrivacyCost], times: int) -> tuple[PrivacyCost, ...]:
    """Possible costs to a unit in `times` parts, each of which costs at most one of `costs`."""
    if times > 1:  # parts may cost different ones: take one that covers all
        costs = [cover(costs)]
    return tuple(PrivacyCost.total([(cost, times)]) for cost in costs)


def _combined(lists: Sequence[Sequence[PrivacyCost]]) -> tuple[PrivacyCost, ...]:
    """Possible costs of composing one cost from each list, without those that others cover."""
    if math.prod(map(len, lists)) > MOST_COSTS:
        lists = [[cover(costs)] for costs in lists]
    return _largest(PrivacyCost.total((cost, 1) for cost in costs) for costs in product(*lists))


def _largest(costs: Iterable[PrivacyCost]) -> tuple[PrivacyCost, ...]:
    """Costs that no other covers, largest first; one that covers all if they are too many."""
    different = sorted(set(costs), key=lambda cost: cost.amounts, reverse=True)
    if len(different) > MOST_COSTS:
        return (cover(different),)
    kept: list[PrivacyCost] = []
    for cost in different:
        if not any(cover([other, cost]) == other for other in kept):
            kept.append(cost)
    return tuple(kept)


def cover(costs: Sequence[PrivacyCost]) -> PrivacyCost:
    """Smallest cost that is at least each of the given, in mu, epsilon and delta."""
    return PrivacyCost(*map(max, zip(*(cost.amounts for cost in costs), strict=True)))
