"""Ways to fit, for replay: every model of the table of cases, and more options of some.

Each has two data sets of its family: one in which something stands out, and a hostile one.
"""

import pickle
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
import small_searches
from cases import BATCHED, DRAW, EXACT, MODELS, SEARCHES, SHAPE, STREAMED, STRINGS, D, Data, plain
from contracts.replay_rows import Pair, Rng, Row, product
from replaying import nothing
from small_texts import search, texts

from sktensor_dp import (
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)
from sktensor_dp.private_check import InputCheck
from sktensor_dp.spectral_lda.share_tables import columns_of
from sktensor_dp.spectral_lda.shares import TopicShares
from sktensor_dp.tensor import symmetric_outer_sum
from sktensor_dp.tensor.symmetric import symmetrize
from sktensor_dp.topic_page import write_topic_page

# Rows


def documents(rng: Rng, n: int, d: int) -> np.ndarray:
    topics = rng.dirichlet(np.full(d, 0.1), 3)
    shares = rng.dirichlet(np.full(3, 0.3), n) @ topics
    lengths = rng.integers(0, 60, n)
    return np.array([rng.multinomial(m, p) for m, p in zip(lengths, shares, strict=True)], float)


def components(rng: Rng, n: int, d: int) -> np.ndarray:
    means = np.linalg.qr(rng.standard_normal((d, 3)))[0].T
    return 1.5 * means[rng.integers(3, size=n)] + 0.2 * rng.standard_normal((n, d))


CORPORA: dict[str, Any] = {
    "empty": lambda rng, n, d: np.zeros((n, d)),
    "one word": lambda rng, n, d: 9.0 * np.eye(d)[np.full(n, d - 1)],
    "short": lambda rng, n, d: np.eye(d)[rng.integers(d, size=n)],
    "all words": lambda rng, n, d: np.ones((n, d)),
    "enormous": lambda rng, n, d: np.floor(10 ** rng.uniform(0, 300, (n, d))),
    "even": lambda rng, n, d: np.floor(rng.uniform(0, 3, (n, d))),
}
SAMPLES: dict[str, Any] = {
    "zeros": lambda rng, n, d: np.zeros((n, d)),
    "one row": lambda rng, n, d: np.tile(rng.standard_normal(d), (n, 1)),
    "ones": lambda rng, n, d: np.ones((n, d)),
    "enormous": lambda rng, n, d: rng.choice([-1, 1], (n, d)) * 10 ** rng.uniform(0, 308, (n, d)),
    "the largest": lambda rng, n, d: np.full((n, d), np.finfo(float).max),
    "tiny": lambda rng, n, d: rng.standard_normal((n, d)) * 10 ** rng.uniform(-320, 0, (n, d)),
    "one sample": lambda rng, n, d: np.eye(n, d) * 9,
    "integers": lambda rng, n, d: rng.integers(-3, 4, (n, d)).astype(float),
}  # fmt: skip
TENSORS: dict[str, Any] = {
    "zeros": lambda rng, d: np.zeros((d, d, d)),
    "noise": lambda rng, d: symmetrize(rng.standard_normal((d, d, d))),
    "enormous": lambda rng, d: 1e308 * symmetrize(rng.choice([-1.0, 1.0], (d, d, d))),
    "one entry": lambda rng, d: np.where(np.arange(d**3) == 0, -1e9, 0.0).reshape(d, d, d),
}  # fmt: skip


def any_of(kinds: dict[str, Any], *given: Any) -> Any:
    return kinds[list(kinds)[given[0].integers(len(kinds))]](*given)


# Values, at coordinates that are public for entries and private for persons


def products(rng: Rng, X: np.ndarray) -> np.ndarray:
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
    "at random": lambda rng: cells(rng, 150),
    "none": lambda rng: cells(rng, 0),
    "one": lambda rng: np.array([[7, 3, 2]]),
    "one unit": lambda rng: np.insert(cells(rng, 40)[:, 1:], 0, 3, axis=1),
    "one row of a mode": lambda rng: np.insert(cells(rng, 40)[:, ::2], 1, 2, axis=1),
    "everywhere": lambda rng: np.argwhere(np.ones(SHAPE)),
    "the same, often": lambda rng: np.tile([[4, 0, 1], [2, 0, 1]], (60, 1)),
}  # fmt: skip


# Pairs of each family


def corpora(rng: Rng, n: int = 300, d: int = D) -> Pair:
    return documents(rng, n, d), any_of(CORPORA, rng, n, d)


def of_texts(rng: Rng) -> Pair:
    words = [f"x{i} wordy{i % 3} " * rng.integers(9) for i in range(298)]
    own = [" ".join(text.split()[: 1 + place % 8]) for place, text in enumerate(texts(300))]
    return own, ["", "strange " * 9000, *words]


def entries(rng: Rng) -> Pair:
    X = DRAW["entries"](rng).X
    return (X, products(rng, X)), (X, any_of(VALUES, rng, X))


def slices(rng: Rng) -> Pair:
    X, Z = cells(rng, 150), any_of(COORDINATES, rng)
    return (X, products(rng, X)), (Z, any_of(VALUES, rng, Z))


def matrices(rng: Rng, n: int = 8, width: int = 12) -> Pair:
    """Persons whose rows are multiples of one."""
    X, Z = (np.argwhere(rng.random((n, width)) < share) for share in (0.9, rng.choice([0, 0.3])))
    y = rng.standard_normal(n)[X[:, 0]] * np.resize([1, -1, 1, 1, -1, 0.5], width)[X[:, 1]]
    return (X, y), (Z, any_of(VALUES, rng, Z))


def tensors(rng: Rng) -> Pair:
    components_ = symmetric_outer_sum(np.full(3, 30.0), components(rng, 3, 7))
    return components_, any_of(TENSORS, rng, 7)


PAIRS: dict[str, Any] = {
    "counts": corpora,
    "samples": lambda rng: (components(rng, 240, 4), any_of(SAMPLES, rng, 240, 4)),
    "texts": of_texts, "entries": entries, "slices": slices,
    "matrices": matrices, "tensors": tensors,
}  # fmt: skip

# Ways to fit; a model by itself is fitted as its case is


def in_batches(estimator: Any, X: np.ndarray) -> Any:
    """Pickled after every batch, as where it is resumed elsewhere; dense and sparse."""
    first, *others = np.split(np.arange(len(X)), range(len(X) // 2, len(X), 30))
    for place, rows in enumerate([first, *others]):
        estimator.partial_fit(sp.csr_array(X[rows]) if place % 2 else X[rows])
        estimator = pickle.loads(pickle.dumps(estimator))
    return estimator


def of_a_generator(estimator: Any, X: np.ndarray) -> Any:
    return estimator.fit_chunks(iter(np.array_split(X, 16)))


def then_a_batch(estimator: Any, X: np.ndarray) -> Any:
    return estimator.fit(X[:200]).partial_fit(X[200:])


def dense(estimator: Any, data: Any) -> Any:
    """A tensor with gaps."""
    T = np.full(SHAPE, np.nan)
    T[tuple(data[0].T)] = data[1]
    return estimator.fit_tensor(T)


def used(estimator: Any, data: Any) -> Any:
    """Using a model, by its own data too, keeps nothing."""
    X, y = data
    estimator.fit(X, y).fold_in(X, np.clip(y, *estimator.bounds_))  # without a warning of them
    return estimator


def repeated(estimator: Any, data: Any) -> Any:
    """Two values of each cell."""
    (X, y), turned = data, data[1][::-1]
    return estimator.fit(np.tile(X, (2, 1)), np.append(y, turned), repeated="distinct")


# Use of fitted models


def of_drawn_rows(model: Any) -> list[Any]:
    """To rows drawn of the model, and to others."""
    X = np.random.default_rng(3).standard_normal((5, model.n_features_in_))
    return [model.predict_proba(X), model.score(X), model.bic(X)]


def of_public_rows(model: Any) -> list[Any]:
    """To rows of the caller's, who need not be of the fit."""
    X = np.random.default_rng(3).poisson(1.0, (5, model.n_features_in_)).astype(float)
    return [model.transform(X), model.score(X)]


def shown_to_people(model: Any) -> list[Any]:
    """All that a model of topics shows: words, intervals, tables, pages."""
    d = model.n_features_in_
    X, names = np.ones((2, d)), [f"word{column}" for column in range(d)]
    with TemporaryDirectory() as folder:
        page = write_topic_page(Path(folder) / "page.html", model, names)
        text = page.read_text(encoding="utf-8")
    return [
        *of_public_rows(model), text, model.topic_table(names).to_csv(),
        model.top_words(5, names, relevance=0.3),
        repr(model.to_pyldavis(names)), model.components_interval(), model.hidden(),
        model.recommend(X, 4),
    ]  # fmt: skip


def _recommended(estimator: Any, of: Any) -> list[np.ndarray]:
    """The best and the values of all rows, for some units; and rows that are alike."""
    mode, other = (m for m in range(3) if m != (estimator.unit_mode or 0))
    context = {other: 1}
    found = [estimator.predict_rows(of, mode, context=context)]
    if isinstance(of, range) and estimator.unit_mode is not None:
        of = None
    exclude = None if of is None else [[1, 2, 2], [4, 3, 1]]
    found += estimator.recommend(of, 4, exclude=exclude, mode=mode, context=context)
    try:
        found += estimator.similar_rows(mode, np.arange(SHAPE[mode]), 3)
    except ValueError as error:
        found.append(np.array(str(error)))
    return found


def of_public_cells(estimator: Any) -> list[np.ndarray]:
    everywhere = np.argwhere(np.ones([n + 1 for n in SHAPE])) - 1  # unknown rows first
    found = [estimator.predict(everywhere), estimator.transform(everywhere), estimator.complete()]
    found += _recommended(estimator, range(SHAPE[estimator.unit_mode or 0]))
    own = estimator.fold_in([[1, 2, 2], [4, 3, 1]], np.clip([2.0, 0.5], *estimator.bounds_))
    return found + _recommended(estimator, own)


def inside(estimator: Any) -> list[np.ndarray]:
    cells = np.argwhere(np.ones(estimator.shape))
    own = estimator.fold_in(cells[[20, 40]], np.clip([2.0, 0.5], *estimator.bounds_))
    return [estimator.predict(cells), own.predict(cells), estimator.complete()]


USES: dict[Any, Any] = {
    PrivateSpectralLDA: of_public_rows, PrivateTensorPowerMethod: of_public_rows,
    PrivateGaussianMixture: of_drawn_rows, PrivateCPCompletion: of_public_cells,
    PrivateTuckerCompletion: of_public_cells,
}  # fmt: skip


def use_of(name: str) -> Any:
    model = MODELS[name]
    if model.family == "tensors":
        return lambda fitted: fitted.components_
    return inside if model.family == "matrices" else USES.get(model.kind, nothing)


# Rows


def way(model: str, name: str, options: dict[str, Any], fit: Any, place: int, **more: Any) -> Row:
    """Fit a model of the table by other options; every second one says what it does."""
    case = plain(model, payer="none")

    def build(delta: float) -> Any:
        given: dict[str, Any] = {"verbose": place % 2}
        if case.of.family not in STRINGS:
            # A generator's own state is among the parameters, and is compared too.
            given |= {"delta": delta, **case.of.options, "random_state": np.random.RandomState(0)}
        return case.build(**{**given, **options})

    def by_itself(estimator: Any, of: Any) -> Any:
        return case.fit(estimator, Data(*of) if isinstance(of, tuple) else Data(of))

    more = {"pair": PAIRS[case.of.family], "use": use_of(model), **more}
    return Row(f"{model}{name}", build, fit or by_itself, place=place, **more)


def fits_of(name: str) -> dict[str, Any]:
    """Ways to fit a model beside its own."""
    family = MODELS[name].family
    if name in STREAMED - SEARCHES:
        return STREAMS
    if family == "counts" and name in BATCHED:
        return {", in batches": in_batches}
    of_entries = {", dense": dense, ", used": used, ", repeated": repeated}
    of_persons = {", dense": dense, ", used": used}
    return {"entries": of_entries, "slices": of_persons}.get(family, {})


STREAMS = {", of a generator": of_a_generator, ", in batches": in_batches, ", on": then_a_batch}
RESOLVED = {", resolved": {"epsilon": 1e4}}
MORE: dict[str, dict[str, dict[str, Any]]] = {
    "topics": {
        ", default": {"n_components": 3, "n_refinements": "auto", "epsilon": 4.0},
        ", hopeless": {"epsilon": 0.01},
        ", prior": {"doc_topic_prior": 0.3, "n_refinements": 2},
        ", too many": {"n_components": 50, "epsilon": 3.0},
        ", integer seed": {"n_refinements": 0, "random_state": 3},
    },
    "topics, one a document": {
        ", refined": {"epsilon": 5.0, "n_refinements": 2},
        ", moments": {"epsilon": 100.0, "n_refinements": 0},
        ", in word space": {"perturbation": "moment_tensor"},
    },
    "components": {
        ", too many": {"n_components": 20, "epsilon": 1e3},
        ", one": {"n_components": 1, "random_state": 5},
    },
    "components, all dimensions": {", orthonormal": {"whiten": False}},
    "components, stream": RESOLVED,
    "components, tensor": {", resolved": {"epsilon": 1e4, "max_iter": 4}},
    "components, norm chosen": {", resolved": {"epsilon": 400.0}},
    "mixtures": {
        **RESOLVED,
        ", spherical": {"covariance_type": "spherical", "epsilon": 100.0, "random_state": 5},
        ", one group": {"n_components": 1},
        ", few values": {"nonnormal_features": {0: (-1, 1)}, "epsilon": 100.0, "random_state": 5},
        ", many": {"covariance_type": "diag", "n_components": 9, "epsilon": 100.0},
    },
    "mixtures, norm chosen": {", tied": {"covariance_type": "tied", "epsilon": 400.0}},
}
OF_COMPLETIONS: dict[str, dict[str, dict[str, Any]]] = {
    "": {**RESOLVED, ", no shape": {"shape": None, "rank": 2}},
    ", values": {", resolved": {"epsilon": 40.0, "max_iter": 8, "rank": 2}},
    ", gradients": {", resolved": {"epsilon": 1e4, "max_iter": 4}},
    ", output": {", resolved": {"epsilon": 80.0, "max_iter": 8, "rank": 2}},
    ", range chosen": {", resolved": {"epsilon": 400.0}},
    ", persons": {
        ", last": {"unit_mode": 2},
        ", tiny epsilon": {"epsilon": 1e-6},
        ", resolved": {"epsilon": 1e4, "unit_mode": 1},
        ", components": {"epsilon": 1e6, "rank": 2},
    },
    ", persons, range chosen": {", resolved": {"epsilon": 400.0}},
}
COMPLETIONS = ("CP", "Tucker")
MORE |= {name: OF_COMPLETIONS[of] for kind in COMPLETIONS for of in OF_COMPLETIONS
         if (name := f"{kind}{of}") in MODELS}  # fmt: skip

CHOOSING_WORDS: dict[str, dict[str, Any]] = {
    ", 300 words": {"epsilon": 3.0, "n_refinements": "auto"},
    ", 300 words, large": {"epsilon": 100.0},
    ", 300 words, moments": {"epsilon": 3.0, "n_refinements": 0},
    ", 300 words, in word space": {"perturbation": "moment_tensor", "epsilon": 3.0},
    ", 300 public words": {"word_frequencies": 1 / np.arange(1, 301)},
}


def of_many_words(rng: Rng) -> Pair:
    return documents(rng, 300, 300), CORPORA["even"](rng, 300, 300)


# Tables of persons, whose directions are sought; of many rows, and of few by pairs.


def long_tables(rng: Rng) -> Pair:
    """Many rows to few columns: each column has a noise variance of its own."""
    X = np.argwhere(rng.random((700, 3)) < 0.9)
    y = np.outer(rng.standard_normal(700), [1.0, -0.5, 0.1])[tuple(X.T)]
    return (X, y), (X, any_of(VALUES, rng, X))


def small_tables(rng: Rng) -> Pair:
    (X, y), _ = matrices(rng, 80, 6)
    return (X, y), (X, any_of(VALUES, rng, X))


def named_rows(pair: Pair, persons: bool) -> Pair:
    """Coordinates by names, some of which are on no list."""
    renamed = []
    for X, y in pair:
        rows = X.astype(object)
        rows[:, 1] = [f"row {number}" for number in X[:, 1]]
        if persons and not renamed:
            rows[:, 0] = [f"person {number}" for number in X[:, 0]]
        renamed.append((rows, y))
    return renamed[0], renamed[1]


def of_names(estimator: Any, data: Any) -> Any:
    return estimator.fit(*data)


NAMES = {"row_names": (None, ["row 0", "row 1", "row 2"], None), "shape": (8, 3, 3)}
OF_PAIRS = {
    "completion.plan.pair_fraction": lambda *_: 1 / 8,
    "completion.plan.values_are_worth_it": lambda *_: False,
}
TABLES = [
    row
    for at, kind in enumerate(COMPLETIONS)
    for row in (
        *(way(f"{kind}, {name}", ", long", {"epsilon": 20.0, "max_iter": 4, "shape": (700, 3)},
              None, at, pair=long_tables, use=inside) for name in ("values", "output")),
        way(kind, ", named rows", NAMES, of_names, at,
            pair=lambda rng: named_rows(entries(rng), False), use=nothing),
        way(f"{kind}, persons", ", named rows", NAMES, of_names, at,
            pair=lambda rng: named_rows(slices(rng), True), use=nothing),
        *(way(f"{kind}, persons, directions", f", epsilon {epsilon:g}",
              {"epsilon": epsilon, "shape": (300, 6)}, None, at + place,
              pair=lambda rng: matrices(rng, 300, 6))
          for place, epsilon in enumerate((20.0, 1e4, 1e-6))),
        *(way(kind, f", pairs, epsilon {epsilon:g}",
              {"epsilon": epsilon, "shape": (80, 6), "bounds": (-1.0, 2.0), "rank": 2}, None,
              at + place, pair=small_tables, use=inside, forced=OF_PAIRS)
          for place, epsilon in enumerate((1e-3, 1.0, 1e4))),
    )
]  # fmt: skip

# Searches of pipelines, by persons and of other scores


def _search(name: str, build: Any, data: Any, place: int) -> Row:
    def fit(estimator: Any, X: Any) -> Any:
        return estimator.fit(*X) if isinstance(X, tuple) else estimator.fit(X)

    def elsewhere(rng: Rng) -> Any:
        if isinstance(data, tuple):
            return data[0], rng.uniform(-50, 50, len(data[1]))
        return of_texts(rng)[1] if isinstance(data, list) else np.floor(
            10 ** rng.uniform(0, 6, data.shape))  # fmt: skip

    return Row(f"search, {name}", build, fit, lambda rng: (data, elsewhere(rng)), place=place)


SEARCHES_OF: list[tuple[str, Any, Any]] = [
    ("topics", lambda _: small_searches.topics(random_state=0, n_trials=2),
     small_searches.counts(90)),
    ("norms", lambda _: small_searches.components(
        {"data_norm": [5.0, 8.0]}, random_state=0, n_trials=3), small_searches.samples(300)),
    ("completions", lambda _: small_searches.completions(random_state=0, n_trials=3),
     small_searches.cells()),
    ("input", lambda _: small_searches.completions(
        random_state=0, perturbation="input", n_trials=3), small_searches.cells(6)),
    ("persons of ratings", lambda _: small_searches.raters(random_state=0, n_trials=3),
     small_searches.cells()),
    ("vocabulary", lambda _: search(random_state=0, n_trials=2), texts(300)),
    ("vocabulary, shares", lambda _: search(
        random_state=0, step_fractions={"counts": 1, "topics": 3}), texts(300)),
]  # fmt: skip


def _check(check: InputCheck, X: np.ndarray) -> InputCheck:
    check.release({"one": X[:, 0] > 0, "other": X[:, 1] > 0}, X[:, 2].astype(int))
    return check


# Topics of public texts, by which those of persons are looked at.
TOPICS = PrivateSpectralLDA(2, doc_topic_prior=0.3, epsilon=np.inf, neighbours="add_remove")
TOPICS.fit(np.repeat(9 * np.eye(2).repeat(3, axis=1), 200, axis=0))
MONTHS = ["jan", "feb", "mar"]


def posts(rng: Rng, least: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Texts, some without a word; their months, which may not be listed; and their persons."""
    n = int(rng.integers(least, 300))
    X = rng.poisson(rng.choice([0, 0.2, 3, 1e5], (n, 1)) * rng.random((n, 6)))
    return X, rng.choice([*MONTHS, "other"], n), rng.integers(1 + n // 3, size=n)


def _by_months(options: dict[str, Any], place: int) -> Row:
    def fit(shares: TopicShares, data: Any) -> TopicShares:
        X, by, persons = data
        return shares.fit(TOPICS, X, by, groups=persons if place % 2 else None)

    return Row(f"shares{', of persons' * (place % 2)}{', given' * ('texts_per_person' in options)}",
               lambda delta: TopicShares(MONTHS, neighbours="add_remove", delta=delta, **options),
               fit, lambda rng: (posts(rng), posts(rng)), place=place,
               use=lambda it: [columns_of(it), it.interval(sampling=False)])  # fmt: skip


def _with_a_ledger(delta: float) -> Any:
    return plain("components, stream").build(delta=delta)


SMALL = [way(name, "", {}, None, place) for place, name in enumerate(MODELS) if name not in EXACT]
UNRELATED = [
    *SMALL,
    *(row for place, small in enumerate(SMALL)
      for row in product({"": {}}, fits_of(small.name), partial(way, small.name), place)),
    *(row for name, more in MORE.items()
      for row in product(more, {"": None, **fits_of(name)}, partial(way, name))),
    *product(CHOOSING_WORDS, {"": None, ", in batches": in_batches},
             partial(way, "topics", pair=of_many_words)),
    *TABLES,
    way("topics, word space", ", shown", {}, None, 0, use=shown_to_people),
    Row("components, stream with a ledger", _with_a_ledger, then_a_batch, PAIRS["samples"]),
    Row("check", lambda delta: InputCheck("sample", "add_remove", 1.0, delta, None), _check,
        lambda rng: (rng.poisson(3.0, (200, 3)), -rng.poisson(3.0, (200, 3)))),
    *(_by_months({}, place) for place in range(2)),
    _by_months({"texts_per_person": 3}, 3),
    *(_search(*of, place) for place, of in enumerate(SEARCHES_OF)),
]  # fmt: skip
