"""Panels: each unit stays in some neighbouring rows of a mode, which decides errors of effects."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sktensor_dp.checks.parameters import shown
from sktensor_dp.completion.concurrences import (
    Concurrences,
    solved,
    solved_by_laws,
    stand_out,
)
from sktensor_dp.completion.hidden_axes import variances_of_differences
from sktensor_dp.completion.plan import Assumed, ConcurrencePayment, PersonPlan
from sktensor_dp.tensor import defaults as kernel_defaults
from sktensor_dp.tensor.arrays import Floats

# Number of draws of noise in concurrences, of whose errors the forecast is the median.
N_DRAWS = 9
# Number of units with each set of rows whose entries are drawn.
N_UNITS = 200


class Draw(NamedTuple):
    """Concurrences by a draw of noise, and a draw of errors of effects."""

    concurrences: Concurrences
    errors: Floats  # (2, n_rows): by entries and by noise, of deviation 1


class ErrorsOfRow(NamedTuple):
    """Variances of the effect of a row of mean weight in released sums, in widths of bounds."""

    noise: float
    sampling: float
    by_clips: float
    blocks: Floats  # (2,): weights of units with entries in several rows, and in one


@dataclass(frozen=True)
class Panel:
    """Ordered rows of a mode, of which each unit has entries in `stays` neighbouring ones.

    Units come and go at a constant rate: at both ends some have entries in fewer rows. A unit has
    one entry in each of its rows; or, with `each`, a geometrically distributed number of entries of
    this mean, each in a random one of its rows.
    """

    n_rows: int
    stays: int
    n_units: int
    each: float | None = None

    def weights(self) -> tuple[Floats, Floats]:
        """Mean weights (n_rows,) of a unit in rows, by units with several rows, and by others."""
        counts, several = self._counts, np.count_nonzero(self._counts, axis=1) > 1
        weights = counts / np.linalg.norm(counts, axis=1, keepdims=True) / len(counts)
        return weights[several].sum(axis=0), weights[~several].sum(axis=0)

    @property
    def weight(self) -> float:
        """Mean weight of a unit in all rows together."""
        return float(np.sum(self.weights()))

    @property
    def rows_each(self) -> float:
        """Mean number of rows in which a unit has entries, if it has one in each of its rows."""
        return float(self.stays * self.n_rows / (self.n_rows + self.stays - 1))

    @property
    def alone(self) -> float:
        """Share of units that have entries in one row alone."""
        return float(np.mean(np.count_nonzero(self._counts, axis=1) == 1))

    @cached_property
    def concurrences(self) -> Floats:
        """Expected sums (n_rows, n_rows) of `RowConcurrences`."""
        counts = self._counts
        norms = np.linalg.norm(counts, axis=1, keepdims=True)
        others = np.maximum(counts.sum(axis=1, keepdims=True) - counts, 1)
        sums = self.n_units / len(counts) * (counts / norms / others).T @ counts
        np.fill_diagonal(sums, 0.0)
        return np.asarray(sums)

    def is_known(self, plan: PersonPlan) -> bool:
        """True if a fit measures, beyond noise, how units compare rows of the last mode."""
        payment, noise = self.payment(plan), math.inf
        if payment.is_released:
            noise = plan.noise_of_concurrences(payment.n_sweeps)
        return stand_out(float(self.concurrences.sum()), self.n_rows, noise)

    def payment(self, plan: PersonPlan) -> ConcurrencePayment:
        """Say what pays for how units compare rows of the last mode, which they keep to."""
        total = float(self.concurrences.sum())
        payment = plan.payment_for_concurrences(
            len(plan.in_doubt) - 1, self.n_rows, total, rows_each=0.0
        )
        return plan.payment_if_kept(payment)

    def draws(self, sigma: float) -> list[Draw]:
        """Draw concurrences as a release with noise of deviation `sigma` shows them."""
        rng, found, expected = np.random.default_rng(0), list[Draw](), self.concurrences
        for _ in range(N_DRAWS):
            sums = expected + sigma * rng.standard_normal(expected.shape)
            np.fill_diagonal(sums, 0.0)
            # Weights of rows have far less noise than the sums that concurrences add up to.
            known = Concurrences.of_sums(sums, sigma, expected.sum(axis=1))
            found.append(Draw(known, rng.standard_normal((2, self.n_rows))))
        return found

    def variances(self, errors: ErrorsOfRow, draws: Sequence[Draw], assumed: Assumed) -> Floats:
        """Error variances (n_rows,), in squared widths of bounds, that a fit of a trend will state.

        Those of any two rows add up to that of their difference, or to more. They are medians over
        `draws` of noise.
        """
        several, alone = errors.blocks[:, None] * self.weights()
        part = several / (several + alone)
        relative = (several + alone) / np.mean(several + alone)
        trend, expected = np.linspace(-1.0, 1.0, self.n_rows), self.concurrences
        fit = _Fit(
            part=part, noise=errors.noise / relative**2,
            sampling=errors.sampling / relative,
            trend=trend * assumed.bias_deviation / np.std(trend),
            prior=self.n_rows * kernel_defaults.LEVEL_VARIANCE * assumed.about_biases,
            shown=Concurrences.of_sums(expected, 0.0, expected.sum(axis=1)).shown(part),
        )  # fmt: skip
        found = [fit.variances(draw) for draw in draws]
        own = fit.noise + fit.sampling
        more = np.maximum(np.median(found, axis=0) - own, 0.0)
        return np.asarray(assumed.shrunk(list(own + errors.by_clips))) + more

    @cached_property
    def _counts(self) -> Floats:
        """Numbers of entries (n, n_rows) of n possible units, all equally likely."""
        first = np.arange(1 - self.stays, self.n_rows)[:, None]
        rows = np.arange(self.n_rows)
        seen = ((rows >= first) & (rows < first + self.stays)).astype(float)
        if self.each is None:
            return seen
        rng = np.random.default_rng(0)
        seen = np.tile(seen, (N_UNITS, 1))
        counts = rng.geometric(1 / max(self.each, 1.0), len(seen))
        return rng.multinomial(counts, seen / seen.sum(axis=1, keepdims=True)).astype(float)


@dataclass(frozen=True, eq=False)
class _Fit:
    """Fit of effects of a panel by concurrences, as by `SharedBiases`, to random data."""

    part: Floats  # (n_rows,): part of a row's entries that are of units with several rows
    noise: Floats  # (n_rows,): variances of effects by noise
    sampling: Floats  # (n_rows,): by entries
    trend: Floats  # (n_rows,): true effects
    prior: float  # variance of effects along an axis, at least
    shown: Floats  # (n_rows, n_rows): that of `Concurrences` without noise

    def variances(self, draw: Draw) -> Floats:
        """Error variances (n_rows,) by noisy concurrences."""
        known, (own, noise) = draw
        seen = self.shown @ (self.trend + own * np.sqrt(self.sampling))
        seen += noise * np.sqrt(self.noise)
        # Rounds are about effects found so far.
        about, covariances, _ = solved(
            known.shown(self.part), seen, self.noise, self.sampling, self.prior
        )
        variances = covariances.diagonal()
        if known.hidden is None:
            return variances
        _, covariances = solved_by_laws(
            known.hidden, self.part, lambda shown: seen + (shown - self.shown) @ about,
            self.noise, self.sampling, self.prior, len(seen) / 12,
            start=about, middle=about.mean(),
        )  # fmt: skip
        return np.maximum(variances_of_differences(covariances), variances)


def check_stays(
    stays: object, n_observed: int, shape: tuple[int, ...], unit_mode: int | None
) -> None:
    """Raise ValueError for `stays` that units cannot stay in, or have too many entries for."""
    if stays is None:
        return
    if unit_mode != 0:
        raise ValueError("stays needs unit_mode=0: units stay in rows of the last mode.")
    if not isinstance(stays, int | np.integer) or not 2 <= stays < shape[-1]:
        raise ValueError(
            f"stays must be an int from 2 on, less than the {shape[-1]} rows of mode "
            f"{len(shape) - 1}; got {shown(stays)}."
        )
    room = int(stays) * math.prod(shape[:-1])
    if n_observed > room:
        raise ValueError(
            f"n_observed must be at most {room}, if units stay in {stays} rows; got {n_observed}."
        )
