"""Completed tensors from parameters found elsewhere, in their standard forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sktensor_dp.tensor.cp_completion import CPCompletion
from sktensor_dp.tensor.oracle import Floats
from sktensor_dp.tensor.tucker_completion import TuckerCompletion, hosvd_form, mode_product

__all__ = ["with_factors", "with_orthonormal_factors"]


def with_factors(model: CPCompletion, factors: Sequence[Floats]) -> CPCompletion:
    """Put factors of any scale into a CP model, as unit columns with weights.

    Parameters
    ----------
    model : CPCompletion
        Mean, biases and variances are kept.
    factors : sequence of ndarray of shape (n_m, rank)
        Components by columns.

    Returns
    -------
    CPCompletion
        Weights are non-negative and decreasing.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.completion_forms import with_factors
    >>> from sktensor_dp.tensor.cp_completion import complete_cp
    >>> from sktensor_dp.tensor.entries import SortedEntries
    >>> model = complete_cp(SortedEntries([[0, 0], [1, 1]], (2, 2)), [1.0, 1.0], 0)
    >>> with_factors(model, [np.array([[3.0], [4.0]]), np.array([[0.0], [2.0]])]).weights
    array([10.])
    """
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
    model: CPCompletion | TuckerCompletion,
    ranks: Sequence[int],
    factors: Sequence[Floats],
    core: Floats,
) -> TuckerCompletion:
    """Tucker model of factors and a core of any form, in the form of a HOSVD.

    Parameters
    ----------
    model : CPCompletion or TuckerCompletion
        Mean and biases are kept.
    ranks : sequence of n_modes int
        Columns wanted of each factor; those that are missing get a core of 0.
    factors : sequence of ndarray of shape (n_m, r_m)
        With r_m at most the rank wanted.
    core : ndarray of shape (r_1, ..., r_M)
        Their core.

    Returns
    -------
    TuckerCompletion
        The same values.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor.completion_forms import with_orthonormal_factors
    >>> from sktensor_dp.tensor.cp_completion import complete_cp
    >>> from sktensor_dp.tensor.entries import SortedEntries
    >>> model = complete_cp(SortedEntries([[0, 0], [1, 1]], (2, 2)), [1.0, 1.0], 0)
    >>> factors = [np.array([[3.0], [4.0]]), np.array([[0.0], [2.0]])]
    >>> tucker = with_orthonormal_factors(model, (1, 1), factors, np.ones((1, 1)))
    >>> tucker.predict([[0, 1], [1, 1]]).round(9)
    array([7., 9.])
    """
    orthonormal = []
    for mode, (factor, rank) in enumerate(zip(factors, ranks, strict=True)):
        n_rows, n_columns = factor.shape
        padded = np.concatenate([factor, np.eye(n_rows, rank)], axis=1)
        frame, triangle = np.linalg.qr(padded)
        orthonormal.append(frame[:, :rank])
        core = mode_product(core, triangle[:rank, :n_columns], mode)
    orthonormal, core = hosvd_form(orthonormal, core)
    return TuckerCompletion(
        mean=model.mean,
        biases=model.biases,
        factors=orthonormal,
        core=core,
        noise_variance=model.noise_variance,
        n_iter=model.n_iter,
    )
