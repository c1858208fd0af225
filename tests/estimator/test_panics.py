"""What is no Exception shows no data either: libraries in Rust panic with what they read."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from secret_entries import NUMBER, TEXT

from sktensor_dp import PrivateCountVectorizer, PrivateSpectralLDA, PrivateTensorPowerMethod

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")

COUNTS = np.random.default_rng(0).poisson(2.0, (300, 3))
TEXTS = ["cats chase mice", "dogs chase cats"] * 60


class Panic(BaseException):
    """As libraries in Rust raise where they did not expect what they read."""


def panicking(*args: Any, **kwargs: Any) -> Any:
    raise Panic(f"called `unwrap()` on {TEXT} {NUMBER}")


def stopping(*args: Any, **kwargs: Any) -> Any:
    raise KeyboardInterrupt


class Chunks:
    def __init__(self, read: Any) -> None:
        self._read = read

    def __iter__(self) -> Iterator[Any]:
        yield COUNTS
        yield self._read()


@pytest.mark.parametrize(
    "call",
    [
        lambda read: PrivateSpectralLDA(2).fit_chunks(Chunks(read), n_samples=600, n_features=3),
        lambda read: PrivateTensorPowerMethod(2, data_norm=4.0).fit_chunks(Chunks(read)),
        lambda read: PrivateCountVectorizer(tokenizer=read, token_pattern=None).fit(TEXTS),
    ],
)
def test_panics_that_are_no_exceptions_show_nothing(call):
    with pytest.raises(RuntimeError) as error:
        call(panicking)
    assert str(NUMBER) not in str(error.value)
    assert TEXT not in str(error.value)
    assert "Panic" in str(error.value)
    assert error.value.__context__ is error.value.__cause__ is None
    with pytest.raises(KeyboardInterrupt):
        call(stopping)
