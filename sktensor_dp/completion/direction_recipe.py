"""Components of the columns of a wide table for whoever folds in a row's own entries."""

import numpy as np

from sktensor_dp.completion.assumed import COMPONENT, RESIDUAL
from sktensor_dp.completion.model_options import ModelOptions
from sktensor_dp.completion.pair_plan import (
    DIRECTION_CLIP,
    LAST,
    SEARCHED,
    SEARCHES,
    kept_at,
)
from sktensor_dp.completion.pair_recipe import centred_biases, pair_weights, variance_left
from sktensor_dp.completion.plan import CompletionPlan
from sktensor_dp.completion.rows import inverse_root
from sktensor_dp.privacy.curator import Noisy
from sktensor_dp.privacy.curators.entries import EntryCurator
from sktensor_dp.statistics.row_cells import RowCells
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.completion_forms import Model
from sktensor_dp.tensor.shared_effects import clipped_response

# Lengths of what a row says, over the root of the sum of squares of as many axes, all as long as
# the longest: at the first a search gains most, at the second hardly a row is clipped, so that
# sizes can be read off.
REACH, WIDE_REACH = 1.0, 3.0
# Longest axis that is asked for, over the root of their mean square: noise is in proportion to
# it. What is found in the end is not cut off.
LONGEST = 0.8
# Releases by which the variance that directions explain is estimated while they turn.
LATELY = 3
# Clipped rows show so many times too little, at most.
MOST_SCALED = 4.0


def direction_components(
    curator: EntryCurator, model: Model, plan: CompletionPlan, options: ModelOptions
) -> tuple[Floats, float]:
    """Loadings of the rows of the other mode, and the variance that they leave of a value."""
    residual = 2 * curator.half * RESIDUAL
    search = _Search(curator, model, options.unit_mode, residual)
    n_columns = curator.index_set.shape[1 - options.unit_mode]
    # A start of each direction asked for, whichever are sought.
    start = options.random_state.standard_normal((n_columns, min(options.ranks)))
    axes = search.scaled(start[:, : plan.n_columns])
    # The last release says how much they explain.
    for step in range(SEARCHES - 1):
        axes = search.turned(axes, step)
    found = search.sized(axes) / np.sqrt(options.regularization)
    return found, variance_left(found, curator.index_set, options.unit_mode, residual)


class _Search:
    """Power iterations on released sums, each of which adds to those before."""

    def __init__(
        self, curator: EntryCurator, model: Model, unit_mode: int, residual: float
    ) -> None:
        places = curator.index_set
        self._curator, self._scale = curator, DIRECTION_CLIP * residual
        # Of products of two residuals; and what a component is assumed to explain.
        self._response = clipped_response(DIRECTION_CLIP, residual) ** 2
        self._assumed = (2 * curator.half * COMPONENT) ** 2
        self._cells = RowCells(places, unit_mode)
        self._predictions = centred_biases(curator, model)
        self._weights = pair_weights(places.counts[unit_mode])
        # Sums of pairs of a column with all others, which are taken to be of rank one.
        repeats, cells = self._cells.repeats, self._cells
        own = cells.by_row(repeats)[cells.rows]
        paired = self._weights[cells.rows] * repeats * (own - repeats)
        pairs = np.bincount(cells.columns, paired, minlength=cells.shape[1])
        self._margin = pairs / np.sqrt(max(float(pairs.sum()), 1e-100))
        # What one value of each row moves by the others, if all axes have length 1; squared.
        others = np.maximum(cells.by_row(repeats**2) - 1, 0.0)
        self._moved = self._weights * others
        # All releases together, the covariance of their noise, and what the last ones showed.
        self._sums: Floats = np.zeros(0)
        self._covariance: Floats = np.zeros(0)
        self._shown: list[Floats] = []
        self._spread = 0.0

    def turned(self, axes: Floats, step: int) -> Floats:
        """Axes by one more release, beside what counts of those before."""
        noisy, own = self._asked(axes, REACH), np.eye(axes.shape[1])
        shown, self._spread = self._explained(axes, noisy)
        self._shown = [*self._shown[1 - LAST :], shown]
        if step == 0:
            self._sums, self._covariance = noisy.value, noisy.sigma**2 * own
        else:
            values, vectors = np.linalg.eigh(np.mean(self._shown[-LATELY:], axis=0))
            explained = values / (SEARCHED * self._assumed)
            kept = (vectors * kept_at(explained, step)) @ vectors.T
            self._sums = self._sums @ kept + noisy.value
            self._covariance = kept @ self._covariance @ kept + noisy.sigma**2 * own
        # Rows are normal a priori, of one variance.
        margin, sums = self._margin[:, None], self._sums
        variance = float(np.mean(self._covariance.diagonal()))
        signal = float((sums**2).sum()) - sums.size * variance
        prior = signal / (sums.shape[1] * max(float((margin**2).sum()), 1e-100))
        noise = variance / max(prior, 1e-6 * variance, 1e-100)
        return self.scaled(margin * sums / (margin**2 + noise + 1e-100))

    def scaled(self, rows: Floats) -> Floats:
        """Columns at right angles, of mean square 1 and mean 0."""
        # Of mean 0: what is left of a row's level is no direction.
        shares = self._margin / max(float(self._margin.sum()), 1e-100)
        rows = rows - shares @ rows
        return np.asarray(rows @ inverse_root(rows.T @ (shares[:, None] * rows)))

    def sized(self, axes: Floats) -> Floats:
        """Axes times the roots of the variances that they explain.

        The last of the releases that turned them say which explain more than chance, and one
        more, which hardly clips a row, says how much that is.
        """
        values, vectors = np.linalg.eigh(np.mean(self._shown, axis=0))
        # The largest eigenvalue of noise, some of its deviations, and what directions explain of
        # rows that differ by chance.
        edge = (np.sqrt(2 * len(values)) + 2) * self._spread / np.sqrt(len(self._shown))
        pairs = max(float(self._margin.sum()) ** 2, 1e-100)
        kept = values > edge + 2 * np.sqrt(len(axes) / pairs) / self._response
        order = np.flatnonzero(kept)[::-1]
        values, vectors = values[order], vectors[:, order]
        found = self._explained(axes, self._asked(axes, WIDE_REACH))[0]
        whole = float(np.trace(vectors.T @ found @ vectors))
        scale = np.clip(whole / max(float(values.sum()), 1e-100), 1.0, MOST_SCALED)
        return np.asarray(axes @ (vectors * np.sqrt(scale * values)))

    def _explained(self, axes: Floats, noisy: Noisy) -> tuple[Floats, float]:
        """Variance of a value that axes explain, of shape (r, r), and the noise of a number."""
        # Sums are of ``margin V V' gram`` with V = axes A, and noise. Shortening rows leaves it
        # symmetric.
        asked = _shortened(axes)
        gram = asked.T @ (self._margin[:, None] * axes)
        inverse = np.linalg.pinv(gram, hermitian=True)
        found = inverse @ (asked.T @ noisy.value) @ inverse / self._response
        spread = noisy.sigma * np.sqrt(np.mean(asked**2) * len(axes)) / self._response
        spread *= float(np.trace(inverse) / len(inverse)) ** 2
        return (found + found.T) / 2, spread

    def _asked(self, axes: Floats, reach: float) -> Noisy:
        asked = _shortened(axes)
        # One value of any row moves as much: by the row's own axes, the row that has the longest
        # would say how much noise all get.
        longest = float(np.square(asked).sum(axis=1).max())
        lengths = reach * np.sqrt(self._moved * longest)
        return self._curator.entry_directions(
            self._cells, self._predictions, self._weights, self._scale, asked, lengths
        )


def _shortened(axes: Floats) -> Floats:
    """Axes of mean square 1, of which none is longer than a limit."""
    lengths = np.linalg.norm(axes, axis=1, keepdims=True)
    limit = LONGEST * np.sqrt(axes.shape[1])
    return np.asarray(axes * np.minimum(limit / np.maximum(lengths, 1e-100), 1.0))
