"""Figures of released values: topics, components and mixtures."""

from sktensor_dp.plotting.displays import ComponentDisplay, MixtureDisplay, TopicsDisplay, save_svg

__all__ = ["ComponentDisplay", "MixtureDisplay", "TopicsDisplay", "save_svg"]
