"""Standard deviations of the means of a mixture: sampling, noise, and overlap of the groups."""

from typing import Any

import numpy as np

from sktensor_dp.mixtures.gaussians import Gaussians, shares_of, whitened_rows
from sktensor_dp.mixtures.steps import StepNoise
from sktensor_dp.tensor.arrays import Floats

# Rows drawn for each parameter of the information matrix, and the least number of rows.
ROWS, FEWEST = 20, 10_000
# Added to the diagonal of the information, relative to its mean.
RIDGE = 1e-6


def std_of_means(model: Gaussians, noise: StepNoise, n_rows: int, rng: Any) -> Floats:
    """Standard deviations (k, d) of means at the fixed point of noisy EM.

    With F the information of a row and N the covariance of the noise of the averaged scores, the
    covariance of all parameters is F^-1 (F / n + N) F^-1. F is a mean over rows drawn of the model.
    """
    k, d = model.means.shape
    first, second = np.triu_indices(d)
    own = first == second
    n_drawn = max(FEWEST, ROWS * k * (1 + d + len(first)))
    X = model.sample(rng.choice(k, size=n_drawn, p=model.weights), rng)
    whitened = whitened_rows(X, model.means, model.whiteners)
    shares = shares_of(model.log_scales - np.einsum("nkd,nkd->nk", whitened, whitened) / 2)
    scores, deviations = [], []
    for j, weight in enumerate(model.weights):
        share, y = shares[:, [j]], whitened[:, j]
        products = y[:, first] * y[:, second]
        products[:, own] = (products[:, own] - 1) / np.sqrt(2)
        scores += [share * y, share * products]
        deviations += [np.full(d, noise.shift), np.full(len(first), noise.shape / np.sqrt(2))]
        if j > 0:
            scores.append(share / weight - shares[:, [0]] / model.weights[0])
            inverse = np.hypot(1 / weight, 1 / model.weights[0])
            deviations.append(np.array([noise.weight * inverse]))
    stacked = np.hstack(scores)
    information = stacked.T @ stacked / n_drawn
    information += RIDGE * np.eye(len(information)) * np.trace(information) / len(information)
    inverse_of = np.linalg.inv(information)
    spread = inverse_of / n_rows + (inverse_of * np.concatenate(deviations) ** 2) @ inverse_of
    size, found = d + len(first), np.empty((k, d))
    for j, factor in enumerate(model.factors):
        start = j * size + max(j - 1, 0)
        block = spread[start : start + d, start : start + d]
        found[j] = np.sqrt(np.diag(factor @ block @ factor.T))
    return found
