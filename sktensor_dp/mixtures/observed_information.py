"""Information of rows with missing cells on means and shapes of groups, relative to whole rows."""

from dataclasses import dataclass

import numpy as np

from sktensor_dp.mixtures.gaussians import Gaussians, observed_part, patterns_of
from sktensor_dp.tensor.arrays import Floats

# Number of rows of each group that are drawn for their patterns of observed cells.
ROWS = 400
# Part of rows in which the same cells are missing as in a dropout, those of the columns that rows
# lack most. Otherwise they are independent. Were rows all one or the other, steps would be too long
# by the inverse of their part; from 2 on they diverge, so only this part is safe for both.
TOGETHER = 0.5
# Least part of a group's rows that is taken to show a direction.
LEAST_PART = 1e-4


@dataclass(frozen=True, eq=False)
class ObservedInformation:
    """Information on whitened means and shapes, 1 along directions that all rows of a group show.

    A step moves a mean or a shape by this part of the way to convergence. It is given by
    eigenvalues and eigenvectors.
    """

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
        """Mean products (k, d, d) of errors of means by shapes that fill missing cells wrongly.

        Entries of shapes have the variances `noise` (k,), and by `chance` (k,) of whole rows. Such
        an error moves a mean by what rows with the cell, a part s, have in other columns: in
        deviations sqrt((1 - s) / s) at most, and uniform up to that as cells may be missing at
        random. `whole_shapes` makes less of an entry the more noise it has.
        """
        values, vectors = self.means
        parts, prior = np.maximum(values, LEAST_PART), _prior_variance(values.shape[1])
        variances = noise[:, None] + parts * chance[:, None]
        variances = variances * prior / (parts**2 * prior + variances)
        variances = variances * (1 - parts) / parts / 3
        return (vectors * variances[:, None]) @ vectors.swapaxes(1, 2)

    def whole_shapes(self, shapes: Floats, noise: Floats) -> Floats:
        """Moves of `shapes` (k, d, d), or (1, d, d), lengthened to all of the way to convergence.

        Distances of entries to convergence are normal a priori, with a variance estimated beyond
        the `noise` on an entry; each counts by the information that it lacks.
        """
        values, vectors = self.shapes
        entries = np.einsum("jab,ja->jb", vectors, shape_entries(shapes))
        lacks, noise = (1 - values) * values**2, noise[:, None]
        excess = (np.square(entries) - noise**2) * lacks
        variances = excess.sum(axis=1) / np.maximum((lacks * values**2).sum(axis=1), 1e-300)
        variances = np.clip(variances, 0.0, _prior_variance(shapes.shape[-1]))[:, None]
        entries = np.einsum("jab,jb->ja", vectors, entries * _gains(values, noise, variances))
        return shapes_of_entries(entries, shapes.shape[-1])


def _prior_variance(d: int) -> float:
    """Largest prior variance of entries of (d, d) matrices by which shapes stay positive.

    Their eigenvalues reach twice the root of d times the variance: 1 at most.
    """
    return 1 / (4 * d)


def _gains(values: Floats, noise: Floats, variances: Floats | float) -> Floats:
    """Factors of 1 or more on parts `values` of distances, for least error.

    Distances have these prior `variances`, and parts of them deviations of `noise`.
    """
    squares = np.square(values) * variances + np.square(noise)
    return np.maximum(values * variances / np.maximum(squares, 1e-300), 1.0)


def shape_entries(shapes: Floats) -> Floats:
    """Unique entries of symmetric matrices, over the deviations of those of yy' for normal y."""
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
    """Information of rows with shares `observed` (k, d) of cells, also on a `pooled` shape."""
    each = (_of_group(*one) for one in zip(model.factors, observed, strict=True))
    means, shapes = map(np.array, zip(*each, strict=True))
    if pooled:
        shapes = np.tensordot(model.weights, shapes, axes=1)[None]
    return ObservedInformation(_eigen(means), _eigen(shapes))


def missing_places(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Numbers (n, d) in (0, 1): cells are observed where they are below the column's share."""
    places = np.array([rng.permutation(n) for _ in range(d)]).T
    shared = rng.permutation(n)[: round(TOGETHER * n)]
    places[shared] = np.arange(len(shared))[:, None] / TOGETHER
    return (places + 0.5) / n


def _of_group(factor: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Information on the whitened mean (d, d) and the entries of the shape (p, p) of one group."""
    places = missing_places(ROWS, len(shares), np.random.default_rng(0))
    first, second = np.triu_indices(len(shares))
    over = np.where(first == second, np.sqrt(2), 1.0)
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
    return np.tensordot(parts, P, axes=1), shapes / np.outer(over, over)


def _eigen(matrices: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, 1 or less, and eigenvectors of symmetric matrices."""
    values, vectors = np.linalg.eigh((matrices + matrices.swapaxes(1, 2)) / 2)
    return np.clip(values, 0.0, 1.0), vectors
