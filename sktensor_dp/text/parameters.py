"""What a private vocabulary is asked for, and how that becomes a plan and a fit."""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.feature_extraction.text import CountVectorizer

from sktensor_dp.estimator.base import (
    NEIGHBOURS,
    NONE,
    Fitted,
    Neighbours,
    PlannedFit,
    PrivateEstimatorMixin,
    is_apart,
)
from sktensor_dp.estimator.inputs import GROUP_CONSTRAINTS, checked_grouping, row_choice
from sktensor_dp.estimator.parameters import (
    Constraint,
    InstanceOf,
    IntegerRange,
    Number,
    OneOf,
    Pattern,
)
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.curator import LARGEST_COUNT, DataCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.reading import as_documents
from sktensor_dp.queries.text import TextChunks, WordCounts
from sktensor_dp.text.documents import LazyTexts, lazy_texts, numbers_of_words, read_documents
from sktensor_dp.text.plan import (
    THRESHOLD_SHARE,
    WordPlan,
    check_words,
    learn,
    plan_words,
    worst_texts,
)

Texts = TextChunks | LazyTexts
CALLABLE = InstanceOf(Callable)  # type: ignore[arg-type]
BOOLEAN = InstanceOf(bool, np.bool_)


class VocabularyParameters(PrivateEstimatorMixin, CountVectorizer):
    """Parameters of a vocabulary, the plan they make with public sizes, and its fit."""

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
        "token_pattern": [Pattern(), NONE],
        "ngram_range": [IntegerRange()],
        "analyzer": [OneOf("word", "char", "char_wb"), CALLABLE],
        "max_df": [Number(0, 1, closed="right"), Number(1, math.inf, integer=True)],
        "min_df": [Number(0, 1), Number(0, math.inf, integer=True)],
        "max_features": [Number(1, math.inf, integer=True), NONE],
        "vocabulary": [InstanceOf(Iterable), NONE],
        "binary": [BOOLEAN],
        "max_words_per_document": [Number(1, math.inf, integer=True)],
        **GROUP_CONSTRAINTS,
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
        max_rows_per_group: int | None = None,
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
        self.max_rows_per_group = max_rows_per_group
        self.neighbours = neighbours
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _delta_set_aside(self) -> float:  # type: ignore[override]
        return 0.0 if self.vocabulary is not None else THRESHOLD_SHARE

    @property
    def _releases_nothing(self) -> bool:  # type: ignore[override]
        return self.vocabulary is not None

    def _word_counter(self) -> Callable[[Any], Any]:
        return partial(numbers_of_words, self.build_analyzer(), distinct=bool(self.binary))

    def _worst_case(self, n_units: int | None) -> Neighbours:
        return worst_texts(self.max_words_per_document, n_units, self.neighbours)

    def fit(
        self,
        raw_documents: Iterable[Any],
        y: Any = None,
        *,
        groups: ArrayLike | None = None,
        n_samples: int | None = None,
        **unsupported: Any,
    ) -> Self:
        """Choose the vocabulary.

        Parameters
        ----------
        raw_documents : iterable of n_documents items
            Texts, paths or files, as ``input`` says; read once. Of a Dask bag or series
            nothing is computed before the charge, and they are split into words by workers.
        y : None
            Ignored.
        groups : array-like of shape (n_documents,), optional
            Whose text each one is: integers or strings. The group is then what is
            protected, with all its texts, whose words it contributes together; the number
            of groups is public, that of texts is private.
        n_samples : int or None, default=None
            For a Dask bag or series, the number of texts, or of groups; public.
        **unsupported : object
            Refused: ``sample_weight`` would be read from the data.

        Returns
        -------
        self : PrivateCountVectorizer
            The fitted vectorizer.

        Raises
        ------
        TypeError
            If an argument is not supported.
        ValueError
            If a parameter is wrong, the documents are none or not of the right kind, or
            `groups` is not one label per document, of at least two groups; no budget is
            spent.
        BudgetError
            If the accountant has too little left; no budget is spent.
        """
        return self._run(self._planned_fit(raw_documents, groups, n_samples, unsupported)[0])

    def _planned_fit(
        self, raw_documents: Any, groups: Any, n_samples: Any, unsupported: Mapping[str, Any]
    ) -> tuple[PlannedFit[DataCurator], WordCounts | None]:
        """Plan what is released, and split the documents into words; not those that are lazy."""
        apart = is_apart(raw_documents)
        content = self._check_call(raw_documents, n_samples, unsupported)
        np.dtype(self.dtype)
        if not isinstance(raw_documents, list):
            raw_documents = as_documents(raw_documents, "raw_documents")
        if apart:
            choice = row_choice(self.max_rows_per_group)
            texts = lazy_texts(self, raw_documents, groups, n_samples, choice)
            return self._planned(texts), None
        content.input = "content"
        analyze = content.build_analyzer()
        # All that may fail on a document does so here, before anything is charged.
        counted = self.neighbours == "add_remove"
        private_number, least = counted or groups is not None, 0 if counted else 1
        documents = read_documents(self, raw_documents, private_number=private_number, least=least)
        grouping = checked_grouping(groups, len(documents), self)
        chunks = TextChunks(documents, analyze, **grouping)
        return self._planned(chunks), chunks.documents

    def _planned(self, chunks: Texts) -> PlannedFit[DataCurator]:
        if self.vocabulary is not None:
            return self._planned_counting(chunks)
        plan = partial(self._fit_of, chunks)
        if self.neighbours == "add_remove":
            return plan(LARGEST_COUNT).counted(plan)
        return plan(chunks.n_units)

    def _planned_counting(self, chunks: Texts) -> PlannedFit[DataCurator]:
        """Use the given vocabulary: no release."""
        counting = CountVectorizer(
            analyzer=list, vocabulary=self.vocabulary, lowercase=self.lowercase, binary=self.binary,
            dtype=self.dtype,
        ).fit([[]])  # fmt: skip
        state = {"vocabulary_": counting.vocabulary_, "fixed_vocabulary_": True}
        return PlannedFit(
            DataCurator, chunks, ReleasePlan(self.epsilon, 0.0, ()), lambda _: Fitted(state),
            options={"neighbours": self.neighbours},
            notes=("The vocabulary was given; it is public.",),
        )  # fmt: skip

    def _word_plan(self, n_units: int, noun: str = "documents") -> WordPlan:
        return plan_words(
            n_units, self.max_words_per_document, epsilon=self.epsilon, delta=self.delta,
            min_df=self.min_df, max_df=self.max_df, noun=noun, neighbours=self.neighbours,
        )  # fmt: skip

    def _fit_of(self, chunks: Texts, n_units: int) -> PlannedFit[DataCurator]:
        """Ask for the words that enough of so many units contain, and prune them."""
        plan = self._word_plan(n_units, "groups" if chunks.grouped else "documents")
        private = self.neighbours == "add_remove"
        # A number below the largest one is that of a released count: the charge is made.
        if not private or n_units == LARGEST_COUNT:
            public = None if private else n_units
            check_words(plan, public, min_df=self.min_df, max_df=self.max_df)
        note = f"Words are kept from about {plan.threshold:.6g} {plan.noun} on."
        recipe = partial(learn, plan=plan, max_features=self.max_features)
        return PlannedFit(DataCurator, chunks, plan.releases, recipe, notes=(note,))
