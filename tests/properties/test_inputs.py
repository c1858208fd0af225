"""No call writes to what it is handed, whatever memory that lies in."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from cases import DASK, OF_GROUPS, PARTS, READERS, Case, covered, plain

from sktensor_dp.data.counts import CountChunks
from sktensor_dp.data.samples import SampleChunks
from sktensor_dp.data.texts import TextChunks

METHODS = ("transform", "predict", "score_samples", "score", "perplexity")


def memory_of(item: Any) -> Any:
    """All that it holds, in order: bytes of arrays, and values of tables."""
    if isinstance(item, np.ndarray) and item.dtype != object:
        return [item.tobytes(), str(item.dtype), item.strides]
    if sp.issparse(item) and hasattr(item, "indptr"):
        return [memory_of(part) for part in (item.data, item.indices, item.indptr)]
    if isinstance(item, tuple):
        return [memory_of(part) for part in item]
    if hasattr(item, "compute"):
        return memory_of(np.asarray(item.compute(scheduler="synchronous")))
    return repr(item.to_numpy().tolist()) if hasattr(item, "iloc") else pickle.dumps(item)


@dataclass(frozen=True)
class Same(Case):
    """A case whose data is made once."""

    made: Any = field(default=None, compare=False)

    def given(self, data: Any) -> Any:
        return self.made


def arrays_of(item: Any) -> Iterator[np.ndarray]:
    """Arrays that a fit could write to."""
    if isinstance(item, np.ndarray):
        yield item
    elif sp.issparse(item):
        yield from (part for part in vars(item).values() if isinstance(part, np.ndarray))
    elif isinstance(item, tuple):
        for part in item:
            yield from arrays_of(part)


def reads_only(case: Case) -> None:
    """From memory that cannot be written to."""
    data = case.draw()
    given = case.given(data)
    for array in arrays_of(given):
        array.flags.writeable = False
    Same(case.model, case.values, given).fit(case.build(), data)


def holds(case: Case) -> None:
    data, model = case.draw(), case.build()
    X, y, groups = given = case.given(data)
    before = memory_of(given)
    if case["container"] in (*PARTS, *DASK, "tensor", "batches"):
        Same(case.model, case.values, given).fit(model, data)
        assert memory_of(given) == before, "fit"
        return
    values, labels = [] if y is None else [y], {} if groups is None else {"groups": groups}
    with case.settings():
        if case.of.family == "tensors":
            model.fit_tensor(X)
        else:
            both = getattr(model, "fit_transform", model.fit)
            both(X, *values, **labels)
        assert memory_of(given) == before, "fit"
        for method in METHODS if case.of.family != "tensors" else ():
            if hasattr(model, method):
                getattr(model, method)(X, *(values if method == "score" else []))
                assert memory_of(given) == before, method


test_forms, test_forms_in_triples = covered(holds, ("container", "names"), READERS)
test_groups, test_groups_in_triples = covered(holds, OF_GROUPS, READERS)
test_read_only, test_read_only_in_triples = covered(reads_only, ("neighbours",))


def test_what_chunks_share_cannot_be_written():
    labels, counts = np.repeat(np.arange(30), 2), plain("topics").draw().X
    samples, texts = plain("components").draw().X.astype(float), plain("words").draw().X
    for chunks in (
        CountChunks(sp.csr_matrix(counts), *counts.shape, groups=labels),
        SampleChunks(samples, *samples.shape, groups=labels),
    ):
        for chunk in chunks:
            assert not any(array.flags.writeable for array in arrays_of(chunk.X))
    for chunk in TextChunks(texts, str.split, groups=labels):
        with pytest.raises(ValueError, match="read-only"):
            chunk.counts.data[:] = 0
