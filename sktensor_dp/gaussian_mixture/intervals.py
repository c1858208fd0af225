"""Intervals of a fitted mixture's means, with sentences on doubts."""

from typing import Any

import numpy as np
from scipy.special import ndtri

from sktensor_dp.gaussian_mixture.fitted import gaussians_of, names_where
from sktensor_dp.gaussian_mixture.plan import no_intervals_by
from sktensor_dp.mixtures.skewness import LIKELY
from sktensor_dp.mixtures.uncertainty import std_of_means
from sktensor_dp.tensor.arrays import Floats, as_generator


def std_by_errors(model: Any) -> Floats | None:
    """Root mean squared errors of means, as `std_of_means` has them; None if unknown."""
    if not hasattr(model, "_mean_errors"):
        return None
    n_units = max(round(model.privacy_report_.n_units), 2)
    return std_of_means(gaussians_of(model), model._mean_errors, n_units, as_generator(0))


def intervals_of(model: Any, level: float) -> tuple[Floats, Floats, str]:
    """Normal intervals around means, NaN where there are none, and sentences on doubts."""
    if not 0 <= level < 1:
        raise ValueError(f"level must lie in [0, 1), got {level!r}.")
    std, doubts = std_by_errors(model), []
    if std is None:
        reason = no_intervals_by(model, model.privacy_report_.n_units, model.n_features_in_)
        nowhere = np.full(model.means_.shape, np.nan)
        return nowhere, nowhere, f"There are no intervals: {reason}."
    without = np.isnan(std[0])
    if len(std) > 1 and (skewed := names_where(model, model.skewness_ > LIKELY)):
        doubts.append(
            f"There are no intervals of any column: groups are skewed in {' and '.join(skewed)}, "
            "and rows of a tail may count as another group's, which moves the averages of all "
            "columns. Take logs of such a column, or leave it out."
        )
    elif unknown := names_where(model, without):
        doubts.append(
            f"There are no intervals of {' and '.join(unknown)}: a group has nearly one value "
            "there, as by many zeros or a long tail; how groups share the others is not known, and "
            "intervals of all other columns may hold too few. Take logs, or leave it out."
        )
    if rare := names_where(model, (model._mean_errors.observed < 0.5) & ~without):
        seen = names_where(model, (model._mean_errors.most_observed < 0.5) & ~without)
        most = "Most" if seen else "Noise may hide that most"
        doubts.append(
            f"{most} rows lack {' and '.join(seen or rare)}: if they do for values that are "
            "seen, as by dropout, with little epsilon 7 in 10 of the 90% intervals there hold."
        )
    reach = float(ndtri((1 + level) / 2)) * std
    return model.means_ - reach, model.means_ + reach, " ".join(doubts)
