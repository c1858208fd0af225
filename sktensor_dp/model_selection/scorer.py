"""Scores with noise, for scikit-learn's own tools."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.estimator.parameters import Number
from sktensor_dp.model_selection.unit_rows import n_rows
from sktensor_dp.model_selection.unit_scores import (
    UnitMetric,
    UnitScores,
    check_numbers,
    check_scorable,
    check_scoring,
    check_targets,
    checked_score_bounds,
    hooks_of,
)
from sktensor_dp.privacy.accountant import BudgetAccountant, active_accountant
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.statistics.reading import read
from sktensor_dp.statistics.scores import HeldOutChunks, HeldOutScores

__all__ = ["PrivateScorer", "make_private_scorer"]


def make_private_scorer(
    metric: str | Callable[[Any, Any], Any],
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    bounds: Sequence[float] | None = None,
    accountant: BudgetAccountant | None = None,
) -> "PrivateScorer":
    """Make a scorer whose every call is a release: clipped, noisy and charged.

    Passed as ``scoring=`` to ``cross_val_score`` or ``GridSearchCV`` together with a private
    estimator, it makes everything private that these show.

    Parameters
    ----------
    metric : str or callable
        ``"neg_mean_squared_error"``, ``"neg_mean_absolute_error"``, ``"accuracy"``,
        ``"log_likelihood"`` (what ``score_samples`` says) or ``"log_likelihood_per_token"``;
        or ``(y_true, y_pred) -> array of shape (n_rows,)``, larger being better. It is called
        for each row by itself, so that no row can change the score of another.
    epsilon, delta : float, default=1.0 and 1e-6
        Cost of each call. Gaussian noise composes exactly with that of fits; ``delta=0``
        gives Laplace noise.
    bounds : (low, high), optional
        Public range that the score of a row is clipped to; noise is in proportion to its
        width. By default those that public parameters imply, as for
        :class:`~sktensor_dp.PrivateSearchCV`.
    accountant : BudgetAccountant, optional
        Charged before each score; by default that of the surrounding ``with`` block.

    Returns
    -------
    PrivateScorer
        A callable ``(estimator, X, y=None) -> float``.

    Raises
    ------
    ValueError
        If a parameter is wrong.

    Notes
    -----
    **Privacy.** *Unit and neighbours*: one row is replaced. *Public*: the number of rows and
    the parameters. *Release*: ``held_out_scores``, the mean over rows. The model must be
    private or public, and is protected by its own fit alone. A row costs what the calls
    that saw it cost: in k-fold cross-validation one score and k - 1 fits for each
    candidate. An accountant cannot know that folds are disjoint, and is charged for all.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> from sktensor_dp import make_private_scorer
    >>> X, y = np.zeros((4000, 1)), np.linspace(0, 1, 4000)
    >>> scorer = make_private_scorer("neg_mean_absolute_error", bounds=(-1, 0), epsilon=1.0)
    >>> bool(abs(scorer(DummyRegressor().fit(X, y), X, y) + 0.25) < 0.01)
    True
    """
    check_scoring(metric, "metric")
    for name, value, allowed in (
        ("epsilon", epsilon, Number(0, math.inf, closed="right")),
        ("delta", delta, Number(0, 1, closed="left")),
    ):
        if not allowed.accepts(value):
            raise ValueError(f"{name} must be {allowed}, got {value!r}.")
    if bounds is not None:
        bounds = checked_score_bounds(bounds, metric, None, "bounds")
    return PrivateScorer(metric, float(epsilon), float(delta), bounds, accountant)


class PrivateScorer:
    """A scorer as :func:`make_private_scorer` makes it.

    Parameters
    ----------
    metric, epsilon, delta, bounds, accountant
        As there.
    """

    def __init__(
        self,
        metric: str | Callable[[Any, Any], Any],
        epsilon: float,
        delta: float,
        bounds: Sequence[float] | None,
        accountant: BudgetAccountant | None,
    ) -> None:
        self.metric = metric
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.accountant = accountant

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Score a fitted estimator, with noise.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X : array-like, sparse matrix, data frame or list of n_rows units
            Rows.
        y : array-like of shape (n_rows,), optional
            Targets.

        Returns
        -------
        float
            Noisy mean score of a row.

        Raises
        ------
        BudgetError
            If the accountant has too little left; nothing has been scored then.
        ValueError
            If the estimator is not fitted, or `y` is missing, has another length or holds
            no number where numbers are compared; no budget is spent. Once charged, if no row
            can be scored. A single row that cannot be scored counts as the lower bound.
        """
        step = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        if not hooks_of(step)._unit_is_row:
            raise ValueError(
                f"A {type(step).__name__} that protects units of several rows, as with "
                "privacy_unit='slice', cannot be scored row by row."
            )
        low, high = checked_score_bounds(self.bounds, self.metric, step, "bounds")
        kind = UnitMetric if callable(self.metric) else UnitScores
        query = HeldOutScores(kind(self.metric, estimator), low, high)  # type: ignore[arg-type]
        n_units = read(lambda: n_rows(X), "X")
        if hooks_of(step) is step:
            check_is_fitted(step)
        if y is not None:
            check_targets(y, n_units)
        check_scorable(self.metric, estimator, y, n_units, "metric")
        check_numbers(self.metric, y, "metric")
        plan = ReleasePlan.split(self.epsilon, self.delta, {"held_out_scores": 1.0})
        payer = active_accountant() if self.accountant is None else self.accountant
        report = getattr(step, "privacy_report_", None)
        with DataCurator(
            HeldOutChunks(X, y, n_units), plan, spender=type(self).__name__,
            unit=getattr(report, "unit", "row"), accountant=payer,
        ) as curator:  # fmt: skip
            return float(curator.release("held_out_scores", query)[0]) + query.middle

    def __repr__(self) -> str:
        return (
            f"make_private_scorer({self.metric!r}, epsilon={self.epsilon!r}, "
            f"delta={self.delta!r}, bounds={self.bounds!r})"
        )
