"""Samples of the discrete Gaussian and Laplace laws from the OpenDP library.

A second implementation, by other hands and in another language, of what
`sktensor_dp.privacy.noise_sampler` does: slower by a factor of 500.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Discrete laws of scale 2^40, rounded to a coarser grid, differ from rounded continuous
# ones by a total variation below 2^-83 per number.
FINE_BITS = 40


def opendp_samples(law: str, size: int, bits: int) -> NDArray[np.int64]:
    """Draw independent discrete noise, rounded to a grid of ``2^bits`` steps per scale."""
    fine = max(bits, FINE_BITS)
    draws = _measurement(law, fine)([0] * size) if size else []
    coarser = fine - bits
    return (np.array(draws, np.int64) + ((1 << coarser) >> 1)) >> coarser


@lru_cache(maxsize=32)
def _measurement(law: str, bits: int) -> Any:
    from opendp import prelude as opendp

    # OpenDP's name for parts whose proofs have not been vetted by its own committee.
    opendp.enable_features("contrib")
    integers = opendp.vector_domain(opendp.atom_domain(T="i64"))
    if law == "gaussian":
        return opendp.m.make_gaussian(integers, opendp.l2_distance(T="f64"), scale=2.0**bits)
    return opendp.m.make_laplace(integers, opendp.l1_distance(T="i64"), scale=2.0**bits)
