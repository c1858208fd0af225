"""Sparse matrices of the shape of others."""

from copy import copy
from typing import Any, TypeVar

import scipy.sparse as sp

Matrix = TypeVar("Matrix", sp.csr_matrix, sp.csr_array)


def of_same_shape(X: Matrix, values: Any, columns: Any = None, ends: Any = None) -> Matrix:
    """Other values in the rows of a matrix; other columns and ends, if these are given.

    Nothing is copied or checked, which takes longer than a product of few numbers. Columns of a
    row have to be in order where those of `X` are.
    """
    # A shallow copy: the class stays what it is, and what it knows of the order of columns true.
    matrix = copy(X)
    matrix.data = values
    if columns is not None:
        matrix.indices = columns.astype(X.indices.dtype, copy=False)
    if ends is not None:
        matrix.indptr = ends.astype(X.indptr.dtype, copy=False)
    return matrix
