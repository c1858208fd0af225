"""Tensor kernels: numpy and scipy only, with no notion of privacy."""

from sktensor_dp.tensor.cp_completion import CPCompletion, complete_cp
from sktensor_dp.tensor.eigenpairs import top_eigenpairs
from sktensor_dp.tensor.power_method import orthogonal_decomposition, robust_tensor_power_method
from sktensor_dp.tensor.sorted_entries import SortedEntries
from sktensor_dp.tensor.symmetric import symmetric_outer_sum, symmetrize
from sktensor_dp.tensor.tucker_completion import TuckerCompletion, complete_tucker
from sktensor_dp.tensor.whitening import Whitener, whitener

__all__ = [
    "CPCompletion",
    "SortedEntries",
    "TuckerCompletion",
    "Whitener",
    "complete_cp",
    "complete_tucker",
    "orthogonal_decomposition",
    "robust_tensor_power_method",
    "symmetric_outer_sum",
    "symmetrize",
    "top_eigenpairs",
    "whitener",
]
