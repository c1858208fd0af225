"""Whitening by a second moment that was seen under noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.tensor.eigenpairs import Operator, top_eigenpairs
from sktensor_dp.tensor.oracle import Floats
from sktensor_dp.tensor.whitening import CappedWhitener, Whitener

# An eigenvalue below this share of the largest is rounding.
NULL_EIGENVALUE = 1e-12
# Of what noise may lift an eigenvalue to: one kept is taken for no less.
LEAST_SHARE = 0.1
# Of the largest eigenvalue of a moment seen in a frame: what is less is taken for it.
LEAST_IN_FRAME = 1e-4


@dataclass(frozen=True, eq=False)
class NoisyWhitener(Whitener):
    """Whitener by eigenpairs of which some stand out of the noise."""

    eigenvalues: Floats
    n_resolved: int

    def times(self, V: Floats) -> Floats:
        """Second moment, of the rank kept, times V."""
        return self.basis @ (self.eigenvalues[:, None] * (self.basis.T @ V))

    def in_frame(self, frame: Floats) -> CappedWhitener:
        """Whitener of third moments that are seen in the columns of any matrix."""
        seen = self.times(frame)
        transform = _inverse_root(frame.T @ seen)
        return CappedWhitener(frame, transform, seen @ transform)


def noisy_whitener(
    M2: ArrayLike | Operator,
    n_components: int,
    *,
    edge: float,
    largest: float | None = None,
    keep_all: bool = False,
    **eigen_options: Any,
) -> NoisyWhitener:
    """Keep the eigenpairs above `edge`, which noise alone may reach, and one at least.

    `largest` is what an eigenvalue can be at most; by default what the first one is.
    """
    values, vectors = top_eigenpairs(M2, n_components, **eigen_options)
    n_resolved = int((values > edge).sum())
    kept = len(values) if keep_all else max(n_resolved, 1)
    if largest is None:
        largest = max(float(values[0]), NULL_EIGENVALUE)
    eigenvalues = np.maximum(values[:kept], max(LEAST_SHARE * edge, NULL_EIGENVALUE * largest))
    return NoisyWhitener(vectors[:, :kept], np.sqrt(eigenvalues), eigenvalues, n_resolved)


def _inverse_root(matrix: Floats) -> Floats:
    """Inverse square root of a positive semi-definite matrix, bounded where it has none."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    values = np.maximum(values, LEAST_IN_FRAME * max(float(values[-1]), 1e-300))
    return vectors / np.sqrt(values)
