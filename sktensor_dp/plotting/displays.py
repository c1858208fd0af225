"""Figures in the way of scikit-learn's displays: ``from_estimator``, ``ax=``, and what was drawn.

All of it is drawn from released values and public numbers, so that a figure costs no privacy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sktensor_dp.plotting.word_bars import FIRST, PLAIN, SECOND, draw_intervals, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


@dataclass
class Display:
    """Data of a figure, and after ``plot`` where it was drawn."""

    _where: "Axes | None" = field(default=None, init=False, repr=False)

    @property
    def ax_(self) -> "Axes | None":
        """Axes that it was drawn in."""
        return self._where

    @property
    def figure_(self) -> Any:
        """Figure of these axes."""
        return None if self._where is None else self._where.figure

    def _axes(self, ax: "Axes | None") -> "Axes":
        self._where = drawn = new_figure().subplots() if ax is None else ax
        return drawn


def _draw_bars(ax: "Axes", values: Floats, names: list[str], label: str, title: str) -> None:
    """Draw bars with names, the first on top."""
    places = np.arange(len(names))
    ax.barh(places, values, color=FIRST, height=0.7)
    ax.set_yticks(places, names, **PLAIN)
    ax.invert_yaxis()
    ax.set(xlabel=label)
    ax.set_title(title, **PLAIN)


@dataclass
class ComponentDisplay(Display):
    """Leading words, or largest coordinates, of one component, with intervals for its noise.

    Attributes
    ----------
    names : list of str
        What the bars are called, the first on top.
    values : ndarray of shape (n_bars,)
        Their lengths.
    low, high : ndarray of shape (n_bars,) or None
        Intervals, where the noise is known.
    title : str
        What is drawn.

    Examples
    --------
    >>> from sktensor_dp.plotting import ComponentDisplay
    >>> display = ComponentDisplay(["ship", "sail"], [0.5, 0.25], None, None, "Topic 1").plot()
    >>> [float(bar.get_width()) for bar in display.ax_.patches]
    [0.5, 0.25]
    """

    names: list[str]
    values: Floats
    low: Floats | None
    high: Floats | None
    title: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        component: int = 0,
        feature_names: Sequence[str] | NDArray[Any] | None = None,
        *,
        n_features: int = 10,
        level: float = 0.9,
        ax: "Axes | None" = None,
    ) -> "ComponentDisplay":
        """Draw a row of ``components_`` of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            With ``components_``: topics, means, unit vectors.
        component : int, default=0
            Which row.
        feature_names : sequence of str of length n_features_in_, default=None
            By default ``feature_names_in_``, or the numbers of the columns.
        n_features : int, default=10
            How many bars, the largest in size.
        level : float, default=0.9
            Of the intervals, where the estimator has ``components_std_``.
        ax : matplotlib axes, default=None
            Where to draw; by default in a new figure.

        Returns
        -------
        ComponentDisplay
            What was drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        values = np.asarray(estimator.components_)[component]
        if feature_names is None:
            numbers = [str(column) for column in range(len(values))]
            feature_names = getattr(estimator, "feature_names_in_", numbers)
        order = np.argsort(-np.abs(values), kind="stable")[:n_features]
        std, low, high = getattr(estimator, "components_std_", None), None, None
        if std is not None:
            reach = float(ndtri((1 + level) / 2)) * std[component][order]
            low, high = np.maximum(values[order] - reach, 0.0), values[order] + reach
        names = [str(feature_names[column]) for column in order]
        return cls(names, values[order], low, high, f"Component {component}").plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "ComponentDisplay":
        """Draw into axes, or into a new figure."""
        ax = self._axes(ax)
        values = np.asarray(self.values)
        label = "probability" if (values >= 0).all() else "value"
        _draw_bars(ax, values, self.names, label, self.title)
        if self.low is not None and self.high is not None:
            draw_intervals(ax, values, self.low, self.high)
        return self


@dataclass
class SpectrumDisplay(Display):
    """Eigenvalues of the released second moment against what noise alone may reach.

    Attributes
    ----------
    eigenvalues : ndarray of shape (n_eigenvalues,)
        The largest first.
    noise_edge : float
        What noise alone may lift one to.

    Examples
    --------
    >>> from sktensor_dp.plotting import SpectrumDisplay
    >>> display = SpectrumDisplay([3.0, 1.0, 0.2], 0.5).plot()
    >>> display.n_above
    2
    """

    eigenvalues: Floats
    noise_edge: float

    @property
    def n_above(self) -> int:
        """How many eigenvalues are above the noise."""
        return int((np.asarray(self.eigenvalues) > self.noise_edge).sum())

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: "Axes | None" = None) -> "SpectrumDisplay":
        """Draw the spectrum that a topic model has released.

        Parameters
        ----------
        estimator : PrivateSpectralLDA
            Fitted.
        ax : matplotlib axes, default=None
            Where to draw; by default in a new figure.

        Returns
        -------
        SpectrumDisplay
            What was drawn.

        Raises
        ------
        ValueError
            If the estimator has no ``spectrum_``.
        """
        spectrum = getattr(estimator, "spectrum_", None)
        if spectrum is None:
            raise ValueError(f"{type(estimator).__name__} must have a released spectrum_.")
        return cls(spectrum, float(estimator.noise_edge_ or 0.0)).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "SpectrumDisplay":
        """Draw into axes, or into a new figure."""
        ax = self._axes(ax)
        places = np.arange(1, len(self.eigenvalues) + 1)
        ax.plot(places, self.eigenvalues, "o-", color=FIRST, label="released eigenvalue")
        ax.axhline(self.noise_edge, color=SECOND, linestyle="--", label="reached by noise alone")
        ax.set(xlabel="component", ylabel="eigenvalue", title=f"{self.n_above} above the noise")
        ax.legend()
        return self


@dataclass
class BudgetDisplay(Display):
    """How a budget was spent on releases.

    Attributes
    ----------
    names : list of str
        Releases.
    shares : ndarray of shape (n_releases,)
        Of the budget, with all their uses.
    title : str
        The guarantee.

    Examples
    --------
    >>> from sktensor_dp.plotting import BudgetDisplay
    >>> BudgetDisplay(["pairs", "counts"], [0.75, 0.25], "epsilon = 1").plot().names
    ['pairs', 'counts']
    """

    names: list[str]
    shares: Floats
    title: str

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: "Axes | None" = None) -> "BudgetDisplay":
        """Draw the releases of a fitted estimator, by its ``privacy_report_``.

        Parameters
        ----------
        estimator : fitted estimator
            Any of this package.
        ax : matplotlib axes, default=None
            Where to draw; by default in a new figure.

        Returns
        -------
        BudgetDisplay
            What was drawn.
        """
        report = estimator.privacy_report_
        shares = np.array([share or 0.0 for share in report.shares])
        title = f"epsilon = {report.epsilon:.4g}, delta = {report.delta:.3g}"
        return cls([row.name for row in report.rows], shares, title).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "BudgetDisplay":
        """Draw into axes, or into a new figure."""
        ax = self._axes(ax)
        shares = 100 * np.asarray(self.shares)
        _draw_bars(ax, shares, self.names, "share of the budget, %", self.title)
        return self


@dataclass
class FactorDisplay(Display):
    """Profiles of a completion's factors along one mode.

    Attributes
    ----------
    factor : ndarray of shape (n_rows, n_profiles)
        Columns are drawn over the rows' numbers.
    mode : int
        Which mode it is of.

    Examples
    --------
    >>> from sktensor_dp.plotting import FactorDisplay
    >>> display = FactorDisplay([[1.0, 0.0], [0.5, 2.0]], 1).plot()
    >>> len(display.ax_.lines)
    2
    """

    factor: Floats
    mode: int

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        mode: int = 0,
        components: Sequence[int] | None = None,
        *,
        ax: "Axes | None" = None,
    ) -> "FactorDisplay":
        """Draw columns of ``factors_[mode]`` of a fitted completion.

        Parameters
        ----------
        estimator : PrivateCPCompletion or PrivateTuckerCompletion
            Fitted.
        mode : int, default=0
            A mode that was released; units' own factors are not.
        components : sequence of int, default=None
            Which columns; all by default.
        ax : matplotlib axes, default=None
            Where to draw; by default in a new figure.

        Returns
        -------
        FactorDisplay
            What was drawn.

        Raises
        ------
        ValueError
            If the factors of the mode were not released.
        """
        factor = estimator.factors_[mode]
        if factor is None or np.size(factor) == 0:
            raise ValueError(f"mode must be one whose factors were released, got {mode!r}.")
        chosen = slice(None) if components is None else list(components)
        return cls(np.asarray(factor)[:, chosen], mode).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "FactorDisplay":
        """Draw into axes, or into a new figure."""
        ax = self._axes(ax)
        factor = np.asarray(self.factor)
        for column, profile in enumerate(factor.T):
            ax.plot(np.arange(len(factor)), profile, marker=".", label=f"component {column}")
        ax.set(xlabel=f"row of mode {self.mode}", ylabel="factor")
        ax.legend()
        return self
