"""Figures of what was released: topics, components, budgets, and what a forecast says."""

from sktensor_dp.plotting.displays import (
    BudgetDisplay,
    ComponentDisplay,
    FactorDisplay,
    SpectrumDisplay,
)
from sktensor_dp.plotting.figures import figure_png, plot_topics
from sktensor_dp.plotting.topics import TopicsDisplay
from sktensor_dp.plotting.utility import UtilityDisplay

__all__ = [
    "BudgetDisplay",
    "ComponentDisplay",
    "FactorDisplay",
    "SpectrumDisplay",
    "TopicsDisplay",
    "UtilityDisplay",
    "figure_png",
    "plot_topics",
]
