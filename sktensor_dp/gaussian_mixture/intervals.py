"""Intervals of a fitted mixture's means and shares, with sentences on doubts."""

import math
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sktensor_dp.checks.display import counted
from sktensor_dp.gaussian_mixture.fitted import gaussians_of, names_where
from sktensor_dp.gaussian_mixture.plan import no_intervals_by
from sktensor_dp.mixtures.skewness import are_long
from sktensor_dp.mixtures.uncertainty import MeanErrors, ParameterErrors, parameter_errors
from sktensor_dp.tensor.arrays import Floats, Integers


class _Fit(NamedTuple):
    """Attributes of a fit that errors depend on."""

    weights: Floats
    means: Floats
    covariances: Floats
    covariance_type: str


_KNOWN = WeakKeyDictionary[MeanErrors, tuple[_Fit, ParameterErrors]]()


class Intervals(NamedTuple):
    """Ends of normal intervals, NaN where there are none, groups in noise, and doubts."""

    means: tuple[Floats, Floats]  # low and high, (k, d) each
    shares: tuple[Floats, Floats]  # low and high, (k,) each
    doubt: str
    hidden: NDArray[np.bool_]  # (k,): groups whose share may be 0, by its 90% interval

    @property
    def doubts(self) -> str:
        """Sentences on hidden groups and other doubts."""
        return " ".join(filter(None, [on_hidden_groups(self.hidden), self.doubt]))


def errors_of(estimator: Any) -> ParameterErrors | None:
    """Errors of weights and means, which are computed once for a fit; None if unknown."""
    parts = vars(estimator).get("_mean_errors")
    if parts is None:
        return None
    fitted = (estimator.weights_, estimator.means_, estimator.covariances_)
    of = _Fit(*fitted, estimator.covariance_type)
    known = _KNOWN.get(parts)
    if known is None or any(one is not other for one, other in zip(known[0], of, strict=True)):
        n_units = max(round(estimator.privacy_report_.n_units), 2)
        found = parameter_errors(gaussians_of(estimator), parts, n_units, of.covariance_type)
        known = _KNOWN[parts] = of, found
    return known[1]


def reach_of(level: float) -> float:
    """Half-width, in standard deviations, of a normal interval of this `level`."""
    if not 0 <= level < 1:
        raise ValueError(f"level must lie in [0, 1), got {level!r}.")
    return float(ndtri((1 + level) / 2))


def intervals_of(estimator: Any, level: float) -> Intervals:
    """Normal intervals around means and shares."""
    means, weights = estimator.means_, estimator.weights_
    k, d = means.shape
    reach, errors = reach_of(level), errors_of(estimator)
    std = np.full((k, 1 + d), np.nan) if errors is None else errors.std
    of_weights, of_means = reach * std[:, 0], reach * std[:, 1:]  # half-widths
    shares = np.maximum(weights - of_weights, 0.0), np.minimum(weights + of_weights, 1.0)
    doubt = doubts_of(estimator, errors)
    return Intervals((means - of_means, means + of_means), shares, doubt, _hidden(weights, std))


def _hidden(weights: Floats, std: Floats) -> NDArray[np.bool_]:
    """Groups (k,) whose weight may be 0, by its 90% interval, given errors (k, 1 + d)."""
    return np.asarray(weights <= reach_of(0.9) * std[:, 0])  # False where that is NaN


def on_hidden_groups(hidden: NDArray[np.bool_]) -> str:
    """Sentence on the groups of a mask (k,); "" without any."""
    if not hidden.any():
        return ""
    numbers = ", ".join(map(str, 1 + np.flatnonzero(hidden)))
    return (
        f"Noise and chance hide {counted(int(hidden.sum()), 'group')} ({numbers}): 90% intervals "
        "of shares begin at 0, so that rows may be of other groups."
    )


def on_groups(estimator: Any, found: Intervals) -> str:
    """Say, from released numbers, how many groups were found, and what they gain over one."""
    n_found, n_asked = estimator.n_components_, estimator.n_components
    of_asked, more = counted(n_asked, "group"), "; there may be no more" * (n_found < n_asked)
    if hidden := on_hidden_groups(found.hidden):
        n_seen = n_found - int(found.hidden.sum())
        return (
            f"{n_found} of {of_asked} are shown, {n_seen} of them above the noise{more}. {hidden}"
        )
    said = f"{n_found} of {of_asked} can be seen above the noise{more}."
    if n_found == 1:
        return said
    if np.isnan(found.shares).any():
        return (
            f"{n_found} of {of_asked} were found; without intervals nothing says which noise hides."
        )
    gain = math.exp(estimator.gains_[estimator.n_components_ - 1])
    return f"{said} Rows are typically {gain:.3g} times as likely in them as in one, or more."


def half_widths_of_differences(
    estimator: Any, level: float, first: Integers, second: Integers, scales: Floats
) -> tuple[Floats, str]:
    """Half-widths (n,) of intervals around differences of means, and sentences on doubts.

    `first` and `second` (2, n) are groups and columns of the means; `scales` (d,) are those of
    columns.
    """
    reach, errors = reach_of(level), errors_of(estimator)
    if errors is None:
        return np.full(first.shape[1], np.nan), doubts_of(estimator, None)
    std = errors.of_differences(first, second, scales)
    hidden = on_hidden_groups(_hidden(estimator.weights_, errors.std))
    return reach * std, " ".join(filter(None, [hidden, doubts_of(estimator, errors)]))


def half_widths_of_sums(estimator: Any, level: float, columns: Integers) -> Floats:
    """Half-widths (k,) of intervals around sums of the means of some `columns` in each group."""
    reach, errors = reach_of(level), errors_of(estimator)
    if errors is None:
        return np.full(len(estimator.weights_), np.nan)
    return reach * errors.of_sums(columns)


def doubts_of(estimator: Any, errors: ParameterErrors | None) -> str:
    """Sentences on doubts of intervals; `errors` is None if there are no intervals."""
    if errors is None:
        n_units, d = estimator.privacy_report_.n_units, estimator.n_features_in_
        return f"There are no intervals: {no_intervals_by(estimator, n_units, d)}."
    doubts, without = list[str](), np.isnan(errors.std[0, 1:])  # (d,): columns without intervals
    has_several = estimator.n_components_ > 1
    if has_several and (skewed := names_where(estimator, are_long(estimator.skewness_))):
        doubts.append(
            f"There are no intervals of any column: groups are skewed in {' and '.join(skewed)}, "
            "and rows of a tail may count as another group's, which moves the averages of all "
            "columns. Take logs of such a column, or name it as nonnormal."
        )
    elif unknown := names_where(estimator, without):
        doubts.append(
            f"There are no intervals of {' and '.join(unknown)}: a group has nearly one value "
            "there, as by many zeros or a long tail; how groups share the others is not known, and "
            "intervals of all other columns may hold too few. Take logs, or name it as nonnormal."
        )
    parts = estimator._mean_errors
    by_tails = np.square(parts.missed)
    is_wide = by_tails > 3 * (errors.std**2 - by_tails)  # over twice as wide
    if has_several and is_wide.any():
        wide = names_where(estimator, is_wide[:, 1:].any(axis=0))
        is_longest = estimator.skewness_ == estimator.skewness_.max()
        longest = names_where(estimator, is_longest)[0]
        doubts.append(
            f"Intervals of {' and '.join(wide) or 'shares'} are over twice as wide as noise and "
            f"chance make them: {wide[0] if len(wide) == 1 else longest} may have a long tail, by "
            "released numbers, and they count what that moves. Without one, noise makes it seem so "
            "in 3 of 100 fits, and in 15 where groups overlap."
        )
    few = parts.observed < 0.5
    if possible := _on_few_cells(estimator, few & ~without):
        sure = _on_few_cells(estimator, (parts.most_observed < 0.5) & ~without)
        most = "Most" if sure else "Noise may hide that most"
        doubts.append(
            f"{most} {sure or possible}: with little epsilon, {7 if has_several else 8} in 10 of "
            "the 90% intervals there may hold, above all if they do for values that are seen, as "
            "by dropout."
        )
    return " ".join(doubts)


def _on_few_cells(estimator: Any, few: NDArray[np.bool_]) -> str:
    """Words on the columns that rows of all groups, and of some, lack; `few` (k, d) says where."""
    everywhere = few.all(axis=0)
    of_groups = {f" of group {j + 1}": one & ~everywhere for j, one in enumerate(few)}
    return ", ".join(
        f"rows{whose} lack {' and '.join(names)}"
        for whose, columns in {"": everywhere, **of_groups}.items()
        if (names := names_where(estimator, columns))
    )
