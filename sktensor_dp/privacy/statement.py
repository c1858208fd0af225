"""What a budget is, what is spent of it and on what: for people and for programs."""

import html
import json
import math
from dataclasses import dataclass
from typing import Any

from sktensor_dp.privacy.ledger import LedgerEntry
from sktensor_dp.privacy.shares import budget_shares

__all__ = ["Statement"]

HEAD = ["when", "fit", "estimator", "release", "unit", "uses"]
COSTS = ["mu", "epsilon", "delta"]
NUMBERS = ["sensitivity", "sigma", *COSTS, "share"]
LEGEND = (
    "share: of the budget, all uses together; of its mu^2 for Gaussian releases, of its epsilon "
    "for others"
)


@dataclass(frozen=True)
class Statement:
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

    @property
    def summary(self) -> str:
        """Total and budget in one sentence."""
        fits = len({entry.fit for entry in self.entries})
        return (
            f"{_printable(self.scope)}: epsilon {self.spent:.6g} of {self.epsilon:g} is spent at "
            f"delta {self.delta:g}, by {fits} {'fit' if fits == 1 else 'fits'}"
        )

    @property
    def where(self) -> str:
        """Which ledger this is: its file."""
        return "ledger in memory" if self.path is None else f"ledger {_printable(self.path)}"

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
                "unit": entry.unit,
                "uses": entry.uses,
                "sensitivity": entry.sensitivity,
                "sigma": entry.sigma,
                "mu": entry.cost.mu,
                "epsilon": entry.cost.epsilon,
                "delta": entry.cost.delta,
                "share": share,
            }
            for entry, share in zip(self.entries, shares, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects; infinity as the string ``"inf"``."""

        def finite(value: Any) -> Any:
            return str(value) if isinstance(value, float) and not math.isfinite(value) else value

        return {
            "scope": self.scope,
            "path": self.path,
            "epsilon": finite(self.epsilon),
            "delta": self.delta,
            "spent": finite(self.spent),
            "entries": [
                {name: finite(value) for name, value in row.items()} for row in self.rows()
            ],
        }

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas; install it with: pip install pandas"
            ) from error
        frame = pd.DataFrame(self.rows(), columns=HEAD + NUMBERS)
        frame["when"] = pd.to_datetime(frame["when"], utc=True)
        return frame

    def _table(self) -> list[list[str]]:
        def text(name: str, value: Any) -> str:
            # A release has one kind of cost; the others are not 0 but not asked for.
            if value is None or (name in COSTS and value == 0):
                return ""
            if name == "share":
                return f"{value:.1%}"
            return f"{value:.4g}" if name in NUMBERS else _printable(str(value))

        return [HEAD + NUMBERS] + [[text(*cell) for cell in row.items()] for row in self.rows()]

    def __str__(self) -> str:
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        left = {"when", "estimator", "release", "unit"}
        lines = [
            "  ".join(
                cell.ljust(width) if name in left else cell.rjust(width)
                for name, cell, width in zip(table[0], row, widths, strict=True)
            ).rstrip()
            for row in table
        ]
        return "\n".join([self.summary, *lines, *([LEGEND] if self.entries else [])])

    def _repr_html_(self) -> str:
        head, *body = self._table()

        def cells(row: list[str], tag: str) -> str:
            return "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)

        rows = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in body)
        return (
            f"<div><p><strong>{html.escape(self.summary)}</strong></p>"
            f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>{rows}</tbody></table>"
            + (f"<p>{html.escape(LEGEND)}</p></div>" if self.entries else "</div>")
        )


def _printable(text: str) -> str:
    """Names in a file may hold anything; terminals act on control characters."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
