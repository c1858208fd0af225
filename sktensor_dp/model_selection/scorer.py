"""Private scorers: noisy scores for scikit-learn's cross-validation and searches."""

from collections.abc import Sequence
from typing import Any, ClassVar

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.estimator.base import PrivateEstimatorMixin, unit_of
from sktensor_dp.estimator.parameters import check_parameters
from sktensor_dp.model_selection.scores import (
    UnitScores,
    check_scoring,
    checked_score_bounds,
    checked_targets,
    held_out,
    release_score,
    word_counter,
)
from sktensor_dp.model_selection.splits import checked_units, n_rows
from sktensor_dp.model_selection.steps import checked_rows, private_steps, row_by_row
from sktensor_dp.privacy.accountant import BudgetAccountant, Payable
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.queries.scores import HeldOutScores


def make_private_scorer(
    metric: str,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    bounds: Sequence[float] | None = None,
    accountant: BudgetAccountant | None = None,
) -> "PrivateScorer":
    """Make a scorer whose every call is a release: clipped, noisy and charged.

    For ``scoring=`` of ``cross_val_score`` or ``GridSearchCV`` with a private estimator.

    Parameters
    ----------
    metric : str
        ``"neg_mean_squared_error"``, ``"neg_mean_absolute_error"``, ``"log_likelihood"`` (of
        ``score_samples``) or ``"log_likelihood_per_token"`` (of texts each word that a
        ``PrivateCountVectorizer`` of a pipeline does not have counts with a probability of 1e-5).
        A row that the model refuses counts as the lower bound.
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
        A callable ``(estimator, X, y=None, *, groups=None) -> float``.

    Notes
    -----
    **Privacy.** *Unit and neighbours*: one row is replaced; with ``groups`` all rows of one
    group, by any number of others; with ``neighbours="add_remove"`` there is one more or less
    among the rows that a call is given. *Public*: the number of rows (with ``groups`` that of
    groups, and not that of rows), unless units come and go, and the parameters. *Releases*:
    ``held_out_scores``, the mean over rows, or over groups of the means over their rows, and
    ``unit_count`` (one percent of the cost) where the number of units is private. The
    model is protected by its own fit alone. In k-fold cross-validation a row costs one score
    and k - 1 fits for each candidate; an accountant, which cannot know that folds are disjoint,
    is charged for all. *Not covered*: folds into which one unit moves others, as those of
    ``GroupKFold``, or of splitters by position where units come and go: a total over folds is
    then no guarantee for anybody (use :class:`~sktensor_dp.PrivateKFold`); fits of
    scikit-learn's tools where a ``FunctionTransformer`` mixes rows.

    The model is a private estimator or a pipeline, as :class:`~sktensor_dp.PrivateSearchCV` takes
    them, or the best one of a fitted search. One that was fitted with groups is scored with groups
    alone: under metadata routing, by ``set_fit_request(groups=True)`` of the estimator and
    ``set_score_request(groups=True)`` of the scorer.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateCPCompletion, make_private_scorer
    >>> X = np.argwhere(np.ones((60, 60)))
    >>> model = PrivateCPCompletion(1, bounds=(0, 1), epsilon=20.0).fit(X, X.sum(axis=1) / 120)
    >>> scorer = make_private_scorer("neg_mean_absolute_error", epsilon=1.0)
    >>> bool(-1 < scorer(model, X, X.sum(axis=1) / 120) < 0.1)
    True
    """
    scorer = PrivateScorer(metric, epsilon, delta, bounds, accountant)
    check_scoring(metric, "metric")
    known = PrivateEstimatorMixin._privacy_constraints
    check_parameters(scorer, {name: known[name] for name in ("epsilon", "delta", "accountant")})
    if bounds is not None:
        checked_score_bounds(bounds, metric, None, "bounds")
    return scorer


def scored_unit(reports: Sequence[PrivacyReport], grouped: bool) -> str:
    """Unit that a score protects; ValueError if only the model was fitted with groups."""
    units = [report.unit for report in reports]
    if "person" in units:
        if not grouped:
            raise ValueError(
                "groups must be given: the model was fitted with groups, and a score of single "
                "rows would protect none. cross_val_score and GridSearchCV pass them under "
                "metadata routing, see make_private_scorer."
            )
        return "person"
    return unit_of(units[0], grouped)


class PrivateScorer(Payable, BaseEstimator):
    """A scorer as :func:`make_private_scorer` makes it, with requests for `groups` by routing."""

    __metadata_request__score: ClassVar[dict[str, str]] = {"estimator": UNUSED}

    def __init__(
        self,
        metric: str,
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

    def score(
        self, estimator: Any, X: Any, y: Any = None, *, groups: ArrayLike | None = None
    ) -> float:
        """Noisy mean score of a fitted estimator over rows, or over groups of means over theirs."""
        model = row_by_row(getattr(estimator, "best_estimator_", estimator))
        steps = [*private_steps(model).values()]
        for step in steps:
            check_is_fitted(step)
        reports = [step.privacy_report_ for step in steps]
        counted = any(report.neighbours == "add_remove" for report in reports)
        relation = "add_remove" if counted else "replace_one"
        X, y, labels = checked_units(X, y, groups, relation)
        words = word_counter(model)
        bounds = checked_score_bounds(
            self.bounds, self.metric, steps[-1], "bounds", texts=words is not None
        )
        unit = scored_unit(reports, labels is not None)
        if n_rows(X) == 0 and not counted:
            raise ValueError("X must have at least one row to score, got none.")
        y = checked_targets(self.metric, model, X, y, "metric")
        X = checked_rows(model, X)
        query = HeldOutScores(UnitScores(self.metric, model, words), *bounds)
        score, _ = release_score(
            query, held_out(X, y, labels),
            ReleasePlan.split(self.epsilon, self.delta, {"held_out_scores": 1.0}),
            spender=type(self).__name__, unit=unit, accountant=self._payer(), neighbours=relation,
        )  # fmt: skip
        return score

    __call__ = score
