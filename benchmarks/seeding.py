"""Noise that can be drawn again, for figures; nothing measured with it is private."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from sktensor_dp import NotEnoughDataWarning, PrivacyLeakWarning, unsafe_seeded_noise

__all__ = ["reproducible_noise"]


@contextmanager
def reproducible_noise(seed: int) -> Iterator[None]:
    """Seeded noise, without the warnings that users ought to see."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        with unsafe_seeded_noise(seed):
            yield
