"""A paper's claim in words, what was measured, and whether that is what the claim says."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Claim", "closeness", "graded", "plus_minus", "short"]

YES, PARTLY, NO = "reproduced", "in part", "not reproduced"


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes
    ----------
    source : str
        Theorem, figure or section.
    words : str
        What it says.
    measured : str
        The numbers found here.
    verdict : str
        "reproduced", "in part" or "not reproduced".
    """

    source: str
    words: str
    measured: str
    verdict: str


def graded(holds: Iterable[bool]) -> str:
    """Verdict on a claim of several parts."""
    parts = list(holds)
    return YES if all(parts) else PARTLY if any(parts) else NO


def closeness(exponent: float, error: float, paper: float, slack: float = 0.1) -> bool:
    """Tell if an exponent is the paper's within two standard errors and a slack.

    The slack is for the logarithms that the theorems leave open, over the decades drawn here.
    """
    return abs(exponent - paper) <= 2 * error + slack


def plus_minus(value: float, error: float) -> str:
    return f"{short(value)} ± {short(error, 1)}"


def short(value: float, digits: int = 2) -> str:
    """Number of few digits, written as in the tables: .53, −1.2, 4,900."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "not reached"
    if value < 0:
        return "−" + short(-value, digits)
    rounded = float(f"{value:.{digits}g}")
    text = f"{rounded:,.0f}" if rounded >= 1000 else f"{rounded:g}"
    return text.replace("e-0", "e-").removeprefix("0") or "0"
