"""DPALS (Chien et al., 2021), in our reading, beside completion by persons.

Values about the exact mean, in deviations. In turn, each person solves for an own vector, which is
clipped, and each item's normal equations over persons' vectors are released with Gaussian noise;
the item solves them with the matrix made semi-definite. A person counts for the `most` rarest of
the rated items, by exact counts. Noise is for replacing a person, as ours. Exact mean, deviation
and counts are given away, and of a grid of settings the best on the test part counts: all that is
in its favour.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.ratings import Ratings, held_out
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateCPCompletion
from sktensor_dp.privacy.calibration import gaussian_mu

__all__ = ["by_dpals", "by_persons", "drawn_table"]

Floats = NDArray[np.float64]
RANKS, MOST, RIDGES, SWEEPS, DELTA = (2, 5), (10, 40), (10.0, 100.0), (3, 10), 1e-6
# Largest norm of a person's vector, and largest value, in deviations.
NORM, VALUE = 1.0, 1.0


def drawn_table(n_persons: int, n_items: int = 1000, each: int = 40) -> Ratings:
    """Levels of persons and items and three components carry half of the variance of ratings."""
    rng = np.random.default_rng(0)
    popularity = rng.permutation(1 / np.sqrt(np.arange(1, n_items + 1)))
    people = np.repeat(np.arange(n_persons), each)
    items = rng.choice(n_items, len(people), p=popularity / popularity.sum())
    U, V = (rng.standard_normal((n, 3)) for n in (n_persons, n_items))
    values = np.sqrt(0.2 / 3) * np.einsum("ij,ij->i", U[people], V[items])
    for places, n in ((people, n_persons), (items, n_items)):
        values += math.sqrt(0.15) * rng.standard_normal(n)[places]
    values = np.clip(values + math.sqrt(0.5) * rng.standard_normal(len(people)), -3.0, 3.0)
    return held_out(np.column_stack([people, items]), values, (n_persons, n_items), (-3.0, 3.0))


def by_persons(data: Ratings, epsilon: float, seed: int) -> float:
    """Ours, of rank 5, with the person as the unit."""
    model = PrivateCPCompletion(
        5, bounds=data.bounds, shape=data.shape, unit_mode=0, epsilon=epsilon, delta=DELTA,
        random_state=seed,
    )  # fmt: skip
    with reproducible_noise(seed):
        model.fit(data.X, data.y)
    return data.error(model.fold_in(data.X, data.y).predict(data.X_test))


def by_dpals(data: Ratings, epsilon: float, seed: int) -> float:
    """Least error over the grid of settings."""
    settings = product(RANKS, MOST, RIDGES, SWEEPS)
    return min(Dpals(data, *chosen, seed=seed).error(epsilon) for chosen in settings)


@dataclass(frozen=True, eq=False)
class Dpals:
    """One fit: its rank, the most ratings of a person that count, a ridge, and sweeps."""

    data: Ratings
    rank: int
    most: int
    ridge: float
    sweeps: int
    seed: int

    def error(self, epsilon: float) -> float:
        """Root mean square error of persons' own vectors, which all of their ratings are for."""
        data, rng = self.data, np.random.default_rng(self.seed)
        mean, deviation = data.y.mean(), data.y.std()
        own = self._table(np.arange(len(data.y)), (data.y - mean) / deviation)
        counted = self._table(self._counted(), np.clip((data.y - mean) / deviation, -VALUE, VALUE))
        items = rng.standard_normal((data.shape[1], self.rank)) / math.sqrt(self.rank)
        for _ in range(self.sweeps):
            persons = self._solved(own, items)
            norms = np.linalg.norm(persons, axis=1, keepdims=True)
            persons *= np.minimum(1.0, NORM / np.maximum(norms, 1e-300))
            items = self._released(counted, persons, epsilon, rng)
        people, places = data.X_test.T
        found = np.sum(self._solved(own, items)[people] * items[places], axis=1)
        return data.error(np.clip(mean + deviation * found, *data.bounds))

    def _table(self, chosen: NDArray[np.intp], values: Floats) -> sp.csr_matrix:
        rows, columns = self.data.X[chosen].T
        return sp.csr_matrix((values[chosen], (rows, columns)), self.data.shape)

    def _counted(self) -> NDArray[np.intp]:
        """Entries that count: of each person the rarest items."""
        people, items = self.data.X.T
        counts = np.bincount(items, minlength=self.data.shape[1])
        order = np.lexsort((counts[items], people))
        starts = np.searchsorted(people[order], people[order])
        return order[np.arange(len(order)) - starts < self.most]

    def _equations(self, table: sp.csr_matrix, vectors: Floats) -> tuple[Floats, Floats]:
        """Sums of v v' and of x v over the entries of each row."""
        squares = (vectors[:, :, None] * vectors[:, None, :]).reshape(len(vectors), -1)
        marks = sp.csr_matrix((np.ones(table.nnz), table.indices, table.indptr), table.shape)
        return (marks @ squares).reshape(-1, self.rank, self.rank), table @ vectors

    def _solved(self, table: sp.csr_matrix, vectors: Floats) -> Floats:
        grams, moments = self._equations(table, vectors)
        return np.linalg.solve(grams + np.eye(self.rank), moments[..., None])[..., 0]

    def _released(
        self, table: sp.csr_matrix, persons: Floats, epsilon: float, rng: np.random.Generator
    ) -> Floats:
        """Items' vectors from noisy equations, half of a sweep's mu squared for each side."""
        grams, moments = self._equations(table.T.tocsr(), persons)
        if math.isfinite(epsilon):
            each = gaussian_mu(epsilon, DELTA) / math.sqrt(2 * self.sweeps)
            # A person's products of vectors are semi-definite, so that replacing moves their sum by
            # no more than the root of two; moments may change their sign.
            noise = rng.standard_normal(grams.shape) * math.sqrt(2 * self.most) * NORM**2 / each
            grams = grams + (noise + noise.swapaxes(1, 2)) / 2
            # Of a symmetrised matrix entries off the diagonal have half the variance.
            spread = 2 * math.sqrt(self.most) * NORM * VALUE / each
            moments = moments + spread * rng.standard_normal(moments.shape)
            sizes, frames = np.linalg.eigh(grams)
            grams = (frames * np.maximum(sizes, 0.0)[:, None, :]) @ frames.swapaxes(1, 2)
        ridge = self.ridge * np.eye(self.rank)
        return np.linalg.solve(grams + ridge, moments[..., None])[..., 0]
