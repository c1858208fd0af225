"""Nothing writes to memory that it did not make: a caller's data, or what two chunks share."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from ways_to_fit import COUNTS, DOCUMENTS, GAPS, PERSONS, SAMPLES, X, Y, quiet

from sktensor_dp import (
    PrivateCPCompletion,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)
from sktensor_dp.data.counts import CountChunks
from sktensor_dp.data.samples import SampleChunks
from sktensor_dp.data.texts import TextChunks
from sktensor_dp.published.completion import (
    gradient_perturbation,
    input_perturbation,
    output_perturbation,
)

COPY = {"topics": PrivateSpectralLDA, "samples": PrivateTensorPowerMethod}


def parts_of(data: Any) -> Iterator[np.ndarray]:
    """All arrays in some data."""
    if isinstance(data, np.ndarray):
        yield data
    elif sp.issparse(data):
        yield from (getattr(data, name) for name in ("data", "indices", "indptr", "row", "col")
                    if hasattr(data, name))  # fmt: skip
    elif isinstance(data, list | tuple):
        for part in data:
            yield from parts_of(part)


def unchanged(call: Callable[[Any], Any], data: Any) -> Any:
    """Result of a call, first on memory that cannot be written, then on memory that can."""
    arrays = list(parts_of(data))
    before = [array.tobytes() for array in arrays]
    for writeable in (False, True):
        for array in arrays:
            array.flags.writeable = writeable
        with quiet():
            found = call(data)
        assert [array.tobytes() for array in arrays] == before
    return found


def copied(data: Any) -> Any:
    if isinstance(data, tuple | list):
        return type(data)(map(copied, data))
    return data.copy() if isinstance(data, np.ndarray) else data


def test_entries_are_not_changed_by_any_method() -> None:
    model, entries = PrivateCPCompletion(1, bounds=(-4, 4), **PERSONS), (X.copy(), Y.copy())
    with quiet():
        model.fit(X, Y)
    own = unchanged(lambda data: model.fold_in(*data), entries)
    unchanged(lambda data: model.score(*data), entries)
    for call in (model.predict, own.predict, model.transform):
        unchanged(call, entries[0])
    unchanged(lambda exclude: model.recommend(own, exclude=exclude, context={2: 0}), entries[0])
    tensor, seen = GAPS.copy(), ~np.isnan(GAPS)
    unchanged(lambda data: PrivateCPCompletion(1, bounds=(-4, 4)).fit_tensor(*data), (tensor, seen))
    for published in (input_perturbation, gradient_perturbation, output_perturbation):
        unchanged(lambda data, by=published: by(*data, shape=GAPS.shape, rank=1), entries)


def test_what_chunks_share_cannot_be_written() -> None:
    labels = np.repeat(np.arange(60), 2)
    for chunks in (
        CountChunks(sp.csr_matrix(COUNTS), *COUNTS.shape, groups=labels),
        SampleChunks(SAMPLES, *SAMPLES.shape, groups=labels),
    ):
        for chunk in chunks:
            assert not any(array.flags.writeable for array in parts_of(chunk.X))
    for chunk in TextChunks(DOCUMENTS, str.split, groups=np.repeat(np.arange(60), 3)):
        with pytest.raises(ValueError, match="read-only"):
            chunk.counts.data[:] = 0


def test_a_function_that_writes_to_its_rows_changes_no_data() -> None:
    def halve(rows: np.ndarray) -> np.ndarray:
        rows /= 2
        return rows

    pipe = make_pipeline(
        FunctionTransformer(halve), PrivateTensorPowerMethod(1, data_norm=2.0, n_restarts=2)
    )
    search = PrivateSearchCV(
        pipe, {"privatetensorpowermethod__max_iter": [1]}, n_trials=1, score_bounds=(-1, 1)
    )
    unchanged(search.fit, SAMPLES.copy())
