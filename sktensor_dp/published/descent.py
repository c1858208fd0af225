"""Stochastic gradient descent of Wei et al., one row at a time as in Algorithm 2."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sktensor_dp.tensor.arrays import Floats, Integers, as_generator
from sktensor_dp.tensor.sorted_entries import SortedEntries, khatri_rao_rows, kronecker_rows

Protect = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Stochastic:
    """How SGD is run.

    Parameters
    ----------
    max_iter : int, default=100
        Passes over the entries.
    learning_rate : float, default=0.005
        Of every step.
    penalty, core_penalty : float, default=0.01 and 0.001
        Lambda of the factors and of the core.
    block : int, default=1
        Entries whose gradients are taken at the same parameters.
    scale : float, default=0.5
        Deviation of the parameters at the start.
    """

    max_iter: int = 100
    learning_rate: float = 0.005
    penalty: float = 0.01
    core_penalty: float = 0.001
    block: int = 1
    scale: float = 0.5


class Descent:
    """Parameters of (4) or (5), and SGD on them.

    Parameters
    ----------
    entries : SortedEntries
        Coordinates of what was observed.
    rank : int
        Columns of every factor.
    tucker : bool
        Whether there is a core.
    sgd : Stochastic or None
        How to descend.
    seed : int, Generator, RandomState or None
        Of the start and of the order of entries.
    """

    def __init__(
        self, entries: SortedEntries, rank: int, tucker: bool, sgd: Stochastic | None, seed: Any
    ) -> None:
        self.entries, self.sgd = entries, Stochastic() if sgd is None else sgd
        self._rng = as_generator(seed)
        scale, n_modes = self.sgd.scale, entries.n_modes
        self.factors = [scale * self._rng.standard_normal((n, rank)) for n in entries.shape]
        self.core = scale * self._rng.standard_normal((rank,) * n_modes) if tucker else None

    def run(self, values: Floats, protect: Protect | None = None) -> None:
        """Steps 2 to 11 of Algorithm 2; without `protect`, plain SGD."""
        step = self.sgd.block
        # Numbers may grow without bound where noise is large, as in print.
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(self.sgd.max_iter):
                order = self._rng.permutation(len(values))
                for first in range(0, len(values), step):
                    chosen = order[first : first + step]
                    self._step(self.entries.coordinates[chosen], values[chosen], protect)

    def _step(self, coordinates: Integers, values: Floats, protect: Protect | None) -> None:
        rate = self.sgd.learning_rate
        for mode, factor in enumerate(self.factors):
            rows, own = coordinates[:, mode], factor[coordinates[:, mode]]
            z = self._others(coordinates, mode)
            residuals = np.einsum("br,br->b", z, own) - values
            gradients = 2 * (residuals[:, None] * z + self.sgd.penalty * own)
            if protect is not None and mode == len(self.factors) - 1:
                gradients = protect(gradients)
            cells = (rows[:, None] * factor.shape[1] + np.arange(factor.shape[1])).ravel()
            steps = np.bincount(cells, gradients.ravel(), minlength=factor.size)
            factor -= rate * steps.reshape(factor.shape)
        if self.core is not None:
            K = kronecker_rows(self.factors, coordinates)
            residuals = K @ self.core.ravel() - values
            gradient = (residuals @ K).reshape(self.core.shape)
            gradient += len(values) * self.sgd.core_penalty * self.core
            self.core -= 2 * rate * gradient

    def _others(self, coordinates: Integers, mode: int) -> Floats:
        """Derivatives z of the model's values in the rows of one factor, of shape (n, rank)."""
        others = self.entries.others(mode)
        factors, places = [self.factors[k] for k in others], coordinates[:, others]
        if self.core is None:
            return khatri_rao_rows(factors, places)
        unfolded = np.moveaxis(self.core, mode, 0).reshape(len(self.core), -1)
        return kronecker_rows(factors, places) @ unfolded.T
