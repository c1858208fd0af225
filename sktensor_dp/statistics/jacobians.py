"""Jacobians of CP and Tucker models at the observed entries, never formed as a matrix.

With ``x_e = mean + sum_m b^m[i_m] + (multilinear part)`` the Jacobian row of an entry
holds a one for the mean and for the bias of its row in each mode, the derivative z^m of
the multilinear part for the row of each factor, and for Tucker models the Kronecker
product of the rows for the core. All of this is public where coordinates are.
"""

import math
from collections.abc import Sequence

import numpy as np

from sktensor_dp.statistics.observed_entries import IndexSet
from sktensor_dp.statistics.sums import AccurateSum, blocks
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.sorted_entries import Integers, khatri_rao_rows, kronecker_rows

# Numbers in a block of entries that is worked on at once (4 MB).
BLOCK_NUMBERS = 2**19
# Entries that are added one after the other before their sum is added accurately.
ENTRIES_AT_ONCE = 2**8


class Jacobian:
    """Derivative of a model's values at the observed entries in all parameters.

    What CP and Tucker models share: offsets, and factors with a row per index.
    """

    def __init__(self, index_set: IndexSet, factors: Sequence[Floats], offsets: bool) -> None:
        sizes = tuple(len(factor) for factor in factors)
        if sizes != index_set.shape:
            raise ValueError(f"factors must have {index_set.shape} rows, got {sizes}.")
        self.index_set, self.factors, self.offsets = index_set, list(factors), offsets

    @staticmethod
    def of(
        index_set: IndexSet, factors: Sequence[Floats], core: Floats | None, offsets: bool = False
    ) -> "Jacobian":
        """That of a Tucker model, or of a CP model where there is no core."""
        if core is None:
            return CPJacobian(index_set, factors, offsets)
        return TuckerJacobian(index_set, factors, core, offsets)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the parameters in their order: mean, biases, factors, core."""
        of_offsets = [(1,), *((n,) for n in self.index_set.shape)] if self.offsets else []
        return [*of_offsets, *(factor.shape for factor in self.factors)]

    def split(self, parameters: Floats) -> list[Floats]:
        """Arrays of all parameters, in the order of ``shapes``, from one vector."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = np.split(parameters, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def rows(self, mode: int) -> Floats:
        """Derivatives of the multilinear part in the rows of a factor: z, (n_entries, r)."""
        return self._rows_at(mode, self.index_set.coordinates[:, self.index_set.others(mode)])

    def _rows_at(self, mode: int, others: Integers) -> Floats:
        """Z at coordinates in the other modes."""
        raise NotImplementedError

    def scatter(self, weights: Floats) -> Floats:
        """``sum_e weights_e J_e``, of shape (n_parameters,)."""
        modes = range(len(self.factors))
        parts = []
        if self.offsets:
            parts = [weights.sum()[None], *(self.index_set.sums(m, weights) for m in modes)]
        for m in modes:
            parts.append(self.index_set.sums(m, weights[:, None] * self.rows(m)).ravel())
        return np.concatenate(parts)

    def norms(self) -> Floats:
        """L2 norm of each J_e, of shape (n_entries,)."""
        return np.sqrt(self._added(np.square) + self._core_norms(2) ** 2)

    def absolute_norms(self) -> Floats:
        """L1 norm of each J_e, of shape (n_entries,)."""
        return self._added(np.abs) + self._core_norms(1)

    def _added(self, of: np.ufunc) -> Floats:
        ones = float(1 + len(self.factors)) if self.offsets else 0.0
        total = np.full(self.index_set.n_entries, ones)
        for m in range(len(self.factors)):
            total += of(self.rows(m)).sum(axis=1)
        return total

    def _core_norms(self, order: int) -> Floats:
        """Norms of the parts that belong to no factor."""
        return np.zeros(self.index_set.n_entries)


class CPJacobian(Jacobian):
    """Of ``sum_r prod_m a^m[i_m, r]``, in the mean, the biases and all factors.

    Parameters
    ----------
    index_set : IndexSet
        Where values were observed.
    factors : sequence of ndarray of shape (shape[m], rank)
        Weights of components, if any, multiplied into one of them.
    offsets : bool, default=True
        Whether the model has a mean and biases.
    """

    def __init__(
        self, index_set: IndexSet, factors: Sequence[Floats], offsets: bool = True
    ) -> None:
        super().__init__(index_set, factors, offsets)
        if len({factor.shape[1:] for factor in factors}) != 1:
            raise ValueError("factors must have the same number of columns.")

    def _rows_at(self, mode: int, others: Integers) -> Floats:
        """Products of the rows of the other factors."""
        return khatri_rao_rows([self.factors[k] for k in self.index_set.others(mode)], others)


class TuckerJacobian(Jacobian):
    """Of a core times a factor in every mode, in the mean, the biases, all factors and the core.

    Parameters
    ----------
    index_set : IndexSet
        Where values were observed.
    factors : sequence of ndarray of shape (shape[m], ranks[m])
        One of each mode.
    core : ndarray of shape ranks
        The core.
    offsets : bool, default=True
        Whether the model has a mean and biases.
    """

    def __init__(
        self, index_set: IndexSet, factors: Sequence[Floats], core: Floats, offsets: bool = True
    ) -> None:
        super().__init__(index_set, factors, offsets)
        ranks = tuple(factor.shape[1] for factor in factors)
        if core.shape != ranks:
            raise ValueError(f"the core must have shape {ranks}, got {core.shape}.")
        self.core = core

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the parameters in their order: mean, biases, factors, core."""
        return [*super().shapes, self.core.shape]

    def rows(self, mode: int) -> Floats:
        """The core times the rows of the other factors."""
        result = np.empty((self.index_set.n_entries, self.core.shape[mode]))
        others = self.index_set.others(mode)
        step = max(1, BLOCK_NUMBERS // self.core.size)
        for block in blocks(self.index_set.n_entries, step):
            result[block] = self._rows_at(mode, self.index_set.coordinates[block][:, others])
        return result

    def _rows_at(self, mode: int, others: Integers) -> Floats:
        """The core times the rows of the other factors."""
        unfolded = np.moveaxis(self.core, mode, 0).reshape(self.core.shape[mode], -1)
        factors = [self.factors[k] for k in self.index_set.others(mode)]
        return kronecker_rows(factors, others) @ unfolded.T

    def scatter(self, weights: Floats) -> Floats:
        """``sum_e weights_e J_e``, of shape (n_parameters,)."""
        *others, last = range(len(self.factors))
        core = AccurateSum()
        step = min(ENTRIES_AT_ONCE, max(1, BLOCK_NUMBERS // self.core.size))
        for block in blocks(self.index_set.n_entries, step):
            own = self.factors[last][self.index_set.rows(last)[block]] * weights[block, None]
            core.add(self._products(others, block).T @ own)
        return np.concatenate([super().scatter(weights), core.value().ravel()])

    def _core_norms(self, order: int) -> Floats:
        columns = [
            np.linalg.norm(factor, order, axis=1)[self.index_set.rows(m)]
            for m, factor in enumerate(self.factors)
        ]
        return np.prod(columns, axis=0)

    def _products(self, modes: list[int], block: slice) -> Floats:
        """Kronecker products of the rows of some factors, the last index running fastest."""
        columns = self.index_set.coordinates[block][:, modes]
        return kronecker_rows([self.factors[k] for k in modes], columns)
