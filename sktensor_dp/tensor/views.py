"""Moments of several views made symmetric."""

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.tensor.oracle import Floats, check_components, check_finite, check_shape
from sktensor_dp.tensor.symmetric import symmetrize


def symmetrize_views(
    T: ArrayLike, M12: ArrayLike, M13: ArrayLike, M23: ArrayLike, n_components: int
) -> tuple[Floats, Floats]:
    """Symmetric moments in the space of the third of three views.

    Where views x1, x2, x3 are conditionally independent given a latent class
    h, and E[x_t | h = j] = mu_tj, the first two are mapped to the space of the
    third, x1 -> E[x3 x2'] E[x1 x2']^+ x1 and x2 -> E[x3 x1'] E[x2 x1']^+ x2,
    which takes mu_1j and mu_2j to mu_3j. Then, with w_j = P(h = j),

        M2 = sum_j w_j mu_3j (x) mu_3j,  M3 = sum_j w_j mu_3j (x) mu_3j (x) mu_3j.

    Parameters
    ----------
    T : array-like of shape (d1, d2, d3)
        E[x1 (x) x2 (x) x3].
    M12 : array-like of shape (d1, d2)
        E[x1 x2'], the moment that is inverted.
    M13 : array-like of shape (d1, d3)
        E[x1 x3'].
    M23 : array-like of shape (d2, d3)
        E[x2 x3'].
    n_components : int
        Number k of classes: the rank of the pseudo-inverse, at most d1, d2, d3.
        The conditional means of every view must be linearly independent.

    Returns
    -------
    M2 : ndarray of shape (d3, d3)
        Symmetric, to be whitened.
    M3 : ndarray of shape (d3, d3, d3)
        Symmetric. Of estimated moments both are averaged over permutations of
        their modes.

    Raises
    ------
    ValueError
        If a shape or `n_components` is invalid, a number is not finite, or the
        rank of `M12` is below `n_components`.

    References
    ----------
    A. Anandkumar, R. Ge, D. Hsu, S. M. Kakade, M. Telgarsky, "Tensor
    decompositions for learning latent variable models", JMLR 15, 2014,
    Theorem 3.6.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.views import symmetrize_views
    >>> w, A, B, C = np.array([0.4, 0.6]), np.eye(3)[:2], np.eye(2), np.array([[1.0, 0], [0.5, 1]])
    >>> T = np.einsum("j,ja,jb,jc->abc", w, A, B, C)
    >>> pairs = [(P.T * w) @ Q for P, Q in ((A, B), (A, C), (B, C))]
    >>> M2, M3 = symmetrize_views(T, *pairs, n_components=2)
    >>> np.allclose(M2, (C.T * w) @ C)
    True
    """
    tensor = np.asarray(T, dtype=np.float64)
    pairs = [np.asarray(M, dtype=np.float64) for M in (M12, M13, M23)]
    if tensor.ndim != 3:
        raise ValueError(f"T must have shape (d1, d2, d3); got shape {tensor.shape}.")
    for name, modes, M in zip(("M12", "M13", "M23"), ((0, 1), (0, 2), (1, 2)), pairs, strict=True):
        check_shape(name, M, *(tensor.shape[mode] for mode in modes))
    check_finite("moments", tensor, *pairs)
    check_components(n_components, min(tensor.shape))
    m12, m13, m23 = pairs
    inverse = _pseudo_inverse(m12, n_components)
    from_first, from_second = m23.T @ inverse, m13.T @ inverse.T
    M3 = np.einsum("abc,ia,jb->ijc", tensor, from_first, from_second, optimize=True)
    return symmetrize(from_first @ m12 @ from_second.T), symmetrize(M3)


def _pseudo_inverse(M: Floats, rank: int) -> Floats:
    """Moore-Penrose inverse of the best approximation of the given rank."""
    left, singular, right = np.linalg.svd(M, full_matrices=False)
    if singular[rank - 1] <= max(M.shape) * np.finfo(float).eps * singular[0]:
        raise ValueError(f"M12 must have rank n_components = {rank} or more; its rank is lower.")
    return np.asarray((right[:rank].T / singular[:rank]) @ left[:, :rank].T)
