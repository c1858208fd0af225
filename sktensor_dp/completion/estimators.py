"""Private completion of tensors: CP and Tucker models of observed entries."""

import math
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from sktensor_dp.completion.base import CompletionMixin
from sktensor_dp.completion.saved import SavedCompletion
from sktensor_dp.estimator.parameters import Constraint, InstanceOf, Number
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.sorted_entries import khatri_rao_rows


class PrivateCPCompletion(
    CompletionMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Mean, biases and components of a tensor of which some entries are observed.

    A value is the sum of a mean, a bias of each of its rows, and `rank` products of one
    number from each row: ``x = mean + sum_m b_m[i_m] + sum_r w_r prod_m a_mr[i_m]``.

    Parameters
    ----------
    rank : int, default=3
        Number of components. Those that the released values do not show shrink to zero. With a
        ``unit_mode`` they are sought where public numbers say that they can be found.
    bounds : tuple of (low, high), or mapping of int to table of shape (shape[m], 2)
        Public range that values are clamped to; required. ``{2: table}`` gives each row of
        mode 2 a range of its own, low and high, by the index of a frame where the mode has
        ``row_names``. Values are then mapped to a scale from -1 to 1, that of all fitted
        attributes and of ``transform``; predictions are in the units of the data.
    shape : sequence of int or None, default=None
        Number of rows of each mode; public. None takes it from the largest coordinates,
        which then count as public; required with a ``unit_mode``. Lengths of modes with
        ``row_names`` are those of the names.
    row_names : tuple of n_modes elements or None, default=None
        Names of the rows of each mode: a :class:`~sktensor_dp.RowIndex`, a list of names, or
        None where rows have numbers. They are public, and never read off the data. Entries
        of a fit with another name are left out. None at ``unit_mode`` lets units have any
        ids; these are not kept.
    row_features : mapping of int to table or None, default=None
        Public features of the rows of some modes, for example ``{1: genres}``: numbers of
        shape (shape[m], n_columns), rows in order. Those of a frame are found by its index
        where the mode has ``row_names``. What is released of a row is shrunk towards a
        regression on them, whose weight is estimated, so that features which say nothing cost
        little; rows without entries are predicted by it. None shrinks towards 0. Not for
        ``unit_mode``.
    epsilon : float, default=1.0
        Privacy parameter in (0, 1e12]. ``float("inf")`` fits without noise.
    delta : float, default=1e-6
        Privacy parameter in [0, 1). 0 asks for pure differential privacy.
    perturbation : str, default="auto"
        What gets noise. ``"input"``: every value, once. ``"sufficient_statistics"``: sums
        of values over rows, which give the mean and biases. ``"gradient"``: every step of
        gradient descent on all parameters. ``"output"``: one factor, after the others
        were found from values with noise. ``"auto"`` is ``"input"`` where public numbers
        say that components stand out of its noise, ``"sufficient_statistics"`` elsewhere,
        of long tables with few columns with sums of products of two values of a row, from
        which ``fold_in`` has components.
    unit_mode : int or None, default=None
        None protects each value, at coordinates that are public. An int protects all entries
        of a row of that mode together, coordinates included.
    regularization : float, default=1.0
        Factor of the ridge penalties of components, from 1e-9 to 1e9. 1 is what the noise,
        which is known, and variances estimated from released values call for.
    max_iter : int or None, default=None
        Most sweeps over released values, which cost nothing; for ``"gradient"`` the number of
        steps, each of which is a release. None takes 1000, and 30 steps. Not with a ``unit_mode``.
    accountant : BudgetAccountant or None, default=None
        Charged before noise is drawn.
    random_state : int, RandomState or None, default=None
        Seeds starts. It never seeds noise.
    verbose : int, default=0
        Whether to report releases on standard error as they are made.

    Attributes
    ----------
    factors_ : list of ndarray of shape (shape[m], rank)
        Unit columns; rows never observed are 0. With a ``unit_mode``, if components were sought,
        those of shared modes, in which a unit's own weights have unit variance; 0 for units.
        Where ``entry_pairs`` were released, what was found for
        ``fold_in``, which may be fewer columns, and 0 for rows of the first mode.
    weights_ : ndarray of shape (rank,)
        Non-negative, decreasing. Not with a ``unit_mode``.
    mean_ : float
        Mean of the values.
    biases_ : list of ndarray of shape (shape[m],)
        One per mode; 0 for rows never observed, unless they have features, and for units.
    shape_ : tuple of int
        Number of rows of each mode.
    perturbation_ : str
        What got noise.
    n_iter_ : int
        Sweeps over the modes, of released values or of releases; steps of descent.
    privacy_report_ : PrivacyReport
        Every release with its noise and cost.
    n_features_in_ : int
        Number of modes.
    feature_names_in_ : ndarray of shape (n_modes,)
        Names of the columns of coordinates, if they have any.

    Raises
    ------
    BudgetError
        If the accountant has too little left; nothing has been read then.

    Warns
    -----
    NotEnoughDataWarning
        If public numbers say that no components can be found, and none were sought.
    ConvergenceWarning
        If the model had not settled after `max_iter` sweeps over released values.

    See Also
    --------
    PrivateTuckerCompletion : The same with a full core.

    Notes
    -----
    **Privacy.** *Unit*: one value, or one slice of the tensor. *Neighbours*: tables of
    equally many entries at the same coordinates that differ in one value; with a
    ``unit_mode`` tensors that differ in all entries of one row. *Public*: coordinates and
    their number (not with a ``unit_mode``), the shape, the bounds and all parameters,
    ``row_features`` among them: never compute these from private data.
    *Releases*: ``entries``, ``row_sums``, ``entry_pairs``, ``entry_gradients``,
    ``ridge_block``, or ``unit_levels``, ``shared_row_sums`` and ``shared_factor_sums``, as
    ``privacy_report_`` lists them.
    *Not covered*: running time; what ``fold_in`` returns, which belongs to the holder of
    the entries it was given; several values of one person, without a ``unit_mode``.

    With a ``unit_mode`` nothing of a unit is stored: ``predict`` knows what units share, and
    ``fold_in`` adds their own parameters where their entries are.

    References
    ----------
    W. Wei et al., differentially private tensor completion (input, gradient and output
    perturbation, as mended here). T. Wang et al. (2019), Collecting and analyzing
    multidimensional data with local differential privacy (the piecewise mechanism).

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateCPCompletion
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_normal((2, 60))
    >>> X = np.argwhere(rng.random((60, 60)) < 0.7)
    >>> y = a[X[:, 0]] * b[X[:, 1]]
    >>> model = PrivateCPCompletion(1, bounds=(-3, 3), epsilon=12.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True

    Features of items say what noise hides, and tell of items that nobody has rated:

    >>> comedy = np.tile([[0.0], [1.0]], (30, 1))
    >>> seen = X[X[:, 1] < 50]
    >>> model = PrivateCPCompletion(
    ...     0, bounds=(0, 5), shape=(60, 60), epsilon=2.0, row_features={1: comedy}
    ... ).fit(seen, 2.0 + comedy[seen[:, 1], 0])
    >>> drama, funny = model.predict([[0, 58], [0, 59]])
    >>> bool(funny > drama + 0.5)
    True
    """

    _full_core = False
    _saved = SavedCompletion
    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "rank": [Number(0, math.inf, integer=True)],
        **CompletionMixin._own_constraints,
    }

    def transform(self, X: ArrayLike) -> Floats:
        """Value of each component at coordinates.

        Parameters
        ----------
        X : array-like of int of shape (n, n_modes)
            Coordinates.

        Returns
        -------
        ndarray of shape (n, rank)
            0 for rows never observed, below 0 or beyond the shape, and where no components
            were fitted.
        """
        coordinates = self._coordinates(X)
        weights = getattr(self, "weights_", np.zeros(0))
        result = np.zeros((len(coordinates), self._n_features_out))
        inside = ((coordinates >= 0) & (coordinates < np.array(self.shape_))).all(axis=1)
        if len(weights):
            result[inside, : len(weights)] = (
                khatri_rao_rows(self.factors_, coordinates[inside]) * weights
            )
        return result

    @property
    def _n_features_out(self) -> int:
        return self._ranks[0]


class PrivateTuckerCompletion(
    CompletionMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Mean, biases, factors and a core of a tensor of which some entries are observed.

    A value is the sum of a mean, a bias of each of its rows, and the core multiplied by
    one row of each factor.

    Parameters
    ----------
    rank : int or sequence of int, default=3
        Columns of each factor. One number holds for all modes, capped by their lengths. That
        of ``unit_mode`` is not used: a unit's slice of the core is its own.
    bounds, shape, row_names, row_features, epsilon, delta, perturbation, unit_mode, \
regularization, max_iter, accountant, random_state, verbose
        As for :class:`PrivateCPCompletion`.

    Attributes
    ----------
    factors_ : list of ndarray of shape (shape[m], rank[m])
        Orthonormal columns. With a ``unit_mode`` as for :class:`PrivateCPCompletion`.
    core_ : ndarray of shape rank
        The core. Not with a ``unit_mode``, where each unit has a slice of it of its own.
    mean_, biases_, shape_, perturbation_, n_iter_, privacy_report_, n_features_in_
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
            0 for rows below 0 or beyond the shape.
        """
        coordinates = self._coordinates(X)
        factors = getattr(self, "factors_", None)
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
