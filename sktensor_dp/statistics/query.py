"""What every query over raw data has to say about itself."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Chunks", "Query"]


class Query(Protocol):
    """A sum over units of contributions with a proved bound."""

    # The parameters of a query are public. Its answer on a chunk is the sum of the units'
    # contributions, so chunks add up; its sensitivities say how far replacing one unit can move the
    # sum over all chunks.

    def total(self, chunk: Any) -> NDArray[np.float64]:
        """Sum of the contributions of the units in a chunk."""

    @property
    def l2_sensitivity(self) -> float:
        """L2 norm, in the mechanism's coordinates, of the largest change of the sum."""

    @property
    def l1_sensitivity(self) -> float:
        """L1 norm of the largest change of the sum; infinity where no bound is proved."""


class Chunks(Protocol):
    """Raw data that can be read several times, a chunk of units at a time."""

    @property
    def n_units(self) -> int:
        """Number of units; public."""

    def __iter__(self) -> Any:
        """Yield the chunks, in the form their queries expect."""
