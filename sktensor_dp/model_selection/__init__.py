"""Private search over hyperparameters, scores with noise, and splits of units."""

from sktensor_dp.model_selection.range_scaler import scale_by_ranges
from sktensor_dp.model_selection.scores import make_private_scorer
from sktensor_dp.model_selection.search import PrivateSearchCV
from sktensor_dp.model_selection.splits import PrivateKFold

__all__ = ["PrivateKFold", "PrivateSearchCV", "make_private_scorer", "scale_by_ranges"]
