"""Reading and counting of texts in memory or lazy ones; errors name types, never content."""

import copy
import math
import numbers
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from types import NoneType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from sklearn import get_config

from sktensor_dp.estimator.inputs import (
    number_of_units,
    partitions_by_group,
    row_partitions,
    worker_copy,
)
from sktensor_dp.privacy.execution import DaskPartitions, ThreadedPartitions
from sktensor_dp.queries.error_sanitising import call_untrusted
from sktensor_dp.queries.sums import PartialQuery
from sktensor_dp.queries.text import TextChunks, WordCounts
from sktensor_dp.queries.units import as_labels

WANTED = {"content": "strings or bytes", "filename": "paths", "file": "open files"}


def read_documents(
    vectorizer: Any, raw_documents: Iterable[Any], *, private_number: bool, least: int
) -> list[Any]:
    """List raw documents and decode them by the parameters of a vectorizer; `private_number` keeps
    positions out of errors, and fewer than `least` documents are refused.
    """
    # A caller's function may take records or lists of words.
    text_only = vectorizer.preprocessor is None and not callable(vectorizer.analyzer)
    documents = list_documents(raw_documents, vectorizer.input, text_only, private_number, least)
    # Strings are decoded by the analyzer, which leaves them as they are.
    if vectorizer.input == "content" and set(map(type, documents)) == {str}:
        return documents
    return decode_documents(documents, vectorizer.decode, vectorizer.encoding)


def list_documents(
    raw_documents: Iterable[Any], source: str, text_only: bool, private_number: bool, least: int
) -> list[Any]:
    """List raw documents; ValueError for fewer than `least`, and for items of a type that `source`,
    the vectorizer's ``input``, does not allow (with `text_only`, only strings and bytes).
    """
    kind = type(raw_documents)
    single = issubclass(kind, (str, bytes, Mapping)) or not isinstance(raw_documents, Iterable)
    if single or getattr(raw_documents, "ndim", 1) != 1:
        shape = getattr(raw_documents, "shape", None)
        raise ValueError(
            "raw_documents must be a one-dimensional iterable with one item per document, got "
            f"an object of type {kind.__name__}"
            + ("" if shape is None else f" and shape {shape}")
            + ". Pass one column of a table, or a list; a single document as [document]."
        )
    if kind is list:  # copied by Python's own code, which quotes nothing
        documents = list(raw_documents)
    else:
        documents = call_untrusted(lambda: list(raw_documents), "The iterable of documents")
    if len(documents) < least:
        raise ValueError("raw_documents must hold at least one document, got none.")
    kinds = list(map(type, documents))
    wrong = [kind for kind in set(kinds) if not _is_document(kind, source, text_only)]
    if wrong:
        first = min(map(kinds.index, wrong))
        which = "an item" if private_number else f"item {first}"
        raise ValueError(
            f"raw_documents must hold {WANTED[source]}; {which} is of type "
            f"{kinds[first].__name__}. {_advice(wrong, kinds)}"
        )
    return documents


def decode_documents(
    documents: list[Any], decode: Callable[[Any], Any], encoding: str
) -> list[Any]:
    """Apply `decode` to every document; errors name the encoding and quote no document."""
    try:
        return list(map(decode, documents))
    except UnicodeDecodeError:
        # The original error carries the document.
        error: Exception = ValueError(
            f"A document is not in encoding={encoding!r}: set the right one, or "
            "decode_error='replace'."
        )
    except OSError as failed:
        # What it could not open may be a document.
        error = type(failed)(
            "A document cannot be opened; with input='filename', items must be paths of files."
        )
    except Exception as failed:
        error = ValueError(f"A document cannot be read or decoded: {type(failed).__name__}.")
    # Raised here because in the handlers it would keep the original in its context.
    raise error


def count_words(
    documents: WordCounts, vocabulary: Mapping[str, int], *, binary: bool, dtype: DTypeLike
) -> sp.csr_matrix:
    """Count matrix of a vocabulary, a mapping of words to columns, as ``CountVectorizer`` returns
    it; with `binary`, counts are 1.
    """
    words, found = documents.words.names, documents.counts
    columns = np.fromiter(map(vocabulary.get, words, repeat(-1)), np.int32, len(words))
    columns = columns[found.indices]
    known = columns >= 0
    seen = np.concatenate([[0], np.cumsum(known)])
    columns = columns[known]
    ends = seen[found.indptr]
    shape = (len(documents), len(vocabulary))
    counts = sp.csr_matrix((found.data[known].astype(dtype), columns, ends), shape=shape)
    counts.sum_duplicates()
    if binary:
        counts.data.fill(1)
    return counts


def as_sparse_interface(counts: sp.csr_matrix) -> sp.csr_matrix | sp.csr_array:
    """Convert to the type that scikit-learn's ``sparse_interface`` asks for."""
    return sp.csr_array(counts) if get_config().get("sparse_interface") == "sparray" else counts


def document_lengths(
    analyze: Callable[[Any], Iterable[Any]], raw_documents: Iterable[Any], *, distinct: bool
) -> NDArray[np.float64]:
    """Number of words of each document, in the vocabulary or not; of distinct words with
    `distinct`.
    """
    words = (list(analyze(document)) for document in raw_documents)
    return np.array([len(set(some) if distinct else some) for some in words], dtype=np.float64)


def _advice(wrong: list[type], kinds: list[type]) -> str:
    """Advise how to mend documents of the types `wrong`, where `kinds` are the types of all
    documents.
    """
    if len(wrong) == len(set(kinds)):
        return "Pass the column that holds the texts."
    return "Drop missing documents, or replace them by ''."


def _is_document(kind: type, source: str, text_only: bool) -> bool:
    """True if an item of type `kind` can be a document for `source`, the vectorizer's ``input``;
    `text_only` excludes all but strings and bytes.
    """
    if source == "filename":
        return issubclass(kind, (str, bytes, os.PathLike))
    if source == "file":
        return hasattr(kind, "read")
    if text_only:
        return issubclass(kind, (str, bytes))
    return not issubclass(kind, (NoneType, numbers.Number))


# Attributes of a vectorizer that no worker needs.
NOT_FOR_WORKERS = (
    "vocabulary_",
    "document_frequencies_",
    "threshold_",
    "privacy_report_",
    "stop_words_",
)


@dataclass(frozen=True, eq=False)
class TextReader:
    """Callable that splits the texts of one partition of lazy data into words; holds public
    parameters alone.
    """

    vectorizer: Any  # its options of texts, and nothing fitted
    grouped: bool = False  # whether partitions are pairs of texts and labels

    def __call__(self, partition: Any) -> Iterator[WordCounts]:
        """Yield the words of a partition, as one chunk."""
        yield from self.read(partition)

    def read(self, partition: Any) -> TextChunks:
        """Split the texts of a partition into words, by unit: by document, or by group."""
        texts, groups = partition if self.grouped else (partition, None)
        # Which item is wrong would tell how many texts lie before it.
        documents = read_documents(self.vectorizer, texts, private_number=True, least=0)
        content = copy.copy(self.vectorizer)
        content.input = "content"
        labels = None if groups is None else as_labels(groups, len(documents))
        analyze = content.build_analyzer()
        return TextChunks(documents, analyze, groups=labels)


@dataclass(frozen=True, eq=False)
class LazyTexts:
    """Texts in the partitions of a lazy collection; workers sum queries over them."""

    partitions: DaskPartitions | ThreadedPartitions  # the data
    reader: TextReader  # makes words of a partition
    n_units: int  # number of documents, or of groups, as it was announced; 0 where it is private
    counted: bool  # True if their number is private, so that it is not checked

    apart = True

    @property
    def grouped(self) -> bool:
        """True where units are groups of texts."""
        return self.partitions.grouped

    def sum(self, query: Any) -> Any:
        """Sum of the query's contributions over all units (documents, or groups of them);
        ValueError unless there are `n_units`.
        """
        partial = self.partitions.sum(PartialQuery(query, self.reader))
        value = partial.value()
        if not self.counted and partial.n_units != self.n_units:
            noun = "groups" if self.grouped else "documents"
            raise ValueError(
                f"The partitions have {partial.n_units} {noun} in all; n_samples is {self.n_units}."
            )
        return value


def lazy_texts(vectorizer: Any, raw_documents: Any, groups: Any, n_samples: Any) -> LazyTexts:
    """Validate texts in partitions without computing them."""
    reader = TextReader(worker_copy(vectorizer, NOT_FOR_WORKERS), groups is not None)
    in_chunks = getattr(raw_documents, "in_chunks", False)
    if in_chunks and groups is not None:
        raise ValueError(
            "groups cannot be given for texts that are read in parts; "
            "load_texts_by_person reads them together."
        )
    if getattr(raw_documents, "ndim", 1) != 1:
        raise ValueError(
            "raw_documents must be a Dask bag, series or array of one axis; got a "
            f"{type(raw_documents).__name__} with more of them. Pass the column of the texts."
        )
    shape = getattr(raw_documents, "shape", (math.nan,))
    known = shape[0] if isinstance(shape[0], int) else math.nan
    n_units = number_of_units(vectorizer, known, groups, n_samples, "documents")
    partitions: DaskPartitions | ThreadedPartitions
    if in_chunks:
        partitions = ThreadedPartitions(raw_documents, 1)
    else:
        partitions = partitions_by_group(row_partitions(raw_documents), groups, raw_documents)
    return LazyTexts(partitions, reader, n_units or 0, n_units is None)


@dataclass(frozen=True, eq=False)
class Counter:
    """Callable that counts the words of a vocabulary, `columns`, in the texts of one partition."""

    reader: TextReader
    columns: dict[str, int]

    def __call__(self, partition: Any) -> Any:
        """Count matrix of a partition, sparse, of shape (n_documents, n_words)."""
        how = self.reader.vectorizer
        words = self.reader.read(partition).documents
        return count_words(words, self.columns, binary=how.binary, dtype=how.dtype)


class CountedTexts:
    """Iterable over count matrices of texts that are read in parts, anew in each pass."""

    def __init__(self, counter: Counter, texts: Any) -> None:
        self._counter, self._texts = counter, texts

    def __iter__(self) -> Iterator[Any]:
        return map(as_sparse_interface, map(self._counter, iter(self._texts)))


def lazy_counts(vectorizer: Any, raw_documents: Any) -> Any:
    """Dask array of counts in sparse blocks; for texts that are read in parts, an iterable of
    matrices.
    """
    counter = Counter(TextReader(worker_copy(vectorizer, NOT_FOR_WORKERS)), vectorizer.vocabulary_)
    if getattr(raw_documents, "in_chunks", False):
        return CountedTexts(counter, raw_documents)
    import dask
    import dask.array as da
    import scipy.sparse as sp

    width, dtype = len(counter.columns), np.dtype(vectorizer.dtype)
    # One object of the graph: it goes to a worker once, not with every partition.
    counts = dask.delayed(counter, pure=False, traverse=False)
    meta = sp.csr_matrix((0, width), dtype=dtype)
    blocks = [
        da.from_delayed(counts(part, pure=False), (math.nan, width), dtype=dtype, meta=meta)
        for part in row_partitions(raw_documents)
    ]
    return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)
