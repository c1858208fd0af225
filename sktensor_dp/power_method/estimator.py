"""Private tensor power method: components of third moments; `fit` is in estimator/rows.py."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.errors import read_each
from sktensor_dp.checks.floating_point import under_own_errors
from sktensor_dp.checks.frames import is_dask, refuse_other_columns
from sktensor_dp.checks.parameters import Constraint, InstanceOf, Number, OneOf, check_sizes
from sktensor_dp.data.labels import distinct
from sktensor_dp.data.samples import SampleChunks, TensorChunk
from sktensor_dp.data.sources import PartitionedSource
from sktensor_dp.data.units import split_chunk
from sktensor_dp.estimator import base, inputs
from sktensor_dp.estimator.data_norm import check_data_norm
from sktensor_dp.estimator.facts import Neighbours, PublicFacts, worst_samples
from sktensor_dp.estimator.forecast import Forecast, Question
from sktensor_dp.estimator.lazy import lazy_rows
from sktensor_dp.estimator.rows import PrivateRowsMixin
from sktensor_dp.power_method.plan import (
    PERTURBATIONS,
    check_memory,
    forecast_components,
    plan_components,
    plan_tensor,
)
from sktensor_dp.power_method.recipe import fit_samples, fit_to_tensor
from sktensor_dp.power_method.saved import SavedComponents
from sktensor_dp.power_method.stream import (
    ComponentStream,
    fit_power_step,
    random_batches,
    warnings_of_stream,
)
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.noise_source import OneProcess
from sktensor_dp.privacy.payer import around_fit
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.symmetric import is_symmetric, tensor_oracle


def reads_batches(estimator: Any) -> bool:
    """Condition for ``available_if``: True if `partial_fit` is supported, or AttributeError."""
    if estimator.perturbation in ("auto", "stream"):
        return True
    raise AttributeError(
        f"partial_fit needs perturbation 'auto' or 'stream'; got {estimator.perturbation!r}."
    )


class PrivateTensorPowerMethod(
    PrivateRowsMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Components of the third moment of samples, by the power method on private releases.

    The moment ``E[x (x) x (x) x]`` is taken as ``sum_j w_j v_j (x) v_j (x) v_j``, with components
    v_j of weights w_j.

    Parameters
    ----------
    n_components : int, default=5
        Number of components; at most as many as features are fitted.
    epsilon : float, default=1.0
        Privacy parameter in (0, 1e12]. ``float("inf")`` fits without noise.
    delta : float, default=1e-6
        Privacy parameter in [0, 1); well below one over the number of samples. 0 asks
        for pure differential privacy: Laplace and spherical Laplace noise.
    whiten : bool, default=True
        True makes components orthogonal by the second moment E[x x'], which is taken to have the
        same ones; False takes them to be orthonormal. ``"iteration"`` and ``"stream"`` never
        whiten.
    perturbation : str, default="auto"
        Where noise is added. ``"whitened_tensor"``: to the second moment, then to the third,
        clipped, in the k leading dimensions of the second. ``"moment_tensor"``: to the third in all
        dimensions (AGN; with ``delta=0`` AVN), and with `whiten` to the second. ``"iteration"``: to
        every power step, each of which reads all data. ``"stream"``: to every power step, each of
        which reads a batch of its own, so that a whole fit costs each sample one query. ``"auto"``
        is ``"whitened_tensor"`` for :meth:`fit`, ``"stream"`` for :meth:`partial_fit` and
        ``"iteration"`` for :meth:`fit_tensor`.
    data_norm : float, "auto" or None, default=None
        Public Euclidean norm that rows are scaled down to; required. ``"auto"`` spends two
        percent of the budget on a noisy histogram, and takes the norm that one sample in a
        hundred exceeds, or with ``groups`` the mean norm of one group in a hundred; not for a
        stream. Scale columns of different units first (:func:`~sktensor_dp.scale_by_ranges`). For
        :meth:`fit_tensor`: largest change of an entry, by default 1.
    n_restarts : int, default=10
        Random starts of the power method for each component.
    max_iter : int or None, default=None
        Iterations from each start. None chooses by public numbers: 100 once a tensor
        has been released, as they cost nothing then; ``ceil(log2(n_features)) + 4``
        where every one is a release.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        Neighbours differ in one sample that is replaced, or added or removed
        (``docs/guarantee.md``); for the latter a noisy count is released first, of every batch of
        a stream.
    accountant : BudgetAccountant or None, default=None
        Charged before noise is drawn.
    random_state : int, RandomState or None, default=None
        Seeds starts, and batches of rows for ``"stream"``; never noise, nor the coins that deal
        groups, and rows of private number, to batches.
    verbose : int, default=0
        1 writes one line per release to standard error.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        Unit vectors.
    data_norm_ : float
        Norm that was chosen (``data_norm="auto"`` only).
    weights_ : ndarray of shape (n_components_,)
        Weights w of the sum of w v (x) v (x) v, v the components, in decreasing order. From power
        steps they are eigenvalues; from moments, a fit by least squares, which has these values
        too where components are orthogonal.
    n_components_ : int
        Number of components fitted: fewer than asked for if released moments show no more above
        their noise (power steps keep all), or a stream has not found all yet.
    privacy_report_ : PrivacyReport
        Every release with its noise and cost.
    n_iter_ : int
        ``max_iter``, as given or chosen.
    n_batches_needed_, n_batches_seen_, is_complete_ : int, int, bool
        Batches to find all components, batches read, and whether all are found (``"stream"``).
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if `X` had string names.

    Warns
    -----
    NotEnoughDataWarning
        If released values show fewer components above their noise than asked for, of a stream once
        it is complete; or if a stream ends before.

    See Also
    --------
    PrivateGaussianMixture : Groups of samples, with intervals, tables in units, and missing cells.
    PrivateSpectralLDA : Topics of documents; with ``doc_topic_prior=0`` each has one topic.
    sktensor_dp.check_inputs : A check of columns, lists and bounds, before a fit is paid for.
    sktensor_dp.tensor.robust_tensor_power_method : The kernel, without privacy.

    Notes
    -----
    Moments are taken about the origin, not the mean.

    **Privacy.** *Unit*: one sample (a row); with ``groups`` one
    group with all its samples, whose number is private; one entry for
    :meth:`fit_tensor`. *Public*: numbers of units (unless released) and features, sizes of
    batches, and all parameters, ``data_norm`` among them: do not set it to the largest norm
    in the data. *Releases*: ``norm_histogram`` for a norm that is chosen; ``second_moments``,
    ``third_moment_histogram`` and ``projected_third_moments``, or ``third_moments``, after
    ``second_moments`` if they are whitened; ``power_iterations``; ``tensor_power_iterations``; and
    ``unit_count`` where the number of units is private.
    *Not covered*: running time; what ``transform`` and ``score`` say of the samples
    handed to them; several samples of one person without ``groups``; samples in several
    batches of a stream; input that is not finite numbers, for which errors are raised.

    References
    ----------
    Y. Wang, A. Anandkumar, "Online and differentially-private tensor decomposition",
    NIPS 2016 (``"iteration"``: Algorithm 3; ``"stream"``: Algorithm 2). H. Imtiaz,
    A. D. Sarwate, "Improved algorithms for differentially private orthogonal tensor
    decomposition", ICASSP 2018 (``"moment_tensor"``).

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateTensorPowerMethod
    >>> directions = np.repeat([[0.7, 0.0, 0.0], [0.0, 0.7, 0.0]], 10000, axis=0)
    >>> X = directions + 0.1 * np.random.default_rng(0).standard_normal(directions.shape)
    >>> model = PrivateTensorPowerMethod(2, data_norm=1.0).fit(X)
    >>> model.transform(X[:3]).shape, sorted(model.components_.argmax(axis=1).tolist())
    ((3, 2), [0, 1])
    """

    _saved = SavedComponents
    _chunk_class = SampleChunks
    _preserves_dtype = True
    _input_tags = MappingProxyType({"sparse": True})
    components_: Floats
    weights_: Floats

    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "n_components": [Number(1, math.inf, integer=True)],
        "whiten": [InstanceOf(bool)],
        "perturbation": [OneOf(*PERTURBATIONS)],
        # Range in which sixth powers of the norm are finite and not zero.
        "data_norm": [Number(1e-40, 1e40), OneOf("auto"), base.NONE],
        "n_restarts": [Number(1, math.inf, integer=True)],
        "max_iter": [Number(1, math.inf, integer=True), base.NONE],
        **base.NEIGHBOURS,
    }

    def __init__(
        self,
        n_components: int = 5,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        whiten: bool = True,
        perturbation: str = "auto",
        data_norm: float | str | None = None,
        n_restarts: int = 10,
        max_iter: int | None = None,
        neighbours: str = "replace_one",
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.whiten = whiten
        self.perturbation = perturbation
        self.data_norm = data_norm
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.neighbours = neighbours
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def fit_chunks(
        self,
        source: Iterable[object],
        *,
        n_samples: int | None = None,
        n_features: int | None = None,
    ) -> "PrivateTensorPowerMethod":
        """Learn components from chunks that need not fit into memory together.

        Parameters
        ----------
        source : iterable of array-likes or sparse matrices, or of pairs
            Chunks of rows, or pairs ``(X, groups)`` of rows and labels as :meth:`fit` takes
            them; all rows of a group are in one chunk. For ``"stream"`` each is a batch, read once.
            Otherwise all are read once for their checks and once per release, so that a generator
            will not do, but a list or an object with ``__iter__``.
        n_samples, n_features : int or None, default=None
            Number of rows, or groups, in all chunks together, and of columns; public. Not needed
            for ``"stream"``, which ``"auto"`` means if `n_samples` is public but not given. With
            ``neighbours="add_remove"`` it is private and must not be given.

        Returns
        -------
        self : PrivateTensorPowerMethod

        Raises
        ------
        TypeError, ValueError, BudgetError
            As :meth:`fit`, or if `source` can be read only once, or its shape is not as
            announced. A stream is charged for once its first batch has been validated.
        """
        self._check_parameters()
        if self._reads_stream(source, n_samples):
            checked = self._validation_copy()
            batches = (  # each is validated as it is read: the first sets columns of `checked`
                checked._chunks_of(*split_chunk(part), reset=place == 0)
                for place, part in enumerate(source)
            )
            return self._fit_stream(batches, checked)
        chunks = self._chunks_of_source(source, n_samples, n_features)
        return self._fit_units(chunks, {"n_features_in_": n_features})

    @available_if(reads_batches)
    @around_fit
    @under_own_errors
    def partial_fit(
        self,
        X: ArrayLike | sp.spmatrix,
        y: object = None,
        *,
        groups: ArrayLike | None = None,
        n_samples: int | None = None,
        **unsupported: object,
    ) -> "PrivateTensorPowerMethod":
        """Learn from one more batch of samples that no other batch contains, by one power step.

        A batch of much less precision than others waits, and makes a step with the next.

        ``n_batches_needed_`` batches find all components; later ones polish them. As batches are
        disjoint, the whole stream is as private as one batch, and charged once.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples in random order: every batch stands for all. The caller has to see that batches
            are disjoint, and with ``neighbours="add_remove"`` that no sample decides in which batch
            another one is. The number of batches is public.
        y : ignored
        groups : array-like of shape (n_samples,), optional
            As for :meth:`fit`, in every batch or in none. The caller has to see that no group is in
            two batches: no label is kept.
        n_samples, **unsupported
            As for :meth:`fit`.

        Returns
        -------
        self : PrivateTensorPowerMethod

        Raises
        ------
        AttributeError, ValueError
            As :meth:`fit`, or if the perturbation reads all data at once, or epsilon, delta,
            data_norm or neighbours changed since the first batch.
        """
        checked = self._checked_copy(X, n_samples, unsupported, "partial_fit")
        stream = getattr(self, "_stream", None)
        if stream is not None:
            settings = (self.epsilon, self.delta, self.data_norm)
            inputs.check_same("epsilon, delta and data_norm", stream.settings, settings)
        batch = checked._chunks_of(X, groups, n_samples, reset=stream is None)
        earlier = None if stream is None else self.privacy_report_  # on the batches so far
        fitted = self._fitted_to_batch(batch, stream, base.column_attributes(checked), earlier)
        after = fitted.attributes["_stream"]
        if after.method.is_complete:  # before that, more batches may come
            said = warnings_of_stream(after, self.n_components)
            fitted = replace(fitted, warnings=(*fitted.warnings, *said))
        return self._publish_result(fitted)

    def fit_tensor(self, T: ArrayLike, **unsupported: object) -> Self:
        """Decompose a symmetric tensor, with one entry and its permutations protected.

        Parameters
        ----------
        T : array-like of shape (d, d, d)
            Symmetric tensor of finite numbers.
        **unsupported : object
            Refused: ``groups`` cannot be persons, as the units are entries.

        Returns
        -------
        self : PrivateTensorPowerMethod

        Raises
        ------
        TypeError, ValueError, BudgetError
            As :meth:`fit`, and for ``neighbours="add_remove"``; no budget is spent.

        Notes
        -----
        **Privacy.** Neighbours differ in one entry and its permutations (Wang & Anandkumar, 2016,
        definition 4.2). A person behind many entries is not protected.
        """
        base.check_arguments(self, unsupported, "fit_tensor")
        self._check_parameters("fit_tensor")
        if self._number_is_private:
            raise ValueError(
                f"fit_tensor of {type(self).__name__} needs neighbours='replace_one': a tensor has "
                "all of its entries, in a public shape."
            )
        if self.data_norm == "auto":
            raise ValueError(
                "fit_tensor needs data_norm to be a number, the largest change of an entry, or "
                "None for 1: nothing in a tensor shows it. Got 'auto'."
            )
        bound = 1.0 if self.data_norm is None else float(self.data_norm)
        tensor = symmetric_tensor(T, bound)
        plan = plan_tensor(self, len(tensor))
        capped = base.warnings_of_cap(self.n_components, len(tensor))
        with self._session(
            TensorChunk(tensor_oracle(tensor)), plan.releases, unit="entry",
            neighbours=f"tensors that differ by {bound:g} in each of the six orders of one entry",
            expected=capped,
        ) as ask:  # fmt: skip
            fitted = fit_to_tensor(ask, plan, bound)
        columns = {"n_features_in_": len(tensor)}
        return self._publish_result(self._with_report(ask, fitted, columns))

    def transform(self, X: ArrayLike | sp.spmatrix) -> Any:
        """Projections of samples on the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The caller's own samples, scaled as those of the fit; nothing of them is kept. For a
            Dask collection the result is a Dask array, not computed yet.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
            ``X @ components_.T``, in the precision of `X`.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazy_rows(self, X, "transform", len(self.components_))
        found = np.asarray(self._validated_rows(X, reset=False) @ self.components_.T)
        return found.astype(inputs.precision_of(X), copy=False)

    @property
    def in_brief(self) -> str:
        """Say how many of the components asked for were found."""
        check_is_fitted(self)
        return f"{self.n_components_} of {counted(self.n_components, 'component')} were found."

    def score_samples(self, X: ArrayLike | sp.spmatrix) -> Floats:
        """Score of each sample under the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, scaled as those of the fit.

        Returns
        -------
        ndarray of shape (n_samples,)
            The mean is ``|T|^2 - |T - sum_j w_j v_j (x) v_j (x) v_j|^2`` for the third moment T of
            the samples. Each depends on its own sample alone.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazy_rows(self, X, "score_samples")
        samples = self._validated_rows(X, reset=False)
        # |T|^2 - |T - M|^2 = 2 <T, M> - |M|^2 for the model M = sum_j w_j v_j v_j v_j, and a sample
        # has <x x x, v v v> = (x'v)^3.
        projections, weights = np.asarray(samples @ self.components_.T), self.weights_
        gram = (self.components_ @ self.components_.T) ** 3
        return 2 * (projections**3) @ weights - weights @ gram @ weights

    @under_own_errors
    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Least-norm samples with given projections on the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components_)
            Projections, as :meth:`transform` returns them.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            In the span of ``components_``; exact for samples in that span.

        Raises
        ------
        ValueError
            If `X` is no table of finite numbers with a column per component.
        """
        check_is_fitted(self)
        refuse_other_columns(X, self.get_feature_names_out().tolist())
        projections = check_array(X, dtype=np.float64, input_name="X")
        if projections.shape[1] != len(self.components_):
            raise ValueError(
                f"X must have {counted(len(self.components_), 'column')}, one per component; got "
                f"{projections.shape[1]}."
            )
        return np.asarray(projections @ np.linalg.pinv(self.components_).T)

    @under_own_errors
    def forecast(self, n_samples: int, n_features: int) -> Forecast:
        """Forecast the noise of a fit from public numbers.

        Parameters
        ----------
        n_samples, n_features : int
            Size of the data to come. Of a private number (`neighbours`) give a noisy count.

        Returns
        -------
        Forecast
            Noise of each release beside the signal of ``n_components`` equally likely components of
            norm ``data_norm / 2`` (for ``"auto"`` 1/2), and the least number of samples that would
            be enough.

        Examples
        --------
        >>> from sktensor_dp import PrivateTensorPowerMethod
        >>> model = PrivateTensorPowerMethod(5, data_norm=1.0)
        >>> model.forecast(200_000, 20).enough
        True
        """
        self._check_parameters()
        check_sizes(n_samples=n_samples, n_features=n_features)
        self._warn_of_budget()
        question = Question.of(self, n_samples=n_samples, n_features=n_features)
        return forecast_components(self, n_samples, n_features, question)

    def _check_combined(self, method: str = "fit") -> None:
        of_methods = {"partial_fit": ("auto", "stream"), "fit_tensor": ("auto", "iteration")}
        allowed = of_methods.get(method, PERTURBATIONS)
        if self.perturbation not in allowed:
            raise ValueError(
                f"{method} of {type(self).__name__} needs perturbation to be one of "
                f"{list(allowed)}, got {self.perturbation!r}."
            )
        if method not in ("fit_tensor", "load"):
            check_data_norm(self)

    def _fit_table(self, checked: Self, X: Any, groups: Any, n_samples: int | None) -> Self:
        """Fit to a table; for ``"stream"`` to random batches of its rows."""
        if self.perturbation != "stream":
            return super()._fit_table(checked, X, groups, n_samples)
        if is_dask(X):
            raise ValueError(
                "perturbation='stream' deals rows to batches at random, which are in partitions "
                "here. Pass batches that stand for all rows to partial_fit."
            )
        given = X
        X = checked._validated_rows(given, reset=True, fits=True, grouped=groups is not None)
        labels = inputs.checked_groups(groups, given, X.shape[0], self.neighbours)
        n_units = X.shape[0] if labels is None else len(distinct(labels)[0])
        inputs.check_counted_alike(given, self.neighbours, n_units, grouped=groups is not None)
        plan = plan_components(self, X.shape[1], "stream")
        batches = random_batches(
            X,
            plan.n_batches,
            self.random_state,
            number_is_private=self._number_is_private,
            groups=labels,
        )
        return self._fit_stream(batches, checked)

    def _reads_stream(self, source: object, n_samples: int | None) -> bool:
        """True if each chunk of `source` is a batch of a stream, which is read once."""
        is_partitioned = isinstance(source, PartitionedSource)
        if self.perturbation != "stream":
            # "auto" reads a stream if the number of rows is needed and not given; of a partitioned
            # source it must be given.
            unannounced = n_samples is None and not self._number_is_private and not is_partitioned
            return self.perturbation == "auto" and unannounced
        if is_partitioned:
            raise TypeError(
                "source must be an iterable of batches for perturbation='stream', got a "
                f"{type(source).__name__}, whose parts other processes read."
            )
        return True

    def _fit_units(self, chunks: SampleChunks, columns: Mapping[str, object]) -> Self:
        """Fit to units that may be read as often as needed, and publish."""
        plan = plan_components(self, chunks.n_features, self.perturbation)
        check_memory(plan)
        capped = base.warnings_of_cap(self.n_components, chunks.n_features)
        with self._session(chunks, plan.releases, expected=capped) as ask:
            fitted = fit_samples(ask, plan)
        return self._publish_result(self._with_report(ask, fitted, columns))

    def _fit_stream(self, batches: Iterable[SampleChunks], checked: object) -> Self:
        """Learn from each batch of a stream; set fitted attributes after the last."""
        state: Mapping[str, Any] = {}
        said: list[Warning] = []
        process = OneProcess()
        for batch in read_each(batches, "The source of chunks"):
            process.check()
            # The first batch pays for all. Only this loop holds the state: no copy of it can go on
            # with other batches, which nobody would pay for.
            fitted = self._fitted_to_batch(
                batch, state.get("_stream"), base.column_attributes(checked),
                state.get("privacy_report_"), paid_by_earlier_batch=bool(state),
            )  # fmt: skip
            state = fitted.attributes
            said.extend(fitted.warnings)
        if not state:
            raise ValueError("the source of chunks yielded none.")
        said.extend(warnings_of_stream(state["_stream"], self.n_components))
        return self._publish_result(base.FitResult(state, tuple(said)))

    def _fitted_to_batch(
        self,
        batch: SampleChunks,
        stream: ComponentStream | None,
        columns: Mapping[str, object],
        earlier: PrivacyReport | None,
        *,
        paid_by_earlier_batch: bool = False,
    ) -> base.FitResult:
        """Result of one more batch; nothing is set on this estimator.

        `stream` and `earlier` are the state and the report after the batches before it, if any.
        """
        if earlier is not None:
            inputs.check_same_unit(earlier, self.neighbours, grouped=batch.grouped)
        plan = plan_components(self, batch.n_features, "stream")
        check_memory(plan)
        ticket = None if stream is None else stream.ticket
        expected: tuple[Warning, ...] = ()
        if earlier is None:
            expected = base.warnings_of_cap(self.n_components, batch.n_features)
        elif not paid_by_earlier_batch:
            expected = inputs.warnings_of_returning_persons(earlier)
        with self._session(
            batch, plan.releases, ticket=ticket, paid_by_earlier_batch=paid_by_earlier_batch,
            expected=expected,
        ) as ask:  # fmt: skip
            fitted = fit_power_step(ask, plan, stream)
        return self._with_report(ask, fitted, columns, earlier)

    def _public_facts(self) -> PublicFacts:
        return PublicFacts(
            self._unit, capped_by_columns=True, score="third_moment_fit",
            worst_case=self._worst_case,
        )  # fmt: skip

    def _worst_case(self, n_units: int | None) -> Neighbours:
        shuffled_by = self.random_state if self.perturbation == "stream" else None
        return worst_samples(self, n_units, _minus_moment, shuffled_by)


def _minus_moment(fitted: Any) -> float:
    """Minus the fitted third moment along the first axis, on which the neighbours differ."""
    return -float(np.sum(fitted.weights_ * fitted.components_[:, 0] ** 3))


def symmetric_tensor(T: ArrayLike, bound: float) -> Floats:
    """Tensor as floats, checked, with entries clipped to a large multiple of `bound`."""
    tensor = inputs.dense_tensor(T, "; fit() takes samples")
    if tensor.ndim != 3:
        raise ValueError(f"T must have shape (d, d, d), got shape {tensor.shape}.")
    tensor_oracle(tensor)  # refuses what is not a finite cube
    largest = TensorChunk.largest_ratio * bound
    tensor = np.clip(tensor, -largest, largest)
    if not is_symmetric(tensor):
        raise ValueError(
            "T must be symmetric, up to rounding. "
            "sktensor_dp.tensor.symmetrize averages a tensor over its modes."
        )
    return tensor
