"""Expected errors of completions from public numbers alone."""

import math
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from sktensor_dp.checks.display import Table
from sktensor_dp.completion import defaults
from sktensor_dp.completion.directions import (
    columns_worth,
    edge_of_noise,
    forgetting_factor,
    gain_of_components,
    moment_noise,
    untold_of_weight,
    variance_by_chance,
)
from sktensor_dp.completion.plan import (
    ASSUMED,
    UNCLIPPED,
    Assumed,
    CompletionPlan,
    PersonPlan,
    bias_variances_by_sums,
    bias_variances_by_values,
    judged_sweeps,
    residual_clip,
    row_weight,
    snr_in_pairs,
    trial_sweeps,
)
from sktensor_dp.completion.shared_biases import (
    LEAST_ERROR,
    LEAST_SHARE,
    by_own_level,
    clip_of_noise,
    mean_to_median,
    shift_by_clip,
    weights_by_size,
)
from sktensor_dp.estimator.forecast import (
    MOST_UNITS,
    InvertibleForecast,
    Question,
    least_epsilon,
    least_number,
    sigma_of_mean,
)
from sktensor_dp.privacy.mechanisms import piecewise_variance
from sktensor_dp.queries.entries import EntryPairs, RowSums
from sktensor_dp.queries.persons import MOMENT_WEIGHT, SharedFactorSums, SharedRowSums, UnitLevels
from sktensor_dp.tensor import defaults as kernel_defaults
from sktensor_dp.tensor.shared_parameters import clipped_response, clipped_variance

# Number of iterations of the equations for components.
STEPS = 200
# Fraction of the differences of rows that noise and sampling leave visible where data is enough.
ENOUGH_SEEN = 0.8


def forecast_completion(
    n_observed: int,
    shape: tuple[int, ...],
    plan: CompletionPlan | PersonPlan,
    width: float,
    rank: int,
    assumed: Assumed,
) -> "CompletionForecast":
    """Forecast of a plan's errors; `width` is that of the bounds, which gives the units."""
    if isinstance(plan, PersonPlan):
        errors = person_errors(n_observed, shape, plan, assumed, rank)
    else:
        errors = entry_errors(n_observed, shape, plan, assumed, rank)
    return CompletionForecast(
        plan.perturbation, of_mean=width * assumed.deviation, of_biases=width * errors.of_biases,
        finds_components=errors.finds, bias_deviation=width * assumed.bias_deviation,
        of_model=width * errors.of_model, component_share=assumed.component_share,
        of_fold_in=width * errors.of_fold_in,
        bias_errors=tuple(width * math.sqrt(variance) for variance in errors.bias_variances),
        mean_error=width * errors.mean_error,
        of_predict=width * (errors.of_model if errors.of_predict is None else errors.of_predict),
        entries_to_tell=errors.entries_to_tell,
    )  # fmt: skip


class Errors(NamedTuple):
    """Expected errors in widths of the bounds, as in `CompletionForecast`."""

    of_biases: float
    of_model: float
    of_fold_in: float
    finds: bool  # whether components are expected to be found
    bias_variances: list[float]  # error variance of an average row's bias of each mode
    # Where units are persons: standard error of the mean, error without own entries, and how many
    # entries tell a row's bias.
    mean_error: float = math.nan
    of_predict: float | None = None
    entries_to_tell: float = math.nan


def entry_errors(
    n_observed: int, shape: tuple[int, ...], plan: CompletionPlan, assumed: Assumed, rank: int
) -> Errors:
    """Expected errors where one value is the unit."""
    residual, count = assumed.about_biases, min(ASSUMED.n_components, rank)
    variance = assumed.component_share * assumed.deviation**2 / max(count, 1)  # of one component
    per_row = [n_observed / n for n in shape]  # entries of a row of each mode
    cosines = [0.0] * len(shape)  # squared, by mode
    if plan.perturbation == "input":
        noise_variance = piecewise_variance(plan.releases.epsilon, min(assumed.deviation, 0.5))
        cosines = squared_cosines(per_row, variance, noise_variance + residual, count)
    # Error variance of a bias of each mode before shrinkage, for an average row.
    if plan.perturbation == "sufficient_statistics":
        spent = plan.releases.cost_of(RowSums.name).epsilon
        noise = bias_variances_by_sums(n_observed, shape, spent, math.sqrt(residual))
    else:  # steps of descent, and the last factor, count as values do
        epsilon = plan.releases.epsilon
        noise = bias_variances_by_values(n_observed, shape, epsilon, math.sqrt(residual))
    biases = assumed.shrunk(noise)
    # All rows tell of the mean, which before lies anywhere between the bounds: variance 1 / 12.
    mean = 1 / (12 + math.fsum(n / v for n, v in zip(shape, noise, strict=True)))
    error = math.sqrt(residual + mean + math.fsum(biases))
    model = math.sqrt(error**2 - count * variance * math.prod(cosines))
    # A row of the first mode that is folded in estimates its own bias and weights.
    cosine = math.prod(cosines[1:])
    if plan.with_pairs:
        snr = snr_in_pairs(n_observed, shape, plan.releases.cost_of(EntryPairs.name))
        cosine = _cosine_by_pairs(snr, variance, residual)
    of_row = _fold_in_variance(
        per_row[0], [variance * cosine] * count, residual, assumed.bias_deviation**2
    )
    folded = math.sqrt(of_row + math.fsum(biases[1:]))
    # Below the threshold of a spiked model cosines fall to 0, at it as one over the steps.
    finds = variance * cosine > 0 if plan.with_pairs else math.prod(cosines) > 1 / STEPS
    finds = plan.seeks_components and count > 0 and finds
    return Errors(error, model, folded, finds, biases)


def squared_cosines(per_row: list[float], variance: float, noise: float, count: int) -> list[float]:
    """Squared cosine of each mode's true and fitted factor of a component, one per mode.

    `per_row` are entries of a row of each mode, `variance` is that of a component, `noise` that of
    values with all components in it, and `count` the number of components.
    """
    # State evolution of a spiked model with normal factors (Lesieur, Krzakala and Zdeborova 2017).
    cosines = [1.0] * len(per_row)
    for _ in range(STEPS):
        residual = noise - count * variance * math.prod(cosines)
        for mode, n in enumerate(per_row):
            others = math.prod(cosines[:mode] + cosines[mode + 1 :])
            ratio = n * variance * others / residual
            cosines[mode] = ratio / (1 + ratio)
    return cosines


def _cosine_by_pairs(snr: float, variance: float, residual: float) -> float:
    """Squared cosine between a column's component and the estimate from pairs.

    `snr` is the signal-to-noise ratio in pairs, `variance` that of a component, and `residual` that
    of values about mean and biases.
    """
    # A spiked matrix shows 1 - 1 / d^2 of a component that is d times as strong as the weakest one
    # detectable, which has half the edge. The ratio is stated for a component of the assumed size
    # and residuals of the usual size.
    ratio = snr * (variance / ASSUMED.component**2 * ASSUMED.residual**2 / residual)
    return max(1 - 1 / (2 * ratio) ** 2, 0.0) if ratio > 0 else 0.0


def _fold_in_variance(
    n: float, variances: list[float], residual: float, bias_variance: float
) -> float:
    """Error variance of a value after folding in the row's own `n` entries.

    `variances` are those of the components that are known, `residual` is the variance about biases,
    and `bias_variance` that of the row's bias, which may be 0.
    """
    # Of a component of variance a entries tell the fraction r / (1 + r), r = n a / noise; the noise
    # is all that is left of values: a fixed point.
    explained = 0.0
    for _ in range(STEPS):
        noise = residual - explained
        ratios = [n * variance / noise for variance in variances]
        explained = math.fsum(a * r / (1 + r) for a, r in zip(variances, ratios, strict=True))
    noise = residual - explained
    # n entries about a bias of variance b leave b noise / (b n + noise) of it.
    if bias_variance == 0:
        return noise
    return noise + bias_variance * noise / (bias_variance * n + noise)


def person_errors(
    n_observed: int, shape: tuple[int, ...], plan: PersonPlan, assumed: Assumed, rank: int
) -> Errors:
    """Expected errors where units are persons."""
    n_units = units_with_entries(n_observed, shape[plan.unit_mode])
    shape = (*shape[: plan.unit_mode], n_units, *shape[plan.unit_mode + 1 :])
    each = n_observed / n_units
    residual = assumed.about_biases
    # Error variance of a unit's level, fitted to its entries with the library's prior, which counts
    # as `prior` more entries: from its distance to the prior mean, and from its entries.
    prior = 1 / kernel_defaults.LEVEL_VARIANCE
    level = (assumed.bias_deviation**2 * prior**2 + residual * each) / (each + prior) ** 2
    explained, biases = None, _bias_variances(each, shape, plan, assumed)
    to_tell = _entries_to_tell(each, shape, plan, assumed)
    if plan.n_sweeps > 0:
        n_left = plan.n_sweeps - trial_sweeps(plan.n_sweeps)
        after = math.fsum(_bias_variances(each, shape, plan, assumed, n_left))
        gain_of_biases = math.fsum(biases) - after
        explained = _Search(each, shape, plan, assumed, rank, gain_of_biases).explained()
        if explained is None:
            biases = _bias_variances(each, shape, plan, assumed, n_left)
            to_tell = _entries_to_tell(each, shape, plan, assumed, n_left)
    error = math.sqrt(residual + level + math.fsum(biases))
    model = error if explained is None else math.sqrt(error**2 - explained)
    # Noise of the released mean, in a range of width 1, and what `fit_persons` leaves of it.
    cost = plan.releases.cost_of(UnitLevels.name)
    sigma = sigma_of_mean(UnitLevels(half=0.5), cost, n_units, "replace_one")
    mean_error = math.hypot(
        sigma / math.sqrt(1 + 12 * sigma**2), assumed.deviation / math.sqrt(n_units)
    )
    # Of a unit without own entries nothing is known but the mean.
    of_predict = math.sqrt(residual + assumed.bias_deviation**2 + mean_error**2 + math.fsum(biases))
    biases.insert(plan.unit_mode, math.nan)
    return Errors(
        of_biases=error, of_model=model, of_fold_in=model, finds=explained is not None,
        bias_variances=biases, mean_error=mean_error, of_predict=of_predict,
        entries_to_tell=to_tell,
    )  # fmt: skip


def units_with_entries(n_observed: int, n_units: int) -> int:
    """Number of `n_units` units that have entries, if all do for whom there are any."""
    return min(n_observed, n_units)


def _bias_variances(
    each: float, shape: tuple[int, ...], plan: PersonPlan, assumed: Assumed, sweeps: int = 0
) -> list[float]:
    """Error variance of an average row's bias of each shared mode, at the budget of biases plus
    `sweeps` sweeps. `each` is the number of entries of a unit.
    """
    modes = range(len(shape) - 1)
    of_modes = [_row_errors(each, shape, plan, assumed, sweeps, mode) for mode in modes]
    return assumed.shrunk(
        [e.noise / e.weight**2 + e.sampling / e.weight / e.norm + e.shift**2 for e in of_modes]
    )


def _count_norm(each: float, n_rows: int, shape: tuple[int, ...], plan: PersonPlan) -> float:
    """Expected norm of a unit's numbers of entries in `n_rows` rows, all as likely."""
    # A cell has one entry at most: numbers are hypergeometric. `cell_weights` has rows of other
    # shares.
    n_cells = math.prod(shape) // shape[plan.unit_mode]
    apart = max(n_cells - each, 0.0) / max(n_cells - 1, 1)
    return math.sqrt(each * (1 - 1 / n_rows) * apart + each**2 / n_rows)


def _alone(each: float, n_rows: int) -> float:
    """Share of units, with `each` entries on average, that have them in one of `n_rows` rows."""
    # All have one, and a Poisson number of others.
    return math.exp((each - 1) * (1 / n_rows - 1))


def _entries_to_tell(
    each: float, shape: tuple[int, ...], plan: PersonPlan, assumed: Assumed, sweeps: int = 0
) -> float:
    """Number of entries of a row of the first shared mode at which the error of its bias is as
    large as biases differ, so that shrinkage halves both; arguments as of `_bias_variances`.
    """
    if assumed.bias_deviation == 0:
        return math.nan
    errors = _row_errors(each, shape, plan, assumed, sweeps, 0)
    # The weight w for which noise / w^2 + sampling / (w norm) is what the shift leaves.
    left = assumed.bias_deviation**2 - errors.shift**2
    if left <= 0:
        return math.inf
    by_entries = errors.sampling / errors.norm / left
    weight = (by_entries + math.sqrt(by_entries**2 + 4 * errors.noise / left)) / 2
    return weight * errors.norm


class _RowErrors(NamedTuple):
    """Errors of the bias of a row of weight w, whose entries weigh one over `norm` each."""

    noise: float  # variance by noise, times w^2
    sampling: float  # variance by the row's entries, times w * norm
    shift: float  # root mean square error, as residuals that are clipped are not normal
    weight: float  # of an average row
    norm: float


def _row_errors(
    each: float, shape: tuple[int, ...], plan: PersonPlan, assumed: Assumed, sweeps: int, mode: int
) -> _RowErrors:
    """Errors of biases in the shared mode at place `mode`; others as for `_bias_variances`."""
    n_rows = int(np.delete(shape, plan.unit_mode)[mode])
    norm = _count_norm(each, n_rows, shape, plan)
    weight = shape[plan.unit_mode] * each / n_rows / norm
    # Each round clips as `SharedBiases.release` does, for values whose mean is in the middle.
    rounds, half = plan.n_rounds, 1 / 2
    cost = plan.costs_of_biases()[mode]
    mus = [cost.mu / math.sqrt(rounds)] * rounds
    if sweeps and plan.longest == mode:
        mus.append(plan.releases.cost_of(SharedFactorSums.name).mu * math.sqrt(sweeps))
    about, by_effects = assumed.about_biases, assumed.bias_deviation**2
    least = residual_clip(math.sqrt(about + by_effects), half)
    r = least / UNCLIPPED
    apart = float(mean_to_median(r, assumed.bias_deviation, half))
    parts: list[tuple[float, float, float, float]] = []
    for number, mu in enumerate(mus):
        # About no effects yet, residuals have theirs in them.
        deviation = math.sqrt(about + (by_effects if number == 0 else 0.0))
        clip, widest = least if rounds > 1 else UNCLIPPED, 2 * half / deviation
        if number > 0:
            # All rounds but the first are averaged, and what is paid by sweeps.
            alike = (rounds - 1) * mus[0] ** 2 + sum(one**2 for one in mus[rounds : number + 1])
            hidden = SharedRowSums.farthest(parts[-1][-1]) / math.sqrt(alike)
            clip = clip_of_noise(hidden, weight * apart / deviation, least, widest)
        spread = math.sqrt(clipped_variance(clip))
        most = min(max(clip, 1.0) * spread, 1.0)
        sigma = SharedRowSums.farthest(most) / mu if mu > 0 else math.sqrt(2) * 4 / cost.epsilon
        varied = deviation * math.sqrt(1 + by_own_level(each))
        slope = clipped_response(clip * deviation / varied, varied)
        entries = clipped_variance(clip * deviation / varied) / slope**2
        noise = (sigma / slope) ** 2
        parts.append((noise, entries, apart * shift_by_clip(clip, widest), most))
    noises, entries, shifts, _ = np.array(parts).T
    # Rounds weigh by the covariance of their errors, as in `EffectRelease.combined`.
    errors = np.diag(noises / weight**2) + np.outer(shifts, shifts)
    errors += np.diag(LEAST_SHARE * errors.diagonal() + LEAST_ERROR)
    of_parts = np.maximum(np.linalg.solve(errors, np.ones(len(parts))), 0.0)
    of_parts /= of_parts.sum()
    noise, sampling = float(of_parts**2 @ noises), float(of_parts @ entries)
    # Units with entries in several rows and in one are summed apart, each with noise.
    alone = min(_alone(each, n_rows) * norm / each, 1.0)
    shares = np.array([1 - alone, alone])
    blocks = weights_by_size(weight * shares, 1 / norm, noise, sampling)
    noise *= float(blocks @ blocks / (blocks @ shares) ** 2)
    sampling *= float(blocks**2 @ shares / (blocks @ shares) ** 2)
    return _RowErrors(noise, sampling, float(of_parts @ shifts), weight, norm)


class _Search:
    """Expected course of the search for components: squared cosine with the truth by sweep.
    Components are taken to be alike. `overlap` is the squared cosine after the last sweep.
    """

    def __init__(
        self,
        each: float,
        shape: tuple[int, ...],
        plan: PersonPlan,
        assumed: Assumed,
        rank: int,
        gain_of_biases: float,
    ) -> None:
        self._gain_of_biases = gain_of_biases
        n_units = shape[plan.unit_mode]
        n_cells = math.prod(shape) // n_units  # of a unit
        self._each, self._plan, self._n_units = each, plan, n_units
        self._trial = trial_sweeps(plan.n_sweeps)
        self._weight = row_weight(n_units, each, n_cells)
        weights = np.full(n_cells, self._weight)
        self._n_columns = columns_worth(weights, n_units, plan, rank)
        self._by_chance = variance_by_chance(weights, n_units, self._n_columns)
        self._residual = assumed.about_biases
        # As many components as have the assumed variance and as were asked for, and the share of
        # each in the variance about biases; columns may hold fewer. Of ratings of films and jokes
        # the largest holds half of what all components do.
        share = assumed.component_share * assumed.deviation**2 / self._residual
        number = max(min(max(round(share / defaults.COMPONENT_VARIANCE), 2), rank), 1)
        self._n_components, self._one_share = min(number, self._n_columns), share / number
        mu = plan.releases.cost_of(SharedFactorSums.name).mu
        self._deviation = SharedFactorSums.farthest / mu  # of the noise of one sweep
        self._cosine = min(self._n_columns / n_cells, 1.0)  # of random directions
        self.overlap = self._cosine
        # Sum of a row in one column: expected value for a component of size one there, and variance
        # by noise; and the weight of all releases in it.
        self._signal = self._noise_variance = self._weight_of_all = 0.0
        # Variance of one release's sum by units.
        self._by_units_once = self._weight / math.sqrt(each) / self._n_columns
        # Variance that all directions explain, by sweep, in units of that assumed of one.
        self._explained: list[float] = []

    def explained(self) -> float | None:
        """Variance of values that components will explain; None if the trial will reject them."""
        for step in range(self._plan.n_sweeps):
            by_chance = self._add_sweep(step)
            if step + 1 == self._trial and not self._worth_more_than_biases(by_chance):
                return None
        snr = self._snr_of_weight()
        share = self._n_components * self._one_share * self.overlap
        # A unit's weights keep s / (1 + s) of their variance, s = snr / (1 - share), as residuals
        # lack what components explain.
        return self._residual * share * snr / (1 + snr - share)

    def _add_sweep(self, step: int) -> float:
        """Add a sweep's sums, which moves `overlap`; return the variance explained by chance."""
        # Mean length of a unit's weights over its root mean square, for a few columns, times the
        # loss by unequal components and random starts. Fitted to synthetic ratings at budgets from
        # 0.5 to 10.
        mean_length = 0.78
        kept = 0.0  # of the sums of earlier sweeps
        if step > 0:
            # Noise is new in each sweep, sums over the same units are not: the larger the share of
            # noise in the variance of a sweep, the more earlier sweeps add.
            explained = np.array(self._one_share * self.overlap / defaults.COMPONENT_VARIANCE)
            by_noise = self._deviation**2 / (self._deviation**2 + self._by_units_once)
            kept = float(forgetting_factor(explained, self._cosine, self._trial, by_noise))
        snr = self._snr_of_weight()
        # Weights are divided by their norm: each column counts 1 by chance, and `snr` more for a
        # component in it.
        norm_of_weights = math.sqrt(self._n_columns + self._n_components * snr)
        response = mean_length * math.sqrt(snr) / norm_of_weights
        self._signal = kept * self._signal + self._weight * math.sqrt(self._one_share) * response
        self._noise_variance = kept**2 * self._noise_variance + self._deviation**2
        self._weight_of_all = kept * self._weight_of_all + 1
        # Random units give the variance_by_chance, the same in all sweeps.
        by_units = self._weight_of_all**2 * self._by_units_once
        ratio = self._signal**2 / (self._noise_variance + by_units)
        # The first sweep is no worse than the random start.
        self.overlap = max(ratio / (1 + ratio), self.overlap if step == 0 else 0.0)
        share = self._n_components * self._one_share * self.overlap
        self._explained.append(share / defaults.COMPONENT_VARIANCE)
        # What chance explains is of units; noise in sums leaves less of it.
        return self._by_chance * by_units / (by_units + self._noise_variance)

    def _snr_of_weight(self) -> float:
        """Squared signal-to-noise ratio of a unit's weight of one component."""
        return self._each * self._one_share * self.overlap

    def _worth_more_than_biases(self, by_chance: float) -> bool:
        """True if components are expected to gain more than biases, by the test of `Directions`."""
        last, untold = judged_sweeps(self._trial), untold_of_weight(self._each)
        sigma = self._deviation / (MOMENT_WEIGHT * self._n_units) / (1 - untold) ** 2
        noise = float(moment_noise(sigma, self._n_columns, last))
        eigenvalue = math.fsum(self._explained[-last:]) / last / self._n_components
        # An eigenvalue is visible if it exceeds half the edge of the noise.
        hidden = eigenvalue <= edge_of_noise(noise, self._n_columns) / 2
        explained = 0.0 if hidden else eigenvalue - noise - by_chance
        gain = gain_of_components(np.full(self._n_components, explained), self._each, 1.0)
        return gain * self._residual > self._gain_of_biases


@dataclass(frozen=True, repr=False)
class CompletionForecast(InvertibleForecast):
    """Expected root mean square errors, for values of an assumed deviation.

    Attributes
    ----------
    perturbation : str
        Quantities that would get noise, as for the parameter of the estimator.
    of_mean : float
        Error of predicting the mean everywhere: the standard deviation that values are assumed
        to have, by default a quarter of the width of the bounds.
    of_biases : float
        Error with mean and biases; infinite where they are not released.
    finds_components : bool
        True if components worth finding would stand out of the noise.
    bias_deviation : float
        Assumed standard deviation of the biases of each mode.
    of_model : float
        Error with components as well, if the forecast covers how they will be found: from
        released values, or with the units of a matrix folded in. Otherwise the error with mean
        and biases. With a ``unit_mode``, `of_biases` too is for units whose entries are folded in.
    component_share : float
        Assumed share of components in the variance of values.
    of_fold_in : float
        Error of values of rows of ``unit_mode`` (or of the first mode) whose own entries are
        folded in.
    bias_errors : tuple of float
        Expected standard error of the bias of an average row of each mode, as ``bias_errors_`` of
        a fit has it; NaN for ``unit_mode``.
    mean_error : float
        Expected standard error of the mean, as ``mean_error_`` of a fit has it; NaN without
        ``unit_mode``.
    of_predict : float
        Error of ``predict``: with a ``unit_mode`` that of the mean and biases for a unit of which
        nothing else is known, else `of_model`.
    entries_to_tell : float
        With a ``unit_mode``, number of entries of a row of the first other mode from which its
        bias errs by less than biases differ; NaN without.

    Examples
    --------
    >>> from sktensor_dp import PrivateCPCompletion
    >>> model = PrivateCPCompletion(2, epsilon=1.0, bounds=(1, 5), unit_mode=0)
    >>> forecast = model.forecast(60_000, (1000, 500))
    >>> forecast.epsilon_for(error=0.9), forecast.n_for(error=0.9)
    (0.853, 864)
    """

    perturbation: str
    of_mean: float
    of_biases: float
    finds_components: bool
    bias_deviation: float
    of_model: float
    component_share: float
    of_fold_in: float
    bias_errors: tuple[float, ...]
    mean_error: float
    of_predict: float
    entries_to_tell: float
    _question: Question | None = field(default=None, kw_only=True, repr=False, compare=False)

    @property
    def deviation(self) -> float:
        """Standard deviation that values are assumed to have."""
        return self.of_mean

    def epsilon_for(self, error: float) -> float | None:
        """Find the least epsilon for an expected error, with as much data as was asked about.

        Parameters
        ----------
        error : float
            Root mean square error of predictions, in units of the values, as `of_model`.

        Returns
        -------
        float or None
            From .01 to 10, to three digits; None if no epsilon reaches the error. Costs no
            privacy.
        """
        return least_epsilon(lambda epsilon: self._again(epsilon=epsilon).of_model <= error)

    def n_for(self, error: float) -> int | None:
        """Find the least number of units for an expected error, at the estimator's epsilon.

        Parameters
        ----------
        error : float
            Root mean square error of predictions, in units of the values, as `of_model`.

        Returns
        -------
        int or None
            Number of rows of ``unit_mode``, each with as many entries as asked about; or of
            entries of a tensor of the same shape, where an entry is the unit. None if no
            number reaches the error. Costs no privacy.
        """
        asked = self._asked()
        mode, rank = asked.parameters["unit_mode"], asked.parameters["rank"]
        limits = (1, math.prod(asked.numbers["shape"]))
        if mode is not None:
            # A mode has at least as many rows as its rank.
            limits = (1 if isinstance(rank, Integral) else rank[mode], MOST_UNITS)
        return least_number(lambda n: self._again(**self._sized(n)).of_model <= error, *limits)

    def what_helps(self) -> dict[str, float]:
        """Find what would let components be found, each change by itself.

        Returns
        -------
        dict of str to float
            The least ``"epsilon"`` up to 10, number of ``"units"`` (rows of ``unit_mode``, or
            entries), and with a ``unit_mode`` of entries of ``"each"`` unit; the smallest change
            first. Odds are about even there: take more. Empty if components are expected as it is,
            or if nothing of this suffices. Costs no privacy.

        Examples
        --------
        >>> from sktensor_dp import PrivateCPCompletion
        >>> model = PrivateCPCompletion(2, epsilon=0.5, bounds=(1, 5), unit_mode=0)
        >>> model.forecast(60_000, (1000, 500)).what_helps()
        {'units': 26797.0}
        """
        asked = self._asked()
        n, shape = asked.numbers["n_observed"], asked.numbers["shape"]
        mode, n_cells = asked.parameters["unit_mode"], math.prod(shape)
        now = {"epsilon": asked.parameters["epsilon"], "units": n if mode is None else shape[mode]}
        found: dict[str, float | None] = {
            "epsilon": least_epsilon(lambda epsilon: self._again(epsilon=epsilon).finds_components)
        }
        most_units = n_cells if mode is None else MOST_UNITS
        if mode is not None:
            n_units, now["each"] = shape[mode], n / shape[mode]

            def with_each(each: int) -> bool:
                return self._again(n_observed=each * n_units).finds_components

            found["each"] = least_number(with_each, most=n_cells // n_units)
        found["units"] = least_number(
            lambda n: self._again(**self._sized(n)).finds_components, now["units"], most_units
        )
        helping = {
            name: float(least)
            for name, least in found.items() if least is not None and least > now[name]
        }  # fmt: skip
        return dict(sorted(helping.items(), key=lambda item: item[1] / now[item[0]]))

    def advice(self) -> str:
        """Say in a sentence what would let components be found, if they will not be.

        Returns
        -------
        str
            Numbers of :meth:`what_helps`. Costs no privacy.
        """
        share = f"{self.component_share:.0%}"
        if self.finds_components:
            return f"One could be found if components hold {share} of the variance."
        parameters = self._asked().parameters
        of_units = parameters["unit_mode"] is not None
        words = {
            "epsilon": "epsilon={:g}", "units": "{:,.0f} " + ("units" if of_units else "entries"),
            "each": "{:,.0f} entries of each unit",
        }  # fmt: skip
        ways = [words[name].format(number) for name, number in self.what_helps().items()]
        if ways:
            found = f"If components hold {share} of the variance, one could be found with "
            return f"{found}{', or with '.join(ways)}: the least, at about even odds."
        if of_units and parameters["delta"] == 0:
            return "Components of units need a delta above 0."
        return "Neither an epsilon of 10 nor more data would show components; fewer rows may."

    def _sized(self, n: int) -> dict[str, Any]:
        """Numbers of this forecast's question for `n` units, each with as many entries."""
        asked = self._asked()
        mode = asked.parameters["unit_mode"]
        if mode is None:
            return {"n_observed": n}
        shape = list(asked.numbers["shape"])
        each = asked.numbers["n_observed"] / shape[mode]
        shape[mode] = n
        return {"n_observed": max(round(n * each), 1), "shape": tuple(shape)}

    @property
    def mean_is_all(self) -> bool:
        """True where nothing better than the mean can be expected."""
        worth = 0.99  # an error of biases within a percent of the mean's is as good as that
        return not self.finds_components and self.of_predict > worth * self.of_mean

    @property
    def hidden_modes(self) -> list[int]:
        """Modes of which the bias of an average row has a larger error than differences, as
        a fit would see them.
        """
        # Shrunk estimates with errors of variance v have the variance bias_deviation^2 - v;
        # `SharedEffects.is_hidden` where that is v at most. NaN, for units, is not hidden.
        most = self.bias_deviation**2 / 2
        return [m for m, error in enumerate(self.bias_errors) if error**2 > most]

    @property
    def verdict(self) -> str:
        """``"enough"`` to tell biases apart, ``"may be enough"``, or ``"likely too few"``: where no
        row, whatever number of units have entries in it, has a bias that errs by less than biases
        differ.
        """
        asked = self._asked()
        mode = asked.parameters["unit_mode"]
        none = (
            self.hidden_modes
            if mode is None
            else units_with_entries(asked.numbers["n_observed"], asked.numbers["shape"][mode])
            < self.entries_to_tell
        )
        if none:
            return "likely too few"
        return "may be enough" if self._unseen() else "enough"

    def _unseen(self) -> dict[int, float]:
        """Errors of biases of an average row, of the modes in which they are not clearly seen."""
        most = (1 - ENOUGH_SEEN) * self.bias_deviation**2
        return {mode: error for mode, error in enumerate(self.bias_errors) if error**2 > most}

    def errors_alone(self) -> tuple[float, ...]:
        """`bias_errors` if no components were sought, at rank 0; of Tucker, which has none, these.

        Returns
        -------
        tuple of float
            One per mode. Costs no privacy.
        """
        asked = self._asked()
        if asked.parameters["unit_mode"] is None or getattr(asked.kind, "_full_core", True):
            return self.bias_errors
        return tuple(asked.forecast({"rank": 0}, {}).bias_errors)

    @property
    def assumption(self) -> str:
        """Sentence on what is assumed of values."""
        is_one = np.max(self._asked().parameters["rank"]) == 1
        return (
            f"Values are assumed to have a deviation of {self.deviation:.3g}, the biases of each "
            f"mode one of {self.bias_deviation:.3g}, and "
            f"{'the one component of rank 1' if is_one else 'components'} "
            f"{self.component_share:.0%} of the variance."
        )

    def _table(self) -> Table:
        said = "Mean and biases can be found."
        parameters = self._asked().parameters
        of_units = parameters["unit_mode"] is not None
        if self.mean_is_all and of_units:
            said = (
                f"predict() will be no better than the mean, which errs by {self.mean_error:.3g}."
            )
        elif self.mean_is_all:
            said = "At this epsilon predicting the mean is all there is."
            if self.of_predict > self.of_mean:
                said = "At this epsilon the mean is all there is, with noise in it."
        elif unseen := self._unseen():
            errors = " and ".join(f"{error:.3g} in mode {mode}" for mode, error in unseen.items())
            said = (
                f"Noise {'hides' if self.hidden_modes else 'may hide'} biases, which differ by "
                f"{self.bias_deviation:.3g}: the expected error of an average row's is {errors}."
            )
            if self.verdict != "likely too few" and of_units:
                said += f" Those of rows with {self.entries_to_tell:,.0f} entries or more err less."
        elif self.finds_components:
            said = "Components may be found on top of mean and biases."
        rows = [["the mean", f"{self.of_mean:.3g}"]]
        own = "own entries folded in"
        rows.append(["mean and biases", f"{self.of_predict if of_units else self.of_biases:.3g}"])
        if of_units:
            rows.append([own, f"{self.of_biases:.3g}"])
        if self.of_model < self.of_biases:
            rows.append(["components too", f"{self.of_model:.3g}"])
        if self.of_fold_in != self.of_model:
            rows.append([own, f"{self.of_fold_in:.3g}"])
        told = f"{self.assumption} Say otherwise by arguments of forecast()."
        below = [told, f"Noise: perturbation={self.perturbation!r}."]
        if dearer := [
            f"by {error:.3g} in mode {mode}, and with rank=0 by {least:.3g}"
            for mode, (error, least) in enumerate(
                zip(self.bias_errors, self.errors_alone(), strict=True)
            )
            if error > least
        ]:
            taken = "The search for components takes budget from biases. An average row's errs "
            below.insert(0, f"{taken}{'; '.join(dearer)}.")
        if np.max(parameters["rank"]) > 0:
            below.insert(0, self.advice())
        return Table(said, ("prediction by", "expected RMSE"), rows, below, ("prediction by",))
