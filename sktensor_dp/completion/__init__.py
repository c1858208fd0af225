"""Private completion of tensors: CP and Tucker models of observed entries."""

from sktensor_dp.completion.estimators import PrivateCPCompletion, PrivateTuckerCompletion
from sktensor_dp.completion.fold_in import UnitParameters
from sktensor_dp.completion.row_names import RowIndex

__all__ = ["PrivateCPCompletion", "PrivateTuckerCompletion", "RowIndex", "UnitParameters"]
