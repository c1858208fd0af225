"""Private CP completion: mean, biases and components; `fit` is in estimator.py."""

import math
import warnings
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from sktensor_dp.checks.callers import level_of_caller
from sktensor_dp.checks.parameters import Constraint, Number
from sktensor_dp.completion.estimator import CompletionMixin
from sktensor_dp.completion.model import SavedCompletion
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.sorted_entries import khatri_rao_rows

FOR_FOLD_IN = (
    "transform returns 0 everywhere: no weights of units were released. The holder of their "
    "entries finds them by fold_in(X, y).parameters."
)


class PrivateCPCompletion(
    CompletionMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Mean, biases and components of a tensor of which some entries are observed.

    A value is the sum of a mean, a bias of each of its rows, and `rank` products of one
    number from each row: ``x = mean + sum_m b_m[i_m] + sum_r w_r prod_m a_mr[i_m]``.

    Parameters
    ----------
    rank : int, default=3
        Number of components. Those that noise hides shrink to zero; a rank of 1 may find none
        where a larger one finds some. With a ``unit_mode`` a fit seeks them only where public
        numbers say that it can find them, and rows of the other modes have at most 16,384
        combinations.
    bounds : tuple of (low, high), or "auto"
        Public range that values are clamped to; required. :func:`~sktensor_dp.check_inputs` tells
        before a fit how many lie within. ``"auto"`` spends two percent of the budget on a noisy
        histogram, and takes the range with one value in a hundred on either side of it; forecasts
        are in widths of that range.
    shape : sequence of int or None, default=None
        Number of rows of each mode; public. None takes it from the largest coordinates,
        which then count as public. Lengths of modes with ``row_names`` are those of the names; with
        a ``unit_mode`` a shape is required, unless all modes have names.
    row_names : tuple of n_modes elements or None, default=None
        Names of the rows of each mode: a :class:`~sktensor_dp.RowIndex`, a list of names, or
        None where rows have numbers. They are public, and never read off the data. Entries
        of a fit with another name are left out. None at ``unit_mode`` lets units have any
        ids, which are not kept; "Zoe" and "zoe" are two, but for
        :func:`~sktensor_dp.normalise_labels`.
    epsilon : float, default=1.0
        Privacy parameter in (0, 1e12]. ``float("inf")`` fits without noise.
    delta : float, default=1e-6
        Privacy parameter in [0, 1). 0 asks for pure differential privacy; with a ``unit_mode``
        there are then no components, and with noise biases are from one release instead of six.
    perturbation : str, default="auto"
        Quantities that get noise. ``"input"``: every value, once. ``"sufficient_statistics"``:
        sums of values over rows, which give the mean and biases. ``"gradient"``: every step of
        gradient descent on all parameters. ``"output"``: every value, from which a model is
        fitted, and then, if it has components, its last factor once more: with a `rank` above 0
        its budget is spent in either case. ``"auto"`` is ``"input"`` where public numbers
        say that components stand out of its noise and gain more than biases lose by it, and
        ``"sufficient_statistics"`` elsewhere. If it chooses the latter, for long tables with few
        columns, it also releases sums of products of two values of a row, which give ``fold_in``
        its components.
    unit_mode : int or None, default=None
        None protects each value, at coordinates that are public. An int protects all entries
        of a row of that mode together, coordinates included.
    max_iter : int or None, default=None
        Most sweeps of each run over released values, which cost nothing: of components, and again
        without those that noise explains, or of biases if `rank` is 0. For ``"gradient"`` the
        number of steps, each of which is a release. None takes 1000, and 30 steps. Not read for
        ``"sufficient_statistics"``; not with a ``unit_mode``.
    accountant : BudgetAccountant or None, default=None
        Charged before noise is drawn.
    random_state : int, RandomState or None, default=None
        Seeds the starts of iterations, never the noise.
    verbose : int, default=0
        1 reports releases on standard error as they are made.

    Attributes
    ----------
    factors_ : list of ndarray of shape (shape[m], rank)
        Columns of unit norm, or 0 where noise hides them; 0 for rows never observed. With a
        ``unit_mode``, only if components were found: factors of the other modes, whose norms
        differ, and 0 for units; in a matrix a unit's own weights have unit variance. Where
        ``entry_pairs`` were released: the components for ``fold_in``, which may be fewer than
        `rank`, and 0 for rows of the first mode. ``"sufficient_statistics"`` without these has no
        columns.
    weights_ : ndarray of shape (n_columns,)
        Non-negative, one for each column of ``factors_``; decreasing, unless ``entry_pairs``
        were released. Not with a ``unit_mode``.
    n_components_ : int
        Number of components found: at most `rank`, and 0 where noise hides them all;
        ``"gradient"`` may count some that are noise.
    mean_ : float
        Constant of the model: the value where all biases are 0. With a ``unit_mode`` the mean over
        units, all with the same weight, of the average of a unit's values less biases.
    mean_error_ : float
        Standard error of ``mean_``, from noise and sampling of units, or of rows of the first mode
        without ``unit_mode``. The average of a row of another mode, ``mean_ + biases_[m][i]``, errs
        by both: by ``hypot(mean_error_, bias_errors_[m][i])``.
    biases_ : list of ndarray of shape (shape[m],)
        One per mode; 0 for units, and without a ``unit_mode`` for rows never observed.
    bias_errors_ : list of ndarray of shape (shape[m],)
        Standard errors of ``biases_``, from noise and sampling, and with a ``unit_mode`` from the
        shrinkage of rows with few entries; NaN for ``unit_mode``, or for the first mode where that
        is None. These and ``mean_error_`` are valid if units do not leave, if which entries exist
        depends on values through the level of a unit alone, and for modes without
        ``bias_covariances_`` if units do not keep to few rows, as readers to a genre. In three or
        more modes without ``unit_mode`` values count as independent: where patients differ in one
        item for good, errors are those for these patients alone.
    bias_covariances_ : list of ndarray of shape (shape[m], shape[m]), or None
        Covariances of errors of ``biases_``, by which differences of rows may err far less than by
        ``bias_errors_``; None without ``unit_mode``, for modes of more than 1,024 rows, or where it
        is not known how units compare rows.
    bounds_ : tuple of (low, high)
        Range that values were clamped to.
    shape_ : tuple of int
        Number of rows of each mode.
    perturbation_ : str
        Quantities that got noise, as for the parameter.
    n_iter_ : int
        Number of sweeps over the modes in all runs, or of steps of descent; with a ``unit_mode`` of
        released sweeps of the search for components, 1 where none are sought.
    privacy_report_ : PrivacyReport
        Every release with its noise and cost.
    n_features_in_ : int
        Number of modes.
    feature_names_in_ : ndarray of shape (n_modes,)
        Names of the columns of coordinates, if they have any.

    Raises
    ------
    BudgetError
        If the accountant has too little left; no budget is spent.

    Warns
    -----
    NotEnoughDataWarning
        If noise hides the histogram of values; if components were asked for, and none are sought;
        if they were sought, and none found; or if noise hides differences between rows of a mode,
        in a model without components. With a ``unit_mode`` the last two are left out where a
        UserWarning doubts the bounds or the names; it warns also if units with one row of a mode
        alone tell most of how its rows differ.
    ConvergenceWarning
        If the model had not settled after `max_iter` sweeps over released values.
    UserWarning
        If the average that was found lies at an end of the bounds, and no components show, or with
        a ``unit_mode`` no differences within units; with a ``unit_mode`` also if hardly any value
        is of a row that counts, or values of one person differ little for the bounds.

    See Also
    --------
    PrivateTuckerCompletion : Model with a full core.
    sktensor_dp.check_inputs : A check of columns, lists and bounds, before a fit is paid for.

    Notes
    -----
    **Privacy.** *Unit*: one value, or one slice of the tensor. *Neighbours*: tables of
    equally many entries at the same coordinates that differ in one value; with a
    ``unit_mode`` tensors that differ in all entries of one row. *Public*: coordinates and
    the number of entries (not with a ``unit_mode``), the shape, the bounds and all parameters:
    never compute these from private data.
    *Releases*: ``value_histogram`` for a range that is chosen; ``entries``, ``row_sums``,
    ``entry_pairs``, ``entry_gradients``, ``ridge_block``, or ``unit_levels``,
    ``row_concurrences``, ``shared_row_sums`` and ``shared_factor_sums``, as ``privacy_report_``
    lists them.
    *Not covered*: running time; what ``fold_in`` returns, which belongs to the holder of
    the entries it was given; several values of one person, without a ``unit_mode``.

    With a ``unit_mode`` nothing of a unit is stored: ``predict`` uses only what units share, and
    the holder of a unit's entries computes its own parameters by ``fold_in``.

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
            0 for rows never observed, below 0 or beyond the shape; and everywhere with a
            ``unit_mode``, or if components were not found or are for ``fold_in`` alone.

        Warns
        -----
        UserWarning
            If components were found, but are for ``fold_in`` alone.
        """
        coordinates = self._coordinates(X)
        weights = vars(self).get("weights_", np.zeros(0))
        result = np.zeros((len(coordinates), self._n_features_out))
        if self.n_components_ and not self.factors_[self._own_mode].any():
            warnings.warn(FOR_FOLD_IN, stacklevel=level_of_caller())
        inside = ((coordinates >= 0) & (coordinates < np.array(self.shape_))).all(axis=1)
        if len(weights):
            result[inside, : len(weights)] = (
                khatri_rao_rows(self.factors_, coordinates[inside]) * weights
            )
        return result

    @property
    def _n_features_out(self) -> int:
        return self._ranks[0]
