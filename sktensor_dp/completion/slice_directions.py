"""Components of the rows of a matrix: directions from many small releases, and their size."""

import math

import numpy as np

from sktensor_dp.completion import defaults
from sktensor_dp.completion.effect_rounds import EffectRounds
from sktensor_dp.completion.model_options import ModelOptions
from sktensor_dp.completion.plan import SlicePlan
from sktensor_dp.completion.rows import inverse_root, posterior_rows, share_kept, unexplained
from sktensor_dp.privacy.curators.entries import NoisySharedFactor, SliceCurator
from sktensor_dp.queries.slices import SharedFactorSums
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.shared_parameters import SharedComponents

# Columns are as many as leave room for growth: so many times what reaches the noise.
ROOM = 4.3
# What noise alone may be expected to explain, over what components are assumed to.
MOST_CHANCE = 0.25
# Share of the sweeps, last ones, by which the variance of components is estimated; and how many
# of them it is estimated by while directions turn.
LAST, LATELY = 1 / 4, 3
# Deviations of noise that what is explained must exceed, and least part of what is assumed of
# components that must be explained after the trial.
CERTAIN, LEAST_SHARE = 3.0, 0.03


class Directions:
    """Power iterations on released sums, each of which adds to those before.

    A unit sends its residuals, times its own weights of the directions so far, at length 1.
    So noise is in proportion to what units have to say.
    """

    def __init__(
        self, curator: SliceCurator, part: EffectRounds, start: Floats, n_sweeps: int
    ) -> None:
        self._curator, self._part, self._n_sweeps = curator, part, n_sweeps
        self._size = part.deviation * np.sqrt(defaults.COMPONENT_VARIANCE)
        n_columns = start.shape[1]
        self._sums = np.zeros((len(start), n_columns))
        # Number of entries of a typical unit.
        self._each = (float(part.weights.sum()) / max(curator.n_units, 1)) ** 2
        # Covariance of the noise of a row of the sums, and how much releases count in them.
        self._covariance, self._unit = np.zeros((2, n_columns, n_columns))
        self._axes = self._scaled(start)
        self._moments: list[NoisySharedFactor] = []

    def sweep(self) -> None:
        """Release sums for the directions so far, and turn them."""
        part = self._part
        components = SharedComponents((self._axes,), full_core=False)
        turned, kept = self._turned_and_kept()
        query = SharedFactorSums(
            0, self._curator.shape, part.level, (part.effects,), components,
            part.deviation**2, defaults.DIRECTION_CLIP * part.deviation, whole=True, turned=turned,
        )  # fmt: skip
        noisy = self._curator.shared_factor_sums(query)
        self._moments.append(noisy)
        one = np.eye(len(kept))
        self._sums = self._sums @ kept + noisy.sums
        self._covariance = kept @ self._covariance @ kept + noisy.sigma**2 * one
        self._unit = self._unit @ kept + one
        self._axes = self._scaled(self._rows())

    def explained(self, last: int) -> tuple[Floats, float]:
        """Variance that directions explain, (r, r) and over that assumed, and its noise."""
        # Where directions say nothing, the second moment of a unit's weights is what the first
        # sweep shows; where they explain what is assumed, it is 1.
        first, r = self._moments[0], self._axes.shape[1]
        none = min(float(np.trace(first.moment)), 0.95)
        found = r * self._moment(last) - none * np.eye(r)
        return found / (1 - none), self._moment_noise(last) / (1 - none)

    def shows(self, trial: int) -> bool:
        """Whether components do, after so many sweeps."""
        # The last two know directions best. Of few units their moments are mostly noise, and
        # more of them say it of directions that were found long before. They are of the same
        # units, so that what these have by chance does not average out.
        by_chance = chance(self._part.weights, self._curator.n_units)
        for last, taken in ((2, 0.0), (max(trial // 2, 2), by_chance)):
            found, noise = self.explained(last)
            if shows(float(np.trace(found)) / len(found) - taken, noise, len(found)):
                return True
        return False

    def factor(self) -> Floats:
        """Directions times the roots of the variances that they explain."""
        found, noise = self.explained(max(round(LAST * self._n_sweeps), 1))
        values, vectors = np.linalg.eigh(found)
        values = np.where(values > CERTAIN * noise, values, 0.0)
        return self._axes @ ((vectors * np.sqrt(values)) @ vectors.T)

    def noise_variance(self, factor: Floats) -> float:
        """What of the variance about a unit's level neither effects nor components explain."""
        part = self._part
        explained = part.explained() + float((part.shares @ factor**2).sum())
        return unexplained(part.deviation, explained)

    def _moment(self, last: int) -> Floats:
        """Mean of what the last sweeps say of the second moment of units' weights."""
        return np.asarray(np.mean([noisy.moment for noisy in self._moments[-last:]], axis=0))

    def _moment_noise(self, last: int) -> float:
        r = self._axes.shape[1]
        sigma = self._moments[0].moment_sigma * r
        return float(sigma * np.sqrt(1 / last + 1 / r))

    def _turned_and_kept(self) -> tuple[Floats | None, Floats]:
        """What makes units' weights of all directions equally large, and what stays of sums."""
        if not self._moments:
            return None, np.eye(self._axes.shape[1])
        values, vectors = np.linalg.eigh(self.explained(LATELY)[0])
        # Units know less of a direction that is still mostly noise, and would say little of it
        # beside the others: it would come late, or never. Noise of a unit's entries alone gives
        # a weight variance 1, and what a direction explains adds to that.
        sizes = np.sqrt(1 + defaults.COMPONENT_VARIANCE * self._each * np.maximum(values, 0.0))
        turned = np.clip((vectors / sizes) @ vectors.T, -1.0, 1.0)
        return turned, (vectors * share_kept(values, self._n_sweeps)) @ vectors.T

    def _rows(self) -> Floats:
        """Rows that explain the sums, shrunk by their noise, up to one factor for all."""
        r, weights = self._sums.shape[1], self._part.weights
        grams = weights[:, None, None] * np.eye(r)
        noise = np.broadcast_to((self._covariance + self._covariance.T) / 2, grams.shape)
        # A unit of m entries adds one over m times a square of mean 1 / r.
        total = max(float(weights.sum()), 1.0)
        by_units = float(np.mean(self._unit.diagonal())) ** 2
        residual = by_units * min(self._curator.n_units / total, 1.0) / r
        variance = float(np.mean(self._covariance.diagonal()))
        prior = (variance / max(float(np.mean(weights)) ** 2, 1e-100)) or 1.0
        return posterior_rows(self._sums, grams, noise, residual, prior)

    def _scaled(self, rows: Floats) -> Floats:
        """Columns at right angles and of the assumed size, turned as little as possible."""
        gram = rows.T @ (self._part.shares[:, None] * rows)
        return np.asarray(self._size * rows @ inverse_root((gram + gram.T) / 2))


def found_components(
    curator: SliceCurator, part: EffectRounds, plan: SlicePlan, options: ModelOptions
) -> tuple[SharedComponents, float] | None:
    """Components and the variance they leave, or None where released numbers show none."""
    rank = options.ranks[1 - plan.unit_mode]
    n_columns = columns_worth(part.weights, curator.n_units, plan, rank)
    if chance(part.weights, curator.n_units) > MOST_CHANCE:
        return None
    start = options.random_state.standard_normal((curator.shape[1 - plan.unit_mode], rank))
    search = Directions(curator, part, start[:, :n_columns], plan.n_sweeps)
    trial = trial_sweeps(plan)
    for step in range(plan.n_sweeps):
        search.sweep()
        if step + 1 == trial and not search.shows(trial):
            return None
    factor = search.factor() / np.sqrt(options.regularization)
    padded = np.pad(factor, ((0, 0), (0, rank - n_columns)))
    return SharedComponents((padded,), options.full_core), search.noise_variance(factor)


def trial_sweeps(plan: SlicePlan) -> int:
    """Sweeps after which components must show."""
    return round(defaults.DIRECTION_TRIAL * plan.n_sweeps)


def shows(explained: float, noise: float, n_columns: int) -> bool:
    """Whether what columns explain on average is more than noise, and enough to go on."""
    return explained >= max(CERTAIN * noise / math.sqrt(n_columns), LEAST_SHARE)


def chance(weights: Floats, n_units: int) -> float:
    """Variance that directions of noise explain of the units they are found from."""
    # In units of what components are assumed to have: the largest singular value of n units'
    # residuals in d rows is as far above the mean one (Marchenko & Pastur 1967).
    ratio = _effective_rows(weights) / n_units
    each = max(float(weights.sum()) / n_units, 1e-9) ** 2
    return float((2 * np.sqrt(ratio) + ratio) / (defaults.COMPONENT_VARIANCE * each))


def columns_worth(weights: Floats, n_units: int, plan: SlicePlan, rank: int) -> int:
    """Columns that noise leaves room for, if each has the variance assumed."""
    # Squared signal over noise of one direction grows by this rate times the budget spent, over
    # the number of columns; it starts from that of a random direction.
    cost = plan.releases.cost_of("shared_factor_sums")
    strength = cost.mu * np.sqrt(plan.n_sweeps) / SharedFactorSums.farthest
    common = float((weights**2).sum()) / max(float(weights.sum()), 1e-100)
    each = float(weights.sum()) / n_units
    rate = (common * each * defaults.COMPONENT_VARIANCE * strength) ** 2
    rows = _effective_rows(weights)
    most = min(rank, len(weights))
    worth = [k for k in range(1, most + 1) if rate / k >= ROOM * np.log(max(rows / k, math.e))]
    return max(worth, default=1)


def _effective_rows(weights: Floats) -> float:
    """How many rows of equal weight are as uneven as these."""
    return float(weights.sum()) ** 2 / max(float((weights**2).sum()), 1e-100)
