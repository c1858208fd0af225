"""Released sums of one round of biases, and the average of rounds that errs least."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from sktensor_dp.tensor import defaults as kernel_defaults
from sktensor_dp.tensor.arrays import Floats

# Least sum of weights, to avoid a division by 0.
LEAST_WEIGHT = 1e-130
# Least and largest mean square error of a release: far beyond squares of bounds, and from overflow.
LEAST_ERROR, LARGEST_ERROR = 1e-130, 1e130
# Least variance of a part of a row's entries, which may have none.
LEAST_VARIANCE = 1e-6
# Least error variance of a release, relative to its mean square: far above rounding errors.
LEAST_RELATIVE_ERROR = 1e-9


@dataclass(frozen=True, eq=False)
class EffectRelease:
    """Released sums over units for each row of a shared mode, as `SharedRowSums` defines them."""

    # Numbers "by row" are (n_rows,), or one for all rows.

    sums: Floats  # (n_rows,): of clipped residuals, in clips; (2, n_rows) before blocks are joined
    counts: Floats  # weighted numbers of entries; of the shape of `sums`
    sigma: Floats  # deviations of the noise of both; of the shape of `sums`
    response: float | Floats  # of mean clipped residuals to effects, 1 if unknown; by row
    about: Floats  # (n_rows,): effects that residuals are about
    spread: float | Floats  # deviation of a clipped residual; by row
    shift: float | Floats = 0.0  # expected error of effects, if residuals are not normal; by row
    by_step: float | Floats = 0.0  # variance by moving effects after the average; by row
    by_clip: float = 0.0  # as `pull_by_clip`
    pulled: float | Floats = 0.0  # deviation of effects by their uncertain pull; by row
    # (n_rows, n_rows): covariances of errors of effects less those of independent noise and entries
    beyond: Floats | None = None
    # (n_releases, n_rows): weights of the releases that this one is the average of
    of_releases: Floats | None = None

    def joined(self, weights: Floats) -> "EffectRelease":
        """Release with the weighted sum of both blocks; the larger of the `weights` (2,) is 1."""
        sigma = np.sqrt(weights**2 @ self.sigma**2)
        return replace(self, sums=weights @ self.sums, counts=weights @ self.counts, sigma=sigma)

    def estimates(self, counts: Floats) -> Floats:
        """Effects (n_rows,) that the sums show, with these `counts` in place of the noisy ones."""
        return self.about + self.sums / self.response / counts

    def noise(self, counts: Floats) -> Floats:
        """Deviations (n_rows,) of the noise on `estimates`."""
        return np.asarray(self.sigma / self.response / counts)

    @classmethod
    def combined(
        cls, releases: Sequence["EffectRelease"], missed: Floats,
        by_comparison: float | Floats = 0.0,
    ) -> "EffectRelease":  # fmt: skip
        """One release in place of n: counts averaged by precision, sums so that effects err least.

        `missed` and `by_comparison` are as for `errors_of_releases`.
        """
        sums = np.stack([release.sums for release in releases])
        sigmas = np.stack([release.sigma for release in releases])
        responses = np.stack([release.response for release in releases])
        counts, sigma = pooled_counts(releases)
        # Releases are compared over rows by weights: the least precision that any gives effects.
        row_weights = np.min(_precisions(sigmas) * responses**2, axis=0)
        row_weights /= row_weights.sum()
        # Divided by their responses, sums of all releases estimate the same row totals of effects,
        # with noise of variance (sigma / response)^2. Releases are compared by differences of rows:
        # subtract a constant from the effects of each.
        about = np.stack([release.about for release in releases])
        totals = about * counts + sums / responses
        constants = _constants(totals, counts, row_weights)
        about -= constants - constants[-1]
        compared = _Compared(
            about - _constants(about * counts, counts, row_weights),
            totals - constants * counts, (sigmas / responses) ** 2,
        )  # fmt: skip
        errors = errors_of_releases(releases, compared, counts, row_weights, missed, by_comparison)
        parts = weights_of_least_error(errors).T
        # An uncertain pull multiplies all rows alike: it is no reason to shrink them to their mean.
        pulled = sum(part * release.pulled for part, release in zip(parts, releases, strict=True))
        response = responses[-1]
        if sigma.all():
            # With this response sums err as much as counts do by noise: `sigma` is for both.
            variances = np.einsum("ij,jik,kj->j", parts, errors, parts) - (pulled * counts) ** 2
            response = sigma / np.sqrt(variances)
        sum_parts = response * parts / responses
        return cls(
            sums=np.sum(sum_parts * sums, axis=0),
            counts=counts, sigma=sigma, response=response,
            about=np.sum(parts * about, axis=0), pulled=pulled, of_releases=parts,
            # Deviations add up, not variances: all releases are of the same values.
            spread=sum(
                part * release.spread for part, release in zip(sum_parts, releases, strict=True)
            ),
        )  # fmt: skip


def pooled_counts(releases: Sequence[EffectRelease]) -> tuple[Floats, Floats]:
    """Counts averaged by precision, and deviations of their noise; both as those of a release."""
    sigmas = np.stack([one.sigma for one in releases])
    parts = _precisions(sigmas)
    parts /= parts.sum(axis=0)
    counts = np.sum(parts * np.stack([one.counts for one in releases]), axis=0)
    return counts, np.sqrt(np.sum((parts * sigmas) ** 2, axis=0))


def _precisions(sigmas: Floats) -> Floats:
    """Inverse variances; without noise all are 1."""
    return sigmas**-2.0 if sigmas.all() else np.ones_like(sigmas)


class _Compared(NamedTuple):
    """Arrays (n, n_rows) by which n releases are compared, without a constant in effects."""

    about: Floats  # effects that releases are about
    sums: Floats  # row totals of effects by releases
    noise: Floats  # variances of these by noise


def errors_of_releases(
    releases: Sequence[EffectRelease], compared: _Compared, counts: Floats, row_weights: Floats,
    missed: Floats, by_comparison: float | Floats = 0.0,
) -> Floats:  # fmt: skip
    """Mean products (n_rows, n, n) of the errors that n releases have in each row's sum of effects.

    Errors are noise, the expected `shift`, the deviation `pulled`, and what distances from the last
    release have beyond these. Where rows of two modes meet unevenly, a release also contains a part
    of the errors that effects of other modes had then: `missed` (n, n) are mean products of these.
    `by_comparison` (n_rows, n, n) are mean products of errors that noise in concurrences adds.
    `counts` are averaged, `row_weights` are of sum 1.
    """
    about, sums, noise = compared
    mean_noise = noise @ row_weights
    by_noise = np.add.outer(mean_noise, mean_noise)
    distances = _square_distances((row_weights * sums) @ sums.T)
    # Subtract what noise adds on average and one deviation of that, which is large for few rows.
    distances -= by_noise * (1 + math.sqrt(2 * row_weights @ row_weights))
    distances = np.minimum(distances, LARGEST_ERROR)
    own_moves = _square_distances((row_weights * counts**2 * about) @ about.T)
    by_moves = np.stack([_square_distances(missed), own_moves])
    # At most all of `missed`, times squared counts: as if each row of this mode met a single row of
    # another mode.
    part = min(_part_by_first(distances, by_noise, by_moves), float(row_weights @ counts**2))
    shift = np.stack([release.shift * counts for release in releases])
    pulled = np.stack([release.pulled * counts for release in releases])
    errors = part * missed + by_comparison * counts[:, None, None] ** 2
    errors = errors + sum(np.einsum("ij,kj->jik", error, error) for error in (shift, pulled))
    # The rest of its distance from the last release is each release's own error, beside noise.
    rest = (distances - _square_distances(np.tensordot(row_weights, errors, 1)))[-1].clip(0)
    rest[-1] = 0.0
    largest = max(float(row_weights @ (sums**2).max(axis=0)), part * float(missed.max()))
    least = LEAST_RELATIVE_ERROR * largest + LEAST_ERROR
    diagonal = np.diagonal(errors, axis1=1, axis2=2)
    own_errors = np.maximum(noise.T + rest, np.maximum(least, LEAST_RELATIVE_ERROR * diagonal))
    errors[:, *np.diag_indices(len(releases))] += own_errors
    return errors


def weights_of_least_error(errors: Floats) -> Floats:
    """Weights (..., n), of sum 1, by which the mean of n estimates errs least.

    `errors` (..., n, n) are mean products of the errors of estimates.
    """
    weights = np.linalg.solve(errors, np.ones((*errors.shape[:-1], 1)))[..., 0]
    # Negative weights would extrapolate by expected shifts, which are too uncertain for that.
    weights = np.maximum(weights, 0.0)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _part_by_first(distances: Floats, by_noise: Floats, by_moves: Floats) -> float:
    """Least-squares p of ``distances = p by_moves[0] + q by_moves[1]`` with p, q >= 0.

    All are squares (n, n) for pairs of releases, and are weighted by their noise.
    """
    pairs = np.tril_indices(len(distances), -1)
    weights = 1 / (by_noise[pairs] + LEAST_ERROR)
    weights /= weights.max(initial=LEAST_ERROR)
    parts, _ = nnls((weights * by_moves[:, *pairs]).T, weights * distances[pairs])
    return float(parts[0])


def block_weights(releases: Sequence[EffectRelease], weight_each: float) -> Floats:
    """Weights (2,) of the blocks of units with entries in several rows of a mode, and in one.

    A unit's own level is subtracted from its entries if they are in several rows. From entries in
    one row it cannot be, and it may decide in which row they are: they hardly count where the
    others tell effects. `weight_each` is the mean weight of an entry.
    """
    counts, sigma = pooled_counts(releases)
    variances = np.mean(sigma**2, axis=1)
    # Mean weight of a row in each block, less one deviation of the noise of that mean.
    sizes = np.maximum(counts.mean(axis=1) - np.sqrt(variances / counts.shape[1]), 0.0)
    return weights_by_size(sizes, weight_each, variances, releases[-1].spread ** 2)


def parts_of_second(counts: Floats, sigma: Floats) -> Floats:
    """Part (n_rows,) of the second block in each row's `counts` (2, n_rows), shrunk by noise.

    `sigma` (2, n_rows) are deviations of the noise of counts.
    """
    noise = np.hypot(*sigma)
    totals = np.maximum(counts.sum(axis=0), noise) + LEAST_WEIGHT
    parts = np.clip(counts[1] / totals, 0.0, 1.0)
    errors = ((1 - parts) ** 2 * sigma[1] ** 2 + parts**2 * sigma[0] ** 2) / totals**2
    # Parts have a normal prior, with the likeliest variance on a grid and the mean that fits it.
    variances = np.append(0.0, np.geomspace(1e-4, 1 / 4, 24))[:, None] + errors + LEAST_VARIANCE
    means = np.sum(parts / variances, axis=1) / np.sum(1 / variances, axis=1)
    squares = (parts - means[:, None]) ** 2
    logs = np.sum(np.log(variances) + squares / variances, axis=1)
    best = int(np.argmin(logs))
    return np.asarray(parts + (means[best] - parts) * (errors + LEAST_VARIANCE) / variances[best])


def weights_by_size(
    sizes: Floats, weight_each: float, noise: float | Floats, sampling: float | Floats
) -> Floats:
    """Weights (2,), the larger 1, of sums in the blocks of `block_weights`, for the least error.

    `sizes` (2,) are a row's weights in the blocks, `noise` the variance of a sum, and `sampling`
    that of an entry.
    """
    # Entries of units with one row contain their levels, of LEVEL_VARIANCE times the variance
    # of entries. At worst all entries of a row have the same level, whose variance then counts
    # `sizes` times.
    of_levels = np.array([0.0, kernel_defaults.LEVEL_VARIANCE]) * sizes
    errors = noise + (weight_each + of_levels) * sampling * sizes
    precisions = sizes / (errors + LEAST_WEIGHT)
    return precisions / precisions.max() if sizes.any() else np.array([1.0, 0.0])


def _constants(sums: Floats, counts: Floats, row_weights: Floats) -> Floats:
    """Least-squares effects (n, 1), one for all rows of each release, of `sums` (n, n_rows)."""
    square = max(float(row_weights @ counts**2), LEAST_WEIGHT)
    return np.asarray((sums @ (row_weights * counts) / square)[:, None])


def _square_distances(products: Floats) -> Floats:
    """Squared distances (n, n) between n vectors, from their inner `products` (n, n)."""
    squares = products.diagonal()
    return np.add.outer(squares, squares) - 2 * products
