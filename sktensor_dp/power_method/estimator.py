"""Private tensor power method: components of third moments."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from sktensor_dp.estimator.base import NONE, columns_of
from sktensor_dp.estimator.forecast import Forecast, former_name
from sktensor_dp.estimator.hooks import Neighbours
from sktensor_dp.estimator.input_errors import check_sizes
from sktensor_dp.estimator.input_kinds import dense_tensor
from sktensor_dp.estimator.parameters import Constraint, InstanceOf, Number, OneOf
from sktensor_dp.power_method.forecast import forecast_moments
from sktensor_dp.power_method.inference import ComponentInferenceMixin
from sktensor_dp.power_method.learning import PERTURBATIONS
from sktensor_dp.power_method.saved import SAVED_COMPONENTS
from sktensor_dp.power_method.stream import PowerStreamMixin
from sktensor_dp.power_method.worst_case import worst_samples
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.spectral_topics.forecast import forecast_topics
from sktensor_dp.statistics.counts import CountChunks
from sktensor_dp.statistics.power_iterations import TensorChunk
from sktensor_dp.statistics.sample_moments import Embedding
from sktensor_dp.statistics.samples import SampleChunks
from sktensor_dp.tensor.oracle import tensor_oracle

__all__ = ["PrivateTensorPowerMethod"]

Floats = NDArray[np.float64]

# Relative asymmetry that sums in another order leave.
LARGEST_ASYMMETRY = 1e-8


class PrivateTensorPowerMethod(
    PowerStreamMixin,
    ComponentInferenceMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Components of the third moment of data, found from private releases.

    A symmetric tensor ``sum_j w_j v_j (x) v_j (x) v_j`` with orthonormal or whitened
    components is decomposed by the power method. The tensor is a mean over samples;
    noise is added to it in few dimensions, in all of them, or to every power step.

    Parameters
    ----------
    n_components : int, default=5
        Number of components; at most as many as features are fitted.
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
    accountant : BudgetAccountant or None, default=None
        Charged before noise is drawn.
    random_state : int, RandomState or None, default=None
        Seeds starts, and how :meth:`fit` splits rows into batches for ``"stream"``.
        It never seeds noise.
    verbose : int, default=0
        Whether to report releases on standard error as they are made.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        Unit vectors (``"raw"``), distributions over words (``"single_topic"``), or
        means (``"gaussian_mixture"``).
    weights_ : ndarray of shape (n_components_,)
        Eigenvalues (``"raw"``) or probabilities, in decreasing order.
    covariances_ : ndarray of shape (n_components_,)
        Variance of each Gaussian along a direction (``"gaussian_mixture"`` only).
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

    Raises
    ------
    BudgetError
        If the accountant has too little left; nothing has been read then.

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

    **Privacy.** *Unit*: one sample (a row; a document for counts); one entry for
    :meth:`fit_tensor`. *Neighbours*: data sets of equally many samples that differ in
    one; tensors that differ in one entry and its permutations (Wang & Anandkumar,
    Definition 4.2). *Public*: the shape of the data, sizes of batches, and all
    parameters, ``data_norm`` among them: do not set it to the largest norm in the
    data. *Releases*: ``second_moments`` and ``third_moment_histogram`` with
    ``projected_third_moments``, or with ``third_moments``; ``power_iterations``;
    ``tensor_power_iterations``; for counts those of :class:`PrivateSpectralLDA`.
    *Not covered*: running time; what ``transform`` and ``score`` say of the samples
    handed to them; several samples of one person; samples in several batches of a
    stream; input that is not finite numbers, for which errors are raised.

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

    _saved_state = SAVED_COMPONENTS
    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "n_components": [Number(1, math.inf, integer=True)],
        "moment": [OneOf("raw", "single_topic", "gaussian_mixture")],
        "whiten": [InstanceOf(bool)],
        "perturbation": [OneOf(*PERTURBATIONS)],
        # Sixth powers of it, and of a small share of it, stay numbers that can be held.
        "data_norm": [Number(1e-40, 1e40), NONE],
        "n_restarts": [Number(1, math.inf, integer=True)],
        "max_iter": [Number(1, math.inf, integer=True), NONE],
    }

    def __init__(
        self,
        n_components: int = 5,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        moment: str = "raw",
        whiten: bool = True,
        perturbation: str = "auto",
        data_norm: float | None = None,
        n_restarts: int = 10,
        max_iter: int | None = None,
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.moment = moment
        self.whiten = whiten
        self.perturbation = perturbation
        self.data_norm = data_norm
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike | sp.spmatrix, y: Any = None) -> "PrivateTensorPowerMethod":
        """Learn components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; counts of words for ``moment="single_topic"``.
        y : None
            Ignored.

        Returns
        -------
        self : PrivateTensorPowerMethod
            The fitted model.

        Raises
        ------
        ValueError
            If a parameter or their combination is wrong, or `X` is not a matrix of
            finite numbers (counts); no budget is spent.
        BudgetError
            If the accountant has too little left; no budget is spent.
        """
        self._check_combination(PERTURBATIONS, "fit")
        witness = self._witness()
        X = witness._validated(X, reset=True)
        n_samples, n_features = X.shape
        if self.moment == "single_topic":
            chunks: CountChunks | SampleChunks = CountChunks(X, n_samples, n_features)
        elif self._plan(n_samples, n_features, self.perturbation).perturbation == "stream":
            return self._fit_stream(self._batches(X), witness)
        else:
            chunks = SampleChunks(X, n_samples, n_features)
        return self._live(self._planned_fit(chunks, columns_of(witness)))

    def fit_tensor(self, T: ArrayLike) -> "PrivateTensorPowerMethod":
        """Decompose a symmetric tensor whose entries are private.

        Parameters
        ----------
        T : array-like of shape (d, d, d)
            Symmetric tensor.

        Returns
        -------
        self : PrivateTensorPowerMethod
            The fitted model.

        Raises
        ------
        ValueError
            If a parameter is wrong, or `T` is not a symmetric cube of finite numbers;
            no budget is spent.

        Notes
        -----
        Protects one entry of a given tensor (and its permutations), by Algorithm 3 of
        Wang & Anandkumar: not a person behind many entries.
        """
        self._check_combination(("auto", "iteration"), "fit_tensor")
        if self.moment != "raw":
            raise ValueError(f"fit_tensor needs moment='raw', got {self.moment!r}.")
        tensor = dense_tensor(T, "; fit() takes samples")
        if tensor.ndim != 3:
            raise ValueError(f"T must have shape (d, d, d), got shape {tensor.shape}.")
        tensor_oracle(tensor)  # refuses what is not a finite cube
        largest = TensorChunk.largest_ratio * self._bound()
        tensor = np.clip(tensor, -largest, largest)
        if _asymmetry(tensor) > LARGEST_ASYMMETRY:
            raise ValueError(
                "T must be symmetric, up to rounding. "
                "sktensor_dp.tensor.symmetrize averages a tensor over its modes."
            )
        chunk = TensorChunk(tensor_oracle(tensor))
        return self._live(self._planned_tensor(chunk, tensor.shape[0]))

    def forecast(self, n_samples: int, n_features: int) -> Forecast:
        """Say what a fit would release and how well, from public numbers alone.

        Parameters
        ----------
        n_samples, n_features : int
            Size of the data to come.

        Returns
        -------
        Forecast
            Noise of each release against the signal that ``n_components`` equally
            likely components of norm ``data_norm / 2`` have (for counts: documents of
            100 words), and the least number of samples that would be enough.

        Examples
        --------
        >>> from sktensor_dp import PrivateTensorPowerMethod
        >>> model = PrivateTensorPowerMethod(5, moment="gaussian_mixture", data_norm=9.0)
        >>> model.forecast(200_000, 20).enough
        True
        """
        self._check_combination(PERTURBATIONS, "forecast")
        check_sizes(n_samples=n_samples, n_features=n_features)
        if self.moment == "single_topic":
            topics = self._topic_plan(n_samples, n_features)
            return forecast_topics(topics, n_samples, n_features, 100.0, 0.0, self.delta == 0)
        plan = self._plan(n_samples, n_features, self.perturbation)
        embedding = Embedding(self._radius(), self._offset())
        return forecast_moments(plan, n_samples, n_features, embedding, self.delta == 0)

    plan = former_name(forecast, "plan")

    def _unit_score(self) -> str:
        return "log_likelihood" + "_per_token" * (self.moment == "single_topic")

    def _worst_case(self, n_units: int | None) -> Neighbours:
        shuffled_by = self.random_state if self.perturbation == "stream" else None
        return worst_samples(self.data_norm, shuffled_by, n_units)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        counts = self.moment == "single_topic"
        tags.input_tags.positive_only = counts
        # Counts are whole numbers; this tag says it, and scikit-learn's checks round theirs.
        tags.input_tags.categorical = counts
        return tags


def _asymmetry(tensor: Floats) -> float:
    """Largest relative change when two neighbouring modes are exchanged."""
    norm = float(np.linalg.norm(tensor))
    exchanged = (tensor.transpose(1, 0, 2), tensor.transpose(0, 2, 1))
    return max(float(np.linalg.norm(tensor - other)) for other in exchanged) / max(norm, 1e-300)
