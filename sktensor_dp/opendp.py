"""Fits as measurements of OpenDP, and charges to its contexts."""

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone

from sktensor_dp.exceptions import BudgetError
from sktensor_dp.model_selection.costs import TrialAccountant
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.conversions import gaussian_mu, pure_rho
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.spending import LedgerEntry

__all__ = ["ContextAccountant", "as_measurement"]

# Metrics of OpenDP in which neighbours have distance 1.
METRICS = {
    "replace_one": ("change_one_distance", "hamming_distance"),
    "add_remove": ("symmetric_distance", "insert_delete_distance"),
}


def as_measurement(estimator: Any, context: Any = None) -> Any:
    """Make a measurement of OpenDP that fits an estimator of this package.

    Parameters
    ----------
    estimator : estimator
        A clone is fitted at each call. Who calls the measurement pays: it has no accountant.
    context : opendp.prelude.Context, optional
        Gives domain, metric and measure. By default any Python object is in the domain, distances
        count changed units (added and removed ones with ``neighbours="add_remove"``), and the
        measure is zero-concentrated, or pure with ``delta=0``.

    Returns
    -------
    opendp.prelude.Measurement
        It maps the first argument of ``fit``, or a dict of all, to the fitted estimator.

    Raises
    ------
    ImportError, ValueError
        If OpenDP is missing; if epsilon is infinite, the estimator has an accountant, takes pure
        noise at a delta, or has another measure or other neighbours than the context.

    Notes
    -----
    **Privacy.** Gaussian noise of mu is ``mu ** 2 / 2``-zCDP, approximately so where a vocabulary
    sets a delta aside. A fit that would cost more is refused before noise is drawn. Distances count
    units of privacy: persons, where ``groups`` are given. OpenDP cannot check what this package
    proves, and asks for ``enable_features("honest-but-curious")``.

    Examples
    --------
    >>> from sktensor_dp import PrivateSpectralLDA
    >>> from sktensor_dp.opendp import as_measurement
    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> topics = as_measurement(PrivateSpectralLDA(1, epsilon=4.0))
    >>> round(topics.map(1), 3), topics([[3, 1, 2]] * 2000).components_.shape
    (0.351, (1, 3))
    """
    import opendp.prelude as dp

    facts, epsilon, delta = estimator._public_facts(), estimator.epsilon, estimator.delta
    if estimator.accountant is not None or not epsilon < float("inf"):
        raise ValueError("estimator must have a finite epsilon, and accountant=None.")
    if facts.is_pure and delta > 0:
        raise ValueError("delta of estimator must be 0: its noise is pure.")
    cost, set_aside = PrivacyCost(epsilon=epsilon), facts.delta_set_aside * delta
    if delta > 0:
        cost = PrivacyCost(mu=gaussian_mu(epsilon, delta - set_aside), delta=set_aside)
    if context is None:
        metric = getattr(dp, METRICS[estimator.neighbours][0])()
        measure = dp.zero_concentrated_divergence() if delta > 0 else dp.max_divergence()
        measure = dp.approximate(measure) if set_aside > 0 else measure
        space = (dp.user_domain("units of privacy", lambda _: True), metric, measure)
    else:
        space = (*context.accountant.input_space, context.accountant.output_measure)

    def fitted(data: Any) -> Any:
        model = clone(estimator).set_params(accountant=TrialAccountant(cost))
        model = model.fit(**data) if isinstance(data, dict) else model.fit(data)
        return model.set_params(accountant=None)

    return _measurement(space, cost, delta, estimator.neighbours, fitted)


class ContextAccountant(BudgetAccountant):
    """Accountant that charges fits to a context of OpenDP, whose data it does not read.

    Parameters
    ----------
    context : opendp.prelude.Context
        Its privacy unit is one unit of the fits. It pays for each batch of a stream.
    delta : float, default=1e-6
        Delta of each fit where the context measures epsilon and delta.

    Raises
    ------
    BudgetError, ValueError
        By a fit: if the context refuses it; if its privacy unit or measure is another one.

    Notes
    -----
    **Privacy.** The context is charged before noise is drawn; the own ledger only records.

    Examples
    --------
    >>> from sktensor_dp import PrivateSpectralLDA
    >>> from sktensor_dp.opendp import ContextAccountant
    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> context = dp.Context.compositor(
    ...     data=[0], privacy_unit=dp.unit_of(changes=1), privacy_loss=dp.loss_of(rho=0.2)
    ... )
    >>> topics = PrivateSpectralLDA(1, epsilon=2.0, accountant=ContextAccountant(context))
    >>> topics.fit([[3, 1, 2]] * 2000).components_.shape
    (1, 3)
    >>> round(context.remaining_privacy_loss(), 3)
    0.099
    """

    def __init__(self, context: Any, delta: float = 1e-6) -> None:
        super().__init__(delta=delta)
        self._context = context

    def charge(self, entries: Sequence[LedgerEntry], ticket: str | None = None) -> Any:
        """Charge the context, then this accountant's own ledger."""
        self.check_charge(entries)
        cost = PrivacyCost.total((one.cost, one.uses) for one in entries)
        neighbours = entries[0].neighbours if entries else "replace_one"
        theirs = self._context.accountant
        space = (*theirs.input_space, theirs.output_measure)
        nothing = _measurement(space, cost, self.delta, neighbours, lambda _: None)
        refusal = None
        try:
            self._context(nothing)
        except Exception as error:
            refusal = f"OpenDP's context refused, and nothing was charged: {error}"
        if refusal is not None:  # raised here, without the error as its context
            raise BudgetError(refusal)
        return super().charge(entries, ticket)


def _measurement(
    space: tuple[Any, Any, Any], cost: PrivacyCost, delta: float, neighbours: str, function: Any
) -> Any:
    """Measurement of a `cost` at distance 1 of a `space`: domain, metric and measure."""
    import opendp.prelude as dp

    _, metric, measure = space
    if metric not in [getattr(dp, name)() for name in METRICS[neighbours]]:
        wanted = " or ".join(METRICS[neighbours])
        raise ValueError(f"neighbours={neighbours!r} needs {wanted}; the context has {metric}.")
    pure, concentrated = dp.max_divergence(), dp.zero_concentrated_divergence()
    rho = cost.mu**2 / 2 + pure_rho(cost.epsilon)
    loss: Any = None
    if measure == dp.approximate(pure):
        loss = cost.epsilon_at(delta), delta
    elif measure == dp.approximate(concentrated):
        loss = rho, cost.delta
    elif measure == concentrated and cost.delta == 0:
        loss = rho
    elif measure == pure and cost.mu == cost.delta == 0:
        loss = cost.epsilon
    else:
        raise ValueError(f"{measure} has no finite loss for this fit; approximate ones have.")

    def privacy_map(d_in: int) -> Any:
        if d_in > 1:
            raise ValueError(f"The privacy unit must be one unit of the fit, not {d_in}.")
        return loss

    return dp.m.make_user_measurement(*space, function, privacy_map)
