"""Errors of the weights and means of a mixture: sampling, noise, and overlap of the groups.

`gaussian_mixture/intervals.py` makes intervals of them.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import null_space

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
    missing_places,
    observed_information,
    shape_entries,
    shapes_of_entries,
)
from sktensor_dp.mixtures.shrinkage import LEAST_OF_LARGEST, clip_eigenvalues
from sktensor_dp.tensor.arrays import Floats, Integers, spans
from sktensor_dp.tensor.symmetric import n_unique

# Numbers of rows that are drawn for the information matrix: for each of its parameters, but no
# fewer than `FEWEST`. Of these `ALIKE` have the same missing cells, and scores of `TOGETHER` are
# multiplied at once.
ROWS, FEWEST, ALIKE, TOGETHER = 20, 10_000, 4, 500


@dataclass(frozen=True, eq=False)
class MeanErrors:
    """Numbers by which errors of the means of k groups are estimated."""

    noise: StepNoise  # of averaged statistics
    ratio: float  # of the numbers of earlier and of later steps, as `NoiseOfScores` has it
    apart: float  # of what they were given
    moved: Floats  # (k, p): `moved_from` what steps were given, on average; 0 for one group
    # (k, 1 + d): errors of weights and means by tails; for one group by noise, filling and steps.
    missed: Floats
    unsure: Floats  # (k, 1 + d): errors of going where steps lead, as tails are possible
    spread: Floats  # (k, d): true over fitted deviation; 0 in columns where it is unknown
    observed: Floats  # (k, d): estimated shares of cells that are observed
    most_observed: Floats  # (k, d): the largest that noise allows

    @property
    def noise_of_scores(self) -> "NoiseOfScores":
        """Noise of mean scores."""
        return NoiseOfScores(self.noise, self.ratio, self.apart)

    def in_order(self, order: Integers) -> "MeanErrors":
        """Errors of the groups of the indices `order`."""
        of_groups = ("moved", "missed", "unsure", "spread", "observed", "most_observed")
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


def stretched(shapes: Floats, model: Gaussians) -> Floats:
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
    model: Gaussians, parts: MeanErrors, n_rows: int, rng: np.random.Generator, kind: str = "full"
) -> ParameterErrors:
    """Errors of weights and means of a mixture whose covariances are of this `kind`.

    They are by sampling of `n_rows`, and as `parts` say; NaN where a `spread` of the column is 0.
    """
    k, d = model.means.shape
    is_unknown = parts.spread == 0
    given = moved_by(model, -parts.moved) if parts.moved.any() else model
    information = information_of(model, given, parts.observed, rng)
    by = parts.noise_of_scores
    found = estimated(information, (given, model), by, n_rows, kind)
    # A score is a relative change of a weight, or a shift, times the weight's root.
    roots, factors = np.sqrt(model.weights), model.factors / model.stretches[:, None]
    rows = directions(model, kind).reshape(k, n_scores(1, d), -1)[:, : 1 + d]
    of_means = factors @ rows[:, 1:] / roots[:, None, None]
    rows = np.concatenate([roots[:, None, None] * rows[:, :1], of_means], axis=1)
    wider = rows.copy()
    wider[:, 1:] *= np.maximum(parts.spread, 1)[:, :, None]
    rows, wider = rows.reshape(k * (1 + d), -1), wider.reshape(k * (1 + d), -1)
    products = rows @ (found.covariance - found.by_sampling) @ rows.T
    products += wider @ found.by_sampling @ wider.T
    if is_unknown.any():  # how groups share its rows is not known: they may be any other's
        traded = _traded(model, information.overlaps).reshape(k * (1 + d), -1)
        products += traded @ traded.T
    products = products.reshape(k, 1 + d, k, 1 + d)
    for j, squares in enumerate(np.square(parts.missed) + np.square(parts.unsure)):
        products[j, :, j] += np.diag(squares)
    if k > 1:  # of one group `missed` counts errors of shapes
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


def _traded(model: Gaussians, overlaps: Floats) -> Floats:
    """Moves (k, 1 + d, k) of weights and means if rows of a group are those of another."""
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
        self, information: "Information", given: Gaussians, kind: str
    ) -> tuple[Floats, Floats]:
        """Covariance (p, p) of noise, and part (p, p) that earlier steps have in mean scores.

        Where rows tell less than labelled ones, scores of mixtures that are far off are not those
        that a straight line gives: these errors are taken to be as large as the way.
        """
        along = directions(given, kind)
        noise = _noise_of_scores(self.later, given, kind) / np.sqrt(given.weights)[:, None]
        later = (along.T * np.square(noise.ravel())) @ along
        if self.ratio == 0 or not later.any():
            return later, np.zeros_like(later)
        lacks = np.eye(len(later)) - along.T @ information.of_scores @ along
        earlier = later / self.ratio + self.apart**2 * lacks @ lacks.T
        part = np.linalg.solve(later + earlier, later).T
        return np.asarray(later - part @ later), np.asarray(part)


class Estimate(NamedTuple):
    """Parameters by mean scores, as a Bayesian has them: in `directions` of the parameters."""

    gains: Floats  # (p, p): moves of parameters for each score
    covariance: Floats  # (p, p): of all errors
    by_sampling: Floats  # (p, p): part of it by sampling of rows


def estimated(
    information: "Information", given_and_model: tuple[Gaussians, Gaussians],
    noise: NoiseOfScores,
    n_rows: int, kind: str,
) -> Estimate:  # fmt: skip
    """Estimate of the parameters of a model near mean scores in a given one, with this `noise`.

    Where groups overlap, or cells are missing, rows tell less of a direction than labelled ones:
    noise and sampling err by as much more. Distances from what was given are a priori one standard
    error by one labelled row.
    """
    given, model = given_and_model
    of_scores, of_parameters = directions(given, kind), directions(model, kind)
    by_chance = of_scores.T @ information.of_scores @ of_scores / n_rows
    variances = noise.combined(information, given, kind)[0] + by_chance
    derivatives = of_scores.T @ information.derivatives @ of_parameters
    weighted = np.linalg.solve(variances, derivatives)
    covariance = np.linalg.inv(derivatives.T @ weighted + np.eye(len(variances)))
    covariance = (covariance + covariance.T) / 2
    gains = covariance @ weighted.T
    return Estimate(gains, covariance, gains @ by_chance @ gains.T)


def directions(model: Gaussians, kind: str) -> Floats:
    """Orthonormal directions (n_scores, p) in which parameters of this `kind` can move.

    Weights add up to 1, and variances of nonnormal columns follow from means.
    """
    k, d = model.means.shape
    first, second = np.triu_indices(d)
    of_weights = null_space(np.sqrt(model.weights)[None])
    of_shapes = np.eye(len(first))
    if kind in ("diag", "spherical"):
        of_shapes = of_shapes[:, first == second]
    if kind == "spherical":
        of_shapes = of_shapes.sum(axis=1, keepdims=True) / np.sqrt(d)
    elif model.nonnormal is not None:
        follows = (first == second) & np.isin(first, model.nonnormal.places)
        of_shapes = of_shapes[:, (of_shapes[follows] == 0).all(axis=0)]
    of_groups = np.sqrt(model.weights)[:, None] if kind == "tied" else np.eye(k)
    n_weights, n_shapes = of_weights.shape[1], of_groups.shape[1] * of_shapes.shape[1]
    found = np.zeros((k, n_scores(1, d), n_weights + k * d + n_shapes))
    found[:, 0, :n_weights] = of_weights
    found[:, 1 : 1 + d, n_weights : n_weights + k * d] = np.eye(k * d).reshape(k, d, -1)
    found[:, 1 + d :, n_weights + k * d :] = np.kron(of_groups, of_shapes).reshape(
        k, len(first), n_shapes
    )
    return found.reshape(n_scores(k, d), -1)


def _noise_of_scores(noise: StepNoise, model: Gaussians, kind: str) -> Floats:
    """Deviations (k, n_scores / k) of noise on weights, means and unique entries of shapes."""
    k, d = model.means.shape
    if kind == "spherical":
        shapes = noise.size * np.sqrt(d) * np.eye(d) * np.ones((k, 1, 1))
    else:
        # Noise of a shape that groups share is that of all together.
        of_each = noise.shape / (np.sqrt(k) if kind == "tied" else 1.0)
        shapes = of_each * np.where(np.eye(d), 1, np.sqrt(0.5)) * np.ones((k, 1, 1))
    entries = shape_entries(stretched(shapes, model))
    return np.hstack([np.full((k, 1), noise.weight), noise.shift * model.stretches, entries])


class Information(NamedTuple):
    """Means over rows drawn of a model of their scores in it, and in a given mixture."""

    of_scores: Floats  # (p, p): products of scores in the given mixture
    derivatives: Floats  # (p, p): of mean scores there in the parameters of the model
    mean_scores: Floats  # (p,): there
    overlaps: Floats  # (k, k): products of responsibilities


def information_of(
    model: Gaussians, given: Gaussians, observed: Floats, rng: np.random.Generator,
    n_each: int = ROWS,
) -> Information:  # fmt: skip
    """Information of a row on all scores in a `given` mixture, relative to that of a labelled row.

    Rows have shares `observed` (k, d) of cells; `n_each` are drawn for each parameter.
    """
    (k, d), p = model.means.shape, n_scores(*model.means.shape)
    n_patterns = max(FEWEST, n_each * p) // ALIKE
    mixtures = (given,) if given is model else (given, model)
    products, sums = np.zeros((p, len(mixtures) * p)), np.zeros((len(mixtures), p))
    overlaps = np.zeros((k, k))
    held: list[Floats] = []  # scores that are not in `products` yet: small products are slow

    def add_held() -> None:
        stacked = np.concatenate([*held, np.zeros((1, len(mixtures), p))])
        np.add(products, stacked[:, 0].T @ stacked.reshape(len(stacked), -1), out=products)
        np.add(sums, stacked.sum(axis=0), out=sums)
        held.clear()

    places = (np.arange(n_patterns) + 0.5) / n_patterns
    groups = np.minimum(np.searchsorted(model.weights.cumsum(), places), k - 1)
    places = missing_places(n_patterns, d, rng)
    for pattern, of_pattern in patterns_of(places < observed[groups]):
        of_cells = [observed_part(m.factors, m.log_scales, pattern, m.offsets) for m in mixtures]
        chosen = np.repeat(groups[of_pattern], ALIKE)
        for rows in spans(len(chosen), len(mixtures) * p):
            drawn, found = model.sample(chosen[rows], rng), list[Floats]()
            for mixture, cells in zip(mixtures, of_cells, strict=True):
                scores, probabilities = _scores(mixture, drawn, cells)
                found.append(scores.reshape(len(scores), -1))
            held.append(np.stack(found, axis=1))
            overlaps += probabilities.T @ probabilities
            if sum(map(len, held)) >= TOGETHER:
                add_held()
    add_held()
    n = ALIKE * n_patterns
    of_scores, derivatives = products[:, :p] / n, products[:, -p:] / n
    # Scores in the model have the mean 0 but for chance.
    mean_scores = (sums[0] - derivatives @ sums[-1]) / n * (given is not model)
    return Information(of_scores, derivatives, mean_scores, overlaps / n)


def _scores(model: Gaussians, rows: Floats, of_cells: ObservedPart) -> tuple[Floats, Floats]:
    """Scores of rows in weights, means and shapes, (n, k, n_scores / k); responsibilities (n, k).

    Scores of labelled rows are uncorrelated, of variance 1.
    """
    whitened = whitened_rows(rows, model.means, of_cells.whiteners)
    probabilities = responsibilities(of_cells.log_scales + log_odds(whitened, model.slopes))
    outer = whitened[..., :, None] * whitened[..., None, :]
    products = shape_entries(stretched(outer - of_cells.projectors, model))
    # Responsibilities times 1, E y, and E yy' less its expectation, given the observed cells.
    ones = np.ones((*probabilities.shape, 1))
    shifts = model.stretches * whitened
    scores = np.concatenate([ones, shifts, products], axis=2) * probabilities[:, :, None]
    scores[:, :, 0] -= model.weights
    return scores / np.sqrt(model.weights)[:, None], probabilities
