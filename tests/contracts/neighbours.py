"""Neighbouring data sets for replay.

Their true answers are at most as far apart as noise was scaled for, whatever was answered before.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from contracts import ways_of_completions as completions
from contracts import ways_of_samples as samples
from contracts.replay_rows import Pair, Rng, Row, product
from small_groups import COMPONENTS, TOPICS, fit_in_chunks, fit_whole, model

from sktensor_dp import (
    PrivateCountVectorizer,
    PrivateOneHotEncoder,
    PrivateSearchCV,
    PrivateSpectralLDA,
)
from sktensor_dp.privacy.parts import keyed_coins

# One row, or one value, is another


def one_row(pair: Callable[[Rng], Pair], rng: Rng) -> Pair:
    X, other = pair(rng)
    neighbour, at = X.copy(), rng.integers(len(X))
    neighbour[at] = other[rng.integers(len(other))]
    return X, neighbour


def one_value(rng: Rng) -> Pair:
    (X, y), (_, other) = completions.values(rng)
    neighbour, at = y.copy(), rng.integers(len(y))
    neighbour[at] = rng.choice([-7.0, 9.0, other[at]])
    return (X, y), (X, neighbour)


def one_unit(mode: int, rng: Rng) -> Pair:
    """All entries of a unit, which may have more or none."""
    X = completions.cells(rng, completions.N)
    y, at = completions.components(rng, X), int(rng.integers(completions.SHAPE[mode]))
    own = np.insert(np.delete(completions.cells(rng, rng.choice([0, 30])), mode, 1), mode, at, 1)
    stays = X[:, mode] != at
    values = np.concatenate([y[stays], rng.choice([-7.0, 9.0], len(own))])
    return (X, y), (np.concatenate([X[stays], own]), values)


def _neighbours(row: Row, pair: Callable[[Rng], Pair]) -> Row:
    return replace(row, name=f"{row.name}, one unit", pair=pair, relation="neighbours")


def _of_one_row(row: Row) -> Row:
    return _neighbours(row, partial(one_row, row.pair))


OF_ROWS = [
    *(_of_one_row(row) for row in samples.UNRELATED
      if row.name.endswith((", whole", ", of a generator", ", in batches"))
      and "tensor" not in row.name.split(",")[1]),
    *(_neighbours(row, one_value) for row in completions.UNRELATED
      if row.pair is completions.values and row.name.endswith((", entries", ", masked"))),
    *(_neighbours(row, partial(one_unit, mode)) for row in completions.UNRELATED
      if row.pair is completions.slices and row.name.endswith(", entries")
      for mode in [row.build(0.0).unit_mode]),
]  # fmt: skip

# Groups: persons with several rows


Persons = tuple[np.ndarray, np.ndarray]  # rows and the label of each
GONE, NEW = "p0000", "zz"


def coins_of_the_one_who_left(key: bytes, labels: np.ndarray) -> np.ndarray:
    """Coins of labels, of which those of a new person are the former one's: both are as likely."""
    return keyed_coins(key, np.where(labels == NEW, GONE, labels))


COUPLED = {"privacy.parts.keyed_coins": coins_of_the_one_who_left}


def persons(rng: Rng, counts: bool, n: int = 60) -> Persons:
    labels = np.repeat([f"p{place:04d}" for place in range(n)], rng.integers(1, 4, n))
    X = samples.few_columns(rng, counts)
    return X[rng.permutation(len(X))[: len(labels)]], labels


def relabelled(rng: Rng, counts: bool) -> tuple[Persons, Persons]:
    """A person leaves, and another one comes under a label at the other end."""
    X, labels = persons(rng, counts)
    if not counts:  # persons who add as much as they may, so that others who move are noticed
        labels = np.array([f"p{place:04d}" for place in range(300)])
        X = np.outer(rng.choice([-2.0, 2.0], 300), [1.0, 0.0])
    gone = labels == GONE
    turned = np.where(gone[:, None], X[::-1] if counts else -X, X)
    # In another order of persons: among rows of one, coins choose by their order.
    _, places = np.unique(labels, return_inverse=True)
    order = np.argsort(rng.permutation(len(X))[places], kind="stable")
    renamed = np.where(gone, NEW, labels)
    return (X, labels), ((X, turned)[rng.integers(2)][order], renamed[order])


def resized(rng: Rng, counts: bool) -> tuple[Persons, Persons]:
    """A person has two hundred rows in the place of a few."""
    X, labels = persons(rng, counts)
    rows = np.concatenate([np.arange(len(X)), rng.integers(len(X), size=200)])
    place = rng.choice([GONE, "p0030"])
    return (X, labels), (X[rows], np.concatenate([labels, np.full(200, place)]))


def other_persons(rng: Rng, counts: bool) -> tuple[Persons, Persons]:
    """As many others, with other labels and numbers of rows in another order."""
    (X, labels), (other, _) = persons(rng, counts), persons(rng, counts)
    names = np.array([f"q{place}" for place in range(60)])
    owners = np.concatenate([names, rng.choice(names, 70)])
    return (X, labels), (other[rng.integers(len(other), size=130)], rng.permutation(owners))


def by_person_sparse(estimator: Any, data: Persons) -> Any:
    return estimator.fit(sp.csr_array(data[0]), groups=data[1].tolist())


def by_person_in_batches(estimator: Any, data: Persons) -> Any:
    """Who is in which batch is public; how many rows they have there is not."""
    X, labels = data
    first = np.array([one[1:] in ("0000", "z") or one[1:] < "0030" for one in labels])
    for part in (first, ~first):
        estimator.partial_fit(X[part], groups=labels[part])
    return estimator


CHANGES = {"a label": relabelled, "a size": resized, "others": other_persons}
NOISY = ("whitened", "one topic", "moments", "limits", "iteration", "stream", "mixture")
OF_TOPICS, OF_COMPONENTS = (
    {name: options for name, options in of.items() if name in NOISY} for of in (TOPICS, COMPONENTS)
)
OF_COMPONENTS["mixture, chosen"] = {"moment": "gaussian_mixture", "data_norm": "auto"}
SEARCHED: dict[str, dict[str, Any]] = {
    "held out": {}, "folds": {"cv": 2}, "three folds": {"cv": 3},
}  # fmt: skip


def topics_model(options: dict[str, Any], delta: float) -> Any:
    return model("topics", **{"delta": delta, **options})


def components_model(options: dict[str, Any], delta: float) -> Any:
    return model("components", **{"delta": delta, **options})


SMALL = {"n_trials": 1, "random_state": 0, "epsilon": 4.0}


def _search(options: dict[str, Any], delta: float) -> Any:
    given = {**SMALL, "delta": delta, **options}
    relation = given.pop("neighbours", "replace_one")
    searched = PrivateSpectralLDA(2, n_refinements=1, neighbours=relation)
    return PrivateSearchCV(searched, {"n_components": [1, 2]}, **given)


def _search_of_steps(options: dict[str, Any], delta: float) -> Any:
    searched = components_model({"perturbation": "iteration", "max_iter": 1}, delta)
    given = {**SMALL, "delta": delta, "score_bounds": (-5.0, 0.0), **options}
    return PrivateSearchCV(searched, {"n_restarts": [2, 3]}, **given)


def stream_model(options: dict[str, Any], delta: float) -> Any:
    return components_model({"perturbation": "stream", "max_iter": 1, **options}, delta)


def _of_persons(change: str, kind: str, build: Any, options: Any, fits: Any) -> list[Row]:
    counts = not kind.startswith("components")

    def make(name: str, given: Any, fit: Any, place: int) -> Row:
        return Row(
            f"{kind} of persons, {change}, {name}", partial(build, given), fit,
            lambda rng: CHANGES[change](rng, counts), place=place,
            relation="unrelated" if change == "others" else "neighbours",
            forced=COUPLED if change == "a label" else {},
        )  # fmt: skip

    return product(options, fits, make)


WHOLE = {"whole": fit_whole, "sparse": by_person_sparse}
ONCE, CHUNKS = {"whole": fit_whole}, {"in chunks": fit_in_chunks}
BATCHES = {"in batches": by_person_in_batches}
OF_PERSONS = [
    row
    for change in CHANGES
    for row in (
        *_of_persons(change, "topics", topics_model, OF_TOPICS, WHOLE),
        *_of_persons(change, "components", components_model, OF_COMPONENTS, WHOLE),
        *_of_persons(change, "search", _search, SEARCHED, ONCE),
        *_of_persons(change, "components, search", _search_of_steps, SEARCHED, ONCE),
    )
]
OF_PERSONS += [
    *_of_persons("a size", "topics", topics_model, {"": {}}, {**CHUNKS, **BATCHES}),
    *_of_persons("others", "topics", topics_model, {"": {}}, CHUNKS),
    *_of_persons("a size", "components", stream_model, {"": {}}, BATCHES),
]

# One unit more or less


def one_less(rng: Rng, counts: bool) -> Pair:
    """The last one: coins of all others are those that were recorded."""
    X = samples.few_columns(rng, counts)[:121]
    return X, X[:-1]


def none_left(rng: Rng, counts: bool) -> Pair:
    X = samples.few_columns(rng, counts)[:121]
    return X, X[: rng.choice([0, 1, 40])]


def in_two_batches(estimator: Any, X: np.ndarray) -> Any:
    for part in (X[:50], X[50:], X[:0]):
        estimator.partial_fit(part)
    return estimator


def of_chunks(estimator: Any, X: np.ndarray) -> Any:
    return estimator.fit_chunks([X[:7], X[7:]], n_features=X.shape[1])


def of_three(estimator: Any, X: np.ndarray) -> Any:
    return estimator.fit(X, groups=np.arange(len(X)) // 3)


def of_chunks_of_groups(estimator: Any, X: np.ndarray) -> Any:
    labels = [f"g{i % 40}" for i in range(len(X))]
    chunks = [(X[:9], labels[:9]), (X[9:], labels[9:])]
    return estimator.fit_chunks(chunks, n_features=X.shape[1])


ALONE = {"whole": samples.whole}
OF_GROUPS = {**ALONE, "chunks of groups": of_chunks_of_groups}
BY_BATCHES = {**ALONE, "batches": in_two_batches, "groups": of_three}
COUNTED = [
    (kind, build, {**options, "neighbours": "add_remove"}, way, fit)
    for kind, build, options, ways in (
        ("topics", topics_model, {"epsilon": 5.0}, {**BY_BATCHES, "chunks": of_chunks}),
        ("topics in word space", topics_model, {"perturbation": "moment_tensor"}, ALONE),
        ("topics of moments", topics_model, {"epsilon": 20.0, "n_refinements": 0}, OF_GROUPS),
        ("topics of limits", topics_model, {"clip_norm": {"counts": 5.0, "pairs": 4.0}}, ALONE),
        ("steps", components_model, {"perturbation": "iteration", "max_iter": 2}, ALONE),
        ("components in all dimensions", components_model, {"perturbation": "moment_tensor"},
         OF_GROUPS),
        ("single topics", topics_model, {"doc_topic_prior": 0}, ALONE),
        ("components", components_model, {}, {**ALONE, "chunks": of_chunks}),
        ("mixture", components_model, {"moment": "gaussian_mixture"}, ALONE),
        ("mixture of a norm that is chosen", components_model,
         {"moment": "gaussian_mixture", "data_norm": "auto"}, ALONE),
        ("stream", stream_model, {}, BY_BATCHES),
        ("search", _search, {}, {**ALONE, "groups": of_three}),
        ("folds", _search, {"cv": 3}, ALONE),
    )
    for way, fit in ways.items()
]  # fmt: skip
WITH_COUNTS = (topics_model, _search)
OF_COUNTS = [
    Row(f"counted {kind}, {name}, {way}", partial(build, options), fit,
        partial(pair, counts=build in WITH_COUNTS), place=place, relation=relation)
    for place, (kind, build, options, way, fit) in enumerate(COUNTED)
    for name, pair, relation in (("one less", one_less, "neighbours"),
                                 ("few left", none_left, "unrelated"))
    if not (way.endswith("groups") and name == "one less")
]  # fmt: skip

# Texts


TEXTS = ["cats chase mice", "dogs chase cats", "mice nap and men"]


def one_text(rng: Rng) -> Pair:
    texts = [TEXTS[place] for place in rng.integers(3, size=180)]
    other = list(texts)
    other[int(rng.integers(180))] = rng.choice(["", "strange " * 9000, " ".join("abcdefgh")])
    return texts, other


def words_model(options: dict[str, Any], _: float) -> Any:
    return PrivateCountVectorizer(**{"max_words_per_document": 3, "epsilon": 4.0, **options})


def one_row_of_categories(rng: Rng) -> Pair:
    rows = rng.choice(["a", "b", "c"], (180, 2)).tolist()
    other = [*rows[1:], rng.choice([["new", "c"], ["a", None], ["x", "y"]]).tolist()]
    return rows[1:] + rows[:1], other


OF_TEXTS = [
    Row("categories, one row", lambda _: PrivateOneHotEncoder(epsilon=4.0), samples.whole,
        one_row_of_categories, relation="neighbours"),
    *(Row(f"words, one text{name}", partial(words_model, options), samples.whole, one_text,
          relation="neighbours")
      for name, options in {"": {}, ", limits": {"min_df": 5, "max_df": 0.9},
                            ", long": {"max_words_per_document": 50}}.items()),
]  # fmt: skip

ROWS = [*OF_ROWS, *OF_PERSONS, *OF_COUNTS, *OF_TEXTS]
