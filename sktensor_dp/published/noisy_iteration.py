"""The loop and the calibration of Algorithm 3 of Wang & Anandkumar, for all that share them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sktensor_dp.estimator.parameters import Constraint, Number
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.tensor import Oracle
from sktensor_dp.tensor.arrays import Floats

POSITIVE_INT = Number(1, math.inf, integer=True)
EPSILON = Number(0, math.inf, closed="right")


def noisy_power_iteration(
    step: Oracle,
    value: Callable[[Floats], Floats] | None,
    dim: int,
    n_components: int,
    *,
    n_restarts: int,
    max_iter: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Power iterations on a fixed schedule, every answer used once.

    Parameters
    ----------
    step : callable
        Maps unit columns U of shape (dim, n_restarts) to noisy T(I, u, u).
    value : callable or None
        Maps U to the noisy T(u, u, u), shape (n_restarts,). None takes ``u' step(u)`` of the
        last step, which belongs to the iterate before the last.
    dim, n_components : int
        Length of a mode, number of components.
    n_restarts, max_iter : int
        L and R of the paper.
    rng : Generator
        Of the starting points.

    Returns
    -------
    weights : ndarray of shape (n_components,)
        Values of the winners less what was deflated.
    vectors : ndarray of shape (n_components, dim)
        The winners.
    """
    weights, vectors = np.zeros(n_components), np.zeros((n_components, dim))
    for i in range(n_components):
        found, sizes = vectors[:i], weights[:i]
        U = _unit_columns(rng.standard_normal((dim, n_restarts)))
        for _ in range(max_iter):
            xi = found @ U
            answer = step(U) - found.T @ (sizes[:, None] * xi**2)
            lagged = np.sum(U * answer, axis=0)
            U = _unit_columns(answer)
        values = lagged if value is None else value(U) - sizes @ (found @ U) ** 3
        best = int(np.argmax(values))
        weights[i], vectors[i] = values[best], U[:, best]
    return weights, vectors


def noise_multiplier(epsilon: float, delta: float, n_queries: int) -> float:
    """Noise over sensitivity of each of K queries, step 2 of Algorithm 3.

    Parameters
    ----------
    epsilon, delta : float
        Guarantee claimed for all queries together.
    n_queries : int
        K.

    Returns
    -------
    float
        ``sqrt(2 log(1.25 / delta')) / epsilon'``; the paper's nu is six times it.

    Examples
    --------
    Joint calibration of the same 550 queries needs 87.5:

    >>> round(noise_multiplier(1.0, 1e-5, 550), 1)
    578.0
    """
    epsilon_each = epsilon / math.sqrt(n_queries * (4 + math.log(2 / delta)))
    delta_each = delta / (2 * n_queries)
    return math.sqrt(2 * math.log(1.25 / delta_each)) / epsilon_each


def check(constraint: Constraint, **values: Any) -> None:
    """Raise unless every value is one that the constraint allows."""
    for name, value in values.items():
        if not constraint.accepts(value):
            raise ValueError(f"{name} must be {constraint}, got {value!r}.")


def check_guarantee(epsilon: float, delta: float) -> None:
    """Raise unless epsilon > 0 and 0 < delta < 1."""
    check(EPSILON, epsilon=epsilon)
    check(Number(0, 1, closed="neither"), delta=delta)


def check_rank(n_components: int, dim: int, name: str) -> None:
    """Raise if there are more components than features."""
    if n_components > dim:
        raise ValueError(
            f"n_components must be at most the {dim} features of {name}, got {n_components}."
        )


def _unit_columns(U: Floats) -> Floats:
    norms = np.linalg.norm(U, axis=0)
    return np.divide(U, norms, out=np.zeros_like(U), where=norms > 0)


def noisy_columns(answer: Floats, deviation: Floats, noise: NoiseSource) -> Floats:
    """Add Gaussian noise to an answer of shape (..., L), of one deviation per column."""
    if not deviation.any():
        return answer
    scale = np.broadcast_to(deviation, answer.shape)
    coordinates = np.divide(answer, scale, out=np.zeros(answer.shape), where=scale > 0)
    return scale * noise.gaussian(coordinates.ravel(), 1.0).reshape(answer.shape)
