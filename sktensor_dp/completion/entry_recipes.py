"""Recipes from releases on observed entries to models of a tensor."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.completion.gradient_recipe import GradientDescent
from sktensor_dp.completion.plan import RESIDUAL, CompletionPlan
from sktensor_dp.completion.rows import posterior_rows, unit_mean_square
from sktensor_dp.privacy.curators.entries import EntryCurator
from sktensor_dp.statistics.jacobians import CPJacobian, TuckerJacobian
from sktensor_dp.tensor.completion_forms import with_factors, with_orthonormal_factors
from sktensor_dp.tensor.cp_completion import CPCompletion, complete_cp
from sktensor_dp.tensor.entries import SortedEntries
from sktensor_dp.tensor.row_effects import fit_row_sums
from sktensor_dp.tensor.tucker_completion import TuckerCompletion, complete_tucker

__all__ = ["CPRecipe", "TuckerRecipe", "fit_entries"]

Floats = NDArray[np.float64]
Model = CPCompletion | TuckerCompletion

# Deviation of components to start from, in halves of the bounds.
COMPONENT = 0.1
SWEEPS = 60
# Rows of a matrix with so many entries each, on average, are variables: each one's noise has a
# variance of its own.
VARIABLE_ENTRIES = 500


class CPRecipe:
    """Models with a diagonal core.

    Parameters
    ----------
    rank : int
        Number of components.
    random_state : RandomState
        For starts after release.
    regularization : float, default=1.0
        Factor of ridge penalties.
    """

    def __init__(
        self, rank: int, random_state: np.random.RandomState, regularization: float = 1.0
    ) -> None:
        self.rank, self.random_state = rank, random_state
        self.regularization = regularization

    def solve(self, entries: SortedEntries, values: Floats, noise_variance: float) -> CPCompletion:
        """Fit released values, with the noise known to be in them."""
        return complete_cp(
            entries, values, self.rank, noise_variance=noise_variance,
            noise_mode=_variables(entries), regularization=self.regularization,
            max_iter=SWEEPS, random_state=self.random_state,
        )  # fmt: skip

    def of_cp(self, model: CPCompletion) -> CPCompletion:
        """Nothing to be done."""
        return model


class TuckerRecipe:
    """Models with a full core.

    Parameters
    ----------
    ranks : sequence of n_modes int
        Columns of each factor.
    random_state : RandomState
        For starts after release.
    regularization : float, default=1.0
        Factor of ridge penalties.
    """

    def __init__(
        self,
        ranks: Sequence[int],
        random_state: np.random.RandomState,
        regularization: float = 1.0,
    ) -> None:
        self.ranks, self.random_state = tuple(ranks), random_state
        self.regularization = regularization
        # Components of a CP model that fit into the core.
        self.rank = min(self.ranks)

    def solve(
        self, entries: SortedEntries, values: Floats, noise_variance: float
    ) -> TuckerCompletion:
        """Fit released values, with the noise known to be in them."""
        return complete_tucker(
            entries, values, self.ranks, noise_variance=noise_variance,
            regularization=self.regularization, random_state=self.random_state,
        )  # fmt: skip

    def of_cp(self, model: CPCompletion) -> TuckerCompletion:
        """Orthonormal factors and their core."""
        shape = (model.rank,) * len(self.ranks)
        core = np.zeros(shape)
        core[(np.arange(model.rank),) * len(self.ranks)] = model.weights
        return with_orthonormal_factors(model, self.ranks, model.factors, core)


def _variables(entries: SortedEntries) -> int | None:
    """Mode of a matrix whose rows are variables, by public numbers; None if there is none."""
    mode = int(np.argmin(entries.shape))
    is_matrix = entries.n_modes == 2
    return (
        mode if is_matrix and entries.n_entries >= VARIABLE_ENTRIES * min(entries.shape) else None
    )


def fit_entries(
    curator: EntryCurator, plan: CompletionPlan, recipe: CPRecipe | TuckerRecipe
) -> Model:
    """Make all releases of the plan and return the model.

    Parameters
    ----------
    curator : EntryCurator
        Holder of the values.
    plan : CompletionPlan
        What to release.
    recipe : CPRecipe or TuckerRecipe
        Which model.

    Returns
    -------
    CPCompletion or TuckerCompletion
    """
    entries = SortedEntries(curator.index_set.coordinates, curator.index_set.shape)
    if plan.perturbation == "input":
        noisy = curator.entries()
        return recipe.solve(entries, noisy.value + curator.middle, noisy.sigma**2)
    if plan.perturbation == "sufficient_statistics":
        return recipe.of_cp(_from_sums(curator, entries, plan.n_steps, recipe))
    if plan.perturbation == "output":
        return _with_released_block(curator, entries, recipe)
    tucker = isinstance(recipe, TuckerRecipe)
    ranks = recipe.ranks if isinstance(recipe, TuckerRecipe) else (recipe.rank,) * entries.n_modes
    descent = GradientDescent(
        curator, entries, ranks, tucker, recipe.random_state, recipe.regularization
    )
    return descent.run(plan.n_steps)


def _from_sums(
    curator: EntryCurator, entries: SortedEntries, n_sweeps: int, recipe: CPRecipe | TuckerRecipe
) -> CPCompletion:
    """Mean and biases from row sums, then alternating least squares on factor sums."""
    released = curator.row_sums()
    residual = (2 * curator.half * RESIDUAL) ** 2
    offsets = fit_row_sums(
        entries, released.sums, list(released.weights.T), released.sigma**2, residual,
        center=curator.middle,
    )  # fmt: skip
    if n_sweeps == 0:
        return offsets
    base = offsets.predict(curator.index_set.coordinates) - curator.middle
    shape = curator.index_set.shape
    factors = [recipe.random_state.standard_normal((n, recipe.rank)) for n in shape]
    for _ in range(n_sweeps):
        for mode in range(len(shape)):
            rows = CPJacobian(curator.index_set, factors, False).rows(mode)
            factors[mode] = _posterior_rows(
                curator, mode, rows, base, residual, recipe.regularization
            )
            if mode < len(shape) - 1:
                factors[mode] = unit_mean_square(factors[mode])[0]
    return with_factors(offsets, factors)


def _posterior_rows(
    curator: EntryCurator,
    mode: int,
    rows: Floats,
    base: Floats,
    residual: float,
    regularization: float,
) -> Floats:
    """Rows of a factor from released right-hand sides, shrunk by their known noise."""
    index_set = curator.index_set
    spread = float(np.square(rows).sum(axis=1).mean())
    prior = (COMPONENT * curator.half) ** 2 / max(spread, 1e-300)
    noisy = curator.factor_sums(mode, rows, regularization * residual / prior)
    targets = noisy.sums - index_set.sums(mode, base[:, None] * rows)
    grams = index_set.grams(mode, rows)
    return posterior_rows(targets, grams, noisy.covariances, residual, prior, regularization)


def _with_released_block(
    curator: EntryCurator, entries: SortedEntries, recipe: CPRecipe | TuckerRecipe
) -> Model:
    """All but one factor from released values; that one as noisy ridge regression."""
    noisy = curator.entries()
    model = recipe.solve(entries, noisy.value + curator.middle, noisy.sigma**2)
    mode = len(entries.shape) - 1
    index_set = curator.index_set
    rows = _jacobian(index_set, model).rows(mode)
    if not np.any(rows):
        return model
    residual = max(model.noise_variance, (2 * curator.half * RESIDUAL) ** 2)
    own = np.mean(_last_factor(model) ** 2, axis=0)
    ridge = residual * recipe.regularization
    ridge = ridge / np.maximum(own, max(1e-6 * float(own.max()), (1e-9 * curator.half) ** 2))
    released = curator.ridge_block(mode, rows, ridge)
    # The regression is linear in the values: what mean and biases add to it is public.
    base = model.predict(index_set.coordinates) - curator.middle
    base -= np.sum(rows * _last_factor(model)[index_set.rows(mode)], axis=1)
    penalised = index_set.grams(mode, rows) + np.diag(ridge)
    public = np.linalg.solve(penalised, index_set.sums(mode, base[:, None] * rows)[..., None])
    found = released.rows - public[..., 0]
    # Between the released block and the one before, by what is known of their noise.
    share = own / (own + released.sigmas[:, None] ** 2)
    return _with_last_factor(model, share * found + (1 - share) * _last_factor(model), recipe)


def _last_factor(model: Model) -> Floats:
    """Last factor in the scale in which the model's values are linear in it."""
    weights = model.weights if isinstance(model, CPCompletion) else 1.0
    return model.factors[-1] * weights


def _with_last_factor(model: Model, factor: Floats, recipe: Any) -> Model:
    if isinstance(model, CPCompletion):
        return with_factors(model, [*model.factors[:-1], factor])
    factors = [*model.factors[:-1], factor]
    return with_orthonormal_factors(model, recipe.ranks, factors, model.core)


def _jacobian(index_set: Any, model: Model) -> CPJacobian | TuckerJacobian:
    if isinstance(model, CPCompletion):
        return CPJacobian(index_set, model.factors, False)
    return TuckerJacobian(index_set, model.factors, model.core, False)
