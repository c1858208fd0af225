"""Report of a fit's releases and their costs, for people and for programs."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from sktensor_dp import __version__
from sktensor_dp.checks.display import Table, TableDisplay, cell, counted, finite, plain
from sktensor_dp.privacy.composition import Composition, Part, ReleaseRecord, cover, unit_costs
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, budget_fractions, fraction_of
from sktensor_dp.privacy.selection_cost import stop_probability, trial_cost
from sktensor_dp.queries.laws import law_of

# Privacy statement, or an object in it, as plain values.
Statement = dict[str, Any]
FORMAT, VERSION = "sktensor_dp privacy statement", 1
NOT_COVERED = {
    "running_time": "How long the fit took and how much memory it used.",
    "raw_data": "The raw data itself: who may read it, how it is stored, what else is made of it.",
    "custodian": "Whoever runs the fit, who can read the data, and the machine it runs on.",
    "error_messages": "Messages about input that is not of the documented kind.",
    "later_input": "What transform, predict or score say of data that they are given later.",
    "other_releases": "Other releases from the same data, unless one ledger counts them all, and "
    "steps before the fit that learn from it, such as StandardScaler.",
    "facts_about_everyone": "What results say about all units together, which holds of each.",
}
UNITS = {
    "document": "One document: one text, or one row of word counts.",
    "sample": "One sample: one row of numbers.",
    "entry": "One entry of a tensor. A person with several entries is protected less.",
    "person": "One person, household or other group, with all rows that are theirs.",
}
RELATIONS = {
    "replace_one": "Two data sets with equally many units that differ in one unit.",
    "add_remove": "Two data sets of which one has one unit more than the other.",
}
TEXTS = ("release", "mechanism")
NUMBERS = ("sensitivity", "sigma", "mu", "epsilon", "uses")
DISJOINT = (
    "The releases were made on disjoint batches: what one unit costs is the cost of its own "
    "batch. The caller answers for batches being disjoint."
)
# Beginning of a note on releases that the ledger lists in other numbers.
PLANNED = "Planned, as a fit's charge lists them, and made: "

# False alarm rates for which reports state the least rate of misses.
FALSE_ALARMS = (0.01, 0.05, 0.1)


@dataclass(frozen=True, repr=False)
class PrivacyReport(TableDisplay):
    """Guarantee of a fitted estimator, and the releases (noisy answers) behind it.

    Attributes
    ----------
    epsilon, delta : float
        Guarantee of all that the estimator exposes; ``inf`` without noise.
    unit : str
        Unit that the guarantee hides, such as ``"document"``.
    neighbours : str
        ``"replace_one"`` unit, or ``"add_remove"`` one; otherwise the neighbours in words.
    n_units : int
        Number of units; public, or with ``"add_remove"`` the noisy count, 0 if none was released.
        Of a stream that of all batches; of fits to several data sets the largest, or the last noisy
        one.
    seeded : bool
        True if the noise was seeded or exact values were recorded: then nothing is protected.
    composition, notes : Composition, tuple of str
        How the releases add up to the guarantee, and what else it rests on.
    rows : tuple of ReleaseRecord
        One row per release; those of equal batches of a stream are listed once.

    Examples
    --------
    >>> row = ReleaseRecord("mean", "a mean", 0.1, 0.5, 0.2, 0.0, 0.0, 1, "gaussian")
    >>> whole = Composition("releases", rows=(row,))
    >>> print(PrivacyReport(1.0, 1e-6, "document", "replace_one", 20, False, whole))
    (epsilon = 1, delta = 1e-6)-differential privacy for replacing one document of 20
    release  mechanism  sensitivity  sigma   mu  epsilon  uses  fraction of mu^2
    mean     gaussian           0.1    0.5  0.2              1          71.4%
    mu = 0.2: a test of what one document holds, with false alarms in 1%, 5%, 10%, misses at least
    98.3%, 92.5%, 86.0%.
    """

    epsilon: float
    delta: float
    unit: str
    neighbours: str
    n_units: int
    seeded: bool
    composition: Composition
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[ReleaseRecord, ...]:
        """One row per release; those of equal batches are one row with the sum of their uses."""
        return self.composition.all_rows()

    @property
    def guarantee(self) -> str:
        """Guarantee of the report in one sentence."""
        if self.seeded:
            return "NOT PRIVATE: the noise was seeded, or its releases recorded (unsafe_...)"
        if math.isinf(self.epsilon):
            return "epsilon: inf (no noise, not private)"
        change = f"for replacing one {self.unit} of {self.n_units:,}{self._in_other_data}"
        if self.neighbours == "add_remove":
            several = f" of about {self.n_units:,}, a released count" if self.n_units else ""
            change = f"for adding or removing one {self.unit}{several}"
        elif self.neighbours != "replace_one":
            change = f"between {self.neighbours}"
        numbers = f"(epsilon = {self.epsilon:.6g}, delta = {plain(self.delta)})"
        return f"{numbers}-differential privacy {change}"

    @property
    def in_brief(self) -> str:
        """Unit and guarantee in a few words, for the footer of a figure."""
        if self.seeded or math.isinf(self.epsilon):
            return "not private"
        return f"{self.units}, epsilon {self.epsilon:.4g}, delta {plain(self.delta)}"

    @property
    def units(self) -> str:
        """Number of units in words, of each data set if fits to several follow each other."""
        about = ""
        if self.neighbours == "add_remove":
            if not self.n_units:  # nothing was released, nor a count
                return f"an unknown number of {self.unit}s"
            about = "about "
        return f"{about}{counted(self.n_units, self.unit)}{self._in_other_data}"

    @property
    def _in_other_data(self) -> str:
        """Public numbers of units of the other fits, to other data, in brackets; "" without any."""
        others = {*_numbers(self.composition)} - {self.n_units}
        if not others or self.neighbours == "add_remove":  # each fit counts units with noise
            return ""
        return f" ({' and '.join(f'{n:,}' for n in sorted(others, reverse=True))} in other fits)"

    @property
    def mu(self) -> float | None:
        """Parameter of Gaussian differential privacy; None if an epsilon or delta is spent, too."""
        costs = unit_costs(self.composition)
        gaussian = all(cost.epsilon == cost.delta == 0 for cost in costs)
        return max(cost.mu for cost in costs) if gaussian else None

    def false_negative_rate(self, false_positive_rate: float) -> float:
        """Bound how often the best test for what a unit holds has to miss.

        Somebody who knows all other units tests from everything released whether one unit
        holds one thing or another.

        Parameters
        ----------
        false_positive_rate : float
            Probability, from 0 to 1, of a false alarm.

        Returns
        -------
        float
            Least probability of no alarm where there should be one. Exact for Gaussian noise alone;
            a lower bound where a delta is set aside or pure noise is used. 0 without noise.

        Examples
        --------
        >>> row = ReleaseRecord("mean", "a mean", 0.1, 0.5, 0.2, 0.0, 0.0, 1, "gaussian")
        >>> whole = Composition("releases", rows=(row,))
        >>> report = PrivacyReport(1.0, 1e-6, "document", "replace_one", 20, False, whole)
        >>> round(report.false_negative_rate(0.05), 3)
        0.926
        """
        rate = float(false_positive_rate)
        if not 0 <= rate <= 1:
            raise ValueError(f"false_positive_rate must lie in [0, 1], got {rate!r}.")
        if self.seeded or math.isinf(self.epsilon):
            return 0.0
        return min(cost.misses(rate, self.delta) for cost in unit_costs(self.composition))

    @property
    def fractions(self) -> tuple[float | None, ...]:
        """Fraction of a unit's ``mu ** 2``, or epsilon, that each row takes; None without noise.

        In a search it is the fraction of a trial's.
        """

        def of_budget(rows: tuple[ReleaseRecord, ...]) -> list[float | None]:
            costs = [(row.cost, row.uses) for row in rows]
            return budget_fractions(costs, self.epsilon, self.delta)

        if self.composition.kind == "selection":  # the cost of all trials is no sum over releases
            trial = cover(unit_costs(self.composition.parts[0].composition))
            return tuple(fraction_of(row.cost, row.uses, trial) for row in self.rows)
        if self.composition.kind != "parallel":
            return tuple(of_budget(self.rows))
        # A unit is in one part only, and bears the uses there.
        by_release: dict[ReleaseRecord, float | None] = {}
        for part in self.composition.parts:
            rows = part.composition.all_rows()
            releases = [replace(row, uses=1) for row in rows]
            by_release |= zip(releases, of_budget(rows), strict=True)
        return tuple(by_release[replace(row, uses=1)] for row in self.rows)

    @property
    def fractions_of(self) -> str:
        """Whole that `fractions` refer to: ``"mu^2"``, ``"epsilon"``, or ``"budget"`` for both.

        Of a selection among trials it is that of one trial: ``"trial's mu^2"``, for example.
        """
        pure = [row.epsilon > 0 for row in self.rows]
        of_trial = "trial's " if self.composition.kind == "selection" else ""
        if pure and all(pure) and not any(row.mu for row in self.rows):
            return f"{of_trial}epsilon"
        return of_trial + ("budget" if any(pure) else "mu^2")

    def joined(self, later: "PrivacyReport") -> "PrivacyReport":
        """Report on this and a `later` batch of a stream, on other units: parallel composition.

        Parameters
        ----------
        later : PrivacyReport
            Report on a batch of other units, which no earlier release has read.

        Returns
        -------
        PrivacyReport
            The larger delta for all units, with the epsilon that it needs, and the rows and notes
            of both.
        """
        notes = self.notes + later.notes
        epsilon, delta = max(self.epsilon, later.epsilon), max(self.delta, later.delta)
        composition = self.composition.beside(self.n_units, later.composition, later.n_units)
        if self.delta != later.delta:  # the epsilon of the smaller delta may be more than needed
            epsilon = composition.epsilon_at(delta)
        return replace(
            self, epsilon=epsilon, delta=delta, n_units=self.n_units + later.n_units,
            seeded=self.seeded or later.seeded, composition=composition,
            notes=(*dict.fromkeys(note for note in notes if note != DISJOINT), DISJOINT),
        )  # fmt: skip

    def followed_by(self, later: "PrivacyReport", delta: float | None = None) -> "PrivacyReport":
        """Report on this and a `later` fit, for a unit that is in both: sequential composition.

        Parameters
        ----------
        later : PrivacyReport
            Report on a further fit, such as topics after a vocabulary; of the same data, or of
            others in which units may be again, as in those of the next month.
        delta : float, default=None
            Delta at which epsilon is stated; by default the sum of both.

        Returns
        -------
        PrivacyReport
            One epsilon for all releases, and the larger of two public numbers of units.

        Raises
        ------
        ValueError
            If the reports protect different units.
        """
        for name in ("unit", "neighbours"):
            if (here := getattr(self, name)) != (there := getattr(later, name)):
                raise ValueError(
                    "later must be a report on another fit of the same units: its "
                    f"{name}={there!r}, where this report has {here!r}."
                )
        parts = tuple(Part("fit", fit.n_units, fit.composition) for fit in (self, later))
        whole = Composition("sequence", parts=parts)
        # A noisy count is that of the later fit, if it released one.
        counted_later = self.neighbours == "add_remove" and later.n_units
        n_units = max(later.n_units, 0 if counted_later else self.n_units)
        delta = self.delta + later.delta if delta is None else delta
        return replace(
            later, epsilon=whole.epsilon_at(delta), delta=delta, composition=whole, n_units=n_units,
            seeded=self.seeded or later.seeded,
            notes=tuple(dict.fromkeys(self.notes + later.notes)),
        )  # fmt: skip

    def to_json(self) -> str:
        """Return the privacy statement: JSON that programs and authorities can check.

        ``sktensor-dp report check FILE`` adds it up again. Infinity is the string ``"inf"``.
        """
        return json.dumps(finite(written(self)), indent=2)

    def _table(self) -> Table:
        """Table of the releases, with the guarantee as its title."""
        rows = [
            [row.name, row.mechanism, *number_cells(row, fraction)]
            for row, fraction in zip(self.rows, self.fractions, strict=True)
        ]
        head = [*TEXTS, *NUMBERS, f"fraction of {self.fractions_of}"]
        return Table(self.guarantee, head, rows, (*self._in_tests(), *self.notes), TEXTS)

    def _in_tests(self) -> list[str]:
        """Sentence on the errors of an attacker's best test."""
        if self.seeded or math.isinf(self.epsilon):
            return []
        alarms = ", ".join(f"{rate:.0%}" for rate in FALSE_ALARMS)
        rates = map(self.false_negative_rate, FALSE_ALARMS)
        missed = ", ".join(f"{percent_rounded_down(rate):.1f}%" for rate in rates)
        mu = "" if self.mu is None else f"mu = {self.mu:.3g}: "
        return [
            f"{mu}a test of what one {self.unit} holds, with false alarms in {alarms}, misses "
            f"at least {missed}."
        ]


def _numbers(node: Composition) -> Iterator[int]:
    """Yield numbers of units of the parts of a sequence."""
    for part in node.parts if node.kind == "sequence" else ():
        yield part.n_units
        yield from _numbers(part.composition)


def number_cells(row: ReleaseRecord, fraction: float | None) -> list[str]:
    """Numbers of a release, and its fraction of the budget, as text for a table."""
    return [*(cell(name, getattr(row, name)) for name in NUMBERS), cell("fraction", fraction)]


def percent_rounded_down(rate: float) -> float:
    """Percent of a rate, rounded down to a tenth."""
    return math.floor(1000 * rate + 1e-9) / 10  # 1e-9: a rounding error is not rounded down


def written(report: PrivacyReport) -> Statement:
    """Privacy statement of a report as plain Python values; infinity stays a float."""
    has_name, number = report.neighbours in RELATIONS, report.n_units
    return {
        "format": FORMAT,
        "version": VERSION,
        "library": {"name": "sktensor_dp", "version": __version__},
        "guarantee": {
            "in_words": report.guarantee,
            "protects": not report.seeded and bool(report.epsilon < math.inf),
            "epsilon": float(report.epsilon), "delta": float(report.delta), "mu": report.mu,
            "tests": [
                {"false_positive_rate": rate,
                 "false_negative_rate": report.false_negative_rate(rate)}
                for rate in FALSE_ALARMS
            ],
        },
        "unit": {
            "name": report.unit,
            "in_words": UNITS.get(report.unit, f"One {report.unit}."),
            "number": number if isinstance(number, float) else int(number),
            "number_is": "released" if report.neighbours == "add_remove" else "public",
        },
        "neighbours": {
            "relation": report.neighbours if has_name else "in_words",
            "in_words": RELATIONS[report.neighbours] if has_name else report.neighbours,
        },
        "noise": {"sampler": "grid", "seeded": report.seeded},
        "composition": _composed(report.composition),
        "notes": list(report.notes),
        "not_covered": [{"what": what, "in_words": NOT_COVERED[what]} for what in NOT_COVERED],
    }  # fmt: skip


def allowed_trial(node: Composition) -> PrivacyCost:
    """Largest cost of a trial for which the best trial keeps a selection's epsilon and delta."""
    failure = max(cost.delta for cost in unit_costs(node.parts[0].composition))
    return trial_cost(node.epsilon, node.delta, stop_probability(node.n_trials), failure)


def _composed(node: Composition) -> Statement:
    """Composition tree as plain values, with the possible costs to one unit at each node."""
    stated: Statement = {"kind": node.kind}
    if node.kind == "releases":
        (whole,) = unit_costs(node)
        stated["releases"] = [
            {
                "name": row.name, "description": row.description, "mechanism": row.mechanism,
                "norm": law_of(row.mechanism).norm, "sensitivity": row.sensitivity,
                "sigma": row.sigma, **_cost_fields(row, whole),
            }
            for row in node.rows
        ]  # fmt: skip
        stated["unused"] = [{"name": one.name, **_cost_fields(one, whole)} for one in node.unused]
    elif node.kind == "selection":
        stop = stop_probability(node.n_trials)
        stated |= {
            "expected_trials": float(node.n_trials), "stop_probability": stop,
            "epsilon": float(node.epsilon), "delta": float(node.delta),
            "trial_may_cost": asdict(allowed_trial(node)),
        }  # fmt: skip
    if node.parts:
        stated["parts"] = [
            {
                "role": part.role, "times": part.times, "units": part.n_units,
                "composition": _composed(part.composition),
            }
            for part in node.parts
        ]  # fmt: skip
        stated["units_read"] = sum(part.times * part.n_units for part in node.parts)
    stated["unit_costs"] = [asdict(cost) for cost in unit_costs(node)]
    return stated


def _cost_fields(release: ReleaseRecord | PlannedRelease, whole: PrivacyCost) -> Statement:
    """Cost, uses and fraction of a release as plain values."""
    fraction = fraction_of(release.cost, release.uses, whole)
    return {**asdict(release.cost), "uses": release.uses, "fraction": fraction}
