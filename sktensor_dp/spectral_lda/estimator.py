"""Latent Dirichlet allocation by private moments."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import scipy.sparse as sp
from numpy.typing import ArrayLike

from sktensor_dp.estimator.base import columns_of
from sktensor_dp.estimator.inputs import row_chunks, source_chunks
from sktensor_dp.estimator.parameters import check_sizes
from sktensor_dp.queries.counts import CountChunks
from sktensor_dp.spectral_lda.released import ReleasedTopics
from sktensor_dp.spectral_lda.saved import SavedTopics
from sktensor_dp.spectral_lda.stream import TopicStream
from sktensor_dp.spectral_topics.forecast import TopicForecast, forecast_topics


class PrivateSpectralLDA(ReleasedTopics):
    """Topics of documents by spectral decomposition of private moments.

    The fit releases noisy first, second and third moments of the counts, finds
    topics by whitening and decomposing them, and refines these by EM steps on
    further releases. All else is post-processing of what was released.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics; at most as many as features are fitted.
    epsilon : float, default=1.0
        Privacy parameter in (0, 1e12]. ``float("inf")`` fits without noise.
    delta : float, default=1e-6
        Privacy parameter in [0, 1); well below one over the number of documents.
        0 asks for pure differential privacy: Laplace and spherical Laplace noise.
    doc_topic_prior : float, "auto" or None, default="auto"
        Dirichlet parameter of each topic's share in a document, from 0 to 1e10. ``"auto"``
        takes the largest that the released moments do not reject; None means
        ``1 / n_components``; 0 means that every document has one topic.
    word_frequencies : array-like of shape (n_features,), mapping or None, default=None
        Public frequencies of the words, known without the documents: of a reference corpus,
        or a list (:func:`~sktensor_dp.datasets.load_word_frequencies`). Released frequencies
        are shrunk towards them, unless the evidence of what was released is against it. In
        the order of columns; a mapping is by names of columns, which `X` must have then. They
        need not sum to 1; a word with 0 or without one gets half of the least.
    public_components : array-like of shape (k0, n_features), data frame, mapping or None, \
            default=None
        Topics of public texts, at most `n_components` and as many as columns; further ones are
        learnt. Noisy topics are shrunk towards them, as far as what is released speaks for it,
        and EM steps begin with them where the data shows none. In the order of columns; a data
        frame, or a mapping of words to lists of k0 numbers, is by names of columns, which `X`
        must have then. Rows need not sum to 1; of a word that all topics lack they say nothing.
        Without `word_frequencies`, their mean is what is expected of words.
    perturbation : {"whitened_tensor", "moment_tensor"}, default="whitened_tensor"
        Where the third moment gets its noise: in the k-dimensional space that a
        released whitener spans, or in the space of words (AGN; with ``delta=0``
        AVN; configuration 1 of DeCarolis et al.). The first needs orders of
        magnitude less of it.
    n_refinements : int or "auto", default="auto"
        EM steps. ``"auto"`` depends on public numbers only: 6 with noise (2 if ``delta=0``)
        and 24 without, of which the first 12 take each document to have one topic; 0 for
        ``"moment_tensor"`` and where few features and many documents allow a joint fit of
        all moments instead. With very many, 12 are kept for moments that do not fit.
    clip_norm : "auto" or mapping, default="auto"
        Limits on what one document contributes. ``"auto"`` takes quantiles of
        noisy histograms of norms, at two percent of the budget. A mapping gives
        public limits for some of ``"counts"`` (Euclidean norm of the counts;
        their number if ``delta=0``), ``"pairs"`` and ``"triples"`` (norm of the
        number of tokens times the moment), from 1e-40 to 1e40; it also holds with
        ``epsilon=inf``, where a limit may be infinite.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        Which data sets must look alike: those that differ in one document, whose number is
        then public; or those of which one has a document more. Then the number is private: a
        noisy count is released first, at one percent of the budget, and stands for it
        everywhere. See ``docs/guarantee.md``.
    accountant : BudgetAccountant or None, default=None
        Charged before noise is drawn.
    random_state : int, RandomState or None, default=None
        Seeds restarts of the decomposition. It never seeds noise.
    verbose : int, default=0
        Whether to report releases on standard error as they are made.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        Topics; rows are distributions over words.
    components_std_ : ndarray of shape (n_components_, n_features) or None
        How far noise may have moved them, as standard deviations
        (:meth:`components_interval`).
    topic_prior_ : ndarray of shape (n_components_,)
        Dirichlet parameters of the shares of topics in a document; with
        ``doc_topic_prior=0`` the probabilities of the topics.
    topic_prior_std_ : ndarray of shape (n_components_,) or None
        How far noise may have moved these.
    coherence_ : ndarray of shape (n_components_,) or None
        UMass coherence of the ten leading words of each topic, by the released second
        moment: mean of ``log P(word | a more probable word)``. None after later batches.
    spectrum_ : ndarray of shape (n_eigenvalues,) or None
        Leading eigenvalues of the released second moment, more than there are topics.
    noise_edge_ : float or None
        What noise alone may lift an eigenvalue to (:meth:`suggest_n_components`).
    doc_topic_prior_ : float
        Dirichlet parameter in use, on average over topics; 0: one topic per document. Where
        ``"auto"`` had to assume one, ``privacy_report_`` says so.
    unigram_ : ndarray of shape (n_features,)
        Released word frequencies, denoised.
    n_components_ : int
        Number of topics fitted: fewer than asked for where the released second
        moment shows no more above its noise, and one, the word frequencies, where topics
        gain nothing over these.
    clip_norm_ : dict
        Limits in force, public or released.
    privacy_report_ : PrivacyReport
        Every release with its noise and cost.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if `X` had string names.

    Warns
    -----
    NotEnoughDataWarning
        If released values show that the data was too small for ``n_components``
        topics at this epsilon.

    See Also
    --------
    PrivateCountVectorizer : Counts over a private vocabulary.

    Notes
    -----
    Counts are whole numbers, of an integer or a floating-point type; fractions, such as
    TF-IDF weights, are refused. Documents of fewer than three tokens take part in what
    their length defines, and count in the number of documents.

    **Privacy.** *Unit*: one document (a row); with ``groups``, one group with all its
    documents, whose number is private. *Neighbours*: data sets of equally many units
    that differ in one, or of which one has a unit more (`neighbours`). *Public*: the
    number of units (released with noise in the second case) and features, all parameters,
    and the meaning of the columns: a vocabulary chosen from the same documents by
    ``CountVectorizer`` counts as public, one from
    :class:`~sktensor_dp.PrivateCountVectorizer` is paid for there. `word_frequencies` and
    `public_components` must not come from the protected documents. *Releases*:
    ``norm_histogram``, ``word_frequencies``, ``pair_moments``,
    ``whitened_triple_moments`` or ``triple_moments``, ``expected_counts``, and
    ``held_out_scores`` (what topics of a document's words say of its other words), as
    ``privacy_report_`` lists them. *Not covered*: running time; what ``transform``,
    ``score`` and ``perplexity`` say of the documents handed to them; several
    documents by one person without ``groups``; input that is not counts, for which
    errors are raised.

    References
    ----------
    Anandkumar, Foster, Hsu, Kakade & Liu (2012), A spectral algorithm for latent
    Dirichlet allocation. DeCarolis, Ram, Esmaeili, Wang & Huang (2020), An
    end-to-end differentially private latent Dirichlet allocation using a spectral
    algorithm, configuration 1. Imtiaz & Sarwate, Improved algorithms for
    differentially private orthogonal tensor decomposition (AGN, AVN).

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateSpectralLDA
    >>> rng = np.random.default_rng(0)
    >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6]])
    >>> X = rng.multinomial(20, topics[rng.integers(2, size=20000)])
    >>> lda = PrivateSpectralLDA(2, epsilon=1.0, doc_topic_prior=0, random_state=0).fit(X)
    >>> error = min(np.abs(lda.components_[order] - topics).max() for order in ([0, 1], [1, 0]))
    >>> bool(error < 0.05)
    True
    >>> lda.transform(X[:3]).shape
    (3, 2)
    """

    _saved = SavedTopics

    def fit_chunks(
        self,
        source: Iterable[Any],
        *,
        n_samples: int | None = None,
        n_features: int | None = None,
    ) -> "PrivateSpectralLDA":
        """Learn topics from chunks that need not fit into memory together.

        Parameters
        ----------
        source : iterable of array-likes or sparse matrices, or of pairs
            Chunks of rows, or pairs ``(X, groups)`` of rows and labels as :meth:`fit` takes
            them; iterated over once to see that they are counts of the size announced (twice
            with groups), and once per release: a list or an object with ``__iter__``, not a
            generator. Rows of a group that lie in several chunks are held in memory from
            the first to the last.
        n_samples : int or None, default=None
            Number of rows, or of groups, in all chunks together; public. It is private, and
            must not be given, where ``neighbours="add_remove"``.
        n_features : int or None, default=None
            Number of columns, which has to be given; public.

        Returns
        -------
        self : PrivateSpectralLDA
            The fitted model.

        Raises
        ------
        TypeError
            If `source` can be iterated over only once.
        ValueError
            If a parameter is wrong, a chunk does not hold counts or the shape is not as
            announced; no budget is spent, unless chunks change once they have been read.
        BudgetError
            If the accountant has too little left; no chunk has been read then.
        """
        self._check_parameters()
        chunks = source_chunks(self, CountChunks, source, n_samples, n_features)
        plan = partial(self._fit_of, chunks, {"n_features_in_": n_features})
        return self._run_counted(chunks, plan)

    def partial_fit(
        self,
        X: ArrayLike | sp.spmatrix,
        y: Any = None,
        *,
        groups: ArrayLike | None = None,
        n_samples: int | None = None,
        **unsupported: Any,
    ) -> "PrivateSpectralLDA":
        """Learn from one more batch of documents that no other batch contains.

        The first batch is fitted as by :meth:`fit`; every later one makes one
        release of expected counts at the full budget, and is averaged into what
        came before. As batches are disjoint, the whole stream is as private as
        one batch (parallel composition), and an accountant is charged once.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts. The caller answers for batches being disjoint, and, with
            ``neighbours="add_remove"``, for no document deciding in which batch another one
            is. How many batches there are is public.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), optional
            As for :meth:`fit`, in every batch or in none. The caller answers for no
            group being in two batches: no label is kept.
        n_samples : int or None, default=None
            As for :meth:`fit`.
        **unsupported : object
            As for :meth:`fit`.

        Returns
        -------
        self : PrivateSpectralLDA
            The model after this batch.

        Raises
        ------
        ValueError
            As :meth:`fit`, or if epsilon, delta or neighbours changed since the first batch,
            which is what an accountant was charged for.
        """
        checked = self._check_call(X, n_samples, unsupported)
        stream: TopicStream | None = getattr(self, "_stream", None)
        if stream is None:
            chunks = row_chunks(self, checked, CountChunks, X, groups, n_samples)
            plan = partial(self._fit_of, chunks, columns_of(checked), begins=True)
            return self._run_counted(chunks, plan)
        stream.check_budget(self.epsilon, self.delta)
        chunks = row_chunks(self, self, CountChunks, X, groups, n_samples, reset=False)
        self._check_batch(chunks, stream)
        return self._run_counted(chunks, partial(self._step_of, chunks, stream))

    def forecast(
        self, n_samples: int, n_features: int, *, document_length: float = 100.0
    ) -> TopicForecast:
        """Say what a fit would release and how well, from public numbers alone.

        Parameters
        ----------
        n_samples, n_features : int
            Size of the data to come; where the number of documents is private
            (`neighbours`), the released one is assumed to be that.
        document_length : float, default=100.0
            Typical number of tokens of a document.

        Returns
        -------
        TopicForecast
            Noise of each release against the signal that ``n_components`` equally
            likely topics can have, and the least number of documents from which they
            can be told from noise. Costs nothing.

        Examples
        --------
        >>> from sktensor_dp import PrivateSpectralLDA
        >>> forecast = PrivateSpectralLDA(10, epsilon=1.0).forecast(50_000, 2000)
        >>> forecast.n_samples_needed > 0
        True
        """
        self._check_parameters()
        check_sizes(n_samples=n_samples, n_features=n_features)
        plan = self._plan(n_samples, n_features)
        return forecast_topics(
            plan, n_samples, n_features, document_length, self._assumed_concentration(),
            self.delta == 0, self.neighbours,
        )  # fmt: skip
