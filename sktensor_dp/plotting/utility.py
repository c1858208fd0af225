"""What a forecast says, drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.plotting.displays import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["UtilityDisplay"]

Floats = NDArray[np.float64]

MUTED = "#52606d"


@dataclass
class UtilityDisplay(Display):
    """Signal over noise of every release against the number of samples, by a forecast.

    Attributes
    ----------
    n_samples : ndarray of shape (n_sizes,)
        Sizes of the data to come.
    ratios : dict of str to ndarray of shape (n_sizes,)
        Of each release; above 1 the signal stands out.

    Examples
    --------
    >>> from sktensor_dp import PrivateSpectralLDA
    >>> from sktensor_dp.plotting import UtilityDisplay
    >>> model = PrivateSpectralLDA(5, epsilon=1.0)
    >>> display = UtilityDisplay.from_estimator(model, [1000, 100_000], n_features=500)
    >>> bool(display.ratios["pair_moments"][1] > display.ratios["pair_moments"][0])
    True
    """

    n_samples: Floats
    ratios: dict[str, Floats]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        n_samples: Sequence[int],
        *,
        n_features: int,
        ax: "Axes | None" = None,
    ) -> "UtilityDisplay":
        """Draw what ``estimator.forecast`` says at several sizes; nothing is spent.

        Parameters
        ----------
        estimator : estimator with ``forecast(n_samples, n_features)``
            Fitted or not: only its parameters are read.
        n_samples : sequence of int
            Sizes of the data to come.
        n_features : int
            Number of features.
        ax : matplotlib axes, default=None
            Where to draw; by default in a new figure.

        Returns
        -------
        UtilityDisplay
            What was drawn.
        """
        found = [estimator.forecast(n, n_features).releases for n in n_samples]
        names = dict.fromkeys(release.name for releases in found for release in releases)
        ratios = {
            name: np.array(
                [next((r.ratio for r in releases if r.name == name), np.nan) for releases in found]
            )
            for name in names
        }
        return cls(np.asarray(n_samples, dtype=np.float64), ratios).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "UtilityDisplay":
        """Draw into axes, or into a new figure."""
        ax = self._axes(ax)
        for name, ratio in self.ratios.items():
            ax.loglog(self.n_samples, ratio, marker="o", label=name)
        ax.axhline(1.0, color=MUTED, linestyle="--")
        ax.set(xlabel="samples", ylabel="signal / noise")
        ax.legend()
        return self
