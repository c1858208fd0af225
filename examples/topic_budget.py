"""The ledger of a folder of results: what all runs that wrote to it cost together."""

import math
from pathlib import Path
from typing import Any

LEDGER = "budget.sqlite"


class RunBudget:
    """What one run may spend, and what its folder's runs have spent.

    Parameters
    ----------
    folder : Path
        Where results and the ledger are kept.
    epsilon, delta : float
        What the run is going to spend.
    limit : float or None
        Most epsilon that all runs may spend together; None for what the first one said.
    scope : str
        Name of the data set.
    """

    def __init__(
        self, folder: Path, epsilon: float, delta: float, limit: float | None, scope: str
    ) -> None:
        from sktensor_dp import BudgetAccountant
        from sktensor_dp.privacy.ledger import scopes_of

        path = folder / LEDGER
        self.epsilon, self.delta = epsilon, delta
        if path.exists() and scope in scopes_of(path):
            self.ledger = BudgetAccountant(path=path, scope=scope)
            if limit is not None and limit > self.ledger.epsilon:
                raise ValueError(
                    f"BUDGET={limit:g} is above the {self.ledger.epsilon:g} that an earlier run "
                    f"set in {path}; a budget is set once"
                )
        else:
            first = math.inf if limit is None else limit
            self.ledger = BudgetAccountant(first, delta, path=path, scope=scope)
        if limit is not None:
            # The accountant asks this number at every charge; the file keeps the first one.
            self.ledger.epsilon = limit
        self.spent_before = self.ledger.total()[0]
        self._n_before = len(self.ledger.entries)

    def parts(self, shares: tuple[float, float]) -> list[Any]:
        """Parameters of the two fits: the first chooses words by a threshold."""
        from sktensor_dp import BudgetAccountant

        if shares[0] == 0:  # public words cost nothing
            return [{}, {"epsilon": self.epsilon, "delta": self.delta}]
        return BudgetAccountant(self.epsilon, self.delta).split(shares, thresholds=1)

    def check(self, shares: tuple[float, float], unit: str = "document") -> None:
        """Refuse a run that would not fit in as a whole, before anything is read.

        Raises
        ------
        BudgetError
            Otherwise its first step would be charged, and its second refused. Also where
            earlier runs of the folder protected another unit.
        """
        from sktensor_dp import BudgetAccountant, BudgetError
        from sktensor_dp.privacy.accountant import LedgerEntry
        from sktensor_dp.privacy.calibration import gaussian_mu
        from sktensor_dp.privacy.plan import ROUNDING, PrivacyCost

        free = LedgerEntry("demo", "topics", 1, PrivacyCost(), unit)
        self.ledger.check_charge([free])
        # The first fit spends half of its delta on its threshold.
        reserved = self.parts(shares)[0].get("delta", 0.0) / 2
        planned = PrivacyCost(gaussian_mu(self.epsilon, self.delta - reserved), 0.0, reserved)
        after = PrivacyCost.total([self.ledger.cost, planned]).epsilon_at(self.ledger.delta)
        if after > self.ledger.epsilon * (1 + ROUNDING):
            assert isinstance(self.ledger, BudgetAccountant)
            raise BudgetError(
                f"epsilon = {self.epsilon:g} would bring the runs of this folder to {after:.4g} at "
                f"delta = {self.ledger.delta:g}, and their budget is {self.ledger.epsilon:g}, of "
                f"which {self.spent_before:.4g} is spent. Nothing was read or charged. At most "
                f"about epsilon = {self.ledger.remaining()[0]:.3g} is left"
            )

    def of_run(self) -> tuple[float, float]:
        """Epsilon and delta of this run's charges."""
        from sktensor_dp import BudgetAccountant

        own = BudgetAccountant(math.inf, self.delta)
        own.charge(self.ledger.entries[self._n_before :])
        return own.total()

    def of_all_runs(self) -> str:
        """Say what all runs of the folder cost together."""
        epsilon, delta = self.ledger.total()
        cost = self.ledger.cost
        if math.isinf(epsilon) and math.isfinite(cost.mu):
            # Every run sets a part of delta aside: many of them use up that of one.
            delta += cost.delta
            epsilon = cost.epsilon_at(delta)
        if math.isinf(epsilon):
            return "All runs of this folder: one added no noise; NOT PRIVATE together"
        limit = self.ledger.epsilon
        of = "; no BUDGET is set" if math.isinf(limit) else f" of a budget of {limit:g}"
        return f"All runs of this folder: epsilon = {epsilon:.6g} at delta = {delta:g}{of}"
