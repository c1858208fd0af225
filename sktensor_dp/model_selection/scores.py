"""Scores of one number per row by name, and scorers that release their mean with noise."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.checks.callers import VALIDATION, level_of_caller, locals_of, tools_around
from sktensor_dp.checks.display import counted
from sktensor_dp.checks.errors import call_unquoted
from sktensor_dp.checks.frames import as_numbers, refuse_other_columns
from sktensor_dp.checks.parameters import Number, Numbers, check_parameters, check_sizes, shown
from sktensor_dp.data.labels import distinct
from sktensor_dp.data.units import Units
from sktensor_dp.estimator.base import PrivateEstimatorMixin
from sktensor_dp.estimator.facts import unit_of
from sktensor_dp.estimator.inputs import refuse_other_kinds
from sktensor_dp.exceptions import DoubtfulParameterWarning, NotEnoughDataWarning
from sktensor_dp.model_selection.forecast import ScoreForecast, sigma_of_score
from sktensor_dp.model_selection.pipeline_steps import (
    checked_rows,
    owner_of,
    private_steps,
    steps_of,
    with_values,
)
from sktensor_dp.model_selection.splits import checked_units, n_rows, take
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.answer import is_at_end
from sktensor_dp.privacy.payer import HasAccountant, Payer, column_of_units
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.held_out import HeldOutChunk, HeldOutScores
from sktensor_dp.queries.query import SCORE
from sktensor_dp.tensor.arrays import Floats

# Public probability of each word that a vocabulary lacks, about that of a rare word of a language.
# Scores of texts are clipped at its logarithm by default.
UNKNOWN_WORD = 1e-5
# Log-likelihood per token of counts is clipped by default at this multiple of that of equally
# likely words.
WORST_TOKEN = 2.0
AT_END = (
    "The score lies at an end of its bounds: nearly all rows are clipped to it, or refused by the "
    "model, so that scores of models cannot be compared. Are the bounds in the units of the score?"
)
# Range of score bounds for which noise has a grid.
RANGE = Numbers(
    Number(-SCORE[1], SCORE[1]), 2, f"two finite numbers, low < high, of size {SCORE[1]:g} at most"
)


def held_out_chunk(
    X: object, y: object, labels: NDArray[np.generic] | None, n_units: int | None = None
) -> HeldOutChunk:
    """Held-out rows to be scored, sorted by group where `labels` gives the group of each row.

    `n_units` is the public number of groups, if some may have no rows.
    """
    if labels is None:
        return HeldOutChunk(X, y, Units.single(n_rows(X)))
    order, groups = Units.gathered(labels)
    if order is not None:
        X, y = take(X, order), take(y, order)
    return HeldOutChunk(X, y, groups, n_units)


def row_by_row(method: Callable[[Any], Any], X: Any) -> Floats:
    """Answer of a model's `method`, such as ``predict``, for each row; NaN for rows it refuses."""

    def answers(rows: Any) -> Floats:
        values = np.asarray(method(rows), dtype=np.float64)
        if values.shape != (n_rows(rows),):
            raise ValueError("a model must say one number of each row")
        return values

    # An error would depend on a row, so none leaves.
    with suppress(Exception):
        return answers(X)
    rows = X.tocsr() if sp.issparse(X) else X  # other formats have no rows to take
    refused = np.ones(n_rows(X), dtype=bool)
    for row in range(n_rows(X)):
        with suppress(Exception):
            answers(take(rows, slice(row, row + 1)))
            refused[row] = False
    if not refused.all():
        # Ask again with another row in the place of each refused one: with equally many rows the
        # answers about the others stay the same to the last bit.
        whole = take(rows, np.where(refused, np.argmin(refused), np.arange(len(refused))))
        with suppress(Exception):
            return np.where(refused, math.nan, answers(whole))
    return np.full(n_rows(X), math.nan)


WordCounter = Callable[[Any], Any]

# Names of scores, with the method of a model that each needs.
SCORES = {
    "log_likelihood": "score_samples",
    "log_likelihood_per_token": "score_samples",
    "neg_mean_absolute_error": "predict",
    "neg_mean_squared_error": "predict",
    "third_moment_fit": "score_samples",
}


@dataclass(frozen=True, eq=False)
class RowScores:
    """Score of a fitted model, by name, as a function from rows and targets to a number per row."""

    scoring: str
    model: BaseEstimator
    words: WordCounter | None = None  # number of words of raw documents, where X holds such

    def __call__(self, X: Any, y: Any) -> Floats:
        """Score of each row, of shape (n_rows,), larger being better; NaN for rows refused."""
        if SCORES[self.scoring] == "predict":
            error = np.abs(y - self._predictions(X, y))
            return -np.square(error) if self.scoring == "neg_mean_squared_error" else -error
        if getattr(X, "ndim", 0) == 1:  # an array or a column of documents
            X = list(X)
        per_token = self.scoring == "log_likelihood_per_token"
        return row_by_row(self._per_token if per_token else self.model.score_samples, X)

    def _predictions(self, X: Any, y: Any) -> Floats:
        """Prediction of each target; where `X` names units, by other values of the same unit."""
        units = unit_labels_in(self.model, X)
        if units is None:
            return row_by_row(self.model.predict, X)
        with suppress(Exception):
            return np.asarray(self.model._predict_by_others(X, y), dtype=np.float64)
        # As `row_by_row` has it, unit by unit: no error leaves.
        predictions = np.full(n_rows(X), math.nan)
        for unit in distinct(units)[0]:
            rows = np.flatnonzero(units == unit)
            with suppress(Exception):
                predictions[rows] = self.model._predict_by_others(take(X, rows), y[rows])
        return predictions

    def _per_token(self, X: object) -> Any:
        """Log-likelihood per token of each row; unknown words of texts count as UNKNOWN_WORD."""
        *steps, last = steps_of(self.model).values()
        words_of_texts: tuple[Floats, Floats] | None = None  # all, and those of the vocabulary
        for step in steps:
            counts = step.transform(X)
            if self.words is not None and _counter_of(step) is not None:
                words_of_texts = self.words(X), _row_sums(counts)
            X = counts
        tokens, in_vocabulary = words_of_texts or (_row_sums(X), _row_sums(X))
        unknown = np.maximum(tokens - in_vocabulary, 0.0)
        likelihood = last.score_samples(X) + unknown * math.log(UNKNOWN_WORD)
        return likelihood / np.maximum(tokens, 1.0)


def unit_labels_in(estimator: BaseEstimator, X: object) -> NDArray[np.generic] | None:
    """Label of the unit of each row, where `X` itself says them; else None."""
    last = [*steps_of(estimator).values()][-1]
    return last._unit_labels_in(X) if isinstance(last, PrivateEstimatorMixin) else None


def word_counter(estimator: BaseEstimator) -> WordCounter | None:
    """Function that counts words of texts; None unless a step of the pipeline counts words."""
    counters = map(_counter_of, [*steps_of(estimator).values()][:-1])
    return next((counter for counter in counters if counter is not None), None)


def _counter_of(step: BaseEstimator) -> WordCounter | None:
    """Word counter of a step that counts words of texts; None for other steps."""
    makes = step._public_facts().word_counter if isinstance(step, PrivateEstimatorMixin) else None
    return None if makes is None else makes()


def _row_sums(counts: object) -> Floats:
    """Sum of each row of a table of counts, of shape (n_rows,)."""
    return np.asarray(sp.csr_matrix(counts, dtype=np.float64).sum(axis=1)).ravel()


def check_comparable(
    names: Iterable[str], steps: Mapping[str, BaseEstimator], scoring: str, *, bounds_given: bool
) -> None:
    """Raise ValueError for searched parameters that decide what is scored, or the range of scores.

    They may decide the range if `bounds_given`, which all candidates then share.
    """
    # Likelihoods of rows that a step changed, or of other words, have no common measure. Errors of
    # targets have one, once the range that they are clipped to is the search's own.
    of_rows = SCORES[scoring] == "score_samples"
    if bounds_given and not of_rows:
        return
    for full in names:
        step, parameter = owner_of(full, steps)
        decides = of_rows  # any parameter of a step that is not private may change rows
        if isinstance(step, PrivateEstimatorMixin):
            decides = parameter in step._public_facts().scored_by
        if decides:
            advice = "" if of_rows else ", or give score_bounds, the same for all candidates"
            raise ValueError(
                f"{full!r} cannot be searched over: it decides what {scoring!r} measures, so that "
                "scores of candidates cannot be compared, and a wrong one would win. Set it by "
                f"public knowledge{advice}."
            )


def check_scoring(scoring: object, name: str) -> None:
    """Raise ValueError if `scoring` is not the name of a score; `name` is the parameter's name."""
    if not isinstance(scoring, str) or scoring not in SCORES:
        raise ValueError(f"{name} must be one of {sorted(SCORES)}; got {shown(scoring)}.")


def _own_score(estimator: BaseEstimator) -> str | None:
    """Name of the score that ``score_samples`` of an estimator, or of its last step, returns."""
    last = [*steps_of(estimator).values()][-1]
    return last._public_facts().score if isinstance(last, PrivateEstimatorMixin) else None


def check_says_score(estimator: BaseEstimator, scoring: str, name: str) -> None:
    """Raise ValueError for a model without what `scoring` compares; `name` is its parameter."""
    method = SCORES[scoring]
    if not hasattr(estimator, method):
        raise ValueError(
            f"{name}={scoring!r} needs an estimator with {method}; "
            f"{type(estimator).__name__} has none."
        )
    own = _own_score(estimator)
    # Rows of components have no density, and those of other models no third moment to fit.
    if method == "score_samples" and "third_moment_fit" in (own, scoring) and own != scoring:
        raise ValueError(
            f"{name}={scoring!r} is no score of {type(estimator).__name__}, whose score_samples "
            f"say {own!r}."
        )


def checked_targets(scoring: str, estimator: BaseEstimator, X: object, y: object, name: str) -> Any:
    """Targets as an array of shape (n_rows,) for scores of predictions; for others `y` as it is.

    ValueError if the score, X or y does not fit the estimator; `name` is the score's parameter.
    """
    check_says_score(estimator, scoring, name)
    method = SCORES[scoring]
    n_fitted = getattr(estimator, "n_features_in_", None)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    refuse_other_columns(X, getattr(estimator, "feature_names_in_", None))
    if n_fitted is not None and len(shape) == 2 and shape[1] != n_fitted:
        raise ValueError(
            f"X has {counted(shape[1], 'feature')}, but the model was fitted to {n_fitted}."
        )
    if method == "predict" and y is None:
        raise ValueError(f"{name}={scoring!r} needs y, which is None.")
    if method != "predict":
        return y
    refuse_other_kinds(y, "y", "encode it first")
    values = call_unquoted(lambda: np.asarray(as_numbers(y, "y"), dtype=np.float64), "y")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if values.ndim != 1:
        raise ValueError(f"y must hold one number for each row, got ndim={values.ndim}.")
    return values


def checked_score_bounds(
    given: Sequence[float] | None,
    scoring: str,
    step: BaseEstimator | None,
    name: str,
    *,
    texts: bool = False,
    n_features: int | None = None,
) -> tuple[float, float]:
    """Public (low, high) that scores are clipped to: `given`, or implied by the model.

    A private `step`, if there is one, and the number of features that it is given imply them.
    """
    bounds = given
    if bounds is None:
        bounds = _implied_bounds(scoring, step, texts=texts, n_features=n_features)
    if bounds is None:
        errors = "Errors of a completion of bounds (1, 5) are in (-4, 0), squared in (-16, 0)"
        example = {
            "log_likelihood":
                "A column adds about -1.4 less the log of its standard deviation; scores of a "
                "model's own rows cost nothing: model.score_samples(model.sample(10_000)[0])",
            "third_moment_fit":
                "With a component of weight w a row x along it, and nothing else, scores "
                "2 w |x|^3 - w^2",
            "log_likelihood_per_token":
                f"Those of texts are ({math.log(UNKNOWN_WORD):.1f}, 0) by default, and of counts "
                f"of d words ({-WORST_TOKEN:g} log(d), 0), which a search is told by "
                "forecast(n_units, n_features=d)",
        }.get(scoring, errors)  # fmt: skip
        raise ValueError(
            f"{name} must be given: the public (low, high) that the score of a row is clipped "
            f"to. The noise is in proportion to their distance. {example}."
        )
    if not (RANGE.accepts(bounds) and float(bounds[1]) - float(bounds[0]) >= SCORE[0]):
        raise ValueError(
            f"{name} must be {RANGE}, at least {SCORE[0]:g} apart; got {shown(bounds)}."
        )
    low, high = float(bounds[0]), float(bounds[1])
    if high > 0 and scoring not in ("log_likelihood", "third_moment_fit"):
        lowest = -max(abs(low), high)
        raise ValueError(
            f"{name} must be (low, high) with high <= 0, as no {scoring} is above 0: write "
            f"({lowest:g}, 0) for ({low:g}, {high:g})."
        )
    return low, high


def _implied_bounds(
    scoring: str, step: BaseEstimator | None, *, texts: bool, n_features: int | None
) -> tuple[float, float] | None:
    """Bounds of a score, from the number of words or the range of targets; None if unknown."""
    if scoring == "log_likelihood_per_token":
        if texts:
            return math.log(UNKNOWN_WORD), 0.0
        if n_features is None:
            return None
        return -WORST_TOKEN * math.log(max(n_features, 2)), 0.0
    targets = None if step is None else step._public_facts().target_range
    if SCORES[scoring] == "score_samples" or targets is None:
        return None
    gap = float(targets[1]) - float(targets[0])
    return -(gap**2 if scoring == "neg_mean_squared_error" else gap), 0.0


def release_score(
    query: HeldOutScores,
    chunks: HeldOutChunk,
    plan: ReleasePlan,
    *,
    spender: str,
    unit: str,
    accountant: BudgetAccountant | None,
    neighbours: str,
    column: object = None,
) -> tuple[float, PrivacyReport]:
    """Charge `plan`, and release the mean of scores over units; return it and the report.

    A warning says if it lies at an end of its bounds, but not at an upper end of 0.
    """
    payer, charged = Payer(spender, accountant, column=column), plan.charged(neighbours)
    with Session(chunks, charged, payer, unit=unit, neighbours=neighbours) as ask:
        ask.count_units(plan)
        answer = ask(query)
    noisy, half = float(answer.value[0]), (query.high - query.low) / 2
    # A good model may lie at an upper end of 0, as a negated error is at most 0.
    if is_at_end(noisy, answer.sigma, half) and (noisy < 0 or query.high != 0):
        warnings.warn(AT_END, DoubtfulParameterWarning, stacklevel=level_of_caller())
    return noisy + query.middle, ask.report()


def refuse_bounds(model: Any, scoring: str, bounds: tuple[float, float]) -> None:
    """Refuse bounds beyond which rows of a fitted `model` itself score.

    Not in tools of scikit-learn: they compare models, of which some may score below all bounds.
    """
    expected = model._expected_score() if scoring == "log_likelihood" else None
    of_tool = locals_of(tools_around(), VALIDATION)
    if expected is None or bounds[0] < expected < bounds[1] or of_tool:
        return
    raise ValueError(
        f"bounds must hold what rows of the fitted model itself score, about {expected:.3g}; got "
        f"{shown(bounds)}, to an end of which most would be clipped. Nothing was charged. "
        "model.score_samples(model.sample(10_000)[0]) shows at no cost how scores spread."
    )


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
        ``score_samples``), ``"third_moment_fit"`` (``score_samples`` of components) or
        ``"log_likelihood_per_token"`` (a word of a text that a
        ``PrivateCountVectorizer`` of a pipeline does not have counts with a probability of 1e-5).
        A row that the model refuses counts as the lower bound.
    epsilon, delta : float, default=1.0 and 1e-6
        Cost of each call. Gaussian noise composes exactly with that of fits; ``delta=0``
        gives Laplace noise.
    bounds : (low, high), optional
        Public range that the score of a row is clipped to, the same for all models that are
        compared; noise is in proportion to its width. Refused, but in tools of scikit-learn, where
        it does not hold the log-likelihood that rows of the fitted law have. Needed but for
        ``"log_likelihood_per_token"``: 0 is then the high one, and the low one is the
        log-likelihood of an unknown word of texts, or of counts twice that of evenly likely words.
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
    ``held_out_scores``, the mean over rows, or over groups of the means over their rows (those of
    a completion with a ``unit_mode`` are its units, whose values it predicts by their others), and
    ``unit_count`` (one percent of the cost) where the number of units is private. The
    model is protected by its own fit alone. In k-fold cross-validation a row costs one score
    and k - 1 fits for each candidate; an accountant, which cannot know that folds are disjoint,
    is charged for all. *Not covered*: folds that other units decide, as those of
    ``GroupKFold``, or of splitters by position where units come and go: a total over folds is
    then no guarantee for anybody (use :class:`~sktensor_dp.PrivateKFold`).

    The model is a private estimator or a pipeline, as :class:`~sktensor_dp.PrivateSearchCV` takes
    them, or the best one of a fitted search. One that was fitted with groups is scored with groups
    alone: under metadata routing, by ``set_fit_request(groups=True)`` of the estimator and
    ``set_score_request(groups=True)`` of the scorer.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateCPCompletion, make_private_scorer
    >>> X = np.argwhere(np.ones((60, 60)))
    >>> model = PrivateCPCompletion(0, bounds=(0, 1), epsilon=20.0).fit(X, X.sum(axis=1) / 120)
    >>> scorer = make_private_scorer("neg_mean_absolute_error", bounds=(-1, 0))
    >>> bool(-1 < scorer(model, X, X.sum(axis=1) / 120) < 0.1)
    True
    >>> round(scorer.forecast(3600).score_sigma, 4)  # at no cost
    0.0012
    """
    scorer = PrivateScorer(metric, epsilon, delta, bounds, accountant)
    check_scoring(metric, "metric")
    rules = PrivateEstimatorMixin._privacy_constraints
    check_parameters(scorer, {name: rules[name] for name in ("epsilon", "delta", "accountant")})
    # Bounds implied by each model would give candidates scores that cannot be compared.
    if bounds is not None or metric != "log_likelihood_per_token":
        checked_score_bounds(bounds, metric, step=None, name="bounds")
    return scorer


class PrivateScorer(HasAccountant, BaseEstimator):
    """Scorer of :func:`make_private_scorer`, which can request `groups` by metadata routing."""

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
        self,
        estimator: BaseEstimator,
        X: object,
        y: object = None,
        *,
        groups: ArrayLike | None = None,
    ) -> float:
        """Noisy mean score of a fitted estimator over rows, or over means of groups of rows."""
        model = getattr(estimator, "best_estimator_", estimator)
        steps = [*private_steps(model).values()]
        for step in steps:
            check_is_fitted(step)
        last = steps[-1]
        reports = [step.privacy_report_ for step in steps]
        number_is_private = any(report.neighbours == "add_remove" for report in reports)
        relation = "add_remove" if number_is_private else "replace_one"
        column = column_of_units(last, X, groups)
        X, y, labels = checked_units(X, y, groups, relation)
        # For a completion with a unit_mode a column of X has the labels of units.
        if (in_data := unit_labels_in(model, X)) is not None:
            last._validation_copy()._refuse_rows(X, y)
            labels = in_data
        words = word_counter(model)
        bounds = checked_score_bounds(
            self.bounds, self.metric, last, "bounds", texts=words is not None,
            n_features=getattr(last, "n_features_in_", None),
        )  # fmt: skip
        refuse_bounds(last, self.metric, bounds)
        if labels is None and any(report.unit == "person" for report in reports):
            raise ValueError(
                "groups must be given: the model was fitted with groups, and a score of single "
                "rows would protect none. cross_val_score and GridSearchCV pass them under "
                "metadata routing, see make_private_scorer."
            )
        unit = unit_of(reports[0].unit, grouped=labels is not None)
        if n_rows(X) == 0 and not number_is_private:
            raise ValueError("X must have at least one row to score, got none.")
        y = checked_targets(self.metric, model, X, y, "metric")
        X = checked_rows(model, X)
        query = HeldOutScores(RowScores(self.metric, model, words), *bounds)
        chunk = held_out_chunk(X, y, labels)
        if not number_is_private:
            noise = self._forecast(chunk.n_units, bounds)
            if noise.is_noise:
                warnings.warn(str(noise), NotEnoughDataWarning, stacklevel=level_of_caller())
        score, _ = release_score(
            query, chunk, self._plan(),
            spender=type(self).__name__, unit=unit, neighbours=relation,
            accountant=self._accountant_to_charge(), column=column,
        )  # fmt: skip
        return score

    __call__ = score

    def check_candidates(
        self, estimator: BaseEstimator, candidates: Sequence[Mapping[str, Any]], n_candidates: int
    ) -> None:
        """Refuse models that could not be scored, or whose scores could not be compared.

        `candidates` are parameters of `estimator`: all of `n_candidates`, or those of a single one.
        """
        model = getattr(estimator, "estimator", estimator)  # of a search
        for parameters in candidates:
            asked = with_values(model, parameters) if parameters else model
            private_steps(asked)
            check_says_score(asked, self.metric, "metric")
        if n_candidates > 1:
            names = dict.fromkeys(chain.from_iterable(candidates))
            given = self.bounds is not None
            check_comparable(names, steps_of(model), self.metric, bounds_given=given)

    def forecast(self, n_units: int, n_features: int | None = None) -> ScoreForecast:
        """Say, from public numbers alone, how large the noise of a score is.

        Parameters
        ----------
        n_units : int
            Number of units to score: rows, or groups of rows.
        n_features : int, optional
            Number of words of counts, which imply bounds of ``"log_likelihood_per_token"``; None
            for those of texts.

        Returns
        -------
        ScoreForecast
            Deviation of the noise, and the distance that scores must have. Costs nothing.
        """
        check_sizes(n_units=n_units, **({} if n_features is None else {"n_features": n_features}))
        bounds = checked_score_bounds(
            self.bounds, self.metric, None, "bounds", texts=n_features is None,
            n_features=n_features,
        )  # fmt: skip
        return self._forecast(n_units, bounds)

    def _plan(self) -> ReleasePlan:
        """Plan of the one release of a score."""
        return ReleasePlan.split(self.epsilon, self.delta, {HeldOutScores.name: 1.0})

    def _forecast(self, n_units: int, bounds: tuple[float, float]) -> ScoreForecast:
        """Forecast of the noise of a score within `bounds`, where the number of units is public."""
        cost = self._plan().cost_of(HeldOutScores.name)
        sigma = sigma_of_score(cost, n_units, bounds, "replace_one")
        return ScoreForecast(n_units, sigma, bounds[1] - bounds[0])
