"""Private tensor power method: components of third moments."""

from sktensor_dp.power_method.estimator import PrivateTensorPowerMethod

__all__ = ["PrivateTensorPowerMethod"]
