"""What a forecast says, drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.plotting.displays import Display
from sktensor_dp.plotting.word_bars import MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


@dataclass
class UtilityDisplay(Display):
    """What a forecast says against the size of the data: nothing is spent.

    Signal over noise of every release; of completions the expected errors.

    Attributes
    ----------
    n_samples : ndarray of shape (n_sizes,)
        Sizes of the data to come: samples, or observed entries.
    ratios : dict of str to ndarray of shape (n_sizes,)
        Of each release; above 1 the signal stands out. Of completions the expected errors,
        by what predicts.
    quantity : str, default="signal / noise"
        What is drawn; ``"expected RMSE"`` of completions.
    title : str, default=""
        From how many entries on a completion can find components.

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
    quantity: str = "signal / noise"
    title: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        n_samples: Sequence[int],
        *,
        n_features: int | None = None,
        shape: Sequence[int] | None = None,
        ax: "Axes | None" = None,
    ) -> "UtilityDisplay":
        """Draw what ``estimator.forecast`` says at several sizes; nothing is spent.

        Parameters
        ----------
        estimator : estimator with ``forecast``
            Fitted or not: only its parameters are read.
        n_samples : sequence of int
            Sizes of the data to come: numbers of samples, or of observed entries.
        n_features : int, optional
            Number of features; not of completions.
        shape : sequence of int, optional
            Of the tensor, for completions.
        ax : matplotlib axes, default=None
            Where to draw; by default in a new figure.

        Returns
        -------
        UtilityDisplay
            What was drawn.

        Raises
        ------
        ValueError
            If neither or both of `n_features` and `shape` are given.
        """
        if (n_features is None) == (shape is None):
            raise ValueError("one of n_features and shape must be given: of completions the shape.")
        if shape is not None:
            return _of_completion(cls, estimator, n_samples, shape).plot(ax)
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
        of_entries = self.quantity != "signal / noise"
        if not of_entries:
            ax.axhline(1.0, color=MUTED, linestyle="--")
        ax.set(xlabel="entries" if of_entries else "samples", ylabel=self.quantity)
        ax.set_title(self.title)
        ax.legend()
        return self


def _of_completion(
    kind: type[UtilityDisplay], estimator: Any, n_observed: Sequence[int], shape: Sequence[int]
) -> UtilityDisplay:
    """Expected errors at several numbers of entries."""
    found = [estimator.forecast(n, shape) for n in n_observed]
    errors = {
        "the mean": np.array([one.of_mean for one in found], dtype=np.float64),
        "mean and biases": np.array([one.of_biases for one in found], dtype=np.float64),
    }
    # Where biases are not released their error is infinite, which no axis has.
    errors = {name: np.where(np.isfinite(each), each, np.nan) for name, each in errors.items()}
    enough = [n for n, one in zip(n_observed, found, strict=True) if one.finds_components]
    title = f"components from {min(enough):,} entries on" if enough else "no components expected"
    sizes = np.asarray(n_observed, dtype=np.float64)
    return kind(sizes, errors, "expected RMSE", title)
