"""Results of a fit of a mixture: attributes, files, units of columns, and warnings."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.checks.display import counted
from sktensor_dp.estimator.base import column_attributes
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.gaussian_mixture.plan import MixturePlan
from sktensor_dp.mixtures.gaussians import Gaussians
from sktensor_dp.mixtures.m_step import StepNoise
from sktensor_dp.mixtures.nonnormal import NonnormalColumns
from sktensor_dp.mixtures.scores import n_scores
from sktensor_dp.mixtures.uncertainty import MeanErrors
from sktensor_dp.model_files.container import require
from sktensor_dp.model_files.fields import ABSENT, Numbers, Part, Real, SavedState, Whole
from sktensor_dp.tensor.arrays import Floats


@dataclass(frozen=True, eq=False)
class FittedMixture:
    """Mixture by released values, and other results of a fit."""

    model: Gaussians
    gains: Floats  # released mean log-density of j = 2, 3, ... groups, less that of j - 1
    mean_square: float  # mean squared norm of means after the first half of the steps
    skewness: Floats  # (d,): expected deviation of logs of the tail that groups share
    errors: MeanErrors


@dataclass(kw_only=True)
class SavedMixture(SavedState):
    """Serialisation schema: attributes of k groups in d columns."""

    weights_: Annotated[Floats, Numbers("k+")]
    means_: Annotated[Floats, Numbers("kd")]
    covariances_: Annotated[Floats, Numbers()]
    n_components_: Annotated[int, Whole("k")]
    n_iter_: Annotated[int, Whole()]
    data_norm_: Annotated[float, Real("+")] = ABSENT
    gains_: Annotated[Floats, Numbers("m")]
    skewness_: Annotated[Floats, Numbers("d+")]
    _mean_errors: Annotated[MeanErrors, Part(
        MeanErrors,
        noise=Part(
            StepNoise, weight=Real("+"), shift=Real("+"), size=Real("+"), shape=Real("+"),
        ),
        ratio=Real("+"), apart=Real("+"),
        moved=Numbers("kp"), missed=Numbers("kw+"), unsure=Numbers("kw+"), spread=Numbers("kd+"),
        observed=Numbers("kd+"), most_observed=Numbers("kd+"),
    )] = ABSENT  # fmt: skip
    _nonnormal: Annotated[NonnormalColumns, Part(
        NonnormalColumns, low=Numbers("d"), high=Numbers("d"), dispersions=Numbers("d+"),
    )] = ABSENT  # fmt: skip

    def attributes(self, estimator: Any) -> dict[str, Any]:
        """Fitted attributes from a file; ModelFileError if they make no mixture of this type."""
        found = super().attributes(estimator)
        require(self.n_components_ > 0 and self.n_iter_ > 0, "there must be a group and a step")
        k, d = self.means_.shape
        shape = in_sklearn_shape(np.empty((k, d, d)), estimator.covariance_type).shape
        if self._mean_errors is not ABSENT:
            require(
                self._mean_errors.moved.shape == (k, n_scores(1, d)),
                "moved must have a column for each parameter of a group",
            )
            shapes = {self._mean_errors.missed.shape, self._mean_errors.unsure.shape}
            require(
                shapes == {(k, 1 + d)},
                "missed and unsure must have a column for the weight and each mean of a group",
            )
        require(self.covariances_.shape == shape, "covariances_ must be of the covariance_type")
        whole = full_covariances(self.covariances_, estimator.covariance_type, k, d)
        symmetric = bool((whole == whole.swapaxes(1, 2)).all())
        variances = np.diagonal(whole, axis1=1, axis2=2)
        positive = symmetric and bool((variances > 0).all())
        if positive:  # by correlations, as columns may have any unit
            spreads = np.sqrt(variances)
            correlations = whole / (spreads[:, :, None] * spreads[:, None, :])
            positive = bool((np.linalg.eigvalsh(correlations) > 0).all())
        require(positive, "covariances_ must be positive definite")
        require(bool((self.weights_ > 0).all()), "weights_ must be above 0")
        return found


def full_covariances(covariances: Floats, covariance_type: str, k: int, d: int) -> Floats:
    """Covariances (k, d, d) from those in the array shape of scikit-learn."""
    if covariance_type in ("full", "tied"):
        return np.broadcast_to(covariances, (k, d, d)).copy()
    return covariances.reshape(k, -1, 1) * np.eye(d)


def in_sklearn_shape(covariances: Floats, covariance_type: str) -> Floats:
    """Covariances in the array shape of scikit-learn for this ``covariance_type``."""
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    arrays = {"full": covariances, "tied": covariances[0], "diag": variances}
    return arrays.get(covariance_type, variances[:, 0]).copy()


def gaussians_of(estimator: Any) -> Gaussians:
    """Gaussians of a fitted estimator."""
    k, d = estimator.means_.shape
    covariances = full_covariances(estimator.covariances_, estimator.covariance_type, k, d)
    nonnormal = vars(estimator).get("_nonnormal")
    return Gaussians(estimator.weights_, estimator.means_, covariances, nonnormal=nonnormal)


def move_to_units(estimator: Any, ranges: Floats) -> None:
    """Move a fitted mixture of columns scaled to [-1, 1] to their own units, in place.

    `ranges` (n_features, 2) are those that columns were scaled by. ``data_norm`` of scaled rows
    becomes None, and ``data_norm_`` goes; ``nonnormal_features`` are in the new units.
    """
    low, high = ranges.T
    halves = (high - low) / 2
    model = gaussians_of(estimator)
    estimator.means_ = (low + high) / 2 + halves * model.means
    covariances = model.covariances * np.outer(halves, halves)
    estimator.covariances_ = in_sklearn_shape(covariances, estimator.covariance_type)
    if (errors := vars(estimator).get("_mean_errors")) is not None:
        scales = np.insert(halves, 0, 1.0)
        moved = {name: scales * getattr(errors, name) for name in ("missed", "unsure")}
        estimator._mean_errors = replace(errors, **moved)
    ends = None
    if (nonnormal := vars(estimator).get("_nonnormal")) is not None:
        estimator._nonnormal = nonnormal.moved((low + high) / 2, halves)
        ends = estimator._nonnormal.ends(names_where(estimator, np.ones(len(low), bool)))
    vars(estimator).pop("data_norm_", None)
    estimator.set_params(data_norm=None, nonnormal_features=ends)


def attributes_of(found: FittedMixture, plan: MixturePlan) -> dict[str, Any]:
    """Fitted attributes by name, with the largest group first."""
    order = np.argsort(-found.model.weights, kind="stable")
    model = found.model.in_order(order)
    attributes = {
        "weights_": model.weights,
        "means_": model.means,
        "covariances_": in_sklearn_shape(model.covariances, plan.covariance_type),
        "n_components_": len(model.weights),
        "n_iter_": plan.n_steps,
        "gains_": np.append(0.0, np.cumsum(found.gains)),
        "skewness_": found.skewness,
    }
    if model.nonnormal is not None:
        attributes["_nonnormal"] = model.nonnormal
    if plan.has_intervals:
        attributes["_mean_errors"] = found.errors.in_order(order)
    return attributes


def names_where(estimator: Any, columns: NDArray[np.bool_]) -> list[str]:
    """Names of the columns of a mask (n_features,); ``column 0`` and so on without names."""
    numbers = [f"column {place}" for place in range(len(columns))]
    names = column_attributes(estimator).get("feature_names_in_", numbers)
    return [name for name, is_one in zip(names, columns, strict=True) if is_one]


def doubts_of_ends(estimator: Any, ranges: Floats | None = None) -> str:
    """Sentences on columns in which groups lie at an end of the range, or have nearly one value.

    `ranges` (n_features, 2) are in the units of means. None takes columns as scaled to [-1, 1] if
    ``data_norm`` is that of such rows; otherwise columns have no known ends.
    """
    low, high = (-1.0, 1.0) if ranges is None else ranges.T
    means = (2 * estimator.means_ - low - high) / (high - low)
    spreads = 2 * np.sqrt(estimator.variances_) / (high - low)
    if ranges is not None:
        means = np.clip(means, -1, 1)
    # The largest norm of rows scaled to [-1, 1] is the root of the number of columns.
    is_scaled = ranges is not None or math.isclose(
        getattr(estimator, "data_norm_", estimator.data_norm),
        math.sqrt(means.shape[1]),
        rel_tol=0.01,
    )
    low_is_zero = None if ranges is None else low == 0
    nonnormal = vars(estimator).get("_nonnormal")
    is_nonnormal = (
        np.zeros(means.shape[1], bool) if nonnormal is None else nonnormal.dispersions > 0
    )
    in_doubt = _columns_in_doubt(means, spreads, low_is_zero, has_ends=is_scaled)
    found = {
        "A group has nearly one value of {}, or is narrow beside others, as where a long tail "
        "needs logs: take logs first. Groups may part by it alone, and hide others: name a column "
        "of few values as nonnormal.": in_doubt.narrow,
        "A group has nearly one value of {}, at the end of its range: many zeros, a code of "
        "missing cells such as -9, or logs not taken? Groups may part by it alone, and hide "
        "others: name a column with many zeros as nonnormal.": in_doubt.parted,
        "The averages of {} lie at the end of its range: is the range in other units or far too "
        "wide, or are cells a code such as -9?": in_doubt.beyond,
    }  # fmt: skip
    return " ".join(
        said.format(" and ".join(names))
        for said, columns in found.items()
        if (names := names_where(estimator, columns & ~is_nonnormal))
    )


class _InDoubt(NamedTuple):
    """Masks (d,) of columns that put groups in doubt."""

    narrow: NDArray[np.bool_]  # a group has nearly one value, or few beside others
    parted: NDArray[np.bool_]  # a group has nearly one value, at an end of the range
    beyond: NDArray[np.bool_]  # a group has its average at an end of the range


def _columns_in_doubt(
    means: Floats, spreads: Floats, low_is_zero: Any, *, has_ends: bool
) -> _InDoubt:
    """Columns that put groups in doubt.

    `means` and `spreads` (k, d) are of columns scaled to [-1, 1]. `low_is_zero` (d,) says whether
    the low end of each range is 0; None if that is unknown.
    """
    to_end = 1 - np.abs(means)
    at_end = (np.abs(to_end) < 0.02) & has_ends  # within a hundredth of the range
    # Of two groups with one mean and size, spreads that differ ten times tell by this column alone
    # to which of them nine in ten rows belong.
    narrow = spreads < 0.1 * spreads.max(axis=0)
    narrow &= ~narrow.all(axis=1, keepdims=True)  # a group narrow in all columns: a small cloud
    # If all other groups are three deviations or more from the ends, beyond which normal ones have
    # 0.1 % of their values, a group at an end is no tail of these.
    at_one_end = at_end.all(axis=0) & (np.ptp(np.sign(means), axis=0) == 0)
    gap = (at_end | (to_end > 3 * spreads)).all(axis=0) & ~at_one_end
    parted = (at_end & (narrow | gap)).any(axis=0)
    # An average near a low end of 0 is in order where ones are rare among zeros: the variance is
    # then at least the distance to the end. A fit does not know whether the low end is 0, and takes
    # columns that vary less, counts among them, to be in doubt.
    varies_less = (spreads**2 < np.maximum(to_end, 0.0004)).any(axis=0)
    is_doubtful_low = varies_less & at_one_end if low_is_zero is None else ~low_is_zero
    beyond = (at_end & (is_doubtful_low | (means > 0))).any(axis=0) & ~parted
    return _InDoubt((narrow & ~at_end).any(axis=0), parted, beyond)


def warnings_of_fewer_groups(found: FittedMixture, plan: MixturePlan) -> tuple[Warning, ...]:
    """Warning that fewer groups were found than asked for, if so."""
    n_groups = len(found.model.weights)
    if n_groups == plan.n_components:
        return ()
    support = "the released gains support" if len(found.gains) else "the start left"
    return (NotEnoughDataWarning(
        f"Of {counted(plan.n_components, 'group')} asked for, {support} "
        f"{n_groups}. If there are more, more samples or a larger epsilon "
        "show them, or another fit: starts are random, and not each finds groups that are close."
    ),)  # fmt: skip
