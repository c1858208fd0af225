"""Choosing hyperparameters without giving away more than was asked for."""

import math
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from sktensor_dp.estimator.base import (
    LARGEST_EPSILON,
    NEIGHBOURS,
    PrivateEstimatorMixin,
    check_arguments,
    unit_of,
)
from sktensor_dp.estimator.inputs import refuse_lists
from sktensor_dp.estimator.parameters import Constraint, Number, check_parameters
from sktensor_dp.exceptions import NotEnoughDataWarning, PrivacyLeakWarning
from sktensor_dp.model_selection.candidates import BestModel
from sktensor_dp.model_selection.scorer import PrivateScorer
from sktensor_dp.model_selection.splits import (
    Splits,
    check_parts,
    public_splits,
    secret_splits,
)
from sktensor_dp.model_selection.stateless_steps import check_blank_rows
from sktensor_dp.model_selection.steps import (
    check_alone,
    check_groups_taken,
    check_names,
    check_shares,
    check_values,
    checked_distributions,
    delta_in_use,
    private_steps,
)
from sktensor_dp.model_selection.trial_costs import TrialCosts, report_of_search
from sktensor_dp.model_selection.trials import Trial, Trials
from sktensor_dp.model_selection.unit_rows import (
    check_scorable,
    check_scoring,
    checked_units,
    n_rows,
)
from sktensor_dp.model_selection.unit_scores import checked_score_bounds
from sktensor_dp.privacy.accountant import BudgetAccountant, LedgerEntry
from sktensor_dp.privacy.composition import Composition
from sktensor_dp.privacy.parts import even_places, secret_coins
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.selection import failure_of_trials, stop_probability, trial_cost
from sktensor_dp.queries.reading import call_foreign

# Below it the shares of trials vanish.
LEAST_EPSILON = 1e-6


class PrivateSearchCV(BestModel):
    """Random search over hyperparameters that is private as a whole.

    Candidates are drawn at random with replacement, fitted on a part of the rows, and
    scored on the rest with noise, all privately. How many are tried is a secret of the
    search, geometrically distributed; only the best is kept. The price is a moderately
    larger noise in every fit, and does not grow with the number of candidates there are.

    Parameters
    ----------
    estimator : estimator
        A private estimator of this library, or a pipeline with one or more, such as a
        ``PrivateCountVectorizer`` and the topics of its counts. Their ``epsilon`` and
        ``delta`` are set by the search. Other steps must be stateless
        (``HashingVectorizer``, ``Normalizer``, a ``FunctionTransformer`` that treats
        every row by itself) or named in ``public_steps``. A blank row (zeros or ones, or an
        empty text) stands for each training row on which a stateless step fails.
    param_distributions : dict or list of dicts
        Names of parameters, with lists of values or distributions with ``rvs``. Of
        several dicts one is drawn evenly, then a value for each of its names.
    n_trials : float, default=10.0
        Expected number of trials, >= 1. Ten cost a third of the signal-to-noise ratio of
        a single fit (on ``mu``; see ``docs/tuning.md``), fifty a half.
    scoring : str, callable or None, default=None
        Score of each unit, larger being better: ``"neg_mean_squared_error"``,
        ``"neg_mean_absolute_error"``, ``"accuracy"``, ``"log_likelihood"`` (what
        ``score_samples`` says), ``"log_likelihood_per_token"`` (of texts, each word that
        the vocabulary does not have counts with a probability of 1e-5), or a callable
        ``(estimator, X, y) -> array of shape (n_rows,)`` (without ``y`` if there is none)
        that is called for each row by itself. None takes what suits the estimator.
    score_bounds : (low, high) or None, default=None
        Public range that scores of units are clipped to; noise is in proportion to its
        width. None for those that public parameters imply: squared errors by the bounds of
        a completion, log-likelihoods per token by twice that of evenly likely words, or of
        texts by that of an unknown one.
    cv : None, int, splitter or iterable, default=None
        None holds out one random part and keeps the model that was fitted on the other;
        at a given budget that is best. Several splits cost every fit more noise, and half
        of the budget (of ``mu ** 2``; of epsilon if ``delta=0``) goes to a last fit on all
        rows. Splitters see the number of rows only. Positions in a list count as public: made
        from labels, as by ``StratifiedKFold``, they would tell of these. Where groups are given
        these are places, as many as groups, to which secret coins deal them out. With
        ``neighbours="add_remove"`` None or an int: every unit then goes to a part by itself.
    test_size : float, default=0.2
        Share of rows, or of groups, held out, for ``cv=None``; the odds of the coins.
    public_steps : collection of str, default=()
        Names of steps that learn from the data what is public anyway, such as categories
        of public coordinates. Everything they learn is outside the guarantee.
    step_shares : dict of str to float or None, default=None
        Share of each private step of a pipeline, by name, in the cost (``mu ** 2``) of a fit;
        they need not add up to 1. None shares it evenly among those that learn from the data.
    epsilon : float, default=1.0
        Privacy parameter of the whole search, from 1e-6 to 1e12. ``float("inf")``: no
        noise.
    delta : float, default=1e-6
        Privacy parameter in [0, 1). 0 asks for pure differential privacy. Completions of
        entries, whose own noise mostly is pure, are searched over as with 0, and the search
        then costs no delta.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        Whether one unit is replaced, or one more; that of the estimator, which must be no
        pipeline if its units come and go (``docs/guarantee.md``).
    accountant : BudgetAccountant or None, default=None
        Charged once, before anything is read.
    random_state : int, RandomState or None, default=None
        Seeds the positions of held-out rows, which are public. Never noise, coins of groups,
        candidates or their number.
    verbose : int, default=0
        Whether to say on standard error that the search begins and ends, and nothing else.

    Attributes
    ----------
    best_estimator_ : estimator
        The best trial's model; the report of its private steps is that of the search.
    best_params_ : dict
        Its candidate.
    best_score_ : float
        Its score on held-out rows, with noise. It is the largest of several, so it
        flatters.
    privacy_report_ : PrivacyReport
        The guarantee of the whole, and the releases of one trial.
    n_features_in_ : int
        Number of features, where the best estimator has it.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, where the best estimator has them.

    See Also
    --------
    make_private_scorer : Scores with noise for scikit-learn's own tools.

    Notes
    -----
    There is no ``cv_results_``: what other trials gave, and how many there were, would void
    the guarantee. Warnings shown are those of the fits of the best trial.

    **Privacy.** *Unit and neighbours*: those of the private estimator, whose units must be
    rows, or groups of rows: the score of a group is then the mean of those of its rows.
    *Public*: the number of rows (with groups, that of groups and not that of rows; neither
    with ``neighbours="add_remove"``, where every fit and score counts its units first), the
    candidates' distributions, bounds and all other parameters. *Releases*: those of the
    estimator's fits and ``held_out_scores``, all of the best trial only. The whole is
    (epsilon, delta)-differentially private (``docs/proofs/private_selection.md``), and is
    charged as such: no more is known of it, so the delta is used up; give it less than the
    budget has if other fits follow. *Not covered*: running time, which tells how many
    trials there were, and other traces in the process (``docs/security.md``);
    ``public_steps``; a list ``cv`` made from the data.

    References
    ----------
    J. Liu, K. Talwar, "Private selection from private candidates", STOC 2019.
    N. Papernot, T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR
    2022. A. Koskela, R. Redberg, Y.-X. Wang, "Privacy profiles for private selection",
    ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateSearchCV, PrivateTensorPowerMethod
    >>> rng = np.random.default_rng(0)
    >>> means = np.array([[4.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    >>> X = means[rng.integers(2, size=40000)] + rng.standard_normal((40000, 3))
    >>> mixture = PrivateTensorPowerMethod(2, moment="gaussian_mixture")
    >>> search = PrivateSearchCV(
    ...     mixture, {"data_norm": [8.0, 16.0]}, score_bounds=(-20.0, 0.0), epsilon=2.0
    ... ).fit(X)
    >>> search.privacy_report_.epsilon
    2.0
    """

    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "n_trials": [Number(1, 1e6)],
        "test_size": [Number(0, 1, closed="neither")],
        # A trial costs a part of it, which the estimator has to accept.
        "epsilon": [Number(LEAST_EPSILON, LARGEST_EPSILON), Number(math.inf, math.inf)],
        **NEIGHBOURS,
    }

    privacy_report_: PrivacyReport

    def __init__(
        self,
        estimator: Any,
        param_distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        n_trials: float = 10.0,
        scoring: str | Callable[..., Any] | None = None,
        score_bounds: tuple[float, float] | None = None,
        cv: Any = None,
        test_size: float = 0.2,
        public_steps: Collection[str] = (),
        step_shares: Mapping[str, float] | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        neighbours: str = "replace_one",
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_trials = n_trials
        self.scoring = scoring
        self.score_bounds = score_bounds
        self.cv = cv
        self.test_size = test_size
        self.public_steps = public_steps
        self.step_shares = step_shares
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any = None, *, groups: ArrayLike | None = None, **unsupported: Any
    ) -> Self:
        """Search, and keep the best model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of n_rows units
            Data as the estimator takes it.
        y : array-like of shape (n_rows,), optional
            Targets, if the estimator has any.
        groups : array-like of shape (n_rows,), optional
            Whose each row is: integers or strings. Whole groups are then held out and
            protected; the number of rows is private.
        **unsupported : object
            Refused: ``sample_weight`` would be read from the data.

        Returns
        -------
        self : PrivateSearchCV
            With the attributes of the best trial.

        Raises
        ------
        TypeError
            If an argument is not supported, or the estimator takes no groups.
        ValueError
            If a parameter, a listed value of one or `groups` is wrong, a step would leak, or
            the estimator, where it is no pipeline, refuses the data (no budget is spent then);
            or, after the charge, if a step refuses the data or a candidate that was drawn.
        NotEnoughDataError
            If no trial could be fitted, because no word entered a vocabulary for example. A
            trial to which that happens loses to all others. The budget is spent.
        BudgetError
            If the accountant has too little left; no budget is spent.
        """
        steps, distributions, scoring, delta, aside, unit = self._checked(y, groups, unsupported)
        counted = self.neighbours == "add_remove"
        if counted:
            refuse_lists(X)
        X, y, labels = checked_units(X, y, groups, self.neighbours)
        if "" in steps:  # what other steps make of rows is not known
            searched = set().union(*distributions)
            witness = steps[""]._witness()
            witness._refuse_rows(X, y, grouped=groups is not None, searched=searched)
        private = labels is not None or counted
        check_scorable(scoring, self.estimator, y, n_rows(X), "scoring", private=private)
        stop = stop_probability(self.n_trials)
        failure = failure_of_trials(delta, stop) if aside else 0.0
        trial = trial_cost(self.epsilon, delta, stop, failure)
        splits = self._splits(n_rows(X), labels)
        if isinstance(self.estimator, Pipeline):
            check = partial(check_blank_rows, self.estimator, self.public_steps, X)
            call_foreign(check, "A blank row", rows_private=private)
        costs = TrialCosts.shared(trial, splits)
        trials = Trials(self, X, y, labels, distributions, scoring, splits, costs, delta)
        self._charge(delta, unit)
        best = trials.best(stop)
        number = trials.number(best)
        state = self._attributes(best, costs.composed(splits, best.parts, number), number, delta)
        self._say("search ended")
        # What numpy says of the rows a step was shown is no release.
        ours = (NotEnoughDataWarning, PrivacyLeakWarning)
        for told in (told for told in best.warnings if issubclass(told.category, ours)):
            warnings.warn_explicit(told.message, told.category, told.filename, told.lineno)
        self._publish(state)
        return self

    def _splits(self, n_units: int, labels: NDArray[Any] | None) -> Splits:
        """Deal out rows, or groups by secret coins of their own."""
        names, units = None, None
        if labels is not None:
            names, units = np.unique(labels, return_inverse=True)
            n_units = len(names)
        if self.neighbours == "add_remove":
            coins = secret_coins(n_units, names)
            return replace(secret_splits(self.cv, self.test_size, coins), units=units)
        splits = public_splits(self.cv, self.test_size, n_units, self.random_state)
        if names is None or units is None:
            return splits
        if min(len(own) for own, _ in splits.pairs) < 2:
            raise ValueError("groups, cv and test_size must leave two groups or more to train on.")
        return splits.dealt(even_places(secret_coins(n_units, names))[units])

    def _checked(
        self, y: Any, groups: Any, unsupported: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[Mapping[str, Any]], Any, float, bool, str]:
        """Refuse what is wrong by public numbers alone; steps, what is tried, delta, the unit."""
        constraints = {**PrivateEstimatorMixin._privacy_constraints, **self._own_constraints}
        check_parameters(self, constraints)
        check_arguments(self, unsupported)
        distributions = checked_distributions(self.param_distributions)
        steps = private_steps(self.estimator, self.public_steps)
        for step in steps.values():
            check_groups_taken(step, groups)
        check_shares(self.step_shares, steps)
        if self.neighbours == "add_remove":
            check_alone(steps)
            check_parts(self.cv)
        for one in distributions:
            check_names(one, self.estimator, steps)
        tried = check_values(distributions, steps, self.neighbours)
        delta, aside = delta_in_use(steps, tried, self.epsilon, self.delta)
        tags, step, scoring = get_tags(self.estimator), list(steps.values())[-1], self.scoring
        unit = unit_of(step._unit, groups is not None)
        if scoring is None:
            regressor = tags.estimator_type == "regressor"
            scoring = "neg_mean_squared_error" if regressor else step._unit_score()
        if scoring is None:
            raise ValueError(f"scoring must be given: {type(step).__name__} has no default.")
        if isinstance(scoring, PrivateScorer):
            raise ValueError("scoring must not add noise: the search does. Pass the metric itself.")
        check_scoring(scoring, "scoring")
        if self.score_bounds is not None:
            checked_score_bounds(self.score_bounds, scoring, None, "score_bounds")
        if y is None and tags.target_tags.required:
            raise ValueError("This search requires y to be passed, but the target y is None.")
        return steps, distributions, scoring, delta, aside, unit

    def _charge(self, delta: float, unit: str) -> None:
        """Charge the whole search as one."""
        payer = self._payer()
        if payer is not None:
            cost = PrivacyCost(epsilon=float(self.epsilon), delta=delta)
            name, relation = type(self).__name__, self.neighbours
            charge = LedgerEntry(name, "private_selection", 1, cost, unit, neighbours=relation)
            payer.charge([charge])
        self._say("search begins")

    def _attributes(
        self, best: Trial, trial: Composition, n_units: int, delta: float
    ) -> dict[str, Any]:
        """What the search leaves behind."""
        steps = private_steps(best.model, self.public_steps).values()
        report = report_of_search(
            [step.privacy_report_ for step in steps], trial, n_units,
            epsilon=float(self.epsilon), delta=delta, n_trials=float(self.n_trials),
        )  # fmt: skip
        # Their own reports tell what one fit costs, which is not what it cost to choose it.
        for step in steps:
            step._adopt(report)
        state = {
            "privacy_report_": report, "best_estimator_": best.model,
            "best_params_": best.params, "best_score_": best.score,
        }  # fmt: skip
        names = getattr(best.model, "feature_names_in_", None)
        return state if names is None else {**state, "feature_names_in_": names}

    def _say(self, what: str) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}] {what}", file=sys.stderr, flush=True)
