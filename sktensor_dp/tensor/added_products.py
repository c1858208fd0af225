"""Products with a transposed sparse matrix, added to what is there."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["add_transposed_product"]

Floats = NDArray[np.float64]

# What SciPy's own products call, with zeros to add to. It is not part of what SciPy promises.
_kernels: Any = getattr(sp, "_sparsetools", None)


def add_transposed_product(X: sp.csr_matrix, Y: Floats, total: Floats) -> None:
    """Add ``X.T @ Y`` to an array in the order of memory, in place.

    A product of its own is as large as the array: where X has few rows, to clear it and to add it
    takes longer than to compute it.
    """
    alike = X.dtype == Y.dtype == total.dtype and Y.flags.c_contiguous and total.flags.c_contiguous
    if not alike or not hasattr(_kernels, "csc_matvecs"):
        total += X.T @ Y
        return
    layout = X.indptr, X.indices, X.data
    _kernels.csc_matvecs(*X.shape[::-1], Y.shape[1], *layout, Y.ravel(), total.reshape(-1))
