"""Names and order of columns are checked wherever a table comes in."""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sktensor_dp
from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateOneHotEncoder,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
    make_private_scorer,
)
from sktensor_dp.privacy.execution import ThreadedPartitions

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
RNG = np.random.default_rng(0)
COUNTS = pd.DataFrame(RNG.poisson(1.0, (200, 3)), columns=list("abc"))
ENTRIES = pd.DataFrame(np.argwhere(np.ones((30, 4))), columns=["who", "what"])
VALUES = 3.0 + ENTRIES["what"].to_numpy() / 2
TABLE = pd.DataFrame(RNG.uniform(1, 5, (9, 3)), columns=list("abc"))


def swapped(table: pd.DataFrame) -> pd.DataFrame:
    return table[table.columns[::-1]]


@cache
def fitted(kind: type, **options: Any) -> Any:
    """An estimator that has seen the columns in their order."""
    if kind in (PrivateCPCompletion, PrivateTuckerCompletion):
        model = kind(1, bounds=(1, 5), shape=(30, 4), epsilon=8.0, **options)
        return model.fit(ENTRIES, VALUES)
    if kind is PrivateCountVectorizer:
        return kind(vocabulary=("a", "b", "c")).fit(["a b"])
    if kind is PrivateSearchCV:
        model = PrivateTensorPowerMethod(1, data_norm=5.0, n_restarts=2, max_iter=1)
        return kind(model, {"n_restarts": [2]}, n_trials=1, score_bounds=(-9, 9)).fit(COUNTS)
    if kind is PrivateTensorPowerMethod:
        options = {"data_norm": 5.0, "n_restarts": 2, "max_iter": 1, **options}
    return kind(2, epsilon=1e4, **options).fit(COUNTS)


def calling(method: str, table: Any = COUNTS, *more: Any, **options: Any) -> Callable[[type], Any]:
    return lambda kind: getattr(fitted(kind, **options), method)(swapped(table), *more)


def continued(kind: type, **options: Any) -> None:
    model = kind(1, epsilon=8.0, **options).partial_fit(COUNTS)
    model.partial_fit(swapped(COUNTS))


def chunks(kind: type, source: Any = list, **options: Any) -> None:
    parts = source([COUNTS, swapped(COUNTS)])
    kind(1, epsilon=8.0, **options).fit_chunks(parts, n_samples=400, n_features=3)


def by_threads(parts: Any) -> ThreadedPartitions:
    return ThreadedPartitions(parts, 2)


def on_dask(kind: type) -> None:
    dd = pytest.importorskip("dask.dataframe", reason="tables of Dask need Dask")
    parts = dd.from_map(lambda k: (COUNTS, swapped(COUNTS))[k], [0, 1], meta=COUNTS[:0])
    kind(1, epsilon=8.0).fit(parts, n_samples=400)


def transformed_on_dask(kind: type) -> None:
    dd = pytest.importorskip("dask.dataframe", reason="tables of Dask need Dask")
    parts = dd.from_map(lambda _: swapped(COUNTS), [0], meta=COUNTS[:0])
    fitted(kind).transform(parts).compute()


def inverse(kind: type, **options: Any) -> None:
    model = fitted(kind, **options)
    assert len(model.get_feature_names_out()) > 1
    names = model.get_feature_names_out()[::-1]
    model.inverse_transform(pd.DataFrame(np.ones((2, len(names))), columns=names))


def encoded(kind: type) -> None:
    kind(epsilon=100.0).fit(COUNTS.astype(str)).transform(swapped(COUNTS.astype(str)))


def encoded_back(kind: type) -> None:
    model = kind(epsilon=100.0).fit(COUNTS.astype(str))
    names = model.get_feature_names_out()[::-1]
    assert len(names) > 1
    model.inverse_transform(pd.DataFrame(np.ones((2, len(names))), columns=names))


def of_own_entries(use: Callable[[Any, Any], Any], unit_mode: int | None) -> Callable[[type], Any]:
    def ask(kind: type) -> None:
        model = fitted(kind, unit_mode=unit_mode)
        use(model, model.fold_in(ENTRIES[:4], VALUES[:4]))

    return ask


MIXTURE = {"moment": "gaussian_mixture"}
COMPLETION = {
    "predict": [calling("predict", ENTRIES), calling("predict", ENTRIES, unit_mode=0)],
    "transform": [calling("transform", ENTRIES)],
    "score": [calling("score", ENTRIES, VALUES)],
    "fold_in": [calling("fold_in", ENTRIES, VALUES, unit_mode=mode) for mode in (None, 0)],
    "recommend": [
        of_own_entries(lambda model, own: model.recommend(own, exclude=swapped(ENTRIES)), None),
        of_own_entries(lambda model, own: model.recommend(0, exclude=swapped(ENTRIES)), None),
        of_own_entries(lambda model, own: model.recommend(own, exclude=swapped(ENTRIES)), 0),
    ],
    "fit_tensor": [lambda kind: kind(1, bounds=(1, 5)).fit_tensor(TABLE, swapped(TABLE) > 2)],
}
DOORS: dict[type, dict[str, list[Callable[[type], Any]]]] = {
    PrivateSpectralLDA: {
        **{name: [calling(name)] for name in (
            "transform", "score", "score_samples", "perplexity", "completion_perplexity",
            "recommend")},
        "partial_fit": [continued],
        "fit_chunks": [chunks, lambda kind: chunks(kind, by_threads)],
        "fit": [on_dask],
        "transform of Dask": [transformed_on_dask],
    },
    PrivateTensorPowerMethod: {
        **{name: [calling(name, **MIXTURE)] for name in (
            "predict", "transform", "score", "score_samples", "aic", "bic")},
        "partial_fit": [lambda kind: continued(kind, data_norm=5.0)],
        "fit_chunks": [
            lambda kind: chunks(kind, data_norm=5.0),
            lambda kind: chunks(kind, data_norm=5.0, perturbation="stream"),
        ],
        "inverse_transform": [inverse],
    },
    PrivateGaussianMixture: {
        **{name: [calling(name, data_norm=5.0)] for name in (
            "predict", "predict_proba", "score", "score_samples", "aic", "bic")},
        "fit_chunks": [lambda kind: chunks(kind, data_norm=5.0)],
    },
    PrivateCPCompletion: COMPLETION,
    PrivateTuckerCompletion: COMPLETION,
    PrivateCountVectorizer: {"inverse_transform": [inverse]},
    PrivateOneHotEncoder: {"transform": [encoded], "inverse_transform": [encoded_back]},
    PrivateSearchCV: {name: [calling(name)] for name in ("transform", "score_samples", "score")},
    sktensor_dp.UnitParameters: {
        "predict": [
            lambda _, mode=mode: of_own_entries(
                lambda model, own: own.predict(swapped(ENTRIES)), mode)(PrivateCPCompletion)
            for mode in (None, 0)
        ],
    },
}  # fmt: skip
# What comes in as the first table has nothing to be compared with, and others have no columns.
FIRST = {"fit", "fit_predict", "fit_transform", "fit_tensor"}
WITHOUT_COLUMNS = {
    "PrivateCountVectorizer.transform", "PrivateKFold.split", "PrivateKFold.get_n_splits",
    "PrivateSearchCV.predict",  # of a completion, as its own
}  # fmt: skip
TABLES = {"X", "source", "mask", "exclude", "raw_documents"}


def test_every_method_that_takes_a_table_is_listed() -> None:
    missing = []
    for name in sktensor_dp.__all__:
        kind = getattr(sktensor_dp, name)
        members = inspect.getmembers(kind, inspect.isfunction) if inspect.isclass(kind) else []
        for method, function in members:
            if method.startswith(("_", "set_")):
                continue
            takes = TABLES & set(inspect.signature(function).parameters)
            known = method in DOORS.get(kind, {}) or (method in FIRST and "mask" not in takes)
            if takes and not known and f"{name}.{method}" not in WITHOUT_COLUMNS:
                missing.append(f"{name}.{method}")
    assert missing == []


@pytest.mark.parametrize(
    ("kind", "method", "place"),
    [(kind, name, k) for kind, of in DOORS.items() for name in of for k in range(len(of[name]))],
)
def test_columns_in_another_order_are_refused(kind: type, method: str, place: int) -> None:
    with pytest.raises(ValueError, match=r"feature names should match|X must have the columns"):
        DOORS[kind][method][place](kind)


def test_a_private_score_of_other_columns_costs_nothing() -> None:
    payer = BudgetAccountant(9.0)
    for kind, given, metric in (
        (PrivateCPCompletion, (swapped(ENTRIES), VALUES), "neg_mean_squared_error"),
        (PrivateSpectralLDA, (swapped(COUNTS),), "log_likelihood_per_token"),
    ):
        with pytest.raises(ValueError, match="feature names should match"):
            make_private_scorer(metric, accountant=payer)(fitted(kind), *given)
    assert payer.entries == ()
