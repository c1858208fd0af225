"""Tensor kernels: numpy and scipy only, with no notion of privacy."""

from sktensor_dp.tensor.cp_completion import CPCompletion, complete_cp
from sktensor_dp.tensor.power_method import (
    orthogonal_decomposition,
    robust_tensor_power_method,
    simultaneous_power_iteration,
)
from sktensor_dp.tensor.sorted_entries import SortedEntries
from sktensor_dp.tensor.symmetric import (
    Oracle,
    multilinear,
    symmetric_outer_sum,
    tensor_oracle,
)
from sktensor_dp.tensor.tucker_completion import TuckerCompletion, complete_tucker
from sktensor_dp.tensor.whitening import (
    Whitener,
    top_eigenpairs,
    whitener,
)

__all__ = [
    "CPCompletion",
    "Oracle",
    "SortedEntries",
    "TuckerCompletion",
    "Whitener",
    "complete_cp",
    "complete_tucker",
    "multilinear",
    "orthogonal_decomposition",
    "robust_tensor_power_method",
    "simultaneous_power_iteration",
    "symmetric_outer_sum",
    "tensor_oracle",
    "top_eigenpairs",
    "whitener",
]
