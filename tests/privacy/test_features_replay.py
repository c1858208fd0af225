"""What public tables of rows add to a fit follows from releases and from the tables."""

from typing import Any

import numpy as np
import pytest
import replaying
from small_completions import MODELS, SHAPE, build

# Of all modes; the second one's tell nothing.
FEATURES = {
    mode: np.random.default_rng(mode).standard_normal((n, 3)) for mode, n in enumerate(SHAPE)
}
WAYS: dict[str, dict[str, Any]] = {
    "input": {"perturbation": "input", "epsilon": 20.0},
    "sums": {"perturbation": "sufficient_statistics"},
    "sweeps": {"perturbation": "sufficient_statistics", "max_iter": 2, "epsilon": 1e4},
    "gradient": {"perturbation": "gradient", "max_iter": 4},
    "output": {"perturbation": "output", "epsilon": 20.0},
    "slices": {"privacy_unit": "slice", "epsilon": 5.0},
    "slices of the last mode": {"privacy_unit": "slice", "unit_mode": 2, "max_iter": 2},
    "slices, resolved": {"privacy_unit": "slice", "max_iter": 2, "epsilon": 1e6},
}
# Ranges of very different widths, most of which values lie beyond.
BOUNDS = np.column_stack([-(10.0 ** np.arange(-4, 4)), 10.0 ** np.arange(-3, 5)])
Data = tuple[np.ndarray, np.ndarray]


# A way that keeps what was not released keeps it of any data. At seed 0 every way has both models,
# each of them one of the two kinds of noise, and other data first with one of them.
def every_way(test: Any) -> Any:
    for name, values in {"way": WAYS, "model": MODELS, "delta": (1e-6, 0)}.items():
        test = pytest.mark.parametrize(name, values)(test)
    return pytest.mark.dealt(2, halved=True)(test)


def fit_and_use(estimator: Any, data: Data) -> Any:
    estimator.fit(*data)
    everywhere = np.argwhere(np.ones([n + 1 for n in SHAPE]))
    estimator.used_ = [estimator.predict(everywhere), estimator.complete()]
    estimator.used_.append(
        estimator.fold_in([[1, 2, 3], [4, 5, 1]], [2.0, 0.5]).predict(everywhere)
    )
    return estimator


def unrelated(seed: int, kept: bool) -> tuple[Data, Data]:
    """Values that follow features, and others; at the same cells, or at cells of their own."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, SHAPE, (150, 3))
    Z = X if kept else rng.integers(0, SHAPE, (60, 3))
    first = sum(FEATURES[mode][X[:, mode], 0] for mode in range(3))
    return (X, np.asarray(first)), (Z, rng.uniform(-9, 9, len(Z)))


def in_turn(pair: tuple[Data, Data], model: Any, seed: int) -> tuple[Data, Data]:
    """Which one is fitted first."""
    return pair[::-1] if (MODELS.index(model) + seed) % 2 else pair


@every_way
def test_public_features_tell_nothing_of_the_data(way, model, delta, seed):
    """They are scaled by what is public, or released: of slices never by true counts."""
    options = WAYS[way]
    by_slice = "privacy_unit" in options
    kept = options.get("unit_mode", 0) if by_slice else -1
    features = {mode: table for mode, table in FEATURES.items() if mode != kept}
    pair = in_turn(unrelated(seed, not by_slice), model, seed)
    known = {"shape": SHAPE, "row_features": features, "delta": delta, **options}

    def make() -> Any:
        return build(model, **known, random_state=np.random.RandomState(0))

    replaying.replay(make, fit_and_use, *pair)


@every_way
def test_values_in_ranges_of_their_rows_tell_nothing_else(way, model, delta, seed):
    options = WAYS[way]
    pair = in_turn(unrelated(seed, "privacy_unit" not in options), model, seed)
    known = {"shape": SHAPE, "bounds": {1: BOUNDS}, "delta": delta, **options}

    def make() -> Any:
        return build(model, **known, random_state=np.random.RandomState(0))

    def use(estimator: Any, data: Data) -> Any:
        estimator.fit(*data)
        inside = np.argwhere(np.ones(SHAPE))
        own = estimator.fold_in([[1, 2, 3], [4, 5, 1]], [2.0, 0.5])
        estimator.used_ = [estimator.predict(inside), own.predict(inside)]
        return estimator

    replaying.replay(make, use, *pair)
