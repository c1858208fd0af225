"""Other persons and other numbers of units, for replay; one unit of all models is a property.

Their true answers are at most as far apart as noise was scaled for, whatever was answered before.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from cases import SEARCHES, STREAMED, plain
from contracts import ways
from contracts.replay_rows import Pair, Rng, Row
from contracts.ways import PAIRS
from counted_models import whole

from sktensor_dp.privacy.unit_assignment import keyed_coins
from sktensor_dp.spectral_lda.shares import TopicShares

# Of each way in which units are read, dealt to parts and divided by.
NAMES = (
    "topics", "topics, one a document", "topics, moments", "topics, limits", "components",
    "components, all dimensions", "components, each step", "components, stream",
    "components, norm chosen", "mixtures", "search", "search, components", "search, stream",
)  # fmt: skip

# Persons with several rows

Persons = tuple[np.ndarray, np.ndarray]  # rows and the label of each
GONE, NEW = "p0000", "zz"


def coins_of_the_one_who_left(key: bytes, labels: np.ndarray) -> np.ndarray:
    """Coins of labels, of which those of a new person are the former one's: both are as likely."""
    return keyed_coins(key, np.where(labels == NEW, GONE, labels))


COUPLED = {"privacy.unit_assignment.keyed_coins": coins_of_the_one_who_left}


def persons(rng: Rng, counts: bool, n: int = 60) -> Persons:
    labels = np.repeat([f"p{place:04d}" for place in range(n)], rng.integers(1, 4, n))
    X = PAIRS["counts" if counts else "samples"](rng)[0]
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


def by_person(estimator: Any, data: Persons) -> Any:
    return estimator.fit(data[0], groups=data[1])


def in_chunks_of_persons(estimator: Any, data: Persons) -> Any:
    X, labels = data
    first = np.isin(labels, np.unique(labels)[:9])
    source = [(X[part], labels[part]) for part in (first, ~first)]
    return estimator.fit_chunks(source, n_samples=60, n_features=X.shape[1])


def _counts(name: str) -> bool:
    return plain(name).of.family == "counts"


def _of_persons(name: str, way: str, fit: Any, place: int, change: str = "others") -> Row:
    case = plain(name, payer="none")
    others = change == "others"
    draw = other_persons if others else relabelled
    return Row(
        f"{name} of persons, {change}, {way}", lambda _: case.build(), fit,
        lambda rng: draw(rng, _counts(name)), place=place,
        relation="unrelated" if others else "neighbours", forced={} if others else COUPLED,
    )  # fmt: skip


OF_PERSONS = [
    row
    for place, name in enumerate(NAMES)
    for row in (
        _of_persons(name, "whole", by_person, place),
        _of_persons(name, "whole", by_person, place, "a label"),
    )
]
OF_PERSONS += [
    _of_persons("components", "sparse", by_person_sparse, 0),
    *(_of_persons(name, "in chunks", in_chunks_of_persons, 1) for name in NAMES
      if name not in SEARCHES | STREAMED),
    *(_of_persons(name, "in batches", by_person_in_batches, 1, "a label")
      for name in ("topics", "components, stream")),
]  # fmt: skip

# Few units in the place of many


def none_left(rng: Rng, counts: bool) -> Pair:
    X = PAIRS["counts" if counts else "samples"](rng)[0][:121]
    return X, X[: rng.choice([0, 1, 40])]


def in_two_batches(estimator: Any, X: np.ndarray) -> Any:
    for part in (X[:50], X[50:], X[:0]):
        estimator.partial_fit(part)
    return estimator


def of_chunks(estimator: Any, X: np.ndarray) -> Any:
    return estimator.fit_chunks([X[:7], X[7:]], n_features=X.shape[1])


def of_three(estimator: Any, X: np.ndarray) -> Any:
    return estimator.fit(X, groups=np.arange(len(X)) // 3)


COUNTED = [(name, "whole", whole) for name in NAMES]
COUNTED += [(name, "batches", in_two_batches) for name in ("topics", "components, stream")]
COUNTED += [(name, "chunks", of_chunks) for name in ("topics", "components", "mixtures")]
COUNTED += [(name, "groups", of_three) for name in ("topics", "components, stream", "search")]


def _counted(name: str, way: str, fit: Any, place: int) -> Row:
    case = plain(name, payer="none", neighbours="add_remove")
    return Row(
        f"counted {name}, few left, {way}", lambda _: case.build(), fit,
        lambda rng: none_left(rng, _counts(name)), place=place,
    )  # fmt: skip


OF_COUNTS = [_counted(*row, place) for place, row in enumerate(COUNTED)]


def _one_leaves(rng: Rng) -> Pair:
    """Another person comes, with other texts of other months; or one text becomes another."""
    X, by, persons = ways.posts(rng, least=60)
    gone, new = persons == persons[0], ways.posts(rng, least=60)
    new = tuple(column[: rng.integers(1, 50)] for column in new)
    size = min(map(len, new))
    parts = [(X[~gone], new[0]), (by[~gone], new[1]), (persons[~gone], np.full(len(X), -1))]
    kept = [np.concatenate([one, other[:size]]) for one, other in parts]
    return (X, by, persons), tuple(kept)


SHARES = Row(
    "shares of persons, a label", lambda delta: TopicShares(ways.MONTHS, delta=delta, epsilon=9.0),
    lambda shares, data: shares.fit(ways.TOPICS, *data[:2], groups=data[2]), _one_leaves,
    relation="neighbours",
)  # fmt: skip
ROWS = [*OF_PERSONS, *OF_COUNTS, SHARES]
