"""Charges of later private steps of a pipeline, checked before its first one is paid."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from sktensor_dp.checks.callers import PIPELINE, locals_of
from sktensor_dp.checks.errors import call_unquoted
from sktensor_dp.checks.frames import is_dask
from sktensor_dp.estimator.facts import unit_of
from sktensor_dp.privacy.ledger_entries import LedgerEntry
from sktensor_dp.privacy.payer import Payer


def charges_of_later_steps(payer: Payer, neighbours: str) -> Iterator[LedgerEntry]:
    """Yield expected charges of private steps after the fitted one, in all pipelines that fit it.

    Raise an error for steps that would be refused once this one is paid.
    """
    for frame in locals_of(payer.tools, PIPELINE):
        if not {"self", "routed_params", "name"} <= {*frame}:  # of another scikit-learn
            continue
        # Local variables of the pipeline's fit: its arguments by step, and the step that is fitted.
        steps = dict(frame["self"].steps)
        routed, fitted = frame["routed_params"], frame["name"]
        later_names = [*steps][[*steps].index(fitted) + 1 :]
        for name in later_names:
            step = steps[name]
            if not hasattr(step, "_plan_by_parameters") or step._public_facts().releases_nothing:
                continue
            step._check_parameters()
            accountant = step._accountant_to_charge()
            if (accountant is None) != (payer.accountant is None):
                raise ValueError(
                    "accountant must be given to all private steps of a pipeline or to none, else "
                    f"nobody counts what some of them cost: set {name}__accountant as that of the "
                    "others, or fit in a `with BudgetAccountant(...)` block."
                )
            groups_of_fitted, groups = _groups_of(routed[fitted]), _groups_of(routed[name])
            is_private = hasattr(steps[fitted], "_plan_by_parameters")
            if is_private and not _are_same(groups_of_fitted, groups):
                raise ValueError(
                    "groups must be the same for all private steps of a pipeline, which protect "
                    f"nobody together otherwise: fit(X, {fitted}__groups=labels, "
                    f"{name}__groups=labels), or set_fit_request(groups=True) of each."
                )
            if step.neighbours != neighbours:
                raise ValueError(
                    "neighbours must be the same for all private steps of a pipeline; got "
                    f"{neighbours!r}, and {step.neighbours!r} of {name!r}."
                )
            if accountant is payer.accountant:
                unit = unit_of(step._unit, grouped=groups is not None)
                spender = replace(payer, spender=type(step).__name__)
                charges = spender.charges(step._plan_by_parameters(), neighbours, unit)
                spender.check_charges(charges)
                yield from charges


def _groups_of(routed: Any) -> Any:
    """Labels of groups among the arguments `routed` to a step, by method; None without any."""
    return next((given["groups"] for given in routed.values() if "groups" in given), None)


def _are_same(one: Any, other: Any) -> bool:
    """True for labels of the same persons in the same order, as far as they lie in memory."""
    if one is None or other is None or one is other:
        return one is other
    if getattr(one, "name", None) != getattr(other, "name", None):
        return False
    if is_dask(one) or is_dask(other):
        return True
    return call_unquoted(lambda: np.array_equal(np.asarray(one), np.asarray(other)), "groups")
