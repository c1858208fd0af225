"""Sweeps of alternating minimisation with Anderson acceleration.

References
----------
H. F. Walker, P. Ni, "Anderson acceleration for fixed-point iterations", SIAM Journal on
Numerical Analysis 2011.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sktensor_dp.tensor.arrays import Floats

# Steps that an extrapolation combines, and ridge of its least squares relative to their trace.
_MEMORY, _RIDGE = 5, 1e-10
# Sweeps before the first extrapolation.
_FIRST_SWEEPS = 4


class Alternation(Protocol):
    """Parameters that sweeps improve."""

    def sweep(self) -> float:
        """Update all parameters once; return the noise variance, which falls."""

    def state(self) -> list[Floats]:
        """Parameters that are extrapolated."""

    def restore(self, state: Sequence[Floats], variance: float) -> None:
        """Replace parameters and noise variance."""


def run_sweeps(alternation: Alternation, max_iter: int, tol: float) -> tuple[int, bool]:
    """Sweep until the noise variance settles; return the number of sweeps and whether it did."""
    mixing, plain = _Anderson(), True
    before, variance = _flat(alternation.state()), np.inf
    for n_iter in range(1, max_iter + 1):
        former, variance = variance, alternation.sweep()
        after = alternation.state()
        # Values have unit variance; what is left of values that are explained is rounding.
        settles = abs(former - variance) < tol * max(variance, tol)
        if settles and plain and n_iter >= _FIRST_SWEEPS:
            return n_iter, True
        # Little change after an extrapolation says nothing: the next sweep starts from this one.
        plain = settles or n_iter < _FIRST_SWEEPS or n_iter == max_iter
        if plain:
            before = _flat(after)
        else:
            before, variance = mixing.next(before, _flat(after), variance)
            alternation.restore(_unflat(before, after), variance)
    return max_iter, False


class _Anderson:
    """Extrapolated steps of an iteration; its own step again where one made things worse."""

    def __init__(self) -> None:
        self._steps: list[Floats] = []
        self._residuals: list[Floats] = []
        self._objective = np.inf

    def next(self, before: Floats, after: Floats, objective: float) -> tuple[Floats, float]:
        """State to go on from and its objective, after a step and the objective that it reached."""
        if objective > self._objective and len(self._steps) > 1:
            plain = self._steps[-1]
            self._steps, self._residuals = [], []
            return plain, self._objective
        self._objective = objective
        self._steps = [*self._steps[-_MEMORY:], after]
        self._residuals = [*self._residuals[-_MEMORY:], after - before]
        if len(self._steps) == 1:
            return after, objective
        moves = np.diff(self._residuals, axis=0)
        gram = moves @ moves.T
        gram[np.diag_indices(len(gram))] += _RIDGE * np.trace(gram) + np.finfo(float).tiny
        combined = np.linalg.solve(gram, moves @ self._residuals[-1])
        return after - combined @ np.diff(self._steps, axis=0), objective


def _flat(state: Sequence[Floats]) -> Floats:
    return np.concatenate([part.ravel() for part in state])


def _unflat(flat: Floats, like: Sequence[Floats]) -> list[Floats]:
    ends = np.cumsum([part.size for part in like])[:-1]
    return [part.reshape(one.shape) for part, one in zip(np.split(flat, ends), like, strict=True)]
