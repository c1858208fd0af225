"""Step of a pipeline that scales columns by public ranges."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from sktensor_dp.checks.errors import call_unquoted
from sktensor_dp.checks.frames import BACKENDS, new_frame
from sktensor_dp.checks.parameters import shown
from sktensor_dp.checks.ranges import RANGE, check_range


class RangeScaler(TransformerMixin, BaseEstimator):
    """Scale columns from public ranges to [-1, 1], row by row; made by :func:`scale_by_ranges`."""

    def __init__(self, ranges: Mapping[Any, tuple[float, float]]) -> None:
        self.ranges = ranges

    def fit(self, X: object, y: object = None) -> Self:
        """Return the transformer: it learns nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """Columns clipped and scaled to [-1, 1], (n_rows, n_ranges), in the order of the ranges.

        They are named if X is a table, so that a model of them knows which is which.
        """
        low, high = self._ends()
        table = X if hasattr(X, "columns") else call_unquoted(lambda: np.asarray(X).T, "X")

        def numbers(name: Any) -> NDArray[np.float64]:
            wrong = f"column {name!r} of X must be there, and hold numbers or NaN."
            return call_unquoted(
                lambda: np.asarray(table[name], dtype=np.float64), "X", lambda _: wrong
            )

        values = np.clip(np.column_stack([numbers(name) for name in self.ranges]), low, high)
        scaled = (2 * values - low - high) / (high - low)
        backend = type(X).__module__.split(".")[0]
        if backend not in BACKENDS or not all(isinstance(name, str) for name in self.ranges):
            return np.asarray(scaled)
        frame = new_frame(dict(zip(self.ranges, scaled.T, strict=True)), backend)
        return frame.set_index(X.index) if backend == "pandas" else frame

    def inverse_transform(self, X: object) -> NDArray[np.float64]:
        """Scaled values, such as ``components_``, in the units of the columns."""
        low, high = self._ends()
        return (low + high + np.asarray(X, dtype=np.float64) * (high - low)) / 2

    def _ends(self) -> NDArray[np.float64]:
        """Low and high ends of the ranges, (2, n_ranges)."""
        return np.array(list(self.ranges.values()), dtype=np.float64).T

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.generic]:
        """Names of the columns, as given in the ranges."""
        return np.array([str(name) for name in self.ranges], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def scale_by_ranges(ranges: Mapping[Any, tuple[float, float]]) -> RangeScaler:
    """Make a step of a pipeline that scales columns of different units by public ranges.

    Parameters
    ----------
    ranges : mapping of str or int to (low, high)
        Columns to keep, by name for data frames and by number for arrays, each with the public
        range that is mapped to [-1, 1]. Values beyond it are clipped, also infinite ones: the log
        of 0 counts as the low end (make it NaN where it stands for a missing value). A missing
        value (NaN, or an empty cell) stays missing: :class:`~sktensor_dp.PrivateGaussianMixture`
        takes it, and other estimators raise an error before the charge. To put a public constant
        in its place, do so in X before; an imputer would read private data.

    Returns
    -------
    RangeScaler
        A transformer without anything to fit. Rows have a norm of ``len(ranges) ** 0.5`` at
        most, which is a ``data_norm`` that clips nothing. A table stays one, so that what is
        fitted to it knows the columns by name.

    Raises
    ------
    ValueError
        If there are no ranges, or one is not (low, high) of finite numbers with low < high. Its
        ``transform`` names the column that is missing or holds something else than numbers.

    Notes
    -----
    **Privacy.** Each row is scaled by itself. Take the ranges from what everybody knows, never from
    the data.

    Examples
    --------
    >>> from sktensor_dp import scale_by_ranges
    >>> step = scale_by_ranges({0: (0, 120), 2: (1.0, 2.2)})
    >>> step.fit_transform([[30.0, 7.0, 1.6], [300.0, 7.0, 2.2]]).round(2).tolist()
    [[-0.5, 0.0], [1.0, 1.0]]
    """
    if not (isinstance(ranges, Mapping) and ranges):
        raise ValueError(f"ranges must map one column or more to {RANGE}; got {shown(ranges)}.")
    for column, ends in ranges.items():
        check_range(f"ranges[{column!r}]", ends)
    return RangeScaler(ranges)
