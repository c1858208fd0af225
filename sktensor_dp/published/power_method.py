"""Algorithms 1 to 3 of Wang & Anandkumar: robust, online, and private for one tensor entry.

Y. Wang, A. Anandkumar, "Online and differentially-private tensor decomposition", NIPS 2016. The
algorithms share one loop: R power steps of L starts, the best value, and deflation.
:func:`sktensor_dp.tensor.robust_tensor_power_method`, which estimators use, also stops early and
polishes the winner.

Where the print does not say what is meant, it is mended as little as it takes:

- *Algorithm 2, step 7*: xi is printed with the unnormalised sums u-tilde; the deflation of
  ``T(I, u_t, u_t)`` needs the unit vector ``u_t``.
- *Algorithm 2, step 6*: lambda-tilde belongs to ``u_(R-1)``, one iterate behind the vector
  that it is stored with. By default one more batch per component gives the value at
  ``u_R``; ``eigenvalue="lagged"`` is the printed one.
- *Algorithm 3*: K = k L (R + 1) counts queries of the whole fit, as the proof of Theorem
  4.1 has it, and delta' = delta / (2 K).
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from sktensor_dp.checks.parameters import Constraint, Number, OneOf
from sktensor_dp.privacy.calibration import gaussian_epsilon
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.published.claims import Claim, claim_of_call
from sktensor_dp.tensor.arrays import Floats, RandomState, as_generator
from sktensor_dp.tensor.power_method import unit_columns
from sktensor_dp.tensor.symmetric import Oracle, is_symmetric, tensor_oracle

POSITIVE_INT = Number(1, math.inf, integer=True)
EPSILON = Number(0, math.inf, closed="right")


def power_method_loop(
    step: Oracle,
    value: Callable[[Floats], Floats] | None,
    dim: int,
    n_components: int,
    *,
    n_restarts: int,
    max_iter: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Weights (k,) and vectors (k, dim) by the loop of Algorithms 1 to 3.

    `step` gives T(I, u, u) for columns u, with noise or without, and `value` T(u, u, u). If `value`
    is None, values are those of the iterates before the last.
    """
    weights, vectors = np.zeros(n_components), np.zeros((n_components, dim))
    for i in range(n_components):
        # Deflation: T less the sum of weights w times cubes of the vectors V found before.
        V, w = vectors[:i], weights[:i]
        U = unit_columns(rng.standard_normal((dim, n_restarts)))
        for _ in range(max_iter):
            answer = step(U) - V.T @ (w[:, None] * (V @ U) ** 2)
            lagged = np.sum(U * answer, axis=0)  # values at the iterates before the last
            U = unit_columns(answer)
        values = lagged if value is None else value(U) - w @ (V @ U) ** 3
        best = int(np.argmax(values))
        weights[i], vectors[i] = values[best], U[:, best]
    return weights, vectors


def noise_multiplier(epsilon: float, delta: float, n_queries: int) -> float:
    """Ratio of noise to sensitivity of each query, by step 2 of Algorithm 3."""
    epsilon_each = epsilon / math.sqrt(n_queries * (4 + math.log(2 / delta)))
    delta_each = delta / (2 * n_queries)
    return math.sqrt(2 * math.log(1.25 / delta_each)) / epsilon_each


def check(constraint: Constraint, **values: object) -> None:
    """Raise ValueError, by its keyword, for a value that the constraint does not allow."""
    for name, value in values.items():
        if not constraint.accepts(value):
            raise ValueError(f"{name} must be {constraint}, got {value!r}.")


def check_guarantee(epsilon: float, delta: float) -> None:
    """Raise ValueError unless epsilon > 0 and 0 < delta < 1."""
    check(EPSILON, epsilon=epsilon)
    check(Number(0, 1, closed="neither"), delta=delta)


def check_rank(n_components: int, dim: int, name: str) -> None:
    """Raise ValueError if components are more than `dim`, the features of the argument `name`."""
    if n_components > dim:
        raise ValueError(
            f"n_components must be at most the {dim} features of {name}, got {n_components}."
        )


def noisy_columns(answer: Floats, deviation: Floats, noise: NoiseSource) -> Floats:
    """Add Gaussian noise, of a deviation for each column, to an answer (..., L)."""
    if not deviation.any():
        return answer
    scale = np.broadcast_to(deviation, answer.shape)
    # In units of its deviation the noise is standard normal.
    in_units = np.divide(answer, scale, out=np.zeros(answer.shape), where=scale > 0)
    return scale * noise.gaussian(in_units.ravel(), 1.0).reshape(answer.shape)


@dataclass(frozen=True, eq=False)
class PublishedComponents:
    """Eigenpairs found by a published algorithm.

    Attributes
    ----------
    weights : ndarray of shape (n_components,)
        Eigenvalues as they were found: with noise they need not decrease, nor be positive.
    vectors : ndarray of shape (n_components, n_features)
        Unit vectors as rows.
    claim : Claim
        Privacy that the paper claims, and the verdict on it.
    """

    weights: Floats
    vectors: Floats
    claim: Claim


def robust_tensor_power_method(
    T: ArrayLike,
    n_components: int,
    n_restarts: int = 10,
    max_iter: int = 10,
    random_state: RandomState = None,
) -> PublishedComponents:
    """Eigenpairs of a tensor, one at a time (Algorithm 1, after Anandkumar et al., 2014).

    Parameters
    ----------
    T : array-like of shape (d, d, d)
        Symmetric tensor.
    n_components : int
        Number k of components, at most d.
    n_restarts, max_iter : int, default=10
        Starting points L, and power steps R, of each component.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the starting points.

    Returns
    -------
    PublishedComponents
        No privacy is claimed or given.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or `T` is not a finite symmetric cube.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.published import robust_tensor_power_method
    >>> from sktensor_dp.tensor import symmetric_outer_sum
    >>> found = robust_tensor_power_method(symmetric_outer_sum([2.0, 1.0], np.eye(2)), 2)
    >>> np.sort(found.weights).round(6), found.claim.verdict
    (array([1., 2.]), 'no claim')
    """
    check(POSITIVE_INT, n_components=n_components, n_restarts=n_restarts, max_iter=max_iter)
    oracle, dim = _symmetric_oracle(T)
    check_rank(n_components, dim, "T")
    weights, vectors = power_method_loop(
        oracle, lambda U: np.sum(U * oracle(U), axis=0), dim, n_components,
        n_restarts=n_restarts, max_iter=max_iter, rng=as_generator(random_state),
    )  # fmt: skip
    claim = claim_of_call("robust_tensor_power_method", math.inf, 0.0)
    return PublishedComponents(weights, vectors, claim)


def online_tensor_power_method(
    batches: Iterable[object],
    n_components: int,
    n_restarts: int = 10,
    max_iter: int = 10,
    eigenvalue: Literal["fresh", "lagged"] = "fresh",
    random_state: RandomState = None,
) -> PublishedComponents:
    """Eigenpairs of ``E[x (x) x (x) x]`` from a stream (Algorithm 2, corrected).

    Parameters
    ----------
    batches : iterable of array-like or sparse matrix, each of shape (n, n_features)
        The stream, of which ``n_components * (max_iter + 1)`` batches are read, one for each
        power step, or ``n_components * max_iter`` with ``eigenvalue="lagged"``.
    n_components, n_restarts, max_iter, random_state
        As for :func:`robust_tensor_power_method`.
    eigenvalue : {"fresh", "lagged"}, default="fresh"
        "fresh": the value at the last iterate, by one more batch. "lagged": as printed,
        at the iterate before it.

    Returns
    -------
    PublishedComponents
        No privacy is claimed or given: every answer is an exact mean of samples.

    Raises
    ------
    ValueError
        If a parameter is wrong, the stream ends early, or the width of a batch changes.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.published import online_tensor_power_method
    >>> rng = np.random.default_rng(0)
    >>> stream = (np.eye(4)[rng.choice(2, p=[0.4, 0.6], size=2000)] for _ in range(22))
    >>> found = online_tensor_power_method(stream, 2, random_state=0)
    >>> np.abs(found.vectors).argmax(axis=1)
    array([1, 0])
    """
    check(POSITIVE_INT, n_components=n_components, n_restarts=n_restarts, max_iter=max_iter)
    check(OneOf("fresh", "lagged"), eigenvalue=eigenvalue)
    is_fresh = eigenvalue == "fresh"
    stream = _checked(batches, n_components * (max_iter + is_fresh))
    first = next(stream)
    dim = first.shape[1]
    check_rank(n_components, dim, "batches")
    stream = itertools.chain([first], stream)

    def step(U: Floats) -> Floats:
        batch = next(stream)
        return np.asarray(batch.T @ (batch @ U) ** 2) / batch.shape[0]

    def value(U: Floats) -> Floats:
        return np.mean((next(stream) @ U) ** 3, axis=0)

    weights, vectors = power_method_loop(
        step, value if is_fresh else None, dim, n_components,
        n_restarts=n_restarts, max_iter=max_iter, rng=as_generator(random_state),
    )  # fmt: skip
    claim = claim_of_call("online_tensor_power_method", math.inf, 0.0)
    return PublishedComponents(weights, vectors, claim)


def private_tensor_power_method(
    T: ArrayLike,
    n_components: int,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    n_restarts: int = 10,
    max_iter: int = 10,
    random_state: RandomState = None,
) -> PublishedComponents:
    """Eigenpairs of a tensor, private for one of its entries (Algorithm 3).

    Parameters
    ----------
    T, n_components, n_restarts, max_iter, random_state
        As for :func:`robust_tensor_power_method`. Starting points share the query of a step,
        and each has noise of its own, which is never seeded.
    epsilon, delta : float, default=1.0 and 1e-6
        Privacy that the algorithm claims; an infinite epsilon leaves out noise.

    Returns
    -------
    PublishedComponents

    Raises
    ------
    ValueError
        If a parameter is outside its range, or `T` is not a finite symmetric cube.

    Notes
    -----
    **Privacy.** *Unit*: one entry of `T`, with its permutations. *Neighbours*: tensors
    that differ by ``+- symmetrize(e_i (x) e_j (x) e_k)``, the sum over six orders
    (Definition 4.2). *Public*: d and the parameters. *Releases*: k L (R + 1) queries,
    outside any budget, with noise of deviation ``nu |u|_inf^2`` and ``nu |u|_inf^3``.
    *Not covered*: a document or a person behind many entries.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.published import private_tensor_power_method
    >>> from sktensor_dp.tensor import symmetric_outer_sum
    >>> found = private_tensor_power_method(symmetric_outer_sum([9e5, 5e5], np.eye(2)), 2)
    >>> found.claim.holds, round(found.claim.exact_epsilon, 2)
    (True, 0.14)
    """
    # Constant of both sensitivities in Theorem 4.1, which multiply |u|_inf^2 and |u|_inf^3.
    entry_sensitivity = 6.0
    check(POSITIVE_INT, n_components=n_components, n_restarts=n_restarts, max_iter=max_iter)
    check_guarantee(epsilon, delta)
    oracle, dim = _symmetric_oracle(T)
    check_rank(n_components, dim, "T")
    n_queries = n_components * n_restarts * (max_iter + 1)
    multiplier = noise_multiplier(epsilon, delta, n_queries)
    nu, noise = entry_sensitivity * multiplier, NoiseSource()

    def step(U: Floats) -> Floats:
        return noisy_columns(oracle(U), nu * np.abs(U).max(axis=0) ** 2, noise)

    def value(U: Floats) -> Floats:
        return noisy_columns(np.sum(U * oracle(U), axis=0), nu * np.abs(U).max(axis=0) ** 3, noise)

    weights, vectors = power_method_loop(
        step, value, dim, n_components,
        n_restarts=n_restarts, max_iter=max_iter, rng=as_generator(random_state),
    )  # fmt: skip
    mu = math.sqrt(n_queries) / multiplier if multiplier > 0 else math.inf
    exact_epsilon = gaussian_epsilon(mu, delta)
    claim = claim_of_call("private_tensor_power_method", epsilon, delta, exact_epsilon)
    return PublishedComponents(weights, vectors, claim)


def _symmetric_oracle(T: ArrayLike) -> tuple[Oracle, int]:
    """Function U -> T(I, u, u) of a tensor, and its length; ValueError unless it is symmetric."""
    oracle, tensor = tensor_oracle(T), np.asarray(T, dtype=np.float64)
    if not is_symmetric(tensor):
        raise ValueError("T must be symmetric: the same for every order of its three indices.")
    return oracle, len(tensor)


def _checked(batches: Iterable[Any], n_batches: int) -> Iterator[Any]:
    """Yield `n_batches` batches of one width, dense as floats; ValueError if there are fewer."""
    width, stream = None, iter(batches)
    for index in range(n_batches):
        batch = next(stream, None)
        if batch is None:
            raise ValueError(f"batches must hold {n_batches} batches or more, got {index}.")
        if not sp.issparse(batch):
            batch = np.asarray(batch, dtype=np.float64)
        is_table = batch.ndim == 2 and batch.shape[0] > 0
        if not is_table or width not in (None, batch.shape[1]):
            columns = "n_features" if width is None else width
            raise ValueError(
                f"batches must have shape (n >= 1, {columns}) each, got {batch.shape} at {index}."
            )
        width = batch.shape[1]
        yield batch
