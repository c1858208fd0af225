"""Tables and columns of pandas, polars and pyarrow, in and out."""

import datetime
import sys
import types
from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sktensor_dp import (
    BudgetAccountant,
    PrivacyLeakWarning,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    unsafe_seeded_noise,
)

pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")

rng = np.random.default_rng(0)
COUNTS = rng.poisson(1.0, (600, 6))
# Columns of a data frame are its attributes, too: no data is told by what it has.
NAMES = ["collect", "to_delayed", "in_chunks", "dtype", "apart", "chunks"]
PEOPLE = np.array([f"p{row // 3}" for row in range(600)])
TEXTS = [("sea ship sail", "tax law vote", "goal team cup")[row % 3] for row in range(600)]
topics = partial(PrivateSpectralLDA, 2, random_state=0)


def by_column(make):
    return lambda values, names: make(dict(zip(names, values.T, strict=True)))


TABLES = {
    "pandas": by_column(pd.DataFrame),
    "pandas by pyarrow": by_column(
        lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow")
    ),
    "polars": by_column(pl.DataFrame),
    "pyarrow": by_column(pa.table),
    "record batch": by_column(pa.record_batch),
}
COLUMNS = {
    "pandas": pd.Series,
    "pandas by pyarrow": lambda values: pd.Series(
        values, dtype=pd.ArrowDtype(pa.array(values).type)
    ),
    "polars": pl.Series,
    "pyarrow": lambda values: pa.chunked_array([values[:200], values[200:]]),
    "record batch": pa.array,
}


def seeded(fit):
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(0):
        return fit()


@pytest.fixture(params=sorted(TABLES))
def kind(request):
    return request.param


@pytest.fixture
def table(kind):
    return TABLES[kind](COUNTS, NAMES)


class Labelled:
    """Array in memory that Dask could hold, as those of xarray."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.ndim = values, values.shape, values.dtype, 2

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __len__(self):
        return len(self.values)

    def __dask_graph__(self):
        return None


def test_arrays_in_memory_are_not_taken_for_those_of_dask():
    found, plain = (seeded(lambda X=X: topics().fit(X)) for X in (Labelled(COUNTS), COUNTS))
    np.testing.assert_array_equal(found.components_, plain.components_)


def test_tables_that_are_not_computed_are_refused_before_a_charge():
    budget = BudgetAccountant(9.0)
    lazy = pl.LazyFrame(dict(zip(NAMES, COUNTS.T, strict=True)))
    topics = PrivateSpectralLDA(2, accountant=budget)
    completion = PrivateCPCompletion(bounds=(0, 9), shape=(99, 99), accountant=budget)
    words = PrivateCountVectorizer(accountant=budget)
    for name, fit in {
        "X": lambda: topics.fit(lazy),
        "groups": lambda: topics.fit(COUNTS, groups=lazy.select(NAMES[0])),
        "a chunk": lambda: topics.fit_chunks([lazy], n_samples=600, n_features=6),
        "y": lambda: completion.fit(COUNTS[:, :2], lazy.select(NAMES[2])),
        "raw_documents": lambda: words.fit(lazy.select(NAMES[0])),
    }.items():
        with pytest.raises(TypeError, match=rf"{name} is a polars.LazyFrame.*\.collect\(\)"):
            fit()
    assert budget.entries == ()


@pytest.mark.parametrize(
    ("module", "name", "compute"),
    [("duckdb", "DuckDBPyRelation", "df"), ("pyspark.sql", "DataFrame", "toPandas")],
)
def test_lazy_queries_are_told_how_they_are_computed(monkeypatch, module, name, compute):
    # Stand-ins: neither package is installed.
    lazy = type(name, (), {"__module__": module})
    monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(**{name: lazy}))
    with pytest.raises(TypeError, match=rf"X is a {module[:6]}.*Pass X\.{compute}\(\)"):
        topics().fit(lazy())


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "int64[pyarrow]", "double[pyarrow]"])
def test_missing_values_of_a_wide_table_are_gaps(dtype):
    numbers = np.where(np.random.default_rng(0).random((30, 6)) < 0.4, np.nan, COUNTS[:30, :6] + 1)
    wide = pd.DataFrame(numbers).astype(dtype)

    def fit(table):
        return seeded(lambda: PrivateCPCompletion(1, bounds=(1, 5)).fit_tensor(table))

    for table in (wide, wide.to_numpy(object, na_value=None).tolist()):
        np.testing.assert_array_equal(fit(table).complete(), fit(numbers).complete())


def test_dates_texts_and_missing_labels_are_refused(kind):
    column, topics = COLUMNS[kind], PrivateSpectralLDA(2)
    if kind != "pandas":  # there they are objects, of which nothing is known
        dates = column([datetime.date(2020, 1, 1)] * 30)
        made = dates.to_frame() if hasattr(dates, "to_frame") else pa.table({"day": dates})
        with pytest.raises(ValueError, match="dates and times are none"):
            topics.fit(made)
    # Texts of pandas before 3 are objects too, and refused when they are read.
    with pytest.raises(ValueError, match=r"X must hold numbers(, got text|; it holds values)"):
        topics.fit(TABLES[kind](np.array(TEXTS).reshape(-1, 1), ["text"]))
    for labels in ([*PEOPLE[1:].tolist(), None], [*range(599), None]):
        with pytest.raises(ValueError, match="groups must hold one label per row"):
            topics.fit(COUNTS, groups=column(labels))


@pytest.mark.parametrize("of", [object, "string", "category"])
def test_columns_of_text_are_named_with_what_is_right_for_the_model(of):
    frame = pd.DataFrame({"age": [1.0, 2.0] * 9, "sex": ["m", "f"] * 9, "town": ["x", "y"] * 9})
    frame = frame.astype({"sex": of, "town": of})
    for model, advice in (
        (PrivateGaussianMixture(2, data_norm=2.0), "encode categories by a column of 0 and 1"),
        (PrivateTensorPowerMethod(2, data_norm=2.0), "encode categories by a column of 0 and 1"),
        (PrivateSpectralLDA(2), "count the words of texts first"),
    ):
        with pytest.raises(ValueError, match=rf"in column 'sex', 'town'[;:] {advice}"):
            model.fit(frame)


TOPICS = PrivateSpectralLDA(2, epsilon=50.0)
COMPONENTS = PrivateTensorPowerMethod(2, data_norm=8.0, epsilon=50.0)


@pytest.mark.parametrize("model", [TOPICS, COMPONENTS], ids=lambda model: type(model).__name__)
def test_transforms_keep_single_precision_of_sparse_and_lazy_tables(model):
    model.fit(COUNTS)
    single, double = (
        model.transform(sp.csr_matrix(COUNTS.astype(kind))) for kind in (np.float32, np.float64)
    )
    np.testing.assert_array_equal(single, double.astype(np.float32), strict=True)
    lazy = model.transform(da.from_array(COUNTS.astype(np.float32), chunks=(200, 6)))
    assert lazy.dtype == lazy.compute().dtype == np.float32
