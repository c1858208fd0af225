"""What fitted components say of themselves and of samples, from released values alone."""

from typing import Any

import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.estimator.inputs import precision_of
from sktensor_dp.estimator.lazy_tables import computed, lazy_rows
from sktensor_dp.power_method.inference import coordinates, fits
from sktensor_dp.power_method.parameters import ComponentParameters
from sktensor_dp.power_method.recipe import FittedComponents
from sktensor_dp.tensor.arrays import Floats


class ReleasedComponents(
    ComponentParameters, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Components that were released: all of it is post-processing."""

    components_: Floats
    weights_: Floats

    def transform(self, X: ArrayLike | sp.spmatrix) -> Any:
        """Responsibilities under the mixture models, projections otherwise.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The caller's own samples; nothing of them is kept. For a Dask array or data
            frame the result is a Dask array that is not computed yet.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
            For ``moment="raw"``, ``X @ components_.T``; otherwise the probability of
            each component given the sample, rows summing to 1. In single precision for an
            `X` of single precision.
        """
        check_is_fitted(self)
        if hasattr(X, "to_delayed"):
            return lazy_rows(self, X, "transform", len(self.components_))
        found = coordinates(self._validated(X, reset=False), self.moment, self._found())
        return found.astype(precision_of(X), copy=False)

    def score(self, X: ArrayLike | sp.spmatrix, y: Any = None) -> float:
        """How well the components fit samples; higher is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, best of those that were not used in the fit.
        y : None
            Ignored.

        Returns
        -------
        float
            Mean log-likelihood per sample of the mixture models. For ``moment="raw"``
            how much closer the components come to the samples' third moment T than
            zero does: ``|T|^2 - |T - sum_j w_j v_j (x) v_j (x) v_j|^2``, at a cost
            linear in the samples.
        """
        return float(computed(self.score_samples(X).mean(), "Scoring"))

    def score_samples(self, X: ArrayLike | sp.spmatrix) -> Floats:
        """How well the components fit each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            What :meth:`score` is the mean of; each depends on its own sample alone.
        """
        check_is_fitted(self)
        if hasattr(X, "to_delayed"):
            return lazy_rows(self, X, "score_samples")
        samples = self._validated(X, reset=False)
        return fits(samples, self.moment, self._found())

    def _found(self) -> FittedComponents:
        variances = getattr(self, "covariances_", None)
        return FittedComponents(self.components_, self.weights_, len(self.weights_), variances)
