"""Private random search: only the best of a secret number of trials is released."""

import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from sktensor_dp.checks.errors import call_untrusted
from sktensor_dp.checks.floating_point import under_own_errors
from sktensor_dp.checks.parameters import (
    Constraint,
    InstanceOf,
    Number,
    OneOf,
    check_parameters,
    check_sizes,
)
from sktensor_dp.data.labels import distinct
from sktensor_dp.estimator.base import (
    COLUMNS,
    LARGEST_EPSILON,
    FittedStateMixin,
    KnownParameters,
    PrivateEstimatorMixin,
    check_arguments,
    check_output,
    warnings_of_delta,
)
from sktensor_dp.estimator.facts import unit_of
from sktensor_dp.estimator.inputs import check_counted_alike, refuse_lists
from sktensor_dp.estimator.scoring import warn_of_score
from sktensor_dp.exceptions import (
    DoubtfulParameterWarning,
    NotEnoughDataError,
    NotEnoughDataWarning,
    PrivacyLeakWarning,
)
from sktensor_dp.model_selection.costs import (
    cost_of_trials,
    report_of_failure,
    report_of_search,
    set_budgets,
)
from sktensor_dp.model_selection.forecast import SearchForecast, sigma_of_score
from sktensor_dp.model_selection.pipeline_steps import (
    before_private,
    candidates_of,
    check_forecast_options,
    check_fractions,
    checked_distributions,
    checked_rows,
    configured,
    parameters_in_words,
    private_steps,
    steps_of,
    tried_steps,
    vectorized_columns,
)
from sktensor_dp.model_selection.scores import (
    check_comparable,
    check_scoring,
    checked_score_bounds,
    checked_targets,
    unit_labels_in,
    word_counter,
)
from sktensor_dp.model_selection.splits import checked_units, n_rows, split_units
from sktensor_dp.model_selection.trials import Request, Trial, Trials
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.ledger_entries import LedgerEntry
from sktensor_dp.privacy.payer import HasAccountant, Payer, attribute_of_payment, column_of_units
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.selection_cost import stop_probability
from sktensor_dp.privacy.unsafe import refuse_recording

# A search with less would see noise alone.
LEAST_EPSILON = 1e-6


def _model_has(name: str) -> Callable[[Any], bool]:
    """Condition for ``available_if``: the best model, or before a fit the estimator, has `name`."""

    def check(search: "PrivateSearchCV") -> bool:  # or an AttributeError of the model's own
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return check


class PrivateSearchCV(
    KnownParameters, HasAccountant, FittedStateMixin, MetaEstimatorMixin, BaseEstimator
):
    """Random search over hyperparameters that is private as a whole.

    Candidates are drawn at random with replacement, fitted on a part of the rows, and
    scored on the rest with noise. How many are tried is a secret of the search, geometrically
    distributed; only the best is kept. The price, more noise in every fit, does not grow with
    the number of candidates there are.

    Parameters
    ----------
    estimator : estimator
        A private estimator of this library, or a pipeline with one or more, such as a
        ``PrivateCountVectorizer`` and the topics of its counts. Their ``epsilon`` and
        ``delta`` are set by the search. Other steps must be ``HashingVectorizer``,
        ``CountVectorizer(vocabulary=...)``, ``Normalizer``, ``Binarizer`` or
        :func:`~sktensor_dp.scale_by_ranges`. Apply functions of rows before the search.
    param_distributions : dict or list of dicts
        Names of parameters, with lists of values or distributions with ``rvs``, drawn from
        as by ``sklearn.model_selection.ParameterSampler``. Refused are parameters that decide what
        a score measures: a wrong value would win (``docs/tuning.md``).
    n_trials : float, default=10.0
        Expected number of trials, >= 1; the chance of a single one is ``1 / n_trials``. Ten cost a
        third of the signal-to-noise ratio of a single fit (on ``mu``; see ``docs/tuning.md``),
        fifty a half.
    scoring : str or None, default=None
        Score of each row, larger being better: ``"neg_mean_squared_error"``,
        ``"neg_mean_absolute_error"``, ``"log_likelihood"`` (of ``score_samples``),
        ``"third_moment_fit"`` (``score_samples`` of components) or ``"log_likelihood_per_token"``
        (a word of a text that the vocabulary does not have counts with a probability of 1e-5). None
        takes what suits the estimator.
    score_bounds : (low, high) or None, default=None
        Public range that the score of a row is clipped to; noise is in proportion to its
        width. None for those that public parameters imply: squared errors by the bounds of
        a completion, log-likelihoods per token by twice that of evenly likely words, or of
        texts by that of an unknown one.
    test_size : float, default=0.2
        Fraction of rows, or of groups, held out at random; the model that was fitted to the others
        is kept. Groups are dealt out by secret coins, and so are rows with
        ``neighbours="add_remove"``.
    step_fractions : dict of str to float or None, default=None
        Part of each private step of a pipeline, by name, in the cost (``mu ** 2``) of a fit;
        they need not add up to 1. None divides it evenly among those that learn from the data.
    epsilon : float, default=1.0
        Privacy parameter of the whole search, from 1e-6 to 1e12. ``float("inf")``: no
        noise.
    delta : float, default=1e-6
        Privacy parameter in [0, 1). 0 asks for pure differential privacy. Completions of
        entries, but for those by gradients within given bounds, release some values with pure
        noise: a search over them is as with 0, and costs no delta.
    accountant : BudgetAccountant or None, default=None
        Charged once, before any query of the data: what is refused before costs nothing.
    random_state : int, RandomState or None, default=None
        Seeds the positions of held-out rows where no coins deal them out; nothing else.
    verbose : int, default=0
        1 says on standard error that the search begins and ends.
    forecast_options : mapping, optional
        Public guesses that forecasts of trials assume: options of the estimator's ``forecast``,
        such as ``document_length`` for topics or ``component_share`` for completions; and for
        completions of persons ``entries_each``, the entries of a person (by default 20).
    anyway : bool, default=False
        True searches also where :meth:`forecast` says that noise decides, or that no trial shows
        what it is asked for; False refuses that before the charge, if the number of units is
        public.

    Attributes
    ----------
    best_estimator_, best_params_ : estimator, dict
        The best trial's model, with the report of the search, and parameters.
    best_score_ : float
        Noisy score of the best trial on held-out rows, within its bounds; biased upwards as the
        largest of several.
    privacy_report_ : PrivacyReport
        Guarantee of the whole search, and releases of the best trial.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number and names of features, where the best estimator has them.

    See Also
    --------
    make_private_scorer : Scores with noise for scikit-learn's own tools.
    sktensor_dp.check_inputs : A check of columns, lists and bounds, once before all trials.

    Notes
    -----
    There is no ``cv_results_``: other trials, and their number, would void the guarantee.

    **Privacy.** *Unit and neighbours*: those of the private estimator, whose units must be
    rows, or groups of rows: the score of a group is then the mean of those of its rows.
    Units of a completion with a ``unit_mode`` are groups, as many as its ``shape`` says; their
    values are predicted by their other values, see ``fold_in``.
    A pipeline is for ``neighbours="replace_one"``.
    *Public*: the number of rows (with groups, that of groups and not that of rows; neither
    with ``neighbours="add_remove"``, where every fit and score counts its units first), the
    candidates' distributions, bounds and all other parameters. *Releases*: those of the
    estimator's fits and ``held_out_scores``, all of the best trial only. The whole is
    (epsilon, delta)-differentially private (``docs/proofs/private_selection.md``), and is
    charged as such: no more is known of it, so the delta is used up; give it less than the
    budget has if other fits follow. *Not covered*: running time, which tells how many
    trials there were, and other traces in the process (``docs/security.md``).

    References
    ----------
    J. Liu, K. Talwar, "Private selection from private candidates", STOC 2019.
    N. Papernot, T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR
    2022. A. Koskela, R. Redberg, Y.-X. Wang, "Privacy profiles for private selection",
    ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateGaussianMixture, PrivateSearchCV
    >>> X = np.random.default_rng(0).normal([[4, 0, 0], [0, 4, 0]] * 10000)
    >>> mixture = PrivateGaussianMixture(2)
    >>> search = PrivateSearchCV(mixture, {"data_norm": [8.0, 16.0]}, score_bounds=(-20.0, 0.0))
    >>> search.fit(X).privacy_report_.epsilon
    1.0
    """

    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "n_trials": [Number(1, 1e6)],
        "test_size": [Number(0, 1, closed="neither")],
        # A trial gets a part of epsilon, which the estimator has to accept.
        "epsilon": [Number(LEAST_EPSILON, LARGEST_EPSILON), Number(math.inf, math.inf)],
        "forecast_options": [InstanceOf(Mapping), OneOf(None)],
        "anyway": [InstanceOf(bool)],
    }

    best_estimator_: BaseEstimator
    best_params_: Mapping[str, object]
    best_score_: float
    privacy_report_: PrivacyReport

    def __init__(
        self,
        estimator: BaseEstimator,
        param_distributions: Mapping[str, object] | Sequence[Mapping[str, object]],
        *,
        n_trials: float = 10.0,
        scoring: str | None = None,
        score_bounds: tuple[float, float] | None = None,
        test_size: float = 0.2,
        step_fractions: Mapping[str, float] | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        forecast_options: Mapping[str, object] | None = None,
        anyway: bool = False,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_trials = n_trials
        self.scoring = scoring
        self.score_bounds = score_bounds
        self.test_size = test_size
        self.step_fractions = step_fractions
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.forecast_options = forecast_options
        self.anyway = anyway

    def fit(
        self, X: object, y: object = None, *, groups: ArrayLike | None = None, **unsupported: object
    ) -> Self:
        """Search, and keep the best model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of n_rows units
            Data as the estimator takes it.
        y : array-like of shape (n_rows,), optional
            Targets, if the estimator has any.
        groups : array-like of shape (n_rows,), optional
            Label of the group of each row: integers or strings. Whole groups are then held out and
            protected; the number of rows is private. Completions take none: their `X` says whose
            a row is, where they have a ``unit_mode``.
        **unsupported : object
            Refused: ``sample_weight`` would be read from the data.

        Returns
        -------
        self : PrivateSearchCV

        Raises
        ------
        TypeError, ValueError
            If an argument, a parameter or a listed value of one is wrong, a step is not listed, or
            the estimator refuses the data (no budget is spent then); or, after the charge, if it
            refuses a candidate that was drawn.
        NotEnoughDataError
            If no trial can show anything of a public number of units (see `anyway`), or every
            candidate is refused before its charge: no budget is spent then. Or, after the charge,
            if no trial could be fitted.
        BudgetError
            If the accountant has too little left, or would keep epsilon without any delta; no
            budget is spent.
        """
        refuse_recording(type(self).__name__)
        request = self._request(groups, unsupported)
        trials = self._checked_trials(request, X, y, groups)
        unit = unit_of(request.last._public_facts().unit, grouped=trials.labels is not None)
        self._check_budget(request)
        trials.refuse_before_charge()
        if not request.number_is_private:
            number = trials.split.n_units
            self._warn(warnings_of_delta(self.epsilon, request.delta, number, unit))
            expected = self._forecast(request, number, trials.bounds, trials.n_features)
            if (expected.is_noise or expected.shows_nothing) and not self.anyway:
                raise NotEnoughDataError(
                    f"{expected}\nNothing was charged. To search all the same: "
                    "PrivateSearchCV(..., anyway=True)."
                )
        column = column_of_units(request.last, X, groups)
        payer = Payer(type(self).__name__, self._accountant_to_charge(), column=column)
        entry = replace(request.entry, unit=unit)
        payer.check_several([entry])
        self._warn(payer.warnings_of_repetition([entry]))
        payer.charge_entries([entry])
        self._say("search begins")
        try:
            best = trials.run_all()
            paid = payer.accountant is not None
            state = self._attributes(best, request, trials.bounds, paid)
            # Reports of single fits would show the cost of one fit, not that of the search.
            for step in private_steps(best.model).values():
                step._adopt(state["privacy_report_"], paid)
            self._say("search ended")
            self._publish(state)
        except BaseException as error:
            number = 0 if request.number_is_private else trials.split.n_units
            payer.add_charge_to(error, report_of_failure(entry, number, request.delta))
            raise
        if request.number_is_private:
            number = state["privacy_report_"].n_units
            self._warn(warnings_of_delta(self.epsilon, request.delta, number, unit))
        # These warnings follow from released values in every step; others may depend on rows.
        ours = (DoubtfulParameterWarning, NotEnoughDataWarning, PrivacyLeakWarning)
        for caught in best.warnings:
            if issubclass(caught.category, ours):
                warnings.warn_explicit(
                    caught.message, caught.category, caught.filename, caught.lineno
                )
        return self

    def _checked_trials(self, request: Request, X: object, y: object, groups: object) -> Trials:
        """Trials on split data, or an error for data that every fit would refuse."""
        if request.number_is_private:  # a part without rows still has the columns of an array
            refuse_lists(X)
        # X may be counts over a private vocabulary.
        check_counted_alike(X, request.neighbours, grouped=groups is not None)
        X, y, labels = checked_units(X, y, groups, request.neighbours)
        y = checked_targets(request.scoring, self.estimator, X, y, "scoring")
        X = checked_rows(self.estimator, X)
        step_name, rows = call_untrusted(
            partial(before_private, self.estimator, X), "A step",
            rows_private=labels is not None or request.number_is_private,
        )  # fmt: skip
        # Completions refuse coordinates outside their shape, or repeated; other fits nothing here.
        request.steps[step_name]._validation_copy()._refuse_rows(rows, y)
        in_data = unit_labels_in(self.estimator, X)
        n_units = request.last._public_facts().n_units
        if in_data is not None:  # then no `groups` are given: units of X are its groups
            labels = in_data
            if n_units is None or len(distinct(in_data)[0]) > n_units:
                raise ValueError(
                    "The shape of the estimator must be given, and count all units that X has "
                    "values of."
                )
        split = split_units(
            self.test_size, n_rows(X), labels, number_is_private=request.number_is_private,
            random_state=self.random_state, n_units=n_units,
        )  # fmt: skip
        # Columns of the last step are known only if no earlier private step makes them.
        is_last = request.steps[step_name] is request.last
        shape: tuple[int, ...] = getattr(rows, "shape", ()) if is_last else ()
        n_features = int(shape[1]) if len(shape) == 2 else None
        return Trials(
            self.estimator, self.step_fractions, request, X, y, labels=labels,
            units_in_data=in_data is not None, split=split,
            bounds=self._bounds(request, n_features), n_features=n_features,
        )  # fmt: skip

    def _bounds(self, request: Request, n_features: int | None) -> tuple[float, float]:
        """Public (low, high) that scores are clipped to, given or implied."""
        return checked_score_bounds(
            self.score_bounds, request.scoring, request.last, "score_bounds",
            texts=word_counter(self.estimator) is not None, n_features=n_features,
        )  # fmt: skip

    def forecast(self, n_units: int, n_features: int | None = None) -> SearchForecast:
        """Say, from public numbers alone, what scores and trials can show.

        Parameters
        ----------
        n_units : int
            Number of units to come: rows, or groups of rows.
        n_features : int, optional
            Number of columns or words that the estimator will be given. Not needed after a
            vectorizer with a ``vocabulary``, nor by completions, whose ``shape`` says it.

        Returns
        -------
        SearchForecast
            Distance that scores of candidates must have, the chance that there is one trial alone,
            and the verdict of the estimator's own forecast on trials, with what that assumes. Costs
            nothing.

        Raises
        ------
        ValueError, BudgetError
            If a parameter is wrong, `score_bounds` are needed, or the accountant would refuse the
            search that is to come.

        Examples
        --------
        >>> from sktensor_dp import PrivateCPCompletion, PrivateSearchCV
        >>> ranks = PrivateCPCompletion(bounds=(1, 5), unit_mode=0, shape=(943, 1682))
        >>> search = PrivateSearchCV(ranks, {"rank": [1, 2, 4, 8]}, epsilon=2.0)
        >>> round(search.forecast(943).told_apart, 1)  # squares of stars
        0.6
        """
        request = self._request(groups=None, unsupported={})
        sizes = {"n_units": n_units, "n_features": n_features}
        check_sizes(**{name: size for name, size in sizes.items() if size is not None})
        of_shape = request.last._public_facts().n_units
        if of_shape not in (None, n_units):
            raise ValueError(f"n_units must be {of_shape}, the units of shape; got {n_units}.")
        n_features = n_features or vectorized_columns(self.estimator)
        bounds = self._bounds(request, n_features)
        if not self.__sklearn_is_fitted__():  # a search that is to come
            self._check_budget(request)
        return self._forecast(request, n_units, bounds, n_features)

    def _forecast(
        self, request: Request, n_units: int, bounds: tuple[float, float], n_features: int | None
    ) -> SearchForecast:
        """Forecast for a request, with verdicts on candidates, on some if there are many."""
        most_candidates = 10
        n_scored = max(math.ceil(n_units * self.test_size), 1)
        candidates = candidates_of(request.distributions, most_candidates)
        verdicts, n_fitted = [], max(n_units - n_scored, 1)
        options = {**request.last._public_facts().guesses, **(self.forecast_options or {})}
        assumed: dict[str, list[str]] = {}  # candidates by sentence, in their order
        for params in candidates:
            model = configured(self.estimator, params, np.random.RandomState(0))
            steps = private_steps(model)
            set_budgets(steps, request.cost, self.step_fractions, request.delta)
            *before, last = steps.values()
            columns = n_features
            parameters = before[-1].get_params() if before else {}
            learns_words = "vocabulary" in parameters and parameters["vocabulary"] is None
            if columns is None and learns_words:
                columns = before[-1].forecast(n_fitted, **options).n_words
            if (expected := last._forecast_verdict(n_fitted, columns, **options)) is not None:
                verdict, sentences = expected
                verdicts.append((params, verdict))
                for sentence in sentences:
                    assumed.setdefault(sentence, []).append(parameters_in_words(params))
        n_all = len(verdicts)
        return SearchForecast(
            n_scored, sigma_of_score(request.cost, n_scored, bounds, request.neighbours),
            bounds[1] - bounds[0], float(self.epsilon), request.delta,
            request.cost.epsilon_at(request.delta), n_units - n_scored, request.stop,
            tuple(verdicts),
            tuple(said if len(of) == n_all else f"{'; '.join(of)}: {said}"
                  for said, of in assumed.items()),
        )  # fmt: skip

    def _check_budget(self, request: Request) -> None:
        """Raise BudgetError if the accountant would refuse the search, or strand its epsilon."""
        if (accountant := self._accountant_to_charge()) is not None:
            accountant._check_search([request.entry])

    def _request(self, groups: object, unsupported: Mapping[str, object]) -> Request:
        """Request that the parameters make; an error for wrong ones, and for wrong arguments."""
        check_parameters(
            self, {**PrivateEstimatorMixin._privacy_constraints, **self._own_constraints}
        )
        check_arguments(self, unsupported)
        distributions = checked_distributions(self.param_distributions)
        steps = private_steps(self.estimator)
        if any(step.accountant is not None for step in steps.values()):
            raise ValueError("estimator must have accountant=None: pass it to the search.")
        for step in steps.values():
            if groups is not None and not has_fit_parameter(step, "groups"):
                check_arguments(step, ["groups"])
        last = [*steps.values()][-1]
        check_fractions(self.step_fractions, steps)
        check_forecast_options(self.forecast_options or {}, last)
        is_pipeline = "" not in steps
        if is_pipeline and last.neighbours == "add_remove":
            raise ValueError(
                "estimator must be a private estimator by itself where neighbours='add_remove', "
                "not a pipeline: a part may have no rows, which other steps refuse. Apply steps "
                "that learn nothing from the data before the search."
            )
        tried, stop = tried_steps(distributions, self.estimator), stop_probability(self.n_trials)
        delta, cost = cost_of_trials(steps, tried, self.epsilon, self.delta, stop)
        scoring = self._checked_scoring(last)
        names = dict.fromkeys(chain.from_iterable(distributions))
        bounds_given = self.score_bounds is not None
        check_comparable(names, steps_of(self.estimator), scoring, bounds_given=bounds_given)
        entry = LedgerEntry(
            type(self).__name__, "private_selection", uses=1,
            cost=PrivacyCost(epsilon=float(self.epsilon), delta=delta),
            neighbours=last.neighbours,
        )  # fmt: skip
        return Request(steps, distributions, scoring, delta, stop, cost, entry)

    def _checked_scoring(self, last: PrivateEstimatorMixin) -> str:
        """Name of the score: the parameter, or the default of the estimator's `last` step."""
        scoring = self.scoring
        if scoring is None:
            regressor = get_tags(self.estimator).estimator_type == "regressor"
            scoring = "neg_mean_squared_error" if regressor else last._public_facts().score
        if scoring is None:
            raise ValueError(f"scoring must be given: {type(last).__name__} has no default.")
        check_scoring(scoring, "scoring")
        return scoring

    def _attributes(
        self, best: Trial, request: Request, bounds: tuple[float, float], paid: bool
    ) -> dict[str, Any]:
        """Fitted attributes of the search that ended with `best`, and that an accountant `paid`."""
        steps, score = private_steps(best.model).values(), float(np.clip(best.score, *bounds))
        report = report_of_search(
            [step.privacy_report_ for step in steps], best.parts, request.found(best, bounds),
            epsilon=float(self.epsilon), delta=request.delta, n_trials=float(self.n_trials),
        )  # fmt: skip
        state = {
            "privacy_report_": report, "best_estimator_": best.model,
            "best_params_": best.params, "best_score_": score,
        }  # fmt: skip
        columns = {name: getattr(best.model, name) for name in COLUMNS if hasattr(best.model, name)}
        return {**state, **columns, **attribute_of_payment(paid)}

    def _say(self, line: str) -> None:
        """Print a line on standard error, where verbose."""
        if self.verbose:
            with suppress(OSError, ValueError):  # a closed stream must not lose a paid search
                print(f"[{type(self).__name__}] {line}", file=sys.stderr, flush=True)

    @available_if(_model_has("predict"))
    @under_own_errors
    def predict(self, X: object) -> Any:
        """Predictions of the best model; see its own method."""
        return self._by_best("predict", X)

    @available_if(_model_has("transform"))
    @under_own_errors
    def transform(self, X: object) -> Any:
        """Transform `X` by the best model; see its own method."""
        return self._by_best("transform", X)

    @available_if(_model_has("transform"))
    @under_own_errors
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Search, and transform `X` by the best model."""
        for step in private_steps(self.estimator).values():
            check_output(step)
        return self.fit(X, y, **fit_params).transform(X)

    @available_if(_model_has("score_samples"))
    @under_own_errors
    def score_samples(self, X: object) -> Any:
        """Score of every row by the best model; see its own method."""
        return self._by_best("score_samples", X)

    @available_if(_model_has("score"))
    @under_own_errors
    def score(self, X: object, y: object = None) -> float:
        """Score of the best model, by its own method and without noise."""
        last = [*steps_of(getattr(self, "best_estimator_", self.estimator)).values()][-1]
        warn_of_score(last)
        return float(self._by_best("score", X, *(() if y is None else (y,))))

    def __getattr__(self, name: str) -> Any:
        if name in ("save", "fold_in", "recommend"):
            raise AttributeError(f"A search has no {name}: call best_estimator_.{name}(...).")
        return self.__getattribute__(name)  # raises its own AttributeError again

    def _by_best(self, method: str, *given: object) -> Any:
        """Result of a method of the best model; its errors show no data."""
        check_is_fitted(self)
        return call_untrusted(lambda: getattr(self.best_estimator_, method)(*given), method)

    def __sklearn_is_fitted__(self) -> bool:
        return "best_estimator_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.regressor_tags, tags.classifier_tags = inner.regressor_tags, inner.classifier_tags
        tags.target_tags, tags.input_tags = inner.target_tags, inner.input_tags
        tags.transformer_tags = inner.transformer_tags
        tags.non_deterministic = True
        return tags
