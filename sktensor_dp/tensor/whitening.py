"""Whitening: linear maps that make the components of a moment orthogonal."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.tensor.arrays import Floats, RandomState, as_generator
from sktensor_dp.tensor.eigenpairs import Operator, top_eigenpairs
from sktensor_dp.tensor.oracle import check_at_least, check_components

# An eigenvalue below this share of the largest is rounding, not signal.
_NULL_EIGENVALUE = 1e-12


@dataclass(frozen=True, eq=False)
class Whitener:
    """Whitening by the leading eigenpairs (U, D) of a second moment M2.

    With ``W = U D^(-1/2)``, W' M2 W = I. If M2 = sum_i a_i mu_i mu_i' has rank
    k, then sqrt(a_i) W' mu_i are orthonormal, and `unwhiten` maps them back to
    sqrt(a_i) mu_i.

    Parameters
    ----------
    basis : ndarray of shape (d, k)
        U, orthonormal columns.
    scale : ndarray of shape (k,)
        D^(1/2), positive.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.whitening import whitener
    >>> M2 = np.diag([4.0, 0.25, 0.0])
    >>> white = whitener(M2, 2)
    >>> white.matrix.T @ M2 @ white.matrix
    array([[1., 0.],
           [0., 1.]])
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
        """Map (k, k) from coordinates in `basis` to whitened ones, D^(-1/2).

        E3(W, W, W) = E(transform, transform, transform) with E = E3(U, U, U).
        """
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
class CappedWhitener:
    """Whitening by way of another frame: one that bounds its rows, or any.

    It reads whitened coordinates of the span of M2 from the columns of `basis`,
    which are not the eigenvectors of M2: ``matrix' unwhitening = I``, so every
    component mu in that span has the same whitened coordinates as under the
    `Whitener` it was made from, and `unwhiten` is that of the latter.

    Parameters
    ----------
    basis : ndarray of shape (d, k)
        Q, the frame in which a projected moment E3(Q, Q, Q) is released. If its
        columns are orthonormal, as those of `capped_whitener`, isotropic noise
        stays isotropic.
    transform : ndarray of shape (k, k)
        Map from coordinates in `basis` to whitened ones:
        E3(matrix, matrix, matrix) = E3(Q, Q, Q)(transform, transform, transform).
    unwhitening : ndarray of shape (d, k)
        U D^(1/2) of the uncapped whitener.
    """

    basis: Floats
    transform: Floats
    unwhitening: Floats

    @property
    def n_components(self) -> int:
        """Dimension k of the whitened space."""
        return int(self.basis.shape[1])

    @property
    def matrix(self) -> Floats:
        """Whitening matrix, ``basis @ transform``, of shape (d, k)."""
        return self.basis @ self.transform

    def unwhiten(self, vectors: ArrayLike) -> Floats:
        """Map whitened vectors, the rows of (n, k), back to (n, d)."""
        return np.asarray(vectors, dtype=np.float64) @ self.unwhitening.T


def whitener(
    M2: ArrayLike | Operator | tuple[ArrayLike, ArrayLike],
    n_components: int,
    *,
    floor: float = 0.0,
    **eigen_options: Any,
) -> Whitener:
    """Whitener of a symmetric second moment.

    Parameters
    ----------
    M2 : array-like of shape (d, d), callable, or pair
        Second moment, its product with a block of columns, or its
        (eigenvalues, eigenvectors), of shapes (m,) and (d, m), m >= 1.
    n_components : int
        Most components to keep.
    floor : float, default=0.0
        Eigenvalues that do not exceed it are dropped, as are those below 1e-12
        times the largest. Noise of operator norm s makes eigenvalues below s
        meaningless.
    **eigen_options
        Options of `top_eigenpairs`.

    Returns
    -------
    Whitener
        With at most `n_components` components; with none if no eigenvalue
        exceeds `floor`, which noise can bring about: check `n_components`.

    Raises
    ------
    ValueError
        If the shapes of a pair do not fit, or `top_eigenpairs` refuses `M2`.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.whitening import whitener
    >>> whitener(np.diag([2.0, -1.0, 1.0]), 3).n_components
    2
    """
    if isinstance(M2, tuple):
        values, vectors = (np.asarray(part, dtype=np.float64) for part in M2)
        if vectors.ndim != 2 or values.shape != vectors.shape[1:] or values.size == 0:
            raise ValueError(
                "M2 given as eigenpairs must have shapes (m,) and (d, m), m >= 1; "
                f"got {values.shape} and {vectors.shape}."
            )
        order = np.argsort(-values, kind="stable")[:n_components]
        values, vectors = values[order], vectors[:, order]
    else:
        values, vectors = top_eigenpairs(M2, n_components, **eigen_options)
    kept = values > max(floor, _NULL_EIGENVALUE * values[0])
    return Whitener(basis=vectors[:, kept], scale=np.sqrt(values[kept]))


def capped_whitener(white: Whitener, limit: float, *, n_rounds: int = 10) -> CappedWhitener:
    """Whitener with smaller largest rows, hence smaller worst-case moments.

    A document's whitened third moment is bounded by the cube of the largest row
    norm of the whitening matrix W. Rows longer than `limit` are shortened to
    it, the result is orthonormalised by QR, W_capped = Q R, and re-whitened
    within the span of Q.

    Parameters
    ----------
    white : Whitener
        Uncapped whitener, public.
    limit : float
        Row norm to cap at, positive. The 0.95 quantile of the row norms is a
        good choice, and the median was better still for the worst case.
    n_rounds : int, default=10
        Re-whitening stretches the capped rows again. Capping is repeated until
        no row exceeds `limit`, at most this many times; a limit that is out of
        reach is therefore approached only.

    Returns
    -------
    CappedWhitener
        In the whitened coordinates of `white`.

    Raises
    ------
    ValueError
        If `limit` is not positive or `n_rounds` is below 1.

    Notes
    -----
    Let B = U D^(1/2) be the unwhitening matrix, so that M2 = B B'. Any d x k
    matrix V with B' V = I whitens: V' M2 V = (B' V)'(B' V) = I. For a component
    in the span of M2, mu = B x, V' mu = x whatever V is. So for moments of
    topics, which lie in that span, E3(V, V, V) has the same value, and the same
    orthogonal components, for every such V: choosing V biases nothing. What an
    estimate of E3 has outside the span (sampling and noise) does depend on V.

    Scaling row x of W by s_x spans the same space as diag(s) B, in which the one
    such V is ``diag(s) B (B' diag(s) B)^(-1)``. It minimises the sum of
    |V_x|^2 / s_x; repeated capping so approaches the V of least maximal row.
    Here V = Q Z with Z = (B' Q)^(-1), the `transform`. Release E3(Q, Q, Q) with
    isotropic noise, or E3(V, V, V) in whitened coordinates; then decompose as
    usual, and read components through B, not through M2 V (equal if M2 has
    rank k, else noisier).

    With d = 1000, k = 10, topics from a Dirichlet of parameter 0.1 and a limit
    at the 0.95 quantile of row norms, the bound fell 7.3-fold in one round and
    13.7-fold in ten; at the median, 37-fold. With Zipf-like word frequencies: 5.1,
    16 and 27-fold. The same bound in the frame Q, times the cubed norm of the
    transform, fell 7 to 22-fold in ten rounds (Zipf-like: 3 to 4-fold), but rose
    twofold in one round at the median (Zipf-like): use several.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.whitening import capped_whitener, whitener
    >>> mu = np.array([[0.7, 0.2, 0.1, 0.0], [0.0, 0.1, 0.2, 0.7]])
    >>> white = whitener(mu.T @ mu / 2.0, 2)
    >>> capped = capped_whitener(white, limit=1.2)
    >>> np.allclose(mu @ capped.matrix, mu @ white.matrix)
    True
    >>> longest = [np.linalg.norm(w.matrix, axis=1).max() for w in (white, capped)]
    >>> bool(longest[1] < longest[0])
    True
    """
    if not limit > 0:
        raise ValueError(f"limit must be positive; got {limit}.")
    check_at_least(1, n_rounds=n_rounds)
    unwhitening = white.unwhitening
    row_scale = np.ones((white.basis.shape[0], 1))
    rows = white.matrix
    for _ in range(n_rounds):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        row_scale = row_scale * (limit / np.maximum(norms, limit))
        basis = np.linalg.qr(row_scale * white.basis)[0]
        transform = np.linalg.inv(unwhitening.T @ basis)
        rows = basis @ transform
        if np.linalg.norm(rows, axis=1).max(initial=0.0) <= limit:
            break
    return CappedWhitener(basis=basis, transform=transform, unwhitening=unwhitening)


@dataclass(frozen=True, eq=False)
class RandomMarginal:
    """Leading eigenspace of a marginal T(I, I, theta) of a third-order tensor.

    Parameters
    ----------
    eigenvalues : ndarray of shape (k,)
        Of largest magnitude, in decreasing order of magnitude.
    basis : ndarray of shape (d, k)
        Their eigenvectors: an estimate of the span of the components.
    theta : ndarray of shape (d,)
        Unit vector by which `T` was contracted.
    """

    eigenvalues: Floats
    basis: Floats
    theta: Floats

    def whitener(self) -> Whitener:
        """Whitener of the marginal.

        Returns
        -------
        Whitener
            In decreasing order of magnitude.

        Raises
        ------
        ValueError
            If an eigenvalue is not positive: then no real W makes W' M W the
            identity. Orthonormal components need none, only `basis`; others
            need a `theta` of positive product with each.
        """
        if not (self.eigenvalues > 0).all():
            raise ValueError(
                "the marginal must have positive leading eigenvalues to be whitened; "
                f"{int((self.eigenvalues <= 0).sum())} of {self.eigenvalues.size} are not."
            )
        return Whitener(basis=self.basis, scale=np.sqrt(self.eigenvalues))


def whiten_by_random_marginal(
    T: ArrayLike,
    n_components: int,
    *,
    theta: ArrayLike | None = None,
    random_state: RandomState = None,
) -> RandomMarginal:
    """Span of the components of a lone third-order tensor, from one marginal.

    For T = sum_i w_i v_i (x) v_i (x) v_i, M(theta) = T(I, I, theta) is
    sum_i w_i (v_i' theta) v_i v_i', of either sign. Its leading eigenvectors by
    magnitude span the components; project T on them to decompose it in k
    dimensions. Noise is amplified by up to sqrt(d): without a second moment, the
    power method on `T` itself withstands more (Proposition B.1 and section 2).

    Parameters
    ----------
    T : array-like of shape (d, d, d)
        Symmetric tensor.
    n_components : int
        Number k of eigenvectors, at most d.
    theta : array-like of shape (d,), optional
        Direction, normalised here. By default uniform on the unit sphere. A
        non-negative one keeps the marginal of non-negative components positive
        semidefinite, so that it can be whitened.
    random_state : int, Generator, RandomState or None, default=None
        Seeds `theta`.

    Returns
    -------
    RandomMarginal
        Eigenvalues, basis, and the direction.

    Raises
    ------
    ValueError
        If a shape or `n_components` is invalid, or `theta` is zero.

    References
    ----------
    Y. Wang, A. Anandkumar, "Online and differentially-private tensor
    decomposition", NIPS 2016, Appendix B.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.symmetric import symmetric_outer_sum
    >>> from sktensor_dp.tensor.whitening import whiten_by_random_marginal
    >>> T = symmetric_outer_sum([2.0, 1.0], np.eye(4)[:2])
    >>> marginal = whiten_by_random_marginal(T, 2, theta=[1.0, 1.0, 1.0, 1.0])
    >>> marginal.eigenvalues
    array([1. , 0.5])
    """
    tensor = np.asarray(T, dtype=np.float64)
    if tensor.ndim != 3 or len(set(tensor.shape)) > 1:
        raise ValueError(f"T must have shape (d, d, d); got shape {tensor.shape}.")
    d = tensor.shape[0]
    check_components(n_components, d)
    if theta is None:
        direction = as_generator(random_state).standard_normal((d,))
    else:
        direction = np.asarray(theta, dtype=np.float64)
    if direction.shape != (d,) or not np.any(direction):
        raise ValueError(f"theta must have shape ({d},) and not be 0; got {direction.shape}.")
    direction = direction / np.linalg.norm(direction)
    values, vectors = top_eigenpairs(tensor @ direction, d)
    order = np.argsort(-np.abs(values), kind="stable")[:n_components]
    return RandomMarginal(values[order], vectors[:, order], direction)


# An eigenvalue below this share of the largest is rounding.
NULL_EIGENVALUE = 1e-12
# Of what noise may lift an eigenvalue to: one kept is taken for no less.
LEAST_SHARE = 0.1
# Of the largest eigenvalue of a moment seen in a frame: what is less is taken for it.
LEAST_IN_FRAME = 1e-4


@dataclass(frozen=True, eq=False)
class NoisyWhitener(Whitener):
    """Whitener by eigenpairs of which some stand out of the noise."""

    eigenvalues: Floats
    n_resolved: int

    def times(self, V: Floats) -> Floats:
        """Second moment, of the rank kept, times V."""
        return self.basis @ (self.eigenvalues[:, None] * (self.basis.T @ V))

    def in_frame(self, frame: Floats) -> CappedWhitener:
        """Whitener of third moments that are seen in the columns of any matrix."""
        seen = self.times(frame)
        transform = _inverse_root(frame.T @ seen)
        return CappedWhitener(frame, transform, seen @ transform)


def noisy_whitener(
    M2: ArrayLike | Operator,
    n_components: int,
    *,
    edge: float,
    largest: float | None = None,
    keep_all: bool = False,
    **eigen_options: Any,
) -> NoisyWhitener:
    """Keep the eigenpairs above `edge`, which noise alone may reach, and one at least.

    `largest` is what an eigenvalue can be at most; by default what the first one is.
    """
    values, vectors = top_eigenpairs(M2, n_components, **eigen_options)
    n_resolved = int((values > edge).sum())
    kept = len(values) if keep_all else max(n_resolved, 1)
    if largest is None:
        largest = max(float(values[0]), NULL_EIGENVALUE)
    eigenvalues = np.maximum(values[:kept], max(LEAST_SHARE * edge, NULL_EIGENVALUE * largest))
    return NoisyWhitener(vectors[:, :kept], np.sqrt(eigenvalues), eigenvalues, n_resolved)


def _inverse_root(matrix: Floats) -> Floats:
    """Inverse square root of a positive semi-definite matrix, bounded where it has none."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    values = np.maximum(values, LEAST_IN_FRAME * max(float(values[-1]), 1e-300))
    return vectors / np.sqrt(values)
