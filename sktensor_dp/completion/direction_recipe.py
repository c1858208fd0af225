"""Components of the columns of a wide table for whoever folds in a row's own entries."""

import numpy as np

from sktensor_dp.completion.assumed import RESIDUAL
from sktensor_dp.completion.model_options import ModelOptions
from sktensor_dp.completion.pair_plan import DIRECTION_CLIP, search_weights
from sktensor_dp.completion.pair_recipe import centred_biases, pair_weights, variance_left
from sktensor_dp.completion.plan import CompletionPlan
from sktensor_dp.completion.rows import inverse_root
from sktensor_dp.privacy.curator import Noisy
from sktensor_dp.privacy.curators.entries import EntryCurator
from sktensor_dp.statistics.row_cells import RowCells
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.completion_forms import Model
from sktensor_dp.tensor.shared_effects import clipped_response

# Lengths of what a row says, over the root of the sum of its squared axes: at the first a
# search gains most, at the second hardly a row is clipped, so that sizes can be read off.
REACH, WIDE_REACH = 1.0, 3.0


def direction_components(
    curator: EntryCurator, model: Model, plan: CompletionPlan, options: ModelOptions
) -> tuple[Floats, float]:
    """Loadings of the rows of the other mode, and the variance that they leave of a value."""
    residual = 2 * curator.half * RESIDUAL
    search = _Search(curator, model, options.unit_mode, DIRECTION_CLIP * residual)
    n_columns = curator.index_set.shape[1 - options.unit_mode]
    # A start of each direction asked for, whichever are sought.
    start = options.random_state.standard_normal((n_columns, min(options.ranks)))
    axes = search.scaled(start[:, : plan.n_columns])
    # The last release says how much they explain.
    for weight in search_weights():
        axes = search.turned(axes, weight)
    response = clipped_response(DIRECTION_CLIP, residual) ** 2
    found = search.sized(axes, response) / np.sqrt(options.regularization)
    return found, variance_left(found, curator.index_set, options.unit_mode, residual)


class _Search:
    """Power iterations on released sums, each of which adds to those before."""

    def __init__(self, curator: EntryCurator, model: Model, unit_mode: int, scale: float) -> None:
        places = curator.index_set
        self._curator, self._scale = curator, scale
        self._cells = RowCells(places, unit_mode)
        self._predictions = centred_biases(curator, model)
        self._weights = pair_weights(places.counts[unit_mode])
        # Sums of pairs of a column with all others, which are taken to be of rank one.
        repeats, cells = self._cells.repeats, self._cells
        own = cells.by_row(repeats)[cells.rows]
        paired = self._weights[cells.rows] * repeats * (own - repeats)
        pairs = np.bincount(cells.columns, paired, minlength=cells.shape[1])
        self._margin = pairs / np.sqrt(max(float(pairs.sum()), 1e-100))
        self._sums, self._variance = np.zeros((cells.shape[1], 1)), 0.0

    def turned(self, axes: Floats, weight: float) -> Floats:
        """Axes by one more release, whose sums count so much."""
        noisy = self._asked(axes, REACH)
        self._sums = self._sums + weight * noisy.value
        self._variance += (weight * noisy.sigma) ** 2
        # Rows are normal a priori, of one variance.
        margin, sums = self._margin[:, None], self._sums
        signal = float((sums**2).sum()) - sums.size * self._variance
        prior = signal / (sums.shape[1] * max(float((margin**2).sum()), 1e-100))
        noise = self._variance / max(prior, 1e-6 * self._variance, 1e-100)
        return self.scaled(margin * sums / (margin**2 + noise + 1e-100))

    def scaled(self, rows: Floats) -> Floats:
        """Columns at right angles, of mean square 1 and mean 0; no row is longer than usual."""
        # Of mean 0: what is left of a row's level is no direction.
        shares = self._margin / max(float(self._margin.sum()), 1e-100)
        rows = rows - shares @ rows
        axes = rows @ inverse_root(rows.T @ (shares[:, None] * rows))
        lengths = np.linalg.norm(axes, axis=1, keepdims=True)
        usual = np.sqrt(axes.shape[1])
        return np.asarray(axes * np.minimum(usual / np.maximum(lengths, 1e-100), 1.0))

    def sized(self, axes: Floats, response: float) -> Floats:
        """Axes times the roots of the variances that one more release shows them to explain."""
        noisy = self._asked(axes, WIDE_REACH)
        # Sums are of ``margin V V' gram`` with V = axes A, and noise.
        gram = axes.T @ (self._margin[:, None] * axes)
        inverse = np.linalg.pinv(gram, hermitian=True)
        found = inverse @ (axes.T @ noisy.value) @ inverse / response
        values, vectors = np.linalg.eigh((found + found.T) / 2)
        spread = noisy.sigma * np.sqrt(np.mean(axes**2) * len(axes)) / response
        spread *= float(np.trace(inverse) / len(inverse)) ** 2
        # The largest eigenvalue of noise, and some of its deviations.
        edge = (np.sqrt(2 * len(values)) + 2) * spread
        kept = values > edge
        order = np.flatnonzero(kept)[::-1]
        return np.asarray(axes @ (vectors[:, order] * np.sqrt(values[order])))

    def _asked(self, axes: Floats, reach: float) -> Noisy:
        cells, weights = self._cells, self._weights
        squares = cells.by_row((cells.repeats * np.linalg.norm(axes, axis=1)[cells.columns]) ** 2)
        lengths = reach * np.sqrt(weights * squares)
        return self._curator.entry_directions(
            cells, self._predictions, weights, self._scale, axes, lengths
        )
