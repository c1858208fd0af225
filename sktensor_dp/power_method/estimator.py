"""Private tensor power method: components of third moments."""

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from sktensor_dp.estimator.base import columns_of
from sktensor_dp.estimator.forecast import Forecast
from sktensor_dp.estimator.grouped_rows import check_same
from sktensor_dp.estimator.inputs import check_source, unchecked
from sktensor_dp.estimator.parameters import check_sizes
from sktensor_dp.power_method.forecast import forecast_moments
from sktensor_dp.power_method.inputs import TOO_WIDE
from sktensor_dp.power_method.mixtures import ReleasedMixtures
from sktensor_dp.power_method.parameters import PERTURBATIONS
from sktensor_dp.power_method.plan import is_stream
from sktensor_dp.power_method.samples import SampleFits
from sktensor_dp.power_method.saved import SavedComponents
from sktensor_dp.power_method.whole_tensor import TensorFits
from sktensor_dp.queries.units import split_chunk
from sktensor_dp.spectral_topics.forecast import forecast_topics


def reads_batches(estimator: Any) -> bool:
    """Whether batches can be handed over one by one; why not, if not."""
    if estimator.moment == "raw" and estimator.perturbation in ("auto", "stream"):
        return True
    raise AttributeError(
        "partial_fit needs moment='raw' and perturbation 'auto' or 'stream'; got "
        f"{estimator.moment!r} and {estimator.perturbation!r}."
    )


class PrivateTensorPowerMethod(SampleFits, TensorFits, ReleasedMixtures):
    """Components of the third moment of data, found from private releases.

    A symmetric tensor ``sum_j w_j v_j (x) v_j (x) v_j`` with orthonormal or whitened
    components is decomposed by the power method. The tensor is a mean over samples;
    noise is added to it in few dimensions, in all of them, or to every power step.

    Parameters
    ----------
    n_components : int, default=5
        Number of components; at most as many as features are fitted, and more Gaussians
        than features are refused.
    epsilon : float, default=1.0
        Privacy parameter in (0, 1e12]. ``float("inf")`` fits without noise.
    delta : float, default=1e-6
        Privacy parameter in [0, 1); well below one over the number of samples. 0 asks
        for pure differential privacy: Laplace and spherical Laplace noise.
    moment : {"raw", "single_topic", "gaussian_mixture"}, default="raw"
        What the third moment is of. ``"raw"``: E[x (x) x (x) x] of the rows.
        ``"single_topic"``: rows are counts of words in documents of one topic each;
        components are the topics' distributions. ``"gaussian_mixture"``: spherical
        Gaussians, each with its own variance; components are their means, which must
        be affinely independent.
    whiten : bool, default=True
        For ``"raw"``: whether the second moment E[x x'] has the same components and
        makes them orthogonal. False takes them to be orthonormal. The mixture models
        are always whitened; ``"iteration"`` and ``"stream"`` never are.
    perturbation : str, default="auto"
        Where noise is added. ``"whitened_tensor"``: to the second moment, then to the
        third in the k dimensions it leads to, clipped there. ``"moment_tensor"``: to
        both in all dimensions (AGN; with ``delta=0`` AVN). ``"iteration"``: to every
        power step, each of which reads all data. ``"stream"``: to every power step,
        each of which reads a batch of its own, so that a whole fit costs each sample
        one query. ``"auto"`` is ``"whitened_tensor"`` for :meth:`fit`, or ``"stream"``
        beyond 16384 features; ``"stream"`` for :meth:`partial_fit`; ``"iteration"``
        for :meth:`fit_tensor`.
    data_norm : float or None, default=None
        Public Euclidean norm that rows are scaled down to; required unless rows are
        counts (``"single_topic"``), whose clips are chosen privately. For
        :meth:`fit_tensor`: largest change of an entry, by default 1.
    n_restarts : int, default=10
        Random starts of the power method for each component.
    max_iter : int or None, default=None
        Iterations from each start. None chooses by public numbers: 100 once a tensor
        has been released, as they cost nothing then; ``ceil(log2(n_features)) + 4``
        where every one is a release.
    max_rows_per_group, max_batches_per_group : int, default=None and 1
        Where ``groups`` are given: read at most so many rows of each, chosen in secret; in
        how many batches of a stream one may be, each of which gets a share of the budget.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        Whether one sample is replaced, or one more (``docs/guarantee.md``): then a noisy
        count comes first, of every batch of a stream; :meth:`fit_tensor` is refused.
    accountant : BudgetAccountant or None, default=None
        Charged before noise is drawn.
    random_state : int, RandomState or None, default=None
        Seeds starts, and how :meth:`fit` splits rows into batches for ``"stream"`` (secret
        coins deal out groups, and units that come and go). It never seeds noise.
    verbose : int, default=0
        Whether to report releases on standard error as they are made.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        Unit vectors (``"raw"``), distributions over words (``"single_topic"``), or
        means of norm ``data_norm`` at most (``"gaussian_mixture"``).
    weights_ : ndarray of shape (n_components_,)
        Eigenvalues (``"raw"``) or probabilities, in decreasing order.
    covariances_ : ndarray of shape (n_components_,)
        Variance of each Gaussian along a direction, at most ``data_norm ** 2 / n_features``
        (``"gaussian_mixture"`` only).
    released_bic_ : ndarray of shape (n_features,)
        Evidence of the released second moment for 1, 2, ... Gaussians, lower is better
        (``"gaussian_mixture"`` only; ``docs/components.md``).
    n_components_ : int
        Number of components fitted: fewer than asked for where released values show
        no more above their noise, or a stream has not found them all yet.
    privacy_report_ : PrivacyReport
        Every release with its noise and cost.
    n_iter_ : int
        Most iterations from each start: ``max_iter``, or what None chose.
    n_batches_needed_, n_batches_seen_ : int
        Batches after which all components are found, and read so far (``"stream"``).
    is_complete_ : bool
        Whether all components are found (``"stream"``).
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if `X` had string names.

    Warns
    -----
    NotEnoughDataWarning
        If released values show that the data was too small for ``n_components``
        at this epsilon.

    See Also
    --------
    PrivateSpectralLDA : Topics of documents of several topics each.
    sktensor_dp.tensor.robust_tensor_power_method : The kernel, without privacy.

    Notes
    -----
    Second and third moments are taken about the origin, not the mean.

    **Privacy.** *Unit*: one sample (a row; a document for counts); with ``groups`` one
    group with all its samples, whose number is private; one entry for
    :meth:`fit_tensor`. *Neighbours*: data sets that differ in one unit, or by one
    (`neighbours`); tensors that differ in one entry and its permutations (Wang & Anandkumar,
    Definition 4.2). *Public*: numbers of units and features, sizes of batches, and all
    parameters, ``data_norm`` among them: do not set it to the largest norm in the
    data. *Releases*: ``second_moments`` and ``third_moment_histogram`` with
    ``projected_third_moments``, or with ``third_moments``; ``power_iterations``;
    ``tensor_power_iterations``; for counts those of :class:`PrivateSpectralLDA`.
    *Not covered*: running time; what ``transform`` and ``score`` say of the samples
    handed to them; several samples of one person without ``groups``; samples in several
    batches of a stream; input that is not finite numbers, for which errors are raised.

    References
    ----------
    Y. Wang, A. Anandkumar, "Online and differentially-private tensor decomposition",
    NIPS 2016 (``"iteration"``: Algorithm 3; ``"stream"``: Algorithm 2). H. Imtiaz,
    A. D. Sarwate, "Improved algorithms for differentially private orthogonal tensor
    decomposition", ICASSP 2018 (``"moment_tensor"``). D. Hsu, S. M. Kakade, "Learning
    mixtures of spherical Gaussians: moment methods and spectral decompositions", ITCS
    2013 (``"gaussian_mixture"``).

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateTensorPowerMethod
    >>> rng = np.random.default_rng(0)
    >>> means = np.array([[4.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    >>> X = means[rng.integers(2, size=20000)] + rng.standard_normal((20000, 3))
    >>> model = PrivateTensorPowerMethod(
    ...     2, moment="gaussian_mixture", data_norm=8.0, epsilon=1.0, random_state=0
    ... ).fit(X)
    >>> found = model.components_[np.argsort(-model.components_[:, 0])]
    >>> bool(np.abs(found - means).max() < 0.5)
    True
    >>> model.transform(X[:3]).shape
    (3, 2)
    """

    _saved = SavedComponents

    def fit_chunks(
        self,
        source: Iterable[Any],
        *,
        n_samples: int | None = None,
        n_features: int | None = None,
    ) -> "PrivateTensorPowerMethod":
        """Learn components from chunks that need not fit into memory together.

        Parameters
        ----------
        source : iterable of array-likes or sparse matrices, or of pairs
            Chunks of rows, or pairs ``(X, groups)`` of rows and labels as :meth:`fit` takes
            them. For ``"stream"`` each is a batch and is read once, so a generator will do;
            a group must then not be in several. Otherwise all are read to see that they are
            what was announced (twice with groups), and once per release: a list or an
            object with ``__iter__``; rows of a group that lie in several chunks are held in
            memory from the first to the last.
        n_samples, n_features : int or None, default=None
            Rows, or groups, in all chunks together, and columns; public. Not needed for
            ``"stream"``, which ``"auto"`` is where they are not given. With
            ``neighbours="add_remove"`` the number of rows is private and must not be given.

        Returns
        -------
        self : PrivateTensorPowerMethod
            The fitted model.

        Raises
        ------
        TypeError
            If `source` has to be read several times and can be read once.
        ValueError
            If a parameter or chunk is wrong, or the shape not as announced; no budget is
            spent. A stream is charged for once its first batch has been validated.
        BudgetError
            If the accountant has too little left.
        """
        self._check_parameters()
        self._check_combination(PERTURBATIONS, "fit_chunks")
        if is_stream(self, source, n_samples):
            witness = self._witness()
            batches = (
                self._batch(witness, *split_chunk(part), first=place == 0)
                for place, part in enumerate(source)
            )
            return self._fit_stream(batches, witness, self.max_batches_per_group)
        check_source(source, n_samples, n_features, self.neighbours)
        assert n_features is not None
        if n_features > self._widest:
            raise ValueError(TOO_WIDE)
        chunks = self._parts(unchecked(source), n_samples, n_features)
        plan = partial(self._fit_of, chunks, {"n_features_in_": n_features})
        return self._live_on(chunks, plan)

    @available_if(reads_batches)
    def partial_fit(
        self,
        X: ArrayLike | sp.spmatrix,
        y: Any = None,
        *,
        groups: ArrayLike | None = None,
        n_samples: int | None = None,
        **unsupported: Any,
    ) -> "PrivateTensorPowerMethod":
        """Make one power step on one more batch of samples that no other batch contains.

        ``n_batches_needed_`` batches find all components; later ones polish them. As
        batches are disjoint, the whole stream is as private as one batch (parallel
        composition), and an accountant is charged once. Memory beside the batch is
        linear in the number of features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples in no particular order: every batch stands for all. The caller
            answers for batches being disjoint, and, with ``neighbours="add_remove"``, for no
            sample deciding in which batch another one is. How many batches there are is public.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), optional
            As for :meth:`fit`, in every batch or in none. A group must not be in more than
            ``max_batches_per_group`` batches, which the caller answers for: no label is
            kept.
        n_samples : int or None, default=None
            As for :meth:`fit`.
        **unsupported : object
            As for :meth:`fit`.

        Returns
        -------
        self : PrivateTensorPowerMethod
            The model after this batch.

        Raises
        ------
        AttributeError
            If the moment is not ``"raw"``, or the perturbation reads all data at once.
        ValueError
            As :meth:`fit`, or if epsilon, delta, data_norm or neighbours changed since the
            first batch, which is what an accountant was charged for.
        """
        witness = self._check_call(X, n_samples, unsupported)
        self._check_combination(("auto", "stream"), "partial_fit")
        stream, most = getattr(self, "_stream", None), self.max_batches_per_group
        if stream is not None:
            stream.check_budget(self.epsilon, self.delta, self.data_norm)
            check_same("max_batches_per_group", stream.max_batches, most)
        batch = self._batch(witness, X, groups, n_samples, first=stream is None)
        earlier = None if stream is None else self.privacy_report_
        return self._live(self._planned_batch(batch, stream, columns_of(witness), earlier, most))

    def forecast(self, n_samples: int, n_features: int, *, separation: float = 4.0) -> Forecast:
        """Say what a fit would release and how well, from public numbers.

        Parameters
        ----------
        n_samples, n_features : int
            Size of the data to come; a private number (`neighbours`) as it is released.
        separation : float, default=4.0
            For ``"gaussian_mixture"``: assumed distance of the means, in standard deviations of
            a component.

        Returns
        -------
        Forecast
            Noise of each release against the signal of ``n_components`` equally likely
            components, and the least number of samples that would be enough. Components have
            norm ``data_norm / 2``; those of a mixture are `separation` apart, with one sample in
            a hundred outside ``data_norm``; documents have 100 words.

        Examples
        --------
        >>> from sktensor_dp import PrivateTensorPowerMethod
        >>> model = PrivateTensorPowerMethod(5, moment="gaussian_mixture", data_norm=9.0)
        >>> model.forecast(200_000, 20).enough
        True
        """
        self._check_parameters()
        self._check_combination(PERTURBATIONS, "forecast")
        check_sizes(n_samples=n_samples, n_features=n_features)
        if not 0 < separation < math.inf:
            raise ValueError(f"separation must be a positive number, got {separation!r}.")
        if self.moment == "single_topic":
            topics = self._topic_plan(n_samples, n_features)
            return forecast_topics(
                topics, n_samples, n_features, 100.0, 0.0, self.delta == 0, self.neighbours
            )
        plan = self._plan(n_samples, n_features, self.perturbation)
        return forecast_moments(plan, n_samples, self._radius(), self.neighbours, separation)
