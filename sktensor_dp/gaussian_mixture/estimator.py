"""Private Gaussian mixtures of any shape; `fit` is in estimator/rows.py."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.checks.callers import level_of_caller
from sktensor_dp.checks.frames import is_dask, new_frame
from sktensor_dp.checks.parameters import Constraint, InstanceOf, Number, OneOf, check_sizes, shown
from sktensor_dp.checks.ranges import check_range, named_ranges
from sktensor_dp.data.samples import IncompleteChunk, IncompleteChunks
from sktensor_dp.estimator.base import NEIGHBOURS, NONE
from sktensor_dp.estimator.data_norm import check_data_norm
from sktensor_dp.estimator.facts import Neighbours, PublicFacts, worst_samples
from sktensor_dp.estimator.inputs import precision_of
from sktensor_dp.estimator.lazy import computed, lazy_rows
from sktensor_dp.estimator.rows import PrivateRowsMixin
from sktensor_dp.estimator.scoring import warn_of_score, warn_where_scored
from sktensor_dp.exceptions import DoubtfulParameterWarning, NotEnoughDataWarning
from sktensor_dp.gaussian_mixture.fitted import SavedMixture, doubts_of_ends, gaussians_of
from sktensor_dp.gaussian_mixture.intervals import (
    Intervals,
    half_widths_of_differences,
    intervals_of,
    on_groups,
)
from sktensor_dp.gaussian_mixture.plan import (
    MixtureForecast,
    check_memory,
    forecast_mixture,
    no_intervals_by,
    nonnormal_columns,
    parameters_of_group,
    plan_mixture,
)
from sktensor_dp.gaussian_mixture.recipe import fit_mixture
from sktensor_dp.mixtures.gaussians import log_density, responsibilities
from sktensor_dp.mixtures.nonnormal import LEAST_WIDTH, NonnormalColumns
from sktensor_dp.mixtures.places import places_of
from sktensor_dp.mixtures.uncertainty import MeanErrors
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.tensor.arrays import Floats, Integers, as_generator
from sktensor_dp.tensor.symmetric import n_unique

Names = Sequence[str] | NDArray[Any] | None
TYPES = ("full", "tied", "diag", "spherical")


class PrivateGaussianMixture(PrivateRowsMixin, DensityMixin, BaseEstimator):
    """Groups of samples as a mixture of Gaussians of any shape, by private EM.

    Each step releases weights, shifts and shapes whitened and clipped by each group's own
    covariance, so that noise is in proportion to a group's size; steps are averaged and shrunk by
    their known noise.

    Parameters
    ----------
    n_components : int, default=5
        Largest number of groups. By released gains the fit decides how many the data supports, and
        joins others, with a warning.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Shape of the groups, as in scikit-learn. Noisy shapes are moved to a common one, and that to
        a round one, by their known noise; "full" therefore costs little on round groups.
    data_norm : float, "auto" or None, default=None
        Public Euclidean norm, required: samples are scaled down to it in second moments and final
        means of one group, to a thousand times it where missing cells are counted beside
        `nonnormal_features`, else to eight times it. ``"auto"`` spends two percent of the budget
        on a noisy histogram, and takes the norm that one sample in a hundred exceeds, or with
        ``groups`` the mean norm of one group in a hundred. Scale columns of different units first
        (:func:`~sktensor_dp.scale_by_ranges`).
    nonnormal_features : mapping of columns to (low, high), optional
        Columns, by name or number, of few values, such as 0 and 1 or scores, with many equal
        values, such as zeros or a detection limit, or with a long tail; each with its public ends,
        which are (-1, 1) after :func:`~sktensor_dp.scale_by_ranges`. They help to tell groups
        apart, but make none of rows with one value, or of a tail. Not for
        ``covariance_type="spherical"``.
    epsilon : float, default=1.0
        Privacy parameter in (0, 1e12]. ``float("inf")`` fits without noise.
    delta : float, default=1e-6
        Privacy parameter in [0, 1); well below one over the number of samples. 0 asks
        for pure differential privacy: Laplace and spherical Laplace noise.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        Neighbours differ in one sample that is replaced, or added or removed
        (``docs/guarantee.md``); for the latter a noisy count is released first.
    accountant : BudgetAccountant or None, default=None
        Charged before noise is drawn.
    random_state : int, RandomState or None, default=None
        Seeds the start and :meth:`sample`; never noise.
    verbose : int, default=0
        1 writes one line per release to standard error.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components_,)
        Shares of the groups, in decreasing order.
    means_ : ndarray of shape (n_components_, n_features)
        Means of the groups, of norm ``data_norm`` at most, unless the ends of a column of
        ``nonnormal_features`` are farther out.
    covariances_ : ndarray
        Covariances, in the shape that scikit-learn gives each ``covariance_type``:
        (n_components_, n_features, n_features), (n_features, n_features),
        (n_components_, n_features) or (n_components_,). Of several groups ``nonnormal_features``
        have variances of the steps, not below those of the law.
    n_components_ : int
        Number of groups that the start left and the released gains support; if it is
        ``n_components``, there may be more.
    gains_ : ndarray of shape (n_groups,)
        Released mean log-density of a sample, in nats, in mixtures of 1, 2, ... and all groups that
        the start left, less that in a mixture of one, after half of the steps; each sample's gains
        by one more group are clipped together to a norm of 1.5.
    skewness_ : ndarray of shape (n_features,)
        Expected skewness of each column within groups, given the columns before it, by released
        shifts: the deviation of logs of a log-normal law that is as skewed. Several groups
        have no intervals from 0.65 on, and 0 for ``nonnormal_features``.
    data_norm_ : float
        Norm that was chosen (``data_norm="auto"`` only).
    n_iter_ : int
        Number of EM steps. Of a single group the second half are releases of means that scale
        complete rows down to ``data_norm`` and no further.
    privacy_report_ : PrivacyReport
        Every release with its noise and cost.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if `X` had string names.

    Warns
    -----
    NotEnoughDataWarning
        If means will have no intervals, as of too few samples: before the charge, or where the
        number of samples is private with the fit; if the histogram of norms shows nothing; or if
        groups were joined, unless nearly all rows were scaled down.
    UserWarning
        If released moments show that nearly all rows were scaled down to `data_norm`; if rows of
        persons (``groups``) lack cells, or noise may hide that they do: an average then weighs
        persons by their rows that have the column. If a group has nearly one value of a column, or
        lies at the end of its range.

    See Also
    --------
    PrivateTensorPowerMethod : Directions in samples, also of a stream.
    sktensor_dp.check_inputs : A check of columns, lists and bounds, before a fit is paid for.

    Notes
    -----
    Groups may be parts of one cloud that is not Gaussian: two of one centre and two spreads
    describe heavy tails. NaN is a missing cell, except in a sparse matrix.

    **Privacy.** *Unit*: one sample (a row); with ``groups`` one group of rows, such as a person,
    with all its samples, whose number is private. *Public*: numbers of units (unless released) and
    features, and all parameters, ``data_norm`` among them: do not set it to the largest norm in the
    data. *Releases*: ``norm_histogram`` for a norm that is chosen; ``second_moments``;
    ``mixture_statistics``, for small spheres of the start, for each step, for missing cells in
    place of a step, and for skewness; ``mixture_gains``, unless one group is asked for or the start
    leaves one; and ``unit_count`` where the number of units is private. *Not covered*: running
    time; what ``predict``, ``score`` and ``bic`` say of the samples handed to them; several samples
    of one person without ``groups``; infinite numbers, for which errors are raised.

    References
    ----------
    M. Park, J. Foulds, K. Chaudhuri, M. Welling, "DP-EM: differentially private expectation
    maximization", AISTATS 2017. A. Runnalls, "Kullback-Leibler approach to Gaussian mixture
    reduction", IEEE TAES 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateGaussianMixture
    >>> means = np.repeat([[4.0, 0.0, 0.0], [0.0, 4.0, 0.0]], 10000, axis=0)
    >>> X = means + np.random.default_rng(0).standard_normal(means.shape)
    >>> model = PrivateGaussianMixture(2, data_norm=8.0).fit(X)
    >>> model.predict(X[:3]).shape, sorted(model.means_.argmax(axis=1).tolist())
    ((3,), [0, 1])
    """

    _saved = SavedMixture
    _chunk_class = IncompleteChunks
    _input_tags = MappingProxyType({"sparse": True, "allow_nan": True})
    _hidden_state = frozenset({"_mean_errors", "_nonnormal"})
    weights_: Floats
    means_: Floats
    covariances_: Floats
    gains_: Floats
    n_components_: int
    n_iter_: int
    data_norm_: float
    _mean_errors: MeanErrors
    _nonnormal: NonnormalColumns
    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "n_components": [Number(1, math.inf, integer=True)],
        "covariance_type": [OneOf(*TYPES)],
        "data_norm": [Number(1e-40, 1e40), OneOf("auto"), NONE],
        "nonnormal_features": [InstanceOf(Mapping), NONE],
        **NEIGHBOURS,
    }

    def __init__(
        self,
        n_components: int = 5,
        *,
        covariance_type: str = "full",
        data_norm: float | str | None = None,
        nonnormal_features: Mapping[Any, tuple[float, float]] | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        neighbours: str = "replace_one",
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.data_norm = data_norm
        self.nonnormal_features = nonnormal_features
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def fit_predict(self, X: ArrayLike, y: Any = None, **fit_params: Any) -> Any:
        """Fit the groups to samples, and return the most probable group of each.

        Parameters
        ----------
        X, y, **fit_params
            As for :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
            As :meth:`predict`; no noise protects it.
        """
        return self.fit(X, y, **fit_params).predict(X)

    def predict_proba(self, X: ArrayLike) -> Any:
        """Probability of each group given a sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The caller's own samples, scaled as those of the fit; nothing of them is kept. For Dask
            input the result is a Dask array, not computed yet.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
            Rows sum to 1. In the precision of `X`.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazy_rows(self, X, "predict_proba", self.n_components_)
        warn_where_scored(self)
        found = responsibilities(self._log_joint(X))
        return found.astype(precision_of(X), copy=False)

    def predict(self, X: ArrayLike) -> Integers:
        """Most probable group of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The caller's own samples, scaled as those of the fit: a pipeline does so by itself.

        Returns
        -------
        ndarray of shape (n_samples,)
            Rows of ``means_``: 0 is the largest group. No noise protects `X`.

        Warns
        -----
        UserWarning
            If most samples are longer than ``data_norm``.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazy_rows(self, X, "predict").astype(np.intp)
        warn_where_scored(self)
        return np.argmax(self._log_joint(X), axis=1)

    def score_samples(self, X: ArrayLike) -> Floats:
        """Log-likelihood of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, scaled as those of the fit.

        Returns
        -------
        ndarray of shape (n_samples,)
            Each depends on its own sample alone.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazy_rows(self, X, "score_samples")
        return log_density(self._log_joint(X))

    def bic(self, X: ArrayLike) -> float:
        """Bayesian information criterion on samples; not private.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, preferably others than those of the fit.

        Returns
        -------
        float
            -2 log-likelihood of `X` plus log(n_samples) for each parameter; lower is better.

        Notes
        -----
        **Privacy.** Computed on `X` without noise. On data to be protected use ``gains_``
        or :func:`~sktensor_dp.make_private_scorer`.
        """
        return self._criterion(X, math.log)

    def aic(self, X: ArrayLike) -> float:
        """Akaike's information criterion on samples; not private, as :meth:`bic`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            As for :meth:`bic`.

        Returns
        -------
        float
            -2 log-likelihood of `X` plus 2 for each parameter; lower is better.
        """
        return self._criterion(X, lambda _: 2.0)

    def sample(self, n_samples: int = 1) -> tuple[Floats, Integers]:
        """Draw samples of the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Points.
        y : ndarray of shape (n_samples,)
            Group that each point is drawn from, a row of ``means_``.

        Raises
        ------
        ValueError
            If `n_samples` is not an integer of at least 1.

        Notes
        -----
        Drawn with ``random_state``, so that an integer gives the same samples every time.

        **Privacy.** Made of released values alone: synthetic data that cost nothing more.

        Examples
        --------
        >>> import numpy as np
        >>> from sktensor_dp import PrivateGaussianMixture
        >>> X = np.repeat([[3.0, 0.0], [0.0, 3.0]], 5000, axis=0)
        >>> X += np.random.default_rng(0).standard_normal(X.shape) / 2
        >>> points, groups = PrivateGaussianMixture(2, data_norm=6.0).fit(X).sample(4)
        >>> points.shape, groups.shape
        ((4, 2), (4,))
        """
        check_is_fitted(self)
        check_sizes(n_samples=n_samples)
        rng, model = as_generator(self.random_state), gaussians_of(self)
        chosen = rng.choice(len(model.weights), size=n_samples, p=model.weights)
        return model.sample(chosen, rng), chosen

    @property
    def variances_(self) -> Floats:
        """Variances (n_components_, n_features) of the columns in each group.

        Of ``nonnormal_features`` of several groups they follow from the means: as of columns of two
        values, times the dispersion of all rows, but more where other columns explain a part.
        """
        model = gaussians_of(self)
        return np.diagonal(model.covariances, axis1=1, axis2=2) / np.square(model.stretches)

    @property
    def places_(self) -> Integers:
        """Place (n_components_,) of each group, from 1: two at one place have one peak together."""
        return places_of(gaussians_of(self))

    def groups_table(
        self,
        feature_names: Names = None,
        *,
        ranges: Any = None,
        undo: Mapping[str, Callable[[Floats], Floats]] = MappingProxyType({}),
        level: float = 0.9,
    ) -> Any:
        """Groups as a table, the largest first, in units of the columns.

        Parameters
        ----------
        feature_names : sequence of str of length n_features_in_, optional
            By default the names in `ranges`, ``feature_names_in_``, or numbers.
        ranges : mapping of columns or array-like of shape (n_features_in_, 2), optional
            Public ranges that :func:`~sktensor_dp.scale_by_ranges` was given: by name if the fit
            saw a table with names, else in the order of columns.
        undo : mapping of str to increasing functions, optional
            Inverse functions for columns that were transformed before the fit, such as
            ``numpy.exp`` for logs: their means are then geometric means. Their spreads stay those
            of logs.
        level : float, default=0.9
            As for :meth:`means_interval`.

        Returns
        -------
        DataFrame of pandas
            One row per group and column: ``group``, from 1; ``share``, its weight, ``share_low``
            and ``share_high``; ``place``, from 1: groups whose density together has a single peak
            are at one place, as parts of a cloud of heavy tails are; ``column``; ``mean``,
            ``mean_low``, ``mean_high`` and ``spread``, a standard deviation.

        Warns
        -----
        NotEnoughDataWarning
            If there are no intervals, or none of a column, whose ends are NaN then; and as
            :meth:`means_interval`.

        Raises
        ------
        ImportError, ValueError
            Without pandas; if `level` is not in [0, 1), or names, `ranges` or
            `undo` are not those of the columns.

        Notes
        -----
        **Privacy.** Made of released values alone; costs nothing.

        Examples
        --------
        >>> import numpy as np
        >>> from sktensor_dp import PrivateGaussianMixture, scale_by_ranges
        >>> ranges = {"age": (0, 120), "visits": (0, 20)}
        >>> X = np.random.default_rng(0).normal([40.0, 6.0], [9.0, 2.0], (9000, 2))
        >>> scaled = scale_by_ranges(dict(enumerate(ranges.values()))).fit_transform(X)
        >>> model = PrivateGaussianMixture(1, data_norm=2**0.5).fit(scaled)
        >>> model.groups_table(ranges=ranges)[["column", "mean"]].round().values.tolist()
        [['age', 40.0], ['visits', 6.0]]
        """
        check_is_fitted(self)
        k, d = self.means_.shape
        names, bounds = named_ranges(self, feature_names, ranges)
        intervals = intervals_of(self, level)
        if doubts := intervals.doubts:
            warnings.warn(doubts, NotEnoughDataWarning, stacklevel=level_of_caller())
        if not {*undo} <= {*names}:
            raise ValueError(f"undo must map some of the columns {names}; got {[*undo]}.")
        found, halves = np.stack([self.means_, *intervals.means]), np.ones(d)  # found: (3, k, d)
        if bounds is not None:  # no average is beyond the range of its column
            halves = np.diff(bounds)[:, 0] / 2
            found = bounds.mean(axis=1) + halves * np.clip(found, -1.0, 1.0)
        for name, inverse in undo.items():
            found[..., names.index(name)] = inverse(found[..., names.index(name)])
        means, low, high = found
        share_low, share_high = intervals.shares
        of_groups = {
            "group": np.arange(1, k + 1), "share": self.weights_, "share_low": share_low,
            "share_high": share_high, "place": self.places_,
        }  # fmt: skip
        columns = {
            **{name: np.repeat(one, d) for name, one in of_groups.items()}, "column": names * k,
            "mean": means, "mean_low": low, "mean_high": high,
            "spread": halves * np.sqrt(self.variances_),
        }  # fmt: skip
        return new_frame({name: np.ravel(values).tolist() for name, values in columns.items()})

    def differences_table(
        self,
        *,
        columns: Sequence[tuple[Any, Any]] = (),
        groups: Sequence[tuple[int, int]] = (),
        feature_names: Names = None,
        ranges: Any = None,
        level: float = 0.9,
    ) -> Any:
        """Differences of means, with intervals by the errors that both have in common.

        Parameters
        ----------
        columns : sequence of pairs of columns, default=()
            Of each pair, as ``("crp24", "crp25")``, the mean of the second less that of the first
            in each group. Both must be of one unit, as a measure at two visits: no fit knows units.
        groups : sequence of pairs of int, default=()
            Of each pair, as ``(1, 2)``, the mean in the second group of :meth:`groups_table` less
            that in the first, of each column.
        feature_names, ranges, level
            As for :meth:`groups_table`.

        Returns
        -------
        DataFrame of pandas
            One row per difference: ``group`` and ``column`` of a mean, ``other_group`` and
            ``other_column`` of the mean that is subtracted from it, ``difference``, and the ends of
            its interval, ``low`` and ``high``. Of columns whose logs were taken the difference is
            the log of a ratio.

        Warns
        -----
        NotEnoughDataWarning
            As for :meth:`groups_table`.

        Raises
        ------
        ImportError, ValueError
            As for :meth:`groups_table`; if `columns` or `groups` have others than there are, or
            neither has a pair.

        Notes
        -----
        Where most rows have both columns, and these go together, half-widths are smaller than the
        root of the sum of both squared half-widths in :meth:`groups_table`.

        **Privacy.** Made of released values alone; costs nothing.

        Examples
        --------
        >>> import numpy as np
        >>> from sktensor_dp import PrivateGaussianMixture, scale_by_ranges
        >>> ranges = {"crp24": (0, 20), "crp25": (0, 20)}
        >>> X = np.random.default_rng(0).normal([9.0, 8.0], 0.5, (9000, 2))
        >>> X += np.random.default_rng(1).normal(0.0, 2.0, (9000, 1))
        >>> scaled = scale_by_ranges(dict(enumerate(ranges.values()))).fit_transform(X)
        >>> model = PrivateGaussianMixture(1, data_norm=2**0.5).fit(scaled)
        >>> found = model.differences_table(columns=[("crp24", "crp25")], ranges=ranges)
        >>> found[["column", "other_column", "difference"]].round().values.tolist()
        [['crp25', 'crp24', -1.0]]
        """
        check_is_fitted(self)
        k, d = self.means_.shape
        names, bounds = named_ranges(self, feature_names, ranges)
        name_pairs = [tuple(map(str, pair)) for pair in columns]
        if not (name_pairs or groups):
            raise ValueError("columns or groups must have a pair; got none of either.")
        _check_pairs("columns", name_pairs, names)
        _check_pairs("groups", groups, [*range(1, k + 1)])
        pairs = [
            *(((j, names.index(a)), (j, names.index(b))) for a, b in name_pairs for j in range(k)),
            *(((i - 1, a), (j - 1, a)) for i, j in groups for a in range(d)),
        ]
        # Groups and columns (2, n) of the first means, and of the second.
        first, second = np.array(pairs, dtype=int).transpose(1, 2, 0)
        halves = np.ones(d) if bounds is None else np.diff(bounds)[:, 0] / 2
        half_widths, doubt = half_widths_of_differences(self, level, first, second, halves)
        if doubt:
            warnings.warn(doubt, NotEnoughDataWarning, stacklevel=level_of_caller())
        means = self.means_
        if bounds is not None:
            means = bounds.mean(axis=1) + halves * np.clip(means, -1.0, 1.0)
        differences = means[*second] - means[*first]
        table = {
            "group": second[0] + 1, "column": np.array(names)[second[1]],
            "other_group": first[0] + 1, "other_column": np.array(names)[first[1]],
            "difference": differences, "low": differences - half_widths,
            "high": differences + half_widths,
        }  # fmt: skip
        return new_frame({name: values.tolist() for name, values in table.items()})

    @property
    def in_brief(self) -> str:
        """Say how many groups can be seen, what they gain over one, and which intervals fail."""
        check_is_fitted(self)
        found = intervals_of(self, 0.9)
        return f"{on_groups(self, found)} {found.doubt}".rstrip()

    def means_interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Intervals around means that count noise, sampling and overlap of the groups.

        Parameters
        ----------
        level : float, default=0.9
            About this share of the intervals, or more, holds the mean of the law.

        Returns
        -------
        low, high : ndarray of shape (n_components_, n_features)
            Bounds; noise may put them beyond ``data_norm``. With two groups or more, NaN for a
            column in which one has nearly one value, as what clips take of rare values is unknown,
            and for all columns if groups are skewed in one (``skewness_``).

        Warns
        -----
        NotEnoughDataWarning
            If a column has no intervals, if possible tails make intervals over twice as wide, if
            noise hides groups, or if most rows lack a column, or noise may hide that they do.

        Raises
        ------
        ValueError
            If `level` is not in [0, 1); or there are no intervals, as of fewer samples than
            :meth:`forecast` asks for, or of more than 2500 parameters.

        Notes
        -----
        They are normal intervals by the information that rows without labels have of the fitted
        law: where groups overlap it is less, and noise and chance count for more. Their limits:

        - They are for the groups shown; another run may find other groups.
        - Rows of a tail may count as another group's. Intervals of all columns count how far EM
          steps would move means if groups had tails that released shifts do not exclude. Where
          noise hides a longer tail, as of logs with a deviation of 0.8, few intervals hold. Take
          logs of such columns.
        - They are for means of samples clamped to ranges and scaled down as ``data_norm`` says.
        - They count what clips take of log-normal tails that are as skewed as released shifts are,
          within noise, and of values farther out where released second moments show these; of
          longer tails, and of far values that noise hides, they may hold too few. Means of one
          group scale complete rows down to ``data_norm`` alone, and have noise in proportion to it.
        - The share of missing cells is released for each column if second moments leave room
          for missing cells, and with the last steps of one group. Where cells are missing
          for values that are seen, as by dropout, noise leaves steps unfinished, and flattens
          lines. Of one group intervals count what later EM steps moved, and errors of slopes at
          most as if normal rows dropped out beyond a threshold: of 90% intervals 8 or 9 in 10
          hold. Of several groups 7 hold with little epsilon of a column that most rows lack. Where
          cells are missing for values that are not seen, intervals are for rows with the column.
        - Lines that fill cells err where a score has a floor or a ceiling. Means of one group are
          moved by that, and intervals count the rest, for normal columns clipped to [-1, 1], as
          :func:`~sktensor_dp.scale_by_ranges` gives them, if ``data_norm`` is at most the root of
          the number of columns; of several groups they do not.

        **Privacy.** Made of released values alone; costs nothing.

        Examples
        --------
        >>> import numpy as np
        >>> from sktensor_dp import PrivateGaussianMixture
        >>> X = np.repeat([[3.0, 0.0], [0.0, 3.0]], 5000, axis=0)
        >>> X += np.random.default_rng(0).standard_normal(X.shape)
        >>> model = PrivateGaussianMixture(2, data_norm=6.0).fit(X)
        >>> low, high = model.means_interval()
        >>> bool((low <= model.means_).all()), bool((high - low < 0.5).all())
        (True, True)
        """
        return self._intervals(level).means

    def weights_interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Intervals around shares of groups, of the same errors as :meth:`means_interval`.

        Parameters
        ----------
        level : float, default=0.9
            About this share of the intervals, or more, holds the share in the law.

        Returns
        -------
        low, high : ndarray of shape (n_components_,)
            Bounds within 0 and 1; NaN if groups are skewed in a column (``skewness_``), or if
            each column has nearly one value in a group.

        Warns
        -----
        NotEnoughDataWarning
            As for :meth:`means_interval`.

        Raises
        ------
        ValueError
            As for :meth:`means_interval`.

        Notes
        -----
        They have the limits of those of means.

        **Privacy.** Made of released values alone; costs nothing.

        Examples
        --------
        >>> import numpy as np
        >>> from sktensor_dp import PrivateGaussianMixture
        >>> X = np.repeat([[3.0, 0.0], [0.0, 3.0]], [7000, 3000], axis=0)
        >>> X += np.random.default_rng(0).standard_normal(X.shape)
        >>> low, high = PrivateGaussianMixture(2, data_norm=6.0).fit(X).weights_interval()
        >>> bool(0.6 < low[0] < high[0] < 0.8)
        True
        """
        return self._intervals(level).shares

    def _intervals(self, level: float) -> Intervals:
        """Intervals with warnings of doubts; ValueError if there are none."""
        check_is_fitted(self)
        found = intervals_of(self, level)
        if not hasattr(self, "_mean_errors"):
            raise ValueError(found.doubt)
        if doubts := found.doubts:
            warnings.warn(doubts, NotEnoughDataWarning, stacklevel=level_of_caller())
        return found

    def forecast(
        self, n_samples: int, n_features: int, *, deviation: float | None = None
    ) -> MixtureForecast:
        """Forecast the noise of a fit from public numbers.

        Parameters
        ----------
        n_samples, n_features : int
            Size of the data to come; a private number (`neighbours`) as a noisy count shows it.
        deviation : float, optional
            Public guess of the standard deviation of a group's samples along a column, for errors
            of means. By default half of ``data_norm`` over the root of `n_features`, which is a
            quarter of the ranges that :func:`scale_by_ranges` scales by; with ``"auto"`` it is 1,
            and errors are in these deviations.

        Returns
        -------
        MixtureForecast
            Noise of a step's means beside one standard deviation of a group, for ``n_components``
            groups of one size, the least number of samples that would be enough for them, and
            errors of their means.

        Examples
        --------
        >>> from sktensor_dp import PrivateGaussianMixture
        >>> PrivateGaussianMixture(5, data_norm=9.0).forecast(100_000, 10).enough
        True
        """
        self._check_parameters()
        check_sizes(n_samples=n_samples, n_features=n_features)
        self._warn_of_budget()
        if deviation is not None and not Number(0, math.inf, "neither").accepts(deviation):
            raise ValueError(f"deviation must be a number above 0, got {shown(deviation)}.")
        return forecast_mixture(self, n_samples, n_features, deviation)

    def _check_combined(self, method: str = "fit") -> None:
        for column, ends in (self.nonnormal_features or {}).items():
            check_range(f"nonnormal_features[{column!r}]", ends)
        if self.nonnormal_features and self.covariance_type == "spherical":
            raise ValueError('covariance_type="spherical" goes with no nonnormal_features.')
        if method == "load":
            return
        check_data_norm(self)
        norm = self.data_norm if isinstance(self.data_norm, Real) else math.inf
        for column, (low, high) in (self.nonnormal_features or {}).items():
            if math.isfinite(norm) and not (
                max(low, -high) < norm and high - low >= LEAST_WIDTH * norm
            ):
                raise ValueError(
                    f"nonnormal_features[{column!r}] must reach into -data_norm to data_norm, and "
                    f"over {LEAST_WIDTH:.2%} of data_norm; got {shown((low, high))}."
                )

    def _fit_units(self, chunks: IncompleteChunks, columns: Mapping[str, Any]) -> Self:
        """Fit to units that may be read as often as needed, and publish."""
        check_memory(self.n_components, chunks.n_features)
        nonnormal = nonnormal_columns(self, {**columns, "n_features_in_": chunks.n_features})
        n_units = self._largest_number(chunks)
        largest_plan = plan_mixture(self, n_units, chunks.n_features)
        expected = self._warnings_of_intervals(n_units, chunks.n_features)
        with self._session(chunks, largest_plan.releases, expected=expected) as ask:
            if not expected:  # a private number was released by now, and may be less
                ask.warnings.extend(self._warnings_of_intervals(ask.n_units, chunks.n_features))
            plan = plan_mixture(self, ask.n_units, chunks.n_features, nonnormal)
            ask.divide(plan.releases)
            fitted = fit_mixture(ask, plan, grouped=chunks.grouped)
        return self._publish_result(self._with_report(ask, fitted, columns))

    def _warnings_of_intervals(self, n_units: int, n_features: int) -> tuple[Warning, ...]:
        """Warning, if any, by a public or released number, that means have no intervals."""
        why_none = no_intervals_by(self, n_units, n_features)
        if not why_none:
            return ()
        return (NotEnoughDataWarning(f"There will be no intervals: {why_none}."),)

    def _warnings_by_attributes(self) -> tuple[Warning, ...]:
        # A single warning: if warnings are errors, a second one would not show.
        said = doubts_of_ends(self)
        return (DoubtfulParameterWarning(said),) if said else ()

    def _log_joint(self, X: Any) -> Floats:
        """Log of weight times density of each sample and group."""
        rows = IncompleteChunk(self._validated_rows(X, reset=False))
        return gaussians_of(self).log_joint(rows.X, rows.observed)

    def _criterion(self, X: Any, price: Callable[[int], float]) -> float:
        """-2 log-likelihood of `X`, plus ``price(n_samples)`` for each parameter."""
        warn_of_score(self)
        scores = np.asarray(computed(self.score_samples(X), "Scoring"))
        k, d = self.means_.shape
        n_parameters = k * parameters_of_group(self.covariance_type, d) - 1
        if self.covariance_type == "tied":  # the covariance that all groups share
            n_parameters += n_unique(d, 2)
        return float(-2 * scores.sum() + n_parameters * price(len(scores)))

    def _expected_score(self) -> float:
        """Expected log-likelihood of a row of the fitted mixture, as if groups did not overlap."""
        model = gaussians_of(self)
        return float(model.weights @ model.log_scales) - self.n_features_in_ / 2

    def _public_facts(self) -> PublicFacts:
        return PublicFacts(self._unit, score="log_likelihood", worst_case=self._worst_case)

    def _worst_case(self, n_units: int | None) -> Neighbours:
        """Neighbours of an audit, told apart by the fitted mean of the first column."""
        return worst_samples(
            self, n_units, lambda fitted: -float(fitted.weights_ @ fitted.means_[:, 0])
        )


def _check_pairs(name: str, pairs: Iterable[Any], known: Sequence[Any]) -> None:
    """Raise ValueError, by name, unless each of `pairs` has two of those `known`."""
    for pair in pairs:
        if len(pair) != 2 or not {*pair} <= {*known}:
            raise ValueError(f"{name} must be pairs of {known}; got {pair!r}.")
