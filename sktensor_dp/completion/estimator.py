"""Base of completions: parameters, fit, prediction, forecast."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.checks.callers import searched_parameters, tools_around
from sktensor_dp.checks.display import counted
from sktensor_dp.checks.errors import call_unquoted
from sktensor_dp.checks.frames import is_dask
from sktensor_dp.checks.parameters import (
    Condition,
    Constraint,
    InstanceOf,
    Number,
    Numbers,
    OneOf,
    check_sizes,
    shown,
)
from sktensor_dp.completion.absent_components import (
    expected_warnings,
    warning_of_unsought,
    warnings_of_noise,
)
from sktensor_dp.completion.chains import Chains, warnings_of_alone
from sktensor_dp.completion.entry_recipe import fit_entries
from sktensor_dp.completion.forecast import (
    CompletionForecast,
    PublicNumbers,
    forecast_completion,
)
from sktensor_dp.completion.inputs import (
    LARGEST_SIZE,
    as_coordinates,
    checked_bounds,
    checked_values,
    read_coordinates,
    read_entries,
    refuse_beyond,
    refuse_entries,
    unit_labels,
    with_numbered_units,
)
from sktensor_dp.completion.model import EntryModel, SharedModel, count_components
from sktensor_dp.completion.panel import check_stays
from sktensor_dp.completion.person_recipe import fit_persons
from sktensor_dp.completion.plan import (
    ASSUMED,
    Assumed,
    EntryPlan,
    ModelOptions,
    PersonPlan,
    check_model_size,
    plan_entries,
    plan_persons,
    tucker_ranks,
)
from sktensor_dp.completion.recommend import BLOCK
from sktensor_dp.completion.row_averages import RowAveragesMixin
from sktensor_dp.completion.row_names import are_names, check_names, indices_of
from sktensor_dp.completion.worst_case import worst_entries
from sktensor_dp.estimator.base import (
    NONE,
    PrivateEstimatorMixin,
    check_arguments,
    column_attributes,
    warnings_of_range,
)
from sktensor_dp.estimator.facts import PublicFacts
from sktensor_dp.estimator.forecast import Question
from sktensor_dp.estimator.inputs import dense_tensor
from sktensor_dp.estimator.lazy import computed, lazy_rows
from sktensor_dp.estimator.scoring import warn_of_score, warn_where_scored
from sktensor_dp.exceptions import NotEnoughDataError
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.entries import ValueHistogram
from sktensor_dp.queries.query import SIZE_EDGES
from sktensor_dp.tensor.arrays import Floats, blocks

BOUNDS = f"two finite numbers (low, high) of size {LARGEST_SIZE:g} at most"
NAMES = (
    "a tuple with an element for each mode: RowIndex.from_public(names), a list or column of "
    "names, or None where rows have numbers"
)


def release_bounds(ask: Session) -> tuple[tuple[float, float], tuple[Warning, ...]]:
    """Release a histogram of values; return the range (low, high) that it shows, and warnings."""
    edges = np.concatenate([-SIZE_EDGES[::-1], [0.0], SIZE_EDGES])
    low, high, seen = ask(ValueHistogram(edges)).range_of(edges)
    return (low, high), warnings_of_range(ValueHistogram.name, seen=seen)


class CompletionMixin(RowAveragesMixin, PrivateEstimatorMixin, RegressorMixin):
    """Base of completions; a subclass says in ``_full_core`` which model it fits."""

    _unit = "entry"
    _hidden_state = frozenset({"_model", "_ranks", "_shared", "_indices"})
    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "bounds": [Numbers(Number(-LARGEST_SIZE, LARGEST_SIZE), 2, BOUNDS), OneOf("auto"), NONE],
        "shape": [InstanceOf(tuple, list, np.ndarray), NONE],
        "row_names": [NONE, Condition(are_names, NAMES)],
        "perturbation": [OneOf("auto", "sufficient_statistics", "gradient", "input", "output")],
        "unit_mode": [Number(0, math.inf, integer=True), NONE],
        "max_iter": [Number(1, math.inf, integer=True), NONE],
    }

    mean_: float
    biases_: list[Floats]
    _model: EntryModel | SharedModel  # which `predict` uses; with a unit_mode it is `_shared`
    _full_core: ClassVar[bool]

    def __init__(
        self,
        rank: int | Sequence[int] = 3,
        *,
        bounds: tuple[float, float] | str | None = None,
        shape: Sequence[int] | None = None,
        row_names: Sequence[Any] | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        perturbation: str = "auto",
        unit_mode: int | None = None,
        max_iter: int | None = None,
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.bounds = bounds
        self.shape = shape
        self.row_names = row_names
        self.epsilon = epsilon
        self.delta = delta
        self.perturbation = perturbation
        self.unit_mode = unit_mode
        self.max_iter = max_iter
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        repeated: str | None = None,
        **unsupported: object,
    ) -> Self:
        """Complete a tensor from observed entries.

        Parameters
        ----------
        X : array-like of int of shape (n_observed, n_modes)
            Coordinates of the entries, counted from 0; or names, by ``row_names``, where
            entries with a name that is no row are left out. Those of a Dask array or frame
            stay in its partitions with a ``unit_mode``.
        y : array-like of shape (n_observed,)
            Their values, clamped to ``bounds``; required.
        repeated : "distinct" or None, default=None
            Without a ``unit_mode`` each value is protected by itself, so one that is there twice
            is protected half as well; coordinates that are repeated, as in a bootstrap sample,
            are refused. ``"distinct"`` says that values at equal coordinates are different ones;
            an infinite ``epsilon``, which protects none, takes them to be.
        **unsupported : object
            Refused: ``unit_mode=0``, not ``groups``, protects all entries of a person, and
            entries cannot have a ``sample_weight``.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        TypeError
            If an argument is not supported; no budget is spent.
        ValueError
            If a parameter is wrong, the entries are not of the right kind, or coordinates are
            repeated; no budget is spent, unless only partitions of a Dask `X` show it.
        BudgetError
            If the accountant has too little left; no budget is spent.
        """
        checked = self._checked_copy(X, n_samples=None, unsupported=unsupported)
        if repeated is not None and not (repeated == "distinct" and self.unit_mode is None):
            raise ValueError(
                "repeated must be None or 'distinct', and None with a unit_mode, where values of "
                f"one unit at equal coordinates are averaged; got {shown(repeated)}."
            )
        return self._fit_observed(checked, X, y, self.shape, repeated)

    def fit_tensor(self, T: ArrayLike, **unsupported: Any) -> Self:
        """Complete a dense tensor with gaps.

        Parameters
        ----------
        T : array-like of two or more dimensions
            NaN where nothing was observed.
        **unsupported : object
            As for :meth:`fit`.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        TypeError
            As :meth:`fit`.
        ValueError
            As :meth:`fit`.
        """
        check_arguments(self, unsupported, "fit_tensor")
        self._check_parameters()
        tensor = dense_tensor(
            T, "; where they were not observed pass coordinates and values of the others to fit()"
        )
        observed = ~np.isnan(tensor)
        if self.shape is not None and tuple(self.shape) != tensor.shape:
            raise ValueError(f"T must have shape {tuple(self.shape)}, got {tensor.shape}.")
        # The shape of an array is public, also if some indices have no entry.
        entries = np.argwhere(observed), tensor[observed]
        return self._fit_observed(self._validation_copy(), *entries, tensor.shape)

    def _fit_observed(
        self,
        checked: Self,
        X: object,
        y: object,
        given_shape: Sequence[int] | None,
        repeated: str | None = None,
    ) -> Self:
        """Read entries, plan releases, ask for them, and publish the model.

        Reading stores names of columns on `checked`, a copy of this estimator. None for
        `given_shape` takes the shape from names or coordinates; `repeated` is as for `fit`.
        """
        bounds, indices = checked_bounds(self), indices_of(self.row_names)
        chunks = read_entries(checked, X, y, indices, given_shape, bounds, repeated)
        shape, n_units = chunks.shape, chunks.n_units  # without a unit_mode units are entries
        plan, ranks = self._plan(n_units, shape)
        self._refuse_search_in_vain(n_units, shape)
        check_model_size(plan, shape, ranks, self.rank, full_core=self._full_core)
        expected = expected_warnings(self, plan, ranks, n_units, shape)
        unit = "person" if isinstance(plan, PersonPlan) else None
        options = ModelOptions(
            ranks, self._full_core, check_random_state(self.random_state), self.max_iter
        )
        warnings_of_bounds: tuple[Warning, ...] = ()
        with self._session(chunks, plan.releases, unit=unit, expected=expected) as ask:
            if self._chooses_bounds:
                bounds, warnings_of_bounds = release_bounds(ask)
                ask.clip_values(bounds)
            if isinstance(plan, PersonPlan):
                fitted, n_observed = fit_persons(ask, plan, options)
            else:
                fitted = fit_entries(ask, plan, options)
                n_observed = n_units
        warnings = (*warnings_of_bounds, *fitted.warnings, *warnings_of_alone(fitted.notes))
        # A fit of persons warns of wrong names or bounds, where more budget would not help.
        if isinstance(plan, EntryPlan) or not fitted.warnings:
            warnings += warnings_of_noise(self, fitted.attributes, plan, n_units, n_observed, shape)
        n_found, most = count_components(fitted.attributes), self._most_components(ranks)
        notes = [f"Components found: {n_found} of {most}."] if most > 0 else []
        if isinstance(plan, PersonPlan):
            of_chains = Chains(self, shape, each=n_observed / shape[plan.unit_mode])
            said, warned = of_chains.on_fit(fitted.attributes["_shared"], plan, fitted.notes)
            notes, warnings = notes + said, (*warnings, *warned)
        notes += fitted.notes
        public = {**column_attributes(checked), "shape_": shape, "bounds_": bounds, "_ranks": ranks}
        if indices is not None:
            public["_indices"] = indices
        fitted = replace(fitted, warnings=warnings, notes=tuple(notes))
        return self._publish_result(self._with_report(ask, fitted, public))

    @property
    def n_components_(self) -> int:
        """Number of components that the fit found; 0 where noise hides them all."""
        check_is_fitted(self)
        return count_components(vars(self))

    def _refuse_search_in_vain(self, n_units: int, shape: tuple[int, ...]) -> None:
        """Raise NotEnoughDataError in a search over `rank` alone if no rank seeks components."""
        if searched_parameters(tools_around()) != {"rank"}:
            return
        ranked = self._validation_copy()
        ranked.rank = 1  # whether components are sought is the same for all ranks above 0
        if not ranked._plan(n_units, shape)[0].seeks_components:
            why = warning_of_unsought(ranked, n_units, shape)
            raise NotEnoughDataError(
                "All ranks of this search give the same model. Nothing was charged for this fit. "
                f"{why}"
            )

    @property
    def bias_errors_(self) -> list[Floats]:
        """Standard errors of `biases_` by noise and sampling; NaN for ``unit_mode``, or mode 0.

        They are valid if which entries exist depends on values through the level of a unit alone.
        Where few units have entries in both of two rows, such as two months between which most
        left, errors are large if ``row_concurrences`` are released; otherwise differences of the
        two are too small by more than errors say, and far more with ``delta=0``, where biases come
        from one release. In three or more modes without ``unit_mode`` values count as
        independent: where somebody's deviation in a row is lasting, errors hold for those of the
        fit, not for others like them.
        """
        check_is_fitted(self)
        mode = self._shared.unit_mode
        errors = [np.sqrt(effects.variances) for effects in self._shared.effects]
        errors.insert(mode, np.full(self.shape_[mode], np.nan))
        return errors

    @property
    def bias_covariances_(self) -> list[Floats | None]:
        """Covariances of errors of `biases_`, for each mode; None where they are not known.

        A difference of two rows has the variance ``C[i, i] + C[j, j] - 2 * C[i, j]``: far less than
        by `bias_errors_`, which hold for any difference, if both share what few persons compare.
        """
        check_is_fitted(self)
        found = [effects.covariances for effects in self._shared.effects]
        found.insert(self._shared.unit_mode, None)
        return found

    @property
    def mean_error_(self) -> float:
        """Standard error of `mean_` by noise and sampling, of rows of the first mode or units."""
        check_is_fitted(self)
        return self._shared.level_error

    @property
    def in_brief(self) -> str:
        """Say how many components were found, and how far averages of rows differ."""
        n_modes, most = len(self.shape_), self._most_components(self._ranks)
        said = [f"Components found: {self.n_components_} of {most}."] if most > 0 else []
        said.append(f"The mean errs by {self.mean_error_:.2g} (standard error).")
        names = getattr(self, "feature_names_in_", [f"mode {mode}" for mode in range(n_modes)])
        modes = [mode for mode in range(n_modes) if mode != self._shared.unit_mode]
        for mode, effects in zip(modes, self._shared.effects, strict=True):
            hidden = "; noise hides how they differ" if effects.is_hidden else ""
            said.append(
                f"Averages of {names[mode]} differ by {np.std(self.biases_[mode]):.2g} "
                "(deviation), and differences from the mean err by "
                f"{np.median(self.bias_errors_[mode]):.2g} (median){hidden}."
            )
        return " ".join(said)

    def predict(self, X: ArrayLike) -> Floats:
        """Predict values at coordinates.

        Parameters
        ----------
        X : array-like of int of shape (n, n_modes)
            Coordinates, or names by ``row_names``. A row is unknown if it is below 0 (as of
            ``OrdinalEncoder(unknown_value=-1)``), a name that is no row, beyond ``shape_`` where
            the parameter ``shape`` is None, or, without a ``unit_mode``, never observed: the value
            is then the mean plus the biases of the other rows. For a Dask array or frame the result
            is a Dask array that is not computed yet.

        Returns
        -------
        ndarray of shape (n,)
            Within the bounds.

        Raises
        ------
        ValueError
            If an index is beyond a ``shape`` that was given, but for those of units.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazy_rows(self, X, "predict")
        warn_where_scored(self)
        return np.clip(self._values(self._coordinates(X)), *self.bounds_)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Coefficient of determination of the predictions, as scikit-learn has it.

        Parameters
        ----------
        X : array-like of int of shape (n, n_modes)
            Coordinates, as for :meth:`predict`.
        y : array-like of shape (n,)
            Values. With those of the fit it is a training score.
        sample_weight : array-like of shape (n,), optional
            Weights.

        Returns
        -------
        float
            1 at best.
        """
        warn_of_score(self)
        values = checked_values(self, computed(y, "Reading y"))
        predicted = computed(self.predict(X), "Predicting")
        # Errors of `r2_score` may quote y.
        return float(
            call_unquoted(lambda: r2_score(values, predicted, sample_weight=sample_weight), "y")
        )

    def complete(self) -> Floats:
        """Predict all values of the tensor.

        Returns
        -------
        ndarray of shape ``shape_``
            Dense, within the bounds.
        """
        check_is_fitted(self)
        size = math.prod(self.shape_)
        result = np.empty(size)
        for part in blocks(size, BLOCK):
            cells = np.arange(part.start, part.stop)
            coordinates = np.column_stack(np.unravel_index(cells, self.shape_))
            result[part] = self._values(coordinates)
        return np.clip(result, *self.bounds_).reshape(self.shape_)

    def _values(self, coordinates: NDArray[np.intp]) -> Floats:
        """Predictions (n,), not clamped to the bounds.

        With a row below 0 or beyond the shape they are the mean plus biases of the other rows.
        """
        inside = (coordinates >= 0) & (coordinates < np.array(self.shape_))
        values: Floats = self._model.predict(np.where(inside, coordinates, 0))
        if not inside.all():
            beyond = ~inside.all(axis=1)
            # Added in the order in which `SharedModel` adds, to be equal to the last bit.
            effects = np.zeros(len(values))
            for mode, bias in enumerate(self.biases_):
                rows = beyond & inside[:, mode]
                effects[rows] += bias[coordinates[rows, mode]]
            values[beyond] = self.mean_ + effects[beyond]
        return values

    def _coordinates(self, X: ArrayLike) -> NDArray[np.intp]:
        """Coordinates (n, n_modes) as integers, -1 for unknown rows, from numbers or names."""
        check_is_fitted(self)
        coordinates = as_coordinates(read_coordinates(self, X, self._indices))
        refuse_beyond(coordinates, self._given_shape, "X", but=self.unit_mode)
        return coordinates

    def forecast(
        self,
        n_observed: int,
        shape: Sequence[int] | None = None,
        *,
        deviation: float | None = None,
        bias_deviation: float | None = None,
        component_share: float | None = None,
        stays: int | None = None,
    ) -> CompletionForecast:
        """Say what error to expect, from public numbers alone.

        Parameters
        ----------
        n_observed : int
            Number of entries to come. With a ``unit_mode`` each unit is assumed to have one, if
            there are enough; all further ones belong to random units.
        shape : sequence of int, optional
            Number of rows of each mode; by default the parameter ``shape``.
        deviation : float, optional
            Public knowledge of the standard deviation of values, in their units; a quarter of
            the width of the bounds by default. Of two values, such as yes and no, it is half of
            the width at most: take that.
        bias_deviation : float, optional
            Standard deviation of biases, one number for all modes. By default .4 of `deviation`, or
            less if components leave less; then only two modes have biases that explain variance of
            values, else all have.
        component_share : float, optional
            Share of components in the variance of values, divided equally among as many as the
            rank: forecast at the rank that you expect, also if a fit asks for more. By default .08
            for two or three together, .04 at rank 1. Whether a fit seeks any follows from other
            public numbers.
        stays : int, optional
            In how many neighbouring rows of the last mode a unit has entries, where units come and
            go, as in a rotating panel: 3 of 12 months. Errors are then those that a fit will state
            for a trend; with three modes half of all fits state up to twice as much, some up to six
            times. It needs ``unit_mode=0``; by default rows are as by chance.

        Returns
        -------
        CompletionForecast
            Expected errors. They cost no privacy if no argument was computed from the data.

        Raises
        ------
        ValueError
            If a size is not an int >= 1, the shape has one mode, or biases and components
            are assumed to have all of the variance; or if `stays` is no number of rows of the last
            mode in which so many entries have room.
        """
        numbers = {
            "n_observed": n_observed, "shape": self.shape if shape is None else shape,
            "deviation": deviation, "bias_deviation": bias_deviation,
            "component_share": component_share, "stays": stays,
        }  # fmt: skip
        self._check_parameters()
        public = self._public_numbers(**numbers)  # type: ignore[arg-type]
        check_names(self, public.shape)
        self._warn_of_budget(public.plan.releases)
        question = Question.of(self, **{**numbers, "shape": public.shape})
        question.parameters["row_names"] = None  # it is asked for other shapes, too
        return replace(forecast_completion(public), _question=question)

    def _public_numbers(
        self, n_observed: int, shape: Any, deviation: float | None, bias_deviation: float | None,
        component_share: float | None, stays: int | None,
    ) -> PublicNumbers:  # fmt: skip
        """Numbers that a forecast follows from, checked."""
        low, high = checked_bounds(self)
        if not isinstance(shape, Sequence | np.ndarray):
            raise ValueError(f"shape must be a number of rows for each mode; got {shown(shape)}.")
        check_sizes(n_observed=n_observed, **{f"shape[{m}]": n for m, n in enumerate(shape)})
        if len(shape) < 2:
            raise ValueError(f"shape must have two lengths or more, got {len(shape)}.")
        size = tuple(shape)
        plan, ranks = self._plan(n_observed, size)
        width, most = 1.0 if self._chooses_bounds else high - low, self._most_components(ranks)
        assumed = Assumed.given(width, deviation, bias_deviation, component_share, most, len(size))
        check_stays(stays, n_observed, size, self.unit_mode)
        return PublicNumbers(n_observed, size, plan, width, most, assumed, stays)

    def _plan(
        self,
        n_observed: int,  # number of entries; not read with a unit_mode
        shape: tuple[int, ...],
    ) -> tuple[EntryPlan | PersonPlan, tuple[int, ...]]:
        """Plan of releases for public sizes, and the rank of each mode."""
        if self._full_core:
            ranks = tucker_ranks(type(self).__name__, self.rank, shape)
        else:
            ranks = (int(self.rank),) * len(shape)  # type: ignore[arg-type]
        plan: EntryPlan | PersonPlan
        if self.unit_mode is None:
            plan = plan_entries(
                n_observed, shape, max(ranks), epsilon=self.epsilon, delta=self.delta,
                perturbation=self.perturbation, max_iter=self.max_iter,
                chooses_bounds=self._chooses_bounds,
            )  # fmt: skip
        else:
            plan = plan_persons(
                shape, max(ranks), self.unit_mode, self.epsilon, self.delta, self._chooses_bounds
            )
        return plan, ranks

    def _most_components(self, ranks: Sequence[int]) -> int:
        """Most components that a fit can find."""
        if self._full_core and self.unit_mode is None:
            # Each unfolding of the core has no more columns than the other ranks multiply to.
            return max(min(rank, math.prod(ranks) // rank) for rank in ranks)
        return max(rank for mode, rank in enumerate(ranks) if mode != self.unit_mode)

    @property
    def _chooses_bounds(self) -> bool:
        """True where a released histogram of values decides on the bounds."""
        return isinstance(self.bounds, str)

    def _check_combined(self, method: str = "fit") -> None:
        if self.unit_mode is not None:
            if self.perturbation not in ("auto", "sufficient_statistics"):
                raise ValueError(
                    f"unit_mode={self.unit_mode} needs perturbation 'auto' or "
                    f"'sufficient_statistics', got {self.perturbation!r}."
                )
            if self.max_iter is not None:
                raise ValueError(
                    "max_iter must be None with a unit_mode: the number of releases follows from "
                    f"public numbers. Got {shown(self.max_iter)}."
                )
        check_names(self, self.shape)
        sizes = self.row_names if self.shape is None else self.shape
        if self.unit_mode is not None and sizes is not None and self.unit_mode >= len(sizes):
            raise ValueError(
                f"unit_mode must be an int in [0, {len(sizes) - 1}], one of the modes; got "
                f"{shown(self.unit_mode)}."
            )
        checked_bounds(self)  # for its errors

    def _parameter_to_save(self, name: str) -> Any:
        """Lists of names for `row_names`, other parameters as they are."""
        if name == "row_names" and (indices := indices_of(self.row_names)) is not None:
            return tuple(
                None if index is None else index.decode(np.arange(len(index))).tolist()
                for index in indices
            )
        return super()._parameter_to_save(name)

    def _public_facts(self) -> PublicFacts:
        """Public facts for search, scorer and audit, from parameters alone."""
        n_units = None
        shape = () if self.shape is None else self.shape
        if self.unit_mode is not None and self.unit_mode < len(shape):
            n_units = int(shape[self.unit_mode])
        # With these some releases of a fit of entries have pure noise, as a histogram has.
        pure = ("auto", "input", "output", "sufficient_statistics")
        return PublicFacts(
            self._unit, units_in_data=self.unit_mode is not None, n_units=n_units,
            guesses=self._guesses(),
            has_pure_noise=self.unit_mode is None
            and (self.perturbation in pure or self._chooses_bounds),
            target_range=None if self._chooses_bounds else self.bounds,  # type: ignore[arg-type]
            scored_by=frozenset({"bounds"}),
            worst_case=partial(worst_entries, self),
        )  # fmt: skip

    def _guesses(self) -> dict[str, float | None]:
        """Public guesses that forecasts take; of units also their number of entries."""
        guesses: dict[str, float | None] = (
            {} if self.unit_mode is None else {"entries_each": ASSUMED.each}
        )
        return guesses | dict.fromkeys(("deviation", "bias_deviation", "component_share"))

    def _forecast_verdict(
        self, n_units: int, n_features: int | None, **options: Any
    ) -> tuple[str, Sequence[str]] | None:
        """Verdict on finding components, and what the forecast assumes; None without shape."""
        if self.shape is None or not np.any(self.rank):
            return None
        shape, n_observed, assumed = list(self.shape), n_units, []
        if self.unit_mode is not None:
            shape[self.unit_mode] = n_units
            n_observed = min(n_units * options.pop("entries_each"), math.prod(shape))
            each = counted(n_observed // n_units, "entry")
            assumed = [
                f"Units are assumed to have about {each} each (entries_each in forecast_options "
                "says otherwise)."
            ]
        forecast = self.forecast(n_observed, shape, **options)
        plan, ranks = self._plan(n_observed, tuple(shape))
        check_model_size(plan, shape, ranks, self.rank, full_core=self._full_core)
        if forecast.finds_components:
            return "components can be found", [*assumed, forecast.assumption]
        in_vain = [forecast.advice()] if self.delta == 0 else []  # units need a delta above 0
        return "likely no components", [*assumed, forecast.assumption, *in_vain]

    def _refuse_rows(self, X: Any, y: Any) -> None:
        refuse_entries(self, X, y, indices_of(self.row_names), self.shape)

    def _unit_labels_in(self, X: object) -> NDArray[np.generic] | None:
        if self.unit_mode is None:
            return None
        return unit_labels(X, self.unit_mode, indices_of(self.row_names))

    def _set_to_units(self, X: Any, n: int) -> Any:
        """Set the shape to `n` units; return X, with units numbered from 0 if X has numbers."""
        mode, shape = self.unit_mode or 0, list(self.shape or ())
        shape[mode] = n
        self.set_params(shape=tuple(shape))
        return X if self.row_names is not None else with_numbered_units(X, mode)

    def __sklearn_is_fitted__(self) -> bool:
        return "shape_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Coordinates are category numbers from 0.
        tags.input_tags.categorical = True
        tags.input_tags.string = self.row_names is not None
        tags.input_tags.positive_only = True
        # scikit-learn's checks fit a few dozen values, too few for a good score with noise.
        tags.regressor_tags.poor_score = True
        return tags
