"""Errors of the weights and means of a mixture: sampling, noise, and overlap of the groups.

`gaussian_mixture/intervals.py` makes intervals of them.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from sktensor_dp.mixtures.gaussians import Gaussians
from sktensor_dp.mixtures.m_step import StepNoise
from sktensor_dp.mixtures.observed_information import (
    observed_information,
    shape_entries,
    shapes_of_entries,
)
from sktensor_dp.mixtures.scores import (
    Information,
    directions,
    information_of,
    n_scores,
    stretched,
)
from sktensor_dp.mixtures.shrinkage import LEAST_OF_LARGEST, clip_eigenvalues
from sktensor_dp.tensor.arrays import Floats, Integers

# Labelled rows for which the mixture that was given counts a priori. Not tuned: a tenth or ten
# times as many move estimates by a twentieth or a fifth of their errors.
PRIOR = 1.0
# Share of rows, near none, of which a value is taken to be excluded by that of another column.
EXCLUDED = 0.05
# Least information of a row on a score, relative to a labelled one, for inverses.
LEAST_PART = 1e-9


@dataclass(frozen=True, eq=False)
class MeanErrors:
    """Numbers by which errors of the weights and means of k groups are estimated."""

    # The first three as `NoiseOfScores` has them.
    noise: StepNoise
    ratio: float
    apart: float
    moved: Floats  # (k, n_scores / k): `moved_from` what steps were given; 0 for one group
    # (k, 1 + d): errors of weights and means by tails; for one group by noise, filling and steps.
    missed: Floats
    unsure: Floats  # (k, 1 + d): errors of moves to where steps lead, which tails may mislead
    spread: Floats  # (k, d): true over fitted deviation; 0 in columns where it is unknown
    observed: Floats  # (k, d): estimated shares of cells that are observed
    most_observed: Floats  # (k, d): the largest that noise allows

    def in_order(self, order: Integers) -> "MeanErrors":
        """Errors of the groups of the indices `order`."""
        of_groups = ("moved", "missed", "unsure", "spread", "observed", "most_observed")
        return replace(self, **{name: getattr(self, name)[order] for name in of_groups})


def moved_from(before: Gaussians, model: Gaussians) -> Floats:
    """Moves (k, n_scores / k) of parameters, over their standard errors by one labelled row.

    Columns are the weight, the mean and unique entries of the shape, in the frames of `model`.
    """
    weights, means = model.weights - before.weights, model.means - before.means
    shapes = np.eye(means.shape[1])
    shapes = shapes - model.whiteners @ before.covariances @ model.whiteners.swapaxes(1, 2)
    whitened = model.stretches * np.einsum("jab,jb->ja", model.whiteners, means)
    # Of one group the shape does not move the mean, by symmetry.
    entries = shape_entries(stretched(shapes, model)) * (len(weights) > 1)
    moved = np.hstack([weights[:, None] / model.weights[:, None], whitened, entries])
    return moved * np.sqrt(model.weights)[:, None]


def moved_by(model: Gaussians, moves: Floats) -> Gaussians:
    """Mixture whose parameters are those of `model` and `moves`, as `moved_from` has them."""
    d, moves = model.means.shape[1], moves / np.sqrt(model.weights)[:, None]
    shifts = moves[:, 1 : 1 + d] / model.stretches
    shapes = np.eye(d) + unstretched(moves[:, 1 + d :], model)
    # Variances of nonnormal columns, which moves lack, may have held it positive.
    shapes = np.array([clip_eigenvalues(one, LEAST_OF_LARGEST, np.inf) for one in shapes])
    covariances = model.factors @ shapes @ model.factors.swapaxes(1, 2)
    weights = model.weights * (1 + moves[:, 0])
    means = model.means + np.einsum("jab,jb->ja", model.factors, shifts)
    return Gaussians(weights / weights.sum(), means, covariances, nonnormal=model.nonnormal)


def unstretched(entries: Floats, model: Gaussians) -> Floats:
    """Whitened matrices (k, d, d) of which these are the `shape_entries` in true deviations."""
    found = shapes_of_entries(entries, model.means.shape[1])
    return found / model.stretches[:, :, None] / model.stretches[:, None]


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
    model: Gaussians, parts: MeanErrors, n_rows: int, covariance_type: str = "full"
) -> ParameterErrors:
    """Errors of weights and means of a mixture, by sampling of `n_rows` and as `parts` say.

    NaN in columns that have a `spread` of 0, and everywhere if all have.
    """
    model = _without_exclusions(model)
    k, d = model.means.shape
    is_unknown = parts.spread == 0
    given = moved_by(model, -parts.moved) if parts.moved.any() else model
    information = information_of(model, given, parts.observed)
    noise = NoiseOfScores(parts.noise, parts.ratio, parts.apart)
    score_errors = ScoreErrors.of(information, given, noise, n_rows, covariance_type)
    of_given, of_model = (directions(one, covariance_type) for one in (given, model))
    estimate = Estimate.by(score_errors, of_given.T @ information.derivatives @ of_model)
    # Rows that map parameters along `of_model` to weights and means. A parameter is a relative
    # change of a weight, or a whitened shift, times the root of the weight.
    roots, factors = np.sqrt(model.weights), model.factors / model.stretches[:, None]
    rows = of_model.toarray().reshape(k, n_scores(1, d), -1)[:, : 1 + d]
    of_means = factors @ rows[:, 1:] / roots[:, None, None]
    rows = np.concatenate([roots[:, None, None] * rows[:, :1], of_means], axis=1)
    products, by_sampling = estimate.products(rows.reshape(k * (1 + d), -1))
    wider = np.insert(np.maximum(parts.spread, 1), 0, 1.0, axis=1).ravel()
    products += (np.outer(wider, wider) - 1) * by_sampling
    if is_unknown.any():  # rows of a group may be of any other that they overlap with
        traded = _traded(model, information.overlaps).reshape(k * (1 + d), -1)
        products += traded @ traded.T
    products = products.reshape(k, 1 + d, k, 1 + d)
    for j, squares in enumerate(np.square(parts.missed) + np.square(parts.unsure)):
        products[j, :, j] += np.diag(squares)
    if k > 1 and (parts.observed < 1).any():  # of one group `missed` counts errors of shapes
        seen = observed_information(model, parts.observed)
        noise_of_entries = np.square(parts.noise.shape / model.weights) / 2
        by_shapes = seen.errors_by_shapes(noise_of_entries, 1 / (n_rows * model.weights))
        for j, factor in enumerate(model.factors):
            products[j, 1:, j, 1:] += factor @ by_shapes[j] @ factor.T
    unknown = 1 + np.flatnonzero(is_unknown.any(axis=0))
    products[:, unknown] = products[:, :, :, unknown] = np.nan
    if len(unknown) == d:  # no column says which group rows are of
        products[:] = np.nan
    return ParameterErrors(products)


def _without_exclusions(model: Gaussians) -> Gaussians:
    """Model without covariances of nonnormal columns if a value of one excludes one of another.

    Of categories of one column each excludes the others: drawn rows have no such values, and their
    scores tell averages from slopes so little that errors would be ten times too large.
    """
    if (columns := model.nonnormal) is None:
        return model
    places, n = columns.places, len(columns.places)
    means, low, high = model.means[:, places], columns.low[places], columns.high[places]
    effects = model.roots[:, places, -n:]
    slopes = effects / np.diagonal(effects, axis1=1, axis2=2)[:, None]
    # Moves (2, k, n, n) of averages by an end of a column before.
    moves = slopes * np.stack([low - means, high - means])[:, :, None]
    within = (means[:, :, None] + moves - low[:, None]) / (high - low)[:, None]
    is_far = np.abs(moves) > EXCLUDED * (high - low)[:, None]
    excludes = is_far & ((within < EXCLUDED) | (within > 1 - EXCLUDED))
    excludes &= np.tri(n, k=-1, dtype=bool)
    covariances = model.covariances.copy()
    covariances[np.ix_(np.arange(len(means)), places, places)] *= np.eye(n)
    if not excludes.any() or np.linalg.eigvalsh(covariances).min() <= 0:
        return model
    return Gaussians(model.weights, model.means, covariances, nonnormal=columns)


def _traded(model: Gaussians, overlaps: Floats) -> Floats:
    """Moves (k, 1 + d, k) of a group's weight and mean if it takes rows shared with another one."""
    moves = (model.means - model.means[:, None]).swapaxes(1, 2)  # (k, d, k)
    overlaps = overlaps * (1 - np.eye(len(overlaps)))
    moves = moves * (overlaps / model.weights[:, None])[:, None]
    return np.concatenate([overlaps[:, None], moves], axis=1)


class NoiseOfScores(NamedTuple):
    """Noise of mean scores of later steps, and how much earlier ones add to these."""

    later: StepNoise  # of means over later steps
    ratio: float  # of the numbers of earlier and of later steps
    apart: float  # length of the way from what earlier steps were given to what later ones were

    def combined(
        self, information: Information, given: Gaussians, covariance_type: str
    ) -> tuple[Floats, Any]:
        """Covariance (p, p) of noise, and the part (p, p) of earlier scores in averaged ones."""
        along = directions(given, covariance_type)
        deviations = _noise_of_scores(self.later, given, covariance_type)
        variances = np.square(deviations) / given.weights[:, None]
        later = along.T @ sparse.diags_array(variances.ravel()) @ along
        if self.ratio == 0 or not variances.any():
            return later.toarray(), 0 * later
        # Earlier scores less later ones have the noise of both. They are carried along the way by a
        # straight line: take as its error the way times the information that rows lack without
        # labels.
        lacks = np.eye(later.shape[0]) - along.T @ information.of_scores @ along
        difference = self.apart**2 * (lacks @ lacks.T)
        difference += (later * (1 + 1 / self.ratio)).toarray()
        _raise_diagonal(difference, LEAST_PART * float(variances.max()))
        part = later @ cho_solve(cho_factor(difference), np.eye(len(difference)))
        return later.toarray() - part @ later, part


class ScoreErrors(NamedTuple):
    """Errors of mean scores in a given mixture, along its p `directions`."""

    factor: Floats  # (p, p): lower Cholesky factor of their covariance
    by_chance: Floats  # (p, p): covariance by sampling alone

    @classmethod
    def of(
        cls, information: Information, given: Gaussians, noise: NoiseOfScores, n_rows: int,
        covariance_type: str,
    ) -> "ScoreErrors":  # fmt: skip
        """Errors by `noise`, and by sampling of `n_rows`."""
        along = directions(given, covariance_type)
        by_chance = along.T @ information.of_scores @ along / n_rows
        by_noise, _ = noise.combined(information, given, covariance_type)
        covariance = by_noise + by_chance
        _raise_diagonal(covariance, LEAST_PART / n_rows)
        return cls(np.linalg.cholesky(covariance), by_chance)

    def whitened(self, scores: Floats) -> Floats:
        """Scores (p,) or (p, m) with errors of variance 1."""
        return np.asarray(solve_triangular(self.factor, scores, lower=True))


class Estimate(NamedTuple):
    """Normal posterior of parameters, along `directions`, given mean scores.

    A priori the distance from the given mixture is one standard error by `PRIOR` labelled rows.
    """

    errors: ScoreErrors
    derivatives: Floats  # (p, p): of whitened mean scores in the parameters
    precision: tuple[Floats, bool]  # (p, p): of the parameters, as `cho_factor` has it

    @classmethod
    def by(cls, errors: ScoreErrors, derivatives: Floats) -> "Estimate":
        """Estimate by `derivatives` (p, p) of mean scores in the parameters."""
        whitened = errors.whitened(derivatives)
        precision = whitened.T @ whitened
        _raise_diagonal(precision, PRIOR)
        return cls(errors, whitened, cho_factor(precision))

    def slopes(self, whitened: Floats, away: Floats) -> Floats:
        """Slopes (p,) of the log-posterior for `whitened` scores and `away` from what was given."""
        return np.asarray(self.derivatives.T @ whitened - PRIOR * away)

    def solved(self, slopes: Floats) -> Floats:
        """Moves (p,) by these slopes of the log-posterior."""
        return np.asarray(cho_solve(self.precision, slopes))

    def products(self, rows: Floats) -> tuple[Floats, Floats]:
        """Covariances (m, m) of `rows` (m, p) times the parameters: in all, and by sampling."""
        solved = cho_solve(self.precision, rows.T)
        gains = solve_triangular(self.errors.factor.T, self.derivatives @ solved)
        return rows @ solved, gains.T @ self.errors.by_chance @ gains


def _raise_diagonal(matrix: Floats, by: float) -> None:
    np.fill_diagonal(matrix, np.diagonal(matrix) + by)


def _noise_of_scores(noise: StepNoise, model: Gaussians, covariance_type: str) -> Floats:
    """Deviations (k, n_scores / k) of noise on weights, means and unique entries of shapes."""
    k, d = model.means.shape
    if covariance_type == "spherical" or d == 1:
        shapes = noise.size * np.sqrt(d) * np.eye(d) * np.ones((k, 1, 1))
    else:
        # Noise of a shape that groups share is that of all together.
        of_each = noise.shape / (np.sqrt(k) if covariance_type == "tied" else 1.0)
        shapes = of_each * np.where(np.eye(d), 1, np.sqrt(0.5)) * np.ones((k, 1, 1))
    entries = shape_entries(stretched(shapes, model))
    return np.hstack([np.full((k, 1), noise.weight), noise.shift * model.stretches, entries])
