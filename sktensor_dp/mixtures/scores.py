"""Scores of rows that are drawn of a mixture: their means, products and derivatives."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sktensor_dp.mixtures.gaussians import (
    Gaussians,
    ObservedPart,
    observed_part,
    patterns_of,
    responsibilities,
)
from sktensor_dp.mixtures.observed_information import missing_places, shape_entries
from sktensor_dp.tensor.arrays import Floats, Integers, as_generator, spans
from sktensor_dp.tensor.symmetric import n_unique

# Number of rows that are drawn for mean scores.
FOR_MEANS = 50_000
# Numbers of rows for products of scores, for each score: for information, and for derivatives that
# only lead moves; and the fewest in all.
ROWS, FOR_MOVES, FEWEST = 20, 5, 10_000
# Numbers of drawn rows that have the same missing cells, and whose scores are multiplied at once.
ALIKE, HELD_AT_ONCE = 4, 2000
# Least responsibility that counts in products: it moves them by less than chance does.
LEAST = 1e-6


def n_scores(k: int, d: int) -> int:
    """Number of parameters in the information matrix: weights, means and entries of shapes."""
    return k * (1 + d + n_unique(d, 2))


def stretched(shapes: Floats, model: Gaussians) -> Floats:
    """Whitened matrices (..., k, d, d) in true deviations, without variances of nonnormal columns.

    These are no parameters, as they follow from the means.
    """
    shapes = shapes * model.stretches[:, :, None] * model.stretches[:, None]
    if model.nonnormal is not None:
        shapes[..., model.nonnormal.places, model.nonnormal.places] = 0.0
    return shapes


def directions(model: Gaussians, covariance_type: str) -> sparse.csr_array:
    """Orthonormal directions (n_scores, p) in which parameters of this type can move.

    Weights add up to 1, and variances of nonnormal columns follow from means.
    """
    k, d = model.means.shape
    first, second = np.triu_indices(d)
    # Directions across the roots of weights, by a reflection: they move smoothly with the weights.
    roots = np.sqrt(model.weights) + np.eye(k)[0]
    of_weights = (np.eye(k) - 2 * np.outer(roots, roots) / (roots @ roots))[:, 1:]
    of_shapes = np.eye(len(first))
    if covariance_type in ("diag", "spherical"):
        of_shapes = of_shapes[:, first == second]
    if covariance_type == "spherical":
        of_shapes = of_shapes.sum(axis=1, keepdims=True) / np.sqrt(d)
    elif model.nonnormal is not None:
        follows = (first == second) & np.isin(first, model.nonnormal.places)
        of_shapes = of_shapes[:, (of_shapes[follows] == 0).all(axis=0)]
    of_groups = np.sqrt(model.weights)[:, None] if covariance_type == "tied" else np.eye(k)
    of_each = sparse.kron(sparse.coo_array(of_groups), sparse.coo_array(of_shapes))
    parts = [of_weights, sparse.eye_array(k * d), of_each]
    found = sparse.block_diag(parts, format="csr")
    # Parameters of a group are together.
    places = np.split(np.arange(n_scores(k, d)), [k, k * (1 + d)])
    order = np.hstack([part.reshape(k, -1) for part in places]).ravel()
    return sparse.csr_array(found)[order]


def standardised_scores(
    weights: Floats, shifts: Floats, shapes: Floats, given: Gaussians
) -> Floats:
    """Scores (n_scores,) in a `given` mixture, in standard errors by a labelled row.

    Arguments are means of responsibilities r (k,), of r y (k, d) for whitened rows y, and of r yy'
    (k, d, d), each less what the mixture expects.
    """
    entries = shape_entries(stretched(shapes, given))
    found = np.hstack([weights[:, None], given.stretches * shifts, entries])
    return np.asarray((found / np.sqrt(given.weights)[:, None]).ravel())


class _Drawn(NamedTuple):
    """Rows drawn of a mixture in which the same cells are missing."""

    model: Gaussians
    pattern: NDArray[np.bool_]  # (d,): cells that are observed
    groups: Integers  # (n,)
    normal: Floats  # (n, d): standard normal points at which the rows are

    def cells(self, model: Gaussians) -> ObservedPart:
        """Part of a mixture that observed cells show."""
        return observed_part(model.factors, model.log_scales, self.pattern, model.offsets)

    def blocks(self, numbers_each: int) -> Iterator[Floats]:
        """Yield the rows in blocks for work on this many numbers for each."""
        for block in spans(len(self.groups), self.normal.shape[1] ** 2 + numbers_each):
            yield self.model.placed(self.groups[block], self.normal[block])


def _drawn(model: Gaussians, observed: Floats, n: int, alike: int = ALIKE) -> Iterator[_Drawn]:
    """Draw `n` rows with shares `observed` (k, d) of cells, `alike` with the same missing ones."""
    # With one seed for all, rows of mixtures that are near are near each other.
    rng = as_generator(0)
    (k, d), n_patterns = model.means.shape, n // alike
    groups = np.searchsorted(model.weights.cumsum(), (np.arange(n_patterns) + 0.5) / n_patterns)
    groups = np.minimum(groups, k - 1)
    seen = missing_places(n_patterns, d, rng) < observed[groups]
    normal = rng.standard_normal((n_patterns, alike, d))
    for pattern, rows in patterns_of(seen):
        yield _Drawn(model, pattern, np.repeat(groups[rows], alike), normal[rows].reshape(-1, d))


def _responsible(model: Gaussians, X: Floats, cells: ObservedPart) -> tuple[Floats, Floats]:
    """Whitened rows (k, n, d), as `cells` show them, and responsibilities (n, k)."""
    whitened = (X - model.means[:, None]) @ cells.whiteners.swapaxes(1, 2)
    log_odds = (whitened @ model.slopes[:, :, None])[..., 0]
    log_odds -= np.einsum("kna,kna->kn", whitened, whitened) / 2
    return whitened, responsibilities((cells.log_scales[:, None] + log_odds).T)


def mean_scores(model: Gaussians, given: Gaussians, observed: Floats) -> Floats:
    """Mean scores (n_scores,) in a `given` mixture of rows of a `model`.

    `observed` (k, d) are shares of observed cells.
    """
    # Mean scores of rows with the responsibilities r of the model are those of labelled rows, known
    # for each group and pattern of cells. Drawn rows show what other responsibilities in the given
    # mixture add.
    k, d = model.means.shape
    # Sums over drawn rows: by other responsibilities, and by labels.
    weights, shifts, shapes = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d))
    labelled, of_shifts, of_shapes = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d))
    squares = model.covariances_of_rows
    for drawn in _drawn(model, observed, FOR_MEANS, 5 * ALIKE):
        cells, of_model = drawn.cells(given), drawn.cells(model)
        way = np.einsum("jab,jb->ja", cells.whiteners, model.means - given.means)
        outer = cells.whiteners @ squares @ cells.whiteners.swapaxes(1, 2)
        outer += way[:, :, None] * way[:, None] - cells.projectors
        counts = np.bincount(drawn.groups, minlength=k)
        labelled += counts
        of_shifts += counts[:, None] * way
        of_shapes += counts[:, None, None] * outer
        for X in drawn.blocks(4 * k * d):
            whitened, found = _responsible(given, X, cells)
            moves = found - _responsible(model, X, of_model)[1]
            weighted = whitened * moves.T[:, :, None]
            weights += moves.sum(axis=0)
            shifts += weighted.sum(axis=1)
            shapes += weighted.swapaxes(1, 2) @ whitened
            shapes -= moves.sum(axis=0)[:, None, None] * cells.projectors
    n, part = labelled.sum(), model.weights / np.maximum(labelled, 1)
    return standardised_scores(
        model.weights - given.weights + weights / n,
        part[:, None] * of_shifts + shifts / n,
        part[:, None, None] * of_shapes + shapes / n,
        given,
    )


class Information(NamedTuple):
    """Means of products over rows drawn of a model; scores are in units of `standardised_scores`.

    They count along `directions` alone.
    """

    of_scores: Floats  # (n_scores, n_scores): products of scores in a given mixture
    derivatives: Floats  # (n_scores, n_scores): of mean scores there in parameters of the model
    overlaps: Floats  # (k, k): products of responsibilities in the model


class _Scored(NamedTuple):
    """Drawn rows of some groups, scored in m mixtures."""

    groups: Integers  # (g,)
    found: Floats  # (m, n, g): responsibilities
    scores: Floats  # (m, n, g, n_scores / k): of the rows as if they were of each group

    def places(self) -> Integers:
        """Indices of the parameters of the groups."""
        width = self.scores.shape[-1]
        return np.asarray((self.groups[:, None] * width + np.arange(width)).ravel())

    def products(self) -> Floats:
        """Scores times responsibilities, (m, n, g * n_scores / k)."""
        found = self.found[..., None] * self.scores
        return found.reshape(*found.shape[:2], -1)


def _scored(mixtures: tuple[Gaussians, ...], observed: Floats, n: int) -> Iterator[_Scored]:
    """Draw `n` rows of the last of mixtures, and score them in each.

    Rows with the same one or two groups are together, all others with all groups: products of all
    scores take most of the time.
    """
    k, scales = len(observed), [_scales(one) for one in mixtures]
    held = dict[tuple[int, ...], list[tuple[Floats, Floats]]]()

    def together(groups: tuple[int, ...]) -> _Scored:
        found, scores = zip(*held.pop(groups), strict=True)
        return _Scored(np.array(groups), np.concatenate(found, 1), np.concatenate(scores, 1))

    for drawn in _drawn(mixtures[-1], observed, n):
        cells = [drawn.cells(one) for one in mixtures]
        for X in drawn.blocks(len(mixtures) * scales[0].size):
            each = [_responsible(one, X, part) for one, part in zip(mixtures, cells, strict=True)]
            counting = np.any([found > LEAST for _, found in each], axis=0)
            for which, rows in patterns_of(counting):
                groups = np.flatnonzero(which) if which.sum() < 3 else np.arange(k)
                found = np.array([one[rows][:, groups] for _, one in each])
                scores = np.array([
                    _scores(part.projectors[groups], whitened[groups][:, rows], scale[groups])
                    for part, (whitened, _), scale in zip(cells, each, scales, strict=True)
                ])  # fmt: skip
                key = tuple(groups.tolist())
                held.setdefault(key, []).append((found, scores))
                if sum(one.shape[1] for one, _ in held[key]) >= HELD_AT_ONCE:
                    yield together(key)
    for key in [*held]:
        yield together(key)


def information_of(model: Gaussians, given: Gaussians, observed: Floats) -> Information:
    """Information by rows of a `model`, with shares `observed` (k, d) of cells."""
    if given is model:
        (products,), overlaps = _mean_products((model,), observed, [0])
        return Information(products, products, overlaps)
    (of_scores, derivatives), overlaps = _mean_products((given, model), observed, [0, 1])
    return Information(of_scores, derivatives, overlaps)


def derivatives_of(model: Gaussians, given: Gaussians, observed: Floats) -> Floats:
    """`Information.derivatives` by fewer rows."""
    return np.asarray(_mean_products((given, model), observed, [1], FOR_MOVES)[0][0])


def _mean_products(
    mixtures: tuple[Gaussians, ...], observed: Floats, others: list[int], n_each: int = ROWS
) -> tuple[Floats, Floats]:
    """Mean products (m, p, p) of scores in the first mixture and in each of m `others`, p scores.

    Also mean products (k, k) of responsibilities in the last mixture, of which rows are drawn.
    """
    k, p = len(observed), n_scores(*observed.shape)
    n = max(FEWEST, n_each * p) // ALIKE * ALIKE
    found, overlaps = np.zeros((len(others), p, p)), np.zeros((k, k))
    for rows in _scored(mixtures, observed, n):
        places, scores, groups = rows.places(), rows.products(), rows.groups
        for total, other in zip(found, others, strict=True):
            if len(groups) == k:
                total += scores[0].T @ scores[other]
            else:
                total[places[:, None], places] += scores[0].T @ scores[other]
        overlaps[groups[:, None], groups] += rows.found[-1].T @ rows.found[-1]
    found /= n
    return found, overlaps / n


def _scales(model: Gaussians) -> Floats:
    """Factors (k, n_scores / k) on scores, to units of errors by one labelled row."""
    squares = shape_entries(stretched(np.ones(model.covariances.shape), model))
    found = np.hstack([np.ones((len(squares), 1)), model.stretches, squares])
    return np.asarray(found / np.sqrt(model.weights)[:, None])


def _scores(projectors: Floats, whitened: Floats, scales: Floats) -> Floats:
    """Scores (n, k, width) of whitened rows (k, n, d) as if of each group; 1 for its weight."""
    k, n, d = whitened.shape
    first, second = np.triu_indices(d)
    scores = np.ones((n, k, 1 + d + len(first)))
    scores[..., 1 : 1 + d] = whitened.swapaxes(0, 1)
    entries = whitened[..., first] * whitened[..., second]
    entries -= projectors[:, first, second][:, None]
    scores[..., 1 + d :] = entries.swapaxes(0, 1)
    return scores * scales
