"""Mean and biases of all modes from noisy weighted sums over the rows of a tensor."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.tensor.cp_completion import CPCompletion
from sktensor_dp.tensor.oracle import Floats, check_at_least, check_finite
from sktensor_dp.tensor.row_features import RowRegression
from sktensor_dp.tensor.sorted_entries import SortedEntries

# Prior variances of the biases to start from and the least ones, in units of the variance
# of a value.
_FIRST_SCALE, _LEAST_SCALE = 0.1, 1e-6


def fit_row_sums(
    entries: SortedEntries,
    sums: Sequence[ArrayLike],
    weights: Sequence[ArrayLike],
    noise_variance: float | Sequence[ArrayLike],
    value_variance: float,
    *,
    center: float = 0.0,
    features: Sequence[Floats] | None = None,
    given: Sequence[Floats | None] | None = None,
    max_iter: int = 30,
) -> CPCompletion:
    """Fit mean and biases to noisy weighted sums of the values in every row.

    Sums have one variance of noise, or each its own: an array for each mode.
    """
    # The sum of row i of mode m is s = sum_e w_e (x_e - center) + noise over the row's entries
    # e, with x_e = mean + the biases of its rows + N(0, value_variance). Biases are normal with
    # mean 0 and a variance per mode, which is estimated; modes are updated in turn. Coordinates
    # and weights are known, so that the other modes' part of a sum is.
    # Where rows have features, the means of their biases are linear in them, with normal
    # coefficients of a variance per mode, estimated too (an empirical Bayes regression, Fay and
    # Herriot 1979). Those that were `given` have variances of their own, and hold for rows
    # without entries too.
    # B. Efron, C. Morris, "Stein's estimation rule and its competitors: an empirical Bayes
    # approach", JASA 1973 (shrinkage by an estimated variance).
    noise: Sequence[ArrayLike] = (
        [noise_variance] * entries.n_modes
        if isinstance(noise_variance, float | int)
        else noise_variance
    )
    _check(noise, value_variance, max_iter)
    rows = _rows_seen(entries, sums, weights, noise, value_variance)
    known = [np.zeros((n, 0)) for n in entries.shape] if features is None else features
    fit = _Effects(rows, value_variance, RowRegression(known, value_variance, given))
    for _ in range(max_iter):
        fit.step()
    return CPCompletion(
        mean=center + fit.mean, biases=fit.biases,
        factors=[np.zeros((n, 0)) for n in entries.shape],
        weights=np.zeros(0), noise_variance=value_variance, n_iter=max_iter,
        bias_variances=fit.variances, bias_scales=fit.scales,
        factor_scales=np.zeros((len(rows), 0)),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _RowsSeen:
    """What noisy sums say of the rows of a mode."""

    sums: Floats
    totals: Floats  # of weights
    gains: Floats  # these over the variances of the sums
    others: list[tuple[int, Any]]  # modes, and how much of each of their rows a sum holds

    def left_by(self, biases: Sequence[Floats]) -> Floats:
        """Sums without the biases of other modes."""
        left = self.sums.copy()
        for mode, weighted in self.others:
            left -= weighted @ biases[mode]
        return left


class _Effects:
    """Mean and biases as they are found, one mode after the other."""

    def __init__(
        self, rows: Sequence[_RowsSeen], value_variance: float, regression: RowRegression
    ) -> None:
        self._rows, self._regression = rows, regression
        self._least = _LEAST_SCALE * value_variance
        self.biases = [np.zeros(len(seen.sums)) for seen in rows]
        self.variances = [np.zeros(len(seen.sums)) for seen in rows]
        self.scales, self.mean = np.full(len(rows), _FIRST_SCALE * value_variance), 0.0

    def step(self) -> None:
        """Update the biases of every mode and their prior variance, then the mean."""
        moment = information = 0.0
        for mode, seen in enumerate(self._rows):
            gain, total, left = seen.gains, seen.totals, seen.left_by(self.biases)
            scale, variance = self.scales[mode], 1.0 / (gain * total + 1.0 / self.scales[mode])
            # With what biases vary by about their means counted as noise.
            own = gain / (1.0 + gain * total * scale)
            about = left - total * self.mean
            expected = self._regression.means(mode, own * total, own * about)
            biases = variance * gain * (about - total * expected)
            if (there := total > 0).any():
                spread = np.mean(biases[there] ** 2 + variance[there])
                self.scales[mode] = max(float(spread), self._least)
            self.biases[mode], self.variances[mode] = biases + expected, variance
            moment += float(gain @ (left - total * self.biases[mode]))
            information += float(gain @ total)
        self.mean = moment / information if information > 0 else 0.0


def _rows_seen(
    entries: SortedEntries,
    sums: Sequence[ArrayLike],
    weights: Sequence[ArrayLike],
    noise_variance: Sequence[ArrayLike],
    value_variance: float,
) -> list[_RowsSeen]:
    observed = _arrays("sums", sums, [(n,) for n in entries.shape])
    found = []
    for mode, w in enumerate(_arrays("weights", weights, [(entries.n_entries,)] * len(observed))):
        totals = entries.row_sums(w, mode)
        variance = entries.row_sums(w**2, mode) * value_variance
        variance += np.asarray(noise_variance[mode])
        # Of the bias: without noise a row that has no entry says nothing of it.
        gains = np.where(totals > 0, totals / np.where(variance > 0, variance, 1.0), 0.0)
        ordered = entries.sort(w, mode)
        others = [(k, entries.matrix(ordered, mode, k)) for k in entries.others(mode)]
        found.append(_RowsSeen(observed[mode], totals, gains, others))
    return found


def _arrays(
    name: str, given: Sequence[ArrayLike], shapes: Sequence[tuple[int, ...]]
) -> list[Floats]:
    arrays = [np.asarray(values, dtype=np.float64) for values in given]
    if [array.shape for array in arrays] != list(shapes):
        raise ValueError(
            f"{name} must have shapes {list(shapes)}; got {[array.shape for array in arrays]}."
        )
    check_finite(name, *arrays)
    return arrays


def _check(noise_variance: Sequence[ArrayLike], value_variance: float, max_iter: int) -> None:
    for each in map(np.asarray, noise_variance):
        if not ((each >= 0) & (each < np.inf)).all():
            least = each.min() if each.size else each
            raise ValueError(f"noise_variance must be finite and at least 0; got {least}.")
    if not 0 < value_variance < np.inf:
        raise ValueError(f"value_variance must be finite and positive; got {value_variance}.")
    check_at_least(1, max_iter=max_iter)
