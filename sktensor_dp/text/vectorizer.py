"""Counts of words over a vocabulary that was chosen privately."""

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.feature_extraction.text import CountVectorizer

from sktensor_dp.estimator.base import NONE, Fitted, PlannedFit, PrivateEstimatorMixin
from sktensor_dp.estimator.hooks import Neighbours
from sktensor_dp.estimator.input_errors import check_sizes
from sktensor_dp.estimator.parameters import Constraint, InstanceOf, Number, OneOf
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.statistics.reading import call_foreign
from sktensor_dp.statistics.text import TextChunks
from sktensor_dp.text.documents import count_words, decode_documents, list_documents
from sktensor_dp.text.plan import RELEASE, WordForecast, WordPlan, forecast_words, plan_words
from sktensor_dp.text.saved import SAVED_VOCABULARY
from sktensor_dp.text.worst_case import worst_texts

__all__ = ["PrivateCountVectorizer"]

Floats = NDArray[np.float64]

CALLABLE = InstanceOf(Callable)  # type: ignore[arg-type]
BOOLEAN = InstanceOf(bool, np.bool_)


@dataclass(frozen=True)
class IntegerRange:
    """A pair of positive integers, the first not larger than the second."""

    def accepts(self, value: Any) -> bool:
        """Whether the value is such a pair."""
        if not (isinstance(value, tuple) and len(value) == 2):
            return False
        positive = Number(1, math.inf, integer=True)
        return all(map(positive.accepts, value)) and value[0] <= value[1]

    def __str__(self) -> str:
        return "a tuple (min_n, max_n) of ints with 1 <= min_n <= max_n"


class PrivateCountVectorizer(PrivateEstimatorMixin, CountVectorizer):
    r"""Word counts over a vocabulary that is learned with differential privacy.

    A drop-in for :class:`sklearn.feature_extraction.text.CountVectorizer`, whose
    vocabulary lists every word that anyone wrote: names, addresses, passwords.
    Here a word enters the vocabulary if its *noisy* number of documents clears
    a threshold that words of a single document practically never reach.

    Parameters
    ----------
    input : {"content", "filename", "file"}, default="content"
        What the documents are: strings or bytes, paths, or open files.
    encoding : str, default="utf-8"
        Encoding of documents given as bytes.
    decode_error : {"strict", "ignore", "replace"}, default="strict"
        What to do with bytes that are not in ``encoding``.
    strip_accents : {"ascii", "unicode"}, callable or None, default=None
        How to remove accents.
    lowercase : bool, default=True
        Whether to convert to lower case.
    preprocessor : callable or None, default=None
        Replaces stripping of accents and lowering of case.
    tokenizer : callable or None, default=None
        Replaces the splitting of a text into words.
    stop_words : {"english"}, list of str or None, default=None
        Words to leave out before they are counted. Worth setting: they take
        places from the ``max_words_per_document`` that count.
    token_pattern : str or None, default=r"(?u)\b\w\w+\b"
        Regular expression of a word; at most one group.
    ngram_range : tuple of two int, default=(1, 1)
        Shortest and longest n-grams.
    analyzer : {"word", "char", "char_wb"} or callable, default="word"
        What a feature is made of; a callable maps a document to its features,
        which must be strings.
    max_df : float in (0, 1] or int >= 1, default=1.0
        Drop words whose noisy document frequency is above this share, or number, of
        the documents.
    min_df : float in [0, 1] or int >= 0, default=1
        Drop words whose noisy document frequency is below this share, or number;
        without effect below ``threshold_``.
    max_features : int or None, default=None
        Keep this many words of largest noisy document frequency.
    vocabulary : mapping, iterable of str or None, default=None
        A public vocabulary. Nothing is released then and nothing charged.
    binary : bool, default=False
        Whether :meth:`transform` marks presence instead of counting.
    dtype : dtype, default=numpy.int64
        Type of the counts.
    max_words_per_document : int, default=100
        How many distinct words of a document may count towards the vocabulary:
        those it uses most, ties going by a fixed checksum of the word.
        Noise and threshold grow with its root, while longer documents lose their
        rarer words. Good values are near the number of distinct words of an
        ordinary document: 20 for short messages, 100 for letters and articles.
    epsilon : float, default=1.0
        Privacy parameter in (0, 1e12]. ``inf``: no noise, every word is kept, not private.
    delta : float, default=1e-6
        Privacy parameter, in (0, 1); half of it pays for the threshold.
        ``delta=0`` needs a ``vocabulary``.
    accountant : BudgetAccountant or None, default=None
        Whom to charge.
    random_state : int, RandomState or None, default=None
        Without effect: nothing but the noise is random here, and noise is never
        seeded by it.
    verbose : int, default=0
        Whether to report the release on standard error.

    Attributes
    ----------
    vocabulary_ : dict
        Column of each word of the vocabulary; columns are in alphabetical order.
    fixed_vocabulary_ : bool
        Whether the vocabulary was given.
    document_frequencies_ : ndarray of shape (n_features,)
        Noisy number of documents that contribute each word, at most the number of
        documents. Not set with a given vocabulary.
    threshold_ : float
        Noisy document frequency from which a word is kept, in documents. Not set
        with a given vocabulary.
    privacy_report_ : PrivacyReport
        What was released and what it cost.

    Raises
    ------
    ValueError
        If a parameter is wrong, the documents are none, not text or cannot be
        decoded, ``delta`` is 0, or the threshold exceeds the number of documents
        (all of this before anything is charged); or if no released word remains.
    BudgetError
        If the accountant has too little left.

    Notes
    -----
    *Privacy.* The unit is a document and neighbouring corpora differ by replacing one
    document. Public are the number of documents and all parameters, ``vocabulary``
    included. Released are, once per fit, the words whose noisy document frequency is at
    least ``threshold_``, with that frequency: (epsilon, delta)-differentially
    private (``docs/proofs/document_frequencies.md``). ``min_df``, ``max_df``,
    ``max_features`` and the order of the columns look at released values only.

    Not covered: the counts that :meth:`transform` and :meth:`fit_transform` return are
    raw data of whoever passes the documents, private until a private estimator
    consumes them. An author of several documents has several units. A document that
    is not text, or that a user's ``preprocessor``, ``tokenizer`` or ``analyzer``
    fails on, raises. scikit-learn's own ``CountVectorizer`` in front of a private
    estimator works too, but its vocabulary then counts as public.

    The selection is that of [1]_, with Gaussian noise calibrated exactly.

    References
    ----------
    .. [1] A. Korolova, K. Kenthapadi, N. Mishra, A. Ntoulas, "Releasing search queries
       and clicks privately", WWW 2009.

    Examples
    --------
    >>> from sktensor_dp import PrivateCountVectorizer
    >>> documents = ["cats chase mice", "dogs chase cats"] * 500 + ["my key is opensesame"]
    >>> vectorizer = PrivateCountVectorizer(max_words_per_document=4, epsilon=1.0)
    >>> counts = vectorizer.fit_transform(documents)
    >>> list(vectorizer.get_feature_names_out())
    ['cats', 'chase', 'dogs', 'mice']
    >>> counts.shape
    (1001, 4)
    >>> round(vectorizer.threshold_, 1)
    64.7
    """

    _unit = "document"
    vocabulary_: dict[str, int]
    _saved_state = SAVED_VOCABULARY
    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "input": [OneOf("content", "filename", "file")],
        "encoding": [InstanceOf(str)],
        "decode_error": [OneOf("strict", "ignore", "replace")],
        "strip_accents": [OneOf("ascii", "unicode", None), CALLABLE],
        "lowercase": [BOOLEAN],
        "preprocessor": [CALLABLE, NONE],
        "tokenizer": [CALLABLE, NONE],
        "stop_words": [OneOf("english", None), InstanceOf(list, tuple, set, frozenset)],
        "token_pattern": [InstanceOf(str), NONE],
        "ngram_range": [IntegerRange()],
        "analyzer": [OneOf("word", "char", "char_wb"), CALLABLE],
        "max_df": [Number(0, 1, closed="right"), Number(1, math.inf, integer=True)],
        "min_df": [Number(0, 1), Number(0, math.inf, integer=True)],
        "max_features": [Number(1, math.inf, integer=True), NONE],
        "vocabulary": [InstanceOf(Iterable), NONE],
        "binary": [BOOLEAN],
        "max_words_per_document": [Number(1, math.inf, integer=True)],
    }

    def __init__(
        self,
        *,
        input: str = "content",
        encoding: str = "utf-8",
        decode_error: str = "strict",
        strip_accents: str | Callable[[str], str] | None = None,
        lowercase: bool = True,
        preprocessor: Callable[[Any], Any] | None = None,
        tokenizer: Callable[[Any], Iterable[str]] | None = None,
        stop_words: str | list[str] | None = None,
        token_pattern: str | None = r"(?u)\b\w\w+\b",
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: str | Callable[[Any], Iterable[str]] = "word",
        max_df: float = 1.0,
        min_df: float = 1,
        max_features: int | None = None,
        vocabulary: Mapping[str, int] | Iterable[str] | None = None,
        binary: bool = False,
        dtype: DTypeLike = np.int64,
        max_words_per_document: int = 100,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            input=input, encoding=encoding, decode_error=decode_error, strip_accents=strip_accents,
            lowercase=lowercase, preprocessor=preprocessor, tokenizer=tokenizer,
            stop_words=stop_words, token_pattern=token_pattern, ngram_range=ngram_range,
            analyzer=analyzer, max_df=max_df, min_df=min_df, max_features=max_features,
            vocabulary=vocabulary, binary=binary, dtype=dtype,
        )  # fmt: skip
        self.max_words_per_document = max_words_per_document
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, raw_documents: Iterable[Any], y: Any = None) -> "PrivateCountVectorizer":
        """Choose the vocabulary.

        Parameters
        ----------
        raw_documents : iterable of n_documents items
            Texts, paths or files, as ``input`` says; read once.
        y : None
            Ignored.

        Returns
        -------
        self : PrivateCountVectorizer
            The fitted vectorizer.
        """
        return self._live(self._planned_fit(raw_documents)[0])

    def fit_transform(self, raw_documents: Iterable[Any], y: Any = None) -> Any:  # type: ignore[override]
        """Choose the vocabulary and count its words, splitting the texts only once.

        Parameters
        ----------
        raw_documents : iterable of n_documents items
            Texts, paths or files, as ``input`` says; read once.
        y : None
            Ignored.

        Returns
        -------
        X : sparse matrix of shape (n_documents, n_features)
            Counts of each document: raw data, not protected by the fit.
        """
        planned, documents = self._planned_fit(raw_documents)
        with self._all_or_nothing():
            columns = self._live(planned).vocabulary_
            return count_words(documents, columns, binary=self.binary, dtype=self.dtype)

    def transform(self, raw_documents: Iterable[Any]) -> Any:
        """Count the words of the vocabulary, as scikit-learn does; the counts are raw data."""
        return call_foreign(partial(super().transform, raw_documents), "Counting words")

    def inverse_transform(self, X: Any) -> Any:
        """Words that occur in each row of counts, as scikit-learn says them; as raw as these."""
        return call_foreign(partial(super().inverse_transform, X), "Looking up words")

    def forecast(self, n_documents: int) -> WordForecast:
        """Say in how many documents a word would have to be, from public numbers alone.

        Parameters
        ----------
        n_documents : int
            Documents to come.

        Returns
        -------
        WordForecast
            The threshold, and the noise on the numbers of documents. Costs nothing.

        Raises
        ------
        ValueError
            If a parameter is wrong, or a ``vocabulary`` is given: no word has to be found.

        Examples
        --------
        >>> from sktensor_dp import PrivateCountVectorizer
        >>> print(PrivateCountVectorizer(max_words_per_document=20).forecast(10_000))
        10000 documents: a word is kept from about 151 documents on, with noise of 27.6.
        """
        self._check_parameters()
        check_sizes(n_documents=n_documents)
        if self.vocabulary is not None:
            raise ValueError("vocabulary must be None: one that is given has no threshold.")
        return forecast_words(
            n_documents, self.max_words_per_document, epsilon=self.epsilon, delta=self.delta
        )

    def _worst_case(self, n_units: int | None) -> Neighbours:
        return worst_texts(self.max_words_per_document, n_units)

    def _planned_fit(
        self, raw_documents: Iterable[Any]
    ) -> tuple[PlannedFit[DataCurator], list[list[str]]]:
        """Plan what is released, and split the documents into words."""
        self._check_parameters()
        np.dtype(self.dtype)
        content = copy.copy(self)
        content.input = "content"
        analyze = content.build_analyzer()
        # A caller's function may take records or lists of words.
        text_only = self.preprocessor is None and not callable(self.analyzer)
        # All that may fail on a document does so here, before anything is charged.
        documents = list_documents(raw_documents, self.input, text_only=text_only)
        # Strings are decoded by the analyzer, which leaves them as they are.
        if self.input != "content" or set(map(type, documents)) != {str}:
            documents = decode_documents(documents, self.decode, self.encoding)
        chunks = TextChunks(documents, analyze)
        plan = self._planned_selection if self.vocabulary is None else self._planned_counting
        return plan(chunks), chunks.documents

    def _planned_counting(self, chunks: TextChunks) -> PlannedFit[DataCurator]:
        """Use the given vocabulary: no release."""
        counting = self._counting(self.vocabulary).fit(chunks.documents[:1])
        state = {"vocabulary_": counting.vocabulary_, "fixed_vocabulary_": True}
        return PlannedFit(
            DataCurator, chunks, ReleasePlan(self.epsilon, 0.0, ()), lambda _: Fitted(state),
            notes=("The vocabulary was given; it is public.",),
        )  # fmt: skip

    def _planned_selection(self, chunks: TextChunks) -> PlannedFit[DataCurator]:
        """Ask for the words that enough documents contain, and prune them."""
        plan = plan_words(
            chunks.n_units, self.max_words_per_document, epsilon=self.epsilon, delta=self.delta,
            min_df=self.min_df, max_df=self.max_df,
        )  # fmt: skip

        def recipe(curator: DataCurator) -> Fitted:
            words, frequencies = curator.release_partitions(RELEASE, plan.query)
            frequencies = np.minimum(frequencies, chunks.n_units)
            kept = self._pruned(words, frequencies, plan)
            columns = {words[place]: column for column, place in enumerate(kept.tolist())}
            return Fitted(
                {
                    "vocabulary_": columns, "document_frequencies_": frequencies[kept],
                    "threshold_": plan.threshold, "fixed_vocabulary_": False,
                }
            )  # fmt: skip

        note = f"Words are kept from a noisy frequency of {plan.threshold:.6g} documents on."
        return PlannedFit(DataCurator, chunks, plan.releases, recipe, notes=(note,))

    def _pruned(self, words: list[str], frequencies: Floats, plan: WordPlan) -> NDArray[np.intp]:
        """Places of the released words that ``min_df``, ``max_df`` and ``max_features`` keep."""
        low, high = plan.least, plan.most
        kept = np.flatnonzero((frequencies >= low) & (frequencies <= high))
        if self.max_features is not None:
            most = np.argsort(-frequencies[kept], kind="stable")[: self.max_features]
            kept = np.sort(kept[most])
        if kept.size == 0:
            raise ValueError(
                f"No word remains: of {len(words)} whose noisy document frequency reached the "
                f"threshold of {plan.threshold:.6g} documents, none lies between min_df and max_df "
                f"({low:g} to {high:g} documents). Check that documents hold text; raise epsilon, "
                "fit more of them, or pass a vocabulary."
            )
        return kept

    def _counting(self, vocabulary: Mapping[str, int] | Iterable[str]) -> CountVectorizer:
        """Return a vectorizer of documents that are lists of words already."""
        return CountVectorizer(
            analyzer=list,
            vocabulary=vocabulary,
            lowercase=self.lowercase,
            binary=self.binary,
            dtype=self.dtype,
        )
