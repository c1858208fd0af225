"""Mean and biases of all modes by noisy weighted sums of rows, and by the pattern of entries."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx

from sktensor_dp.tensor import defaults
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.cp_completion import CPCompletion
from sktensor_dp.tensor.eigenpairs import top_eigenpairs
from sktensor_dp.tensor.sorted_entries import SortedEntries

# Tolerance and steps for singular vectors: more accuracy has no effect, as vectors of noise are
# arbitrary.
_TOLERANCE, _STEPS = 1e-3, 6


def incidence_features(entries: SortedEntries) -> list[Floats]:
    """Features (n_m, n_features) of the rows of each mode from coordinates alone.

    They are leading singular vectors of `_Incidence`, scaled as in correspondence analysis, and the
    logarithm of a row's number of entries.
    """
    if entries.n_modes == 2:
        # One decomposition serves both modes. Sort entries by the longer one, so that random reads
        # are of the shorter one.
        longer = int(np.argmax(entries.shape))
        vectors = list(_singular_vectors(entries, longer))
        if longer == 1:
            vectors.reverse()
    else:
        vectors = [_singular_vectors(entries, mode)[0] for mode in range(entries.n_modes)]
    features = []
    for singular, counts in zip(vectors, entries.counts, strict=True):
        logarithm = np.log(np.maximum(counts, 1.0))[:, None]
        scaled = singular * _scales_of_rows(counts)[:, None]
        features.append(standardised(np.hstack([scaled, logarithm]), counts))
    return features


def standardised(features: Floats, counts: NDArray[Any]) -> Floats:
    """Features centred and scaled over the entries; 0 in rows without entries.

    The sum of an entry's squared features is 1 or less on average over entries.
    """
    # A feature that varies by less, relative to its size, is constant but for rounding.
    constant = 1e-9
    weights = counts / max(float(counts.sum()), 1.0)
    centred = features - weights @ features
    deviations = np.sqrt(weights @ centred**2)
    varies = deviations > constant * np.abs(features).max(axis=0, initial=0.0)
    centred = np.where(varies, centred / np.where(varies, deviations, 1.0), 0.0)
    centred /= np.sqrt(max(features.shape[1], 1))
    return np.asarray(centred * (counts > 0)[:, None], dtype=np.float64)


class _Incidence:
    """Scaled matrix (n_rows, n_columns): numbers of entries in a row of one mode and of another."""

    def __init__(self, entries: SortedEntries, mode: int) -> None:
        self.n_rows, others = entries.shape[mode], entries.others(mode)
        # From so many entries on products use single precision, exact enough for `_TOLERANCE`.
        rough_from = 2**18
        rough = entries.n_entries >= rough_from
        self._dtype: type[np.floating[Any]] = np.float32 if rough else np.float64
        ones = np.ones(entries.n_entries, dtype=self._dtype)
        self._parts = [entries.matrix(ones, mode, k) for k in others]
        self._row_scales = _scales_of_rows(entries.counts[mode])
        self._column_scales = [_scales_of_rows(entries.counts[k]) for k in others]
        self._ends = np.cumsum([entries.shape[k] for k in others])
        self.n_columns = int(self._ends[-1])  # rows of all other modes together

    def to_columns(self, block: Floats) -> Floats:
        """Transposed matrix times a block of vectors: (n_rows, k) to (n_columns, k)."""
        scaled = self._row_scales[:, None] * block
        pairs = zip(self._parts, self._column_scales, strict=True)
        products = [scales[:, None] * self._times(part.T, scaled) for part, scales in pairs]
        return np.concatenate(products)

    def to_rows(self, block: Floats) -> Floats:
        """Matrix times a block of vectors: (n_columns, k) to (n_rows, k)."""
        total = np.zeros((self.n_rows, block.shape[1]))
        pieces = np.split(block, self._ends[:-1])
        for part, scales, piece in zip(self._parts, self._column_scales, pieces, strict=True):
            total += self._times(part, scales[:, None] * piece)
        return self._row_scales[:, None] * total

    def _times(self, part: object, block: Floats) -> Floats:
        """Product of a sparse part with a block of vectors, in the chosen precision."""
        # A few columns at a time, so that random reads stay in a cache.
        columns = 16
        groups = max(1, -(-block.shape[1] // columns))
        pieces = np.array_split(block, groups, axis=1)
        return np.hstack([part @ piece.astype(self._dtype, order="C") for piece in pieces])


def _scales_of_rows(counts: NDArray[np.generic]) -> Floats:
    """Scale of each row: one over the root of its count plus the mean count, as regularisation."""
    # T. Qin, K. Rohe, "Regularized spectral clustering under the degree-corrected stochastic
    # blockmodel", NeurIPS 2013.
    return np.asarray(1 / np.sqrt(counts + counts.mean()), dtype=np.float64)


def _singular_vectors(entries: SortedEntries, mode: int) -> tuple[Floats, Floats]:
    """Left and right singular vectors of the incidence matrix A, without the trivial first ones."""
    incidence = _Incidence(entries, mode)
    n_rows, n_columns = incidence.n_rows, incidence.n_columns
    is_wide, shorter = n_columns >= n_rows, min(n_rows, n_columns)
    # The first singular vector is trivial: it follows from the margins.
    rank = min(defaults.VECTORS, shorter - 1)
    if rank < 1:
        return np.zeros((n_rows, 0)), np.zeros((n_columns, 0))
    # Find eigenvectors of A A' or A' A, whichever is smaller; products with A' or A are the others.
    to_longer, to_shorter = incidence.to_columns, incidence.to_rows
    if not is_wide:
        to_longer, to_shorter = to_shorter, to_longer
    of_shorter = top_eigenpairs(
        lambda block: to_shorter(to_longer(block)), rank + 1, dim=shorter, n_iter=_STEPS,
        tol=_TOLERANCE, random_state=0,
    )[1][:, 1:]  # fmt: skip
    of_longer = to_longer(of_shorter)
    of_longer /= np.maximum(np.linalg.norm(of_longer, axis=0), 1e-300)
    return (of_shorter, of_longer) if is_wide else (of_longer, of_shorter)


class RowRegression:
    """Linear regression of biases on features of rows, with a prior variance for each mode."""

    def __init__(self, features: Sequence[Floats], value_variance: float) -> None:
        # Least prior variance of coefficients, relative to the variance of a value.
        least = 1e-9
        self._features = features
        self._least_variance = least * value_variance
        # EM starts from the variance of a value, and forgets it.
        self._prior_variances = [value_variance] * len(features)

    def posterior(self, mode: int, weights: Floats, targets: Floats) -> tuple[Floats, Floats]:
        """Means and variances (n_m,) of fitted biases; and an EM step for the prior variance.

        Biases are observed as ``targets / weights`` with precisions `weights`.
        """
        features = self._features[mode]
        size = features.shape[1]
        if size == 0:
            return np.zeros(len(features)), np.zeros(len(features))
        gram = features.T @ (features * weights[:, None])
        gram[np.diag_indices(size)] += 1 / self._prior_variances[mode]
        covariance = np.linalg.inv(gram)
        coefficients = covariance @ (features.T @ targets)
        # EM step: expected squares are those of the means plus the posterior variances.
        mean_square = float(coefficients @ coefficients + np.trace(covariance)) / size
        self._prior_variances[mode] = max(mean_square, self._least_variance)
        return features @ coefficients, np.einsum("ij,ij->i", features @ covariance, features)


def _fitted_biases(
    rows: Any, sums: Floats, regression: RowRegression, mode: int, prior_variance: float
) -> tuple[Floats, Floats, float, float]:
    """Biases (n_m,) of a mode, their variances, a constant to add to the mean, and prior variance.

    The mean and biases of other modes are subtracted from `sums` (n_m,) already. The constant is
    the mean of biases about the regression, and is subtracted from them. The prior variance is the
    expected mean square of biases about the regression and the constant.
    """
    totals = rows.weight_totals
    # For the regression the variance of biases about it counts as noise.
    shrunk_gains = rows.gains / (1.0 + rows.gains * totals * prior_variance)
    expected, of_expected = regression.posterior(mode, shrunk_gains * totals, shrunk_gains * sums)
    about_expected, variances = rows.posterior(sums - totals * expected, prior_variance)
    # Sums cannot tell a constant in all biases of a mode from the mean: leave it to that.
    seen = totals > 0
    constant = float(about_expected[seen].mean()) if seen.any() else 0.0
    about_expected[seen] -= constant
    # A bias keeps this part of an error of the expected one; its own sum corrects the rest.
    kept = variances / prior_variance
    squares = about_expected**2 + variances + (1 - kept) ** 2 * of_expected
    mean_square = float(squares[seen].mean()) if seen.any() else prior_variance
    return about_expected + expected, variances + kept**2 * of_expected, constant, mean_square


def fit_row_sums(
    entries: SortedEntries, sums: Sequence[ArrayLike], weights: Sequence[ArrayLike],
    noise_variance: float, value_variance: float, *, center: float = 0.0,
    mean_variance: float = math.inf, mean_square: tuple[float, float] | None = None,
    features: Sequence[Floats] | None = None, max_iter: int = 30,
) -> CPCompletion:  # fmt: skip
    """Fit mean and biases to noisy weighted sums of values less `center` in every row.

    Each mode has `sums` (n_m,) and `weights` (n_entries,) of entries. The mean has the prior mean
    `center` and the prior variance `mean_variance`. `mean_square` is a noisy mean of ``(value -
    center)**2``, with the variance of its noise, by which the residual variance is estimated with
    the prior mean `value_variance`; without it the residual variance is that.
    """
    # A sum is sum_e w_e (x_e - center) + noise, with x_e = mean + biases + N(0, residual). Biases
    # are normal about regressions on `features` of rows; their variances are estimated for each
    # mode (Efron & Morris, JASA 1973; Fay & Herriot, JASA 1979).
    all_rows = _weighted_rows(entries, sums, weights, noise_variance)
    residual = value_variance
    if mean_square is not None:  # EM starts from the variance of values about the mean
        weight = math.fsum(float(rows.weight_totals.sum()) for rows in all_rows)
        mean = math.fsum(float(rows.sums.sum()) for rows in all_rows) / weight
        residual = _variance_given(mean_square, mean**2, value_variance)
    # Prior variance of biases that EM starts from, relative to that of a value. The steps are too
    # few to forget it: from 1 or more errors are up to 2 % larger.
    first = defaults.LEVEL_VARIANCE
    if features is None:
        features = [np.zeros((n, 0)) for n in entries.shape]
    regression = RowRegression(features, residual)
    biases, variances = ([np.zeros(n) for n in entries.shape] for _ in range(2))
    least_variance = 1e-6 * residual
    prior_variances = np.full(entries.n_modes, first * residual)
    # The mean starts as that of all sums with biases of 0: otherwise biases of the first mode would
    # contain it, which with three modes the steps are too few to correct.
    for rows in all_rows:
        rows.set_residual(residual)
    mean = _posterior_mean(all_rows, [rows.sums for rows in all_rows], mean_variance)
    for _ in range(max_iter):
        left: list[Floats] = []  # of sums, without biases
        for mode, rows in enumerate(all_rows):
            residuals = rows.without_others(biases)
            biases[mode], variances[mode], constant, prior_variance = _fitted_biases(
                rows, residuals - rows.weight_totals * mean, regression, mode, prior_variances[mode]
            )
            mean += constant
            prior_variances[mode] = max(prior_variance, least_variance)
            left.append(residuals - rows.weight_totals * biases[mode])
        mean = _posterior_mean(all_rows, left, mean_variance)
        if mean_square is not None:
            # Expected mean square of the fit: that of posterior means, plus posterior variances.
            explained = float(np.mean((mean + entries.at_entries(biases)) ** 2)) + math.fsum(
                float(counts @ of_mode) / entries.n_entries
                for counts, of_mode in zip(entries.counts, variances, strict=True)
            )
            residual = _variance_given(mean_square, explained, value_variance)
            for rows in all_rows:
                rows.set_residual(residual)
    return CPCompletion(
        mean=center + mean, biases=biases, factors=[np.zeros((n, 0)) for n in entries.shape],
        weights=np.zeros(0), noise_variance=residual, n_iter=max_iter,
        bias_variances=variances, bias_prior_variances=prior_variances,
        factor_prior_variances=np.zeros((len(all_rows), 0)),
    )  # fmt: skip


def _posterior_mean(
    all_rows: Sequence["_WeightedRows"], sums: Sequence[Floats], prior_variance: float
) -> float:
    """Posterior mean, about a prior mean of 0, of values with these weighted `sums` in rows."""
    moment, information = 0.0, 1 / prior_variance
    for rows, of_mode in zip(all_rows, sums, strict=True):
        moment += float(rows.gains @ of_mode)
        information += float(rows.gains @ rows.weight_totals)
    return moment / information if information > 0 else 0.0


def _variance_given(mean_square: tuple[float, float], explained: float, usual: float) -> float:
    """Posterior mean of a variance whose prior is exponential with the mean `usual`.

    It is observed as the noisy `mean_square`, given with its noise variance, less `explained`.
    """
    # The posterior is normal, shifted by the prior, and cut at 0. The least: exact values may have
    # no variance, but gains divide by it.
    (square, noise_variance), least = mean_square, 1e-9 * usual
    found, deviation = square - explained, math.sqrt(noise_variance)
    if deviation <= least:
        return max(found, least)
    place = found / deviation - deviation / usual
    # Far below 0 the posterior is exponential, with the mean -1 / place in deviations.
    if place < -1e4:
        return max(-deviation / place, least)
    hazard = math.sqrt(2 / math.pi) / float(erfcx(-place / math.sqrt(2)))
    return max(deviation * (place + hazard), least)


@dataclass(eq=False)
class _WeightedRows:
    """Noisy sums of the rows of one mode, with what updates of its biases need; arrays (n_m,)."""

    sums: Floats
    weight_totals: Floats  # sums of the weights of entries
    square_totals: Floats  # sums of their squares
    noise_variance: float
    # Other modes, each with a sparse matrix (n_m, n_other): weight of each of its rows in a sum.
    others: list[tuple[int, scipy.sparse.csr_matrix]]
    gains: Floats = field(init=False)  # `weight_totals` over variances of sums

    def set_residual(self, variance: float) -> None:
        """Set the gains for a `variance` of residuals."""
        # Rows without entries have a gain of 0, also without noise.
        of_sums = self.square_totals * variance + self.noise_variance
        self.gains = np.where(
            self.weight_totals > 0, self.weight_totals / np.where(of_sums > 0, of_sums, 1.0), 0.0
        )

    def without_others(self, biases: Sequence[Floats]) -> Floats:
        """Sums less the parts of `biases` of other modes."""
        residuals = self.sums.copy()
        for other, weighted in self.others:
            residuals -= weighted @ biases[other]
        return residuals

    def posterior(self, residuals: Floats, prior_variance: float) -> tuple[Floats, Floats]:
        """Posterior means and variances of biases with the prior mean 0, by these `residuals`."""
        # A sum over its total weight W is a bias plus an error of variance v / W^2, of precision
        # gain * W, as the gain is W / v.
        variances = 1.0 / (self.gains * self.weight_totals + 1.0 / prior_variance)
        return variances * self.gains * residuals, variances


def _weighted_rows(
    entries: SortedEntries, sums: Sequence[ArrayLike], weights: Sequence[ArrayLike],
    noise_variance: float,
) -> list[_WeightedRows]:  # fmt: skip
    """Noisy sums of the rows of each mode, with totals of weights and of their squares."""
    all_rows = []
    for mode, (noisy, weight) in enumerate(zip(sums, weights, strict=True)):
        numbers = np.asarray(weight, dtype=np.float64)
        totals, squares = (entries.row_sums(numbers**power, mode) for power in (1, 2))
        ordered = entries.sort(numbers, mode)
        others = [(k, entries.matrix(ordered, mode, k)) for k in entries.others(mode)]
        noisy_sums = np.asarray(noisy, dtype=np.float64)
        all_rows.append(_WeightedRows(noisy_sums, totals, squares, noise_variance, others))
    return all_rows
