"""Whitening by the leading eigenpairs of a second moment, exact or noisy."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.eigenpairs import Operator, top_eigenpairs

# An eigenvalue below this fraction of the largest is a rounding error.
_NULL_EIGENVALUE = 1e-12


@dataclass(frozen=True, eq=False)
class Whitener:
    """Whitening by the leading eigenpairs (U, D) of a second moment M2.

    With ``W = U D^(-1/2)``, W' M2 W = I. If M2 = sum_i a_i mu_i mu_i' has rank k, then
    sqrt(a_i) W' mu_i are orthonormal, and `unwhiten` maps them back to sqrt(a_i) mu_i.

    Parameters
    ----------
    basis : ndarray of shape (d, k)
        U, orthonormal columns.
    scale : ndarray of shape (k,)
        D^(1/2), positive.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor import whitener
    >>> white = whitener(np.diag([4.0, 0.25, 0.0]), 2)
    >>> white.unwhiten(np.eye(2))
    array([[2. , 0. , 0. ],
           [0. , 0.5, 0. ]])
    """

    basis: Floats
    scale: Floats

    @property
    def n_components(self) -> int:
        """Dimension k of the whitened space."""
        return int(self.basis.shape[1])

    @property
    def transform(self) -> Floats:
        """Map D^(-1/2), of shape (k, k), from coordinates in `basis` to whitened ones."""
        return np.diag(1.0 / self.scale)

    @property
    def matrix(self) -> Floats:
        """Whitening matrix W = U D^(-1/2), of shape (d, k)."""
        return self.basis / self.scale

    @property
    def unwhitening(self) -> Floats:
        """M2 W = U D^(1/2), of shape (d, k)."""
        return self.basis * self.scale

    def unwhiten(self, vectors: ArrayLike) -> Floats:
        """Map whitened vectors, the rows of (n, k), back to (n, d): M2 W v."""
        return np.asarray(vectors, dtype=np.float64) @ self.unwhitening.T


@dataclass(frozen=True, eq=False)
class FramedWhitener:
    """Whitener W = Q R of a third moment T that is known in a frame Q alone, as T(Q, Q, Q)."""

    basis: Floats  # (d, n): Q
    transform: Floats  # (n, k): R, so that T(W, W, W) is T(Q, Q, Q) times R along each mode
    unwhitening: Floats  # (d, k): M2 W

    @property
    def matrix(self) -> Floats:
        """Whitening matrix W of shape (d, k)."""
        return self.basis @ self.transform

    def unwhiten(self, vectors: Floats) -> Floats:
        """Map whitened vectors, the rows of (n, k), back to (n, d)."""
        return vectors @ self.unwhitening.T


def whitener(M2: ArrayLike, n_components: int) -> Whitener:
    """Whitener of a symmetric second moment.

    Parameters
    ----------
    M2 : array-like of shape (d, d)
        Second moment.
    n_components : int
        Most components to keep; eigenvalues that are not positive, or below 1e-12 times the
        largest, are dropped.

    Returns
    -------
    Whitener
        With at most `n_components` components; none if no eigenvalue is positive.

    Raises
    ------
    ValueError
        If `top_eigenpairs` refuses `M2`.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor import whitener
    >>> whitener(np.diag([2.0, -1.0, 1.0]), 3).n_components
    2
    """
    values, vectors = top_eigenpairs(M2, n_components)
    kept = values > max(0.0, _NULL_EIGENVALUE * values[0])
    return Whitener(basis=vectors[:, kept], scale=np.sqrt(values[kept]))


@dataclass(frozen=True, eq=False)
class NoisyWhitener(Whitener):
    """Whitener of a noisy second moment."""

    eigenvalues: Floats  # (k,): decreasing
    n_resolved: int  # number of eigenvalues that stand out of the noise, more or fewer than k

    def leading(self, n_components: int) -> "NoisyWhitener":
        """Whitener by the first eigenpairs alone."""
        kept = slice(n_components)
        return NoisyWhitener(
            self.basis[:, kept], self.scale[kept], self.eigenvalues[kept], self.n_resolved
        )

    def times(self, V: Floats) -> Floats:
        """Second moment, by the eigenpairs kept, times V (d, m)."""
        return self.basis @ (self.eigenvalues[:, None] * (self.basis.T @ V))

    def in_frame(self, frame: Floats) -> FramedWhitener:
        """Whitener of third moments that are known in a `frame` (d, n) alone."""
        # Eigenvalues of the second moment in the frame are raised to this part of the largest.
        least_in_frame = 1e-4
        image = self.times(frame)
        moment = frame.T @ image
        values, vectors = np.linalg.eigh((moment + moment.T) / 2)
        values, vectors = values[-self.n_components :], vectors[:, -self.n_components :]
        values = np.maximum(values, least_in_frame * max(float(values[-1]), 1e-300))
        transform = vectors / np.sqrt(values)
        return FramedWhitener(frame, transform, image @ transform)


def noisy_whitener(
    M2: ArrayLike | Operator,
    n_components: int,
    *,
    edge: float,
    most_by_chance: float = 0.0,
    hidden_above: float = math.inf,
    largest: float | None = None,
    **eigen_options: Any,
) -> NoisyWhitener:
    """Whitener of a noisy second moment by eigenpairs that noise does not explain.

    Eigenvalues are resolved above `edge`, about the largest of noise, and `most_by_chance`. If two
    or more are, all above `edge` are kept, or above `hidden_above` if that is lower; else the first
    alone. `largest` bounds those without noise; by default the first one does.
    """
    values, vectors = top_eigenpairs(M2, n_components, **eigen_options)
    n_resolved = int((values > max(edge, most_by_chance)).sum())
    n_kept = 1
    if n_resolved > 1:
        n_kept = int((values > min(edge, hidden_above)).sum())
    if largest is None:
        largest = max(float(values[0]), _NULL_EIGENVALUE)
    # Smaller eigenvalues, which noise may make negative, are raised to this part of the edge, and
    # to rounding errors.
    least_part = 0.1
    least = max(least_part * edge, _NULL_EIGENVALUE * largest)
    eigenvalues = np.maximum(values[:n_kept], least)
    return NoisyWhitener(vectors[:, :n_kept], np.sqrt(eigenvalues), eigenvalues, n_resolved)


def n_eigenvalues_above(matrix: Floats, bound: float) -> int:
    """Number of eigenvalues of a symmetric matrix above a bound, by Sylvester's law of inertia."""
    shifted = np.array(matrix, dtype=np.float64, order="F")
    shifted[np.diag_indices_from(shifted)] -= bound
    # L D L' of Bunch & Kaufman (1977): blocks of two rows of D have an eigenvalue of either sign.
    factors, pivots, _ = scipy.linalg.lapack.dsytrf(
        shifted, lower=1, lwork=64 * len(shifted), overwrite_a=1
    )
    in_pairs = pivots < 0
    return int((np.diag(factors)[~in_pairs] > 0).sum() + in_pairs.sum() // 2)
