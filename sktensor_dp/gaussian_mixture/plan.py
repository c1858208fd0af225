"""Plan of a mixture from public numbers: releases, budget, number of steps, and forecast."""

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.parameters import check_feasible
from sktensor_dp.estimator.forecast import (
    VERDICTS,
    Forecast,
    Question,
    ReleaseForecast,
    counted_releases,
    least_epsilon,
    least_number,
)
from sktensor_dp.gaussian_mixture import defaults
from sktensor_dp.mixtures.clipping import Clipping, Scales, clip_for
from sktensor_dp.mixtures.nonnormal import NonnormalColumns
from sktensor_dp.mixtures.scores import FOR_MEANS, HELD_AT_ONCE, n_scores
from sktensor_dp.mixtures.start import TRIES
from sktensor_dp.privacy.calibration import gaussian_mu, spherical_spread
from sktensor_dp.privacy.plan import ReleasePlan, with_histogram
from sktensor_dp.queries.mixtures import MixtureGains, MixtureStatistics
from sktensor_dp.queries.norm_histogram import NormHistogram
from sktensor_dp.tensor.symmetric import n_unique

# Numbers of EM steps: the fewest, the most, and without noise.
FEWEST_STEPS, MOST_STEPS, EXACT_STEPS = 5, 40, 60
# Rows times mu for each group and column, and rows for each group, from which a forecast says that
# samples are enough.
ROWS_NEEDED, LEAST_NEEDED = 25.0, 50.0
# Most (d + 1, d + 1) matrices that a fit holds at once. For each group of a level of merging:
# covariance, factor and whitener. For each sphere when spheres are merged: its own, a factor, and
# that of a merged one. For each group in a step: the sum, its rest, an addend and a product, in
# whose place the model with factors and whiteners comes later (4); the average and its frames (2);
# given ones and scores of earlier, later and new steps, and differences of these (8); released
# shapes (1); temporaries (5); and for missing cells an inverse and parts (5). Single ones: second
# moments, covariances, and the workspaces of LAPACK.
LEVELS, SPHERE_MATRICES, STEP_MATRICES, SINGLE_MATRICES = 3, 3, 25, 12
# Most (p, p) matrices of the p entries of a shape where cells of groups are missing: for each group
# information, its symmetric part and eigenvectors, and a temporary; of one group its addends (5)
# and a copy and the workspace of LAPACK.
INFORMATION_MATRICES, SINGLE_INFORMATION = 4, 8
# Most (p, p) matrices of all p parameters when groups move to where steps lead: products of scores,
# derivatives and their sums (4), noise (6), and an estimate with temporaries (6). Beside them each
# drawn row of mean scores has standard normal points, twice, and each of products held back scores
# in two mixtures, twice.
SETTLED = 16
# Most parameters, whose information matrix a fit and `means_interval` decompose: half a minute.
MOST_SCORES = 2500
# A forecast knows no data: it says what may hide groups, or leave several without intervals.
WELL_APART = " if groups are well apart"
OF_ONE_SIZE = (
    "Assumed: groups of one size, well apart. Smaller or closer ones need more {unit}s: ten times "
    "as many, or more, where groups overlap, as in many tables."
)
HIDERS = (
    "Name columns of few values (0 and 1), many equal ones (zeros, a detection limit) or a long "
    "tail as nonnormal: else they may decide the groups alone, or leave no intervals."
)
# Doubles in blocks that are worked on at once.
WORKSPACE = 2**21


@dataclass(frozen=True)
class MixturePlan:
    """Releases and settings of a fit, chosen from public numbers alone."""

    n_components: int
    n_at_start: int  # groups in the start and the first quarter of steps: some may be spare ones
    n_features: int
    covariance_type: str
    n_steps: int
    # Public radius of the ball of samples; 1 if a histogram chooses it, as all else is relative.
    radius: float
    chooses_norm: bool  # True for ``data_norm="auto"``
    random_state: Any
    releases: ReleasePlan
    has_intervals: bool  # True if samples are enough, and parameters not too many
    clip: Clipping  # of whitened rows
    noise: float  # of a mean over a group's rows of a coordinate of scale 1, averaged over steps
    nonnormal: NonnormalColumns | None

    @property
    def n_shape(self) -> int:
        """Number of coordinates of a released shape: those of a covariance, less its trace."""
        d = self.n_features
        return {"spherical": 1, "diag": d}.get(self.covariance_type, n_unique(d, 2)) - 1

    @property
    def scales(self) -> Scales:
        """Squared scales of the parts of a step's statistics."""
        return self.clip.scales(self.n_shape, alone=self.n_components == 1)


def plan_mixture(
    estimator: Any, n_samples: int, n_features: int, nonnormal: NonnormalColumns | None = None
) -> MixturePlan:
    """Choose the releases of a fit and the number of its steps, and split the budget."""
    k, fractions = estimator.n_components, dict(defaults.FRACTIONS)
    if k == 1:  # no gains are needed to choose a number of groups
        del fractions[MixtureGains.name]
    chooses_norm = estimator.data_norm == "auto"
    if chooses_norm:
        fractions = with_histogram(NormHistogram.name, fractions)
    n_steps, mu = EXACT_STEPS, strength(estimator.epsilon, estimator.delta)
    if mu < math.inf:
        further = n_samples * mu / (k * n_features) / defaults.ROWS_A_STEP
        n_steps = int(min(max(round(FEWEST_STEPS - 1 + further), FEWEST_STEPS), MOST_STEPS))
    if k > 1 and estimator.nonnormal_features:  # their missing cells are counted twice
        n_steps = max(n_steps, FEWEST_STEPS + 1)
    # One for each step or a release in its place (of filled rows, of cells), one by
    # `release_tails`, and those of the start.
    n_statistics = n_steps + 1 + (defaults.SPHERE_STEPS if k > 1 else 0)
    uses = {MixtureStatistics.name: n_statistics, MixtureGains.name: 1}
    radius = float(estimator.data_norm) if isinstance(estimator.data_norm, numbers.Real) else 1.0
    releases = ReleasePlan.split(estimator.epsilon, estimator.delta, fractions, uses)
    # Spare groups are merged after a quarter of the steps: have none where steps are few.
    has_spare = k > 1 and n_steps // 2 >= FEWEST_STEPS
    n_spare = defaults.SPARE if has_spare else 0
    # As if each group had a k-th of the rows, and noise of steps averaged out as independent noise.
    noise = k * step_sigma(estimator, releases, n_samples, n_features) / math.sqrt(n_steps)
    return MixturePlan(
        n_components=k, n_at_start=k + n_spare, n_features=n_features,
        covariance_type=estimator.covariance_type, n_steps=n_steps, radius=radius,
        chooses_norm=chooses_norm, random_state=estimator.random_state, releases=releases,
        has_intervals=not no_intervals_by(estimator, n_samples, n_features),
        clip=clip_for(n_features, defaults.QUANTILE, noise, math.sqrt(2 * k / n_samples)),
        noise=noise, nonnormal=nonnormal,
    )  # fmt: skip


def nonnormal_columns(estimator: Any, columns: Mapping[str, Any]) -> NonnormalColumns | None:
    """``nonnormal_features`` of several groups, with dispersions of 1; None without any.

    `columns` are attributes with the names or the number of all columns.
    """
    ends, d = estimator.nonnormal_features, columns["n_features_in_"]
    names = [*columns.get("feature_names_in_", range(d))]
    if not {*(ends or ())} <= {*names}:
        raise ValueError(f"nonnormal_features must map some of the columns {names}; got {[*ends]}.")
    if not ends or estimator.n_components == 1:  # one group has moments of any law
        return None
    low, high = np.array([ends.get(name, (0.0, 0.0)) for name in names], dtype=float).T
    dispersions = np.array([float(name in ends) for name in names])
    return NonnormalColumns(low, high, dispersions)


def no_intervals_by(estimator: Any, n_samples: float, n_features: int) -> str:
    """Public reason why means have no intervals; empty if they have."""
    if n_scores(estimator.n_components, n_features) > MOST_SCORES:
        return f"there are over {MOST_SCORES} parameters"
    needed = rows_needed(estimator, n_features)
    if n_samples < needed:
        return f"there are fewer than the {needed} samples that a forecast asks for"
    return ""


def step_sigma(estimator: Any, releases: ReleasePlan, n_samples: int, n_features: int) -> float:
    """Deviation of noise on a mean over all rows of a coordinate of scale 1 in a step."""
    cost = releases.cost_of(MixtureStatistics.name)
    # A contribution has about norm 1, and two of them have a distance of about sqrt(2).
    sensitivity = 1.0 if estimator.neighbours == "add_remove" else math.sqrt(2)
    dimension = estimator.n_components * n_unique(n_features + 1, 2)
    scale = spherical_spread(dimension) / cost.epsilon if releases.delta == 0 else 1 / cost.mu
    return sensitivity * scale / n_samples


def check_memory(k: int, n_features: int) -> None:
    """Raise ValueError if the numbers that a fit holds at once may not fit into memory."""
    # Doubles for each pair of spheres: a loss, and its key in two dictionaries.
    a_pair, d = 64, float(n_features)
    n_at_start = k + defaults.SPARE
    n_spheres = defaults.SPHERES * n_at_start
    n_in_levels = k * (k + 1) / 2  # mixtures of 1 to k groups
    matrices = LEVELS * n_in_levels + SPHERE_MATRICES * n_spheres + STEP_MATRICES * n_at_start
    matrices += SINGLE_MATRICES
    candidates = 3.0 * TRIES * n_spheres * min(n_at_start, d)  # for centres of spheres
    fit = f"A fit of {counted(k, 'group')} of {counted(n_features, 'feature')}"
    held = matrices * (d + 1) ** 2 + candidates + a_pair * n_spheres**2 + WORKSPACE
    if k > 1 and n_scores(k, n_features) <= MOST_SCORES:
        held += (INFORMATION_MATRICES * k + SINGLE_INFORMATION) * n_unique(n_features, 2) ** 2
        held += (SETTLED * n_scores(k, n_features) + 4 * HELD_AT_ONCE) * n_scores(k, n_features)
        held += 2 * FOR_MEANS * n_features
    check_feasible(held, fit, "Fit fewer of either.")


def strength(epsilon: float, delta: float) -> float:
    """Gaussian mu of a budget; with delta 0 its epsilon: noise of one release is about as large."""
    return gaussian_mu(float(epsilon), float(delta)) if delta > 0 else float(epsilon)


def rows_needed(estimator: Any, n_features: int) -> int:
    """Number of samples from which a forecast says that a fit finds groups of equal size."""
    k, mu = estimator.n_components, strength(estimator.epsilon, estimator.delta)
    return math.ceil(max(ROWS_NEEDED * k * n_features / mu, LEAST_NEEDED * k))


@dataclass(frozen=True, repr=False)
class MixtureForecast(Forecast):
    """Forecast of a mixture: noise of a step's means, and errors of the means of its groups.

    Attributes
    ----------
    mean_error : float
        Expected standard error of a group's mean along a column, for groups of one size that are
        well apart, of samples without missing cells. A 90% interval reaches 1.645 times as far.
    deviation : float
        Assumed standard deviation of a group's samples along a column, in the same units.
    why_no_intervals : str
        Public reason why means will have no intervals; empty if they will.

    Examples
    --------
    >>> from sktensor_dp import PrivateGaussianMixture
    >>> forecast = PrivateGaussianMixture(1, data_norm=4.0).forecast(3000, 12)
    >>> forecast.epsilon_for(), forecast.epsilon_for(mean_error=0.02)
    (0.835, 1.02)
    """

    mean_error: float
    deviation: float
    why_no_intervals: str
    _needed: int = field(repr=False)

    @property
    def n_samples_needed(self) -> float:
        """Number of samples from which a fit finds groups of equal size."""
        return self._needed

    def epsilon_for(self, verdict: str = "enough", mean_error: float = math.inf) -> float | None:
        """Find the least epsilon for a verdict, and for an error of means.

        Parameters
        ----------
        verdict : str, default="enough"
            A verdict but ``"too few"``, as the property `verdict` gives it.
        mean_error : float, optional
            Largest `mean_error`.

        Returns
        -------
        float or None
            From .01 to 10, to three digits; None if 10 is not enough. Costs no privacy.
        """
        reached = self._test_of(verdict, mean_error)
        return least_epsilon(lambda epsilon: reached(self._again(epsilon=epsilon)))

    def n_for(self, verdict: str = "enough", mean_error: float = math.inf) -> int | None:
        """Find the least number of samples for a verdict, and for an error of means.

        Parameters
        ----------
        verdict, mean_error
            As for :meth:`epsilon_for`.

        Returns
        -------
        int or None
            At most a billion; None if that is not enough. Costs no privacy.
        """
        reached = self._test_of(verdict, mean_error)
        return least_number(lambda n: reached(self._again(n_samples=n)))

    def _test_of(self, verdict: str, mean_error: float = math.inf) -> Callable[[Any], bool]:
        is_as_good = super()._test_of(verdict)
        return lambda other: is_as_good(other) and other.mean_error <= mean_error

    @property
    def verdict_is_for(self) -> str:
        """Condition on several groups, if samples may be enough for them."""
        return WELL_APART if self.n_components > 1 and self.verdict in VERDICTS[:2] else ""

    @property
    def _from(self) -> str:
        overlap = " (ten times as many, or more, where they overlap)"
        return super()._from + overlap * (self.n_components > 1)

    @property
    def assumptions(self) -> list[str]:
        """Sentences on errors of means, on what is assumed of the data, and on intervals."""
        none = [f"There will be no intervals: {self.why_no_intervals}."]
        return [
            f"{self.mean_error:.2g} is the expected standard error of means, if samples are "
            f"typically {self.deviation:.2g} from their group's mean along a column (deviation=).",
            "It is larger where groups overlap, or samples have missing cells.",
            *([OF_ONE_SIZE.format(unit=self.unit), HIDERS] if self.n_components > 1 else []),
            *(none if self.why_no_intervals else []),
        ]


def forecast_mixture(
    estimator: Any, n_samples: int, n_features: int, deviation: float | None
) -> MixtureForecast:
    """Forecast noise and errors of means, and how many samples groups of one size need."""
    plan = plan_mixture(estimator, n_samples, n_features)
    k, clip = plan.n_components, plan.clip
    is_pure = plan.releases.delta == 0
    _, count_sigma = counted_releases(plan.releases, is_pure, estimator.neighbours)
    sigma = step_sigma(estimator, plan.releases, n_samples, n_features)
    # Noise of a coordinate of a group's shifts, in means over all rows. A mean over the group, with
    # a k-th of the rows, has k times as much, and the length of a shift is over all coordinates.
    shift_sigma = clip.far / math.sqrt(plan.scales.shift) / clip.shift_response * sigma
    noise = k * shift_sigma * math.sqrt(n_features)
    row = ReleaseForecast(MixtureStatistics.name, sigma, noise, signal=1.0)
    if deviation is None:  # a quarter of the range of columns that are scaled to one
        deviation = plan.radius / (2 * math.sqrt(n_features)) if not plan.chooses_norm else 1.0
    by_noise = k * deviation * shift_sigma
    if k == 1:
        # `release_filled` has means of rows of any length in the ball. With their other statistics
        # they have the norm sqrt(2), in place of 1.
        of_length = plan.radius if not plan.chooses_norm else 2 * math.sqrt(n_features) * deviation
        by_noise = of_length * math.sqrt(2) * sigma
    by_noise /= math.sqrt(plan.n_steps / 2)  # the last half of the steps is averaged
    return MixtureForecast(
        (row,), n_samples, k, count_sigma=count_sigma, _needed=rows_needed(estimator, n_features),
        why_no_intervals=no_intervals_by(estimator, n_samples, n_features),
        mean_error=math.hypot(by_noise, deviation * math.sqrt(k / n_samples)), deviation=deviation,
        _question=Question.of(
            estimator, n_samples=n_samples, n_features=n_features, deviation=deviation
        ),
    )  # fmt: skip


def parameters_of_group(covariance_type: str, n_features: int) -> int:
    """Number of parameters of one group: weight, mean, and covariance unless all share one."""
    of_shape = {"full": n_unique(n_features, 2), "tied": 0, "diag": n_features, "spherical": 1}
    return 1 + n_features + of_shape[covariance_type]
