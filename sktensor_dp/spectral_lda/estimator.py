"""Latent Dirichlet allocation by private moments; `fit` is in estimator/rows.py."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.checks.frames import is_dask
from sktensor_dp.checks.parameters import (
    Constraint,
    InstanceOf,
    Number,
    OneOf,
    check_sizes,
    whole_length,
)
from sktensor_dp.data.counts import CountChunks
from sktensor_dp.estimator.base import COUNTS, NEIGHBOURS, NONE, column_attributes, warnings_of_cap
from sktensor_dp.estimator.facts import Neighbours, PublicFacts
from sktensor_dp.estimator.forecast import Question
from sktensor_dp.estimator.inputs import (
    check_same,
    check_same_unit,
    precision_of,
    warnings_of_returning_persons,
)
from sktensor_dp.estimator.lazy import computed, lazy_rows
from sktensor_dp.estimator.rows import PrivateRowsMixin
from sktensor_dp.estimator.scoring import warn_of_score
from sktensor_dp.exceptions import NotEnoughDataError
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.spectral_lda.clips import CLIPPED_NORMS, LIMITS
from sktensor_dp.spectral_lda.plan import (
    TopicForecast,
    TopicOptions,
    TopicPlan,
    check_memory,
    forecast_topics,
    plan_topics,
)
from sktensor_dp.spectral_lda.public_words import public_frequencies
from sktensor_dp.spectral_lda.readable import ReadableTopics
from sktensor_dp.spectral_lda.recipe import fit_topics
from sktensor_dp.spectral_lda.saved import SavedTopics
from sktensor_dp.spectral_lda.share_forecast import FoundTopics
from sktensor_dp.spectral_lda.share_forecast_table import ShareForecastTable
from sktensor_dp.spectral_lda.shares import TopicShares
from sktensor_dp.spectral_lda.stream import TopicStream, fit_em_step
from sktensor_dp.tensor.arrays import Floats, TopRows, top_rows_by_parts
from sktensor_dp.topics.inference import (
    log_likelihoods,
    proportions,
    token_halves,
    token_log_likelihood,
)

# With a larger prior the shares of topics in documents are equal to five digits. The sum of priors
# is limited by LARGEST_CONCENTRATION, and a positive prior is raised to one for which the digamma
# function is finite in single precision.
LARGEST_PRIOR, LEAST_PRIOR, LARGEST_CONCENTRATION = 1e10, 1e-30, 1e16
# Number of columns from which on a fit warns, relative to the number whose pairs are released.
WIDE = 1000


class PrivateSpectralLDA(
    ReadableTopics,
    PrivateRowsMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Topics of documents by spectral decomposition of private moments.

    The fit finds topics in noisy moments of the counts, and refines them by noisy EM steps.

    Parameters
    ----------
    n_components : int, default=10
        Largest number of topics, at most as many as there are features: by its releases a fit may
        keep fewer, of which noise may hide some (:meth:`hidden`).
    epsilon : float, default=1.0
        Privacy parameter in (0, 1e12]. ``float("inf")`` fits without noise.
    delta : float, default=1e-6
        Privacy parameter in [0, 1); well below one over the number of documents.
        0 asks for pure differential privacy, by Laplace and spherical Laplace noise.
    doc_topic_prior : float, "auto" or None, default="auto"
        Mean Dirichlet parameter of the shares of ``n_components`` topics in a document, from 0 to
        1e10; if fewer are kept, their sum stays. ``"auto"`` estimates it from the released moments;
        None means ``1 / n_components``; 0 means that every document has one topic.
    word_frequencies : array-like of shape (n_features,), mapping or None, default=None
        Public frequencies of the words (:func:`~sktensor_dp.datasets.load_word_frequencies`),
        in the order of columns, or a mapping by names of columns; they need not sum to 1.
        Released frequencies are shrunk towards them unless the evidence is against it.
    perturbation : {"whitened_tensor", "moment_tensor"}, default="whitened_tensor"
        Where the third moment, if a fit releases it, gets its noise: in the k-dimensional space
        of a released whitener with rows of equal length, or in the space of words (AGN; with
        ``delta=0`` AVN), which takes far more noise.
    n_refinements : int or "auto", default="auto"
        EM steps. ``"auto"``, by public numbers: 6 with noise (2 if ``delta=0``), 24 without; 0
        for ``"moment_tensor"``, and where few features and many documents allow a joint fit
        of all moments.
    clip_norm : "auto" or mapping, default="auto"
        Limits on what one document (or group) contributes. ``"auto"`` takes quantiles of noisy
        histograms of norms, at two percent of the budget unless ``n_refinements`` is given. A
        mapping gives public limits for some of ``"counts"`` (Euclidean norm of the counts),
        ``"pairs"`` and ``"triples"`` (norm of the number of tokens times the moment). If
        ``delta=0``, ``"counts"`` limits the number of tokens; that bounds pairs, and triples in the
        space of words, too.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        One document is replaced; or added or removed (``docs/guarantee.md``), and a noisy count is
        released first, at one percent of the budget.
    accountant : BudgetAccountant or None, default=None
        Charged before noise is drawn.
    random_state : int, RandomState or None, default=None
        Seeds starts of searches for eigenvectors and topics; never noise.
    verbose : int, default=0
        1 writes one line per release to standard error.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        Topics, those of the largest share first; rows are distributions over words.
    topic_prior_ : ndarray of shape (n_components_,)
        Dirichlet parameters of topics; divided by their sum (1 with ``doc_topic_prior=0``), shares
        of topics in the *words*: a document weighs as much as it has words, up to a limit,
        and a group as much as the mean of its documents. Where long documents have other topics
        than short ones, shares of documents differ; nothing released tells these.
    components_std_ : ndarray of shape (n_components_, n_features)
        Their standard deviations by the noise of the fit; :meth:`components_interval` counts more.
    mixing_covariance_ : ndarray of shape (n_components_, n_components_, n_components_) or None
        How far shares may be off as topics may be mixed. Texts of topic i are found too much in
        topic j by some x[i, j]; entry [j, i, l] is the covariance of x[i, j] and x[l, j]. Of a
        joint fit to moments it is that of fits to moments with their known errors drawn anew and
        added. Of EM steps it is what their counts leave of a deviation a priori, by which topics
        may hold a fifth of others, or of a larger one that they suggest; in a stream, counts of
        the first batch. Intervals of :meth:`shares_by` and :meth:`components_interval` allow for
        it. None for fits without noise, by third moments alone, or of one topic; and of EM steps
        where topics are more than 100, or counts of tokens are noise alone.
    doc_topic_prior_ : float
        Mean of ``topic_prior_``; 0: one topic per document. Where ``"auto"`` had to assume one, or
        took short documents to have one topic each, ``privacy_report_.notes`` say so.
    unigram_ : ndarray of shape (n_features,)
        Released word frequencies, averaged with those of EM steps and denoised.
    n_components_ : int
        Number of topics fitted: fewer than asked for where noise or sampling hides the others;
        one, the word frequencies, where topics gain nothing over these.
    n_components_seen_ : int
        Number of fitted topics that noise does not hide (:meth:`hidden`). Where the released pairs
        of words (in a stream those of the first batch) show more topics than `n_components`, the
        number that they show; words that come in bursts count as topics, too.
    coherence_ : ndarray of shape (n_components_,) or None
        UMass coherence of the ten words that lead each topic, of those whose pairs were
        released: mean of ``log P(word | a more probable word)``. None after later batches.
    document_length_ : float
        Mean number of tokens of a document as released: with noise, and clipped; if pairs of all
        words were released, documents of fewer than three tokens count as if they had none.
    clip_norm_ : dict
        Limits on norms of counts and moments, public or released. With Gaussian noise EM
        steps take half of the limit on counts, and less for groups, unless moments are fitted
        jointly.
    privacy_report_ : PrivacyReport
        Every release with its noise and cost.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if `X` had string names.

    Warns
    -----
    NotEnoughDataWarning
        If released values show that the data was too small for ``n_components`` topics, or that
        noise hides some of them, which it names; of later batches of a stream, if they could show
        more topics than the first one found.
    DoubtfulParameterWarning
        If released pairs of words show more topics than ``n_components``.

    See Also
    --------
    PrivateCountVectorizer : Counts over a private vocabulary.
    sktensor_dp.check_inputs : A check of columns, lists and bounds, before a fit is paid for.

    Notes
    -----
    Counts are whole numbers; fractions, such as TF-IDF weights, are refused.

    **Privacy.** *Unit*: one document (a row); with ``groups``, one group with all its
    documents, whose number is private. *Public*: the number of units, unless it is released,
    and of features, all parameters, and the meaning of the columns: a vocabulary that
    ``CountVectorizer`` chose from the documents is not protected (use
    :class:`~sktensor_dp.PrivateCountVectorizer`). `word_frequencies` must not come
    from the protected documents. *Releases*: ``norm_histogram``, ``word_frequencies``,
    ``pair_moments``, ``whitened_triple_moments`` or ``triple_moments``, ``expected_counts``, and
    ``unit_count`` where the number of units is private, as ``privacy_report_`` lists them. *Not
    covered*: running time; what ``transform``, ``score`` and ``perplexity`` say of the documents
    handed to them; several documents by one person without ``groups``; input that is not counts,
    for which errors are raised.

    References
    ----------
    Anandkumar, Foster, Hsu, Kakade & Liu (2012), A spectral algorithm for latent
    Dirichlet allocation. DeCarolis et al. (2020), An end-to-end differentially private latent
    Dirichlet allocation using a spectral algorithm. Imtiaz & Sarwate (2018; AGN, AVN).

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateSpectralLDA
    >>> topics = np.repeat([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6]], 10000, axis=0)
    >>> X = np.random.default_rng(0).multinomial(20, topics)
    >>> lda = PrivateSpectralLDA(2, epsilon=1.0, doc_topic_prior=0).fit(X)
    >>> lda.transform(X[:3]).shape, sorted(lda.components_.argmax(axis=1).tolist())
    ((3, 2), [0, 3])
    """

    n_components_: int
    document_length_: float
    clip_norm_: Mapping[str, float]
    _stream: TopicStream | None = None  # where the model goes on by batches
    _saved = SavedTopics
    _chunk_class = CountChunks
    _unit = "document"
    _input_tags = COUNTS
    _preserves_dtype = True
    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "n_components": [Number(1, math.inf, integer=True)],
        "doc_topic_prior": [Number(0, LARGEST_PRIOR), NONE, OneOf("auto")],
        "word_frequencies": [NONE, InstanceOf(Mapping, np.ndarray, list, tuple)],
        "perturbation": [OneOf("whitened_tensor", "moment_tensor")],
        "n_refinements": [Number(0, math.inf, integer=True), OneOf("auto")],
        "clip_norm": [OneOf("auto"), InstanceOf(Mapping)],
        **NEIGHBOURS,
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        doc_topic_prior: float | str | None = "auto",
        word_frequencies: Mapping[str, float] | ArrayLike | None = None,
        perturbation: str = "whitened_tensor",
        n_refinements: int | str = "auto",
        clip_norm: str | Mapping[str, float] = "auto",
        neighbours: str = "replace_one",
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.doc_topic_prior = doc_topic_prior
        self.word_frequencies = word_frequencies
        self.perturbation = perturbation
        self.n_refinements = n_refinements
        self.clip_norm = clip_norm
        self.neighbours = neighbours
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def partial_fit(
        self,
        X: ArrayLike | sp.spmatrix,
        y: object = None,
        *,
        groups: ArrayLike | None = None,
        n_samples: int | None = None,
        **unsupported: object,
    ) -> "PrivateSpectralLDA":
        """Learn from one more batch of documents that no other batch contains.

        The first batch is fitted as by :meth:`fit`; every later one makes one EM step at the full
        budget, which is averaged into those before. As batches are disjoint, the whole stream is as
        private as one batch, and charged once.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts. The caller answers for batches being disjoint, and, with
            ``neighbours="add_remove"``, for no document deciding in which batch another one
            is. How many batches there are is public.
        y : ignored
        groups : array-like of shape (n_samples,), optional
            As for :meth:`fit`, in every batch or in none. The caller answers for no
            group being in two batches: no label is kept.
        n_samples, **unsupported
            As for :meth:`fit`.

        Returns
        -------
        self : PrivateSpectralLDA

        Raises
        ------
        ValueError
            As :meth:`fit`, or if epsilon, delta or neighbours changed since the first batch.
        """
        checked = self._checked_copy(X, n_samples, unsupported, "partial_fit")
        stream = self._stream
        if stream is not None:
            check_same("epsilon and delta", stream.budget, (self.epsilon, self.delta))
        chunks = checked._chunks_of(X, groups, n_samples, reset=stream is None)
        if stream is None:
            return self._fit_units(chunks, column_attributes(checked), begins_stream=True)
        check_same_unit(self.privacy_report_, self.neighbours, grouped=chunks.grouped)
        return self._fit_batch(chunks, stream)

    def transform(self, X: ArrayLike | sp.spmatrix, *, normalize: bool = True) -> Any:
        """Topic proportions of documents under the released topics.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts of the caller's own documents; nothing of them is kept. For a Dask collection the
            result is a Dask array, not computed yet.
        normalize : bool, default=True
            Whether rows sum to 1. Otherwise they are Dirichlet parameters: ``topic_prior_`` plus
            the expected number of tokens of each topic (with one topic per document they sum to 1).

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
            Posterior means with proportions integrated out (CVB0) or, with one topic per
            document, probabilities of the topics; in the precision of `X`. A row without any
            word, such as a text in another language, has the average shares: find such rows by
            ``X.sum(axis=1) == 0``.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazy_rows(self, X, "transform", self.n_components_, normalize=normalize)
        counts = self._validated_rows(X, reset=False)
        found = proportions(counts, *self._topics_and_prior(), normalize=normalize)
        return found.astype(precision_of(X), copy=False)

    def score(self, X: ArrayLike | sp.spmatrix, y: object = None) -> float:
        """Approximate log-likelihood of documents: the sum of :meth:`score_samples`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts.
        y : ignored

        Returns
        -------
        float
        """
        warn_of_score(self)
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
            Evidence lower bounds, each of its own document; exact with one topic per document.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazy_rows(self, X, "score_samples")
        return log_likelihoods(self._validated_rows(X, reset=False), *self._topics_and_prior())

    def perplexity(self, X: ArrayLike | sp.spmatrix) -> float:
        """Exponential of the negative log-likelihood per token: lower is better, 1 without tokens.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts, best of documents that were not used in the fit.

        Returns
        -------
        float
            ``exp(-score(X) / n_tokens)``.
        """
        check_is_fitted(self)
        tokens = float(computed(self._document_lengths(X).sum(), "Counting tokens"))
        return math.exp(-self.score(X) / tokens) if tokens > 0 else 1.0

    def completion_perplexity(
        self, X: ArrayLike | sp.spmatrix, *, random_state: int | np.random.RandomState | None = 0
    ) -> float:
        """Perplexity of one half of each document's tokens, given the other half.

        Unlike in :meth:`perplexity`, no token helps to explain itself.

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
        >>> X = np.repeat([[9, 9, 0, 0], [0, 0, 9, 9]], 10000, axis=0)
        >>> lda = PrivateSpectralLDA(2, doc_topic_prior=0).fit(X)
        >>> bool(lda.completion_perplexity(X[:1000]) < 2.1)  # of 4 words, 2 are possible
        True
        """
        check_is_fitted(self)
        warn_of_score(self)
        counts = self._validated_rows(X, reset=False)
        first, second = token_halves(counts, check_random_state(random_state))
        tokens = float(second.sum())
        if tokens == 0:
            return 1.0
        found = token_log_likelihood(
            second, proportions(first, *self._topics_and_prior()), self.components_
        )
        return math.exp(-float(found.sum()) / tokens)

    def recommend(
        self,
        X: ArrayLike | sp.spmatrix | None,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        feature_names: Sequence[str] | NDArray[np.generic] | None = None,
    ) -> TopRows:
        """Recommend the features that are most probable in each row, best first.

        For clicks, views and purchases: a row is a person, a column an item, an entry how often.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or None
            Counts of the caller's own rows, of the fit or new ones; nothing of them is kept. None
            asks for the most frequent features, by ``unigram_``.
        n : int, default=10
            Number of features for each row.
        exclude_seen : bool, default=True
            Whether to leave out features that the row has.
        feature_names : array-like of shape (n_features,), optional
            Names to give in the place of numbers; by default ``feature_names_in_``, if there are.

        Returns
        -------
        TopRows
            ``rows``, the numbers or names of features, and ``values``, their probabilities in
            the row: each of shape (n_samples, n), with -1 (or None) and NaN where a row has fewer;
            (1, n) for None.

        Raises
        ------
        ValueError
            If `n` is no int >= 1, or names are not as many as features.

        Notes
        -----
        **Privacy.** It costs nothing: topics were released, and the rest is computed from the row
        itself. What is recommended to a person is as private as that person's clicks.

        Examples
        --------
        >>> import numpy as np
        >>> from sktensor_dp import PrivateSpectralLDA
        >>> likes = np.repeat([[5, 5, 5, 1, 1, 1], [1, 1, 1, 5, 5, 5]], 2000, axis=0)
        >>> model = PrivateSpectralLDA(2, epsilon=5.0).fit(np.random.default_rng(0).poisson(likes))
        >>> model.recommend([[4, 3, 0, 0, 0, 0]], n=1, feature_names=list("abcdef")).rows.tolist()
        [['c']]
        """
        check_is_fitted(self)
        check_sizes(n=n)
        names = feature_names
        if names is not None or "feature_names_in_" in column_attributes(self):
            names = self._names(feature_names)
        shares, topics = np.ones((1, 1)), self.unigram_[None]
        if X is not None:
            shares, topics = self.transform(X), self.components_
        seen = sp.csr_matrix(X) if exclude_seen and X is not None else None
        rows, values = top_rows_by_parts(
            len(shares), self.n_features_in_, int(n),
            lambda part: shares[part] @ topics,
            lambda part: None if seen is None else seen[part].toarray() > 0,
            block=2**22,  # probabilities that are ranked at once
        )  # fmt: skip
        if names is not None:
            # Index -1 is the last element, None.
            rows = np.array([*names, None], dtype=object)[rows]
        return TopRows(rows, values)

    def shares_by(
        self,
        X: ArrayLike | sp.spmatrix,
        by: ArrayLike,
        values: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        texts_per_person: float | str = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        accountant: BudgetAccountant | None = None,
        anyway: bool = False,
    ) -> TopicShares:
        """Release the average shares of topics in documents of public groups, such as months.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts in memory, of the fit or others.
        by : array-like of shape (n_samples,)
            Group of each document: integers or strings, none missing. It stays private which group
            a document is in. An index of pandas that has the rows of `X` or `groups` in another
            order is refused; the order of arrays cannot be checked.
        values : array-like of shape (n_values,)
            Public list of the groups; capitals do not matter, unless two differ in these alone.
            Documents of other groups do not count, and neither do those without any word of the
            model. Which groups occur is private: a list of groups of which none occurs is not
            refused, and is paid for, too.
        groups : array-like of shape (n_samples,), optional
            Label of the person behind each document, as for :meth:`fit`: protects all of their
            documents. A person counts by documents, up to a bound.
        texts_per_person : float or "auto", default="auto"
            With `groups`: bound on what a person adds, as the Euclidean norm of their sums of
            shares (the number of documents if ``delta=0``): a public guess of how many documents a
            person has, as nobody with fewer is scaled down. ``"auto"`` chooses it by a noisy
            histogram, at a fifth of the budget, and releases what lies beyond a smaller bound
            apart, with more noise; shares move by that as far as the move exceeds this noise.
        epsilon, delta : float, default=1.0 and 1e-6
            Cost of the release; :meth:`BudgetAccountant.split` divides a budget.
        accountant : BudgetAccountant, optional
            Charged before noise is drawn; by default that of the model, or of a ``with`` block.
        anyway : bool, default=False
            Release also what is likely to say little, which else is an error before the charge.

        Returns
        -------
        TopicShares
            It prints intervals of the shares. ``shares_`` (n_values, n_components_) are NaN where
            noise hides how many documents there are (``hidden_``); ``counts_``, fewer than
            there are where units beyond the bound are scaled down;
            ``noise_std_`` and ``sampling_std_``, standard errors by noise and, at most, by chance;
            ``interval(level)``, a ``table()``, ``save`` and ``privacy_report_``.

        Raises
        ------
        NotEnoughDataError
            If the model has a single topic; or, unless `anyway`, if noise would hide how many
            documents groups have, or the share of each topic that is seen; if topics that noise
            hides hold over half of the words; or if intervals would on average be wider than
            shares at any epsilon. Noise and chance count where the number of units is public.
            Nothing is charged.
        TypeError, ValueError, BudgetError
            As :meth:`fit`, or if `by` and `values` do not go together; nothing is charged.

        Warns
        -----
        NotEnoughDataWarning
            If noise hides how many documents some groups have.

        Notes
        -----
        It estimates averages over documents of what :meth:`transform` would find if all were long.
        In short ones that finds shares close to the average of all; how close, the model tells.

        **Privacy.** *Unit* and relation of neighbours are those of the fit. *Public*: `values` and
        all parameters. *Releases*: ``topic_shares``, ``norm_histogram`` where a bound is chosen,
        and ``unit_count`` where the number of units is private. A document that changes its
        group is hidden, too.

        Examples
        --------
        >>> import numpy as np
        >>> from sktensor_dp import PrivateSpectralLDA
        >>> X = np.repeat([[9, 9, 0, 0], [0, 0, 9, 9]], 10000, axis=0)
        >>> lda = PrivateSpectralLDA(2, doc_topic_prior=0).fit(X)
        >>> found = lda.shares_by(X, by=["may"] * 12000 + ["june"] * 8000, values=["may", "june"])
        >>> sorted(found.shares_[0].round(1).tolist())  # 10,000 of 12,000 have one topic
        [0.2, 0.8]
        """
        check_is_fitted(self)
        listed: Any = values
        if isinstance(values, Iterable) and not isinstance(values, str):
            listed = [one.item() if isinstance(one, np.generic) else one for one in values]
        shares = TopicShares(
            listed, texts_per_person=texts_per_person, epsilon=epsilon,
            delta=delta, neighbours=self.neighbours, verbose=self.verbose,
            accountant=self._accountant_to_charge() if accountant is None else accountant,
        )  # fmt: skip
        return shares.fit(self, X, by, groups=groups, anyway=anyway)

    def forecast(
        self,
        n_samples: int,
        n_features: int,
        *,
        document_length: float = 100,
        n_kept: int | None = None,
    ) -> TopicForecast:
        """Say what a fit would release and how well, from public numbers alone.

        Parameters
        ----------
        n_samples, n_features : int
            Size of the data to come; a private number (`neighbours`) as it is released.
        document_length : float, default=100
            Typical number of tokens of a document, also of words that `n_kept` leaves out: a public
            guess. Short ones show less.
        n_kept : int, optional
            Number of the features that a private vocabulary keeps: ``n_words`` of its forecast.
            The verdict is then that of the command ``sktensor-dp forecast topics``.

        Returns
        -------
        TopicForecast
            Noise of each release, against the signal of the weakest of ``n_components`` topics that
            are as strong as those of ordinary texts. ``n_likely`` are the least and largest number
            of topics in nine of ten fits that see any, as topics of texts differ in strength, and
            ``p_none`` is the chance of none. Costs nothing.

        Examples
        --------
        >>> from sktensor_dp import PrivateSpectralLDA
        >>> forecast = PrivateSpectralLDA(10, epsilon=1.0).forecast(50_000, 2000)
        >>> forecast.n_samples_needed > 0
        True
        """
        self._check_parameters()
        n_kept = n_features if n_kept is None else n_kept
        sizes = {"n_samples": n_samples, "n_features": n_features, "n_kept": n_kept}
        check_sizes(**sizes)
        sizes["document_length"] = whole_length(document_length)
        self._warn_of_budget()
        return forecast_topics(
            self._plan(n_samples, n_features), Question.of(self, **sizes),
            self._given_concentration(), self.delta == 0, self.neighbours,
        )  # fmt: skip

    def forecast_shares(
        self,
        n_units: int,
        n_values: int,
        *,
        grouped: bool = False,
        texts_per_person: float | str = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-6,
    ) -> ShareForecastTable:
        """Say how wide intervals of :meth:`shares_by` will be, before it is paid for.

        Parameters
        ----------
        n_units, n_values : int
            Number of documents, or of persons if `grouped`, and of public groups. Documents are
            taken to be spread evenly over these.
        grouped : bool, default=False
            True if `groups` will be given.
        texts_per_person, epsilon, delta : float or "auto", float, float
            As for :meth:`shares_by`.

        Returns
        -------
        ShareForecastTable
            It prints a table: of the topics found, once the model is fitted, with a `verdict` and a
            `doubt`, which is empty if there is none; before the fit of topics of own words and of
            topics that share most. The command ``sktensor-dp forecast topics`` prints the same.
            Costs nothing.

        Raises
        ------
        ValueError
            If a parameter is wrong, or the fit protected the other unit.
        NotEnoughDataError
            If noise hides all topics of the fitted model, or it has a single one.

        Examples
        --------
        >>> from sktensor_dp import PrivateSpectralLDA
        >>> print(PrivateSpectralLDA(4).forecast_shares(20_000, 2))  # doctest: +ELLIPSIS
        Shares of topics (25.0% on average) in each of 2 groups, if texts are spread evenly
        own words  shared words  of what
        ...
        """
        check_sizes(n_units=n_units, n_values=n_values)
        shares = TopicShares(
            [*range(n_values)], texts_per_person=texts_per_person, epsilon=epsilon, delta=delta,
            neighbours=self.neighbours,
        )  # fmt: skip
        shares._check_parameters()
        if not self._fitted_state():
            self._check_parameters()
            return ShareForecastTable.before_fit(
                shares, self.n_components, n_units, for_persons=grouped
            )
        report = self.privacy_report_
        if (report.unit == "person") != grouped and math.isfinite(report.epsilon):
            raise ValueError(
                f"grouped must be {not grouped}: the topics protect each {report.unit}."
            )
        found = FoundTopics.of(self)
        if not found.seen or math.isinf(found.factor):
            raise NotEnoughDataError(
                "No topic can be seen above the noise, or there is one alone: shares say nothing."
            )
        return ShareForecastTable.of_found(shares, found, n_units, for_persons=grouped)

    def _document_lengths(self, X: object) -> Any:
        """Number of tokens of each document."""
        if is_dask(X):
            return lazy_rows(self, X, "_document_lengths")
        return np.asarray(self._validated_rows(X, reset=False).sum(axis=1)).ravel()

    def _fit_units(
        self, chunks: CountChunks, columns: Mapping[str, object], *, begins_stream: bool = False
    ) -> Self:
        """Plan a fit, open a session, ask, publish; where it `begins_stream` batches may follow."""
        n_features = chunks.n_features
        frequencies = self._public_frequencies(n_features, columns)
        options = TopicOptions(self._given_concentration(), self.random_state, frequencies)
        largest_plan = self._plan(self._largest_number(chunks), n_features)
        check_memory(largest_plan, n_features)
        expected = warnings_of_cap(self.n_components, n_features, "topics")
        if n_features >= WIDE * largest_plan.n_words:
            expected += (UserWarning(
                f"X has {n_features:,} columns, and pairs of at most the {largest_plan.n_words:,} "
                "most frequent are released; the time of a fit grows with all columns. Pass a "
                "smaller n_features to HashingVectorizer, or use PrivateCountVectorizer."
            ),)  # fmt: skip
        with self._session(chunks, largest_plan.releases, expected=expected) as ask:
            plan = self._plan(ask.n_units, n_features)
            ask.divide(plan.releases)
            fitted = fit_topics(ask, plan, options, begins_stream=begins_stream)
        return self._publish_result(self._with_report(ask, fitted, columns))

    def _fit_batch(self, batch: CountChunks, stream: TopicStream) -> Self:
        """Make one EM step on a further batch of the stream: plan, open, ask, publish."""
        plan = ReleasePlan.split(self.epsilon, self.delta, {"expected_counts": 1.0})
        columns = column_attributes(self)
        frequencies = self._public_frequencies(batch.n_features, columns)
        expected = warnings_of_returning_persons(self.privacy_report_)
        with self._session(batch, plan, ticket=stream.ticket, expected=expected) as ask:
            fitted = fit_em_step(
                ask, stream, self.clip_norm_, frequencies,
                min(self.n_components, batch.n_features),
            )  # fmt: skip
        return self._publish_result(self._with_report(ask, fitted, columns, self.privacy_report_))

    def _plan(self, n_samples: int, n_features: int) -> TopicPlan:
        """Plan a fit from parameters and public sizes."""
        return plan_topics(
            n_samples, n_features, self.n_components, epsilon=self.epsilon, delta=self.delta,
            perturbation=self.perturbation,
            n_refinements=None if self.n_refinements == "auto" else int(self.n_refinements),
            limits=self._checked_limits(),
        )  # fmt: skip

    def _public_frequencies(self, n_features: int, columns: Mapping[str, object]) -> Floats | None:
        """Public word frequencies (n_features,), by column; None where not given."""
        if self.word_frequencies is None:
            return None
        names = columns.get("feature_names_in_")
        return public_frequencies(self.word_frequencies, n_features, names)

    def _check_combined(self, method: str = "fit") -> None:
        self._checked_limits()  # for its errors

    def _given_concentration(self) -> float | None:
        """Sum of the Dirichlet prior over topic shares; None where it is to be estimated."""
        if self.doc_topic_prior == "auto":
            return None
        if self.doc_topic_prior is None:
            return 1.0
        prior = float(self.doc_topic_prior)
        if prior == 0:
            return 0.0
        return min(max(prior, LEAST_PRIOR) * float(self.n_components), LARGEST_CONCENTRATION)

    def _topics_and_prior(self) -> tuple[Floats, Floats, bool]:
        """Topics, prior, and True for one topic per document, as inference takes them."""
        return self.components_, self.topic_prior_, self.doc_topic_prior_ == 0

    def _checked_limits(self) -> dict[str, float]:
        """Public clips by name, validated; empty for "auto"."""
        if self.clip_norm == "auto":
            return {}
        assert isinstance(self.clip_norm, Mapping)
        for name, limit in self.clip_norm.items():
            # Noise in proportion to an infinite limit would be infinite.
            allowed = Number(*LIMITS).accepts(limit)
            allowed = allowed or (math.isinf(self.epsilon) and Number(math.inf).accepts(limit))
            if name not in CLIPPED_NORMS or not allowed:
                raise ValueError(
                    "The 'clip_norm' parameter of PrivateSpectralLDA must be 'auto' or map some "
                    f"of {list(CLIPPED_NORMS)} to numbers from {LIMITS[0]:g} to {LIMITS[1]:g}. "
                    f"Got {self.clip_norm!r} instead."
                )
        return {name: float(limit) for name, limit in self.clip_norm.items()}

    def _public_facts(self) -> PublicFacts:
        return PublicFacts(
            self._unit, capped_by_columns=True, score="log_likelihood_per_token",
            guesses={"document_length": 100},
            worst_case=partial(worst_documents, neighbours=self.neighbours),
        )  # fmt: skip


def worst_documents(n_units: int | None, neighbours: str) -> Neighbours:
    """Neighbours for an audit: documents that each repeat one of two words; the first differs."""
    n_documents = n_units or 1000
    counts = np.zeros((n_documents, 2), dtype=np.int64)
    half = n_documents // 2 + 1
    # More tokens than any limit that is chosen from a histogram of norms.
    counts[:half, 0] = counts[half:, 1] = 10**6
    if neighbours == "add_remove":
        return (counts,), (counts[1:],), _difference
    changed = counts.copy()
    changed[0] = counts[0, ::-1]
    return (counts,), (changed,), _difference


def _difference(fitted: Any) -> float:
    """Frequency in the model of the second of two words, less that of the first."""
    frequencies = fitted._shares @ fitted.components_
    return float(frequencies[1] - frequencies[0])
