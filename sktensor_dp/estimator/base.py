"""Base class of private estimators: parameters of the guarantee, and the life of a fit.

A fit is validated, planned, charged, run by its recipe, and published. A fit that is refused or
fails changes nothing but the ledger; what fails after a fit leaves what was published.
"""

import importlib
import inspect
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils.metaestimators import available_if

from sktensor_dp.checks.callers import level_of_caller
from sktensor_dp.checks.display import plain
from sktensor_dp.checks.floating_point import OwnErrors, under_own_errors
from sktensor_dp.checks.frames import check_feature_names, is_dask
from sktensor_dp.checks.parameters import (
    Constraint,
    InstanceOf,
    Number,
    OneOf,
    check_parameters,
    nearest,
)
from sktensor_dp.data.labels import Labels
from sktensor_dp.data.sums import OneThread
from sktensor_dp.data.units import Chunks
from sktensor_dp.estimator.facts import PublicFacts, unit_of
from sktensor_dp.estimator.pipelines import charges_of_later_steps
from sktensor_dp.estimator.scoring import check_scoring_of_tools
from sktensor_dp.exceptions import BudgetError, NotEnoughDataWarning, PrivacyLeakWarning
from sktensor_dp.model_files.saving import ModelFileMixin
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.payer import (
    IN_GROUPS,
    NEEDS_PAYER,
    HasAccountant,
    Payer,
    attribute_of_payment,
)
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.session import LARGEST_UNIT_COUNT, Session
from sktensor_dp.queries.query import UnitCount

# Conversions of epsilon overflow above the first value; pure noise has no grid below the second.
LARGEST_EPSILON, LEAST_PURE_EPSILON = 1e12, 1e-9
# Gaussian noise has no grid below LEAST_MU, which is checked where epsilon is small; calibration
# loses its digits below LEAST_DELTA.
LEAST_MU, SMALL_EPSILON, LEAST_DELTA = 1e-9, 1e-6, 1e-300


class FittedStateMixin:
    """Fitted state, the attributes that `_is_fitted_state` names, replaced as a whole."""

    _hidden_state: ClassVar[frozenset[str]] = frozenset()

    def _publish(self, attributes: Mapping[str, object]) -> None:
        """Replace the whole fitted state by `attributes`, in one step that cannot fail half way."""
        strange = [name for name in attributes if not self._is_fitted_state(name)]
        assert not strange, f"{strange} are no names of fitted state"
        fitted = self._fitted_state()
        kept = {name: value for name, value in vars(self).items() if name not in fitted}
        self.__dict__ = {**kept, **attributes}

    def _is_fitted_state(self, name: str) -> bool:
        """True for the name of a fitted attribute."""
        public = name.endswith("_") and not name.startswith("_")
        return public or name in self._hidden_state or name == NEEDS_PAYER

    def _warn(self, messages: Iterable[Warning]) -> None:
        """Issue warnings on the caller's line."""
        for warning in messages:
            warnings.warn(warning, stacklevel=level_of_caller())

    def _fitted_state(self) -> dict[str, Any]:
        """Fitted attributes by name, as the last fit left them; empty before a fit."""
        return {name: value for name, value in vars(self).items() if self._is_fitted_state(name)}


class KnownParameters(OwnErrors):
    """Mixin that refuses parameters that do not exist, and names the nearest."""

    def __new__(cls, *args: object, **parameters: object) -> Self:
        """Make an estimator; TypeError names the nearest parameter for one that does not exist."""
        possible = _parameters_of(cls)  # type: ignore[arg-type]
        takes_any = any(rule.kind is rule.VAR_KEYWORD for rule in possible.values())
        unknown = [name for name in parameters if name not in possible]
        if unknown and not takes_any:
            names = [name for name in possible if name != "self"]
            raise TypeError(f"{cls.__name__} takes no {nearest(unknown[0], names)}")
        return super().__new__(cls)

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of parameters, cached: scikit-learn takes as long as a forecast to find them."""
        names: list[str] = super()._get_param_names()  # type: ignore[misc]
        return names


@cache
def _parameters_of(kind: type) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(kind.__init__).parameters  # type: ignore[misc]


NONE = OneOf(None)
# Attributes that scikit-learn's validation of a table sets.
COLUMNS = ("n_features_in_", "feature_names_in_")
# Input tags of counts. "categorical" makes scikit-learn's checks round their numbers.
COUNTS: Mapping[str, bool] = {"sparse": True, "positive_only": True, "categorical": True}
NEIGHBOURS: Mapping[str, Iterable[Constraint]] = {
    "neighbours": [OneOf("replace_one", "add_remove")]
}
# Why a fit does not take these arguments.
REASONS = {
    "sample_weight": (
        "how much a row weighs would be read from the data, and the bound on what one unit adds "
        "would no longer hold. Rows of one person are weighed evenly by groups="
    ),
    "n_samples": ("rows that are at hand are counted. It announces how many a Dask collection has"),
    "groups": (
        "it does not protect groups of rows. All entries of a person are protected by a completion "
        "with unit_mode=0"
    ),
}


@dataclass(frozen=True, eq=False)
class FitResult:
    """Result of a recipe, the part of a fit that asks the session for releases."""

    attributes: Mapping[str, Any]  # fitted state to publish
    # Warnings from released values. They are issued after publishing, as a caller may turn them
    # into errors.
    warnings: tuple[Warning, ...] = ()
    notes: tuple[str, ...] = ()  # for the report, by released or public values


def warnings_of_cap(number: int, n_features: int, noun: str = "components") -> tuple[Warning, ...]:
    """Tuple of one UserWarning where a `number` of components exceeds `n_features`, else empty."""
    if number <= n_features:
        return ()
    message = (
        f"n_components={number} exceeds the {n_features} features; {n_features} {noun} are fitted."
    )
    return (UserWarning(message),)


def warnings_of_range(name: str, *, seen: bool) -> tuple[Warning, ...]:
    """Tuple of one warning where a released histogram shows nothing, else empty."""
    if seen:
        return ()
    return (
        NotEnoughDataWarning(
            f"The released {name} shows nothing above its noise: the norm or range chosen by it "
            "may clip most of the data. More data or a larger epsilon would help, or a public "
            "number in the place of 'auto'."
        ),
    )


def warnings_of_delta(epsilon: float, delta: float, n_units: int, unit: str) -> tuple[Warning, ...]:
    """Tuple of one warning where delta exceeds 1 over the public or released number of units."""
    if delta * n_units <= 1 or math.isinf(epsilon):
        return ()
    message = (
        f"delta {plain(delta)} is above 1 in {n_units:,}: it would allow to publish a {unit} "
        "picked at random. Take a smaller delta."
    )
    return (PrivacyLeakWarning(message),)


def column_attributes(checked: object) -> dict[str, Any]:
    """Attributes ``n_features_in_`` and ``feature_names_in_`` of `checked` that validation set."""
    return {name: vars(checked)[name] for name in COLUMNS if name in vars(checked)}


def name_columns(fitted: Any, names: Sequence[str]) -> None:
    """Name the columns of an estimator that was fitted to arrays, for tables to be compared."""
    fitted.feature_names_in_ = np.array(names, dtype=object)


def names_of_columns(
    estimator: object, given: Sequence[str] | NDArray[np.generic] | None, n_features: int
) -> Sequence[str] | NDArray[np.generic]:
    """Names of the columns of a fitted estimator: those given, its own, or numbers."""
    known = column_attributes(estimator).get("feature_names_in_")
    if given is None:
        return [str(column) for column in range(n_features)] if known is None else known
    check_feature_names(given, known, n_features)
    return given


def check_arguments(estimator: object, unsupported: Iterable[str], method: str = "fit") -> None:
    """Raise TypeError if there are names of arguments that `method` does not take."""
    name = next(iter(unsupported), None)
    if name is None:
        return
    if name in REASONS:
        reason = f"{name}: {REASONS[name]}."
    elif name in inspect.signature(type(estimator)).parameters:
        reason = f"{name}: it is a parameter of {type(estimator).__name__}(...)."
    else:
        possible = inspect.signature(getattr(type(estimator), method)).parameters
        reason = nearest(name, [word for word in possible if word not in ("self", "unsupported")])
    raise TypeError(f"{type(estimator).__name__}.{method} takes no {reason}")


def check_output(estimator: object) -> None:
    """Raise ImportError if the container that ``set_output`` asks for is not installed."""
    chosen = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    container = get_config()["transform_output"] if chosen is None else chosen
    if container != "default":
        importlib.import_module(container)


class PrivateEstimatorMixin(KnownParameters, HasAccountant, FittedStateMixin, ModelFileMixin):
    """Base of private estimators: the parameters of the guarantee, and the life of a fit.

    Its parameters are ``epsilon, delta, accountant, random_state, verbose``. A subclass lists its
    others in ``_own_constraints``, names its unit of privacy in ``_unit``, and tells search,
    scorer and audit of itself in ``_public_facts``.
    """

    # When a subclass is made, `OwnErrors` wraps its public methods, and `HasAccountant` its methods
    # that fit.

    _unit: ClassVar[str] = "sample"
    _hidden_state = frozenset({"_stream", "_n_features_out"})
    _privacy_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "epsilon": [Number(0, LARGEST_EPSILON, closed="right"), Number(math.inf, math.inf)],
        "delta": [Number(LEAST_DELTA, 1, closed="left"), Number(0, 0)],
        "accountant": [InstanceOf(BudgetAccountant), NONE],
        "random_state": [
            Number(0, 2**32 - 1, integer=True),
            InstanceOf(np.random.RandomState),
            NONE,
        ],
        "verbose": [Number(0, math.inf, integer=True), InstanceOf(bool)],
    }
    # Input tags of scikit-learn that differ from its defaults.
    _input_tags: Mapping[str, bool] = MappingProxyType({})
    _preserves_dtype: ClassVar[bool] = False  # whether transforms keep single precision
    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {}
    epsilon: float
    delta: float
    verbose: int
    # For estimators without this parameter: neighbours replace a unit.
    neighbours: str = "replace_one"

    privacy_report_: PrivacyReport

    def _check_parameters(self, method: str = "fit") -> None:
        """Raise ValueError for parameters that are wrong, or wrong together for a `method`."""
        check_parameters(self, {**self._own_constraints, **self._privacy_constraints})
        if self.delta == 0 and self.epsilon < LEAST_PURE_EPSILON:
            raise ValueError(
                f"The 'epsilon' parameter of {type(self).__name__} must be at least "
                f"{LEAST_PURE_EPSILON:g} where delta is 0. Got {self.epsilon!r} instead."
            )
        small = self.delta > 0 and self.epsilon < SMALL_EPSILON
        if small and gaussian_mu(float(self.epsilon), float(self.delta)) < LEAST_MU:
            raise ValueError(
                f"The 'epsilon' and 'delta' parameters of {type(self).__name__} are too small "
                f"together: noise would have no grid. Got {self.epsilon!r} and {self.delta!r}."
            )
        self._check_combined(method)

    def _public_facts(self) -> PublicFacts:
        """Public facts for search, scorer and audit, from parameters alone."""
        score = "log_likelihood" if hasattr(self, "score_samples") else None
        return PublicFacts(self._unit, score=score)

    def _expected_score(self) -> float | None:
        """Expected log-likelihood of rows of the fitted law; None where it has no such law."""
        return None

    def _unit_labels_in(self, X: object) -> Labels | None:
        """Label of the unit of each row, where X itself says them; else None."""
        return None

    def _check_combined(self, method: str = "fit") -> None:
        """Raise ValueError for parameters that no data of a `method` could go with.

        ``"load"`` asks for those of a saved model.
        """

    def _forecast_verdict(
        self, n_units: int, n_features: int | None, **options: Any
    ) -> tuple[str, Sequence[str]] | None:
        """Verdict of the estimator's own forecast on a fit, and what it assumes; None without one.

        `options` are guesses of :class:`PublicFacts`.
        """
        return None

    def _refuse_rows(self, X: object, y: object) -> None:
        """Raise an error for data that no private fit takes, where `X` has units or coordinates."""

    def _checked_copy(
        self, X: object, n_samples: object, unsupported: Mapping[str, object], method: str = "fit"
    ) -> Self:
        """Refuse wrong parameters and `unsupported` arguments; return a copy for validation."""
        check_arguments(self, unsupported, method)
        if n_samples is not None and not is_dask(X):
            check_arguments(self, ["n_samples"], method)
        checked = self._validation_copy()
        checked._check_parameters(method)
        return checked

    @property
    def _number_is_private(self) -> bool:
        """True where the number of units is private, so that a fit releases a noisy count."""
        return self.neighbours == "add_remove"

    def _validation_copy(self) -> Self:
        """Shallow copy of the estimator, with fitted attributes, that validation may write on."""
        # Not `copy` or `clone`: fitted attributes are kept, and no constructor or `__setstate__` of
        # a subclass runs.
        copied = type(self).__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def _largest_number(self, chunks: Chunks) -> int:
        """Number of units to plan and check by; where it is private, the largest there can be."""
        return LARGEST_UNIT_COUNT if self._number_is_private else chunks.n_units

    def _plan_by_parameters(self) -> ReleasePlan:
        """Plan at the cost of a fit, by parameters; noise is planned as pure if some of it is."""
        facts = self._public_facts()
        delta = 0.0 if facts.has_pure_noise else self.delta
        aside = {"fit": facts.delta_set_aside * delta}
        return ReleasePlan.split(self.epsilon, delta, {"fit": 1.0}, reserved_delta=aside)

    def _check_charge(self, plan: ReleasePlan, chunks: Chunks) -> None:
        """Raise the BudgetError that charging a plan for the units of `chunks` would."""
        payer = Payer(type(self).__name__, self._accountant_to_charge())
        unit = unit_of(self._unit, grouped=chunks.grouped)
        payer.check_charges(payer.charges(plan, self.neighbours, unit))

    def _warn_of_budget(self, plan: ReleasePlan | None = None) -> None:
        """Warn where the estimator's accountant would refuse a fit, of a plan or of its epsilon."""
        plan = self._plan_by_parameters() if plan is None else plan
        payer = Payer(type(self).__name__, self.accountant)
        try:
            payer.check_charges(payer.charges(plan, self.neighbours))
        except BudgetError as error:
            self._warn([UserWarning(f"The accountant would refuse this fit now. {error}")])

    @contextmanager
    def _session(
        self,
        chunks: Chunks,
        plan: ReleasePlan,
        *,
        unit: str | None = None,
        neighbours: str | None = None,
        ticket: str | None = None,
        paid_by_earlier_batch: bool = False,
        expected: Sequence[Warning] = (),
    ) -> Iterator[Session]:
        """Open a session of this fit; it charges the whole plan.

        `unit` and `neighbours` are those of the estimator unless given. For batches of a stream,
        `ticket` is what the one before left, and `paid_by_earlier_batch` says that the same fit
        has charged it. Warnings that are `expected`, by public numbers, come before the charge.
        """
        # Refuse first: a plan that exceeds the budget, or a source of other sizes than announced,
        # if it can be read before the charge (tables and texts of Dask are counted after it).
        # Entering the session charges; a private number of units is then counted; the caller's
        # block asks its queries; leaving it drops the data. `UNIT_COLUMN`, which the payer names
        # persons by, is set by `around_fit`.
        payer = Payer(
            type(self).__name__, self._accountant_to_charge(), ticket, paid_by_earlier_batch,
            given_groups=vars(self).get(IN_GROUPS, False),
        )  # fmt: skip
        relation = neighbours or self.neighbours
        charged = plan.charged(relation)
        counts_units = charged != plan  # the number of units is private, and is released
        if chunks.read_before_charge and not payer.paid_by_earlier_batch:
            payer.check_charges(payer.charges(charged, relation))
            with np.errstate(all="ignore"):  # as where the session reads them
                if chunks.apart:
                    chunks.sum(UnitCount())
                else:
                    for _ in chunks:
                        pass
        # Rows were read by now, or their source says whether they have groups.
        unit = unit_of(unit or self._unit, grouped=chunks.grouped)
        if not (ticket or paid_by_earlier_batch):  # a fit that is refused warns of nothing
            charges = payer.charges(charged, relation, unit)
            payer.check_charges(charges)
            if charges:
                payer.check_several(charges, [*charges_of_later_steps(payer, relation)])
            expected = *payer.warnings_of_repetition(charges), *expected
        check_scoring_of_tools(self, payer.tools, grouped=chunks.grouped)
        self._warn(expected)
        if not (counts_units or paid_by_earlier_batch):
            self._warn(self._warnings_of_delta(plan, chunks.n_units, unit))
        # Products are small or limited by memory. On a busy machine more threads made fits ten
        # times slower, and on an idle one no faster.
        with (
            OneThread(),
            Session(
                chunks, charged, payer, neighbours=relation, unit=unit, verbose=bool(self.verbose)
            ) as ask,
        ):
            ask.count_units(plan)
            yield ask
        if counts_units and not paid_by_earlier_batch:
            ask.warnings.extend(self._warnings_of_delta(plan, ask.n_units, unit))

    def _with_report(
        self,
        ask: Session,
        fitted: FitResult,
        public: Mapping[str, object],
        earlier: PrivacyReport | None = None,
    ) -> FitResult:
        """Add to a fit `public` attributes, warnings, and a report, joined to an `earlier` one."""
        report = ask.report(fitted.notes)
        if earlier is not None:
            report = earlier.joined(report)
        attributes = {**public, **fitted.attributes, "privacy_report_": report}
        attributes.update(attribute_of_payment(ask.is_paid))
        return FitResult(attributes, (*fitted.warnings, *ask.warnings))

    def _warnings_of_delta(self, plan: ReleasePlan, n_units: int, unit: str) -> tuple[Warning, ...]:
        """Warning, if any, that delta is large for a public or released number of units."""
        # A search warns once, of its own delta.
        accountant = self._accountant_to_charge()
        in_search = accountant is not None and accountant._part_of_search
        if not plan.planned or in_search:
            return ()
        return warnings_of_delta(plan.epsilon, plan.delta, n_units, unit)

    def _publish_result(self, fitted: FitResult) -> Self:
        """Publish a finished fit, then issue its warnings, and those by its attributes."""
        self._publish(fitted.attributes)
        self._warn((*fitted.warnings, *self._warnings_by_attributes()))
        return self

    def _warnings_by_attributes(self) -> tuple[Warning, ...]:
        """Warnings of a finished fit that follow from its published attributes."""
        return ()

    def _adopt(self, report: PrivacyReport, paid: bool) -> None:
        """Take the privacy report of the search that chose this model; `paid` if it was charged."""
        # The search was charged as a whole: a stream that goes on from its model is charged again.
        state = self._fitted_state()
        state.pop(NEEDS_PAYER, None)
        state |= {"privacy_report_": report, **attribute_of_payment(paid)}
        if "_stream" in state:
            state["_stream"] = replace(state["_stream"], ticket=None)
        self._publish(state)

    @available_if(lambda estimator: hasattr(estimator, "transform"))
    @under_own_errors
    def fit_transform(self, X: object, y: object = None, **fit_params: object) -> Any:
        """Fit, and transform the same data.

        Parameters
        ----------
        X, y, **fit_params
            As for :meth:`fit`.

        Returns
        -------
        array
            Result for the caller's data, which the fit does not protect.
        """
        check_output(self)
        return super().fit_transform(X, y, **fit_params)  # type: ignore[misc]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags = replace(tags.input_tags, **self._input_tags)
        if self._preserves_dtype:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        # Two fits differ whatever random_state is, as noise is secret.
        tags.non_deterministic = True
        return tags
