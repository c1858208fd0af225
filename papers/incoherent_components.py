"""Orthonormal components of a given incoherence, from Hadamard matrices."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

__all__ = ["incoherent_components"]

Floats = NDArray[np.float64]


def incoherent_components(d: int, k: int, mu0: int) -> Floats:
    """Orthonormal rows, shape (k, d), of incoherence exactly `mu0`.

    They are flat on the first d / mu0 coordinates and 0 on the others; d and mu0 are powers of two,
    and k is at most d / mu0. The extreme mu0 = d / k has k axes' worth of coordinates.
    """
    side = d // mu0
    if side * mu0 != d or k > side:
        raise ValueError(f"mu0 must divide d and leave k or more coordinates; got {d, k, mu0}.")
    V = np.zeros((k, d))
    V[:, :side] = hadamard(side)[:k] / np.sqrt(side)
    return V
