"""Figures of released values: topics, components, mixtures, budgets and forecasts."""

from sktensor_dp.plotting.displays import (
    BudgetDisplay,
    ComponentDisplay,
    MixtureDisplay,
    TopicsDisplay,
    TradeoffDisplay,
    save_svg,
)

__all__ = [
    "BudgetDisplay",
    "ComponentDisplay",
    "MixtureDisplay",
    "TopicsDisplay",
    "TradeoffDisplay",
    "save_svg",
]
