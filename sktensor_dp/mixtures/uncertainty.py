"""Errors of the weights and means of a mixture: sampling, noise, and overlap of the groups.

`gaussian_mixture/intervals.py` makes intervals of them.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sktensor_dp.mixtures.gaussians import (
    Gaussians,
    ObservedPart,
    log_odds,
    observed_part,
    patterns_of,
    responsibilities,
    whitened_rows,
)
from sktensor_dp.mixtures.m_step import StepNoise
from sktensor_dp.mixtures.observed_information import (
    ObservedInformation,
    missing_places,
    observed_information,
    shape_entries,
)
from sktensor_dp.tensor.arrays import Floats, Integers, spans
from sktensor_dp.tensor.symmetric import n_unique

# Numbers of rows that are drawn for the information matrix: for each of its parameters, but no
# fewer than `FEWEST`. Of these `ALIKE` have the same missing cells, and scores of `TOGETHER` are
# multiplied at once.
ROWS, FEWEST, ALIKE, TOGETHER = 20, 10_000, 4, 500
# Least part of the information of labelled rows: steps converge as slowly for any smaller one.
LEAST_PART = 1e-6


@dataclass(frozen=True, eq=False)
class MeanErrors:
    """Numbers by which errors of the means of k groups are estimated."""

    noise: StepNoise  # of averaged statistics
    moved: Floats  # (k, p): `moved_from`, of the last half of steps; 0 for one group
    # (k, 1 + d): errors of weights and means by tails; for one group by noise, filling and steps.
    missed: Floats
    spread: Floats  # (k, d): true over fitted deviation; 0 in columns where it is unknown
    observed: Floats  # (k, d): estimated shares of cells that are observed
    most_observed: Floats  # (k, d): the largest that noise allows

    def in_order(self, order: Integers) -> "MeanErrors":
        """Errors of the groups of the indices `order`."""
        of_groups = ("moved", "missed", "spread", "observed", "most_observed")
        return replace(self, **{name: getattr(self, name)[order] for name in of_groups})


def n_scores(k: int, d: int) -> int:
    """Number of parameters in the information matrix: weights, means and entries of shapes."""
    return k * (1 + d + n_unique(d, 2))


def moved_from(before: Gaussians, model: Gaussians) -> Floats:
    """Moves (k, n_scores / k) of parameters, over their standard errors by one labelled row.

    Columns are the weight, the mean and unique entries of the shape, in the frames of `model`.
    """
    weights, means = model.weights - before.weights, model.means - before.means
    shapes = np.eye(means.shape[1])
    shapes = shapes - model.whiteners @ before.covariances @ model.whiteners.swapaxes(1, 2)
    whitened = model.stretches * np.einsum("jab,jb->ja", model.whiteners, means)
    # Of one group the shape does not move the mean, by symmetry.
    entries = shape_entries(_stretched(shapes, model)) * (len(weights) > 1)
    moved = np.hstack([weights[:, None] / model.weights[:, None], whitened, entries])
    return moved * np.sqrt(model.weights)[:, None]


def _stretched(shapes: Floats, model: Gaussians) -> Floats:
    """Whitened matrices (..., k, d, d) in true deviations, without variances of nonnormal columns.

    These are no parameters, as they follow from the means.
    """
    shapes = shapes * model.stretches[:, :, None] * model.stretches[:, None]
    if model.nonnormal is not None:
        shapes[..., model.nonnormal.places, model.nonnormal.places] = 0.0
    return shapes


def observed_shares(model: Gaussians, squares: Floats, sigma: float, share: float) -> Floats:
    """Shares (d,) of the cells of each column that are observed, if `share` of all cells are.

    Ratios of released mean `squares` (d,), in which missing cells are 0, to those of the model are
    shrunk to their mean by their noise `sigma`. Results are means of normal laws cut at the least
    and largest share that a column can have.
    """
    variances = np.diagonal(model.covariances, axis1=1, axis2=2)
    expected = model.weights @ (np.square(model.means) + variances)
    ratios, noise_variances = squares / expected, np.square(sigma / expected)
    precision = np.square(expected) / np.square(expected).sum()  # of ratios, of sum 1
    mean = float(precision @ ratios)
    if mean <= 0:  # ratios are noise
        return np.full(len(ratios), share)
    variance = max(float(precision @ (np.square(ratios - mean) - noise_variances)), 0.0)
    kept_fractions = variance / np.maximum(variance + noise_variances, 1e-300)
    found = share * (1 + kept_fractions * (ratios / mean - 1))
    errors = kept_fractions * noise_variances * (share / mean) ** 2
    # The least share is that of a column which has all missing cells.
    points = np.linspace(max(1 - len(ratios) * (1 - share), 0.0), 1.0, 201)
    distances = np.square(points - found[:, None]) / np.maximum(errors, 1e-9)[:, None]
    odds = np.exp((distances.min(axis=1, keepdims=True) - distances) / 2)
    return np.asarray(odds @ points / odds.sum(axis=1))


@dataclass(frozen=True, eq=False)
class ParameterErrors:
    """Estimated errors of weights and means; NaN in columns where they are unknown."""

    products: Floats  # (k, 1 + d, k, 1 + d): mean products of errors, the weight's first

    @property
    def std(self) -> Floats:
        """Root mean squared errors (k, 1 + d)."""
        k, width = self.products.shape[:2]
        return np.sqrt(np.diagonal(self.products.reshape(k * width, -1))).reshape(k, width)

    def of_differences(self, first: Integers, second: Integers, scales: Floats) -> Floats:
        """Root mean squared errors (n,) of differences of two means in units of columns.

        `first` and `second` (2, n) are their groups and columns, `scales` (d,) those of columns.
        """
        (i, a), (j, b) = first, second
        means = self.products[:, 1:, :, 1:]
        squares = scales[a] ** 2 * means[i, a, i, a] + scales[b] ** 2 * means[j, b, j, b]
        squares -= 2 * scales[a] * scales[b] * means[i, a, j, b]
        return np.sqrt(np.maximum(squares, 0.0))  # sums are rounded

    def of_sums(self, columns: Integers) -> Floats:
        """Root mean squared errors (k,) of sums of the means of `columns` in each group."""
        means = self.products[:, 1:, :, 1:][:, columns][..., columns]
        return np.sqrt(np.einsum("jajb->j", means))


def parameter_errors(
    model: Gaussians, parts: MeanErrors, n_rows: int, rng: np.random.Generator
) -> ParameterErrors:
    """Errors of weights and means near the fixed point of EM.

    They are by sampling of `n_rows`, and as `parts` say; NaN where a `spread` of the column is 0.
    """
    k, d = model.means.shape
    is_unknown = parts.spread == 0
    information, overlaps = _information(model, parts, rng)
    # Of one group steps have no factors, and `missed` counts errors of shapes.
    seen = observed_information(model, parts.observed) if k > 1 else None
    steps = _errors_of_steps(model, parts, information, n_rows, seen)
    steps.by_sampling[:, 1:] *= np.maximum(parts.spread, 1)[:, :, None]
    # A score is a relative change of a weight, or a shift, times the weight's root.
    roots = np.sqrt(model.weights)[:, None, None]
    errors = np.concatenate([steps.unmoved[..., None], *steps[1:]], axis=2)
    factors = model.factors / model.stretches[:, None]
    errors = np.concatenate([roots * errors[:, :1], factors @ errors[:, 1:] / roots], axis=1)
    if is_unknown.any():  # how groups share its rows is not known: they may be any other's
        errors = np.concatenate([errors, _traded(model, overlaps)], axis=2)
    errors = errors.reshape(k * (1 + d), -1)
    products = (errors @ errors.T).reshape(k, 1 + d, k, 1 + d)
    for j, missed in enumerate(parts.missed):
        products[j, :, j] += np.diag(np.square(missed))
    if seen is not None:
        noise_of_entries = np.square(parts.noise.shape / model.weights) / 2
        by_shapes = seen.errors_by_shapes(noise_of_entries, 1 / (n_rows * model.weights))
        for j, factor in enumerate(model.factors):
            products[j, 1:, j, 1:] += factor @ by_shapes[j] @ factor.T
    unknown = 1 + np.flatnonzero(is_unknown.any(axis=0))
    products[:, unknown] = products[:, :, :, unknown] = np.nan
    if len(unknown) == d:  # no column says which group rows are of
        products[:] = np.nan
    return ParameterErrors(products)


def _traded(model: Gaussians, overlaps: Floats) -> Floats:
    """Moves (k, 1 + d, k) of weights and means if rows of a group are those of another."""
    moves = (model.means - model.means[:, None]).swapaxes(1, 2)  # (k, d, k)
    overlaps = overlaps * (1 - np.eye(len(overlaps)))
    moves = moves * (overlaps / model.weights[:, None])[:, None]
    return np.concatenate([overlaps[:, None], moves], axis=1)


def _strides(model: Gaussians, by: MeanErrors, seen: ObservedInformation | None) -> Floats:
    """Symmetric roots (k, p, p) of factors on steps: more than 1 on means with missing cells.

    Without information of what is `seen`, as of one group, there are none.
    """
    k, d = model.means.shape
    found = np.tile(np.eye(1 + d + n_unique(d, 2)), (k, 1, 1))
    if seen is None:
        return found
    gains = seen.gains_of_means(by.noise.shift / model.weights)
    values, vectors = np.linalg.eigh(gains)
    found[:, 1 : 1 + d, 1 : 1 + d] = (vectors * np.sqrt(values)[:, None]) @ vectors.swapaxes(1, 2)
    return found


class _StepErrors(NamedTuple):
    """Errors of relative weights and of whitened means, times the root of the weight."""

    unmoved: Floats  # (k, 1 + d): what steps are expected to have left
    by_unmoved: Floats  # (k, 1 + d, p): deviations of that, by each of p directions of scores
    by_sampling: Floats  # (k, 1 + d, p): deviations, by each direction
    by_noise: Floats  # (k, 1 + d, p): deviations, by the noise of each of p scores


def _errors_of_steps(
    model: Gaussians, by: MeanErrors, information: Floats, n_rows: int,
    seen: ObservedInformation | None,
) -> _StepErrors:  # fmt: skip
    """Errors of weights and means by EM steps near their fixed point.

    Moves by steps are multiplied by `strides`, their squared roots, where cells are missing. In an
    eigenvector of the `information` on these scales, rows without labels tell the part f of what
    labelled rows tell. A step of rate r leaves the part 1 - f r of an error, and all steps a part
    e. They add (1 - e) / f of the sampling error of scores, whose variance is f / n_rows. What is
    left follows from how far the second half of the steps `moved` beyond noise; the first may start
    far away.
    """
    k, d = model.means.shape
    # Scores of what is no parameter are 0: no step moves it.
    noise, width = by.noise, 1 + d + n_unique(d, 2)
    strides = _strides(model, by, seen)
    information = information.reshape(k, width, k, width)
    information = np.einsum("jab,jbic,icd->jaid", strides, information, strides)
    information = information.reshape(k * width, k * width)
    of_parameters = np.eye(len(information))[:, np.diagonal(information) > 0]
    values, vectors = np.linalg.eigh(of_parameters.T @ information @ of_parameters)
    vectors = of_parameters @ vectors
    parts = np.clip(values, LEAST_PART, 1.0)  # f, of each direction
    after = _after_steps(noise.rates, parts)
    strided = np.einsum("jab,jbc->jac", strides, vectors.reshape(k, width, -1))
    # Rows (k, 1 + d, p) of weights and means, without those of shapes.
    rows = strided[:, : 1 + d].copy()
    roots = np.sqrt(model.weights)  # weights add up to 1: they do not change along these
    rows[:, 0] -= np.outer(roots, roots @ rows[:, 0])
    shown = np.maximum(after.left_halfway - after.left, 1e-12)  # part of errors that moves show
    gains = rows * ((1 - after.left) / parts)
    noise_of_scores = (_noise_of_scores(noise, model) / roots[:, None]).ravel()
    of_noise = strided.reshape(k * width, -1).T * noise_of_scores
    noise_of_moves = after.noise_of_moves * np.square(of_noise).sum(axis=1)
    moved = np.linalg.solve(strides, by.moved[..., None]).ravel()
    drift, deviation = _drift(vectors.T @ moved, noise_of_moves, shown / np.sqrt(parts))
    return _StepErrors(
        rows @ (after.left / shown * drift),
        by_unmoved=rows * (after.left / shown * deviation),
        by_sampling=gains * np.sqrt(parts / n_rows),
        by_noise=(rows * np.sqrt(after.noise)) @ of_noise,
    )


def _drift(moved: Floats, noise: Floats, shown: Floats) -> tuple[Floats, Floats]:
    """Means and deviations (p,) of moves without the `noise` (variances), given `moved` (p,).

    A move is the part `shown` of an error. Errors are normal a priori, of one variance in all
    directions; each size of that variance is as likely.
    """
    if not noise.any():
        return moved, np.zeros_like(moved)
    noise = np.maximum(noise, 1e-9 * noise.max())
    scales = np.log(noise / shown**2)
    grid = np.exp(np.linspace(scales.min() - 4, min(scales.max(), scales.min() + 12) + 4, 60))
    of_moves = grid[:, None] * shown**2
    variances = of_moves + noise
    log_odds = -(np.log(variances / noise) + np.square(moved) / variances).sum(axis=1) / 2
    odds = np.exp(log_odds - log_odds.max())
    odds /= odds.sum()
    kept = of_moves / variances
    mean = odds @ kept
    spread = np.maximum(odds @ kept**2 - mean**2, 0.0)
    return mean * moved, np.sqrt(mean * noise + spread * moved**2)


class _AfterSteps(NamedTuple):
    """Errors after all EM steps, in directions of which rows tell parts (p,) of labelled rows."""

    left: Floats  # part that all steps leave of an error at their start
    left_halfway: Floats  # part that the first half of them leaves
    # Variances of noise, relative to that of a direction of which rows tell all: after all steps,
    # and of the move by the second half.
    noise: Floats
    noise_of_moves: Floats


def _after_steps(rates: Floats, parts: Floats) -> _AfterSteps:
    """Errors after steps of these `rates`, where rows tell `parts` f of what labelled rows tell."""
    left = left_halfway = np.ones(len(parts))
    noise = noise_halfway = np.zeros(len(parts))
    of_whole = 0.0
    for step, rate in enumerate(rates):
        if step == len(rates) // 2:
            left_halfway, noise_halfway = left, noise
        left = left * (1 - rate * parts)
        noise = noise * (1 - rate * parts) ** 2 + rate**2
        of_whole = of_whole * (1 - rate) ** 2 + rate**2
    kept = left / np.maximum(left_halfway, 1e-300)
    # Of the end less the middle, whose errors have the covariance `kept * noise_halfway`.
    of_moves = noise + (1 - 2 * kept) * noise_halfway
    return _AfterSteps(left, left_halfway, noise / of_whole, of_moves / of_whole)


def _noise_of_scores(noise: StepNoise, model: Gaussians) -> Floats:
    """Deviations (k, n_scores / k) of noise on weights, means and unique entries of shapes."""
    k, d = model.means.shape
    shapes = noise.shape * np.where(np.eye(d), 1, np.sqrt(0.5)) * np.ones((k, 1, 1))
    entries = shape_entries(_stretched(shapes, model))
    return np.hstack([np.full((k, 1), noise.weight), noise.shift * model.stretches, entries])


def _information(
    model: Gaussians, parts: MeanErrors, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Information matrix of a row on all scores, relative to that of a labelled row.

    Also returns mean products (k, k) of responsibilities. Cells are missing as `parts` say.
    """
    k, d = model.means.shape
    n_patterns = max(FEWEST, ROWS * n_scores(k, d)) // ALIKE
    information, overlaps = np.zeros((n_scores(k, d), n_scores(k, d))), np.zeros((k, k))
    held: list[Floats] = []  # scores that are not in `information` yet: small products are slow
    places = (np.arange(n_patterns) + 0.5) / n_patterns
    groups = np.minimum(np.searchsorted(model.weights.cumsum(), places), k - 1)
    places = missing_places(n_patterns, d, rng)
    for pattern, of_pattern in patterns_of(places < parts.observed[groups]):
        of_cells = observed_part(model.factors, model.log_scales, pattern, model.offsets)
        chosen = np.repeat(groups[of_pattern], ALIKE)
        for rows in spans(len(chosen), len(information)):
            drawn = model.sample(chosen[rows], rng)
            scores, probabilities = _scores(model, drawn, of_cells)
            held.append(scores.reshape(len(scores), -1))
            overlaps += probabilities.T @ probabilities
            if sum(map(len, held)) >= TOGETHER:
                stacked = np.concatenate(held)
                information += stacked.T @ stacked
                held.clear()
    stacked = np.concatenate([*held, np.zeros((1, len(information)))])
    information += stacked.T @ stacked
    return information / (ALIKE * n_patterns), overlaps / (ALIKE * n_patterns)


def _scores(model: Gaussians, rows: Floats, of_cells: ObservedPart) -> tuple[Floats, Floats]:
    """Scores of rows in weights, means and shapes, (n, k, n_scores / k); responsibilities (n, k).

    Scores of labelled rows are uncorrelated, of variance 1.
    """
    whitened = whitened_rows(rows, model.means, of_cells.whiteners)
    probabilities = responsibilities(of_cells.log_scales + log_odds(whitened, model.slopes))
    outer = whitened[..., :, None] * whitened[..., None, :]
    products = shape_entries(_stretched(outer - of_cells.projectors, model))
    # Responsibilities times 1, E y, and E yy' less its expectation, given the observed cells.
    ones = np.ones((*probabilities.shape, 1))
    shifts = model.stretches * whitened
    scores = np.concatenate([ones, shifts, products], axis=2) * probabilities[:, :, None]
    scores[:, :, 0] -= model.weights
    return scores / np.sqrt(model.weights)[:, None], probabilities
