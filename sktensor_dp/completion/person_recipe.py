"""Recipes where all entries of a unit are private: the model that units share is released.

A unit is the protected person: a row of the unit mode, with all of its entries.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi, chi2

from sktensor_dp.completion import defaults
from sktensor_dp.completion.model import (
    SharedModel,
    attributes_of_units,
    unexplained,
)
from sktensor_dp.completion.plan import UNCLIPPED, ModelOptions, PersonPlan, residual_clip
from sktensor_dp.estimator.base import Fitted
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.persons import (
    MOMENT_WEIGHT,
    ReleasedEffects,
    SharedFactorSums,
    SharedRowSums,
    UnitLevels,
)
from sktensor_dp.queries.query import Query
from sktensor_dp.tensor import defaults as kernels
from sktensor_dp.tensor.alternating import core_components
from sktensor_dp.tensor.arrays import Floats, Integers, as_generator
from sktensor_dp.tensor.largest_of_noise import largest_of_noise
from sktensor_dp.tensor.normal_equations import posterior_rows
from sktensor_dp.tensor.shared_parameters import (
    SharedComponents,
    SharedEffects,
    clipped_response,
    shared_effects,
)
from sktensor_dp.tensor.tucker_completion import mode_product

# Least sum of weights, to avoid a division by 0.
LEAST_WEIGHT = 1e-100
# Least eigenvalue of a matrix before its root is taken, relative to the largest.
LEAST_EIGENVALUE = 1e-12
# Number of EM steps for effects, and the smaller number before another release.
STEPS, ROUGH_STEPS = 60, 20
# Least standard deviation of values about their unit's level, in widths of the bounds.
LEAST_DEVIATION = 1 / 16
AT_EDGE = (
    "The average that was found lies at the edge of the range of values: are the bounds right, and "
    "is it the right column of values?"
)
UNLISTED = (
    "Hardly any value is of a row that counts: is each name written in the public lists as it is "
    "in the data?"
)


def fit_persons(ask: Session, plan: PersonPlan, options: ModelOptions) -> Fitted:
    """Release a level, biases of each shared mode and components: recipe of unit_mode fits."""
    half, n_modes = ask.public("half"), len(ask.public("shape"))
    levels = ask(UnitLevels(half))
    found_mean, found_deviation = levels.value.tolist()
    # Shrink mean and deviation by their known noise, towards the middle of their range, in which
    # their prior is uniform: its variance is half**2 / 3.
    share = half**2 / (half**2 + 3 * levels.sigma**2)
    mean = share * float(np.clip(found_mean, -half, half))
    deviation = half / 2 + share * (found_deviation - half / 2)
    deviation = float(np.clip(deviation, 2 * half * LEAST_DEVIATION, half))
    modes = [mode for mode in range(n_modes) if mode != plan.unit_mode]
    biases = [SharedBiases(ask, mode, mean, deviation) for mode in modes]
    for of_mode in biases:  # each about those fitted before
        of_mode.add_rounds(plan.n_rounds, biases)
    found = None
    if plan.n_sweeps > 0:
        found = found_components(ask, biases, plan, options)
        if found is None:  # what is left of their budget pays for more biases
            longest(biases).add_rounds(1, biases, paid_by=SharedFactorSums)
    components, noise_variance = found or (None, residual_variance(biases))
    if plan.n_sweeps == 0 and plan.n_rounds == 1:
        noise_variance = deviation**2
    # The prior of units' levels has this mean, whose noise adds to the prior's variance.
    level_variance = kernels.LEVEL_VARIANCE * noise_variance + share * levels.sigma**2
    model = SharedModel(
        mean + ask.public("middle"), noise_variance, plan.unit_mode,
        [one.effects for one in biases], components, level_variance,
    )  # fmt: skip
    state = {
        **attributes_of_units(model, ask.n_units, options.ranks), "_model": model,
        "perturbation_": plan.perturbation,
        "n_iter_": 1 if components is None else plan.n_sweeps,
    }  # fmt: skip
    return Fitted(state, _doubts(found_mean, found_deviation, levels.sigma, half))


def _doubts(mean: float, deviation: float, sigma: float, half: float) -> tuple[Warning, ...]:
    """Warnings, from the released `mean` and `deviation` of units' values with noise of `sigma`,
    that most values are clamped to the range -`half` to `half`, or that few units have values.
    """
    # Noise, in half widths, from which on levels are by chance far from their ends and from 0.
    little = 0.05
    if sigma > little * half:
        return ()
    # Units without entries count as 0.
    if math.hypot(mean, deviation) <= 3 * sigma:
        return (UserWarning(UNLISTED),)
    at_edge = abs(mean) + 2 * sigma >= half
    return (UserWarning(AT_EDGE),) if at_edge else ()


@dataclass(frozen=True, eq=False)
class EffectRelease:
    """Released sums over units for each row of a shared mode, divided by a unit's count norm."""

    sums: Floats  # (n_rows,): of clipped residuals about effects `about`
    counts: Floats  # (n_rows,): of entries
    sigma: float  # deviation of the noise of each number
    gain: float  # mean response of a clipped residual to an effect of 1
    about: Floats  # (n_rows,)

    @classmethod
    def combined(cls, releases: Sequence["EffectRelease"]) -> "EffectRelease":
        """Average of several releases, weighted by precision, as one."""
        # Divided by its gain, each release holds the same sums of effects, with another noise and
        # centre.
        if len(releases) == 1:
            return releases[0]
        sigmas = np.array([one.sigma for one in releases])
        # Without noise all releases weigh the same.
        precisions = sigmas**-2.0 if sigmas.all() else np.ones(len(releases))
        gains = np.array([one.gain for one in releases])
        parts, shares = precisions / precisions.sum(), precisions * gains**2
        gain = math.sqrt(shares.sum() / precisions.sum())
        shares /= shares.sum()
        return cls(
            sums=gain * (shares / gains) @ np.stack([one.sums for one in releases]),
            counts=parts @ np.stack([one.counts for one in releases]),
            sigma=float(np.sqrt(parts**2 @ sigmas**2)),
            gain=gain,
            about=shares @ np.stack([one.about for one in releases]),
        )


class SharedBiases:
    """Biases of the rows of one shared mode, fitted to released sums of residuals."""

    effects: SharedEffects  # by all releases so far
    weights: Floats  # sums over units of one over the root of the number of a unit's entries
    shares: Floats  # of the rows in all weights

    def __init__(self, ask: Session, mode: int, level: float, deviation: float) -> None:
        self._ask, self.mode = ask, mode
        self.level, self.deviation = level, deviation
        self._shape: tuple[int, ...] = ask.public("shape")
        self._half: float = ask.public("half")
        self._released: list[EffectRelease] = []
        none = np.zeros(self._shape[mode])
        self.effects, self.shares = SharedEffects(none, none, none, 0.0), none

    def add_rounds(
        self, n_rounds: int, biases: Sequence["SharedBiases"], paid_by: type[Query] | None = None
    ) -> None:
        """Make `n_rounds` releases, each of residuals about all biases so far, and fit them again.

        `biases` are of all shared modes. All that is left of the planned release `paid_by`, if
        one is named, pays for them.
        """
        for left in range(n_rounds, 0, -1):
            variance = residual_variance(biases)
            about = ReleasedEffects(tuple(one.effects for one in biases), self.level, variance)
            deviation = math.sqrt(variance)
            clip = self._clip()  # in deviations of residuals
            order = 1 if self._ask.is_pure else 2
            query = SharedRowSums(self.mode, self._shape, about, clip * deviation, order)
            noisy, gain = self._ask(query, paid_by).as_sum(), clipped_response(clip, deviation)
            sums, counts = noisy.value
            self._released.append(
                EffectRelease(sums, counts, noisy.sigma, gain, self.effects.effects)
            )
            self._fit(STEPS if left == 1 else ROUGH_STEPS)

    def explained(self) -> float:
        """Variance of values about a unit's level that biases explain."""
        return float(self.shares @ self.effects.effects**2)

    def gain_of(self, rest: float) -> float:
        """Variance that more releases of biases would explain, at `rest` times the past budget."""
        scale, variances = self.effects.scale, self.effects.variances
        seen = np.maximum(scale / np.maximum(variances, LEAST_VARIANCE * scale) - 1, 0.0)
        # Difference between the variance explained with more budget and now: scale / (1 + seen) is
        # left now; 0 for no further budget.
        gained = scale * rest * seen / ((1 + seen) * (1 + (1 + rest) * seen))
        return float(self.shares @ gained)

    def _clip(self) -> float:
        """Clip of the next release's residuals, in their deviations; UNCLIPPED without noise."""
        # Values that are all at the bounds stay so about biases: with the variance that biases
        # explain subtracted, their residuals have the largest variance too. So how near values are
        # to that tells the clip in deviations, of residuals in any round.
        clip = residual_clip(self.deviation, self._half, self.level)
        if not self._released:
            return clip
        # Variance of a row's sum that comes from values, not from noise.
        by_values = float(self.weights.mean()) * weight_of_entry(self.weights, self._ask.n_units)
        share = by_values / (by_values + self._released[-1].sigma ** 2)
        return share * UNCLIPPED + (1 - share) * clip

    def _fit(self, n_steps: int) -> None:
        """Fit effects to all releases so far, in `n_steps` EM steps."""
        seen = EffectRelease.combined(self._released)
        found = shared_effects(
            seen.sums, seen.counts, noise_std=seen.sigma, n_units=self._ask.n_units,
            gain=seen.gain, effect_variance=kernels.LEVEL_VARIANCE * self.deviation**2,
            about=seen.about, max_iter=n_steps,
        )  # fmt: skip
        self.weights = max(float(seen.counts.mean()), 1e-9) * np.exp(2 * found.popularity)
        self.shares = self.weights / max(float(self.weights.sum()), LEAST_WEIGHT)
        # Clipped residuals show whether values are above the unit's level, not how far. If values
        # are skewed most are above, which would add a constant to all effects: subtract it.
        mean = float(self.shares @ found.effects)
        widest = 2 * self._half
        self.effects = replace(
            found, effects=np.clip(found.effects - mean, -widest, widest),
            variances=np.minimum(found.variances, widest**2),
        )  # fmt: skip


# Least variance of a row's estimate, relative to its prior variance: exact sums have none.
LEAST_VARIANCE = 1e-12


def residual_variance(biases: Sequence[SharedBiases], factor_variance: float = 0.0) -> float:
    """Variance of values about a unit's level that neither biases nor components explain."""
    explained = sum(one.explained() for one in biases) + factor_variance
    return unexplained(biases[0].deviation, explained)


def longest(biases: Sequence[SharedBiases]) -> SharedBiases:
    """Biases of the mode of most rows."""
    return max(biases, key=lambda one: len(one.shares))


def weight_of_entry(weights: Floats, n_units: int) -> float:
    """Mean weight of an entry in sums over units, given the sum of weights of each row."""
    return min(n_units / max(float(weights.sum()), 1.0), 1.0)


def cell_weights(biases: Sequence[SharedBiases], n_units: int) -> Floats:
    """Expected weight of each cell: the sum over units of ``n ** -0.5``, n a unit's entries.

    Cells are combinations of shared rows, whose biases know such weights by themselves; entries of
    a unit are taken to spread over rows independently.
    """
    # Least fraction of a unit's entries in separate rows.
    least_room = 0.01
    if len(biases) == 1:
        return biases[0].weights
    # A unit with n of N cells in rows of shares p weighs n over the norm of its counts. That norm
    # squared is n (1 - n / N) (1 - |p|^2) + n^2 |p|^2 on average, as its cells are distinct.
    n_cells = math.prod(len(one.shares) for one in biases)
    numbers = []
    for one in biases:
        square = (float(one.weights.sum()) / max(n_units, 1)) ** 2
        alike = float(one.shares @ one.shares)
        room = 1 - square * alike + square * (1 - alike) / n_cells
        numbers.append(square * (1 - alike) / max(room, least_room))
    shares = reduce(np.multiply.outer, [one.shares for one in biases]).ravel()
    return n_units * math.sqrt(max(min(*numbers, float(n_cells)), 1.0)) * shares


class Directions:
    """Private power iteration for components: directions in the space of a unit's cells.

    Each sweep releases sums over units of residuals times the unit's own weights of the directions
    so far, both of norm 1: noise is in proportion to these contributions. Sums of earlier sweeps
    are averaged in. `start` has the first directions, (n_cells, r); `biases` are of all shared
    modes; directions must show after `trial` sweeps.
    """

    def __init__(
        self, ask: Session, biases: Sequence[SharedBiases], start: Floats, trial: int
    ) -> None:
        self._ask, self._biases, self._trial = ask, biases, trial
        self._deviation = biases[0].deviation
        self._size = self._deviation * np.sqrt(defaults.COMPONENT_VARIANCE)
        n_columns = start.shape[1]
        self._sums = np.zeros((len(start), n_columns))
        self._weights = cell_weights(biases, ask.n_units)
        self._shares = self._weights / max(float(self._weights.sum()), LEAST_WEIGHT)
        # Number of entries of a typical unit.
        self._n_entries_each = (float(self._weights.sum()) / max(ask.n_units, 1)) ** 2
        # Variance by units of a row of one sum, over its weight: an entry of a unit of m entries
        # adds a square of mean 1 / (m r).
        self._unit_variance = weight_of_entry(self._weights, ask.n_units) / n_columns
        # Covariance of the noise of a row of the accumulated sums, and the weight of the releases
        # in them.
        self._covariance, self._release_weight = np.zeros((2, n_columns, n_columns))
        self._axes = self._scaled(start)
        # Of each sweep the mean over units of their second moment of weights, over r; (r, r).
        self._moments: list[Floats] = []
        self._sigma = 0.0  # deviation of the noise in the sums of a sweep

    def sweep(self) -> None:
        """Release sums for the directions so far, add them to earlier ones, update directions."""
        kept = self._kept_weights()
        query = SharedFactorSums(
            self._ask.public("shape"), self._biases[0].level,
            tuple(one.effects for one in self._biases), self._axes, self._deviation**2,
            2 * self._ask.public("half"),
        )  # fmt: skip
        noisy, n_cells = self._ask(query).as_sum(), len(self._sums)
        moment = noisy.value[n_cells:] / (MOMENT_WEIGHT * self._ask.n_units)
        self._moments.append((moment + moment.T) / 2)
        self._sigma, one = noisy.sigma, np.eye(len(kept))
        self._sums = self._sums @ kept + noisy.value[:n_cells]
        self._covariance = kept @ self._covariance @ kept + noisy.sigma**2 * one
        self._release_weight = self._release_weight @ kept + one
        self._axes = self._scaled(self._shrunk_rows())

    def explained(self, last: int) -> tuple[Floats, float]:
        """Variance that directions explain, (r, r) in units of that assumed, and its noise.
        From the mean of the `last` sweeps; the noise is a standard deviation of an entry.
        """
        # Least fraction of the prior variance of weights that a unit's entries explain.
        least_rest = 0.05
        # Second moment of a unit's weights: that of the first sweep if directions explain nothing,
        # and 1 if they explain the assumed variance.
        r, none = len(self._moments[0]), float(np.trace(self._moments[0]))
        rest = max(1 - none, least_rest)
        found = r * np.mean(self._moments[-last:], axis=0) - none * np.eye(r)
        sigma = self._sigma / (MOMENT_WEIGHT * self._ask.n_units)
        return found / rest, float(moment_noise(sigma, r, last)) / rest

    def pay(self, rest: float) -> bool:
        """True if components will gain as much as biases would at `rest` times their budget."""
        # Judge each direction separately, after the variance that noise and chance explain is
        # subtracted.
        moment, noise = self.explained(judged_sweeps(self._trial))
        variance = self._deviation**2
        left = residual_variance(self._biases) / variance
        explained = beyond_noise(np.linalg.eigvalsh(moment), noise) - noise - self._by_chance()
        gain = gain_of_components(explained, self._n_entries_each, left)
        # Without noise `rest` is 0: the trial is passed, and `factor` judges at the end.
        return gain * variance >= longest(self._biases).gain_of(rest)

    def factor(self) -> Floats:
        """Directions times the roots of the variances they explain; 0 for chance and noise."""
        moment, noise = self.explained(self._n_recent())
        values, vectors = (part[..., ::-1] for part in np.linalg.eigh(moment))
        least = max(defaults.CERTAIN * noise, float(edge_of_noise(noise, len(values))))
        found, known = np.zeros(len(values)), 0.0
        for place, value in enumerate(beyond_noise(values, noise)):
            by_chance = self._by_chance(known)
            if values[place] <= by_chance + least:
                break
            # An eigenvalue v becomes sqrt(v^2 - by_chance^2).
            found[place] = math.sqrt(max(float(value) ** 2 - by_chance**2, 0.0))
            known += float(value) * self._size**2
        return self._axes @ (vectors * np.sqrt(found))

    def _by_chance(self, known: float = 0.0) -> float:
        """Variance that a direction explains of the units it is found from by chance.
        In units of that assumed; other directions explain the variance `known`.
        """
        # Chance comes from units, not from noise. Values vary more about a unit's level than about
        # biases, and errors of biases and outliers add to the largest direction.
        by_units = self._variance_by_units() * float(np.mean(self._weights))
        share = by_units / (by_units + float(np.mean(self._covariance.diagonal())))
        left = unexplained(self._deviation, known) / self._deviation**2
        r = self._axes.shape[1]
        return left * share * variance_by_chance(self._weights, self._ask.n_units, r)

    def noise_variance(self, factor: Floats) -> float:
        """Variance of values about a unit's level that neither biases nor `factor` explain."""
        return residual_variance(self._biases, float((self._shares @ factor**2).sum()))

    def _n_recent(self) -> int:
        """Number of the last sweeps, a quarter of all, which determine the released moments."""
        return max(len(self._moments) // 4, 2)

    def _kept_weights(self) -> Floats:
        """Matrix (r, r) of weights of the earlier sums: less for directions that explain little."""
        if not self._moments:
            return np.eye(self._axes.shape[1])
        values, vectors = np.linalg.eigh(self.explained(self._n_recent())[0])
        noise, weights = self._sigma**2, self._weights
        # Fraction of the variance of a sweep's sums that is by noise, which is new in each.
        by_noise = noise / max(noise + float(np.mean(weights)) * self._unit_variance, LEAST_WEIGHT)
        cosine = len(values) / _effective_rows(weights)
        kept = forgetting_factor(values, cosine, self._trial, by_noise)
        return np.asarray((vectors * kept) @ vectors.T)

    def _shrunk_rows(self) -> Floats:
        """Rows fitted to the sums and shrunk by their noise, up to a common factor."""
        r, weights = self._sums.shape[1], self._weights
        grams = weights[:, None, None] * np.eye(r)
        noise = np.broadcast_to((self._covariance + self._covariance.T) / 2, grams.shape)
        residual = self._variance_by_units()
        variance = float(np.mean(self._covariance.diagonal()))
        prior = (variance / max(float(np.mean(weights)) ** 2, 1e-100)) or 1.0
        return posterior_rows(self._sums, grams, noise, residual, prior)

    def _variance_by_units(self) -> float:
        """Variance of a row of all sums, over its weight, caused by the units themselves."""
        return float(np.mean(self._release_weight.diagonal())) ** 2 * self._unit_variance

    def _scaled(self, rows: Floats) -> Floats:
        """Orthogonal columns of the assumed size, turned from `rows` as little as possible."""
        gram = rows.T @ (self._shares[:, None] * rows)
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        values = np.maximum(values, LEAST_EIGENVALUE * max(float(values[-1]), 1e-100))
        return np.asarray(self._size * rows @ ((vectors / np.sqrt(values)) @ vectors.T))


def forgetting_factor(explained: Floats, cosine: float, trial: int, noise: float) -> Floats:
    """Weight of earlier sums in power steps, for directions that explain a given variance.

    `explained` is in units of the variance assumed, `cosine` the squared cosine of random
    directions, and `noise` the fraction of the sums' variance that is new in each.
    """
    # With a factor of g = cosine ** (-1 / trial) in each sweep a squared cosine is near 1 at the
    # trial; it grows most if earlier sums weigh 1 / sqrt(g). A direction that explains half of its
    # variance has grown already.
    growth = max(cosine ** (-0.5 / trial), 1.0) - 1
    return np.asarray(noise / (1 + growth * np.clip(1 - 2 * explained, 0.0, 1.0)))


def found_components(
    ask: Session, biases: Sequence[SharedBiases], plan: PersonPlan, options: ModelOptions
) -> tuple[SharedComponents, float] | None:
    """Components by `Directions` and the variance of values they leave, or None.
    None where the trial says that biases would gain more from the rest of the budget.
    """
    ranks = [options.ranks[one.mode] for one in biases]
    weights = cell_weights(biases, ask.n_units)
    rank = math.prod(ranks) if options.full_core else ranks[0]
    n_columns = columns_worth(weights, ask.n_units, plan, rank)
    start = options.random_state.standard_normal((len(weights), min(rank, len(weights))))
    # Budget of the sweeps after the trial, divided by that spent on biases; without noise biases
    # are known.
    trial, rest = trial_sweeps(plan), 0.0
    sweep, rounds = map(plan.releases.cost_of, (SharedFactorSums.name, SharedRowSums.name))
    if math.isfinite(sweep.mu):
        rest = (plan.n_sweeps - trial) * sweep.mu**2 / (plan.n_rounds * rounds.mu**2)
    search = Directions(ask, biases, start[:, :n_columns], trial)
    for step in range(plan.n_sweeps):
        search.sweep()
        if step + 1 == trial and not search.pay(rest):
            return None
    factor = search.factor()
    shape = [len(one.shares) for one in biases]
    return components_of_cells(factor, shape, ranks, options), search.noise_variance(factor)


def components_of_cells(
    factor: Floats, shape: Sequence[int], ranks: Sequence[int], options: ModelOptions
) -> SharedComponents:
    """Factors of the shared modes from a factor of all cells, of shape (n_cells, r)."""
    n_columns = factor.shape[1]
    if len(shape) == 1:
        padded = np.pad(factor, ((0, 0), (0, ranks[0] - n_columns)))
        return SharedComponents((padded,), full_core=options.full_core)
    core, frames = factor.reshape(*shape, n_columns), []
    for mode, rank in enumerate(ranks):
        unfolded = np.moveaxis(core, mode, 0).reshape(core.shape[mode], -1)
        frame = np.linalg.svd(unfolded, full_matrices=False)[0][:, :rank]
        frames.append(np.pad(frame, ((0, 0), (0, rank - frame.shape[1]))))
        core = mode_product(core, frames[-1].T, mode)
    if options.full_core:
        return SharedComponents(tuple(frames), full_core=True, mixing=core.reshape(-1, n_columns))
    *parts, own = core_components(core, ranks[0], as_generator(options.random_state))
    factors = tuple(frame @ part for frame, part in zip(frames, parts, strict=True))
    return SharedComponents(factors, full_core=False, mixing=own.T)


def trial_sweeps(plan: PersonPlan) -> int:
    """Number of sweeps after which components must show a gain."""
    return round(defaults.DIRECTION_TRIAL * plan.n_sweeps)


def gain_of_components(explained: Floats, each: float, left: float) -> float:
    """Variance of values that units' weights explain.

    `explained` are variances of components in units of that assumed, none if below 0, `each` the
    number of entries of a unit and `left` their residual variance.
    """
    # In units of the variance of values; `left` is the fraction not known from `each` entries.
    variances = defaults.COMPONENT_VARIANCE * np.maximum(explained, 0.0)
    return float(np.sum(variances * each * variances / (each * variances + left)))


def moment_noise(sigma: float, n_columns: int | Integers, last: int) -> Floats:
    """Noise of a number of the mean moment of `last` sweeps, less that of the first, times r.
    `sigma` is that of one sweep.
    """
    return np.asarray(sigma * n_columns * np.sqrt(1 / last + 1 / n_columns))


def edge_of_noise(noise: float | Floats, n_columns: int | Integers) -> Floats:
    """Largest eigenvalue of a symmetric matrix of noise with deviation `noise` on the diagonal."""
    return np.asarray(noise * np.sqrt(2 * n_columns))


def beyond_noise(values: NDArray[np.floating[Any]], noise: float) -> Floats:
    """Eigenvalues without noise, from those of a noisy matrix; 0 where noise explains them."""
    # An eigenvalue v appears as v + e^2 / 4 v, where e is the edge of the noise.
    edge = edge_of_noise(noise, len(values))
    seen = np.maximum(values, edge)
    return np.where(values > edge, (seen + np.sqrt(seen**2 - edge**2)) / 2, 0.0)


def judged_sweeps(trial: int) -> int:
    """Number of sweeps before the trial whose moments are used to judge directions."""
    return max(trial // 2, 2)


def variance_by_chance(weights: Floats, n_units: int, n_columns: int) -> float:
    """Variance that directions fitted to units of pure noise seem to explain of these units.
    In units of the variance assumed of a component.
    """
    # Quantiles at which a distribution is averaged.
    quantiles = (np.arange(100) + 0.5) / 100
    # Norm n of the residuals of n units in d rows along a random direction.
    largest = largest_of_noise(n_units, _effective_rows(weights))
    each = max(float(weights.sum()) / n_units, 1e-9) ** 2
    explained = (largest**2 / n_units - 1) / (defaults.COMPONENT_VARIANCE * each)
    # Moments ``own + w w'`` of units' weights w are clipped to the norm n_columns. The mean square
    # of a weight is its posterior variance `own` plus the variance of its posterior mean: `none` if
    # directions explain nothing, 1 if they explain the variance assumed.
    own = 1 / (1 + defaults.COMPONENT_VARIANCE * each)
    none = 1 - (1 - own) ** 2
    variances = none - own + (1 - none) * np.array([[0.0], [explained]])
    squares = variances * chi2.ppf(quantiles, n_columns)
    norms = np.sqrt((own + squares) ** 2 + (n_columns - 1) * own**2)
    without, seen = np.mean((own + squares / n_columns) / np.maximum(norms / n_columns, 1.0), 1)
    return float((seen - without) / (1 - none))


def columns_worth(weights: Floats, n_units: int, plan: PersonPlan, rank: int) -> int:
    """Most components that the trial can find, if each has the variance assumed beforehand."""
    mu, trial = plan.releases.cost_of(SharedFactorSums.name).mu, trial_sweeps(plan)
    total, rows = max(float(weights.sum()), LEAST_WEIGHT), _effective_rows(weights)
    common, each = float((weights**2).sum()) / total, total / n_units
    signal = common * each * defaults.COMPONENT_VARIANCE * mu / SharedFactorSums.farthest
    k = np.arange(1, min(rank, len(weights)) + 1)
    # With k components a random start has squared cosine k / rows; it has to reach a half. A sweep
    # adds the squared ratio of signal to noise, with weights divided by their norm.
    growth = trial * np.log1p((signal * chi.mean(k) / k) ** 2)
    # At the trial directions explain half of their variance, which must be twice the noise of
    # moments.
    noise = moment_noise(
        SharedFactorSums.farthest / (mu * MOMENT_WEIGHT * n_units), k, judged_sweeps(trial)
    )
    rest = 1 - 1 / (1 + defaults.COMPONENT_VARIANCE * each**2)
    worth = (growth >= np.log(rows / 2 / k)) & (edge_of_noise(noise, k) <= rest**2 / 4)
    return max(k[worth].tolist(), default=1)


def _effective_rows(weights: Floats) -> float:
    """Effective number of rows: the squared sum of weights over the sum of their squares."""
    return float(weights.sum()) ** 2 / max(float((weights**2).sum()), 1e-100)
