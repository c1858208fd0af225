"""Figures of what was released: topics, components, budgets, and what a forecast says."""

from sktensor_dp.plotting.displays import (
    BudgetDisplay,
    ComponentDisplay,
    FactorDisplay,
    SpectrumDisplay,
    UtilityDisplay,
)
from sktensor_dp.plotting.figures import figure_png, plot_topics

__all__ = [
    "BudgetDisplay",
    "ComponentDisplay",
    "FactorDisplay",
    "SpectrumDisplay",
    "UtilityDisplay",
    "figure_png",
    "plot_topics",
]
