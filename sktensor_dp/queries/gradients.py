"""Queries of completions of entries: gradients, and ridge regressions (``"output"``)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sktensor_dp.data.entries import EntryChunks, IndexSet
from sktensor_dp.data.sums import SUM_SLACK, AccurateSum
from sktensor_dp.queries.entries import WEIGHT_SIZES
from sktensor_dp.queries.laws import GAUSSIAN, LAPLACE, SPHERICAL_ROWS
from sktensor_dp.queries.query import HALF, Query, check_array, check_number
from sktensor_dp.tensor.arrays import Floats, Integers, blocks, rows_at_once, spans
from sktensor_dp.tensor.sorted_entries import derivatives, kronecker_rows

# Least ridge relative to the trace: below it the factors of a matrix are rounding errors.
LEAST_RIDGE = 1e-10
# Rows of a ridge regression whose vectors A^-1 z are all shorter than this release nothing.
SHORTEST = 1e-100
# Largest entry of z: sums of squares stay far from overflow.
LARGEST = 1e120


class Jacobian:
    """Derivatives J_e of a CP or Tucker model's value at each entry e, in all parameters."""

    def __init__(
        self,
        index_set: IndexSet,  # where values were observed
        factors: Sequence[Floats],  # (shape[m], ranks[m]); of a CP model without its weights
        core: Floats | None = None,  # of shape ranks; None for a CP model
    ) -> None:
        sizes = tuple(len(factor) for factor in factors)
        if sizes != index_set.shape:
            raise ValueError(f"factors must have {index_set.shape} rows, got {sizes}.")
        ranks = tuple(factor.shape[1] for factor in factors)
        if core is None and len(set(ranks)) != 1:
            raise ValueError("factors must have the same number of columns.")
        if core is not None and core.shape != ranks:
            raise ValueError(f"the core must have shape {ranks}, got {core.shape}.")
        self.index_set, self.factors, self.core = index_set, list(factors), core

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the parameters in order: mean, biases, factors, core."""
        of_core = [] if self.core is None else [self.core.shape]
        biases = [(n,) for n in self.index_set.shape]
        return [(1,), *biases, *(factor.shape for factor in self.factors), *of_core]

    def split(self, parameters: Floats) -> list[Floats]:
        """Split one vector of all parameters into arrays, in the order and form of ``shapes``."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = np.split(parameters, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def rows(self, mode: int) -> Floats:
        """Derivatives of the values in their rows of the factor of `mode`; (n_entries, r)."""
        places = self.index_set.coordinates
        result = np.empty((len(places), self.factors[mode].shape[1]))
        for block in spans(len(places), result.shape[1] if self.core is None else self.core.size):
            result[block] = derivatives(self.factors, self.core, mode, places[block])
        return result

    def scatter(self, weights: Floats) -> Floats:
        """``sum_e weights_e J_e``, J_e the derivatives of entry e's value; (n_parameters,)."""
        modes = range(len(self.factors))
        # In the order of `shapes`: the mean, biases, factors, and the core.
        parts = [weights.sum()[None], *(self.index_set.sums(m, weights) for m in modes)]
        for m in modes:
            parts.append(self.index_set.sums(m, weights[:, None] * self.rows(m)).ravel())
        if self.core is None:
            return np.concatenate(parts)
        at_once = min(2**8, rows_at_once(self.core.size))  # entries added plainly, then accurately
        # The derivatives in the core are the Kronecker product of the entry's rows of the factors.
        *others, last = modes
        factors, total = [self.factors[m] for m in others], AccurateSum()
        for block in blocks(self.index_set.n_entries, at_once):
            products = kronecker_rows(factors, self.index_set.coordinates[block][:, others])
            rows = self.factors[last][self.index_set.rows(last)[block]]
            total.add(products.T @ (rows * weights[block, None]))
        return np.concatenate([*parts, total.value().ravel()])

    def norms(self, order: int) -> Floats:
        """L1 or L2 norm (`order`) of each entry's J_e, of shape (n_entries,)."""
        power = np.abs if order == 1 else np.square
        # Derivatives in the mean and the biases are 1.
        total = np.full(self.index_set.n_entries, 1.0 + len(self.factors))
        for m in range(len(self.factors)):
            total += power(self.rows(m)).sum(axis=1)
        if self.core is not None:  # a derivative in the core is a product of entries of factors
            product = np.ones(self.index_set.n_entries)
            for m, factor in enumerate(self.factors):
                product *= np.linalg.norm(factor, order, axis=1)[self.index_set.rows(m)]
            total += power(product)
        return total if order == 1 else np.sqrt(total)


# A block: its span, z of shape (r, b), rows of the mode, and the first entry of each row.
_Block = tuple[slice, Floats, Integers, Integers]


@dataclass(frozen=True, eq=False)
class RidgeBlock(Query):
    """Rows of one factor by ridge regression on public z; the unit of privacy is one value."""

    name, family = "ridge_block", "entries"
    description = "rows of one factor by ridge regression"
    laws = (GAUSSIAN, SPHERICAL_ROWS)

    # A row is ``A^-1 sum_e x_e z_e``, ``A = sum z z' + ridge``, divided by the largest ``|A^-1 z|``
    # of its entries: its noise is scaled by its own worst entry.

    index_set: IndexSet  # where values were observed; public
    mode: int  # of the factor
    rows: Floats = field(repr=False)  # (n_entries, r): z of each entry; public
    # Diagonal of the ridge, >= 0, one number or r. It is raised to 1e-10 of the trace of ``sum z
    # z'``, and to 1e-200 where one of both is above 0.
    regularization: float | Floats
    half: float  # half the width of the range R of values; public

    def __post_init__(self) -> None:
        check_number("half the range", self.half, HALF)
        if len(self.rows) != self.index_set.n_entries or not (np.abs(self.rows) <= LARGEST).all():
            raise ValueError(
                f"rows must hold numbers of size {LARGEST:g} at most, a row for each of the "
                f"{self.index_set.n_entries} entries; got shape {self.rows.shape}."
            )
        check_array("the regularization", self.regularization, LARGEST**2, least=0.0)

    @property
    def l2_sensitivity(self) -> float:
        """Width of the range: one value x moves one row by x times a vector of norm 1 at most."""
        return 2 * self.half * SUM_SLACK

    @property
    def scales(self) -> Floats:
        """Divisor of each row, to undo the division after the release; 0 releases nothing."""
        largest, _ = self._scaled_inverses
        return largest

    def total(self, chunk: EntryChunks) -> Floats:
        """Rows of the factor divided by their `scales`, of shape (n_rows, r)."""
        # Vectors that multiply a value are scaled to length 1 at most: an inaccurate inverse of A
        # cannot enlarge the sensitivity.
        order = self.index_set.order(self.mode)
        _, scaled_inverses = self._scaled_inverses
        inverses = np.ascontiguousarray(scaled_inverses.transpose(1, 2, 0))
        terms = np.empty(self.rows.shape)
        for span, z, rows, starts in self._blocks():
            vectors = np.einsum("abe,be->ae", _of_entries(inverses, rows, starts, z.shape[1]), z)
            vectors /= np.maximum(_lengths(vectors), 1.0)
            terms[order[span]] = (vectors * chunk.values[order[span]]).T
        return self.index_set.sums(self.mode, terms)

    def solved(self, values: Floats) -> Floats:
        """Rows of the factor for public `values` (n_entries,), without noise; (n_rows, r)."""
        moments = self.index_set.sums(self.mode, values[:, None] * self.rows)
        return np.asarray(np.linalg.solve(self._penalised, moments[..., None])[..., 0])

    @property
    def _penalised(self) -> Floats:
        """Matrix ``A = sum z z' + ridge`` of each row, (n_rows, r, r)."""
        grams = self.index_set.grams(self.mode, self.rows)
        ridge = np.broadcast_to(np.asarray(self.regularization, float), self.rows.shape[1:])
        least = LEAST_RIDGE * np.trace(grams, axis1=1, axis2=2)[:, None]
        diagonal = np.maximum(ridge, least)
        # So large that inverses do not overflow; where ridge and z are 0 any number will do.
        diagonal = np.where(diagonal > 0, np.maximum(diagonal, SHORTEST**2), 1.0)
        return np.asarray(grams + diagonal[:, :, None] * np.eye(self.rows.shape[1]))

    @cached_property
    def _scaled_inverses(self) -> tuple[Floats, Floats]:
        """Largest ``|A^-1 z|`` of each row's entries, and A^-1 divided by it, (n_rows, r, r)."""
        inverse_roots = np.linalg.inv(np.linalg.cholesky(self._penalised))
        inverses = inverse_roots.transpose(0, 2, 1) @ inverse_roots
        entries_last = np.ascontiguousarray(inverses.transpose(1, 2, 0))
        largest = np.zeros(len(inverses))
        for _, z, rows, starts in self._blocks():
            of_entries = _of_entries(entries_last, rows, starts, z.shape[1])
            lengths = _lengths(np.einsum("abe,be->ae", of_entries, z))
            largest[rows] = np.maximum(largest[rows], np.maximum.reduceat(lengths, starts))
        largest = np.where(largest > SHORTEST, largest, 0.0)
        scales = np.where(largest > 0, largest, np.inf)
        return largest, inverses / scales[:, None, None]

    def _blocks(self) -> Iterator[_Block]:
        """Yield blocks of entries by row: span, regressors z (r, b), rows of the mode, starts."""
        order = self.index_set.order(self.mode)
        # One matrix for each entry of a block has to fit into the cache, as if of rank 4 or more.
        size = rows_at_once(max(self.rows.shape[1], 4) ** 2, caches=1 / 2)
        for span, rows, starts in self.index_set.blocks(self.mode, size):
            z = np.ascontiguousarray(self.rows[order[span]].T, dtype=np.float64)
            yield span, z, rows, starts


def _of_entries(matrices: Floats, rows: Integers, starts: Integers, n: int) -> Floats:
    """Matrix (r, r) of the row of each of n entries, from those of `rows`; (r, r, n)."""
    return np.repeat(matrices[:, :, rows], np.diff(np.append(starts, n)), axis=2)


def _lengths(vectors: Floats) -> Floats:
    """Euclidean norm of each column."""
    return np.sqrt(np.einsum("ae,ae->e", vectors, vectors))


@dataclass(frozen=True, eq=False)
class EntryGradients(Query):
    """Gradient ``sum_e x_e J_e`` of half the squared error, up to sign and public terms."""

    name, family = "entry_gradients", "entries"
    description = "gradient of the squared error in all parameters of the model"
    laws = (GAUSSIAN, LAPLACE)

    jacobian: Jacobian  # of the model at released parameters; public
    half: float  # half the width of the range R of values; public

    def __post_init__(self) -> None:
        largest = self._norms.max()
        check_number("half the range", self.half, HALF)
        # With derivatives of 0 there is nothing to add, and 0 * NaN would be NaN.
        if largest != 0:
            check_number("the largest norm of the Jacobian", largest, WEIGHT_SIZES)

    @cached_property
    def _norms(self) -> Floats:
        """L2 norm of each entry's J_e, computed once."""
        return self.jacobian.norms(2)

    @property
    def l2_sensitivity(self) -> float:
        """Width of the range times the largest L2 norm of an entry's J_e."""
        return self._largest_move(self._norms)

    @cached_property
    def l1_sensitivity(self) -> float:
        """Width of the range times the largest L1 norm of an entry's J_e."""
        return self._largest_move(self.jacobian.norms(1))

    def _largest_move(self, norms: Floats) -> float:
        """Width of the range times the largest of `norms`; the width itself if all are 0."""
        # With zero sensitivity any positive value is a bound.
        return SUM_SLACK * (float((2 * self.half * norms).max()) or 2 * self.half)

    def total(self, chunk: EntryChunks) -> Floats:
        """``sum_e x_e J_e``, of shape (n_parameters,)."""
        return self.jacobian.scatter(np.clip(chunk.values, -self.half, self.half))
