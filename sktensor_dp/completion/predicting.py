"""What fitted completions predict, at coordinates or of the whole tensor."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.completion.inference import values_at
from sktensor_dp.completion.inputs import checked_values, coordinates_or_unknown
from sktensor_dp.completion.named_rows import Indices, coordinates_of
from sktensor_dp.estimator.inputs import computed, lazy_rows
from sktensor_dp.queries.reading import read
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.row_bounds import Bounds, clamped, in_units, limits_at

# Entries whose values are computed at a time.
BLOCK = 2**20


class PredictorMixin:
    """Values of the released model, in the units of the data."""

    shape_: tuple[int, ...]
    bounds_: Bounds
    mean_: float
    biases_: list[Floats]
    _model: Any
    _named: Indices | None

    def predict(self, X: ArrayLike) -> Floats:
        """Values at coordinates.

        Parameters
        ----------
        X : array-like of int of shape (n, n_modes)
            Coordinates. Indices beyond the shape, those below 0 (as of
            ``OrdinalEncoder(unknown_value=-1)``) and those never observed get what is known
            without them: the mean and the biases of the other modes. Of a Dask array or
            frame the result is a Dask array that is not computed yet.

        Returns
        -------
        ndarray of shape (n,)
            Within the bounds.
        """
        check_is_fitted(self)
        if hasattr(X, "to_delayed"):
            return lazy_rows(self, X, "predict")
        coordinates = self._coordinates(X)
        return clamped(self.bounds_, self._values(coordinates), coordinates)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Coefficient of determination of the predictions, as scikit-learn has it.

        Parameters
        ----------
        X : array-like of int of shape (n, n_modes)
            Coordinates.
        y : array-like of shape (n,)
            Values; those of the fit make it a number of the training data.
        sample_weight : array-like of shape (n,), optional
            Weights.

        Returns
        -------
        float
            1 at best.
        """
        # Of Dask collections both are computed here, together.
        values = checked_values(self, computed(y, "Reading y"))
        found = computed(self.predict(X), "Predicting")
        return float(read(lambda: r2_score(values, found, sample_weight=sample_weight), "y"))

    def complete(self) -> Floats:
        """All values of the tensor.

        Returns
        -------
        ndarray of shape ``shape_``
            Dense; its size is the product of the shape.
        """
        check_is_fitted(self)
        size = math.prod(self.shape_)
        result = np.empty(size)
        for start in range(0, size, BLOCK):
            cells = np.arange(start, min(start + BLOCK, size))
            coordinates = np.column_stack(np.unravel_index(cells, self.shape_))
            result[cells] = clamped(self.bounds_, self._values(coordinates), coordinates)
        return result.reshape(self.shape_)

    def _values(self, coordinates: NDArray[np.intp]) -> Floats:
        """In the units of the data, not clamped."""
        # First: where rows have no range there is nothing to say.
        limits = limits_at(self.bounds_, coordinates)
        found = values_at(self._model, coordinates, self.shape_, self.mean_, self.biases_)
        return in_units(self.bounds_, found, limits)

    def _coordinates(self, X: ArrayLike) -> NDArray[np.intp]:
        check_is_fitted(self)
        return coordinates_or_unknown(coordinates_of(self, X, self._named))
