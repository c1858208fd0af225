"""How many units there are, where one more or less is what is hidden."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class UnitCount:
    """The number of units, to which each contributes 1 whatever its rows hold."""

    # Replacing a unit does not change it: there it is public, and never released.
    l2_sensitivity = l1_sensitivity = 0.0
    l2_contribution = l1_contribution = 1.0

    def total(self, chunk: Any) -> NDArray[np.float64]:
        """Units of a chunk: of rows, or of a list of units."""
        number = chunk.units.n if hasattr(chunk, "units") else len(chunk)
        return np.array([float(number)])
