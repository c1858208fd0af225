"""What fitted topics say of documents."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.topics.inference import (
    document_log_likelihood,
    topic_posterior,
    variational_proportions,
)

__all__ = ["TopicInferenceMixin"]

Floats = NDArray[np.float64]

# Mean field steps per document, and the mean change of its parameters that ends them.
MAX_ITER, TOLERANCE = 100, 1e-3


class TopicInferenceMixin(TransformerMixin):
    """Proportions, likelihood and words of topics held in ``components_``.

    Nothing here touches training data: the topics are released, and the
    documents are the caller's. A TransformerMixin itself, because ``set_output``
    wraps ``transform`` only in a class that is one where it is defined.
    """

    components_: Floats
    topic_prior_: Floats
    n_features_in_: int

    if TYPE_CHECKING:  # the estimator has these

        def _validated(self, X: Any, *, reset: bool) -> sp.csr_matrix: ...
        def _concentration(self) -> float: ...

    def transform(self, X: ArrayLike | sp.spmatrix) -> Floats:
        """Topic proportions of documents under the released topics.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts of the caller's own documents; nothing of them is kept.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
            Rows sum to 1: means of the variational posterior or, with one topic
            per document, probabilities of the topics.
        """
        check_is_fitted(self)
        counts = self._validated(X, reset=False)
        gamma = self._posterior(counts)
        if gamma is None:
            return topic_posterior(counts, self.components_, self.topic_prior_)
        return gamma / gamma.sum(axis=1, keepdims=True)

    def score(self, X: ArrayLike | sp.spmatrix, y: Any = None) -> float:
        """Approximate log-likelihood of documents, as in scikit-learn.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts.
        y : None
            Ignored.

        Returns
        -------
        float
            Sum over documents of the evidence lower bound at the released topics;
            exact with one topic per document.
        """
        return float(self.score_samples(X).sum())

    def score_samples(self, X: ArrayLike | sp.spmatrix) -> Floats:
        """Approximate log-likelihood of each document.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts.

        Returns
        -------
        ndarray of shape (n_samples,)
            What :meth:`score` is the sum of; each depends on its own document alone.
        """
        check_is_fitted(self)
        counts = self._validated(X, reset=False)
        return document_log_likelihood(
            counts, self.components_, self.topic_prior_, self._posterior(counts)
        )

    def perplexity(self, X: ArrayLike | sp.spmatrix) -> float:
        """Exponential of the negative log-likelihood per token.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts, best of documents that were not used in the fit.

        Returns
        -------
        float
            ``exp(-score(X) / n_tokens)``; lower is better. 1 where there is no token.
        """
        check_is_fitted(self)
        tokens = float(self._validated(X, reset=False).sum())
        return math.exp(-self.score(X) / tokens) if tokens > 0 else 1.0

    def top_words(
        self, n_words: int = 10, feature_names: Sequence[str] | NDArray[Any] | None = None
    ) -> list[list[str]]:
        """Most probable words of every topic.

        Parameters
        ----------
        n_words : int, default=10
            How many.
        feature_names : sequence of str of length n_features, optional
            Names of the columns; by default ``feature_names_in_``, or their numbers.

        Returns
        -------
        list of list of str
            One list per topic, most probable first.

        Raises
        ------
        ValueError
            If `feature_names` has another length than there are features.
        """
        check_is_fitted(self)
        if feature_names is None:
            numbers = [str(column) for column in range(self.n_features_in_)]
            feature_names = getattr(self, "feature_names_in_", numbers)
        if len(feature_names) != self.n_features_in_:
            raise ValueError(
                f"feature_names must have {self.n_features_in_} entries, got {len(feature_names)}."
            )
        order = np.argsort(-self.components_, axis=1, kind="stable")[:, :n_words]
        return [[str(feature_names[word]) for word in row] for row in order]

    def _posterior(self, counts: sp.csr_matrix) -> Floats | None:
        if self._concentration() == 0:
            return None
        return variational_proportions(
            counts, self.components_, self.topic_prior_, n_iter=100, tol=1e-3
        )
