"""Tensor kernels: numpy and scipy only, with no notion of privacy."""

from sktensor_dp.tensor.oracle import Oracle, tensor_oracle
from sktensor_dp.tensor.power_method import (
    orthogonal_decomposition,
    robust_tensor_power_method,
    simultaneous_power_iteration,
)
from sktensor_dp.tensor.symmetric import (
    coordinates_to_symmetric,
    multilinear,
    n_unique,
    outer3_sum,
    symmetric_product,
    symmetric_to_coordinates,
    symmetrize,
)
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
    "CappedWhitener",
    "Oracle",
    "RandomMarginal",
    "Whitener",
    "capped_whitener",
    "coordinates_to_symmetric",
    "multilinear",
    "n_unique",
    "orthogonal_decomposition",
    "outer3_sum",
    "robust_tensor_power_method",
    "simultaneous_power_iteration",
    "symmetric_product",
    "symmetric_to_coordinates",
    "symmetrize",
    "tensor_oracle",
    "top_eigenpairs",
    "whiten_by_random_marginal",
    "whitener",
]
