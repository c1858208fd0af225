"""Means and variances of one group, of rows scaled to `data_norm`, few of which are clipped."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from sktensor_dp.gaussian_mixture.observed_cells import (
    LEAST_SHARE,
    N_QUANTILES,
    Cells,
    observed_overall,
)
from sktensor_dp.gaussian_mixture.plan import MixturePlan
from sktensor_dp.gaussian_mixture.step_release import clipped_statistics, of_type
from sktensor_dp.mixtures.gaussians import Gaussians
from sktensor_dp.mixtures.imputation_bias import Bend, Ends, bend_of_lines
from sktensor_dp.mixtures.m_step import StepNoise
from sktensor_dp.mixtures.scores import n_scores
from sktensor_dp.mixtures.skewness import scales_of_shifts
from sktensor_dp.mixtures.uncertainty import MeanErrors
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.mixtures import MixtureStatistics
from sktensor_dp.queries.samples import LiftedBall
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.truncated_normal import quantiles_within

# Largest length of rows scaled to [-1, 1], over the root of the number of columns.
LONGEST_SCALED = 1.01
# Squared distance of the mean of rows that have a column, a share s, from that of all rows: at most
# this times (1 - s) / s squared deviations, where normal rows drop out beyond a threshold.
DROPOUT = 2 / math.pi


def unfinished(earlier: Gaussians, found: Gaussians, noise: StepNoise, observed: Floats) -> Floats:
    """Distances (1, d) of the mean of one group to convergence where cells are missing.

    They are taken to be what the later half of the EM steps, those after `earlier`, moved the mean
    beyond noise: t steps leave about 1 / t of an error, if few cells are missing.
    """
    variances = np.diagonal(found.covariances, axis1=1, axis2=2)
    by_noise = variances * np.square(noise.shift / observed)
    moves = found.means - earlier.weights @ earlier.means  # from the mean over all groups
    return np.sqrt(np.maximum(np.square(moves) - by_noise, 0.0))


def release_filled(
    ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer, model: Gaussians,
    noise: StepNoise, left: Floats,
) -> tuple[Gaussians, MeanErrors]:  # fmt: skip
    """Release means and mean squares, clipped in hardly any row, and move one group there.

    Variances grow to those of mean squares if these are larger beyond noise. `left` (1, d) are
    distances of the means of `model` to convergence, and `noise` is that of its steps.
    """
    radius, at = ball.radius, model.means[0]
    rows = _release_filled_rows(ask, ball, plan, second, model)
    shares, noise_of_means = rows.cells.observed, rows.sigma / rows.cells.observed
    covariance = model.covariances[0]
    before = np.diagonal(covariance)
    moves, errors_of_moves = _moves(rows, at, before)
    dropped = _dropped(rows, at, before, ask.n_units)
    bend = _bend(rows, plan, model, radius, dropped)
    # Cells are filled with conditional means, which lack this part of the variance.
    unexplained = 1 / np.diagonal(np.linalg.inv(covariance)) / before
    variances = rows.squares - 2 * at * rows.means + at**2
    variances = variances / (1 - (1 - shares) * unexplained) - np.square(moves)
    noise_of_size = rows.limit / math.sqrt(scales_of_shifts(plan.n_features).size)
    noise_of_variances = noise_of_means * np.hypot(noise_of_size, 2 * (at + moves))
    beyond = variances - before
    covariance = covariance + np.diag(np.where(beyond > 2 * noise_of_variances, beyond, 0.0))
    means = projected(at + moves - bend.expected, errors_of_moves**2, radius)
    moved = of_type(Gaussians(model.weights, means[None], covariance[None]), plan, radius)
    of_filling = _errors_of_lines(rows, model.covariances[0], dropped, noise)
    # True over fitted deviation, with what noise may hide of the true one.
    largest_variances = before + np.hypot(np.maximum(beyond, 0.0), noise_of_variances)
    spread = np.sqrt(largest_variances / np.diagonal(moved.covariances[0]))
    # In a complete column no cells are filled: its mean has converged.
    left = rows.cells.kept_fractions * left
    by_filling = of_filling**2 + bend.deviations**2
    missed = np.insert(np.sqrt(errors_of_moves**2 + by_filling + left**2), 0, 0.0, axis=1)
    # All other errors are by sampling: no noise of steps, and no moves.
    errors = MeanErrors(
        noise.times(0.0), 0.0, 0.0, np.zeros((1, n_scores(1, len(at)))), missed,
        np.zeros_like(missed), spread[None], shares[None], rows.cells.most_observed[None],
    )  # fmt: skip
    return moved, errors


def _moves(rows: "_FilledRows", at: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Expected moves (d,) of means from `at`, and deviations of their errors.

    Released means of filled rows are moved by these times the share of observed cells, which has
    noise, too. A priori moves have the `variances` (d,) of columns.
    """
    # Of released shares of missing cells kept (2 - kept) stays; in `Cells.by_missing` kept alone:
    # where few cells are observed, each counts.
    missing = (2 - rows.cells.kept_fractions) * (1 - rows.cells.observed)
    centre, noise = np.maximum(1 - missing, LEAST_SHARE), rows.noise_of_shares
    shares = quantiles_within(centre, noise, LEAST_SHARE, 1.0, N_QUANTILES)
    moved, totals = rows.means - at, rows.sigma**2 + shares**2 * variances
    log_odds = -(moved**2 / totals + np.log(totals)) / 2
    odds = np.exp(log_odds - log_odds.max(axis=0))
    odds /= odds.sum(axis=0)
    of_shares = shares * variances * moved / totals
    moves = (odds * of_shares).sum(axis=0)
    squares = rows.sigma**2 * variances / totals + np.square(of_shares - moves)
    return moves, np.sqrt((odds * squares).sum(axis=0))


class _Dropped(NamedTuple):
    """Sums that fill missing cells, less those of cells that are missing by chance."""

    moves: Floats  # (d,)
    noise: Floats  # (d,): deviations of noise and sampling


def _dropped(rows: "_FilledRows", means: Floats, variances: Floats, n_rows: int) -> _Dropped:
    """Sums that fill missing cells beyond `means`, of columns of these `variances`."""
    missing = 1 - rows.cells.observed
    noise = np.hypot(rows.noise_of_filled, means * rows.noise_of_shares)
    noise = np.sqrt(noise**2 + missing * variances / n_rows)
    return _Dropped(rows.filled - missing * means, noise)


def _errors_of_lines(
    rows: "_FilledRows", covariance: Floats, dropped: _Dropped, noise: StepNoise
) -> Floats:
    """Deviations (d,) of errors of means by slopes of lines that fill missing cells.

    `noise` is that of covariances.
    """
    observed = 1 - rows.missing
    shares = quantiles_within(observed, rows.noise_of_missing, LEAST_SHARE, 1.0, N_QUANTILES)
    # A slope has the noise of an entry off the diagonal over the share of rows that show it. A
    # priori it is a correlation, uniform from -1 to 1.
    precisions = 3 + 2 * np.square(shares / max(noise.shape, 1e-150))
    # Slopes move what fills cells by squared distances of rows that have a column, which sums that
    # fill cells show if rows drop out by one other column, on average over these.
    variances, most = np.diagonal(covariance), DROPOUT * (1 - shares) / shares
    of_others = (np.square(covariance) / variances).sum(axis=1) - variances
    of_others = np.maximum(of_others, 1e-12 * variances)
    seen = np.square(shares) * of_others / max(len(variances) - 1, 1)
    squares = np.minimum((np.square(dropped.moves) + np.square(dropped.noise)) / seen, most)
    unexplained = 1 / np.diagonal(np.linalg.inv(covariance))
    return np.sqrt(unexplained * (squares / precisions).mean(axis=0))


def _bend(
    rows: "_FilledRows", plan: MixturePlan, model: Gaussians, radius: float, dropped: _Dropped
) -> Bend:
    """Errors of means by straight lines that fill cells of columns with ends.

    Columns are taken to be scaled to [-1, 1], if rows are no longer than such ones.
    """
    d, means, covariance = plan.n_features, model.means[0], model.covariances[0]
    missing = 1 - rows.cells.observed
    if radius > LONGEST_SCALED * math.sqrt(d):
        return Bend(*np.zeros((2, d)))
    ends = Ends(-np.ones(d), np.ones(d))
    if plan.nonnormal is not None:
        is_named = plan.nonnormal.dispersions > 0
        ends = Ends(
            np.where(is_named, plan.nonnormal.low, -1), np.where(is_named, plan.nonnormal.high, 1)
        )
    return bend_of_lines(means, covariance, ends, missing, dropped.moves, dropped.noise)


def projected(means: Floats, variances: Floats, radius: float) -> Floats:
    """Likeliest means (d,) within `radius`, given noisy `means` of these `variances`.

    To scale all alike would move complete columns for one that is nearly empty. Without noise these
    are the `means` as they are.
    """
    if np.linalg.norm(means) <= radius or not variances.any():
        return means
    ratios = variances / variances.max()

    def excess(log_price: float) -> float:
        return float(np.linalg.norm(means / (1 + math.exp(log_price) * ratios))) - radius

    return means / (1 + math.exp(brentq(excess, -50.0, 100.0)) * ratios)


class _FilledRows(NamedTuple):
    """Released means over rows with missing cells filled by a model, few of which are clipped."""

    means: Floats  # (d,): of rows
    squares: Floats  # (d,): of squares
    filled: Floats  # (d,): of missing cells as filled, 0 for others
    noise_of_filled: float  # deviation of noise on `filled`
    sigma: float  # deviation of noise on `means`
    limit: float  # length at which filled rows are clipped
    cells: Cells
    missing: Floats  # (d,): released shares of missing cells, from 0 to 1
    noise_of_missing: Floats  # (d,): deviation of noise on these; above 0
    noise_of_shares: Floats  # (d,): deviation of noise on shares of observed cells; above 0


def _release_filled_rows(
    ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer, model: Gaussians
) -> _FilledRows:
    """Release means and mean squares of rows several times, with filled cells lifted or lowered.

    Lifts cancel in the mean of releases, and differences show how many cells were filled.
    """
    radius, d = ball.radius, plan.n_features
    n_releases, lift = plan.n_steps - plan.n_steps // 2, radius / (4 * math.sqrt(d))
    signs = (-1.0) ** np.arange(n_releases)
    signs = (signs - signs.mean()) / signs.std()  # of mean 0 and mean square 1
    # Rows may be as long as the radius where columns have two values each; lifts add to that.
    n_filled = d * (1 - observed_overall(ball, second))  # filled cells of a row
    limit = 1 + math.sqrt(n_filled) * lift * float(np.abs(signs).max()) / radius
    query = MixtureStatistics(  # about the middle of the ball
        np.zeros_like(model.means), np.eye(d)[None] / radius, np.zeros(1),
        limit=limit, centre=0.0, scales=scales_of_shifts(d), guard_radius=radius,
        shape_part="diag" if d > 1 else "spherical", fill=model,
    )  # fmt: skip
    answers = [ask(replace(query, lift=sign * lift)) for sign in signs]
    values = np.array([clipped_statistics(answer) for answer in answers])
    sigma = answers[0].sigma * limit * radius / math.sqrt(n_releases)
    weighted = signs @ values / n_releases
    _, shifts, sizes, shapes = query.decoded(values.mean(axis=0))
    _, lifted, of_sizes, of_shapes = query.decoded(weighted)
    released = radius * lifted[0] / lift
    cells = Cells.by_missing(released, sigma / lift)
    missing = 1 - cells.observed
    noise = np.maximum(cells.kept_fractions * sigma / lift, 1e-12)
    squares = radius**2 * (np.diagonal(shapes[0]) + sizes[0] / d) - missing * lift**2
    # Squares of lifted cells grow by twice the lift times what fills them, and by its square.
    grown = radius**2 * (np.diagonal(of_shapes[0]) + of_sizes[0] / d)
    filled = (grown - (signs**3).mean() * missing * lift**2) / (2 * lift)
    noise_of_filled = sigma * limit * radius / math.sqrt(query.scales.size) / (2 * lift)
    return _FilledRows(
        radius * shifts[0], squares, filled, noise_of_filled, sigma, limit * radius, cells,
        np.clip(released, 0.0, 1.0), np.full(d, max(sigma / lift, 1e-12)), noise,
    )  # fmt: skip
