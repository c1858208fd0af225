"""Parameters of each unit (protected person), from its entries and shared effects.

A unit has a level a, a slope t on shared effects, a slope p on popularity and q weights g of
components: differences from the shared model, whose predictions they add to. A *cell* is a
combination of rows of the shared modes.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.tensor import defaults
from sktensor_dp.tensor.arrays import Floats, of_same_shape
from sktensor_dp.tensor.normal_equations import (
    factorise,
    roots_of_inverses,
    solve_factorised,
    triangle,
)
from sktensor_dp.tensor.shared_parameters import SharedEffects

# Least prior variance of a level, relative to the noise variance.
LEAST_VARIANCE = 1e-9
# Prior variance, relative to the noise, of a level that its unit's values alone decide.
FREE_LEVEL = 1e4
# Number of parameters of a unit without components ("plain" ones): level and both slopes.
N_PLAIN = 3


@dataclass(frozen=True, eq=False)
class EntryEffects:
    """Sums over the shared modes of `SharedEffects` at each entry, and its row of components."""

    effects: Floats  # (n,)
    variances: Floats  # (n,)
    popularity: Floats  # (n,)
    components: Floats | None = None  # (n, q): derivatives of values in weights of components

    def design(self) -> Floats:
        """Derivatives of values with respect to all parameters of a unit, of shape (3 + q, n)."""
        plain = np.stack([np.ones(len(self.effects)), self.effects, self.popularity])
        return plain if self.components is None else np.concatenate([plain, self.components.T])


def effects_at_entries(
    fitted: Sequence[SharedEffects], coordinates: NDArray[np.intp], components: Floats | None = None
) -> EntryEffects:
    """Sums over the shared modes at `coordinates` (n, n_shared); `components` are passed on."""
    columns = np.asarray(coordinates).T
    pairs = list(zip(fitted, columns, strict=True))
    zero = np.zeros(columns.shape[1])
    return EntryEffects(
        effects=sum((mode.means[rows] for mode, rows in pairs), zero),
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
    level_variance: float,
) -> Floats:
    """Parameters (n_units, 3 + q) of each unit from its own entries; zeros where it has none.

    `units` are the units of entries, from 0; `values` are theirs. For each unit by itself it is a
    ridge regression ``x = level + b + a + t b + p f + g'z`` on an entry's effect b, popularity f
    and components z, with errors of `noise_variance` plus the variance of b.
    """
    design = shared.design()
    prior = prior_variances(len(design), noise_variance, level_variance)
    targets = np.asarray(values, dtype=np.float64) - level - shared.effects
    # Scaled by prior deviations, each matrix is I plus a positive semidefinite one; `_solution`
    # adds the I.
    deviations = np.sqrt(prior)[:, None]
    design = deviations * design
    weighted = precisions(shared, noise_variance) * design

    def sums(terms: Iterable[Floats]) -> Floats:
        """Sums (n_terms, n_units) of terms over each unit's entries."""
        totals = [np.bincount(units, term, minlength=n_units) for term in terms]
        return np.array(totals, dtype=np.float64)

    pairs = zip(*np.triu_indices(len(design)), strict=True)
    matrices = triangle(sums(weighted[i] * design[j] for i, j in pairs), len(design))
    with np.errstate(all="ignore"):
        means, _ = _solution(matrices, sums(weighted * targets))
        return (deviations * means).T


def _solution(rows: list[Floats], b: Floats) -> tuple[Floats, Floats]:
    """Solutions of ``(I + M) x = b`` for many M, rows of a `triangle`, and inverse pivots.

    `rows` and `b` are overwritten.
    """
    # This reads raw data: nothing may raise, whatever M and b hold. As M is positive semidefinite,
    # pivots are 1 or more, and no number of a solution exceeds the sum of the moduli of b: correct
    # rounding to that.
    for row in rows:
        row[0] += 1.0
    bound = sum_of_rows(np.abs(b))
    inverse_pivots = factorise(rows, 1.0)
    return np.clip(solve_factorised(rows, inverse_pivots, b), -bound, bound), inverse_pivots


def predict_units(
    parameters: Floats, units: NDArray[np.intp], shared: EntryEffects, *, level: float
) -> Floats:
    """Values (n,) of entries by the `parameters` of their `units`, and shared effects."""
    of_units = np.einsum("nq,qn->n", parameters[units], shared.design())
    return np.asarray(level + shared.effects + of_units, dtype=np.float64)


def precisions(shared: EntryEffects, noise_variance: float) -> Floats:
    """Precision of each entry: 1 / (noise variance + variance of its shared effects)."""
    if not 0 < noise_variance < np.inf:
        raise ValueError(f"noise_variance must be finite and positive; got {noise_variance}.")
    return np.asarray(1.0 / (noise_variance + shared.variances), dtype=np.float64)


def prior_variances(size: int, noise_variance: float, level_variance: float) -> Floats:
    """Prior variances (size,) of all parameters of a unit: level, slopes, components."""
    level = max(level_variance, LEAST_VARIANCE * noise_variance)
    plain = [level, defaults.SLOPE_VARIANCE, defaults.POPULARITY_VARIANCE * noise_variance]
    return np.array([*plain, *np.ones(size - N_PLAIN)])


class CellEntries:
    """Values of n units in the cells in which they have entries, less the cells' `offsets`."""

    def __init__(self, values: scipy.sparse.csr_matrix, offsets: Floats) -> None:
        self.counts = np.diff(values.indptr)
        self._values = of_same_shape(values, values.data - offsets.take(values.indices))

    def pattern_sums(self, table: Floats) -> Floats:
        """Sums (n_columns, n) of the rows of a `summable` table over each unit's entries."""
        pattern = of_same_shape(self._values, np.ones(self._values.nnz))
        return np.ascontiguousarray((pattern @ table).T)

    def moments(self, table: Floats) -> Floats:
        """Sums (n_columns, n) of values times their cell's row of `table` over each unit's entries.

        Entries are added in their order.
        """
        return np.ascontiguousarray((self._values @ table).T)

    def residuals(self, means: Floats, terms: Sequence[Floats], scale: float) -> Floats:
        """Values less predictions, over `scale`, clipped to [-1, 1]; one for each entry.

        `means` are posterior means (1 + n_terms, n): of the level, then of each of the `terms`.
        """
        residuals, cells = self._values.data.copy(), self._values.indices
        predicted = np.repeat(means[1], self.counts) * terms[0].take(cells)
        predicted += np.repeat(means[0], self.counts)
        # Add one number at a time, so that a unit's digits do not depend on its block.
        for mean, term in zip(means[2:], terms[1:], strict=True):
            predicted += np.repeat(mean, self.counts) * term.take(cells)
        residuals -= predicted
        residuals /= scale
        return np.clip(residuals, -1.0, 1.0, out=residuals)

    def lengths(self, residuals: Floats) -> Floats:
        """Norm (n,) of each unit's residuals; squares are added in the order of its entries."""
        squares = residuals**2
        layout = (squares, np.zeros(len(squares), dtype=np.int32), self._values.indptr)
        return np.sqrt(scipy.sparse.csr_matrix(layout, (len(self.counts), 1)) @ np.ones(1))

    def products(self, residuals: Floats, weights: Floats, units: slice) -> Floats:
        """Sums (n_cells, r) over some `units` of residuals times the unit's `weights` (r, n)."""
        products = of_same_shape(self._values, residuals)[units]
        return np.asarray(products.T @ np.ascontiguousarray(weights[:, units].T))


class CellUnits:
    """Posterior of the parameters of units from cells; arrays have a column for each unit."""

    # A column depends on its own unit's entries only, to the last bit: sums over cells are exact,
    # or in the order of the unit's entries; all other operations are element-wise.

    def __init__(self, cells: EntryEffects, *, level: float, noise_variance: float) -> None:
        design = cells.design().T
        self.size = design.shape[1]
        self.offsets = level + cells.effects
        # Derivatives of a unit's values in its parameters, but for the level, where they are 1.
        self.terms = tuple(np.ascontiguousarray(column) for column in design[:, 1:].T)
        self.plain_terms = self.terms[: N_PLAIN - 1]
        # Levels are next to free: what shrinkage took from them would look like a component.
        free = FREE_LEVEL * noise_variance
        self._deviations = np.sqrt(prior_variances(self.size, noise_variance, free))
        # After scaling by the prior deviations, each matrix is the identity plus a positive
        # semidefinite one.
        design = design * self._deviations
        weighted = precisions(cells, noise_variance)[:, None] * design
        # For each cell what an entry there adds to its unit's normal equations: to the right-hand
        # side by its value, and to the packed matrix.
        self._weighted = np.ascontiguousarray(weighted)
        first, second = np.triu_indices(self.size)
        self._table = summable(weighted[:, first] * design[:, second])
        self.packed_size = len(first)

    def posteriors(self, entries: CellEntries) -> tuple[Floats, list[Floats]]:
        """Posterior means (3 + q, n), and triangular roots Y of covariances Y Y' of components."""
        # For any finite numbers in the entries the result is finite.
        with np.errstate(all="ignore"):
            packed = entries.pattern_sums(self._table)
            rows = triangle(packed, self.size)
            # Plain parameters come first and are eliminated: rows beyond are of components alone.
            means, inverse_pivots = _solution(rows, entries.moments(self._weighted))
            roots = rows[N_PLAIN:]
            roots_of_inverses(roots, inverse_pivots[N_PLAIN:])
            means *= self._deviations[:, None]
            # `roots` are views of the end of `packed`; by the prior variance 1 none exceeds 1.
            begin = len(packed) - sum(map(len, roots))
            np.clip(packed[begin:], -1.0, 1.0, out=packed[begin:])
        is_finite = np.isfinite(means).all(axis=0) & np.isfinite(packed[begin:]).all(axis=0)
        if not is_finite.all():
            means[:, ~is_finite], packed[:, ~is_finite] = 0.0, 0.0
        return means, roots


def summable(table: Floats) -> Floats:
    """Table with columns rounded so that sums of any of its rows, each once, are exact."""
    # With a power of 2, A, above the sum of a column's moduli, multiples of A times the unit
    # roundoff add up exactly.
    largest = np.abs(table).max(axis=0, initial=0.0)
    exponents = np.frexp(largest)[1] + math.frexp(len(table))[1]
    anchors = np.ldexp(1.0, np.minimum(exponents, 1022))
    return np.asarray((table + anchors) - anchors, dtype=np.float64)


def sum_of_rows(rows: Floats) -> Floats:
    """Sum of rows, added one by one: no digit depends on the number of columns."""
    total = rows[0].copy()
    for row in rows[1:]:
        total += row
    return total
