"""Many small positive definite systems at once, along contiguous memory."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.blocks import spans
from sktensor_dp.tensor.oracle import Floats


def _blocks(matrices: Floats) -> Iterator[tuple[slice, Floats]]:
    """Some of the matrices at a time, copied, of shape (r, r, n)."""
    n, r, _ = matrices.shape
    for block in spans(n, r**2, caches=1 / 4):
        yield block, np.array(matrices[block].transpose(1, 2, 0), order="C")


def shifted_inverses(matrices: Floats) -> Floats:
    """Inverses of one plus matrices that are positive semidefinite; zeros where not finite."""
    # Every pivot is 1 at least, and is raised to it: whatever matrices hold, nothing fails,
    # and each inverse is a function of its own matrix to the last bit, wherever it stands.
    # No entry of such an inverse is above 1 but by rounding, which huge entries make huge.
    inverses, diagonal = np.empty_like(matrices), np.arange(matrices.shape[1])
    for block, M in _blocks(matrices):
        M[diagonal, diagonal] += 1.0
        product = np.empty_like(M)
        # Gauss-Jordan elimination, in place.
        for k in diagonal:
            inverse = 1.0 / np.maximum(M[k, k], 1.0)
            row, column = M[k] * inverse, M[:, k].copy()
            np.multiply(column[:, None], row, out=product)
            M -= product
            M[k], M[:, k] = row, -column * inverse
            M[k, k] = inverse
        inverses[block] = M.transpose(2, 0, 1)
    np.clip(inverses, -1.0, 1.0, out=inverses)
    inverses[~np.isfinite(inverses).all(axis=(1, 2))] = 0.0
    return inverses


def are_positive(matrices: Floats) -> NDArray[np.bool_]:
    """Whether symmetric matrices have positive pivots; never where they are not finite."""
    found = np.ones(len(matrices), dtype=bool)
    for block, M in _blocks(matrices):
        positive = found[block]
        for k in range(len(M)):
            positive &= (M[k, k] > 0) & np.isfinite(M[k, k])
            below = M[k + 1 :, k] / np.where(positive, M[k, k], 1.0)
            M[k + 1 :, k + 1 :] -= below[:, None] * M[k, k + 1 :]
    return found
