"""What a budget is, what is spent of it and on what: for people and for programs."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC
from typing import Any

from sktensor_dp.privacy.ledger import LedgerEntry
from sktensor_dp.privacy.shares import budget_shares
from sktensor_dp.privacy.tables import Shown, Table, as_frame, finite, printable

HEAD = ["when", "fit", "estimator", "release", "unit", "uses"]
TEXTS = ("when", "estimator", "release", "unit")
COSTS = ["mu", "epsilon", "delta"]
NUMBERS = ["sensitivity", "sigma", *COSTS, "share"]
LEGEND = (
    "share: of the budget, all uses together; of its mu^2 for Gaussian releases, of its epsilon "
    "for others"
)
# Who scores each fold by itself, and what a sum of such charges does not say.
SCORER = "PrivateScorer"
FOLDS = (
    "Each score was charged for the rows that it was given. Over folds the total is a guarantee if "
    "nobody decides in which fold others are, as with PrivateKFold; with GroupKFold, which goes by "
    "sizes of groups, or with StratifiedKFold it protects nobody."
)


@dataclass(frozen=True, repr=False)
class Statement(Shown):
    """The state of one budget.

    Attributes
    ----------
    scope : str
        Name of the data set.
    epsilon, delta : float
        Budget.
    spent : float
        Composed epsilon at ``delta``.
    entries : tuple of LedgerEntry
        Every charge.
    path : str or None
        Absolute path of the file it is kept in; None in memory.

    Examples
    --------
    >>> print(Statement("survey", 2.0, 1e-6, 0.5, ()))
    survey: epsilon 0.5 of 2 is spent at delta 1e-06, by 0 fits
    when  fit  estimator  release  unit  uses  sensitivity  sigma  mu  epsilon  delta  share
    """

    scope: str
    epsilon: float
    delta: float
    spent: float
    entries: tuple[LedgerEntry, ...]
    path: str | None = None

    _page = "budget.html"

    @property
    def summary(self) -> str:
        """Total and budget in one sentence."""
        fits = len({entry.fit for entry in self.entries})
        return (
            f"{printable(self.scope)}: epsilon {self.spent:.6g} of {self.epsilon:g} is spent at "
            f"delta {self.delta:g}, by {fits} {'fit' if fits == 1 else 'fits'}"
        )

    @property
    def where(self) -> str:
        """Which ledger this is: its file."""
        return "ledger in memory" if self.path is None else f"ledger {printable(self.path)}"

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per planned release as plain Python objects."""
        costs = [(entry.cost, entry.uses) for entry in self.entries]
        shares = budget_shares(costs, self.epsilon, self.delta)
        return [
            {
                "when": None if entry.when is None else entry.when.isoformat(timespec="seconds"),
                "fit": entry.fit,
                "estimator": entry.spender,
                "release": entry.release,
                "unit": entry.protects,
                "uses": entry.uses,
                "sensitivity": entry.sensitivity,
                "sigma": entry.sigma,
                **asdict(entry.cost),
                "share": share,
            }
            for entry, share in zip(self.entries, shares, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects; infinity as the string ``"inf"``."""
        return finite(
            {
                "scope": self.scope,
                "path": self.path,
                "epsilon": self.epsilon,
                "delta": self.delta,
                "spent": self.spent,
                "entries": self.rows(),
            }
        )

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=2)

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
        whens = [None if e.when is None else e.when.astimezone(UTC) for e in self.entries]
        rows = [{**row, "when": when} for row, when in zip(self.rows(), whens, strict=True)]
        return as_frame(rows, HEAD + NUMBERS, backend)

    def _table(self) -> Table:
        def text(name: str, value: Any) -> str:
            # A release has one kind of cost; the others are not 0 but not asked for.
            if value is None or (name in COSTS and value == 0):
                return ""
            if name == "share":
                return f"{value:.1%}"
            return f"{value:.4g}" if name in NUMBERS else printable(str(value))

        rows = [[text(*cell) for cell in row.items()] for row in self.rows()]
        notes = [LEGEND] if self.entries else []
        if any(entry.spender == SCORER for entry in self.entries):
            notes.append(FOLDS)
        return Table(self.summary, HEAD + NUMBERS, rows, notes, TEXTS)
