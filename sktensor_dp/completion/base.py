"""What the private completions of tensors share."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state

from sktensor_dp.completion.assumed import Assumed
from sktensor_dp.completion.entry_recipes import fit_entries
from sktensor_dp.completion.forecast import CompletionForecast, forecast_completion
from sktensor_dp.completion.inputs import (
    check_combination,
    check_forecast_sizes,
    observed_chunks,
    plain_bounds,
    refuse_entries,
)
from sktensor_dp.completion.model_options import ModelOptions
from sktensor_dp.completion.named_rows import (
    RowNames,
    check_names,
    indices_of,
    named_chunks,
)
from sktensor_dp.completion.plan import (
    CompletionPlan,
    SlicePlan,
    check_model_size,
    checked_ranks,
    plan_completion,
    plan_slices,
)
from sktensor_dp.completion.predicting import PredictorMixin
from sktensor_dp.completion.public_features import checked_features, features_by_mode
from sktensor_dp.completion.recommending import RecommenderMixin
from sktensor_dp.completion.row_tables import RowTables
from sktensor_dp.completion.slice_recipes import fit_slices
from sktensor_dp.completion.value_bounds import BOUNDS, bounds_of_rows
from sktensor_dp.completion.worst_case import worst_neighbours
from sktensor_dp.estimator.base import (
    NONE,
    Neighbours,
    PlannedFit,
    PrivateEstimatorMixin,
    check_arguments,
)
from sktensor_dp.estimator.inputs import dense_tensor
from sktensor_dp.estimator.parameters import Constraint, InstanceOf, Number, OneOf
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.curators.entries import EntryCurator, SliceCurator
from sktensor_dp.queries.reading import read
from sktensor_dp.tensor.row_bounds import Bounds, RowBounds, mean_width, outermost

# Beyond these factors one of penalty and data is lost in the other's rounding.
REGULARIZATION = (1e-9, 1e9)


class CompletionMixin(PredictorMixin, RecommenderMixin, PrivateEstimatorMixin, RegressorMixin):
    """Fitting, prediction and forecasts of completed tensors.

    A subclass says in ``_full_core`` which model it fits.
    """

    _unit = "entry"
    _hidden_state = frozenset({"_model", "_ranks", "_shared", "_indices"})
    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "bounds": [*BOUNDS, NONE],
        "shape": [InstanceOf(tuple, list, np.ndarray), NONE],
        "row_names": [NONE, RowNames()],
        "row_features": [NONE, RowTables()],
        "perturbation": [OneOf("auto", "sufficient_statistics", "gradient", "input", "output")],
        "unit_mode": [Number(0, math.inf, integer=True), NONE],
        "regularization": [Number(*REGULARIZATION)],
        "max_iter": [Number(1, math.inf, integer=True), NONE],
    }

    _full_core: ClassVar[bool]
    _may_clash = ("bounds", "row_features", "row_names", "shape", "max_iter")

    def __init__(
        self,
        rank: int | Sequence[int] = 3,
        *,
        bounds: tuple[float, float] | Mapping[int, Any] | None = None,
        shape: Sequence[int] | None = None,
        row_names: Sequence[Any] | None = None,
        row_features: Mapping[int, Any] | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        perturbation: str = "auto",
        unit_mode: int | None = None,
        regularization: float = 1.0,
        max_iter: int | None = None,
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.bounds = bounds
        self.shape = shape
        self.row_names = row_names
        self.row_features = row_features
        self.epsilon = epsilon
        self.delta = delta
        self.perturbation = perturbation
        self.unit_mode = unit_mode
        self.regularization = regularization
        self.max_iter = max_iter
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, **unsupported: Any) -> Self:
        """Complete a tensor from observed entries.

        Parameters
        ----------
        X : array-like of int of shape (n_observed, n_modes)
            Coordinates of the entries, counted from 0; or names, by ``row_names``, where
            entries with a name that is no row are left out. Those of a Dask array or frame
            stay in its partitions with a ``unit_mode`` and without names.
        y : array-like of shape (n_observed,)
            Their values, clamped to ``bounds``.
        **unsupported : object
            Refused: all entries of a person are protected by ``unit_mode=0``, not
            by ``groups``, and ``sample_weight`` would be read from the data.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        TypeError
            If an argument is not supported; no budget is spent.
        ValueError
            If a parameter is wrong or the entries are not of the right kind; no budget
            is spent.
        BudgetError
            If the accountant has too little left; no budget is spent.
        """
        checked = self._check_call(X, None, unsupported)
        return self._run(self._planned_fit(checked, X, y, self.shape))

    def fit_tensor(self, T: ArrayLike, mask: ArrayLike | None = None, **unsupported: Any) -> Self:
        """Complete a dense tensor with gaps.

        Parameters
        ----------
        T : array-like of two or more dimensions
            NaN where nothing was observed.
        mask : array-like of bool of the shape of `T`, optional
            True where a value was observed; by default where it is not NaN.
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
            As :meth:`fit`, or if `mask` has another shape.
        """
        check_arguments(self, unsupported, "fit_tensor")
        self._check_all()
        tensor = dense_tensor(
            T, "; where they were not observed pass coordinates and values of the others to fit()"
        )
        observed = ~np.isnan(tensor)
        if mask is not None:
            observed = read(lambda: np.asarray(mask, dtype=bool), "mask")
        if observed.shape != tensor.shape:
            raise ValueError(f"mask must have shape {tensor.shape}, got {observed.shape}.")
        if self.shape is not None and tuple(self.shape) != tensor.shape:
            raise ValueError(f"T must have shape {tuple(self.shape)}, got {tensor.shape}.")
        # The shape of an array is public; it holds for indices that have no entry too.
        entries = np.argwhere(observed), tensor[observed]
        return self._run(self._planned_fit(self._validation_copy(), *entries, tensor.shape))

    def _planned_fit(
        self, checked: Self, X: Any, y: Any, announced: Sequence[int] | None
    ) -> PlannedFit[Any]:
        """Validate entries and plan what is released of them."""
        bounds = self._checked_together()
        by_slice = self.unit_mode is not None
        indices = None if self.row_names is None else indices_of(self.row_names)
        if announced is None and by_slice and indices is None:
            raise ValueError(
                "The 'shape' parameter must be given with a unit_mode: which indices occur is "
                "private."
            )
        chunks, columns = (
            observed_chunks(checked, X, y, announced, bounds)
            if indices is None
            else named_chunks(checked, X, y, indices, announced, bounds)
        )
        shape = chunks.shape
        kind: type[Any] = SliceCurator if by_slice else EntryCurator
        fit: Any = fit_slices if by_slice else fit_entries  # a recipe of the kind of plan
        how = {"unit": "slice"} if by_slice else {}
        plan, ranks = self._plan(chunks.n_units, shape)
        seeks = plan.seeks_components
        check_model_size(shape, ranks if seeks else (0,) * len(shape), plan, self.rank)
        warnings: tuple[Warning, ...] = ()
        if not (by_slice or seeks) and max(ranks) > 0:
            warnings = (self._warning_of_few(chunks.n_units, shape),)
        features = None if self.row_features is None else features_by_mode(self, shape)
        options = ModelOptions(
            ranks, self._full_core, check_random_state(self.random_state), self.regularization,
            self.max_iter, features,
        )  # fmt: skip
        recipe = partial(fit, plan=plan, options=options)
        known = {**columns, "shape_": shape, "bounds_": bounds, "_ranks": ranks}
        if indices is not None:
            known["_indices"] = indices
        return PlannedFit(kind, chunks, plan.releases, recipe, known, how, warnings)

    def _warning_of_few(self, n_units: int, shape: tuple[int, ...]) -> Warning:
        return NotEnoughDataWarning(
            f"At epsilon={self.epsilon:g}, {n_units} entries of a tensor of shape {shape} show no "
            "components above the noise; mean and biases are fitted. See forecast()."
        )

    def forecast(
        self,
        n_observed: int,
        shape: Sequence[int],
        *,
        deviation: float | None = None,
        bias_deviation: float | None = None,
        component_share: float | None = None,
    ) -> CompletionForecast:
        """Say what error to expect, from public numbers alone.

        Parameters
        ----------
        n_observed : int
            Number of entries to come.
        shape : sequence of int
            Of the tensor.
        deviation : float, optional
            Public knowledge of the standard deviation of values, in their units; a quarter of
            the width of the bounds by default.
        bias_deviation : float, optional
            That of the biases of each mode; by default .4 of the deviation.
        component_share : float, optional
            Share of components in the variance of values; .08 by default.

        Returns
        -------
        CompletionForecast
            Costs nothing, as long as no argument was computed from the data.

        Raises
        ------
        ValueError
            If a size is not an int >= 1, the shape has one mode, or what is assumed leaves
            nothing of the variance.
        """
        bounds = self._check_all()
        check_forecast_sizes(n_observed, shape)
        size = tuple(shape)
        if self.row_features is not None:
            features_by_mode(self, size)
        if isinstance(bounds, RowBounds):
            bounds.check_shape(size)
        plan, ranks = self._plan(n_observed, size)
        width = mean_width(bounds)
        assumed = Assumed.given(len(size), width, deviation, bias_deviation, component_share)
        return forecast_completion(n_observed, size, plan, width, max(ranks), assumed)

    def _plan(
        self, n_observed: int, shape: tuple[int, ...]
    ) -> tuple[CompletionPlan | SlicePlan, tuple[int, ...]]:
        """What is released, and the rank of each mode."""
        ranks = (
            checked_ranks(type(self).__name__, self.rank, shape)
            if self._full_core
            else (int(self.rank),) * len(shape)  # type: ignore[arg-type]
        )
        rank, epsilon, delta = max(ranks), self.epsilon, self.delta
        if self.unit_mode is not None:
            return plan_slices(shape, rank, self.unit_mode, epsilon, delta), ranks
        return plan_completion(
            n_observed, shape, rank, epsilon=epsilon, delta=delta,
            perturbation=self.perturbation, max_iter=self.max_iter,
        ), ranks  # fmt: skip

    def _check_all(self) -> Bounds:
        """The bounds, once all parameters are right."""
        self._check_parameters()
        return self._checked_together()

    def _checked_together(self) -> Bounds:
        """The bounds, once parameters that are right, each by itself, go together."""
        check_combination(self)
        if self.row_names is not None:
            check_names(self)
        if self.row_features is not None:
            checked_features(self)
        return bounds_of_rows(self) if isinstance(self.bounds, Mapping) else plain_bounds(self)

    def _parameter_to_save(self, name: str) -> Any:
        # Rows of a table in order need no names.
        if name == "row_features" and self.row_features is not None:
            return checked_features(self)
        if name == "bounds" and isinstance(bounds := self.bounds, Mapping):
            found = bounds_of_rows(self)
            return {mode: np.column_stack([found.low, found.high]) for mode in bounds}
        return super()._parameter_to_save(name)

    @property
    def _unit_is_row(self) -> bool:  # type: ignore[override]
        return self.unit_mode is None

    def _refuse_rows(self, X: Any, y: Any, *, grouped: bool, searched: Collection[str]) -> None:
        # Names are looked up in lists that may be candidates.
        if self.row_names is None and "row_names" not in searched:
            refuse_entries(self, X, y)

    def _check_public(self) -> None:
        self._check_all()

    @property
    def _has_pure_noise(self) -> bool:  # type: ignore[override]
        # Completions take noise of pure epsilon wherever it is the smaller one.
        return self.perturbation in ("auto", "input", "sufficient_statistics")

    def _target_range(self) -> tuple[float, float] | None:
        if isinstance(self.bounds, Mapping):
            return outermost(bounds_of_rows(self))
        return self.bounds

    def _worst_case(self, n_units: int | None) -> Neighbours:
        bounds = bounds_of_rows(self) if isinstance(self.bounds, Mapping) else self.bounds
        return worst_neighbours(bounds, self.shape, self.unit_mode, indices_of(self.row_names))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "shape_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Coordinates name categories, numbered from 0.
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        # A few dozen values with noise tell little.
        tags.regressor_tags.poor_score = True
        return tags
