"""Nothing writes to memory that it did not make: a caller's data, or what two chunks share."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from cases import plain, quiet
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sktensor_dp import (
    PrivateSearchCV,
    PrivateTensorPowerMethod,
)
from sktensor_dp.data.counts import CountChunks
from sktensor_dp.data.samples import SampleChunks
from sktensor_dp.data.texts import TextChunks

COUNTS = plain("topics").draw().X
SAMPLES = plain("components").draw().X.astype(float)
DOCUMENTS = plain("words").draw().X


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


def test_what_chunks_share_cannot_be_written():
    labels = np.repeat(np.arange(30), 2)
    for chunks in (
        CountChunks(sp.csr_matrix(COUNTS), *COUNTS.shape, groups=labels),
        SampleChunks(SAMPLES, *SAMPLES.shape, groups=labels),
    ):
        for chunk in chunks:
            assert not any(array.flags.writeable for array in parts_of(chunk.X))
    for chunk in TextChunks(DOCUMENTS, str.split, groups=labels):
        with pytest.raises(ValueError, match="read-only"):
            chunk.counts.data[:] = 0


def test_a_function_that_writes_to_its_rows_changes_no_data():
    def halve(rows: np.ndarray) -> np.ndarray:
        rows /= 2
        return rows

    pipe = make_pipeline(
        FunctionTransformer(halve), PrivateTensorPowerMethod(1, data_norm=2.0, n_restarts=2)
    )
    search = PrivateSearchCV(
        pipe, {"privatetensorpowermethod__max_iter": [1]}, n_trials=1, score_bounds=(-1, 1)
    )
    X = SAMPLES.copy()
    with quiet():
        search.fit(X)
    np.testing.assert_array_equal(X, SAMPLES)
