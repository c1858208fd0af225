"""What a completion will release, from public numbers only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from sktensor_dp.completion.assumed import BIAS, COMPONENT, COMPONENTS, RESIDUAL
from sktensor_dp.completion.pair_plan import (
    PAIRED_POWER,
    Folding,
    cost_at,
    folding_share,
    releases_for_folding,
)
from sktensor_dp.estimator.parameters import Number, Numbers, shown
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.piecewise import piecewise_deviation
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan, check_feasible
from sktensor_dp.statistics.slice_queries import SharedFactorSums

# Sweeps of alternating least squares on released sums, and steps of gradient descent.
SWEEPS, STEPS = 3, 30
# Share of a budget for mean and biases where factors are released beside them; of the level
# of units; and of the values from which the other factors of an output are computed.
BIAS_SHARE, LEVEL_SHARE, INPUT_SHARE = 0.4, 0.01, 0.5
# Numbers in memory to a row: beside any model, for components by their squared rank, and
# beside a model of the values themselves.
ROW_NUMBERS, ROW_SQUARES, VALUES_NUMBERS = 12, 3, 200
# Rows asked first: how far components stand out there, one of how many, and least that is saved.
TRIED_ROOM, TRIED, LEAST_SAVED = 1.5, (4, 12), 0.003
# Of slices: share of the shared factors, if they are released; share of a unit's cells that
# are taken to have entries, which is private; and sweeps where there is no noise.
FACTOR_SHARE, OBSERVED_SHARE, EXACT_SWEEPS = 0.6, 1 / 4, 20
# Of slices of a matrix: share of the components, its releases, and fewest that tell their size.
DIRECTION_SHARE, DIRECTION_SWEEPS, LEAST_SWEEPS = 0.9, 24, 4
# More and smaller releases turn directions better where one of them shows little: below this
# detectability. They take longer. Elsewhere units' own fits are known too roughly to be taken off.
PATIENT_BELOW, PATIENT_SWEEPS = 4.0, 40
# Of slices of a matrix: releases of the effects of its rows and of level and deviation, each
# about those before; and share of further levels, in that of the first.
EFFECT_ROUNDS, LEVEL_ROUNDS, LEVEL_AGAIN = 4, 2, 0.5


def least_numbers(shape: Sequence[int], ranks: Sequence[int], perturbation: str) -> float:
    """Numbers that a fit holds at a time, at least: measured, and rounded down."""
    # Rows have a covariance each, of a few matrices of their rank, and a core is dense.
    values = VALUES_NUMBERS if perturbation in ("input", "output") else 0
    rows = sum(
        n * (ROW_NUMBERS + values + ROW_SQUARES * float(r) ** 2)
        for n, r in zip(shape, ranks, strict=True)
    )
    return rows + math.prod(map(float, ranks))


def checked_ranks(name: str, rank: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """One rank for each mode."""
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


def check_model_size(
    shape: Sequence[int], ranks: Sequence[int], plan: "CompletionPlan | SlicePlan", asked: Any
) -> None:
    """Refuse a public shape that memory cannot hold the parameters of."""
    costs = {one.name: one.cost.epsilon for one in plan.releases.releases}
    factors = [n * r for n, r in zip(shape, ranks, strict=True)]
    drawn = max(sum(shape) + 1, *factors)
    if plan.perturbation == "gradient":
        drawn += sum(factors) + math.prod(ranks)
    elif plan.perturbation in ("input", "output"):
        # Values have a law of integers, which no sampler draws otherwise.
        drawn = factors[-1] if plan.perturbation == "output" else 0
    check_feasible(
        least_numbers(shape, ranks, plan.perturbation),
        f"A model of shape {tuple(shape)}, which has {sum(shape)} rows, at rank={asked!r}",
        "Coordinates must be consecutive numbers from 0 in each mode: encode ids and times, "
        "for example with sklearn.preprocessing.OrdinalEncoder. Or ask for a smaller rank.",
        drawn=0.0 if math.isinf(plan.releases.epsilon) else float(drawn),
        spherical=any(0 < costs.get(name, 0) < math.inf for name in ("factor_sums", "ridge_block")),
    )


@dataclass(frozen=True)
class CompletionPlan:
    """Decisions that may depend on public numbers only.

    Attributes
    ----------
    perturbation : {"input", "sufficient_statistics", "gradient", "output"}
        What gets noise.
    n_steps : int
        Sweeps or steps that are releases of their own.
    releases : ReleasePlan
        The budget.
    with_pairs : bool
        Whether components of the other mode are released for those who fold in alone.
    n_columns : int
        Directions that they are found by; 0 where it is products of pairs.
    tried : int
        One of so many rows of the longest mode is asked for its values first; 0 if none is.
    """

    perturbation: str
    n_steps: int
    releases: ReleasePlan
    with_pairs: bool = False
    n_columns: int = 0
    tried: int = 0

    @property
    def value_deviation(self) -> float:
        """Deviation of the noise of released values, in widths of the bounds."""
        return piecewise_deviation(self.releases.cost_of("entries").epsilon)

    @property
    def seeks_components(self) -> bool:
        """Whether more than mean and biases is sought."""
        return self.perturbation != "sufficient_statistics" or self.n_steps > 0 or self.with_pairs


def detectability(n_observed: int, shape: Sequence[int], epsilon: float) -> float:
    """Eigenvalue of a component worth finding over the edge of the noise."""
    # In the Gram matrix of the best unfolding of the values themselves, released with a noise
    # of pure epsilon: above 1 components can be found in them.
    if math.isinf(epsilon):
        return math.inf
    noise = piecewise_deviation(epsilon) ** 2 + RESIDUAL**2
    cells = math.prod(shape)
    edges = [2 * noise * math.sqrt(n * min(n_observed, max(cells // n, 1))) for n in shape]
    return COMPONENT**2 * n_observed / min(edges)


def noise_of_values(
    n_observed: int, shape: Sequence[int], epsilon: float, residual: float = RESIDUAL
) -> list[float]:
    """Variance of the bias of an average row of each mode, from released values."""
    # In squared widths of the bounds, as all that follows.
    value = residual**2 + piecewise_deviation(epsilon) ** 2
    return [value * n / n_observed for n in shape]


def noise_of_sums(
    n_observed: int,
    shape: Sequence[int],
    epsilon: float,
    residual: float = RESIDUAL,
    power: float = 0.5,
) -> list[float]:
    """The same from released sums, which favour rows with few entries."""
    laplace = 0.0 if math.isinf(epsilon) else 2 / epsilon**2
    rows = [n_observed / n for n in shape]
    shares = [r**-power / math.fsum(other**-power for other in rows) for r in rows]
    return [
        (residual**2 * s**2 * r + laplace) / (s * r) ** 2 for s, r in zip(shares, rows, strict=True)
    ]


def _kept(noise: list[float]) -> float:
    """Variance of a value that is left where its biases were seen with such noise."""
    return math.fsum(BIAS**2 * v / (BIAS**2 + v) for v in noise)


def _loss(noise: list[float], usual: list[float]) -> float:
    """By how much predictions by biases get worse if they have such noise."""
    return math.sqrt((RESIDUAL**2 + _kept(noise)) / (RESIDUAL**2 + _kept(usual))) - 1


def loss_by_pairs(n_observed: int, shape: Sequence[int], epsilon: float, share: float) -> float:
    """By how much predictions by sums get worse if a share of epsilon goes to pairs."""
    less = noise_of_sums(n_observed, shape, (1 - share) * epsilon, power=PAIRED_POWER)
    return _loss(less, noise_of_sums(n_observed, shape, epsilon))


def _tried(*size: Any) -> int:
    """Of how many rows of the longest mode one is asked first; 0 where that says too little."""
    every = (detectability(*size) / TRIED_ROOM) ** 2
    saved = _loss(noise_of_values(*size), noise_of_sums(*size))
    return int(min(every, TRIED[1])) if every >= TRIED[0] and saved > LEAST_SAVED else 0


def values_pay(n_observed: int, shape: Sequence[int], epsilon: float) -> bool:
    """Whether components of released values explain more than their noise costs biases."""
    # A row of the longest mode has few values to find its part of a component by.
    noise = noise_of_values(n_observed, shape, epsilon)
    gain = COMPONENTS * COMPONENT**4 / (COMPONENT**2 + max(noise))
    return gain >= _kept(noise) - _kept(noise_of_sums(n_observed, shape, epsilon))


def plan_completion(
    n_observed: int,
    shape: Sequence[int],
    rank: int = 1,
    *,
    epsilon: float,
    delta: float,
    perturbation: str,
    max_iter: int | None,
    unit_mode: int = 0,
) -> CompletionPlan:
    """Choose releases and split the budget, where the unit is a value."""
    piecewise_deviation(epsilon)  # refuses an epsilon too small for the law
    found, share, sought, tried = detectability(n_observed, shape, epsilon) >= 1, 0.0, 0, 0
    if perturbation == "auto":
        pays = found and values_pay(n_observed, shape, epsilon)
        perturbation = "input" if pays else "sufficient_statistics"
        found = False  # sweeps of released sums were better nowhere; who asks for them gets them
        if pays and rank > 0 and max_iter is None:
            tried = _tried(n_observed, shape, epsilon)
        elif rank > 0 and max_iter is None:
            loss = partial(loss_by_pairs, n_observed, shape, epsilon)
            whole = Folding(n_observed, shape, unit_mode, epsilon, delta)
            share, sought = folding_share(whole, rank, loss)
    n_steps = 0
    if perturbation == "sufficient_statistics":
        n_steps = (SWEEPS if found else 0) if max_iter is None else max_iter
        n_steps *= rank > 0
    elif perturbation == "gradient":
        n_steps = STEPS if max_iter is None else max_iter
    releases = _releases(perturbation, n_steps, len(shape), epsilon, delta)
    if share > 0:
        releases = releases_for_folding(epsilon, delta, share, sought)
    return CompletionPlan(perturbation, n_steps, releases, share > 0, n_columns=sought, tried=tried)


def _releases(
    perturbation: str, n_steps: int, n_modes: int, epsilon: float, delta: float
) -> ReleasePlan:
    if perturbation == "gradient":
        alone = "entry_gradients"
        return ReleasePlan.split(epsilon, delta, {alone: 1.0}, {alone: n_steps})
    if perturbation == "output":
        # An epsilon too small for the law is refused now, before anything is charged.
        piecewise_deviation(INPUT_SHARE * epsilon)
        first = PlannedRelease("entries", PrivacyCost(epsilon=INPUT_SHARE * epsilon))
        second = PlannedRelease("ridge_block", cost_at((1 - INPUT_SHARE) * epsilon, delta))
        return ReleasePlan(epsilon, delta, (first, second))
    if n_steps == 0:
        name = "entries" if perturbation == "input" else "row_sums"
        return ReleasePlan(epsilon, delta, (PlannedRelease(name, PrivacyCost(epsilon=epsilon)),))
    shares = {"row_sums": BIAS_SHARE, "factor_sums": 1 - BIAS_SHARE}
    return ReleasePlan.split(epsilon, delta, shares, {"factor_sums": n_steps * n_modes})


@dataclass(frozen=True)
class SlicePlan:
    """Decisions about slices that may depend on public numbers only.

    Attributes
    ----------
    unit_mode : int
        Mode of the units.
    n_sweeps : int
        Releases of each shared factor.
    releases : ReleasePlan
        The budget.
    by_directions : bool
        Whether components are those of a matrix, found by many small releases.
    by_evidence : bool
        Whether what is released first decides if the others are for components.
    n_rounds, n_levels : int
        Releases of the effects of each shared mode, and of level and deviation.
    about_fits : bool
        Whether units send what their own fits of directions leave.
    """

    unit_mode: int
    n_sweeps: int
    releases: ReleasePlan
    by_directions: bool = False
    by_evidence: bool = False
    n_rounds: int = 1
    n_levels: int = 1
    about_fits: bool = False
    perturbation: ClassVar[str] = "sufficient_statistics"

    @property
    def seeks_components(self) -> bool:
        """Whether shared factors are released."""
        return self.n_sweeps > 0

    @property
    def favours_rows(self) -> bool:
        """Whether later releases tell most of rows whose effects explain most of values."""
        # Beside components they have a small part of the budget, and gain nothing by it.
        return self.n_rounds > 1 and self.n_sweeps == 0


def slice_detectability(
    shape: Sequence[int], unit_mode: int, epsilon: float, delta: float
) -> float:
    """Length of a component worth finding over that of the noise, in one shared factor."""
    # Of the hardest mode, for a model of one component and units of which a quarter of the
    # cells have entries; above 1 components can be found.
    if delta == 0:
        return 0.0
    if math.isinf(epsilon):
        return math.inf
    shared = [n for m, n in enumerate(shape) if m != unit_mode]
    n_queries = SWEEPS * len(shared)
    noise = SharedFactorSums.farthest / (
        gaussian_mu(epsilon, delta) * math.sqrt(FACTOR_SHARE / n_queries)
    )
    # Response of a clipped residual to a component, whose weights are half hidden by noise.
    response = 0.68 * (COMPONENT / RESIDUAL) / 2
    each = max(OBSERVED_SHARE * math.prod(shared), 1.0)
    found = []
    for n in shared:
        weight = shape[unit_mode] * math.sqrt(each) / n
        found.append(weight * response * math.sqrt(n) / (math.sqrt(n) + 1) / noise)
    return min(found)


def plan_slices(
    shape: Sequence[int],
    rank: int,
    unit_mode: int,
    epsilon: float,
    delta: float,
    max_iter: int | None,
) -> SlicePlan:
    """Split the budget where the unit is a slice."""
    shared = [n for m, n in enumerate(shape) if m != unit_mode]
    by_directions = SharedFactorSums.may_be_whole(shape, shared) and math.isfinite(epsilon)
    n_sweeps, shown = max_iter, slice_detectability(shape, unit_mode, epsilon, delta)
    patient = by_directions and shown < PATIENT_BELOW
    if n_sweeps is None:
        many = EXACT_SWEEPS if math.isinf(epsilon) else SWEEPS
        directions = PATIENT_SWEEPS if patient else DIRECTION_SWEEPS
        n_sweeps = (directions if by_directions else many) if shown >= 1 else 0
    n_sweeps *= rank > 0 and delta > 0
    by_directions = by_directions and n_sweeps >= LEAST_SWEEPS
    # Residuals about better effects say more; parts of a pure epsilon lose more than that.
    again = len(shape) == 2 and delta > 0 and math.isfinite(epsilon)
    n_rounds, n_levels = (EFFECT_ROUNDS, LEVEL_ROUNDS) if again else (1, 1)
    levels = LEVEL_SHARE * (1 + LEVEL_AGAIN * (n_levels - 1))
    shares = {"unit_levels": levels, "shared_row_sums": 1 - levels}
    uses = {"shared_row_sums": (len(shape) - 1) * n_rounds, "unit_levels": n_levels}
    if n_sweeps:
        shares["shared_factor_sums"] = DIRECTION_SHARE if by_directions else FACTOR_SHARE
        shares["shared_row_sums"] -= shares["shared_factor_sums"]
        uses["shared_factor_sums"] = n_sweeps * (len(shape) - 1)
    releases = ReleasePlan.split(epsilon, delta, shares, uses)
    how = by_directions, by_directions and max_iter is None, n_rounds, n_levels, patient
    return SlicePlan(unit_mode, n_sweeps, releases, *how)
