"""Texts that Dask has not read yet: bags, series, arrays of one axis."""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sktensor_dp.estimator.lazy_tables import (
    bare,
    number_of_units,
    partitions_by_group,
    row_partitions,
)
from sktensor_dp.privacy.execution import DaskPartitions, ThreadedPartitions
from sktensor_dp.queries.sums import PartialQuery
from sktensor_dp.queries.text import TextChunks, WordCounts
from sktensor_dp.queries.units import RowChoice, as_labels
from sktensor_dp.text.documents import count_words, in_set_interface, read_documents

# Of a vectorizer, what no worker needs.
STAYS = ("vocabulary_", "document_frequencies_", "threshold_", "privacy_report_", "stop_words_")


@dataclass(frozen=True, eq=False)
class TextReader:
    """How texts of a partition become words; of public parameters alone."""

    vectorizer: Any  # its options of texts, and nothing fitted
    grouped: bool = False  # whether partitions are pairs of texts and labels
    choice: RowChoice | None = None  # how many texts of a group are read

    def __call__(self, partition: Any) -> Iterator[WordCounts]:
        """Chunks of units."""
        yield from self.read(partition)

    def read(self, partition: Any) -> TextChunks:
        """All units of a partition."""
        texts, groups = partition if self.grouped else (partition, None)
        # Which item is wrong would tell how many texts lie before it.
        documents = read_documents(self.vectorizer, texts, private_number=True, least=0)
        content = copy.copy(self.vectorizer)
        content.input = "content"
        labels = None if groups is None else as_labels(groups, len(documents))
        analyze = content.build_analyzer()
        return TextChunks(documents, analyze, groups=labels, choice=self.choice)


@dataclass(frozen=True, eq=False)
class LazyTexts:
    """Texts that lie in partitions, and add up there."""

    partitions: DaskPartitions | ThreadedPartitions  # the data
    reader: TextReader  # makes words of a partition
    n_units: int  # number of documents, or of groups, as it was announced; 0 where it is private
    counted: bool  # whether it is private, and nothing is held against it

    apart = True

    @property
    def grouped(self) -> bool:
        """Whether units are groups of texts."""
        return self.partitions.grouped

    def sum(self, query: Any) -> Any:
        """Sum of contributions over all units."""
        partial = self.partitions.sum(PartialQuery(query, self.reader))
        value = partial.value()
        if not self.counted and partial.n_units != self.n_units:
            noun = "groups" if self.grouped else "documents"
            raise ValueError(
                f"The partitions have {partial.n_units} {noun} in all; n_samples is {self.n_units}."
            )
        return value


def lazy_texts(
    vectorizer: Any, raw_documents: Any, groups: Any, n_samples: Any, choice: RowChoice | None
) -> LazyTexts:
    """Check what is known of texts; nothing is computed."""
    reader = TextReader(bare(vectorizer, STAYS), groups is not None, choice)
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
    """Counts of the words of a vocabulary in the texts of a partition."""

    reader: TextReader
    columns: dict[str, int]

    def __call__(self, partition: Any) -> Any:
        """Rows of counts, a sparse matrix."""
        how = self.reader.vectorizer
        words = self.reader.read(partition).documents
        return count_words(words, self.columns, binary=how.binary, dtype=how.dtype)


class CountedTexts:
    """Counts of the words of texts that are read in parts, to be iterated over several times."""

    def __init__(self, counter: Counter, texts: Any) -> None:
        self._counter, self._texts = counter, texts

    def __iter__(self) -> Iterator[Any]:
        return map(in_set_interface, map(self._counter, iter(self._texts)))


def lazy_counts(vectorizer: Any, raw_documents: Any) -> Any:
    """Dask array of counts, in sparse blocks whose numbers of rows are not known.

    Of texts that are read in parts: the counts of each, read anew in each pass.
    """
    counter = Counter(TextReader(bare(vectorizer, STAYS)), vectorizer.vocabulary_)
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
