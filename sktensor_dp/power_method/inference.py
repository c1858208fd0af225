"""What fitted components say of samples."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.topics.inference import document_log_likelihood, topic_posterior

__all__ = ["ComponentInferenceMixin"]

Floats = NDArray[np.float64]


class ComponentInferenceMixin(TransformerMixin):
    """Projections, responsibilities and likelihoods from released components.

    Nothing here touches training data. A TransformerMixin itself, because
    ``set_output`` wraps ``transform`` only in a class that is one where it is defined.
    """

    moment: str
    components_: Floats
    weights_: Floats
    covariances_: Floats

    if TYPE_CHECKING:  # the estimator has it

        def _validated(self, X: Any, *, reset: bool) -> Any: ...

    def transform(self, X: ArrayLike | sp.spmatrix) -> Floats:
        """Responsibilities under the mixture models, projections otherwise.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The caller's own samples; nothing of them is kept.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
            For ``moment="raw"``, ``X @ components_.T``; otherwise the probability of
            each component given the sample, rows summing to 1.
        """
        check_is_fitted(self)
        samples = self._validated(X, reset=False)
        if self.moment == "raw":
            return np.asarray(samples @ self.components_.T)
        if self.moment == "single_topic":
            return topic_posterior(samples, self.components_, self.weights_)
        joint = self._log_joint(samples)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

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
        return float(self.score_samples(X).mean())

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
        samples = self._validated(X, reset=False)
        if self.moment == "single_topic":
            return document_log_likelihood(samples, self.components_, self.weights_, None)
        if self.moment == "gaussian_mixture":
            return np.asarray(logsumexp(self._log_joint(samples), axis=1))
        seen = np.asarray(samples @ self.components_.T)
        gram = (self.components_ @ self.components_.T) ** 3
        return 2 * (seen**3) @ self.weights_ - self.weights_ @ gram @ self.weights_

    def _log_joint(self, samples: Any) -> Floats:
        """Logarithm of the density of each sample with each component."""
        means, variances = self.components_, self.covariances_
        squares = samples.multiply(samples).sum(axis=1) if sp.issparse(samples) else None
        if squares is None:
            squares = np.square(samples).sum(axis=1)
        distances = np.asarray(squares).reshape(-1, 1) - 2 * np.asarray(samples @ means.T)
        distances = np.maximum(distances + np.square(means).sum(axis=1), 0.0)
        spread = samples.shape[1] * np.log(2 * math.pi * variances)
        weights = np.log(np.maximum(self.weights_, 1e-300))
        return weights - 0.5 * (distances / variances + spread)
