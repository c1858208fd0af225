"""The power method on the core of a sketch of a large tensor, polished on the tensor itself."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from sktensor_dp.tensor._random import RandomState, as_generator
from sktensor_dp.tensor.online import OnlinePowerMethod
from sktensor_dp.tensor.oracle import Floats, Oracle

Pairs = Callable[[Floats], Floats]

# Directions of the core beyond the components, and of the sketch to those of the core.
_EXTRA, _SKETCH = 10, 2
# The core has to be this much shorter than the tensor: else it saves nothing.
_SHORTER = 4
# Polishing stops once no component moves further; it starts from errors of a few percent,
# and what is left is forgotten by more than their square.
_SETTLED = 1e-4
# A component counts as seen in the core if its weight there is this share of that in the
# tensor; two that are so much alike are one.
_SEEN, _ALIKE = 0.8, 0.5
# The last direction of the core, relative to the last component's: above, components that
# the core has no room for may be among those sought.
_LEFT_OUT = 0.7


def sketch_pays(dim: int, n_components: int) -> bool:
    """Whether a core is much smaller than the tensor."""
    return dim >= _SHORTER * _SKETCH * (n_components + _EXTRA) // 2


def tensor_pairs(T: Floats) -> Pairs:
    """Function that maps Q of shape (d, s) to T(I, Q, Q), of shape (d, s, s)."""
    d = len(T)

    def pairs(Q: Floats) -> Floats:
        half = (T.reshape(d * d, d) @ Q).reshape(d, d, -1)
        return np.asarray(np.matmul(Q.T, half), dtype=np.float64)

    return pairs


def sketched_power_method(
    oracle: Oracle,
    pairs: Pairs,
    dim: int,
    n_components: int,
    *,
    n_restarts: int,
    max_iter: int,
    random_state: RandomState = None,
) -> tuple[Floats, Floats] | None:
    """Weights and unit vectors, as rows, of the largest components, or None.

    None means that the core cannot be trusted to hold them: of many components that are
    about as large, say.
    """
    # N. Halko, P. G. Martinsson, J. A. Tropp, "Finding structure with randomness", SIAM
    # Review 2011, with the unfolding in the place of a matrix.
    rng, size = as_generator(random_state), n_components + _EXTRA
    basis = np.linalg.qr(oracle(rng.standard_normal((dim, _SKETCH * size))))[0]
    basis, lengths = _directions(pairs(basis).reshape(dim, -1), size)
    if lengths[size - 1] > _LEFT_OUT * lengths[n_components - 1]:
        return None
    core = (basis.T @ pairs(basis).reshape(dim, -1)).reshape(size, -1)
    method = OnlinePowerMethod(
        size, n_components, n_restarts=n_restarts, max_iter=max_iter, random_state=rng
    )
    while not method.is_complete:
        starts = method.ask()
        products = starts[:, None, :] * starts[None, :, :]
        method.tell(core @ products.reshape(size * size, -1))
    seen, vectors = method.components()
    weights, vectors, settled = _polished(oracle, seen, vectors @ basis.T, max_iter)
    alike = np.abs(vectors @ vectors.T - np.eye(n_components)).max()
    if not settled or alike > _ALIKE or (seen < _SEEN * weights).any():
        return None
    order = np.argsort(-weights, kind="stable")
    return weights[order], vectors[order]


def _directions(answers: Floats, size: int) -> tuple[Floats, Floats]:
    """Leading left singular vectors and values of a matrix of many columns."""
    # Of its Gram matrix, which has a quarter of the work. What squares lose is polished away.
    d = len(answers)
    squares, vectors = eigh(answers @ answers.T, subset_by_index=[d - size, d - 1])
    return np.ascontiguousarray(vectors[:, ::-1]), np.sqrt(np.maximum(squares[::-1], 0.0))


def _polished(
    oracle: Oracle, weights: Floats, vectors: Floats, max_iter: int
) -> tuple[Floats, Floats, bool]:
    """Deflated steps of all components at once, and whether they have settled."""
    for _ in range(max_iter):
        overlaps: NDArray[np.float64] = (vectors @ vectors.T) ** 2
        np.fill_diagonal(overlaps, 0.0)
        answers = oracle(np.ascontiguousarray(vectors.T)).T
        answers = answers - (weights[:, None] * overlaps).T @ vectors
        weights = np.einsum("ij,ij->i", vectors, answers)
        lengths = np.linalg.norm(answers, axis=1, keepdims=True)
        moved = np.divide(answers, lengths, out=vectors.copy(), where=lengths > 0)
        change = np.linalg.norm(moved - vectors, axis=1).max()
        vectors = moved
        if change <= _SETTLED:
            return weights, vectors, True
    return weights, vectors, False
