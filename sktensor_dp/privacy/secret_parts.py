"""Parts of data whose units come and go: a secret coin of its own says where a unit goes.

A unit that is added or removed then touches no part but its own. Proof:
docs/proofs/secret_parts.md.
"""

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.privacy.noise import NoiseSource

# A share is rounded to a multiple of one over it, which is drawn exactly.
STEPS = 2**53


def secret_parts(n_units: int, n_parts: int) -> NDArray[np.intp]:
    """Part of each unit, evenly and independently of all others."""
    return NoiseSource().integers(n_parts, n_units).astype(np.intp)


def secret_halves(n_units: int, share: float) -> NDArray[np.intp]:
    """1 for each unit with a probability, 0 otherwise, independently of all others."""
    below = min(max(round(STEPS * share), 1), STEPS - 1)
    return (NoiseSource().integers(STEPS, n_units) < below).astype(np.intp)
