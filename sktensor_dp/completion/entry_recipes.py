"""Recipes from releases on observed entries to models of a tensor."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sktensor_dp.completion import defaults
from sktensor_dp.completion.assumed import RESIDUAL
from sktensor_dp.completion.expected_biases import with_features
from sktensor_dp.completion.gradient_recipe import fit_gradients
from sktensor_dp.completion.inference import attributes_of
from sktensor_dp.completion.model_options import ModelOptions
from sktensor_dp.completion.own_entries import shared_part
from sktensor_dp.completion.pair_recipe import pair_components, with_columns
from sktensor_dp.completion.plan import CompletionPlan
from sktensor_dp.estimator.base import Fitted
from sktensor_dp.privacy.curators.entries import EntryCurator
from sktensor_dp.queries.gradients import Jacobian
from sktensor_dp.queries.observed_entries import IndexSet
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.cp_completion import CPCompletion, complete_cp
from sktensor_dp.tensor.row_effects import fit_row_sums, incidence_features
from sktensor_dp.tensor.tucker_completion import (
    Model,
    complete_tucker,
    with_factors,
    with_orthonormal_factors,
)

# Most sweeps over released values: extrapolated ones settle in a few dozen.
SWEEPS = 1000
NOT_SETTLED = (
    "The sweeps over released values stopped at max_iter before the model settled. A larger "
    "max_iter costs no privacy."
)


def fit_entries(curator: EntryCurator, plan: CompletionPlan, options: ModelOptions) -> Fitted:
    """Make all releases of the plan."""
    recipe = {
        "input": _from_values,
        "sufficient_statistics": _from_sums,
        "output": _with_released_block,
        "gradient": fit_gradients,
    }[plan.perturbation]
    model = recipe(curator, plan, options)
    if plan.perturbation in ("input", "output"):
        # Of sums they are part of the fit itself.
        model = with_features(model, curator.index_set, options)
    width, noise, folded = 2 * curator.half, 0.0, None
    if plan.perturbation in ("input", "output"):
        noise = (width * plan.value_deviation) ** 2
    if plan.with_pairs:
        folded = pair_components(curator, model, options)
        model = with_columns(model, folded[0])
    state = {
        **attributes_of(model), "_model": model, "perturbation_": plan.perturbation,
        "_shared": shared_part(model, curator.index_set, width, noise, folded),
        "n_iter_": max(plan.n_steps, model.n_iter, 1),
    }  # fmt: skip
    warnings = () if model.converged else (ConvergenceWarning(NOT_SETTLED),)
    return Fitted(state, warnings)


def _from_values(curator: EntryCurator, plan: CompletionPlan, options: ModelOptions) -> Model:
    """Fit released values, with the noise known to be in them."""
    noisy, entries = curator.entries(), curator.index_set
    noise_variance, released = noisy.sigma**2, [noisy.value + curator.middle]
    # Handed over, not held: a number for each entry is a large part of all memory.
    del noisy
    return _of_values(entries, released, noise_variance, options)


def _of_values(
    entries: IndexSet, released: list[Floats], noise_variance: float, options: ModelOptions
) -> Model:
    """A model of values with noise, which are taken out of a list."""
    most = SWEEPS if options.max_iter is None else options.max_iter
    if options.full_core:
        return complete_tucker(
            entries, released.pop(), options.ranks, noise_variance=noise_variance,
            regularization=options.regularization, max_iter=most,
            random_state=options.random_state,
        )  # fmt: skip
    return complete_cp(
        entries, released.pop(), options.rank, noise_variance=noise_variance,
        regularization=options.regularization, max_iter=most, random_state=options.random_state,
    )  # fmt: skip


def _from_sums(curator: EntryCurator, plan: CompletionPlan, options: ModelOptions) -> Model:
    """Mean and biases from row sums."""
    index_set, residual = curator.index_set, (2 * curator.half * RESIDUAL) ** 2
    # Of coordinates alone, and first: weights of all entries need not be held beside them.
    features = incidence_features(index_set)
    released = curator.row_sums(power=defaults.PAIR_POWER if plan.with_pairs else 0.5)
    model = fit_row_sums(
        index_set, released.sums, list(released.weights.T), released.sigma**2, residual,
        center=curator.middle, features=features, given=options.features_at(index_set),
    )  # fmt: skip
    return _in_form(model, options)


def _in_form(model: CPCompletion, options: ModelOptions) -> Model:
    """The model, with a core where one was asked for."""
    if not options.full_core:
        return model
    core = np.zeros((model.rank,) * len(options.ranks))
    core[(np.arange(model.rank),) * len(options.ranks)] = model.weights
    return with_orthonormal_factors(model, options.ranks, model.factors, core)


def _with_released_block(
    curator: EntryCurator, plan: CompletionPlan, options: ModelOptions
) -> Model:
    """All but one factor from released values; that one as noisy ridge regression."""
    model, index_set = _from_values(curator, plan, options), curator.index_set
    mode = index_set.n_modes - 1
    core = None if isinstance(model, CPCompletion) else model.core
    rows = Jacobian.of(index_set, model.factors, core).rows(mode)
    if not np.any(rows):
        return model
    # In the scale in which values are linear in it.
    last = model.factors[-1] * (model.weights if isinstance(model, CPCompletion) else 1.0)
    residual = max(model.noise_variance, (2 * curator.half * RESIDUAL) ** 2)
    own = np.mean(last**2, axis=0)
    ridge = residual * options.regularization
    ridge = ridge / np.maximum(own, max(1e-6 * float(own.max()), (1e-9 * curator.half) ** 2))
    released = curator.ridge_block(mode, rows, ridge)
    # The regression is linear in the values: what mean and biases add to it is public.
    base = model.predict(index_set.coordinates) - curator.middle
    base -= np.sum(rows * last[index_set.rows(mode)], axis=1)
    penalised = index_set.grams(mode, rows) + np.diag(ridge)
    public = np.linalg.solve(penalised, index_set.sums(mode, base[:, None] * rows)[..., None])
    found = released.rows - public[..., 0]
    # Between the released block and the one before, by what is known of their noise.
    share = own / (own + released.sigmas[:, None] ** 2)
    factors = [*model.factors[:-1], share * found + (1 - share) * last]
    if isinstance(model, CPCompletion):
        return with_factors(model, factors)
    return with_orthonormal_factors(model, options.ranks, factors, model.core)
