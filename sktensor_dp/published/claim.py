"""What a paper claims for an algorithm, what is true of it, and how callers are told."""

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, ParamSpec, Protocol, TypeVar

from sktensor_dp.exceptions import UnsoundClaimWarning

Verdict = Literal["holds", "holds if", "does not hold", "no claim"]

TOO_LARGE = (
    "The printed noise is enough for small epsilon only, and this one is beyond that. Exact "
    "composition of the same noise gives the epsilon that holds."
)
TOO_LARGE_EVIDENCE = (
    "tests/published/test_verdicts_calibration.py"
    "::test_classical_calibration_first_fails_beyond_seven"
)


@dataclass(frozen=True)
class Claim:
    """Privacy claimed in print, and the verdict.

    Attributes
    ----------
    algorithm : str
        The algorithm, with its paper and number.
    neighbours : str
        Data sets between which privacy is claimed.
    verdict : {"holds", "holds if", "does not hold", "no claim"}
        "holds if" says under which condition in `reason`, and that it is met here; "no claim"
        that the paper does not speak of privacy.
    reason : str
        Two sentences.
    evidence : str
        Test that shows it, as ``path::name``.
    counterpart : str
        What to use instead.
    epsilon, delta : float
        Guarantee claimed for the parameters in use; epsilon is NaN before a call.
    exact_epsilon : float
        Smallest epsilon that the noise as computed here gives at ``delta``, by exact
        composition; infinity where it gives none.

    Examples
    --------
    >>> printed = Claim("X (a paper)", "one document", "holds", "A. B.", "tests/t.py::t", "Y")
    >>> printed.at(1.0, 1e-6, 0.5).holds
    True

    Noise that falls short changes the verdict:

    >>> printed.at(1.0, 1e-6, 1.5).verdict
    'does not hold'
    """

    algorithm: str
    neighbours: str
    verdict: Verdict
    reason: str
    evidence: str
    counterpart: str
    epsilon: float = math.nan
    delta: float = 0.0
    exact_epsilon: float = math.inf

    @property
    def holds(self) -> bool:
        """Whether what was claimed is true of the parameters in use."""
        return self.verdict in ("holds", "holds if")

    def at(self, epsilon: float, delta: float, exact_epsilon: float = math.inf) -> "Claim":
        """Return the claim for the parameters of a call, whose noise gives `exact_epsilon`."""
        found = dataclasses.replace(self, epsilon=epsilon, delta=delta, exact_epsilon=exact_epsilon)
        if not self.holds or exact_epsilon <= epsilon:
            return found
        return dataclasses.replace(
            found, verdict="does not hold", reason=TOO_LARGE, evidence=TOO_LARGE_EVIDENCE
        )

    def __str__(self) -> str:
        claim = f"claims ({self.epsilon:g}, {self.delta:g}) for {self.neighbours}"
        if self.verdict == "no claim":
            claim = "claims no privacy"
        return (
            f"{self.algorithm}: {claim}. Verdict: {self.verdict}. {self.reason} Epsilon that "
            f"holds: {self.exact_epsilon:.4g}. Sound counterpart: {self.counterpart}."
        )


class Claimed(Protocol):
    """A result that says what it is worth."""

    @property
    def claim(self) -> Claim:
        """What was claimed and what is true."""


P = ParamSpec("P")
R = TypeVar("R", bound=Claimed)

_CLAIMS: dict[str, tuple[Claim, ...]] = {}


def claimed(*printed: Claim) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register a published function with its claims; every result has to carry one of them.

    Parameters
    ----------
    *printed : Claim
        As printed, one for each form that the function has.

    Returns
    -------
    callable
        A decorator. What it returns warns with ``UnsoundClaimWarning`` where the claim of
        the result does not hold.

    Raises
    ------
    TypeError
        On a call, if the result carries a claim that was not registered.
    """
    algorithms = {claim.algorithm for claim in printed}

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        _CLAIMS[function.__name__] = printed

        @functools.wraps(function)
        def published(*args: P.args, **kwargs: P.kwargs) -> R:
            result = function(*args, **kwargs)
            if result.claim.algorithm not in algorithms:
                raise TypeError(f"{function.__name__} must return one of its registered claims.")
            if result.claim.verdict == "does not hold":
                warnings.warn(str(result.claim), UnsoundClaimWarning, stacklevel=2)
            return result

        return published

    return decorate


def claims() -> dict[str, tuple[Claim, ...]]:
    """Return the claims of every published function, by its name.

    Returns
    -------
    dict of str to tuple of Claim
        As printed: a call adds the numbers.

    Examples
    --------
    >>> from sktensor_dp import published
    >>> [claim.verdict for claim in published.claims()["input_perturbation"]]
    ['holds if', 'does not hold']
    """
    return dict(_CLAIMS)
