"""Private completion of tensors: CP and Tucker models of observed entries."""

from sktensor_dp.completion import inference
from sktensor_dp.completion.estimators import PrivateCPCompletion, PrivateTuckerCompletion
from sktensor_dp.completion.folded_in import UnitParameters
from sktensor_dp.completion.row_index import RowIndex

__all__ = ["PrivateCPCompletion", "PrivateTuckerCompletion", "RowIndex", "UnitParameters"]

# Where pickles of before look for it; the file that has it now imports that one.
vars(inference)["UnitParameters"] = UnitParameters
