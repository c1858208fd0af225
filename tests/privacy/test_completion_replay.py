"""Everything that a fit shows follows from what was released: completed tensors."""

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import replaying
from replaying import Seen

from sktensor_dp import NotEnoughDataWarning, PrivateCPCompletion, PrivateTuckerCompletion
from sktensor_dp.privacy.releases import CATALOGUE

SHAPE, N = (9, 8, 5), 150
MODELS = {"cp": PrivateCPCompletion, "tucker": PrivateTuckerCompletion}
Data = tuple[np.ndarray, np.ndarray]
Rng = np.random.Generator


def build(model: str, options: dict[str, Any]) -> Callable[[], Any]:
    defaults = {"rank": 2, "bounds": (-1.0, 2.0), "epsilon": 5.0}
    # A generator's own state is among the parameters, and is compared too.
    return lambda: MODELS[model](
        **{**defaults, "random_state": np.random.RandomState(0), **options}
    )


def watch(model: str, fit: Callable[..., Any], options: dict[str, Any], data: Data) -> Seen:
    return replaying.watch(build(model, options), fit, data)


def replay(
    model: str, fit: Callable[..., Any], options: dict[str, Any], data: Data, other: Data
) -> Seen:
    return replaying.replay(build(model, options), fit, data, other)


# Values, at coordinates that are public for entries and private for slices


def components(rng: Rng, X: np.ndarray) -> np.ndarray:
    factors = [rng.standard_normal((n, 2)) for n in SHAPE]
    return np.prod([f[rows] for f, rows in zip(factors, X.T, strict=True)], axis=0).sum(axis=1)


VALUES: dict[str, Callable[[Rng, np.ndarray], np.ndarray]] = {
    "components": components,
    "zeros": lambda rng, X: np.zeros(len(X)),
    "at an end": lambda rng, X: np.full(len(X), 2.0),
    "beyond both ends": lambda rng, X: rng.choice([-7.0, 9.0], len(X)),
    "enormous": lambda rng, X: rng.choice([-1, 1], len(X)) * 10 ** rng.uniform(0, 308, len(X)),
    "the largest": lambda rng, X: np.full(len(X), np.finfo(float).max),
    "tiny": lambda rng, X: rng.standard_normal(len(X)) * 10 ** rng.uniform(-320, 0, len(X)),
    "one value": lambda rng, X: np.eye(1, len(X))[0],
}  # fmt: skip


def cells(rng: Rng, n: int) -> np.ndarray:
    return rng.integers(0, SHAPE, (n, 3))


COORDINATES: dict[str, Callable[[Rng], np.ndarray]] = {
    "at random": lambda rng: cells(rng, N),
    "none": lambda rng: cells(rng, 0),
    "one": lambda rng: np.array([[8, 7, 4]]),
    "one unit": lambda rng: np.insert(cells(rng, 40)[:, 1:], 0, 3, axis=1),
    "one row of a mode": lambda rng: np.insert(cells(rng, 40)[:, ::2], 1, 2, axis=1),
    "everywhere": lambda rng: np.argwhere(np.ones(SHAPE)),
    "the same, often": lambda rng: np.tile([[4, 0, 1], [2, 0, 1]], (60, 1)),
}


# Ways to fit


def fit_entries(estimator: Any, data: Data) -> Any:
    return estimator.fit(*data)


def fit_tensor(estimator: Any, data: Data) -> Any:
    T = np.full(SHAPE, np.nan)
    T[tuple(data[0].T)] = data[1]
    return estimator.fit_tensor(T)


def fit_masked(estimator: Any, data: Data) -> Any:
    """What lies behind the mask differs too."""
    observed, T = np.zeros(SHAPE, bool), np.full(SHAPE, data[1].sum() if len(data[1]) < 9 else 0.5)
    observed[tuple(data[0].T)] = True
    T[tuple(data[0].T)] = data[1]
    return estimator.fit_tensor(T, observed)


def fit_twice(estimator: Any, data: Data) -> Any:
    """Nothing of an earlier fit stays, nor of a pickle."""
    X, y = data
    estimator.fit(X, y[::-1])
    return pickle.loads(pickle.dumps(estimator)).fit(X, y)


def recommended(estimator: Any, of: Any) -> list[np.ndarray]:
    """The best and the values of all rows, for some units; and rows that are alike."""
    mode, other = (m for m in range(3) if m != estimator.unit_mode)
    context = {other: 1}
    found = [estimator.predict_rows(of, mode, context=context)]
    found += estimator.recommend(of, 4, exclude=[[1, 2, 3], [4, 5, 1]], mode=mode, context=context)
    try:
        found += estimator.similar_rows(mode, np.arange(SHAPE[mode]), 3)
    except ValueError as error:
        found.append(np.array(str(error)))
    return found


def fit_and_use(estimator: Any, data: Data) -> Any:
    """Predictions are part of what is seen, and using them keeps nothing."""
    estimator.fit(*data)
    everywhere = np.argwhere(np.ones([n + 1 for n in SHAPE]))
    used = [estimator.predict(everywhere), estimator.transform(everywhere), estimator.complete()]
    used += recommended(estimator, range(SHAPE[estimator.unit_mode] + 1))
    # What is folded in follows from releases and from whoever folds in.
    used += recommended(estimator, estimator.fold_in([[1, 2, 3], [4, 5, 1]], [2.0, 0.5]))
    estimator.fold_in(*data)
    estimator.used_ = used
    return estimator


PERTURBATIONS: dict[str, dict[str, Any]] = {
    "input": {"perturbation": "input"},
    # Steps after the first do nothing new, but for the last, which a tolerance ends in "input".
    "input, resolved": {"perturbation": "input", "epsilon": 40.0, "max_iter": 8},
    "row sums": {"perturbation": "sufficient_statistics"},
    "sweeps": {"perturbation": "sufficient_statistics", "max_iter": 2},
    "sweeps, resolved": {"perturbation": "sufficient_statistics", "max_iter": 2, "epsilon": 1e4},
    "gradient": {"perturbation": "gradient", "max_iter": 4},
    "gradient, resolved": {"perturbation": "gradient", "max_iter": 4, "epsilon": 1e4},
    "output": {"perturbation": "output", "max_iter": 8},
    "output, resolved": {"perturbation": "output", "epsilon": 80.0, "max_iter": 8},
    "chosen": {"shape": SHAPE, "epsilon": 1e-3},
}
SLICES: dict[str, dict[str, Any]] = {
    "first": {},
    "last": {"unit_mode": 2},
    "tiny epsilon": {"epsilon": 1e-6},
    "resolved": {"epsilon": 1e4, "unit_mode": 1},
    "components": {"max_iter": 2},
    "components, no noise to speak of": {"max_iter": 2, "epsilon": 1e6, "unit_mode": 1},
}
DELTAS, FITS = (1e-6, 0), (fit_entries, fit_tensor, fit_masked, fit_twice, fit_and_use)
BOTH = pytest.mark.parametrize("delta", DELTAS)
ALL_MODELS = pytest.mark.parametrize("model", MODELS)
WAYS = pytest.mark.parametrize("fit", FITS)


def unrelated_values(rng: Rng) -> tuple[Data, Data]:
    """Values with something to find and some without, at the same cells."""
    X = cells(rng, N)
    kind = rng.choice(list(VALUES)[1:])
    return (X, components(rng, X)), (X, VALUES[kind](rng, X))


def unrelated_slices(rng: Rng) -> tuple[Data, Data]:
    X, Z = cells(rng, N), COORDINATES[rng.choice(list(COORDINATES)[1:])](rng)
    return (X, components(rng, X)), (Z, VALUES[rng.choice(list(VALUES))](rng, Z))


def named(X: np.ndarray) -> np.ndarray:
    """Coordinates by names, some of which are on no list."""
    rows = X.astype(object)
    rows[:, 1] = [f"row {number}" for number in X[:, 1]]
    return rows


@BOTH
@ALL_MODELS
@pytest.mark.parametrize("unit", ["entry", "slice"])
def test_named_rows_follow_from_their_releases(unit, model, delta):
    """Ids of units too, and what is on no list: for slices which ones the fit has met."""
    rng = np.random.default_rng(0)
    (X, y), (Z, x) = unrelated_slices(rng) if unit == "slice" else unrelated_values(rng)
    names = (None, [f"row {number}" for number in range(6)], None)
    options = {"shape": (9, 6, 5), "row_names": names, "privacy_unit": unit, "delta": delta}
    first, second = named(X), named(Z)
    if unit == "slice":
        first[:, 0] = [f"person {number}" for number in X[:, 0]]
    replay(model, fit_entries, options, (first, y), (second, x))
    replay(model, fit_entries, options, (second, x), (first, y))


def tables(rng: Rng, kind: str) -> tuple[Data, Data]:
    """Many rows to few columns."""
    X = np.argwhere(rng.random((700, 3)) < 0.9)
    values = np.outer(rng.standard_normal(700), [1.0, -0.5, 0.1])[tuple(X.T)]
    return (X, values), (X, VALUES[kind](rng, X))


# Every way to fit. Options choose the way through the code, and a way that keeps what was not
# released keeps it of any data: at seed 0 each has one delta, and the others go through all. Bits
# are compared, so that a sound fit passes whatever the noise is.


def in_turn(pair: tuple[Data, Data], fit: Callable[..., Any], seed: int) -> tuple[Data, Data]:
    """Which one is fitted first: with each model, mode and delta both are, by some way."""
    return pair[::-1] if (FITS.index(fit) // 2 + seed) % 2 else pair


@BOTH
@WAYS
@ALL_MODELS
@pytest.mark.parametrize("mode", PERTURBATIONS)
@pytest.mark.dealt(4, halved=True)
def test_a_fit_follows_from_its_releases(mode, model, fit, delta, seed):
    pair = unrelated_values(np.random.default_rng(seed))
    options = {**PERTURBATIONS[mode], "delta": delta}
    replay(model, fit, options, *in_turn(pair, fit, seed))


@BOTH
@WAYS
@ALL_MODELS
@pytest.mark.parametrize("mode", SLICES)
@pytest.mark.dealt(4, halved=True)
def test_slices_follow_from_their_releases(mode, model, fit, delta, seed):
    pair = unrelated_slices(np.random.default_rng(seed))
    options = {"shape": SHAPE, "privacy_unit": "slice", "delta": delta, **SLICES[mode]}
    replay(model, fit, options, *in_turn(pair, fit, seed))


@ALL_MODELS
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("mode", ["input", "sweeps", "gradient", "output", "row sums"])
@pytest.mark.dealt(2, halved=True)
def test_no_values_stand_out(mode, kind, model, seed):
    """Warnings and errors included: whatever the values are, only released ones tell."""
    rng = np.random.default_rng(seed)
    X = cells(rng, N)
    data = X, VALUES[kind](rng, X)
    options = {**PERTURBATIONS[mode], "max_iter": min(PERTURBATIONS[mode].get("max_iter", 8), 4)}
    replay(model, fit_entries, options, data, (X, components(rng, X)))


@pytest.mark.parametrize("where", COORDINATES)
@pytest.mark.parametrize("kind", VALUES)
def test_no_slices_stand_out(where, kind):
    """Not even that there are none."""
    rng = np.random.default_rng(0)
    X, Z = COORDINATES[where](rng), cells(rng, N)
    options = {"shape": SHAPE, "privacy_unit": "slice", "max_iter": 1}
    for delta in DELTAS:
        data, other = (X, VALUES[kind](rng, X)), (Z, components(rng, Z))
        replay("cp", fit_entries, {**options, "delta": delta}, data, other)


@pytest.mark.parametrize("kind", [kind for kind in VALUES if kind != "components"])
def test_tables_with_many_entries_to_a_column(kind):
    """Each column's own noise variance is computed from released values, too."""
    pair = tables(np.random.default_rng(0), kind)
    pair = pair[::-1] if list(VALUES).index(kind) % 2 else pair
    # One of the two is fitted first in the first way, and the other in the second.
    for perturbation, (data, other) in {"input": pair, "output": pair[::-1]}.items():
        options = {"perturbation": perturbation, "epsilon": 20.0, "max_iter": 4}
        replay("cp", fit_entries, options, data, other)


# Other data at every seed, fitted in one of these ways: a hundred seeds go through all modes.


def replay_any(modes: dict[str, dict[str, Any]], pair: tuple[Data, Data], seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    model, fit = rng.choice(list(MODELS)), FITS[rng.integers(len(FITS))]
    data, other = pair if rng.random() < 0.5 else pair[::-1]
    mode = modes[list(modes)[seed % len(modes)]]
    replay(model, fit, {"max_iter": 4, **mode, "delta": rng.choice(DELTAS)}, data, other)


def test_no_values_tell_more_than_their_releases(seed):
    replay_any(PERTURBATIONS, unrelated_values(np.random.default_rng(seed)), seed)


def test_no_slices_tell_more_than_their_releases(seed):
    common = {"shape": SHAPE, "privacy_unit": "slice"}
    modes = {mode: common | options for mode, options in SLICES.items()}
    replay_any(modes, unrelated_slices(np.random.default_rng(seed)), seed)


def test_no_table_tells_more_than_its_releases(seed):
    rng = np.random.default_rng(seed)
    pair = tables(rng, rng.choice(list(VALUES)[1:]))
    data, other = pair if rng.random() < 0.5 else pair[::-1]
    options = {"perturbation": rng.choice(["input", "output"]), "epsilon": 20.0, "max_iter": 4}
    replay("cp", fit_entries, options, data, other)


def test_every_release_takes_part():
    X = cells(np.random.default_rng(0), N)
    data = X, components(np.random.default_rng(0), X)
    seen = [watch("cp", fit_entries, options, data) for options in PERTURBATIONS.values()]
    sliced = {"shape": SHAPE, "privacy_unit": "slice", "max_iter": 1}
    seen.append(watch("cp", fit_entries, sliced, data))
    names = {entry[0] for one in seen for entry in one.releases}
    # Products of pairs are asked of long tables, directions of wide ones; `test_pairs_replay`
    # sees that they are there.
    asked = {n for n, e in CATALOGUE.items() if e.family in {"entries", "slices"}}
    assert asked - {"entry_pairs", "entry_directions"} == names & set(CATALOGUE)


def test_warnings_tell_public_numbers(seed):
    rng = np.random.default_rng(seed)
    data, other = unrelated_values(rng)
    options = {"epsilon": 0.01, "shape": SHAPE}
    for seen in (
        replay("cp", fit_entries, options, data, other),
        replay("cp", fit_entries, options, other, data),
    ):
        assert [w[0] for w in seen.warnings] == [NotEnoughDataWarning]


# The test of the test


def keep_a_raw_mean(estimator: Any, chunks: Any) -> None:
    estimator.mean_ += 1e-12 * chunks.values.mean()


def keep_the_values(estimator: Any, chunks: Any) -> None:
    estimator._values_seen = chunks.values


def keep_the_source(estimator: Any, chunks: Any) -> None:
    estimator._source = chunks


def warn_of_the_largest(estimator: Any, chunks: Any) -> None:
    warnings.warn(f"the largest is {chunks.values.max():g}", UserWarning, stacklevel=1)


def fail_on_raw_data(estimator: Any, chunks: Any) -> None:
    if (chunks.values == -0.5).any():
        raise ValueError("a value is zero")


def count_entries(estimator: Any, chunks: Any) -> None:
    estimator.n_observed_ = len(chunks.values)


def keep_the_units(estimator: Any, chunks: Any) -> None:
    estimator.privacy_report_.notes += (str(len(set(chunks.units))),)


def keep_own_levels(estimator: Any, chunks: Any) -> None:
    sums = np.bincount(chunks.units, chunks.values, minlength=chunks.n_units)
    estimator.biases_[chunks.unit_mode] = sums


LEAKS = [keep_a_raw_mean, keep_the_values, keep_the_source, warn_of_the_largest, fail_on_raw_data]


def check_leak(leak: Any, options: dict[str, Any], data: Data, other: Data, patch: Any) -> None:
    held = []
    opened, publish = PrivateCPCompletion._open_curator, PrivateCPCompletion._publish

    def opening(self: Any, kind: Any, chunks: Any, plan: Any, **more: Any) -> Any:
        held.append(chunks)
        return opened(self, kind, chunks, plan, **more)

    def leaking(self: Any, attributes: Any) -> None:
        publish(self, attributes)
        leak(self, held[-1])

    patch.setattr(PrivateCPCompletion, "_open_curator", opening)
    patch.setattr(PrivateCPCompletion, "_publish", leaking)
    with pytest.raises(AssertionError):
        replay("cp", fit_entries, options, data, other)


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("mode", ["input", "sweeps", "gradient", "output"])
def test_a_leak_of_values_is_seen(leak, mode, monkeypatch):
    rng = np.random.default_rng(0)
    X = cells(rng, N)
    data, other = (X, components(rng, X)), (X, np.zeros(N))
    check_leak(leak, PERTURBATIONS[mode], data, other, monkeypatch)


@pytest.mark.parametrize("leak", [*LEAKS, count_entries, keep_the_units, keep_own_levels])
def test_a_leak_of_slices_is_seen(leak, monkeypatch):
    rng = np.random.default_rng(0)
    X, Z = cells(rng, N), cells(rng, 20)
    data, other = (X, components(rng, X)), (Z, np.zeros(20))
    check_leak(leak, {"shape": SHAPE, "privacy_unit": "slice"}, data, other, monkeypatch)


def test_an_untold_fit_differs():
    """Replay is compared against values that do matter."""
    X = cells(np.random.default_rng(0), N)
    data = X, components(np.random.default_rng(0), X)
    for options in (*PERTURBATIONS.values(), {"shape": SHAPE, "privacy_unit": "slice"}):
        first, second = (watch("cp", fit_entries, options, data) for _ in range(2))
        assert first.fitted != second.fitted
