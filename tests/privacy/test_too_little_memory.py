"""Arrays that have no room are not told by their shape: one document may decide on it."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp import PrivateSpectralLDA, PrivateTensorPowerMethod
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.counts import Clip, CountChunks, CountNorm
from sktensor_dp.queries.moments import PairMoments

D = 6


def roomless(*_: Any, **__: Any) -> Any:
    """An error of numpy's that names a length."""
    return np.empty((123_456_789, 2**20))


class Totals(PairMoments):
    total = roomless


def test_what_has_no_room_is_not_told_by_its_shape():
    """How many pairs of words occur is told by one document."""
    plan = ReleasePlan.split(1.0, 1e-6, {"pair_moments": 1.0})
    chunks = CountChunks(sp.csr_matrix(np.ones((9, D))), 9, D)
    with (
        DataCurator(chunks, plan, spender="test", unit="document", accountant=None) as curator,
        pytest.raises(MemoryError) as error,
    ):
        curator.release("pair_moments", Totals(Clip(CountNorm(1), 5.0), 1.0))
    assert "1234567" not in str(error.value)
    assert "charged" in str(error.value)
    assert error.value.__context__ is error.value.__cause__ is None


class Table:
    """Rows that have no room as an array."""

    shape, ndim, dtype = (9, D), 2, np.dtype(float)
    __array__ = roomless

    def __len__(self) -> int:
        return 9


@pytest.mark.parametrize(
    "model",
    [
        PrivateSpectralLDA(2),
        PrivateTensorPowerMethod(2, data_norm=1.0),
        PrivateTensorPowerMethod(2, moment="single_topic"),
    ],
)
def test_rows_that_have_no_room_are_not_told_by_their_number(model):
    """It may be private, and how many words occur always is."""
    with pytest.raises(MemoryError) as error:
        model.fit(Table())
    assert "1234567" not in str(error.value)
    assert error.value.__context__ is error.value.__cause__ is None
