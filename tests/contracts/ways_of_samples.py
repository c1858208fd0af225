"""Ways to fit topics, components, vocabularies and searches, for replay."""

import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
import small_searches
from contracts.replay_rows import Pair, Rng, Row, builder, product
from small_texts import search, texts

from sktensor_dp import (
    BudgetAccountant,
    PrivateGaussianMixture,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)
from sktensor_dp.input_check import InputCheck
from sktensor_dp.tensor import symmetric_outer_sum
from sktensor_dp.tensor.symmetric import symmetrize
from sktensor_dp.topic_page import write_topic_page

# Data of one public shape, most of it such that something could stand out.


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


def any_of(kinds: dict[str, Any], rng: Rng, *shape: int) -> Any:
    return kinds[list(kinds)[rng.integers(len(kinds))]](rng, *shape)


def corpora(rng: Rng, n: int = 300, d: int = 20) -> Pair:
    return documents(rng, n, d), any_of(CORPORA, rng, n, d)


def of_components(rng: Rng) -> Pair:
    return components(rng, 240, 7), any_of(SAMPLES, rng, 240, 7)


def few_columns(rng: Rng, counts: bool) -> np.ndarray:
    return (corpora if counts else of_components)(rng)[0][:, :7]


def tensors(rng: Rng) -> Pair:
    components_ = symmetric_outer_sum(np.full(3, 30.0), components(rng, 3, 7))
    return components_, any_of(TENSORS, rng, 7)


# Ways to fit


def whole(estimator: Any, X: Any) -> Any:
    return estimator.fit(X)


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


def fit_tensor(estimator: Any, T: np.ndarray) -> Any:
    return estimator.fit_tensor(T)


# Use of fitted models


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
        model.top_words(5, names, relevance=0.3), model.suggest_n_components(),
        repr(model.to_pyldavis(names)), model.components_interval(), model.shares_interval(0.5),
        model.below_noise(), model.recommend(X, 4),
    ]  # fmt: skip


# Rows


def _topics(name: str, options: dict[str, Any], fit: Any, place: int, **more: Any) -> Row:
    build = builder(PrivateSpectralLDA, {"n_components": 3, **options}, place)
    use = of_public_rows if options.get("perturbation") is None else shown_to_people
    return Row(f"topics, {name}", build, fit, place=place, **{"pair": corpora, "use": use, **more})


TOPICS: dict[str, dict[str, Any]] = {
    "whitened": {"epsilon": 20.0, "n_refinements": 0},
    "isotropic": {"perturbation": "moment_tensor"},
    "plenty": {"epsilon": 500.0, "delta": 1e-6},
    "one topic": {"doc_topic_prior": 0, "epsilon": 5.0, "n_refinements": 2},
    "one topic, moments": {"doc_topic_prior": 0, "epsilon": 100.0, "n_refinements": 0},
    "one topic, in word space": {"doc_topic_prior": 0, "perturbation": "moment_tensor"},
    "prior": {"doc_topic_prior": 0.3, "n_refinements": 2},
    "limits": {"clip_norm": {"counts": 5.0, "pairs": 4.0}, "epsilon": 3.0},
    "hopeless": {"epsilon": 0.01},
    "default": {"epsilon": 4.0},
    "too many topics": {"n_components": 50, "epsilon": 3.0, "n_refinements": 1},
    "integer seed": {"n_refinements": 0, "random_state": 3},
}
CHOOSING_WORDS: dict[str, dict[str, Any]] = {
    "refined": {"epsilon": 3.0},
    "large": {"epsilon": 100.0, "n_refinements": 1},
    "moments": {"epsilon": 3.0, "n_refinements": 0},
    "in word space": {"perturbation": "moment_tensor", "epsilon": 3.0},
    "public words": {"word_frequencies": 1 / np.arange(1, 301)},
    "public topics": {"public_components": np.random.default_rng(0).dirichlet(np.ones(300), 2)},
}


def _of_many_words(name: str, options: dict[str, Any], fit: Any, place: int, **more: Any) -> Row:
    pair = lambda rng: (documents(rng, 300, 300), CORPORA["even"](rng, 300, 300))  # noqa: E731
    more = {"pair": pair, "use": of_public_rows, **more}
    return _topics(f"300 words, {name}", options, fit, place, **more)


def _components(name: str, options: dict[str, Any], fit: Any, place: int, **more: Any) -> Row:
    given = {"n_components": 3, "data_norm": 2.0, "n_restarts": 4, **options}
    build = builder(PrivateTensorPowerMethod, given, place)
    rest = {"pair": of_components, "use": of_public_rows, **more}
    return Row(f"components, {name}", build, fit, place=place, **rest)


def of_drawn_rows(model: Any) -> list[Any]:
    """To rows drawn of the model, and to others."""
    X = np.random.default_rng(3).standard_normal((5, model.n_features_in_))
    return [model.predict_proba(X), model.score(X), model.bic(X)]


def _mixtures(name: str, options: dict[str, Any], fit: Any, place: int) -> Row:
    build = builder(PrivateGaussianMixture, {"n_components": 3, "data_norm": 2.0, **options}, place)
    return Row(f"mixtures, {name}", build, fit, of_components, use=of_drawn_rows, place=place)


MIXTURES: dict[str, dict[str, Any]] = {
    "default": {},
    "resolved": {"epsilon": 1e4},
    "norm chosen": {"data_norm": "auto", "epsilon": 400.0, "covariance_type": "tied"},
    "diag": {"covariance_type": "diag", "n_components": 9, "epsilon": 100.0},
    "spherical": {"covariance_type": "spherical", "epsilon": 100.0, "random_state": 5},
    "one group": {"n_components": 1},
}
STREAM = {"perturbation": "stream", "max_iter": 3}
COMPONENTS: dict[str, dict[str, Any]] = {
    "whitened": {},
    "orthonormal": {"whiten": False},
    "whitened, resolved": {"epsilon": 1e4},
    "in all dimensions": {"perturbation": "moment_tensor"},
    "in all dimensions, orthonormal": {"perturbation": "moment_tensor", "whiten": False},
    "every step": {"perturbation": "iteration", "max_iter": 3},
    "stream": STREAM,
    "stream, all found": {**STREAM, "epsilon": 1e4, "n_components": 2},
    "mixture": {"moment": "gaussian_mixture"},
    "mixture, chosen": {"moment": "gaussian_mixture", "data_norm": "auto", "epsilon": 400.0},
    "mixture, resolved": {"moment": "gaussian_mixture", "epsilon": 1e4},
    "mixture, in all dimensions": {"moment": "gaussian_mixture", "perturbation": "moment_tensor"},
    "too many components": {"n_components": 20, "epsilon": 1e3},
    "one component": {"n_components": 1, "random_state": 5},
}
ONCE = {"whole": whole}
STREAMS = {"of a generator": of_a_generator, "in batches": in_batches, "on": then_a_batch}


def _tensor(*of: Any) -> Row:
    return _components(*of, pair=tensors, use=lambda model: model.components_)


def elsewhere(X: Any, rng: Rng) -> Any:
    if isinstance(X, tuple):
        return X[0], rng.uniform(-50, 50, len(X[1]))
    if isinstance(X, list):
        words = [f"x{i} wordy{i % 3} " * rng.integers(9) for i in range(len(X) - 2)]
        return ["", "strange " * 9000, *words]
    return np.floor(10 ** rng.uniform(0, 6, X.shape))


def _search(name: str, build: Any, data: Any, place: int) -> Row:
    def fit(estimator: Any, X: Any) -> Any:
        return estimator.fit(*X) if isinstance(X, tuple) else estimator.fit(X)

    pair = lambda rng: (data, elsewhere(data, rng))  # noqa: E731
    return Row(f"search, {name}", build, fit, pair, place=place)


SEARCHES: list[tuple[str, Any, Any]] = [
    ("topics", lambda delta: small_searches.topics(random_state=0, delta=delta, n_trials=3),
     small_searches.counts()),
    ("three folds", lambda delta: small_searches.topics(random_state=0, cv=3, n_trials=2),
     small_searches.counts(90)),
    ("mixtures", lambda delta: small_searches.mixtures(
        {"data_norm": [5.0, 8.0]}, random_state=0, n_trials=3), small_searches.gaussians(300)),
    ("completions", lambda delta: small_searches.completions(random_state=0, n_trials=3),
     small_searches.cells()),
    ("input", lambda delta: small_searches.completions(
        random_state=0, perturbation="input", n_trials=3), small_searches.cells()),
    ("persons of ratings", lambda delta: small_searches.raters(random_state=0, n_trials=3),
     small_searches.cells()),
    ("vocabulary", lambda delta: search(random_state=0), texts(300)),
    ("vocabulary, folds", lambda delta: search(random_state=0, cv=2), texts(300)),
    ("vocabulary, shares", lambda delta: search(
        random_state=0, step_fractions={"counts": 1, "topics": 3}), texts(300)),
]  # fmt: skip


def _check(check: InputCheck, X: np.ndarray) -> InputCheck:
    check.ask({"one": X[:, 0] > 0, "other": X[:, 1] > 0}, X[:, 2].astype(int))
    return check


def _with_a_ledger(delta: float) -> PrivateTensorPowerMethod:
    payer = BudgetAccountant(9.0, 1e-3)
    return PrivateTensorPowerMethod(2, data_norm=2.0, delta=delta, accountant=payer, **STREAM)


UNRELATED = [
    Row("components, stream with a ledger", _with_a_ledger, then_a_batch, of_components),
    *product(TOPICS, {**ONCE, "in batches": in_batches}, _topics),
    *product(CHOOSING_WORDS, {**ONCE, "in batches": in_batches}, _of_many_words),
    *product(COMPONENTS, ONCE, _components),
    *product(MIXTURES, ONCE, _mixtures),
    *product({n: COMPONENTS[n] for n in ("stream", "stream, all found")}, STREAMS, _components),
    *product({"tensor": {}, "tensor, resolved": {"epsilon": 1e4, "max_iter": 4}},
             {"whole": fit_tensor}, _tensor),
    Row("check", lambda delta: InputCheck("sample", "add_remove", 1.0, delta, None), _check,
        lambda rng: (rng.poisson(3.0, (200, 3)), -rng.poisson(3.0, (200, 3)))),
    *(_search(*of, place) for place, of in enumerate(SEARCHES)),
]  # fmt: skip
