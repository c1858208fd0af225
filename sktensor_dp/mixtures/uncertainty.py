"""Standard deviations of the means of a mixture: sampling, noise, and overlap of the groups."""

from typing import Any

import numpy as np

from sktensor_dp.mixtures.gaussians import Gaussians, shares_of, whitened_rows
from sktensor_dp.mixtures.steps import StepNoise, shrunk_share
from sktensor_dp.tensor.arrays import Floats, spans
from sktensor_dp.tensor.symmetric import n_unique

# Rows drawn for each parameter of the information matrix, and the least number of rows.
ROWS, FEWEST = 20, 10_000
# Added to the diagonal of the information, relative to its mean.
RIDGE = 1e-6


def n_scores(k: int, d: int) -> int:
    """Number of parameters, which the information matrix has rows and columns for."""
    return k * (d + n_unique(d, 2)) + k - 1


def std_of_means(
    model: Gaussians, noise: StepNoise, moved: Floats, n_rows: int, rng: Any
) -> Floats:
    """Root mean squared errors (k, d) of means near the fixed point of noisy EM.

    With F the information of a row and N the covariance of the noise of the averaged scores, the
    covariance of all parameters is F^-1 (F / n + N) F^-1. F is a mean over rows drawn of the model.
    Of an error, steps of rate g leave exp(-g f) along a direction in which rows without labels tell
    the part f of what labelled ones do. What `moved` means is the rest, which gives what is left.
    """
    k, d = model.means.shape
    inverse_of = np.linalg.inv(_information(model, rng))
    of_shape = np.full(n_unique(d, 2), noise.shape / np.sqrt(2))
    of_group = np.append(np.full(d, noise.shift), of_shape)
    of_weights = noise.weight * np.hypot(1 / model.weights[1:], 1 / model.weights[0])
    deviations = np.concatenate([np.tile(of_group, k), of_weights])
    spread = inverse_of / n_rows + (inverse_of * deviations**2) @ inverse_of
    means = (np.arange(k)[:, None] * len(of_group) + np.arange(d)).ravel()
    blocks = spread[np.ix_(means, means)].reshape(k, d, k, d)
    # A shift that is shorter than its noise is not made, and leaves as much at most.
    by_shift = np.square(noise.shift / model.weights)
    by_shift *= shrunk_share(np.sqrt(d * by_shift))
    scales = np.sqrt(np.repeat(model.weights, d))
    inner = scales[:, None] * inverse_of[np.ix_(means, means)] * scales
    values, vectors = np.linalg.eigh(inner)
    left = 1 / np.expm1(np.minimum(noise.rates / np.maximum(values, 1.0), 50.0))
    whitened = np.einsum("jab,jb->ja", model.whiteners, moved).ravel()
    left = (vectors @ (left * (vectors.T @ (scales * whitened))) / scales).reshape(k, d)
    found = np.empty((k, d))
    for j, factor in enumerate(model.factors):
        by_chance = np.diag(factor @ (blocks[j, :, j] + by_shift[j] * np.eye(d)) @ factor.T)
        found[j] = np.sqrt(by_chance + (factor @ left[j]) ** 2)
    return found


def _information(model: Gaussians, rng: Any) -> Floats:
    """Information of a row: on whitened means and shapes of each group, then on weights."""
    k, d = model.means.shape
    first, second = np.triu_indices(d)
    own, n_drawn = first == second, max(FEWEST, ROWS * n_scores(k, d))
    found = np.zeros((n_scores(k, d), n_scores(k, d)))
    for rows in spans(n_drawn, len(found)):
        chosen = rng.choice(k, size=rows.stop - rows.start, p=model.weights)
        whitened = whitened_rows(model.sample(chosen, rng), model.means, model.whiteners)
        shares = shares_of(model.log_scales - np.einsum("nkd,nkd->nk", whitened, whitened) / 2)
        products = whitened[:, :, first] * whitened[:, :, second]
        products[:, :, own] = (products[:, :, own] - 1) / np.sqrt(2)
        scores = np.concatenate([whitened, products], axis=2) * shares[:, :, None]
        relative = shares / model.weights
        stacked = np.hstack([scores.reshape(len(scores), -1), relative[:, 1:] - relative[:, :1]])
        found += stacked.T @ stacked / n_drawn
    return found + RIDGE * np.eye(len(found)) * np.trace(found) / len(found)
