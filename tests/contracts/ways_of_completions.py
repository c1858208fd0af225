"""Ways to complete tensors, for replay."""

from functools import partial
from typing import Any

import numpy as np
from contracts.replay_rows import Pair, Rng, Row, builder, product

from sktensor_dp import PrivateCPCompletion, PrivateTuckerCompletion

SHAPE, N = (9, 8, 5), 150
MODELS = {"CP": PrivateCPCompletion, "Tucker": PrivateTuckerCompletion}

# Values, at coordinates that are public for entries and private for slices


def components(rng: Rng, X: np.ndarray) -> np.ndarray:
    factors = [rng.standard_normal((n, 2)) for n in X.max(axis=0, initial=0) + 1]
    return np.prod([f[rows] for f, rows in zip(factors, X.T, strict=True)], axis=0).sum(axis=1)


VALUES: dict[str, Any] = {
    "zeros": lambda rng, X: np.zeros(len(X)),
    "at an end": lambda rng, X: np.full(len(X), 2.0),
    "beyond both ends": lambda rng, X: rng.choice([-7.0, 9.0], len(X)),
    "enormous": lambda rng, X: rng.choice([-1, 1], len(X)) * 10 ** rng.uniform(0, 308, len(X)),
    "the largest": lambda rng, X: np.full(len(X), np.finfo(float).max),
    "tiny": lambda rng, X: rng.standard_normal(len(X)) * 10 ** rng.uniform(-320, 0, len(X)),
    "one value": lambda rng, X: np.eye(1, len(X))[0],
    "noise": lambda rng, X: rng.standard_normal(len(X)),
}  # fmt: skip


def cells(rng: Rng, n: int) -> np.ndarray:
    return rng.integers(0, SHAPE, (n, 3))


COORDINATES: dict[str, Any] = {
    "at random": lambda rng: cells(rng, N),
    "none": lambda rng: cells(rng, 0),
    "one": lambda rng: np.array([[8, 7, 4]]),
    "one unit": lambda rng: np.insert(cells(rng, 40)[:, 1:], 0, 3, axis=1),
    "one row of a mode": lambda rng: np.insert(cells(rng, 40)[:, ::2], 1, 2, axis=1),
    "everywhere": lambda rng: np.argwhere(np.ones(SHAPE)),
    "the same, often": lambda rng: np.tile([[4, 0, 1], [2, 0, 1]], (60, 1)),
}  # fmt: skip


def any_of(kinds: dict[str, Any], *given: Any) -> Any:
    return kinds[list(kinds)[given[0].integers(len(kinds))]](*given)


def values(rng: Rng) -> Pair:
    X = cells(rng, N)
    return (X, components(rng, X)), (X, any_of(VALUES, rng, X))


def slices(rng: Rng) -> Pair:
    X, Z = cells(rng, N), any_of(COORDINATES, rng)
    return (X, components(rng, X)), (Z, any_of(VALUES, rng, Z))


def long_tables(rng: Rng) -> Pair:
    """Many rows to few columns: each column has a noise variance of its own."""
    X = np.argwhere(rng.random((700, 3)) < 0.9)
    y = np.outer(rng.standard_normal(700), [1.0, -0.5, 0.1])[tuple(X.T)]
    return (X, y), (X, any_of(VALUES, rng, X))


def small_tables(rng: Rng) -> Pair:
    X = np.argwhere(rng.random((80, 6)) < 0.8)
    y = rng.standard_normal(80)[X[:, 0]] * np.array([1, -1, 1, 1, -1, 0.5])[X[:, 1]]
    return (X, y), (X, any_of(VALUES, rng, X))


def matrices_of_units(rng: Rng) -> Pair:
    X, Z = (np.argwhere(rng.random((300, 6)) < share) for share in (0.9, rng.choice([0, 0.3])))
    y = rng.standard_normal(300)[X[:, 0]] * np.array([1, -1, 1, 1, -1, 0.5])[X[:, 1]]
    return (X, y), (Z, any_of(VALUES, rng, Z))


def named(pair: Pair, persons: bool) -> Pair:
    """Coordinates by names, some of which are on no list."""
    renamed = []
    for X, y in pair:
        rows = X.astype(object)
        rows[:, 1] = [f"row {number}" for number in X[:, 1]]
        if persons and not renamed:
            rows[:, 0] = [f"person {number}" for number in X[:, 0]]
        renamed.append((rows, y))
    return renamed[0], renamed[1]


# Ways to fit


def entries(estimator: Any, data: Any) -> Any:
    # Draws of cells repeat some, whose values are different ones.
    return estimator.fit(*data, repeated="distinct" if estimator.unit_mode is None else None)


def masked(estimator: Any, data: Any) -> Any:
    """What lies behind the mask differs too."""
    observed, T = np.zeros(SHAPE, bool), np.full(SHAPE, data[1].sum() if len(data[1]) < 9 else 0.5)
    observed[tuple(data[0].T)] = True
    T[tuple(data[0].T)] = data[1]
    return estimator.fit_tensor(T, observed)


def used(estimator: Any, data: Any) -> Any:
    """Using a model, by its own data too, keeps nothing."""
    entries(estimator, data)
    estimator.fold_in(*data)
    return estimator


WAYS = {"entries": entries, "masked": masked, "used": used}

# Use of fitted models


def _recommended(estimator: Any, of: Any) -> list[np.ndarray]:
    """The best and the values of all rows, for some units; and rows that are alike."""
    mode, other = (m for m in range(3) if m != (estimator.unit_mode or 0))
    context = {other: 1}
    found = [estimator.predict_rows(of, mode, context=context)]
    if isinstance(of, range) and estimator.unit_mode is not None:
        of = None
    found += estimator.recommend(of, 4, exclude=[[1, 2, 3], [4, 5, 1]], mode=mode, context=context)
    try:
        found += estimator.similar_rows(mode, np.arange(SHAPE[mode]), 3)
    except ValueError as error:
        found.append(np.array(str(error)))
    return found


def of_public_cells(estimator: Any) -> list[np.ndarray]:
    everywhere = np.argwhere(np.ones([n + 1 for n in SHAPE])) - 1  # unknown rows first
    found = [estimator.predict(everywhere), estimator.transform(everywhere), estimator.complete()]
    found += _recommended(estimator, range(SHAPE[estimator.unit_mode or 0]))
    return found + _recommended(estimator, estimator.fold_in([[1, 2, 3], [4, 5, 1]], [2.0, 0.5]))


def inside(estimator: Any) -> list[np.ndarray]:
    cells = np.argwhere(np.ones(estimator.shape))
    own = estimator.fold_in(cells[[20, 40]], [2.0, 0.5])
    return [estimator.predict(cells), own.predict(cells), estimator.complete()]


# Rows


def _row(
    kind: str, model: str, name: str, options: dict[str, Any], fit: Any, place: int, **more: Any
) -> Row:
    given = {"rank": 2, "bounds": (-1.0, 2.0), "epsilon": 5.0, **options}
    build = builder(MODELS[model], given, place)
    return Row(f"{model}, {kind}{name}", build, fit, place=place + (model == "CP"), **more)


def _rows(kind: str, options: dict[str, Any], fits: dict[str, Any], **more: Any) -> list[Row]:
    """Rows of both models; how fits follow each other, and what is made of them, is one code."""
    of_tucker = {way: fit for way, fit in fits.items() if fit in (entries, masked)}
    return [
        row
        for model, own in (("CP", fits), ("Tucker", of_tucker))
        for row in product(options, own, partial(_row, kind, model, **more))
    ]


ENTRIES: dict[str, dict[str, Any]] = {
    # Steps after the first do nothing new, but for the last; a tolerance ends the small ways.
    "input": {"perturbation": "input", "max_iter": 8},
    "input, resolved": {"perturbation": "input", "epsilon": 40.0, "max_iter": 8},
    "row sums": {"perturbation": "sufficient_statistics"},
    "row sums, resolved": {"perturbation": "sufficient_statistics", "epsilon": 1e4},
    "gradient": {"perturbation": "gradient", "max_iter": 4},
    "gradient, resolved": {"perturbation": "gradient", "max_iter": 4, "epsilon": 1e4},
    "output": {"perturbation": "output", "max_iter": 8},
    "output, resolved": {"perturbation": "output", "epsilon": 80.0, "max_iter": 8},
    "chosen": {"shape": SHAPE, "epsilon": 1e-3},
}
OF_PERSONS = {"shape": SHAPE, "unit_mode": 0}
SLICES: dict[str, dict[str, Any]] = {
    "first": OF_PERSONS,
    "last": {**OF_PERSONS, "unit_mode": 2},
    "tiny epsilon": {**OF_PERSONS, "epsilon": 1e-6},
    "resolved": {**OF_PERSONS, "epsilon": 1e4, "unit_mode": 1},
    "components": {**OF_PERSONS, "epsilon": 1e6},
    "components, resolved": {**OF_PERSONS, "epsilon": 1e6, "unit_mode": 1},
}
# Bounds by a histogram, which shows something at a large epsilon, and nothing at a small one.
CHOSEN = {f"epsilon {e:g}": {"bounds": "auto", "epsilon": e} for e in (1.0, 400.0)}
CHOSEN_PERSONS = {name: {**OF_PERSONS, **of} for name, of in CHOSEN.items()}
# Of units of a matrix, whose directions are sought; and components in each of them.
OF_MATRICES = {"shape": (300, 6), "unit_mode": 0}
DIRECTIONS: dict[str, dict[str, Any]] = {
    "by evidence": {**OF_MATRICES, "epsilon": 20.0},
    "a large budget": {**OF_MATRICES, "epsilon": 1e4},
    "a tiny one": {**OF_MATRICES, "epsilon": 1e-6},
}
NAMES = {"shape": (9, 6, 5), "row_names": (None, [f"row {number}" for number in range(6)], None)}


def _always(share: float, **more: Any) -> dict[str, Any]:
    """Small tables are folded in by a share of the budget, for pairs."""
    return {"completion.plan.pair_fraction": lambda *_: share, **more}


ONCE, TABLE = {"fit": entries}, {"shape": (80, 6)}
NEVER = {"completion.plan.values_pay": lambda *_: False}
OF_TABLES = {"pair": small_tables, "use": inside}
RESOLUTIONS = {f"epsilon {e:g}": {**TABLE, "epsilon": e} for e in (1e-3, 1.0, 1e4)}
LONG = {
    name: {"perturbation": name, "epsilon": 20.0, "max_iter": 4, "shape": (700, 3)}
    for name in ("input", "output")
}
UNRELATED = [
    *_rows("", ENTRIES, WAYS, pair=values, use=of_public_cells),
    *_rows("slices, ", SLICES, WAYS, pair=slices, use=of_public_cells),
    *_rows("chosen, ", CHOSEN, {"entries": entries}, pair=values, use=of_public_cells),
    *_rows("slices, chosen, ", CHOSEN_PERSONS, {"entries": entries}, pair=slices,
           use=of_public_cells),
    *_rows("long tables, ", LONG, ONCE, pair=long_tables, use=inside),
    *_rows("named rows", {"": NAMES}, ONCE, pair=lambda rng: named(values(rng), False)),
    *_rows("named rows of persons", {"": {**NAMES, "unit_mode": 0}}, ONCE,
           pair=lambda rng: named(slices(rng), True)),
    *_rows("directions, ", DIRECTIONS, ONCE, pair=matrices_of_units, use=inside),
    *_rows("pairs, ", RESOLUTIONS, ONCE, forced=_always(1 / 8, **NEVER), **OF_TABLES),
]  # fmt: skip
