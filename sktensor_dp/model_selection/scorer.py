"""Scores with noise, for scikit-learn's own tools."""

import copy
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.estimator.base import unit_of
from sktensor_dp.estimator.parameters import Number, OneOf, shown
from sktensor_dp.model_selection.unit_rows import (
    check_at_hand,
    check_scorable,
    check_scoring,
    check_targets,
    checked_units,
    held_out,
    n_rows,
)
from sktensor_dp.model_selection.unit_scores import (
    UnitMetric,
    UnitScores,
    check_answers,
    checked_score_bounds,
    hooks_of,
    release_score,
    word_counter,
)
from sktensor_dp.model_selection.wrapped_models import fitted_reports, wrapped_models
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.payable import Payable
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.queries.reading import read
from sktensor_dp.queries.scores import HeldOutScores

# Share of the bounds' width that three deviations of the noise may be where a low score is
# told of, and one for the rounding of a score without noise.
NOTABLE, ROUNDED = 0.05, 1e-9


def make_private_scorer(
    metric: str | Callable[[Any, Any], Any],
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    bounds: Sequence[float] | None = None,
    neighbours: str | None = None,
    accountant: BudgetAccountant | None = None,
) -> "PrivateScorer":
    """Make a scorer whose every call is a release: clipped, noisy and charged.

    Passed as ``scoring=`` to ``cross_val_score`` or ``GridSearchCV`` together with a private
    estimator, it makes everything private that these show.

    Parameters
    ----------
    metric : str or callable
        ``"neg_mean_squared_error"``, ``"neg_mean_absolute_error"``, ``"accuracy"``,
        ``"log_likelihood"`` (what ``score_samples`` says) or ``"log_likelihood_per_token"``
        (of texts each word that a ``PrivateCountVectorizer`` of a pipeline does not have counts
        with a probability of 1e-5); or ``(y_true, y_pred) -> array of shape (n_rows,)``, larger
        being better. It is called for each row by itself, so that no row can change the score
        of another. A row on which it, or the model, fails counts as the lower bound.
    epsilon, delta : float, default=1.0 and 1e-6
        Cost of each call. Gaussian noise composes exactly with that of fits; ``delta=0``
        gives Laplace noise.
    bounds : (low, high), optional
        Public range that the score of a row is clipped to; noise is in proportion to its
        width. By default those that public parameters imply, as for
        :class:`~sktensor_dp.PrivateSearchCV`.
    neighbours : {"replace_one", "add_remove"}, optional
        By default those of the model's fit (``"replace_one"`` of a public model), which they
        must not differ from; the notes say where that is looked for. With ``"add_remove"`` a
        noisy count of the units comes first, at one percent of the cost, and their scores are
        divided by it.
    accountant : BudgetAccountant, optional
        Charged before each score; by default that of the surrounding ``with`` block.

    Returns
    -------
    PrivateScorer
        A callable ``(estimator, X, y=None, *, groups=None) -> float``.

    Raises
    ------
    ValueError
        If a parameter is wrong.

    Notes
    -----
    **Privacy.** *Unit and neighbours*: one row is replaced; with ``groups`` all rows of one
    group, by any number of others; with ``neighbours="add_remove"`` there is one more or less
    among the rows that a call is given. *Public*: the number of rows (with ``groups`` that of
    groups, and not that of rows), unless units come and go, and the parameters. *Releases*:
    ``held_out_scores``, the mean over rows, or over groups of the means over their rows, and
    ``unit_count`` where their number is private. The model must be private or
    public, and is protected by its own fit alone. A row costs what the calls
    that saw it cost: in k-fold cross-validation one score and k - 1 fits for each
    candidate. An accountant cannot know that folds are disjoint, and is charged for all.
    *Not covered*: folds into which one unit moves others, as those of ``GroupKFold``, which goes
    by sizes, or of splitters by position where units come and go. Each score then covers its own
    rows, and a total over folds is no guarantee for anybody. :class:`~sktensor_dp.PrivateKFold`
    deals each unit by a secret coin of its own.

    Unit and neighbours are those of the private model's report. It is looked for in the
    estimator and in what scikit-learn's own estimators keep of their fits: steps, searches,
    ensembles, calibration, columns, transformed targets, frozen models. What holds a private
    model elsewhere, in an attribute of a class of your own, is taken for public: pass
    `neighbours` and `groups` as for its fit.

    A model that was fitted with groups is scored with groups alone. ``cross_val_score`` and
    ``GridSearchCV`` pass them on under metadata routing, where estimator and scorer ask for
    them (``set_fit_request(groups=True)``, ``set_score_request(groups=True)``); whole groups
    are held out by :class:`~sktensor_dp.PrivateKFold`.

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
        ("neighbours", neighbours, OneOf(None, "replace_one", "add_remove")),
    ):
        if not allowed.accepts(value):
            raise ValueError(f"{name} must be {allowed}, got {shown(value)}.")
    if bounds is not None:
        bounds = checked_score_bounds(bounds, metric, None, "bounds")
    return PrivateScorer(metric, float(epsilon), float(delta), bounds, accountant, neighbours)


def scored_unit(reports: Sequence[PrivacyReport], grouped: bool) -> str:
    """Unit that a score protects, in the words of a model's report; never less than that does."""
    units = [report.unit for report in reports]
    several = [unit for unit in units if unit.startswith("group of")]
    if several:
        if not grouped:
            raise ValueError(
                "groups must be given: the model was fitted with groups, and a score of single "
                "rows would protect none. cross_val_score and GridSearchCV pass them under "
                "metadata routing, see make_private_scorer."
            )
        return several[0]
    return unit_of(units[0] if units else "row", grouped)


def scored_relation(reports: Sequence[PrivacyReport], asked: str | None) -> str:
    """Neighbours that a score is for: those that the model's fit has, or what was asked for."""
    counted = {report.neighbours == "add_remove" for report in reports}
    fitted = "add_remove" if True in counted else "replace_one"
    if asked is not None and counted and asked != fitted:
        raise ValueError(
            f"neighbours={asked!r} of the score, but the model was fitted with {fitted!r}: the "
            "two would protect different things. Nothing was charged."
        )
    return fitted if asked is None else asked


def _warn_if_low(score: float, bounds: tuple[float, float], sigma: float) -> None:
    """Say that perhaps no row could be scored, by the released score and public numbers."""
    low, high = bounds
    # Noise that is not small beside the bounds is low often.
    if 3 * sigma <= NOTABLE * (high - low) and score <= low + 3 * sigma + ROUNDED * (high - low):
        warnings.warn(
            "The score lies at the lower bound, up to its noise. Rows that cannot be scored count "
            "as that bound: perhaps the metric or the model fails on all, or the bounds do not "
            "suit the metric. Try it on made-up rows.",
            UserWarning,
            stacklevel=3,
        )


@dataclass(eq=False, repr=False)
class PrivateScorer(Payable):
    """A scorer as :func:`make_private_scorer` makes it.

    Parameters
    ----------
    metric, epsilon, delta, bounds, accountant, neighbours
        As there.
    """

    metric: str | Callable[[Any, Any], Any]
    epsilon: float
    delta: float
    bounds: Sequence[float] | None
    accountant: BudgetAccountant | None
    neighbours: str | None = None

    def __post_init__(self) -> None:
        self._requests = MetadataRequest(owner=type(self).__name__)
        self._requests.score.add_request(param="groups", alias=None)

    def set_score_request(self, *, groups: bool | str | None) -> "PrivateScorer":
        """Say what metadata routing passes as `groups`.

        Parameters
        ----------
        groups : bool, str or None
            True: what is called so. A str: what is called that. False: nothing. None: an
            error, where groups are given.

        Returns
        -------
        self : PrivateScorer
            The scorer.

        Raises
        ------
        RuntimeError
            If metadata routing is not enabled.
        """
        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "Requests for metadata need routing: sklearn.set_config("
                "enable_metadata_routing=True)."
            )
        self._requests.score.add_request(param="groups", alias=groups)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Requests for metadata, as scikit-learn asks for them.

        Returns
        -------
        MetadataRequest
            A copy.
        """
        return copy.deepcopy(self._requests)

    def __call__(
        self, estimator: Any, X: Any, y: Any = None, *, groups: ArrayLike | None = None
    ) -> float:
        """Score a fitted estimator, with noise.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X : array-like, sparse matrix, data frame or list of n_rows units
            Rows.
        y : array-like of shape (n_rows,), optional
            Targets.
        groups : array-like of shape (n_rows,), optional
            Whose each row is, as for the fit; needed where the model was fitted with groups.

        Returns
        -------
        float
            Noisy mean score of a row; with `groups` mean over groups of that.

        Raises
        ------
        BudgetError
            If the accountant has too little left; nothing has been scored then.
        ValueError
            If the estimator is not fitted, has not the method or the number of features that
            are needed or predicts texts where numbers are compared, `groups` are missing or
            wrong, or `y` is missing or has another length; no budget is spent. Once charged, if
            the model or the metric does not return one number per row.

        Warns
        -----
        UserWarning
            If the released score of a callable lies at the lower bound, up to noise. A row
            that cannot be scored counts as that bound, be it one or be it all: an error would
            tell which.
        """
        step = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        for model in wrapped_models(estimator):
            if not hooks_of(model)._unit_is_row:
                raise ValueError(
                    f"A {type(model).__name__} that protects units of several rows, as with "
                    "a unit_mode, cannot be scored row by row."
                )
        check_at_hand(X, y, groups)
        words = word_counter(estimator)
        low, high = checked_score_bounds(
            self.bounds, self.metric, step, "bounds", texts=words is not None
        )
        scores: UnitMetric | UnitScores = (
            UnitMetric(self.metric, estimator)
            if callable(self.metric)
            else UnitScores(self.metric, estimator, words)
        )
        query = HeldOutScores(scores, low, high)
        labels = None
        if hooks_of(step) is step:
            check_is_fitted(step)
        reports = fitted_reports(estimator)
        relation = scored_relation(reports, self.neighbours)
        if groups is not None or relation == "add_remove":
            X, y, labels = checked_units(X, y, groups, relation)
        n_given = read(lambda: n_rows(X), "X")
        unit = scored_unit(reports, labels is not None)
        private = labels is not None or relation == "add_remove"
        if n_given == 0 and not private:
            raise ValueError("X must have at least one row to score, got none.")
        if y is not None:
            check_targets(y, n_given, private=private)
        check_scorable(self.metric, estimator, y, n_given, "metric", private=private)
        check_answers(self.metric, estimator, X, "metric")
        plan = ReleasePlan.split(self.epsilon, self.delta, {"held_out_scores": 1.0})
        payer = self._payer()
        score, report = release_score(
            query, held_out(X, y, labels), plan, spender=type(self).__name__, unit=unit,
            accountant=payer, neighbours=relation,
        )  # fmt: skip
        if callable(self.metric):  # one with a name fails on no row of its kind
            _warn_if_low(score, (low, high), report.rows[-1].sigma)
        return score

    def __repr__(self) -> str:
        told = "" if self.neighbours is None else f", neighbours={self.neighbours!r}"
        return (
            f"make_private_scorer({self.metric!r}, epsilon={self.epsilon!r}, "
            f"delta={self.delta!r}, bounds={self.bounds!r}{told})"
        )
