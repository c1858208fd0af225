"""Private Tucker completion: mean, biases, factors and a core; `fit` is in estimator.py."""

import math
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from sktensor_dp.checks.parameters import Constraint, InstanceOf, Number
from sktensor_dp.completion.cp import PrivateCPCompletion
from sktensor_dp.completion.estimator import CompletionMixin
from sktensor_dp.completion.model import SavedCompletion
from sktensor_dp.tensor.arrays import Floats


class PrivateTuckerCompletion(
    CompletionMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Mean, biases, factors and a core of a tensor of which some entries are observed.

    A value is the sum of a mean, a bias of each of its rows, and the core multiplied by
    one row of each factor. Of a matrix it is the CP completion in another form, except by
    ``perturbation="gradient"``.

    Parameters
    ----------
    rank : int or sequence of int, default=3
        Columns of each factor, 1 or more: for mean and biases alone, as a baseline, use
        ``PrivateCPCompletion(0)``. One number holds for all modes, capped by their lengths. The
        rank of ``unit_mode`` is only how many columns of 0 units have: each has its own slice of
        the core.
    bounds, shape, row_names, epsilon, delta, perturbation, unit_mode, \
max_iter, accountant, random_state, verbose
        As for :class:`PrivateCPCompletion`.

    Attributes
    ----------
    factors_ : list of ndarray of shape (shape[m], rank[m])
        Orthonormal columns; 0 for units. In a matrix with a ``unit_mode`` as for
        :class:`PrivateCPCompletion`.
    core_ : ndarray of shape rank
        The core. Not with a ``unit_mode``, where each unit has its own slice. It is 0 where noise
        hides all components, or they are for ``fold_in`` alone (``n_components_`` counts those).
    n_components_, mean_, mean_error_, biases_, bias_errors_, bias_covariances_, bounds_, \
shape_, perturbation_, n_iter_, privacy_report_, n_features_in_, feature_names_in_
        As for :class:`PrivateCPCompletion`.

    See Also
    --------
    PrivateCPCompletion : A diagonal core, and what holds for both.

    Notes
    -----
    **Privacy.** As for :class:`PrivateCPCompletion`, release by release.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateTuckerCompletion
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_normal((2, 60))
    >>> X = np.argwhere(rng.random((60, 60)) < 0.7)
    >>> y = a[X[:, 0]] * b[X[:, 1]]
    >>> model = PrivateTuckerCompletion(1, bounds=(-3, 3), epsilon=12.0, random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.8)
    True
    """

    _full_core = True
    _of_rank_0 = PrivateCPCompletion
    _saved = SavedCompletion
    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "rank": [Number(1, math.inf, integer=True), InstanceOf(tuple, list, np.ndarray)],
        **CompletionMixin._own_constraints,
    }

    def transform(self, X: ArrayLike) -> Floats:
        """Rows of all factors at coordinates, side by side.

        Parameters
        ----------
        X : array-like of int of shape (n, n_modes)
            Coordinates.

        Returns
        -------
        ndarray of shape (n, sum of ranks)
            0 for rows below 0 or beyond the shape; with a ``unit_mode`` for units; and everywhere
            if no components were found, or the core is 0.
        """
        coordinates = self._coordinates(X)
        # Columns of factors beside a core of 0 are arbitrary.
        has_core = np.any(vars(self).get("core_", 1.0))
        factors = vars(self).get("factors_") if has_core else None
        parts = []
        for mode, rows in enumerate(coordinates.T):
            part = np.zeros((len(rows), self._ranks[mode]))
            inside = (rows >= 0) & (rows < self.shape_[mode])
            if factors is not None:
                part[inside] = factors[mode][rows[inside]]
            parts.append(part)
        return np.concatenate(parts, axis=1)

    @property
    def _n_features_out(self) -> int:
        return sum(self._ranks)
