"""Figures of released values: topics, components, budgets and forecasts."""

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
