"""Fits where one value is the unit of privacy: their releases, and models of these."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sktensor_dp.completion.gradient_steps import GradientDescent
from sktensor_dp.completion.model import AT_EDGE, EntryModel, SharedModel, unexplained_variance
from sktensor_dp.completion.plan import ASSUMED, EntryPlan, ModelOptions
from sktensor_dp.data.entries import IndexSet
from sktensor_dp.estimator.base import FitResult
from sktensor_dp.exceptions import DoubtfulParameterWarning
from sktensor_dp.privacy.answer import is_at_end
from sktensor_dp.privacy.mechanisms import piecewise_deviation
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.entries import Entries, EntryPairs, RowSums
from sktensor_dp.queries.gradients import LARGEST, Jacobian, RidgeBlock
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.column_pairs import components_of_pairs
from sktensor_dp.tensor.cp_completion import CPCompletion, complete_cp, with_factors
from sktensor_dp.tensor.entry_biases import fit_row_sums, incidence_features
from sktensor_dp.tensor.shared_parameters import (
    SharedComponents,
    SharedEffects,
    clipped_response,
    clipped_variance,
    residual_clip,
)
from sktensor_dp.tensor.tucker_completion import complete_tucker, orthonormalised, tucker_of_cp

# Least variance of values about the model, relative to the assumed one: exact data may have none,
# but priors of `fold_in` are relative to it.
LEAST_RESIDUAL = 1e-9
# Limit on sweeps over released values; with extrapolation a few dozen suffice.
SWEEPS = 1000
NOT_SETTLED = (
    "The sweeps over released values stopped at max_iter before the model settled. A larger "
    "max_iter costs no privacy."
)


def fit_entries(ask: Session, plan: EntryPlan, options: ModelOptions) -> FitResult:
    """Make the releases of values, and fit the model to them."""
    recipes: dict[str, Callable[[Session, ModelOptions], EntryModel]] = {
        "input": _fit_by_input,
        "sufficient_statistics": _fit_by_sufficient_statistics,
        "output": _fit_by_output,
        "gradient": lambda ask, options: GradientDescent(ask, options).fit(plan.n_steps),
    }
    model = recipes[plan.perturbation](ask, options)
    width, index_set = 2 * ask.public("half"), ask.public("index_set")
    # Components for `fold_in`, which fits rows of the first mode: factors of all other modes.
    if plan.with_pairs:
        columns, residual_variance = release_pair_components(ask, model, options)
        if isinstance(model, CPCompletion):  # of a Tucker model only `_shared` has these components
            model = with_columns(model, columns)
        components = SharedComponents((columns,), full_core=False) if columns.size else None
    else:
        residual_variance = _residual_variance(model, plan, width)
        components = _scaled_components(model)
    effects = [_effects(model, index_set, mode) for mode in range(1, index_set.n_modes)]
    level_variance = float(model.bias_prior_variances[0])
    average_variance = level_variance  # of averages of rows of the first mode, which are a sample
    if components is not None and not plan.with_pairs:  # errors of biases do not contain these
        effects, average_variance = _with_sampled_weights(
            effects, components, index_set, level_variance
        )
    average, error = _average(model, index_set)
    n_rows = max(int((index_set.counts[0] > 0).sum()), 1)
    state = {
        "mean_": model.mean, "biases_": model.biases, "factors_": model.factors, "_model": model,
        "perturbation_": plan.perturbation,
        "_shared": SharedModel(
            level=model.mean, noise_variance=residual_variance, unit_mode=0, effects=effects,
            components=components, level_variance=level_variance,
            level_error=math.hypot(error, math.sqrt(average_variance / n_rows)),
        ),
        "n_iter_": plan.n_steps or model.n_iter,
    }  # fmt: skip
    if isinstance(model, CPCompletion):
        state["weights_"] = model.weights
    else:
        state["core_"] = model.core
    warnings: list[Warning] = [] if model.converged else [ConvergenceWarning(NOT_SETTLED)]
    # Values that are clamped to one end show no components.
    if components is None and is_at_end(average - ask.public("middle"), error, width / 2):
        warnings.append(DoubtfulParameterWarning(AT_EDGE))
    return FitResult(state, tuple(warnings))


def _residual_variance(model: EntryModel, plan: EntryPlan, width: float) -> float:
    """Variance of values about the model, without the noise that was added to them.

    Where that noise exceeds the assumed variance, it is the assumed one: a difference would be
    noise alone.
    """
    assumed = (width * ASSUMED.residual) ** 2
    noise_variance = 0.0
    if plan.perturbation in ("input", "output"):
        spent = plan.releases.cost_of(Entries.name).epsilon
        noise_variance = (width * piecewise_deviation(spent)) ** 2
    if noise_variance > assumed:
        return assumed
    return max(model.noise_variance - noise_variance, LEAST_RESIDUAL * assumed)


def _average(model: EntryModel, index_set: IndexSet) -> tuple[float, float]:
    """Average of all values, computed from the mean and biases, and its standard error."""
    n, average = index_set.n_entries, model.mean
    variance = model.noise_variance / n
    of_modes = zip(index_set.counts, model.biases, model.bias_variances, strict=True)
    for counts, biases, variances in of_modes:
        average += float(counts @ biases) / n
        variance += float(np.square(counts / n) @ variances)
    return average, math.sqrt(variance)


def _fit_by_input(ask: Session, options: ModelOptions) -> EntryModel:
    """Model fitted to released values, whose noise variance is known."""
    index_set = ask.public("index_set")
    noisy = ask(Entries(ask.public("half"))).as_sum()
    # Noise of the piecewise mechanism depends on the value: take its variance in the middle.
    variance = noisy.sigma**2
    # The list holds the only reference, and `pop` hands it over: the fit can free these values,
    # which are a large part of all memory.
    released = [noisy.value + ask.public("middle")]
    del noisy
    rng = options.random_state
    max_iter = SWEEPS if options.max_iter is None else options.max_iter
    if options.full_core:
        return complete_tucker(
            index_set, released.pop(), options.ranks,
            noise_variance=variance, max_iter=max_iter, random_state=rng,
        )  # fmt: skip
    return complete_cp(
        index_set, released.pop(), min(options.ranks),
        noise_variance=variance, max_iter=max_iter, random_state=rng,
    )  # fmt: skip


def _fit_by_sufficient_statistics(ask: Session, options: ModelOptions) -> EntryModel:
    """Model of mean and biases alone, from released sums of rows and of squares."""
    index_set, half = ask.public("index_set"), ask.public("half")
    # Features come first: their work arrays are freed before there are weights of entries.
    features = incidence_features(index_set)
    weights = index_set.balanced_weights()
    query = RowSums(index_set, weights, half)
    noisy = ask(query).as_sum()
    *sums, squares = np.split(noisy.value, np.cumsum(index_set.shape))
    per_value = 1 / (query.square_weight * index_set.n_entries)
    model = fit_row_sums(
        index_set, sums, list(weights.T), noisy.sigma**2, (2 * half * ASSUMED.residual) ** 2,
        center=ask.public("middle"), mean_variance=half**2 / 3, features=features,
        mean_square=(float(squares[0]) * per_value, (noisy.sigma * per_value) ** 2),
    )  # fmt: skip
    return tucker_of_cp(model, options.ranks) if options.full_core else model


def _fit_by_output(ask: Session, options: ModelOptions) -> EntryModel:
    """Model of released values, its last factor averaged with a released ridge regression."""
    model, half = _fit_by_input(ask, options), ask.public("half")
    index_set: IndexSet = ask.public("index_set")
    mode = index_set.n_modes - 1
    core = None if isinstance(model, CPCompletion) else model.core
    rows = Jacobian(index_set, model.factors, core).rows(mode)
    # Without components, or if noise made numbers that no query allows, keep the model of released
    # values. These alone decide it, so that leaving out a release that is paid tells nothing more.
    if not 0 < np.abs(rows).max(initial=0.0) <= LARGEST**0.5:
        return model
    # Derivatives in the last factor leave CP's weights out: multiply the factor by them, which then
    # has the unit of values. In a Tucker model the core has it.
    last, unit = model.factors[-1], 1.0
    if isinstance(model, CPCompletion):
        last, unit = last * model.weights, half
    residual = max(model.noise_variance, (2 * half * ASSUMED.residual) ** 2)
    # Prior variance of each column; the ridge divides by it, so that it must not be 0.
    prior = np.mean(last**2, axis=0)
    ridge = residual / np.maximum(prior, max(1e-6 * float(prior.max()), (1e-9 * unit) ** 2))
    query = RidgeBlock(index_set, mode, rows, ridge, half)
    noisy = ask(query).as_sum()
    # The regression is linear in the values: subtract the part of mean and biases, which is public.
    offsets = model.predict(index_set.coordinates) - ask.public("middle")
    offsets -= np.sum(rows * last[index_set.rows(mode)], axis=1)
    released = noisy.value * query.scales[:, None] - query.solved(offsets)
    # Weights by precision: the new factor errs by its noise, the former one is taken to err by the
    # prior variance.
    weight_of_new = prior / (prior + (noisy.sigma * query.scales)[:, None] ** 2)
    factors = [*model.factors[:-1], weight_of_new * released + (1 - weight_of_new) * last]
    if isinstance(model, CPCompletion):
        return with_factors(model, factors)
    return orthonormalised(model, options.ranks, factors, model.core, model.unit_covariance)


def release_pair_components(
    ask: Session, model: EntryModel, options: ModelOptions
) -> tuple[Floats, float]:
    """Release sums over rows of products of two columns' residuals, and fit components to them.

    Returns loadings of the columns, (n_columns, r), and the residual variance that they leave.
    """
    index_set, half = ask.public("index_set"), ask.public("half")
    # At least the assumed deviation: with smaller clips errors of predictions would look like
    # components.
    residual = max(math.sqrt(model.noise_variance), 2 * half * ASSUMED.residual)
    clip = residual_clip(residual, half)
    predictions = index_set.at_entries(model.biases) + (model.mean - ask.public("middle"))
    # With these weights a value moves sums as far in any row, by L2, however many others it has.
    others = np.maximum(index_set.counts[0] - 1.0, 1.0)
    weights = np.sqrt(float(others.min()) / others)
    query = EntryPairs(index_set, predictions, weights, clip * residual, half)
    noisy = ask(query).as_sum()
    # Symmetric tables of pairs of columns: released sums, and sums if all residuals were 1 clip.
    n = index_set.shape[1]
    sums, counts = np.zeros((2, n, n))
    upper = np.triu_indices(n, 1)
    sums[upper] = sums.T[upper] = noisy.value
    counts[upper] = counts.T[upper] = query.counts()
    # Errors of row biases move all residuals of a row, as a component with equal loadings would:
    # subtract their expected products.
    bias_variance = float(index_set.counts[0] / index_set.n_entries @ model.bias_variances[0])
    response = clipped_response(clip, residual) ** 2
    # Beside the released noise, products vary as residuals do.
    product_variance = clipped_variance(clip) ** 2 * float(counts.mean())
    loadings = components_of_pairs(
        sums - counts * (response * bias_variance), counts, response,
        math.hypot(noisy.sigma, math.sqrt(product_variance)), min(options.ranks),
    )  # fmt: skip
    explained = float((index_set.counts[1] / index_set.n_entries @ loadings**2).sum())
    return loadings, unexplained_variance(math.sqrt(model.noise_variance), explained)


def with_columns(model: CPCompletion, loadings: Floats) -> CPCompletion:
    """Copy of a matrix's CP model with components of these `loadings` of columns, 0 for rows."""
    norms = np.linalg.norm(loadings, axis=0)
    rows = np.zeros((len(model.biases[0]), len(norms)))
    factors = [rows, loadings / np.where(norms > 0, norms, 1.0)]
    variances = np.stack([np.mean(factor**2, axis=0) for factor in factors])
    return replace(model, factors=factors, weights=norms, factor_prior_variances=variances)


def _effects(model: EntryModel, index_set: IndexSet, mode: int) -> SharedEffects:
    """Posterior of the biases of a mode, and popularity of its rows by their numbers of entries."""
    counts = index_set.counts[mode]
    prior_variance = float(model.bias_prior_variances[mode])
    variances = np.where(counts > 0, model.bias_variances[mode], prior_variance)
    # Rows without entries get the popularity of rows with one.
    mean = max(float(counts.mean()), 1e-100)
    popularity = 0.5 * np.log(np.maximum(counts, 1) / mean)
    return SharedEffects(model.biases[mode], variances, popularity, prior_variance)


def _with_sampled_weights(
    effects: Sequence[SharedEffects], components: SharedComponents, index_set: IndexSet,
    level_variance: float,
) -> tuple[list[SharedEffects], float]:  # fmt: skip
    """Effects whose errors also count the sampling of weights of rows of the first mode.

    Also returns the variance of the average values of these rows.
    """
    n_rows = int((index_set.counts[0] > 0).sum())
    shares = [counts / index_set.n_entries for counts in index_set.counts[1:]]
    averages = [components.averages(place, shares) for place in range(len(effects))]
    mean = shares[0] @ averages[0]  # over all cells, as of any mode
    counted = [
        replace(of_mode, variances=of_mode.variances + np.square(own - mean).sum(axis=1) / n_rows)
        for of_mode, own in zip(effects, averages, strict=True)
    ]
    return counted, level_variance + float(mean @ mean)


def _scaled_components(model: EntryModel) -> SharedComponents | None:
    """Factors of all modes but the first, scaled so that weights of its rows have variance 1.

    None if the model has no components.
    """
    factors = list(model.factors[1:])
    if isinstance(model, CPCompletion):
        positive = model.weights > 0
        scales = (model.weights * np.sqrt(model.factor_prior_variances[0]))[positive]
        factors = [factor[:, positive] for factor in factors]
        factors[0] = factors[0] * scales
        return SharedComponents(tuple(factors), full_core=False) if positive.any() else None
    # Rows of the first factor have covariance V diag(d) V': they are V diag(d)^(1/2) times weights
    # of variance 1. `mixing` is the core times that matrix.
    variances, axes = np.linalg.eigh(model.unit_covariance)
    mixing = np.moveaxis(model.core, 0, -1).reshape(-1, len(axes)) @ axes
    mixing *= np.sqrt(np.maximum(variances, 0.0))
    nonzero = np.abs(mixing).max(axis=0) > 0
    if not nonzero.any():
        return None
    return SharedComponents(tuple(factors), full_core=True, mixing=mixing[:, nonzero])
