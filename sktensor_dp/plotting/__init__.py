"""Figures of released values: topics, components and mixtures."""

from sktensor_dp.plotting.displays import BarDisplay, MixtureDisplay, TopicsDisplay, save_svg

__all__ = ["BarDisplay", "MixtureDisplay", "TopicsDisplay", "save_svg"]
