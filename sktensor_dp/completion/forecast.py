"""Expected errors of completions from public numbers alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np

from sktensor_dp.checks.display import Table
from sktensor_dp.checks.parameters import shown
from sktensor_dp.completion.chains import Chains
from sktensor_dp.completion.entry_forecast import forecast_entry_errors
from sktensor_dp.completion.person_forecast import Course, forecast_person_errors
from sktensor_dp.completion.plan import Assumed, EntryPlan, PersonPlan
from sktensor_dp.estimator.forecast import (
    MOST_UNITS,
    InvertibleForecast,
    Question,
    least_epsilon,
    least_number,
)

# Least factor by which biases err more, for a forecast to advise another rank first.
WORSE = 1.05
# Least fraction of the variance of biases that estimates show if data is enough to tell them apart.
ENOUGH_SEEN = 0.8
EVEN_ODDS = "; tests took up to three times as many {} for even odds"
OF_STAYS = "Of such persons stays= says the error of the change from first to last (change_error)."
OF_TWO_KINDS = " Values of two kinds deviate by about half the width of bounds."


class PublicNumbers(NamedTuple):
    """Numbers that a forecast follows from."""

    n_observed: int
    shape: tuple[int, ...]
    plan: EntryPlan | PersonPlan
    width: float  # of the bounds
    rank: int
    assumed: Assumed
    stays: int | None


def forecast_completion(public: PublicNumbers) -> "CompletionForecast":
    """Forecast of a plan's errors, in units of values."""
    n_observed, shape, plan, width, rank, assumed, stays = public
    if isinstance(plan, PersonPlan):
        errors = forecast_person_errors(Course.of(n_observed, shape, plan, assumed, rank, stays))
    else:
        errors = forecast_entry_errors(n_observed, shape, plan, assumed, rank)
    as_expected, if_found = map(tuple, (width * np.sqrt(errors.bias_variances)).tolist())
    return CompletionForecast(
        plan.perturbation, plan.seeks_components, of_mean=width * assumed.deviation,
        of_biases=width * errors.of_biases,
        n_components=errors.n_found, bias_deviation=width * assumed.bias_deviation,
        of_model=width * errors.of_model, component_share=assumed.component_share,
        of_fold_in=width * errors.of_fold_in,
        bias_errors=as_expected, bias_errors_if_found=if_found,
        mean_error=width * errors.mean_error,
        mean_error_if_found=width * errors.mean_error_if_found,
        of_predict=width * errors.of_predict,
        entries_to_tell=errors.entries_to_tell,
        change_error=width * math.sqrt(errors.change_variance),
    )  # fmt: skip


def finds_components(public: PublicNumbers) -> bool:
    """True if `forecast_completion` expects components, without errors that do not decide it."""
    n_observed, shape, plan, _, rank, assumed, stays = public
    if isinstance(plan, PersonPlan):
        return Course.of(n_observed, shape, plan, assumed, rank, stays).finds_components
    return forecast_entry_errors(n_observed, shape, plan, assumed, rank).n_found > 0


def up_to(n: int) -> tuple[str, str]:
    """Number of components that could be found, and the end of the condition on them, in words."""
    return ("One", "") if n == 1 else (f"Up to {n}", ", in equal parts")


def if_equal(rank: int) -> str:
    """Condition, in words, on which none of `rank` components is expected."""
    return f" if all {rank} are equally strong (of fewer, some may be)" if rank > 1 else ""


@dataclass(frozen=True, repr=False)
class CompletionForecast(InvertibleForecast):
    """Expected root mean square errors, for values of an assumed deviation.

    Attributes
    ----------
    perturbation : str
        Quantities that would get noise, as for the parameter of the estimator.
    seeks_components : bool
        True if a fit releases sums that show components. It does not where public numbers say that
        they would show strong ones alone, as a search in vain makes biases err by more.
    of_mean : float
        Error of predicting the mean everywhere: the standard deviation that values are assumed
        to have, by default a quarter of the width of the bounds.
    of_biases : float
        Error with mean and biases. With a ``unit_mode`` it is for units whose entries are folded
        in, which adds their own level.
    n_components : int
        Number of components that would stand out of the noise, if all are equally strong.
    bias_deviation : float
        Assumed standard deviation of the biases of each mode.
    of_model : float
        Error with components as well: those of ``perturbation="input"``, or with a ``unit_mode``
        those of units whose entries are folded in. Otherwise, and where none are expected, it is
        `of_biases`.
    component_share : float
        Assumed share of components in the variance of values.
    of_fold_in : float
        Error of values of rows of ``unit_mode`` (or of the first mode) whose own entries are
        folded in.
    bias_errors : tuple of float
        Expected standard error of the bias of a row with as many entries as others, for each
        mode, as ``bias_errors_`` of a fit has it, if units have equally many; up to half as much
        again was measured where most had far fewer than the mean. NaN for ``unit_mode``.
    mean_error : float
        Expected standard error of the mean, as ``mean_error_`` of a fit has it.
    bias_errors_if_found, mean_error_if_found : tuple of float, float
        Both errors if components are found in any case. Where none are expected these are larger:
        the search then spends budget that mean and biases get if its trial finds nothing.
    of_predict : float
        Error of ``predict``: with a ``unit_mode`` that of the mean and biases for a unit of which
        nothing else is known, else `of_model`.
    entries_to_tell : float
        With a ``unit_mode``, number of entries from which the bias of a row of the first other
        mode errs by less than biases differ; NaN without.
    change_error : float
        With `stays`, expected standard error of the change from the first row of the last mode to
        the last, as the root of the sum of squares of their ``bias_errors_``; NaN without `stays`.

    Examples
    --------
    >>> from sktensor_dp import PrivateCPCompletion
    >>> model = PrivateCPCompletion(2, epsilon=1.0, bounds=(1, 5), unit_mode=0)
    >>> forecast = model.forecast(60_000, (1000, 500))
    >>> forecast.epsilon_for(error=0.9), forecast.n_for(error=0.9)
    (0.899, 907)
    """

    perturbation: str
    seeks_components: bool
    of_mean: float
    of_biases: float
    n_components: int
    bias_deviation: float
    of_model: float
    component_share: float
    of_fold_in: float
    bias_errors: tuple[float, ...]
    bias_errors_if_found: tuple[float, ...]
    mean_error: float
    mean_error_if_found: float
    of_predict: float
    entries_to_tell: float
    change_error: float
    _question: Question | None = field(default=None, kw_only=True, repr=False, compare=False)

    def epsilon_for(self, error: float, mode: int | None = None) -> float | None:
        """Find the least epsilon for an expected error, with the data of this forecast.

        Parameters
        ----------
        error : float
            Root mean square error of predictions, in units of the values, as `of_model`.
        mode : int, optional
            If given, `error` is that of averages of rows of this mode, as `average_error`. It
            needs rank 0: where components are found, averages have less of the budget.

        Returns
        -------
        float or None
            From .01 to 10, to three digits; None if no epsilon reaches the error. Costs no
            privacy.
        """
        reached = self._test_of(error, mode)
        return least_epsilon(lambda epsilon: reached(self._again(epsilon=epsilon)))

    def n_for(self, error: float, mode: int | None = None) -> int | None:
        """Find the least number of units for an expected error, at the estimator's epsilon.

        Parameters
        ----------
        error : float
            Root mean square error of predictions, in units of the values, as `of_model`.
        mode : int, optional
            As for :meth:`epsilon_for`.

        Returns
        -------
        int or None
            Number of rows of ``unit_mode``, each with as many entries as in this forecast; without
            a ``unit_mode`` number of entries of a tensor of the same shape. None if no number
            reaches the error. Costs no privacy.
        """
        question, reached = self._asked(), self._test_of(error, mode)
        unit_mode, rank = question.parameters["unit_mode"], question.parameters["rank"]
        limits = (1, math.prod(question.numbers["shape"]))
        if unit_mode is not None:
            # A mode has at least as many rows as its rank.
            limits = (1 if isinstance(rank, Integral) else rank[unit_mode], MOST_UNITS)
        return least_number(lambda n: reached(self._again(**self._sized(n))), *limits)

    def _test_of(self, error: float, mode: int | None) -> Callable[[Self], bool]:
        """Function that is True for forecasts of at most this `error`, of predictions or averages.

        With a `mode` the error is that of averages of its rows.
        """
        if mode is None:
            return lambda other: other.of_model <= error and not other._chains.panel_is_hidden
        parameters, n_modes = self._asked().parameters, len(self.bias_errors)
        if mode not in range(n_modes) or mode == parameters["unit_mode"]:
            raise ValueError(
                f"mode must be one of the {n_modes} modes, from 0 on, and not unit_mode; got "
                f"{shown(mode)}."
            )
        if np.max(parameters["rank"]) > 0:
            raise ValueError(
                "Of averages no epsilon is the least where components are sought, which take "
                "budget from them: forecast PrivateCPCompletion(0)."
            )
        # Where noise hides a panel, errors are too small.
        return lambda other: (
            other.average_error(mode) <= error and not other._chains.panel_is_hidden
        )

    def average_error(self, mode: int, *, if_found: bool = False) -> float:
        """Expected standard error of the average of a row, which is its bias plus the mean.

        Parameters
        ----------
        mode : int
            The row's mode; it has as many entries as other rows. NaN for ``unit_mode``.
        if_found : bool, default=False
            If components are found in any case, as in `bias_errors_if_found`.

        Returns
        -------
        float
            Root of the sum of the squares of both errors. Costs no privacy.
        """
        if if_found:
            return math.hypot(self.mean_error_if_found, self.bias_errors_if_found[mode])
        return math.hypot(self.mean_error, self.bias_errors[mode])

    def what_helps(self) -> dict[str, float]:
        """Find what would let components be found, each change by itself.

        Returns
        -------
        dict of str to float
            The least ``"epsilon"`` up to 10, number of ``"units"`` (rows of ``unit_mode``, or
            entries), and with a ``unit_mode`` of entries of ``"each"`` unit; the smallest change
            first. At these numbers a fit finds components in about half of all cases, or has just
            enough to seek any: take more. Empty if components are expected as it is, or if none of
            these changes suffices. Costs no privacy.

        Examples
        --------
        >>> from sktensor_dp import PrivateCPCompletion
        >>> model = PrivateCPCompletion(2, epsilon=0.5, bounds=(1, 5), unit_mode=0)
        >>> model.forecast(60_000, (1000, 500)).what_helps()
        {'units': 33022.0}
        """
        return dict(self._helping)

    @cached_property
    def _helping(self) -> dict[str, float]:
        """Changes as of `what_helps`."""
        question = self._asked()
        n, shape = question.numbers["n_observed"], question.numbers["shape"]
        mode, n_cells = question.parameters["unit_mode"], math.prod(shape)
        now = {
            "epsilon": question.parameters["epsilon"],
            "units": n if mode is None else shape[mode],
        }
        most_units = n_cells if mode is None else MOST_UNITS
        least_by_change: dict[str, float | None] = {
            "epsilon": self._least_to_find(
                lambda reached, _: least_epsilon(reached), lambda epsilon: {"epsilon": epsilon}
            ),
            "units": self._least_to_find(
                lambda reached, least: least_number(reached, least or now["units"], most_units),
                self._sized,
            ),
        }
        if mode is not None:
            n_units, now["each"] = shape[mode], n / shape[mode]

            def with_each(each: int) -> bool:
                return self._finds(n_observed=each * n_units)

            # Whether a fit seeks components does not depend on `each`, and a panel fixes `each`.
            if self.seeks_components and question.numbers["stays"] is None:
                least_by_change["each"] = least_number(with_each, most=n_cells // n_units)
        helping = {
            name: float(least)
            for name, least in least_by_change.items() if least is not None and least > now[name]
        }  # fmt: skip
        return dict(sorted(helping.items(), key=lambda item: item[1] / now[item[0]]))

    def _least_to_find(
        self, least: Callable[[Callable[[Any], bool], Any], Any], changes: Callable[[Any], Any]
    ) -> Any:
        """Least number at which a fit would find components; None if there is none.

        ``least(reached, start)`` finds the least number, from `start` on, of which ``reached`` is
        True. `changes` maps a number to changed arguments of the forecast.
        """

        @cache
        def finds(number: Any) -> bool:
            return self._seeks(**changes(number)) and self._finds(**changes(number))

        # Plans are far cheaper than expected errors, and mostly decide.
        seeking = least(lambda number: self._seeks(**changes(number)), None)
        if seeking is None or finds(seeking):
            return seeking
        return least(finds, seeking)

    def _seeks(self, epsilon: float | None = None, **numbers: Any) -> bool:
        """True if a fit at another epsilon, or for other `numbers`, would seek components."""
        model, numbers = self._changed(epsilon, numbers)
        plan, _ = model._plan(numbers["n_observed"], tuple(numbers["shape"]))
        return bool(plan.seeks_components)

    def _finds(self, epsilon: float | None = None, **numbers: Any) -> bool:
        """True if a fit at another epsilon, or for other `numbers`, would find components."""
        model, numbers = self._changed(epsilon, numbers)
        return finds_components(model._public_numbers(**numbers))

    def _changed(
        self, epsilon: float | None, numbers: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Estimator and numbers of the question at another epsilon, or with other `numbers`."""
        asked = self._asked()
        other = {} if epsilon is None else {"epsilon": epsilon}
        return asked.kind(**{**asked.parameters, **other}), {**asked.numbers, **numbers}

    def advice(self) -> str:
        """Say in a sentence what would let components be found.

        Returns
        -------
        str
            With the numbers of :meth:`what_helps`; if components are expected, says so. Costs no
            privacy.
        """
        share = f"{self.component_share:.0%}"
        if self.finds_components:
            how_many, equal = up_to(self.n_components)
            return f"{how_many} could be found if components hold {share} of the variance{equal}."
        parameters = self._asked().parameters
        of_units = parameters["unit_mode"] is not None
        if of_units and parameters["delta"] == 0:
            return "Components of units need a delta above 0."
        if not of_units and parameters["perturbation"] == "sufficient_statistics":
            return "perturbation='auto' seeks components where public numbers favour it."
        words = {
            "epsilon": "epsilon={:g}", "units": "{:,.0f} " + ("units" if of_units else "entries"),
            "each": "{:,.0f} entries of each unit",
        }  # fmt: skip
        by_odds, by_plan = list[str](), list[str]()
        for name, number in self.what_helps().items():
            less = {"epsilon": 0.99 * number} if name == "epsilon" else self._sized(int(number) - 1)
            is_sought = name == "each" or self._seeks(**less)
            (by_odds if is_sought else by_plan).append(words[name].format(number))
        ways = []
        if parameters["unit_mode"] is None and self._finds_by_persons():
            ways.append("unit_mode=0 (all values of a person are protected; fold_in predicts)")
        if by_odds:
            least = f"the least{EVEN_ODDS.format('units') if of_units else ', at about even odds'}"
            ways.append(f"{', or with '.join(by_odds)}: {least}")
        if by_plan:
            ways.append(f"{', or with '.join(by_plan)}: with less a fit seeks none")
        if ways:
            beginning = f"If components hold {share} of the variance, one could be found with "
            return f"{beginning}{'; or with '.join(ways)}."
        no_way = "Not even" if parameters["epsilon"] >= 10 else "Neither an epsilon of 10 nor"
        return f"{no_way} more data would show components; fewer rows may."

    def _finds_by_persons(self) -> bool:
        """True if a fit whose units are rows of the first mode would find components."""
        asked = self._asked()
        if asked.parameters["perturbation"] != "auto":
            return False
        of_persons = {"unit_mode": 0, "max_iter": None, "row_names": None}
        return bool(asked.forecast(of_persons, {}).finds_components)

    def _sized(self, n: int) -> dict[str, Any]:
        """Changed arguments of this forecast for `n` units with as many entries each as now."""
        asked = self._asked()
        mode = asked.parameters["unit_mode"]
        if mode is None:
            return {"n_observed": n}
        shape = list(asked.numbers["shape"])
        each = asked.numbers["n_observed"] / shape[mode]
        shape[mode] = n
        return {"n_observed": max(round(n * each), 1), "shape": tuple(shape)}

    @property
    def finds_components(self) -> bool:
        """True if components worth finding would stand out of the noise."""
        return self.n_components > 0

    @property
    def mean_is_all(self) -> bool:
        """True where nothing better than the mean can be expected."""
        most = 0.99  # of the mean's error, for biases to be worth something
        return not self.finds_components and self.of_predict > most * self.of_mean

    @property
    def hidden_modes(self) -> list[int]:
        """Modes whose biases, in an average row, would err by more than their estimates differ."""
        # Shrunk estimates with errors of variance v have the variance bias_deviation^2 - v, and
        # `SharedEffects.is_hidden` if that is v at most. NaN, for units, is not hidden.
        most = self.bias_deviation**2 / 2
        return [m for m, error in enumerate(self.bias_errors) if error**2 > most]

    @property
    def verdict(self) -> str:
        """``"enough"`` to tell biases apart, ``"may be enough"``, or ``"likely too few"``.

        It is ``"likely too few"`` without a ``unit_mode`` if there are `hidden_modes`. With one it
        is that if even a row in which all units have entries has a bias that errs by as much as
        biases differ; with `stays` also if an average row has, or if noise hides how units compare
        rows.
        """
        asked = self._asked()
        mode, n_observed = asked.parameters["unit_mode"], asked.numbers["n_observed"]
        is_hidden = bool(self.hidden_modes)
        if mode is not None:
            is_hidden = min(n_observed, asked.numbers["shape"][mode]) < self.entries_to_tell
        if asked.numbers["stays"] is not None:  # no row has more entries than others
            is_wide = self.bias_errors[-1] > self.bias_deviation
            is_hidden = is_hidden or is_wide or self._chains.panel_is_hidden
        if is_hidden:
            return "likely too few"
        return "may be enough" if self._unseen() else "enough"

    def _unseen(self) -> dict[int, float]:
        """Errors of an average row's bias, by mode, for modes whose biases are not clearly seen."""
        most = (1 - ENOUGH_SEEN) * self.bias_deviation**2
        return {mode: error for mode, error in enumerate(self.bias_errors) if error**2 > most}

    @cached_property
    def alone(self) -> "CompletionForecast":
        """Forecast of a fit that seeks no components, as by ``PrivateCPCompletion(0)``."""
        question = self._asked()
        if question.parameters["unit_mode"] is None or not self.seeks_components:
            return self
        # A Tucker completion has a rank of 1 or more: ask a CP completion, its `_of_rank_0`.
        kind: Any = getattr(question.kind, "_of_rank_0", question.kind)
        known = {name: question.parameters[name] for name in kind._get_param_names()}
        forecast: CompletionForecast = kind(**{**known, "rank": 0}).forecast(**question.numbers)
        return forecast

    @property
    def assumption(self) -> str:
        """Sentence on what is assumed of values."""
        is_one = np.max(self._asked().parameters["rank"]) == 1
        said = (
            f"Values are assumed to have a deviation of {self.of_mean:.3g}, the biases of each "
            f"mode one of {self.bias_deviation:.3g}, and "
            f"{'the one component of rank 1' if is_one else 'components'} "
            f"{self.component_share:.0%} of the variance."
        )
        return said + OF_TWO_KINDS if self._is_assumed else said

    @cached_property
    def chains(self) -> str:
        """Sentences on persons who keep to few rows, as in a rotating panel; "" without."""
        return self.on_chains(self._chains, "rows")

    def on_chains(self, chains: Chains, rows: str) -> str:
        """Sentences on `chains` of `rows`, by the errors of this forecast."""
        if chains.stays is None:
            return chains.on_forecast(rows)
        return chains.on_panel(self.change_error, rows)

    @property
    def _chains(self) -> Chains:
        """Public numbers that decide whether a fit measures how persons compare rows."""
        question = self._asked()
        model, numbers = question.kind(**question.parameters), question.numbers
        shape, n = tuple(numbers["shape"]), numbers["n_observed"]
        each = 1.0 if model.unit_mode is None else n / min(n, shape[model.unit_mode])
        return Chains(model, shape, each=each, stays=numbers["stays"])

    @property
    def _is_assumed(self) -> bool:
        """True if the deviation of values is assumed, and was not given."""
        return self._asked().numbers["deviation"] is None

    def _conclusion(self) -> str:
        """Sentences on what can be found: components, biases, or no more than the mean."""
        of_units = self._asked().parameters["unit_mode"] is not None
        if self.mean_is_all:
            if of_units:
                error = f"{self.mean_error:.3g}"
                return (
                    "predict() will be no better than the mean, whose own standard error is "
                    f"{error}."
                )
            if self.of_predict > self.of_mean:
                return "The mean is all there is, with noise in it."
            return "Predicting the mean is all there is."
        if unseen := self._unseen():
            errors = " and ".join(f"{error:.3g} in mode {mode}" for mode, error in unseen.items())
            said = (
                f"Noise and chance {'' if self.hidden_modes else 'may '}hide biases, which differ "
                f"by {self.bias_deviation:.3g}: the expected error of a row with as many entries "
                f"as others is {errors}."
            )
            by_chance = self._asked().numbers["stays"] is None
            if self.verdict != "likely too few" and of_units and by_chance:
                n = f"{self.entries_to_tell:,.0f}"
                said += f" Biases of rows with {n} entries or more err by less than they differ."
            return said
        if self.finds_components:
            return "Components may be found on top of mean and biases."
        return "Mean and biases can be found."

    @property
    def _without(self) -> str:
        """Words for a fit without components."""
        is_tucker = hasattr(self._asked().kind, "_of_rank_0")
        return "PrivateCPCompletion(0)" if is_tucker else "rank=0"

    def _better_alone(self) -> str:
        """Sentence where the search for components makes all worse; "" elsewhere."""
        if self.finds_components:
            return ""
        pairs = zip(self.bias_errors, self.alone.bias_errors, strict=True)
        more = [error / alone if alone > 0 else 1.0 for error, alone in pairs]
        mode = int(np.nanargmax(more))
        if more[mode] < WORSE:
            return ""
        equal = if_equal(int(np.max(self._asked().parameters["rank"])))
        return (
            f"{self._without} is better here: no components are expected{equal}, and biases of "
            f"mode {mode} then err by {self.alone.bias_errors[mode]:.3g}, not by "
            f"{self.bias_errors[mode]:.3g}."
        )

    def _of_rows(self) -> str:
        """Sentences on errors of biases and mean, and on what the search for components adds."""
        without = self._without
        takes_budget, of_modes = False, list[str]()
        errors = zip(
            (*self.bias_errors, self.mean_error),
            (*self.bias_errors_if_found, self.mean_error_if_found),
            (*self.alone.bias_errors, self.alone.mean_error),
            strict=True,
        )
        for mode, (error, if_found, alone) in enumerate(errors):
            if math.isnan(error):
                continue
            is_mean = mode == len(self.bias_errors)
            said = f"the mean by {error:.3g}" if is_mean else f"by {error:.3g} in mode {mode}"
            if if_found > error:
                said += f", by {if_found:.3g} if some are found all the same"
            if if_found > alone:
                takes_budget = True
                said += f", and with {without} by {alone:.3g}"
            of_modes.append(said)
        said = f"The bias of a row with as many entries as others errs {'; '.join(of_modes)}."
        if takes_budget:
            said = f"The search for components takes budget from mean and biases. {said}"
        return said

    def _table(self) -> Table:
        """Errors by the parts of the model that predict, under the conclusion, above advice."""
        parameters = self._asked().parameters
        of_units = parameters["unit_mode"] is not None
        own = "own entries folded in"
        assumed = " (assumed, deviation=)" if self._is_assumed else ""
        rows = [
            [f"the mean{assumed}", f"{self.of_mean:.3g}"],
            ["mean and biases", f"{self.of_predict if of_units else self.of_biases:.3g}"],
        ]
        if of_units:
            rows.append([own, f"{self.of_biases:.3g}"])
        if self.of_model < self.of_biases:
            rows.append(["components too", f"{self.of_model:.3g}"])
        if self.of_fold_in != self.of_model:
            rows.append([own, f"{self.of_fold_in:.3g}"])
        below = [
            f"{self.assumption} Say otherwise by arguments of forecast().",
            f"Noise: perturbation={self.perturbation!r}.",
        ]
        if of_units:
            on_rows = [self._of_rows()]
            if self.chains:
                on_rows.append(self.chains)
                if math.isnan(self.change_error):  # `stays` was not given
                    on_rows.append(OF_STAYS)
            below = on_rows + below
        if np.max(parameters["rank"]) > 0:
            below.insert(0, self.advice())
        heads = ("prediction by", "expected RMSE")
        title = " ".join(filter(None, [self._better_alone(), self._conclusion()]))
        return Table(title, heads, rows, below, ("prediction by",))
