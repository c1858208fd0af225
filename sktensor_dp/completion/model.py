"""Fitted models of completions: predictions, attributes and files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.completion.row_names import Indices, indices_of
from sktensor_dp.model_files.container import require
from sktensor_dp.model_files.fields import (
    ABSENT,
    Items,
    Maybe,
    Numbers,
    Part,
    Plain,
    Real,
    SavedState,
    Whole,
)
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.cp_completion import CPCompletion
from sktensor_dp.tensor.shared_parameters import SharedComponents, SharedEffects
from sktensor_dp.tensor.tucker_completion import TuckerCompletion
from sktensor_dp.tensor.unit_parameters import N_PLAIN, EntryEffects, effects_at_entries

# Model where one value is the unit.
EntryModel = CPCompletion | TuckerCompletion
# Least fraction of the variance of values that a model leaves unexplained.
LEAST_UNEXPLAINED = 0.2
AT_EDGE = (
    "The average that was found lies at the edge of the range of values, as where nearly all are "
    "the same, or are clamped to bounds that are too narrow. If they are not the same: are the "
    "bounds right, and is it the right column of values? Before a fit check_inputs, which the "
    "command runs by default, tells how many values lie within the bounds."
)


def unexplained_variance(deviation: float, explained: float) -> float:
    """Variance ``deviation**2 - explained``, at least LEAST_UNEXPLAINED of ``deviation**2``."""
    return max(deviation**2 - explained, LEAST_UNEXPLAINED * deviation**2)


def count_components(attributes: Mapping[str, Any]) -> int:
    """Number of components in fitted attributes; with a full core the largest rank of a mode.

    Components that change no prediction do not count. If only `fold_in` uses components, it is the
    rank of their `mixing`.
    """
    # If there are no weights and no core, or they are 0, components may be in `_shared` alone.
    if np.any(attributes.get("weights_", 0)):
        return int(np.count_nonzero(attributes["weights_"]))
    if np.any(core := attributes.get("core_", np.zeros(0))):
        return _largest_rank(core, core.ndim)
    shared = attributes["_shared"]
    if shared.components is None:
        return 0
    components = shared.components
    # Masks of columns that are not 0: a product with a column of zeros changes no prediction.
    used = [np.any(factor, axis=0) for factor in components.factors]
    mixing = np.eye(components.n_components) if components.mixing is None else components.mixing
    if not components.full_core:
        return _largest_rank(mixing[np.all(used, axis=0)], n_modes=1)
    core = mixing.reshape(*map(len, used), -1)[np.ix_(*used)]
    return _largest_rank(core, len(used))


def _largest_rank(core: Floats, n_modes: int) -> int:
    """Largest rank of the unfoldings of a core along its first `n_modes` modes."""
    if not core.any():
        return 0
    unfolded = (np.moveaxis(core, m, 0).reshape(core.shape[m], -1) for m in range(n_modes))
    return int(max(map(np.linalg.matrix_rank, unfolded)))


def attributes_of_units(model: "SharedModel", n_units: int, ranks: Sequence[int]) -> dict[str, Any]:
    """Fitted attributes from a model that units share; those of the units' own rows are 0."""
    mode, biases = model.unit_mode, [effects.means for effects in model.effects]
    biases.insert(mode, np.zeros(n_units))
    attributes = {"mean_": model.level, "biases_": biases}
    if model.components is None:
        return attributes
    factors = list(model.components.factors)
    factors.insert(mode, np.zeros((n_units, ranks[mode])))
    return {**attributes, "factors_": factors}


@dataclass(frozen=True, eq=False)
class SharedModel:
    """Released model that all units share: a level, and effects and factors of the other modes."""

    level: float  # mean over units of values less effects, in the units of values
    noise_variance: float  # of a value about its prediction by its unit's own parameters
    unit_mode: int  # mode whose rows fold in
    effects: list[SharedEffects]  # one for each other mode
    components: SharedComponents | None  # factors of the other modes, if any were found
    level_variance: float  # prior variance of a unit's own level
    level_error: float  # standard error of `level`

    @property
    def n_parameters(self) -> int:
        """Number of parameters that a unit has of its own."""
        return N_PLAIN + (0 if self.components is None else self.components.n_components)

    def at_entries(self, coordinates: NDArray[np.intp]) -> EntryEffects:
        """Effects and components of each entry's rows.

        `coordinates` (n, n_modes) have a column for units, which is not read. Rows below 0 or
        beyond the shape have the effect 0, with the prior's variance, and no components.
        """
        shared = np.delete(coordinates, self.unit_mode, axis=1)
        # Append a row to each mode for unknown rows, with the prior's mean 0 and variance.
        extended = [
            SharedEffects(
                np.append(mode.means, 0.0), np.append(mode.variances, mode.prior_variance),
                np.append(mode.popularity, 0.0), mode.prior_variance,
            )
            for mode in self.effects
        ]  # fmt: skip
        unknown = [len(effects.means) for effects in self.effects]
        rows = np.where(shared < 0, unknown, np.minimum(shared, unknown))
        if self.components is None:
            return effects_at_entries(extended, rows)
        factors = [np.vstack([f, np.zeros(f.shape[1])]) for f in self.components.factors]
        components = replace(self.components, factors=tuple(factors))
        return effects_at_entries(extended, rows, components.rows(rows))

    def predict(self, coordinates: NDArray[np.intp]) -> Floats:
        """Predictions (n,) for units that are not folded in: level plus effects."""
        return self.level + self.at_entries(coordinates).effects


# Most components, or columns of all factors, in a file: far above those of any fit.
MOST_COLUMNS = 2**20
PERTURBATIONS = ("sufficient_statistics", "gradient", "input", "output")


# Fields of a `SharedModel` in a file; S is the length of a shared mode.
SHARED = Part(
    SharedModel, level=Real(), noise_variance=Real("+"), unit_mode=Whole(),
    effects=Items(Part(
        SharedEffects, means=Numbers("S"), variances=Numbers("S+"),
        popularity=Numbers("S"), prior_variance=Real("+"),
        prior_means=Maybe(Numbers("S")), drawn=Maybe(Numbers("S+")),
        covariances=Maybe(Numbers("SS")),
    )),
    components=Maybe(Part(
        SharedComponents, factors=Items(Numbers("S?"), kind=tuple), full_core=Plain(bool),
        mixing=Maybe(Numbers("??")), errors=Maybe(Numbers("S?+")),
    )),
    level_variance=Real("+"), level_error=Real("+"),
)  # fmt: skip


@dataclass(kw_only=True)
class SavedCompletion(SavedState):
    """Serialisation schema of a completion: what units share, and the model of entries if any."""

    shape_: Annotated[tuple[int, ...], Items(Whole("N"), "d", tuple)]
    bounds_: Annotated[tuple[float, float], Items(Real(), 2, tuple)]
    n_iter_: Annotated[int, Whole()]
    perturbation_: Annotated[str, Plain(str)]
    _ranks: Annotated[tuple[int, ...], Items(Whole(), "d", tuple)]
    _shared: Annotated[SharedModel, SHARED]
    # Only of a model of entries; with a unit_mode these follow from `_shared`.
    mean_: Annotated[float, Real()] = ABSENT
    biases_: Annotated[list[Floats], Items(Numbers("N"), "d")] = ABSENT
    factors_: Annotated[list[Floats], Items(Numbers("N?"), "d")] = ABSENT
    weights_: Annotated[Floats, Numbers("r+")] = ABSENT
    core_: Annotated[Floats, Numbers()] = ABSENT

    @classmethod
    def of(cls, estimator: object, **rebuilt: object) -> Self:
        """State of a fitted completion, to be written."""
        state = super().of(estimator)
        absent = dict.fromkeys(("mean_", "biases_", "factors_"), ABSENT)
        of_units = isinstance(vars(estimator).get("_model"), SharedModel)
        return replace(state, **absent) if of_units else state

    def attributes(self, estimator: Any) -> dict[str, Any]:
        """Fitted attributes from a file; ModelFileError where shapes or values do not agree."""
        most_modes = 32  # that every supported numpy allows
        attributes = super().attributes(estimator)
        shape, ranks, shared = self.shape_, self._ranks, self._shared
        is_tensor = 2 <= len(shape) <= most_modes and min(shape) > 0 and self.n_iter_ > 0
        require(is_tensor, "shape_ must be that of a tensor, fitted in a step or more")
        is_known = self.perturbation_ in PERTURBATIONS
        require(is_known, f"perturbation_ must be one of {PERTURBATIONS}")
        require(sum(ranks) <= MOST_COLUMNS, f"ranks must add up to at most {MOST_COLUMNS}")
        if estimator.row_names is not None:
            attributes["_indices"] = indices_of(estimator.row_names)
        check_parts(shape, self.bounds_, attributes.get("_indices"), shared)
        if self.mean_ is not ABSENT:
            has_parts = "factors_" in attributes and "biases_" in attributes
            require(has_parts, "there must be factors and biases")
            model = self._model_of_entries(shape, ranks)
            needed = "core_" if estimator._full_core else "weights_"
            require(needed in attributes, f"the model must have {needed}")
            return {**attributes, "_model": model}
        rule = "without mean_ a file must hold no biases, factors, weights or core"
        require(attributes.keys().isdisjoint(("biases_", "factors_", "weights_", "core_")), rule)
        if shared.components is not None:
            columns = [factor.shape[1] for factor in shared.components.factors]
            rule = "shared factors must be of the ranks"
            require(columns == [*np.delete(ranks, shared.unit_mode)], rule)
        of_units = attributes_of_units(shared, shape[shared.unit_mode], ranks)
        return {**attributes, **of_units, "_model": shared}

    def _model_of_entries(self, shape: tuple[int, ...], ranks: tuple[int, ...]) -> EntryModel:
        """Model of entries, with factors of the ranks; ModelFileError for others."""
        columns, unknown = [factor.shape[1] for factor in self.factors_], np.zeros(0)
        if self.core_ is ABSENT:
            require(self.weights_ is not ABSENT, "components must have weights")
            n = len(self.weights_)
            fits = columns == [n] * len(shape) and n <= min(ranks) and len(set(ranks)) == 1
            model: EntryModel = CPCompletion(
                self.mean_, self.biases_, self.factors_, self.weights_,
                noise_variance=0.0, n_iter=self.n_iter_, bias_variances=[],
                bias_prior_variances=unknown, factor_prior_variances=unknown,
            )  # fmt: skip
        else:
            fits = self.weights_ is ABSENT and self.core_.shape == ranks == (*columns,)
            model = TuckerCompletion(
                self.mean_, self.biases_, self.factors_, self.core_, noise_variance=0.0,
                n_iter=self.n_iter_, bias_variances=[], bias_prior_variances=unknown,
                unit_covariance=unknown,
            )  # fmt: skip
        require(fits, "factors must be of the ranks")
        return model


def check_parts(
    shape: tuple[int, ...], bounds: tuple[float, float], indices: Indices | None, model: SharedModel
) -> None:
    """Raise an error for parts of a file that do not fit the shape of a tensor."""
    require(-np.inf < bounds[0] < bounds[1] < np.inf, "bounds must be (low, high), low < high")
    if indices is not None:
        require(len(indices) == len(shape), "there must be names for each mode")
        for index, n in zip(indices, shape, strict=True):
            require(index is None or len(index) == n, "names must be as many as rows")
    mode = model.unit_mode
    require(mode < len(shape), "unit_mode must be a mode")
    others = [*np.delete(shape, mode)]
    lengths = [len(effects.means) for effects in model.effects]
    require(lengths == others, "effects must be as many as rows of the shared modes")
    require(model.noise_variance > 0, "noise_variance must be positive")
    if model.components is not None:
        factors = model.components.factors
        require([len(factor) for factor in factors] == others, "factors must be of the shape")
        columns = {factor.shape[1] for factor in factors}
        alike = model.components.full_core or len(columns) == 1
        wanted = f"components must have equal numbers of columns, at most {MOST_COLUMNS} in all"
        require(alike and model.n_parameters <= MOST_COLUMNS, wanted)
