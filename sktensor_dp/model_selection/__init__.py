"""Choosing hyperparameters without giving away more than was asked for."""

from sktensor_dp.model_selection.search import PrivateSearchCV, make_private_scorer

__all__ = ["PrivateSearchCV", "make_private_scorer"]
