"""A budget that several fits draw on."""

import contextvars
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sktensor_dp.exceptions import BudgetError
from sktensor_dp.privacy.calibration import gaussian_epsilon, gaussian_mu
from sktensor_dp.privacy.plan import ROUNDING, PrivacyCost, ReleasePlan

__all__ = ["BudgetAccountant", "LedgerEntry", "active_accountant"]

# Open ``with`` blocks of this thread, the innermost last.
_active: contextvars.ContextVar["tuple[BudgetAccountant, ...]"] = contextvars.ContextVar(
    "accountants", default=()
)


def active_accountant() -> "BudgetAccountant | None":
    """Return the accountant of the innermost ``with BudgetAccountant(...)`` block.

    Blocks are those of the calling thread; one that another thread opened is not
    seen.
    """
    return _active.get()[-1] if _active.get() else None


@dataclass(frozen=True)
class LedgerEntry:
    """One charge: who spent how much on what."""

    spender: str
    release: str
    uses: int
    cost: PrivacyCost


class BudgetAccountant:
    """Keeps all fits over the same data within one (epsilon, delta).

    Every fit that is given the accountant is checked and charged *before* its
    noise is drawn. A fit that does not fit in is refused and leaves data and
    budget untouched; a fit that fails later keeps its charge. Gaussian releases
    compose exactly (their ``mu ** 2`` add up), so two fits at (1, 1e-6) cost
    less than (2, 2e-6).

    Parameters
    ----------
    epsilon : float, default=inf
        Budget, > 0. Infinity only records.
    delta : float, default=1e-6
        The delta at which the total is stated, in [0, 1).

    Attributes
    ----------
    entries : tuple of LedgerEntry
        Every charge so far, in order.

    Raises
    ------
    ValueError
        If epsilon or delta is outside its range.

    Notes
    -----
    Clones of an estimator share its accountant (``sklearn.clone`` returns the
    same object), so ``GridSearchCV`` and ``cross_val_score`` are charged for
    every fit. The ledger lives in this process only: an accountant refuses to be
    pickled or copied into worker processes, where charges would be lost. A
    ``with`` block is seen by the thread that opened it; pass ``accountant=`` to
    fits that run in other threads.

    Gaussian fits may be planned one after the other in view of earlier results.
    Where they are mixed with pure releases or thresholds, fix in advance how the
    budget is divided between these kinds (:meth:`split`; see
    ``docs/proofs/composition.md``).

    Examples
    --------
    >>> from sktensor_dp import BudgetAccountant
    >>> budget = BudgetAccountant(epsilon=2.0, delta=1e-6)
    >>> budget.spend(0.5, 0)
    BudgetAccountant(epsilon=2.0, delta=1e-06): spent epsilon 0.5
    >>> budget.total()
    (0.5, 1e-06)
    >>> budget.check(1.6, 0)
    Traceback (most recent call last):
    ...
    sktensor_dp.exceptions.BudgetError: ...
    """

    def __init__(self, epsilon: float = math.inf, delta: float = 1e-6) -> None:
        if not epsilon > 0:
            raise ValueError(f"epsilon must be > 0, got {epsilon!r}.")
        if not 0 <= delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {delta!r}.")
        self.epsilon = float(epsilon)
        self.delta = float(delta)
        self._entries: list[LedgerEntry] = []
        self._lock = threading.RLock()

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """Every charge so far, in order."""
        return tuple(self._entries)

    @property
    def cost(self) -> PrivacyCost:
        """Everything spent so far, composed."""
        with self._lock:
            return PrivacyCost.total(
                entry.cost for entry in self._entries for _ in range(entry.uses)
            )

    def total(self) -> tuple[float, float]:
        """Return what has been spent, as (epsilon, delta) at this budget's delta.

        Returns
        -------
        tuple of float
            The composed epsilon, and ``self.delta``.
        """
        return self.cost.epsilon_at(self.delta), self.delta

    def remaining(self, k: int = 1) -> tuple[float, float]:
        """Return what each of ``k`` further Gaussian fits may ask for.

        Parameters
        ----------
        k : int, default=1
            Number of fits to come.

        Returns
        -------
        tuple of float
            Largest (epsilon, ``self.delta``) that ``k`` fits can each be given.
            With ``delta = 0`` it is an equal share of the epsilon left.
        """
        if not (isinstance(k, int) and k >= 1):
            raise ValueError(f"k must be an integer >= 1, got {k!r}.")
        cost = self.cost
        pure = max(self.epsilon - cost.epsilon, 0.0)
        if self.delta == 0 or math.isinf(pure):
            return pure / k, self.delta
        spare = self.delta - cost.delta
        if pure == 0 or spare <= 0:
            return 0.0, self.delta
        square = max(gaussian_mu(pure, spare) ** 2 - cost.mu**2, 0.0)
        return gaussian_epsilon(math.sqrt(square / k), self.delta), self.delta

    def check(self, epsilon: float, delta: float) -> bool:
        """Return True if (epsilon, delta) can still be spent.

        Raises
        ------
        BudgetError
            If it cannot.
        """
        self._check(PrivacyCost(epsilon=float(epsilon), delta=float(delta)))
        return True

    def spend(self, epsilon: float, delta: float) -> "BudgetAccountant":
        """Record a cost that arose outside this library.

        Parameters
        ----------
        epsilon, delta : float
            Guarantee of what was done elsewhere; composed by addition, since
            nothing more is known about it.

        Raises
        ------
        BudgetError
            If it exceeds what is left; nothing is recorded then.
        """
        cost = PrivacyCost(epsilon=float(epsilon), delta=float(delta))
        self.charge([LedgerEntry("caller", "spend", 1, cost)])
        return self

    def charge(self, entries: Sequence[LedgerEntry]) -> None:
        """Check and record charges as one step; all of them or none.

        Raises
        ------
        BudgetError
            If together they exceed what is left.
        """
        with self._lock:
            self._check(
                PrivacyCost.total(entry.cost for entry in entries for _ in range(entry.uses))
            )
            self._entries.extend(entries)

    def split(self, shares: Sequence[float], thresholds: int = 0) -> list[dict[str, float]]:
        """Divide the whole budget among fits so that they use it up exactly.

        Parameters
        ----------
        shares : sequence of float
            Relative share of each fit (of ``mu ** 2``; of epsilon if delta is 0).
        thresholds : int, default=0
            How many of the first fits choose a vocabulary or other partitions by
            a threshold, as :class:`~sktensor_dp.PrivateCountVectorizer` does: that
            needs a delta beside the Gaussian one.

        Returns
        -------
        list of dict
            ``{"epsilon": ..., "delta": ...}`` for each fit, to be passed to its
            constructor together with ``accountant=self``.

        Examples
        --------
        >>> budget = BudgetAccountant(epsilon=2.0, delta=1e-6)
        >>> words, topics = budget.split([0.1, 0.9], thresholds=1)
        >>> round(words["epsilon"], 3), round(topics["epsilon"], 3)
        (0.644, 1.888)
        """
        if not shares or min(shares) <= 0:
            raise ValueError("shares must be a non-empty sequence of numbers > 0.")
        whole = math.fsum(shares)
        if self.delta == 0 or math.isinf(self.epsilon):
            return [
                {"epsilon": self.epsilon * share / whole, "delta": self.delta} for share in shares
            ]
        # A fit with a threshold spends half of its delta on it (ReleasePlan does).
        reserved = self.delta / 10
        left = self.delta - reserved * thresholds
        mu = gaussian_mu(self.epsilon, left)
        parts = []
        for position, share in enumerate(shares):
            gaussian = reserved if position < thresholds else left
            delta = 2 * reserved if position < thresholds else left
            part = gaussian_epsilon(mu * math.sqrt(share / whole), gaussian)
            parts.append({"epsilon": part, "delta": delta})
        return parts

    def _check(self, cost: PrivacyCost) -> None:
        spent = self.cost
        after = PrivacyCost.total([spent, cost]).epsilon_at(self.delta)
        if after > self.epsilon * (1 + ROUNDING):
            raise BudgetError(
                f"This would bring the total to epsilon {after:.6g} at delta {self.delta:g}, "
                f"but the budget is {self.epsilon:g}, of which "
                f"{spent.epsilon_at(self.delta):.6g} is spent. Nothing was charged. Ask for "
                "less (see remaining()), or use a larger budget."
            )

    def __enter__(self) -> "BudgetAccountant":
        _active.set((*_active.get(), self))
        return self

    def __exit__(self, *exc_info: Any) -> None:
        _active.set(_active.get()[:-1])

    def __sklearn_clone__(self) -> "BudgetAccountant":
        return self

    def __copy__(self) -> "BudgetAccountant":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "BudgetAccountant":
        return self

    def __reduce__(self) -> str:
        raise TypeError(
            "A BudgetAccountant lives in one process and cannot be pickled: charges made in "
            "workers would be lost. Use n_jobs=None (or joblib's threading backend), or set "
            "accountant=None before pickling a fitted estimator."
        )

    def __repr__(self) -> str:
        spent = self.total()[0]
        return (
            f"BudgetAccountant(epsilon={self.epsilon!r}, delta={self.delta!r}): "
            f"spent epsilon {spent:.6g}"
        )


def charges_of(plan: ReleasePlan, spender: str) -> list[LedgerEntry]:
    """Ledger entries for every release of a plan."""
    return [
        LedgerEntry(spender, planned.name, planned.uses, planned.cost) for planned in plan.releases
    ]
