"""Figures of what was released: topics, components, budgets, and what a forecast says."""

from sktensor_dp.plotting.displays import (
    BudgetDisplay,
    ComponentDisplay,
    FactorDisplay,
    SpectrumDisplay,
    TopicsDisplay,
    UtilityDisplay,
    figure_png,
    plot_topics,
)

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
