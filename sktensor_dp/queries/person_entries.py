"""Queries on a tensor whose unit of privacy is all entries that one index of a mode holds."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.data.person_entries import PersonChunks
from sktensor_dp.data.sums import SUM_SLACK, AccurateSum, sums_by_row
from sktensor_dp.data.units import rows_of
from sktensor_dp.queries.laws import GAUSSIAN, LAPLACE
from sktensor_dp.queries.query import HALF, Query, check_number
from sktensor_dp.tensor.arrays import Floats, blocks, rows_at_once
from sktensor_dp.tensor.normal_equations import products_of_roots, unpack_rows
from sktensor_dp.tensor.shared_parameters import SharedEffects
from sktensor_dp.tensor.symmetric import diagonal_positions
from sktensor_dp.tensor.unit_parameters import (
    N_PLAIN,
    CellEntries,
    CellUnits,
    effects_at_entries,
    sum_of_rows,
)

# Largest number of cells (combinations of shared rows) for which components are fitted.
MOST_CELLS = 2**14
# Number of units that are added plainly before their sum is added accurately.
UNITS_AT_ONCE = 750
# Added to the diagonal of a moment, relative to its trace: far above rounding errors and far below
# the released precision.
LEAST_EIGENVALUE = 1e-12
# Range of public numbers: within it only the norm of a unit's moment can overflow, and the moment
# is then clipped to 0.
SMALLEST, LARGEST = 1e-20, 1e20
# Weight of a unit's second moment beside its sums; it adds little to their noise.
MOMENT_WEIGHT = 0.5


@dataclass(frozen=True)
class UnitLevels(Query):
    """Sums over units of mean and variance of a unit's values, and of who has any.

    With half the width h of the range they are: means; variances over h; h for a unit with values;
    and, unless `order` is 1, standard deviations, and squared means over 2 h. Released effects may
    be subtracted from values before.
    """

    name, family = "unit_levels", "persons"
    description = "mean over units of level and its square, variance, deviation, and who has values"
    laws = (GAUSSIAN, LAPLACE)

    half: float  # half of the width R of the range of values, less effects if any; public
    about: "ReleasedEffects | None" = None
    order: int = 2  # norm in which contributions are near each other: 1 bounds the L1 norm too

    def __post_init__(self) -> None:
        check_number("half the range", self.half, HALF)
        if self.about is not None:
            self.about.check(self.half)

    @property
    def l2_sensitivity(self) -> float:
        """Width R of the range, by which values and so means are apart at most.

        Deviations and squares cost nothing: they are nearer, the farther apart means are.
        """
        return 2 * self.half * SUM_SLACK

    @property
    def l1_sensitivity(self) -> float:
        """``9 R / 8`` for ``order=1``, also where one unit has no values; otherwise infinity."""
        return 9 / 4 * self.half * SUM_SLACK if self.order == 1 else math.inf

    def total(self, chunk: PersonChunks) -> Floats:
        """Sums in the order that the class names; (5,), or (3,) for order 1."""
        values = chunk.values
        if self.about is not None:
            self.about.check_rows(chunk.shape, chunk)
            values = self.about.subtracted(chunk)
        counts = _unit_sums(chunk, terms=None)
        means = _unit_sums(chunk, values) / np.maximum(counts, 1.0)
        squares = _unit_sums(chunk, np.square(values - means[chunk.unit_of_entry]))
        deviations = np.sqrt(squares / np.maximum(counts, 1))
        # Effects or rounding may carry values out of the range.
        excess = np.maximum(np.hypot(means, deviations) / self.half, 1.0)
        means, deviations = means / excess, deviations / excess
        points = [means, deviations**2 / self.half, self.half * (counts > 0)]
        if self.order == 2:
            points += [deviations, means**2 / (2 * self.half)]
        return np.stack(points).sum(axis=1)


@dataclass(frozen=True, eq=False)
class ReleasedEffects:
    """Released effects of rows; `SharedFactorSums` also fits each unit's own parameters to them."""

    effects: tuple[SharedEffects, ...] = field(repr=False)  # released, one per shared mode
    level: float  # mean level of units, minus the middle of the range; public
    noise_variance: float  # of values about the model, used by that fit alone; public

    def check(self, scale: float) -> None:
        """Raise ValueError for numbers that may overflow in a fit, relative to `scale`."""
        # Squares of scales, and their inverses, stay far from overflow.
        least_unit = 1e-60
        # Numbers relative to `scale` must be independent of the data's unit of measurement.
        if not least_unit <= scale <= 1 / least_unit:
            raise ValueError(f"scale must be from {least_unit} to {1 / least_unit}, got {scale!r}.")
        if not SMALLEST <= self.noise_variance / scale**2 <= LARGEST:
            raise ValueError(
                f"noise_variance must be from {SMALLEST} to {LARGEST} times scale**2; got "
                f"{self.noise_variance!r} and scale {scale!r}."
            )
        parts = [np.array([self.level / scale])]
        for mode in self.effects:
            parts += [mode.means / scale, mode.variances / scale**2, mode.popularity]
        if not all((np.abs(part) <= LARGEST).all() for part in parts):
            raise ValueError(f"released numbers must lie within {LARGEST} scales.")
        if not all((mode.variances >= 0).all() for mode in self.effects):
            raise ValueError("variances of released effects must be >= 0; some are negative.")

    def check_rows(self, shape: tuple[int, ...], chunk: PersonChunks) -> None:
        """Raise ValueError unless there are effects for each row of `shape`, that of the chunk."""
        shared = [n for mode, n in enumerate(shape) if mode != chunk.unit_mode]
        lengths = [
            [len(getattr(mode, part)) for mode in self.effects]
            for part in ("means", "variances", "popularity")
        ]
        if chunk.shape != shape or lengths != [shared] * 3:
            raise ValueError(
                f"shape must be that of the data, {chunk.shape}, with effects of {shared} rows, "
                f"those of the shared modes; got {shape}."
            )

    def subtracted(self, chunk: PersonChunks) -> Floats:
        """Values minus the effects of their rows."""
        rows = np.delete(chunk.coordinates, chunk.unit_mode, axis=1)
        return chunk.values - effects_at_entries(self.effects, rows).effects


@dataclass(frozen=True, eq=False)
class SharedRowSums(Query):
    """Sums over units of clipped residuals in each row of a shared mode, and of numbers of entries.

    Units with entries in several rows of the mode, and those with entries in one, are two blocks. A
    block also has one number that tells how large sums of units are: how much less than possible.
    """

    name, family = "shared_row_sums", "persons"
    description = "sums over units of their clipped residuals in each row of a shared mode"
    laws = (GAUSSIAN, LAPLACE)

    # A unit contributes ``(S, C) / |C|``: sums of clipped residuals and numbers of entries in each
    # row, both times the weight of the row, to one of two blocks; for order 1 and several rows
    # times the root of the part of entries in other rows. S is shrunk to the norm `most * |C|`
    # where it is longer. Residuals are about the mean of the unit's entries in other rows, so that
    # its level, which may be why entries are missing, moves none; if there is no other row, about
    # the mean level. Last comes how much less than possible its sums u are: ``most - |u|^2 / most``
    # or, for order 1, the L1 norm of counts less that of u.

    mode: int  # any mode but the units'
    shape: tuple[int, ...]  # of the tensor; public
    about: ReleasedEffects  # what units' residuals are about, beside parameters of their own
    scale: float  # residual that is clipped to 1; public
    order: int = 2  # norm of C that a unit is divided by: 1 bounds the L1 norm too
    most: float = 1.0  # largest norm of S in units of that of C; public, and 1 for order 1
    # (n_rows,): factors of entries by row, public; None: all are 1, as for order 1
    row_weights: Floats | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {self.order!r}.")
        if self.row_weights is not None:
            self._check_row_weights(self.row_weights)
        check_number("most", self.most, (SMALLEST if self.order == 2 else 1.0, 1.0))
        self.about.check(self.scale)

    def _check_row_weights(self, weights: Floats) -> None:
        least = SMALLEST if self.order == 2 else 1.0
        n_rows = self.shape[self.mode]
        if len(weights) != n_rows or not ((least <= weights) & (weights <= 1)).all():
            raise ValueError(f"row_weights must be {n_rows} numbers from {least:g} to 1.")

    @staticmethod
    def largest_distance(most: float) -> float:
        """Largest L2 distance of two contributions, which have no obtuse angle, before rounding."""
        return math.sqrt(2 + 2 * most**2)

    @property
    def l2_sensitivity(self) -> float:
        """The :meth:`largest_distance`, of rounded contributions."""
        return self.largest_distance(self.most) * SUM_SLACK

    @property
    def l1_sensitivity(self) -> float:
        """4 for ``order=1``, as a contribution has L1 norm 2 at most; otherwise infinity."""
        return 4 * SUM_SLACK if self.order == 1 else math.inf

    def total(self, chunk: PersonChunks) -> Floats:
        """Array (2, 2 * n_rows + 1): first of units with several rows, second of those with one.

        Each has sums of residuals in rows, of counts in rows, and of how much less than possible
        the sums of units are.
        """
        if self.mode == chunk.unit_mode:
            raise ValueError(f"mode must be another one than the units', {chunk.unit_mode}.")
        self.about.check_rows(self.shape, chunk)
        pair, unit_of_pair = chunk.pairs(self.mode)  # pair (unit, row of the mode) of each entry
        rows = chunk.coordinates[:, self.mode]
        unit, n_rows = chunk.unit_of_entry, self.shape[self.mode]

        def norms(numbers: NDArray[Any]) -> Floats:
            """Norm of each unit's `numbers` (n_pairs,), repeated for the unit's entries."""
            return np.sqrt(np.bincount(unit_of_pair, numbers**2, chunk.n_units)).take(unit)

        counts, n_entries = np.bincount(pair), _unit_sums(chunk, None).take(unit)
        n_others = n_entries - counts.take(pair)
        has_one_row = n_others == 0
        residuals = self._residuals(chunk, pair, n_others)
        of_entries, of_pairs = np.ones(len(rows)), np.ones(len(counts))  # weights of their rows
        if self.row_weights is not None:
            of_entries = self.row_weights.take(rows)
            of_pairs[pair] = of_entries
        norm = norms(counts * of_pairs)
        if self.most < 1:
            lengths = norms(np.bincount(pair, residuals) * of_pairs)
            residuals /= np.maximum(lengths / (self.most * norm), 1.0)
        weights = of_entries / norm
        if self.order == 1:  # without the root, weights of any unit would add up to 1
            weights = np.sqrt(np.where(has_one_row, 1.0, n_others / n_entries)) / n_entries
        # Sums by row: first of units with several rows, then of units with one.
        places = rows + n_rows * has_one_row
        table = np.stack([weights * residuals, weights], axis=1)
        by_row = sums_by_row(places, table, 2 * n_rows).reshape(2, n_rows, 2)
        left = self._left(np.bincount(pair, table[:, 0]), np.bincount(pair, table[:, 1]))
        is_alone = (np.bincount(unit_of_pair) == 1).take(unit_of_pair)
        by_block = sums_by_row(is_alone.astype(np.intp), left[:, None], 2)
        return np.hstack([by_row.transpose(0, 2, 1).reshape(2, 2 * n_rows), by_block])

    def _residuals(self, chunk: PersonChunks, pair: NDArray[np.intp], n_others: Floats) -> Floats:
        """Clipped residual of each entry, about the mean of the unit's `n_others` in other rows."""
        values, n_rows = self.about.subtracted(chunk), self.shape[self.mode]
        sums = _unit_sums(chunk, values).take(chunk.unit_of_entry)
        mean_of_others = (sums - np.bincount(pair, values).take(pair)) / np.maximum(n_others, 1.0)
        # With equally likely rows the mean residual, times 1 - 1 / n_rows, is the row's effect.
        residuals = (1 - 1 / n_rows) * (values - mean_of_others)
        is_alone = n_others == 0
        residuals[is_alone] = values[is_alone] - self.about.level
        return np.clip(residuals / self.scale, -1.0, 1.0)

    def _left(self, sums: NDArray[Any], counts: NDArray[Any]) -> Floats:
        """Terms (n_pairs,) of ``most - |u|^2 / most`` or, for order 1, of ``|C| - |u|``."""
        if self.order == 1:
            return counts - np.abs(sums)
        return self.most * counts**2 - sums**2 / self.most


@dataclass(frozen=True)
class RowConcurrences(Query):
    """Sums over units of the weights with which they compare each row of a mode with each other.

    A residual in `SharedRowSums` is about the mean of the unit's entries in other rows. Each other
    row has a part of these entries, and is given that part of the weight of the residual's row.
    """

    name, family = "row_concurrences", "persons"
    description = "sums over units of the weights with which they compare each two rows"
    laws = (GAUSSIAN, LAPLACE)

    # Of n entries, C by row, a unit contributes ``C_r C_s / (|C| (n - C_r))`` for rows r and s.

    mode: int  # any mode but the units'
    shape: tuple[int, ...]  # of the tensor; public

    # Largest L2 distance of two contributions, which have norms up to 1 and no negative numbers.
    largest_distance: ClassVar[float] = math.sqrt(2)

    @property
    def l2_sensitivity(self) -> float:
        """The `largest_distance`, of rounded contributions."""
        return self.largest_distance * SUM_SLACK

    @property
    def l1_sensitivity(self) -> float:
        """``2 sqrt(n_rows)``: the numbers of a row add up to its part of the norm of C."""
        return 2 * math.sqrt(self.shape[self.mode]) * SUM_SLACK

    def total(self, chunk: PersonChunks) -> Floats:
        """Array (n_rows, n_rows), 0 on the diagonal."""
        if self.mode == chunk.unit_mode:
            raise ValueError(f"mode must be another one than the units', {chunk.unit_mode}.")
        if self.shape != chunk.shape:
            raise ValueError(f"shape must be that of the data, {chunk.shape}; got {self.shape}.")
        n_rows, result = self.shape[self.mode], AccurateSum()
        result.add(np.zeros((n_rows, n_rows)))
        pair, unit_of_pair = chunk.pairs(self.mode)  # pair (unit, row of the mode) of each entry
        counts, rows = np.bincount(pair), np.zeros(len(unit_of_pair), dtype=np.intp)
        rows[pair] = chunk.coordinates[:, self.mode]
        for span in blocks(chunk.n_units, UNITS_AT_ONCE):
            own = slice(*np.searchsorted(unit_of_pair, [span.start, span.stop]))
            table = np.zeros((span.stop - span.start, n_rows))
            table[unit_of_pair[own] - span.start, rows[own]] = counts[own]
            others = table.sum(axis=1, keepdims=True) - table
            norms = np.sqrt(np.square(table).sum(axis=1, keepdims=True))
            weights = table / np.maximum(norms, 1.0) / np.maximum(others, 1.0)
            result.add(weights.T @ table)
        sums = result.value()
        np.fill_diagonal(sums, 0.0)  # a row is not compared with itself
        return sums


@dataclass(frozen=True, eq=False)
class SharedFactorSums(Query):
    """Power step for the components of units, and second moments of their weights."""

    name, family = "shared_factor_sums", "persons"
    description = "sums over units of residuals times their own weights of components"
    laws = (GAUSSIAN,)

    # A unit fits its own parameters. Its clipped residuals and its weights of components are each
    # divided by their norms, so every unit contributes as much as the bound allows.

    shape: tuple[int, ...]  # of the tensor; public
    about: ReleasedEffects  # with which units fit their parameters
    components: Floats = field(repr=False)  # released, of shape (n_cells, r)
    scale: float  # residual that is clipped to 1; public

    # Largest L2 distance of two contributions, without moments and before rounding.
    largest_distance: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        self.about.check(self.scale)
        if not np.abs(self.components).max(initial=0.0) <= LARGEST * self.scale:
            raise ValueError(f"released numbers must lie within {LARGEST} scales.")
        n_cells = len(self.components)
        n_possible = math.prod(len(mode.means) for mode in self.about.effects)
        if n_cells != n_possible or n_cells > MOST_CELLS:
            raise ValueError(
                f"components must have one row per cell of a unit, {n_possible} by the effects and "
                f"at most {MOST_CELLS}; got {n_cells}."
            )

    @property
    def l2_sensitivity(self) -> float:
        """Largest distance of sums, in a unit ball, and of moments, which have no obtuse angle."""
        return math.sqrt(self.largest_distance**2 + 2 * MOMENT_WEIGHT**2) * SUM_SLACK

    def total(self, chunk: PersonChunks) -> Floats:
        """Sums for each cell, then the weighted second moment of weights: (n_cells + r, r)."""
        # Least size of a block: in smaller ones calls cost more than arithmetic.
        least_block = 64
        about, shared = self.about, np.delete(chunk.shape, chunk.unit_mode).tolist()
        about.check_rows(self.shape, chunk)
        cells = np.stack([c.ravel() for c in np.indices(shared)], axis=1)
        at = effects_at_entries(about.effects, cells, self.components)
        units = CellUnits(at, level=about.level, noise_variance=about.noise_variance)
        by_cells, result = chunk.by_cells, AccurateSum()
        for span in blocks(chunk.n_units, max(rows_at_once(units.packed_size), least_block)):
            entries = CellEntries(rows_of(by_cells, span), units.offsets)
            for part in self._of_units(units, entries):
                result.add(part)
        return result.value()

    def _of_units(self, units: CellUnits, entries: CellEntries) -> Iterator[Floats]:
        """Yield the sums of :meth:`total` over `UNITS_AT_ONCE` units each."""
        means, roots = units.posteriors(entries)
        weights = means[N_PLAIN:]
        residuals = entries.residuals(means[:N_PLAIN], units.plain_terms, self.scale)
        norms = np.sqrt(sum_of_rows(weights**2))
        scaled_weights = weights * (_inverses(norms) * _inverses(entries.lengths(residuals)))
        moments, factors = clipped_moments(roots, weights)
        # Without entries the moment is the prior's: leave it out.
        factors[entries.counts == 0] = 0.0
        for span in blocks(len(factors), UNITS_AT_ONCE):
            moment = unpack_rows((moments[:, span] @ factors[span])[None], len(weights))[0]
            yield np.concatenate([entries.products(residuals, scaled_weights, span), moment])


def clipped_moments(roots: list[Floats], weights: Floats) -> tuple[Floats, Floats]:
    """Packed moments ``M = Y Y' + w w'`` (r, r) of n units with `weights` w (r, n); clip factors.

    The factors (n,), ``c / max(r, |M|)`` with ``c = MOMENT_WEIGHT``, leave norms of at most c.
    """
    packed, diagonal = products_of_roots(roots, weights), diagonal_positions(len(weights))
    with np.errstate(over="ignore"):
        # The ridge is far above rounding errors of the product.
        traces = np.zeros(packed.shape[1])
        for row in packed[diagonal]:
            traces += row
        packed[diagonal] += LEAST_EIGENVALUE * traces
        squares, above_diagonal = packed**2, np.zeros_like(traces)
        for row in np.delete(squares, diagonal, axis=0):
            above_diagonal += row
        square_norms = 2 * above_diagonal + sum(squares[diagonal])
        norms = np.sqrt(square_norms) / len(weights)  # of the moment over r
    return packed, MOMENT_WEIGHT / len(weights) / np.maximum(norms, 1.0)


def _inverses(lengths: Floats) -> Floats:
    """``1 / length``, or 0 where a length is 0 or not finite."""
    # Smaller lengths count as 0, so that squares stay far from underflow.
    least_length = 1e-100
    usable = (lengths > least_length) & np.isfinite(lengths)
    return np.where(usable, 1 / np.where(usable, lengths, 1.0), 0.0)


def _unit_sums(chunk: PersonChunks, terms: Floats | None) -> Floats:
    """Sum of `terms` (None: of ones) over the entries of each unit; (n_units,)."""
    sums = np.bincount(chunk.unit_of_entry, weights=terms, minlength=chunk.n_units)
    return sums.astype(np.float64)
