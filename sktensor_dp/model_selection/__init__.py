"""Choosing hyperparameters without giving away more than was asked for."""

from sktensor_dp.model_selection.scorer import make_private_scorer
from sktensor_dp.model_selection.search import PrivateSearchCV

__all__ = ["PrivateSearchCV", "make_private_scorer"]
