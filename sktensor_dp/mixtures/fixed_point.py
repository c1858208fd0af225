"""Mixtures to which EM steps lead: their expected scores equal the released ones, up to noise."""

from typing import NamedTuple

import numpy as np

from sktensor_dp.mixtures.gaussians import Gaussians
from sktensor_dp.mixtures.m_step import MeanScores, StepNoise
from sktensor_dp.mixtures.scores import (
    derivatives_of,
    directions,
    information_of,
    mean_scores,
    standardised_scores,
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
from sktensor_dp.tensor.arrays import Floats

# Largest move at once of a relative weight, a whitened mean or an eigenvalue of a shape.
LONGEST = 0.5
# Squared distance, in deviations of all errors together, below which no move follows.
NEAR = 0.01
# How often derivatives are taken again after the first, and for how many moves, at most.
MOST_DERIVATIVES, MOST_MOVES = 3, 10


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
    observed: Floats, n_rows: int, covariance_type: str,
) -> Settled:  # fmt: skip
    """Likeliest mixture by mean scores of later and earlier steps; `noise` is that of one step.

    Steps stop far from where they lead if groups overlap. Rows of the mixture found, with shares
    `observed` of cells, would have the released scores in the mixture that steps were given. Moves
    begin at the latter, by Newton's method.
    """
    given = given_mixture(later, model)
    scores = _scores_of(later, given)
    information = information_of(given, given, observed)
    noise_of_scores = NoiseOfScores(noise.times(later.n_steps**-0.5), 0.0, 0.0)
    if earlier is not None:
        # Carry earlier scores to the mixture given later, by a straight line, and average both.
        way = moved_from(given_mixture(earlier, model), given).ravel()
        noise_of_scores = noise_of_scores._replace(
            ratio=earlier.n_steps / later.n_steps, apart=float(np.linalg.norm(way))
        )
        _, part = noise_of_scores.combined(information, given, covariance_type)
        difference = _scores_of(earlier, given) - information.of_scores @ way - scores
        along = directions(given, covariance_type)
        scores = scores + along @ (part @ (along.T @ difference))
    errors = ScoreErrors.of(information, given, noise_of_scores, n_rows, covariance_type)
    lead = _Lead(given, observed, scores, errors, covariance_type)
    found, is_there = lead.followed(given, information.derivatives)
    for _ in range(0 if is_there else MOST_DERIVATIVES):
        found, is_there = lead.followed(found, derivatives_of(found, given, observed))
        if is_there:
            break
    return Settled(found, given, noise_of_scores)


class _Lead(NamedTuple):
    """Way from a `given` mixture to the likeliest one by mean `scores` (n_scores,) in it."""

    given: Gaussians
    observed: Floats  # (k, d): shares of observed cells
    scores: Floats
    errors: ScoreErrors
    covariance_type: str

    def left(self, model: Gaussians) -> tuple[Floats, Floats, float]:
        """Whitened scores (p,) that a mixture leaves, its moves (p,) from `given`, and the loss.

        The loss is the sum of squares of both, which is least for the likeliest mixture.
        """
        left = self.scores - mean_scores(model, self.given, self.observed)
        whitened = self.errors.whitened(directions(self.given, self.covariance_type).T @ left)
        moves = moved_from(self.given, model).ravel()
        away = directions(model, self.covariance_type).T @ moves
        return whitened, away, float(whitened @ whitened + PRIOR * (away @ away))

    def followed(self, model: Gaussians, derivatives: Floats) -> tuple[Gaussians, bool]:
        """Move by `derivatives` at a model while the loss falls; True if no move is left.

        `derivatives` (n_scores, n_scores) are of mean scores in `given`.
        """
        derivatives = directions(self.given, self.covariance_type).T @ derivatives
        derivatives = derivatives @ directions(model, self.covariance_type)
        estimate = Estimate.by(self.errors, derivatives)
        whitened, away, loss = self.left(model)
        past, part = list[_Step](), 1.0
        for _ in range(MOST_MOVES):
            slopes = estimate.slopes(whitened, away)
            newton = estimate.solved(slopes)
            if newton @ slopes < NEAR:
                return model, True
            along = _accelerated(newton, slopes, past)
            moves = directions(model, self.covariance_type) @ along
            moves = moves.reshape(len(self.observed), -1)
            scale = part * min(1.0, LONGEST / _size_of(model, moves))
            moved = moved_by(model, scale * moves)
            new_whitened, new_away, new_loss = self.left(moved)
            if new_loss < loss:
                past.append(_Step(newton, slopes, scale * along))
                model, whitened, away, loss = moved, new_whitened, new_away, new_loss
                part = 1.0
            elif past:
                break
            else:  # a first move that is too long
                part /= 4
        return model, False


class _Step(NamedTuple):
    """Move of a mixture; arrays (p,) along `directions`."""

    newton: Floats  # Newton's move at the mixture before
    slopes: Floats  # of the log-posterior there
    moves: Floats  # what was moved


def _accelerated(newton: Floats, slopes: Floats, past: list[_Step]) -> Floats:
    """Moves that leave least by a straight line through those of `past` steps (Anderson, 1965)."""
    if not past:
        return newton
    newtons, past_slopes, moves = map(np.array, zip(*past, strict=True))
    changes = np.diff(np.vstack([newtons, newton]), axis=0)
    products = changes @ np.diff(np.vstack([past_slopes, slopes]), axis=0).T
    parts = np.linalg.lstsq((products + products.T) / 2, changes @ slopes, rcond=1e-6)[0]
    return np.asarray(newton - parts @ (moves + changes))


def _scores_of(scores: MeanScores, given: Gaussians) -> Floats:
    """Scores (n_scores,) in units of `standardised_scores`."""
    whiteners, weights = given.whiteners, given.weights
    shifts = np.einsum("jab,jb->ja", whiteners, scores.of_means)
    shapes = scores.of_covariances
    if len(shapes) < len(weights):  # those of all groups add up to it
        shapes = weights[:, None, None] * shapes
    shapes = whiteners @ shapes @ whiteners.swapaxes(1, 2)
    return standardised_scores(scores.of_weights, shifts, shapes, given)


def _size_of(model: Gaussians, moves: Floats) -> float:
    """Largest move of a relative weight, a whitened mean or an eigenvalue of a shape."""
    d, moves = model.means.shape[1], moves / np.sqrt(model.weights)[:, None]
    lengths = np.linalg.norm(moves[:, 1 : 1 + d] / model.stretches, axis=1)
    values = np.linalg.eigvalsh(unstretched(moves[:, 1 + d :], model))
    return float(max(np.abs(moves[:, 0]).max(), lengths.max(), np.abs(values).max()))
