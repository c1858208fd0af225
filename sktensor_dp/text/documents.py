"""Reading and counting of texts in memory or lazy ones; errors name types, never content."""

import math
import numbers
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import repeat
from types import NoneType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from sklearn import get_config
from sklearn.feature_extraction.text import CountVectorizer

from sktensor_dp.checks.errors import call_untrusted
from sktensor_dp.checks.frames import as_documents
from sktensor_dp.data.partitions import DaskPartitions
from sktensor_dp.data.sums import PartialQuery
from sktensor_dp.data.texts import TextChunks, WordCounts
from sktensor_dp.data.units import Chunks
from sktensor_dp.estimator import lazy
from sktensor_dp.estimator.inputs import checked_groups

WANTED = {"content": "strings or bytes", "filename": "paths", "file": "open files"}
MISSING = "Drop missing documents, or replace them by ''."
# Attributes of a vectorizer that workers do not need.
NOT_FOR_WORKERS = (
    "vocabulary_", "document_frequencies_", "threshold_", "privacy_report_", "stop_words_",
)  # fmt: skip


@cache
def word_pattern() -> re.Pattern[str]:
    r"""Pattern of words of two characters or more, of letters, digits and ``_`` with their marks.

    To Python's ``\w`` words end at combining marks, such as vowel signs of Hindi and Thai, and at
    joiners. In texts without these it finds what scikit-learn's default pattern does.
    """
    variants_of_emoji = range(0xFE00, 0xFE10)
    characters = (chr(i) for i in range(0x300, 0x20000) if i not in variants_of_emoji)
    marks = "".join(one for one in characters if unicodedata.category(one) in ("Mn", "Mc"))
    # The lookahead is for speed: most words end at a blank.
    return re.compile(rf"\w(?:\w+|(?![\0-\u02ff])[{marks}\u200c\u200d]+)+")


def read_documents(
    vectorizer: CountVectorizer, raw_documents: Iterable[object], *, grouped: bool, is_part: bool
) -> list[Any]:
    """List documents, decoded by the parameters of a vectorizer.

    A part of the documents (`is_part`) may be empty. Errors give the place of a wrong document
    unless it is in a part, or the number of documents is private, as where they are `grouped`.
    """
    container = type(raw_documents)
    number_is_private = vectorizer.neighbours == "add_remove"
    is_one = issubclass(container, (str, bytes, Mapping)) or not isinstance(raw_documents, Iterable)
    if is_one or getattr(raw_documents, "ndim", 1) != 1:
        shape = getattr(raw_documents, "shape", None)
        has_shape = "" if shape is None else f" and shape {shape}"
        raise ValueError(
            "raw_documents must be a one-dimensional iterable with one item per document, got "
            f"an object of type {container.__name__}{has_shape}. Pass one column of a table, or a "
            "list; a single document as [document]."
        )
    if container is list:  # copied by Python's own code, which quotes nothing
        documents = list(raw_documents)
    else:
        documents = call_untrusted(lambda: list(raw_documents), "The iterable of documents")
    if not documents and not (number_is_private or is_part):
        raise ValueError("raw_documents must hold at least one document, got none.")
    kinds = list(map(type, documents))
    wrong = {kind for kind in set(kinds) if not _is_document(kind, vectorizer)}
    if wrong:
        first_wrong = min(map(kinds.index, wrong))
        which = "an item" if number_is_private or grouped or is_part else f"item {first_wrong}"
        advice = "Pass the column that holds the texts." if wrong == set(kinds) else MISSING
        raise ValueError(
            f"raw_documents must hold {WANTED[vectorizer.input]}; {which} is of type "
            f"{kinds[first_wrong].__name__}. {advice}"
        )
    # Strings need no decoding: the analyzer passes them on.
    if vectorizer.input == "content" and set(kinds) == {str}:
        return documents

    def decoded() -> list[Any] | None:
        try:
            return list(map(vectorizer.decode, documents))
        except UnicodeDecodeError:
            return None  # the error carries the document

    doing = "Reading a document (with input='filename', items must be paths of files)"
    texts = call_untrusted(decoded, doing)
    if texts is None:
        raise ValueError(
            f"A document is not in encoding={vectorizer.encoding!r}: set the right one, or "
            "decode_error='replace'."
        )
    return texts


def _is_document(kind: type, vectorizer: CountVectorizer) -> bool:
    """True if an item of type `kind` can be a document for the vectorizer."""
    if vectorizer.input == "filename":
        return issubclass(kind, (str, bytes, os.PathLike))
    if vectorizer.input == "file":
        return hasattr(kind, "read")
    if vectorizer.preprocessor is None and not callable(vectorizer.analyzer):
        return issubclass(kind, (str, bytes))
    # A function of the caller may accept records or lists of words.
    return not issubclass(kind, (NoneType, numbers.Number))


def count_words(
    documents: WordCounts, vocabulary: Mapping[str, int], *, binary: bool, dtype: DTypeLike
) -> sp.csr_matrix:
    """Count the words of a vocabulary, which maps words to columns, as ``CountVectorizer`` does."""
    words, stored = documents.words.names, documents.counts
    column_of_word = np.fromiter(map(vocabulary.get, words, repeat(-1)), np.int32, len(words))
    columns = column_of_word[stored.indices]  # (nnz,): -1 for words beyond the vocabulary
    kept = columns >= 0
    n_kept_before = np.concatenate([[0], np.cumsum(kept)])  # before each stored count, and in all
    layout = (stored.data[kept].astype(dtype), columns[kept], n_kept_before[stored.indptr])
    counts = sp.csr_matrix(layout, shape=(documents.n_units, len(vocabulary)))
    counts.sort_indices()
    if binary:
        counts.data.fill(1)
    return counts


def as_sparse_interface(counts: sp.csr_matrix) -> sp.csr_matrix | sp.csr_array:
    """Convert to the type that scikit-learn's ``sparse_interface`` asks for."""
    return sp.csr_array(counts) if get_config().get("sparse_interface") == "sparray" else counts


def document_lengths(
    analyze: Callable[[Any], Iterable[object]], raw_documents: Iterable[object], *, distinct: bool
) -> NDArray[np.float64]:
    """Number of words, or of `distinct` words, of each document, in the vocabulary or not."""
    kept: Any = set if distinct else list
    return np.array([len(kept(analyze(text))) for text in raw_documents], dtype=np.float64)


def text_chunks(
    vectorizer: CountVectorizer, texts: Any, groups: Any, *, is_part: bool = False
) -> TextChunks:
    """Words of texts, with the group of each; everything that may fail on a document fails here."""
    of_content = vectorizer._validation_copy()
    of_content.input = "content"
    analyze = of_content.build_analyzer()
    column = as_documents(texts, "raw_documents")
    documents = read_documents(vectorizer, column, grouped=groups is not None, is_part=is_part)
    # A partition may hold a single group, which is allowed where their number is private.
    relation = "add_remove" if is_part else vectorizer.neighbours
    labels = checked_groups(groups, texts, len(documents), relation)
    return TextChunks(documents, analyze, groups=labels)


def words_of_part(vectorizer: CountVectorizer, grouped: bool, partition: Any) -> TextChunks:
    """Words of the texts of a partition, which is a pair of texts and labels if `grouped`."""
    texts, groups = partition if grouped else (partition, None)
    return text_chunks(vectorizer, texts, groups, is_part=True)


def counts_of_part(vectorizer: CountVectorizer, vocabulary: dict[str, int], partition: Any) -> Any:
    """Count matrix of the texts of a partition, of shape (n_documents, n_words)."""
    words = words_of_part(vectorizer, grouped=False, partition=partition).word_counts
    return count_words(words, vocabulary, binary=vectorizer.binary, dtype=vectorizer.dtype)


@dataclass(frozen=True, eq=False)
class LazyTexts(Chunks):
    """Texts in the partitions of a lazy collection; workers sum queries over them."""

    partitions: DaskPartitions  # the data
    vectorizer: CountVectorizer  # copy that splits texts into words, with nothing fitted
    n_units: int  # number of documents, or of groups, as it was announced; 0 where it is private

    apart = True

    @property
    def grouped(self) -> bool:  # type: ignore[override]
        """True where units are groups of texts."""
        return self.partitions.grouped

    def sum(self, query: Any) -> Any:
        """Sum of the query over all units; ValueError unless they are as many as announced."""
        reader = partial(words_of_part, self.vectorizer, self.grouped)
        summed = self.partitions.sum(PartialQuery(query, reader))
        value = summed.value()
        if self.vectorizer.neighbours != "add_remove" and summed.n_units != self.n_units:
            noun = "groups" if self.grouped else "documents"
            raise ValueError(
                f"The partitions have {summed.n_units} {noun} in all; n_samples is {self.n_units}."
            )
        return value


def lazy_texts(
    vectorizer: CountVectorizer, raw_documents: Any, groups: Any, n_samples: Any
) -> LazyTexts:
    """Texts in partitions, which are validated by their metadata and not computed."""
    if getattr(raw_documents, "ndim", 1) != 1:
        raise ValueError(
            "raw_documents must be a Dask bag, series or array of one axis; got a "
            f"{type(raw_documents).__name__} with more of them. Pass the column of the texts."
        )
    n_rows, *_ = getattr(raw_documents, "shape", (math.nan,))
    n_rows = n_rows if isinstance(n_rows, int) else math.nan  # not known before it is computed
    n_units = lazy.number_of_units(vectorizer, n_rows, groups, n_samples, "documents")
    partitions = lazy.partitions_by_group(raw_documents, groups)
    return LazyTexts(partitions, lazy.worker_copy(vectorizer, NOT_FOR_WORKERS), n_units or 0)


def lazy_counts(vectorizer: CountVectorizer, raw_documents: Any) -> Any:
    """Dask array of counts in sparse blocks."""
    vocabulary = vectorizer.vocabulary_
    count = partial(counts_of_part, lazy.worker_copy(vectorizer, NOT_FOR_WORKERS), vocabulary)
    width, dtype = len(vocabulary), np.dtype(vectorizer.dtype)
    shapes = [(math.nan, width)] * len(lazy.row_partitions(raw_documents))
    return lazy.mapped_partitions(
        count, raw_documents, shapes, dtype, sp.csr_matrix((0, width), dtype=dtype)
    )
