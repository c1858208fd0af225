"""Completion where all entries of a unit are private: what is shared, and each unit's own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from sktensor_dp.completion.inputs import wanted_coordinates
from sktensor_dp.completion.plan import SlicePlan
from sktensor_dp.completion.slice_components import fit_components, shared_weights
from sktensor_dp.privacy.curators.entries import SliceCurator
from sktensor_dp.statistics.reading import read
from sktensor_dp.tensor.shared_components import SharedComponents
from sktensor_dp.tensor.shared_effects import SharedEffects, shared_effects
from sktensor_dp.tensor.unit_parameters import (
    LEVEL_VARIANCE,
    N_PLAIN,
    EntryEffects,
    effects_at_entries,
    fold_in_units,
    predict_units,
)

__all__ = ["SharedModel", "UnitParameters", "fit_slices", "fold_in"]

Floats = NDArray[np.float64]

# Residuals are clipped at this share of the deviation of values: little is lost of a sign,
# and noise is in proportion.
CLIP = 0.5
# Least deviation of values about their unit's level, in widths of the bounds.
LEAST_DEVIATION = 1 / 16
# Level and deviation are uniform a priori: squared half width over their variance.
LEVEL_PRIOR = 3


@dataclass(frozen=True, eq=False)
class SharedModel:
    """What was released: a level, and effects and factors of the rows of shared modes.

    Attributes
    ----------
    level : float
        Mean value of a unit.
    noise_variance : float
        Of a value about the model of its unit.
    unit_mode : int
        Mode of the units.
    effects : list of SharedEffects
        One for each other mode.
    components : SharedComponents or None
        Factors of the other modes, if any were found.
    """

    level: float
    noise_variance: float
    unit_mode: int
    effects: list[SharedEffects]
    components: SharedComponents | None = None

    @property
    def n_parameters(self) -> int:
        """Number of a unit's own parameters."""
        return N_PLAIN + (0 if self.components is None else self.components.n_components)

    def at_entries(self, coordinates: NDArray[np.intp]) -> EntryEffects:
        """Shared effects of the rows of entries."""
        shared = np.delete(coordinates, self.unit_mode, axis=1)
        extended = [_with_unknown_row(effects) for effects in self.effects]
        unknown = [len(effects.effects) for effects in self.effects]
        known = np.where(shared < 0, unknown, np.minimum(shared, unknown))
        if self.components is None:
            return effects_at_entries(extended, known)
        factors = [np.vstack([f, np.zeros(f.shape[1])]) for f in self.components.factors]
        components = replace(self.components, factors=tuple(factors))
        return effects_at_entries(extended, known, components.rows(known))

    def predict(self, coordinates: NDArray[np.intp]) -> Floats:
        """Values of a unit of which nothing is known."""
        return self.level + self.at_entries(coordinates).effects


def _with_unknown_row(of: SharedEffects) -> SharedEffects:
    """Appended for rows beyond the shape: of them the prior is all that is known."""
    return SharedEffects(
        np.append(of.effects, 0.0),
        np.append(of.variances, of.scale),
        np.append(of.popularity, 0.0),
        of.scale,
    )


@dataclass(frozen=True, eq=False)
class UnitParameters:
    """Parameters of units, computed by their holder from their own entries.

    They are as private as the entries: nothing of them was released.

    Attributes
    ----------
    units : ndarray of shape (n_units,)
        Indices of the units, in order.
    parameters : ndarray of shape (n_units, 3 + q)
        Level, slope on shared effects, slope on popularity, and weights of components.
    """

    units: NDArray[np.intp]
    parameters: Floats
    _shared: SharedModel
    _bounds: tuple[float, float]

    def predict(self, X: ArrayLike) -> Floats:
        """Values at coordinates; units without entries get what is shared.

        Parameters
        ----------
        X : array-like of int of shape (n, n_modes)
            Coordinates; those below 0 are of rows that nothing is known of.

        Returns
        -------
        ndarray of shape (n,)
            Within the bounds.
        """
        given = read(lambda: np.asarray(X), "X")
        coordinates = wanted_coordinates(given)
        if coordinates.shape[1] != len(self._shared.effects) + 1:
            raise ValueError(
                f"X must have {len(self._shared.effects) + 1} columns, got {given.shape[1]}."
            )
        wanted = coordinates[:, self._shared.unit_mode]
        # A row of zeros is kept for units without entries.
        places = np.searchsorted(self.units, wanted)
        known = np.append(self.units, -1)[places] == wanted
        own = np.append(self.parameters, np.zeros((1, self._shared.n_parameters)), axis=0)
        values = predict_units(
            own,
            np.where(known, places, len(self.units)),
            self._shared.at_entries(coordinates),
            level=self._shared.level,
        )
        return np.clip(values, *self._bounds)


def fit_slices(
    curator: SliceCurator,
    unit_mode: int,
    plan: SlicePlan,
    ranks: Sequence[int],
    *,
    full_core: bool,
    random_state: int | np.random.RandomState | None,
    regularization: float = 1.0,
) -> SharedModel:
    """Release a level, effects of each shared mode given those before, and components.

    Parameters
    ----------
    curator : SliceCurator
        Holder of the entries.
    unit_mode : int
        Mode of the units.
    plan : SlicePlan
        How often factors are released.
    ranks : sequence of n_modes int
        Columns of each factor.
    full_core : bool
        Whether all combinations of columns are components.
    random_state : int, RandomState or None
        Seeds the start of the factors.
    regularization : float, default=1.0
        What the variance of their rows is divided by.

    Returns
    -------
    SharedModel
    """
    levels = curator.unit_levels()
    half = curator.half
    # Both are shrunk by their known noise, to the middle of what they may be.
    share = half**2 / (half**2 + LEVEL_PRIOR * levels.sigma**2)
    mean = share * float(np.clip(levels.mean, -half, half))
    deviation = half / 2 + share * (levels.deviation - half / 2)
    deviation = float(np.clip(deviation, 2 * half * LEAST_DEVIATION, half))
    fitted, weights = _fit_effects(curator, unit_mode, mean, deviation)
    level = mean + curator.middle
    if plan.n_sweeps == 0:
        return SharedModel(level, deviation**2, unit_mode, fitted)
    components, noise_variance = fit_components(
        curator, mean, deviation, fitted, weights,
        [rank for mode, rank in enumerate(ranks) if mode != unit_mode],
        full_core=full_core, n_sweeps=plan.n_sweeps, random_state=random_state,
        regularization=regularization,
    )  # fmt: skip
    return SharedModel(level, noise_variance, unit_mode, fitted, components)


def _fit_effects(
    curator: SliceCurator, unit_mode: int, mean: float, deviation: float
) -> tuple[list[SharedEffects], list[Floats]]:
    """Effects of the rows of each shared mode, and the weights of their entries."""
    scale = CLIP * deviation
    # Mean response, clipped and in units of the clip, to an effect of size one.
    gain = float(2 * ndtr(CLIP) - 1) / scale
    effects: list[Floats | None] = [None] * len(curator.shape)
    fitted, weights = [], []
    for mode in range(len(curator.shape)):
        if mode == unit_mode:
            continue
        noisy = curator.shared_row_sums(mode, mean, scale, 1 / LEVEL_VARIANCE, effects)
        found = shared_effects(
            noisy.sums,
            noisy.counts,
            noise_std=noisy.sigma,
            n_units=curator.n_units,
            gain=gain,
            effect_variance=LEVEL_VARIANCE * deviation**2,
        )
        effects[mode] = found.effects
        fitted.append(found)
        weights.append(shared_weights(found, max(float(noisy.counts.mean()), 1e-9)))
    return fitted, weights


def fold_in(
    shared: SharedModel, coordinates: NDArray[np.intp], values: Floats, bounds: Sequence[float]
) -> UnitParameters:
    """Fit the parameters of units to their own entries and what was released.

    Parameters
    ----------
    shared : SharedModel
        What was released.
    coordinates : ndarray of shape (n, n_modes)
        Entries of the units.
    values : ndarray of shape (n,)
        Their values.
    bounds : (low, high)
        That values are clamped to.

    Returns
    -------
    UnitParameters
    """
    units, places = np.unique(coordinates[:, shared.unit_mode], return_inverse=True)
    low, high = bounds
    parameters = fold_in_units(
        places,
        np.clip(values, low, high),
        shared.at_entries(coordinates),
        n_units=len(units),
        level=shared.level,
        noise_variance=shared.noise_variance,
    )
    return UnitParameters(units, parameters, shared, (float(low), float(high)))
