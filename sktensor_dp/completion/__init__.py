"""Private completion of tensors: CP and Tucker models of observed entries."""

from sktensor_dp.completion.cp import PrivateCPCompletion
from sktensor_dp.completion.fold_in import UnitParameters
from sktensor_dp.completion.row_names import RowIndex
from sktensor_dp.completion.tucker import PrivateTuckerCompletion

__all__ = ["PrivateCPCompletion", "PrivateTuckerCompletion", "RowIndex", "UnitParameters"]
