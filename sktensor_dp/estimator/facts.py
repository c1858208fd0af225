"""Public facts of an estimator, for search, scorer and audit, and worst neighbours of samples."""

import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sktensor_dp.privacy.unit_assignment import public_ranks

# Arguments of ``fit`` for data and for a neighbour, and a statistic that is larger for the
# neighbour.
Neighbours = tuple[tuple[Any, ...], tuple[Any, ...], Callable[[Any], float]]


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """Public facts of an estimator, by its parameters alone: units, score, worst neighbours."""

    unit: str  # name of one unit, where rows have no groups
    units_in_data: bool = False  # whether a column of X says which unit a row is of
    n_units: int | None = None  # public number of units, where parameters say it
    # Public guesses that a search may pass to forecasts, and what they are where nobody says it.
    guesses: Mapping[str, float | None] = field(default_factory=dict)
    capped_by_columns: bool = False  # whether it fits at most as many components as columns
    # Whether some noise is of a pure epsilon, whatever delta a fit has; a search then plans with
    # delta 0.
    has_pure_noise: bool = False
    delta_set_aside: float = 0.0  # fraction of delta that noise does not spend, as for a threshold
    releases_nothing: bool = False  # whether it learns nothing from the data and needs no budget
    score: str | None = None  # default of a search, unless the estimator is a regressor
    target_range: Sequence[float] | None = None  # (low, high) of targets and predictions
    # Parameters that decide what is scored, such as which words count; searches over them are
    # refused where scores could not be compared.
    scored_by: frozenset[str] = frozenset()
    # Makes a function from texts to the number of words of each, if units are texts.
    word_counter: Callable[[], Callable[[Any], Any]] | None = None
    # Maps a number of units to neighbouring data that are a sensitivity apart.
    worst_case: Callable[[int | None], Neighbours] | None = None


def unit_of(row: str, *, grouped: bool) -> str:
    """Name of the unit of privacy: "person" where rows have groups, else `row` ("document")."""
    return "person" if grouped else row


def worst_samples(
    model: Any, n_units: int | None, statistic: Callable[[Any], float], shuffled_by: Any = None
) -> Neighbours:
    """Neighbouring data sets for an audit, of samples along one direction.

    `shuffled_by` is the seed by which a fit deals rows out to batches, if it does.
    """
    data_norm: float | str | None = model.data_norm
    if data_norm is None:
        raise ValueError("data_norm must be given: samples are made of that length.")
    n_samples = n_units or 1000
    samples = np.zeros((n_samples, 2))
    # Any length will do where the norm is chosen from the data.
    samples[:, 0] = 1.0 if isinstance(data_norm, str) else data_norm
    if model.neighbours == "add_remove":
        return (samples,), (samples[1:],), statistic
    neighbour = samples.copy()
    changed = n_samples - 1
    if isinstance(shuffled_by, numbers.Integral):
        # Weights of an online fit come from its last batches, and fits deal out rows by these
        # ranks: the row of the last rank changes.
        changed = int(public_ranks(n_samples, shuffled_by).argmax())
    neighbour[changed] *= -1
    return (samples,), (neighbour,), statistic
