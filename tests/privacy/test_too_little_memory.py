"""Arrays that have no room are not told by their shape: one document may decide on it."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp import PrivateSpectralLDA, PrivateTensorPowerMethod
from sktensor_dp.power_method import estimator as components
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.counts import CountChunks
from sktensor_dp.queries.moments import PairMoments, RowsOfPairs
from sktensor_dp.queries.norms import Clip, CountNorm
from sktensor_dp.spectral_lda import parameters as topics

D = 6
PAIRS = PairMoments(Clip(CountNorm(1), 5.0), 1.0)


def released(curator: DataCurator) -> Any:
    return curator.release("pair_moments", PAIRS)


def multiplied(curator: DataCurator) -> Any:
    product, _ = curator.noisy_product("pair_moments", PAIRS)
    return product(np.eye(D))


def roomless(*_: Any) -> Any:
    """An error of numpy's that names a length."""
    return np.empty((123_456_789, 2**20))


@pytest.mark.parametrize(
    ("asked", "broken", "method"),
    [
        (released, PairMoments, "total"),
        (multiplied, PairMoments, "by_rows"),
        (multiplied, RowsOfPairs, "__call__"),
    ],
)
def test_what_has_no_room_is_not_told_by_its_shape(asked, broken, method, monkeypatch):
    """How many pairs of words occur is told by one document."""
    monkeypatch.setattr(broken, method, roomless)
    plan = ReleasePlan.split(1.0, 1e-6, {"pair_moments": 1.0})
    chunks = CountChunks(sp.csr_matrix(np.ones((9, D))), 9, D)
    with (
        DataCurator(chunks, plan, spender="test", unit="document", accountant=None) as curator,
        pytest.raises(MemoryError) as error,
    ):
        asked(curator)
    assert "1234567" not in str(error.value)
    assert "charged" in str(error.value)
    assert error.value.__context__ is error.value.__cause__ is None


@pytest.mark.parametrize(
    ("model", "module", "name"),
    [
        (PrivateSpectralLDA(2), topics, "as_counts"),
        (PrivateTensorPowerMethod(2, data_norm=1.0), components, "as_samples"),
        (PrivateTensorPowerMethod(2, moment="single_topic"), components, "as_counts"),
    ],
)
def test_rows_that_have_no_room_are_not_told_by_their_number(model, module, name, monkeypatch):
    """It may be private, and how many words occur always is."""
    monkeypatch.setattr(module, name, roomless)
    with pytest.raises(MemoryError, match="too little memory for X") as error:
        model.fit(np.ones((9, D)))
    assert "1234567" not in str(error.value)
    assert error.value.__context__ is error.value.__cause__ is None
