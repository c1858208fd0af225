"""Figures of released values: topics, components, mixtures, budgets and forecasts."""

from sktensor_dp.plotting.displays import (
    BudgetDisplay,
    ComponentDisplay,
    FactorDisplay,
    MixtureDisplay,
    SpectrumDisplay,
    TopicsDisplay,
    UtilityDisplay,
    footer_of,
    save_svg,
)

__all__ = [
    "BudgetDisplay",
    "ComponentDisplay",
    "FactorDisplay",
    "MixtureDisplay",
    "SpectrumDisplay",
    "TopicsDisplay",
    "UtilityDisplay",
    "footer_of",
    "save_svg",
]
