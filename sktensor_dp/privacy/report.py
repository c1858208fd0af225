"""What a fit released and what it cost, for people and for programs."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from sktensor_dp.privacy.composition import ReleaseRecord, merged
from sktensor_dp.privacy.shares import budget_shares, kind_of_shares, percentages, written_cost
from sktensor_dp.privacy.tables import Shown, Table, as_frame, finite
from sktensor_dp.privacy.written_statement import Reported, written
from sktensor_dp.privacy.written_statement import library_version as library_version

TEXTS = ("release", "mechanism")
DISJOINT = (
    "The releases were made on disjoint batches: what one unit costs is the cost of its own "
    "batch. The caller answers for batches being disjoint."
)
PARTS = (
    "The releases were made on parts of the units that have none in common, at places that public "
    "numbers chose: what one unit costs is the cost of its own part."
)
SEVERAL = (
    "A group may be in up to {most} batches of the stream: the guarantee is that of all of them "
    "together, each of which got its share of the budget, and a group counts once in every batch "
    "that it is in. The caller answers for no group being in more."
)


def several_batches(most: int) -> tuple[str, ...]:
    """What a report says of a stream where a unit may be in so many batches."""
    return (SEVERAL.format(most=most),) if most > 1 else ()


def _shared_note(notes: Iterable[str]) -> str | None:
    """The note on how batches of a stream share units, if they do."""
    beginning = SEVERAL.partition("{")[0]
    return next((note for note in notes if note.startswith(beginning)), None)


@dataclass(frozen=True, repr=False)
class PrivacyReport(Shown, Reported):
    """The guarantee of a fitted estimator, and each release behind it.

    Attributes
    ----------
    epsilon, delta : float
        What everything the estimator exposes satisfies; ``inf`` without noise.
    unit : str
        Whose replacement the guarantee hides, such as ``"document"``.
    neighbours : str
        ``"replace_one"``: data sets that differ in one unit, equally many units.
        ``"add_remove"``: data sets of which one has one unit more. Otherwise the
        neighbours in words.
    n_units : int
        Number of units; public, or with ``"add_remove"`` the noisy count that was released.
    sampler : str
        How noise was drawn: ``"grid"``, or ``"float"`` in benchmarks.
    seeded : bool
        True if the noise was seeded: then nothing is protected.
    rows : tuple of ReleaseRecord
        One row per release.
    notes : tuple of str
        What else the guarantee rests on.
    composition : Composition or None
        How the rows add up to the guarantee; None in reports of versions that did not
        record it.

    Examples
    --------
    >>> row = ReleaseRecord("mean", "a mean", 0.1, 0.5, 0.2, 0.0, 0.0, 1, "gaussian")
    >>> report = PrivacyReport(1.0, 1e-6, "document", "replace_one", 20, "grid", False, (row,))
    >>> print(report)
    (epsilon = 1, delta = 1e-06)-differential privacy for replacing one document of 20
    release  mechanism  sensitivity  sigma   mu  epsilon  uses  share of mu^2
    mean     gaussian           0.1    0.5  0.2              1          71.4%
    """

    _page = "reference/generated/sktensor_dp.PrivacyReport.html"

    @property
    def guarantee(self) -> str:
        """The guarantee in one sentence."""
        if self.seeded:
            return "NOT PRIVATE: the noise was seeded (unsafe_seeded_noise)"
        if math.isinf(self.epsilon):
            return "epsilon: inf (no noise, not private)"
        change = f"for replacing one {self.unit} of {self.n_units}"
        if self.neighbours == "add_remove":
            change = (
                f"for adding or removing one {self.unit} of about {self.n_units}, a released count"
            )
        elif self.neighbours != "replace_one":
            change = f"between {self.neighbours}"
        text = (
            f"(epsilon = {self.epsilon:.6g}, delta = {self.delta:g})-differential privacy {change}"
        )
        if self.sampler == "float":
            text += "; floating-point noise: open to attacks on low-order digits"
        return text

    @property
    def shares(self) -> tuple[float | None, ...]:
        """Part of the guarantee that each row takes, all its uses together.

        Of ``mu ** 2`` for Gaussian noise and of epsilon for pure noise, from 0 to 1; None
        without noise. In a report on disjoint batches it is the part of their own batch;
        where a group may be in several, each use is a part of what all of these may cost.
        """
        costs = [(row.cost, row.uses) for row in self.rows]
        return tuple(budget_shares(costs, self.epsilon, self.delta))

    @property
    def shares_of(self) -> str:
        """What `shares` are parts of: ``"mu^2"``, ``"epsilon"``, or ``"budget"`` for both."""
        return kind_of_shares(row.cost for row in self.rows)

    def joined(self, later: "PrivacyReport") -> "PrivacyReport":
        """Report on two batches of a stream: parallel composition.

        Parameters
        ----------
        later : PrivacyReport
            Of units that none of the releases so far has seen; or, where both reports say in
            how many batches a group may be, that are in no more of them.

        Returns
        -------
        PrivacyReport
            The larger epsilon and delta for all units, and the rows and notes of both;
            equal rows that follow each other are counted as uses of one.
        """
        notes = self.notes + later.notes
        # Once each, how batches share units last.
        last = _shared_note(notes) or DISJOINT
        epsilon, delta = max(self.epsilon, later.epsilon), max(self.delta, later.delta)
        composition = None
        if self.composition is not None and later.composition is not None:
            composition = self.composition.beside(self.n_units, later.composition, later.n_units)
            if self.delta != later.delta:
                epsilon = composition.epsilon_at(delta)
        return replace(
            self,
            epsilon=epsilon,
            delta=delta,
            n_units=self.n_units + later.n_units,
            sampler=min(self.sampler, later.sampler),  # "float" before "grid"
            seeded=self.seeded or later.seeded,
            rows=merged((*self.rows, *later.rows)),
            notes=(*dict.fromkeys(n for n in notes if n not in (DISJOINT, last)), last),
            composition=composition,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields but the composition as plain Python objects."""
        values = asdict(replace(self, composition=None))
        del values["composition"]
        return {**values, "rows": list(values["rows"]), "notes": list(values["notes"])}

    def to_json(self) -> str:
        """Return the privacy statement: JSON that programs and authorities can check.

        Its schema, version 1, is in the package (``python -m sktensor_dp.report schema``)
        and explained in ``docs/statement.md``; infinity is written as the string
        ``"inf"``. ``python -m sktensor_dp.report check FILE`` adds it up again.
        """
        return json.dumps(finite(written(self)), indent=2)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return the rows as a table.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Of which library.

        Raises
        ------
        ImportError
            If that library is not installed.
        """
        rows = [
            {**asdict(row), "share": share}
            for row, share in zip(self.rows, self.shares, strict=True)
        ]
        return as_frame(rows, [*(field.name for field in fields(ReleaseRecord)), "share"], backend)

    def _table(self) -> Table:
        costs = ["sensitivity", "sigma", "mu", "epsilon", "uses"]
        rows = [
            [
                row.name,
                row.mechanism,
                f"{row.sensitivity:.4g}",
                f"{row.sigma:.4g}",
                *written_cost(row.cost),
                str(row.uses),
                share,
            ]
            for row, share in zip(self.rows, percentages(self.shares), strict=True)
        ]
        head = [*TEXTS, *costs, f"share of {self.shares_of}"]
        return Table(self.guarantee, head, rows, self.notes, TEXTS)
