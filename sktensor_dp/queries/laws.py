"""Laws of noise by stable ids: what a query allows, and what reports and statements name."""

from dataclasses import dataclass
from typing import Any, Literal

Norm = Literal["l1", "l2"]


@dataclass(frozen=True)
class Law:
    """Distribution of noise; ``sktensor_dp.privacy.mechanisms`` draws it."""

    id: str  # in reports, statements and files: never changed
    norm: Norm  # of the sensitivity that it is scaled by
    pure: bool = False  # whether it spends a pure epsilon, and not mu
    spherical: bool = False  # whether noise is a random length in a random direction
    fails: bool = False  # whether it fails with a probability delta, beside its noise

    def strength(self, cost: Any) -> float:
        """Part of a cost that this law spends: mu, or epsilon for pure laws."""
        return float(cost.epsilon if self.pure else cost.mu)


GAUSSIAN = Law("gaussian", "l2")
# Noise on the distinct entries of a symmetric array.
GAUSSIAN_SYMMETRIC = Law("gaussian, symmetric", "l2")
# Noise on totals by key; totals below a threshold are not released.
GAUSSIAN_THRESHOLDED = Law("gaussian, thresholded", "l2", fails=True)
LAPLACE = Law("laplace", "l1", pure=True)
LAPLACE_SYMMETRIC = Law("laplace, symmetric", "l1", pure=True)
# Noise of density proportional to exp(-epsilon |noise| / sensitivity).
SPHERICAL = Law("spherical laplace", "l2", pure=True, spherical=True)
# Independent noise for each row: private only for statistics of which neighbours differ in one row.
SPHERICAL_ROWS = Law("spherical laplace, by rows", "l2", pure=True, spherical=True)
PIECEWISE = Law("piecewise", "l1", pure=True)

LAWS: dict[str, Law] = {
    law.id: law
    for law in (
        *(GAUSSIAN, GAUSSIAN_SYMMETRIC, GAUSSIAN_THRESHOLDED, LAPLACE, LAPLACE_SYMMETRIC),
        *(SPHERICAL, SPHERICAL_ROWS, PIECEWISE),
    )
}


def law_of(identity: str) -> Law:
    """Law of an id; ValueError for one that is not registered."""
    if identity not in LAWS:
        raise ValueError(f"the law of noise must be one of {', '.join(LAWS)}; got {identity!r}.")
    return LAWS[identity]
