"""M step of mixtures: noisy whitened statistics, averaged over steps and shrunk by their noise."""

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sktensor_dp.mixtures.clipping import Clipping, Scales
from sktensor_dp.mixtures.gaussians import Gaussians
from sktensor_dp.mixtures.observed_information import ObservedInformation
from sktensor_dp.mixtures.shrinkage import Scatters, shrunk_covariances, unshrunk_covariances
from sktensor_dp.tensor.arrays import Floats

# Least divisor for a group's weight, absolute and in standard deviations of its noise.
LEAST_WEIGHT, RESOLVED = 2e-4, 3.0
# Least variance along a direction, relative to the squared radius of the data.
LEAST_VARIANCE = 1e-10


@dataclass(frozen=True)
class StepNoise:
    """Deviations of noise on averaged statistics, in whitened units."""

    weight: float  # of a group's weight
    shift: float  # of a coordinate of a weight times a shift
    size: float  # of a weight times a mean eigenvalue
    shape: float  # of an orthonormal coordinate of a weight times a shape

    def times(self, scale: float) -> "StepNoise":
        """Noise that is `scale` times as large."""
        weight, shift, size, shape = self.weight, self.shift, self.size, self.shape
        return StepNoise(scale * weight, scale * shift, scale * size, scale * shape)


@dataclass(frozen=True, eq=False)
class WhitenedStatistics:
    """Noisy means over rows, in the frames of the Gaussians that a step was given."""

    weights: Floats  # (k,): responsibilities r
    shifts: Floats  # (k, d): r times clipped whitened rows y
    sizes: Floats  # (k,), or (1,) for all groups together: r times |y|^2 less its expectation
    shapes: Floats  # (k, d, d), or (1, d, d): r times the traceless part of yy'
    n_shape: int  # number of coordinates of a traceless part
    sigma: float  # deviation of noise on a coordinate of scale 1
    scales: Scales
    clipping: Clipping

    @property
    def noise(self) -> StepNoise:
        """Noise of this step alone, divided by the responses to what is clipped."""
        clip, scales = self.clipping, self.scales
        square = clip.limit**2
        shift = self.sigma * clip.far / scales.shift**0.5 / clip.shift_response
        size = self.sigma * square / scales.size**0.5 / (clip.width * clip.size_response)
        shape = 0.0
        if scales.shape > 0:
            shape = self.sigma * square / scales.shape**0.5 / clip.shape_response
            shape *= (1 - 1 / clip.width) ** 0.5  # as `MixtureStatistics.decoded` has it
        return StepNoise(self.sigma / scales.weight**0.5, shift, size, shape)


@dataclass(frozen=True, eq=False)
class MeanScores:
    """Means over steps of the parameters that these were given, and of released scores there.

    Scores are means over rows of responsibilities r, of r (x - m) and of r ((x - m)(x - m)' - C).
    """

    n_steps: int
    # Given parameters.
    weights: Floats  # (k,)
    means: Floats  # (k, d)
    covariances: Floats  # (k, d, d)
    # Scores.
    of_weights: Floats  # (k,): less the given weights
    of_means: Floats  # (k, d)
    of_covariances: Floats  # (k, d, d); (1, d, d) for all groups if they share a covariance

    @property
    def given(self) -> tuple[Floats, Floats, Floats]:
        """Mean weights, means and covariances that steps were given."""
        return self.weights, self.means, self.covariances

    def with_step(self, step: "MeanScores") -> "MeanScores":
        """Means with one more step."""
        n_steps = self.n_steps + step.n_steps
        names = [one.name for one in fields(self) if one.name != "n_steps"]
        moves = {name: getattr(step, name) - getattr(self, name) for name in names}
        found = {name: getattr(self, name) + move / n_steps for name, move in moves.items()}
        return MeanScores(n_steps, **found)


@dataclass(frozen=True, eq=False)
class StepMoments:
    """Moments averaged over steps, in the coordinates of the data."""

    weights: Floats  # (k,)
    firsts: Floats  # (k, d): mean of r x over rows x of responsibility r
    seconds: Floats  # (k, d, d): mean of r xx'; (1, d, d) for all groups if they share a covariance
    means: Floats  # (k, d): of the model that the last step was given
    frames: Floats  # (k, d, d): its factors
    # Variances (3, k) of noise about these means and in these frames: of a coordinate of firsts, of
    # one of shapes, and of mean eigenvalues.
    variances: Floats
    steps: Floats  # (n_steps, k, 1 + d): weights and firsts of each step
    given_firsts: Floats  # (n_steps, k, d): firsts of the model that each step was given
    given_seconds: Floats  # as `seconds`: averages of those of the models that steps were given
    rates: Floats  # (k, n_steps): weight of each step in the average when it was made
    weight_variances: Floats  # (k,): of noise on weights, over that of one step
    least_variances: Floats  # (k,): the same, had rates been those of least noise
    off: Floats  # (k,): probability that the average was off in the last step
    # Of all steps since a merge of groups; if there is no noise, of the last one.
    scores: MeanScores | None

    @property
    def step_weights(self) -> Floats:
        """Weights (k, n_steps) of steps in the average: rates times what later steps kept."""
        latest_first = self.rates[:, :0:-1]  # without the first step
        kept = np.cumprod(1 - latest_first, axis=1)[:, ::-1]
        return self.rates * np.column_stack([kept, np.ones(len(kept))])

    @property
    def n_full_steps(self) -> float:
        """Number of steps, each for the part by which it moved the average."""
        return float(self.rates.mean(axis=0).sum())

    @property
    def counts(self) -> Floats:
        """Weights (k,) of covariances, or (1,) if groups share one."""
        weights = np.maximum(self.weights, LEAST_WEIGHT)
        return weights if len(self.seconds) == len(weights) else weights.sum(keepdims=True)

    @property
    def relative_noise(self) -> tuple[Floats, Floats]:
        """Noise on whitened coordinates of means (k,), and on entries of shapes (k,) or (1,)."""
        firsts, shapes, _ = self.variances
        if len(self.counts) < len(shapes):
            shapes = shapes.sum(keepdims=True)
        # An entry is an orthonormal coordinate over the root of 2.
        of_means = np.sqrt(firsts) / np.maximum(self.weights, LEAST_WEIGHT)
        return of_means, np.sqrt(shapes / 2) / self.counts

    def merged(self, members: Floats, model: Gaussians, variances: Floats) -> "StepMoments":
        """Moments of k groups of a `model`, merged from these K as `members` (k, K) say, 1 or 0.

        `variances` (3, K) of noise are about the means and in the frames of the merged groups.
        """
        means_over = members / members.sum(axis=1, keepdims=True)
        seconds, given_seconds = self.seconds, self.given_seconds
        if len(seconds) == len(self.weights):
            seconds = np.tensordot(members, seconds, axes=1)
            given_seconds = np.tensordot(members, given_seconds, axes=1)
        else:  # all share a covariance: take away those of groups that are left out
            weights = self.weights * (members.sum(axis=0) == 0)
            within = np.tensordot(weights, self.frames @ self.frames.swapaxes(1, 2), axes=1)
            left_out = within + _weighted_squares(weights, self.means).sum(axis=0)
            seconds, given_seconds = seconds - left_out, given_seconds - left_out
        return StepMoments(
            weights=members @ self.weights, firsts=members @ self.firsts, seconds=seconds,
            means=model.means, frames=model.factors, variances=variances @ members.T,
            steps=members @ self.steps, rates=means_over @ self.rates,
            given_firsts=members @ self.given_firsts, given_seconds=given_seconds,
            weight_variances=members @ self.weight_variances,
            least_variances=members @ self.least_variances, off=means_over @ self.off,
            scores=None,
        )  # fmt: skip

    def converged(self, model: Gaussians, information: ObservedInformation) -> "StepMoments":
        """Moments to which steps lead, if each goes the part `information` of the way.

        To first order they are given moments plus the moves that steps made, over this part.
        """
        whiteners, factors = model.whiteners, model.factors
        given = (self.step_weights.T[:, :, None] * self.given_firsts).sum(axis=0)
        shared = slice(len(self.seconds))

        def products(moves: Floats) -> Floats:
            found = _products(moves, model.means)
            return found if len(self.seconds) == len(moves) else found.sum(axis=0, keepdims=True)

        of_means, of_shapes = self.relative_noise
        # Moves of first moments: of each step, and last on average.
        moves = np.concatenate([self.steps[:, :, 1:] - self.given_firsts, [self.firsts - given]])
        gains = information.gains_of_means(of_means)
        shifts = np.einsum("jab,jbc,sjc->sja", gains, whiteners, moves)
        whole_moves = np.einsum("jab,sjb->sja", factors, shifts)
        # Moves of second moments, less what moves of means add to these.
        scatters = self.seconds - self.given_seconds - products(moves[-1])
        scatters = whiteners[shared] @ scatters @ whiteners[shared].swapaxes(1, 2)
        counts = self.counts[:, None, None]
        shapes = information.whole_shapes(scatters / counts, of_shapes) * counts
        whole_scatters = factors[shared] @ shapes @ factors[shared].swapaxes(1, 2)
        steps = self.given_firsts + whole_moves[:-1]
        return replace(
            self, firsts=given + whole_moves[-1],
            seconds=self.given_seconds + (whole_scatters + products(whole_moves[-1])),
            steps=np.concatenate([self.steps[:, :, :1], steps], axis=2),
        )  # fmt: skip

    def of(self, model: Gaussians) -> "StepMoments":
        """Moments of a `model`, with the noise of these."""
        seconds = model.weights[:, None, None] * model.covariances
        seconds = seconds + _weighted_squares(model.weights, model.means)
        if len(self.seconds) < len(seconds):
            seconds = seconds.sum(axis=0, keepdims=True)
        firsts = model.weights[:, None] * model.means
        return replace(self, weights=model.weights, firsts=firsts, seconds=seconds)

    def noise_of(self, last: WhitenedStatistics) -> StepNoise:
        """Noise of the moments, by the statistics of the last step."""
        scale = float(np.sqrt(self.weight_variances.mean()))
        return last.noise.times(scale)


def average_with_step(
    average: StepMoments | None,
    model: Gaussians,
    statistics: WhitenedStatistics,
    added: float,
    information: ObservedInformation | None = None,
) -> StepMoments:
    """Average with one more step, whose rate is larger the likelier the average is off.

    `added` is the variance that missing cells add to a mean over all rows of variance 1, times the
    number of steps of a fit.
    """
    new = moments_of(model, statistics)
    if average is None:
        return new
    carried = carried_variances(average, model, statistics)
    rates, least, off = _rates(average, new, model, statistics, carried, added, information)
    of_seconds = rates[: len(new.seconds), None, None]
    return StepMoments(
        weights=average.weights + rates * (new.weights - average.weights),
        firsts=average.firsts + rates[:, None] * (new.firsts - average.firsts),
        seconds=average.seconds + of_seconds * (new.seconds - average.seconds),
        means=new.means,
        frames=new.frames,
        variances=(1 - rates) ** 2 * carried + rates**2 * new.variances,
        steps=np.concatenate([average.steps, new.steps]),
        given_firsts=np.concatenate([average.given_firsts, new.given_firsts]),
        given_seconds=average.given_seconds
        + of_seconds * (new.given_seconds - average.given_seconds),
        rates=np.column_stack([average.rates, rates]),
        weight_variances=(1 - rates) ** 2 * average.weight_variances + rates**2,
        least_variances=(1 - least) ** 2 * average.least_variances + least**2,
        off=off,
        scores=_mean_scores(average, new, statistics),
    )  # fmt: skip


def _mean_scores(
    average: StepMoments, new: StepMoments, statistics: WhitenedStatistics
) -> MeanScores | None:
    """Mean scores with those of a step: of this alone where it has no noise."""
    if average.scores is None or new.scores is None or statistics.noise.weight == 0:
        return new.scores
    return average.scores.with_step(new.scores)


def carried_variances(
    average: StepMoments, model: Gaussians, statistics: WhitenedStatistics
) -> Floats:
    """Variances (3, k) of noise of an average about the means, and in the frames, of `model`."""
    d, n_shape = model.means.shape[1], statistics.n_shape
    frames = model.whiteners @ average.frames
    squares = frames @ frames.swapaxes(1, 2)
    trace, norm = np.trace(squares, axis1=1, axis2=2), np.square(squares).sum(axis=(1, 2))
    firsts, shapes, sizes = average.variances
    ratios = trace / d  # of sizes
    # Noise E of shapes becomes F E F' in frames F. If the coordinates of E, all or those of a
    # diagonal, have variance 1, the mean squared norm of F E F' is `whole`. Without the traces of E
    # and of F E F' it is `kept`. The mean eigenvalue of F E F' has the variance `mixed` / d.
    whole = (trace**2 + norm) / 2 if n_shape >= d else norm
    kept = whole - 2 * norm / d + ratios**2
    mixed = np.maximum(norm - trace**2 / d, 0) / d
    # Noise of a weight w brings w (F F' - I): second moments are released beyond those of w normal
    # rows.
    of_weights = average.weight_variances * statistics.noise.weight**2
    of_sizes = ratios**2 * sizes + mixed / d * shapes + (ratios - 1) ** 2 * of_weights
    of_shapes = (kept * shapes + mixed * d * (sizes + of_weights)) / max(n_shape, 1)
    moves = np.einsum("jab,jb->ja", model.whiteners, model.means - average.means)
    return _after_moves(np.array([ratios * firsts, of_shapes, of_sizes]), moves, of_weights)


def _after_moves(variances: Floats, moves: Floats, of_weights: Floats) -> Floats:
    """Variances of noise of first and second moments about means after their `moves`.

    A move s adds w s to a first moment a of weight w, and s a' + a s' + w s s' to the second.
    """
    firsts, shapes, sizes = variances
    d = moves.shape[1]
    squares = np.square(moves).sum(axis=1) / d
    of_firsts, of_squares = 4 * squares * firsts, of_weights * squares**2
    return np.array([
        firsts + of_weights * squares,
        shapes + of_firsts + 2 * d / (d + 1) * of_squares,
        sizes + of_firsts / d + of_squares,
    ])  # fmt: skip


class _Rates(NamedTuple):
    """Weights of a new step in the average."""

    used: Floats  # (k,)
    least: Floats  # (k,): those of the least noise, as if no cells were missing
    off: Floats  # (k,): probability that the average was off before


def _rates(
    average: StepMoments, new: StepMoments, model: Gaussians, statistics: WhitenedStatistics,
    carried: Floats, added: float, information: ObservedInformation | None,
) -> _Rates:  # fmt: skip
    """Weights of a step by noise (Kalman), and larger the likelier the average is off.

    Where cells are missing, averages by weights 1 / t converge late. Weights c / (t + c - 1) bring
    c^2 / (2 c - 1) times the variance of noise: choose c so that noise grows by as much as missing
    cells `added`, over all parameters of a group.
    """
    noise = statistics.noise
    if noise.weight == 0:
        ones = np.ones_like(average.weights)
        return _Rates(ones, ones, ones)
    whiteners, moments = model.whiteners, (average, new)
    if information is not None:
        # Moments to which steps lead have noise over the information: multiply by that.
        whiteners = information.of_means() @ whiteners
        moments = (
            replace(average, variances=carried).converged(model, information),
            new.converged(model, information),
        )
    differences = _differences(*moments, whiteners, noise, carried[0])
    noise_part, off = _part_by_noise(differences, average)
    # Twice the weight times the log-likelihood that noise of the step, and of the average, loses.
    d = new.means.shape[1]
    coordinates = np.array([d, statistics.n_shape / 2, d / 2])
    of_step = noise.weight**2 + coordinates @ new.variances
    of_average = average.weight_variances * noise.weight**2 + coordinates @ carried
    of_average *= average.least_variances / average.weight_variances
    n_parameters = 2 + d + statistics.n_shape
    beyond = added * np.maximum(average.weights, LEAST_WEIGHT) * n_parameters / of_step
    faster = 1 + beyond + np.sqrt(beyond + beyond**2)  # c
    used = 1 - noise_part * (of_step / (of_step + faster * of_average))
    least = 1 - noise_part * (of_step / (of_step + of_average))
    if len(new.seconds) < len(used):  # groups that share a covariance are averaged together
        used, least = np.full_like(used, used.mean()), np.full_like(least, least.mean())
    return _Rates(used, least, off)


def _differences(
    average: StepMoments, new: StepMoments, whiteners: Floats, noise: StepNoise, carried: Floats
) -> Floats:
    """Means of the last 1, 2, 4, ... steps less the average, in deviations of their noise.

    They are (n, k, 1 + d), of weights and whitened shifts. A slow drift is within the noise of one
    step, but beyond that of the mean of many.
    """
    steps, found = np.concatenate([average.steps, new.steps]), []
    # Variances (2, ...) of noise on weights and shifts: of the new step, and of each past one.
    of_new = np.square([noise.weight, noise.shift])[:, None]
    past_weights = average.weight_variances * of_new[0]
    of_past = np.array([past_weights, carried]) / np.square(average.step_weights).sum(axis=1)
    in_average = np.pad(average.step_weights, ((0, 0), (0, 1)))
    for n_last in 2 ** np.arange(len(average.steps).bit_length()):
        coefficients = -in_average  # of steps in the difference
        coefficients[:, -n_last:] += 1 / n_last
        weights, firsts = np.split(np.einsum("js,sja->ja", coefficients, steps), [1], axis=1)
        shifts = np.einsum("jab,jb->ja", whiteners, firsts - weights * new.means)
        squares = np.square(coefficients)
        variances = squares[:, -1] * of_new + squares[:, :-1].sum(axis=1) * of_past
        of_weights, of_shifts = np.sqrt(variances)[:, :, None]
        found.append(np.hstack([weights / of_weights, shifts / of_shifts]))
    return np.array(found)


def _part_by_noise(differences: Floats, average: StepMoments) -> tuple[Floats, Floats]:
    """Expected part (k,) of `differences` that is noise, and probability (k,) of an average off.

    `differences` (n, k, n_coordinates) are those of n means of steps from the average, in
    deviations of their noise.
    """
    # If a group's average is right, differences are noise alone. If it is off, one of the n means,
    # each as likely, has a part u of noise in its variance, and u is uniform a priori. An average
    # that is off is right after a step with probability 1/2. In step t that of some group gets off
    # with probability 1/t.
    _, k, n_coordinates = differences.shape
    squares = np.square(differences).sum(axis=2)[:, :, None]
    # Likelihood of n coordinates of variance 1 / u, over that of variance 1: u^(n/2) e^((1-u) S/2)
    # with S the sum of their squares.
    parts = (np.arange(200) + 0.5) / 200  # u
    log_odds = n_coordinates / 2 * np.log(parts) + (1 - parts) * squares / 2
    largest = log_odds.max(axis=(0, 2))
    odds = np.exp(log_odds - largest[:, None]).mean(axis=0)
    prior = average.off / 2 + (1 - average.off) / (k * len(average.steps) + k)
    off = expit(largest + np.log(odds.mean(axis=1) * prior / (1 - prior)))
    return off * (odds @ parts) / odds.sum(axis=1) + 1 - off, off


def moments_of(model: Gaussians, statistics: WhitenedStatistics) -> StepMoments:
    """Moments by one step, in the coordinates of the data."""
    # A row is x = m + F y. With E for the mean of responsibilities times what follows, w = E 1 and
    # a = F E y (`moves`), E x = w m + a and E xx' = F E yy' F' + m a' + a m' + w m m'.
    clip, noise = statistics.clipping, statistics.noise
    weights, means, (k, d) = statistics.weights, model.means, model.means.shape
    moves = np.einsum("jab,jb->ja", model.factors, statistics.shifts / clip.shift_response)
    squares = _weighted_squares(weights, means)
    of_means = _products(means, moves) + squares
    firsts = weights[:, None] * means + moves
    counts, variances = weights, np.square([noise.shift, noise.shape, noise.size])
    if len(statistics.shapes) < k:  # sizes and shapes are of all groups together
        counts, of_means = weights.sum(keepdims=True), of_means.sum(axis=0, keepdims=True)
        squares = squares.sum(axis=0, keepdims=True)
        variances[1:] /= k
    # E yy' is that of standard normal y, the count times I, plus sizes and shapes.
    whitened = np.eye(d) * (counts + statistics.sizes / (d * clip.size_response))[:, None, None]
    whitened = whitened + statistics.shapes / clip.shape_response
    factors, ones = model.factors[: len(whitened)], np.ones(k)
    given_seconds = counts[:, None, None] * (factors @ factors.swapaxes(1, 2)) + squares
    return StepMoments(
        weights=weights, firsts=firsts,
        seconds=factors @ whitened @ factors.swapaxes(1, 2) + of_means,
        means=means, frames=model.factors, variances=np.tile(variances[:, None], k),
        steps=np.column_stack([weights, firsts])[None],
        given_firsts=(weights[:, None] * means)[None],
        given_seconds=given_seconds,
        rates=ones[:, None], weight_variances=ones, least_variances=ones, off=ones,
        scores=_scores_of(model, weights, moves, whitened - np.eye(d) * counts[:, None, None]),
    )  # fmt: skip


def _scores_of(model: Gaussians, weights: Floats, moves: Floats, whitened: Floats) -> MeanScores:
    """Scores of a step that was given `model`, by released weights, moves and whitened shapes."""
    factors = model.factors[: len(whitened)]
    return MeanScores(
        1, model.weights, model.means, model.covariances, weights - model.weights, moves,
        factors @ whitened @ factors.swapaxes(1, 2),
    )  # fmt: skip


def _products(a: Floats, b: Floats) -> Floats:
    """``a b' + b a'`` of the vectors a and b (k, d) of each group; (k, d, d)."""
    outer = a[:, :, None] * b[:, None, :]
    return outer + outer.swapaxes(1, 2)


def _weighted_squares(weights: Floats, a: Floats) -> Floats:
    """``w a a'`` of the weight w and the vector a of each group; (k, d, d)."""
    return weights[:, None, None] * a[:, :, None] * a[:, None, :]


def gaussians_after_step(
    model: Gaussians, average: StepMoments, statistics: WhitenedStatistics, radius: float,
    n_rows: int, *, filled: float | None = None,
) -> Gaussians:  # fmt: skip
    """Gaussians by the `average` of moments after a step that was given `model`.

    `radius` is that of the ball of rows. With a share of `filled` cells covariances are not shrunk.
    """
    noise = statistics.noise
    weight_noise = noise.weight * np.sqrt(average.weight_variances)
    counts = np.maximum(average.weights, np.maximum(RESOLVED * weight_noise, LEAST_WEIGHT))
    shifts = _shifts(model, average, counts, statistics.clipping.far)
    variances = _after_moves(average.variances, shifts, weight_noise**2)
    means = model.means + np.einsum("jab,jb->ja", model.factors, shifts)
    means *= np.minimum(1, radius / np.maximum(np.linalg.norm(means, axis=1), 1e-300))[:, None]
    whitened = scatters(model, average, counts, shifts)
    if (columns := model.nonnormal) is not None:
        whitened = whitened + _beyond_statistics(model, whitened)
        of_means = (np.sqrt(variances[0]) / counts)[:, None]
        means[:, columns.places] = columns.expected(means[:, columns.places], of_means)
    pooled = counts  # weights of the groups of each covariance
    if len(whitened) < len(counts):  # all groups share one
        pooled, variances = counts.sum(keepdims=True), variances.sum(axis=1, keepdims=True)
    _, of_shapes, of_sizes = variances
    sampling_variance = 2 / (n_rows * pooled)  # of an orthonormal coordinate
    noisy = Scatters(
        frames=model.factors[: len(whitened)], whitened=whitened, weights=pooled / pooled.sum(),
        shape_sigma=np.sqrt(of_shapes / pooled**2 + sampling_variance),
        # A mean eigenvalue is the mean of `width` coordinates.
        size_sigma=np.sqrt(
            of_sizes / pooled**2 + sampling_variance / statistics.clipping.width
        ),
        n_shape=statistics.n_shape,
    )  # fmt: skip
    ends = (LEAST_VARIANCE * radius**2, radius**2)
    if filled is None:
        covariances = shrunk_covariances(noisy, *ends)
    else:
        covariances = unshrunk_covariances(noisy, *ends, filled)
    # `resize` repeats a covariance that all groups share.
    shape = model.covariances.shape
    covariances = np.resize(covariances, shape)
    return Gaussians(counts / counts.sum(), means, covariances, nonnormal=model.nonnormal)


def _beyond_statistics(model: Gaussians, whitened: Floats) -> Floats:
    """Variances of nonnormal columns in the model less those in `whitened`, as (k, d, d), whitened.

    In the model they are held fixed: no statistics change them. One (1, d, d) if groups share one.
    """
    assert model.nonnormal is not None
    k, places = len(whitened), model.nonnormal.places
    difference = np.eye(whitened.shape[1]) - whitened
    rows = model.factors[:k, places]
    beyond = np.einsum("jfa,jab,jfb->jf", rows, difference, rows)
    whiteners = model.whiteners[:k, :, places]
    return np.asarray((whiteners * beyond[:, None]) @ whiteners.swapaxes(1, 2))


def _shifts(model: Gaussians, average: StepMoments, counts: Floats, limit: float) -> Floats:
    """Whitened moves (k, d) of means, `limit` long at most."""
    moments = average.firsts - average.weights[:, None] * model.means
    shifts = np.einsum("jab,jb->ja", model.whiteners, moments) / counts[:, None]
    lengths = np.maximum(np.linalg.norm(shifts, axis=1), 1e-12)
    return np.asarray(shifts * np.minimum(1, limit / lengths)[:, None])


def scatters(model: Gaussians, average: StepMoments, counts: Floats, shifts: Floats) -> Floats:
    """Whitened covariances about means moved by whitened `shifts` (k, d).

    They are of shape (k, d, d), or (1, d, d) of all groups together.
    """
    # About a mean m second moments are E xx' - E x m' - m E x' + w m m', and about the moved mean
    # they are less by w times the squared shift.
    means, weights, seconds = model.means, average.weights, average.seconds
    of_means = _products(average.firsts, means) - _weighted_squares(weights, means)
    moved = _weighted_squares(counts, shifts)
    if len(seconds) < len(counts):  # of all groups together
        of_means, moved = of_means.sum(axis=0, keepdims=True), moved.sum(axis=0, keepdims=True)
        weights, counts = weights.sum(keepdims=True), counts.sum(keepdims=True)
    whiteners = model.whiteners[: len(seconds)]
    whitened = whiteners @ (seconds - of_means) @ whiteners.swapaxes(1, 2) - moved
    # Where a count was raised above a weight, the rest counts as rows with the former covariance.
    whitened += np.eye(means.shape[1]) * (counts - weights)[:, None, None]
    whitened /= counts[:, None, None]
    return np.asarray((whitened + whitened.swapaxes(1, 2)) / 2)
