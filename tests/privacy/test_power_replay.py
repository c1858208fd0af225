"""Everything that a fit shows follows from what was released: components from samples."""

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import replaying
import scipy.sparse as sp
from replaying import Seen, state

from sktensor_dp import NotEnoughDataWarning, PrivateTensorPowerMethod
from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.tensor import symmetric_outer_sum, symmetrize

N, D = 240, 7
# Batches of one stream; the last ones come after all components are found.
BATCHES = np.array_split(np.arange(N), 16)


def build(options: dict[str, Any]) -> Callable[[], PrivateTensorPowerMethod]:
    defaults = {"n_components": 3, "data_norm": 2.0, "n_restarts": 4}
    # A generator's own state is among the parameters, and is compared too.
    return lambda: PrivateTensorPowerMethod(
        **{**defaults, "random_state": np.random.RandomState(0), **options}
    )


def watch(fit: Callable[..., Any], options: dict[str, Any], X: Any) -> Seen:
    return replaying.watch(build(options), fit, X)


def replay(fit: Callable[..., Any], options: dict[str, Any], X: Any, other: Any) -> Seen:
    return replaying.replay(build(options), fit, X, other)


# Data of one public shape


def components(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    means = np.linalg.qr(rng.standard_normal((d, 3)))[0].T
    return 1.5 * means[rng.integers(3, size=n)] + 0.2 * rng.standard_normal((n, d))


DATA: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "components": components,
    "zeros": lambda rng, n, d: np.zeros((n, d)),
    "one row": lambda rng, n, d: np.tile(rng.standard_normal(d), (n, 1)),
    "ones": lambda rng, n, d: np.ones((n, d)),
    "enormous": lambda rng, n, d: rng.choice([-1, 1], (n, d)) * 10 ** rng.uniform(0, 308, (n, d)),
    "the largest": lambda rng, n, d: np.full((n, d), np.finfo(float).max),
    "tiny": lambda rng, n, d: rng.standard_normal((n, d)) * 10 ** rng.uniform(-320, 0, (n, d)),
    "one sample": lambda rng, n, d: np.eye(n, d) * 9,
    "integers": lambda rng, n, d: rng.integers(-3, 4, (n, d)).astype(float),
}  # fmt: skip

COUNTS: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "documents": lambda rng, n, d: rng.multinomial(
        9, rng.dirichlet(np.full(d, 0.2), 3)[rng.integers(3, size=n)]
    ).astype(float),
    "zeros": DATA["zeros"],
    "enormous": lambda rng, n, d: np.floor(10 ** rng.uniform(0, 300, (n, d))),
    "one token": lambda rng, n, d: np.eye(d)[rng.integers(d, size=n)],
}

TENSORS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "components": lambda rng, d: symmetric_outer_sum(np.full(3, 30.0), components(rng, 3, d)),
    "zeros": lambda rng, d: np.zeros((d, d, d)),
    "noise": lambda rng, d: symmetrize(rng.standard_normal((d, d, d))),
    "enormous": lambda rng, d: 1e308 * symmetrize(rng.choice([-1.0, 1.0], (d, d, d))),
    "one entry": lambda rng, d: np.where(np.arange(d**3) == 0, -1e9, 0.0).reshape(d, d, d),
}  # fmt: skip


# Ways to fit


def fit_whole(estimator: Any, X: np.ndarray) -> Any:
    return estimator.fit(X)


def fit_sparse(estimator: Any, X: np.ndarray) -> Any:
    return estimator.fit(sp.csr_array(X))


def fit_in_chunks(estimator: Any, X: np.ndarray) -> Any:
    chunks = [X[:100], sp.csr_array(X[100:150]), X[150:]]
    return estimator.fit_chunks(chunks, n_samples=len(X), n_features=X.shape[1])


def fit_a_generator(estimator: Any, X: np.ndarray) -> Any:
    return estimator.fit_chunks(X[rows] for rows in BATCHES)


def fit_in_batches(estimator: Any, X: np.ndarray) -> Any:
    """Pickled after every batch, as where it is resumed elsewhere; dense and sparse."""
    for place, rows in enumerate(BATCHES):
        estimator.partial_fit(sp.csr_array(X[rows]) if place % 2 else X[rows])
        estimator = pickle.loads(pickle.dumps(estimator))
    return estimator


def fit_then_stream(estimator: Any, X: np.ndarray) -> Any:
    return estimator.fit(X[:200]).partial_fit(X[200:])


def fit_twice(estimator: Any, X: np.ndarray) -> Any:
    """Nothing of an earlier fit stays."""
    return estimator.fit(X[:120]).fit(X[120:])


def fit_tensor(estimator: Any, T: np.ndarray) -> Any:
    return estimator.fit_tensor(T)


STREAM = {"perturbation": "stream", "max_iter": 3}
MODES: dict[str, dict[str, Any]] = {
    "whitened": {},
    "whitened, orthonormal": {"whiten": False},
    "whitened, resolved": {"epsilon": 1e4},
    "in all dimensions": {"perturbation": "moment_tensor"},
    "in all dimensions, orthonormal": {"perturbation": "moment_tensor", "whiten": False},
    "every step": {"perturbation": "iteration", "max_iter": 3},
    "stream": STREAM,
    "stream, all found": {**STREAM, "epsilon": 1e4, "n_components": 2},
    "mixture": {"moment": "gaussian_mixture"},
    "mixture, resolved": {"moment": "gaussian_mixture", "epsilon": 1e4},
    "mixture, in all dimensions": {"moment": "gaussian_mixture", "perturbation": "moment_tensor"},
    "too many components": {"n_components": 20, "epsilon": 1e3},
    "one component": {"n_components": 1, "random_state": 5},
}
DELTAS = (1e-6, 0)
BOTH = pytest.mark.parametrize("delta", DELTAS)
WAYS = (fit_whole, fit_sparse, fit_in_chunks, fit_twice)
STREAMS = (fit_a_generator, fit_in_batches, fit_then_stream)


def unrelated(kinds: dict[str, Any], seed: int, *shape: int) -> tuple[Any, Any]:
    """Data with something to find, and some without."""
    rng = np.random.default_rng(seed)
    first, *others = kinds
    return kinds[first](rng, *shape), kinds[others[rng.integers(len(others))]](rng, *shape)


# Every way to fit, on fixed data. Options choose the way through the code, and a way that keeps
# what was not released keeps it of any data: a seed would add nothing. Bits are compared, so that
# a sound fit passes whatever the noise is.


@BOTH
@pytest.mark.parametrize("fit", WAYS)
@pytest.mark.parametrize("mode", MODES)
def test_a_fit_follows_from_its_releases(mode, fit, delta):
    options = {**MODES[mode], "delta": delta}
    X, other = unrelated(DATA, 0, N, D)
    replay(fit, options, X, other)
    replay(fit, options, other, X)


@BOTH
@pytest.mark.parametrize("fit", STREAMS)
@pytest.mark.parametrize("mode", ["stream", "stream, all found"])
def test_a_stream_follows_from_its_releases(mode, fit, delta):
    X, other = unrelated(DATA, 0, N, D)
    options = {**MODES[mode], "delta": delta}
    replay(fit, options, X, other)
    seen = replay(fit, options, other, X)
    steps = [entry for entry in seen.releases if entry[0] == "power_iterations"]
    assert len(steps) >= 8


@BOTH
@pytest.mark.parametrize("perturbation", ["whitened_tensor", "moment_tensor"])
@pytest.mark.parametrize("fit", [fit_whole, fit_sparse, fit_in_chunks])
def test_documents_of_one_topic(fit, perturbation, delta):
    X, other = unrelated(COUNTS, 0, N, D)
    options = {"moment": "single_topic", "perturbation": perturbation, "delta": delta}
    for epsilon in (1.0, 100.0):
        replay(fit, {**options, "epsilon": epsilon}, X, other)
        replay(fit, {**options, "epsilon": epsilon}, other, X)


@BOTH
@pytest.mark.parametrize("epsilon", [1.0, 1e4])
def test_a_tensor_whose_entries_are_private(epsilon, delta):
    T, other = unrelated(TENSORS, 0, D)
    options = {"delta": delta, "epsilon": epsilon, "max_iter": 4}
    replay(fit_tensor, options, T, other)
    replay(fit_tensor, options, other, T)


@pytest.mark.parametrize("kind", DATA)
def test_no_data_stands_out(kind):
    """Warnings and errors included: whatever the samples are, only released values tell."""
    rng = np.random.default_rng(0)
    X, other = DATA[kind](rng, N, D), components(rng, N, D)
    for mode in ("whitened", "in all dimensions", "every step", "stream", "mixture"):
        replay(fit_whole, MODES[mode], X, other)


@pytest.mark.parametrize("kind", TENSORS)
def test_no_tensor_stands_out(kind):
    rng = np.random.default_rng(0)
    replay(fit_tensor, {"max_iter": 2}, TENSORS[kind](rng, D), TENSORS["noise"](rng, D))


# Other data at every seed, fitted in one of these ways: a hundred seeds go through all modes.


def replay_any(fit: Callable[..., Any], options: dict[str, Any], pair: Any, rng: Any) -> None:
    X, other = pair if rng.random() < 0.5 else pair[::-1]
    replay(fit, {**options, "delta": rng.choice(DELTAS)}, X, other)


def test_no_samples_tell_more_than_their_releases(seed):
    rng, mode = np.random.default_rng([seed, 1]), list(MODES)[seed % len(MODES)]
    fits = WAYS + STREAMS if "stream" in mode else WAYS
    fit = fits[rng.integers(len(fits))]
    replay_any(fit, MODES[mode], unrelated(DATA, seed, N, D), rng)


def test_no_documents_tell_more_than_their_releases(seed):
    rng = np.random.default_rng([seed, 1])
    options = {
        "moment": "single_topic",
        "perturbation": ["whitened_tensor", "moment_tensor"][seed % 2],
        "epsilon": rng.choice([1.0, 100.0]),
    }
    fit = WAYS[rng.integers(3)]
    replay_any(fit, options, unrelated(COUNTS, seed, N, D), rng)


def test_no_tensor_tells_more_than_its_release(seed):
    rng = np.random.default_rng([seed, 1])
    options = {"epsilon": rng.choice([1.0, 1e4]), "max_iter": 4}
    replay_any(fit_tensor, options, unrelated(TENSORS, seed, D), rng)


def test_every_release_takes_part():
    rng = np.random.default_rng(0)
    X, T = components(rng, N, D), TENSORS["noise"](rng, D)
    seen = [watch(fit_whole, options, X) for options in MODES.values()]
    seen.append(watch(fit_tensor, {}, T))
    names = {entry[0] for one in seen for entry in one.releases}
    asked = {n for n, e in CATALOGUE.items() if e.family in {"samples", "tensors"}}
    assert asked <= names


def test_warnings_are_triggered_by_released_values(seed):
    """One in the recorded fit and none, on its own data, in the other."""
    rng = np.random.default_rng(seed)
    X, other = np.zeros((5000, D)), components(rng, 5000, D)
    for options in ({"epsilon": 20.0}, {"epsilon": 500.0, **STREAM}):
        warned = replay(fit_whole, options, X, other).warnings
        silent = replay(fit_whole, options, other, X).warnings
        assert [w[0] for w in warned] == [NotEnoughDataWarning]
        assert silent == []


# The test of the test


def keep_a_raw_mean(estimator: Any, chunks: Any) -> None:
    raw = sum(chunk.X.sum(axis=0) for chunk in chunks)
    estimator.components_ = estimator.components_ + 1e-12 * raw


def keep_the_batch(estimator: Any, chunks: Any) -> None:
    estimator._last_batch = next(iter(chunks)).X


def keep_the_source(estimator: Any, chunks: Any) -> None:
    estimator._source = chunks


def warn_of_the_longest_row(estimator: Any, chunks: Any) -> None:
    longest = max(chunk.square_norms.max() for chunk in chunks)
    warnings.warn(f"the longest row has norm {longest**0.5:g}", UserWarning, stacklevel=1)


def fail_on_raw_data(estimator: Any, chunks: Any) -> None:
    if any((chunk.X == 0).any() for chunk in chunks):
        raise ValueError("an entry is zero")


def count_long_rows(estimator: Any, chunks: Any) -> None:
    estimator._n_long = sum(int((chunk.square_norms > 1).sum()) for chunk in chunks)


@pytest.mark.parametrize(
    "leak",
    [
        keep_a_raw_mean,
        keep_the_batch,
        keep_the_source,
        warn_of_the_longest_row,
        fail_on_raw_data,
        count_long_rows,
    ],
)
@pytest.mark.parametrize("mode", ["whitened", "every step", "stream"])
def test_a_leak_is_seen(leak, mode, monkeypatch):
    rng = np.random.default_rng(0)
    X, other = components(rng, N, D), DATA["one sample"](rng, N, D)
    held = []
    opened, publish = PrivateTensorPowerMethod._open_curator, PrivateTensorPowerMethod._publish

    def opening(self: Any, kind: Any, chunks: Any, plan: Any, **options: Any) -> Any:
        held.append(chunks)
        return opened(self, kind, chunks, plan, **options)

    def leaking(self: Any, attributes: Any) -> None:
        publish(self, attributes)
        leak(self, held[-1])

    monkeypatch.setattr(PrivateTensorPowerMethod, "_open_curator", opening)
    monkeypatch.setattr(PrivateTensorPowerMethod, "_publish", leaking)
    with pytest.raises(AssertionError):
        replay(fit_whole, MODES[mode], X, other)


def test_a_generator_tells_its_state_apart():
    """A stream carries one on: two that would draw other numbers are not the same."""
    one, other = np.random.default_rng(0), np.random.default_rng(0)
    assert state(one) == state(other)
    one.standard_normal()
    assert state(one) != state(other)


def test_an_untold_fit_differs():
    """Replay is compared against values that do matter."""
    X = components(np.random.default_rng(0), N, D)
    for options in (MODES["whitened"], MODES["stream"]):
        assert watch(fit_whole, options, X).fitted != watch(fit_whole, options, X).fitted
