"""Releases of a completion, and assumptions about values: public numbers only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtri

from sktensor_dp.checks.parameters import Number, Numbers, check_feasible, shown
from sktensor_dp.completion import defaults
from sktensor_dp.completion.concurrences import stand_out
from sktensor_dp.completion.hidden_axes import N_LAWS
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.mechanisms import PIECEWISE_EPSILONS, piecewise_deviation
from sktensor_dp.privacy.plan import (
    HISTOGRAM_FRACTION,
    PlannedRelease,
    PrivacyCost,
    ReleasePlan,
    with_histogram,
)
from sktensor_dp.queries.entries import Entries, EntryPairs, RowSums, ValueHistogram
from sktensor_dp.queries.gradients import EntryGradients, RidgeBlock
from sktensor_dp.queries.person_entries import (
    MOST_CELLS,
    RowConcurrences,
    SharedFactorSums,
    SharedRowSums,
    UnitLevels,
)
from sktensor_dp.tensor.defaults import VECTORS
from sktensor_dp.tensor.shared_parameters import (
    GRID_SIZE,
    clipped_response,
    residual_clip,
)


@dataclass(frozen=True)
class Assumed:
    """Public assumptions about values, by which fits are planned and forecast.

    Attributes
    ----------
    deviation : float
        Standard deviation of values, in widths of the bounds as those below. Ratings of books have
        .25, of jokes .26, of films .28.
    bias_deviation : float
        Standard deviation of the biases of each mode.
    component_share : float
        Share of components in the variance of values.
    residual : float
        Standard deviation of a value about the model.
    component : float
        Standard deviation of one component that is worth finding.
    n_components : int
        Number of components, if there are any.
    n_given : int or None
        Number of components of equal variance, if their share is given: the rank.
    observed_share : float
        Share of a unit's cells that have entries. A plan seeks no components where it would not
        find them with so many entries.
    each : int
        Entries of a unit, where their number is private and nobody says it; ``--each`` of the
        command.
    n_biased : int
        Number of modes whose biases explain variance of values: two, or all if `bias_deviation` is
        given.
    """

    deviation: float = 1 / 4
    bias_deviation: float = 1 / 10
    component_share: float = 0.08
    residual: float = 1 / 5
    component: float = 1 / 20
    n_components: int = 3
    n_given: int | None = None
    observed_share: float = 1 / 4
    each: int = 20
    n_biased: int = 2

    @classmethod
    def given(
        cls, width: float, deviation: float | None, bias_deviation: float | None,
        component_share: float | None, rank: int, n_modes: int = 2,
    ) -> "Assumed":  # fmt: skip
        """Assumptions from a caller's numbers in units of values; None takes the default.

        `width` is that of the bounds. By default biases are in proportion to `deviation`, and at
        `rank` 1 the component has half the share that components have otherwise.
        """
        given = {
            "deviation": (deviation, Number(0, math.inf, "neither")),
            "bias_deviation": (bias_deviation, Number(0, math.inf, "left")),
            "component_share": (component_share, Number(0, math.inf, "left")),
        }
        for name, (number, rule) in given.items():
            if number is not None and not rule.accepts(number):
                raise ValueError(
                    f"The {name!r} parameter must be {rule}. Got {shown(number)} instead."
                )
        total_deviation = cls.deviation * width if deviation is None else float(deviation)
        share = cls.component_share / (2 if rank == 1 else 1)
        if component_share is not None:
            share = float(component_share)
        if bias_deviation is None:
            # Biases have nine tenths of the variance that components leave at most.
            most = math.sqrt(max(0.9 * (1 - share), 0.0) / 2)
            bias, n_biased = min(cls.bias_deviation / cls.deviation, most) * total_deviation, 2
        else:
            bias, n_biased = float(bias_deviation), n_modes
        if n_biased * (bias / total_deviation) ** 2 + share > 0.99:
            raise ValueError(
                f"The 'bias_deviation' of {n_biased} modes and the 'component_share' must leave at "
                f"least a hundredth of the variance. Got {bias!r} and {share!r} at a deviation "
                f"of {total_deviation!r}."
            )
        n_given = None if component_share is None else max(rank, 1)
        return cls(total_deviation / width, bias / width, share, n_given=n_given, n_biased=n_biased)

    @property
    def about_biases(self) -> float:
        """Variance of values about mean and biases."""
        return self.deviation**2 - self.n_biased * self.bias_deviation**2

    def half_of_levels(self, lengths: NDArray[Any]) -> float:
        """Half of the range of values less biases of modes of these `lengths`, in widths."""
        # It is wider than the bounds by the largest of so many normal biases (Blom, 1958).
        largest = float(ndtri((lengths - 3 / 8) / (lengths + 1 / 4)).sum())
        return 0.5 + self.bias_deviation * largest

    def shrunk(self, noise: Sequence[Any]) -> list[Any]:
        """Error variances of a bias of each mode after shrinkage; `noise` are those before."""
        prior = self.bias_deviation**2
        return [prior * v / (prior + v) if prior > 0 else 0.0 for v in noise]


ASSUMED = Assumed()


# Largest number of rows of a mode whose concurrences are released: fits solve for all at once.
MOST_CONCURRENT = 1024
# Largest eigenvalue of noise in concurrences, over the mean weight of a row: well below 1 it cannot
# pass for a chain, whose eigenvalue is near 1.
LARGEST_NOISE = 0.82
# Units that have entries in a smaller part of the rows, on average, may keep to few. Any two with
# more than half of the rows have some in common.
MOST_COMPARED = 1 / 2
# Number of steps of gradient descent.
DESCENT_STEPS = 30


@dataclass(frozen=True, eq=False)
class ModelOptions:
    """Options of the fitted model."""

    ranks: tuple[int, ...]  # columns of each factor; all the same without a full core
    full_core: bool  # True for Tucker: all combinations of columns are components
    random_state: np.random.RandomState  # of starts
    max_iter: int | None = None  # most sweeps of a run over released values; None: SWEEPS


def tucker_ranks(name: str, rank: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """Rank of each mode, an int lowered to the lengths; `name` is the estimator's, for errors."""
    if isinstance(rank, int | np.integer):
        return tuple(min(int(rank), n) for n in shape)
    each = f"an int >= 1, or one for each of the {len(shape)} modes"
    if not Numbers(Number(1, np.inf, integer=True), len(shape), each).accepts(rank):
        raise ValueError(
            f"The 'rank' parameter of {name} must be {each}. Got {shown(rank)} instead."
        )
    if any(r > n for r, n in zip(rank, shape, strict=True)):
        raise ValueError(
            f"The 'rank' parameter of {name} must not exceed the shape {tuple(shape)}. "
            f"Got {shown(rank)} instead."
        )
    return tuple(int(r) for r in rank)


@dataclass(frozen=True)
class EntryPlan:
    """Releases of a fit where one value is the unit, decided from public numbers alone."""

    perturbation: str  # never "auto"
    n_steps: int  # of descent, each a release; 0 for other perturbations
    releases: ReleasePlan
    with_pairs: bool = False  # True if products of pairs are released, for `fold_in`

    @property
    def seeks_components(self) -> bool:
        """True if the plan has releases that show components."""
        return self.perturbation != "sufficient_statistics" or self.with_pairs

    def solves_for_core(self, n_modes: int) -> bool:
        """True if a Tucker fit solves for all numbers of its core at once.

        Of a matrix a Tucker fit is a CP fit, except by descent.
        """
        return self.seeks_components and (n_modes > 2 or self.perturbation == "gradient")


def plan_entries(
    n_observed: int, shape: Sequence[int], rank: int = 1, *, epsilon: float, delta: float,
    perturbation: str, max_iter: int | None, chooses_bounds: bool = False,
) -> EntryPlan:  # fmt: skip
    """Plan releases and split the budget where one value is the unit.

    For "auto" the plan has the `perturbation` that public numbers favour.
    """
    # Values get half of epsilon if the last factor is released too, and 98 % beside a histogram:
    # twice the least epsilon leaves them more than enough.
    releases_factor = perturbation == "output" and rank > 0
    least = PIECEWISE_EPSILONS[0] * (1 + releases_factor) * (1 + chooses_bounds)
    if not epsilon >= least:
        raise ValueError(
            f"epsilon must be at least {least:g} for perturbation={perturbation!r} and these "
            f"bounds, got {epsilon:g}."
        )
    histogram, left = tuple[PlannedRelease, ...](), epsilon
    if chooses_bounds:
        # Of pure epsilon, as most releases of entries.
        cost = PrivacyCost(epsilon=HISTOGRAM_FRACTION * epsilon)
        histogram = (PlannedRelease(ValueHistogram.name, cost),)
        left = (1 - HISTOGRAM_FRACTION) * epsilon
    n_steps, for_pairs = 0, 0.0  # number of steps, and fraction of what is left of epsilon
    if perturbation == "auto":
        by_values = values_are_worth_it(n_observed, shape, left)
        perturbation = "input" if by_values else "sufficient_statistics"
        if not by_values and rank > 0:
            for_pairs = pair_fraction(n_observed, shape, left, delta)
    match perturbation:
        case "gradient":
            n_steps, name = DESCENT_STEPS if max_iter is None else max_iter, EntryGradients.name
            planned = ReleasePlan.split(left, delta, {name: 1.0}, {name: n_steps}).planned
        case "input" | "output" if not releases_factor:
            planned = (PlannedRelease(Entries.name, PrivacyCost(epsilon=left)),)
        case "output":  # values and the last factor get half each
            planned = _divided(Entries.name, RidgeBlock.name, 0.5, left, delta)
        case _:
            planned = _divided(RowSums.name, EntryPairs.name, for_pairs, left, delta)
    releases = ReleasePlan(float(epsilon), float(delta), (*histogram, *planned))
    return EntryPlan(perturbation, n_steps, releases, with_pairs=for_pairs > 0)


def _divided(
    first: str, second: str, fraction: float, epsilon: float, delta: float
) -> tuple[PlannedRelease, ...]:
    """Planned releases `first` and, at this `fraction` of epsilon unless it is 0, `second`."""
    of_first = PlannedRelease(first, PrivacyCost(epsilon=(1 - fraction) * epsilon))
    if fraction == 0:
        return (of_first,)
    return of_first, PlannedRelease(second, cost_at(fraction * epsilon, delta))


def values_are_worth_it(n_observed: int, shape: Sequence[int], epsilon: float) -> bool:
    """True if components found in released values gain more than their noise costs biases."""
    # Of a component with the ratio d of `snr_in_values`, above 1, values are taken to show
    # 1 - 1 / d^2, as a spiked matrix does. Of its variance s, a row with error variance v shows
    # s^2 / (s + v); v is taken to be that of a bias of the longest mode.
    by_values = bias_variances_by_values(n_observed, shape, epsilon)
    by_sums = bias_variances_by_sums(n_observed, shape, epsilon)
    part_shown = 1 - max(1.0, snr_in_values(n_observed, shape, epsilon)) ** -2
    s, v = ASSUMED.component**2, max(by_values)
    gain = part_shown * ASSUMED.n_components * s**2 / (s + v)
    return part_shown > 0 and gain >= _error_variance(by_values) - _error_variance(by_sums)


def snr_in_values(n_observed: int, shape: Sequence[int], epsilon: float) -> float:
    """Signal-to-noise ratio of a component in released values; above 1 it can be found.

    It is the eigenvalue of a component worth finding over the edge of the noise's spectrum.
    """
    # Noise is that of pure epsilon. The spectrum is that of the Gram matrix of an unfolding without
    # its diagonal, with the same edge for all unfoldings.
    if math.isinf(epsilon):
        return math.inf
    variance = piecewise_deviation(epsilon) ** 2 + ASSUMED.residual**2
    # With entries in the part q = n_observed / N of all N cells, a component has the eigenvalue
    # q^2 component^2 N, and the edge is 2 q variance sqrt(N).
    return ASSUMED.component**2 * n_observed / (2 * variance * math.sqrt(math.prod(shape)))


def bias_variances_by_values(
    n_observed: int, shape: Sequence[int], epsilon: float, residual: float = ASSUMED.residual
) -> list[float]:
    """Error variances of the bias of an average row of each mode, from released values.

    They, and the deviation `residual`, are in widths of the bounds, squared and plain.
    """
    value = residual**2 + piecewise_deviation(epsilon) ** 2
    return [value * n / n_observed for n in shape]


def bias_variances_by_sums(
    n_observed: int, shape: Sequence[int], epsilon: float, residual: float = ASSUMED.residual
) -> list[float]:
    """Error variances of biases, as of `bias_variances_by_values`, from released sums of rows."""
    # The weights of a value in the sums of its rows add up to 1: their L1 sensitivity is one width.
    laplace = 0.0 if math.isinf(epsilon) else 2 / epsilon**2
    per_row = [n_observed / n for n in shape]
    weights = [r**-0.5 / math.fsum(other**-0.5 for other in per_row) for r in per_row]
    # The sum of a row's r values of weight w has the variance residual^2 w^2 r, plus that of the
    # noise; a bias b moves it by w r b.
    return [
        (residual**2 * w**2 * r + laplace) / (w * r) ** 2
        for w, r in zip(weights, per_row, strict=True)
    ]


def _error_variance(noise: list[float]) -> float:
    """Error variance of a prediction by biases, whose variances before shrinkage are `noise`."""
    return math.fsum(ASSUMED.shrunk(noise))


def pair_fraction(n_observed: int, shape: Sequence[int], epsilon: float, delta: float) -> float:
    """Largest fraction of epsilon, at most half, for pairs: predictions lose at most `PAIR_LOSS`.

    Pairs are products of two residuals in a row. It is 0 if they would show no component, without
    noise, or with more than two modes.
    """
    if len(shape) != 2 or math.isinf(epsilon):
        return 0.0

    def excess(fraction: float) -> float:
        """Relative loss of predictions less `PAIR_LOSS`."""
        return loss_by_pairs(n_observed, shape, epsilon, fraction) - defaults.PAIR_LOSS

    fraction = 0.5 if excess(0.5) <= 0 else brentq(excess, 0.0, 0.5)
    snr = snr_in_pairs(n_observed, shape, cost_at(fraction * epsilon, delta))
    return fraction if snr > 1 else 0.0


def loss_by_pairs(n_observed: int, shape: Sequence[int], epsilon: float, fraction: float) -> float:
    """Relative increase of the prediction error if this `fraction` of epsilon is for pairs."""

    def variance(of_sums: float) -> float:
        """Variance of a prediction's error if sums have the epsilon `of_sums`."""
        noise = bias_variances_by_sums(n_observed, shape, of_sums)
        return ASSUMED.residual**2 + _error_variance(noise)

    return math.sqrt(variance((1 - fraction) * epsilon) / variance(epsilon)) - 1


def snr_in_pairs(n_observed: int, shape: Sequence[int], cost: PrivacyCost) -> float:
    """Signal-to-noise ratio of a component in released pairs; above 1 it can be found.

    It is the eigenvalue of a component worth finding over the edge of the noise's spectrum.
    """
    most_paired = 1024  # columns of a table whose pairs are released
    n_rows, n_columns = shape
    each = n_observed / n_rows
    if each <= 1 or not 1 < n_columns <= most_paired:
        return 0.0
    # Residuals are clipped to [-1, 1], so one value moves its products with the each - 1 others of
    # its row by 2 at most: L2 norm 2 sqrt(each - 1), L1 norm 2 (each - 1).
    if cost.mu > 0:
        noise = 2 * math.sqrt(each - 1) / cost.mu
    else:
        noise = 2 * (each - 1) * math.sqrt(2) / cost.epsilon
    rows_of_pair = n_rows * min(each / n_columns, 1.0) ** 2
    clip = residual_clip(ASSUMED.residual, half=1 / 2)  # of bounds of width 1, as ASSUMED has it
    # A component shifts both residuals of a pair by its deviation: the mean of the product is
    # `response`, and the sum of products `rows_of_pair` times that. The eigenvalue is n_columns
    # times this sum, and the edge is 2 noise sqrt(n_columns).
    response = (clipped_response(clip, ASSUMED.residual) * ASSUMED.component) ** 2
    return rows_of_pair * n_columns * response / (2 * math.sqrt(n_columns) * noise)


def cost_at(epsilon: float, delta: float) -> PrivacyCost:
    """Privacy cost of Gaussian noise at (epsilon, delta), or of pure noise where delta is 0."""
    return (
        PrivacyCost(mu=gaussian_mu(epsilon, delta)) if delta > 0 else PrivacyCost(epsilon=epsilon)
    )


class ConcurrencePayment(NamedTuple):
    """Budgets that pay for concurrences of a shared mode: their own, sweeps, or both in turn."""

    by_own: bool
    n_sweeps: int = 0  # of the search for components

    @property
    def is_released(self) -> bool:
        """True if concurrences are released."""
        return self.by_own or self.n_sweeps > 0


@dataclass(frozen=True)
class PersonPlan:
    """Releases of a completion whose units are persons, decided from public numbers alone."""

    unit_mode: int
    n_sweeps: int  # releases of `shared_factor_sums`, the first of which decide on the others
    releases: ReleasePlan
    # Planned uses of `unit_levels`: one for a start, the others together for the level.
    n_level_uses: int
    n_rounds: int  # releases of the effects of each shared mode
    uses_by_mode: tuple[int, ...]  # planned uses that one release of each mode takes
    with_concurrences: tuple[bool, ...]  # of each shared mode: whether they are planned
    # Of each shared mode: whether planned ones stand out of noise only if units have more than two
    # rows, as the first sums say.
    in_doubt: tuple[bool, ...]
    perturbation: ClassVar[str] = "sufficient_statistics"

    @property
    def seeks_components(self) -> bool:
        """True if shared factors are released."""
        return self.n_sweeps > 0

    @property
    def place_of_longest(self) -> int:
        """Place among shared modes of the longest one, by the numbers of uses."""
        return self.uses_by_mode.index(max(self.uses_by_mode))

    def costs_of_biases(self) -> list[PrivacyCost]:
        """Cost of all rounds of each shared mode."""
        each = self.releases.cost_of(SharedRowSums.name)
        return [PrivacyCost.total([(each, n * self.n_rounds)]) for n in self.uses_by_mode]

    def noise_of_concurrences(self, n_sweeps: int = 0) -> float:
        """Deviation of noise in a sum of `RowConcurrences`, by their own budget or by sweeps."""
        paying = SharedFactorSums if n_sweeps else RowConcurrences
        cost = self.releases.cost_of(paying.name)
        if math.isinf(cost.mu) or math.isinf(cost.epsilon):
            return 0.0
        return RowConcurrences.largest_distance / (cost.mu * math.sqrt(max(n_sweeps, 1)))

    def payment_for_concurrences(
        self, place: int, n_rows: int, weight: float, rows_each: float
    ) -> ConcurrencePayment:
        """Say what pays for concurrences of the shared mode at `place`, of `n_rows`, if anything.

        Units with several rows have entries in `rows_each` rows each, and together this `weight`.
        Where their own budget does not show chains, sweeps pay.
        """
        if not self.with_concurrences[place]:
            return ConcurrencePayment(by_own=False)
        # Where few units have several rows, noise would make biases err by far more.
        is_seen = stand_out(weight, n_rows, self.noise_of_concurrences(), LARGEST_NOISE)
        if is_seen and not self.in_doubt[place]:
            return ConcurrencePayment(by_own=True)
        if rows_each >= MOST_COMPARED * n_rows:
            return ConcurrencePayment(by_own=False)
        for n_sweeps in sorted({0, self.sweeps_for_concurrences}):
            noise = self.noise_of_concurrences(n_sweeps)
            # The weight may be a released one: where sweeps may pay, leave room for its noise.
            least = weight - 2 * noise * n_rows if self.seeks_components else weight
            if stand_out(least, n_rows, noise):
                return ConcurrencePayment(by_own=n_sweeps == 0, n_sweeps=n_sweeps)
        return ConcurrencePayment(by_own=False)

    def payment_if_kept(self, payment: ConcurrencePayment) -> ConcurrencePayment:
        """Let sweeps pay for a second release after one by own budget: units keep to few rows."""
        if not payment.by_own or self.noise_of_concurrences() == 0:
            return payment
        return payment._replace(n_sweeps=self.sweeps_for_concurrences)

    @property
    def sweeps_for_concurrences(self) -> int:
        """Number of sweeps that pay for concurrences of a mode, where own budgets are too small."""
        return most_paying(self.n_sweeps, len(self.in_doubt))

    def round_by_concurrences(self, place: int) -> float:
        """Budget (mu squared) of concurrences of a shared mode over that of one of its rounds."""
        each = self.releases.cost_of(SharedRowSums.name).mu ** 2 * self.uses_by_mode[place]
        if math.isinf(each):  # without noise biases are known
            return 0.0
        return self.releases.cost_of(RowConcurrences.name).mu ** 2 / each

    def sweeps_for_biases(self) -> list[int]:
        """Sweeps that biases of each shared mode get if no components are worth them.

        They are in proportion to the mode's uses, the rest for the longest; one more is for the
        level.
        """
        left = self.n_sweeps - trial_sweeps(self.n_sweeps) - 1
        if left < 1:
            return [0] * len(self.uses_by_mode)
        of_modes = [left * uses // sum(self.uses_by_mode) for uses in self.uses_by_mode]
        of_modes[self.place_of_longest] += left - sum(of_modes)
        return of_modes

    def cost_of_level(self, *, by_sweep: bool) -> PrivacyCost:
        """Cost of the level, which a sweep of the search pays or its own uses do."""
        if by_sweep:
            return self.releases.cost_of(SharedFactorSums.name)
        return PrivacyCost.total([(self.releases.cost_of(UnitLevels.name), self.n_level_uses - 1)])

    def rest_over_rounds(self) -> list[float]:
        """Budgets (mu squared) of `sweeps_for_biases`, over those of all rounds of each mode."""
        mu_of_sweep = self.releases.cost_of(SharedFactorSums.name).mu
        if math.isinf(mu_of_sweep):  # without noise biases are known
            return [0.0] * len(self.uses_by_mode)
        of_modes = zip(self.sweeps_for_biases(), self.costs_of_biases(), strict=True)
        return [n_sweeps * mu_of_sweep**2 / cost.mu**2 for n_sweeps, cost in of_modes]


def plan_persons(
    shape: Sequence[int],
    rank: int,
    unit_mode: int,
    epsilon: float,
    delta: float,
    chooses_bounds: bool = False,
) -> PersonPlan:
    """Plan releases and split the budget where the unit is a slice: all entries of one row."""
    n_sweeps = 0
    if rank > 0 and snr_in_person_sums(shape, unit_mode, epsilon, delta) >= 1:
        n_sweeps = defaults.DIRECTION_SWEEPS
    # Residuals about better effects are more informative, and effects of other modes disturb them
    # less; with pure noise the division of epsilon costs more than that.
    has_rounds = delta > 0 or math.isinf(epsilon)
    n_rounds = defaults.ROUNDS if has_rounds else 1
    # If entries of a unit are spread over all rows, errors of effects are in proportion to the
    # number of rows over mu. The sum of their squares over modes is least if mu squared is in
    # proportion to the number of rows.
    lengths = np.delete(shape, unit_mode)
    uses_by_mode = tuple(round(n / min(lengths)) for n in lengths)
    # Entries that a person folds in tell their level: if components are sought, releases of levels
    # get half as much.
    n_level_uses, of_components = (2, defaults.DIRECTION_FRACTION) if n_sweeps else (4, 0.0)
    of_levels = n_level_uses / 2 * defaults.LEVEL_FRACTION
    if not has_rounds:  # a fraction of epsilon, whose square takes the place of mu squared
        n_level_uses, of_levels = 2, math.sqrt(of_levels)
    shares = {UnitLevels.name: of_levels, SharedRowSums.name: 1 - of_levels - of_components}
    uses = {UnitLevels.name: n_level_uses, SharedRowSums.name: sum(uses_by_mode) * n_rounds}
    if n_sweeps:
        shares[SharedFactorSums.name] = of_components
        uses[SharedFactorSums.name] = n_sweeps
    if chooses_bounds:
        shares = with_histogram(ValueHistogram.name, shares)
    with_concurrences, in_doubt = plan_concurrences(shape, unit_mode, epsilon, delta, shares, uses)
    releases = ReleasePlan.split(epsilon, delta, shares, uses)
    return PersonPlan(
        unit_mode, n_sweeps, releases, n_level_uses, n_rounds, uses_by_mode, with_concurrences,
        in_doubt,
    )  # fmt: skip


def plan_concurrences(
    shape: Sequence[int], unit_mode: int, epsilon: float, delta: float, shares: dict[str, float],
    uses: dict[str, int],
) -> tuple[tuple[bool, ...], tuple[bool, ...]]:  # fmt: skip
    """Return `with_concurrences` and `in_doubt` of a `PersonPlan`; add the releases to the plan.

    Concurrences are planned for each mode whose chains they may tell: `shares` and `uses` get an
    entry for them, and their share is taken from that of biases.
    """
    lengths = np.delete(shape, unit_mode)
    if delta == 0 and not math.isinf(epsilon):
        return (False,) * len(lengths), (False,) * len(lengths)
    of_each = defaults.CONCURRENCE_FRACTION * shares[SharedRowSums.name] / len(lengths)
    mu = math.inf if math.isinf(epsilon) else gaussian_mu(epsilon, delta)
    mu *= math.sqrt(of_each / math.fsum(shares.values()))
    few = (lengths > 2) & (lengths <= MOST_CONCURRENT)  # two rows are no chain
    sigma = RowConcurrences.largest_distance / mu
    # Weight in all rows together, if each unit has two.
    of_pairs = shape[unit_mode] * math.sqrt(2)
    is_sure = np.array([stand_out(of_pairs, n, sigma, LARGEST_NOISE) for n in lengths.tolist()])
    is_sure &= few
    # Weight in all rows together, if units have as many rows as may count as few.
    most = shape[unit_mode] * np.sqrt(MOST_COMPARED * lengths)
    if SharedFactorSums.name in uses:  # sweeps may pay, too
        n_sweeps = uses[SharedFactorSums.name]
        of_sweeps = shares[SharedFactorSums.name] * most_paying(n_sweeps, len(lengths)) / n_sweeps
        sigma /= max(math.sqrt(of_sweeps / of_each), 1.0)
    may_stand_out = [stand_out(*of_mode, sigma) for of_mode in zip(most, lengths, strict=True)]
    planned = few & (is_sure | may_stand_out)
    if planned.any():
        shares[RowConcurrences.name] = planned.sum() * of_each
        shares[SharedRowSums.name] -= planned.sum() * of_each
        uses[RowConcurrences.name] = int(planned.sum())
    return tuple(planned.tolist()), tuple((planned & ~is_sure).tolist())


def most_paying(n_sweeps: int, n_modes: int) -> int:
    """Number of `n_sweeps` that may pay for concurrences of one of `n_modes` shared modes."""
    return round(defaults.CONCURRENCE_FRACTION * n_sweeps / n_modes)


def trial_sweeps(n_sweeps: int) -> int:
    """Number of sweeps after which components must show a gain."""
    return round(defaults.DIRECTION_TRIAL * n_sweeps)


def judged_sweeps(n_trial: int) -> int:
    """Number of the last of `n_trial` sweeps by which the trial judges directions."""
    return max(n_trial // 2, 2)


def snr_in_person_sums(shape: Sequence[int], unit_mode: int, epsilon: float, delta: float) -> float:
    """Signal-to-noise ratio of a component in sums over units; above 1 it can be found.

    It is the length of a component worth finding over that of the noise.
    """
    n_cells = math.prod(shape) // shape[unit_mode]
    if delta == 0 or n_cells > MOST_CELLS:
        return 0.0
    if math.isinf(epsilon):
        return math.inf
    # A component has to show in the sums of the judged sweeps, which have this part of mu squared.
    n_sweeps = defaults.DIRECTION_SWEEPS
    part = defaults.DIRECTION_FRACTION * judged_sweeps(trial_sweeps(n_sweeps)) / n_sweeps
    noise = SharedFactorSums.largest_distance / (gaussian_mu(epsilon, delta) * math.sqrt(part))
    # Response to a component of residuals clipped at their deviation; noise hides half of weights.
    response = clipped_response(1.0) * (ASSUMED.component / ASSUMED.residual) / 2
    # Weight of a cell in the sums, if units have entries in `observed_share` of their cells.
    each = max(ASSUMED.observed_share * n_cells, 1.0)
    weight = row_weight(shape[unit_mode], each, n_cells)
    # Norm, over its deviation, that noise adds to one column of n cells: its largest singular
    # value (Davidson & Szarek, 2001).
    noise_norm = math.sqrt(n_cells) + 1
    return weight * response * math.sqrt(n_cells) / noise_norm / noise


def row_weight(n_units: int, n_entries_each: float, n_rows: int) -> float:
    """Expected weight of each of `n_rows` rows, or cells, in sums over units.

    An entry of a unit with n entries weighs ``n ** -0.5``.
    """
    return n_units * math.sqrt(n_entries_each) / n_rows


def check_model_size(
    plan: EntryPlan | PersonPlan, shape: Sequence[int], ranks: Sequence[int], rank: object, *,
    full_core: bool,
) -> None:  # fmt: skip
    """Raise ValueError for a shape whose model memory cannot hold; `rank` is the parameter."""
    # `held` is the largest number of doubles that a fit holds at once, counted in the code. First
    # blocks that are worked on at once, and the largest core that a start solves for.
    held = 2.0**22
    if not plan.seeks_components:
        ranks = (0,) * len(shape)
    lengths, n_rows = [float(n) for n in shape], float(sum(shape))
    if full_core and (isinstance(plan, PersonPlan) or plan.solves_for_core(len(shape))):
        # Matrices of pairs of entries of a core: normal equations, their average, the solver's.
        held += 16 * math.prod(map(float, ranks)) ** 2
    for n, r in zip(lengths, ranks, strict=True):
        # For each row 48 in any model, 28 for each component (12 of them of extrapolation), and 5
        # of normal equations for each pair of components.
        held += n * (48 + 28 * r + 5 * float(r) ** 2)
    # The search of singular vectors has `more` columns beside those that are wanted.
    more = 11
    searched = max(n * (r + more) for n, r in zip(lengths, ranks, strict=True))
    if isinstance(plan, PersonPlan):
        # For each row of a shared mode and each point of the grid of weights.
        held += 10 * GRID_SIZE * (n_rows - lengths[plan.unit_mode])
        # For pairs of rows that are compared: 3 for each law of how, and 12 at work.
        of_shared = np.delete(lengths, plan.unit_mode)[list(plan.with_concurrences)]
        held += (3 * N_LAWS + 12) * float(np.max(of_shared, initial=0.0)) ** 2
        held += 4 * float(np.sum(of_shared**2))  # concurrences and covariances, of each mode
    elif plan.perturbation == "sufficient_statistics":
        # Singular vectors of the incidence matrix, of a mode's rows by rows of all others, are
        # sought on its shorter side. For each row and vector 5 more: products with parts of the
        # matrix, and results for each mode.
        shorter = max(min(n, n_rows - n) for n in lengths)
        searched = max(searched, shorter * (VECTORS + more))
        held += 5 * n_rows * (VECTORS + more)
        if plan.with_pairs:
            held += 12 * lengths[-1] ** 2  # matrices of pairs of columns
    # The search holds eight blocks of a basis, and a block, its product and residual, twice.
    held += 16 * searched
    smaller = ""  # where no components are sought, the rank takes no memory
    if plan.seeks_components:
        smaller = f"Ask for {'smaller ranks' if full_core else 'a smaller rank, or for 0'}. "
    check_feasible(
        held,
        f"A model of shape {tuple(shape)}, which has {sum(shape)} rows, at rank={rank!r}",
        f"{smaller}Coordinates must be consecutive numbers from 0 in each mode: for ids and names "
        "give row_names=, and count times from a public first one.",
    )
