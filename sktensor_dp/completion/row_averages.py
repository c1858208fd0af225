"""Averages over several rows of a mode, as over all items of one shop."""

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.checks.callers import level_of_caller
from sktensor_dp.checks.parameters import shown
from sktensor_dp.completion.chains import NOT_MEASURED, words_for_rows
from sktensor_dp.completion.recommend import RecommenderMixin
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.tensor.truncated_normal import quantiles_within

# Standard errors beyond which a normal distribution counts as 0, and number of its quantiles.
FARTHEST, N_QUANTILES = 8.0, 4096
# To avoid a division by 0.
LEAST_DEVIATION = 1e-130


class RowAveragesMixin(RecommenderMixin):
    """Mixin with averages over rows that a reader chooses."""

    mean_: float

    def average_rows(
        self, rows: Any, less: Any = None, *, mode: int | str | None = None
    ) -> tuple[float, float]:
        """Average of several rows, as of all items of one shop, and its standard error.

        Each bias is drawn to those of rows as popular, the more so the more noise hides it. Rows
        with something in common are drawn alike: an average over their `biases_` is nearer to these
        than errors of single rows say. This average is not drawn to them.

        Parameters
        ----------
        rows : array-like of int or str
            Rows, by number or name, each of which counts once.
        less : array-like of int or str, optional
            Rows whose average is subtracted, none of them one of `rows`; what both have in common,
            as the mean, then adds no error.
        mode : int or str, optional
            Mode of the rows, by its number or the name of its column; by default the first that
            is not ``unit_mode``.

        Returns
        -------
        average, error : float
            The average, `mean_` included unless `less` is given, and its standard error: mean and
            deviation of what bounds leave of a normal posterior, which is nearly uniform between
            them where noise hides the average.

        Raises
        ------
        ValueError
            If there are no rows, one is unknown or in both groups, `mode` is that of units, or
            there is no ``unit_mode``.

        Warns
        -----
        NotEnoughDataWarning
            If it is not known how units compare rows of the mode, so that the error may be too
            small: `bias_covariances_` are None.

        Notes
        -----
        Biases of the rows are taken to be normal, with the variance of all rows, about those of
        rows as popular plus a constant; any such constant is equally likely. Errors of rows count
        with their ``bias_covariances_``: where each person rates in one shop, differences of shops
        err by up to half the width of the bounds, and those within a shop by little. Where
        covariances are not known, what errors of rows may have in common counts in full, so that
        the error may be several times too large; but differences of shops may come out too small or
        turned round, as it warns. As a mode of their own shops differ by averages of different
        persons: the report says so, and errors are right if who is in which does not depend on the
        level.

        **Privacy.** It costs nothing: it follows from what was released.

        Examples
        --------
        >>> import numpy as np
        >>> from sktensor_dp import PrivateCPCompletion
        >>> rng = np.random.default_rng(0)
        >>> X = np.argwhere(rng.random((2000, 60)) < 0.2)
        >>> y = 3 + 0.4 * (X[:, 1] < 30) + rng.standard_normal(len(X))
        >>> options = {"bounds": (1, 5), "unit_mode": 0, "shape": (2000, 60), "epsilon": 4.0}
        >>> model = PrivateCPCompletion(0, **options).fit(X, y)
        >>> change, error = model.average_rows(range(30), less=range(30, 60))
        >>> 0.3 < change < 0.5, error < 0.05
        (True, True)
        """
        check_is_fitted(self)
        if self.unit_mode is None:
            raise ValueError("average_rows needs a fit with a unit_mode; got unit_mode=None.")
        chosen = self._shared_mode(mode)
        effects = self._shared.effects[chosen - (chosen > self._own_mode)]
        if effects.covariances is None and len(effects.means) > 2:
            said = NOT_MEASURED.format(rows=words_for_rows([chosen], len(self.shape_) - 1))
            warnings.warn(NotEnoughDataWarning(f"{said}."), stacklevel=level_of_caller())
        own = self._distinct_rows(chosen, "rows", rows)
        if less is None:
            average, error = effects.difference(own, own[:0])
            of_level = self.mean_ + average, math.hypot(error, self._shared.level_error)
            return normal_within(*of_level, *self.bounds_)
        others = self._distinct_rows(chosen, "less", less)
        if np.isin(own, others).any():
            raise ValueError("less must have no row that is in rows.")
        width = self.bounds_[1] - self.bounds_[0]
        return normal_within(*effects.difference(own, others), -width, width)

    def _distinct_rows(self, mode: int, name: str, given: Any) -> NDArray[np.intp]:
        """Distinct numbers of the rows in an argument of this `name`."""
        rows = np.unique(self._rows(mode, given))
        if len(rows) == 0 or rows[0] < 0 or rows[-1] >= self.shape_[mode]:
            raise ValueError(
                f"{name} must be one or more rows of mode {mode}: names of row_names, or numbers "
                f"from 0 to {self.shape_[mode] - 1}; got {shown(given)}."
            )
        return rows


def normal_within(mean: float, deviation: float, low: float, high: float) -> tuple[float, float]:
    """Mean and deviation of a normal distribution that is cut off at bounds."""
    reach = FARTHEST * deviation
    if low + reach <= mean <= high - reach:
        return mean, deviation
    deviation = max(deviation, LEAST_DEVIATION)
    quantiles = quantiles_within(mean, deviation, low, high, N_QUANTILES)
    return float(quantiles.mean()), float(quantiles.std())
