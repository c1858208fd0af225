"""Everything that a fit shows follows from what was released: topics from counts."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import replaying
import scipy.sparse as sp
from replaying import Seen

from sktensor_dp import NotEnoughDataWarning, PrivateSpectralLDA, spectral_lda
from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.spectral_topics import plan as topic_plan

N, D = 300, 20
# Modules of the queries that take part in the replays of samples.


def build(options: dict[str, Any]) -> Callable[[], PrivateSpectralLDA]:
    # A generator's own state is among the parameters, and is compared too.
    return lambda: PrivateSpectralLDA(
        **{"n_components": 3, "random_state": np.random.RandomState(0), **options}
    )


def watch(fit: Callable[..., Any], options: dict[str, Any], X: Any) -> Seen:
    return replaying.watch(build(options), fit, X)


def replay(fit: Callable[..., Any], options: dict[str, Any], X: Any, other: Any) -> Seen:
    return replaying.replay(build(options), fit, X, other)


# Data of one public shape


def documents(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    topics = rng.dirichlet(np.full(d, 0.1), 3)
    shares = rng.dirichlet(np.full(3, 0.3), n) @ topics
    lengths = rng.integers(0, 60, n)
    return np.array([rng.multinomial(m, p) for m, p in zip(lengths, shares, strict=True)], float)


CORPORA: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "topics": documents,
    "empty": lambda rng, n, d: np.zeros((n, d)),
    "one word": lambda rng, n, d: 9.0 * np.eye(d)[np.full(n, d - 1)],
    "short": lambda rng, n, d: np.eye(d)[rng.integers(d, size=n)],
    "all words": lambda rng, n, d: np.ones((n, d)),
    "enormous": lambda rng, n, d: np.floor(10 ** rng.uniform(0, 300, (n, d))),
    "even": lambda rng, n, d: np.floor(rng.uniform(0, 3, (n, d))),
}


def fit_whole(estimator: PrivateSpectralLDA, X: np.ndarray) -> PrivateSpectralLDA:
    return estimator.fit(X)


def fit_sparse(estimator: PrivateSpectralLDA, X: np.ndarray) -> PrivateSpectralLDA:
    return estimator.fit(sp.csr_array(X))


def fit_in_chunks(estimator: PrivateSpectralLDA, X: np.ndarray) -> PrivateSpectralLDA:
    chunks = [X[:100], sp.csr_array(X[100:250]), X[250:]]
    return estimator.fit_chunks(chunks, n_samples=len(X), n_features=X.shape[1])


def fit_in_batches(estimator: PrivateSpectralLDA, X: np.ndarray) -> PrivateSpectralLDA:
    for start in (0, 150, 200, 250):
        estimator.partial_fit(X[start : start + (150 if start == 0 else 50)])
    return estimator


OPTIONS: dict[str, dict[str, Any]] = {
    "whitened": {"epsilon": 20.0, "n_refinements": 0},
    "isotropic": {"perturbation": "moment_tensor"},
    "histogram": {"perturbation": "moment_tensor", "noise_geometry": "histogram"},
    "pure": {"delta": 0, "epsilon": 20.0},
    "pure, moments only": {"delta": 0, "n_refinements": 0},
    "pure, in word space": {"delta": 0, "perturbation": "moment_tensor"},
    "one topic": {"doc_topic_prior": 0, "epsilon": 5.0, "n_refinements": 2},
    "prior": {"doc_topic_prior": 0.3, "n_refinements": 2},
    "limits": {"clip_norm": {"counts": 5.0, "pairs": 4.0}, "epsilon": 3.0},
    "hopeless": {"epsilon": 0.01},
    "too many topics": {"n_components": 50, "epsilon": 3.0, "n_refinements": 1},
    "integer seed": {"n_refinements": 0, "random_state": 3},
}


WAYS = (fit_whole, fit_sparse, fit_in_chunks, fit_in_batches)


def unrelated(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    kind = list(CORPORA)[rng.integers(1, len(CORPORA))]
    return documents(rng, N, D), CORPORA[kind](rng, N, D)


# Every way to fit. Options choose the way through the code, and a way that keeps what was not
# released keeps it of any data: at seed 0 the other corpus is fitted first in half of the ways.
# Bits are compared, so that a sound fit passes whatever the noise is.


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("fit", WAYS)
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.dealt(2, halved=True)
def test_a_fit_follows_from_its_releases(name, fit, turned, seed):
    pair = unrelated(np.random.default_rng(seed))
    replay(fit, OPTIONS[name], *(pair[::-1] if turned else pair))


def test_no_corpus_tells_more_than_its_releases(seed):
    """Other data at every seed, fitted in one way: a hundred seeds go through all options."""
    rng = np.random.default_rng(seed)
    pair = unrelated(rng)
    X, other = pair if rng.random() < 0.5 else pair[::-1]
    replay(WAYS[rng.integers(len(WAYS))], OPTIONS[list(OPTIONS)[seed % len(OPTIONS)]], X, other)


def test_every_release_takes_part():
    X = documents(np.random.default_rng(0), N, D)
    seen = [watch(fit_whole, options, X) for options in OPTIONS.values()]
    names = {entry[0] for one in seen for entry in one.releases}
    assert {name for name, entry in CATALOGUE.items() if entry.family == "counts"} <= names


@pytest.mark.parametrize("kind", CORPORA)
def test_no_corpus_stands_out(kind):
    """Warnings and errors included: whatever the documents are, only released values tell."""
    rng = np.random.default_rng(0)
    X, other = CORPORA[kind](rng, N, D), documents(rng, N, D)
    for options in ({"epsilon": 4.0}, {"perturbation": "moment_tensor"}, {"delta": 0}):
        replay(fit_whole, options, X, other)


CHOOSING = [
    {"epsilon": 3.0},
    {"epsilon": 100.0, "n_refinements": 1},
    {"epsilon": 3.0, "n_refinements": 0},
    {"delta": 0, "epsilon": 2.0},
    {"perturbation": "moment_tensor", "epsilon": 3.0},
]


def replay_a_choice_of_words(options: dict[str, Any], fit: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    seen = replay(fit, options, documents(rng, N, 300), CORPORA["even"](rng, N, 300))
    shape = next(entry[2] for entry in seen.releases if "symmetric" in entry[0])
    assert 30 <= shape[0] < 300


@pytest.mark.parametrize("fit", [fit_whole, fit_in_batches])
@pytest.mark.parametrize("options", CHOOSING, ids=str)
def test_words_are_chosen_by_released_frequencies(options, fit):
    replay_a_choice_of_words(options, fit, 0)


BY_ROWS = [
    {"epsilon": 100.0, "n_refinements": 0},
    {"delta": 0, "epsilon": 30.0, "n_refinements": 0},
    {"perturbation": "moment_tensor", "epsilon": 100.0},
]


@pytest.mark.parametrize("options", BY_ROWS, ids=str)
def test_pairs_that_are_released_by_rows_tell_no_more(options, monkeypatch):
    monkeypatch.setattr(topic_plan, "fits_memory", lambda numbers: False)
    assert build(options)()._plan(N, 300).pairs_by_rows
    replay_a_choice_of_words(options, fit_whole, 0)


def test_words_of_any_corpus_are_chosen_by_released_frequencies(seed):
    fit = (fit_whole, fit_in_batches)[seed // len(CHOOSING) % 2]
    replay_a_choice_of_words(CHOOSING[seed % len(CHOOSING)], fit, seed)


def test_warnings_are_triggered_by_released_values(seed):
    """One in the recorded fit and none, on its own data, in the other."""
    rng = np.random.default_rng(seed)
    X, other = CORPORA["all words"](rng, 5000, D), documents(rng, 5000, D)
    options = {"epsilon": 20.0}
    warned = replay(fit_whole, options, X, other).warnings
    silent = replay(fit_whole, options, other, X).warnings
    assert [w[0] for w in warned] == [NotEnoughDataWarning]
    assert silent == []


# The test of the test


def keep_raw_frequencies(state: dict[str, Any], curator: Any) -> None:
    raw = sum(np.asarray(chunk.X.sum(axis=0)).ravel() for chunk in curator._chunks)
    state["components_"] = state["components_"] + 1e-12 * raw


def keep_the_curator(state: dict[str, Any], curator: Any) -> None:
    state["source_"] = curator._chunks


def warn_of_a_raw_count(_: Any, curator: Any) -> None:
    longest = max(chunk.lengths.max() for chunk in curator._chunks)
    warnings.warn(f"the longest document has {longest:g} tokens", UserWarning, stacklevel=1)


def fail_on_raw_data(_: Any, curator: Any) -> None:
    for chunk in curator._chunks:
        if (chunk.X.sum(axis=0) == 0).any():
            raise ValueError("a word never occurs")


def remember_the_number_of_words(state: dict[str, Any], curator: Any) -> None:
    state["fitted_on_"] = {"nnz": [chunk.X.nnz for chunk in curator._chunks]}


def refine_while_raw_data_says_so(_: Any, curator: Any) -> None:
    if next(iter(curator._chunks)).lengths[0] > 10:
        curator._left["expected_counts"] = 1
        clip = curator.given_count_clip(9.0)
        curator.expected_counts(np.full((2, D), 1 / D), np.full(2, 0.5), True, clip)


@pytest.mark.parametrize(
    "leak",
    [
        keep_raw_frequencies,
        keep_the_curator,
        warn_of_a_raw_count,
        fail_on_raw_data,
        remember_the_number_of_words,
        refine_while_raw_data_says_so,
    ],
)
def test_a_leak_is_seen(leak, monkeypatch):
    rng = np.random.default_rng(0)
    X, other = documents(rng, N, D), CORPORA["one word"](rng, N, D)
    X[0] = 2
    paid = spectral_lda.PrivateSpectralLDA._paid

    def leaking(self: PrivateSpectralLDA, planned: Any) -> Any:
        def recipe(curator: Any) -> Any:
            fitted = planned.recipe(curator)
            leak(fitted.attributes, curator)
            return fitted

        return paid(self, replace(planned, recipe=recipe))

    monkeypatch.setattr(spectral_lda.PrivateSpectralLDA, "_paid", leaking)
    # It is a leak of the fit, not a mistake of the test.
    assert watch(fit_whole, {}, X).error is None
    with pytest.raises((AssertionError, StopIteration)):
        replay(fit_whole, {}, X, other)


def test_an_untold_fit_differs():
    """Replay is compared against values that do matter."""
    X = documents(np.random.default_rng(0), N, D)
    assert watch(fit_whole, {}, X).fitted != watch(fit_whole, {}, X).fitted
