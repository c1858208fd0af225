"""Many small positive definite systems at once, along contiguous memory."""

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.oracle import Floats

# Numbers of a block of matrices, and of a product beside it: they stay in a cache, and calls
# are few.
_BLOCK_NUMBERS = 2**17


def _at_once(r: int) -> int:
    """How many matrices of size r to work on at once: they stay in a cache, and calls are few."""
    return max(1, _BLOCK_NUMBERS // max(r, 1) ** 2)


def shifted_inverses(matrices: Floats) -> Floats:
    """Inverses of one plus matrices that are positive semidefinite; zeros where not finite."""
    # Every pivot is 1 at least, and is raised to it: whatever matrices hold, nothing fails,
    # and each inverse is a function of its own matrix to the last bit, wherever it stands.
    # No entry of such an inverse is above 1 but by rounding, which huge entries make huge.
    n, r, _ = matrices.shape
    inverses, step = np.empty_like(matrices), _at_once(r)
    diagonal = np.arange(r)
    for first in range(0, n, step):
        M = np.array(matrices[first : first + step].transpose(1, 2, 0), order="C")
        M[diagonal, diagonal] += 1.0
        sweep(M, r, 1.0)
        inverses[first : first + step] = M.transpose(2, 0, 1)
    np.clip(inverses, -1.0, 1.0, out=inverses)
    inverses[~np.isfinite(inverses).all(axis=(1, 2))] = 0.0
    return inverses


def are_positive(matrices: Floats) -> NDArray[np.bool_]:
    """Whether symmetric matrices have positive pivots; never where they are not finite."""
    n, r, _ = matrices.shape
    found, step = np.ones(n, dtype=bool), _at_once(r)
    for first in range(0, n, step):
        M = np.array(matrices[first : first + step].transpose(1, 2, 0), order="C")
        found[first : first + step] = positive_pivots(M)
    return found


def positive_pivots(M: Floats) -> NDArray[np.bool_]:
    """`are_positive` of (r, r, n) matrices, which are changed."""
    positive = np.ones(M.shape[2], dtype=bool)
    for k in range(len(M)):
        positive &= (M[k, k] > 0) & np.isfinite(M[k, k])
        below = M[k + 1 :, k] / np.where(positive, M[k, k], 1.0)
        M[k + 1 :, k + 1 :] -= below[:, None] * M[k, k + 1 :]
    return positive


def sweep(M: Floats, n_pivots: int, least: float) -> None:
    """Gauss-Jordan elimination of the first pivots of (r, r, n) matrices, in place."""
    product = np.empty_like(M)
    for k in range(n_pivots):
        inverse = 1.0 / (np.maximum(M[k, k], least) if least else M[k, k])
        row, column = M[k] * inverse, M[:, k].copy()
        np.multiply(column[:, None], row, out=product)
        M -= product
        M[k], M[:, k] = row, -column * inverse
        M[k, k] = inverse
