"""Word counts over a private vocabulary."""

import copy
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.checks.composed import composed
from sktensor_dp.checks.errors import call_untrusted
from sktensor_dp.checks.frames import INDEX, as_documents, index_of, is_dask, refuse_other_columns
from sktensor_dp.checks.parameters import (
    Condition,
    Constraint,
    InstanceOf,
    Number,
    OneOf,
    check_sizes,
    whole_length,
)
from sktensor_dp.data.texts import TextChunks
from sktensor_dp.estimator.base import NEIGHBOURS, NONE, FitResult, PrivateEstimatorMixin
from sktensor_dp.estimator.facts import Neighbours, PublicFacts
from sktensor_dp.estimator.inputs import WORDS, mark_unit
from sktensor_dp.model_files.container import require
from sktensor_dp.model_files.fields import ABSENT, NUMBERS, Numbers, Plain, Real, SavedState, Words
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.plan import THRESHOLD_FRACTION, ReleasePlan
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.text.documents import (
    LazyTexts,
    as_sparse_interface,
    count_words,
    document_lengths,
    lazy_counts,
    lazy_texts,
    read_documents,
    text_chunks,
    word_pattern,
)
from sktensor_dp.text.plan import (
    WordForecast,
    WordPlan,
    check_words,
    expected_words,
    plan_words,
    worst_texts,
)
from sktensor_dp.text.recipe import fit_vocabulary

# Remains of contractions and addresses after texts are split at punctuation.
PIECES = (
    "ain aren couldn didn didnt doesn doesnt don dont hadn hasn haven isn ll shouldn ve wasn "
    "weren wouldn com htm html http https org www"
)
ENGLISH = ENGLISH_STOP_WORDS.union(PIECES.split())


@dataclass(kw_only=True)
class SavedVocabulary(SavedState):
    """Serialisation schema: words in the order of their columns, and released numbers."""

    words: Annotated[NDArray[np.object_], Words("d")]
    fixed_vocabulary_: Annotated[bool, Plain(bool)]
    document_frequencies_: Annotated[Floats, Numbers("d+")] = ABSENT
    threshold_: Annotated[float, Real("+")] = ABSENT

    @classmethod
    def of(cls, estimator: object, **rebuilt: object) -> Self:
        """State of a fitted vectorizer, with the words in the order of their columns."""
        columns = vars(estimator).get("vocabulary_", {})
        return super().of(estimator, words=sorted(columns, key=columns.get))

    def attributes(self, estimator: Any) -> dict[str, Any]:
        """Fitted attributes by name, of a vocabulary that was learned or given."""
        dtype = estimator.dtype
        # Compare names of types: numpy's parser of such strings does more than look them up.
        is_known = isinstance(dtype, type) or (isinstance(dtype, str) and dtype in NUMBERS)
        require(is_known, f"dtype must be one of {sorted(NUMBERS)}")
        is_given = self.threshold_ is ABSENT
        require(is_given == self.fixed_vocabulary_, "a vocabulary is learned, or given")
        has_none = self.document_frequencies_ is ABSENT
        require(has_none or not is_given, "a given word has no frequency")
        # Raises an error for an invalid pattern of words; on a copy, which keeps the compiled
        # pattern.
        copy.copy(estimator).build_analyzer()
        attributes = super().attributes(estimator)
        words = attributes.pop("words").tolist()
        return {**attributes, "vocabulary_": {word: column for column, word in enumerate(words)}}


Texts = TextChunks | LazyTexts
CALLABLE = InstanceOf(Callable)  # type: ignore[arg-type]
BOOLEAN = InstanceOf(bool, np.bool_)
POSITIVE = Number(1, math.inf, integer=True)


def _accepted_by(read: Callable[[Any], Any], expected: str) -> Condition:
    """Condition that `read` makes something true of a value, and raises no error."""

    def accepts(value: object) -> bool:
        with suppress(Exception):
            return bool(read(value))
        return False

    return Condition(accepts, expected)


def _is_range(value: Any) -> bool:
    """True for a tuple of two positive integers, the first not larger than the second."""
    pair = isinstance(value, tuple) and len(value) == 2 and all(map(POSITIVE.accepts, value))
    return pair and value[0] <= value[1]


def _columns_of(words: Any) -> dict[str, int]:
    """Columns of the words, composed, of a given vocabulary; ValueError unless they differ."""
    given = CountVectorizer(vocabulary=words).fit([""]).vocabulary_
    columns = {composed(word): column for word, column in given.items()}
    if len(columns) < len(given):
        raise ValueError("vocabulary has a word in two Unicode forms")
    return columns


DTYPE = _accepted_by(lambda value: np.dtype(value).kind in "iuf", "a numpy dtype of numbers")
VOCABULARY = _accepted_by(
    _columns_of,
    "a collection of different words when composed (NFC), or a mapping of words to columns "
    "0, 1, ...",
)
PATTERN = _accepted_by(
    lambda value: isinstance(value, str) and re.compile(value), "a str that is a regular expression"
)
N_GRAMS = Condition(_is_range, "a tuple (min_n, max_n) of ints with 1 <= min_n <= max_n")
# Parameters that decide what is accepted as a document, and which words it has.
COUNTED_BY = frozenset({
    "input", "encoding", "decode_error", "preprocessor", "analyzer", "strip_accents", "lowercase",
    "tokenizer", "stop_words", "token_pattern", "ngram_range", "binary",
})  # fmt: skip


class PrivateCountVectorizer(PrivateEstimatorMixin, CountVectorizer):
    r"""Word counts over a vocabulary that is learned with differential privacy.

    A drop-in for :class:`sklearn.feature_extraction.text.CountVectorizer`, whose
    vocabulary lists every word that anyone wrote: names, addresses, passwords.
    Here a word enters the vocabulary if the *noisy* votes of documents for it clear
    a threshold that words of a single document practically never reach.

    Parameters
    ----------
    input, encoding, decode_error, strip_accents, lowercase, preprocessor, tokenizer
        As for scikit-learn's ``CountVectorizer``, with its defaults. Texts, a `vocabulary` and
        `stop_words` are composed first (Unicode's NFC, no soft hyphens), each by itself.
    token_pattern : str or None, default=None
        Regular expression of a word. None: two characters or more, as by scikit-learn's default,
        which cuts words at combining marks, such as the vowel signs of Hindi; these stay.
    ngram_range, analyzer, binary, dtype
        As for scikit-learn's ``CountVectorizer``, with its defaults. Features are strings, also
        those of a callable `analyzer`.
    stop_words : {"english"}, list of str or None, default=None
        Words to leave out before they are counted. Worth setting: documents then vote for others.
        English ones are scikit-learn's, and what splitting leaves of contractions and addresses,
        such as *don*, *www* and *com*.
    max_df, min_df : float or int, default=1.0 and 1
        Drop words whose noisy document frequency is above, or below, this fraction or number; a
        fraction is in [0, 1], for `max_df` above 0. With any other value than the default these
        frequencies are released, for a fifth of the budget: fewer words are found. ``min_df=0``
        asks for them and drops no word.
    max_features : int or None, default=None
        Keep this many of the commonest words: by noisy document frequency where these are
        released, else by noisy numbers in which long documents count less. Costs nothing.
    vocabulary : mapping, iterable of str or None, default=None
        A public vocabulary. Nothing is released then and nothing charged.

    max_words_per_document : int, default=1000
        Number of distinct words of a document (or of all texts of a group) that it may vote for.
        Noise does not grow with it, and the threshold with its logarithm only. A document with
        more words votes for those neither rare nor common: where many have more, words are lost,
        the commonest among them. A limit that hardly any document exceeds, as four times the words
        of an ordinary one, keeps some percent more words than the default.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        One document is replaced; or added or removed (``docs/guarantee.md``), and a noisy count is
        released first, at one percent of the budget.
    epsilon : float, default=1.0
        Privacy parameter in (0, 1e12]. ``inf``: no noise, every word is kept, not private.
    delta : float, default=1e-6
        Privacy parameter, in [0, 1); half of it pays for the threshold.
        ``delta=0`` needs a ``vocabulary``, or ``epsilon=inf``.
    accountant : BudgetAccountant or None, default=None
        Accountant that is charged.
    random_state : int, RandomState or None, default=None
        Without effect: it never seeds noise, and nothing else is random here.
    verbose : int, default=0
        1 writes one line per release to standard error.

    Attributes
    ----------
    vocabulary_ : dict
        Column of each word of the vocabulary; in alphabetical order, unless it was given.
    fixed_vocabulary_ : bool
        Whether the vocabulary was given.
    document_frequencies_ : ndarray of shape (n_features,)
        Noisy number of documents (or groups) with each word, at least 1 and at most the number of
        all. About one document in a hundred has more words of the vocabulary than count, by a
        noisy histogram: it counts for those that it uses most. Set if `min_df` or `max_df` asks
        for it, or without noise; not with a given vocabulary.
    threshold_ : float
        Number of documents, about, that use a word which is kept as often as not. An ordinary
        document is assumed to have a hundred distinct words, and some far more; or none over
        ``max_words_per_document``, if this is less. Where all are equally long it is 0.7 times
        that, and where all have four times as many words it is double. Of words that half as many
        use few are kept, and some commoner words are missing at random. Not set with a given
        vocabulary.
    privacy_report_ : PrivacyReport
        What was released and what it cost.

    Notes
    -----
    **Privacy.** *Unit*: one document; with ``groups``, one group with all its texts, whose number
    is private. *Public*: the number of units, unless it is released, and all parameters,
    ``vocabulary`` included. *Releases*, once per fit: noisy weighted numbers of documents by a
    checksum of words (``docs/proofs/word_buckets.md``), the words whose noisy votes reach a
    threshold (``docs/proofs/word_votes.md``), and if `min_df` or `max_df` asks for them a noisy
    histogram of how many of these words documents have (``docs/proofs/norm_histogram.md``) and
    noisy numbers of documents with each (``docs/proofs/document_frequencies.md``). ``min_df``,
    ``max_df``, ``max_features`` and the order of the columns look at released values only. *Not
    covered*: the counts that :meth:`transform` and :meth:`fit_transform` return are raw data,
    private until a private estimator consumes them; without groups, an author of several documents
    has several units; a document that is not text, or that a user's ``preprocessor``, ``tokenizer``
    or ``analyzer`` fails on, raises.

    The selection is that of [1]_, with weights that follow from released numbers in the
    place of those of [2]_, and Gaussian noise calibrated exactly.

    References
    ----------
    .. [1] A. Korolova, K. Kenthapadi, N. Mishra, A. Ntoulas, "Releasing search queries
       and clicks privately", WWW 2009.
    .. [2] J. Y. Chen, V. Cohen-Addad, A. Epasto, M. Zadimoghaddam, "Scalable private
       partition selection via adaptive weighting", ICML 2025.

    Examples
    --------
    >>> from sktensor_dp import PrivateCountVectorizer
    >>> documents = ["cats chase mice", "dogs chase cats"] * 500 + ["my key is opensesame"]
    >>> vectorizer = PrivateCountVectorizer(max_words_per_document=4, epsilon=1.0)
    >>> vectorizer.fit_transform(documents).shape, round(vectorizer.threshold_, 1)
    ((1001, 4), 43.2)
    >>> list(vectorizer.get_feature_names_out())
    ['cats', 'chase', 'dogs', 'mice']
    """

    _saved = SavedVocabulary
    _unit = "document"
    vocabulary_: dict[str, int]
    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "input": [OneOf("content", "filename", "file")],
        "encoding": [InstanceOf(str)],
        "decode_error": [OneOf("strict", "ignore", "replace")],
        "strip_accents": [OneOf("ascii", "unicode", None), CALLABLE],
        "lowercase": [BOOLEAN],
        "preprocessor": [CALLABLE, NONE],
        "tokenizer": [CALLABLE, NONE],
        "stop_words": [OneOf("english", None), InstanceOf(list, tuple, set, frozenset)],
        "token_pattern": [PATTERN, NONE],
        "ngram_range": [N_GRAMS],
        "analyzer": [OneOf("word", "char", "char_wb"), CALLABLE],
        "max_df": [Number(0, 1, closed="right"), Number(1, math.inf, integer=True)],
        "min_df": [Number(0, 1), Number(0, math.inf, integer=True)],
        "max_features": [POSITIVE, NONE],
        "vocabulary": [VOCABULARY, NONE],
        "dtype": [DTYPE],
        "binary": [BOOLEAN],
        "max_words_per_document": [POSITIVE],
        **NEIGHBOURS,
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
        token_pattern: str | None = None,
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: str | Callable[[Any], Iterable[str]] = "word",
        max_df: float = 1.0,
        min_df: float = 1,
        max_features: int | None = None,
        vocabulary: Mapping[str, int] | Iterable[str] | None = None,
        binary: bool = False,
        dtype: DTypeLike = np.int64,
        max_words_per_document: int = 1000,
        neighbours: str = "replace_one",
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
        self.neighbours = neighbours
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def get_stop_words(self) -> Any:
        """Words that are left out, or None."""
        words = ENGLISH if self.stop_words == "english" else super().get_stop_words()
        return None if words is None else frozenset(map(composed, words))

    def decode(self, doc: Any) -> Any:
        """Text of a document, composed; with a callable `preprocessor` any document as it is."""
        return composed(super().decode(doc))

    def build_tokenizer(self) -> Callable[[str], Iterable[str]]:
        """Make the function that splits a text into words."""
        is_own = self.tokenizer is None and self.token_pattern is None
        return word_pattern().findall if is_own else super().build_tokenizer()

    def _validate_vocabulary(self) -> None:
        """Take a given vocabulary, its characters composed, for methods that need no fit."""
        super()._validate_vocabulary()
        if self.fixed_vocabulary_:
            self.vocabulary_ = _columns_of(self.vocabulary)

    def fit(
        self,
        raw_documents: Iterable[object],
        y: object = None,
        *,
        groups: ArrayLike | None = None,
        n_samples: int | None = None,
        **unsupported: object,
    ) -> Self:
        """Choose the vocabulary.

        Parameters
        ----------
        raw_documents : iterable of n_documents items
            Texts, paths or files, as ``input`` says; read once. For a Dask bag or series
            nothing is computed before the charge, and they are split into words by workers.
        y : ignored
        groups : array-like of shape (n_documents,), optional
            Label of the group of each text: integers or strings. The group is then what is
            protected, with all its texts, whose words it contributes together; the number
            of groups is public (unless ``neighbours="add_remove"``), that of texts private. "Zoe"
            and "zoe" are two: :func:`~sktensor_dp.normalise_labels` makes them one.
        n_samples : int or None, default=None
            For a Dask bag or series, the number of texts, or of groups; public.
        **unsupported : object
            Refused: ``sample_weight`` would be read from the data.

        Returns
        -------
        self : PrivateCountVectorizer

        Raises
        ------
        TypeError, ValueError
            If a parameter or argument is wrong, the documents are none, not text or cannot be
            decoded, or `groups` is not one label per document, or a single group with
            ``neighbours="replace_one"``; no budget is spent, unless only partitions of a Dask
            collection show it.
        NotEnoughDataError
            Before anything is charged, if a public number of documents is below the threshold for
            equally long ones, or `max_df` drops all words that noise does not; or if no released
            word remains: its ``privacy_report_`` states what that cost.
        BudgetError
            If the accountant has too little left; no budget is spent.
        """
        self._checked_copy(raw_documents, n_samples, unsupported)  # for its errors
        return self._fit_units(self._chunks_of(raw_documents, groups, n_samples))

    def fit_transform(
        self,
        raw_documents: Iterable[object],
        y: object = None,
        *,
        groups: ArrayLike | None = None,
        n_samples: int | None = None,
        **unsupported: object,
    ) -> Any:
        """Choose the vocabulary and count its words.

        Texts are split into words once, those of Dask twice.

        Parameters
        ----------
        raw_documents, y, groups, n_samples, **unsupported : object
            As for :meth:`fit`.

        Returns
        -------
        X : sparse matrix of shape (n_documents, n_features)
            Counts of each document: raw data, not protected by the fit. Of Dask a Dask array of
            sparse blocks.
        """
        self._checked_copy(raw_documents, n_samples, unsupported, "fit_transform")  # for its errors
        chunks = self._chunks_of(raw_documents, groups, n_samples)
        columns = self._fit_units(chunks).vocabulary_
        if isinstance(chunks, LazyTexts):
            return self._marked(lazy_counts(self, raw_documents), None, is_whole=True)
        counts = count_words(chunks.word_counts, columns, binary=self.binary, dtype=self.dtype)
        index = index_of(groups) if index_of(raw_documents) is None else index_of(raw_documents)
        return self._marked(as_sparse_interface(counts), index, is_whole=True)

    def transform(self, raw_documents: Iterable[object]) -> Any:
        """Count the words of the vocabulary as scikit-learn does; the counts are raw data."""
        if is_dask(raw_documents):
            check_is_fitted(self, "vocabulary_")
            return self._marked(lazy_counts(self, raw_documents), None)
        if self.vocabulary is not None and "vocabulary_" not in vars(self):
            _columns_of(self.vocabulary)  # for its error
        documents = as_documents(raw_documents, "raw_documents")
        if self.input == "content":
            documents = read_documents(self, documents, grouped=False, is_part=True)
        counts = call_untrusted(partial(super().transform, documents), "Counting words")
        return self._marked(counts, index_of(raw_documents))

    def inverse_transform(self, X: object) -> Any:
        """List the words of each row of counts as scikit-learn does; they are raw data."""
        check_is_fitted(self, "vocabulary_")
        refuse_other_columns(X, self.get_feature_names_out().tolist())
        return call_untrusted(partial(super().inverse_transform, X), "Looking up words")

    def forecast(self, n_documents: int, *, document_length: float = 100) -> WordForecast:
        """Forecast the threshold of the vocabulary from public numbers.

        Parameters
        ----------
        n_documents : int
            Documents to come; groups of documents, where they will be fitted with groups.
        document_length : float, default=100
            Different words of an ordinary document, beside stop words: a public guess. The more
            there are, the less each of them counts. Some documents are assumed to have far more.

        Returns
        -------
        WordForecast
            The threshold, and about how many words are kept of ordinary texts. Costs nothing.

        Raises
        ------
        ValueError
            If a parameter is wrong, or a ``vocabulary`` is given: no word has to be found.

        Examples
        --------
        >>> from sktensor_dp import PrivateCountVectorizer
        >>> forecast = PrivateCountVectorizer(max_words_per_document=20).forecast(10_000)
        >>> round(forecast.threshold), forecast.n_words
        (101, 165)
        """
        self._check_parameters()
        check_sizes(n_documents=n_documents)
        length = whole_length(document_length)
        if self.vocabulary is not None:
            raise ValueError("vocabulary must be None: one that is given has no threshold.")
        plan = plan_words(self, n_documents, length=length)
        self._warn_of_budget(plan.releases)
        n_words = expected_words(plan.threshold, n_documents, self, length)
        return WordForecast(n_documents, n_words, plan)

    def _marked(self, counts: object, index: object, *, is_whole: bool = False) -> Any:
        """Counts marked with their words, the index of rows, and the unit for the next fit."""
        with suppress(AttributeError):
            setattr(counts, WORDS, self.vocabulary_)
            setattr(counts, INDEX, index)
        if self.fixed_vocabulary_ or "privacy_report_" not in vars(self):
            return counts
        return mark_unit(counts, self.privacy_report_, is_whole=is_whole)

    def _public_facts(self) -> PublicFacts:
        is_given = self.vocabulary is not None
        return PublicFacts(
            self._unit, delta_set_aside=0.0 if is_given else THRESHOLD_FRACTION,
            releases_nothing=is_given, scored_by=COUNTED_BY,
            word_counter=self._word_counter, worst_case=self._worst_case,
        )  # fmt: skip

    def _word_counter(self) -> Callable[[Any], Any]:
        """Picklable function from texts to the number of words of each."""
        return partial(document_lengths, self.build_analyzer(), distinct=bool(self.binary))

    def _worst_case(self, n_units: int | None) -> Neighbours:
        return worst_texts(self.max_words_per_document, n_units, self.neighbours)

    def _chunks_of(self, raw_documents: object, groups: object, n_samples: object) -> Texts:
        """Words of each document, read and split here, or by workers for lazy documents."""
        if is_dask(raw_documents):
            return lazy_texts(self, raw_documents, groups, n_samples)
        return text_chunks(self, raw_documents, groups)

    def _fit_units(self, chunks: Texts) -> Self:
        """Plan the vocabulary, open a session, ask for its words, publish."""
        if self.vocabulary is not None:
            # Take the given words, in a session that is asked for nothing.
            state = {"vocabulary_": _columns_of(self.vocabulary), "fixed_vocabulary_": True}
            with self._session(chunks, ReleasePlan(self.epsilon, delta=0.0, planned=())) as ask:
                fitted = FitResult(state, notes=("The vocabulary was given; it is public.",))
            return self._publish_result(self._with_report(ask, fitted, public={}))
        largest_plan = self._plan(chunks, self._largest_number(chunks))
        if not self._number_is_private:  # a wrong column of `groups` is named before too few groups
            self._check_charge(largest_plan.releases, chunks)
        check_words(self, largest_plan, None if self._number_is_private else chunks.n_units)
        with self._session(chunks, largest_plan.releases) as ask:
            plan = self._plan(chunks, ask.n_units)
            ask.divide(plan.releases)
            fitted = fit_vocabulary(ask, plan, self.max_features)
        return self._publish_result(self._with_report(ask, fitted, public={}))

    def _plan(self, chunks: Texts, n_units: int) -> WordPlan:
        return plan_words(self, n_units, "persons" if chunks.grouped else "documents")
