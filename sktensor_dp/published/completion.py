"""Tensor completion of Wei et al.: input, gradient and output perturbation (Algorithms 1 to 3).

Z. Wei, Z. Li, X. Mao, J. Wang, "Applying differential privacy to tensor completion". All three
solve (4) or (5) by stochastic gradient descent (SGD). Where the print leaves something open, the
simplest choice is taken:

- *SGD* goes through the entries in blocks, in a new random order in every iteration: gradients of
  a block are taken at the same parameters and added. A block of one entry is the print.
- *Start*: normal. *Modes*: any number; the last one is the paper's C.
- *Sensitivities*: of the input ``x_max - x_min`` of the observed values unless `bounds` are given;
  of gradients ``2 m``, as in the paper's experiments (Theorem 2 has ``2 L``); of the output
  ``2 tau L eta``, tau being the number of iterations.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.checks.parameters import Number
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.published.claims import Claim, claim_of_call
from sktensor_dp.published.power_method import EPSILON, POSITIVE_INT, check
from sktensor_dp.tensor.arrays import Floats, Integers, RandomState, as_generator
from sktensor_dp.tensor.sorted_entries import (
    SortedEntries,
    cp_values,
    derivatives,
    kronecker_rows,
    tucker_values,
)

Protect = Callable[[Floats], Floats]


@dataclass(frozen=True)
class SGDSettings:
    """Settings of stochastic gradient descent (SGD).

    Parameters
    ----------
    max_iter, block : int, default=100 and 1
        Passes over the entries, and entries whose gradients are taken at the same parameters.
    learning_rate : float, default=0.005
        Factor of the gradient in every step.
    penalty, core_penalty : float, default=0.01 and 0.001
        Lambda of the factors and of the core.
    scale : float, default=0.5
        Deviation of the parameters at the start.
    """

    max_iter: int = 100
    learning_rate: float = 0.005
    penalty: float = 0.01
    core_penalty: float = 0.001
    block: int = 1
    scale: float = 0.5


class Descent:
    """SGD on the objective (4), CP, or (5), Tucker, of Wei et al."""

    def __init__(
        self, entries: SortedEntries, rank: int, tucker: bool, sgd: SGDSettings | None, seed: Any
    ) -> None:
        self.entries, self.sgd = entries, SGDSettings() if sgd is None else sgd
        self._rng = as_generator(seed)
        scale, n_modes = self.sgd.scale, entries.n_modes
        self.factors = [scale * self._rng.standard_normal((n, rank)) for n in entries.shape]
        self.core = scale * self._rng.standard_normal((rank,) * n_modes) if tucker else None

    def run(self, values: Floats, protect: Protect | None = None) -> None:
        """Run SGD on `values`; `protect` clips gradients of the last factor and adds noise."""
        # Numbers may grow without bound if noise is large, as for the printed algorithm.
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(self.sgd.max_iter):
                order = self._rng.permutation(len(values))
                for first in range(0, len(values), self.sgd.block):
                    chosen = order[first : first + self.sgd.block]
                    self._step(self.entries.coordinates[chosen], values[chosen], protect)

    def _step(self, coordinates: Integers, values: Floats, protect: Protect | None) -> None:
        """Update all factors, and the core, by the gradients of one block of entries."""
        rate = self.sgd.learning_rate
        for mode, factor in enumerate(self.factors):
            rows = coordinates[:, mode]
            # Derivatives of predictions by the factor's rows, (n_entries, rank).
            z = derivatives(self.factors, self.core, mode, coordinates)
            residuals = np.einsum("br,br->b", z, factor[rows]) - values
            gradients = 2 * (residuals[:, None] * z + self.sgd.penalty * factor[rows])
            if protect is not None and mode == len(self.factors) - 1:
                gradients = protect(gradients)
            # Gradients of entries in one row add up.
            cells = (rows[:, None] * factor.shape[1] + np.arange(factor.shape[1])).ravel()
            steps = np.bincount(cells, gradients.ravel(), minlength=factor.size)
            factor -= rate * steps.reshape(factor.shape)
        if self.core is not None:
            K = kronecker_rows(self.factors, coordinates)
            residuals = K @ self.core.ravel() - values
            gradient = (residuals @ K).reshape(self.core.shape)
            gradient += len(values) * self.sgd.core_penalty * self.core
            self.core -= 2 * rate * gradient


@dataclass(frozen=True, eq=False)
class PublishedCompletion:
    """Model of a completed tensor that a published algorithm releases, and the claim about it.

    Attributes
    ----------
    factors : list of ndarray of shape (shape[m], rank)
    core : ndarray of shape (rank,) * n_modes, or None
        None for CP models.
    claim : Claim
        Privacy that the paper claims, and the verdict on it.
    """

    factors: list[Floats]
    core: Floats | None
    claim: Claim

    def predict(self, coordinates: ArrayLike) -> Floats:
        """Predict values (n,) at coordinates (n, n_modes), which are indices from 0."""
        index = np.asarray(coordinates, dtype=np.intp)
        if self.core is None:
            return cp_values(self.factors, index)
        return tucker_values(self.core, self.factors, index)


def input_perturbation(
    coordinates: ArrayLike,
    values: ArrayLike,
    shape: Sequence[int],
    rank: int = 3,
    *,
    tucker: bool = False,
    epsilon: float = 1.0,
    bounds: tuple[float, float] | None = None,
    sgd: SGDSettings | None = None,
    random_state: RandomState = None,
) -> PublishedCompletion:
    """Complete a tensor from values with Laplace noise (Algorithm 1).

    Every value gets noise of scale ``(high - low) / epsilon``, once; SGD then fits a CP or a Tucker
    model to the noisy values.

    Parameters
    ----------
    coordinates, values : array-like of shape (n_observed, n_modes) and (n_observed,)
        Indices of the observed entries, from 0, and their values.
    shape : sequence of int
        Length of each mode of the tensor.
    rank : int, default=3
        Number of columns of every factor, the paper's d.
    tucker : bool, default=False
        True fits a core, (5); False a CP model, (4).
    epsilon : float, default=1.0
        Epsilon that the algorithm claims, > 0. Infinity leaves out noise.
    bounds : (low, high) or None, default=None
        Public range that values are clamped to. None takes the range of the values, as the paper
        does, which voids the claim (``UnsoundClaimWarning``).
    sgd : SGDSettings or None, default=None
        Settings of SGD; None takes those of the paper for MovieLens.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the start and the order of entries, never noise.

    Returns
    -------
    PublishedCompletion

    Notes
    -----
    **Privacy.** *Unit*: one value. *Public*: coordinates and parameters. *Releases*: all
    values, once, outside any budget. *Not covered*: see ``claim``.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.published.completion import input_perturbation
    >>> X = np.argwhere(np.ones((3, 3, 3)))
    >>> public = input_perturbation(X, X[:, 0], (3, 3, 3), 1, bounds=(0, 2), random_state=0)
    >>> public.claim.verdict
    'holds if'
    """
    entries, y = _validated(coordinates, values, shape, rank, epsilon)
    low, high = (float(y.min()), float(y.max())) if bounds is None else bounds
    if not low <= high:
        raise ValueError(f"bounds must be (low, high) with low <= high, got {bounds!r}.")
    # First steps 1 and 2 of the algorithm, then step 3.
    noisy = with_laplace_noise(np.clip(y, low, high), high - low, epsilon)
    model = Descent(entries, rank, tucker, sgd, random_state)
    model.run(noisy)
    # The second claim is that of bounds taken from the values, which guarantee nothing.
    exact_epsilon, form = (math.inf, 1) if bounds is None else (epsilon, 0)
    claim = claim_of_call("input_perturbation", epsilon, 0.0, exact_epsilon, form=form)
    return PublishedCompletion(model.factors, model.core, claim)


def gradient_perturbation(
    coordinates: ArrayLike,
    values: ArrayLike,
    shape: Sequence[int],
    rank: int = 3,
    *,
    tucker: bool = False,
    epsilon: float = 1.0,
    clip: float = 1.0,
    sgd: SGDSettings | None = None,
    random_state: RandomState = None,
) -> PublishedCompletion:
    """Complete a tensor by SGD with noisy gradients of the last factor (Algorithm 2).

    Parameters
    ----------
    coordinates, values, shape, rank, tucker, epsilon, sgd, random_state
        As for :func:`input_perturbation`; epsilon is claimed for the whole process.
    clip : float, default=1.0
        m, the largest norm of a gradient, > 0; the scale of noise is ``2 m / epsilon``.

    Returns
    -------
    PublishedCompletion
        It has no privacy: see ``claim``.

    Examples
    --------
    >>> import warnings
    >>> from sktensor_dp.published import gradient_perturbation
    >>> with warnings.catch_warnings(action="ignore"):
    ...     gradient_perturbation([[0, 0], [1, 1]], [0.0, 1.0], (2, 2), 1).claim.exact_epsilon
    inf
    """
    entries, y = _validated(coordinates, values, shape, rank, epsilon, clip=clip)
    noise = NoiseSource()

    def protect(gradients: Floats) -> Floats:
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        return with_row_noise(gradients / np.maximum(1.0, norms / clip), 2 * clip, epsilon, noise)

    model = Descent(entries, rank, tucker, sgd, random_state)
    model.run(y, protect)
    return PublishedCompletion(
        model.factors, model.core, claim_of_call("gradient_perturbation", epsilon, 0.0)
    )


def output_perturbation(
    coordinates: ArrayLike,
    values: ArrayLike,
    shape: Sequence[int],
    rank: int = 3,
    *,
    tucker: bool = False,
    epsilon: float = 1.0,
    lipschitz: float = 1.0,
    sgd: SGDSettings | None = None,
    random_state: RandomState = None,
) -> PublishedCompletion:
    """Complete a tensor by SGD, then add noise to the rows of the last factor (Algorithm 3).

    Parameters
    ----------
    coordinates, values, shape, rank, tucker, epsilon, sgd, random_state
        As for :func:`input_perturbation`.
    lipschitz : float, default=1.0
        Lipschitz constant L, > 0: noise is for a sensitivity of ``2 tau L eta``.

    Returns
    -------
    PublishedCompletion
        It has no privacy: see ``claim``.

    Examples
    --------
    >>> import warnings
    >>> from sktensor_dp.published import output_perturbation
    >>> with warnings.catch_warnings(action="ignore"):
    ...     output_perturbation([[0, 0], [1, 1]], [0.0, 1.0], (2, 2), 1).claim.exact_epsilon
    inf
    """
    entries, y = _validated(coordinates, values, shape, rank, epsilon, lipschitz=lipschitz)
    model = Descent(entries, rank, tucker, sgd, random_state)
    model.run(y)  # step 1
    sensitivity = 2 * model.sgd.max_iter * lipschitz * model.sgd.learning_rate
    factors = [*model.factors[:-1], with_row_noise(model.factors[-1], sensitivity, epsilon)]
    claim = claim_of_call("output_perturbation", epsilon, 0.0)
    return PublishedCompletion(factors, model.core, claim)


def with_laplace_noise(values: Floats, width: float, epsilon: float) -> Floats:
    """Values with Laplace noise of scale ``width / epsilon`` each (Algorithm 1, step 1)."""
    if width == 0:
        return values
    return NoiseSource().laplace(values / width, epsilon) * width


def with_row_noise(
    rows: Floats, sensitivity: float, epsilon: float, noise: NoiseSource | None = None
) -> Floats:
    """Add to each row noise n of density ``exp(-epsilon |n| / sensitivity)``."""
    source = NoiseSource() if noise is None else noise
    return source.spherical_laplace_rows(rows / sensitivity, epsilon) * sensitivity


def _validated(
    coordinates: ArrayLike,
    values: ArrayLike,
    shape: Sequence[int],
    rank: int,
    epsilon: float,
    **scales: float,
) -> tuple[SortedEntries, Floats]:
    """Validate data and parameters; return the sorted entries and their values."""
    check(EPSILON, epsilon=epsilon)
    check(POSITIVE_INT, rank=rank)
    check(Number(0, math.inf, closed="neither"), **scales)
    entries, y = SortedEntries(coordinates, shape), np.asarray(values, dtype=np.float64)
    if y.shape != (entries.n_entries,) or not np.isfinite(y).all():
        raise ValueError(
            f"values must be {entries.n_entries} finite numbers, one per entry; "
            f"got an array of shape {y.shape}."
        )
    return entries, y
