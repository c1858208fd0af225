"""Sources of noise that tests can predict."""

import pytest

from sktensor_dp import PrivacyLeakWarning, unsafe_seeded_noise
from sktensor_dp.privacy.noise_source import NoiseSource


def same_noise(seed: int = 5) -> NoiseSource:
    """Sources that draw the same noise whenever they are asked the same."""
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        return NoiseSource()
