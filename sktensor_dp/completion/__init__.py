"""Private completion of tensors: CP and Tucker models of observed entries."""

from sktensor_dp.completion.estimators import PrivateCPCompletion, PrivateTuckerCompletion

__all__ = ["PrivateCPCompletion", "PrivateTuckerCompletion"]
