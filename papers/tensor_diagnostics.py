"""Quantities of Wang & Anandkumar's analysis: incoherence, spans, and the operator norm."""

import math
from collections.abc import Callable

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "cp_contraction",
    "incoherence",
    "marginal_span",
    "operator_norm",
    "random_marginal_bound",
    "subspace_distance",
]

Floats = NDArray[np.float64]
Contraction = Callable[[Floats], Floats]
# Rounding of T(u, u, u), relative to |T(I, u, u)|, that is no descent.
ROUNDING = 1e-14


def cp_contraction(weights: ArrayLike, V: ArrayLike) -> Contraction:
    """Map U to T(I, u, u) of its columns, for T = sum_j weights[j] v_j (x) v_j (x) v_j."""
    w, rows = np.asarray(weights), np.asarray(V)
    return lambda U: rows.T @ (w[:, None] * (rows @ U) ** 2)


def incoherence(V: ArrayLike) -> float:
    """Incoherence (d / k) max_i |V e_i|^2 of orthonormal rows (Assumption 4.1, Eq. 6)."""
    rows = np.asarray(V)
    k, d = rows.shape
    return float(d / k * np.max(np.sum(rows**2, axis=0)))


def subspace_distance(A: ArrayLike, B: ArrayLike) -> float:
    """Sine of the largest angle between two column spaces; 1 if their dimensions differ."""
    first, second = np.asarray(A), np.asarray(B)
    if first.shape != second.shape:
        return 1.0
    return float(np.sin(scipy.linalg.subspace_angles(first, second)[0]))


def marginal_span(T: Floats, n_components: int, theta: ArrayLike) -> Floats:
    """Leading eigenvectors, by magnitude, of T(I, I, theta), as columns (Appendix B)."""
    direction = np.asarray(theta, dtype=np.float64)
    values, vectors = np.linalg.eigh(T @ (direction / np.linalg.norm(direction)))
    span: Floats = vectors[:, np.argsort(-np.abs(values), kind="stable")[:n_components]]
    return span


def random_marginal_bound(
    weights: ArrayLike, V: ArrayLike, theta: ArrayLike, noise_norm: float
) -> float:
    """Bound on the error of `marginal_span`, |E| / (s - |E|) with s = min_j |w_j v_j' theta|.

    By Wedin's theorem (Proposition B.1 and Lemma F.8, with constants), for orthonormal rows v_j.
    """
    direction = np.asarray(theta, dtype=np.float64)
    overlaps = np.asarray(V) @ (direction / np.linalg.norm(direction))
    smallest = float(np.min(np.abs(np.asarray(weights) * overlaps)))
    return noise_norm / (smallest - noise_norm) if noise_norm < smallest else math.inf


def operator_norm(
    contraction: Contraction,
    dim: int,
    *,
    n_restarts: int = 20,
    max_iter: int = 1000,
    tol: float = 1e-8,
    rng: np.random.Generator,
) -> float:
    """Largest |T(u, u, u)| over unit vectors u found by shifted power iterations.

    All starts iterate u <- T(I, u, u) + a u, normalised (Kolda & Mayo, 2011, Algorithm 2). A step
    that would descend is not taken and raises its shift a; others halve it. A start ends once the
    part of T(I, u, u) normal to u is at most `tol` of it.
    """
    U = rng.standard_normal((dim, n_restarts))
    U /= np.linalg.norm(U, axis=0)
    answers = contraction(U)
    values = np.sum(U * answers, axis=0)
    U *= np.where(values < 0, -1.0, 1.0)  # T(-u, -u, -u) = -T(u, u, u)
    values, shifts = np.abs(values), np.zeros(n_restarts)
    for _ in range(max_iter):
        lengths = np.linalg.norm(answers, axis=0)
        normal = np.linalg.norm(answers - values * U, axis=0)
        active = np.flatnonzero(normal > tol * lengths)
        if active.size == 0:
            break
        moved = answers[:, active] + shifts[active] * U[:, active]
        moved /= np.linalg.norm(moved, axis=0)
        answer = contraction(moved)
        value = np.sum(moved * answer, axis=0)
        taken = value >= values[active] - ROUNDING * lengths[active]
        raised = np.maximum(2.0 * shifts[active], 0.5 * lengths[active])
        shifts[active] = np.where(taken, 0.5 * shifts[active], raised)
        kept = active[taken]
        U[:, kept], answers[:, kept], values[kept] = moved[:, taken], answer[:, taken], value[taken]
    return float(np.max(values))
