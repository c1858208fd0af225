"""Mean and biases of all modes from noisy weighted row sums and from where entries are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.tensor import defaults
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.cp_completion import CPCompletion
from sktensor_dp.tensor.sorted_entries import SortedEntries
from sktensor_dp.tensor.whitening import top_eigenpairs

# Tolerance and steps for singular vectors: more accuracy has no effect, as vectors of noise are
# arbitrary.
_TOLERANCE, _STEPS = 1e-3, 6


def incidence_features(entries: SortedEntries) -> list[Floats]:
    """Features (n_m, n_features) of the rows of each mode from coordinates alone."""
    # Features are leading singular vectors of the matrix that counts shared entries of rows of two
    # modes, scaled by margins as in correspondence analysis, and the logarithm of the number of
    # entries.
    if entries.n_modes == 2:
        # One decomposition serves both modes. Entries are sorted by the longer mode, so that random
        # reads are of the shorter one.
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

    All features of an entry together have a mean square of 1 or less.
    """
    weights = counts / max(float(counts.sum()), 1.0)
    centred = features - weights @ features
    deviations = np.sqrt(weights @ centred**2)
    centred = centred / np.where(deviations > 0, deviations, 1.0)
    centred /= np.sqrt(max(features.shape[1], 1))
    return np.asarray(centred * (counts > 0)[:, None], dtype=np.float64)


class _Incidence:
    """Scaled matrix of the number of entries that a row shares with rows of other modes."""

    # Only the pattern is stored, as entries sorted by the mode.

    def __init__(self, entries: SortedEntries, mode: int) -> None:
        self.n_rows, others = entries.shape[mode], entries.others(mode)
        # From this many entries on products use single precision, whose rounding is far below the
        # tolerance.
        rough_from = 2**18
        rough = entries.n_entries >= rough_from
        self._kind: type[np.floating[Any]] = np.float32 if rough else np.float64
        ones = np.ones(entries.n_entries, dtype=self._kind)
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

    def _times(self, pattern: object, block: Floats) -> Floats:
        """Product of a sparse pattern with a block of vectors, in the chosen precision."""
        # A few columns at a time, so that random reads stay in a cache.
        columns = 16
        groups = max(1, -(-block.shape[1] // columns))
        pieces = np.array_split(block, groups, axis=1)
        return np.hstack([pattern @ piece.astype(self._kind, order="C") for piece in pieces])


def _scales_of_rows(counts: NDArray[np.generic]) -> Floats:
    """Scale of each row, one over the root of its count plus the mean count, which regularises."""
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
    # Eigenvectors of A A' or A' A, whichever is smaller; times A' or A they are the longer ones.
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
    """Linear regression of biases on row features, with a ridge for each mode."""

    def __init__(self, features: Sequence[Floats], value_variance: float) -> None:
        # Least prior variance of coefficients, relative to the variance of a value.
        least = 1e-9
        self._features = features
        self._least_variance = least * value_variance
        # EM starts from the variance of a value, and settles whatever it starts from.
        self._prior_variances = [value_variance] * len(features)

    def means(self, mode: int, weights: Floats, targets: Floats) -> Floats:
        """Fitted biases, of shape (n_m,), where ``targets / weights`` has precision `weights`."""
        features = self._features[mode]
        size = features.shape[1]
        if size == 0:
            return np.zeros(len(features))
        gram = features.T @ (features * weights[:, None])
        gram[np.diag_indices(size)] += 1 / self._prior_variances[mode]
        covariance = np.linalg.inv(gram)
        coefficients = covariance @ (features.T @ targets)
        # EM step: expected squares are those of the means plus the posterior variances.
        mean_square = float(coefficients @ coefficients + np.trace(covariance)) / size
        self._prior_variances[mode] = max(mean_square, self._least_variance)
        return np.asarray(features @ coefficients, dtype=np.float64)


def _fitted_biases(
    rows: Any, sums: Floats, regression: RowRegression, mode: int, prior_variance: float
) -> tuple[Floats, Floats, float]:
    """Biases of a mode by one EM step, their variances, and their mean square about a regression.

    `sums` are about the mean and the biases of other modes.
    """
    totals = rows.weight_totals
    # For the regression, the variance of biases about it counts as noise.
    shrunk_gains = rows.gains / (1.0 + rows.gains * totals * prior_variance)
    expected = regression.means(mode, shrunk_gains * totals, shrunk_gains * sums)
    about_expected, variances = rows.posterior(sums - totals * expected, prior_variance)
    if not (observed := totals > 0).any():
        return about_expected + expected, variances, prior_variance
    squares = (about_expected**2 + variances)[observed]
    return about_expected + expected, variances, float(squares.mean())


def fit_row_sums(
    entries: SortedEntries, sums: Sequence[ArrayLike], weights: Sequence[ArrayLike],
    noise_variance: float, value_variance: float, *, center: float = 0.0,
    mean_variance: float = math.inf, features: Sequence[Floats] | None = None, max_iter: int = 30,
) -> CPCompletion:  # fmt: skip
    """Fit mean and biases to noisy weighted sums, an array per mode, of the values in every row.
    The mean has the prior mean `center` and the prior variance `mean_variance`.
    """
    # A sum is sum_e w_e (x_e - center) + noise, with x_e = mean + biases + N(0, value_variance).
    # Biases are normal about regressions on features of their rows; their variances are estimated
    # for each mode (Efron & Morris, JASA 1973; Fay & Herriot, JASA 1979).
    # First prior variance of the biases, relative to the variance of a value. The steps are too few
    # to forget it: one of 1 or more makes errors up to 2 % larger.
    first = defaults.LEVEL_VARIANCE
    all_rows = _weighted_rows(entries, sums, weights, noise_variance, value_variance)
    if features is None:
        features = [np.zeros((n, 0)) for n in entries.shape]
    regression = RowRegression(features, value_variance)
    biases, variances = ([np.zeros(n) for n in entries.shape] for _ in range(2))
    least_variance = 1e-6 * value_variance
    mean, prior_variances = 0.0, np.full(entries.n_modes, first * value_variance)
    for _ in range(max_iter):
        moment, information = 0.0, 1 / mean_variance
        for mode, rows in enumerate(all_rows):
            residuals = rows.without_others(biases)
            biases[mode], variances[mode], mean_square = _fitted_biases(
                rows, residuals - rows.weight_totals * mean, regression, mode, prior_variances[mode]
            )
            prior_variances[mode] = max(mean_square, least_variance)
            moment += float(rows.gains @ (residuals - rows.weight_totals * biases[mode]))
            information += float(rows.gains @ rows.weight_totals)
        mean = moment / information if information > 0 else 0.0
    return CPCompletion(
        mean=center + mean, biases=biases, factors=[np.zeros((n, 0)) for n in entries.shape],
        weights=np.zeros(0), noise_variance=value_variance, n_iter=max_iter,
        bias_variances=variances, bias_prior_variances=prior_variances,
        factor_prior_variances=np.zeros((len(all_rows), 0)),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _WeightedRows:
    """Noisy sums of the rows of one mode, (n_m,), prepared for updates of its biases."""

    sums: Floats
    weight_totals: Floats
    gains: Floats  # totals of weights over the variances of the sums
    # Other modes, each with a sparse matrix: how much of each of its rows a sum holds.
    others: list[tuple[int, scipy.sparse.csr_matrix]]

    def without_others(self, biases: Sequence[Floats]) -> Floats:
        """Sums less the part that `biases` of other modes have in them."""
        residuals = self.sums.copy()
        for other, weighted in self.others:
            residuals -= weighted @ biases[other]
        return residuals

    def posterior(self, residuals: Floats, prior_variance: float) -> tuple[Floats, Floats]:
        """Means and variances of normal biases about 0, from what they leave in the sums."""
        # A sum over its total weight W is a bias plus noise of variance v / W^2. Its precision is
        # gain * W, and the gain is W / v.
        variances = 1.0 / (self.gains * self.weight_totals + 1.0 / prior_variance)
        return variances * self.gains * residuals, variances


def _weighted_rows(
    entries: SortedEntries, sums: Sequence[ArrayLike], weights: Sequence[ArrayLike],
    noise_variance: float, value_variance: float,
) -> list[_WeightedRows]:  # fmt: skip
    """Sums, total weights and gains of the rows of each mode."""
    all_rows = []
    for mode, (noisy, weight) in enumerate(zip(sums, weights, strict=True)):
        numbers = np.asarray(weight, dtype=np.float64)
        totals = entries.row_sums(numbers, mode)
        variance = entries.row_sums(numbers**2, mode) * value_variance + noise_variance
        # Gain of the bias. A row without entries has no information, also without noise.
        gains = np.where(totals > 0, totals / np.where(variance > 0, variance, 1.0), 0.0)
        ordered = entries.sort(numbers, mode)
        others = [(k, entries.matrix(ordered, mode, k)) for k in entries.others(mode)]
        all_rows.append(_WeightedRows(np.asarray(noisy, dtype=np.float64), totals, gains, others))
    return all_rows
