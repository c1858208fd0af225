"""What a user can turn: every estimator on tiny data, and axes of forms, units, payers, settings.

An estimator is a row of `MODELS`, and an axis is a row of `AXES`, with what it does in one function
of this file. `cases` covers all pairs of values, and at night all triples; files of
`tests/properties` say what has to hold in each case.
"""

import copy
import functools
import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from coverings import covering
from parts_in_order import PartsInOrder
from sklearn.exceptions import ConvergenceWarning

from sktensor_dp import (
    BudgetAccountant,
    NotEnoughDataWarning,
    PrivacyLeakWarning,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
    unsafe_recorded_releases,
    unsafe_seeded_noise,
)
from sktensor_dp.estimator.forecast import Question
from sktensor_dp.privacy.report import PrivacyReport

N, D = 60, 5
SHAPE = (8, 4, 3)
# How models are named in messages, and how big a budget that pays for any of these fits is.
ENOUGH = (1e9, 0.5)


@dataclass(frozen=True)
class Model:
    """An estimator, its parameters, and the kind of its data."""

    kind: Callable[..., Any]
    family: str  # of data: a key of AXES
    options: dict[str, Any]

    @property
    def streams(self) -> bool:
        """Whether it reads each row once, in batches."""
        return self.options.get("perturbation") == "stream"

    @functools.cached_property
    def takes_batches(self) -> bool:
        return hasattr(self.kind(**self.options), "partial_fit")

    @functools.cached_property
    def counts_units(self) -> bool:
        """Whether the number of its units may be private."""
        target = self.options.get("estimator", self.kind(**self.options))
        return "neighbours" in target.get_params(deep=False)


def _topics(**options: Any) -> Model:
    given = {"n_components": 2, "n_refinements": 1, "random_state": 0, **options}
    return Model(PrivateSpectralLDA, "counts", given)


def _components(family: str = "samples", **options: Any) -> Model:
    start = {"data_norm": 4.0, "n_components": 2, "n_restarts": 2, "max_iter": 1, "random_state": 0}
    return Model(PrivateTensorPowerMethod, family, {**start, **options})


def _words(**options: Any) -> Model:
    return Model(PrivateCountVectorizer, "texts", {"epsilon": 200.0, **options})


def _entries(kind: Any, family: str = "entries", **options: Any) -> Model:
    shape = SHAPE if family != "matrices" else (SHAPE[0], 12)
    given = {"rank": 1, "bounds": (-3.0, 3.0), "shape": shape, "random_state": 0, **options}
    return Model(kind, family, given)


def _search(of: Model, **options: Any) -> Model:
    given = {"param_distributions": {"n_components": [1, 2]}, "n_trials": 1, "random_state": 0}
    given |= {"estimator": of.kind(**of.options), "epsilon": 4.0, "anyway": True}
    given |= {"score_bounds": (-1.0, 1.0)} if of.family == "samples" else {}
    return Model(PrivateSearchCV, of.family, {**given, **options})


_MIXTURE = {"n_components": 2, "data_norm": 4.0, "random_state": 0}
MODELS: dict[str, Model] = {
    "topics": _topics(),
    "topics, pure": _topics(delta=0),
    "topics, word space": _topics(perturbation="moment_tensor"),
    "topics, moments": _topics(n_refinements=0),
    "topics, limits": _topics(clip_norm={"counts": 4.0, "pairs": 3.0}),
    "topics, one a document": _topics(doc_topic_prior=0),
    "topics, public frequencies": _topics(word_frequencies=1 / np.arange(1, D + 1)),
    "topics, plenty": _topics(epsilon=1e4),
    "topics, exact": _topics(epsilon=np.inf),
    "components": _components(),
    "components, pure": _components(delta=0),
    "components, plenty": _components(epsilon=1e4),
    "components, all dimensions": _components(perturbation="moment_tensor"),
    "components, orthonormal": _components(whiten=False),
    "components, each step": _components(perturbation="iteration"),
    "components, stream": _components(perturbation="stream"),
    "components, norm chosen": _components(data_norm="auto"),
    "components, exact": _components(epsilon=np.inf),
    "mixtures": Model(PrivateGaussianMixture, "samples", _MIXTURE),
    "mixtures, diagonal": Model(
        PrivateGaussianMixture, "samples", {**_MIXTURE, "covariance_type": "diag", "delta": 0}
    ),
    "mixtures, norm chosen": Model(
        PrivateGaussianMixture, "samples", {**_MIXTURE, "data_norm": "auto"}
    ),
    "components, tensor": _components("tensors"),
    "words": _words(max_words_per_document=3),
    "words, pairs": _words(ngram_range=(1, 2), stop_words=["nap"], min_df=2, max_features=9),
    "words, characters": _words(analyzer="char", ngram_range=(2, 2), binary=True),
    "words, given": _words(vocabulary=["mice", "cats"]),
    "search": _search(_topics()),
    "search, components": _search(_components()),
    "search, stream": _search(_components(perturbation="stream")),
}
for _kind in (PrivateCPCompletion, PrivateTuckerCompletion):
    _name = _kind.__name__.removeprefix("Private").removesuffix("Completion")
    MODELS |= {
        _name: _entries(_kind),
        f"{_name}, pure": _entries(_kind, delta=0),
        f"{_name}, values": _entries(_kind, perturbation="input", max_iter=2),
        f"{_name}, gradients": _entries(_kind, perturbation="gradient", max_iter=1),
        f"{_name}, output": _entries(_kind, perturbation="output", max_iter=2),
        f"{_name}, persons": _entries(_kind, "slices", unit_mode=0),
        f"{_name}, persons, directions": _entries(_kind, "matrices", unit_mode=0, epsilon=1e6),
    }
# A range and units are read before the kinds part.
MODELS |= {
    "CP, range chosen": _entries(PrivateCPCompletion, bounds="auto", epsilon=50.0),
    "CP, persons, range chosen": _entries(
        PrivateCPCompletion, "slices", unit_mode=0, bounds="auto"
    ),
    "CP, persons second": _entries(PrivateCPCompletion, "slices", unit_mode=1),
}
# Persons share the same with both kinds of completions, in any mode and range, and one kind finds
# directions by day.
AT_NIGHT = (
    *("Tucker, persons", "CP, persons, directions"),
    *("CP, persons second", "CP, persons, range chosen"),
)
STREAMED = {name for name, model in MODELS.items() if model.streams}
BATCHED = {
    name for name, model in MODELS.items()
    if model.takes_batches and model.options.get("data_norm") != "auto"
}  # fmt: skip
SEARCHES = {name for name, model in MODELS.items() if model.kind is PrivateSearchCV}
EXACT = {name for name, model in MODELS.items() if model.options.get("epsilon") == np.inf}

# One for each way in which data is read: the first of each estimator, and others.
READERS = (
    *{model.kind: name for name, model in reversed(MODELS.items())}.values(),
    *("components, stream", "components, tensor", "words, characters", "words, given"),
    *("Tucker, values", "CP, persons", "CP, persons second", "Tucker, persons, directions"),
)

# Axes. The plain value of each comes first.

# A matrix of each format, or an array, which are made rows of one format and stay what they are.
SPARSE = (
    *("csr_matrix", "csr_array", "csc_array", "coo_matrix", "lil_array", "dok_matrix"),
    *("bsr_array", "dia_matrix"),
)
FRAMES = ("pandas", "pandas of arrow", "polars", "arrow")
DASK = ("dask array", "dask frame", "dask csr", "dask unknown")
PARTS = ("chunks", "sparse chunks", "partitions", "files")
NAMED = (*FRAMES, "dask frame")
EVERYWHERE = {
    "payer": ("memory", "file", "none"),
    "settings": ("plain", "set_output", "routing", "threads"),
    "errors": ("usual", "np.seterr", "warnings"),
}
OF_GROUPS = ("groups", "labels", "neighbours")
ALL_BUT_FORMS = (*OF_GROUPS, "order", "names", "payer", "settings", "errors")
UNITS = {
    "groups": ("none", "sorted", "shuffled", "one row each", "one huge"),
    "labels": ("integers", "texts", "categories", "big"),
    "neighbours": ("replace_one", "add_remove"),
}
ROWS = {
    "container": (
        *("array", "columns first", "view", "read only", "list", *SPARSE, "untidy csr"),
        *(*FRAMES, *DASK, *PARTS, "batches"),
    ),
    "dtype": ("float64", "float32", "int64", "int8"),
    **UNITS,
    **EVERYWHERE,
}
ENTRIES = {
    "container": ("array", "columns first", "list", *FRAMES, "dask array", "tensor"),
    "dtype": ("int64", "int32", "uint8", "float64"),
    "order": ("drawn", "sorted", "shuffled"),
    "names": ("numbers", "row names"),
    **EVERYWHERE,
}
AXES: dict[str, dict[str, tuple[str, ...]]] = {
    "counts": ROWS,
    "samples": ROWS,
    "texts": {
        "container": (
            *("list", "tuple", "array", "objects", *FRAMES, "bytes", "files", "dask array"),
            *("dask frame", "dictionary", "categorical"),
        ),
        **UNITS,
        **EVERYWHERE,
    },
    "entries": ENTRIES,
    "slices": ENTRIES,
    "matrices": ENTRIES,
    "tensors": {"container": ("array", "columns first", "list"), **EVERYWHERE},
}
# Families whose data is no numbers.
STRINGS = ("texts",)
# Of these axes released inputs do not depend, up to the digits of a sum in another order.
FORMS = ("container", "dtype", "order", "names", "payer", "settings", "errors")


def possible(row: dict[str, str]) -> bool:
    """Whether values go together: what is refused by rule is no case, but a row of refusals."""
    model, container = row.get("model", ""), row.get("container", "")
    counted = row.get("neighbours") == "add_remove"
    family = MODELS[model].family if model else ""
    fixed = bool(model) and not MODELS[model].counts_units
    read_in_parts = container in (*DASK, *PARTS, "batches")
    settings, searches = row.get("settings"), model in SEARCHES
    wrong = (
        # A list without rows has no columns, and their number is private.
        (counted and container == "list" and family != "texts"),
        (counted and (fixed or (searches and container == "list"))),
        (model in STREAMED and container in (*DASK, *PARTS)),
        (container == "batches" and model not in BATCHED),
        (searches and read_in_parts),
        (row.get("groups") == "none" and row.get("labels", "integers") != "integers"),
        (row.get("labels") == "categories" and container in (*DASK, "files")),
        (container == "tensor" and row.get("names") == "row names"),
        (container == "tensor" and row.get("order", "drawn") != "drawn"),
        # Tables of whole numbers only are made of whole numbers.
        (settings == "set_output" and family in ("entries", "slices", "matrices", *STRINGS)),
    )
    return not any(wrong)


@dataclass(frozen=True)
class Data:
    """Data in its plain form: rows, texts or coordinates; labels of persons, or values."""

    X: Any
    y: Any = None  # values of entries
    groups: Any = None  # labels, as integers

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True)
class Case:
    """One value for each axis of a model."""

    model: str
    values: tuple[tuple[str, str], ...]

    def __getitem__(self, axis: str) -> str:
        return dict(self.values).get(axis, "")

    @property
    def of(self) -> Model:
        return MODELS[self.model]

    @property
    def name(self) -> str:
        """The model, and each value that is not the plain one."""
        plain = AXES[self.of.family]
        turned = [value for axis, value in self.values if value != plain[axis][0]]
        return " | ".join([self.model, *turned])

    def with_(self, **values: str) -> "Case":
        return replace(self, values=tuple({**dict(self.values), **values}.items()))

    def plain(self) -> "Case":
        """The same units and model in the plain form of data, without settings."""
        plain = {axis: of[0] for axis, of in AXES[self.of.family].items() if axis in FORMS}
        if self["container"] == "batches":
            del plain["container"]
        return self.with_(**plain)

    def draw(self, seed: int = 0) -> Data:
        """Data of this case in its plain form."""
        rng = np.random.default_rng([seed, len(self.of.family)])
        data = DRAW[self.of.family](rng)
        return replace(data, groups=_labels(self["groups"], len(data))) if self["groups"] else data

    def build(self, **options: Any) -> Any:
        """The estimator, with its payer."""
        given: dict[str, Any] = {**self.of.options, **options}
        if self["neighbours"] and self.of.counts_units:
            target = given["estimator"] if self.of.kind is PrivateSearchCV else None
            if target is None:
                given["neighbours"] = self["neighbours"]
            else:
                given["estimator"] = target.set_params(neighbours=self["neighbours"])
        if self["names"] == "row names":
            names: list[Any] = [[f"row {i}" for i in range(n)] for n in given["shape"]]
            given["row_names"] = tuple(names)
        model = self.of.kind(**given)
        if self["payer"] != "none" and not np.isinf(given.get("epsilon", 1.0)):
            path = None
            if self["payer"] == "file":
                path = Path(tempfile.mkdtemp(dir=_folder())) / "budget.sqlite"
            model.set_params(accountant=BudgetAccountant(*ENOUGH, path=path))
        if self["settings"] == "set_output" and hasattr(model, "set_output"):
            model.set_output(transform="pandas")
        return model

    def given(self, data: Data) -> tuple[Any, Any, Any]:
        """X, y and groups in the container and types of this case."""
        family, container = self.of.family, self["container"]
        if family in ("counts", "samples"):
            X = np.asarray(data.X, self["dtype"] or None)
            groups = _labels_of(data.groups, self["labels"], container)
            return ROW_CONTAINERS.get(container, _unchanged)(X), None, groups
        if family == "texts":
            groups = _labels_of(data.groups, self["labels"], container)
            return TEXT_CONTAINERS[container](data.X), None, groups
        if family == "tensors":
            return ROW_CONTAINERS[container](data.X), None, None
        return (*self._entries(data), None)

    def _entries(self, data: Data) -> tuple[Any, Any]:
        X, y = np.asarray(data.X), np.asarray(data.y)
        orders = {"sorted": np.lexsort(X.T[::-1]), "shuffled": np.random.default_rng(5).permutation}
        if self["order"] in orders:
            order = orders[self["order"]]
            order = order(len(X)) if callable(order) else order
            X, y = X[order], y[order]
        if self["names"] == "row names":
            named = np.array([[f"row {i}" for i in row] for row in X], object)
            return ENTRY_CONTAINERS[self["container"]](named, y)
        return ENTRY_CONTAINERS[self["container"]](X.astype(self["dtype"]), y)

    def fit(self, model: Any, data: Data) -> Any:
        """Call the door that the container is for; under its settings."""
        X, y, groups = self.given(data)
        family, container = self.of.family, self["container"]
        with self.settings():
            if family == "tensors":
                return model.fit_tensor(X)
            if container == "tensor":
                return model.fit_tensor(X)
            if container in PARTS and family != "texts":
                sizes = {"n_features": X.shape[1]}
                if self["neighbours"] != "add_remove":
                    units = data.groups if groups is not None else np.arange(len(data))
                    sizes["n_samples"] = len(np.unique(units))
                return model.fit_chunks(_parts(container, X, groups), **sizes)
            if container == "batches":
                return _in_batches(model, X, groups)
            more = {} if data.groups is None else {"groups": groups}
            if container in DASK and data.groups is not None and self["neighbours"] != "add_remove":
                more["n_samples"] = len(np.unique(data.groups))
            elif container in ("dask frame", "dask unknown") and self["neighbours"] != "add_remove":
                more["n_samples"] = len(data)
            return model.fit(X, **more) if y is None else model.fit(X, y, **more)

    @contextmanager
    def settings(self) -> Iterator[None]:
        """What surrounds a call."""
        chosen, errors = self["settings"], self["errors"]
        with ExitStack() as stack:
            stack.enter_context(dask.config.set(scheduler="synchronous"))
            stack.enter_context(patch.object(Question, "forecast", forecast_once))
            if chosen == "routing":
                stack.enter_context(sklearn.config_context(enable_metadata_routing=True))
            if errors == "np.seterr":
                stack.enter_context(np.errstate(all="raise"))
            if errors == "warnings":
                stack.enter_context(warnings.catch_warnings())
                warnings.simplefilter("error")
                warnings.filterwarnings("ignore", "Nearly all samples")
                warnings.filterwarnings("ignore", "Unless all cells have values")
                for said in (NotEnoughDataWarning, PrivacyLeakWarning, ConvergenceWarning):
                    warnings.simplefilter("ignore", said)
            if chosen == "threads":
                stack.enter_context(dask.config.set(scheduler="threads", num_workers=2))
            yield


_forecast: Callable[..., Any] = Question.forecast
_forecasts: dict[Any, Any] = {}


def forecast_once(asked: Question, parameters: dict[str, Any], numbers: dict[str, Any]) -> Any:
    """A forecast from public numbers: fits that find nothing ask for forty, all for the same."""
    same = asked.kind, pickle.dumps((asked.parameters | parameters, asked.numbers | numbers))
    if same not in _forecasts:
        _forecasts[same] = _forecast(asked, parameters, numbers)
    return _forecasts[same]


def plain(model: str, **values: str) -> Case:
    """A case of plain values but for those given."""
    axes = AXES[MODELS[model].family]
    return Case(model, tuple((axis, of[0]) for axis, of in axes.items())).with_(**values)


@contextmanager
def quiet(seed: int = 0) -> Iterator[None]:
    """A block without warnings, whose noise is seeded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with unsafe_seeded_noise(seed):
            yield


@functools.cache
def report_of(model: str, **values: str) -> PrivacyReport:
    """Report of a fit, as if its noise had been secret."""
    case = plain(model, **{"payer": "none", **values})
    with quiet():
        return replace(case.fit(case.build(), case.draw()).privacy_report_, seeded=False)


def observed(case: Case, data: Data, seed: int = 0, model: Any = None) -> tuple[Any, list[Any]]:
    """A fit with seeded noise, and its releases, which those of a search are not among."""
    with ExitStack() as stack:
        stack.enter_context(quiet(seed))
        releases: list[Any] = []
        if case.model not in SEARCHES:
            releases = stack.enter_context(unsafe_recorded_releases())
        return case.fit(case.build() if model is None else model, data), releases


@functools.cache
def _observed_once(case: Case) -> tuple[Any, list[Any]]:
    return observed(case, case.draw())


def observed_once(case: Case) -> tuple[Any, list[Any]]:
    """A copy of a fit that all properties share, and its releases: its parameters may be set."""
    model, releases = _observed_once(case)
    return copy.copy(model), releases


# Data

MICE = ("cats chase mice", "dogs chase cats", "mice nap", "cats cats nap", "dogs dogs dogs")


def _draw_texts(rng: np.random.Generator) -> Data:
    return Data([MICE[place] for place in rng.integers(len(MICE), size=N)])


def _draw_entries(shape: tuple[int, ...]) -> Callable[[np.random.Generator], Data]:
    def draw(rng: np.random.Generator) -> Data:
        X = np.argwhere(rng.random(shape) < 0.7)
        return Data(X[rng.permutation(len(X))], rng.integers(-3, 4, len(X)).astype(float))

    return draw


def _draw_tensor(rng: np.random.Generator) -> Data:
    rows = rng.integers(-1, 2, (2, 4)).astype(float)
    return Data(np.einsum("ki,kj,kl->ijl", rows, rows, rows))


DRAW: dict[str, Callable[[np.random.Generator], Data]] = {
    "counts": lambda rng: Data(rng.poisson(1.0, (N, D))),
    "samples": lambda rng: Data(rng.integers(-2, 3, (N, 4))),
    "texts": _draw_texts,
    "entries": _draw_entries(SHAPE),
    "slices": _draw_entries(SHAPE),
    "matrices": _draw_entries((SHAPE[0], 12)),
    "tensors": _draw_tensor,
}


def _labels(groups: str, n: int) -> Any:
    """Integers that say whose a row is; None for rows by themselves."""
    if groups == "none":
        return None
    if groups == "one row each":
        return np.arange(n)
    if groups == "one huge":
        return np.where(np.arange(n) % 5 == 0, 0, np.arange(n))
    runs = np.repeat(np.arange(n), np.resize([2, 1, 3, 2], n))[:n]
    return runs if groups == "sorted" else np.random.default_rng(2).permutation(runs)


def _labels_of(labels: Any, types: str, container: str) -> Any:
    """Labels in the types of the axis, in a column of the same library as rows."""
    if labels is None:
        return None
    found: Any = np.asarray(labels)
    if types == "texts":
        # The longest differs from part to part.
        found = np.array([f"person {10 ** int(label)}" for label in labels])
    if types == "big":
        found = 2**53 + found
    if types == "categories":
        return pd.Categorical([f"person {label}" for label in labels])
    columns = {
        "pandas": pd.Series, "polars": pl.Series, "arrow": pa.array, "list": list,
        "dask array": lambda of: da.from_array(of, chunks=(25,)),
        "dask csr": lambda of: da.from_array(of, chunks=(25,)),
        "dask unknown": lambda of: _unknown(of, 25),
        "dask frame": lambda of: dd.from_pandas(pd.Series(of), npartitions=3, sort=False),
    }  # fmt: skip
    return columns.get(container, _unchanged)(found)


# Containers


def _unchanged(X: Any) -> Any:
    return X


def names_of(X: Any) -> list[str]:
    """Names of columns of a table that has any."""
    return [f"x{column}" for column in range(np.shape(X)[1])]


def _frame(X: np.ndarray) -> pd.DataFrame:
    """With an index of its own, which says nothing of the places of rows."""
    return pd.DataFrame(X, columns=names_of(X), index=np.arange(len(X), 0, -1))


def untidy_csr(X: np.ndarray) -> sp.csr_matrix:
    """Columns in any order, an entry in two parts, and zeros that are written out."""
    rows, columns = np.nonzero(X)
    values, zeros = X[rows, columns], np.argwhere(X == 0)[:5]
    part = (values // 2).astype(X.dtype)
    data = np.concatenate([values - part, part, np.zeros(len(zeros), X.dtype)])
    places = np.concatenate([np.column_stack([rows, columns])] * 2 + [zeros])
    order = np.lexsort([np.random.default_rng(1).random(len(data)), places[:, 0]])
    bounds = np.searchsorted(places[order, 0], np.arange(len(X) + 1))
    return sp.csr_matrix((data[order], places[order, 1], bounds), X.shape)


def _unknown(X: np.ndarray, size: int) -> Any:
    """Rows that only computing counts, some of them none."""
    blocks = [dask.delayed(part) for part in (X[:size], X[:0], X[size:])]
    shape = (np.nan, *X.shape[1:])
    return da.concatenate(
        [da.from_delayed(block, shape, dtype=X.dtype) for block in blocks],
        allow_unknown_chunksizes=True,
    )


def _read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


ROW_CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "array": lambda X: X,
    "columns first": np.asfortranarray,
    "view": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "read only": _read_only,
    "list": lambda X: X.tolist(),
    "untidy csr": untidy_csr,
    "pandas": _frame,
    "pandas of arrow": lambda X: _frame(X).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda X: pl.DataFrame(dict(zip(names_of(X), X.T, strict=True))),
    "arrow": lambda X: pa.table(dict(zip(names_of(X), X.T, strict=True))),
    "dask array": lambda X: da.from_array(X, chunks=((25, 1, len(X) - 26), (2, X.shape[1] - 2))),
    "dask csr": lambda X: da.from_array(X, chunks=(25, X.shape[1])).map_blocks(sp.csr_matrix),
    "dask unknown": lambda X: _unknown(X, 25),
    "dask frame": lambda X: dd.from_pandas(_frame(X), npartitions=3, sort=False),
    **{name: getattr(sp, name) for name in SPARSE},
}


def _files_of(texts: list[str]) -> Any:
    series = np.array(texts)
    path = Path(tempfile.mkdtemp(dir=_folder())) / "texts.npy"
    np.save(path, series)
    return np.load(path, mmap_mode="r")


TEXT_CONTAINERS: dict[str, Callable[[list[str]], Any]] = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "objects": lambda texts: np.array(texts, object),
    "pandas": pd.Series,
    "pandas of arrow": lambda texts: pd.Series(texts, dtype=pd.ArrowDtype(pa.string())),
    "polars": pl.Series,
    "arrow": lambda texts: pa.chunked_array([texts[:20], texts[20:]]),
    "bytes": lambda texts: [text.encode() for text in texts],
    "files": _files_of,
    "dask array": lambda texts: da.from_array(np.array(texts, object), chunks=25),
    "dask frame": lambda texts: dd.from_pandas(pd.Series(texts), npartitions=3, sort=False),
    "dictionary": lambda texts: pa.array(texts).dictionary_encode(),
    "categorical": lambda texts: pl.Series(texts, dtype=pl.Categorical),
}


def _as_tensor(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    shape = SHAPE if X.shape[1] == 3 else (SHAPE[0], 12)
    T = np.full(shape, np.nan)
    T[tuple(X.astype(int).T)] = y
    return T


def _columns(make: Any, column: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
    return lambda X, y: (make(dict(zip(names_of(X), map(list, X.T), strict=True))), column(y))


ENTRY_CONTAINERS: dict[str, Callable[[Any, Any], Any]] = {
    "array": lambda X, y: (X, y),
    "columns first": lambda X, y: (np.asfortranarray(X), y[::-1][::-1]),
    "list": lambda X, y: (X.tolist(), y.tolist()),
    "pandas": _columns(pd.DataFrame, pd.Series),
    "pandas of arrow": lambda X, y: (
        pd.DataFrame(dict(zip(names_of(X), map(list, X.T), strict=True))).convert_dtypes(
            dtype_backend="pyarrow"), pd.Series(y, dtype="double[pyarrow]")),
    "polars": _columns(pl.DataFrame, pl.Series),
    "arrow": _columns(pa.table, pa.array),
    "dask array": lambda X, y: (
        da.from_array(X, chunks=(20, X.shape[1])), da.from_array(y, chunks=20)),
    "tensor": lambda X, y: (np.asfortranarray(_as_tensor(X, y)), None),
}  # fmt: skip


class _Files:
    """Chunks in files, read anew each time."""

    def __init__(self, parts: list[Any]) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=_folder()))
        self.number, self.grouped = len(parts), isinstance(parts[0], tuple)
        for place, part in enumerate(parts):
            for name, item in zip("Xg", part if self.grouped else (part,), strict=False):
                np.save(self.folder / f"{place}{name}.npy", item)

    def __iter__(self) -> Iterator[Any]:
        for place in range(self.number):
            found = [
                np.load(self.folder / f"{place}{name}.npy", mmap_mode="r")
                for name in ("Xg" if self.grouped else "X")
            ]
            yield tuple(found) if self.grouped else found[0]


def _parts(container: str, X: np.ndarray, groups: Any) -> Any:
    """Source of chunks, between persons."""
    cuts, order = [25, 26], np.arange(len(X))
    if groups is not None:
        people = np.unique(np.asarray(groups), return_inverse=True)[1]
        order = np.argsort(-people, kind="stable")
        starts = np.flatnonzero(np.diff(people[order])) + 1
        cuts = [int(starts[len(starts) // 2])]
    make = sp.csr_array if container == "sparse chunks" else _unchanged
    rows = np.split(order, cuts)
    parts = [make(X[part]) if groups is None else (make(X[part]), groups[part]) for part in rows]
    if container == "partitions":
        return PartsInOrder(parts, grouped=groups is not None)
    return _Files(parts) if container == "files" else parts


def _in_batches(model: Any, X: Any, groups: Any) -> Any:
    for part in np.split(np.arange(len(X)), [20, 40]):
        model.partial_fit(X[part], **({} if groups is None else {"groups": groups[part]}))
    return model


# Coverings


@functools.cache
def cases(
    family: str,
    axes: tuple[str, ...] | None = None,
    models: tuple[str, ...] = tuple(MODELS),
    leave_out: Callable[[dict[str, str]], bool] | None = None,
    strength: int = 2,
) -> list[Case]:
    """Cases of a family in which all pairs (or triples) of models and values of axes occur."""
    varied = {axis: of for axis, of in AXES[family].items() if axes is None or axis in axes}
    fixed = {axis: of[0] for axis, of in AXES[family].items() if axis not in varied}
    own = [name for name in models if MODELS[name].family == family]

    def goes(row: dict[str, str]) -> bool:
        whole = {**fixed, **row}
        return possible(whole) and not (leave_out and leave_out(whole))

    rows = covering({"model": own, **varied}, goes, strength)
    return [
        Case(row["model"], tuple((axis, row.get(axis, fixed.get(axis))) for axis in AXES[family]))
        for row in rows
    ]


def covered(
    holds: Callable[[Case], None],
    axes: tuple[str, ...] | None = None,
    models: tuple[str, ...] = tuple(MODELS),
    leave_out: Callable[[dict[str, str]], bool] | None = None,
) -> tuple[Any, Any]:
    """Tests that a property `holds`: for a thirtieth of all pairs; at night for all, and triples.

    Each model but those of AT_NIGHT, and each value in one of the families that are read alike, is
    in a case that is not left for the night.
    """
    families = [family for family in AXES if any(MODELS[one].family == family for one in models)]
    pairs = [case for family in families for case in cases(family, axes, models, leave_out)]
    seen: set[tuple[str, str]] = set()
    tried = []
    for place, case in enumerate(pairs):
        family = "entries" if AXES[case.of.family] is ENTRIES else case.of.family
        values = {("model", case.model), *((family + axis, of) for axis, of in case.values)}
        now = case.model not in AT_NIGHT and (place % 30 == 0 or not values <= seen)
        seen |= values if now else set()
        tried.append(pytest.param(case, id=case.name, marks=[pytest.mark.nightly] * (not now)))

    @pytest.mark.filterwarnings("ignore::UserWarning")
    @pytest.mark.parametrize("case", tried)
    def test(case: Case) -> None:
        holds(case)

    known = set(pairs)

    @pytest.mark.nightly
    @pytest.mark.filterwarnings("ignore::UserWarning")
    @pytest.mark.parametrize("family", families)
    def test_of_triples(family: str) -> None:
        failed = []
        for case in cases(family, axes, models, leave_out, 3):
            try:
                if case not in known:
                    holds(case)
            except Exception as error:
                failed.append(f"{case.name}: {error!r}")
        assert not failed, "\n".join(failed)

    return test, test_of_triples


@functools.cache
def _folder() -> str:
    """Folder of this process for ledgers and data."""
    found = tempfile.TemporaryDirectory(prefix="cases-")
    _kept.append(found)
    return found.name


_kept: list[Any] = []
