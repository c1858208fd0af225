"""Completion from noisy gradients in all parameters, where one value is the unit of privacy."""

import numpy as np

from sktensor_dp.completion.model import EntryModel
from sktensor_dp.completion.plan import ASSUMED, ModelOptions
from sktensor_dp.data.entries import IndexSet
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.gradients import EntryGradients, Jacobian
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.cp_completion import CPCompletion, with_factors
from sktensor_dp.tensor.entry_biases import fit_row_sums
from sktensor_dp.tensor.normal_equations import core_equations, posterior_rows
from sktensor_dp.tensor.tucker_completion import orthonormalised

# Least mean square of products of factors that counts; factors have mean square 1 or 0.
NULL_SPREAD = 1e-12


class GradientDescent:
    """Block Gauss-Newton descent by noisy gradients in all parameters; each step is a release."""

    # Up to public terms a gradient is sum_e x_e J_e. Its parts in biases are the same sums of
    # values at every step. Its parts in factors and core are right-hand sides of normal equations,
    # whose matrices are public; both are averaged over steps, over more of them with more noise. In
    # each step one factor, or the core, moves to its posterior mean.

    _offsets: CPCompletion  # mean and biases so far

    def __init__(self, ask: Session, options: ModelOptions) -> None:
        self._ranks, self._ask = options.ranks, ask
        self._index_set: IndexSet = ask.public("index_set")
        self._half: float = ask.public("half")
        self._middle: float = ask.public("middle")
        # Variance of values about the model, as assumed.
        self._residual = (2 * self._half * ASSUMED.residual) ** 2
        shape, rng = self._index_set.shape, options.random_state
        self._factors = [
            unit_mean_square(rng.standard_normal((len(counts), r)) * (counts > 0)[:, None])[0]
            for counts, r in zip(self._index_set.counts, self._ranks, strict=True)
        ]
        full_core = options.full_core
        self._core = rng.standard_normal(self._ranks) * self._half if full_core else None
        self._sums = [np.zeros(n) for n in shape]  # of values by row, averaged over steps
        self._information = 0.0  # precision of these averages; 0 without noise
        # Of a CP model's components; 0 before the first move, and where nothing is found.
        self._weights: Floats = np.zeros(self._ranks[0])
        self._averages: list[_Average] = [_Average() for _ in range(len(shape) + full_core)]

    def fit(self, n_steps: int) -> EntryModel:
        """Take `n_steps` steps and return the model in its standard form."""
        for step in range(n_steps):
            self._release_step(step)
        if self._core is not None:
            rows = self._factors[0]
            return orthonormalised(
                self._offsets, self._ranks, self._factors, self._core, rows.T @ rows / len(rows)
            )
        *others, last = self._factors
        return with_factors(self._offsets, [*others, last * self._weights])

    def _release_step(self, step: int) -> None:
        """Release a gradient, add it to the averages, fit mean and biases, and move one block."""
        index_set, n_modes = self._index_set, self._index_set.n_modes
        factor_scale, core_scale = self._scales()
        factors = [factor * factor_scale for factor in self._factors]
        core = None if self._core is None else self._core * core_scale
        jacobian = Jacobian(index_set, factors, core)
        # By block, derivatives at the scaled parameters over those at `_factors` and `_core`.
        ratios = [factor_scale ** (n_modes - 1)] * n_modes
        if core is not None:
            ratios = [ratio * core_scale for ratio in ratios] + [factor_scale**n_modes]
        # The release is of values, less the middle; the part of predictions is public.
        noisy = self._ask(EntryGradients(jacobian, self._half)).as_sum()
        _, *parts = jacobian.split(noisy.value)
        self._fit_offsets(parts[:n_modes], noisy.sigma)
        # Subtract mean and biases from right-hand sides.
        offsets_at_entries = self._offsets.predict(index_set.coordinates) - self._middle
        for place, (part, ratio) in enumerate(zip(parts[n_modes:], ratios, strict=True)):
            moment, gram, mean_square = self._normal_equations(place, offsets_at_entries)
            right = part.reshape(moment.shape) / ratio - moment
            variance = (noisy.sigma / ratio) ** 2
            self._averages[place].add(right, gram, variance, self._residual)
            if place == step % len(ratios):
                self._move(place, mean_square)

    def _scales(self) -> tuple[float, float]:
        """Scales of factors and of core at which all parts of the Jacobian are of similar size."""
        # An entry's derivatives in mean and biases have squared norm 1 + n_modes. Without a core,
        # those in all factors are scaled to at most that; else those in factors and core to half.
        index_set, n_modes = self._index_set, self._index_set.n_modes
        in_factors = sum(float(np.square(self._rows(m)).sum(axis=1).max()) for m in range(n_modes))
        if self._core is None:
            # Derivatives in a factor are products of the n_modes - 1 others.
            ratio = (1 + n_modes) / max(in_factors, NULL_SPREAD)
            return ratio ** (0.5 / max(n_modes - 1, 1)), 1.0
        # Derivatives in the core are products of all factors.
        norms = [
            np.square(factor).sum(axis=1)[index_set.rows(mode)]
            for mode, factor in enumerate(self._factors)
        ]
        in_core = float(np.prod(norms, axis=0).max())
        of_factors = (0.5 * (1 + n_modes) / max(in_core, NULL_SPREAD)) ** (0.5 / n_modes)
        # Those in a factor are products of the others, scaled so, and of the core, whose unit is
        # that of values.
        in_factors = max(in_factors, NULL_SPREAD * self._half**2)
        of_derivatives = np.sqrt(0.5 * (1 + n_modes) / in_factors)
        return of_factors, float(of_derivatives / of_factors ** (n_modes - 1))

    def _rows(self, mode: int) -> Floats:
        """Derivatives (n_entries, r) of each entry's value in its row of the factor of a mode."""
        return Jacobian(self._index_set, self._factors, self._core).rows(mode)

    def _fit_offsets(self, sums: list[Floats], sigma: float) -> None:
        """Fit mean and biases to sums (n_m,) of this step and of all before, by precision."""
        if sigma > 0:
            precision = 1 / sigma**2
            self._information += precision
            share = precision / self._information
        else:
            share = 1.0
        for mean, new in zip(self._sums, sums, strict=True):
            mean += share * (new - mean)
        noise_variance = 1 / self._information if self._information > 0 else 0.0
        ones = [np.ones(self._index_set.n_entries)] * len(sums)
        self._offsets = fit_row_sums(
            self._index_set, self._sums, ones, noise_variance, self._residual,
            center=self._middle, mean_variance=self._half**2 / 3,
        )  # fmt: skip

    def _normal_equations(self, place: int, values: Floats) -> tuple[Floats, Floats, float]:
        """Sums of ``value z`` and of ``z z'`` for the rows of a block, and the mean of |z|^2.

        z are derivatives at entries in the factor of mode `place`; or in the core, whose place is
        after the last mode.
        """
        index_set = self._index_set
        if place < len(self._factors):
            rows = self._rows(place)
            moment = index_set.sums(place, values[:, None] * rows)
            gram = index_set.grams(place, rows)
        else:
            sums = core_equations(index_set, self._factors, values)
            gram, moment = sums[0][None], sums[1][None]
        return moment, gram, float(np.trace(gram, axis1=1, axis2=2).sum()) / len(values)

    def _move(self, place: int, mean_square: float) -> None:
        """Set the factor of mode `place`, or the core after the last mode, to its posterior mean.

        `mean_square` is that of the norm of an entry's derivatives in it.
        """
        # A `mean_square` near 0, by factors that are 0, must not make the prior infinite. With a
        # core derivatives in factors, not those in the core, have the unit of values.
        in_values = self._core is not None and place < len(self._factors)
        least = NULL_SPREAD * self._half**2 if in_values else NULL_SPREAD
        prior = (2 * self._half * ASSUMED.component) ** 2 / max(mean_square, least)
        rows = self._averages[place].posterior(self._residual, prior)
        if place == len(self._factors):
            self._core = rows.reshape(self._ranks)
            return
        # Without a core the derivatives leave weights out, so that `size` is the weight. With a
        # core they contain it, and the core is multiplied by `size`.
        self._factors[place], size = unit_mean_square(rows)
        if self._core is None:
            self._weights = np.where(rows.any(axis=0), size, 0.0)
        else:
            shape = [1] * len(self._ranks)
            shape[place] = -1
            self._core = self._core * size.reshape(shape)


class _Average:
    """Normal equations of a block, averaged over steps."""

    def __init__(self) -> None:
        self._share = 1.0  # weight of the next step in the average
        self._variance = 0.0  # of the noise in `_right`
        self._right: Floats = np.zeros(())
        self._gram: Floats = np.zeros(())

    def add(self, right: Floats, gram: Floats, variance: float, residual: float) -> None:
        """Add the equations of a step to the average; more noise means longer memory.

        `variance` is that of noise in the right-hand side, `residual` that of values about the
        model.
        """
        self._right = self._right + self._share * (right - self._right)
        self._gram = self._gram + self._share * (gram - self._gram)
        # The average of noise has share^2 of the new variance plus (1 - share)^2 of the averaged
        # one, which is 1 - (2 - share) share of it.
        averaged = self._variance
        self._variance += self._share**2 * variance - (2 - self._share) * self._share * averaged
        # Mean variance of the right-hand side by residuals of values.
        size = residual * float(np.trace(gram, axis1=1, axis2=2).sum()) / max(right.size, 1)
        # Without noise only the last step counts; with noise alone all steps count equally.
        memory = variance / (variance + size) if variance > 0 else 0.0
        self._share = 1 / (1 + memory / self._share)

    def posterior(self, residual: float, prior: float) -> Floats:
        """Posterior means of the rows of the block, of shape (n, r)."""
        noise = np.broadcast_to(self._variance * np.eye(self._gram.shape[1]), self._gram.shape)
        return posterior_rows(self._right, self._gram, noise, residual, prior)


def unit_mean_square(factor: Floats) -> tuple[Floats, Floats]:
    """Factor with columns of unit mean square, and their root mean squares before (1 for 0)."""
    size = np.sqrt(np.mean(factor**2, axis=0))
    safe = np.where(size > 0, size, 1.0)
    return factor / safe, safe
