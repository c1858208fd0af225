"""Information of rows with missing cells on means and shapes of groups, relative to whole rows.

That of one group is in gaussian_mixture/one_group.py.
"""

from dataclasses import dataclass

import numpy as np

from sktensor_dp.mixtures.gaussians import Gaussians, observed_part, patterns_of
from sktensor_dp.tensor.arrays import Floats

# Number of rows of each group that are drawn for their patterns of observed cells.
ROWS = 400
# Part of rows that lack cells together, as by a dropout: if one cell is missing, so are those of
# columns that lack more. In other rows cells are missing independently. If all rows are of one
# sort, steps are too long by 1 / TOGETHER or 1 / (1 - TOGETHER), and steps that are 2 times too
# long or more diverge: only a half is safe for rows of either sort.
TOGETHER = 0.5
# Least part of a group's rows that is taken to show a direction.
LEAST_PART = 1e-4


@dataclass(frozen=True, eq=False)
class ObservedInformation:
    """Information on whitened means and shapes, 1 along directions that all rows of a group show.

    A step moves a mean or a shape by this part of the way to convergence.
    """

    # Eigenvalues and eigenvectors.
    means: tuple[Floats, Floats]  # (k, d) and (k, d, d)
    shapes: tuple[Floats, Floats]  # (k, p) and (k, p, p) of unique entries; k = 1 if groups share

    def of_means(self) -> Floats:
        """Information (k, d, d) on means."""
        values, vectors = self.means
        return (vectors * values[:, None]) @ vectors.swapaxes(1, 2)

    def gains_of_means(self, noise: Floats) -> Floats:
        """Factors (k, d, d) on steps of means, by `noise` (k,) on a whitened coordinate.

        A distance to convergence is a priori one deviation of the group.
        """
        values, vectors = self.means
        gains = _gains(values, noise[:, None], 1.0)
        return (vectors * gains[:, None]) @ vectors.swapaxes(1, 2)

    def errors_by_shapes(self, noise: Floats, chance: Floats) -> Floats:
        """Covariances (k, d, d) of whitened means by errors of shapes, which fill missing cells.

        Entries of shapes have the variances `noise` (k,), and `chance` (k,) by sampling of complete
        rows.
        """
        values, vectors = self.means
        parts, prior = np.maximum(values, LEAST_PART), _prior_variance(values.shape[1])
        # Of a distance with the prior variance p a step shows the part s, with variance v; then
        # its posterior variance is p v / (s^2 p + v), as `whole_shapes` estimates it.
        by_step = noise[:, None] + parts * chance[:, None]
        posterior = by_step * prior / (parts**2 * prior + by_step)
        # An error moves a mean by what rows with the cell, a part s, have in other columns:
        # sqrt((1 - s) / s) deviations at most, and uniform up to that, of a third of the square.
        of_means = posterior * (1 - parts) / parts / 3
        return (vectors * of_means[:, None]) @ vectors.swapaxes(1, 2)

    def whole_shapes(self, shapes: Floats, noise: Floats) -> Floats:
        """Moves of `shapes` (k, d, d), or (1, d, d), lengthened to all of the way to convergence.

        `noise` (k,), or (1,), is the deviation of an entry.
        """
        values, vectors = self.shapes
        moves = np.einsum("jab,ja->jb", vectors, shape_entries(shapes))  # along eigenvectors
        # Distances to convergence are normal a priori. Their variance is estimated by squares
        # beyond noise, which count by the information that they lack.
        counts, noise = (1 - values) * values**2, noise[:, None]
        excess = (np.square(moves) - noise**2) * counts
        variances = excess.sum(axis=1) / np.maximum((counts * values**2).sum(axis=1), 1e-300)
        variances = np.clip(variances, 0.0, _prior_variance(shapes.shape[-1]))[:, None]
        entries = np.einsum("jab,jb->ja", vectors, moves * _gains(values, noise, variances))
        return shapes_of_entries(entries, shapes.shape[-1])


def _prior_variance(d: int) -> float:
    """Largest prior variance of entries of a (d, d) move by which a whitened shape stays positive.

    Eigenvalues of the move reach ``2 sqrt(d variance)``: 1 at most.
    """
    return 1 / (4 * d)


def _gains(parts: Floats, noise: Floats, variances: Floats | float) -> Floats:
    """Factors of 1 or more on noisy moves, by which these estimate distances with least error.

    Moves are these `parts` of distances plus `noise` of this deviation; distances have these prior
    `variances`.
    """
    squares = np.square(parts) * variances + np.square(noise)
    return np.maximum(parts * variances / np.maximum(squares, 1e-300), 1.0)


def shape_entries(shapes: Floats) -> Floats:
    """Unique entries (..., p) of symmetric (..., d, d), over deviations of yy' for normal y."""
    first, second = np.triu_indices(shapes.shape[-1])
    return shapes[..., first, second] / np.where(first == second, np.sqrt(2), 1.0)


def shapes_of_entries(entries: Floats, d: int) -> Floats:
    """Symmetric matrices (k, d, d) of which these are the `shape_entries`."""
    first, second = np.triu_indices(d)
    found = np.zeros((len(entries), d, d))
    found[:, first, second] = entries * np.where(first == second, np.sqrt(2), 1.0)
    found[:, second, first] = found[:, first, second]
    return found


def observed_information(
    model: Gaussians, observed: Floats, *, pooled: bool = False
) -> ObservedInformation:
    """Information of rows with shares `observed` (k, d) of cells; on one shape if `pooled`."""
    each = (_of_group(*one) for one in zip(model.factors, observed, strict=True))
    means, shapes = map(np.array, zip(*each, strict=True))
    if pooled:
        shapes = np.tensordot(model.weights, shapes, axes=1)[None]
    return ObservedInformation(_eigen(means), _eigen(shapes))


def missing_places(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Numbers (n, d) in (0, 1): cells are observed where they are below the column's share."""
    places = np.array([rng.permutation(n) for _ in range(d)]).T
    together = rng.permutation(n)[: round(TOGETHER * n)]  # rows with one place in all columns
    places[together] = np.arange(len(together))[:, None] / TOGETHER
    return (places + 0.5) / n


def _of_group(factor: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Information on the whitened mean (d, d) and the entries of the shape (p, p) of one group."""
    places = missing_places(ROWS, len(shares), np.random.default_rng(0))
    first, second = np.triu_indices(len(shares))
    deviations = np.where(first == second, np.sqrt(2), 1.0)  # of entries, as in `shape_entries`
    projectors, sizes = list[Floats](), list[int]()
    for pattern, rows in patterns_of(places < shares):
        part = observed_part(factor[None], np.zeros(1), pattern, np.zeros((1, len(shares))))
        projectors.append(part.projectors[0])
        sizes.append(len(rows))
    parts, P = np.array(sizes) / ROWS, np.array(projectors)
    flat = P.reshape(len(P), -1)
    products = ((flat.T * parts) @ flat).reshape(4 * (len(shares),))  # means of P[a, b] P[c, d]
    # Entries of P D P for each entry of a symmetric D.
    shapes = products[first[:, None], first, second[:, None], second]
    shapes = shapes + products[first[:, None], second, second[:, None], first]
    return np.tensordot(parts, P, axes=1), shapes / np.outer(deviations, deviations)


def _eigen(matrices: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, 1 or less, and eigenvectors of symmetric matrices."""
    values, vectors = np.linalg.eigh((matrices + matrices.swapaxes(1, 2)) / 2)
    return np.clip(values, 0.0, 1.0), vectors
