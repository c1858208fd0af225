"""What a fitted mixture is used for: clusters, samples, criteria of its size."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from sktensor_dp.estimator.lazy_tables import computed, lazy_rows
from sktensor_dp.estimator.parameters import check_sizes
from sktensor_dp.power_method.inference import coordinates, sampled_counts, sampled_gaussians
from sktensor_dp.power_method.released import ReleasedComponents
from sktensor_dp.tensor.arrays import Floats, Integers

MIXTURES = ("single_topic", "gaussian_mixture")


def _needs(*moments: str) -> Callable[[Any], bool]:
    def check(estimator: Any) -> bool:
        if estimator.moment in moments:
            return True
        raise AttributeError(
            f"this needs moment to be one of {list(moments)}, got {estimator.moment!r}."
        )

    return check


class ReleasedMixtures(ReleasedComponents):
    """Mixtures, and projections, that were released: all of it is post-processing."""

    @available_if(_needs(*MIXTURES))
    def predict(self, X: ArrayLike | sp.spmatrix) -> Integers:
        """Most probable component of each sample.

        Only with ``moment="single_topic"`` or ``"gaussian_mixture"``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The caller's own samples; nothing of them is kept. For a Dask array or data
            frame the result is a Dask array that is not computed yet.

        Returns
        -------
        ndarray of shape (n_samples,)
            Rows of ``components_``: 0 is the component of the largest weight.

        Notes
        -----
        **Privacy.** The components are released; what is said of `X` is the caller's, and no
        noise protects it, as for :meth:`transform`.
        """
        check_is_fitted(self)
        if hasattr(X, "to_delayed"):
            return lazy_rows(self, X, "predict").astype(np.intp)
        shares = coordinates(self._validated(X, reset=False), self.moment, self._found())
        return np.argmax(shares, axis=1)

    @available_if(_needs(*MIXTURES))
    def sample(
        self, n_samples: int = 1, *, document_length: int = 100
    ) -> tuple[Floats | sp.csr_matrix, Integers]:
        """Draw samples of the fitted mixture.

        Only with ``moment="single_topic"`` or ``"gaussian_mixture"``.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        document_length : int, default=100
            With ``moment="single_topic"``: words of each document.

        Returns
        -------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            Points (``"gaussian_mixture"``), or a sparse matrix of counts.
        components : ndarray of shape (n_samples,)
            Which component each is of.

        Raises
        ------
        ValueError
            If a number is not an integer of at least 1.

        Notes
        -----
        Drawn with ``random_state``, so that an integer gives the same samples every time.

        **Privacy.** Made of released values alone: synthetic data that cost nothing more. They
        are as true as the mixture is, and no more.

        Examples
        --------
        >>> import numpy as np
        >>> from sktensor_dp import PrivateTensorPowerMethod
        >>> X = np.repeat([[3.0, 0.0, 1.0], [0.0, 3.0, 1.0]], 5000, axis=0)
        >>> model = PrivateTensorPowerMethod(
        ...     2, moment="gaussian_mixture", data_norm=6.0, random_state=0
        ... ).fit(X + np.random.default_rng(0).standard_normal(X.shape))
        >>> points, components = model.sample(4)
        >>> points.shape, components.shape
        ((4, 3), (4,))
        """
        check_is_fitted(self)
        check_sizes(n_samples=n_samples, document_length=document_length)
        rng, found = check_random_state(self.random_state), self._found()
        shares = found.weights / found.weights.sum()
        chosen = rng.choice(len(shares), size=n_samples, p=shares)
        if self.moment == "single_topic":
            return sampled_counts(found.components, chosen, document_length, rng), chosen
        return sampled_gaussians(found, chosen, rng), chosen

    @available_if(_needs(*MIXTURES))
    def bic(self, X: ArrayLike | sp.spmatrix) -> float:
        """Bayesian information criterion of the mixture on samples of the caller; lower is better.

        Only with ``moment="single_topic"`` or ``"gaussian_mixture"``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, best of those that were not used in the fit.

        Returns
        -------
        float
            As of scikit-learn's ``GaussianMixture.bic``.

        Notes
        -----
        **Privacy.** As :meth:`score`, it is not private: it is computed on `X` without noise. On
        data to be protected use ``released_bic_``, which is made of what the fit released, or
        :func:`~sktensor_dp.make_private_scorer`.
        """
        return self._criterion(X, lambda n: math.log(n))

    @available_if(_needs(*MIXTURES))
    def aic(self, X: ArrayLike | sp.spmatrix) -> float:
        """Akaike's information criterion on samples of the caller; not private, as :meth:`bic`.

        Only with ``moment="single_topic"`` or ``"gaussian_mixture"``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        float
            Lower is better.
        """
        return self._criterion(X, lambda _: 2.0)

    @available_if(_needs("raw"))
    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Shortest samples that have some projections.

        Only with ``moment="raw"``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components_)
            Projections, as :meth:`transform` returns them.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            In the span of ``components_``, which need not be orthogonal: of a sample in that
            span, its projections give back the sample.

        Raises
        ------
        ValueError
            If `X` is no table of finite numbers with a column per component.
        """
        check_is_fitted(self)
        shown = check_array(X, dtype=np.float64, input_name="X")
        if shown.shape[1] != len(self.components_):
            raise ValueError(
                f"X must have {len(self.components_)} columns, one per component; got "
                f"{shown.shape[1]}."
            )
        return np.asarray(shown @ np.linalg.pinv(self.components_).T)

    def _criterion(self, X: Any, price: Callable[[int], float]) -> float:
        """Minus twice the log-likelihood, and a price for each parameter."""
        scores = np.asarray(computed(self.score_samples(X), "Scoring"))
        k, d = self.components_.shape
        # Shares; then means and variances, or probabilities that sum to one.
        n_parameters = k - 1 + k * (d + 1 if self.moment == "gaussian_mixture" else d - 1)
        return float(-2 * scores.sum() + n_parameters * price(len(scores)))
