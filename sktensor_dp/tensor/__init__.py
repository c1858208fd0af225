"""Tensor kernels: numpy and scipy only, with no notion of privacy."""

from sktensor_dp.tensor.cp_completion import CPCompletion, complete_cp
from sktensor_dp.tensor.diagnostics import (
    incoherence,
    operator_norm,
    random_marginal_bound,
    subspace_distance,
)
from sktensor_dp.tensor.oracle import Oracle, cp_oracle, moment_oracle, tensor_oracle
from sktensor_dp.tensor.power_method import (
    orthogonal_decomposition,
    robust_tensor_power_method,
    simultaneous_power_iteration,
)
from sktensor_dp.tensor.sorted_entries import SortedEntries
from sktensor_dp.tensor.symmetric import (
    coordinates_to_symmetric,
    multilinear,
    n_unique,
    symmetric_outer_sum,
    symmetric_product,
    symmetric_to_coordinates,
    symmetrize,
    symmetrize_views,
)
from sktensor_dp.tensor.tucker_completion import TuckerCompletion, complete_tucker
from sktensor_dp.tensor.whitening import (
    CappedWhitener,
    RandomMarginal,
    Whitener,
    capped_whitener,
    top_eigenpairs,
    whiten_by_random_marginal,
    whitener,
)

__all__ = [
    "CPCompletion",
    "CappedWhitener",
    "Oracle",
    "RandomMarginal",
    "SortedEntries",
    "TuckerCompletion",
    "Whitener",
    "capped_whitener",
    "complete_cp",
    "complete_tucker",
    "coordinates_to_symmetric",
    "cp_oracle",
    "incoherence",
    "moment_oracle",
    "multilinear",
    "n_unique",
    "operator_norm",
    "orthogonal_decomposition",
    "random_marginal_bound",
    "robust_tensor_power_method",
    "simultaneous_power_iteration",
    "subspace_distance",
    "symmetric_outer_sum",
    "symmetric_product",
    "symmetric_to_coordinates",
    "symmetrize",
    "symmetrize_views",
    "tensor_oracle",
    "top_eigenpairs",
    "whiten_by_random_marginal",
    "whitener",
]
