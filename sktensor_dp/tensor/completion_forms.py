"""Completed tensors from parameters found elsewhere, in their standard forms."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sktensor_dp.tensor.cp_completion import CPCompletion
from sktensor_dp.tensor.oracle import Floats
from sktensor_dp.tensor.tucker_completion import TuckerCompletion, hosvd_form, mode_product

Model = CPCompletion | TuckerCompletion


def with_factors(model: CPCompletion, factors: Sequence[Floats]) -> CPCompletion:
    """Put factors of any scale into a CP model, as unit columns with weights."""
    norms = np.stack([np.linalg.norm(factor, axis=0) for factor in factors])
    weights = np.prod(norms, axis=0)
    order = np.argsort(-weights, kind="stable")
    safe = np.where(norms > 0, norms, 1.0)
    return replace(
        model,
        factors=[(f / s)[:, order] for f, s in zip(factors, safe, strict=True)],
        weights=weights[order],
        factor_scales=np.stack(
            [np.mean((f / s) ** 2, axis=0) for f, s in zip(factors, safe, strict=True)]
        )[:, order],
    )


def with_orthonormal_factors(
    model: Model,
    ranks: Sequence[int],
    factors: Sequence[Floats],
    core: Floats,
) -> TuckerCompletion:
    """Tucker model of factors and a core of any form, in the form of a HOSVD."""
    orthonormal = []
    for mode, (factor, rank) in enumerate(zip(factors, ranks, strict=True)):
        n_rows, n_columns = factor.shape
        padded = np.concatenate([factor, np.eye(n_rows, rank)], axis=1)
        frame, triangle = np.linalg.qr(padded)
        orthonormal.append(frame[:, :rank])
        core = mode_product(core, triangle[:rank, :n_columns], mode)
    orthonormal, core = hosvd_form(orthonormal, core)
    return TuckerCompletion(
        model.mean, model.biases, orthonormal, core, model.noise_variance, model.n_iter
    )
