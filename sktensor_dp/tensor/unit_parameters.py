"""Parameters of units, each from its own entries and what all units share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.tensor.oracle import Floats
from sktensor_dp.tensor.packed import unpack_rows
from sktensor_dp.tensor.same_shape import of_same_shape
from sktensor_dp.tensor.shared_effects import SharedEffects
from sktensor_dp.tensor.small_systems import shifted_inverses

# Prior variances of a unit's level (in units of the noise variance), of its slope on the
# shared effects (a pure number) and of its slope on popularity (in units of the noise
# variance): chosen on held-out ratings, for data in which units differ by a little less
# than half the noise's standard deviation. Those of components are 1: shared factors carry
# their scale.
LEVEL_VARIANCE, SLOPE_VARIANCE, POPULARITY_VARIANCE = 0.2, 0.1, 0.05

# Least prior variance of a level, in units of the noise variance, that may be asked for.
LEAST_VARIANCE = 1e-9
# Parameters of a unit beside those of components: level, slope, slope on popularity.
N_PLAIN = 3


@dataclass(frozen=True, eq=False)
class EntryEffects:
    """What units share at entries."""

    # (n,): sums over the shared modes of those of the entries' rows.
    effects: Floats
    variances: Floats
    popularity: Floats
    # (n, q): derivatives of the entries' values in the unit's components; none by default.
    components: Floats | None = None

    def design(self) -> Floats:
        """Derivatives in all parameters of a unit, of shape (3 + q, n)."""
        plain = np.stack([np.ones(len(self.effects)), self.effects, self.popularity])
        return plain if self.components is None else np.concatenate([plain, self.components.T])


def effects_at_entries(
    fitted: Sequence[SharedEffects],
    coordinates: NDArray[np.intp],
    components: Floats | None = None,
) -> EntryEffects:
    """Add up the effects of an entry's rows over the shared modes."""
    columns = np.asarray(coordinates).T
    pairs = list(zip(fitted, columns, strict=True))
    zero = np.zeros(columns.shape[1])
    return EntryEffects(
        effects=sum((mode.effects[rows] for mode, rows in pairs), zero),
        variances=sum((mode.variances[rows] for mode, rows in pairs), zero),
        popularity=sum((mode.popularity[rows] for mode, rows in pairs), zero),
        components=components,
    )


def fold_in_units(
    units: NDArray[np.intp],
    values: ArrayLike,
    shared: EntryEffects,
    *,
    n_units: int,
    level: float,
    noise_variance: float,
    level_variance: float | None = None,
    slope_variance: float | None = None,
) -> Floats:
    """Parameters (a, t, p, g) of each unit from its own entries alone; zeros without any."""
    # x = level + b + a_u + t_u b + p_u f + g_u'z + N(0, noise_variance + var b), with b the
    # shared effect of the entry, f its popularity and z its components: ridge regression in
    # each unit by itself.
    gram, moment = _normal_equations(units, values, shared, n_units, level, noise_variance)
    if level_variance is not None:
        gram[:, 0, 0] += 1 / max(level_variance, LEAST_VARIANCE * noise_variance)
        gram[:, 0, 0] -= 1 / (LEVEL_VARIANCE * noise_variance)
    if slope_variance is not None:
        gram[:, 1, 1] += 1 / max(slope_variance, LEAST_VARIANCE) - 1 / SLOPE_VARIANCE
    return np.asarray(np.linalg.solve(gram, moment[..., None])[..., 0], dtype=np.float64)


def unit_posteriors(
    units: NDArray[np.intp],
    values: ArrayLike,
    shared: EntryEffects,
    *,
    n_units: int,
    level: float,
    noise_variance: float,
) -> tuple[Floats, Floats]:
    """Posterior means and covariances of the parameters of `fold_in_units`."""
    gram, moment = _normal_equations(units, values, shared, n_units, level, noise_variance)
    return _posteriors(gram, moment, noise_variance)


def cell_posteriors(
    values: scipy.sparse.csr_matrix, cells: EntryEffects, *, level: float, noise_variance: float
) -> tuple[Floats, Floats]:
    """`unit_posteriors` of units by cells: entries of a cell are equal but for their values."""
    # A row of a product adds up the row's own entries one after the other: it depends on them
    # alone. What is added is known for each cell, so that no number is formed for an entry.
    precision, design = precisions(cells, noise_variance), cells.design().T
    size = design.shape[1]
    first, second = np.triu_indices(size)
    table = precision[:, None] * design[:, first] * design[:, second]
    observed = of_same_shape(values, np.ones(values.nnz))
    packed = np.concatenate(
        [observed @ np.ascontiguousarray(part) for part in np.array_split(table, -(-size // 4), 1)],
        axis=1,
    )
    gram = unpack_rows(packed, size)
    gram += np.diag(1.0 / prior_variances(size, noise_variance))
    left = of_same_shape(values, values.data - (level + cells.effects)[values.indices])
    return _posteriors(gram, left @ (precision[:, None] * design), noise_variance)


def _posteriors(gram: Floats, moment: Floats, noise_variance: float) -> tuple[Floats, Floats]:
    # Whatever finite numbers the entries hold, it returns finite ones and raises nothing: it
    # may be part of what is computed from raw data. Scaled by the prior the matrix is 1 plus
    # something positive.
    size = gram.shape[1]
    prior = np.sqrt(prior_variances(size, noise_variance))
    scaled = gram * prior[:, None] * prior
    scaled -= np.eye(size)
    with np.errstate(all="ignore"):
        covariances = shifted_inverses(scaled)
    covariances *= prior[:, None] * prior
    return (covariances @ moment[..., None])[..., 0], covariances


def predict_units(
    parameters: Floats, units: NDArray[np.intp], shared: EntryEffects, *, level: float
) -> Floats:
    """Values of entries from their units' parameters and what is shared."""
    own = np.einsum("nq,qn->n", parameters[units], shared.design())
    return np.asarray(level + shared.effects + own, dtype=np.float64)


def _normal_equations(
    units: NDArray[np.intp],
    values: ArrayLike,
    shared: EntryEffects,
    n_units: int,
    level: float,
    noise_variance: float,
) -> tuple[Floats, Floats]:
    """Matrices and right-hand sides of the ridge regressions, one per unit."""
    precision = precisions(shared, noise_variance)
    design = shared.design()
    targets = np.asarray(values, dtype=np.float64) - level - shared.effects
    size = len(design)
    gram, moment = np.zeros((n_units, size, size)), np.zeros((n_units, size))
    for i in range(size):
        weighted = precision * design[i]
        moment[:, i] = np.bincount(units, weighted * targets, minlength=n_units)
        for j in range(i + 1):
            gram[:, i, j] = np.bincount(units, weighted * design[j], minlength=n_units)
            gram[:, j, i] = gram[:, i, j]
    gram += np.diag(1.0 / prior_variances(size, noise_variance))
    return gram, moment


def precisions(shared: EntryEffects, noise_variance: float) -> Floats:
    """One over the variances of entries about the model."""
    if not 0 < noise_variance < np.inf:
        raise ValueError(f"noise_variance must be finite and positive; got {noise_variance}.")
    return np.asarray(1.0 / (noise_variance + shared.variances), dtype=np.float64)


def prior_variances(size: int, noise_variance: float) -> Floats:
    """Of all parameters of a unit, in their order."""
    plain = [LEVEL_VARIANCE * noise_variance, SLOPE_VARIANCE, POPULARITY_VARIANCE * noise_variance]
    return np.array([*plain, *np.ones(size - N_PLAIN)])
