"""Components whose factors units share, while each unit has weights of its own."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.oracle import Floats
from sktensor_dp.tensor.sorted_entries import khatri_rao_rows, kronecker_rows


@dataclass(frozen=True, eq=False)
class SharedComponents:
    """Factors of all modes but the units'; a unit's values are linear in its own weights.

    A unit with weights g has ``g' z`` at an entry, where z holds products of one number
    from the entry's row of each factor: of equal columns (CP), or of all combinations of
    columns (Tucker, where g is the unit's slice of the core).
    """

    factors: tuple[Floats, ...]  # (n_m, r_m): one per shared mode, in order
    full_core: bool  # whether all combinations of columns count
    # (n_combinations, q): a unit's weights are of these sums of combinations; by default each has
    # its own.
    mixing: Floats | None = None

    def __post_init__(self) -> None:
        if self.mixing is not None and self.mixing.shape[:-1] != (self._n_combinations,):
            raise ValueError(f"mixing must have {self._n_combinations} rows.")

    @property
    def n_components(self) -> int:
        """Number of weights of a unit."""
        return self._n_combinations if self.mixing is None else self.mixing.shape[1]

    @property
    def _n_combinations(self) -> int:
        ranks = [factor.shape[1] for factor in self.factors]
        return int(np.prod(ranks)) if self.full_core else ranks[0]

    def rows(self, coordinates: NDArray[np.intp]) -> Floats:
        """Derivatives z of values in a unit's weights, of shape (n, n_components)."""
        product = kronecker_rows if self.full_core else khatri_rao_rows
        rows = product(self.factors, coordinates)
        return rows if self.mixing is None else rows @ self.mixing

    def beside(self, mode: int, coordinates: NDArray[np.intp]) -> Floats:
        """The products in z without one mode's factor, of shape (n, q')."""
        others = [m for m in range(len(self.factors)) if m != mode]
        factors, columns = [self.factors[m] for m in others], coordinates[:, others]
        if self.full_core:
            return kronecker_rows(factors, columns)
        if not others:
            return np.ones((len(coordinates), self.n_components))
        return khatri_rao_rows(factors, columns)

    def slopes(self, mode: int, weights: Floats, beside: Floats) -> Floats:
        """Derivatives of values in the row of one factor, of shape (n, r_m)."""
        if not self.full_core:
            return weights * beside
        core = self._core(mode, weights)
        return np.asarray(np.einsum("nab,nb->na", core, beside), dtype=np.float64)

    def slope_moments(self, mode: int, weights: Floats, beside: Floats) -> Floats:
        """Sums of outer products of slopes, from second moments of weights and of products."""
        if not self.full_core:
            return weights * beside
        n, q, _ = weights.shape
        half = self._core(mode, weights.reshape(n * q, q)).reshape(n, q, *self._sizes(mode))
        # Axes: the weights of one side, then the factor's columns and the others' of both.
        both = self._core(mode, half.transpose(0, 2, 3, 1).reshape(n * q, q))
        both = both.reshape(n, *self._sizes(mode), *self._sizes(mode))
        return np.asarray(np.einsum("nabcd,nbd->nac", both, beside), dtype=np.float64)

    def with_factor(self, mode: int, factor: Floats) -> "SharedComponents":
        """The same with another factor of one mode."""
        factors = list(self.factors)
        factors[mode] = factor
        return replace(self, factors=tuple(factors))

    def _sizes(self, mode: int) -> tuple[int, int]:
        """Columns of a factor, and combinations of columns of the others."""
        own = self.factors[mode].shape[1]
        return own, self.n_components // own

    def _core(self, mode: int, weights: Floats) -> Floats:
        """Weights as matrices: columns of a factor by combinations of the others'."""
        ranks = [factor.shape[1] for factor in self.factors]
        core = np.moveaxis(weights.reshape(len(weights), *ranks), 1 + mode, 1)
        return core.reshape(len(weights), *self._sizes(mode))
