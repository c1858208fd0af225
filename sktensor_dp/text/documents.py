"""Validation of collections of documents; errors name types, never content."""

import numbers
import os
from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from types import NoneType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from sklearn import get_config

from sktensor_dp.queries.reading import call_foreign
from sktensor_dp.queries.text import WordCounts

WANTED = {"content": "strings or bytes", "filename": "paths", "file": "open files"}


def read_documents(
    vectorizer: Any, raw_documents: Iterable[Any], *, private_number: bool, least: int
) -> list[Any]:
    """Documents as a list, read and decoded, as the parameters of a vectorizer say."""
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
    """Documents as a list, each of a type that `source` says; an iterator is used up."""
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
        documents = call_foreign(lambda: list(raw_documents), "The iterable of documents")
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
    """Read and decode documents; an error tells the encoding, and nothing of a document."""
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
    """Keep of the words of documents those of a vocabulary, as ``CountVectorizer`` returns them."""
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


def in_set_interface(counts: sp.csr_matrix) -> sp.csr_matrix | sp.csr_array:
    """Matrix or array, as scikit-learn's ``sparse_interface`` asks; before 1.9 a matrix."""
    return sp.csr_array(counts) if get_config().get("sparse_interface") == "sparray" else counts


def numbers_of_words(
    analyze: Callable[[Any], Iterable[Any]], raw_documents: Iterable[Any], *, distinct: bool
) -> NDArray[np.float64]:
    """Count all words of each document, whether or not a vocabulary has them."""
    words = (list(analyze(document)) for document in raw_documents)
    return np.array([len(set(some) if distinct else some) for some in words], dtype=np.float64)


def _advice(wrong: list[type], kinds: list[type]) -> str:
    """What to do, by types alone."""
    if len(wrong) == len(set(kinds)):
        return "Pass the column that holds the texts."
    return "Drop missing documents, or replace them by ''."


def _is_document(kind: type, source: str, text_only: bool) -> bool:
    if source == "filename":
        return issubclass(kind, (str, bytes, os.PathLike))
    if source == "file":
        return hasattr(kind, "read")
    if text_only:
        return issubclass(kind, (str, bytes))
    return not issubclass(kind, (NoneType, numbers.Number))
