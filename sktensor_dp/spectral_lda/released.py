"""What a fitted topic model says of its topics and of documents, from released values alone."""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.estimator.inputs import computed, lazy_rows, precision_of
from sktensor_dp.spectral_lda.inference import (
    completion_log_likelihood,
    log_likelihoods,
    proportions,
    pseudo_counts,
    token_halves,
)
from sktensor_dp.spectral_lda.parameters import TopicParameters
from sktensor_dp.spectral_lda.readable import ReadableTopics
from sktensor_dp.spectral_lda.recommending import RecommendingTopics
from sktensor_dp.tensor.arrays import Floats


class ReleasedTopics(
    TopicParameters,
    ReadableTopics,
    RecommendingTopics,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """A topic model whose topics were released: all of it is post-processing."""

    def transform(self, X: ArrayLike | sp.spmatrix, *, normalize: bool = True) -> Any:
        """Topic proportions of documents under the released topics.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts of the caller's own documents; nothing of them is kept. May be a Dask
            array or data frame.
        normalize : bool, default=True
            Whether rows sum to 1. Otherwise they are Dirichlet parameters: ``topic_prior_`` plus
            the expected number of tokens of each topic. With one topic per document they are
            probabilities, which sum to 1 either way.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
            A Dask array, which is not computed yet, for a Dask `X`. Rows are posterior
            means with proportions integrated out (CVB0) or, with one topic per document,
            probabilities of the topics. In single precision for an `X` of single precision.
        """
        check_is_fitted(self)
        if hasattr(X, "to_delayed"):
            return lazy_rows(self, X, "transform", self.n_components_, normalize=normalize)
        counts = self._validated(X, reset=False)
        infer = proportions if normalize else pseudo_counts
        single = self._fitted_concentration() == 0
        found = infer(counts, self.components_, self.topic_prior_, single)
        return found.astype(precision_of(X), copy=False)

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
        return float(computed(self.score_samples(X).sum(), "Scoring"))

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
        if hasattr(X, "to_delayed"):
            return lazy_rows(self, X, "score_samples")
        counts = self._validated(X, reset=False)
        single = self._fitted_concentration() == 0
        return log_likelihoods(counts, self.components_, self.topic_prior_, single)

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
        tokens = float(computed(self._document_lengths(X).sum(), "Counting tokens"))
        return math.exp(-self.score(X) / tokens) if tokens > 0 else 1.0

    def completion_perplexity(
        self, X: ArrayLike | sp.spmatrix, *, random_state: int | np.random.RandomState | None = 0
    ) -> float:
        """Perplexity of one half of each document by the topics of the other half.

        Unlike :meth:`perplexity`, no token helps to explain itself: proportions are inferred
        from a random half of the tokens, and the other half is scored by them. It is an honest
        measure of topics; compare it with that of plain word frequencies.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts, best of documents that were not used in the fit.
        random_state : int, RandomState or None, default=0
            Decides which half a token is in; the same for models to be compared.

        Returns
        -------
        float
            Lower is better. 1 where no token is in the second half.

        Notes
        -----
        **Privacy.** It is about the documents handed to it, which it does not protect.

        Examples
        --------
        >>> import numpy as np
        >>> from sktensor_dp import PrivateSpectralLDA
        >>> rng = np.random.default_rng(0)
        >>> topics = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
        >>> X = rng.multinomial(20, topics[rng.integers(2, size=20000)])
        >>> lda = PrivateSpectralLDA(2, doc_topic_prior=0, random_state=0).fit(X)
        >>> bool(lda.completion_perplexity(X[:1000]) < 2.1)  # of 4 words, 2 are possible
        True
        """
        check_is_fitted(self)
        counts = self._validated(X, reset=False)
        first, second = token_halves(counts, check_random_state(random_state))
        tokens = float(second.sum())
        if tokens == 0:
            return 1.0
        single = self._fitted_concentration() == 0
        shares = proportions(first, self.components_, self.topic_prior_, single)
        return math.exp(-completion_log_likelihood(second, shares, self.components_) / tokens)

    def _document_lengths(self, X: Any) -> Any:
        """Number of tokens of each document."""
        if hasattr(X, "to_delayed"):
            return lazy_rows(self, X, "_document_lengths")
        return np.asarray(self._validated(X, reset=False).sum(axis=1)).ravel()
