"""Mixtures to which EM steps lead: they change no released score beyond noise."""

from typing import NamedTuple

import numpy as np

from sktensor_dp.mixtures.gaussians import Gaussians
from sktensor_dp.mixtures.m_step import MeanScores, StepNoise
from sktensor_dp.mixtures.scores import (
    derivatives_of,
    directions,
    information_of,
    mean_scores,
    of_parts,
)
from sktensor_dp.mixtures.uncertainty import (
    PRIOR,
    Estimate,
    NoiseOfScores,
    ScoreErrors,
    moved_by,
    moved_from,
    unstretched,
)
from sktensor_dp.tensor.arrays import Floats, as_generator

# Largest move at once of a relative weight, a whitened mean or an eigenvalue of a shape; squared
# distance, in deviations of all errors together, below which no move follows; how often at most
# derivatives are taken again after the first; and for how many moves at most they are used.
LONGEST, NEAR, MOST_DERIVATIVES, MOST_MOVES = 0.5, 0.01, 3, 10


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

    Steps stop far from where they lead if groups overlap. Rows of the mixture found, with shares
    `observed` of cells, would have the released scores in the mixture that steps were given. Moves
    begin at the latter, by Newton's method.
    """
    given = given_mixture(later, model)
    scores = _scores_of(later, given)
    information = information_of(given, given, observed, as_generator(0))
    along, by = directions(given, kind), NoiseOfScores(noise.times(later.n_steps**-0.5), 0.0, 0.0)
    if earlier is not None:
        way = moved_from(given_mixture(earlier, model), given).ravel()
        by = by._replace(ratio=earlier.n_steps / later.n_steps, apart=float(np.linalg.norm(way)))
        beside = _scores_of(earlier, given) - information.of_scores @ way - scores
        scores = scores + along @ (by.combined(information, given, kind)[1] @ (along.T @ beside))
    errors = ScoreErrors.of(information, given, by, n_rows, kind)
    lead = _Lead(given, observed, scores, errors, kind)
    start, is_there = lead.followed(given, information.derivatives)
    for _ in range(0 if is_there else MOST_DERIVATIVES):
        start, is_there = lead.followed(start, derivatives_of(start, given, observed))
        if is_there:
            break
    return Settled(start, given, by)


class _Lead(NamedTuple):
    """Way from a `given` mixture to the likeliest one by mean `scores` (p,) in it."""

    given: Gaussians
    observed: Floats
    scores: Floats
    errors: ScoreErrors
    kind: str

    def left(self, model: Gaussians) -> tuple[Floats, Floats, float]:
        """Whitened scores that a mixture leaves, its distance, and the loss by both."""
        left = self.scores - mean_scores(model, self.given, self.observed)
        whitened = self.errors.whitened(directions(self.given, self.kind).T @ left)
        away = directions(model, self.kind).T @ moved_from(self.given, model).ravel()
        return whitened, away, float(whitened @ whitened + PRIOR * (away @ away))

    def followed(self, model: Gaussians, derivatives: Floats) -> tuple[Gaussians, bool]:
        """Move by `derivatives` at a model, as far as they lead; say whether that is to the end."""
        derivatives = directions(self.given, self.kind).T @ derivatives
        found = Estimate.by(self.errors, derivatives @ directions(model, self.kind))
        whitened, away, loss = self.left(model)
        past, part = list[_Step](), 1.0
        for _ in range(MOST_MOVES):
            slopes = found.slopes(whitened, away)
            newton = found.solved(slopes)
            if newton @ slopes < NEAR:
                return model, True
            moves = _accelerated(newton, slopes, past)
            of_all = (directions(model, self.kind) @ moves).reshape(len(self.observed), -1)
            within = part * min(1.0, LONGEST / _size_of(model, of_all))
            moved = moved_by(model, within * of_all)
            *left, new_loss = self.left(moved)
            if new_loss < loss:
                past.append(_Step(newton, slopes, within * moves))
                model, (whitened, away), loss, part = moved, left, new_loss, 1.0
            elif past:
                break
            else:
                part /= 4
        return model, False


class _Step(NamedTuple):
    """Move by derivatives of a former mixture, slopes there, and what was moved."""

    newton: Floats
    slopes: Floats
    moves: Floats


def _accelerated(newton: Floats, slopes: Floats, past: list[_Step]) -> Floats:
    """Moves that leave least by a straight line through those of `past` steps (Anderson, 1965)."""
    if not past:
        return newton
    before, of_slopes, moves = map(np.array, zip(*past, strict=True))
    changes = np.diff(np.vstack([before, newton]), axis=0)
    products = changes @ np.diff(np.vstack([of_slopes, slopes]), axis=0).T
    parts = np.linalg.lstsq((products + products.T) / 2, changes @ slopes, rcond=1e-6)[0]
    return np.asarray(newton - parts @ (moves + changes))


def _scores_of(scores: MeanScores, given: Gaussians) -> Floats:
    """Scores in standard errors by a labelled row, as `moved_from` has moves; as one vector."""
    whiteners, weights = given.whiteners, given.weights
    shifts = np.einsum("jab,jb->ja", whiteners, scores.of_means)
    shapes = scores.of_covariances
    if len(shapes) < len(weights):  # those of all groups add up to it
        shapes = weights[:, None, None] * shapes
    return of_parts(scores.of_weights, shifts, whiteners @ shapes @ whiteners.swapaxes(1, 2), given)


def _size_of(model: Gaussians, moves: Floats) -> float:
    """Largest move of a relative weight, a whitened mean or an eigenvalue of a shape."""
    d, moves = model.means.shape[1], moves / np.sqrt(model.weights)[:, None]
    lengths = np.linalg.norm(moves[:, 1 : 1 + d] / model.stretches, axis=1)
    values = np.linalg.eigvalsh(unstretched(moves[:, 1 + d :], model))
    return float(max(np.abs(moves[:, 0]).max(), lengths.max(), np.abs(values).max()))
