"""Mixtures to which EM steps lead: they change no released score beyond noise."""

from typing import NamedTuple

import numpy as np

from sktensor_dp.mixtures.gaussians import Gaussians
from sktensor_dp.mixtures.m_step import MeanScores, StepNoise
from sktensor_dp.mixtures.observed_information import shape_entries
from sktensor_dp.mixtures.uncertainty import (
    NoiseOfScores,
    directions,
    estimated,
    information_of,
    moved_by,
    moved_from,
    stretched,
    unstretched,
)
from sktensor_dp.tensor.arrays import Floats

# Largest move at once of a relative weight, a whitened mean or an eigenvalue of a shape; least one
# that is followed by another; and the most moves.
LONGEST, SHORTEST, MOST_MOVES = 0.5, 0.02, 8
# Number of rows that are drawn for each parameter: for moves fewer than for errors.
ROWS = 5


def given_mixture(scores: MeanScores, model: Gaussians) -> Gaussians:
    """Mixture of the mean parameters that steps were given, with columns as those of `model`."""
    weights, means, covariances = scores.given
    return Gaussians(weights / weights.sum(), means, covariances, nonnormal=model.nonnormal)


class Settled(NamedTuple):
    """Mixture to which steps lead, what they were given, and the noise of their mean scores."""

    model: Gaussians
    given: Gaussians
    noise: NoiseOfScores


def fixed_point(
    later: MeanScores, earlier: MeanScores | None, noise: StepNoise, model: Gaussians,
    observed: Floats, n_rows: int, kind: str,
) -> Settled:  # fmt: skip
    """Likeliest mixture by mean scores of later and earlier steps; `noise` is that of one step.

    Steps stop far from where they lead if groups overlap. Rows of the mixture, with shares
    `observed` of cells, would have the released scores in that which steps were given. From there
    moves follow Newton's method.
    """
    given = start = given_mixture(later, model)
    scores = _whitened_scores(later, given)
    information = information_of(given, given, observed, np.random.default_rng(0), ROWS)
    along, by = directions(given, kind), NoiseOfScores(noise.times(later.n_steps**-0.5), 0.0, 0.0)
    if earlier is not None:
        way = moved_from(given_mixture(earlier, model), given).ravel()
        by = by._replace(ratio=earlier.n_steps / later.n_steps, apart=float(np.linalg.norm(way)))
        beside = _whitened_scores(earlier, given) - information.of_scores @ way - scores
        scores = scores + along @ (by.combined(information, given, kind)[1] @ (along.T @ beside))
    for _ in range(MOST_MOVES):
        found = estimated(information, (given, start), by, n_rows, kind)
        here = directions(start, kind)
        away = here.T @ moved_from(given, start).ravel()
        left = along.T @ (scores - information.mean_scores)
        moves = here @ (found.gains @ left - found.covariance @ away)
        moves = moves.reshape(len(observed), -1)
        size = _size_of(start, moves)
        start = moved_by(start, moves * min(1.0, LONGEST / max(size, 1e-300)))
        if size < SHORTEST:
            break
        information = information_of(start, given, observed, np.random.default_rng(0), ROWS)
    return Settled(start, given, by)


def _whitened_scores(scores: MeanScores, given: Gaussians) -> Floats:
    """Scores in standard errors by a labelled row, as `moved_from` has moves; as one vector."""
    whiteners, weights = given.whiteners, given.weights
    shifts = given.stretches * np.einsum("jab,jb->ja", whiteners, scores.of_means)
    shapes = scores.of_covariances
    if len(shapes) < len(weights):  # those of all groups add up to it
        shapes = weights[:, None, None] * shapes
    entries = shape_entries(stretched(whiteners @ shapes @ whiteners.swapaxes(1, 2), given))
    found = np.hstack([scores.of_weights[:, None], shifts, entries])
    return np.asarray((found / np.sqrt(weights)[:, None]).ravel())


def _size_of(model: Gaussians, moves: Floats) -> float:
    """Largest move of a relative weight, a whitened mean or an eigenvalue of a shape."""
    d, moves = model.means.shape[1], moves / np.sqrt(model.weights)[:, None]
    lengths = np.linalg.norm(moves[:, 1 : 1 + d] / model.stretches, axis=1)
    values = np.linalg.eigvalsh(unstretched(moves[:, 1 + d :], model))
    return float(max(np.abs(moves[:, 0]).max(), lengths.max(), np.abs(values).max()))
