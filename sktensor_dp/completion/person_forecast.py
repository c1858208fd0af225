"""Expected errors of completions where units are persons, from public numbers alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_genlaguerre, roots_hermitenorm

from sktensor_dp.completion import defaults
from sktensor_dp.completion.component_search import (
    OWN_TAKEN,
    columns_worth,
    excess_of_assumed,
    forgetting_factor,
    gain_of_components,
    moment_noise,
    own_part,
    recent_sweeps,
    telling_entries,
    untold_of_weight,
    variance_by_chance,
)
from sktensor_dp.completion.effect_release import (
    LEAST_ERROR,
    LEAST_RELATIVE_ERROR,
    weights_by_size,
    weights_of_least_error,
)
from sktensor_dp.completion.entry_forecast import Errors
from sktensor_dp.completion.panel import Draw, ErrorsOfRow, Panel
from sktensor_dp.completion.plan import (
    Assumed,
    ConcurrencePayment,
    PersonPlan,
    judged_sweeps,
    row_weight,
    trial_sweeps,
)
from sktensor_dp.completion.pull import OfClips, Pull, pull_by_clip
from sktensor_dp.completion.shared_biases import (
    by_own_level,
    clip_of_least_error,
    longest_sum,
    mean_to_median,
    shift_by_clip,
)
from sktensor_dp.estimator.forecast import sigma_of_mean
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries.person_entries import (
    MOMENT_WEIGHT,
    RowConcurrences,
    SharedFactorSums,
    SharedRowSums,
    UnitLevels,
)
from sktensor_dp.tensor import defaults as kernel_defaults
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.largest_of_noise import edge_of_noise
from sktensor_dp.tensor.shared_parameters import (
    UNCLIPPED,
    clipped_response,
    clipped_variance,
    ratio_to_largest,
    residual_clip,
)


def forecast_person_errors(course: "Course") -> Errors:
    """Expected errors where units are persons."""
    each, shape, plan, assumed = course.each, course.shape, course.plan, course.assumed
    by_sweep = plan.n_sweeps > 0 and not course.passes_trial  # pays for biases and the level
    rows = course.more_rows if by_sweep else course.rows
    if_found, _ = course.biases
    biases, of_change = course.more_biases if by_sweep else course.biases
    explained, n_found = (0.0, 0) if by_sweep or not plan.n_sweeps else course.found[1:]
    residual, of_biases = assumed.about_biases, math.fsum(biases)
    error = math.sqrt(residual + _level_variance(each, assumed) + of_biases)
    model = math.sqrt(error**2 - explained) if explained else error
    mean_error = _mean_error(each, shape, plan, assumed, by_sweep=by_sweep)
    mean_error_if_found = _mean_error(each, shape, plan, assumed, by_sweep=False)
    # The level of a unit is unknown to `predict`; it is assumed to vary as biases do.
    of_predict = math.sqrt(residual + assumed.bias_deviation**2 + mean_error**2 + of_biases)
    of_modes = np.insert([biases, if_found], plan.unit_mode, math.nan, axis=1)
    return Errors(
        of_biases=error, of_model=model, of_fold_in=model, n_found=n_found,
        bias_variances=of_modes, mean_error=mean_error, of_predict=of_predict,
        mean_error_if_found=mean_error_if_found,
        entries_to_tell=rows[0].entries_to_tell(assumed.bias_deviation),
        change_variance=of_change,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Course:
    """Expected course of a fit; what takes long is computed where it is asked for."""

    each: float  # entries of a unit
    shape: tuple[int, ...]  # of units that have entries
    plan: PersonPlan  # with the sweeps that concurrences leave
    assumed: Assumed
    rank: int
    panel: Panel | None
    rows: list["_RowErrors"]
    more_rows: list["_RowErrors"]  # where the trial ends the search
    panel_payment: ConcurrencePayment

    @classmethod
    def of(
        cls, n_observed: int, shape: tuple[int, ...], plan: PersonPlan, assumed: Assumed, rank: int,
        stays: int | None,
    ) -> "Course":  # fmt: skip
        """Course of a fit of public sizes.

        With `stays`, each person has entries in so many neighbouring rows of the last mode.
        """
        # Units without entries do not count.
        n_units = min(n_observed, shape[plan.unit_mode])
        shape = (*shape[: plan.unit_mode], n_units, *shape[plan.unit_mode + 1 :])
        each = n_observed / n_units
        entries = each if len(shape) > 2 else None  # rows of a matrix hold one entry of a unit
        panel = None if stays is None else Panel(shape[-1], stays, n_units, entries)
        weights = _weights_of_rows(each, shape, plan, panel)
        payments = [
            plan.payment_for_concurrences(
                place, one.n_rows, one.each * one.n_rows, (each / one.norm) ** 2
            )
            for place, one in enumerate(weights)
        ]
        if panel is not None:
            payments[-1] = panel.payment(plan)
        plan = replace(plan, n_sweeps=plan.n_sweeps - sum(one.n_sweeps for one in payments))
        rows, more_rows = _errors_of_rows(each, plan, assumed, weights, payments)
        return cls(each, shape, plan, assumed, rank, panel, rows, more_rows, payments[-1])

    @property
    def finds_components(self) -> bool:
        """True if components are expected; computes no errors that do not decide it."""
        return self.plan.n_sweeps > 0 and self.found[2] > 0 and self.passes_trial

    @cached_property
    def found(self) -> tuple[float, float, int]:
        """Gain, explained variance and number of components, as of `_Search.found`."""
        return _Search(self.each, self.shape, self.plan, self.assumed, self.rank).found()

    @cached_property
    def biases(self) -> tuple[list[float], float]:
        """Error variances as of `_bias_variances`, if the search is not ended."""
        return _bias_variances(self.rows, self._draws, self.assumed, self.panel)

    @cached_property
    def more_biases(self) -> tuple[list[float], float]:
        """Error variances if the trial ends the search, whose sweeps are then for biases."""
        return _bias_variances(self.more_rows, self._draws, self.assumed, self.panel)

    @cached_property
    def passes_trial(self) -> bool:
        """True if components are expected to gain more than biases, as `DirectionSearch` tests."""
        # Fits judge better biases by errors of all rows, also of those of few entries: they expect
        # twice as much of them, or more, on drawn ratings.
        by_rows = 2.0
        gain_of_biases = math.fsum(self.biases[0]) - math.fsum(self.more_biases[0])
        return self.found[0] >= by_rows * gain_of_biases

    @cached_property
    def _draws(self) -> list[Draw] | None:
        """Draws of concurrences of the last mode, needed with a panel only."""
        if self.panel is None or not self.panel_payment.is_released:
            return None
        return self.panel.draws(self.plan.noise_of_concurrences(self.panel_payment.n_sweeps))


def _level_variance(each: float, assumed: Assumed) -> float:
    """Error variance of a unit's level: the mean of its entries, shrunk to the mean of all units.

    Levels are assumed to vary as biases do; `each` is the number of entries of a unit.
    """
    prior = 1 / kernel_defaults.LEVEL_VARIANCE  # number of entries that would weigh as much as it
    by_shrinkage, by_entries = assumed.bias_deviation**2 * prior**2, assumed.about_biases * each
    return (by_shrinkage + by_entries) / (each + prior) ** 2


def _mean_error(
    each: float, shape: tuple[int, ...], plan: PersonPlan, assumed: Assumed, *, by_sweep: bool
) -> float:
    """Standard error of the released mean, by shrunk noise and by sampling of units.

    A sweep of a search pays for the level if `by_sweep`, else uses of its own release do.
    """
    n_units, cost = shape[plan.unit_mode], plan.cost_of_level(by_sweep=by_sweep)
    half = assumed.half_of_levels(np.delete(shape, plan.unit_mode))
    levels = UnitLevels(half, order=2 if cost.mu > 0 else 1)
    sigma = sigma_of_mean(levels, cost, n_units, "replace_one")
    shrunk = sigma / math.sqrt(1 + 12 * sigma**2)  # by a uniform prior, of variance 1 / 12
    of_means = (kernel_defaults.LEVEL_VARIANCE + 1 / each) * assumed.about_biases
    if levels.order == 1:  # squares of means are not released: a fit takes the variance of values
        of_means = assumed.deviation**2
    return math.hypot(shrunk, math.sqrt(of_means / n_units))


def _bias_variances(
    rows: list["_RowErrors"], draws: Sequence[Draw] | None, assumed: Assumed, panel: Panel | None
) -> tuple[list[float], float]:
    """Error variances of an average row's bias of each shared mode, and of a change.

    The change is from the first row of a `panel` to the last; NaN without one. `draws` are of
    released concurrences of its mode, None if they are not released.
    """
    errors = [
        ErrorsOfRow(e.noise / e.weight**2, e.sampling / e.weight / e.norm, e.shift**2, e.blocks)
        for e in rows
    ]
    variances = assumed.shrunk([math.fsum(of_row[:3]) for of_row in errors])
    if panel is None:
        return variances, math.nan
    if draws is None:  # fits take rows to be by chance
        return variances, 2 * variances[-1]
    of_rows = panel.variances(errors[-1], draws, assumed)
    return [*variances[:-1], float(np.mean(of_rows))], float(of_rows[0] + of_rows[-1])


class _RowErrors(NamedTuple):
    """Errors of the bias of a row of weight w in released sums."""

    noise: float  # variance by noise, times w^2
    sampling: float  # variance by the row's entries, times w * norm
    shift: float  # root mean square error by clips, as residuals are not normal
    weight: float  # w of an average row
    norm: float  # an entry weighs 1 / norm
    blocks: Floats  # (2,): factors of sums of units with entries in several rows, and in one

    def entries_to_tell(self, bias_deviation: float) -> float:
        """Number of entries with which the bias of a row errs by as much as biases differ."""
        if bias_deviation == 0:
            return math.nan
        left = bias_deviation**2 - self.shift**2  # variance, for noise and sampling
        if left <= 0:
            return math.inf
        # Solve noise / w^2 + sampling / (w norm) = left for the weight w of the row.
        by_entries = self.sampling / self.norm / left
        weight = (by_entries + math.sqrt(by_entries**2 + 4 * self.noise / left)) / 2
        return weight * self.norm


class _RowWeights(NamedTuple):
    """Expected weights of rows of a shared mode in released sums."""

    n_rows: int
    each: float  # of a row
    norm: float  # an entry weighs 1 / norm
    in_one: float  # part of units whose entries are all in one row


def _weights_of_rows(
    each: float, shape: tuple[int, ...], plan: PersonPlan, panel: Panel | None
) -> list[_RowWeights]:
    """Weights of rows of each shared mode.

    `each` is the number of entries of a unit; a `panel` says in which rows of the last mode.
    """
    weights = list[_RowWeights]()
    n_cells = math.prod(shape) // shape[plan.unit_mode]
    if panel is not None:  # of rows of the last mode, a unit has cells in some alone
        n_cells = n_cells // shape[-1] * panel.stays
    for place, n_rows in enumerate(np.delete(shape, plan.unit_mode).tolist()):
        # Part of units whose entries, one and a Poisson number of others, are all in one row.
        in_one = math.exp((each - 1) * (1 / n_rows - 1))
        # In `SharedRowSums` of order 2 an entry weighs 1 over the norm of its unit's counts. In
        # those of order 1 it weighs 1 over `each`, times the root of the part of the unit's entries
        # in other rows, if there are any.
        norm = norm_in_rows(each, n_rows, n_cells)
        if panel is not None and place == len(shape) - 2:
            in_one, norm = panel.alone, each / panel.weight
        if not plan.costs_of_biases()[place].mu > 0:  # pure noise: order 1
            in_others = max(1 - (norm / each) ** 2, 0.5)
            norm = each / (in_one + (1 - in_one) * math.sqrt(in_others))
        weight = shape[plan.unit_mode] * each / n_rows / norm
        weights.append(_RowWeights(n_rows, weight, norm, in_one))
    return weights


def _errors_of_rows(
    each: float, plan: PersonPlan, assumed: Assumed, weights: list[_RowWeights],
    payments: list[ConcurrencePayment],
) -> tuple[list[_RowErrors], list[_RowErrors]]:  # fmt: skip
    """Errors of biases of each shared mode, with their own budget, and with that of sweeps too.

    `each` is the number of entries of a unit, and `payments` say what pays for concurrences.
    """
    usual, more = list[_RowErrors](), list[_RowErrors]()
    costs, for_biases = plan.costs_of_biases(), plan.sweeps_for_biases()
    for place, (n_rows, weight, norm, in_one) in enumerate(weights):
        usual_mus = _budgets_of_rounds(plan, place, are_released=payments[place].by_own)
        more_mus = list[float]()
        if for_biases[place] > 0:
            # If the trial ends the search, biases get the budget of sweeps left.
            mu_of_sweep = plan.releases.cost_of(SharedFactorSums.name).mu
            more_mus.append(mu_of_sweep * math.sqrt(for_biases[place]))
        rounds = _errors_of_rounds(each, weight, n_rows, costs[place], assumed, usual_mus, more_mus)
        # A row's sum is the weighted sum of two noisy blocks: of units with entries in several
        # rows, and of units with entries in one. `parts` are their parts of the row's weight.
        part_in_one = min(in_one * norm / each, 1.0)
        parts = np.array([1 - part_in_one, part_in_one])
        for errors, (noise, sampling, shift) in zip((usual, more), rounds, strict=True):
            blocks = weights_by_size(weight * parts, 1 / norm, noise, sampling)
            noise *= float(blocks @ blocks / (blocks @ parts) ** 2)
            sampling *= float(blocks**2 @ parts / (blocks @ parts) ** 2)
            errors.append(_RowErrors(noise, sampling, shift, weight, norm, blocks))
    return usual, more


def norm_in_rows(each: float, n_rows: int, n_cells: int) -> float:
    """Norm of a unit's numbers of entries by row, if its entries are in random cells."""
    # A cell has one entry at most, so numbers are hypergeometric.
    correction = max(n_cells - each, 0.0) / max(n_cells - 1, 1)
    return math.sqrt(each * (1 - 1 / n_rows) * correction + each**2 / n_rows)


class _RoundErrors(NamedTuple):
    """Errors of the bias of a row by one release or several, in the units of `_RowErrors`."""

    noise: float
    sampling: float
    shift: float


def _errors_of_rounds(
    each: float, weight: float, n_rows: int, cost: PrivacyCost, assumed: Assumed,
    usual_mus: list[float], more_mus: list[float],
) -> tuple[_RoundErrors, _RoundErrors]:  # fmt: skip
    """Errors of one of `n_rows` rows of a shared mode by all rounds at `usual_mus`, in one block.

    `weight` is that of the row, `cost` that of all rounds. The second counts `more_mus`, too.
    """
    # Clips are those of `SharedBiases.release` for values whose mean is in the middle of bounds.
    rounds, half, mus = len(usual_mus), 1 / 2, usual_mus + more_mus
    about, by_effects = assumed.about_biases, assumed.bias_deviation**2
    of_values = math.sqrt(about + by_effects)
    least, ratio = residual_clip(of_values, half), ratio_to_largest(of_values, half)
    apart = float(mean_to_median(ratio, assumed.bias_deviation, half))
    pull = Pull.prior(share_varied=1.0)  # the forecast has no measurement of it
    errors: list[_RoundErrors] = []
    by_clip: list[float] = []
    for number, mu in enumerate(mus):
        # Residuals of the first round contain effects.
        deviation = math.sqrt(about + (by_effects if number == 0 else 0.0))
        widest = 2 * half / deviation
        if number == 0:
            clip = UNCLIPPED
        elif mu in (0.0, math.inf):  # no noise: with noise a pure budget, of mu 0, has one round
            clip = widest
        else:
            noises, _, shifts = np.array(errors).T
            unit = weight * deviation
            past = OfClips(unit**2 / noises, np.array(by_clip), shifts / deviation)
            # By all rounds to come together, or by the one that sweeps pay for.
            noise = 1 / (weight * mu * math.sqrt(max(rounds - number, 1)))
            clip = clip_of_least_error(
                past, noise, apart / deviation, assumed.bias_deviation / deviation, n_rows, pull,
                least, widest,
            )  # fmt: skip
        farthest = SharedRowSums.largest_distance(longest_sum(clip))
        # Pure noise is Laplace noise; the L1 sensitivity is 4.
        sigma = farthest / mu if mu > 0 else math.sqrt(2) * 4 / cost.epsilon
        shift = apart * shift_by_clip(clip, widest)
        errors.append(_errors_of_round(sigma, clip * deviation, deviation, each, shift))
        by_clip.append(pull_by_clip(clip))
    return _averaged(errors[:rounds], weight), _averaged(errors, weight)


def _budgets_of_rounds(plan: PersonPlan, place: int, *, are_released: bool) -> list[float]:
    """Budget mu of each round of biases of the shared mode at `place`.

    Concurrences that were planned pay for one round more if not `are_released`.
    """
    rounds = plan.n_rounds
    mus = [plan.costs_of_biases()[place].mu / math.sqrt(rounds)] * rounds
    if plan.with_concurrences[place] and not are_released:
        mus.append(plan.releases.cost_of(RowConcurrences.name).mu)
    return mus


def _errors_of_round(
    sigma: float, largest: float, deviation: float, each: float, shift: float
) -> _RoundErrors:
    """Errors of one round with noise `sigma` and this `shift`, clipped to a `largest` residual."""
    # Residuals are about a unit's own level, which errs.
    varied = deviation * math.sqrt(1 + by_own_level(each))
    slope = clipped_response(largest / varied, varied)
    by_entries = clipped_variance(largest / varied) / slope**2
    return _RoundErrors((sigma / slope) ** 2, by_entries, shift)


def _averaged(rounds: list[_RoundErrors], weight: float) -> _RoundErrors:
    """Errors of the average of `rounds` that errs least, as in `EffectRelease.combined`."""
    noises, samplings, shifts = np.array(rounds).T
    errors = np.diag(noises / weight**2) + np.outer(shifts, shifts)
    errors += np.diag(LEAST_RELATIVE_ERROR * errors.diagonal() + LEAST_ERROR)
    weights = weights_of_least_error(errors)
    by_noise, by_entries = float(weights**2 @ noises), float(weights @ samplings)
    return _RoundErrors(by_noise, by_entries, float(weights @ shifts))


class _Search:
    """Expected course of a search for components of equal variance, sweep by sweep.

    `overlaps` are squared cosines of directions with true components after the last sweep.
    """

    def __init__(
        self, each: float, shape: tuple[int, ...], plan: PersonPlan, assumed: Assumed, rank: int
    ) -> None:
        n_units = shape[plan.unit_mode]
        n_cells = math.prod(shape) // n_units  # of a unit
        self._n_entries_each, self._plan, self._n_units = each, plan, n_units
        self._residual = assumed.about_biases
        # Of values about a unit's level, to which the assumed variance of a component is relative.
        n_shared = assumed.n_biased - 1
        self._variance = self._residual + n_shared * assumed.bias_deviation**2
        # Entries that tell a unit's weights: their number, and the one that counts where variances
        # of components are relative to `_variance`.
        self._telling = telling_entries(math.sqrt(each))
        self._assumed_telling = self._telling * self._variance / self._residual
        self._n_trial = trial_sweeps(plan.n_sweeps)
        self._weight = row_weight(n_units, each, n_cells)
        weights = np.full(n_cells, self._weight)
        self._n_columns = columns_worth(weights, n_units, plan, rank)
        self._by_chance = variance_by_chance(
            weights, n_units, self._n_columns, self._assumed_telling
        )
        share = assumed.component_share * assumed.deviation**2 / self._residual
        # Number of components, unless given: so many that each explains about COMPONENT_VARIANCE of
        # the variance about biases. At least two, as the largest one of ratings of films, and of
        # jokes, explains half of what all do. Columns may hold fewer.
        number = assumed.n_given or max(round(share / defaults.COMPONENT_VARIANCE), 2)
        number = max(min(number, rank), 1)
        self._n_components, self._share_of_one = min(number, self._n_columns), share / number
        mu = plan.releases.cost_of(SharedFactorSums.name).mu
        self._sigma = SharedFactorSums.largest_distance / mu  # of the noise of one sweep
        self._cosine = min(self._n_columns / n_cells, 1.0)  # squared, of random directions
        # Components of equal variance may be any axes of their space. Those that a random start is
        # nearest to grow first: squared cosines are eigenvalues of a Wishart matrix, which are
        # about the roots of a Laguerre polynomial, with the same mean (Dumitriu & Edelman 2005).
        n = self._n_components
        roots, _ = roots_genlaguerre(n, self._n_columns - n)
        self.overlaps = np.minimum(roots / n_cells, 1.0)
        # Of the accumulated sum of a cell in one column: its value if the component is 1 there, its
        # variance by noise, and the total weight of sweeps.
        self._signal, self._noise_variance, self._weight_of_all = np.zeros((3, n))
        self._of_start = np.zeros(n)  # variance by the random start
        # Variance by units of a number in the sums of one sweep.
        self._by_units_once = self._weight / math.sqrt(each) / self._n_columns
        # Variances that directions explain after each sweep, in units of the assumed one.
        self._explained: list[Floats] = []

    def found(self) -> tuple[float, float, int]:
        """Gain expected after the trial; variance that components explain at the end; their number.

        The gain and the variance are of values. The latter two are those if the trial is passed.
        """
        for step in range(self._plan.n_sweeps):
            by_chance = self._add_sweep(step)
            if step + 1 == self._n_trial:
                gain = self._gain_after_trial(by_chance)
        snr, are_found = self._snr_of_weight(), self._is_found(by_chance)
        share = are_found * self._share_of_one * self.overlaps
        # A unit's weights keep s / (1 + s) of their variance, with s = snr / (1 - total), as
        # residuals lack what all components explain: the total of the shares.
        explained = self._residual * float(np.sum(share * snr / (1 + snr - share.sum())))
        return gain, explained, int(are_found.sum())

    def _add_sweep(self, step: int) -> Floats:
        """Add a sweep's sums and update `overlaps`; return variances that chance explains."""
        # Mean length of a unit's weights over its root mean square, for a few columns, times the
        # loss by unequal components and random starts. Fitted to synthetic ratings at budgets from
        # 0.5 to 10.
        mean_length, own_rest = 0.78, 0.3
        # The directions' own part in a sweep's sums: what `OWN_TAKEN` leaves, and a rest that is
        # not in proportion to directions.
        root_each = math.sqrt(self._n_entries_each)
        own = math.hypot(1 - OWN_TAKEN, own_rest) * own_part(self._n_columns, root_each)
        own *= self._weight
        if step == 0:  # the random start
            self._signal = own * np.sqrt(self.overlaps)
            self._of_start = own**2 * (1 - self.overlaps)
            kept = np.ones(self._n_components)
        else:
            by_noise = self._sigma**2 / (self._sigma**2 + self._by_units_once + own**2)
            kept = forgetting_factor(self._explained[-1], self._cosine, self._n_trial, by_noise)
            by_units = self._weight_of_all**2 * self._by_units_once
            of_noise = self._of_start + self._noise_variance + by_units
            kept += own / np.sqrt(self._signal**2 + of_noise)
            self._of_start *= kept**2
        snr = self._snr_of_weight()
        # Weights are divided by their norm, to whose square each column adds 1 by chance, and a
        # component `snr` more. They respond to the other entries of the unit, less its level.
        norm_of_weights = math.sqrt(self._n_columns + float(snr.sum()))
        others = (self._telling / self._n_entries_each) ** 2
        response = mean_length * others * np.sqrt(snr) / norm_of_weights
        self._signal = kept * self._signal + self._weight * math.sqrt(self._share_of_one) * response
        self._noise_variance = kept**2 * self._noise_variance + self._sigma**2
        self._weight_of_all = kept * self._weight_of_all + 1
        # Units are the same in all sweeps, so what they add by chance adds up.
        by_units = self._weight_of_all**2 * self._by_units_once
        ratio = self._signal**2 / (self._of_start + self._noise_variance + by_units)
        # The first sweep is no worse than the random start.
        self.overlaps = np.maximum(ratio / (1 + ratio), self.overlaps if step == 0 else 0.0)
        assumed = defaults.COMPONENT_VARIANCE * self._variance
        self._explained.append(self._residual * self._share_of_one * self.overlaps / assumed)
        # As in `DirectionSearch`: chance is by units, and noise in sums leaves less of it.
        return self._by_chance * by_units / (by_units + self._noise_variance)

    def _snr_of_weight(self) -> Floats:
        """Squared signal-to-noise ratios of a unit's weight of each component."""
        return self._telling * self._share_of_one * self.overlaps

    def _is_found(self, by_chance: Floats) -> NDArray[np.bool_]:
        """True for directions at the end that neither noise nor chance explains, as in a fit."""
        last = recent_sweeps(self._plan.n_sweeps)
        noise = self._noise_of_mean(last)
        least = max(defaults.CERTAIN * noise, edge_of_noise(noise, self._n_columns))
        # Noise spreads equal eigenvalues as those of a Wigner matrix: about the roots of a Hermite
        # polynomial. `noise` is that of a diagonal entry, root 2 of that of another.
        spread = noise / math.sqrt(2) * roots_hermitenorm(self._n_components)[0]
        return np.asarray(self._shown(last, by_chance) + spread > by_chance + least)

    def _shown(self, last: int, by_chance: Floats) -> Floats:
        """Eigenvalues of moments of the last sweeps, to which chance adds in squares."""
        explained = np.mean(self._explained[-last:], axis=0)
        # Residuals of a unit add p (1 - p) to moments, a component (1 - p)^2 times its variance:
        # what components explain is missing in residuals, compared with the first, random ones.
        p = untold_of_weight(self._assumed_telling)
        of_residuals = defaults.COMPONENT_VARIANCE * self._variance / self._residual
        missing = p / (1 - p) * of_residuals * float(explained.sum())
        return np.hypot(np.maximum(explained - missing, 0.0), by_chance)

    def _gain_after_trial(self, by_chance: Floats) -> float:
        """Variance of values that components of the trial are expected to gain."""
        last = judged_sweeps(self._n_trial)
        noise = self._noise_of_mean(last)
        eigenvalues = self._shown(last, by_chance)
        # An eigenvalue is visible if it exceeds half the edge of the noise.
        is_seen = eigenvalues > edge_of_noise(noise, self._n_columns) / 2
        explained = is_seen * (eigenvalues - noise - by_chance)
        left = self._residual / self._variance
        return gain_of_components(explained, self._assumed_telling, left) * self._variance

    def _noise_of_mean(self, last: int) -> float:
        """Noise of the mean moment of the `last` sweeps, in units of the assumed variance."""
        sigma = self._sigma / (MOMENT_WEIGHT * self._n_units)
        sigma /= excess_of_assumed(self._assumed_telling)
        return float(moment_noise(sigma, self._n_columns, last))
