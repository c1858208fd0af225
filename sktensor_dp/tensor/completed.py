"""What CP and Tucker models of observed entries share."""

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.tensor.oracle import Floats, check_at_least
from sktensor_dp.tensor.sorted_entries import as_coordinates, row_effects


class Completion:
    """Offsets, and factors with a row per index."""

    mean: float
    biases: list[Floats]
    factors: list[Floats]

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the modes."""
        return tuple(len(bias) for bias in self.biases)

    def predict(self, coordinates: ArrayLike) -> Floats:
        """Values of the model at coordinates.

        Parameters
        ----------
        coordinates : array-like of int, shape (n, n_modes)
            Entries wanted. Of a row never seen, the other modes' biases remain.

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        ValueError
            If coordinates are not integers or lie outside the shape.
        """
        places = as_coordinates(coordinates, self.shape)
        values = self.mean + row_effects(self.biases, places)
        if self.factors[0].shape[1]:
            values += self._multilinear(places)
        return values

    @abstractmethod
    def _multilinear(self, coordinates: NDArray[np.intp]) -> Floats:
        """Values of the part without offsets."""


def check_options(rank: int, max_iter: int, tol: float, noise_variance: float | None) -> None:
    """Refuse what a completion cannot be asked for."""
    check_at_least(0, rank=rank, tol=tol)
    check_at_least(1, max_iter=max_iter)
    if noise_variance is not None and not 0 <= noise_variance < np.inf:
        raise ValueError(f"noise_variance must be finite and at least 0; got {noise_variance}.")
